"""Make the stored vault of one schema version, with data in every table, to prove upgrades on.

    python tests/data/vaults/make.py VERSION

writes tests/data/vaults/version-VERSION.vault next to this file from the first VERSION migrations. Run
it once, on the day when a version is released, with the code of that day: a vault that is made
later, by newer code, proves less. What is in it is what `tests/store/test_migrate.py` looks for.
"""

import sys
from pathlib import Path

import apsw
import numpy as np

from memd.index.chunking import passages
from memd.models import Draft, EdgeType, EventKind, Kind, NewEvent, SessionRef, Source, Space, Tier
from memd.store import (
    books,
    changes,
    events,
    fulltext,
    links,
    migrate,
    projects,
    summaries,
    vectors,
)
from memd.store.links import NewEdge

AT = 1_790_000_000_000
SPACES = (Space("hashing", "words-ngrams", "1", 768), Space("ollama", "m", "1", 8, "d"))
TURNS = (
    (EventKind.PROMPT, {"prompt": "Where shall the sessions live?"}),
    (EventKind.TOOL_CALL, {"tool_name": "Bash", "tool_input": {"command": "make"}}),
    (EventKind.STOP, {"last_assistant_message": "Sessions live in Redis from now on."}),
    (EventKind.SUBAGENT_STOP, {"last_assistant_message": "Three machines share them."}),
    (EventKind.COMPACT_END, {"compact_summary": "We moved the sessions to Redis."}),
    (EventKind.SESSION_END, {"reason": "exit"}),
)


def fill(tx):
    """Two memories of one session, the newer hiding the older, with all that belongs to them."""
    project = projects.ensure_project(tx, "/home/dev/ledger", "ledger", "a git repository", AT)
    ref = SessionRef("claude-code", "first", "/home/dev/ledger")
    session = projects.ensure_session(tx, ref, project, AT)
    projects.session_happened(tx, session, AT, "Where shall the sessions live?")
    numbers = []
    for n, (kind, payload) in enumerate(TURNS):
        event = NewEvent(ref, f"key-{n}", kind, str(kind), AT + n * 1000, "live", payload, "t1")
        numbers.append(events.append(tx, event, session)[0])
    events.mark_distilled(tx, numbers)
    owner = summaries.Owner(project, session, "claude-code", "t1")
    written = []
    for n, place in enumerate(("SQLite", "Redis")):
        draft = Draft(
            "turn", Kind.DECISION, f"Sessions live in {place}", f"`store_session` uses {place}.",
            AT + n * 1000, "turn", (Source(numbers[0], "sessions"),), Tier.CAPTURED,
            tags=("sessions",), files=("/home/dev/ledger/app/sessions.py",),
        )  # fmt: skip
        written.append(summaries.put(tx, f"uid-{n}", draft, owner, AT)[0])
        edge = NewEdge(
            "summary", str(written[-1]), EdgeType.DERIVES_FROM, "event", str(numbers[0]), "turn", AT
        )
        links.link(tx, [edge])
    links.supersede(
        tx, newer_id=written[1], older_id=written[0], rule="said so", cosine=0.9, guard="none",
        at=AT,
    )  # fmt: skip
    summaries.pin(tx, written[1], AT)
    for one in summaries.by_ids(tx, written).values():
        (stored,) = fulltext.put(tx, passages(one))
        for space in SPACES:
            row = np.zeros(space.dimensions, "<f2")
            row[[one.id, one.id + 1]] = 0.8, -0.6
            vectors.put(tx, vectors.ensure_space(tx, space), [(stored.id, row.tobytes())])
    changes.learnt(tx, [seq for seq, _ in changes.pending(tx, 100)])
    books.enter(tx, "live", {("received", ""): len(TURNS), ("stored", ""): len(TURNS)})
    books.forget(tx, "a-forgotten-key", AT)


def main():
    """Make the file."""
    version = int(sys.argv[1])
    path = Path(__file__).parent / f"version-{version}.vault"
    path.unlink(missing_ok=True)
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", 1024)
    with connection:
        for sql in migrate.migrations()[:version]:
            connection.execute(sql)
        connection.execute("INSERT INTO meta VALUES ('created_at', ?)", (str(AT),))
        fill(connection)
    connection.pragma("application_id", migrate.APPLICATION_ID)
    connection.pragma("user_version", version)
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    main()
