"""A real daemon fuzzed from outside: every control call, every tool, and hooks, as lines and as processes.

No line goes unanswered, no answer is a fault of memd's own, nothing stands in the log as an error, the
books balance, and `memd status` stays healthy. Not here: what is read without a daemon
(torture_fuzz_targets.py).
"""

import collections
import contextlib
import functools
import json
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import coverage
import torture_fuzz_matter as matters
from torture_fuzz_matter import Matter, dumped

import memd
from benchmarks import corpus, harness
from memd.serve import jsonrpc
from memd.serve.control import Control

RSS_MB = 320.0
ANSWER_S = 30.0
"""How long until a line is answered, where others compute on the same processors."""
_CONFIG = "[engines]\nembedder = 'hashing'\n[distill]\nidle_s = 1\ninterval_s = 1\n[consolidate]\ninterval_s = 2\n"
_LINES = 12
_ROOT = Path(memd.__file__).parent
_OURS = (jsonrpc.INTERNAL_ERROR_MESSAGE.encode(), b"breaks its own schema", b'"code":-32603')
_COSTLY = frozenset(
    {"memd/reindex", "memd/vacuum", "memd/doctor", "memd/consolidate", "memd/scrub"}
)
_NAMED = {
    "project": ("all", "current", "global", "/", "no such"),
    "directory": ("/", "/home/dev/project", "", "\x00", "a" * 5_000),
    "session": ("session-1", "41b15690-1857-433f-b1d0-04d3f26c9ad2"),
    "profile": ("memd", "no such"),
    "id": tuple(range(1, 60)),
    "other": tuple(range(1, 60)),
    "relation": ("compatible", "supersedes", "contradicts"),
    "what": ("r1", "#2", "1,2", "r", "0,0"),
    "pattern": ("cache", "(", "a{99999}", "\\d+ times"),
}
_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "f", "version": "1"},
}


Reached = dict[str, tuple[int, int]]
"""Room → branches taken, of how many."""


@dataclass
class Seen:
    """What became of a door."""

    line: str = ""
    wrong: list[str] = field(default_factory=list)


@functools.cache
def calls() -> dict[str, list[dict[str, Any]]]:
    """Every control call → the JSON schemas that its parameters may have."""
    table = Control(mock.MagicMock())._table()  # noqa: SLF001  # the names are all that is wanted
    return {
        name: [model.model_json_schema() for model in models.values()]
        for name, (models, _) in table.items()
    }


@contextlib.contextmanager
def house(reached: Reached | None, *, is_up: bool = True) -> Iterator[harness.Daemon]:
    """A daemon of our own, gone afterwards; the branches that it takes go to `reached`, if there is one."""
    home = tempfile.mkdtemp(prefix="memd-fuzz-")
    Path(home, "config.toml").write_text(_CONFIG, encoding="utf-8")
    daemon = harness.Daemon(home)
    rules = Path(home, "coveragerc")
    rules.write_text(
        f"[run]\nbranch = true\nparallel = true\ndata_file = {home}/branches\nsource = {_ROOT}\n"
    )
    if reached is not None:
        daemon.environ["COVERAGE_PROCESS_START"] = str(rules)
    try:
        if is_up:
            daemon.start()
        yield daemon
        daemon.stop()
        if reached is not None:
            reached |= _reached(rules, home)
    finally:
        daemon.stop()
        shutil.rmtree(home, ignore_errors=True)


def _reached(rules: Path, home: str) -> Reached:
    """Room → branches that the daemon took, of how many."""
    rooms: Reached = {}
    cover = coverage.Coverage(data_file=f"{home}/branches", config_file=str(rules))
    with contextlib.suppress(coverage.exceptions.CoverageException):
        cover.combine()
        cover.json_report(outfile=f"{home}/told.json")
        for path, told in json.loads(Path(home, "told.json").read_text())["files"].items():
            room = Path(path).resolve().relative_to(_ROOT).parts[0]
            taken, of = rooms.get(room, (0, 0))
            summary = told["summary"]
            rooms[room] = (taken + summary["covered_branches"], of + summary["num_branches"])
    return rooms


def told(reached: Reached | None) -> str:
    """Branches taken, of how many, in the rooms that matter."""
    rooms = ("serve", "capture", "distill", "recall", "consolidate", "store", "index")
    if reached is None:
        return ""
    parts = (
        f"{room} {reached[room][0]}/{reached[room][1]}" for room in rooms if room in reached
    )
    return f"  branches {' '.join(parts)}"


