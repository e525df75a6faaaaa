import json
import re
import subprocess
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import hook_event as hook_module
from memd.capture import claude_code
from memd.errors import BadRequest
from memd.installers import claude, claude_settings, file_changes
from memd.installers.file_changes import Host
from tests.tables import read_tables

TABLES = read_tables("installers/claude_settings")

OLD = ("/old/bin/python", "-I", "-S", "/old/memd/hook.py")
NEW = ("/new/bin/python", "-I", "-S", "/new/memd/hook.py")
EVENTS = [one.name for one in claude_settings.HOOK_EVENTS]

words = st.text(st.characters(categories=["L", "N", "P", "Z"]), max_size=6)
foreign = st.fixed_dictionaries(
    {"type": st.just("command"), "command": words},
    optional={"timeout": st.integers(1, 60), "args": st.lists(words, max_size=2)},
).filter(lambda hook: not claude_settings.is_memd_hook(hook))
group = st.fixed_dictionaries(
    {"hooks": st.lists(foreign, min_size=1, max_size=2)}, optional={"matcher": words}
) | st.just("what is this")
listed = st.dictionaries(
    st.sampled_from([*EVENTS, "PreToolUse", "Notification"]),
    st.lists(group, min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)
others = st.fixed_dictionaries(
    {},
    optional={
        "hooks": listed,
        "model": words,
        "env": st.dictionaries(words, words, max_size=2),
        "permissions": st.fixed_dictionaries({"allow": st.lists(words, max_size=2)}),
    },
)


@given(others, st.sampled_from([None, 2, "\t"]))
def test_uninstalling_undoes_installing_to_the_byte(before, indent):
    text = json.dumps(before, indent=indent)
    merged = file_changes.edit(text, claude_settings.add_hooks(before, NEW))
    assert json.loads(merged) == claude_settings.add_hooks(before, NEW)
    after = claude_settings.remove_hooks(json.loads(merged))
    assert after == before
    # An empty object has no manner of its own to go back to; such a file goes.
    assert not before or file_changes.edit(merged, after) == text


@given(others)
def test_a_second_installation_changes_nothing_and_a_newer_one_replaces(before):
    once = claude_settings.add_hooks(before, OLD)
    assert claude_settings.add_hooks(once, OLD) == once
    assert claude_settings.add_hooks(once, NEW) == claude_settings.add_hooks(before, NEW)


@given(others)
def test_other_hooks_keep_their_order_and_the_arguments_stay_as_they_are(before):
    kept = deepcopy(before)
    merged = claude_settings.add_hooks(before, NEW)
    assert before == kept
    assert list(merged)[: len(before)] == list(before)
    for event, groups in before.get("hooks", {}).items():
        assert merged["hooks"][event][: len(groups)] == groups


def test_every_event_gets_its_hook():
    assert list(claude_settings.add_hooks({}, NEW)["hooks"]) == EVENTS


def test_a_group_that_we_share_keeps_what_is_not_ours():
    mine = {"type": "command", "command": "mine"}
    ours = {"type": "command", "command": "memd hook"}
    before = {"hooks": {"Stop": [{"hooks": [mine, ours]}]}}
    assert claude_settings.remove_hooks(before) == {"hooks": {"Stop": [{"hooks": [mine]}]}}
    assert claude_settings.add_hooks(before, NEW)["hooks"]["Stop"][0] == {"hooks": [mine]}


def test_an_event_that_we_no_longer_listen_to_is_left():
    before = {"hooks": {"Notification": [{"hooks": [{"command": "/old/memd", "args": ["hook"]}]}]}}
    assert "Notification" not in claude_settings.add_hooks(before, NEW)["hooks"]
    assert claude_settings.remove_hooks(before) == {}


def test_without_ours_nothing_is_taken_away():
    before = {"hooks": {"Stop": [], "Setup": [{"hooks": []}]}, "x": {}}
    assert claude_settings.remove_hooks(before) == before


@pytest.mark.parametrize("found", [[], "x", None, {"Stop": {}}, {"Stop": None}])
def test_hooks_that_are_no_object_of_lists_are_refused(found):
    for change in (lambda s: claude_settings.add_hooks(s, NEW), claude_settings.remove_hooks):
        with pytest.raises(BadRequest, match=r"`hooks(\.Stop)?` is not"):
            change({"hooks": found})


@pytest.mark.parametrize(
    ("enabled", "found"),
    [
        ({"memd@memd": True, "x@y": True}, ["memd@memd"]),
        ({"memd@elsewhere": True}, ["memd@elsewhere"]),
        ({"memd@memd": False}, []),
        ({"memdx@memd": True}, []),
        ([], []),
        (None, []),
    ],
)
def test_an_enabled_plugin_is_found_wherever_it_comes_from(enabled, found):
    assert claude_settings.enabled_plugins({"enabledPlugins": enabled}) == found


def test_it_is_told_when_no_hook_will_run():
    assert claude_settings.hook_warnings({"disableAllHooks": False}) == ()
    assert "disableAllHooks" in claude_settings.hook_warnings({"disableAllHooks": True})[0]


# ── Which entries are memd's ──

COMMAND = ("/v/bin/python", "-I", "-S", "/v/memd/hook.py")


def test_every_event_is_one_that_memd_understands():
    assert {event.name for event in claude_settings.HOOK_EVENTS} <= set(claude_code._KINDS)


def test_no_hook_is_killed_while_it_still_waits_except_at_the_very_end():
    for event in claude_settings.HOOK_EVENTS:
        waits = (
            hook_module.BUDGET_S
            if event.name == "SessionEnd"
            else hook_module.STDIN_S + hook_module.BUDGET_S
        )
        assert waits + 0.5 < event.timeout_s <= 5, "seconds, and never many"
    begins = next(one for one in claude_settings.HOOK_EVENTS if one.name == "SessionStart")
    assert begins.timeout_s > hook_module.STDIN_S + hook_module.START_WAIT_S


def test_only_what_comes_between_runs_beside_the_agent():
    beside = {one.name for one in claude_settings.HOOK_EVENTS if one.is_async}
    assert beside == {"PostToolUse"}


@pytest.mark.parametrize(("tool", "is_guarded"), [("Bash", True), ("Edit", True), ("Write", True), ("Read", False), ("mcp__memd__mem_search", False)])  # fmt: skip
def test_only_tools_that_change_something_are_asked_about_before_they_run(tool, is_guarded):
    guard = next(one for one in claude_settings.HOOK_EVENTS if one.name == "PreToolUse")
    assert bool(re.search(guard.matcher, tool)) is is_guarded
    assert not guard.is_async


@pytest.mark.parametrize("tool", ["Bash", "Edit", "Write", "Task", "mcp__github__get_issue"])
def test_work_is_listened_to(tool):
    assert re.search(claude_settings.TOOL_MATCHER, tool)


@pytest.mark.parametrize(
    "tool",
    ["mcp__memd__mem_search", "mcp__plugin_memd_memd__mem_why", "TodoWrite", "Glob", "BashOutput"],
)
def test_our_own_tools_and_chatter_are_not(tool):
    assert not re.search(claude_settings.TOOL_MATCHER, tool)


def test_a_group_runs_one_command_without_a_shell():
    groups = dict(claude_settings.hook_groups(COMMAND, claude_settings.EXEC_FORM))
    assert groups["Stop"] == {
        "hooks": [
            {
                "type": "command",
                "command": "/v/bin/python",
                "args": ["-I", "-S", "/v/memd/hook.py", "Stop"],
                "timeout": 3,
            }
        ]
    }
    assert groups["PostToolUse"]["matcher"] == claude_settings.TOOL_MATCHER
    assert groups["PostToolUse"]["hooks"][0]["async"] is True


@pytest.mark.parametrize("client", [None, (2, 1, 101), (2, 1, 138), claude_settings.EXEC_FORM])
def test_a_client_that_drops_args_does_not_run_the_users_words_as_a_script(tmp_path, client):
    """Before 2.1.139 it runs `command` alone, by a shell, with the payload as input."""
    script = tmp_path / "it's memd" / "hook.sh"
    script.parent.mkdir()
    script.write_text('printf "%s" "$1" > "$0.event"\n')
    command = ("/bin/sh", str(script))
    (hook,) = dict(claude_settings.hook_groups(command, client))["Stop"]["hooks"]
    assert claude_settings.command_words(hook)[-3:] == [*command, "Stop"]
    is_old = client is None or client < claude_settings.EXEC_FORM
    words = ["/bin/sh", "-c", hook["command"]] if is_old else [hook["command"], *hook["args"]]
    payload = json.dumps({"session_id": "s", "prompt": f"`touch {tmp_path}/ran`"}).encode()
    subprocess.run(words, input=payload, check=True)
    assert not (tmp_path / "ran").exists()
    assert script.with_name("hook.sh.event").read_text() == "Stop"


@pytest.mark.parametrize("entry", TABLES["an_entry_is_ours_by_what_it_runs"])
def test_an_entry_is_ours_by_what_it_runs(entry):
    assert claude_settings.is_memd_hook({"type": "command", **entry})


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "notify-send memd"},
        {"command": "echo memd hook"},
        {"command": "/opt/watch", "args": ["--only", "/usr/bin/memd", "hook"]},
        {"command": "python3 /opt/memd/notify.py hook"},
        {"command": "python3", "args": ["/opt/lint.py", "/v/memd/hook.py"]},
        {"command": "memd hook 'and a quote"},
        {"command": "env"},
        {"command": "uvx other hook"},
        {"command": "/x/notmemd/hook.py"},
        {"command": "/x/memd", "args": ["status"]},
        {"command": "say hook; memd hook"},
        {"command": "memd-hook"},
        {"command": "/home/u/.local/bin/memd hook session-start"},  # `pip install memd`
        {"type": "http", "url": "http://127.0.0.1/memd/hook.py"},
        {"command": 7, "args": ["memd", "hook"]},
        {"command": "x", "args": [7, None, "hook"]},
        "memd hook",
        None,
    ],
)
def test_everything_else_is_somebody_else_s(entry):
    assert not claude_settings.is_memd_hook(entry)


