"""What a model replied, checked before it is believed. Pure.

A reply is used only if it holds the JSON that was asked for, within its bounds, and says nothing that
can be seen not to stand in the record: a number, a path, an identifier, a name or a quotation of the
model's own invention refuses the whole reply, since nobody could tell later which half was true. So
does a sentence that gives orders to whoever reads it. Being too strict costs little: the rules' own
text stays. Not here: whether two true words were put together truly; nobody can check that.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memd.text import fold, is_stop_word, split_identifier, stem, terms, words

TITLE_CHARACTERS = 90
TITLE_CHARACTERS_MIN = 3
FACTS_MAX = 8
FACT_CHARACTERS = 240

_REPLY_CHARACTERS = 100_000
_STARTS_MAX = 20
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_PARTICULAR = re.compile(r"\d|_|[a-z][A-Z]|\w\.\w|/\w|\w/|^--?\w|\w@\w")
_EDGES = "`'\"“”‘’«»()[]{}<>,.;:!?*"
_POSSESSIVE = re.compile(r"['’]s$")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|«([^»]+)»")
_SENTENCE_END = (".", "!", "?", ":", "…")
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ORDER = re.compile(
    r"\b(?:ignor|disregard|forget|overrid)\w*\s+(?:[\w']+\s+){0,4}(?:instructions?|prompts?|above)\b"
    r"|\b(?:system prompt|you are now|you (?:must|should|shall|have to)|as an ai|i(?:'m| am) (?:an ai|sorry))\b"
    r"|</?\s*(?:system|user|assistant|instructions?|recalled-memory|private)\b|\[/?inst\]|<\|",
    re.IGNORECASE,
)
_ABBREVIATIONS = frozenset({"e.g", "i.e"})
_COUNTS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "dozen": "12", "twenty": "20",
    "fifty": "50", "hundred": "100", "thousand": "1000", "million": "1000000", "twice": "2",
}  # fmt: skip
"""What is no number but says one. `One` and `first` say too little to be held against anybody."""
_PLAIN = frozenset(
    stem(word)
    for word in """access action add agent allow answer apply approach argument asked avoid behaviour
    behavior branch break broken bug build call case cause change check chose chosen class clean code
    command commit configuration confirm correct create current data decide decision default define
    delete dependency describe directory discover document edit enable ensure error every exception
    execute existing expect explain explore fact fail failure file find first fix follow format found
    function give handle help identify implement import improve include initial input install instead
    introduce investigate invalid issue keep learn line list load logic made make message method
    missing modify module move name need new next number old one open option order output parameter
    parse part pass path pattern prevent previous problem process project provide question read reason
    record refactor reference reject remain remove rename replace report request require resolve
    response result return review root rule run save script second see session set setting show
    solution source start state step stop store succeed successful suggest summary support switch
    task test tests text title tool turn two type understand unexpected unit unused update use used
    user value verify version wait work write written wrong""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""Words that tell of any work at all: with a capital, they are still nobody's name."""


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
    value = _object(_THINKING.sub("", reply[:_REPLY_CHARACTERS]))
    if value is None:
        return Refused("it is not a JSON object")
    title: Any = value.get("title")
    facts: Any = value.get("facts", [])
    if reason := _misshapen(title, facts):
        return Refused(reason)
    texts = (title.strip(), *(fact.strip() for fact in facts))
    if any(_ORDER.search(text) for text in texts):
        return Refused("it gives instructions, where it should tell what happened")
    if invented := next(_invented(texts, source), ""):
        return Refused(f"the record does not say “{invented}”")
    return Written(texts[0], tuple(dict.fromkeys(texts[1:])))


