"""What an agent's message leaves to the user: labelled options, alternatives in its last question, a proposal. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memd.caches import cached
from memd.distill.text import is_short, split_sentences, strip_markup
from memd.text import one_line

_OPTIONS_MAX = 12
_OPTION_CHARACTERS = 700
_QUESTION_CHARACTERS = 400
_READ_CHARACTERS = 24_000
_MESSAGES_CACHED = 64
"""Offers that are kept: one is read before its answer, with it and after it."""
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_ONLY_LABELS = re.compile(r"\W*(?:(?:option )?[A-Za-z0-9]\b[\s,]*)+")
_ASKS_FIRST = re.compile(
    r"^(?:which|what)\b[^:–—?]{0,60}?(?::|\s[–—-])\s+", re.IGNORECASE
)  # dashes as people type them
_NAMED = r"(?:option|approach|alternative|variant|solution|choice|plan|strategy|path|possibility|idea|variante|möglichkeit)"
_LABELLED = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]+|[-*•][ \t]+|\|[ \t]*)?(?:\*\*|__)?[ \t]*(?:(?P<word>{_NAMED})[ \t]+)?[(\[]?(?P<label>[A-Za-z]|\d{{1,2}})[)\].:]?"
    r"(?P<mark>[)\].:]|[ \t]*[—–:-](?=[ \t]))?(?:\*\*|__)?[ \t]*[—–:|-]?[ \t]*(?P<text>\S.*)$",
    re.IGNORECASE,
)
_NAMED_LABEL = re.compile(rf"\b{_NAMED}[ \t]+[(\[]?(?:[A-Za-z]|\d{{1,2}})\b", re.IGNORECASE)
_INTRODUCES = re.compile(
    r"\b(?:options?|approach(?:es)?|alternatives?|ways|possib\w+|choices?|either|could|prefer|would you|should (?:i|we)|shall i|which|solutions?|ideas?|variants?)\b",
    re.IGNORECASE,
)
_ASKS_WHICH = re.compile(
    r"\b(?:which|what (?:do|would) you|what'?s your (?:preference|choice)|prefer(?:ence)?|option|approach|either)\b[^?\n]{0,80}\?",
    re.IGNORECASE,
)
_QUESTIONS = re.compile(r"\bquestions?\b", re.IGNORECASE)
_PROPOSES = re.compile(
    r"\b(?:(?:do you )?want me to|would you like me to|should i(?: also)?|shall i(?: also)?|should we|shall we|may i|ok if i|okay to|would you (?:like|prefer)|do you want"
    r"|ready (?:for me )?to|want to (?:go with|do|use|try)|does that (?:work|sound)|sound good|how does that sound|what do you think|happy to|i can (?:also )?|let me know if you(?:'d)? (?:like|want)"
    r"(?: me)? to)\b\s*(?P<what>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NO_ALTERNATIVE = re.compile(
    r"^(?:is (?:this|that|it|there)|are (?:you|we)|am i|do(?:es)? \w+|did \w+|sounds? (?:right|good|ok\w*)|looks? (?:right|good|ok\w*)|right|correct|good|ready|anything|something|leave (?:it|this)|not\b|if\b)|\b(?:anything|something else|good for now|first)\b",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r",?\s+\b(?:or(?: rather| instead| just| should i| would you (?:prefer|rather)(?: to| me to)?| do you (?:want|prefer)(?: me)?(?: to)?| shall i)?)\b\s+", re.IGNORECASE)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """One of several things that the agent offered."""

    label: str
    """`2` or `b`, in lower case; empty for an alternative that has none."""
    name: str
    """Its first line, without markup."""
    text: str
    """The whole of it, without markup, on one line."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a message offers, as far as it does."""

    options: tuple[Option, ...] = ()
    question: str = ""
    """The question that it ends with."""
    proposal: str = ""
    """What is proposed in that question: `add a fallback that …`."""


@cached(_MESSAGES_CACHED)
def read_offer(message: str) -> Offer:
    """What the agent's message leaves to the user to say."""
    text = _QUOTED.sub("", _FENCE.sub("\n", message[-_READ_CHARACTERS:]))
    options = _read_labelled(text)
    question = _find_question(text)
    proposal = _find_proposal(question)
    if not options:
        options = _read_alternatives(proposal or question)
    return Offer(options, question, proposal)


def find_option(message: str, label: str) -> Option | None:
    """The option that a message presents under this label, wherever in it; of several the last."""
    lines = _FENCE.sub("\n", message).split("\n")
    runs = [run for first, run in _place_runs(lines) if _NAMED_LABEL.search(lines[first])]
    found = [option for run in runs for option in run if option.label == label]
    return found[-1] if found else _find_mentioned(message, label)


_TAKEN = re.compile(r"(?:^|\s|[(#])(?P<label>[A-Za-z]|\d{1,2})(?=[\s,.;:!)\]]*$)")
"""The label with which a short answer ends."""


def find_taken(said: str, before: str) -> Option | None:
    """The option of the message `before` that a short answer takes by its label; None if it takes none."""
    match = _TAKEN.search(said.strip()) if is_short(said) else None
    if match is None or not before:
        return None
    label = match["label"].lower()
    return next((o for o in read_offer(before).options if o.label == label), None) or (
        find_option(before, label)
    )


