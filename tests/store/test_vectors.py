from memd.models import Space
from memd.store import fulltext, vectors
from memd.store.rows import NewPassage

SPACE = Space("hashing", "words", "1", 2)


def test_vectors_belong_to_a_space_and_go_with_their_passage(db):
    (p, q) = db.write_now(
        lambda tx: fulltext.put(tx, [NewPassage(i, 0, 0, 1, "t", "x", "", ()) for i in (1, 2)])
    )
    space = db.write_now(lambda tx: vectors.ensure_space(tx, SPACE))
    assert db.write_now(lambda tx: vectors.ensure_space(tx, SPACE)) == space
    db.write_now(lambda tx: vectors.put(tx, space, [(p.id, b"\x00\x3c\x00\x00")]))
    assert db.read_now(lambda tx: vectors.missing(tx, space, 9)) == [q.id]
    db.write_now(lambda tx: vectors.put(tx, space, [(p.id, b"\x00\x00\x00\x3c")]))
    assert db.read_now(lambda tx: list(vectors.load(tx, space))) == [
        (p.id, b"\x00\x00\x00\x3c")
    ]
    db.write_now(lambda tx: fulltext.remove(tx, 1))
    assert db.read_now(lambda tx: vectors.count(tx, space)) == 0
