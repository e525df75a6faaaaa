"""<private> blocks, PEM keys, memd's own injected context."""

from typing import NamedTuple

from memd.capture.redact.tokens import compile_regex

# MERGED from memd.capture.echo:
# MERGED What memd itself put before an agent, taken out again: nothing recalled becomes a memory anew. Pure.
# MERGED
# MERGED A block is known by its first line, `<recalled-memory source="memd" …>` and then the line's end, also
# MERGED as JSON or HTML write it; that name in somebody's prose or code is left alone. A block that was cut
# MERGED reaches to the end of the text. Standard library only: the hook runs this when no daemon answers.


INJECTED_TAG = "recalled-memory"
INJECTED_OPENING = f'<{INJECTED_TAG} source="memd"'
INJECTED_CLOSING = f"</{INJECTED_TAG}>"
_LESS, _MORE = r"(?:<|&lt;|\\{1,7}u003c)", r"(?:>|&gt;|\\{1,7}u003e)"
_QUOTE = r"(?:\\{0,7}\"|&quot;|&#34;|\\{1,7}u0022)"
_BLOCK = (
    rf"(?si){_LESS}{INJECTED_TAG} source={_QUOTE}memd{_QUOTE}[^<>\n]{{0,200}}?{_MORE}"
    rf"(?=[ \t]*(?:\r?\n|\\{{1,7}}n)).*?(?:{_LESS}/{INJECTED_TAG}{_MORE}|\Z)"
)


def strip_injected_context(text: str) -> str:
    """The text without the blocks that memd put in; whatever stood around them stays as it is."""
    return compile_regex(_BLOCK).sub("", text) if INJECTED_TAG in text else text


# MERGED from memd.capture.spans:
# MERGED Blocks over many lines: `<private>`, private keys, memd's own echo, found in one walk. Pure.
# MERGED
# MERGED Capture runs this on the whole of a text before it is cut to head and tail, so a block that
# MERGED straddles the cut never survives. A block that was cut already is taken whole: without its end it
# MERGED reaches to the end of the text, without its beginning it starts where the text does.


_OPEN = r"(?:[<＜]|&lt;|\\{1,7}u003c)"
_CLOSE = r"(?:[>＞]|&gt;|\\{1,7}u003e)"
_TAG = rf"(?ai){_OPEN}[ \t]{{0,4}}([/／]?)[ \t]{{0,4}}private(?![\w-])[^<>＜＞\\&]{{0,400}}{_CLOSE}"
_KEY = r"-{4,5} ?(BEGIN|END) ([A-Z0-9 ]{0,40}?)(?:PRIVATE|SECRET) KEY(?: BLOCK)? ?-{4,5}"
_BODY = r"[A-Za-z0-9+/=]{20}"
_QUOTES = "\"'`"
_NEAR = 200


class _Mark(NamedTuple):
    """Where a block begins or ends."""

    start: int
    end: int
    opens: bool
    name: str


def redact_blocks(text: str) -> str:
    """The text without `<private>` blocks, private keys and what memd put in; nothing else is touched.

    Linear in the text: one look for each needle, and one walk over the marks if there are any.
    """
    text = strip_injected_context(text)
    if "private" in text or "PRIVATE" in text or "rivate" in text.lower():
        text = _without(text, _tags(text))
    if "PRIVATE KEY" in text or "SECRET KEY" in text:
        text = _without(text, _keys(text))
    return text


def _without(text: str, marks: list[_Mark]) -> str:
    """The text with everything between balanced marks replaced."""
    kept: list[str] = []
    done = depth = begun = 0
    name = ""
    for mark in marks:
        if mark.opens:
            if depth == 0:
                begun, name = mark.start, mark.name
            # Keys are not nested: a second beginning is a key whose end was lost.
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


def _tags(text: str) -> list[_Mark]:
    found = compile_regex(_TAG).finditer(text)
    return [
        _Mark(m.start(), m.end(), not m[1], "private")
        for m in found
        if not m[0].rstrip(">").endswith("/")
    ]


def _keys(text: str) -> list[_Mark]:
    found = compile_regex(_KEY).finditer(text)
    marks = [_Mark(m.start(), m.end(), m[1] == "BEGIN", _key_name(m[2])) for m in found]
    return [mark for mark in marks if not _is_mention(text, mark)]


def _key_name(words: str) -> str:
    if "PGP" in words:
        return "pgp-private-key"
    return "ssh2-private-key" if "SSH2" in words else "private-key"


def _is_mention(text: str, mark: _Mark) -> bool:
    """Code that looks for such a line has it in quotes, and no key beside it."""
    if mark.opens:
        beside, near = text[mark.end : mark.end + 1], text[mark.end : mark.end + _NEAR]
    else:
        beside = text[max(0, mark.start - 1) : mark.start]
        near = text[max(0, mark.start - _NEAR) : mark.start]
    return bool(beside) and beside in _QUOTES and not compile_regex(_BODY).search(near)
