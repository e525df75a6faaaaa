import contextlib
import re
from importlib import resources
from pathlib import Path

import apsw
import numpy as np
import pytest

from memd.errors import VaultCorrupt, VaultForeign, VaultNewer
from memd.index import indexer
from memd.index.quantization import decode_vectors
from memd.models import Authority, Draft, EdgeType, Kind, Space
from memd.store import (
    SummaryUse,
    database,
    events,
    fulltext,
    ledger,
    links,
    projects,
    summaries,
    usage,
    vectors,
)
from memd.store.database import Database
from memd.store.fulltext import POSTING, unpack_postings
from tests.factories import make_new_event
from tests.indexed_vault import IndexedVault


def dump(connection):
    """Everything a schema is, and nothing of how its SQL was laid out or commented."""
    return sorted(
        (kind, name, " ".join(re.sub("--.*", "", sql).split()))
        for kind, name, sql in connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        )
    )


def untouched(path):
    before = path.read_bytes(), sorted(p.name for p in path.parent.iterdir())
    return lambda: (path.read_bytes(), sorted(p.name for p in path.parent.iterdir())) == before


def test_all_migrations_together_yield_the_schema():
    migrated, declared = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    for sql in database.migrations():
        migrated.execute(sql)
    declared.execute((resources.files("memd.store") / "schema.sql").read_text(encoding="utf-8"))
    assert dump(migrated) == dump(declared)


def test_what_was_held_back_from_a_session_is_no_injection_any_more():
    connection = apsw.Connection(":memory:")
    for sql in database.migrations()[:19]:
        connection.execute(sql)
    connection.execute(
        "INSERT INTO injections (id, session_id, summary_id, moment, at, reason, held)"
        " VALUES (1, 1, 7, 'prompt', 5, 'shown', 0), (2, 1, 8, 'prompt', 5, 'held back', 1)"
    )
    connection.execute(database.migrations()[19])
    assert list(connection.execute("SELECT id, reason FROM injections")) == [(1, "shown")]


def test_a_new_vault_says_what_it_is_in_its_first_hundred_bytes(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), 1).close()
    header = path.read_bytes()[:100]
    assert header[68:72] == b"memd"
    assert int.from_bytes(header[60:64], "big") == len(database.migrations())


def test_a_newer_vault_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), 1).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    same = untouched(path)
    with pytest.raises(VaultNewer, match="999"):
        Database(str(path), 2)
    assert same()


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "v.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    same = untouched(path)
    with pytest.raises(VaultForeign, match="another program"):
        Database(str(path), 1)
    assert same()


@pytest.mark.parametrize(
    "content", [b"not a database at all", b"\x00" * 200, b"SQLite format 3\x00" + b"x" * 20]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "v.db"
    path.write_bytes(content)
    same = untouched(path)
    with pytest.raises(VaultCorrupt, match="beginning is damaged"):
        Database(str(path), 1)
    assert same()


def test_a_damaged_page_is_found_at_the_start_and_the_file_stays(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), 1).close()
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(bytes(content))
    with pytest.raises(VaultCorrupt):
        Database(str(path), 1)
    assert path.read_bytes() == bytes(content)


def test_a_crash_in_the_very_first_transaction_is_not_taken_for_a_foreign_file(tmp_path):
    path = tmp_path / "v.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN; CREATE TABLE half (x); ROLLBACK")
    Path(str(path) + "-wal").touch()
    connection.close()
    Path(str(path) + "-wal").touch()
    Database(str(path), 1).close()


VAULTS = Path(__file__).parent.parent / "data" / "vaults"


@pytest.fixture
def upgraded(request, tmp_path):
    """A vault that an older version wrote, opened by this one; see tests/data/vaults/make.py."""
    path = tmp_path / "v.db"
    path.write_bytes((VAULTS / f"version-{request.param}.vault").read_bytes())
    assert path.read_bytes()[60:64] == request.param.to_bytes(4, "big")
    db = Database(str(path), 1)
    yield db
    db.close()


def version(number):
    return pytest.mark.parametrize("upgraded", [number], indirect=True)


@pytest.mark.parametrize("upgraded", range(1, 8), indirect=True)
def test_a_vault_of_any_version_gets_the_schema_of_this_one(upgraded):
    declared = apsw.Connection(":memory:")
    declared.execute((resources.files("memd.store") / "schema.sql").read_text(encoding="utf-8"))
    assert upgraded.read_now(dump) == dump(declared)


