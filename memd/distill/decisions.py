"""Decisions: where the user or the agent says what was chosen. Pure.

One statement, one decision; what the agent repeats of the user's words joins the user's. A question,
a plan that hangs on an `if` and what stands in quotes or code decides nothing. Not here: which
earlier decision it replaces (reverse.py).
"""

import re
from dataclasses import dataclass

from memd.distill import choice, prose, quality
from memd.distill.story import Context, Said, Story
from memd.models import Draft, Kind, Source
from memd.text import content_stems, unique

TITLE_CHARACTERS = 110
_RETOLD = 0.4
"""Share of the shorter statement's stems from which the other speaker says the same."""
_REPEATED = 0.8
"""The same, within one speaker's words: `Redis for sessions`, `Redis for jobs` are two decisions."""
_MAX = 8

_WE = r"(?:we|i|the team)(?:'ve|'d| have| had)?(?: (?:now|finally|just|both|all|already|therefore|also))?"
_CHOSE = r"(?:chose|chosen|picked|opted for|opted to|selected|settled on|went with|went for|going with)"
_VERSUS = r"\b(?:rather than|instead of|in place of|over|in favou?r of)\b"


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    pattern: re.Pattern[str]
    user: float
    """Confidence if the user says so."""
    assistant: float
    """The same for the agent; 0: it is no decision from the agent's mouth."""


def _rule(name: str, pattern: str, user: float, assistant: float) -> _Rule:
    return _Rule(f"decision:{name}", re.compile(pattern, re.IGNORECASE), user, assistant)


