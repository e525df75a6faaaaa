"""Readers of the session files of other clients: each turns lines into the payloads that its client's hooks send.

Here: what they share, JSON into objects, payloads that wait for their time and place, a conversation into payloads.

A client may write lines that say neither when nor where before those that do, and a format loses fields between versions. An
event must not be dated by its import or placed nowhere because of that, so a payload whose time or directory is not known yet
waits for the first line that says it; what no line says stays unknown.

A payload has the fields of Claude Code's hooks, with the tools under the client's own names: `capture` translates those
for hooks and imports alike. Ids are the client's, so that what a hook delivered is found again.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memd import machine_text
from memd.directories import is_directory_path, read_worktree_path
from memd.errors import BadRequest
from memd.models import BRANCH, BRANCH_CHARACTERS_MAX, COPY_ID, REMOTE, TITLE_EVENT
from memd.time_expressions import DAY_MS, TIME_MAX_MS
from memd.transfer import claude_markup, parse_time_ms

_EARLIEST_MS = 1_262_304_000_000
"""The beginning of 2010, UTC: no agent is as old, so an earlier time is that of a clock which was not set."""
AHEAD_MS = DAY_MS
"""A line may be a day younger than now, as clocks differ; a later time is none."""
_WAITING_MAX = 2_000
_WAITING_CHARACTERS_MAX = 32 * 1024 * 1024
"""Payloads, and their characters, that may wait; then they are given as they are."""
_TYPE_NAME = re.compile(r"[A-Za-z][\w.:/-]{0,39}", re.ASCII)
_TYPES_TOLD_MAX = 20
_BROKEN, _NO_OBJECT, _NO_TIME = "broken line", "not an object", "a time that cannot be"
_NOT_UNDERSTOOD = frozenset({_BROKEN, _NO_OBJECT, _NO_TIME, "line too long", "no session"})
_REMOTE_CHARACTERS_MAX = 4_096
DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
"""A larger file that is one JSON document is refused, because it is read into memory."""
_OPEN_CALLS_MAX = 1_000
_BYTE_ORDER_MARK = "\ufeff"
_OWN_TOOL = re.compile(r"(?:^|[_.:/-])mem_(?:search|timeline|why|get|remember|forget|pin|judge)$")
"""memd's tools, whatever a client puts before their names."""
TELL_BRANCH = frozenset({"UserPromptSubmit", "AgentText"})
"""Payloads that carry the git branch: the prompt and, if its hook came late, what the agent says next."""


@dataclass(frozen=True, slots=True)
class ImportedPayload:
    """The payload that the hook would have received, its time (UTC ms; None: unknown), and its directory."""

    payload: Mapping[str, Any]
    at: int | None
    directory: str | None


@dataclass(slots=True)
class PayloadQueue:
    """The payloads of one file, in the order of its lines: they wait together."""

    skipped: Counter[str] = field(default_factory=Counter)
    latest: int = TIME_MAX_MS
    """UTC milliseconds; a later time is absurd."""
    at: int | None = None
    """When the last line with a time was written, UTC milliseconds."""
    waits_for_time: bool = False
    """Whether a payload before any line with a time waits for the first."""
    waits_for_place: bool = False
    """Whether a payload waits for a line that says its session's directory."""
    _directories: dict[str, str] = field(default_factory=dict)
    """Session → the first directory that its lines say."""
    _waiting: list[ImportedPayload] = field(default_factory=list)
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
        found = self._complete(found)
        if not self._waiting and self._is_complete(found):
            self._ready.append(found)
            return
        self._waiting.append(found)
        with contextlib.suppress(RecursionError):
            self._waiting_characters += len(json.dumps(found.payload, default=str))
        too_much = self._waiting_characters > _WAITING_CHARACTERS_MAX
        if too_much or len(self._waiting) > _WAITING_MAX:
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

    def _complete(self, found: ImportedPayload) -> ImportedPayload:
        at = self.at if found.at is None else found.at
        session = str(found.payload.get("session_id"))
        directory = found.directory or self._directories.get(session)
        if (at, directory) == (found.at, found.directory):
            return found
        payload = found.payload if directory is None else {**found.payload, "cwd": directory}
        return replace(found, payload=payload, at=at, directory=directory)

    def _release_ready(self) -> None:
        """Move to the ready ones what need not wait any more."""
        self._waiting = list(map(self._complete, self._waiting))
        if all(map(self._is_complete, self._waiting)):
            self._give_up()

    def _give_up(self) -> None:
        self._ready += map(self._complete, self._waiting)
        self._waiting.clear()
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

    def count_other(self, kind: object, known: Collection[str] = ()) -> None:
        """Count a line that tells nothing of the work: of an unknown type under its name, while there are few such names."""
        reason = "not conversation" if kind in known else "unknown line"
        if kind not in known and isinstance(kind, str) and _TYPE_NAME.fullmatch(kind):
            named = f"unknown line {kind}"
            told = sum(one.startswith("unknown line ") for one in self.skipped)
            if named in self.skipped or told < _TYPES_TOLD_MAX:
                reason = named
        self.skipped[reason] += 1

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


