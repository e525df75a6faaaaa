"""Two daemons on one vault, and two versions of memd: what is not for them is refused and left as it is.

    scripts/torture versions [--rounds N] [--seed N]

Upgrades: each stored vault of an earlier version, as it is and made larger, is opened by a real daemon:
all that was in it is there, is found, and the index is what a rebuilt one is. Refusals: a vault of a newer
memd, and the newest one before a memd that knows fewer migrations, are refused in words by every command
that opens a vault, and no byte of them changes. Two daemons: several are started at once on one vault, again
and again, under load; one serves, the others say who does, and nothing acknowledged is lost. Exit code 1
if a promise was broken.
"""

import argparse
import contextlib
import hashlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from memd.errors import MemdError, Unreachable
from tests.stress import crash_checks as proof
from tests.stress import crash_work as load
from tests.stress.crash_records import turn
from tests.stress.stored_vaults import NEWEST, Grown, copied, lay
from tests.stress.trials import Trial, run

OLDER = tuple(range(1, NEWEST))
OPENING = ("serve", "backup", "export {new}", "doctor", "restore --yes {twin}", "start")
"""The commands that open a vault."""
RIVALS = 5
_GROWN = (300, 300)
_EXIT_S = 60.0
_TRUTH = (
    "projects", "sessions", "events", "summaries", "supersessions", "edges", "receipts", "forgotten", "meta",
)  # fmt: skip
Rows = dict[str, Any]


# ── Upgrades ──────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def house() -> Iterator[harness.Daemon]:
    """A home with no daemon yet, gone afterwards with whatever runs in it."""
    with tempfile.TemporaryDirectory(prefix="memd-torture-") as home:
        Path(home, "config.toml").write_text(
            "[engines]\nembedder = 'hashing'\n", encoding="utf-8"
        )
        daemon = harness.Daemon(home)
        try:
            yield daemon
        finally:
            daemon.stop(signal.SIGKILL)


def upgraded(version: int, grown: Grown = (0, 0)) -> list[str]:
    """Have a daemon open the stored vault of this version; what is not as it was, or not found."""
    with house() as daemon:
        lay(daemon.paths, version, grown)
        before = truth(daemon.paths.database)
        daemon.start()
        daemon.settle()
        wrong = [f"version {version}: {one}" for one in _changed(before, daemon)]
        wrong += _not_found(daemon, before)
        with daemon.client() as client:
            found = client.call("memd/doctor")["findings"]
            wrong += [
                f"doctor: {f['name']}: {f['words']}" for f in found if f["verdict"] != "ok"
            ]
            receipt = client.call("memd/capture", turn(1, "after")[0])
        if receipt["outcome"] != "stored":
            wrong.append(f"an upgraded vault takes nothing in: {receipt}")
        return wrong + proof.rebuilt(daemon.paths.database)


def truth(vault: str) -> dict[str, list[Rows]]:
    """Every row of what is not derived, column by column."""
    with copied(vault) as connection:
        return {
            table: [
                dict(zip((c[0] for c in cursor.get_description()), row, strict=True))
                for cursor in [connection.execute(f"SELECT * FROM {table}")]  # noqa: S608  # ours
                for row in cursor
            ]
            for table in _TRUTH
        }


def _changed(before: dict[str, list[Rows]], daemon: harness.Daemon) -> Iterator[str]:
    after = truth(daemon.paths.database)
    for table, rows in before.items():
        left = [
            {name: one[name] for name in rows[0]} | _but(table) for one in after[table] if rows
        ]
        lost = [row for row in rows if row | _but(table) not in left]
        if lost:
            yield f"{len(lost)} of {len(rows)} rows of {table} are not as they were: {lost[0]}"


def _but(table: str) -> Rows:
    """Columns in which work goes on after an upgrade."""
    return {"consolidated": None} if table == "summaries" else {}


def _not_found(daemon: harness.Daemon, before: dict[str, list[Rows]]) -> list[str]:
    """The memories that a search for their own title does not find."""
    wrong = []
    with daemon.client() as client:
        for row in before["summaries"][:20]:
            asked = {
                "query": row["title"],
                "project": "all",
                "include_superseded": True,
                "k": 20,
            }
            hits = client.call("memd/search", {**asked, "include_turns": True})
            if row["id"] not in {hit["id"] for hit in hits["hits"]}:
                wrong.append(f"#{row['id']} is not found by its title {row['title']!r}")
            if not hits["turns"]:
                wrong.append(f"no turn is found by {row['title']!r}")
    return wrong


# ── Refusals ──────────────────────────────────────────────────────────────────────────────────


def newer_file(commands: Sequence[str] = OPENING) -> list[str]:
    """A vault that a newer memd wrote, before each command that opens a vault."""
    with house() as daemon:
        _fill(daemon)
        vault = Path(daemon.paths.database)
        data = bytearray(vault.read_bytes())
        data[60:64] = struct.pack(">I", NEWEST + 1)
        vault.write_bytes(data)
        twin = Path(daemon.home, "other.memd")
        shutil.copy(vault, twin)
        said = (str(NEWEST + 1), str(NEWEST), "update memd")
        wrong = []
        for name in commands:
            words = name.format(twin=twin, new=Path(daemon.home, "new.jsonl")).split()
            wrong += _refused([sys.executable, "-m", "memd", *words], daemon, said)
        return wrong


