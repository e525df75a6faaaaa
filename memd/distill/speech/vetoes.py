"""The sentences that a speaker affirms himself: not asked, reported, supposed, ironic or given as an example. Pure."""

import re
from collections.abc import Sequence

from memd.distill import text as sentences
from memd.distill.speech import verbs
from memd.distill.speech.own_words import OwnSentence
from memd.patterns import compile_lazily
from memd.text import STOP_WORDS, first_word, words

_SAYS = (
    r"(?:says|said|saying|claimed|claiming|insists?|insisted|insisting|believes?|believed|argues?|argued|suggests?|suggested"
    r"|suggestion|recommends?|recommended|recommendation|advises?|advised|advice|tells|told|telling|wrote|stated|mentioned"
    r"|demanded|complains?|complained|complaining|warns|warned|reported|proposes?|proposed|thinks|thought|wants"
    r"|wanted|wishes|requires|required|expects|expected|preaches|swears|swore|argument|opinion|whines|keeps asking|asked|quoted"
    r"|suggesting|recommending|preached|ranted|commented|replied|according to|as per|per the|quoting"
    r"|(?:claims?|states|mentions|demands?|reports|reads|writes|asks|quotes|posts|posted|documented)"
    r"(?=\s*(?:[:,\ue000]|$|(?:that|we|you|to|us|me|it|always|never|i|the|everyone|everybody|people|for)\b)))"
)
_SPEAKER_ANY = compile_lazily(rf"\b{_SAYS}\b", re.IGNORECASE)
_SPEAKER_SELF = compile_lazily(
    r"\b(?:i|i've|i have|we)\s+(?:already |also |just |have |often |repeatedly |once )*(?:said|told|asked|want|wanted|mentioned|wrote|thought"
    r"|expected|warned|suggested|suggest|recommend|propose|demand|advise|believe|argue|claim|insist|demanded|proposed)\b"
    r"|^(?:please )?(?:suggest|recommend|propose|report|demand|warn|advise|quote|state)\b|\b(?:always|never|to|also report|and) (?:suggest|recommend"
    r"|propose|report|demand|warn|advise|quote|claim|argue|believe|insist)\b"
    r"|\b(?:is|are|as|be) (?:expected|required|documented|requested|reported|asked)\b|\bask(?:ed|s)? for\b",
    re.IGNORECASE,
)
_OTHERS_SAY = compile_lazily(
    r"\b(?:people|they|docs?|guides?|users|customers|developers|colleagues|others|many|some|reviewers|maintainers|authors|folks|experts"
    r"|everybody|everyone|most|rules|pages|books|managers|vendors|lawyers|auditors|teams?)\s+(?:\w+ly )?"
    r"(?:say|claim|think|want|tell|write|recommend|suggest|insist|ask|believe|argue|demand|prefer|require|advise|agree)\b"
    r"|\b(?:he|she|they|somebody|someone|boss|manager|contractor|vendor)(?:'s|'re| is| are| was)? (?:all )?(?:like|convinced|adamant|sure|certain"
    r"|clear|strict|of the opinion|right|wrong)\b"
    r"|\b(?:apparently|supposedly|allegedly|reportedly|rumou?r|i (?:have )?(?:heard|read|was told|am told|saw|learned|learnt|found)|i've been told"
    r"|i've (?:heard|read)|word is|the saying|proverb|famous|mantra|motto|slogan|cargo cult|myth|legend|dogma|so-called|best practices?)\b"
    r"|\bper (?:our|my|his|her|their|\w+'s|company|team)\b|\b(?:in|by|for|to) (?:his|her|their) (?:opinion|view|mind|book|words|team|project|repo|company|codebase)\b",
    re.IGNORECASE,
)
_SOURCE_STATES = compile_lazily(
    r"^(?:(?:and|but|so|also|ok|well|the|our|my|his|her|their|this|that|an?|some|one of (?:our|the|my))\s+)*(?:[\w'-]+\s+){0,3}"
    r"(?:docs?|documentation|readme|guide|guidelines|handbook|manual|wiki|page|website|article|blog|post|paper|book|tutorial|spec|rfc|adr"
    r"|standard|changelog|issue|ticket|comment|thread|forum|mail|e-?mail|letter|memo|boss|manager|colleague|coworker|contractor|consultant|vendor"
    r"|customer|client|lead|architect|cto|ceo|pm|teammate|friend|intern|reviewer|auditor|upstream|maintainers?|authors?|he|she|they|others|policy"
    r"|people|linter|compiler|message|review|feedback|speaker|talk|video|course|teacher|professor|uncle bob|team in|guys? (?:in|from|at)"
    r"|folks (?:in|from|at)|company)\s+(?:is|are|was|were|has|have|had|here|about|from|of|on|in|at|just|also|even|always|never|really|goes|put it|made|makes|clearly"
    r"|\w+ed|\w+s)\b",
    re.IGNORECASE,
)
"""The sentence is about somebody else's words, so that the next one may be them."""
_HEADS_OF_ORDERS = frozenset(
    {"always", "never", "please", "don't", "do", "remember", "from", "we", "i", "you", "only"}
)
_ADDRESSES_OTHERS = compile_lazily(
    r"(?:(?:hi|hey|hello|ok|so|dear)\s+)?(?:team|folks|guys|gang|friends|colleagues|people|everybody|everyone|all|ladies|y'all|@\w+)\s*(?:[,:!–—]|please\b)"
    r"|dear \w+",
    re.IGNORECASE,
)
_NAME_CALLED = compile_lazily(
    r"(?:(?:[Hh]i|[Hh]ey|[Hh]ello) )?([A-Z][a-z]+), (?:please|can you|could you|from now on|always|never|don't|remember|make sure|you)\b"
)
_OWN_NAMES = frozenset(
    [
        "claude",
        "codex",
        "copilot",
        "cursor",
        "gemini",
        "agent",
        "assistant",
        "additionally",
        "importantly",
    ]
)
_EXAMPLE = compile_lazily(
    r"\be\.g\b|\bi\.e\b|(?<![\w./@-])(?:for (?:example|instance)|such as|something like|things like|stuff like|along the lines|(?:an|as an|one) example"
    r"|(?:sample|fake|made[- ]up|fictional|placeholder|demo|dummy|examples?|lorem) (?:of |\w+ )?(?:rules?|texts?|instructions?|conventions?|decisions?|prompts?"
    r"|adrs?|messages?|guidelines?|commits?)|rules like|like so|say,|example:)(?![\w./])",
    re.IGNORECASE,
)
_IRONY = compile_lazily(
    r"(?:^|\s)/s(?:\s|$|\.)|\b(?:yeah,? (?:right|sure)|sure,? (?:because|why not|thing)|oh,? (?:sure|great|yes|yeah)|great idea|brilliant|genius"
    r"|what could (?:possibly )?go wrong|just kidding|kidding|jk|lol|lmao|rofl|haha\w*|hehe|joking|sarcasm|not!|as if|good luck with that"
    r"|because that (?:worked|went|always works)|wonderful idea|good one|nice try|clearly the best|who needs|we love surprises|yolo|right\?"
    r"|ironic\w*|funny|hilarious|ha ha)(?!\w)|^(?:yeah|sure|yep)?,? ?sure,? |[😀-😂🤣😅😆😉😏🙃🙄🤡😜😝🤪😈]|[;:]-?[)PD](?:\s|$)",
    re.IGNORECASE,
)
_TAKES_BACK = compile_lazily(
    r"^(?:not|nope|no|just kidding|kidding|wrong|i disagree|i don't (?:think|agree|believe)|that'?s? (?:is |was )?(?:not|what|wrong|nonsense|silly"
    r"|stupid|crazy|insane|their|his|her|how)|this is (?:not|what|wrong|nonsense|silly|stupid|their|his|her|how)|which|says|or so|at least that"
    r"|what a|really|nonsense|bullshit|actually,? (?:no|never mind|don't)|scratch that|forget (?:that|it)|never ?mind|i (?:hate|dislike|ignored)"
    r"|or maybe|or not|but (?:i|that)|is (?:it|that|this)|are we|do (?:you|we)|does (?:that|it|this)|did|should|agree|right|true|correct|ok with)\b",
    re.IGNORECASE,
)
_REQUEST = compile_lazily(
    r"^(?:(?:and|but|so|then|ok|please|hey|hi|claude|now)[\s,]+)*(?:can|could|will|would|do|does|did|may|might|have|has|had) "
    r"(?:we|i|you|it|he|she|they|this|that|the|somebody|someone|anyone)\b",
    re.IGNORECASE,
)
"""Begins like a question, which people often end without a question mark."""


