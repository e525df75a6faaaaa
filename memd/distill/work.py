"""Read which turns of a session are one piece of work, the piece as a whole, and which of its commands do work. Pure.

Of turns labelled by readers, a prompt of up to three words after which no file is changed continues the work before it
in 87 % (`commit`, `run the tests`, `thanks`); any other begins something that somebody looks for. A prompt that a client
sent by itself, or that repeats an unanswered one, continues it, too.

The memory of a piece belongs to its first turn, which is distilled again once a turn joins or leaves it. Which memory
tells of which prompt is in the edges of the memory's sources, so that a turn that arrives late takes others out of their
piece, too.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from memd.caches import cached
from memd.distill import episodes, text
from memd.distill import text as sentences
from memd.distill.edits import FileEdit, is_edit, text_at
from memd.distill.episodes import (
    Episode,
    EpisodeContext,
    Role,
    ShellCommand,
    Story,
    Utterance,
    find_sender,
)
from memd.distill.own_words import read_own_sentences
from memd.distill.proof import checks, command_output, shell
from memd.distill.proof.checks import is_failing
from memd.distill.proof.objections import find_denials
from memd.machine_text import is_machine_text
from memd.models import ELSEWHERE, Event, EventKind
from memd.patterns import compile_lazily
from memd.text import content_stems, is_private, normalised, unique, words

TURNS_BEFORE = 4
"""Turns before a prompt that may decide what it continues."""
PIECE_TURNS_MAX, PIECE_EVENTS_MAX = 12, 3_000
"""Turns and events of one piece of work; a longer one is told in several memories."""
_REPEATED_JACCARD = 0.7
_ASIDE_CHARACTERS = 300
"""An answer of fewer characters, for which nothing was looked at or done and which asks back or is to a pasted text, only
carries on: of 12 such turns readers found one worth a memory of its own, and six worth none."""
_CONTINUING = frozenset((EventKind.TOOL_RESULT, EventKind.STOP, EventKind.AGENT_TEXT))
"""Kinds of events with which a turn may begin that nobody has prompted."""

# ── What continues what ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TurnOutline:
    """The words of a turn, as far as they tell whether it continues another."""

    key: str
    """The key of its episode."""
    event_id: int
    """The id of its prompt."""
    at: int
    """The time of its prompt, in UTC milliseconds."""
    turn: str | None
    """The client's id of it."""
    prompt: str
    answer: str = ""
    """The agent's last words; empty if it said nothing."""
    is_answered: bool = False
    """Whether the turn ended with that answer; if not, it was interrupted."""
    is_private: bool = False
    place: str = ""
    """The key of the project where it happened, if that is not its session's."""
    has_edits: bool = False
    """Whether files were changed in it."""
    has_calls: bool = False
    """Whether anything was done in it, be it looking."""
    sender: str = ""
    """The sender of the prompt, where no person typed it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a turn in a piece of work."""

    head: str
    """The key of the turn that the piece begins with."""
    role: Role


def find_continued(
    turn: TurnOutline, earlier: Sequence[TurnOutline]
) -> tuple[TurnOutline, Role] | None:
    """The turn whose memory this one belongs to, among the `earlier` ones, the latest first, and in what way; maybe none."""
    if not earlier or turn.is_private or earlier[0].is_private or turn.place != earlier[0].place:
        return None
    if turn.sender:
        return None
    last, said = earlier[0], turn.prompt.strip()
    if not said or is_machine_text(said) or _is_said_again(turn, last):
        return last, "resumed"
    # An interrupted prompt that brought nothing stands between a message and its answer.
    heard = next((one for one in earlier if one.answer and not one.is_private), None)
    is_aside = turn.is_answered and not turn.has_calls and _is_aside(said, turn.answer)
    if heard is None or turn.has_edits or not (is_aside or sentences.is_short(said)):
        return None
    # A question begins something, and so does a complaint that disputes the fix before it.
    utterance = Utterance(turn.event_id, turn.at, turn.prompt, "User")
    is_own = said.endswith(sentences.QUESTION_MARKS) or find_denials(utterance)
    return None if is_own else (heard, "follows")


