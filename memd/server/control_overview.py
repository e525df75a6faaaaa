"""The control calls that fill the pages of a viewer: overview, lists, sessions and activity."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from memd.capture.redact import redact
from memd.distill.edits import text_at
from memd.distill.past_notes import SOURCE as PAST_SOURCE
from memd.distill.past_notes import PastReader, Stretch, WrittenNote
from memd.distill.proving import uphold
from memd.distill.text import strip_injected
from memd.errors import BadRequest
from memd.injection import page
from memd.injection.outcomes import judge_session
from memd.machine_text import USER, find_prompt_origin
from memd.models import RULE_KINDS, Authority, Event, EventKind, Kind, Session, Summary
from memd.server import requests
from memd.server.jsonrpc import JsonObject, to_plain
from memd.server.scope import ALL, Caller, ControlCall
from memd.server.service import MemoryService
from memd.store import events, judgments, lists, projects, session_context, summaries
from memd.store.database import Connection
from memd.store.filter import Filter
from memd.store.lists import NEWEST, Cursor, MemoryChoice, TimeGrid
from memd.store.usage import UntoldMoment
from memd.time_expressions import WEEK_MS

T = TypeVar("T")

_SLOW_S = 0.2
"""Counting that takes longer is not done again within `_SLOW_KEPT_MS`."""
_SLOW_KEPT_MS = 60_000
_SLOW_MAX = 32
_FILES_MAX = 50


class OverviewControl:
    """Handles the control calls that list and count."""

    def __init__(self, service: MemoryService) -> None:
        self._app = service.app
        self._scopes = service.scopes
        self._later = service.later
        self._slow: dict[object, tuple[int, Any]] = {}
        """What was counted → when, and the result, where counting took long."""

    def list_calls(self) -> dict[str, ControlCall]:
        """The calls that list and count."""
        return {
            "memd/overview": ControlCall(requests.OverviewRequest, self.summarize, reads=True),
            "memd/list": ControlCall(requests.ListRequest, self.list_memories, reads=True),
            "memd/session": ControlCall(requests.SessionRequest, self.read_session, reads=True),
            "memd/sessions": ControlCall(requests.PageRequest, self.list_sessions, reads=True),
            "memd/activity": ControlCall(requests.ActivityRequest, self.count_activity, reads=True),
            "memd/injected": ControlCall(requests.InjectedRequest, self.list_injections, reads=True),
            "memd/told": ControlCall(requests.ToldRequest, lambda asked, _: self._app.outcomes.report(asked.weeks), reads=True),
        }  # fmt: skip

    async def summarize(self, request: requests.OverviewRequest, caller: Caller) -> JsonObject:
        """Summarize a project in one view: the newest rules, decisions, open failures, changes, and counts."""
        ids = await self._find_project_ids(request, caller)
        now, limit = self._app.clock(), request.limit

        def read(tx: Connection) -> JsonObject:
            def list_newest(*kinds: Kind, pinned: bool = False) -> list[Summary]:
                wanted = Filter(project_ids=ids, kinds=kinds, now=now)
                choice = MemoryChoice(is_pinned=pinned)
                found = lists.newest_ids(tx, wanted, choice, NEWEST, limit)
                return uphold(tx, lists.read_in_order(tx, found))

            open_failures = session_context.open_failures(tx, ids, 0, now, limit)
            failed = sorted(open_failures, key=lambda one: -one.at)[:limit]
            span = lists.find_time_span(tx, ids)
            return {
                "lists": {
                    "pinned": list_newest(pinned=True),
                    "rules": list_newest(*RULE_KINDS),
                    "decisions": list_newest(Kind.DECISION),
                    "tasks": list_newest(Kind.TASK),
                    "failures": lists.read_in_order(tx, [one.id for one in failed]),
                    "latest": list_newest(),
                },
                "replaced": _read_replacements(tx, lists.latest_pairs(tx, ids, limit)),
                "sessions": lists.count_sessions(tx, ids),
                "contradictions": judgments.count_open_contradictions(tx, ids),
                "first_at": span and span[0],
                "last_at": span and span[1],
            }

        since = now - WEEK_MS
        kinds = await self._count(("kinds", ids), lambda tx: lists.count_kinds(tx, ids, since))
        found = await self._app.db.read(read)
        shown = [one for memories in found["lists"].values() for one in memories]
        marks = await self._read_marks(shown, ids)
        for name, memories in found.pop("lists").items():
            found[name] = [to_plain(one) | marks[one.id] for one in memories]
        return {**to_plain(found), "kinds": to_plain(kinds)}

    async def _read_marks(
        self, memories: Sequence[Summary], project_ids: Sequence[int]
    ) -> dict[int, JsonObject]:
        """Memory → what must be known before one relies on it, as a start and a search tell it."""
        numbers = [one.id for one in memories]
        against = await self._app.db.read(
            lambda tx: judgments.visible_contradictions(tx, numbers, project_ids)
        )
        told = await self._later.tell(self._app.db, memories, self._app.clock(), against)
        return {
            number: {"contradicted_by": against.get(number, ()), "said_since": told.get(number)}
            for number in numbers
        }

    async def list_memories(self, request: requests.ListRequest, caller: Caller) -> JsonObject:
        """A page of memories, newest first, and the cursor of the next page."""
        ids = await self._find_project_ids(request, caller)
        session = request.session and (await self._scopes.find_session(request.session, caller)).id
        wanted = Filter(
            project_ids=ids,
            kinds=tuple(request.kinds),
            session_id=session or None,
            source=request.source,
            since=request.since,
            until=request.until,
            include_superseded=request.include_superseded,
            now=None if request.include_superseded else self._app.clock(),
        )
        speakers = (one for one in Authority if one.speaker == request.speaker)
        choice = MemoryChoice(tuple(speakers), request.pinned)

        def read(tx: Connection) -> tuple[list[Summary], bool, dict[int, str]]:
            after = _read_cursor(request.after)
            found = lists.newest_ids(tx, wanted, choice, after, request.limit + 1)
            page = uphold(tx, lists.read_in_order(tx, found[: request.limit]))
            names = {one.id: one.name for one in projects.projects(tx)}
            return page, len(found) > request.limit, names

        page, has_more, names = await self._app.db.read(read)
        marks = await self._read_marks(page, ids)
        return {
            "memories": [
                to_plain(one) | {"project": names.get(one.project_id)} | marks[one.id]
                for one in page
            ],
            "next": [page[-1].at, page[-1].id] if has_more else None,
        }

    async def list_sessions(self, request: requests.PageRequest, caller: Caller) -> JsonObject:
        """A page of sessions, the one that began last first, and the cursor of the next page."""
        ids = await self._find_project_ids(request, caller)

        def read(tx: Connection) -> JsonObject:
            after = _read_cursor(request.after)
            rows = lists.newest_sessions(tx, ids, after, request.limit + 1)
            page = rows[: request.limit]
            names = {one.id: one.name for one in projects.projects(tx)}
            last = page[-1].session if len(rows) > request.limit else None
            return {
                "sessions": [
                    {
                        **(plain := to_plain(row)).pop("session"),
                        **plain,
                        "project": names.get(row.session.project_id),
                    }
                    for row in page
                ],
                "next": last and [last.started_at, last.id],
            }

        return await self._app.db.read(read)

    async def count_activity(self, request: requests.ActivityRequest, caller: Caller) -> JsonObject:
        """Count events, memories and replaced memories in each step of time."""
        ids = await self._find_project_ids(request, caller)
        grid = TimeGrid(request.since, request.step_ms, request.steps)
        key = "activity", ids, grid
        found = await self._count(key, lambda tx: lists.count_activity(tx, ids, grid))
        return to_plain(found)  # type: ignore[no-any-return]  # an object

    async def list_injections(
        self, request: requests.InjectedRequest, caller: Caller
    ) -> JsonObject:
        """List a session's injections and their outcomes."""
        session = await self._find_injected_session(request, caller)
        rows = await self._app.injector.list_injections(session.id)
        # A session that is still open is judged as far as it went, and judged again when it has ended.
        found = await self._app.db.read(partial(judge_session, session_id=session.id))
        described = []
        for row in rows:
            line = to_plain(row) | (asdict(found[row.number]) if row.number in found else {})
            line["id"] = line.pop("summary_id")
            line["tokens"] = page.estimate_line(row.kind, row.title)
            described.append(line)
        wanted = requests.ListRequest(project=ALL, session=session.uid, limit=requests.LIST_MAX)
        learned = len((await self.list_memories(wanted, caller))["memories"])
        texts = to_plain(await self._app.injector.list_texts(session.id))
        untold = await self._app.injector.list_untold(session.id)
        if not (rows or texts or untold):
            begun = await self._app.db.read(partial(events.first_start, session_id=session.id))
            untold = [_explain_start(*(begun or (session.started_at, "import")))]
        untold = to_plain(untold)
        told = {"injections": described, "texts": texts, "untold": untold, "learned": learned}
        return {"session": session.key, "title": session.title, **told}

    async def read_session(self, request: requests.SessionRequest, caller: Caller) -> JsonObject:
        """Read a session: what was said and done, what it was told, what it left, a page of events after the other."""
        session = await self._find_injected_session(request, caller)
        after = (request.after[0], request.after[1]) if request.after else (-1, 0)
        told = await self.list_injections(requests.InjectedRequest(session=session.uid), caller)
        wanted = requests.ListRequest(
            project=ALL, session=session.uid, include_superseded=True, limit=requests.LIST_MAX
        )
        left = (await self.list_memories(wanted, caller))["memories"]

        def read(tx: Connection) -> JsonObject:
            found = events.events_page(tx, session.id, READ_KINDS, after, request.limit + 1)
            shown = found[: request.limit]
            names = {one.id: one.name for one in projects.projects(tx)}
            last = events.last_answer(tx, session.id)
            return {
                **to_plain(session),
                "project": names.get(session.project_id),
                "counts": events.count_by_kind(tx, session.id),
                "files": events.changed_files(tx, session.id, _FILES_MAX),
                "events": list(describe_events(shown)),
                "outcome": next(describe_events([last] if last else []), None),
                "next": [shown[-1].at, shown[-1].id] if len(found) > request.limit else None,
            }

        answer = {**await self._app.db.read(read), "told": told["injections"], "left": left}
        if request.check_secrets:
            answer = await anyio.to_thread.run_sync(map_texts, answer, redact)
        return answer

    async def _find_injected_session(
        self, request: requests.InjectedRequest, caller: Caller
    ) -> Session:
        if request.session is not None:
            return await self._scopes.find_session(request.session, caller)
        directory = request.directory or caller.directory
        if directory is None:
            raise BadRequest("session: name one, or give a directory")
        here = await self._scopes.identify(directory)
        now = self._app.clock()

        def find_latest(tx: Connection) -> Session | None:
            project = projects.project_by_key(tx, here.key)
            sessions = projects.recent_sessions(tx, project.id, 1, now) if project else []
            return next(iter(sessions), None)

        found = await self._app.db.read(find_latest)
        if found is None:
            raise BadRequest(
                f"no session in {here.name} is known; go where an agent worked, or name one by its id"
            )
        return found

    async def _count(self, key: object, read: Callable[[Connection], T]) -> T:
        """Count, or return what was counted less than a minute ago if that took long: in a vast vault."""
        now, began = self._app.clock(), anyio.current_time()
        at, known = self._slow.get(key, (0, None))
        if known is not None and 0 <= now - at < _SLOW_KEPT_MS:
            return known  # type: ignore[no-any-return]  # what this key was counted as
        found = await self._app.db.read(read)
        self._slow.pop(key, None)
        if anyio.current_time() - began > _SLOW_S:
            self._slow[key] = now, found
        while len(self._slow) > _SLOW_MAX:
            del self._slow[next(iter(self._slow))]
        return found

    async def _find_project_ids(
        self, request: requests.ScopedRequest, caller: Caller
    ) -> tuple[int, ...]:
        """The projects in question, each by its id."""
        scope = await self._scopes.find_asked(request, caller)
        return await self._app.db.read(scope.list_ids)


