"""Read the user's answer to what the agent left to him: a choice, an agreement, a refusal, a deferral. Pure."""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.distill import sentences
from memd.distill.dialogue.chores import is_chore
from memd.distill.dialogue.offers import (
    Offer,
    Option,
    find_option,
    find_questions,
    find_references,
    is_named,
    read_offer,
    strip_markup,
)
from memd.distill.speech import assertions, verbs
from memd.text import content_stems, first_word, normalised, words

_ANSWER_CHARACTERS = 400
"""An answer stands at the beginning of a message."""
_ASSENT_WORDS_MAX = 9
_NAMING_WORDS_MAX = 30
_FRAGMENT_WORDS_MAX = 4
_PROPOSAL_WORDS_MIN = 2


class ActKind(enum.Enum):
    """What an answer does with what was offered."""

    CHOSEN = enum.auto()
    AGREED = enum.auto()
    DECLINED = enum.auto()
    DEFERRED = enum.auto()


@dataclass(frozen=True, slots=True)
class Act:
    """An answer, resolved."""

    kind: ActKind
    subject: str
    """What was chosen, agreed, declined or put off, in the agent's words, on one line."""
    details: str = ""
    """The same at length."""
    question: str = ""
    """What the agent had asked."""
    heading: str = ""
    """What stood over the options."""
    restriction: str = ""
    """What the user takes from it or adds to it: `but keep the old name`."""


