"""Small models of whether words end something: what stood before they were typed, or the sentence that they follow. Pure.

`heike came round, the files are json again` says nowhere that it ends `We settled on TOML for the files`: but that it ends something
can be told from how people speak when a thing is over, bought, moved, left or allowed again. Nor can anybody list how people change
their minds, in the middle of a message or with the next one. The models are logistic regressions on words, pairs of words and form,
fitted on messages whose writers knew nothing of memd (`scripts/train-words ending`, `withdrawal` and `retraction`).
"""

import functools
import math

from memd.belief import polarity
from memd.belief.changes import ADDS, says_turn
from memd.belief.polarity import WORDS, list_folded
from memd.caches import cached
from memd.patterns import list_runs, read_weights, weigh
from memd.text import content_stems, first_word, fold, split_sentences, stem, words

ENDING_MIN = 0.25
"""The logarithm of the odds from which words on a task's matter end it: one in nineteen of the prompts of real work that end nothing,
before the words are compared."""
ENDED_MIN = 0.5
"""From which words end what stood before if a note that quotes them says so. Of pairs by writers kept aside 46 of 61 were right."""
QUOTED_MIN = -0.25
"""From which words likely ended something if an agent noted them: that they matter is known then."""
_MATTER_STEMS = 2
"""Stems that two statements of one matter share, or half of those of the earlier."""
_CACHED = 1_600
_WORDS_READ_MAX = 60
_FIRST_PERSON = list_folded("first person")
_TURNING_LISTS = (
    "is otherwise", "as of now", "goes on", "stays so", "only once", "only weighed", "gives up", "excess", "lets",
)  # fmt: skip
"""The lists of function words by which a statement turns."""


@functools.lru_cache(_CACHED)
def rate_ending(text: str) -> float:
    """The logarithm of the odds that what was typed ended something."""
    return weigh(read_weights("memd.belief", "ending.json"), measure_ending(text))


@functools.lru_cache(_CACHED)
def rate_standing(text: str) -> float:
    """The logarithm of the odds that a sentence is meant to hold, by its words, where half of all are."""
    return weigh(read_weights("memd.belief", "standing.json"), measure_ending(text))


def is_said_against(  # two statements, each with its time
    quote: str, note: str, at: int, older: str, older_at: int, *, is_task: bool
) -> bool:
    """Return whether a note and the user's words in it are about the matter of an earlier statement that they turn or likely ended.

    Of a task, also whether they say that it is done. They do not say that it ends: who quotes them does.
    """
    mine, known = frozenset(content_stems(f"{quote}\n{note}")), frozenset(content_stems(older))
    shared = len(mine & known)
    is_about = shared >= _MATTER_STEMS or (shared > 0 and 2 * shared >= len(known))
    adds = any(one[0] != "another" for one in ADDS.finditer(quote.lower()))
    ends = not adds and (says_turn(quote) or rate_ending(quote) >= ENDED_MIN)
    return at > older_at and is_about and (ends or (is_task and says_done(older, quote)))


def turns_words(quote: str, note: str, older: str) -> bool:
    """Return whether the user's words in a note deny an earlier statement, or turn or likely ended its matter."""
    affirmed = ", ".join(polarity.list_affirmed(older)) or older
    return is_said_against(quote, note, 1, older, 0, is_task=False) or polarity.is_negated_by(
        quote, affirmed
    )


def says_done(task: str, later: str) -> bool:
    """Return whether a later statement says that something is done, or has the past form of what a task begins with."""
    verb = stem(fold(first_word(task)))
    forms = [one for one in map(fold, words(later)) if stem(one) == verb]
    is_past = any(one.endswith("ed") and one != fold(first_word(task)) for one in forms)
    return WORDS["is done"].search(later) is not None or is_past


def measure_ending(text: str) -> dict[str, float]:
    """The features of what was typed: its words and pairs of words (“+”), and under a name what its form is."""
    tokens = [fold(word) for word in words(text)[:_WORDS_READ_MAX]]
    form = {
        "length": math.log1p(len(tokens)),
        "asks": float("?" in text),
        "denies": float(polarity.has_negation(text)),
        "number": float(any(map(str.isdigit, text))),
        "first person": float(not _FIRST_PERSON.isdisjoint(tokens)),
    }
    listed = {name: float(bool(WORDS[name].search(text))) for name in _TURNING_LISTS}
    return {**form, **listed, **dict.fromkeys(list_runs("+", tokens), 1.0)}


WITHDRAWN_MIN = 1.1
"""The logarithm of the odds from which a sentence counts as taken back: one in sixteen of those that stand is lost, though half of
these were written to look taken back."""
_BEGINNING = 3
"""Words of the beginning, where most turns are made."""


RETRACTED_MIN = 0.5
"""The logarithm of the odds from which the next prompt is told as a doubt: one in thirty-four of real work reaches it."""


@cached(_CACHED)
def rate_withdrawn(sentence: str, following: str) -> float:
    """The logarithm of the odds that a sentence does not hold after what its speaker says behind it in the same message."""
    measured = measure_following(sentence, following)
    return weigh(read_weights("memd.belief", "withdrawal.json"), measured)


@cached(_CACHED)
def rate_retracted(sentence: str, beginning: str) -> float:
    """The logarithm of the odds that a sentence does not hold after its speaker's next prompt, which begins so."""
    measured = measure_following(sentence, beginning)
    return weigh(read_weights("memd.belief", "retraction.json"), measured)


def measure_following(sentence: str, following: str) -> dict[str, float]:
    """The features: its words and pairs of words (“+”), those of the beginning once more (“^”), and under a name what its form is."""
    tokens = [fold(word) for word in words(following)[:_WORDS_READ_MAX]]
    said, new = frozenset(content_stems(sentence)), frozenset(content_stems(following))
    has_number = any(map(str.isdigit, following))
    form = {
        "shared": len(said & new) / (len(said) + 1),
        "shares": float(bool(said & new)),
        "length": math.log1p(len(tokens)),
        "new": math.log1p(len(new - said)),
        "asks": float("?" in following),
        "ends asking": float(following.rstrip().endswith("?")),
        "denies": float(polarity.has_negation(following)),
        "begins denying": float(polarity.begins_with_denial(following)),
        "denied before": float(polarity.has_negation(sentence)),
        "first person": float(not _FIRST_PERSON.isdisjoint(tokens)),
        "number": float(has_number),
        "numbers": float(has_number and any(map(str.isdigit, sentence))),
        "reason": float(WORDS["reason"].search(following) is not None),
        "sentences": float(len(split_sentences(following))),
    }
    found = {**form, **dict.fromkeys(list_runs("+", tokens), 1.0)}
    return {**found, **dict.fromkeys(list_runs("^", tokens[:_BEGINNING]), 1.0)}