@version(1)
def test_a_vault_of_version_1_keeps_everything_and_gains_the_rest(upgraded):
    db = upgraded
    older, newer = db.read_now(lambda tx: summaries.summaries_by_ids(tx, [1, 2])).values()
    assert (older.title, older.superseded_by) == ("Sessions live in SQLite", 2)
    assert (newer.title, newer.pinned_at is None) == ("Sessions live in Redis", False)
    assert db.read_now(lambda tx: links.sources_of(tx, 2)) == [(1, "")]
    assert db.read_now(events.event_counts)["events"] == 6
    # What was said before the upgrade is found: of six events, four carry words.
    said = db.read_now(lambda tx: events.match_turns(tx, '"redis"', events.TurnFilter(), 9))
    assert {spoken.event_id for spoken in said} == {3, 5}
    assert db.read_now(lambda tx: tx.execute("SELECT count(*) FROM turns_fts").get) == 4
    # Every memory waits for the index once more, which finds its entities.
    assert {number for _, number in db.read_now(lambda tx: fulltext.pending_changes(tx, 9))} == {
        1,
        2,
    }
    db.write_now(
        lambda tx: usage.record_uses(tx, {1: SummaryUse(1, 1), 2: SummaryUse(1, 1)}, {(1, 2): 1})
    )


@version(2)
def test_a_vault_of_version_2_keeps_everything_and_gains_its_places(upgraded):
    db = upgraded
    older, newer = db.read_now(lambda tx: summaries.summaries_by_ids(tx, [1, 2])).values()
    assert (older.superseded_by, newer.pinned_at is None) == (2, False)
    assert db.read_now(events.event_counts)["events"] == 6
    assert db.read_now(lambda tx: tx.execute("SELECT count(*) FROM turns_fts").get) == 4
    assert db.read_now(ledger.balance)["received"] == 6
    (project,) = db.read_now(projects.projects)
    assert db.read_now(projects.project_aliases) == {}
    assert db.read_now(lambda tx: projects.effective_switch(tx, project.key, "first")).captures
    # What is new can be written beside what was there.
    db.write_now(
        lambda tx: projects.put_switch(tx, projects.PROJECT_SCOPE, project.key, False, True, 1)
    )

    def merge(tx):
        into = projects.ensure_project(tx, "/home/dev/books", "books", "", 1)
        projects.merge_project(tx, project, projects.project(tx, into), 2)
        return into

    into = db.write_now(merge)
    assert db.read_now(lambda tx: projects.project_by_key(tx, project.key)).id == into
    assert db.read_now(lambda tx: summaries.get_summary(tx, 1)).project_id == into


@version(1)
async def test_the_index_of_an_upgraded_vault_is_whole_again(upgraded):
    library = IndexedVault(upgraded)
    (hit, *_) = (await library.ask("sessions redis")).hits
    assert hit.summary.id == 2
    named = upgraded.read_now(lambda tx: links.entities_of(tx, [2]))[2]
    assert {"store_session", "sessions.py"} <= named


MODEL = Space("ollama", "m", "1", 8, "d")


@version(4)
def test_a_vault_of_version_4_keeps_its_index_and_the_vectors_of_its_model(upgraded):
    db = upgraded
    assert db.read_now(lambda tx: [w.name for w in vectors.measure_spaces(tx)]) == [MODEL.name]
    stored = db.read_now(lambda tx: vectors.vectors_of(tx, MODEL.name, [1, 2]))
    rows = decode_vectors([stored[1], stored[2]], 8)
    assert rows[0].tolist() == pytest.approx([0, 0.8, -0.6, *[0] * 5], abs=1e-3)
    assert rows[1].tolist() == pytest.approx([0, 0, 0.8, -0.6, *[0] * 4], abs=1e-3)
    counted = dict(db.read_now(lambda tx: tx.execute("SELECT id, passages FROM terms").fetchall()))
    assert db.read_now(fulltext.count_term_uses) == counted
    assert db.read_now(lambda tx: indexer.check_sample(tx, 400)).verdict == "ok"
    assert db.read_now(fulltext.snapshot_name) is None


@version(4)
async def test_a_vault_of_version_4_is_searched_as_before_and_forgets(upgraded):
    library = IndexedVault(upgraded)
    (hit, *_) = (await library.ask("sessions redis")).hits
    assert hit.summary.id == 2
    upgraded.write_now(lambda tx: fulltext.remove_passages(tx, 1))
    assert set(upgraded.read_now(lambda tx: vectors.vectors_of(tx, MODEL.name, [1, 2]))) == {2}


