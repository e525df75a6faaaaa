"""Find what the user said later on the matter of an earlier statement, if it may put that out of force. Pure.

Only a reader can tell whether `one reviewer is enough, we are down to three` ends `every change needs two approvals`. So
nothing is concluded from it: words on the same matter that likely ended something are told beside the earlier ones.
"""

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.belief.claims import parse_claims
from memd.belief.ending import ENDING_MIN, RETRACTED_MIN, rate_ending, rate_retracted, says_done
from memd.belief.polarity import WORDS, is_negation, list_folded
from memd.belief.turns import name_ended
from memd.caches import cached
from memd.distill.assertions import read_sentence
from memd.distill.own_words import VERBS, OwnSentence, read_beginning, read_own_sentences
from memd.distill.text import asks_by_mark
from memd.distill.vetoes import SPEECH, is_for_this_time, is_ironic
from memd.injection.learned import PROMPT_CHARACTERS_MAX, SaidSentence, quote_own
from memd.languages import detect_question_languages, detect_text_languages, is_function_word
from memd.machine_text import is_machine_text
from memd.text import fold, is_stop_word, normalised, one_line, split_identifier, stem, terms, words

_VAULTS_CACHED, _PROMPTS_CACHED, _TEXTS_CACHED = 4, 1_600, 1_024
_RARE_SHARE, _RARE_MIN = 0.05, 3
"""A word that more of the prompts have names no matter."""
_WHOLE_WORDS_MAX = 60
"""A prompt of so many words is read whole, of a longer one each sentence with the next."""
_CHARACTERS_MIN = 12
_MATTER_MIN, _MATTER_SHARE = 1.0, 0.2
"""What two statements of one matter share at least: so many words, and this share of the earlier one's."""
_SAME_MATTER, _NEAR_MATTER = 0.5, 0.33
"""What two statements share at least of what each is about, if one gives another value, and if it quotes what ended something."""
_ENDED_MIN, _SHARED_WEIGHT = 1.6, 4.0
"""From which odds words are told as what may have ended a statement, and what it adds if they share everything with that. Of 138
made-up pairs of a statement and its end, left out of the fit, 62 are told beside it, 8 of 145 others, and 8 of 303 pairs of real work
on one matter. By the later words alone, from 0.5, of which a quarter was shared: 45, 6 and 10."""
_OWN_MATTER, _RETRACTED_FAR_MIN = 2.0, 1.25
"""A next prompt of more matter than this, none of it the sentence's, takes that back only from these odds on: of 569 that did and were
rated so 478 are told still, of six in three made-up histories that did not two."""
_NEAR_MIN = 0.0
"""From which odds a prompt takes back work in the files that it has edited again: of 222 turns of real people none reaches it."""
_VERB_WEIGHT = 0.5
"""What a verb of orders, or a day, counts: it says what is done or when, not with what."""
_CHARACTERS_MAX = 160
"""Of what was said later: it is to be noticed beside a line, not to take the place of others."""
_LETTER = re.compile(r"(?<=\w )[A-Z](?=\W*\Z|[,.;:)])")
_NAME = re.compile(r"\b([^\W\d]{2,})[-_]?(\d+)\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*\w{0,2}\Z")


def _list_stems(*lists: str) -> frozenset[str]:
    return frozenset(stem(fold(word)) for name in lists for word in WORDS.list_words(name))


_LIGHT = _list_stems(
    "choosing verbs", "leaving verbs", "dropping verbs", "words for what is gone", "before a command", "modals", "duties",
    "frequencies", "universals", "frame of a statement", "frame of an ending", "fillers", "steering", "corrections",
    "passing", "tells of a time", "allowing words", "allowed",
)  # fmt: skip
"""Stems of words that name no matter: one orders, chooses, ends, hedges and times anything with them."""
_DAYS = list_folded("calendar")
_VERB_STEMS = frozenset(
    stem(fold(word))
    for word in VERBS | SPEECH.list_words("choosing") | SPEECH.list_words("past forms") | _DAYS
)


