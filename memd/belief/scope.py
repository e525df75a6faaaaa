"""The scope to which a sentence confines its statement, and whether a text of it says it of more, or of something else. Pure.

“In the tests turn off the checks” says nothing of the checks elsewhere, “for today” nothing of tomorrow. The forms are
those of grammar: a phrase in front, one behind the quoted words, the attribute of a subject, a word of time.
"""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from memd.belief import polarity
from memd.belief.polarity import WORDS, list_folded, name_content
from memd.text import fold, is_stop_word, languages_of, split_sentences, stem, words

_IDLE = list_folded("words of idle phrases")
_PASSING, _BEGINNING = list_folded("passing"), list_folded("beginning of a time")
_TELLS_TIME = list_folded("tells of a time") | frozenset(map(fold, WORDS.list_words("calendar")))
_UNIVERSALS, _OF_ALL = list_folded("universals"), list_folded("says of all")
_ALWAYS = _UNIVERSALS | _OF_ALL | list_folded("frequencies")
_OF_ONE = list_folded("determiners")
_DETERMINERS = _OF_ONE | polarity.ANAPHORS
_FIRST_PERSON = list_folded("first person")
_CONFINING = list_folded("confining words") - _FIRST_PERSON
_PREDICATES = list_folded("copulas") | list_folded("modals")
_FILLERS = (
    list_folded("fillers") | list_folded("interjections") | list_folded("limiting") | {"back"}
)
_ATTRIBUTES = _CONFINING | {"of", "from", "with", "without", "under", "over", "below", "above"}
_PHRASE_WORDS, _NOUNS, _NAMED_WORDS_MIN = 5, 2, 3
_OPPOSITES = tuple(
    pair.split("/")
    for pair in WORDS.rows["words"]["opposites"].split()
    if pair not in WORDS.list_words("opposites of grammar")
)
_UNITS = {fold(word): unit for unit, row in WORDS.rows["units"].items() for word in row.split()}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_URL = re.compile(r"https?://\S+")
_TIME_UNITS = ("s", "min", "h", "d", "week", "month", "year")
_CLASSES = (
    {
        fold(word): unit
        for unit in _TIME_UNITS
        for word in WORDS.rows["units"][unit].split()
        if len(word) > 1
    },
    {fold(word): fold(word) for word in WORDS.list_words("calendar")},
)
"""Words of which one excludes the others: units of time, days and months."""


def find_lost_scope(sentence: str, before: str, behind: str, text: str) -> str:
    """Return what the sentence confines its statement to and the text leaves out; empty if nothing.

    `before` and `behind` are what the sentence has around the quoted words.
    """
    told = name_content(text)
    sentence, before, behind = (
        WORDS["at some time"].sub(" ", _URL.sub(" ", one)) for one in (sentence, before, behind)
    )
    if passing := _find_passing(sentence, text):
        return passing
    phrases = [
        _find_phrase(words(polarity.CLAUSE_BREAK.split(behind)[0])),
        _find_attribute(sentence),
    ]
    if before:
        phrases.append(_find_attribute(before))
    clauses = [words(one) for one in polarity.CLAUSE_BREAK.split(sentence) if words(one)]
    for number, clause in enumerate(clauses):
        tokens = _skip_fillers(clause)
        phrase = _find_phrase(tokens)
        rest = [
            *tokens[len(phrase) + 1 :],
            *(word for one in clauses[number + 1 :] for word in one),
        ]
        if phrase and name_content(" ".join(rest)) & told:
            phrases.append(phrase)
    for phrase in phrases:
        nouns = [word for word in phrase if name_content(word)][:_NOUNS]
        if nouns and not told & name_content(" ".join(nouns)):
            return " ".join(phrase)
    return ""


