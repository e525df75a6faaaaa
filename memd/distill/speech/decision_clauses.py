"""Which clause of an affirmed sentence says that its speaker has decided something. Pure.

A clause decides where it stands by itself, in the first person, as done: `we almost decided`, `we were going to`,
`at my last job we chose` and `they decided` do not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memd.distill.speech.own_words import OwnSentence
from memd.distill.speech.pasted import OPAQUE

_SENTENCE_CHARACTERS_MAX = 600


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """A way to say a decision. `is_echo`: from the agent it counts only beside the user's own decision."""

    name: str
    pattern: re.Pattern[str]
    user: float
    """Confidence if the user says so."""
    assistant: float
    """The same for the agent; 0: it is no decision from the agent's mouth."""
    is_echo: bool = False


_LEAD = (
    r"(?:(?:ok(?:ay)?|so|and|but|then|right|well|alright|yes|no|yep|great|good|fine|thanks|please|also|now|noted|done|in the end|finally|after all"
    r"|fyi|btw|just so you know|for the record|(?:please )?(?:remember|note)(?: that)?|as (?:discussed|agreed|planned)|yesterday|today|this (?:morning|week)"
    r"|last (?:week|month)|after (?!that\b|it\b)[^,;:]{3,60}?(?=,|\s(?:we|i)\b)|for [^,;:]{2,50}(?=,)|because of [^,;:]{2,60}(?=,)|since [^,;:]{2,80}(?=,))[\s,]+)*"
)
_WE = r"(?:we|i|the team)(?:'ve|’ve| have)?(?: (?:now|finally|just|both|all|already|therefore|also|jointly|unanimously))*"
_CHOSE = (
    r"(?:chose|chosen|picked|opted for|opted to|selected|settled on|went with|went for|going with)"
)
_VERSUS = r"\b(?:rather than|instead of|in place of|over|in favou?r of)\b"
_FROM_NOW = r"(?:from (?:now|here|today|this point) on(?:wards?)?|henceforth|(?:going|moving) forward|effective immediately)"
"""`As of today the coverage is 71 %` says how things are, not how they shall be."""
_SETTING = r"(?:the|our|every|all|each|any)\s+(?:[\w./'-]+\s+){1,6}?(?:is|are|will be|becomes?|shall be|must be)\s+"
_VALUE = (
    r"(?=[^,;]*?(?:\d|(?-i:\b[A-Z])|" + OPAQUE + r")"
    r"|(?:now )?(?:enabled|disabled|on|off|mandatory|required|optional|forbidden|allowed|deprecated|private|public|strict|read-only)\b)"
    r"(?![^,;]*\b(?:times|than|slower|faster|green|red|broken|failing|passing|done|ready|fixed|yours|mine)\b)"
)
_PATH = r"(?:\S*[/\\]\S*|\S+\.[a-z]{1,4}\b|line|the|this|that|a|an|here|there|it|one|\d+)"


def _make(
    name: str, pattern: str, user: float, assistant: float, *, is_echo: bool = False
) -> DecisionRule:
    found = re.compile(_LEAD + pattern, re.IGNORECASE)
    return DecisionRule(f"decision:{name}", found, user, assistant, is_echo=is_echo)


