"""Choose what the user typed that most likely ended or changed something that stood, by a small model. Pure.

`heike came round, the files are json again` says nowhere that it ends `We settled on TOML for the files`: but that it ends something
can be told from how people speak when a thing is over, bought, moved, left or allowed again. So these sentences are told as
they stand, and the agent sees what they end. A logistic regression on words, pairs of words and form; `scripts/train-words ending`
fits it. Nine in ten of them share a word with what they end, and of other prompts less than half with anything that stands.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memd.belief import polarity
from memd.belief.polarity import list_folded
from memd.distill.assertions import read_sentence
from memd.distill.own_words import VERBS
from memd.distill.text import asks_by_mark
from memd.distill.vetoes import is_for_this_time
from memd.injection.later import name_matter, read_function_words, read_turning_sentences
from memd.injection.learned import (
    PROMPT_CHARACTERS_MAX,
    SAID_CHARACTERS_MAX,
    SaidSentence,
    is_told,
    quote_own,
)
from memd.machine_text import is_machine_text
from memd.text import first_word, fold, one_line, words
from memd.weights import list_runs, read_weights, weigh

ENDING_MIN = 0.0
"""The logarithm of the odds from which a prompt is told: one in sixteen of the prompts of real work that end nothing, before the words are compared."""
ENDING_MAX = 4
"""Sentences that a start tells of these."""
_PROMPTS_MAX, _PROMPTS_CACHED = 100, 1_600
_WHOLE_WORDS_MAX = 60
"""A prompt of so many words is read whole, of a longer one each sentence with the next."""
_CHARACTERS_MIN = 12
_RECENCY = 0.25
"""How much less likely, in the logarithm of the odds, for each e-fold of prompts that came after it: it stays until it is noted."""
_WORDS_READ_MAX = 60
_FIRST_PERSON = list_folded("first person")


def choose_ending(
    prompts: Iterable[SaidSentence], standing: Iterable[str], known: Sequence[str], limit: int
) -> tuple[SaidSentence, ...]:
    """Choose what may have ended one of the titles that stand from these prompts, latest first.

    It shares a word with one of them, and is not known yet; the likeliest come first.
    """
    matter = set(itertools.chain.from_iterable(map(name_matter, standing)))
    rated = []
    for place, one in enumerate(itertools.islice(prompts, _PROMPTS_MAX)):
        likely, text = rate_prompt(one.text)
        is_likely = likely >= ENDING_MIN and not matter.isdisjoint(name_matter(text))
        if is_likely and not is_told(text, known):
            found = replace(one, text=one_line(text, SAID_CHARACTERS_MAX), may_end=True)
            rated.append((likely - _RECENCY * math.log1p(place), found))
    rated.sort(key=lambda pair: -pair[0])
    return tuple(one for _, one in rated[:limit])


@functools.lru_cache(_PROMPTS_CACHED)
def rate_prompt(prompt: str) -> tuple[float, str]:
    """The logarithm of the odds that a prompt ended something, and the part of it that most likely did."""
    weights = read_weights("memd.injection", "ending.json")
    parts = ((weigh(weights, measure_ending(part)), part) for part in split_prompt(prompt))
    return max(parts, default=(-math.inf, ""))


def split_prompt(prompt: str) -> tuple[str, ...]:
    """The parts of a prompt that are read alone: the user's own words without questions, what is for once and what a form keeps."""
    if len(prompt) > PROMPT_CHARACTERS_MAX or prompt.lstrip().startswith("/"):
        return ()
    if is_machine_text(prompt):
        return ()
    own = [
        text
        for one in read_turning_sentences(prompt)
        if not asks_by_mark(text := quote_own(one)) and read_sentence(one) is None
    ]
    if len(words(" ".join(own))) <= _WHOLE_WORDS_MAX:
        parts = [" ".join(own)]
    else:
        parts = [" ".join(own[at : at + 2]) for at in range(len(own))]
    return tuple(
        part for part in parts if len(part) >= _CHARACTERS_MIN and not is_for_this_time(part)
    )


def measure_ending(text: str) -> dict[str, float]:
    """The features of what was typed: its words and pairs of words (“+”), and under a name what its form is."""
    tokens = [fold(word) for word in words(text)[:_WORDS_READ_MAX]]
    form = {
        "length": math.log1p(len(tokens)),
        "asks": float("?" in text),
        "denies": float(polarity.has_negation(text)),
        "number": float(any(map(str.isdigit, text))),
        "first person": float(not _FIRST_PERSON.isdisjoint(tokens)),
        "orders": float(first_word(text) in VERBS),
    }
    said: Mapping[str, bool] = read_function_words(text)
    named = {name: float(value) for name, value in said.items()}
    return {**form, **named, **dict.fromkeys(list_runs("+", tokens), 1.0)}
