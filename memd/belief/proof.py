"""Prove by a session's record that what an agent notes is the user's word. Pure.

An agent that took part understands an exchange, but may be misled; the record knows who said what. A note is *the
user's word, told by the agent* if the words that it quotes were said by the user himself in this session, if it is
about the same, keeps what the words deny and on what condition, and brings nothing of its own that can be run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from memd.belief import polarity
from memd.belief.arguments import find_runnable
from memd.belief.fidelity import adds_nothing, list_objections, rate_fidelity, repeats
from memd.belief.later import (
    corrects_before,
    corrects_itself,
    declines,
    find_contradiction,
    names_alternative,
    replaces_number,
    settles,
    takes_back,
    takes_back_answer,
    weighs,
)
from memd.belief.notes import (
    Backing,
    Proof,
    QuotedNote,
    QuotedPlace,
    Unproved,
    content_of,
    count_shared,
    find_quote,
    has_run,
    has_words,
    says_alike,
    shares_content,
    strip_unseen,
    words_of,
)
from memd.belief.polarity import WORDS
from memd.belief.scope import find_widened, list_measures, list_numbers
from memd.languages import LATIN_LANGUAGES, is_function_word
from memd.text import fold, is_stop_word, one_line, split_sentences, words

QUOTE_CHARACTERS_MAX = 300
_TEXT_CHARACTERS_MAX = 600
"""A longer note says more than a quote can prove."""
FIDELITY_MIN = 0.25
"""The logarithm of the odds from which a note passes for what was said: somewhat above even, because precision comes first."""
_LOOK_ALIKE = "\u0370-\u03ff\u0400-\u052f\u13a0-\u13ff\uff21-\uff5a"
MIXED_WORD = re.compile(
    rf"[^\W\d_]*(?:[A-Za-z][^\W\d_]*[{_LOOK_ALIKE}]|[{_LOOK_ALIKE}][^\W\d_]*[A-Za-z])[^\W\d_]*"
)
"""A word of Latin letters and such as look like them."""
_LATIN = re.compile(r"[A-Za-z]{3}")
"""What the model can read; of other scripts the rules of grammar alone judge."""
_QUESTION_END = re.compile(r"[?？;؟]\s*[\"'”’)]*\s*$")
_TAG_QUESTION = re.compile(r"[,.]\s+[^\W\d_]{2,8}\s*[?？؟]+\s*$")
"""`…, right?` asks nothing."""
_SETTLED_WITHIN = 2
"""Sentences behind a question of which one may answer it."""
_REFUTING = frozenset(("question", "mention", "taken back", "taken back since", "answered no", "other option"))  # fmt: skip
"""Refusals by which the quoted words state nothing that holds for the user."""
_FOREIGN = frozenset(("in an output", "a tool's", "pasted", "about in an output"))
"""Refusals by which the words are those of a page, a file or a tool."""
_TAG_WORDS_MAX = 2
"""Text that ends at most this many words before a question mark is asked, too."""


@dataclass(frozen=True, slots=True)
class Said:
    """Words that the user typed in one event, in parts that nothing else interrupts."""

    event_id: int
    at: int
    own: tuple[str, ...]
    whole: str
    """All of the event's text, with what was pasted."""
    asked: str = ""
    """The question of the client's dialogue that it answers."""
    offered: tuple[tuple[str, str], ...] = ()
    """Options that the user chose from: (label, text)."""
    approves: bool = False
    """Whether the client sent it because the user accepted the plan that it showed."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text of the session's own agent: a message, a dialogue's question with its options, a plan."""

    event_id: int
    at: int
    text: str
    offered: tuple[tuple[str, str], ...] = ()
    """Labelled options in it: (label, text)."""


@dataclass(frozen=True, slots=True)
class SpokenRecord:
    """Speech from a session's events, each list in order of time."""

    said: Sequence[Said] = ()
    spoken: Sequence[Spoken] = ()
    outputs: Sequence[tuple[int, str]] = ()
    """What tools, files and pages returned, and when."""
    edits: Sequence[int] = ()
    """When the agent edited files."""

    def list_own(self, basis: str) -> str:
        """List all that the user typed, and `basis`, a line each."""
        return "\n".join([*(part for one in self.said for part in one.own), basis])

    def outputs_before(self, at: int) -> list[str]:
        """Return the tool outputs from before the user spoke, from which the words may be pasted."""
        return [text for when, text in self.outputs if when <= at]


