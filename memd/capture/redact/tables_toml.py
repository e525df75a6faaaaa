"""read_tables(): the tables of this package that are TOML files of one form, read without `tomllib`. Pure but for the read.

`tomllib` would cost the hook 10 ms. A line is a table's name, a comment, or `key = value`; a value is `'text'`,
`true`, a number or a list of texts, on one line. A test holds the files to what `tomllib` reads.
"""

import os
from typing import Any

_FOLDER = os.path.dirname(__file__)  # noqa: PTH120  # pathlib costs the hook 8 ms


def read_tables(name: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a file beside this module, in its order."""
    tables: dict[str, dict[str, Any]] = {}
    table: dict[str, Any] = {}
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123  # as above
        for line in file:
            if line[0] == "[":
                table = tables[line.strip()[1:-1]] = {}
            elif line[0] not in "#\n":
                key, _, value = line.rstrip().partition(" = ")
                table[key] = _read_value(value)
    return tables


def _read_value(value: str) -> Any:
    if value[0] == "'":
        return value[1:-1]
    if value[0] == "[":
        return tuple(value[2:-2].split("', '"))
    return True if value == "true" else int(value)


def read_words(name: str) -> list[str]:
    """Return the words of a file beside this module, without the lines of its comment."""
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123  # as above
        return " ".join(line for line in file if line[0] != "#").split()
