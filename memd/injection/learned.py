"""Two small models learned from labelled sessions: which exchanges left something, which sentences will hold. Pure.

Both are logistic regressions on form alone. `scripts/train-ask` and `scripts/train-said` make the weights and print how
they do on people who were left out.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memd.belief.ending import rate_standing
from memd.belief.polarity import has_negation
from memd.distill.assertions import is_withdrawn_form, read_sentence
from memd.distill.own_words import OwnSentence, is_firm, read_own_sentences
from memd.distill.vetoes import COLONS, OPAQUE, SPEECH, is_ironic
from memd.machine_text import is_machine_text
from memd.patterns import read_weights, weigh
from memd.text import content_stems, normalised, split_sentences, words

SAID_MAX = 24
"""Sentences that are shown where nothing was noted, as far as the tokens go; each note takes the place of one."""
SAID_CHARACTERS_MAX = 240
_CHARACTERS_MIN = 12
PROMPT_CHARACTERS_MAX = 3_000
"""A longer prompt is mostly pasted, and takes long to read."""
_SHORT_WORDS, _LONG_WORDS = 4, 40
"""Words of a sentence that says next to nothing, and of one that tells a story."""
LIKELY_MIN = -2.7
"""How a sentence is rated at least that is told, whenever it was said."""
WORDS_WEIGHT = 0.5
"""What the words of a sentence count beside its form. Of the sentences of seven people left out that stand, the likeliest fifth
holds 50 % with it and 42 % without."""
RECENCY = 0.3
"""How much less likely, in the logarithm of the odds, for each e-fold of sentences that came after it."""
_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(f"{OPAQUE}+")
_LACKS_POINT = re.compile(r"[:：]\W*$|^\W*…|…\W*$|….*…")
"""A sentence whose point stands below it, or that is mostly made of what it quotes."""
_CLAUSE = re.compile(r"(?<=[,;:])\s+|(?<=[，、；：])")
_CUT_WEIGHT = 9.0
"""By so much a sentence is rated less of which only a part can be told: it comes after all others."""
_LEAD_MIN = 3
_QUOTE = re.compile('["“”«»„`]')
_TOLD_SHARE = 0.6
"""Of a sentence's stems, from which a line says it."""
_PART_STEMS_MIN, _PART_SHARE = 3, 0.8
"""Of a line's stems, from which a longer sentence says nothing but that."""


@dataclass(frozen=True, slots=True)
class SaidSentence:
    """A sentence that the user typed, or a whole prompt. `at` is UTC milliseconds."""

    text: str
    at: int
    session_id: int = 0
    before: tuple[tuple[str, int], ...] = ()
    """What he said of the same matter before, and when, likeliest first; perhaps it holds no longer."""


def measure_sentence(text: str, number: int, count: int) -> dict[str, float]:
    """The features of the sentence `number` of `count` in its prompt: counts as logarithms, the rest 0 or 1."""
    length = len(words(text))
    return {
        "length": math.log1p(length),
        "length squared": math.log1p(length) ** 2 / 5,
        "short": float(length < _SHORT_WORDS),
        "long": float(length > _LONG_WORDS),
        "first": float(number == 0),
        "last": float(number + 1 == count),
        "count": math.log1p(count),
        "asks": float("?" in text),
        "code": float("`" in text),
        "path": float("/" in text),
        "link": float("://" in text),
        "number": float(any(map(str.isdigit, text))),
        "lower": float(text[:1].islower()),
        "name": float(any(one[:1].isupper() for one in text.split()[1:])),
        "denies": float(has_negation(text)),
    }


def rate_sentence(text: str, number: int, count: int) -> float:
    """The logarithm of the odds that a sentence is meant to hold."""
    form = weigh(read_weights("memd.injection", "said.json"), measure_sentence(text, number, count))
    return form + WORDS_WEIGHT * rate_standing(text)


def quote_own(sentence: OwnSentence) -> str:
    """The user's own words in a sentence: a quote of his is another's word."""
    return " ".join(_QUOTED.sub("…", sentence.unquoted).split())


def choose_said(
    prompts: Iterable[SaidSentence],
    known: Sequence[str],
    limit: int,
    least: float = -math.inf,
    *,
    recency: float = RECENCY,
) -> tuple[SaidSentence, ...]:
    """Choose the sentences in these prompts, latest first, that are likeliest to hold and not known yet; the best come first.

    `least`: how likely one must be, whenever it was said. `recency`: see RECENCY.
    """
    rated: dict[str, tuple[float, SaidSentence, Sequence[OwnSentence], int]] = {}
    for one in prompts:
        prompt = one.text
        if len(prompt) > PROMPT_CHARACTERS_MAX or prompt.lstrip().startswith("/"):
            continue
        if is_machine_text(prompt):
            continue
        own = read_own_sentences(prompt)
        for number, sentence in enumerate(own):
            whole = quote_own(sentence) + _read_after_colon(prompt, sentence)
            text = _fit(whole)
            key = normalised(text)
            is_long = _CHARACTERS_MIN <= len(text) <= SAID_CHARACTERS_MAX
            is_fit = is_long and not _LACKS_POINT.search(whole)
            if not is_fit or key in rated:
                continue
            likely = rate_sentence(text, number, len(own))
            likely = likely - _CUT_WEIGHT * (text != whole) if likely >= least else -math.inf
            rating = likely - recency * math.log1p(len(rated))
            rated[key] = rating, replace(one, text=text), own, number
    chosen: list[SaidSentence] = []
    for rating, one, spoken, number in sorted(rated.values(), key=lambda row: -row[0]):
        if len(chosen) == limit or rating == -math.inf:
            break
        is_known = is_told(one.text, (*known, *(other.text for other in chosen)))
        is_meant = not any(is_ironic(near.bare) for near in spoken[max(0, number - 1) : number + 1])
        if (
            is_meant
            and not is_known
            and is_firm(spoken, number)
            and not _is_withdrawn(spoken, number)
        ):
            chosen.append(one)
    return tuple(chosen)


