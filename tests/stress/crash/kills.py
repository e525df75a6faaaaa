"""kill -9 at random moments, whatever the daemon is doing; after each restart, everything promised holds.

    scripts/torture crash [--kills N] [--seed N] [--only KIND …]

A life begins with an empty vault, or with a stored one of an earlier version (others of these, made large,
are killed in the middle of their upgrade). Then sessions go on while one kind of work after another is done and the
daemon is killed in it: at a moment drawn from as long as that work takes. After each restart: the
doctor finds nothing, every acknowledged event and memory is there once, the index is what would be computed
again, the ledger balances, no byte of what was forgotten is left, no half-made backup, export or import
counts. At the end of a life all of the index is compared with a rebuilt one, and each learned vector
with what its model makes of its passage. Exit code 1 if a promise was broken; the seed repeats the draw.
"""

import argparse
import contextlib
import random
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import harness, ollama_stub
from tests.stress import support
from tests.stress.crash import checks as proof
from tests.stress.crash import stored_vaults as stored
from tests.stress.crash import work as load
from tests.stress.support import doctor_problems, wait_until

STARTING, LEAVING, UPGRADING = "starting", "leaving", "upgrading"
KINDS = (*load.WORKS, STARTING, LEAVING, UPGRADING)
LIFE = 25
"""Kills in one life, so that vaults stay small enough to be looked at whole."""
TEXTS_PER_S = 400
_TRIES = 4
_SPOOLED = 60
_LONGEST_S = 2.0
_STARTS_S = 1.2
_LEAVES_S = 0.1
_GROWN, _LARGE = (100, 100), (12_000, 300)
"""Turns and memories of a stored vault that a life begins with, or that is killed while it is upgraded."""


@dataclass
class Tally:
    """What was done, and what broke."""

    kills: Counter[str] = field(default_factory=Counter)
    within: Counter[str] = field(default_factory=Counter)
    """Of those, the ones that fell while that work was under way."""
    upgrades: Counter[str] = field(default_factory=Counter)
    """At which version a kill left the file that was being upgraded."""
    broken: list[str] = field(default_factory=list)
    restarts_s: list[float] = field(default_factory=list)
    events: int = 0
    memories: int = 0
    forgotten: int = 0
    writers: int = 0
    """Backups and exports that were killed themselves."""


