"""One judgement, for starts, searches and mem_why, of what the user said or stated since on the matter of a memory that stands.

A start reads it when it is built. For searches the words of a project's late prompts and of what stands there are kept until a
prompt or a memory is new; what was found in them is told only if its prompt still says it.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from memd.belief.decide import are_twins, changes_sentence
from memd.belief.ending import QUOTED_MIN, rate_ending, turns_words
from memd.belief.notes import show_said, split_note
from memd.belief.polarity import has_negation
from memd.belief.rejections import find_replacing, read_replaced
from memd.belief.standing import PREFIX
from memd.distill.body import ASKED
from memd.distill.text import is_question
from memd.injection import spoken
from memd.injection.choice import CandidateGroup, is_told_by_his_words
from memd.injection.later import (
    LaterWords,
    find_later,
    gives_other_number,
    read_later_words,
    read_taken_back,
)
from memd.injection.learned import SaidSentence
from memd.injection.lines import OUTCOME_KINDS
from memd.models import Authority, Kind, Summary
from memd.recall import Answer, Hit, Why
from memd.store import ContextCandidate, events, projects, reviews, session_context, summaries
from memd.store.database import Connection, Database
from memd.text import normalised, one_line

STANDING_KINDS = frozenset(
    {Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION, Kind.FACT, Kind.TASK, Kind.NOTE}
)
_TURN_KINDS = {*OUTCOME_KINDS, Kind.DISCOVERY}
_PROJECTS_KEPT = 8
_STATED_MAX = 200
"""Memories that are read of a kind."""
_TITLE_CHARACTERS = 80
_NEW_EVENTS_MAX = 1_000
"""So many new events are looked through for prompts; after more, all late prompts are read again."""


@dataclass(frozen=True, slots=True)
class Since:
    """A successor that may have put a memory out of force: words of the user's, or a later memory."""

    said: SaidSentence | None = None
    newer: ContextCandidate | None = None
    is_otherwise: bool = False
    """Whether the words say otherwise for sure."""

    def __str__(self) -> str:
        """`he said since: “one reviewer is enough”`, `see #12`."""
        if self.said is None:
            return f"see #{self.newer.id}" if self.newer else ""
        return f"he said {'otherwise ' if self.is_otherwise else ''}since: “{self.said.text}”"

    def tell(self) -> str:
        """The same for who does not see the later memory."""
        return (
            f"{self}: {one_line(self.newer.title, _TITLE_CHARACTERS)}" if self.newer else f"{self}"
        )


@dataclass(frozen=True, slots=True)
class Stated:
    """The user's statements of a project that stand, and notes that quote him: titles as what was said, the memory's number as session."""

    memories: Mapping[int, ContextCandidate]
    titles: LaterWords
    quoting: Collection[SaidSentence]
    """Those of notes that quote what likely ended something."""


def read_stated(memories: Iterable[ContextCandidate]) -> Stated:
    """Read what the user stated, and the notes that quote him and do not surely say what he said."""
    found, titles, quoting = {}, [], set()
    for one in memories:
        note = split_note(one.body)
        quoted = note.said or note.heard
        if is_followed(one) or quoted:
            found[one.id] = one
            title = SaidSentence(note.text if note.heard else one.title, one.at, one.id)
            titles.append(title)
            if quoted and rate_ending(quoted) >= QUOTED_MIN:
                quoting.add(title)
    return Stated(found, read_later_words(tuple(titles), is_stated=True), quoting)


def is_followed(one: Summary | ContextCandidate) -> bool:
    """Return whether a memory is what the user stated, of a kind that stands until he says otherwise."""
    return one.authority >= Authority.USER_TOLD and one.kind in STANDING_KINDS


def find_since(
    tx: Connection, one: Summary | ContextCandidate, said: LaterWords, stated: Stated
) -> Since | None:
    """Find what the user said since of the matter of a memory, or else stated, if that may put it out of force.

    If he kept it in a review, only what came after that. Work ends only if its next prompt takes back what asked for it.
    """
    if one.kind in OUTCOME_KINDS:
        return find_undone(tx, one, said)
    at = reviews.read_stated_at(tx, one.id, one.at)
    new = spoken.find_otherwise(SaidSentence(one.title, at), said)
    new = new or find_later(one.title, at, said, is_task=one.kind is Kind.TASK)
    if new is None and at == one.at:
        note = split_note(one.body)
        quote = note.said or note.heard
        typed = said.find_quoted(quote, one.session_id, at)
        typed_at = typed.at if typed else at
        new = said.find_taken_back(quote or one.title, one.session_id, typed_at)
    if new is not None and spoken.leave_rejected(tx, [new], one.project_id):
        return Since(new, is_otherwise=changes_sentence(one.title, new.text))
    other = find_later(one.title, at, stated.titles, stated.quoting)
    if other is not None:
        return Since(newer=stated.memories[other.session_id])
    twin = find_twin(one, stated.memories.values())
    return find_since(tx, twin, said, stated) if twin else None


