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
import itertools
import random
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from benchmarks import harness
from memd.distill.redistill import RULES_VERSION
from memd.errors import MemdError, Unreachable
from tests.stress.crash import checks as proof
from tests.stress.crash import work as load
from tests.stress.crash.stored_vaults import NEWEST, Grown, copied, lay
from tests.stress.support import HASHING, Trial, doctor_problems, run_trials, wait_until

OLDER = tuple(range(1, NEWEST))
OPENING = ("serve", "backup", "export {new}", "doctor", "restore --yes {twin}", "start")
"""The commands that open a vault."""
RIVALS = 5
_GROWN = (300, 300)
_TRUTH = (
    "projects", "sessions", "events", "summaries", "supersessions", "edges", "receipts", "forgotten", "meta",
)  # fmt: skip
Rows = dict[str, Any]


# ── Upgrades ──────────────────────────────────────────────────────────────────────────────────


def upgraded(version: int, grown: Grown = (0, 0)) -> list[str]:
    """Have a daemon open the stored vault of this version; what is not as it was, or not found."""
    with harness.stopped_daemon(HASHING) as daemon:
        lay(daemon.paths, version, grown)
        _keep_rules(daemon.paths.database)
        before = truth(daemon.paths.database)
        daemon.start()
        daemon.settle()
        wrong = [f"version {version}: {one}" for one in _changed(before, daemon)]
        wrong += _not_found(daemon, before)
        with daemon.client() as client:
            wrong += doctor_problems(
                client, "secrets"
            )  # the first version had other rules of redaction
            receipt = client.call("memd/capture", load.turn(1, "after")[0])
        if receipt["outcome"] != "stored":
            wrong.append(f"an upgraded vault takes nothing in: {receipt}")
        return wrong + proof.rebuilt(daemon.paths.database)


def _keep_rules(vault: str) -> None:
    """Say that today's rules made the memories: what distilling them again changes has tests of its own."""
    connection = apsw.Connection(vault)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('rules', ?)", (str(RULES_VERSION),))
    connection.close()


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
        left = [{name: one[name] for name in rows[0]} | _but(table) for one in after[table] if rows]
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
            asked = {"query": row["title"], "project": "all", "k": 20}
            asked |= {"include_superseded": True, "include_turns": True}
            hits = client.call("memd/search", asked)
            if row["id"] not in {hit["id"] for hit in hits["hits"]}:
                wrong.append(f"#{row['id']} is not found by its title {row['title']!r}")
            if not hits["turns"]:
                wrong.append(f"no turn is found by {row['title']!r}")
    return wrong


# ── Refusals ──────────────────────────────────────────────────────────────────────────────────


def newer_file(commands: Sequence[str] = OPENING) -> list[str]:
    """A vault that a newer memd wrote, before each command that opens a vault."""
    with harness.stopped_daemon(HASHING) as daemon:
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
            wrong += _refused(daemon, words, said)
        return wrong


def _fill(daemon: harness.Daemon) -> None:
    """Put something in, and leave."""
    daemon.start()
    with daemon.client() as client:
        client.call("memd/capture", {"events": load.turn(1, "one")})
        client.call(
            "memd/remember", {"text": "The ledger is stored in the drawer.", "source": "user"}
        )
    daemon.settle()
    daemon.stop()


def _refused(daemon: harness.Daemon, command: list[str], words: tuple[str, ...]) -> list[str]:
    """Whether this fails, says all of these words, and changes nothing."""
    before = print_of(daemon.paths.data_dir)
    done = daemon.run(*command, MEMD_START="")
    said, name = (done.stdout + done.stderr).decode(), command[-1]
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
    """Clients that capture, and spool what is not acknowledged, until they are stopped."""

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
            for event in load.turn(self._site.number(), "rivals"):
                try:
                    with self._site.daemon.client() as client:
                        self._site.note([event], [client.call("memd/capture", event)])
                except Unreachable:
                    self._site.spool(event)
                except MemdError as error:
                    self._site.failures.append(f"captured: {error}")


def rivals(rounds: int, rng: random.Random, count: int = RIVALS) -> list[str]:
    """Several daemons at once on one vault, the one that serves killed in each round."""
    with tempfile.TemporaryDirectory(prefix="memd-torture-") as folder:
        site = load.Site(folder, rng)
        captures, wrong = Captures(site), []
        running: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(rounds):
                running += [site.daemon.spawn() for _ in range(count)]
                wrong += _find_faults(site, running)
                time.sleep(rng.uniform(0, 0.2))
                _kill_all(running)
        finally:
            captures.stop()
            _kill_all(running)
        site.daemon.start()
        wrong += proof.broken(site) + site.failures + proof.rebuilt(site.daemon.paths.database)
        site.daemon.stop()
        return wrong


def _kill_all(running: list[subprocess.Popen[bytes]]) -> None:
    for one in running:
        if one.poll() is None:
            one.kill()
            one.communicate()
    running.clear()


def _find_faults(site: load.Site, running: list[subprocess.Popen[bytes]]) -> list[str]:
    """Wait until all but one have left; what is wrong with them."""
    wait_until(lambda: sum(one.poll() is None for one in running) <= 1)
    alive = [one for one in running if one.poll() is None]
    wrong = _lost_out([one for one in running if one not in alive])
    if len(alive) != 1:
        return [*wrong, f"{len(alive)} daemons of {len(running)} serve"]
    return wrong + _answers(site, alive[0])


def _lost_out(left: list[subprocess.Popen[bytes]]) -> list[str]:
    """What is wrong with how the daemons that left did so."""
    wrong = []
    for one in left:
        said = one.communicate()[1].decode()
        if not one.returncode or "already serves this vault" not in said or "Traceback" in said:
            wrong.append(f"a second daemon leaves with {one.returncode}: {said[-300:]!r}")
    return wrong


def _answers(site: load.Site, served: subprocess.Popen[bytes]) -> list[str]:
    """Whether the daemon that serves answers at the socket, and no other process does."""
    pids: list[int] = []

    def is_answered() -> bool:
        with contextlib.suppress(Unreachable), site.daemon.client() as client:
            pids.append(client.call("memd/ping")["pid"])
        return bool(pids)

    if not wait_until(is_answered):
        return ["the daemon that serves cannot be reached"]
    return [] if pids == [served.pid] else [f"pid {pids} answers, {served.pid} serves"]


def _trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    for version, grown in itertools.product(OLDER, ((0, 0), _GROWN)):
        name = f"upgrade from version {version}{', larger' if any(grown) else ''}"
        yield name, lambda version=version, grown=grown: (upgraded(version, grown), "")
    yield "a vault of a newer memd", lambda: (newer_file(), "")
    rng = random.Random(options.seed)
    yield f"{RIVALS} daemons at once", lambda: (rivals(options.rounds, rng), "")


def main() -> None:
    """Run the trials."""
    run_trials("versions", __doc__, _trials, rounds=10)
