"""The writer with a real program, which does what a test wants."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

from memd.capture.redact import redact
from memd.config import DistillConfig
from memd.distill.writer import TurnWriter
from memd.embeddings.command import CommandChat, pick_environment
from memd.models import Authority
from tests.distill.written import Desk
from tests.fakes import writer

GOOD = json.dumps(
    {
        "title": "Login answers 401 for a garbage token",
        "facts": ["auth.py raised ValueError: decode_token expects three parts."],
    }
)
SECRET = "ghp_" + "a1B2" * 9


class Study(Desk):
    """A desk beside a program."""

    def __init__(self, db, clock, place):
        super().__init__(db, clock)
        self.place = place
        self.notes = place / "notes.jsonl"

    def writer(self, what, reply=GOOD, *, command=None, writer_daily=200):
        words = (sys.executable, writer.__file__, str(self.notes), what, reply)
        chat = CommandChat(
            command or words, deadline_s=60.0, directory=str(self.place / "writer"),
            environ=pick_environment(os.environ, ()), redact=redact,
        )  # fmt: skip
        config = DistillConfig(writer="command", writer_command=words, writer_daily=writer_daily)
        return TurnWriter(self.db, chat, config, self.clock, lambda: None, redact=redact)

    async def write(self, what, *args, **settings):
        rewriter = self.writer(what, *args, **settings)
        with anyio.fail_after(120):
            return await rewriter.write_next(), rewriter.status()

    def prompts(self):
        lines = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        return [one["prompt"] for one in map(json.loads, lines) if "prompt" in one]


@pytest.fixture
def study(db, clock, tmp_path):
    return Study(db, clock, tmp_path)


@pytest.mark.parametrize("reply", [GOOD, f"Sure! Here you are:\n```json\n{GOOD}\n```\nBye {{}}"])
async def test_a_program_improves_a_turn_and_is_named(study, reply):
    turn = await study.turn()
    outcome, status = await study.write("good", reply)
    now = await study.get(turn.id)
    assert (outcome, now.title) == ("written", "Login answers 401 for a garbage token")
    assert now.rule == f"turn, written by command/{Path(sys.executable).name}"
    assert (status["written"], status["left_today"], status["why"]) == (1, 199, "")
    cost = status["today"]
    assert (cost["calls"], cost["failed"]) == (1, 0)
    assert cost["characters_in"] > len(turn.body)
    assert cost["characters_out"] == len(reply) + 1
    assert cost["ms"] > 0
    assert status["ever"] == cost


async def test_what_a_program_writes_is_an_agent_s_word_at_most(study):
    turn = await study.turn()
    await study.write("good")
    assert (await study.get(turn.id)).authority is Authority.AGENT_TEXT
    other = await study.turn("t2")
    for before in (Authority.AGENT_CALL, Authority.TOOL_OUTPUT):
        await study.db.write(
            lambda tx, who=before: tx.execute(
                "UPDATE summaries SET authority = ?, rule = 'turn' WHERE id = ?",
                (who.code, other.id),
            )
        )
        await study.write("good")
        now = await study.get(other.id)
        assert now.title.startswith("Login answers 401")
        assert now.authority == min(before, Authority.AGENT_TEXT)
        await study.db.write(lambda tx: tx.execute("DELETE FROM meta WHERE key = 'writer'"))


async def test_a_secret_that_a_program_prints_goes_nowhere(study):
    turn = await study.turn()
    said = json.dumps({"title": "Login answers 401", "facts": [f"auth.py had {SECRET}."]})
    outcome, status = await study.write("good", said)
    assert outcome == "refused"
    assert SECRET not in json.dumps(status) + "".join(study.prompts())
    assert await study.get(turn.id) == turn


async def test_a_call_that_fails_is_paid_for(study):
    await study.turn()
    _, status = await study.write("crashing")
    assert (status["left_today"], status["today"]["failed"]) == (199, 1)


async def test_a_missing_program_costs_nothing_and_is_told(study):
    turn = await study.turn()
    outcome, status = await study.write("good", command=("no-such-program-here",))
    assert outcome == "failed"
    assert (status["left_today"], status["today"]["calls"]) == (200, 0)
    assert "no-such-program-here" in status["why"]
    assert await study.get(turn.id) == turn


async def test_a_missing_program_is_told_before_there_is_anything_to_write(study):
    rewriter = study.writer("good", command=("no-such-program-here",))
    async with anyio.create_task_group() as group:
        group.start_soon(rewriter.run)
        with anyio.fail_after(60):
            while not rewriter.status()["obstacle"]:  # noqa: ASYNC110  # a thread looks, and rings no bell
                await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    assert "no-such-program-here" in rewriter.status()["why"]


async def test_a_private_turn_is_not_sent_and_the_record_is_redacted(study):
    private = "Why does <private>the merger</private> login answer 500?"
    await study.turn("t1", private, "The cookies of the old host were expired and not renewed.")
    assert (await study.write("good"))[0] is None
    await study.turn("t2", prompt=f"Why does login answer 500 with the token {SECRET}?")
    assert (await study.write("good"))[0] == "written"
    (prompt,) = study.prompts()
    assert SECRET not in prompt
    assert "merger" not in prompt
    assert "cookies" not in prompt
