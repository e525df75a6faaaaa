"""A made-up set through a real daemon: floors far below what is reached, so that a collapse is caught.

Conversations are drawn from a fixed seed: somebody asks about a subject, the next turn answers in
other words, and other conversations share the words of both. The bench's own code stores, asks and
counts, so that it is known to run, too. How good memd is, `scripts/bench retrieval` tells on real
sets.
"""

import json
import random

import pytest

from benchmarks import retrieval
from tests.tables import read_tables

TABLES = read_tables("relevance/floor")


START, HOUR_MS = 1_750_000_000_000, 3_600_000
CONVERSATIONS = 40
RECALL_AT_5, MRR, BY_NAME = 50.5, 45.0, 90.0
"""In percent. Reached are 51, 51 and 100; words alone reach 50, 50 and 100. Turns that match nothing are no hits."""

VERBS = TABLES["VERBS"]
NOUNS = TABLES["NOUNS"]
TALK = TABLES["TALK"]
ANSWERS = TABLES["ANSWERS"]


def name(lot):
    """An identifier as they stand in code, in one of two manners of writing."""
    parts = [lot.choice(VERBS), *lot.sample(NOUNS, 2)]
    return lot.choice(("_".join(parts), parts[0] + "".join(p.title() for p in parts[1:])))


def conversation(lot, number):
    """The turns of a conversation, and two questions about what it says."""
    verb, (one, two, three) = lot.choice(VERBS), lot.sample(NOUNS, 3)
    thing, place = name(lot), f"{lot.choice(NOUNS)}_{lot.choice(NOUNS)}.py"
    answer = lot.choice(ANSWERS).format(thing=thing, place=place, number=lot.randrange(3, 900))
    turns = [
        f"Today: {lot.choice(NOUNS)} and {lot.choice(NOUNS)}",
        lot.choice(TALK),
        f"how does the {one} {verb} the {two} when the {three} is late?",
        answer,
        lot.choice(TALK),
        f"and the {lot.choice(NOUNS)} of {lot.choice(NOUNS)} waits for the {three}",
    ]
    at = START + number * 24 * HOUR_MS
    documents = [
        {
            "corpus": "made-up", "doc": f"{number}/{turn}", "text": text,
            "ts": at + turn * 60_000, "session": f"conversation-{number}",
        }
        for turn, text in enumerate(turns)
    ]  # fmt: skip
    later = {"corpus": "made-up", "ts": START + 365 * 24 * HOUR_MS}
    questions = [
        {
            **later, "type": "answered in the next turn", "gold": [f"{number}/3"],
            "query": f"what happens when {one}s {verb} {two}s and the {three} comes late",
        },
        {**later, "type": "by its name", "gold": [f"{number}/3"], "query": f"where is {thing}"},
    ]  # fmt: skip
    return documents, questions


def write(path):
    """The whole set as a file of the bench."""
    lot = random.Random(11)  # noqa: S311  # repeatable, not secret
    drawn = [conversation(lot, number) for number in range(CONVERSATIONS)]
    documents = [document for some, _ in drawn for document in some]
    questions = [question for _, some in drawn for question in some]
    path.write_text("\n".join(map(json.dumps, documents + questions)), encoding="utf-8")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The bench's table for the set."""
    path = tmp_path_factory.mktemp("floor") / "made-up.jsonl"
    write(path)
    return retrieval.measure_file(path, ["lexical only", "memd"], "", per_type=True)


def test_what_memd_finds_is_far_above_the_floor(rows):
    assert rows["memd"]["recall@5"] >= RECALL_AT_5, rows
    assert rows["memd"]["MRR"] >= MRR, rows
    assert rows["memd: by its name"]["recall@5"] >= BY_NAME, rows


def test_memd_is_no_worse_than_words_alone(rows):
    assert rows["memd"]["recall@5"] >= rows["lexical only"]["recall@5"], rows
    assert rows["memd"]["MRR"] >= rows["lexical only"]["MRR"], rows


def test_no_answer_is_empty(rows):
    assert rows["memd"]["empty"] == 0
