"""Find out that a newer statement puts a thing into another place than an older one: `keep X in A`, `move X to B`. Pure.

A clause that places something has a verb, the thing, a preposition and the place. Two are about the same thing if they name
it by the same words. The newer one replaces the older one's place if its verb moves the thing, or if it places it in the
same way and says that something turned (`now`, `instead`). In doubt there is no change, or one that is to be judged.
"""

import re
from dataclasses import dataclass
from typing import Literal

from memd.belief.changes import (
    ADDS,
    STRONG_TURN,
    ValueChange,
    drop_passed,
    is_history,
    join_clause,
    read_orders,
)
from memd.belief.claims import Claims, Clause, Token, TokenType, list_keys, word_key
from memd.languages import LATIN_LANGUAGES

_MOVING, _HOLDING, _PLACING = map(list_keys, ("moving verbs", "holding verbs", "placing verbs"))
_VERBS = _MOVING | _HOLDING | _PLACING
_PREPOSITIONS, _TURNING = list_keys("before a place"), list_keys("turning words")
_TO_COME = list_keys("times to come")
_AGAIN, _STRONG_TURN = re.compile(r"\bagain\b"), re.compile(rf"\b(?:{STRONG_TURN})\b")
_Turn = Literal["none", "weak", "strong"]
_SCOPES, _BEFORE_CHOICE = list_keys("scopes of a clause"), list_keys("before a choice")
_COPULAS = list_keys("predicates that equate")
_PORT = word_key("port")
"""What moves a program from one language or engine to another."""
_FORMATS = list_keys("file formats")
_LANGUAGES = frozenset(map(word_key, ("english", *LATIN_LANGUAGES)))
_PLACE_MAX = 4
"""Content words of a place."""
_PLACE_TYPES = frozenset(
    {
        TokenType.PATH,
        TokenType.IDENTIFIER,
        TokenType.WORD,
        TokenType.NUMBER,
        TokenType.VERSION,
        TokenType.SYMBOL,
    }
)


@dataclass(frozen=True, slots=True)
class _Placement:
    """A thing and its place."""

    verb: str
    thing: Clause
    preposition: str
    place: Clause
    left: frozenset[str]
    """The former place, if the clause names it."""
    is_stated: bool
    """Whether the verb stands behind the thing."""

    @property
    def thing_keys(self) -> frozenset[str]:
        return frozenset(t.key for t in self.thing)

    @property
    def place_keys(self) -> frozenset[str]:
        return frozenset(t.key for t in self.place)


def find_moved(older: Claims, newer: Claims, *, turns: bool) -> ValueChange | None:
    """Return that the newer statement puts what the older one places somewhere else; None if it does not.

    `turns`: it says that something is otherwise now.
    """
    # A single word, as `And note a decision: …` begins with, states nothing.
    orders = (one for one in read_orders(older) if sum(t.has_content for t in one) > 1)
    clauses = list(map(drop_passed, orders))
    placed = [placement for clause in clauses if (placement := _read_placement(clause))]
    if len(placed) != 1 or ADDS.search(newer.flat_text):
        return None
    (old,) = placed
    turn = _find_turn(newer, turns=turns)
    for new in filter(None, map(_read_placement, map(drop_passed, read_orders(newer)))):
        if not _is_same_thing(old, new):
            continue
        thing, was, now = map(join_clause, (old.thing, old.place, new.place))
        if _replaces(old, new, turns=turn):
            return ValueChange(thing, was, now, is_whole=len(clauses) == 1)
        if (
            {old.verb, new.verb} <= _HOLDING
            and not old.place_keys & new.place_keys
            and _are_alike(old, new)
        ):
            return ValueChange(thing, was, now, is_whole=False)
    return None


def _is_same_thing(old: _Placement, new: _Placement) -> bool:
    """Return whether both name one thing; “move them from A to B” names it by the place that it leaves."""
    return old.thing_keys == new.thing_keys or (not new.thing and new.left == old.place_keys)


