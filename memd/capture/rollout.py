"""The exit code of a command that Codex CLI has run: its hook leaves it out, its rollout has it by then.

A rollout is the client's own file of a session, a JSON object a line. The line about a command that has ended is written
before the hook runs (seen with 0.169.0), so it is near the end, also when an event has waited in the spool for a while.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

TAIL_BYTES = 512 * 1024
"""Bytes before the end that are searched."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME = re.compile(r"rollout-[^/]+\.jsonl")


def find_exit_code(payload: Mapping[str, Any]) -> int | None:
    """Return the exit code of the command that a hook's payload reports; None if the rollout does not tell it."""
    call = payload.get("tool_use_id")
    if not (names_rollout(payload) and isinstance(call, str) and call):
        return None
    try:
        tail = _read_tail(payload["transcript_path"])
    except (OSError, ValueError):  # also a path with a zero byte
        return None
    wanted = json.dumps(call).encode()
    for line in reversed(tail.split(b"\n")):
        if b'"exit_code"' in line and wanted in line:
            code = _read_exit_code(line, call)
            if code is not None:
                return code
    return None


def names_rollout(payload: Mapping[str, Any]) -> bool:
    """Return whether a hook's payload says where its session's rollout is."""
    path = payload.get("transcript_path")
    if not isinstance(path, str) or not path.startswith("/"):
        return False
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def _read_tail(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        return os.pread(descriptor, TAIL_BYTES, max(status.st_size - TAIL_BYTES, 0))
    finally:
        os.close(descriptor)


def _read_exit_code(line: bytes, call: str) -> int | None:
    """Return the code in a line about this call: of 2026 with an `item`, of older clients without one."""
    try:
        told = json.loads(line)["payload"]
        item = told.get("item", told)
        code = item["exit_code"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    is_it = call in (item.get("id"), item.get("call_id"))
    return code if is_it and isinstance(code, int) and not isinstance(code, bool) else None
