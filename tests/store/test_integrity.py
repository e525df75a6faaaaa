import apsw
import pytest

from memd.models import EdgeType
from memd.store import integrity
from tests.consolidate.conftest import Vault
from tests.tables import read_tables

TABLES = read_tables("store/integrity")


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
    ("statement", "name", "fixable"), TABLES["each_kind_of_damage_is_found_with_a_remedy"]
)
async def test_each_kind_of_damage_is_found_with_a_remedy(vault, statement, name, fixable):
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


async def test_a_sample_is_spread_over_all_that_is_indexed(vault):
    for number in range(7):
        vault.put(f"more {number}")
    await vault.indexer.settle()
    waiting = vault.put("not indexed")
    chosen = vault.db.read_now(lambda tx: integrity.sample_summaries(tx, 4))
    assert chosen == [1, 4, 7, 10]
    assert waiting not in vault.db.read_now(lambda tx: integrity.sample_summaries(tx, 99))


async def test_a_word_that_is_not_in_the_vocabulary_is_named_by_its_number(vault):
    break_it(vault, "DELETE FROM terms WHERE term = 'ledger'")
    (one,) = vault.db.read_now(lambda tx: integrity.indexed_passages(tx, 1))
    assert "ledger" not in one.terms
    assert any(term.startswith("#") for term in one.terms)


async def test_what_refers_to_nothing_goes_and_nothing_else(vault):
    rows = vault.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM summaries").get)
    break_it(
        vault,
        "INSERT INTO uses (summary_id, count, last_at) VALUES (99, 1, 1)",
        "INSERT INTO cues VALUES ('x', 99)",
        "INSERT INTO passages_fts (rowid, title) VALUES (99, 'x')",
        "INSERT INTO turns_fts (rowid, text) VALUES (99, 'x')",
        "UPDATE edges SET to_id = '99' WHERE to_kind = 'event'",
        "UPDATE terms SET passages = 77",
    )
    assert wrong(vault).keys() == {"references", "provenance", "full text", "turns", "passages"}
    gone = vault.db.write_now(integrity.remove_orphans)
    assert gone == {"uses": 1, "cues": 1, "edges": 1, "passages_fts": 1, "turns_fts": 1}
    assert wrong(vault) == {}
    after = vault.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM summaries").get)
    assert after == rows
    assert vault.db.write_now(integrity.remove_orphans) == {}


async def test_a_memory_that_nothing_contradicts_any_more_is_trusted_again(vault):
    before = vault.get(2).confidence
    break_it(vault, "UPDATE edges SET from_id = '99' WHERE type = 'contradicts'")
    vault.db.write_now(integrity.remove_orphans)
    assert vault.get(2).confidence > before


async def test_a_reference_that_the_schema_would_keep_is_left(vault):
    break_it(vault, "UPDATE events SET session_id = 99")
    assert vault.db.write_now(integrity.remove_orphans) == {}
    assert wrong(vault)["references"].fixable is False