_MOOD = r"(?:ok(?:ay)?|k|yes|yeah|yep|yup|sure|hmm+|um+|uh+|so|well|alright|great|good|cool|perfect|nice|fine|thanks|thx|please|pls|right|actually|then|ja|oui|si|sí|bon|gut)"
_CHOOSE = (
    r"(?:let'?s (?:do|try|go (?:with|for)?|use|take|pick|start with)|lets (?:do|try|go (?:with|for)?|use|take|pick|start with)|(?:i|we)(?:'d| would|'ll| will)? (?:also )?(?:like|go (?:with|for)|prefer|choose|pick|take|want|vote for)"
    r"|i'm (?:for|going with)|go (?:with|for)|going with|do|use|take|pick|try|choose|implement|definitely|probably|ich (?:nehme|will|möchte|bin für)|wir nehmen|nimm|nehmen wir|mach(?:en wir)?|on (?:part sur|prend|choisit)|je (?:prends|préfère|choisis)|prends|partons sur|vamos con|prefiero|elijo)"
)
_NAMED = r"(?:option|approach|alternative|variant|solution|choice|plan|strategy|number|no\.?|nr\.?|path|possibility|l'option|variante|möglichkeit|opción)"
_BARE_LABEL = re.compile(
    rf"^\W*(?:{_MOOD}\b[\s,.!]*)*(?:{_CHOOSE}\s+)?(?:the\s+|with\s+)?(?:{_NAMED}\s*#?\s*)?[(\[#]?(?P<label>[A-Za-z]|\d{{1,2}})[)\].=:!]*"
    r"(?=\s*$|\s*[,;.!—–\n]|\s+[-(]|\s+(?:and|but|please|pls|because|since|with|as|for|sounds|looks|is|it is|then|first|would|seems|makes|except|without|only|unless|though|und|aber|bitte|das|weil|et|mais|merci|car|pero|y|por)\b)",
    re.IGNORECASE,
)
_ITEM = re.compile(
    rf"^\W*(?:{_MOOD}\b[\s,.!:]*)*[(\[]?(?P<label>[A-Za-z]|\d{{1,2}})\s*[.):\]]+\s+(?=\S)",
    re.IGNORECASE,
)
"""How both a choice and the first of the user's own points begin: `1. `."""
_GOES_ON = re.compile(
    rf"(?:yes|yeah|yep|yup|ok(?:ay)?|sure|fine|perfect|agreed?|definitely|absolutely|please|pls|thanks|thx|thank you|and|but|because|as you|since (?:we|i|it|that)|sounds|looks|seems|makes sense|for (?:sure|now|me)"
    r"|(?:(?:just|let'?s) )?(?:do|go|use|take|try|implement|pick)(?: (?:for|with|ahead))?(?: (?:with )?(?:it|that|this))?(?=\W*$|[.,;!]| (?:it|that|this|ahead|please|pls|and|but|because|then)\b)"
    rf"|(?:i|we)(?:'d| would|'ll| will)? (?:also )?(?:like|go with|prefer|choose|pick|take|agree)|(?:go|going) with {_NAMED}|{_NAMED} \w{{1,2}}|(?:it|that|this)(?:'s| is) (?:the )?(?:\w+er|\w+est|best|fine|good|ok(?:ay)?|perfect|better)"
    r"|ja|oui|sí|si|und|aber|bitte|weil|et|mais|merci|car|pero|porque|por favor)\b",
    re.IGNORECASE,
)
"""How a sentence begins that goes on from the choice before it, rather than stating a point of its own."""
_ANSWER_LIST = re.compile(r"^\W*1\s*[.):–—-]?\s+\S.*\b2\s*[.):–—-]\s*\S", re.DOTALL)
_ANSWER_MARK = re.compile(r"(?:^|[\s,;])(?P<label>\d{1,2})\s*[.):–—-]\s*(?=\S)")
_CHOOSES = re.compile(rf"\b(?:{_CHOOSE}|it is|sounds (?:good|right|best|like)|is (?:the )?(?:best|fine|good|better|right)|looks (?:good|best)|please|instead)\b", re.IGNORECASE)  # fmt: skip
_ORDINAL = re.compile(
    r"(?:^\W*|\b(?:the|der|die|das|la|le|your)\s+)(?P<rank>first|second|third|fourth|last|former|latter|1st|2nd|3rd|4th|erste|zweite|dritte|letzte|premi[eè]re?|deuxi[eè]me|derni[eè]re?)\s*(?:one|option|approach|alternative|solution|variant|idea|way)?\b",
    re.IGNORECASE,
)
_RANKS = {
    "first": 0, "1st": 0, "former": 0, "erste": 0, "premier": 0, "première": 0, "premiere": 0, "second": 1, "2nd": 1, "zweite": 1, "deuxième": 1, "deuxieme": 1,
    "third": 2, "3rd": 2, "dritte": 2, "fourth": 3, "4th": 3, "last": -1, "latter": -1, "letzte": -1, "dernier": -1, "dernière": -1, "derniere": -1,
}  # fmt: skip
_EXPLICIT = re.compile(
    rf"\b(?:i|we)(?:'d| would|'ll| will)? (?:go (?:with|for)|going (?:with|for)|like|prefer|choose|pick|take|went with)\s+(?:your |the )?{_NAMED}\s*#?\s*(?P<label>[a-z]|\d{{1,2}})\b",
    re.IGNORECASE,
)
_QUOTED_CHARACTERS_MIN = 40
_ASKS_ABOUT = re.compile(
    r"\b(?:explain|clarify|what|why|how|mean|understand|tell me)\b", re.IGNORECASE
)
_RECOMMENDED = re.compile(r"\b(?:your recommend\w*|as (?:you )?(?:recommend|suggest|propos)\w*|what you (?:recommend|suggest|propos)\w*|(?:the )?recommended|your (?:suggestion|proposal|pick|preference))\b", re.IGNORECASE)  # fmt: skip
_ASSENT = re.compile(
    rf"^\W*(?:(?:{_MOOD}|yes please|please do|go ahead|go for it|do it|do that|do this|let'?s (?:do|go|try|change|apply|use)(?: (?:it|that|this|with (?:it|that|this)))?|makes sense|agreed?|sounds (?:good|great|right|like a plan)|good idea|i (?:like|agree)(?: (?:it|that|this|with (?:it|that|this)))?"
    r"|correct|exactly|absolutely|that was the idea|mach das|klar|genau|d'accord|vas-y|claro|dale)\b[\s,.!]*)+",
    re.IGNORECASE,
)
_AFTER_NO = r"(?:i|we|it|its|that|this|these|those|they|you|let'?s|lets|just|don'?t|do|doesn'?t|keep|leave|please|not|use|skip|make|stay|stop|only|the|there|because|since|for|as|always|never|can|should|need|thanks|thank|worries)"
"""What stands after a `no` that refuses: in `no rewind, only checkpoints` it belongs to the noun."""
_NO = re.compile(
    rf"^\W*(?:{_MOOD}\b[\s,]*)*?(?P<no>no+(?=\W*$|\s*[,.;!?:–—-]|\s+{_AFTER_NO}\b)|nope|nah|nein|non|not (?:now|yet|really|needed|necessary)|don'?t|do not|please don'?t|leave (?:it|this|that)|keep (?:it|this|that|the)\b|skip (?:it|this|that)|no (?:need|thanks)|do nothing"
    r"|(?:i think )?(?:this|that|it)(?:'?s| is) (?:fine|ok|okay|good enough|correct|intentional|intended|on purpose|by design)(?: as| like|\.|,|$)|fine as)\b",
    re.IGNORECASE,
)
_IS_FINE = re.compile(
    r"^\W*(?:[\w' ]+ )?(?:this|that|it)(?:'?s| is) (?:fine|ok|okay|good enough|correct)\b",
    re.IGNORECASE,
)
_KEEPS_AS_IT_IS = re.compile(
    r"\b(?:objections?|concerns?|keep|leave|stay|fine|ok(?:ay)?|good|happy|approve|agree|acceptable|work for you)\b",
    re.IGNORECASE,
)
"""A question that `it is fine` agrees to: `any objections, or shall we keep it simple?`."""
_ACCEPTS = re.compile(
    r"\b(?:(?:is|are|be|'s) (?:totally |completely |perfectly )?(?:fine|ok|okay|acceptable|intentional|intended|by design|good enough)|on purpose|not worth|too (?:much|risky|complex|complicated)|has to much|too many|over-?kill|over-?engineer\w*|don'?t (?:want|need|like))\b",
    re.IGNORECASE,
)
_STEERS = re.compile(
    r"^\W*(?:no+|nope|nah)\b[\s,.!]*(?:(?:wait|ignore|first|show|explain|tell|stop|sorry|hold on|still|again|problem|worries|idea|luck|clue|errors?|changes?|difference|result|i mean\w*|i(?:'m| am) (?:not|talking|asking)|i (?:get|got|see|still|just|tried|ran|can't|cannot)|let me|you|it (?:still|does|doesn't|is|isn't|'s|was|did|didn't|works?|fails?)|that'?s (?:not|wrong)|that is (?:not|wrong)|this (?:is not|is wrong|doesn't)"
    r"|what|why|how|where|which|the (?:issue|problem|error|question)|there (?:is|are|'s)|he|she|they|now it)\b|$)",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"\b(?:later|not now|not yet|another (?:time|day|pr|session|branch)|some other time|next (?:week|time|sprint|release|version|pr|session|month|step|iteration)|tomorrow|in the future|(?:a|for) (?:the )?future|after (?:the|this|that|we)|follow[- ]?up|separate (?:pr|ticket|issue|task|branch)|backlog|once (?:the|this|that|we)|später|nächste\w*|plus tard|más tarde)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r",?\s*\bright\s*\?+", re.IGNORECASE)
_DELIBERATES = re.compile(
    r"\b(?:what do you think|what'?s your (?:opinion|take)|thoughts\?|does (?:it|that|this) make sense|makes? sense to|i wonder(?:ed)? (?:if|whether)|would it (?:make sense|be better|be possible to)|should we|should i|is it better|is there (?:a|any) (?:better|other)|how about|what about|wouldn'?t it|isn'?t it (?:better|cleaner|easier)"
    r"|which (?:one|way|is|would)|better (?:to|if)|any other option|alternatives?|propose|pros and cons|trade-?offs?|instead|or (?:should|is|do|would))\b",
    re.IGNORECASE,
)


_ORDER_OF_WORK = re.compile(r"\b(?:which|what)\b[^?]{0,40}\b(?:next|first)\b", re.IGNORECASE)
_ASKS_WHAT_TO_TAKE_NEXT = re.compile(
    r"\b(?:which|what)\b[^?]*\b(?:should|shall|do|would|can) (?:i|we|you)\b[^?]*\b(?:next|first)\b",
    re.IGNORECASE,
)
_OF_THE_MOMENT = re.compile(
    r"^\W*(?:(?:let'?s|please|just|i'?ll|and|then|also|yes)\s+)*(?:commit|push|rebase|amend|cherry-pick|squash|triage|debug|continue|proceed|keep going|keep on|carry on|go on|go ahead|pause|wait|stop here|open (?:a|the) (?:pr|pull request|mr))\b",
    re.IGNORECASE,
)
"""Handing the work over, or going on with it: over once it is done, whatever else was offered."""
_PUTS_FIRST = re.compile(
    r"^\W*(?:(?:i think|ok(?:ay)?|no|nah|for now),?\s+)*(?:let'?s|lets|focus|just|work|do|start|stick)\b.*\b(?:first|for now|later|then)\b",
    re.IGNORECASE,
)
_OBJECTS_TO_QUESTION = re.compile(r"^\W*(?:this|that|it|these|you|i|we|why|what)\b", re.IGNORECASE)
_OWN_ANSWER_WORDS_MIN = 4
"""Words from which an answer that is none of the options may be one about the question itself."""
_ASKS_WHAT_NEXT = re.compile(
    r"\b(?:what (?:would|do|should) (?:you|we|i) (?:like |want )?(?:me )?(?:to )?(?:do|tackle|work on|start with)\b|how (?:would|do|should) (?:you|we|i) (?:like |want )?(?:me )?(?:to )?(?:proceed|continue|handle (?:this|it)|go on)|what(?:'s| is)? next|more questions|next (?:area|topic|step)|ready to|(?:shall|should|can|may) (?:i|we) (?:proceed|continue|commit|push|start|go ahead|merge|run|remove|delete)"
    r"|(?:like|want) (?:me )?to (?:discuss|review|see|generate|commit|push|proceed|continue)|which (?:\w+ )?(?:areas?|topics?|todos?|tasks?|items?|issues?|findings?|files?|questions?) (?:do|would|should)|did (?:it|this|that)|does (?:it|this|that) look|is (?:it|this|that) (?:ok|right|correct|good))\b",
    re.IGNORECASE,
)
"""A question about the next step or about what has been done, not about how things shall be."""
_CONFIRMS_ONCE = re.compile(
    r"^\W*(?:yes|yep|yeah|ok(?:ay)?|sure|no|nope)\b[\s,.:–—-]*(?:$|(?:please|it|this|that|do|go|rewrite|remove|delete|commit|push|proceed|continue|approve|generate|create|run|fix|merge|skip|cancel|looks?|works?|they|all)\b)",
    re.IGNORECASE,
)
_LEAVES_OPEN = re.compile(
    r"\b(?:you (?:decide|choose|pick)|your (?:call|choice|discretion)|up to you|whatever|no (?:preference|opinion|idea)|not sure|don'?t (?:know|care|mind)|depends?|let'?s (?:discuss|talk)|more (?:questions|info\w*|details)|skip (?:this|question)|other|something else|none of)\b|^\W*hm+\b",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"\s*\((?:recommended|default|suggested)[^)]*\)\s*$", re.IGNORECASE)
_REPORTS_DONE = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|well|now|and|but|hm+)\b[\s,]*)*(?:i|we)(?:'ve|'m| have| am| had)?\s+(?:(?:already|just|now|both)\s+)*(?:\w+ed|did|set|put|made|got|ran|went|going to|gonna|see|am|was|turned|\w+ing)\b",
    re.IGNORECASE,
)
"""The user tells what he has done or is about to do himself."""
_ONCE = re.compile(r"\W*(?:wait (?:for|until|and)|re-?run|proceed|monitor)\b", re.IGNORECASE)
_ONE_TIME = re.compile(
    r"\b(?:invalidation|restart|re-?deploy(?:ment)?|re-?build|roll-?back|clean-?up|re-?install(?:ation)?|reboot|hard refresh)$",
    re.IGNORECASE,
)
"""An operation that is over once it is done."""
_OFFERS_WORK = re.compile(
    r"\W*(?:(?:so|now|then)\W+)?(?:would you like me to|do you want me to|want me to|shall i|should i|would you like to|what would you like|which would you like)\b",
    re.IGNORECASE,
)
_RESTRICTS = re.compile(
    r"(?<=\w)[\s)\].,;:!–—-]+(?P<what>(?:but|except|without|only (?:if|for|when|in|on|with)|unless|as long as|provided|aber|mais|pero)\b"
    r"(?!,? (?:first|wait|before|let me|also|please (?:commit|push)|i(?:'m| am| think| guess| wonder| have| had| don'?t (?:know|care|mind|get|understand))|why|what|how|which|can|could|does|is|are|do|did|not (?:now|yet|sure))\b)[^\n]{4,}"
    r"|(?<=[,;] )(?:no (?!wait|need|problem|worries|idea|more\b)\w[^\n]{4,}|[^\n,;]{4,80}\bthough\b))",
    re.IGNORECASE,
)  # dashes as people type them
"""What is said after a choice to take something from it: `…, but keep the old name`."""
_LIKES_ANOTHER = re.compile(
    rf"but (?:{_NAMED}\s*)?(?:[a-z]|\d{{1,2}}) (?:is|seems|looks|sounds|feels|might|may|would|could)\b",
    re.IGNORECASE,
)
"""`I like A, but B is safer` chooses neither."""
_LIMITS = re.compile(
    r"(?:but )?(?:please )?(?:only|without|except|not|no|never|keep|leave|don'?t|do not|with|as|use|make|for|unless|if|just|limit|cap|at most|as long as|provided)\b",
    re.IGNORECASE,
)
"""How what limits a proposal begins: `but only for …`, not `but it still fails`."""
_RESTRICTION_CHARACTERS, _RESTRICTED_WORDS_MAX = 120, 12
"""Of a restriction, and of the choice before it: in a longer message it restricts something else."""
_CHOICE_LEAD = re.compile(
    rf"^\W*(?:(?:{_MOOD}|{_CHOOSE}|i think|maybe)\b[\s,.!:]*)+", re.IGNORECASE
)
_MORE_STEMS_MIN = 2
_NAMED_SHARE = 0.34
"""Of the words that tell an option from the others, in a message that is longer than a few words."""


