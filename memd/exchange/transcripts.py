"""A Claude Code transcript, line by line, as the hook payloads of the same session. Pure.

The format is internal to the client and changes: what is not understood is skipped and counted, and
nothing raises. A payload carries the ids that its hook carried, so both end in one row. What a
person did not say and the agent did not do is left out: injected lines, reminders, thinking, command
wrappers, calls that never ran. A file that a session was forked into repeats its lines under the same
uuids; give both readers one `seen` and only the first one speaks.
"""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_WRAPPER = re.compile(
    r"<(?:command-(?:name|message|args)|local-command-[a-z]+|bash-(?:input|stdout|stderr)"
    r"|user-memory-input|task-notification)>"
)
_INTERRUPTED = "[Request interrupted by user"
_NOT_RUN = ("<tool_use_error>", "The user doesn't want to ")
_SUMMARY_START = "Summary:\n"
_SUMMARY_ENDS = (
    "\n\nIf you need specific details from before compaction",
    "\n\nPlease continue the conversation from where",
    "\nContinue the conversation from where",
    "\nPlease continue the conversation from where",
)
_OWN_TOOLS = ("mcp__memd__", "mcp__plugin_memd_")
_SIDECHAIN = "sidechain"
_CALLS_MAX = 1_000
_MILLISECOND = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Payload:
    """What the hook would have got, when (UTC ms; None: unknown), and in which directory."""

    payload: Mapping[str, Any]
    at: int | None
    directory: str | None


@dataclass(slots=True)
class _Thread:
    """The session's own agent, or one subagent, in the course of its turn."""

    agent: str | None
    agent_type: str = ""
    prompt_id: str | None = None
    last: tuple[str, str, int | None] | None = None
    """Text, uuid and time of what was said last, while nothing has followed it."""


@dataclass(slots=True)
class _Line:
    """A line of conversation, taken apart."""

    raw: Mapping[str, Any]
    blocks: list[Mapping[str, Any]]
    text: str
    thread: _Thread


