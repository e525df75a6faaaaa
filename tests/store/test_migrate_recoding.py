import apsw
import numpy as np

from memd.store import migrate
from memd.store.fulltext import POSTING, unpack_postings


def test_every_passage_is_packed_and_says_what_it_said():
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE passages (id INTEGER PRIMARY KEY, postings BLOB)")
    rows = [np.array([(9, 1, 0), (n + 10, 0, 3)][: n % 3], POSTING) for n in range(2_300)]
    connection.executemany(
        "INSERT INTO passages (postings) VALUES (?)", [(row.tobytes(),) for row in rows]
    )
    migrate.repack_postings(connection)
    blobs = [b for (b,) in connection.execute("SELECT postings FROM passages ORDER BY id")]
    assert [unpack_postings([blob])[0].tolist() for blob in blobs[:9]] == [
        r.tolist() for r in rows[:9]
    ]
    assert unpack_postings(blobs)[0].tolist() == np.concatenate(rows).tolist()
