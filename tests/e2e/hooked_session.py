"""A session of Claude Code that a real daemon hears of."""

import itertools

PROJECT = "/home/dev/shop"
NUMBERS = itertools.count(1)


class Session:
    """One session of Claude Code, as its hooks tell it."""

    def __init__(self, daemon, key, project=PROJECT):
        self.daemon, self.key, self.project, self.turn = daemon, key, project, {}

    def hook(self, event, **fields):
        """What the daemon answers to an event, as text; empty if nothing."""
        payload = {
            "session_id": self.key, "cwd": self.project, "hook_event_name": event,
            "tool_use_id": f"t{next(NUMBERS)}", **self.turn, **fields,
        }  # fmt: skip
        asked = {"client": "claude-code", "payload": payload, "inject": True}
        with self.daemon.client() as client:
            answer = client.call("memd/capture", asked)
        self.last, output = answer["seq"], answer.get("output")
        return output["hookSpecificOutput"]["additionalContext"] if output else ""

    def asks(self, prompt):
        self.turn = {"prompt_id": f"p{next(NUMBERS)}"}
        return self.hook("UserPromptSubmit", prompt=prompt)

    def runs(self, command, stdout=""):
        response = {"stdout": stdout, "stderr": "", "interrupted": False}
        return self.hook("PostToolUse", tool_name="Bash", tool_input={"command": command}, tool_response=response)  # fmt: skip

    def fails(self, command, error):
        return self.hook("PostToolUseFailure", tool_name="Bash", tool_input={"command": command}, error=f"Exit code 1\n{error}", is_interrupt=False)  # fmt: skip

    def touches(self, path, tool="Read"):
        given = {"file_path": path if path.startswith("/") else f"{self.project}/{path}"}
        if tool == "Edit":
            given |= {"old_string": "x = 1", "new_string": "x = 2"}
        return self.hook("PostToolUse", tool_name=tool, tool_input=given, tool_response={"filePath": given["file_path"]})  # fmt: skip

    def ends(self, answer):
        """End the turn and the session, and wait until both are distilled and indexed."""
        self.hook("Stop", last_assistant_message=answer, stop_hook_active=False)
        self.hook("SessionEnd", reason="other")
        self.wait()

    def wait(self):
        """Wait until what was told last is distilled and indexed."""
        asked = {"query": "anything", "min_event": self.last, "directory": self.project}
        with self.daemon.client() as client:
            assert not client.call("memd/search", asked).get("degraded")

    def notes(self, text, **fields):
        with self.daemon.client() as client:
            return client.call("memd/remember", {"text": text, "directory": self.project, **fields})["id"]  # fmt: skip
