"""The user's words on a question that no memory answers: sentences that he typed and nobody noted, with their dates."""

from collections.abc import Sequence
from dataclasses import dataclass

from memd.distill.own_words import read_own_sentences
from memd.distill.text import asks_by_mark
from memd.injection.learned import SaidSentence
from memd.injection.spoken import leave_rejected
from memd.machine_text import USER, find_prompt_origin, is_machine_text
from memd.models import Event
from memd.recall.query import phrase_expression, without_recency
from memd.recall.question_words import QuestionWord, ShownText, read_words
from memd.recall.types import Answer
from memd.store import events, projects
from memd.store.database import Connection
from memd.text import content_stems, fold, is_private, one_line, words

SAID_MAX = 2
_EVER = 2**62
_PROMPTS_READ_MAX = 40
_PROMPT_CHARACTERS_MAX = 4_000
_CHARACTERS_MAX = 200
_PRESENT = 0.5
"""How much of a word must be in a sentence."""
_SHARE_MIN = 0.5
"""The least share of the question's words that a sentence has."""


@dataclass(frozen=True, slots=True)
class SaidAside:
    """A sentence of the user's that is no memory. `at` is UTC milliseconds."""

    text: str
    at: int
    session_title: str


def find_said(
    tx: Connection,
    question: str,
    answer: Answer,
    where: events.TurnFilter,
    asking: str | None = None,
) -> tuple[SaidAside, ...]:
    """Find what the user said with words of a question that no memory has, the newest first.

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
    parts = dict.fromkeys(tuple(words(fold(word.text))) for word in missing)
    expression = " OR ".join(map(phrase_expression, parts))
    found: dict[str, SaidAside] = {}
    for prompt in events.match_prompts(tx, expression, where, _PROMPTS_READ_MAX):
        typed = str(prompt.payload.get("prompt") or "")
        is_own = find_prompt_origin(prompt.payload) == USER and not is_machine_text(typed)
        if not is_own or is_private(typed) or len(typed) > _PROMPT_CHARACTERS_MAX:
            continue
        session = projects.session(tx, prompt.session_id)
        if session is None or (session.key == asking and _is_last(tx, prompt)):
            continue
        for sentence in (one.text for one in read_own_sentences(typed)):
            if len(found) < SAID_MAX and _answers(sentence, question, asked, missing):
                one = SaidSentence(
                    one_line(sentence, _CHARACTERS_MAX), prompt.at, prompt.session_id
                )
                if leave_rejected(tx, [one], session.project_id):
                    found.setdefault(one.text, SaidAside(one.text, one.at, session.title or ""))
    return tuple(found.values())


def _answers(
    sentence: str, question: str, asked: Sequence[QuestionWord], missing: Sequence[QuestionWord]
) -> bool:
    """Return whether a sentence has a word that no memory has, enough of the others, and something that was not asked."""
    shown = ShownText(sentence)
    present = [
        word for word in asked if shown.has_word(word) or shown.share_of(word)[0] >= _PRESENT
    ]
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
