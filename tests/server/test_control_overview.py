"""What the pages of a viewer ask for: overview, lists, sessions, activity, edits; over the real listener."""

import pytest

from memd.models import Authority, EventKind, Kind, SessionRef
from memd.server.control_overview import describe_events, map_texts
from memd.store import events, links, projects, summaries
from tests.factories import make_event, make_new_event, supersede
from tests.tables import every_row

DAY_MS = 86_400_000


async def test_an_overview_shows_what_holds_and_counts_what_is_hidden(server, say):
    rule = server.remember("Run the tests first", kind=Kind.INSTRUCTION)
    old = server.remember("We use Redis", kind=Kind.DECISION)
    new = server.remember("We use SQLite", kind=Kind.DECISION)
    failure = server.remember("The build fails", kind=Kind.FAILURE)
    supersede(server.db, new, old, rule="repeat")
    found = await say("overview")
    assert [one["id"] for one in found["rules"]] == [rule]
    assert [one["id"] for one in found["decisions"]] == [new]
    assert [one["id"] for one in found["failures"]] == [failure]
    assert found["decisions"][0]["speaker"] == "agent"
    (replaced,) = found["replaced"]
    assert (replaced["newer"]["id"], replaced["older"]["id"], replaced["rule"]) == (
        new,
        old,
        "repeat",
    )
    counts = {one["kind"]: (one["memories"], one["superseded"]) for one in found["kinds"]}
    assert counts["decision"] == (2, 1)


async def test_an_overview_of_an_empty_vault_is_empty(say):
    found = await say("overview")
    assert (found["latest"], found["kinds"], found["first_at"]) == ([], [], None)


