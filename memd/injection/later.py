"""Find what the user said later on the matter of an earlier statement, if it may put that out of force. Pure.

Only a reader can tell whether `one reviewer is enough, we are down to three` ends `every change needs two approvals`. So
nothing is concluded from it: the later words are told beside the earlier ones. `scripts/train-later` makes the weights.
"""

import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.belief.polarity import WORDS, is_negation, list_folded
from memd.belief.withdrawal import RETRACTED_MIN, rate_retracted
from memd.caches import cached
from memd.distill.assertions import read_sentence
from memd.distill.own_words import VERBS, OwnSentence, read_beginning, read_own_sentences
from memd.distill.vetoes import SPEECH, is_ironic
from memd.injection.learned import PROMPT_CHARACTERS_MAX, SaidSentence, quote_own
from memd.languages import detect_question_languages, detect_text_languages, is_function_word
from memd.machine_text import is_machine_text
from memd.text import first_word, fold, is_stop_word, normalised, one_line, stem, terms, words
from memd.weights import read_weights, weigh

LIKELY_MIN = -0.1
"""The logarithm of the odds, nearly even ones, from which later words are told beside what was said before."""
_VAULTS_CACHED, _PROMPTS_CACHED, _TEXTS_CACHED, _PAIRS_CACHED = 4, 1_600, 1_024, 4_096
_WHOLE_WORDS_MAX = 60
"""A prompt of so many words is read whole, of a longer one each sentence with the next."""
_RARE_SHARE, _RARE_MIN = 0.05, 3
"""A word that more of the prompts have names no matter."""
_MATTER_MIN, _MATTER_SHARE = 1.0, 0.25
"""What two statements of one matter share at least: so many words, and this share of the earlier one's."""
_VERB_WEIGHT = 0.5
"""What a verb of orders, or a day, counts: it says what is done or when, not with what."""
_CHARACTERS_MAX = 160
"""Of what was said later: it is to be noticed beside a line, not to take the place of others."""
_NEAR_WORDS = 4
_FUNCTION_WORDS = ("is otherwise", "as of now", "goes on", "stays so", "only once", "only weighed")
_TURNING_WORDS = ("is otherwise", "as of now", "gives up", "excess")
_SHARED_MAX = 4
_LETTER = re.compile(r"(?<=\w )[A-Z](?=\W*\Z|[,.;:)])")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*\w{0,2}\Z")


def _list_stems(*lists: str) -> frozenset[str]:
    return frozenset(stem(fold(word)) for name in lists for word in WORDS.list_words(name))


_LIGHT = _list_stems(
    "choosing verbs", "leaving verbs", "dropping verbs", "words for what is gone", "before a command", "modals", "duties",
    "frequencies", "universals", "frame of a statement", "frame of an ending", "fillers", "steering", "corrections",
    "passing", "tells of a time",
)  # fmt: skip
"""Stems of words that name no matter: one orders, chooses, ends, hedges and times anything with them."""
_DAYS = list_folded("calendar")
_VERB_STEMS = frozenset(
    stem(fold(word))
    for word in VERBS | SPEECH.list_words("choosing") | SPEECH.list_words("past forms") | _DAYS
)
_ENDING = _list_stems(
    "dropping verbs", "leaving verbs", "words for what is gone", "verbs that take back"
) | {"remov", "delet", "lose"}


@dataclass(frozen=True, slots=True)
class LaterWords:
    """What the user typed: prompts with their matter, the places of those that have each of its stems, and what came next."""

    prompts: Sequence[tuple[SaidSentence, Mapping[str, float]]]
    places: Mapping[str, Sequence[int]]
    following: Mapping[tuple[int, int], SaidSentence]
    """(session, time) of a prompt → the next one in its session."""

    def find_taken_back(self, text: str, session_id: int | None, at: int) -> SaidSentence | None:
        """The next prompt after the one that said a sentence, as it begins, if that likely takes it back; None if not."""
        new = self.following.get((session_id or 0, at))
        return new and read_taken_back(text, new)

    def list_about(self, text: str, at: int) -> Iterator[SaidSentence]:
        """Yield what was said after a statement on the same matter and is more than the same words again."""
        mine, again = _name_main_matter(text), normalised(text)
        rare = max(_RARE_MIN, _RARE_SHARE * len(self.prompts))
        found = {one: self.places.get(one, ()) for one in mine}
        telling = {one for one, places in found.items() if 0 < len(places) <= rare}
        for place in sorted({place for one in telling for place in found[one]}):
            prompt, whole = self.prompts[place]
            if prompt.at > at and _is_one_matter(mine, whole):
                for part, matter in _split_prompt(prompt.text):
                    is_about = not telling.isdisjoint(matter) and _is_one_matter(mine, matter)
                    if is_about and again not in normalised(part):
                        yield replace(prompt, text=part)

    def find_prompt(self, part: SaidSentence) -> SaidSentence | None:
        """The whole prompt of which something is a part."""
        own = part.session_id, part.at
        return next((one for one, _ in self.prompts if (one.session_id, one.at) == own), None)

    def leave(self, part: SaidSentence) -> "LaterWords":
        """The same without the prompt of which something is a part: as if it had been said before everything."""
        own = part.session_id, part.at
        prompts = [
            (replace(one, at=-1) if (one.session_id, one.at) == own else one, matter)
            for one, matter in self.prompts
        ]
        after = {key: one for key, one in self.following.items() if (one.session_id, one.at) != own}
        return replace(self, prompts=prompts, following=after)


