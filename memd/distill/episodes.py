"""Group a session's events into episodes, one per turn, and read each as a story. Pure.

The client's id of the turn decides where there is one, so an import may add events late and in any order.
Otherwise an episode is a prompt with all that follows up to the next one, or to the session's end; of what follows
no prompt, a stop, a compaction or a long silence separates two. An episode that has ended may still grow; then it is
distilled again into the same summaries.

Clients change the shape of payloads between versions, so a field of an unexpected type counts as absent.
What memd itself returned or injected is left out here, so that no rule can see it.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memd.distill.edits import EDIT_TOOLS, FileEdit, read_edits, text_at
from memd.distill.text import OWN_TAGS, strip_injected
from memd.machine_text import (
    CONTINUING_ORIGINS,
    USER,
    find_prompt_origin,
    is_machine_text,
    is_markup,
)
from memd.models import (
    AGENTS_IMPORT,
    BRANCH,
    ELSEWHERE,
    SUMMING_TITLE,
    TITLE_EVENT,
    Authority,
    Event,
    EventKind,
    Session,
)
from memd.text import digest, is_private, one_line, unique

NOISE_KINDS = frozenset(
    {EventKind.SESSION_START, EventKind.SESSION_END, EventKind.NOTIFICATION, EventKind.OTHER}
)
"""Kinds that make no episode of their own."""
_COMPACTION_KINDS = frozenset({EventKind.COMPACT_START, EventKind.COMPACT_END})
_ENDING_KINDS = _COMPACTION_KINDS | {EventKind.PROMPT, EventKind.SESSION_END}
_TOOL_ANSWER_KINDS = frozenset(
    {EventKind.TOOL_RESULT, EventKind.TOOL_FAILURE, EventKind.TOOL_REFUSED, EventKind.AGENT_TEXT}
)
"""A slow tool, user or agent causes a silence before these, which does not end an episode."""
_OWN_TOOL = re.compile(r"mcp__(?:plugin_)?memd_|mem_[a-z]+$")
_READ_TOOLS = frozenset({"Read", "NotebookRead"})
QUESTION_TOOL = "AskUserQuestion"
_FAILED_STOP, _DENIED = "StopFailure", "PermissionDenied"
_API_ERROR_CHARACTERS = 160
_ANSWERED = re.compile(r'"([^"\n]{1,2000})"="([^"]{1,2000})"')
_OUTPUT_CHARACTERS = 40_000
_CLIENT_TITLE_CHARACTERS = 200
PROJECT_DIRECTORY = "/@project"
"""Stands for the project's directory, whatever worktree a session is in."""
_LEADING_CD = re.compile(r"\s*cd\s+([^\s;&|]+)\s*(?:&&|;|\n)")


Role = Literal["head", "resumed", "follows"]
"""A turn begins a piece of work, goes on with what was left unfinished, or answers, checks or commits in a few words and
changes no file."""


@dataclass(frozen=True, slots=True)
class Episode:
    """The events of one turn, in order of time."""

    key: str
    """The client's id of the turn, or `event-<id of its first event>`."""
    events: tuple[Event, ...]
    is_over: bool
    """Whether it has ended; it may still grow."""
    continues: str = ""
    """The key of the episode that tells of its work, if that is another one."""
    later: tuple[tuple[Role, tuple[Event, ...]], ...] = ()
    """The role and the events of each turn that goes on with its work, in order."""
    heard: str = ""
    """The agent's last words before it."""
    is_due: bool = True
    """Whether it is distilled for its own sake; if not, only its memories are written again."""


def split_episodes(events: Sequence[Event], now: int, idle_ms: int) -> list[Episode]:
    """The episodes among a session's events, by the time of their first event.

    `now` and `idle_ms` are milliseconds; they decide only whether the last episode is over. Events
    of no turn that cannot yield anything are left out.
    """
    ordered = sorted(events, key=_time_key)
    groups: dict[str, list[Event]] = {}
    for event in ordered:
        if event.turn:
            groups.setdefault(event.turn, []).append(event)
    for group in _group_by_pauses([e for e in ordered if not e.turn], idle_ms):
        if any(event.kind not in NOISE_KINDS for event in group):
            groups[f"event-{_find_first(group).id}"] = group
    boundaries = [event for event in ordered if event.kind in _ENDING_KINDS or find_sender(event)]
    episodes = [
        Episode(key, tuple(group), _is_over(group, boundaries, now, idle_ms))
        for key, group in groups.items()
        if any(event.kind not in NOISE_KINDS for event in group)
    ]
    return sorted(episodes, key=lambda episode: _time_key(episode.events[0]))