def read_answer(prompt: str, before: Sequence[str], asked: str) -> Act | None:
    """What a prompt does with what the agent's messages `before` it offered, the latest first; None if nothing.

    `asked` is the user's prompt before.
    """
    if not before:
        return None
    said = prompt.strip()[:_ANSWER_CHARACTERS]
    if any(assertions.is_ironic(_TAG.sub("", s)) for s in sentences.split_sentences(said)[:2]):
        return None
    offer = read_offer(before[0])
    is_list = _ANSWER_LIST.match(said) is not None or _is_own_point(prompt.strip(), offer)
    return (
        (None if is_list else _read_choice(said, offer, before))
        or _read_refusal(said, offer)
        or _read_agreement(said, offer, asked)
    )


def read_tool_answer(question: str, answer: str, offered: Mapping[str, str]) -> Act | None:
    """The user's answer to a question asked with a tool: an option by its label, or his own words.

    `offered` are the options' labels, in lower case, with their descriptions.
    """
    if is_chore(answer) or assertions.is_ironic(answer) or sentences.is_question(answer):
        return None
    details = offered.get(answer.strip().lower(), "")
    if not offered or (len(offered) > 1 and all(map(is_chore, offered))):
        return None
    if (
        _ASKS_WHAT_NEXT.search(question)
        or _ASKS_WHAT_TO_TAKE_NEXT.search(question)
        or _CONFIRMS_ONCE.match(answer)
        or _LEAVES_OPEN.search(answer)
    ):
        return None
    if not details and len(words(answer)) > _ASSENT_WORDS_MAX:
        return None  # own words at this length are no choice, but may hold a statement
    is_own = answer.strip().lower() not in offered
    if sentences.is_only_placeholders(answer) or (
        is_own and _is_no_choice(answer, f"{question} {offered}")
    ):
        return None
    answer = _SUFFIX.sub("", answer)
    text = f"{answer}: {strip_markup(details)}" if details else answer
    return Act(ActKind.CHOSEN, answer, text, question)