def _find_mentioned(message: str, label: str) -> Option | None:
    """`Approach 4 (per-file pools)`, or the other way round, as an option."""
    mark = rf"\b{_NAMED}[ \t]+{re.escape(label)}\b"
    plain = strip_markup(message)
    for pattern in (
        rf"{mark}[ \t]*\((?P<name>[^()\n]{{3,80}})\)",
        rf"(?P<name>[\w`][^.,:;()\n]{{3,60}}?)[ \t]*\({mark}\)",
    ):
        if match := re.search(pattern, plain, re.IGNORECASE):
            return Option(label, match.group("name"), match.group("name"))
    return None


# --- labelled options ---


def _read_labelled(text: str) -> tuple[Option, ...]:
    """The last list of labelled options: those that are named so, before those that are only numbered."""
    lines = text.split("\n")
    runs = [run for first, run in _place_runs(lines) if _is_offered(lines, first, run)]
    return runs[-1] if runs else ()


def _is_offered(lines: Sequence[str], first: int, run: Sequence[Option]) -> bool:
    """Whether a list is one to choose from, by its own labels, what introduces it, or the question after it."""
    if _NAMED_LABEL.search(lines[first]):
        return True
    above = [line for line in lines[max(0, first - 4) : first] if line.strip()][-1:]
    if above and _INTRODUCES.search(above[0]) and not _QUESTIONS.search(above[0]):
        return True
    after = " ".join(line for line in lines[first + len(run) :][-12:] if line.strip())
    return _ASKS_WHICH.search(after) is not None and not (above and _QUESTIONS.search(above[0]))


def _place_runs(lines: Sequence[str]) -> list[tuple[int, tuple[Option, ...]]]:
    """Each run of consecutive labels in a message, with its first line."""
    marked = [(number, m) for number, line in enumerate(lines) if (m := _read_label(line))]
    named = [(n, m) for n, m in marked if m.group("word")]
    runs: list[tuple[int, tuple[Option, ...]]] = []
    for starts in (_split_runs([x for x in marked if not x[1].group("word")]), _split_runs(named)):
        runs += [(run[0][0], _make_options(lines, run)) for run in starts if len(run) > 1]
    return runs


def _read_label(line: str) -> re.Match[str] | None:
    found = _LABELLED.match(line)
    if found is None:
        return None
    label, is_named = found.group("label"), bool(found.group("word"))
    before = line[: found.end("label") + 2]
    has_sign = bool(re.search(rf"{re.escape(label)}[)\].:]|[(\[]{re.escape(label)}", before))
    if not is_named and not has_sign:
        return None
    if (
        label.isalpha()
        and not is_named
        and not re.search(rf"(?:^|\W){re.escape(label)}[).\]]", before)
    ):
        return None
    return found


def _split_runs(
    marked: Sequence[tuple[int, re.Match[str]]],
) -> list[list[tuple[int, re.Match[str]]]]:
    """Runs of labels that count on: 1, 2, 3 or A, B, C."""
    runs: list[list[tuple[int, re.Match[str]]]] = []
    for line, match in marked:
        rank = _rank(match.group("label"))
        if runs and _rank(runs[-1][-1][1].group("label")) + 1 == rank:
            runs[-1].append((line, match))
        elif rank in (1, 101):
            runs.append([(line, match)])
    return runs


def _rank(label: str) -> int:
    return int(label) if label.isdigit() else 100 + ord(label.lower()) - ord("a") + 1


def _make_options(
    lines: Sequence[str], run: Sequence[tuple[int, re.Match[str]]]
) -> tuple[Option, ...]:
    found = []
    for place, (number, match) in enumerate(run[:_OPTIONS_MAX]):
        end = run[place + 1][0] if place + 1 < len(run) else _find_list_end(lines, number)
        name = strip_markup(match.group("text"))
        rest = " ".join(line.strip() for line in lines[number + 1 : end])
        text = one_line(strip_markup(f"{match.group('text')} {rest}"), _OPTION_CHARACTERS)
        found.append(Option(match.group("label").lower(), name, text))
    return tuple(found)


def _find_list_end(lines: Sequence[str], start: int) -> int:
    """Where the last option ends: at a blank line that no indented or listed line follows, or a heading."""
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if re.match(r"\s*(?:#{1,6}\s|---|\*\*\S)", line):
            return number
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if not line.strip() and not re.match(r"\s+\S|\s*[-*•]\s", following):
            is_headed = lines[start].lstrip().startswith("#") and number == start + 1
            if not is_headed:
                return number
    return len(lines)


# --- the last question ---


def _find_question(text: str) -> str:
    """The question at the end of a message; a closing remark of one sentence may follow it."""
    tail = [line for line in text.strip().split("\n") if line.strip()][-14:]
    asked = [
        s for line in tail for s in split_sentences(line) if s.rstrip("*_ ").endswith(("?", ":"))
    ]
    last = [s for s in asked if s.rstrip("*_ ").endswith("?") or _PROPOSES.search(s)]
    return one_line(strip_markup(last[-1]), _QUESTION_CHARACTERS) if last else ""


def _find_proposal(question: str) -> str:
    match = _PROPOSES.search(question)
    return match.group("what").strip(" ?:") if match else ""


def _read_alternatives(asked: str) -> tuple[Option, ...]:
    """`keep the comma or switch to tabs` as two options without labels."""
    parts = [part.strip(" ,?") for part in _ALTERNATIVE.split(_ASKS_FIRST.sub("", asked))]
    parts = [
        re.sub(r"^(?:either|should i|shall i|want me to)\s+", "", p, flags=re.IGNORECASE)
        for p in parts
    ]
    parts = [p for p in parts if not _NO_ALTERNATIVE.search(p) and not _ONLY_LABELS.fullmatch(p)]
    return tuple(Option("", p, p) for p in parts) if len(parts) > 1 and all(parts) else ()
