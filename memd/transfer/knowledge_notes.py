"""Memories as notes of the Open Knowledge Format (version 0.2), and such notes as memories.

A note is a Markdown file with a YAML head (https://github.com/GoogleCloudPlatform/knowledge-catalog, okf/SPEC.md).
What the format has no field for stands under `memd`. Links to what a memory supersedes, or is superseded by, stand
below a comment at the end, which is no part of the memory.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memd.models import Authority, Kind
from memd.text import one_line
from memd.time_expressions import TIME_MAX_MS
from memd.transfer import markdown
from memd.transfer.record import (
    TITLE_CHARACTERS_MAX,
    ForeignMemory,
    clean_files,
    clean_tags,
    parse_time_ms,
)
from memd.transfer.yaml_head import NoteHead, read_head

Fields = dict[str, Any]
"""A memory as an export has it."""
OKF_VERSION = "0.2"
RESERVED = frozenset({"index.md", "log.md"})
LINKS_MARK = "<!-- memd: links -->"
DEPRECATED = "deprecated"
_UID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_PLAIN = re.compile(r"[^\W\d_](?:[\w ./+-]*[\w./+])?")
"""Text that YAML reads as itself without quotes."""
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_DESCRIPTION_CHARACTERS_MAX = 160
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_HUMAN = "human:"
_USER = f"{_HUMAN}user"
_DISTILLED = "process:memd"
_DATE_FIELDS = ("timestamp", "updated", "modified", "date", "created")


# ── Memory to note ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class NoteLink:
    """A link to the note of another memory. `path` begins at the folder of all notes."""

    title: str
    path: str


def write_note(
    memory: Fields, project: str, supersedes: Sequence[NoteLink], superseded_by: Sequence[NoteLink]
) -> str:
    """The note of a memory, whose fields are those of an export."""
    body = memory["body"].replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    lines = ["---", *_write_head(memory, project, is_superseded=bool(superseded_by)), "---", body]
    links = [
        *(f"Supersedes {_write_link(one)}." for one in supersedes),
        *(f"Superseded by {_write_link(one)}." for one in superseded_by),
    ]
    if links or LINKS_MARK in body:
        lines += ["", LINKS_MARK, *(line for link in links for line in ("", link))]
    return "\n".join(lines) + "\n"


def _write_head(memory: Fields, project: str, *, is_superseded: bool) -> Iterator[str]:
    authority = Authority.of(memory["authority"], memory.get("rule", ""))
    yield f"type: {memory['kind'].capitalize()}"
    yield f"title: {quote(memory['title'])}"
    if description := describe(memory):
        yield f"description: {quote(description)}"
    if memory["tags"]:
        yield f"tags: {_quote_list(memory['tags'])}"
    by = _USER if authority.speaker == "user" else _DISTILLED
    yield f'generated: {{ by: "{by}", at: {_write_time(memory["at"])} }}'
    if is_superseded:
        yield f"status: {DEPRECATED}"
    if memory["expires_at"] is not None:
        yield f"stale_after: {_write_time(memory['expires_at'])}"
    yield "memd:"
    yield f"  id: {quote(memory['uid'])}"
    yield f"  project: {quote(project)}"
    yield f"  speaker: {authority.speaker}"
    if memory["topic_key"] is not None:
        yield f"  topic: {quote(memory['topic_key'])}"
    if memory["files"]:
        yield f"  files: {_quote_list(memory['files'])}"


def describe(memory: Fields) -> str:
    """The first sentence of a memory, unless its title says the same."""
    whole = one_line(memory["body"], 4 * _DESCRIPTION_CHARACTERS_MAX)
    sentence = one_line(_SENTENCE_END.split(whole, maxsplit=1)[0], _DESCRIPTION_CHARACTERS_MAX)
    title = memory["title"].rstrip(".… ")
    return "" if sentence.startswith(title) or title.startswith(sentence.rstrip(".")) else sentence


def quote(text: str) -> str:
    """A text as a YAML scalar of one line."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _quote_list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(quote, texts))}]"


def _write_time(at: int) -> str:
    at = min(max(at, 0), TIME_MAX_MS)  # a calendar ends
    when = dt.datetime.fromtimestamp(at // 1_000, dt.UTC).replace(microsecond=at % 1_000 * 1_000)
    return when.isoformat(timespec="milliseconds" if at % 1_000 else "seconds")[:-6] + "Z"


def _write_link(link: NoteLink) -> str:
    return write_link(link.title, f"/{link.path}")


def write_link(title: str, target: str) -> str:
    """A Markdown link."""
    words = re.sub(r"([\\\[\]<>*_`])", r"\\\1", one_line(title, TITLE_CHARACTERS_MAX))
    return f"[{words}]({target})"


# ── Note to memories ───────────────────────────────────────────────────────────────────────────


def read_note(path: str, text: str, at: int | None) -> tuple[list[ForeignMemory], str]:
    """The memories of a note, or why it has none; `at`: when it was changed. BadRequest names the line.

    A note that memd wrote is one memory; another is one for each section if it is long.
    """
    head = read_head(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    if head is None:
        return [], "without a YAML head (`memd import markdown` reads it)"
    if head.text("status").lower() == DEPRECATED:
        return [], DEPRECATED
    body = head.body.rpartition(f"\n{LINKS_MARK}")[0] if LINKS_MARK in head.body else head.body
    own, made = head.table("memd"), head.table("generated")
    dates = (_read_time(made, "at"), *(_read_time(head, name) for name in _DATE_FIELDS), at)
    type_ = head.text("type")
    kind = type_.lower()
    is_kind = kind in set(Kind)
    name = path.rpartition("/")[2].rpartition(".")[0]
    uid = own.text("id")
    note = ForeignMemory(
        title=one_line(head.text("title") or name, TITLE_CHARACTERS_MAX),
        text=body.strip("\n") or head.text("description"),
        line=head.line,
        kind=Kind(kind) if is_kind else Kind.NOTE,
        at=next((date for date in dates if date is not None), None),
        tags=clean_tags([*head.texts("tags"), *([] if is_kind else [type_])]),
        files=clean_files(own.texts("files")),
        project=own.text("project") or None,
        uid=uid if _UID.fullmatch(uid) else None,
        speaker=_read_speaker(own, made),
        topic_key=own.text("topic") or None,
        expires_at=_read_time(head, "stale_after"),
    )
    if not note.text.strip():
        return [], "empty"
    return ([note] if note.uid else list(markdown.split_note(note))), ""


def _read_time(head: NoteHead, name: str) -> int | None:
    return parse_time_ms(head.text(name)) if head.text(name) else None


def _read_speaker(own: NoteHead, made: NoteHead) -> str:
    """Whose word a note says that it is: an agent's, unless it says otherwise."""
    said = own.text("speaker")
    if said in {"user", "agent", "tool"}:
        return said
    return "user" if made.text("by").startswith(_HUMAN) else "agent"
