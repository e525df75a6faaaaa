"""One exchange with the server: read what teammates appended, then append what they do not know.

What is to be appended is no queue: it is the difference between the vault and the own log, found anew each
time, so an outage of any length leaves nothing behind that grows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ParamSpec, TypeVar

import anyio.to_thread

from memd.sharing import team_merge, team_records
from memd.sharing.team_logs import RANGE, ROWS_MAX, Head, LogKey, LogServer, Row
from memd.sharing.team_merge import LogMerger, MergeReport, Unsent
from memd.store.database import Connection, Database
from memd.store.sharing import team
from memd.store.sharing.team import JoinedProject, LogState, RowState

P = ParamSpec("P")
T = TypeVar("T")
_HOUR_MS = 3_600_000
CALL_CHARACTERS_MAX = 4 * 1024 * 1024
"""Characters of the records of one conversation."""


async def call_server(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run what waits for the server in a thread, which is left behind if the task is cancelled."""
    return await anyio.to_thread.run_sync(
        partial(work, *arguments, **named), abandon_on_cancel=True
    )


@dataclass(slots=True)
class ExchangeReport:
    """What one exchange did."""

    merged: MergeReport = field(default_factory=MergeReport)
    sent: int = 0
    unsent: int = 0
    """What could not be sent."""
    behind: list[str] = field(default_factory=list)
    """Authors of whose logs the server has lost a part; they send it again."""
    repaired: int = 0
    """Logs that were compared row by row."""
    problems: dict[str, str] = field(default_factory=dict)
    """Project → why it is not shared now."""


