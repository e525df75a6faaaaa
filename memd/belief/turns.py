"""Find out that a newer statement ends an older one in other words: it denies, drops, moves, passes over or allows that. Pure.

Read of the older one is what it chose or ordered and its whole content; of the newer one, clause by clause, what it denies,
gives up, passes over or allows. What ends must be the older one's own, and the clause that ends it must be about nothing
else: `we don't use Kafka for the logs any more` leaves `use Kafka for the event bus`. Where nothing says that something
turned, or a part of the older one may stay, it is a change in part, which is to be judged.

A clause that places something has a verb, the thing, a preposition and the place. Two are about the same thing if they name
it by the same words. The newer one replaces the older one's place if its verb moves the thing, or if it places it in the
same way and says that something turned (`now`, `instead`). In doubt there is no change, or one that is to be judged.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from memd.belief.changes import (
    ADDS,
    GIVEN_UP,
    STRONG_TURN,
    ValueChange,
    drop_passed,
    is_history,
    join_clause,
    read_orders,
    says_turn,
    split_common,
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


_CHOOSING, _DROPPING, _LEAVING = map(
    list_keys, ("choosing verbs", "dropping verbs", "leaving verbs")
)
_GONE = list_keys("words for what is gone")
_ALLOWING, _MAY = list_keys("allowing words"), list_keys("words that allow")
_COPULAS, _PAST = list_keys("predicates that equate"), list_keys("past verbs")
_LEADS = list_keys("before a choice")
_GETTING = list_keys("before what goes")
_FRAME = _LEADS | list_keys("turning words") | list_keys("frame of an ending")
"""Words around what ends: they say when or that, not what."""
_NOW = re.compile(r"(?<!from )\bnow\b")
_DECIDED = word_key("decided")
_OPEN = r"would|could|might|maybe|perhaps|should (?:we|i)"
_FOR_A_TIME = r"if|when|unless|until|once|except|only this|today|tonight|tomorrow|yet"
_REPORTED = r"says?|said|tells?|told|claim\w*|thinks?|thought|believe\w*|suggest\w*|wrote|asked|suppose|imagine"
_LIMITED = re.compile(rf"\b(?:{_OPEN}|{_FOR_A_TIME}|{_REPORTED})\b|\?")
_BETWEEN = frozenset({"over", "through", "between", "during", "under", "against", "off"})
"""Prepositions with content."""
_SHARE_MIN = 0.6
"""The share of what was forbidden that is allowed."""
_VALUE_MAX = 3
_MEANS, _COMMAND_AT = frozenset({"with", "via", "by"}), 3
"""What stands before a command that does something, and where its argument stands at the earliest."""

_PREFERS = re.compile(
    r"\b(?:prefer|like|want|choose|use|take) (?P<first>[^,;.]{1,60}?) (?:over|rather than|instead of) (?P<second>[^,;.]{1,60}?)\W*$"
)
"""One thing before another: the same with both exchanged is its opposite."""

_Ending = Literal["denies", "drops", "allows"]


@dataclass(frozen=True, slots=True)
class _Order:
    """The order or choice of an older statement."""

    clause: Clause
    keys: frozenset[str]
    slots: tuple[Clause, ...]
    """What it may be replaced in: its object, and what stands behind each preposition but `for`."""
    is_choice: bool
    """Whether its verb only chooses the object."""
    is_denied: bool


@dataclass(frozen=True, slots=True)
class _Ended:
    """The thing that a clause of the newer statement ends, and how."""

    ending: _Ending
    keys: frozenset[str]
    is_sure: bool
    """Whether its own form says that something turned."""


def find_ended(
    older: Claims, newer: Claims, *, turns: bool, is_decided: bool = False
) -> ValueChange | None:
    """Return the change by which the newer statement ends what the older one says; None if it leaves it.

    `turns`, `is_decided`: it says that something is otherwise now, or decided, perhaps in the words that announce it.
    """
    orders = _join_turned(older, read_orders(older))
    if not orders or ADDS.search(newer.flat_text) or _LIMITED.search(newer.flat_text):
        return None
    order = _read_order(orders[0])
    if order is None:
        return None
    if turns and len(orders) == 1 and (command := _find_other_command(older, newer)):
        return command
    chooses = turns and any(t.key in _CHOOSING for t in newer.tokens)
    was, now = (
        join_clause(t for s in one.sentences for c in s for t in c) for one in (older, newer)
    )
    passing = (_find_passed(order, one) for one in read_orders(newer) if len(orders) == 1)
    if passed := next(filter(None, passing), None):
        return ValueChange("", join_clause(passed), now)
    for clause in _list_clauses(newer):
        for ended in _read_endings(clause, chooses=chooses, turns=turns, is_decided=is_decided):
            is_all = turns or ended.ending != "allows" or ended.keys >= order.keys
            is_once = ended.ending == "denies" and _denies(clause[0]) and _only_now(newer)
            if is_all and not is_once and _is_ended(order, ended):
                is_whole = (turns or ended.is_sure) and len(orders) == 1
                return ValueChange("", f"“{was}”", f"“{now}”", is_whole=is_whole)
    return None


def find_exchanged(older: Claims, newer: Claims) -> ValueChange | None:
    """Find what stands behind in `prefer tabs over spaces` and before in the newer `prefer spaces over tabs`: to be judged."""
    was, now = _PREFERS.search(older.flat_text), _PREFERS.search(newer.flat_text)
    if was is None or now is None or _LIMITED.search(newer.flat_text):
        return None
    if was.group("first", "second") != now.group("second", "first"):
        return None
    return ValueChange("", was["first"], now["first"], is_whole=False)


def _only_now(newer: Claims) -> bool:
    """Return whether nothing but `now` says that something turned: `don't squash the commits now` may be for once."""
    rest = _NOW.sub(" ", newer.flat_text)
    return rest != newer.flat_text and not says_turn(rest)


def may_end(newer: Claims) -> bool:
    """Return whether a statement may end another one: it denies, drops, passes over or allows something, or says that it turned."""
    return _LIMITED.search(newer.flat_text) is None and any(
        _find_mark(clause) is not None or any(_read_endings(clause))
        for clause in _list_clauses(newer)
    )


def name_ended(newer: Claims, *endings: _Ending) -> Iterator[str]:
    """Yield the words of each thing that a statement may end, or passes over and ends in one of these ways."""
    for clause in _list_clauses(newer):
        marked = _find_mark(clause)
        # `couldn't keep up` denies and passes nothing over.
        is_passing = marked is not None and (
            not _denies(clause[marked[0]]) or _passes_over(clause, marked[0])
        )
        passed = clause[marked[0] + len(marked[1]) :] if marked and is_passing else ()
        ended = (
            one.keys for one in _read_endings(clause) if one.ending in (endings or (one.ending,))
        )
        for keys in (frozenset(t.key for t in passed), *ended):
            if words := [t.text for t in clause if t.key in keys and t.has_content]:
                yield " ".join(words)


def _list_clauses(newer: Claims) -> Iterator[Clause]:
    for sentence in newer.sentences:
        for clause in sentence:
            yield clause
            if clause[-1].key in ("because", "since"):
                break


# ── The older statement ──────────────────────────────────────────────────────────────────────────


def _read_order(clause: Clause) -> _Order | None:
    at = next((n for n, t in enumerate(clause) if _denies(t)), None)
    if at is not None and _passes_over(clause, at):
        clause, at = clause[:at], None
    told = _strip_frame(clause)
    if at is None and told and told[0].key == "against":  # `decided against Docker`
        at = len(clause) - len(told)
    is_denied = at is not None
    if at is not None:
        clause = clause[:at] + clause[at + 1 :]
    clause = _strip_frame(clause)
    content = [t for t in clause if t.has_content]
    if not content or is_history(content[:1]) or _PAST & {t.key for t in content}:
        return None
    for mark_at, mark in _list_marks(clause):
        clause = clause[:mark_at] if mark_at + len(mark) < len(clause) else clause
        break
    if not (phrases := list(_split_phrases(clause))):  # all of it only joins: `so between`
        return None
    verb, head = phrases[0][1][:1], phrases[0][1][1:]
    slots = [head] if head else []
    is_choice = bool(verb) and verb[0].key in _CHOOSING
    if is_choice and not head and len(phrases) > 1:
        slots = [phrases[1][1]]  # `go with Valkey`
    slots += [
        phrase for preposition, phrase in phrases[1:] if preposition != "for" and not is_choice
    ]
    keys = frozenset(t.key for t in clause if t.has_content)
    return _Order(clause, keys, tuple(filter(None, slots)), is_choice, is_denied)


def _join_turned(older: Claims, orders: list[Clause]) -> list[Clause]:
    """Read `we don't use A for X any more, we use B` as `use B for X`; `don't use A, use B` goes on to forbid A."""
    first, second, *more = [*map(_read_order, orders), None, None]
    if first is None or second is None or any(more) or _denies(older.sentences[0][0][0]):
        return orders
    is_choice = first.is_choice and second.is_choice and first.is_denied and not second.is_denied
    if not is_choice or not first.slots or len(second.slots) != 1:
        return orders
    return [orders[1] + first.clause[first.clause.index(first.slots[0][-1]) + 1 :]]


def _passes_over(clause: Clause, at: int) -> bool:
    """Return whether a bare `not` stands before what is passed over: `use spaces, not tabs`."""
    is_told = any(t.has_content and t.key not in _LEADS for t in clause[:at])
    return clause[at].text.lower() == "not" and is_told and clause[at - 1].has_content


def _denies(token: Token) -> bool:
    """Return whether a word denies its clause; `without` denies what follows it alone."""
    return token.type is TokenType.NEGATION and token.text.lower() != "without"


def _split_phrases(clause: Clause) -> Iterator[tuple[str, Clause]]:
    """Yield each run of content words with the word without content before it."""
    before, run = "", []
    for token in clause:
        if token.has_content and token.key not in _BETWEEN:
            run.append(token)
            continue
        if run:
            yield before, tuple(run)
            run = []
        before = token.key
    if run:
        yield before, tuple(run)


def _strip_frame(clause: Clause) -> Clause:
    start = next(
        (n for n, t in enumerate(clause) if t.has_content and t.key not in _LEADS | _GETTING),
        len(clause),
    )
    return clause[start:]


# ── The newer statement ──────────────────────────────────────────────────────────────────────────


def _read_endings(
    clause: Clause, *, chooses: bool = True, turns: bool = True, is_decided: bool = False
) -> Iterator[_Ended]:
    """Yield what a clause denies, drops or allows.

    `chooses`: the statement chooses something else; `turns`: it says that something is otherwise now; `is_decided`: or decided.
    """
    content = [t for t in clause if t.has_content]
    keys = [t.key for t in content]
    denial = next((n for n, t in enumerate(content) if _denies(t)), None)
    decided = _DECIDED in keys
    if sum(map(_denies, content)) > 1:  # `you no longer have to never …`
        yield _Ended("allows", _telling(content), decided)
        return
    if denial is not None:
        if not any(t.key in ("did", "had", "was") for t in clause):
            yield _Ended("denies", _telling(content[:denial] + content[denial + 1 :]), decided)
        return
    if "against" in keys and (decided or keys[0] == "against"):
        # `we decided` announces, and may be cut off.
        yield _Ended("denies", _telling(content[keys.index("against") + 1 :], of_names=True), True)
        return
    told = _strip_frame(clause)
    first = next((t for t in told if t.has_content), None)
    if first is None:
        return
    rest = [t for t in told if t.has_content and t is not first]
    is_told = chooses or decided or first.key == "rid" or first.text.lower().endswith(("ing", "ed"))
    if first.key in _DROPPING and (is_told or is_decided):
        yield _Ended("drops", _telling(rest), True)
    if first.key in _LEAVING and is_told:
        yield from _read_left(told)
    if any(t.key in _COPULAS for t in clause) and content[-1].key in _GONE and (chooses or turns):
        yield _Ended("drops", _telling(content[:-1]), False)
    yield from _read_allowed(clause)


def _read_left(told: Clause) -> Iterator[_Ended]:
    """`switched from Jest to Vitest for the unit tests`, `moved off Kafka`, `replaced Jest with Vitest`."""
    phrases = list(_split_phrases(told))
    (_, head), others = phrases[0], phrases[1:]
    left = [t for t in head[1:] if t.key not in ("off", "away")]
    left += chain.from_iterable(phrase for preposition, phrase in others if preposition == "from")
    # `moving to Postgres on Neon` names where to, not what is left.
    if left:
        left += chain.from_iterable(
            phrase
            for preposition, phrase in others
            if preposition not in ("from", "to", "with", "by")
        )
        yield _Ended("drops", _telling(left), True)


def _read_allowed(clause: Clause) -> Iterator[_Ended]:
    content = [t for t in clause if t.has_content]
    if any(t.key in _COPULAS for t in clause) and any(t.key in _ALLOWING for t in content):
        yield _Ended("allows", _telling([t for t in content if t.key not in _ALLOWING]), False)
    elif content and content[0].key in _MAY:
        yield _Ended("allows", _telling(content[1:]), False)
    elif clause[0].key in ("from", "on") or clause[-1].key in ("again", "on", "all"):
        yield _Ended("allows", _telling(content), False)


def _telling(tokens: list[Token], *, of_names: bool = False) -> frozenset[str]:
    frame = frozenset() if of_names else _FRAME
    kept = (t for t in tokens if t.key not in frame and t.type is not TokenType.NEGATION)
    return frozenset(t.key for t in kept) - {"any", "more", "after", "all", "again"}


def _is_ended(order: _Order, ended: _Ended) -> bool:
    """Return whether what ends is this order, or what it chose, and nothing else."""
    keys = ended.keys - (_CHOOSING - order.keys)
    if not keys or not keys <= order.keys:
        return False
    if ended.ending == "allows":
        return order.is_denied and len(keys) >= _SHARE_MIN * len(order.keys)
    if order.is_denied:
        return False
    if len(keys) >= _SHARE_MIN * len(order.keys) and not order.is_choice:
        return True
    return any({t.key for t in slot} <= keys for slot in order.slots)


# ── What it passes over ──────────────────────────────────────────────────────────────────────────


def _list_marks(clause: Clause) -> Iterator[tuple[int, tuple[str, ...]]]:
    keys = tuple(t.key for t in clause)
    for at in range(1, len(keys)):
        for mark in GIVEN_UP:
            if keys[at : at + len(mark)] == mark and clause[at].text.lower() != "without":
                yield at, mark


def _find_mark(clause: Clause) -> tuple[int, tuple[str, ...]] | None:
    return next(_list_marks(clause), None)


def _find_passed(order: _Order, clause: Clause) -> Clause | None:
    """Find what the order chose as what a clause passes over: `use Mailgun instead of Postmark` after `send mails over Postmark`."""
    found = _find_mark(clause)
    if found is None:
        return None
    at, mark = found
    behind = clause[at + len(mark) :]
    end = next((n for n, t in enumerate(behind) if not t.has_content), len(behind))
    passed, place = behind[:end], behind[end:]
    phrases = [phrase for _, phrase in _split_phrases(_strip_frame(clause[:at]))]
    if order.is_denied or not passed or not phrases or len(passed) > _VALUE_MAX:
        return None
    verb = phrases[0][0].key
    if verb in _CHOOSING:  # `use Valkey for the cache`, `go with Valkey`
        rest = phrases[1 + (len(phrases[0]) == 1) :]
    else:  # `sign the releases with sigstore`
        rest = [phrases[0][1:], *phrases[1:-1]]
    others = {t.key for phrase in (*rest, place) for t in phrase if t.has_content} - _FRAME
    is_slot = any([t.key for t in slot] == [t.key for t in passed] for slot in order.slots)
    # `use Valkey for the cache instead of Redis` leaves `use Redis for the cache in tests`.
    about = order.keys - {t.key for t in (*passed, *order.clause[:1])}
    is_about = not others or others == about or (others <= about and not order.is_choice)
    return passed if is_slot and is_about and verb in _CHOOSING | order.keys else None


# ── Another command for the same act ─────────────────────────────────────────────────────────────


def _find_other_command(older: Claims, newer: Claims) -> ValueChange | None:
    """``build with `make slow` `` after ``build with `make fast` ``: the act, what it is done with, and another argument."""
    orders = [read_orders(one) for one in (older, newer)]
    if len(orders[1]) != 1 or not (older.quoted and newer.quoted):
        return None
    was, now = (_strip_frame(clauses[0]) for clauses in orders)
    first, old, new = split_common(was, now)
    is_means = first >= _COMMAND_AT and not _MEANS.isdisjoint(t.key for t in was[1 : first - 1])
    if not is_means or len(old) != 1 or len(new) != 1:
        return None
    return ValueChange(join_clause(was[:first]), join_clause(old), join_clause(new))
