"""Decide which of several memories on the same value holds. Pure.

A memory that tells of a change (`from 1.25.5 to 1.25.6`, `renamed "list" to "show"`), or that sets what an older one set to
something else (`max_retries = 5`), makes the older memories of its project that state the old value outdated, also where no
supersession was written: they come after it and say what holds now. Asked what was before, they come first.

Precision first: values are quoted, numbers or versions, the same to the letter; both sentences must be on the same subject,
and that must be a word of the question. A change inside code, or one that is only weighed, changes no value.
"""

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memd.models import Kind
from memd.patterns import compile_lazily
from memd.store.types import SettingsEdge, SummaryHead
from memd.text import content_stems, is_stop_word, split_identifier, split_sentences

_CHARACTERS_MAX = 2_000
"""Of a memory's text, from its beginning."""
_TEXTS_CACHED = 512
"""Texts whose changes and settings are kept: most searches meet the same memories again."""
_SHARED_MIN = 2
"""Stems that two sentences share if they are about the same value; 1 for a full version or a quoted phrase."""
_TELLS_CHANGE = frozenset(
    {Kind.CHANGE, Kind.FIX, Kind.DECISION, Kind.FACT, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.NOTE}
)
"""What was only found out or weighed changes nothing."""
_UNIT = r"(?:\s?(?:ms|s|sec|seconds?|min|minutes?|h|hours?|days?|weeks?|[kKMG]i?B|%)\b)?"
_VALUE = rf"(?:`[^`\n]{{1,60}}`|\"[^\"\n]{{1,60}}\"|“[^”\n]{{1,60}}”|v?\d+(?:\.\d+)*{_UNIT})"
_CHANGE = compile_lazily(
    rf"\bfrom\s+(?P<was1>{_VALUE})\s+to\s+(?P<now1>{_VALUE})"
    rf"|\b(?:renamed|replaced|changed|switched)\s+(?P<was2>{_VALUE})\s+(?:to|with|by)\s+(?P<now2>{_VALUE})"
    rf"|(?P<now3>{_VALUE})\s+\((?:was|previously|formerly)\s+(?P<was3>{_VALUE})\)"
    rf"|(?:renamed|replaced|moved|raised|lowered|increased|reduced|upgraded|bumped)\b[^`\"“\d\n]{{0,40}}"
    rf"(?P<was4>{_VALUE})\s*(?:→|->)\s*(?P<now4>{_VALUE})",
    re.IGNORECASE,
)
_MAY_TELL = {
    "from ": compile_lazily(r"from [`\"“v\d]"),
    "ed ": compile_lazily(r"ed [`\"“v\d]"),
    "(": compile_lazily(r"\((?:was|previous|former)"),
}
_ARROWS = ("→", "->")
"""Every change has one of these; the letters that each pattern begins with are found fast."""
_SET_TO = compile_lazily(
    rf"(?::=|=|:)\s?(?P<value>\"?(?:true|false|on|off)\"?(?!\w)|\d+(?:\.\d+)*{_UNIT}(?![\w.:]))"
)
_NAME_BEFORE = compile_lazily(
    r"(?<![\w.-])(?P<name>[A-Za-z]\w*(?:[_-]\w+|[a-z][A-Z]\w*))[\"`]?\s?\Z"
)
_NAME_CHARACTERS_MAX = 60
"""Together: a compound name that is set to a number or a switch; see `_SETTING_PARTS`."""
_SETTING_PARTS = frozenset(
    """max maximum min minimum limit timeout interval retry retries threshold enable enabled disable disabled allow ttl port
    depth workers concurrency capacity default budget window batch delay expiry""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""A part of a name that sets something; without one it may as well count, measure or be data."""
_UNDONE = compile_lazily(
    r"\b(?:not|never|would|could|should|might|may|if|whether|suggest\w*|propos\w*|recommend\w*|consider\w*|wrong\w*"
    r"|converts?|goes|go from|switch(?:es)?|moves?|transition\w*|reads?|cop(?:y|ies)|lines?|steps?|parameters?|arguments?"
    r"|variables?|usages?|fields?|structs?|types?|comparisons?|calls?|complexity)\b|n't\b",
    re.IGNORECASE,
)
"""Words of a sentence that weighs a change, tells of one that the program makes, or of one inside the code."""
_CHANGE_STEMS = frozenset(
    content_stems(
        "changed updated renamed replaced switched increased decreased set value file now old new"
    )
)
_REQUEST = compile_lazily(r"^(?:asked|then|user|while): ", re.IGNORECASE)
_FORMER = compile_lazily(
    r"\bused to (?:be|have)\b|\b(?:we|i|you|it|they|this|that|there) used to\b|\bdid .{1,60}\buse to\b"
    r"|\b(?:previously|formerly|originally)\b|\b(?:old|older|former|previous|earlier|original)\s+"
    r"(?:value|name|version|setting|default|limit|behaviou?r|format|decision)\b"
    r"|\b(?:did|was|were|had)\b[^?]*\bbefore(?: that| this| then)?\s*\??\s*$",
    re.IGNORECASE,
)
_ALTERNATIVES = compile_lazily(
    r"(?:^|[,:;(]\s*|\b(?:is it|use|called|named|in|with|on|by|the command)\s+)(?P<left>[^\s,;:?!()]+(?: [^\s,;:?!()]+){0,3}?)"
    r",? or (?P<right>[^\s,;:?!()]+(?: [^\s,;:?!()]+){0,3})\s*(?:[,;:?!()]|$)",
    re.IGNORECASE,
)
_NO_CHOICE = compile_lazily(
    r"^\s*(?:why|when|who|was|were|did|had)\b|\bdifference\b", re.IGNORECASE
)
_STRONG = compile_lazily(r"v?\d+(?:\.\d+){2,}|.*[^\W\d_].*\s.*|--?[a-z][\w-]+|.*\w/\w.*")
"""A full version, a phrase, an option, a path: what does not stand in two places by chance."""
_PLAIN_WORD = compile_lazily(r"[a-z]+")
_SWITCHES = frozenset({"true", "false", "on", "off", "yes", "no"})


@dataclass(frozen=True, slots=True)
class ValueMove:
    """A change of a value that a memory states."""

    memory: SummaryHead
    was: str
    now: str
    stems: frozenset[str]
    """The content of its sentence without the values."""


@dataclass(frozen=True, slots=True)
class OlderValue:
    """A reason for which a memory is outdated."""

    newer_id: int
    now: str

    def __str__(self) -> str:
        """Describe the reason in words."""
        return f"older value; now: {self.now} (#{self.newer_id})"


def asks_for_former(text: str) -> bool:
    """Return whether a question asks for a former value: `what did the limit use to be`, `the old name`."""
    return bool(_FORMER.search(text))


def find_older_values(
    memories: Sequence[SummaryHead], stems: Collection[str], edges: Sequence[SettingsEdge] = ()
) -> dict[int, OlderValue]:
    """The memories that state a value of the question (its stems) which another one of these has changed since.

    `edges`: what some of them have set, as their edits prove; among these the edits alone say what holds (values.py).
    """
    owners = {edge.summary_id for edge in edges}
    found = _find_told_values(memories, stems, edges)
    found = find_older_settings(memories, stems) | found
    return {n: one for n, one in found.items() if not {n, one.newer_id} <= owners}


def _find_told_values(
    memories: Sequence[SummaryHead], stems: Collection[str], edges: Sequence[SettingsEdge]
) -> dict[int, OlderValue]:
    told = [move for one in memories if one.kind in _TELLS_CHANGE for move in find_moves(one)]
    moves = sorted(
        (*told, *_list_edited_values(memories, edges)),
        key=lambda move: (move.memory.at, move.memory.id),
    )
    found: dict[int, OlderValue] = {}
    for i, move in enumerate(moves):
        last = _follow_change(move, moves[i + 1 :])
        if last is None or not move.stems & set(stems):
            continue
        stating = [one for one in memories if _states_old_value(one, move, set(stems))]
        if any(_is_older(last.memory, one) and _mentions_old_value(one, move) for one in memories):
            continue  # the old value may have come back untold
        for one in stating:
            if _is_older(one, move.memory):
                found[one.id] = OlderValue(last.memory.id, last.now)
    return found


def _list_edited_values(
    memories: Sequence[SummaryHead], edges: Sequence[SettingsEdge]
) -> Iterator[ValueMove]:
    """The changes of values that edits prove."""
    heads = {one.id: one for one in memories}
    for edge in edges:
        if (head := heads.get(edge.summary_id)) is not None:
            for key, was, now in edge.detail.get("set", ()):
                # A command or a path stands in a text for other reasons, too.
                if was and not _STRONG.fullmatch(was):
                    yield ValueMove(head, was, now, frozenset(content_stems(" ".join(key))))


def find_older_settings(
    memories: Sequence[SummaryHead], stems: Collection[str]
) -> dict[int, OlderValue]:
    """The memories that set a name of the question to a value which a later one of these set otherwise."""
    found: dict[int, OlderValue] = {}
    present: dict[tuple[int, str], tuple[SummaryHead, str]] = {}
    for one in sorted(memories, key=lambda one: (-one.at, -one.id)):
        for name, value in _read_settings(_text_of(one)).items():
            if len(set(stems) & set(content_stems(name))) < _SHARED_MIN:
                continue
            place = one.project_id, name
            if place not in present and one.kind in _TELLS_CHANGE:
                present[place] = one, value
            newer, now = present.get(place, (one, value))
            if now != value and _is_older(one, newer):
                found.setdefault(one.id, OlderValue(newer.id, f"{name} = {now}"))
    return found


def find_older_alternatives(memories: Sequence[SummaryHead], text: str) -> dict[int, OlderValue]:
    """For `A or B?`: find the memories with one of the names where a later memory of these has only the other.

    Names drift (`clean`, `session cleanup`, `clean` again), and nobody tells of each change; the last use tells.
    """
    names = read_alternatives(text)
    if not names:
        return {}
    having = [(one, [_contains_value(_text_of(one), name) for name in names]) for one in memories]
    using = [(one, has.index(True)) for one, has in having if has.count(True) == 1]
    found: dict[int, OlderValue] = {}
    for one, which in using:
        later = [other for other, _ in using if _is_older(one, other)]
        newest = max(later, key=lambda other: (other.at, other.id), default=None)
        used = next((its for other, its in using if other is newest), which)
        if newest is not None and used != which:
            found[one.id] = OlderValue(newest.id, names[used])
    return found


def read_alternatives(text: str) -> tuple[str, ...]:
    """Read two names that share a part, if the question asks which of them holds; else empty."""
    found = _ALTERNATIVES.search(text)
    if found is None or asks_for_former(text) or _NO_CHOICE.search(text):
        return ()
    left, right = found["left"].split(), found["right"].split()
    parts = _name_parts(right[0])
    start = next((i for i, word in enumerate(left) if _name_parts(word) & parts), None)
    if start is None:
        return ()  # both may hold: `Linux or macOS`, `unit tests or integration tests`
    return tuple(" ".join(words).strip("`\"'“”") for words in (left[start:], right))


def _name_parts(word: str) -> frozenset[str]:
    """The parts of a name by which two names may be of one thing: `retry_max` has `retry` and `max`."""
    parts = {part.lower() for part in split_identifier(word.replace("-", "_"))} | {word.lower()}
    return frozenset(part for part in parts if not is_stop_word(part) and part.isalpha())


@functools.lru_cache(maxsize=_TEXTS_CACHED)
def _read_settings(text: str) -> Mapping[str, str]:
    """Name → its value, of the names that the text sets to one value only."""
    values: dict[str, set[str]] = {}
    for found in _SET_TO.finditer(text) if "=" in text or ":" in text else ():
        before = text[max(0, found.start() - _NAME_CHARACTERS_MAX) : found.start()]
        if named := _NAME_BEFORE.search(before):
            values.setdefault(named["name"], set()).add(found["value"])
    return {
        name: next(iter(given))
        for name, given in values.items()
        if len(given) == 1
        and any(part.lower() in _SETTING_PARTS for part in split_identifier(name.replace("-", "_")))
    }


def find_moves(memory: SummaryHead) -> Iterator[ValueMove]:
    """Find the changes of values that a memory states as done."""
    for was, now, stems in _read_moves(_text_of(memory)):
        yield ValueMove(memory, was, now, stems)


@functools.lru_cache(maxsize=_TEXTS_CACHED)
def _read_moves(text: str) -> Sequence[tuple[str, str, frozenset[str]]]:
    """Old value, new value and the stems of the sentence around them, of each change."""
    if not _may_tell(text):
        return ()
    moves = []
    for sentence in _split_clauses(text):
        if not _may_tell(sentence) or _REQUEST.match(sentence):
            continue
        for found in _CHANGE.finditer(sentence):
            was, now = (_read_value(found, name) for name in ("was", "now"))
            rest = sentence[: found.start()] + " " + sentence[found.end() :]
            if was and now and was.lower() != now.lower() and not _UNDONE.search(rest):
                moves.append((was, now, _subject_stems(rest)))
    return moves


def _may_tell(text: str) -> bool:
    return any(arrow in text for arrow in _ARROWS) or any(
        first in text and pattern.search(text) for first, pattern in _MAY_TELL.items()
    )


def _read_value(found: re.Match[str], name: str) -> str:
    """The value without its quotes; empty if it is a plain word, such as the name of a type."""
    part = found.groupdict()
    text = next(part[f"{name}{i}"] for i in "1234" if part[f"{name}{i}"])
    value = str(text).strip('`"“”').strip()
    is_plain = _PLAIN_WORD.fullmatch(value) and value not in _SWITCHES and text[0] == "`"
    return "" if is_plain else value


def _subject_stems(sentence: str) -> frozenset[str]:
    return frozenset(content_stems(sentence)) - _CHANGE_STEMS


def _text_of(memory: SummaryHead) -> str:
    return f"{memory.title}\n{memory.body}"[:_CHARACTERS_MAX]


def _split_clauses(text: str) -> list[str]:
    return [clause for one in split_sentences(text) for clause in one.split("; ") if clause]


def _follow_change(move: ValueMove, later: Sequence[ValueMove]) -> ValueMove | None:
    """Return the last change in the chain from this one; None if the value came back."""
    last = move
    for one in later:
        if one.memory.project_id == move.memory.project_id and one.was.lower() == last.now.lower():
            last = one
    return None if last.now.lower() == move.was.lower() else last


def _is_older(one: SummaryHead, newer: SummaryHead) -> bool:
    return one.project_id == newer.project_id and one.at < newer.at and one.kind != Kind.SESSION


def _mentions_old_value(one: SummaryHead, move: ValueMove) -> bool:
    """Return whether a memory has the old value and not the new one; if it is a number or a plain word, on the same subject."""
    text = _text_of(one)
    if not _STRONG.fullmatch(move.was):
        return _states_old_value(one, move, set(move.stems))
    return _contains_value(text, move.was) and not _contains_value(text, move.now)


def _states_old_value(one: SummaryHead, move: ValueMove, stems: set[str]) -> bool:
    """Return whether a memory has the old value, in a sentence on the subject of the question, and not the new one."""
    text = _text_of(one)
    if _contains_value(text, move.now) or not _contains_value(text, move.was):
        return False
    least = 1 if _STRONG.fullmatch(move.was) else _SHARED_MIN
    for sentence in _split_clauses(text):
        if _contains_value(sentence, move.was):
            shared = move.stems & _subject_stems(sentence.replace(move.was, " "))
            if len(shared) >= least and shared & stems:
                return True
    return False


def _contains_value(text: str, value: str) -> bool:
    """Return whether a text has the value as a whole: not as a part of a longer name or number."""
    return bool(re.search(rf"(?<![\w$/.-]){re.escape(value)}(?![\w$/-]|\.\w)", text, re.IGNORECASE))
