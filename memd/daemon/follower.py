"""Follow the transcripts of live sessions: what hooks do not deliver is read from the client's own file.

No hook reports what the agent says in the middle of its turn, nor what the user says when he refuses a tool
call. After a prompt, a stop, a compaction and a session's end the lines that are new in the transcript are read
as an import reads them, and stored under the same keys, so what hooks delivered counts as a duplicate. Hooks wait
for none of it; only distilling does, for one read.

What happened before memd first heard of a session, and while it was switched off, is not read. The state file
remembers where the turn that is going on begins, so that a restarted daemon goes on there.
"""

import contextlib
import json
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.capture import clients
from memd.capture.claude_code import CLIENT, adapt_hook_payload
from memd.capture.prepare import UNEXPECTED, CaptureRequest
from memd.capture.write import Receipt
from memd.errors import MemdError
from memd.models import EventKind, NewEvent
from memd.store import events
from memd.store.database import Database
from memd.transfer.readers import AHEAD_MS, ImportedPayload, SessionReader, is_not_understood
from memd.transfer.readers.codex import CodexReader
from memd.transfer.readers.copilot import CopilotReader
from memd.transfer.transcripts import TranscriptReader
from memd.wakeup import AutoResetEvent

SOURCE = "transcript"
"""Where these events come from, beside `live`, `spool` and `import`."""
READ_BYTES_MAX = 4 * 1024 * 1024
"""Bytes that are read at once, unless a single line is longer."""
LINE_BYTES_MAX = 32 * 1024 * 1024
"""A longer line is left out."""
SECOND_READ_S = 2.0
"""Seconds after which a transcript is read once more: the client writes its last lines behind its hooks."""
_TAIL_BYTES = 256 * 1024
"""A session that memd did not see begin is read from this far before the end of its transcript."""
_BATCH_EVENTS = 20
"""Events in one capture: a hook that comes meanwhile waits for these only."""
_FOLLOWED_MAX = 64
"""Sessions whose readers are kept; of others only the state."""
_STATES_MAX = 500
_PATH_CHARACTERS_MAX = 4_096
_NEW_SOURCES = frozenset({"startup", "clear"})
"""How a session starts whose transcript has nothing older."""
_KNOWN_BY_ID = frozenset({
    EventKind.TOOL_RESULT, EventKind.TOOL_FAILURE, EventKind.TOOL_REFUSED, EventKind.AGENT_TEXT,
})  # fmt: skip
"""Kinds of events that need not be sent again if their id is stored: it is found without redacting them."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_READERS: Mapping[str, Callable[[str], SessionReader]] = {
    CLIENT: lambda _: TranscriptReader(),
    clients.CODEX: lambda _: CodexReader(),
    clients.COPILOT: CopilotReader,
}
"""Client → the reader of a session's transcript, by the session's id."""
_BEGUN_MAX = 500

Capture = Callable[[Sequence[CaptureRequest]], Awaitable[list[Receipt]]]


@dataclass(slots=True)
class _Position:
    """The place at which a transcript is read on."""

    since: int
    """UTC milliseconds; only what is later is stored."""
    inode: int = 0
    offset: int = 0
    """Bytes before it."""

    def as_row(self) -> tuple[int, int, int]:
        """The values for the state file."""
        return self.since, self.inode, self.offset


@dataclass(slots=True)
class _Followed:
    """One session's transcript. `offset`: how far the reader is, in bytes."""

    client: str
    session: str
    path: str
    directory: str | None
    position: _Position
    """Of the turn that is going on."""
    reader: SessionReader
    offset: int = 0
    is_from_end: bool = False
    """Whether to begin near the end of the file."""
    due: list[float] = field(default_factory=list)
    """When to read it, in seconds of the event loop's clock."""
    is_over: bool = False
    """Whether the session has ended, or its turn, so that the last turn must be completed."""
    has_more: bool = False
    heard_at: int = 0
    """When the latest of its hooks was called, UTC milliseconds."""
    told: dict[str, int] = field(default_factory=dict)
    """The counts of lines not understood that the log has."""
    is_in_long_line: bool = False
    """Whether the rest of a line is left out that is too long."""


