"""Lists instead of a ranking: answers to questions of a time, of all of a kind and of everything; `mem_timeline`.

`what did we do last week` has no words to rank by. It is answered with the work and the decisions of that time, the
best of each turn, from as many sessions as the page has room for, oldest first. Nor has `are there open tasks` or
`which decisions hold`: they are answered with all that there is of the kind, newest first.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memd.errors import BadRequest, UnknownId
from memd.index.columns import TIER_CODES
from memd.index.memory_index import MemoryIndex
from memd.models import CLOCK_SKEW_MAX_MS, Kind, Summary, Tier
from memd.recall import Answer, Question, ScorePart, Timeline, TimelineRow
from memd.recall.hits import Match, make_hits
from memd.recall.query import ParsedQuery
from memd.recall.question_time import QuestionTime, asks_for_decisions, asks_what_happened
from memd.recall.retrievers import find_visible_rows, first_row_per_summary
from memd.store import judgments, projects, summaries
from memd.store import projects as stored_projects
from memd.store.database import Connection, Database
from memd.store.filter import Filter
from memd.text import is_stop_word, words
from memd.time_expressions import format_time

WORK_KINDS = (Kind.CHANGE, Kind.DECISION, Kind.FIX, Kind.DISCOVERY, Kind.FAILURE)
"""What tells of work or of a decision, the most telling of a turn first."""
LISTED_MAX = 1_000
"""Memories of a time that are looked at, the latest."""
_STANDING = (Kind.INSTRUCTION, Kind.PREFERENCE)
_KIND_WORDS: Mapping[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("decision", "decisions", "choice", "choices"), (Kind.DECISION,)),
    **dict.fromkeys(("rule", "rules", "instruction", "instructions", "convention", "conventions"), _STANDING),
    **dict.fromkeys(("preference", "preferences"), (Kind.PREFERENCE,)),
    **dict.fromkeys(("task", "tasks", "todo", "todos"), (Kind.TASK,)),
    **dict.fromkeys(("failure", "failures"), (Kind.FAILURE,)),
    **dict.fromkeys(("fix", "fixes"), (Kind.FIX,)),
}  # fmt: skip
"""Names of kinds in a question that lists them."""
_OPEN_WORDS = frozenset({"open", "pending", "unfinished", "unresolved"})
"""Words that are said of tasks, whose name a question may leave out: `what is still open?`."""
_LISTING_WORDS = frozenset(
    """all any apply applies current currently every exist exists hold holds know known latest left list made newest open
    pending recent recently remain remaining show standing still there unfinished unresolved""".split()  # noqa: SIM905
)
_FIRST, _LAST = -(2**62), 2**62
"""Before and after everything that can be stored."""


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A question whose words name a time, understood."""

    question: Question
    """Without the words of the time, with its filter."""
    note: str
    """In words, how it was understood."""
    outside: Question | None = None
    """What to ask if nothing is from then; None if there is no filter."""
    note_outside: str = ""


def apply_time(tx: Connection, question: Question, time: QuestionTime) -> TimedQuestion:
    """The question with the filter that its time means; with none, and a note, if that is not known."""
    if time.sessions is not None:
        return _apply_sessions(tx, question, time, time.sessions)
    within = _without_time(question, time.text)
    return _explain(replace(within, since=time.since, until=time.until), question, time.label)


def _explain(within: Question, question: Question, label: str) -> TimedQuestion:
    outside = replace(within, since=None, until=None, session_id=question.session_id)
    if within.in_order:
        edge = within.since if within.since is not None else within.until
        outside = replace(outside, nearest_to=edge)
    order = ", in order of time" if within.in_order else ""
    is_bound = label.startswith(("since", "before"))
    missing = f"nothing {label}" if is_bound else f"nothing from {label}"
    return TimedQuestion(
        within, f"only {label}{order}", outside, f"{missing}; the nearest outside it"
    )


def _without_time(question: Question, rest: str) -> Question:
    """The question without the words of its time; `in_order` if no other content is left."""
    if not asks_what_happened(rest):
        return replace(question, text=rest)
    kinds = question.kinds or ((Kind.DECISION,) if asks_for_decisions(rest) else ())
    text = rest if words(rest) else question.text
    return replace(question, text=text, kinds=kinds, in_order=True)


# ── Sessions ────────────────────────────────────────────────────────────────────────────────────


