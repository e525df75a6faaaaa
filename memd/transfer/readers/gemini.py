"""Read a chat of Gemini CLI: a session's head and a message a line, or older, both in one JSON document.

Seen with 0.61.0, driven; the document as google-gemini/gemini-cli declares it. A message is written again when it has grown: what was
read of it is not read twice.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.transfer.claude_markup import join_texts
from memd.transfer.readers import (
    DocumentLines,
    ImportedPayload,
    LineReader,
    SessionWriter,
    get_mapping,
    get_objects,
    get_text,
)

_INJECTED = re.compile(r"\s*<(?:session_context|hook_context|state_snapshot|system_note)\b")
_OVER = frozenset({"success", "error"})
"""States of a call that has run."""
_NOT_CONVERSATION = frozenset({"info", "warning", "error", "about", "quit", "compression", "tips"})
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_SHELL = "run_shell_command"


@dataclass(slots=True)
class GeminiReader(LineReader):
    """Reads one chat. `directory` is what its folder says; `is_document` if the file is one JSON document."""

    directory: str | None = None
    parent: str | None = None
    """The session that a subagent's chat belongs to, if its folder says it."""
    is_document: bool = False
    _document: DocumentLines = field(default_factory=DocumentLines)
    _said: set[str] = field(default_factory=set)
    """Ids of messages whose text was read."""
    _ended: set[str] = field(default_factory=set)
    """Ids of calls whose results were read."""

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """Return the payloads that this line completes."""
        if self.is_document:
            self._document.add(line)
            return []
        return LineReader.feed(self, line)

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the end of the last turn. Raises BadRequest if a document is damaged."""
        if self.is_document:
            self._read_record(self._document.parse("chat of Gemini CLI"))
        return LineReader.finish(self, is_growing=is_growing)

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        session = get_text(raw, "sessionId")
        if session and get_text(raw, "type") in (None, "user", "gemini"):
            self._begin(session, raw)
        update = get_mapping(raw, "$set") or (raw if "messages" in raw else {})
        if self._writer is None:
            self.skipped["no session"] += 1
        elif update:
            for message in get_objects(update, "messages"):
                self._read_message(message, self._writer)
            self._writer.add_title(get_text(update, "summary"), "summary", self.last_at)
        elif "type" in raw:
            self._read_message(raw, self._writer)
        elif not session:
            self.skipped["not conversation"] += 1

    def _begin(self, session: str, raw: Mapping[str, Any]) -> None:
        if self._writer is not None:
            return
        self.queue.read_time(raw.get("startTime"))
        agent = session if raw.get("kind") == "subagent" else None
        own = self.parent if agent and self.parent else session
        self._writer = SessionWriter(own, self.directory, agent=agent, queue=self.queue)

    def _read_message(self, message: Mapping[str, Any], writer: SessionWriter) -> None:
        kind, name = get_text(message, "type"), get_text(message, "id")
        self.queue.read_time(message.get("timestamp"))
        is_new = name is None or name not in self._said
        if name is not None:
            self._said.add(name)
        text = join_texts(message.get("displayContent") or message.get("content"))
        if kind == "user" and is_new:
            if _INJECTED.match(text):
                self.skipped["injected by the client"] += 1
            elif text.strip():
                writer.add_prompt(text, self.last_at, turn=name)
        elif kind == "gemini":
            if is_new:
                writer.add_text(text, self.last_at, name)
            for call in get_objects(message, "toolCalls"):
                self._read_call(call, writer)
        elif is_new:
            self.count_other(kind, _NOT_CONVERSATION)

    def _read_call(self, call: Mapping[str, Any], writer: SessionWriter) -> None:
        use_id, name, state = (get_text(call, key) for key in ("id", "name", "status"))
        if use_id is None or use_id in self._ended:
            return
        writer.add_call(use_id, name, call.get("args"))
        if state not in _OVER:
            writer.drop_call(use_id)
            self.skipped["a call that was not run"] += 1
            return
        self._ended.add(use_id)
        at = self.queue.read_time(call.get("timestamp")) or self.last_at
        output = _read_output(call)
        failed = _EXIT_CODE.search(output) if name == _SHELL else None
        shown = call.get("resultDisplay")
        text = shown if isinstance(shown, str) else output
        if state == "error" or (failed and failed[1] != "0"):
            error = f"Exit code {failed[1]}\n{text}" if failed else text or "failed"
            writer.add_result(use_id, at, error=error)
        else:
            writer.add_result(
                use_id, at, tool_response={"stdout": text} if name == _SHELL else text
            )


def _read_output(call: Mapping[str, Any]) -> str:
    """Return what a call gave the model."""
    told = [get_mapping(one, "functionResponse", "response") for one in get_objects(call, "result")]
    return "\n".join(text for one in told if (text := get_text(one, "output", "error")))
