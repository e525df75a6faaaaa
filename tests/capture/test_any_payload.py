"""What clients may send next month: nothing breaks, nothing is lost uncounted, nothing is misdated or misplaced."""

import json
from copy import deepcopy
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.capture.claude_code import _KINDS, _NOTHING_NEW, Ignored, Refused
from memd.capture.prepare import CaptureRequest, Preparer
from memd.capture.project import ProjectResolver
from memd.capture.write import LookupCache, store_items
from memd.config import CaptureConfig, DistillConfig
from memd.distill.distiller import DueRequest, load_due, plan_episodes
from memd.installers import claude_settings
from memd.models import EventKind, NewEvent
from memd.store import database, integrity, ledger
from tests.distill import test_clients_alike as alike
from tests.factories import AT
from tests.tables import every_row

DATA = Path(__file__).parents[1] / "data" / "claude-code"
SAMPLES = [
    ("claude-code", None, json.loads(line)["stdin"])
    for file in ("every-event/hook-samples.jsonl", "ledger/hooks.jsonl")
    for line in (DATA / file).read_text(encoding="utf-8").splitlines()
]
NEWER = [
    {"hook_event_name": "PermissionDenied", "tool_name": "Bash", "tool_input": {"command": "rm -r /srv"},
     "tool_use_id": "toolu_0123456789abcdefX", "reason": "deletes what is not in the project"},
    {"hook_event_name": "StopFailure", "error": "overloaded", "last_assistant_message": "API Error: 529"},
    {"hook_event_name": "PostToolBatch", "tool_calls": [{"tool_name": "Read", "tool_input": {}}]},
    {"hook_event_name": "SubagentStart", "agent_id": "a0123456789abcdef", "agent_type": "Explore"},
    {"hook_event_name": "SubagentStop", "agent_id": "a0123456789abcdef", "agent_type": "Explore",
     "last_assistant_message": "The retry is missing in upload.py."},
    {"hook_event_name": "InstructionsLoaded", "file_path": "/p/CLAUDE.md", "memory_type": "Project",
     "load_reason": "session_start"},
    {"hook_event_name": "CwdChanged", "old_cwd": "/home/dev/shop", "new_cwd": "/home/dev/other"},
    {"hook_event_name": "WorktreeCreate", "name": "try1"},
    {"hook_event_name": "WorktreeRemove", "worktree_path": "/home/dev/shop/.claude/worktrees/try1"},
    {"hook_event_name": "TaskCompleted", "task_id": "7", "task_subject": "Mend the upload"},
]  # fmt: skip
NEWER = [
    {"session_id": "s", "cwd": "/home/dev/shop", "prompt_id": "p1", "permission_mode": "auto"} | one
    for one in NEWER
]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Sessions, each a list of (client that the hook states, event that it was told, payload)."""
    folder = tmp_path_factory.mktemp("told")
    sessions = [
        [(name.partition(" ")[0], *(one if isinstance(one, tuple) else (None, one))) for one in tell(folder)]
        for name, tell in alike.TELLERS.items()
    ]  # fmt: skip
    return [*sessions, SAMPLES, [("claude-code", None, one) for one in NEWER]]


leaf = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20)
few = st.lists(leaf, max_size=3) | st.dictionaries(st.text(max_size=12), leaf, max_size=3)
anything = leaf | few | st.dictionaries(st.text(max_size=12), leaf | few, max_size=3)


def _make_template():
    connection = apsw.Connection(":memory:")
    database.migrate(connection, AT)
    return connection.serialize("main")


TEMPLATE = _make_template()


def vault():
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", TEMPLATE)
    return connection


def take(items, tx=None, cache=None):
    """Store payloads as the ingestor does; (prepared, receipts, vault)."""
    tx, now = tx or vault(), [AT]

    def clock():
        now[0] += 1000
        return now[0]

    prepared = Preparer(CaptureConfig(), clock, ProjectResolver(clock)).prepare_all(items)
    with tx:
        receipts = store_items(tx, prepared, AT, cache or LookupCache())
    return prepared, receipts, tx


def assert_sound(items, prepared, receipts, tx):
    balance = ledger.balance(tx)
    received = balance.pop("received")
    assert received == len(items) == len(receipts) == sum(balance.values())
    for item, made, receipt in zip(items, prepared, receipts, strict=True):
        if isinstance(made.verdict, (Ignored, Refused)):
            assert receipt.outcome in ("filtered", "refused")
            assert receipt.reason
            continue
        event = made.verdict
        assert event.at == item.at, "no event is dated by anything but its arrival"
        cwd = item.payload.get("cwd")
        roots = item.payload.get("workspace_roots")
        known = {item.directory, cwd if isinstance(cwd, str) and cwd else None}
        known |= {root for root in roots if isinstance(root, str)} if isinstance(roots, list) else set()  # fmt: skip
        assert event.session.directory in known, "nor is it placed by anything else"
    assert integrity.broken_references(tx) == {}


requests = st.tuples(st.sampled_from(["claude-code", "codex", "copilot", "cursor", "gemini-cli", "new"]), st.sampled_from(
    [None, "SessionStart", "userPromptSubmitted", "beforeSubmitPrompt", "postToolUse"]), st.dictionaries(
        st.sampled_from(["session_id", "sessionId", "conversation_id", "hook_event_name", "hookEventName", "timestamp", "prompt",
                         "prompt_id", "turn_id", "agent_id", "agent_type", "tool_name", "toolName", "tool_input", "toolArgs",
                         "tool_response", "toolResult", "tool_use_id", "cwd", "workspace_roots", "cursor_version", "model",
                         "transcript_path", "source", "origin", "last_assistant_message", "reason", "error", "title"]),
        anything | st.sampled_from([*_KINDS, *_NOTHING_NEW, "Bash", "Edit", "apply_patch", "AskUserQuestion", "s", "/p"]),
    ))  # fmt: skip


@given(st.lists(requests | st.tuples(st.just("claude-code"), st.none(), anything), max_size=4))
@example([("codex", None, {"session_id": "s", "hook_event_name": "PostToolUse", "transcript_path": "rollout-x.jsonl"})])  # fmt: skip
def test_no_payload_breaks_the_intake(made):
    items = [
        CaptureRequest(client, payload, AT + number, event=event)
        for number, (client, event, payload) in enumerate(made)
    ]
    items = [one for one in items if isinstance(one.payload, dict)]
    assert_sound(items, *take(items))


@given(data=st.data())
def test_a_session_that_a_later_version_tells_keeps_its_time_and_place(data, told):
    """Fields dropped, added and of other types, events renamed, doubled, dropped and in another order."""
    session = deepcopy(data.draw(st.sampled_from(told)))[:12]
    order = data.draw(st.lists(st.integers(0, len(session) - 1), min_size=1, max_size=16))
    items = []
    for number, at in enumerate(order):
        client, event, payload = deepcopy(session[at])
        for _ in range(data.draw(st.integers(0, 2))):
            name = data.draw(st.sampled_from([*payload, "a_new_field"]))
            match data.draw(st.sampled_from(["drop", "change", "rename"])):
                case "drop":
                    payload.pop(name, None)
                case "change":
                    payload[name] = data.draw(anything)
                case "rename" if "hook_event_name" in payload:
                    payload["hook_event_name"] = data.draw(st.sampled_from(["TeamFormed", "", "ünknown\n"]))  # fmt: skip
        items.append(CaptureRequest(client, payload, AT + 1000 * number, event=event))
    prepared, receipts, tx = take(items)
    assert_sound(items, prepared, receipts, tx)
    config = DistillConfig()
    for (session_id,) in tx.execute("SELECT id FROM sessions").fetchall():
        request = DueRequest(session_id, AT + 10**9, config.idle_s * 1000, None, 0)
        if (due := load_due(tx, request)) is not None:
            plan_episodes(due)


@pytest.mark.parametrize("step", range(6))
def test_a_session_told_twice_and_in_another_order_is_the_same_events(step, told):
    session = told[step]
    items = [
        CaptureRequest(client, deepcopy(payload), AT + 1000 * number, event=event)
        for number, (client, event, payload) in enumerate(session)
    ]
    items = [one for one in items if "compact" not in str(one.payload).lower()]

    def keys(some):
        _, receipts, tx = take(some)
        assert ledger.balance(tx)["received"] == len(some) == len(receipts)
        return {key for (key,) in tx.execute("SELECT key FROM events")}

    assert keys(items) == keys([*items, *items]) == keys(items[::-1])


def test_an_event_of_an_unknown_kind_is_kept_counted_and_told():
    strange = [
        ("claude-code", {"session_id": "s", "hook_event_name": "TeamFormed", "cwd": "/p", "n": 1}),
        ("claude-code", {"session_id": "s", "hook_event_name": "TeamFormed", "cwd": "/p", "n": 2}),
        ("claude-code", {"session_id": "s", "hook_event_name": "odd name\n\x1b[31m", "n": 3}),
        ("cursor", {"conversation_id": "c", "hook_event_name": "dreamed", "cursor_version": "4.1.0"}),
        ("claude-code", {"session_id": "s", "hook_event_name": "CwdChanged", "new_cwd": "/q"}),
    ]  # fmt: skip
    items = [CaptureRequest(client, payload, AT + n) for n, (client, payload) in enumerate(strange)]
    prepared, receipts, tx = take(items)
    assert [one.outcome for one in receipts] == ["stored"] * 5
    assert {one.verdict.kind for one in prepared} == {EventKind.OTHER}
    assert ledger.unknown_kinds(tx) == {
        "TeamFormed from claude-code": 2,
        "of another name from claude-code": 1,
        "dreamed from cursor 4.1.0": 1,
    }
    balance = ledger.balance(tx)
    assert balance.pop("received") == sum(balance.values()) == 5
    (finding,) = [one for one in integrity.examine_vault(tx, AT, is_served=True) if one.name == "unknown events"]  # fmt: skip
    assert finding.verdict == "warning"
    assert "2 of an unknown kind: TeamFormed from claude-code" in finding.words


def test_the_kinds_that_are_told_of_are_limited():
    tx = vault()
    for number in range(80):
        payload = {"session_id": "s", "hook_event_name": f"Event{number}", "cwd": "/p"}
        take([CaptureRequest("claude-code", payload, AT + number)], tx)
    kinds = ledger.unknown_kinds(tx)
    assert len(kinds) == 51
    assert kinds["of further names"] == 30


@every_row("payload", NEWER, ids=lambda one: one["hook_event_name"])
def test_each_newer_event_is_kept_with_its_ids_or_filtered_for_a_reason(payload):
    ((made,), (receipt,), tx) = take([CaptureRequest("claude-code", payload, AT)])
    assert ledger.unknown_kinds(tx) == {}
    if payload["hook_event_name"] in _NOTHING_NEW:
        assert receipt.outcome == "filtered"
        assert payload["hook_event_name"] in receipt.reason
        return
    assert receipt.outcome == "stored"
    assert isinstance(made.verdict, NewEvent)
    assert made.verdict.payload == payload
    assert made.verdict.turn == "p1"
    assert made.verdict.agent == payload.get("agent_id")


def test_no_hook_runs_for_an_event_that_gets_nothing():
    registered = {one.name for one in claude_settings.HOOK_EVENTS}
    assert not registered & set(_NOTHING_NEW)
    assert not registered & {"WorktreeCreate", "WorktreeRemove"}, (
        "the client would leave both to the hook"
    )
    assert {"StopFailure", "PermissionDenied"} <= registered
