"""Secrets known by where they stand: in a block, below a line, in a manifest, among numbers, in a seed phrase. Pure.

The names of `assignments` stand on the line of their value. Here they stand above it (YAML, Markdown), in another
language, or there are none: an array of 64 bytes is a key pair, twelve words after `mnemonic` are a wallet.

Blocks of several lines (`<private>`, private keys, memd's own injected context) are searched for in a whole text before it
is reduced to head and tail, so a block that crosses the cut never survives. A block without its end reaches to the end of
the text, one without its beginning starts where the text does. Injected context is recognised by its first line,
`<recalled-memory source="memd" …>` and a line break, also as JSON or HTML write it; the name alone, in prose or code, is
left. Standard library only: the hook imports it.
"""

import functools
import itertools
import re
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from memd.capture.redact.names import VOCABULARY, is_likely_secret, is_naming, is_reference
from memd.capture.redact.regexes import (
    Found,
    Reading,
    compile_regex,
    find_all,
    find_beginning,
    read_words,
)

INJECTED_TAG = "recalled-memory"
INJECTED_OPENING = f'<{INJECTED_TAG} source="memd"'
INJECTED_CLOSING = f"</{INJECTED_TAG}>"
_INJECTED_LESS, _INJECTED_MORE = r"(?:<|&lt;|\\{1,7}u003c)", r"(?:>|&gt;|\\{1,7}u003e)"
_QUOTE = r"(?:\\{0,7}\"|&quot;|&#34;|\\{1,7}u0022)"
_BLOCK = (
    rf"(?si){_INJECTED_LESS}{INJECTED_TAG} source={_QUOTE}memd{_QUOTE}[^<>\n]{{0,200}}?{_INJECTED_MORE}"
    rf"(?=[ \t]*(?:\r?\n|\\{{1,7}}n)).*?(?:{_INJECTED_LESS}/{INJECTED_TAG}{_INJECTED_MORE}|\Z)"
)


def strip_injected_context(text: str) -> str:
    """Remove the context that memd injected, so that no memory is captured again."""
    return compile_regex(_BLOCK).sub("", text) if INJECTED_TAG in text else text


_OPEN = r"(?:[<＜]|&lt;|\\{1,7}u003c)"
_CLOSE = r"(?:[>＞]|&gt;|\\{1,7}u003e)"
_TAG = rf"(?ai){_OPEN}[ \t]{{0,4}}([/／]?)[ \t]{{0,4}}private(?![\w-])[^<>＜＞\\&]{{0,400}}{_CLOSE}"
_KEY = r"-{4,5} ?(BEGIN|END) ([A-Z0-9 ]{0,40}?)(?:PRIVATE|SECRET) KEY(?: BLOCK)? ?-{4,5}"
_BODY = r"[A-Za-z0-9+/=]{20}"
_QUOTES = "\"'`"
_NEAR = 200


BLOCK_SIGNS = ("private", "secret", INJECTED_TAG)
"""What a text with such a block has in its words in lower case."""


class _BlockMark(NamedTuple):
    """The beginning or end of a block."""

    start: int
    end: int
    opens: bool
    name: str


def redact_blocks(text: str) -> str:
    """Remove `<private>` blocks, private keys and injected context. Linear in the text."""
    text = strip_injected_context(text)
    if "private" in text.lower():
        text = _replace_blocks(text, _find_private_tags(text))
    if "PRIVATE KEY" in text or "SECRET KEY" in text:
        text = _replace_blocks(text, _find_key_lines(text))
    return text


def _replace_blocks(text: str, marks: list[_BlockMark]) -> str:
    """Replace everything between balanced marks."""
    kept: list[str] = []
    done = depth = begun = 0
    name = ""
    for mark in marks:
        if mark.opens:
            if depth == 0:
                begun, name = mark.start, mark.name
            # Keys do not nest: a second beginning follows a key whose end was lost.
            depth = depth + 1 if mark.name == "private" else 1
            continue
        if depth == 0:
            kept = []
            begun, name, done = 0, mark.name, 0
        depth = max(depth - 1, 0)
        if depth == 0:
            kept += [text[done:begun], f"[REDACTED:{name}]"]
            done = mark.end
    if depth:
        kept += [text[done:begun], f"[REDACTED:{name}]"]
        done = len(text)
    return "".join((*kept, text[done:]))