# ── MCP servers ──

HOST = Host({"HOME": "/h"}, "/v/bin/python", Path("/v/memd"), "linux")
OURS = claude.server_entry(HOST, "claude-desktop")


def add_server(settings):
    return claude_settings.add_server(settings, OURS, {"MEMD_CLIENT", "MEMD_VAULT"})


OTHER = {"command": "npx", "args": ["memd-viewer", "mcp"]}


def test_the_entry_names_everything_by_its_whole_path():
    assert OURS == {
        "command": "/v/bin/python",
        "args": ["-P", "-m", "memd", "mcp"],
        "env": {"MEMD_CLIENT": "claude-desktop"},
    }


def test_what_memd_needs_of_the_environment_goes_with_it():
    host = Host({"HOME": "/h", "MEMD_VAULT": "work"}, "/p", Path("/m"), "linux")
    assert claude.server_entry(host, "x")["env"] == {"MEMD_CLIENT": "x", "MEMD_VAULT": "work"}


def test_an_older_entry_is_replaced_and_keeps_what_the_user_added():
    old = {
        "command": "/old/bin/memd",
        "args": ["mcp"],
        "env": {"MEMD_START": "0", "MEMD_VAULT": "old", "MEMD_CLIENT": "x"},
        "timeout": 9,
    }
    assert add_server({"mcpServers": {"memd": old}})["mcpServers"]["memd"] == {
        **OURS,
        "timeout": 9,
        "env": {"MEMD_START": "0", "MEMD_CLIENT": "claude-desktop"},
    }


@pytest.mark.parametrize("found", [OTHER, {"url": "http://x"}, None, "memd mcp"])
def test_another_server_of_that_name_is_neither_replaced_nor_removed(found):
    before = {"mcpServers": {"memd": found}}
    with pytest.raises(BadRequest, match="another MCP server"):
        add_server(before)
    assert claude_settings.remove_server(before) == before


@pytest.mark.parametrize("found", [[], "x", None])
def test_servers_that_are_no_object_are_refused(found):
    for change in (add_server, claude_settings.remove_server):
        with pytest.raises(BadRequest, match="`mcpServers` is not an object"):
            change({"mcpServers": found})


@pytest.mark.parametrize(("entry", "is_ours"), TABLES["a_server_is_ours_by_what_it_runs"])
def test_a_server_is_ours_by_what_it_runs(entry, is_ours):
    assert claude_settings.is_memd_server(entry) == is_ours
