"""Find out that a newer statement gives another value to what an older one states.

`The TTL is 5 minutes` and `the TTL is 60 minutes` are one setting with two values; `port 3000 is open`
and `port 8080 is open` are two things. Two clauses are about the same thing if they have the same words
in the same order but for a value, and the value is stated of the thing instead of naming it. A short
correction (`no, change the TTL to 60 minutes`, `port 8080 → 9090`) is compared by the words that name its
subject. In doubt there is no change.
"""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, takewhile
from typing import Literal

from memd.belief.claims import Claims, Clause, Token, TokenType, list_keys, word_key
from memd.belief.polarity import WORDS
from memd.belief.standing import PREFIX
from memd.patterns import compile_lazily
from memd.text import list_stems, one_line
from memd.time_expressions import read_duration

CHANGED_VALUE_RULE = "changed-value"
"""The rule by which a statement hides another that gives the same thing another value."""
_CHANGES_MAX = 3
_SUBJECT_CHARACTERS_MAX = 60
_CORRECTION_WORDS_MAX = 12
_COPULAS = list_keys("predicates that equate")
_PREDICATES = _COPULAS | list_keys("predicates")
_PLACED = _COPULAS | list_keys("placed")
_MEASURED, _ADDITIVE = list_keys("before a measure"), list_keys("additive")
_LABELS, _ROLES = list_keys("labels"), list_keys("roles")
_FINDINGS, _NAMED_THINGS = list_keys("findings"), list_keys("named things")
_PAST, _MODALS = list_keys("past verbs"), list_keys("modals")
_CHANGE_VERBS, _CORRECTIONS = list_keys("change verbs"), list_keys("corrections")
_SCOPES = list_keys("scopes of a clause")
_SWITCHES = frozenset(
    frozenset(map(word_key, pair.split("/"))) for pair in WORDS.list_words("switches")
)
ADDS = compile_lazily(
    r"\b(?:also|too(?! (?!now\b)\w)|additionally|as well|another|in addition|besides|auch|aussi|también)\b"
)
"""What says that the older value holds beside the newer one."""
_SWITCH_KEYS = frozenset().union(*_SWITCHES)
_NUMBERS = frozenset({TokenType.NUMBER, TokenType.VERSION})
_NAMES = frozenset({TokenType.PATH, TokenType.IDENTIFIER})


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A change from one value to another; `is_whole` if nothing else of the older statement is lost."""

    subject: str
    was: str
    now: str
    is_whole: bool = True
    others: tuple["ValueChange", ...] = ()
    """What else was changed in the same statement."""

    def __str__(self) -> str:
        """Describe the change: `the value of “the TTL is” changed from 5 minutes to 60 minutes`."""
        of = f"the value of “{self.subject}”" if self.subject else "the statement"
        return "; ".join((f"{of} changed from {self.was} to {self.now}", *map(str, self.others)))


def find_value_change(older: Claims, newer: Claims) -> ValueChange | None:
    """Return the change that the newer statement makes; None if it says the same or is about something else."""
    if ADDS.search(newer.flat_text):
        return None
    return _find_aligned(older, newer) or _find_correction(older, newer)


def _find_aligned(older: Claims, newer: Claims) -> ValueChange | None:
    """Find the same words in the same order but for a value."""
    was, now = _subtract_clauses(older, newer), _subtract_clauses(newer, older)
    if not was or len(was) > _CHANGES_MAX or len(now) < len(was):
        return None
    found: list[ValueChange] = []
    for clause in was:
        for other in now:
            if change := _align_clauses(clause, other):
                found.append(change)
                now.remove(other)
                break
        else:
            return None
    is_swapped = any(
        one.was.split()[0] == other.now.split()[0] for one, other in permutations(found, 2)
    )
    return None if is_swapped else replace(found[0], others=tuple(found[1:]))


def _subtract_clauses(claims: Claims, others: Claims) -> list[Clause]:
    """The clauses with content that the other text does not have."""
    there = Counter(_telling_keys(clause) for clause in others.clauses)
    found = []
    for clause in claims.clauses:
        keys = _telling_keys(clause)
        if there[keys] > 0:
            there[keys] -= 1
        elif keys:
            found.append(clause)
    return found


def _telling_tokens(clause: Clause) -> list[Token]:
    return [t for t in clause if t.type is not TokenType.STOP or t.key in _SWITCH_KEYS]


def _telling_keys(clause: Clause) -> tuple[str, ...]:
    return tuple(map(_value_key, _telling_tokens(clause)))


def _value_key(token: Token) -> str:
    """The key by which a token is compared: `60 seconds` and `1 minute` are one value."""
    length = read_duration(token.key) if token.type is TokenType.NUMBER else None
    return token.key if length is None else f"{length} ms"


def _align_clauses(older: Clause, newer: Clause) -> ValueChange | None:
    """The change between two clauses; None unless all but one or two values are the same."""
    was, now = _telling_tokens(older), _telling_tokens(newer)
    if is_history(older) or is_history(newer):
        return None
    if _is_denial(was, now):
        return ValueChange("", f"“{join_clause(older)}”", f"“{join_clause(newer)}”")
    if len(was) != len(now):
        return None
    pairs = zip(was, now, strict=True)
    differ = [(one, other) for one, other in pairs if _value_key(one) != _value_key(other)]
    if not differ or len(differ) > 2:  # noqa: PLR2004  # a value and its unit
        return None
    for one, other in differ:
        sort = _sort_change(one, other)
        if sort is None or not (_is_stated(older, one, sort) and _is_stated(newer, other, sort)):
            return None
    subject = _describe_subject(older, [one for one, _ in differ])
    was_text, now_text = (" ".join(t.text for t in side) for side in zip(*differ, strict=True))
    return ValueChange(subject, was_text, now_text)


def is_history(clause: Sequence[Token]) -> bool:
    """Return whether a clause narrates what happened."""
    keys = {t.key for t in clause}
    if keys & _PAST:
        return True
    has_done = any(t.type is TokenType.WORD and t.text.lower().endswith("ed") for t in clause)
    return has_done and not keys & _COPULAS


def _is_denial(was: Sequence[Token], now: Sequence[Token]) -> bool:
    """Return whether one denies what the other says: `We use Redis`, `we do not use Redis`."""
    kept = [[t.key for t in side if t.type is not TokenType.NEGATION] for side in (was, now)]
    return bool(kept[0]) and kept[0] == kept[1] and abs(len(was) - len(now)) == 1


def join_clause(clause: Iterable[Token]) -> str:
    """The words of a clause, cut for a reason that is shown."""
    return one_line(" ".join(t.text for t in clause), _SUBJECT_CHARACTERS_MAX)


_Sort = Literal["measure", "state", "name"]


def _sort_change(was: Token, now: Token) -> _Sort | None:
    """Return the sort of both values; None if they are of two sorts, or none."""
    types = {was.type, now.type}
    if (
        types == {TokenType.SYMBOL}
        or frozenset((was.key, now.key)) in _SWITCHES
        or _are_opposite_flags(was.key, now.key)
    ):
        return "state"
    if types <= _NUMBERS or types == {TokenType.DATE} or _are_languages(was, now):
        return "measure"
    return "name" if types <= _NAMES | {TokenType.WORD} and len(types) == 1 else None


def _are_opposite_flags(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short.startswith("--") and long == f"--no-{short[2:]}"


def _are_languages(was: Token, now: Token) -> bool:
    """Return whether both are programming languages such as `C`, `C++`, `C#`."""
    texts = (was.text, now.text)
    return all(text.rstrip("+#") and len(text.rstrip("+#")) == 1 for text in texts) and any(
        text.endswith(("++", "#")) for text in texts
    )


def _is_stated(clause: Clause, value: Token, sort: _Sort) -> bool:
    """Return whether a value is said of the clause's subject, and does not say which thing it is about."""
    if sort == "state":
        return True
    at = _find_index(clause, value)
    content = [token for token in clause if token.has_content]
    is_first, is_last = content[0] is value, content[-1] is value
    before = clause[at - 1] if at else None
    keys = {t.key for t in clause}
    if keys & _FINDINGS or (before is not None and _is_label(before, is_first=at == 1)):
        return False
    if any(t.key in _COPULAS for t in clause[at + 1 :]):
        # `3 retries are allowed` counts; `the 5 minute job is slow` and `v1 is frozen` name a thing.
        return at == 0 and value.type is TokenType.NUMBER and " " not in value.key
    predicate = _find_predicate(clause, at)
    if predicate is not None and clause[predicate].key in _ADDITIVE:
        return False
    if sort == "name":
        return is_last and predicate is not None and _is_role(clause, value, predicate)
    is_measured = before is not None and at > 1 and before.key in _MEASURED
    return predicate is not None or is_first or is_last or is_measured


