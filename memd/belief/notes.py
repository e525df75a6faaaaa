"""The text of what an agent notes: its own sentence, why it holds, and what proves it. Pure.

A proved note has two parts, and is shown with both: what the agent says, and what the user said.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memd.models import ORDER_KINDS, UNPROVED_MARK, Authority, Kind
from memd.text import one_line
from memd.time_expressions import format_time

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
