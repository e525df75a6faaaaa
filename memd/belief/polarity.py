"""Polarity, condition, frame and assent of a statement, by the function words of its language. Pure.

These are closed classes of words (negations, conditions, yes, determiners, verbs of saying), given for each language in
`words.toml`; nothing here lists what people may mean.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from memd.patterns import Table
from memd.text import content_stems, fold, is_stop_word, stem, words

WORDS = Table("belief/words.toml")


def list_folded(name: str) -> frozenset[str]:
    """Return the words of a list of `words.toml`, folded."""
    return frozenset(map(fold, WORDS.list_words(name)))


_ACCENTED = frozenset({"só"})
"""Without its accent it is an English word that denies nothing."""
_NEGATIONS = WORDS.rows["negations"]
NEGATION_WORDS = frozenset(
    fold(word) for text in _NEGATIONS.values() for word in text.split() if word not in _ACCENTED
)
_NEGATION_STEMS = frozenset(map(stem, _NEGATIONS["english"].split()))
_LIMITS, _CONDITIONS = list_folded("limiting"), list_folded("conditions")
_FIRST_PERSON, _THEIRS = list_folded("first person"), list_folded("theirs")
_DETERMINERS, _GERMAN_ARTICLES = list_folded("determiners"), list_folded("German articles")
_COPULAS, _WAS = list_folded("copulas"), list_folded("was")
_SAYING, _SOURCES = list_folded("saying"), list_folded("sources")
_PAST, _SUPPOSITIONS, _IRREAL = map(list_folded, ("past", "suppositions", "irreal"))
_ADVERSATIVES, _FREQUENCIES = list_folded("adversatives"), list_folded("frequencies")
_EITHER, _OR, _OPTIONS = map(list_folded, ("either", "or", "things to choose from"))
_HEDGES, _CAN_BE = list_folded("hedges"), list_folded("tells what can be")
_FRENCH_VERBS = list_folded("French verbs")
_ASSUMES = frozenset({"assuming"})
"""It orders as well as it supposes: “assuming UTF-8 everywhere is fine”."""
_LEADS = list_folded("adversatives") | {"and", "even", "just"}
_COMPARING = frozenset({"over", "before", "after", "than"})
"""What they put in an order may stand far from them; else the next words count."""
_ORDERING = list_folded("marks") | _COMPARING
_CORRECTIONS = list_folded("corrections")
_UNIVERSALS, ANAPHORS = list_folded("universals"), list_folded("anaphors")
_INTERJECTIONS = list_folded("interjections")
_WHEN = frozenset(map(fold, WORDS.rows["rule words"]["when"].split())) - {"where", "while"}
_BEFORE = frozenset(map(fold, WORDS.rows["rule words"]["before"].split()))
_CONDITIONAL = _CONDITIONS | _WHEN | list_folded("beginnings of a condition")
_IDLE_CONDITIONS = frozenset(map(stem, WORDS.list_words("idle conditions")))
_COMPLEMENTIZERS, _FACTIVE = list_folded("complementizers"), list_folded("taken for true")
_FEELING, _NAMING = list_folded("feeling"), list_folded("naming")
_BARE_NOES, _COMPARATIVES = list_folded("bare noes"), list_folded("comparatives")
_BOUND_BY = frozenset({"than", "often", "frequently"})
_SAYING_BASE = list_folded("base of saying")
_SENDING, GIVERS, _SENT = map(list_folded, ("verbs of sending", "givers", "what is sent"))
_TEXT_VERBS = list_folded("verbs of text")
_EXCEPTING, _TELLING = list_folded("excepting"), list_folded("orders to tell")
_MAY, _MUST, _SELDOM = map(list_folded, ("permissions", "duties", "seldom"))
_WORDING = list_folded("wording")
_CONDITION_STEMS, _SHORT_CONDITION = 4, 2
_REFLEXIVES = frozenset({"se", "als", "om"})
"""Conditions of one language, and of another words of any sentence."""
_IRREAL_ENDINGS = tuple(WORDS.list_words("irreal endings"))
_SUBJECT_WORDS, _LABEL_WORDS, _OWN_STEMS_MIN = 5, 2, 3
CLAUSE_BREAK = re.compile(r"[,;:—–()\n。、，；：]|\s-\s|[.!?！？](?=\s|$)")
_NEAR_WORDS = 4
"""Words before a quoted part of a sentence in which a negation denies it."""
_AGREED_SAID_MIN, _AGREED_TOLD_MIN = 0.7, 0.6
"""Shares of the content words of both sides that make two statements agree but for their negations."""
_WINDOW_STEMS = 3
"""Content words behind a negation that it surely denies."""


def _fold_contraction(word: str) -> str:
    return fold(word).replace("'", "").replace("’", "")


def is_negation(word: str) -> bool:
    """Return whether a raw word denies, excludes or replaces."""
    folded = _fold_contraction(word)
    is_word = folded in NEGATION_WORDS or word.lower() in _ACCENTED
    return is_word or stem(folded) in _NEGATION_STEMS


def has_negation(text: str) -> bool:
    """Return whether a text has any word or sign that denies."""
    signs = WORDS["negation signs"].search(text) or WORDS["leaves out"].search(text)
    return signs is not None or any(map(is_negation, words(text)))


def denies(text: str) -> bool:
    """Return whether a text has a word that denies, and does not only limit."""
    return any(is_negation(word) and fold(word) not in _LIMITS for word in words(text))


def negation_signs(text: str) -> list[str]:
    """The negations of a text in languages that do not write them as words."""
    return WORDS["negation signs"].findall(text)


def has_condition(text: str) -> bool:
    """Return whether a text has a word that begins a condition."""
    return any(fold(word) in _CONDITIONS for word in words(text))


def list_conditions(sentence: str) -> Iterator[frozenset[str]]:
    """Yield the content stems of each clause of a sentence that begins with a condition."""
    for clause in CLAUSE_BREAK.split(sentence):
        tokens = words(clause)
        folded = [fold(token) for token in tokens]
        only_when = [
            at for at in range(1, len(folded)) if folded[at] in _WHEN and folded[at - 1] in _LIMITS
        ]
        starts = sorted(
            {at for at, token in enumerate(folded) if token in _CONDITIONS} | {*only_when}
        )
        for start, end in itertools.pairwise([*starts, len(tokens)]):
            if found := _content_words(tokens[start + 1 : end]):
                yield found


def find_lost_frame(sentence: str, text: str, *, is_done: bool = False) -> str:
    """Name the frame of a sentence that a text of it leaves out; empty if it keeps it, or there is none.

    What others do, say or want, what is only supposed and what is over is no rule of the speaker's. `is_done`: what he
    wished was then done, and is decided so.
    """
    tokens, told = [fold(word) for word in words(sentence)], {fold(word) for word in words(text)}
    about = name_content(text)
    subject = _find_subject(sentence)
    # A text with words of its own names the subject otherwise.
    own = about - name_content(sentence)
    if subject and not subject & about and len(own) < _OWN_STEMS_MIN:
        return "of whom or what he said it"
    if WORDS["put off"].search(sentence) and not (has_negation(text) or _is_due(text)):
        return "that it is not to be done yet"
    has_sign = WORDS["saying signs"].search(sentence) and not WORDS["saying signs"].search(text)
    lead, colon, _ = sentence.partition(": ")
    is_heard = bool(colon) and names_source(lead) and told.isdisjoint(_SAYING | _SOURCES | _SENDING)
    if has_sign or is_heard or _is_said_by_others(tokens, told, about):
        return "that others say or want it"
    is_over = has_negation(text) and not has_negation(sentence)
    if _is_past(sentence, tokens) and not (_is_past(text, told) or is_over):
        return "that it was so in the past"
    supposes = _CONDITIONS | _SUPPOSITIONS
    begins = [token for token in tokens if token not in _INTERJECTIONS][:1]
    imagines = WORDS["were it so"].match(sentence) is not None or not (
        _SUPPOSITIONS - _CONDITIONS - _ASSUMES
    ).isdisjoint(begins)
    if imagines or (
        not supposes.isdisjoint(tokens) and any(map(is_irreal, tokens)) and not is_done
    ):
        is_kept = told & supposes or any(map(is_irreal, told))
        return "" if is_kept else "that it is only supposed"
    return _find_lost_mood(sentence, tokens, text, told, is_done=is_done)


def tells_of_others(sentence: str) -> bool:
    """Return whether a sentence tells what others say or want."""
    tokens = [fold(word) for word in words(sentence)]
    return WORDS["saying signs"].search(sentence) is not None or _is_said_by_others(
        tokens, set(), frozenset()
    )


def _is_said_by_others(tokens: list[str], told: set[str], about: frozenset[str]) -> bool:
    """Return whether others say or want what a sentence tells, and the text neither names them nor says so."""
    for at, token in enumerate(tokens):
        if token in _SOURCES and not _FIRST_PERSON.isdisjoint(tokens[at + 1 : at + 2]):
            continue
        if token in _SOURCES:
            named = name_content(" ".join(tokens[at + 1 : at + 1 + _LABEL_WORDS]))
        elif (token in _SAYING or _says_of_others(tokens, at)) and not _is_own_verb(tokens, at):
            named = name_content(" ".join(tokens[max(0, at - _NEAR_WORDS) : at]))
        elif (
            token in _TELLING
            and _BEFORE.isdisjoint(tokens[at + 1 : at + 2])
            and _FIRST_PERSON.isdisjoint(tokens[max(0, at - 2) : at + 2])
        ):
            named = name_content(" ".join(tokens[at + 1 : at + 2]))
        else:
            continue
        if not told & (_SAYING | _SOURCES) and not named & about:
            return True
    return False


def names_source(phrase: str) -> bool:
    """Return whether what stands before a colon or above a text names who says or sends it, other than its speaker."""
    tokens = [fold(word) for word in words(phrase)]
    for at, token in enumerate(tokens):
        is_verb = token in _SAYING | _SENDING or _says_of_others(tokens, at)
        if at and is_verb and not _is_own_verb(tokens, at):
            return True
        is_sent = token in GIVERS and not _SENT.isdisjoint(tokens[max(at - 1, 0) : at])
        if (token in _SOURCES or is_sent) and _FIRST_PERSON.isdisjoint(tokens[at + 1 : at + 2]):
            return True
    return False


def _says_of_others(tokens: list[str], at: int) -> bool:
    """Return whether a verb of saying without an ending stands behind a noun: “customers want”."""
    before = tokens[at - 1] if at else "the"
    return tokens[at] in _SAYING_BASE and not (is_stop_word(before) or before in _FREQUENCIES)


def _is_own_verb(tokens: list[str], at: int) -> bool:
    """Return whether the speaker is the subject of a verb. The French “on” is an English word anywhere else."""
    return tokens[at - 1 : at] == ["on"] or not _FIRST_PERSON.isdisjoint(tokens[:at])


def _find_lost_mood(
    sentence: str, tokens: list[str], text: str, told: set[str], *, is_done: bool
) -> str:
    """Name what makes a sentence less than a statement: it judges, weighs, wishes, or is about other words."""
    if raised := _find_raised(sentence, set(tokens), told):
        return raised
    judged = WORDS["judges"].search(sentence)
    if judged and fold(judged[1]) not in told:
        return f"that he calls it {judged[1]}"
    heading, _, item = sentence.partition(":")
    is_choice = bool(item) and not _OPTIONS.isdisjoint(map(fold, words(heading)))
    ahead = list(itertools.dropwhile(lambda token: token not in _EITHER, tokens))[1:]
    if (is_choice or not _OR.isdisjoint(ahead)) and not told & (_EITHER | _OPTIONS | _OR):
        return "that he weighs it against something else"
    about = name_content(text)
    if not (is_done or any(map(is_irreal, told)) or told & (_HEDGES | _CAN_BE)):
        clauses = {clause: name_content(clause) & about for clause in CLAUSE_BREAK.split(sentence)}
        wished = {clause for clause in clauses if _is_wished(clause)}
        stated = max((len(clauses[one]) for one in clauses if one not in wished), default=0)
        if any(len(clauses[one]) > stated for one in wished):
            return "that he only wishes or supposes it"
    governing = WORDS["governs"].match(sentence)
    if governing is None:
        return ""
    lead = governing[0].rstrip()
    is_own = not lead.endswith(("whether", "ob")) and not _FIRST_PERSON.isdisjoint(
        map(fold, words(lead))
    )
    is_kept = is_own or not (named := name_content(lead)) or bool(named & about)
    return "" if is_kept else f"what “{lead}” says of it"


def _find_raised(sentence: str, tokens: set[str], told: set[str]) -> str:
    """Name the “may” of which a text makes a “must”, or the “sometimes” that it leaves out."""
    is_order = has_negation(sentence) or any(
        WORDS[name].search(sentence) for name in ("request", "please")
    )
    if told & _MUST and tokens & _MAY and not (is_order or tokens & (_MUST | _UNIVERSALS)):
        return "that it only may be so"
    is_lost = tokens & _SELDOM and not told & (_SELDOM | _HEDGES | _CAN_BE)
    return "that it is so only at times" if is_lost else ""


def _is_wished(clause: str) -> bool:
    """Return whether a clause tells what may or would be, and not what its speaker would like, which is an order."""
    tokens = [fold(word) for word in words(clause)]
    is_request = WORDS["request"].search(clause) or WORDS["please"].search(clause)
    if not is_request and (
        not _HEDGES.isdisjoint(tokens) or WORDS["takes for a fact"].search(clause)
    ):
        return True
    return not is_request and not _IRREAL.isdisjoint(tokens) and _FIRST_PERSON.isdisjoint(tokens)


def turns_order(sentence: str, text: str) -> bool:
    """Return whether a text puts last what a sentence puts first: “A over B”, “B before A”."""
    for mark, (first, last) in _split_at_marks(sentence):
        for again, (ahead, behind) in _split_at_marks(text):
            if mark != again:
                continue
            turned, kept = ((last & ahead, first & behind), (first & ahead, last & behind))
            if all(turned) and sum(map(len, turned)) > sum(map(len, kept)):
                return True
    return False


def _split_at_marks(text: str) -> Iterator[tuple[str, tuple[frozenset[str], frozenset[str]]]]:
    """Yield each word that puts things in an order, and the content of its clause before and behind it."""
    for clause in CLAUSE_BREAK.split(text):
        tokens = words(clause)
        for at, token in enumerate(tokens):
            if (mark := fold(token)) in _ORDERING:
                reach = len(tokens) if mark in _COMPARING else 1
                ahead, behind = (
                    [word for word in side if not is_stop_word(word)]
                    for side in (tokens[:at], tokens[at + 1 :])
                )
                first, last = " ".join(ahead[-reach:]), " ".join(behind[:reach])
                yield mark, (name_content(first), name_content(last))


def introduces_text(lead: str, text: str) -> bool:
    """Return whether what stands before a colon speaks of words (“put into the tooltip:”), and the text does not."""
    tokens = [fold(word) for word in words(lead)]
    is_other = not name_content(lead) & name_content(text)
    return not _TEXT_VERBS.isdisjoint(tokens[-1:]) or (is_other and not _WORDING.isdisjoint(tokens))


def introduces_others(lead: str) -> bool:
    """Return whether what stands before a colon says that others' words follow: “the policy reads”, “their mail has”."""
    tokens = [fold(word) for word in words(lead)]
    if not _FIRST_PERSON.isdisjoint(tokens):
        return False
    is_said = not (_SAYING | _SOURCES).isdisjoint(tokens) or tokens[-1:] in (["reads"], ["states"])
    return is_said or not _THEIRS.isdisjoint(tokens[:1])


