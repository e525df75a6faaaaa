"""Read a rollout of Codex CLI: `{timestamp, type, payload}` a line.

Seen with 0.169.0, driven; older lines as openai/codex told them before. A command or a change of files has an item with its
outcome and the id that hooks have; where there is none, the call and its output are read. Left out is what the
client wrote in the user's role, which it marks, and which older ones began with known words.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.transfer.claude_markup import join_texts
from memd.transfer.readers import (
    ImportedPayload,
    LineReader,
    SessionWriter,
    get_mapping,
    get_objects,
    get_text,
)

_BARE_ITEMS = frozenset(
    {"message", "function_call", "function_call_output", "local_shell_call", "reasoning"}
)
"""Types of lines of the first clients, which had no envelope."""
_NOT_CONVERSATION = frozenset({"world_state", "session_state", "ghost_snapshot", "state"})
_OTHER_ITEMS = frozenset({
    "reasoning", "web_search_call", "tool_search_call", "tool_search_output", "ghost_snapshot", "image_generation_call",
    "compaction", "compaction_summary", "context_compaction", "mcp_list_tools",
})  # fmt: skip
"""Types of lines, and of items in them, that tell nothing of the work."""
_CLIENTS_TAGS = (
    "user_instructions", "environment_context", "turn_aborted", "subagent_notification", "user_shell_command", "skill",
    "collaboration_mode", "permissions", "hook_prompt", "image", "model_switch", "INSTRUCTIONS",
)  # fmt: skip
_INJECTED = re.compile(rf"\s*(?:# AGENTS\.md instructions|</?(?:{'|'.join(_CLIENTS_TAGS)})\b)")
"""How a text begins that the client put in the user's place."""
_TYPED = "user."
"""A part of a message that the user wrote has a kind that begins with it."""
_EDITOR_REQUEST = re.compile(r"^## My request for Codex:?[ \t]*\n", re.MULTILINE)
"""An editor puts what is open in it before this line, and the user's words after it."""
_CONTEXT = "# "
"""It begins with a heading: what is open, or which files are attached."""
_OUTPUT_HEAD = re.compile(r"(?:[^\n]*\n){0,8}?Output:\n")
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d+)", re.MULTILINE)
_HEAD_CHARACTERS = 400
_SUMMARY_HEAD = re.compile(
    r"\AAnother language model started to solve this problem.*?own analysis:\s*", re.DOTALL
)
_SCRIPT = "exec"
"""The tool that runs a script, which calls other tools; those have items."""
_UNSUPPORTED = "unsupported "
_COPIED_MS = 2_000
"""An older client copies the past of a forked session into the new file, within this time."""