_RULES = (
    _rule("stated", r"\bdecision(?: (?:is|was))?\s*[:–—]\s*\S|\bdecision - \S", 0.9, 0.8),  # dashes as people type them
    _rule("changed-mind", rf"\b{_WE} chang(?:ed?|ing) (?:our|my) minds?\b", 0.85, 0.0),
    _rule("decided", rf"\b{_WE} (?:decided|agreed) (?:to|on|that|against|not|for)\b", 0.85, 0.7),
    _rule("chose", rf"\b{_WE}(?:'re| are)? {_CHOSE}\b.*?(?:{_VERSUS}|\bbecause\b)", 0.85, 0.75),
    _rule("chose", rf"\b(?:we|the team)(?:'ve| have|'re| are)? {_CHOSE}\b", 0.75, 0.0),
    _rule("no-longer", r"\bwe(?:'re| are)? no longer (?:use|using|keep|store|run|want|support|need)\b", 0.8, 0.0),
    _rule(
        "switched",
        r"\b(?:we(?:'re| are|'ve| have|'ll| will)?|let'?s)(?: now)? (?:switch|mov|migrat|go)\w*\b.{1,120}?"
        r"\b(?:from\b.{1,80}\bto|back to|over to)\b",
        0.75, 0.0,
    ),
    _rule("rather-than", rf"\b(?:we|i)(?:'ll| will)?(?: now| always)? (?:keep|use|stay|stick|store|go|run|put|build|write)\b.*?"
          rf"(?:{_VERSUS}|, not\b)", 0.7, 0.0),
    _rule("rather-than", r"\b(?:rather than|instead of)\b.{1,200}\b(?:because|since)\b", 0.7, 0.6),
    _rule("going-with", r"(?:^|[,;:]\s*|\b(?:ok|okay|so|then|and)\s+)let'?s (?:go with|stick (?:with|to)|settle on|stay with)\b", 0.65, 0.0),
)  # fmt: skip
_OPEN = re.compile(
    r"\b(?:if|unless|until|whether|once|in case|suppose|assuming) (?:we|you|i|it|they|the)\b"
    r"|\b(?:haven't|have not|hasn't|not yet|didn't|did not|yet to|should we|could|might|maybe|perhaps|undecided)\b",
    re.IGNORECASE,
)
_LEADS = (
    re.compile(r"^.*?\bdecision(?: (?:is|was))?\s*(?:[:–—]|-(?= ))\s*", re.IGNORECASE),
    re.compile(rf"^(?:.*?\b)?{_WE} (?:decided|agreed) (?:to|that)\s+", re.IGNORECASE),
    re.compile(rf"^(?:{_WE})(?:'re| are)?\s+(?={_CHOSE}\b)", re.IGNORECASE),
)
_ABOUT = re.compile(r"\babout ([^:,.;]{2,40}):\s*", re.IGNORECASE)
_GIVES_REASON = re.compile(
    r"^(?:because|the reason|reason:|this is because|that is because|why:)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that decides something."""

    sentence: str
    text: str
    """The sentence, with the one after it if that gives the reason."""
    said: Said
    rule: str
    confidence: float

    @property
    def stems(self) -> frozenset[str]:
        """What it is about, as stems."""
        return frozenset(content_stems(headline(self.text)))

    @property
    def is_users(self) -> bool:
        """Whether the user said so."""
        return self.said.speaker == "User"


def statements(story: Story) -> list[Statement]:
    """Every sentence of the user and the agent that decides something, in order."""
    found = []
    for said in (*story.prompts, *story.answers):
        sentences = prose.sentences(prose.own_words(said.text))
        for sentence, following in zip(sentences, [*sentences[1:], ""], strict=False):
            if rule := _decides(sentence, is_users=said.speaker == "User"):
                confidence = rule.user if said.speaker == "User" else rule.assistant
                text = f"{sentence} {following}" if _GIVES_REASON.match(following) else sentence
                found.append(Statement(sentence, text, said, rule.name, confidence))
    return found


def _decides(sentence: str, *, is_users: bool) -> _Rule | None:
    if len(sentence) > prose.SENTENCE_CHARACTERS or prose.is_question(sentence):
        return None
    bare = prose.unquoted(sentence)
    for rule in _RULES:
        if (rule.user if is_users else rule.assistant) and (match := rule.pattern.search(bare)):
            is_open = _OPEN.search(bare[: match.end()])
            return None if is_open else rule
    return None


def headline(statement: str) -> str:
    """The decision itself: without what leads up to it and without its reason."""
    text = prose.plain(statement)
    for lead in _LEADS:
        text = lead.sub("", text) or text
    if about := _ABOUT.search(text):
        text = text[about.end() :]
    shorter = choice.clause(text)
    if about and shorter:
        shorter = f"{about.group(1)}: {shorter}"
    return prose.as_title(shorter or text, TITLE_CHARACTERS)


def drafts(story: Story, context: Context) -> list[Draft]:
    """A draft per decision, at most eight."""
    groups = _grouped(statements(story))
    return [_draft(number, group, context) for number, group in enumerate(groups[:_MAX])]


def _grouped(found: list[Statement]) -> list[list[Statement]]:
    groups: list[list[Statement]] = []
    for statement in found:
        home = max(groups, key=lambda g: _likeness(statement, g), default=None)
        if home is not None and _likeness(statement, home) > 0:
            home.append(statement)
        else:
            groups.append([statement])
    return groups


def _likeness(statement: Statement, group: list[Statement]) -> float:
    """How much of the shorter one two statements share; 0 if too little to be the same decision."""
    best = 0.0
    for other in group:
        shared = len(statement.stems & other.stems)
        share = shared / max(min(len(statement.stems), len(other.stems)), 1)
        enough = _RETOLD if statement.is_users != other.is_users else _REPEATED
        best = max(best, share if share >= enough else 0.0)
    return best


def _draft(number: int, group: list[Statement], context: Context) -> Draft:
    lead = max(group, key=lambda s: (s.rule == "decision:stated", s.is_users, len(s.text)))
    ordered = [lead, *(s for s in group if s is not lead)]
    body = "\n".join(unique(f"{s.said.speaker}: “{s.text}”" for s in ordered))
    body = prose.clipped(body, context.body_characters)
    return Draft(
        slot=f"decision/{number}", kind=Kind.DECISION, title=headline(lead.text), body=body,
        at=lead.said.at, rule=lead.rule,
        sources=tuple(Source(s.said.event_id, prose.quote(s.text)) for s in ordered),
        confidence=max(s.confidence for s in group), quality=quality.of(body),
        reversal=choice.reversal(tuple(s.text for s in ordered)),
    )  # fmt: skip