def name_content(text: str) -> frozenset[str]:
    """The content of a phrase without articles and adverbs, which name nothing."""
    tokens = [token for token in words(text) if fold(token) not in _DETERMINERS | _FREQUENCIES]
    named = [token for token in tokens if len(token) > 1 and not is_stop_word(token)]
    return frozenset(content_stems(" ".join(named))) if named else frozenset()


def _find_subject(sentence: str) -> frozenset[str]:
    """Find the content of the noun phrase that is the subject of a sentence, unless it stands for the speaker.

    What is named by a copula or a colon is a label: "my preference is …", "the rule: …".
    """
    found = WORDS["first nouns"].match(sentence)
    if found is None or (determiner := fold(found["determiner"])) not in _DETERMINERS:
        return frozenset()
    nouns = found["nouns"].split()
    if determiner == "il" and fold(nouns[0]) in _FRENCH_VERBS:
        return frozenset()
    is_pronoun = determiner in _GERMAN_ARTICLES and not nouns[0][0].isupper()
    ahead = map(fold, words(sentence)[:_SUBJECT_WORDS])
    if is_pronoun or not _FIRST_PERSON.isdisjoint(ahead):
        return frozenset()
    labels = nouns[: _LABEL_WORDS + 1]
    is_label = sentence[found.end() :].lstrip()[:1] in {":", "=", "—", "–"}
    if is_label or any(fold(noun) in _COPULAS for noun in labels):
        return frozenset()
    is_plural = nouns[0].endswith("s") and not nouns[0].endswith("ss")
    named = 1 if is_plural or determiner in WORDS.list_words("quantifiers") else _LABEL_WORDS
    return name_content(" ".join(nouns[:named]))


