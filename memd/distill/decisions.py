"""Statements in which the user or the agent says what was chosen over what. Pure.

One statement is one decision; what the agent repeats of the user's words joins the user's. A question, a plan
that depends on an `if`, and quoted text or code decide nothing.

A small grammar of English reads what a statement chooses, rejects and is about: `we keep S in A rather than
B`, `we chose A over B for S`, `S moves from B to A`, `use A for S`, `no longer B`. Its results are sets of
stems, so that two decisions can be compared.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd.belief.compare import EXACT_ASPECTS, compare
from memd.caches import cached
from memd.distill import sentences
from memd.distill.episodes import EpisodeContext, Story, Utterance
from memd.distill.speech import assertions, decision_clauses, own_words, verbs
from memd.models import Draft, Kind, Reversal, Source
from memd.patterns import compile_lazily
from memd.text import content_stems, first_word, is_stop_word, one_line, stem, terms, unique, words

Stems = frozenset[str]
_QUOTE_CHARACTERS = 300
_CHOICES_CACHED_MAX = 2_048
"""A decision is compared with every later one that shares a word with it."""

_REASON_START = compile_lazily(
    r"[,;(–—-]*\s+(?:because|since|as (?:it|we|they|that|this|the)|so that|so (?:we|it|that)|due to"  # dashes as people type them
    r"|in order to|which|after|now that)\b|;|[.!?]\s|\s[–—-]{1,2}\s",
    re.IGNORECASE,
)
_FIRM_REASON = compile_lazily(
    r"[,;(–—-]*\s+(?:because|since|due|in order|now that|as)\b|[.!?]\s"  # dashes as people type them
    r"|(?:;|\s[–—-]{1,2})\s*(?:it|they|this|that|which|there|otherwise|because|since|as|so)\b",
    re.IGNORECASE,
)
"""A beginning of what only says why; what else may be a reason may give a value, too."""
_APART = frozenset({";", "-", "--", "–", "—", "after"})  # dashes as people type them
"""What is followed by a statement of its own as often as by a reason."""
_FROM_TO = compile_lazily(
    r"\b(?:move[sd]?|moving|switch(?:e[sd]|ing)?|migrat(?:e[sd]?|ing)|chang(?:e[sd]?|ing)|go(?:es|ing)?|went|port(?:s|ed|ing)?)\b"
    r"(?P<what>.*?)\bfrom\s+(?P<old>.+?)\s+(?:over\s+)?to\s+(?P<new>.+)",
    re.IGNORECASE,
)
_REPLACE = compile_lazily(
    r"\breplac(?:e[sd]?|ing)\s+(?P<old>.+?)\s+(?:with|by)\s+(?P<new>.+)", re.IGNORECASE
)
_DROP = compile_lazily(
    r"\b(?:drop(?:s|ped|ping)?|abandon(?:s|ed|ing)?|ditch(?:es|ed|ing)?|give up|gave up|giving up)\s+(?P<old>.+?)"
    r"\s+(?:in favou?r of|for)\s+(?P<new>.+)",
    re.IGNORECASE,
)
_AGAINST = compile_lazily(
    r"\bagainst\s+(?:using\s+)?(?P<old>.+?)(?:\s+(?:and for|in favou?r of)\s+(?P<new>.+))?$",
    re.IGNORECASE,
)
_CHOSEN_OVER = compile_lazily(
    r"(?P<new>.+?),?\s+(?:rather than|instead of|in place of|over|not|and not)\s+(?P<old>.+)",
    re.IGNORECASE,
)
_PREPOSITIONS = r"(?:in|into|on|onto|to|with|via|through|as|at|by|using|from|for)"
_VERBS = (
    r"(?:use[sd]?|using|chose|choose|chosen|pick(?:ed|s)?|select(?:ed|s)?|prefer(?:red|s)?|adopt(?:ed|s)?|take|took"
    r"|opt(?:ed)? for|go(?:es|ing)? (?:with|for|back to)|went (?:with|for|back to)|settle[sd]? on|stick(?:s|ing)? (?:with|to)"
    r"|stay(?:s|ing)? (?:with|on)|decided on|kept|keep|keeps|revert(?:ed|ing)? to|return(?:ed|ing)? to)"
)
_OBJECT = compile_lazily(rf"\b{_VERBS}\s+(?P<value>.+)", re.IGNORECASE)
_PLACED = compile_lazily(rf"(?P<what>.+?)\s+{_PREPOSITIONS}\s+(?P<value>.+)", re.IGNORECASE)
_PREPOSITION = compile_lazily(rf"\s+{_PREPOSITIONS}\s+", re.IGNORECASE)
_CHOICE_TOPIC = compile_lazily(
    r"\b(?:about|regarding|concerning)\s+(?:the\s+|our\s+)?([^:,.;]{2,60})", re.IGNORECASE
)
_NO_LONGER = compile_lazily(
    r"^.*?\b(?:no longer|any ?more)\b.*?(?:,|;|\band\b|\bbut\b)\s*(?=\w+ )", re.IGNORECASE
)
_LEADING_VERB = compile_lazily(
    r"^.*?\b(?:decided|agreed|going|want|plan|chose|like)\s+(?:to|that)\s+|^(?:we|i)(?:'ll| will| shall)\s+",
    re.IGNORECASE,
)
_SO_CLAUSE = compile_lazily(
    r",?\s+so\s+(?=(?:we|i|let'?s|move|switch|use|go|please)\b)", re.IGNORECASE
)

_GENERAL_STEMS = frozenset(
    stem(word)
    for word in words("""decision decide decided choose chose chosen pick move moves switch change changed mind keep keeps
    kept use uses using store stores put go going went now earlier previous previously old new anymore longer
    replace replaces plan stay stays stick run note noted remember prefer adopt instead rather revert reverts
    back time thing one away again still today get make take set want need will would should must always never
    migrate drop abandon give favour favor let""")
)  # fmt: skip
"""Words that say that something is chosen, not what."""

_REVERSAL = compile_lazily(
    r"\bchang(?:e|ed|ing) (?:our|my|their|his|her) minds?\b"
    r"|\b(?:replac|overrul|overrid|supersed|revers|revok)(?:e|es|ed|ing)\s+(?:the|our|that|my|this|an?)?\s*"
    r"(?:earlier|previous|old|first|original|last|prior)?\s*(?:decision|choice|plan|rule)\b"
    r"|\bno longer\b|\bnot [\w ]{1,40} any ?more\b|\bany ?more\b"
    r"|\binstead of\b.{1,80}\b(?:we|i)(?:'ll|'re| are)?\s+now\b|\bnow\b.{1,80}\binstead of\b"
    r"|\b(?:switch|mov|migrat)(?:e|es|ed|ing)?\b.{0,80}?\bfrom\b.{1,80}?\bto\b"
    r"|\brevert(?:s|ed|ing)?\b|\b(?:go|going|went|switch|switching|switched) back\b"
    r"|\b(?:drop|abandon|ditch|retir|remov|giv)\w*\b.{1,60}\bin favou?r of\b|\breplac(?:e|es|ed|ing)\b.{1,60}\b(?:with|by)\b",
    re.IGNORECASE,
)
_GIVEN_UP_PATTERNS = (
    compile_lazily(
        r"\b(?:decision|choice|plan)\s+(?:to|of|for)\s+(?:(?:keep|use|store|put|run|hav|us|keep|stor)\w*\s+)?"
        r"(?:(?:them|it|those|these|this|\w+)\s+(?:in|on|with|to|as)\s+)?(?P<old>[^,.;]+)",
        re.IGNORECASE,
    ),
    compile_lazily(
        rf"\bno longer\s+(?:in|on|with|{_VERBS}|keep\w*|stor\w*|run\w*)?\s*(?P<old>[^,.;]+)",
        re.IGNORECASE,
    ),
    compile_lazily(
        r"\bnot\s+(?:use|using|keep|in|on)?\s*(?P<old>[^,.;]+?)\s+any ?more\b", re.IGNORECASE
    ),
    compile_lazily(r"\binstead of\s+(?P<old>[^,.;]+?)(?:\s+we\b|,|$|[.;])", re.IGNORECASE),
)
TITLE_CHARACTERS = 110
_RETOLD_SHARE = 0.4
"""Share of the shorter statement's stems from which the other speaker says the same."""
_REPEATED_SHARE = 0.8
"""The same, within one speaker's words: `Redis for sessions`, `Redis for jobs` are two decisions."""
_DECISIONS_MAX = 8
_WE = r"(?:we|i|the team)(?:'ve|'d| have| had)?(?: (?:now|finally|just|both|all|already|therefore|also))?"
_CHOSE = (
    r"(?:chose|chosen|picked|opted for|opted to|selected|settled on|went with|went for|going with)"
)
_HEADLINE_LEADS = (
    compile_lazily(r"^.*?\bdecision(?: (?:is|was))?\s*(?:[:–—]|-(?= ))\s*", re.IGNORECASE),
    compile_lazily(rf"^(?:.*?\b)?{_WE} (?:decided|agreed) (?:to|that)\s+", re.IGNORECASE),
    compile_lazily(rf"^(?:{_WE})(?:'re| are)?\s+(?={_CHOSE}\b)", re.IGNORECASE),
)
_HEADLINE_TOPIC = compile_lazily(r"\babout ([^:,.;]{2,40}):\s*", re.IGNORECASE)
_GIVES_REASON = compile_lazily(
    r"^(?:because|the reason|reason:|this is because|that is because|why:)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class DecisionChoice:
    """One choice as stems. An empty set: the words do not say."""

    subject: Stems
    chosen: Stems
    rejected: Stems


def strip_reason(statement: str) -> str:
    """The statement without its reason: up to `because`, `so that` or `;`."""
    statement = _strip_lead(statement)
    found = _REASON_START.search(statement)
    return statement[: found.start()].strip() if found and found.start() > 0 else statement.strip()


def _strip_lead(statement: str) -> str:
    if match := _SO_CLAUSE.search(statement):
        # `we run on three machines, so move it`: the choice comes after its reason.
        statement = statement[match.end() :]
    return _LEADING_VERB.sub("", _NO_LONGER.sub("", statement))


def strip_why(statement: str) -> str:
    """The statement without what only says why it was made: what gives a value stays."""
    statement = _strip_lead(statement)
    breaks = [*_REASON_START.finditer(statement), None]
    for found, following in itertools.pairwise(breaks):
        if found is None or found.start() == 0:
            continue
        head = statement[: found.start()]
        part = statement[found.end() : following.start() if following else None]
        is_why = _FIRM_REASON.match(statement, found.start()) or not part.strip()
        # What stands apart is a statement of its own, unless it says why.
        is_own = found.group().strip() in _APART and len(statement) <= TITLE_CHARACTERS  # fmt: skip
        if is_why or not (is_own or _gives_value(head, part)):
            return head.strip()
    return statement.strip()


def _gives_value(head: str, part: str) -> bool:
    """Whether a part of a statement has a number, sign or name that the part before lacks."""
    found = compare(head, f"{head}; {part}").differences
    return any(d.aspect in EXACT_ASPECTS and d.now for d in found)


@cached(_CHOICES_CACHED_MAX)
def parse_choice(statement: str) -> DecisionChoice:
    """What a statement chooses, passes over, and is about."""
    about = _CHOICE_TOPIC.search(statement)
    named = telling_stems(about.group(1)) if about else frozenset()
    text = strip_reason(statement)
    for pattern in (_FROM_TO, _REPLACE, _DROP, _AGAINST):
        if match := pattern.search(text):
            return _parse_move(text, match, named)
    rejected: Stems = frozenset()
    around: Stems = frozenset()
    if match := _CHOSEN_OVER.fullmatch(text):
        text = match.group("new")
        rejected, around = _split_value(match.group("old"))
    subject, chosen = _split_placed(text)
    rejected -= chosen
    return DecisionChoice((subject | around | named) - chosen - rejected, chosen, rejected)


def _parse_move(text: str, match: re.Match[str], named: Stems) -> DecisionChoice:
    rejected, _ = _split_value(match.group("old"))
    chosen, around = _split_value(match.group("new") or "")
    before = telling_stems(text[: match.start()])
    what = telling_stems(match.groupdict().get("what") or "")
    return DecisionChoice(
        (before | what | around | named) - chosen - rejected, chosen - rejected, rejected
    )


def _split_value(text: str) -> tuple[Stems, Stems]:
    """`spaces for indentation` is the value `spaces`, about `indentation`."""
    parts = _PREPOSITION.split(text, maxsplit=1)
    rest = telling_stems(parts[1]) if len(parts) > 1 else frozenset()
    return telling_stems(parts[0]), rest


def _split_placed(text: str) -> tuple[Stems, Stems]:
    """(subject, chosen) of the part of a statement that says what is done."""
    found = _OBJECT.search(text)
    if found and not _PREPOSITION.search(found.group("value")):
        return telling_stems(text[: found.start()]), telling_stems(found.group("value"))
    if found and re.search(r"\b(?:for|as)\b", found.group("value"), re.IGNORECASE):
        value, around = _split_value(found.group("value"))
        return telling_stems(text[: found.start()]) | around, value
    if placed := _PLACED.fullmatch(text):
        value, around = _split_value(placed.group("value"))
        return telling_stems(placed.group("what")) | around, value
    return telling_stems(text), frozenset()


def telling_stems(text: str) -> Stems:
    """The stems of a text that say what is chosen or what it is about; every set of a Choice is of these."""
    found = (term for word in words(text) if not is_stop_word(word) for term in terms(word))
    return frozenset(s for s in found if s not in _GENERAL_STEMS and s.strip("0123456789"))


def find_reversal(statements: tuple[str, ...]) -> Reversal | None:
    """What these statements of one decision give up; None if none of them states that it replaces something."""
    stated = [statement for statement in statements if _REVERSAL.search(statement)]
    if not stated:
        return None
    choices = [parse_choice(statement) for statement in statements]
    chosen = frozenset[str]().union(*(c.chosen for c in choices))
    gives_up = frozenset[str]().union(*(c.rejected for c in choices), *map(_find_given_up, stated))
    subject = choices[0].subject
    for statement in stated:
        if about := _CHOICE_TOPIC.search(statement):
            subject |= telling_stems(about.group(1))
    gives_up -= chosen
    return Reversal(subject - gives_up - chosen, gives_up, one_line(stated[0], _QUOTE_CHARACTERS))


def _find_given_up(statement: str) -> Stems:
    for pattern in _GIVEN_UP_PATTERNS:
        if match := pattern.search(statement):
            return _split_value(match.group("old"))[0]
    return frozenset()


@dataclass(frozen=True, slots=True)
class DecisionStatement:
    """A sentence that decides something."""

    sentence: str
    text: str
    """The sentence, with the one after it if that gives the reason."""
    said: Utterance
    rule: str
    confidence: float

    @property
    def stems(self) -> frozenset[str]:
        """What it is about, as stems."""
        return frozenset(content_stems(make_headline(self.text)))

    @property
    def is_users(self) -> bool:
        """Whether the user said so."""
        return self.said.speaker == "User"


def find_statements(story: Story) -> list[DecisionStatement]:
    """Every sentence of the user and the agent that decides something, in order.

    What the agent decides counts in work that it was given. Elsewhere, and where it does not say so in the
    first person, only what repeats the user's own decision does: an answer retells what others decided.
    """
    stated = [found for said in story.prompts for found, _ in _find_in(said)]
    is_work = _is_own_work(story)
    answered = [pair for said in story.answers for pair in _find_in(said)]
    return stated + [
        found
        for found, is_echo in answered
        if (is_work and not is_echo) or any(_is_retold(found, other) for other in stated)
    ]


def _find_in(said: Utterance) -> Iterator[tuple[DecisionStatement, bool]]:
    """Each sentence of an utterance that decides something, and whether it needs the user's word beside it."""
    is_users = said.speaker == "User"
    own = own_words.read_own_sentences(said.text)
    following = dict(itertools.pairwise(own))
    for sentence in assertions.select_assertions(own):
        if rule := decision_clauses.find_decision(sentence, is_users=is_users):
            after = following[sentence].text if sentence in following else ""
            text = f"{sentence.text} {after}" if _GIVES_REASON.match(after) else sentence.text
            confidence = rule.user if is_users else rule.assistant
            found = DecisionStatement(sentence.text, text, said, rule.name, confidence)
            yield found, rule.is_echo


def _is_own_work(story: Story) -> bool:
    """Whether the agent was given work, not a question or something to read."""
    own = [s for said in story.prompts for s in own_words.read_own_sentences(said.text)]
    if any(map(assertions.is_asked, own)) and not story.edits:
        return False
    orders = (first_word(sentences.strip_politeness(s.said)) for s in own)
    return bool(story.edits) or any(verb in verbs.CONDUCT - verbs.READING for verb in orders)


def _is_retold(statement: DecisionStatement, other: DecisionStatement) -> bool:
    shared = len(statement.stems & other.stems)
    return shared >= _RETOLD_SHARE * max(min(len(statement.stems), len(other.stems)), 1)


def make_headline(statement: str) -> str:
    """The decision itself: without what leads up to it and without its reason."""
    text = sentences.strip_politeness(statement)
    for lead in _HEADLINE_LEADS:
        text = lead.sub("", text) or text
    if about := _HEADLINE_TOPIC.search(text):
        text = text[about.end() :]
    shorter = strip_why(text)
    if about and shorter:
        shorter = f"{about.group(1)}: {shorter}"
    return sentences.format_title(_fit_value(shorter or text), TITLE_CHARACTERS)


def _fit_value(text: str) -> str:
    """A text whose last part, if it gives a value, is within the length of a title."""
    head, mark, part = text.rpartition(";")
    room = TITLE_CHARACTERS - len(part) - 1
    if len(text) <= TITLE_CHARACTERS or room < TITLE_CHARACTERS // 2 or not mark:
        return text
    return f"{sentences.clip(head, room)};{part}" if _gives_value(head, part) else text


def draft_decisions(stated: Sequence[DecisionStatement], context: EpisodeContext) -> list[Draft]:
    """A draft per decision that these statements make, at most eight."""
    groups = _group_statements(stated)[:_DECISIONS_MAX]
    return [_draft_group(number, group, context) for number, group in enumerate(groups)]


def _group_statements(found: Sequence[DecisionStatement]) -> list[list[DecisionStatement]]:
    groups: list[list[DecisionStatement]] = []
    for statement in found:
        home = max(groups, key=lambda g: _compare_statements(statement, g), default=None)
        if home is not None and _compare_statements(statement, home) > 0:
            home.append(statement)
        else:
            groups.append([statement])
    return groups


def _compare_statements(statement: DecisionStatement, group: list[DecisionStatement]) -> float:
    """How much of the shorter one two statements share; 0 if too little to be the same decision."""
    best = 0.0
    for other in group:
        shared = len(statement.stems & other.stems)
        share = shared / max(min(len(statement.stems), len(other.stems)), 1)
        enough = _RETOLD_SHARE if statement.is_users != other.is_users else _REPEATED_SHARE
        if share >= enough and not _has_other_value(statement, other):
            best = max(best, share)
    return best


def _has_other_value(one: DecisionStatement, other: DecisionStatement) -> bool:
    """Whether two statements give different values: both have a number, sign or name that the other lacks."""
    found = compare(one.text, other.text).differences
    return any(d.aspect in EXACT_ASPECTS and d.was and d.now for d in found)


def _draft_group(number: int, group: list[DecisionStatement], context: EpisodeContext) -> Draft:
    # The user's own words lead, and what the agent makes of them decides nothing for the user.
    lead = max(group, key=lambda s: (s.is_users, s.rule == "decision:stated", len(s.text)))
    ordered = [lead, *(s for s in group if s is not lead)]
    stated = tuple(s.text for s in ordered if s.said.authority == lead.said.authority)
    body = "\n".join(unique(f"{s.said.speaker}: “{s.text}”" for s in ordered))
    body = sentences.clip(body, context.body_characters)
    return Draft(
        slot=f"decision/{number}", kind=Kind.DECISION, title=make_headline(lead.text), body=body,
        at=lead.said.at, rule=lead.rule,
        sources=tuple(
            Source(s.said.event_id, sentences.clip_quote(s.text), s.said.authority) for s in ordered
        ),
        confidence=max(s.confidence for s in group), quality=sentences.score_quality(body),
        reversal=find_reversal(stated), authority=lead.said.authority,
    )  # fmt: skip
