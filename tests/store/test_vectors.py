from memd.models import Space
from memd.store import NewPassage, fulltext, vectors

SPACE = Space("hashing", "words", "1", 2)


def passages(db, *summary_ids):
    new = [NewPassage(i, 0, 0, 1, "t", "x", "", ()) for i in summary_ids]
    return [p.id for p in db.write_now(lambda tx: fulltext.put_passages(tx, new))]


def stored(db):
    rows = db.read_now(lambda tx: tx.execute("SELECT id, vector FROM vectors").fetchall())
    return {number % vectors.STRIDE: vector for number, vector in rows}


def test_vectors_belong_to_a_space_and_go_with_their_passage(db):
    p, q = passages(db, 1, 2)
    space = db.write_now(lambda tx: vectors.ensure_space(tx, SPACE))
    assert db.write_now(lambda tx: vectors.ensure_space(tx, SPACE)) == space
    db.write_now(lambda tx: vectors.put_vectors(tx, space, [(p, b"\x00\x3c\x00\x00")]))
    assert db.read_now(lambda tx: vectors.vectors_of(tx, SPACE.name, [p, q])) == {
        p: b"\x00\x3c\x00\x00"
    }
    assert db.read_now(lambda tx: vectors.vectors_of(tx, "another", [p])) == {}
    db.write_now(lambda tx: vectors.put_vectors(tx, space, [(p, b"\x00\x00\x00\x3c")]))
    assert stored(db) == {p: b"\x00\x00\x00\x3c"}
    db.write_now(lambda tx: fulltext.remove_passages(tx, 1))
    assert stored(db) == {}


def test_a_vector_that_comes_too_late_for_its_passage_is_left_out(db):
    p, q, r = passages(db, 1, 2, 3)
    db.write_now(lambda tx: fulltext.remove_passages(tx, 2))
    space = db.write_now(lambda tx: vectors.ensure_space(tx, SPACE))
    pairs = [(r, b"\x01\0\0\0"), (q, b"\x02\0\0\0"), (p, b"\x03\0\0\0")]
    assert db.write_now(lambda tx: vectors.put_existing_vectors(tx, space, pairs)) == [r, p]
    assert stored(db) == {p: b"\x03\0\0\0", r: b"\x01\0\0\0"}


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
