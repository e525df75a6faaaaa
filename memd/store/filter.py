"""One `Filter` for the memories that a question may see: as masks over the index, for one memory, and in SQL.

Nothing here reads a vault, so recall and server can import it without SQLite.
"""

from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memd.models import ENDING_RULES, TURNED, Kind, Summary

Mask = NDArray[np.bool_]

REJECTED = "EXISTS (SELECT 1 FROM reviews v WHERE v.summary_id = {} AND v.verdict = 'rejected')"
"""The condition in SQL that the user rejected the summary with an id."""
HIDES = (
    f"x.undone_at IS NULL AND NOT ({REJECTED.format('x.newer_id')} AND NOT EXISTS"
    " (SELECT 1 FROM supersessions y WHERE y.older_id = x.newer_id AND y.undone_at IS NULL))"
)
"""The condition in SQL that a supersession `x` hides something: what was rejected hides nothing."""
_ENDED = "EXISTS (SELECT 1 FROM supersessions y WHERE y.newer_id = e.id"
_STAYS_SO = (
    "EXISTS (SELECT 1 FROM supersessions z WHERE z.older_id = y.older_id AND z.undone_at IS NULL)"
)
ENDS_NOTHING = (
    f"EXISTS (SELECT 1 FROM summaries e INDEXED BY summaries_ending WHERE e.id = s.id"
    f" AND e.rule IN {ENDING_RULES} AND e.pinned_at IS NULL AND iif(e.rule = '{TURNED}',"
    f" {_ENDED}) AND NOT {_ENDED} AND {_STAYS_SO}),"
    f" NOT {_ENDED}) OR {_ENDED} AND NOT {_STAYS_SO})))"
)
"""The condition in SQL that a summary `s` was kept only because it ended something that holds again, or never ceased to.

A title `No longer: …` names what it ended, so it goes as soon as any of that holds again. A sentence that turns something
says more, and may contradict what it could not end.
"""
NOT_SUPERSEDED = (
    f"NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND {HIDES})"
    f" AND NOT {REJECTED.format('s.id')} AND NOT {ENDS_NOTHING}"
)
"""The condition in SQL that nothing supersedes a summary `s`, that the user has not rejected it, and that it ends what it was kept for."""


def marks(values: Sized) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


def join_bounds(*bounds: tuple[str, object]) -> tuple[str, tuple[Any, ...]]:
    """The condition that all (comparison, value) hold, and its values; without a value there is no bound."""
    given = [(comparison, value) for comparison, value in bounds if value is not None]
    condition = " AND ".join(["1", *(f"{comparison} ?" for comparison, _ in given)])
    return condition, tuple(value for _, value in given)


