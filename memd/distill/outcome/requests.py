"""What a short prompt asks for: `yes`, `option 2` and `do it` mean what the agent had offered before. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from memd.distill import sentences
from memd.distill.episodes import Exchange
from memd.distill.outcome.salience import tells_nothing
from memd.distill.outcome.statements import Statement, read_statements, strip_markup
from memd.distill.speech import verbs
from memd.machine_text import read_plan
from memd.patterns import compile_lazily
from memd.text import first_word, is_stop_word, stem, words

_SHORT_CHARACTERS = 80
_RESOLVED_CHARACTERS = 300
_CHOICE = compile_lazily(
    r"\b(?:option|approach|variant|choice|alternative|solution|proposal|number|no\.?|#|idea|plan)\s*#?([a-h]|\d{1,2})\b"
    r"|^\W*(?:(?:ok|okay|yes|yep|yeah|let'?s|lets|i'?d|i|would|go|going|with|do|try|take|like|prefer|think|use|pick|for|the|please|maybe|just|rather|say|vote|then|now|so|also)[\s,:.!]+)*\(?([a-h]|\d{1,2})\b\)?(?=\W*(?:$|and\b|but\b|please|with\b|,|\.|sounds|seems|looks|would|except|without|is\b|it\b|then|=|because|since|for now))",
    re.IGNORECASE,
)
_OPTION_LINE = compile_lazily(
    r"^\s*(?:[-*•>]\s+)?(?:#{1,6}\s*)?(?:\*\*)?\s*(?:(?:option|approach|variant|choice|alternative|solution|proposal|plan|idea)\s*#?)?\(?(\d{1,2}|[A-Ha-h])\s*(?:\*\*)?\s*[.):—–:-]+\s*(.+)$",
    re.IGNORECASE,
)  # dashes as people type them
_OPTION_ROW = compile_lazily(
    r"^[ \t]*\|[ \t]*\**#?(\d{1,2}|[A-H])\**[ \t]*\|[ \t]*([^|\n]*[^|\s])[ \t]*\|"
)
"""A row of a table whose first cell is a label: its second one says what it is."""
_OFFER = compile_lazily(
    r"^(?:(?:so|or|and|ok|okay|anyway),?\s+)?(?:(?:would|do) you (?:want|like|prefer)(?: me)? to|want me to|should (?:i|we)|shall (?:i|we)|can i|may i|could i|do you want(?: me to)?|would you like(?: me to)?"
    r"|if you(?:'d| would)? (?:like|want|agree|prefer)[^,]{0,30},\s*i (?:can|could|will)|i (?:can|could|would|'d|’d)|let me know if you(?:'d like| want)(?: me)? to|ready to|i(?:'d| would) (?:recommend|suggest|propose)|i (?:recommend|suggest|propose)|my (?:recommendation|suggestion|proposal|plan)(?: is|:)(?: to)?)\s+",
    re.IGNORECASE,
)
_DEICTIC = frozenset(
    stem(word)
    for word in words("""yes yeah yep yup sure ok okay please thank thanks great good nice cool perfect sounds looks fine go ahead proceed continue do
    that this it one first second third last latter former option start try again next keep let lets also both all agree agreed definitely
    absolutely correct right exactly ship lgtm implement apply fix change changes add make""")
)
_COMMAND_NAME = compile_lazily(r"^/[a-z][\w:-]*\s*")
_BRANCH = r"(?:(?:the |a )?(?:main|master|develop|dev|trunk|default|[\w./-]*[/-][\w./-]*|phase \w+|release)(?: branch)?|(?:the |that |this )?branch(?: \S+)?)"
_LOOKS_AT_BRANCH = compile_lazily(
    r"^\W*(?:(?:ok(?:ay)?|yes|great|good|cool|nice|perfect|thanks|now|then|so|and|please|pls|alright|let'?s|lets|(?:can|could) (?:you|we)|just|no|merged|it'?s merged|that'?s merged)\b[\s,.!:]*)*"
    rf"(?:(?:get|go|switch|come|move|change|jump)(?: over)?(?: back)?(?: on)? ?(?:in)?to {_BRANCH}|(?:git )?(?:check ?out|switch) {_BRANCH}|(?:git )?(?:pull|fetch)(?: in)?(?: the)?(?: latest| newest| new| remote)?(?: (?:changes|commits|version|main|master|code))?)"
    r"(?:(?:,| and)? (?:(?:git )?(?:pull|fetch)(?: in)?(?: the)?(?: latest)?(?: changes| commits)?|again|now|please|pls|first|from (?:main|master|origin|remote|upstream)))*[\s.!?]*$",
    re.IGNORECASE,
)
_PRAISE = frozenset(
    words("works worked working great good nice perfect fine better excellent awesome")
)
_SAID_WITH_PRAISE = _PRAISE | frozenset(
    words(
        "it that this all now looks seems is very much so really ok okay yes thanks thank you to me i checked tested cool wow too again well"
    )
)
_PRAISE_WORDS, _ARGUMENT_WORDS_MAX = 8, 8


@dataclass(frozen=True, slots=True)
class Preceding:
    """What was said last before a turn, in the same session."""

    prompt: str = ""
    """The last one that says something by itself."""
    answer: str = ""
    unanswered: str = ""
    """The prompts right before that were broken off before the agent said anything."""


NOTHING_SAID = Preceding()


def is_deictic(prompt: str) -> bool:
    """Whether a prompt says only by pointing back what it wants: `yes, let's add this`, `C)`, `do the fix`."""
    text = prompt.strip()
    if len(text) > _SHORT_CHARACTERS or "\n" in text:
        return False
    if sentences.is_small_talk(text) or find_choice(text):
        return True
    said = [word.lower() for word in words(text) if not is_stop_word(word)]
    verb = next((word for word in said if stem(word) not in _DEICTIC), "")
    return all(
        stem(word) in _DEICTIC or (word == verb and word in verbs.ALL) or tells_nothing(word)
        for word in said
    )


def find_choice(prompt: str) -> str:
    """The letter or number of the option that a prompt chooses, in lower case; empty if it chooses none."""
    text = prompt.strip()[: 2 * _SHORT_CHARACTERS]
    match = _CHOICE.search(text)
    if match is None:
        return ""
    chosen: str = (match[1] or match[2]).lower()
    # `a` and `i` are words, too: alone they count only in capitals or with a mark.
    if (
        chosen.isalpha()
        and match[2]
        and not re.search(rf"\b{chosen.upper()}\b|\b{chosen}\)|^\W*{chosen}\W*$", text)
    ):
        return ""
    return chosen


def find_option(answer: str, chosen: str) -> str:
    """The text of an option that a message offers; empty if it offers none of that name."""
    for line in reversed(answer.split("\n")):
        match = _OPTION_LINE.match(line) or _OPTION_ROW.match(line)
        if match and match[1].lower() == chosen:
            text = strip_markup(match[2]).strip(" *:")
            if any(c.isalpha() for c in text):
                return text[:_RESOLVED_CHARACTERS]
    return ""


def find_offer(answer: str) -> str:
    """What a message offers or asks to do at its end, without the asking; empty if nothing."""
    for one in _from_the_end(read_statements(answer)):
        match = _OFFER.match(one.text)
        if match:
            return one.text[match.end() :].rstrip(" ?.!")[:_RESOLVED_CHARACTERS]
    return ""


def _from_the_end(statements: list[Statement]) -> Iterator[Statement]:
    yield from reversed(statements[-12:])


def read_preceding(exchanges: Sequence[Exchange]) -> Preceding:
    """What was said last before a turn, from the exchanges before it, the latest first."""
    asked = (one.prompt for one in exchanges if one.prompt and not is_deictic(one.prompt))
    last = exchanges[0] if exchanges else None
    answer = (last.answer.text if last.answer else last.first) if last else ""
    broken_off = takewhile(lambda one: one.prompt and not one.answer and not one.first, exchanges)
    unanswered = "\n\n".join(
        reversed([one.prompt for one in broken_off if not is_deictic(one.prompt)])
    )
    return Preceding(next(asked, ""), answer, unanswered)


def find_request(prompts: Sequence[str], before: Preceding) -> str:
    """What a turn was about to do, in the user's words, or in the agent's if the user only agreed.

    Of a plan this is its heading. A prompt that was broken off belongs to the one after it.
    """
    for prompt in prompts:
        if plan := read_plan(prompt):
            return plan.subject
        if resolved := resolve_request(prompt, before):
            return resolved
        own = _name_command(prompt)
        if not is_deictic(own):
            return "\n\n".join(filter(None, (before.unanswered, own)))
    return before.unanswered or "\n\n".join(prompts)


def _name_command(prompt: str) -> str:
    """A prompt without the client's command before it, unless only that says what is to be done: `/review all of it`."""
    match = _COMMAND_NAME.match(prompt)
    if match is None:
        return prompt
    given = prompt[match.end() :]
    first = first_word(given)
    if not first or first in verbs.ALL or len(words(given)) > _ARGUMENT_WORDS_MAX:
        return given
    return f"{' '.join(words(match.group()))}: {given}"


