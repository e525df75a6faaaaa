"""What is kept of the labelled people: where it is from, what readers said of it, and numbers; nothing private, and little text."""

import gzip
import hashlib
import json
import re
import runpy
import statistics
from pathlib import Path

import numpy as np
import pytest

from memd.belief.ending import (
    ENDING_MIN,
    RETRACTED_MIN,
    WITHDRAWN_MIN,
    rate_ending,
    rate_retracted,
    rate_withdrawn,
)
from memd.distill.own_words import read_beginning
from memd.injection.later import split_prompt

ROOT = Path(__file__).parents[1]
TRAINING = ROOT / "scripts" / "training"
PERMISSIVE = {"MIT", "Apache-2.0"}
KINDS = {"instruction", "preference", "decision", "fact", "task"}
TEXTS = {"prompt", "words", "before", "first", "final", "said"}
QUOTE_MAX, TITLE_MAX, GIST_MAX = 160, 120, 240
PRIVATE = re.compile(
    r"\w@[\w-]+\.\w|://|/(?:home|Users)/\w|\b(?!127\.|0\.)\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:sk|gh[pousr])[-_]\w{16}"
)
SOURCES = {one["person"]: one for one in json.loads((TRAINING / "sources.json").read_text("utf-8"))}
LABELS = [json.loads(line) for line in (TRAINING / "labels.jsonl").read_text("utf-8").splitlines()]


def list_places(label):
    return [*filter(None, [label.get("best")]), *label.get("keep", ()), *label.get("not_keep", ())]


def list_quotes(label):
    return [one["quote"] for one in list_places(label) if "quote" in one]


def test_every_person_has_a_source_under_a_permissive_licence_named_by_the_hash_of_its_file():
    for one in SOURCES.values():
        for source in one["sources"]:
            licence = source["licence"]
            assert licence["name"] in PERMISSIVE
            assert re.fullmatch("[0-9a-f]{64}", licence["sha256"])
            assert licence["file"]
            assert all(
                re.fullmatch("[0-9a-f]{40}", at) for at in (licence["commit"], *source["commits"])
            )
            assert source["repository"].count("/") == 1
            assert re.compile(source["paths"])
        assert one["agent"]
        assert one["language"]
        assert one["days"] == sorted(one["days"])


def test_every_label_is_of_a_known_person_and_all_of_a_persons_are_there():
    for person, one in SOURCES.items():
        mine = [label for label in LABELS if label["person"] == person]
        assert one["turns"] == len(mine)
        assert one["sessions"] == len({label["session"] for label in mine})
    assert {label["person"] for label in LABELS} == set(SOURCES)


def test_every_label_says_what_the_turn_was_worth_and_where_what_is_kept_stands_in_it():
    for label in LABELS:
        assert label["worth"] in {"yes", "part", "no"}
        assert label["act"]
        assert re.fullmatch("[0-9a-f]{16}", label["prompt"]), "the prompt itself stays outside"
        for one in label.get("keep", ()):
            assert one["kind"] in KINDS
            assert one["by"] in {"user", "agent"}
        for one in list_places(label):
            assert "in" not in one or (
                one["in"] in TEXTS and one["at"][0] >= 0 and one["at"][1] > 0
            )


def test_only_who_published_sessions_under_a_licence_file_is_quoted_and_shortly():
    for one in SOURCES.values():
        is_file = all("named only" not in source["licence"] for source in one["sources"])
        assert one["quotes"] == (is_file and one["published"] == "on a branch for sessions")
    for label in LABELS:
        quotes = list_quotes(label)
        assert not quotes or SOURCES[label["person"]]["quotes"], label
        assert all(len(quote) <= QUOTE_MAX for quote in quotes)
        assert len(label.get("title", "")) <= TITLE_MAX
        assert all(len(one.get("gist", "")) <= GIST_MAX for one in label.get("keep", ()))


