"""Keep the user's rules: tell an agent of a call that breaks one, once a session and rule, or refuse it where the user wants that.

Before a tool runs, the client's hook asks only about calls that have the words of a rule (`memd.injection.hook_watch`); the guard
writes those words for each live session. At the end of a turn it looks whether what has to be run before was run
since the last edit. A turn that it continued is not continued again, so nothing loops. Whatever fails or is late lets the
call pass: a rule that is not told is worth less than an agent that is held up.
"""

import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from memd import log
from memd.belief.checked_rules import Rule, list_rules
from memd.belief.checks import RuleCheck
from memd.belief.standing import OF_FILE, PREFIX, find_branch, find_other_scope
from memd.capture.project import read_branch
from memd.errors import UNEXPECTED_ERRORS, MemdError
from memd.injection import hook_watch, spoken
from memd.injection.breaches import ToolCall, breaks, list_watched_words, needs, runs
from memd.injection.injector import Injector
from memd.injection.moments import InjectedContext, InjectionCandidate, InjectionMoment
from memd.injection.page import clean_text
from memd.machine_text import OWN_REFUSAL
from memd.models import GLOBAL_PROJECT, Authority, EventKind, NewEvent, Session
from memd.store import events, projects, reviews, usage
from memd.store.database import Connection, Database
from memd.text import one_line, unique
from memd.time_expressions import format_time
from memd.wakeup import AutoResetEvent

Answer = TypeVar("Answer")
_GATHER_S = 0.2
"""Seconds in which several changes of rules are gathered; a session that begins does not wait for it."""
ANSWER_S = 0.2
"""Seconds in which a rule is told; then the call goes on."""
SESSIONS_MAX = 32
"""Live sessions whose words are kept: each costs a look at the rules whenever a memory is written."""
_CALLS_MAX = 400
"""Tool calls of a session that are looked at for the last edit and the last run."""
_RULE_CHARACTERS = 200
_OLD_TEXT_BYTES = 1_048_576
_OTHER_SCOPES = ("tests", "for-now")


@dataclass(frozen=True, slots=True)
class _Place:
    """A live session, its project, and its rules there."""

    session: Session
    roots: tuple[str, ...]
    rules: tuple[Rule, ...]
    told: frozenset[int]
    """The rules that were told in this session because they were about to be broken."""