def find_project_key(events: Sequence[Event]) -> str | None:
    """The key of the project where an episode happened, if that is not its session's: where its prompt was given."""
    telling = [event for event in events if event.kind is EventKind.PROMPT] or events
    return next((key for e in telling if (key := text_at(e.payload, ELSEWHERE))), None)


def find_branch(events: Sequence[Event]) -> str:
    """The git branch on which an episode began; empty if unknown."""
    return next((name for event in events if (name := text_at(event.payload, BRANCH))), "")


def is_compaction(event: Event) -> bool:
    """Return whether this is part of a compaction: the client runs it as a subagent without a type, which sums up."""
    if event.kind is EventKind.SUBAGENT_STOP:
        answer = text_at(event.payload, "last_assistant_message")
        return event.payload.get("agent_type") == "" and (not answer or "<summary>" in answer)
    return event.kind in _COMPACTION_KINDS


def name_subagent(event: Event) -> str:
    """Return the type of the subagent that an event is of, or its id; empty for the session's own agent."""
    return (text_at(event.payload, "agent_type") or event.agent) if event.agent else ""


def find_sender(event: Event) -> str:
    """The sender of a prompt that no person typed and that begins work of its own; empty for every other event."""
    if event.agent or event.kind not in (EventKind.PROMPT, EventKind.NOTIFICATION):
        return ""
    text = text_at(event.payload, "prompt")
    if not text or is_markup(text):
        return ""
    origin = find_prompt_origin(event.payload)
    return "" if origin == USER or origin in CONTINUING_ORIGINS else origin


def _time_key(event: Event) -> tuple[int, int]:
    return event.at, event.id


def _group_by_pauses(events: Iterable[Event], idle_ms: int) -> list[list[Event]]:
    groups: list[list[Event]] = []
    for event in events:
        if not groups or _starts_episode(groups[-1], event, idle_ms):
            groups.append([])
        groups[-1].append(event)
    return groups


def _find_first(group: Sequence[Event]) -> Event:
    """The event that names an episode: its prompt, or what arrived first, so that late events change no name."""
    prompt = next((event for event in group if event.kind is EventKind.PROMPT), None)
    return prompt or min(group, key=lambda event: event.id)


def _starts_episode(group: Sequence[Event], event: Event, idle_ms: int) -> bool:
    """Return whether a new episode begins between a group and the event after it."""
    last = group[-1]
    if event.kind is EventKind.PROMPT or last.kind is EventKind.SESSION_END or find_sender(event):
        return True
    if group[0].kind is EventKind.PROMPT or find_sender(group[0]):
        return False
    if last.kind is EventKind.STOP:
        return True
    if is_compaction(event) != is_compaction(last):
        # The client reports a session's start in the middle of every compaction.
        return not {event.kind, last.kind} & NOISE_KINDS
    return event.at - last.at >= idle_ms and event.kind not in _TOOL_ANSWER_KINDS


def _is_over(group: Sequence[Event], boundaries: Sequence[Event], now: int, idle_ms: int) -> bool:
    telling = [e for e in group if e.kind not in NOISE_KINDS]
    last = max(telling, key=_time_key)
    # Before a compaction the agent is about to lose its context: what the turn has decided so far must be stored.
    if last.kind is EventKind.STOP or last.kind in _COMPACTION_KINDS:
        return True
    own = {event.id for event in telling}
    if any(_time_key(one) > _time_key(last) and one.id not in own for one in boundaries):
        return True
    # A turn that ends in the future was stamped before the clock was set back.
    return abs(now - max(e.at for e in group)) >= idle_ms


_USER = "User"
_ALLEGED = "Somebody"
"""The speaker where only an agent says that the user spoke."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """The words of one speaker in one event."""

    event_id: int
    at: int
    text: str
    speaker: str
    """`User`, `Assistant`, `Somebody` or the type of a subagent."""

    @property
    def authority(self) -> Authority:
        """The authority of these words."""
        return Authority.USER_PROMPT if self.speaker == _USER else Authority.AGENT_TEXT


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A shell command and how it ended."""

    event_id: int
    at: int
    command: str
    description: str
    output: str
    failed: bool
    """As the client reports it; see proof/checks.py for commands whose exit code lies."""
    is_interrupted: bool = False
    is_background: bool = False
    """It was only started: the client did not wait for its end."""
    directory: str = ""
    """The directory in which it began; below `PROJECT_DIRECTORY` if that is in the project."""
    line: str = ""
    """The command with `PROJECT_DIRECTORY` for the project's own, to be compared with other runs."""
    agent: str = ""
    """The type of the subagent that ran it, or its id; empty for the session's own agent."""
    agent_id: str = ""
    """Tells two subagents of one type apart."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tool call that the user did not let run."""

    said: Utterance
    """The words that the user typed instead; an empty text if nothing."""
    tool: str
    tool_input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that the agent asked with a tool, and the user's answer."""

    asked: Utterance
    options: tuple[tuple[str, str], ...]
    """(label, description) of each."""
    answer: Utterance
    """The label of an option, several with commas between them, or the user's own words."""


