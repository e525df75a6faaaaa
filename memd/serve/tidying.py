"""Consolidation on a person's word: a round now, a rehearsal, the rounds so far, and taking one back.

Everything goes through the daemon's one consolidator, which never runs twice at a time, over a vault
that no second daemon can open. Not here: what is decided (memd/consolidate).
"""

from typing import Any

from memd.serve import full
from memd.serve.app import App
from memd.serve.requests import (
    ConsolidateRequest,
    ConsolidationRunsRequest,
    UndoConsolidationRequest,
)
from memd.serve.scope import Caller


class Tidying:
    """The calls about consolidation."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def consolidate(self, asked: ConsolidateRequest, _: Caller) -> dict[str, Any]:
        """`memd/consolidate`: a round, or with `dry_run` the pairs that it would decide."""
        doer = self._app.consolidator
        report = await (doer.rehearse() if asked.dry_run else doer.tick())
        return {"dry_run": asked.dry_run, "report": full.plain(report)}

    async def undo(self, asked: UndoConsolidationRequest, _: Caller) -> dict[str, Any]:
        """`memd/consolidate/undo`: what showed again, or would."""
        undone = await self._app.consolidator.undo(asked.what, dry_run=asked.dry_run)
        if not asked.dry_run:
            await self._app.indexer.settle()
        return {"report": full.plain(undone)}

    async def runs(self, asked: ConsolidationRunsRequest, _: Caller) -> dict[str, Any]:
        """`memd/consolidate/runs`: the latest rounds that changed something."""
        return {"runs": full.plain(await self._app.consolidator.runs(asked.limit))}
