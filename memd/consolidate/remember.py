"""What becomes of something that is said on purpose: a new memory, a stronger one, an old one again.

The same thing again strengthens what is there; another value under the same topic key supersedes the
old one at once; an older value that returns is revived, and what had replaced it gives way. What is
pinned is never hidden. What was read from a place elsewhere is asked first what that place said before
(origins.py). Everything here happens in the caller's transaction. Not here: redaction and what is
refused (curator.py), near-duplicates (decide.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.consolidate import judgments, sources
from memd.consolidate.compare import Agreement, compare
from memd.consolidate.judgments import SEPARATING_RELATIONS
from memd.consolidate.near_duplicates import JudgmentCandidate
from memd.consolidate.runs import NEAR_DUPLICATE_RULE as NEAR_DUPLICATE
from memd.consolidate.sources import Origin
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
from memd.store import judgments as store_judgments
from memd.store import ledger, links, projects, summaries
from memd.store.database import Connection
from memd.text import digest, normalised, storable

TOPIC_KEY_RULE = "topic-key"
SAID_AGAIN_RULE = "said-again"
"""The rule by which a value that returns hides what had been judged to replace it."""
DELIBERATE_SOURCES = frozenset({"agent", "user"})
"""Who may say again what was forgotten; an import may not bring it back."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """Something to be remembered as it is said. Times are UTC milliseconds."""

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
    expires_at: int | None = None
    source: str = "agent"
    """Who said so: `agent`, `user`, or an importer's name."""
    tier: Tier = Tier.AGENT
    origin: Origin | None = None
    """Where it was read, if it was; what a place says now is newer than what it said before."""


@dataclass(frozen=True, slots=True)
class RememberResult:
    """What became of a Memory."""

    id: int
    """0 if nothing was kept."""
    outcome: str
    """`created`, `superseded` (created, and it replaces older values), `duplicate` (it strengthened #id),
    `revised` (a place elsewhere titles or tags it differently now), `revived`, or `forgotten` (an import
    may not bring back what was forgotten on purpose)."""
    superseded: tuple[int, ...] = ()
    candidates: tuple[JudgmentCandidate, ...] = ()
    """What is like it and no rule has decided about: somebody should judge."""


def remember(tx: Connection, memory: NewMemory, now: int) -> RememberResult:
    """Write down one memory that is redacted, checked and titled."""
    if memory.origin is None:
        return _remember(tx, memory, now)
    there = sources.find_memory(tx, memory.origin)
    is_same = there is not None and sources.has_text(there, memory.kind, memory.text)
    if there is not None and is_same and not memory.origin.moves:
        # Whichever project would be chosen for it now: it stays where it is.
        return _revise(tx, there, memory, memory.origin, now)
    if sources.is_forgotten(tx, memory.origin):
        return RememberResult(0, "forgotten")
    kept = _remember(tx, memory, now)
    mine = summaries.get_summary(tx, kept.id)
    gone = sources.attach_origin(tx, mine, memory.origin, now) if mine else ()
    return replace(kept, superseded=tuple(dict.fromkeys((*kept.superseded, *gone))))


def _revise(
    tx: Connection, there: Summary, memory: NewMemory, origin: Origin, now: int
) -> RememberResult:
    """Give what a place still says the title, tags and files that it has there now."""
    sources.attach_origin(tx, there, origin, now)
    if (there.title, there.tags, there.files) == (memory.title, memory.tags, memory.files):
        return RememberResult(there.id, "duplicate")
    owner = summaries.SummaryOwner(there.project_id, there.session_id, there.source)
    draft = _draft(memory, there.at if memory.at is None else memory.at)
    summaries.put_summary(tx, there.uid, draft, owner, now)
    _refer(tx, there.id, memory, now)
    return RememberResult(there.id, "revised")


def _remember(tx: Connection, memory: NewMemory, now: int) -> RememberResult:
    keys, project_id = _project(tx, memory, now)
    uid, known = _recognised(tx, memory, keys)
    known = known or _same_value(tx, uid, memory, project_id)
    if known is None:
        return _create(tx, uid, memory, project_id, now)
    said_at = now if memory.at is None else memory.at
    if known.superseded_by is None:
        return _strengthen(tx, known, memory, said_at, now)
    if memory.source not in DELIBERATE_SOURCES and _is_judged(tx, known):
        return RememberResult(known.id, "duplicate")
    if memory.origin is not None and sources.was_replaced(tx, known):
        return _revive(tx, known, memory, said_at, now)
    if memory.at is not None and memory.at <= _at(tx, known.superseded_by):
        # Said before it was superseded: an import tells old news, and the newer value stays.
        return RememberResult(known.id, "duplicate")
    return _revive(tx, known, memory, said_at, now)


