"""Write an explicit memory: create it, strengthen an equal one, or revive one that was superseded.

A new value under a topic key supersedes the old one at once, and an old value that returns supersedes it
again. A pinned memory is never hidden. The caller provides the transaction and a redacted,
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
from memd.models import GLOBAL_PROJECT, UNTITLED, Draft, EdgeType, Kind, SessionRef, Summary, Tier
from memd.store import ledger, links, projects, summaries
from memd.store.database import Connection
from memd.store.judgments import initial_confidence, stance_between
from memd.text import digest, normalised, storable

TOPIC_KEY_RULE = "topic-key"
SAID_AGAIN_RULE = "said-again"
"""The rule by which a value that returns hides what had been judged to replace it."""
_RULES_OF_RETURN = {
    NEAR_DUPLICATE_RULE: NEAR_DUPLICATE_RULE,
    judgments.JUDGED_RULE: SAID_AGAIN_RULE,
    SAID_AGAIN_RULE: SAID_AGAIN_RULE,
}
"""The rule that hid a memory → the rule by which that memory, said again, hides the other."""
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
    writer, origin = _MemoryWriter(tx, memory, now), memory.origin
    if origin is None:
        return writer.write()
    there = sources.find_memory(tx, origin)
    content = memory.kind, storable(memory.text)
    if there is not None and (there.kind, there.body) == content and not origin.moves:
        # It stays in its project, whichever project would be chosen for it now.
        sources.attach_origin(tx, there, origin, now)
        return writer.revise(there)
    if sources.is_forgotten(tx, origin):
        return RememberResult(0, "forgotten")
    result = writer.write()
    mine = summaries.get_summary(tx, result.id)
    replaced = sources.attach_origin(tx, mine, origin, now) if mine else ()
    return replace(result, superseded=tuple(dict.fromkeys((*result.superseded, *replaced))))


@dataclass(frozen=True, slots=True)
class _MemoryWriter:
    """Writes one memory in one transaction."""

    tx: Connection
    memory: NewMemory
    now: int

    @property
    def at(self) -> int:
        return self.now if self.memory.at is None else self.memory.at

    def write(self) -> RememberResult:
        """Create a memory, or strengthen or revive an equal one."""
        tx, memory = self.tx, self.memory
        keys, project_id = self._find_project()
        uid, known = self._find_equal(keys)
        known = known or self._find_equal_value(uid, project_id)
        if known is None:
            return self._create_memory(uid, project_id)
        if known.superseded_by is None:
            return self._strengthen_memory(known)
        if not memory.is_deliberate and stance_between(tx, known.id, known.superseded_by):
            # An import does not know better than a judgment.
            return RememberResult(known.id, "duplicate")
        if memory.at is not None and not (memory.origin and sources.was_replaced(tx, known)):
            newer = summaries.get_summary(tx, known.superseded_by)
            if newer is not None and memory.at <= newer.at:
                # It was said before it was superseded: the newer value stays.
                return RememberResult(known.id, "duplicate")
        return self._revive_memory(known)

    def revise(self, known: Summary) -> RememberResult:
        """Give a memory of the same text the title, tags and files of this one."""
        memory = self.memory
        if (known.title, known.tags, known.files) == (memory.title, memory.tags, memory.files):
            return RememberResult(known.id, "duplicate")
        owner = summaries.SummaryOwner(known.project_id, known.session_id, known.source)
        draft = self._make_draft(known.at if memory.at is None else memory.at)
        summaries.put_summary(self.tx, known.uid, draft, owner, self.now)
        self._link_files(known.id, self.now)
        return RememberResult(known.id, "revised")

    def _find_project(self) -> tuple[Sequence[str], int]:
        """(the current and the former keys of the memory's project, its id)."""
        tx, memory = self.tx, self.memory
        if memory.is_global:
            return (GLOBAL_PROJECT,), projects.ensure_global(tx, self.now)
        key = storable(memory.project_key or "")
        name = memory.project_name or key.rstrip("/").rsplit("/", 1)[-1] or key
        reason = memory.project_reason or "named when something was remembered"
        number = projects.ensure_project(tx, key, name, reason, self.now)
        project = projects.project(tx, number)
        assert project is not None
        return (project.key, *projects.project_aliases(tx).get(number, ())), number

    def _find_equal(self, keys: Sequence[str]) -> tuple[str, Summary | None]:
        """The memory's uid, and the summary that has it.

        A merged project has memories, and hashes of forgotten ones, under each of its keys.
        """
        found = [self._find_by_uid(key) for key in keys]
        known = (f for f in found if f[1] or ledger.is_forgotten(self.tx, f[0]))
        return next(known, found[0])

    def _find_by_uid(self, key: str) -> tuple[str, Summary | None]:
        """The same for one project key.

        Texts that differ in case and punctuation share a uid, unless the punctuation has a meaning
        (`> 5`, `< 5`).
        """
        memory = self.memory
        parts = (key, memory.kind.value, memory.topic_key or "")
        uid = digest(*parts, normalised(memory.text))
        known = summaries.summary_by_uid(self.tx, uid)
        if known is not None and not compare(known.body, memory.text).agrees:
            uid = digest(*parts, memory.text)
            known = summaries.summary_by_uid(self.tx, uid)
        return uid, known

    def _find_equal_value(self, uid: str, project_id: int) -> Summary | None:
        """The value of this topic with the same meaning in other words; a visible one first."""
        topic, text = self.memory.topic_key, self.memory.text
        if topic is None or not self.memory.is_deliberate or ledger.is_forgotten(self.tx, uid):
            return None
        equal = [
            one
            for one in summaries.topic_summaries(self.tx, topic, (project_id,))
            if one.kind is self.memory.kind and compare(one.body, text).agreement is Agreement.SAME
        ]
        return min(equal, key=lambda one: one.superseded_by is not None, default=None)

    def _create_memory(self, uid: str, project_id: int) -> RememberResult:
        tx, memory = self.tx, self.memory
        if ledger.is_forgotten(tx, uid):
            if not memory.is_deliberate:
                return RememberResult(0, "forgotten")
            ledger.remove_forgotten(tx, uid)
        session_id = self._find_session(project_id)
        owner = summaries.SummaryOwner(project_id, session_id, storable(memory.source))
        number, _ = summaries.put_summary(tx, uid, self._make_draft(self.at), owner, self.now)
        self._link_files(number, self.at)
        replaced = self._settle_topic(number)
        # An import counts what it replaced beside what was new.
        outcome = "superseded" if replaced and memory.is_deliberate else "created"
        return RememberResult(number, outcome, replaced)

    def _link_files(self, number: int, at: int) -> None:
        start = ("summary", str(number), EdgeType.REFERENCES, "file")
        edges = [links.NewEdge(*start, file, "remembered", at) for file in self.memory.files]
        links.add_edges(self.tx, edges)

    def _find_session(self, project_id: int) -> int | None:
        ref = self.memory.session
        if ref is None:
            return None
        if self.memory.is_global:
            # A global memory does not show in which project its session runs, so it creates none.
            found = projects.find_sessions(self.tx, storable(ref.key))
            same = (s.id for s in found if (s.client, s.key) == (ref.client, ref.key))
            return next(same, None)
        return projects.ensure_session(self.tx, ref, project_id, self.at)

    def _make_draft(self, at: int) -> Draft:
        memory, rule = self.memory, "remembered"
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

    def _strengthen_memory(self, known: Summary) -> RememberResult:
        memory, is_imported = self.memory, self.memory.origin is not None
        if memory.is_deliberate or (self.at > known.at and not is_imported):
            # The same line of the same import again is no repetition.
            summaries.strengthen_summary(self.tx, known.id, self.now)
        if known.expires_at != memory.expires_at and (self.at >= known.at or is_imported):
            self._renew_memory(known, self.at if known.is_expired(self.now) else known.at)
        return RememberResult(known.id, "duplicate", self._settle_topic(known.id))

    def _revive_memory(self, known: Summary) -> RememberResult:
        undone = show(self.tx, known.id, self.now)
        for one in undone:
            judgments.drop_judgment(self.tx, one.newer_id, known.id, self.now)
        summaries.strengthen_summary(self.tx, known.id, self.now)
        self._renew_memory(known, max(self.at, known.at))
        replaced = self._settle_topic(known.id)
        for one in undone:
            # Only one of the two holds, so it hides what had hidden it.
            if rule := _RULES_OF_RETURN.get(one.rule):
                replaced += self._hide_all(known.id, [one.newer_id], rule, "said again")
        return RememberResult(known.id, "revived", replaced)

    def _renew_memory(self, known: Summary, at: int) -> None:
        expires_at = self.memory.expires_at
        summaries.renew_summary(self.tx, known.id, at=at, expires_at=expires_at, now=self.now)

    def _settle_topic(self, summary_id: int) -> tuple[int, ...]:
        """Let the newest value of this topic hide the others; the ids that this memory hides.

        Newest is what was said last, and what is said now is newer than anything.
        """
        tx, memory, guard = self.tx, self.memory, "same topic key"
        mine = summaries.get_summary(tx, summary_id)
        if memory.topic_key is None or mine is None:
            return ()
        others = [
            other
            for other in summaries.topic_summaries(tx, memory.topic_key, (mine.project_id,))
            if other.id != mine.id and other.kind is mine.kind and other.superseded_by is None
            if stance_between(tx, mine.id, other.id) not in judgments.SEPARATING_RELATIONS
        ]
        for other in others if memory.at is not None else ():
            if (other.at, other.id) > (self.at, mine.id):
                self._hide_all(other.id, [mine.id], TOPIC_KEY_RULE, guard)
                return ()
        return self._hide_all(mine.id, [one.id for one in others], TOPIC_KEY_RULE, guard)

    def _hide_all(
        self, newer_id: int, older_ids: Sequence[int], rule: str, guard: str
    ) -> tuple[int, ...]:
        """Hide these memories, except pinned ones; the ids that were hidden."""
        edge = EdgeType.CONTRADICTS if rule == TOPIC_KEY_RULE else EdgeType.SIMILAR_TO
        found = summaries.summaries_by_ids(self.tx, older_ids) if older_ids else {}
        return tuple(
            older.id
            for older in found.values()
            if hide_unless_pinned(self.tx, newer_id, older, rule, guard, self.now, otherwise=edge)
        )
