"""Everything a vault is put to while its daemon is killed, and what was promised on the way.

Each kind of work is done for real, over the socket or by memd's own programs, again and again until
the daemon ends; beside it sessions go on. What the daemon acknowledged is written down as a promise.
kills.py kills the daemon, checks.py looks whether the promises hold.
"""

import contextlib
import functools
import io
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import corpus, harness
from memd.capture import spool
from memd.capture.redact import redact_value
from memd.client import Client
from memd.errors import EngineFailed, MemdError, Unreachable
from memd.store.import_rows import commit_staging, staging_vault
from memd.transfer import archive
from tests.stress.support import as_event, worker

TAIL = "zqxv"
"""How every word ends that stands in one place alone; full texts keep a word's end, not always its head."""
_WAYS = ("The {0} of it is {1}.", "The {0} of it is the {1}.", "{0} of it is {1}")
_SESSIONS, _SESSIONS_MANY = 3, 12
_PAUSE_S = 0.02
_WRITER = str(Path(__file__).with_name("writer.py"))
Work = Callable[["Site", Client], None]


@dataclass
class Deletion:
    """A forgetting that was begun: the call, and the words that must not be found after it."""

    method: str
    params: dict[str, Any]
    words: set[str]


@dataclass
class Promises:
    """What was acknowledged and must hold from then on."""

    events: set[tuple[str, str]] = field(default_factory=set)
    """(turn, event's name)."""
    memories: set[int] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    going: list[Deletion] = field(default_factory=list)
    """Begun and not acknowledged."""
    rounds: dict[str, bool] = field(default_factory=dict)
    """Word of an import → whether it was acknowledged."""