def _project(tx: Connection, memory: NewMemory, now: int) -> tuple[Sequence[str], int]:
    """(the keys that its project is or was known by, its id)."""
    if memory.project_key in {None, GLOBAL_PROJECT}:
        return (GLOBAL_PROJECT,), projects.ensure_global(tx, now)
    key = storable(memory.project_key or "")
    name = memory.project_name or key.rstrip("/").rsplit("/", 1)[-1] or key
    reason = memory.project_reason or "named when something was remembered"
    number = projects.ensure_project(tx, key, name, reason, now)
    whole = projects.project(tx, number)
    assert whole is not None
    return (whole.key, *projects.project_aliases(tx).get(number, ())), number


def _recognised(
    tx: Connection, memory: NewMemory, keys: Sequence[str]
) -> tuple[str, Summary | None]:
    """The memory's uid, and who has it already.

    A project that others were merged into has memories, and hashes of forgotten ones, by their keys.
    """
    found = [_recognised_by(tx, memory, key) for key in keys]
    return next((f for f in found if f[1] or ledger.is_forgotten(tx, f[0])), found[0])


def _recognised_by(tx: Connection, memory: NewMemory, key: str) -> tuple[str, Summary | None]:
    """The same by one key.

    Texts that differ in case and punctuation alone share a uid; but punctuation can mean something
    (`> 5`, `< 5`), and then the letter of the text counts.
    """
    parts = (key, memory.kind.value, memory.topic_key or "")
    uid = digest(*parts, normalised(memory.text))
    known = summaries.summary_by_uid(tx, uid)
    if known is not None and not compare(known.body, memory.text).permits:
        uid = digest(*parts, memory.text)
        known = summaries.summary_by_uid(tx, uid)
    return uid, known


def _same_value(tx: Connection, uid: str, memory: NewMemory, project_id: int) -> Summary | None:
    """The value of this topic that says the same in other letters: filler, spelling, punctuation."""
    if memory.topic_key is None or memory.source not in DELIBERATE_SOURCES:
        return None
    if ledger.is_forgotten(tx, uid):
        return None
    known = [
        one
        for one in summaries.topic_summaries(tx, memory.topic_key, (project_id,))
        if one.kind is memory.kind and compare(one.body, memory.text).verdict is Agreement.SAME
    ]
    return next((one for one in known if one.superseded_by is None), next(iter(known), None))


def _is_judged(tx: Connection, known: Summary) -> bool:
    """Whether somebody said that what hides it does: no import knows better."""
    above = known.superseded_by
    return above is not None and store_judgments.stance_between(tx, known.id, above) is not None


def _create(
    tx: Connection, uid: str, memory: NewMemory, project_id: int, now: int
) -> RememberResult:
    if ledger.is_forgotten(tx, uid):
        if memory.source not in DELIBERATE_SOURCES:
            return RememberResult(0, "forgotten")
        ledger.remove_forgotten(tx, uid)
    at = now if memory.at is None else memory.at
    owner = summaries.SummaryOwner(
        project_id, _session(tx, memory, project_id, at), storable(memory.source)
    )
    number, _ = summaries.put_summary(tx, uid, _draft(memory, at), owner, now)
    _refer(tx, number, memory, at)
    gone = _take_topic(tx, number, memory, now)
    # An import counts what it replaced beside what was new.
    replaces = bool(gone) and memory.source in DELIBERATE_SOURCES
    return RememberResult(number, "superseded" if replaces else "created", gone)


def _refer(tx: Connection, number: int, memory: NewMemory, at: int) -> None:
    links.add_edges(
        tx,
        [
            links.NewEdge(
                "summary", str(number), EdgeType.REFERENCES, "file", file, "remembered", at
            )
            for file in memory.files
        ],
    )


def _session(tx: Connection, memory: NewMemory, project_id: int, at: int) -> int | None:
    if memory.session is None:
        return None
    ref = memory.session
    if memory.project_key in {None, GLOBAL_PROJECT}:
        # What holds everywhere says nothing about where its session runs: never make one from it.
        found = projects.find_sessions(tx, storable(ref.key))
        return next((s.id for s in found if (s.client, s.key) == (ref.client, ref.key)), None)
    return projects.ensure_session(tx, ref, project_id, at)


def _draft(memory: NewMemory, at: int) -> Draft:
    return Draft(
        slot="memory",
        kind=memory.kind,
        title=memory.title or "",
        body=memory.text,
        at=at,
        rule=_rule(memory),
        sources=(),
        tier=memory.tier,
        tags=memory.tags,
        files=memory.files,
        topic_key=memory.topic_key,
        expires_at=memory.expires_at,
        confidence=store_judgments.initial_confidence(memory.source),
    )


