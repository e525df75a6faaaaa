"""Ways to say what shall stand that are neither a norm nor a choice: habits, what is put off, how the system is. Pure.

`Keep committing after each step`, `can you always add a link?`, `let's leave this for later`, `prod is hosted on llm`,
`use uv as the package manager`, `I do not need to see the traces`. Each form begins at the head of a sentence.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memd.distill.dialogue.chores import is_chore
from memd.distill.sentences import is_question
from memd.distill.speech import verbs
from memd.distill.speech.own_words import read_own_sentences
from memd.models import Kind
from memd.patterns import compile_lazily
from memd.text import is_stop_word, words

LEAD = r"^\W*(?:(?:ok(?:ay)?|yes|yeah|yep|no+|so|well|also|and|but|then|actually|please|pls|right|great|good|perfect|nice|thanks|thank you|cool|hey|btw|again|i think|just)\b[\s,.:;!-]*)*"
_EACH = r"(?:each|every(?: single)?)\s+(?:\w+ ){0,2}?(?:steps?|things?|interactions?|changes?|tasks?|phases?|commits?|turns?|iterations?|edits?|features?|plans?|sessions?|fix(?:es)?|prs?|releases?|files?|milestones?)\b"
_ALWAYS = r"(?:as a matter of course|from now on|going forward|moving forward|in (?:the )?future|every ?time|each time|always|by default|as a habit|as a rule)"
_VERBS = r"(?P<verb>[a-z]+)(?:(?:,| and|, and) [a-z]+)*"
_TASK_TIME = r"(?:later(?! than)|another (?:time|day|pr|session|branch)|some other time|future (?:work|exploration|sessions?)|the (?:future|backlog)|down the road|(?:a|the) (?:later|future|separate|follow[- ]?up|next) (?:pr|session|step|phase|release|version|ticket|issue|iteration)|a follow[- ]?up|next (?:time|week|session|sprint|release|version|phase))"

_KEEP_EACH = compile_lazily(
    rf"{LEAD}(?P<rest>keep (?:on )?(?P<verb>[a-z]+)ing\b[^?;]{{0,80}}?\b(?:after|before|at|for|with|on)\s+{_EACH}.*)",
    re.IGNORECASE,
)
_KEEP_DOING = compile_lazily(
    rf"{LEAD}(?P<rest>(?:keep|continue) (?:on )?(?:doing|to do) (?:this|that|it|so)\b[^?;]{{0,60}}?\b{_ALWAYS})\b",
    re.IGNORECASE,
)
_CONTINUE = compile_lazily(
    rf"{LEAD}(?P<rest>i(?:'d| would)?(?: like| want| expect) you to (?:continue to|keep on|always) (?P<what>(?P<verb>[a-z]+)\b[^?]{{8,}}))",
    re.IGNORECASE,
)
_DO_EACH = compile_lazily(
    rf"{LEAD}(?P<rest>{_VERBS}\b[^?;,]{{0,60}}?\s(?:after|before)\s+{_EACH}.*)", re.IGNORECASE
)
_CAN_ALWAYS = compile_lazily(
    rf"{LEAD}(?:[^,?]{{2,40}},\s+)?(?P<rest>(?:(?:if|when|whenever|where) [^,?]{{4,80}}?,?\s+)?(?:can|could|would|will) you (?:please )?(?:always|never) (?P<verb>[a-z]+)\b[^?]{{6,}})",
    re.IGNORECASE,
)
_HAVE_ALWAYS = compile_lazily(
    rf"{LEAD}(?P<rest>can we (?:(?:always (?:have|get|show|use|keep)|have always)\b|(?:have )?(?:it so that )?(?:any ?time|every ?time|whenever|each time)\b)[^?]{{12,}})",
    re.IGNORECASE,
)
_PREFERS = compile_lazily(
    rf"{LEAD}(?P<rest>my (?:\w+ )?preference (?:is|would be) (?:that|to|for) [^?]{{8,}}|i prefer (?:that )?we (?!(?:do|use|go with) (?:this|that|it)\b)[^?]{{8,}})",
    re.IGNORECASE,
)
_USE_AS = compile_lazily(
    rf"{LEAD}(?P<rest>use (?!(?:it|this|that|these|those|them|the|an?|one|option|version)\b)[A-Za-z][\w./+@-]* as (?:the|our|my|your)(?: (?:default|main|only|primary))? (?!(?:base|basis|input|example|template|reference|title|name|start\w*|model for)\b)[a-z-]+(?: [a-z-]+){{0,2}})\W*$",
    re.IGNORECASE,
)
_UNWANTED = compile_lazily(
    rf"{LEAD}(?P<rest>i (?:really )?(?:don'?t|do not) (?:want|need|wish) to (?P<verb>[a-z]+)\b(?! (?:it|this|that|them|anything|everything)\b)[^?;]{{6,}})",
    re.IGNORECASE,
)
_WORRIES = frozenset(
    "break lose risk wait bother go talk think know deal spend waste worry start do be have get make sound rush say miss mess hurt end forget know understand imply change touch".split()  # noqa: SIM905
)
"""`I don't want to break the build` is a worry, not a wish."""
_PUT_OFF = compile_lazily(
    rf"{LEAD}(?P<rest>(?:let'?s|we(?:'ll| will| can| should)|i'?ll|i will)\s+(?:just )?(?:leave|do|handle|tackle|keep|save|take|put|set|park|postpone|defer|move|push|revisit|look at|get to|come back to|add|treat|consider)\s+(?P<what>[^?;]{{2,80}}?)\s+(?:aside )?(?:(?:for|as|until|to|in|on|at)\s+)?{_TASK_TIME}\b)",
    re.IGNORECASE,
)
_NAMES = r"(?:prod(?:uction)?|dev(?:elopment)?|staging|ci|(?:(?:the|our|my|all|both) )(?:[\w-]+ ){0,2}?(?:databases?|db|servers?|services?|repos?|repositor(?:y|ies)|back-?end|front-?end|api|logs|config(?:uration)?|secrets|keys|data|docs|documentation|pipelines?|clusters?|vps|vm|machine|website|site|packages?|images?|migrations))"
_IS_HOSTED = compile_lazily(
    rf"{LEAD}(?P<rest>{_NAMES}\s+(?:is|are|runs?|lives?)\s+(?:only |all |always |both )?(?:(?:local|remote|deployed|hosted|stored|located|installed|managed|built|served|generated|kept|mounted|released|published|maintained)\s+)?(?:on|in|at|by|via|under|behind|through|from)\s+(?!(?:the (?:left|right|top|bottom|way|same|middle)|fire|it|that|this|there|here|progress|sync|place|use|my mind|order|git)\b)[^?]{{3,}})",
    re.IGNORECASE,
)
_BY_ITSELF = compile_lazily(
    rf"{LEAD}(?P<rest>(?:if|when|whenever|once|as soon as|every time) (?:you|we|i|it|something|the [\w-]+)\b[^?]{{3,90}}\s(?:automatically|by it ?sel\w+|on its own)\b[^?]*)$",
    re.IGNORECASE,
)
_HAS_ACCESS = compile_lazily(
    rf"{LEAD}(?P<rest>you(?:'re| are) (?:in|on|inside) (?:an?|the|my) [\w -]{{2,30}}?(?:vm|container|sandbox|server|machine|worktree|vps)\b[^?]{{3,}}|you (?:do not|don'?t|only|can(?:not|'t)?) (?:have access to|access|reach) [^?]{{4,}})",
    re.IGNORECASE,
)
_OF_NOW = compile_lazily(
    r"\b(?:yet|right now|currently|at the moment|already|still|again|today|just|this time|now|for a (?:second|moment)|until|should|would|could|might|maybe|perhaps|if not|want|need|not sure|i think|i guess|why|wrong|broken|missing|failing|fixed)\b",
    re.IGNORECASE,
)


_OBJECTION_WORDS_MAX, _TELLING_WORDS_MIN = 40, 3
_OBJECTS = compile_lazily(
    rf"{LEAD}(?P<rest>(?:(?:don'?t|do not|never|not|leave|keep|use|only|we (?:don'?t|do not|never|always|only|should|must|use|want)|it should|this should)\b|(?:the|these|all|every) [^?]{{2,60}}? (?:should|must|needs? to|has to|goes)\b|[^?]{{4,80}}\binstead\b)[^?]*)$",
    re.IGNORECASE,
)
_OF_THIS_CALL = compile_lazily(
    r"\b(?:yet|now|again|first|wait|stop|hold on|let me|i(?:'ll| will| am|'m)|already|still|just (?:show|tell|explain|answer)|commit|push|explain|this time|before (?:you|we|i))\b|^\W*(?:keep (?:going|it up)|continue)\b",
    re.IGNORECASE,
)
"""What is said of the moment rather than of how things shall be."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A form that a sentence has. `what`: the group of the match that names it."""

    kind: Kind
    rule: str
    pattern: re.Pattern[str]
    confidence: float
    holds: Callable[[re.Match[str]], bool]
    what: str = "rest"
    is_question: bool = False
    """Whether the sentence may be a question."""
    needs_work: bool = False
    """Whether it counts only where the agent then did something, or agreed."""