def _is_past(text: str, tokens: Iterable[str]) -> bool:
    return WORDS["used to"].search(text) is not None or not _PAST.isdisjoint(tokens)


def is_irreal(token: str) -> bool:
    """Return whether a folded word tells what would be."""
    return token in _IRREAL or token.endswith(_IRREAL_ENDINGS)


def limits(before: str, after: str) -> str:
    """Return the part of a sentence next to a quoted part that negates or limits it; empty if none does."""
    return _find_limit_before(before) or _find_limit_behind(after)


def _find_limit_before(before: str) -> str:
    clauses = CLAUSE_BREAK.split(before)
    last = clauses[-1]
    near = [word for word in words(last)[-_NEAR_WORDS:] if fold(word) not in _BARE_NOES]
    if _is_spoken_of(last) or any(map(is_negation, near)):
        return last
    named = [clause for clause in clauses if words(clause)]
    if named and not words(last):
        is_heading = before.rstrip(" \t\n-*").endswith((":", "："))
        is_over = fold(words(named[-1])[-1]) in _WAS
        if _begins_condition(named[-1]) or (is_heading and (is_over or has_negation(named[-1]))):
            return named[-1]
    is_interrupted = any(_begins_condition(one) and not name_content(one) for one in named[:-1])
    return last if _begins_condition(last) or is_interrupted else ""


