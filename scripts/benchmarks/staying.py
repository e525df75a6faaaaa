"""memd's own cases: what was replaced or forgotten stays so, whatever happens to the vault afterwards.

Each case is a past session in which the user says one fact with a value of its own. All are imported and shared with
another machine; then half of the facts are replaced by hand and half forgotten, after an export and a copy of the vault
were made that still have them. What follows is done by memd's own commands, one after the other, and after each a search
asks for every fact. Only the backup has the replacements: one from before them never knew of them.
"""

import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness, metrics
from benchmarks.forgetting import Vault
from memd.client import Client

_CONFIG = "[engines]\nembedder = 'hashing'\n[sync]\nplace = \"{place}\"\ninterval_s = 0\n"
_THINGS = ("port", "region", "owner", "timeout", "bucket", "branch", "queue", "schema")
_NAMES = ("billing", "search", "login", "mail", "report", "gateway", "cache", "export")


def measure(count: int) -> metrics.Figures:
    """Return for each operation how many of the facts stay replaced, and how many stay forgotten."""
    with tempfile.TemporaryDirectory(prefix="memd-staying-") as folder:
        config = _CONFIG.format(place=Path(folder, "shared"))
        Path(folder, "shared").mkdir()
        ours: harness.Daemon
        theirs: harness.Daemon
        with harness.daemon(config) as ours, harness.daemon(config) as theirs:
            cases = _Cases((ours, theirs), Path(folder), count)
            cases.prepare()
            figures = {"nothing": cases.check(ours)}
            for name, step in cases.list_steps():
                step()
                ours.settle()
                figures[name] = cases.check(ours)
            theirs.settle()
            return figures | {"sync, the other machine": cases.check(theirs)}


class _Cases:
    """The facts of one run, and what is done to them."""

    def __init__(self, daemons: Sequence[harness.Daemon], folder: Path, count: int) -> None:
        (self.ours, self.theirs), self.folder = daemons, folder
        self.export = str(folder / "before.jsonl")
        self.sessions = folder / "projects" / "work"
        self.subjects = [
            f"{thing} of the {name} service {number}"
            for number in range(1, count + 1)
            for name, thing in itertools.product(_NAMES, _THINGS)
        ][:count]
        self.values = [f"amber{number:04}" for number in range(count)]

    def prepare(self) -> None:
        """Bring the facts into both vaults; then replace half of them here, and forget the others."""
        self.sessions.mkdir(parents=True)
        for number, subject in enumerate(self.subjects):
            said = f"Remember that the {subject} is {self.values[number]}."
            self._write_session(number, said)
        _run(self.ours, "import", "claude-code", str(self.sessions))
        self.ours.settle()
        _run(self.ours, "export", self.export)
        for daemon in (self.ours, self.theirs):
            _run(daemon, "sync")
        self.theirs.settle()
        if self.check(self.theirs)["stay %"]:
            raise SystemExit("the other machine does not know each fact, so nothing is proved")
        with self.ours.client() as memd:
            known = [self._find(memd, number) for number in range(len(self.values))]
        vault = Vault(self.ours)
        for number, subject in enumerate(self.subjects[::2]):
            text = f"The {subject} is another one, {number} of the new list."
            vault.remember(text, project="global", replaces=known[2 * number])
        _run(self.ours, "backup", "--to", str(self.folder / "backups"))
        for ids in known[1::2]:
            vault.forget(ids)
        self.ours.settle()

    def list_steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield what is done to the vault, in order."""
        yield "distilling again", lambda: _run(self.ours, "reindex", "--memories")
        yield "reindex", lambda: _run(self.ours, "reindex")
        yield "import of the sessions", self._import_again
        yield "import of an export", lambda: _run(self.ours, "import", self.export)
        yield "sync", self._sync
        (backup,) = (self.folder / "backups").iterdir()
        yield "restore", lambda: self._restore(backup)

    def check(self, daemon: harness.Daemon) -> dict[str, Any]:
        """Search for every fact; the even ones are replaced. Count those whose old value no hit has, or nothing at all."""
        with daemon.client() as memd:
            stays = [
                not self._find(memd, number)
                if number % 2 == 0
                else value not in json.dumps(self._ask(memd, number))
                for number, value in enumerate(self.values)
            ]
        halves = {"replaced": stays[::2], "forgotten": stays[1::2]}
        counts = {f"{fate}, of {len(half)}": sum(half) for fate, half in halves.items()}
        return {**counts, "stay %": round(100 * sum(stays) / len(stays), 1)}

    def _ask(self, memd: Client, number: int) -> Mapping[str, Any]:
        asked = {"query": f"What is the {self.subjects[number]}?", "k": 20, "project": "all"}
        answer: Mapping[str, Any] = memd.call("memd/search", {**asked, "show_all": True})
        return answer

    def _find(self, memd: Client, number: int) -> list[int]:
        """Return the memories that a search shows with the old value; what is replaced is not shown."""
        hits, value = self._ask(memd, number)["hits"], self.values[number]
        return [one["id"] for one in hits if value in f"{one['title']} {one['body']}"]

    def _write_session(self, number: int, said: str) -> None:
        """Write a transcript of Claude Code in which the user says this, and the agent agrees."""
        at = time.time() - (2 + number % 300) * 86_400
        named = {"sessionId": f"session-{number}", "cwd": str(self.folder / "work")}
        answer = {"role": "assistant", "id": f"m{number}", "stop_reason": "end_turn"}
        lines = (
            {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": said}},
            {"type": "assistant", "uuid": f"a{number}",
             "message": {**answer, "content": [{"type": "text", "text": "Noted."}]}},
        )  # fmt: skip
        with (self.sessions / f"session-{number}.jsonl").open("a", encoding="utf-8") as file:
            for later, line in enumerate(lines):
                stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at + later))
                file.write(json.dumps({**named, **line, "timestamp": stamp}) + "\n")

    def _import_again(self) -> None:
        """Import the sessions once more: a file that has grown is read again as a whole."""
        for file in self.sessions.iterdir():
            with file.open("a", encoding="utf-8") as grown:
                grown.write("\n")
        _run(self.ours, "import", "claude-code", str(self.sessions))

    def _sync(self) -> None:
        for daemon in (self.ours, self.theirs, self.ours):
            _run(daemon, "sync")

    def _restore(self, backup: Path) -> None:
        """Restore by the command, which needs the daemon to be away: this one is not its own."""
        self.ours.stop()
        _run(self.ours, "restore", str(backup), "--yes")
        self.ours.start()


def _run(daemon: harness.Daemon, *words: str) -> None:
    done = daemon.run(*words)
    if done.returncode:
        raise SystemExit(f"memd {words[0]} failed: {done.stderr.decode()}")
