"""How a sentence is formed, and what that says about it as a title. Pure.

An offer, a question and a pointer to what was said before name nothing; what was done, why it was and how things are
now name the outcome. The scores only order the candidates of one turn.
"""

import re

from memd.distill.speech import verbs
from memd.patterns import compile_lazily

_WORDS_MIN = 4
_OFFERS = compile_lazily(
    r"^(?:(?:would|do|did|should|shall|could|can|may|might) (?:you|i|we)|want (?:me|to)|let me|let(?:'s|’s)|if (?:you|this|that|it)|you (?:can|could|may|might|should|need|have|will|'ll)|try |ready |feel free|please|run |next|to (?:test|run|try|use|verify|apply|see|start|enable)\b"
    r"|i(?:'ll|’ll| will|'m|’m| am|'d| can| could| need| should| would| want| was| don'?t| didn'?t| couldn'?t)\b|we(?:'ll|’ll| will| can| could| should)\b|what(?:'s|’s| is)? (?:next|would|do you|else|should)|anything else|which (?:one|option|approach|would|do)|how (?:would|do|should)|happy to|just let|waiting|once (?:you|that|this)|when you|after (?:you|that))",
    re.IGNORECASE,
)
_TESTS_PASS = compile_lazily(
    r"^(?:all |the |both |every )?(?:\d+ )?(?:(?:existing|new|unit|integration|e2e|full|the|and|build|lint\w*|type|other) )*(?:tests?|checks?|lint\w*|build|suite|specs?|code|everything|compil\w+|type ?check\w*|ci|formatting)\b.{0,40}\b(?:pass\w*|clean\w*|green|succe\w+|compil\w+|fine|ok|issues|works|builds?|complete)\b",
    re.IGNORECASE,
)
_POINTS_BACK = compile_lazily(
    r"^(?:it|this|that|these|those|they|which|he|she|there|both|each|the (?:key|main|first|second|other|latter|former|same)|here|such|for (?:example|instance)|their|his|her)\b",
    re.IGNORECASE,
)
_OBJECT_BEFORE = compile_lazily(
    r"^\w+ed (?:(?:it|them)\b|(?:this|that|these|those|both) (?:to|in|into|from|by|with|and|so|for|on|as)\b)",
    re.IGNORECASE,
)
"""`Moved it to the cellar`, of what was named before."""
_GENERAL_SUBJECT = compile_lazily(
    r"^the (?:function|method|comment|script|test|command|code|change|hook|button|section|page|tool|service|table|field|value|check|error|message|plan|doc|document|class|fix|approach|logic|feature) (?!of\b|in\b|for\b|on\b|that\b|which\b|to\b|from\b|with\b|at\b|between\b|`)",
    re.IGNORECASE,
)
_SPEAKS_OF_SELF = compile_lazily(
    r"\b(?:i|i'm|i've|i’ve|i'll|my|me|we|we're|our|let's|you|your|you're)\b", re.IGNORECASE
)
_SAYS_CAUSE = compile_lazily(
    r"\b(?:root cause|caused by|because|due to|the (?:\w+ )?(?:bug|issue|problem|cause|culprit|reason|error|failure)s? (?:is|was|were|are|came|comes|lies|turned)|turns out|only (?:if|when|works)|cannot|can't|never)\b",
    re.IGNORECASE,
)
_SAYS_STATE = compile_lazily(r"\b(?:now|no longer|instead of|already|only)\b|→", re.IGNORECASE)
_ACTS = compile_lazily(
    r"^(?:[^:–—]{1,40}(?::|\s[–—-])\s+)?(?:re)?(?:\w+ed|built|made|wrote|rewrote|ran|found|took|put|set|split|moved|kept|cut|left|got|sent|chose|added)\b",
    re.IGNORECASE,
)  # dashes as people type them
_ACTED = compile_lazily(r"^(?:re)?\w+ed\b", re.IGNORECASE)
_SUBORDINATE = compile_lazily(
    r"^(?:when(?:ever)?|even (?:though|if)|looking at|given|since|if|while|because|although|though|after|before|once|until|for|in|on|with|by|as|where|what|which|who|how|why|per|from|at|under|within)\b[^,]*$",
    re.IGNORECASE,
)
_OPEN_END = compile_lazily(r"\b(?:to|that|for|if|when|than|like|be|been|these|those|in|with|of|by|the|a|an|as|and|or|from|on|at|is|are|was|were|it|now|will|does|do|would|could|should|shows?|means|includes?|explains?|covers?|cover|covering|following|i made to \S+)$", re.IGNORECASE)  # fmt: skip
_WEIGHS = compile_lazily(r"^(?:sources?|references?|see also|(?:rough )?timeline|eta|progress|pros?|cons?|benefits?|trade-?offs?|note|alternatives?(?: considered)?|examples?|usage|optional|option|approach|scenario|step|phase|case|test|line|file|location)\b(?: (?:\d+|[a-h]))?\s*[:(—–-]", re.IGNORECASE)  # dashes as people type them  # fmt: skip
_ADVISES = compile_lazily(
    r"\b(?:recommend\w*|suggest\w*|cleanest|simplest|best|better|propose\w*|i'd (?:go|say|keep)|should)\b",
    re.IGNORECASE,
)
BEFORE = compile_lazily(
    r"^(?:before|old|from|was)(?: \([^)]*\))?[:—–-]\s*(.+)$", re.IGNORECASE
)  # dashes as people type them
_ORDER = compile_lazily(
    r"^([a-z-]+) (?:(?:the|an?|your|this|that|it|these|to|on|for|in|with|all|any|each|my|both|up|out|again|me)\b|`)",
    re.IGNORECASE,
)
_STILL_TO_COME = compile_lazily(
    r"\bshould (?:now |then |definitely |automatically )?(?:be|see|work|appear|load|complete|pick|pass|deploy)\b|\bwill (?:now |then )?(?:automatically )?(?:be (?:live|deployed|built|available)|deploy|complete|take|pick)\b"
    r"|\bin progress\b|\bqueued\b|\bin (?:about |around |~)?(?:a|\d[\d –-]*) ?(?:min|minutes?|seconds?|s)\b|\bis (?:now )?(?:running|deploying)$|^(?:deployed|deploying|pushed|committed|ready to)\b",
    re.IGNORECASE,
)  # dashes as people type them
_SIDE_REMARK = compile_lazily(
    r"^(?:plus|also|everything else|otherwise|separately|side note|as a bonus|apart from)\b|\bnot a real\b|\bno (?:further )?(?:action|changes?) (?:is |are )?(?:needed|required|necessary)\b|\bpre-?existing\b|\bunrelated\b|\b(?:can be|safely) ignored?\b|\b(?:don't|doesn't|won't|do not|does not) affect\b|\bunchanged\b"
    r"|\b(?:un|not (?:yet )?)(?:committed|pushed|staged)\b|^[^.,;:]{2,50}\bstill (?:at|the same|as before)\b|\bleft\b[^.;]{3,80}\b(?:untouched|alone|as[- ]is|as (?:it|they) (?:is|are|was|were))\b",
    re.IGNORECASE,
)
_ASIDE = compile_lazily(
    r"^\W*(?:(?:one|two|three|a|an|some|the|another|small|minor|quick|other|few|last|final)\s+)*(?:notes?|heads?-?ups?|caveats?|trade-?offs?|leftovers?|loose ends?|side ?notes?|fyi|btw|by the way|reminders?|disclaimer|gotchas?|footnotes?|nits?|(?:open |known )?limitations?)\b(?: (?:on|about|of|for|i|we|here|worth)\b[^:–—]{0,40})?\s*(?:[:,(–—-]|$)"
    r"|^\W*(?:also )?(?:worth (?:noting|knowing|flagging|mentioning|a look)|for completeness|for the record|for reference|(?:one|two|three|a few) (?:\w+ )?(?:things?|points?|details?|notes?|caveats?)\b)"
    r"|^\([^()]+\)?$",
    re.IGNORECASE,
)  # dashes as people type them
"""A remark beside what was done: `One heads-up: …`, or a whole sentence in brackets."""
_PLEASED = compile_lazily(
    r"^(?:glad|great|happy|nice|sorry|thank)\b|\bapologi[sz]e|\blooks? (?:much |really |very |now )?(?:good|great|better)\b|\b(?:works?|working) (?:perfectly|as expected)\b|\bfully (?:functional|operational|synchroni[sz]ed)\b|\b(?:working tree|history|everything) is (?:now )?(?:clean|working|done|ready|up)\b|^[^.,;]{0,40}\bup to date\b",
    re.IGNORECASE,
)
_ANNOUNCES = compile_lazily(
    r"(?:,? (?:and|which|that|so)(?: \w+){0,2})? (?:these|the following)(?: \w+)?$"
    r"|(?: [-–—]|,|;|,? and| -) (?:it|which|that)(?: \w+)? (?:describes?|explains?|shows?|covers?|includes?|contains?|says?|does|has)$"
    r"|,? (?:with|in|using|by) (?:the following|this|these)(?: \w+){0,2}$"
    r"|,? (?:with|including|because|to|that|when|if|as|and|like|such as|by|for|where|so|which|using|is|are|covering|as follows)$",
    re.IGNORECASE,
)
_HANDED_OVER = compile_lazily(
    r"^(?:(?:all|both|the|these|everything|\d+|two|three)\b.{0,60}\b)?(?:(?:have|has) been|are|is|was|were) (?:now |all |both |also )*(?:success\w* )?(?:committed|pushed|deployed|merged|in (?:github|place))\b"
    r"|^(?:(?:all|both|the|these|two|three|four|requested|\d+) )+(?:\w+ )?(?:changes|fixes|updates|tasks|steps|items|phases|points|comments)\b(?: \w+)? (?:are|have been|were) (?:now )?(?:implemented|made|done|complete[d]?|applied|in place|addressed|fixed|finished)\b"
    r"|^\d+ files? changed\b|^commit(?:ted|s)?\b.{0,12}\b(?:success\w*|created|complete|includes|as)\b|^the commit (?:is|was|includes|contains|has)\b|^(?:the )?(?:branch|changes?|code|commits?) .{0,30}\b(?:is|are|was|were) (?:now )?(?:pushed|committed|live)\b",
    re.IGNORECASE,
)
_BEGINS_TO = compile_lazily(
    r"^(?:walking|looking|going|reading|checking|running|starting|continuing|synthesi[sz]ing|pulling|digging|moving|proceeding|working|waiting|thinking|loading|gathering|launching|kicking|beginning|reviewing|analy[sz]ing|investigating|exploring|examining|testing|verifying|writing|creating|adding|updating|amending|fixing|applying|building|cleaning|preparing|committing|pushing)\b(?![^.;]*\b(?:is|are|was|were|has|have|had|does|did|will|would|can|means|shows|takes|fails|works|needs|gives|makes|requires)\b)"
    r"|^(?:got|have|seen|read|loaded|gathered|received)\b(?! (?:rid|to)\b)"
    r"|^(?:there (?:is|are) )?(?:a few|a couple of|some|several|many|two|three|four|five|six|\d+)(?: \w+){0,2} (?:ways?|options?|things?|questions?|points?|candidates?|approaches|choices|possibilities|reasons)\b(?: (?:to|i|you|we|that|for|of|here|remain\w*)\b[^,;:–—]*)?(?:$|[,:–—])",
    re.IGNORECASE,
)
"""What the agent is about to do, or has in hand now: `Walking through the log`, `Got the review comment`."""
_SHOUTS = compile_lazily(r"^[^a-z]*[A-Z]{2,}[^a-z]*$|^([\"“'])[^\"”]+[\"”']\W*$")
"""Capitals alone, or a quotation alone: what was written, not what was done."""
_STILL_AT_IT = compile_lazily(
    r"\b(?:is|are) (?:now |still |already )?(?:running (?:in|now|and)|in flight|under ?way)\b|\bthe following (?:changes|updates|files|edits)\b|^(?:good,? |ok(?:ay)?,? |now,? )*(?:i |we )?(?:now )?have (?:all|everything|enough|(?:the )?full|a (?:\w+ )?(?:clear|good|full|complete|comprehensive|solid)|thorough)\b",
    re.IGNORECASE,
)
_LACKS = compile_lazily(
    r"\bi (?:don['’]?t|do not|can['’]?t|cannot|couldn['’]?t) (?:have|see|find|access|tell)\b",
    re.IGNORECASE,
)
_WAS_SO = compile_lazily(
    r"^(?:when (?:the |a |an )?\S+ (?:was|were|had)\b|[^,;:]{2,70}\b(?:was|were) already\b)|^[^,;:]{2,70}\b(?:was|were) (?:(?:only|being|incorrectly|still|not|never|always|just|silently|wrongly)\b|\w+ing\b)",
    re.IGNORECASE,
)
"""How things were before they were mended."""
_GOES_ON = compile_lazily(r"^(?:\.{3}|…)")
"""The second half of something: `...and likewise in the parser`."""
_HANDS_TO_USER = compile_lazily(
    r"^(?:please |now |ok(?:ay)?,? )*(?:try|test|reload|refresh|re-?run|check|go ahead|give it)\b[^.;]{0,40}\b(?:now|again|a try|a go|a spin)\b|\b(?:i['’]m|i am|i['’]ll be) (?:watching|waiting|monitoring)\b",
    re.IGNORECASE,
)
"""What the user is to do next: `Try it now — I'm watching the logs`."""
_QUESTION = compile_lazily(r"\?[\s\"')”*]*$")
_RULES = (
    (_QUESTION, -4.0),
    (_OFFERS, -5.0),
    (_GOES_ON, -3.0),
    (_HANDS_TO_USER, -3.0),
    (_STILL_AT_IT, -5.0),
    (_LACKS, -2.0),
    (_HANDED_OVER, -3.5),
    (_TESTS_PASS, -2.5),
    (_STILL_TO_COME, -3.0),
    (_PLEASED, -2.5),
    (_SIDE_REMARK, -1.5),
    (_ASIDE, -2.0),
    (_BEGINS_TO, -2.5),
    (_SHOUTS, -2.0),
    (BEFORE, -2.5),
    (_WEIGHS, -1.5),
    (_SUBORDINATE, -2.5),
    (_POINTS_BACK, -1.3),
    (_SPEAKS_OF_SELF, -0.8),
    (_SAYS_STATE, 0.4),
    (_ADVISES, 0.6),
    (_SAYS_CAUSE, 0.8),
    (_ACTS, 0.9),
)
_ACTED_SCORE, _WAS_SCORE = 0.7, -2.0
_LEADS, _LEADS_OPENLY = -0.5, -2.0