def _when(one: Said | Spoken) -> tuple[int, int]:
    return one.at, one.event_id


def refuse(name: str, *told: object, **fields: Any) -> Unproved:
    """Say why a note is not proved, in the words of the table."""
    reason, advice = WORDS.rows["refusals"][name]
    return Unproved(
        reason.format(*told),
        advice,
        is_refuted=name in _REFUTING,
        is_foreign=name in _FOREIGN,
        **fields,
    )


def prove(claim: QuotedNote, record: SpokenRecord) -> Proof | Unproved:
    """Prove a note: look its quote up in the record, and compare the note with the words found there."""
    claim = QuotedNote(*map(strip_unseen, (claim.text, claim.quote, claim.about)))
    if not words(claim.quote):
        return refuse("no words")
    if mixed := MIXED_WORD.search(f"{claim.text} {claim.quote}"):
        return refuse("mixed letters", mixed[0])
    if len(claim.text) > _TEXT_CHARACTERS_MAX:
        return refuse("too long")
    found = [
        (said, place)
        for allows_slips in (False, True)
        for said in reversed(record.said)
        if (place := find_quote(claim.quote, said.own, allows_slips=allows_slips))
    ]
    if not found:
        return _explain_missing(claim, record)
    refusals = []
    for said, place in found:
        verdict = _judge(claim, record, said, place)
        if isinstance(verdict, Proof):
            return verdict
        is_answer = said.asked or words(claim.about)
        heard = (
            ""
            if verdict.is_refuted or verdict.is_foreign or is_answer
            else f"{place.sentence} {place.following}"
        )
        refusals.append(replace(verdict, heard=_shorten(heard)))
    return refusals[0]


def _judge(
    claim: QuotedNote, record: SpokenRecord, said: Said, place: QuotedPlace
) -> Proof | Unproved:
    """Judge a note by the sentences that its quote was found in."""
    sentence, before, behind, following = place
    if any(has_run(words_of(sentence), output) for output in record.outputs_before(said.at)):
        return refuse("in an output")
    lead, colon, _ = sentence.partition(":")
    is_mentioned = bool(colon) and polarity.introduces_text(lead, claim.text)
    is_answer = bool(said.asked or words(claim.about))
    _, following, told = polarity.leave_put_off(sentence, following, claim.text)
    limit = polarity.limits(before, behind) or following if is_answer else polarity.limits(before, "")  # fmt: skip
    if is_mentioned or (limit and not polarity.keeps_limit(limit, claim.text)):
        return refuse("mention" if is_mentioned else "limited")
    parts = split_sentences(sentence)
    stated = [one for one in parts if not _is_asked(one, record, said)]
    asked = " ".join(one for one in parts if one not in stated)
    is_asked = WORDS["request"].search(asked) is not None and (
        count_shared(claim.text, asked) > count_shared(claim.text, " ".join(stated))
    )
    is_settled = stated and parts[0] not in stated
    is_unmarked = not is_settled and _asks_by_order(sentence, before, behind)
    is_unmarked = is_unmarked and not any(_is_order(one, record, said) for one in parts)
    is_question = is_unmarked or ((is_asked or not stated) and len(words(behind)) <= _TAG_WORDS_MAX)
    is_corrected = corrects_itself(sentence, behind, claim.text)
    if is_question or is_corrected or is_taken_back(sentence, record, said):
        return refuse("question" if is_question else "taken back")
    sentence = _drop_mentioned_code(" ".join(stated) or sentence, claim.text)
    about = _find_about(claim, record, said)
    if isinstance(about, Unproved):
        return about
    proposal = about.text if about else ""
    basis = "\n".join(filter(None, (sentence, proposal)))
    # The “not” of “shouldn't that fail?” denies nothing.
    meant = " ".join(WORDS["request"].sub(" ", one) if _is_question(one) else one for one in stated)
    meant, _, _ = polarity.leave_put_off(meant or sentence, "", claim.text)
    is_done = _was_done(sentence, record, said)
    is_undone = bool(proposal) and is_taken_back(proposal, record, said)
    refused = (
        (refuse("taken back") if is_undone else None)
        or _check_subject(claim, record, said, sentence, about)
        or _check_choice(claim.text, sentence, said)
        or (
            _check_polarity(claim.text, meant, proposal, is_done=is_done)
            or (None if proposal else _check_widened(claim.text, meant, said))
            if proposal or said.asked
            else _check_fidelity(
                told, place._replace(sentence=meant, following=following), said, is_done=is_done
            )
        )
        or _check_numbers(claim.text, record, basis)
        or _check_runnable(claim.text, record, basis if said.asked or proposal else sentence)
    )
    if refused:
        return refused
    return Proof(
        said.event_id,
        said.at,
        _shorten(sentence),
        _shorten(claim.about) if about else "",
        about.event_id if about else None,
    )


