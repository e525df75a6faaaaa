"""Decide whether two payloads with one id are copies of one event, or two events. Pure.

A second hook, the spool and an import bring copies, which are shortened, redacted and formatted in slightly
different ways. A client may also give one id to two events: a gateway that counts its calls from one again, a prompt
that is sent again with other words. A copy must not become a second row, and no event may be lost.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from memd.capture.fingerprints import FINGERPRINT
from memd.capture.redact import redact
from memd.models import AGENTS_IMPORT, Event, NewEvent
from memd.text import digest, normalised

_END_CHARACTERS = 1_500
"""Characters at each end of a shortened text that are compared; every limit keeps as many."""
COPIES_MS = 60_000
"""Milliseconds within which events without words of their own are copies: hooks run at the same time."""
_TRANSCRIPT_SOURCES = frozenset({"import", "transcript", AGENTS_IMPORT})
_SIMILAR_SHARE = 0.9
"""Share of the shorter text's words from which a transcript's text is a hook's, formatted differently."""
_CUT_MARK = re.compile(r"… \[[^\]]{1,60}\] …")
_WORDS_OF: Mapping[str, tuple[str, ...]] = {
    "UserPromptSubmit": ("prompt",),
    "PreToolUse": ("tool_name", "tool_input"),
    "PostToolUse": ("tool_name", "tool_input", "tool_response"),
    "PostToolUseFailure": ("tool_name", "tool_input", "error"),
    "Stop": ("last_assistant_message",),
    "AgentText": ("text",),
    "ToolRefused": ("tool_name", "tool_input", "said"),
    "SubagentStop": ("last_assistant_message",),
    "PostCompact": ("compact_summary",),
}
"""Event → the fields that say what happened."""
_REFORMATTED = frozenset({"tool_response", "error", "last_assistant_message", "compact_summary"})
"""Fields that a transcript writes in its own way, so that they only tell two events of one source apart."""
_TIMED = frozenset({"PreCompact", "SubagentStart"})
"""Events that only their time tells apart, and that no transcript has."""
_MEASURED = frozenset({"bytes", "lines", FINGERPRINT})
"""What became of a file's text; measured before or after it was shortened."""
_NESTED_MAX = 20
_Leaf = tuple[tuple[str, ...], Any]


def is_copy(new: NewEvent, stored: Event) -> bool:
    """Return whether `new` repeats `stored`, which has the same name and id. In doubt, True."""
    if new.name in _TIMED:
        return abs(new.at - stored.at) < COPIES_MS
    is_reformatted = _is_of_transcript(new) != _is_of_transcript(stored)
    fields = [
        name
        for name in _WORDS_OF.get(new.name, ())
        if name in new.payload and name in stored.payload
        and not (is_reformatted and name in _REFORMATTED)
    ]  # fmt: skip
    is_same = _is_similar if is_reformatted else _is_equal
    for name in fields:
        known = dict(_list_leaves(stored.payload[name]))
        for path, value in _list_leaves(new.payload[name]):
            if path in known and not is_same(known[path], value):
                return False
    return True


def is_same_from_other_source(new: NewEvent, stored: Event) -> bool:
    """Return whether one of two events is of a hook and the other of a transcript, with the same words but other ids.

    An older client names no prompt to its hooks, and a transcript none of a prompt typed while the agent worked.
    """
    if new.name != stored.name or _is_of_transcript(new) == _is_of_transcript(stored):
        return False
    if new.turn and stored.turn:
        return False
    names = [name for name in _WORDS_OF[new.name] if name not in ("tool_response", "error")]
    texts = [
        (_to_text(new.payload.get(name)), _to_text(stored.payload.get(name))) for name in names
    ]
    return all(one and other and _has_same_words(one, other) for one, other in texts)


def _to_text(value: Any) -> str:
    """Return a text as it is, and what was given to a tool as one."""
    return " ".join(f"{'.'.join(path)} {leaf}" if path else str(leaf) for path, leaf in sorted(
        _list_leaves(value), key=lambda one: one[0]
    ))  # fmt: skip


def _is_of_transcript(event: NewEvent | Event) -> bool:
    return event.source in _TRANSCRIPT_SOURCES


def _has_same_words(one: str, other: str) -> bool:
    """Return whether two texts have nearly the same words, or are shortened and begin and end alike."""
    first, second = normalised(redact(one)).split(), normalised(redact(other)).split()
    if first == second:
        return True
    if _CUT_MARK.search(one) or _CUT_MARK.search(other):
        return _is_equal(one, other)
    common = (Counter(first) & Counter(second)).total()
    return common >= _SIMILAR_SHARE * max(len(first), len(second))


def fingerprint(event: NewEvent) -> str:
    """Digest what an event says, for the key of a second event of one id; equal for copies of one source."""
    if event.name in _TIMED:
        return digest("time", str(event.at // COPIES_MS))
    said: list[str] = []
    for name in _WORDS_OF.get(event.name, ()):
        for path, value in _list_leaves(event.payload.get(name)):
            head, *rest = _CUT_MARK.split(_flatten(str(value)))
            said += [name, *path, head[:_END_CHARACTERS] if rest else head]
    return digest(*said)


def _list_leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[_Leaf]:
    """Yield every text and number in a value with the way to it."""
    if len(path) > _NESTED_MAX:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _MEASURED:
                yield from _list_leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _list_leaves(inner, (*path, str(number)))
    elif value is not None:
        yield path, value


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two values of one source are the same, apart from redaction and shortening."""
    if not (isinstance(one, str) and isinstance(other, str)):
        # A text in the place of a number says that it was too large.
        return one == other or isinstance(one, str) or isinstance(other, str)
    if one == other:
        return True
    first, second = _CUT_MARK.split(_flatten(one)), _CUT_MARK.split(_flatten(other))
    if len(first) == len(second) == 1:
        return first == second
    return _have_equal_ends(first, second)


def _have_equal_ends(first: list[str], second: list[str]) -> bool:
    """Return whether two texts, of which at least one was shortened, begin and end alike."""
    head = min(len(first[0]), len(second[0]), _END_CHARACTERS)
    tail = min(len(first[-1]), len(second[-1]), _END_CHARACTERS)
    return first[0][:head] == second[0][:head] and (
        first[-1][len(first[-1]) - tail :] == second[-1][len(second[-1]) - tail :]
    )


def _flatten(text: str) -> str:
    """Return a text redacted by all rules, whatever is configured, in single blanks."""
    return " ".join(redact(text).split())


def _is_similar(one: Any, other: Any) -> bool:
    """Return whether a hook's value and a transcript's are the same, apart from how they are formatted."""
    if not (isinstance(one, str) and isinstance(other, str)) or one == other:
        return True
    first, second = normalised(redact(one)).split(), normalised(redact(other)).split()
    if first == second or _CUT_MARK.search(one) or _CUT_MARK.search(other):
        return True
    common = (Counter(first) & Counter(second)).total()
    return common >= _SIMILAR_SHARE * min(len(first), len(second))