def _is_label(token: Token, *, is_first: bool) -> bool:
    """Return whether a number after this noun says which one it is; `Node 20` within a sentence is a name."""
    is_name = token.text[:1].isupper() and not token.text.isupper() and not is_first
    return token.key in _LABELS and not is_name


def _find_predicate(clause: Clause, before: int) -> int | None:
    """The index of the last word before this one that states something."""
    words = _PREDICATES | _ADDITIVE
    return next((i for i in range(before - 1, -1, -1) if clause[i].key in words), None)


def _is_role(clause: Clause, value: Token, predicate: int) -> bool:
    """Return whether the name at the end fills a role of which the subject has one: `the default branch is main`."""
    key, subject = clause[predicate].key, {t.key for t in clause[:predicate]}
    if key not in _PLACED or subject & _NAMED_THINGS or any(t.key == "not" for t in clause):
        return False
    return key == "=" or value.type in _NAMES or (bool(subject & _ROLES) and key in _COPULAS)


def _describe_subject(clause: Clause, values: Sequence[Token]) -> str:
    return join_clause(t for t in clause if not any(t is value for value in values))


# ── Corrections in other words ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Setting:
    """A clause that gives one thing one value."""

    subject: frozenset[str]
    value: Token
    was: Token | None
    """The former value, if the clause names it."""
    text: str


