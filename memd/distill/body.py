"""Write what the memory of a piece of work tells: the request, the outcome and its grounds, files, what stays and what is open. Pure.

What stays is what work leaves behind, as a commit, a renamed file or a restarted service does. Looking, building and
testing leave nothing that a later session would ask about; neither does what is done in a directory for temporary files.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from memd.belief import polarity
from memd.distill import text as sentences
from memd.distill.episodes import EpisodeContext, Refusal, ShellCommand, Story
from memd.distill.proof import checks, command_output
from memd.distill.vetoes import SPEECH
from memd.distill.work import Work, leaves_untold_work, list_moved_files, was_not_done
from memd.machine_text import read_plan
from memd.models import COMMITTED, SettingChange
from memd.text import content_stems, fold, one_line, unique, words

_FILES_MAX, _COMMANDS_MAX, _TOLD_MAX, _SETTINGS_MAX, _QUESTIONS_MAX, _OPEN_MAX = 20, 4, 3, 8, 12, 3
ASKED = "Asked: "
"""How the body of a turn begins that was asked for."""
_ASKED_SHARE, _ANSWERED_SHARE, _OTHERS_SHARE, _ON_THE_WAY_SHARE = 0.2, 0.4, 0.2, 0.2
"""Of the body's limit."""
_LINE, _FOLLOWED, _SENDER, _OPEN_CHARACTERS = 300, 200, 60, 240
"""Characters of a line."""
_ANALYSES_MAX, _ANALYSIS_MIN, _NEW_SHARE = 2, 240, 0.4
"""Messages of a turn before its last one that are told; their characters, and stems that the last one lacks."""
_HERE_DOCUMENT = r"\"\$\(cat <<-?['\"]?\w+['\"]?\n\s*(?P<typed>[^\n]{3,160})"
_QUOTED = r"\"(?P<double>(?:[^\"\\\n]|\\.){3,160})|'(?P<single>[^'\n]{3,160})"
_COMMIT = re.compile(
    r"\bgit\b[^|;&\n]*\bcommit\b[^|;&]*?\s-\w*m\s*"
    rf"(?:{_HERE_DOCUMENT}|{_QUOTED}|(?P<word>[^\s\"';&|]{{3,160}}))"
)
_DIRECTIVES = re.compile(r"^::[\w-]+\{.*\}[ \t]*$", re.MULTILINE)
"""Lines by which Codex tells its window what it did: `::git-push{cwd="…"}`."""


def write_lines(
    work: Work,
    context: EpisodeContext,
    changes: Sequence[SettingChange] = (),
    closed: Sequence[str] = (),
    failed: Sequence[str] = (),
) -> list[str]:
    """Write the lines of a body. `closed`: what had failed before and passed in this work; `failed`: what failed and what fixed it."""
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
    for refused in story.refusals[:_TOLD_MAX]:
        said = f": “{one_line(refused.said.text, _LINE)}”" if refused.said.text else ""
        lines.append(f"Refused: {describe_call(refused)}{said}")
    lines += [
        f"{one.speaker} reported: {one_line(one.text, _LINE)}" for one in story.reports[:_TOLD_MAX]
    ]
    if story.broken_off:
        lines.append(f"Broken off by an error of the model's API: {story.broken_off}")
    lines += [
        f"Not run, denied by the client: `{one_line(what, 160)}`: {one_line(why, 200)}"
        for what, why in story.denials[:_TOLD_MAX]
    ]
    lines += [f"Open: {one}" for one in _list_open(story)]
    if names := unique(map(context.relative, list_changed_files(story))):
        more = f" and {len(names) - _FILES_MAX} more" if len(names) > _FILES_MAX else ""
        lines.append("Files: " + ", ".join(names[:_FILES_MAX]) + more)
    lines += unique(f"{COMMITTED}{subject}" for c in story.commands if (subject := _read_commit(c)))
    lines += unique(
        f"{f'{one.agent} ran' if one.agent else 'Ran'}: {describe_outcome(one)}"
        for one in select_notable_commands(story)
    )[:_COMMANDS_MAX]
    lines += unique(f"Set: {one}" for one in changes if one.was)[:_SETTINGS_MAX]
    return lines + [f"Passed here, had failed before: {one}" for one in closed[:_TOLD_MAX]]


def list_changed_files(story: Story) -> tuple[str, ...]:
    """The paths that were edited, renamed or deleted."""
    return (*story.edited, *list_moved_files(story))


def select_notable_commands(story: Story) -> list[ShellCommand]:
    """Select the commands that a reader would want: what they left is in no file or commit, or a check of theirs never passed later."""

    def is_wanted(number: int) -> bool:
        run = story.commands[number]
        if not checks.is_failing(run):
            return leaves_untold_work(run)
        # Of what is no check nobody wants to know.
        failed = {(one.tool, one.verb) for one, _ in checks.read_checks(run.line, run.directory)}
        later = story.commands[number + 1 :] if failed else ()
        return not failed <= {(one.tool, one.verb) for r in later for one in checks.read_proven(r)}

    last = {run.line or run.command: number for number, run in enumerate(story.commands)}
    return [story.commands[number] for number in sorted(last.values()) if is_wanted(number)]


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