_START_SOURCES = {
    "spool": "no daemon answered in time when it began: its start was kept in the spool",
    "import": "memd did not hear it begin: it was imported, or read from its transcript",
}


def _explain_start(at: int, source: str) -> UntoldMoment:
    """Explain by where its event came from why a start was told nothing of which no reason is on record."""
    unknown = "the reason is not on record: MEMD_INJECT=0, or an erasure since"
    return UntoldMoment("startup", at, _START_SOURCES.get(source, unknown))


def _read_cursor(given: list[int] | None) -> Cursor:
    return (given[0], given[1]) if given else NEWEST


def _read_replacements(tx: Connection, pairs: Sequence[tuple[int, int, str]]) -> list[JsonObject]:
    found = summaries.summaries_by_ids(tx, list({one for pair in pairs for one in pair[:2]}))
    return [
        {"newer": found[one], "older": found[other], "rule": rule} for one, other, rule in pairs
    ]


def make_past_reader(service: MemoryService) -> PastReader | None:
    """Make what has the writer read past sessions; None if the settings name none."""
    app = service.app
    if app.writer is None:
        return None

    async def remember(note: WrittenNote, stretch: Stretch) -> tuple[str, bool, str]:
        session = stretch.session
        fields = {
            **note.model_dump(), "where": list(note.where), "project": stretch.project_key,
            "session": session.key, "client": session.client, "at": stretch.last[0],
            "source": PAST_SOURCE, "speaker": "agent",
        }  # fmt: skip
        try:
            request = requests.parse(requests.RememberRequest, fields)
            (stored,) = await service.take_notes([request], Caller(), "user")
        except BadRequest as error:
            return "refused", False, error.message
        reason = stored.refused.reason if stored.refused and note.quote else ""
        return stored.outcome, stored.proof is not None, reason and f"not proved: {reason}"

    return PastReader(app.db, app.writer, remember, app.clock)