def _is_aside(said: str, answer: str) -> bool:
    """Return whether an answer for which nothing was done says little: it asks back, or is to a text that nobody typed."""
    if not 0 < len(answer) < _ASIDE_CHARACTERS:
        return False
    asks_back = any(mark in answer for mark in sentences.QUESTION_MARKS) or text.list_labelled(
        answer
    )
    return bool(asks_back) or not read_own_sentences(said)


def _is_said_again(turn: TurnOutline, last: TurnOutline) -> bool:
    """Return whether a prompt is the last one again, whose work was interrupted, or the very same and neither brought anything.

    A watchdog may send the same line hundreds of times. What was interrupted before anything was done leaves nothing.
    """
    if last.is_answered:
        is_idle = not (turn.has_calls or last.has_calls)
        return is_idle and normalised(turn.prompt) == normalised(last.prompt)
    one, other = (frozenset(content_stems(text)) for text in (turn.prompt, last.prompt))
    is_same = bool(one) and len(one & other) >= _REPEATED_JACCARD * len(one | other)
    return last.has_edits and is_same


def find_places(
    turns: Sequence[TurnOutline],
    unusable: AbstractSet[str] = frozenset(),
    sizes: Mapping[str, int] | None = None,
) -> Mapping[str, Place]:
    """Key of each of these successive turns → its place. The first few may have another in a longer sequence.

    `unusable`: keys of turns that are left as they are. `sizes`: key → number of the turn's events.
    """
    places: dict[str, Place] = {}
    members: dict[str, list[str]] = {}
    prompted = {turn.key for turn in turns if turn.prompt}
    for number, turn in enumerate(turns):
        earlier = turns[max(0, number - TURNS_BEFORE) : number][::-1]
        found = None if turn.key in unusable else find_continued(turn, earlier)
        place = Place(turn.key, "head")
        if found and (head := places[found[0].key].head) not in unusable:
            size = sum((sizes or {}).get(key, 0) for key in (*members[head], turn.key))
            has_room = len(prompted.intersection(members[head])) < PIECE_TURNS_MAX
            if (has_room or not turn.prompt) and size <= PIECE_EVENTS_MAX:
                place = Place(head, found[1])
        places[turn.key] = place
        members.setdefault(place.head, []).append(turn.key)
    return places


def outline_turns(
    found: Sequence[Event], own_tags: tuple[str, ...] = sentences.OWN_TAGS
) -> list[TurnOutline]:
    """The turns that these events of a session begin, in order of time. Its own agent's words count, no subagent's.

    The client begins one without a prompt when a task in the background has ended: it continues the last one.
    """
    turns: dict[str, TurnOutline] = {}
    current = ""
    for event in sorted(found, key=lambda one: (one.at, one.id)):
        if event.agent is not None:
            continue
        if event.kind is EventKind.PROMPT or find_sender(event):
            current = event.turn or f"event-{event.id}"
            turns.setdefault(current, _begin_turn(current, event, own_tags))
        key = event.turn or current
        if key not in turns and not (turns and event.kind in _CONTINUING):
            continue
        turn = turns.setdefault(key, _begin_turn(key, event, own_tags))
        if event.kind is EventKind.TOOL_RESULT:
            turns[key] = replace(turn, has_edits=turn.has_edits or is_edit(event), has_calls=True)
        elif event.kind is EventKind.STOP:
            answer = read_answer(event, own_tags) or turn.answer
            turns[key] = replace(turn, answer=answer, is_answered=True)
        elif event.kind is EventKind.AGENT_TEXT and not turn.is_answered:
            turns[key] = replace(turn, answer=read_answer(event, own_tags) or turn.answer)
    return list(turns.values())


