"""Do two texts say the same? Differences by aspect."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from memd.consolidate.claims import (
    CLAUSE_BREAKS,
    Claims,
    Clause,
    Sentence,
    Token,
    TokenType,
    parse_claims,
    word_key,
)
from memd.text import one_line

# MERGED from memd.consolidate.moves:
# MERGED Whether a phrase has only changed its place in a sentence, so that the sentence says the same. Pure.
# MERGED
# MERGED "Retries with backoff and jitter" and "with backoff and jitter, retries" differ in order alone; "run
# MERGED tests, run builds on Mac" and "on Mac run tests, run builds" do not. Not here: what else may differ
# MERGED (guards.py).


_LEADING = "with in on at for from to into by because when while as since"
_LEADERS = frozenset(word_key(word) for word in _LEADING.split())
ARTICLES = frozenset({"the", "a", "an"})
_BLOCK_MIN = 2
"""Words; of a single one it cannot be told what it belongs to."""
_SEQUENCE = frozenset(
    word_key(word) for word in ("then", "next", "finally", "afterwards", "later")
)
_SEVERAL = 2


def is_phrase_moved(older: Claims, newer: Claims) -> bool:
    """Whether one phrase has changed places with what stood before or after it, and nothing else.

    The phrase must begin with the word that says its part (`with`, `in`, `after`), for then its part goes
    with it; in `cp a b` the place itself says the part. And what it belongs to must be one clause.
    """
    was, now = _Line(older), _Line(newer)
    if len(was.keys) != len(now.keys) or sorted(was.keys) != sorted(now.keys):
        return False
    differ = [
        at for at, pair in enumerate(zip(was.keys, now.keys, strict=True)) if len({*pair}) > 1
    ]
    if not differ:
        return False
    first, last = differ[0], differ[-1] + 1
    for cut in range(first + _BLOCK_MIN, last - _BLOCK_MIN + 1):
        if was.keys[cut:last] + was.keys[first:cut] == now.keys[first:last]:
            middle = first + last - cut
            front = was.is_phrase(first, cut), now.is_phrase(middle, last)
            back = was.is_phrase(cut, last), now.is_phrase(first, middle)
            ours = was.is_clause(first, cut) and now.is_clause(middle, last)
            theirs = was.is_clause(cut, last) and now.is_clause(first, middle)
            if (all(back) and ours) or (all(front) and theirs):
                return True
    return False


class _Line:
    """The words of a text without articles, and where its clauses end."""

    def __init__(self, reading: Claims) -> None:
        self.tokens: list[Token] = []
        self.ends: dict[int, bool] = {}
        """Before which word a clause begins → whether the one before ended with `and` or its like."""
        for clause in reading.clauses:
            self.tokens += [token for token in clause if token.key not in ARTICLES]
            self.ends[len(self.tokens)] = clause[-1].key in CLAUSE_BREAKS
        self.keys = [token.key for token in self.tokens]

    def is_phrase(self, first: int, last: int) -> bool:
        """Whether these words begin with one that says their part, and go on without a comma."""
        head = self.tokens[first]
        is_led = head.sort is TokenType.QUALIFIER or head.key in _LEADERS
        return is_led and all(self.ends.get(at, True) for at in range(first + 1, last))

    def is_clause(self, first: int, last: int) -> bool:
        """Whether no clause ends within these words."""
        return self.ends.keys().isdisjoint(range(first + 1, last))


def is_reordered(older: Claims, newer: Claims) -> bool:
    """Whether clauses stand in another order that matters.

    It does where one tells what comes `then`, and where several say no more than where or when, such
    as `in CI, …`: of those it cannot be told what they go with.
    """
    matters = _circumstances(older) >= _SEVERAL or any(t.key in _SEQUENCE for t in older.tokens)
    return matters and _order(older) != _order(newer)


def _circumstances(reading: Claims) -> int:
    return sum(clause[0].key in _LEADERS for clause in reading.clauses)


def _order(reading: Claims) -> list[frozenset[str]]:
    found = [frozenset(t.key for t in clause if t.has_content) for clause in reading.clauses]
    return [bag for bag in found if bag]


# MERGED from memd.consolidate.guards:
# MERGED Whether two texts that look alike say the same, and if not, what differs, in words. Pure.
# MERGED
# MERGED A cosine cannot tell "cache" from "do not cache" (0.98) or 30 seconds from 60 (0.96), so it only
# MERGED proposes; this page decides. Every difference of a number, negation, version, date, path, identifier,
# MERGED qualifier or content word refuses the pair, and so do the same words in another relation ("from 10 to
# MERGED 30", "from 30 to 10"). What may differ: case, punctuation, the order of clauses, inflection, filler,
# MERGED and whole sentences that only one side has, which are told so that nothing gets lost.


SWAPPED = "the same ones, differently assigned"
"""What a finding says of numbers or opposites that both texts have, each with something else."""
_SHOWN = 60
_REASONS = 4
_MISSING_MAX = 100
"""Clauses that only one side has; with more of them the texts are not looked at further."""
_QUOTES_MAX = 200
_WINDOW = 2
"""Content words on each side that a word is seen to stand between."""
_EXACT = (
    TokenType.NUMBER, TokenType.VERSION, TokenType.DATE, TokenType.PATH, TokenType.IDENTIFIER, TokenType.SYMBOL, TokenType.QUALIFIER,
)  # fmt: skip
_OPPOSITES = """enable/disable add/remove add/delete add/drop pass/fail success/failure
succeed/fail allow/deny allow/forbid allow/block accept/reject start/stop open/close open/closed
increase/decrease raise/lower up/down on/off in/out before/after over/under above/below with/without
true/false yes/no sync/async include/exclude show/hide lock/unlock min/max minimum/maximum first/last
always/never all/none all/some left/right top/bottom public/private read/write push/pull
upgrade/downgrade encrypt/decrypt connect/disconnect install/uninstall safe/unsafe valid/invalid
local/remote more/less most/least like/dislike love/hate prefer/avoid use/avoid keep/drop keep/delete
create/delete working/broken fixed/broken required/optional required/forbidden internal/external
staging/production dev/prod grant/revoke attach/detach import/export load/unload positive/negative
high/low fast/slow early/late old/new ascending/descending client/server input/output merge/split
and/or is/was i/you from/to from/into must/may should/could he/she"""
_ANTONYMS = tuple(
    (word_key(one), word_key(other), f"{one}/{other}")
    for one, other in (pair.split("/") for pair in _OPPOSITES.split())
)
_BINDS = "only all any each every few more most less least both other same"
_BINDING = frozenset(word_key(word) for word in _BINDS.split())
"""Qualifiers that speak of what follows them: `deploy only to production` is not `only deploy`."""
_OPPOSED = frozenset(word for one, other, _ in _ANTONYMS for word in (one, other))


class Agreement(enum.StrEnum):
    """What two texts are to each other."""

    SAME = "same"
    RESTATED = "restated"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: `number`, `30`, `60`. A side that lacks it is empty."""

    aspect: str
    was: str
    now: str

    def __str__(self) -> str:
        """In words: `number: 30 → 60`, `negation: not` if only one side has it."""
        if self.was and self.now:
            return f"{self.aspect}: {self.was} → {self.now}"
        return f"{self.aspect}: {self.was or self.now}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two texts has found."""

    verdict: Agreement
    differences: tuple[Difference, ...] = ()
    lost: tuple[str, ...] = ()
    """Sentences that only the older text has."""
    gained: tuple[str, ...] = ()
    """Sentences that only the newer text has."""
    overlap: float = 1.0
    """The share of content words that both have, 0 to 1."""

    @property
    def permits(self) -> bool:
        """Whether the two say the same, as far as both speak."""
        return self.verdict is not Agreement.DIFFERS

    @property
    def aspects(self) -> tuple[str, ...]:
        """What kinds of things differ, each once."""
        return tuple(dict.fromkeys(d.aspect for d in self.differences))

    @property
    def reason(self) -> str:
        """The finding in words."""
        said = [str(d) for d in self.differences[:_REASONS]]
        said += [f"adds: {text}" for text in self.gained[:1]]
        said += [f"leaves out: {text}" for text in self.lost[:1]]
        return "; ".join(said) or self.verdict.value


