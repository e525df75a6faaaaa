"""The effect of later words on earlier ones: they take back, contradict, settle, or weigh. Pure."""

import itertools
import re
from collections.abc import Sequence

from memd.belief import polarity
from memd.belief.polarity import WORDS, list_folded
from memd.languages import LATIN_LANGUAGES, is_function_word
from memd.text import content_stems, fold, is_stop_word, split_sentences, stem, words

_ABOUT_STEMS_MIN = 2
_ORDINAL_WORDS_MAX = 4
_CORRECTION_MAX = 5
_BEFORE_ORDER = (
    list_folded("interjections")
    | list_folded("before a choice")
    | list_folded("fillers")
    | {"i", "we", "you", "please"}
)
_MOVING = frozenset(
    {"go", "put", "switch", "change", "turn", "bring", "take", "set", "move", "roll", "get"}
)
_CHANGING = frozenset(
    map(
        stem,
        (
            *WORDS.list_words("change verbs"),
            *WORDS.list_words("modals"),
            *WORDS.list_words("corrections"),
            "be",
            "go",
        ),
    )
)
_TAKING_BACK = list_folded("verbs that take back")
_FIRST_PERSON, _STAYING = list_folded("first person"), list_folded("staying verbs")
_STAYING_WITH = frozenset(
    {"with", "on", "at", "to", "bei", "auf", "sur", "à", "con", "en", "com", "bij", "przy"}
)
_CORRECTIONS = list_folded("corrections") | list_folded("bare noes") | {"stop"}
TAKING_BACK_WITHIN = 2
"""Sentences of the message after an answer that may take it back."""
_DISREGARDING = _TAKING_BACK | list_folded("verbs that disregard")
_DEMONSTRATIVES, _WRONG = list_folded("demonstratives"), list_folded("judged wrong")
_WAS = list_folded("was")
_COPULAS = list_folded("copulas") | _WAS | {"s", "should", "re"}
_AT_LEAST = frozenset({"at", "least"})
_TELLS = list_folded("third person of say")
_OR, _HEDGES = list_folded("or"), list_folded("hedges")
_CONDITIONS, _LIMITS = list_folded("conditions"), list_folded("limiting")
_EXCEPTING = list_folded("excepting") | {"unless", "until"}
_ADVERSATIVES, _FREQUENCIES = list_folded("adversatives"), list_folded("frequencies")
_ANSWERS = list_folded("assents") | list_folded("corrections") | _BEFORE_ORDER
_APOSTROPHE, _NOT = re.compile(r"['’]"), re.compile(r"n['’]t\Z")
_NO = list_folded("bare noes") | {"no", "non", "nein", "nao", "nie", "нет"}
_CAN_ENDINGS = ("able", "ible", "bar", "abile", "avel", "optional")
_SUBJECT_WITHIN, _CLAUSES_READ, _ALTERNATIVE_WORDS_MAX = 4, 2, 2
_SETTLING = list_folded("settling verbs") | {"let's"}
_PRAISING = frozenset(map(stem, list_folded("praise") | list_folded("assents") | polarity.STEERING))
_NUMBER_WORD = re.compile(r"\d+(?:[.,]\d+)*\Z")


def takes_back(later: str, sentence: str) -> bool:
    """Return whether a later sentence takes back an earlier one: it undoes it, denies it, or gives its number anew."""
    said, mine = frozenset(content_stems(sentence)), frozenset(content_stems(later))
    shared = said & mine
    clauses = [clause for clause in polarity.CLAUSE_BREAK.split(later) if words(clause)]
    denies = any(
        len(words(one)) == 1 and polarity.is_negation(words(one)[0]) for one in clauses[1:]
    )
    undoes = denies or any(map(_undoes, clauses)) or WORDS["another mind"].search(later) is not None
    if shared and undoes:
        return True
    if (
        len(shared) > 1
        and polarity.has_negation(later)
        and polarity.is_negated_by(sentence, later)
        and _orders(later)
    ):
        return True
    return _gives_anew(said, mine, later)


