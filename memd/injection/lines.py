"""Choose which memories are worth a line at a session's start, before the session has said what it is about. Pure.

A line is read by somebody who was not there. So it names what it is about (`remove this again` does not), an
outcome says what was achieved (`the issue might be …` does not), and what one turn decided and did is told once.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from memd.belief.changes import says_turn
from memd.belief.polarity import has_negation, is_negation, list_conditions, list_folded
from memd.belief.standing import find_other_scope
from memd.distill.own_words import VERBS
from memd.distill.proof.objections import claims_fix
from memd.distill.text import is_question, split_sentences
from memd.index import passages
from memd.injection.choice import TITLES_CACHED, CandidateGroup, measure_age
from memd.injection.learned import SaidSentence, is_told
from memd.languages import has_unspaced
from memd.models import Authority, Kind
from memd.store import ContextCandidate
from memd.store.session_context import COMMITS, LEFT_OPEN
from memd.text import (
    content_stems,
    find_sentence_ends,
    first_word,
    fold,
    is_stop_word,
    one_line,
    stem,
    unique,
    words,
)

TITLE_CHARACTERS = 240
"""Maximum characters of a title completed to its whole sentence: half of a rule may be another rule."""
OUTCOMES_MAX = 3
"""Sessions of which the last thing that they did is shown: where the work was left."""
OUTCOME_KINDS = {Kind.CHANGE, Kind.FIX}
_TOLD_KINDS = OUTCOME_KINDS | {Kind.DECISION, Kind.TASK}
_CUT_WORDS = 4
"""The last words of a title that was cut off, by which its place in the body is found."""
_CLAUSE_CHARACTERS = 80
"""What is read before these words, to tell an abbreviation from a sentence's end."""
_LEFT_MIN = 0.4
"""The share of a sentence that must be left of it."""
_ASIDE = re.compile(r"\s+\([^()`]+\)(?=[\s,.;:]|$)")
_CLAUSE_WORDS_MIN = 3
"""Words before a colon without which they only name what follows it."""
_REASON = re.compile(
    r",?\s+(?:because|weil|parce que|porque|perché|omdat|ponieważ|потому что)\s"
    r"|,?\s+(?:since|so that|in order to|although|even though)\s|,\s+(?:as|like|e\.g\.|i\.e\.)\s",
    re.IGNORECASE,
)
"""Where a sentence begins to say why, and has said what."""
_BECAUSE = re.compile(
    r"\b(?:because|weil|parce qu(?:e\b|['’])|porque|perché|omdat|ponieważ|потому что)",
    re.IGNORECASE,
)
_REST = re.compile(
    r"[;:]\s+|\s+[–—]\s+|,\s+(?:so|while|where|\w{3,}ing)\s|,?\s+(?:instead of|rather than|which|whereas)\s",
    re.IGNORECASE,
)
"""The start of a part that the sentence does not need, unless that denies or sets a condition."""
_PASSED, _FAILED = "→ ok", "→ failed"
"""How a body notes what came of a command."""
_STATEMENT_WORDS_MIN, _REMINDER_WORDS_MIN = 3, 2
"""Minimum content words of a statement that says what it is about; two suffice if one is a name."""
_NAME = re.compile(r"(?<=\s)[A-Z]\w+|`")
_WORDS_BEFORE_POINTER = 2
"""Content words before a pronoun among which there is a noun that it can stand for."""
_SHARED_STEMS_MIN = 2
_SHARED_PART = 1 / 3
"""From this share of the shorter of two titles on, two lines of one session tell of the same."""
_LABEL = re.compile(r"^(?:chosen|agreed|declined|decided|to be continued):\s+", re.IGNORECASE)
_DECLINED = re.compile(r"^declined:", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|its|them|they|he|she|one|ones)\b", re.IGNORECASE)
_DEMONSTRATIVE = re.compile(
    r"\b(?:these|those|above|below)\b|^that\b|\bthat\W*$|^here(?:['’]s| is| are)\b"
    r"|\bthis\b(?! (?:repo(?:sitory)?|project|codebase|machine|account|company|team)\b)",
    re.IGNORECASE,
)
"""What points at something; between two clauses `that` only joins them."""
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
_ADDRESS = re.compile(r"\b(?:I(?=['’]|\s+[a-z])|(?i:my|me|you|yours?))\b")
"""What speaks to somebody who is there: words of a chat, not of a report."""
_ASKED = re.compile(r"^Assistant asked: “(.+)”$", re.MULTILINE)
_ANSWER = re.compile(r"(.+?) \((.+)\)$")
"""The title of an answer to the client's own question, which follows it in brackets."""
_ANSWERED = " → "
_ANSWER_CHARACTERS = 120
_QUESTION_CHARACTERS = 50
"""Maximum characters kept of a question that is shortened."""
_COMMITS_SHOWN = 2
_ANSWERED_WITH = re.compile(r"^(?:Answered|Said last): ", re.MULTILINE)
_NEXT_FIELD = re.compile(
    r"^(?:Said (?:on the way|before or after)|Refused|Broken off by|Not run"
    r"|Open|Files|Committed|(?:\S+ r|R)an|Set|Passed here|\S+ reported)\b.*:",
    re.MULTILINE,
)
"""What follows the closing message in a body."""
_OPENING_CHARACTERS, _DONE_SHARE, _TITLE_SHARE, _OPEN_SHARE = 200, 0.65, 0.8, 0.5
"""So much of an answer says what was done. By these shares every sixteenth of the late sentences of seven people was done, and
1 in 20 of these was wanted, 1 in 9 of all; by half of the words, or by what later turns say, the wanted went, too."""
_FIX = re.compile(r"fix(?:e[sd])?\b", re.IGNORECASE)
"""How the subjects of commits begin that fix something."""
_LACK = re.compile(
    r"[^\W\d_]\s+(?<!that )(?<!which )(?<!who )(?:is|are|does|has|have)(?:n['’]t|\s+(?:\w+\s+)?not)\b"
    r"|\bI (?:(?:do|can)(?:n['’]t| not)|cannot)\b",
    re.IGNORECASE,
)
"""A verb that states something of today, denied behind its subject."""
_LACKING = list_folded("lacking")
_HAS_NONE = re.compile(
    r"\b(?:there(?:['’]s| is| are)|(?:we|it|they) (?:still )?(?:have|has)) (?:still )?no\b",
    re.IGNORECASE,
)
_SOLVED_SHARE = 0.7
"""The share of the words of what is lacking that the later work names which brought it."""
_NO_LONGER = re.compile(
    r"\b(?:no longer|any ?more|nicht mehr|ya no|já não|non [^.]*\bpiù|niet meer)\b", re.IGNORECASE
)
"""What says of what was wrong that it is over."""
_COMMIT_TYPE = re.compile(r"^\w+(?:\([^)]*\))?!?:\s+")
_REVERT = re.compile(r"revert(?:ed|s|ing)?\b", re.IGNORECASE)
"""How git and commit messages begin that take back what an earlier commit did."""
_TURNED_SHARE = 0.6
"""The share of the stems of what was done that what turns it names."""
_TAKES_AWAY = frozenset(
    """remove removes removed drop drops dropped skip skips hide hides hidden exclude excludes excluded omit omits
    omitted""".split()  # noqa: SIM905
)
_LASTING = list_folded("frequencies") | list_folded("conditions")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?=[\s,:]|$)")
_PAIRS = (("“", "”"), ("(", ")"), ("«", "»"))
_SUBJECT = re.compile(r"^[^\s:][^:]{0,60}:\s+(?=\S)")
"""What a title is about, before what it says of it: `Sessions: move them to Redis` says what they are."""