def is_not_understood(reason: str) -> bool:
    """Return whether lines that were left out for this reason may hold something that memd does not understand."""
    return reason.startswith("unknown line") or reason in _NOT_UNDERSTOOD


def get_mapping(value: Any, *names: str) -> Mapping[str, Any]:
    """Return what lies at the end of these names; an empty object if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_text(value: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is a text with something in it."""
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return None


# ── A conversation into payloads ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Said:
    """A text of the agent that the next lines confirm as its last word in the turn, or pass."""

    text: str
    uuid: str | None
    at: int | None
    is_final: bool
    copy_id: str | None = None


@dataclass(slots=True)
class SessionWriter:
    """Turns the messages and tool calls of a session into payloads. Times are UTC milliseconds; None: unknown.

    With `agent` the session is a subagent's: what it was told is not the user's word.
    """

    session: str
    directory: str | None = None
    branch: str | None = None
    remote: str | None = None
    agent: str | None = None
    agent_type: str = ""
    prompt_id: str | None = None
    """The client's id of the turn that is going on, if its hooks have it, too."""
    queue: PayloadQueue = field(default_factory=PayloadQueue)
    is_open: bool = False
    last: _Said | None = None
    """The agent's last text, while nothing has followed it."""
    is_private: bool = False
    """Whether all of the prompt is private: then nothing of the turn is imported."""
    has_private_turn: bool = False
    _texts: set[str] = field(default_factory=set)
    """Ids of the texts that were read: a file may have a line twice."""
    _calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _told: dict[str, None] = field(default_factory=dict)
    """Ids of the last calls whose results were read, in order."""

    def __post_init__(self) -> None:
        directory, self.directory = self.directory, None
        self.place(directory)

    @property
    def skipped(self) -> Counter[str]:
        """Reason → number of lines that were left out."""
        return self.queue.skipped

    def place(self, directory: str | None) -> None:
        """Note the session's directory; the first that can be one counts."""
        if self.directory is None and directory and is_directory_path(directory):
            self.directory = directory
            self.queue.place(self.session, directory)

    def add_prompt(
        self,
        text: str,
        at: int | None,
        *,
        turn: str | None = None,
        uuid: str | None = None,
        **more: Any,
    ) -> None:
        """Add a prompt of the user, which begins a turn; `more`: further fields of its payload."""
        clean = clean_text(text)
        if not clean or machine_text.is_markup(clean):
            self.skipped["command" if clean else "no text"] += 1
            return
        self.end_turn()
        self.prompt_id = turn
        self.is_private = claude_markup.is_private_text(clean)
        if self.agent is not None:
            self.skipped["a subagent's task"] += 1
        else:
            self.emit("UserPromptSubmit", at, uuid=uuid, prompt=clean, **more)

    def add_text(
        self,
        text: str,
        at: int | None,
        uuid: str | None = None,
        *,
        is_final: bool = False,
        copy_id: str | None = None,
    ) -> None:
        """Add a text of the agent; the next lines, or `is_final`, show whether it was its last."""
        if not (clean := clean_text(text)):
            return
        if uuid is not None:
            if uuid in self._texts:
                self.skipped["a line twice"] += 1
                return
            self._texts.add(uuid)
        self.pass_text()
        self.last = _Said(clean, uuid, at, is_final, copy_id)

    def add_call(self, use_id: str | None, name: str | None, given: Any) -> None:
        """Add a tool call of the agent."""
        self.pass_text()
        if use_id is None or name is None:
            self.skipped["broken tool call"] += 1
            return
        if len(self._calls) >= _OPEN_CALLS_MAX:
            del self._calls[next(iter(self._calls))]
        self._calls[use_id] = (name, given)
        self._told.pop(use_id, None)  # a gateway may count its calls again

    def find_call(self, use_id: str | None) -> tuple[str, Any] | None:
        """Return name and input of a call whose result has not been read."""
        return self._calls.get(use_id or "")

    def drop_call(self, use_id: str | None) -> None:
        """Forget a call that tells nothing."""
        self._calls.pop(use_id or "", None)

    def add_result(
        self,
        use_id: str | None,
        at: int | None,
        *,
        call: tuple[str, Any] | None = None,
        **told: Any,
    ) -> None:
        """End a call. `told` has `tool_response`, or `error`, or both with `exit_code`; `call` replaces the one known."""
        known = self._calls.pop(use_id or "", None)
        name, given = call or known or ("", None)
        if use_id in self._told:
            return
        self.pass_text()
        if not name or use_id is None:
            self.skipped["a result without its call"] += 1
            return
        self._told[use_id] = None
        if len(self._told) > _OPEN_CALLS_MAX:
            del self._told[next(iter(self._told))]
        if _OWN_TOOL.search(name):
            self.skipped["memd's own tool"] += 1
            return
        if str(told.get("error", "")).startswith(machine_text.OWN_REFUSAL):
            self.skipped["a call that memd refused"] += 1
            return
        event = "PostToolUseFailure" if "error" in told else "PostToolUse"
        self.emit(event, at, tool_name=name, tool_input=given, tool_use_id=use_id, **told)

    def add_compaction(
        self, summary: str, at: int | None, *, uuid: str | None = None, trigger: str | None = "auto"
    ) -> None:
        """Note that the client replaced the conversation so far with this."""
        if self.has_private_turn or self.is_private:
            self.skipped["of a private turn"] += 1
        elif summary.strip():
            self.emit(
                "PostCompact", at, uuid=uuid, trigger=trigger, compact_summary=summary.strip()
            )

    def add_title(self, title: str | None, title_kind: str, at: int | None) -> None:
        """Note that the client, or the user by it, calls the session this."""
        if not title or self.agent is not None:
            return
        if self.has_private_turn or self.is_private:
            self.skipped["of a private turn"] += 1
        else:
            self.emit(TITLE_EVENT, at, title=title, title_kind=title_kind)

    def interrupt(self) -> None:
        """Note that the turn was interrupted: the agent's last text was not its answer."""
        self.pass_text()
        self.skipped["interruption"] += 1

    def end_turn(
        self, *, answer: str | None = None, at: int | None = None, uuid: str | None = None
    ) -> None:
        """End the agent's turn, with its last text or with this answer."""
        last, self.last = self.last, None
        if last is None and answer and clean_text(answer):
            last = _Said(clean_text(answer), uuid, at, is_final=True)
        if last is not None:
            name = "Stop" if self.agent is None else "SubagentStop"
            said = {"uuid": last.uuid, "copy_id": last.copy_id}
            self.emit(name, last.at, last_assistant_message=last.text, **said)

    def end_turn_if_final(self) -> None:
        """End the turn if the agent's last text was marked as its end."""
        if self.last is not None and self.last.is_final:
            self.end_turn()

    def finish(self, *, is_growing: bool) -> None:
        """End the last turn, unless the file may still grow and its last text was not marked as the end."""
        if is_growing and self.last is not None and not self.last.is_final:
            self.is_open = True
            self.skipped["may not be the last word yet"] += 1
        else:
            self.end_turn()

    def pass_text(self) -> None:
        """Tell the agent's last text, which was not the end of its turn; a subagent's counts as work."""
        passed, self.last = self.last, None
        if passed is not None and self.agent is None:
            said = {"uuid": passed.uuid, "copy_id": passed.copy_id}
            self.emit("AgentText", passed.at, text=passed.text, **said)

    def emit(self, name: str, at: int | None, **fields: Any) -> None:
        """Tell an event by this name, with those of these fields that are not None."""
        if self.is_private:
            self.has_private_turn = True
            if name != "UserPromptSubmit":
                self.skipped["of a private turn"] += 1
                return
        payload: dict[str, Any] = {"session_id": self.session, "hook_event_name": name}
        if self.directory is not None:
            payload["cwd"] = self.directory
        if name in TELL_BRANCH and self.branch and len(self.branch) <= BRANCH_CHARACTERS_MAX:
            payload[BRANCH] = self.branch
        if self.remote and (name == "UserPromptSubmit" or read_worktree_path(self.directory or "")):
            payload[REMOTE] = self.remote[:_REMOTE_CHARACTERS_MAX]
        if self.prompt_id is not None:
            payload["prompt_id"] = self.prompt_id
            fields.pop(COPY_ID, None)  # clients that name their prompts keep the ids of lines
        if self.agent is not None:
            payload |= {"agent_id": self.agent, "agent_type": self.agent_type}
        payload |= {key: value for key, value in fields.items() if value is not None}
        self.queue.add(ImportedPayload(payload, at, self.directory))


