"""Cleans up behind what was erased, also behind a daemon that was killed before it could.

What a private prompt took out: at once, and again when what had been distilled of it is gone. What was
forgotten is cleaned up by whoever forgets it (consolidate/eraser.py); here only if that did not come to
its end. Not here: the marks (store/cleaning.py).
"""

from memd.store import cleaning
from memd.store.cleaning import Marks
from memd.store.database import Connection, Database


class Cleanup:
    """Over one vault; looks whenever it is told to."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen: Marks | None = None
        """The marks of the last look; None before the first, when all are a predecessor's."""
        self._done = 0
        """The mark of private turns up to which it was cleaned up once."""

    async def look(self) -> None:
        """Clean up what is due. Raises a VaultError; then it is due again."""
        marks, has_faded = await self._db.read(_look)
        private = marks.get("private", self._done)
        is_left = "forgotten" in marks and (self._seen is None or self._seen == marks)
        if is_left or private != self._done or (has_faded and "private" in marks):
            over = {what: n for what, n in marks.items() if what != "private" or has_faded}
            await cleaning.clean(self._db, over)
            self._done = private
        self._seen = marks


def _look(tx: Connection) -> tuple[Marks, bool]:
    marks = cleaning.due(tx)
    return marks, bool(marks) and cleaning.has_faded(tx)
