"""Read a transcript of Cursor's agent: `{role, message: {content: [...]}}` a line, and `{type: "turn_ended"}`.

The form is what public readers and their samples show; memd's authors have not seen a file of Cursor's own. A line has no
id, no time but what a prompt may begin with, and a call no result: a command is told as begun, a change of a file
as done. Before the user's words stands what the client added; they are in `<user_query>`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memd.transfer.claude_markup import join_texts
from memd.transfer.readers import LineReader, SessionWriter, get_mapping, get_text

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*(?:</user_query>|\Z)", re.DOTALL)
_TIMESTAMP = re.compile(
    r"<timestamp>\s*(?:\w+, )?(\w{3})\w* (\d{1,2}, \d{4}, \d{1,2}:\d{2} [AP]M) \(UTC(?:([+-]\d{1,2})(?::(\d{2}))?)?\)"
)
_EDIT_TOOLS = frozenset({
    "write", "strreplace", "multistrreplace", "edit", "editfile", "edit_file", "search_replace", "multiedit", "delete",
    "applypatch", "apply_patch", "editnotebook",
})  # fmt: skip
"""Tools that change a file, in lower case."""
_MCP_TOOL = "CallMcpTool"


@dataclass(slots=True)
class CursorReader(LineReader):
    """Reads one transcript: of a session, or with `agent` of a subagent in it."""

    session: str
    directory: str | None = None
    agent: str | None = None
    _last: Mapping[str, Any] | None = None
    _writer: SessionWriter = field(init=False)

    def __post_init__(self) -> None:
        self._writer = SessionWriter(
            self.session, self.directory, agent=self.agent, queue=self.queue
        )

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        if raw == self._last:  # a line has no id, so one that stands twice in a row is told once
            self.skipped["a line twice"] += 1
            return
        self._last = raw
        role = get_text(raw, "role") or get_text(raw, "type")
        content = get_mapping(raw, "message").get("content", raw.get("content"))
        if role == "user":
            self._read_prompt(join_texts(content, "text"))
        elif role == "assistant":
            self._read_answer(content)
        elif role == "turn_ended":
            is_over = get_text(raw, "status") in (None, "success", "completed")
            self._writer.end_turn() if is_over else self._writer.interrupt()
        else:
            self.count_other(role)

    def _line_id(self, number: int = 0) -> str:
        return f"{self.agent or self.session}:{self._lines}" + (f".{number}" if number else "")

    def _read_prompt(self, text: str) -> None:
        self.queue.read_time(_read_time(text))
        queries = _QUERY.findall(text)
        if not queries and text.lstrip().startswith("<"):
            self.skipped["injected by the client"] += 1
            return
        said = "\n\n".join(queries) if queries else text
        self._writer.add_prompt(said, self.last_at, uuid=self._line_id())

    def _read_answer(self, content: Any) -> None:
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for number, part in enumerate(parts, start=1):
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "text":
                text = get_text(part, "text") or ""
                self._writer.add_text(text, self.last_at, self._line_id(number))
            elif part.get("type") == "tool_use":
                self._read_call(part, number)
            else:
                self.count_other(part.get("type"), ("thinking", "reasoning", "redacted_thinking"))

    def _read_call(self, part: Mapping[str, Any], number: int) -> None:
        name, given = get_text(part, "name"), part.get("input")
        if name == _MCP_TOOL and isinstance(given, Mapping):
            name = f"mcp__{get_text(given, 'server') or ''}__{get_text(given, 'toolName') or ''}"
        use_id = get_text(part, "id") or self._line_id(number)
        self._writer.add_call(use_id, name, given)
        if (name or "").lower() in _EDIT_TOOLS:
            self._writer.add_result(use_id, self.last_at)
        else:
            self._writer.drop_call(use_id)
            self.skipped["a call whose result is not told"] += 1


def _read_time(text: str) -> int | None:
    """Return the time that a prompt begins with, UTC milliseconds."""
    if (found := _TIMESTAMP.search(text)) is None:
        return None
    hours, minutes = int(found[3] or 0), int(found[4] or 0)
    ahead = timedelta(hours=hours, minutes=-minutes if hours < 0 else minutes)
    try:
        when = datetime.strptime(f"{found[1]} {found[2]} +0000", "%b %d, %Y, %I:%M %p %z") - ahead
    except (ValueError, OverflowError):
        return None
    return int(when.timestamp() * 1000)
