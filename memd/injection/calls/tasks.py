"""Tasks of subagents, which Claude Code's hook of their start does not give.

The session's transcript has the call by then (seen with 2.1.332), near its end.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

_TAIL_BYTES = 256 * 1024
_TOOLS = frozenset({"Agent", "Task"})
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_task(transcript: str, agent_type: str) -> str:
    """Return what the latest call of a subagent of this type asks for; empty if the transcript does not say.

    Of several in one message all: which of them begins is not known.
    """
    try:
        tail = _read_tail(transcript)
    except (OSError, ValueError):  # also a path with a zero byte
        return ""
    message, asked = None, []
    for line in reversed(tail.split(b"\n")):
        if b'"tool_use"' not in line or b'"prompt"' not in line:
            continue
        number, tasks = _list_tasks(line)
        of_type = [one for one in tasks if one.get("subagent_type", agent_type) == agent_type]
        if of_type and message not in (None, number):
            break
        message = number if of_type else message
        asked += [f"{one.get('description', '')}\n{one['prompt']}" for one in of_type]
    return "\n".join(asked)


def _list_tasks(line: bytes) -> tuple[object, list[Mapping[str, Any]]]:
    """Return (the id of a line's message, the tasks that its calls of subagents were given)."""
    try:
        message = json.loads(line)["message"]
        blocks = message["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, []  # the first line of the tail is cut
    given = [
        block.get("input")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, Mapping) and block.get("name") in _TOOLS
    ]
    tasks = [g for g in given if isinstance(g, Mapping) and isinstance(g.get("prompt"), str)]
    return message.get("id"), tasks


def _read_tail(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    finally:
        os.close(descriptor)
