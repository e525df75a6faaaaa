from memd.models import Space
from memd.store import fulltext, vectors
from memd.store.types import NewPassage

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
    assert stored(db) == {
        p: b"\x03\0\0\0",
        r: b"\x01\0\0\0",
    }