def _find_correction(older: Claims, newer: Claims) -> ValueChange | None:
    """Find a short statement that gives the subject of an older one another value."""
    clauses = _join_labels(c for c in newer.clauses if not _is_interjection(c))
    if len(clauses) != 1 or len(clauses[0]) > _CORRECTION_WORDS_MAX:
        return None
    new = _read_setting(clauses[0])
    if new is None:
        return None
    theirs = _join_labels(c for c in older.clauses if not _is_interjection(c))
    is_scoped = any(clause[0].key in _SCOPES for clause in theirs)
    found = [
        old for clause in theirs if (old := _read_setting(clause)) and old.subject == new.subject
    ]
    if len(found) != 1 or (is_scoped and len(theirs) > 1):
        return None
    (old,) = found
    if _value_key(old.value) == _value_key(new.value) or _sort_change(old.value, new.value) is None:
        return None
    if new.was is not None and new.was.key.split()[0] != old.value.key.split()[0]:
        return None
    return ValueChange(old.text, old.value.text, new.value.text, is_whole=len(theirs) == 1)


def _is_interjection(clause: Clause) -> bool:
    """Return whether a clause is `No,` or the like, or has no content."""
    return all(t.key in _CORRECTIONS or not t.has_content for t in clause)


def _join_labels(clauses: Iterable[Clause]) -> list[Clause]:
    """The clauses, with `TTL:` and the value that follows it as one."""
    found: list[Clause] = []
    for clause in clauses:
        is_value = all(not t.has_content or _is_plain_value(t) for t in clause)
        if found and is_value and not any(_is_plain_value(t) for t in found[-1]):
            found[-1] += clause
        else:
            found.append(clause)
    return found


def _read_setting(clause: Clause) -> _Setting | None:
    """Read a setting: `The TTL is 5 minutes`, `change the TTL to 5 minutes`, `TTL: from 5 to 60`, `port 8080 → 9090`."""
    line = [t for t in clause if t.has_content and t.key not in _CORRECTIONS]
    values = [t for t in line if _is_plain_value(t)]
    if not values or line[-1] is not values[-1] or not _may_set(clause, values):
        return None
    named = [t for t in line if t not in values and not _is_verb(t, clause)]
    if not named or any(t.type is TokenType.SYMBOL for t in named):
        return None
    was = values[0] if len(values) > 1 else None
    return _Setting(frozenset(t.key for t in named), values[-1], was, join_clause(named))


def _may_set(clause: Clause, values: Sequence[Token]) -> bool:
    """Return whether a clause affirms one present thing, rather than narrating, denying, naming or adding something."""
    at = _find_index(clause, values[-1])
    predicate = _find_predicate(clause, at)
    names_one = any(
        _is_label(t, is_first=t is clause[0]) and after in values for t, after in pairwise(clause)
    )
    return not (
        names_one
        or is_history(clause)
        or any(t.type is TokenType.NEGATION for t in clause[1:])
        or any(t.key in _FINDINGS for t in clause)
        or any(t.key in _COPULAS for t in clause[at:])
        or (predicate is not None and clause[predicate].key in _ADDITIVE)
        or (len(values) > 1 and (len(values) > 2 or not _is_moved(clause, *values)))  # noqa: PLR2004  # one to another
    )


