"""Multi-line blocks: `<private>`, private keys, memd's own injected context. Pure.

Capture runs this on a whole text before it is reduced to head and tail, so a block that crosses the cut never
survives. A block without its end reaches to the end of the text, one without its beginning starts where the text
does. Injected context is recognised by its first line, `<recalled-memory source="memd" …>` and a line break, also
as JSON or HTML write it; the name alone, in prose or code, is left. Standard library only: the hook imports it.
"""

from typing import NamedTuple

from memd.capture.redact.regexes import compile_regex

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
