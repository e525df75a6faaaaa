"""Sentences by which a user sets right how things shall be, without saying `always`: norms, limits, reasons, taste. Pure.

Each kind has its own form: `only X should …`, `we use X on purpose`, `let's keep X for now`, `I'd rather …`,
`don't … in our …`, and questions that ask for another way (`why don't we just …?`), which count where the agent
then goes that way.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memd.distill.dialogue import wishes
from memd.distill.dialogue.chores import is_chore
from memd.distill.dialogue.phrases import CONTRAST, LEAD
from memd.distill.dialogue.questions import ALTERNATIVE, POINTS_AT_WORK, find_asked_change
from memd.distill.dialogue.specifications import REVIEW
from memd.distill.dialogue.spoken import SpokenSentence
from memd.distill.speech import assertions
from memd.distill.speech.own_words import OwnSentence
from memd.models import Kind
from memd.text import is_stop_word, words

_WORDS_MAX, _TELLING_WORDS_MIN = 70, 2


@dataclass(frozen=True, slots=True)
class Standing:
    """A sentence that stands, and how it may be put as a title."""

    kind: Kind
    rule: str
    sentence: OwnSentence
    title: str
    confidence: float
    context: str = ""
    """What was said before it in the same message."""
    thing: str = ""
    """What is not wanted."""


_LIMIT = r"(?:\bfor now\b|\bonly\b|\bnothing (?:else|more)\b|\bat least for now\b|\bas a first step\b|\bto (?:begin|start) with\b|\bout of scope\b|\bnur\b|\bvorerst\b|\bseulement\b|\bpour l'instant\b|\bpor ahora\b|\bsolo\b)"
_PURPOSE = r"(?:\bon purpose\b|\bdeliberately\b|\bintentional(?:ly)?\b|\bby design\b|\bexplicitly\b|\bbecause\b|\bsince\b|\bso that\b|\bto not\b|\bto avoid\b|\bin order (?:to|not to)\b|\bso (?:we|it|they|users?|people|that)\b|\babsichtlich\b|\bexprès\b|\ba propósito\b|\bweil\b|\bdamit\b|\bparce qu)"
_NEGATION = r"(?:n'?t|\s+not|\s+never)"

_NORM = re.compile(
    rf"{LEAD}(?P<rest>(?:(?!\b(?:if|when|unless|you)\b)[^?;]){{0,160}}?\b(?:should|must|shall|has to|have to|needs? to|ought to)\b"
    rf"(?:{_NEGATION}\b|\s+(?:only|always|just|still|stay|remain|keep|be (?:a thing|the same|possible|consistent))\b).*)",
    re.IGNORECASE,
)
_ONLY_NORM = re.compile(
    rf"{LEAD}(?P<rest>(?:.{{0,80}}[,;–—-]\s*)?only (?:(?!\bif\b)[^,;?]){{1,80}}?\b(?:should|must|may|shall|can)\b.*)",
    re.IGNORECASE,
)
_NORM_CONTRAST = re.compile(
    rf"{LEAD}(?P<rest>[^?;]{{1,160}}?\b(?:should|must|shall)\b.*?{CONTRAST}.*)", re.IGNORECASE
)
_SHOULD = re.compile(
    rf"(?>{LEAD})(?P<rest>(?:(?:if|when|whenever|for|in|on) (?!(?:you|we|i|it|that|this)\b)[^,?]{{4,90}}?,?\s+(?:it|they|there|that|those|we)|(?!(?:now )?(?:i|i'm|you|it|that|this|these|those|they|he|she|which|what|there|who|we|someone|tests?|everything|something|nothing|the (?:fix|tests?|build|ci|issue|problem))\b)"
    rf"(?:(?!\b(?:if|when|unless|you|think|thought|noticed|but|question|why)\b)[^?;,:]){{2,80}}?)\s+(?:should|must|shall|ha(?:s|ve) to|needs? to)\s+(?:(?:also|always|all|just)\s+)*"
    rf"(?!be (?:able|fine|ok|okay|done|fixed|enough|good|possible|easy|safe|correct|ready|merged|there|gone|working|interesting|quick)\b|have (?:been|\w+ed)\b|(?:now|already|works?|pass|help|take|probably|maybe|look|see|know|check|suffice|contain|return)\b)\w+[^?]{{8,}})$",
    re.IGNORECASE,
)
_BETTER = re.compile(
    rf"{LEAD}(?P<rest>(?:(?:given|since|because|considering|due to|as) [^?;]{{5,120}}?,\s*(?:(?:i|we) (?:think|guess|feel|believe),?\s+)?)?(?:probably |then )?(?:it'?s|its|it is|it would be|that'?s|makes?)?\s*(?:probably )?(?:better|best|safer|cleaner|simpler|sense) (?:not )?to\b[^?]{{8,}})$",
    re.IGNORECASE,
)
_GOOD_IDEA = re.compile(
    rf"{LEAD}(?P<rest>(?:good|great|nice) (?:idea|call|thinking) to (?P<what>[^?]{{6,}}))$",
    re.IGNORECASE,
)
_GOAL = re.compile(
    rf"{LEAD}(?P<rest>(?:(?:the|our|my) (?:\w+ )?(?:goal|aim|principle|directive|priority|idea)|the overriding (?:concern|requirement|constraint)) (?:here |with [^?]{{3,60}}? )?(?:is|was) (?:to|that|not)\b[^?]{{12,}})$",
    re.IGNORECASE,
)
_CONCERN = re.compile(
    rf"{LEAD}(?:my|our) (?:main|biggest|only|big) (?:issue|concern|worry|requirement|constraint) (?:here |with [^?]{{3,60}}? )?(?:is|was) that (?P<rest>(?:we|it|the|our|this|users?|people)\b[^?]{{0,40}}?\b(?:need|must|should|has to|have to|can'?t|cannot)\b[^?]{{12,}})$",
    re.IGNORECASE,
)
_EXPECTED = re.compile(
    rf"{LEAD}(?P<rest>(?:i (?:would(?:'ve| have)?|'d(?: have)?) expect(?:ed)?|i expect(?:ed)?|(?:the )?(?:idea|goal|intention|point|principle|directive|rule|priority|overriding \w+) (?:is|was) (?:to|that|not)|what (?:i|we) (?:want|need) is|what we (?:more )?should do|i think we should (?!also|first|now|add|test|look|check)[^.]{{0,20}}(?:prevent|avoid|not|never|only|always|keep|use|stop|allow))\b.{{12,}})",
    re.IGNORECASE,
)
_TEAM = re.compile(
    r"^.{0,60}?\bwe (?:(?:just |already |recently )?had|have had|'ve had) (?:an? |some )?(?:\w+ )?(?:discussions?|meeting|call|conversation|agreement)\b.{0,30}?\bthat\s+(?:(?:currently|for now|from now on|in general),?\s+)?"
    r"(?P<rest>[^?]{2,140}?\b(?:should|must|shall|has to|have to|needs? to|ought to|will|won'?t|can(?:not|'t)?)\b[^?]{8,})$",
    re.IGNORECASE,
)
"""What his team has agreed on, as the user reports it: it is his word that it holds."""
_GONE = re.compile(
    rf"{LEAD}(?P<rest>we (?:don'?t|do not) (?:have|use|support|offer|ship|write|store) (?!(?:to|it|this|that|them|any)\b)[^,;?]{{2,60}}? any ?more)\b[^?]*$",
    re.IGNORECASE,
)
"""What is no longer so; it is said as a fact, and ends no rule."""
_MAKES_SURE = re.compile(
    rf"{LEAD}(?P<rest>(?:we|it) (?:need|needs|have|has|must|should)(?: to)? (?:make sure|be sure|ensure)(?: that)?\s+(?![^?]{{0,60}}\b(?:tests?|builds?|lint\w*|ci|compiles?|works?)\b)[^?]{{8,}}(?:\bbut (?:actually|really|rather|only|always)\b|{CONTRAST}|\b(?:no matter|regardless|never|always)\b)[^?]*)",
    re.IGNORECASE,
)
_LIFTS = re.compile(
    rf"{LEAD}(?:(?:(?:right )?now|currently|at the moment|today|so far),?\s+)?(?P<rest>(?!now\b|(?:if|when) (?:i|you)\b)[^?]{{10,140}}?,\s*(?:so |and )?let'?s (?:remove|drop|lift|relax|get rid of) (?:this|that|the) (?:restriction|limit|limitation|requirement|rule|constraint|condition|block))\b[^?]*$",
    re.IGNORECASE,
)
_NEEDS_NO = re.compile(
    rf"{LEAD}(?P<rest>(?:(?!\b(?:looks?|seems?|though|i)\b).){{0,80}}?\b(?:needs? no|(?:does|do)(?:n'?t| not) need (?!to (?:be )?(?:fix|know|run|see|check))|we (?:do(?:n'?t| not)) (?:want|need|use|support|ship|care about)|there is no need for)\b.{{3,}})",
    re.IGNORECASE,
)
_WE_POLICY = re.compile(
    rf"{LEAD}\(?(?P<rest>we(?:'ve| have|'re| are)?(?: already| just| had)? (?:(?:use|keep|kept|removed?|took|take|dropped?|chose|decided|agreed|avoid|left|put|have|do|write|run|call|want|don'?t|do not|never|only|always|explicitly|deliberately|intentionally|using|keeping)\b).*?{_PURPOSE}.*)",
    re.IGNORECASE,
)
_IS_PURPOSE = re.compile(
    rf"{LEAD}(?P<rest>(?!why|is)[^?]{{2,80}}?\b(?:is|was|are|were|'s)\b[^?]{{0,30}}?\b(?:on purpose|deliberate(?:ly)?|intentional(?:ly)?|by design|intended)\b.*)",
    re.IGNORECASE,
)
_IN_REPO = re.compile(
    r"^\W*(?P<rest>(?:(?:in|for) (?:this|our|the) (?:repo(?:sitory)?|project|codebase|team|package|module|service|app)\b.{0,40}\b(?:we|i|use|keep|never|always|want|should|must)\b.*|.*\bwe\b.*\b(?:in this (?:repo(?:sitory)?|project|codebase))\b.*))",
    re.IGNORECASE,
)
_LETS = re.compile(
    rf"{LEAD}(?P<rest>(?:let'?s|lets|we(?:'ll| will)?(?: can| could| should)?|i(?:'d| would)(?: rather| prefer(?: to)?| like(?: to)?)?|i want(?: to)?|we want(?: to)?|i prefer(?: to)?|i like|i'll)\s+(?P<what>.*))",
    re.IGNORECASE,
)
_KEEPS = re.compile(
    r"^(?:(?:just|please|also|still|rather|only|not|to)\s+)*(?:keep|leave(?! an?\b)|stay|stick|go with|settle|drop|get rid of|not\b|never|rather|avoid|postpone|defer|limit|restrict|support only|only)\b",
    re.IGNORECASE,
)
_RATHER = re.compile(
    rf"{LEAD}(?:.{{0,60}}[,;.]\s*)?(?P<rest>i(?:'d| would) (?:much )?(?:rather|prefer)\b.{{6,}})"
    rf"|{LEAD}(?P<whole>[^?]{{10,120}},\s+(?:so |therefore |hence )(?:i (?:think|guess|feel) )?i(?:'d| would) (?:much )?(?:rather|prefere?)\b[^?]{{6,}})",
    re.IGNORECASE,
)
_GO_WITH = re.compile(
    rf"{LEAD}(?P<rest>(?:i(?:'d| would| will|'ll)?|we(?:'ll| will)?|let'?s|lets) (?:go|stick|stay) (?:with|for)\s+(?!(?:it|that|this|you|the flow)\b)\S.+)",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    rf"{LEAD}(?P<rest>(?:don'?t|do not|never|avoid|stop|no more|without)\s+(?P<verb>[\w-]+).+|(?:i|we) (?:don'?t|do not|never) (?:want|like|need)\s+(?P<object>.+)|(?:please )?no (?P<thing>[\w-]+s\b.*))",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\b(?:in (?:our|my|this|these|all|any|the) [\w -]+|our|always|any|anywhere|ever|at all|everywhere|each|every|yourself)\b",
    re.IGNORECASE,
)
_REASONED = re.compile(
    rf"{_PURPOSE}|,\s+(?:the|our|that|it|this|they|users?|we)\b.+\b(?:does|do|is|are|has|have|will|should|must|break\w*|reads?|makes?|can)\b",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"\b(?:yet|right now|again|first|before (?:i|we|you)|until|worry|forget|hesitate|bother|know|understand|remember|see|think|think so|get it|wait|today|this time|for a (?:second|moment|minute))\b",
    re.IGNORECASE,
)

_REVERTS = re.compile(
    rf"{LEAD}(?P<rest>(?:please )?(?:revert|undo|roll back|back out|remove (?:it|this|that|these|those) again|take (?:it|this|that|these|those) out|put (?:it|this|that|these|those) back)\b.{{2,60}}?[,;.–—-]+\s*(?:i think|because|since|i'd|we|it'?s|it is|that'?s|this|the)\b.{{8,}})",
    re.IGNORECASE,
)
_SETS_RIGHT = re.compile(
    rf"{LEAD}(?P<rest>[^?]{{3,100}}?\b(?:is|are|was|were|'s)\b (?:just|actually|only|really|in fact)\b.{{2,80}}?\bnot\b.{{3,}})",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"^.*?\b(?:that|this|it|(?:the|your) (?:first|second|third|last|other|next|upper|lower) (?:\w+ )?(?:part|point|sentence|line|half|bit|item|statement|paragraph|option|step))(?:'s| is) (?:not (?:correct|right|true|what (?:we|i) (?:want|need|meant))|wrong)[,.;:\s–—-]+(?P<rest>(?:we|i|it|the|only|there|all|that|they|both|for [^,]{3,40}? (?:we|they|it))\b.{12,})",
    re.IGNORECASE,
)
_DISLIKES = re.compile(
    rf"{LEAD}(?P<rest>i (?:really )?(?:don'?t|do not|never) (?:really |quite )?(?:like|love) (?P<what>(?!(?:it|this|that|to|how|when|you|the idea)\b)(?:[^,.;?\s]+\s*){{1,8}}?))(?=[,.;?]|$)",
    re.IGNORECASE,
)
_ASKS_FOR_ANOTHER = r"[,.;!–—-]\s*(?:so |but |and )?(?:any (?:other|better|more|further|alternative) \w+|do you have (?:any |some )?(?:other|another|better|alternative)\b|(?:can|could) you (?:suggest|propose|think of|come up with)\b|what else\b|(?:is|are) there (?:any )?(?:other|another|better|alternative)\b|got (?:any )?other\b)[^?]*\?"
_TURNS_DOWN = re.compile(
    rf"{LEAD}(?P<rest>(?:i (?:really )?(?:don'?t|do not) (?:really |quite )?(?:like|love|want)|(?:i'?m )?not (?:a (?:big )?fan of|happy with|convinced (?:of|by))) (?P<what>(?!(?:it|this|that|these|those|any|them)\b)[^,.;?]{{3,60}}?)(?: either)?\s*{_ASKS_FOR_ANOTHER}"
    rf"|(?P<thing>(?!(?:it|this|that|these|those|they|which|there)\b)[^,.;?]{{3,60}}?)\s+(?:is|are) (?:also )?not (?:so |very |really |that )?(?:great|ideal|nice|good|pretty|an option|acceptable)(?: either)?\s*{_ASKS_FOR_ANOTHER})",
    re.IGNORECASE,
)
"""What he will not have, as he asks for something else."""
_VERDICT = re.compile(
    rf"{LEAD}(?P<rest>[^?]{{4,120}}?\b(?:is|are|seems?|feels?|would be|'s)\b (?:a bit |way |really |just |probably |not )*(?:(?:too|to) (?:much|many|complex|complicated|risky|big|slow|noisy|fragile|early|heavy|verbose)|overkill|unnecessary|redundant|over-?engineered|not (?:really )?(?:needed|necessary|worth|feasible|useful|possible|required)|(?:needed|necessary|worth|feasible|useful|required))\b.*)",
    re.IGNORECASE,
)
_BOUNDED = re.compile(
    r"^.*?(?P<rest>(?:[\w ]{0,40}\b)?(?:maximum|max\.?|at most|no more than|not more than|exactly|only) (?:one|two|three|\d+|a single) [\w-]+(?: [\w-]+)? (?:per|for each|for every|in each|each|a)\b.*)$",
    re.IGNORECASE,
)
_NO_QUESTION = re.compile(
    r"^\W*(?:(?:and|so|but)\s+)?what (?:we|i)\b|^which\b[^?]*\b(?:not correct|not right|wrong)\b[^?]*$",
    re.IGNORECASE,
)

_CONTINUES = re.compile(
    rf"{LEAD}(?!.*\bif (?:we|i|you|it)\b)(?P<rest>.{{0,160}}?\b(?:pick|take|carry|continue|resume|finish|come back to|go on with)\b[^.?]{{0,30}}?\b(?:tomorrow|later|next (?:time|week|session)|on monday|after (?:lunch|the weekend)|morgen|demain|mañana)\b.*)",
    re.IGNORECASE,
)
TO_BE_CONTINUED, GONE, DISLIKE = "said:open", "said:gone", "said:dislike"
_BECAUSE = re.compile(r"\b(?:because|since)\b", re.IGNORECASE)
_PLAIN_RULES = frozenset({"said:reason", "said:here", "said:goal", "said:agreed", TO_BE_CONTINUED})
"""These say of themselves that they hold beyond the turn."""
_UNDECIDED = re.compile(
    r"\b(?:maybe|perhaps|might|you could|could have|(?:were|was) going to|can'?t decide|not sure|undecided|whether|never agreed|haven'?t|hasn'?t|not (?:to )?always|n'?t always|to always|no need to|if (?:we|you|it|the|they)|(?:owner|boss|manager|team)'s|wonder|suppose|imagine|hypothetical\w*|would be nice|or something|idk|i don'?t know)\b|\bthen[.!]?$|\bdon'?t (?:have|want you)\b",
    re.IGNORECASE,
)
_NO_DOUBT = re.compile(
    r"\bwe (?:don'?t|do not) have\b(?=.* any ?more\b)|\bprefere? if (?:it|we|they|the)\b",
    re.IGNORECASE,
)
"""What looks undecided and is not: `we don't have sessions any more`, `I'd prefer if it …`."""
_DESCRIBES = re.compile(
    r"\b(?:that'?s|which is|that is|this is|it'?s) (?:why\b|where\b|how\b|wrong\b|(?:the|a|my) (?:\w+ )?(?:bug|leak|problem|issue|reason|mistake)\b)|\bassert\w*\b|,\s*(?:delete|remove|drop|fix) (?:it|them|that)\b",
    re.IGNORECASE,
)

_AGREES = re.compile(
    r"^\W*(?:(?:yes|yeah|ah|oh|hmm|ok(?:ay)?)[,!. —–-]+)?(?:you(?:'re| are) (?:absolutely |totally |completely |quite )?(?:right|correct)|(?:very |really )?(?:good|great|excellent|fair|valid|nice) (?:point|catch|call|idea|question|thinking|suggestion|thought)|exactly|agreed|i agree|makes sense|that makes sense|that'?s (?:a )?(?:much )?(?:better|cleaner|simpler|good|great|fair|right)|fair enough|got it|understood|absolutely|right[,!. —–-])",
    re.IGNORECASE,
)
_CONFIRMS = re.compile(
    r"^\W*(?:yes\b|exactly|right\b|correct\b|you(?:'re| are) (?:absolutely |totally |completely )?(?:right|correct)(?! to)|that'?s (?:right|correct)|absolutely)",
    re.IGNORECASE,
)
_BOUND = re.compile(
    rf"{LEAD}(?P<rest>(?!(?:that|this|it) should (?:have|be|show|work)\b|(?:wait|if)\b)(?=.*\b(?:only|can'?t|cannot|never|always|not|n'?t|should|must|needs?|requires?|has to|have to|fine|enough|except|unless|without|because|since)\b).{{24,}})",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:i|i'm|i'd|i'll|we|we'd|us|our|my|you|your|let'?s|lets|can|please|pls)\b", re.IGNORECASE
)
_BEGINS_WITH_IT = re.compile(r"(?:(?:instead|then|also|so)\s+)?it(?:['’]?s)?\b", re.IGNORECASE)
_ABOUT_IT = re.compile(
    r"(?:(?:please|always|never|don['’]t|do not)\s+)*[\w'’-]+\s+(?:it|this|that|them|these|those)\b(?!\s+\w+ing\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the agent did about a message."""

    does_work: bool
    """Whether it then changed something."""
    first: str = ""
    """The first thing that it said."""
    is_reply: bool = False
    """Whether the message replies to one of the agent."""

    @property
    def agrees(self) -> bool:
        """Whether it says that the user is right."""
        return _AGREES.match(self.first) is not None


