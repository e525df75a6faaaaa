"""What a later exchange of the session takes back of what a turn left standing.

A wish is withdrawn (`let's go back`), a cause is refuted (the same error again), a claim is admitted to be wrong. The
turn is then distilled again with the later exchange in its context, so that live and imported sessions agree.
"""

import re
from collections.abc import Sequence

from memd.distill.dialogue.findings import is_refuted
from memd.distill.episodes import Exchange
from memd.models import Draft
from memd.text import content_stems

FOUND, ANSWERED, SAID, ASKED = "found:", "answer:", "said:", "asked:"
"""Prefixes of the rules whose drafts a dialogue may withdraw."""
CAUSE_LABEL, FOUND_LABEL = "Cause: ", "Found on the way: "
"""What a turn's body tells of these findings begins with one of these."""
RULES = (FOUND, ANSWERED, SAID, ASKED)
STEPS_NEAR = 3
"""So many exchanges on, words such as `that is wrong` may still be about it; later only a denial in its own words is."""
_STEMS_SHARED_MIN = 2
_SHARE_MIN = 0.3
_OPENING_CHARACTERS = 300
_WISHES_BACK = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|hm+|no+|nope|sorry|well|so|ah|oh|and|but|actually|yeah|yes|please|let'?s|can we|can you|could you|we should|i think we should)\b[\s,.!]*)*"
    r"(?:revert\b|undo\b|roll (?:it |that |this )?back|go back\b|(?:let'?s )?back to|i concede|i give up|scratch (?:that|this)|never ?mind|forget (?:it|that|about)|on second thoughts?|i(?:'ve| have)? changed my mind|drop (?:it|that|this)|ignore (?:that|this|it|my)|actually,? (?:no|don'?t|keep|leave)|stop\b|back it out)",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"^\W*(?:(?:hm+|no+|nope|but|well|sorry|ah|oh)\b[\s,.!]*)*(?:revert\b|undo\b|(?:that|this|it)(?:'s| is| was) (?:wrong|not (?:true|right|correct|it|the (?:case|issue|problem|cause|reason)))|wrong\b|not true|i (?:don'?t|do not) think (?:that|so|this|it)|are you sure|i just (?:checked|looked|tested|tried)|i (?:doubt|disagree))",
    re.IGNORECASE,
)
_ADMITS = re.compile(
    r"\b(?:i was (?:wrong|mistaken|imprecise|incorrect|being imprecise)|my (?:mistake|bad|earlier (?:claim|statement|answer) was)|i (?:misread|misunderstood|oversold|overlooked|misspoke|misstated)|uh oh|i apologi[sz]e|apologies|that (?:was|is) (?:wrong|incorrect|misleading)|contrary to what i|i stand corrected|not override)\b"
    r"|^\W*(?:actually,? (?!let me|i(?:'ll| will)))|^\W*wait\b|^\W*you'?re right\b[^.]{0,80}(?:\bnot\b|n't\b|\bis plain|\buses?\b|\bwrong)",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"\b(?:error|fail(?:ed|ure|s)?|fatal|exception|denied|panic|cannot|refused|undefined)\b",
    re.IGNORECASE,
)
_VARIES = re.compile(r"[\w-]*\d[\w-]*")
_ERROR_CHARACTERS_MIN = 12


def is_withdrawn(draft: Draft, prompt: str, after: Sequence[Exchange]) -> bool:
    """Whether one of the exchanges after a turn takes a draft of it back; `prompt` is the turn's own."""
    return any(
        takes_back(later, step, draft.rule, draft.title, prompt) for step, later in enumerate(after)
    )


def takes_back(later: Exchange, step: int, rule: str, title: str, prompt: str) -> bool:
    """Whether an exchange takes back a memory of a rule; `step` is 0 for the turn right after, whose `prompt` is given."""
    opening = later.prompt[:_OPENING_CHARACTERS]
    is_near = step < STEPS_NEAR
    is_about = is_near and _concerns(f"{opening} {later.first}", title)
    goes_back = is_near and _WISHES_BACK.match(opening) is not None
    if rule.startswith(FOUND):
        answer = later.answer.text if later.answer else ""
        return (
            (_DENIES.search(opening) is not None and (step == 0 or is_about))
            or (_ADMITS.search(later.first[:_OPENING_CHARACTERS]) is not None and is_about)
            or any(is_refuted(title, text) for text in (later.first, *later.texts, answer))
            or (step == 0 and rule == "found:cause" and _shows_same_error(prompt, later.prompt))
        )
    return goes_back and (step == 0 or _concerns(opening, title))


def _concerns(said: str, title: str) -> bool:
    mine, theirs = frozenset(content_stems(title)), frozenset(content_stems(said))
    shared = len(mine & theirs)
    return shared >= _STEMS_SHARED_MIN and shared >= _SHARE_MIN * len(mine)


def _shows_same_error(prompt: str, later: str) -> bool:
    """Whether an error that the turn was to explain is shown again, numbers and ids apart."""
    return bool(_error_lines(prompt) & _error_lines(later))


def _error_lines(text: str) -> frozenset[str]:
    lines = (_VARIES.sub("#", line.strip().lower()) for line in text.split("\n"))
    return frozenset(
        line for line in lines if len(line) >= _ERROR_CHARACTERS_MIN and _ERROR_LINE.search(line)
    )
