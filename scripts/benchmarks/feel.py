"""What people feel of memd: hooks, contexts, searches, captures, and what it costs at rest; with ratios.

A real daemon on generated memories, whole processes as the client starts them. `×bare` is the ratio to a bare
interpreter of the same minutes, because machines differ and one machine differs from hour to hour. With
`--against COMMIT` both take turns, and `slower` is this checkout against that commit (above 1: worse, also where more
is better). `scripts/bench plot FILE` draws what `--json FILE` wrote.
"""

import argparse
import operator
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks import commits, corpus, harness, live_session, metrics

LIMITS = {
    "hook, tool event": {"×bare": "<= 0.55"},
    "hook in Python, tool event": {"×bare": "<= 1.5"},
    "hook with a prompt and its context": {"now": "<= 15"},
    "hook at a session's start and its context": {"now": "<= 15"},
    "memd mcp, first answer": {"now": "<= 18"},
    "memd status": {"now": "<= 35"},
    "mem_search p50, 10,000": {"now": "<= 2"},
    "mem_search p95, 10,000": {"now": "<= 4"},
    "mem_search p50, 100,000": {"now": "<= 4"},
    "mem_search p95, 100,000": {"now": "<= 8"},
    "mem_search p50, 1,000,000": {"now": "<= 15"},
    "mem_search p95, 1,000,000": {"now": "<= 30"},
    "captures a second": {"now": ">= 3500"},
    "at rest, % of a core": {"now": "<= 0.03"},
    "at rest, context switches a second": {"now": "<= 1"},
    "at rest, page faults a second": {"now": "<= 0.1"},
    "at rest, MB, 10,000": {"now": "<= 80"},
    "at rest, MB, 100,000": {"now": "<= 90"},
    "at rest, MB, 1,000,000": {"now": "<= 160"},
    "from Stop until found, p95": {"now": "<= 300"},
    "from Stop until found, with a transcript, p95": {"now": "<= 300"},
    "import, MB a second": {"now": ">= 10"},
}
_MORE_IS_BETTER = frozenset({"captures a second", "import, MB a second"})
_LEAST = {
    "at rest, % of a core": 0.05,
    "at rest, context switches a second": 1.0,
    "at rest, page faults a second": 0.5,
}
"""Row → what is as good as nothing: below it a ratio says nothing."""
BARE = "bare interpreter"
"""The row of a Python that starts and exits."""
_SETTLE_S = 90.0
"""How long daemons are left alone until what their start woke has settled."""
_WATCH_S = 61
"""How long their rest is watched, with a reading each second: each timer goes off once."""
_CAPTURES_S = 4.0
_CONNECTIONS = 16
_SEARCHES_A_RUN = 20
_KNOWN = 300
"""Memories that prompts ask for; the generated ones belong to projects of their own."""
_ERROR = "LedgerError: the benchmark's ledger is torn in two"
_SCOPED = 20
"""Notes that hold for a file alone, which every call of a tool is compared with."""
_FIND_S = 30.0
_TURNS = 20
_ASK_S = 0.01
"""Pause between two searches for a turn that has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, runs=20, rounds=3)
    parser.add_argument(
        "--sizes", default="10000", help="memories, the first for all but searches and memory (default: %(default)s)"
    )  # fmt: skip
    parser.add_argument("--against", metavar="COMMIT", help="take turns with this commit")
    parser.add_argument(
        "--transcripts", type=Path, metavar="DIR", help="import a copy of this directory, too"
    )


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Each figure of both sides, taken in turns: ms unless the row says otherwise."""
    first, *more = map(int, options.sizes.split(","))
    with ExitStack() as stack:
        at = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="memd-feel-", ignore_cleanup_errors=True)
        )
        chosen = [None, options.against] if options.against else [None]
        sides = [
            _Felt(stack.enter_context(commits.Side(commit, Path(at, str(number)))))
            for number, commit in enumerate(chosen)
        ]
        for side in sides:
            side.prepare(first)
        _measure_rest(sides, first)
        for number in range(options.runs):
            for side in _in_turn(sides, number):
                side.run_processes(number)
                side.search(f"{first:,}", number)
        _take_turns(sides, options.rounds, _Felt.find_after_stop)
        _take_turns(sides, options.rounds, _Felt.find_with_transcript)
        if options.transcripts:
            for side in sides:
                side.import_transcripts(options.transcripts)
        # Last, for what it leaves to be distilled would be waited for by the others.
        _take_turns(sides, options.rounds, _Felt.capture)
        for size in more:
            _measure_size(sides, size, options.runs)
    return _make_table(sides)