def read_taken_back(text: str, new: SaidSentence) -> SaidSentence | None:
    """The beginning of the prompt after a sentence if it likely takes that back; None if not, or if it states something itself."""
    begin = read_beginning(new.text)
    states = any(map(read_sentence, read_own_sentences(new.text)[:1]))
    is_taken_back = bool(begin) and not states and rate_retracted(text, begin) >= RETRACTED_MIN
    return replace(new, text=one_line(begin, _CHARACTERS_MAX)) if is_taken_back else None


@functools.lru_cache(_VAULTS_CACHED)
def read_later_words(prompts: tuple[SaidSentence, ...]) -> LaterWords:
    """Read the user's own words in these prompts."""
    read = [(one, _read_matter(one.text)) for one in prompts]
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, matter) in enumerate(read):
        for one in matter:
            places[one].append(place)
    ordered = sorted(prompts, key=lambda one: (one.session_id, one.at))
    following = {
        (one.session_id, one.at): new
        for one, new in itertools.pairwise(ordered)
        if one.session_id == new.session_id
    }
    return LaterWords(read, dict(places), following)


@functools.lru_cache(_PROMPTS_CACHED)
def _read_matter(prompt: str) -> Mapping[str, float]:
    """The matter of a prompt. What is kept of prompts and pairs stays when the other caches are emptied: each start asks for the same."""
    is_read = len(prompt) <= PROMPT_CHARACTERS_MAX and not is_machine_text(prompt)
    return name_matter(prompt) if is_read else {}


def read_turning_sentences(prompt: str) -> list[OwnSentence]:
    """The own sentences of a prompt that may turn something: no joke, and not what he asks to be reminded of."""
    return [
        one
        for one in read_own_sentences(prompt)
        if not (SPEECH["task"].match(one.said) or is_ironic(one.bare))
    ]


@functools.lru_cache(_PROMPTS_CACHED)
def _split_prompt(prompt: str) -> tuple[tuple[str, Mapping[str, float]], ...]:
    """The parts of a prompt that are read alone, in the user's own words, with their matter; kept like the above."""
    own = list(map(quote_own, read_turning_sentences(prompt)))
    if len(words(" ".join(own))) <= _WHOLE_WORDS_MAX:
        parts = [" ".join(own)] if own else []
    else:
        parts = [" ".join(own[at : at + 2]) for at in range(len(own))]
    return tuple((part, name_matter(part)) for part in parts)


def find_later(
    text: str, at: int, said: LaterWords, *, is_task: bool = False
) -> SaidSentence | None:
    """The later words on the same matter that most likely put an earlier statement out of force; None if none may.

    `is_task`: it is done with, too, when what it says was done.
    """
    about = said.list_about(text, at)
    rated = ((rate_later(text, one.text, is_task=is_task), one.at, one) for one in about)
    likely, _, best = max(rated, key=lambda one: one[:2], default=(-math.inf, 0, None))
    if best is None or likely < LIKELY_MIN:
        return None
    return replace(best, text=one_line(best.text, _CHARACTERS_MAX))


@functools.lru_cache(_PAIRS_CACHED)
def rate_later(earlier: str, later: str, *, is_task: bool = False) -> float:
    """The logarithm of the odds that a later statement puts an earlier one out of force."""
    features = measure_later(earlier, later, is_task=is_task)
    return (
        -math.inf
        if features is None
        else weigh(read_weights("memd.injection", "later.json"), features)
    )


# ── What a statement is about ────────────────────────────────────────────────────────────────────


