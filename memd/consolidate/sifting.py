"""The process in which somebody's regular expression is tried: a line of JSON in, a line of JSON out.

It is run by its path, so it imports the standard library alone. First comes the pattern, answered with
null or with what is wrong with it; then lists of JSON values, answered with the same lists, in which
everything that the pattern found is replaced. An answer that takes too long is the end of the process.
Not here: who runs it (sieve.py).
"""

import json
import re
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TextIO

PUT_THERE = "[REDACTED:scrub]"
_PLACEHOLDER = re.compile(r"\[REDACTED:[^\]\n]{1,60}\]")


def main(lines: Iterable[str], out: TextIO, arm: Callable[[bool], object]) -> None:
    """Answer line by line; `arm(True)` sets the alarm before a line is looked at, `arm(False)` ends it."""
    pattern: re.Pattern[str] | None = None
    answer: Any
    for line in lines:
        arm(True)
        said = json.loads(line)
        if pattern is None:
            pattern, answer = _compiled(said)
        else:
            clean = partial(without, pattern)
            answer = [mapped(value, clean) for value in said]
        arm(False)
        out.write(json.dumps(answer) + "\n")
        out.flush()


def _compiled(pattern: str) -> tuple[re.Pattern[str] | None, str | None]:
    """The pattern, or why it cannot be meant."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return None, f"not a regular expression ({error})"
    if compiled.search(""):
        return None, "it fits an empty text, so it would be found everywhere"
    return compiled, None


def without(pattern: re.Pattern[str], text: str) -> str:
    """The text without what the pattern finds; placeholders of earlier redactions stay as they are."""
    parts, done = [], 0
    for kept in _PLACEHOLDER.finditer(text):
        parts += [pattern.sub(PUT_THERE, text[done : kept.start()]), kept.group()]
        done = kept.end()
    return "".join((*parts, pattern.sub(PUT_THERE, text[done:])))


def mapped(value: Any, clean: Callable[[str], str]) -> Any:
    """A JSON value with its strings and keys changed; keys that become one keep the last value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): mapped(inner, clean) for key, inner in value.items()}
    if isinstance(value, list):
        return [mapped(inner, clean) for inner in value]
    return value


if __name__ == "__main__":
    _SECONDS = float(sys.argv[1])
    # Nobody handles the alarm: it ends the process even while a search is under way.
    main(
        sys.stdin,
        sys.stdout,
        lambda on: signal.setitimer(signal.ITIMER_REAL, _SECONDS if on else 0),
    )
