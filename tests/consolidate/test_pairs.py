"""The labelled pairs (tests/data/pairs.jsonl), each in a project of its own, through a whole tick.

How they were judged: by hand, by what a reader would lose if the older one (`a`) were hidden. A pair is
`duplicate` only if a reader of the newer one (`b`) alone knows everything that the older one said.
Every other value, name, time, scope or direction makes it `different`, and so does another project.
A different one may hide the older one only by the rule that says that a value has changed.
A stamp of when a line was logged is no claim about a time; a time in a sentence is one.
"""

import json
from pathlib import Path

import pytest

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.config import ConsolidateConfig
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.runs import NEAR_DUPLICATE_RULE

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "pairs.jsonl").read_text("utf-8").splitlines()
]
DRESS = {"case", "punctuation", "order", "timestamp", "filler"}
"""Classes whose duplicates must be found whatever their cosine."""
ONE_VALUE = {
    "number",
    "unit",
    "version",
    "date",
    "negation",
    "antonym",
    "value",
    "file",
    "identifier",
}
"""Classes of different pairs in which the newer one may state another value of the same thing."""
FOUND_MIN = 0.80


@pytest.fixture
async def verdicts(vault, clock):
    """For each pair, the rule by which the newer one hides the older one after everything was examined."""
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
    return [
        next((one.rule for one in vault.supersessions(old) if one.newer_id == new), None)
        for old, new in ids
    ]


def cosines(vault):
    vectors = vault.embedder.embed([text for pair in PAIRS for text in (pair["a"], pair["b"])])
    return [float(vectors[i] @ vectors[i + 1]) for i in range(0, len(vectors), 2)]


async def test_no_supersession_is_wrong_and_enough_are_found(vault, verdicts):
    wrong = [
        pair
        for pair, rule in zip(PAIRS, verdicts, strict=True)
        if (rule == NEAR_DUPLICATE_RULE and pair["label"] != "duplicate")
        or (rule == CHANGED_VALUE_RULE and pair["class"] not in ONE_VALUE)
    ]
    assert wrong == []
    near = [
        rule == NEAR_DUPLICATE_RULE
        for pair, rule, cosine in zip(PAIRS, verdicts, cosines(vault), strict=True)
        if pair["label"] == "duplicate" and cosine >= 0.95
    ]
    assert len(near) >= 25
    assert sum(near) / len(near) >= FOUND_MIN
    missed = [
        pair
        for pair, rule in zip(PAIRS, verdicts, strict=True)
        if pair["label"] == "duplicate" and pair["class"] in DRESS and rule is None
    ]
    assert missed == []