_STATED = _make(
    "stated", r"(?P<end>(?:the |our )?decision (?:- |is (?:to|that|made)\b)\S?)", 0.9, 0.8
)
_CHANGED_MIND = _make(
    "changed-mind", rf"(?P<end>{_WE} chang(?:ed|ing) (?:our|my) minds?\b)", 0.85, 0.0
)
_RULES = (
    _STATED,
    _CHANGED_MIND,
    _make("decided", rf"(?P<end>{_WE} (?:decided|agreed) (?:to|on|that|against|not|for)\b)", 0.85, 0.7),
    _make("chose", rf"(?P<end>{_WE}(?:'re| are)? {_CHOSE}\b).*?(?:{_VERSUS}|\bbecause\b)", 0.85, 0.75),
    _make("chose", rf"(?P<end>(?:we|the team)(?:'ve| have|'re| are)?(?: now| finally)? {_CHOSE}\b)", 0.75, 0.0),
    _make("no-longer", r"(?P<end>we(?:'re| are)? no longer (?:use|using|keep|store|run|want|support|supporting|need(?! (?:to|the|this|that|it|these)\b)|ship|maintain)\b)", 0.8, 0.0),
    _make(
        "switched",
        r"(?P<end>(?:we(?:'re| are|'ve| have|'ll| will)?|let'?s)(?: now)? (?:(?:switch|migrat|chang)\w*\b[^,;]{0,60}?|(?:mov|go)\w*(?: back| over)?)"
        rf"\s+(?:from\s+(?!{_PATH}[\s,])[^,;]{{1,80}}?\bto\s+(?!{_PATH}\b)|back to (?!\w+ing\b|(?:what|where|how|work|main|master|it|that|this)\b|the \w+ branch\b)|over to ))",
        0.75, 0.0,
    ),
    _make(
        "rather-than",
        r"(?P<end>we(?:'ll| will)?(?: now| always)? (?:keep|use|stay|stick|store|run|put|build|write|deploy|host)\b)[^;]*?"
        r"(?:\b(?:rather than|instead of|in place of)\b|, not\b)",
        0.7, 0.0,
    ),
    _make("rather-than", r"(?P<end>(?:\S+ ){1,8}?(?:stay|stays|move|moves|remain|remains|live|lives|go|goes|keep|use) )[^;]*?\b(?:rather than|instead of)\b"
          r".{1,200}\b(?:because|since)\b", 0.0, 0.6, is_echo=True),
    _make("value", rf"(?P<end>{_FROM_NOW}[\s,:]+{_SETTING}){_VALUE}", 0.8, 0.0),
    _make("value", rf"(?P<end>{_SETTING}){_VALUE}[^,;]*?\s{_FROM_NOW}[\s.!]*$", 0.8, 0.0),
    _make("going-with", r"(?P<end>let'?s (?:go with|stick (?:with|to)|settle on|stay with)\s+(?!this\b|that\b|it\b))", 0.65, 0.0),
)  # fmt: skip
_MOVED = re.compile(
    r"(?:mov|go|went)\w*(?: back| over)? from (?P<old>\S+) to (?P<new>[^\s,;.!]++)(?! for (?:(?:the|our|all) )?[a-z]+s\b)"
)
_TOLD_SOMEWHERE = re.compile(
    r"\b(?:in|on|from|at) (?:the|this|that|an?|my|your|our|his|her|their) (?:\w+ )?(?:tutorials?|examples?|books?|papers?|videos?|talks?|courses?"
    r"|articles?|posts?|blogs?|stor(?:y|ies)|novel|film|movie|games?|dreams?|demos?|samples?|interviews?|threads?|newsletters?|lectures?|case stud(?:y|ies))\b",
    re.IGNORECASE,
)
_PLAIN_NAME = re.compile(r"[A-Z][a-z]+")
_LABEL = re.compile(r"(?:.*\W)?(?:decision(?: (?:is|was))?|decided)", re.IGNORECASE)
_LABEL_CHANGED_MIND = re.compile(r".*\bchanged (?:our|my) minds?\b.*", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:if|unless|until|whether|once|in case|suppose|supposing|assuming|imagine) (?:we|you|i|it|they|the)\b"
    r"|\b(?:haven't|have not|hasn't|not yet|didn't|did not|yet to|should we|could|would|might|(?-i:may)|maybe|perhaps|undecided|almost|nearly|about to"
    r"|going to|planned to|tried to|wanted to|wish|hope|thought|think|believe|guess|let's say|say we|never|originally|initially|at first|back then"
    r"|used to|once|previously|formerly|at my (?:last|old|previous|former|other)|in my (?:last|old|previous|former)|in (?:19|20)\d\d|years? ago|had"
    r"|probably|possibly|theory|theoretically|not sure|pretend|wrong|false|not true|can't|cannot)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|might|could|would|probably|possibly|undecided|not sure|not yet|yet to|haven't|hasn't|pretend|whether|suppose|assuming)\b",
    re.IGNORECASE,
)
_PENDING = re.compile(
    r"\s*(?:none|tbd|pending|open|postponed|unknown|unclear|not (?:yet|made)|still|to be|n/a|later|whether|wait|see|either|should|do we|is it)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:but then|and then|then (?:dropped|reverted|changed)|only to|later (?:dropped|reverted)|dropped it|reverted it|undid|never happened|regret\w*"
    r"|was a mistake|was wrong|turned out|in retrospect|which (?:is|was) (?:the |a )?(?:bug|problem|wrong|mistake|why)|which (?:breaks|fails)|by (?:mistake|accident)"
    r"|accidentally|that's (?:the|why|wrong)|wrongly|the wrong|or (?:did|do) we|or not|or something|or similar|i (?:think|guess|believe)|if i)\b",
    re.IGNORECASE,
)
_NO_CHOICE = re.compile(
    r"\s*(?:disagree|nothing|poorly|badly|wisely|well\b|review|meet|talk|discuss|revisit|wait|postpone|look|try|see|go home|call it|take a|have a|think|decide|defer|ask|leave (?:it|this|that)"
    r"|rename (?:it|this)|do (?:it|this|that)|it\b|this\b|that we (?:will|should) (?:discuss|talk|meet))",
    re.IGNORECASE,
)
_ONE_PLACE = re.compile(
    r"\b(?:tomorrow|tonight|next week)\b|\b(?:here|there|in (?:this|that|the) (?:file|function|test|case|line|method|class|loop|branch|pr)|this (?:file|function|test|case|line|method|variable"
    r"|import|parameter|argument|flag|one|time)|that (?:file|function|test|case|line|method|variable|import|parameter|one))\b",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(
    r"[,;]\s+(?:(?:and|but|so|then)\s+)?|\s+(?:and|but|so)\s+|\s[–—]\s", re.IGNORECASE
)  # dashes as people type them
_HEARSAY = re.compile(
    r"\b(?:upstream|elsewhere|other (?:team|project)s?|their|his|her|competitors?|typical(?:ly)?|usually|example|option|alternatively|proposal|proposed|suggestion"
    r"|recommend\w*|if you (?:like|want|prefer|agree)|could|would|adr|rfc|readme|docs?|documentation|page|article|upstream's|changelog|commit message|authors?"
    r"|maintainers?|they|plan(?:ned|s)?)\b",
    re.IGNORECASE,
)
"""The agent talks about what others do, or offers something."""


def find_decision(sentence: OwnSentence, *, is_users: bool) -> DecisionRule | None:
    """How an affirmed sentence decides something; None if it does not."""
    if len(sentence.text) > _SENTENCE_CHARACTERS_MAX or (
        not is_users and _HEARSAY.search(sentence.bare)
    ):
        return None
    said = sentence.said
    if rule := _find_labelled(sentence):
        is_open = _PENDING.match(said) or _UNSURE.search(said[:60]) or _TAKEN_BACK.search(said)
        return None if is_open or not (rule.user if is_users else rule.assistant) else rule
    for start in _clause_starts(said):
        for rule in _RULES:
            match = (
                rule.pattern.match(said, start) if _confidence(rule, is_users=is_users) else None
            )
            if match and _is_decided(said, match):
                return rule
    return None


def _confidence(rule: DecisionRule, *, is_users: bool) -> float:
    return rule.user if is_users else rule.assistant


def _find_labelled(sentence: OwnSentence) -> DecisionRule | None:
    if _LABEL.fullmatch(sentence.lead):
        return _STATED
    return _CHANGED_MIND if _LABEL_CHANGED_MIND.fullmatch(sentence.lead) else None


def _is_decided(said: str, match: re.Match[str]) -> bool:
    end = match.end("end")
    clause_end = match.end()
    return not (
        _TOLD_SOMEWHERE.search(said[: match.start("end")]) or _is_relocation(said[match.start() :]) or _OPEN.search(said[:end]) or _OPEN.search(said[end:clause_end])
        or _TAKEN_BACK.search(said) or _NO_CHOICE.match(said[end:]) or _ONE_PLACE.search(said)
    )  # fmt: skip


def _is_relocation(clause: str) -> bool:
    """Whether people may be what moves: `we're moving from Berlin to Hamburg`, which names no thing."""
    found = _MOVED.search(clause)
    return found is not None and all(_PLAIN_NAME.fullmatch(name) for name in found.groups())


def _clause_starts(said: str) -> Iterator[int]:
    yield len(said) - len(said.lstrip())
    yield from (match.end() for match in _CLAUSE_START.finditer(said))