def _is_no_choice(answer: str, asked: str) -> bool:
    """Whether words of the user's own choose none of what was asked: they put something else first, or object to it."""
    if _PUTS_FIRST.match(answer):
        return True
    is_long = len(words(answer)) >= _OWN_ANSWER_WORDS_MIN
    is_apart = set(content_stems(answer)).isdisjoint(content_stems(asked))
    return is_long and is_apart and _OBJECTS_TO_QUESTION.match(answer) is not None


@dataclass(frozen=True, slots=True)
class ListedAnswer:
    """The answer to one of several questions of the agent."""

    question: str
    answer: str


def read_listed_answers(prompt: str, before: Sequence[str]) -> list[ListedAnswer]:
    """`1. yes 2. no, keep it 3. B` against the agent's numbered questions; empty if nothing but chores is answered."""
    said = prompt.strip()[:_ANSWER_CHARACTERS]
    asked = find_questions(before[0]) if before and _ANSWER_LIST.match(said) else {}
    marks = list(_ANSWER_MARK.finditer(said)) if asked else []
    if [mark.group("label") for mark in marks] != [str(n + 1) for n in range(len(marks))]:
        return []  # who numbers otherwise than the agent does may answer something else
    if not marks:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(said)]
    found = [
        ListedAnswer(asked[mark.group("label")], said[mark.end() : end].strip(" ,;\n"))
        for mark, end in zip(marks, ends, strict=True)
        if mark.group("label") in asked
    ]
    return [] if all(is_chore(one.question) for one in found) else found


