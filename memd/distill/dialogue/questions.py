"""Questions that ask for another way than the one taken, as opposed to those that ask how things are. Pure.

`Can't we return the error?`, `should it be for all tests, not just these?` and `how about dropping it?` decide where the
agent then does so; `isn't it cached by default?` and `could it be that …?` never do.
"""

import re
from dataclasses import dataclass

from memd.distill.dialogue.chores import is_chore
from memd.distill.dialogue.phrases import CONTRAST, LEAD

_OTHER_WAY = re.compile(
    rf"{LEAD}(?:[^?]{{8,140}},\s+(?:so )?)?(?P<ask>why (?:can'?t|cannot|don'?t|do not|aren'?t|not|wouldn'?t|shouldn'?t|isn'?t|(?:do|are|is) (?=(?:we|you|it|this|that) not\b))\s*(?:we|you|it|this|that)?(?:\s+not)?|(?:can'?t|couldn'?t|shouldn'?t|wouldn'?t|isn'?t|aren'?t) (?:we|it|that|this|they|the \w+|you|there)(?:\s+not)?|(?:don'?t|doesn'?t) (?:we|it|that|this|they|the \w+)(?:\s+not)?(?=[^?]*\?)"
    r"|wouldn'?t it be (?:better|easier|cleaner|simpler|nicer)(?: to| if we| if)?|would it (?:not )?be (?:better|easier|cleaner|simpler|nicer|possible)(?: to| if we| if)?|isn'?t it (?:better|easier|cleaner|simpler)(?: to| if we| if)?|how about|what about|what if we|shouldn'?t (?:we|it|that|this|the \w+))\s+(?P<rest>(?!have (?:\w+e[dn]|become|gone|done|been)\b).+?)[?!.\s]*$",
    re.IGNORECASE,
)
_POLITE_WAY = re.compile(
    rf"{LEAD}(?:[^?]{{8,140}},\s+(?:so )?)?(?P<ask>(?:can|could|should|shall|would) (?:we|you|it|this|that|the \w+)(?: maybe| perhaps| please| just)?(?: also)?|should (?:it|this|that|they|we))\s+(?P<rest>.+?)[?!.\s]*$",
    re.IGNORECASE,
)
_ASKED_SHOULD = re.compile(
    rf"{LEAD}(?:maybe |perhaps |then )?(?P<rest>(?:(?:if|when|whenever|for) [^,?]{{4,90}}?,?\s+)?(?:we|it|they|the [\w -]{{2,40}}?) should(?:n'?t| not)?\s+(?P<what>[^?]{{8,}}))\?",
    re.IGNORECASE,
)
ALTERNATIVE = re.compile(r"\bor\b(?! (?:so|not|more|less)\b)", re.IGNORECASE)
_NEW_WAY = re.compile(rf"{CONTRAST}|\b(?:not just|not only|everywhere|for all|in all|consistently|independent(?:ly)?|regardless|whatever|by default|no matter|the same (?:way|for|as)|without (?:any|a|the|having)|too much|specific logic|dupli\w+|simpl\w+|proper\w*|real)\b", re.IGNORECASE)  # fmt: skip
POINTS_AT_WORK = re.compile(
    r"(?:do|make|add|apply|use|put|repeat) (?:the same|that|this|it|these|those|them)\b",
    re.IGNORECASE,
)
_INFORMATION = re.compile(r"\b(?:have|already|explain|tell|show|know|mean|happen\w*|see|fail\w*|error|crash\w*|broken|work(?:s|ing)?|find|look at|take a look|have a look|check|review|describe|run|help me (?:understand|find)|do you|is there|any(?:thing| way| idea)|possible|hard|risky|difficult|cost|or (?:is|do|does|should|was|would|not)|right)\b", re.IGNORECASE)  # fmt: skip
_HOW_IT_IS = re.compile(
    r"(?:be )?(?:that|why|because|(?:the|a) (?:same|reason|cause|bug|problem))\b|be (?:there|gone|done|finished|safe|sure|certain|ready|visible|in (?:the|all))\b|(?:see|notice|tell|find|expect|get)\b",
    re.IGNORECASE,
)
"""How a question goes on that asks how things are: `could it be that …`, `can we tell …`."""
_OF_A_THING = re.compile(
    r"^(?P<verb>(?:why )?(?:can'?t|cannot|couldn'?t|isn'?t|aren'?t|don'?t|doesn'?t|wouldn'?t|can|could|would|do|is|are))(?: (?:it|that|this|they|there|the \w+))?(?: not)?$",
    re.IGNORECASE,
)
"""`isn't it`, `why can't the`, as opposed to `can't we`: asks for a wish only where it names another way."""
_WEIGHS = re.compile(
    r"(?:not )?(?:be )?(?:better|easier|cleaner|simpler|nicer|safer|faster|more|enough|too|overkill|redundant|confusing)\b",
    re.IGNORECASE,
)
_PROPOSED = re.compile(
    r"(?:just|only|simply|instead|we|if we|not|no|an?|some|\w+ing|keep|use|make|do)\b",
    re.IGNORECASE,
)
"""What `how about` proposes: `how about the cache?` asks for news of it."""
_ASKS_AFTER_COMMA = re.compile(
    r"[,;–—-]\s*(?:is|are|does|do|did|was|were|has|have|can|will) (?:it|they|that|there|this|these|those|the)\b",
    re.IGNORECASE,
)  # dashes as people type them


