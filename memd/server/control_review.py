"""The control calls by which the user decides: the inbox of what was learned, undo, and which rules are enforced.

A hook asks before a tool runs whether it breaks a rule.
"""

from collections.abc import Iterable
from typing import Any

import anyio

from memd.belief import rejections
from memd.belief.checked_rules import Rule, describe_checks, find_later_rule, list_rules, read_rules
from memd.belief.claims import statement_text
from memd.belief.notes import split_note
from memd.belief.standing import describe_scope
from memd.belief.supersede import find_equal
from memd.capture.prepare import CaptureRequest
from memd.consolidate import judgments as judging
from memd.consolidate import runs
from memd.consolidate.forget import require_memory
from memd.consolidate.judgments import NewJudgment, explain_refusal
from memd.consolidate.remember import NewMemory
from memd.distill.proving import uphold
from memd.errors import BadRequest
from memd.injection.page import estimate_tokens
from memd.models import GLOBAL_PROJECT, Authority, Kind, Project, Stance, Summary
from memd.recall.provenance import describe_making
from memd.server import requests
from memd.server.jsonrpc import JsonObject, to_plain
from memd.server.scope import ALL, Caller, ControlCall
from memd.server.service import MemoryService
from memd.store import events, judgments, links, projects, reviews, summaries
from memd.store.database import Connection
from memd.store.reviews import Review

GUARD = "memd/guard"
_QUOTES_MAX = 3
_CHANGES_MAX = 10
_KEPT = "it was kept in a review"
_TASTES = frozenset({Kind.PREFERENCE, Kind.INSTRUCTION, Kind.DECISION})
"""Kinds that may hold in every project, if they were noted in two."""
_PROJECTS_MAX = 50
"""Other projects that are asked whether the same was noted there."""


