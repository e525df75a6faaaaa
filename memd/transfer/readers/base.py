"""Base of the readers of other clients' sessions: lines into JSON, and a conversation into payloads.

A payload has the fields of Claude Code's hooks, with the tools under the client's own names: `capture` translates those
for hooks and imports alike. Ids are the client's, so that what a hook delivered is found again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd import machine_text
from memd.directories import is_directory_path
from memd.errors import BadRequest
from memd.models import BRANCH, BRANCH_CHARACTERS_MAX, REMOTE, TITLE_EVENT
from memd.transfer import claude_markup
from memd.transfer.session_payloads import ImportedPayload, PayloadQueue, SessionReader, read_object
from memd.worktrees import read_worktree_path

_REMOTE_CHARACTERS_MAX = 4_096
DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
"""A larger file that is one JSON document is refused, because it is read into memory."""
_OPEN_CALLS_MAX = 1_000
_BYTE_ORDER_MARK = "\ufeff"
_OWN_TOOL = re.compile(r"(?:^|[_.:/-])mem_(?:search|timeline|why|get|remember|forget|pin|judge)$")
"""memd's tools, whatever a client puts before their names."""
_TELL_BRANCH = frozenset({"UserPromptSubmit", "AgentText"})


@dataclass(frozen=True, slots=True)
class _Said:
    """A text of the agent that the next lines confirm as its last word in the turn, or pass."""

    text: str
    uuid: str | None
    at: int | None
    is_final: bool


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
    _last: _Said | None = None
    _texts: set[str] = field(default_factory=set)
    """Ids of the texts that were read: a file may have a line twice."""
    _is_private: bool = False
    _has_private_turn: bool = False
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
        self, text: str, at: int | None, *, turn: str | None = None, uuid: str | None = None
    ) -> None:
        """Add a prompt of the user, which begins a turn."""
        clean = clean_text(text)
        if not clean or machine_text.is_markup(clean):
            self.skipped["command" if clean else "no text"] += 1
            return
        self.end_turn()
        self.prompt_id = turn
        self._is_private = claude_markup.is_private_text(clean)
        if self.agent is not None:
            self.skipped["a subagent's task"] += 1
        else:
            self._emit("UserPromptSubmit", at, uuid=uuid, prompt=clean)

    def add_text(
        self, text: str, at: int | None, uuid: str | None = None, *, is_final: bool = False
    ) -> None:
        """Add a text of the agent; the next lines, or `is_final`, show whether it was its last."""
        if not (clean := clean_text(text)):
            return
        if uuid is not None:
            if uuid in self._texts:
                self.skipped["a line twice"] += 1
                return
            self._texts.add(uuid)
        self._pass_text()
        self._last = _Said(clean, uuid, at, is_final)

    def add_call(self, use_id: str | None, name: str | None, given: Any) -> None:
        """Add a tool call of the agent."""
        self._pass_text()
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
        self._pass_text()
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
        self._emit(event, at, tool_name=name, tool_input=given, tool_use_id=use_id, **told)

    def add_compaction(
        self, summary: str, at: int | None, *, trigger: str = "auto", uuid: str | None = None
    ) -> None:
        """Note that the client replaced the conversation so far with this."""
        if self._has_private_turn or self._is_private:
            self.skipped["of a private turn"] += 1
        elif summary.strip():
            self._emit(
                "PostCompact", at, uuid=uuid, trigger=trigger, compact_summary=summary.strip()
            )

    def add_title(self, title: str | None, title_kind: str, at: int | None) -> None:
        """Note that the client, or the user by it, calls the session this."""
        if not title or self.agent is not None:
            return
        if self._has_private_turn or self._is_private:
            self.skipped["of a private turn"] += 1
        else:
            self._emit(TITLE_EVENT, at, title=title, title_kind=title_kind)

    def interrupt(self) -> None:
        """Note that the turn was interrupted: the agent's last text was not its answer."""
        self._pass_text()
        self.skipped["interruption"] += 1

    def end_turn(
        self, *, answer: str | None = None, at: int | None = None, uuid: str | None = None
    ) -> None:
        """End the agent's turn, with its last text or with this answer."""
        last, self._last = self._last, None
        if last is None and answer and clean_text(answer):
            last = _Said(clean_text(answer), uuid, at, is_final=True)
        if last is not None:
            name = "Stop" if self.agent is None else "SubagentStop"
            self._emit(name, last.at, uuid=last.uuid, last_assistant_message=last.text)

    def end_turn_if_final(self) -> None:
        """End the turn if the agent's last text was marked as its end."""
        if self._last is not None and self._last.is_final:
            self.end_turn()

    def finish(self, *, is_growing: bool) -> None:
        """End the last turn, unless the file may still grow and its last text was not marked as the end."""
        if is_growing and self._last is not None and not self._last.is_final:
            self.is_open = True
            self.skipped["may not be the last word yet"] += 1
        else:
            self.end_turn()

    def _pass_text(self) -> None:
        passed, self._last = self._last, None
        if passed is not None and self.agent is None:
            self._emit("AgentText", passed.at, uuid=passed.uuid, text=passed.text)

    def _emit(self, name: str, at: int | None, **fields: Any) -> None:
        if self._is_private:
            self._has_private_turn = True
            if name != "UserPromptSubmit":
                self.skipped["of a private turn"] += 1
                return
        payload: dict[str, Any] = {"session_id": self.session, "hook_event_name": name}
        if self.directory is not None:
            payload["cwd"] = self.directory
        if name in _TELL_BRANCH and self.branch and len(self.branch) <= BRANCH_CHARACTERS_MAX:
            payload[BRANCH] = self.branch
        if self.remote and (name == "UserPromptSubmit" or read_worktree_path(self.directory or "")):
            payload[REMOTE] = self.remote[:_REMOTE_CHARACTERS_MAX]
        if self.prompt_id is not None:
            payload["prompt_id"] = self.prompt_id
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
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def join_texts(parts: Any, *types: str) -> str:
    """Return the text of a message: of its parts, those of these types, or with any `text` if none is named."""
    if isinstance(parts, str):
        return parts
    if isinstance(parts, Mapping):
        parts = [parts]
    return "\n".join(_list_texts(parts, types)) if isinstance(parts, list) else ""


def _list_texts(parts: list[Any], types: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and (not types or part.get("type") in types):
            text = part.get("text")
            if isinstance(text, str):
                yield text
