"""The real Claude Code, in its own home, talking only to a scripted API.

Installs the client once, runs it without a terminal, and reads what it says of itself: every hook
with its output, the servers it reached, its answer. Not here: what it should have said.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.workspace import run

PACKAGE = "@anthropic-ai/claude-code"
VERSION = "2.1.332"
MODEL = "claude-sonnet-4-5"
INSTALL_S = 300.0
GRACE_S = 5.0
_LOGGED = re.compile(
    r"(?P<name>[A-Z]\w+(?::\S+)?) \[[^\]]*\](?: \(plugin [^)]*\))? (?:finished|completed) with status (?P<status>\d+)"
    r"(?: \((?P<ms>\d+)ms\))?"
)
"""What its debug log says of a hook that it waited for. Of those around a compaction and of SessionEnd,
which comes after its last word, it says so nowhere else."""
_HOOK_FIELDS = ("hook_event", "hook_name", "stdout", "stderr", "outcome")
SWITCHES_OFF = (
    "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
)  # fmt: skip
"""Environment variables that keep Claude Code from calling home."""


class Impossible(Exception):
    """The test cannot run here; the message says what is missing."""


def installed(directory: Path, package: str = f"{PACKAGE}@{VERSION}", name: str = "claude") -> Path:
    """A client's program below `directory`, installed from npm's registry if it is not there."""
    program = directory / "node_modules" / ".bin" / name
    if program.exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise Impossible(
            f"npm is needed to install {package}; install Node.js, or name a {name} with --{name} PATH"
        )
    print(f"installing {package} (200 to 400 MB, once) into {directory} …", flush=True)
    # Beside, then renamed: an installation that was interrupted must not look like one.
    partial = directory.with_name(f"{directory.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    words = ["install", "--prefix", str(partial), package, "--no-fund", "--no-audit"]
    try:
        done = subprocess.run(
            [npm, *words], capture_output=True, text=True, check=False, timeout=INSTALL_S
        )
        if done.returncode:
            said = "\n".join((done.stderr or done.stdout).strip().splitlines()[:3])
            raise Impossible(f"npm could not install {package}; is the network there?\n{said}")
        shutil.rmtree(directory, ignore_errors=True)
        partial.rename(directory)
    except subprocess.TimeoutExpired:
        raise Impossible(
            f"npm did not finish within {INSTALL_S:.0f} s; is the network there?"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return program


@dataclass(frozen=True, slots=True)
class HookRun:
    """One hook that the client ran, as it tells it."""

    event: str
    name: str
    """The event with what it matched: `PostToolUse:Bash`, `SessionStart:resume`."""
    stdout: str
    stderr: str
    outcome: str
    """`success`; `cancelled` if the client left before a hook in the background was done."""

    @property
    def context(self) -> str:
        """What it adds to the conversation; empty if nothing."""
        if not self.stdout.startswith("{"):
            return ""
        said: dict[str, Any] = json.loads(self.stdout)
        own = said.get("hookSpecificOutput", {})
        return str(
            own.get("additionalContext")
            or own.get("permissionDecisionReason")
            or said.get("reason", "")
        )

    @property
    def is_quiet(self) -> bool:
        """Whether it did what hooks should: succeed, and say nothing but an object of context."""
        is_context = not self.stdout.strip() or bool(self.context)
        return self.outcome in ("success", "cancelled") and not self.stderr and is_context


@dataclass(frozen=True, slots=True)
class Run:
    """One `claude -p`, from its start to its exit."""

    status: int
    session: str
    hooks: tuple[HookRun, ...]
    unfinished: tuple[str, ...]
    """Hooks that started and whose end the client did not report."""
    waited_for: tuple[tuple[str, int, int], ...]
    """Of each hook that the client waited for: its name, exit status, and milliseconds if reported."""
    servers: dict[str, str]
    """MCP servers, and how the client got on with each."""
    said: str
    took_s: float
    problem: str
    """What it says went wrong; empty if nothing."""

    def contexts(self, event: str) -> Iterator[HookRun]:
        """The hooks of an event that added something."""
        return (hook for hook in self.hooks if hook.event == event and hook.context)


class ClaudeCode:
    """The client with its home, its project and the API it may talk to."""

    def __init__(self, program: Path, home: Path, project: Path, url: str) -> None:
        self.program = program
        self.home = home
        self.project = project
        self._runs = 0
        self.environ = {
            "PATH": os.pathsep.join(
                (str(Path(sys.executable).parent), str(program.parent), os.environ["PATH"])
            ),
            "HOME": str(home),
            # Otherwise it is the caller's, where the caller's own daemon may listen.
            "XDG_RUNTIME_DIR": str(home / "run"),
            "LANG": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/sh", "NO_PROXY": "127.0.0.1,localhost",
            # Otherwise it asks the model without the tools of a server that starts on a busy machine.
            "MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "30000",
            "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "30000",
            "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url,
            **dict.fromkeys(SWITCHES_OFF, "1"),
        }  # fmt: skip
        known = {
            "hasCompletedOnboarding": True,
            "projects": {str(project): {"hasTrustDialogAccepted": True}},
        }
        (home / ".claude.json").write_text(json.dumps(known), encoding="utf-8")
        (home / "run").mkdir(mode=0o700)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Anything that is not a conversation: `mcp list`, `plugin validate …`."""
        return self._call(*words)

    def ask(self, prompt: str, *words: str, session: str | None = None) -> Run:
        """One prompt, in a new session or in one that goes on."""
        self._runs += 1
        log = self.home / f"debug-{self._runs}.txt"
        flags = ["-p", prompt, "--model", MODEL, "--debug-file", str(log)]
        flags += ["--output-format", "stream-json", "--verbose", "--include-hook-events"]
        if session:
            flags += ["--resume", session]
        began = time.monotonic()
        done = self._call(*flags, *words)
        took_s = time.monotonic() - began
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        logged = tuple(
            (match["name"], int(match["status"]), int(match["ms"] or 0))
            for match in _LOGGED.finditer(text)
        )
        return _run(lines, done, logged, took_s)

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run([str(self.program), *words], self.environ, self.project)


