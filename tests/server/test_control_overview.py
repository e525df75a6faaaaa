"""What the pages of a viewer ask for: overview, lists, sessions, activity, edits; over the real listener."""

import pytest

from memd.models import Authority, Kind, SessionRef
from memd.store import links, projects, summaries

DAY_MS = 86_400_000


def supersede(server, newer, older):
    server.db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=newer, older_id=older, rule="repeat", cosine=None, guard="", at=1
        )
    )


async def test_an_overview_shows_what_holds_and_counts_what_is_hidden(server, say):
    rule = server.remember("Run the tests first", kind=Kind.INSTRUCTION)
    old = server.remember("We use Redis", kind=Kind.DECISION)
    new = server.remember("We use SQLite", kind=Kind.DECISION)
    failure = server.remember("The build fails", kind=Kind.FAILURE)
    supersede(server, new, old)
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
    supersede(server, task, note)

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
    supersede(server, second, first)
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
