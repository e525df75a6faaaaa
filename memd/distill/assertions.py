"""The few forms of words that are asserted by rule, each with how it did on people it was not made for. Pure.

A form stays if what it keeps is said as it was meant in at least 95 %, and stands beyond its turn in at least 60 %. What
fails that is told by the memory of the work, and left to the agent that was there to note. Words that are fenced, quoted,
pasted, asked, reported or meant in irony are no assertions: those vetoes come first.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from memd.belief.claims import parse_claims
from memd.belief.ending import WITHDRAWN_MIN, rate_withdrawn
from memd.belief.later import TAKING_BACK_WITHIN, may_take_back
from memd.belief.polarity import WORDS
from memd.belief.turns import may_end
from memd.distill import text as sentences
from memd.distill.episodes import AskedQuestion, EpisodeContext, Story, Utterance
from memd.distill.orders import Wish, drop_place, read_order, read_wish
from memd.distill.own_words import (
    BEHAVIOUR,
    VERBS,
    OwnSentence,
    read_beginning,
    read_own_sentences,
    select_assertions,
)
from memd.distill.vetoes import SPEECH, is_for_this_time
from memd.models import RETRACTED, TAKEN_BACK, TURNED, Authority, Draft, Kind, Source, Summary
from memd.patterns import compile_lazily
from memd.text import content_stems, first_word, is_stop_word, one_line, stem, words

TITLE_CHARACTERS = 120
_SENTENCES_MAX, _SENTENCE_CHARACTERS = 8, 400
_QUESTIONS_MAX = 5
"""Questions of a turn from which on they are an interview about a plan, which the plan tells."""
_QUOTED, _QUESTION_SHARE = 600, 0.5
_TELLING_MIN = 2
_DAY_MS = 86_400_000
_COMMAND_MIN = 4


@dataclass(frozen=True, slots=True)
class Form:
    """A form of words, and how it did on 1,333 labelled turns of 27 people."""

    rule: str
    kind: Kind | None
    """None: as the words say."""
    confidence: float
    cases: int = 0
    faithful: int = 0
    """Cases that say what was said, with nothing turned."""
    stands: int = 0
    """Cases that say something that readers found to hold beyond the turn."""
    people: int = 0
    """Number of people whose sessions the cases are from."""


# What the user asks to keep in so many words is kept at his word; on the labelled turns it is next to never said.
# A letter or number that takes an option of the agent's message stood in 5 of 24: the memory of the work tells it.
#               rule               kind              conf. cases faithful stands people
CHOSEN = Form("answer:chosen", Kind.DECISION, 0.85, 29, 29, 22, 3)
UNNEEDED = Form("said:unneeded", Kind.DECISION, 0.7, 7, 7, 6, 4)
ALWAYS = Form("said:always", Kind.INSTRUCTION, 0.8, 2, 2, 1, 2)
REMEMBER = Form("said:remember", None, 0.9)
LASTING = Form("said:from-now-on", Kind.INSTRUCTION, 0.9)
PREFER = Form("said:prefer", Kind.PREFERENCE, 0.8)
DECIDED = Form("said:decided", Kind.DECISION, 0.85)
TASK = Form("said:task", Kind.TASK, 0.75)
NOTE = Form("said:note", None, 0.9)
FORMS = (CHOSEN, UNNEEDED, ALWAYS, REMEMBER, LASTING, PREFER, DECIDED, TASK, NOTE)

_WISHES: dict[Wish, tuple[Form, Kind]] = {
    "rule": (REMEMBER, Kind.INSTRUCTION),
    "fact": (REMEMBER, Kind.FACT),
    "task": (TASK, Kind.TASK),
    "decision": (DECIDED, Kind.DECISION),
    "preference": (PREFER, Kind.PREFERENCE),
}

# ── The user's own sentences ─────────────────────────────────────────────────────────────────────

_RULES = {
    "lasting first": LASTING, "lasting last": LASTING, "every time": LASTING, "absolute": ALWAYS, "never again": ALWAYS,
}  # fmt: skip
"""Pattern → the form of what has it."""
_AND = re.compile(r"and\b", re.IGNORECASE)
_OTHER_FORM = re.compile(r"(?:ed|ing|ly|[^su]s)$|^(?:mind|remember)$")
"""`Never worked the way I want`, `never says a word`; and what is said for the sake of it: `never mind the tests`."""
_OBJECT = re.compile(
    r"\s+(?:(?:an?|the|any|all|each|every|our|your|my|its|their|more|less|two|one)\s|`|\d|[A-Z]{2})"
)
_PAST = SPEECH.list_words("past forms")
_OF_A_THING = re.compile(r"(?!(?:you|we|i)\b).*\b(?:must|should|shall|can|will)\b", re.IGNORECASE)
_BINDS = re.compile(r"\b(?:must|shall|needs?)\b", re.IGNORECASE)
"""What makes a statement a rule: `from now on the tests are green` only observes."""
_TOPIC = re.compile(r"\babout (?:the |our )?([\w .-]{2,40})$")
_DECISION_LEAD = re.compile(r"\b(?:decision(?: is| was)?|decided|changed (?:our|my) minds?)\b")
_PASSING = re.compile(r"\bnow\b|\bany ?(?:more|longer)\b|\bthis\W*$", re.IGNORECASE)
"""Words that tie a refusal to this turn, or end what was: `we don't need the umbrella any more`."""
_SEEMS = re.compile(r"\b(?:if|unless|when|looks? like|seems?|(?:i|we) thought|not sure)\b", re.IGNORECASE)  # fmt: skip
_NOTE = re.compile(r"\s*#+\s*(?P<rest>[^\W\d][^\n]*\S)\s*")
"""A prompt of one line that begins so is a note for the memory, by the client's own shortcut."""
_EXTREME, _SLOGAN = re.compile(r"\b(?:always|never)\b", re.IGNORECASE), 3
"""`Never test, never document, never sleep` orders nothing."""
_UNDECIDED = re.compile(r"\b(?:yet|open|undecided|later|nothing)\b", re.IGNORECASE)
_DATED = re.compile(
    r"\b(?:today|tomorrow|tonight|yet|nothing|(?:is|are|left|still) open|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"^(?:the|this|that|option|number|it|your|if|\W*[a-h1-9]\b)", re.IGNORECASE)
_SAYS_THAT = re.compile(
    r"^(?:the|our|my|all|every|each|no|\w+)\s.*\b(?:is|are|was|were|has|have|does|do|can|cannot|can't|must|needs?|\w+s)\b",
    re.IGNORECASE,
)

_DOES = re.compile(
    r"^(?:we|they|(?:[\w-]+ ){0,3}[\w-]+s) (?:(?:always|never|only|all|still) )?(?P<verb>[a-z-]+)\b",
    re.IGNORECASE,
)
"""What many do, without an ending: `deploys go through staging`."""
_IS_A = re.compile(r"\bis an?\b", re.IGNORECASE)
"""A doubt in what merely sounds decided (`that is a good idea`), none in what one asks to remember."""


def draft_assertions(story: Story, context: EpisodeContext) -> list[Draft]:
    """Return what the user's answers and sentences of a turn assert by one of the forms."""
    found = list(_draft_answers(story, context))
    for said in story.prompts:
        note = _draft_note(said, context)
        found += [note] if note else _draft_sentences(said, story, context)
    for refusal in story.refusals:
        found += _draft_sentences(refusal.said, story, context)
    return [replace(one, slot=f"standing/{number}") for number, one in enumerate(found)]


def _draft_sentences(said: Utterance, story: Story, context: EpisodeContext) -> Iterator[Draft]:
    """The sentences of a message that ask to be remembered, whole."""
    own = select_assertions(read_own_sentences(said.text))
    found = (
        (sentence, read)
        for sentence in own
        if (read := read_sentence(sentence)) and not _is_likely_withdrawn(sentence)
    )
    for sentence, (form, kind) in islice(found, _SENTENCES_MAX):
        title = _clean(sentence.text[sentence.start :], form)
        if topic := _TOPIC.search(sentence.lead):
            title = f"{topic[1]}: {title}"
        lines = [f"User: “{sentence.text}”"]
        lines += _describe_commands(sentence.text, story, context)
        yield _make(said, context, form, kind, title, lines, sentence.text)


def _draft_note(said: Utterance, context: EpisodeContext) -> Draft | None:
    """A note that the user typed with the client's shortcut, `# use bun`, whole; None if the prompt is none."""
    match = _NOTE.fullmatch(said.text)
    rest = match["rest"] if match else ""
    telling = sum(not is_stop_word(word) for word in words(rest))
    if telling < _TELLING_MIN or len(rest) > _SENTENCE_CHARACTERS:
        return None
    is_rule = _find_rule(rest) or SPEECH["absolute"].search(rest) or first_word(rest) in VERBS
    kind = Kind.INSTRUCTION if is_rule else _find_kind(rest) or Kind.FACT
    return _make(said, context, NOTE, kind, rest, [f"User: “{said.text.strip()}”"], "")


def read_sentence(  # noqa: C901, PLR0911, PLR0912  # a list of cases, in order
    sentence: OwnSentence,
) -> tuple[Form, Kind] | None:
    """The form of a sentence, and the kind of what it says; None if it has none."""
    said = drop_place(sentence.said, sentence.text).strip()
    if not said or len(said) > _SENTENCE_CHARACTERS:
        return None
    if _DECISION_LEAD.search(sentence.lead):
        return (DECIDED, Kind.DECISION) if not _UNDECIDED.search(said) else None
    telling = sum(not is_stop_word(word) for word in words(said)) + ("`" in sentence.text)
    if telling < _TELLING_MIN:
        return None
    lead = sentence.lead.rpartition(" ")[2]
    if SPEECH["task"].match(said) or lead in ("todo", "to-do"):
        return TASK, Kind.TASK
    form = None if is_for_this_time(said) else _find_rule(said, sentence.text)
    if wished := read_wish(said, sentence.lead):
        is_open = wished[0] == "fact" and SPEECH["either value"].search(wished[1])
        return None if is_open else _WISHES[wished[0]]
    if match := SPEECH["remember"].match(said) or WORDS["remember that"].match(said):
        is_rule = form or SPEECH["absolute"].search(match["rest"])
        kind = Kind.INSTRUCTION if is_rule else _find_kind(match["rest"])
        return (REMEMBER, kind) if kind else None
    if lead == "remember" and (kind := Kind.INSTRUCTION if form else _find_kind(said)):
        return REMEMBER, kind
    if _rules_out(said):
        return UNNEEDED, Kind.DECISION
    if SPEECH["doubts"].search(said):
        return None
    if form and (form is LASTING or not SPEECH["here"].search(said)):
        return form, Kind.INSTRUCTION
    if (match := SPEECH["prefer"].match(said)) and not _CHOICE.match(match["rest"]):
        return (PREFER, Kind.PREFERENCE) if not SPEECH["here"].search(said) else None
    is_decided = SPEECH["decided"].match(said) or SPEECH["sets value"].search(said)
    if is_decided is None or _DATED.search(said):
        return _read_lasting(said)
    return DECIDED, Kind.DECISION


def is_withdrawn_form(sentence: OwnSentence) -> bool:
    """Return whether a sentence has a form, and what is said behind it most likely takes it back."""
    return _is_likely_withdrawn(sentence) and read_sentence(sentence) is not None


def _is_likely_withdrawn(sentence: OwnSentence) -> bool:
    told = (
        one for one in sentence.following[:TAKING_BACK_WITHIN] if not WORDS["stress"].match(one)
    )
    behind = " ".join(told)
    return bool(behind) and rate_withdrawn(sentence.bare, behind) >= WITHDRAWN_MIN


def _read_lasting(said: str) -> tuple[Form, Kind] | None:
    """Read “from now on” before what binds: `from now on every migration needs a review`."""
    match = SPEECH["states lasting"].match(said)
    rest = match["rest"] if match else ""
    is_rule = SPEECH["bans lasting"].match(rest) or (_BINDS.search(rest) and _find_kind(rest))
    return (LASTING, Kind.INSTRUCTION) if is_rule and not SPEECH["here"].search(said) else None


def _rules_out(said: str) -> bool:
    """Return whether a sentence says for sure, and of something that it names, that it is not needed or not wanted."""
    match = SPEECH["unneeded"].search(said)
    if match is None or SPEECH["here"].search(match["what"]) or _PASSING.search(match["what"]):
        return False
    return not (
        SPEECH["doubts"].search(said[: match.start()]) or _SEEMS.search(said[: match.end()])
    )


def _find_rule(said: str, whole: str = "") -> Form | None:
    """The form of an order that holds beyond this turn; None if it is none. `whole`: with what is masked."""
    if len(_EXTREME.findall(said)) >= _SLOGAN or SPEECH["reproach"].search(said):
        return None
    for name, form in _RULES.items():
        match = SPEECH[name].search(said)
        if match is None:
            continue
        lead = sentences.strip_politeness(said[: match.start()])
        if form is ALWAYS and _AND.match(match.group()) and _OF_A_THING.match(lead):
            continue  # what stands before has a subject of its own: `the parser must accept it and always return`
        verb, rest = match["verb"].lower(), said[match.end("verb") :]
        # `Always return null` is said of code; with `from now on` it is said of the work.
        if verb in VERBS and (form is LASTING or verb not in BEHAVIOUR):
            return form
        if form is ALWAYS and not lead and verb not in VERBS and _is_imperative(verb, rest):
            return form
    return {"always": ALWAYS, "from now on": LASTING}.get(read_order(said, whole))


def _is_imperative(word: str, rest: str) -> bool:
    """Return whether a word that no table has orders something: it has an object, `calibrate the sensor`, and no other form."""
    is_other_form = word in _PAST or is_stop_word(word) or _OTHER_FORM.search(word)
    return not is_other_form and _OBJECT.match(rest) is not None


def _find_kind(rest: str) -> Kind | None:
    """Return what is to be remembered: a taste or a fact; None if it is only a thing at hand."""
    if SPEECH["prefer"].match(rest):
        return Kind.PREFERENCE
    is_sure = not (
        sentences.is_question(rest)
        or SPEECH["either value"].search(rest)
        or SPEECH["doubts"].search(_IS_A.sub(" ", rest))
    )
    told = _DOES.match(rest)
    is_fact = _SAYS_THAT.match(rest) or (told and told["verb"].lower() in VERBS)
    is_order = first_word(rest) in VERBS
    return Kind.FACT if is_fact and is_sure and not is_order else None


def may_order(prompt: str) -> bool:
    """Return whether a prompt has a sentence with the form of a rule, in which commands are described."""
    return any(_find_rule(one.said) for one in read_own_sentences(prompt))


def _describe_commands(sentence: str, story: Story, context: EpisodeContext) -> list[str]:
    """The agent's descriptions of the commands in a sentence: `make check` is to be found as how to run the tests."""
    known = {c.command: c.description for c in reversed(story.commands) if c.description}
    known.update(context.descriptions)
    named = [c for c in known if len(c) >= _COMMAND_MIN and c in sentence]
    longest = [c for c in named if not any(c != other and c in other for other in named)]
    return [f"`{command}` ({known[command]})" for command in sorted(longest)]


def _clean(text: str, form: Form) -> str:
    """A sentence without the words that only ask to remember it."""
    if form in (LASTING, DECIDED):
        return (SPEECH["lasting lead"] if form is LASTING else SPEECH["decided to"]).sub(
            "", text
        ) or text
    patterns = {
        REMEMBER.rule: (SPEECH["remember"], WORDS["remember that"]),
        TASK.rule: (SPEECH["task"],),
    }.get(form.rule, ())
    match = next(filter(None, (one.match(text) for one in patterns)), None)
    wish = read_wish(text, "") if patterns and not match else None
    return sentences.strip_politeness(match["rest"] if match else wish[1] if wish else text)


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────

_WHO_DOES_IT = re.compile(r"\b(?:i|me|my|you|your|ich|mich|du|dir|sie|ihr|je|tu|vous|yo|usted)\b", re.IGNORECASE)  # fmt: skip
"""A question that speaks of the agent or the user is about how the work is done, as far as words tell."""
_DESCRIBED_MIN, _WRITTEN_MIN = 60, 0.25
"""Letters of an option's description, on average, and the share of an answer's words that files hold which were written
afterwards in the turn, from which an answer is about the product. Between 40 and 85 and between .15 and .3 nothing changes."""
_RECOMMENDED = re.compile(r"\s*\((?:recommended|default|suggested)[^)]*\)\s*", re.IGNORECASE)


def _draft_answers(story: Story, context: EpisodeContext) -> Iterator[Draft]:
    """The answers to the client's own question dialogue, about the product."""
    if len(story.questions) <= _QUESTIONS_MAX:
        asked = (one for one in story.questions if _is_of_product(one, story))
        yield from (_draft_answer(one, context) for one in asked)


def _is_of_product(asked: AskedQuestion, story: Story) -> bool:
    """Return whether what was chosen went into files: what to do next, and how, is told in a word or two and written nowhere."""
    answer, at = asked.answer.text, asked.answer.at
    if not asked.options or sentences.is_question(answer) or sentences.is_only_placeholders(answer):
        return False
    if story.worked_at <= at:  # nothing was done yet
        labels = {label.lower() for label, _ in asked.options}
        about = f"{asked.asked.text} {answer}" if answer.lower() in labels else asked.asked.text
        return _WHO_DOES_IT.search(about) is None
    described = sum(_measure_width(text) for _, text in asked.options) / len(asked.options)
    meant = frozenset(content_stems(f"{answer} {_find_description(asked)}"))
    written = content_stems(" ".join(edit.new for edit in story.edits if edit.at >= at))
    share = len(meant.intersection(written)) / max(1, len(meant))
    return described >= _DESCRIBED_MIN and share >= _WRITTEN_MIN


def _measure_width(text: str) -> float:
    """The length of a text in letters; a Chinese or Korean sign says as much as two or three."""
    return len(text) + 1.5 * sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)


