"""memd among a client's MCP servers: the same few lines for every client. Not here: which file."""

from collections.abc import Mapping
from typing import Any

from memd.errors import BadRequest
from memd.installers import hooks
from memd.installers.plan import CARRIED, Place

NAME = "memd"
_SERVERS = "mcpServers"
_DECIDED = {"MEMD_CLIENT", *CARRIED}
"""What in a server's environment is for an installation to say."""

Servers = Mapping[str, Any]


def entry(place: Place, client: str) -> dict[str, Any]:
    """Return how a client starts `memd mcp`: absolute paths, because a desktop's PATH is short.

    `-P`, because a client works in directories that we do not know: no module of theirs is ours.
    """
    return {
        "command": place.python,
        "args": ["-P", "-m", "memd", "mcp"],
        "env": {"MEMD_CLIENT": client, **place.carried},
    }


def merge(settings: Servers, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with our server. Raises BadRequest if another one has its name."""
    listed = _listed(settings)
    if NAME in listed and not is_ours(listed[NAME]):
        raise BadRequest(
            f"it has an MCP server `{NAME}` that is not this one; rename that or take it out first"
        )
    return {**settings, _SERVERS: {**listed, NAME: _over(listed.get(NAME, {}), ours)}}


def unmerge(settings: Servers) -> dict[str, Any]:
    """Return settings without our server, and without the list if that leaves it empty."""
    listed = _listed(settings)
    if NAME not in listed or not is_ours(listed[NAME]):
        return dict(settings)
    left = {name: server for name, server in listed.items() if name != NAME}
    rest = {name: value for name, value in settings.items() if name != _SERVERS}
    return {**settings, _SERVERS: left} if left else rest


def is_ours(server: Any) -> bool:
    """Whether a server runs `memd mcp`, however memd is started."""
    said = hooks.words(server) if isinstance(server, Mapping) else []
    return hooks.runs(said, "mcp")


def _over(old: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Our entry; what the user has added to an older one stays."""
    had = old.get("env")
    added = had if isinstance(had, Mapping) else {}
    kept = {name: value for name, value in added.items() if name not in _DECIDED}
    return {**old, **ours, "env": {**kept, **ours["env"]}}


def _listed(settings: Servers) -> dict[str, Any]:
    found = settings.get(_SERVERS, {})
    if not isinstance(found, dict):
        raise BadRequest(f"its `{_SERVERS}` is not an object")
    return found