def compare(older: str, newer: str) -> Comparison:
    """What differs between two texts. `compare(b, a)` refuses exactly when `compare(a, b)` does."""
    return compare_claims(parse_claims(older), parse_claims(newer))


def compare_claims(older: Claims, newer: Claims) -> Comparison:
    """`compare` for texts that have been read already."""
    ours, theirs = _keys(older, {TokenType.WORD}), _keys(newer, {TokenType.WORD})
    overlap = len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0
    exact = (*_antonyms(older, newer), *_exact(older, newer), *_negations(older, newer),
             *_bindings(older, newer), *_tenses(older, newer), *_quotes(older, newer), *_belongings(older, newer))  # fmt: skip
    if exact:
        return Comparison(Agreement.DIFFERS, tuple(dict.fromkeys(exact)), overlap=overlap)
    if _line(older) == _line(newer):
        return Comparison(Agreement.SAME)
    if is_phrase_moved(older, newer):
        return Comparison(Agreement.RESTATED)
    if is_reordered(older, newer) or is_reordered(newer, older):
        order = Difference("order", "", "the same words, differently assigned")
        return Comparison(Agreement.DIFFERS, (order,), overlap=overlap)
    lost, gained = _uncovered(older, newer), _uncovered(newer, older)
    rest = (*_wording(older, newer, lost, gained), *_directions(older, newer))
    if rest:
        return Comparison(Agreement.DIFFERS, rest, overlap=overlap)
    return Comparison(Agreement.RESTATED, (), _told(lost), _told(gained), overlap)


