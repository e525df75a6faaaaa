"""Make a set for `scripts/bench retrieval` of 200 questions with misspelt words, over the documents of another set.

    PYTHONPATH=scripts python -m benchmarks.misspelt FILE SET

FILE is of JSON lines, as `scripts/bench retrieval` reads them; its documents have titles. A question is three rare words
of a title, or an identifier and one word; each is spelt wrong. Fifty each: a letter dropped, doubled, changed or two swapped in
each word; the same in the identifier; a word split in two; two neighbouring words written as one.
"""

import json
import random
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

EACH = 50
SEED = 35
_WORD = re.compile(r"[^\W\d_]{5,}")
_IDENTIFIER = re.compile(r"\b(?=\w*[a-z])(?:\w+(?:[_.]\w+)+|[A-Za-z]+[a-z][A-Z]\w*)\b")
_WORDS = 3


def misspell(word: str, chance: random.Random) -> str:
    """Make one slip of the hand in a word, behind its first letter."""
    at = chance.randrange(1, len(word) - 1)
    letter = chance.choice([one for one in string.ascii_lowercase if one != word[at].lower()])
    slips = [
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + letter + word[at + 1 :],
    ]
    if word[at] != word[at + 1]:
        slips.append(word[:at] + word[at + 1] + word[at] + word[at + 2 :])
    return chance.choice(slips)


def _misspell_words(_title: str, rare: Sequence[str], chance: random.Random) -> str | None:
    return " ".join(misspell(word, chance) for word in rare) if len(rare) == _WORDS else None


def _misspell_identifier(title: str, rare: Sequence[str], chance: random.Random) -> str | None:
    found = _IDENTIFIER.search(title)
    beside = [word for word in rare if found and word not in found[0].lower()][:1]
    return (
        f"{misspell(found[0], chance)} {misspell(beside[0], chance)}" if found and beside else None
    )


def _split_word(_title: str, rare: Sequence[str], chance: random.Random) -> str | None:
    longest = max(rare, key=len, default="")
    if len(longest) < 8 or len(rare) < _WORDS:  # noqa: PLR2004  # halves of a shorter one are words of their own
        return None
    at = chance.randrange(4, len(longest) - 3)
    others = [misspell(word, chance) for word in rare if word != longest]
    return " ".join([longest[:at], longest[at:], *others[:1]])


def _join_words(title: str, rare: Sequence[str], chance: random.Random) -> str | None:
    pairs = re.findall(r"(?=\b([^\W\d_]{4,}) ([^\W\d_]{4,})\b)", title)
    pairs = [pair for pair in pairs if {word.lower() for word in pair} & set(rare)]
    if not pairs:
        return None
    pair = chance.choice(pairs)
    beside = [word for word in rare if word not in " ".join(pair).lower()][:1]
    return (
        " ".join(["".join(pair).lower(), *(misspell(word, chance) for word in beside)])
        if beside
        else None
    )


SORTS: dict[str, Callable[[str, Sequence[str], random.Random], str | None]] = {
    "misspelt": _misspell_words,
    "identifier": _misspell_identifier,
    "split": _split_word,
    "joined": _join_words,
}


def make_questions(documents: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield questions with the documents that they ask for; each document is asked for once."""
    chance = random.Random(SEED)
    titles = Counter(one.get("title", "") for one in documents)
    common = Counter(word for title in titles for word in {w.lower() for w in _WORD.findall(title)})
    asked_at = max(one["ts"] for one in documents) + 1
    waiting = [one for one in documents if titles[one.get("title", "")] == 1 and one.get("title")]
    chance.shuffle(waiting)
    left = dict.fromkeys(SORTS, EACH)
    for one in waiting:
        words = list(dict.fromkeys(word.lower() for word in _WORD.findall(one["title"])))
        rare = sorted(words, key=lambda word: common[word])[:_WORDS]
        # The sort of which fewest are there first: few titles have an identifier.
        for sort in sorted((s for s in left if left[s]), key=lambda s: s != "identifier"):
            if question := SORTS[sort](one["title"], rare, chance):
                left[sort] -= 1
                yield {
                    "corpus": one["corpus"],
                    "query": question,
                    "gold": [one["doc"]],
                    "ts": asked_at,
                    "type": sort,
                }
                break


def main(source: str, target: str) -> None:
    """Write the documents of a set and the questions to a new one."""
    lines = [json.loads(line) for line in Path(source).read_text(encoding="utf-8").splitlines()]
    documents = [line for line in lines if "doc" in line]
    questions = list(make_questions(documents))
    every = [*documents, *questions]
    Path(target).write_text("".join(json.dumps(one) + "\n" for one in every), encoding="utf-8")
    print(Counter(one["type"] for one in questions))


if __name__ == "__main__":
    main(*sys.argv[1:])
