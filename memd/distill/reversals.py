"""Compare what decisions choose, pass over and give up, as sets of stems: which replaces or contradicts which. Pure.

Superseding hides a memory, so it takes three things: the new text states that it replaces something, both
are about the same subject, and what is given up is what the older one chose. Anything less is at most a
contradiction, which hides nothing. A small grammar of English reads `we keep S in A rather than B`, `we chose A over B
for S`, `S moves from B to A`, `no longer B`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memd.caches import cached
from memd.distill.vetoes import SPEECH
from memd.models import Kind, Summary
from memd.text import is_stop_word, one_line, stem, terms, words

Stems = frozenset[str]
_QUOTE_CHARACTERS = 300
_CHOICES_CACHED_MAX = 2_048
"""A decision is compared with every later one that shares a word with it."""
_FOR_OR_AS = re.compile(r"\b(?:for|as)\b", re.IGNORECASE)
_SO_CLAUSE = re.compile(r",?\s+so\s+(?=(?:we|i|let'?s|move|switch|use|go|please)\b)", re.IGNORECASE)
_QUOTED_STATEMENT = re.compile(r"^(?:(\S[^“\n]{0,99}?): )?“(.+?)”$", re.MULTILINE)
"""A speaker, if known, and what they said."""
_GENERAL_STEMS = frozenset(map(stem, SPEECH.list_words("choosing")))
"""Words that say that something is chosen, not what."""
_SAME_SUBJECT_JACCARD = 0.5
"""Jaccard of the subjects' stems from which two decisions without a reversal are about the same."""


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


@dataclass(frozen=True, slots=True)
class DecisionVerdict:
    """The effect of a new decision on an older one, and why in words."""

    older_id: int
    relation: Literal["supersedes", "contradicts"]
    reason: str


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


def list_compared_stems(decision: Summary) -> Stems:
    """The stems of which a decision must have one to be compared with this one."""
    reversal = read_reversal(decision)
    stems = telling_stems(decision.title)
    return stems | reversal.subject | reversal.gives_up if reversal else stems


def read_reversal(decision: Summary) -> Reversal | None:
    """Read what the words of a stored decision give up; None if none states that it replaces something."""
    quotes: Sequence[tuple[str, str]] = _QUOTED_STATEMENT.findall(decision.body)
    # The agent's copy of the user's decision reverses nothing in the user's name.
    is_users = decision.authority.speaker == "user"
    said = [quote for speaker, quote in quotes if not is_users or speaker in ("User", "")]
    stated = [one for one in said if SPEECH["reversal"].search(one)]
    if not stated:
        return None
    choices = [parse_choice(one) for one in said]
    chosen = Stems().union(*(one.chosen for one in choices))
    named = (_split_value(match["old"])[0] for one in stated if (match := _find(one, "given up")))
    gives_up = Stems().union(*(one.rejected for one in choices), *named) - chosen
    subject = choices[0].subject.union(*map(_read_topic, stated))
    quote = one_line(stated[0], _QUOTE_CHARACTERS)
    return Reversal(subject - gives_up - chosen, gives_up, quote)


@cached(_CHOICES_CACHED_MAX)
def parse_choice(statement: str) -> DecisionChoice:
    """Read what a statement chooses, passes over, and is about."""
    named, text = _read_topic(statement), _strip_lead_and_reason(statement)
    rejected, around = Stems(), Stems()
    if match := _find(text, "moves"):
        what = match.groupdict().get("what") or ""
        named |= telling_stems(f"{text[: match.start()]}\n{what}")
        rejected = _split_value(match["old"])[0]
        chosen, around = _split_value(match["new"])
        return DecisionChoice((named | around) - chosen - rejected, chosen - rejected, rejected)
    if match := SPEECH["chosen over"].fullmatch(text):
        text = match["new"]
        rejected, around = _split_value(match["old"])
    subject, chosen = _split_placed(text)
    rejected -= chosen
    return DecisionChoice((subject | around | named) - chosen - rejected, chosen, rejected)


def _find(text: str, forms: str) -> re.Match[str] | None:
    """Find the first of some forms that a text has."""
    return next((m for one in SPEECH.list_patterns(forms) if (m := one.search(text))), None)


def _read_topic(statement: str) -> Stems:
    found = SPEECH["choice topic"].search(statement)
    return telling_stems(found[1]) if found else Stems()


def _strip_lead_and_reason(statement: str) -> str:
    """The statement without its lead and its reason: up to `because`, `so that` or `;`."""
    if match := _SO_CLAUSE.search(statement):
        # `we run on three machines, so move it`: the choice comes after its reason.
        statement = statement[match.end() :]
    statement = SPEECH["leading verb"].sub("", SPEECH["no longer lead"].sub("", statement))
    found = SPEECH["reason start"].search(statement)
    return statement[: found.start()].strip() if found and found.start() > 0 else statement.strip()


def _split_value(text: str) -> tuple[Stems, Stems]:
    """`spaces for indentation` is the value `spaces`, about `indentation`."""
    value, *rest = SPEECH["preposition"].split(text, maxsplit=1)
    return telling_stems(value), telling_stems(" ".join(rest))


def _split_placed(text: str) -> tuple[Stems, Stems]:
    """(subject, chosen) of the part of a statement that says what is done."""
    found = SPEECH["object"].search(text)
    if found and not SPEECH["preposition"].search(found["value"]):
        return telling_stems(text[: found.start()]), telling_stems(found["value"])
    if found and _FOR_OR_AS.search(found["value"]):
        what, value = text[: found.start()], found["value"]
    elif placed := SPEECH["placed"].fullmatch(text):
        what, value = placed["what"], placed["value"]
    else:
        return telling_stems(text), Stems()
    chosen, around = _split_value(value)
    return telling_stems(what) | around, chosen


def telling_stems(text: str) -> Stems:
    """The stems of a text that say what is chosen or what it is about; every set of a Choice is of these."""
    found = (term for word in words(text) if not is_stop_word(word) for term in terms(word))
    return frozenset(s for s in found if s not in _GENERAL_STEMS and s.strip("0123456789"))


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
    verdicts = []
    for older, old in found:
        shared = old.subject & reversal.subject
        about = f" about {_list_stems(shared)}" if shared else ""
        given_up = _list_stems(old.chosen) or "it"
        reason = f"says{about} that {given_up} is given up: “{reversal.quote}”"
        verdicts.append(DecisionVerdict(older.id, "supersedes", reason))
    return verdicts


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


def _explain_contradiction(new: DecisionChoice, old: DecisionChoice, given_up: Stems) -> str:
    """Explain in words that the two cannot both hold; empty if they can."""
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
