"""Read a Claude Code transcript, line by line, as the hook payloads of the same session.

The format is internal to the client and changes: what is not understood is skipped and counted, and
nothing raises. A payload has the ids that its hook had, so both become one event. Left out is what the
user did not say and the agent did not do: injected lines, thinking, calls that failed before they ran, the
client's own agents and requests. Three kinds of payload come from no hook:

- `AgentText`: what the session's own agent says in the middle of its turn (`text`, `uuid`)
- `ToolRefused`: a call that the user did not let run (`tool_name`, `tool_input`, `tool_use_id`, and `said` with the
  user's reason, if one was given)
- `SessionTitle`: what the client calls the session (`title`, `title_kind`), or the conversation up to some line, whose
  time and turn it then has

A client before 1.1 begins a new file when a session is resumed. It copies the past of the session into it: what the
user typed as it was, what the agent said and did under the name of the new file and the time of the resumption. So
an answer belongs to the session of the prompt before it, and where that gives another one than the line, to its time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd import machine_text
from memd.directories import is_below, is_directory_path
from memd.transfer import claude_markup, parse_time_ms
from memd.transfer.readers import (
    ImportedPayload,
    PayloadQueue,
    SessionReader,
    SessionWriter,
    read_object,
)
from memd.transfer.readers import get_mapping as _get_mapping
from memd.transfer.readers import get_text as _get_string

_INTERRUPTED = "[Request interrupted by user"
_NOT_RUN = "<tool_use_error>"
"""The result of a call that never ran begins with this."""
_NOT_RUN_BY_CLIENT = ("automode-blocked", "automode-unavailable", "automode-parsing-error", "permission-rule")  # fmt: skip
"""Kinds of denial that the client decided itself, without asking the user."""
_TITLES = {
    "summary": ("summary", "summary"),
    "ai-title": ("ai", "aiTitle"),
    "custom-title": ("custom", "customTitle"),
}
"""Type of a line that gives a session a title → (its kind in the payload, the field with the title)."""
_NOTIFICATION = "<task-notification>"
_OWN_TOOLS = ("mcp__memd__", "mcp__plugin_memd_")
_CLIENT_AGENTS = ("acompact-", "aprompt_suggestion-", "aside_question-", "asession_memory-")
"""The ids of agents that the client runs for itself begin with these: they repeat the conversation."""
_FINAL_STOP_REASONS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
_SIDECHAIN = "sidechain"
"""The name of a subagent whose lines have no agent id, as older clients wrote them."""
_DETACHED = "HEAD"
"""What the client writes for a branch where none is checked out."""
_OPEN_CALLS_MAX = 1_000
_EARLY_TITLES_MAX = 200
"""Sessions, and titles of one, that wait for the session's first line."""
_CONVERSATION = frozenset({"user", "assistant", "system", "attachment"})
_OTHER_TYPES = frozenset({
    "agent-color", "agent-name", "agent-setting", "api-request", "api-request-blob", "api-request-shape", "atis-latch",
    "attribution-snapshot", "bridge-session", "content-replacement", "cost-state", "file-history-delta",
    "file-history-snapshot", "fork-context-ref", "isolation-latch", "last-prompt", "marble-origami-commit",
    "marble-origami-reset", "marble-origami-snapshot", "mode", "permission-mode", "pr-link", "progress", "queue-operation",
    "relocated", "tag", "tools-used", "worktree-state",
})  # fmt: skip
"""Types of lines that tell nothing of the work; many have no time and no directory. Seen with, or read in, 2.1.332."""


@dataclass(frozen=True, slots=True)
class LinePlace:
    """The context of a transcript's line: its session, the time it was written (UTC ms), and the id of its turn."""

    session: str
    at: int | None
    prompt_id: str | None


@dataclass(slots=True)
class _AgentThread(SessionWriter):
    """The session's own agent or one subagent, in the course of its turn."""

    command: dict[str, Any] | None = None
    """The command typed last, while it is unknown whether an agent or the client answers it."""


@dataclass(slots=True)
class _ConversationLine:
    raw: Mapping[str, Any]
    message: Mapping[str, Any]
    blocks: list[Mapping[str, Any]]
    text: str
    thread: _AgentThread