def find_widened(sentence: str, text: str, own: str) -> str:
    """Return the narrower thing of a sentence of which a text says all: “every branch” for “the docs branch”.

    `own`: all that its speaker typed in that message, where the word may stand that the sentence does not have.
    """
    said, told = words(sentence), words(text)
    about = name_content(text)
    alls = _ALWAYS.intersection(map(fold, said))
    once = WORDS["for once"].search(sentence)
    if once and not alls and not WORDS["for once"].search(text):
        named = once["noun"]
        if fold(named) not in _IDLE and not name_content(named) & about:
            return once[0]
    added = _OF_ALL.intersection(map(fold, told)).difference(map(fold, words(own)))
    if added and not alls and not polarity.denies(sentence):
        return sentence
    if not _UNIVERSALS.isdisjoint(map(fold, said)):
        return ""
    for at, token in enumerate(told):
        if fold(token) not in _UNIVERSALS:
            continue
        nouns = name_content(" ".join(told[at + 1 : at + 1 + _NOUNS]))
        for determiner, kind, noun in zip(said, said[1:], said[2:], strict=False):
            is_named = fold(determiner) in _OF_ONE and bool(name_content(noun) & nouns)
            if is_named and (narrower := name_content(kind)) and not narrower & about:
                return f"{kind} {noun}"
    return ""


def find_swapped(sentence: str, text: str, own: str) -> str:
    """Return a word of a sentence in whose place the text has another of which it is the contrary, or a like one.

    `own`: all that the user said; what he named is no other's word.
    """
    said, told, known = ([fold(word) for word in words(one)] for one in (sentence, text, own))
    if not polarity.denies(f"{sentence}\n{text}"):
        stems, others = set(map(stem, said)), set(map(stem, told))
        for one, other in (*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)):
            first, last = {one, stem(one)}, {other, stem(other)}
            is_turned = first & stems and last & others
            if is_turned and not (first & others or last & (stems | {*map(stem, known)})):
                return f"“{one}”, and not “{other}”"
    for members in _CLASSES:
        ours, theirs, all_own = (
            {members[one] for one in side if one in members} for side in (said, told, known)
        )
        if theirs - all_own and ours - theirs:
            return f"“{min(ours - theirs)}”, and not “{min(theirs - all_own)}”"
    (former, new), (former_told, new_told) = map(_split_numbers, (sentence, text))
    if (former & new_told) and (new & former_told):
        return f"“{min(new & former_told)}”, and not “{min(former & new_told)}”"
    if _mixes_clauses(sentence, text):
        return f"“{sentence}” in another order"
    return _find_other_name(sentence, text, known)


def _split_numbers(text: str) -> tuple[set[str], set[str]]:
    """Return the numbers of a text that hold no longer, “instead of 40”, “40 was too few”, and the others."""
    former = {found[1] for found in WORDS["former number"].finditer(text)}
    for clause in polarity.CLAUSE_BREAK.split(text):
        if WORDS["excess"].search(clause):
            former |= list_numbers(clause)
    return former, list_numbers(text) - former


def _mixes_clauses(sentence: str, text: str) -> bool:
    """Return whether a text in the same words puts together what stands in different clauses of the sentence."""
    ours, theirs = (
        [one for part in polarity.CLAUSE_BREAK.split(side) if (one := name_content(part))]
        for side in (sentence, text)
    )
    is_same = name_content(sentence) == name_content(text) and len(ours) == len(theirs) > 1
    return is_same and any(not any(one <= other for other in ours) for one in theirs)


def _list_frame(text: str) -> list[str]:
    """The words of a text that steer it, without articles."""
    folded = [fold(word) for word in words(text)]
    return [word for word in folded if is_stop_word(word) and word not in _DETERMINERS]


def _find_other_name(sentence: str, text: str, known: Sequence[str]) -> str:
    """Return the name for which a text that is else the same has another, or the two that it exchanges."""
    if other := _find_other_word(sentence, text, known):
        return other
    said, told = (_list_content(one) for one in (sentence, text))
    keys, others = ([stem(fold(word)) for word in side] for side in (said, told))
    if len(keys) != len(others) or len(keys) < _NAMED_WORDS_MIN:
        return ""
    differing = [at for at, pair in enumerate(zip(keys, others, strict=True)) if pair[0] != pair[1]]
    if len(differing) == 1:
        (at,) = differing
        are_names = said[at][:1].isupper() and told[at][:1].isupper()
        return f"“{said[at]}”" if are_names and fold(told[at]) not in known else ""
    if len(differing) == 2:  # noqa: PLR2004  # one in the other's place
        first, last = differing
        is_exchanged = (keys[first], keys[last]) == (others[last], others[first])
        # “A closed matter” for “if a matter is closed” puts it in other words.
        is_exchanged &= _list_frame(sentence) == _list_frame(text)
        between = keys[first + 1 : last]
        is_one = len(split_sentences(sentence)) == 1
        return (
            f"“{said[first]} … {said[last]}” in this order"
            if is_exchanged and between and is_one
            else ""
        )
    return ""


