"""What sessions would have been shown: real transcripts are replayed up to a moment, and the context of that moment is printed.

    scripts/bench contexts ~/.claude/projects --starts 30 --prompts 60 --moments contexts.json

FOLDER is any folder of Claude Code transcripts. A daemon on a fresh vault imports what each transcript had before a moment, with the clock at
that moment; nothing leaves the machine. Judge each line by reading on in the transcript: would this session have wanted it, did it not
matter, or did it mislead? Another --salt draws other moments.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from benchmarks import metrics
from memd import log as memd_log
from memd.capture import truncate
from memd.client import Client
from memd.config import parse_config
from memd.daemon import app
from memd.errors import MemdError
from memd.paths import Paths
from memd.transfer import importer, parse_time_ms, transcripts

_WAIT_S = 60.0
_FOLLOWING = 5
"""Prompts of a session that are printed with its start, to judge by."""
_PROMPT_CHARACTERS = 300
_SETTINGS = '[engines]\nembedder = "hashing"\n[retention]\nenabled = false\n'


@dataclass(slots=True)
class Moment:
    """A session's start or one of its prompts, and what was shown. Times are UTC milliseconds."""

    name: str
    """`startup` or `prompt`."""
    session: str
    at: int
    directory: str | None
    prompt: str = ""
    follows: tuple[str, ...] = ()
    """After a start, what the session was asked."""
    text: str | None = None
    reason: str = ""
    memories: list[dict[str, Any]] = field(default_factory=list)
    """What was shown, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument(
        "--starts", type=int, default=30, metavar="N", help="session starts (default: 30)"
    )
    parser.add_argument(
        "--prompts", type=int, default=60, metavar="N", help="prompts (default: 60)"
    )
    parser.add_argument("--salt", default="", help="draw other moments")
    parser.add_argument("--moments", metavar="FILE", type=Path, help="write all of it as JSON")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Print each moment, and count what was shown."""
    files = sorted(options.folder.rglob("*.jsonl"))
    logs = {file: read_lines(file) for file in files}
    moments = draw_moments(logs, options.starts, options.prompts, options.salt)
    replay(logs, moments)
    print("\n".join(map(format_moment, moments)), file=sys.stderr if options.json == "-" else None)
    if options.moments is not None:
        found = [asdict(one) for one in moments]
        options.moments.write_text(json.dumps(found, indent=1, ensure_ascii=False), "utf-8")
    return {name: _count(name, moments) for name in ("startup", "prompt")}


def _count(name: str, moments: Sequence[Moment]) -> dict[str, int]:
    of_name = [one for one in moments if one.name == name]
    return {
        "moments": len(of_name),
        "with lines": sum(bool(one.memories) for one in of_name),
        "lines": sum(len(one.memories) for one in of_name),
    }


def format_moment(one: Moment) -> str:
    """What was shown at a moment, as text."""
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(one.at / 1000))
    asked = [f"  asked: {_shorten(prompt)}" for prompt in (one.prompt, *one.follows) if prompt]
    shown = (one.text or f"nothing: {one.reason}").splitlines()
    return "\n".join((f"── {one.name} of {one.session[:8]}, {day}", *asked, *shown, ""))


def _shorten(prompt: str) -> str:
    return " ".join(prompt.split())[:_PROMPT_CHARACTERS]


# ── The moments ──────────────────────────────────────────────────────────────────────────────────

Log = Sequence[tuple[int, str]]
"""(UTC milliseconds, line) of a transcript; a line without a time has that of the one before."""


def read_lines(file: Path) -> Log:
    """The lines of a transcript with their times; those that are no JSON are left out."""
    found: list[tuple[int, str]] = []
    at = 0
    for line in file.read_text("utf-8", errors="replace").splitlines():
        try:
            raw = json.loads(line)
        except ValueError:
            continue
        stamp = parse_time_ms(raw.get("timestamp")) if isinstance(raw, dict) else None
        at = stamp or at
        found.append((at, line))
    first = next((at for at, _ in found if at), 0)
    return [(at or first, line) for at, line in found]


