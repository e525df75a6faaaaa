"""memd's own calls, for the hook, the command line, the viewer and scripts.

A table of methods: its parameters, checked strictly, and what it does. Every failure becomes an
error line here. Not here: sockets (connection.py), the small results for agents (tools.py).
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio.to_thread

from memd import __version__, log
from memd.capture.intake import CaptureRequest, Receipt
from memd.errors import BadRequest, MemdError
from memd.serve import full, jsonrpc, requests, scope
from memd.serve.doctoring import Doctoring
from memd.serve.erasing import Scrubs
from memd.serve.errands import Desk
from memd.serve.jsonrpc import Call
from memd.serve.moving import Moving
from memd.serve.places import Places
from memd.serve.requests import Request
from memd.serve.scope import Caller
from memd.serve.tidying import Tidying
from memd.serve.unasked import Unasked
from memd.store import books

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
        intake = self._app.intake
        if isinstance(asked, requests.CaptureEventRequest):
            (receipt,) = await intake.capture([_request(asked, caller)])
            return {**_receipt(receipt), **await self._unasked.output(asked, receipt, caller)}
        work = intake.rehearse if asked.dry_run else intake.capture
        receipts = await work([_request(event, caller) for event in asked.events])
        return {"receipts": [_receipt(receipt) for receipt in receipts]}

    async def _status(self, asked: requests.StatusRequest, _: Caller) -> Any:
        status = full.plain(await self._app.status())
        if asked.directory is None:
            return status
        return {**status, "here": await self._places.here(asked.directory)}

    async def _search(self, asked: requests.SearchRequest, caller: Caller) -> dict[str, Any]:
        found = await self._desk.search(asked, caller)
        told = full.answer(found.answer, waited=found.waited, note=found.reach.note)
        if found.reach.project_ids is None:
            await self._place(told["hits"], asked.directory, caller)
        return told

    async def _timeline(self, asked: requests.TimelineRequest, caller: Caller) -> Any:
        shown, reach = await self._desk.timeline(asked, caller)
        told = full.plain(shown)
        if reach.project_ids is None:
            await self._place([row["summary"] for row in told["rows"]], asked.directory, caller)
        return {**told, "note": reach.note}

    async def _why(self, asked: requests.WhyRequest, caller: Caller) -> Any:
        found, _ = await self._desk.why(asked, caller)
        return full.plain(found)

    async def _get(self, asked: requests.GetRequest, caller: Caller) -> dict[str, Any]:
        read = await self._desk.get(asked, caller)
        memories = [
            full.memory(
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
            {"remembered": full.plain(kept)}
            if isinstance(asked, requests.RememberBatchRequest)
            else {**full.plain(kept[0]), "judgment_required": bool(kept[0].candidates)}
        )

    async def _forget(self, asked: requests.ForgetRequest, caller: Caller) -> Any:
        gone = full.plain(await self._desk.forget(asked, caller))
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
        return full.plain(await self._desk.pin(asked, caller))

    async def _judge(self, asked: requests.JudgeRequest, caller: Caller) -> Any:
        return full.plain(await self._desk.judge(asked, caller, "user"))

    async def _imports(self, _: requests.EmptyRequest, __: Caller) -> dict[str, Any]:
        marks = await self._app.db.read(books.imported)
        return {"imports": {path: list(mark) for path, mark in marks.items()}}

    async def _mark_imported(
        self, asked: requests.ImportMarkRequest, _: Caller
    ) -> dict[str, Any]:
        now = self._app.clock()
        await self._app.db.write(
            lambda tx: books.mark_imported(tx, asked.path, asked.size, asked.modified_at, now)
        )
        return {"marked": asked.path}

    async def _withdraw(self, asked: requests.WithdrawRequest, _: Caller) -> dict[str, Any]:
        return {"withdrawn": list(await self._desk.withdraw(asked))}

    async def _reindex(self, asked: requests.ReindexRequest, _: Caller) -> dict[str, Any]:
        doer = self._app.upkeep.reembed if asked.embeddings else self._app.indexer.reindex
        return {"report": full.plain(await doer())}

    async def _vacuum(self, asked: requests.VacuumRequest, _: Caller) -> dict[str, Any]:
        retention = self._app.retention
        aged = await (retention.preview() if asked.dry_run else retention.act())
        report = full.plain(await self._app.upkeep.vacuum(dry_run=asked.dry_run))
        return {"report": {**report, "retention": full.plain(aged)}}

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
