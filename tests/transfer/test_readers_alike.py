"""One session, kept by each client in its own form, becomes the same memories; and what hooks told already, no second event."""

import json

import anyio.to_thread
import pytest

from memd.capture import truncate
from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig, DistillConfig
from memd.distill.distiller import Distiller
from memd.store import summaries
from memd.transfer.importer import TranscriptImportReport, import_transcripts
from memd.transfer.session_sources import SESSION_SOURCES, find_sessions
from tests.transfer import told_sessions as told

MUCH_LATER = told.START + 30 * 86_400_000


def read_files(source, folder, now=MUCH_LATER):
    """Return the events that an import of a folder would send, and its report."""
    events = []

    def send(batch):
        events.extend(json.loads(json.dumps(batch)))
        return [{"outcome": "stored"} for _ in batch]

    report = TranscriptImportReport()
    found = find_sessions(SESSION_SOURCES[source], [str(folder)], {})
    import_transcripts(
        found, send, {}, lambda *_: None, truncate=truncate.clean_payload, report=report, now=now,
        source=SESSION_SOURCES[source],
    )  # fmt: skip
    return events, report


async def store(db, clock, tmp_path, events):
    """Capture events; return the outcomes."""
    clock.now = MUCH_LATER
    ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
    receipts = await ingestor.capture([CaptureRequest(**event) for event in events])
    return [receipt.outcome for receipt in receipts]


async def distil(db, clock, tmp_path, events):
    """Return the memories of these events: (kind, title, body)."""
    assert set(await store(db, clock, tmp_path, events)) == {"stored"}
    assert set(await store(db, clock, tmp_path, events)) == {"duplicate"}  # another import
    await Distiller(db, DistillConfig(), clock, lambda: None).settle(10_000_000)

    def read(tx):
        made = summaries.summaries_by_ids(tx, range(1, 100)).values()
        return sorted((one.kind.value, one.title, one.body) for one in made)

    return await db.read(read)


FAILURE = "FAILED tests/test_retry.py::test_once - AssertionError: assert 0 == 1"
FAILED = "test test_once failed: AssertionError: assert 0 == 1 (tests/test_retry.py)"
CHANGED = f"Changed src/retry.py:\n- {told.OLD.strip()}\n+ {told.NEW.strip()}"
RULE = "Always use ruff for linting, never flake8"
CHOSEN = [
    ("discovery", f"{told.CHOICE.rstrip('.')}: {told.AGREED.rstrip('.')}",
     f"Asked: {told.CHOICE}\nAnswered: {told.AGREED}"),
]  # fmt: skip
RULES = [("instruction", RULE, "User: “From now on always use ruff for linting, never flake8.”")]
MEMORIES = [
    *CHOSEN,
    ("failure", FAILED,
     f"`{told.COMMAND}` failed: {FAILURE}\nWhile: check.py fails: find out why and fix it\nMended by: changed src/retry.py"),
    ("fix", told.ANSWER.rstrip("."),
     (f"Asked: {told.ASKED}\nError: {FAILURE}\nSaid of it: {told.CAUSE}\nFix: changed src/retry.py\nThen `{told.COMMAND}` passed.\n{CHANGED}\n"
      f"Answered: {told.ANSWER}\nFiles: src/retry.py")),
    *RULES,
]  # fmt: skip


async def read_memories(teller, source, db, clock, tmp_path):
    told.write(tmp_path / "files", teller())
    events, report = await anyio.to_thread.run_sync(read_files, source, tmp_path / "files")
    assert not report.failed
    assert {event["client"] for event in events} == {source}
    return await distil(db, clock, tmp_path, events)


@pytest.mark.parametrize("name", [*told.TOLD_WHOLE, "gemini-cli as a document"])
async def test_every_client_keeps_the_same_session(name, db, clock, tmp_path):
    source = name.partition(" ")[0]
    teller = told.gemini_document if source != name else told.TOLD_WHOLE[name]
    memories = await read_memories(teller, source, db, clock, tmp_path)
    assert memories == MEMORIES


@pytest.mark.parametrize("name", told.TOLD_IN_PART)
async def test_a_client_that_keeps_no_results_tells_the_rest_and_proves_nothing(
    name, db, clock, tmp_path
):
    memories = await read_memories(told.TOLD_IN_PART[name], name, db, clock, tmp_path)
    (change, *others) = memories
    assert change[0] == "change"
    assert change[2].endswith("Files: src/retry.py")
    assert [one[0] for one in others] == [one[0] for one in (*CHOSEN, *RULES)]


