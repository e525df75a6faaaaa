"""What was erased leaves no byte: marked in the transaction that erases, cleaned up, and only then unmarked.

The words of a deleted row stand on in the full texts' segments and in the write-ahead log until those are
written anew. Whoever is killed on the way leaves the mark, and the next daemon cleans up. Not here: what is
erased, and when to clean up (capture/cleanup.py, consolidate/eraser.py).
"""

from collections.abc import Mapping
from typing import Literal

import anyio.to_thread
import apsw

from memd.store import books, changes, fulltext, saved, turns
from memd.store.database import Database
from memd.text import PRIVATE

Erased = Literal["forgotten", "private"]
"""Because somebody asked for it, or because a prompt came late that made its turn private."""
_KINDS: tuple[Erased, ...] = ("forgotten", "private")
Marks = Mapping[Erased, int]
COMPACT_BYTES_MAX = 128 * 1024 * 1024
"""Written anew within some two seconds, and as much memory for as long."""


def mark(tx: apsw.Connection, what: Erased) -> None:
    """Note that something was erased; in the transaction that erases it."""
    books.write_note(tx, f"erased {what}", str(_number(tx, f"erased {what}") + 1))
    saved.drop(tx)


def due(tx: apsw.Connection) -> dict[Erased, int]:
    """The marks of what was erased and not cleaned up behind; each time the number is another one."""
    found = {what: _number(tx, f"erased {what}") for what in _KINDS}
    return {what: n for what, n in found.items() if n != _number(tx, f"cleaned {what}")}


def has_faded(tx: apsw.Connection) -> bool:
    """Whether nothing is remembered any more of what private prompts took out: all is distilled anew."""
    pending = (
        "SELECT EXISTS (SELECT 1 FROM events WHERE distilled = 0 AND kind = 'prompt'"
        " AND payload ->> '$.prompt' = ?)"
    )
    return not changes.count(tx) and not tx.execute(pending, (PRIVATE,)).get


async def clean(db: Database, over: Marks) -> None:
    """Write the full texts, the file and the log anew, and take these marks off.

    SQLite overwrites what is deleted, but not what it has moved from one page to another before that: a
    file that is not large is written anew for it, as by `memd vacuum`, which does it for any.
    They stay if a reader keeps the log from being emptied: then it is due again. Raises a VaultError.
    """
    await db.write(fulltext.purge)
    await db.write(turns.purge)
    if await anyio.to_thread.run_sync(db.size) <= COMPACT_BYTES_MAX:
        await db.compact()
    if await db.scrub():
        await db.write(lambda tx: _unmark(tx, over))


def _unmark(tx: apsw.Connection, over: Marks) -> None:
    for what, number in over.items():
        books.write_note(tx, f"cleaned {what}", str(number))


def _number(tx: apsw.Connection, key: str) -> int:
    return int(books.note(tx, key) or 0)
