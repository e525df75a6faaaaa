"""Draw the trace of a search: every candidate with its ranks, its score as a bar, and its verdict.

A bar has one letter per share of the score: `llllvss` is mostly l, some v and some s. What is not a share
stands between them with its number: `×0.83r` multiplies by r, `−0.20l` subtracts l, `≤1.00p` is an upper
limit. A legend names the letters. A module of its own, because rich takes longer to load than a search.
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

BAR_LETTERS = 24
"""Letters of shares in the longest bar."""
PIPED_WIDTH = 140
"""Columns of the table where there is no terminal."""
_BAR_COLUMNS_MAX, _VERDICT_COLUMNS_MAX, _TITLE_COLUMNS_MIN = 44, 24, 20
_RETRIEVERS = ("topic", "lexical", "vector", "learned")
_STYLES = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")
_FACTOR_MIN = 0.005
"""A factor nearer to 1 than this would read 1.00: it is left out."""
_SIGNS = {"*": "×", "<": "≤"}

Candidate = Mapping[str, Any]


def print_trace(answer: Candidate, console: Console | None = None) -> None:
    """Print a table of all candidates and the legend of its bars."""
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
    letters = choose_letters([part["name"] for row in rows for part in row["parts"]])
    out.print(_build_table(rows, letters, out.width))
    legend = Text("  ").join(
        Text(f"{letter} {name}", _letter_style(letter, letters)) for name, letter in letters.items()
    )
    out.print(legend)


def choose_letters(names: Sequence[str]) -> dict[str, str]:
    """Choose a letter for each name, in order: one from the name if that is still free."""
    letters: dict[str, str] = {}
    for name in dict.fromkeys(names):
        wanted = [*name.lower(), *name.upper(), *string.ascii_letters, *string.digits]
        free = (letter for letter in wanted if letter.isalnum() and letter not in letters.values())
        letters[name] = next(free, "?")
    return letters


def _letter_style(letter: str, letters: Mapping[str, str]) -> str:
    return _STYLES[list(letters.values()).index(letter) % len(_STYLES)]


def _build_table(rows: Sequence[Candidate], letters: Mapping[str, str], width: int) -> Table:
    """Build a row per candidate; a title gets the columns that the others leave."""
    retrievers = [name for name in _RETRIEVERS if any(name in row["ranks"] for row in rows)]
    # The shares of a score, before anything multiplies them.
    added = [[float(part["value"]) for part in row["parts"] if part["op"] == "+"] for row in rows]
    longest = max((sum(value for value in row if value > 0) for row in added), default=0.0)
    bars = [format_bar(row["parts"], letters, longest) for row in rows]
    numbers = [_format_figures(row, retrievers) for row in rows]
    headings = ("id", *retrievers, "cosine", "score")
    widths = [max(map(len, column)) for column in zip(headings, *numbers, strict=True)]
    bar_width = min(max(BAR_LETTERS, *map(len, bars)), _BAR_COLUMNS_MAX)
    longest_verdict = min(max(len(row["verdict"]) for row in rows), _VERDICT_COLUMNS_MAX)
    verdict_width = max(longest_verdict, len("verdict"))
    left = width - sum(widths) - bar_width - verdict_width - 2 * (len(widths) + 4)

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, columns in zip(headings, widths, strict=True):
        table.add_column(heading, justify="right", no_wrap=True, min_width=columns)
    table.add_column("made of", width=bar_width)
    table.add_column("verdict", width=verdict_width)
    table.add_column(
        "memory", no_wrap=True, overflow="ellipsis", max_width=max(left, _TITLE_COLUMNS_MIN)
    )
    for row, figures, shares in zip(rows, numbers, bars, strict=True):
        style = "bold" if row["verdict"].partition(";")[0] == "hit" else "dim"
        verdict, title = output.one_line(row["verdict"]), output.one_line(row["title"])
        table.add_row(*figures, shares, Text(verdict, style), Text(title))
    return table


def _format_figures(row: Candidate, retrievers: Sequence[str]) -> tuple[str, ...]:
    cosine = row["cosine"]
    return (
        f"#{row['summary_id']}",
        *(str(row["ranks"].get(name, "–")) for name in retrievers),
        "–" if cosine is None else f"{cosine:.3f}",
        f"{row['score']:.4g}",
    )


def format_bar(parts: Sequence[Candidate], letters: Mapping[str, str], longest: float) -> Text:
    """Format a score's parts in order: letters for shares, numbers for the rest; a sum of `longest` fills the bar.

    The end of each share is rounded, not its length, so that rounding errors do not add up.
    """
    bar = Text()
    total, letters_drawn = 0.0, 0
    for part in parts:
        letter, value = letters[part["name"]], float(part["value"])
        style = _letter_style(letter, letters)
        if part["op"] == "+" and value >= 0:
            total += value
            stop = round(BAR_LETTERS * total / longest) if longest > 0 else 0
            bar.append(letter * (stop - letters_drawn), style)
            letters_drawn = stop
        elif part["op"] == "+":
            bar.append(f" −{-value:.2f}{letter} ", style)
        elif not (part["op"] == "*" and abs(value - 1) < _FACTOR_MIN):
            bar.append(f" {_SIGNS[part['op']]}{value:.2f}{letter} ", style)
    bar.rstrip()
    return bar