def select_assertions(own: Sequence[OwnSentence]) -> list[OwnSentence]:
    """Those of these sentences that are affirmed; what follows a reported sentence may be reported, too."""
    found: list[OwnSentence] = []
    reported_block = -1
    for number, sentence in enumerate(own):
        following = own[number + 1] if number + 1 < len(own) else None
        before = own[number - 1] if number else None
        if sentence.block == reported_block:
            continue
        if (
            _addresses_others(sentence.said)
            or is_reported(sentence.bare)
            or (not sentence.lead and _is_about_source(sentence.said))
        ):
            reported_block = sentence.block
            continue
        near = [s.bare for s in (before, sentence, following) if s is not None]
        if is_asked(sentence) or _EXAMPLE.search(sentence.bare) or any(map(_IRONY.search, near)):
            continue
        if following is not None and _is_taken_back(following):
            continue
        found.append(sentence)
    return found


def _addresses_others(said: str) -> bool:
    """Whether this is said to other people than the agent."""
    if _ADDRESSES_OTHERS.match(said):
        return True
    called = _NAME_CALLED.match(said)
    return called is not None and called.group(1).lower() not in _OWN_NAMES | STOP_WORDS | verbs.ALL


def _is_about_source(said: str) -> bool:
    first = first_word(said)
    return (
        first not in verbs.ALL
        and first not in _HEADS_OF_ORDERS
        and _SOURCE_STATES.match(said) is not None
    )


def is_reported(text: str) -> bool:
    """Whether a text, masked, gives somebody else's words or wishes."""
    if _OTHERS_SAY.search(text):
        return True
    own = [match.span() for match in _SPEAKER_SELF.finditer(text)]
    return any(
        not any(start <= match.start() < end for start, end in own)
        for match in _SPEAKER_ANY.finditer(text)
    )


def is_asked(sentence: OwnSentence) -> bool:
    """Whether this asks rather than says."""
    said = sentences.strip_politeness(sentence.said)
    return (
        sentences.is_question(sentence.bare)
        or sentences.is_question(said)
        or _REQUEST.match(sentence.said) is not None
    )


def _is_taken_back(following: OwnSentence) -> bool:
    """Whether this sentence doubts or denies the one before it."""
    is_short_question = (
        following.bare.rstrip().endswith("?")
        and len(words(following.bare)) <= 8  # noqa: PLR2004  # `Or is that too strict for us?`
        and _REQUEST.match(following.said) is None
    )
    return is_short_question or _TAKES_BACK.match(following.said) is not None
