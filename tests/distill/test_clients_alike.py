"""One session, told by the payloads of each client, becomes the same memories.

Field names of Codex CLI 0.169.0 and Copilot CLI 1.0.102 as recorded from the real clients (`scripts/end-to-end clients` drives
them); of Cursor as its hook pages and public traces have them, since it is in no registry.
"""

import json

import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig, DistillConfig
from memd.distill.distiller import Distiller
from memd.store import summaries
from tests.factories import AT

PLACE = "/home/dev/shop"
PROMPT = "Fix the login test. From now on always run make check before you commit."
FAILING = (
    "pytest tests/test_login.py",
    1,
    "FAILED tests/test_login.py::test_login - KeyError: 'name'\n1 failed in 0.1s\n",
)
PASSING = "pytest tests/test_login.py", 0, "1 passed in 0.1s\n"
EDIT = f"{PLACE}/login.py", "user['name']", "user.get('name')"
ANSWER = "Fixed the login test: the name may be missing, so login.py uses get now."
TURN = "01a20765-230b-7ef1-abb0-ce692c671b85"
CALLS = [f"call_AAAAAAAAAAAAAAAAAAAAAAA{number}" for number in range(3)]


def tell_claude_code(_):
    base = {"session_id": "s", "cwd": PLACE, "prompt_id": TURN, "permission_mode": "default"}

    def used(number, name, **fields):
        return base | {"hook_event_name": name, "tool_use_id": CALLS[number]} | fields

    return [
        base | {"hook_event_name": "SessionStart", "source": "startup"},
        base | {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT},
        used(0, "PostToolUseFailure", tool_name="Bash", tool_input={"command": FAILING[0]},
             error=f"Exit code 1\n{FAILING[2]}"),
        used(1, "PostToolUse", tool_name="Edit", tool_response={},
             tool_input={"file_path": EDIT[0], "old_string": EDIT[1], "new_string": EDIT[2]}),
        used(2, "PostToolUse", tool_name="Bash", tool_input={"command": PASSING[0]},
             tool_response={"stdout": PASSING[2]}),
        base | {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": ANSWER},
        base | {"hook_event_name": "SessionEnd", "reason": "other"},
    ]  # fmt: skip


def tell_codex(tmp_path):
    rollout = tmp_path / "rollout-2026-11-23T07-53-18-s.jsonl"
    ended = [{"id": CALLS[0], "exit_code": FAILING[1]}, {"id": CALLS[2], "exit_code": PASSING[1]}]
    lines = [
        {"type": "event_msg", "payload": {"type": "item_completed", "item": one}} for one in ended
    ]
    rollout.write_text("".join(json.dumps(line) + "\n" for line in lines))
    base = {
        "session_id": "s", "turn_id": TURN, "transcript_path": str(rollout), "cwd": PLACE,
        "model": "gpt-5.2-codex", "permission_mode": "default",
    }  # fmt: skip
    patch = f"*** Begin Patch\n*** Update File: login.py\n@@\n-{EDIT[1]}\n+{EDIT[2]}\n*** End Patch"

    def used(number, tool, given, response):
        return base | {
            "hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": {"command": given},
            "tool_response": response, "tool_use_id": CALLS[number],
        }  # fmt: skip

    start = {key: value for key, value in base.items() if key != "turn_id"}
    return [
        start | {"hook_event_name": "SessionStart", "source": "startup"},
        base | {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT},
        used(0, "Bash", FAILING[0], FAILING[2]),
        used(1, "apply_patch", patch, "Success. Updated the following files:\nM login.py\n"),
        used(2, "Bash", PASSING[0], PASSING[2]),
        base | {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": ANSWER},
        {"session_id": "s", "transcript_path": str(rollout), "cwd": PLACE, "hook_event_name": "SessionEnd",
         "reason": "other"},
    ]  # fmt: skip


def tell_copilot(_):
    def said(second, name, **fields):
        at = f"2026-11-23T08:09:0{second}.980Z"
        return {"hook_event_name": name, "session_id": "s", "timestamp": at, "cwd": PLACE} | fields

    def shell(second, ran):
        text = f"{ran[2]}<shellId: 1 completed with exit code {ran[1]}>"
        return said(second, "PostToolUse", tool_name="Bash", tool_input={"command": ran[0]},
                    tool_result={"result_type": "success", "text_result_for_llm": text})  # fmt: skip

    edited = {
        "result_type": "success",
        "text_result_for_llm": f"File {EDIT[0]} updated with changes.",
    }
    return [
        said(0, "SessionStart", source="new", initial_prompt=PROMPT),
        said(1, "UserPromptSubmit", prompt=PROMPT),
        shell(2, FAILING),
        said(3, "PostToolUse", tool_name="Edit", tool_result=edited,
             tool_input={"path": EDIT[0], "old_str": EDIT[1], "new_str": EDIT[2]}),
        shell(4, PASSING),
        said(5, "Stop", stop_reason="end_turn", stop_hook_active=False),
        # What is read in its transcript a moment later.
        {"hook_event_name": "AgentText", "session_id": "s", "cwd": PLACE, "uuid": TURN, "text": ANSWER},
        said(6, "SessionEnd", reason="complete"),
    ]  # fmt: skip


def tell_copilot_in_its_own_words(_):
    """(the event's name, which only its hook is told, payload)."""
    names = {
        "SessionStart": "sessionStart", "UserPromptSubmit": "userPromptSubmitted", "PostToolUse": "postToolUse",
        "Stop": "agentStop", "SessionEnd": "sessionEnd",
    }  # fmt: skip
    fields = {
        "session_id": "sessionId",
        "tool_name": "toolName",
        "tool_input": "toolArgs",
        "tool_result": "toolResult",
    }
    told = []
    for payload in tell_copilot(None):
        event = payload["hook_event_name"]
        if event == "AgentText":
            told.append((None, payload))
            continue
        own = {
            fields.get(key, key): value
            for key, value in payload.items()
            if key != "hook_event_name"
        }
        if "toolResult" in own:
            text = own["toolResult"]["text_result_for_llm"]
            own["toolResult"] = {"resultType": "success", "textResultForLlm": text}
            own["toolName"] = {"Bash": "bash", "Edit": "edit"}[own["toolName"]]
            own["toolArgs"] = json.dumps(own["toolArgs"])
        told.append((names[event], own | {"timestamp": 1_795_421_340_980 + 1_000 * len(told)}))
    return told


def tell_cursor(_):
    base = {
        "conversation_id": "s", "generation_id": TURN, "model": "default", "cursor_version": "3.24.9",
        "workspace_roots": [PLACE], "user_email": "dev@example.com", "transcript_path": None,
    }  # fmt: skip

    def used(number, name, tool, given, **fields):
        call = f"{CALLS[number]}\nfc_{number}"
        return (
            base
            | {"hook_event_name": name, "tool_use_id": call, "tool_name": tool, "tool_input": given}
            | fields
        )

    edit = {"path": EDIT[0], "old_string": EDIT[1], "new_string": EDIT[2]}
    return [
        base | {"hook_event_name": "sessionStart", "session_id": "s", "composer_mode": "agent"},
        base | {"hook_event_name": "beforeSubmitPrompt", "prompt": PROMPT, "attachments": []},
        used(0, "postToolUseFailure", "Shell", {"command": FAILING[0]}, failure_type="error",
             error_message=f"Exit code 1\n{FAILING[2]}"),
        used(1, "postToolUse", "StrReplace", edit, tool_output="{}"),
        used(2, "postToolUse", "Shell", json.dumps({"command": PASSING[0]}),
             tool_output=json.dumps({"output": PASSING[2], "exitCode": 0})),
        base | {"hook_event_name": "afterAgentResponse", "text": ANSWER},
        base | {"hook_event_name": "stop", "status": "completed", "loop_count": 0},
        base | {"hook_event_name": "sessionEnd", "session_id": "s", "reason": "completed"},
    ]  # fmt: skip


async def distil(db, clock, tmp_path, told):
    """Capture what a client tells, twice, once by the hook of another; the memories and the kinds of the events."""
    stated, payloads = told
    ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path / "spool"), lambda: None)
    for step, one in enumerate(payloads):
        event, payload = one if isinstance(one, tuple) else (None, one)
        clock.now = AT + step * 3_000
        # What a transcript says is told by its reader; a payload in a client's own words needs its own hook.
        is_read = payload.get("hook_event_name") == "AgentText"
        source = "transcript" if is_read else "live"
        hooks = (stated, stated if event or is_read else "claude-code")
        receipts = [
            receipt
            for hook in hooks
            for receipt in await ingestor.capture(
                [CaptureRequest(hook, payload, event=event, source=source)]
            )
        ]
        assert [one.outcome for one in receipts] == ["stored", "duplicate"], payload
    clock.now += 3_600_000
    await Distiller(db, DistillConfig(), clock, lambda: None).settle(1_000_000)

    def read(tx):
        made = summaries.summaries_by_ids(tx, range(1, 100)).values()
        clients = {row[0] for row in tx.execute("SELECT client FROM sessions")}
        return clients, sorted((one.kind.value, one.title, one.body) for one in made)

    return await db.read(read)


