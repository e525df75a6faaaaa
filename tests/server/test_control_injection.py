"""The control calls about injected context, over a real socket, with a fake injector."""

from dataclasses import replace

import anyio
import pytest

from memd.config import InjectConfig
from memd.errors import VaultBusy
from memd.injection.builder import ContextDraft
from memd.injection.injector import Injector
from memd.injection.moments import InjectedContext, InjectionMoment

PROMPT = {
    "session_id": "s1",
    "cwd": "/p",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "where do sessions live",
    "prompt_id": "p1",
}


def captured(**fields):
    return {"client": "claude-code", "payload": PROMPT, "inject": True, **fields}


async def test_an_event_is_answered_with_the_context_to_inject(server, connect):
    server.injector.text = "the text"
    async with server.open(), connect() as client:
        reply = (await client.call("memd/capture", captured()))["result"]
        assert reply["outcome"] == "stored"
        assert reply["output"]["hookSpecificOutput"] == {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": "the text",
        }
        # A second copy of the hook sends it again: the agent has the context already.
        again = (await client.call("memd/capture", captured()))["result"]
        assert (again["outcome"], "output" in again) == ("duplicate", False)
    (moment,) = server.injector.moments
    assert (moment.session, moment.name, moment.prompt, moment.event_id) == (
        "s1",
        "prompt",
        PROMPT["prompt"],
        1,
    )


async def test_without_context_there_is_no_output(server, connect):
    async with server.open(), connect() as client:
        reply = (await client.call("memd/capture", captured()))["result"]
    assert reply == {"outcome": "stored", "seq": 1, "reason": None}


@pytest.mark.parametrize(
    "fields",
    [{"inject": False}, {"source": "spool"}, {"source": "import"}, {"payload": {"x": 1}},
     {"payload": {**PROMPT, "hook_event_name": "Stop"}}],
    ids=["not asked", "spool", "import", "refused", "another event"],
)  # fmt: skip
async def test_no_context_is_built_that_cannot_be_shown(server, connect, fields):
    server.injector.text = "the text"
    async with server.open(), connect() as client:
        reply = (await client.call("memd/capture", captured(**fields)))["result"]
    assert "output" not in reply
    assert server.injector.moments == []


async def test_context_is_injected_into_a_session_that_is_not_captured(server, connect):
    server.injector.text = "the text"
    async with server.open(), connect() as client:
        reply = (await client.call("memd/capture", captured(capture=False)))["result"]
    assert (reply["outcome"], reply["seq"]) == ("filtered", None)
    assert "output" in reply


async def test_a_session_of_the_writer_is_shown_nothing(server, connect):
    server.injector.text = "the text"
    async with server.open(), connect() as client:
        own = captured(payload={**PROMPT, "cwd": "/w/default"})
        reply = (await client.call("memd/capture", own))["result"]
    assert (reply["outcome"], reply["reason"]) == ("filtered", "a session of memd's own writer")
    assert "output" not in reply
    assert server.injector.moments == []


async def test_memd_context_previews_the_context(server, connect):
    server.injector.text = "the text"
    async with server.open(), connect() as client:
        reply = (await client.call("memd/context", {"directory": "/p"}))["result"]
        assert (reply["moment"], reply["text"], reply["tokens"]) == ("startup", "the text", 2)
        reply = (await client.call("memd/context", {"prompt": "why"}))["result"]
        assert reply["moment"] == "prompt"
        refused = await client.call("memd/context", {"moment": "prompt"})
        assert "prompt: say what" in refused["error"]["message"]
        refused = await client.call("memd/context", {"session": "unknown"})
        assert "there is no 'unknown'" in refused["error"]["message"]


async def test_memd_injected_lists_injections_by_the_beginning_of_the_session(server, connect):
    async with server.open(), connect() as client:
        await client.call("memd/capture", captured())
        reply = (await client.call("memd/injected", {"session": "s"}))["result"]
    assert (reply["session"], reply["title"]) == ("s1", PROMPT["prompt"])
    assert reply["injections"][0]["reason"] == "fake"
    assert reply["learned"] == 0


class FailingBuilder:
    """Never ends, or fails; already as it opens the context, as it searches ahead, or as it builds it."""

    def __init__(self, where, error):
        self.where, self.error = where, error

    def begin_draft(self, moment):
        if self.where == "open":
            raise self.error
        return ContextDraft(moment)

    async def search_ahead(self, draft):
        await self.fail("ahead")
        return draft

    async def build(self, *_, **__):
        await self.fail("build")
        return InjectedContext("nothing", "late" if self.where == "ahead" else None)

    async def fail(self, where):
        if where != self.where:
            return
        if self.error is None:
            await anyio.sleep_forever()
        raise self.error