def _find_private_tags(text: str) -> list[_BlockMark]:
    found = compile_regex(_TAG).finditer(text)
    return [
        _BlockMark(m.start(), m.end(), not m[1], "private")
        for m in found
        if not m[0].rstrip(">").endswith("/")
    ]


def _find_key_lines(text: str) -> list[_BlockMark]:
    found = compile_regex(_KEY).finditer(text)
    marks = [_BlockMark(m.start(), m.end(), m[1] == "BEGIN", _name_key_rule(m[2])) for m in found]
    return [mark for mark in marks if not _is_mention(text, mark)]


def _name_key_rule(words: str) -> str:
    if "PGP" in words:
        return "pgp-private-key"
    return "ssh2-private-key" if "SSH2" in words else "private-key"


def _is_mention(text: str, mark: _BlockMark) -> bool:
    """Return whether this is code that mentions such a line: in quotes, without a key beside it."""
    if mark.opens:
        beside, near = text[mark.end : mark.end + 1], text[mark.end : mark.end + _NEAR]
    else:
        beside = text[max(0, mark.start - 1) : mark.start]
        near = text[max(0, mark.start - _NEAR) : mark.start]
    return bool(beside) and beside in _QUOTES and not compile_regex(_BODY).search(near)


_ALONE = r"\n(?:[ \t]*(?:```\w{0,12})?[ \t]*\r?\n){0,2}[ \t]*[\"'`]?(?P<s>(?>[^\s\"'`]{5,512}))[\"'`]?[ \t]*(?:\r?$|\Z)"
"""A word that is alone on the line below."""
_BELOW = rf"(?m){_ALONE}"
_ABOVE = (
    r"(?m)[ \t]*(?:[-?*+>][ \t]{1,4})?[\"'`*_]{0,3}(?P<name>[\w. /-]{2,40}?)[\"'`*_]{0,3}[ \t]*"
    r"(?P<colon>[:?？]?)[*_]{0,3}[ \t]*(?:[>|]\d?[+-]?\d?|&[\w-]{1,40}|!!\w{1,12})?[ \t]*(?:#[^\n]{0,60})?\r?"
    rf"{_ALONE}"
)
_ABOVE_NAMES = ("pass", "pw", "secret", "token", "key", "kennwort", "senha", "contrase")
_NAME_TAIL_MAX = 60
_STRONG_DIGITS = 3
_MANIFEST = (
    r"(?m)^[ \t-]*[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?(?:Sealed)?Secret(?:List)?\b"
    r"|\\{0,7}\"kind\\{0,7}\"\s*:\s*\\{0,7}\"Secret\\{0,7}\""
)
_DATA = r"(?m)^(?P<indent>[ \t]*)(?:data|stringData)[ \t]*:[ \t]*\r?$\n?"
_DATA_LINE = (
    r"(?P<indent>[ \t]+)[\w.\"'/-]{1,128}[ \t]*:[ \t]*(?:[|>][+-]?[ \t]*\r?\n[ \t]+)?"
    r"[\"']?(?P<s>[^\s\"'{}]{4,8192})[\"']?[ \t]*(?:\r?\n|\Z)"
)
_DATA_OBJECT = r"\\{0,7}\"(?:data|stringData)\\{0,7}\"\s{0,4}:\s{0,4}\{(?P<body>[^{}]{1,20000})\}"
_MEMBER = r":\s{0,4}\\{0,7}\"(?P<s>[^\"\\\s]{4,8192})\\{0,7}\""
_BYTES = (
    r"[\[({]\s{0,40}(?P<s>(?:0x[0-9a-fA-F]{1,2}|\d{1,3})(?:\s{0,20},\s{0,20}(?:0x[0-9a-fA-F]{1,2}|\d{1,3})){31,63})"
    r"\s{0,20},?\s{0,40}[\])}]"
)
_NUMBER = r"0x[0-9a-fA-F]+|\d+"
_KEY_PAIR = 64
_KEY_SEED = 32
_KEY_HINT = r"(?i:secret|private|seed|key)[^\n]{0,60}\Z"
_DISTINCT_SHARE = 0.6
_BYTE_MAX = 255
_STEPS_SHARE = 0.5
_PHRASE_WORDS = ("mnemonic", "seed", "recovery", "secret", "backup", "wallet")
_PHRASE = (
    r"(?i:mnemonic|(?:seed|recovery|secret|backup|wallet)[ _-]?(?:phrase|words)"
    r"|seed(?=\\{0,3}[\"'`]?\s{0,4}[:=]))[^\n.]{0,40}?[\"'`:=\s]\s{0,8}\\{0,3}[\"'`]?"
    r"(?P<s>(?:\d{1,2}[.)]\s{0,2})?[a-z]{3,8}(?:(?:[ ,]|\r?\n|\\n){1,3}(?:\d{1,2}[.)]\s{0,2})?[a-z]{3,8}){11,23})"
)
_PROSE = frozenset(VOCABULARY["documents"]["prose"])
_PROSE_MAX = 1
_SEED_WORDS_MIN, _SEED_WORDS_MAX = 12, 24
_SEED_CHARACTERS_MIN = 3 * _SEED_WORDS_MIN
_SEED_RUN = b"\x01" * _SEED_WORDS_MIN
_SEED_SEPARATED = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in range(256))  # noqa: PLR2004  # ASCII
_SEED_SEPARATORS = r"\\[nrt]|[\s,;.:()\[\]\"'`|0-9\\“”„«»-]"


