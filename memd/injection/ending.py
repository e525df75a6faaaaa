"""How likely what the user typed ended or changed something that stood, by a small model. Pure.

`heike came round, the files are json again` says nowhere that it ends `We settled on TOML for the files`: but that it ends something
can be told from how people speak when a thing is over, bought, moved, left or allowed again. A logistic regression on words,
pairs of words and form; `scripts/train-words ending` fits it.
"""

import functools
import math

from memd.belief import polarity
from memd.belief.polarity import WORDS, list_folded
from memd.distill.assertions import read_sentence
from memd.distill.own_words import VERBS, OwnSentence, read_own_sentences
from memd.distill.text import asks_by_mark
from memd.distill.vetoes import SPEECH, is_for_this_time, is_ironic
from memd.injection.learned import PROMPT_CHARACTERS_MAX, quote_own
from memd.machine_text import is_machine_text
from memd.text import first_word, fold, words
from memd.weights import list_runs, read_weights, weigh

ENDING_MIN = 0.0
"""The logarithm of the odds from which a prompt is told: one in sixteen of the prompts of real work that end nothing, before the words are compared."""
_PROMPTS_CACHED = 1_600
_WHOLE_WORDS_MAX = 60
"""A prompt of so many words is read whole, of a longer one each sentence with the next."""
_CHARACTERS_MIN = 12
_WORDS_READ_MAX = 60
_FIRST_PERSON = list_folded("first person")
_TURNING_LISTS = (
    "is otherwise", "as of now", "goes on", "stays so", "only once", "only weighed", "gives up", "excess", "lets",
)  # fmt: skip
"""The lists of function words by which a statement turns."""


@functools.lru_cache(_PROMPTS_CACHED)
def split_prompt(prompt: str, *, with_kept: bool = False) -> tuple[str, ...]:
    """The parts of a prompt that are read alone: the user's own words without questions and what is for once.

    `with_kept`: with the sentences that a form keeps, which are memories themselves. What is kept of prompts stays when the
    other caches are emptied: each start asks for the same.
    """
    if len(prompt) > PROMPT_CHARACTERS_MAX or prompt.lstrip().startswith("/"):
        return ()
    if is_machine_text(prompt):
        return ()
    own = [
        text
        for one in _read_turning_sentences(prompt)
        if not asks_by_mark(text := quote_own(one)) and (with_kept or read_sentence(one) is None)
    ]
    if len(words(" ".join(own))) <= _WHOLE_WORDS_MAX:
        parts = [" ".join(own)]
    else:
        parts = [" ".join(own[at : at + 2]) for at in range(len(own))]
    return tuple(
        part for part in parts if len(part) >= _CHARACTERS_MIN and not is_for_this_time(part)
    )


def _read_turning_sentences(prompt: str) -> list[OwnSentence]:
    """The own sentences of a prompt that may turn something: no joke, and not what he asks to be reminded of."""
    return [
        one
        for one in read_own_sentences(prompt)
        if not (SPEECH["task"].match(one.said) or is_ironic(one.bare))
    ]


def rate_prompt(prompt: str) -> tuple[float, str]:
    """The logarithm of the odds that a prompt ended something, and the part of it that most likely did."""
    parts = ((rate_part(part), part) for part in split_prompt(prompt))
    return max(parts, default=(-math.inf, ""))


@functools.lru_cache(_PROMPTS_CACHED)
def rate_part(part: str) -> float:
    """The logarithm of the odds that a part of a prompt ended something."""
    return weigh(read_weights("memd.injection", "ending.json"), measure_ending(part))


def turns(text: str) -> bool:
    """Return whether a function word says that something is otherwise, given up or enough from now on."""
    return any(
        WORDS[name].search(text) for name in ("is otherwise", "as of now", "gives up", "excess")
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
    listed = {name: float(bool(WORDS[name].search(text))) for name in _TURNING_LISTS}
    return {**form, **listed, **dict.fromkeys(list_runs("+", tokens), 1.0)}