class Life:
    """One vault from its beginning to its proof."""

    def __init__(
        self, home: str, rng: random.Random, model: harness.ModelServer, tally: Tally
    ) -> None:
        self.rng = rng
        self.model = model
        self.tally = tally
        self.site = load.Site(home, random.Random(rng.random()))
        Path(self.site.home, "config.toml").write_text(model.engines(), encoding="utf-8")
        self.last = "no kill"
        self.salts: dict[str, str] = {}
        """Digest of every model that was served so far → how it was made another one."""

    def struck(self, kind: str, *, is_within: bool) -> None:
        """Count a kill."""
        self.last = f"kill {sum(self.tally.kills.values()) + 1}, {kind}"
        self.tally.kills[kind] += 1
        self.tally.within[kind] += is_within

    def kill_in(self, kind: str) -> None:
        """Have this work done, and kill the daemon in the middle of it."""
        site = self.site
        site.begin(kind)
        for left in reversed(range(_TRIES)):
            typical = min(_LONGEST_S, statistics.median(site.took.get(kind, [0.05])))
            self._await(kind)
            time.sleep(self.rng.uniform(0, typical))
            if site.under_way == kind or not left:
                break
        is_within = site.under_way == kind
        site.daemon.stop(signal.SIGKILL)
        if site.writer is not None and self.rng.random() < 0.5:  # else it goes on alone
            self.tally.writers += 1
            site.kill_writer()
        site.end()
        self.struck(kind, is_within=is_within)

    def _await(self, kind: str) -> None:
        """Wait until this work is under way, or has failed."""
        site = self.site
        wait_until(lambda: site.under_way == kind or site.failures, every_s=0.001)
        if site.under_way != kind:
            raise SystemExit(f"{kind} does not begin: {site.failures}")

    def kill_at_start(self) -> None:
        """Let the spool fill, and kill the daemon while it starts and takes that in."""
        site = self.site
        site.daemon.stop(signal.SIGKILL)
        for _ in range(_SPOOLED // 3):
            for event in load.turn(site.number(), "spooled"):
                site.spool(event)
        process = site.daemon.spawn()
        time.sleep(self.rng.uniform(0, _STARTS_S))
        process.kill()
        process.communicate()
        self.struck(STARTING, is_within=True)

    def kill_at_leave(self) -> None:
        """Ask the daemon to leave while it works, and kill it on its way out."""
        site = self.site
        site.begin("capturing")
        time.sleep(self.rng.uniform(0, 0.2))
        assert site.daemon.process is not None
        site.daemon.process.terminate()
        time.sleep(self.rng.uniform(0, _LEAVES_S))
        is_within = site.daemon.process.poll() is None
        site.daemon.stop(signal.SIGKILL)
        site.end()
        self.struck(LEAVING, is_within=is_within)

    def prove(self) -> None:
        """Start the daemon again, and look."""
        if self.rng.random() < 0.1:  # another version of the model was pulled meanwhile
            self.pull()
        self.tally.restarts_s.append(self.site.daemon.start())
        said = [*self.site.failures, *proof.broken(self.site)]
        self.site.failures.clear()
        tell(self.tally, [f"after {self.last}: {one}" for one in said])

    def pull(self) -> None:
        """Let the model be another one from now on."""
        salt = f"{self.rng.random()}"
        self.model.stop()
        self.model.start(salt, rate=TEXTS_PER_S)
        self.salts[ollama_stub.digest(ollama_stub.minilm.load(self.model.model), salt)] = salt

    def close(self) -> None:
        """Prove all of it, and once more after a quiet end."""
        site = self.site
        site.stop_writer()
        site.daemon.wait_learned()
        # First what is there, then what rebuilding it changes.
        said = proof.rebuilt(site.daemon.paths.database) + proof.strays(site, self.salts)
        tell(self.tally, said + proof.answers(site))
        site.daemon.stop()
        tell(self.tally, proof.words(site))
        self.tally.events += len(site.promises.events)
        self.tally.memories += len(site.promises.memories)
        self.tally.forgotten += len(site.promises.deleted)


def kill_upgrades(version: int, kills: int, rng: random.Random, tally: Tally) -> None:
    """Have a daemon upgrade a large stored vault of this version, and kill it on its way."""
    takes = stored.upgrade_s(version, _LARGE)
    with harness.stopped_daemon(support.HASHING) as daemon:
        vault = daemon.paths.database
        stored.lay(daemon.paths, version, _LARGE)
        for _ in range(kills):
            if stored.version_of(vault) == stored.NEWEST:
                stored.lay(daemon.paths, version, _LARGE)
            before, size = stored.version_of(vault), _log_size(vault)
            process = daemon.spawn()
            wait_until(lambda size=size: _log_size(vault) != size, every_s=0.0005)
            time.sleep(rng.uniform(0, 0.4 * takes))
            process.kill()
            process.communicate()
            reached = stored.version_of(vault)
            tally.kills[UPGRADING] += 1
            tally.within[UPGRADING] += reached < stored.NEWEST
            tally.upgrades[f"{before}→{reached}"] += 1
            tell(tally, stored.missing(vault, _LARGE))
        daemon.start()
        with daemon.client() as client:
            wrong = doctor_problems(client, "changes", "secrets")
        daemon.stop()
        tell(tally, wrong + stored.missing(vault, _LARGE))


def _log_size(vault: str) -> int:
    """Bytes of a vault's write-ahead log; -1 without one."""
    log = Path(vault + "-wal")
    return log.stat().st_size if log.exists() else -1


def tell(tally: Tally, said: Sequence[str]) -> None:
    """Say at once what was broken."""
    for one in said:
        print(f"  BROKEN: {one}", flush=True)
    tally.broken += said


def live(life: Life, kinds: Sequence[str], version: int) -> None:
    """One life: a kill for each of these kinds, in this order; `version` 0 begins with nothing."""
    upgrades = sum(kind == UPGRADING for kind in kinds)
    if upgrades:
        kill_upgrades(version or stored.NEWEST - 1, upgrades, life.rng, life.tally)
    if version:
        stored.lay(life.site.daemon.paths, version, _GROWN)
    life.prove()
    for kind in kinds:
        if kind != UPGRADING:
            special = {STARTING: life.kill_at_start, LEAVING: life.kill_at_leave}
            special.get(kind, partial(life.kill_in, kind))()
            life.prove()
    life.close()


def torture(kills: int, seed: int, tally: Tally, only: Sequence[str] = ()) -> None:
    """Kill this many times, spread evenly over the kinds of work; what broke is in the tally."""
    rng = random.Random(seed)
    wanted = list(only or KINDS)
    draw = [wanted[n % len(wanted)] for n in range(kills)]
    rng.shuffle(draw)
    begins = [*range(1, stored.NEWEST), 0]
    if "importing" in wanted:
        load.foreign_export()
    salts = {ollama_stub.digest(ollama_stub.minilm.load("noise"), ""): ""}
    with harness.model_server("noise") as model:
        model.stop()
        model.start(rate=TEXTS_PER_S)
        for number, first in enumerate(range(0, kills, LIFE)):
            kinds = draw[first : first + LIFE]
            version = begins[number % len(begins)]
            print(f"life {number + 1}: begins with {f'version {version}' if version else 'nothing'}, "
                  f"{len(kinds)} kills", flush=True)  # fmt: skip
            with tempfile.TemporaryDirectory(prefix="memd-torture-") as place:
                life = Life(place, rng, model, tally)
                life.salts = salts
                try:
                    live(life, kinds, version)
                finally:
                    life.site.stop_writer()
                    life.site.daemon.stop(signal.SIGKILL)
                    life.site.end()
            print(
                f"  {sum(tally.kills.values())} killed, {len(tally.broken)} promises broken",
                flush=True,
            )


def report(tally: Tally, seconds: float, seed: int) -> None:
    """Print the figures."""
    print(f"\n{'killed while':<16}{'kills':>6}{'under way':>11}")
    for kind in (one for one in KINDS if tally.kills[one]):
        print(f"{kind:<16}{tally.kills[kind]:>6}{tally.within[kind]:>11}")
    upgrades = ", ".join(f"{step} {count}" for step, count in sorted(tally.upgrades.items()))
    print(f"""{"all":<16}{tally.kills.total():>6}{tally.within.total():>11}
upgrades left at: {upgrades}
backups and exports killed, too: {tally.writers}
restart to first answer: median {statistics.median(tally.restarts_s or [0.0]):.2f} s
acknowledged: {tally.events} events, {tally.memories} memories; forgotten: {tally.forgotten} words
promises broken: {len(tally.broken)} (limit 0); {seconds:.0f} s; --seed {seed}""")


def main() -> None:
    """Torture and tell."""
    parser = argparse.ArgumentParser(prog="scripts/torture crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", nargs="+", choices=KINDS, default=())
    options = parser.parse_args()
    print(f"{options.kills} kills, --seed {options.seed}", flush=True)
    began = time.perf_counter()
    tally = Tally()
    with contextlib.suppress(KeyboardInterrupt):
        torture(options.kills, options.seed, tally, options.only)
    report(tally, time.perf_counter() - began, options.seed)
    raise SystemExit(1 if tally.broken else 0)