def hooks_of_codex(session):
    """What Codex's hooks told of the session, as recorded from 0.169.0; the exit codes are read from its rollout."""
    one, two = "0199e0a1-1111-7000-8000-000000000001", "0199e0a1-2222-7000-8000-000000000002"

    def said(step, turn, name, **fields):
        base = {"session_id": session, "turn_id": turn, "cwd": told.DIRECTORY, "model": "m", "permission_mode": "default"}  # fmt: skip
        return told.at(step), base | {"hook_event_name": name} | fields

    def used(step, number, tool, given, response, **fields):
        return said(step, one, "PostToolUse", tool_name=tool, tool_input={"command": given}, tool_response=response, tool_use_id=f"call_{number}", **fields)  # fmt: skip

    return [
        said(0, one, "UserPromptSubmit", prompt=told.ASKED),
        used(3, 2, "Bash", told.COMMAND, told.FAILED, exit_code=1),
        used(6, 5, "apply_patch", told.PATCH, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."),
        used(8, 7, "Bash", told.COMMAND, told.PASSED, exit_code=0),
        said(9, one, "Stop", stop_hook_active=False, last_assistant_message=told.ANSWER),
        said(10, two, "UserPromptSubmit", prompt=told.CHOICE),
        said(11, two, "Stop", stop_hook_active=False, last_assistant_message=told.AGREED),
    ]  # fmt: skip


def hooks_of_copilot(session):
    """What Copilot's hooks told of the session, as recorded from 1.0.102: no ids, and no words at a stop."""

    def said(step, name, **fields):
        base = {"hook_event_name": name, "session_id": session, "timestamp": told.iso(step), "cwd": told.DIRECTORY}  # fmt: skip
        return told.at(step), base | fields

    def used(step, tool, given, text):
        result = {"result_type": "success", "text_result_for_llm": text}
        return said(step, "PostToolUse", tool_name=tool, tool_input=given, tool_result=result)

    bash = {"command": told.COMMAND}
    edit = {"path": told.FILE, "old_str": told.OLD, "new_str": told.NEW}
    return [
        said(0, "UserPromptSubmit", prompt=told.ASKED),
        used(3, "Bash", bash, f"{told.FAILED}\n<shellId: 0 completed with exit code 1>"),
        used(6, "Edit", edit, "updated"),
        used(8, "Bash", bash, f"{told.PASSED}\n<shellId: 0 completed with exit code 0>"),
        said(10, "UserPromptSubmit", prompt=told.CHOICE),
    ]


@pytest.mark.parametrize(
    ("source", "teller", "hooks", "missed"),
    [
        ("codex", told.codex, hooks_of_codex, ["AgentText", "AgentText"]),
        # What the agent said, its hooks do not tell.
        ("copilot", told.copilot, hooks_of_copilot, ["AgentText", "AgentText", "Stop", "Stop"]),
    ],
)
@pytest.mark.parametrize("comes_first", ["hooks", "import"])
async def test_what_hooks_told_and_an_import_reads_is_one_event(  # noqa: PLR0917  # cases and fixtures
    source, teller, hooks, missed, comes_first, db, clock, tmp_path
):
    told.write(tmp_path / "files", teller())
    read, _ = await anyio.to_thread.run_sync(read_files, source, tmp_path / "files")
    session = read[0]["payload"]["session_id"]
    live = [{"client": source, "payload": payload, "at": at} for at, payload in hooks(session)]
    first, second = (live, read) if comes_first == "hooks" else (read, live)
    assert set(await store(db, clock, tmp_path, first)) == {"stored"}
    outcomes = await store(db, clock, tmp_path, second)
    new = [
        event["payload"]["hook_event_name"]
        for event, outcome in zip(second, outcomes, strict=True)
        if outcome != "duplicate"
    ]
    assert sorted(new) == (missed if comes_first == "hooks" else [])


async def test_of_a_session_that_cursors_hooks_told_its_file_adds_nothing(db, clock, tmp_path):
    told.write(tmp_path / "files", told.cursor())
    read, _ = await anyio.to_thread.run_sync(read_files, "cursor", tmp_path / "files")
    session = read[0]["payload"]["session_id"]
    payload = {
        "conversation_id": session, "generation_id": "g-1", "hook_event_name": "beforeSubmitPrompt", "cursor_version": "3.24.9",
        "workspace_roots": [told.DIRECTORY], "prompt": told.ASKED,
    }  # fmt: skip
    live = {"client": "cursor", "payload": payload, "at": told.at(0)}
    assert await store(db, clock, tmp_path, [live]) == ["stored"]
    assert set(await store(db, clock, tmp_path, read)) == {"filtered"}
    told.write(tmp_path / "others", told.cursor("another"))
    others, _ = await anyio.to_thread.run_sync(read_files, "cursor", tmp_path / "others")
    assert set(await store(db, clock, tmp_path, others)) == {"stored"}
