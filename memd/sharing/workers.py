"""Background workers: exchange with the team's server whenever somebody wrote something; sync with a target every few minutes.

Nothing in the daemon waits for the server: it works in threads of its own, each call with a deadline.
"""

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

from memd import log
from memd.config import SyncConfig, TeamConfig
from memd.embeddings import backoff_s
from memd.errors import BadRequest, MemdError
from memd.sharing import places, postgres
from memd.sharing.chunks import read_sealing
from memd.sharing.folder import FolderTransport
from memd.sharing.places import FolderTarget, SyncTarget
from memd.sharing.postgres import IS_BEHIND, LogId, LogServer, PostgresTransport
from memd.sharing.records import MEMORY, PlaceUnreachable
from memd.sharing.syncer import Syncer, SyncReport
from memd.sharing.team_replica import TeamReplica, leave_project
from memd.sharing.team_server import ServerRefused, ServerUnreachable, describe_url
from memd.store import ledger, projects, sharing
from memd.store.database import Connection
from memd.store.sharing import JoinedProject
from memd.text import digest
from memd.wakeup import AutoResetEvent

P = ParamSpec("P")
T = TypeVar("T")
_DEVICE_NOTE = "team device"
"""The note of the id by which a former memd wrote its logs; of a vault without it they have the id of its own syncs."""
_PAUSE_S = 1.0
"""Seconds after a change in which others are awaited, so that one exchange takes them all."""
_BACKOFF_S_MIN, _BACKOFF_S_MAX = 1.0, 300.0
_HOUR_MS = 3_600_000
_REFUSED_SHOWN = 5
_POLL_S = 60
"""Seconds between two looks at the server, where it does not tell by itself that a teammate wrote something."""


@dataclass(frozen=True, slots=True)
class JoinPreview:
    """Counts of what joining a project would share, by kind, and of what would stay here."""

    name: str
    key: str
    role: str
    shared: dict[str, int]
    kept: dict[str, int]
    is_joined: bool


@dataclass(frozen=True, slots=True)
class LeaveResult:
    """Counts of what leaving a project took away."""

    name: str
    removed: int
    """Teammates' memories that were in this vault."""
    logs_removed: int
    """Own logs on the server."""