TELLERS = {
    "claude-code": tell_claude_code, "codex": tell_codex, "copilot": tell_copilot,
    "copilot in its own words": tell_copilot_in_its_own_words, "cursor": tell_cursor,
}  # fmt: skip


FAILURE = "FAILED tests/test_login.py::test_login - KeyError: 'name'"
FAILED = "test test_login failed: KeyError: 'name' (tests/test_login.py)"
CHANGED = f"Changed login.py:\n- {EDIT[1]}\n+ {EDIT[2]}"
MEMORIES = [
    ("failure", FAILED, f"`{FAILING[0]}` failed: {FAILURE}\nWhile: Fix the login test\nMended by: changed login.py"),
    ("fix", "Fixed the login test: the name may be missing, so login.py uses get now",
     (f"Asked: {PROMPT}\nError: {FAILURE}\nFix: changed login.py\nThen `{PASSING[0]}` passed.\n{CHANGED}\n"
     f"Answered: {ANSWER}\nFiles: login.py")),
    ("instruction", "Always run make check before you commit",
     "User: “From now on always run make check before you commit.”"),
]  # fmt: skip


@pytest.mark.parametrize("name", TELLERS)
async def test_every_client_tells_the_same_session(name, db, clock, tmp_path):
    client = name.partition(" ")[0]
    clients, memories = await distil(db, clock, tmp_path, (client, TELLERS[name](tmp_path)))
    assert clients == {client}
    assert memories == MEMORIES
