"""How a memory was used: how often answers returned it, and which sessions were shown it unasked."""

from memd.recall.answer import Access, Showing
from memd.store import injections, projects, uses
from memd.store.database import Connection

LATEST_MAX = 10


def read(tx: Connection, summary_id: int, project_ids: tuple[int, ...] | None) -> Access:
    """The uses of a memory; of a session of another project only that there was one."""
    use = uses.of(tx, [summary_id]).get(summary_id)
    shown, sessions = injections.counts_of(tx, summary_id)
    latest = injections.of_summary(tx, summary_id, LATEST_MAX)
    known = projects.sessions(tx, {one.session_id for one in latest})
    return Access(
        count=use.count if use else 0,
        last_at=use.last_at if use else None,
        shown=shown,
        sessions=sessions,
        latest=tuple(
            Showing(session.key, session.title, one.moment, one.at, one.reason)
            for one in latest
            if (session := known.get(one.session_id)) is not None
            and (project_ids is None or session.project_id in project_ids)
        ),
    )