def _find_description(asked: AskedQuestion) -> str:
    """Return the agent's description of the option that was chosen; empty for several, and for the user's own words."""
    said = asked.answer.text.strip().lower()
    return next((text for label, text in asked.options if label.lower() == said), "")


def _draft_answer(asked: AskedQuestion, context: EpisodeContext) -> Draft:
    answer = _RECOMMENDED.sub(" ", asked.answer.text).strip()
    chosen = _find_description(asked)
    options = "; ".join(f"{label}: {text}" if text else label for label, text in asked.options)
    lines = [
        f"Chosen: {answer}: {sentences.strip_markup(chosen)}" if chosen else f"Chosen: {answer}",
        f"Assistant asked: “{asked.asked.text}”",
        f"User: “{one_line(asked.answer.text, _QUOTED)}”",
        f"Assistant had offered: “{one_line(sentences.strip_markup(options), _QUOTED)}”",
    ]
    question = one_line(asked.asked.text.rstrip("?"), int(TITLE_CHARACTERS * _QUESTION_SHARE))
    room = TITLE_CHARACTERS - len(question) - 3
    title = f"{one_line(answer, room)} ({question})"
    draft = _make(asked.answer, context, CHOSEN, Kind.DECISION, title, lines, "")
    asking = Source(
        asked.asked.event_id, sentences.clip_quote(asked.asked.text), Authority.AGENT_CALL
    )
    return replace(draft, sources=(draft.sources[0], asking))