async def test_a_list_goes_through_all_memories_page_by_page(server, say):
    numbers = [server.remember(f"memory {n}", at=1_000 + n // 2) for n in range(7)]
    seen, cursor = [], None
    while True:
        page = await say("list", limit=3, **({"after": cursor} if cursor else {}))
        seen += [one["id"] for one in page["memories"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == sorted(numbers, reverse=True)


async def test_a_list_is_chosen_by_kind_speaker_time_and_whether_it_holds(server, say):
    note = server.remember("a note", at=5_000)
    task = server.remember("a task", kind=Kind.TASK, at=9_000)
    supersede(server.db, task, note, rule="repeat")

    async def ids(**given):
        return [one["id"] for one in (await say("list", **given))["memories"]]

    assert await ids() == [task]
    assert await ids(include_superseded=True) == [task, note]
    assert await ids(include_superseded=True, kinds=["note"]) == [note]
    assert await ids(include_superseded=True, until=6_000) == [note]
    assert await ids(speaker="user") == []
    assert await ids(speaker="agent") == [task]
    assert await ids(pinned=True) == []


async def test_a_list_shows_one_project_and_what_is_global(server, say):
    here = server.remember("here", project="/a")
    server.remember("there", project="/b")
    everywhere = server.remember("everywhere")
    page = await say("list", project="/a")
    assert {one["id"] for one in page["memories"]} == {here, everywhere}
    assert {one["project"] for one in page["memories"]} == {"/a", "global"}


async def test_sessions_are_listed_newest_first(server, say):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        for number in range(3):
            projects.ensure_session(tx, SessionRef("claude-code", f"s{number}"), project, number)

    server.db.write_now(write)
    first = await say("sessions", limit=2)
    assert [one["key"] for one in first["sessions"]] == ["s2", "s1"]
    assert (first["sessions"][0]["memories"], first["sessions"][0]["shown"]) == (0, 0)
    rest = await say("sessions", limit=2, after=first["next"])
    assert ([one["key"] for one in rest["sessions"]], rest["next"]) == (["s0"], None)


async def test_activity_counts_memories_and_what_they_replaced_a_day(server, say):
    first = server.remember("first", at=DAY_MS + 1)
    second = server.remember("second", at=3 * DAY_MS - 1)
    server.remember("later", at=9 * DAY_MS)
    supersede(server.db, second, first, rule="repeat")
    found = await say("activity", since=DAY_MS, step_ms=DAY_MS, steps=3)
    assert (found["memories"], found["superseded"]) == ([1, 1, 0], [0, 1, 0])
    assert found["events"] == [0, 0, 0]


async def test_a_grid_of_too_many_steps_is_refused(say):
    assert (await say("activity", since=0, step_ms=60_000, steps=10**6)).startswith("steps:")


async def test_projects_can_be_named_without_counting(server, say):
    server.remember("a memory", project="/a")
    (one,) = (await say("projects", counts=False))["projects"]
    assert (one["key"], "memories" in one) == ("/a", False)


async def test_backups_are_listed(say):
    assert await say("backups") == {"backups": []}


# ── Edits ────────────────────────────────────────────────────────────────────────────────────────


async def test_an_edit_is_a_new_version_in_the_users_words_and_keeps_the_old_one(server, say):
    old = server.remember("We use Redis", "We use Redis for sessions", kind=Kind.DECISION, at=5)
    new = (await say("edit", id=old, title="We use SQLite", reason="mistyped"))["id"]
    found = await say("why", id=new)
    memory = found["summary"]
    assert (memory["title"], memory["body"], memory["at"]) == (
        "We use SQLite",
        "We use Redis for sessions",
        5,
    )
    assert (memory["speaker"], found["rule"]) == ("user", "the user wrote it anew by hand")
    (relation,) = found["relations"]
    assert (relation["other"]["id"], relation["supersession"]["rule"]) == (old, "judged")
    assert found["judgments"][0]["judgment"]["reason"] == "edited by hand: mistyped"
    assert any(edge["to_id"] == "/a.py" for edge in found["edges"])


async def test_an_undone_edit_shows_the_old_version_again(server, say):
    old = server.remember("We use Redis")
    new = (await say("edit", id=old, title="We use SQLite"))["id"]
    undone = await say("judge", id=new, other=old, undo=True)
    assert undone["shown"] == [old]
    again = (await say("edit", id=old, title="We use SQLite"))["id"]
    assert again != new


async def test_an_edit_keeps_the_users_pin(server, say):
    old = server.remember("We use Redis")
    await say("pin", id=old)
    new = (await say("edit", id=old, text="We use SQLite"))["id"]
    memory = (await say("get", ids=[new]))["memories"][0]
    assert memory["pinned_by"] == "user"


async def test_an_edit_is_redacted(server, say):
    old = server.remember("The deploy key")
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    new = (await say("edit", id=old, text=f"The deploy key is {secret}"))["id"]
    assert secret not in (await say("get", ids=[new]))["memories"][0]["body"]


async def test_an_edit_that_changes_nothing_or_a_hidden_memory_is_refused(server, say):
    old = server.remember("We use Redis")
    assert "says this already" in await say("edit", id=old, title="We use Redis")
    await say("edit", id=old, title="We use SQLite")
    assert "edit that one" in await say("edit", id=old, title="We use files")
    assert "no memory #99" in await say("edit", id=99, title="x")


async def test_an_agent_may_not_edit(server, connect):
    number = server.remember("We use Redis")
    async with server.open(), connect() as client:
        await client.send({"memd": 1, "speaker": "agent"})
        reply = await client.call("memd/edit", {"id": number, "title": "x"})
    assert "only the user makes it" in reply["error"]["message"]
    memory = server.db.read_now(lambda tx: summaries.get_summary(tx, number))
    assert (memory.superseded_by, memory.authority) == (None, Authority.AGENT_TEXT)


async def test_what_takes_long_to_count_is_counted_once_a_minute(
    server, connect, clock, monkeypatch
):
    monkeypatch.setattr("memd.server.control_overview._SLOW_S", -1.0)
    async with server.open(), connect() as client:

        async def count():
            reply = await client.call("memd/overview")
            return sum(one["memories"] for one in reply["result"]["kinds"])

        server.remember("first")
        assert await count() == 1
        server.remember("second")
        assert await count() == 1
        clock.advance(s=60)
        assert await count() == 2


async def test_a_list_of_a_session_or_of_what_is_pinned(server, say):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        session = projects.ensure_session(tx, SessionRef("claude-code", "s1"), project, 1)
        tx.execute(
            "UPDATE summaries SET session_id = ?, project_id = ? WHERE id = ?",
            (session, project, inside),
        )

    inside, outside = server.remember("inside"), server.remember("outside")
    server.db.write_now(write)
    await say("pin", id=outside)
    assert [one["id"] for one in (await say("list", session="s1"))["memories"]] == [inside]
    assert [one["id"] for one in (await say("list", pinned=True))["memories"]] == [outside]


@pytest.mark.parametrize(("steps", "expected"), [(3, [1, 2, 0]), (200, [3, 0, 0])])
async def test_events_are_counted_when_they_happened_and_over_long_times_where_their_session_began(
    server, say, steps, expected
):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        session = projects.ensure_session(tx, SessionRef("claude-code", "s1"), project, DAY_MS)
        for number, at in enumerate((DAY_MS, 2 * DAY_MS, 2 * DAY_MS + 5)):
            tx.execute(
                "INSERT INTO events (key, session_id, kind, name, at, source, payload)"
                " VALUES (?, ?, 'tool_result', '', ?, 'live', '{}')",
                (str(number), session, at),
            )
        projects.extend_session(tx, session, 2 * DAY_MS + 5, None)

    server.db.write_now(write)
    found = await say("activity", since=DAY_MS, step_ms=DAY_MS, steps=steps)
    assert found["events"][:3] == expected


# ── A session to read ────────────────────────────────────────────────────────────────────────────


def put_session(server, count):
    """A session with this many prompts, each of one second."""

    def write(tx):
        project = projects.ensure_project(tx, "/home/dev/read", "read", "a test", 1)
        session = projects.ensure_session(tx, SessionRef("claude-code", "read-1"), project, 1_000)
        for number in range(count):
            one = make_new_event(at=1_000 * number, turn=f"t{number}", prompt=f"prompt {number}")
            events.append_event(tx, one, session)

    server.db.write_now(write)


async def test_a_session_is_read_page_by_page_in_the_order_of_time(server, say):
    put_session(server, 7)
    seen, cursor = [], None
    while True:
        page = await say(
            "session", session="read-1", limit=3, **({"after": cursor} if cursor else {})
        )
        seen += [one["text"] for one in page["events"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == [f"prompt {number}" for number in range(7)]
    assert (page["project"], page["counts"]["prompt"]) == ("read", 7)


async def test_a_session_tells_its_last_answer_on_every_page(server, say):
    put_session(server, 3)

    def write(tx):
        (session,) = projects.find_sessions(tx, "read-1")
        said = (EventKind.STOP, 10, "first"), (EventKind.STOP, 9_000, "last"), (EventKind.STOP, 9_500, None)  # fmt: skip
        for kind, at, text in said:
            events.append_event(
                tx, make_new_event(kind, at=at, last_assistant_message=text), session.id
            )

    server.db.write_now(write)
    page = await say("session", session="read-1", limit=1)
    assert (page["outcome"]["text"], len(page["events"])) == ("last", 1)


async def test_with_check_secrets_every_text_of_a_session_is_redacted_again(server, say):
    put_session(server, 0)
    secret = "AKIAIOSFODNN7EXAMPLE"

    def write(tx):
        (session,) = projects.find_sessions(tx, "read-1")
        events.append_event(tx, make_new_event(prompt=f"deploy with {secret}"), session.id)

    server.db.write_now(write)
    assert secret in str(await say("session", session="read-1"))
    checked = await say("session", session="read-1", check_secrets=True)
    assert secret not in str(checked)
    assert checked["key"] == "read-1"


@every_row(
    ("event", "told"),
    [
        (make_event(prompt="why?"), {"what": "prompt", "text": "why?", "origin": "user"}),
        (
            make_event(EventKind.STOP, last_assistant_message="Because."),
            {"what": "answer", "text": "Because."},
        ),
        (
            make_event(EventKind.NOTIFICATION, prompt="wake up", prompt_origin="cron"),
            {"what": "prompt", "origin": "cron"},
        ),
        (
            make_event(EventKind.COMPACT_END, compact_summary="So far."),
            {"what": "compaction", "text": "So far."},
        ),
        (
            make_event(
                EventKind.TOOL_FAILURE, tool_input={"command": "make\nmore"}, error="no rule"
            ),
            {"what": "tool", "outcome": "failed", "headline": "make", "output": "no rule"},
        ),
        (
            make_event(EventKind.TOOL_REFUSED, tool_input={"file_path": "/a.py"}, said="not this"),
            {"outcome": "refused", "headline": "/a.py", "output": "not this"},
        ),
        (
            make_event(
                EventKind.TOOL_RESULT,
                tool_input={"command": "ls"},
                tool_response={"stdout": "a", "stderr": "b", "interrupted": False},
            ),
            {"outcome": "done", "input": "command: ls", "output": "a\nb"},
        ),
        (
            make_event(EventKind.TOOL_RESULT, tool_input="odd", tool_response=[1, {"x": "é"}]),
            {"input": "odd", "output": '[\n 1,\n {\n  "x": "é"\n }\n]'},
        ),
    ],
)
def test_each_kind_of_event_is_told_in_words(event, told):
    (described,) = describe_events([event])
    assert {name: described[name] for name in told} == told


def test_a_call_is_told_once_and_what_has_no_words_not_at_all():
    call = make_event(EventKind.TOOL_CALL, id=1, tool_use_id="u1", tool_input={"command": "ls"})
    result = make_event(EventKind.TOOL_RESULT, id=2, tool_use_id="u1", tool_input={"command": "ls"})
    lost = make_event(EventKind.TOOL_CALL, id=3, tool_use_id="u2", tool_input={"command": "rm"})
    silent = make_event(EventKind.STOP, id=4, last_assistant_message=None)
    told = list(describe_events([call, result, lost, silent]))
    assert [(one["id"], one["outcome"]) for one in told] == [(2, "done"), (3, "unanswered")]


def test_of_a_long_text_the_beginning_is_told_and_how_much_is_left():
    (told,) = describe_events([make_event(prompt="a" * 30_000)])
    assert told["text"].endswith("… 10,000 characters more")


def test_texts_are_changed_and_names_of_fields_are_not():
    given = {"key": ["a", {"b": "c"}, 1, None, True]}
    assert map_texts(given, str.upper) == {"key": ["A", {"b": "C"}, 1, None, True]}


async def test_an_overview_counts_what_was_replaced_in_the_last_week(server, say, clock):
    old, new = (server.remember(text, kind=Kind.DECISION) for text in ("We use A", "We use B"))
    server.db.write_now(
        lambda tx: links.supersede(
            tx,
            newer_id=new,
            older_id=old,
            rule="repeat",
            cosine=None,
            guard="",
            at=clock() - DAY_MS,
        )
    )
    (kind,) = (await say("overview"))["kinds"]
    assert (kind["superseded"], kind["lately"]) == (1, 1)
    supersede(server.db, server.remember("We use C", kind=Kind.DECISION), new, rule="repeat")
    (kind,) = (await say("overview"))["kinds"]
    assert (kind["superseded"], kind["lately"]) == (2, 1)