def _object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a reply; prose and fences around it are no part of it."""
    decoder = json.JSONDecoder()
    start = -1
    for _ in range(_STARTS_MAX):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        try:
            value, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _misshapen(title: Any, facts: Any) -> str:
    """What is wrong with the form of a reply; empty if nothing is."""
    if not isinstance(title, str) or _UNSHOWN.search(title.strip()):
        return "the title is not one line of text"
    if not TITLE_CHARACTERS_MIN <= len(title.strip()) <= TITLE_CHARACTERS:
        return f"the title must have {TITLE_CHARACTERS_MIN} to {TITLE_CHARACTERS} characters"
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        return "the facts are not a list of texts"
    if len(facts) > FACTS_MAX:
        return f"there are more than {FACTS_MAX} facts"
    return next((reason for fact in facts if (reason := _misshapen_fact(fact.strip()))), "")


def _misshapen_fact(fact: str) -> str:
    if not 0 < len(fact) <= FACT_CHARACTERS:
        return f"a fact is empty or longer than {FACT_CHARACTERS} characters"
    return "a fact is not one line of text" if _UNSHOWN.search(fact) else ""


def _invented(texts: tuple[str, ...], source: str) -> Iterator[str]:
    """Numbers, identifiers, paths, names and quotations that the record does not have."""
    record = _Record(source)
    for text in texts:
        for match in _QUOTED.finditer(text):
            quoted = next(group for group in match.groups() if group)
            if not record.has(quoted.strip(_EDGES + " ")):
                yield quoted
        is_first = True
        for token in text.split():
            bare = _POSSESSIVE.sub("", token.strip(_EDGES))
            if not record.bears_out(bare, is_first=is_first):
                yield bare
            is_first = token.rstrip("\"'”»)*").endswith(_SENTENCE_END)


class _Record:
    """What a record says, to be asked."""

    def __init__(self, source: str) -> None:
        self._folded = " ".join(fold(source).split())
        tokens = words(source)
        self._stems = {term for token in tokens for term in terms(token)}
        counted = {fold(token) for token in tokens} & _COUNTS.keys()
        self._numbers = {*_NUMBER.findall(source), *(_COUNTS[word] for word in counted)}

    def has(self, text: str) -> bool:
        """Whether the record says this, word for word, whatever the case and the spacing."""
        wanted = " ".join(fold(text).split())
        return bool(re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", self._folded))

    def bears_out(self, bare: str, *, is_first: bool) -> bool:
        """Whether a word may be said of this record; `is_first` of its sentence, it has a capital."""
        said = fold(bare)
        if said in _COUNTS and not self.has(said) and _COUNTS[said] not in self._numbers:
            return False
        if any(number not in self._numbers for number in _NUMBER.findall(bare)):
            return False
        if said not in _ABBREVIATIONS and _PARTICULAR.search(bare):
            return self.has(bare) or self._is_put_together(bare)
        return not bare[:1].isupper() or self._knows(bare, is_first=is_first)

    def _is_put_together(self, bare: str) -> bool:
        """Whether it is only two of the record's words side by side: `client/server`, `3-part`."""
        parts = words(bare)
        is_path = bare.startswith(("/", "-")) or bare.count("/") > 1
        is_name = any(mark in bare for mark in "._@") or any(
            len(split_identifier(part)) > 1 for part in parts
        )
        return (
            not (is_path or is_name)
            and len(parts) > 1
            and all(is_stop_word(part) or self._has_stem(part) for part in parts)
        )

    def _knows(self, bare: str, *, is_first: bool) -> bool:
        """Whether what has a capital is the record's word, or a plain one that needs no record."""
        return all(
            self._has_stem(word)
            or is_stop_word(word)
            or stem(fold(word)) in _PLAIN
            or (is_first and not word.isupper() and _is_everyday(word))
            for word in words(bare)
        )

    def _has_stem(self, word: str) -> bool:
        found = terms(word)
        return not found or found[0] in self._stems


def _is_everyday(word: str) -> bool:
    """Whether a sentence may begin with it: verbs and nouns of action, by how they end."""
    return fold(word).endswith(("ed", "ing", "tion", "sion", "ment", "ly"))
