"""The user's words on a question: what he typed and nobody noted, if no memory answers, and what came after the first hit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import anyio.to_thread

from memd.belief.values import asks_for_former
from memd.distill.own_words import read_own_sentences
from memd.distill.proving import uphold
from memd.distill.text import asks_by_mark
from memd.injection.later import is_same_matter, name_matter
from memd.injection.learned import SaidSentence, is_told
from memd.injection.since import LaterReader, is_followed, is_plain
from memd.injection.spoken import leave_rejected, may_hold
from memd.injection.working_tree import mark_gone, names_things
from memd.machine_text import USER, find_prompt_origin, is_machine_text
from memd.models import Event, EventKind, Kind
from memd.recall import Answer, Hit, Question
from memd.recall.query import phrase_expression, without_recency
from memd.recall.question_words import QuestionWord, ShownText, read_words
from memd.store import events, links, projects, reviews
from memd.store.database import Connection, Database
from memd.text import content_stems, fold, is_private, normalised, one_line, words

SAID_MAX = 2
_EVER = 2**62
_PROMPTS_READ_MAX = 40
_PROMPT_CHARACTERS_MAX = 4_000
_CHARACTERS_MAX = 200
_PRESENT = 0.5
"""How much of a word must be in a sentence."""
_SHARE_MIN = 0.5
"""The least share of the question's words that a sentence has."""
_TELLING_MAX = 12
"""A word that more of the prompts have tells no matter."""


@dataclass(frozen=True, slots=True)
class SaidAside:
    """A sentence of the user's that is no memory. `at` is UTC milliseconds."""

    text: str
    at: int
    session_title: str


_Beside = tuple[Answer, tuple[SaidAside, ...]]


def find_said(
    tx: Connection,
    question: str,
    answer: Answer,
    where: events.TurnFilter,
    asking: str | None = None,
    *,
    may_read: bool = True,
) -> tuple[SaidAside, ...] | None:
    """Find what the user said with words of a question that no memory has, the newest first; None if it may read no prompts.

    `asking`: the client's id of the session that asks; what was typed there last is the question itself.
    """
    rarity = answer.rarity
    if answer.verdict == "found" or rarity is None:
        return ()
    known = {term for term, weight in rarity.known.items() if weight < rarity.unknown}
    asked = read_words(without_recency(question)) or read_words(question)
    missing = [word for word in asked if not word.is_in(known)]
    if not missing:
        return ()
    if not may_read:
        return None
    parts = dict.fromkeys(tuple(words(fold(word.text))) for word in missing)
    expression = " OR ".join(map(phrase_expression, parts))
    told = [hit.said_since for hit in answer.hits[:1] if hit.said_since]
    found: dict[str, SaidAside] = {}
    for prompt in events.match_prompts(tx, expression, where, _PROMPTS_READ_MAX):
        for one in _read_own(
            tx, prompt, asking, lambda text: _answers(text, question, asked, missing)
        ):
            if len(found) < SAID_MAX and not is_told(one.text, told):
                found.setdefault(one.text, one)
    return tuple(found.values())


def _read_own(
    tx: Connection, prompt: Event, asking: str | None, accepts: Callable[[str], bool]
) -> Iterator[SaidAside]:
    """Yield the user's own sentences of a prompt that are accepted and not rejected, unless it is the question itself."""
    typed = str(prompt.payload.get("prompt") or "")
    is_own = find_prompt_origin(prompt.payload) == USER and not is_machine_text(typed)
    if not is_own or is_private(typed) or len(typed) > _PROMPT_CHARACTERS_MAX:
        return
    session = projects.session(tx, prompt.session_id)
    if session is None or (session.key == asking and _is_last(tx, prompt)):
        return
    for sentence in read_own_sentences(typed):
        if not accepts(sentence.text):
            continue
        text = one_line(sentence.text, _CHARACTERS_MAX)
        said = SaidSentence(text, prompt.at, prompt.session_id)
        if leave_rejected(tx, [said], session.project_id):
            yield SaidAside(text, prompt.at, session.title or "")


async def look_beside(
    db: Database, later: LaterReader, question: Question, answer: Answer, asking: str | None
) -> _Beside:
    """Mark what of an answer is gone from the disk or said otherwise since, and find what the user said of the question.

    It may read the disk and many prompts: then it runs in a thread, all of it in one.
    """

    def read(tx: Connection, shown: Answer, *, may_read: bool) -> _Beside | None:
        if question.as_of is not None:
            return shown, ()
        where = events.TurnFilter(
            question.project_ids, question.session_id, question.since, question.until
        )
        upheld = uphold(tx, [hit.summary for hit in shown.hits])
        hits = (replace(hit, summary=one) for hit, one in zip(shown.hits, upheld, strict=True))
        shown = replace(shown, hits=tuple(hits))
        marked = later.mark_hits(tx, shown, question.now, asking or "", may_read=may_read)
        if marked is None:
            return None
        told = tell_later(tx, question.text, marked, where, asking, may_read=may_read)
        if told is None:
            return None
        if question.include_turns:
            return told, ()
        said = find_said(tx, question.text, told, where, asking, may_read=may_read)
        return None if said is None else (told, said)

    def read_all() -> _Beside | None:
        shown = mark_gone(db, answer)
        return db.read_now(lambda tx: read(tx, shown, may_read=True))

    beside = None
    if not any(map(names_things, answer.hits)):
        beside = db.try_read_now(lambda tx: read(tx, answer, may_read=False))
    return beside or await anyio.to_thread.run_sync(read_all) or (answer, ())