def _is_spoken_of(lead: str) -> bool:
    """Return whether what a clause goes on with is no statement: it is doubted, hoped, or a name: “I doubt that …”."""
    tokens = [fold(word) for word in words(lead)]
    governed = max((at for at, token in enumerate(tokens) if token in _COMPLEMENTIZERS), default=0)
    if _FACTIVE.isdisjoint(tokens) and (
        any(map(is_negation, tokens[:governed])) or not _FEELING.isdisjoint(tokens[:governed])
    ):
        return True
    is_reported = governed > 0 and WORDS["reports"].search(lead) is not None
    return not _NAMING.isdisjoint(tokens[-_LABEL_WORDS:]) or (
        is_reported and (_FIRST_PERSON - {"me", "us"}).isdisjoint(tokens[:governed])
    )


def _find_limit_behind(after: str) -> str:
    behind = words(after)[:2]
    corrected = next((clause for clause in CLAUSE_BREAK.split(after) if words(clause)), "")
    is_corrected = corrected and {*map(fold, words(corrected))} <= _CORRECTIONS | _INTERJECTIONS
    is_denied = behind and WORDS["negation signs"].match(after.strip())
    if any(fold(word) in _CONDITIONAL for word in behind) or is_corrected or is_denied:
        return after
    return _find_exception(after)