@dataclass(slots=True)
class TranscriptReader:
    """Reads one file. Feed it every line, then finish. `skipped` counts what was left out, by reason."""

    seen: set[int] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    _threads: dict[str | None, _Thread] = field(default_factory=dict)
    _calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _trigger: str | None = None
    _session: str | None = None
    _directory: str | None = None
    _at: int | None = None
    _out: list[Payload] = field(default_factory=list)

    def feed(self, line: bytes | str) -> list[Payload]:
        """The payloads that this line completes."""
        raw = self._parsed(line)
        if raw is not None:
            self._read(raw)
        return self._taken()

    def finish(self) -> list[Payload]:
        """The ends of turns that only the end of the file shows."""
        for thread in list(self._threads.values()):
            self._end(thread)
        return self._taken()

    def _taken(self) -> list[Payload]:
        taken, self._out = self._out, []
        return taken

    def _parsed(self, line: bytes | str) -> Mapping[str, Any] | None:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        if not text.strip():
            return None
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            self.skipped["broken line"] += 1
            return None
        if not isinstance(raw, dict):
            self.skipped["not an object"] += 1
            return None
        return raw

    def _read(self, raw: Mapping[str, Any]) -> None:
        kind = raw.get("type")
        if kind not in ("user", "assistant", "system"):
            self.skipped["not conversation"] += 1
            return
        if raw.get("isMeta") is True:
            self.skipped["injected by the client"] += 1
            return
        self._locate(raw)
        if self._session is None:
            self.skipped["no session"] += 1
        elif kind == "system":
            self._read_system(raw)
        else:
            message = raw.get("message")
            content = message.get("content") if isinstance(message, Mapping) else None
            line = _Line(raw, _blocks(content), _text(content), self._thread(raw))
            (self._read_user if kind == "user" else self._read_assistant)(line)
            if self._was_seen(raw):
                self.skipped["copied from another session"] += 1
                self._out.clear()
                line.thread.last = None

    def _locate(self, raw: Mapping[str, Any]) -> None:
        self._session = _string(raw, "sessionId") or self._session
        # The first one: an agent that changes directory is still in the same project.
        self._directory = self._directory or _string(raw, "cwd")
        at = _milliseconds(raw.get("timestamp"))
        self._at = self._at if at is None else at

    def _was_seen(self, raw: Mapping[str, Any]) -> bool:
        uuid = _string(raw, "uuid")
        if uuid is None:
            return False
        name = hash(uuid)
        was_seen = name in self.seen
        self.seen.add(name)
        return was_seen

    def _thread(self, raw: Mapping[str, Any]) -> _Thread:
        agent = _string(raw, "agentId") or (
            _SIDECHAIN if raw.get("isSidechain") is True else None
        )
        thread = self._threads.setdefault(agent, _Thread(agent))
        thread.agent_type = _string(raw, "attributionAgent") or thread.agent_type
        return thread

    def _read_system(self, raw: Mapping[str, Any]) -> None:
        if raw.get("subtype") == "compact_boundary":
            about = raw.get("compactMetadata")
            self._trigger = _string(about, "trigger") if isinstance(about, Mapping) else None
        elif raw.get("subtype") == "stop_hook_summary":
            self._end(self._thread(raw))

    def _read_assistant(self, line: _Line) -> None:
        message = line.raw.get("message")
        model = message.get("model") if isinstance(message, Mapping) else None
        if line.raw.get("isApiErrorMessage") is True or model == "<synthetic>":
            self.skipped["error of the API"] += 1
            return
        for block in line.blocks:
            if block.get("type") == "text" and line.text:
                line.thread.last = (line.text, _string(line.raw, "uuid") or "", self._at)
            elif block.get("type") == "tool_use":
                line.thread.last = None  # it went on working: that was not its last word
                self._remember_call(block)

    def _remember_call(self, block: Mapping[str, Any]) -> None:
        use, name = _string(block, "id"), _string(block, "name")
        if use is None or name is None:
            self.skipped["broken tool call"] += 1
            return
        if len(self._calls) >= _CALLS_MAX:
            del self._calls[next(iter(self._calls))]
        self._calls[use] = (name, block.get("input"))

    def _read_user(self, line: _Line) -> None:
        raw, thread = line.raw, line.thread
        turn = _string(raw, "promptId")
        results = [block for block in line.blocks if block.get("type") == "tool_result"]
        if raw.get("isCompactSummary") is True:
            self._read_compaction(raw, turn)
        elif results:
            thread.prompt_id = turn or thread.prompt_id
            for block in results:
                self._read_result(line, block, is_only=len(results) == 1)
        elif raw.get("repeatsCompactSummary") is True or _WRAPPER.match(line.text):
            self.skipped["command"] += 1
        elif line.text.startswith(_INTERRUPTED):
            self.skipped["interruption"] += 1
        elif not line.text:
            self.skipped["no text"] += 1
        else:
            self._read_prompt(line, turn)

    def _read_prompt(self, line: _Line, turn: str | None) -> None:
        thread = line.thread
        is_repeated = turn is not None and turn == thread.prompt_id
        if not is_repeated:
            self._end(thread)
        thread.prompt_id = turn
        if thread.agent is not None or is_repeated:
            self.skipped[
                "a subagent's task" if thread.agent is not None else "part of a prompt"
            ] += 1
            return
        self._say(
            thread,
            "UserPromptSubmit",
            self._at,
            uuid=_string(line.raw, "uuid"),
            prompt=line.text,
        )

    def _read_compaction(self, raw: Mapping[str, Any], turn: str | None) -> None:
        message = raw.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        summary = _summary(_text(content))
        trigger, self._trigger = self._trigger, None
        thread = _Thread(None, prompt_id=turn)
        self._say(
            thread,
            "PostCompact",
            self._at,
            uuid=_string(raw, "uuid"),
            trigger=trigger,
            compact_summary=summary,
        )

    def _read_result(self, line: _Line, block: Mapping[str, Any], *, is_only: bool) -> None:
        use = _string(block, "tool_use_id")
        name, given = self._calls.pop(use, (None, None)) if use is not None else (None, None)
        text = _text(block.get("content"))
        if name is None:
            self.skipped["a result without its call"] += 1
        elif name.startswith(_OWN_TOOLS):
            self.skipped["memd's own tool"] += 1
        elif block.get("is_error") is True and text.startswith(_NOT_RUN):
            self.skipped["a call that was not run"] += 1
        else:
            call = {"tool_name": name, "tool_input": given, "tool_use_id": use}
            if block.get("is_error") is True:
                self._say(line.thread, "PostToolUseFailure", self._at, **call, error=text)
            else:
                known = line.raw.get("toolUseResult") if is_only else None
                response = block.get("content") if known is None else known
                self._say(line.thread, "PostToolUse", self._at, **call, tool_response=response)

    def _end(self, thread: _Thread) -> None:
        """The turn is over: what was said last is what it ended with."""
        if thread.last is None:
            return
        text, uuid, at = thread.last
        thread.last = None
        name = "Stop" if thread.agent is None else "SubagentStop"
        self._say(thread, name, at, uuid=uuid or None, last_assistant_message=text)

    def _say(self, thread: _Thread, name: str, at: int | None, **fields: Any) -> None:
        payload: dict[str, Any] = {"session_id": self._session, "hook_event_name": name}
        if self._directory is not None:
            payload["cwd"] = self._directory
        if thread.prompt_id is not None:
            payload["prompt_id"] = thread.prompt_id
        if thread.agent is not None:
            payload |= {"agent_id": thread.agent, "agent_type": thread.agent_type}
        payload |= {key: value for key, value in fields.items() if value is not None}
        self._out.append(Payload(payload, at, self._directory))


def _string(value: Mapping[str, Any], name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    return [b for b in content if isinstance(b, Mapping)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    """The text of a message, without the client's reminders."""
    if isinstance(content, str):
        texts = [content]
    else:
        found = (block.get("text") for block in _blocks(content) if block.get("type") == "text")
        texts = [text for text in found if isinstance(text, str)]
    return _REMINDER.sub("", "\n".join(texts)).strip()


def _summary(text: str) -> str:
    """A compaction's summary without the words that the client puts around it."""
    start = text.find(_SUMMARY_START)
    body = text[start + len(_SUMMARY_START) :] if start >= 0 else text
    ends = [at for mark in _SUMMARY_ENDS if (at := body.rfind(mark)) >= 0]
    return body[: min(ends)].strip() if ends else body.strip()


def _milliseconds(timestamp: Any) -> int | None:
    if not isinstance(timestamp, str):
        return None
    try:
        moment = dt.datetime.fromisoformat(timestamp)
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        at = (zoned - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None
    return at if at >= 0 else None  # no clock of a client was ever before 1970
