"""The terminal that a command prints to: its width, its colours, and text made to fit.

On a terminal, memories stand in columns, in colour, cut to its width, and long answers go through a pager. A pipe
gets whole lines without colour, for other programs; so does a terminal with `--plain`. `NO_COLOR` takes the colour
away and leaves the columns.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_STYLES = {
    "bold": "1", "dim": "2", "struck": "2;9", "match": "1;33", "warning": "33", "bad": "31", "good": "32",
}  # fmt: skip
_KIND_STYLES = {
    "decision": "35", "instruction": "34", "preference": "34", "fix": "32", "failure": "31",
    "change": "36", "discovery": "33", "fact": "33", "task": "95", "note": "37", "session": "2",
}  # fmt: skip
_WIDTH_MIN = 40
_PAGER, _PAGER_FLAGS = "less", "FRX"
"""Leave at once what fits on the screen, keep colours, and leave the text there afterwards."""
_QUESTION_WORDS = frozenset(
    """about and are did does for from has have how into not our should that the their them then there this was were what
    when where which who why will with you your""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_WORD = re.compile(r"\w[\w.-]*\w")
_PREFIX_FROM, _LONG_FROM = 5, 7
"""Letters from which on a word may end otherwise by one letter, and by two."""


class Screen(NamedTuple):
    """The terminal or file that a command prints to."""

    width: int = 100
    is_terminal: bool = False
    """Whether to print columns for people."""
    has_color: bool = False

    def paint(self, text: str, style: str) -> str:
        """A text in a style by name, or by its numbers in the terminal's own code."""
        if not self.has_color or not text or not style:
            return text
        return f"\x1b[{_STYLES.get(style, style)}m{text}\x1b[0m"

    def paint_kind(self, kind: str, text: str) -> str:
        """A text in the colour of a kind."""
        return self.paint(text, _KIND_STYLES.get(kind, ""))

    def paint_matches(self, text: str, words: re.Pattern[str] | None, style: str = "") -> str:
        """A text in a style, with what matches `words` marked."""
        if words is None or not self.has_color:
            return self.paint(text, style)
        end, painted = 0, ""
        for found in words.finditer(text):
            painted += self.paint(text[end : found.start()], style) + self.paint(found[0], "match")
            end = found.end()
        return painted + self.paint(text[end:], style)


def find_screen(environ: Mapping[str, str] = os.environ) -> Screen:
    """The screen of standard output."""
    if not sys.stdout.isatty() or environ.get("MEMD_PLAIN"):
        return Screen()
    width = max(_measure_terminal().columns, _WIDTH_MIN)
    has_color = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Screen(width, is_terminal=True, has_color=has_color)


def show(lines: Iterable[str], screen: Screen, environ: Mapping[str, str] = os.environ) -> None:
    """Print lines, through a pager where they are more than the terminal has."""
    text = "\n".join(lines)
    is_long = screen.is_terminal and text.count("\n") >= _measure_terminal().lines - 1
    if not (is_long and _show_in_pager(text, environ)):
        print(text)


def _measure_terminal() -> os.terminal_size:
    import shutil  # only now: `memd status` runs in health checks and loads little

    return shutil.get_terminal_size()


def _show_in_pager(text: str, environ: Mapping[str, str]) -> bool:
    """Show the text in a pager; return whether that worked."""
    import shlex
    import subprocess

    pager = environ.get("MEMD_PAGER", environ.get("PAGER", _PAGER))
    if pager in {"", "cat"}:
        return False
    try:
        subprocess.run(  # noqa: S603  # the user's own pager
            shlex.split(pager), input=text + "\n", text=True, check=False, errors="replace",
            env={"LESS": _PAGER_FLAGS, "LESSCHARSET": "utf-8", **environ},
        )  # fmt: skip
    except (OSError, ValueError):
        return False
    return True


# ── Text that fits ───────────────────────────────────────────────────────────────────────────────


def measure(text: str) -> int:
    """The columns that a text takes: two for each wide character, none for a mark above another."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def cut(text: str, width: int) -> str:
    """A text of at most this many columns; `…` stands for what is missing."""
    if measure(text) <= width:
        return text
    kept = text[: max(width - 1, 0)]
    while kept and measure(kept) > width - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrap(text: str, width: int, lines_max: int | None = None) -> Iterator[str]:
    """A text in lines of at most this many columns; the last of `lines_max` ends in `…` if there is more."""
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and measure(lines[-1]) + measure(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    if lines_max is not None and len(lines) > lines_max:
        lines[lines_max - 1] = cut(f"{lines[lines_max - 1]} …", width)
    yield from (cut(line, width) for line in lines[:lines_max] if line)


def match_words(question: str) -> re.Pattern[str] | None:
    """Make the pattern that marks a question's words in their forms; None if it has only stop words."""
    words = {word.lower() for word in _WORD.findall(question)} - _QUESTION_WORDS
    forms = sorted(map(_match_forms, words), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})", re.IGNORECASE) if forms else None


def _match_forms(word: str) -> str:
    if not word.isalpha() or len(word) < _PREFIX_FROM:
        return rf"{re.escape(word)}(?!\w)"
    ending = 1 if len(word) < _LONG_FROM else 2
    return rf"{re.escape(word[:-ending])}\w*"
