"""A session of Claude Code that is going on: its hooks, and the transcript that it writes behind them."""

import datetime as dt
import json
import threading
import uuid
from pathlib import Path
from typing import Any

from memd.client import Client

LAG_S = 0.1
"""Seconds after the Stop hook until the last lines of the turn are in the file: it has neither the tool's result nor the closing words before."""
_CALLS = 12
_OUTPUT = "".join(f"internal/limits/part{n}.go:{n}: var limit{n} = {n}\n" for n in range(80))
"""Some 4 kB: a turn of a real session writes some 85 kB of transcript."""


class LiveSession:
    """One session in `folder`, which the daemon behind `client` hears of."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._session = str(uuid.uuid4())
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{self._session}.jsonl"
        self._parent: str | None = None
        self._late: list[threading.Timer] = []
        self._call_hook("SessionStart", source="startup")

    def run_turn(self, name: str) -> None:
        """A turn that changes `<name>.py`; returns when its Stop hook has been answered.

        Hooks tell of all but one text. The last lines come `LAG_S` behind the Stop hook, as the client writes them,
        and before those of the next turn: among its calls, the closing words would be a text of the next turn.
        """
        self.wait_written()
        prompt, turn = f"raise the limit in {name}.py to 2", {"prompt_id": str(uuid.uuid4())}
        said = f"The limit in {name}.py is 1: I raise it."
        closing = f"The limit in {name}.py is now 2."
        path = f"/nowhere/{name}.py"
        edit = {"file_path": path, "old_string": "limit = 1", "new_string": "limit = 2"}
        grep = {"command": f"grep -n limit {path}", "description": "Look for the limit"}
        self._call_hook("UserPromptSubmit", prompt=prompt, **turn)
        self._write("user", prompt, promptId=turn["prompt_id"])
        self._write("attachment", None, attachment={"type": "environment", "snapshot": {}})
        self._write("assistant", [{"type": "text", "text": said}])
        for _ in range(_CALLS):
            result = {"stdout": _OUTPUT, "stderr": "", "interrupted": False}
            self._write_result(self._use_tool("Bash", grep, result, turn), result, turn)
        done = {"filePath": path}
        use = self._use_tool("Edit", edit, done, turn)
        self._call_hook("Stop", last_assistant_message=closing, **turn)
        late = threading.Timer(LAG_S, self._write_end, (use, done, turn, closing))
        late.start()
        self._late.append(late)

    def wait_written(self) -> None:
        """Wait until the transcript is whole."""
        while self._late:
            self._late.pop().join()

    def _use_tool(self, tool: str, given: Any, result: Any, turn: dict[str, str]) -> str:
        """A call, in the transcript and then to the hook; its id."""
        use = f"toolu_{uuid.uuid4().hex}"
        self._write("assistant", [{"type": "tool_use", "id": use, "name": tool, "input": given}])
        self._call_hook(
            "PostToolUse", tool_name=tool, tool_use_id=use, tool_input=given, tool_response=result, **turn
        )  # fmt: skip
        return use

    def _write_result(self, use: str, result: Any, turn: dict[str, str]) -> None:
        block = {"type": "tool_result", "tool_use_id": use, "content": result.get("stdout", "done")}
        self._write("user", [block], promptId=turn["prompt_id"], toolUseResult=result)

    def _write_end(self, use: str, result: Any, turn: dict[str, str], closing: str) -> None:
        self._write_result(use, result, turn)
        self._write("assistant", [{"type": "text", "text": closing}])
        self._write("system", None, subtype="stop_hook_summary", hookCount=1)

    def _call_hook(self, name: str, **fields: Any) -> None:
        payload = {
            "session_id": self._session, "hook_event_name": name, "cwd": "/nowhere",
            "transcript_path": str(self._path), **fields,
        }  # fmt: skip
        self._client.call("memd/capture", {"client": "claude-code", "payload": payload})

    def _write(self, kind: str, content: Any, **fields: Any) -> None:
        line_id, parent = str(uuid.uuid4()), self._parent
        at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = {} if content is None else {"message": {"role": kind, "content": content}}
        line = {
            "parentUuid": parent, "isSidechain": False, "type": kind, **message, "uuid": line_id,
            "timestamp": at, "userType": "external", "entrypoint": "cli", "cwd": "/nowhere",
            "sessionId": self._session, "version": "2.1.329", "gitBranch": "main", **fields,
        }  # fmt: skip
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._parent = line_id
