"""The logs on the team's server: one a project, author and device, each written by that device alone.

A log has one row a name, its newest. A row's number is greater than any before it in its log, so a follower
needs one number a log. The head of a log has the sum of its rows' marks: who has read to the head and has
another sum lost or missed something, be it because the server was restored, and compares row by row.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from memd.errors import BadRequest
from memd.sharing import team_server

if TYPE_CHECKING:
    import psycopg

ROWS_MAX = 500
"""Rows of one conversation."""
RANGE = 4_096
"""Numbers of a range, of which the marks are summed to find where two copies of a log differ."""
_HEAD = "SELECT label, seq, mark FROM memd.heads WHERE (project, author, device) = (%s, %s, %s)"
_LOCKED_HEAD = f"{_HEAD} FOR UPDATE"


class LogDiffers(BadRequest):
    """The log on the server is not the one that this device wrote last: compare the two first."""


@dataclass(frozen=True, slots=True, order=True)
class LogKey:
    """Whose log it is, and of which project."""

    project: str
    author: str
    device: str


@dataclass(frozen=True, slots=True)
class Head:
    """How far a log goes. `mark` is the sum of the marks of its rows."""

    key: LogKey
    label: str
    seq: int
    mark: int


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a log: the newest record of that name."""

    seq: int
    name: str
    record: str
    mark: int

    @property
    def is_whole(self) -> bool:
        """Whether it is what its author wrote."""
        return self.mark == compute_mark(self.seq, self.name, self.record)


