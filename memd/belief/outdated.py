"""Which statements a later one about the same thing has outdated, as far as their words show it. Pure.

Without a model nobody knows what a sentence means, so precision comes first, and what is found is only left untold:
nothing is hidden from a search. The later statement begins with the same subject, and either says that something
turned (`no longer`, `now`, `instead`) in words of which half are the older one's, or has most of its words from it, and
so says the same again or something else of the same thing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.belief.scopes import PREFIX
from memd.text import list_stems

_TURNS = re.compile(
    r"\b(?:now|no longer|any ?more|again|instead|after all|in place of|since)\b", re.IGNORECASE
)
"""Function words that set what holds against what held before."""
_SUBJECT_STEMS = 2
"""Among the first stems of the later statement one must be the older one's."""
_HEAD_STEMS = 4
"""Stems at the beginning in which a number says which thing a statement is about."""
_TURNED_STEMS, _TURNED_SHARE = 3, 0.5
_SAME_STEMS, _SAME_SHARE, _SAME_PART = 4, 0.75, 0.4
"""Stems that both have, their share of the later statement's, and of the older one's."""
_MANY_STEMS, _MANY_SHARE = 8, 0.6
_PARALLEL_STEMS = 2
"""Stems that each of two statements has alone if they are made alike: `The red queue holds a day`, `the blue one a week`."""


@dataclass(frozen=True, slots=True)
class StandingStatement:
    """What must be known of a statement to hold it against a later one. `at` is UTC milliseconds."""

    id: int
    project_id: int
    text: str
    at: int
    rank: float
    """Whose word it is."""
    tags: Sequence[str] = ()


def find_outdated(statements: Iterable[StandingStatement]) -> dict[int, int]:
    """Older statement → the first later one, of no lesser voice, that outdates it."""
    having: defaultdict[str, list[StandingStatement]] = defaultdict(list)
    found: dict[int, int] = {}
    for later in sorted(statements, key=lambda one: (one.at, one.id)):
        stems = list_stems(later.text)
        for stem in stems[:_SUBJECT_STEMS]:
            for older in having[stem]:
                if older.id not in found and _may_outdate(later, older) and _outdates(later, older):
                    found[older.id] = later.id
        for stem in stems:
            having[stem].append(later)
    return found


def _may_outdate(later: StandingStatement, older: StandingStatement) -> bool:
    return (
        later.project_id == older.project_id
        and later.rank >= older.rank
        and _list_scopes(later) == _list_scopes(older)
    )


def _list_scopes(one: StandingStatement) -> set[str]:
    return {tag for tag in one.tags if tag.startswith(PREFIX)}


def _outdates(later: StandingStatement, older: StandingStatement) -> bool:
    stems, known = list_stems(later.text), list_stems(older.text)
    shared = len(set(stems).intersection(known))
    turns = _TURNS.search(later.text) is not None
    if not turns and _are_parallel(stems, known):
        return False
    if shared >= _MANY_STEMS and shared >= _MANY_SHARE * len(stems):
        return True
    if not _are_of_one_number(stems, known):
        return False
    if shared >= _SAME_STEMS and shared >= _SAME_SHARE * len(stems):
        return shared >= _SAME_PART * len(known)
    return turns and shared >= _TURNED_STEMS and shared >= _TURNED_SHARE * len(stems)


def _are_parallel(stems: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two say the same of two things, or two values of one: for that the words around them must be read."""
    alone, missing = set(stems).difference(others), set(others).difference(stems)
    if not alone or not missing:
        return False
    are_numbered = all(any(map(str.isdigit, "".join(each))) for each in (alone, missing))
    return are_numbered or max(len(alone), len(missing)) <= _PARALLEL_STEMS


def _are_of_one_number(stems: Sequence[str], others: Sequence[str]) -> bool:
    """Whether neither begins with a number that the other has not: `test 11.1`, `issue 950`."""
    heads = ((stems, others), (others, stems))
    return all(
        stem in there
        for here, there in heads
        for stem in here[:_HEAD_STEMS]
        if any(map(str.isdigit, stem))
    )
