"""memd's own calls, for the hook, the command line, the viewer and scripts.

A table of methods: its parameters, checked strictly, and what it does. Every failure becomes an
error line here. Not here: sockets (connection.py), the small results for agents (tools.py).
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio.to_thread
from pydantic import BaseModel, ValidationError

from memd import __version__, log
from memd.capture.intake import CaptureRequest, Receipt
from memd.errors import BadRequest, MemdError
from memd.serve import arguments as ask
from memd.serve import full, jsonrpc, scope
from memd.serve.doctoring import Doctoring
from memd.serve.erasing import Scrubs
from memd.serve.errands import Desk
from memd.serve.jsonrpc import Call
from memd.serve.moving import Moving
from memd.serve.places import Places
from memd.serve.scope import Caller
from memd.serve.tidying import Tidying
from memd.serve.unasked import Unasked
from memd.store import books

PREFIX = "memd/"
Handler = Callable[[Any, Caller], Awaitable[Any]]
_CAPTURE = "memd/capture"
_LIGHT = frozenset({"memd/ping", _CAPTURE, "memd/remember"})
_MANY = ("events", "memories")


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
        return await handler(_parsed(models, call.params), caller)

    def _table(self) -> dict[str, tuple[dict[str, type[BaseModel]], Handler]]:
        return {
            "memd/ping": (_one(ask.Nothing), self._ping),
            _CAPTURE: ({"events": ask.CapturedBatch, "": ask.Captured}, self._capture),
            "memd/context": (_one(ask.Context), self._unasked.context),
            "memd/injected": (_one(ask.Injected), self._unasked.injected),
            "memd/status": (_one(ask.Status), self._status),
            "memd/search": (_one(ask.ControlSearch), self._search),
            "memd/timeline": (_one(ask.ControlTimeline), self._timeline),
            "memd/why": (_one(ask.ControlWhy), self._why),
            "memd/get": (_one(ask.ControlGet), self._get),
            "memd/remember": (
                {"memories": ask.ControlMemories, "": ask.ControlMemory},
                self._remember,
            ),
            "memd/forget": (_one(ask.ControlForget), self._forget),
            "memd/scrub": (_one(ask.Scrub), self._scrubs.scrub),
            "memd/pin": (_one(ask.ControlPin), self._pin),
            "memd/judge": (_one(ask.ControlJudge), self._judge),
            "memd/project": (_one(ask.Project), self._places.project),
            "memd/projects": (_one(ask.Nothing), self._places.projects),
            "memd/project/merge": (_one(ask.MergeProjects), self._places.merge),
            "memd/project/rename": (_one(ask.RenameProject), self._places.rename),
            "memd/switch": (_one(ask.SwitchPlace), self._places.switch),
            "memd/imports": (_one(ask.Nothing), self._imports),
            "memd/imports/mark": (_one(ask.ImportMark), self._mark_imported),
            "memd/imports/withdraw": (_one(ask.Withdraw), self._withdraw),
            "memd/import/vault": (_one(ask.Merge), Moving(self._app).merge),
            "memd/reindex": (_one(ask.Reindex), self._reindex),
            "memd/vacuum": (_one(ask.Vacuum), self._vacuum),
            "memd/doctor": (_one(ask.Doctor), Doctoring(self._app).doctor),
            "memd/consolidate": (_one(ask.Consolidate), self._tidying.consolidate),
            "memd/consolidate/undo": (_one(ask.UndoConsolidation), self._tidying.undo),
            "memd/consolidate/runs": (_one(ask.Runs), self._tidying.runs),
            "memd/shutdown": (_one(ask.Nothing), self._shutdown),
        }

    async def _ping(self, _: ask.Nothing, __: Caller) -> dict[str, Any]:
        return {"memd": __version__, "pid": os.getpid(), "protocol": jsonrpc.PREFACE_VERSION}

    async def _capture(
        self, asked: ask.Captured | ask.CapturedBatch, caller: Caller
    ) -> dict[str, Any]:
        intake = self._app.intake
        if isinstance(asked, ask.Captured):
            (receipt,) = await intake.capture([_request(asked, caller)])
            return {**_receipt(receipt), **await self._unasked.output(asked, receipt, caller)}
        work = intake.rehearse if asked.dry_run else intake.capture
        receipts = await work([_request(event, caller) for event in asked.events])
        return {"receipts": [_receipt(receipt) for receipt in receipts]}

    async def _status(self, asked: ask.Status, _: Caller) -> Any:
        status = full.plain(await self._app.status())
        if asked.directory is None:
            return status
        return {**status, "here": await self._places.here(asked.directory)}

    async def _search(self, asked: ask.ControlSearch, caller: Caller) -> dict[str, Any]:
        found = await self._desk.search(asked, caller)
        told = full.answer(found.answer, waited=found.waited, note=found.reach.note)
        if found.reach.project_ids is None:
            await self._place(told["hits"], asked.directory, caller)
        return told

    async def _timeline(self, asked: ask.ControlTimeline, caller: Caller) -> Any:
        shown, reach = await self._desk.timeline(asked, caller)
        told = full.plain(shown)
        if reach.project_ids is None:
            await self._place([row["summary"] for row in told["rows"]], asked.directory, caller)
        return {**told, "note": reach.note}

    async def _why(self, asked: ask.ControlWhy, caller: Caller) -> Any:
        found, _ = await self._desk.why(asked, caller)
        return full.plain(found)

    async def _get(self, asked: ask.ControlGet, caller: Caller) -> dict[str, Any]:
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
        self, asked: ask.ControlMemory | ask.ControlMemories, caller: Caller
    ) -> Any:
        memories = asked.memories if isinstance(asked, ask.ControlMemories) else [asked]
        kept = await self._desk.remember(memories, caller)
        return (
            {"remembered": full.plain(kept)}
            if isinstance(asked, ask.ControlMemories)
            else {**full.plain(kept[0]), "judgment_required": bool(kept[0].candidates)}
        )

    async def _forget(self, asked: ask.ControlForget, caller: Caller) -> Any:
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

    async def _pin(self, asked: ask.ControlPin, caller: Caller) -> Any:
        return full.plain(await self._desk.pin(asked, caller))

    async def _judge(self, asked: ask.ControlJudge, caller: Caller) -> Any:
        return full.plain(await self._desk.judge(asked, caller, "user"))

    async def _imports(self, _: ask.Nothing, __: Caller) -> dict[str, Any]:
        marks = await self._app.db.read(books.imported)
        return {"imports": {path: list(mark) for path, mark in marks.items()}}

    async def _mark_imported(self, asked: ask.ImportMark, _: Caller) -> dict[str, Any]:
        now = self._app.clock()
        await self._app.db.write(
            lambda tx: books.mark_imported(tx, asked.path, asked.size, asked.modified_at, now)
        )
        return {"marked": asked.path}

    async def _withdraw(self, asked: ask.Withdraw, _: Caller) -> dict[str, Any]:
        return {"withdrawn": list(await self._desk.withdraw(asked))}

    async def _reindex(self, asked: ask.Reindex, _: Caller) -> dict[str, Any]:
        doer = self._app.upkeep.reembed if asked.embeddings else self._app.indexer.reindex
        return {"report": full.plain(await doer())}

    async def _vacuum(self, asked: ask.Vacuum, _: Caller) -> dict[str, Any]:
        retention = self._app.retention
        aged = await (retention.preview() if asked.dry_run else retention.act())
        report = full.plain(await self._app.upkeep.vacuum(dry_run=asked.dry_run))
        return {"report": {**report, "retention": full.plain(aged)}}

    async def _shutdown(self, _: ask.Nothing, __: Caller) -> dict[str, Any]:
        self._app.shutdown()
        return {"leaving": True}


def _one(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    return {"": model}


def _parsed(models: Mapping[str, type[BaseModel]], params: Mapping[str, Any]) -> BaseModel:
    """The parameters by the model that fits: the one whose marking field is there, else the plain one."""
    model = next((model for mark, model in models.items() if mark in params), models[""])
    try:
        return model.model_validate(dict(params), strict=True)
    except ValidationError as error:
        raise jsonrpc.bad_request(error) from error


async def _written(number: jsonrpc.Id, result: Any) -> bytes:
    if jsonrpc.is_large(result):
        return await anyio.to_thread.run_sync(jsonrpc.large_result_line, number, result)
    return jsonrpc.result_line(number, result)


def _request(event: ask.Captured, caller: Caller) -> CaptureRequest:
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