async def call_server(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run a blocking call of the server in a thread, which is abandoned if the task is cancelled."""
    return await anyio.to_thread.run_sync(
        partial(work, *arguments, **named), abandon_on_cancel=True
    )


@dataclass(slots=True)
class ExchangeReport:
    """Results of one exchange for all joined projects."""

    sent: int = 0
    """Rows that were appended."""
    written: int = 0
    removed: int = 0
    broken: int = 0
    """Logs that are read from their beginning next time."""
    refused: dict[str, str] = field(default_factory=dict)
    """Name of a row → why no memory was made of it."""
    newer: int = 0
    """Rows that only a newer memd understands."""
    behind: set[str] = field(default_factory=set)
    """Authors of whose logs the server has lost a part; they send it again."""
    problems: dict[str, str] = field(default_factory=dict)
    """Project → why it is not shared now."""

    def add(self, synced: SyncReport, sent: int) -> None:
        """Count what was done with one project."""
        self.sent += sent
        self.written += synced.received.get(MEMORY, 0)
        self.removed += synced.received.get("withdrawn", 0) + synced.forgotten
        self.broken += synced.broken
        self.newer += sum(synced.newer.values())
        for one in synced.refused:
            if one.reason == IS_BEHIND:
                self.behind.add(one.device.rpartition(" ")[0])
            else:
                self.refused[one.chunk] = one.reason


class TeamWorker:
    """Follows a team's server for one vault."""

    name = "team"

    def __init__(self, syncer: Syncer, config: TeamConfig, label: str) -> None:
        self._syncer = replace(syncer, skips_unchanged=True)
        self._db, self._clock = syncer.db, syncer.clock
        self._config, self._label = config, label[:100]
        self._wakeup, self._joined_something = AutoResetEvent(), AutoResetEvent()
        self._retry = AutoResetEvent()
        self._lock = anyio.Lock()
        self._state, self._reason = "starting", ""
        self._failures = 0
        self._exchanged_at: int | None = None
        self._last = ExchangeReport()
        self._refused: dict[str, str] = {}
        self._newer = 0

    # ── Working ──────────────────────────────────────────────────────────────────────────────────

    def nudge(self) -> None:
        """Exchange soon, because something was written here. Waits for nothing."""
        self._wakeup.set()

    async def run(self) -> None:
        """Exchange now, whenever this vault or a teammate's changed, and every minute."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._wake_on_append)
            while True:
                await self._try_exchange()
                if self._failures:
                    await self._retry.wait(
                        backoff_s(self._failures, _BACKOFF_S_MIN, _BACKOFF_S_MAX)
                    )
                else:
                    await self._wakeup.wait(_POLL_S)
                    await anyio.sleep(_PAUSE_S)

    async def _try_exchange(self) -> None:
        try:
            await self.exchange()
        except (ServerUnreachable, ServerRefused, PlaceUnreachable, BadRequest) as error:
            self._failures += 1
            is_passing = isinstance(error, ServerUnreachable | PlaceUnreachable)
            self._state = "unreachable" if is_passing else "refused"
            if self._reason != error.message:
                log.get("team").warning("team_server_failed", reason=error.message)
            self._reason = error.message

    async def exchange(self) -> ExchangeReport:
        """Exchange once, now. ServerUnreachable or ServerRefused, and what was not done is done later."""
        async with self._lock:
            joined = await self._db.read(sharing.joined_projects)
            if not joined:
                self._state, self._reason, self._failures = "nothing joined", "", 0
                return ExchangeReport()
            self._last = report = ExchangeReport()
            async with self._connected() as logs:
                me, roles = await call_server(logs.list_roles)
                for one in joined:
                    await self._sync(one, logs, me, roles.get(one.name), report)
            self._refused |= report.refused
            self._newer = await self._db.read(sharing.count_newer_rows)
            self._state, self._reason, self._failures = "following", "", 0
            self._exchanged_at = self._clock()
            return report

    async def _sync(
        self,
        joined: JoinedProject,
        logs: LogServer,
        me: str,
        role: str | None,
        report: ExchangeReport,
    ) -> None:
        if role is None:
            report.problems[joined.name] = (
                f"{me} has no role in it (any more): ask a maintainer, or `memd team leave {joined.name}`"
            )
            return
        # By the hour, because memories expire.
        form = f"{joined.key} {joined.has_instructions} {self._clock() // _HOUR_MS}"
        transport = PostgresTransport(
            logs, LogId(joined.name, me, await self._identify()), self._label, form,
            writes=role != "reader",
        )  # fmt: skip
        synced = await self._syncer.sync(
            joined.place, transport, view=partial(TeamReplica, joined=joined)
        )
        report.add(synced, transport.appended)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[LogServer]:
        """A connection, which a cancelled task cuts off instead of waiting for it."""
        stack = contextlib.ExitStack()
        logs = await call_server(stack.enter_context, LogServer.open(self._config.url))
        try:
            yield logs
        except BaseException:
            logs.cut_off()
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(stack.close)

    async def _wake_on_append(self) -> None:
        """Wake when a teammate appends. Where the server does not tell, polling is enough."""
        failures = 0
        while True:
            while not await self._db.read(sharing.joined_projects):
                await self._joined_something.wait()
            try:
                async with self._connected() as logs:
                    await call_server(logs.listen)
                    failures = 0
                    self._wakeup.set()
                    while True:
                        if await call_server(logs.wait_for_news, _POLL_S):
                            self._wakeup.set()
            except (ServerUnreachable, ServerRefused, BadRequest):
                failures += 1
                await anyio.sleep(backoff_s(failures, _BACKOFF_S_MIN, _BACKOFF_S_MAX))

    async def _identify(self) -> str:
        """The id of this device in its logs."""
        found = await self._db.read(lambda tx: ledger.read_note(tx, _DEVICE_NOTE))
        noted = json.loads(found or "{}")
        if noted.get("host") == self._syncer.host:
            return str(noted["id"])
        return await self._syncer.identify()

    def status(self) -> dict[str, object]:
        """Return the state of the exchange, what waits, and what was refused."""
        report = self._last
        return {
            "server": describe_url(self._config.url), "state": self._state, "reason": self._reason,
            # A server that is away is no trouble: a laptop travels.
            "trouble": f"team: {self._reason}" if self._state == "refused" else "",
            "exchanged_at": self._exchanged_at, "sent": report.sent,
            "received": report.written, "removed": report.removed,
            "repaired": report.broken, "behind": sorted(report.behind),
            "problems": dict(report.problems), "refused": len(self._refused),
            "refusals": dict(list(self._refused.items())[:_REFUSED_SHOWN]), "newer": self._newer,
        }  # fmt: skip

    # ── What users ask for ───────────────────────────────────────────────────────────────────────

    async def describe(self) -> dict[str, object]:
        """The status with the joined projects and whose memories are here."""
        joined, authors = await self._db.read(
            lambda tx: (sharing.joined_projects(tx), sharing.count_team_memories(tx))
        )
        return {**self.status(), "projects": joined, "authors": authors}

    async def propose_name(self, key: str) -> str:
        """The project on the server that has the name of this one's git remote. BadRequest if there is none."""
        async with self._connected() as logs:
            me, roles = await call_server(logs.list_roles)
        remote = await anyio.to_thread.run_sync(self._syncer.find_remote, key)
        if (name := postgres.propose_name(remote, roles)) is not None:
            return name
        known = (
            f"you have a role in {', '.join(sorted(roles))}" if roles else "you have no role yet"
        )
        wanted = remote.rpartition("/")[2] or "PROJECT"
        raise BadRequest(
            f"name: no project of the server is called as the git remote {remote or '(there is none)'}; {known}. Name"
            f" one, or a maintainer makes it: `memd team grant {me} writer {wanted}`"
        )

    async def preview_join(self, name: str, key: str, *, has_instructions: bool) -> JoinPreview:
        """Return what joining would share. ServerRefused if the user has no role in the project there."""
        async with self._connected() as logs:
            me, roles = await call_server(logs.list_roles)
        if name not in roles:
            raise ServerRefused(
                f"{describe_url(self._config.url)}: {me} has no role in {name!r}; a maintainer gives one:"
                f" `memd team grant {me} writer {name}`"
            )
        kinds = postgres.shared_kinds(has_instructions=has_instructions)
        shared = set() if roles[name] == "reader" else {kind.value for kind in kinds}

        def count(tx: Connection) -> tuple[dict[str, int], bool]:
            place = projects.project_by_key(tx, key)
            counts = sharing.count_own(tx, place.id, self._clock()) if place else {}
            return counts, any(one.name == name for one in sharing.joined_projects(tx))

        counts, is_joined = await self._db.read(count)
        return JoinPreview(
            name, key, roles[name],
            {kind: n for kind, n in counts.items() if kind in shared},
            {kind: n for kind, n in counts.items() if kind not in shared},
            is_joined,
        )  # fmt: skip

    async def join(self, name: str, key: str, *, has_instructions: bool) -> JoinPreview:
        """Share a project from now on, and have what teammates share of it."""
        preview = await self.preview_join(name, key, has_instructions=has_instructions)
        joined = JoinedProject(name, key, has_instructions, self._clock())

        def write(tx: Connection) -> None:
            for one in sharing.joined_projects(tx):
                if one.key == key and one.name != name:
                    raise BadRequest(
                        f"this project is shared as {one.name!r} already; `memd team leave {one.name}` first"
                    )
            sharing.put_joined_project(tx, joined)

        await self._db.write(write)
        for event in (self._joined_something, self._retry, self._wakeup):
            event.set()
        return preview

    async def leave(self, name: str, *, withdraws: bool) -> LeaveResult:
        """Take the team's memories of a project out of this vault, and with `withdraws` our own off the server."""
        async with self._lock:
            joined = await self._db.read(sharing.joined_projects)
            left = next((one for one in joined if one.name == name), None)
            if left is None:
                names = ", ".join(one.name for one in joined) or "none"
                raise BadRequest(f"{name!r} is not joined; joined are: {names}")
            logs_removed = await self._withdraw_logs(name) if withdraws else 0
            removed = await self._db.write(partial(leave_project, joined=left, now=self._clock()))
        if removed:
            self._syncer.on_written()
        return LeaveResult(name, removed, logs_removed)

    async def _withdraw_logs(self, name: str) -> int:
        """Remove our logs of a project, those of our other devices too."""
        async with self._connected() as logs:
            me, _ = await call_server(logs.list_roles)
            heads = await call_server(logs.read_heads, name)
            mine = [head.key for head in heads if head.key.author == me]
            for key in mine:
                await call_server(logs.remove_log, key)
        return len(mine)


_FIRST_S = 20.0
"""Seconds after the start of the first sync: the daemon has other things to do."""
_LAST_S = 1.5
"""Seconds that the last sync may take; what it does not finish, the next start does."""


@dataclass(eq=False)
class SyncWorker:
    """Syncs with targets, by itself and on request."""

    name: str = field(default="sync", init=False)
    syncer: Syncer
    config: SyncConfig
    key_file: str
    """The age key of this machine, unless the settings name another file."""
    mirrors: str
    label: str
    clock: Callable[[], int]
    _last: SyncReport | None = field(default=None, init=False)
    _last_at: int | None = field(default=None, init=False)
    _problem: str = field(default="", init=False)

    @property
    def is_periodic(self) -> bool:
        """Return whether the settings want the daemon to sync by itself."""
        return bool(self.config.place and self.config.interval_s)

    async def run(self) -> None:
        """Sync every few minutes until cancelled."""
        place = places.parse_target(self.config.place, self.mirrors, asks=False)
        try:
            await anyio.sleep(min(_FIRST_S, self.config.interval_s))
            while True:
                await self._try_sync(place)
                await anyio.sleep(self.config.interval_s)
        finally:
            if isinstance(place, FolderTarget):
                with anyio.move_on_after(_LAST_S, shield=True):
                    await self._try_sync(place)

    async def _try_sync(self, place: SyncTarget) -> None:
        """Sync; what goes wrong is shown in the status, and tried again."""
        try:
            await self.sync(place)
        except (MemdError, OSError) as error:
            self._problem = str(error)
            log.get("sync").warning("place_not_synced", reason=self._problem)

    async def sync(self, place: SyncTarget) -> SyncReport:
        """Sync with a place: fetch, merge, append, publish."""
        with places.hold_place(place, self.mirrors):
            device = await self.syncer.identify()
            await anyio.to_thread.run_sync(place.fetch, device)
            report = await self.sync_folder(place.name, place.folder)
            await anyio.to_thread.run_sync(place.publish, device)
        return report

    async def sync_folder(self, name: str, folder: str, *, dry_run: bool = False) -> SyncReport:
        """Sync with the logs in a folder, which a place's program carries about."""
        device = await self.syncer.identify()
        # The key is read each time, so that it can be corrected without a restart.
        sealing = await anyio.to_thread.run_sync(read_sealing, self.config, self.key_file)
        transport = FolderTransport(folder, device, self.label, sealing)
        report = await self.syncer.sync(name, transport, dry_run=dry_run)
        if not dry_run:
            self._last, self._last_at, self._problem = report, self.clock(), ""
        return report

    async def describe(self) -> dict[str, object]:
        """Describe this device, and every sync target that it was synced with."""
        known = await self.syncer.db.read(sharing.read_places)
        return {
            "configured": self.config.place,
            "interval_s": self.config.interval_s,
            "encrypted_for": len(self.config.recipients),
            "device": await self.syncer.identify(),
            "places": [{"place": one.place, "synced_at": one.synced_at} for one in known],
            **self.status(),
        }

    def status(self) -> dict[str, object]:
        """Return the target, when it was synced last, and what is wrong."""
        last = self._last or SyncReport("", is_dry_run=False)
        refused = [asdict(one) for one in last.refused]
        problem = self._problem
        if not problem and last.refused:
            first = last.refused[0]
            problem = f"{first.chunk} of device {first.device}: {first.reason}"
        if not problem and last.newer:
            problem = "other machines have a newer memd: what only that understands waits, update memd here"
        return {
            "place": self.config.place or None, "last_at": self._last_at, "sent": last.sent,
            "received": sum(last.received.values()), "waiting": last.waiting,
            "newer": sum(last.newer.values()), "refused": refused, "devices": dict(last.devices),
            "problem": problem,
        }  # fmt: skip


def hash_host(vault: str) -> str:
    """Return a hash that tells this machine and vault from others: a copied vault is another device."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            if found := Path(name).read_text("ascii", "replace").strip():
                return digest("machine", found, vault)[:16]
    return digest("machine", hex(uuid.getnode()), vault)[:16]
