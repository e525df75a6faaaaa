"""Background worker: sync with the configured target every few minutes, and when the daemon stops."""

import contextlib
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from memd import log
from memd.config import SyncConfig
from memd.errors import MemdError
from memd.sharing import places
from memd.sharing.chunks import read_sealing
from memd.sharing.folder import FolderTransport
from memd.sharing.places import FolderTarget, SyncTarget
from memd.sharing.syncer import Syncer, SyncReport
from memd.store import sharing
from memd.text import digest

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