@dataclass(frozen=True, slots=True)
class AskedChange:
    """What a question asks for: the group `rest` of the match."""

    rule: str
    match: re.Match[str]
    confidence: float


def find_asked_change(said: str, *, agrees: bool) -> AskedChange | None:
    """What a question asks to be done in another way; None if it asks how things are.

    `agrees`: whether the agent then said that the user is right.
    """
    if match := _OTHER_WAY.match(said):
        is_meant = _asks_for_other_way(match, agrees=agrees)
        return AskedChange("asked:other-way", match, 0.6) if is_meant else None
    if match := _POLITE_WAY.match(said):
        if _asks_for_information(match) or _asks_how_it_is(match):
            return None
        asks, rest = match.group("ask").lower(), match.group("rest")
        is_should = asks.startswith(("should", "shall")) and agrees
        is_new = (_NEW_WAY.search(rest) is not None) and not ALTERNATIVE.search(rest)
        if " you" not in asks and (is_should or is_new):
            return AskedChange("asked:change", match, 0.55)
    if (match := _ASKED_SHOULD.match(said)) and not _is_open_question(match.group("what")):
        return AskedChange("asked:should", match, 0.55)
    return None


def _asks_for_other_way(match: re.Match[str], *, agrees: bool) -> bool:
    rest, ask = match.group("rest"), match.group("ask")
    is_asking = _INFORMATION.search(f"{ask} {rest}"[:120])
    is_proposal = ask.lower().startswith(("how about", "what about", "what if"))
    if (is_asking or is_proposal) and not _has_contrast(rest) and not agrees:
        return False
    return not _asks_how_it_is(match)


def _asks_for_information(match: re.Match[str]) -> bool:
    rest = match.group("rest")
    return bool(is_chore(rest) or _INFORMATION.search(rest[:60]) or POINTS_AT_WORK.match(rest))


def _has_contrast(text: str) -> bool:
    return re.search(CONTRAST, text, re.IGNORECASE) is not None


def _asks_how_it_is(question: re.Match[str]) -> bool:
    """Whether a question wants to know how things are: `isn't it cached by default?`, `could it be that …?`."""
    ask, rest = question.group("ask"), question.group("rest")
    if _HOW_IT_IS.match(rest) or _ASKS_AFTER_COMMA.search(rest):
        return True
    if ask.lower().startswith(("how about", "what about")):
        return not _has_contrast(rest) and _PROPOSED.match(rest) is None
    match = _OF_A_THING.match(ask)
    is_of_thing = match is not None and (match.group() != match["verb"] or rest.startswith("the "))
    if not is_of_thing or _WEIGHS.match(rest):
        return False
    return not _has_contrast(rest) or ask.lower().startswith("wouldn")


def _is_open_question(what: str) -> bool:
    """Whether `we should …?` asks for information, or for the work at hand."""
    return bool(
        _HOW_IT_IS.match(what) or is_chore(what) or POINTS_AT_WORK.match(what) or _INFORMATION.search(what[:60]) or ALTERNATIVE.search(what)
    )  # fmt: skip