def find_standing(spoken: Sequence[SpokenSentence], reaction: Reaction) -> list[Standing]:
    """The sentences of one message that stand, in order."""
    own = [one.own for one in spoken]
    affirmed = frozenset(assertions.select_assertions(own))
    found = []
    for place, one in enumerate(spoken):
        sentence = one.own
        if _is_reviewing(sentence, own) or len(words(sentence.bare)) > _WORDS_MAX:
            continue
        if assertions.is_reported(sentence.bare):
            continue
        is_affirmed = sentence in affirmed or _NO_QUESTION.match(sentence.said) is not None
        is_whole = reaction.is_reply and len(spoken) == 1
        standing = _read_wish(sentence, reaction, is_affirmed=is_affirmed)
        if standing is not None:
            before = spoken[place - 1].own.text if place else ""
            found.append(replace(standing, context=before))
            continue
        standing = _read_sentence(one, reaction, is_affirmed=is_affirmed, is_whole=is_whole)
        if standing and _says_something(standing.title) and not _is_loose_rule(standing):
            found.append(standing)
    return found


def _read_sentence(
    one: SpokenSentence, reaction: Reaction, *, is_affirmed: bool, is_whole: bool
) -> Standing | None:
    """What one sentence leaves standing, by the surest of its forms."""
    sentence = one.own
    standing = _read_statement(sentence) if is_affirmed else None
    if standing is not None and _is_meant(standing, reaction, is_whole=is_whole):
        return standing
    if match := _CONTINUES.match(sentence.said):
        return _make(Kind.TASK, TO_BE_CONTINUED, sentence, match, 0.6)
    if standing := _read_dislike(sentence):
        return standing
    if one.seeks_agreement and (standing := _read_confirmed(sentence, reaction)):
        return standing
    asked = find_asked_change(sentence.said, agrees=reaction.agrees) if reaction.does_work else None
    if asked is None:
        return None
    return _make(Kind.DECISION, asked.rule, sentence, asked.match, asked.confidence)