def _line(reading: Claims) -> list[str]:
    return [token.key for token in reading.tokens if token.sort is not TokenType.STOP]


def _keys(reading: Claims, sorts: set[TokenType]) -> set[str]:
    return {token.key for token in reading.tokens if token.sort in sorts}


def _shown(tokens: dict[str, str]) -> str:
    return one_line(", ".join(tokens[key] for key in sorted(tokens)), _SHOWN)


def _exact(older: Claims, newer: Claims) -> Iterator[Difference]:
    """Numbers, names and the like that only one side has."""
    for sort in _EXACT:
        ours = {t.key: t.shown for t in older.tokens if t.sort is sort}
        theirs = {t.key: t.shown for t in newer.tokens if t.sort is sort}
        was = {key: ours[key] for key in ours.keys() - theirs.keys()}
        now = {key: theirs[key] for key in theirs.keys() - ours.keys()}
        if was or now:
            yield Difference(sort.value, _shown(was), _shown(now))


def _antonyms(older: Claims, newer: Claims) -> Iterator[Difference]:
    """One side says it, the other its opposite."""
    ours, theirs = {t.key for t in older.tokens}, {t.key for t in newer.tokens}
    was, now = ours - theirs, theirs - ours
    for one, other, name in _ANTONYMS:
        if (one in was and other in now) or (other in was and one in now):
            yield Difference("antonym", name, "")


def _negations(older: Claims, newer: Claims) -> Iterator[Difference]:
    """A negation that only one side has, or that denies something else there."""
    ours, theirs = _scopes(older), _scopes(newer)
    if ours.keys() == theirs.keys():
        return
    was = {scope: said for scope, said in ours.items() if scope not in theirs}
    now = {scope: said for scope, said in theirs.items() if scope not in ours}
    if len(ours) == len(theirs):
        yield Difference("negation", one_line(", ".join(was.values()), _SHOWN),
                         one_line(", ".join(now.values()), _SHOWN))  # fmt: skip
    else:
        yield Difference("negation", "", one_line(", ".join((was or now).values()), _SHOWN))


def _scopes(reading: Claims) -> dict[tuple[str, ...], str]:
    """What each negation denies: the next content words of its clause → in words."""
    found = {}
    for clause in reading.clauses:
        content = [token for token in clause if token.has_content]
        for at, token in enumerate(content):
            if token.sort is TokenType.NEGATION:
                scope = content[at + 1 : at + 1 + _WINDOW]
                found[tuple(t.key for t in scope)] = " ".join(
                    (token.shown, *(t.shown for t in scope))
                )
    return found


