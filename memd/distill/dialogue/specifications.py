"""A list of points by which the user describes how something shall be. Pure."""

import re
from dataclasses import dataclass

from memd.distill.dialogue.chores import is_chore
from memd.distill.sentences import is_question
from memd.distill.speech.generality import is_order

REVIEW = re.compile(
    r"\((?:at )?lines? \d|\blines? \d+(?:\s*(?:-|–|and|to)\s*\d+)?\b|\bat line\b|\b(?:low|medium|high|critical|minor|major) severity\b|\bseverity:|\bconsider (?:\w+ing|a|an|the)\b|\bsuggested (?:fix|change)\b|\bnitpick\b|\bP[0-3]\b",
    re.IGNORECASE,
)
"""Words of a review that was pasted."""
_SPECIFICATION_CHARACTERS_MAX = 1_600
_ITEMS_MIN, _OTHER_LINES_MAX = 3, 3
_ITEM = re.compile(r"^\s*(?:\d{1,2}\s*[.):–—-]+|[-*•–])\s*(?P<item>\S.{7,})$")
_WRITTEN = re.compile(
    r"^\s*(?:#{1,6} |```|\*\*|[A-Z][\w ]{2,30}:\s*$)|\*\*|^\s*[-*] \[[ x]\]|[│├└]|\bERROR\b",
    re.MULTILINE,
)
"""Headings, bold words and boxes: written by an agent or copied, not typed."""
_DESCRIBES_POINT = re.compile(
    r"\b(?:is|are|has|have|should|must|shall|can|cannot|can't|always|never|only|will|goes|go to|shows?|opens?|stays?|gets?|belongs?|uses?|means?|don'?t|doesn'?t|no|not|we|->|→)\b|->|→",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Specification:
    """Several points of a message that say how something shall be."""

    intro: str
    """What leads up to them."""
    items: tuple[str, ...]


def find_specification(message: str) -> Specification | None:
    """A list of points in the user's own words that describe how something shall be; None if most are orders."""
    lines = [line for line in message.split("\n") if line.strip()]
    items = [match.group("item").strip() for line in lines if (match := _ITEM.match(line))]
    is_typed = (
        len(message) <= _SPECIFICATION_CHARACTERS_MAX
        and len(lines) - len(items) <= _OTHER_LINES_MAX
    )
    if (
        not is_typed
        or len(items) < _ITEMS_MIN
        or REVIEW.search(message)
        or _WRITTEN.search(message)
    ):
        return None
    described = [item for item in items if _DESCRIBES_POINT.search(item) and not _is_ordered(item)]
    if len(described) * 2 <= len(items):
        return None
    intro = lines[0] if not _ITEM.match(lines[0]) else ""
    return Specification(intro, tuple(items))


def _is_ordered(item: str) -> bool:
    return is_question(item) or is_chore(item) or is_order(item)