def describe_request(prompts: Sequence[str], before: Preceding) -> str:
    """What the user asked for, as it is told: a plan by its heading and its first paragraph."""
    plans = map(read_plan, prompts)
    told = [
        f"the plan “{plan.subject}”. {plan.context}" if plan else prompt
        for prompt, plan in zip(prompts, plans, strict=True)
    ]
    return "\n\n".join(filter(None, (before.unanswered, *told)))


def moves_branch(prompt: str) -> bool:
    """Whether a prompt only wants another branch or its newest state: `ok, back to main`, `pull the latest`."""
    return _LOOKS_AT_BRANCH.match(prompt.strip()[: 2 * _SHORT_CHARACTERS]) is not None


def is_praise(prompt: str) -> bool:
    """Whether a prompt only says that it is well: `That works now!`."""
    said = [word.lower() for word in words(prompt[: 2 * _SHORT_CHARACTERS])]
    return (
        len(said) <= _PRAISE_WORDS
        and not _PRAISE.isdisjoint(said)
        and _SAID_WITH_PRAISE.issuperset(said)
    )


def resolve_request(prompt: str, before: Preceding) -> str:
    """What a deictic prompt asks for, in the agent's own words; empty if it is none or nothing fits."""
    if not before.answer or not is_deictic(prompt):
        return ""
    chosen = find_choice(prompt)
    if chosen and (option := find_option(before.answer, chosen)):
        return option
    return find_offer(before.answer)
