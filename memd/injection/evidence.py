"""Find the memories for which a call, an error or a subagent's task is evidence.

    places   a note whose place, a file, a directory or a command, a call reads, changes or runs
    errors   what fixed an error here before, by its signature: the line that says what is wrong, without what differs from
             run to run. Told is what the record proves to have fixed it; else, under a heading that says so, what was
             noted about it or done when somebody pasted it; never the text of the error
    tasks    the rules that apply to what a subagent is asked to do

A place with a slash is looked for below the project's directories, one without anywhere in them; `*` and `**` stand for
what they stand for in a shell.
"""

import json
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse
from typing import Any

from memd.belief.notes import split_note
from memd.belief.polarity import list_folded
from memd.belief.standing import OF_COMMAND, OF_FILE
from memd.caches import cached
from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.proof import command_output
from memd.distill.proof.checks import is_failing
from memd.injection import start
from memd.injection.breaches import matches, read_commands
from memd.injection.choice import CandidateGroup
from memd.injection.lines import read_answer, read_outcome, stands_alone
from memd.injection.moments import EndedCall, InjectionMoment
from memd.injection.origins import shorten_name
from memd.injection.prompt_gate import ERROR_FIELD, MATCHED_MIN, TURN_KINDS
from memd.injection.start import SessionCandidates, SessionPlace, SessionState
from memd.injection.working_tree import WorkingTree, drop_arguments
from memd.models import EdgeType, Event, Kind, Summary
from memd.patterns import compile_lazily
from memd.store import ContextCandidate, events, links, session_context, summaries, usage
from memd.store.database import Connection
from memd.store.events import TurnFilter, match_turns
from memd.text import WORD, content_stems, normalised, one_line, split_sentences, unique

_NOTED_SHOWN, _RULES_SHOWN, _PLACES_SHOWN = 3, 10, 3
NOTED_HEADING = "Noted for"
FIXED_HEADING = "The same failed here before; what fixed it"
MET_HEADING = (
    "The same was met here before; what was said or done then, without proof that it helped"
)
_FIXES_SHOWN = 2
SUBAGENT_HEADING = "Rules of the user's project that apply to this task"


def find_touched_notes(tx: Connection, moment: InjectionMoment) -> dict[int, str]:
    """Memory → its place that a call touches and that the session has not been shown."""
    if moment.call is None or not session_context.has_scoped(tx):
        return {}
    here = start.read_session_place(tx, SessionPlace(moment.client, moment.session), None)
    if here.session is None:
        return {0: ""}  # where it stands has still to be looked up on the disk
    return _match_places(tx, here, moment)


def _match_places(tx: Connection, here: SessionState, moment: InjectionMoment) -> dict[int, str]:
    assert moment.call is not None
    call = TouchedPlaces(moment.call)
    tagged = session_context.scoped_tags(tx, here.project_ids)
    possible = [(n, places) for n, tags in tagged if call.may_touch(places := read_places(tags))]
    roots = _list_roots(here, moment) if possible else ()
    found = ((number, call.find(places, roots)) for number, places in possible)
    touched = {number: place for number, place in found if place is not None}
    if touched and here.session is not None:
        told = usage.last_injected(tx, here.session.id)
        lost = events.last_context_loss(tx, here.session.id) or 0
        touched = {n: place for n, place in touched.items() if told.get(n, (-1, ""))[0] < lost}
    return touched


def _list_roots(here: SessionState, moment: InjectionMoment) -> tuple[str, ...]:
    """The directories to which the places of memories are relative."""
    tree = WorkingTree(moment.directory).root
    session = here.session.directory if here.session else None
    known = (tree and str(tree), here.project and here.project.key, session, moment.directory)
    return unique(one for one in known if one and one.startswith("/"))


def find_noted(
    tx: Connection, moment: InjectionMoment, here: SessionState, now: int
) -> CandidateGroup:
    """Find the notes for the file, directory or command of a call alone."""
    touched = _match_places(tx, here, moment) if moment.call else {}
    found = session_context.candidates_by_ids(tx, list(touched), now) if touched else []
    places = ", ".join(unique(shorten_name(touched[one.id]) for one in found)[:_PLACES_SHOWN])
    heading = f"{NOTED_HEADING} {places}"
    return CandidateGroup(heading, tuple(found), limit=_NOTED_SHOWN)


