"""Compare what decisions choose, pass over and give up, as sets of stems: which replaces or contradicts which. Pure.

Superseding hides a memory, so it takes three things: the new text states that it replaces something, both
are about the same subject, and what is given up is what the older one chose. Anything less is at most a
contradiction, which hides nothing. A small grammar of English reads `we keep S in A rather than B`, `we chose A over B for S`, `S moves from B to A`, `no longer B`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memd.caches import cached
from memd.models import Kind, Summary
from memd.patterns import compile_lazily
from memd.text import is_stop_word, one_line, stem, terms, words

Stems = frozenset[str]
_QUOTE_CHARACTERS = 300
_CHOICES_CACHED_MAX = 2_048
"""A decision is compared with every later one that shares a word with it."""

_REASON_START = compile_lazily(
    r"[,;(–—-]*\s+(?:because|since|as (?:it|we|they|that|this|the)|so that|so (?:we|it|that)|due to"  # dashes as people type them
    r"|in order to|which|after|now that)\b|;|[.!?]\s|\s[–—-]{1,2}\s",
    re.IGNORECASE,
)
_FROM_TO = compile_lazily(
    r"\b(?:move[sd]?|moving|switch(?:e[sd]|ing)?|migrat(?:e[sd]?|ing)|chang(?:e[sd]?|ing)|go(?:es|ing)?|went|port(?:s|ed|ing)?)\b"
    r"(?P<what>.*?)\bfrom\s+(?P<old>.+?)\s+(?:over\s+)?to\s+(?P<new>.+)",
    re.IGNORECASE,
)
_REPLACE = compile_lazily(
    r"\b(?:replac(?:e[sd]?|ing)|drop(?:s|ped|ping)?|abandon(?:s|ed|ing)?|ditch(?:es|ed|ing)?|giv(?:e|ing) up|gave up)\s+(?P<old>.+?)"
    r"\s+(?:with|by|in favou?r of|for)\s+(?P<new>.+)",
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
        rf"\bno longer\s+(?:in|on|with|{_VERBS}|keep\w*|stor\w*|run\w*)?\s*(?P<old>[^,.;]+)",
        re.IGNORECASE,
    ),
    compile_lazily(
        r"\bnot\s+(?:use|using|keep|in|on)?\s*(?P<old>[^,.;]+?)\s+any ?more\b", re.IGNORECASE
    ),
    compile_lazily(r"\binstead of\s+(?P<old>[^,.;]+?)(?:\s+we\b|,|$|[.;])", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True)
class Reversal:
    """The statement of a decision that it replaces an earlier choice."""

    subject: Stems
    """The stems of what the choice is about."""
    gives_up: Stems
    """The stems of what is no longer chosen; empty if the text does not name it."""
    quote: str


@dataclass(frozen=True, slots=True)
class DecisionChoice:
    """One choice as stems. An empty set: the words do not say."""

    subject: Stems
    chosen: Stems
    rejected: Stems


def _strip_lead_and_reason(statement: str) -> str:
    """The statement without its lead and its reason: up to `because`, `so that` or `;`."""
    if match := _SO_CLAUSE.search(statement):
        # `we run on three machines, so move it`: the choice comes after its reason.
        statement = statement[match.end() :]
    statement = _LEADING_VERB.sub("", _NO_LONGER.sub("", statement))
    found = _REASON_START.search(statement)
    return statement[: found.start()].strip() if found and found.start() > 0 else statement.strip()


@cached(_CHOICES_CACHED_MAX)
def parse_choice(statement: str) -> DecisionChoice:
    """Read what a statement chooses, passes over, and is about."""
    about = _CHOICE_TOPIC.search(statement)
    named = telling_stems(about.group(1)) if about else frozenset()
    text = _strip_lead_and_reason(statement)
    for pattern in (_FROM_TO, _REPLACE):
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
    chosen, around = _split_value(match.group("new"))
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
    """Find what these statements of one decision give up; None if none of them states that it replaces something."""
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


# ── Two decisions compared ────────────────────────────────────────────────────────────────────────

_SAME_SUBJECT_JACCARD = 0.5
"""Jaccard of the subjects' stems from which two decisions without a reversal are about the same."""
_QUOTED_STATEMENT = re.compile(r"^(?:(\S[^“\n]{0,99}?): )?“(.+?)”$", re.MULTILINE)
"""A speaker, if known, and what they said."""


@dataclass(frozen=True, slots=True)
class DecisionVerdict:
    """The effect of a new decision on an older one, and why in words."""

    older_id: int
    relation: Literal["supersedes", "contradicts"]
    reason: str