def _is_work(match: re.Match[str]) -> bool:
    verb = match.group("verb").lower()
    return bool({verb, f"{verb}e", verb.removesuffix(verb[-1:])} & verbs.ALL)


def _is_wanted(match: re.Match[str]) -> bool:
    return _is_work(match) and re.search(r"\bor\b", match.group("rest"), re.IGNORECASE) is None


def _is_conduct(match: re.Match[str]) -> bool:
    return match.group("verb").lower() in verbs.ALL and not is_chore(match.group("what"))


def _is_unwanted(match: re.Match[str]) -> bool:
    is_worry = match.group("verb").lower() in _WORRIES
    return not is_worry and not _OF_NOW.search(match.group("rest").split(" to ", 1)[-1])


def _is_given_up(match: re.Match[str]) -> bool:
    """`I don't want to sign my commits any more` holds whatever the agent makes of it."""
    ends = re.search(r"\bany ?(?:more|longer)\W*$", match.group("rest"), re.IGNORECASE)
    return ends is not None and _is_unwanted(match)


def _is_put_off(match: re.Match[str]) -> bool:
    return not re.search(r"\b(?:or|sooner|rather)\b", match.string, re.IGNORECASE)


def _is_lasting(match: re.Match[str]) -> bool:
    return _OF_NOW.search(match.group("rest")) is None


