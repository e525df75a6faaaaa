"""What the memory of a piece of work tells: the request, the outcome and its grounds, files, what stays and what is open. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from memd.distill import doing, offers
from memd.distill import text as sentences
from memd.distill.episodes import EpisodeContext, Refusal, ShellCommand, Story, Utterance
from memd.distill.proof import checks, command_output
from memd.distill.work import Part, Work
from memd.machine_text import read_plan
from memd.models import COMMITTED, SettingChange
from memd.text import content_stems, one_line, unique

_FILES_MAX, _COMMANDS_MAX, _REPORTS_MAX, _DENIALS_MAX, _CLOSED_MAX, _SETTINGS_MAX = (
    20,
    4,
    3,
    3,
    3,
    8,
)
_ASKED_SHARE, _ANSWERED_SHARE, _OTHERS_SHARE, _ON_THE_WAY_SHARE = 0.2, 0.4, 0.2, 0.2
"""Of the body's limit."""
_LINE = 300
_FOLLOWED = 200
_SENDER_CHARACTERS = 60
_ANALYSES_MAX, _ANALYSIS_MIN, _NEW_SHARE = 2, 240, 0.4
"""Messages of a turn before its last one that are told; their characters, and stems that the last one lacks."""
_QUESTIONS_MAX = 12
_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b[^|;&]*?\s-\w*m\s*(?:\"\$\(cat <<'?EOF'?\n)?[\"']?(?P<subject>[^\"'\n]{3,160})")  # fmt: skip

_DIRECTIVES = re.compile(r"^::[\w-]+\{.*\}[ \t]*$", re.MULTILINE)
"""Lines by which Codex tells its window what it did: `::git-push{cwd="…"}`."""
_OPEN_MAX, _OPEN_CHARACTERS = 3, 240
_DONE = r"(?:done|implemented|fixed|tested|covered|handled|verified|wired(?: up)?|addressed|merged|pushed|deployed|committed|included|supported|migrated|updated|finished|resolved|released)"
_OPEN = re.compile(
    rf"\b(?:is|are|has|have|do|does)(?: not|n['’]?t) (?:been )?(?:\w+ ){{1,3}}yet\b|\bnot yet (?:been )?{_DONE}\b"
    r"|\bstill (?:to do|to be done|needs? to|need(?:s|ed)?\b|fail(?:s|ing)?\b|open\b|missing\b|broken\b|unresolved\b|to-?do\b|pending\b|outstanding\b)"
    r"|\b(?:is|are|was|were|remains?|i(?:'ve| have)?) left (?:for later|open|undone|unfixed|unstaged|uncommitted|out for now|as a follow-?up)\b|\bleft for later\b"
    r"|\b(?:remains?|remaining) (?:to be done|to do|open|unsolved|unresolved|work|steps? (?:is|are)|issues? (?:is|are))\b"
    r"|\b(?:deferred|postponed) (?:until|for|to (?:a later|the next))\b|\bout of scope for (?:now|this)\b|\bto be done (?:later|in a)\b|\b(?:as|for) a follow-?up\b(?=\W*$|\s+(?:PR|issue|ticket|task)\b)",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"\b(?:no|nothing|none|never|without|all|every\w*|if|when|whether|would|could)\b.{0,40}\b(?:left|still|remain\w*|open|missing|yet)\b"
    r"|^(?:before|previously|the (?:problem|issue|bug)|what was|because)\b",
    re.IGNORECASE,
)