def find_undone(tx: Connection, one: Summary | ContextCandidate, said: LaterWords) -> Since | None:
    """Find the prompt after a piece of work that takes back what asked for it, the surer if what it asks for edits the same files."""
    asked, new = _read_asked(one), said.find_next(one.session_id, one.at)
    taken = read_taken_back(asked, new, is_near=True) if new else None
    if new is None or taken is None or read_taken_back(asked, new):
        return Since(taken) if taken else None
    following = said.find_next(new.session_id, new.at)
    until = following.at if following else sys.maxsize
    turns = summaries.session_summaries(tx, new.session_id, ("",), one.at)
    mine = {file for other in turns if other.id == one.id for file in other.files}
    edited = (other.files for other in turns if new.at <= other.at < until)
    return None if mine.isdisjoint(chain.from_iterable(edited)) else Since(taken)


def drop_undone(tx: Connection, group: CandidateGroup, said: LaterWords) -> CandidateGroup:
    """Drop the work that the user's next prompt took back."""
    kept = (one for one in group.candidates if one.is_pinned or not find_undone(tx, one, said))
    return replace(group, candidates=tuple(kept))


def _read_asked(one: Summary | ContextCandidate) -> str:
    """The prompt on which a turn was worked, as its body has it; else its title."""
    asked = one.body.partition(ASKED)[2].partition("\n")[0] if one.body.startswith(ASKED) else ""
    return asked or one.title


def find_twin(
    one: Summary | ContextCandidate, memories: Iterable[ContextCandidate]
) -> ContextCandidate | None:
    """Find the proved note of a sentence of the user's that a form keeps."""
    if one.authority < Authority.USER_PROMPT or one.episode is None or show_said(one.body):
        return None
    notes = (n for n in memories if n.session_id == one.session_id and show_said(n.body))
    mine = one.title, one.body
    return next((note for note in notes if are_twins(mine, (note.title, note.body))), None)


def tell_since(
    tx: Connection, project_id: int, said: LaterWords, groups: Sequence[CandidateGroup], now: int
) -> tuple[CandidateGroup, ...]:
    """Tell with what the user stated of a project what he said or stated since, unless something is told against it already.

    A note that contradicts it and does not surely say what it quotes is told by that quote.
    """
    own = [
        one
        for group in groups
        for one in group.candidates
        if one.project_id == project_id and not one.is_pinned
    ]
    stated = read_stated(one for one in own if not one.caveat)
    ids = {one.id for one in own}

    def tell(one: ContextCandidate) -> ContextCandidate:
        if one.id not in ids or not (is_followed(one) or is_told_by_his_words(one)):
            return one
        if one.caveat:
            since = _find_contradicting_words(tx, one, said, now)
        else:
            since = find_since(tx, one, said, stated)
        return replace(one, caveat=f"{since}; {one.caveat}".rstrip("; ")) if since else one

    return tuple(replace(one, candidates=tuple(map(tell, one.candidates))) for one in groups)


def _find_contradicting_words(
    tx: Connection, one: ContextCandidate, said: LaterWords, now: int
) -> Since | None:
    """Find the latest words of the user's that a note quotes which contradicts a memory and is not proved by them."""
    stated_at = reviews.read_stated_at(tx, one.id, one.at)
    found = []
    for other in session_context.candidates_by_ids(tx, one.contradicted_by, now):
        note = split_note(other.body)
        if note.heard and other.at > stated_at:
            typed = said.find_quoted(note.heard, other.session_id, other.at)
            words = typed or SaidSentence(note.heard, other.at)
            if _may_end(one, words, note.text):
                found.append(words)
    return Since(max(found, key=lambda words: words.at)) if found else None


def _may_end(one: ContextCandidate, words: SaidSentence, note: str) -> bool:
    """Return whether words that a note quotes against a memory may end that: no question, and more than its own words again."""
    mine = split_note(one.body)
    statements = [one.title, *filter(None, (mine.said, mine.heard))]
    again = any(normalised(each) in normalised(words.text) for each in statements)
    if again or is_question(words.text):
        return False
    alone = read_later_words((words,), is_stated=True)
    if has_negation(words.text) and has_negation(note) and not has_negation(one.title):
        return True
    return gives_other_number(one.title, words.text, note) or any(
        turns_words(words.text, note, each) or find_later(each, words.at - 1, alone)
        for each in statements
    )


