"""Merge a teammate's log into the vault, in the caller's transaction.

A teammate's memory is written beside the vault's own and hides none of them: where the two say different
things on one topic, an edge says so, and the user judges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memd.belief import rejections, supersede
from memd.belief.compare import Agreement, compare
from memd.errors import BadRequest
from memd.models import EdgeType, Summary
from memd.sharing import team_records
from memd.sharing.records import RecordTooNew
from memd.sharing.team_logs import Row, compute_mark
from memd.store import ledger, projects, summaries
from memd.store.database import Connection
from memd.store.sharing import team
from memd.store.sharing.team import JoinedProject, LogState, RowState

CONTRADICTION_RULE = "team"


@dataclass(slots=True)
class MergeReport:
    """What came of merging."""

    written: int = 0
    removed: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Name of a row → why no memory was made of it."""
    newer: dict[str, str] = field(default_factory=dict)
    """Name of a row → what of it only a newer memd understands; it is left as it is."""

    def add(self, other: "MergeReport") -> None:
        """Count another merge in."""
        self.written += other.written
        self.removed += other.removed
        self.refused |= other.refused
        self.newer |= other.newer


@dataclass(frozen=True, slots=True)
class LogMerger:
    """Merges the rows of one log into the project that was joined under its name."""

    tx: Connection
    log: LogState
    project_id: int
    now: int
    redact: Callable[[str], str]
    report: MergeReport = field(default_factory=MergeReport)

    def merge(self, rows: Sequence[Row], label: str, seq: int = 0) -> LogState:
        """Merge rows that follow in the log, or that were missing; the log as it is then.

        `seq`: how far the log was read, if that is further than its last row.
        """
        known = team.read_rows(self.tx, self.log.id, [row.name for row in rows])
        there = {
            row.name: RowState(row.seq, row.mark, self._apply(row, known.get(row.name)))
            for row in rows
        }
        team.put_rows(self.tx, self.log.id, there)
        mark = self.log.mark + sum(one.mark for one in there.values())
        mark -= sum(one.mark for one in known.values())
        seq = max([self.log.seq, seq, *(row.seq for row in rows)])
        team.move_log(self.tx, self.log.id, label, seq, mark)
        return replace(self.log, label=label, seq=seq, mark=mark)

    def drop(self, names: Sequence[str]) -> LogState:
        """Take away what does not stand in the log any more; the log as it is then."""
        known = team.read_rows(self.tx, self.log.id, names)
        team.drop_rows(self.tx, self.log.id, known)
        for name in known:
            self._remove(name)
        mark = self.log.mark - sum(one.mark for one in known.values())
        team.move_log(self.tx, self.log.id, self.log.label, self.log.seq, mark)
        return replace(self.log, mark=mark)

    def _apply(self, row: Row, known: RowState | None) -> str:
        """The state of a row after its record was written into the vault."""
        if not row.is_whole:
            self.report.refused[row.name] = "it is damaged: its mark is not that of its words"
            return "refused"
        try:
            record = team_records.parse_record(row.record, self.redact)
        except RecordTooNew as error:
            self.report.newer[row.name] = error.message
            return "newer"
        except BadRequest as error:
            self.report.refused[row.name] = error.message
            return "refused"
        uid = self._uid(row.name)
        if record.memory is None:
            if record.state == "forgotten":
                team.note_forgotten(self.tx, uid, self.now)
            else:
                self._remove(row.name)
            return record.state
        if known is not None and known.state == "forgotten":
            # Its author says it again.
            ledger.remove_forgotten(self.tx, uid)
        number = team.put_team_memory(
            self.tx,
            uid,
            self.log.author,
            self.project_id,
            team_records.make_draft(record.memory),
            self.now,
        )
        if number:
            self.report.written += 1
            self._relate(number)
            rejections.reject_repeats(self.tx, [number], self.now)
        return "shared"

    def _uid(self, name: str) -> str:
        return team_records.make_uid(self.log.project, self.log.author, name)

    def _remove(self, name: str) -> None:
        if not team.is_in_other_log(self.tx, self.log, name):
            self.report.removed += team.delete_team_memory(self.tx, self._uid(name))

    def _relate(self, number: int) -> None:
        """Say which memories of others give the same topic another value."""
        mine = summaries.get_summary(self.tx, number)
        if mine is None or mine.topic_key is None:
            return
        for other in summaries.topic_summaries(self.tx, mine.topic_key, (self.project_id,)):
            if _is_rival(mine, other):
                newer, older = sorted((mine, other), key=lambda one: (one.at, one.id), reverse=True)
                names = " and ".join(one.author or "you" for one in (newer, older))
                supersede.relate(
                    self.tx, newer.id, EdgeType.CONTRADICTS, older.id, CONTRADICTION_RULE, self.now,
                    finding=f"{names} give {mine.topic_key} different values",
                )  # fmt: skip


