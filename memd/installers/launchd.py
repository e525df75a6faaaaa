"""launchd, the service manager of macOS: an agent of the user's that runs the daemon from login on.

It is started again when it fails, and stays away when it was asked to leave (`memd stop`). Another
vault has an agent of its own, `local.memd.NAME`. launchd's sockets are not used: the daemon would
have to ask for them through a C library, and it runs from login on anyway.
"""

import os
from pathlib import Path

from memd.errors import BadRequest
from memd.installers import service
from memd.installers.plan import Place, Plan
from memd.installers.service import Command


def install(place: Place) -> Plan:
    """Plan that launchd runs the daemon from now on. Raises BadRequest where there is no launchd."""
    if place.platform != "darwin":
        raise BadRequest("launchd is macOS's; use `memd install systemd`")
    label, path = _named(place)
    log = Path(service.paths(place).state_dir) / f"{label}.log"
    text = service.agent(
        label,
        service.memd(place, "serve"),
        service.environment(place, None),
        str(log),
    )
    changes = (service.written(path, text),)
    is_loaded = _is_loaded(place, label)
    if is_loaded and not changes[0].is_needed:
        return Plan(changes)
    return _told(
        place,
        Plan(
            changes,
            # launchd opens the log before memd can make a place for it.
            before=(("mkdir", "-p", str(log.parent)), *_forgetting(label, is_loaded=is_loaded)),
            after=(
                service.stopped(place),
                ("launchctl", "bootstrap", _domain(), str(path)),
            ),
        ),
    )


def uninstall(place: Place) -> Plan:
    """Plan that launchd stops the daemon and forgets it."""
    label, path = _named(place)
    changes = (service.removed(path),)
    is_loaded = changes[0].is_needed and _is_loaded(place, label)
    return _told(place, Plan(changes, before=_forgetting(label, is_loaded=is_loaded)))


def _forgetting(label: str, *, is_loaded: bool) -> tuple[Command, ...]:
    return (("launchctl", "bootout", f"{_domain()}/{label}"),) if is_loaded else ()


def _told(place: Place, plan: Plan) -> Plan:
    answers = service.holds(place, "launchctl", "print", _domain())
    return service.told(plan, "The user's launchd", answers=answers)


def _is_loaded(place: Place, label: str) -> bool:
    return service.holds(place, "launchctl", "print", f"{_domain()}/{label}")


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _named(place: Place) -> tuple[str, Path]:
    label = service.named(service.LAUNCHD_LABEL, place, ".")
    return label, place.home / "Library" / "LaunchAgents" / f"{label}.plist"
