"""What keeps a clause from being said of work in general: hedges, one place, descriptions, other people. Pure."""

import re

from memd.distill.sentences import strip_politeness
from memd.distill.speech import verbs
from memd.distill.speech.pasted import OPAQUE
from memd.patterns import compile_lazily
from memd.text import STOP_WORDS, first_word, words

HEDGE = compile_lazily(
    r"\b(?:would(?! like you| prefer)|wouldn't|could|might|(?-i:may)|maybe|perhaps|possibly|probably|suppose|supposing|supposedly|imagine|assume|assuming"
    r"|hypothetical(?:ly)?|theor(?:y|etically)|ideally|let's say|say we|what if|as though|were to|wish|hope|hopefully|wonder|not sure|unsure"
    r"|i guess|i think|considering|thinking|thought|tempted|toying|whether|undecided|someday|one day|if (?!you\b|we\b))\b"
    r"|\bif we (?:were|had|would|could|always|never|did)\b",
    re.IGNORECASE,
)
TURNED_DOWN = compile_lazily(
    r"\b(?:not (?:true|that|saying|asking)|n't (?:want|need|have to|mean|think|say|ask|agree)|no (?:need|reason|longer)|wrong|false|nonsense|stop \w+ing|instead of"
    r"|rather than|tired of|sick of|against|without|refuse)\b",
    re.IGNORECASE,
)
ONE_PLACE = compile_lazily(
    r"\b(?:here|there|these|those|this time|for now|just now|right now|today|tonight|this (?:week|month|sprint|release)|until|till|temporarily"
    r"|for the (?:moment|time being|demo|release|presentation)|while (?:we|you|i)|this (?!repo\b|repository\b|project\b|codebase\b|code base\b"
    r"|monorepo\b|workspace\b|team\b|is\b|are\b|you\b|we\b|the\b|it\b|they\b|can\b|could\b|may\b|must\b|has\b|have\b|needs?\b|all\b|every\b|a\b"
    r"|\w+s (?:the|a|an|to|in|on|it|them|your)\b)\w+"
    r"|(?:in|on|at|for|of|with|to|from|use|using|by) that \w+|(?:this|that)(?=[\s.!,]*$)|then(?=[\s.!]*$)|in (?:the|that|this|my) (?:\w+ )?(?:file|function|case|line|test|one|pr(?! (?:description|title|body|text))|commit(?! (?:messages?|body|title))|branch(?! names?)|method|class|module|loop|mock"
    r"|script|endpoint|handler|component|dialog|page|form|view|table|query|example|output|parser|response|task|step|first|second|last))\b",
    re.IGNORECASE,
)
IN_ONE_NAME = compile_lazily(
    r"\b(?:in|inside|within|from) (?:[a-z]+[A-Z]\w*|\w+_\w+|\w+\(\))(?![\w./])"
)
"""`in loadUser`: a name of code, not a path."""
ONE_THING = compile_lazily(
    r"\s*(?:the|this|that|these|those|it|its|them|they|him|her|me|a|an|one|null|none|nil|true|false|undefined|zero|nothing|there|here|\d+)\b",
    re.IGNORECASE,
)
PRONOUN = compile_lazily(
    r"\s*(?:it|its|them|this|that|these|those|one|him|her|so|again)\b", re.IGNORECASE
)
MENTIONED = compile_lazily(
    r"^(?:(?!\b(?:that|what|which|who|when|whenever|if|while|because|where|how|whether|before|after|until|as|unless|since|you|we|it|i|they|there|so"
    r"|everything|anything|whatever|all|everyone|nothing)\b)[^,;.:])*?"
    r"\b(?:is|was|are|were|isn't|wasn't|seems?|sounds?|looks? (?:like|wrong|silly|odd)|makes no|makes sense|would|does(?:n't| not)|no longer"
    r"|(?:is )?(?:a )?(?:silly|stupid|bad|good) (?:rule|idea|advice))\b",
    re.IGNORECASE,
)
"""`always use tabs is a silly rule` talks about a rule."""
REASON = compile_lazily(
    r"[,;(]|\s(?:because|since|so that|as it|as we|but|otherwise|unless|[–—-])\s", re.IGNORECASE
)  # dashes as people type them
PEOPLE = frozenset(
    """users customers clients developers contributors people engineers reviewers maintainers authors callers readers
    teams members employees admins administrators operators servers companies owners vendors consumers programmers""".split()  # noqa: SIM905  # a page of quotes reads worse
)
NO_POLICY = frozenset(
    """get see have hide find forget fail run hit assume think lose know need call check close release free set unset read
    update validate test handle reset refresh wait stop start end finish flush show return send load catch receive be do
    give take go look try reach verify clear await open output emit raise throw register init initialise initialize match
    increment""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""`We never validate the input` reports a fault rather than a policy."""
_DISCOURSE = frozenset(
    """yes no ok okay well right great good thanks thank please hey hi perfect nice cool done sorry actually also first
    second finally lastly otherwise anyway fine agreed let let's lets i'm i'll i'd i've we're we'll we've we'd you're it's
    that's there's don't dont isn't doesn't important everything nothing one two three fyi btw tests test""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_TRANSIENT = compile_lazily(
    r"\b(?:broken|red|green|failing|down|up|running|done|ready|back|fixed|merged|pushed|deployed|finished|away|out|busy|late|tired|here|now|currently|today"
    r"|tomorrow|yesterday|tonight|just|already|still|again|this|these|those|(?:the|other|first|last) (?:second|first|two|other|last|next)|second|i|i'm|i'll|i've|me|my|meeting|bug|yet|soon)\b",
    re.IGNORECASE,
)
_STATES = compile_lazily(
    r"(?:(?:the|our|all|every|each|any|an?|no|my|most|some|both|only|on|in|for|at|with|under)\s+)?(?:[\w./'-]+\s+){1,7}?"
    r"(?:is|are|has|have|can|cannot|can't|must|mustn't|should|needs?|runs?|uses?|lives?|supports?|requires?|expects?|accepts?|returns?|sends?|stores?|keeps?|goes"
    r"|belongs?|comes?|depends?|contains?|means?|works?|reads?|writes?|starts?|stops?|never|always|don't|doesn't|do not|does not|isn't|aren't|deploys?|ships?|listens?"
    r"|serves?|handles?|owns?|builds?|holds?|limits?|allows?|blocks?|closes?|expires?|rotates?|caches?|will|won't|was|were)\b",
    re.IGNORECASE,
)
VAGUE_SUBJECT = compile_lazily(
    r"(?:it|he|she|they|that|this|there|i|you|these|those|when|what|how|why|if|one|someone|something|to)\b",
    re.IGNORECASE,
)
_FINITE = compile_lazily(r"\b(?:when|we (?:had|did|were|saw|got|made|changed)|you (?:had|did|were|made|changed|wrote))\b", re.IGNORECASE)  # fmt: skip
NO_TASTE = compile_lazily(
    r"(?:the|this|that|these|those|it|its|if|option|number|version|variant|plan|your|his|her|their|them|not to|to (?:\w+ )?(?:the|this|that|it|them|these)"
    r"|\w+ing (?:the|this|that|it)|#?\d|[a-d]\b|you|we|having|an?other|something|what|how|one|two|both|neither|none|no\b|for|when (?:it|that|this)|" + OPAQUE + r")(?:\b|\d)",
    re.IGNORECASE,
)  # fmt: skip


def is_statement(said: str) -> bool:
    """Whether a text says how something lastingly is, not what happened or was meant."""
    return (
        (_STATES.match(said) is not None or _has_verb(said))
        and not VAGUE_SUBJECT.match(said)
        and not _TRANSIENT.search(said)
        and not HEDGE.search(said)
        and not _FINITE.search(said)
    )


def _has_verb(said: str) -> bool:
    """Whether a word near the beginning, not the first, is a verb in the third person: `the sandbox rejects …`."""
    return any(w.endswith("s") and w[:-1] in verbs.ALL for w in map(str.lower, words(said)[1:7]))


def is_order(said: str) -> bool:
    """Whether this begins with an order."""
    first = first_word(strip_politeness(said))
    return first in verbs.ALL


def is_english(word: str) -> bool:
    """Whether a word is one of the English ones known here, in any of its usual forms."""
    bases = (
        word,
        word.removesuffix("s"),
        word.removesuffix("es"),
        word.removesuffix("ed"),
        word.removesuffix("d"),
        word.removesuffix("ing"),
    )
    return word in _DISCOURSE or word in STOP_WORDS or any(base in verbs.ALL for base in bases)
