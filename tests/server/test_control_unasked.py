"""The calls about what is shown unasked, on a real socket; what is found is played."""

from dataclasses import replace

import anyio
import pytest

from memd.config import InjectConfig
from memd.errors import VaultBusy
from memd.server.injector import Injector

PROMPT = {
    "session_id": "s1",
    "cwd": "/p",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "where do sessions live",
    "prompt_id": "p1",
}


def captured(**fields):
    return {"client": "claude-code", "payload": PROMPT, "inject": True, **fields}


async def test_an_event_is_answered_with_what_there_is_to_show(house, connect):
    house.injector.text = "the text"
    async with house.open(), connect() as line:
        told = (await line.call("memd/capture", captured()))["result"]
        assert told["outcome"] == "stored"
        assert told["output"]["hookSpecificOutput"] == {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": "the text",
        }
        # A second copy of the hook: the agent has been shown it.
        again = (await line.call("memd/capture", captured()))["result"]
        assert (again["outcome"], "output" in again) == ("duplicate", False)
    ((asked, seq),) = house.injector.asked
    assert (asked.session, asked.moment, asked.prompt, seq) == (
        "s1",
        "prompt",
        PROMPT["prompt"],
        1,
    )


async def test_nothing_to_show_is_no_output(house, connect):
    async with house.open(), connect() as line:
        told = (await line.call("memd/capture", captured()))["result"]
    assert told == {"outcome": "stored", "seq": 1, "reason": None}


@pytest.mark.parametrize(
    "fields",
    [{"inject": False}, {"source": "spool"}, {"source": "import"}, {"payload": {"x": 1}},
     {"payload": {**PROMPT, "hook_event_name": "Stop"}}],
    ids=["not asked", "spool", "import", "refused", "another event"],
)  # fmt: skip
async def test_who_cannot_show_it_is_not_looked_for(house, connect, fields):
    house.injector.text = "the text"
    async with house.open(), connect() as line:
        told = (await line.call("memd/capture", captured(**fields)))["result"]
    assert "output" not in told
    assert house.injector.asked == []


async def test_a_session_that_is_not_kept_may_be_shown_something(house, connect):
    house.injector.text = "the text"
    async with house.open(), connect() as line:
        told = (await line.call("memd/capture", captured(capture=False)))["result"]
    assert (told["outcome"], told["seq"]) == ("filtered", None)
    assert "output" in told


async def test_what_would_be_shown_is_told(house, connect):
    house.injector.text = "the text"
    async with house.open(), connect() as line:
        told = (await line.call("memd/context", {"directory": "/p"}))["result"]
        assert (told["moment"], told["text"], told["tokens"]) == ("startup", "the text", 2)
        told = (await line.call("memd/context", {"prompt": "why"}))["result"]
        assert told["moment"] == "prompt"
        refused = await line.call("memd/context", {"moment": "prompt"})
        assert "prompt: say what" in refused["error"]["message"]
        refused = await line.call("memd/context", {"session": "unknown"})
        assert "there is no 'unknown'" in refused["error"]["message"]


async def test_what_was_shown_is_told_by_the_beginning_of_the_session(house, connect):
    async with house.open(), connect() as line:
        await line.call("memd/capture", captured())
        told = (await line.call("memd/injected", {"session": "s"}))["result"]
    assert (told["session"], told["title"]) == ("s1", PROMPT["prompt"])
    assert told["injections"][0]["reason"] == "played"


class Troubled:
    """Looks for ever, or in vain."""

    def __init__(self, error):
        self.error = error

    async def look(self, *_, **__):
        if self.error is None:
            await anyio.sleep_forever()
        raise self.error


@pytest.mark.parametrize("error", [None, VaultBusy("busy"), TypeError("a mistake")], ids=str)
async def test_an_event_is_acknowledged_though_looking_is_slow_or_fails(house, connect, error):
    config = InjectConfig(prompt_s=0.05)
    injector = Injector(house.db, Troubled(error), config, house.clock)
    house.app = replace(house.app, injector=injector)
    async with house.open(), connect() as line, anyio.create_task_group() as tasks:
        tasks.start_soon(injector.run)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(60):
            told = (await line.call("memd/capture", captured()))["result"]
        tasks.cancel_scope.cancel()
    assert told == {"outcome": "stored", "seq": 1, "reason": None}
    assert injector.status()["late" if error is None else "failed"] == 1