@functools.lru_cache(TITLES_CACHED)
def stands_alone(title: str, least: int = _STATEMENT_WORDS_MIN) -> bool:
    """Return whether a statement makes sense to a reader who has not seen what was said before it.

    `least`: the content words that it has at least; of names and paths one less.
    """
    bare = _LABEL.sub("", title)
    prose = _CODE.sub(" code ", bare)
    least -= bool(_NAME.search(bare) or passages.entities_of_text(bare))
    if "[REDACTED" in bare or count_content_words(bare) < least or _DEMONSTRATIVE.search(prose):
        return False
    pronoun = _PRONOUN.search(prose)
    if pronoun is None or _SUBJECT.match(prose):
        return True
    return count_content_words(prose[: pronoun.start()]) > _WORDS_BEFORE_POINTER


def count_content_words(text: str) -> int:
    """Count the content words; a path or a name is one."""
    found = (word.strip(".,;:!?()\"'`*") for word in text.split())
    return len(
        {fold(word) for word in found if any(map(str.isalnum, word)) and not is_stop_word(word)}
    )


def write_statements(one: ContextCandidate) -> Iterator[str]:
    """Yield what the line of a memory may say, for a reader who was not there, the best first.

    Work is told by the commits that it made, which were written for strangers; an answer with its question.
    """
    if one.commits and one.kind in OUTCOME_KINDS and one.authority is not Authority.USER_HAND:
        told = one_line("; ".join(one.commits[-_COMMITS_SHOWN:]), TITLE_CHARACTERS)
        reason = _find_reason(one)
        if reason and len(told) + len(reason) + 2 <= TITLE_CHARACTERS:
            yield f"{told}, {reason}"
        yield told
        one = replace(one, commits=())
        if not _tells_work(one) or count_content_words(_CODE.sub(" ", one.title)) < _STATEMENT_WORDS_MIN:  # fmt: skip
            return
    yield _write_statement(one)


