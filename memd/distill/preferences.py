"""Instructions, preferences, facts and tasks in the user's own sentences. Pure.

The agent's words, tool output, pasted or quoted text and questions never count. Descriptions (`it always
fails`) and single requests (`use a list here`) are no rules; in doubt nothing is remembered, since a wrong
rule would be matched everywhere.
"""

import re
from collections import Counter
from collections.abc import Sequence

from memd.distill import sentences
from memd.distill.episodes import EpisodeContext, Story
from memd.distill.speech import assertions, own_words, referents, rule_clauses
from memd.distill.speech.own_words import OwnSentence
from memd.models import Draft, Kind, Source
from memd.patterns import compile_lazily

TITLE_CHARACTERS = 120
_PER_KIND_MAX = 8
_COMMAND_CHARACTERS_MIN = 4
_DAY_MS = 86_400_000
_LEAD = compile_lazily(
    r"^(?:(?:and|but|also|please|so|then|from now on|in (?:the )?future|going forward|moving forward|henceforth|starting (?:now|today)"
    r"|remember(?: that| to)?|[,:;.\s])+\s*)",
    re.IGNORECASE,
)
_LEAD_OUT = compile_lazily(r"(?:[\s,;:–—-]+(?:and|so|but|then|please|therefore))*[\s,;:–—-]*$", re.IGNORECASE)  # fmt: skip  # dashes as people type them


def states_rule(prompt: str) -> bool:
    """Whether a prompt holds a sentence that asks to be remembered, and in which commands are described."""
    own = own_words.read_own_sentences(sentences.strip_injected(prompt))
    affirmed = assertions.select_assertions(own)
    return any(rule_clauses.find_rule_clause(one, own) is not None for one in affirmed)


def draft_preferences(
    story: Story, context: EpisodeContext, decided: frozenset[str]
) -> list[Draft]:
    """Return what the user's sentences ask to be remembered, at most eight of each kind.

    `decided` are the sentences that are remembered as decisions already.
    """
    found: list[Draft] = []
    counts: Counter[Kind] = Counter()
    for said in story.prompts:
        own = own_words.read_own_sentences(said.text)
        for sentence in assertions.select_assertions(own):
            rule = (
                None if sentence.text in decided else rule_clauses.find_rule_clause(sentence, own)
            )
            if rule is None:
                continue
            number = counts[rule.kind]
            if number == _PER_KIND_MAX:
                continue
            counts[rule.kind] += 1
            before = _find_before(rule.text, sentence, own)
            title = _LEAD.sub("", rule.text) or rule.text
            named = referents.resolve(title, before) if rule.kind is Kind.INSTRUCTION else title
            lines = [f"User: “{sentence.text}”"]
            if named != title and before not in sentence.text:
                lines.append(f"User before: “{before}”")
            lines += [*_describe_commands(sentence.text, story, context)]
            body = sentences.clip("\n".join(lines), context.body_characters)
            days = context.task_days if rule.kind is Kind.TASK else 0
            found.append(Draft(
                slot=f"{rule.kind}/{number}", kind=rule.kind,
                title=sentences.format_title(named, TITLE_CHARACTERS),
                body=body, at=said.at, rule=rule.rule,
                sources=(Source(said.event_id, sentences.clip_quote(sentence.text), said.authority),),
                authority=said.authority,
                confidence=rule.confidence, quality=sentences.score_quality(body),
                expires_at=said.at + days * _DAY_MS if days else None,
            ))  # fmt: skip
    return found


def _find_before(rule: str, sentence: OwnSentence, own: Sequence[OwnSentence]) -> str:
    """What was said right before a rule: in its sentence, else in the one before it of the same paragraph; maybe empty."""
    before = sentence.text.partition(rule)[0].strip()
    before = _LEAD_OUT.sub("", before)
    if before and not _LEAD.fullmatch(before + " "):
        return before
    place = own.index(sentence)
    last = own[place - 1] if place else None
    return last.text if last and last.block == sentence.block else ""


def _describe_commands(sentence: str, story: Story, context: EpisodeContext) -> list[str]:
    """Return the agent's descriptions of the commands in this sentence.

    A rule that names `make check` should be found by a search for how to run the tests.
    """
    known = {c.command: c.description for c in reversed(story.commands) if c.description}
    known.update(context.descriptions)
    named = [c for c in known if len(c) >= _COMMAND_CHARACTERS_MIN and c in sentence]
    longest = [c for c in named if not any(c != other and c in other for other in named)]
    return [f"`{command}` ({known[command]})" for command in sorted(longest)]