def compute_mark(seq: int, name: str, record: str) -> int:
    """63 bits of a hash of a row."""
    digest = hashlib.sha256(f"{seq}\0{name}\0{record}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


@dataclass(eq=False)
class LogServer:
    """The logs that a database user may see. Every method blocks: ServerUnreachable, ServerRefused."""

    url: str
    connection: "psycopg.Connection[Any]"
    call_s: float = team_server.CALL_S

    @classmethod
    @contextmanager
    def open(cls, url: str, call_s: float = team_server.CALL_S) -> Iterator[Self]:
        """Connect for the time of the block."""
        with team_server.connect(url) as connection:
            there = cls(url, connection, call_s)
            with there._conversation():
                team_server.check_schema(connection, url)
            yield there

    @contextmanager
    def _conversation(self) -> Iterator["psycopg.Connection[Any]"]:
        """One transaction with a deadline, in which everything is seen as it was at its beginning."""
        with (
            team_server.translated(self.url),
            team_server.bounded(self.connection, self.call_s),
            self.connection.transaction(),
        ):
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield self.connection

    def list_roles(self) -> tuple[str, dict[str, str]]:
        """(who we are there, project → our role in it)."""
        with self._conversation() as connection:
            return team_server.read_roles(connection)

    def read_heads(self, projects: Iterable[str]) -> list[Head]:
        """The head of every log of these projects."""
        with self._conversation() as connection:
            rows = connection.execute(
                "SELECT project, author, device, label, seq, mark FROM memd.heads WHERE project = ANY(%s)"
                " ORDER BY project, author, device",
                [sorted(projects)],
            )
            return [Head(LogKey(*key), label, seq, int(mark)) for *key, label, seq, mark in rows]

    def read_log(self, key: LogKey, after: int) -> tuple[Head | None, list[Row]]:
        """The head of a log and its next rows; fewer than ROWS_MAX if they reach to the head."""
        with self._conversation() as connection:
            head = _read_head(connection, key)
            rows = connection.execute(
                "SELECT seq, name, record, mark FROM memd.records"
                " WHERE (project, author, device) = (%s, %s, %s) AND seq > %s ORDER BY seq LIMIT %s",
                [*_parts(key), after, ROWS_MAX],
            )
            return head, [Row(*row) for row in rows]

    def sum_ranges(self, key: LogKey) -> dict[int, int]:
        """Range of RANGE numbers → the sum of the marks of its rows."""
        with self._conversation() as connection:
            rows = connection.execute(
                "SELECT seq / %s, sum(mark) FROM memd.records"
                " WHERE (project, author, device) = (%s, %s, %s) GROUP BY 1",
                [RANGE, *_parts(key)],
            )
            return {int(number): int(mark) for number, mark in rows}

    def list_range(self, key: LogKey, number: int) -> dict[str, tuple[int, int]]:
        """Name → (number, mark) of all rows in one range."""
        with self._conversation() as connection:
            rows = connection.execute(
                "SELECT name, seq, mark FROM memd.records"
                " WHERE (project, author, device) = (%s, %s, %s) AND seq >= %s AND seq < %s",
                [*_parts(key), number * RANGE, (number + 1) * RANGE],
            )
            return {name: (seq, mark) for name, seq, mark in rows}

    def read_named(self, key: LogKey, names: Sequence[str]) -> list[Row]:
        """The rows of these names, in order."""
        with self._conversation() as connection:
            rows = connection.execute(
                "SELECT seq, name, record, mark FROM memd.records"
                " WHERE (project, author, device) = (%s, %s, %s) AND name = ANY(%s) ORDER BY seq",
                [*_parts(key), list(names)],
            )
            return [Row(*row) for row in rows]

    def append(
        self, before: Head, records: Sequence[tuple[str, str]]
    ) -> tuple[Head, dict[str, tuple[int, int]]]:
        """Append (name, record) to the own log, each instead of the row of that name.

        `before` is the head as this device knows it. Returns the new head and name → (number, mark).
        LogDiffers, and nothing is appended, if the log there is another one.
        """
        key = before.key
        with self._conversation() as connection:
            connection.execute(
                "INSERT INTO memd.heads (project, author, device, label, seq, mark)"
                " VALUES (%s, %s, %s, %s, 0, 0) ON CONFLICT DO NOTHING",
                [*_parts(key), before.label],
            )
            there = _read_head(connection, key, lock=True)
            if there is None or there.mark != before.mark:
                raise LogDiffers
            first = max(there.seq, before.seq) + 1
            rows = [
                Row(seq, name, record, compute_mark(seq, name, record))
                for seq, (name, record) in enumerate(records, first)
            ]
            replaced = _replace_rows(connection, key, rows)
            head = Head(
                key, before.label, first + len(rows) - 1,
                there.mark - replaced + sum(row.mark for row in rows),
            )  # fmt: skip
            connection.execute(
                "UPDATE memd.heads SET (label, seq, mark, written_at) = (%s, %s, %s, now())"
                " WHERE (project, author, device) = (%s, %s, %s)",
                [head.label, head.seq, head.mark, *_parts(key)],
            )
            connection.execute("NOTIFY memd")
            return head, {row.name: (row.seq, row.mark) for row in rows}

    def cut_off(self) -> None:
        """End the connection from another thread, so that whoever waits for it goes on."""
        team_server.cut_off(self.connection)

    def remove_log(self, key: LogKey) -> None:
        """Delete a log: one's own, or another's as a maintainer."""
        with self._conversation() as connection:
            connection.execute(
                "DELETE FROM memd.heads WHERE (project, author, device) = (%s, %s, %s)", _parts(key)
            )
            connection.execute("NOTIFY memd")

    def listen(self) -> None:
        """Ask to be told when somebody appends."""
        with self._conversation() as connection:
            connection.execute("LISTEN memd")

    def wait_for_news(self, timeout_s: float) -> bool:
        """Wait until somebody has appended, or for so many seconds; whether somebody has."""
        bound = team_server.bounded(self.connection, self.call_s + timeout_s)
        with team_server.translated(self.url), bound:
            return any(True for _ in self.connection.notifies(timeout=timeout_s, stop_after=1))


def _parts(key: LogKey) -> list[str]:
    return [key.project, key.author, key.device]


def _read_head(
    connection: "psycopg.Connection[Any]", key: LogKey, *, lock: bool = False
) -> Head | None:
    row = connection.execute(_LOCKED_HEAD if lock else _HEAD, _parts(key)).fetchone()
    return Head(key, row[0], row[1], int(row[2])) if row else None


def _replace_rows(connection: "psycopg.Connection[Any]", key: LogKey, rows: Sequence[Row]) -> int:
    """Insert rows in place of those with their names; the sum of the marks of what went."""
    gone = connection.execute(
        "DELETE FROM memd.records WHERE (project, author, device) = (%s, %s, %s) AND name = ANY(%s)"
        " RETURNING mark",
        [*_parts(key), [row.name for row in rows]],
    ).fetchall()
    connection.execute(
        "INSERT INTO memd.records (project, author, device, seq, name, mark, record)"
        " SELECT %s, %s, %s, * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::text[])",
        [*_parts(key), [row.seq for row in rows], [row.name for row in rows],
         [row.mark for row in rows], [row.record for row in rows]],
    )  # fmt: skip
    return sum(mark for (mark,) in gone)