# ── For answers ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _ProjectWords:
    """The words kept of a project, and the prompts, changes of memories and last event on which they rest."""

    version: tuple[int, int]
    through: int
    typed: tuple[SaidSentence, ...]
    said: LaterWords
    stated: Stated
    replaced: Mapping[str, tuple[int, int]]
    """Quote of a memory that was replaced → when and by which."""
    found: dict[tuple[int, str, int], Since | None] = field(default_factory=dict)


class LaterReader:
    """Finds what was said since of the memories in an answer."""

    def __init__(self) -> None:
        self._kept: dict[int, _ProjectWords] = {}
        self._seen = 0, 0
        """The last event that was looked at, and the one up to which all prompts are old."""

    def mark_hits(
        self, tx: Connection, answer: Answer, now: int, asking: str, *, may_read: bool
    ) -> Answer | None:
        """Mark the hits of which the user said something since, if nothing else is told against them, a later hit before its older.

        `asking`: the client's id of the session that asks; what was typed there last is the question. `may_read`: see `find`.
        """
        wanted = [
            hit.summary
            for hit in answer.hits
            if is_plain(hit) and (hit.summary.kind in _TURN_KINDS or is_followed(hit.summary))
        ]
        told = self.find(tx, wanted, now, asking, may_read=may_read) if wanted else {}
        if not told:
            return None if told is None else answer
        hits = tuple(
            replace(hit, said_since=told[number].tell())
            if (number := hit.summary.id) in told
            else hit
            for hit in _put_newer_first(answer.hits, told)
        )
        first = hits[0].summary.id
        if answer.verdict == "found" and first in told:
            doubt = f"#{first} may be out of force: {told[first]}"
            answer = replace(answer, reason="; ".join(filter(None, (doubt, answer.reason))))
        return replace(answer, hits=hits)

    async def doubt(self, db: Database, why: Why, now: int, asking: str) -> Why:
        """Put what was said since in the place of the verdict that a memory is current."""
        one = why.summary
        if one is None or why.verdict != "current" or one.pinned_at or not is_followed(one):
            return why
        since = (await self._look_up(db, [one], now, asking)).get(one.id)
        return why if since is None else replace(why, verdict=f"perhaps ended, {since.tell()}")

    async def tell(
        self, db: Database, memories: Iterable[Summary], now: int, against: Collection[int] = ()
    ) -> dict[int, str]:
        """Memory → in words, what was said since, where there is something, as an answer marks it.

        `against`: those of these memories against which something else is told.
        """
        wanted = [
            one
            # Project by project: the words of few are kept.
            for one in sorted(set(memories), key=lambda one: (one.project_id, one.id))
            if is_followed(one) and not (one.superseded_by or one.pinned_at or one.id in against)
        ]
        found = await self._look_up(db, wanted, now, "")
        return {number: since.tell() for number, since in found.items()}

    async def _look_up(
        self, db: Database, memories: Sequence[Summary], now: int, asking: str
    ) -> dict[int, Since]:
        if not memories:
            return {}
        found = await db.read_inline(lambda tx: self.find(tx, memories, now, asking))
        if found is None:
            found = await db.read(lambda tx: self.find(tx, memories, now, asking, may_read=True))
        return found or {}

    def find(
        self,
        tx: Connection,
        memories: Iterable[Summary],
        now: int,
        asking: str = "",
        *,
        may_read: bool = False,
    ) -> dict[int, Since] | None:
        """Memory → what was said since, where there is something.

        Unless it may read and compare a project's prompts, which takes milliseconds: None if that is to be done.
        """
        last, version = self._find_version(tx)
        found: dict[int, Since] = {}
        for one in memories:
            kept = self._kept.get(one.project_id)
            is_current = kept is not None and kept.version == version
            key = one.id, one.title, reviews.read_stated_at(tx, one.id, one.at)
            if not may_read and not (kept and is_current and key in kept.found):
                return None
            if kept is None or not is_current:
                kept = self._read_project(tx, one.project_id, version, last, now)
            since = _find_kept(tx, one, key, kept)
            if since is not None and not _holds(tx, since, kept, one.project_id, now):
                self._kept.pop(one.project_id, None)
                if not may_read:
                    return None
                kept = self._read_project(tx, one.project_id, version, last, now)
                since = _find_kept(tx, one, key, kept)
            if (
                since is not None
                and since.said is not None
                and _is_last(tx, since.said, asking, now)
            ):
                since = find_since(tx, one, kept.said.leave(since.said), kept.stated)
            if since is not None and _holds(tx, since, kept, one.project_id, now):
                found[one.id] = since
        return found

    def _find_version(self, tx: Connection) -> tuple[int, tuple[int, int]]:
        """The last event, and what changes with each new prompt and each memory that is written, hidden or rejected."""
        through, newest = self._seen
        last, has_prompt = events.look_for_prompt(tx, through)
        if last > through:
            newest = last if has_prompt else newest
            self._seen = last, newest
        # What was seen may be ahead of this snapshot.
        newest = newest if last >= through else last
        return last, (newest, session_context.count_changes(tx))

    def _read_project(
        self, tx: Connection, project_id: int, version: tuple[int, int], last: int, now: int
    ) -> _ProjectWords:
        kept = self._kept.pop(project_id, None)
        if kept is not None and 0 <= last - kept.through <= _NEW_EVENTS_MAX:
            typed = spoken.add_new_prompts(tx, kept.typed, project_id, kept.through, now)
        else:
            typed = spoken.read_later_prompts(tx, project_id, None, now)
        is_same = kept is not None and kept.version[1] == version[1]
        stated = kept.stated if kept and is_same else _read_stated_of(tx, project_id, now)
        replaced = kept.replaced if kept and is_same else read_replaced(tx, project_id, 0)
        new = _ProjectWords(version, last, typed, read_later_words(typed), stated, replaced)
        self._kept[project_id] = new
        while len(self._kept) > _PROJECTS_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        return new