@dataclass(frozen=True, slots=True)
class TeamExchange:
    """One exchange over an open connection."""

    db: Database
    logs: LogServer
    device: str
    label: str
    now: int
    redact: Callable[[str], str]
    settled: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """Project → the state of the vault in which its own log lacked nothing."""
    report: ExchangeReport = field(default_factory=ExchangeReport)

    async def run(self, joined: Sequence[JoinedProject]) -> ExchangeReport:
        """TeamExchange every joined project. ServerUnreachable or ServerRefused end it; what was done stays."""
        me, roles = await call_server(self.logs.list_roles)
        for one in joined:
            role = roles.get(one.name)
            if role is None:
                self.report.problems[one.name] = (
                    f"{me} has no role in it (any more): ask a maintainer, or `memd team leave {one.name}`"
                )
                continue
            found = await call_server(self.logs.read_heads, [one.name])
            heads = {head.key: head for head in found}
            await self._follow(one, heads, me)
            if role != "reader":
                key = LogKey(one.name, me, self.device)
                await self._send(one, key, heads.get(key))
        if not self.report.problems:
            await self.db.write(partial(team.note_understood, what=team_records.UNDERSTOOD))
        return self.report

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    async def _follow(self, joined: JoinedProject, heads: Mapping[LogKey, Head], me: str) -> None:
        known = {
            _key(one): one
            for one in await self.db.read(partial(team.read_logs, project=joined.name))
        }
        project_id = await self.db.write(
            partial(team_merge.find_project, joined=joined, now=self.now)
        )
        is_updated = await self.db.read(team.understood) != team_records.UNDERSTOOD
        for key, head in heads.items():
            state = known.get(key)
            if state is not None and is_updated and key.author != me:
                await self._read_again(state, project_id, head)
            if key.author == me or (state and (state.seq, state.mark) == (head.seq, head.mark)):
                continue
            if state is not None and head.seq < state.seq:
                self.report.behind.append(key.author)
                continue
            await self._follow_log(head, project_id)
        for key, state in known.items():
            if key not in heads and key.author != me:
                gone = await self.db.write(partial(team_merge.remove_log, log=state, now=self.now))
                self.report.merged.removed += gone

    async def _read_again(self, state: LogState, project_id: int, head: Head) -> None:
        """Read again what a former memd did not understand."""
        left = await self.db.read(partial(team.names_left, log_id=state.id))
        for names in _cut(left, ROWS_MAX):
            rows = await call_server(self.logs.read_named, head.key, names)
            known = [row for row in rows if row.seq <= state.seq]
            state = await self._merge(state, project_id, known, head.label)

    async def _follow_log(self, head: Head, project_id: int) -> None:
        key, is_whole = head.key, False
        while not is_whole:
            state = await self._open_log(key, head.label)
            there, rows = await call_server(self.logs.read_log, key, state.seq)
            if there is None:
                return
            is_whole = len(rows) < ROWS_MAX
            seq = there.seq if is_whole else 0
            state = await self._merge(state, project_id, rows, there.label, seq)
            if is_whole and state.mark != there.mark:
                await self._repair(state, project_id, there)

    async def _open_log(self, key: LogKey, label: str) -> LogState:
        return await self.db.write(
            lambda tx: team.read_log(tx, key.project, key.author, key.device, label)
        )

    async def _merge(
        self, state: LogState, project_id: int, rows: Sequence[Row], label: str, seq: int = 0
    ) -> LogState:
        def merge(tx: Connection) -> tuple[LogState, MergeReport]:
            merger = LogMerger(tx, state, project_id, self.now, self.redact)
            return merger.merge(rows, label, seq), merger.report

        moved, report = await self.db.write(merge)
        self.report.merged.add(report)
        return moved

    async def _repair(self, state: LogState, project_id: int, head: Head) -> None:
        """Make the copy of a log equal to the one on the server, range by range."""
        self.report.repaired += 1
        ours = await self.db.read(lambda tx: team.read_rows(tx, state.id))
        state = replace(state, mark=sum(row.mark for row in ours.values()))
        known, listed = await self._list_differing(ours, head.key)
        gone = [name for name in known if name not in listed]

        def drop(tx: Connection) -> tuple[LogState, MergeReport]:
            merger = LogMerger(tx, state, project_id, self.now, self.redact)
            return merger.drop(gone), merger.report

        state, report = await self.db.write(drop)
        self.report.merged.add(report)
        differing = [
            name
            for name, row in listed.items()
            if name not in known or (known[name].seq, known[name].mark) != row
        ]
        for names in _cut(differing, ROWS_MAX):
            rows = await call_server(self.logs.read_named, head.key, names)
            state = await self._merge(state, project_id, rows, head.label)

    async def _list_differing(
        self, ours: Mapping[str, RowState], key: LogKey
    ) -> tuple[dict[str, RowState], dict[str, tuple[int, int]]]:
        """(our rows, the server's rows as name → number, mark) of the ranges in which the two differ."""
        sums: dict[int, int] = {}
        for row in ours.values():
            sums[row.seq // RANGE] = sums.get(row.seq // RANGE, 0) + row.mark
        theirs = await call_server(self.logs.sum_ranges, key)
        differing = {n for n in sums.keys() | theirs.keys() if sums.get(n) != theirs.get(n)}
        listed: dict[str, tuple[int, int]] = {}
        for number in sorted(differing & theirs.keys()):
            listed |= await call_server(self.logs.list_range, key, number)
        return {n: row for n, row in ours.items() if row.seq // RANGE in differing}, listed

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────

    async def _send(self, joined: JoinedProject, key: LogKey, head: Head | None) -> None:
        state = await self._open_log(key, self.label)
        if state.mark != (head.mark if head else 0):
            # The server was restored, or what was appended was never noted: begin with what is there.
            state = await self._adopt(state, key)
            self.settled.pop(joined.name, None)
            self.report.repaired += 1
        # By the hour, because memories expire.
        now = await self.db.read(team.last_change), self.now // _HOUR_MS, joined
        if self.settled.get(joined.name) == now:
            return
        unsent = await self.db.read(
            partial(team_merge.find_unsent, joined=joined, log=state, now=self.now)
        )
        self.report.unsent += len(unsent)
        for part in _cut_by_size(unsent):
            state = await self._append(state, key, part)
            self.report.sent += len(part)
            self.report.unsent -= len(part)
        self.settled[joined.name] = now

    async def _append(self, state: LogState, key: LogKey, part: Sequence[Unsent]) -> LogState:
        before = Head(key, self.label, state.seq, state.mark)
        records = [(one.name, one.record) for one in part]
        head, placed = await call_server(self.logs.append, before, records)
        rows = {one.name: RowState(*placed[one.name], one.state) for one in part}

        def note(tx: Connection) -> LogState:
            team.put_rows(tx, state.id, rows)
            team.move_log(tx, state.id, self.label, head.seq, head.mark)
            return replace(state, seq=head.seq, mark=head.mark)

        return await self.db.write(note)

    async def _adopt(self, state: LogState, key: LogKey) -> LogState:
        listed: dict[str, tuple[int, int]] = {}
        for number in sorted(await call_server(self.logs.sum_ranges, key)):
            listed |= await call_server(self.logs.list_range, key, number)
        return await self.db.write(partial(team_merge.adopt_log, log=state, rows=listed))


def _key(state: LogState) -> LogKey:
    return LogKey(state.project, state.author, state.device)


def _cut(names: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), most):
        yield names[start : start + most]


def _cut_by_size(unsent: Sequence[Unsent]) -> Iterator[list[Unsent]]:
    """Groups that each are one conversation."""
    group: list[Unsent] = []
    size = 0
    for one in unsent:
        if group and (len(group) == ROWS_MAX or size + len(one.record) > CALL_CHARACTERS_MAX):
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.record)
    if group:
        yield group
