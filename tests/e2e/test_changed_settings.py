"""A setting that an agent changed, and changed again: through hooks, a real daemon, MCP and the command line."""

import json

import pytest
from mcp import Client

from tests.e2e.test_authority import PLACE, command
from tests.e2e.test_judging import Asking, stdio_proxy

PATCH = (
    "*** Begin Patch\n*** Update File: limits.py\n@@\n-MAX_ROWS = {}\n+MAX_ROWS = {}\n*** End Patch"
)


def turn(daemon, session, prompt, tool, given, client="claude-code"):
    """One turn with one edit, which ends without a word of the agent's."""
    here = {"session_id": session, "prompt_id": f"{session}-1", "cwd": PLACE}
    events = [
        {**here, "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        {
            **here, "hook_event_name": "PostToolUse", "tool_name": tool, "tool_use_id": f"{session}-t",
            "tool_input": given, "tool_response": {},
        },
        {**here, "hook_event_name": "Stop", "last_assistant_message": ""},
    ]  # fmt: skip
    with daemon.client() as connection:
        wanted = [{"client": client, "payload": one, "directory": PLACE} for one in events]
        connection.call("memd/capture", {"events": wanted})
    daemon.settle()


def edit(was, now):
    name = f"{PLACE}/config.py"
    return {"file_path": name, "old_string": f"RETRY_LIMIT = {was}", "new_string": f"RETRY_LIMIT = {now}"}  # fmt: skip


async def search(daemon, query):
    server = stdio_proxy(daemon).model_copy(update={"cwd": PLACE})
    async with Client(server, mode="auto") as client:
        return (await Asking(client)("mem_search", query=query))["hits"]


@pytest.mark.parametrize(
    ("first", "then", "question"),
    [
        ("Bump the retry limit to 30", "30 is not enough, make it 60", "what is the retry limit now?"),
        ("把重试上限改成 30", "30 不够，改成 60", "重试上限现在是多少？"),
    ],
)  # fmt: skip
async def test_the_value_that_holds_is_the_first_answer(daemon, first, then, question):
    daemon.start()
    turn(daemon, "s1", first, "Edit", edit(10, 30))
    turn(daemon, "s2", then, "Edit", edit(30, 60))
    new, old = (await search(daemon, question))[:2]
    assert "RETRY_LIMIT 30 → 60" in new["title"]
    assert new["replaces"] == f"RETRY_LIMIT = 30 of #{old['id']}"
    assert f"value replaced by #{new['id']}" in old["older_value"]
    why = json.loads(command(daemon, "why", str(old["id"]), "--json"))
    assert why["verdict"] == f"value replaced by #{new['id']} (changed-value)"
    assert "RETRY_LIMIT = 60, not 30" in command(daemon, "why", str(old["id"]))
    assert f"replaces RETRY_LIMIT = 30 of #{old['id']}" in command(
        daemon, "search", question, "--project", PLACE
    )


async def test_a_patch_of_codex_replaces_as_well(daemon):
    daemon.start()
    for session, was, now in (("s1", 100, 500), ("s2", 500, 2000)):
        given = {"command": PATCH.format(was, now)}
        turn(daemon, session, f"row maximum {now}", "apply_patch", given, "codex")
    new, old = (await search(daemon, "what is the row maximum?"))[:2]
    assert new["replaces"] == f"MAX_ROWS = 500 of #{old['id']}"


async def test_the_user_may_say_that_both_values_hold(daemon):
    daemon.start()
    turn(daemon, "s1", "Bump the retry limit to 30", "Edit", edit(10, 30))
    turn(daemon, "s2", "make it 60", "Edit", edit(30, 60))
    new, old = (await search(daemon, "retry limit"))[:2]
    command(daemon, "judge", str(new["id"]), str(old["id"]), "compatible", "--reason", "two hosts")
    for hit in await search(daemon, "retry limit"):
        # That its file is not in this working tree may be told; a value that replaced another may not.
        assert "replaces" not in hit
        assert "→" not in hit.get("older_value", "")
    why = json.loads(command(daemon, "why", str(old["id"]), "--json"))
    assert (why["verdict"], why["values"]) == ("current", [])


def test_without_a_daemon_a_command_names_what_is_wrong_in_the_settings(daemon):
    config = daemon.home / "config.toml"
    config.write_text("[recall]\nprofil = 'memd'\n")
    ran = daemon.run("search", "anything")
    assert ran.returncode == 2
    said = ran.stderr.decode()
    assert f"no daemon can start: {config}" in said
    assert "profil" in said