def _find_reason(one: ContextCandidate) -> str:
    """The reason that the answer gives for what was committed, from `because` on; empty if it gives none, or tells it already."""
    done = content_stems(" ".join(one.commits))
    for sentence in split_sentences(read_answer(one.body)):
        found = _BECAUSE.search(sentence)
        before = sentence[: found.start()] if found else ""
        if found and not denies(before) and not set(done).isdisjoint(content_stems(before)):
            reason = sentence[found.start() :].strip(" .*_")
            is_unfit = reason.endswith("…") or _is_open(reason) or _ADDRESS.search(reason)
            return "" if is_unfit or is_told(reason, one.commits) else reason
    return ""


def _write_statement(one: ContextCandidate) -> str:
    asked, answer = _ASKED.search(one.body), _ANSWER.match(one.title)
    if asked and answer:
        said = complete_title(answer[1], one.body, _ANSWER_CHARACTERS)
        whole = (text for text in split_sentences(asked[1]) if is_question(text))
        alone = (text for text in whole if stands_alone(text) and len(text) <= _ANSWER_CHARACTERS)
        return f"{next(alone, answer[2])}{_ANSWERED}{said}"
    return complete_title(one.title, one.body, TITLE_CHARACTERS)


@functools.lru_cache(TITLES_CACHED)
def complete_title(title: str, body: str, limit: int) -> str:
    """A title that was cut off, with the rest of its sentence from the body, in at most this many characters."""
    if not title.endswith("…") and not _is_open(title):
        return title
    begun = title.removesuffix("…").rstrip()
    words = begun.split()[-_CUT_WORDS:]
    found = re.search(r"\s+".join(map(re.escape, words)), body, re.IGNORECASE)
    if len(words) < _CUT_WORDS or not found:
        return title
    before = " ".join(body[max(found.start() - _CLAUSE_CHARACTERS, 0) : found.end()].split())
    line = before + re.split(r"[\n”]", body[found.end() :], maxsplit=1)[0]
    ends = (end for end in find_sentence_ends(line) if end > len(before) or end == len(line))
    whole = [begun + line[len(before) : end].rstrip(" .:") for end in ends]
    return cut_line(next((one for one in whole if not _is_open(one)), whole[0]), limit)