def _is_question(sentence: str) -> bool:
    return bool(_QUESTION_END.search(sentence)) and not _TAG_QUESTION.search(sentence)


def _asks_by_order(sentence: str, before: str, behind: str) -> bool:
    """Return whether the clause of the quoted words, or the one behind it, asks by the order of its words alone."""
    begin = len(before) - len(polarity.CLAUSE_BREAK.split(before)[-1])
    trailing = polarity.CLAUSE_BREAK.split(behind)[1:2]
    return any(WORDS["asks"].match(one.strip()) for one in (sentence[begin:], *trailing))


def is_taken_back(sentence: str, record: SpokenRecord, said: Said) -> bool:
    """Return whether the user took back what he said: with his next words' no, or later, about the same."""
    later = [one for one in record.said if _when(one) > _when(said) and not one.asked]
    rest = said.whole.partition(sentence)[2]
    takes = (takes_back(one, sentence) for one in split_sentences(rest))
    if corrects_before(rest.strip()) or any(takes):
        return True
    is_single = len(list(filter(words, split_sentences(said.whole)))) == 1
    is_answer = is_single or polarity.is_assent(said.whole)
    for number, after in enumerate(later):
        between = [one.text for one in record.spoken if _when(said) < _when(one) < _when(after)]
        answers = bool(between) and _QUESTION_END.search(between[-1]) is not None
        is_next = number == 0 and not answers
        if is_next and is_answer and takes_back_answer(after.whole, sentence):
            return True
        for at, one in enumerate(filter(words, split_sentences(after.whole))):
            is_no = is_next and at == 0 and polarity.begins_with_denial(one)
            shared = content_of(one) & content_of(sentence) if is_no else ()
            if not all(is_function_word(word, LATIN_LANGUAGES) for word in shared):
                return True
            is_new = is_next and replaces_number(one, sentence)
            if is_new or (not _is_question(one) and takes_back(one, sentence)):
                return True
    return False


def _drop_mentioned_code(sentence: str, text: str) -> str:
    """Drop the code of a sentence that its text does not name as such: a string that is spoken of says nothing."""
    return WORDS["code"].sub(
        lambda found: found[0] if has_words(text, words_of(found[1])) else " ", sentence
    )


def _is_asked(sentence: str, record: SpokenRecord, said: Said) -> bool:
    return _is_question(sentence) and not _is_order(sentence, record, said)


def _is_order(sentence: str, record: SpokenRecord, said: Said) -> bool:
    """Return whether a question orders: it says please, it is settled by what he says behind it, or it was done."""
    if WORDS["please"].search(sentence):
        return True
    rest = said.whole.partition(sentence)[2]
    following = list(filter(words, split_sentences(rest)))[:_SETTLED_WITHIN]
    if any(map(settles, following)):
        return True
    has_answered = any(_when(one) > _when(said) for one in record.said)
    if not has_answered or not _was_done(sentence, record, said):
        return False
    is_suggestion = WORDS["suggestion"].search(sentence) is not None
    return bool(WORDS["request"].search(sentence)) or (
        is_suggestion and _was_reported(sentence, record, said)
    )


def _was_reported(sentence: str, record: SpokenRecord, said: Said) -> bool:
    """Return whether the agent said of what was suggested that it did it, or in a word or two that it is done."""
    after = next(one for one in record.said if _when(one) > _when(said))
    told = [one.text for one in record.spoken if _when(said) < _when(one) < _when(after)]
    return any(len(words(one)) <= _TAG_WORDS_MAX or count_shared(one, sentence) for one in told)