class ReviewControl:
    """Handles the control calls of the inbox and of rules."""

    def __init__(self, service: MemoryService) -> None:
        self._service, self._app = service, service.app

    def list_calls(self) -> dict[str, ControlCall]:
        """The calls about what was learned, and about rules."""
        return {
            GUARD: ControlCall(requests.CaptureEventRequest, self.before_tool),
            "memd/rules": ControlCall(requests.ScopedRequest, self.list_checks, name="rules", reads=True),
            "memd/enforce": ControlCall(
                requests.EnforceRequest, self.enforce,
                command=lambda asked: ["enforce", str(asked.id), *(["--off"] if asked.off else [])],
            ),
            "memd/review/list": ControlCall(requests.ReviewListRequest, self.list_reviews, reads=True, project=ALL),
            "memd/review": ControlCall(
                requests.ReviewRequest, self.review,
                command=lambda asked: ["review", f"--{asked.verdict}", *map(str, asked.ids)],
                name="reviewed", settles=True,
            ),
            "memd/undo": ControlCall(
                requests.UndoRequest, self.undo,
                command=lambda asked: None if asked.listed else ["undo", *filter(None, [asked.what])], settles=True,
            ),
        }  # fmt: skip

    # ── Rules ────────────────────────────────────────────────────────────────────────────────────

    async def before_tool(
        self, request: requests.CaptureEventRequest, caller: Caller
    ) -> JsonObject:
        """Answer a hook before a tool runs; nothing is stored of the call, whose result will tell it."""
        sent = CaptureRequest(
            client=request.client, payload=request.payload, event=request.event,
            directory=request.directory or caller.directory,
        ).translate()  # fmt: skip
        if not isinstance(sent.payload, dict):
            return {}
        started = anyio.current_time()
        output = await self._app.guard.before_tool(sent.client, sent.payload)
        waited_s = anyio.current_time() - started
        self._app.outcomes.costs.add("rules", estimate_tokens(str(output or "")), waited_s)
        return {"output": output} if output else {}

    async def list_checks(
        self, request: requests.ScopedRequest, caller: Caller
    ) -> list[JsonObject]:
        """The rules with a check that hold in a project, or in all."""
        scope, now = await self._service.scopes.find_asked(request, caller), self._app.clock()
        found = await self._app.db.read(lambda tx: list_rules(tx, scope.list_ids(tx), now))
        return [_show_rule(one) for one in found]

    async def enforce(self, request: requests.EnforceRequest, _: Caller) -> JsonObject:
        """Refuse what breaks a rule from now on, or only tell it."""
        now = self._app.clock()

        def write(tx: Connection) -> JsonObject:
            one = require_memory(tx, request.id)
            found = next(iter(read_rules(tx, [one])), None)
            if not request.off and (found is None or not found.checks):
                waits = found and "; ".join(map(str, found.proposed))
                raise BadRequest(
                    f"#{one.id} has a check that waits for you ({waits}): `memd review --keep {one.id}` first"
                    if waits
                    else f"#{one.id} has nothing that can be checked: a rule that names a command, flag, path or code"
                )
            if not request.off and (one.superseded_by or one.archived_at or one.rejected_at):
                raise BadRequest(f"#{one.id} holds no longer; see `memd why {one.id}`")
            if not request.off and (later := find_later_rule(tx, one, now)) is not None:
                raise BadRequest(f"#{later} says what holds of #{one.id} since")
            changed = reviews.set_enforced(tx, one.id, now, is_on=not request.off)
            after = next(iter(read_rules(tx, [one])), None)
            shown = _show_rule(after) if after else {"enforced": False}
            return {"id": one.id, "changed": changed, **shown}

        done = await self._app.db.write(write)
        self._app.guard.nudge()
        return done

    # ── The inbox ────────────────────────────────────────────────────────────────────────────────

    async def list_reviews(self, request: requests.ReviewListRequest, caller: Caller) -> JsonObject:
        """Return what waits, by sessions, the newest first; or what the user rejected, the latest first.

        Of all projects, that of the directory comes first.
        """
        scope, now = await self._service.scopes.find_asked(request, caller), self._app.clock()
        directory = request.directory or caller.directory
        here = await self._service.scopes.identify(directory) if directory else None

        def read(tx: Connection) -> tuple[list[Summary], int]:
            if request.rejected:
                found = rejections.list_rejected(tx, scope.project_ids)
                return found[: request.limit], len(found)
            own = projects.project_by_key(tx, here.key) if here else None
            ids = reviews.waiting_ids(
                tx, scope.project_ids, now, request.limit, first=own.id if own else 0
            )
            by_id = summaries.summaries_by_ids(tx, ids)
            found = [by_id[number] for number in ids]
            return found, reviews.count_waiting(tx, scope.project_ids, now)

        found, count = await self._app.db.read(read)
        told = {} if request.rejected else await self._service.later.tell(self._app.db, found, now)
        described = await self._app.db.read(lambda tx: _describe_all(tx, found, now))
        memories = [one | {"said_since": told.get(one["id"])} for one in described]
        return {"memories": memories, "count": count}

    async def review(self, request: requests.ReviewRequest, _: Caller) -> list[JsonObject]:
        """Say something of memories, or take it back; what became of each."""
        now, verdict = self._app.clock(), request.verdict
        if verdict == "everywhere":
            done = [await self._hold_everywhere(number, now) for number in request.ids]
        else:
            done = await self._app.db.write(
                lambda tx: [_apply_verdict(tx, number, verdict, now) for number in request.ids]
            )
        self._app.curator.on_written()
        return done

    async def undo(self, request: requests.UndoRequest, caller: Caller) -> JsonObject:
        """Take back the last change of any kind, or the named one; or list the last, with what undoing each does."""
        directory = request.directory or caller.directory
        scope = await self._service.scopes.find_scope(directory, request.project)
        if request.listed:
            listed = await self._app.db.read(
                lambda tx: runs.list_changes(tx, _CHANGES_MAX, scope.project_ids)
            )
            return {"changes": listed}
        now, what = self._app.clock(), request.what
        undone = await self._app.db.write(
            lambda tx: runs.undo_change(tx, what, now, scope.project_ids)
        )
        self._app.curator.on_written()
        self._app.guard.nudge()
        return {"undone": undone}

    async def _hold_everywhere(self, number: int, now: int) -> JsonObject:
        """Let a taste that was noted in two projects hold in all; what says it in each is hidden by it."""

        def find(tx: Connection) -> tuple[Summary, list[Summary]]:
            one = require_memory(tx, number)
            return one, _find_elsewhere(tx, one, _list_projects(tx))

        one, others = await self._app.db.read(find)
        if not others:
            raise BadRequest(
                f"#{number} was noted in one project only; `memd remember --project global` says it everywhere"
            )
        replaced = (one.id, *(other.id for other in others))
        memory = NewMemory(
            text=one.body, title=one.title, kind=one.kind, tags=one.tags, source="user",
            authority=Authority.USER_HAND, replaces=replaced, quality=one.quality,
        )  # fmt: skip
        stored = await self._app.curator.remember(memory)

        def note(tx: Connection) -> None:
            for each in replaced:
                reviews.put_review(tx, Review(each, "everywhere", now, stored.id))

        await self._app.db.write(note)
        done = {"global": stored.id, "hidden": list(replaced)}
        return {"id": number, "verdict": "everywhere", **done}


def _apply_verdict(tx: Connection, number: int, verdict: str, now: int) -> JsonObject:
    one = require_memory(tx, number)
    if verdict == "undo":
        said = rejections.take_back(tx, number)
        _open_again(tx, number, now)
        return {"id": said.summary_id, "verdict": "undo", "was": said.verdict}
    if verdict == "reject":
        hidden = list(rejections.reject(tx, number, now))
        return {"id": number, "verdict": "rejected", "hidden": hidden}
    if one.rejected_at is not None:
        raise BadRequest(
            f"#{number} was rejected; `memd review --undo {number}` takes that back first"
        )
    word: reviews.Verdict = "kept" if verdict == "keep" else "seen"
    reviews.put_review(tx, Review(number, word, now))
    hidden = _settle(tx, one, now) if word == "kept" else []
    return {"id": number, "verdict": word, "hidden": hidden}


