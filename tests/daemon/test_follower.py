"""A live session's transcript gives what its hooks do not deliver, once, and nothing that must not be heard."""

import json
import os
import random

import anyio
import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig
from memd.daemon import follower as follower_module
from memd.daemon.follower import TranscriptFollower
from memd.store import events, ledger, projects
from memd.store.projects import SESSION_SCOPE
from memd.transfer import parse_time_ms
from tests.transfer import told_sessions as told
from tests.transfer.test_readers_survive import damage_lines

START = 1_800_000_000_000
SECRET = "AKIAIOSFODNN7EXAMPLE"


class Session:
    """A session that writes its transcript and calls its hooks."""

    def __init__(self, ingestor, path):
        self.ingestor = ingestor
        self.path = path
        self.at = START
        self.lines = 0

    def write(self, kind, content, prompt="p1", **fields):
        self.at += 1_000
        self.lines += 1
        seconds, ms = divmod(self.at, 1_000)
        line = {
            "type": kind, "sessionId": "s", "cwd": "/home/dev/ledger", "uuid": f"u{self.lines}",
            "timestamp": f"{_utc(seconds)}.{ms:03}Z", "message": {"content": content}, **fields,
        } | ({"promptId": prompt} if kind == "user" and prompt else {})  # fmt: skip
        assert parse_time_ms(line["timestamp"]) == self.at
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def says(self, words, **fields):
        self.write("assistant", [{"type": "text", "text": words}], **fields)

    def calls(self, use, command):
        given = {"command": command}
        self.write("assistant", [{"type": "tool_use", "id": use, "name": "Bash", "input": given}])

    def refuses(self, use, words, prompt="p1"):
        text = (
            f"The user doesn't want to proceed. To tell you how to proceed, the user said:\n{words}"
        )
        block = {"type": "tool_result", "tool_use_id": use, "content": text, "is_error": True}
        self.write("user", [block], prompt)

    async def hook(self, name, turn="p1", **fields):
        self.at += 10
        payload = {
            "session_id": "s", "hook_event_name": name, "transcript_path": str(self.path),
            "cwd": "/home/dev/ledger", **fields,
        } | ({"prompt_id": turn} if turn else {})  # fmt: skip
        request = CaptureRequest("claude-code", payload, self.at, "/home/dev/ledger")
        (receipt,) = await self.ingestor.capture([request])
        return receipt.outcome

    async def turn(self, words="Fix it", prompt="p1", before="I look at the cache."):
        """A prompt, a text in the middle, a refused call and an answer, as hooks and in the file."""
        self.write("user", words, prompt)
        await self.hook("UserPromptSubmit", prompt, prompt=words)
        self.says(before)
        self.calls(f"toolu_{prompt}", "rm -r cache")
        self.refuses(f"toolu_{prompt}", f"no, keep it ({prompt})", prompt)
        self.says(f"Kept ({prompt}).")
        await self.hook("Stop", prompt, last_assistant_message=f"Kept ({prompt}).")


def _utc(seconds):
    import datetime as dt  # noqa: PLC0415  # for this alone

    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")


@pytest.fixture
def make(db, clock, tmp_path, monkeypatch):
    """Makes a follower, with an ingestor that tells it of events."""
    monkeypatch.setattr(follower_module, "SECOND_READ_S", 0.01)

    def made():
        ingestor = Ingestor(
            db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None,
            on_boundary=lambda *told: made.is_read.append(one.notice(*told)),
        )  # fmt: skip
        one = TranscriptFollower(db, ingestor.capture, str(tmp_path / "state.json"), lambda: None)
        return one, ingestor

    made.is_read = []
    return made


@pytest.fixture
def session(make, tmp_path):
    one, ingestor = make()
    session = Session(ingestor, tmp_path / "s.jsonl")
    session.follower = one
    return session


async def settle(follower):
    """Run the follower until nothing is due."""
    async with anyio.create_task_group() as group:
        group.start_soon(follower.run)
        with anyio.fail_after(20):
            while follower.status()["due"]:  # noqa: ASYNC110  # the condition has no event
                await anyio.sleep(0.002)
        group.cancel_scope.cancel()


async def said(db):
    """The texts and refusals that are stored."""
    found = await db.read(lambda tx: events.events_by_ids(tx, range(1, 500)))
    payloads = [found[number].payload for number in sorted(found)]
    return [p.get("text") or p.get("said") for p in payloads if "text" in p or "said" in p]


async def test_what_hooks_do_not_deliver_is_read_and_the_rest_is_no_second_row(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    await settle(session.follower)
    assert await said(db) == ["I look at the cache.", "no, keep it (p1)"]
    found = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 99)))).values()
    assert sorted(event.name for event in found) == [
        "AgentText", "SessionStart", "Stop", "ToolRefused", "UserPromptSubmit",
    ]  # fmt: skip
    assert {event.turn for event in found if event.name != "SessionStart"} == {"p1"}
    totals = await db.read(ledger.balance)
    assert totals["received"] == totals["stored"] + totals["duplicate"]