# --- choices ---


def _is_own_point(prompt: str, offer: Offer) -> bool:
    """Whether a message begins with a point of the user's own list: `1. You can …`, or a label that the next one follows.

    A letter alone numbers no list, and with `Option 1.` or `go with 1.` he chooses.
    """
    item = _ITEM.match(prompt)
    if item is None:
        return False
    label, rest = item.group("label").lower(), prompt[item.end() :]
    if _has_item(rest, _next_label(label)):
        return True
    if label.isalpha() or len(words(rest)) == 1 or _GOES_ON.match(rest):
        return False
    return not any(o.label == label and _repeats(rest, o) for o in offer.options)


def _next_label(label: str) -> str:
    return str(int(label) + 1) if label.isdigit() else chr(ord(label) + 1)


def _has_item(text: str, label: str) -> bool:
    """Whether a line of a text begins with this label."""
    pattern = rf"^[ \t]*[(\[]?{re.escape(label)}[ \t]*[.):\]]+[ \t]+\S"
    return re.search(pattern, text, re.IGNORECASE | re.MULTILINE) is not None


def _repeats(said: str, option: Option) -> bool:
    """Whether the first sentence begins as the option's name does, as far as both go."""
    mine = normalised(next(iter(sentences.split_sentences(said)), ""))
    offered = normalised(option.name)
    return bool(mine and offered) and (mine.startswith(offered) or offered.startswith(mine))