@dataclass(frozen=True, slots=True)
class Dispute:
    """A claim, made after an episode, that one of its failures is not fixed. `at` is UTC milliseconds."""

    failed_at: int
    """The time of the failed command."""
    at: int
    speaker: str
    quote: str


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """Facts that rules may use beyond the episode itself."""

    session_title: str = ""
    project_name: str = ""
    roots: tuple[str, ...] = ()
    """Directories that file names are shown relative to, the preferred one first."""
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """Command → the agent's description of it."""
    own_tags: tuple[str, ...] = OWN_TAGS
    """Tags of blocks that memd or the client has injected."""
    body_characters: int = 8_000
    """Characters of a summary's body, at most: a few passages; the events behind it have the rest."""
    task_days: int = 0
    """Days until a task expires; 0 for never."""
    disputes: Mapping[str, tuple[Dispute, ...]] = field(default_factory=dict)
    """Key of an episode → what was said later against its fixes."""
    closed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Key of an episode → what had failed in earlier ones and passed in it, a line each."""

    def relative(self, path: str) -> str:
        """The path as a person of this project would write it."""
        for root in self.roots:
            prefix = root.rstrip("/") + "/"
            if path.startswith(prefix) and len(path) > len(prefix):
                return path[len(prefix) :]
        return path


@dataclass(frozen=True, slots=True)
class Story:
    """An episode, read."""

    prompts: tuple[Utterance, ...] = ()
    answers: tuple[Utterance, ...] = ()
    reports: tuple[Utterance, ...] = ()
    """Final messages of subagents."""
    compactions: tuple[Utterance, ...] = ()
    texts: tuple[Utterance, ...] = ()
    """Messages of the session's own agent before its closing message."""
    refusals: tuple[Refusal, ...] = ()
    questions: tuple[AskedQuestion, ...] = ()
    commands: tuple[ShellCommand, ...] = ()
    edits: tuple[FileEdit, ...] = ()
    has_failed_edits: bool = False
    """Whether a tool that changes files failed."""
    reads: tuple[str, ...] = ()
    """Paths, once each, in order."""
    client_titles: tuple[str, ...] = ()
    """Names that the client gave the conversation up to a line of this turn."""
    sender: str = ""
    """The sender of the prompt, where no person typed it."""
    broken_off: str = ""
    """The error of the model's API with which the turn ended; empty if it did not."""
    denials: tuple[tuple[str, str], ...] = ()
    """Calls that the client did not let run by its own judgment, without asking the user: (what, why)."""
    worked_at: int = 0
    """The time of the last tool call of the session's own agent that came back, questions aside; 0 if there was none."""
    shown: tuple[str, ...] = ()
    """What commands printed and files held that were read."""
    last_at: int = 0

    @property
    def prompt(self) -> str:
        """Everything the user said, in order."""
        return "\n\n".join(said.text for said in self.prompts)

    @property
    def answer(self) -> str:
        """The agent's closing message."""
        return self.answers[-1].text if self.answers else ""

    @property
    def told(self) -> str:
        """The closing message; without one, what the agent said last."""
        return self.answer or (self.texts[-1].text if self.texts else "")

    @property
    def edited(self) -> tuple[str, ...]:
        """The paths that were changed, once each, in order."""
        return unique(edit.path for edit in self.edits)