DOCUMENT_NEEDLES = ("kind", "mnemonic", "phrase", "seed", *_ABOVE_NAMES)
"""What `find_in_documents` searches for in the words of a text."""


def find_in_documents(reading: Reading) -> Iterator[Found]:
    """Yield secrets that only their context gives away."""
    text, lowered, signs, is_named, _ = reading
    if is_named and "\n" in text:
        yield from _find_values_below(text, lowered, signs)
    if "kind" in signs and "secret" in signs and compile_regex(_MANIFEST).search(text):
        yield from _find_in_manifest(text)
    if len(text) > 2 * _KEY_SEED and text.count(",") >= _KEY_SEED - 1:
        yield from _find_bytes(text)
    if "mnemonic" in signs or "phrase" in signs or "seed" in signs:
        yield from _find_phrases(text, lowered)


def is_key_bytes(numbers: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether a list of numbers is a key pair: 64 bytes that look drawn."""
    return len(numbers) == _KEY_PAIR and _look_random(numbers)


def _look_random(numbers: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether these are bytes at random: in no order, few of them twice."""
    if not all(type(n) is int and 0 <= n <= _BYTE_MAX for n in numbers):
        return False
    steps = [abs(a - b) for a, b in itertools.pairwise(numbers)]
    small = sum(step <= 1 for step in steps)
    return (
        len(set(numbers)) >= _DISTINCT_SHARE * len(numbers)
        and small < _STEPS_SHARE * len(steps)
        and max(numbers) > _BYTE_MAX // 2
    )


def _find_values_below(text: str, lowered: str, signs: Container[str]) -> Iterator[Found]:
    """Yield values on the line below their name."""
    places = {word: lowered.find(word) for word in _ABOVE_NAMES if word in signs}
    while places := {word: at for word, at in places.items() if at >= 0}:
        at = min(places.values())  # the first name of a line counts
        end = text.find("\n", at)
        if end < 0:
            return
        places = {
            word: lowered.find(word, end) if place < end else place
            for word, place in places.items()
        }
        if end - at > _NAME_TAIL_MAX or not compile_regex(_BELOW).match(text, end):
            continue
        found = compile_regex(_ABOVE).match(text, text.rfind("\n", 0, at) + 1)
        if found is None:
            continue
        name = found["name"].strip(" _").rsplit(" ", 1)[-1]
        value = found["s"]
        if not is_naming(name) or not is_likely_secret(value) or value[-1] in ":,{[":
            continue
        # Without a colon, two lines of a list look the same.
        if found["colon"] or sum(map(str.isdigit, value)) >= _STRONG_DIGITS:
            yield (*found.span("s"), "password")


def _find_in_manifest(text: str) -> Iterator[Found]:
    """Yield the values of a Kubernetes secret, of YAML and of JSON."""
    start = 0
    for document in compile_regex(r"(?m)^---[^\n]*$").split(text):
        begin = text.find(document, start)
        end = start = begin + len(document)
        if not compile_regex(_MANIFEST).search(document):
            continue
        for data in compile_regex(_DATA).finditer(text, begin, end):
            at = data.end()
            while line := compile_regex(_DATA_LINE).match(text, at, end):
                if len(line["indent"]) <= len(data["indent"]):
                    break
                if not is_reference(line["s"]):
                    yield (*line.span("s"), "kubernetes-secret")
                at = line.end()
        for data in compile_regex(_DATA_OBJECT).finditer(text, begin, end):
            for member in compile_regex(_MEMBER).finditer(text, *data.span("body")):
                if not is_reference(member["s"]):
                    yield (*member.span("s"), "kubernetes-secret")


def _find_bytes(text: str) -> Iterator[Found]:
    """Yield arrays of numbers that are keys."""
    for found in compile_regex(_BYTES).finditer(text):
        numbers = [
            int(n, 0) if n[:2] == "0x" else int(n)
            for n in compile_regex(_NUMBER).findall(found["s"])
        ]
        if not _look_random(numbers):
            continue
        before = text[max(0, found.start() - 80) : found.start()]
        hinted = compile_regex(_KEY_HINT).search(before) is not None
        if len(numbers) == _KEY_PAIR or (hinted and len(numbers) == _KEY_SEED):
            yield (*found.span("s"), "key-bytes")


def may_have_seed_phrase(text: str) -> bool:
    """Return whether twelve words of seed phrases stand in a row."""
    if len(text) < _SEED_CHARACTERS_MIN:
        return False
    coded = text.encode("utf-8", "surrogatepass")
    words = coded.replace(b"\\n", b" ").translate(_SEED_SEPARATED).split()
    known = _seed_words().__contains__
    # Of twelve in a row four follow each other among all third words: most texts need no look at the others.
    is_near = _SEED_RUN[::3] in bytes(map(known, words[2::3]))
    return is_near and _SEED_RUN in bytes(map(known, words))


@functools.cache
def _seed_words() -> frozenset[bytes]:
    return frozenset(word.encode() for word in read_words("seed_words.txt"))


def redact_seed_phrases(text: str) -> str:
    """Redact rows of words of which seed phrases are made; not a list of them in order."""
    rows: list[list[re.Match[str]]] = [[]]
    for found in compile_regex(r"(?<![^\W\d_])(?:(?<=\\[nrt]))?[a-z]{3,8}(?![^\W\d_])").finditer(
        text
    ):
        if found[0].encode() not in _seed_words():
            continue
        row = rows[-1]
        if row and compile_regex(rf"(?:{_SEED_SEPARATORS}){{1,12}}").fullmatch(
            text, row[-1].end(), found.start()
        ):
            row.append(found)
        else:
            rows.append([found])
    for row in reversed(rows):
        words = [found[0] for found in row]
        if (
            len(words) >= _SEED_WORDS_MIN
            and len(set(words)) > len(words) // 2
            and (len(words) <= _SEED_WORDS_MAX or words != sorted(words))
        ):
            text = f"{text[: row[0].start()]}[REDACTED:mnemonic]{text[row[-1].end() :]}"
    return text


def _find_phrases(text: str, lowered: str) -> Iterator[Found]:
    """Yield seed phrases: twelve words or more that are no sentence."""
    for found in find_beginning(compile_regex(_PHRASE), _PHRASE_WORDS, text, lowered):
        words = compile_regex(r"[a-z]+").findall(found["s"])
        if (
            sum(word in _PROSE for word in words) <= _PROSE_MAX
            and len(set(words)) > len(words) // 2
        ):
            yield (*found.span("s"), "mnemonic")


# ── Tables ────────────────────────────────────────────────────────────────────────────────────────

_CELL_RULE = "table-cell"
_HEADER_NAMES = ("pass", "pw", "secret", "token", "key", "senha", "contrase", "kennwort", "密码", "пароль")  # fmt: skip
TABLE_NEEDLES = _HEADER_NAMES
"""What `find_in_tables` searches for in the words of a text."""
_BARE_HEADER = r" ?\w{1,40}(?: {0,40}\| {0,40}\w{1,40}){1,40} {0,40}\r?\n?\Z"
_HEADER_CELL = r"[\w .()/#-]{0,40}"
_INSERTED = (
    r"(?i:\binsert\s{1,4}into\s{1,4}[\w.\"`\[\]]{1,80}\s{0,4}\((?P<names>[^()]{1,400})\)\s{0,9}values\s{0,9})"
    r"(?P<rows>\((?:[^()'\"]|'[^'\n]{0,400}'|\"[^\"\n]{0,400}\"){0,1000}\)"
    r"(?:\s{0,9},\s{0,9}\((?:[^()'\"]|'[^'\n]{0,400}'|\"[^\"\n]{0,400}\"){0,1000}\)){0,50})"
)
_INSERTED_ROW = r"\((?:[^()'\"]|'[^'\n]*'|\"[^\"\n]*\")*\)"
_QUOTED_CELL = r"\s*(?:'(?:[^'\n])*'|\"(?:[^\"\n])*\"|[^,'\"]*)\s*"
_MARKUP = " \t\"'`*_"
_RULE_SIGNS = " \t\r\n|+-:=─┼│┌┐└┘├┤┬┴"
"""What a line consists of that only draws a table."""
_LINE_MAX = 2_000
_ROWS_MAX = 500
_HEADER_CELLS_MAX = 60
_SEPARATORS = ("|", "\t", ";", ",", "  ")
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


def find_in_tables(reading: Reading) -> list[Found]:
    """Return the cells that belong to a column or a row named like a secret."""
    text, lowered, signs, is_named, _ = reading
    spans: list[_Span] = []
    if not is_named:
        return []
    if "|" in text or "\n" in text:
        names = [word for word in _HEADER_NAMES if word in signs]
        if names:
            spans += _find_in_lines(text, lowered, names)
    if "insert" in lowered:
        spans += _find_inserted(text, lowered)
    return [(start, end, _CELL_RULE) for start, end in spans]


def _find_in_lines(text: str, lowered: str, words: list[str]) -> Iterator[_Span]:
    """Yield the cells below a header and those beside a name."""
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
            yield from _pick_secrets(text, start, [header.beside])
        if header.columns and start >= table:
            for row, end in _find_rows(text, done, header):
                yield from row
                table = end


def _line_end(text: str, at: int) -> int:
    """Return where the line ends, its line break included."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _read_header(line: str) -> _Header | None:
    """Return what a line says about the cells below and beside it; None if it names no secret."""
    for sign in _SEPARATORS:
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
    """Return whether this is no line of code: lists and regular expressions have commas and bars, too."""
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
        if not line.strip(_RULE_SIGNS):
            continue
        cells = _split_cells(line, header.sign)
        if len(cells) != header.width:
            return
        yield _pick_secrets(text, start, [cells[n] for n in header.columns]), at


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


def _pick_secrets(text: str, offset: int, cells: list[_Span]) -> Iterator[_Span]:
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
    for found in find_beginning(compile_regex(_INSERTED), ["insert"], text, lowered):
        names = [name.strip(" \t\n\"'`[]") for name in found["names"].split(",")]
        columns = [n for n, name in enumerate(names) if is_naming(name)]
        if not columns:
            continue
        for row in compile_regex(_INSERTED_ROW).finditer(text, *found.span("rows")):
            cells: list[_Span] = []
            at = row.start() + 1
            while at < row.end() - 1 and len(cells) < len(names):
                cell = compile_regex(_QUOTED_CELL).match(text, at, row.end() - 1)
                if cell is None:
                    break
                cells.append((cell.start(), cell.end()))
                at = cell.end() + 1
            yield from _pick_secrets(text, 0, [cells[n] for n in columns if n < len(cells)])
