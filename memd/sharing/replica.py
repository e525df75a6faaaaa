"""The vault as a replica: merge others' records, and apply what all statements decide.

Every function works in the caller's transaction, and leaves tables and registers equal.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memd.belief import rejections
from memd.belief.decide import VALUE_KINDS
from memd.belief.supersede import TOPIC_KEY_RULE, find_similar, settle_changed_values
from memd.models import HIDING_RELATIONS, Project, Stance
from memd.sharing import merge
from memd.sharing.changes import (
    REMOTE_NOTE,
    ChangeNoter,
    about_memory,
    split_name,
    stamp_of,
    uid_of,
)
from memd.sharing.merge import Claim, Knowledge, Value
from memd.sharing.records import (
    FORGET,
    JUDGMENT,
    KINDS,
    MEMORY,
    PROJECT,
    REVIEW,
    SAME,
    SUPERSESSION,
    LogBatch,
    Record,
    Stamp,
    erasure_rank,
    hash_key,
    split_erasure_rank,
    split_ref,
)
from memd.store import erasure, ledger, projects, sharing, statements, summaries
from memd.store.queries import compact_json, row_id
from memd.store.sharing import Register, RegisterName, put_of_memory, read_of_memory
from memd.store.statements import SYNC_RULE, MemoryHead

_COMPARED_MAX = 500
"""Memories of one sync that are compared with those here at once; of more, consolidation does it little by little."""


@dataclass(slots=True)
class MergeOutcome:
    """Outcomes of merging a batch of records: kind of record → count."""

    applied: dict[str, int] = field(default_factory=dict)
    known: int = 0
    is_waiting: bool = False
    """Whether some refer to memories that have not come yet: the batch must be merged again."""
    memories: set[str] = field(default_factory=set)
    """Those that were said elsewhere."""
    is_broken: bool = False
    """Whether the log is not the one that was read so far, so that it must be read from its beginning."""


class Replica(ChangeNoter):
    """A vault's side of syncing."""

    # ── What others said ─────────────────────────────────────────────────────────────────────────

    def merge(self, records: Iterable[Record], batch: LogBatch | None = None) -> MergeOutcome:  # noqa: ARG002  # a team's
        """Merge records in any order; leave out what they say of memories that are not known yet."""
        outcome, forgotten = MergeOutcome(), set(self._forgotten)
        order = {kind: number for number, kind in enumerate(KINDS)}
        for record in sorted(records, key=lambda one: order[one.kind]):
            for ref in record.refs:
                self._note_implied_erasure(ref, record.stamp)
            if any(self._is_dead(ref) for ref in record.refs):
                outcome.known += 1
            elif record.kind not in {FORGET, PROJECT, SAME, MEMORY} and not all(
                self._row(ref) for ref in record.refs
            ):
                outcome.is_waiting = outcome.is_waiting or not self._have_expired(record)
            elif record.kind == MEMORY and self._is_being_erased(record.name[0]):
                outcome.is_waiting = True
            elif self._merge_one(record):
                outcome.applied[record.kind] = outcome.applied.get(record.kind, 0) + 1
                outcome.memories.update(record.name if record.kind == MEMORY else ())
            else:
                outcome.known += 1
        if new := self._forgotten - forgotten:
            erasure.erase_forgotten_names(self._tx, new)
        return outcome

    def leave_logs(self, logs: Iterable[str]) -> MergeOutcome:  # noqa: ARG002  # a team's
        """Note that these logs are gone: their records stay, and are passed on."""
        return MergeOutcome()

    def _is_being_erased(self, ref: str) -> bool:
        """Return whether a memory of this uid has yet to be forgotten here before it is stated again."""
        uid, _ = split_ref(ref)
        return uid in self._forgotten and row_id(self._tx, "summary", uid) is not None

    def _have_expired(self, record: Record) -> bool:
        """Return whether the missing ones were here and expired, so that they will not come."""
        return all(self._row(ref) or self._read_memory(ref) for ref in record.refs)

    def _note_implied_erasure(self, ref: str, stamp: Stamp) -> None:
        """Note that a device has seen the erasure of a memory that it states again."""
        uid, generation = split_ref(ref)
        if self._erased_up_to(uid)[0] < generation - 1:
            self._merge_erasure(uid, erasure_rank(generation - 1, is_forgotten=True), stamp)

    def _merge_one(self, record: Record) -> bool:
        if record.kind == FORGET:
            return self._merge_erasure(record.name[0], record.rank, record.stamp)
        if record.kind == PROJECT:
            return self._merge_project(record)
        if record.kind == SAME:
            return self._merge_same(record)
        one, link, other = split_name(record)
        # What was changed here a moment ago must not be lost.
        self._note_statement(record.kind, uid_of(one), link, uid_of(other))
        if any(self._is_dead(ref) for ref in record.refs):
            return False
        known = sharing.read_register(self._tx, (record.kind, one, link, other))
        if known is not None and not self._is_greater(record, known):
            return False
        if record.kind == MEMORY:
            self._apply_memory(record)
        else:
            rows = [self._row(ref) or 0 for ref in record.refs]
            said_at = record.stamp.wall
            statements.put_statement(self._tx, (record.kind, link), rows, record.value, said_at)
        said = statements.read_statement(self._tx, record.kind, uid_of(one), link, uid_of(other))
        content = about_memory(said) if said and record.kind == MEMORY else {}
        shown = said.hash if said else ""
        if said and said.unknown and json.loads(said.unknown) != record.extra.get("value"):
            shown = ""  # it has more than was said: the next version of it says so
        self._put_record(record, (record.kind, one, link, other), shown, **content)
        if record.kind == REVIEW and record.value and record.value["verdict"] == "rejected":
            # What that changes here is said as this device's own.
            rejections.reject_alike(self._tx, self._row(one) or 0, self._now)
        return True

    def _is_greater(self, record: Record, known: Register) -> bool:
        if (record.rank, record.stamp) != (known.rank, stamp_of(known)):
            return (record.rank, record.stamp) > (known.rank, stamp_of(known))
        mine = self.make_record(known)
        return mine is not None and merge.hash_value(record.value) > merge.hash_value(mine.value)

    def _put_record(self, record: Record, name: RegisterName, shown: str, **content: Any) -> None:
        # What a memory has beside its known fields goes with its row.
        extra = {
            part: found for part, found in record.extra.items()
            if (record.kind, part) != (MEMORY, "value")
        }  # fmt: skip
        is_live, kept = int(record.value is not None), compact_json(extra) if extra else ""
        new = Register(*name, record.rank, *record.stamp, is_live, shown, **content, extra=kept)
        sharing.write_register(self._tx, new)

    def _merge_erasure(self, key: str, rank: int, stamp: Stamp) -> bool:
        known = self._erased.get(key)
        if known is not None and (known.rank, stamp_of(known)) >= (rank, stamp):
            return False
        here = self._generation(key)
        is_new = known is None or known.rank < rank
        self._put_erasure(key, rank, stamp)
        generation, is_forgotten = split_erasure_rank(rank)
        if not is_new or here > generation:
            return is_new
        if is_forgotten:
            ledger.record_forgotten(self._tx, key, self._now)
            self._forgotten.add(key)
        elif erasure.delete_memory(self._tx, row_id(self._tx, "summary", key)):
            erasure.mark_erased(self._tx, "forgotten")
        return True

    def _apply_memory(self, record: Record) -> None:
        fields = record.value
        assert fields is not None
        uid, _ = split_ref(record.name[0])
        ledger.remove_forgotten(self._tx, uid)
        self._forgotten.discard(uid)
        known = summaries.get_summary(self._tx, row_id(self._tx, "summary", uid) or 0)
        here = (known.title, known.body) if known else None
        if here and _count_redacted(fields["title"], fields["body"]) > _count_redacted(*here):
            erasure.mark_erased(self._tx, "forgotten")
        statements.put_memory(self._tx, uid, fields, self._ensure_project(fields["project"]).id)
        # A memd that does not know a field has not dropped it.
        unknown = read_of_memory(self._tx, uid) | record.extra.get("value", {})
        put_of_memory(self._tx, uid, unknown)

    def _merge_project(self, record: Record) -> bool:
        key = record.name[0]
        name = (PROJECT, hash_key(key), "", "")
        known = sharing.read_register(self._tx, name)
        if record.value is None or (known and not self._is_greater(record, known)):
            return False
        label, remote = record.value["name"], record.value["remote"]
        here = self._ensure_project(key, label)
        if here.key == key:
            projects.rename_project(self._tx, here.id, label)
        if remote:
            ledger.write_note(self._tx, REMOTE_NOTE + key, remote)
        shown = label if here.key == key else here.name
        self._put_record(record, name, self._show_project(key, shown))
        return True

    def _ensure_project(self, key: str, label: str = "") -> Project:
        name = label or key.rstrip("/").rpartition("/")[2] or key
        reason = "a project of another device"
        number = projects.ensure_project(self._tx, key, name, reason, self._now)
        found = projects.project(self._tx, number)
        assert found is not None
        return found

    def _merge_same(self, record: Record) -> bool:
        """Make two keys mean one project: the one in which sessions ran on this device."""
        one, other = sorted(map(hash_key, record.name))
        name = (SAME, one, "", other)
        known = sharing.read_register(self._tx, name)
        if known and not self._is_greater(record, known):
            return False
        if record.value is not None:
            self._join_projects(*record.name)
        found = [projects.project_by_key(self._tx, key) for key in record.name]
        is_joined = found[0] is not None and found[0] == found[1]
        self._put_record(record, name, "1" if is_joined else "")
        return True

    def _join_projects(self, one: str, other: str) -> None:
        into, source = sorted(
            (self._ensure_project(one), self._ensure_project(other)),
            key=lambda place: (-statements.count_own_sessions(self._tx, place.key), place.key),
        )
        if into.id != source.id:
            projects.merge_project(self._tx, source, into, self._now)
            self._classes.clear()

    # ── Which supersessions hold ─────────────────────────────────────────────────────────────────

    def settle(self, new: Collection[str] = ()) -> None:
        """Apply what all devices' statements decide, whatever the order in which they came.

        `new`: memories that were said elsewhere, which may change a value of one here as if they were said here.
        """
        self._apply_decisions()
        rows = [row for ref in sorted(new) if (row := self._row(ref))]
        # What the user rejected on any device is hidden here, too.
        if rejections.reject_repeats(self._tx, rows, self._now):
            self.note_relations()
        if 0 < len(new) <= _COMPARED_MAX:
            said = {head.id: head.said_at for head in statements.read_heads(self._tx).values()}
            has_changed = [self._change_values(ref, said) for ref in sorted(new)]
            if any(has_changed):
                self.note_relations()
                self._apply_decisions()

    def _change_values(self, ref: str, said: Mapping[int, int]) -> bool:
        """Let a memory from elsewhere replace another value of the same thing, or be replaced; return whether it does.

        `said`: memory → when somebody said it last.
        """
        mine = summaries.get_summary(self._tx, self._row(ref) or 0)
        if (
            mine is None
            or mine.id not in said
            or mine.kind not in VALUE_KINDS
            or mine.superseded_by
        ):
            return False
        before = self._tx.total_changes()
        for one in find_similar(self._tx, (mine.project_id,), VALUE_KINDS, mine.title, mine.body):
            other = self._ref(one.uid)
            is_topical = mine.topic_key is not None and mine.topic_key == one.topic_key
            is_here = one.id in said and one.id != mine.id  # not a teammate's, nor to be erased
            if not is_here or is_topical or self._was_decided(ref, other):
                continue
            here, there = (replace(memory, at=said[memory.id]) for memory in (mine, one))
            settle_changed_values(self._tx, here, [there], max(here.at, there.at))
        return bool(self._tx.total_changes() > before)

    def _was_decided(self, one: str, other: str) -> bool:
        """Return whether the device that stated both has decided, or somebody stated or undid that one hides the other."""
        said = map(self._read_memory, (one, other))
        speakers = {known.device if known else self._device for known in said}
        pairs = (one, other), (other, one)
        return len(speakers) == 1 or any(
            sharing.read_register(self._tx, (SUPERSESSION, a, "", b)) for a, b in pairs
        )

    def _apply_decisions(self) -> None:
        found = statements.read_heads(self._tx, has_team=True)
        heads = {self._ref(uid): head for uid, head in found.items()}
        ids = {ref: head.id for ref, head in heads.items()}
        decided = merge.decide(self._read_knowledge(heads))

        def to_ids(pairs: Iterable[merge.Pair]) -> set[tuple[int, int]]:
            return {(ids[newer], ids[older]) for newer, older in pairs}

        statements.hold_supersessions(self._tx, to_ids(decided.holding), self._now)
        contradicting = dict.fromkeys(to_ids(decided.rivals), merge.OTHER_VALUE)
        contradicting |= dict.fromkeys(to_ids(decided.outranked), merge.OUTRANKED)
        hidden = to_ids(decided.derived)
        statements.replace_derived(self._tx, hidden, contradicting, merge.OTHER_VALUE, self._now)
        self._note_shown()

    def _read_knowledge(self, heads: Mapping[str, MemoryHead]) -> Knowledge:
        """Read all that is known of the values and of which hides which."""
        separated, directed = self._read_judgments()
        separated |= {frozenset(map(self._ref, pair)) for pair in sharing.read_beside(self._tx)}
        said = statements.read_rules(self._tx)
        claims: list[Claim] = []
        retracted: dict[merge.Pair, int] = {}
        for one in sharing.read_registers(self._tx, SUPERSESSION):
            pair = one.one, one.other
            if not heads.keys() >= set(pair):
                continue
            if one.live:
                rule, at = said.get((uid_of(one.one), uid_of(one.other)), ("", one.wall))
                strength = one.rank, stamp_of(one), *pair
                claims.append(Claim(*pair, one.rank, strength, rule, at, one.wall))
            else:
                retracted[pair] = one.wall
        refused = {
            (self._ref(newer), self._ref(older)): at
            for newer, older, at in statements.read_refusals(self._tx, TOPIC_KEY_RULE)
        }
        noted = {one.one: one for one in sharing.read_registers(self._tx, MEMORY)}
        values = {ref: _to_value(ref, head, noted.get(ref)) for ref, head in heads.items()}
        return Knowledge(values, claims, retracted, refused, separated, directed)

    def _read_judgments(self) -> tuple[frozenset[frozenset[str]], dict[frozenset[str], str]]:
        """(pairs that were judged to hold beside each other, pair → the one that hides the other)."""
        separated: set[frozenset[str]] = set()
        directed: dict[frozenset[str], str] = {}
        for said in statements.each_statement(self._tx, JUDGMENT):
            pair = frozenset((self._ref(said.one), self._ref(said.other)))
            separated.discard(pair)
            directed.pop(pair, None)
            if said.content is None:
                continue
            newer, relation = said.content[:2]
            if Stance(relation) in HIDING_RELATIONS:
                directed[pair] = self._ref(newer)
            else:
                separated.add(pair)
        return frozenset(separated), directed

    def _note_shown(self) -> None:
        """Note the tables' state of supersessions."""
        said = statements.read_statements(self._tx, SUPERSESSION)
        for one in sharing.read_registers(self._tx, SUPERSESSION):
            statement = said.get((uid_of(one.one), "", uid_of(one.other)))
            shown = "" if statement is None or statement.rule == SYNC_RULE else statement.hash
            if shown != one.shown and self._row(one.one) and self._row(one.other):
                sharing.note_shown(self._tx, one.name, shown)


def _count_redacted(*texts: str) -> int:
    return "".join(texts).count("[REDACTED:")


def _to_value(ref: str, head: MemoryHead, known: Register | None) -> Value:
    place = None if head.topic_key is None else (head.project_id, head.author, head.topic_key)
    return Value(
        ref, head.authority, head.at, head.said_at, known.wall if known and head.is_explicit else 0,
        place, head.pinned_by, head.pinned_at, bool(head.is_edit),
    )  # fmt: skip