@dataclass(slots=True)
class TranscriptReader(SessionReader):
    """Reads one file: feed it every line, then finish.

    `agent` and `agent_type` are those of a subagent's file. With `seen`, lines whose uuid is in it are
    left out, and the uuids of the others are added. `places` may be shared by the readers of several files:
    a title may name a line of another one.
    """

    agent: str | None = None
    agent_type: str | None = None
    seen: set[int] | None = None
    places: dict[int, LinePlace] = field(default_factory=dict)
    """Hash of a line's uuid → its place."""
    _threads: dict[tuple[str, str | None], _AgentThread] = field(default_factory=dict)
    _directories: dict[str, str] = field(default_factory=dict)
    """Session → its directory: an agent that changes it stays in the same project."""
    _early_titles: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Session → the titles (kind, title) that stand before its first line of conversation."""
    _branches: dict[str, str] = field(default_factory=dict)
    """Session → the git branch that its last line names."""
    _compaction_trigger: str | None = None
    _session: str | None = None
    _typed_session: str | None = None
    """The session of what the user typed last."""
    _read: set[int] = field(default_factory=set)
    """The hashes of the uuids of its lines."""
    _told: set[str] = field(default_factory=set)
    """Sessions with a line of conversation."""

    @property
    def _at(self) -> int | None:
        return self.queue.at

    @property
    def _has_private_turn(self) -> bool:
        # A fork repeats the turn with other ids, which do not show that it is private.
        return any(thread.has_private_turn for thread in self._threads.values())

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """Return the payloads that this line completes."""
        raw = read_object(line, self.skipped)
        if raw is not None:
            self._read_record(raw)
        return self.queue.take()

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the ends of turns that only the end of the file shows.

        Of a file that may still grow, only those that the client marked as ends.
        """
        for thread in self._threads.values():
            thread.finish(is_growing=is_growing)
            self.is_open |= thread.is_open
        for session in list(self._early_titles):
            self._emit_early_titles(session)
        return self.queue.take_all()

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        kind = _get_string(raw, "type")
        if kind in _TITLES:
            self._read_title(raw, *_TITLES[kind])
            return
        if kind not in _CONVERSATION:
            self.count_other(kind, _OTHER_TYPES)
            return
        if raw.get("isMeta") is True and not _has_sender(raw):
            self.skipped["injected by the client"] += 1
            return
        self._update_position(raw, is_answer=self._is_answer(raw, kind))
        session = self._session or ""
        if not session or self._was_read(raw):
            self.skipped["a line told twice" if session else "no session"] += 1
            return
        self._told.add(session)
        thread = self._find_thread(raw, session)
        if (thread.agent or "").startswith(_CLIENT_AGENTS):
            self.skipped["the client's own agent"] += 1
        elif kind == "system":
            self._read_system(raw, thread)
        elif kind == "attachment":
            self._read_attachment(_get_mapping(raw, "attachment"), raw, thread)
        else:
            message = _get_mapping(raw, "message")
            content = message.get("content")
            blocks, text = (
                claude_markup.message_blocks(content),
                claude_markup.message_text(content),
            )
            line = _ConversationLine(raw, message, blocks, text, thread)
            self._read_message(line)
        if (uuid := _get_string(raw, "uuid")) is not None:
            self.places.setdefault(
                hash(uuid), LinePlace(thread.session, self._at, thread.prompt_id)
            )

    def _read_message(self, line: _ConversationLine) -> None:
        thread, is_copy = line.thread, self._was_seen(line.raw)
        if is_copy:
            self.skipped["copied from another session"] += 1
            thread.queue = PayloadQueue(self.skipped)  # whose payloads nobody takes
        (self._read_user if line.raw["type"] == "user" else self._read_assistant)(line)
        if is_copy:
            thread.queue, thread.last, thread.command = self.queue, None, None

    def _read_title(self, raw: Mapping[str, Any], title_kind: str, name: str) -> None:
        """Read what the client calls a session, or a conversation up to a line, maybe one of another file."""
        title, leaf = _get_string(raw, name), _get_string(raw, "leafUuid")
        named = _get_string(raw, "sessionId") or self._session
        place = None if named is None else LinePlace(named, self._at, None)
        if title_kind == "summary":
            place = None if leaf is None else self.places.get(hash(leaf))
        if title is None or place is None:
            self.skipped["title of another session"] += 1
        elif title_kind != "summary" and place.session not in self._told:
            # Neither when nor where is known: the line may even be of a session that is in another file.
            titles = self._early_titles.setdefault(place.session, [])
            if (title_kind, title) not in titles:
                titles.append((title_kind, title))
            if len(self._early_titles) > _EARLY_TITLES_MAX or len(titles) > _EARLY_TITLES_MAX:
                self._emit_early_titles(next(iter(self._early_titles)))
        else:
            self._emit_early_titles(place.session)
            self._emit_title(place, title_kind, title)

    def _emit_early_titles(self, session: str) -> None:
        """Emit the titles before a session's first line, with the time of the last line: they held until here."""
        for title_kind, title in self._early_titles.pop(session, ()):
            if session in self._told:
                self._emit_title(LinePlace(session, self._at, None), title_kind, title)
            else:
                self.skipped["title of another session"] += 1

    def _emit_title(self, place: LinePlace, title_kind: str, title: str) -> None:
        if self._has_private_turn:
            self.skipped["of a private turn"] += 1
            return
        titled = self._make_thread(place.session, prompt_id=place.prompt_id)
        titled.add_title(title, title_kind, place.at)

    def _is_answer(self, raw: Mapping[str, Any], kind: str) -> bool:
        """Return whether a line is the answer of the session's own agent, or of the client, to what the user typed."""
        if self.agent or _get_string(raw, "agentId") or raw.get("isSidechain") is True:
            return False
        if kind != "user":
            return kind == "assistant"
        content = _get_mapping(raw, "message").get("content")
        is_interruption = claude_markup.message_text(content).startswith(_INTERRUPTED)
        return is_interruption or claude_markup.has_result(content)

    def _update_position(self, raw: Mapping[str, Any], *, is_answer: bool) -> None:
        """Update session, directory and time; a line without one of them has that of the line before."""
        forked = _get_string(_get_mapping(raw, "forkedFrom"), "sessionId")
        named = forked or _get_string(raw, "sessionId") or self._session
        if is_answer and self._typed_session not in (None, named):
            self._session = self._typed_session
            return  # copied when the session was resumed: its time and directory are of then
        self._session = named
        if raw.get("type") == "user" and not is_answer and raw.get("isSidechain") is not True:
            past = self._threads.get((self._typed_session or "", None))
            if past is not None and self._typed_session != named:
                past.end_turn()
            self._typed_session = named
        directory = _get_string(raw, "cwd")
        if self._session is not None and directory is not None and is_directory_path(directory):
            self._directories.setdefault(self._session, directory)
            self.queue.place(self._session, directory)
        if self._session is not None and (branch := _get_string(raw, "gitBranch")) is not None:
            self._branches[self._session] = branch
        self.queue.read_time(raw.get("timestamp"))

    def _follow_session(self, raw: Mapping[str, Any], thread: _AgentThread) -> None:
        """Update a session's directory where it was moved: the user prompts in one that is not around the last."""
        directory, known = _get_string(raw, "cwd"), self._directories.get(thread.session, "")
        if directory is None or not is_directory_path(directory) or thread.agent:
            return
        if not (is_below(directory, known) or is_below(known, directory)):
            self._directories[thread.session] = thread.directory = directory

    def _was_seen(self, raw: Mapping[str, Any]) -> bool:
        uuid = _get_string(raw, "uuid")
        if uuid is None or self.seen is None:
            return False
        was_seen = hash(uuid) in self.seen
        self.seen.add(hash(uuid))
        return was_seen

    def _was_read(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a line stands in this file a second time."""
        uuid = _get_string(raw, "uuid")
        if (
            uuid is None or raw.get("type") == "attachment"
        ):  # whose prompts are told apart by their words
            return False
        was_read = hash(uuid) in self._read
        self._read.add(hash(uuid))
        return was_read

    def _find_thread(self, raw: Mapping[str, Any], session: str) -> _AgentThread:
        agent = _get_string(raw, "agentId") or self.agent
        if agent is None and raw.get("isSidechain") is True:
            agent = _SIDECHAIN
        if (thread := self._threads.get((session, agent))) is None:
            thread = self._threads[session, agent] = self._make_thread(session, agent=agent)
        agent_type = self.agent_type or _get_string(raw, "attributionAgent") or thread.agent_type
        thread.agent_type = agent_type if agent is not None else ""
        thread.directory, thread.branch = self._directories.get(session), self._find_branch(session)
        return thread

    def _make_thread(self, session: str, **given: Any) -> _AgentThread:
        place = {"directory": self._directories.get(session), "branch": self._find_branch(session)}
        return _AgentThread(session, **{"queue": self.queue, **place, **given})

    def _find_branch(self, session: str) -> str | None:
        branch = self._branches.get(session, _DETACHED)
        return None if branch == _DETACHED else branch

    def _read_system(self, raw: Mapping[str, Any], thread: _AgentThread) -> None:
        if raw.get("subtype") == "compact_boundary":
            self._compaction_trigger = _get_string(_get_mapping(raw, "compactMetadata"), "trigger")
        elif raw.get("subtype") == "stop_hook_summary":
            thread.end_turn()

    def _read_attachment(
        self, attached: Mapping[str, Any], raw: Mapping[str, Any], thread: _AgentThread
    ) -> None:
        """Read of all attachments only the prompts that the user typed while the agent worked."""
        origin = attached.get("origin")
        sender = (
            origin
            if isinstance(origin, str)
            else _get_mapping(attached, "origin").get("kind", "human")
        )
        is_typed = attached.get("type") == "queued_command" and attached.get("isMeta") is not True
        if not is_typed or attached.get("commandMode", "prompt") != "prompt" or sender != "human":
            self.skipped["not conversation"] += 1
            return
        text = claude_markup.message_text(attached.get("prompt"))
        if not text or thread.agent is not None or machine_text.is_markup(text):
            self.skipped["no text"] += 1
        elif self._was_seen(raw):
            self.skipped["copied from another session"] += 1
        else:
            self._emit_aside(thread, raw, text)

    def _emit_aside(self, thread: _AgentThread, raw: Mapping[str, Any], text: str) -> None:
        """Emit what was typed beside a turn, without a prompt id: with that of the turn, it would be that turn's prompt."""
        aside = self._make_thread(thread.session, queue=thread.queue)
        aside.emit("UserPromptSubmit", self._at, uuid=_first_uuid(raw), prompt=text)

    def _read_assistant(self, line: _ConversationLine) -> None:
        model = line.message.get("model")
        if line.raw.get("isApiErrorMessage") is True or model == "<synthetic>":
            said = line.thread.last
            if line.raw.get("isApiErrorMessage") is True and said and not said.is_final:
                line.thread.pass_text()  # the turn broke off after it
            self.skipped["error of the API"] += 1
            return
        thread = line.thread
        command, thread.command = thread.command, None
        if command is not None:
            # The agent answers the command, so it is a prompt.
            thread.add_prompt(**command)
        reason = line.message.get("stop_reason")
        calls = [block for block in line.blocks if block.get("type") == "tool_use"]
        thread.add_text(
            line.text, self._at, _first_uuid(line.raw), copy_id=_get_string(line.message, "id"),
            is_final=isinstance(reason, str) and reason in _FINAL_STOP_REASONS,
        )  # fmt: skip
        for block in calls:
            given = block.get("input")
            thread.add_call(_get_string(block, "id"), _get_string(block, "name"), given)
        if line.text and reason == "tool_use":
            thread.pass_text()

    def _read_user(self, line: _ConversationLine) -> None:
        raw, thread = line.raw, line.thread
        prompt_id = _get_string(raw, "promptId")
        results = [block for block in line.blocks if block.get("type") == "tool_result"]
        if raw.get("isCompactSummary") is True or claude_markup.is_compaction(line.text):
            self._read_compaction(line, prompt_id)
        elif results:
            thread.prompt_id = prompt_id or thread.prompt_id
            for block in results:
                self._read_result(line, block, is_only=len(results) == 1)
        elif thread.agent is None and (note := claude_markup.read_typed_note(line.text)):
            self._emit_aside(thread, raw, note)
        elif raw.get("repeatsCompactSummary") is True or machine_text.is_markup(line.text):
            self._read_command(line, prompt_id)
        elif line.text.startswith(_INTERRUPTED):
            thread.interrupt()  # no hook reports the end of an interrupted turn
        elif not line.text:
            self.skipped["no text"] += 1
        else:
            self._read_prompt(line, prompt_id)

    def _read_command(self, line: _ConversationLine, prompt_id: str | None) -> None:
        """Keep a command until an agent answers it, which makes it a prompt, or the client does."""
        typed, thread = claude_markup.typed_command(line.text), line.thread
        if claude_markup.is_local_output(line.text):
            thread.command = None
        elif line.text.startswith(_NOTIFICATION):
            # It sets the agent to work again: what it said before was its last word.
            thread.end_turn()
            thread.prompt_id = prompt_id or thread.prompt_id
        elif typed and thread.agent is None and (prompt_id or "") != thread.prompt_id:
            thread.end_turn()
            named = {"uuid": _first_uuid(line.raw), "copy_id": _get_string(line.raw, "timestamp")}
            thread.command = {"text": typed, "at": self._at, "turn": prompt_id, **named}
        self.skipped["command"] += 1

    def _read_prompt(self, line: _ConversationLine, prompt_id: str | None) -> None:
        thread = line.thread
        if prompt_id is not None and prompt_id == thread.prompt_id:
            self.skipped["a subagent's task" if thread.agent else "part of a prompt"] += 1
            return
        thread.end_turn()
        self._follow_session(line.raw, thread)
        thread.command = None
        origin = _find_origin(line.raw)
        told = {machine_text.ORIGIN: None if origin == machine_text.USER else origin}
        uuid, written = _first_uuid(line.raw), _get_string(line.raw, "timestamp")
        thread.add_prompt(line.text, self._at, turn=prompt_id, uuid=uuid, copy_id=written, **told)

    def _read_compaction(self, line: _ConversationLine, prompt_id: str | None) -> None:
        trigger, self._compaction_trigger = self._compaction_trigger, None
        if self._has_private_turn:
            self.skipped["of a private turn"] += 1
            return
        told = self._make_thread(line.thread.session, prompt_id=prompt_id, queue=line.thread.queue)
        summary = claude_markup.compaction_summary(line.text)
        told.add_compaction(summary, self._at, uuid=_first_uuid(line.raw), trigger=trigger)

    def _read_result(
        self, line: _ConversationLine, block: Mapping[str, Any], *, is_only: bool
    ) -> None:
        use_id = _get_string(block, "tool_use_id")
        call = line.thread.find_call(use_id)
        text = claude_markup.message_text(block.get("content"))
        is_error = block.get("is_error") is True
        if is_error and text.startswith(_NOT_RUN):
            line.thread.drop_call(use_id)
            self.skipped["a call that was not run"] += 1
            return
        said = claude_markup.refusal_words(text) if is_error else None
        is_denied = is_error and line.raw.get("toolDenialKind") in _NOT_RUN_BY_CLIENT
        is_own = call is not None and call[0].startswith(_OWN_TOOLS)
        if call is not None and not is_own and (said is not None or is_denied):
            line.thread.drop_call(use_id)
            named = {"tool_name": call[0], "tool_input": call[1], "tool_use_id": use_id}
            event = "PermissionDenied" if said is None else "ToolRefused"
            why = {"reason": text} if said is None else {"said": said or None}
            line.thread.emit(event, self._at, **named, **why)
        elif is_error:
            line.thread.add_result(use_id, self._at, error=text)
        else:
            response = line.raw.get("toolUseResult") if is_only else None
            told = block.get("content") if response is None else response
            images = claude_markup.strip_images(told)
            line.thread.add_result(use_id, self._at, tool_response=images)


def read_line_time(line: bytes) -> int | None:
    """Return when a line of a transcript was written, UTC milliseconds; None if it does not say."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parse_time_ms(raw.get("timestamp")) if isinstance(raw, dict) else None


def _find_origin(raw: Mapping[str, Any]) -> str:
    """Return who the prompt of a line comes from, by the marks beside its text."""
    return machine_text.find_prompt_origin(
        {name: raw[name] for name in machine_text.ORIGIN_MARKS if name in raw}
    )


def _has_sender(raw: Mapping[str, Any]) -> bool:
    """Return whether a line that the client wrote is a whole prompt that somebody else sent."""
    return raw.get("type") == "user" and _find_origin(raw) != machine_text.USER


def _first_uuid(raw: Mapping[str, Any]) -> str | None:
    """Return the line's uuid in the session that it was first written to, before any fork."""
    return _get_string(_get_mapping(raw, "forkedFrom"), "messageUuid") or _get_string(raw, "uuid")