def _make(  # noqa: PLR0913, PLR0917  # what a draft consists of
    said: Utterance,
    context: EpisodeContext,
    form: Form,
    kind: Kind,
    title: str,
    lines: Sequence[str],
    quote: str,
) -> Draft:
    body = sentences.clip("\n".join(lines), context.body_characters)
    days = context.task_days if kind is Kind.TASK else 0
    return Draft(
        slot="", kind=kind, title=sentences.format_title(title, TITLE_CHARACTERS), body=body,
        at=said.at, rule=form.rule,
        sources=(Source(said.event_id, sentences.clip_quote(quote or said.text), said.authority),),
        authority=said.authority, confidence=form.confidence,
        quality=sentences.score_quality(body), expires_at=said.at + days * _DAY_MS if days else None,
    )  # fmt: skip


# ── Sentences with which the user ends a rule ─────────────────────────────────────────────────────

_ENDED, _TURNED, _TAKEN_BACK = (
    Form(rule, Kind.NOTE, 0.8) for rule in (RETRACTED, TURNED, TAKEN_BACK)
)
_PER_TURN_MAX = 8
_NAMED_MIN = 0.5
"""Share of a rule's stems that a shorter retraction must name."""
_CLAUSE_START = compile_lazily(
    r"[,;:]\s+|\s[–—-]{1,2}\s|\s(?=(?:and|but|so)\s)", re.IGNORECASE
)  # dashes as people type them
_ANY_MORE = compile_lazily(r"\b(?:any ?more|any longer|from now on|always|now)\b", re.IGNORECASE)
_FORBIDS = compile_lazily(r"\b(?:never|not|don'?t|do not|no)\b", re.IGNORECASE)
_EMPTY_STEMS = frozenset(
    map(stem, "always never ever please from now future must should anymore want need".split())  # noqa: SIM905
)


