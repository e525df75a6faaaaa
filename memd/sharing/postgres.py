"""Logs in a team's PostgreSQL: one a project, author and device, each written by that device alone.

A log has one row a name, its newest. A row's number is greater than any before it in its log, so a reader
needs one number a log. The head of a log has the sum of its rows' marks: who has read to the head and has
another sum lost or missed something, be it because the server was restored, and reads the log again.

No sequence, transaction id, advisory lock or gap of the server means anything, so any engine that speaks PostgreSQL will
do. Every key begins with the project: beyond some hundred million rows, partition `memd.records` and `memd.heads` by it.

A row says what one device says of one memory, in words that every memd of a team reads: the whole memory, or that it is
withdrawn (superseded, expired, unshared) or forgotten. `version` has the record's generation, rank and stamp; rows of a
former memd have none.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memd.errors import BadRequest, RecordTooNew
from memd.models import Authority, Draft, Kind
from memd.sharing import team_server
from memd.sharing.records import (
    FORGET,
    MEMORY,
    LogBatch,
    LogRow,
    PlaceUnreachable,
    Record,
    RefusedChunk,
    Stamp,
    erasure_rank,
    group_by_size,
    make_ref,
    split_ref,
)
from memd.sharing.records import TEAM_FORMAT as FORMAT
from memd.store import Fields
from memd.store.sharing import TEAM_SOURCE
from memd.text import digest, one_line

if TYPE_CHECKING:
    import psycopg

ROWS_MAX = 200
"""Rows of one conversation."""
CALL_CHARACTERS_MAX = 4 * 1024 * 1024
"""Characters of the rows that are appended in one conversation."""
IS_BEHIND = "the server lost a part of this log; its device sends it again"
_HEAD = "SELECT label, seq, mark FROM memd.heads WHERE (project, author, device) = (%s, %s, %s)"
_LOCKED_HEAD = f"{_HEAD} FOR UPDATE"
_EMPTY = "empty"
"""How a log is described that has not begun."""


class LogId(NamedTuple):
    """Identity of a log: project, author, device."""

    project: str
    author: str
    device: str

    @property
    def name(self) -> str:
        """Return the name by which a reader knows the log."""
        return f"{self.author} {self.device}"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a log. `mark` is the sum of the marks of its rows."""

    key: LogId
    label: str
    seq: int
    mark: int

    @property
    def position(self) -> str:
        """Return the position of a reader that has read all of it."""
        return f"{self.seq} {self.mark}"