def _is_verb(token: Token, clause: Clause) -> bool:
    """Return whether a word only joins the subject and its value: `is`, `must`, or the verb of a request."""
    is_request = token is next(t for t in clause if t.has_content and t.key not in _CORRECTIONS)
    return token.key in _COPULAS | _MODALS or (is_request and token.key in _CHANGE_VERBS | {"use"})


def _is_plain_value(token: Token) -> bool:
    return token.type in _NUMBERS | {TokenType.DATE} or token.key in _SWITCH_KEYS


def _is_moved(clause: Clause, was: Token, now: Token) -> bool:
    """Return whether `from one to the other`, or an arrow, leads from one value to the next."""
    first, last = _find_index(clause, was), _find_index(clause, now)
    between = clause[first + 1 : last]
    has_from = first > 0 and clause[first - 1].key == "from"
    return any(t.key == "to" and (has_from or not t.text.isalpha()) for t in between)


def _find_index(clause: Clause, token: Token) -> int:
    return next(i for i, one in enumerate(clause) if one is token)


# ── An order with another value in the same place ────────────────────────────────────────────────


_LIGHT = frozenset(
    map(word_key, "the a an my our your we always again please anymore more any".split())  # noqa: SIM905  # a page of quotes reads worse
)
"""Words without which two orders are the same."""
_ONE_WAY = frozenset(map(word_key, ("against", "via", "through", "from", "into", "onto")))
"""Prepositions of a way, a source or an end of which an order has one; others may say for which of several."""
_OTHER_WAY = frozenset(map(word_key, ("in", "to", "with", "as", "by", "under")))
GIVEN_UP = frozenset({("instead", "of"), ("rather", "than"), ("in", "place", "of"), ("not",)})
"""What stands before the value that a statement passes over."""
_CHOOSING, _DROPPING = list_keys("choosing verbs"), list_keys("dropping verbs")
CHOICE_WORDS = _CHOOSING | _DROPPING | frozenset(mark for marks in GIVEN_UP for mark in marks)
"""Words that say that one thing is chosen and another given up, not which."""
_REASONS = frozenset({"because", "since"})
_FRAME_MIN, _SLOT_MAX = 2, 3
"""Content words that say what an order is about; words of a value."""


STRONG_TURN = r"no longer|any ?more|instead|after\s+all|in\s+place\s+of"
"""Function words that set what holds against what held before; `now` and `again` may be said of one time."""
_TURN_WORDS = rf"now|again|from (?:today|here) on|going forward|{STRONG_TURN}"
_TURN = re.compile(rf"\b(?:{_TURN_WORDS})\b", re.IGNORECASE)


def says_turn(text: str) -> bool:
    """Return whether an order says that it is another one than before: `from now on`, `instead`, `again`."""
    return _TURN.search(text) is not None


def find_replaced_order(older: Claims, newer: Claims, *, turns: bool) -> ValueChange | None:
    """Find that a later order names the former value as passed over, or puts another into the one place for it.

    `turns`: the later one says that it is another one than before. Without that, or where a place may have several
    values, it is a change in part: the two are to be judged.
    """
    was, now = [drop_passed(one) for one in read_orders(older)], read_orders(newer)
    if len(was) != 1 or ADDS.search(newer.flat_text) or not _is_order(was[0]):
        return None
    found = (_fill_slot(was[0], one, turns=turns) for one in now)
    return next(filter(None, found), None)


def _is_order(clause: Clause) -> bool:
    keys = {t.key for t in clause}
    return not (
        is_history(clause) or clause[0].key in _ADDITIVE or keys & _FINDINGS or "not" in keys
    )


def read_orders(claims: Claims) -> list[Clause]:
    """Read the clauses without reasons and light words; `not X` belongs to what stands before it."""
    found: list[Clause] = []
    for sentence in claims.sentences:
        is_aside = False
        for clause in sentence:
            keys = [t.key for t in clause]
            if keys[-2:] == ["from", "on"]:
                clause = clause[:-2]  # noqa: PLW2901  # `from now on`
            kept = tuple(t for t in clause if t.key not in _LIGHT | _REASONS)
            is_told = any(t.has_content for t in kept)
            is_passing = is_told and kept[0].key == "not" and len(kept) <= _SLOT_MAX + 1
            if found and (is_passing or (is_aside and is_told and not kept[0].has_content)):
                found[-1] += kept
            elif is_told:
                found.append(kept)
            is_aside = is_passing
            if keys[-1:] and keys[-1] in _REASONS:
                break
    return found


