"""Whether Claude Code and the service manager run this memd, and only once. Changes nothing.

What is there is compared with what an installation would write now. Not here: writing it.
"""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memd import launcher
from memd.errors import MemdError
from memd.installers import claude_code, hooks, service, settings
from memd.installers import plan as installers_plan
from memd.installers.plan import Place
from memd.models import Finding

_INSTALL = "`memd install claude-code`"
_NOTE_LINES = 2


def examine(place: Place) -> list[Finding]:
    """Look at the hooks and at the service manager's units."""
    return [_hooks(place), _units(place)]


def _hooks(place: Place) -> Finding:
    file = claude_code.settings_file(place)
    if not file.parent.exists():
        return Finding("hooks", "ok", "there is no Claude Code here")
    try:
        found = installers_plan.read_documents(file).value
        plugins, ours = settings.plugins(found), list(_ours(found))
        if plugins:
            return _plugin(plugins[0], place) if not ours else _twice(plugins[0], file)
        changes = claude_code.install(place).changes
    except MemdError as error:
        return Finding("hooks", "problem", error.message, f"then {_INSTALL}")
    wrong = _wrong(ours, found, file)
    if wrong is None and any(change.is_needed for change in changes):
        words = "hooks or MCP server are not as this memd would write them"
        wrong = Finding("hooks", "warning", words, _INSTALL)
    return wrong or Finding("hooks", "ok", f"in {file}, and they run this memd")


def _wrong(ours: list[list[str]], found: Mapping[str, Any], file: Path) -> Finding | None:
    """Say what keeps the hooks in the settings from running, or that there are none."""
    if not ours:
        words = "Claude Code does not run memd: nothing is captured"
        return Finding("hooks", "warning", words, _INSTALL)
    if missing := _missing(ours):
        words = f"the hooks run what is not there: {', '.join(missing)}"
        return Finding("hooks", "problem", words, _INSTALL)
    if told := settings.warnings(found):
        return Finding("hooks", "warning", told[0], f"take it out of {file}")
    return None


def _twice(plugin: str, file: Path) -> Finding:
    words = f"the plugin {plugin} is enabled and {file} has hooks, too: both capture"
    return Finding("hooks", "problem", words, f"{_INSTALL} leaves it to the plugin")


def _plugin(plugin: str, place: Place) -> Finding:
    """The plugin finds memd by the note that it leaves of itself."""
    note = Path(service.paths(place).installed)
    try:
        said = note.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        said = []
    if len(said) != _NOTE_LINES or not all(Path(line).exists() for line in said):
        words = f"the plugin {plugin} does not find memd by {note}"
        return Finding("hooks", "problem", words, "`memd restart` writes it anew")
    if said != [place.python, str(place.package)]:
        words = f"the plugin {plugin} runs another memd: {said[1]}"
        return Finding("hooks", "warning", words, "`memd restart` makes it this one")
    return Finding("hooks", "ok", f"in the plugin {plugin}, and it runs this memd")


def _ours(found: Mapping[str, Any]) -> Iterator[list[str]]:
    """What each hook of ours runs, word by word."""
    listed = found.get("hooks")
    for groups in listed.values() if isinstance(listed, Mapping) else ():
        for group in groups if isinstance(groups, list) else ():
            inner = group.get("hooks") if isinstance(group, Mapping) else None
            for hook in inner if isinstance(inner, list) else ():
                if hooks.is_ours(hook):
                    yield hooks.words(hook)


def _missing(ours: list[list[str]]) -> list[str]:
    words = dict.fromkeys(word for said in ours for word in said if word.startswith("/"))
    return [word for word in words if not Path(word).exists()]


def _units(place: Place) -> Finding:
    if not launcher.is_managed(dict(place.environ)):
        return Finding("service", "ok", "no service manager is set to run memd; hooks start it")
    manager = "launchd" if place.platform == "darwin" else "systemd"
    try:
        plan = importlib.import_module(f"memd.setup.{manager}").install(place)
    except MemdError as error:
        return Finding("service", "problem", error.message)
    stale = [str(change.path) for change in plan.changes if change.is_needed]
    if stale:
        words = f"not as this memd would write it: {', '.join(stale)}"
        return Finding("service", "warning", words, f"`memd install {manager}`")
    return Finding("service", "ok", f"{manager} is set to run this memd")
