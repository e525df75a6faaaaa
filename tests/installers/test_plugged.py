"""memd's plugins for OpenCode and Pi, in Node.js, with the events that these clients were seen to send."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memd.capture import clients
from memd.capture.claude_code import adapt_hook_payload
from memd.installers import agents
from memd.installers.file_changes import Host
from memd.models import EventKind

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="the plugins run in Node.js")
HOOK = """\
import json, sys
payload = json.load(sys.stdin)
with open({log!r}, "a") as log:
    print(json.dumps([sys.argv[-1], payload]), file=log)
event = payload["hook_event_name"]
if event == "PreToolUse" and payload["tool_input"]["command"] == "forbidden":
    said = {{"permissionDecision": "deny", "permissionDecisionReason": "not here"}}
elif event == "Stop":
    said = None
else:
    said = {{"additionalContext": "<" + event + ">"}}
if said:
    print(json.dumps({{"hookSpecificOutput": {{"hookEventName": event, **said}}}}))
"""


@pytest.fixture(scope="module", params=["opencode", "pi"])
def story(request, tmp_path_factory):
    """(client, what it was handed, [what the hook was called with, its payload])."""
    top = tmp_path_factory.mktemp("plugged")
    home, package, log = top / "home", top / "memd", top / "log"
    package.mkdir()
    (package / "hook.py").write_text(HOOK.format(log=str(log)))
    host = Host({"HOME": str(home), "PATH": ""}, sys.executable, package, "linux")
    Path(host.paths.state_dir).mkdir(parents=True)
    launcher = agents.launcher_file(host)
    launcher.write_text(agents.format_launcher(host))
    watch = Path(f"{host.paths.socket}.watch")
    watch.mkdir(parents=True)
    (watch / "ses_1").write_text("x\n")
    plugin = top / "memd.mjs"
    plugin.write_text(agents.format_plugin(agents.AGENTS[request.param], host))
    driver = Path(__file__).with_name("plugged.mjs")
    done = subprocess.run(
        [NODE, driver, request.param, plugin], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    return request.param, dict(json.loads(done.stdout)), sent


def test_the_client_is_handed_what_memd_tells(story):
    client, shown, _ = story
    assert shown["servers"] == {"opencode": ["memd", "other"], "pi": ["memd", "direct"]}[client]
    assert shown["told"] == [["<SessionStart>\n\n<UserPromptSubmit>", True]]
    assert shown["refused"] == "not here"
    assert shown["output"] == "gone\n\n<PreToolUse>\n\n<PostToolUseFailure>"


def test_the_hook_hears_of_a_turn_in_its_order(story):
    client, _, sent = story
    assert {words.partition(":")[0] for words, _ in sent} == {client}
    assert [payload["hook_event_name"] for _, payload in sent][:10] == [
        "SessionStart", "UserPromptSubmit", "AgentText", "PreToolUse", "PreToolUse", "PostToolUseFailure",
        "PostToolUseFailure", "Stop", *(["SessionEnd"] if client == "opencode" else ["UserPromptSubmit", "SessionEnd"]),
    ]  # fmt: skip
    # The shell's hook reads the session at the payload's beginning.
    assert all(next(iter(payload)) == "session_id" for _, payload in sent)


def test_what_is_told_are_events_in_claude_codes_words(story):
    client, _, sent = story
    payloads = [clients.translate(client, payload)[1] for _, payload in sent]
    told = [
        adapt_hook_payload(payload, 1, directory=None, source="live", client=client)
        for payload in payloads
    ]
    by_name = {event.name: event for event in reversed(told)}
    assert by_name["UserPromptSubmit"].payload["prompt"] == "Mend it."
    assert by_name["Stop"].payload["last_assistant_message"] == "Done."
    assert by_name["Stop"].turn == by_name["UserPromptSubmit"].turn
    failure = by_name["PostToolUseFailure"]
    assert (failure.tool, failure.payload["error"]) == ("Bash", "Exit code 2\ngone")
    assert failure.payload["tool_use_id"] == "prt_3"


def test_what_an_extension_of_pi_sends_is_not_the_users_word(story):
    client, _, sent = story
    prompts = [p for _, p in sent if p["hook_event_name"] == "UserPromptSubmit"]
    kinds = [
        adapt_hook_payload(payload, 1, directory=None, source="live", client=client).kind
        for payload in prompts
    ]
    typed = {"opencode": [EventKind.PROMPT], "pi": [EventKind.PROMPT, EventKind.NOTIFICATION]}
    assert kinds == typed[client]
