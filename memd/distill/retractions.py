"""Sentences by which the user ends a rule of his without giving another: `you no longer need to run the linter`. Pure."""

import re
from collections.abc import Sequence

from memd.distill import text as sentences
from memd.distill.assertions import DOUBTS, HERE
from memd.distill.episodes import EpisodeContext, Story
from memd.distill.speech.own_words import read_own_sentences
from memd.distill.speech.vetoes import select_assertions
from memd.models import Draft, Kind, Source, Summary
from memd.patterns import compile_lazily
from memd.text import content_stems, stem, words

RETRACTED = "retracted"
"""The rule of a note that ends a rule, and of the supersession by it."""
_PER_TURN_MAX = 8
_NAMED_MIN = 0.5
"""Share of a rule's stems that a shorter retraction must name."""
_NO_LONGER = compile_lazily(
    r"(?:(?:ok|okay|and|but|so|also|please|from now on|by the way|btw)[\s,]+)*(?:"
    r"(?:i|we) no longer (?:want|need|expect|require|ask) (?:you|us|agents) to\s+"
    r"|i (?:don'?t|do not|don’t) (?:want|need|expect) you to\s+(?=.*\bany ?more\b)"
    r"|(?:you|we) no longer (?:need to|have to|must|should)\s+"
    r"|(?:you|we) (?:don'?t|do not|don’t|needn'?t) (?:have to |need to |have |need )?(?=.*\bany ?more\b)"
    r"|(?:there(?:'s| is) )?no (?:more )?need to\s+(?=.*\b(?:any ?more|any longer)\b)"
    r"|(?:forget|drop|ignore|scrap|cancel|revoke|lift) (?:the|my|our|that) (?:old |earlier )?(?:rule|instruction|request)\s+(?:to|that|about|of)\s+(?:you (?:must|should) )?"
    r"|stop (?=(?:always )?\w+ing\b)"
    r")(?P<rule>[^,;.!]+)",
    re.IGNORECASE,
)
_VOID = compile_lazily(
    r"(?:the|my|our|that) (?:old )?(?:rule|instruction)\s+(?:to|that|about|of)\s+(?P<rule>[^,;.!]+?)\s+(?:no longer (?:applies|holds|counts)"
    r"|is (?:void|obsolete|gone|off|cancelled|lifted|no longer valid))\b",
    re.IGNORECASE,
)
_CLAUSE_START = compile_lazily(
    r"[,;:]\s+|\s[–—-]{1,2}\s|\s(?=(?:and|but|so)\s)", re.IGNORECASE
)  # dashes as people type them
_NOT_SAID_OUTRIGHT = compile_lazily(
    r"\b(?:if|when|whenever|unless|until|once|while|whether|in case|as long as|provided|says?|said|told|tells?|claim\w*|thinks?|thought|believe\w*"
    r"|suggest\w*|wrote|writes|insist\w*|asked|according to|suppose|imagine|pretend|would|could|might|maybe|perhaps|not|never|n't)\b",
    re.IGNORECASE,
)
"""What stands before a clause that is then a condition's, somebody else's or no statement."""
_ANY_MORE = compile_lazily(r"\b(?:any ?more|any longer|from now on|always|now)\b", re.IGNORECASE)
_FORBIDS = compile_lazily(r"\b(?:never|not|don'?t|do not|no)\b", re.IGNORECASE)
_EMPTY_STEMS = frozenset(map(stem, ("always", "never", "ever", "please", "from", "now", "future", "must", "should", "anymore", "want", "need")))  # fmt: skip


def draft_retractions(story: Story, context: EpisodeContext) -> list[Draft]:
    """Return a note for each sentence by which the user ends a rule, at most eight."""
    found: list[Draft] = []
    for said in story.prompts:
        for sentence in select_assertions(read_own_sentences(said.text)):
            match = _find_retraction(sentence.said)
            is_open = DOUBTS.search(sentence.said) or HERE.search(sentence.said)
            if match is None or is_open or len(found) == _PER_TURN_MAX:
                continue
            start, end = (sentence.start + at for at in match.span("rule"))
            rule = " ".join(_ANY_MORE.sub(" ", sentence.text[start:end]).split())
            body = sentences.clip(f"User: “{sentence.text}”", context.body_characters)
            found.append(Draft(
                slot=f"retraction/{len(found)}", kind=Kind.NOTE, title=sentences.format_title(f"No longer: {rule}"),
                body=body, at=said.at, rule=RETRACTED,
                sources=(Source(said.event_id, sentences.clip_quote(sentence.text), said.authority),),
                authority=said.authority, confidence=0.8, quality=sentences.score_quality(body),
            ))  # fmt: skip
    return found


def _find_retraction(said: str) -> re.Match[str] | None:
    """The first clause that ends a rule, if all before it leave it to be what it looks like."""
    for start in (0, *(match.end() for match in _CLAUSE_START.finditer(said))):
        if start and _NOT_SAID_OUTRIGHT.search(said[:start]):
            return None
        if match := _NO_LONGER.match(said, start) or _VOID.match(said, start):
            return match
    return None


def related_stems(draft: Draft) -> frozenset[str]:
    """The stems of what a retraction takes back."""
    return _rule_stems(draft.title.partition(":")[2])


def pick_ended(draft: Draft, rules: Sequence[Summary]) -> list[Summary]:
    """The rules that say just what is taken back, else the only one that says a little more."""
    named, stems = draft.title.partition(":")[2], related_stems(draft)
    same = [r for r in rules if r.at <= draft.at and _forbids(r.title) == _forbids(named)]
    exact = [one for one in same if _rule_stems(one.title) == stems]
    return exact or _find_only_longer(same, stems)


def _find_only_longer(rules: Sequence[Summary], stems: frozenset[str]) -> list[Summary]:
    longer = [one for one in rules if stems < _rule_stems(one.title)]
    if len(longer) != 1 or len(stems) < _NAMED_MIN * len(_rule_stems(longer[0].title)):
        return []
    return longer


def _rule_stems(text: str) -> frozenset[str]:
    """What a rule is about, as stems. A gerund has the stem of its verb."""
    return frozenset(content_stems(text)) - _EMPTY_STEMS


def _forbids(text: str) -> bool:
    return bool(words(text)) and _FORBIDS.search(text) is not None