def compute_mark(seq: int, name: str, text: str) -> int:
    """63 bits of a hash of a row."""
    digest = hashlib.sha256(f"{seq}\0{name}\0{text}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


@dataclass(eq=False)
class LogServer:
    """A connection to the server of the logs. Every method blocks: ServerUnreachable, ServerRefused."""

    url: str
    connection: "psycopg.Connection[Any]"
    call_s: float = team_server.CALL_S

    @classmethod
    @contextmanager
    def open(cls, url: str, call_s: float = team_server.CALL_S) -> Iterator[Self]:
        """Connect for the time of the block."""
        with team_server.connect(url) as connection:
            there = cls(url, connection, call_s)
            with there.conversation():
                team_server.check_schema(connection, url)
            yield there

    @contextmanager
    def conversation(self) -> Iterator["psycopg.Connection[Any]"]:
        """Open a transaction with a deadline, which sees everything as it was at its beginning."""
        with (
            team_server.translated(self.url),
            team_server.bounded(self.connection, self.call_s),
            self.connection.transaction(),
        ):
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield self.connection

    def list_roles(self) -> tuple[str, dict[str, str]]:
        """Return (the user's name on the server, project → the user's role in it)."""
        with self.conversation() as connection:
            return team_server.read_roles(connection)

    def read_heads(self, project: str) -> list[Head]:
        """The head of every log of a project."""
        with self.conversation() as connection:
            rows = connection.execute(
                "SELECT project, author, device, label, seq, mark FROM memd.heads WHERE project = %s"
                " ORDER BY author, device",
                [project],
            )
            return [Head(LogId(*key), label, seq, int(mark)) for *key, label, seq, mark in rows]

    def cut_off(self) -> None:
        """End the connection from another thread, so that a blocked call returns."""
        team_server.cut_off(self.connection)

    def remove_log(self, key: LogId) -> None:
        """Delete a log: one's own, or another's as a maintainer."""
        with self.conversation() as connection:
            connection.execute(
                "DELETE FROM memd.heads WHERE (project, author, device) = (%s, %s, %s)", key
            )
            connection.execute("NOTIFY memd")

    def listen(self) -> None:
        """Ask to be told when somebody appends."""
        with self.conversation() as connection:
            connection.execute("LISTEN memd")

    def wait_for_news(self, timeout_s: float) -> bool:
        """Wait at most this many seconds until somebody appends; return whether somebody did."""
        bound = team_server.bounded(self.connection, self.call_s + timeout_s)
        with team_server.translated(self.url), bound:
            return any(True for _ in self.connection.notifies(timeout=timeout_s, stop_after=1))


@dataclass(eq=False)
class PostgresTransport:
    """The logs of a project, as one device of one author sees them. Conforms to Transport."""

    server: LogServer
    key: LogId
    """Of the own log."""
    label: str
    form: str = ""
    writes: bool = True
    """Whether the author may write there; else nothing is appended."""
    appended: int = field(default=0, init=False)
    """Rows that were written."""

    def list_logs(self) -> set[str]:
        """List the logs of the other authors: the user's own devices sync by their own target."""
        return {head.key.name for head in self._list_heads()}

    def _list_heads(self) -> list[Head]:
        heads = self.server.read_heads(self.key.project)
        return [head for head in heads if head.key.author != self.key.author]

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    def read(
        self, positions: Mapping[str, str], *, only_erasures: bool = False
    ) -> Iterator[LogBatch | RefusedChunk]:
        """Yield what follows these positions in every log. A log has no row of what was forgotten."""
        for head in [] if only_erasures else self._list_heads():
            yield from self._read_log(head, positions.get(head.key.name, ""))

    def _read_log(self, head: Head, position: str) -> Iterator[LogBatch | RefusedChunk]:
        after = int(position.partition(" ")[0] or 0)
        if head.seq < after:
            yield RefusedChunk(head.key.name, "", IS_BEHIND)
            return
        while position != head.position:
            with self.server.conversation() as connection:
                there = _read_head(connection, head.key)
                rows = connection.execute(
                    "SELECT seq, name, record, mark FROM memd.records"
                    " WHERE (project, author, device) = (%s, %s, %s) AND seq > %s ORDER BY seq LIMIT %s",
                    [*head.key, after, ROWS_MAX],
                ).fetchall()
            if there is None:
                return
            head, first = there, not after
            after = rows[-1][0] if len(rows) == ROWS_MAX else head.seq
            position = head.position if after == head.seq else str(after)
            yield self._make_batch(head, position, rows, is_first=first)

    def _make_batch(
        self, head: Head, position: str, rows: Iterable[tuple[Any, ...]], *, is_first: bool
    ) -> LogBatch:
        records, noted, newer = [], [], []
        for seq, name, text, mark in rows:
            state, reason = "", ""
            try:
                if mark != compute_mark(seq, name, text):
                    raise BadRequest("it is damaged: its mark is not that of its words")  # noqa: TRY301  # as what it says
                records.append(read_row(name, text))
            except RecordTooNew as error:
                state, reason = "newer", error.message
                newer.append(reason)
            except BadRequest as error:
                state, reason = "refused", error.message
            noted.append(LogRow(name, seq, mark, state, reason))
        return LogBatch(
            head.key.name,
            head.label,
            position,
            tuple(records),
            tuple(newer),
            is_first,
            tuple(noted),
        )

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────

    def describe_own(self, position: str) -> str:  # noqa: ARG002  # a transport's
        """The end of the own log."""
        if not self.writes:
            return _EMPTY
        with self.server.conversation() as connection:
            head = _read_head(connection, self.key)
        return head.position if head else _EMPTY

    def append(self, records: Sequence[Record], position: str, now: int) -> str:
        """Make the own log state all that its device shares; return the position of its new end."""
        return self.rewrite(records, position, now)

    def rewrite(self, records: Sequence[Record], position: str, now: int) -> str:  # noqa: ARG002  # a transport's
        """Make the own log state these records, by as few rows as that needs.

        What somebody withdrew or forgot has a row if a log of the author says it; what they are silent about stays.
        """
        if not self.writes:
            return position
        with self.server.conversation() as connection:
            head = _read_head(connection, self.key) or Head(self.key, self.label, 0, 0)
            known = self._read_known(connection, records)
        last = int(position.partition(" ")[0] or 0)
        changed = self._find_changed(records, known)
        for group in group_by_size(changed, lambda row: len(row[1]), CALL_CHARACTERS_MAX, ROWS_MAX):
            head = self._append(head, group, last)
        return head.position

    def _read_known(
        self, connection: "psycopg.Connection[Any]", records: Sequence[Record]
    ) -> dict[str, tuple[int, int]]:
        """Name → (number, mark) of every row of the own log; (0, 0) of what is only in the author's other logs."""
        retracted = [
            row_name(one) for one in records
            if _has_no_words(one) and one.stamp != NOWHERE
        ]  # fmt: skip
        others = connection.execute(
            "SELECT DISTINCT name FROM memd.records WHERE (project, author) = (%s, %s)"
            " AND device <> %s AND name = ANY(%s)",
            [*self.key, retracted],
        ).fetchall()
        rows = connection.execute(
            "SELECT name, seq, mark FROM memd.records WHERE (project, author, device) = (%s, %s, %s)",
            self.key,
        )
        return {name: (0, 0) for (name,) in others} | {
            name: (seq, mark) for name, seq, mark in rows
        }

    def _find_changed(
        self, records: Sequence[Record], known: Mapping[str, tuple[int, int]]
    ) -> Iterator[tuple[str, str]]:
        """(name, text) of every row that is not there as it should be."""
        for record in records:
            name, text = row_name(record), write_row(record)
            there = known.get(name)
            if _has_no_words(record) and (
                there is None or (there == (0, 0) and record.stamp == NOWHERE)
            ):
                continue
            if there is None or there[1] != compute_mark(there[0], name, text):
                yield name, text

    def _append(self, before: Head, changed: Sequence[tuple[str, str]], last: int) -> Head:
        """Append rows, each instead of the row of its name; the new head."""
        with self.server.conversation() as connection:
            connection.execute(
                "INSERT INTO memd.heads (project, author, device, label, seq, mark)"
                " VALUES (%s, %s, %s, %s, 0, 0) ON CONFLICT DO NOTHING",
                [*self.key, self.label],
            )
            there = _read_head(connection, self.key, lock=True)
            if there is None or there.mark != before.mark:
                raise PlaceUnreachable("another process writes the same log; it is tried again")
            # Above every number that a reader may have read before the server was restored.
            first = max(there.seq, last) + 1
            rows = [
                (seq, name, compute_mark(seq, name, text), text)
                for seq, (name, text) in enumerate(changed, first)
            ]
            replaced = _replace_rows(connection, self.key, rows)
            mark = there.mark - replaced + sum(row[2] for row in rows)
            head = Head(self.key, self.label, first + len(rows) - 1, mark)
            connection.execute(
                "UPDATE memd.heads SET (label, seq, mark, written_at) = (%s, %s, %s, now())"
                " WHERE (project, author, device) = (%s, %s, %s)",
                [head.label, head.seq, head.mark, *self.key],
            )
            connection.execute("NOTIFY memd")
        self.appended += len(rows)
        return head


def withdraw(uid: str) -> Record:
    """Make the record of a memory that is not shared here, which overrules no other device."""
    return Record(MEMORY, (make_ref(uid, 0),), 0, NOWHERE, None)


def _has_no_words(record: Record) -> bool:
    return record.kind != MEMORY or record.value is None


def _read_head(
    connection: "psycopg.Connection[Any]", key: LogId, *, lock: bool = False
) -> Head | None:
    row = connection.execute(_LOCKED_HEAD if lock else _HEAD, key).fetchone()
    return Head(key, row[0], row[1], int(row[2])) if row else None


def _replace_rows(
    connection: "psycopg.Connection[Any]", key: LogId, rows: Sequence[tuple[int, str, int, str]]
) -> int:
    """Insert rows in place of those with their names; return the sum of the marks of the replaced ones."""
    seqs, names, marks, texts = map(list, zip(*rows, strict=True))
    gone = connection.execute(
        "DELETE FROM memd.records WHERE (project, author, device) = (%s, %s, %s) AND name = ANY(%s)"
        " RETURNING mark",
        [*key, names],
    ).fetchall()
    connection.execute(
        "INSERT INTO memd.records (project, author, device, seq, name, mark, record)"
        " SELECT %s, %s, %s, * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::text[])",
        [*key, seqs, names, marks, texts],
    )
    return sum(mark for (mark,) in gone)


# ── Records as rows of a log ──────────────────────────────────────────────────────────────────────

SHARED_KINDS = (
    Kind.DECISION, Kind.FIX, Kind.FAILURE, Kind.CHANGE, Kind.DISCOVERY, Kind.FACT, Kind.NOTE,
)  # fmt: skip
"""Kinds that a team sees. Preferences, tasks and sessions are one person's own."""
NOWHERE = Stamp(0, 0, "")
"""The stamp of what was never changed, only not shared here (any more): it stands against no other device."""
_TITLE_CHARACTERS_MAX = 500
_TEXT_CHARACTERS_MAX = 256 * 1024
_LIST_MAX = 1_000
_TIME_MAX = 2**53
_VERSION_PARTS = 5

_Text = Annotated[
    str,
    Field(max_length=4 * _TITLE_CHARACTERS_MAX),
    AfterValidator(lambda text: text.replace("\0", "")),
]
_Texts = Annotated[list[_Text], Field(max_length=_LIST_MAX)]
_Time = Annotated[int, Field(ge=0, le=_TIME_MAX)]
_Share = Annotated[float, Field(ge=0, le=1)]
_VERSION = TypeAdapter(tuple[_Time, _Time, _Time, _Time, str], config=ConfigDict(strict=True))
"""Generation, rank and stamp."""


class _MemoryFields(BaseModel):
    """The words of a row about a memory, beside what only a newer memd knows."""

    model_config = ConfigDict(strict=True)
    kind: str
    title: _Text
    body: Annotated[
        str,
        Field(max_length=_TEXT_CHARACTERS_MAX),
        AfterValidator(lambda text: text.replace("\0", "")),
    ]
    topic_key: _Text | None = None
    tags: _Texts
    files: _Texts
    at: _Time
    expires_at: _Time | None = None
    confidence: _Share
    quality: _Share


def shared_kinds(*, has_instructions: bool) -> tuple[Kind, ...]:
    """The kinds that are shared: instructions only on purpose, because teammates' agents follow them."""
    return (*SHARED_KINDS, Kind.INSTRUCTION) if has_instructions else SHARED_KINDS


def row_name(record: Record) -> str:
    """The name of a record's row: the uid of its memory."""
    return record.name[0] if record.kind == FORGET else split_ref(record.name[0])[0]


def write_row(record: Record) -> str:
    """A record as a row: one line of JSON, the same for the same record."""
    fields: Fields = {"format": FORMAT, "state": "shared", **record.extra.get("record", {})}
    if record.kind == FORGET:
        fields["state"] = "forgotten"
    elif record.value is None:
        fields["state"] = "withdrawn"
    else:
        fields["memory"] = {**record.extra.get("value", {}), **record.value}
    if (stamp := record.stamp) != NOWHERE:
        generation = record.rank // 2 if record.kind == FORGET else split_ref(record.name[0])[1]
        fields["version"] = [generation, record.rank, stamp.wall, stamp.counter, stamp.device]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "replace").decode()


