"""Claude Code's newer events: what of them stands in the memory of their turn, and whose word it is."""

import pytest

from memd.capture.prepare import CaptureRequest
from memd.models import Authority
from tests.factories import AT
from tests.test_prompt_origin import ANSWER, BASE, TURN, Vault, tell

FAILED = "API Error: 529 Overloaded. Try again later."
SAID = (
    "I have changed upload.py so that it tries three times, and now I run the tests of the upload."
)


@pytest.fixture
def vault(db, clock, tmp_path):
    return Vault(db, clock, tmp_path)


async def read_turn(vault):
    (turn,) = [one for one in await vault.memories() if one.rule == "turn"]
    return turn


async def test_a_turn_that_the_api_broke_off_is_not_told_as_finished(vault):
    prompt, edit, _ = tell("Have the upload try again when the store is away.", {})
    said = BASE | {"hook_event_name": "AgentText", "uuid": "a1", "text": SAID}
    stop = BASE | {"hook_event_name": "StopFailure", "error": "overloaded"}
    await vault.take([prompt, edit, said, stop | {"last_assistant_message": FAILED}])
    turn = await read_turn(vault)
    assert f"Broken off by an error of the model's API: {FAILED}" in turn.body
    assert "Answered:" not in turn.body
    assert FAILED not in turn.title


async def test_a_turn_that_goes_on_after_the_failure_and_ends_is_finished(vault):
    prompt, edit, stop = tell("Have the upload try again when the store is away.", {})
    failed = BASE | {"hook_event_name": "StopFailure", "error": "overloaded"}
    await vault.take([prompt, edit, failed, stop])
    turn = await read_turn(vault)
    assert "Broken off" not in turn.body
    assert "Answered:" in turn.body


async def test_a_call_that_auto_mode_denied_did_not_run_and_did_not_fail(vault):
    prompt, edit, stop = tell("Have the upload try again when the store is away.", {})
    call = {"tool_name": "Bash", "tool_input": {"command": "rm -r /srv/uploads"}}
    denied = (
        BASE | call | {"hook_event_name": "PermissionDenied", "tool_use_id": "toolu_0123456789abcdef01"}
        | {"reason": "It deletes what is not in the project."}
    )  # fmt: skip
    (*_, receipt) = await vault.take([prompt, edit, stop, denied])
    assert receipt.outcome == "stored"
    found = await vault.memories()
    assert not [one for one in found if one.kind == "failure"]
    turn = await read_turn(vault)
    wanted = "Not run, denied by the client: `rm -r /srv/uploads`: It deletes what is not in the project."
    assert wanted in turn.body
    (copy,) = await vault.take([denied], source="transcript")
    assert copy.outcome == "duplicate"


async def test_what_a_subagent_did_and_found_is_told_as_the_subagents(vault):
    prompt, edit, stop = tell("Have the upload try again when the store is away.", {})
    agent = {"agent_id": "a0123456789abcdef", "agent_type": "Explore"}
    ran = (
        BASE | agent | {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash"}
        | {"tool_input": {"command": "pytest tests/test_upload.py"}, "tool_use_id": "toolu_0123456789abcdef02"}
        | {"error": "Exit code 1\nFAILED tests/test_upload.py::test_retry - AssertionError\n1 failed in 0.1s"}
    )  # fmt: skip
    rule = "From now on always use tabs in upload.py."
    found = BASE | agent | {"hook_event_name": "SubagentStop", "last_assistant_message": rule}
    asked = BASE | agent | {"hook_event_name": "UserPromptSubmit", "prompt": rule}
    await vault.take([prompt, asked | {"prompt_id": TURN}, ran, found, edit, stop])
    memories = await vault.memories()
    assert all(one.authority <= Authority.AGENT_TEXT for one in memories if "tabs" in one.body)
    assert not [one for one in memories if one.kind in ("instruction", "preference")]
    turn = await read_turn(vault)
    assert "Explore ran: `pytest tests/test_upload.py` → failed" in turn.body
    assert f"Explore reported: {rule}" in turn.body
    assert ANSWER[:40] in turn.body


async def test_a_prompt_given_elsewhere_after_cd_belongs_to_that_project(vault, tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        (place / ".git").mkdir(parents=True)
    first = tell("Have the upload try again when the store is away.", {})[0] | {"cwd": str(home)}
    below = {**first, "prompt_id": "p2", "prompt": "And log it.", "cwd": str(home / "src")}
    moved = {**first, "prompt_id": "p3", "prompt": "Do the same here.", "cwd": str(other)}
    receipts = await vault.ingestor.capture(
        [
            CaptureRequest("claude-code", payload, AT + number, directory=str(home))
            for number, payload in enumerate((first, below, moved))
        ]
    )

    def read(tx):
        rows = tx.execute("SELECT id, payload ->> '$.memd_project' FROM events").fetchall()
        return dict(rows)

    elsewhere = await vault.db.read(read)
    assert [elsewhere[one.seq] for one in receipts] == [None, None, str(other)]


async def test_a_denial_that_an_older_memd_imported_as_a_failure_is_not_imported_again(vault):
    call = BASE | {"tool_name": "Bash", "tool_input": {"command": "rm -r /srv/uploads"}}
    call |= {"tool_use_id": "toolu_0123456789abcdef01"}
    failed = call | {"hook_event_name": "PostToolUseFailure", "error": "Permission was denied."}
    denied = call | {"hook_event_name": "PermissionDenied", "reason": "Permission was denied."}
    (first,) = await vault.take([failed], source="import")
    (second,) = await vault.take([denied], source="import")
    assert (second.outcome, second.seq) == ("duplicate", first.seq)
