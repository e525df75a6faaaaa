"""The text of what an agent notes: its own sentence, why it holds, and the user's words that prove it. Pure.

A proved note has two parts, and is shown with both: what the agent says, and what the user said.

Who quotes mends: an apostrophe, an umlaut, a slip of the keyboard, and leaves out what stands between (“…”). What is
found are whole sentences in the record's own wording, so a mended word proves no more than what was typed.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from memd.belief import polarity
from memd.models import ORDER_KINDS, UNPROVED_MARK, Authority, Kind
from memd.text import (
    WORD,
    content_stems,
    find_sentence_ends,
    fold,
    is_stop_word,
    one_line,
    split_sentences,
    without_elision,
    words,
)
from memd.time_expressions import format_time

BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_ELLIPSIS = re.compile(r"\s*[\[(]?(?:…|\.{3,})[\])]?\s*")
_APOSTROPHES = str.maketrans("", "", "'’")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_QU = re.compile(r"(?i)(?:\w*qu)['’](?=\w)")
_SLIP_LETTERS_MIN, _SLIP_WORDS_MIN = 4, 5
"""A shorter word, and one of fewer words of a quote, is read as it stands."""
_SHARED_STEMS_MIN = 2
_SHARED_PART_MIN = 1 / 3
_SOURCE_WORDS_MIN = 6
"""A run of this many words that also stands in a tool's output is that output's."""
_ALIKE_MIN, _ALIKE_STEMS_MIN = 0.75, 3
_ALIKE_LINES = 2


class QuotedPlace(NamedTuple):
    """Sentences that hold quoted words: as typed, what of them stands before the words, and what behind them."""

    sentence: str
    before: str
    behind: str
    following: str
    """The sentence behind them, if it only takes back or limits what they say."""


def strip_unseen(text: str) -> str:
    """Strip invisible characters: of no width, of direction, soft hyphens."""
    if text.isascii():
        return text
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def words_of(text: str) -> list[str]:
    """Return the words of a text without case, accents and marks: quotes are compared so."""
    return [fold(word) for word in words(text)]


def find_quote(
    quote: str, parts: Sequence[str], *, allows_slips: bool = False
) -> QuotedPlace | None:
    """Find the whole sentences of one of the parts that hold the quoted words."""
    for part in map(strip_unseen, parts):
        spans = [span for m in WORD.finditer(part) for span in _split_elision(m)]
        tokens = [part[start:end] for start, end in spans]
        found = _find_words(quote, tokens, allows_slips=allows_slips)
        if found is None:
            continue
        start, end = spans[found.start][0], spans[found.stop - 1][1]
        first, last = _widen_to_sentences(part, start, end)
        head = _find_introduction(part, first)
        after = polarity.retracts(part[last : _widen_to_sentences(part, last, last + 1)[1]])
        return QuotedPlace(
            f"{head}{part[first:last].strip()}", f"{head}{part[first:start]}", part[end:last], after
        )
    return None


def _find_words(quote: str, tokens: Sequence[str], *, allows_slips: bool) -> range | None:
    """Find the words of a quote in a row; where it has an ellipsis, others may stand between."""
    pieces = [
        found
        for one in _ELLIPSIS.split(quote)
        if (found := [one[at:to] for m in WORD.finditer(one) for at, to in _split_elision(m)])
    ]
    keys = [_spell(token) for token in tokens]
    first = start = 0
    for number, piece in enumerate(pieces):
        wanted = [_spell(word) for word in piece]
        ends = range(start, len(keys) - len(wanted) + 1)
        slips = len(wanted) // _SLIP_WORDS_MIN if allows_slips else 0
        at = next((n for n in ends if _are_alike(wanted, keys[n : n + len(wanted)], slips)), None)
        if at is None:
            return None
        first = at if number == 0 else first
        start = at + len(wanted)
    return range(first, start) if pieces else None


def _split_elision(found: re.Match[str]) -> list[tuple[int, int]]:
    """Return the bounds of the words of a match: “qu'on” is two."""
    start, end = found.span()
    rest = _QU.sub("", without_elision(found[0]))
    return (
        [(start, end - len(rest)), (end - len(rest), end)] if rest != found[0] else [(start, end)]
    )


