"""A small model of how faithful a note is to the user's words that it quotes. Pure.

Nobody can list how a summary distorts what was said. The model, a logistic regression, was fitted on pairs of a prompt and
a fair or a false note of it, whose writers knew nothing of memd (`scripts/train-notes`). It sees which words a note adds,
drops and keeps, in what order, what only one side denies, in what mood both speak, and what the rules of grammar object to.
There are two sets of weights: of English, and of all other languages together, which weighs no single word.
"""

import math
import re
from collections.abc import Collection, Sequence

from memd.belief import polarity, scope
from memd.belief.notes import QuotedPlace, words_of
from memd.belief.polarity import WORDS, list_folded
from memd.languages import detect_text_languages
from memd.patterns import read_weights, weigh
from memd.text import is_stop_word, split_sentences, stem, words

_DUTIES = list_folded("modals") | list_folded("duties")
_COPULAS = list_folded("copulas") | {"be"}
_SUPPOSITIONS = list_folded("suppositions") | list_folded("hedges")
_FIRST_PERSON = list_folded("first person")
_IRREGULAR = {
    form: verb for verb, forms in WORDS.rows["irregular"].items() for form in forms.split()
}
_PERSONS = frozenset(("user", "agent"))
_JOINTS = frozenset(words_of(WORDS.rows["rule words"]["followers"]))
_JOINT = re.compile(r";|, a ")
"""What joins statements; in Polish, Czech and Slovak “and” is “a” behind a comma."""
_PERFECT = frozenset(("has", "have", "had", "been", "already", "done", "now"))
_BEGINNING, _NAMED_WITHIN = 8, 4
"""Words of a sentence in which a supposition frames it, and of a note in which it names the user."""
_ALIKE = 0.3
"""The share of their threes of letters from which one word is likely a form of another."""
_NEAR = 3
"""Content words on either side that belong to a word."""
_LEFT_OUT_MAX = 1 / 3
_TOLD_SHARE = 0.6
_NUMBER = re.compile(r"\d+")
_COUNT_MAX = 2


def rate_fidelity(text: str, place: QuotedPlace, own: str, objections: Collection[str]) -> float:
    """The logarithm of the odds that a note says what its quote says; `own`: all that the user typed.

    `objections`: what `list_objections` names.
    """
    part = "english" if is_english(text, own) else "other"
    features = measure_note(text, place, own, objections)
    return weigh(read_weights("memd.belief", "fidelity.json", part), features)


def is_english(text: str, own: str) -> bool:
    """Return whether nothing tells that a note, and what the user typed, are in another language than English."""
    return not detect_text_languages([word.lower() for word in words(f"{own} {text}")])


def adds_nothing(text: str, place: QuotedPlace) -> bool:
    """Return whether a note has no other words than forms of those of its sentence."""
    ours, theirs = (_list_content(words_of(side)) for side in (place.sentence, text))
    dropped = [key for key in ours if key not in theirs]
    new = (key for key in theirs if key not in ours)
    return all(any(_liken(key, other) >= _ALIKE for other in dropped) for key in new)


def repeats(text: str, place: QuotedPlace) -> bool:
    """Return whether a note that adds nothing keeps the order of its sentence, and most of each clause that it tells."""
    ours, theirs = (_list_content(words_of(side)) for side in (place.sentence, text))
    kept = [key for key in theirs if key in ours]
    if _count_in_order(kept, ours) < len(kept):
        return False
    clauses = [
        set(_list_content(words_of(one))) for one in polarity.CLAUSE_BREAK.split(place.sentence)
    ]
    told = set[str]().union(*(one for one in clauses if not one.isdisjoint(kept)))
    return bool(told) and len(told) - len(set(theirs)) <= _LEFT_OUT_MAX * len(told)


def tells_whole(text: str, sentence: str) -> bool:
    """Return whether a note says all of its sentence, in other words or a translation, as far as form tells."""
    if is_english(text, "") == is_english(sentence, ""):
        ours, theirs = (set(_list_content(words_of(side))) for side in (sentence, text))
        return len(ours & theirs) >= _TOLD_SHARE * max(len(ours), len(theirs))
    said, told = words_of(sentence), words_of(text)
    joints, others = (
        sum(one in _JOINTS for one in tokens) + len(_JOINT.findall(side))
        for tokens, side in ((said, sentence), (told, text))
    )
    numbers, told_numbers = (set(_NUMBER.findall(side)) for side in (sentence, text))
    return joints <= others and numbers <= told_numbers and len(said) <= 2 * len(told)


