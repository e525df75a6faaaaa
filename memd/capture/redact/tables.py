"""Passwords in the columns and rows of tables: Markdown, CSV, a database client's output, INSERT. Pure.

A header cell that names a secret condemns what stands below it; a first cell that does, the cell after it. Tables
also describe fields (`| password | string |`), so a cell goes only if it looks like a secret by itself.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

from memd.capture.redact.names import is_likely_secret, is_naming
from memd.capture.redact.tokens import compile_regex, find_all, find_beginning

RULE = "table-cell"
_HEADER_NAMES = (
    "pass",
    "pw",
    "secret",
    "token",
    "key",
    "senha",
    "contrase",
    "kennwort",
    "密码",
    "пароль",
)
TABLE_NEEDLES = _HEADER_NAMES
"""What `redact_tables` searches for in the words of a text."""
_BARE_HEADER = r" ?\w{1,40}(?: {0,40}\| {0,40}\w{1,40}){1,40} {0,40}\r?\n?\Z"
_HEADER_CELL = r"[\w .()/#-]{0,40}"
_VALUES = (
    r"(?i:\binsert\s{1,4}into\s{1,4}[\w.\"`\[\]]{1,80}\s{0,4}\((?P<names>[^()]{1,400})\)\s{0,9}values\s{0,9})"
    r"(?P<rows>\((?:[^()'\"]|'[^'\n]{0,400}'|\"[^\"\n]{0,400}\"){0,1000}\)"
    r"(?:\s{0,9},\s{0,9}\((?:[^()'\"]|'[^'\n]{0,400}'|\"[^\"\n]{0,400}\"){0,1000}\)){0,50})"
)
_ROW = r"\((?:[^()'\"]|'[^'\n]*'|\"[^\"\n]*\")*\)"
_QUOTED_CELL = r"\s*(?:'(?:[^'\n])*'|\"(?:[^\"\n])*\"|[^,'\"]*)\s*"
_MARKUP = " \t\"'`*_"
_LINE_MAX = 2_000
_ROWS_MAX = 500
_HEADER_CELLS_MAX = 60
_SIGNS = ("|", "\t", ";", ",", "  ")
_Span = tuple[int, int]


class _Header(NamedTuple):
    """A line that names a secret in a cell."""

    sign: str
    """What separates the cells."""
    width: int
    columns: list[int]
    """Columns that hold secrets; none if the line is no header."""
    beside: _Span | None
    """The cell after the name, in a table of names and values."""


def redact_tables(text: str, signs: Container[str]) -> str:
    """Redact cells that belong to a column or a row named like a secret.

    `signs`: which of `TABLE_NEEDLES` are in its words in lower case.
    """
    lowered = text.lower()
    spans: list[_Span] = []
    if "|" in text or "\n" in text:
        names = [word for word in _HEADER_NAMES if word in signs]
        if names:
            spans += _find_in_lines(text, lowered, names)
    if "insert" in lowered:
        spans += _find_inserted(text, lowered)
    if not spans:
        return text
    kept: list[str] = []
    done = 0
    for start, end in sorted(set(spans)):
        if start >= done:
            kept += [text[done:start], f"[REDACTED:{RULE}]"]
            done = end
    return "".join((*kept, text[done:])) if kept else text


def _find_in_lines(text: str, lowered: str, words: list[str]) -> Iterator[_Span]:
    """Yield the cells below a header and those beside a name."""
    if len(lowered) != len(text):  # a few letters grow when lowered
        lowered = text
    done = table = 0  # where the line of the last name ends, and the rows below the last header
    for at in sorted(at for word in words for at in find_all(word, lowered)):
        if at < done:
            continue
        start = text.rfind("\n", 0, at) + 1
        done = _line_end(text, at)
        if done - start > _LINE_MAX:
            continue
        header = _read_header(text[start:done])
        if header is None:
            continue
        if header.beside is not None:
            yield from _pick(text, start, [header.beside])
        if header.columns and start >= table:
            for row, end in _find_rows(text, done, header):
                yield from row
                table = end


def _line_end(text: str, at: int) -> int:
    """Where the line ends, its line break included."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _read_header(line: str) -> _Header | None:
    """Return what a line says about the cells below and beside it; None if it names no secret."""
    for sign in _SIGNS:
        if sign not in line.strip():
            continue
        if not _may_be_header(line, sign):
            continue
        cells = _split_cells(line, sign)
        names = [line[a:b].strip(_MARKUP) for a, b in cells]
        found = [n for n, name in enumerate(names) if name and is_naming(name)]
        if not found or not 1 < len(cells) <= _HEADER_CELLS_MAX:
            continue
        follows = sign == "|" and found[0] + 1 < len(cells)
        is_header = all(compile_regex(_HEADER_CELL).fullmatch(name) for name in names)
        return _Header(
            sign, len(cells), found if is_header else [], cells[found[0] + 1] if follows else None
        )
    return None