def may_take_back(following: str) -> bool:
    """Return whether a message has what every one has that takes back the answer before it: a no, a correction, a verb."""
    return _turns(following) or any(
        fold(word) in _TAKING_BACK | _MOVING for word in words(following)
    )


def takes_back_answer(following: str, proposal: str) -> bool:
    """Return whether the message after an answer takes that back.

    It undoes what it does not name, “forget it”; or it begins with a no or a correction, and then stays with something,
    “no, we stay with make”, or denies what was proposed, “stop, not Zig”.
    """
    sentences = [one for one in split_sentences(following) if words(one)][:TAKING_BACK_WITHIN]
    clauses = [one for text in sentences for one in polarity.CLAUSE_BREAK.split(text) if words(one)]
    is_turned = any(map(_turns, itertools.takewhile(_only_turns, clauses)))
    idle = itertools.takewhile(lambda one: not _names_anything(one), clauses)
    # “The deploy hangs, cancel it” cancels the deploy.
    if any(_undoes(one) and not _names_anything(one) for one in (clauses if is_turned else idle)):
        return True
    about = frozenset(content_stems(proposal))
    return is_turned and any(_stays(one) or _denies_only(one, about) for one in clauses[1:])


def takes_back_that(following: str, said: str) -> bool:
    """Return whether a message surely takes back the words before it: as an answer does, or naming nothing else than they do."""
    sentences = [one for one in split_sentences(following) if words(one)][:TAKING_BACK_WITHIN]
    return takes_back_answer(following, said) or any(
        takes_back(one, said) and not _names_other(one, said) for one in sentences
    )


def _names_other(later: str, said: str) -> bool:
    """Return whether a sentence that takes something back names what an earlier one does not: “stop numbering the photos”."""
    idle = _DISREGARDING | _STAYING | _MOVING | _BEFORE_ORDER | _CORRECTIONS
    idle |= polarity.ANAPHORS | polarity.STEERING
    named = [
        one
        for one in words(later)
        if not (fold(one) in idle or polarity.is_negation(one) or is_stop_word(one))
        and not is_function_word(fold(one), LATIN_LANGUAGES)
    ]
    return not frozenset(content_stems(" ".join(named))) - _CHANGING <= frozenset(
        content_stems(said)
    )


def _only_turns(clause: str) -> bool:
    """Return whether a clause says no more than no or another turn: “hm”, “wait, no”, “on second thought”."""
    tokens = [word for word in words(clause) if not polarity.is_negation(word)]
    return {fold(word) for word in tokens} <= _CORRECTIONS | _BEFORE_ORDER or WORDS[
        "another mind"
    ].search(clause) is not None


def _turns(clause: str) -> bool:
    return (
        any(polarity.is_negation(word) or fold(word) in _CORRECTIONS for word in words(clause))
        or WORDS["another mind"].search(clause) is not None
    )


def _names_anything(clause: str) -> bool:
    """Return whether a clause has a word of content behind its verb: “undo that please” has none."""
    tokens = [fold(word) for word in words(clause)]
    idle = _TAKING_BACK | _STAYING | _BEFORE_ORDER | polarity.STEERING | polarity.ANAPHORS | _MOVING
    idle |= {"back"}
    return any(
        not (one in idle or is_stop_word(one) or is_function_word(one, LATIN_LANGUAGES))
        for one in tokens
    )


def _stays(clause: str) -> bool:
    """Return whether a clause leaves something as it was: “leave it”, “we stay with make”."""
    tokens = [fold(word) for word in words(clause)]
    at = next((n for n, one in enumerate(tokens) if one in _STAYING), len(tokens))
    is_verb = all(one in _BEFORE_ORDER | _FIRST_PERSON for one in tokens[:at])
    with_what = tokens[at + 1 : at + 2]
    keeps = bool(with_what) and with_what[0] in _STAYING_WITH
    return is_verb and at < len(tokens) and (keeps or not _names_anything(clause))


