"""Read sessions of OpenCode: what `opencode export` writes, or the same of every session in its database.

Seen with 1.18.33, driven: `{info, messages: [{info, parts}]}`. What the client adds to a prompt is marked as synthetic.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.transfer.readers import (
    DocumentLines,
    ImportedPayload,
    SessionReader,
    SessionWriter,
    get_mapping,
    get_objects,
    get_text,
)

_UNNAMED = re.compile(r"(?:New|Child) session\b", re.IGNORECASE)
_NOT_CONVERSATION = frozenset({
    "text", "step-start", "step-finish", "snapshot", "patch", "reasoning", "file", "agent", "retry", "compaction", "subtask",
})  # fmt: skip
_ABORTED = "MessageAbortedError"
_QUOTED = re.compile(r'"([^"]*)"', re.DOTALL)
"""`opencode run` puts its argument between quotes."""


@dataclass(slots=True)
class OpencodeReader(SessionReader):
    """Reads sessions: each is a line of its own, or the file is one."""

    _document: DocumentLines = field(default_factory=DocumentLines)
    _has_part: bool = False
    """Whether a document goes on over several lines."""
    _last_at: int | None = None

    @property
    def last_at(self) -> int | None:
        """Return when the latest of the messages was written, UTC milliseconds."""
        return self._last_at

    def feed(self, line: bytes | str) -> list[ImportedPayload]:
        """Return the payloads of a session that is all on this line."""
        if not self._has_part:
            try:
                raw = json.loads(line)
            except (ValueError, RecursionError):
                raw = None
            if isinstance(raw, dict):
                return self._read_session(raw)
        self._has_part |= bool(line.strip())
        self._document.add(line)
        return []

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the payloads of a session on several lines. Raises BadRequest if it is damaged."""
        if not self._has_part:
            return []
        return self._read_session(self._document.parse("export of OpenCode"), is_growing=is_growing)

    def _read_session(
        self, raw: Mapping[str, Any], *, is_growing: bool = True
    ) -> list[ImportedPayload]:
        info = get_mapping(raw, "info")
        session, parent = get_text(info, "id"), get_text(info, "parentID")
        if session is None or "messages" not in raw:
            self.skipped["no session"] += 1
            return []
        self.queue.at = None  # that of another session
        created = self._read_time(info, "created")
        writer = SessionWriter(
            parent or session,
            get_text(info, "directory"),
            agent=session if parent else None,
            agent_type=get_text(info, "agent") or "" if parent else "",
            queue=self.queue,
        )
        for message in get_objects(raw, "messages"):
            self._read_message(get_mapping(message, "info"), message, writer)
        title = get_text(info, "title")
        if title and not _UNNAMED.match(title):
            writer.add_title(title, "ai", created)
        writer.finish(is_growing=is_growing)
        self.is_open |= writer.is_open
        return self.queue.take_all()

    def _read_message(
        self, info: Mapping[str, Any], message: Mapping[str, Any], writer: SessionWriter
    ) -> None:
        at = self._read_time(info, "created") or self.queue.at
        self._last_at = self._last_at if at is None else max(self._last_at or 0, at)
        name, parts = get_text(info, "id"), get_objects(message, "parts")
        if info.get("role") == "user":
            typed = [
                p
                for p in parts
                if p.get("type") == "text" and not (p.get("synthetic") or p.get("ignored"))
            ]
            text = "\n".join(get_text(part, "text") or "" for part in typed).strip()
            if quoted := _QUOTED.fullmatch(text):
                text = quoted[1]
            if text:
                writer.add_prompt(text, at, turn=name)
            else:
                self.skipped["injected by the client"] += 1
            return
        if info.get("summary") is True:
            text = "\n".join(get_text(p, "text") or "" for p in parts if p.get("type") == "text")
            writer.add_compaction(text, at, uuid=name)
            return
        is_final = info.get("finish") in ("stop", "length")
        for part in parts:
            self._read_part(part, at, writer, is_final=is_final)
        if get_text(get_mapping(info, "error"), "name") == _ABORTED:
            writer.interrupt()

    def _read_part(
        self, part: Mapping[str, Any], at: int | None, writer: SessionWriter, *, is_final: bool
    ) -> None:
        kind = get_text(part, "type")
        if kind == "text" and not part.get("synthetic"):
            said_at = self._read_time(part, "end") or at
            writer.add_text(
                get_text(part, "text") or "", said_at, get_text(part, "id"), is_final=is_final
            )
        elif kind == "tool":
            self._read_call(part, at, writer)
        else:
            self.count_other(kind, _NOT_CONVERSATION)

    def _read_call(self, part: Mapping[str, Any], at: int | None, writer: SessionWriter) -> None:
        use_id, state = get_text(part, "callID"), get_mapping(part, "state")
        status, at = get_text(state, "status"), self._read_time(state, "end") or at
        writer.add_call(use_id, get_text(part, "tool"), state.get("input"))
        # A gateway counts its calls from one again in each turn; a part's id is one in the world.
        call = writer.find_call(use_id)
        writer.drop_call(use_id)
        use_id = get_text(part, "id") or use_id
        output, code = get_text(state, "output") or "", get_mapping(state, "metadata").get("exit")
        if status == "error":
            writer.add_result(use_id, at, call=call, error=get_text(state, "error") or "failed")
        elif status != "completed":
            self.skipped["a call that was not run"] += 1
        elif isinstance(code, int) and code != 0:
            writer.add_result(use_id, at, call=call, error=f"Exit code {code}\n{output}")
        else:
            told = output if code is None else {"stdout": output}
            writer.add_result(use_id, at, call=call, tool_response=told)

    def _read_time(self, value: Mapping[str, Any], name: str) -> int | None:
        return self.queue.read_time(get_mapping(value, "time").get(name))