@dataclass(slots=True)
class CodexReader(LineReader):
    """Reads one rollout. `names` has what the user calls sessions."""

    names: Mapping[str, str] = field(default_factory=dict)
    _thread: str = ""
    _turn: str | None = None
    _prompts: set[tuple[str | None, str]] = field(default_factory=set)
    """(turn, text) of the prompts of this turn: a line and an event tell the same one."""
    _copied_until: int | None = None

    def _read_record(self, raw: Mapping[str, Any]) -> None:
        at = self.queue.read_time(raw.get("timestamp"))
        kind, payload = get_text(raw, "type"), get_mapping(raw, "payload")
        if kind in _BARE_ITEMS and not payload:
            kind, payload = "response_item", raw
        elif kind is None and get_text(raw, "id") and "instructions" in raw:
            kind, payload = "session_meta", raw
        if kind == "session_meta":
            self._begin(payload)
        elif self._writer is None:
            self.skipped["no session"] += 1
        elif self._copied_until is not None and (at or 0) <= self._copied_until:
            self.skipped["copied from another session"] += 1
        else:
            self._read(kind or "", payload, self._writer)

    def finish(self, *, is_growing: bool = False) -> list[ImportedPayload]:
        """Return the end of the last turn, and what the user calls the session."""
        if self._writer is not None:
            self._writer.add_title(self.names.get(self._thread), "custom", self.last_at)
        return LineReader.finish(self, is_growing=is_growing)

    def _begin(self, meta: Mapping[str, Any]) -> None:
        thread = get_text(meta, "id") or get_text(meta, "session_id")
        if thread is None:
            return
        if self._writer is not None and thread == self._thread:
            self._writer.place(get_text(meta, "cwd"))
            return
        if self._writer is not None:
            self._copied_until = (self.last_at or 0) + _COPIED_MS
            return
        spawned = get_mapping(meta, "source", "subagent", "thread_spawn")
        parent = get_text(meta, "parent_thread_id") or get_text(spawned, "parent_thread_id")
        self._thread = thread
        self._writer = SessionWriter(
            session=(get_text(meta, "session_id") or parent or thread) if parent else thread,
            directory=get_text(meta, "cwd"),
            branch=get_text(get_mapping(meta, "git"), "branch"),
            remote=get_text(get_mapping(meta, "git"), "repository_url"),
            agent=thread if parent else None,
            agent_type=get_text(spawned, "agent_role", "agent_nickname") or "",
            queue=self.queue,
        )

    def _read(self, kind: str, payload: Mapping[str, Any], writer: SessionWriter) -> None:
        if kind == "response_item":
            self._read_item(payload, writer)
        elif kind == "event_msg":
            self._read_event(payload, writer)
        elif kind == "turn_context":
            self._turn = get_text(payload, "turn_id") or self._turn
            writer.place(get_text(payload, "cwd"))
        elif kind == "compacted":
            summary = _SUMMARY_HEAD.sub("", get_text(payload, "message") or "")
            writer.add_compaction(summary, self.last_at, uuid=self._line_id(payload))
        else:
            self.count_other(kind, _NOT_CONVERSATION)

    def _line_id(self, payload: Mapping[str, Any]) -> str:
        return get_text(payload, "id") or f"{self._thread}:{self._lines}"

    def _read_item(self, item: Mapping[str, Any], writer: SessionWriter) -> None:
        kind = get_text(item, "type")
        turn = get_text(get_mapping(item, "internal_chat_message_metadata_passthrough"), "turn_id")
        self._turn = turn or self._turn
        if kind == "message":
            self._read_message(item, writer)
        elif kind in ("function_call", "custom_tool_call"):
            writer.add_call(get_text(item, "call_id"), _name_tool(item), _read_arguments(item))
        elif kind == "local_shell_call":
            given = {"command": get_mapping(item, "action").get("command")}
            writer.add_call(get_text(item, "call_id", "id"), "local_shell", given)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._read_output(item, writer)
        else:
            self.count_other(kind, _OTHER_ITEMS)

    def _read_message(self, item: Mapping[str, Any], writer: SessionWriter) -> None:
        role = get_text(item, "role")
        if role == "assistant":
            if self._turn is None:
                self._prompts.clear()
            text = join_texts(item.get("content"), "output_text", "text")
            writer.add_text(text, self.last_at, self._line_id(item))
        elif role == "user" and (text := "\n".join(_list_typed(item)).strip()):
            self._read_prompt(text, self._line_id(item), writer)
        else:
            self.skipped["injected by the client"] += 1

    def _read_prompt(self, text: str, uuid: str, writer: SessionWriter) -> None:
        if text.startswith(_CONTEXT) and (request := _EDITOR_REQUEST.search(text)):
            text = text[request.end() :].strip()
        if (self._turn, text) in self._prompts:
            return
        if self._turn is None or not any(turn == self._turn for turn, _ in self._prompts):
            self._prompts.clear()
        self._prompts.add((self._turn, text))
        writer.add_prompt(text, self.last_at, turn=self._turn, uuid=uuid)

    def _read_event(self, event: Mapping[str, Any], writer: SessionWriter) -> None:
        kind = get_text(event, "type")
        if kind in ("task_started", "turn_started"):
            writer.end_turn()
            self._turn = get_text(event, "turn_id")
            writer.prompt_id = self._turn
            self._prompts.clear()
        elif kind in ("task_complete", "turn_complete"):
            answer = get_text(event, "last_agent_message")
            turn = get_text(event, "turn_id")
            if turn is None or self._turn in (None, turn):  # not an earlier one's, once more
                uuid = f"{self._thread}:{self._lines}"
                writer.end_turn(answer=answer, at=self.last_at, uuid=uuid)
        elif kind == "turn_aborted":
            writer.interrupt()
        elif kind == "user_message":
            self._read_prompt(
                get_text(event, "message") or "", f"{self._thread}:{self._lines}", writer
            )
        elif kind == "item_completed":
            self._read_completed(get_mapping(event, "item"), writer)
        else:
            self.skipped["not conversation"] += 1

    def _read_completed(self, item: Mapping[str, Any], writer: SessionWriter) -> None:
        """Read an item with the outcome of a call; spoken items are repeated as messages."""
        kind, use_id = get_text(item, "type"), get_text(item, "id")
        if kind == "CommandExecution" and "exit_code" in item:
            call = writer.find_call(use_id) or ("exec_command", {"command": item.get("command")})
            output = get_text(item, "aggregated_output", "stdout") or ""
            code = item.get("exit_code")
            writer.add_result(use_id, self.last_at, call=call, tool_response=output, exit_code=code)
        elif kind == "FileChange":
            call = writer.find_call(use_id) or (
                "apply_patch",
                _read_changes(get_mapping(item, "changes")),
            )
            if get_text(item, "status") == "completed":
                writer.add_result(
                    use_id, self.last_at, call=call, tool_response=get_text(item, "stdout") or ""
                )
            else:
                error = get_text(item, "stderr", "stdout") or "the change was not applied"
                writer.add_result(use_id, self.last_at, call=call, error=error)
        else:
            self.skipped["not conversation"] += 1

    def _read_output(self, item: Mapping[str, Any], writer: SessionWriter) -> None:
        use_id = get_text(item, "call_id")
        call = writer.find_call(use_id)
        if call is not None and call[0] == _SCRIPT:
            writer.drop_call(use_id)
            self.skipped["a script of tool calls"] += 1
            return
        text, code = _read_outcome(item.get("output"))
        if text.startswith(_UNSUPPORTED):
            writer.drop_call(use_id)
            self.skipped["a call that was not run"] += 1
            return
        writer.add_result(use_id, self.last_at, tool_response=text, exit_code=code)