def find_rules(
    tx: Connection, here: SessionState, moment: InjectionMoment, task: str, now: int
) -> CandidateGroup:
    """Find the rules for a task: those of a place that it names, those on its subject, those without a place."""
    roots, about = _list_roots(here, moment), set(content_stems(task))
    ranked: list[tuple[int, ContextCandidate]] = []
    for one in filterfalse(start.is_unproved, start.read_rules(tx, here, now)):
        is_placed = any(tag.startswith((OF_FILE, OF_COMMAND)) for tag in one.tags)
        if is_placed and not find_mentioned(one.tags, task, roots):
            continue
        shared = len(about.intersection(content_stems(one.title)))
        ranked.append((-shared - is_placed, one))
    ranked.sort(key=lambda pair: pair[0])
    found = tuple(one for _, one in ranked)
    return CandidateGroup(SUBAGENT_HEADING, found, limit=_RULES_SHOWN, is_ordered=True)


def drop_gone(found: SessionCandidates, tree: WorkingTree) -> SessionCandidates:
    """Drop memories that name something that is gone from the working tree.

    What the command of a fix makes or removes is not there exactly when its failure comes again.
    """

    def is_there(one: ContextCandidate, group: CandidateGroup) -> bool:
        is_fix = group.name == FIXED_HEADING
        return not tree.note_gone(drop_arguments(one.title) if is_fix else one.title, one.at)

    groups = [
        replace(group, candidates=tuple(c for c in group.candidates if is_there(c, group)))
        for group in found.groups
    ]
    return replace(found, groups=tuple(groups))


# ── Places ──────────────────────────────────────────────────────────────────────────────────────

_COMMAND_CHARACTERS_MAX = 4_000
_SEPARATORS = compile_lazily(r"[\s'\"`;|&()<>=,]+")
_LINE_OF_FILE = compile_lazily(r"(?<=\w):\d+(?::\d+)?\Z")


@dataclass(frozen=True, slots=True)
class _NotedPlace:
    """A place, and a word without which no call touches it; none of one with a `*` in its last part."""

    name: str
    is_command: bool
    key: str


@cached(4_096)
def read_places(tags: str) -> tuple[_NotedPlace, ...]:
    """The places among the tags of a memory, which are given as JSON."""
    found = []
    for tag in json.loads(tags):
        if tag.startswith(OF_COMMAND) and (name := tag.removeprefix(OF_COMMAND)):
            found.append(
                _NotedPlace(name, is_command=True, key=posixpath.basename(name.split()[0]))
            )
        elif tag.startswith(OF_FILE) and (name := tag.removeprefix(OF_FILE).strip("/")):
            last = posixpath.basename(name)
            whole = tag.removeprefix(OF_FILE)
            found.append(_NotedPlace(whole, is_command=False, key="" if "*" in name else last))
    return tuple(found)


class TouchedPlaces:
    """The paths and commands that a call reads, changes or runs."""

    def __init__(self, call: EndedCall) -> None:
        self._commands = read_commands(call.command[:_COMMAND_CHARACTERS_MAX], call.directory or "")
        moved = (path for one, at in self._commands for path in _resolve(one.words, at))
        self._paths = {*_list_paths(call), *moved}
        self._keys = {part for path in self._paths for part in path.split("/")}
        self._keys.update(posixpath.basename(one.program) for one, _ in self._commands)

    def may_touch(self, places: Sequence[_NotedPlace]) -> bool:
        """Return whether one of these may be touched: most are not, and this costs next to nothing."""
        return any(not one.key or one.key in self._keys for one in places)

    def find(self, places: Sequence[_NotedPlace], roots: Sequence[str]) -> str | None:
        """The first of these places that is touched; None if none is. `roots`: what a relative place is relative to."""
        for one in places:
            is_bare = one.is_command or "/" not in one.name
            is_run = is_bare and any(matches(one.name, command) for command, _ in self._commands)
            if is_run or (
                not one.is_command and any(_is_at(path, one.name, roots) for path in self._paths)
            ):
                return one.name
        return None


