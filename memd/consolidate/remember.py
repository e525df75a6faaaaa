"""Write an explicit memory: create it, strengthen an equal one, or revive one that was superseded.

A new value under a topic key supersedes the old one at once, and an old value that returns takes its
place again. A pinned memory is never hidden. The caller provides the transaction and a redacted,
checked and titled memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.consolidate import judgments, sources
from memd.consolidate.compare import Agreement, compare
from memd.consolidate.near_duplicates import JudgmentCandidate
from memd.consolidate.runs import NEAR_DUPLICATE_RULE
from memd.consolidate.sources import Origin
from memd.consolidate.supersede import hide_unless_pinned, show
from memd.models import (
    GLOBAL_PROJECT,
    UNTITLED,
    Draft,
    EdgeType,
    Kind,
    SessionRef,
    Summary,
    Supersession,
    Tier,
)
from memd.store import ledger, links, projects, summaries
from memd.store.database import Connection
from memd.store.judgments import initial_confidence, stance_between
from memd.text import digest, normalised, storable

TOPIC_KEY_RULE = "topic-key"
SAID_AGAIN_RULE = "said-again"
"""The rule by which a value that returns hides what had been judged to replace it."""
DELIBERATE_SOURCES = frozenset({"agent", "user"})
"""Sources that may bring back what was forgotten; an import may not."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to write. Times are UTC milliseconds."""

    text: str
    title: str | None = None
    is_titled: bool = True
    """False: `title` was taken from the text."""
    kind: Kind = Kind.NOTE
    topic_key: str | None = None
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    project_key: str | None = None
    """None: it holds everywhere (`global`)."""
    project_name: str = ""
    project_reason: str = ""
    session: SessionRef | None = None
    at: int | None = None
    """None: now."""
    expires_at: int | None = None
    source: str = "agent"
    """`agent`, `user`, or an importer's name."""
    tier: Tier = Tier.AGENT
    origin: Origin | None = None
    """The part of a file that it was read from; its text now replaces its earlier text."""

    @property
    def is_deliberate(self) -> bool:
        """Whether a user or an agent said so, not an import."""
        return self.source in DELIBERATE_SOURCES

    @property
    def is_global(self) -> bool:
        """Whether it holds in every project."""
        return self.project_key in {None, GLOBAL_PROJECT}


@dataclass(frozen=True, slots=True)
class RememberResult:
    """What happened to a new memory."""

    id: int
    """0 if nothing was written."""
    outcome: str
    """`created`, `superseded` (created, and it replaces older values), `duplicate` (it strengthened #id),
    `revised` (its origin has another title, tags or files now), `revived`, or `forgotten` (an import may
    not bring back what was forgotten on purpose)."""
    superseded: tuple[int, ...] = ()
    candidates: tuple[JudgmentCandidate, ...] = ()
    """Similar memories that no rule has settled: the caller should judge them."""


def remember(tx: Connection, memory: NewMemory, now: int) -> RememberResult:
    """Write one memory."""
    origin = memory.origin
    if origin is None:
        return _write_memory(tx, memory, now)
    there = sources.find_memory(tx, origin)
    content = memory.kind, storable(memory.text)
    if there is not None and (there.kind, there.body) == content and not origin.moves:
        # It stays in its project, whichever project would be chosen for it now.
        return _revise_imported(tx, there, memory, origin, now)
    if sources.is_forgotten(tx, origin):
        return RememberResult(0, "forgotten")
    result = _write_memory(tx, memory, now)
    mine = summaries.get_summary(tx, result.id)
    replaced = sources.attach_origin(tx, mine, origin, now) if mine else ()
    return replace(result, superseded=tuple(dict.fromkeys((*result.superseded, *replaced))))


def _revise_imported(
    tx: Connection, there: Summary, memory: NewMemory, origin: Origin, now: int
) -> RememberResult:
    """Give the memory of an unchanged text the title, tags and files that it has in its origin now."""
    sources.attach_origin(tx, there, origin, now)
    if (there.title, there.tags, there.files) == (memory.title, memory.tags, memory.files):
        return RememberResult(there.id, "duplicate")
    owner = summaries.SummaryOwner(there.project_id, there.session_id, there.source)
    draft = _make_draft(memory, there.at if memory.at is None else memory.at)
    summaries.put_summary(tx, there.uid, draft, owner, now)
    _link_files(tx, there.id, memory, now)
    return RememberResult(there.id, "revised")