def _begin_turn(key: str, event: Event, own_tags: tuple[str, ...]) -> TurnOutline:
    sender = find_sender(event)
    prompt = "" if sender else text_at(event.payload, "prompt")
    return TurnOutline(
        key, event.id, event.at, event.turn, sentences.strip_injected(prompt, own_tags),
        is_private=is_private(prompt), place=text_at(event.payload, ELSEWHERE), sender=sender,
    )  # fmt: skip


def read_answer(event: Event, own_tags: tuple[str, ...]) -> str:
    """The agent's words in an event; empty if they are private."""
    key = "last_assistant_message" if event.kind is EventKind.STOP else "text"
    text = text_at(event.payload, key)
    return "" if is_private(text) else sentences.strip_injected(text, own_tags)


# ── The episodes of a session, each with its place ────────────────────────────────────────────────


def join_all(found: Sequence[Event], whole: Sequence[Episode]) -> list[Episode]:
    """Episodes of a session that is read whole, each with its place in a piece of work; turns not among them are left."""
    turns = outline_turns(found)
    by_key = {one.key: one for one in whole}
    unusable = {turn.key for turn in turns if turn.key not in by_key}
    places = find_places(turns, unusable, {one.key: len(one.events) for one in whole})
    return list(place_episodes(whole, turns, places, by_key.get))


def place_episodes(
    found: Sequence[Episode],
    turns: Sequence[TurnOutline],
    places: Mapping[str, Place],
    find: Callable[[str], Episode | None],
) -> Iterator[Episode]:
    """Yield each episode with its place, what was heard before it, and what continues it if its piece begins with it."""
    heard = {after.key: before.answer for before, after in itertools.pairwise(turns)}
    members: dict[str, list[str]] = {}
    for turn in turns:
        members.setdefault(places[turn.key].head, []).append(turn.key)
    for one in found:
        place = places.get(one.key)
        if place is None:
            yield one
            continue
        keys = members[one.key][1:] if place.head == one.key else ()
        later = ((key, other) for key in keys if (other := find(key)) is not None)
        yield replace(
            one,
            continues="" if place.head == one.key else place.head,
            later=tuple((places[key].role, other.events) for key, other in later),
            heard=heard.get(one.key, ""),
        )


# ── The turns of a piece of work, read together ───────────────────────────────────────────────────

_SUBSTANCE_CHARACTERS = 160
"""A closing message without work behind it is an outcome from this length on, and an answer to a few words worth a memory."""
_WORDS_MIN = 3
"""Words of any other answer that is worth one."""
_READ_OUT_NEW_MAX = 1
"""Content words of an answer that stand neither in its prompt nor in what commands printed, as `new` in `your new code is 42`."""
_MENU_MIN, _MENU_SHARE = 3, 1 / 3
"""Labelled options that were read out, and their share of a message's lines, from which it is a menu. Of 550 labelled
turns in which nothing was changed, those that reach this are a program's menus, and no other has a single such line."""
_SUMMARY_CHARACTERS = 300
"""From this length on the message after a few words may sum up the whole piece."""


@dataclass(frozen=True, slots=True)
class Part:
    """One turn of a piece of work."""

    story: Story
    role: Role
    heard: str
    """The agent's last words before it."""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work."""

    parts: tuple[Part, ...]
    """Its turns, in order."""
    main: Part
    """The one that tells best what came of it."""
    whole: Story
    """All of them as one story; its `answer` is the message that tells the outcome."""
    is_open: bool = False
    """Whether something is being done in it: what comes of that is not known yet."""

    @property
    def asking(self) -> Part:
        """The main turn; where nobody prompted it, the last one before it that somebody did."""
        until = self.parts[: self.parts.index(self.main) + 1]
        return next((one for one in reversed(until) if one.story.prompts), self.main)

    @property
    def later(self) -> tuple[Part, ...]:
        """The turns that continued it."""
        return self.parts[1:]

    def list_messages(self) -> Iterator[str]:
        """Yield the agent's words at the end of each turn but those that tell the outcome, in order."""
        for one in self.parts:
            if one.story.told and one.story.told != self.whole.answer:
                yield one.story.told


