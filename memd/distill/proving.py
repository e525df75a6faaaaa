"""Find in the record of a session the words by which an agent proves what it notes.

The record is what the hooks and the transcript brought: prompts that were typed, answers to the client's dialogues, words
typed into refused calls, the agent's messages, and what tools returned.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from memd.belief import supersede
from memd.belief.later import find_contradiction, takes_back_that
from memd.belief.notes import (
    Note,
    Proof,
    QuotedNote,
    Unproved,
    find_quote,
    has_words,
    mark_unproved,
    name_proof,
    show_upheld,
    split_note,
    words_of,
)
from memd.belief.proof import Said, Spoken, SpokenRecord, is_taken_back, prove, refuse
from memd.belief.rejections import leave_retracted
from memd.distill.assertions import CHOSEN, read_sentence
from memd.distill.edits import EDIT_TOOLS
from memd.distill.episodes import QUESTION_TOOL, EpisodeContext, Story, Utterance, read_story
from memd.distill.own_words import OwnSentence, find_typed_paragraphs, read_own_sentences
from memd.distill.text import read_options
from memd.distill.vetoes import OPAQUE
from memd.models import NOTED, Authority, Event, EventKind, Session, SessionRef, Summary
from memd.paths import name_device
from memd.store import events, judgments, links, projects, reviews, summaries, usage
from memd.store.database import Connection
from memd.store.events import SpokenTurn, TurnFilter, match_turns
from memd.text import list_strings
from memd.time_expressions import DAY_MS

_QUOTES = frozenset('"“”„«»「」『』')
_TYPED_CHARACTERS_MAX = 800
"""A message up to this length was typed, whatever of it looks unusual, unless it is marked as shown."""
WAIT_MS = DAY_MS
"""How long a note waits for the words that prove it: a day."""
_COMMAND_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
"""A comment in markup: nobody who reads the message sees it."""
_PLAN, _APPROVAL = "<proposed_plan>", "Implement the plan."
"""What Codex marks a plan with, and what it sends when the user takes it."""
_OUTPUT_KEYS = ("tool_response", "error")
"""Where an event has what a tool returned, and why it failed."""
_OUTPUTS_MAX = 50
"""Outputs of tools that are compared with the quoted words."""


def prove_note(
    tx: Connection, quoted: QuotedNote, ref: SessionRef | None, project_key: str, now: int
) -> Proof | Unproved:
    """Prove a note by the session of the client that makes it, else by today's sessions of its project."""
    if ref is not None:
        own = projects.session_of_client(tx, ref.client, ref.key)
        return _prove_in_session(tx, own, quoted) if own else prove_in_sessions(tx, [], quoted)
    here = projects.project_by_key(tx, project_key)
    today = projects.sessions_since(tx, here.id, now - WAIT_MS) if here else []
    return prove_in_sessions(tx, [one.id for one in today], quoted)


def _prove_in_session(tx: Connection, own: Session, quoted: QuotedNote) -> Proof | Unproved:
    """Prove a note by its own session, else by the earlier ones whose words memd itself showed it."""
    verdict = prove_in_sessions(tx, [own.id], quoted)
    for earlier in (usage.sessions_asked_about(tx, own.id), _find_told_session(tx, own, quoted)):
        if not (isinstance(verdict, Unproved) and verdict.is_unknown):
            break
        found = prove_in_sessions(tx, earlier, quoted) if earlier else verdict
        is_held = isinstance(found, Unproved) or _holds_still(tx, own, found)
        verdict = found if is_held else refuse("taken back since")
    return verdict


def _find_told_session(tx: Connection, own: Session, quoted: QuotedNote) -> list[int]:
    """Find the last session here in which the user typed the quoted words, if memd told them to this one unasked."""
    phrase = " ".join(words_of(quoted.quote))
    told = (f" {' '.join(words_of(one.text))} " for one in usage.told_texts(tx, own.id))
    if not phrase or not any(f" {phrase} " in text for text in told):
        return []
    typed = _find_typed(tx, own, phrase)
    return [max(typed, key=lambda one: (one.at, one.event_id)).session_id] if typed else []


def _holds_still(tx: Connection, own: Session, found: Proof) -> bool:
    """Return whether the user has neither replaced or rejected what he said earlier, nor contradicts it in this session."""
    if not any(leave_retracted(tx, [(found.at, found.quote)], own.project_id)):
        return False
    story = read_story(events.spoken_record(tx, own.id), EpisodeContext())
    # Nobody of this session had proposed it: a no that begins it answers something else.
    return not find_contradiction(found.quote, ["", *(one.whole for one in list_said(story))])