def _bindings(older: Claims, newer: Claims) -> Iterator[Difference]:
    """A qualifier that speaks of something else."""
    ours, theirs = _bound(older), _bound(newer)
    was = {key: said for key, said in ours.items() if key not in theirs}
    now = {key: said for key, said in theirs.items() if key not in ours}
    if was or now:
        yield Difference(
            "qualifier",
            one_line(", ".join(was.values()), _SHOWN),
            one_line(", ".join(now.values()), _SHOWN),
        )


def _bound(reading: Claims) -> dict[tuple[str, str], str]:
    """Each binding qualifier with the next content word of its clause → in words."""
    found = {}
    for clause in reading.clauses:
        for at, token in enumerate(clause):
            if token.key in _BINDING:
                after = next((t for t in clause[at + 1 :] if t.has_content), None)
                # `the only worker` is not `only the worker`.
                is_told = token.key == "only" and at > 0 and clause[at - 1].key in ARTICLES
                found["the only" if is_told else token.key, after.key if after else ""] = (
                    f"{token.shown} {after.shown}" if after else token.shown
                )
    return found


def _tenses(older: Claims, newer: Claims) -> Iterator[Difference]:
    """`Fix the login` is to be done, `fixed the login` is done."""
    for one, other in ((older, newer), (newer, older)):
        done = {t.key: t.shown for t in other.tokens if _is_past(t)}
        wanted = _wanted(one)
        for key in sorted(wanted.keys() & done.keys() - _wanted(other).keys()):
            was, now = (wanted[key], done[key]) if one is older else (done[key], wanted[key])
            yield Difference("tense", was, now)


def _wanted(reading: Claims) -> dict[str, str]:
    """The words with which sentences begin as if they asked for something."""
    heads = (sentence[0][0] for sentence in reading.sentences)
    return {
        t.key: t.shown
        for t in heads
        if t.sort is TokenType.WORD and not t.shown.casefold().endswith(("ed", "ing", "s"))
    }


def _is_past(token: Token) -> bool:
    return token.sort is TokenType.WORD and token.shown.casefold().endswith("ed")


def _quotes(older: Claims, newer: Claims) -> Iterator[Difference]:
    """What one side quotes as code and the other does not say in the same letters."""
    if len(older.quoted) + len(newer.quoted) > _QUOTES_MAX:
        if older.quoted != newer.quoted:
            yield Difference("identifier", "", "other quotes")
        return
    was = [quote for quote in sorted(older.quoted) if not _says(newer.flat, quote)]
    now = [quote for quote in sorted(newer.quoted) if not _says(older.flat, quote)]
    if was or now:
        yield Difference(
            "identifier", one_line(", ".join(was), _SHOWN), one_line(", ".join(now), _SHOWN)
        )


def _says(flat: str, quote: str) -> bool:
    start = flat.find(quote)
    while start >= 0:
        stop = start + len(quote)
        if not (flat[start - 1 : start].isalnum() or flat[stop : stop + 1].isalnum()):
            return True
        start = flat.find(quote, start + 1)
    return False


def _belongings(older: Claims, newer: Claims) -> Iterator[Difference]:
    """The same numbers or opposites on both sides, but each with something else."""
    for aspect, picks in (("number", _numbers), ("antonym", _opposites)):
        chosen = picks(older)
        if len(chosen) < 2 or chosen != picks(newer):  # noqa: PLR2004  # a single one has nothing to be swapped with
            continue
        ours, theirs = _neighbours(older, chosen), _neighbours(newer, chosen)
        if ours[0] != theirs[0] and ours[1] != theirs[1]:
            yield Difference(aspect, "", SWAPPED)


def _numbers(reading: Claims) -> set[str]:
    return _keys(reading, {TokenType.NUMBER})


