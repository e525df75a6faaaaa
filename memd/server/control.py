"""memd's own calls (`memd/…`), which the hook, the command line and other programs make."""

import contextlib
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import get_args

import anyio
import anyio.to_thread

from memd import __version__, callers, log
from memd.belief.notes import read_content
from memd.capture.clients import list_if_several
from memd.capture.prepare import WRITERS_OWN, CaptureRequest, add_exit_code, may_have_failed
from memd.capture.write import Receipt
from memd.errors import UNEXPECTED_ERRORS, BadRequest, MemdError
from memd.injection import moments, page
from memd.injection.ask import ASK_TOKENS
from memd.injection.injector import ContextPreparation
from memd.injection.moments import InjectionMoment, SessionStart
from memd.models import AGENTS_IMPORT
from memd.server import jsonrpc, requests
from memd.server.control_overview import OverviewControl, make_past_reader
from memd.server.control_projects import ProjectControl
from memd.server.control_review import GUARD, ReviewControl
from memd.server.jsonrpc import Call, JsonObject
from memd.server.scope import ALL, Caller, ControlCall
from memd.server.service import MemoryService
from memd.sharing.records import PlaceUnreachable
from memd.store import ledger
from memd.store.import_rows import staged_path
from memd.transfer import archive

PREFIX = "memd/"
PLAIN_REPLY = b"memd ok "
"""How the answer to a shell begins."""
_CAPTURE = "memd/capture"
_ASK_S = 0.1
"""Seconds that a prompt may wait to learn whether its agent is asked to note something."""
_LIGHT = frozenset({"memd/ping", _CAPTURE, GUARD, "memd/remember"})
_COSTS = {**dict.fromkeys(get_args(SessionStart), "starts"), "stop": "asks"}
"""Moment → under which name it is counted what it costs the agent; others by their own."""
BATCHES: dict[str, tuple[str, type[requests.Request]]] = {
    _CAPTURE: ("events", requests.CaptureBatchRequest),
    "memd/remember": ("memories", requests.RememberBatchRequest),
}
"""Method → the parameter that makes a call of it a batch, and the batch's model."""


