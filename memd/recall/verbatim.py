"""What was said about it, word for word: passages of conversations beside the hits, never among them."""

from memd.recall.answer import Turn
from memd.recall.asked import Asked
from memd.recall.pack import snippet
from memd.recall.query import fts_expression
from memd.store import turns as store
from memd.store.database import Connection
from memd.text import one_line

TURNS_MAX = 20
SNIPPET_CHARACTERS = 200
_TITLE_CHARACTERS = 90


def turns(tx: Connection, asked: Asked) -> tuple[Turn, ...]:
    """The turns that full text ranks best, as many as hits were asked for, at most 20.

    Filtered by project, session and time; a turn has no kind, tag or source. A question without
    words has none.
    """
    expression = fts_expression(asked.query)
    if not expression:
        return ()
    question = asked.question
    bounds = [bound for bound in (question.until, question.as_of) if bound is not None]
    where = store.Where(
        project_ids=question.project_ids,
        session_id=question.session_id,
        since=question.since,
        until=min(bounds, default=None),
    )
    found = store.match(tx, expression, where, min(asked.k, TURNS_MAX))
    return tuple(_turn(spoken, rank, asked) for rank, spoken in enumerate(found, start=1))


def _turn(spoken: store.Spoken, rank: int, asked: Asked) -> Turn:
    title = spoken.session_title
    return Turn(
        event_id=spoken.event_id,
        session_title=None if title is None else one_line(title, _TITLE_CHARACTERS),
        role=spoken.role,
        at=spoken.at,
        snippet=snippet("", spoken.text, asked.query, SNIPPET_CHARACTERS),
        rank=rank,
    )
