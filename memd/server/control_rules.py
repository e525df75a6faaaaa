"""The control calls about the user's rules: what a hook asks before a tool runs, and which rules are enforced."""

import anyio

from memd.belief.checks import Rule, list_rules, read_rules
from memd.capture.prepare import CaptureRequest
from memd.errors import BadRequest, UnknownId
from memd.injection.page import estimate_tokens
from memd.server import requests
from memd.server.json_format import JsonObject
from memd.server.scope import Caller
from memd.server.service import MemoryService
from memd.store import projects, summaries
from memd.store.database import Connection
from memd.store.pages import reviews as store


class RuleControl:
    """Handles the control calls about rules."""

    def __init__(self, service: MemoryService) -> None:
        self._service, self._app = service, service.app

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

    async def list_checks(self, request: requests.ScopedRequest, caller: Caller) -> JsonObject:
        """The rules with a check that hold in a project, or in all."""
        scope = await self._service.scopes.find_scope(
            request.directory or caller.directory, request.project
        )

        def read(tx: Connection) -> list[Rule]:
            ids = scope.project_ids
            every = ids if ids is not None else [one.id for one in projects.projects(tx)]
            return list_rules(tx, every, self._app.clock())

        return {"rules": [describe_rule(one) for one in await self._app.db.read(read)]}

    async def enforce(self, request: requests.EnforceRequest, _: Caller) -> JsonObject:
        """Refuse what breaks a rule from now on, or only tell it."""
        now = self._app.clock()

        def write(tx: Connection) -> JsonObject:
            one = summaries.get_summary(tx, request.id)
            if one is None:
                raise UnknownId(f"there is no memory #{request.id}")
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
            changed = store.set_enforced(tx, one.id, now, is_on=not request.off)
            after = next(iter(read_rules(tx, [one])), None)
            return {
                "id": one.id,
                "changed": changed,
                **(describe_rule(after) if after else {"enforced": False}),
            }

        done = await self._app.db.write(write)
        self._app.guard.nudge()
        return done


def describe_rule(rule: Rule) -> JsonObject:
    """A rule with its checks, as control calls show it."""
    return {
        "id": rule.summary.id,
        "title": rule.summary.title,
        "authority": rule.summary.authority.description,
        "checks": [str(one) for one in rule.checks],
        "proposed": [str(one) for one in rule.proposed],
        "enforced": rule.is_enforced,
    }