def _apply_sessions(
    tx: Connection, question: Question, time: QuestionTime, which: tuple[int, int]
) -> TimedQuestion:
    past = _list_past_sessions(tx, question)
    nearest, farthest = which
    if len(past) < nearest:
        known = "there is only 1 earlier session"
        if len(past) != 1:
            known = f"there are only {len(past)} earlier sessions"
        return TimedQuestion(question, f"{known}; the time was not used")
    meant = [memories for _, memories in past[nearest - 1 : farthest]]
    since = min(one.at for memories in meant for one in memories)
    within = _without_time(question, time.text)
    if nearest == farthest:
        within = replace(within, session_id=past[nearest - 1][0])
        return _explain(within, question, f"the session of {format_time(since)[:10]}")
    until = max(one.at for memories in meant for one in memories)
    within = replace(within, since=since, until=until)
    return _explain(within, question, f"the {len(meant)} sessions since {format_time(since)[:10]}")


def _list_past_sessions(tx: Connection, question: Question) -> list[tuple[int, list[Summary]]]:
    """The sessions that left memories, but for the one that asks, the latest first, with the memories."""
    wanted = replace(_filter_of(question), kinds=(), include_superseded=True)
    of_session: dict[int, list[Summary]] = {}
    for one in reversed(
        summaries.summaries_around(tx, wanted, question.asked_at + 1, before=LISTED_MAX, after=0)
    ):
        if one.session_id is not None:
            of_session.setdefault(one.session_id, []).append(one)
    known = stored_projects.sessions(tx, of_session)
    return [
        (number, memories)
        for number, memories in of_session.items()
        if question.asking_session is None or known[number].key != question.asking_session
    ]


def _filter_of(question: Question) -> Filter:
    return replace(question.filter, session_id=None, since=None, until=None)


# ── By kind ──────────────────────────────────────────────────────────────────────────────────────


def asks_for_kinds(text: str) -> tuple[Kind, ...]:
    """Return the kinds that a question lists, if it asks for nothing else: `which decisions hold`, `open tasks?`."""
    kinds: dict[Kind, None] = {}
    names = [word.lower() for word in words(text)]
    for word, name in zip(words(text), names, strict=True):
        if name in _KIND_WORDS:
            kinds |= dict.fromkeys(_KIND_WORDS[name])
        elif not (is_stop_word(word) or name in _LISTING_WORDS):
            return ()
    is_sentence = len(names) > 1  # one word may be looked for itself
    return tuple(kinds) or ((Kind.TASK,) if is_sentence and _OPEN_WORDS & {*names} else ())


def list_newest(tx: Connection, parsed: ParsedQuery) -> Answer | None:
    """List all memories of the question's kinds, newest first; None without any. `took_ms` is left to the caller."""
    found = _read_memories(tx, parsed.question)[::-1]
    if not found:
        return None
    page = found[parsed.question.offset : parsed.page_end]
    matches = [Match(one, 0, (ScorePart("listed", 1.0),)) for one in page]
    kinds = " and ".join(kind.value for kind in parsed.question.kinds)
    count = f"{len(page)} of {len(found)}" if len(page) < len(found) else f"all {len(found)}"
    return Answer(
        hits=tuple(make_hits(tx, parsed, matches)),
        profile=parsed.profile_name,
        listed=f"a list by kind: {kinds}",
        candidates=len(found),
        notes=(f"{count} of kind {kinds}, the newest first",),
    )


def browse_index(tx: Connection, index: MemoryIndex, parsed: ParsedQuery) -> Answer:
    """List what may be seen in Covalence's order of browsing: core, agents' and captured, files; the newest first."""
    with index.lock:
        columns = index.columns
        rows = np.flatnonzero(find_visible_rows(index, parsed.question).wanted)
        rows = first_row_per_summary(index, rows)
        is_file = columns.tier[rows] == TIER_CODES[Tier.FILE.value]
        is_core = columns.tier[rows] == TIER_CODES[Tier.CORE.value]
        group = np.where(is_core, 0, np.where(is_file, 2, 1))
        ids = columns.summary_id[rows]
        in_order = ids[np.lexsort((-ids, -columns.at[rows], group))].tolist()
    page = in_order[parsed.question.offset : parsed.page_end]
    known = summaries.summaries_by_ids(tx, page)
    matches = [Match(known[n], 0, (ScorePart("listed", 1.0),)) for n in page if n in known]
    return Answer(
        hits=tuple(make_hits(tx, parsed, matches)), profile=parsed.profile_name,
        listed="everything: core memories, then agents', then files", candidates=len(in_order),
    )  # fmt: skip


# ── In order of time ─────────────────────────────────────────────────────────────────────────────