def _find_exception(after: str) -> str:
    """Return the clause behind quoted words that takes something out of them: “…, but not in YAML”, “…, except guests”."""
    for clause in CLAUSE_BREAK.split(after):
        tokens = [fold(word) for word in words(clause)]
        denies = tokens[:1] and tokens[0] in _ADVERSATIVES and any(map(is_negation, tokens[1:2]))
        if denies or not _EXCEPTING.isdisjoint(tokens[:1]):
            return clause
    return ""


def retracts(following: str) -> str:
    """Return the sentence after another if it only retracts or limits that; empty if it does not.

    It retracts what it denies without naming it (“no”, “don't”, “never do that”), and limits what it names only a
    condition of (“but only if …”): neither is a statement of its own.
    """
    clauses = [clause for clause in CLAUSE_BREAK.split(following) if words(clause)]
    if any(denies_nothing_named(clause) for clause in clauses):
        return following
    begins = [fold(word) for word in words(following)[:1]]
    if begins and begins[0] in _ADVERSATIVES and has_negation(following):
        return following
    first = [fold(word) for word in words(clauses[0])[:_FIRST_WORDS]] if len(clauses) == 1 else []
    return following if any(word in _CONDITIONS for word in first) else ""


_FIRST_WORDS = 3


def denies_nothing_named(clause: str) -> bool:
    """Return whether a clause denies, and names nothing: “no”, “not really”, “I would not”."""
    tokens = words(clause)
    named = (token for token in tokens if not is_negation(token) and not is_stop_word(token))
    return any(map(is_negation, tokens)) and not any(named)