def _take_turns(sides: list["_Felt"], rounds: int, work: Callable[["_Felt", int], None]) -> None:
    for number in range(rounds):
        for side in _in_turn(sides, number):
            work(side, number)


def _measure_size(sides: list["_Felt"], size: int, runs: int) -> None:
    for side in sides:
        side.side.use_vault(size)
        side.side.daemon.consolidate_all()
    time.sleep(_SETTLE_S)
    _note_memory(sides, size)
    for number in range(runs):
        for side in _in_turn(sides, number):
            side.search(f"{size:,}", number)


def _measure_rest(sides: list["_Felt"], size: int) -> None:
    """All daemons at once: none has anything to do."""
    time.sleep(_SETTLE_S)
    then = [_read_activity(side.side.daemon) for side in sides]
    spent = [Spent(0.0, 0, 0)] * len(sides)
    for _ in range(_WATCH_S):
        time.sleep(1)
        now = [_read_activity(side.side.daemon) for side in sides]
        spent = [
            add_spent(so_far, subtract_activity(*pair))
            for so_far, *pair in zip(spent, now, then, strict=True)
        ]
        then = now
    for side, one in zip(sides, spent, strict=True):
        side.times["at rest, % of a core"].append(one.cpu_s / _WATCH_S * 100)
        side.times["at rest, context switches a second"].append(one.switches / _WATCH_S)
        side.times["at rest, page faults a second"].append(one.faults / _WATCH_S)
    _note_memory(sides, size)


def _note_memory(sides: list["_Felt"], size: int) -> None:
    for side in sides:
        side.times[f"at rest, MB, {size:,}"].append(side.side.daemon.rss_mb())


class Activity(NamedTuple):
    """What a process has used so far."""

    cpu_s: float
    switches: Mapping[str, int]
    """By thread: what a thread has counted is gone with it."""
    faults: int


class Spent(NamedTuple):
    """What a process used between two moments."""

    cpu_s: float
    switches: int
    faults: int


