"""The doer of judgments: takes a ruling, and says which memories one is asked about.

Redaction and looking for what is near happen before and after the transaction, off the loop. Not
here: what a ruling does (judging.py), what is like what (candidates.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import anyio.to_thread

from memd.consolidate import judging
from memd.consolidate.candidates import NEAR, NEAR_LEARNED, Candidate, Near, undecided
from memd.consolidate.judging import Judged, Ruling
from memd.consolidate.nearest import rows_of
from memd.errors import BadRequest
from memd.index.memory_index import MemoryIndex
from memd.store import judgments, summaries
from memd.store.database import Connection, Database
from memd.text import one_line, storable

__all__ = ["Candidate", "Judge", "Judged", "Ruling"]

REASON_CHARACTERS = 1_000
Cosines = tuple[Mapping[int, float], Mapping[int, float]]
"""Summary id → cosine, in the space that is always there and in the learned one that leads."""


class Judge:
    """Settles what two memories are to each other."""

    name = "judge"

    def __init__(
        self,
        db: Database,
        redact: Callable[[str], str],
        clock: Callable[[], int],
        on_written: Callable[[], None],
        index: MemoryIndex,
        space_name: str,
    ) -> None:
        self._db = db
        self._redact = redact
        self._clock = clock
        self._on_written = on_written
        self._index = index
        self._space_name = space_name

    async def judge(self, ruling: Ruling) -> Judged:
        """Let a ruling hold. BadRequest or UnknownId if it cannot, with what to do."""
        reason = self._redact(storable(ruling.reason).replace("\0", "")).strip()
        if not reason:
            raise BadRequest("say in a few words why (reason); it is shown to whoever asks why")
        ruling = replace(ruling, reason=one_line(reason, REASON_CHARACTERS))
        now = self._clock()
        return self._told(await self._db.write(lambda tx: judging.judge(tx, ruling, now)))

    async def undo(self, one_id: int, other_id: int) -> Judged:
        """Take back the judgment of a pair, or the supersession that a rule made."""
        now = self._clock()
        return self._told(
            await self._db.write(lambda tx: judging.undo(tx, one_id, other_id, now))
        )

    async def candidates(self, summary_id: int) -> tuple[Candidate, ...]:
        """What is like this memory, so that somebody should judge the pair; the most alike first."""
        cosines = await anyio.to_thread.run_sync(self._near, summary_id)
        now = self._clock()
        return await self._db.read(lambda tx: _undecided(tx, summary_id, cosines, now))

    def _told(self, judged: Judged) -> Judged:
        if judged.outcome != "unchanged":
            self._on_written()
        return judged

    def _near(self, summary_id: int) -> Cosines:
        near = self._alike(self._space_name, summary_id, NEAR)
        with self._index.lock:
            learned = self._index.learned if self._index.active == self._index.learned else None
        return near, self._alike(learned, summary_id, NEAR_LEARNED) if learned else {}

    def _alike(self, space: str, summary_id: int, threshold: float) -> dict[int, float]:
        rows = rows_of(self._index, space)
        if rows is None or summary_id not in rows.indexed([summary_id]):
            return {}
        found = rows.pairs([summary_id], threshold)
        if not rows.is_current():
            return {}
        return {one if other == summary_id else other: cosine for one, other, cosine in found}


def _undecided(
    tx: Connection, summary_id: int, cosines: Cosines, now: int
) -> tuple[Candidate, ...]:
    near, learned = cosines
    mine = summaries.get(tx, summary_id)
    ids: Sequence[int] = sorted(near.keys() | learned.keys())
    if mine is None or mine.superseded_by is not None or not ids:
        return ()
    settled = judgments.verdicts(tx, [summary_id])
    judged = {number for pair in settled for number in pair} - {summary_id}
    others = [
        Near(one, near.get(number, 0.0), learned.get(number, 0.0))
        for number, one in summaries.by_ids(tx, ids).items()
    ]
    return undecided(mine, others, judged, now)
