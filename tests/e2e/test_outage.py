"""A model that dies, hangs or changes under a real daemon: searches go on, and it is picked up again."""

import contextlib
import signal
import sqlite3

import numpy as np
import pytest

from memd.index.quantization import decode_vectors
from memd.recall.semantic import UNRELATED
from memd.store.vectors import STRIDE
from tests.fakes.ollama import Model, Ollama

SEARCHES = 40
MEMORIES = 60
DEADLINE_S = 2
WORDS = ("queue", "worker", "socket", "schema", "invoice", "header", "buffer", "ledger")


@pytest.fixture
def ollama():
    with Ollama() as server:
        yield server


@pytest.fixture
def asking(daemon, ollama):
    """A daemon with sixty memories, all of which the model has seen."""
    (daemon.home / "config.toml").write_text(
        f'[engines]\nembedder = "ollama"\nurl = "{ollama.url}"\nquery_s = {DEADLINE_S}\n'
    )
    daemon.tune({"engines.batch": 8})
    daemon.start()
    with daemon.client() as client:
        client.call("memd/remember", {"memories": [memory(n) for n in range(MEMORIES)]})
    daemon.settle()
    daemon.wait_for(lambda: is_complete(daemon))
    return daemon


def memory(number):
    words = f"The {WORDS[number % 8]} number {number} waits for the {WORDS[number // 8]}."
    return {"text": words, "source": "test"}


def backfill(daemon):
    return next(room for room in daemon.status()["rooms"] if room["name"] == "backfill")


def is_complete(daemon):
    reply = backfill(daemon)
    return reply["active"] and not reply["missing"]


def search(client, number):
    """Why the model had no part in a question that was not asked before, or None."""
    answer = client.call(
        "memd/search", {"query": f"what waits for the ledger {number}", "project": "all"}
    )
    assert answer["hits"]
    return answer.get("degraded", {}).get("vector")


def outage(daemon, begin, end):
    """Forty searches, a quarter before the fault and a quarter after."""
    with daemon.client() as client:
        numbers = iter(range(10_000))
        before = [search(client, next(numbers)) for _ in range(SEARCHES // 4)]
        begin()
        during = [search(client, next(numbers)) for _ in range(SEARCHES // 2)]
        end()
        daemon.wait_for(lambda: search(client, next(numbers)) is None)
        after = [search(client, next(numbers)) for _ in range(SEARCHES // 4)]
    assert before + after == [None] * (SEARCHES // 2)
    assert all(during)


def test_a_model_that_dies_between_searches_costs_no_answer_and_is_taken_back(asking, ollama):
    outage(asking, ollama.kill, ollama.start)


def test_a_model_that_hangs_costs_no_answer_and_is_taken_back(asking, ollama):
    def hang():
        ollama.fault = "hang"

    def heal():
        ollama.fault = None
        # What hung goes on hanging until its connection is cut, as when Ollama is restarted.
        ollama.kill()
        ollama.start()

    outage(asking, hang, heal)


def stored(daemon, digest):
    """(passage, vector) of every vector in the space of the model with this digest."""
    path = f"file:{daemon.paths.database}?mode=ro"
    with contextlib.closing(sqlite3.connect(path, uri=True)) as vault:
        rows = vault.execute(
            "SELECT v.id % ?1, s.dimensions, v.vector FROM vectors v JOIN spaces s ON s.id = v.id / ?1"
            " WHERE s.digest != '' AND s.digest = substr(?2, 1, length(s.digest))",
            (STRIDE, digest),
        ).fetchall()
    return [(number, decode_vectors([blob], dimensions)[0]) for number, dimensions, blob in rows]


def test_a_changed_model_sees_everything_anew_once_though_the_daemon_is_killed_meanwhile(
    asking, ollama
):
    old, new = Model(seed=1), Model(seed=2)
    assert len(stored(asking, old.digest)) == MEMORIES

    ollama.requests.clear()
    ollama.hold_after(len(UNRELATED) + MEMORIES // 2)
    ollama.pull(seed=2)
    with asking.client() as client:
        # The next memory finds the change out, and none waits for the next look at the model.
        client.call("memd/remember", {"memories": [memory(MEMORIES)]})
    asking.wait_for(lambda: len(stored(asking, new.digest)) >= MEMORIES // 3)
    asking.stop(signal.SIGKILL)
    embedded = len(stored(asking, new.digest))
    assert embedded < MEMORIES
    ollama.hold_after(None)
    asking.start()
    asking.wait_for(lambda: is_complete(asking))

    found = stored(asking, new.digest)
    assert len({number for number, _ in found}) == len(found) == MEMORIES + 1
    # Each of them is what the new model makes of one of the texts, and no two of the same.
    asked = [text for text in ollama.texts if "number" in text]
    texts = list(dict.fromkeys(asked))
    likeness = np.array([row for _, row in found], np.float32) @ new.vectors(texts).T
    assert sorted(likeness.argmax(axis=1)) == list(range(MEMORIES + 1))
    assert likeness.max(axis=1).min() > 0.999
    assert len(asked) <= len(texts) + 4 * 8