def tell_later(
    tx: Connection,
    question: str,
    answer: Answer,
    where: events.TurnFilter,
    asking: str | None = None,
    *,
    may_read: bool = True,
) -> Answer | None:
    """Tell with a first hit that is the user's word what he typed after it of what it has of the question, unless a hit is as late.

    None if it may read no prompts. A hit that is that very turn is named instead, if nothing was changed in it: else it is
    what was done since.
    """
    first = answer.hits[0] if answer.hits else None
    if first is None or not is_plain(first) or first.said_since or asks_for_former(question):
        return answer
    if not is_followed(first.summary) and first.summary.kind is not Kind.DISCOVERY:
        return answer
    matter, shown = name_matter(question), ShownText(first.summary.title)
    asked = [one for one in read_words(without_recency(question)) if one.is_in(matter)]
    shared = _list_shown(shown, asked)
    if not shared:
        return answer
    if not may_read:
        return None
    after = replace(where, project_ids=(first.summary.project_id,))
    since = _find_later(tx, answer.hits, shared, after, asking)
    return replace(answer, hits=(replace(first, said_since=since), *answer.hits[1:]))


def _find_later(
    tx: Connection,
    hits: Sequence[Hit],
    asked: Sequence[QuestionWord],
    where: events.TurnFilter,
    asking: str | None,
) -> str | None:
    """Find the latest sentence on the matter of the first hit with these words of the question; in words, or None."""
    first, title = hits[0], hits[0].summary.title
    if not is_followed(first.summary) and not _is_typed(tx, first):
        return None
    stated_at = reviews.read_stated_at(tx, first.summary.id, first.summary.at)
    where = replace(where, since=max(where.since or 0, stated_at + 1))
    found = {word: _match_prompts(tx, word, where) for word in asked}
    telling = [word for word, prompts in found.items() if len(prompts) <= _TELLING_MAX]
    prompts = {one.id: one for word in telling for one in found[word]}

    def is_about(text: str) -> bool:
        shared = _list_shown(ShownText(text), telling)
        has_enough = len(shared) >= max(1, _SHARE_MIN * len(asked))
        return has_enough and is_same_matter(title, text) and may_hold(text)

    for prompt in sorted(prompts.values(), key=lambda one: -one.at):
        for one in _read_own(tx, prompt, asking, is_about):
            shared = _list_shown(ShownText(one.text), telling)
            late = [hit for hit in hits[1:] if hit.summary.at >= one.at]
            late = [hit for hit in late if _list_shown(_show(hit), shared)]
            own = next((hit.summary for hit in late if _rests_on(tx, hit, prompt)), None)
            if is_told(one.text, [title]) or (late and own is None):
                return None
            if own is not None:
                return f"he said later: #{own.id}" if own.kind is Kind.DISCOVERY else None
            return f"he said later: “{one.text}”"
    return None


def _match_prompts(tx: Connection, word: QuestionWord, where: events.TurnFilter) -> list[Event]:
    """The prompts that may have a word, the newest first; of a word that tells nothing any of them, one too many."""
    expression = phrase_expression(tuple(words(fold(word.text))))
    return events.match_prompts(tx, expression, where, _TELLING_MAX + 1, any_of_many=True)


def _is_typed(tx: Connection, hit: Hit) -> bool:
    """Return whether a hit begins with what the user typed."""
    title = normalised(hit.summary.title)
    sources = events.events_by_ids(
        tx, [number for number, _ in links.sources_of(tx, hit.summary.id)]
    )
    return any(
        (typed := normalised(sentence.text)) and title.startswith(typed)
        for event in sources.values()
        if event.kind is EventKind.PROMPT and find_prompt_origin(event.payload) == USER
        for sentence in read_own_sentences(str(event.payload.get("prompt") or ""))[:1]
    )


def _rests_on(tx: Connection, hit: Hit, prompt: Event) -> bool:
    """Return whether a hit was made of a prompt."""
    return prompt.id in (number for number, _ in links.sources_of(tx, hit.summary.id))


def _list_shown(shown: ShownText, asked: Sequence[QuestionWord]) -> list[QuestionWord]:
    return [word for word in asked if _has(shown, word)]


def _show(hit: Hit) -> ShownText:
    return ShownText(f"{hit.summary.title}\n{hit.snippet}")


def _has(shown: ShownText, word: QuestionWord) -> bool:
    return shown.has_word(word) or shown.share_of(word)[0] >= _PRESENT


def _answers(
    sentence: str, question: str, asked: Sequence[QuestionWord], missing: Sequence[QuestionWord]
) -> bool:
    """Return whether a sentence has a word that no memory has, enough of the others, and something that was not asked."""
    shown = ShownText(sentence)
    present = _list_shown(shown, asked)
    says_more = set(content_stems(sentence)) - set(content_stems(question))
    return (
        any(word in missing for word in present)
        and len(present) >= _SHARE_MIN * len(asked)
        and bool(says_more)
        and not asks_by_mark(sentence)
    )


def _is_last(tx: Connection, prompt: Event) -> bool:
    """Return whether nothing was typed in its session after a prompt."""
    return not events.count_prompts(tx, prompt.session_id, prompt.at, _EVER)