class Site:
    """One home, its daemon, and what happens there."""

    def __init__(self, folder: str, rng: random.Random) -> None:
        self.home = Path(folder, "home")
        self.exports = Path(folder, "exports")
        for one in (self.home, self.exports):
            one.mkdir()
        self.daemon = harness.Daemon(str(self.home))
        self.rng = rng
        self.promises = Promises()
        self.failures: list[str] = []
        self.under_way = ""
        """The kind of work that is being done at this moment."""
        self.took: dict[str, list[float]] = {}
        self.is_over = threading.Event()
        self.writer: subprocess.Popen[str] | None = None
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.corpus = corpus.Corpus(rng.randrange(2**32))

    def number(self) -> int:
        """One that was never used here."""
        return next(self._numbers)

    def rare(self) -> str:
        """A word that stands nowhere else."""
        with self._lock:
            letters = self.rng.choices("bcdfghjklmnprtw", k=10)
        return f"{''.join(letters)}{TAIL}"

    @contextlib.contextmanager
    def doing(self, kind: str) -> Iterator[None]:
        """Say what is being done, and how long it took if it came to its end."""
        began = time.perf_counter()
        self.under_way = kind
        yield
        self.under_way = ""
        self.took.setdefault(kind, []).append(time.perf_counter() - began)

    # ── Doing it until the daemon ends ─────────────────────────────────────────────────────

    def begin(self, kind: str) -> None:
        """Do this kind of work, and let sessions go on beside it."""
        self.is_over.clear()
        self.under_way = ""
        crowd = _SESSIONS_MANY if kind == "capturing" else _SESSIONS
        self._threads = [threading.Thread(target=self._session, args=(kind,)) for _ in range(crowd)]
        self._threads.append(threading.Thread(target=self._until_gone, args=(WORKS[kind],)))
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Wait for the threads, whose daemon has ended."""
        self.is_over.set()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _until_gone(self, work: Work) -> None:
        with contextlib.suppress(Unreachable), self.daemon.client() as client:
            while not self.is_over.is_set():
                try:
                    work(self, client)
                except Unreachable:
                    return
                except (MemdError, OSError) as error:
                    self.failures.append(f"{self.under_way}: {type(error).__name__}: {error}")
                    return

    def _session(self, kind: str) -> None:
        """Turns of a session; what is not acknowledged goes on the spool, as the hook does it."""
        pause_s = 0.0 if kind == "capturing" else _PAUSE_S
        with contextlib.suppress(Unreachable), self.daemon.client() as client:
            while not self.is_over.wait(pause_s):
                for event in turn(self.number(), f"s{threading.get_ident() % 7}"):
                    try:
                        receipt = client.call("memd/capture", event)
                    except Unreachable:
                        self.spool(event)
                        raise
                    self.note([event], [receipt])

    def note(self, events: list[dict[str, Any]], receipts: list[dict[str, Any]]) -> None:
        """Write down what was acknowledged."""
        for event, receipt in zip(events, receipts, strict=True):
            if receipt["outcome"] not in {"stored", "duplicate"}:
                self.failures.append(f"captured: {receipt}")
            self.promises.events.add(_event_name(event))

    def spool(self, event: dict[str, Any]) -> None:
        """Put an event on the spool; that, too, is a promise."""
        line = json.dumps({**event, "at": time.time_ns() // 1_000_000, "directory": "/nowhere"})
        spool.append(self.daemon.paths.spool_dir, line.encode())
        self.promises.events.add(_event_name(event))

    def capture(self, client: Client, events: list[dict[str, Any]]) -> int:
        """Capture these in one call; the number of the last one."""
        receipts = client.call("memd/capture", {"events": events})["receipts"]
        self.note(events, receipts)
        return int(receipts[-1]["seq"])

    def remember(self, client: Client, memories: list[dict[str, Any]]) -> list[int]:
        """Remember these; their ids."""
        stored = client.call("memd/remember", {"memories": memories})["remembered"]
        ids = [int(one["id"]) for one in stored]
        self.promises.memories.update(ids)
        return ids

    def forget(self, client: Client, method: str, params: dict[str, Any], words: set[str]) -> None:
        """Forget for good; whatever happens from now on, asking again must suffice."""
        deletion = Deletion(method, {**params, "dry_run": False}, words)
        self.promises.going.append(deletion)
        client.call(method, deletion.params)
        self.promises.going.remove(deletion)
        self.promises.deleted |= words

    def start_writer(self, what: str) -> subprocess.Popen[str]:
        """Start a process that does this again and again, and prints + before and - after."""
        self.stop_writer()
        self.writer = subprocess.Popen(
            [sys.executable, _WRITER, what, str(self.home), str(self.exports)],
            env=os.environ | self.daemon.environ,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self.writer

    def kill_writer(self) -> None:
        """Kill it; its output may still be read."""
        if self.writer is not None:
            self.writer.send_signal(signal.SIGKILL)
            self.writer.wait(timeout=30)

    def stop_writer(self) -> None:
        """Kill it if it lives, and close its output."""
        self.kill_writer()
        if self.writer is not None:
            if self.writer.stdout:
                self.writer.stdout.close()
            self.writer = None


# ── Turns to capture, and the export of another vault ─────────────────────────────────────────


def turn(number: int, session: str, word: str = "") -> list[dict[str, Any]]:
    """The events of a turn: asked, run, failed or not, answered."""
    base = {"session_id": session, "prompt_id": f"k{number}", "cwd": "/nowhere"}
    tool = {"tool_name": "Bash", "tool_use_id": f"t{number}"}
    command = {"command": f"make check-{number % 50}"}
    asked = f"Why does worker {number} time out? {word}".strip()
    said = (
        f"Worker {number} waits for a lock. We chose a queue over a lock because it is fair. {word}"
    )
    payloads = [
        {**base, "hook_event_name": "UserPromptSubmit", "prompt": asked},
        {
            **base, **tool, "hook_event_name": "PostToolUse", "tool_input": command,
            "tool_response": {"stdout": f"ok {number} {word}", "stderr": "", "interrupted": False},
        },
        {**base, "hook_event_name": "Stop", "last_assistant_message": said.strip()},
    ]  # fmt: skip
    return [as_event(payload) for payload in payloads]


def reworded_export(data: bytes, word: str) -> bytes:
    """The same export from another vault: nothing in it is known, and each memory has this word."""
    lines = [json.loads(line) for line in data.splitlines()]
    header, records = lines[0], lines[1:-1]
    names = {
        str(one[key])
        for one in records
        for key in ("uid", "key")
        if one["record"] in {"session", "event", "summary"} and key in one
    }
    renamed = []
    for one in records:
        fields = {
            name: f"{value[:60]}-{word}" if isinstance(value, str) and value in names else value
            for name, value in one.items()
        }
        if one["record"] == "summary":
            fields["body"] = f"{one['body']} {word}"
        renamed.append((fields.pop("record"), fields))
    return b"".join(archive.export_lines(header["memd"], None, header["counts"], renamed))


@functools.cache
def foreign_export() -> bytes:
    """What another machine's vault exports: some memories and turns."""
    with harness.daemon("[engines]\nembedder = 'hashing'\n") as daemon:
        with daemon.client() as client:
            now = time.time_ns() // 1_000_000
            client.call("memd/remember", {"memories": list(corpus.Corpus(3).memories(60, now))})
            events = [one for number in range(20) for one in turn(-number, "elsewhere")]
            client.call("memd/capture", {"events": events})
        daemon.settle()
        out: list[bytes] = []
        archive.export_vault(daemon.paths.database, "0", out.append)
    return b"".join(out)


def _event_name(event: dict[str, Any]) -> tuple[str, str]:
    return event["payload"]["prompt_id"], event["payload"]["hook_event_name"]


# ── The kinds of work ─────────────────────────────────────────────────────────────────────────