def _fit(text: str) -> str:
    """The sentence, of one that is too long the longest run of its clauses that fits."""
    if len(text) <= SAID_CHARACTERS_MAX:
        return text
    parts = _CLAUSE.split(text)
    runs = (
        f"{'… ' if first else ''}{' '.join(parts[first:end]).rstrip(',;: ')}{'' if end == len(parts) else ' …'}"
        for first in range(len(parts))
        for end in range(first + 1, len(parts) + 1)
    )
    return max((one for one in runs if len(one) <= SAID_CHARACTERS_MAX), key=len, default=text)


def _read_after_colon(prompt: str, sentence: OwnSentence) -> str:
    """Read the first sentence that stands behind a sentence's colon in the same line; the colon alone if that is nobody's own.

    It is not behind a word or two, which name a program, an error or somebody, nor where the lead tells of somebody's words.
    """
    rest = prompt.partition(sentence.text)[2]
    if rest.lstrip()[:1] not in tuple(COLONS):
        return ""
    line = rest.partition("\n")[0]
    is_own = len(words(sentence.text)) >= _LEAD_MIN and not SPEECH["speaker"].search(sentence.text)
    after = split_sentences(line[1:]) if is_own and not _QUOTE.search(line) else []
    return f"{line[0]} {after[0].strip()}" if after else ":"


def _is_withdrawn(own: Sequence[OwnSentence], number: int) -> bool:
    """Return whether a sentence of a form is likely taken back, or does no more than take back the one before it."""
    if number and is_withdrawn_form(own[number - 1]) and read_sentence(own[number]) is None:
        return True
    return is_withdrawn_form(own[number])


def is_told(text: str, lines: Iterable[str]) -> bool:
    """Return whether one of these lines has most of the words of a sentence, or most of a line's are in it, and all numbers."""
    stems, numbers = set(content_stems(text)), set(_NUMBER.findall(text))
    return any(
        _covers(stems, set(content_stems(line))) and numbers.issubset(_NUMBER.findall(line))
        for line in lines
    )


def _covers(stems: set[str], told: set[str]) -> bool:
    shared = len(stems & told)
    is_part = shared >= _PART_STEMS_MIN and shared >= _PART_SHARE * len(told)
    return shared >= _TOLD_SHARE * len(stems) or is_part


# ── Whether an exchange left something worth noting ──────────────────────────────────────────────

_TINY_PROMPT, _LONG_PROMPT = 4, 150
"""Words of a prompt that says next to nothing, and of one that is mostly pasted."""


@dataclass(frozen=True, slots=True)
class ExchangeForm:
    """The parts of an exchange from which its features are measured."""

    prompt: str
    answered: str = ""
    """What the user answered in dialogues and said to refused calls."""
    closing: str = ""
    """The agent's closing message."""
    asked_before: bool = False
    """Whether the agent's message before the prompt ended with a question."""
    tools: int = 0
    edits: int = 0


def measure_exchange(form: ExchangeForm) -> dict[str, float]:
    """The features of an exchange: counts as logarithms, the rest 0 or 1."""
    length = len(words(form.prompt))
    return {
        "length": math.log1p(length),
        "length squared": math.log1p(length) ** 2 / 10,
        "answered": float(bool(form.answered)),
        "answered length": math.log1p(len(words(form.answered))),
        "asks": float("?" in form.prompt),
        "lower": float(form.prompt[:1].islower()),
        "lines": float("\n" in form.prompt.strip()),
        "code": float("`" in form.prompt),
        "link": float("://" in form.prompt),
        "tools": math.log1p(form.tools),
        "edits": float(form.edits > 0),
        "closing length": math.log1p(len(form.closing)),
        "was asked": float(form.asked_before),
        "tiny": float(length < _TINY_PROMPT),
        "long": float(length > _LONG_PROMPT),
        "denies": float(has_negation(form.prompt)),
    }


def estimate(form: ExchangeForm) -> float:
    """The probability, 0 to 1, that the exchange holds something worth noting."""
    score = weigh(read_weights("memd.injection", "likelihood.json"), measure_exchange(form))
    return 1 / (1 + math.exp(-score))
