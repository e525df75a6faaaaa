"""Tables of syntax that stand beside the code: what tools print, how settings are written. Each is read at first use.

A pattern is a list of alternatives; `{NAME}` in one stands for the part of that name.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast


def split_words(words: str) -> frozenset[str]:
    """The words of an entry."""
    return frozenset(words.split())


class Table:
    """A file of words and patterns."""

    def __init__(self, file: str) -> None:
        """`file`: its name, as seen from this directory."""
        self._file = file

    @cached_property
    def rows(self) -> Mapping[str, Any]:
        """All of it."""
        return tomllib.loads((Path(__file__).parent / self._file).read_text(encoding="utf-8"))

    @cache  # noqa: B019  # a table lives as long as the program
    def list_words(self, name: str) -> frozenset[str]:
        """The words of a list."""
        return split_words(self.rows["words"][name])

    @cache  # noqa: B019  # as above
    def list_patterns(self, name: str) -> tuple[re.Pattern[str], ...]:
        """The alternatives of a pattern, each for itself; they begin and end with lines."""
        return tuple(re.compile(one, re.MULTILINE) for one in self._read_alternatives(name))

    @cache  # noqa: B019  # as above
    def __getitem__(self, name: str) -> re.Pattern[str]:
        """The pattern of this name."""
        return self.read_pattern(name, 0)

    def compile(self, name: str, flags: int = 0) -> re.Pattern[str]:
        """The pattern of this name, which is read at the first use of a method."""
        return cast("re.Pattern[str]", _ListedPattern(self, name, flags))

    def read_pattern(self, name: str, flags: int) -> re.Pattern[str]:
        """The pattern of this name."""
        return re.compile("|".join(self._read_alternatives(name)), flags)

    def _read_alternatives(self, name: str) -> list[str]:
        parts = self.rows.get("parts", {})
        return [
            re.sub(r"\{([A-Z]+)\}", lambda found: parts[found[1]], one)
            for one in self.rows["patterns"][name]
        ]


class _ListedPattern:
    """Stands for a pattern of a table."""

    def __init__(self, table: Table, name: str, flags: int) -> None:
        self._given = table, name, flags

    def __getattr__(self, method: str) -> Any:
        table, name, flags = self._given
        value = getattr(table.read_pattern(name, flags), method)
        setattr(self, method, value)
        return value