def _read_dislike(sentence: OwnSentence) -> Standing | None:
    if match := _TURNS_DOWN.match(sentence.said):
        thing = (match.group("what") or match.group("thing")).strip()
        standing = _make(Kind.PREFERENCE, DISLIKE, sentence, match, 0.65)
        return replace(standing, title=f"Not wanted: {thing}", thing=thing)
    match = _DISLIKES.match(sentence.said)
    if match is None or _TRANSIENT.search(match.group()):
        return None
    if not _says_something(match.group("what")):
        return None
    standing = _make(Kind.PREFERENCE, DISLIKE, sentence, match, 0.6)
    return replace(standing, title=f"Not wanted: {match.group('what').strip()}")


def _read_wish(sentence: OwnSentence, reaction: Reaction, *, is_affirmed: bool) -> Standing | None:
    """A habit, what is put off, how the system is."""
    found = wishes.find_wish(sentence.said, is_affirmed=is_affirmed)
    if found is None:
        return None
    wish, match = found
    is_taken = not wish.needs_work or reaction.does_work or reaction.agrees
    made = _make(wish.kind, wish.rule, sentence, match, wish.confidence, wish.what)
    return made if is_taken and (wish.kind is Kind.TASK or _says_something(made.title)) else None


def _is_loose_rule(standing: Standing) -> bool:
    """`Don't give it a number`, `instead it should say so`: what is said of `it` means nothing in another session."""
    if _BEGINS_WITH_IT.match(standing.title):
        return True
    is_rule = standing.kind in (Kind.INSTRUCTION, Kind.PREFERENCE)
    return is_rule and _ABOUT_IT.match(standing.title) is not None