def list_in_order(tx: Connection, parsed: ParsedQuery) -> Answer:
    """The work and the decisions of the question's time, oldest first; `took_ms` is left to the caller."""
    found = _read_memories(tx, parsed.question, WORK_KINDS) or _read_memories(tx, parsed.question)
    if parsed.question.nearest_to is not None:
        chosen = _nearest_first(found, parsed.question.nearest_to)
    else:
        chosen = _interleave_sessions(_best_of_turns(found))
    page = sorted(
        chosen[parsed.question.offset : parsed.page_end], key=lambda one: (one.at, one.id)
    )
    matches = [Match(one, 0, (ScorePart("of that time", 1.0),)) for one in page]
    is_part = len(page) < len(chosen) and parsed.question.nearest_to is None
    notes = (f"{len(page)} of {len(chosen)} turns of that time",) if is_part else ()
    return Answer(
        hits=tuple(make_hits(tx, parsed, matches)),
        profile=parsed.profile_name,
        listed="the work of that time" if page else "nothing of that time is known",
        candidates=len(chosen),
        notes=notes,
    )


def _read_memories(
    tx: Connection, question: Question, kinds: tuple[Kind, ...] = ()
) -> list[Summary]:
    """The latest visible memories of the question's time, oldest first; of these kinds if it names none."""
    wanted = replace(question.filter, kinds=question.kinds or kinds)
    if question.nearest_to is None:
        found = summaries.summaries_around(tx, wanted, _LAST, before=LISTED_MAX, after=0)
    else:
        depth = question.offset + (question.k or LISTED_MAX)
        found = summaries.summaries_around(
            tx, wanted, question.nearest_to, before=depth, after=depth
        )
    heads = summaries.summary_heads(tx, [one.id for one in found])
    return [one for one in found if not wanted.was_superseded(heads[one.id].superseded_at)]


def _nearest_first(found: Iterable[Summary], at: int) -> list[Summary]:
    return sorted(found, key=lambda one: (abs(one.at - at), one.id))


def _best_of_turns(found: Iterable[Summary]) -> list[Summary]:
    """One memory of each turn, in the order given."""
    turns: dict[object, Summary] = {}
    for one in found:
        turn = (one.session_id, one.episode) if one.episode else one.id
        turns[turn] = min(turns.get(turn, one), one, key=_rank_of_kind)
    return list(turns.values())


def _rank_of_kind(memory: Summary) -> int:
    return WORK_KINDS.index(memory.kind) if memory.kind in WORK_KINDS else len(WORK_KINDS)


def _interleave_sessions(found: Sequence[Summary]) -> list[Summary]:
    """The best of each session first, then the second of each: of equal kinds the latest."""
    of_session: dict[int | None, list[Summary]] = {}
    for one in sorted(found, key=lambda one: (_rank_of_kind(one), -one.at)):
        of_session.setdefault(one.session_id, []).append(one)
    rounds = itertools.zip_longest(*of_session.values())
    return [one for memories in rounds for one in memories if one is not None]


GAP_MS = 3_600_000
"""A pause of at least this is shown."""
ROWS_MAX = 200
_INT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _TimelineCenter:
    """The moment around which to look, and the number of rows to show on each side."""

    at: int
    shown_at: int
    """The time that the answer gives for it."""
    before: int
    after: int
    pivot: Summary | None = None


async def read_timeline(  # noqa: PLR0913  # the question's own words; callers name each
    db: Database,
    *,
    around: int | None,
    at: int | None,
    wanted: Filter,
    before: int = 5,
    after: int = 5,
    between: tuple[int, int] | None = None,
    now: int,
) -> Timeline:
    """The neighbourhood of a memory (`around`), of a time (`at`), or a session from its start.

    Without any of them: the latest. A session and one of the others: around it, within the session.
    `between` two times, both included: all that happened there, of more than 200 memories the latest;
    then no memory and no time may be given, and before and after mean nothing.
    Times are UTC milliseconds. Raises UnknownId for an id that does not exist, or of another project or session.
    """
    _check_arguments(around, at, between, before, after)

    def read(tx: Connection) -> Timeline:
        _check_session(tx, wanted)
        if between is not None:
            return _read_range(tx, wanted, between)
        return _read_around(tx, wanted, find_center(tx))

    def find_center(tx: Connection) -> _TimelineCenter:
        if around is not None:
            pivot = _read_pivot(tx, wanted, around)
            return _TimelineCenter(pivot.at, pivot.at, before, after, pivot)
        if at is not None:
            return _TimelineCenter(at, at, before, after)
        if wanted.session_id is not None:
            first = projects.session(tx, wanted.session_id)
            shown_at = first.started_at if first else now
            return _TimelineCenter(_FIRST, shown_at, 0, before + after + 1)
        # A memory that a wrong clock dated ahead would be the latest for years; it counts as `more_after`.
        return _TimelineCenter(now + CLOCK_SKEW_MAX_MS, now, before + after + 1, 0)

    return await db.read(read)