@pytest.mark.parametrize(
    ("where", "error"),
    [("build", None), ("ahead", None), ("build", VaultBusy("busy")), ("build", TypeError("a mistake"))],
    ids=str,
)  # fmt: skip
async def test_an_event_is_acknowledged_though_building_the_context_is_slow_or_fails(
    server, connect, where, error
):
    config = InjectConfig(prompt_s=0.05 if error is None else 5)
    injector = Injector(server.db, FailingBuilder(where, error), config, server.clock)
    server.app = replace(server.app, injector=injector)
    async with server.open(), connect() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(injector.run)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(60):
            reply = (await client.call("memd/capture", captured()))["result"]
        tasks.cancel_scope.cancel()
    assert reply == {"outcome": "stored", "seq": 1, "reason": None}
    assert injector.status()["late" if error is None else "failed"] == 1


async def test_what_goes_wrong_before_the_event_is_stored_costs_neither_it_nor_its_context(
    server, connect
):
    builder = FailingBuilder("ahead", VaultBusy("busy"))
    injector = Injector(server.db, builder, InjectConfig(prompt_s=5), server.clock)
    server.app = replace(server.app, injector=injector)
    async with server.open(), connect() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(injector.run)
        await anyio.wait_all_tasks_blocked()
        reply = (await client.call("memd/capture", captured()))["result"]
        assert reply["output"]["hookSpecificOutput"]["additionalContext"] == "late"
        builder.where, builder.error = "open", TypeError("a mistake")
        again = captured(payload={**PROMPT, "prompt_id": "p2"})
        assert "output" not in (await client.call("memd/capture", again))["result"]
        tasks.cancel_scope.cancel()


class GatedBuilder(FailingBuilder):
    """Writes one page as soon as it may."""

    def __init__(self):
        super().__init__("nowhere", None)
        self.has_begun, self.may_end = anyio.Event(), anyio.Event()

    async def build(self, *_, **__):
        self.has_begun.set()
        await self.may_end.wait()
        return InjectedContext("1 of 1 shown", "the page")


async def test_a_page_that_its_hook_no_longer_waited_for_is_told_when_that_hook_asks_again(
    server, connect, eventually
):
    builder = GatedBuilder()
    config = InjectConfig(session_s=5, prompt_s=5)
    injector = Injector(server.db, builder, config, server.clock)
    server.app = replace(server.app, injector=injector)
    payload = {"session_id": "s1", "cwd": "/p", "hook_event_name": "SessionStart", "source": "startup"}  # fmt: skip
    start = captured(payload=payload)
    async with server.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(injector.run)
        await anyio.wait_all_tasks_blocked()
        async with connect() as hook:
            await hook.send({"id": 1, "jsonrpc": "2.0", "method": "memd/capture", "params": start})
            await builder.has_begun.wait()
        builder.may_end.set()
        await eventually(lambda: injector.status()["pending"] == 0 and injector.status()["asked"])
        async with connect() as hook:
            again = (await hook.call("memd/capture", start))["result"]
            assert again["outcome"] == "duplicate"
            assert again["output"]["hookSpecificOutput"]["additionalContext"] == "the page"
            assert "output" not in (await hook.call("memd/capture", start))["result"]
            told = (await hook.call("memd/injected", {"session": "s1"}))["result"]
        tasks.cancel_scope.cancel()
    assert [one["text"] for one in told["texts"]] == ["the page"]
    assert [one["why"] for one in told["untold"]] == ["the hook had given up waiting"]


async def test_words_that_a_session_was_told_prove_its_note_before_they_are_written(
    server, connect
):
    said = "Prices stay integer cents everywhere, no floats."
    injector = Injector(server.db, FailingBuilder("build", None), InjectConfig(), server.clock)
    server.app = replace(server.app, injector=injector)
    agent = {"client": "claude-code", "session": "s2", "speaker": "agent", "cwd": "/p"}
    async with server.open(), connect(agent) as client:
        for number, prompt in (1, f"Give the shop a cart. {said}"), (2, "Now the orders"):
            payload = {**PROMPT, "session_id": f"s{number}", "prompt": prompt, "prompt_id": f"p{number}"}  # fmt: skip
            await client.call("memd/capture", captured(payload=payload, inject=False))
        moment = InjectionMoment("claude-code", "s2", "start", "SessionStart")
        injector.note_told(moment, f"Said lately:\n“{said}”")
        note = {"text": said, "kind": "decision", "quote": said, "directory": "/p"}
        noted = (await client.call("memd/remember", note))["result"]
    assert noted["proof"]["quote"] == said
