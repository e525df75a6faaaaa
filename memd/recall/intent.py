"""What kind of memory a question asks for, read from its words. Pure.

Two intents are told apart. *Recency*: "latest", "last session", "where were we": then the newest
matters more than the best worded. *Kind*: "why did … fail" wants a fix or a failure, "how should
we …" an instruction, "where do we …", "which … did we choose" a decision. An intent only ever adds
a little to what already matches; it hides nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from memd.models import Kind

_RECENT = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|recent(?:ly)?|just now|yesterday|today|this (?:week|morning)"
    r"|last (?:session|time|night|week|thing|change|commit|prompt)|left off|where (?:was|were) (?:i|we)"
    r"|pick(?:ing)? up where|so far|current(?:ly)?)\b",
    re.IGNORECASE,
)
_KINDS: tuple[tuple[re.Pattern[str], tuple[Kind, ...]], ...] = (
    (
        re.compile(
            r"\b(?:how (?:should|do|must|shall) (?:i|we|you|\w+ (?:be|get))\b|how should\b|should (?:i|we|you)\b"
            r"|(?:rule|convention|guideline|instruction|policy|style)s?\b|always|never|prefer\w*|supposed to)",
            re.IGNORECASE,
        ),
        (Kind.INSTRUCTION, Kind.PREFERENCE),
    ),
    (
        re.compile(
            r"\b(?:why (?:did|does|do|is|was|were|are) .*\b(?:fail\w*|crash\w*|break\w*|broke\w*|error\w*|answer\w*|not)\b"
            r"|[1-5]\d\d\b|\w*(?:Error|Exception)\b|traceback|exception|crash\w*|broken|bug|fix(?:ed)?|fail(?:s|ed|ing|ure)?)",
        ),
        (Kind.FIX, Kind.FAILURE),
    ),
    (
        re.compile(
            r"\b(?:where do we|what do we use|which \w+ (?:do|did|are|should) we|what did we (?:decide|choose|pick|agree)"
            r"|(?:did|have) we (?:decide|choose|chosen|decided)|decision|decid\w+|chose\w*|why (?:did|do|are) we (?:choose|use|using|pick|keep|move)\w*)",
            re.IGNORECASE,
        ),
        (Kind.DECISION,),
    ),
    (
        re.compile(
            r"\b(?:todo|to-do|remind\w*|open tasks?|left to do|next steps?)\b", re.IGNORECASE
        ),
        (Kind.TASK,),
    ),
)


@dataclass(frozen=True, slots=True)
class Intent:
    """What the words of a question ask for."""

    is_recent: bool = False
    kinds: Mapping[Kind, float] = field(default_factory=dict)
    """Kind → how much it is asked for, at most 1."""


def read(text: str) -> Intent:
    """The intent of a question."""
    kinds: dict[Kind, float] = {}
    for pattern, wanted in _KINDS:
        if pattern.search(text):
            kinds.update(dict.fromkeys(wanted, 1.0))
    return Intent(is_recent=bool(_RECENT.search(text)), kinds=kinds)
