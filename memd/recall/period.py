"""Questions that a list answers and not a ranking: of what happened at a time, of all of a kind, and of everything.

`what did we do last week` has no words to rank by. It is answered with the work and the decisions of that time, the
best of each turn, from as many sessions as the page has room for, oldest first. Nor has `are there open tasks` or
`which decisions hold`: they are answered with all that there is of the kind, newest first.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memd.index.columns import TIER_CODES
from memd.index.memory_index import MemoryIndex
from memd.models import Kind, Summary, Tier
from memd.recall.hits import Match, make_hits
from memd.recall.query import ParsedQuery
from memd.recall.question_time import QuestionTime, asks_for_decisions, asks_what_happened
from memd.recall.retrievers import find_visible_rows, first_row_per_summary
from memd.recall.types import Answer, Question, ScorePart
from memd.store import projects as stored_projects
from memd.store import summaries
from memd.store.database import Connection
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