def leave_put_off(sentence: str, following: str, text: str) -> tuple[str, str, str]:
    """Leave out of a sentence, what follows it and a text of them when it is not yet to be done, “not today”.

    What he does not say is to be done some time, or the text tells as done, “not today” denies.
    """
    said = sentence, following
    left = [WORDS["put off"].sub(" ", one).strip() for one in (*said, text)]
    is_due = _is_due(sentence) and _is_due(text)
    return (left[0], left[1], left[2]) if is_due and tuple(left[:2]) != said else (*said, text)


def _is_due(text: str) -> bool:
    return WORDS["to be done"].search(text) is not None


def _begins_condition(clause: str) -> bool:
    begins = [fold(word) for word in words(clause)[:2]]
    return begins == ["subject", "to"] or not _CONDITIONAL.isdisjoint(begins)


def keeps_limit(limit: str, text: str) -> bool:
    """Return whether a text says what limits a statement; of a condition most, or as a condition."""
    told = frozenset(content_stems(text))
    conditions = list(_list_condition_heads(limit))
    if not conditions:
        return not told.isdisjoint(content_stems(limit))
    return all(_keeps_condition(head, text, told) for head in conditions)


def find_lost_condition(sentence: str, text: str) -> tuple[str, ...]:
    """Return the first content stems of a condition of a sentence that a text of it leaves out."""
    said, told = Counter(content_stems(sentence)), frozenset(content_stems(text))
    for head in _list_condition_heads(sentence, reads_when=False):
        # “Keep the existing one if it exists” says nothing more with its condition.
        own = tuple(one for one in head if said[one] == 1)
        if own and not _keeps_condition(head, text, told):
            return own
    return ()


