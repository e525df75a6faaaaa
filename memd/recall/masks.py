"""Which rows a question may see, and what is counted over them; kept until the shelf changes. Pure.

The same few questions of this sort are asked again and again: of a project, of everything. So the masks
are worked out once for each of them, and a filter costs nothing that grows with the vault. The caller
holds the shelf's lock. Not here: how anything is ranked.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memd.index.among import Among
from memd.index.columns import KIND_CODES, NEVER
from memd.index.shelf import Shelf
from memd.recall.answer import Question
from memd.recall.sessions import Sessions

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
_T = TypeVar("_T")
_FEW = 0.25
"""A smaller part of all rows is looked up row by row."""


class Scope:
    """What may speak for a memory: all that may be seen, of any kind, tag and source."""

    def __init__(self, shelf: Shelf, evidence: Mask) -> None:
        self._shelf = shelf
        self.evidence = evidence
        self.among = Among(evidence, shelf.postings.df)

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions of these rows."""
        return Sessions(self._shelf.columns, self._shelf.postings, self.among)


class Hidden:
    """Rows that a question would want, were it not for one reason."""

    def __init__(self, rows: Rows, summary_ids: NDArray[np.int64]) -> None:
        self.rows = rows
        self._summary_ids = summary_ids

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], int]:
        """Per row the place of its summary among theirs, and how many these are."""
        summaries, places = np.unique(self._summary_ids, return_inverse=True)
        return places, len(summaries)

    def summaries(self, matching: Mask) -> int:
        """How many summaries those of the rows belong to that are `matching`."""
        places, count = self._places
        met = np.zeros(count, np.bool_)
        met[places[matching]] = True
        return int(np.count_nonzero(met))


@dataclass(frozen=True, slots=True)
class Masks:
    """Which rows may be seen, shape (n,) each."""

    wanted: Mask
    """Every filter of the question."""
    share: float
    """Of all rows, those."""
    few: Rows | None
    """The same as rows, where they are few."""
    scope: Scope
    hidden: Mapping[str, Hidden]
    """What would be wanted, were it not `superseded` or `expired`; without what is not there."""

    @property
    def evidence(self) -> Mask:
        """What may speak for a neighbour: the same, but of any kind, tag and source."""
        return self.scope.evidence


def masks(shelf: Shelf, question: Question) -> Masks:
    """The question's filters as masks over all rows."""
    moment = _moment(shelf, question.now)
    # A supersession may be younger than `as_of`: then only the recaller can tell, from the vault.
    hides = not question.include_superseded and question.as_of is None
    where = (question.project_ids, question.as_of)
    what = (question.kinds, question.session_id, question.source, question.since, question.until,
            question.tags)  # fmt: skip
    seen = visible(shelf, question)
    hidden = _kept(
        shelf, ("hidden", hides, moment), lambda: _hidden(shelf, moment, hides=hides)
    )
    scope = _kept(
        shelf,
        ("scope", where, hides, moment),
        lambda: Scope(shelf, _without(seen, hidden)),
    )
    return _kept(
        shelf,
        ("masks", where, hides, moment, what),
        lambda: _masks(shelf, question, scope, hidden),
    )


def _kept(shelf: Shelf, key: Hashable, make: Callable[[], _T]) -> _T:
    return shelf.kept.of(shelf.version, key, make)


def _moment(shelf: Shelf, now: int) -> int | None:
    """The last time until `now` at which anything expired: what has expired is the same ever since."""
    c = shelf.columns
    if now < c.first_expiry:
        return None
    times = _kept(shelf, "expiries", lambda: np.unique(c.expires_at[c.expires_at < NEVER]))
    passed = int(times.searchsorted(now, "right"))
    return int(times[passed - 1]) if passed else None


def visible(shelf: Shelf, question: Question) -> Mask:
    """What lies in the projects asked for and was known at the time, whatever else is filtered."""
    key = ("visible", question.project_ids, question.as_of)
    return _kept(shelf, key, lambda: _visible(shelf, question.project_ids, question.as_of))


def _visible(shelf: Shelf, project_ids: tuple[int, ...] | None, as_of: int | None) -> Mask:
    c = shelf.columns
    seen = c.live
    if as_of is not None:
        seen = seen & (c.at <= as_of)
    if project_ids is not None:
        seen = seen & np.isin(c.project_id, np.array(project_ids, dtype=np.int32))
    return seen


def _hidden(shelf: Shelf, moment: int | None, *, hides: bool) -> dict[str, Mask]:
    """Reason → the rows that it hides, dead ones too; without a reason that hides none."""
    c = shelf.columns
    masks: dict[str, Mask] = {}
    expired = None if moment is None else c.expires_at <= moment
    if hides and c.superseded.any():
        masks["superseded"] = c.superseded if expired is None else c.superseded & ~expired
    if expired is not None:
        masks["expired"] = expired
    return masks


def _without(seen: Mask, hidden: Mapping[str, Mask]) -> Mask:
    for mask in hidden.values():
        seen = seen & ~mask
    return seen


def _masks(shelf: Shelf, question: Question, scope: Scope, hidden: Mapping[str, Mask]) -> Masks:
    chosen, wanted = visible(shelf, question), scope.evidence
    for mask in filters(shelf, question).values():
        chosen, wanted = chosen & mask, wanted & mask
    share = int(np.count_nonzero(wanted)) / max(len(wanted), 1)
    found = {reason: np.flatnonzero(chosen & mask) for reason, mask in hidden.items()}
    return Masks(
        wanted=wanted,
        share=share,
        few=np.flatnonzero(wanted) if share < _FEW else None,
        scope=scope,
        hidden={
            reason: Hidden(rows, shelf.columns.summary_id[rows])
            for reason, rows in found.items()
            if len(rows)
        },
    )


def filters(shelf: Shelf, question: Question) -> dict[str, Mask]:
    """What the question asks for by kind, session, source, time and tags: a mask a filter."""
    c = shelf.columns
    masks: dict[str, Mask] = {}
    if question.kinds:
        masks["kind"] = np.isin(c.kind, [KIND_CODES[kind.value] for kind in question.kinds])
    if question.session_id is not None:
        masks["session"] = c.session_id == question.session_id
    if question.source is not None:
        masks["source"] = c.source == c.source_code(question.source)
    if question.since is not None:
        masks["since"] = c.at >= question.since
    if question.until is not None:
        masks["until"] = c.at <= question.until
    if question.tags:
        masks["tags"] = c.with_tags(question.tags)
    return masks