def _fill(daemon: harness.Daemon) -> None:
    """Put something in, and leave."""
    daemon.start()
    with daemon.client() as client:
        client.call("memd/capture", {"events": turn(1, "one")})
        client.call(
            "memd/remember", {"text": "The ledger is kept in the drawer.", "source": "user"}
        )
    daemon.settle()
    daemon.stop()


def _refused(command: list[str], daemon: harness.Daemon, words: tuple[str, ...]) -> list[str]:
    """Whether this fails, says all of these words, and changes nothing."""
    before = print_of(daemon.paths.data_dir)
    done = subprocess.run(
        command,
        env=daemon.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=_EXIT_S,
    )
    said, name = done.stdout + done.stderr, command[-1]
    wrong = []
    if not done.returncode:
        wrong.append(f"{name}: exit code 0 before a vault that is too new")
    if "Traceback" in said or not all(word in said for word in words):
        wrong.append(f"{name}: does not say clearly what is wrong: {said[-400:]!r}")
    if print_of(daemon.paths.data_dir) != before:
        wrong.append(f"{name}: changed a vault that it refused")
    return wrong


def print_of(directory: str) -> dict[str, str]:
    """File → hash of what is in it; the lock says who tried last."""
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(Path(directory).rglob("*"))
        if file.is_file() and ".lock" not in file.name
    }


# ── Two daemons ───────────────────────────────────────────────────────────────────────────────


class Captures:
    """Somebody who captures, and spools what nobody acknowledges, until told to stop."""

    def __init__(self, site: load.Site) -> None:
        self._site = site
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let go."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.002):
            for event in turn(self._site.number(), "rivals"):
                try:
                    with self._site.daemon.client() as client:
                        self._site.note([event], [client.call("memd/capture", event)])
                except Unreachable:
                    self._site.spool(event)
                except MemdError as error:
                    self._site.failures.append(f"captured: {error}")


def rivals(rounds: int, rng: random.Random, count: int = RIVALS) -> list[str]:
    """Several daemons at once on one vault, the one that serves killed in each round."""
    with house() as daemon:
        Path(daemon.home, "inner").mkdir()
        site = load.Site(str(Path(daemon.home, "inner")), rng)
        captures, wrong = Captures(site), []
        running: list[subprocess.Popen[str]] = []
        try:
            for _ in range(rounds):
                running += [_rival(site) for _ in range(count)]
                served, left = _sorted_out(running)
                wrong += _lost_out(left, served)
                if served is not None:
                    wrong += _answers(site, served)
                    time.sleep(rng.uniform(0, 0.2))
                    served.kill()
                    served.communicate()
                running.clear()
        finally:
            captures.stop()
            for process in running:
                process.kill()
                process.communicate()
        site.daemon.start()
        wrong += proof.broken(site) + site.failures + proof.rebuilt(site.daemon.paths.database)
        site.daemon.stop()
        return wrong


def _rival(site: load.Site) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "memd", "serve"], env=site.daemon.environ, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def _sorted_out(
    running: list[subprocess.Popen[str]],
) -> tuple[subprocess.Popen[str] | None, list[subprocess.Popen[str]]]:
    """Wait until all but one have left; who serves, and who left."""
    deadline = time.monotonic() + _EXIT_S
    while time.monotonic() < deadline:
        alive = [one for one in running if one.poll() is None]
        if len(alive) <= 1:
            break
        time.sleep(0.02)
    alive = [one for one in running if one.poll() is None]
    return (alive[0] if len(alive) == 1 else None), [one for one in running if one not in alive]


def _lost_out(
    left: list[subprocess.Popen[str]], served: subprocess.Popen[str] | None
) -> list[str]:
    wrong = [] if served else ["not exactly one daemon of several serves"]
    for one in left:
        _, said = one.communicate()
        if (
            one.returncode == 0
            or "already serves this vault" not in said
            or "Traceback" in said
        ):
            wrong.append(
                f"a second daemon does not say why it leaves: {one.returncode} {said[-300:]!r}"
            )
    return wrong


def _answers(site: load.Site, served: subprocess.Popen[str]) -> list[str]:
    """Whether the one that serves answers at the socket: nobody else has taken it."""
    deadline = time.monotonic() + _EXIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(Unreachable), site.daemon.client() as client:
            pid = client.call("memd/ping")["pid"]
            return [] if pid == served.pid else [f"pid {pid} answers, {served.pid} serves"]
        time.sleep(0.01)
    return ["the daemon that serves cannot be reached"]


def main() -> None:
    """Run the trials."""

    def make(options: argparse.Namespace) -> dict[str, Trial]:
        rng = random.Random(options.seed)
        found: dict[str, Trial] = {}
        for version in OLDER:
            name = f"upgrade from version {version}"
            found[name] = lambda version=version: (upgraded(version), "")
            found[f"{name}, larger"] = lambda version=version: (upgraded(version, _GROWN), "")
        found["a vault of a newer memd"] = lambda: (newer_file(), "")
        found[f"{RIVALS} daemons at once"] = lambda: (rivals(options.rounds, rng), "")
        return found

    run("versions", __doc__, make, rounds=10)
