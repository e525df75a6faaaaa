"""Decide which of several memories states the value that holds now, by what they tell and by what they have set.

A memory that tells of a change (`from 1.25.5 to 1.25.6`, `renamed "list" to "show"`), or that sets what an older one set to
something else (`max_retries = 5`), makes the older memories of its project that state the old value outdated, also where no
supersession was written: they come after it and say what holds now. Asked what was before, they come first. Precision
first: values are quoted, numbers or versions, the same to the letter; both sentences must be on the same subject, and that
must be a word of the question. A change inside code, or one that is only weighed, changes no value.

What each memory has set by its edits is written once, on its edge to the file's settings (`distill/edits.py`). Which
value holds is derived from that whenever it is asked: the last of the edits of one setting in one file. So nothing has to
be undone when a value is given back, a memory is forgotten, or an older session is imported late. A judgment of the pair
overrules it. An edit shows a part of its file. Two keys are one if the shorter one ends the longer one, and the edits prove
it: the later one begins with the value that the earlier one left, or both show the place of the key.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memd.belief.notes import split_note
from memd.belief.polarity import WORDS
from memd.models import Kind, name_setting
from memd.patterns import compile_lazily
from memd.store import SettingsEdge, SummaryHead, judgments, links
from memd.store.database import Connection
from memd.text import content_stems, is_stop_word, one_line, split_identifier, split_sentences

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
_MAY_TELL = {
    "from ": compile_lazily(r"from [`\"“v\d]"),
    "ed ": compile_lazily(r"ed [`\"“v\d]"),
    "(": compile_lazily(r"\((?:was|previous|former)"),
}
_ARROWS = ("→", "->")
"""Every change has one of these; the letters that each pattern begins with are found fast."""
_NAME_BEFORE = compile_lazily(
    r"(?<![\w.-])(?P<name>[A-Za-z]\w*(?:[_-]\w+|[a-z][A-Z]\w*))[\"`]?\s?\Z"
)
_NAME_CHARACTERS_MAX = 60
"""Together: a compound name that is set to a number or a switch; see `_SETTING_PARTS`."""
_SETTING_PARTS = WORDS.list_words("setting parts")
_CHANGE_STEMS = frozenset(
    content_stems(
        "changed updated renamed replaced switched increased decreased set value file now old new"
    )
)
_REQUEST = compile_lazily(r"^(?:asked|then|user|while): ", re.IGNORECASE)
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
    return bool(WORDS["former value"].search(text))


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
    for number, move in enumerate(moves, start=1):
        last = _follow_change(move, moves[number:])
        if last is None or not move.stems & set(stems):
            continue
        # Else the old value may have come back untold.
        if not any(_is_older(last.memory, o) and _mentions_old_value(o, move) for o in memories):
            older = (one for one in memories if _is_older(one, move.memory))
            stating = (one.id for one in older if _states_old_value(one, move, set(stems)))
            found |= dict.fromkeys(stating, OlderValue(last.memory.id, last.now))
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
    """Find, for `A or B?`, the memories with one of the names where a later memory of these has only the other.

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
    found = WORDS["alternatives"].search(text)
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
    for found in WORDS["set to"].finditer(text) if "=" in text or ":" in text else ():
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
        for found in WORDS["change of a value"].finditer(sentence):
            was, now = (_read_value(found, name) for name in ("was", "now"))
            rest = sentence[: found.start()] + " " + sentence[found.end() :]
            if was and now and was.lower() != now.lower() and not WORDS["weighed"].search(rest):
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
    clauses = (one for one in _split_clauses(text) if _contains_value(one, move.was))
    shared = (move.stems & _subject_stems(one.replace(move.was, " ")) for one in clauses)
    return any(len(both) >= least and both & stems for both in shared)


def _contains_value(text: str, value: str) -> bool:
    """Return whether a text has the value as a whole: not as a part of a longer name or number."""
    return bool(re.search(rf"(?<![\w$/.-]){re.escape(value)}(?![\w$/-]|\.\w)", text, re.IGNORECASE))


# ── Values that edits have set ───────────────────────────────────────────────────────────────────


Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ValueSet:
    """One setting that one memory has given a value."""

    edge: SettingsEdge
    key: Key
    was: str
    now: str
    is_lone: bool
    """Whether no other key that the memory has set in the file has this name."""

    @property
    def is_whole(self) -> bool:
        """Return whether the memory saw all of the file."""
        return bool(self.edge.detail.get("whole"))


