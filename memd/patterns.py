"""Regular expressions that are compiled when first used, and the tables of words, patterns and weights beside the code.

memd has hundreds of patterns, and a start waits for none.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memd.caches import cached

if TYPE_CHECKING:
    import regex


class _LazyPattern:
    """Stands for `re.compile(pattern, flags)`; its methods take the place of `__getattr__` one by one."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compile(), name)
        setattr(self, name, value)  # the next use finds it as fast as in a compiled pattern
        return value

    def _compile(self) -> Any:
        return re.compile(self.pattern, self._given_flags)


class _LazyUnicodePattern(_LazyPattern):
    """The same for `regex.compile(pattern)`."""

    def _compile(self) -> Any:
        import regex  # noqa: PLC0415  # two megabytes, for what most daemons are never asked

        return regex.compile(self.pattern, self._given_flags)


def compile_lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` at the first use of a method. Not for `re.sub(compiled, …)` and the like."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def compile_unicode_lazily(pattern: str) -> "regex.Pattern[str]":
    r"""`regex.compile` at the first use of a method, which also imports `regex`: it knows `\p{…}`."""
    return cast("regex.Pattern[str]", _LazyUnicodePattern(pattern, 0))


def split_words(words: str) -> frozenset[str]:
    """Return the words of an entry."""
    return frozenset(words.split())


@cache
def _read_rows(file: str) -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / file).read_text(encoding="utf-8"))


_PART = re.compile(r"\{([A-Z]+)\}")


class Table:
    """A file of words and patterns, read at first use.

    A pattern is a list of alternatives; `{NAME}` in one stands for the part of that name.
    """

    def __init__(self, file: str) -> None:
        """`file`: its path within the package."""
        self._file = file

    @property
    def rows(self) -> Mapping[str, Any]:
        """All of it."""
        return _read_rows(self._file)

    @cache  # noqa: B019  # a table lives as long as the program
    def list_words(self, name: str) -> frozenset[str]:
        """Return the words of a list."""
        return split_words(self.rows["words"][name])

    @cache  # noqa: B019  # as above
    def list_patterns(self, name: str) -> tuple[re.Pattern[str], ...]:
        """Return the alternatives of a pattern, each for itself; they begin and end with lines."""
        return tuple(re.compile(one, re.MULTILINE) for one in self._read_alternatives(name))

    @cache  # noqa: B019  # as above
    def __getitem__(self, name: str) -> re.Pattern[str]:
        """The pattern of this name."""
        return self.read_pattern(name, 0)

    def compile(self, name: str, flags: int = 0) -> re.Pattern[str]:
        """Return the pattern of this name, which is read at the first use of a method."""
        return cast("re.Pattern[str]", _ListedPattern(self, name, flags))

    def read_pattern(self, name: str, flags: int) -> re.Pattern[str]:
        """Compile the pattern of this name."""
        return re.compile("|".join(self._read_alternatives(name)), flags)

    def _read_alternatives(self, name: str) -> list[str]:
        return [self.insert_parts(one) for one in self.rows["patterns"][name]]

    def insert_parts(self, text: str) -> str:
        """Return a pattern with the table's parts for their names."""
        parts = self.rows.get("parts", {})
        return _PART.sub(
            lambda name: self.insert_parts(parts[name[1]]) if name[1] in parts else name[0], text
        )


class _ListedPattern(_LazyPattern):
    """The same for a pattern of a table."""

    def __init__(self, table: Table, name: str, flags: int) -> None:
        super().__init__(name, flags)
        self._table = table

    def _compile(self) -> Any:
        return self._table.read_pattern(self.pattern, self._given_flags)


_FILES = 8


@cached(_FILES)
def read_weights(package: str, name: str, part: str = "") -> Mapping[str, float]:
    """Read the weights in a package's file, or in a part of that file."""
    content = json.loads((resources.files(package) / name).read_text(encoding="utf-8"))
    weights: Mapping[str, float] = (content[part] if part else content)["weights"]
    return weights


def weigh(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """The logarithm of the odds; a feature that was too rare to have a weight counts nothing."""
    return weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in features.items())


def list_runs(mark: str, tokens: Sequence[str]) -> Iterator[str]:
    """Yield the names of the features of a text's words: each word, and each two that follow each other, behind a mark."""
    pairs = (" ".join(pair) for pair in itertools.pairwise(tokens))
    return (mark + one for one in itertools.chain(tokens, pairs))
