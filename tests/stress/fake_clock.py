"""memd with another clock: every process that runs here reads a wall clock that a test sets.

    python fake_clock.py FILE serve | hook … | status …

FILE holds by how many milliseconds the clock is wrong; it is read each time. The monotonic clock is right.
`Clock` sets it; `turn` makes the events of a turn at a time.
"""

import runpy
import struct
import sys
import time
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_MILLION = 1_000_000
_REAL = time.time_ns
VARIABLE = "FAKE_CLOCK"
"""In the environment: the file of a forked memd's clock."""


class Clock:
    """A clock in a file. Times are UTC milliseconds."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.shift = 0
        self.move(0)

    def now(self) -> int:
        """What it says."""
        return _REAL() // _MILLION + self.shift

    def move(self, by: int) -> None:
        """Set it forward, or back."""
        self.set_shift(self.shift + by)

    def set(self, at: int) -> None:
        """Set it to a time; from there it goes on."""
        self.set_shift(at - _REAL() // _MILLION)

    def set_shift(self, shift: int) -> None:
        """Set by how much it is wrong; readers see the old or the new value whole."""
        self.shift = shift
        new = Path(f"{self.path}.new")
        new.write_bytes(struct.pack("<q", shift))
        new.replace(self.path)


def use_clock(path: str) -> None:
    """Have this process read that clock from now on."""

    def time_ns() -> int:
        with open(path, "rb") as file:  # noqa: PTH123  # as little as possible
            return _REAL() + struct.unpack("<q", file.read())[0] * _MILLION

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def turn(  # what a turn may be like
    session: str, number: int, at: int, *, named: bool = True, calls: int = 1, stop: bool = True,
    lines: int = 1,
) -> list[Event]:  # fmt: skip
    """A turn's events, a second apart from `at`, UTC ms; its decision names its number."""
    base: dict[str, Any] = {"session_id": session, "cwd": "/nowhere"}
    base |= {"prompt_id": f"{session}-{number}"} if named else {}
    asked = f"Why does worker {session}{number} time out?"
    payloads: list[dict[str, Any]] = [{"hook_event_name": "UserPromptSubmit", "prompt": asked}]
    for call in range(calls):
        tool = {"tool_name": "Bash", "tool_use_id": f"{session}-{number}-{call}"}
        given = {"tool_input": {"command": f"make part-{call}"}}
        payloads += [
            {"hook_event_name": "PreToolUse", **tool, **given},
            {
                "hook_event_name": "PostToolUse", **tool, **given,
                "tool_response": {"stdout": f"ok {call}\n" * lines, "stderr": "", "interrupted": False},
            },
        ]  # fmt: skip
    if stop:
        change = {"file_path": f"/nowhere/worker{number}.py", "old_string": "lock", "new_string": f"queue{session}{number}"}  # fmt: skip
        edit = {
            "tool_name": "Edit",
            "tool_use_id": f"{session}-{number}-edit",
            "tool_input": change,
        }
        payloads.append({"hook_event_name": "PostToolUse", **edit, "tool_response": {"filePath": change["file_path"]}})  # fmt: skip
        said = (
            f"Moved worker{number} to queue{session}{number}, so it no longer waits for a lock. "
            f"We chose queue{session}{number} over a lock because worker{number} is fair."
        )
        payloads.append({"hook_event_name": "Stop", "last_assistant_message": said})
    return [
        {"client": "claude-code", "payload": {**base, **payload}, "at": at + 1_000 * place}
        for place, payload in enumerate(payloads)
    ]


def main() -> None:
    """Be memd."""
    use_clock(sys.argv[1])
    sys.argv[:] = ["memd", *sys.argv[2:]]
    del sys.path[0]  # memd is installed; what lies beside this file is none of it
    runpy.run_module("memd", run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
