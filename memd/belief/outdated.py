"""Find statements that a later one about the same thing has outdated, as far as their words show it. Pure.

Without a model nobody knows what a sentence means, so precision comes first, and what is found is only left untold:
nothing is hidden from a search. The later statement begins with the same subject, and either says that something
turned (`no longer`, `now`, `instead`) in words of which half are the older one's, or has most of its words from it, and
so says the same again or something else of the same thing.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
_CORRECTED_STEMS, _CORRECTED_SHARE = 4, 0.33
"""Stems that a statement shares with the one that it may correct, and their share of its own."""
_PARALLEL_STEMS = 2
"""Stems that each of two statements has alone if they are made alike: `The red queue holds a day`, `the blue one a week`."""


_TEXTS_CACHED = 4_096


@dataclass(frozen=True, slots=True)
class StandingStatement:
    """The fields of a statement by which it is compared with a later one. `at` is UTC milliseconds."""

    id: int
    project_id: int
    text: str
    at: int
    rank: float
    """Whose word it is."""
    tags: Sequence[str] = ()


def find_outdated(statements: Iterable[StandingStatement]) -> dict[int, int]:
    """Older statement → the first later one, of no lesser authority, that outdates it."""
    found: dict[int, int] = {}
    for later, older in _pair_on_subject(statements):
        if older.id not in found and _outdates(later, older) and _may_outdate(later, older):
            found[older.id] = later.id
    return found


def find_corrections(statements: Iterable[StandingStatement]) -> dict[int, int]:
    """Older statement → the latest later one that says that something turned about the same subject.

    Whose word it is does not matter: both are told, and the older one names the later.
    """
    return {
        older.id: later.id
        for later, older in _pair_on_subject(statements, only_turning=True)
        if later.project_id == older.project_id and _may_correct(later, older)
    }


def _pair_on_subject(
    statements: Iterable[StandingStatement], *, only_turning: bool = False
) -> Iterator[tuple[StandingStatement, StandingStatement]]:
    """Pair each statement with the earlier ones that have a word that it begins with, in order of time.

    `only_turning`: only those later ones that say that something turned.
    """
    having: defaultdict[str, list[StandingStatement]] = defaultdict(list)
    for later in sorted(statements, key=lambda one: (one.at, one.id)):
        stems = list_stems(later.text)
        is_wanted = not only_turning or _read_content(later.text).turns
        for stem in stems[:_SUBJECT_STEMS] if is_wanted else ():
            yield from ((later, older) for older in having[stem])
        for stem in stems:
            having[stem].append(later)


def _may_correct(later: StandingStatement, older: StandingStatement) -> bool:
    mine, known = _read_content(later.text), _read_content(older.text)
    shared = len(mine.stems & known.stems)
    return shared >= _CORRECTED_STEMS and shared >= _CORRECTED_SHARE * len(mine.stems)


def _may_outdate(later: StandingStatement, older: StandingStatement) -> bool:
    return (
        later.project_id == older.project_id
        and later.rank >= older.rank
        and _list_scopes(later) == _list_scopes(older)
    )


def _list_scopes(one: StandingStatement) -> set[str]:
    return {tag for tag in one.tags if tag.startswith(PREFIX)}


@dataclass(frozen=True, slots=True)
class _Content:
    """The compared parts of a statement."""

    stems: frozenset[str]
    head_numbers: frozenset[str]
    """The stems with digits at its beginning: which thing it is about."""
    turns: bool


@functools.lru_cache(_TEXTS_CACHED)
def _read_content(text: str) -> _Content:
    """Return what is compared of a statement; kept, because each start of a session compares the same ones."""
    stems = list_stems(text)
    numbers = frozenset(one for one in stems[:_HEAD_STEMS] if any(map(str.isdigit, one)))
    return _Content(frozenset(stems), numbers, _TURNS.search(text) is not None)


def _outdates(later: StandingStatement, older: StandingStatement) -> bool:
    mine, known = _read_content(later.text), _read_content(older.text)
    shared = len(mine.stems & known.stems)
    if shared < _TURNED_STEMS or (not mine.turns and _are_parallel(mine.stems, known.stems)):
        return False
    size = len(mine.stems)
    if shared >= _MANY_STEMS and shared >= _MANY_SHARE * size:
        return True
    # Neither begins with a number that the other has not: `test 11.1`, `issue 950`.
    if not (mine.head_numbers <= known.stems and known.head_numbers <= mine.stems):
        return False
    if shared >= _SAME_STEMS and shared >= _SAME_SHARE * size:
        return shared >= _SAME_PART * len(known.stems)
    return mine.turns and shared >= _TURNED_SHARE * size


def _are_parallel(stems: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether two refer to two things, or of two values of one: the words around them have to tell."""
    alone, missing = stems - others, others - stems
    if not alone or not missing:
        return False
    are_numbered = all(any(map(str.isdigit, "".join(each))) for each in (alone, missing))
    return are_numbered or max(len(alone), len(missing)) <= _PARALLEL_STEMS
