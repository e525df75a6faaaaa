"""Two small models of whether what somebody says behind a sentence takes that back or doubts it. Pure.

Nobody can list how people change their minds, in the middle of a message or with the next one. The models, logistic regressions on
the words behind the sentence and on what both share, were fitted on messages whose writers knew nothing of memd
(`scripts/train-words withdrawal` and `retraction`).
"""

import math

from memd.belief import polarity
from memd.belief.polarity import WORDS, list_folded
from memd.caches import cached
from memd.text import content_stems, fold, split_sentences, words
from memd.weights import list_runs, read_weights, weigh

WITHDRAWN_MIN = 1.1
"""The logarithm of the odds from which a sentence counts as taken back: one in sixteen of those that stand is lost, though half
of these were written to look taken back."""
_WORDS_READ_MAX = 60
_BEGINNING = 3
"""Words of the beginning, where most turns are made."""
_FIRST_PERSON = list_folded("first person")
_CACHED = 1_024


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