@cached(_TEXTS_CACHED)
def name_matter(text: str) -> Mapping[str, float]:
    """The stems of the words that name what a text is about, with what each counts.

    Not function words of its language, numbers, nor words with which one orders or ends anything.
    """
    tokens = words(text)
    lower = [token.lower() for token in tokens]
    languages = detect_text_languages(lower) or detect_question_languages(lower)
    found: dict[str, float] = {}
    for token in tokens:
        folded = fold(token)
        is_empty = (
            is_stop_word(token) or is_negation(token) or is_function_word(token.lower(), languages)
        )
        if is_empty or len(folded) == 1 or _NUMBER.match(folded) or stem(folded) in _LIGHT:
            continue
        weight = _VERB_WEIGHT if stem(folded) in _VERB_STEMS else 1.0
        found |= {term: max(weight, found.get(term, 0)) for term in terms(token)}
    return found


def _name_main_matter(text: str) -> Mapping[str, float]:
    """The matter of a statement without its reason."""
    return name_matter(WORDS["reason"].split(text, maxsplit=1)[0]) or name_matter(text)


def _sum_shared(mine: Mapping[str, float], others: Collection[str]) -> float:
    return sum(weight for term, weight in mine.items() if term in others)


def _is_one_matter(mine: Mapping[str, float], others: Collection[str]) -> bool:
    shared = _sum_shared(mine, others)
    return shared >= max(_MATTER_MIN, _MATTER_SHARE * sum(mine.values()))


# ── Whether the later one puts the earlier one out of force ──────────────────────────────────────


def measure_later(earlier: str, later: str, *, is_task: bool) -> dict[str, float] | None:
    """The features of two statements: what they share, and the function words of the later one.

    None if they share nothing, or no sign tells that anything turned: then he says the same again, or goes on from it.
    """
    main, now = _name_main_matter(earlier), name_matter(later)
    shared = _sum_shared(main, now)
    said = read_function_words(later)
    near = _list_near(main, later)
    ended = any(stem(fold(word)) in _ENDING for word in near)
    denied = any(map(is_negation, near))
    lets = said["lets"] and WORDS["binds"].search(earlier) is not None
    done = is_task and _says_done(earlier, later)
    turns = ended or denied or lets or done or any(said[name] for name in _TURNING_WORDS)
    if not shared or not (turns or _gives_other_value(earlier, later)):
        return None
    return {
        "of earlier": shared / max(1.0, sum(main.values())),
        "of later": _sum_shared(now, name_matter(earlier)) / max(1.0, sum(now.values())),
        "shared": min(shared, _SHARED_MAX) / _SHARED_MAX,
        "length": math.log1p(len(words(later))),
        "asks": float("?" in later),
        "ended": float(ended),
        "denied": float(denied),
        "done": float(done),
        **{name: float(said[name]) for name in _FUNCTION_WORDS},
    }


@cached(_TEXTS_CACHED)
def read_function_words(later: str) -> Mapping[str, bool]:
    """Which of the lists of function words by which a statement turns have a word in a text."""
    names = {*_FUNCTION_WORDS, *_TURNING_WORDS, "lets"}
    return {name: WORDS[name].search(later) is not None for name in names}


def _says_done(task: str, later: str) -> bool:
    """Return whether a later statement says that something is done, or has the past form of what a task begins with."""
    verb = stem(fold(first_word(task)))
    forms = [one for one in map(fold, words(later)) if stem(one) == verb]
    is_past = any(one.endswith("ed") for one in forms)
    return WORDS["is done"].search(later) is not None or is_past


def _gives_other_value(earlier: str, later: str) -> bool:
    """Return whether both have numbers, both days, or both a letter for a name, and none in common."""
    pairs = zip(_read_values(earlier), _read_values(later), strict=True)
    return any(was and now and was.isdisjoint(now) for was, now in pairs)


@cached(_TEXTS_CACHED)
def _read_values(text: str) -> tuple[frozenset[str], ...]:
    """The numbers of a text, its days and months, and the letters that end a clause as names: `copy B`."""
    tokens = [fold(word) for word in words(text)]
    numbers = frozenset(one for one in tokens if _NUMBER.match(one))
    days = _DAYS.intersection(one.removesuffix("s") for one in tokens)
    return numbers, days, frozenset(_LETTER.findall(text))


def _list_near(matter: Collection[str], later: str) -> list[str]:
    """The words of a later statement around those of the earlier one's matter."""
    tokens = words(later)
    own = [at for at, token in enumerate(tokens) if any(term in matter for term in terms(token))]
    return [
        token
        for at, token in enumerate(tokens)
        if at not in own and any(abs(at - other) <= _NEAR_WORDS for other in own)
    ]