def _is_meant(standing: Standing, reaction: Reaction, *, is_whole: bool) -> bool:
    """Whether a statement was taken as one: a weak one counts only where the agent acted on it or agreed."""
    said = standing.sentence.said
    if standing.rule == "said:reverts":
        return True
    if standing.rule == "said:ban":
        said = _BECAUSE.split(said)[0]  # `… because it might be useful` doubts what is forbidden
    said = _NO_DOUBT.sub("", said)
    if _UNDECIDED.search(said) or _DESCRIBES.search(said):
        return False
    if is_whole and standing.rule == "said:verdict":
        return True
    return standing.rule in _PLAIN_RULES or reaction.does_work or reaction.agrees


def _is_reviewing(sentence: OwnSentence, own: Sequence[OwnSentence]) -> bool:
    """Whether this is of a review that was pasted: it points at lines, or stands beside what does, and nobody speaks."""
    paragraph = " ".join(s.text for s in own if s.block == sentence.block)
    if REVIEW.search(paragraph):
        return True
    whole = " ".join(s.text for s in own)
    return bool(REVIEW.search(whole)) and not _PERSON.search(sentence.said)


def _says_something(title: str) -> bool:
    return sum(not is_stop_word(word) for word in words(title)) >= _TELLING_WORDS_MIN