def _rule(memory: NewMemory) -> str:
    if not memory.is_titled:
        return UNTITLED
    if memory.origin is None:
        return "remembered"
    return sources.IMPORTED_FILE if memory.tier is Tier.FILE else sources.IMPORTED


def _strengthen(
    tx: Connection, known: Summary, memory: NewMemory, at: int, now: int
) -> RememberResult:
    if memory.source in DELIBERATE_SOURCES or (at > known.at and memory.origin is None):
        # The same line of the same import again is no second voice.
        summaries.strengthen_summary(tx, known.id, now)
    is_over = known.expires_at is not None and known.expires_at <= now
    if known.expires_at != memory.expires_at and (at >= known.at or memory.origin is not None):
        summaries.renew_summary(
            tx, known.id, at=at if is_over else known.at, expires_at=memory.expires_at, now=now
        )
    return RememberResult(known.id, "duplicate", _take_topic(tx, known.id, memory, now))


def _revive(
    tx: Connection, known: Summary, memory: NewMemory, at: int, now: int
) -> RememberResult:
    hidden_by = [
        one
        for one in links.supersessions_of(tx, known.id)
        if one.older_id == known.id and one.undone_at is None
    ]
    for one in hidden_by:
        links.undo_supersession(tx, one.id, now)
        judgments.drop_judgment(tx, one.newer_id, known.id, now)
    summaries.strengthen_summary(tx, known.id, now)
    summaries.renew_summary(
        tx, known.id, at=max(at, known.at), expires_at=memory.expires_at, now=now
    )
    gone = (*_take_topic(tx, known.id, memory, now), *_take_place(tx, known.id, hidden_by, now))
    return RememberResult(known.id, "revived", gone)


def _take_place(
    tx: Connection, summary_id: int, hidden_by: Sequence[Supersession], now: int
) -> tuple[int, ...]:
    """Hide what had hidden this one because only one of the two holds: this one was said last."""
    alike = [one.newer_id for one in hidden_by if one.rule == NEAR_DUPLICATE]
    judged = [
        one.newer_id
        for one in hidden_by
        if one.rule in {judgments.JUDGED_RULE, SAID_AGAIN_RULE}
    ]
    return (
        *_hide(tx, summary_id, alike, NEAR_DUPLICATE, "said again", now),
        *_hide(tx, summary_id, judged, SAID_AGAIN_RULE, "said again", now),
    )


def _take_topic(
    tx: Connection, summary_id: int, memory: NewMemory, now: int
) -> tuple[int, ...]:
    """Let the newest value of this topic hide the others; those that this one hides.

    Newest is what was said last, and what is said now is newer than anything.
    """
    if memory.topic_key is None:
        return ()
    mine = summaries.get_summary(tx, summary_id)
    assert mine is not None
    rivals = [
        other
        for other in summaries.topic_summaries(tx, memory.topic_key, (mine.project_id,))
        if other.id != mine.id and other.kind is mine.kind and other.superseded_by is None
        if store_judgments.stance_between(tx, mine.id, other.id) not in SEPARATING_RELATIONS
    ]
    newer = [r for r in rivals if memory.at is not None and (r.at, r.id) > (memory.at, mine.id)]
    if newer:
        _hide(tx, newer[0].id, [mine.id], TOPIC_KEY_RULE, "same topic key", now)
        return ()
    return _hide(tx, mine.id, [r.id for r in rivals], TOPIC_KEY_RULE, "same topic key", now)


def _hide(
    tx: Connection, newer_id: int, older_ids: Sequence[int], rule: str, guard: str, now: int
) -> tuple[int, ...]:
    """Hide these, but not what is pinned: it stays, beside an edge that says so."""
    hidden = []
    for older in summaries.summaries_by_ids(tx, older_ids).values() if older_ids else ():
        if older.pinned_at is not None:
            type_ = EdgeType.CONTRADICTS if rule == TOPIC_KEY_RULE else EdgeType.SIMILAR_TO
            links.add_edges(
                tx,
                [links.NewEdge("summary", str(newer_id), type_, "summary", str(older.id), rule, now,
                               detail={"finding": "pinned"})],
            )  # fmt: skip
        elif links.supersede(
            tx,
            newer_id=newer_id,
            older_id=older.id,
            rule=rule,
            cosine=None,
            guard=guard,
            at=now,
        ):
            hidden.append(older.id)
    return tuple(hidden)


def _at(tx: Connection, summary_id: int) -> int:
    summary = summaries.get_summary(tx, summary_id)
    return summary.at if summary else 0