@dataclass(frozen=True, slots=True)
class LaterWords:
    """The user's typed words: prompts with their matter, the places of those that have each of its stems, and what came next."""

    prompts: Sequence[tuple[SaidSentence, Mapping[str, float]]]
    places: Mapping[str, Sequence[int]]
    following: Mapping[tuple[int, int], SaidSentence]
    """(session, time) of a prompt → the next one in its session."""
    is_stated: bool = False
    """Whether it is of statements, each of which is read whole."""

    def find_taken_back(self, text: str, session_id: int | None, at: int) -> SaidSentence | None:
        """The next prompt after the one that said a sentence, as it begins, if that likely takes it back; None if not."""
        new = self.following.get((session_id or 0, at))
        return new and read_taken_back(text, new)

    def find_next(self, session_id: int | None, at: int) -> SaidSentence | None:
        """The first prompt of a session after a time."""
        typed = (one for one, _ in self.prompts if one.session_id == session_id and one.at > at)
        return min(typed, key=lambda one: one.at, default=None)

    def find_quoted(self, quote: str, session_id: int | None, at: int) -> SaidSentence | None:
        """The last prompt of a session until `at` that has a quote, from that quote on."""
        if not (known := normalised(quote)):
            return None
        typed = (one for one, _ in self.prompts if one.session_id == session_id and one.at <= at)
        own = (one for one in typed if known in normalised(one.text))
        last = max(own, key=lambda one: one.at, default=None)
        behind = last.text.partition(quote)[2] if last else ""
        return last and replace(last, text=one_line(f"{quote}{behind}", _CHARACTERS_MAX))

    def list_about(self, text: str, at: int) -> Iterator[SaidSentence]:
        """Yield what was said after a statement on the same matter and is more than the same words again."""
        mine, again = _name_main_matter(text), normalised(text)
        rare = max(_RARE_MIN, _RARE_SHARE * len(self.prompts))
        found = {one: self.places.get(one, ()) for one in mine}
        telling = {one for one, places in found.items() if 0 < len(places) <= rare}
        for place in sorted({place for one in telling for place in found[one]}):
            prompt, whole = self.prompts[place]
            if prompt.at > at and _is_one_matter(mine, whole):
                parts = ((prompt.text, whole),) if self.is_stated else _read_parts(prompt.text)
                for part, matter in parts:
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


def read_taken_back(text: str, new: SaidSentence, *, is_near: bool = False) -> SaidSentence | None:
    """The beginning of the prompt after a sentence if it likely takes that back; None if not, or if it states something itself.

    `is_near`: it is known to be on the same matter.
    """
    begin = read_beginning(new.text)
    states = any(map(read_sentence, read_own_sentences(new.text)[:1]))
    matter = name_matter(begin)
    is_of_another = sum(matter.values()) > _OWN_MATTER and name_matter(text).keys().isdisjoint(
        matter
    )
    least = _NEAR_MIN if is_near else _RETRACTED_FAR_MIN if is_of_another else RETRACTED_MIN
    is_taken_back = bool(begin) and not states and rate_retracted(text, begin) >= least
    return replace(new, text=one_line(begin, _CHARACTERS_MAX)) if is_taken_back else None


@functools.lru_cache(_VAULTS_CACHED)
def read_later_words(prompts: tuple[SaidSentence, ...], *, is_stated: bool = False) -> LaterWords:
    """Read the user's own words in these prompts, or statements."""
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
    return LaterWords(read, dict(places), following, is_stated)


@functools.lru_cache(_PROMPTS_CACHED)
def _read_matter(prompt: str) -> Mapping[str, float]:
    """The matter of a prompt. What is kept of prompts stays when the other caches are emptied: each start asks for the same."""
    is_read = len(prompt) <= PROMPT_CHARACTERS_MAX and not is_machine_text(prompt)
    return name_matter(prompt) if is_read else {}