class Control:
    """The control calls of one daemon."""

    calls = failures = 0

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._app = service.app
        self._projects = ProjectControl(service)
        self._past = make_past_reader(service)
        self._log = log.get("serve")
        self.methods: dict[str, ControlCall] = {
            **self._list_own_calls(),
            **self._list_upkeep_calls(),
            **self._projects.list_calls(),
            **OverviewControl(service).list_calls(),
            **ReviewControl(service).list_calls(),
        }
        """Method → the call."""

    def _list_own_calls(self) -> dict[str, ControlCall]:
        """The calls about events, context and memories."""
        service = self._service
        return {
            "memd/ping": ControlCall(requests.EmptyRequest, self._answer_ping, reads=True),
            _CAPTURE: ControlCall(requests.CaptureEventRequest, self._capture_events),
            "memd/context": ControlCall(requests.ContextRequest, self._preview_context, reads=True),
            "memd/status": ControlCall(requests.StatusRequest, self._report_status, reads=True),
            "memd/search": ControlCall(requests.SearchRequest, self._search_memories, reads=True),
            "memd/timeline": ControlCall(requests.TimelineRequest, self._show_timeline, reads=True),
            "memd/why": ControlCall(requests.WhyRequest, service.why, reads=True, project=ALL),
            "memd/get": ControlCall(requests.GetRequest, self._get_memories, reads=True, project=ALL),
            "memd/remember": ControlCall(requests.RememberRequest, self._remember_texts),
            "memd/forget": ControlCall(requests.ForgetRequest, self._forget_memories, project=ALL),
            "memd/scrub": ControlCall(requests.ScrubRequest, self._scrub_vault, settles=True),
            "memd/pin": ControlCall(requests.PinRequest, service.pin, project=ALL),
            "memd/judge": ControlCall(requests.JudgeRequest, service.judge, project=ALL),
            "memd/judge/open": ControlCall(requests.OpenQuestionsRequest, service.open_questions, reads=True, project=ALL),
            "memd/edit": ControlCall(requests.EditRequest, service.edit, name="id", project=ALL),
        }  # fmt: skip

    def _list_upkeep_calls(self) -> dict[str, ControlCall]:
        """The calls about imports and the vault as a whole."""
        app = self._app
        return {
            "memd/imports": ControlCall(
                requests.EmptyRequest, lambda _, __: app.db.read(ledger.imported_files), name="imports", reads=True
            ),
            "memd/imports/mark": ControlCall(requests.ImportMarkRequest, self._mark_imported, name="marked"),
            "memd/imports/withdraw": ControlCall(
                requests.HideImportedRequest,
                lambda asked, _: app.curator.withdraw(asked.path, frozenset(asked.staying)),
                name="withdrawn", settles=True,
            ),
            "memd/import/vault": ControlCall(
                requests.ImportVaultRequest, self._import_vault,
                command=lambda _: ["import", "vault", "FILE"], settles=True,
            ),
            "memd/notes/past": ControlCall(
                requests.PastNotesRequest, self._read_past, command=lambda _: ["notes", "--past"]
            ),
            "memd/reindex": ControlCall(requests.ReindexRequest, self._rebuild_index, name="report"),
            "memd/vacuum": ControlCall(
                requests.DryRunRequest, self._vacuum_vault, command=lambda _: ["vacuum"], name="report"
            ),
            "memd/doctor": ControlCall(requests.DoctorRequest, self._examine_vault),
            "memd/consolidate": ControlCall(
                requests.ConsolidateRequest, self._consolidate_memories,
                command=lambda asked: ["consolidate", "--merge"] if asked.merge else None,
            ),
            "memd/consolidate/undo": ControlCall(
                requests.UndoConsolidationRequest,
                lambda asked, _: app.consolidator.undo(asked.what, dry_run=asked.dry_run),
                command=lambda asked: ["consolidate", "--undo", asked.what], name="report", settles=True,
            ),
            "memd/consolidate/runs": ControlCall(
                requests.ConsolidationRunsRequest, lambda asked, _: app.consolidator.list_runs(asked.limit),
                name="runs", reads=True,
            ),
            "memd/sync": ControlCall(requests.SyncRequest, self._sync_vault),
            "memd/backups": ControlCall(
                requests.EmptyRequest, lambda _, __: anyio.to_thread.run_sync(app.backups), name="backups", reads=True
            ),
            "memd/shutdown": ControlCall(requests.EmptyRequest, self._shut_down, command=lambda _: ["stop"]),
        }  # fmt: skip

    async def reply(self, call: Call, caller: Caller) -> bytes | None:
        """The line that answers this call; None for a notification."""
        self.calls += 1
        try:
            method = self.methods[call.method]
            model = BATCHES[call.method][1] if _is_batch(call) else method.request
            defaults = {"project": method.project} if method.project else {}
            request = requests.parse(model, {**defaults, **call.params})
            if _is_change(method, request):
                caller = await self._admit_change(call.method, request, caller)
            result = await method.handler(request, caller)
            if method.settles and not getattr(request, "dry_run", False):
                await self._app.indexer.settle()
            if method.name:
                result = {method.name: result}
            if call.method not in (_CAPTURE, GUARD):
                result = jsonrpc.name_speakers(result, list_if_several(self._app.recaller.sources))
            if isinstance(request, requests.CaptureEventRequest) and request.plain:
                return _format_plain(result)
            return None if call.id is None else jsonrpc.result_line(call.id, result)
        except (MemdError, *UNEXPECTED_ERRORS) as error:
            if not isinstance(error, BadRequest):
                self.failures += 1
                self._log.exception("control_failed", method=call.method)
            return None if call.id is None else jsonrpc.failure_line(call.id, error)

    async def _admit_change(self, method: str, request: requests.Request, caller: Caller) -> Caller:
        """Return the caller, as an agent if it is one, and log who it is; refuse what only the user decides."""
        if caller.pid is not None and caller.speaker != "agent":
            mark = await anyio.to_thread.run_sync(callers.find_agent, caller.pid)
            if mark is not None:
                caller = replace(caller, speaker="agent", mark=mark)
        by = self._service.speaker_of(caller)
        who = {"by": by, "pid": caller.pid, "mark": caller.mark if by == "agent" else None}
        try:
            if by == "agent":
                self.methods[method].require_user(request, caller.mark)
        except BadRequest:
            self._log.warning("change_refused", method=method, **who)
            raise
        self._log.info("change_asked_for", method=method, **who)
        return caller

    def is_light(self, call: Call) -> bool:
        """Return whether it costs so little that several of one connection may run at a time."""
        return call.method in _LIGHT and not _is_batch(call)

    def is_capture(self, call: Call) -> bool:
        """Return whether it captures one event."""
        return call.method == _CAPTURE and not _is_batch(call)

    async def _answer_ping(self, _: requests.EmptyRequest, __: Caller) -> JsonObject:
        return {"memd": __version__, "pid": os.getpid(), "protocol": jsonrpc.PREFACE_VERSION}

    async def _report_status(self, request: requests.StatusRequest, _: Caller) -> JsonObject:
        status = await self._app.status()
        with contextlib.suppress(MemdError):  # a vault that cannot be read is a reason already
            status["told"] = await self._app.outcomes.report(weeks=1)
        if request.directory is None:
            return status
        return {**status, "here": await self._projects.describe(request.directory)}

    async def _shut_down(self, _: requests.EmptyRequest, __: Caller) -> JsonObject:
        self._app.shutdown()
        return {"leaving": True}

    # ── Capture and injection ────────────────────────────────────────────────────────────────────

    async def _capture_events(
        self, request: requests.CaptureEventRequest | requests.CaptureBatchRequest, caller: Caller
    ) -> JsonObject:
        ingestor = self._app.ingestor
        if isinstance(request, requests.CaptureEventRequest):
            sent = self._to_capture(request, caller)
            if may_have_failed(sent):
                sent = await anyio.to_thread.run_sync(add_exit_code, sent)
            moment, started = _find_moment(sent) if request.inject else None, anyio.current_time()
            # Searched for while the event is being stored; shown only once that is committed.
            is_ahead = moment and not moment.is_call and moment.name != "stop"
            preparation = self._app.injector.prepare(moment) if moment and is_ahead else None
            (receipt,) = await ingestor.capture([sent])
            output = await self._inject_context(moment, preparation, receipt, started, caller)
            return _format_receipt(receipt) | output
        capture = ingestor.rehearse if request.dry_run else ingestor.capture
        receipts = await capture(
            [self._to_capture(event, caller, is_import=True) for event in request.events]
        )
        return {"receipts": [_format_receipt(receipt) for receipt in receipts]}

    def _to_capture(
        self, event: requests.CaptureEventRequest, caller: Caller, *, is_import: bool = False
    ) -> CaptureRequest:
        is_import = is_import or event.source != "live"
        is_agents = is_import and self._service.speaker_of(caller) == "agent"
        return CaptureRequest(
            client=event.client,
            payload=event.payload,
            at=event.at,
            directory=event.directory or caller.directory,
            source=AGENTS_IMPORT if is_agents else event.source,
            capture=event.capture,
            event=event.event,
        )

    async def _inject_context(
        self,
        moment: InjectionMoment | None,
        preparation: ContextPreparation | None,
        receipt: Receipt,
        started: float,
        caller: Caller,
    ) -> JsonObject:
        """The `output` for the agent, as its client wants it; empty if there is none. The agent waits since `started`.

        A duplicate was answered before, but perhaps too late for its hook.
        """
        is_repeated = receipt.outcome == "duplicate"
        is_new = receipt.outcome in ("stored", "filtered") and receipt.reason != WRITERS_OWN
        if moment is None or not (is_new or is_repeated):
            return {}
        moment = replace(moment, event_id=receipt.seq)
        parts = await self._app.injector.tell(moment, preparation, is_repeated=is_repeated)
        told, costs = parts.text, self._app.outcomes.costs
        if told is not None or not (moment.is_call or is_repeated):
            name = _COSTS.get(moment.name, f"{moment.name}s")
            costs.add(name, page.estimate_tokens(told or ""), anyio.current_time() - started)
        asked = None if is_repeated else await self._ask_for_notes(moment)
        if asked:
            costs.add("asks", page.estimate_tokens(asked))
        is_end = moment.name == "stop" and not is_repeated
        rule = await self._app.guard.at_end(moment) if is_end else None
        text = "\n".join(filter(None, (told, rule, asked)))
        if caller.has_left():
            self._app.injector.take_back(parts)
            return {}
        if not text:
            return {}
        self._app.injector.note_told(moment, text)
        return {"output": moments.hook_output(moment, text)}

    async def _ask_for_notes(self, moment: InjectionMoment) -> str | None:
        """The line that asks the agent to note something; a failure is logged, and the prompt goes on without."""
        if moment.name not in ("prompt", "stop"):
            return None
        ends, key = moment.name == "stop", (moment.client, moment.session)
        budget, started, asked = self._app.injector.budget, anyio.current_time(), None
        try:
            with anyio.move_on_after(_ASK_S):
                if await budget.tokens_left(key) >= ASK_TOKENS:
                    asked = await self._app.asker.ask(*key, moment.event_id, ends=ends)
        except MemdError as error:
            log.get("serve").warning("ask_failed", error=error.message)
        waited_s = anyio.current_time() - started
        budget.spend(key, page.estimate_tokens(asked or ""), waited_s)
        return asked

    async def _preview_context(
        self, request: requests.ContextRequest, caller: Caller
    ) -> JsonObject:
        name = request.moment or ("prompt" if request.prompt else "startup")
        if name == "prompt" and not request.prompt.strip():
            raise BadRequest("prompt: say what would be asked")
        client = key = ""
        directory = request.directory or caller.directory
        if request.project is not None:
            directory = (await self._service.scopes.find_project(request.project)).key
        if request.session is not None:
            session = await self._service.scopes.find_session(request.session, caller)
            client, key, directory = session.client, session.key, None
        moment = InjectionMoment(client, key, name, "", request.prompt, directory)
        started = anyio.current_time()
        context = await self._app.injector.preview(moment, explain=request.explain)
        return {
            "moment": name,
            "project": context.project,
            "text": context.text,
            "reason": context.reason,
            "tokens": page.estimate_tokens(context.text or ""),
            "memories": context.candidates if request.explain else context.shown,
            "took_ms": round((anyio.current_time() - started) * 1000, 2),
        }

    # ── Memories ─────────────────────────────────────────────────────────────────────────────────

    async def _search_memories(self, request: requests.SearchRequest, caller: Caller) -> JsonObject:
        found = await self._service.search(request, caller)
        result = jsonrpc.format_answer(
            found.answer, waited=found.waited, notes=found.list_notes("--project all")
        )
        result["said"] = [jsonrpc.to_plain(one) for one in found.said]
        if found.scope.project_ids is None:
            await self._name_other_projects(result["hits"], request.directory, caller)
        return result

    async def _show_timeline(self, request: requests.TimelineRequest, caller: Caller) -> JsonObject:
        timeline, scope = await self._service.timeline(request, caller)
        result = jsonrpc.to_plain(timeline)
        if scope.project_ids is None:
            memories = [row["summary"] for row in result["rows"]]
            await self._name_other_projects(memories, request.directory, caller)
        return {**result, "note": scope.note}

    async def _get_memories(self, request: requests.GetRequest, caller: Caller) -> JsonObject:
        read = await self._service.get(request, caller)
        memories = [
            {
                **jsonrpc.to_plain(memory),
                "project": read.project_names.get(memory.project_id),
                "session_title": read.session_titles.get(memory.session_id or 0) or None,
                "contradicted_by": read.contradicted.get(memory.id, ()),
                "content": read_content(memory.body),
            }
            for memory in read.memories
        ]
        return {"memories": memories, "unknown": read.unknown}

    async def _remember_texts(
        self, request: requests.RememberRequest | requests.RememberBatchRequest, caller: Caller
    ) -> JsonObject:
        if isinstance(request, requests.RememberBatchRequest):
            # Many at once are an import: they say themselves where they come from.
            return {"remembered": await self._service.remember(request.memories, caller)}
        (one,) = await self._service.remember([request], caller)
        return {**jsonrpc.to_plain(one), "judgment_required": bool(one.candidates)}

    async def _forget_memories(self, request: requests.ForgetRequest, caller: Caller) -> JsonObject:
        forgotten = await self._service.forget(request, caller)
        result: JsonObject = jsonrpc.to_plain(forgotten)
        await self._name_other_projects(result["summaries"], request.directory, caller)
        return result

    async def _name_other_projects(
        self, memories: list[JsonObject], directory: str | None, caller: Caller
    ) -> None:
        """Set `elsewhere`: the name of a memory's project, or None for the caller's own project."""
        scopes = self._service.scopes
        names = await scopes.find_other_projects(directory or caller.directory)
        for memory in memories:
            memory["elsewhere"] = names.get(memory["project_id"])

    async def _scrub_vault(self, request: requests.ScrubRequest, caller: Caller) -> object:
        if not request.dry_run and self._service.speaker_of(caller) == "agent":
            raise BadRequest(
                "a scrub rewrites what the user said, so only the user runs it: ask the user to run"
                " `memd scrub` (or to set user_memories = true under [agents] in config.toml)"
            )
        if (request.pattern is None) is not request.secrets:
            raise BadRequest("pattern: give a pattern, or secrets: true")
        return await self._app.curator.scrub(request.pattern, dry_run=request.dry_run)

    # ── Imports ──────────────────────────────────────────────────────────────────────────────────

    async def _mark_imported(
        self, request: requests.ImportMarkRequest, caller: Caller
    ) -> str | None:
        if self._service.speaker_of(caller) == "agent":
            # The user's own import is to read the file again, as the user's word.
            return None
        mark = (request.path, request.size, request.modified_at, self._app.clock())
        await self._app.db.write(lambda tx: ledger.mark_imported(tx, *mark))
        return request.path

    async def _import_vault(self, request: requests.ImportVaultRequest, _: Caller) -> object:
        """Merge a staged vault in one transaction; meanwhile new events wait in the spool."""
        path = staged_path(self._app.db.path, request.staged)
        merge = partial(archive.merge_staged, staged=path, now=self._app.clock())
        return await self._app.db.write(merge)

    async def _read_past(self, request: requests.PastNotesRequest, caller: Caller) -> JsonObject:
        if self._past is None:
            raise BadRequest(
                "no writer is set; name a program under [distill] in config.toml, such as"
                ' writer_command = ["claude", "-p"], or writer = "ollama" (docs/notes.md)'
            )
        scope = await self._service.scopes.find_asked(request, caller)
        if request.dry_run:
            return {"plan": await self._past.plan(scope.project_ids, again=request.again)}
        if request.again:
            await self._past.retry_failed()
        return {"step": await self._past.read_next(scope.project_ids)}

    # ── Maintenance ──────────────────────────────────────────────────────────────────────────────

    async def _rebuild_index(self, request: requests.ReindexRequest, _: Caller) -> object:
        app, again = self._app, self._app.redistiller
        if request.dry_run and not request.memories:
            raise BadRequest("dry_run: only distilling the memories again has a preview")
        rebuild: Callable[[], Awaitable[object]] = app.indexer.reindex
        if request.memories:
            rebuild = again.preview if request.dry_run else again.redistil
        elif request.embeddings:
            rebuild = app.vector_maintenance.reembed
        return await rebuild()

    async def _vacuum_vault(self, request: requests.DryRunRequest, _: Caller) -> JsonObject:
        retention = self._app.retention
        aged = await (retention.preview() if request.dry_run else retention.apply())
        vacuumed = await self._app.vector_maintenance.vacuum(dry_run=request.dry_run)
        return {**jsonrpc.to_plain(vacuumed), "retention": aged}

    async def _sync_vault(self, request: requests.SyncRequest, caller: Caller) -> JsonObject:
        sync = self._app.sync
        if request.place is None or request.folder is None:
            return await sync.describe()
        if self._service.speaker_of(caller) == "agent":
            # What stands at a place has any speaker; only the user says where memories go and come from.
            raise BadRequest("place: an agent does not choose it; ask the user to run `memd sync`")
        try:
            report = await sync.sync_folder(request.place, request.folder, dry_run=request.dry_run)
        except PlaceUnreachable as error:  # no fault of ours: a disk that is not mounted
            raise BadRequest(error.message) from error
        if not request.dry_run:
            await self._app.indexer.settle()
        return {"report": report}

    async def _examine_vault(self, request: requests.DoctorRequest, _: Caller) -> JsonObject:
        mended = await self._app.checkup.mend() if request.fix else []
        return {"mended": mended, "findings": await self._app.checkup.examine()}

    async def _consolidate_memories(
        self, request: requests.ConsolidateRequest, _: Caller
    ) -> JsonObject:
        consolidator = self._app.consolidator
        if request.merge:
            if request.confirm and self._app.writer is None:
                raise BadRequest("confirm: no writer is set; see [distill] in config.toml")
            writer = self._app.writer if request.confirm else None
            merged = await consolidator.merge(writer, dry_run=request.dry_run)
            await self._app.indexer.settle()
            return {"dry_run": request.dry_run, "report": merged}
        run = consolidator.preview_tick() if request.dry_run else consolidator.tick()
        return {"dry_run": request.dry_run, "report": await run}


def _is_change(method: ControlCall, request: requests.Request) -> bool:
    """Return whether the identity of the caller matters; not for one event: a client's hook sends that."""
    if isinstance(request, requests.CaptureEventRequest):
        return request.source != "live"
    return not method.reads


def _is_batch(call: Call) -> bool:
    return call.method in BATCHES and BATCHES[call.method][0] in call.params


def _find_moment(request: CaptureRequest) -> InjectionMoment | None:
    """Return the moment at which an event may be answered with context; None for one from the spool: it is too late."""
    if request.source != "live":
        return None
    sent = request.translate()
    return moments.read_moment(sent.client, sent.payload, sent.directory)


def _format_plain(receipt: object) -> bytes:
    """The answer to a shell: one line whose end can be seen, for half of one must not count."""
    output = receipt.get("output") if isinstance(receipt, dict) else None
    text = json.dumps(output, separators=(",", ":")).encode("ascii") + b" " if output else b""
    return PLAIN_REPLY + text + b".\n"


def _format_receipt(receipt: Receipt) -> JsonObject:
    return {"outcome": receipt.outcome, "seq": receipt.seq, "reason": receipt.reason}
