"""Commands that failed, what changed, and whether they passed afterwards. Pure.

A failure and its fix are a chain: the same check fails, something is changed, it passes. The failure
causes the fix, the fix derives from the failure. A failure that nothing mended is remembered too,
unless nobody could learn anything from it.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memd.distill import complaint, prose, quality
from memd.distill.complaint import Complaint
from memd.distill.story import Command, Context, Edit, Story
from memd.models import Draft, DraftEdge, EdgeType, Kind, Source
from memd.text import content_stems, one_line, unique

CHAINS_MAX = 8
_ERRORS_MAX = 3
_EDITS_MAX = 8
_DIFF_LINES = 14
_LINE_CHARACTERS = 160
_ANSWER_CHARACTERS = 2_000
_ASKS_FOR_FIX = re.compile(
    r"\b(?:fix(?:es|ed|ing)?|bug|bugs|why|broken?|breaks|crash\w*|fails?|failed|failing|failure|error|errors"
    r"|exception|wrong|debug|traceback|stack trace|regression|hangs?|flaky|40\d|50\d"
    r"|(?:does|do|is|are|did)(?: not|n't)|can(?: not|'t|not)|won't|no longer works?)\b",
    re.IGNORECASE,
)
_STATES_FIX = re.compile(
    r"\b(?:fixed|fixes|resolved|resolves|the fix|now (?:works|passes|passing)|no longer (?:fails|crashes|raises))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Chain:
    """One check from its first failure to the run that passed."""

    failures: tuple[Command, ...]
    passed: Command | None
    edits: tuple[Edit, ...]
    """Between the first failure and the pass, or the end of the episode."""
    steps: tuple[Command, ...]
    """Commands in between that did something, such as installing a package."""
    rule: str
    """`same-command`, `same-tool`, `stated-fix` or `unmended`."""

    @property
    def is_mended(self) -> bool:
        """Whether something was changed that made it pass."""
        return self.rule != "unmended" and bool(self.edits or self.steps)


def is_failing(command: Command) -> bool:
    """Whether the command failed, even if a pipe swallowed its exit code."""
    if command.is_interrupted:
        return False
    return command.failed or (
        complaint.is_check(command.command) and complaint.shows_failure(command.output)
    )


def is_worth_keeping(command: Command) -> bool:
    """Whether somebody could learn from this failure: a check failed, or the error has a signature."""
    if complaint.is_look(command.command):
        return False
    return complaint.is_check(command.command) or complaint.read(command.output).has_signature


def chains(story: Story) -> list[Chain]:
    """The failures of an episode, each with what followed, in order of the first failure."""
    failing: dict[str, list[Command]] = {}
    closed: list[tuple[list[Command], Command | None, str]] = []
    for command in story.commands:
        name = complaint.normal(command.command)
        if is_failing(command):
            if is_worth_keeping(command):
                failing.setdefault(name, []).append(command)
        elif not command.is_interrupted and (match := _match(name, failing)):
            closed.append((failing.pop(match[0]), command, match[1]))
    closed.extend((failures, None, "") for failures in failing.values())
    closed.sort(key=lambda item: (item[0][0].at, item[0][0].event_id))
    return [_chain(story, *item) for item in closed[:CHAINS_MAX]]


def _match(name: str, failing: dict[str, list[Command]]) -> tuple[str, str] | None:
    if name in failing:
        return name, "same-command"
    tool = complaint.tool_of(name)
    for other in failing:
        if tool and complaint.tool_of(other) == tool:
            return other, "same-tool"
    return None


def _chain(story: Story, failures: list[Command], passed: Command | None, rule: str) -> Chain:
    start = (failures[0].at, failures[0].event_id)
    end = (passed.at, passed.event_id) if passed else (story.last_at + 1, 0)
    edits = tuple(e for e in story.edits if start < (e.at, e.event_id) < end)
    steps = tuple(
        c
        for c in story.commands
        if start < (c.at, c.event_id) < end
        and not is_failing(c)
        and not complaint.is_look(c.command)
        and not complaint.is_check(c.command)
    )
    if passed is None:
        is_stated = bool(edits) and _STATES_FIX.search(story.answer) is not None
        rule = "stated-fix" if is_stated else "unmended"
    return Chain(tuple(failures), passed, edits, steps, rule)


def drafts(story: Story, context: Context) -> list[Draft]:
    """A failure draft per error, and a fix draft per chain that was mended."""
    found: list[Draft] = []
    for number, chain in enumerate(chains(story)):
        errors = _distinct(chain.failures)
        for index, (command, said) in enumerate(errors):
            slot = f"failure/{number}" if index == 0 else f"failure/{number}/{index}"
            found.append(_failure(slot, number, chain, (command, said), (story, context)))
        if chain.is_mended:
            found.append(_fix(number, chain, errors, story, context))
    return found


def _distinct(failures: Sequence[Command]) -> list[tuple[Command, Complaint]]:
    """The different errors among these failures, the first run of each, at most three."""
    found: dict[str, tuple[Command, Complaint]] = {}
    for command in failures:
        said = complaint.read(command.output)
        found.setdefault(said.line, (command, said))
    return list(found.values())[:_ERRORS_MAX]


def _name(command: Command, said: Complaint, context: Context) -> str:
    """The error in one line, with the file that it happened in."""
    if not said.line:
        return f"`{one_line(command.command, 70)}` failed"
    place = context.relative(said.files[0]) if said.files else ""
    line = one_line(said.line, 110)
    return f"{line} ({place})" if place and place not in line else line


def _failure(
    slot: str,
    number: int,
    chain: Chain,
    error: tuple[Command, Complaint],
    told: tuple[Story, Context],
) -> Draft:
    (command, said), (story, context) = error, told
    purpose = f" ({command.description})" if command.description else ""
    lines = [
        f"`{one_line(command.command, 300)}`{purpose} failed: {said.line or 'it said nothing'}"
    ]
    if said.files:
        lines.append("In: " + ", ".join(map(context.relative, said.files)))
    if story.prompt:
        lines.append("While: " + prose.title(story.prompt))
    lines.append(_outcome(chain, context))
    body = prose.clipped("\n".join(lines), context.body_characters)
    edges = [DraftEdge(EdgeType.REFERENCES, "file", path) for path in said.files]
    if chain.is_mended:
        edges.insert(0, DraftEdge(EdgeType.CAUSES, "slot", f"fix/{number}"))
    return Draft(
        slot=slot, kind=Kind.FAILURE, title=_name(command, said, context), body=body,
        at=command.at, rule=chain.rule,
        sources=(Source(command.event_id, prose.quote(said.line or command.output or command.command)),),
        files=unique(map(context.relative, said.files)),
        confidence=0.8 if chain.is_mended else 0.6,
        quality=quality.of(body), edges=tuple(edges),
    )  # fmt: skip


def _outcome(chain: Chain, context: Context) -> str:
    if chain.is_mended:
        return "Mended by:\n" + "\n".join(_changes(chain, context))
    if chain.passed:
        return "It passed when it was run again; nothing had been changed."
    return "It was not mended in this turn."


def _fix(
    number: int,
    chain: Chain,
    errors: Sequence[tuple[Command, Complaint]],
    story: Story,
    context: Context,
) -> Draft:
    is_asked = _is_asked_for(chain, story)
    name = prose.title(story.prompt) if is_asked else ""
    name = name or _name(*errors[0], context)
    body = prose.clipped(
        "\n".join(_fix_lines(chain, errors, story, context)), context.body_characters
    )
    edited = unique(edit.path for edit in chain.edits)
    edges = (
        DraftEdge(EdgeType.DERIVES_FROM, "slot", f"failure/{number}"),
        *(DraftEdge(EdgeType.EDITS, "file", path) for path in edited),
        *(DraftEdge(EdgeType.REFERENCES, "file", p) for p in story.reads if p not in edited),
    )
    return Draft(
        slot=f"fix/{number}", kind=Kind.FIX, title=f"Fixed: {name}", body=body,
        at=chain.passed.at if chain.passed else story.last_at, rule=chain.rule,
        sources=_fix_sources(chain, errors, story, is_asked=is_asked),
        files=unique(map(context.relative, edited)),
        confidence={"same-command": 0.9, "same-tool": 0.75}.get(chain.rule, 0.5),
        quality=quality.of(body), edges=edges,
    )  # fmt: skip


def _is_asked_for(chain: Chain, story: Story) -> bool:
    """Whether the failure is what the user asked about: it was there before anything was changed."""
    if not _ASKS_FOR_FIX.search(story.prompt):
        return False
    first = (chain.failures[0].at, chain.failures[0].event_id)
    return not any((edit.at, edit.event_id) < first for edit in story.edits)


def _fix_lines(
    chain: Chain,
    errors: Sequence[tuple[Command, Complaint]],
    story: Story,
    context: Context,
) -> list[str]:
    lines = []
    if story.prompt:
        lines.append("Asked: " + prose.clipped(story.prompt, 600))
    lines.extend(f"Error: {said.line}" for _, said in errors if said.line)
    if explained := _explained(chain, errors, story):
        lines.append("Cause and fix: " + explained)
    lines.extend(_changes(chain, context))
    if chain.passed:
        purpose = f" ({chain.passed.description})" if chain.passed.description else ""
        lines.append(f"Then `{one_line(chain.passed.command, 300)}`{purpose} passed.")
    return lines


def _explained(chain: Chain, errors: Sequence[tuple[Command, Complaint]], story: Story) -> str:
    """The closing message, or of it what bears on these errors if the turn was about something else."""
    if _is_asked_for(chain, story):
        return prose.clipped(story.answer, _ANSWER_CHARACTERS)
    about = {stem for _, said in errors for stem in content_stems(said.line)}
    kept = [s for s in prose.sentences(story.answer) if about & set(content_stems(s))]
    return prose.clipped(" ".join(kept), _ANSWER_CHARACTERS)


def _changes(chain: Chain, context: Context) -> list[str]:
    lines: list[str] = []
    for edit in chain.edits[:_EDITS_MAX]:
        lines.append(f"Changed {context.relative(edit.path)}:")
        lines.extend(diff(edit))
    lines.extend(f"Ran `{one_line(step.command, 200)}`." for step in chain.steps[:_EDITS_MAX])
    return lines


def diff(edit: Edit) -> list[str]:
    """What an edit took away and put in, a line each, bounded."""
    if edit.is_whole_file:
        return [f"  written anew, {len(edit.new.splitlines())} lines"]
    changed = _changed_lines(edit.old.splitlines(), edit.new.splitlines())
    lines = [one_line(line, _LINE_CHARACTERS) for line in changed]
    if len(lines) > _DIFF_LINES:
        lines = [*lines[:_DIFF_LINES], f"  … and {len(lines) - _DIFF_LINES} more lines"]
    return lines


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> Iterable[str]:
    # Indentation alone is no change worth telling, and the sequences are what one edit replaced.
    before, after = [line.strip() for line in old[:400]], [line.strip() for line in new[:400]]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in before[i1:i2] if line)
            yield from (f"+ {line}" for line in after[j1:j2] if line)


def _fix_sources(
    chain: Chain,
    errors: Sequence[tuple[Command, Complaint]],
    story: Story,
    *,
    is_asked: bool,
) -> tuple[Source, ...]:
    found = [
        Source(command.event_id, prose.quote(said.line or command.command))
        for command, said in errors
    ]
    found.extend(
        Source(edit.event_id, prose.quote(" ".join(diff(edit)) or edit.path))
        for edit in chain.edits[:_EDITS_MAX]
    )
    if chain.passed:
        found.append(Source(chain.passed.event_id, prose.quote(chain.passed.command)))
    if is_asked:
        found.extend(
            Source(said.event_id, prose.quote(said.text)) for said in story.prompts[:1]
        )
    found.extend(Source(said.event_id, prose.quote(said.text)) for said in story.answers[-1:])
    return tuple(found)