class Wire:
    """Lines to a daemon, and what is wrong with the answers."""

    def __init__(self, daemon: harness.Daemon, seed: int) -> None:
        self._daemon = daemon
        self._seed = seed
        self.tools = _tools(daemon.paths.socket)
        self.lines = 0
        self.slowest_s = 0.0
        self.answered: collections.Counter[str] = collections.Counter()

    def batch(self, case: int) -> tuple[bool, list[bytes]]:
        """Whether it is for MCP, and lines."""
        matter = matters.drawn(f"{self._seed}/wire/{case}")
        matter.named = _NAMED
        is_mcp = matter.chance(0.4)
        if is_mcp:
            return True, [self._tool_line(matter, n) for n in range(1, _LINES)]
        if matter.chance(0.3):
            start = matter.random.randrange(60)
            return False, [
                _line(n, "memd/capture", _captured(matter, start + n)) for n in range(1, _LINES)
            ]
        return False, [self._call_line(matter, n) for n in range(1, _LINES)]

    def _call_line(self, matter: Matter, number: int) -> bytes:
        method = matter.random.choice(list(calls()))
        if method in _COSTLY and matter.chance(0.8):
            method = "memd/search"
        if method == "memd/shutdown":
            return _line(number, method, {"when": matter.scalar()})
        params = matter.fitting(matter.random.choice(calls()[method]))
        return self._bent(matter, _message(number, method, params))

    def _tool_line(self, matter: Matter, number: int) -> bytes:
        if matter.chance(0.1):
            method = matter.random.choice(
                ("ping", "tools/list", "resources/list", matter.word())
            )
            return self._bent(matter, _message(number, method, {}))
        name = matter.random.choice(list(self.tools))
        given = matter.fitting(self.tools[name])
        return self._bent(
            matter, _message(number, "tools/call", {"name": name, "arguments": given})
        )

    def _bent(self, matter: Matter, message: dict[str, Any]) -> bytes:
        kind = matter.random.choices(("fits", "member", "all", "bytes"), (8, 8, 1, 1))[0]
        if kind == "member":
            message["params"] = matter.changed(message["params"])
        if kind == "all":
            method = message["method"]
            message = matter.changed(message, 0.5)
            if isinstance(message, dict) and message.get("method") != method:
                message.pop("method", None)
        data = dumped(message)
        data = matter.torn(data) if kind == "bytes" else data
        return data.replace(b"\n", b" ").replace(b"\r", b" ")

    def wrong(self, is_mcp: bool, lines: Sequence[bytes]) -> tuple[str, bytes] | None:
        """What went wrong with a batch, and the line that it went wrong with."""
        wanted: collections.Counter[str] = collections.Counter()
        owner: dict[str, bytes] = {}
        for line in lines:
            said = jsonrpc.parse_line(line)
            if isinstance(said, jsonrpc.Call | jsonrpc.InvalidLine | jsonrpc.Preface):
                key = repr(getattr(said, "id", None))
                is_told = not (isinstance(said, jsonrpc.Call) and said.id is None)
                wanted[key] += is_told
                owner.setdefault(key, line)
        self.lines += len(lines)
        begun = _line(0, "initialize", _HELLO) if is_mcp else _line(0, "memd/ping", {})
        wanted["0"] += 1
        began = time.monotonic()
        told = _exchanged(self._daemon.paths.socket, [begun, *lines], wanted.total())
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        for answer in told:
            key = repr(_id(answer))
            wanted[key] -= 1
            if found := _fault(answer):
                return found, owner.get(key, b"")
            self._count(is_mcp, owner.get(key), answer)
        odd = {key: count for key, count in wanted.items() if count}
        return (f"answers missing (or, negative, too many) by id: {odd}", owner.get(next(iter(odd)), b"")) if odd else None  # fmt: skip

    def _count(self, is_mcp: bool, line: bytes | None, answer: bytes) -> None:
        said = jsonrpc.parse_line(line or b"")
        if isinstance(said, jsonrpc.Call) and b'"result":' in answer and b'"isError":true' not in answer:  # fmt: skip
            self.answered[str(said.params.get("name")) if is_mcp else said.method] += 1

    def repeated(self, is_mcp: bool, line: bytes, what: str) -> bytes:
        """The smallest line that goes wrong alone in the same way."""
        until = time.monotonic() + 5.0

        def fails(less: Any) -> bool:
            found = self.wrong(is_mcp, [dumped(less)])
            return found is not None and found[0][:40] == what[:40]

        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if fails(value):
                may_go_on = lambda: time.monotonic() < until  # noqa: E731  # a word for it
                return dumped(matters.smallest(value, fails, may_go_on))
        return line


