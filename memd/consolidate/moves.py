"""Whether a phrase has only changed its place in a sentence, so that the sentence says the same. Pure.

"Retries with backoff and jitter" and "with backoff and jitter, retries" differ in order alone; "run
tests, run builds on Mac" and "on Mac run tests, run builds" do not. Not here: what else may differ
(guards.py).
"""

from memd.consolidate.anchors import BREAKS, Reading, Sort, Token, key_of

_LEADING = "with in on at for from to into by because when while as since"
_LEADERS = frozenset(key_of(word) for word in _LEADING.split())
ARTICLES = frozenset({"the", "a", "an"})
_BLOCK_MIN = 2
"""Words; of a single one it cannot be told what it belongs to."""
_SEQUENCE = frozenset(
    key_of(word) for word in ("then", "next", "finally", "afterwards", "later")
)
_SEVERAL = 2


def is_moved(older: Reading, newer: Reading) -> bool:
    """Whether one phrase has changed places with what stood before or after it, and nothing else.

    The phrase must begin with the word that says its part (`with`, `in`, `after`), for then its part goes
    with it; in `cp a b` the place itself says the part. And what it belongs to must be one clause.
    """
    was, now = _Line(older), _Line(newer)
    if len(was.keys) != len(now.keys) or sorted(was.keys) != sorted(now.keys):
        return False
    differ = [
        at for at, pair in enumerate(zip(was.keys, now.keys, strict=True)) if len({*pair}) > 1
    ]
    if not differ:
        return False
    first, last = differ[0], differ[-1] + 1
    for cut in range(first + _BLOCK_MIN, last - _BLOCK_MIN + 1):
        if was.keys[cut:last] + was.keys[first:cut] == now.keys[first:last]:
            middle = first + last - cut
            front = was.is_phrase(first, cut), now.is_phrase(middle, last)
            back = was.is_phrase(cut, last), now.is_phrase(first, middle)
            ours = was.is_clause(first, cut) and now.is_clause(middle, last)
            theirs = was.is_clause(cut, last) and now.is_clause(first, middle)
            if (all(back) and ours) or (all(front) and theirs):
                return True
    return False


class _Line:
    """The words of a text without articles, and where its clauses end."""

    def __init__(self, reading: Reading) -> None:
        self.tokens: list[Token] = []
        self.ends: dict[int, bool] = {}
        """Before which word a clause begins → whether the one before ended with `and` or its like."""
        for clause in reading.clauses:
            self.tokens += [token for token in clause if token.key not in ARTICLES]
            self.ends[len(self.tokens)] = clause[-1].key in BREAKS
        self.keys = [token.key for token in self.tokens]

    def is_phrase(self, first: int, last: int) -> bool:
        """Whether these words begin with one that says their part, and go on without a comma."""
        head = self.tokens[first]
        is_led = head.sort is Sort.QUALIFIER or head.key in _LEADERS
        return is_led and all(self.ends.get(at, True) for at in range(first + 1, last))

    def is_clause(self, first: int, last: int) -> bool:
        """Whether no clause ends within these words."""
        return self.ends.keys().isdisjoint(range(first + 1, last))


def is_shuffled(older: Reading, newer: Reading) -> bool:
    """Whether clauses stand in another order that matters.

    It does where one tells what comes `then`, and where several say no more than where or when, such
    as `in CI, …`: of those it cannot be told what they go with.
    """
    matters = _circumstances(older) >= _SEVERAL or any(t.key in _SEQUENCE for t in older.tokens)
    return matters and _order(older) != _order(newer)


def _circumstances(reading: Reading) -> int:
    return sum(clause[0].key in _LEADERS for clause in reading.clauses)


def _order(reading: Reading) -> list[frozenset[str]]:
    found = [frozenset(t.key for t in clause if t.has_content) for clause in reading.clauses]
    return [bag for bag in found if bag]
