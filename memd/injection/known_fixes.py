"""Fixes of a failure that happened here before, by the signature of its error.

The signature is the line of the output that says what is wrong, without what differs from run to run: positions,
addresses, times, temporary paths. Told is what the record proves to have fixed it, never the text of the error.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from memd.belief.notes import split_note
from memd.distill.proof import command_output
from memd.injection.lines import read_answer, read_outcome, stands_alone
from memd.injection.moments import EndedCall
from memd.injection.prompt_gate import ERROR_FIELD, MATCHED_MIN, TURN_KINDS
from memd.models import EdgeType, Kind, Summary
from memd.patterns import compile_lazily
from memd.store import events, links, session_context, summaries
from memd.store.database import Connection
from memd.store.turns import TurnFilter, match_turns
from memd.store.types import ContextCandidate
from memd.text import WORD, normalised, one_line, split_sentences

KINDS = (Kind.FAILURE, Kind.FIX, Kind.CHANGE, Kind.DISCOVERY, Kind.NOTE, Kind.FACT, Kind.INSTRUCTION, Kind.DECISION)  # fmt: skip
"""Kinds of memories that may tell of an error and its fix."""
_OUTPUT_CHARACTERS_MAX = 60_000
_TITLE_CHARACTERS = 200
_VARYING = compile_lazily(
    r"(?:/tmp|/var/folders|/private/var|[A-Z]:\\[\w\\]*Temp)[/\\][^\s:'\")\]]*"
    r"|\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{12,64}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds)\b"
    r"|(\.[A-Za-z]\w{0,4}):\d+(?::\d+)?(?=[:\s)]|\Z)|\(\d+,\s?\d+\)|\b(?:line|column|col|pid|PID) \d+"
)
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
_CLAUSE_END = compile_lazily(r"[,;.!?–—](?=\s|$)")
_ERROR_WORDS_MIN, _PHRASE_WORDS_MAX, _TURNS_MAX = 4, 8, 8
_EXIT = compile_lazily(r"\AExit code \d+\n")


@dataclass(frozen=True, slots=True)
class ErrorSignature:
    """The features of an error that tell one failure from others."""

    line: str
    """As the program said it."""
    keys: tuple[str, ...]
    """Its words that are the same in every run; then without what somebody may have written behind it, longest first."""

    def is_of(self, line: str) -> bool:
        """Return whether another error's line is the same apart from what differs from run to run."""
        return make_key(line) == self.keys[0]

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
    return ErrorSignature(line, keys) if keys else None


def find_fixes(
    tx: Connection,
    signature: ErrorSignature,
    found: Iterable[Summary],
    project_ids: tuple[int, ...],
    now: int,
) -> list[ContextCandidate]:
    """Return the fixes of failures with this signature, best first; no hidden ones.

    Of the memories found for it, and of the work for which somebody pasted it.
    """
    fixes: dict[int, None] = {}
    for memory in found:
        fixes.update(dict.fromkeys(_list_fixes(tx, signature, memory)))
    pasted = _list_pasted(tx, signature, project_ids)
    ids = [*fixes, *pasted]
    visible = {one.id: one for one in session_context.candidates_by_ids(tx, ids, now)}
    told = [_tell_fix(visible[one], signature) for one in fixes if one in visible]
    told += [_tell_outcome(visible[n]) for n in pasted if n in visible and n not in fixes]
    return [one for one in told if one.title]


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
    if memory.episode is None:
        # Somebody noted the error's words, and what to do.
        if signature.stands_in(f"{memory.title}\n{memory.body}"):
            yield memory.id
    elif memory.kind in TURN_KINDS:
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
        elif edge.rule == session_context.PASSED_LATER and session_context.is_closed_later(
            tx, failure.id
        ):
            yield from _list_fixes_of_turn(tx, str(edge.detail.get("episode", "")), edge.to_id)
    if _CURE.search(failure.body):
        yield failure.id


def _list_fixes_of_turn(tx: Connection, episode: str, event_id: str) -> Iterator[int]:
    """List the changes of the turn in which the check passed."""
    passed = events.events_by_ids(tx, [int(event_id)]).get(int(event_id))
    found = summaries.episode_summaries(tx, passed.session_id, episode) if passed else []
    yield from (one.id for one in found if one.kind in (Kind.FIX, Kind.CHANGE))


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
    if told := _find_told(one.body, signature) or (
        one.kind is Kind.FIX and _FIXED.search(one.body)
    ):
        lines = _PUT_IN.findall(told["rest"])
        now = f"now `{lines[0]}`" if lines and "`" not in lines[0] else ""
        return replace(one, title=told["fix"], remark=told["said"] or now)
    if cure := _CURE.search(one.body):
        return replace(one, title=f"worked as {cure[1]}")
    return one if one.kind is Kind.CHANGE else replace(one, title="")