def find_mentioned(tags: Collection[str], text: str, roots: Sequence[str]) -> str | None:
    """The place among a memory's tags that a text names; None if it names none of them."""
    named = tuple(_resolve(_SEPARATORS.split(text), roots[0] if roots else ""))
    for tag in tags:
        if tag.startswith(OF_COMMAND) and _has_words(text, tag.removeprefix(OF_COMMAND)):
            return tag.removeprefix(OF_COMMAND)
        place = tag.removeprefix(OF_FILE) if tag.startswith(OF_FILE) else ""
        if place and (_has_words(text, place) or any(_is_at(one, place, roots) for one in named)):
            return place
    return None


def _has_words(text: str, place: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(place.rstrip('/'))}(?![\w-])", text) is not None


def _list_paths(call: EndedCall) -> Iterator[str]:
    base = call.directory or "/"
    yield from (posixpath.normpath(posixpath.join(base, path)) for path in call.paths)
    # Redirections and here-documents name files, too.
    yield from _resolve(_SEPARATORS.split(call.command[:_COMMAND_CHARACTERS_MAX]), base)


def _resolve(words: Sequence[str], base: str) -> Iterator[str]:
    """The words that may be paths, as absolute ones."""
    for word in words:
        name = _LINE_OF_FILE.sub("", word).rstrip(".:")
        if name and not name.startswith(("-", "$")) and "://" not in name:
            yield posixpath.normpath(posixpath.join(base or "/", posixpath.expanduser(name)))


def _is_at(path: str, place: str, roots: Sequence[str]) -> bool:
    """Return whether an absolute path is a place, or below it."""
    wanted = posixpath.expanduser(place.removeprefix("./").rstrip("/"))
    if not wanted:
        return False
    if wanted.startswith("/"):
        return _begins(path, wanted)
    for root in roots:
        if path.startswith(f"{root.rstrip('/')}/"):
            relative = path[len(root.rstrip("/")) + 1 :]
            parts = relative.split("/")
            # A bare name is that of a file or folder anywhere.
            starts = range(len(parts)) if "/" not in wanted else (0,)
            if any(_begins("/".join(parts[start:]), wanted) for start in starts):
                return True
    return False


def _begins(path: str, wanted: str) -> bool:
    if path == wanted or path.startswith(f"{wanted}/"):
        return True
    return "*" in wanted and _compile_glob(wanted).match(path) is not None


@cached(256)
def _compile_glob(place: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/?|\*)", place)
    stands_for = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(stands_for.get(one) or re.escape(one) for one in parts) + r"(?:/|\Z)")


# ── Errors ──────────────────────────────────────────────────────────────────────────────────────

