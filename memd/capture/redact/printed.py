"""What a command prints that is there to print a secret: `op read …`, `pass show …`, `echo $DB_PASSWORD`. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from memd.capture.redact.names import VOCABULARY, is_likely_secret, is_reference, secret_rule
from memd.capture.redact.regexes import Found, compile_regex

RULE = "printed-secret"
_PRINTS = "|".join(VOCABULARY["commands"]["printing"])
_NAMED = r"(?:printenv\s+|echo\s+[\"']?\$\{?|output\s+-raw\s+|Env:)(?P<name>\w{2,60})"
_NEEDLES = tuple(VOCABULARY["commands"]["printing_needles"])
_PROMPTED = r"(?m)^(?:[^\n$#%>❯]{0,60}[$#%>❯][ \t]{1,4})?(?P<command>[^\n]{6,400})\r?\n(?P<s>\S{5,512})[ \t]*\r?$"
_WHOLE_MAX = 4_096
_OUTPUTS = ("stdout", "output", "content", "text", "tool_response")


def prints_secret(command: str) -> bool:
    """Return whether what this command prints is a secret, by its program or by the name that it prints."""
    if len(command) > _WHOLE_MAX or not any(map(command.__contains__, _NEEDLES)):
        return False
    if compile_regex(_PRINTS).search(command):
        return True
    named = compile_regex(_NAMED).finditer(command)
    return any(secret_rule(found["name"]) is not None for found in named)


def find_printed(text: str) -> Iterator[Found]:
    """Yield what stands in a shell's transcript below a command that prints a secret."""
    if "\n" not in text or not any(map(text.__contains__, _NEEDLES)):
        return
    for found in compile_regex(_PROMPTED).finditer(text):
        if prints_secret(found["command"]) and is_likely_secret(found["s"]):
            yield (*found.span("s"), RULE)


def redact_output(response: Any) -> Any:
    """Redact the first line that a command printed, if it is one word; the rest has names of its own."""
    if isinstance(response, dict):
        return {k: redact_output(v) if k in _OUTPUTS else v for k, v in response.items()}
    if isinstance(response, list):
        return [redact_output(one) for one in response]
    if not isinstance(response, str):
        return response
    first, line_break, rest = response.lstrip().partition("\n")
    is_word = len(first) > 3 and len(first.split()) == 1 and not is_reference(first)  # noqa: PLR2004
    is_secret = is_word and re.fullmatch(r"[\[{<].*|\w+:", first) is None
    return f"[REDACTED:{RULE}]{line_break}{rest}" if is_secret else response