def _read_choice(said: str, offer: Offer, before: Sequence[str]) -> Act | None:
    choice, restriction = _split_restriction(said)
    option = _find_chosen(choice, offer, before)
    if restriction and option is None:
        option, restriction = _find_chosen(said, offer, before), ""
    if _LIKES_ANOTHER.match(restriction):
        return None
    if option is None or _is_routine(option, offer):
        return None
    return Act(ActKind.CHOSEN, option.name, option.text, offer.question, offer.heading, restriction)


def _split_restriction(said: str) -> tuple[str, str]:
    """(the choice, what restricts it): `3` and `but keep the old name`; the latter is empty if there is none."""
    match = _RESTRICTS.search(said)
    what = next(iter(sentences.split_sentences(match["what"])), "").strip(" .,;!") if match else ""
    what = what[:1].lower() + what[1:]
    choice = said[: match.start()] if match else said
    is_aside = len(words(choice)) > _RESTRICTED_WORDS_MAX or "(" in choice.lstrip("( ")
    if is_aside or sentences.is_question(what) or len(what) > _RESTRICTION_CHARACTERS:
        return said, ""
    return choice, what


def _is_routine(option: Option, offer: Offer) -> bool:
    """Whether the choice is one of what to do next rather than of how things shall be."""
    if _ORDER_OF_WORK.search(offer.question) or _is_next_step(option, offer):
        return True
    if _OF_THE_MOMENT.match(option.name):
        return True
    return is_chore(option.name) and all(is_chore(o.name) for o in offer.options)


