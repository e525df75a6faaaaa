"""Vaults on the disk that sync with a folder."""

import contextlib
import secrets

import pytest

from memd.capture.project import read_remote
from memd.consolidate.forget import ForgetSelection
from memd.consolidate.remember import NewMemory, remember
from memd.consolidate.scrub import Eraser
from memd.models import Authority, Kind
from memd.sharing.folder import FolderTransport
from memd.sharing.syncer import Syncer
from memd.store.database import Database
from tests.sharing.devices import START
from tests.sharing.teammates import postgres, team, teammate  # noqa: F401  # fixtures


class SyncedVault:
    """A vault and its syncer, as the daemon puts them together."""

    def __init__(self, path, place, host):
        self.path, self.place, self.now = path, place, START
        self.db = Database(str(path), START)
        self.eraser = Eraser(self.db, self.clock, lambda: None)
        self.syncer = Syncer(
            self.db, lambda value: value, self.clock, lambda: None,
            lambda ids: self.eraser.forget(ForgetSelection(tuple(ids)), dry_run=False),
            lambda: secrets.token_hex(8), read_remote, host=host,
        )  # fmt: skip

    def clock(self):
        self.now += 1
        return self.now

    async def transport(self):
        return FolderTransport(str(self.place), await self.syncer.identify(), self.path.stem)

    async def sync(self, **options):
        return await self.syncer.sync(str(self.place), await self.transport(), **options)

    def remember(self, text, project="/src/ledger", **more):
        memory = NewMemory(
            text, title=text[:40], kind=Kind.FACT, project_key=project, source="user",
            authority=Authority.USER_HAND, **more,
        )  # fmt: skip
        return self.db.write_now(lambda tx: remember(tx, memory, self.clock())).id

    async def forget(self, number):
        await self.eraser.forget(ForgetSelection((number,)), dry_run=False)

    def bodies(self):
        rows = self.db.read_now(lambda tx: tx.execute("SELECT body FROM summaries").fetchall())
        return sorted(body for (body,) in rows)


@pytest.fixture
def make_vault(tmp_path):
    with contextlib.ExitStack() as stack:
        place = tmp_path / "place"
        place.mkdir()

        def make(name):
            vault = SyncedVault(tmp_path / f"{name}.db", place, name)
            stack.callback(vault.db.close)
            return vault

        yield make