def _find_kept(
    tx: Connection, one: Summary, key: tuple[int, str, int], kept: _ProjectWords
) -> Since | None:
    if key not in kept.found:
        is_talk = one.kind is Kind.DISCOVERY
        kept.found[key] = (
            _find_replacing(one, kept) if is_talk else find_since(tx, one, kept.said, kept.stated)
        )
    return kept.found[key]


def _find_replacing(one: Summary, kept: _ProjectWords) -> Since | None:
    """Find what replaces the note of the same words as a turn that was talk."""
    newer_id = find_replacing(_read_asked(one), one.at, kept.replaced)
    newer = kept.stated.memories.get(newer_id or 0)
    return Since(newer=newer) if newer else None


def _put_newer_first(hits: Sequence[Hit], told: Mapping[int, Since]) -> list[Hit]:
    """Put the later memory that may put one out of force right before it."""
    found = list(hits)
    for number, since in told.items():
        places = {hit.summary.id: place for place, hit in enumerate(found)}
        newer = places.get(since.newer.id) if since.newer and is_followed(since.newer) else None
        if newer is not None and newer > places[number]:
            found.insert(places[number], found.pop(newer))
    return found


def is_plain(hit: Hit) -> bool:
    """Return whether nothing is told against a hit, and nobody pinned it."""
    one = hit.summary
    return not (one.superseded_by or one.pinned_at or hit.older_value or hit.contradiction)


def _read_stated_of(tx: Connection, project_id: int, now: int) -> Stated:
    """Read what the user stated of a project, besides what is pinned, contradicted, or holds for a part of it."""
    ids = (project_id,)
    kinds = sorted(STANDING_KINDS - {Kind.NOTE})
    found = [
        one
        for kind in kinds
        for one in session_context.standing_candidates(tx, ids, kind, now, _STATED_MAX)
    ]
    found += session_context.noted_candidates(tx, ids, (Kind.NOTE,), now, _STATED_MAX)
    return read_stated(
        tuple(
            one
            for one in found
            if not (one.is_pinned or one.contradicted_by)
            and not any(tag.startswith(PREFIX) for tag in one.tags)
        )
    )


def _holds(tx: Connection, since: Since, kept: _ProjectWords, project_id: int, now: int) -> bool:
    """Return whether what was found is still there: the prompt, in its project and as it was, or the memory."""
    if since.said is None:
        return bool(since.newer and session_context.candidates_by_ids(tx, [since.newer.id], now))
    session = projects.session(tx, since.said.session_id)
    prompt = kept.said.find_prompt(since.said)
    is_here = session is not None and session.project_id == project_id
    return is_here and prompt in spoken.read_typed_at(tx, since.said)


def _is_last(tx: Connection, said: SaidSentence, asking: str, now: int) -> bool:
    """Return whether nothing was typed after this in the session that asks."""
    session = projects.session(tx, said.session_id) if asking else None
    if session is None or session.key != asking:
        return False
    return not events.count_prompts(tx, said.session_id, said.at, now)
