"""Payloads from lines of sessions: JSON into objects, and payloads that wait until their time and place are known.

A client may write lines that say neither when nor where before those that do, and a format loses fields between versions. An
event must not be dated by its import or placed nowhere because of that, so a payload whose time or directory is not known yet
waits for the first line that says it; what no line says stays unknown.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memd.directories import is_directory_path
from memd.transfer.record import parse_time_ms

_EARLIEST_MS = 1_262_304_000_000
"""The beginning of 2010, UTC: no agent is as old, so an earlier time is that of a clock which was not set."""
_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""
AHEAD_MS = 86_400_000
"""A line may be a day younger than now, as clocks differ; a later time is none."""
_WAITING_MAX = 2_000
_WAITING_CHARACTERS_MAX = 32 * 1024 * 1024
"""Payloads, and their characters, that may wait; then they are given as they are."""
_BYTE_ORDER_MARK = "\ufeff"
_TYPE_NAME = re.compile(r"[A-Za-z][\w.:/-]{0,39}", re.ASCII)
_TYPES_TOLD_MAX = 20
_BROKEN, _NO_OBJECT, _NO_TIME = "broken line", "not an object", "a time that cannot be"
_NOT_UNDERSTOOD = frozenset({_BROKEN, _NO_OBJECT, _NO_TIME, "line too long", "no session"})


@dataclass(frozen=True, slots=True)
class ImportedPayload:
    """The payload that the hook would have received, its time (UTC ms; None: unknown), and its directory."""

    payload: Mapping[str, Any]
    at: int | None
    directory: str | None
    saved: str | None = None
    """Where the client says it saved the whole of a result that is only a preview here."""


@dataclass(slots=True)
class PayloadQueue:
    """The payloads of one file, in the order of its lines; those of a session wait together."""

    skipped: Counter[str] = field(default_factory=Counter)
    latest: int = _LATEST_MS
    """UTC milliseconds; a later time is absurd."""
    at: int | None = None
    """When the last line with a time was written, UTC milliseconds."""
    waits_for_time: bool = False
    """Whether a payload before any line with a time waits for the first."""
    waits_for_place: bool = False
    """Whether a payload waits for a line that says its session's directory."""
    _directories: dict[str, str] = field(default_factory=dict)
    """Session → the first directory that its lines say."""
    _waiting: dict[str, list[ImportedPayload]] = field(default_factory=dict)
    _waiting_count: int = 0
    _waiting_characters: int = 0
    _ready: list[ImportedPayload] = field(default_factory=list)

    def read_time(self, value: Any) -> int | None:
        """Return the time that a line says, UTC milliseconds; None if it says none, or one that cannot be."""
        at = parse_time_ms(value)
        if at is None or not _EARLIEST_MS <= at <= self.latest:
            if value is not None:
                self.skipped[_NO_TIME] += 1
            return None
        is_first, self.at = self.at is None, at
        if is_first:
            self._release_ready()
        return at

    def place(self, session: str, directory: str | None) -> None:
        """Note that a session has this directory, if it has none yet and this can be one."""
        if directory and session not in self._directories and is_directory_path(directory):
            self._directories[session] = directory
            self._release_ready()

    def add(self, found: ImportedPayload) -> None:
        """Take the next payload of a session."""
        session = str(found.payload.get("session_id"))
        found = self._complete(found, session)
        if session not in self._waiting and self._is_complete(found):
            self._ready.append(found)
            return
        self._waiting.setdefault(session, []).append(found)
        self._waiting_count += 1
        with contextlib.suppress(RecursionError):
            self._waiting_characters += len(json.dumps(found.payload, default=str))
        too_much = self._waiting_characters > _WAITING_CHARACTERS_MAX
        if too_much or self._waiting_count > _WAITING_MAX:
            self._give_up()

    def take(self) -> list[ImportedPayload]:
        """Return what is ready since the last call."""
        taken, self._ready = self._ready, []
        return taken

    def take_all(self) -> list[ImportedPayload]:
        """Return what is ready, and what still waits as it is."""
        self._give_up()
        return self.take()

    def _is_complete(self, found: ImportedPayload) -> bool:
        lacks_time = self.waits_for_time and found.at is None
        lacks_place = self.waits_for_place and found.directory is None
        return not (lacks_time or lacks_place)

    def _complete(self, found: ImportedPayload, session: str) -> ImportedPayload:
        at = self.at if found.at is None else found.at
        directory = found.directory or self._directories.get(session)
        if (at, directory) == (found.at, found.directory):
            return found
        payload = found.payload if directory is None else {**found.payload, "cwd": directory}
        return replace(found, payload=payload, at=at, directory=directory)

    def _release_ready(self) -> None:
        """Move to the ready ones what need not wait any more."""
        for session in list(self._waiting):
            completed = [self._complete(one, session) for one in self._waiting[session]]
            if all(map(self._is_complete, completed)):
                self._ready += completed
                del self._waiting[session]
                self._count_waiting()
            else:
                self._waiting[session] = completed

    def _give_up(self) -> None:
        for session, found in self._waiting.items():
            self._ready += [self._complete(one, session) for one in found]
        self._waiting.clear()
        self._count_waiting()

    def _count_waiting(self) -> None:
        self._waiting_count = sum(map(len, self._waiting.values()))
        if not self._waiting:
            self._waiting_characters = 0


@dataclass(slots=True)
class SessionReader:
    """Reads one file of a session: feed it every line, then finish."""

    queue: PayloadQueue = field(default_factory=PayloadQueue, kw_only=True)
    is_open: bool = field(default=False, init=False)
    """After finishing: whether a turn has no end and may still continue."""

    @property
    def skipped(self) -> Counter[str]:
        """Reason → number of lines that were left out."""
        return self.queue.skipped

    @property
    def last_at(self) -> int | None:
        """Return when the last line with a time was written, UTC milliseconds."""
        return self.queue.at

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """Return the payloads that this line completes."""
        raise NotImplementedError

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return what only the end of the file shows; of a file that may still grow, only what is certain."""
        raise NotImplementedError


def read_object(line: bytes | str, skipped: Counter[str]) -> Mapping[str, Any] | None:
    """Return the object on a line; None, counted unless the line is empty, if there is none."""
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    text = text.lstrip(_BYTE_ORDER_MARK).strip()
    if not text:
        return None
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        skipped[_BROKEN] += 1
        return None
    if not isinstance(raw, dict):
        skipped[_NO_OBJECT] += 1
        return None
    return raw


def count_unknown(kind: object, skipped: Counter[str]) -> None:
    """Count a line of a type that the reader does not know, under its name while there are few such names."""
    reason = "unknown line"
    if isinstance(kind, str) and _TYPE_NAME.fullmatch(kind):
        named = f"unknown line {kind}"
        told = sum(one.startswith("unknown line ") for one in skipped)
        if named in skipped or told < _TYPES_TOLD_MAX:
            reason = named
    skipped[reason] += 1


def is_not_understood(reason: str) -> bool:
    """Return whether lines that were left out for this reason may hold something that memd does not understand."""
    return reason.startswith("unknown line") or reason in _NOT_UNDERSTOOD


def get_mapping(value: Any, *names: str) -> Mapping[str, Any]:
    """Return what lies at the end of these names; an empty object if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def get_text(value: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is a text with something in it."""
    found = (value.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one), None)
