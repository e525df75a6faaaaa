"""Whether the vault can be written just now; while it cannot, asked again and again with one small write.

So a disk that has room again is noticed where no agent says anything, and a spool that cannot be taken
in costs one row at a time. Not here: what to do about it (the intake), or what went wrong (the store).
"""

import functools

import anyio.to_thread

from memd import log
from memd.capture import spool
from memd.errors import MemdError
from memd.store import books
from memd.store.database import Database


class Outage:
    """Begins with a write that failed, ends with one that did not."""

    def __init__(self, db: Database, spool_dir: str) -> None:
        self._db = db
        self._spool_dir = spool_dir
        self._failing: MemdError | None = None
        self._is_reserve_due = True

    def begin(self, error: MemdError) -> None:
        """Take note of a write that failed."""
        if self._failing is None:
            log.get("intake").error("vault_not_written", error=error.message)
        self._failing = error

    def end(self) -> None:
        """Take note of a write that did not fail."""
        if self._failing is not None:
            log.get("intake").info("vault_written_again")
            self._is_reserve_due = True
        self._failing = None

    async def is_over(self) -> bool:
        """Whether the vault can be written: by trying, if it could not be before."""
        if self._failing is not None:
            try:
                await self._db.write(books.touch)
            except MemdError as error:
                self.begin(error)
                return False
            self.end()
        if self._is_reserve_due:
            # Where there is no room for it now, there may be after the next outage.
            self._is_reserve_due = False
            keep = functools.partial(spool.keep_reserve, self._spool_dir)
            await anyio.to_thread.run_sync(keep)
        return True

    def told(self) -> dict[str, str | None]:
        """Its error's name as `failing`, and `why_failing` in words; None when there is none."""
        error = self._failing
        return {
            "failing": type(error).__name__ if error is not None else None,
            "why_failing": error.message if error is not None else None,
        }