@dataclass(frozen=True, slots=True)
class ReplacedValue:
    """A value that a memory has set, and the memory that set it last."""

    older_id: int
    newer_id: int
    key: Key
    was: str
    """What the older memory says."""
    now: str
    """The same as `was` if the value has come back: then nothing is replaced, but the newer one told it last."""
    file: str
    is_only: bool
    """Whether the older memory is about values alone, all of which are replaced."""

    @property
    def name(self) -> str:
        """The name of the setting."""
        return name_setting(self.key)

    @property
    def pair(self) -> tuple[int, int]:
        """Return both ids, the smaller one first."""
        return min(self.older_id, self.newer_id), max(self.older_id, self.newer_id)

    @property
    def is_replaced(self) -> bool:
        """Return whether the older memory states a value that no longer holds."""
        return self.was != self.now

    def __str__(self) -> str:
        """Describe it for the older memory: `value replaced by #304: RETRY_LIMIT = 60, not 30 (config.toml)`."""
        return f"value replaced by #{self.newer_id}: {self.name} = {self.now}, not {self.was} ({self.file})"

    @property
    def told_by_newer(self) -> str:
        """Describe it for the newer memory: `RETRY_LIMIT = 30 of #303`."""
        return f"{self.name} = {self.was} of #{self.older_id}"


@dataclass(frozen=True, slots=True)
class SetValues:
    """Values that some memories, and the others of their projects, have set in the same files."""

    edges: Sequence[SettingsEdge] = ()
    replaced: Sequence[ReplacedValue] = ()
    """The values of these memories that another one has set since, and those that these have set since."""

    @property
    def owners(self) -> frozenset[int]:
        """The memories that have set something there."""
        return frozenset(edge.summary_id for edge in self.edges)


def read_set_values(
    tx: Connection, summary_ids: Collection[int], until: int | None = None
) -> SetValues:
    """Read what these memories have set and what became of it.

    Nothing of after `until` (UTC ms) counts. Who may see the other memory is for the caller to know.
    """
    edges = links.settings_beside(tx, summary_ids) if summary_ids else []
    edges = [edge for edge in edges if until is None or edge.at <= until]
    wanted = set(summary_ids)
    near = [one for one in find_replaced(edges) if {one.older_id, one.newer_id} & wanted]
    judged = judgments.stances_of_pairs(tx, {one.older_id for one in near}) if near else {}
    return SetValues(edges, [one for one in near if one.pair not in judged])


def find_replaced(edges: Sequence[SettingsEdge]) -> list[ReplacedValue]:
    """Find each value that another memory has set since. `edges` are in order of time."""
    by_file: dict[tuple[int, str], list[_ValueSet]] = {}
    by_name: defaultdict[tuple[int, str, str], list[_ValueSet]] = defaultdict(list)
    for edge in edges:
        place = edge.project_id, edge.file
        sets = [one for one in _read_sets(edge) if not _is_kept(one, by_name[*place, one.key[-1]])]
        by_file.setdefault(place, []).extend(sets)
        for one in sets:
            by_name[*place, one.key[-1]].append(one)
    lasts = {
        id(one): last
        for sets in by_name.values()
        for number, one in enumerate(sets, start=1)
        if (last := _find_last(one, sets[number:])) is not None
    }
    every = [one for sets in by_file.values() for one in sets]
    found = [(one, lasts[id(one)]) for one in every if id(one) in lasts]
    standing = {one.edge.summary_id for one in every if lasts.get(id(one), one).now == one.now}
    return [
        ReplacedValue(
            one.edge.summary_id, last.edge.summary_id, one.key, one.now, last.now, one.edge.file,
            is_only=bool(one.edge.detail.get("only")) and one.edge.summary_id not in standing,
        )
        for one, last in found
    ]  # fmt: skip


def _read_sets(edge: SettingsEdge) -> list[_ValueSet]:
    rows = edge.detail.get("set")
    given = [
        (tuple(map(str, key)), str(was), str(now))
        for key, was, now in (rows if isinstance(rows, list) else ())
        if key
    ]
    names = [key[-1] for key, _, _ in given]
    return [_ValueSet(edge, key, was, now, names.count(key[-1]) == 1) for key, was, now in given]