def _was_done(sentence: str, record: SpokenRecord, said: Said) -> bool:
    """Return whether files were edited before the user's next words, and neither he nor the agent objected."""
    later = [one for one in record.said if _when(one) > _when(said)]
    end = later[0].at if later else max(record.edits, default=0)
    if not any(said.at <= at <= end for at in record.edits):
        return False
    wanted, rest = WORDS["request"].sub(" ", sentence), said.whole.partition(sentence)[2]
    wanted = WORDS["suggestion"].sub(" ", wanted)
    told = [one.text for one in record.spoken if said.at <= one.at <= end]
    return (
        not polarity.has_negation(next(filter(words, split_sentences(rest)), ""))
        and not find_contradiction(wanted, [one.whole for one in later])
        and not any(weighs(one, wanted) for text in told for one in split_sentences(text))
    )


def _explain_missing(claim: QuotedNote, record: SpokenRecord) -> Unproved:
    wanted = words_of(claim.quote)
    if any(has_words(one.whole, wanted) for one in record.said):
        return refuse("pasted")
    proposed = [one for one in record.spoken if has_words(one.text, wanted)]
    if proposed:
        return _explain_own_words(claim, record, proposed[-1])
    if any(has_words(one, wanted) for _, one in record.outputs):
        seen = Backing(_shorten(claim.quote)) if shares_content(claim.text, claim.quote) else None
        return refuse("a tool's", evidence=seen)
    return refuse("unknown", is_unknown=True)


def _explain_own_words(claim: QuotedNote, record: SpokenRecord, proposed: Spoken) -> Unproved:
    """Explain why the agent's own words are not the user's; that the user let them stand is weaker evidence."""
    since = [one.whole for one in record.said if _when(one) > _when(proposed)]
    turned = find_contradiction(claim.quote, since)
    is_negated = turned or polarity.is_negated_by(claim.quote, claim.text)
    if is_negated or not shares_content(claim.text, claim.quote):
        return refuse("the agent's", ", and he contradicted them" if turned else "")
    if not since:
        return refuse("the agent's", ", and he has not answered yet")
    stood = Backing(_shorten(claim.quote), proposed.event_id, proposed.at, len(since))
    told = f"; they stood for {count_turns(len(since))}"
    return refuse("the agent's", told, evidence=stood)


def count_turns(count: int) -> str:
    """Return `1 turn`, `3 turns`."""
    return f"{count} turn{'' if count == 1 else 's'}"


def _find_about(claim: QuotedNote, record: SpokenRecord, said: Said) -> Spoken | Unproved | None:
    """The agent's text that the quoted answer belongs to: the last before it, or the dialogue's question."""
    if not words(claim.about):
        return None
    wanted = words_of(claim.about)
    if said.asked:
        offered = "\n".join([said.asked, *(f"{label} {text}" for label, text in said.offered)])
        if has_words(offered, wanted):
            return Spoken(said.event_id, said.at, claim.about, said.offered)
    before = [one for one in record.spoken if _when(one) < _when(said)]
    earlier = [one for one in record.said if _when(one) < _when(said)]
    since = _when(earlier[-1]) if earlier else (0, 0)
    turn = [one for one in before if _when(one) > since]
    found = next((one for one in reversed(turn) if has_words(one.text, wanted)), None)
    if found is None and earlier and turn and _answers_himself(claim, earlier[-1], said, turn[-1]):
        found = Spoken(earlier[-1].event_id, earlier[-1].at, claim.about)
    if found is None:
        is_older = any(has_words(one.text, wanted) for one in before)
        unsaid = "not in the agent's messages before his answer"
        where = "not what he answered" if is_older else unsaid
        return refuse("about", where)
    if polarity.is_assent("\n".join(said.own)) and _asks_another(found.text, claim.about):
        return refuse("about", "not what he answered: the message ended with another question")
    outputs = record.outputs_before(said.at)
    if any(has_run(wanted, one) or says_alike(claim.about, one) for one in outputs):
        return refuse("about in an output")
    labels = _read_labels(claim.about)
    options = found.offered or tuple(labels or _read_labels(found.text))
    # “(c) both” names what stands above it.
    is_bare = labels and not any(polarity.name_content(text) for _, text in labels)
    return Spoken(found.event_id, found.at, found.text if is_bare else claim.about, options)