def _denies_only(clause: str, about: frozenset[str]) -> bool:
    """Return whether a clause only denies what is named of something: “not Zig”."""
    own = frozenset(content_stems(clause))
    named = own - {stem(fold(one)) for one in words(clause) if polarity.is_negation(one)}
    return polarity.begins_with_denial(clause) and bool(named) and named <= about


def _undoes(clause: str) -> bool:
    """Return whether a clause begins with a verb that takes back: “forget the cache”, “go back to …”, or is a bare no."""
    tokens = [fold(word) for word in words(clause)]
    if WORDS["never mind"].fullmatch(clause):
        return True
    at = next((n for n, one in enumerate(tokens) if one not in _BEFORE_ORDER), len(tokens))
    first, rest = tokens[at : at + 1], tokens[at + 1 : at + 4]
    is_back = first and first[0] in _MOVING and "back" in rest
    return bool(first) and (first[0] in _TAKING_BACK or bool(is_back))


def _orders(text: str) -> bool:
    """Return whether a sentence has a clause that begins with a denial: “do not …”, “never …”."""
    return any(
        polarity.begins_with_denial(one) or _starts_denied(one)
        for one in polarity.CLAUSE_BREAK.split(text)
    )


def _starts_denied(clause: str) -> bool:
    tokens = [word for word in words(clause) if fold(word) not in _BEFORE_ORDER]
    return any(map(polarity.is_negation, tokens[:2])) and not is_stop_word(tokens[-1])


def _gives_anew(said: frozenset[str], mine: frozenset[str], later: str) -> bool:
    """Return whether a short sentence gives another number to what an earlier one gave one: “raise the cap to 400”."""
    was, now = ({one for one in side if _NUMBER_WORD.match(one)} for side in (said, mine))
    named = {one for one in mine - now if one not in _CHANGING}
    turns = WORDS["instead"].search(later) is not None
    is_about = len(named & said) > turns and len(named - said) <= turns
    return (
        bool(was and now) and was.isdisjoint(now) and is_about and not later.rstrip().endswith("?")
    )


def replaces_number(later: str, sentence: str) -> bool:
    """Return whether an answer is a bare number other than the one of a sentence: “too long. 6.”."""
    was = {one for one in words(sentence) if _NUMBER_WORD.match(one)}
    found = words(later)
    return (
        bool(was) and len(found) == 1 and bool(_NUMBER_WORD.match(found[0])) and found[0] not in was
    )


def settles(following: str) -> bool:
    """Return whether a sentence behind a question answers it with an order: “do that first”, “go ahead”, “let's”."""
    clauses = [one for one in polarity.CLAUSE_BREAK.split(following) if words(one)]
    first = [fold(word) for word in words(clauses[0])] if clauses else []
    if WORDS["please"].search(following) and not polarity.ANAPHORS.isdisjoint(first):
        return not following.rstrip().endswith("?")
    is_order = first[:2] == ["go", "ahead"] or not _SETTLING.isdisjoint(first[:1])
    takes_up = is_order and not polarity.ANAPHORS.isdisjoint(first)
    return takes_up or polarity.is_assent(clauses[0] if clauses else "")


def corrects_before(behind: str) -> bool:
    """Return whether what stands behind a sentence, as “I mean Monday”, corrects a word of it and is no sentence of its own."""
    first = next(iter(split_sentences(behind)), "")
    is_short = len(words(first)) <= _CORRECTION_MAX
    return is_short and WORDS["corrects itself"].match(behind) is not None


def declines(answer: str) -> bool:
    """Return whether a clause of an answer orders not to do what was just said: “let's not do that now”."""
    for clause in polarity.CLAUSE_BREAK.split(answer):
        tokens = words(clause)
        plain = " ".join(one for one in tokens if not polarity.is_negation(one))
        if len(plain.split()) < len(tokens) and _orders_that(plain):
            return True
    return False