def _write_memory(tx: Connection, memory: NewMemory, now: int) -> RememberResult:
    keys, project_id = _find_project(tx, memory, now)
    uid, known = _find_equal(tx, memory, keys)
    known = known or _find_equal_value(tx, uid, memory, project_id)
    if known is None:
        return _create_memory(tx, uid, memory, project_id, now)
    at = now if memory.at is None else memory.at
    if known.superseded_by is None:
        return _strengthen_memory(tx, known, memory, at, now)
    if not memory.is_deliberate and stance_between(tx, known.id, known.superseded_by):
        # An import does not know better than a judgment.
        return RememberResult(known.id, "duplicate")
    if memory.at is not None and not (memory.origin and sources.was_replaced(tx, known)):
        newer = summaries.get_summary(tx, known.superseded_by)
        if newer is not None and memory.at <= newer.at:
            # It was said before it was superseded: the newer value stays.
            return RememberResult(known.id, "duplicate")
    return _revive_memory(tx, known, memory, at, now)


def _find_project(tx: Connection, memory: NewMemory, now: int) -> tuple[Sequence[str], int]:
    """(the current and the former keys of the memory's project, its id)."""
    if memory.is_global:
        return (GLOBAL_PROJECT,), projects.ensure_global(tx, now)
    key = storable(memory.project_key or "")
    name = memory.project_name or key.rstrip("/").rsplit("/", 1)[-1] or key
    reason = memory.project_reason or "named when something was remembered"
    number = projects.ensure_project(tx, key, name, reason, now)
    project = projects.project(tx, number)
    assert project is not None
    return (project.key, *projects.project_aliases(tx).get(number, ())), number


def _find_equal(
    tx: Connection, memory: NewMemory, keys: Sequence[str]
) -> tuple[str, Summary | None]:
    """The memory's uid, and the summary that has it.

    A merged project has memories, and hashes of forgotten ones, under each of its keys.
    """
    found = [_find_by_uid(tx, memory, key) for key in keys]
    return next((f for f in found if f[1] or ledger.is_forgotten(tx, f[0])), found[0])


def _find_by_uid(tx: Connection, memory: NewMemory, key: str) -> tuple[str, Summary | None]:
    """The same for one project key.

    Texts that differ in case and punctuation share a uid, unless the punctuation has a meaning
    (`> 5`, `< 5`).
    """
    parts = (key, memory.kind.value, memory.topic_key or "")
    uid = digest(*parts, normalised(memory.text))
    known = summaries.summary_by_uid(tx, uid)
    if known is not None and not compare(known.body, memory.text).agrees:
        uid = digest(*parts, memory.text)
        known = summaries.summary_by_uid(tx, uid)
    return uid, known


def _find_equal_value(
    tx: Connection, uid: str, memory: NewMemory, project_id: int
) -> Summary | None:
    """The value of this topic with the same meaning in other words or spelling; a visible one first."""
    if memory.topic_key is None or not memory.is_deliberate or ledger.is_forgotten(tx, uid):
        return None
    equal = [
        one
        for one in summaries.topic_summaries(tx, memory.topic_key, (project_id,))
        if one.kind is memory.kind
        and compare(one.body, memory.text).agreement is Agreement.SAME
    ]
    return min(equal, key=lambda one: one.superseded_by is not None, default=None)


def _create_memory(
    tx: Connection, uid: str, memory: NewMemory, project_id: int, now: int
) -> RememberResult:
    if ledger.is_forgotten(tx, uid):
        if not memory.is_deliberate:
            return RememberResult(0, "forgotten")
        ledger.remove_forgotten(tx, uid)
    at = now if memory.at is None else memory.at
    session_id = _find_session(tx, memory, project_id, at)
    owner = summaries.SummaryOwner(project_id, session_id, storable(memory.source))
    number, _ = summaries.put_summary(tx, uid, _make_draft(memory, at), owner, now)
    _link_files(tx, number, memory, at)
    replaced = _settle_topic(tx, number, memory, now)
    # An import counts what it replaced beside what was new.
    outcome = "superseded" if replaced and memory.is_deliberate else "created"
    return RememberResult(number, outcome, replaced)


def _link_files(tx: Connection, number: int, memory: NewMemory, at: int) -> None:
    start = ("summary", str(number), EdgeType.REFERENCES, "file")
    edges = [links.NewEdge(*start, file, "remembered", at) for file in memory.files]
    links.add_edges(tx, edges)