def _may_be_header(line: str, sign: str) -> bool:
    """Whether this is no line of code: lists and regular expressions have commas and bars, too."""
    if sign == "|":
        return (
            line.lstrip(" \t>").startswith("|")
            or compile_regex(_BARE_HEADER).match(line) is not None
        )
    if sign in {",", ";"}:
        return not line[:1].isspace() and f"{sign} " not in line and line.rstrip()[-1:] != sign
    return True


def _find_rows(text: str, at: int, header: _Header) -> Iterator[tuple[Iterator[_Span], int]]:
    """Yield the cells of a header's columns in each row of as many cells below it, and where the row ends."""
    for _ in range(_ROWS_MAX):
        start, at = at, _line_end(text, at)
        line = text[start:at]
        if not line or len(line) > _LINE_MAX:
            return
        if _is_rule(line):
            continue
        cells = _split_cells(line, header.sign)
        if len(cells) != header.width:
            return
        yield _pick(text, start, [cells[n] for n in header.columns]), at


def _split_cells(line: str, sign: str) -> list[_Span]:
    """Return where the cells of a line are; a sign within quotes does not split them."""
    body = line.rstrip("\r\n")
    if sign == "  ":
        return [found.span() for found in compile_regex(r"\S+(?: \S+)*").finditer(body)]
    cells: list[_Span] = []
    start, quoted = 0, False
    for at, character in enumerate(body):
        if character == '"' and sign != "|":
            quoted = not quoted
        elif character == sign and not quoted:
            cells.append((start, at))
            start = at + 1
    return [*cells, (start, len(body))]


def _is_rule(line: str) -> bool:
    """`|---|---|`, `+-----+`: drawn, not written."""
    return not line.strip(" \t\r\n|+-:=─┼│┌┐└┘├┤┬┴")


def _pick(text: str, offset: int, cells: list[_Span]) -> Iterator[_Span]:
    """Yield those of a line's cells that look like secrets, without what surrounds the value."""
    for start, end in cells:
        a, b = offset + start, offset + end
        while a < b and text[a] in _MARKUP:
            a += 1
        while b > a and text[b - 1] in _MARKUP:
            b -= 1
        if is_likely_secret(text[a:b]):
            yield a, b


def _find_inserted(text: str, lowered: str) -> Iterator[_Span]:
    """Yield the values of INSERT for columns that are named like secrets."""
    for found in find_beginning(compile_regex(_VALUES), ["insert"], text, lowered):
        names = [name.strip(" \t\n\"'`[]") for name in found["names"].split(",")]
        columns = [n for n, name in enumerate(names) if is_naming(name)]
        if not columns:
            continue
        for row in compile_regex(_ROW).finditer(text, *found.span("rows")):
            cells: list[_Span] = []
            at = row.start() + 1
            while at < row.end() - 1 and len(cells) < len(names):
                cell = compile_regex(_QUOTED_CELL).match(text, at, row.end() - 1)
                if cell is None:
                    break
                cells.append((cell.start(), cell.end()))
                at = cell.end() + 1
            yield from _pick(text, 0, [cells[n] for n in columns if n < len(cells)])
