"""A made-up corpus for the benches: Zipfian words, real-looking identifiers, sessions over a year.

Deterministic for a seed. Not here: any measured text of anybody.
"""

import random
from collections.abc import Iterator

DAY_MS = 86_400_000
_VERBS = [
    "add",
    "fix",
    "move",
    "raise",
    "drop",
    "retry",
    "cache",
    "parse",
    "render",
    "lock",
    "flush",
    "merge",
    "split",
    "trace",
    "guard",
    "rename",
]
_NOUNS = [
    "session",
    "token",
    "login",
    "cache",
    "queue",
    "worker",
    "socket",
    "timeout",
    "retry",
    "index",
    "schema",
    "migration",
    "test",
    "build",
    "deploy",
    "release",
    "config",
    "secret",
    "header",
    "cookie",
    "route",
    "handler",
    "buffer",
    "stream",
    "thread",
    "pool",
    "lock",
    "file",
    "path",
    "report",
    "invoice",
    "ledger",
    "account",
    "user",
    "customer",
    "rate",
    "limit",
    "window",
    "error",
    "log",
    "trace",
    "metric",
    "chart",
    "page",
    "form",
]
_KINDS = ("change", "discovery", "decision", "fix", "failure", "note", "instruction", "fact")


def _word(rank: int) -> str:
    """A pronounceable word for a rank of the Zipf distribution."""
    consonants, vowels = "bdfgklmnprstvz", "aeiou"
    letters = []
    number = rank + 27
    while number:
        number, c = divmod(number, len(consonants))
        number, v = divmod(number, len(vowels))
        letters.append(consonants[c] + vowels[v])
    return "".join(letters)


class Corpus:
    """Memories and questions about them."""

    def __init__(self, seed: int = 7, vocabulary: int = 20_000) -> None:
        self._random = random.Random(seed)
        self._words = [*_NOUNS, *_VERBS, *(_word(i) for i in range(vocabulary))]
        self._weights = [1 / (rank + 3) for rank in range(len(self._words))]
        self._cumulative = []
        total = 0.0
        for weight in self._weights:
            total += weight
            self._cumulative.append(total)

    def _some(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._cumulative, k=count)

    def _identifier(self) -> str:
        parts = self._random.sample(_VERBS, 1) + self._random.sample(_NOUNS, 2)
        return self._random.choice(
            ("_".join(parts), parts[0] + "".join(p.title() for p in parts[1:]))
        )

    def memories(self, count: int, now: int) -> Iterator[dict[str, object]]:
        """`count` memories of some 60 words, eight to a session, spread over the year before `now`."""
        for i in range(count):
            words = self._some(52)
            for _ in range(3):
                words.insert(self._random.randrange(len(words)), self._identifier())
            words.insert(
                self._random.randrange(len(words)), f"{self._random.choice(_NOUNS)}.py"
            )
            title = " ".join([self._random.choice(_VERBS), *self._some(4), self._identifier()])
            yield {
                "title": title.capitalize(),
                "text": " ".join(words).capitalize()
                + f". Seen {self._random.randrange(1000)} times.",
                "kind": self._random.choice(_KINDS),
                "at": now - (count - i) * 365 * DAY_MS // max(count, 1),
                "session": f"session-{i // 8}",
                "source": "bench",
            }

    def questions(self, count: int) -> list[str]:
        """Natural questions of 3 to 12 words, common ones among them."""
        starts = (
            "why did the",
            "where do we keep the",
            "how should",
            "what happened to",
            "did we",
        )
        return [
            " ".join(
                [
                    self._random.choice(starts),
                    *self._some(self._random.randint(1, 7)),
                    self._random.choice(_NOUNS),
                ]
            )
            for _ in range(count)
        ]