def _settle(tx: Connection, one: Summary, now: int) -> list[int]:
    """Let a memory that the user keeps replace what contradicts it, but no later word of his, and nothing that he kept, too.

    Return what is hidden by it.
    """
    _open_again(tx, one.id, now)
    against = judgments.visible_contradictions(tx, [one.id]).get(one.id, ())
    hidden: list[int] = []
    for other in uphold(tx, summaries.summaries_by_ids(tx, against).values()):
        is_lesser = other.at <= one.at or other.authority < Authority.USER_TOLD
        is_open = judgments.stance_between(tx, one.id, other.id) is None
        has_stood = reviews.read_stated_at(tx, other.id, 0) > one.at
        if (
            is_open
            and is_lesser
            and not has_stood
            and not explain_refusal(one, other, Stance.SUPERSEDES, 0)
        ):
            ruling = NewJudgment(one.id, other.id, Stance.SUPERSEDES, _KEPT, "user")
            hidden += judging.apply_judgment(tx, ruling, now).hidden
    return hidden


def _open_again(tx: Connection, number: int, now: int) -> None:
    """Undo what keeping a memory, or what contradicts it, settled."""
    for one in judgments.judgments_of(tx, number):
        if one.reason == _KEPT and one.undone_at is None:
            judging.undo_judgment(tx, one.newer_id, one.older_id, Authority.USER_HAND, now)


# ── What is shown of each ──────────────────────────────────────────────────────────────────────


def _describe_all(tx: Connection, found: list[Summary], now: int) -> list[JsonObject]:
    names = {one.id: one for one in projects.projects(tx)}
    proofs = {one.id: _list_proof(tx, one) for one in found}
    # A client that does not say which session it is in proves its notes by one.
    places = {
        one.id: one.session_id or next((each["session"] for each in proofs[one.id]), 0)
        for one in found
    }
    sessions = projects.sessions(tx, set(places.values()))
    repeats = reviews.count_repeats(tx, [one.id for one in found])
    doubts = reviews.describe_doubts(tx, found, now)
    others = _list_projects(tx)
    described = []
    for one in found:
        note, session = split_note(one.body), sessions.get(places[one.id])
        is_quote = any(note.text == f"User: “{each['quote']}”" for each in proofs[one.id])
        described.append(
            {
                **to_plain(one),
                "text": "" if is_quote else note.text,  # its proof shows it
                "why": note.why,
                "about": note.about,
                "quoted": note.quoted,
                "scope": describe_scope(one.tags),
                "because": describe_making(one, session),
                "checks": describe_checks(tx, one),
                "proof": proofs[one.id],
                "project": names[one.project_id].name,
                "session": session.key if session else None,
                "session_title": session.title if session else None,
                "elsewhere_too": [
                    {"id": other.id, "project": names[other.project_id].name}
                    for other in _find_elsewhere(tx, one, others)
                ],
                "repeats": repeats.get(one.id, 0),
                "doubt": doubts.get(one.id, ""),
            }
        )
    return described


def _list_proof(tx: Connection, one: Summary) -> list[JsonObject]:
    """The words that a memory rests on: the quote, in which event, when, and in whose mouth."""
    quotes = [(number, quote) for number, quote in links.sources_of(tx, one.id) if quote]
    found = events.events_by_ids(tx, [number for number, _ in quotes])
    proof: list[JsonObject] = [
        {
            "quote": quote,
            "event": number,
            "at": found[number].at,
            "kind": found[number].kind.value,
            "session": found[number].session_id,
        }
        for number, quote in quotes
        if number in found
    ]
    said = split_note(one.body).said
    elsewhere = {"quote": said, "event": None, "at": one.at, "kind": "elsewhere", "session": 0}
    return proof[:_QUOTES_MAX] or ([elsewhere] if said else [])


def _list_projects(tx: Connection) -> list[Project]:
    return [one for one in projects.projects(tx) if one.key != GLOBAL_PROJECT][-_PROJECTS_MAX:]


def _find_elsewhere(tx: Connection, one: Summary, places: Iterable[Project]) -> list[Summary]:
    """The same taste as it was noted in other projects, wherever it holds in all of each."""
    own: Any = {place.id for place in places}
    if one.kind not in _TASTES or one.project_id not in own or describe_scope(one.tags):
        return []
    text = statement_text(one.title, one.body)
    return [
        other
        for other in find_equal(tx, sorted(own - {one.project_id}), one.kind, "", text)
        if other.archived_at is None and not describe_scope(other.tags)
    ]


def _show_rule(rule: Rule) -> JsonObject:
    """A rule with its checks, as control calls show it."""
    return {
        "id": rule.summary.id,
        "title": rule.summary.title,
        "authority": rule.summary.authority.description,
        "checks": [str(one) for one in rule.checks],
        "proposed": [str(one) for one in rule.proposed],
        "enforced": rule.is_enforced,
    }
