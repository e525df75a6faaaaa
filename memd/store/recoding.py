"""What a migration does to data that SQL alone cannot: postings from six bytes each to two."""

from itertools import islice

import apsw
import numpy as np

from memd.store.packing import POSTING, pack

_BLOCK = 1_000


def pack_postings(connection: apsw.Connection) -> None:
    """Write the postings of every passage anew. 100,000 passages take some three seconds."""
    last = 0
    while True:
        rows = connection.execute(
            "SELECT id, postings FROM passages WHERE id > ? ORDER BY id", (last,)
        )
        block = list(islice(rows, _BLOCK))
        if not block:
            return
        last = block[-1][0]
        sizes = [len(blob) // POSTING.itemsize for _, blob in block]
        packed = pack(np.frombuffer(b"".join(blob for _, blob in block), POSTING), sizes)
        connection.executemany(
            "UPDATE passages SET postings = ? WHERE id = ?",
            [(new, number) for (number, _), new in zip(block, packed, strict=True)],
        )
