"""Find what the user said later on the matter of an earlier statement, if it may put that out of force. Pure.

Only a reader can tell whether `one reviewer is enough, we are down to three` ends `every change needs two approvals`. So
nothing is concluded from it: the later words are told beside the earlier ones. `scripts/train-later` makes the weights.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.belief.polarity import WORDS
from memd.caches import cached
from memd.distill.own_words import read_own_sentences
from memd.injection.learned import SaidSentence, quote_own, weigh
from memd.machine_text import is_machine_text
from memd.text import content_stems, fold, is_stop_word, one_line, stem, words

LIKELY_MIN = 0.0
"""The logarithm of the odds, even ones, from which later words are told beside what was said before."""
_PARTS_CACHED, _PAIRS_CACHED = 512, 4_096
_PROMPT_CHARACTERS_MAX = 3_000
_WHOLE_WORDS_MAX = 60
"""A prompt of so many words is read whole, of a longer one each sentence with the next."""
_RARE_SHARE, _RARE_MIN = 0.05, 3
"""A word that more of the prompts have names no matter."""
_CHARACTERS_MAX = 160
"""Of what was said later: it is to be noticed beside a line, not to take the place of others."""
_NEAR_WORDS = 4
_FUNCTION_WORDS = ("is otherwise", "as of now", "goes on", "stays so", "only once", "only weighed", "excess")  # fmt: skip
_SHARED_MAX = 4


@dataclass(frozen=True, slots=True)
class LaterWords:
    """What the user typed, in parts that are read alone with their stems, and how many prompts have each stem."""

    parts: Sequence[tuple[SaidSentence, frozenset[str]]]
    counts: Mapping[str, int]
    prompts: int


def read_later_words(prompts: Sequence[SaidSentence]) -> LaterWords:
    """Read the user's own words in these prompts."""
    counts: Counter[str] = Counter()
    parts: list[tuple[SaidSentence, frozenset[str]]] = []
    for prompt in prompts:
        found = [
            (replace(prompt, text=part), frozenset(content_stems(part)))
            for part in _split_prompt(prompt.text)
        ]
        counts.update(frozenset().union(*(stems for _, stems in found)))
        parts += found
    return LaterWords(parts, counts, len(prompts))


@cached(_PARTS_CACHED)
def _split_prompt(prompt: str) -> tuple[str, ...]:
    if len(prompt) > _PROMPT_CHARACTERS_MAX or is_machine_text(prompt):
        return ()
    own = [quote_own(one) for one in read_own_sentences(prompt)]
    if len(words(" ".join(own))) <= _WHOLE_WORDS_MAX:
        return (" ".join(own),) if own else ()
    return tuple(" ".join(own[at : at + 2]) for at in range(len(own)))


def find_later(text: str, at: int, said: LaterWords) -> SaidSentence | None:
    """The later words on the same matter that most likely put an earlier statement out of force; None if none may."""
    rare = max(_RARE_MIN, _RARE_SHARE * said.prompts)
    matter = {one for one in content_stems(text) if 0 < said.counts.get(one, 0) <= rare}
    rated = [
        (rate_later(text, one.text), one.at, one)
        for one, stems in said.parts
        if one.at > at and not matter.isdisjoint(stems)
    ]
    likely, _, best = max(rated, key=lambda one: one[:2], default=(-math.inf, 0, None))
    if best is None or likely < LIKELY_MIN:
        return None
    return replace(best, text=one_line(best.text, _CHARACTERS_MAX))


@cached(_PAIRS_CACHED)
def rate_later(earlier: str, later: str) -> float:
    """The logarithm of the odds that a later statement puts an earlier one out of force."""
    return weigh("later.json", measure_later(earlier, later))


def measure_later(earlier: str, later: str) -> dict[str, float]:
    """The features of two statements: what they share, and the function words of the later one."""
    main = WORDS["reason"].split(earlier, maxsplit=1)[0]
    was = frozenset(content_stems(main) or content_stems(earlier))
    now = frozenset(content_stems(later))
    shared = len(was & now)
    said = _read_function_words(later)
    return {
        "of earlier": shared / max(1, len(was)),
        "of later": shared / max(1, len(now)),
        "shared": min(shared, _SHARED_MAX) / _SHARED_MAX,
        "length": math.log1p(len(words(later))),
        "number": float(any(map(str.isdigit, earlier))),
        "lets what is bound": said["lets"] * float(WORDS["binds"].search(earlier) is not None),
        "gives it up": said["gives up"] * _gives_up(frozenset(content_stems(earlier)), later),
        "asks": float("?" in later),
        **{name: said[name] for name in _FUNCTION_WORDS},
    }


@cached(_PARTS_CACHED)
def _read_function_words(later: str) -> Mapping[str, float]:
    names = (*_FUNCTION_WORDS, "lets", "gives up")
    return {name: float(WORDS[name].search(later) is not None) for name in names}


def _gives_up(stems: Iterable[str], later: str) -> float:
    """Return whether a word of the earlier statement stands behind one that gives up, as a number."""
    tokens = words(later)
    near = (
        " ".join(tokens[max(0, at - _NEAR_WORDS) : at])
        for at, word in enumerate(tokens)
        if not is_stop_word(word) and stem(fold(word)) in stems
    )
    return float(any(WORDS["gives up"].search(one) for one in near))