def _is_kept(one: _ValueSet, known: Sequence[_ValueSet]) -> bool:
    """Return whether a whole file was written that has a value which was there before: nobody has set it again."""
    if one.was or not one.is_whole:
        return False
    holder = next((other for other in reversed(known) if _goes_on(other, one)), None)
    return holder is not None and holder.now == one.now


def _find_last(one: _ValueSet, later: Sequence[_ValueSet]) -> _ValueSet | None:
    """The last of those that set the same setting, if the value was another one at any time since."""
    last, has_changed = one, False
    for other in later:
        if other.edge.summary_id != one.edge.summary_id and _goes_on(last, other):
            last = other
            has_changed |= other.now != one.now
    return last if has_changed else None


def _goes_on(one: _ValueSet, other: _ValueSet) -> bool:
    """Return whether a later edit is of the same setting."""
    short, long = sorted((one.key, other.key), key=len)
    if long[-len(short) :] != short:
        return False
    is_placed = one.key == other.key and (len(one.key) > 1 or one.key[0].isupper())
    if other.was:
        return other.was == one.now or is_placed or (one.is_whole and one.is_lone)
    # All of the file was written: then the key is there once, or with its whole path.
    return is_placed or (other.is_whole and (one.key == other.key or other.is_lone))


# ── The line of a file that a fact rests on ──────────────────────────────────────────────────────


_PLACE = re.compile(r"([^\s:“”\"]{1,300}):(\d{1,7})(?:\b.*)?", re.DOTALL)
_WRITTEN = re.compile(r"([^\s:“”]+):(\d+) “(.*)”")
_FILE_BYTES_MAX = 2_000_000
_LINE_CHARACTERS_MAX = 200
_FILES_KEPT = 64


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file, its path relative to the project."""

    path: str
    number: int
    text: str

    def __str__(self) -> str:
        """Format it as in a note: `app/log.py:12 “LOGGER = …”`."""
        return f"{self.path}:{self.number} “{self.text}”"


def read_place(quote: str, root: str) -> FileLine | None:
    """The line that a quote such as `app/log.py:12` names; None if there is none, or it is outside of the project."""
    match = _PLACE.fullmatch(quote.strip())
    file = match and _find_file(root, match[1])
    if match is None or file is None:
        return None
    number = int(match[2])
    text = next(iter(_read_lines(*file)[number - 1 : number] if number else ()), "")
    return FileLine(Path(match[1]).as_posix(), number, text) if text else None


def find_line(body: str) -> FileLine | None:
    """The line that a memory rests on; None if it rests on none."""
    match = _WRITTEN.fullmatch(split_note(body).line) if "\nLine: " in body else None
    return FileLine(match[1], int(match[2]), match[3]) if match else None


def describe_line(body: str, root: str) -> str:
    """Return what became of the line that a memory rests on, if it is gone; empty if it is there, or the tree is not here."""
    line = find_line(body)
    if line is None or not Path(root).is_dir() or "[REDACTED" in line.text:
        return ""
    file = _find_file(root, line.path)
    if file is None:
        return f"{line.path}, on which it rests, is gone"
    # It may have moved within its file.
    is_there = line.text in _read_lines(*file)
    return "" if is_there else f"the line on which it rests is gone: {line.path}:{line.number}"


def _find_file(root: str, path: str) -> tuple[str, int, int] | None:
    """Return (path, time of its last change, size) of a file of a project, which must lie in it."""
    try:
        top = Path(root).resolve(strict=True)
        file = (top / path).resolve(strict=True)
        stat = file.stat()
    except (OSError, ValueError, RuntimeError):
        return None
    is_own = file.is_relative_to(top) and file.is_file() and ".git" not in file.parts
    if not is_own or stat.st_size > _FILE_BYTES_MAX:
        return None
    return str(file), stat.st_mtime_ns, stat.st_size


@functools.lru_cache(_FILES_KEPT)
def _read_lines(path: str, _changed_at: int, _size: int) -> tuple[str, ...]:
    """The lines of a file as they are compared: without the space around them, and none too long."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(one_line(line, _LINE_CHARACTERS_MAX) for line in text.splitlines())
