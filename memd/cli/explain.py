"""What `memd search --explain` draws: every candidate with its ranks, its score's parts as a bar, its fate.

A bar has one letter per share of the score: `llllvss` is much of l, a little of v and some of s. What
is no share stands between, with its number: `×0.83r` multiplies by it, `−0.20l` takes it away, `≤1.00p`
is a ceiling. The legend tells which letter is what. Loaded only when somebody asks for it: rich takes
longer to import than an answer takes.
"""

import string
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memd.cli import output

CELLS = 24
"""How long the longest bar is, in letters."""
BAR_MAX, VERDICT_MAX, TITLE_MIN = 44, 24, 20
PIPED_WIDTH = 140
_LEGS = ("topic", "lexical", "vector", "learned")
_STYLES = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")
_NOTHING = 0.005
"""A factor so near to 1 is written 1.00: it is left out."""
_SIGNS = {"*": "×", "<": "≤"}

Row = Mapping[str, Any]


def draw(answer: Row, console: Console | None = None) -> None:
    """Print the table of all candidates and the legend of its bars."""
    out = console or Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else PIPED_WIDTH,
        highlight=False,
        markup=False,
    )
    rows = answer.get("trace", ())
    out.print(
        f"profile {answer['profile']}, space {answer['space']}, {answer['took_ms']:.1f} ms, "
        + output.plural(answer["candidates"], "candidate")
    )
    if not rows:
        return
    letters = lettered([part["name"] for row in rows for part in row["parts"]])
    out.print(_table(rows, letters, out.width))
    legend = Text("  ").join(
        Text(f"{letter} {name}", _style(letter, letters)) for name, letter in letters.items()
    )
    out.print(legend)


def lettered(names: Sequence[str]) -> dict[str, str]:
    """A letter for each name, in order of appearance: one of its own if that is still free."""
    letters: dict[str, str] = {}
    for name in dict.fromkeys(names):
        wanted = [*name.lower(), *name.upper(), *string.ascii_letters, *string.digits]
        free = (one for one in wanted if one.isalnum() and one not in letters.values())
        letters[name] = next(free, "?")
    return letters


def _style(letter: str, letters: Mapping[str, str]) -> str:
    return _STYLES[list(letters.values()).index(letter) % len(_STYLES)]


def _table(rows: Sequence[Row], letters: Mapping[str, str], width: int) -> Table:
    """A row a candidate. Titles take what room the rest leaves, for rich would take it from the rest."""
    legs = [leg for leg in _LEGS if any(leg in row["ranks"] for row in rows)]
    longest = max((_added(row["parts"]) for row in rows), default=0.0)
    bars = [bar(row["parts"], letters, longest) for row in rows]
    numbers = [_numbers(row, legs) for row in rows]
    headings = ("id", *legs, "cosine", "score")
    widths = [max(map(len, column)) for column in zip(headings, *numbers, strict=True)]
    drawn = min(max(CELLS, *(len(one) for one in bars)), BAR_MAX)
    said = min(max(len(row["verdict"]) for row in rows), VERDICT_MAX)
    left = width - sum(widths) - drawn - max(said, len("verdict")) - 2 * (len(widths) + 4)

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, cells in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right", no_wrap=True, min_width=cells)
    table.add_column("made of", width=drawn)
    table.add_column("verdict", width=max(said, len("verdict")))
    table.add_column(
        "memory", no_wrap=True, overflow="ellipsis", max_width=max(left, TITLE_MIN)
    )
    for row, figures, shares in zip(rows, numbers, bars, strict=True):
        style = "bold" if row["verdict"].partition(";")[0] == "hit" else "dim"
        verdict, title = output.line(row["verdict"]), output.line(row["title"])
        table.add_row(*figures, shares, Text(verdict, style), Text(title))
    return table


def _numbers(row: Row, legs: Sequence[str]) -> tuple[str, ...]:
    cosine = row["cosine"]
    return (
        f"#{row['summary_id']}",
        *(str(row["ranks"].get(leg, "–")) for leg in legs),
        "–" if cosine is None else f"{cosine:.3f}",
        f"{row['score']:.4g}",
    )


def _added(parts: Sequence[Row]) -> float:
    """What the shares of a score come to before anything multiplies them."""
    return sum(
        float(part["value"]) for part in parts if part["op"] == "+" and part["value"] > 0
    )


def bar(parts: Sequence[Row], letters: Mapping[str, str], longest: float) -> Text:
    """A score's parts in order: letters for shares, numbers for the rest; `longest` fills 24 cells.

    Where a share ends is rounded, not how long it is, so that the bar is as long as all of them.
    """
    drawn = Text()
    done, cells = 0.0, 0
    for part in parts:
        letter, value = letters[part["name"]], float(part["value"])
        style = _style(letter, letters)
        if part["op"] == "+" and value >= 0:
            done += value
            stop = round(CELLS * done / longest) if longest > 0 else 0
            drawn.append(letter * (stop - cells), style)
            cells = stop
        elif part["op"] == "+":
            drawn.append(f" −{-value:.2f}{letter} ", style)
        elif not (part["op"] == "*" and abs(value - 1) < _NOTHING):
            drawn.append(f" {_SIGNS[part['op']]}{value:.2f}{letter} ", style)
    drawn.rstrip()
    return drawn