def close_end(text: str) -> str:
    """The text without the words at its end that only announce what followed them."""
    before = ""
    while text != before:
        before = text
        text = _ANNOUNCES.sub("", text).rstrip(" ,;:–—-")  # dashes as people type them
    return text


def is_aside(text: str) -> bool:
    """Whether a sentence is announced as a remark beside what was done: `Note: the old name still works`."""
    return _ASIDE.match(text) is not None


def is_order(text: str) -> bool:
    """Whether a sentence tells the user what to do: `Open the page in your browser`."""
    match = _ORDER.match(text)
    return match is not None and match[1].lower() in verbs.ALL


def points_back(text: str) -> bool:
    """Whether a sentence has its subject in one before: `It is kept for a week`."""
    return has_pronoun(text) or _GENERAL_SUBJECT.match(text) is not None


def has_pronoun(text: str) -> bool:
    """Whether a sentence speaks of something named before only as `it` or `this`: `Moved it to the cellar`."""
    return bool(_POINTS_BACK.match(text) or _OBJECT_BEFORE.match(text))


def rate_for_work(text: str) -> float:
    """What a sentence's form adds after work was done: that tells more than how things were before."""
    return _ACTED_SCORE * (_ACTED.match(text) is not None) + _WAS_SCORE * (
        _WAS_SO.match(text) is not None
    )


def rate_form(text: str, *, leads: bool) -> float:
    """What the form of a sentence adds to its score; `leads`: a colon followed it."""
    score = sum(weight for pattern, weight in _RULES if pattern.search(text))
    missing = _WORDS_MIN - len(text.split())
    score -= 2.0 + missing if missing > 0 else 0.0
    if _OPEN_END.search(text):
        score += _LEADS_OPENLY
    elif leads:
        score += _LEADS
    return score