def read_row(name: str, text: str) -> Record:
    """Check a row that a teammate wrote and return its record. BadRequest if no memd would write it.

    RecordTooNew if this memd cannot understand it.
    """
    try:
        found = json.loads(text)
        if "\\u" in text:
            # Half a surrogate pair is no text that the vault could keep.
            json.dumps(found, ensure_ascii=False).encode()
        state = found["state"]
        if type(found["format"]) is not int or found["format"] > FORMAT:
            raise RecordTooNew(f"format {str(found['format'])[:20]}")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadRequest("it is no record of a team's memory") from None
    generation, rank, stamp = _read_version(found.get("version"))
    if state == "forgotten":
        return Record(FORGET, (name,), erasure_rank(generation, is_forgotten=True), stamp, {})
    ref = (make_ref(name, generation),)
    if state == "withdrawn":
        return Record(MEMORY, ref, rank, stamp, None)
    fields = found.get("memory")
    if isinstance(state, str) and state != "shared":
        raise RecordTooNew(f"state {state[:40]}")
    if state != "shared" or not isinstance(fields, dict):
        raise BadRequest("it is no record of a team's memory")
    value = _read_memory(fields)
    unknown = {one: fields[one] for one in fields.keys() - value.keys()}
    extra = {"value": unknown} if unknown else {}
    if isinstance(beside := found.get("beside"), list):
        extra["record"] = {"beside": [one for one in beside[:_LIST_MAX] if isinstance(one, str)]}
    if stamp == NOWHERE:
        # A former memd does not say whose word it is: then the last one holds.
        rank, stamp = Authority.USER_HAND.code, Stamp(value["at"], 0, "")
    return Record(MEMORY, ref, rank, stamp, value, extra)