def cut_line(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters, cut before a piece of code rather than in it."""
    cut = one_line(text, limit)
    begun = cut.rpartition("`")[0].rstrip(" (")
    is_inside = cut.count("`") % 2 and cut.endswith("…") and len(begun) >= _LEFT_MIN * limit
    return f"{begun}…" if is_inside else cut


def _is_open(text: str) -> bool:
    """Return whether a quotation, code or bracket begins in a text and does not end in it."""
    is_odd = any(text.count(sign) % 2 for sign in ('"', "`"))
    return is_odd or any(text.count(start) > text.count(end) for start, end in _PAIRS)


@functools.lru_cache(TITLES_CACHED)
def drop_project(text: str, project: str) -> str:
    """The text without the name of the project before it, which the page names: `memd: releases come from main`."""
    name = r"[-_ ]?".join(map(re.escape, re.split(r"[-_ ]", project)))
    topic = rf"{name}(?=(?: [\w./#-]+){{0,3}}: )|(?:in|for) {name}(?:,| (?=\w))"
    begun = re.match(rf"(?:{topic})[ :,]*", text, re.IGNORECASE) if project else None
    rest = text[begun.end() :] if begun else ""
    if not rest:
        return text
    return rest[0].upper() + rest[1:] if _PLAIN_WORD.match(rest) else rest


@functools.lru_cache(TITLES_CACHED)
def shorten_sentence(text: str, limit: int, *, is_rule: bool = False) -> str:
    """The sentence in about this many characters if its syntax allows that, else as short as it allows.

    An ellipsis says that the end is gone. Of a rule only asides and reasons are left out: half of one may be another.
    """
    if len(text) <= limit:
        return text
    asked, is_answer, answer = text.rpartition(_ANSWERED)
    if is_answer:
        return (
            f"{one_line(asked, max(limit - len(answer), _QUESTION_CHARACTERS))}{_ANSWERED}{answer}"
        )
    bare = text
    for aside in reversed(list(_ASIDE.finditer(text))):
        if text.count("`", 0, aside.start()) % 2 == 0:
            bare = bare[: aside.start()] + bare[aside.end() :]
            if len(bare) <= limit:
                return bare
    ends = list(_find_ends(bare, is_rule=is_rule))
    fitting = [end for end in ends if end < limit]
    return f"{bare[: max(fitting) if fitting else min(ends)]}…" if ends else bare


def _find_ends(text: str, *, is_rule: bool) -> Iterator[int]:
    """Yield where the sentence may end: before a reason, or before an addition that neither denies nor sets a condition."""
    for rest in (*_REASON.finditer(text), *(() if is_rule else _REST.finditer(text))):
        start, tail = rest.start(), text[rest.end() - 1 :]
        is_needed = rest.re is _REST and (has_negation(tail) or any(list_conditions(tail)))
        is_inside = text.count("`", 0, start) % 2 or text.count("(", 0, start) > text.count(")", 0, start)  # fmt: skip
        clause = re.split(r"[;–—]\s", text[:start])[-1]
        is_begun = rest[0].startswith(":") and len(clause.split()) < _CLAUSE_WORDS_MIN
        if start >= _LEFT_MIN * len(text) and not (is_inside or is_needed or is_begun):
            yield start


def is_done(text: str, work: Iterable[tuple[str, str]], share: float = _DONE_SHARE) -> bool:
    """Return whether one of these pieces of work, (title, body), did what a sentence asks for.

    It did if its outcome says so, or if it is titled by nothing but the request and nothing of it was left or refused.
    """
    return any(
        _covers(read_outcome(body), text, share)
        or (
            _covers(title, text, _TITLE_SHARE)
            and _covers(text, title, _TITLE_SHARE)
            and not LEFT_OPEN.search(body)
            and not any(map(_is_no_outcome, _split_opening(body)))
        )
        for title, body in work
    )


def is_solved(
    text: str,
    work: Iterable[tuple[str, str]],
    later: Iterable[tuple[str, str]] = (),
    *,
    went_on: bool,
) -> bool:
    """Return whether what a sentence reports was solved, and it sets no limit.

    It was if the sentence says what is not as it should be and its session went on to change something, if its own work,
    (title, body), says that it fixed something, or if it says what is missing or fails and later work names most of that.
    """
    if any(fold(word) in _LASTING for word in words(text)):
        return False
    if names_lack(text) and _is_named(text, later):
        return True
    if reports_lack(text):
        return went_on
    return not denies(text) and any(
        _FIX.match(told) or claims_fix(told)
        for title, body in work
        for told in (title, *read_outcome(body).split("\n"))
    )


def names_lack(text: str) -> bool:
    """Return whether a sentence says of something that it is not there or does not work, and orders nothing."""
    is_told = reports_lack(text) or any(fold(word) in _LACKING for word in words(text))
    return (is_told or _HAS_NONE.search(text) is not None) and first_word(text) not in VERBS


def _is_named(text: str, work: Iterable[tuple[str, str]]) -> bool:
    """Return whether the title or the outcome of a piece of work has most of the words of what is lacking."""
    lacking = {stem(word) for word in _LACKING}
    named = " ".join(one for one in content_stems(text) if one not in lacking)
    return named.count(" ") > 0 and any(
        _covers(f"{title}\n{read_outcome(body)}", named, _SOLVED_SHARE) for title, body in work
    )


def reports_lack(text: str) -> bool:
    """Return whether a sentence says what somebody saw not to be so: `the menu is not shown`, and not `do not show the menu`."""
    found = _LACK.search(text)
    return found is not None and not denies(text[: found.start()])


def _covers(told: str, text: str, share: float) -> bool:
    asked = set(content_stems(text))
    return len(asked.intersection(content_stems(told))) >= share * len(asked)


def _split_opening(body: str) -> Iterable[str]:
    return split_sentences(read_answer(body)[:_OPENING_CHARACTERS])


def _is_no_outcome(sentence: str) -> bool:
    return (denies(sentence) and not _NO_LONGER.search(sentence)) or is_question(sentence)


def read_answer(body: str) -> str:
    """Read the closing message that the body of a turn has; empty without one."""
    answer = _ANSWERED_WITH.search(body)
    return _NEXT_FIELD.split(body[answer.end() :], maxsplit=1)[0] if answer else ""


def read_outcome(body: str) -> str:
    """Read what came of a piece of work: the opening of its answer but what is not done, and the subjects of its commits."""
    left = "".join(LEFT_OPEN.findall(body))
    opening = _split_opening(body)
    done = (one for one in opening if one not in left and not _is_no_outcome(one))
    return "\n".join((*done, *COMMITS.findall(body)))


def denies(text: str) -> bool:
    """Return whether a sentence has a negation other than that something is to be taken away, which is done once."""
    return any(is_negation(word) and fold(word) not in _TAKES_AWAY for word in words(text))


def limits(text: str) -> bool:
    """Return whether a sentence denies, sets a condition, or tells how often: a limit or a custom, which nothing that is done ends."""
    return denies(text) or any(fold(word) in _LASTING for word in words(text))


def drop_spoken(group: CandidateGroup, said: Sequence[SaidSentence]) -> CandidateGroup:
    """Leave out of the titles of work what is told as the user's own words, and the work that says no more."""
    rests = [(one, find_rest(one.title, said)) for one in group.candidates]
    kept = (replace(one, title=rest or one.title) for one, rest in rests if rest or one.left_open)
    return replace(group, candidates=tuple(kept))


def find_rest(title: str, said: Iterable[SaidSentence]) -> str:
    """Return what a title says besides the user's sentence that it is, or that sets a limit and leads it."""
    for one in said:
        text = one.text.rstrip(".!? ")
        rest = title[len(text) :].lstrip(".!?:; ")
        if title[: len(text)].casefold() == text.casefold() and (not rest or limits(one.text)):
            return rest
    return title


def drop_done(outcomes: Sequence[ContextCandidate]) -> list[ContextCandidate]:
    """Drop from what each piece of work left open what a later one did."""
    told = [(one.at, one.title, one.body) for one in outcomes]
    return [
        replace(
            one,
            left_open=tuple(
                left
                for left in one.left_open
                if not is_done(
                    left, ((title, body) for at, title, body in told if at > one.at), _OPEN_SHARE
                )
            ),
        )
        if one.left_open
        else one
        for one in outcomes
    ]


def gather_open(outcomes: Sequence[ContextCandidate]) -> list[ContextCandidate]:
    """Tell what the pieces of work of a session left open with the latest that tells what was done; `outcomes`: latest first.

    Where later work of the session went on, in the same files or on the same subject, that work says what is open.
    """
    left: dict[int | None, list[str]] = {}
    later: dict[int | None, list[ContextCandidate]] = {}
    for one in outcomes:
        since = later.setdefault(one.session_id, [])
        if one.left_open and not any(_goes_on(other, one) for other in since):
            answers = [read_answer(other.body) for other in since]
            new = [text for text in one.left_open if not any(_covers(said, text, _OPEN_SHARE) for said in answers)]  # fmt: skip
            left.setdefault(one.session_id, []).extend(new)
        since.append(one)
    tell = {number: next(filter(_tells_work, later[number]), later[number][0]).id for number in left}  # fmt: skip
    return [
        replace(one, left_open=tuple(unique(left[one.session_id])))
        if tell.get(one.session_id) == one.id
        else replace(one, left_open=())
        if one.left_open
        else one
        for one in outcomes
    ]


def _goes_on(later: ContextCandidate, earlier: ContextCandidate) -> bool:
    return not set(later.edited).isdisjoint(earlier.edited) or tells_the_same(later, earlier)


def drop_turned(
    outcomes: Sequence[ContextCandidate], statements: Iterable[ContextCandidate]
) -> list[ContextCandidate]:
    """Drop the work, and of several commits those, that later work took back or a later statement turned."""
    said = [(one.at, one.title) for one in statements]
    said += [(one.at, text) for one in outcomes for text in one.commits or (one.title,)]
    turning = [(at, stems) for at, text in said if (stems := _list_turned_stems(text))]
    if not turning:
        return list(outcomes)

    def is_turned(one: ContextCandidate, done: str) -> bool:
        stems = set(content_stems(_COMMIT_TYPE.sub("", done)))
        least = max(_SHARED_STEMS_MIN, _TURNED_SHARE * len(stems))
        return any(at > one.at and len(stems & named) >= least for at, named in turning)

    kept = []
    for one in outcomes:
        commits = tuple(text for text in one.commits if not is_turned(one, text))
        if commits or not (one.commits or is_turned(one, one.title)):
            kept.append(replace(one, commits=commits))
    return kept


@functools.lru_cache(TITLES_CACHED)
def _list_turned_stems(text: str) -> frozenset[str]:
    """The stems of what takes something back, or says that it is otherwise now; none of any other text."""
    turns = _REVERT.match(text) or (says_turn(text) and has_negation(text))
    return frozenset(content_stems(text)) if turns else frozenset()


def find_unfit(
    groups: Iterable[CandidateGroup],
    turn_bodies: Mapping[int, str],
    now: int,
    session_id: int | None = None,
) -> tuple[dict[int, str], set[int]]:
    """Return why candidates are not worth a line, id → reason, and the work that its session, or others since, went on from.

    `turn_bodies`: failure → the outcome of its turn. `session_id` is the session that starts, if the vault knows it.
    """
    candidates = {one.id: one for group in groups for one in group.candidates}.values()
    of_kind = {kind: [one for one in candidates if one.kind is kind] for kind in Kind}
    freshest = sorted(candidates, key=lambda one: (measure_age(one, now), -one.id))
    outcomes = [one for one in freshest if one.kind in OUTCOME_KINDS]
    last = _find_last_sessions(freshest)
    unfit = {
        one.id: why
        for one in candidates
        if not one.is_pinned
        and (
            why := _why_redacted(one)
            or (one.episode and _why_not_in_session(one, session_id))
            or (one.episode and _why_unfit(one, outcomes, turn_bodies, last))
        )
    }
    told = [one for one in of_kind[Kind.DECISION] + of_kind[Kind.TASK] if one.id not in unfit]
    for one in outcomes:
        twin = next((other for other in told if tells_the_same(one, other)), None)
        if twin is not None and not one.left_open:
            unfit.setdefault(one.id, f"#{twin.id} says it")
    chosen: dict[int | None, int] = {}
    for one in outcomes:
        if one.id not in unfit and len(chosen) < OUTCOMES_MAX:
            chosen.setdefault(one.session_id, one.id)
    return unfit, {one.id for one in outcomes}.difference(unfit, chosen.values())


def _why_redacted(one: ContextCandidate) -> str | None:
    """Return why what it says is not told: a password or number that nobody can read was its point."""
    return "a part of it is private" if "[REDACTED" in one.title else None


def _why_not_in_session(one: ContextCandidate, session_id: int | None) -> str | None:
    """Return why what a user said for one session alone does not hold in this one; None if it may."""
    return find_other_scope(one.tags, one.session_id, session_id, None)


def _why_unfit(
    one: ContextCandidate,
    outcomes: Sequence[ContextCandidate],
    turn_bodies: Mapping[int, str],
    last: Sequence[int | None],
) -> str | None:
    """Return why something that was distilled from a turn is not worth a line; None if it is."""
    match one.kind:
        case Kind.DECISION | Kind.TASK:
            return _why_statement_unfit(one, last)
        case Kind.FAILURE:
            return _why_failure_unfit(one, outcomes, turn_bodies.get(one.id, ""))
        case Kind.CHANGE | Kind.FIX:
            return None if _tells_work(one) else "it says nothing without what was said before it"
        case _:
            return None


def _tells_work(one: ContextCandidate) -> bool:
    """Return whether the line of a change is a whole sentence that reports, to a reader who was not there."""
    said = _write_statement(one)
    if one.commits or one.authority is Authority.USER_HAND:  # a title of the user's own
        return True
    is_whole = (
        (len(said.split()) > 1 or has_unspaced(said))
        and not said.endswith("…")
        and not _is_open(said)
    )
    is_of_files = _names_files_alone(one.title, one.edited)
    return (
        is_whole
        and not is_of_files
        and stands_alone(said)
        and not _ADDRESS.search(_CODE.sub(" ", said))
    )


def _names_files_alone(title: str, edited: Sequence[str]) -> bool:
    """Return whether a title has nothing but the files that were changed, which git tells as well."""
    names = title.removeprefix("Changed ").split(", ")
    return names != [title] and all(any(path.endswith(name) for path in edited) for name in names)


def _why_stale(one: ContextCandidate, last: Sequence[int | None]) -> str | None:
    """Return why a memory is not fresh; what was achieved since then is fresher."""
    is_old = one.session_id is not None and one.session_id not in last
    return "older than the last sessions that achieved something" if is_old else None


def _find_last_sessions(freshest: Iterable[ContextCandidate]) -> list[int | None]:
    """The last few sessions that achieved or decided something, the latest first."""
    told = [one for one in freshest if one.kind in _TOLD_KINDS and one.session_id is not None]
    return list(dict.fromkeys(one.session_id for one in told))[:OUTCOMES_MAX]


def _why_statement_unfit(one: ContextCandidate, last: Sequence[int | None]) -> str | None:
    # What he asked to be reminded of was said to be understood later, and stands until it is done.
    is_reminder = one.kind is Kind.TASK and one.authority >= Authority.USER_PROMPT
    if not stands_alone(one.title, _REMINDER_WORDS_MIN if is_reminder else _STATEMENT_WORDS_MIN):
        return "it says nothing without what was said before it"
    if _DECLINED.search(one.title):
        return "it tells what was not done"
    return _why_stale(one, last) if one.kind is Kind.TASK and not is_reminder else None


def _why_failure_unfit(
    one: ContextCandidate, outcomes: Sequence[ContextCandidate], turn_body: str
) -> str | None:
    latest = next((other.session_id for other in outcomes), one.session_id)
    if one.session_id != latest:
        # What an earlier session left open was solved since, or is accepted, or belongs to code that is gone.
        return "a later session achieved something"
    if any(other.episode == one.episode for other in outcomes):
        return "its turn came to something"
    if turn_body.rfind(_FAILED) <= turn_body.rfind(_PASSED):
        return "its turn did not end with it"
    return None


def tells_the_same(one: ContextCandidate, other: ContextCandidate) -> bool:
    """Return whether two lines of one session are about the same: what was decided, and that it was done."""
    if one.session_id is None or one.session_id != other.session_id:
        return False
    mine, others = _list_told_stems(one.title), _list_told_stems(other.title)
    shared = len(mine & others)
    return shared >= _SHARED_STEMS_MIN and shared >= _SHARED_PART * min(len(mine), len(others))


@functools.lru_cache(TITLES_CACHED)
def _list_told_stems(title: str) -> frozenset[str]:
    return frozenset(content_stems(_LABEL.sub("", title)))