def draft_retractions(story: Story, context: EpisodeContext) -> list[Draft]:
    """Return a note for each sentence by which the user ends a rule, or may end anything else that he said, at most eight."""
    found: list[Draft] = []
    for said in story.prompts:
        found += _draft_taken_back(said, context, len(found))
        for sentence in select_assertions(read_own_sentences(said.text)):
            match = _find_retraction(sentence.said)
            is_open = SPEECH["doubts"].search(sentence.said) or SPEECH["here"].search(sentence.said)
            if is_open or len(found) == _PER_TURN_MAX:
                continue
            found += _draft_turned(sentence, said, context, len(found))
            if match is None:
                continue
            start, end = (sentence.start + at for at in match.span("rule"))
            rule = " ".join(_ANY_MORE.sub(" ", sentence.text[start:end]).split())
            quoted = [f"User: “{sentence.text}”"]
            title = sentences.format_title(f"No longer: {rule}")
            draft = _make(said, context, _ENDED, Kind.NOTE, title, quoted, sentence.text)
            found.append(replace(draft, slot=f"retraction/{len(found)}"))
    return found


def _draft_taken_back(said: Utterance, context: EpisodeContext, number: int) -> Iterator[Draft]:
    """Draft the beginning of a message that may take back the answer before it."""
    begin = read_beginning(said.text)
    if 0 < len(begin) <= _SENTENCE_CHARACTERS and may_take_back(begin):
        draft = _make(said, context, _TAKEN_BACK, Kind.NOTE, begin, [f"User: “{begin}”"], begin)
        yield replace(draft, slot=f"taken-back/{number}")