def write_lines(
    work: Work,
    context: EpisodeContext,
    changes: Sequence[SettingChange] = (),
    closed: Sequence[str] = (),
    failed: Sequence[str] = (),
) -> list[str]:
    """The lines of a body. `closed`: what had failed before and passed in this work; `failed`: what failed and what fixed it."""
    limit, story = context.body_characters, work.whole
    lines = [*_write_requests(work, limit if not failed else limit // 2), *failed]
    if told := story.told:
        label = "Answered: " if story.answer else "Said last: "
        told = _DIRECTIVES.sub("", told).strip() or told
        lines.append(label + sentences.clip(told, int(limit * _ANSWERED_SHARE)))
    each = int(limit * _ON_THE_WAY_SHARE) // _ANALYSES_MAX
    lines += [f"Said on the way: {sentences.clip(one, each)}" for one in _find_analyses(story)]
    others = list(work.list_messages()) if work.later else []
    each = int(limit * _OTHERS_SHARE) // max(1, len(others))
    lines += [f"Said before or after: {sentences.clip(one, each)}" for one in others]
    lines += [
        f"{one.asked.text} → {one_line(one.answer.text, _LINE)}"
        for one in story.questions[:_QUESTIONS_MAX]
    ]
    lines += [
        f"Refused: {describe_call(one)}" + (f": “{one_line(one.said.text, _LINE)}”" if one.said.text else "")
        for one in story.refusals[:_DENIALS_MAX]
    ]  # fmt: skip
    lines += [
        f"{one.speaker} reported: {one_line(one.text, _LINE)}"
        for one in story.reports[:_REPORTS_MAX]
    ]
    if story.broken_off:
        lines.append(f"Broken off by an error of the model's API: {story.broken_off}")
    lines += [
        f"Not run, denied by the client: `{one_line(one.what, 160)}`: {one_line(one.reason, 200)}"
        for one in story.denials[:_DENIALS_MAX]
    ]
    lines += [f"Open: {one}" for one in islice(_list_said(story.answer), _OPEN_MAX)]
    lines += [f"Open: {one}" for one in _list_failing(story)]
    if names := unique(map(context.relative, list_changed(story))):
        more = f" and {len(names) - _FILES_MAX} more" if len(names) > _FILES_MAX else ""
        lines.append("Files: " + ", ".join(names[:_FILES_MAX]) + more)
    lines += unique(f"{COMMITTED}{subject}" for c in story.commands if (subject := _read_commit(c)))
    lines += unique(_tell_command(c) for c in select_notable(story))[:_COMMANDS_MAX]
    lines += unique(f"Set: {one}" for one in changes if one.was)[:_SETTINGS_MAX]
    return lines + [f"Passed here, had failed before: {one}" for one in closed[:_CLOSED_MAX]]


def list_changed(story: Story) -> tuple[str, ...]:
    """The paths that were edited, renamed or deleted."""
    return (*story.edited, *doing.list_moved_files(story))


def select_notable(story: Story) -> list[ShellCommand]:
    """The commands that a reader would want: what they left is in no file or commit, or a check of theirs never passed later."""
    last = {c.line or c.command: number for number, c in enumerate(story.commands)}
    return [
        command
        for number, command in enumerate(story.commands)
        if last[command.line or command.command] == number
        and (
            not _passes_later(command, story.commands[number + 1 :])
            if checks.is_failing(command)
            else doing.leaves_news(command)
        )
    ]


def _passes_later(failed: ShellCommand, later: Sequence[ShellCommand]) -> bool:
    """Whether each check of a failed run passes afterwards in some form; of what is no check nobody wants to know."""
    failing = {(one.tool, one.verb) for one, _ in checks.read_checks(failed.line, failed.directory)}
    proven = {(one.tool, one.verb) for run in later for one in checks.read_proven(run)}
    return failing <= proven


def describe_outcome(command: ShellCommand) -> str:
    """A command and how it ended, on one line."""
    name = f"`{one_line(command.command, 160)}`"
    if command.is_interrupted:
        return f"{name} → interrupted"
    if not checks.is_failing(command):
        return f"{name} → ok"
    line = command_output.read_error(command.output).line
    return f"{name} → failed: {line}" if line else f"{name} → failed"


def describe_call(refusal: Refusal) -> str:
    """A refused call in a few words: `Edit api.py`, `Bash git push`."""
    given = refusal.tool_input
    named = str(given.get("file_path") or given.get("command") or given.get("url") or "")
    named = named.rsplit("/", 1)[-1] if "file_path" in given else named
    return f"{refusal.tool} {one_line(named, 80)}".strip()


def _tell_command(command: ShellCommand) -> str:
    who = f"{command.agent} ran" if command.agent else "Ran"
    return f"{who}: {describe_outcome(command)}"


def _read_commit(command: ShellCommand) -> str:
    """The subject of the commit that a command made; empty if it made none."""
    match = _COMMIT.search(command.command)
    return match["subject"].strip() if match and not checks.is_failing(command) else ""


def _write_requests(work: Work, limit: int) -> Iterator[str]:
    """Yield what was asked for; a few words with the message that they answer."""
    head = work.parts[0]
    if head.story.prompts:
        prompt = _join_prompts(head.story)
        plan = read_plan(prompt)
        asked = (
            f"the plan “{plan.subject}”. {plan.context}"
            if plan
            else sentences.drop_fences(prompt).strip() or prompt
        )
        yield "Asked: " + one_line(asked, int(limit * _ASKED_SHARE))
    else:
        yield f"Asked by no person: {one_line(head.story.sender, _SENDER_CHARACTERS)}"
    if meant := find_meant(head.story, head.heard):
        yield f"That is: {meant}"
    for one in work.later:
        if one.story.prompts:
            yield f"Then: {one_line(one.story.prompt, _FOLLOWED)}{_tell_meant(one)}"


def _join_prompts(story: Story) -> str:
    """Everything that the user said; of a message that a client tells twice, bare and with its attachments, the bare one."""
    texts = [said.text.strip() for said in story.prompts]
    return "\n\n".join(
        text
        for text in texts
        if not any(other != text and text.endswith("\n" + other) for other in texts)
    )


def _tell_meant(part: Part) -> str:
    meant = find_meant(part.story, part.heard)
    return f" (that is: {meant})" if meant else ""


def find_meant(story: Story, heard: str) -> str:
    """Return what a prompt of a few words answers: the option that it takes, else the last sentence before it; maybe empty."""
    if not heard or not sentences.is_short(story.prompt):
        return ""
    if taken := offers.find_taken(story.prompt, heard):
        return taken
    heard = _DIRECTIVES.sub("", heard[-2_000:])
    told = [s.text for s in sentences.read_statements(heard) if s.text[:1] != "<"]
    return one_line(told[-1], _LINE) if told else ""


def _find_analyses(story: Story) -> list[str]:
    """The messages on the way that say most that the closing one does not."""
    told = frozenset(content_stems(story.told or " "))

    def count_new(said: Utterance) -> int:
        return len(frozenset(content_stems(said.text)) - told)

    long = [one for one in story.texts if len(one.text) >= _ANALYSIS_MIN and one.text != story.told]  # fmt: skip
    new = [one for one in long if count_new(one) >= _NEW_SHARE * len(set(content_stems(one.text)))]
    best = sorted(new, key=count_new, reverse=True)[:_ANALYSES_MAX]
    return [one.text for one in new if one in best]


def _list_said(answer: str) -> Iterator[str]:
    for one in sentences.read_statements(answer):
        is_open = _OPEN.search(one.text) and not _NONE.search(one.text)
        if is_open and not sentences.is_question(one.text):
            yield one_line(one.text, _OPEN_CHARACTERS)


def _list_failing(story: Story) -> Iterator[str]:
    """The last check, if it failed and nothing was changed afterwards."""
    ran = [one for one in story.commands if command_output.is_check(one.command)]
    last = ran[-1] if ran else None
    if last is None or not checks.is_failing(last):
        return
    if not any(edit.at > last.at for edit in story.edits):
        line = command_output.read_error(last.output).line
        name = f"`{one_line(last.command, 120)}` failed when it was run last"
        yield f"{name}: {line}" if line else name
