"""Claude Code transcripts to hook payloads."""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from memd.transfer import claude_markup

# MERGED from memd.exchange.transcripts:
# MERGED A Claude Code transcript, line by line, as the hook payloads of the same session. Pure.
# MERGED
# MERGED The format is internal to the client and changes: what is not understood is skipped and counted, and
# MERGED nothing raises. A payload carries the ids that its hook carried, so both end in one row. What a
# MERGED person did not say and the agent did not do is left out: injected lines, reminders, thinking, calls
# MERGED that never ran, the agents that the client runs for itself, its titles (a session is titled by its
# MERGED first prompt) and its log of requests. A line that a fork copied is told of the session it came from.


_INTERRUPTED = "[Request interrupted by user"
_NOT_RUN = ("<tool_use_error>", "The user doesn't want to ")
_OWN_TOOLS = ("mcp__memd__", "mcp__plugin_memd_")
_CLIENTS_AGENTS = ("acompact-", "aprompt_suggestion-", "aside_question-", "asession_memory-")
"""How the ids of agents begin that no one asked for: they repeat the conversation to sum it up."""
_LAST_WORDS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
_SIDECHAIN = "sidechain"
_CALLS_MAX = 1_000
_PATH_CHARACTERS = 4_096
"""No system has longer ones, and no call takes them: it would keep the rest of the file from the vault."""


@dataclass(frozen=True, slots=True)
class ImportedPayload:
    """What the hook would have got, when (UTC ms; None: unknown), and in which directory."""

    payload: Mapping[str, Any]
    at: int | None
    directory: str | None
    saved: str | None = None
    """Where the client says it put the whole of a result that is only a preview here."""


@dataclass(frozen=True, slots=True)
class _PendingText:
    """A text of the agent, or a command of the person, that may yet turn out to be no such."""

    text: str
    uuid: str | None
    at: int | None
    is_final: bool = False
    turn: str | None = None


@dataclass(slots=True)
class _AgentThread:
    """The session's own agent, or one subagent, in the course of its turn."""

    session: str
    agent: str | None
    agent_type: str = ""
    prompt_id: str | None = None
    is_private: bool = False
    """Whether its prompt says nothing but what is private: then nobody is told of the rest."""
    last: _PendingText | None = None
    """What was said last, while nothing has followed it."""
    command: _PendingText | None = None
    """What was typed last, while it is open whether an agent or the client itself answers it."""


@dataclass(slots=True)
class _ConversationLine:
    """A line of conversation, taken apart."""

    raw: Mapping[str, Any]
    message: Mapping[str, Any]
    blocks: list[Mapping[str, Any]]
    text: str
    thread: _AgentThread