def _answers_himself(claim: QuotedNote, asked: Said, said: Said, between: Spoken) -> bool:
    """Return whether `about` is the user's own question, to which the agent did not say no, and which he now answers."""
    answer = split_sentences(between.text)
    is_own = has_words("\n".join(asked.own), words_of(claim.about))
    is_open = not any(weighs(one, claim.about) for one in answer)
    return is_own and is_open and not polarity.begins_with_denial("\n".join(said.own))


def _asks_another(message: str, about: str) -> bool:
    """Return whether a message ends, in a paragraph of its own, with a question about something else than `about`."""
    paragraph = message.strip().rpartition("\n\n")[2]
    question = split_sentences(paragraph)[-1] if paragraph else ""
    if not _QUESTION_END.search(question) or has_words(paragraph, words_of(about)):
        return False
    idle = polarity.STEERING | polarity.list_folded("modals")
    asked = [token for token in words_of(question) if token not in idle]
    is_other = not content_of(question) & content_of(about) and not all(map(is_stop_word, asked))
    return is_other and polarity.ANAPHORS.isdisjoint(asked)


def _check_subject(
    claim: QuotedNote, record: SpokenRecord, said: Said, sentence: str, about: Spoken | None
) -> Unproved | None:
    """Refuse a note that is about something else than the quote, or than the proposal that it agrees to."""
    proposal = about.text if about else ""
    basis = content_of(f"{sentence}\n{proposal}\n{said.asked}")
    for one in split_sentences(claim.text):
        if (content := content_of(one)) and not content & basis:
            return refuse("another matter", _shorten(one))
    own = f"{said.asked}\n{sentence}"
    is_about = shares_content(claim.text, sentence if about else own)
    if about is None and not said.asked:
        is_about = bool(content_of(claim.text) & basis)  # fidelity says the rest
    return None if is_about else _check_answer(claim, record, said, sentence, about)


def _check_answer(
    claim: QuotedNote, record: SpokenRecord, said: Said, sentence: str, about: Spoken | None
) -> Unproved | None:
    """Refuse a note whose subject stands in the proposal alone, unless the quote agrees to it or chooses it."""
    if about is None:
        return refuse("not about it")
    if not shares_content(claim.text, about.text):
        return refuse("about neither")
    is_choice = _chooses_option(sentence, claim, said, about) or any(
        names_alternative(sentence, one.text, claim.about)
        for one in record.spoken
        if one.event_id == about.event_id
    )
    if said.asked or said.approves or polarity.is_assent(sentence) or is_choice:
        return None
    return refuse("no choice")


def _chooses_option(sentence: str, claim: QuotedNote, said: Said, about: Spoken) -> bool:
    """Return whether a short answer names an option that the text is about."""
    tokens, text = words_of(sentence), claim.text
    offered = said.offered or about.offered
    is_named = _picks_option if not said.offered else lambda label, _: fold(label) in tokens
    chosen = [what for label, what in offered if is_named(label, sentence)]
    if chosen:
        others = [what for _, what in offered if what not in chosen]
        affirmed = " ".join(polarity.list_affirmed(text)) or text
        if not any(map(polarity.name_content, chosen)):
            return True  # “both”: what stands above it
        worth = max(count_shared(affirmed, what) for what in chosen)
        return worth > max((count_shared(affirmed, what) for what in others), default=0)
    return (
        bool(tokens)
        and len(tokens) <= _CHOICE_WORDS_MAX
        and not polarity.has_negation(sentence)
        and shares_content(sentence, about.text)
    )


def _picks_option(label: str, sentence: str) -> bool:
    """Return whether a clause begins or ends with the letter or number of an option: “b, but smaller”, “allow A or C”."""
    wanted = fold(label)
    if (
        len(wanted) == 1
        and wanted != "i"
        and wanted.isalpha()
        and wanted.upper() in words(sentence)[1:]
    ):
        return True  # nothing else in the middle of a sentence is one capital
    for clause in polarity.CLAUSE_BREAK.split(sentence):
        tokens = words_of(clause)
        starts = tokens[:1] == [wanted] and (len(tokens) == 1 or wanted not in _LETTER_WORDS)
        if starts or tokens[-1:] == [wanted]:
            return True
        if any(one.startswith("opt") and wanted == after for one, after in pairwise(tokens)):
            return True
    return False


