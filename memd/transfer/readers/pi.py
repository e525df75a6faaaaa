"""Read a session of Pi: `{type, id, timestamp, …}` a line, after a header with id and directory.

Seen with 1.5.2, driven. The lines are a tree: what the user went back from was said all the same. A fork begins with copies of
its parent's lines, which are older than its header.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memd.transfer.readers.base import LineReader, SessionWriter, get_objects, join_texts
from memd.transfer.record import parse_time_ms
from memd.transfer.session_payloads import count_unknown, get_mapping, get_text

_NOT_CONVERSATION = frozenset({
    "model_change", "thinking_level_change", "usage", "context_edit", "branch_summary", "custom", "custom_message", "label",
})  # fmt: skip
_EXIT = re.compile(r"\s*Command exited with code (\d+)\s*\Z")


@dataclass(slots=True)
class PiReader(LineReader):
    """Reads the lines of one session."""

    _since: int = 0
    """When a fork began, UTC milliseconds."""

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        kind = get_text(raw, "type")
        if kind == "session":
            if session := get_text(raw, "id"):
                self._writer = SessionWriter(session, get_text(raw, "cwd"), queue=self.queue)
            if "parentSession" in raw:
                self._since = parse_time_ms(raw.get("timestamp")) or 0
            return
        at, writer = self.queue.read_time(raw.get("timestamp")), self._writer
        if writer is None:
            self.skipped["no session"] += 1
        elif at is not None and at < self._since:
            self.skipped["a copy of the session that this one goes on with"] += 1
        elif kind == "message":
            self._read_message(get_mapping(raw, "message"), at, get_text(raw, "id"), writer)
        elif kind == "compaction":
            writer.add_compaction(get_text(raw, "summary") or "", at, uuid=get_text(raw, "id"))
        elif kind == "session_info":
            writer.add_title(get_text(raw, "name"), "custom", at)
        elif kind in _NOT_CONVERSATION:
            self.skipped["not conversation"] += 1
        else:
            count_unknown(kind, self.skipped)

    def _read_message(
        self, message: Mapping[str, Any], at: int | None, line: str | None, writer: SessionWriter
    ) -> None:
        role, text = get_text(message, "role"), join_texts(message.get("content"), "text")
        if role == "user":
            writer.add_prompt(text, at, uuid=line)
        elif role == "assistant":
            writer.add_text(text, at, line, is_final=message.get("stopReason") == "stop")
            for call in get_objects(message, "content"):
                if call.get("type") == "toolCall":
                    name = get_text(call, "name")
                    writer.add_call(get_text(call, "id"), name, call.get("arguments"))
            if message.get("stopReason") == "aborted":
                writer.interrupt()
        elif role == "toolResult":
            self._read_result(message, text, at, writer)
        else:
            self.skipped["not conversation"] += 1

    def _read_result(
        self, message: Mapping[str, Any], text: str, at: int | None, writer: SessionWriter
    ) -> None:
        use_id = get_text(message, "toolCallId")
        if message.get("isError") is not True:
            is_shell = message.get("toolName") == "bash"
            writer.add_result(use_id, at, tool_response={"stdout": text} if is_shell else text)
            return
        ended = _EXIT.search(text)
        error = f"Exit code {ended[1]}\n{text[: ended.start()]}" if ended else text
        writer.add_result(use_id, at, error=error or "failed")