ERROR_KINDS = (Kind.FAILURE, Kind.FIX, Kind.CHANGE, Kind.DISCOVERY, Kind.NOTE, Kind.FACT, Kind.INSTRUCTION, Kind.DECISION)  # fmt: skip
"""Kinds of memories that may tell of an error and its fix."""
_OUTPUT_CHARACTERS_MAX = 60_000
_TITLE_CHARACTERS = 200
_TEMPORARY = r"(?:/tmp|/var/folders|/private/var|[A-Z]:\\[\w\\]*Temp)[/\\][^\s:'\")\]]*"
_ID = r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{12,64}\b"
_TIME = (
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b(?:[A-Z][a-z]{2} {1,2}\d{1,2} )?\d\d:\d\d:\d\d(?:[.,]\d+)?\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds)\b"
)
_SIZE = r"\b\d+(?:[.,]\d+)*\s?(?:[KMGTkmgt]i?[Bb]|[Bb]ytes)\b"
_POSITION = r"(\.[A-Za-z]\w{0,4}):\d+(?::\d+)?(?=[:\s)]|\Z)|\(\d+,\s?\d+\)|\b(?:line|column|col|pid|PID) \d+"
_VARYING = compile_lazily(rf"{_TEMPORARY}|{_ID}|{_TIME}|{_SIZE}|{_POSITION}")
"""What differs from run to run of the same failure."""
_FAILED = compile_lazily(r"\A`.*` ?(?:\([^\n]*\) )?failed: (.+)$", re.MULTILINE)
_FIXED = compile_lazily(
    r"^(?P<errors>(?:Error: .+\n)+)(?:Said of it: (?P<said>.+)\n)?Fix: (?P<fix>.+)(?P<rest>(?:\nThen .+|\nChanged .+:|\n[-+] .+)*)",
    re.MULTILINE,
)
"""What the memory of a piece of work tells of a failure that came right in it."""
_PUT_IN = compile_lazily(r"^\+ (\S.{0,79})$", re.MULTILINE)
_CURE = compile_lazily(r"^Worked as: (.+)$", re.MULTILINE)
_ERROR_FORM = compile_lazily(
    r"\b[\w.]*(?:Error|Exception|Panic|PANIC|ERROR|FATAL)\b|\b(?:error|fatal|panic)(?:\[\w+\])?:|^[\w./-]+: \S.*: \S"
)
"""How programs begin to say what failed; within a sentence somebody else's words are before it."""
_CLAUSE_END = compile_lazily(r"[,;.!?–—](?=\s|$)|\s-{1,2}(?=\s)")
_ERROR_WORDS_MIN, _PHRASE_WORDS_MAX, _TURNS_MAX, _EVENTS_READ_MAX = 4, 8, 8, 2_000
_GOING_ON = list_folded("scopes of a clause") | list_folded("turning words") | {"now"}
"""Words with which a sentence goes on behind an error's line."""
_EXIT = compile_lazily(r"\AExit code \d+\n")


@dataclass(frozen=True, slots=True)
class ErrorSignature:
    """The features of an error that tell one failure from others."""

    line: str
    """As the program said it."""
    keys: tuple[str, ...]
    """Its words that are the same in every run; then without what somebody may have written behind it, longest first."""

    is_pasted: bool = False
    """Whether it stood in a prompt, where somebody's own words may follow it."""

    def is_of(self, line: str) -> bool:
        """Return whether another error's line is the same apart from what differs from run to run."""
        known = make_key(line)
        if known in self.keys:
            return True
        # “… does not match the format in the importer now”
        rest = self.keys[0].removeprefix(f"{known} ").split()
        is_begun = len(rest) < len(self.keys[0].split()) and len(known.split()) >= _ERROR_WORDS_MIN
        return self.is_pasted and is_begun and rest[0] in _GOING_ON

    def stands_in(self, text: str) -> bool:
        """Return whether a text has the error's line word for word."""
        longest = max(self.keys[-1].split(), key=len)
        # Nearly all texts lack it, and normalising them takes longer than the search that found them.
        if text.isascii() and longest.isascii() and longest not in text.lower():
            return False
        told = f" {make_key(text)} "
        return any(f" {key} " in told for key in self.keys)


def make_key(line: str) -> str:
    """The words of an error's line that are the same in every run."""
    return normalised(_VARYING.sub(r"\1 ", line))


def read_signature(call: EndedCall) -> ErrorSignature | None:
    """Read the signature of a call's error; None if it has nothing by which it can be recognized."""
    error = command_output.read_error(_EXIT.sub("", call.error)[-_OUTPUT_CHARACTERS_MAX:])
    key = make_key(error.line)
    if not error.tells or len(key) < MATCHED_MIN:
        return None
    return ErrorSignature(error.line, (key,))


def read_pasted(prompt: str) -> ErrorSignature | None:
    """Read the signature of the error in a prompt, pasted or within a sentence; None if there is none in a program's form."""
    error = command_output.read_error(prompt[-_OUTPUT_CHARACTERS_MAX:])
    form = _ERROR_FORM.search(error.line)
    if not error.tells or not (error.has_signature or form):
        return None
    line = error.line[form.start() :] if form and not error.has_signature else error.line
    ends = [len(line), *(found.start() for found in reversed(list(_CLAUSE_END.finditer(line))))]
    keys = tuple(dict.fromkeys(make_key(line[:end]) for end in ends))
    keys = tuple(one for one in keys if len(one.split()) >= _ERROR_WORDS_MIN)
    return ErrorSignature(line, keys, is_pasted=True) if keys else None


