"""What a model replied, checked before it is believed. Pure.

A reply is used only if it is the JSON that was asked for, within its bounds, and names nothing that
the record does not: a number, an identifier or a path of the model's own invention refuses the
whole reply, since nobody could tell later which half was true.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from memd.text import fold, words

TITLE_CHARACTERS = 90
TITLE_CHARACTERS_MIN = 3
FACTS_MAX = 8
FACT_CHARACTERS = 240

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_PARTICULAR = re.compile(r"\d|_|[a-z][A-Z]|\w\.\w|/\w")


@dataclass(frozen=True, slots=True)
class Written:
    """A title and facts that the record bears out."""

    title: str
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A reply that cannot be used, and why, in words that the model may be told."""

    reason: str


def written(reply: str, source: str) -> Written | Refused:
    """The title and facts in a reply about `source`."""
    text = _THINKING.sub("", reply).strip()
    fenced = _FENCE.match(text)
    try:
        value: Any = json.loads(fenced.group(1) if fenced else text)
    except (ValueError, RecursionError):
        return Refused("it is not a JSON object")
    if not isinstance(value, dict):
        return Refused("it is not a JSON object")
    title: Any = value.get("title")
    facts: Any = value.get("facts", [])
    if reason := _misshapen(title, facts):
        return Refused(reason)
    if invented := _invented((title, *facts), source):
        return Refused(f"the record does not say “{invented}”")
    return Written(title.strip(), tuple(fact.strip() for fact in facts))


def _misshapen(title: Any, facts: Any) -> str:
    """What is wrong with the form of a reply; empty if nothing is."""
    if not isinstance(title, str) or "\n" in title:
        return "the title is not one line of text"
    if not TITLE_CHARACTERS_MIN <= len(title.strip()) <= TITLE_CHARACTERS:
        return f"the title must have {TITLE_CHARACTERS_MIN} to {TITLE_CHARACTERS} characters"
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        return "the facts are not a list of texts"
    if len(facts) > FACTS_MAX:
        return f"there are more than {FACTS_MAX} facts"
    if not all(0 < len(fact.strip()) <= FACT_CHARACTERS for fact in facts):
        return f"a fact is empty or longer than {FACT_CHARACTERS} characters"
    return ""


def _invented(texts: tuple[str, ...], source: str) -> str:
    """The first number, identifier or path that the record does not have; empty if there is none."""
    known = fold(source)
    known_words = {fold(word) for word in words(source)}
    for text in texts:
        for token in text.split():
            bare = token.strip("`'\"“”()[]{},.;:!?*")
            is_known = fold(bare) in known or all(fold(w) in known_words for w in words(bare))
            if _PARTICULAR.search(bare) and not is_known:
                return bare
    return ""