def prove_in_sessions(
    tx: Connection, session_ids: Sequence[int], claim: QuotedNote
) -> Proof | Unproved:
    """Prove a note by one of these sessions; by none if several of them have the quoted words."""
    verdicts = [prove(claim, read_record(tx, number, claim)) for number in session_ids]
    proved = [one for one in verdicts if isinstance(one, Proof)]
    if len(proved) > 1:
        return Unproved(
            "several of today's sessions have these words, and the client does not say which it is"
        )
    if proved:
        return proved[0]
    known = [one for one in verdicts if isinstance(one, Unproved) and not one.is_unknown]
    return (known or verdicts or [Unproved("no session of this project is known today", is_unknown=True)])[0]  # fmt: skip


def prove_waiting(tx: Connection, session_id: int, now: int) -> int:
    """Judge what an agent noted in this session before its words had arrived; how many notes are proved or refused by that."""
    judged, since, own = 0, now - WAIT_MS, projects.session(tx, session_id)
    if own is None:
        return 0
    for note in summaries.unproved_notes(tx, session_id, since):
        parts = split_note(note.body)
        quoted = QuotedNote(parts.text, parts.quoted, parts.about)
        if note.session_id is None:
            today = projects.sessions_since(tx, note.project_id, since)
            found = prove_in_sessions(tx, [one.id for one in today], quoted)
        else:
            found = _prove_in_session(tx, own, quoted)
        if isinstance(found, Proof):
            when = name_proof(found.at, name_device())
            told = Note(
                parts.text, parts.why, found.quote, found.about, proved=when, check=parts.check
            )
            supersede.prove_note(tx, note, told.format(), found, now)
            judged += 1
        elif not found.is_unknown:
            marked = mark_unproved(parts, quoted, found.as_kind(note.kind))
            if marked != parts:
                supersede.mark_note(tx, note, marked.format(), now)
                judged += 1
    return judged


def find_taken_back(tx: Connection, session_id: int, event_id: int) -> list[Summary]:
    """Find the notes and choices of a session that rest on the user's words just before this event, and that it takes back."""
    known = summaries.session_summaries(tx, session_id, (NOTED, CHOSEN.rule), 0)
    if not known:
        return []
    story = read_story(events.spoken_record(tx, session_id), EpisodeContext())
    said = list(list_said(story))
    at = next((n for n, one in enumerate(said) if one.event_id == event_id), 0)
    if at == 0:
        return []
    before, record = said[at - 1], SpokenRecord(said[: at + 1], tuple(list_spoken(story)))
    resting = [
        (one, split_note(one.body))
        for one in known
        if any(number == before.event_id for number, _ in links.sources_of(tx, one.id))
    ]
    # Of several choices of one dialogue it is not known which.
    is_single = sum(one.rule == CHOSEN.rule for one, _ in resting) == 1
    return [
        one
        for one, note in resting
        if (note.said or is_single)
        and any(
            is_taken_back(text, record, before) and takes_back_that(said[at].whole, text)
            for text in (note.said or before.whole, note.about or before.asked)
            if text
        )
    ]


def read_record(tx: Connection, session_id: int, claim: QuotedNote) -> SpokenRecord:
    """Read what was said in a session, and which outputs of tools have words of the claim."""
    record = events.spoken_record(tx, session_id)
    story = read_story(record, EpisodeContext())
    said = tuple(_keep_command_arguments(list_said(story), record))
    # A slip in the quote must not hide where the words come from.
    typed = (find_quote(claim.quote, one.own, allows_slips=True) for one in said)
    quoted = next((one.sentence for one in typed if one), claim.quote)
    rare = max((*quoted.split(), *claim.about.split()), key=len, default="")
    found = events.results_containing(tx, session_id, rare, _OUTPUTS_MAX) if rare else []
    outputs = [
        (one.at, "\n".join(list_strings([one.payload.get(key) for key in _OUTPUT_KEYS])))
        for one in found
    ]
    if outputs and (since := _find_typed_earlier(tx, session_id, claim.quote)) is not None:
        outputs = [(at, text) for at, text in outputs if at < since]
    edits = [at for tool, at in usage.tools_after(tx, session_id, 0) if tool in EDIT_TOOLS]
    return SpokenRecord(said, tuple(list_spoken(story)), outputs, edits)


def _find_typed_earlier(tx: Connection, session_id: int, quote: str) -> int | None:
    """Find when the user first typed these words in an earlier session here: a tool that printed them since repeats him."""
    own = projects.session(tx, session_id)
    phrase = " ".join(words_of(quote))
    if own is None or not phrase:
        return None
    return min((one.at for one in _find_typed(tx, own, phrase)), default=None)


def _find_typed(tx: Connection, own: Session, phrase: str) -> list[SpokenTurn]:
    """The prompts from before a session, in its project, in which the user typed these words himself."""
    where = TurnFilter((own.project_id,), until=own.started_at)
    return [
        one
        for one in match_turns(tx, f'"{phrase}"', where, _OUTPUTS_MAX)
        if one.role == "user" and phrase in " ".join(words_of("\n".join(own_parts(one.text))))
    ]