_LETTER_WORDS = frozenset("aeioyu")
"""Letters that are words: “a folder would do” chooses no option."""
_CHOICE_WORDS_MAX = 12


def _read_labels(about: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in WORDS["label"].finditer(about)]


def _check_polarity(text: str, sentence: str, proposal: str, *, is_done: bool) -> Unproved | None:
    if polarity.is_negated_by(sentence, text):
        return refuse("opposite")
    if (
        proposal
        and not shares_content(text, sentence)
        and polarity.has_negation(sentence)
        and not polarity.has_negation(text)
    ):
        return refuse("answered no")
    if proposal and declines(sentence) and not polarity.has_negation(text):
        return refuse("answered no")
    if polarity.find_lost_condition(sentence, text):
        return refuse("condition")
    if lost := polarity.find_lost_frame(sentence, text, is_done=is_done):
        return refuse("frame", lost)
    return None


def _check_widened(text: str, sentence: str, said: Said) -> Unproved | None:
    """Refuse what turns an order of the words of a dialogue's answer round, or says of all what it says of one."""
    if polarity.turns_order(sentence, text):
        return refuse("turned order")
    widened = find_widened(sentence, text, "\n".join(said.own))
    return refuse("widened", _shorten(widened)) if widened else None


def _check_fidelity(text: str, place: QuotedPlace, said: Said, *, is_done: bool) -> Unproved | None:
    """Refuse a text that most likely does not say what its quote says.

    If it has no other words, the rules of grammar judge; else a model that knows what they object to.
    """
    # A time that nobody knows yet may stand anywhere.
    place = place._replace(sentence=WORDS["at some time"].sub(" ", place.sentence))
    text = WORDS["at some time"].sub(" ", text)
    own = said.whole
    objections = list_objections(text, place, own, is_done=is_done)
    is_plain = adds_nothing(text, place) or not _LATIN.search(text)
    if is_plain and (objections or repeats(text, place)):
        is_refused = bool(objections)
    else:
        is_refused = rate_fidelity(text, place, own, objections) < FIDELITY_MIN
    if not is_refused:
        return None
    name = next(iter(objections), "otherwise")
    return refuse(name, _shorten(objections.get(name, "")))


def _check_choice(text: str, sentence: str, said: Said) -> Unproved | None:
    """Refuse a note that is about an option of the dialogue that the user did not choose."""
    labels = {fold(label): f"{label} {what}" for label, what in said.offered}
    chosen = labels.get(fold(sentence))
    if chosen is None:
        return None
    own = content_of(chosen)
    worth = len(own & content_of(text))
    for label, other in labels.items():
        theirs = content_of(other) - own - content_of(said.asked)
        if label != fold(sentence) and len(theirs & content_of(text)) > worth:
            return refuse("other option")
    return None


def _check_numbers(text: str, record: SpokenRecord, basis: str) -> Unproved | None:
    """Refuse a number in the place of the one that the user gave."""
    own, said, told = map(list_numbers, (record.list_own(basis), basis, text))
    if told - own and said - told:
        return refuse("number", min(told - own))
    measured = list_measures(basis)
    for number, units in list_measures(text).items():
        if units.isdisjoint(measured.get(number, units)):
            return refuse("number", f"{number} of that unit")
    return None


def _check_runnable(text: str, record: SpokenRecord, basis: str) -> Unproved | None:
    """Refuse what can be run, fetched or installed unless the user named it in this session."""
    own = fold(record.list_own(basis))
    own_words = set(words_of(own))
    for thing in find_runnable(text):
        folded = fold(thing)
        if folded in own or (set(words_of(thing)) <= own_words and len(words(thing)) == 1):
            continue
        return refuse("runnable", thing)
    return None


def _shorten(text: str) -> str:
    return one_line(text, QUOTE_CHARACTERS_MAX)
