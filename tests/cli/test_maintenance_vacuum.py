from memd.cli import maintenance

MB = 1024 * 1024


def said(*dropped, is_dry_run=False, free=0, after=None, note="", **aged):
    nothing = {"compacted": 0, "bytes": 0, "expired": 0, "archived": 0, "days": 90}
    return {
        "retention": {**nothing, "is_dry_run": is_dry_run, **aged},
        "is_dry_run": is_dry_run,
        "dropped": [{"space": s, "vectors": n, "bytes": b} for s, n, b in dropped],
        "free": free,
        "before": 40 * MB,
        "after": after,
        "note": note,
    }


def test_a_vault_with_nothing_to_drop_loses_no_memory(memd):
    before = memd("status", "--json").json["summaries"]["count"]
    rehearsed = memd("vacuum", "--dry-run")
    assert (rehearsed.status, rehearsed.err) == (0, "")
    assert rehearsed.out.startswith(
        "nothing that is old enough to cut down\nno space of vectors that is not in use\n"
    )
    done = memd("vacuum")
    assert (done.status, done.err) == (0, "")
    assert "freed " in done.out
    assert memd("status", "--json").json["summaries"]["count"] == before
    assert memd("search", "login 500", "--project", "all", "--json").json["hits"]


def test_a_rehearsal_says_what_would_go_and_how_much_room_that_is():
    lines = maintenance._lines(
        said(("ollama/m/1/768/aa", 10_000, 15 * MB), is_dry_run=True, free=MB)
    )
    assert list(lines)[1:] == [
        "would drop ollama/m/1/768/aa: 10,000 vectors, 15.0 MB",
        "would free about 16.0 MB of 40.0 MB",
    ]


def test_what_went_is_named_and_a_file_that_did_not_shrink_frees_nothing():
    assert list(maintenance._lines(said(("a\x1bb", 1, 9), after=25 * MB)))[1:] == [
        "dropped ab: 1 vector, 9 B",
        "freed 15.0 MB: 40.0 MB → 25.0 MB",
    ]
    lines = list(
        maintenance._lines(said(after=41 * MB, note="kept until the model answers: x"))
    )
    assert lines[2:] == ["kept until the model answers: x", "freed 0 B: 40.0 MB → 41.0 MB"]


def test_without_a_daemon_it_says_so(alone):
    assert alone("vacuum").status == 2


def test_what_is_old_is_told_first_and_counted_as_freed():
    lines = maintenance._lines(
        said(is_dry_run=True, compacted=1_200, bytes=3 * MB, expired=1, archived=2)
    )
    assert list(lines) == [
        "would cut down 1,200 events older than 90 days to what is cited: 3.0 MB",
        "would drop 1 memory that expired long ago",
        "would hide 2 memories that no answer ever returned",
        "no space of vectors that is not in use",
        "would free about 3.0 MB of 40.0 MB",
    ]
    assert next(maintenance._lines(said(expired=1, after=MB))).startswith("dropped 1 memory")