def read_work(episode: Episode, story: Story, context: EpisodeContext) -> Work:
    """The piece of work that an episode, which tells this story, begins."""
    turns = [(Part(story, "head", episode.heard), episode.events)]
    for role, found in episode.later:
        prompts = (event for event in found if event.kind is EventKind.PROMPT)
        if not any(is_private(event.payload.get("prompt")) for event in prompts):
            told = episodes.read_story(found, context)
            turns.append((Part(told, role, turns[-1][0].story.told), found))
    while len(turns) > 1 and _shows_menu(turns[0][0].story):
        turns = [(replace(turns[1][0], role="head"), turns[1][1]), *turns[2:]]
    parts = [part for part, _ in turns]
    main = _find_main(parts)
    is_open = not episode.is_over and bool(story.commands or story.reads)
    if len(parts) == 1:
        return Work(tuple(parts), main, main.story, is_open)
    together = sorted((one for _, found in turns for one in found), key=lambda e: (e.at, e.id))
    whole = episodes.read_story(together, context)
    outcome = _find_outcome(parts, main)
    answers = (*(said for said in whole.answers if said not in outcome), *outcome)
    return Work(tuple(parts), main, replace(whole, answers=answers), is_open)


_FAILED_TOLD_MIN = 300
"""Characters from which an answer says more than that what was tried is done, where every change of a file failed."""


def has_outcome(story: Story) -> bool:
    """Return whether a turn did or found something: an unanswered prompt, an interruption and a thank-you did not."""
    failed = (is_failing(c) and command_output.is_check(c.command) for c in story.commands)
    if story.edits or any(map(leaves_something, story.commands)) or any(failed):
        return True
    told = story.told
    has_only_failed = story.has_failed_edits and len(told) < _FAILED_TOLD_MIN
    if has_only_failed or all(map(sentences.is_only_placeholders, (told, story.prompt))):
        return False
    if not story.answers:
        # What it was about to do is told, where it had begun to look.
        return bool(story.questions or (story.worked_at and told))
    if not (story.worked_at or story.reports or story.questions):
        if all(sentences.is_command(said.text) for said in story.prompts):
            return False
        if all(sentences.is_short(said.text) for said in story.prompts):
            return len(told) >= _SUBSTANCE_CHARACTERS
    return len(words(told)) >= _WORDS_MIN and not (_only_reads_out(story) or _shows_menu(story))


def _only_reads_out(story: Story) -> bool:
    """Return whether a short answer repeats what a look at the present state printed: another look tells that again, and newer.

    Of the turns labelled by readers that left nothing, none of those that are worth a memory answers so.
    """
    if len(story.told) >= _SUBSTANCE_CHARACTERS:
        return False
    if any(is_failing(c) or not command_output.is_read_only(c.command) for c in story.commands):
        return False
    printed = set(content_stems(" ".join(c.output for c in story.commands)))
    new = set(content_stems(story.told)) - set(content_stems(story.prompt))
    return bool(new & printed) and len(new - printed) <= _READ_OUT_NEW_MAX


def _shows_menu(story: Story) -> bool:
    """Return whether a turn that changed nothing ended with a menu read out of a prompt or a file, for the user to choose from."""
    lines = sum(bool(line.strip()) for line in story.told.split("\n"))
    offered, needed = text.list_labelled(story.told), max(_MENU_MIN, _MENU_SHARE * lines)
    if len(offered) < needed or changed_something(story):
        return False
    shown = _spell("\n".join((story.prompt, *story.shown)))
    return sum(_spell(one) in shown for one in offered) >= needed


def _spell(text: str) -> str:
    """The words of a text between spaces, to be looked up in another."""
    return f" {' '.join(words(text.lower()))} "


def _find_main(parts: list[Part]) -> Part:
    """The last turn that changed files, of those that do the work before those that mend it or check it."""
    doing = [one for one in parts if one.role in ("head", "resumed")]
    for some in (doing, parts):
        if changed := [one for one in some if one.story.edits]:
            return changed[-1]
    told = [one for one in doing if len(one.story.told) >= _SUBSTANCE_CHARACTERS]
    return (told or [one for one in doing if one.story.told] or parts)[-1]


