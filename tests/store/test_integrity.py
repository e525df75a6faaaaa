"""Each thing is broken for real, by SQLite directly, and found; see test_sweeping for mending."""

import apsw
import pytest

from memd.models import EdgeType
from memd.store import integrity
from tests.consolidate.conftest import Vault


@pytest.fixture
async def vault(db, clock):
    """Three memories, two turns, everything indexed."""
    vault = Vault(db, clock)
    ids = [vault.put(f"body number {n} about the ledger", title=f"T{n}") for n in range(3)]
    vault.derives(ids[0], vault.event("why does the ledger fail?"))
    vault.link(("summary", str(ids[0])), EdgeType.CONTRADICTS, ("summary", str(ids[1])))
    vault.supersede(ids[2], ids[1])
    await vault.indexer.settle()
    return vault


def look(vault, **more):
    settings = {"is_served": True} | more
    found = vault.db.read_now(lambda tx: integrity.examine_vault(tx, vault.clock(), **settings))
    return {one.name: one for one in found}


def wrong(vault, **more):
    return {name: one for name, one in look(vault, **more).items() if one.verdict != "ok"}


def break_it(vault, *statements):
    other = apsw.Connection(vault.db.path)
    other.pragma("foreign_keys", 0)
    for one in statements:
        other.execute(one)
    other.close()


async def test_nothing_is_wrong_with_a_whole_vault(vault):
    assert wrong(vault) == {}
    assert len(look(vault)) == 12


@pytest.mark.parametrize(
    ("statement", "name", "fixable"),
    [
        ("DELETE FROM passages WHERE summary_id = 1", "passages", True),
        ("UPDATE terms SET passages = passages + 1 WHERE id = 1", "passages", True),
        ("DELETE FROM passages_fts WHERE rowid = 1", "full text", True),
        ("INSERT INTO passages_fts (rowid, title) VALUES (99, 'x')", "full text", True),
        ("DELETE FROM turns_fts", "turns", True),
        ("INSERT INTO turns_fts (rowid, text) VALUES (99, 'x')", "turns", True),
        ("UPDATE passages SET postings = x'0900010203' WHERE id = 2", "passages", True),
        ("INSERT INTO vectors VALUES (1099511627777, x'0000')", "vectors", True),
        ("INSERT INTO uses VALUES (99, 1, 1)", "references", True),
        ("INSERT INTO cues VALUES ('x', 99)", "references", True),
        (
            "UPDATE supersessions SET older_id = 99; DELETE FROM changes",
            "references",
            True,
        ),
        ("UPDATE events SET session_id = 99", "references", False),
        ("UPDATE edges SET to_id = '99' WHERE to_kind = 'event'", "provenance", True),
        ("UPDATE edges SET from_id = '99'", "provenance", True),
        ("INSERT INTO receipts VALUES ('live', 'received', '', 1)", "books", False),
        ("UPDATE events SET at = 9000000000000", "clock", False),
        ("UPDATE meta SET value = '9000000000000' WHERE key = 'created_at'", "clock", False),
    ],
)
async def test_what_is_broken_is_found_and_a_remedy_told(vault, statement, name, fixable):
    break_it(vault, statement)
    found = wrong(vault)[name]
    assert found.fixable is fixable
    assert found.remedy


async def test_what_waits_is_a_warning_only_where_a_daemon_should_work_on_it(vault):
    vault.put("a fourth")
    assert wrong(vault).keys() == {"changes"}
    assert wrong(vault, is_served=False) == {}


async def test_an_older_schema_is_named_and_looked_at_no_further(vault):
    break_it(vault, "PRAGMA user_version = 1")
    assert wrong(vault)["schema"].remedy == "`memd restart`"
    assert "vectors" not in look(vault)


async def test_damage_is_found(vault):
    break_it(
        vault,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX summaries_by_time ON summaries (body)'"
        " WHERE name = 'summaries_by_time'",
        "PRAGMA schema_version = 9999",
    )
    found = look(vault)
    assert found.keys() == {"database"}
    assert found["database"].verdict == "problem"


async def test_it_tells_when_a_hook_last_brought_something(vault):
    vault.clock.advance(s=7_200)
    assert "2 h ago" in look(vault)["capture"].words