def _draft_turned(
    sentence: OwnSentence, said: Utterance, context: EpisodeContext, number: int
) -> Iterator[Draft]:
    """Draft a sentence that may end something, and that no other form keeps."""
    text = sentence.text
    is_kept = read_sentence(sentence) is not None or len(text) > _SENTENCE_CHARACTERS
    if not is_kept and not is_for_this_time(text) and may_end(parse_claims(text)):
        draft = _make(said, context, _TURNED, Kind.NOTE, text, [f"User: “{text}”"], text)
        yield replace(draft, slot=f"turned/{number}")


def _find_retraction(said: str) -> re.Match[str] | None:
    """The first clause that ends a rule, if all before it leave it to be what it looks like."""
    for start in (0, *(match.end() for match in _CLAUSE_START.finditer(said))):
        if start and SPEECH["not said outright"].search(said[:start]):
            return None
        if match := SPEECH["no longer"].match(said, start) or SPEECH["void"].match(said, start):
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
    longer = [one for one in same if stems < _rule_stems(one.title)]
    is_clear = len(longer) == 1 and len(stems) >= _NAMED_MIN * len(_rule_stems(longer[0].title))
    return exact or (longer if is_clear else [])


def _rule_stems(text: str) -> frozenset[str]:
    """The stems of what a rule is about. A gerund has the stem of its verb."""
    return frozenset(content_stems(text)) - _EMPTY_STEMS


def _forbids(text: str) -> bool:
    return bool(words(text)) and _FORBIDS.search(text) is not None