def _make(
    kind: Kind,
    rule: str,
    sentence: OwnSentence,
    match: re.Match[str],
    confidence: float,
    group: str = "rest",
) -> Standing:
    start, end = match.span(group)
    title = sentence.text[sentence.start + start : sentence.start + end]
    return Standing(kind, rule, sentence, title.strip(" ().,"), confidence)


def _read_statement(sentence: OwnSentence) -> Standing | None:
    """The first form that an affirmed sentence has, in the order of how sure they are."""
    for form in _FORMS:
        match = form.pattern.match(sentence.said)
        if match is not None and form.holds(match):
            group = "whole" if match.groupdict().get("whole") else "rest"
            return _make(form.kind, form.rule, sentence, match, form.confidence, group)
    return None


_OF_THE_REPOSITORY = re.compile(
    r"\b(?:this|the|that|your|my) (?:\w+ )?(?:pr|pull request|branch|commit|merge request|rebase|todo|ticket|issue)\b[^.]{0,30}\b(?:should|must|needs?|has)\b|\b(?:branch off|rebased?|merged|pushed|committed|cherry-picked)\b",
    re.IGNORECASE,
)
"""Where a commit or a branch goes is over with it."""


def _is_work_order(rest: str) -> bool:
    """`We should also add a test`: the work of this turn."""
    match = re.match(
        r"(?:we|you|i|it)\s+(?:should|must|have to|need to|has to)\s+(?:also |just |only |still |then )*(?P<what>.*)",
        rest,
        re.IGNORECASE,
    )
    return match is not None and is_chore(match.group("what"))