@dataclass(eq=False)
class RuleGuard:
    """Answers before a tool runs and when a turn ends, and keeps the words that the hooks look for."""

    db: Database
    injector: Injector
    clock: Callable[[], int]
    socket: str
    is_on: bool = True
    name: str = "guard"
    _live: dict[tuple[str, str], None] = field(default_factory=dict)
    _told: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    _changed: AutoResetEvent = field(default_factory=AutoResetEvent)
    _has_new_session: bool = False
    _counts: dict[str, int] = field(default_factory=lambda: {"told": 0, "refused": 0})

    def status(self) -> dict[str, object]:
        """Return how many rules were shown and how many calls refused since the start."""
        return dict(self._counts)

    async def run(self) -> None:
        """Write the words of live sessions whenever something changed, until cancelled."""
        await anyio.to_thread.run_sync(hook_watch.drop_old, self.socket, self.clock() / 1000)
        while True:
            await self._changed.wait()
            if not self._has_new_session:
                await anyio.sleep(_GATHER_S)
            self._has_new_session = False
            try:
                await self._write_words()
            except (MemdError, OSError) as error:
                log.get(self.name).warning("rules_not_watched", error=str(error))

    def notice(self, event: NewEvent) -> None:
        """Follow a session from its first event to its end."""
        key = (event.session.client, event.session.key)
        if event.kind is EventKind.SESSION_END:
            self._live.pop(key, None)
            self._told.pop(key, None)
            hook_watch.write_watch(self.socket, event.session.key, ())
            return
        is_new = key not in self._live
        self._live.pop(key, None)
        self._live[key] = None
        while len(self._live) > SESSIONS_MAX:
            del self._live[next(iter(self._live))]
        if is_new:
            self._has_new_session = True
            self._changed.set()

    def nudge(self) -> None:
        """Look at the rules again: a memory was written, kept or forgotten."""
        if self._live:
            self._changed.set()

    async def _write_words(self) -> None:
        """Write the words of each live session; the rules of a project are read once for all its sessions."""
        live = list(self._live)

        def read(tx: Connection) -> list[tuple[str, _Place | None]]:
            known: dict[int, list[Rule]] = {}
            return [(key, self._read_place(tx, client, key, known)) for client, key in live]

        def write(places: Sequence[tuple[str, _Place | None]]) -> None:
            for key, place in places:
                checks = (check for rule in (place.rules if place else ()) for check in rule.checks)
                rows = tuple(row for check in checks for row in list_watched_words(check))
                hook_watch.write_watch(self.socket, key, rows)

        await anyio.to_thread.run_sync(write, await self.db.read(read))

    async def before_tool(self, client: str, payload: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what the hook prints before a tool runs; None to let it pass in silence."""
        return await self._answer(self._look_at_call(client, payload))

    async def at_end(self, moment: InjectionMoment) -> str | None:
        """Return the message for the agent at the end of a turn: a command that has to be run before it is done."""
        return await self._answer(self._look_at_end(moment.client, moment.session))

    async def _answer(self, looking: Awaitable[Answer]) -> Answer | None:
        try:
            with anyio.move_on_after(ANSWER_S):
                return await looking
        except (MemdError, *UNEXPECTED_ERRORS):
            log.get(self.name).exception("rule_not_told")
        return None

    async def _look_at_call(self, client: str, payload: Mapping[str, Any]) -> dict[str, Any] | None:
        key, tool = payload.get("session_id"), payload.get("tool_name")
        given = payload.get("tool_input")
        if not isinstance(key, str) or not isinstance(tool, str) or not isinstance(given, dict):
            return None
        place = await self.db.read(lambda tx: self._read_place(tx, client, key))
        if place is None or not place.rules:
            return None
        cwd = payload.get("cwd")
        directory = cwd if isinstance(cwd, str) else place.roots[0]
        call = ToolCall(tool, given, directory, place.roots)
        # A long line takes a while to read: in a thread, where it holds nobody else up.
        broken, needed = await anyio.to_thread.run_sync(_find_broken, call, place.rules)
        broken += [
            (rule, check) for rule, check in needed if await self._is_due(place, rule, check)
        ]
        refused = [(rule, check) for rule, check in broken if rule.is_enforced]
        told = [
            (rule, check)
            for rule, check in broken
            if self._may_tell(client, key, place, rule) and not await self._is_taken_back(rule)
        ]
        if not (shown := refused or told):
            return None
        text = _write_message(shown, is_refused=bool(refused), is_end=False)
        await self._record_shown(client, place, shown, text, "refused" if refused else "told")
        self.injector.note_told(_moment(client, key), text)
        if refused:
            decision = {"permissionDecision": "deny", "permissionDecisionReason": text}
        else:
            decision = {"additionalContext": text}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    async def _look_at_end(self, client: str, key: str) -> str | None:
        place = await self.db.read(lambda tx: self._read_place(tx, client, key))
        if place is None:
            return None
        due = [
            (rule, check)
            for rule in place.rules
            if rule.is_enforced
            or (self._may_tell(client, key, place, rule) and not await self._is_taken_back(rule))
            for check in rule.checks
            if check.form == "before"
            and check.other == "done"
            and await self._is_due(place, rule, check)
        ]
        if not due:
            return None
        is_refused = any(rule.is_enforced for rule, _ in due)
        text = _write_message(due, is_refused=is_refused, is_end=True)
        await self._record_shown(client, place, due, text, "refused" if is_refused else "told")
        return text

    async def _is_due(self, place: _Place, rule: Rule, check: RuleCheck) -> bool:
        """Return whether something was edited since the command of a `before` last ran."""
        calls = await self.db.read(lambda tx: events.latest_calls(tx, place.session.id, _CALLS_MAX))
        for one in calls:
            given = {"command": one.command, "file_path": one.file}
            call = ToolCall(one.tool, given, one.directory or place.roots[0], place.roots)
            if runs(check, call):
                return False
            is_edit = one.is_success and _is_inside(call.edited, place.roots)
            if is_edit and _holds_for(rule, check, call):
                return True
        return False

    async def _is_taken_back(self, rule: Rule) -> bool:
        """Return whether the user likely took a rule back with his next prompt: then a start tells both, and no call is held against it."""
        one = rule.summary
        if one.pinned_at is not None or one.authority is not Authority.USER_PROMPT:
            return False
        return await self.db.read(
            lambda tx: (
                reviews.read_stated_at(tx, one.id, one.at) == one.at
                and spoken.is_taken_back(tx, one.title, one.session_id, one.at)
            )
        )

    def _may_tell(self, client: str, key: str, place: _Place, rule: Rule) -> bool:
        """Return whether a rule that is not enforced may be shown: once a session."""
        return rule.summary.id not in place.told | self._told.get((client, key), set())

    async def _record_shown(
        self,
        client: str,
        place: _Place,
        shown: list[tuple[Rule, RuleCheck]],
        text: str,
        outcome: str,
    ) -> None:
        self._counts[outcome] += len(shown)
        self._told.setdefault((client, place.session.key), set()).update(
            rule.summary.id for rule, _ in shown
        )
        while len(self._told) > SESSIONS_MAX:
            del self._told[next(iter(self._told))]
        candidates = tuple(
            InjectionCandidate(one.id, one.kind, one.title, one.at, "", True, f"{outcome}: {check}")
            for one, check in {rule.summary.id: (rule.summary, check) for rule, check in shown}.values()
        )  # fmt: skip
        context = InjectedContext(outcome, text, "", candidates)
        await self.injector.note_shown(_moment(client, place.session.key), context)

    def _read_place(
        self, tx: Connection, client: str, key: str, known: dict[int, list[Rule]] | None = None
    ) -> _Place | None:
        """Return a session with its rules; `known` are those of projects that were read before."""
        session = projects.session_of_client(tx, client, key)
        project = session and projects.project(tx, session.project_id)
        if session is None or project is None:
            return None
        if not self.is_on or not projects.effective_switch(tx, project.key, key).recalls:
            return None
        known = {} if known is None else known
        if project.id not in known:
            everywhere = projects.project_by_key(tx, GLOBAL_PROJECT)
            ids = [project.id, *([everywhere.id] if everywhere else [])]
            known[project.id] = [one for one in list_rules(tx, ids, self.clock()) if one.checks]
        rules = tuple(rule for rule in known[project.id] if _is_for(rule, session))
        if not rules:
            return None
        roots = unique(one for one in (session.directory, project.key) if one and one[0] == "/")
        told = frozenset(
            one.summary_id
            for one in usage.session_injections(tx, session.id)
            if one.moment == "rule"
        )
        return _Place(session, roots or ("/",), rules, told)


def _moment(client: str, key: str) -> InjectionMoment:
    return InjectionMoment(client, key, "rule", "PreToolUse")


def _is_for(rule: Rule, session: Session) -> bool:
    """Return whether a rule holds in a session: not one that was said for another session, for tests, or another branch."""
    tags = rule.summary.tags
    is_bound = session.directory is not None and find_branch(tags) is not None
    branch = read_branch(session.directory or "") if is_bound else None
    scopes = [tag.removeprefix(PREFIX) for tag in tags if tag.startswith(PREFIX)]
    if any(one in _OTHER_SCOPES for one in scopes):
        return False
    return find_other_scope(tags, rule.summary.session_id, session.id, branch) is None


def _holds_for(rule: Rule, check: RuleCheck, call: ToolCall) -> bool:
    """Return whether a rule for some files holds for a call: one that edits such a file."""
    places = [tag.removeprefix(OF_FILE) for tag in rule.summary.tags if tag.startswith(OF_FILE)]
    if not places or check.form == "path":
        return True
    return bool(call.edited) and any(breaks(RuleCheck("path", place), call) for place in places)


def _is_inside(path: str, roots: tuple[str, ...]) -> bool:
    full = posixpath.normpath(posixpath.join(roots[0], path))
    return bool(path) and any(full.startswith(f"{root.rstrip('/')}/") for root in roots)


_Broken = list[tuple[Rule, RuleCheck]]


def _find_broken(call: ToolCall, rules: tuple[Rule, ...]) -> tuple[_Broken, _Broken]:
    """The rules that a call breaks, and those that need a command before it."""
    call = _complete_call(call)
    checks = [(rule, check) for rule in rules for check in rule.checks]
    return (
        [(rule, one) for rule, one in checks if breaks(one, call) and _holds_for(rule, one, call)],
        [(rule, one) for rule, one in checks if needs(one, call)],
    )


def _complete_call(call: ToolCall) -> ToolCall:
    """Complete a call from the disk: the text that a `Write` replaces, and the names in the project's root."""
    tops: set[str] = set()
    for root in call.roots:
        try:
            tops.update(one.name for one in Path(root).iterdir())
        except OSError:
            continue
    previous = ""
    if call.tool == "Write" and call.edited:
        file = Path(call.directory, call.edited)
        try:
            if file.is_file() and file.stat().st_size <= _OLD_TEXT_BYTES:
                previous = file.read_text("utf-8", "replace")
        except (OSError, ValueError):
            previous = ""
    return replace(call, previous=previous, tops=frozenset(tops))


def _write_message(shown: list[tuple[Rule, RuleCheck]], *, is_refused: bool, is_end: bool) -> str:
    """The rules in words, as data: what the user said, when, and what the call does.

    Claude Code hands a line that refuses nothing to the model together with the call's result: it has run by then.
    """
    lines = []
    for rule, check in shown:
        one = rule.summary
        said = f"“{clean_text(one_line(one.title, _RULE_CHARACTERS), _RULE_CHARACTERS)}”"
        what = f"the check: {check}"
        if check.form == "before":
            what = f"`{check.what}` was not run since the last edit"
        lines.append(f"#{one.id} ({format_time(one.at).partition('T')[0]}): {said} ({what})")
    if is_refused and not is_end:
        head = f"{OWN_REFUSAL} because the user has this rule enforced:"
    elif is_end:
        head = "memd: before this is done, a rule of the user's:"
    else:
        head = "memd: this call breaks a rule of the user's:"
    tail = ""
    if not is_refused:
        tail = " Told once in this session; if it holds here, mend or undo what broke it; if not, go on."
    return f"{head} {'; '.join(lines)}.{tail}"
