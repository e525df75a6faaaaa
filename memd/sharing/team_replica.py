"""A vault's side of a team's project: records of teammates' memories, and this device's records of its own.

A teammate's memory is written beside the vault's own and hides none of them. Of what several devices of one
author said of a memory the greatest version holds, and of several values of one topic the one that `merge.decide`
lets hold, as on the author's own machines. Where two people say different things on one topic, an edge says so.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memd.belief import rejections, supersede
from memd.belief.compare import Agreement, compare
from memd.models import EdgeType, Summary
from memd.sharing import postgres
from memd.sharing.changes import NO_REMOTES, stamp_of
from memd.sharing.postgres import withdraw
from memd.sharing.records import (
    FORGET,
    MEMORY,
    SUPERSESSION,
    LogBatch,
    Record,
    split_erasure_rank,
    split_ref,
    tick,
)
from memd.sharing.replica import MergeOutcome, Replica
from memd.store import ledger, projects, sharing, summaries
from memd.store.database import Connection
from memd.store.sharing import (
    JoinedProject,
    OwnMemory,
    Register,
    SaidRow,
    put_of_memory,
    read_of_memory,
)

CONTRADICTION_RULE = "team"


class TeamReplica(Replica):
    """One joined project of a vault, in the caller's transaction."""

    def __init__(
        self,
        tx: Connection,
        device: str,
        now: int,
        *,
        joined: JoinedProject,
        remotes: Mapping[str, str] = NO_REMOTES,
    ) -> None:
        super().__init__(tx, device, now, remotes=remotes)
        self._joined = joined

    # ── What teammates said ──────────────────────────────────────────────────────────────────────

    def merge(self, records: Iterable[Record], batch: LogBatch | None = None) -> MergeOutcome:
        """Merge the rows of a batch: each is the newest that its log says of a memory."""
        outcome = MergeOutcome()
        if batch is None:
            return outcome
        place, log = self._joined.place, batch.device
        if batch.is_first:
            sharing.begin_again(self._tx, place, log)
        said = {postgres.row_name(record): record for record in records}
        rows = [
            self._note_row(log, row.name, row.seq, row.mark, row.problem, said)
            for row in batch.rows
        ]
        before = {row.uid: self._find_version(row.uid) for row in rows}
        sharing.put_rows(self._tx, place, log, rows)
        for row in rows:
            self._resolve(row.uid, log, said.get(row.name), before[row.uid], outcome)
        _, _, mark = batch.position.partition(" ")
        if mark:
            for row in sharing.drop_unseen(self._tx, place, log):
                self._resolve(row.uid, log, None, row, outcome)
            known = sharing.read_cursors(self._tx, place).get(log, ("", 0))[0]
            is_whole = sharing.sum_marks(self._tx, place, log) == int(mark)
            # What differs though all of it was read a moment ago, reading it again will not fix.
            outcome.is_broken = bool(known) and not batch.is_first and not is_whole
        return outcome

    def _note_row(  # what a row has
        self, log: str, name: str, seq: int, mark: int, problem: str, said: Mapping[str, Record]
    ) -> SaidRow:
        author = log.rpartition(" ")[0]
        uid = postgres.make_uid(self._joined.name, author, name)
        record = said.get(name)
        if record is None:
            return SaidRow(log, name, uid, seq, mark, problem)
        beside = record.extra.get("record", {}).get("beside", ())
        stamp, is_forgotten = record.stamp, record.kind == FORGET
        generation = (
            split_erasure_rank(record.rank)[0] if is_forgotten else split_ref(record.name[0])[1]
        )
        state = "forgotten" if is_forgotten else "withdrawn" if record.value is None else "shared"
        return SaidRow(
            log, name, uid, seq, mark, state, generation, record.rank, stamp.wall, stamp.counter, stamp.device,
            " ".join(postgres.make_uid(self._joined.name, author, one) for one in beside),
        )  # fmt: skip

    def _find_version(self, uid: str) -> SaidRow | None:
        """The greatest version of a memory that any device of its author said."""
        said = [row for row in sharing.read_rows_of(self._tx, uid) if row.is_understood]
        return max(said, key=lambda row: row.version, default=None)

    def _resolve(
        self,
        uid: str,
        log: str,
        record: Record | None,
        before: SaidRow | None,
        outcome: MergeOutcome,
    ) -> None:
        """Update a memory in the vault to the greatest version of it."""
        held = self._find_version(uid)
        if held is None or held.state == "withdrawn":
            if sharing.delete_team_memory(self._tx, uid):
                self._count(outcome, "withdrawn")
                outcome.memories.add(self._ref(uid))
        elif held.state == "forgotten":
            ledger.record_forgotten(self._tx, uid, self._now)  # so it is erased here
        elif held.log == log and record is not None:
            if before is not None and before.state == "forgotten":
                ledger.remove_forgotten(self._tx, uid)  # its author says it again
            if self._put_team_memory(uid, log, record):
                self._count(outcome, MEMORY)
                assert record.value is not None
                outcome.memories.update([self._ref(uid)] if record.value["topic_key"] else ())
        elif not sharing.is_known_or_forgotten(self._tx, uid):
            # Another log has its words: it is read again.
            sharing.write_cursor(self._tx, self._joined.place, held.log, "", self._now)

    @staticmethod
    def _count(outcome: MergeOutcome, what: str) -> None:
        outcome.applied[what] = outcome.applied.get(what, 0) + 1

    def _put_team_memory(self, uid: str, log: str, record: Record) -> bool:
        assert record.value is not None
        author, unknown = log.rpartition(" ")[0], record.extra.get("value", {})
        place = find_project(self._tx, self._joined, self._now)
        draft = postgres.make_draft(record.value)
        number = sharing.put_team_memory(self._tx, uid, author, place, draft, self._now)
        if number:
            put_of_memory(self._tx, uid, unknown)
            self._relate_values(number, place)
            rejections.reject_repeats(self._tx, [number], self._now)
        return bool(number)

    def _relate_values(self, number: int, place: int) -> None:
        """Say which memories of others give the same topic another value."""
        mine = summaries.get_summary(self._tx, number)
        if mine is None or mine.topic_key is None:
            return
        for other in summaries.topic_summaries(self._tx, mine.topic_key, (place,)):
            if _is_rival(mine, other):
                newer, older = sorted((mine, other), key=lambda one: (one.at, one.id), reverse=True)
                names = " and ".join(one.author or "you" for one in (newer, older))
                supersede.relate(
                    self._tx, newer.id, EdgeType.CONTRADICTS, older.id, CONTRADICTION_RULE, self._now,
                    finding=f"{names} give {mine.topic_key} different values",
                )  # fmt: skip

    def leave_logs(self, logs: Iterable[str]) -> MergeOutcome:
        """Delete what came from logs that are gone."""
        outcome = MergeOutcome()
        for log in logs:
            for row in sharing.drop_log(self._tx, self._joined.place, log):
                self._resolve(row.uid, log, None, row, outcome)
        return outcome

    # ── What this device says ────────────────────────────────────────────────────────────────────

    def own_records(
        self,
        after: int = 0,
        gone: Collection[str] = (),  # noqa: ARG002  # a replica's
    ) -> Iterator[tuple[int, Record]]:
        """Return all that this device shares, withdraws or has forgotten, if anything was changed above an id."""
        last = sharing.last_register_id(self._tx)
        if after and last == after:
            return
        place = projects.project_by_key(self._tx, self._joined.key)
        kinds = postgres.shared_kinds(has_instructions=self._joined.has_instructions)
        found = list(sharing.shared_memories(self._tx, place.id, kinds, self._now)) if place else []
        silent = set(sharing.own_uids(self._tx)) - {one.uid for one in found}
        for record in self._make_shared(found):
            yield last, record
        for uid in sorted(silent):
            yield last, withdraw(uid)
        for one in sharing.read_registers(self._tx, FORGET):
            _, is_forgotten = split_erasure_rank(one.rank)
            if one.one not in silent and self._row(self._ref(one.one)) is None:
                forgotten = Record(FORGET, (one.one,), one.rank, stamp_of(one), {})
                yield last, forgotten if is_forgotten else withdraw(one.one)

    def _make_shared(self, found: Sequence[OwnMemory]) -> Iterator[Record]:
        """Yield a record of each memory that a team may see; one that another hides is withdrawn, stamped after all that was said of it."""
        known = {one.one: one for one in sharing.read_registers(self._tx, MEMORY)}
        claims: dict[str, list[Register]] = {}
        for claim in sharing.read_registers(self._tx, SUPERSESSION):
            claims.setdefault(claim.other, []).append(claim)
        of_topic: dict[str | None, list[str]] = {None: []}
        for one in found:
            if one.fields["topic_key"] is not None and not one.above:
                of_topic.setdefault(one.fields["topic_key"], []).append(one.uid)
        for one in found:
            refs = [self._ref(uid) for uid in (one.uid, one.above) if uid]
            said = [*(known[ref] for ref in refs if ref in known), *claims.get(refs[0], ())]
            if not said:
                continue  # what was written since changes were noted comes with the next exchange
            rank, stamp = max(each.rank for each in said), max(map(stamp_of, said))
            if one.above:
                yield Record(MEMORY, (refs[0],), rank, tick(stamp, 0, stamp.device), None)
                continue
            extra = {"value": unknown} if (unknown := read_of_memory(self._tx, one.uid)) else {}
            beside = [uid for uid in of_topic.get(one.fields["topic_key"], ()) if uid != one.uid]
            extra |= {"record": {"beside": beside}} if beside else {}
            yield Record(MEMORY, (refs[0],), rank, stamp, one.fields, extra)


def find_project(tx: Connection, joined: JoinedProject, now: int) -> int:
    """The id of the project here that was joined."""
    found = projects.project_by_key(tx, joined.key)
    if found is not None:
        return found.id
    name = joined.key.rstrip("/").rpartition("/")[2] or joined.key
    return projects.ensure_project(tx, joined.key, name, "shared with a team", now)


def _is_rival(mine: Summary, other: Summary) -> bool:
    return (
        other.author != mine.author
        and other.superseded_by is None
        and compare(other.body, mine.body).agreement is not Agreement.SAME
    )


def leave_project(tx: Connection, joined: JoinedProject, now: int) -> int:
    """Delete all teammates' memories of a project, and forget that it was joined; return how many memories."""
    replica = TeamReplica(tx, "", now, joined=joined)
    logs = sharing.list_logs(tx, joined.place)
    removed = replica.leave_logs(logs).applied.get("withdrawn", 0)
    sharing.drop_place(tx, joined.place)
    sharing.drop_joined_project(tx, joined.name)
    return removed
