from memd.store import links, projects, summaries
from tests.factories import make_draft


def put(db):
    def write(tx):
        owner = summaries.SummaryOwner(projects.ensure_global(tx, 1), None, "test")
        return summaries.put_summary(tx, "u", make_draft(), owner, 1)[0]

    return db.write_now(write)


def test_what_a_memory_names_replaces_what_it_named_before(db):
    one = put(db)
    db.write_now(lambda tx: links.put_entities(tx, one, [("a.py", "file"), ("anna", "person")]))
    db.write_now(lambda tx: links.put_entities(tx, one, [("a.py", "file"), ("a.py", "file")]))
    assert db.read_now(lambda tx: links.entities_of(tx, [one, 99])) == {
        one: frozenset({"a.py"})
    }


def test_they_go_with_the_memory(db):
    one = put(db)
    db.write_now(lambda tx: links.put_entities(tx, one, [("a.py", "file")]))
    db.write_now(lambda tx: summaries.delete_summary(tx, one))
    assert db.read_now(lambda tx: tx.execute("SELECT count(*) FROM entities").get) == 0


def test_half_a_character_is_no_error(db):
    one = put(db)
    db.write_now(lambda tx: links.put_entities(tx, one, [("a\ud800.py", "file")]))
    (name,) = db.read_now(lambda tx: links.entities_of(tx, [one]))[one]
    assert name.startswith("a")
