"""Three machines that share one memory, each with a home and a daemon of its own.

    scripts/torture sync [--steps N] [--seed N] [--only folder|repository|ssh]

Each step one of them says something, gives a topic a new value, forgets something, or syncs by `memd sync`; a machine
that does not is offline meanwhile. One sync in three is cut off by `kill -9` of the command, of the daemon or of both
at a random moment. At the end all sync until nobody has anything to say: then all three remember the same, superseded
by the same, doctor and ledger find nothing wrong, and no byte of what anybody forgot stands in a home, at the place or
in a chunk that is decompressed. (A repository keeps its former commits, so only its newest files are searched.)
Exit code 1 if a promise was broken.
"""

import argparse
import contextlib
import json
import random
import signal
import string
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness
from tests.stress.support import (
    HASHING,
    Trial,
    doctor_problems,
    run_trials,
    status_complaints,
    wait_until,
)

PLACES = ("folder", "repository", "ssh")
MACHINES = ("desk", "laptop", "tower")
_DIRECTORY = "/nowhere/app"
_TOPICS = ("app.port", "app.store", "app.host")
_KILL_AFTER_S = 0.6
"""Longest time after which a sync is cut off; a whole one takes about half of it."""
_ROUNDS_MAX = 8
"""Rounds in which all sync at the end, until nobody has anything to say."""
_LOCAL_SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
exec sh -c "$*"
"""
"""`ssh` that hands the words behind the host to a shell here."""


class Machine:
    """A home with a daemon, and what its user does."""

    def __init__(self, name: str, daemon: harness.Daemon) -> None:
        self.name, self.daemon = name, daemon

    def say(self, word: str, topic: str | None) -> None:
        """Remember a text with this word, perhaps as the value of a topic."""
        more = {"topic_key": topic} if topic else {}
        text = f"The {word} is what {self.name} found out about the {topic or 'build'}"
        with self.daemon.client() as client:
            client.call(
                "memd/remember", {"text": text, "kind": "fact", "directory": _DIRECTORY, **more}
            )

    def forget(self, word: str) -> bool:
        """Forget what has this word; whether there was something."""
        wanted = {"query": word, "project": "all"}
        with self.daemon.client() as client:
            shown = client.call("memd/forget", wanted)
            if not shown["count"]:
                return False
            client.call("memd/forget", {**wanted, "dry_run": False, "token": shown["token"]})
        return True

    def sync(self) -> dict[str, Any]:
        """Sync by the command; its report. SystemExit if it fails."""
        done = self.daemon.run("sync", "--json")
        if done.returncode:
            raise SystemExit(f"{self.name}: memd sync failed: {done.stderr.decode()}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def sync_killed(self, rng: random.Random) -> None:
        """Begin to sync, and kill the command, the daemon or both at a random moment."""
        command = subprocess.Popen(
            [*self.daemon.command, "sync"], env={**self.daemon.environ, "MEMD_START": "0"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(rng.uniform(0.0, _KILL_AFTER_S))
        who = rng.choice(("command", "daemon", "both"))
        if who != "daemon":
            command.kill()
        if who != "command":
            self.daemon.stop(signal.SIGKILL)
        command.wait(timeout=60)
        if who != "command":
            self.daemon.start()

    def remembers(self) -> tuple[set[str], set[str]]:
        """What is remembered and what replaced what, each as lines of JSON that are equal on equal machines."""
        done = self.daemon.run("export", "-")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        same = ("uid", "title", "body", "kind", "topic_key", "authority")
        memories = {
            json.dumps([one[name] for name in same]) for one in lines if one["record"] == "summary"
        }
        replaced = {
            json.dumps([one["newer"], one["older"]])
            for one in lines
            if one["record"] == "supersession" and one["undone_at"] is None
        }
        return memories, replaced


# ── What is tried ────────────────────────────────────────────────────────────────────────────────


def share(kind: str, steps: int, rng: random.Random) -> tuple[list[str], str]:
    """Let three machines share a place of this kind; what was wrong, and what was seen."""
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memd-sync-")))
        place = _make_place(kind, root)
        config = f'{HASHING}[sync]\nplace = "{place}"\ninterval_s = 0\n'
        machines = []
        for name in MACHINES:
            daemon = stack.enter_context(harness.stopped_daemon(config))
            daemon.environ["PATH"] = f"{root / 'bin'}:{daemon.environ['PATH']}"
            daemon.start()
            machines.append(Machine(name, daemon))
        said, forgotten, kills = _work(machines, steps, rng)
        rounds = _sync_all(machines)
        wrong = _compare(machines)
        searched = place if kind == "folder" else str(root / "place")
        wrong += _search(machines, Path(searched), forgotten)
        for machine in machines:
            with machine.daemon.client() as client:
                wrong += [
                    f"{machine.name}: {one}"
                    for one in doctor_problems(client)
                    + status_complaints(client.call("memd/status"))
                ]
        seen = f"{said} said, {len(forgotten)} forgotten, {kills} syncs cut off, equal after {rounds} rounds"
        return wrong, seen


def _make_place(kind: str, root: Path) -> str:
    (root / "bin").mkdir()
    place = root / "place"
    if kind == "repository":
        git = [
            "git",
            "init",
            "--quiet",
            "--bare",
            "--initial-branch",
            "main",
            str(root / "place.git"),
        ]
        subprocess.run(git, check=True)
        return str(root / "place.git")
    place.mkdir()
    if kind == "ssh":
        (root / "bin" / "ssh").write_text(_LOCAL_SSH, encoding="utf-8")
        (root / "bin" / "ssh").chmod(0o755)
        return f"ssh://somewhere{place}"
    return str(place)


def _work(machines: list[Machine], steps: int, rng: random.Random) -> tuple[int, set[str], int]:
    """Do the steps; how much was said, the words that were forgotten, and the syncs that were cut off."""
    words: list[str] = []
    forgotten: set[str] = set()
    kills = 0
    for _ in range(steps):
        machine = rng.choice(machines)
        chance = rng.random()
        if chance < 0.45 or not words:
            words.append("".join(rng.choices(string.ascii_lowercase, k=14)))
            machine.say(words[-1], rng.choice(_TOPICS) if rng.random() < 0.3 else None)
        elif chance < 0.6:
            word = rng.choice(words)
            if machine.forget(word):
                forgotten.add(word)
        elif chance < 0.87:
            machine.sync()
        else:
            kills += 1
            machine.sync_killed(rng)
    return len(words), forgotten, kills


def _sync_all(machines: list[Machine]) -> int:
    """Sync until a whole round sent and brought nothing; the rounds that it took."""
    for number in range(1, _ROUNDS_MAX + 1):
        reports = [machine.sync() for machine in machines]
        if not any(one["sent"] or one["received"] or one["forgotten"] for one in reports):
            return number
    return _ROUNDS_MAX


# ── What must hold ───────────────────────────────────────────────────────────────────────────────


def _compare(machines: list[Machine]) -> list[str]:
    first, *others = [(one.name, *one.remembers()) for one in machines]
    wrong = []
    for other in others:
        for what, mine, theirs in zip(
            ("memories", "supersessions"), first[1:], other[1:], strict=True
        ):
            if mine != theirs:
                wrong.append(
                    f"{what}: only on {first[0]} {sorted(mine - theirs)[:2]}, only on {other[0]} {sorted(theirs - mine)[:2]}"
                )
    return wrong


def _search(machines: list[Machine], place: Path, forgotten: set[str]) -> list[str]:
    """Where a byte of what was forgotten still stands; daemons clean up behind an erasure, so it may take a moment."""
    roots = [Path(one.daemon.home) for one in machines] + [place]
    found: list[str] = []

    def is_clean() -> bool:
        found[:] = [one for root in roots for one in _find_words(root, forgotten)]
        return not found

    wait_until(is_clean, every_s=0.2)
    return [f"what was forgotten still stands in {one}" for one in found[:5]]


def _find_words(root: Path, words: set[str]) -> Iterator[str]:
    for file in root.rglob("*"):
        if not file.is_file() or ".git" in file.parts or "backups" in file.parts:
            continue
        with contextlib.suppress(FileNotFoundError):
            content = file.read_bytes()
            with contextlib.suppress(zlib.error):
                content += zlib.decompress(content)
            yield from (f"{file.relative_to(root)}: {w}" for w in words if w.encode() in content)


def trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    """A trial for each kind of place."""
    for kind in PLACES:
        rng = random.Random(f"{options.seed} {kind}")  # no secret

        def trial(kind: str = kind, rng: random.Random = rng) -> tuple[list[str], str]:
            return share(kind, options.steps, rng)

        yield kind, trial


def main() -> None:
    """Run the trials that the command line names."""
    run_trials("sync", __doc__, trials, steps=200)


if __name__ == "__main__":
    main()
