import re

import pytest

from memd.cli import edit

FACT = ("--kind", "fact", "--project", "global")

# ── remember ──────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_can_be_searched_at_once(memd, noted):
    number = noted("deploys happen from the harbour branch", *FACT)
    hits = memd("search", "harbour branch deploys", "--project", "all", "--json").json["hits"]
    assert hits[0]["id"] == number
    assert hits[0]["kind"] == "fact"


def test_words_need_no_quotes(memd):
    ran = memd("remember", "the", "harbour", "is", "closed", "--project", "global")
    number, title = ran.out.splitlines()
    assert number.endswith("remembered in global")
    assert title == "    the harbour is closed"
    memd("forget", "--yes", number.split()[0])


def pipe(served, *arguments, stdin):
    """Run a command as a process with these bytes as stdin."""
    return served.run_forked(arguments, stdin)


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (b"the pier is shut\n", "the pier is shut"),
        ("\ufeffdie Straße ist naß".encode(), "die Straße ist naß"),
        (b"two lines\r\nof it\n", "two lines"),
        (b"- a list begins so", "- a list begins so"),
        (b"x" * 64 * 1024, "x"),
    ],
)
def test_a_text_is_read_from_stdin(served, memd, given, title):
    ran = pipe(served, "remember", "-", "--project", "global", "--json", stdin=given)
    assert (ran.status, ran.err) == (0, "")
    number = ran.json["id"]
    (memory,) = memd("get", number, "--json").json["memories"]
    assert memory["title"].startswith(title)
    assert memory["body"].strip() == given.decode("utf-8-sig").strip()
    memd("forget", "--yes", number)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (b"", "memd: stdin is empty; nothing was remembered\n"),
        (b" \n\t\n", "memd: stdin is empty; nothing was remembered\n"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "memd: stdin is no text in UTF-8; nothing was remembered\n"),
        (b"abc\0def", "memd: stdin is no text in UTF-8; nothing was remembered\n"),
        ("hello".encode("utf-16"), "memd: stdin is no text in UTF-8; nothing was remembered\n"),
        (b"x" * (64 * 1024 + 1), "memd: stdin is longer than 64 KiB; keep what matters, or split it\n"),
    ],
)  # fmt: skip
def test_a_stdin_that_is_no_statement_is_refused(served, given, error):
    ran = pipe(served, "remember", "-", stdin=given)
    assert (ran.status, ran.out, ran.err) == (1, "", error)


def test_without_a_text_remember_says_how_to_give_one(served):
    ran = pipe(served, "remember", stdin=b"piped, but not asked for")
    assert (ran.status, ran.out) == (1, "")
    assert "| memd remember -`" in ran.err


# ── forget ────────────────────────────────────────────────────────────────────────────────────────


def test_without_yes_forget_erases_nothing(memd, noted):
    number = noted("the secret handshake", "--project", "global")
    ran = memd("forget", number)
    assert ran.status == 1
    assert f"would forget #{number}" in ran.out
    assert "--yes" in ran.err
    assert memd("get", number).status == 0


def test_with_yes_forget_erases(memd):
    number = memd("remember", "a passing thought", "--project", "global", "--json").json["id"]
    ran = memd("forget", f"#{number}", "--yes")
    assert ran.status == 0
    assert ran.out.startswith(f"forgot #{number} ")
    assert memd("get", number).status == 1


def test_the_plan_of_forget_as_json(memd, noted):
    number = noted("planned", "--project", "global")
    plan = memd("forget", number, "--json").json
    assert plan["is_dry_run"]
    assert [one["id"] for one in plan["summaries"]] == [number]


def test_forget_query_needs_all_words(memd, noted):
    number = noted("a quetzal nests in the attic", "--project", "global")
    noted("a quetzal flies", "--project", "global")
    everywhere = ("--project", "all")
    ran = memd("forget", "--query", "quetzal NESTS", "--dry-run", *everywhere)
    assert (ran.status, ran.out.count("would forget")) == (0, 1)
    assert re.search(rf"would forget #{number} .*  \[global\]\n", ran.out)
    assert memd("forget", "--query", "quetzal nests", "--yes", *everywhere).status == 0
    assert memd("get", number).status == 1


@pytest.mark.parametrize("option", [(), ("--yes",), ("--dry-run",), ("--json",)])
def test_forgetting_nothing_is_no_error(memd, option):
    ran = memd("forget", "--query", "a bandersnatch frumious", "--project", "all", *option)
    assert (ran.status, ran.err) == (0, "")
    assert "--json" in option or ran.out == "nothing found\n"


