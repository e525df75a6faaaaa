"""Whether a prompt is worth a look at what is known, and what to look for. Pure.

Most prompts steer (`yes`, `go on`, `/clear`): to look anything up for them can only show what nobody
needs. What is worth it is read by its content words: no stop words, no courtesies, no bare numbers.
Of a long paste only what stands at its ends is looked for, since that is where people say what they
want of it. Not here: what is found, and whether that is good enough (offer.py).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memd.index import entities
from memd.models import Summary
from memd.text import WORD, fold, is_stop_word, normalised, terms, words

WORDS_MIN = 2
"""Content words that a prompt must have, and that must stand in a hit."""
LONG_CHARACTERS = 1_500
"""Of a longer prompt only the first and last sentences are looked for."""
READ_CHARACTERS = 20_000
"""Of a huge prompt so many from each end are read at all."""
_GIST_CHARACTERS = 500
_END_SENTENCES = 2
_END_CHARACTERS = 400
_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?:\s|$)|(?:!|#\s)[^\n]*\Z")
"""`# Task` with more below it is somebody's document, and `#12` a number."""
_REDACTED = re.compile(r"\[REDACTED:[\w#-]*\]")
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PASTED = re.compile(
    r"\s*[\d\[<>|{}()$%@#=*+~-]| {4,}|\t|\s*(?:at |File \"|Traceback|(?:TRACE|DEBUG|INFO|WARN|ERROR)\b)"
)
"""How the lines of logs, tables, traces and diffs begin."""
_SENTENCE = re.compile(r"\S.*?(?:[.!?]+(?=\s)|$)", re.MULTILINE)
_TOPIC = re.compile(r"(?<![\w./-])[a-z][\w-]*(?:\.[a-z][\w-]*)+(?![\w/.(-])")
_TOPICS_MAX = 5
_NAMED = frozenset({"file", "symbol", "identifier"})
_COURTESIES = frozenset(
    """yes yep yeah yup ok okay nope thanks thank thx ty cheers please pls hi hello hey morning afternoon
    evening lgtm awesome claude bye""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""Words that are for the agent and not about anything: never looked for."""
_ELSEWHERE = frozenset(
    map(
        fold,
        """hallo guten morgen abend danke schön vielen dank bitte mach mache weiter weitermachen ja nein genau
        gerne bonjour bonsoir salut merci beaucoup oui vas hola buenos buenas días tardes gracias por favor sí
        vale perfecto continúa sigue olá obrigado obrigada sim ciao grazie avanti привет спасибо большое
        пожалуйста продолжай да хорошо 你好 好的 继续 谢谢 谢谢你 はい ありがとう ありがとうございます
        続けて お願いします""".split(),  # noqa: SIM905  # as above
    )
)
"""The same in other languages: looked for beside other words, for they may mean something there."""
_STEERING = (
    _COURTESIES
    | _ELSEWHERE
    | frozenset(
        """k sure go going ahead continue proceed keep carry next night great perfect nice cool good fine looks
    sounds right correct exactly agreed try retry stop wait never mind lot much well ship make want need
    way thing things back work works""".split()  # noqa: SIM905  # as above
    )
)
"""Words that steer, beside the stop words: they alone are no reason to look."""

Unit = frozenset[str]
"""One content word as the index would have it; its parts too if it is an identifier."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What to look for, or why not to look."""

    text: str
    """Empty if it is not worth a look."""
    reason: str
    units: tuple[Unit, ...] = ()
    """The content words, once each."""
    names: tuple[str, ...] = ()
    """Files, symbols and identifiers in it, folded."""
    topics: tuple[str, ...] = ()
    """What may be the key of a topic."""


def judge(prompt: str) -> Worth:
    """Read a prompt whose private parts were taken out."""
    bare = _REDACTED.sub(" ", prompt).strip()
    if not bare:
        return Worth("", "nothing of it is to be seen" if prompt.strip() else "it is empty")
    if _COMMAND.match(bare):
        return Worth("", "a command to the client")
    text = ends(bare) if len(bare) > LONG_CHARACTERS else bare
    found = units(text)
    if len(found) < WORDS_MIN:
        return Worth("", f"it has fewer than {WORDS_MIN} words that say what it is about")
    names = tuple(dict.fromkeys(n for n, kind in entities.of_text(text) if kind in _NAMED))
    topics = tuple(dict.fromkeys(_TOPIC.findall(text)))[:_TOPICS_MAX]
    return Worth(_without_courtesies(text), "worth a look", found, names, topics)


def _without_courtesies(text: str) -> str:
    """As words that no memory has, they would make every memory cover less."""
    return WORD.sub(lambda word: "" if fold(word[0]) in _COURTESIES else word[0], text)


def repeats(prompt: str, earlier: Iterable[str]) -> bool:
    """Whether the same was asked before, but for case, spacing and punctuation."""
    said = _gist(prompt)
    return any(_gist(one) == said for one in earlier)


def _gist(prompt: str) -> tuple[str, str]:
    return normalised(prompt[:_GIST_CHARACTERS]), normalised(prompt[-_GIST_CHARACTERS:])


def ends(text: str) -> str:
    """The first and the last sentences of a long text, without code and logs, each cut."""
    lines = _CODE.sub("\n", text).split("\n")
    own = "\n".join("" if _PASTED.match(line) else line for line in lines)
    found = [s[:_END_CHARACTERS] for s in _SENTENCE.findall(own) if s.strip()]
    if len(found) <= 2 * _END_SENTENCES:
        return "\n".join(found) or text[:_END_CHARACTERS]
    return "\n".join((*found[:_END_SENTENCES], *found[-_END_SENTENCES:]))


def units(text: str) -> tuple[Unit, ...]:
    """The content words of a text, once each, however they are inflected."""
    found: dict[Unit, None] = {}
    for token in words(text):
        folded = fold(token)
        if is_stop_word(token) or folded in _STEERING or not any(c.isalpha() for c in token):
            continue
        parts = terms(token)
        if not token.isascii() and "_" not in token and len(parts) > 1:
            found.update({frozenset({part}): None for part in parts})  # no spaces: pairs
        elif parts and len(folded) > 1:
            found[frozenset(parts)] = None
    return tuple(found)


def standing(worth: Worth, summary: Summary) -> tuple[int, bool]:
    """How many of its content words stand in a memory, and whether one of its names does."""
    text = "\n".join((summary.title, summary.body, *summary.files, *summary.tags))
    # Stemming is what costs here, and a stem begins as its word does, or as a part of it.
    begins = {term[:2] for unit in worth.units for term in unit}
    there = {
        term
        for token in dict.fromkeys(words(text))
        if token[:2].lower() in begins or not (token.isascii() and token[1:].islower())
        for term in terms(token)
    }
    count = sum(bool(unit <= there) for unit in worth.units)
    folded = fold(text) if worth.names else ""
    return count, any(name in folded for name in worth.names)
