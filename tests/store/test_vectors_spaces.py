from memd.models import Space
from memd.store import fulltext, vectors
from memd.store.types import NewPassage

OLD, NEW = Space("ollama", "m", "1", 2, "aa"), Space("ollama", "m", "1", 2, "bb")


def fill(db, space, count):
    def write(tx):
        known = [p.id for p in fulltext.load_passages(tx)]
        new = [NewPassage(i, 0, 0, 1, "t", "x", "", ()) for i in range(len(known), count)]
        ids = known + [p.id for p in fulltext.put_passages(tx, new)]
        number = vectors.ensure_space(tx, space)
        vectors.put_vectors(tx, number, [(i, bytes(4)) for i in ids[:count]])

    db.write_now(write)


def test_a_space_weighs_what_is_in_it(db):
    fill(db, OLD, 3)
    fill(db, NEW, 5)
    db.write_now(lambda tx: vectors.ensure_space(tx, Space("x", "y", "1", 2)))
    found = db.read_now(vectors.measure_spaces)
    assert [(w.name, w.provider, w.vectors) for w in found] == [
        (OLD.name, "ollama", 3),
        (NEW.name, "ollama", 5),
        ("x/y/1/2", "x", 0),
    ]
    assert found[1].bytes > found[0].bytes > 3 * 4
    assert found[2].bytes == 0


def test_a_space_is_cleared_a_part_at_a_time_and_the_others_stay(db):
    fill(db, OLD, 3)
    fill(db, NEW, 3)

    def clear(tx):
        return vectors.drop_vectors(tx, OLD.name, 2)

    assert [db.write_now(clear) for _ in range(3)] == [2, 1, 0]
    assert [w.vectors for w in db.read_now(vectors.measure_spaces)] == [0, 3]


def test_a_space_that_is_dropped_is_known_no_more(db):
    fill(db, OLD, 3)
    fill(db, NEW, 1)
    db.write_now(lambda tx: vectors.drop_space(tx, OLD.name))
    assert [w.name for w in db.read_now(vectors.measure_spaces)] == [NEW.name]


def test_what_was_deleted_is_free_until_the_file_is_compact(db):
    fill(db, OLD, 3_000)
    assert db.read_now(vectors.free_bytes) == 0
    db.write_now(lambda tx: vectors.drop_space(tx, OLD.name))
    assert db.read_now(vectors.free_bytes) > 40_000