_FINE_WITH_IT = re.compile(r"\bfine with (?:that|it|this)\b", re.IGNORECASE)


def _is_choice(what: str) -> bool:
    if (
        is_chore(what)
        or _TRANSIENT.search(what)
        or _FINE_WITH_IT.search(what)
        or ALTERNATIVE.search(_BECAUSE.split(what)[0])
    ):
        return False
    return bool(
        _KEEPS.match(what)
        or re.search(
            rf"{CONTRAST}|{_LIMIT}|\b(?:since|because|on purpose|weil|parce que|porque)\b",
            what,
            re.IGNORECASE,
        )
    )


_AT_HAND = re.compile(r"(?:the|that|this|these|those|it|how|when|you|your)\b", re.IGNORECASE)
"""`I don't like the glow`: said of what was just shown."""
_OF_LOOKS = re.compile(
    r"\b(?:should|must|needs? to|ha(?:s|ve) to) (?:also |all |both )?be (?:an? (?:bit|little) |much |way |even |a lot )*(?:more|less|bigger|smaller|larger|wider|narrower|higher|lower|taller|shorter|longer|brighter|darker|lighter|faster|slower|better|cleaner|simpler|bolder|thicker|thinner|closer|further)\b"
    r"|^\W*(?:i think )?the?(?:re|ir) should be an?\b",
    re.IGNORECASE,
)
"""`The title should be bigger`: an order about what was just shown, done in this turn."""