@dataclass(slots=True)
class LineReader(SessionReader):
    """Base of readers of one JSON object a line, most of which tell all to one writer."""

    _writer: SessionWriter | None = field(default=None, init=False)
    _lines: int = field(default=0, init=False)

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """Return the payloads that this line completes."""
        self._lines += 1
        if (raw := read_object(line, self.skipped)) is not None:
            self._read_record(raw)
        return self.queue.take()

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the end of the last turn."""
        if self._writer is None:
            return []
        self._writer.finish(is_growing=is_growing)
        self.is_open = self._writer.is_open
        return self.queue.take_all()

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        raise NotImplementedError


@dataclass(slots=True)
class DocumentLines:
    """Collects the lines of a file that is one JSON document."""

    _lines: list[bytes] = field(default_factory=list)
    _size: int = 0

    def add(self, line: bytes | str) -> None:
        """Take the next line. Raises BadRequest if the document is too large."""
        raw = line.encode("utf-8", "replace") if isinstance(line, str) else line
        self._size += len(raw)
        if self._size > DOCUMENT_BYTES_MAX:
            raise BadRequest(
                f"larger than {DOCUMENT_BYTES_MAX // 1024**2} MiB; it is read into memory"
            )
        self._lines.append(raw)

    def parse(self, what: str) -> Mapping[str, Any]:
        """Return the document. Raises BadRequest if it is none, or was cut off."""
        text = b"".join(self._lines).decode("utf-8", "replace").lstrip(_BYTE_ORDER_MARK)
        self._lines.clear()
        start = max(text.find("{"), 0)  # a redirected command's first words
        try:
            found = json.loads(text[start:])
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"no {what}: not JSON, or cut off ({error})") from None
        if not isinstance(found, dict):
            raise BadRequest(f"no {what}: not a JSON object")
        return found


def clean_text(text: str) -> str:
    """Return a text without the reminders that clients and memd's hooks add."""
    return claude_markup.message_text(text)


def get_objects(value: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects in a list."""
    found = value.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
