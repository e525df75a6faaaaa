"""What memd itself put before an agent, taken out again: nothing recalled becomes a memory anew. Pure.

A block is known by its first line, `<recalled-memory source="memd" …>` and then the line's end, also
as JSON or HTML write it; that name in somebody's prose or code is left alone. A block that was cut
reaches to the end of the text. Standard library only: the hook runs this when no daemon answers.
"""

from memd.capture.patterns import compiled

NAME = "recalled-memory"
OPENING = f'<{NAME} source="memd"'
CLOSING = f"</{NAME}>"
_LESS, _MORE = r"(?:<|&lt;|\\{1,7}u003c)", r"(?:>|&gt;|\\{1,7}u003e)"
_QUOTE = r"(?:\\{0,7}\"|&quot;|&#34;|\\{1,7}u0022)"
_BLOCK = (
    rf"(?si){_LESS}{NAME} source={_QUOTE}memd{_QUOTE}[^<>\n]{{0,200}}?{_MORE}"
    rf"(?=[ \t]*(?:\r?\n|\\{{1,7}}n)).*?(?:{_LESS}/{NAME}{_MORE}|\Z)"
)


def without_echo(text: str) -> str:
    """The text without the blocks that memd put in; whatever stood around them stays as it is."""
    return compiled(_BLOCK).sub("", text) if NAME in text else text