@version(5)
def test_a_vault_of_version_5_gains_its_speakers(upgraded):
    db = upgraded
    ids = db.read_now(
        lambda tx: [row[0] for row in tx.execute("SELECT id FROM summaries").fetchall()]
    )
    found = db.read_now(lambda tx: summaries.summaries_by_ids(tx, ids)).values()
    assert {one.title: one.authority for one in found} == {
        "Sessions live in SQLite": Authority.AGENT_TEXT,
        "Sessions live in Redis": Authority.AGENT_TEXT,
        "remembered by the user": Authority.USER_HAND,
        "remembered by an agent": Authority.AGENT_CALL,
        "decided by the user": Authority.USER_PROMPT,
        "decided by both": Authority.USER_PROMPT,
        "decided by the agent": Authority.AGENT_TEXT,
        "a rule": Authority.USER_PROMPT,
        "a failure": Authority.TOOL_OUTPUT,
        "a compaction": Authority.AGENT_TEXT,
        "a note": Authority.TOOL_OUTPUT,
        "auto memory": Authority.AGENT_CALL,
        "a graph": Authority.AGENT_CALL,
        "an observation": Authority.AGENT_TEXT,
    }
    assert {one.title: one.pinned_by for one in found if one.pinned_at or one.pinned_by} == {
        "Sessions live in Redis": Authority.USER_HAND
    }
    topics = {one.topic_key for one in found if one.topic_key}
    assert topics == {"remembered.by.the.user", "remembered.by.an.agent"}


@version(6)
def test_a_vault_of_version_6_keeps_its_turns_and_hears_more(upgraded):
    db = upgraded
    said = make_new_event("agent_text", key="said", text="Redis cannot do that.")
    number, _ = db.write_now(lambda tx: events.append_event(tx, said, 1))
    found = db.read_now(lambda tx: events.match_turns(tx, '"redis"', events.TurnFilter(), 9))
    assert {spoken.event_id for spoken in found} == {3, 5, number}


def test_every_passage_is_packed_and_says_what_it_said():
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE passages (id INTEGER PRIMARY KEY, postings BLOB)")
    rows = [np.array([(9, 1, 0), (n + 10, 0, 3)][: n % 3], POSTING) for n in range(2_300)]
    connection.executemany(
        "INSERT INTO passages (postings) VALUES (?)", [(row.tobytes(),) for row in rows]
    )
    database.repack_postings(connection)
    blobs = [b for (b,) in connection.execute("SELECT postings FROM passages ORDER BY id")]
    assert [unpack_postings([blob])[0].tolist() for blob in blobs[:9]] == [
        r.tolist() for r in rows[:9]
    ]
    assert unpack_postings(blobs)[0].tolist() == np.concatenate(rows).tolist()


def test_an_upgrade_takes_a_note_in_a_file_for_a_file_unless_the_user_made_it_his(tmp_path):
    path = tmp_path / "v.db"
    connection = apsw.Connection(str(path))
    for number, sql in enumerate(database.migrations()[:9], start=1):
        connection.execute(sql)
        if number in database._PYTHON_STEPS:
            database._PYTHON_STEPS[number](connection)
    connection.pragma("application_id", database.APPLICATION_ID)
    connection.pragma("user_version", 9)
    project = projects.ensure_project(connection, "/p", "p", "a git repository", 1)
    stored = {}
    for title, source, authority in (
        ("a note", "import:markdown", Authority.USER_PROMPT),
        ("a pinned note", "import:markdown", Authority.USER_PROMPT),
        ("a note said again", "import:markdown", Authority.USER_PROMPT),
        ("a note said by hand", "import:markdown", Authority.USER_HAND),
        ("a knowledge note", "import:okf", Authority.USER_PROMPT),
        ("a prompt", "claude-code", Authority.USER_PROMPT),
        ("of an agent", "import:claude-memory", Authority.AGENT_CALL),
    ):
        draft = Draft(
            "memory", Kind.NOTE, title, title, 1, "imported:file", (), authority=authority
        )
        owner = summaries.SummaryOwner(project, None, source)
        stored[title] = summaries.put_summary(connection, title, draft, owner, 1)[0]
    summaries.pin_summary(connection, stored["a pinned note"], 1)
    connection.execute("UPDATE summaries SET pinned_by = 5 WHERE pinned_at IS NOT NULL")
    said = ("summary", str(stored["a note said again"]), EdgeType.DERIVES_FROM, "event", "7")
    read = ("summary", str(stored["a note"]), EdgeType.DERIVES_FROM, "origin", "/p/a.md#")
    links.add_edges(connection, [links.NewEdge(*said, "said", 1)])
    links.add_edges(connection, [links.NewEdge(*read, "imported", 1, detail={"authority": 4})])
    connection.close()

    with contextlib.closing(Database(str(path), 2)) as upgraded:
        found = upgraded.read_now(lambda tx: summaries.summaries_by_ids(tx, list(stored.values())))
        (edge,) = upgraded.read_now(lambda tx: links.edges_at(tx, "origin", "/p/a.md#"))
    assert {one.title: one.authority.code for one in found.values()} == {
        "a note": 1, "a pinned note": 4, "a note said again": 4, "a note said by hand": 5,
        "a knowledge note": 1, "a prompt": 4, "of an agent": 3,
    }  # fmt: skip
    assert edge.detail["authority"] == 1
