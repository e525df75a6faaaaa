"""memd in Claude Code: by way of its settings (hooks for all projects, and the MCP server), or as a plugin.

Never both: everything would be captured twice and every tool be there twice. So the settings are left
alone while the plugin is enabled, and cleared before it is installed.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from memd.installers import claude_plugin, plan, server, settings
from memd.installers.plan import FileChange, Place, Plan

RESTART = "Sessions of Claude Code that run already do not see this; start them again."


def install(place: Place) -> Plan:
    """Plan the hooks and the server in the user's own settings. Raises BadRequest for a broken file."""
    plugins = settings.plugins(plan.read_documents(settings_file(place)).value)
    if plugins:
        return _left_to(plugins[0], place)
    server_ours = {"type": "stdio", **server.entry(place, "claude-code")}
    found = plan.read_documents(settings_file(place))
    changes = (
        found.changed(partial(settings.merge, command=command(place))),
        plan.read_documents(servers_file(place)).changed(
            partial(server.merge, ours=server_ours)
        ),
    )
    return Plan(changes, notes=(*settings.warnings(found.value), *_restart(changes)))


def install_plugin(place: Place) -> Plan:
    """Plan the plugin, and nothing of ours in the settings beside it. Raises BadRequest."""
    added = claude_plugin.addition(place)
    if not added.after:
        return added  # until somebody runs the commands, the settings are all there is
    carried = ", ".join(place.carried)
    note = (f"The plugin carries no environment: set {carried} wherever Claude Code starts.",)
    return replace(added, changes=_cleared(place), notes=(*(note if carried else ()), RESTART))


def uninstall(place: Place) -> Plan:
    """Plan that nothing of ours is left, neither in the settings nor as a plugin. Raises BadRequest."""
    plugins = settings.plugins(plan.read_documents(settings_file(place)).value)
    taken = claude_plugin.removal(plugins, place)
    changes = _cleared(place)
    return replace(taken, changes=changes, notes=(*taken.notes, *_restart(changes)))


def settings_file(place: Place) -> Path:
    """Where Claude Code keeps the user's settings."""
    own = place.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(own) if own else place.home / ".claude") / "settings.json"


def servers_file(place: Place) -> Path:
    """Where Claude Code keeps the user's MCP servers, among much else."""
    own = place.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(own) if own else place.home) / ".claude.json"


def command(place: Place) -> tuple[str, ...]:
    """Return what a hook runs: the quick way in, with what it must know of the environment."""
    run = (place.python, "-I", "-S", str(place.package / "hook.py"))
    carried = [f"{name}={value}" for name, value in place.carried.items()]
    return ("/usr/bin/env", *carried, *run) if carried else run


def _restart(changes: tuple[FileChange, ...]) -> tuple[str, ...]:
    return (RESTART,) if any(change.is_needed for change in changes) else ()


def _cleared(place: Place) -> tuple[FileChange, ...]:
    return (
        plan.read_documents(settings_file(place)).changed(settings.unmerge),
        plan.read_documents(servers_file(place)).changed(server.unmerge),
    )


def _left_to(plugin: str, place: Place) -> Plan:
    """Nothing beside the plugin; what an earlier installation put there goes."""
    taken = _cleared(place)
    said = (
        f"The plugin {plugin} is enabled in {settings_file(place)}; it brings hooks and server."
    )
    is_clear = not any(change.is_needed for change in taken)
    rest = "Nothing was changed." if is_clear else "What the settings had of memd is taken out."
    instead = "To have them in the settings instead, run `memd uninstall claude-code` first."
    return Plan(taken, notes=(f"{said} Both would be one too many. {rest} {instead}",))
