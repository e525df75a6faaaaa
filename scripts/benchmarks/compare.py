"""Two commits of memd against each other on this machine, in turns: medians, and their ratios.

Each commit is checked out apart and serves a vault that it has filled itself. It is driven from outside, by its
command line, its socket and its hook. A ratio above 1 means that NEW takes longer (or more). A commit whose
dependencies are not those of this checkout gets an environment of its own, with the versions of this one.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from importlib import metadata
from pathlib import Path

from benchmarks import harness, metrics

_CAPTURES_S = 4.0
_ALONE_S = 1.0
_HOOKS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("old", help="a commit")
    parser.add_argument("new", help="a commit")
    metrics.add_counts(parser, summaries=10_000, searches=300, rounds=3)


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Each figure of both, taken in turns, and their ratio."""
    sides: list[_Side] = []
    with tempfile.TemporaryDirectory(prefix="memd-compare-", ignore_cleanup_errors=True) as at:
        try:
            for name, commit in (("old", options.old), ("new", options.new)):
                sides.append(_Side(commit, Path(at, name)))
                sides[-1].fill(options.summaries)
            for number in range(options.rounds):
                for side in sides if number % 2 else sides[::-1]:
                    side.search(options.searches)
            for number in range(options.rounds):
                for side in sides if number % 2 else sides[::-1]:
                    side.capture(number)
        finally:
            for side in sides:
                side.close()
    old, new = (side.medians() for side in sides)
    return {
        name: {
            f"old {sides[0].commit}": old[name],
            f"new {sides[1].commit}": new[name],
            "ratio": round(new[name] / old[name], 2) if old[name] else 0.0,
        }
        for name in old
    }


class _Side:
    """One commit: its checkout, and a home in which its daemon runs."""

    def __init__(self, commit: str, folder: Path) -> None:
        self.commit = _git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}")
        self._checkout = folder / "checkout"
        _git("worktree", "add", "--detach", "--force", str(self._checkout), self.commit)
        Path(folder, "home").mkdir()
        self.daemon = harness.Daemon(str(folder / "home"), self._checkout)
        self.daemon.environ["PYTHONPATH"] = str(self._checkout)
        python = _interpreter(self._checkout, folder / "venv")
        # -P: the directory where the benchmark was started must not come before the checkout.
        self.daemon.command = [python, "-P", "-m", "memd"]
        self.daemon.hook_command[0] = python
        where = [python, "-P", "-c", "import memd; print(memd.__file__)"]
        file = metrics.run_process(where, self.daemon.environ)[1].decode().strip()
        if not Path(file).is_relative_to(self._checkout):
            raise SystemExit(f"{self.commit} would run the code of {file}")
        self._figures: dict[str, list[float]] = defaultdict(list)

    def fill(self, count: int) -> None:
        """Remember generated memories and consolidate them."""
        self.daemon.start()
        self.daemon.fill(count)
        self.daemon.consolidate_all()
        self.daemon.stop()

    def search(self, searches: int) -> None:
        """One round of starting, searching and running hooks."""
        self._start()
        self._figures["idle MB"].append(self.daemon.rss_mb())
        found = metrics.searches(self.daemon.paths.socket, searches)
        self._figures["search p50 ms"].append(found["p50"])
        self._figures["search p95 ms"].append(found["p95"])
        self.daemon.stop()

    def capture(self, number: int) -> None:
        """One round of capturing, which leaves events that are distilled for a while."""
        self._start()
        first = (number + 1) * 1_000_000
        hooks = [metrics.hook(self.daemon, first + i)[0] for i in range(_HOOKS)]
        self._figures["hook p50 ms"].append(harness.milliseconds(hooks)["p50"])
        socket = self.daemon.paths.socket
        together = metrics.captures(socket, _CAPTURES_S, 16, first)
        alone = metrics.captures(socket, _ALONE_S, 1, first + 500_000)
        self._figures["captures a second"].append(together["per_s"])
        self._figures["one capture p50 ms"].append(alone["p50"])
        self.daemon.stop()

    def _start(self) -> None:
        self._figures["start s"].append(self.daemon.start())
        self.daemon.settle(is_distilled=False)

    def medians(self) -> dict[str, float]:
        """The median of each figure over the rounds."""
        return {name: round(statistics.median(values), 2) for name, values in self._figures.items()}

    def close(self) -> None:
        """Stop what runs and remove the checkout."""
        self.daemon.stop()
        _git("worktree", "remove", "--force", str(self._checkout))


def _interpreter(checkout: Path, folder: Path) -> str:
    """A Python with the dependencies of a checkout: ours if they are the same, else a new one."""
    wanted = _dependencies(checkout)
    if wanted == _dependencies(harness.ROOT):
        return sys.executable
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    constraints = folder / "constraints.txt"
    installed = {
        one.name: one.version
        for one in metadata.distributions()
        if one.name not in ("memd", "memd-daemon")  # earlier commits are named memd
    }
    constraints.write_text("".join(f"{name}=={installed[name]}\n" for name in installed), "utf-8")
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", constraints, *wanted], check=True)
    return python


def _dependencies(checkout: Path) -> list[str]:
    project = tomllib.loads(Path(checkout, "pyproject.toml").read_text("utf-8"))["project"]
    return sorted(project["dependencies"])


def _git(*words: str) -> str:
    """What git prints; ends the benchmark if git fails."""
    command = ["git", "-C", str(harness.ROOT), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()