def _list_typed(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of a message that the user wrote."""
    kinds = get_mapping(item, "internal_chat_message_metadata_passthrough").get(
        "content_item_kinds"
    )
    for number, part in enumerate(get_objects(item, "content")):
        text = part.get("text")
        kind = kinds[number] if isinstance(kinds, list) and number < len(kinds) else None
        if not isinstance(text, str) or _INJECTED.match(text):
            continue
        if not isinstance(kind, str) or kind.startswith(_TYPED) or kind == "unknown":
            yield text


def _name_tool(item: Mapping[str, Any]) -> str | None:
    """Return a tool's name as hooks have it: an MCP tool's with its server's."""
    name, space = get_text(item, "name"), get_text(item, "namespace") or ""
    if name is None or not space.startswith("mcp__") or name.startswith("mcp__"):
        return name
    return f"{space.rstrip('_')}__{name}"


def _read_arguments(item: Mapping[str, Any]) -> Any:
    given = item.get("arguments", item.get("input"))
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return {"command": given}


def _read_outcome(output: Any) -> tuple[str, int | None]:
    """Return the text of a call's output, and its exit code if it was a command's."""
    if isinstance(output, list):
        output = join_texts(output)
    if isinstance(output, str) and output.startswith("{"):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return str(output), None
    if isinstance(output, Mapping):
        text = get_text(output, "output", "content", "stdout")
        code = get_mapping(output, "metadata").get("exit_code", output.get("exit_code"))
        whole = json.dumps(output) if text is None else text
        return whole, code if isinstance(code, int) else None
    text = output if isinstance(output, str) else ""
    head = _OUTPUT_HEAD.match(text[:_HEAD_CHARACTERS])
    code = _EXIT_CODE.search(text[: head.end()]) if head else None
    return (text[head.end() :] if head else text), int(code[1]) if code else None


def _read_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the edits of a change of files: `file_path` of the first file, and `edits`, one for each."""
    edits: list[dict[str, str]] = []
    for path, change in changes.items():
        if not isinstance(change, Mapping):
            continue
        moved, content = get_text(change, "move_path"), change.get("content")
        edit = {"file_path": moved or path}
        if isinstance(content, str) and change.get("type") == "add":
            edit["content"] = content
        else:
            lines = [
                one
                for one in (get_text(change, "unified_diff") or "").splitlines()
                if one[:2] != "@@"
            ]
            edit["old_string"] = "\n".join(one[1:] for one in lines if one[:1] in ("-", " "))
            edit["new_string"] = "\n".join(one[1:] for one in lines if one[:1] in ("+", " "))
        edits.append(edit)
    return {"file_path": edits[0]["file_path"] if edits else "", "edits": edits}