def find_fixes(
    tx: Connection,
    signature: ErrorSignature,
    found: Iterable[Summary],
    project_ids: tuple[int, ...],
    now: int,
) -> CandidateGroup:
    """Return the fixes of failures with this signature, best first; where none is proven, what else is known of it.

    Of the memories found for it, and of the work for which somebody pasted it; no hidden ones.
    """
    fixes: dict[int, None] = {}
    noted: dict[int, None] = {}
    for memory in found:
        if memory.episode is not None:
            fixes.update(dict.fromkeys(_list_fixes(tx, signature, memory)))
        elif signature.stands_in(f"{memory.title}\n{memory.body}"):
            (fixes if memory.kind is Kind.FIX else noted)[memory.id] = None
    pasted = [n for n in _list_pasted(tx, signature, project_ids) if n not in fixes]
    ids = [*fixes, *noted, *pasted]
    visible = {one.id: one for one in session_context.candidates_by_ids(tx, ids, now)}
    proven = [_tell_fix(visible[n], signature) for n in fixes if n in visible]
    if proven := [one for one in proven if one.title]:
        return CandidateGroup(FIXED_HEADING, tuple(proven), limit=_FIXES_SHOWN)
    told = [_tell_fix(visible[n], signature) for n in noted if n in visible]
    told += [_tell_outcome(visible[n]) for n in pasted if n in visible]
    return CandidateGroup(MET_HEADING, tuple(one for one in told if one.title), limit=_FIXES_SHOWN)


def _list_pasted(
    tx: Connection, signature: ErrorSignature, project_ids: tuple[int, ...]
) -> list[int]:
    """List the work, latest first, that began with a prompt that has this error."""
    steady = max(_VARYING.split(signature.line)[::2], key=len)
    count = min(len(signature.keys[-1].split()), _PHRASE_WORDS_MAX)
    phrase = " ".join(WORD.findall(steady)[:count])
    where = TurnFilter(project_ids)
    found = match_turns(tx, f'"{phrase}"', where, _TURNS_MAX) if phrase else []
    events_with = [one.event_id for one in found if signature.stands_in(one.text)]
    ids = {number for one in events_with for number in links.derived_from(tx, one)}
    work = (m for m in summaries.summaries_by_ids(tx, list(ids)).values() if m.kind in TURN_KINDS)
    return [one.id for one in sorted(work, key=lambda one: (-one.at, -one.id))]


def _list_fixes(tx: Connection, signature: ErrorSignature, memory: Summary) -> Iterator[int]:
    if memory.kind in TURN_KINDS:
        if _find_told(memory.body, signature):
            yield memory.id
    elif memory.kind is Kind.FAILURE:
        said = _FAILED.search(memory.body)
        if said and signature.is_of(said[1]):
            yield from _list_fixes_of_failure(tx, memory)


def _list_fixes_of_failure(tx: Connection, failure: Summary) -> Iterator[int]:
    """List what fixed a failure in its own turn, then in a later one, then how else it worked."""
    edges = links.edges_at(tx, "summary", str(failure.id))
    own = (one for one in edges if (one.from_kind, one.from_id) == ("summary", str(failure.id)))
    for edge in own:
        if edge.type is EdgeType.CAUSES and edge.to_kind == "summary":
            yield int(edge.to_id)
        elif (
            edge.rule == session_context.PASSED_LATER
            and session_context.OF_ANOTHER not in edge.detail
            and session_context.is_closed_later(tx, failure.id)
        ):
            episode = str(edge.detail.get("episode", ""))
            yield from _list_fixes_of_turn(tx, failure, episode, edge.to_id)
    if _CURE.search(failure.body):
        yield failure.id


def _list_fixes_of_turn(
    tx: Connection, failure: Summary, episode: str, event_id: str
) -> Iterator[int]:
    """List the changes of the turn in which the check passed, if it changed or ran something before that."""
    passed = events.events_by_ids(tx, [int(event_id)]).get(int(event_id))
    if passed is None:
        return
    for one in summaries.episode_summaries(tx, passed.session_id, episode):
        if one.kind in (Kind.FIX, Kind.CHANGE) and _has_worked(tx, one, failure.at, passed):
            yield one.id


