import pytest

from memd.cli import maintenance

# ── reindex ───────────────────────────────────────────────────────────────────────────────────────


def test_a_reindex_changes_no_hits(memd):
    query = ("search", "login 500", "--project", "all", "--json")
    before = [hit["id"] for hit in memd(*query).json["hits"]]
    ran = memd("reindex")
    assert ran.status == 0
    assert ran.out.startswith("done in ")
    assert [hit["id"] for hit in memd(*query).json["hits"]] == before


def test_memories_that_todays_rules_have_made_are_not_made_again(memd):
    for words in (("--dry-run",), ()):
        ran = memd("reindex", "--memories", *words)
        assert (ran.status, ran.err) == (0, "")
        assert "0 created, 0 revised, 0 deleted" in ran.out


@pytest.mark.parametrize("words", [("--dry-run",), ("--memories", "--embeddings")])
def test_a_reindex_that_makes_no_sense_is_refused(memd, words):
    ran = memd("reindex", *words)
    assert (ran.status, ran.out) == (1, "")


def test_what_distilling_again_changes_is_listed():
    changes = [
        {"change": "created", "id": 9, "kind": "decision", "title": "Use pnpm", "was": ""},
        {"change": "revised", "id": 2, "kind": "change", "title": "new", "was": "old"},
        {"change": "revised", "id": 3, "kind": "change", "title": "same", "was": "same"},
        {"change": "kept", "id": 4, "kind": "fact", "title": "ours", "was": "pinned"},
    ]
    report = {"created": 1, "revised": 2, "deleted": 1, "kept": 1, "changes": changes}
    preview, done = (
        list(maintenance._format_redistilled(report | {"is_dry_run": one})) for one in (True, False)
    )
    assert preview == [
        "memories that would be changed: 1 created, 2 revised, 1 deleted",
        "kept, though today's rules no longer say it: 1 memory",
        "+ decision  Use pnpm",
        "~ #2 change  old → new",
        "~ #3 change  same",
        "= #4 fact  ours  (pinned)",
        "and 1 more",
    ]
    assert done[0] == "memories that were changed: 1 created, 2 revised, 1 deleted"
    assert done[2] == "+ #9 decision  Use pnpm"


def test_without_a_model_there_is_nothing_to_embed(memd):
    before = memd("status", "--json").json["summaries"]
    ran = memd("reindex", "--embeddings")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("memd: ")
    assert "Ollama" in ran.err
    assert memd("status", "--json").json["summaries"] == before


# ── vacuum ────────────────────────────────────────────────────────────────────────────────────────


MB = 1024 * 1024


def vacuum_report(*dropped, is_dry_run=False, free=0, after=None, note="", **aged):
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


def test_a_vacuum_deletes_no_memory(memd):
    before = memd("status", "--json").json["summaries"]["count"]
    rehearsed = memd("vacuum", "--dry-run")
    assert (rehearsed.status, rehearsed.err) == (0, "")
    assert rehearsed.out.startswith("no old events to shorten\nno unused vectors\n")
    done = memd("vacuum")
    assert (done.status, done.err) == (0, "")
    assert "freed " in done.out
    assert memd("status", "--json").json["summaries"]["count"] == before
    assert memd("search", "login 500", "--project", "all", "--json").json["hits"]


def test_a_dry_run_shows_what_would_be_freed():
    lines = maintenance._format_vacuum(
        vacuum_report(("ollama/m/1/768/aa", 10_000, 15 * MB), is_dry_run=True, free=MB)
    )
    assert list(lines)[1:] == [
        "would drop ollama/m/1/768/aa: 10,000 vectors, 15.0 MB",
        "would free about 16.0 MB of 40.0 MB",
    ]


def test_a_vacuum_names_what_it_dropped_and_freed():
    assert list(maintenance._format_vacuum(vacuum_report(("a\x1bb", 1, 9), after=25 * MB)))[1:] == [
        "dropped ab: 1 vector, 9 B",
        "freed 15.0 MB: 40.0 MB → 25.0 MB",
    ]
    lines = list(
        maintenance._format_vacuum(vacuum_report(after=41 * MB, note="postponed: no model"))
    )
    assert lines[2:] == ["postponed: no model", "freed 0 B: 40.0 MB → 41.0 MB"]


def test_old_events_and_memories_come_first_and_count_as_freed():
    lines = maintenance._format_vacuum(
        vacuum_report(is_dry_run=True, compacted=1_200, bytes=3 * MB, expired=1, archived=2)
    )
    assert list(lines) == [
        "would shorten 1,200 events older than 90 days to what is cited: 3.0 MB",
        "would drop 1 memory that expired long ago",
        "would hide 2 memories that no answer has ever returned",
        "no unused vectors",
        "would free about 3.0 MB of 40.0 MB",
    ]
    assert next(maintenance._format_vacuum(vacuum_report(expired=1, after=MB))).startswith(
        "dropped 1 memory"
    )
