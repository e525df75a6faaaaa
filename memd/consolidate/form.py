"""What a text says when its dress is taken off: case, punctuation, order, filler, times of writing. Pure.

Two texts of one form are a candidate pair whatever their cosine; guards decide what they are. So a
form may forget more than may differ (`not` and every date, for example), never less.
"""

import hashlib
import re

from memd.consolidate.anchors import FILLERS
from memd.text import fold, is_stop_word, stem, words

_STAMP = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
)


def form_of(title: str, body: str) -> int:
    """A number of 64 bits that texts of one form share."""
    bare = _STAMP.sub(" ", f"{title}\n{body}")
    folded = {fold(word) for word in words(bare) if not is_stop_word(word)}
    said = {stem(word) for word in folded - FILLERS}
    hashed = hashlib.blake2b(" ".join(sorted(said)).encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "little", signed=True)
