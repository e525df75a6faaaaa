"""A real daemon with a local model: added while it runs, killed, removed; and with the real weights, if they are added."""

import os
import shutil
from pathlib import Path

import pytest

from memd.embeddings.local import packages
from memd.paths import Paths
from tests import tiny_model

REAL = next(
    (
        one
        for one in packages.list_added(Paths(os.environ).models_dir)
        if one.name == packages.MINILM.name
    ),
    None,
)
MEMORIES = (
    "The nightly backup failed because the disk of the archive host was full.",
    "We keep sessions in SQLite rather than in Redis.",
    "The parser skips blank lines at the end of a file.",
)


@pytest.fixture
def daemon(daemon):
    # Nothing listens at port 9, so that an Ollama of this machine does not answer instead.
    settings = '[engines]\nurl = "http://127.0.0.1:9"\nquery_s = 10\n'
    (daemon.home / "config.toml").write_text(settings)
    daemon.start()
    with daemon.client() as client:
        texts = [{"text": text, "source": "test", "project": "global"} for text in MEMORIES]
        client.call("memd/remember", {"memories": texts})
    return daemon


def add(daemon):
    return tiny_model.add(daemon.paths.models_dir, daemon.home / "wheels")


def embedder(daemon):
    return daemon.status()["embedder"]


def is_led_by_the_model(daemon):
    rooms = daemon.status()["rooms"]
    done = next(room["done"] for room in rooms if room["name"] == "backfill")
    return done >= len(MEMORIES) and embedder(daemon)["active"] == "local"


def search(daemon, text):
    with daemon.client() as client:
        return client.call("memd/search", {"query": text, "project": "all"})


def test_a_model_is_taken_up_and_given_up_while_the_daemon_runs(daemon):
    assert embedder(daemon)["active"] == "hashing"
    add(daemon)
    daemon.wait_for(lambda: is_led_by_the_model(daemon))
    found = search(daemon, "where are sessions kept")
    assert found["hits"]
    assert not found.get("degraded")
    tiny_model.remove(daemon.paths.models_dir)
    daemon.wait_for(lambda: embedder(daemon)["active"] == "hashing")
    # The vault has vectors of a model that is gone.
    assert "answered alone" in search(daemon, "where are sessions kept")["degraded"]["vector"]


@pytest.mark.skipif(REAL is None, reason="`memd model add` fetches the weights for it")
def test_the_real_model_finds_what_was_said_in_other_words(daemon):
    shutil.copytree(REAL.folder, Path(daemon.paths.models_dir) / REAL.name)
    daemon.wait_for(lambda: is_led_by_the_model(daemon))
    for question, answer in (
        ("storage went out of space during archiving overnight", MEMORIES[0]),
        ("which database holds logins of visitors", MEMORIES[1]),
        ("ignoring empty rows at the bottom while reading", MEMORIES[2]),
    ):

        def is_found(question=question, answer=answer):
            hits = search(daemon, question)["hits"]
            return hits and hits[0]["title"] in answer

        daemon.wait_for(is_found)