async def test_it_says_whether_a_turn_that_has_ended_waits_for_its_transcript(make, session):
    await session.hook("UserPromptSubmit", "p1", prompt="Fix it")
    await session.hook("Stop", "p1", last_assistant_message="Fixed.")
    assert make.is_read[-2:] == [True, True]
    await session.hook(
        "Stop", "p2", last_assistant_message="Done.", transcript_path="", session_id="t"
    )
    assert make.is_read[-1] is False


async def test_a_transcript_that_is_written_after_the_hooks_is_read_the_second_time(
    db, session, monkeypatch
):
    monkeypatch.setattr(follower_module, "SECOND_READ_S", 3_600)
    await session.hook("SessionStart", None, source="startup")
    await session.hook("UserPromptSubmit", "p1", prompt="Fix it")
    await session.hook("Stop", "p1", last_assistant_message="Fixed.")
    (one,) = session.follower._followed.values()
    async with anyio.create_task_group() as group:
        group.start_soon(session.follower.run)
        with anyio.fail_after(20):
            while len(one.due) > 1:  # noqa: ASYNC110  # the condition has no event
                await anyio.sleep(0.002)
        group.cancel_scope.cancel()
    session.write("user", "Fix it", "p1")
    session.says("I look at the cache.")
    session.says("Fixed.")
    assert len(one.due) == 1, "the second time is still to come"
    one.due = [0.0]
    await settle(session.follower)
    assert await said(db) == ["I look at the cache."]


async def test_a_summary_that_the_client_writes_of_a_turn_is_stored_with_that_turn(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    named = {"type": "summary", "summary": "Keeping the cache", "leafUuid": f"u{session.lines}"}
    with session.path.open("a") as file:
        file.write(json.dumps(named) + "\n")
    await settle(session.follower)
    found = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 99)))).values()
    (title,) = [event for event in found if event.name == "SessionTitle"]
    assert (title.turn, title.payload["title"]) == ("p1", "Keeping the cache")


async def test_only_what_is_new_is_read_and_half_a_line_waits_for_its_end(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    await settle(session.follower)
    offset = session.follower._followed["s"].offset
    assert offset == session.path.stat().st_size
    session.says("Half of it.")
    whole = session.path.read_bytes()
    session.path.write_bytes(whole[:-9])
    await session.hook("UserPromptSubmit", "p2", prompt="Go on")
    await settle(session.follower)
    assert session.follower._followed["s"].offset == offset
    session.path.write_bytes(whole)
    session.calls("toolu_x", "make")
    await session.hook("Stop", "p2", last_assistant_message="Done.")
    await settle(session.follower)
    assert "Half of it." in await said(db)


async def test_the_last_lines_are_read_although_they_are_written_behind_the_last_hook(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    await session.hook("SessionEnd", None, reason="exit")
    session.says("One more thing.")
    session.calls("toolu_y", "make")
    await settle(session.follower)
    assert "One more thing." in await said(db)


async def test_a_restarted_daemon_goes_on_with_the_turn_that_it_left(db, session, make):
    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    await session.turn("Next", "p2", before="The second text.")
    await settle(session.follower)
    session.says("While no daemon ran.")
    session.follower, session.ingestor = make()
    session.calls("toolu_z", "make")
    await session.hook("Stop", "p2", last_assistant_message="Done.")
    await settle(session.follower)
    assert session.follower._followed["s"].position.offset > 0
    assert (await said(db))[2:] == [
        "The second text.", "no, keep it (p2)", "Kept (p2).", "While no daemon ran.",
    ]  # fmt: skip


async def test_nothing_from_before_memd_heard_of_the_session_is_read(db, session):
    session.write("user", "Old", "p0")
    session.says("An old text.")
    session.calls("toolu_0", "make")
    await session.hook("SessionStart", None, source="resume")
    await session.turn()
    await settle(session.follower)
    assert await said(db) == ["I look at the cache.", "no, keep it (p1)"]


async def test_nothing_from_while_the_session_was_switched_off_is_read(db, session, make):
    def switch(*, on):
        return db.write(
            lambda tx: projects.put_switch(tx, SESSION_SCOPE, "s", captures=on, recalls=on, now=1)
        )

    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    await settle(session.follower)
    await switch(on=False)
    await session.turn("Hush", "p2", before="A secret plan.")
    await settle(session.follower)
    await switch(on=True)
    session.follower, session.ingestor = make()
    await session.turn("Again", "p3", before="In the open.")
    await settle(session.follower)
    assert await said(db) == [
        "I look at the cache.", "no, keep it (p1)", "In the open.", "no, keep it (p3)",
    ]  # fmt: skip
    stored = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 99)))).values()
    assert not any("p2" in json.dumps(dict(event.payload)) for event in stored)