def _list_condition_heads(sentence: str, *, reads_when: bool = True) -> Iterator[tuple[str, ...]]:
    """Yield the first content stems of each condition; a bare “when …” may tell what happens anyway."""
    for clause in CLAUSE_BREAK.split(sentence):
        tokens = words(clause)
        folded = [fold(token) for token in tokens]
        for at, token in enumerate(folded):
            leads = _LIMITS | _LEADS if reads_when else _LIMITS
            is_first = at == 0 and reads_when
            is_when = token in _CONDITIONAL and (is_first or folded[max(at - 1, 0)] in leads)
            if (token in _CONDITIONS and (at == 0 or token not in _REFLEXIVES)) or is_when:
                rest = [word for word in tokens[at + 1 :] if not is_stop_word(word)]
                head = tuple(dict.fromkeys(content_stems(" ".join(rest)) if rest else ()))
                if not _IDLE_CONDITIONS.issuperset(head):
                    yield head[:_CONDITION_STEMS]


def _keeps_condition(head: tuple[str, ...], text: str, told: frozenset[str]) -> bool:
    kept = [one for one in head if one in told]
    marks = (_CONDITIONAL | _LIMITS) - _REFLEXIVES
    is_marked = any(fold(word) in marks for word in words(text))
    wanted = (len(head) + 1) // 2 if len(head) > _SHORT_CONDITION else len(head)
    return not told.isdisjoint(head[:2]) and (is_marked or len(kept) >= wanted)


def begins_with_denial(text: str) -> bool:
    """Return whether an answer begins with a negation: “no, …”, “don't”."""
    tokens = list(itertools.dropwhile(lambda word: fold(word) in _INTERJECTIONS, words(text)))
    return bool(tokens) and (
        is_negation(tokens[0]) or WORDS["negation signs"].match(tokens[0]) is not None
    )


_ASSENTS, COURTESIES = list_folded("assents"), list_folded("courtesies")
_FILLING_IN = COURTESIES.union(
    *map(list_folded, ("courtesies of other languages", "orders to go on"))
)
STEERING = _FILLING_IN | list_folded("steering")
"""Words that steer the agent and are about no subject."""
_SMALL_TALK = _ASSENTS | _FILLING_IN | list_folded("around small talk")
_THAT_IS = list_folded("that is")
_ASSENT_WORDS_MAX, _SMALL_TALK_CHARACTERS_MAX = 8, 80


def is_assent(text: str) -> bool:
    """Return whether a short answer only agrees: it begins with a word of assent and denies nothing."""
    if WORDS["assent signs"].match(text.strip()):
        return not WORDS["negation signs"].search(text.strip()[2:])
    tokens = words(text)
    while len(tokens) > 1 and _fold_contraction(tokens[0]) in _THAT_IS:
        tokens = tokens[1:]
    if not tokens or len(tokens) > _ASSENT_WORDS_MAX:
        return False
    return _fold_contraction(tokens[0]) in _ASSENTS and not any(map(is_negation, tokens))


def count_telling_words(text: str) -> int:
    """Count the words of a text that neither agree nor thank nor steer the agent."""
    return sum(fold(word) not in _SMALL_TALK and not word.isdigit() for word in words(text))


def is_small_talk(text: str) -> bool:
    """Return whether a text says nothing that could be remembered: `ok`, `yes, go on`, `thanks!`."""
    return len(text.strip()) <= _SMALL_TALK_CHARACTERS_MAX and not count_telling_words(text)


def _content_words(tokens: list[str]) -> frozenset[str]:
    bare = " ".join(token for token in tokens if not is_negation(token))
    return frozenset(content_stems(bare)) if bare else frozenset()