def drop_passed(clause: Clause) -> Clause:
    """The clause without the value that it passes over itself at its end: `use pnpm instead of npm`."""
    keys = [t.key for t in clause]
    for at in range(1, len(keys)):
        for mark in GIVEN_UP:
            start = at + len(mark)
            if tuple(keys[at:start]) == mark and 0 < len(keys) - start <= _SLOT_MAX:
                return clause[:at]
    return clause


def _fill_slot(older: Clause, newer: Clause, *, turns: bool) -> ValueChange | None:
    """`open pull requests against main` after `open pull requests against develop`."""
    first, was, now = split_common(older, newer)
    frame = [t for t in older[: max(first - 1, 0)] if t.has_content]
    # `answer in German` after `answer in English`; `log in UTC` after `log in JSON` is something else.
    are_names = len(was) == len(now) == 1 and all(t.text.istitle() for t in (*was, *now))
    frame_min = 1 if turns and are_names else _FRAME_MIN
    if not was or not now or len(frame) < frame_min or not _is_order(newer):
        return None
    before = older[first - 1].key
    are_values = all(t.type in _NAMES | _NUMBERS | {TokenType.WORD} for t in (*was, *now))
    is_end = first + len(was) == len(older)
    are_values &= {t.key for t in was}.isdisjoint(t.key for t in now)
    if not are_values or max(len(was), len(now)) > _SLOT_MAX:
        return None
    if before in _ONE_WAY:
        return _make_change(older[:first], was, now, is_whole=is_end and turns)
    is_scope = any(t.type in _NAMES for t in (*was, *now))
    if turns and is_end and before in _OTHER_WAY and not is_scope:
        return _make_change(older[:first], was, now, is_whole=are_names)
    return None


def split_common(older: Clause, newer: Clause) -> tuple[int, Clause, Clause]:
    """The length of the common beginning of two clauses, and what differs before their common end."""
    first = next(
        (
            n
            for n, (one, other) in enumerate(zip(older, newer, strict=False))
            if one.key != other.key
        ),
        min(len(older), len(newer)),
    )
    ends = zip(reversed(older[first:]), reversed(newer[first:]), strict=False)
    last = sum(1 for _ in takewhile(lambda pair: pair[0].key == pair[1].key, ends))
    return first, older[first : len(older) - last], newer[first : len(newer) - last]


def _make_change(frame: Clause, was: Clause, now: Clause, *, is_whole: bool = True) -> ValueChange:
    return ValueChange(join_clause(frame), join_clause(was), join_clause(now), is_whole)


# ── Statements that a later one about the same thing has outdated ────────────────────────────────


#
# Without a model nobody knows what a sentence means, so precision comes first, and what is found is only left untold:
# nothing is hidden from a search. The later statement begins with the same subject, and either says that something
# turned (`no longer`, `now`, `instead`) in words of which half are the older one's, or has most of its words from it, and
# so says the same again or something else of the same thing.


_TURNS = re.compile(rf"\b(?=[nafgis])(?:{_TURN_WORDS}|since)\b", re.IGNORECASE)
"""Beside an order `since` gives a reason; a statement of how things are says with it from when they are so."""
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
        if later.project_id == older.project_id
        for mine, known in [(_read_content(later.text).stems, _read_content(older.text).stems)]
        if len(mine & known) >= max(_CORRECTED_STEMS, _CORRECTED_SHARE * len(mine))
    }


def _pair_on_subject(
    statements: Iterable[StandingStatement], *, only_turning: bool = False
) -> Iterator[tuple[StandingStatement, StandingStatement]]:
    """Pair each statement with the earlier ones that have a word that it begins with, in order of time.

    `only_turning`: only those later ones that say that something turned.
    """
    having: defaultdict[str, list[StandingStatement]] = defaultdict(list)
    in_order = sorted(statements, key=lambda one: (one.at, one.id))
    wanted = [not only_turning or _TURNS.search(one.text) is not None for one in in_order]
    while wanted and not wanted[-1]:  # stemming is slow, and few texts say that something turned
        wanted.pop()
    for later, is_wanted in zip(in_order, wanted, strict=False):
        stems = list_stems(later.text)
        for stem in stems[:_SUBJECT_STEMS] if is_wanted else ():
            yield from ((later, older) for older in having[stem])
        for stem in stems:
            having[stem].append(later)


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
