"""Writes the line of one memory: its title, and in brackets what the agent has to know to rely on it. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

from memd.belief.notes import show_said
from memd.belief.standing import find_branch
from memd.capture import clients
from memd.injection.lines import TITLE_CHARACTERS, drop_project, shorten_sentence
from memd.injection.origins import shorten_name
from memd.injection.page import ContextLine
from memd.injection.prompt_gate import GatedHit
from memd.models import Authority, Kind
from memd.store.types import ContextCandidate
from memd.text import one_line, unique

_FILES_SHOWN = 3
_AUTHOR_CHARACTERS = 40
_BRANCH_CHARACTERS = 60


def line_of_card(
    card: ContextCandidate, project: str, branch: str | None, asking: str, width: int
) -> ContextLine:
    """Return the line of a memory at a session's start for the client that asks, shortened to this many characters.

    `project` is the name of the memory's project if the page names it.
    """
    author, client = _name_author(card.author), _name_client(card.source, asking)
    said = show_said(card.body) if card.authority is Authority.USER_TOLD else ""
    where = _limit_to_branch(card.tags, branch)
    files = _name_files(card) if width == TITLE_CHARACTERS else ""
    note = "; ".join(filter(None, (author, client, where, files, card.remark, said, card.caveat)))
    is_rule = card.kind in (Kind.INSTRUCTION, Kind.PREFERENCE)
    title = shorten_sentence(drop_project(card.title, project), width, is_rule=is_rule)
    told = card.id, card.kind, title, card.at, card.authority
    return ContextLine(*told, is_pinned=card.is_pinned, note=note)


def _name_client(source: str, asking: str) -> str:
    """Name the client that a memory came from, if another client is shown it."""
    return f"from {source}" if asking and source in clients.CLIENTS and source != asking else ""


def _name_author(author: str) -> str:
    """Name the author of a teammate's memory."""
    return f"by {one_line(author, _AUTHOR_CHARACTERS)} of the team" if author else ""


def _limit_to_branch(tags: Iterable[str], branch: str | None) -> str:
    """Name the branch that a memory holds for; empty if for none, or for the one that is checked out."""
    named = find_branch(tags)
    if named is None or (named and named == branch):
        return ""
    return (
        f"only on branch {shorten_name(one_line(named, _BRANCH_CHARACTERS))}"
        if named
        else "only on the branch of that day"
    )


def _name_files(card: ContextCandidate) -> str:
    """The files that it edited and its title does not name, by their last names."""
    names = unique(re.split(r"[/\\]", path)[-1] or path for path in card.edited)
    names = tuple(name for name in names if name not in card.title)
    more = f" and {len(names) - _FILES_SHOWN} more" if len(names) > _FILES_SHOWN else ""
    return ", ".join(names[:_FILES_SHOWN]) + more


def line_of_offer(
    one: GatedHit,
    told: tuple[str, str],
    replaced: Mapping[int, Sequence[int]],
    against: Mapping[int, Sequence[int]],
    *,
    branch: str | None,
    asking: str,
) -> ContextLine:
    """Return the line of a memory that fits a prompt, `told` being its title and snippet."""
    summary = one.hit.summary
    older = ", ".join(f"#{number}" for number in replaced.get(summary.id, ()))
    note = f"replaces {older}" if older else ""
    if summary.id in against:
        note = one.hit.contradiction or ""
    if summary.superseded_by:
        note = f"superseded by #{summary.superseded_by}"
    author, client = _name_author(summary.author), _name_client(summary.source, asking)
    note = "; ".join(filter(None, (author, client, _limit_to_branch(summary.tags, branch), note)))
    title, snippet = told
    return ContextLine(
        summary.id,
        summary.kind,
        title,
        summary.at,
        summary.authority,
        is_pinned=summary.pinned_at is not None,
        note=note,
        snippet=snippet,
    )
