"""Sentences of a turn that may name it, each cut to the length of a title. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd.distill.episodes import Story
from memd.distill.text import drop_fences, is_short, read_statements, strip_markup
from memd.machine_text import read_plan
from memd.text import normalised

TITLE_CHARACTERS = 120
_CUT_MIN = 40
_HEAD_MAX, _TAIL_MAX = 16, 6
"""Statements of a closing message: most that name a turn stand at its beginning, some at its end."""
_SHOWN_WORDS_MIN = 5
_FIRST_MAX, _PROMPT_MAX, _PROMPT_TAIL_MAX = 3, 5, 2
_WORDS_MIN, _SIGNS_MIN = 2, 4
"""Words of a title, or signs where words are not apart."""
_ASIDE = re.compile(r"\s*\((?![^()]*\bno\b|[^()]*\bnot\b)[^()]{3,}\)")
_BORDERS = (
    re.compile(r"(?<=[\w`)\"'”%])(?=\s+[–—]\s|\s+-\s|;\s|\.\s|:\s)"),
    re.compile(r"(?<=[\w`)\"'”%])(?=,\s|\s+\()"),
)  # dashes as people type them
"""Ends of clauses, the surest first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may name a turn, or a part of its title."""

    text: str
    """On one line, at most as long as a title."""
    origin: str
    """`closing`, `first`, `prompt`, `typed` or `plan`."""
    form: str
    """`sentence`, `heading` or `item`."""
    position: int
    """Its number among those of its origin."""
    count: int
    """Number of those of its origin."""
    length: int
    """Characters of the whole sentence."""
    leads: bool = False
    """It ended with a colon."""


def list_candidates(story: Story, told: Sequence[str] = ()) -> list[Candidate]:
    """All sentences that may name a turn, once each; the closing message first."""
    found: dict[str, Candidate] = {}
    elsewhere = [normalised(text) for text in told]
    shown = [line for said in story.prompts for line in _list_fenced(said.text)]
    for one in _read_all(story):
        said = normalised(one.text)
        is_told = one.origin == "prompt" and any(said in text or text in said for text in elsewhere)
        if not is_told and not any(line in said for line in shown):
            found.setdefault(one.text.lower(), one)
    return list(found.values())


def _list_fenced(prompt: str) -> Iterator[str]:
    """The sentences that a prompt shows between fences: what repeats them is nobody's outcome."""
    if "```" in prompt or "~~~" in prompt:
        kept = drop_fences(prompt)
        for line in prompt.split("\n"):
            if line not in kept and len(line.split()) >= _SHOWN_WORDS_MIN:
                yield normalised(line)


def _read_all(story: Story) -> Iterator[Candidate]:
    told = story.told
    yield from _read(told, "closing", _HEAD_MAX, _TAIL_MAX)
    if story.texts and story.texts[0].text != told:
        yield from _read(story.texts[0].text, "first", _FIRST_MAX, 0)
    for said in story.prompts:
        if plan := read_plan(said.text):
            yield from _make([(plan.subject, "heading", False)], "plan", 1)
        elif not is_short(said.text):
            yield from _read(said.text, "prompt", _PROMPT_MAX, _PROMPT_TAIL_MAX)
    typed = [one.said.text for one in story.refusals]
    typed += [one.answer.text for one in story.questions]
    for text in typed:
        yield from _read(text, "typed", 2, 0)


def _read(message: str, origin: str, head: int, tail: int) -> Iterator[Candidate]:
    statements = [(one.text, one.form, one.leads) for one in read_statements(message)]
    kept = statements
    if len(statements) > head + tail:
        kept = [*statements[:head], *statements[len(statements) - tail :]]
    yield from _make(kept, origin, len(statements))


def _make(
    statements: Sequence[tuple[str, str, bool]], origin: str, count: int
) -> Iterator[Candidate]:
    for position, (text, form, leads) in enumerate(statements):
        shown = shorten(text)
        if len(shown.split()) >= _WORDS_MIN or (len(shown) >= _SIGNS_MIN and not shown.isascii()):
            yield Candidate(shown, origin, form, position, count, len(text), leads)


def shorten(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """A sentence within so many characters: without asides in brackets, else cut where a clause ends; unended marks closed."""
    flat = " ".join(strip_markup(text).split())
    if len(flat) > limit:
        flat = _ASIDE.sub("", flat)
    if len(flat) <= limit:
        return flat.rstrip(" ,;:")
    for border in _BORDERS:
        ends = [m.start() for m in border.finditer(flat, _CUT_MIN, limit + 1)]
        if ends := [end for end in ends if is_closed(flat[:end])]:
            return flat[: ends[-1]].rstrip(" ,;:")
    cut = flat[: limit - 1].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.-(") + "…"


def is_closed(text: str) -> bool:
    """Return whether no code mark or bracket is open at the end of a text."""
    return text.count("`") % 2 == 0 and text.count("(") <= text.count(")")
