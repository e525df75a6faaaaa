"""What a request to forget means: which memories, sessions, projects and times. And the scrub's call.

Forgetting a project means that one alone, not what holds everywhere. Not here: what goes with it
(consolidate/forgetting.py).
"""

from dataclasses import dataclass
from typing import Any

from memd.consolidate.forgetting import Selection
from memd.errors import BadRequest
from memd.models import Project
from memd.serve import full, scope, when
from memd.serve.app import App
from memd.serve.requests import ForgetRequest, ScrubRequest
from memd.serve.scope import Caller
from memd.store import projects
from memd.store.selecting import Bounds

_OTHERS = ("query", "session", "since", "until")


async def selection(app: App, asked: ForgetRequest, caller: Caller) -> Selection:
    """What is meant. BadRequest if that is nothing, everything, or two things at once."""
    given = [name for name in _OTHERS if getattr(asked, name) is not None]
    if asked.ids:
        if given:
            raise BadRequest(f"{given[0]}: either ids, or what they have in common")
        return Selection(ids=tuple(asked.ids))
    if not given and ("project" not in asked.model_fields_set or asked.project == scope.ALL):
        raise BadRequest("say what to forget: ids, a query, a session, a project or a time")
    words = tuple((asked.query or "").split())
    if asked.query is not None and not words:
        raise BadRequest("query: empty; say what stands in the memories that shall go")
    if not words and not asked.dry_run and asked.token is None and caller.session is not None:
        raise BadRequest(
            "token: pass the one that the dry run returned, once the user has seen it"
        )
    now = app.clock()
    return Selection(
        words=words,
        bounds=Bounds(
            await _project(app, asked, caller),
            await _session(app, asked, caller),
            None if asked.since is None else when.since(asked.since, now),
            None if asked.until is None else when.until(asked.until, now),
        ),
    )


async def _session(app: App, asked: ForgetRequest, caller: Caller) -> int | None:
    if asked.session is None:
        return None
    return (await scope.session(app.db, asked.session, caller)).id


async def _project(app: App, asked: ForgetRequest, caller: Caller) -> int | None:
    """The one project; None for every one, and where a session is named without a project."""
    is_said = "project" in asked.model_fields_set
    directory = asked.directory or caller.directory
    if asked.project == scope.ALL or (asked.session is not None and not is_said):
        return None
    if asked.project != scope.CURRENT:
        return (await scope.one_project(app.db, asked.project, app.overrides)).id
    if directory is None:
        raise BadRequest("project: say which; this call comes from no directory")
    here = await scope.resolve(directory, app.overrides)
    found: Project | None = await app.db.read(lambda tx: projects.by_key(tx, here.key))
    if found is None:
        raise BadRequest(
            f"project: nothing is known of {here.name}; say another, or {scope.ALL} for every one"
        )
    return found.id


@dataclass(frozen=True, slots=True)
class Scrubs:
    """The handler over one App."""

    app: App

    async def scrub(self, asked: ScrubRequest, _: Caller) -> Any:
        """Take a pattern, or with `secrets` what is a secret by now, out of all that was kept."""
        if (asked.pattern is None) is not asked.secrets:
            raise BadRequest("pattern: give a pattern, or secrets: true")
        done = await self.app.curator.scrub(asked.pattern, dry_run=asked.dry_run)
        if not asked.dry_run:
            await self.app.indexer.settle()
        return full.plain(done)
