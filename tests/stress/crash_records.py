"""Turns to capture, and the export of another vault to import."""

import functools
import json
import time
from typing import Any

from benchmarks import corpus, harness
from memd.transfer import archive


def turn(number: int, session: str, word: str = "") -> list[dict[str, Any]]:
    """The events of a turn: asked, run, failed or not, answered."""
    base = {"session_id": session, "prompt_id": f"k{number}", "cwd": "/nowhere"}
    tool = {"tool_name": "Bash", "tool_use_id": f"t{number}"}
    command = {"command": f"make check-{number % 50}"}
    asked = f"Why does worker {number} time out? {word}".strip()
    said = f"Worker {number} waits for a lock. We chose a queue over a lock because it is fair. {word}"
    payloads = [
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": asked},
        {
            **base, **tool, "hook_event_name": "PostToolUse", "tool_input": command,
            "tool_response": {"stdout": f"ok {number} {word}", "stderr": "", "interrupted": False},
        },
        {**base, "hook_event_name": "Stop", "last_assistant_message": said.strip()},
    ]  # fmt: skip
    return [{"client": "claude-code", "payload": payload} for payload in payloads]


class Lines:
    """Bytes, read as a file is."""

    def __init__(self, data: bytes) -> None:
        self._lines = iter(data.splitlines(keepends=True))

    def readline(self, limit: int = -1, /) -> bytes:
        """The next line."""
        return next(self._lines, b"")[: limit if limit >= 0 else None]


def reworded_export(data: bytes, word: str) -> bytes:
    """The same export from another vault: nothing in it is known, and each memory has this word."""
    lines = [json.loads(line) for line in data.splitlines()]
    header, records = lines[0], lines[1:-1]
    names = {
        str(one[key])
        for one in records
        for key in ("uid", "key")
        if one["record"] in {"session", "event", "summary"} and key in one
    }
    writer = archive.ExportWriter(header["memd"], None, header["counts"])
    out = [writer.header()]
    for one in records:
        fields = {
            name: f"{value[:60]}-{word}" if isinstance(value, str) and value in names else value
            for name, value in one.items()
        }
        if one["record"] == "summary":
            fields["body"] = f"{one['body']} {word}"
        out.append(writer.record(fields.pop("record"), fields))
    return b"".join((*out, writer.end()))


@functools.cache
def foreign_export() -> bytes:
    """What another machine's vault exports: some memories and turns."""
    with harness.daemon("[engines]\nembedder = 'hashing'\n") as daemon:
        with daemon.client() as client:
            now = time.time_ns() // 1_000_000
            client.call("memd/remember", {"memories": list(corpus.Corpus(3).memories(60, now))})
            events = [one for number in range(20) for one in turn(-number, "elsewhere")]
            client.call("memd/capture", {"events": events})
        daemon.settle()
        out: list[bytes] = []
        archive.export_vault(daemon.paths.database, "0", out.append)
    return b"".join(out)