def measure_note(
    text: str, place: QuotedPlace, own: str, objections: Collection[str]
) -> dict[str, float]:
    """The features of a note beside the sentence that its quote stands in: shares, logarithms of counts, 0 or 1.

    `+word` is one that nobody typed, `-word` one of the sentence that is gone, `=word` a word of grammar that is kept.
    """
    sentence, told = words_of(place.sentence), words_of(text)
    typed = set(map(stem, words_of(own))) | set(map(stem, sentence))
    features = {
        **_compare_words(sentence, told, typed),
        **_compare_denials(place.sentence, text),
        **_compare_moods(place.sentence, sentence, text, told),
        **{f"object {name}": 1.0 for name in objections},
        "cut": float(bool(words(place.before) or words(place.behind))),
        "followed": float(bool(words(own.partition(place.sentence)[2]))),
    }
    kept, ours = set(map(stem, told)), set(map(stem, sentence))
    for word in told:
        key = stem(word)
        if key not in typed:
            features[f"+{key}"] = 1.0
        elif key in ours and (is_stop_word(word) or polarity.is_negation(word)):
            features[f"={key}"] = 1.0
    features.update({f"-{key}": 1.0 for key in ours - kept})
    return features


def list_objections(
    text: str, place: QuotedPlace, own: str, *, is_done: bool = False
) -> dict[str, str]:
    """List the objections of grammar to a note: the name of the refusal → what it names.

    `is_done`: what the sentence wishes was then done, and so decided.
    """
    sentence = place.sentence
    limit = polarity.limits(place.before, place.behind) or place.following
    found = {
        "limited": limit if limit and not polarity.keeps_limit(limit, text) else "",
        "opposite": sentence if polarity.is_negated_by(sentence, text) else "",
        "condition": " ".join(polarity.find_lost_condition(sentence, text)),
        "frame": polarity.find_lost_frame(sentence, text, is_done=is_done),
        "turned order": sentence if polarity.turns_order(sentence, text) else "",
        "widened": scope.find_widened(sentence, text, own)
        or scope.find_lost_scope(sentence, place.before, place.behind, text),
        "swapped": scope.find_swapped(sentence, text, f"{own}\n{sentence}"),
    }
    return {name: what for name, what in found.items() if what}


def _compare_words(
    sentence: Sequence[str], told: Sequence[str], typed: set[str]
) -> dict[str, float]:
    ours, theirs = (_list_content(side) for side in (sentence, told))
    new = [key for key in theirs if key not in typed]
    elsewhere = [key for key in theirs if key in typed and key not in ours]
    dropped = [key for key in ours if key not in theirs]
    once = [key for key in theirs if theirs.count(key) == ours.count(key) == 1]
    turned = len(once) - _count_in_order(once, [key for key in ours if key in once])
    likest = [max((_liken(key, other) for other in dropped), default=0.0) for key in new]
    alike = sum(one >= _ALIKE for one in likest)
    most, least = max(1, len(theirs)), max(1, len(ours))
    numbers = [set(_NUMBER.findall(" ".join(side))) for side in (sentence, told)]
    return {
        "new": math.log1p(len(new)),
        "new share": len(new) / most,
        "forms of dropped": alike / most,
        "unlike dropped": (len(new) - alike) / most,
        "none new": float(not new),
        "elsewhere": math.log1p(len(elsewhere)),
        "elsewhere share": len(elsewhere) / most,
        "dropped": math.log1p(len(dropped)),
        "dropped share": len(dropped) / least,
        "one for another": float(len(new) == len(dropped) == 1),
        "same words": float(not new and not dropped),
        "shared": math.log1p(len(once)),
        "turned": turned / max(1, len(once)),
        "any turned": float(turned > 0),
        "bound otherwise": _count_rebound(ours, theirs, once) / max(1, len(once)),
        "longer": math.log((len(told) + 1) / (len(sentence) + 1)),
        "length": math.log1p(len(told)),
        "quote length": math.log1p(len(sentence)),
        "new numbers": float(min(_COUNT_MAX, len({*numbers[1]} - typed - numbers[0]))),
        "lost numbers": float(min(_COUNT_MAX, len(numbers[0] - numbers[1]))),
    }