def _run(
    lines: list[dict[str, Any]],
    done: subprocess.CompletedProcess[str],
    logged: tuple[tuple[str, int, int], ...],
    took_s: float,
) -> Run:
    responses = {line["hook_id"]: line for line in lines if line.get("subtype") == "hook_response"}
    started = [line for line in lines if line.get("subtype") == "hook_started"]
    result = next((line for line in reversed(lines) if line.get("type") == "result"), {})
    init = next((line for line in lines if line.get("subtype") == "init"), {})
    problem = done.stderr.strip() if done.returncode else ""
    if result.get("is_error") or not result:
        problem = problem or str(result.get("result") or result.get("errors") or done.stderr)
    return Run(
        status=done.returncode,
        session=str(result.get("session_id", "")),
        hooks=tuple(HookRun(*(line[name] for name in _HOOK_FIELDS)) for line in responses.values()),
        unfinished=tuple(line["hook_name"] for line in started if line["hook_id"] not in responses),
        waited_for=logged,
        servers={one["name"]: one["status"] for one in init.get("mcp_servers", ())},
        said=str(result.get("result", "")),
        took_s=took_s,
        problem=problem,
    )


# ── Processes ────────────────────────────────────────────────────────────────────────────────────


def processes(home: Path) -> dict[int, str]:
    """Every process that has this home in its environment, and its command line."""
    mark = f"HOME={home}"
    if Path("/proc/self/environ").exists():
        return dict(_listed(mark))
    words = ("axeww", "-o", "pid=,command=")
    listed = subprocess.run(
        [shutil.which("ps") or "ps", *words], capture_output=True, text=True, check=False
    )
    rows = (line.split(None, 1) for line in listed.stdout.splitlines() if mark in line)
    return {int(pid): command.partition(" HOME=")[0] for pid, command in rows}


def _listed(mark: str) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # ended meanwhile, or another user's
        if mark in environ and any(command):
            yield int(entry.name), " ".join(command).strip()


def end(home: Path) -> None:
    """End whatever still runs in this home: politely, then not."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_S
        for pid in processes(home):
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                continue
        while processes(home):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        else:
            return