def _is_lasting_norm(match: re.Match[str]) -> bool:
    return _is_norm(match) and not _OF_LOOKS.search(match.group("rest"))


def _is_lasting_ban(match: re.Match[str]) -> bool:
    rest = match.group("rest")
    if _TRANSIENT.search(rest) or _AT_HAND.match(match.group("object") or ""):
        return False
    return bool(_GENERAL.search(rest) or _REASONED.search(rest) or match.group("thing"))


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to say that something stands. `holds` looks at the words that matched."""

    kind: Kind
    rule: str
    pattern: re.Pattern[str]
    confidence: float
    holds: Callable[[re.Match[str]], bool] = lambda _: True


def _is_norm(match: re.Match[str]) -> bool:
    rest = match.group("rest")
    return not (_is_work_order(rest) or _OF_THE_REPOSITORY.search(rest))


def _is_lasting_idea(match: re.Match[str]) -> bool:
    what = match.group("what")
    return not (is_chore(what) or POINTS_AT_WORK.match(what) or _TRANSIENT.search(what))


def _is_chosen(match: re.Match[str]) -> bool:
    return _is_choice(match.group("what"))


def _is_verdict(match: re.Match[str]) -> bool:
    """`I think by file is too much`, not `useful`, which is praise."""
    rest = match.group("rest")
    is_bad = re.search(r"\b(?:too|to|over\S+|unnecessary|redundant|not)\b", rest, re.IGNORECASE)
    return is_bad is not None and not rest.lower().startswith(("keep ", "do ", "add ", "follow "))


def _is_needless(match: re.Match[str]) -> bool:
    return not _TRANSIENT.search(match.group("rest"))


_FORMS = (
    _Form(Kind.DECISION, "said:agreed", _TEAM, 0.75),
    _Form(Kind.DECISION, "said:goal", _CONCERN, 0.65),
    _Form(Kind.FACT, GONE, _GONE, 0.65),
    _Form(Kind.DECISION, "said:norm", _ONLY_NORM, 0.7, _is_norm),
    _Form(Kind.DECISION, "said:norm", _NORM, 0.7, _is_norm),
    _Form(Kind.DECISION, "said:norm", _NORM_CONTRAST, 0.7, _is_norm),
    _Form(Kind.DECISION, "said:reason", _WE_POLICY, 0.75),
    _Form(Kind.DECISION, "said:reason", _IS_PURPOSE, 0.75),
    _Form(Kind.DECISION, "said:reverts", _REVERTS, 0.65),
    _Form(Kind.DECISION, "said:corrects", _CORRECTS, 0.65),
    _Form(Kind.FACT, "said:fact", _SETS_RIGHT, 0.65),
    _Form(Kind.DECISION, "said:here", _IN_REPO, 0.75),
    _Form(Kind.DECISION, "said:norm", _MAKES_SURE, 0.6),
    _Form(Kind.DECISION, "said:choice", _LIFTS, 0.65),
    _Form(Kind.DECISION, "said:choice", _RATHER, 0.7),
    _Form(Kind.DECISION, "said:choice", _GO_WITH, 0.7),
    _Form(Kind.DECISION, "said:choice", _LETS, 0.65, _is_chosen),
    _Form(Kind.DECISION, "said:goal", _GOAL, 0.65),
    _Form(Kind.DECISION, "said:agreed", _GOOD_IDEA, 0.6, _is_lasting_idea),
    _Form(Kind.DECISION, "said:choice", _BETTER, 0.6, _is_norm),
    _Form(Kind.DECISION, "said:expected", _EXPECTED, 0.6),
    _Form(Kind.DECISION, "said:verdict", _VERDICT, 0.55, _is_verdict),
    _Form(Kind.INSTRUCTION, "said:ban", _FORBIDS, 0.65, _is_lasting_ban),
    _Form(Kind.PREFERENCE, "said:needless", _NEEDS_NO, 0.6, _is_needless),
    _Form(Kind.PREFERENCE, "said:bound", _BOUNDED, 0.6),
    _Form(Kind.DECISION, "said:should", _SHOULD, 0.55, _is_lasting_norm),
)


def _read_confirmed(sentence: OwnSentence, reaction: Reaction) -> Standing | None:
    """A statement that the agent was asked to agree with, and did."""
    if not _CONFIRMS.match(reaction.first):
        return None
    match = _BOUND.match(sentence.said)
    return _make(Kind.FACT, "said:confirmed", sentence, match, 0.6) if match else None