def _has_worked(tx: Connection, turn: Summary, since: int, passed: Event) -> bool:
    """Return whether the turn changed a file, or ran something that may have mended what failed, before the check passed."""
    sources = [number for number, _ in links.sources_of(tx, turn.id)]
    begun = min((one.at for one in events.events_by_ids(tx, sources).values()), default=since)
    after = max(begun, since)
    read = events.session_events(tx, passed.session_id, after, _EVENTS_READ_MAX, passed.at)
    before = [one for one in read if after <= one.at and (one.at, one.id) < (passed.at, passed.id)]
    story = read_story(before, EpisodeContext())
    return bool(story.edits) or not all(
        is_failing(run) or command_output.is_read_only(run.command) for run in story.commands
    )


def _find_told(body: str, signature: ErrorSignature) -> re.Match[str] | None:
    """Find what a memory of a piece of work tells of this failure."""
    return next(
        (
            found
            for found in _FIXED.finditer(body)
            if any(signature.is_of(line) for line in ERROR_FIELD.findall(found["errors"]))
        ),
        None,
    )


def _tell_outcome(one: ContextCandidate) -> ContextCandidate:
    """Return the memory with what was done as title, its own may be the error; without a title if nothing was."""
    said = [*read_outcome(one.body).split("\n"), *split_sentences(read_answer(one.body))]
    done = (text for text in said if stands_alone(text))
    untold = "" if one.kind is Kind.DISCOVERY else one.title
    return replace(one, title=one_line(next(done, untold), _TITLE_CHARACTERS))


def _tell_fix(one: ContextCandidate, signature: ErrorSignature) -> ContextCandidate:
    """Return the memory with its fix as title: the agent sees the error already."""
    if one.episode is None:
        return replace(one, title=one_line(split_note(one.body).text or one.title, _TITLE_CHARACTERS))  # fmt: skip
    if told := _find_told(one.body, signature):
        lines = _PUT_IN.findall(told["rest"])
        now = f"now `{lines[0]}`" if lines and "`" not in lines[0] else ""
        return replace(one, title=told["fix"], remark=told["said"] or now)
    if cure := _CURE.search(one.body):
        return replace(one, title=f"worked as {cure[1]}")
    return one if one.kind in (Kind.FIX, Kind.CHANGE) else replace(one, title="")


# ── Tasks of subagents ───────────────────────────────────────────────────────────────────────────

_TAIL_BYTES = 256 * 1024
_TOOLS = frozenset({"Agent", "Task"})
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_task(transcript: str, agent_type: str) -> str:
    """Return what the latest call of a subagent of this type asks for; empty if the transcript does not say.

    Of several in one message all: which of them begins is not known.
    """
    try:
        tail = _read_tail(transcript)
    except (OSError, ValueError):  # also a path with a zero byte
        return ""
    message, asked = None, []
    for line in reversed(tail.split(b"\n")):
        if b'"tool_use"' not in line or b'"prompt"' not in line:
            continue
        number, tasks = _list_tasks(line)
        of_type = [one for one in tasks if one.get("subagent_type", agent_type) == agent_type]
        if of_type and message not in (None, number):
            break
        message = number if of_type else message
        asked += [f"{one.get('description', '')}\n{one['prompt']}" for one in of_type]
    return "\n".join(asked)


def _list_tasks(line: bytes) -> tuple[object, list[Mapping[str, Any]]]:
    """Return (the id of a line's message, the tasks that its calls of subagents were given)."""
    try:
        message = json.loads(line)["message"]
        blocks = message["content"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, []  # the first line of the tail is cut
    given = [
        block.get("input")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, Mapping) and block.get("name") in _TOOLS
    ]
    tasks = [g for g in given if isinstance(g, Mapping) and isinstance(g.get("prompt"), str)]
    return message.get("id"), tasks


def _read_tail(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    finally:
        os.close(descriptor)
