"""memd in Claude Code as a plugin: Claude Code's own commands install it, from what this package brings.

Claude Code loads a plugin from a directory in place, so a newer memd is a newer plugin at once. The
package's directory is the marketplace, which is why there is a `.claude-plugin` in it.
"""

import shlex
import shutil
from collections.abc import Sequence

from memd.installers.plan import Place, Plan

PLUGIN = "memd@memd"
_MARKETPLACE = "memd"
_PROGRAM = "claude"


def addition(place: Place) -> Plan:
    """Plan the commands that install the plugin; without a `claude`, tell them."""
    return _run(
        place,
        ("plugin", "marketplace", "add", str(place.package)),
        ("plugin", "install", PLUGIN),
    )


def removal(plugins: Sequence[str], place: Place) -> Plan:
    """Plan the commands that take these plugins away, and the marketplace that was ours."""
    rest = [("plugin", "marketplace", "remove", _MARKETPLACE)] if PLUGIN in plugins else []
    return _run(place, *(("plugin", "uninstall", name) for name in plugins), *rest)


def _run(place: Place, *commands: tuple[str, ...]) -> Plan:
    program = _program(place)
    if program is not None:
        return Plan(after=tuple((program, *command) for command in commands))
    if not commands:
        return Plan()
    told = (f"  {shlex.join((_PROGRAM, *command))}" for command in commands)
    said = "The program `claude` was not found. Run this where it is:"
    return Plan(notes=(said, *told), is_unfinished=True)


def _program(place: Place) -> str | None:
    usual = (
        place.home / ".local/bin",
        place.home / ".claude/local",
        "/opt/homebrew/bin",
        "/usr/local/bin",
    )
    path = ":".join([place.environ.get("PATH", ""), *map(str, usual)])
    return shutil.which(_PROGRAM, path=path)