@functools.lru_cache(_PROMPTS_CACHED)
def split_prompt(prompt: str) -> tuple[str, ...]:
    """The parts of a prompt that are read alone: the user's own words without questions, what is for once and what a form keeps.

    What is kept of prompts stays when the other caches are emptied: each start asks for the same.
    """
    if len(prompt) > PROMPT_CHARACTERS_MAX or prompt.lstrip().startswith("/"):
        return ()
    if is_machine_text(prompt):
        return ()
    own = [
        text
        for one in _read_turning_sentences(prompt)
        if not asks_by_mark(text := quote_own(one)) and read_sentence(one) is None
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


@functools.lru_cache(_PROMPTS_CACHED)
def _read_parts(prompt: str) -> tuple[tuple[str, Mapping[str, float]], ...]:
    """The parts of a prompt that are read alone with their matter; kept like the above."""
    return tuple((part, name_matter(part)) for part in split_prompt(prompt))


def find_later(
    text: str,
    at: int,
    said: LaterWords,
    quoting: Collection[SaidSentence] = (),
    *,
    is_task: bool = False,
) -> SaidSentence | None:
    """The later words on the same matter that put an earlier statement out of force; None if none likely does.

    `quoting`: those of them that quote what likely ended something. `is_task`: it is done with, too, when what it says was done.
    """

    def ends(later: SaidSentence, odds: float) -> bool:
        if is_task and says_done(text, later.text):
            return True
        if _names_sibling(text, later.text):
            return False
        shared = min(_measure_shared(text, later.text))
        is_other = shared >= _SAME_MATTER and _gives_other_value(text, later.text)
        is_quoted = shared >= _NEAR_MATTER and later in quoting
        # Of a task's thing much is said before it is done.
        is_likely = rate_ending(later.text) >= ENDING_MIN if is_task else odds >= _ENDED_MIN
        return is_other or is_quoted or (is_likely and not _ends_another(text, later.text))

    rated = ((rate_ended(text, one.text), one) for one in said.list_about(text, at))
    mine = _name_main_matter(text)
    keys = (
        (_sum_shared(mine, name_matter(one.text)), odds, one.at, one)
        for odds, one in rated
        if ends(one, odds)
    )
    # Of what likely put it out of force, what shares most with it, then the likeliest.
    *_, best = max(keys, key=lambda key: key[:3], default=(None,))
    return best and replace(best, text=one_line(best.text, _CHARACTERS_MAX))


def rate_ended(text: str, later: str) -> float:
    """The logarithm of the odds that later words ended something, higher the more they share with an earlier statement."""
    return rate_ending(later) + _SHARED_WEIGHT * min(_measure_shared(text, later))


def _names_sibling(text: str, later: str) -> bool:
    """Return whether later words name another of a series of things: `south24`, not `north24`."""
    mine, others = (dict(map(reversed, _NAME.findall(fold(one)))) for one in (text, later))
    return any(mine[number] != others[number] for number in mine.keys() & others.keys())


def _ends_another(text: str, later: str) -> bool:
    """Return whether later words name what they give up and nothing that they give up or deny is what a statement is about."""
    claims = parse_claims(later)
    if not any(name_ended(claims, "drops")):
        return False
    ended = set().union(*map(name_matter, name_ended(claims, "drops", "denies")))
    return _sum_shared(_name_main_matter(text), ended) < _MATTER_MIN


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
        parts = terms(token)
        if token.isascii() and len(split_identifier(token)) > 1:
            weight /= len(parts)  # an identifier is one word, though its parts are found alone
        found |= {term: max(weight, found.get(term, 0)) for term in parts}
    return found


def _name_main_matter(text: str) -> Mapping[str, float]:
    """The matter of a statement without its reason."""
    return name_matter(WORDS["reason"].split(text, maxsplit=1)[0]) or name_matter(text)


def _sum_shared(mine: Mapping[str, float], others: Collection[str]) -> float:
    return sum(weight for term, weight in mine.items() if term in others)


def _is_one_matter(mine: Mapping[str, float], others: Collection[str]) -> bool:
    shared = _sum_shared(mine, others)
    return shared >= max(_MATTER_MIN, _MATTER_SHARE * sum(mine.values()))


def is_same_matter(earlier: str, later: str) -> bool:
    """Return whether a later statement is likely on the matter of an earlier one."""
    return _is_one_matter(_name_main_matter(earlier), name_matter(later))


def _measure_shared(earlier: str, later: str) -> tuple[float, float]:
    """Measure what two statements share, of what each is about."""
    mine, other = _name_main_matter(earlier), name_matter(later)
    shared = _sum_shared(mine, other)
    return shared / max(1.0, sum(mine.values())), shared / max(1.0, sum(other.values()))


def gives_other_number(earlier: str, later: str, note: str) -> bool:
    """Return whether later words have a number that an earlier statement with one has not, and a note of them is on its matter."""
    was, now = _read_values(earlier)[0], _read_values(later)[0]
    return bool(was and now - was) and min(_measure_shared(earlier, note)) >= _SAME_MATTER


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
