"""A generated corpus: Zipfian words, realistic identifiers, sessions over a year; the same for the same seed."""

import itertools
import random
from collections.abc import Iterator

DAY_MS = 86_400_000
_VERBS = """
add fix move raise drop retry cache parse render lock flush merge split trace guard rename
""".split()  # noqa: SIM905  # a list has a line per word
_NOUNS = """
session token login cache queue worker socket timeout retry index schema migration test build deploy release config
secret header cookie route handler buffer stream thread pool lock file path report invoice ledger account user customer
rate limit window error log trace metric chart page form
""".split()  # noqa: SIM905  # a list has a line per word
_QUESTIONS = ("why did the", "where do we keep the", "how should", "what happened to", "did we")
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
        self.words = [*_NOUNS, *_VERBS, *(_word(i) for i in range(vocabulary))]
        weights = (1 / (rank + 3) for rank in range(len(self.words)))
        self._cumulative = list(itertools.accumulate(weights))

    def _choose_words(self, count: int) -> list[str]:
        return self._random.choices(self.words, cum_weights=self._cumulative, k=count)

    def identifier(self) -> str:
        """A name as in code, in snake_case or camelCase."""
        parts = self._random.sample(_VERBS, 1) + self._random.sample(_NOUNS, 2)
        camel = parts[0] + "".join(part.title() for part in parts[1:])
        return self._random.choice(("_".join(parts), camel))

    def memories(self, count: int, now: int) -> Iterator[dict[str, object]]:
        """`count` memories of some 60 words, eight to a session, spread over the year before `now`."""
        chance = self._random
        for i in range(count):
            words = self._choose_words(52)
            for _ in range(3):
                words.insert(chance.randrange(len(words)), self.identifier())
            words.insert(chance.randrange(len(words)), f"{chance.choice(_NOUNS)}.py")
            title = [chance.choice(_VERBS), *self._choose_words(4), self.identifier()]
            seen = f"Seen {chance.randrange(1000)} times."
            yield {
                "title": " ".join(title).capitalize(),
                "text": f"{' '.join(words).capitalize()}. {seen}",
                "kind": chance.choice(_KINDS),
                "at": now - (count - i) * 365 * DAY_MS // max(count, 1),
                "session": f"session-{i // 8}",
                "source": "bench",
            }

    def questions(self, count: int) -> list[str]:
        """Natural questions of 3 to 12 words, common ones among them."""
        chance = self._random
        return [
            " ".join(
                [
                    chance.choice(_QUESTIONS),
                    *self._choose_words(chance.randint(1, 7)),
                    chance.choice(_NOUNS),
                ]
            )
            for _ in range(count)
        ]