def read_activity(pid: int) -> Activity:
    """What a process has used so far, from its CPU clock and proc(5)."""
    process = Path(f"/proc/{pid}")
    switches = {}
    for task in process.glob("task/*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            lines = (task / "status").read_text("utf-8").splitlines()
            counts = [int(line.split()[1]) for line in lines if "ctxt_switches" in line]
            switches[task.name] = sum(counts)
    # Fields 10 and 12, counted from the state, which is the third.
    fields = (process / "stat").read_text("utf-8").rpartition(")")[2].split()
    return Activity(harness.read_cpu_s(pid), switches, int(fields[7]) + int(fields[9]))


def subtract_activity(now: Activity, then: Activity) -> Spent:
    """What was used between. A thread that ended counts as one switch: it woke at least once to end."""
    lived = sum(count - then.switches.get(name, 0) for name, count in now.switches.items())
    ended = len(then.switches.keys() - now.switches.keys())
    return Spent(now.cpu_s - then.cpu_s, lived + ended, now.faults - then.faults)


def add_spent(one: Spent, other: Spent) -> Spent:
    """What was used in both."""
    return Spent(*map(operator.add, one, other))


def _read_activity(daemon: harness.Daemon) -> Activity:
    assert daemon.process is not None
    return read_activity(daemon.process.pid)


def _in_turn(sides: list["_Felt"], number: int) -> Iterator["_Felt"]:
    """The sides, each of them first every other time."""
    return iter(sides if number % 2 else sides[::-1])


def _make_table(sides: list["_Felt"]) -> metrics.Figures:
    bare = statistics.median(sides[0].times[BARE])
    figures: metrics.Figures = {}
    for row, times in sides[0].times.items():
        now = statistics.median(times)
        figures[row] = {"now": round(now, 2)}
        if row not in _MORE_IS_BETTER and "at rest" not in row:
            figures[row]["×bare"] = round(now / bare, 2)
        for side in sides[1:]:
            before = statistics.median(side.times[row])
            figures[row] |= {side.side.name: round(before, 2), **compare(row, now, before)}
    return figures


def compare(row: str, now: float, before: float) -> dict[str, float]:
    """How many times worse than before this row is now."""
    better, worse = (now, before) if row in _MORE_IS_BETTER else (before, now)
    least = _LEAST.get(row, 0.001)
    return {"slower": round(max(worse, least) / max(better, least), 2)}


class _Felt:
    """One side, and every figure taken of it: row → one for each time it was measured."""

    def __init__(self, side: commits.Side) -> None:
        self.side = side
        self.times: dict[str, list[float]] = defaultdict(list)

    def prepare(self, size: int) -> None:
        """A vault of this size, with some memories that the prompts ask for."""
        self.side.use_vault(size)
        self.side.daemon.fill(_KNOWN, corpus.Corpus(seed=3))
        with self.side.daemon.client() as client:
            known = {"directory": "/", "kind": "fix"}
            client.call(
                "memd/remember", {**known, "text": f"`{_ERROR}` goes away after a rebuild."}
            )
            for number in range(_SCOPED):
                text = f"The file {number} is generated, change its template."
                client.call("memd/remember", {**known, "text": text, "where": [f"gen/{number}.py"]})
        self.side.daemon.consolidate_all()
        self.hooks = self.side.installed_hooks(self.side.daemon.environ["PATH"])
        self.python_hooks = self.side.installed_hooks("/nonexistent")
        self.titles = [str(one["title"]) for one in corpus.Corpus(seed=3).memories(_KNOWN, 0)]

    def run_processes(self, number: int) -> None:
        """Each command once, so that all of them see the same machine."""
        daemon = self.side.daemon
        self._add(BARE, metrics.bare_interpreter())
        tool = "PostToolUse"
        for row, hooks in (("hook", self.hooks), ("hook in Python", self.python_hooks)):
            took, _ = metrics.hook(daemon, f"{row}-{number}", hooks[tool])
            self._add(f"{row}, tool event", took)
        self._time_context("UserPromptSubmit", "with a prompt", number)
        self._time_context("SessionStart", "at a session's start", number)
        took, _ = metrics.hook(
            daemon, f"failed-{number}", self.hooks["PostToolUseFailure"], session_id=f"feel-failed-{number}",
            hook_event_name="PostToolUseFailure", error=f"Exit code 1\n{_ERROR}", is_interrupt=False,
        )  # fmt: skip
        self._add("hook after a failure that is known", took)
        self._add("memd mcp, first answer", metrics.first_answer(daemon))
        self._add(
            "memd status", metrics.run_process([*daemon.command, "status"], daemon.environ)[0]
        )

    def _time_context(self, event: str, when: str, number: int) -> None:
        title = self.titles[number % _KNOWN]
        more = {"source": "startup", "prompt_id": str(number), "prompt": f"{title}?"}
        took, printed = metrics.hook(
            self.side.daemon, number, self.hooks[event],
            session_id=f"feel-{event}-{number}", hook_event_name=event, **more,
        )  # fmt: skip
        if not printed:
            raise SystemExit(f"{self.side.name}: {event} brought no context")
        self._add(f"hook {when} and its context", took)

    def search(self, named: str, number: int) -> None:
        """Some searches; p50 and p95 of each time."""
        found = metrics.searches(self.side.daemon.paths.socket, _SEARCHES_A_RUN, seed=number)
        self.times[f"mem_search p50, {named}"].append(found["p50"])
        self.times[f"mem_search p95, {named}"].append(found["p95"])

    def find_after_stop(self, number: int) -> None:
        """Turns that end, and how long it takes until a search finds what they did."""
        mcp = harness.Mcp(self.side.daemon.paths.socket)
        took = []
        for turn in range(_TURNS):
            name = f"zq{number}x{turn}"
            self._run_turn(name)
            took.append(self._find_turn(mcp, name))
        mcp.close()
        self._add_found("from Stop until found", took)

    def find_with_transcript(self, number: int) -> None:
        """The same of turns of one session with a transcript, of which the daemon reads what hooks do not tell."""
        daemon = self.side.daemon
        before = self._count_read()
        mcp, took = harness.Mcp(daemon.paths.socket), []
        with daemon.client() as client:
            session = live_session.LiveSession(client, Path(daemon.home, "projects"))
            for turn in range(_TURNS):
                name = f"zt{number}x{turn}"
                session.run_turn(name)
                took.append(self._find_turn(mcp, name))
            session.wait_written()
        mcp.close()
        self._add_found("from Stop until found, with a transcript", took)
        daemon.wait_until(lambda status: not harness.worker_with("followed", status).get("due"))
        if (stored := self._count_read() - before) != _TURNS:
            raise SystemExit(f"{self.side.name}: {stored} of {_TURNS} texts were read")

    def _count_read(self) -> int:
        """How many events were stored that only transcripts tell."""
        with self.side.daemon.client() as client:
            return int(harness.worker_with("followed", client.call("memd/status"))["stored"])

    def _add_found(self, row: str, took: list[float]) -> None:
        found = harness.milliseconds(took)
        self.times[f"{row}, p50"].append(found["p50"])
        self.times[f"{row}, p95"].append(found["p95"])

    def _run_turn(self, name: str) -> None:
        """A turn that only hooks tell of."""
        turn = {"session_id": f"turn-{name}", "prompt_id": name, "cwd": "/nowhere"}
        edit = {"file_path": f"/nowhere/{name}.py", "old_string": "a = 1", "new_string": "a = 2"}
        with self.side.daemon.client() as client:
            for payload in (
                {"hook_event_name": "UserPromptSubmit", "prompt": f"raise the limit in {name}.py to 2"},
                {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": f"edit-{name}",
                 "tool_input": edit, "tool_response": {"filePath": edit["file_path"]}},
                {"hook_event_name": "Stop", "last_assistant_message": f"The limit in {name}.py is now 2."},
            ):  # fmt: skip
                client.call(
                    "memd/capture", {"client": "claude-code", "payload": {**turn, **payload}}
                )

    def _find_turn(self, mcp: harness.Mcp, name: str) -> float:
        """Seconds until a search finds the turn that has just ended."""
        began = time.perf_counter()
        while time.perf_counter() - began < _FIND_S:
            found = mcp.tool("mem_search", query=f"{name}.py", project="all")
            if any(name in hit["title"] for hit in found["hits"]):
                return time.perf_counter() - began
            # Who asks without a pause measures how searches and distilling share the machine.
            time.sleep(_ASK_S)
        raise SystemExit(f"{self.side.name}: the turn about {name}.py was not found")

    def capture(self, number: int) -> None:
        """Events over many connections, each redacted and committed."""
        first = (number + 1) * 1_000_000
        socket = self.side.daemon.paths.socket
        found = metrics.captures(socket, _CAPTURES_S, _CONNECTIONS, first)
        self.times["captures a second"].append(found["per_s"])

    def import_transcripts(self, folder: Path) -> None:
        """A copy of the client's transcripts, until all of it can be found."""
        daemon = self.side.daemon
        target = Path(daemon.home, "transcripts")
        shutil.copytree(folder, target)
        megabytes = sum(file.stat().st_size for file in target.rglob("*.jsonl")) / 1e6
        began = time.perf_counter()
        done = daemon.run("import", "claude-code", str(target))
        if done.returncode:
            raise SystemExit(f"{self.side.name}: the import failed: {done.stderr.decode()}")
        daemon.settle()
        self.times["import, MB a second"].append(megabytes / (time.perf_counter() - began))

    def _add(self, row: str, seconds: float) -> None:
        self.times[row].append(seconds * 1000)
