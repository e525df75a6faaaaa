"""The sentences of a short message in a dialogue: what is typed between pastes and after `also:` counts, too. Pure.

`own_words` reads a message as a whole and leaves out all that only may be pasted. In a dialogue a short message
begins or ends with words of its own, in the first person or as a question to the agent.
"""

import re
from dataclasses import dataclass, replace

from memd.distill import sentences
from memd.distill.speech import pasted
from memd.distill.speech.own_words import OwnSentence, read_own_sentences
from memd.text import normalised, words

_SHORT_CHARACTERS = 700
_HEARD_CHARACTERS_MIN = 25
_ARROW = re.compile(r"^\s*(?:-+>|=+>|→|>>+)\s*")
_LEAD_WORDS_MAX = 6
_LEAD = re.compile(r"^(?P<lead>\W*[A-Za-z][\w' ,-]{0,48}):[ \t]+(?=\S)", re.MULTILINE)
_SHOWS = re.compile(
    r"\b(?:says?|said|wrote|writes|error|errors|output|log|logs|getting|got|reads?|states|message|review|feedback|comment|finding|following|docs?|rule|never|always|decision|remember|note|todo|fyi)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\W*(?:also|and|but|hmm+|ok(?:ay)?|btw|by the way|question|one (?:more|last) (?:thing|question|modification)|clarification|correction|plus|additionally|oh|wait|actually|so)\W*",
    re.IGNORECASE,
)
_TO_AGENT = re.compile(
    r"\b(?:we|we're|we've|we'd|i|i'd|i'm|you|us|our|let'?s|can't|shouldn't|don't)\b", re.IGNORECASE
)
_SPEAKS_FIRST = re.compile(
    r"^\W*(?:(?:so|but|and|also|basically|hmm+|ok|okay|well|now|no|yes|yeah),?\s+)*(?:i|i'd|i'm|we|let'?s|lets|can we|can you|could we|why|shouldn'?t|this should|that should|it should)\b",
    re.IGNORECASE,
)
_TAG_QUESTION = re.compile(
    r",?\s*\b(?:right|correct|or(?: not)?|no|oder|isn'?t it|doesn'?t it|don'?t we|(?:should|does|do|is|are|can|will) (?:it|we|they)|n'est-ce pas|non|verdad|ja|yes)\s*[?!]+\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence, and whether it asks for the agent's agreement: `that only works on Linux, right?`."""

    own: OwnSentence
    seeks_agreement: bool = False


def read_spoken(message: str, heard: str = "") -> list[SpokenSentence]:
    """What the user says himself in a message, in order; lines of what he has `heard` from the agent are left out."""
    own = _drop_heard(message, heard) if heard else message
    return [_read_tag(sentence) for sentence in _read_own(_split_leads(own))]


def _drop_heard(message: str, heard: str) -> str:
    """A message without the lines that repeat the agent's, which people put before their remarks."""
    known = normalised(heard)
    lines = message.split("\n")
    own = [
        line
        for line in lines
        if not (len(n := normalised(line)) >= _HEARD_CHARACTERS_MIN and n in known)
    ]
    if len(own) == len(lines):
        return message
    return "\n".join(_ARROW.sub("", line) for line in own).strip()


def _read_own(message: str) -> list[OwnSentence]:
    own = [*read_own_sentences(message)]
    blocks = re.split(r"\n[ \t]*\n", message.strip())
    if not own and len(message) <= _SHORT_CHARACTERS and not _looks_written(message):
        own = (
            _read_each(message)
            if len(blocks) == 1 and "\n" not in message.strip()
            else [*read_own_sentences(_first_sentence(blocks[0]))]
        )
    last = blocks[-1]
    if len(blocks) > 1 and _speaks_after_data(blocks):
        known = {sentence.text for sentence in own}
        own = own + [s for s in read_own_sentences(last) if s.text not in known]
    return own


def _read_each(line: str) -> list[OwnSentence]:
    """The sentences of a line that speaks to the agent, each by itself."""
    if not _TO_AGENT.search(line):
        return []
    return [
        own for sentence in sentences.split_sentences(line) for own in read_own_sentences(sentence)
    ]


def _split_leads(message: str) -> str:
    """`also: can we …` as two sentences."""
    if len(message) > _SHORT_CHARACTERS:
        return message
    return _LEAD.sub(_end_lead, message)


def _end_lead(match: re.Match[str]) -> str:
    lead, text = match.group("lead"), match.string
    rest = text[match.end() :].split("\n", 1)[0]
    if _ASIDE.fullmatch(lead):
        return f"{lead}. "
    is_own = (
        len(words(lead)) <= _LEAD_WORDS_MAX
        and not _SHOWS.search(lead)
        and (_TO_AGENT.search(rest) or "?" in rest)
    )
    return f"{lead}. " if is_own else match.group()


def _first_sentence(block: str) -> str:
    line = block.split("\n", 1)[0]
    match = re.match(r"^[^?\n]{8,200}\?", line)
    return match.group() if match and _TO_AGENT.search(match.group()) else ""


def _looks_written(message: str) -> bool:
    return any(pasted.begins_data(line) for line in message.split("\n") if line.strip())


def _speaks_after_data(blocks: list[str]) -> bool:
    """Whether a message ends in words of one's own, after something shown that is no prose."""
    middle = [line for block in blocks[1:-1] for line in block.split("\n") if line.strip()]
    shown = [line for line in middle if pasted.is_data(line)]
    return (
        bool(_SPEAKS_FIRST.match(blocks[-1]))
        and bool(shown)
        and not _looks_written("\n".join(blocks[-1:]))
    )


def _read_tag(sentence: OwnSentence) -> SpokenSentence:
    match = _TAG_QUESTION.search(sentence.bare)
    if match is None or match.start() <= sentence.start:
        return SpokenSentence(sentence)
    end = match.start()
    return SpokenSentence(
        replace(sentence, text=sentence.text[:end], bare=sentence.bare[:end]), seeks_agreement=True
    )
