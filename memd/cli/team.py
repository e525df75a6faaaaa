"""The subcommands of `memd team`: what is shared with a team, with whom, and how it is.

`init` and `grant` talk to the server themselves, so that an owner needs no vault; the daemon does the rest.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.terminal import DryRunOption, YesOption, confirm, print_result
from memd.errors import ConfigError

_Name = Annotated[str, Argument(metavar="PROJECT", help="The project's name on the team's server.")]
_Url = Annotated[
    str | None,
    Option("--url", help="The server as whom you are its owner. Default: url under [team]."),
]


def run_team(context: typer.Context) -> None:
    """Share a project's memories with a team, on a PostgreSQL server of yours. Off unless configured.

    Set url under `team` in config.toml, then `memd team join PROJECT`; with --instructions those are shared, too.

    `memd team leave PROJECT --withdraw` takes yours off the server. `init` and `grant` take --url for its owner.
    """
    if context.invoked_subcommand is None:
        run_status()


def run_init(url: _Url = None) -> None:
    """Prepare the server, once, or after an update of memd. For its owner."""
    from memd.sharing import team_server

    daemon_call.require_user("team init")
    address = url or _read_url()
    done = team_server.prepare(address)
    said = (
        f"prepared: migration {', '.join(map(str, done))}"
        if done
        else "nothing to do: it is up to date"
    )
    lines = [f"{team_server.describe_url(address)} {said}", _FIRST_GRANT]
    print_result({"migrations": done}, lines)


_FIRST_GRANT = "next, for each person and project: `memd team grant USER ROLE PROJECT`"


def run_grant(
    user: Annotated[str, Argument(metavar="USER", help="A user of the database.")],
    role: Annotated[str, Argument(metavar="ROLE", help="reader, writer, maintainer or none.")],
    project: _Name,
    url: _Url = None,
) -> None:
    """Give a database user a role in a project, or take it away with none. For its maintainers.

    The server's owner makes a project by the first role in it.
    """
    from memd.sharing import team_server

    daemon_call.require_user(f"team grant {user} {role} {project}")
    team_server.grant(url or _read_url(), user, role, project)
    what = f"is {role} of" if role != "none" else "has no role any more in"
    result = {"user": user, "role": role, "project": project}
    print_result(result, [f"{user} {what} {project}"])


def run_join(
    name: Annotated[
        str | None,
        Argument(metavar="[PROJECT]", help="Its name on the server. Default: of the git remote."),
    ] = None,
    project: Annotated[
        str | None, Option("--project", help="A name or directory. Default: this directory's.")
    ] = None,
    instructions: Annotated[
        bool, Option("--instructions", help="Share instructions, too: teammates' agents read them.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Share a project from now on, and have what teammates share of it. Shows first what would be shared.

    Preferences, tasks, sessions and what is tagged `private` never leave this machine; events never do.
    """
    place: dict[str, Any] = {
        "name": name, "project": daemon_call.read_project(project) if project else None,
        "directory": None if project else daemon_call.current_directory(), "instructions": instructions,
    }  # fmt: skip
    if dry_run or not yes:
        preview = daemon_call.call("memd/team/join", dry_run=True, **place)
        print_result(preview, _format_preview(preview))
        if dry_run:
            return
        confirm("Share it?", "nothing was shared")
        # What was shown, also if the remote has changed meanwhile.
        place["name"] = preview["name"]
    joined = daemon_call.call("memd/team/join", dry_run=False, **place)
    lines = [f"joined {output.one_line(joined['name'])}; `memd team status` shows how it goes"]
    print_result(joined, lines)


def run_leave(
    name: _Name,
    withdraw: Annotated[
        bool, Option("--withdraw", help="Take what you shared off the server, too.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Share a project no more: teammates' memories of it leave this vault, yours stay.

    What you shared stays with the team unless you say --withdraw; then it leaves their vaults, too.
    """
    if not yes:
        confirm(f"Take the team's memories of {name} out of this vault?", "nothing was changed")
    left = daemon_call.call("memd/team/leave", name=name, withdraw=withdraw)
    removed = output.plural(left["removed"], "memory")
    lines = [f"left {output.one_line(name)}: {removed} of teammates went"]
    if withdraw:
        lines.append(f"taken off the server: {output.plural(left['logs_removed'], 'log')} of yours")
    print_result(left, lines)


def run_status() -> None:
    """Show the server, what is shared with whom, and what waits."""
    found = daemon_call.call("memd/team")
    print_result(found, _format_status(found))


SUBCOMMANDS = {
    "status": run_status, "join": run_join, "leave": run_leave, "grant": run_grant, "init": run_init,
}  # fmt: skip
"""The subcommands of `memd team`, in the order of the help page."""


def _read_url() -> str:
    from memd.config import load_config

    url = load_config(daemon_call.paths().config_file).team.url
    if not url:
        raise ConfigError(
            'no server is named: set url = "postgresql://…" under [team] in config.toml, or give --url'
        )
    return url


def _format_preview(preview: dict[str, Any]) -> Iterator[str]:
    name, key = output.one_line(preview["name"]), output.one_line(preview["key"])
    yield f"{key} would be shared as {name}; you are {preview['role']} there"
    yield f"shared: {_format_counts(preview['shared'])}"
    yield f"stays here: {_format_counts(preview['kept'])}"


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "nothing"


def _format_status(found: dict[str, Any]) -> Iterator[str]:
    yield f"{output.one_line(found['server'])}: {found['state']}"
    if found["reason"]:
        yield f"  {output.one_line(found['reason'])}"
    for one in found["projects"]:
        yield f"shared: {output.one_line(one['key'])} as {output.one_line(one['name'])}"
    for name, problem in found["problems"].items():
        yield f"  {output.one_line(name)}: {output.one_line(problem)}"
    for author, count in found["authors"].items():
        yield f"from {output.one_line(author)}: {output.plural(count, 'memory')}"
    for author in found["behind"]:
        yield f"the server lost a part of what {output.one_line(author)} shared; their memd sends it again"
    if found["newer"]:
        count = output.plural(found["newer"], "record")
        yield f"{count} of teammates: written by a newer memd, left where they are; update memd here"
    for row, reason in found["refusals"].items():
        yield f"refused: {output.one_line(row)}: {output.one_line(reason)}"