def _check_arguments(
    around: int | None, at: int | None, between: object, before: int, after: int
) -> None:
    if around is not None and at is not None:
        raise BadRequest("give either the id of a memory or a time, not both")
    if between is not None and (around is not None or at is not None):
        raise BadRequest("give either days or a place, not both")
    if not (0 <= before <= ROWS_MAX and 0 <= after <= ROWS_MAX):
        raise BadRequest(f"before and after: between 0 and {ROWS_MAX}")
    if at is not None and not _FIRST < at < _LAST:
        raise BadRequest("at: out of range")


def _check_session(tx: Connection, wanted: Filter) -> None:
    if wanted.session_id is None:
        return
    found = projects.session(tx, wanted.session_id) if 0 < wanted.session_id <= _INT_MAX else None
    if found is None:
        raise UnknownId("there is no such session")
    is_visible = (
        wanted.project_ids is None
        or found.project_id in wanted.project_ids
        or summaries.has_of_session(tx, found.id, wanted.project_ids)
    )
    if not is_visible:
        raise UnknownId(
            "the session belongs to another project; ask with the project all to see it"
        )


def _read_pivot(tx: Connection, wanted: Filter, summary_id: int) -> Summary:
    found = summaries.get_summary(tx, summary_id) if 0 < summary_id <= _INT_MAX else None
    if found is None:
        raise UnknownId(f"there is no memory #{summary_id}")
    if wanted.project_ids is not None and found.project_id not in wanted.project_ids:
        raise UnknownId(
            f"#{summary_id} belongs to another project; ask with the project all to see it"
        )
    if wanted.session_id not in {None, found.session_id}:
        raise UnknownId(f"#{summary_id} does not belong to this session")
    return found


def _read_around(tx: Connection, wanted: Filter, center: _TimelineCenter) -> Timeline:
    """Read one row more than wanted on each side, to know whether there are more."""
    pivot_id = center.pivot.id if center.pivot else 0
    older = summaries.summaries_around(
        tx, wanted, center.at, before=center.before + 1, after=0, pivot=pivot_id
    )
    newer = summaries.summaries_around(
        tx, wanted, center.at, before=0, after=center.after + 1, pivot=pivot_id + bool(pivot_id)
    )
    shown = older[max(0, len(older) - center.before) :] if center.before else []
    line = [*shown, *([center.pivot] if center.pivot else []), *newer[: center.after]]
    return Timeline(
        rows=_make_rows(tx, wanted, line, pivot_id),
        pivot_at=center.shown_at,
        more_before=len(older) > center.before,
        more_after=len(newer) > center.after,
    )


def _read_range(tx: Connection, wanted: Filter, between: tuple[int, int]) -> Timeline:
    since, until = between
    days = replace(wanted, since=since, until=until)
    line = summaries.summaries_around(tx, days, until + 1, before=ROWS_MAX + 1, after=0)
    return Timeline(
        rows=_make_rows(tx, wanted, line[-ROWS_MAX:], 0),
        pivot_at=until,
        more_before=len(line) > ROWS_MAX,
        more_after=False,
        is_span=True,
    )


def _make_rows(
    tx: Connection, wanted: Filter, line: Sequence[Summary], pivot_id: int
) -> tuple[TimelineRow, ...]:
    known = projects.sessions(tx, {s.session_id for s in line if s.session_id is not None})
    against = judgments.visible_contradictions(tx, [s.id for s in line], wanted.project_ids)
    rows = []
    for place, summary in enumerate(line):
        previous = line[place - 1] if place else None
        gap = summary.at - previous.at if previous else 0
        session = known.get(summary.session_id or 0)
        # A session that moved here is titled by a prompt of another project.
        is_from_here = session is not None and session.project_id == summary.project_id
        rows.append(
            TimelineRow(
                summary,
                session.title if session and is_from_here else None,
                is_pivot=summary.id == pivot_id,
                gap_ms=gap if gap >= GAP_MS else None,
                begins_session=summary.session_id is not None
                and (previous is None or previous.session_id != summary.session_id),
                contradicted_by=against.get(summary.id, ()),
            )
        )
    return tuple(rows)
