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

from memd.index.passages import split_into_passages
from memd.index.quantization import encode_vectors
from memd.models import Draft, EdgeType, EventKind, Kind, NewEvent, SessionRef, Source, Space, Tier
from memd.store import events, fulltext, ledger, links, migrate, projects, summaries, vectors
from memd.store.links import NewEdge

AT = 1_790_000_000_000
SPACE = Space("ollama", "m", "1", 8, "d")
TURNS = (
    (EventKind.PROMPT, {"prompt": "Where shall the sessions live?"}),
    (EventKind.TOOL_CALL, {"tool_name": "Bash", "tool_input": {"command": "make"}}),
    (EventKind.STOP, {"last_assistant_message": "Sessions live in Redis from now on."}),
    (EventKind.SUBAGENT_STOP, {"last_assistant_message": "Three machines share them."}),
    (EventKind.COMPACT_END, {"compact_summary": "We moved the sessions to Redis."}),
    (EventKind.SESSION_END, {"reason": "exit"}),
)
SPOKEN = (
    ("remembered by the user", "user", Tier.AGENT, "remembered", Kind.FACT, "We ship from Bremen."),
    ("remembered by an agent", "agent", Tier.AGENT, "remembered", Kind.FACT, "The tests take long."),
    ("decided by the user", "claude-code", Tier.CAPTURED, "decision:stated", Kind.DECISION,
     "User: “Decision: sessions stay in SQLite.”"),
    ("decided by both", "claude-code", Tier.CAPTURED, "decision:stated", Kind.DECISION,
     "Assistant: “Decision: logs go to disk.”\nUser: “We decided that logs go to disk.”"),
    ("decided by the agent", "claude-code", Tier.CAPTURED, "decision:stated", Kind.DECISION,
     "Assistant: “Decision: sessions move to Redis.”"),
    ("a rule", "claude-code", Tier.CAPTURED, "instruction:always", Kind.INSTRUCTION,
     "User: “Always run make check.”"),
    ("a failure", "claude-code", Tier.CAPTURED, "same-command", Kind.FAILURE, "`make` failed: no rule"),
    ("a compaction", "claude-code", Tier.CAPTURED, "compaction", Kind.SESSION, "We moved on."),
    ("a note", "import:markdown", Tier.FILE, "imported:file", Kind.NOTE, "Notes of a person."),
    ("auto memory", "import:claude-memory", Tier.FILE, "imported:file", Kind.NOTE, "Of an agent."),
    ("a graph", "import:knowledge-graph", Tier.AGENT, "imported", Kind.FACT, "Ada builds engines."),
    ("an observation", "import:claude-mem", Tier.AGENT, "imported", Kind.NOTE, "It was seen."),
)  # fmt: skip
"""(title, source, tier, rule, kind, body) of memories from every speaker, with topic keys in capitals."""


def fill(tx):
    """Two memories of one session, the newer hiding the older, with all that belongs to them."""
    project = projects.ensure_project(tx, "/home/dev/ledger", "ledger", "a git repository", AT)
    ref = SessionRef("claude-code", "first", "/home/dev/ledger")
    session = projects.ensure_session(tx, ref, project, AT)
    projects.extend_session(tx, session, AT, "Where shall the sessions live?")
    numbers = []
    for n, (kind, payload) in enumerate(TURNS):
        event = NewEvent(ref, f"key-{n}", kind, str(kind), AT + n * 1000, "live", payload, "t1")
        numbers.append(events.append_event(tx, event, session)[0])
    events.mark_distilled(tx, numbers)
    owner = summaries.SummaryOwner(project, session, "claude-code", "t1")
    written = []
    for n, place in enumerate(("SQLite", "Redis")):
        draft = Draft(
            "turn", Kind.DECISION, f"Sessions live in {place}", f"`store_session` uses {place}.",
            AT + n * 1000, "turn", (Source(numbers[0], "sessions"),), Tier.CAPTURED,
            tags=("sessions",), files=("/home/dev/ledger/app/sessions.py",),
        )  # fmt: skip
        written.append(summaries.put_summary(tx, f"uid-{n}", draft, owner, AT)[0])
        edge = NewEdge(
            "summary", str(written[-1]), EdgeType.DERIVES_FROM, "event", str(numbers[0]), "turn", AT
        )
        links.add_edges(tx, [edge])
    links.supersede(
        tx, newer_id=written[1], older_id=written[0], rule="said so", cosine=0.9, guard="none",
        at=AT,
    )  # fmt: skip
    summaries.pin_summary(tx, written[1], AT)
    for one in summaries.summaries_by_ids(tx, written).values():
        (stored,) = fulltext.put_passages(tx, split_into_passages(one))
        row = np.zeros((1, SPACE.dimensions), np.float32)
        row[0, [one.id, one.id + 1]] = 0.8, -0.6
        (blob,) = encode_vectors(row)
        vectors.put_vectors(tx, vectors.ensure_space(tx, SPACE), [(stored.id, blob)])
    fulltext.remove_changes(tx, [seq for seq, _ in fulltext.pending_changes(tx, 100)])
    ledger.record_receipts(tx, "live", {("received", ""): len(TURNS), ("stored", ""): len(TURNS)})
    ledger.record_forgotten(tx, "a-forgotten-key", AT)
    for title, source, tier, rule, kind, body in SPOKEN:
        topic = title.title().replace(" ", ".") if source in ("user", "agent") else None
        draft = Draft("memory", kind, title, body, AT, rule, (), tier, topic_key=topic)
        spoken = summaries.SummaryOwner(project, None, source, None)
        summaries.put_summary(tx, title, draft, spoken, AT)


def main():
    """Make the file."""
    version = int(sys.argv[1])
    path = Path(__file__).parent / f"version-{version}.vault"
    path.unlink(missing_ok=True)
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", 1024)
    with connection:
        for number, sql in enumerate(migrate.migrations()[:version], start=1):
            connection.execute(sql)
            if number in migrate._PYTHON_STEPS:
                migrate._PYTHON_STEPS[number](connection)
        connection.execute("INSERT INTO meta VALUES ('created_at', ?)", (str(AT),))
        fill(connection)
    connection.pragma("application_id", migrate.APPLICATION_ID)
    connection.pragma("user_version", version)
    connection.execute("VACUUM")
    connection.close()


if __name__ == "__main__":
    main()