async def test_private_words_and_secrets_are_not_stored(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn("<private>Hush</private>", "p1", before="A private answer.")
    await session.turn("Use it", "p2", before=f"The key is {SECRET}. <private>And this.</private>")
    await settle(session.follower)
    (text, _) = await said(db)
    assert text.startswith("The key is")
    assert SECRET not in text
    assert "And this" not in text


async def test_a_client_that_names_no_prompt_has_no_prompt_or_answer_twice(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn(prompt="")
    await session.turn("Again", prompt="")
    await session.hook("SessionEnd", None, reason="exit")
    await settle(session.follower)
    found = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 99)))).values()
    names = [event.name for event in found]
    assert (names.count("UserPromptSubmit"), names.count("Stop")) == (2, 2)
    assert (names.count("AgentText"), names.count("ToolRefused")) == (2, 1)


@pytest.mark.parametrize("odd", ["absent", "link", "pipe", "directory", "garbage", "relative"])
async def test_an_absent_or_odd_file_is_no_error(db, session, tmp_path, odd):
    real = tmp_path / "elsewhere.jsonl"
    session.path, target = real, session.path
    session.says("From elsewhere.")
    session.calls("toolu_e", "make")
    if odd == "link":
        target.symlink_to(real)
    elif odd == "pipe":
        os.mkfifo(target)
    elif odd == "directory":
        target.mkdir()
    elif odd == "garbage":
        target.write_bytes(b"\xff{[\n" * 50 + b"null\n7\n")
    session.path = "elsewhere.jsonl" if odd == "relative" else target
    await session.hook("SessionStart", None, source="startup")
    assert await session.hook("Stop", last_assistant_message="Done.") == "stored"
    await settle(session.follower)
    assert await said(db) == []
    assert session.follower.status()["last_error"] is None


async def test_a_long_file_is_read_in_parts_and_a_line_beyond_all_bounds_is_left_out(
    db, session, monkeypatch
):
    monkeypatch.setattr(follower_module, "READ_BYTES_MAX", 2_000)
    monkeypatch.setattr(follower_module, "LINE_BYTES_MAX", 4_000)
    await session.hook("SessionStart", None, source="startup")
    session.write("user", "Go", "p1")
    for number in range(20):
        session.says(f"Step {number} " + "x" * 300)
    session.says("y" * 9_000)
    session.says("z" * 3_000)
    session.says("Last.")
    session.calls("toolu_l", "make")
    await session.hook("Stop", last_assistant_message="Done.")
    await settle(session.follower)
    texts = await said(db)
    assert [text.split()[0] for text in texts[:20]] == ["Step"] * 20
    assert [text[:5] for text in texts[20:]] == ["zzzzz", "Last."]


async def test_lines_that_are_unknown_or_say_no_time_misdate_nothing_and_are_counted(
    db, session, monkeypatch, caplog
):
    monkeypatch.setattr(follower_module, "READ_BYTES_MAX", 2_000)
    monkeypatch.setattr(follower_module, "LINE_BYTES_MAX", 4_000)
    await session.hook("SessionStart", None, source="startup")
    about = {"type": "custom-title", "customTitle": "The cache", "sessionId": "s"}
    odd = [about, {"type": "zz-new", "sessionId": "s"}, [], {"type": "mode", "sessionId": "s"}]
    untimed = {
        "type": "assistant", "sessionId": "s", "uuid": "u0",
        "message": {"content": [{"type": "text", "text": "Before any time."}], "stop_reason": "tool_use"},
    }  # fmt: skip
    with session.path.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in [*odd, untimed]))
        file.write("{" + "z" * 9_000 + "\n")
    session.write("user", "Go", "p1")
    with session.path.open("a") as file:
        absurd = json.dumps(untimed | {"uuid": "u00", "timestamp": "1970-01-01T00:00:00Z"})
        file.write(absurd.replace("Before any time.", "Absurd.") + "\n")
    session.calls("toolu_a", "make")
    await session.hook("Stop", last_assistant_message="Done.")
    await settle(session.follower)
    found = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 99)))).values()
    texts = {event.payload.get("text"): event.at for event in found if event.name == "AgentText"}
    assert set(texts) == {"Before any time.", "Absurd."}
    assert all(START < at < session.at for at in texts.values())
    assert {event.payload["title"] for event in found if event.name == "SessionTitle"} <= {"The cache"}  # fmt: skip
    *_, line = [one.getMessage() for one in caplog.records if "not_understood" in one.getMessage()]
    counted = {"unknown line zz-new": 1, "not an object": 1, "line too long": 1, "a time that cannot be": 1}  # fmt: skip
    assert json.loads(line)["lines"] == counted


