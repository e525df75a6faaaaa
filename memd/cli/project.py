"""`memd project`, `switch` and `team`: projects, where memd captures and recalls, and what a team shares.

`memd team init` and `grant` talk to the server themselves, so that an owner needs no vault; the daemon does the rest.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer import Argument, Option

from memd.cli import daemon_call, health, output
from memd.cli.terminal import DryRunOption, YesOption, complete_projects, confirm, print_result
from memd.errors import ConfigError

_Project = Annotated[
    str,
    Argument(
        metavar="PROJECT", help="A name, a key or a directory.", autocompletion=complete_projects
    ),
]


# ── project ──────────────────────────────────────────────────────────────────────────────────────


def run_project(context: typer.Context) -> None:
    """Show the project of this directory, list, merge or rename projects.

    A project is named by the git repository around a directory; all worktrees of one share a project.

    projects.toml, beside config.toml, overrides that: "~/code/shop-*" = "shop".
    """
    if context.invoked_subcommand is None:
        run_show()


def run_show(project: _Project = "") -> None:
    """Show which project this is and why, what memd remembers of it, and what is switched off."""
    if not project:
        found = daemon_call.call("memd/project", directory=daemon_call.current_directory())
    else:
        found = daemon_call.call("memd/project", project=daemon_call.read_project(project))
    print_result(found, _format_project(found))


def run_list() -> None:
    """List all projects, the one used last first."""
    found = daemon_call.call("memd/projects")["projects"]
    print_result(found, _format_projects(found))


def run_merge(
    project: _Project,
    into: str | None = Argument(
        None, metavar="INTO", help="The project that stays.", autocompletion=complete_projects
    ),
    *,
    undo: bool = Option(False, "--undo", help="Give PROJECT back what it had."),
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Merge one project into another, or take that back with --undo. Under one topic key, the newest memory holds.

    The directories of the merged project belong to the other one from then on.
    """
    if undo:
        if into is not None:
            daemon_call.fail(f"--undo takes the merged project alone; leave out {into!r}")
        undone = daemon_call.call(
            "memd/project/merge/undo", project=daemon_call.read_project(project)
        )
        print_result(undone, _format_undone(undone))
        return
    if into is None:
        daemon_call.fail(f"give the project that stays, too: merge {project} INTO")
    names: dict[str, Any] = {
        "project": daemon_call.read_project(project),
        "into": daemon_call.read_project(into),
    }
    if dry_run or not yes:
        plan = daemon_call.call("memd/project/merge", dry_run=True, **names)
        print_result(plan, _format_merge(plan))
        if dry_run:
            return
        confirm("Merge them?", "nothing was moved")
    merged = daemon_call.call("memd/project/merge", dry_run=False, **names)
    print_result(merged, _format_merge(merged))


def run_rename(
    project: _Project, name: str = Argument(..., metavar="NAME", help="The new name.")
) -> None:
    """Rename a project. It keeps its directories."""
    found = daemon_call.call(
        "memd/project/rename", project=daemon_call.read_project(project), name=name
    )
    line = f"{output.one_line(found['key'])} is now named {output.one_line(found['name'])}"
    print_result(found, [line])


def _format_undone(undone: dict[str, Any]) -> Iterator[str]:
    counts = ((undone["sessions"], "session"), (undone["memories"], "memory"))
    what = ", ".join(output.plural(count, noun) for count, noun in counts)
    name, other = (output.one_line(undone[key]["name"]) for key in ("project", "from_"))
    yield f"{name} is a project of its own again: {what} came back from {other}"
    yield from (f"  #{number} is visible again" for number in undone["shown"])


SUBCOMMANDS = {"show": run_show, "list": run_list, "merge": run_merge, "rename": run_rename}
"""The subcommands of `memd project`, in the order of the help page."""


def _format_project(found: dict[str, Any]) -> Iterator[str]:
    yield health.format_project_here(found)
    yield from output.format_table(_list_facts(found))
    if found["before"]:
        before, key = output.one_line(found["before"]), output.one_line(found["key"])
        later = "" if found["is_known"] else ", once something is stored here"
        yield (
            f"memories from before the entry in projects.toml are in {before};"
            f" `memd project merge {before} {key}` moves them here{later}"
        )
    if found["trouble"]:
        yield output.one_line(found["trouble"])


def _list_facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "key", output.one_line(found["key"])
    yield "contains", _format_amount(found) if found["is_known"] else "nothing yet"
    if found["last_event_at"]:
        yield "last event", output.format_time(found["last_event_at"])
    for number, key in enumerate(found["aliases"]):
        yield "" if number else "merged in", output.one_line(key)
    yield "memd", found["switch"]["reason"]