def _read_version(found: Any) -> tuple[int, int, Stamp]:
    """Read (generation, rank, stamp) of a record; of one that this memd would not write, those of none."""
    try:
        said = _VERSION.validate_python(tuple(found[:_VERSION_PARTS]))
    except (ValidationError, TypeError, KeyError):
        return 0, 0, NOWHERE
    generation, rank, wall, counter, device = said
    return generation % 10**9, rank, Stamp(wall, counter, device[:100])


def _read_memory(fields: Fields) -> Fields:
    kind = fields.get("kind")
    if isinstance(kind, str) and kind not in list(Kind):
        raise RecordTooNew(f"kind {kind[:40]}")
    if kind not in [one.value for one in shared_kinds(has_instructions=True)]:
        raise BadRequest(f"its kind, {str(kind)[:40]!r}, is none that a team shares")
    try:
        return _MemoryFields.model_validate(fields).model_dump()
    except ValidationError as error:
        wrong = error.errors(include_input=False)[0]["loc"][0]
        raise BadRequest(f"its {wrong} is missing, of another kind or too long") from None


def make_uid(project: str, author: str, name: str) -> str:
    """Make the uid of a teammate's memory here, so that no author can name, and replace, another's."""
    return digest("team", project, author, name)


def make_draft(fields: Fields) -> Draft:
    """A teammate's memory as it is written here: never more than an agent's word, whoever said it there."""
    return Draft(
        slot="memory", kind=Kind(fields["kind"]), title=one_line(fields["title"], 200), body=fields["body"],
        at=fields["at"], rule=TEAM_SOURCE, sources=(), tags=tuple(fields["tags"]),
        files=tuple(fields["files"]), topic_key=fields["topic_key"], expires_at=fields["expires_at"],
        confidence=fields["confidence"], quality=fields["quality"], authority=Authority.AGENT_CALL,
    )  # fmt: skip


def propose_name(remote: str, names: Collection[str]) -> str | None:
    """Propose the one of these names that a git remote (`host/owner/app`) most likely means: the longest part of it."""
    known = {name.lower(): name for name in names}
    parts = remote.split("/")
    candidates = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((known[one] for one in candidates if one and one in known), None)
