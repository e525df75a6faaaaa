"""Has a model write up turns better than the rules can, far behind them. Only if `distill.writer` says so.

The rules' own text is always there first and stays whatever happens here: no model, a slow one, a reply
that cannot be proved from the record, a day's replies spent. Nothing waits for this room, and what the
model writes goes into that one summary and nowhere else: it is no event, and nobody acts on it. Here is
all the waiting; what may be asked and what becomes of it is decided in rewriting.py.
"""

import contextlib
from collections import Counter
from collections.abc import Callable
from functools import partial

import anyio

from memd import log
from memd.bell import Bell
from memd.config import DistillConfig
from memd.distill import dialogue, rewriting
from memd.distill.dialogue import Prompt
from memd.distill.parse import Refused, Written
from memd.distill.rewriting import Ledger
from memd.embeddings.base import ChatModel
from memd.errors import EngineFailed
from memd.models import Summary
from memd.store.database import Database

PAUSES_S = (30.0, 60.0, 120.0, 300.0, 900.0)
"""After each failure in a row; a model that is away costs little, and one that is back is soon found."""

_SPENT = "today's replies are spent: until tomorrow (UTC) turns stay as the rules wrote them"


class Rewriter:
    """Improves the titles and facts of the newest turns, one at a time."""

    name = "rewriter"

    def __init__(
        self,
        db: Database,
        writer: ChatModel,
        config: DistillConfig,
        clock: Callable[[], int],
        on_written: Callable[[], None],
        *,
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        """`clock` tells UTC ms; `on_written` is called, quickly, after a summary has changed."""
        self._db = db
        self._writer = writer
        self._config = config
        self._clock = clock
        self._on_written = on_written
        self._pauses_s = pauses_s
        self._bell = Bell()
        self._log = log.get(self.name)
        self._ledger = Ledger()
        self._waiting = 0
        self._outcomes: Counter[str] = Counter()
        self._failures: Counter[int] = Counter()
        self._in_a_row = 0
        self._why = ""

    async def run(self) -> None:
        """Write up for ever what was not yet, and rest when there is nothing, or nobody to do it."""
        while True:
            outcome = await self.write_next()
            if outcome == "failed":
                await anyio.sleep(self._pauses_s[min(self._in_a_row, len(self._pauses_s)) - 1])
            elif outcome is None:
                await self._bell.wait(self._config.interval_s)

    def nudge(self) -> None:
        """There may be a new turn."""
        self._bell.ring()

    def status(self) -> dict[str, object]:
        """What `memd status` shows of this room. `why` is the last thing that went wrong, in words."""
        spent = self._ledger.today(self._clock()).calls
        return {
            "written": self._outcomes["written"],
            "refused": self._outcomes["refused"],
            "failed": self._outcomes["failed"],
            "left_today": max(self._config.writer_daily - spent, 0),
            "waiting": self._waiting,
            "spent_today": spent,
            "model": self._writer.name,
            "why": self._why,
        }

    async def write_next(self) -> str | None:
        """Have one turn written up: `written`, `refused`, `changed` or `failed`; None if there is none."""
        look = await self._db.read(
            partial(
                rewriting.look,
                now=self._clock(),
                idle_ms=self._config.idle_s * 1000,
                failures=self._failures,
            )
        )
        self._ledger, self._waiting = look.ledger, look.waiting
        if look.turn is None:
            return None
        if look.ledger.calls >= self._config.writer_daily:
            self._why = _SPENT
            return None
        try:
            said = await self._converse(look.turn)
        except EngineFailed as error:
            self._failures[look.turn.id] += 1
            self._in_a_row += 1
            return self._count("failed", look.turn, error.message)
        self._in_a_row = self._failures[look.turn.id] = 0
        if said is None:
            self._why = _SPENT
            return None
        return await self._settle(look.turn, said)

    async def _converse(self, turn: Summary) -> Written | Refused | None:
        """What the model makes of a turn; None if the day's replies are spent before it is done."""
        with contextlib.closing(dialogue.write(turn)) as conversation:
            prompt = next(conversation)
            while await self._pay():
                reply = await self._ask(prompt)
                try:
                    prompt = conversation.send(reply)
                except StopIteration as end:
                    said: Written | Refused = end.value
                    return said
        return None

    async def _pay(self) -> bool:
        limit, now = self._config.writer_daily, self._clock()
        paid = await self._db.write(partial(rewriting.spend, limit=limit, now=now))
        self._ledger = paid or self._ledger
        return paid is not None

    async def _ask(self, prompt: Prompt) -> str:
        try:
            return await self._writer.complete(prompt.system, prompt.text, dialogue.SCHEMA)
        except EngineFailed:
            self._ledger = await self._db.write(partial(rewriting.give_back, now=self._clock()))
            raise

    async def _settle(self, turn: Summary, said: Written | Refused) -> str:
        now = self._clock()
        if isinstance(said, Refused):
            self._ledger = await self._db.write(partial(rewriting.leave, turn=turn, now=now))
            return self._count("refused", turn, said.reason)
        model = self._writer.name
        stands = await self._db.write(
            partial(rewriting.put, turn=turn, written=said, model=model, now=now)
        )
        if stands:
            self._on_written()
        return self._count("written" if stands else "changed", turn, "")

    def _count(self, outcome: str, turn: Summary, why: str) -> str:
        self._outcomes[outcome] += 1
        self._why = f"#{turn.id} {outcome}: {why}" if why else ""
        self._log.info("turn_written_up", summary=turn.id, outcome=outcome, why=why)
        return outcome
