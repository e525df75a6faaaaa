import re

import pytest

from memd import hook
from memd.capture import claude_code
from memd.installers import hooks

COMMAND = ("/v/bin/python", "-I", "-S", "/v/memd/hook.py")


def test_every_event_is_one_that_memd_understands():
    assert {listening.event for listening in hooks.EVENTS} <= set(claude_code._KINDS)


def test_no_hook_is_killed_while_it_still_waits_except_at_the_very_end():
    for listening in hooks.EVENTS:
        waits = (
            hook.BUDGET_S if listening.event == "SessionEnd" else hook.STDIN_S + hook.BUDGET_S
        )
        assert waits + 0.5 < listening.timeout_s <= 5, "seconds, and never many"
    begins = next(one for one in hooks.EVENTS if one.event == "SessionStart")
    assert begins.timeout_s > hook.STDIN_S + hook.START_WAIT_S


def test_only_what_comes_between_runs_beside_the_agent():
    beside = {one.event for one in hooks.EVENTS if one.is_beside}
    assert beside == {"PostToolUse", "PostToolUseFailure"}
    assert "PreToolUse" not in {one.event for one in hooks.EVENTS}


@pytest.mark.parametrize("tool", ["Bash", "Edit", "Write", "Task", "mcp__github__get_issue"])
def test_work_is_listened_to(tool):
    assert re.search(hooks.TOOLS, tool)


@pytest.mark.parametrize(
    "tool",
    [
        "mcp__memd__mem_search",
        "mcp__plugin_memd_memd__mem_why",
        "TodoWrite",
        "Glob",
        "BashOutput",
    ],
)
def test_our_own_tools_and_chatter_are_not(tool):
    assert not re.search(hooks.TOOLS, tool)


def test_a_group_runs_one_command_without_a_shell():
    groups = dict(hooks.groups(COMMAND))
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
    assert groups["PostToolUse"]["matcher"] == hooks.TOOLS
    assert groups["PostToolUse"]["hooks"][0]["async"] is True


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/v/bin/python", "args": ["-I", "-S", "/old/memd/hook.py", "Stop"]},
        {"command": "/usr/bin/env", "args": ["MEMD_VAULT=x", "python", "/old/memd/hook.py"]},
        {"command": "/home/u/.local/bin/memd", "args": ["hook"]},
        {"command": "/bin/sh", "args": ["/p/scripts/memd", "hook", "Stop"]},
        {"command": "python3", "args": ["-m", "memd", "hook"]},
        {"command": '"/home/u/my bin/memd" hook'},
        {"command": "memd hook"},
        {"command": "MEMD_VAULT=x nice -n10 memd --vault y hook"},
        {"command": "uvx", "args": ["--from", "/src/memd-checkout", "memd", "hook"]},
    ],
)
def test_an_entry_is_ours_by_what_it_runs(entry):
    assert hooks.is_ours({"type": "command", **entry})


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
        {"type": "http", "url": "http://127.0.0.1/memd/hook.py"},
        {"command": 7, "args": ["memd", "hook"]},
        {"command": "x", "args": [7, None, "hook"]},
        "memd hook",
        None,
    ],
)
def test_everything_else_is_somebody_else_s(entry):
    assert not hooks.is_ours(entry)