def test_forget_query_looks_in_this_project_unless_all_are_named(
    memd, noted, monkeypatch, tmp_path
):
    for name in ("heath", "moor"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        noted(f"the {name} has a whimbrel")
    ran = memd("forget", "--query", "whimbrel", "--dry-run")
    assert ("the moor has" in ran.out, "the heath has" in ran.out) == (True, False)
    assert "[" not in ran.out
    ran = memd("forget", "--since", "2020-01-01", "--dry-run")
    assert "the heath has" not in ran.out
    ran = memd("forget", "--query", "the heath", "--dry-run")
    assert ran.out == "nothing found in this project; --project all looks everywhere\n"
    ran = memd("forget", "--query", "whimbrel", "--dry-run", "--project", "all")
    assert "the heath has a whimbrel  [heath]\n" in ran.out
    assert "the moor has a whimbrel\n" in ran.out


def test_forget_query_in_an_unknown_project_says_how_to_name_all(memd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ran = memd("forget", "--query", "whimbrel")
    assert ran.status == 1
    assert "say another, or all for every one" in ran.err


def test_forget_does_not_erase_everything(memd):
    for words in ([], ["--project", "all"], ["1", "--query", "x"]):
        ran = memd("forget", "--yes", *words)
        assert (ran.status, ran.err.count("\n")) == (1, 1)


WAITS = (
    "the last copy of it goes when python3 (pid 12) ends, which reads the vault; memd waits for that,"
    " also after a restart"
)


def report_of(**more):
    """A report of `memd/forget`."""
    lists = (
        "summaries ids event_ids event_excerpts sessions revived also_in uncited unknown backups"
        " imported_files leftovers"
    )
    empty = {name: [] for name in lists.split()}
    return {
        **empty, "is_dry_run": True, "count": 0, "events": 0, "kept_events": 0, "token": "", "pending": "",
        "rows": {}, "lines": {}, "attached": {}, "stays": {}, **more,
    }  # fmt: skip


def test_a_long_erasure_is_shortened():
    report = report_of(
        count=300,
        ids=[*range(300)],
        kept_events=2,
        sessions=["a", "b"],
        revived=list(range(30)),
        also_in=[4],
    )
    lines = list(edit._format_erasure(report))
    assert lines[0] == "would forget 300 more, 300 memories in all"
    assert "would forget all of the session “a”" in lines
    assert "2 events stay: other memories come from them" in lines
    assert "… and 10 more" in lines
    lines = edit._format_erasure({**report, "kept_events": 1})
    assert "1 event stays: other memories come from it" in list(lines)


def test_every_kind_of_row_of_an_erasure_is_named():
    excerpt = {"id": 7, "tool": "Bash", "kind": "tool_result", "text": "ls"}
    report = report_of(
        events=2, event_ids=[7, 8], event_excerpts=[excerpt], rows={"judgments": [3, 4], "titles": [9]},
        lines={"log": 2, "spool": 1}, imported_files=["/a"], attached={"edges": 3, "cues": 4, "forms": 1, "uses": 1},
        leftovers=["/b/default.1.partial"], stays={"projects.key": 1}, uncited=[5],
        backups=["/b/one.memd", "/c/all.jsonl"], pending="python3 (pid 12)",
    )  # fmt: skip
    assert list(edit._format_erasure(report)) == [
        "would forget 2 events that no other memory needs",
        "  event 7, Bash: ls",
        "would forget the words in 2 judgments",
        "would forget the words in 1 session title",
        "would forget that 1 file with this name was imported",
        "would forget 2 lines of the log",
        "would forget 1 line of the spool",
        "with it go 9 links, records of use and entries of the index",
        "would forget /b/default.1.partial, which was never finished",
        "#5 stays, without an event that it comes from",
        "1 in projects.key stays: it is a name; use --project or --session",
        "/b/one.memd is a backup and may still contain it",
        "/c/all.jsonl is an export and may still contain it",
        WAITS,
    ]


# ── scrub ─────────────────────────────────────────────────────────────────────────────────────────


def test_with_yes_scrub_replaces(memd, noted):
    number = noted("the okapi sleeps", "--project", "global")
    assert memd("scrub", "okap[i]", "--yes").status == 0
    assert "the [REDACTED:scrub] sleeps" in memd("get", number).out
    assert memd("scrub", "okap[i]", "--dry-run").out == "nothing found\n"


@pytest.mark.parametrize("words", [[], ["(", "--dry-run"], ["x*", "--yes"], ["a", "--secrets"]])
def test_an_invalid_scrub_is_refused_on_one_line(memd, words):
    ran = memd("scrub", *words)
    assert (ran.status, ran.err.count("\n")) == (1, 1)


def test_a_scrub_lists_tables_and_backups():
    report = {
        "is_dry_run": False, "rows": {"log": 2, "events": 11, "summaries": 3},
        "ids": {"events": [1, 2], "summaries": [4, 5]}, "found": {"[REDACTED:scrub]": 1}, "stays": {"projects.key": 1}, "backups": ["/b/one.memd"],
        "pending": "",
    }  # fmt: skip
    assert list(edit._format_scrub(report)) == [
        "rewrote 2 log lines",
        "rewrote 11 events",
        "rewrote 3 memories: #4, #5, …",
        "1 place became [REDACTED:scrub]",
        "1 in projects.key cannot be rewritten, because they are keys; use `memd forget`",
        "/b/one.memd is a backup and may still contain it",
    ]


# ── pin ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_is_pinned_and_unpinned(memd, noted):
    number = noted("always say please", "--project", "global")
    assert "(pinned)" in memd("pin", number).out
    assert "(pinned)" not in memd("pin", f"#{number}", "--off").out


def test_pinning_a_hidden_memory_says_how_to_show_it(memd, noted):
    old = noted("meet at noon", "--topic-key", "meet.at", "--project", "global")
    new = noted("meet at one", "--topic-key", "meet.at", "--project", "global")
    ran = memd("pin", old)
    assert ran.out.endswith(
        f"\n  it stays hidden by #{new}; to show it again: memd judge {new} {old} --undo\n"
    )
    assert memd("judge", new, old, "--undo").out.endswith(f"#{old} is visible again\n")
    assert "stays hidden" not in memd("pin", old, "--off").out


# ── judge ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pair(noted):
    old = noted("the harbour gate is watched by two guards in winter", *FACT)
    return old, noted("the harbour gate is watched by three guards in summer", *FACT)


def test_remembering_something_similar_asks_for_a_judgment(memd, noted):
    old = noted("the ferry to Ushant leaves from pier 4 in the winter months", *FACT)
    ran = memd("remember", "the ferry to Ushant leaves from pier 6 in the summer months", *FACT)
    number = ran.out.split()[0]
    assert f"    #{old} the ferry to Ushant leaves from pier 4 in the winter months" in ran.out
    assert "      number: 4 → 6" in ran.out
    assert f"memd judge {number[1:]} supersedes {old}" in ran.out
    memd("forget", "--yes", number)


def test_a_pinned_memory_must_be_unpinned_before_it_can_be_replaced(memd, noted):
    old = noted("the lamp oil is in barrel 3", *FACT)
    memd("pin", old)
    ran = memd("remember", "the lamp oil is in barrel 5", *FACT)
    number = ran.out.split()[0].removeprefix("#")
    assert ran.out.endswith(
        f"  #{old} is pinned: run memd pin {old} --off first,"
        f" then memd judge {number} supersedes {old}\n"
    )
    memd("forget", "--yes", number)


def test_a_memory_hidden_by_another_one_stays_hidden(memd, noted):
    options = ("--topic-key", "bell.rings", "--project", "global")
    first, second = (noted("the bell rings at 6", *options), noted("the bell rings at 7", *options))
    third = noted("the bell is broken", "--project", "global")
    ran = memd("judge", third, first, "compatible", "--reason", "both may be")
    stays = f"  #{first} stays hidden, superseded by #{second}"
    assert ran.out.splitlines() == [f"#{third} is compatible with #{first}", stays]
    ran = memd("judge", third, first, "--undo")
    assert ran.out.splitlines()[1:] == [stays]


def test_a_superseding_judgment_hides_is_explained_and_undone(memd, pair):
    old, new = pair
    ran = memd("judge", new, f"#{old}", "supersedes", "--reason", "the winter hours")
    assert ran.out.splitlines() == [
        f"#{new} supersedes #{old}",
        f"  #{old} is hidden; `memd why {old}` shows it",
    ]
    assert "already" in memd("judge", new, old, "supersedes", "--reason", "again").out
    why = memd("why", old).out
    assert f"superseded by #{new} (judged)" in why
    assert "\njudged       by the user" in why
    assert "the winter hours" in why
    ran = memd("judge", old, new, "--undo")
    assert ran.out.splitlines() == [
        f"undone: supersedes between #{old} and #{new}",
        f"  #{old} is visible again",
    ]
    why = memd("why", old).out
    assert f"\nonce behind  #{new} fact " in why
    assert "; undone 20" in why
    assert re.search(r"judged +by the user [-\d]+ [\d:]+ \(undone [-\d]+ [\d:]+\): #", why)
    assert f"\nonce hid     #{old} fact " in memd("why", new).out


def test_contradicting_memories_are_both_shown_and_marked(memd, pair):
    old, new = pair
    done = memd("judge", new, old, "contradicts", "--reason", "unclear", "--json").json
    assert (done["outcome"], done["relation"], done["hidden"]) == ("judged", "contradicts", [])
    hits = memd("search", "harbour gate opens", "--project", "all", "--json").json["hits"]
    marks = {hit["id"]: hit["contradicted_by"] for hit in hits if hit["id"] in pair}
    assert marks == {old: [new], new: [old]}
    assert memd("get", old, "--json").json["memories"][0]["contradicted_by"] == [new]
    assert f"contradicted by #{new}" in memd("why", old).out
    text = memd("search", "harbour gate opens", "--project", "all").out
    assert f"(contradicted by the later #{new} (user))" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("12",), "give two memories: `memd judge 12 RELATION OTHER`"),
        (("1", "2"), "give a relation: supersedes, duplicate"),
        (
            ("1", "2", "beats", "--reason", "x"),
            "'beats' is neither an id such as 12 nor a relation: ",
        ),
        (("1", "2", "supersedes", "--undo"), "leave out 'supersedes'"),
        (("1", "x", "supersedes"), "'x supersedes' is neither an id"),
        (("1", "999999", "unrelated", "--reason", "x"), "#999999"),
    ],
)
def test_an_invalid_judgment_is_refused(memd, words, message):
    ran = memd("judge", *words)
    assert ran.status == 1
    assert message in ran.err