def test_nothing_private_is_in_a_label():
    for label in LABELS:
        gists = [one.get("gist", "") for one in label.get("keep", ())]
        for text in (label.get("title", ""), *gists, *list_quotes(label)):
            assert not PRIVATE.search(text), text


def test_all_that_is_kept_is_small():
    assert sum(path.stat().st_size for path in TRAINING.iterdir()) <= 3_000_000


@pytest.mark.parametrize(
    ("rows", "people", "card"),
    [
        ("titles.npz", "person", "memd/distill/titles/weights.json"),
        ("said.npz", "people", "memd/injection/said.json"),
    ],
)
def test_rows_are_of_these_people_and_the_weights_name_them_by_hash(rows, people, card):
    told = json.loads((ROOT / card).read_text("utf-8"))
    assert told["rows"] == hashlib.sha256((TRAINING / rows).read_bytes()).hexdigest()
    with np.load(TRAINING / rows) as kept:
        found = set(kept[people].tolist())
        assert all(
            kept[name].dtype.kind in "fiub"
            for name in kept.files
            if name not in {people, "worth", "names"}
        )
    assert found <= set(SOURCES)
    assert told["people"] == len(found)


def test_the_rows_give_the_weights_that_memd_comes_with():
    script = runpy.run_path(str(ROOT / "scripts" / "train-said"))
    names, features, stands, _ = script["read_rows"]()
    weights, bias = script["fit"](features, stands)
    told = json.loads((ROOT / "memd/injection/said.json").read_text("utf-8"))["weights"]
    assert told == pytest.approx({"bias": bias, **dict(zip(names, weights, strict=True))}, abs=1e-3)


def test_every_pair_that_the_notes_weights_were_learned_on_quotes_its_prompt_and_makes_these_weights():
    packed = (TRAINING / "notes.jsonl.gz").read_bytes()
    pairs = [json.loads(line) for line in gzip.decompress(packed).decode("utf-8").splitlines()]
    assert all(one["quote"] in one["prompt"] and one["text"] for one in pairs)
    assert {one["label"] for one in pairs} == {"honest", "false"}
    content = json.loads((ROOT / "memd/belief/fidelity.json").read_text("utf-8"))
    assert content["pairs"] == hashlib.sha256(packed).hexdigest()
    assert content["english"]["notes"] + content["other"]["notes"] == len(pairs)


def read_messages(model):
    packed = (TRAINING / f"{model}.jsonl.gz").read_bytes()
    messages = [json.loads(line) for line in gzip.decompress(packed).decode("utf-8").splitlines()]
    (card,) = (ROOT / "memd").glob(f"*/{model}.json")
    content = json.loads(card.read_text("utf-8"))
    assert content["pairs"] == hashlib.sha256(packed).hexdigest()
    return messages


def test_the_messages_that_the_weights_of_taking_back_were_learned_on_are_those_that_they_name():
    rated = {"off": [], "on": []}
    for one in read_messages("withdrawal")[::20]:
        rated[one["label"]].append(rate_withdrawn(one["first"], one["then"]))
    assert statistics.median(rated["off"]) > WITHDRAWN_MIN > statistics.median(rated["on"]) + 1


def test_the_prompts_that_the_weights_of_retraction_were_learned_on_are_those_that_they_name():
    rated = {"off": [], "on": []}
    for one in read_messages("retraction")[::10]:
        rated[one["label"]].append(rate_retracted(one["first"], read_beginning(one["then"])))
    assert statistics.median(rated["off"]) > RETRACTED_MIN > statistics.median(rated["on"]) + 1


def test_the_prompts_that_the_weights_of_ending_were_learned_on_are_those_that_they_name():
    rated = {True: [], False: []}
    for one in read_messages("ending")[::20]:
        rated[one["ends"]].append(max(map(rate_ending, split_prompt(one["text"])), default=-9))
    assert statistics.median(rated[True]) > ENDING_MIN > statistics.median(rated[False]) + 1