@dataclass(slots=True)
class TranscriptReader:
    """Reads one file. Feed it every line, then finish. `skipped` counts what was left out, by reason.

    `agent` and `agent_type` are those of a subagent's file. With `seen`, lines whose uuid is in it
    are left out, and the others' are added.
    """

    agent: str | None = None
    agent_type: str | None = None
    seen: set[int] | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    is_open: bool = False
    """After finishing: whether a turn was left without an end, for it may be going on."""
    _threads: dict[tuple[str, str | None], _AgentThread] = field(default_factory=dict)
    _calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _directories: dict[str, str] = field(default_factory=dict)
    _was_private: bool = False
    _trigger: str | None = None
    _session: str | None = None
    _at: int | None = None
    _out: list[ImportedPayload] = field(default_factory=list)

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """The payloads that this line completes."""
        raw = self._parsed(line)
        if raw is not None:
            self._read(raw)
        return self._taken()

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """The ends of turns that only the end of the file shows.

        Of a file that may still grow, an end is told only where the client said that it is one.
        """
        for thread in list(self._threads.values()):
            if is_growing and thread.last is not None and not thread.last.is_final:
                self.is_open = True
                self.skipped["may not be the last word yet"] += 1
            else:
                self._end(thread)
        return self._taken()

    def _taken(self) -> list[ImportedPayload]:
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
        if kind not in ("user", "assistant", "system", "attachment"):
            self.skipped["not conversation"] += 1
            return
        if raw.get("isMeta") is True:
            self.skipped["injected by the client"] += 1
            return
        self._locate(raw)
        if self._session is None:
            self.skipped["no session"] += 1
            return
        thread = self._thread(raw, self._session)
        if (thread.agent or "").startswith(_CLIENTS_AGENTS):
            self.skipped["the client's own agent"] += 1
        elif kind == "system":
            self._read_system(raw, thread)
        elif kind == "attachment":
            self._read_attachment(raw, thread)
        else:
            self._read_message(raw, thread)

    def _read_message(self, raw: Mapping[str, Any], thread: _AgentThread) -> None:
        message = raw.get("message")
        message = message if isinstance(message, Mapping) else {}
        content = message.get("content")
        line = _ConversationLine(
            raw,
            message,
            claude_markup.message_blocks(content),
            claude_markup.message_text(content),
            thread,
        )
        (self._read_user if raw.get("type") == "user" else self._read_assistant)(line)
        if self._was_seen(raw):
            self.skipped["copied from another session"] += 1
            self._out.clear()
            thread.last = thread.command = None

    def _locate(self, raw: Mapping[str, Any]) -> None:
        """Learn of which session, where and when this is. What a line does not say, the last one said."""
        source = raw.get("forkedFrom")
        forked = _string(source, "sessionId") if isinstance(source, Mapping) else None
        self._session = forked or _string(raw, "sessionId") or self._session
        directory = _string(raw, "cwd")
        is_path = directory is not None and len(directory) <= _PATH_CHARACTERS
        if self._session is not None and directory is not None and is_path:
            # The first one: an agent that changes directory is still in the same project.
            self._directories.setdefault(self._session, directory)
        at = claude_markup.parse_timestamp_ms(raw.get("timestamp"))
        self._at = self._at if at is None else at

    def _was_seen(self, raw: Mapping[str, Any]) -> bool:
        uuid = _string(raw, "uuid")
        if uuid is None or self.seen is None:
            return False
        name = hash(uuid)
        was_seen = name in self.seen
        self.seen.add(name)
        return was_seen

    def _thread(self, raw: Mapping[str, Any], session: str) -> _AgentThread:
        agent = _string(raw, "agentId") or self.agent
        if agent is None and raw.get("isSidechain") is True:
            agent = _SIDECHAIN
        thread = self._threads.setdefault((session, agent), _AgentThread(session, agent))
        said = _string(raw, "attributionAgent") or thread.agent_type
        thread.agent_type = (self.agent_type or said) if agent is not None else ""
        return thread

    def _read_system(self, raw: Mapping[str, Any], thread: _AgentThread) -> None:
        if raw.get("subtype") == "compact_boundary":
            about = raw.get("compactMetadata")
            self._trigger = _string(about, "trigger") if isinstance(about, Mapping) else None
        elif raw.get("subtype") == "stop_hook_summary":
            self._end(thread)

    def _read_attachment(self, raw: Mapping[str, Any], thread: _AgentThread) -> None:
        """Of all that the client attaches, only what the person typed while the agent worked was said."""
        held = raw.get("attachment")
        held = held if isinstance(held, Mapping) else {}
        origin = held.get("origin")
        sender = origin.get("kind", "human") if isinstance(origin, Mapping) else "human"
        is_typed = held.get("type") == "queued_command" and held.get("isMeta") is not True
        if not is_typed or held.get("commandMode", "prompt") != "prompt" or sender != "human":
            self.skipped["not conversation"] += 1
            return
        text = claude_markup.message_text(held.get("prompt"))
        if not text or thread.agent is not None or claude_markup.is_command_markup(text):
            self.skipped["no text"] += 1
        elif self._was_seen(raw):
            self.skipped["copied from another session"] += 1
        else:
            # It has no prompt id: under the one of the turn it breaks into, it would be that prompt.
            aside = _AgentThread(thread.session, None)
            self._say(aside, "UserPromptSubmit", self._at, uuid=_uuid(raw), prompt=text)

    def _read_assistant(self, line: _ConversationLine) -> None:
        model = line.message.get("model")
        if line.raw.get("isApiErrorMessage") is True or model == "<synthetic>":
            self.skipped["error of the API"] += 1
            return
        self._answer_command(line.thread)
        why = line.message.get("stop_reason")
        for block in line.blocks:
            if block.get("type") == "tool_use":
                line.thread.last = None  # it went on working: that was not its last word
                self._remember_call(block)
            elif block.get("type") == "text" and line.text and why != "tool_use":
                is_final = isinstance(why, str) and why in _LAST_WORDS
                line.thread.last = _PendingText(line.text, _uuid(line.raw), self._at, is_final)

    def _remember_call(self, block: Mapping[str, Any]) -> None:
        use, name = _string(block, "id"), _string(block, "name")
        if use is None or name is None:
            self.skipped["broken tool call"] += 1
            return
        if len(self._calls) >= _CALLS_MAX:
            del self._calls[next(iter(self._calls))]
        self._calls[use] = (name, block.get("input"))

    def _read_user(self, line: _ConversationLine) -> None:
        raw, thread = line.raw, line.thread
        turn = _string(raw, "promptId")
        results = [block for block in line.blocks if block.get("type") == "tool_result"]
        if raw.get("isCompactSummary") is True:
            self._read_compaction(line, turn)
        elif results:
            thread.prompt_id = turn or thread.prompt_id
            for block in results:
                self._read_result(line, block, is_only=len(results) == 1)
        elif raw.get("repeatsCompactSummary") is True or claude_markup.is_command_markup(
            line.text
        ):
            self._read_command(line, turn)
        elif line.text.startswith(_INTERRUPTED):
            thread.last = None  # no hook is told of an end that was no end
            self.skipped["interruption"] += 1
        elif not line.text:
            self.skipped["no text"] += 1
        else:
            self._read_prompt(line, turn)

    def _read_command(self, line: _ConversationLine, turn: str | None) -> None:
        """A command is a prompt if an agent answers it, and nothing if the client does."""
        typed, thread = claude_markup.typed_command(line.text), line.thread
        if claude_markup.is_local_output(line.text):
            thread.command = None
        elif typed and thread.agent is None and (turn is None or turn != thread.prompt_id):
            self._end(thread)
            thread.command = _PendingText(typed, _uuid(line.raw), self._at, turn=turn)
        self.skipped["command"] += 1

    def _answer_command(self, thread: _AgentThread) -> None:
        typed, thread.command = thread.command, None
        if typed is not None:
            thread.prompt_id, thread.is_private = typed.turn, False
            self._say(thread, "UserPromptSubmit", typed.at, uuid=typed.uuid, prompt=typed.text)

    def _read_prompt(self, line: _ConversationLine, turn: str | None) -> None:
        thread = line.thread
        is_repeated = turn is not None and turn == thread.prompt_id
        if not is_repeated:
            self._end(thread)
            thread.command = None
            thread.is_private = claude_markup.is_private_text(line.text)
        thread.prompt_id = turn
        if thread.agent is not None or is_repeated:
            self.skipped[
                "a subagent's task" if thread.agent is not None else "part of a prompt"
            ] += 1
            return
        said = {"uuid": _uuid(line.raw), "prompt": line.text}
        self._say(thread, "UserPromptSubmit", self._at, **said)

    def _read_compaction(self, line: _ConversationLine, turn: str | None) -> None:
        trigger, self._trigger = self._trigger, None
        if self._was_private:
            self.skipped["of a private turn"] += 1
            return
        self._say(
            _AgentThread(line.thread.session, None, prompt_id=turn),
            "PostCompact",
            self._at,
            uuid=_uuid(line.raw),
            trigger=trigger,
            compact_summary=claude_markup.compaction_summary(line.text),
        )

    def _read_result(
        self, line: _ConversationLine, block: Mapping[str, Any], *, is_only: bool
    ) -> None:
        use = _string(block, "tool_use_id")
        name, given = self._calls.pop(use, (None, None)) if use is not None else (None, None)
        text = claude_markup.message_text(block.get("content"))
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
                response = claude_markup.strip_images(
                    block.get("content") if known is None else known
                )
                self._say(line.thread, "PostToolUse", self._at, **call, tool_response=response)

    def _end(self, thread: _AgentThread) -> None:
        """The turn is over: what was said last is what it ended with."""
        said, thread.last = thread.last, None
        if said is not None:
            name = "Stop" if thread.agent is None else "SubagentStop"
            self._say(thread, name, said.at, uuid=said.uuid, last_assistant_message=said.text)

    def _say(self, thread: _AgentThread, name: str, at: int | None, **fields: Any) -> None:
        if thread.is_private:
            # A copy of the session has the turn under other names, where nothing tells that it is.
            self._was_private = True
            if name != "UserPromptSubmit":
                self.skipped["of a private turn"] += 1
                return
        payload: dict[str, Any] = {"session_id": thread.session, "hook_event_name": name}
        directory = self._directories.get(thread.session)
        if directory is not None:
            payload["cwd"] = directory
        if thread.prompt_id is not None:
            payload["prompt_id"] = thread.prompt_id
        if thread.agent is not None:
            payload |= {"agent_id": thread.agent, "agent_type": thread.agent_type}
        payload |= {key: value for key, value in fields.items() if value is not None}
        self._out.append(
            ImportedPayload(payload, at, directory, claude_markup.find_saved_path(payload))
        )