# ── A session's events ────────────────────────────────────────────────────────────────────────────

_CHARACTERS_MAX = 20_000
"""Of a longer text the beginning is told."""
_HEADLINE_MAX = 200
_SAID = {
    EventKind.PROMPT: ("prompt", "prompt"),
    EventKind.NOTIFICATION: ("prompt", "prompt"),
    EventKind.AGENT_TEXT: ("answer", "text"),
    EventKind.STOP: ("answer", "last_assistant_message"),
    EventKind.SUBAGENT_STOP: ("answer", "last_assistant_message"),
    EventKind.COMPACT_END: ("compaction", "compact_summary"),
}
"""Kind of event → who speaks, and the field with the words."""
_TOOLS = {
    EventKind.TOOL_RESULT: "done",
    EventKind.TOOL_FAILURE: "failed",
    EventKind.TOOL_REFUSED: "refused",
    EventKind.TOOL_CALL: "unanswered",
}
"""Kind of event → how the call of a tool ended."""
_HEADLINES = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "prompt", "question",
)  # fmt: skip
"""The arguments of a call that tell best what it does, the most telling first."""
_UNREAD = frozenset({"fingerprint", "structuredPatch", "originalFile"})
"""Fields of an answer that are for programs, or repeat what went in."""
READ_KINDS = (*_SAID, *_TOOLS)