def read_reversal(decision: Summary) -> Reversal | None:
    """The reversal that the words of a stored decision state; None if they state none."""
    quotes: Sequence[tuple[str, str]] = _QUOTED_STATEMENT.findall(decision.body)
    # The agent's copy of the user's decision reverses nothing in the user's name.
    is_users = decision.authority.speaker == "user"
    said = [quote for speaker, quote in quotes if not is_users or speaker in ("User", "")]
    return find_reversal(tuple(said)) if said else None


def list_compared_stems(decision: Summary) -> Stems:
    """The stems of which a decision must have one to be compared with this one."""
    reversal = read_reversal(decision)
    stems = telling_stems(decision.title)
    return stems | reversal.subject | reversal.gives_up if reversal else stems


def judge_decision(newer: Summary, earlier: Sequence[Summary]) -> list[DecisionVerdict]:
    """The effect of a decision on these earlier live ones of its project; unrelated ones are left out."""
    new, reversal = parse_choice(newer.title), read_reversal(newer)
    compared = [
        (older, parse_choice(older.title))
        for older in earlier
        if {older.kind, newer.kind} == {Kind.DECISION}
        and older.at <= newer.at
        and older.title != newer.title
    ]
    replaced = _find_replaced(new, compared, reversal) if reversal else _find_passed(new, compared)
    hidden = {one.older_id for one in replaced}
    given_up = new.rejected | (reversal.gives_up if reversal else Stems())
    return replaced + [
        DecisionVerdict(older.id, "contradicts", reason)
        for older, old in compared
        if older.id not in hidden and (reason := _explain_contradiction(new, old, given_up))
    ]


def _find_replaced(
    new: DecisionChoice, compared: Sequence[tuple[Summary, DecisionChoice]], reversal: Reversal
) -> list[DecisionVerdict]:
    other = [(older, old) for older, old in compared if not old.chosen & new.chosen]
    if reversal.gives_up:
        found = [(older, old) for older, old in other if old.chosen & reversal.gives_up]
        if reversal.subject:
            found = [(older, old) for older, old in found if old.subject & reversal.subject]
        elif len(found) != 1:
            found = []  # `we switch from npm to pnpm` names no subject: clear if one decision alone fits
    elif len(back := [pair for pair in other if _goes_back(new, reversal, *pair)]) == 1:
        found = back
    else:
        # It does not name what it gives up: that is the latest other choice on the very same subject.
        same = (pair for pair in other if _is_same_subject(pair[1].subject, reversal.subject))
        found = sorted(same, key=lambda pair: (pair[0].at, pair[0].id))[-1:]
    return [
        DecisionVerdict(older.id, "supersedes", _explain_reversal(old, reversal))
        for older, old in found
    ]


def _goes_back(
    new: DecisionChoice, reversal: Reversal, older: Summary, old: DecisionChoice
) -> bool:
    """Return whether one names what the other chose, and returns to what that one names besides."""
    besides = telling_stems(f"{older.title}\n{older.body}") - old.chosen
    return bool(old.chosen and new.chosen) and (
        old.chosen <= reversal.subject and new.chosen <= besides
    )


def _find_passed(
    new: DecisionChoice, compared: Sequence[tuple[Summary, DecisionChoice]]
) -> list[DecisionVerdict]:
    """Find the one decision about exactly the same that chose just what this one passes over."""
    found = [
        older for older, old in compared
        if new.chosen and old.chosen == new.rejected and old.subject == new.subject and old.chosen
    ]  # fmt: skip
    reason = f"passes over {_list_stems(new.rejected)} for {_list_stems(new.chosen)}"
    return [DecisionVerdict(one.id, "supersedes", reason) for one in found if len(found) == 1]


def _explain_reversal(old: DecisionChoice, reversal: Reversal) -> str:
    shared = old.subject & reversal.subject
    about = f" about {_list_stems(shared)}" if shared else ""
    return f"says{about} that {_list_stems(old.chosen) or 'it'} is given up: “{reversal.quote}”"


def _explain_contradiction(new: DecisionChoice, old: DecisionChoice, given_up: Stems) -> str:
    """Why the two cannot both hold, in words; empty if they can."""
    if not old.chosen or old.chosen & new.chosen:
        return ""
    shared = old.subject & new.subject
    if new.chosen and _is_same_subject(old.subject, new.subject):
        return f"both decide about {_list_stems(shared)}: {_list_stems(old.chosen)} or {_list_stems(new.chosen)}"
    passed_over = old.chosen & given_up
    return f"it passes over {_list_stems(passed_over)}" if passed_over and shared else ""


def _is_same_subject(one: Stems, other: Stems) -> bool:
    return bool(one) and len(one & other) >= _SAME_SUBJECT_JACCARD * len(one | other)


def _list_stems(stems: Stems) -> str:
    """Stems for people: without the parts of a longer one (`sqlite`, not `sq` and `lite`)."""
    whole = [s for s in stems if not any(s != other and s in other for other in stems)]
    return " ".join(sorted(whole))