@pytest.mark.parametrize("client", ["claude-code", "codex", "copilot"])
async def test_no_damaged_line_stops_it_or_moves_an_event_in_time(client, db, make, tmp_path):
    for seed in range(12):
        ((name, text),) = told.TOLD_WHOLE[client]()
        path = tmp_path / str(seed) / name
        path.parent.mkdir(parents=True)
        chance = random.Random(seed)  # noqa: S311  # no secret
        path.write_bytes(damage_lines(text.encode(), chance))
        follower, ingestor = make()
        session = {"claude-code": "c-1", "copilot": path.parent.name}.get(client, name[-42:-6])
        for hook, at, fields in (
            ("SessionStart", told.START - 1, {"source": "startup"}),
            ("UserPromptSubmit", told.START, {"prompt": told.ASKED}),
            ("SessionEnd", told.at(12), {"reason": "exit"}),
        ):
            payload = {
                "session_id": session, "hook_event_name": hook, "transcript_path": str(path),
                "cwd": told.DIRECTORY, "timestamp": at, **fields,
            }  # fmt: skip
            await ingestor.capture([CaptureRequest(client, payload, at, told.DIRECTORY)])
        await settle(follower)
        assert follower.status()["last_error"] is None
    found = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 999)))).values()
    read = [event for event in found if event.source == "transcript"]
    assert len(read) > 5
    assert [event for event in read if not told.START <= event.at <= told.at(12)] == []
    places = await db.read(lambda tx: [project.key for project in projects.projects(tx)])
    assert places == [told.DIRECTORY]


async def test_a_file_that_was_replaced_is_read_from_its_beginning(db, session):
    await session.hook("SessionStart", None, source="startup")
    await session.turn()
    await settle(session.follower)
    session.path.unlink()
    session.write("user", "Anew", "p2")
    session.says("A new text.")
    session.calls("toolu_n", "make")
    await session.hook("Stop", "p2", last_assistant_message="Done.")
    await settle(session.follower)
    assert (await said(db))[-1] == "A new text."


async def test_a_broken_state_file_is_no_state(make, tmp_path):
    for content in ("", "[]", '{"s": [1]}', '{"s": "x"}', "{"):
        (tmp_path / "state.json").write_text(content)
        one, _ = make()
        assert one._states == {}


async def test_what_another_clients_hooks_leave_out_is_read_in_its_file(db, make, tmp_path):
    """Copilot names its file when it stops, and its answer only there. Lines and payloads of 1.0.102."""
    follower, ingestor = make()
    path = tmp_path / "c-1" / "events.jsonl"
    path.parent.mkdir()
    ran = {"toolCallId": "call_1", "toolName": "bash", "arguments": {"command": "make"}}
    lines = [
        ("session.start", 1, {"sessionId": "c-1", "context": {"cwd": "/home/dev/ledger"}}),
        ("user.message", 2, {"content": "Build it."}),
        ("tool.execution_start", 3, ran),
        ("tool.execution_complete", 4, {
            "toolCallId": "call_1", "success": True, "shellExecution": {"exitCode": 0},
            "result": {"content": "built\n<shellId: 0 completed with exit code 0>"},
        }),
        ("assistant.message", 5, {"messageId": "m", "content": "It is built.", "toolRequests": []}),
        ("assistant.turn_end", 5, {"turnId": "1"}),
    ]  # fmt: skip
    path.write_text("".join(
        json.dumps({"type": kind, "id": f"i{n}", "timestamp": f"{_utc(1_800_000_000 + at)}.000Z", "data": data}) + "\n"
        for n, (kind, at, data) in enumerate(lines)
    ))  # fmt: skip
    base = {"session_id": "c-1", "cwd": "/home/dev/ledger"}
    text = {"result_type": "success", "text_result_for_llm": lines[3][2]["result"]["content"]}
    for at, name, fields in (
        (1, "SessionStart", {"source": "new"}), (2, "UserPromptSubmit", {"prompt": "Build it."}),
        (4, "PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_result": text}),
        (6, "Stop", {"transcript_path": str(path)}),
    ):  # fmt: skip
        when = 1_800_000_000_000 + at * 1_000
        payload = (
            base | {"hook_event_name": name, "timestamp": f"{_utc(when // 1000)}.000Z"} | fields
        )
        await ingestor.capture([CaptureRequest("copilot", payload, when)])
    await settle(follower)
    found = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 99)))).values()
    names = sorted(event.name for event in found)
    assert names == ["PostToolUse", "SessionStart", "Stop", "Stop", "UserPromptSubmit"]
    answers = [event.payload.get("last_assistant_message") for event in found]
    assert list(filter(None, answers)) == ["It is built."]