def _find_turn(newer: Claims, *, turns: bool) -> _Turn:
    """Rate how surely a statement says that something is otherwise: weakly by `now`, which may be announced before its claims."""
    if not turns:
        return "none"
    if _STRONG_TURN.search(newer.flat_text):
        return "strong"
    return "none" if _AGAIN.search(newer.flat_text) else "weak"


def name_placed(claims: Claims) -> str:
    """Name the things that a statement puts somewhere, or the place that it leaves; empty if it places nothing."""
    found = filter(None, map(_read_placement, read_orders(claims)))
    return " ".join(word for one in found for word in [t.text for t in one.thing] or one.left)


def _replaces(old: _Placement, new: _Placement, *, turns: _Turn) -> bool:
    is_back = bool(
        old.left & new.place_keys
    )  # `from A to B`, `from B to A`: two tasks, or one taken back
    if old.place_keys & new.place_keys or is_back:
        return False
    if new.left and not new.left & old.place_keys:
        return False
    if turns == "none" and not _are_alike(old, new):
        return False
    if new.verb in _MOVING:
        # `Run the tests in parallel` names no place; `deploy to`, `host on` and `keep in` do.
        return old.verb in _HOLDING | _MOVING or old.preposition != "in" or new.verb == _PORT
    if {old.verb, new.verb} <= _HOLDING | _MOVING:
        return turns != "none"
    # `Deploy to production now` may be once or besides; `the build now runs on Linux` states it.
    is_said = turns == "strong" or (turns == "weak" and new.is_stated)
    return is_said and old.verb == new.verb


def _are_alike(old: _Placement, new: _Placement) -> bool:
    """Return whether two places are of one sort: a thing may have a format, a language and a directory at once."""
    was_path, is_path = (any(t.type is TokenType.PATH for t in one.place) for one in (old, new))
    are_formats, are_languages = (
        bool(old.place_keys & words) is bool(new.place_keys & words)
        for words in (_FORMATS, _LANGUAGES)
    )
    return (was_path or not is_path) and are_formats and are_languages


def _read_placement(clause: Clause) -> _Placement | None:
    """Read `[verb] thing [from place] preposition place`, or with the verb behind the thing; None for anything else."""
    if any(t.type is TokenType.NEGATION or t.key in _TO_COME for t in clause):
        return None
    while clause and clause[-1].key in _TURNING:
        clause = clause[:-1]
    at = next(
        (n for n, t in enumerate(clause) if t.key in _PREPOSITIONS and _is_told(clause[:n])), 0
    )
    place = tuple(t for t in clause[at + 1 :] if t.has_content)
    rest = {t.key for t in clause[at + 1 :]}
    is_part = any(t.text.lower() in ("its", "their") for t in clause[at + 1 :])
    if not at or not 0 < len(place) <= _PLACE_MAX or is_part or rest & (_SCOPES | _PREPOSITIONS):
        return None
    start = next((n for n, t in enumerate(clause[:at]) if t.key == "from"), at)
    head = [t for t in clause[:start] if t.has_content and t.key != "over"]
    while head and head[0].key in _BEFORE_CHOICE:
        head = head[1:]
    verb, thing = _split_verb(head, clause[start - 1])
    left = frozenset(t.key for t in clause[start:at] if t.has_content)
    if not (thing or left) or (verb not in _MOVING and is_history(clause)):
        return None
    if any(t.type not in _PLACE_TYPES for t in (*thing, *place)):
        return None
    is_stated = bool(thing) and head[0] is thing[0]
    return _Placement(verb, tuple(thing), clause[at].key, place, left, is_stated)


def _is_told(before: Clause) -> bool:
    return any(t.has_content and t.key not in _BEFORE_CHOICE for t in before)


def _split_verb(head: list[Token], last: Token) -> tuple[str, list[Token]]:
    """The verb that places the thing, before or behind it, and the thing."""
    if head and head[0].key in _VERBS:
        return head[0].key, head[1:]
    if head and head[-1].key in _VERBS:
        return head[-1].key, head[:-1]
    return (word_key("keep"), head) if last.key in _COPULAS else ("", [])
