"""Read the events of a session of Copilot CLI: `{type, data, id, timestamp, agentId?}` a line, in `events.jsonl`.

Seen with 1.0.102, driven; the fields of other events as github/copilot-sdk declares them. Its hooks have no ids: `capture` knows
what they told by its words and time. Read is what the user typed, not what was sent to the model with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.transfer.readers import ImportedPayload, LineReader, SessionWriter, get_mapping, get_text

_USER = "user"
_OTHER_EVENTS = (
    "session.", "assistant.", "tool.", "subagent.", "hook.", "permission.", "system.", "skill.", "pending_messages.", "user_input.",
    "external_tool.", "command.", "exit_plan_mode.", "elicitation.", "mcp.", "sampling.", "auto_mode",
)  # fmt: skip
"""How the types of events begin that tell nothing of the work."""


@dataclass(slots=True)
class CopilotReader(LineReader):
    """Reads the events of one session. `session` is the name of its folder, `name` what the user calls it."""

    session: str
    name: str | None = None
    _writers: dict[str, SessionWriter] = field(default_factory=dict)
    """Agent, or nothing for the session's own → its writer."""
    _types: dict[str, str] = field(default_factory=dict)

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        self.queue.read_time(raw.get("timestamp"))
        data, kind = get_mapping(raw, "data"), get_text(raw, "type") or ""
        own = self._find_writer("")
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self._read_session_start(data, own)
        else:
            writer = self._find_writer(get_text(raw, "agentId") or "")
            self._read(kind, data, get_text(raw, "id"), writer)

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the ends of the last turns."""
        if own := self._writers.get(""):
            own.add_title(self.name, "custom", self.last_at)
        for writer in self._writers.values():
            writer.finish(is_growing=is_growing)
            self.is_open |= writer.is_open
        return self.queue.take_all()

    def _find_writer(self, agent: str) -> SessionWriter:
        if agent not in self._writers:
            writer = SessionWriter(self.session, queue=self.queue, agent=agent or None)
            writer.agent_type = self._types.get(agent, "")
            self._writers[agent] = writer
        return self._writers[agent]

    def _read_session_start(self, data: Mapping[str, Any], own: SessionWriter) -> None:
        """Read where a session begins, or goes on."""
        self.session = own.session = get_text(data, "sessionId") or own.session
        context = get_mapping(data, "context") or data
        own.place(get_text(context, "cwd"))
        own.branch = get_text(context, "branch")

    def _read(
        self, kind: str, data: Mapping[str, Any], line: str | None, writer: SessionWriter
    ) -> None:
        if kind == "user.message":
            self._read_prompt(data, line, writer)
        elif kind == "assistant.message":
            # One that calls no tool is the last in its turn.
            writer.add_text(
                get_text(data, "content") or "", self.last_at, get_text(data, "messageId"),
                is_final=not data.get("toolRequests"),
            )  # fmt: skip
        elif kind == "assistant.turn_end":
            writer.end_turn_if_final()
        elif kind == "tool.execution_start":
            writer.add_call(get_text(data, "toolCallId"), _name_tool(data), data.get("arguments"))
        elif kind == "tool.execution_complete":
            self._read_result(data, writer)
        else:
            self._read_change(kind, data, line, writer)

    def _read_change(
        self, kind: str, data: Mapping[str, Any], line: str | None, writer: SessionWriter
    ) -> None:
        """Read what happened to the session, not in it."""
        if kind == "subagent.started":
            self._types[get_text(data, "toolCallId") or ""] = get_text(data, "agentName") or ""
        elif kind == "session.compaction_complete":
            summary = get_text(data, "summaryContent") or ""
            writer.add_compaction(summary, self.last_at, uuid=line)
        elif kind == "session.title_changed":
            writer.add_title(get_text(data, "title"), "ai", self.last_at)
        elif kind == "abort":
            writer.interrupt()
        elif kind in ("session.shutdown", "session.task_complete"):
            writer.end_turn()
        elif kind.startswith(_OTHER_EVENTS):
            self.skipped["not conversation"] += 1
        else:
            self.count_other(kind)

    def _read_prompt(
        self, data: Mapping[str, Any], line: str | None, writer: SessionWriter
    ) -> None:
        is_continued = data.get("isAutopilotContinuation") is True
        if is_continued or get_text(data, "source") not in (None, _USER):
            self.skipped["injected by the client"] += 1
            return
        uuid = get_text(data, "messageId") or line
        writer.add_prompt(get_text(data, "content") or "", self.last_at, uuid=uuid)

    def _read_result(self, data: Mapping[str, Any], writer: SessionWriter) -> None:
        use_id = get_text(data, "toolCallId")
        if data.get("success") is False:
            error = get_text(get_mapping(data, "error"), "message") or "failed"
            writer.add_result(use_id, self.last_at, error=error)
        else:
            text = get_text(get_mapping(data, "result"), "content") or ""
            told = {"result_type": "success", "text_result_for_llm": text}
            writer.add_result(use_id, self.last_at, tool_response=told)


def _name_tool(data: Mapping[str, Any]) -> str | None:
    server, tool = get_text(data, "mcpServerName"), get_text(data, "mcpToolName")
    return f"mcp__{server}__{tool}" if server and tool else get_text(data, "toolName")
