"""Read a session of Pi: `{type, id, parentId, timestamp, …}` a line, after a line that names the session and its directory.

Seen with 1.5.2, driven; other lines as its `docs/session-format.md` tells them. The lines are a tree, as a user may return to an
earlier one: what was left is kept as it was done. The file of a fork begins with the lines that it was made of.
"""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.transfer.claude_markup import join_texts
from memd.transfer.readers import LineReader, SessionWriter, get_mapping, get_objects, get_text

_NOT_CONVERSATION = frozenset({
    "model_change", "thinking_level_change", "usage", "branch_summary", "custom", "context_edit", "label", "leaf",
})  # fmt: skip
_INJECTED = frozenset({"system", "custom", "hookMessage", "branchSummary", "compactionSummary"})
"""Roles of messages that neither the user typed nor the agent wrote."""
_FINAL_REASONS = frozenset({"stop", "length"})
_EXIT_CODE = re.compile(r"\n*Command exited with code (\d+)\s*\Z")
_SHELL = "bash"


@dataclass(slots=True)
class PiReader(LineReader):
    """Reads one session."""

    _forked_at: int | None = None
    """When the session was forked off another one, UTC milliseconds; its earlier lines are of that one."""

    _read_ids: set[str] = field(default_factory=set)
    """Ids of the lines that were read: a file may have a line twice."""

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        at, kind = self.queue.read_time(raw.get("timestamp")), get_text(raw, "type")
        if kind == "session":
            self._begin(raw, at)
        elif self._writer is None:
            self.skipped["no session"] += 1
        elif self._forked_at is not None and at is not None and at < self._forked_at:
            self.skipped["copied from another session"] += 1
        else:
            self._read(kind, raw, self._writer)

    def _begin(self, raw: Mapping[str, Any], at: int | None) -> None:
        session = get_text(raw, "id")
        if session is not None and self._writer is None:
            self._writer = SessionWriter(session, get_text(raw, "cwd"), queue=self.queue)
            self._forked_at = at if get_text(raw, "parentSession") else None

    def _read(self, kind: str | None, raw: Mapping[str, Any], writer: SessionWriter) -> None:
        line = get_text(raw, "id") or f"{writer.session}:{self._lines}"
        if line in self._read_ids:
            self.skipped["a line twice"] += 1
            return
        self._read_ids.add(line)
        if kind == "message":
            self._read_message(get_mapping(raw, "message"), line, writer)
        elif kind == "compaction":
            writer.add_compaction(get_text(raw, "summary") or "", self.last_at, uuid=line)
        elif kind == "session_info":
            writer.add_title(get_text(raw, "name"), "custom", self.last_at)
        elif kind == "custom_message":
            self.skipped["injected by the client"] += 1
        else:
            self.count_other(kind, _NOT_CONVERSATION)

    def _read_message(self, message: Mapping[str, Any], line: str, writer: SessionWriter) -> None:
        role = get_text(message, "role")
        if role == "user":
            writer.add_prompt(join_texts(message.get("content"), "text"), self.last_at, uuid=line)
        elif role == "assistant":
            self._read_answer(message, line, writer)
        elif role == "toolResult":
            self._read_result(message, writer)
        elif role == "bashExecution":
            self.skipped["command"] += 1  # the user's own, which no agent ran
        elif role in _INJECTED:
            self.skipped["injected by the client"] += 1
        else:
            self.count_other(role)

    def _read_answer(self, message: Mapping[str, Any], line: str, writer: SessionWriter) -> None:
        is_final = get_text(message, "stopReason") in _FINAL_REASONS
        text = join_texts(message.get("content"), "text")
        writer.add_text(text, self.last_at, line, is_final=is_final)
        for call in get_objects(message, "content"):
            if call.get("type") == "toolCall":
                given = _make_absolute(call.get("arguments"), writer.directory)
                writer.add_call(get_text(call, "id"), get_text(call, "name"), given)
        if get_text(message, "stopReason") == "aborted":
            writer.interrupt()

    def _read_result(self, message: Mapping[str, Any], writer: SessionWriter) -> None:
        use_id, text = get_text(message, "toolCallId"), join_texts(message.get("content"), "text")
        if message.get("isError") is True:
            code = _EXIT_CODE.search(text)
            error = f"Exit code {code[1]}\n{text[: code.start()]}" if code else text or "failed"
            writer.add_result(use_id, self.last_at, error=error)
        else:
            told = {"stdout": text} if get_text(message, "toolName") == _SHELL else text
            writer.add_result(use_id, self.last_at, tool_response=told)


def _make_absolute(given: Any, directory: str | None) -> Any:
    """Return the arguments of a call with the file's whole path: Pi's tools run in the session's directory."""
    path = given.get("path") if isinstance(given, Mapping) else None
    if not isinstance(path, str) or not path or directory is None or not directory.startswith("/"):
        return given
    return {**given, "path": posixpath.join(directory, path)}