def _denied_windows(text: str, *, is_strict: bool = False) -> Iterator[frozenset[str]]:
    """Yield the content stems that follow each negation in its clause, and those before a sign of one.

    `is_strict`: not those that a word only limits.
    """
    for clause in WORDS["turn"].split(text):
        tokens = words(clause)
        for at, token in enumerate(tokens):
            if fold(token) == "rather" and [fold(t) for t in tokens[at + 1 : at + 2]] != ["than"]:
                continue  # “I would rather” wishes
            if _bounds(tokens[at : at + 3]):
                continue
            if is_negation(token) and not (is_strict and fold(token) in _LIMITS):
                ahead = (
                    t for t in tokens[at + 1 :] if (not is_stop_word(t) if is_strict else content_stems(t))
                )  # fmt: skip
                window = _content_words(list(itertools.islice(ahead, _WINDOW_STEMS)))
                # “The client doesn't”: what is denied stands before.
                yield (
                    _content_words(tokens)
                    if _denies_last(tokens[: at + 1]) and at + 1 == len(tokens)
                    else window
                )
        if WORDS["negation signs"].search(clause) and not any(map(is_negation, tokens)):
            yield _content_words(tokens)


def _bounds(tokens: list[str]) -> bool:
    """Return whether words that begin as a denial give a bound or an order: “no more than”, “only then”."""
    folded = [fold(token) for token in tokens]
    is_bound = folded[1:2] != ["longer"] and not _COMPARATIVES.isdisjoint(folded[1:2])
    return folded[:2] == ["only", "then"] or (is_bound and not _BOUND_BY.isdisjoint(folded[2:3]))


def _denies_last(tokens: list[str]) -> bool:
    return is_negation(tokens[-1]) and fold(tokens[-1]) not in _LIMITS


def _list_contrasts(text: str) -> Iterator[frozenset[str]]:
    """Yield the content stems of each clause that is nothing but a denial: “not to staging”, “never npm”."""
    for clause in WORDS["turn"].split(text):
        tokens = words(clause)
        is_elliptic = 1 < len(tokens) <= _NEAR_WORDS and _denies_last(tokens)
        if (is_elliptic or any(map(is_negation, tokens[:1]))) and (named := _content_words(tokens)):
            yield named


def is_negated_by(said: str, told: str) -> bool:
    """Return whether `told` affirms what `said` denies, or the reverse, where both are about the same."""
    denied = [window for window in _denied_windows(said) if window]
    about, mine = _content_words(words(told)), _content_words(words(said))
    if denied:
        if has_negation(told):
            # “A, not B” for “B, not A”: each affirms what the other denies.
            theirs = [window for window in _denied_windows(told) if window]
            affirmed = about.difference(*theirs), mine.difference(*denied)
            if _affirms_denied(said, told):
                return True
            return any(one <= affirmed[0] for one in _list_contrasts(said)) and any(
                one <= affirmed[1] for one in _list_contrasts(told)
            )
        return any(len(one & about) * 2 >= len(one) for one in denied)
    shared = len(about & mine)
    agrees = shared >= _AGREED_SAID_MIN * len(mine) and shared >= _AGREED_TOLD_MIN * len(about)
    denies = any(window and window <= mine for window in _denied_windows(told))
    return agrees and denies and not has_negation(said) and not _is_contrast(mine, told)


def _affirms_denied(said: str, told: str) -> bool:
    """Return whether a clause of `told` affirms all that `said` denies: “it did not retry; now it retries”."""
    counts = Counter(content_stems(said))
    denied = [one for one in _denied_windows(said, is_strict=True) if len(one) > 1]
    clauses = [_content_words(words(clause)) for clause in list_affirmed(told)]
    return any(
        one <= clause and all(counts[stem] == 1 for stem in one)
        for one in denied
        for clause in clauses
    )


def _is_contrast(mine: frozenset[str], told: str) -> bool:
    """Return whether a text affirms all that was said, and denies at most half of it: “A is in B, not in an A of its own”."""
    clauses = CLAUSE_BREAK.split(told)
    affirmed = _content_words(words(" ".join(list_affirmed(told))))
    denied = (mine & _content_words(words(one)) for one in clauses if has_negation(one))
    return mine <= affirmed and all(2 * len(one) <= len(mine) for one in denied)


def list_affirmed(text: str) -> Iterator[str]:
    """Yield the clauses that have no negation."""
    return (clause for clause in CLAUSE_BREAK.split(text) if not has_negation(clause))