def describe_events(events: Iterable[Event]) -> Iterator[JsonObject]:
    """Tell what people read of each event; a call whose result is among them, and an empty text, are left out."""
    found = list(events)
    answered = {_call_id(one) for one in found if one.kind is not EventKind.TOOL_CALL}
    for event in found:
        is_answered = event.kind is EventKind.TOOL_CALL and _call_id(event) in answered
        told = None if is_answered else _describe(event)
        if told is not None:
            yield {"id": event.id, "at": event.at, "agent": event.agent, **told}


def _describe(event: Event) -> JsonObject | None:
    if event.kind in _TOOLS:
        return _describe_call(event)
    speaker, field = _SAID[event.kind]
    text = strip_injected(text_at(event.payload, field)) or text_at(event.payload, "error")
    origin = find_prompt_origin(event.payload) if speaker == "prompt" else USER
    return {"what": speaker, "text": _cut(text), "origin": origin} if text.strip() else None


def _describe_call(event: Event) -> JsonObject:
    given, answer = event.payload.get("tool_input"), event.payload.get("tool_response")
    arguments: Mapping[str, Any] = given if isinstance(given, Mapping) else {"": given}
    named = (str(arguments[name]).strip() for name in _HEADLINES if arguments.get(name))
    output = text_at(event.payload, "error") or text_at(event.payload, "said")
    return {
        "what": "tool",
        "tool": event.tool or "a tool",
        "outcome": _TOOLS[event.kind],
        "headline": next(named, "").partition("\n")[0][:_HEADLINE_MAX],
        "input": _cut(_write_arguments(arguments)),
        "output": _cut(output or _write_answer(answer)),
        "file": text_at(event.payload, "tool_input", "file_path"),
    }


def _write_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call, each below its name; those of one line behind it."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else _to_json(value)
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}" if name else text)
    return "\n".join(lines)


def _write_answer(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping) and isinstance(answer.get("stdout"), str):
        return "\n".join(part for part in (answer["stdout"], text_at(answer, "stderr")) if part)
    if isinstance(answer, Mapping):
        answer = {name: value for name, value in answer.items() if name not in _UNREAD}
    return "" if answer is None else _to_json(answer)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _call_id(event: Event) -> str:
    return text_at(event.payload, "tool_use_id")


def _cut(text: str) -> str:
    left = len(text) - _CHARACTERS_MAX
    return text if left <= 0 else f"{text[:_CHARACTERS_MAX]}\n… {left:,} characters more"


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value in which each text, but no name of a field, is changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: map_texts(one, change) for name, one in value.items()}
    return [map_texts(one, change) for one in value] if isinstance(value, list | tuple) else value