def _format_projects(projects: list[dict[str, Any]]) -> Iterator[str]:
    if not projects:
        yield "no projects yet; a project begins with the first event that is captured in it"
    for project in sorted(projects, key=_find_last_use, reverse=True):
        last_use, switch = _find_last_use(project), project["switch"]
        last = output.format_date(last_use) if last_use else "never"
        is_on = switch["captures"] and switch["recalls"]
        off = "" if is_on else f"  ({output.one_line(switch['reason'])})"
        yield f"{output.one_line(project['name'])}  {_format_amount(project)}, last {last}{off}"
        if project["key"] != project["name"]:
            yield f"    {output.one_line(project['key'])}"
        yield from (f"    merged in: {output.one_line(key)}" for key in project["aliases"])


def _find_last_use(project: dict[str, Any]) -> int:
    """Return when an event or a memory was stored last; 0 for never."""
    return max(project["last_event_at"] or 0, project["last_memory_at"] or 0)


def _format_amount(counts: dict[str, Any]) -> str:
    nouns = (("memories", "memory"), ("sessions", "session"), ("events", "event"))
    return ", ".join(output.plural(counts[name], noun) for name, noun in nouns)


def _format_merge(plan: dict[str, Any]) -> Iterator[str]:
    would = "would " if plan["is_dry_run"] else ""
    source, into = plan["source"], plan["into"]
    yield f"{would}{'move' if would else 'moved'} {_format_amount(plan)}"
    yield f"    from {output.one_line(source['name'])} ({output.one_line(source['key'])})"
    yield f"    into {output.one_line(into['name'])} ({output.one_line(into['key'])})"
    hide = "would hide" if would else "hides"
    for pair in plan["replaced"]:
        topic = output.one_line(pair["topic_key"])
        yield f"#{pair['newer_id']} {hide} #{pair['older_id']}: {topic}"
    for pair in plan["kept"]:
        yield f"#{pair['older_id']} may not be hidden by #{pair['newer_id']}: both stay, to be judged"
    if plan["switch"]:
        yield output.one_line(plan["switch"])


# ── switch ───────────────────────────────────────────────────────────────────────────────────────


class SwitchState(StrEnum):
    """The state of memd's switches in a project or a session."""

    ON = "on"
    OFF = "off"
    CAPTURE_ONLY = "capture-only"
    RECALL_ONLY = "recall-only"


_STATES = {
    (True, True): SwitchState.ON,
    (False, False): SwitchState.OFF,
    (True, False): SwitchState.CAPTURE_ONLY,
    (False, True): SwitchState.RECALL_ONLY,
}
"""(captures, recalls) → state."""


def run_switch(
    state: SwitchState | None = Argument(None, metavar="STATE", help="Default: list all."),
    project: str | None = Option(None, "--project", "-p", help="Default: this directory's."),
    session: str | None = Option(None, help="A session's id; overrides its project."),
) -> None:
    """Switch memd on, off, to capture-only or to recall-only for one project or session.

    capture-only: memd captures events, and injects nothing into sessions.

    recall-only: memd injects memories, and captures nothing, not even by an import.

    Searches (mem_search, `memd search`) and `memd remember` work in every state.
    """
    if project is not None and session is not None:
        daemon_call.fail("give --project or --session, not both")
    if state is None:
        if project is not None or session is not None:
            daemon_call.fail("give a state: on, off, capture-only or recall-only")
        switches = daemon_call.call("memd/switch")["switches"]
        print_result(switches, _format_switches(switches))
        return
    target: dict[str, Any] = {"session": session, "directory": daemon_call.current_directory()}
    if project is not None:
        target["project"] = daemon_call.read_project(project)
    switched = daemon_call.call("memd/switch", state=state.value, **target)
    print_result(switched, [_format_switched(switched)])


def _format_switched(switched: dict[str, Any]) -> str:
    if "session" in switched:
        target, switch = f"session {switched['session']}", switched["switch"]
    else:
        target, switch = f"project {switched['here']['name']}", switched["here"]["switch"]
    state = _STATES[switch["captures"], switch["recalls"]]
    return f"memd is {state} for {output.one_line(target)}"


def _format_switches(switches: list[dict[str, Any]]) -> Iterator[str]:
    if not switches:
        yield "on everywhere"
    for switch in switches:
        state = _STATES[switch["captures"], switch["recalls"]].value
        name, target = output.one_line(switch["name"]), output.one_line(switch["target"])
        since = output.format_time(switch["at"])
        yield f"{state:<13}{switch['scope']:<8} {name}  ({target}), since {since}"


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


TEAM_SUBCOMMANDS = {
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