def _list_content(tokens: Sequence[str]) -> list[str]:
    """The stems of the content of these words; who speaks and who is spoken to are no content."""
    named = (word for word in tokens if word not in _PERSONS)
    content = (word for word in named if word.isdigit() or not is_stop_word(word))
    return [stem(_IRREGULAR.get(word, word)) for word in content]


def _count_in_order(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the words of the longest subsequence that two sequences have in common."""
    row = [0] * (len(other) + 1)
    for key in one:
        before = row[:]
        for at, there in enumerate(other):
            row[at + 1] = before[at] + 1 if key == there else max(before[at + 1], row[at])
    return row[-1]


def _liken(one: str, other: str) -> float:
    mine, theirs = ({f"^{key}$"[at : at + 3] for at in range(len(key))} for key in (one, other))
    return len(mine & theirs) / len(mine | theirs)


def _count_rebound(ours: Sequence[str], theirs: Sequence[str], shared: Sequence[str]) -> int:
    """Count the shared words that stand beside none of those that they stood beside."""
    found = 0
    for key in shared:
        here, there = (_list_near(side, side.index(key)) for side in (ours, theirs))
        beside = there.intersection(shared)
        found += bool(beside) and beside.isdisjoint(here)
    return found


def _list_near(keys: Sequence[str], at: int) -> set[str]:
    return {*keys[max(0, at - _NEAR) : at], *keys[at + 1 : at + 1 + _NEAR]}


def _compare_denials(sentence: str, text: str) -> dict[str, float]:
    (denied, plain), (no, yes) = map(_split_denied, (sentence, text))
    negations = [sum(map(polarity.is_negation, words(one))) for one in (sentence, text)]
    most = max(1, len(no | yes))
    return {
        "denied and told": len(denied & yes) / most,
        "told and denied": len(plain & no) / most,
        "both denied": len(denied & no) / most,
        "denied and dropped": len(denied - no - yes) / max(1, len(denied | plain)),
        "more negations": float(min(_COUNT_MAX, max(0, negations[1] - negations[0]))),
        "fewer negations": float(min(_COUNT_MAX, max(0, negations[0] - negations[1]))),
        "negations": float(min(_COUNT_MAX, negations[0])),
        "negations told": float(min(_COUNT_MAX, negations[1])),
        "odd negations": float(sum(negations) % 2),
    }


def _split_denied(text: str) -> tuple[set[str], set[str]]:
    """Return the content of a text (behind a negation of its clause, else)."""
    denied, plain = set[str](), set[str]()
    for clause in WORDS["turn"].split(text):
        has_begun = False
        for word in words(clause):
            if polarity.is_negation(word):
                has_begun = True
            elif not is_stop_word(word):
                (denied if has_begun else plain).update(map(stem, words_of(word)))
    return denied - plain, plain - denied


def _compare_moods(
    sentence: str, tokens: Sequence[str], text: str, told: Sequence[str]
) -> dict[str, float]:
    mood, form = _find_mood(sentence, tokens), _find_form(told)
    return {
        f"mood {mood}": 1.0,
        f"form {form}": 1.0,
        f"{mood} as {form}": 1.0,
        "sentences": math.log1p(len(split_sentences(text))),
    }


def _find_mood(sentence: str, tokens: Sequence[str]) -> str:
    if "?" in sentence:
        return "asks"
    if WORDS["please"].search(sentence) or WORDS["request"].search(sentence):
        return "begs"
    if not _SUPPOSITIONS.isdisjoint(tokens[:_BEGINNING]):
        return "supposes"
    if not _FIRST_PERSON.isdisjoint(tokens[:1]):
        return "speaks of himself"
    return _find_verb(tokens)


def _find_form(tokens: Sequence[str]) -> str:
    if "user" in tokens[:_NAMED_WITHIN]:
        return "of the user"
    return "done" if not _PERFECT.isdisjoint(tokens) else _find_verb(tokens)


def _find_verb(tokens: Sequence[str]) -> str:
    if not _DUTIES.isdisjoint(tokens):
        return "must"
    return "is" if not _COPULAS.isdisjoint(tokens) else "does"