class FilterColumns(Protocol):
    """The columns of the index that a filter reads: one row per passage, (n,) each."""

    live: Mask
    retired: Mask
    """Superseded or archived."""
    project_id: NDArray[np.int32]
    session_id: NDArray[np.int32]
    at: NDArray[np.int64]
    expires_at: NDArray[np.int64]

    def of_kinds(self, kinds: Iterable[Kind]) -> Mask:
        """Return the rows of these kinds."""

    def from_source(self, name: str) -> Mask:
        """Return the rows of this source."""

    def with_tags(self, wanted: Iterable[str]) -> Mask:
        """Return the rows that have all of these tags."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the memories that may be seen. Times are UTC milliseconds, both ends included; None is no bound."""

    project_ids: tuple[int, ...] | None = None
    as_of: int | None = None
    """Nothing later is seen, and what a later memory superseded still is; see `was_superseded`."""
    now: int | None = None
    """What has expired by then is hidden; None shows it."""
    include_superseded: bool = False
    """Also what was superseded or archived."""
    kinds: tuple[Kind, ...] = ()
    session_id: int | None = None
    source: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def hides_superseded(self) -> bool:
        """Return whether memories that are superseded or archived today are hidden."""
        return not self.include_superseded and self.as_of is None

    @property
    def context(self) -> "Filter":
        """The filter for the context of a memory, by which it is weighed: the same, but of any kind, tag, source and time."""
        return replace(
            self, kinds=(), session_id=None, source=None, since=None, until=None, tags=()
        )

    def mask(self, columns: FilterColumns) -> Mask:
        """Return the live rows that pass."""
        passing = self.known(columns)
        for hiding in self.hidden(columns).values():
            passing = passing & ~hiding
        for chosen in self.chosen(columns).values():
            passing = passing & chosen
        return passing

    def known(self, columns: FilterColumns) -> Mask:
        """Return the live rows of the projects that had happened by `as_of`, hidden or not."""
        known = columns.live
        if self.as_of is not None:
            known = known & (columns.at <= self.as_of)
        if self.project_ids is not None:
            ids = np.array(self.project_ids, dtype=np.int32)
            known = known & np.isin(columns.project_id, ids)
        return known

    def hidden(self, columns: FilterColumns) -> dict[str, Mask]:
        """Return the rows, dead ones too, that are hidden for each reason; each row for one reason."""
        hidden: dict[str, Mask] = {}
        if self.hides_superseded:
            hidden["superseded"] = columns.retired
        if self.now is not None:
            past = columns.expires_at <= self.now
            hidden["rejected"] = past & (columns.expires_at == 0)  # as the index has it
            hidden["expired"] = past & ~hidden["rejected"]
            if self.hides_superseded:
                hidden["superseded"] = columns.retired & ~past
        return hidden

    def chosen(self, columns: FilterColumns) -> dict[str, Mask]:
        """Return the rows that are of what was asked for, by the name of each criterion that is given."""
        chosen: dict[str, Mask] = {}
        if self.kinds:
            chosen["kind"] = columns.of_kinds(self.kinds)
        if self.session_id is not None:
            chosen["session"] = columns.session_id == self.session_id
        if self.source is not None:
            chosen["source"] = columns.from_source(self.source)
        if self.since is not None:
            chosen["since"] = columns.at >= self.since
        if self.until is not None:
            chosen["until"] = columns.at <= self.until
        if self.tags:
            chosen["tags"] = columns.with_tags(self.tags)
        return chosen

    def matches(self, summary: Summary) -> bool:
        """Return whether one memory passes the filter."""
        return (
            (self.project_ids is None or summary.project_id in self.project_ids)
            and (not self.kinds or summary.kind in self.kinds)
            and (self.session_id is None or summary.session_id == self.session_id)
            and (self.source is None or summary.source == self.source)
            and set(self.tags) <= set(summary.tags)
            and (self.since is None or summary.at >= self.since)
            and (self.until is None or summary.at <= self.until)
            and (self.as_of is None or summary.at <= self.as_of)
            and (self.now is None or summary.expires_at is None or summary.expires_at > self.now)
            and summary.rejected_at is None
            and not (
                self.hides_superseded
                and (summary.superseded_by is not None or summary.archived_at is not None)
            )
        )

    def was_superseded(self, superseded_at: int | None) -> bool:
        """Return whether a memory that is superseded today, by a memory of this time, was so by `as_of`."""
        return (
            self.as_of is not None
            and not self.include_superseded
            and superseded_at is not None
            and superseded_at <= self.as_of
        )

    def condition(self) -> tuple[str, tuple[Any, ...]]:
        """Return the condition on a summary `s` in SQL, and its values."""
        condition, values = join_bounds(
            ("s.session_id =", self.session_id),
            ("s.source =", self.source),
            ("s.at >=", self.since),
            ("s.at <=", self.until),
            ("s.at <=", self.as_of),
        )
        if self.project_ids is not None:
            condition += f" AND s.project_id IN ({marks(self.project_ids)})"
            values += self.project_ids
        if self.kinds:
            condition += f" AND s.kind IN ({marks(self.kinds)})"
            values += tuple(kind.value for kind in self.kinds)
        if self.now is not None:
            condition += " AND (s.expires_at IS NULL OR s.expires_at > ?)"
            values += (self.now,)
        for tag in self.tags:
            condition += " AND ? IN (SELECT value FROM json_each(s.tags))"
            values += (tag,)
        if self.hides_superseded:
            condition += f" AND s.archived_at IS NULL AND {NOT_SUPERSEDED}"
        else:
            condition += f" AND NOT {REJECTED.format('s.id')}"
        return condition, values
