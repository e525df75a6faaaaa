"""Learned vectors behind a real daemon: filled in, carried on after kill -9, rebuilt, dropped."""

import contextlib
import signal
import sqlite3
import threading

import numpy as np
import pytest

from memd.errors import MemdError
from memd.index.quantization import decode_vectors
from memd.recall.semantic import UNRELATED
from memd.store.vectors import STRIDE
from tests.fakes.ollama import Model, Ollama

MEMORIES = 160
BATCH = 8
PLACES = ("ledger", "gateway", "scheduler", "importer", "parser")
PREFIX = "search_document: "
SEEDS = (1, 2)


@pytest.fixture
def ollama():
    with Ollama() as server:
        yield server


@pytest.fixture
def daemon(daemon, ollama):
    (daemon.home / "config.toml").write_text(
        f'[engines]\nembedder = "ollama"\nurl = "{ollama.url}"\n'
    )
    daemon.tune({"engines.batch": BATCH})
    return daemon


def remember(daemon, count=MEMORIES):
    memories = [
        {"text": f"The {PLACES[n % 5]} retries job {n} after {n % 7} seconds.", "source": "test"}
        for n in range(count)
    ]
    with daemon.client() as client:
        client.call("memd/remember", {"memories": memories})


def backfill(daemon):
    return next(room for room in daemon.status()["rooms"] if room["name"] == "backfill")


def is_complete(daemon, count=MEMORIES):
    reply = backfill(daemon)
    return reply["active"] and not reply["missing"] and reply["done"] >= count


def stored(daemon):
    """Seed → {passage: (its text, its vector)}, of the spaces of the models that are known here."""
    uri = f"file:{daemon.paths.database}?mode=ro"
    found = {seed: {} for seed in SEEDS}
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as vault:
        rows = vault.execute(
            "SELECT s.digest, s.dimensions, p.id, m.title, m.body, p.start, p.stop, v.vector FROM vectors v"
            " JOIN spaces s ON s.id = v.id / ?1 JOIN passages p ON p.id = v.id % ?1"
            " JOIN summaries m ON m.id = p.summary_id WHERE s.provider = 'ollama'",
            (STRIDE,),
        ).fetchall()
    for digest, dimensions, number, title, body, start, stop, blob in rows:
        (seed,) = (one for one in SEEDS if Model(one).digest.startswith(digest))
        assert number not in found[seed]
        found[seed][number] = (
            f"{title}\n{body[start:stop]}",
            decode_vectors([blob], dimensions)[0],
        )
    return found


def assert_made_by(seed, found):
    """Every vector is what this very model makes of the text of its passage."""
    texts = [PREFIX + text for text, _ in found.values()]
    vectors = np.stack([vector for _, vector in found.values()]).astype(np.float64)
    assert np.einsum("ij,ij->i", Model(seed).vectors(texts), vectors).min() > 0.99


class User:
    """A client that searches and captures until it is stopped."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0
        self.failed = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _run(self):
        with self._daemon.client() as client:
            while not self._is_over.is_set():
                self.count += 1
                try:
                    self._use(client)
                except MemdError as error:
                    self.failed.append(error)
                    return

    def _use(self, client):
        question = {"query": f"importer retries job {self.count % 50}", "project": "all"}
        if not client.call("memd/search", question)["hits"]:
            self.failed.append(question)
        payload = {
            "session_id": "s",
            "prompt_id": f"p{self.count}",
            "prompt": "go on",
            "hook_event_name": "UserPromptSubmit",
            "cwd": "/nowhere",
        }
        client.call("memd/capture", {"client": "claude-code", "payload": payload})


def test_after_kill_9_in_the_middle_it_goes_on_with_nothing_twice_and_nothing_mixed(daemon, ollama):
    ollama.hold_after(len(UNRELATED) + MEMORIES // 4)
    daemon.start()
    remember(daemon)
    daemon.settle()
    daemon.wait_for(lambda: BATCH < backfill(daemon)["done"] < MEMORIES // 2)
    daemon.stop(signal.SIGKILL)
    embedded = len(stored(daemon)[1])
    assert 0 < embedded < MEMORIES
    before = len(ollama.texts)
    ollama.hold_after(None)
    daemon.start()
    daemon.wait_for(lambda: is_complete(daemon))
    found = stored(daemon)
    assert len(found[1]) == MEMORIES
    assert_made_by(1, found[1])
    asked = [text for text in ollama.texts[before:] if "retries job" in text]
    # What was on its way when it was killed may still be counted.
    assert 0 <= len(asked) - (MEMORIES - embedded) <= BATCH


def test_reindexing_embeddings_makes_them_anew_in_the_background(daemon, ollama):
    daemon.start()
    remember(daemon)
    daemon.wait_for(lambda: is_complete(daemon))
    before = len(ollama.texts)
    ran = daemon.run("reindex", "--embeddings")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"{MEMORIES} memories to read anew for ollama/".encode())
    daemon.wait_for(lambda: len(ollama.texts) - before >= MEMORIES and is_complete(daemon))
    assert_made_by(1, stored(daemon)[1])
    ollama.kill()
    ran = daemon.run("reindex", "--embeddings")
    assert ran.returncode == 1
    assert ran.stderr.startswith(b"memd: ")
    assert len(stored(daemon)[1]) == MEMORIES
