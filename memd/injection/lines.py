"""Which memories are worth a line at a session's start, before the session has said what it is about. Pure.

A line is read by somebody who was not there. So it names what it is about (`remove this again` does not), an
outcome says what was achieved (`the issue might be …` does not), and what one turn decided and did is told once.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from memd.belief.scopes import find_other_scope
from memd.index import entities
from memd.injection.choice import DAY_MS, TITLES_CACHED, CandidateGroup, measure_age
from memd.models import Kind
from memd.store.types import ContextCandidate
from memd.text import content_stems, fold, is_stop_word, normalised, one_line

OUTCOMES_OF_SESSION = (2, 1, 1)
"""How many outcomes are shown of the last session that achieved something, and of those before it."""
_SESSIONS_MAX = 4
"""Sessions that changed something among which those with an outcome are looked for."""
_OUTCOME_KINDS = {Kind.CHANGE, Kind.FIX}
_TOLD_KINDS = _OUTCOME_KINDS | {Kind.DECISION, Kind.TASK}
_CUT_WORDS = 4
"""The last words of a title that was cut off, by which its place in the body is found."""
_SENTENCE_REST = re.compile(r"(?:[^.!?\n”]|[.!?](?![\s”]|$))+[.!?]?")
_PASSED, _FAILED = "→ ok", "→ failed"
"""How a body notes what came of a command."""
_STATEMENT_WORDS_MIN = 3
"""Content words that a statement needs to say of what it states something; of two one is a name."""
_OPTION_WORDS_MAX = 6
_NAME = re.compile(r"(?<=\s)[A-Z]\w+|`")
_WORDS_BEFORE_POINTER = 2
"""Content words before a pronoun among which there is a noun that it can stand for."""
_SHARED_STEMS_MIN = 2
_SHARED_PART = 1 / 3
"""From this share of the shorter of two titles on, two lines of one session tell of the same."""
_OUTCOME_RATING_MIN = 2.0
_COMMIT_RATING = 1.5
"""The subject of a commit tells of all that was done, a sentence often of a part."""
_LABEL = re.compile(r"^(?:chosen|agreed|declined|decided|to be continued):\s+", re.IGNORECASE)
_CHOSEN = re.compile(r"^(?:chosen|agreed):\s+", re.IGNORECASE)
_STEP = re.compile(
    r"^(?:next|skip|continue|proceed|done|yes|yeah|no|ok|okay|sure|more|stop|go|ready|looks? good|approved?|commit|push|merge|let'?s (?:commit|push|go|do|try|see)"
    r"|lets|all of (?:them|the above)|both|none|start|finish|wait|show|explain|resume|retry|use (?:it|that|this))\b(?!\s*`)",
    re.IGNORECASE,
)
"""How a choice of the next step begins, which says nothing of what is built."""
_ORDER = re.compile(
    r"^(?:(?:please|also|then|now|and|to)\W+)*(?:modify|do|add|fix|create|update|check|implement|make an?|test|run|look|look at|branch)\b|^to\b",
    re.IGNORECASE,
)
_RULES = re.compile(
    r"\b(?:always|never|only|not|no|don'?t|instead|rather|every|each|all|must|should)\b",
    re.IGNORECASE,
)
"""What says how things are to be, in what begins like an order of one turn: its outcome tells of an order."""
_REPORT = re.compile(
    r"^(?:(?:ok|so|well|hm+|and|but|it)\W+)*(?:(?:it )?(?:looks?|seems?|sounds?|appears?) (?:like|that|to)|maybe|perhaps|apparently"
    r"|i(?:'m| am| was| have| had| got| just| did| see| saw| know| guess| thought)"
    r"|i (?:\w+ )?(?:don'?t|didn'?t|couldn'?t|can'?t) (?:need|have|know|see|think|get|find|remember))\b",
    re.IGNORECASE,
)
"""How somebody tells how things are with him, and no rule."""
_DECLINED = re.compile(r"^declined:", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|its|them|they|he|she|one|ones)\b", re.IGNORECASE)
_DEMONSTRATIVE = re.compile(
    r"\b(?:these|those)\b"
    r"|\bth(?:is|at)\b(?! (?:repo(?:sitory)?|project|codebase|machine|account|company|team)\b)",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(
    r"\b(?:so|such|given|means?|says?|said|states?|sure|ensure|assume|know|think|like|in order|the fact|except)"
    r"(?: \w+)? that\b|\w{4,} that (?=(?:the|a|an|we|i|you|every|all|no|each|are|is|has|have|can|\w+s)\b)",
    re.IGNORECASE,
)
"""Where `that` joins two clauses and points at nothing."""
_POINTS_AT_TALK = re.compile(
    r"\b(?:do|did|does|doing) the same\b|\b(?:as (?:they|it) (?:were|was|is|are)|above|below|as discussed|the (?:former|latter|other one)"
    r"|(?:first|second|third|last|other) (?:one|option|approach|variant)|option \w)\b\W*$",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
_SUBJECT = re.compile(r"^[^\s:][^:]{0,60}:\s+(?=\S)")
"""What a title is about, before what it says of it: `Sessions: move them to Redis` says what they are."""
_ACT = re.compile(
    r"^(?:\d+ )?(?:(?:successfully|also|just|fully|completely|finally|i|we|i've|we've|have|has|both|all|and)\s+){0,2}"
    r"(?!required|needed|based|related|unrelated|proposed|planned|expected|recommended|suggested|detailed|advanced|nested|limited|mixed)"
    r"(?:re|un|de|in|up|over|out)?-?(?:\w{2,}ed|built|made|wrote|rewrote|found|took|put|set|split|cut|left|got|sent|chose|kept|brought|"
    r"bumped|taught|gave|let|began|did|ran|reran|hid|drew|lent|sped|sought|held|fed|rebuilt|new)\b"
    r"(?! (?:by|on|to|in|at|with) the\b)",
    re.IGNORECASE,
)
_ACT_LABEL = re.compile(
    r"^(?:added|removed|fixed|created|renamed|replaced|moved|implemented|refactored|dropped|extracted|extended|rewritten)\s*:",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"\b(?:now|no longer|instead of|anymore|has been|have been|is (?:complete|done|fixed|gone|in place)"
    r"|(?:was|were|are|is|gets?|got) (?:\w+ly )?(?:added|removed|fixed|moved|renamed|replaced|updated|created|merged|split"
    r"|rewritten|extended|documented|implemented|reverted|released|deployed|published|committed|preserved|cleaned)"
    r"|resolved|documents|the fix was \w+ing)\b|→|^\S+(?: \S+){0,3} \w{3,}ed\b",
    re.IGNORECASE,
)
_PLACE_ONLY = re.compile(
    r"^(?:the fix is a|modified files:?|(?:changed|modified|updated|edited|added a|imported))\s+(?:\S+ change in )?(?:code(?:,? and |,? )?)+(?: (?:in|at)\b.*)?\W*$",
    re.IGNORECASE,
)
"""What says where something was changed, and not what."""
_UNDONE = re.compile(
    r"^(?:let me|let's|heads?[- ]?up\b|implement the|imagine|(?:please )?commit|good|great|perfect|excellent|okay|now (?:let|i|the)|i (?:have|will|need|can|should|see|think)|i'll|i'm|next|run|try|first|then|plus|open|you|changed from:"
    r"|(?:it|this|that|these|those|they|there|here)\b|when\b|if\b|since\b|because\b)"
    r"|\b(?:might|maybe|perhaps|probably|could be|should be|was already|were already|will be|would|seems?|you (?:should|can|will|may|need))\b|\?\W*$",
    re.IGNORECASE,
)
"""What is intended, supposed, was so before, or points back."""
_PROPOSES = re.compile(
    r"\b(?:propos\w+|recommend\w*|suggest\w*|cleanest|simplest|best (?:fix|option|approach|solution)|should|options?\b(?! `))\b",
    re.IGNORECASE,
)
_EDITED = re.compile(r": edited \S+(?:, \S+)*…?$")
"""`Sort the orders: edited orders.py`: what was asked, and done."""
_UPKEEP = re.compile(r"^(?:chore|style|ci|build|lint|fmt|gofmt|format\w*|wip)\b", re.IGNORECASE)
_MINOR = re.compile(
    r"\b(?:comments?|import(?:s|ed)?|typos?|formatting|whitespace|unused)\b", re.IGNORECASE
)
_CHORE = re.compile(
    r"^(?:successfully |all )?(?:committed|pushed|merged|rebased|opened|checked out|switched|branched|logged|staged|on `|pr \W?\d|commit:?\s|(?:\w+ ){0,2}todos? (?:logged|added|created)"
    r"|(?:created|opened|updated) (?:a |the )?(?:new )?(?:pr|pull request|branch|commit|todo|issue)\b)",
    re.IGNORECASE,
)
"""What was done with the work and not in it."""
_EMPTY = re.compile(
    r"\b(?:no (?:outstanding|remaining|more|other|lint\w*|build)? ?(?:issues|errors|problems|warnings|changes)|all (?:\w+ ){0,3}(?:pass|passed|passing|green)"
    r"|tests? pass\w*|all clean|\d+ passed|success|explains?|as follows|ready (?:for|to))\b",
    re.IGNORECASE,
)
"""What says that it is done and not what."""
_OPEN_END = re.compile(
    r"\b(?:to|that|for|if|when|than|like|because|in|with|of|by|the|a|an|as|and|or|from|on|at|is|are|was|were|shows?|documents"
    r"|its|their|which|where|what|how|describes?|covers?|covering|includes?|including|returns?)\W*$",
    re.IGNORECASE,
)


@functools.lru_cache(TITLES_CACHED)
def stands_alone(title: str) -> bool:
    """Whether a statement means something to somebody who did not hear what was said before it."""
    bare = _LABEL.sub("", title)
    if _is_answer(title, bare) or _REPORT.match(bare) or "[REDACTED" in bare:
        return False
    prose = _CODE.sub(" code ", bare)
    least = _STATEMENT_WORDS_MIN - bool(_NAME.search(bare) or entities.entities_of_text(bare))
    if _count_content_words(bare) < least or _POINTS_AT_TALK.search(prose):
        return False
    if _DEMONSTRATIVE.search(_CONJUNCTION.sub(" ", prose)):
        return False
    pronoun = _PRONOUN.search(prose)
    if pronoun is None or _SUBJECT.match(prose):
        return True
    return _count_content_words(prose[: pronoun.start()]) > _WORDS_BEFORE_POINTER


def _is_answer(title: str, bare: str) -> bool:
    """Whether it is an order of its turn, or a choice that answers only its question.

    Such a choice is the next step, or what somebody typed in place of an option.
    """
    if bare == title:
        return _ORDER.match(bare) is not None and _RULES.search(bare) is None
    # An option begins with a capital or a name.
    is_typed = bare[:1].islower() and len(bare.split()) > _OPTION_WORDS_MAX
    return _STEP.match(bare) is not None or (_CHOSEN.match(title) is not None and is_typed)


def _count_content_words(text: str) -> int:
    """The words that say something; a path or a name is one."""
    found = (word.strip(".,;:!?()\"'`*") for word in text.split())
    return len(
        {fold(word) for word in found if any(map(str.isalnum, word)) and not is_stop_word(word)}
    )


@functools.lru_cache(TITLES_CACHED)
def complete_title(title: str, body: str, limit: int) -> str:
    """A title that was cut off, with the rest of its sentence from the body, in at most so many characters."""
    if not title.endswith("…"):
        return title
    begun = title[:-1].rstrip()
    words = begun.split()[-_CUT_WORDS:]
    found = re.search(r"\s+".join(map(re.escape, words)), body, re.IGNORECASE)
    if len(words) < _CUT_WORDS or not found:
        return title
    rest = _SENTENCE_REST.match(body, found.end())
    return one_line(begun + rest[0].rstrip(".:"), limit) if rest else title


def find_unfit(
    groups: Iterable[CandidateGroup],
    turn_bodies: Mapping[int, str],
    now: int,
    session_id: int | None = None,
) -> dict[int, str]:
    """Why candidates are not worth a line: id → reason. `turn_bodies`: failure → what its turn came to.

    `session_id` is the session that starts, if the vault knows it.
    """
    candidates = {one.id: one for group in groups for one in group.candidates}.values()
    of_kind = {kind: [one for one in candidates if one.kind is kind] for kind in Kind}
    freshest = sorted(candidates, key=lambda one: (measure_age(one, now), -one.id))
    outcomes = [one for one in freshest if one.kind in _OUTCOME_KINDS]
    last = _find_last_sessions(freshest)
    unfit = {
        one.id: why
        for one in candidates
        if one.episode is not None
        and not one.is_pinned
        and (
            why := _find_other_session(one, session_id)
            or _find_fault(one, outcomes, turn_bodies, last)
        )
    }
    told = [one for one in of_kind[Kind.DECISION] + of_kind[Kind.TASK] if one.id not in unfit]
    for one in outcomes:
        twin = next((other for other in told if tells_the_same(one, other)), None)
        if twin is not None:
            unfit.setdefault(one.id, f"#{twin.id} says it")
    unfit = _find_changed_again(outcomes, now) | unfit
    latest = next((one.session_id for one in outcomes if one.id not in unfit), None)
    unfit |= _find_stale(outcomes, [latest], unfit, now)
    recent = list(dict.fromkeys(one.session_id for one in outcomes))[:_SESSIONS_MAX]
    left = [one for one in outcomes if one.id not in unfit]
    chosen = {one.id for one in choose_outcomes(one for one in left if one.session_id in recent)}
    return unfit | {
        one.id: "others of the last sessions tell more" for one in left if one.id not in chosen
    }


def _find_other_session(one: ContextCandidate, session_id: int | None) -> str | None:
    """Why something that its speaker said for his session alone does not hold in this one; None if it may."""
    return find_other_scope(one.tags, one.session_id, session_id, None)


def _find_fault(
    one: ContextCandidate,
    outcomes: Sequence[ContextCandidate],
    turn_bodies: Mapping[int, str],
    last: Sequence[int | None],
) -> str | None:
    """Why something that was distilled from a turn is not worth a line; None if it is."""
    match one.kind:
        case Kind.INSTRUCTION | Kind.PREFERENCE:
            if _REPORT.match(one.title) or "[REDACTED" in one.title:
                return "it reports and rules nothing"
            return None
        case Kind.DECISION | Kind.TASK:
            return _find_fault_of_statement(one, last)
        case Kind.FAILURE:
            return _find_fault_of_failure(one, outcomes, turn_bodies.get(one.id, ""))
        case Kind.CHANGE | Kind.FIX:
            return None if rate_outcome(one) >= _OUTCOME_RATING_MIN else "it says no outcome"
        case _:
            return None


def _find_stale(
    candidates: Iterable[ContextCandidate],
    latest: Sequence[int | None],
    unfit: Mapping[int, str],
    now: int,
) -> dict[int, str]:
    """What is neither of the latest session nor of the last day: most likely this session is about something else."""
    return {
        one.id: "neither of the latest session nor of the last day"
        for one in candidates
        if one.session_id is not None
        and one.episode is not None
        and one.session_id not in latest
        and measure_age(one, now) > DAY_MS
        and not (one.is_pinned or one.repeats > 0 or one.id in unfit)
    }


def _find_changed_again(outcomes: Sequence[ContextCandidate], now: int) -> dict[int, str]:
    """Outcomes of which a later turn of their session tells again: it may have changed them."""
    return {
        one.id: f"#{later.id} tells of it later"
        for one in outcomes
        if not one.is_pinned
        for later in outcomes
        # What is dated ahead was written while the clock was wrong: nobody knows whether it is later.
        if now >= later.at > one.at and later.episode != one.episode and tells_the_same(one, later)
    }


def _find_age(one: ContextCandidate, last: Sequence[int | None]) -> str | None:
    """Why something is not fresh; what was achieved since then is fresher."""
    is_old = one.session_id is not None and one.session_id not in last
    return "older than the last sessions that achieved something" if is_old else None


def _find_last_sessions(freshest: Iterable[ContextCandidate]) -> list[int | None]:
    """The last few sessions that achieved or settled something, the latest first."""
    told = [one for one in freshest if one.kind in _TOLD_KINDS and one.session_id is not None]
    return list(dict.fromkeys(one.session_id for one in told))[: len(OUTCOMES_OF_SESSION)]


def _find_fault_of_statement(one: ContextCandidate, last: Sequence[int | None]) -> str | None:
    if not stands_alone(one.title):
        return "it says nothing without what was said before it"
    if _DECLINED.search(one.title):
        return "it tells what was not done"
    return _find_age(one, last) if one.kind is Kind.TASK else None


def _find_fault_of_failure(
    one: ContextCandidate, outcomes: Sequence[ContextCandidate], turn_body: str
) -> str | None:
    latest = next((other.session_id for other in outcomes), one.session_id)
    if one.session_id != latest:
        # What an earlier session left open was solved since, or is accepted, or belongs to code that is gone.
        return "a later session achieved something"
    turn = [other for other in outcomes if other.episode == one.episode]
    if any(rate_outcome(other) >= _OUTCOME_RATING_MIN for other in turn):
        return "its turn came to something"
    if turn_body.rfind(_FAILED) <= turn_body.rfind(_PASSED):
        return "its turn did not end with it"
    return None


def choose_outcomes(outcomes: Iterable[ContextCandidate]) -> list[ContextCandidate]:
    """The outcomes that tell most, few of each of the last sessions, in the order given."""
    by_session: dict[int | None, list[ContextCandidate]] = {}
    for one in outcomes:
        by_session.setdefault(one.session_id, []).append(one)
    last = zip(by_session.values(), OUTCOMES_OF_SESSION, strict=False)
    return [one for found, each in last for one in _choose_of_session(found, each)]


def _choose_of_session(found: Sequence[ContextCandidate], each: int) -> list[ContextCandidate]:
    """Those that tell most; what is in files that a later turn edited again may not be so any more."""

    def is_last(one: ContextCandidate) -> bool:
        later = {path for other in found if other.at > one.at for path in other.edited}
        return not one.edited or not later.issuperset(one.edited)

    chosen: list[ContextCandidate] = []
    for one in sorted(found, key=lambda one: (is_last(one), rate_outcome(one)), reverse=True):
        if len(chosen) < each and not any(tells_the_same(one, other) for other in chosen):
            chosen.append(one)
    return [one for one in found if one in chosen]


def rate_outcome(one: ContextCandidate) -> float:
    """How much a line says about what was achieved: about 2 and more if it says what was."""
    return _rate_title(one.title, one.commits, len(one.edited))


@functools.lru_cache(TITLES_CACHED)
def _rate_title(title: str, commits: Sequence[str], files_edited: int) -> float:
    is_commit = _is_commit(title, commits)
    asked = _EDITED.sub("", title)
    is_done = is_commit or asked != title
    said = asked if is_done else _strip_subject(title)
    is_act, is_state = _ACT.search(said) or _ACT_LABEL.search(title), _STATE.search(said)
    if not (is_act or is_state or is_done):
        return 0.0
    rating = 2.0 + 0.5 * bool(is_act and is_state) + 0.6 * math.log2(1 + files_edited)
    rating += 0.5 * bool(_CODE.search(said) or entities.entities_of_text(said))
    rating += (
        _COMMIT_RATING * is_commit
        - 1.5 * bool(_MINOR.search(said))
        - 2.0 * bool(_UPKEEP.search(said))
    )
    rating -= bool(_DEMONSTRATIVE.search(_CODE.sub(" ", said)))
    rating -= 4.0 * bool(_UNDONE.search(said))
    rating -= 3.0 * bool(_EMPTY.search(said))
    rating -= 2.5 * bool(_OPEN_END.search(said))
    rating -= 4.0 * bool(_CHORE.search(said) or _CHORE.search(title))
    rating -= 4.0 * bool(_PLACE_ONLY.search(_name_code(said)))
    rating -= 2.0 * (_count_content_words(said) < _STATEMENT_WORDS_MIN)
    return rating


def _strip_subject(title: str) -> str:
    """What a title says of its subject; all of it if the subject says so itself: `The page is now: wider`."""
    match = _SUBJECT.match(title)
    if match is None or _STATE.search(match.group().rstrip(": ")):
        return title
    return title[match.end() :] or title


def _is_commit(title: str, commits: Sequence[str]) -> bool:
    """Whether a title is the subject of one of the turn's commits: what it orders was done."""
    said = normalised(title)
    return any(said and normalised(subject).startswith(said) for subject in commits)


@functools.lru_cache(TITLES_CACHED)
def is_supposition(title: str) -> bool:
    """Whether a title says what is supposed, intended or proposed, or that work was filed, and not what is."""
    said = _SUBJECT.sub("", title) or title
    return any(form.search(said) for form in (_UNDONE, _PROPOSES, _CHORE))


def _name_code(text: str) -> str:
    """The text with `code` for each name in it."""
    text = _CODE.sub("code", text)
    return " ".join("code" if entities.entities_of_text(word) else word for word in text.split())


def tells_the_same(one: ContextCandidate, other: ContextCandidate) -> bool:
    """Whether two lines of one session tell of the same: what was decided, and that it was done."""
    if one.session_id is None or one.session_id != other.session_id:
        return False
    mine, others = _list_told_stems(one.title), _list_told_stems(other.title)
    shared = len(mine & others)
    return shared >= _SHARED_STEMS_MIN and shared >= _SHARED_PART * min(len(mine), len(others))


@functools.lru_cache(TITLES_CACHED)
def _list_told_stems(title: str) -> frozenset[str]:
    return frozenset(content_stems(_LABEL.sub("", title)))