def _spell(word: str) -> str:
    """Return the spelling by which words are compared: “dont” is “don't”, “fuer” is “für”."""
    return fold(word.translate(_APOSTROPHES).translate(_UMLAUTS))


def _are_alike(wanted: Sequence[str], found: Sequence[str], slips: int) -> bool:
    differing = [(one, other) for one, other in zip(wanted, found, strict=True) if one != other]
    return len(differing) <= slips and all(_is_slip(*pair) for pair in differing)


def _is_slip(one: str, other: str) -> bool:
    """Return whether a word and the typed `other` differ by one letter, or by two that changed places."""
    short, long = sorted((one, other), key=len)
    if len(short) < _SLIP_LETTERS_MIN or not (one + other).isalpha() or len(long) > len(short) + 1:
        return False
    if is_stop_word(other) or any(map(polarity.is_negation, (one, other))):
        return False
    at = next((n for n in range(len(short)) if short[n] != long[n]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    turned = f"{short[at + 1 : at + 2]}{short[at : at + 1]}{short[at + 2 :]}"
    return short[at + 1 :] == long[at + 1 :] or turned == long[at:]


def _find_introduction(text: str, at: int) -> str:
    """Return the line with a colon that introduces what begins at `at`, maybe above other items of its list."""
    for line in reversed(text[:at].rstrip().split("\n")):
        if line.rstrip().endswith((":", "：")):
            return f"{split_sentences(line)[-1]}\n"
        if not (BULLET.match(line) and BULLET.match(text, text.rfind("\n", 0, at) + 1)):
            break
    return ""


def _widen_to_sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the sentences that [start, end) lies in."""
    ends = [0, *find_sentence_ends(text)]
    first = max(one for one in ends if one <= start)
    indent = len(text[first:start]) - len(text[first:start].lstrip())
    return first + indent, min((one for one in ends if one >= end), default=len(text))


def shares_content(text: str, other: str) -> bool:
    """Return whether two texts are about the same: they share two content words, or a third of those of `other`."""
    wanted, found = content_of(other), content_of(text)
    shared = len(wanted & found)
    return shared >= _SHARED_STEMS_MIN or (shared > 0 and shared >= len(wanted) * _SHARED_PART_MIN)


def content_of(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    return frozenset(content_stems(text))


def count_shared(text: str, other: str) -> int:
    """Count the content words that two texts share."""
    return len(content_of(text) & content_of(other))


def has_words(text: str, wanted: Sequence[str]) -> bool:
    """Return whether these words stand in a row in a text."""
    return bool(wanted) and _join_words(wanted) in _join_words(words_of(text))


def has_run(tokens: Sequence[str], output: str) -> bool:
    """Return whether the least run of these words that counts stands in a tool's output."""
    there = _join_words(words_of(output))
    starts = range(len(tokens) - _SOURCE_WORDS_MIN + 1)
    return any(_join_words(tokens[at : at + _SOURCE_WORDS_MIN]) in there for at in starts)


def _join_words(tokens: Sequence[str]) -> str:
    return f" {' '.join(tokens)} "


def says_alike(text: str, output: str) -> bool:
    """Return whether a few sentences in a row of a tool's output have most of the content words of a text."""
    wanted = content_of(text)
    if len(wanted) < _ALIKE_STEMS_MIN:
        return False
    there = [content_of(one) & wanted for one in split_sentences(output)]
    return any(
        len(frozenset().union(*there[at : at + _ALIKE_LINES])) >= _ALIKE_MIN * len(wanted)
        for at in range(len(there))
        if there[at]
    )


_LABELS_OF = {
    "why": "Why",
    "said": "Said",
    "proved": "Proved",
    "quoted": "Quoted, not proved",
    "heard": "Said, but not surely that",
    "refuted": "Not his word, because",
    "about": "About",
    "stood": "Proposed, and left standing",
    "seen": "Seen in a tool's output",
    "line": "Line",
    "check": "Check",
}
"""Field of a note → how its line begins, in their order."""
_IN_QUOTES = frozenset({"said", "quoted", "heard", "about", "stood", "seen"})
_LABELS = f"(?:{'|'.join(_LABELS_OF.values())})"
_PARTS = re.compile(rf"\n\n(?=(?:{_LABELS}: .*(?:\n|\Z))+\Z)")
_PART = re.compile(rf"^({_LABELS}): (?:“(.*)”|(.*))$", re.MULTILINE)
_FAKED = re.compile(rf"^(\s*)({_LABELS}):", re.MULTILINE)
_CONTENT_BEGINS = "\n\n```json content\n"
_CONTENT = re.compile(_CONTENT_BEGINS + r"(\{.*\})\n```\s*\Z")
"""Structured content at the end of a text: on one line, so that it cannot end its own fence."""
_AS_QUOTED = "what is quoted"
"""In place of a sentence that is the quoted words."""
_WORDS_SHOWN = 8
_QUOTATION = re.compile(
    r"\"([^\"\n]{8,300})\"|“([^”\n]{8,300})”|«([^»\n]{8,300})»|„([^“”\n]{8,300})[“”]"
)
_QUOTED_WORDS_MIN = 3
_ENDS = " .!"
"""Ends of a sentence that its quote may leave out."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note in its parts. `said` and `about` are proved; `quoted` proves nothing."""

    text: str
    why: str = ""
    said: str = ""
    about: str = ""
    quoted: str = ""
    heard: str = ""
    """The user's sentence that has the quoted words, and does not surely say what the text says."""
    refuted: str = ""
    """Why the quoted words state nothing of the user's."""
    stood: str = ""
    """The agent's own proposal that the user let stand and built on."""
    seen: str = ""
    """Words of a tool's output."""
    line: str = ""
    """The line of a file that it rests on, as `FileLine` writes it."""
    proved: str = ""
    """When, and on which device: it travels with the words, but the event that they stand in does not."""
    check: str = ""
    """How the agent says that it can be checked."""

    def format(self) -> str:
        """The body of the memory; its text cannot pass for one of the other parts."""
        text = _FAKED.sub(r"\1\2 -", self.text.strip())
        said = {name: " ".join(getattr(self, name).split()) for name in _LABELS_OF}
        written = {name: f"“{told}”" if name in _IN_QUOTES else told for name, told in said.items()}
        if said["heard"].rstrip(_ENDS) == said["quoted"].rstrip(_ENDS):
            written["heard"] = _AS_QUOTED
        parts = [f"{label}: {written[name]}" for name, label in _LABELS_OF.items() if said[name]]
        return "\n\n".join(filter(None, (text, "\n".join(parts))))


@dataclass(frozen=True, slots=True)
class QuotedNote:
    """A note, and the words by which the agent proves it."""

    text: str
    quote: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """The user said it: where, and in which words. The quote is the record's, and a whole sentence."""

    event_id: int
    at: int
    quote: str
    about: str = ""
    about_event_id: int | None = None


@dataclass(frozen=True, slots=True)
class Backing:
    """Backing for a note that is not the user's word: words of the agent that the user let stand, or of a tool's output."""

    quote: str
    event_id: int = 0
    at: int = 0
    stood: int = 0
    """How many prompts of the user's followed and did not contradict; 0 of a tool's output."""


@dataclass(frozen=True, slots=True)
class Unproved:
    """A reason, in a sentence, for which a note stays the agent's word, and what to quote instead."""

    reason: str
    advice: str = ""
    is_unknown: bool = False
    """The words are not in the record; what has not arrived yet may still prove it."""
    evidence: Backing | None = None
    heard: str = ""
    """The user's sentence that has the quoted words, if only the note says another thing, or it in other words."""
    is_refuted: bool = False
    """Whether the quoted words are known to state nothing that holds for the user."""
    is_foreign: bool = False
    """Whether they are the words of a page, a file or a tool."""

    def as_kind(self, kind: Kind) -> "Unproved":
        """Return the same for a note of a kind: what a page says is no rule, no decision and no task."""
        is_order = self.is_foreign and kind in {*ORDER_KINDS, Kind.TASK}
        return replace(self, evidence=None, is_refuted=True) if is_order else self


def mark_unproved(note: Note, claim: QuotedNote, refused: Unproved) -> Note:
    """Give a note the words that it quotes, and what is known of them."""
    refuted = refused.reason if refused.is_refuted else ""
    return replace(
        note, quoted=claim.quote, about=claim.about, heard=refused.heard, refuted=refuted
    )


def name_proof(at: int, device: str) -> str:
    """Name when and where a note was proved: `2026-11-25T09:15Z on desk`."""
    return f"{format_time(at)} on {device}"


def split_note(body: str) -> Note:
    """The parts of a memory's body; one that is no note is all text."""
    *_, match = (None, *_PARTS.finditer(body))
    if match is None:
        return Note(body)
    found = {label: quoted or plain for label, quoted, plain in _PART.findall(body[match.end() :])}
    parts = {name: found.get(label, "") for name, label in _LABELS_OF.items()}
    if parts["heard"] == _AS_QUOTED:
        parts["heard"] = parts["quoted"]
    return Note(body[: match.start()], **parts)


def show_upheld(body: str) -> str:
    """The body of a note that its user upheld: what it quotes of him is what he said."""
    if UNPROVED_MARK not in body:
        return body
    note = split_note(body)
    return replace(note, said=note.heard or note.quoted, quoted="", heard="", refuted="").format()


def describe_unproved(body: str, voice: Authority, *, is_pinned: bool) -> str:
    """Tell what to know of a note whose quoted words do not prove it: `he said “…”`, `not his word: …`; empty of anything else."""
    if UNPROVED_MARK not in body or is_pinned or voice >= Authority.USER_TOLD:
        return ""
    note = split_note(body)
    if note.heard:
        return f"he said “{note.heard}”"
    return f"not his word: {note.refuted}" if note.refuted else "claimed, not proved"


def add_content(text: str, content: Mapping[str, Any] | None) -> str:
    """Add structured content to a text, its keys sorted, so that equal contents make equal texts: Memoturn's."""
    if not content:
        return text
    written = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return f"{text.strip()}\n\n```json content\n{written}\n```"


def read_content(body: str) -> dict[str, Any] | None:
    """The structured content of a memory; None if it has none."""
    found = _CONTENT.search(split_note(body).text) if _CONTENT_BEGINS in body else None
    try:
        return json.loads(found[1]) if found else None
    except ValueError:  # redaction has replaced what a key or a number was
        return None


def drop_content(text: str) -> str:
    """The text without its structured content, which answers give beside it."""
    return _CONTENT.sub("", text) if _CONTENT_BEGINS in text else text


def find_quotes(text: str) -> Iterator[str]:
    """Yield what a text gives as somebody's words: quotations of a few words or more."""
    for match in _QUOTATION.finditer(text):
        quote = next(group for group in match.groups() if group)
        if len(quote.split()) >= _QUOTED_WORDS_MIN:
            yield quote


def show_said(body: str) -> str:
    """The user's own words behind a proved note, at most eight of them: `said: "migrations by hand only"`."""
    said = split_note(body).said
    if not said:
        return ""
    tokens = said.split()
    shown = " ".join(tokens[:_WORDS_SHOWN]) + (" …" if len(tokens) > _WORDS_SHOWN else "")
    return f'said: "{one_line(shown, 80)}"'
