"""memd/* control methods."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from memd import __version__, log
from memd.capture.prepare import CaptureRequest
from memd.capture.write import Receipt
from memd.errors import BadRequest, MemdError
from memd.models import Session
from memd.server import context_builder, injection_types, json_format, jsonrpc, requests, scope
from memd.server.control_projects import Places
from memd.server.injection_types import Opening, Verdict
from memd.server.jsonrpc import Call
from memd.server.ports import App
from memd.server.requests import (
    CaptureEventRequest,
    ConsolidateRequest,
    ConsolidationRunsRequest,
    ContextRequest,
    DoctorRequest,
    ImportVaultRequest,
    InjectedRequest,
    Request,
    UndoConsolidationRequest,
)
from memd.server.scope import Caller
from memd.server.service import Desk, Scrubs
from memd.store import ledger, projects
from memd.store.database import Connection
from memd.store.import_rows import staged_path
from memd.transfer import archive

# MERGED from memd.serve.doctoring:
# MERGED The control call of `memd doctor`: what is right and wrong with the vault, and mending it.
# MERGED
# MERGED Not here: what is looked at (daemon/checkup.py), and what the command can see for itself.


class Doctoring:
    """The call over one App."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def doctor(self, asked: DoctorRequest, _: Caller) -> dict[str, Any]:
        """`memd/doctor`: the findings, and with `fix` what was mended before they were made."""
        mended = await self._app.checkup.mend() if asked.fix else []
        return {
            "mended": mended,
            "findings": json_format.plain(await self._app.checkup.examine()),
        }


# MERGED from memd.serve.moving:
# MERGED The control call that takes over what was staged beside the vault, all of it at once.
# MERGED
# MERGED Whoever imports has checked and redacted it in a process of its own; here it is one transaction, and
# MERGED what agents say meanwhile waits in their spool. Not here: how it is merged (exchange/moving.py).


@dataclass(frozen=True, slots=True)
class Moving:
    """The handler over one App."""

    app: App

    async def merge(self, asked: ImportVaultRequest, _: Caller) -> Any:
        """Take over a staged vault, by the name of its file; return once all of it can be found."""
        db = self.app.db
        path = staged_path(db.path, asked.staged)
        merged = await db.write(
            partial(archive.merge_staged, staged=path, now=self.app.clock())
        )
        await self.app.indexer.settle()
        return json_format.plain(merged)


# MERGED from memd.serve.tidying:
# MERGED Consolidation on a person's word: a round now, a rehearsal, the rounds so far, and taking one back.
# MERGED
# MERGED Everything goes through the daemon's one consolidator, which never runs twice at a time, over a vault
# MERGED that no second daemon can open. Not here: what is decided (memd/consolidate).