class TranscriptFollower:
    """Reads the transcripts of live sessions. Calls `on_read`, on the event loop, after each first read."""

    name = "follower"

    def __init__(
        self, db: Database, capture: Capture, state_file: str, on_read: Callable[[], None]
    ) -> None:
        self._db = db
        self._capture = capture
        self._state_file = state_file
        self._on_read = on_read
        self._wakeup = AutoResetEvent()
        self._followed: dict[str, _Followed] = {}
        self._states = _read_states(state_file)
        """Session → (since, inode, offset) of what was stored; the latest last."""
        self._is_written = True
        """Whether the state file has these states."""
        self._begun: dict[str, None] = {}
        """Sessions whose hooks named no transcript when they began, the latest last: Copilot's do so when they stop."""
        self._first_reads: set[str] = set()
        self._stored = 0
        self._last_error: str | None = None

    @property
    def is_reading(self) -> bool:
        """Return whether a transcript is about to be read for the first time since its session was heard of."""
        return bool(self._first_reads)

    def notice(self, event: NewEvent, receipt: Receipt) -> bool:
        """Take note of an event that a hook delivered and that begins or ends a turn. Waits for nothing.

        Returns whether its transcript is about to be read, which calls `on_read`.
        """
        session = event.session.key
        path = event.payload.get("transcript_path")
        if path is None and session in self._followed:
            path = self._followed[session].path
        is_known = event.session.client in _READERS and receipt.outcome != "duplicate"
        if is_known and path is None and _is_new(event):
            self._begun[session] = None
            while len(self._begun) > _BEGUN_MAX:
                del self._begun[next(iter(self._begun))]
        if not is_known or not _is_transcript(path):
            return False
        one = self._find_followed(event, str(path))
        if receipt.outcome != "stored" and (receipt.reason or "").startswith("switched off"):
            one.position.since = max(one.position.since, event.at)
            self._remember(one)
            self._wakeup.set()
            return False
        if event.kind is EventKind.SESSION_START:
            return False
        now = anyio.current_time()
        one.due = [now, now + SECOND_READ_S]
        # Claude Code's hooks tell the answer; of others the last text of a turn that has stopped is it.
        is_answered = one.client != CLIENT and event.kind is EventKind.STOP
        one.is_over = event.kind is EventKind.SESSION_END or is_answered
        self._first_reads.add(one.session)
        self._wakeup.set()
        return True

    async def run(self) -> None:
        """Read what is due, until cancelled."""
        while True:
            await self._wakeup.wait(self._seconds_to_next())
            now = anyio.current_time()
            for one in [one for one in self._followed.values() if one.due and one.due[0] <= now]:
                await self._follow(one)
            while not self._is_written:
                states = dict(self._states)
                await anyio.to_thread.run_sync(_write_states, self._state_file, states)
                self._is_written = states == self._states

    def status(self) -> dict[str, object]:
        """`followed` sessions, those `due` to be read, events `stored` that no hook delivered, the last error."""
        due = sum(bool(one.due) for one in self._followed.values())
        return {
            "followed": len(self._followed),
            "due": due or int(not self._is_written),
            "stored": self._stored,
            "last_error": self._last_error,
        }

    def _seconds_to_next(self) -> float | None:
        due = [one.due[0] for one in self._followed.values() if one.due]
        return max(min(due) - anyio.current_time(), 0) if due else None

    def _find_followed(self, event: NewEvent, path: str) -> _Followed:
        """Return what is followed for an event's session, from the state file if this process has not seen it."""
        session = event.session.key
        one = self._followed.pop(session, None)
        if one is None or one.path != path:
            is_new = _is_new(event) or session in self._begun
            known = self._states.get(session)
            position = _Position(*known) if known else _Position(0 if is_new else event.at)
            self._states[session] = position.as_row()
            self._is_written = False
            client = event.session.client
            reader = _make_reader(client, session)
            one = _Followed(client, session, path, event.session.directory, position, reader)
            if client == CLIENT:  # the first line of others says what all that follow belong to
                one.offset = position.offset
                one.is_from_end = known is None and not is_new and event.source == "live"
        one.heard_at = max(one.heard_at, event.at)
        self._followed[session] = one  # the latest last
        while len(self._followed) > _FOLLOWED_MAX:
            self._first_reads.discard(gone := next(iter(self._followed)))
            del self._followed[gone]
        return one

    async def _follow(self, one: _Followed) -> None:
        """Read a transcript on, a part at a time, and store what is new in it."""
        due = one.due
        try:
            await self._read_on(one)
            self._last_error = None
        except MemdError as error:
            # The next hook of the session tries again, from where the last stored turn began.
            self._followed.pop(one.session, None)
            self._last_error = error.message
        except OSError:
            # A file that is odd is no error, and one that is absent may be written a moment later.
            if one.due is due:
                one.due = due[1:]
        except UNEXPECTED as error:
            # A bug must not be met again every two seconds.
            one.due.clear()
            self._last_error = type(error).__name__
            log.get(self.name).exception("transcript_not_read")
        finally:
            if one.session in self._first_reads:
                self._first_reads.discard(one.session)
                self._on_read()

    async def _read_on(self, one: _Followed) -> None:
        due = one.due
        found = await anyio.to_thread.run_sync(_read_part, one)
        if not one.has_more and len(due) == 1 and one.is_over:
            one.is_over = False
            found += one.reader.finish()
        stored = await self._store(one, found)
        if not one.has_more and one.due is due:  # no hook came meanwhile
            one.due = due[1:]
        self._stored += stored
        self._remember(one)
        if stored:
            log.get(self.name).info("transcript_read", stored=stored)
        odd = {k: n for k, n in one.reader.skipped.items() if is_not_understood(k)}
        if odd != one.told:
            one.told = odd
            log.get(self.name).warning(
                "transcript_lines_not_understood", client=one.client, lines=odd
            )

    async def _store(self, one: _Followed, found: Sequence[ImportedPayload]) -> int:
        requests = [
            CaptureRequest(one.client, payload.payload, payload.at, one.directory, SOURCE)
            for payload in found
            if payload.payload.get("session_id") == one.session
            and payload.at is not None and payload.at > one.position.since
        ]  # fmt: skip
        keys = [_find_plain_key(request) for request in requests]
        known = await self._db.read(
            partial(events.known_keys, keys=[key for key in keys if key is not None])
        )
        missing = [r for r, key in zip(requests, keys, strict=True) if key not in known]
        stored = 0
        for start in range(0, len(missing), _BATCH_EVENTS):
            receipts = await self._capture(missing[start : start + _BATCH_EVENTS])
            stored += sum(receipt.outcome == "stored" for receipt in receipts)
        return stored

    def _remember(self, one: _Followed) -> None:
        """Keep where a session is to be read on by another process."""
        row = one.position.as_row()
        self._is_written &= self._states.pop(one.session, None) == row
        self._states[one.session] = row
        while len(self._states) > _STATES_MAX:
            del self._states[next(iter(self._states))]