def _orders_that(clause: str) -> bool:
    """Return whether a clause orders what was just said, and names nothing: “let's do exactly that”, “machen wir so”."""
    tokens = list(itertools.dropwhile(_BEFORE_ORDER.__contains__, map(fold, words(clause))))
    return (
        not _SETTLING.isdisjoint(tokens[:1])
        and not polarity.ANAPHORS.isdisjoint(tokens)
        and polarity.name_content(clause) <= _PRAISING
    )


def corrects_itself(sentence: str, behind: str, text: str) -> bool:
    """Return whether a text says what its sentence corrects in the middle: “nineteen, no wait, seven”."""
    if WORDS["corrects itself"].search(behind):
        return True
    pieces = WORDS["corrects itself"].split(sentence)
    first, last = (frozenset(content_stems(one)) for one in (" ".join(pieces[:-1]), pieces[-1]))
    told = frozenset(content_stems(text))
    return len(pieces) > 1 and len((first - last) & told) > len((last - first) & told)


def withdraws(following: str, sentence: str) -> bool:
    """Return whether a sentence takes back or doubts the one right before it, of the same speaker in the same message.

    It begins with a bare no, corrects itself, asks about what was said, offers something else, says what “that” was, or limits it.
    """
    clauses = [clause for clause in polarity.CLAUSE_BREAK.split(following) if words(clause)]
    tokens, head = _read_head(following)
    return bool(head) and (
        WORDS["corrects itself"].search(following) is not None
        or takes_back(following, sentence)
        or any(map(_forgets, clauses))
        or any(map(_says_only_no, clauses[:_CLAUSES_READ]))
        or _limits(tokens, head, is_whole=len(clauses) == 1)
        or _offers(head, clauses[0], is_asked=following.rstrip().endswith("?"))
        or _speaks_of_that(head, following)
        or head[0] in _TELLS
    )


def _read_head(text: str) -> tuple[list[str], list[str]]:
    """Return the folded words of a sentence, elisions apart; and the same without what only leads to it: “well, actually”."""
    folded = (_NOT.sub("", fold(word)) for word in words(text))
    tokens = [part for one in folded for part in _APOSTROPHE.split(one) if part]
    begins = next((n for n, one in enumerate(tokens) if one not in _BEFORE_ORDER), 0)
    return tokens, tokens[begins:]


def _forgets(clause: str) -> bool:
    """Return whether a clause takes back, and names nothing: “forget it”, “ignore that”."""
    told = [one for one in map(fold, words(clause)) if one not in _BEFORE_ORDER]
    named = [word for word in told[1:] if word not in polarity.ANAPHORS]
    return bool(told) and told[0] in _DISREGARDING and not polarity.name_content(" ".join(named))


def _says_only_no(clause: str) -> bool:
    """Return whether a clause denies or doubts, and says nothing else: “no, sorry”, “not sure”, “maybe”."""
    tokens = [fold(word) for word in words(clause)]
    if tokens[-1] in _NO and len(tokens) <= _CLAUSES_READ:  # “actually no”
        return True
    open_words = polarity.NEGATION_WORDS | _HEDGES
    return not open_words.isdisjoint(tokens) and all(
        one in open_words | _ANSWERS or is_stop_word(one) for one in tokens
    )


def _limits(tokens: Sequence[str], head: Sequence[str], *, is_whole: bool) -> bool:
    """Return whether a sentence only limits what was said: “only if …”, “but not on Fridays”."""
    is_condition = head[0] in _EXCEPTING or (
        head[0] in _LIMITS and not _CONDITIONS.isdisjoint(head[1:2])
    )
    denied = tokens[1] if tokens[0] in _ADVERSATIVES and len(tokens) > 1 else ""
    is_exception = polarity.is_negation(denied) and denied not in _FREQUENCIES
    return is_exception or (is_condition and is_whole)


def _offers(head: Sequence[str], clause: str, *, is_asked: bool) -> bool:
    """Return whether a sentence offers something else instead: “or was it green?”, “or 12”."""
    is_short = len(words(clause)) - 1 <= _ALTERNATIVE_WORDS_MAX
    return head[0] in _OR and (is_short or is_asked or not _HEDGES.isdisjoint(head))