def read_story(events: Sequence[Event], context: EpisodeContext) -> Story:
    """The story that these events tell, in order of time."""
    titles = [event for event in events if event.name == TITLE_EVENT]
    events = [e for e in events if e.name != TITLE_EVENT and not _OWN_TOOL.match(e.tool or "")]
    answers = _read_utterances(events, EventKind.STOP, "last_assistant_message", context)
    closing = {said.text for said in answers}
    texts = _read_utterances(events, EventKind.AGENT_TEXT, "text", context)
    if not answers and any(map(_has_told_answer, events)):
        answers = texts[-1:]
        closing = {said.text for said in answers}
    endings = [e for e in events if e.kind is EventKind.STOP or e.name == _FAILED_STOP]
    commands = tuple(run for event in events if (run := read_command(event, context.roots)))
    shown = (text_at(event.payload, "tool_response", "file", "content") for event in events)
    return Story(
        sender=next(filter(None, map(find_sender, events)), ""),
        broken_off=_read_api_error(endings[-1:]),
        denials=tuple(_read_denial(event) for event in events if event.name == _DENIED),
        prompts=_read_utterances(events, EventKind.PROMPT, "prompt", context),
        answers=answers,
        texts=tuple(said for said in texts if said.text not in closing),
        refusals=tuple(one for event in events if (one := _read_refusal(event, context))),
        questions=tuple(one for event in events for one in _read_questions(event, context)),
        reports=_read_utterances(
            events, EventKind.SUBAGENT_STOP, "last_assistant_message", context
        ),
        compactions=_read_utterances(events, EventKind.COMPACT_END, "compact_summary", context),
        commands=commands,
        edits=tuple(edit for event in events for edit in read_edits(event)),
        has_failed_edits=any(
            event.kind is EventKind.TOOL_FAILURE and event.tool in EDIT_TOOLS for event in events
        ),
        reads=unique(path for event in events if (path := _find_read_path(event))),
        client_titles=unique(
            one_line(text_at(event.payload, "title"), _CLIENT_TITLE_CHARACTERS)
            for event in titles
            if event.payload.get("title_kind") == SUMMING_TITLE
        ),
        worked_at=max((event.at for event in events if _is_main_agent_result(event)), default=0),
        shown=(*(run.output for run in commands), *filter(None, shown)),
        last_at=max((event.at for event in events), default=0),
    )


def _is_main_agent_result(event: Event) -> bool:
    is_over = event.kind in (EventKind.TOOL_RESULT, EventKind.TOOL_FAILURE)
    return is_over and not event.agent and event.tool != QUESTION_TOOL


def _has_told_answer(event: Event) -> bool:
    """Return whether an agent stopped whose client tells its closing message before, as any other text."""
    is_stop = event.kind is EventKind.STOP and not event.agent
    return is_stop and event.payload.get("last_assistant_message", "") is None


def _read_utterances(
    events: Sequence[Event], kind: EventKind, key: str, context: EpisodeContext
) -> tuple[Utterance, ...]:
    found = []
    for event in events:
        if event.kind is not kind or (is_compaction(event) and kind is EventKind.SUBAGENT_STOP):
            continue
        if kind is not EventKind.SUBAGENT_STOP and event.agent:
            continue  # a subagent is prompted by an agent, not by the user
        text = strip_injected(text_at(event.payload, key), context.own_tags)
        speaker = text_at(event.payload, "agent_type") or "Assistant"
        if speaker in {_USER, _ALLEGED}:
            speaker = "Assistant"  # a subagent of this name is not the user
        if kind is EventKind.PROMPT:
            speaker = _name_person(event)
            if is_machine_text(text) or find_prompt_origin(event.payload) != USER:
                continue
        if text:
            found.append(Utterance(event.id, event.at, text, speaker))
    return tuple(found)


def _read_api_error(last_ending: Sequence[Event]) -> str:
    for event in last_ending:
        if event.name == _FAILED_STOP:
            said = (text_at(event.payload, key) for key in ("last_assistant_message", "error"))
            return one_line(next(filter(None, said), ""), _API_ERROR_CHARACTERS) or "unknown"
    return ""


def _read_denial(event: Event) -> tuple[str, str]:
    """The command or the file of a call that the client denied, else the tool's name; and why."""
    keys = ("command", "file_path", "url", "notebook_path")
    named = (text_at(event.payload, "tool_input", key) for key in keys)
    return next(filter(None, named), event.tool or ""), text_at(event.payload, "reason")


def _name_person(event: Event) -> str:
    return _ALLEGED if event.source == AGENTS_IMPORT else _USER


def _read_refusal(event: Event, context: EpisodeContext) -> Refusal | None:
    if event.kind is not EventKind.TOOL_REFUSED:
        return None
    text = strip_injected(text_at(event.payload, "said"), context.own_tags)
    said = Utterance(event.id, event.at, "" if is_private(text) else text, _name_person(event))
    given = event.payload.get("tool_input")
    return Refusal(said, event.tool or "", given if isinstance(given, Mapping) else {})


