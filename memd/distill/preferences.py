"""Instructions, preferences, facts and tasks in the user's own sentences. Pure.

The agent's words, tool output, pasted or quoted text and questions never count. Descriptions (`it always
fails`) and single requests (`use a list here`) are no rules; in doubt nothing is remembered, since a wrong
rule would be matched everywhere.
"""

import re
from collections import Counter
from dataclasses import dataclass

from memd.distill import sentences
from memd.distill.episodes import EpisodeContext, Story
from memd.models import Draft, Kind, Source
from memd.text import is_stop_word, words

TITLE_CHARACTERS = 120
_PER_KIND_MAX = 8
_WORDS_MIN = 2
_COMMAND_CHARACTERS_MIN = 4
_DAY_MS = 86_400_000
_SENTENCE_CHARACTERS_MAX = 400
_LASTING_CONFIDENCE = 0.9

_START = r"(?:^|[,;:–—]\s*(?:and |but |so |then )?|\b(?:and|but|also|please|should|must|shall|to|then|we|on,?|future,?) )"  # dashes as people type them
# `always fails`, `never worked`, `always the same` describe what happens.
_ACTION = (
    r"(?!(?:mind|ever mind|been|was|were|is|are|am|be able|has|had|have (?:been|had|seen)|got|get(?:s|ting)? (?:a|an|the"
    r"|this|that|stuck|error)|fail|crash|break|hang|happen|work|saw|seen|knew|did|does|went|came|gave|took|threw|wrong|right"
    r"|the|a|an|in|on|at|true|false|null|empty|there|here|this|that|it|so|too|again|more|less)\b"
    r"|\w+(?:ed|ing|[^s\W]s)\b)\w+"
)
_RULE_HINT = re.compile(
    r"from now on|future|forward|again|any ?more|ever|remember|keep in mind|always|time|prefer|when|my|use",
    re.IGNORECASE,
)
_SINGLE_REQUEST = re.compile(
    r"\b(?:here|in this (?:file|function|case|line|test|one|pr|commit)|this time|for now|just now)\b",
    re.IGNORECASE,
)
"""A single request, unless it is said to hold from now on."""
_LEAD = re.compile(
    r"^(?:(?:and|but|also|please|so|then|from now on|in (?:the )?future|going forward|remember(?: that| to)?|[,:;.\s])+\s*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _PreferenceRule:
    name: str
    kind: Kind
    pattern: re.Pattern[str]
    confidence: float

    @property
    def is_lasting(self) -> bool:
        """Whether it says itself that it holds beyond this request, or asks for nothing."""
        return self.confidence >= _LASTING_CONFIDENCE or self.kind in (Kind.FACT, Kind.TASK)


def _make_rule(kind: Kind, name: str, pattern: str, confidence: float) -> _PreferenceRule:
    return _PreferenceRule(f"{kind}:{name}", kind, re.compile(pattern, re.IGNORECASE), confidence)


_RULES = (
    _make_rule(Kind.TASK, "todo", r"^(?:a )?to-?do\b\s*[:–—-]?\s*(?P<rest>.+)", 0.75),
    _make_rule(Kind.TASK, "remind", r"\bremind (?:me|us) (?:to|about|that)\s+(?P<rest>.+)", 0.8),
    _make_rule(
        Kind.TASK, "later",
        r"^(?P<rest>(?:later|next time|next week|tomorrow|in (?:a|the) (?:later|next|future) (?:session|step|release|version|pr))"
        r",? (?:on,? )?(?:we|i|you|let'?s) ?(?:should|must|need to|have to|can|could|will|'ll|want to)?.+)", 0.65,
    ),
    _make_rule(
        Kind.TASK, "later",
        r"(?P<rest>\b(?:we|i)(?:'ll| will| should| must| need to| have to)\b.+\b(?:later|next time|next week|tomorrow|some day"
        r"|at some point|in a later (?:session|step))\b.*)", 0.6,
    ),
    _make_rule(Kind.INSTRUCTION, "from-now-on", r"(?P<rest>\bfrom now on\b.*)", 0.9),
    _make_rule(Kind.INSTRUCTION, "in-future", r"(?P<rest>(?:^|[,;] (?:and |but )?)(?:in (?:the )?future|going forward)\b,? .+)", 0.8),
    _make_rule(Kind.INSTRUCTION, "not-again", r"(?P<rest>\b(?:don't|do not|dont) (?:ever )?\w+ .+\b(?:again|any ?more)\b.*)", 0.85),
    _make_rule(Kind.INSTRUCTION, "not-again", r"(?P<rest>(?:^|[,;] )(?:don't|do not|dont) ever \w+.*)", 0.85),
    _make_rule(
        Kind.INSTRUCTION, "remember",
        r"\b(?:remember|keep in mind)(?: that|:|,)?\s+(?P<rest>(?:you |we |to )?(?:always|never|must(?:n't)?|should(?:n't)?|don't|do not)\b.+)",
        0.85,
    ),
    _make_rule(Kind.INSTRUCTION, "always", rf"{_START}(?P<rest>always {_ACTION}.*)", 0.8),
    _make_rule(Kind.INSTRUCTION, "never", rf"{_START}(?P<rest>never (?:ever )?{_ACTION}.*)", 0.8),
    _make_rule(Kind.INSTRUCTION, "whenever", r"(?P<rest>\b(?:whenever|every time|each time) you\b.+)", 0.7),
    _make_rule(
        Kind.PREFERENCE, "prefer",
        r"(?P<rest>\b(?:i|we)(?:'d)?(?: would)?(?: really| strongly| generally| much| usually| always)? prefer\b.+)", 0.85,
    ),
    _make_rule(Kind.PREFERENCE, "like", r"(?P<rest>\bi (?:really )?(?:don't like|do not like|dislike|hate|like|love) (?:it )?when\b.+)", 0.75),
    _make_rule(Kind.PREFERENCE, "my", r"(?P<rest>\bmy (?:preference|preferred \w+|favou?rite \w+) (?:is|are)\b.+)", 0.8),
    _make_rule(
        Kind.PREFERENCE, "use-not",
        r"^(?P<rest>(?:please )?use [^,]+?,? (?:not|and not|never|instead of|rather than) .+)", 0.6,
    ),
    _make_rule(
        Kind.FACT, "remember",
        r"^(?:(?:and|also|please) )*(?:remember|note|keep in mind|bear in mind|be aware|don't forget|do not forget)(?: that|:)\s*(?P<rest>.+)",
        0.85,
    ),
    _make_rule(Kind.FACT, "fyi", r"^(?:fyi|for your information|for the record|just so you know|heads[- ]up)\b[\s,:–—-]*(?P<rest>.+)", 0.75),
)  # fmt: skip


def draft_preferences(
    story: Story, context: EpisodeContext, decided: frozenset[str]
) -> list[Draft]:
    """Return what the user's sentences ask to be remembered, at most eight of each kind.

    `decided` are the sentences that are remembered as decisions already.
    """
    found: list[Draft] = []
    counts: Counter[Kind] = Counter()
    for said in story.prompts:
        for sentence in sentences.split_sentences(sentences.extract_own_words(said.text)):
            if sentence in decided or not (hit := _match_rule(sentence)):
                continue
            rule, rest = hit
            number = counts[rule.kind]
            if number == _PER_KIND_MAX:
                continue
            counts[rule.kind] += 1
            lines = [f"User: “{sentence}”", *_describe_commands(sentence, story, context)]
            body = sentences.clip("\n".join(lines), context.body_characters)
            days = context.task_days if rule.kind is Kind.TASK else 0
            found.append(Draft(
                slot=f"{rule.kind}/{number}", kind=rule.kind,
                title=sentences.format_title(_LEAD.sub("", rest) or rest, TITLE_CHARACTERS),
                body=body, at=said.at, rule=rule.name,
                sources=(Source(said.event_id, sentences.clip_quote(sentence)),),
                confidence=rule.confidence, quality=sentences.score_quality(body),
                expires_at=said.at + days * _DAY_MS if days else None,
            ))  # fmt: skip
    return found


def may_state_rules(prompt: str) -> bool:
    """Whether a prompt could hold an instruction or a preference; quick, and never wrongly False."""
    return _RULE_HINT.search(prompt) is not None


def _match_rule(sentence: str) -> tuple[_PreferenceRule, str] | None:
    """The rule that this sentence states, and the words that it is; None if it states none."""
    if len(sentence) > _SENTENCE_CHARACTERS_MAX or sentences.is_question(sentence):
        return None
    # Politeness goes first, so that `please remember that` begins with `remember`.
    sentence = sentences.strip_politeness(sentence)
    bare = sentences.blank_quotes(sentence)
    for rule in _RULES:
        if match := rule.pattern.search(bare):
            rest = sentence[match.start("rest") : match.end("rest")]
            telling = {word for word in words(_LEAD.sub("", rest)) if not is_stop_word(word)}
            is_vague = len(telling) < _WORDS_MIN
            is_single = not rule.is_lasting and _SINGLE_REQUEST.search(bare)
            return None if is_vague or is_single else (rule, rest)
    return None


def _describe_commands(sentence: str, story: Story, context: EpisodeContext) -> list[str]:
    """Return the agent's descriptions of the commands in this sentence.

    A rule that names `make check` should be found by a search for how to run the tests.
    """
    known = {c.command: c.description for c in reversed(story.commands) if c.description}
    known.update(context.descriptions)
    named = [c for c in known if len(c) >= _COMMAND_CHARACTERS_MIN and c in sentence]
    longest = [c for c in named if not any(c != other and c in other for other in named)]
    return [f"`{command}` ({known[command]})" for command in sorted(longest)]