def _capture(site: Site, client: Client) -> None:
    events = [one for _ in range(15) for one in turn(site.number(), "batch")]
    with site.doing("capturing"):
        site.capture(client, events)


def _distil(site: Site, client: Client) -> None:
    session = f"d{site.number()}"
    last = site.capture(client, [one for _ in range(20) for one in turn(site.number(), session)])
    with site.doing("distilling"):
        client.call("memd/search", {"query": "worker", "min_event": last, "project": "all"})


def _remember(site: Site, client: Client) -> None:
    memories = list(site.corpus.memories(40, time.time_ns() // 1_000_000))
    with site.doing("remembering"):
        site.remember(client, [{**one, "source": "torture"} for one in memories])


def _consolidate(site: Site, client: Client) -> None:
    twins = [
        {"text": way.format(*pair), "kind": "decision", "source": "user"}
        for pair in ((site.rare(), site.rare()) for _ in range(12))
        for way in _WAYS
    ]
    site.remember(client, twins)
    with site.doing("consolidating"):
        while client.call("memd/consolidate")["report"]["has_more"]:
            pass


def _forget(site: Site, client: Client) -> None:
    words = [site.rare() for _ in range(12)]
    ids = site.remember(
        client, [{"text": f"The {word} is stored here.", "source": "user"} for word in words]
    )
    session, said = f"f{site.number()}", [site.rare() for _ in range(6)]
    turns = {word: site.number() for word in said}
    events = [one for word, number in turns.items() for one in turn(number, session, word)]
    last = site.capture(client, events)
    client.call("memd/search", {"query": said[0], "min_event": last, "project": "all"})
    site.promises.memories -= set(ids)
    site.promises.events -= {_event_name(one) for one in events}
    with site.doing("forgetting"):
        site.forget(client, "memd/forget", {"ids": ids[:10]}, set(words[:10]))
    with site.doing("forgetting"):
        site.forget(client, "memd/forget", {"session": session}, set(said))
    for word in words[10:]:
        with site.doing("forgetting"):
            site.forget(client, "memd/forget", {"query": word}, {word})


def _scrub(site: Site, client: Client) -> None:
    word = site.rare()
    site.remember(
        client,
        [{"text": f"Number {site.number()} opens with {word}.", "source": "user"} for _ in range(10)],
    )  # fmt: skip
    site.capture(client, turn(site.number(), "scrubbed", word))
    with site.doing("scrubbing"):
        site.forget(client, "memd/scrub", {"pattern": word}, {word})


def _reembed(site: Site, client: Client) -> None:
    while True:
        try:
            client.call("memd/reindex", {"embeddings": True})
        except EngineFailed:
            time.sleep(0.05)  # it has not found its model yet
        else:
            break
    with site.doing("re-embedding"):
        while True:
            backfill = worker(client.call("memd/status"), "backfill")
            if backfill["space"] and not backfill["missing"]:
                return
            time.sleep(0.02)


def _repeated_call(kind: str, method: str) -> Work:
    def work(site: Site, client: Client) -> None:
        with site.doing(kind):
            client.call(method)

    return work


def _repeated_writer(kind: str, what: str) -> Work:
    def work(site: Site, client: Client) -> None:
        writer = site.start_writer(what)
        assert writer.stdout is not None
        began = 0.0
        for line in writer.stdout:
            now = time.perf_counter()
            if line.startswith("+"):
                site.under_way, began = kind, now
            elif line.startswith("-"):
                site.under_way = ""
                site.took.setdefault(kind, []).append(now - began)
            else:
                site.failures.append(f"{what}: {line.strip()}")
            client.call("memd/ping")
        client.call("memd/ping")

    return work


def _import(site: Site, client: Client) -> None:
    word, now = site.rare(), time.time_ns() // 1_000_000
    data = reworded_export(foreign_export(), word)
    with site.doing("importing"):
        with staging_vault(site.daemon.paths.database, now) as (vault, name):
            archive.stage_export(io.BytesIO(data), vault, redact_value, lambda _: None)
            commit_staging(vault)
            site.promises.rounds[word] = False
            client.call("memd/import/vault", {"staged": name})
        site.promises.rounds[word] = True


WORKS: dict[str, Work] = {
    "capturing": _capture,
    "distilling": _distil,
    "remembering": _remember,
    "consolidating": _consolidate,
    "forgetting": _forget,
    "scrubbing": _scrub,
    "re-embedding": _reembed,
    "reindexing": _repeated_call("reindexing", "memd/reindex"),
    "vacuuming": _repeated_call("vacuuming", "memd/vacuum"),
    "backing up": _repeated_writer("backing up", "backup"),
    "exporting": _repeated_writer("exporting", "export"),
    "importing": _import,
}
