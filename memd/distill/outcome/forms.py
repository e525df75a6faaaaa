"""How a sentence is formed, and what that says about it as a title. Pure.

An offer, a question and a pointer to what was said before name nothing; what was done, why it was and how things are
now name the outcome. The scores only order the candidates of one turn.
"""

import re

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
    r"^(?:it|this|that|these|those|they|which|he|she|there|both|each|the (?:key|main|first|second|other|latter|former|same)|here|such|for (?:example|instance))\b",
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
    r"^(?:re)?(?:\w+ed|built|made|wrote|rewrote|ran|found|took|put|set|split|moved|kept|cut|left|got|sent|chose|added)\b",
    re.IGNORECASE,
)
_SUBORDINATE = compile_lazily(
    r"^(?:when(?:ever)?|even (?:though|if)|looking at|given|since|if|while|because|although|though|after|before|once|until|for|in|on|with|by|as|where|what|which|who|how|why|per|from|at|under|within)\b[^,]*$",
    re.IGNORECASE,
)
_OPEN_END = compile_lazily(r"\b(?:to|that|for|if|when|than|like|be|been|these|those|in|with|of|by|the|a|an|as|and|or|from|on|at|is|are|was|were|it|now|will|does|do|would|could|should|shows?|means|includes?|explains?|covers?|cover|covering|following|i made to \S+)$", re.IGNORECASE)  # fmt: skip
_WEIGHS = compile_lazily(r"^(?:pros?|cons?|benefits?|trade-?offs?|note|examples?|usage|optional|option|approach|scenario|step|phase|case|test|line|file|location)\b(?: (?:\d+|[a-h]))?\s*[:(—–-]", re.IGNORECASE)  # dashes as people type them  # fmt: skip
_ADVISES = compile_lazily(
    r"\b(?:recommend\w*|suggest\w*|cleanest|simplest|best|better|propose\w*|i'd (?:go|say|keep)|should)\b",
    re.IGNORECASE,
)
BEFORE = compile_lazily(
    r"^(?:before|old|from|was)(?: \([^)]*\))?[:—–-]\s*(.+)$", re.IGNORECASE
)  # dashes as people type them
_QUESTION = compile_lazily(r"\?[\s\"')”*]*$")
_RULES = (
    (_QUESTION, -4.0),
    (_OFFERS, -5.0),
    (_TESTS_PASS, -2.5),
    (BEFORE, -2.5),
    (_WEIGHS, -1.5),
    (_SUBORDINATE, -1.5),
    (_POINTS_BACK, -1.3),
    (_SPEAKS_OF_SELF, -0.8),
    (_SAYS_STATE, 0.4),
    (_ADVISES, 0.6),
    (_SAYS_CAUSE, 0.8),
    (_ACTS, 0.9),
)
_LEADS, _LEADS_OPENLY = -0.5, -2.0


def points_back(text: str) -> bool:
    """Whether a sentence has its subject in one before: `It is kept for a week`."""
    return _POINTS_BACK.match(text) is not None


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