class Tidying:
    """The calls about consolidation."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def consolidate(self, asked: ConsolidateRequest, _: Caller) -> dict[str, Any]:
        """`memd/consolidate`: a round, or with `dry_run` the pairs that it would decide."""
        doer = self._app.consolidator
        report = await (doer.preview_tick() if asked.dry_run else doer.tick())
        return {"dry_run": asked.dry_run, "report": json_format.plain(report)}

    async def undo(self, asked: UndoConsolidationRequest, _: Caller) -> dict[str, Any]:
        """`memd/consolidate/undo`: what showed again, or would."""
        undone = await self._app.consolidator.undo(asked.what, dry_run=asked.dry_run)
        if not asked.dry_run:
            await self._app.indexer.settle()
        return {"report": json_format.plain(undone)}

    async def runs(self, asked: ConsolidationRunsRequest, _: Caller) -> dict[str, Any]:
        """`memd/consolidate/runs`: the latest rounds that changed something."""
        return {"runs": json_format.plain(await self._app.consolidator.runs(asked.limit))}


# MERGED from memd.serve.unasked:
# MERGED The calls about what agents are shown unasked: with an event, beforehand, and afterwards.
# MERGED
# MERGED Not here: looking and choosing (looking.py), deadlines and memory (injecting.py).


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
        opening = injection_types.opening(asked.client, asked.payload, directory)
        if opening is None:
            return {}
        text = await self._app.injector.offer(opening, receipt.seq)
        return {} if text is None else {"output": injection_types.output(opening, text)}

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
            "tokens": -(
                -context_builder.length(looked.text or "") // context_builder.TOKEN_CHARACTERS
            ),
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
    project = projects.project_by_key(tx, project_key)
    return (
        next(iter(projects.recent_sessions(tx, project.id, 1, now)), None) if project else None
    )


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


# MERGED from memd.serve.control:
# MERGED memd's own calls, for the hook, the command line, the viewer and scripts.
# MERGED
# MERGED A table of methods: its parameters, checked strictly, and what it does. Every failure becomes an
# MERGED error line here. Not here: sockets (connection.py), the small results for agents (tools.py).


PREFIX = "memd/"
Handler = Callable[[Any, Caller], Awaitable[Any]]
_CAPTURE = "memd/capture"
_LIGHT = frozenset({"memd/ping", _CAPTURE, "memd/remember"})
_MANY = ("events", "memories")
_IN_ALL_PROJECTS = frozenset({"memd/why", "memd/get", "memd/forget", "memd/pin", "memd/judge"})
"""Calls that see every project unless they name one."""


class Control:
    """The methods over one Desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._app = desk.app
        self._places = Places(desk.app)
        self._unasked = Unasked(desk.app)
        self._tidying = Tidying(desk.app)
        self._scrubs = Scrubs(desk.app)
        self._log = log.get("serve")
        self.calls = 0
        self.failures = 0
        self._methods = self._table()

    async def reply(self, call: Call, caller: Caller) -> bytes | None:
        """The line that answers this call; None for a notification."""
        self.calls += 1
        try:
            result = await self._run(call, caller)
            return None if call.id is None else await _written(call.id, result)
        except (MemdError, *jsonrpc.UNEXPECTED_ERRORS) as error:
            if not isinstance(error, BadRequest):
                self.failures += 1
                self._log.exception("control_failed", method=call.method)
            told = jsonrpc.error_object(error)
            return (
                None
                if call.id is None
                else jsonrpc.error_line(call.id, told.code, told.message, told.data)
            )

    def knows(self, method: str) -> bool:
        """Whether there is such a method."""
        return method in self._methods

    def is_light(self, call: Call) -> bool:
        """Whether it costs so little that several of one connection may be at work together."""
        return call.method in _LIGHT and not any(mark in call.params for mark in _MANY)

    def is_capture(self, call: Call) -> bool:
        """Whether it brings one event."""
        return call.method == _CAPTURE and not any(mark in call.params for mark in _MANY)

    def unknown(self, call: Call) -> bytes:
        """The error for a method that there is not."""
        message = (
            f"there is no method {call.method[:60]!r}; there are {', '.join(self._methods)}"
        )
        return jsonrpc.error_line(call.id, jsonrpc.METHOD_NOT_FOUND, message)

    async def _run(self, call: Call, caller: Caller) -> Any:
        models, handler = self._methods[call.method]
        # Whoever names a memory by its number means it, wherever it is.
        defaults = {"project": scope.ALL} if call.method in _IN_ALL_PROJECTS else {}
        return await handler(_parsed(models, {**defaults, **call.params}), caller)

    def _table(self) -> dict[str, tuple[dict[str, type[Request]], Handler]]:
        return {
            "memd/ping": (_one(requests.EmptyRequest), self._ping),
            _CAPTURE: (
                {"events": requests.CaptureBatchRequest, "": requests.CaptureEventRequest},
                self._capture,
            ),
            "memd/context": (_one(requests.ContextRequest), self._unasked.context),
            "memd/injected": (_one(requests.InjectedRequest), self._unasked.injected),
            "memd/status": (_one(requests.StatusRequest), self._status),
            "memd/search": (_one(requests.SearchRequest), self._search),
            "memd/timeline": (_one(requests.TimelineRequest), self._timeline),
            "memd/why": (_one(requests.WhyRequest), self._why),
            "memd/get": (_one(requests.GetRequest), self._get),
            "memd/remember": (
                {"memories": requests.RememberBatchRequest, "": requests.RememberRequest},
                self._remember,
            ),
            "memd/forget": (_one(requests.ForgetRequest), self._forget),
            "memd/scrub": (_one(requests.ScrubRequest), self._scrubs.scrub),
            "memd/pin": (_one(requests.PinRequest), self._pin),
            "memd/judge": (_one(requests.JudgeRequest), self._judge),
            "memd/project": (_one(requests.ProjectRequest), self._places.project),
            "memd/projects": (_one(requests.EmptyRequest), self._places.projects),
            "memd/project/merge": (_one(requests.MergeProjectsRequest), self._places.merge),
            "memd/project/rename": (_one(requests.RenameProjectRequest), self._places.rename),
            "memd/switch": (_one(requests.SwitchRequest), self._places.switch),
            "memd/imports": (_one(requests.EmptyRequest), self._imports),
            "memd/imports/mark": (_one(requests.ImportMarkRequest), self._mark_imported),
            "memd/imports/withdraw": (_one(requests.WithdrawRequest), self._withdraw),
            "memd/import/vault": (_one(requests.ImportVaultRequest), Moving(self._app).merge),
            "memd/reindex": (_one(requests.ReindexRequest), self._reindex),
            "memd/vacuum": (_one(requests.VacuumRequest), self._vacuum),
            "memd/doctor": (_one(requests.DoctorRequest), Doctoring(self._app).doctor),
            "memd/consolidate": (_one(requests.ConsolidateRequest), self._tidying.consolidate),
            "memd/consolidate/undo": (
                _one(requests.UndoConsolidationRequest),
                self._tidying.undo,
            ),
            "memd/consolidate/runs": (
                _one(requests.ConsolidationRunsRequest),
                self._tidying.runs,
            ),
            "memd/shutdown": (_one(requests.EmptyRequest), self._shutdown),
        }

    async def _ping(self, _: requests.EmptyRequest, __: Caller) -> dict[str, Any]:
        return {"memd": __version__, "pid": os.getpid(), "protocol": jsonrpc.PREFACE_VERSION}

    async def _capture(
        self, asked: requests.CaptureEventRequest | requests.CaptureBatchRequest, caller: Caller
    ) -> dict[str, Any]:
        ingestor = self._app.ingestor
        if isinstance(asked, requests.CaptureEventRequest):
            (receipt,) = await ingestor.capture([_request(asked, caller)])
            return {**_receipt(receipt), **await self._unasked.output(asked, receipt, caller)}
        work = ingestor.rehearse if asked.dry_run else ingestor.capture
        receipts = await work([_request(event, caller) for event in asked.events])
        return {"receipts": [_receipt(receipt) for receipt in receipts]}

    async def _status(self, asked: requests.StatusRequest, _: Caller) -> Any:
        status = json_format.plain(await self._app.status())
        if asked.directory is None:
            return status
        return {**status, "here": await self._places.here(asked.directory)}

    async def _search(self, asked: requests.SearchRequest, caller: Caller) -> dict[str, Any]:
        found = await self._desk.search(asked, caller)
        told = json_format.answer(found.answer, waited=found.waited, note=found.reach.note)
        if found.reach.project_ids is None:
            await self._place(told["hits"], asked.directory, caller)
        return told

    async def _timeline(self, asked: requests.TimelineRequest, caller: Caller) -> Any:
        shown, reach = await self._desk.timeline(asked, caller)
        told = json_format.plain(shown)
        if reach.project_ids is None:
            await self._place([row["summary"] for row in told["rows"]], asked.directory, caller)
        return {**told, "note": reach.note}

    async def _why(self, asked: requests.WhyRequest, caller: Caller) -> Any:
        found, _ = await self._desk.why(asked, caller)
        return json_format.plain(found)

    async def _get(self, asked: requests.GetRequest, caller: Caller) -> dict[str, Any]:
        read = await self._desk.get(asked, caller)
        memories = [
            json_format.memory(
                one,
                read.projects.get(one.project_id),
                read.sessions.get(one.session_id or 0),
                read.contradicted.get(one.id, ()),
            )
            for one in read.memories
        ]
        return {"memories": memories, "unknown": list(read.unknown)}

    async def _remember(
        self, asked: requests.RememberRequest | requests.RememberBatchRequest, caller: Caller
    ) -> Any:
        memories = (
            asked.memories if isinstance(asked, requests.RememberBatchRequest) else [asked]
        )
        kept = await self._desk.remember(memories, caller, "user")
        return (
            {"remembered": json_format.plain(kept)}
            if isinstance(asked, requests.RememberBatchRequest)
            else {**json_format.plain(kept[0]), "judgment_required": bool(kept[0].candidates)}
        )

    async def _forget(self, asked: requests.ForgetRequest, caller: Caller) -> Any:
        gone = json_format.plain(await self._desk.forget(asked, caller))
        await self._place(gone["summaries"], asked.directory, caller)
        return gone

    async def _place(
        self, memories: list[dict[str, Any]], directory: str | None, caller: Caller
    ) -> None:
        """Say `elsewhere`, of each that is not of the caller's project: what its own is called."""
        names = await scope.elsewhere(
            self._app.db, directory or caller.directory, self._app.overrides
        )
        for one in memories:
            one["elsewhere"] = names.get(one["project_id"])

    async def _pin(self, asked: requests.PinRequest, caller: Caller) -> Any:
        return json_format.plain(await self._desk.pin(asked, caller))

    async def _judge(self, asked: requests.JudgeRequest, caller: Caller) -> Any:
        return json_format.plain(await self._desk.judge(asked, caller, "user"))

    async def _imports(self, _: requests.EmptyRequest, __: Caller) -> dict[str, Any]:
        marks = await self._app.db.read(ledger.imported_files)
        return {"imports": {path: list(mark) for path, mark in marks.items()}}

    async def _mark_imported(
        self, asked: requests.ImportMarkRequest, _: Caller
    ) -> dict[str, Any]:
        now = self._app.clock()
        await self._app.db.write(
            lambda tx: ledger.mark_imported(tx, asked.path, asked.size, asked.modified_at, now)
        )
        return {"marked": asked.path}

    async def _withdraw(self, asked: requests.WithdrawRequest, _: Caller) -> dict[str, Any]:
        return {"withdrawn": list(await self._desk.withdraw(asked))}

    async def _reindex(self, asked: requests.ReindexRequest, _: Caller) -> dict[str, Any]:
        doer = (
            self._app.vector_maintenance.reembed
            if asked.embeddings
            else self._app.indexer.reindex
        )
        return {"report": json_format.plain(await doer())}

    async def _vacuum(self, asked: requests.VacuumRequest, _: Caller) -> dict[str, Any]:
        retention = self._app.retention
        aged = await (retention.preview() if asked.dry_run else retention.apply())
        report = json_format.plain(
            await self._app.vector_maintenance.vacuum(dry_run=asked.dry_run)
        )
        return {"report": {**report, "retention": json_format.plain(aged)}}

    async def _shutdown(self, _: requests.EmptyRequest, __: Caller) -> dict[str, Any]:
        self._app.shutdown()
        return {"leaving": True}


def _one(model: type[Request]) -> dict[str, type[Request]]:
    return {"": model}


def _parsed(models: Mapping[str, type[Request]], params: Mapping[str, Any]) -> Request:
    """The parameters by the model that fits: the one whose marking field is there, else the plain one."""
    model = next((model for mark, model in models.items() if mark in params), models[""])
    return requests.parse(model, params)


async def _written(number: jsonrpc.Id, result: Any) -> bytes:
    if jsonrpc.is_large(result):
        return await anyio.to_thread.run_sync(jsonrpc.large_result_line, number, result)
    return jsonrpc.result_line(number, result)


def _request(event: requests.CaptureEventRequest, caller: Caller) -> CaptureRequest:
    return CaptureRequest(
        client=event.client,
        payload=event.payload,
        at=event.at,
        directory=event.directory or caller.directory,
        source=event.source,
        capture=event.capture,
    )


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {"outcome": receipt.outcome, "seq": receipt.seq, "reason": receipt.reason}