def _read_questions(event: Event, context: EpisodeContext) -> Iterable[AskedQuestion]:
    if event.kind is not EventKind.TOOL_RESULT or event.tool != QUESTION_TOOL or event.agent:
        return
    given, response = event.payload.get("tool_input"), event.payload.get("tool_response")
    answers = _read_answers(response)
    asked = given.get("questions") if isinstance(given, Mapping) else None
    for question in asked if isinstance(asked, list) else ():
        text = text_at(question, "question") if isinstance(question, Mapping) else ""
        answer = strip_injected(answers.get(text, ""), context.own_tags)
        if not text or not answer or is_private(answer):
            continue
        found = question.get("options")
        options = [o for o in found if isinstance(o, Mapping)] if isinstance(found, list) else []
        yield AskedQuestion(
            Utterance(event.id, event.at, text, "Assistant"),
            tuple((text_at(o, "label"), text_at(o, "description")) for o in options),
            Utterance(event.id, event.at, answer, _name_person(event)),
        )


def _read_answers(response: Any) -> dict[str, str]:
    """Question → answer; a transcript may have them as one line of text only."""
    if isinstance(response, Mapping):
        answers = response.get("answers")
        found = answers.items() if isinstance(answers, Mapping) else ()
        return {str(asked): said for asked, said in found if isinstance(said, str)}
    return dict(_ANSWERED.findall(response)) if isinstance(response, str) else {}


def read_command(event: Event, roots: Sequence[str]) -> ShellCommand | None:
    """The shell command of an event that tells how it ended; None for any other event."""
    command = text_at(event.payload, "tool_input", "command").strip()
    is_over = event.kind in (EventKind.TOOL_RESULT, EventKind.TOOL_FAILURE)
    if event.tool not in ("Bash", "PowerShell") or not command or not is_over:
        return None
    directory, line = _localize_command(text_at(event.payload, "cwd"), command, roots)
    return ShellCommand(
        event_id=event.id,
        at=event.at,
        command=command,
        description=text_at(event.payload, "tool_input", "description").strip(),
        output=_read_output(event)[-_OUTPUT_CHARACTERS:],
        failed=event.kind is EventKind.TOOL_FAILURE,
        is_interrupted=_is_set(event.payload, "is_interrupt")
        or _is_set(event.payload.get("tool_response"), "interrupted"),
        is_background=_is_set(event.payload.get("tool_input"), "run_in_background"),
        directory=directory,
        line=line,
        agent=name_subagent(event),
        agent_id=event.agent or "",
    )


def _localize_command(cwd: str, command: str, roots: Sequence[str]) -> tuple[str, str]:
    """(directory, line) with the project's own directories under one name, so that worktrees compare."""
    if (moved := _LEADING_CD.match(command)) and not moved[1].startswith(("/", "~", "$", "-")):
        # The client names the directory after the command; this is the one before it.
        target = posixpath.normpath(moved[1].strip("'\""))
        cwd = cwd.removesuffix("/" + target) if target != "." else cwd
    directory = cwd or PROJECT_DIRECTORY
    for root in sorted({r.rstrip("/") for r in roots if r.strip("/")}, key=len):
        pattern = rf"(?<![\w./@-]){re.escape(root)}(?![\w.-])"
        command = re.sub(pattern, PROJECT_DIRECTORY, command)
        directory = re.sub(rf"^{re.escape(root)}(?=/|$)", PROJECT_DIRECTORY, directory)
    return directory, command


def _is_set(payload: Any, key: str) -> bool:
    return isinstance(payload, Mapping) and payload.get(key) is True


def _read_output(event: Event) -> str:
    if event.kind is EventKind.TOOL_FAILURE:
        return text_at(event.payload, "error")
    response = event.payload.get("tool_response")
    if isinstance(response, str):
        return response
    streams = (text_at(event.payload, "tool_response", name) for name in ("stdout", "stderr"))
    return "\n".join(stream for stream in streams if stream)


def _find_read_path(event: Event) -> str:
    if event.kind is not EventKind.TOOL_RESULT or event.tool not in _READ_TOOLS:
        return ""
    path = text_at(event.payload, "tool_input", "file_path")
    return path or text_at(event.payload, "tool_response", "file", "filePath")


# ── The uids of what an episode yields ────────────────────────────────────────────────────────────


def slot_uid(session: Session, episode: str, slot: str) -> str:
    """The uid of what an episode yields in a slot."""
    return digest(session.uid, episode, slot)


def uid_beside(uid: str) -> str:
    """The uid for a slot whose own uid belongs to something that stays."""
    return digest(uid, "beside")