def test_an_agent_gives_a_reason_and_a_person_may_leave_it_out(memd, pair, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    ran = memd("judge", pair[1], pair[0], "supersedes")
    assert ran.status == 1
    assert "--reason WHY" in ran.err
    monkeypatch.delenv("CLAUDECODE")
    assert memd("judge", pair[1], pair[0], "supersedes").status == 0
    assert "the user gave no reason" in memd("why", pair[0]).out


def test_judge_without_ids_lists_what_waits_to_be_judged(memd, noted):
    old, new = noted("the cache keeps an hour of answers"), noted("the cache keeps no answers")
    assert memd("judge", str(new), str(old), "contradicts", "--reason", "measured").status == 0
    ran = memd("judge")
    assert ran.status == 0
    assert f"#{old} note (user)" in ran.out
    assert f"if #{old} holds: " in ran.out
    assert f"judge {old} supersedes {new}" in ran.out
    assert [one["id"] for one in memd("judge", "--json").json["pairs"][0]] == [new, old]
    assert memd("judge", str(new), str(old), "compatible", "--reason", "two caches").status == 0
    assert f"#{old}" not in memd("judge").out


@pytest.mark.parametrize(
    ("said", "relation"),
    [
        ("supersedes", "supersedes"),
        ("says the same as", "duplicate"),
        ("is unrelated to", "unrelated"),
        ("Compatible", "compatible"),
        ("replaces", "supersedes"),
        ("is-the-same-as", "duplicate"),
        ("conflicts with", "contradicts"),
    ],
)
def test_a_judgment_is_said_as_one_speaks(memd, pair, said, relation):
    """What memd prints can be typed, too."""
    old, new = pair
    done = memd("judge", new, *said.split(), f"#{old}", "--reason", "measured", "--json").json
    assert (done["id"], done["other"], done["relation"]) == (int(new), int(old), relation)
    assert memd("judge", new, old, "--undo").status == 0


@pytest.mark.parametrize("said", ["replaced-by", "is superseded by", "replaced_by"])
def test_what_is_replaced_may_stand_first(memd, pair, said):
    old, new = pair
    assert memd("judge", old, *said.split(), new).out.startswith(f"#{new} supersedes #{old}\n")


def test_an_error_names_commands_to_a_person(memd, pair):
    ran = memd("judge", *pair, "--undo")
    assert f"#{pair[1]}; `memd why {pair[0]}` says what links them" in ran.err
    assert "mem_" not in ran.err