def _make_reader(client: str, session: str) -> SessionReader:
    """Return a reader of lines as they are written; where the session is, its hooks say."""
    reader = _READERS[client](session)
    reader.queue.waits_for_time = True
    return reader


def _is_new(event: NewEvent) -> bool:
    """Return whether a session begins that has no past."""
    is_start = event.kind is EventKind.SESSION_START
    return is_start and event.payload.get("source") in _NEW_SOURCES


def _is_transcript(path: Any) -> bool:
    return (
        isinstance(path, str)
        and path.endswith(".jsonl")
        and len(path) <= _PATH_CHARACTERS_MAX
        and os.path.isabs(path)  # noqa: PTH117  # nothing is looked up here
    )


def _find_plain_key(request: CaptureRequest) -> str | None:
    """Return the key of an event whose id says all; None for others, and for ids that redaction may change."""
    told = request.translate()
    event = adapt_hook_payload(
        told.payload, told.at or 0, directory=None, source=SOURCE, client=told.client
    )
    is_plain = isinstance(event, NewEvent) and event.kind in _KNOWN_BY_ID and event.former_keys
    return event.key if is_plain and isinstance(event, NewEvent) else None


def _read_part(one: _Followed) -> list[ImportedPayload]:
    """Read a bounded number of complete lines. OSError if the file is not one of the user's own."""
    handle = os.open(one.path, _FLAGS)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError("not a file of this user")
        _find_start(one, found)
        # A hook may come late, from the spool; no line is younger than its file.
        one.reader.queue.latest = max(found.st_mtime_ns // 1_000_000, one.heard_at) + AHEAD_MS
        file.seek(one.offset)
        data = file.read(READ_BYTES_MAX)
        if len(data) == READ_BYTES_MAX and b"\n" not in data:
            data += file.read(LINE_BYTES_MAX - READ_BYTES_MAX)
        one.has_more = one.offset + len(data) < found.st_size
    rest = 0
    if one.is_in_long_line:
        rest = data.find(b"\n") + 1 or len(data)
        one.is_in_long_line = not data[:rest].endswith(b"\n")
        one.offset += rest
        data = data[rest:]
    end = data.rfind(b"\n") + 1
    if not end and len(data) >= LINE_BYTES_MAX:
        one.reader.skipped["line too long"] += 1
        one.is_in_long_line = True
        one.offset += len(data)
        return []
    one.has_more = one.has_more and end + rest > 0
    return list(_feed_lines(one, data[:end]))


def _find_start(one: _Followed, found: os.stat_result) -> None:
    """Begin anew with a file that was replaced or became shorter; begin an unknown session near its end."""
    position = one.position
    if position.inode != found.st_ino or found.st_size < one.offset:
        is_replaced = position.inode != 0
        one.offset = position.offset = 0
        position.inode = found.st_ino
        if is_replaced:
            one.is_in_long_line = False
            one.reader = _make_reader(one.client, one.session)
    if one.is_from_end:
        one.is_from_end = False
        one.offset = position.offset = max(found.st_size - _TAIL_BYTES, 0)


def _feed_lines(one: _Followed, data: bytes) -> Iterator[ImportedPayload]:
    for line in data.split(b"\n")[:-1]:
        for found in one.reader.feed(line):
            if found.payload.get("hook_event_name") == "UserPromptSubmit":
                one.position.offset = one.offset
            yield found
        one.offset += len(line) + 1


def _read_states(path: str) -> dict[str, tuple[int, int, int]]:
    """Read the state file; empty if there is none, or something else."""
    try:
        states = json.loads(Path(path).read_bytes())
        return {
            str(session): (int(since), int(inode), int(offset))
            for session, (since, inode, offset) in states.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write_states(path: str, states: Mapping[str, tuple[int, int, int]]) -> None:
    """Replace the state file. A failure costs another read of what is known already."""
    new = f"{path}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(states, file)
        Path(new).replace(path)
