from memd.store import integrity
from tests.store.test_integrity import break_it, vault, wrong

__all__ = ["vault"]


async def test_what_refers_to_nothing_goes_and_nothing_else(vault):
    rows = vault.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM summaries").get)
    break_it(
        vault,
        "INSERT INTO uses VALUES (99, 1, 1)",
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
