"""memd in Claude Desktop: one MCP server in its configuration. Its chats have no hooks, so nothing is captured."""

from functools import partial
from pathlib import Path

from memd.errors import BadRequest
from memd.installers import plan, server
from memd.installers.plan import FileChange, Place, Plan

_FILE = "claude_desktop_config.json"
RESTART = "Quit Claude Desktop and start it again; it reads this only then."


def install(place: Place) -> Plan:
    """Plan the server. Raises BadRequest for a file that is broken."""
    ours = server.entry(place, "claude-desktop")
    change = plan.read_documents(config_file(place)).changed(partial(server.merge, ours=ours))
    return _plan(change)


def uninstall(place: Place) -> Plan:
    """Plan that our server is gone."""
    change = plan.read_documents(config_file(place)).changed(server.unmerge)
    return _plan(change)


def _plan(change: FileChange) -> Plan:
    return Plan((change,), notes=(RESTART,) if change.is_needed else ())


def config_file(place: Place) -> Path:
    """Where Claude Desktop keeps its configuration. Raises BadRequest on another system."""
    if place.platform == "darwin":
        return place.home / "Library" / "Application Support" / "Claude" / _FILE
    if place.platform == "linux":
        own = place.environ.get("XDG_CONFIG_HOME")
        return (Path(own) if own else place.home / ".config") / "Claude" / _FILE
    raise BadRequest(
        f"memd does not know where Claude Desktop keeps its settings on {place.platform}"
    )