def draw_moments(logs: Mapping[Path, Log], starts: int, prompts: int, salt: str) -> list[Moment]:
    """So many starts and prompts, always the same with the same salt, in the order of time."""
    all_starts, all_prompts = [], []
    for log in logs.values():
        said = list(_read_prompts(log))
        if said:
            follows = tuple(one.prompt for one in said[:_FOLLOWING])
            first = said[0]
            begin = min(at for at, _ in log)
            all_starts.append(
                Moment("startup", first.session, begin, first.directory, follows=follows)
            )
            all_prompts += said

    def key(one: Moment) -> str:
        return hashlib.sha256(f"{salt}{one.session}{one.at}{one.prompt}".encode()).hexdigest()

    drawn = sorted(all_starts, key=key)[:starts] + sorted(all_prompts, key=key)[:prompts]
    return sorted(drawn, key=lambda one: (one.at, one.name == "prompt"))


def _read_prompts(log: Log) -> Iterator[Moment]:
    reader = transcripts.TranscriptReader()
    events = [event for _, line in log for event in reader.feed(line)]
    for event in [*events, *reader.finish()]:
        if event.payload.get("hook_event_name") == "UserPromptSubmit":
            session, prompt = event.payload["session_id"], event.payload["prompt"]
            yield Moment("prompt", session, event.at, event.directory, prompt)


# ── The replay ───────────────────────────────────────────────────────────────────────────────────


class _Replay:
    """A vault that has heard of each transcript what it said up to a moment."""

    def __init__(self, client: Client, logs: Mapping[Path, Log], folder: Path) -> None:
        self._client, self._logs, self._folder = client, logs, folder
        self._lines_fed: dict[Path, int] = {}
        self._checkpoints: dict[str, Any] = {}
        self._last_event = 0

    def feed(self, until: int) -> None:
        """Import what was said before this moment, and wait until it can be found."""
        files = []
        for file, log in self._logs.items():
            lines = [line for at, line in log if at < until]
            if lines and self._lines_fed.get(file) != len(lines):
                self._lines_fed[file] = len(lines)
                last_s = max(at for at, _ in log[: len(lines)]) / 1000
                files.append((last_s, str(self._write(file, lines, last_s))))
        report = importer.TranscriptImportReport(is_dry_run=False)
        importer.import_transcripts(
            [path for _, path in sorted(files)], self._send, self._checkpoints, lambda *_: None,
            truncate=truncate.clean_payload, report=report, now=until,
        )  # fmt: skip
        if self._last_event:
            self._client.call("memd/search", {"query": "anything", "min_event": self._last_event})
        self._client.call("memd/consolidate")

    def _write(self, file: Path, lines: Sequence[str], last_s: float) -> Path:
        copy = self._folder / file.parent.name / file.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(lines) + "\n", "utf-8")
        os.utime(copy, (last_s, last_s))
        return copy

    def _send(self, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        receipts: list[dict[str, Any]] = self._client.call("memd/capture", {"events": events})[
            "receipts"
        ]
        self._last_event = max(self._last_event, *(one["seq"] or 0 for one in receipts))
        return receipts

    def show(self, one: Moment) -> None:
        """Ask what would be shown at a moment; a session that began with it is not known yet."""
        asked = {"moment": one.name, "prompt": one.prompt, "directory": one.directory}
        try:
            found = self._client.call("memd/context", {**asked, "session": one.session})
        except MemdError:
            found = self._client.call("memd/context", asked)
        one.text, one.reason, one.memories = found["text"], found["reason"], found["memories"]


def replay(logs: Mapping[Path, Log], moments: Sequence[Moment]) -> None:
    """Fill in what is shown at each moment, with a daemon whose clock is at that moment."""
    clock = [moments[0].at if moments else 0]
    with tempfile.TemporaryDirectory(prefix="memd-contexts-") as home:
        paths = Paths({"HOME": home, "MEMD_HOME": f"{home}/memd"})

        def drive() -> None:
            _wait_for(paths.socket)
            with Client(paths.socket, _WAIT_S) as client:
                vault = _Replay(client, logs, Path(home, "projects"))
                for one in moments:
                    clock[0] = one.at
                    vault.feed(one.at)
                    vault.show(one)
                client.call("memd/shutdown")

        async def serve() -> None:
            config = parse_config(_SETTINGS, "contexts")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(app.serve, config, paths, lambda: clock[0]))
                await anyio.to_thread.run_sync(drive)

        try:
            anyio.run(serve)
        finally:
            memd_log.close()


def _wait_for(socket: str) -> None:
    waited_until = time.monotonic() + _WAIT_S
    while not Path(socket).exists():
        if time.monotonic() > waited_until:
            raise SystemExit("the daemon did not start")
        time.sleep(0.05)
