"""The labelled pairs (tests/data/pairs.jsonl), each in a project of its own, through a whole tick.

How they were judged: by hand, by what a reader would lose if the older one (`a`) were hidden. A pair is
`duplicate` only if a reader of the newer one (`b`) alone knows everything that the older one said.
Every other value, name, time, scope or direction makes it `different`, and so does another project.
A stamp of when a line was logged is no claim about a time; a time in a sentence is one.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from memd.config import ConsolidateConfig
from memd.consolidate.consolidator import Consolidator

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "pairs.jsonl").read_text("utf-8").splitlines()
]
DRESS = {"case", "punctuation", "order", "timestamp", "filler"}
"""Classes whose duplicates must be found whatever their cosine."""
CLASSES = DRESS | {
    "wording", "elaboration", "list", "number", "unit", "negation", "scope", "antonym", "direction", "file",
    "version", "date", "identifier", "value", "project",
}  # fmt: skip
FOUND_MIN = 0.80


@pytest.fixture
async def verdicts(vault, clock):
    """For each pair, whether the newer one hides the older one after everything was examined."""
    ids = []
    for number, pair in enumerate(PAIRS):
        home = vault.project(f"/{number}")
        other = vault.project(f"/{number}/other") if pair["class"] == "project" else home
        old = vault.put(pair["a"], at=clock(), project_id=home)
        new = vault.put(pair["b"], at=clock() + 1, project_id=other)
        ids.append((old, new))
    await vault.indexer.settle()
    consolidator = Consolidator(
        vault.db, vault.index, vault.space, ConsolidateConfig(), clock, lambda: None
    )
    while (await consolidator.tick()).has_more:
        pass
    return [vault.get(old).superseded_by == new for old, new in ids]


def cosines(vault):
    vectors = vault.embedder.embed([text for pair in PAIRS for text in (pair["a"], pair["b"])])
    return [float(vectors[i] @ vectors[i + 1]) for i in range(0, len(vectors), 2)]


def test_there_are_enough_pairs_of_every_class():
    assert len(PAIRS) >= 150
    assert {pair["class"] for pair in PAIRS} == CLASSES
    assert Counter(pair["label"] for pair in PAIRS).keys() == {"duplicate", "different"}
    assert all(pair["why"] for pair in PAIRS)
    texts = Counter((pair["a"], pair["b"], pair["class"]) for pair in PAIRS)
    assert max(texts.values()) == 1


async def test_no_supersession_is_wrong_and_enough_are_found(vault, verdicts):
    wrong = [
        pair
        for pair, hides in zip(PAIRS, verdicts, strict=True)
        if hides and pair["label"] != "duplicate"
    ]
    assert wrong == []
    near = [
        hides
        for pair, hides, cosine in zip(PAIRS, verdicts, cosines(vault), strict=True)
        if pair["label"] == "duplicate" and cosine >= 0.95
    ]
    assert len(near) >= 25
    assert sum(near) / len(near) >= FOUND_MIN
    missed = [
        pair
        for pair, hides in zip(PAIRS, verdicts, strict=True)
        if pair["label"] == "duplicate" and pair["class"] in DRESS and not hides
    ]
    assert missed == []
