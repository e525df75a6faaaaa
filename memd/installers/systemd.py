"""systemd, the service manager of Linux: two units of the user's, and systemctl told of them.

systemd listens at the vault's socket and starts the daemon when somebody connects, so nobody has to
have started it, and no event waits for a login. Another vault has units of its own, `memd-NAME`.
What a user adds by `systemctl --user edit` is the user's, and stays.
"""

import os
from pathlib import Path

from memd.errors import BadRequest
from memd.installers import service as installers_service
from memd.installers.plan import Place, Plan
from memd.installers.service import Command

_ASK = ("systemctl", "--user")


def install(place: Place) -> Plan:
    """Plan that systemd starts the daemon from now on. Raises BadRequest where there is no systemd."""
    if place.platform == "darwin":
        raise BadRequest("macOS has no systemd; use `memd install launchd`")
    job = _job(place)
    socket, service = _files(place, job)
    changes = (
        installers_service.written(socket, installers_service.socket_unit(job)),
        installers_service.written(service, installers_service.service_unit(job)),
    )
    commands = (
        installers_service.stopped(place),
        (*_ASK, "daemon-reload"),
        (*_ASK, "enable", socket.name),
        (*_ASK, "restart", socket.name),  # it may listen already, somewhere else
    )
    is_new = any(change.is_needed for change in changes)
    if not is_new and _listens(place, socket.name):
        return Plan(changes)
    return _told(place, Plan(changes, after=commands))


def uninstall(place: Place) -> Plan:
    """Plan that systemd stops the daemon and forgets it."""
    names = _files(place, _job(place))
    changes = tuple(installers_service.removed(path) for path in names)
    going = [change.path.name for change in changes if change.is_needed]
    if not going:
        return _told(place, Plan(changes))
    disable: Command = (*_ASK, "disable", "--now", *going)
    return _told(place, Plan(changes, before=(disable,), after=((*_ASK, "daemon-reload"),)))


def _told(place: Place, plan: Plan) -> Plan:
    answers = installers_service.holds(place, *_ASK, "show-environment")
    return installers_service.told(plan, "The user's systemd", answers=answers)


def _listens(place: Place, socket: str) -> bool:
    return all(
        installers_service.holds(place, *_ASK, question, "--quiet", socket)
        for question in ("is-enabled", "is-active")
    )


def _job(place: Place) -> installers_service.Job:
    usual = f"/run/user/{os.getuid()}"
    told = installers_service.environment(place, usual)
    path = installers_service.paths(place).socket
    is_elsewhere = {"MEMD_HOME", "XDG_RUNTIME_DIR"} & told.keys()
    return installers_service.Job(
        name=installers_service.named("memd", place, "-"),
        start=installers_service.quoted(installers_service.memd(place, "serve")),
        listen=installers_service.literal(path)
        if is_elsewhere
        else f"%t/memd/{Path(path).name}",
        environment=told,
    )


def _files(place: Place, job: installers_service.Job) -> tuple[Path, Path]:
    settings = place.environ.get("XDG_CONFIG_HOME") or place.home / ".config"
    directory = Path(settings) / "systemd" / "user"
    return directory / f"{job.name}.socket", directory / f"{job.name}.service"
