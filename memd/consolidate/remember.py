"""Write an explicit memory: create it, strengthen an equal one, or revive one that was superseded.

A new value under a topic key supersedes the old one at once, and an old value that returns supersedes it
again, unless a lesser authority says it: then both stay, as a contradiction. The caller provides the transaction
and a redacted, checked and titled memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.belief.compare import Agreement, compare
from memd.belief.decide import VALUE_KINDS
from memd.belief.ending import is_said_against
from memd.belief.notes import (
    Note,
    Proof,
    QuotedNote,
    Unproved,
    mark_unproved,
    name_proof,
    split_note,
)
from memd.belief.rejections import find_rejected, make_statement, take_back
from memd.belief.standing import find_objection
from memd.belief.supersede import (
    NEAR_DUPLICATE_RULE,
    SAID_AGAIN_RULE,
    TOPIC_KEY_RULE,
    TWIN_RULE,
    find_equal,
    find_hiding,
    find_similar,
    find_twins,
    hide,
    make_proof_edge,
    make_stood_edge,
    may_revive,
    prove_note,
    repeat,
    settle_changed_values,
    show,
)
from memd.belief.values import FileLine
from memd.consolidate import judgments, sources
from memd.consolidate.near_duplicates import JudgmentCandidate
from memd.consolidate.sources import Origin
from memd.models import (
    GLOBAL_PROJECT,
    REMEMBERED,
    UNTITLED,
    Authority,
    Draft,
    EdgeType,
    Kind,
    SessionRef,
    Summary,
    Tier,
    noted_rule,
)
from memd.store import ledger, links, projects, reviews, summaries
from memd.store.database import Connection
from memd.store.judgments import JUDGED_RULE, initial_confidence, stance_between
from memd.text import digest, literal_form, normalised, storable

REPLACED_RULE = "replaced"
"""The rule by which a memory hides what its speaker says it replaces."""
SAID_AGAINST_RULE = "said-against"
"""The same, of the user's earlier word, where his later words that prove the memory turn it themselves."""
_RULES_OF_RETURN = {
    NEAR_DUPLICATE_RULE: NEAR_DUPLICATE_RULE,
    JUDGED_RULE: SAID_AGAIN_RULE,
    TWIN_RULE: SAID_AGAIN_RULE,
    SAID_AGAIN_RULE: SAID_AGAIN_RULE,
    CHANGED_VALUE_RULE: CHANGED_VALUE_RULE,
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
    authority: Authority = Authority.AGENT_CALL
    """Whose word it is."""
    why: str = ""
    """Its reason, in the agent's words."""
    claim: QuotedNote | None = None
    """The words by which an agent would prove that it is the user's."""
    proof: Proof | None = None
    """Where the record has them; then `authority` is USER_TOLD."""
    replaces: tuple[int, ...] = ()
    """Memories that hold no longer, as its speaker says."""
    device: str = "this device"
    """Where it is proved."""
    check: str = ""
    """How its speaker says that it can be checked."""
    refused: Unproved | None = None
    """Why they do not prove it."""
    line: FileLine | None = None
    """The line of a file that it rests on."""
    quality: float = 0.5
    """How much it says and how well, 0 to 1; unmeasured at first."""

    @property
    def body(self) -> str:
        """Compose the text with its reason and its check, and the user's words that prove it or that are not found."""
        if self.source != "agent" and self.proof is None:
            return Note(self.text, check=self.check).format() if self.check else self.text
        said, claim, check = self.proof, self.claim, self.check
        if said is not None:
            proved = name_proof(said.at, self.device)
            return Note(
                self.text, self.why, said.quote, said.about, proved=proved, check=check
            ).format()
        if self.line is not None:
            return Note(self.text, self.why, line=str(self.line), check=check).format()
        refused = self.refused or Unproved("")
        if (found := refused.evidence) is not None:
            stood, seen = (found.quote, "") if found.stood else ("", found.quote)
            return Note(self.text, self.why, stood=stood, seen=seen, check=check).format()
        note = Note(self.text, self.why, check=check)
        return mark_unproved(note, claim, refused).format() if claim else note.format()

    @property
    def is_deliberate(self) -> bool:
        """Return whether a user or an agent stated it, rather than an import."""
        return self.source in DELIBERATE_SOURCES

    @property
    def is_global(self) -> bool:
        """Return whether it holds in every project."""
        return self.project_key in {None, GLOBAL_PROJECT}


@dataclass(frozen=True, slots=True)
class RememberResult:
    """The outcome of remembering something."""

    id: int
    """0 if nothing was written."""
    outcome: str
    """`created`, `superseded` (created, and it replaces older values), `contradicts` (created, and what it was to replace
    stays), `duplicate` (it strengthened #id),
    `revised` (its origin has another title, tags or files now), `revived`, `forgotten` (an import may
    not bring back what was forgotten on purpose), or `rejected` (nor anybody but the user what the user rejected)."""
    superseded: tuple[int, ...] = ()
    candidates: tuple[JudgmentCandidate, ...] = ()
    """Similar memories that no rule has resolved: the caller should judge them."""
    staying: tuple[int, ...] = ()
    """What it was to replace and a greater speaker's word keeps; the two are a contradiction now."""
    proof: Proof | None = None
    """Where the user said what an agent noted."""
    refused: Unproved | None = None
    """Why a note with a quote stays the agent's word."""
    rejected: Summary | None = None
    """What the user rejected and this says again."""
    line: FileLine | None = None
    """The line of a file that a fact rests on."""


def remember(tx: Connection, memory: NewMemory, now: int) -> RememberResult:
    """Write one memory."""
    origin = memory.origin
    if origin is None:
        writer = _MemoryWriter(tx, memory, now)
        return writer.replace_named(writer.write())
    there = sources.find_memory(tx, origin)
    writer = _MemoryWriter(tx, memory, now)
    is_same = there is not None and there.kind is memory.kind and _has_text(there.body, memory.text)
    if there is not None and is_same and not origin.moves:
        # It stays in its project, whichever project would be chosen for it now.
        sources.attach_origin(tx, there, origin, memory.authority, now)
        return writer.revise(there)
    if sources.is_forgotten(tx, origin):
        return RememberResult(0, "forgotten")
    result = writer.write()
    mine = summaries.get_summary(tx, result.id)
    replaced = sources.attach_origin(tx, mine, origin, memory.authority, now) if mine else ()
    return replace(result, superseded=tuple(dict.fromkeys((*result.superseded, *replaced))))


def _has_text(body: str, text: str) -> bool:
    """Return whether a memory has this text, with or without the words that prove it."""
    return body == storable(text) or split_note(body).text == Note(storable(text)).format()


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
        """Create a memory, or strengthen or revive an equal one; what the user rejected comes back only by the user's hand."""
        keys, project_id = self._find_project()
        while (rejected := self._find_rejected(project_id)) is not None:
            if not self._is_by_hand:
                return RememberResult(0, "rejected", rejected=rejected)
            take_back(self.tx, rejected.id)
        uid, known = self._find_equal(keys)
        known = known or self._find_equal_value(uid, project_id)
        if known is None:
            return self._create_memory(uid, project_id)
        if known.superseded_by is None:
            return self._strengthen_memory(known)
        if (copied := self._find_repeated(known)) is not None:
            return self._strengthen_memory(copied)
        if not self._may_revive(known):
            return RememberResult(known.id, "duplicate")
        return self._revive_memory(known)

    @property
    def _is_by_hand(self) -> bool:
        memory = self.memory
        return memory.source == "user" and memory.authority is Authority.USER_HAND

    def _find_rejected(self, project_id: int) -> Summary | None:
        """Return what the user rejected and this memory says again."""
        memory, claim, said = self.memory, self.memory.claim, self.memory.proof
        statement = make_statement(
            "" if memory.title == memory.text else memory.title or "",
            memory.text,
            said.quote if said else claim.quote if claim else "",
            said.event_id if said else None,
            why=memory.why,
            is_agents=memory.authority < Authority.USER_PROMPT,
        )
        return find_rejected(self.tx, statement, None if memory.is_global else project_id)

    def replace_named(self, result: RememberResult) -> RememberResult:
        """Let a memory that was written hide those that it says it replaces, as far as its speaker may."""
        wanted = [one for one in self.memory.replaces if one != result.id and result.id]
        said = self._add_twins(self._list_said_against(wanted), result.id)
        wanted = self._add_twins(wanted, result.id)
        hidden = self._hide_all(result.id, said, SAID_AGAINST_RULE, "named, with his later words")
        named = [one for one in wanted if one not in said]
        hidden += self._hide_all(result.id, named, REPLACED_RULE, "named when it was remembered")
        if not wanted:
            return result
        gone = dict.fromkeys((*result.superseded, *hidden))
        known = summaries.summaries_by_ids(self.tx, wanted)
        live = (one for one in wanted if one in known and known[one].superseded_by is None)
        staying = tuple(one for one in live if one not in gone)
        outcome = result.outcome
        if outcome == "created" and (hidden or staying):
            outcome = "superseded" if hidden else "contradicts"
        return replace(result, superseded=tuple(gone), staying=staying, outcome=outcome)

    def _add_twins(self, ids: Sequence[int], besides: int) -> list[int]:
        """Return these memories and those that say the same."""
        known = summaries.summaries_by_ids(self.tx, ids)
        twins = (twin.id for one in known.values() for twin in find_twins(self.tx, one))
        return [one for one in dict.fromkeys((*ids, *twins)) if one != besides]

    def _list_said_against(self, wanted: Sequence[int]) -> list[int]:
        """List those of these memories of the user's that his later words, which prove the note, turn themselves."""
        proof = self.memory.proof
        known = summaries.summaries_by_ids(self.tx, wanted) if proof and wanted else {}
        return [
            one.id
            for one in known.values()
            if proof is not None
            and one.authority >= Authority.USER_TOLD
            and is_said_against(
                proof.quote,
                self.memory.text,
                proof.at,
                one.title,
                reviews.read_stated_at(self.tx, one.id, one.at),
                is_task=one.kind is Kind.TASK,
            )
        ]

    def _may_revive(self, known: Summary) -> bool:
        memory, newer_id = self.memory, known.superseded_by
        assert newer_id is not None
        if not memory.is_deliberate and stance_between(self.tx, known.id, newer_id):
            # An import does not know better than a judgment.
            return False
        if memory.at is not None and not (memory.origin and sources.was_replaced(self.tx, known)):
            newer = summaries.get_summary(self.tx, newer_id)
            if newer is not None and memory.at <= newer.at:
                # It was said before it was superseded: the newer value stays.
                return False
        return may_revive(self.tx, memory.authority, known)

    def _find_repeated(self, known: Summary) -> Summary | None:
        """Find the memory of a greater authority that a hidden memory is only a copy of."""
        for one in find_hiding(self.tx, known.id):
            newer = summaries.get_summary(self.tx, one.newer_id)
            is_copy = one.rule == NEAR_DUPLICATE_RULE and newer is not None
            if newer is not None and is_copy and newer.superseded_by is None:
                return newer if find_objection(self.memory.authority, newer) else None
        return None

    def revise(self, known: Summary) -> RememberResult:
        """Give a memory of the same text the title, tags and files of this one."""
        memory = self.memory
        is_same = (known.title, known.tags, known.files) == (
            memory.title,
            memory.tags,
            memory.files,
        ) and memory.expires_at in {None, known.expires_at}
        if is_same or memory.authority < known.standing:
            return RememberResult(known.id, "duplicate")
        owner = summaries.SummaryOwner(known.project_id, known.session_id, known.source)
        draft = self._make_draft(known.at if memory.at is None else memory.at)
        summaries.put_summary(self.tx, known.uid, draft, owner, self.now)
        self._link_files(known.id, self.now)
        return RememberResult(known.id, "revised")

    def _find_project(self) -> tuple[Sequence[str], int]:
        """Find (the current and the former keys of the memory's project, its id)."""
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
        """Return the memory's uid, and the summary that has it.

        A merged project has memories, and hashes of forgotten ones, under each of its keys.
        """
        found = [self._find_by_uid(key) for key in keys]
        known = (f for f in found if f[1] or ledger.is_forgotten(self.tx, f[0]))
        return next(known, found[0])

    def _find_by_uid(self, key: str) -> tuple[str, Summary | None]:
        """Return the same for one project key.

        Texts that differ in case and punctuation share a uid, unless one that states something else has
        it already. The last two forms are those of former versions.
        """
        text, parts = self.memory.text, (key, self.memory.kind.value, self.memory.topic_key or "")
        forms = ((literal_form(text),), ("exactly", text), (normalised(text),), (text,))
        uids = [digest(*parts, *form) for form in forms]
        known = [summaries.summary_by_uid(self.tx, uid) for uid in uids]
        for uid, one in zip(uids, known, strict=True):
            if one is not None and compare(split_note(one.body).text, text).is_equal:
                return uid, one
        if not self.memory.is_deliberate:
            # What a former version has forgotten stays forgotten.
            gone = [uid for uid in uids[2:] if ledger.is_forgotten(self.tx, uid)]
            if gone:
                return gone[0], None
        return uids[0 if known[0] is None else 1], None

    def _find_equal_value(self, uid: str, project_id: int) -> Summary | None:
        """Find a memory that states the same in other words, on this topic or on none; a visible one first."""
        tx, memory, text = self.tx, self.memory, self.memory.text
        if not memory.is_deliberate or ledger.is_forgotten(tx, uid):
            return None
        if memory.topic_key is not None:
            equal = [
                one
                for one in summaries.topic_summaries(tx, memory.topic_key, (project_id,))
                if one.kind is memory.kind
                and not one.author
                and compare(split_note(one.body).text, text).agreement is Agreement.SAME
            ]
        else:
            equal = [
                one
                for one in find_equal(tx, (project_id,), memory.kind, "", text)
                if one.topic_key is None and one.tier is not Tier.CAPTURED
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
        self._link_proof(number)
        replaced = self._resolve_topic(number)
        replaced += self._resolve_value(number)
        # An import counts what it replaced beside what was new.
        outcome = "superseded" if replaced and memory.is_deliberate else "created"
        return RememberResult(number, outcome, replaced)

    def _link_files(self, number: int, at: int) -> None:
        start = ("summary", str(number), EdgeType.REFERENCES, "file")
        edges = [links.NewEdge(*start, file, "remembered", at) for file in self.memory.files]
        links.add_edges(self.tx, edges)

    def _link_proof(self, number: int) -> None:
        if (proof := self.memory.proof) is not None:
            links.add_edges(self.tx, [make_proof_edge(number, proof)])
        elif (refused := self.memory.refused) and (found := refused.evidence) and found.stood:
            links.add_edges(self.tx, [make_stood_edge(number, found)])

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
        memory, rule = self.memory, REMEMBERED
        if not memory.is_titled:
            rule = UNTITLED
        if memory.proof is not None:
            rule = noted_rule(rule)
        elif memory.origin is not None:
            rule = sources.IMPORTED_FILE if memory.tier is Tier.FILE else sources.IMPORTED
        return Draft(
            slot="memory", kind=memory.kind, title=memory.title or "", body=memory.body, at=at,
            rule=rule, sources=(), tier=memory.tier, tags=memory.tags, files=memory.files,
            topic_key=memory.topic_key, expires_at=memory.expires_at,
            confidence=initial_confidence(memory.source), quality=memory.quality,
            authority=memory.authority,
        )  # fmt: skip

    def _strengthen_memory(self, known: Summary) -> RememberResult:
        memory, is_imported = self.memory, self.memory.origin is not None
        again = self._hide_again(known) if known.is_expired(self.now) else ()
        if memory.is_deliberate or (self.at > known.at and not is_imported):
            # The same line of the same import again is no repetition.
            self._repeat_memory(known)
        # A lesser authority does not say for how long the word of a greater one holds.
        is_own = memory.authority >= known.standing
        if (
            is_own
            and known.expires_at != memory.expires_at
            and (self.at >= known.at or is_imported)
        ):
            self._renew_memory(known, self.at if known.is_expired(self.now) else known.at)
        return RememberResult(known.id, "duplicate", (*again, *self._resolve_topic(known.id)))

    def _hide_again(self, known: Summary) -> tuple[int, ...]:
        """Let a memory that was taken back and is said again hide what it hid until then."""
        return tuple(
            one
            for past in links.supersessions_of(self.tx, known.id)
            if past.newer_id == known.id and past.undone_at == known.expires_at
            for one in self._hide_all(known.id, [past.older_id], past.rule, past.guard)
        )

    def _repeat_memory(self, known: Summary) -> None:
        """Count a repetition; one that is proved brings its proof to what had none."""
        if self.memory.proof is None or known.authority >= Authority.USER_TOLD:
            repeat(self.tx, known, self.memory.authority, self.now)
            return
        summaries.strengthen_summary(self.tx, known.id, self.now)
        prove_note(self.tx, known, self.memory.body, self.memory.proof, self.now)

    def _revive_memory(self, known: Summary) -> RememberResult:
        undone = show(self.tx, known.id, self.now)
        for one in undone:
            judgments.drop_judgment(self.tx, one.newer_id, known.id, self.now)
        self._repeat_memory(known)
        self._renew_memory(known, max(self.at, known.at))
        replaced = self._resolve_topic(known.id)
        for one in undone:
            # Only one of the two holds, so it hides what had hidden it.
            if rule := _RULES_OF_RETURN.get(one.rule):
                replaced += self._hide_all(known.id, [one.newer_id], rule, "said again")
        return RememberResult(known.id, "revived", replaced)

    def _renew_memory(self, known: Summary, at: int) -> None:
        expires_at = self.memory.expires_at
        summaries.renew_summary(self.tx, known.id, at=at, expires_at=expires_at, now=self.now)

    def _resolve_topic(self, summary_id: int) -> tuple[int, ...]:
        """Let the newest value of this topic hide the others of any kind; the ids that this hides.

        Newest is what was said last, and what is said now is newer than anything.
        """
        tx, memory, guard = self.tx, self.memory, "same topic key"
        mine = summaries.get_summary(tx, summary_id)
        if memory.topic_key is None or mine is None or memory.authority < mine.authority:
            # A lesser authority that repeats a value does not say again which one holds.
            return ()
        others = [
            other
            for other in summaries.topic_summaries(tx, memory.topic_key, (mine.project_id,))
            if other.id != mine.id and other.superseded_by is None
            if stance_between(tx, mine.id, other.id) not in judgments.SEPARATING_RELATIONS
        ]
        for other in others if memory.at is not None else ():
            if (other.at, other.id) > (self.at, mine.id):
                self._hide_all(other.id, [mine.id], TOPIC_KEY_RULE, guard)
                return ()
        return self._hide_all(mine.id, [one.id for one in others], TOPIC_KEY_RULE, guard)

    def _resolve_value(self, summary_id: int) -> tuple[int, ...]:
        """Let this memory replace what gives the same thing another value; the ids that it hides."""
        mine = summaries.get_summary(self.tx, summary_id)
        if mine is None or mine.kind not in VALUE_KINDS or mine.superseded_by is not None:
            return ()
        similar = find_similar(self.tx, (mine.project_id,), VALUE_KINDS, mine.title, mine.body)
        others = [one for one in similar if one.id != mine.id]
        return settle_changed_values(self.tx, mine, others, self.now)

    def _hide_all(
        self, newer_id: int, older_ids: Sequence[int], rule: str, guard: str
    ) -> tuple[int, ...]:
        """Hide these memories, except those that this authority may not; the ids that were hidden."""
        edge = EdgeType.SIMILAR_TO if rule == NEAR_DUPLICATE_RULE else EdgeType.CONTRADICTS
        voice = Authority.USER_PROMPT if rule == SAID_AGAINST_RULE else None
        return tuple(
            older_id
            for older_id in older_ids
            if hide(self.tx, newer_id, older_id, rule, guard, self.now, voice=voice, otherwise=edge)
            is not None
        )