def _read_commit(command: ShellCommand) -> str:
    """The subject of the commit that a command made; empty if it made none."""
    match = _COMMIT.search(command.command)
    if match is None or checks.is_failing(command) or was_not_done(command):
        return ""
    subject = next(filter(None, match.groups()))
    return re.sub(r"\\(.)", r"\1", subject).strip() if match["double"] else subject.strip()


def _write_requests(work: Work, limit: int) -> Iterator[str]:
    """Yield what was asked for; a few words with the message that they answer."""
    head = work.parts[0]
    if head.story.prompts:
        prompt = _join_prompts(head.story)
        plan = read_plan(prompt)
        asked = sentences.drop_fences(prompt).strip() or prompt
        asked = f"the plan “{plan.subject}”. {plan.context}" if plan else asked
        yield ASKED + one_line(asked, int(limit * _ASKED_SHARE))
    else:
        yield f"Asked by no person: {one_line(head.story.sender, _SENDER)}"
    if meant := find_answered(head.story, head.heard):
        yield f"That is: {meant}"
    for one in work.later:
        if one.story.prompts:
            meant = find_answered(one.story, one.heard)
            that = f" (that is: {meant})" if meant else ""
            yield f"Then: {one_line(one.story.prompt, _FOLLOWED)}{that}"


def _join_prompts(story: Story) -> str:
    """Join all that the user said; of a message that a client tells twice, bare and with its attachments, the bare one."""
    texts = [said.text.strip() for said in story.prompts]
    twice = {one for one in texts for other in texts if one != other and one.endswith(f"\n{other}")}
    return "\n\n".join(text for text in texts if text not in twice)


def find_answered(story: Story, heard: str) -> str:
    """Find what a prompt of a few words answers: the option that it takes, else the last sentence before it; maybe empty.

    It answers a question, or else agrees or points back: “ci is red” and “commit” say nothing of the sentence before them.
    """
    if not heard or not sentences.is_short(story.prompt):
        return ""
    if taken := sentences.find_taken(story.prompt, heard):
        return taken
    heard = _DIRECTIVES.sub("", heard[-2_000:])
    told = [s.text for s in sentences.read_statements(heard) if s.text[:1] != "<"]
    is_answer = bool(told) and (sentences.asks_by_mark(told[-1]) or _points_back(story.prompt))
    return one_line(told[-1], _LINE) if is_answer else ""


def _points_back(prompt: str) -> bool:
    """Return whether a prompt only agrees, or has a word for what was said before it."""
    agrees = polarity.is_small_talk(prompt) or polarity.is_assent(prompt)
    return agrees or not polarity.ANAPHORS.isdisjoint(map(fold, words(prompt)))


def _find_analyses(story: Story) -> list[str]:
    """Find the messages on the way that say most that the closing one does not."""
    told = frozenset(content_stems(story.told or " "))
    found = []
    for text in (one.text for one in story.texts if one.text != story.told):
        stems = frozenset(content_stems(text))
        if len(text) >= _ANALYSIS_MIN and len(stems - told) >= _NEW_SHARE * len(stems):
            found.append((len(stems - told), text))
    best = sorted(found, key=lambda one: -one[0])[:_ANALYSES_MAX]
    return [text for new, text in found if (new, text) in best]


def find_left(said: Sequence[sentences.Statement]) -> Iterator[str]:
    """Yield the statements that say that something is left to do, and the items of a list that a label calls so."""
    is_listed = False
    for one in said:
        if one.form == "item" and is_listed:
            yield one.text
            continue
        is_label = one.leads or one.form == "heading"
        is_listed = is_label and SPEECH["open"].search(f"{one.text}: x") is not None
        if _is_open(one.text) and not is_listed and not sentences.is_question(one.text):
            yield one.text


def _is_open(text: str) -> bool:
    is_none = SPEECH["none open"].search(text) and not SPEECH["nothing does yet"].search(text)
    return bool(SPEECH["open"].search(text)) and not is_none


def _list_open(story: Story) -> Iterator[str]:
    """Yield what the closing message leaves open, and the last check if it failed and nothing was changed afterwards."""
    left = find_left(sentences.read_statements(story.answer))
    yield from (one_line(one, _OPEN_CHARACTERS) for one in islice(left, _OPEN_MAX))
    ran = [one for one in story.commands if command_output.is_check(one.command)][-1:]
    for one in ran:
        if checks.is_failing(one) and not any(edit.at > one.at for edit in story.edits):
            line = command_output.read_error(one.output).line
            name = checks.name_last_failure(one)
            yield f"{name}: {line}" if line else name
