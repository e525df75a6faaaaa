"""The turn itself: what was asked, answered, changed and run; and what a compaction kept. Pure."""

import re

from memd.distill import complaint, failures, prose, quality
from memd.distill.story import Command, Context, Said, Story
from memd.models import Draft, DraftEdge, EdgeType, Kind, Source
from memd.text import one_line, unique

_COMMANDS_MAX = 12
_FILES_MAX = 20
_EDITS_QUOTED = 10
_REPORTS_MAX = 3
_ANSWER_TRIVIAL = 160
_SESSION_MIN = 40
_ASKED_SHARE, _ANSWERED_SHARE = 0.25, 0.5
"""Of the body's limit, so that the files and commands always have room."""
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|\Z)", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)
_FIXED = re.compile(
    r"\b(?:fixed|root cause|the (?:bug|problem|cause) (?:is|was))\b", re.IGNORECASE
)


def draft(story: Story, context: Context) -> Draft | None:
    """The turn as one draft; None if nothing happened that anybody would look for."""
    if not story.prompts or not _is_telling(story):
        return None
    title = _title(story)
    if not title:
        return None
    body = prose.clipped("\n".join(_lines(story, context)), context.body_characters)
    files = unique(map(context.relative, (*story.edited, *story.reads)))[:_FILES_MAX]
    return Draft(
        slot="turn", kind=_kind(story), title=title, body=body, at=story.last_at, rule="turn",
        sources=_sources(story, context), files=files,
        confidence=0.7 if story.answer else 0.5, quality=quality.of(body), edges=_edges(story),
    )  # fmt: skip


def _is_telling(story: Story) -> bool:
    if story.edits:
        return True
    if all(prose.is_command(said.text) for said in story.prompts):
        return False
    if all(prose.is_small_talk(said.text) for said in story.prompts):
        return bool(story.commands) or len(story.answer) >= _ANSWER_TRIVIAL
    texts = (story.prompt, story.answer)
    return not all(prose.is_only_placeholders(text) for text in texts)


def _title(story: Story) -> str:
    """From the first prompt that says something, else from the answer to `go on`."""
    for said in story.prompts:
        is_empty = prose.is_small_talk(said.text) or prose.is_command(said.text)
        if not is_empty and (title := prose.title(said.text)):
            return title
    edited = ", ".join(path.rsplit("/", 1)[-1] for path in story.edited[:3])
    return prose.title(story.answer) or (f"Changed {edited}" if edited else "")


def _kind(story: Story) -> Kind:
    if story.edits:
        return Kind.CHANGE
    is_fix = _FIXED.search(story.answer) and failures.chains(story)
    return Kind.FIX if is_fix else Kind.DISCOVERY


def _lines(story: Story, context: Context) -> list[str]:
    limit = context.body_characters
    lines = ["Asked: " + prose.clipped(story.prompt, int(limit * _ASKED_SHARE))]
    if story.answer:
        lines.append("Answered: " + prose.clipped(story.answer, int(limit * _ANSWERED_SHARE)))
    lines.extend(
        f"{report.speaker} reported: {one_line(report.text, 300)}"
        for report in story.reports[:_REPORTS_MAX]
    )
    if story.edited:
        names = unique(map(context.relative, story.edited))
        more = f" and {len(names) - _FILES_MAX} more" if len(names) > _FILES_MAX else ""
        lines.append("Files: " + ", ".join(names[:_FILES_MAX]) + more)
    lines.extend(unique(f"Ran: {outcome(c)}" for c in _notable(story))[:_COMMANDS_MAX])
    return lines


def _notable(story: Story) -> list[Command]:
    """Commands worth a line: not those that only looked and found."""
    return [
        command
        for command in story.commands
        if failures.is_failing(command) or not complaint.is_look(command.command)
    ]


def outcome(command: Command) -> str:
    """A command and how it ended, on one line."""
    name = f"`{one_line(command.command, 160)}`"
    if command.is_interrupted:
        return f"{name} → interrupted"
    if not failures.is_failing(command):
        return f"{name} → ok"
    line = complaint.read(command.output).line
    return f"{name} → failed: {line}" if line else f"{name} → failed"


def _edges(story: Story) -> tuple[DraftEdge, ...]:
    edited = story.edited
    return (
        *(DraftEdge(EdgeType.EDITS, "file", path) for path in edited),
        *(DraftEdge(EdgeType.REFERENCES, "file", p) for p in story.reads if p not in edited),
    )


def _sources(story: Story, context: Context) -> tuple[Source, ...]:
    said = (*story.prompts, *story.answers[-1:])
    found = [Source(s.event_id, prose.quote(s.text)) for s in said]
    for edit in story.edits[:_EDITS_QUOTED]:
        change = " ".join(failures.diff(edit))
        found.append(
            Source(edit.event_id, prose.quote(f"{context.relative(edit.path)}: {change}"))
        )
    found.extend(
        Source(command.event_id, prose.quote(outcome(command)))
        for command in _notable(story)[:_COMMANDS_MAX]
    )
    return tuple(found)


def sessions(story: Story, context: Context) -> list[Draft]:
    """What the client's own summaries at compactions say about the session so far."""
    found: list[Draft] = []
    for said in story.compactions:
        text = _inside(said.text)
        if len(text) >= _SESSION_MIN and not prose.is_only_placeholders(text):
            found.append(_session(len(found), said, text, context))
    return found


def _inside(text: str) -> str:
    text = _ANALYSIS.sub("", text)
    match = _SUMMARY.search(text)
    return (match.group(1) if match else text).strip()


def _session(number: int, said: Said, text: str, context: Context) -> Draft:
    name = context.session_title or prose.title(text)
    body = prose.clipped(text, context.body_characters)
    return Draft(
        slot=f"session/{number}" if number else "session", kind=Kind.SESSION,
        title=one_line(f"Session so far: {name}", prose.TITLE_CHARACTERS + 20), body=body,
        at=said.at, rule="compaction", sources=(Source(said.event_id, prose.quote(text)),),
        confidence=0.7, quality=quality.of(body),
    )  # fmt: skip