WISHES = (
    Wish(Kind.INSTRUCTION, "said:habit", _KEEP_EACH, 0.75, _is_work),
    Wish(Kind.INSTRUCTION, "said:habit", _KEEP_DOING, 0.7, lambda _: True),
    Wish(Kind.INSTRUCTION, "said:habit", _CONTINUE, 0.7, _is_conduct, "what"),
    Wish(Kind.INSTRUCTION, "said:habit", _DO_EACH, 0.7, _is_work),
    Wish(Kind.INSTRUCTION, "asked:always", _CAN_ALWAYS, 0.7, _is_wanted, is_question=True),
    Wish(Kind.DECISION, "asked:always", _HAVE_ALWAYS, 0.6, lambda _: True, is_question=True, needs_work=True),
    Wish(Kind.PREFERENCE, "said:preference", _PREFERS, 0.7, lambda _: True),
    Wish(Kind.INSTRUCTION, "said:use-as", _USE_AS, 0.75, lambda _: True),
    Wish(Kind.PREFERENCE, "said:unwanted", _UNWANTED, 0.7, _is_given_up),
    Wish(Kind.PREFERENCE, "said:unwanted", _UNWANTED, 0.65, _is_unwanted, needs_work=True),
    Wish(Kind.TASK, "said:later", _PUT_OFF, 0.6, _is_put_off, "what"),
    Wish(Kind.FACT, "said:system", _IS_HOSTED, 0.6, _is_lasting),
    Wish(Kind.FACT, "said:system", _BY_ITSELF, 0.6, _is_lasting),
    Wish(Kind.FACT, "said:system", _HAS_ACCESS, 0.6, lambda _: True),
)  # fmt: skip


def find_wish(said: str, *, is_affirmed: bool) -> tuple[Wish, re.Match[str]] | None:
    """The first form that a sentence has; of one that is not affirmed, only those that ask."""
    for wish in WISHES:
        if is_affirmed or wish.is_question:
            match = wish.pattern.match(said)
            if match is not None and wish.holds(match):
                return wish, match
    return None


def find_objection(said: str) -> str:
    """The first sentence of a refusal if it says what is wanted instead; empty if it only stops or asks."""
    own = read_own_sentences(said)
    if not own or is_question(own[0].bare) or len(words(own[0].bare)) > _OBJECTION_WORDS_MAX:
        return ""
    match = _OBJECTS.match(own[0].said)
    if match is None or _OF_THIS_CALL.search(own[0].said):
        return ""
    title = own[0].text[own[0].start + match.start("rest") :].strip(" .,")
    telling = sum(not is_stop_word(word) for word in words(title))
    return title if telling >= _TELLING_WORDS_MIN else ""