def _is_next_step(option: Option, offer: Offer) -> bool:
    """Whether an option is something to be done once, or one of several things the agent could go on with."""
    if _ONCE.match(option.name) or _ONE_TIME.search(_SUFFIX.sub("", option.name).strip(" .:")):
        return True
    first = first_word(option.name)
    return (
        bool(option.label) and first in verbs.CONDUCT and bool(_OFFERS_WORK.match(offer.question))
    )


def _find_chosen(said: str, offer: Offer, before: Sequence[str]) -> Option | None:
    """The option that a message chooses: named outright, quoted, by its label, or in its first two sentences."""
    chosen = _find_explicit(said, before) or _find_quoted(said, offer.options)
    if chosen is not None:
        return chosen
    by_label = {option.label: option for option in offer.options if option.label}
    match = _BARE_LABEL.match(said)
    if match is not None and (chosen := by_label.get(match.group("label").lower())):
        return chosen if _is_clear_label(said, match) else None
    found = (_find_in(s, offer, by_label, before) for s in sentences.split_sentences(said)[:2])
    return next((option for option in found if option), None)


def _find_explicit(said: str, before: Sequence[str]) -> Option | None:
    """`I'd go with option 4`, wherever in the message and from whichever of the messages before it."""
    match = _EXPLICIT.search(said)
    if match is None:
        return None
    label = match.group("label").lower()
    return next((option for text in before if (option := find_option(text, label))), None)


def _find_in(
    sentence: str, offer: Offer, by_label: dict[str, Option], before: Sequence[str]
) -> Option | None:
    if _is_plain_question(sentence) or _REPORTS_DONE.match(sentence):
        return None
    if offer.recommended and _RECOMMENDED.search(sentence):
        return offer.recommended
    if assertions.is_reported(sentence):
        return None
    return (
        _find_referenced(sentence, by_label, before)
        or _find_by_rank(sentence, offer.options)
        or _find_by_name(sentence, offer.options)
    )


def _is_clear_label(said: str, match: re.Match[str]) -> bool:
    """Whether a single letter is a label rather than a word: `a`, `I`."""
    label = match.group("label")
    if label not in ("a", "A", "I", "i"):
        return True
    after = said[match.end("label") :].lstrip()
    return label == "A" or not after[:1].isalpha()


def _is_plain_question(sentence: str) -> bool:
    """Whether this asks for an answer, not for a choice to be carried out: `can we do option 2?` is none."""
    if not sentences.is_question(sentence):
        return False
    return (
        re.match(
            r"^\W*(?:\w+\W+){0,2}(?:can|could) (?:we|you) (?:do|go|use|try|take|implement|just|build|help)\b",
            sentence,
            re.IGNORECASE,
        )
        is None
    )


def _find_quoted(said: str, options: Sequence[Option]) -> Option | None:
    """The only option whose beginning a message repeats, word for word, unless it asks about it."""
    plain = normalised(strip_markup(said))
    found = [
        o
        for o in options
        if len(start := normalised(o.text)[:_QUOTED_CHARACTERS_MIN]) == _QUOTED_CHARACTERS_MIN
        and start in plain
    ]
    if len(found) != 1 or _ASKS_ABOUT.search(said[:60]):
        return None
    return found[0]