def _keep_command_arguments(said: Iterable[Said], record: Sequence[Event]) -> Iterator[Said]:
    """Yield what was said, of a slash command only its arguments: the rest of it is the command's own text."""
    commands = {
        one.id: _COMMAND_ARGUMENTS.findall(prompt)
        for one in record
        if "<command-name>" in (prompt := str(one.payload.get("prompt", "")))
    }
    for one in said:
        yield replace(one, own=tuple(commands.get(one.event_id, one.own)))


def list_said(story: Story) -> Iterator[Said]:
    """Yield what the user said, in order of time."""
    found = [_make_said(one) for one in story.prompts]
    plans = [one.at for one in (*story.texts, *story.answers) if _PLAN in one.text]
    for number, typed in enumerate(found):
        since = found[number - 1].at if number else 0
        if typed.whole.strip() == _APPROVAL and any(since <= at <= typed.at for at in plans):
            found[number] = replace(typed, approves=True)
    found += [_make_said(one.said) for one in story.refusals if one.said.text]
    for one in story.questions:
        said = one.answer
        found.append(
            Said(said.event_id, said.at, (said.text,), said.text, one.asked.text, one.options)
        )
    yield from sorted(found, key=lambda one: (one.at, one.event_id))


def _make_said(one: Utterance) -> Said:
    return Said(one.event_id, one.at, tuple(own_parts(one.text)), one.text)


def own_parts(message: str) -> list[str]:
    """The parts of a message that its speaker typed himself: nothing fenced, quoted or pasted."""
    message = _HIDDEN.sub(OPAQUE, message)
    own = "\n".join(map(_read_typed, read_own_sentences(message)))
    # The rules for what looks pasted are strict; a short message was typed but for what is marked as shown.
    is_short = len(message) <= _TYPED_CHARACTERS_MAX
    typed = find_typed_paragraphs(message) if is_short else []
    return [part for one in (own, *typed) for part in one.split(OPAQUE) if part.strip()]


def _read_typed(sentence: OwnSentence) -> str:
    """A sentence without what it quotes; the code of one that is kept as it stands, such as a rule, is the speaker's own."""
    text, unquoted = sentence.text, sentence.unquoted
    is_whole = text != unquoted and _QUOTES.isdisjoint(text) and read_sentence(sentence) is not None
    return text if is_whole else unquoted


def list_spoken(story: Story) -> Iterator[Spoken]:
    """Yield what the session's own agent said, in order of time."""
    found = [
        Spoken(one.event_id, one.at, one.text, read_options(one.text))
        for one in (*story.texts, *story.answers)
    ]  # fmt: skip
    found += [
        Spoken(one.asked.event_id, one.asked.at, one.asked.text, one.options)
        for one in story.questions
    ]
    # A dialogue that he did not answer by its options was shown to him all the same, before he spoke.
    found += [
        Spoken(one.said.event_id, one.said.at - 1, "\n".join(list_strings(one.tool_input)))
        for one in story.refusals
        if one.tool == QUESTION_TOOL
    ]
    yield from sorted(found, key=lambda one: (one.at, one.event_id))


def find_upheld(tx: Connection, titles: Mapping[int, str]) -> dict[int, Authority]:
    """Return whose word those of these memories (id → title) are that the user upheld.

    What he kept in a review is his word, told by an agent; what he judged to supersede another, in a sentence of his own, is his.
    """
    kept = dict.fromkeys(reviews.kept_ids(tx, tuple(titles)), Authority.USER_TOLD)
    judged = judgments.upheld_by_user(tx, tuple(titles))
    typed = (number for number in judged if _is_typed(tx, number, titles[number]))
    return kept | dict.fromkeys(typed, Authority.USER_PROMPT)


def uphold(tx: Connection, memories: Iterable[Summary]) -> list[Summary]:
    """Return these memories; those that the user upheld as his word, and the words that a note quotes of him as said."""
    found = list(memories)
    claimed = {one.id: one.title for one in found if one.authority < Authority.USER_TOLD}
    upheld = find_upheld(tx, claimed) if claimed else {}
    return [
        replace(one, authority=upheld[one.id], body=show_upheld(one.body))
        if one.id in upheld
        else one
        for one in found
    ]


def _is_typed(tx: Connection, number: int, title: str) -> bool:
    sources = events.events_by_ids(tx, [one for one, _ in links.sources_of(tx, number)]).values()
    prompts = (str(one.payload.get("prompt", "")) for one in sources if one.kind is EventKind.PROMPT)  # fmt: skip
    wanted = words_of(title)
    return any(has_words(part, wanted) for prompt in prompts for part in own_parts(prompt))