def _is_rival(mine: Summary, other: Summary) -> bool:
    return (
        other.author != mine.author
        and other.superseded_by is None
        and compare(other.body, mine.body).agreement is not Agreement.SAME
    )


def remove_log(tx: Connection, log: LogState, now: int) -> int:
    """Take away all that one log brought, and forget the log; how many memories went."""
    merger = LogMerger(tx, log, 0, now, str)
    merger.drop(list(team.read_rows(tx, log.id)))
    team.drop_log(tx, log.id)
    return merger.report.removed


def find_project(tx: Connection, joined: JoinedProject, now: int) -> int:
    """The id of the project here that was joined."""
    found = projects.project_by_key(tx, joined.key)
    if found is not None:
        return found.id
    name = joined.key.rstrip("/").rpartition("/")[2] or joined.key
    return projects.ensure_project(tx, joined.key, name, "shared with a team", now)


def adopt_log(tx: Connection, log: LogState, rows: Mapping[str, tuple[int, int]]) -> LogState:
    """Take what stands in the own log on the server (name → number, mark) for what was written there."""
    removals = {
        state: team_records.write_removal(is_forgotten=state == "forgotten")
        for state in ("withdrawn", "forgotten")
    }

    def guess_state(name: str, seq: int, mark: int) -> str:
        found = (s for s, text in removals.items() if mark == compute_mark(seq, name, text))
        return next(found, "shared")

    team.drop_rows(tx, log.id, team.read_rows(tx, log.id))
    there = {
        name: RowState(seq, mark, guess_state(name, seq, mark))
        for name, (seq, mark) in rows.items()
    }
    team.put_rows(tx, log.id, there)
    mark = sum(row.mark for row in there.values())
    seq = max([log.seq, *(row.seq for row in there.values())])
    team.move_log(tx, log.id, log.label, seq, mark)
    return replace(log, seq=seq, mark=mark)


@dataclass(frozen=True, slots=True)
class Unsent:
    """What the own log does not say, or says otherwise. `state`: shared, withdrawn or forgotten."""

    name: str
    record: str
    state: str


def find_unsent(tx: Connection, joined: JoinedProject, log: LogState, now: int) -> list[Unsent]:
    """Everything that is to be appended to the own log, in order: what was made first comes first."""
    place = projects.project_by_key(tx, joined.key)
    kinds = team_records.shared_kinds(has_instructions=joined.has_instructions)
    known = team.read_rows(tx, log.id)
    unsent, shared = [], set()
    for uid, memory in team.shared_memories(tx, place.id, kinds, now) if place else ():
        record, row = team_records.write_record(memory), known.get(uid)
        shared.add(uid)
        if row is None or row.state != "shared" or row.mark != compute_mark(row.seq, uid, record):
            unsent.append(Unsent(uid, record, "shared"))
    for uid in sorted(known.keys() - shared):
        if known[uid].state == "shared":
            is_forgotten = ledger.is_forgotten(tx, uid)
            state = "forgotten" if is_forgotten else "withdrawn"
            unsent.append(Unsent(uid, team_records.write_removal(is_forgotten=is_forgotten), state))
    return unsent