def _find_session(tx: Connection, memory: NewMemory, project_id: int, at: int) -> int | None:
    ref = memory.session
    if ref is None:
        return None
    if memory.is_global:
        # A global memory does not show in which project its session runs, so it creates none.
        found = projects.find_sessions(tx, storable(ref.key))
        return next((s.id for s in found if (s.client, s.key) == (ref.client, ref.key)), None)
    return projects.ensure_session(tx, ref, project_id, at)


def _make_draft(memory: NewMemory, at: int) -> Draft:
    rule = "remembered"
    if not memory.is_titled:
        rule = UNTITLED
    elif memory.origin is not None:
        rule = sources.IMPORTED_FILE if memory.tier is Tier.FILE else sources.IMPORTED
    return Draft(
        slot="memory", kind=memory.kind, title=memory.title or "", body=memory.text, at=at,
        rule=rule, sources=(), tier=memory.tier, tags=memory.tags, files=memory.files,
        topic_key=memory.topic_key, expires_at=memory.expires_at,
        confidence=initial_confidence(memory.source),
    )  # fmt: skip


def _strengthen_memory(
    tx: Connection, known: Summary, memory: NewMemory, at: int, now: int
) -> RememberResult:
    if memory.is_deliberate or (at > known.at and memory.origin is None):
        # The same line of the same import again is no repetition.
        summaries.strengthen_summary(tx, known.id, now)
    if known.expires_at != memory.expires_at and (at >= known.at or memory.origin is not None):
        at = at if known.is_expired(now) else known.at
        summaries.renew_summary(tx, known.id, at=at, expires_at=memory.expires_at, now=now)
    return RememberResult(known.id, "duplicate", _settle_topic(tx, known.id, memory, now))


def _revive_memory(
    tx: Connection, known: Summary, memory: NewMemory, at: int, now: int
) -> RememberResult:
    undone = show(tx, known.id, now)
    for one in undone:
        judgments.drop_judgment(tx, one.newer_id, known.id, now)
    summaries.strengthen_summary(tx, known.id, now)
    at = max(at, known.at)
    summaries.renew_summary(tx, known.id, at=at, expires_at=memory.expires_at, now=now)
    replaced = (
        *_settle_topic(tx, known.id, memory, now),
        *_hide_replacements(tx, known.id, undone, now),
    )
    return RememberResult(known.id, "revived", replaced)


def _hide_replacements(
    tx: Connection, summary_id: int, undone: Sequence[Supersession], now: int
) -> tuple[int, ...]:
    """Hide what had hidden this memory because only one of the two holds."""
    rules = {
        NEAR_DUPLICATE_RULE: NEAR_DUPLICATE_RULE,
        judgments.JUDGED_RULE: SAID_AGAIN_RULE,
        SAID_AGAIN_RULE: SAID_AGAIN_RULE,
    }
    return tuple(
        number
        for one in undone
        if one.rule in rules
        for number in _hide_all(
            tx, summary_id, [one.newer_id], rules[one.rule], "said again", now
        )
    )


def _settle_topic(
    tx: Connection, summary_id: int, memory: NewMemory, now: int
) -> tuple[int, ...]:
    """Let the newest value of this topic hide the others; the ids that this memory hides.

    Newest is what was said last, and what is said now is newer than anything.
    """
    if memory.topic_key is None:
        return ()
    mine = summaries.get_summary(tx, summary_id)
    assert mine is not None
    others = [
        other
        for other in summaries.topic_summaries(tx, memory.topic_key, (mine.project_id,))
        if other.id != mine.id and other.kind is mine.kind and other.superseded_by is None
        if stance_between(tx, mine.id, other.id) not in judgments.SEPARATING_RELATIONS
    ]
    guard = "same topic key"
    if memory.at is not None:
        for other in others:
            if (other.at, other.id) > (memory.at, mine.id):
                _hide_all(tx, other.id, [mine.id], TOPIC_KEY_RULE, guard, now)
                return ()
    return _hide_all(tx, mine.id, [one.id for one in others], TOPIC_KEY_RULE, guard, now)


def _hide_all(
    tx: Connection, newer_id: int, older_ids: Sequence[int], rule: str, guard: str, now: int
) -> tuple[int, ...]:
    """Hide these memories, except pinned ones; the ids that were hidden."""
    otherwise = EdgeType.CONTRADICTS if rule == TOPIC_KEY_RULE else EdgeType.SIMILAR_TO
    found = summaries.summaries_by_ids(tx, older_ids) if older_ids else {}
    return tuple(
        older.id
        for older in found.values()
        if hide_unless_pinned(tx, newer_id, older, rule, guard, now, otherwise=otherwise)
    )
