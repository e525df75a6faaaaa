"""Build HTML in which no text can be markup. Pure.

`tag("a", title, href=link)` escapes everything but what another call has built. A link leads to this server only:
another address, `javascript:` too, is an error. Characters that nobody sees, and that change the order of letters,
are shown by their code points: a memory came out of a transcript and may want to deceive.
"""

import re
from collections.abc import Iterable
from html import escape

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
    "|(?<=[\\x00-\\x7f])[\u200c\u200d]"
)
"""Controls, marks of direction, spaces without width, variation selectors and tags; joiners behind ASCII letters,
where they join nothing. U+FE0F, which makes an emoji of a sign, is left."""
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_ADDRESSES = frozenset({"href", "src", "action", "data-load", "data-act", "data-go"})
_LOCAL = re.compile(r"#[\w-]*|/(?![/\\])[^\x00-\x20\\]*")
"""An address on this server, or a place on this page."""


class Markup(str):
    """Text that is HTML. Whatever else is made of it, such as a slice, is plain text again and gets escaped."""

    __slots__ = ()


Child = str | Iterable["Child"] | None
"""What may stand in an element: text, markup, or any of these in sequence; None is nothing."""


def reveal(text: str) -> str:
    """Put the code point in place of each character that is not seen: ⟨U+202E⟩."""
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def render(child: Child) -> Markup:
    """HTML of text or markup."""
    if child is None:
        return Markup()
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return Markup(escape(reveal(child), quote=False))
    return Markup("".join(render(one) for one in child))


def tag(_name: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """One element. `class_` is the attribute class, `aria_label` is aria-label; True has no value, None is left out.

    ValueError for an address that is not of this server.
    """
    opening = "".join(_write_attribute(key, value) for key, value in attributes.items())
    if _name in _VOID:
        return Markup(f"<{_name}{opening}>")
    return Markup(f"<{_name}{opening}>{render(children)}</{_name}>")


def _write_attribute(key: str, value: str | float | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = reveal(str(value))
    if name in _ADDRESSES and not _LOCAL.fullmatch(text):
        raise ValueError(f"{name} leads elsewhere: {text[:80]!r}")
    return f' {name}="{escape(text)}"'