def _find_that(head: Sequence[str]) -> int | None:
    """Find the “that” which is the subject of a sentence: “that was …”, “is that …?”, and not “the rule that …”."""
    before = itertools.takewhile(lambda one: one not in _DEMONSTRATIVES, head)
    ahead = list(itertools.islice(before, _SUBJECT_WITHIN))
    return (
        len(ahead)
        if len(ahead) < len(head) and _COPULAS.union(_OR, _AT_LEAST).issuperset(ahead)
        else None
    )


def begins_with_that(text: str) -> bool:
    """Return whether a sentence has as its subject what was just said: “that's what …”."""
    return _find_that(_read_head(text)[1]) is not None


def _speaks_of_that(head: Sequence[str], following: str) -> bool:
    """Return whether a sentence asks whether that is so, or says that it was, or is not, or is wrong."""
    at = _find_that(head)
    if at is None:
        return False
    near, behind = head[max(0, at - 1) : at + 3], head[at + 1 : at + 4]
    verbs = _COPULAS.intersection(near)
    if following.rstrip().endswith("?"):
        return at <= 1 and bool(verbs)
    is_end = not (polarity.ANAPHORS | {"s"}).isdisjoint(behind)  # “that was all”
    is_over = not _WAS.isdisjoint(near) and not is_end
    is_firm = any(one.endswith(_CAN_ENDINGS) for one in head)  # “that is not negotiable”
    is_denied = (polarity.has_negation(following) and not is_firm) or not _WRONG.isdisjoint(head)
    return bool(verbs) and (is_over or is_denied)


def names_alternative(answer: str, message: str, about: str) -> bool:
    """Return whether an answer names by its place the one of two alternatives that `about` quotes: “the latter”."""
    tokens = [fold(word) for word in words(answer)]
    places = {WORDS.rows["ordinals"][one] for one in tokens if one in WORDS.rows["ordinals"]}
    if (
        len(places) != 1
        or len(tokens) > _ORDINAL_WORDS_MAX
        or any(map(polarity.is_negation, tokens))
    ):
        return False
    wanted = frozenset(content_stems(about))
    for sentence in split_sentences(message):
        parts = [frozenset(content_stems(one)) & wanted for one in WORDS["or"].split(sentence)]
        (place,) = places
        if len(parts) > 1 and -len(parts) <= int(place) < len(parts):
            chosen = parts[int(place)]
            return len(chosen) > max(len(one) for one in parts if one is not chosen)
    return False


def weighs(told: str, proposal: str) -> bool:
    """Return whether the agent's sentence argues about a proposal instead of telling that it is done."""
    about = frozenset(content_stems(proposal)) & frozenset(content_stems(told))
    tokens = [fold(word) for word in words(told)]
    is_open = any(map(polarity.is_irreal, tokens)) and polarity.has_negation(told)
    first = next((one for one in polarity.CLAUSE_BREAK.split(told) if words(one)), "")
    return polarity.denies_nothing_named(first) or (
        bool(about) and (is_open or polarity.is_negated_by(proposal, told))
    )


def find_contradiction(proposal: str, prompts: Sequence[str]) -> str:
    """Return what the user said against a proposal in what followed it: the first answer denies, or any takes it up and turns it."""
    for number, prompt in enumerate(prompts):
        sentences = [one for one in split_sentences(prompt) if words(one)]
        for at, sentence in enumerate(sentences):
            is_answer = number == 0 and at == 0
            about = (
                len(frozenset(content_stems(sentence)) & frozenset(content_stems(proposal)))
                >= _ABOUT_STEMS_MIN
            )
            denies = polarity.has_negation(sentence) != polarity.has_negation(proposal)
            if is_answer and polarity.begins_with_denial(sentence):
                return sentence
            if (about and denies) or (about and polarity.is_negated_by(proposal, sentence)):
                return sentence
    return ""