def _find_other_word(sentence: str, text: str, known: Sequence[str]) -> str:
    """Return the word for which a text that is else the same, word for word, has one that the user did not say."""
    said, told = ([fold(word) for word in words(one)] for one in (sentence, text))
    differing = [pair for pair in zip(said, told, strict=False) if stem(pair[0]) != stem(pair[1])]
    if len(said) != len(told) or len(differing) != 1:
        return ""
    ((one, other),) = differing
    is_verb = one == next((word for word in said if not is_stop_word(word)), "")
    idle = any(word in _FILLERS or is_stop_word(word) for word in (one, other))
    idle = idle or WORDS["please"].search(one) is not None
    # In other scripts a verb may change its form anywhere.
    is_other = f"{one}{other}".isascii() and not (is_verb or idle or other in known)
    return f"“{one}”" if is_other else ""


def _find_passing(sentence: str, text: str) -> str:
    """Return the word of a time that passes; empty if the text tells of a time, too."""
    tokens = [fold(word) for word in words(sentence)]
    is_told = WORDS["for a time"].search(text) is not None
    if is_told or not (_PASSING | _TELLS_TIME).isdisjoint(map(fold, words(text))):
        return ""
    for at, token in enumerate(tokens):
        if token in _PASSING and _BEGINNING.isdisjoint(tokens[max(0, at - 2) : at]):
            return token
    found = WORDS["for a time"].search(sentence)
    return found[0] if found else ""


def _skip_fillers(tokens: Sequence[str]) -> list[str]:
    at = next((n for n, token in enumerate(tokens) if fold(token) not in _FILLERS), len(tokens))
    return list(tokens[at:])


def _find_phrase(tokens: Sequence[str]) -> list[str]:
    """The words behind a confining word, up to the subject or the verb of the clause."""
    if not tokens or fold(tokens[0]) not in _CONFINING:
        return []
    if fold(tokens[0]) == "on" and "french" in languages_of(" ".join(tokens)):
        return []  # “on garde …”: we keep
    inner = list(
        takewhile(
            lambda word: (
                fold(word) in _DETERMINERS or not (is_stop_word(word) or fold(word) in _PREDICATES)
            ),
            tokens[1 : 1 + _PHRASE_WORDS],
        )
    )
    named = [word for word in inner if fold(word) not in _DETERMINERS]
    ends = tokens[1 + len(inner) : 2 + len(inner)]
    if ends and fold(ends[0]) in _PREDICATES:
        named = named[:-1]  # the last of them is the subject
    elif ends and fold(ends[0]) not in _FIRST_PERSON | {"you"}:
        named = named[:1]  # where the phrase ends is not said
    return [] if any(fold(word) in _IDLE for word in named) else named


def _find_attribute(sentence: str) -> list[str]:
    """The attribute of the subject: “of year 7” of “teachers of year 7 may edit”."""
    head = list(takewhile(lambda word: fold(word) not in _PREDICATES, words(sentence)))
    at = next(
        (n for n, word in enumerate(head[:_PHRASE_WORDS]) if n and fold(word) in _ATTRIBUTES), 0
    )
    is_subject = at and len(words(sentence)) > len(head) and len(head) <= at + _PHRASE_WORDS
    if not is_subject or any(fold(word) in _FIRST_PERSON for word in head):
        return []
    return [word for word in head[at + 1 :] if fold(word) not in _DETERMINERS]


def _list_content(text: str) -> list[str]:
    return [word for word in words(text) if not is_stop_word(word)]


def list_numbers(text: str) -> set[str]:
    """Return the numbers of a text, those that are written as words among them: “twenty four” is 24, too."""
    found, before = set(_NUMBER.findall(text)), ""
    for token in map(fold, words(text)):
        number = WORDS.rows["numerals"].get(token, "")
        if number and before.endswith("0") and len(number) < len(before):
            found.add(str(int(before) + int(number)))
        found |= {number} - {""}
        before = number
    return found


def list_measures(text: str) -> dict[str, set[str]]:
    """Return the units that stand behind each number of a text."""
    found: dict[str, set[str]] = {}
    for number, follower in pairwise(words(text)):
        if number.isdigit() and (unit := _UNITS.get(fold(follower))):
            found.setdefault(number, set()).add(unit)
    return found
