"""Whether consolidation tells what is the same from what only looks so: precision and recall on labelled pairs.

    scripts/bench pairs [--model hashing|all-minilm …] [--json]

Each pair of tests/data/pairs.jsonl is decided as a tick would decide it: a candidate by its cosine in
the model's space or by its form, then the guards. Exit code 1 if a bar is missed: not one wrong
supersession, at least 0.80 of the duplicates whose cosine reaches the threshold superseded, and all
of those that differ only in case, punctuation, order, timestamps or filler.
"""

import argparse
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import minilm
from memd.config import Config
from memd.consolidate.decide import Pair, Relate, Supersede, decide
from memd.consolidate.form import form_of
from memd.embeddings.hashing import HashingEmbedder
from memd.models import Kind, Summary, Tier

PAIRS = Path(__file__).parents[1] / "tests/data/pairs.jsonl"
DRESS = {"case", "punctuation", "order", "timestamp", "filler"}
FOUND_MIN = 0.80


def vectors(model: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """One row of length 1 per text."""
    if model == "hashing":
        return np.asarray(HashingEmbedder().embed(texts), np.float32)
    return minilm.load(model).vectors(texts)


def summary(number: int, text: str, project_id: int) -> Summary:
    """A fact that says this."""
    return Summary(
        id=number, uid=str(number), project_id=project_id, session_id=None, kind=Kind.FACT, tier=Tier.CAPTURED,
        source="bench", title="", body=text, at=number, created_at=number, updated_at=number, rule="bench",
    )  # fmt: skip


def outcome(pair: dict[str, str], cosine: float, threshold: float) -> str:
    """`supersedes`, `contradicts`, `similar_to`, or `none` if it is no candidate."""
    older = summary(1, pair["a"], 1)
    newer = summary(2, pair["b"], 2 if pair["class"] == "project" else 1)
    is_of_one_form = form_of("", pair["a"]) == form_of("", pair["b"])
    if cosine < threshold and not is_of_one_form:
        return "none"
    for found in decide([Pair(newer, older, cosine if cosine >= threshold else None)]):
        if isinstance(found, Supersede):
            return "supersedes"
        if isinstance(found, Relate):
            return found.type.value
    return "none"


def measure(model: str, pairs: list[dict[str, str]]) -> dict[str, Any]:
    """The figures in one model's space."""
    threshold = Config().consolidate.threshold
    texts = list(itertools.chain.from_iterable((pair["a"], pair["b"]) for pair in pairs))
    rows = vectors(model, texts)
    cosines = (rows[::2] * rows[1::2]).sum(axis=1)
    found = [
        (pair, float(cosine), outcome(pair, float(cosine), threshold))
        for pair, cosine in zip(pairs, cosines, strict=True)
    ]
    hides = [pair for pair, _, said in found if said == "supersedes"]
    wrong = [pair for pair in hides if pair["label"] != "duplicate"]
    duplicates = [one for one in found if one[0]["label"] == "duplicate"]
    near = [one for one in duplicates if one[1] >= threshold]
    dress = [one for one in duplicates if one[0]["class"] in DRESS]
    return {
        "model": model,
        "pairs": len(pairs),
        "superseded": len(hides),
        "wrong": wrong,
        "precision": round(1 - len(wrong) / max(len(hides), 1), 4),
        "look_alikes": sum(
            cosine >= threshold and pair["label"] == "different" for pair, cosine, _ in found
        ),
        "near": len(near),
        "recall_near": round(_share(near), 4),
        "dress": len(dress),
        "recall_dress": round(_share(dress), 4),
        "recall": round(_share(duplicates), 4),
    }


def _share(found: list[tuple[dict[str, str], float, str]]) -> float:
    return sum(said == "supersedes" for _, _, said in found) / max(len(found), 1)


def main() -> None:
    """Print the figures; exit with 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", nargs="+", default=["hashing", "all-minilm"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    pairs = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    found = [measure(model, pairs) for model in given.model]
    for one in found:
        if not given.json:
            print(
                f"{one['model']}: {one['pairs']} pairs, {one['superseded']} superseded, precision"
                f" {one['precision']:.2f} ({one['look_alikes']} different ones reach the threshold);"
                f" of {one['near']} duplicates that reach it {one['recall_near']:.2f}, of {one['dress']}"
                f" in another dress {one['recall_dress']:.2f}, of all {one['recall']:.2f}"
            )
            for pair in one["wrong"]:
                print(f"    wrong: {pair['a']} | {pair['b']}")
    if given.json:
        print(json.dumps(found, ensure_ascii=False))
    fits = all(
        not one["wrong"] and one["recall_near"] >= FOUND_MIN and one["recall_dress"] == 1
        for one in found
    )
    raise SystemExit(0 if fits else 1)


if __name__ == "__main__":
    main()
