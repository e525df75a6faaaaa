"""The control call that takes over what was staged beside the vault, all of it at once.

Whoever imports has checked and redacted it in a process of its own; here it is one transaction, and
what agents say meanwhile waits in their spool. Not here: how it is merged (exchange/moving.py).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from memd.exchange import moving
from memd.serve import full
from memd.serve.app import App
from memd.serve.requests import ImportVaultRequest
from memd.serve.scope import Caller
from memd.store.staging import staged


@dataclass(frozen=True, slots=True)
class Moving:
    """The handler over one App."""

    app: App

    async def merge(self, asked: ImportVaultRequest, _: Caller) -> Any:
        """Take over a staged vault, by the name of its file; return once all of it can be found."""
        db = self.app.db
        path = staged(db.path, asked.staged)
        merged = await db.write(partial(moving.merge, staged=path, now=self.app.clock()))
        await self.app.indexer.settle()
        return full.plain(merged)