def _find_referenced(
    sentence: str, by_label: dict[str, Option], before: Sequence[str]
) -> Option | None:
    labels = set(find_references(sentence))
    if len(labels) != 1 or not (
        _CHOOSES.search(sentence) or len(words(sentence)) <= _FRAGMENT_WORDS_MAX
    ):
        return None
    if re.search(
        r"\b(?:not|no|without|except|against|than)\s+(?:option|approach|alternative)",
        sentence,
        re.IGNORECASE,
    ):
        return None
    label = labels.pop()
    return by_label.get(label) or next(
        (o for text in before if (o := find_option(text, label))), None
    )


def _find_by_rank(sentence: str, options: Sequence[Option]) -> Option | None:
    match = _ORDINAL.search(sentence)
    if match is None or not options or len(words(sentence)) > _NAMING_WORDS_MAX:
        return None
    is_short = len(words(sentence)) <= _FRAGMENT_WORDS_MAX + 2
    if not (is_short or _CHOOSES.search(sentence)):
        return None
    rank = _RANKS[match.group("rank").lower()]
    return options[rank] if rank < len(options) else None


def _find_by_name(sentence: str, options: Sequence[Option]) -> Option | None:
    number = len(words(sentence))
    if not options or number > _NAMING_WORDS_MAX:
        return None
    if number > _FRAGMENT_WORDS_MAX and not _CHOOSES.search(sentence):
        return None
    share = 0.0 if number <= _FRAGMENT_WORDS_MAX else _NAMED_SHARE
    named = [o for o in options if is_named(sentence, o, options, share)]
    return _take_own_words(sentence, named[0]) if len(named) == 1 else None


def _take_own_words(sentence: str, option: Option) -> Option:
    """The option, or the user's own words where they say more than an alternative in passing does."""
    own = _CHOICE_LEAD.sub("", sentence).strip(" .,!")
    more = set(content_stems(own)) - set(content_stems(option.text))
    return option if option.label or len(more) < _MORE_STEMS_MIN else Option("", own, own)


# --- refusals ---


def _read_refusal(said: str, offer: Offer) -> Act | None:
    if not _NO.match(said) or _STEERS.match(said) or not offer.question:
        return None
    if _IS_FINE.match(said) and _KEEPS_AS_IT_IS.search(offer.question):
        return None
    if offer.options and not any(o.label for o in offer.options):
        return None  # of `this one, a tweak, or keep it?` nobody knows which is refused
    proposal = _name_proposal(offer)
    if not proposal or (is_chore(proposal) and not _ACCEPTS.search(said)):
        return None
    kind = ActKind.DEFERRED if _LATER.search(said) else ActKind.DECLINED
    return Act(kind, proposal, "", offer.question)


def _name_proposal(offer: Offer) -> str:
    """What was proposed, if it says more than `do it`; where several things were, all of them."""
    if len(words(offer.proposal)) >= _PROPOSAL_WORDS_MIN:
        return offer.proposal
    return "; ".join(o.name for o in offer.options)


# --- agreements ---


def _read_agreement(said: str, offer: Offer, asked: str) -> Act | None:
    """Agreeing decides where there was something to choose; else it is a go-ahead."""
    said, restriction = _split_restriction(said)
    match = _ASSENT.match(said)
    if match is None or len(words(said)) > _ASSENT_WORDS_MAX or said.rstrip().endswith("?"):
        return None
    if not offer.proposal or is_chore(offer.proposal):
        return None
    is_limited = _LIMITS.match(restriction) is not None
    restriction = restriction if is_limited else ""
    if is_limited and not offer.options and match.end() >= len(said.rstrip()):
        return Act(ActKind.AGREED, offer.proposal, "", offer.question, "", restriction)
    if offer.recommended is not None and not is_chore(offer.recommended.name):
        chosen = offer.recommended
        return Act(ActKind.AGREED, chosen.name, chosen.text, offer.question, "", restriction)
    if not _DELIBERATES.search(asked) or offer.options:
        return None
    return Act(ActKind.AGREED, offer.proposal, "", offer.question, "", restriction)