def _message(number: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _line(number: int, method: str, params: Any) -> bytes:
    return dumped(_message(number, method, params))


def _captured(matter: Matter, number: int) -> dict[str, Any]:
    known = payloads()
    payload = matter.changed(known[number % len(known)], 0.05)
    at = matter.random.choice((None, 0, 1_790_000_000_000 + number, 2**53))
    return {"client": "claude-code", "payload": payload, "at": at, "inject": matter.chance(0.3)}


@functools.cache
def payloads() -> list[dict[str, Any]]:
    """Real payloads of hooks, in the order in which they came."""
    return matters.hooks()


def _exchanged(path: str, lines: Sequence[bytes], count: int) -> list[bytes]:
    """Say these, wait for so many answers, then hang up and take what else there is."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(ANSWER_S)
    with link, link.makefile("rb") as answers:
        link.connect(path)
        link.sendall(b"".join(line + b"\n" for line in lines))
        told: list[bytes] = []
        with contextlib.suppress(TimeoutError, ConnectionError):
            while len(told) < count and (answer := answers.readline()):
                told.append(answer)
            link.shutdown(socket.SHUT_WR)
            told += list(answers)
    return told


def _id(answer: bytes) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(answer).get("id")
    return None


def _fault(answer: bytes) -> str | None:
    """What is wrong with an answer in itself."""
    try:
        told = json.loads(answer)
    except ValueError:
        return f"the answer is no JSON: {answer[:200]!r}"
    if any(mark in answer for mark in _OURS) or told.get("error", {}).get("code") == jsonrpc.SERVER_ERROR:  # fmt: skip
        return f"a fault of memd's own: {answer[:300]!r}"
    return None if ("result" in told) != ("error" in told) else f"no answer: {answer[:200]!r}"


def _tools(path: str) -> dict[str, dict[str, Any]]:
    """Every tool → the schema of its arguments, as the daemon says."""
    asked = [_line(0, "initialize", _HELLO), _line(1, "tools/list", {})]
    told = json.loads(_exchanged(path, asked, 2)[1])["result"]["tools"]
    return {one["name"]: one["inputSchema"] for one in told}


def unwell(daemon: harness.Daemon) -> list[str]:
    """What `memd status` complains about."""
    with daemon.client() as client:
        status = client.call("memd/status")
    listener = next(room for room in status["rooms"] if room["name"] == "listener")
    wrong = [f"not healthy: {one}" for one in status["reasons"]]
    if listener["failures"] or not status["books"]["balanced"]:
        wrong.append(f"{listener['failures']} calls failed; the books say {status['books']}")
    if (used := daemon.rss_mb()) > RSS_MB:
        wrong.append(f"RSS {used:.0f} MB, limit {RSS_MB:.0f}")
    return wrong


def logged(daemon: harness.Daemon) -> list[str]:
    """Errors in the log, once each."""
    found: dict[str, str] = {}
    for line in Path(daemon.paths.log).read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        if told.get("level") in ("error", "critical"):
            said = str(told.get("exception", told))
            found.setdefault(f"{told.get('event')} {said[-200:]}", said[-900:])
    return [f"in the log: {what}" for what in found.values()]


def wire(seed: int, deadline: float, case: int | None = None, *, counts: bool = True) -> Seen:
    """Control calls and tools with arguments that fit, nearly fit, or are nothing like it."""
    seen = Seen()
    reached: Reached | None = {} if counts else None
    with house(reached) as daemon:
        with daemon.client() as client:
            memories = corpus.Corpus(seed=seed).memories(60, int(time.time() * 1_000))
            client.call("memd/remember", {"memories": list(memories)})
        link = Wire(daemon, seed)
        number = case or 0
        while time.monotonic() < deadline and len(seen.wrong) < 5:  # noqa: PLR2004  # enough to mend
            is_mcp, lines = link.batch(number)
            if found := link.wrong(is_mcp, lines):
                less = link.repeated(is_mcp, found[1], found[0])
                how = (
                    f"repeat: scripts/torture fuzz --target wire --seed {seed} --case {number}"
                )
                seen.wrong.append(f"{found[0]}\n      {how}\n      {less[:1_500]!r}")
            number += 1
            if case is not None:
                break
            if not number % 40:
                seen.wrong += unwell(daemon)
        seen.wrong += [*unwell(daemon), *logged(daemon)]
        rss = daemon.rss_mb()
    known = {*calls(), *link.tools} - {"memd/shutdown"}
    missed = sorted(known - link.answered.keys())
    seen.line = (
        f"wire         {link.lines:8} lines   slowest dozen {link.slowest_s:.1f} s (limit {ANSWER_S:g})"
        f"  RSS {rss:.0f} MB (limit {RSS_MB:.0f})"
        f"  {len(known) - len(missed)} of {len(known)} calls and tools answered with a result"
        f" (not: {', '.join(missed) or 'none'}){told(reached)}"
    )
    return seen
