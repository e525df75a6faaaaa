"""The calls about what agents are shown unasked: with an event, beforehand, and afterwards.

Not here: looking and choosing (looking.py), deadlines and memory (injecting.py).
"""

from typing import Any

import anyio

from memd.capture.intake import Receipt
from memd.errors import BadRequest
from memd.models import Session
from memd.serve import fence, openings, scope
from memd.serve.app import App
from memd.serve.openings import Opening, Verdict
from memd.serve.requests import CaptureEventRequest, ContextRequest, InjectedRequest
from memd.serve.scope import Caller
from memd.store import projects
from memd.store.database import Connection


class Unasked:
    """The calls over one App."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def output(
        self, asked: CaptureEventRequest, receipt: Receipt, caller: Caller
    ) -> dict[str, Any]:
        """What goes with the receipt of this event: `output`, as its client wants it, or nothing.

        An event that came twice, or late from the spool, is answered for already, or too late.
        """
        if (
            not asked.inject
            or asked.source != "live"
            or receipt.outcome not in ("stored", "filtered")
        ):
            return {}
        directory = asked.directory or caller.directory
        opening = openings.opening(asked.client, asked.payload, directory)
        if opening is None:
            return {}
        text = await self._app.injector.offer(opening, receipt.seq)
        return {} if text is None else {"output": openings.output(opening, text)}

    async def context(self, asked: ContextRequest, caller: Caller) -> dict[str, Any]:
        """`memd/context`: what would be shown at a moment, and with `explain` every candidate."""
        moment = asked.moment or ("prompt" if asked.prompt else "startup")
        if moment == "prompt" and not asked.prompt.strip():
            raise BadRequest("prompt: say what would be asked")
        client = key = ""
        directory = asked.directory or caller.directory
        if asked.session is not None:
            session = await scope.session(self._app.db, asked.session, caller)
            client, key, directory = session.client, session.key, None
        opening = Opening(client, key, moment, "", asked.prompt, directory)
        started = anyio.current_time()
        looked = await self._app.injector.rehearse(opening, explain=asked.explain)
        told = looked.verdicts if asked.explain else looked.shown
        return {
            "moment": moment,
            "project": looked.project,
            "text": looked.text,
            "reason": looked.reason,
            "tokens": -(-fence.length(looked.text or "") // fence.TOKEN_CHARACTERS),
            "memories": [_memory(one) for one in told],
            "took_ms": round((anyio.current_time() - started) * 1000, 2),
        }

    async def injected(self, asked: InjectedRequest, caller: Caller) -> dict[str, Any]:
        """`memd/injected`: what a session was shown unasked, oldest first."""
        session = await self._session(asked, caller)
        rows = await self._app.injector.injected(session.id)
        return {
            "session": session.key,
            "title": session.title,
            "injections": [
                {
                    "id": row.summary_id,
                    "kind": row.kind,
                    "title": row.title,
                    "moment": row.moment,
                    "at": row.at,
                    "reason": row.reason,
                }
                for row in rows
            ],
        }

    async def _session(self, asked: InjectedRequest, caller: Caller) -> Session:
        if asked.session is not None:
            return await scope.session(self._app.db, asked.session, caller)
        directory = asked.directory or caller.directory
        if directory is None:
            raise BadRequest("session: name one, or give a directory")
        here = await scope.resolve(directory, self._app.overrides)
        now = self._app.clock()
        found = await self._app.db.read(lambda tx: _latest(tx, here.key, now))
        if found is None:
            raise BadRequest(f"no session in {here.name} is known; name one by its id")
        return found


def _latest(tx: Connection, project_key: str, now: int) -> Session | None:
    project = projects.by_key(tx, project_key)
    return next(iter(projects.of_project(tx, project.id, 1, now)), None) if project else None


def _memory(one: Verdict) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind.value,
        "title": one.title,
        "at": one.at,
        "group": one.group,
        "shown": one.is_shown,
        "why": one.why,
    }