def _find_outcome(parts: list[Part], main: Part) -> tuple[Utterance, ...]:
    """The message that tells the outcome: the main turn's, or what sums up the piece after its last task in the background."""
    for one in reversed(parts[parts.index(main) + 1 :]):
        size = len(one.story.told)
        is_sum = one.role == "follows" and size >= len(main.story.told)
        if size >= _SUMMARY_CHARACTERS and (is_sum or not one.story.prompts):
            return one.story.answers[-1:]
    return main.story.answers[-1:]


_CLOUD_VERB = compile_lazily(r"^(?:create|update|delete|put|modify|attach|detach|deploy|add|remove)(?:-|$)")  # fmt: skip
_WRITES_ROWS = compile_lazily(
    r"\b(?:insert\s+into|update\s+\S+\s+set|delete\s+from"
    r"|(?:alter|create|drop|truncate)\s+(?:unique\s+)?(?:table|index|view|role|user|database|schema|extension))\b",
    re.IGNORECASE,
)
_WRITES_FILE = compile_lazily(r"(?<![0-9&>=<-])>{1,2}\s*(?![&>]|/dev/|/tmp/|/var/folders|\$)[\"']?[\w./~-]")  # fmt: skip
_QUOTED = compile_lazily(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_TEMPORARY = compile_lazily(r"^(?:/private)?/(?:tmp|var/folders)(?:/|$)|^\$\{?TE?MP|/tmp\.|^/dev/")
_WRAPPERS = frozenset(words("sudo rtk time nice nohup command npx exec xargs"))
_OPTION_WITH_VALUE = frozenset(("-C", "-c", "-R", "--repo", "-n", "--namespace", "--git-dir"))
_IN_PLACE = compile_lazily(r"-\w*i|--in-place")
_OWN_FILES = compile_lazily(r"/\.claude/(?:plans|projects|todos)/")
_PLAN_FILE = compile_lazily(r"/\.claude/plans/[^/]+\.md$")
_LISTS_TAGS = frozenset(("-l", "--list", "-n", "--contains", "--points-at", "--merged"))
_TOLD_BY_FILES = frozenset(words("git mv rm rmdir cp ln chmod chown patch rsync sed perl"))
"""Tools whose work shows in the commits and files that a memory names anyway; git does for its pushes and merges, too."""
_NO_COMMIT = compile_lazily(r"^(?:nothing|no changes)\b[^\n]* (?:to )?commit\b", re.MULTILINE)
_NESTING_MAX = 2
_RUNS_CACHED = 512
"""Runs of which it is kept whether they did work."""


def changed_something(story: Story) -> bool:
    """Return whether a turn left something: a changed file of the project, a commit, a package, a service."""
    return has_project_edits(story) or any(map(leaves_something, story.commands))


def has_project_edits(story: Story) -> bool:
    """Return whether files were changed with the client's tools, other than those that it keeps for itself: a plan, its memory."""
    return any(_OWN_FILES.search(edit.path) is None for edit in story.edits)


def find_written_plan(edits: Sequence[FileEdit]) -> str:
    """The text of the plan that a turn wrote last; empty if it wrote none."""
    found = (e.new for e in reversed(edits) if e.is_whole_file and _PLAN_FILE.search(e.path))
    return next(found, "")


@cached(_RUNS_CACHED)
def leaves_something(command: ShellCommand) -> bool:
    """Return whether a command succeeded at work that stays."""
    if command.is_interrupted or checks.is_failing(command) or was_not_done(command):
        return False
    return _line_leaves_something(command.command, 0)


def was_not_done(command: ShellCommand) -> bool:
    """Return whether the work at the end of a line failed, even after a check that passed, or git had nothing to commit."""
    parts = [one.words for one in shell.parse_line(command.command)]
    if command.failed and parts and _command_leaves(parts[-1], 0):
        return True
    verbs = {verb for git, verb in (words[:2] for words in parts if len(words) > 1) if git == "git"}
    is_shown = "commit" in verbs and "status" not in verbs
    return is_shown and _NO_COMMIT.search(command.output) is not None


def leaves_untold_work(command: ShellCommand) -> bool:
    """Return whether a command succeeded at work that no changed file and no commit tells: an install, a release, a service, a row."""
    return leaves_something(command) and any(
        _command_leaves(one.words, 0) and _read_tool(one.words)[0] not in _TOLD_BY_FILES
        for one in shell.parse_line(command.command)
    )


def list_moved_files(story: Story) -> tuple[str, ...]:
    """The files that commands have renamed to or deleted, as they were written there, once each."""
    found: list[str] = []
    for command in filter(leaves_something, story.commands):
        for one in shell.parse_line(command.command):
            tool, rest = _read_tool(one.words)
            if tool == "git" and rest[:1] in (["mv"], ["rm"]):
                tool, rest = rest[0], rest[1:]
            paths = [word for word in rest if not word.startswith("-") and "*" not in word]
            if tool == "mv" and paths[-1:] and paths[-1].endswith("/"):
                found.extend(paths[-1] + path.rsplit("/", 1)[-1] for path in paths[:-1])
            elif tool == "mv":
                found.extend(paths[-1:] if len(paths) == 2 else paths[:-1])  # noqa: PLR2004  # one to another
            elif tool == "rm":
                found.extend(paths)
    return unique(path for path in found if not _TEMPORARY.search(path) and "$" not in path)


def _line_leaves_something(line: str, depth: int) -> bool:
    if _WRITES_FILE.search(_QUOTED.sub("''", line.split("<<", 1)[0])):
        return True
    return any(_command_leaves(one.words, depth) for one in shell.parse_line(line))


def _command_leaves(given: Sequence[str], depth: int) -> bool:  # noqa: PLR0911  # a list of cases, in order
    """Return whether one command is work: of a shell elsewhere, its line; of another tool, by its row in the table."""
    tool, rest = _read_tool(given)
    if rest[:2] == ["-m", "pip"]:
        tool, rest = "pip", rest[2:]
    verbs = [word for word in rest if not word.startswith("-")]
    if tool == "ssh":
        return depth < _NESTING_MAX and _line_leaves_something(" ".join(verbs[1:]), depth + 1)
    if tool == "git" and verbs[:1] == ["tag"]:
        return len(verbs) > 1 and not _LISTS_TAGS.intersection(rest)
    row = _read_work().get(tool, {})
    match row.get("how"):
        case "files":
            return bool(verbs) and not _TEMPORARY.search(verbs[-1])
        case "in place":
            return any(map(_IN_PLACE.match, rest))
        case "cloud":
            return any(map(_CLOUD_VERB.match, verbs[:4]))
        case "rows":
            return any(map(_WRITES_ROWS.search, rest))
        case "second verb":
            return verbs[:1] != ["api"] and verbs[1:2] != [] and verbs[1] in row["verbs"]
        case _:
            return any(" ".join(verbs[:count]) in row.get("verbs", ()) for count in (1, 2))


@cache
def _read_work() -> Mapping[str, Mapping[str, Any]]:
    """Each tool that may do work → its row of the table."""
    return {tool: row for row in shell.TOOLS.rows["work"] for tool in row["tools"].split()}


def _read_tool(given: Sequence[str]) -> tuple[str, list[str]]:
    """(name of the program, its arguments) without wrappers and the options before a verb that have a value."""
    left = list(given)
    while left and (left[0] in _WRAPPERS or left[0].startswith("-")):
        left = left[1:]
    if not left:
        return "", []
    rest = left[1:]
    while len(rest) > 1 and rest[0] in _OPTION_WITH_VALUE:
        rest = rest[2:]
    return left[0].rsplit("/", 1)[-1], rest
