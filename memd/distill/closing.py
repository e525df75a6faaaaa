"""Closes failures of earlier turns whose check has passed since. Knows no waiting.

The failure gets an edge to the event in which it passed: it is no longer open, and `mem_why` tells
since when. Writing it again changes nothing.
"""

from collections.abc import Sequence

from memd.distill.passing import Passed, closed
from memd.models import EdgeType, Kind
from memd.store import links, summaries
from memd.store.cards import PASSED_LATER
from memd.store.database import Connection

_LOOKED_AT = 100
"""The newest failures of the project."""


def close(tx: Connection, runs: Sequence[Passed], project_id: int) -> int:
    """Link each failure of the project that one of these runs closes; how many were open until now."""
    if not runs:
        return 0
    failed = summaries.live(tx, project_id, (Kind.FAILURE,), limit=_LOOKED_AT)
    edges = [
        links.NewEdge(
            "summary",
            str(failure.id),
            EdgeType.REFERENCES,
            "event",
            str(run.event_id),
            PASSED_LATER,
            run.at,
        )
        for failure, run in closed(runs, failed)
    ]
    return links.link(tx, edges)