def _string(value: Mapping[str, Any], name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def _uuid(raw: Mapping[str, Any]) -> str | None:
    """The line's name in the session that it was first written to."""
    source = raw.get("forkedFrom")
    first = _string(source, "messageUuid") if isinstance(source, Mapping) else None
    return first or _string(raw, "uuid")


# MERGED from memd.exchange.outputs:
# MERGED What Claude Code keeps beside a transcript: long tool results, and what a subagent is.
# MERGED
# MERGED A transcript says where the rest of a result is, and a transcript may come from anywhere. So only the
# MERGED name at the end of that path is believed, and only in a `tool-results` folder of a session beside the
# MERGED transcript: no link is followed, no pipe waited for, and of a long file only both ends are read.


_FOLDER = "tool-results"
_SUBAGENTS = "subagents"
_AGENT = re.compile(r"agent-(.{1,200})\.jsonl")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_ENDS_BYTES = 131_072
"""Of each end. Far more than is kept, so that no secret is cut in two where it is kept."""
_META_BYTES = 65_536
_QUIET = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TranscriptLocation:
    """Where a transcript lies, and whose it is."""

    project: str
    """The folder of all sessions of a project."""
    session: str
    """The name of the session's own folder in it."""
    agent: str | None = None
    agent_type: str | None = None
    """What the subagent's description says that it is."""


def locate_transcript(path: str) -> TranscriptLocation:
    """Read off a transcript's path, and its `.meta.json`, what the lines in it do not say."""
    file = Path(path)
    named = _AGENT.fullmatch(file.name)
    if named is None:
        return TranscriptLocation(str(file.parent), file.stem)
    home = next((p.parent for p in file.parents if p.name == _SUBAGENTS), None)
    kind = _meta(file).get("agentType")
    return TranscriptLocation(
        str(home.parent if home else file.parent),
        home.name if home else "",
        named.group(1),
        kind if isinstance(kind, str) else None,
    )


def read_saved_output(place: TranscriptLocation, said: str) -> str | None:
    """The result that the client says it saved at `said`; None if it is not where it may be."""
    parts = PurePosixPath(said.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    told = parts[-3] if len(parts) > 2 and parts[-2] == _FOLDER else ""  # noqa: PLR2004  # session, folder, name
    for session in dict.fromkeys((place.session, told)):
        if all(_NAME.fullmatch(part) for part in (session, name)):
            text = _within(place.project, (session, _FOLDER, name))
            if text is not None:
                return text
    return None


def _meta(file: Path) -> Mapping[str, Any]:
    raw = _within(str(file.parent), (f"{file.stem}.meta.json",))
    try:
        said = json.loads(raw[:_META_BYTES]) if raw else None
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _within(root: str, names: tuple[str, ...]) -> str | None:
    """The text of a file below `root`, none of whose folders is a link; None if there is none such."""
    opened: list[int] = []
    try:
        opened.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for name in names[:-1]:
            opened.append(os.open(name, _QUIET | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(names[-1], _QUIET, dir_fd=opened[-1]))
        return "".join(_ends(opened[-1]))
    except (OSError, ValueError):  # ValueError: a name with a NUL in it
        return None
    finally:
        for handle in opened:
            os.close(handle)


def _ends(handle: int) -> Iterator[str]:
    """The text of an open file, of a long one both ends in whole lines."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a file")
    with os.fdopen(os.dup(handle), "rb") as file:
        if found.st_size <= 2 * _ENDS_BYTES:
            yield file.read(2 * _ENDS_BYTES).decode("utf-8", "replace")
            return
        head = file.read(_ENDS_BYTES)
        file.seek(found.st_size - _ENDS_BYTES)
        tail = file.read(_ENDS_BYTES)
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :]
    yield head.decode("utf-8", "replace")
    yield f"… [{found.st_size - len(head) - len(tail):,} bytes left in the file] …\n"
    yield tail.decode("utf-8", "replace")
