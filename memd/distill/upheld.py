"""Find the memories that the user judged to hold and whose words he typed himself: a turn's title is mostly his prompt."""

from collections.abc import Mapping
from dataclasses import replace

from memd.belief.quotes import has_words, words_of
from memd.distill.proving import own_parts
from memd.models import Authority, EventKind, Summary
from memd.store import events, judgments, links
from memd.store.database import Connection


def find_upheld(tx: Connection, titles: Mapping[int, str]) -> frozenset[int]:
    """Return those of these memories (id → title) that the user judged to supersede another, in a sentence of his own."""
    judged = judgments.upheld_by_user(tx, tuple(titles))
    return frozenset(number for number in judged if _is_typed(tx, number, titles[number]))


def uphold(tx: Connection, one: Summary | None) -> Summary | None:
    """Return a memory as the user's word if it is such a one."""
    if (
        one is None
        or one.authority >= Authority.USER_TOLD
        or not find_upheld(tx, {one.id: one.title})
    ):
        return one
    return replace(one, authority=Authority.USER_PROMPT)


def _is_typed(tx: Connection, number: int, title: str) -> bool:
    sources = events.events_by_ids(tx, [one for one, _ in links.sources_of(tx, number)]).values()
    prompts = (str(one.payload.get("prompt", "")) for one in sources if one.kind is EventKind.PROMPT)  # fmt: skip
    wanted = words_of(title)
    return any(has_words(part, wanted) for prompt in prompts for part in own_parts(prompt))