def _opposites(reading: Claims) -> set[str]:
    keys = {token.key for token in reading.tokens if token.has_content} & _OPPOSED
    pairs = [(one, other) for one, other, _ in _ANTONYMS if one in keys and other in keys]
    return {key for pair in pairs for key in pair}


def _neighbours(
    reading: Claims, chosen: set[str]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """For each chosen token the content before it, and the content after it, in its clause."""
    before, after = set(), set()
    for clause in reading.clauses:
        keys = ["", *(token.key for token in clause if token.has_content), ""]
        for at in range(1, len(keys) - 1):
            if keys[at] in chosen:
                before.add((keys[at - 1], keys[at]))
                after.add((keys[at], keys[at + 1]))
    return before, after


def _bag(clause: Clause) -> frozenset[str]:
    return frozenset(token.key for token in clause if token.has_content)


def _uncovered(ours: Claims, theirs: Claims) -> list[tuple[Sentence, bool]]:
    """Our sentences that the others do not say, and whether they say none of it."""
    mine = {bag for clause in ours.clauses if (bag := _bag(clause))}
    other = {bag for clause in theirs.clauses if (bag := _bag(clause))}
    missing = mine - other
    if len(missing) > _MISSING_MAX:
        return [(ours.sentences[0], False)]
    missing = {bag for bag in missing if not _is_covered(bag, mine, other)}
    found = []
    for sentence in ours.sentences:
        bags = {bag for clause in sentence if (bag := _bag(clause))}
        if bags & missing:
            found.append((sentence, bags <= missing))
    return found


def _is_covered(
    bag: frozenset[str], mine: set[frozenset[str]], other: set[frozenset[str]]
) -> bool:
    """Whether the others say this clause, cut into more clauses or into fewer."""
    if bag == frozenset().union(*(part for part in other if part <= bag)):
        return True
    return any(
        bag <= whole and whole == frozenset().union(*(part for part in mine if part <= whole))
        for whole in other
    )


def _wording(
    older: Claims,
    newer: Claims,
    lost: list[tuple[Sentence, bool]],
    gained: list[tuple[Sentence, bool]],
) -> Iterator[Difference]:
    """Content words that are exchanged, or that come or go inside a sentence."""
    is_partial = not all(is_whole for _, is_whole in (*lost, *gained))
    if not (lost and gained) and not is_partial:
        return
    ours = {t.key: t.shown for t in older.tokens if t.sort is TokenType.WORD}
    theirs = {t.key: t.shown for t in newer.tokens if t.sort is TokenType.WORD}
    was = {key: ours[key] for key in ours.keys() - theirs.keys()}
    now = {key: theirs[key] for key in theirs.keys() - ours.keys()}
    if not was and not now:
        yield Difference("order", "", "the same words, differently assigned")
    else:
        aspect = "value" if len(was) == len(now) == 1 else "wording"
        yield Difference(aspect, _shown(was), _shown(now))


def _directions(older: Claims, newer: Claims) -> Iterator[Difference]:
    """`A calls B` against `B calls A`, `from 10 to 30` against `from 30 to 10`."""
    ours, theirs = _triples(older), _triples(newer)
    for (left, middle, right), said in ours.items():
        turned = (right, middle, left)
        if turned in theirs and turned not in ours and (left, middle, right) not in theirs:
            yield Difference("direction", said, theirs[turned])
            return


def _triples(reading: Claims) -> dict[tuple[str, str, str], str]:
    """What stands near before and near after each token of a clause."""
    found = {}
    for clause in reading.clauses:
        line: list[Token] = [token for token in clause if token.sort is not TokenType.STOP]
        for at, middle in enumerate(line):
            for left in line[max(0, at - _WINDOW) : at]:
                for right in line[at + 1 : at + 1 + _WINDOW]:
                    said = f"{left.shown} {middle.shown} {right.shown}"
                    found[left.key, middle.key, right.key] = one_line(said, _SHOWN)
    return found


def _told(sentences: list[tuple[Sentence, bool]]) -> tuple[str, ...]:
    return tuple(
        one_line(" ".join(token.shown for clause in sentence for token in clause), 2 * _SHOWN)
        for sentence, _ in sentences
    )
