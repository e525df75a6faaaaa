"""project, switch."""

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from memd.cli import daemon_call, health, output

# MERGED from memd.cli.project:
# MERGED `memd project`: which one this is and why; all of them; two that are one; another name.


_Json = Annotated[bool, typer.Option("--json", help="Everything, for programs.")]
_Place = Annotated[
    str | None,
    typer.Argument(metavar="PROJECT", help="A name, a key or a directory; else here."),
]


def run_project(context: typer.Context) -> None:
    """Tell which project this directory belongs to and why, list them all, merge two, or rename one.

    The git repository around a directory names it, and worktrees share one project.

    Your own word comes first: projects.toml beside config.toml, such as "~/code/shop-*" = "shop".
    """
    if context.invoked_subcommand is None:
        print("\n".join(_told(_ask(None))))


def shown(place: _Place = None, as_json: _Json = False) -> None:
    """Tell which project it is and why, how much is remembered of it, and what is switched off."""
    found = _ask(place)
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_told(found)))


def listed(as_json: _Json = False) -> None:
    """List every project, the one where something happened or was kept last at the top."""
    found = daemon_call.call("memd/projects")["projects"]
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    if not found:
        print("none yet; a project begins with the first thing that is kept of it")
    for one in sorted(found, key=lambda one: -_last(one)):
        print("\n".join(_row(one)))


def merge(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The one that goes.")],
    into: Annotated[str, typer.Argument(metavar="INTO", help="The one that stays.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would move.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: _Json = False,
) -> None:
    """Make two projects one. What has the same topic key is settled: the newest value holds.

    The directories of the one that goes belong to the other from then on. There is no way back.
    """
    names: dict[str, Any] = {
        "project": daemon_call.place(project),
        "into": daemon_call.place(into),
    }
    if dry_run or not yes:
        plan = daemon_call.call("memd/project/merge", dry_run=True, **names)
        print(json.dumps(plan, ensure_ascii=False) if as_json else "\n".join(_moves(plan)))
        if dry_run:
            return
        _confirm()
    merged = daemon_call.call("memd/project/merge", dry_run=False, **names)
    print(json.dumps(merged, ensure_ascii=False) if as_json else "\n".join(_moves(merged)))


def rename(
    project: Annotated[
        str, typer.Argument(metavar="PROJECT", help="A name, key or directory.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
) -> None:
    """Call a project something else. Its directories stay its own."""
    found = daemon_call.call(
        "memd/project/rename", project=daemon_call.place(project), name=name
    )
    print(f"{output.line(found['key'])} is called {output.line(found['name'])}")


PROJECT_COMMANDS = {"show": shown, "list": listed, "merge": merge, "rename": rename}
"""The parts of the command, in the order of the help page."""


def _ask(place: str | None) -> dict[str, Any]:
    if place is not None:
        return daemon_call.call("memd/project", project=daemon_call.place(place))
    return daemon_call.call("memd/project", directory=daemon_call.here())


def _told(found: dict[str, Any]) -> Iterator[str]:
    yield health.place(found)
    yield from output.table(_rows(found))
    if found["before"]:
        yield (
            f"what was kept before projects.toml said so is in {output.line(found['before'])};"
            f" `memd project merge {output.line(found['before'])} {output.line(found['key'])}` brings it here"
            + ("" if found["is_known"] else ", once something is kept here")
        )
    if found["trouble"]:
        yield output.line(found["trouble"])


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "key", output.line(found["key"])
    yield "holds", _amount(found) if found["is_known"] else "nothing yet"
    if found["last_event_at"]:
        yield "last event", output.minute(found["last_event_at"])
    for n, key in enumerate(found["aliases"]):
        yield "" if n else "merged in", output.line(key)
    yield "memd", found["switch"]["reason"]


def _row(one: dict[str, Any]) -> Iterator[str]:
    last = output.day(_last(one)) if _last(one) else "never"
    switch = one["switch"]
    off = (
        ""
        if switch["captures"] and switch["recalls"]
        else f"  ({output.line(switch['reason'])})"
    )
    yield f"{output.line(one['name'])}  {_amount(one)}, last {last}{off}"
    if one["key"] != one["name"]:
        yield f"    {output.line(one['key'])}"
    yield from (f"    merged in: {output.line(key)}" for key in one["aliases"])


def _last(one: dict[str, Any]) -> int:
    """When something happened or was kept there last; 0: never."""
    return max(one["last_event_at"] or 0, one["last_memory_at"] or 0)


def _amount(one: dict[str, Any]) -> str:
    nouns = (("memories", "memory"), ("sessions", "session"), ("events", "event"))
    return ", ".join(output.plural(one[name], noun) for name, noun in nouns)


def _moves(plan: dict[str, Any]) -> Iterator[str]:
    verb = "would move" if plan["is_dry_run"] else "moved"
    source, into = plan["source"], plan["into"]
    yield f"{verb} {_amount(plan)}"
    yield f"    from {output.line(source['name'])} ({output.line(source['key'])})"
    yield f"    into {output.line(into['name'])} ({output.line(into['key'])})"
    hides = "would hide" if plan["is_dry_run"] else "hides"
    for one in plan["replaced"]:
        yield f"#{one['newer_id']} {hides} #{one['older_id']}: {output.line(one['topic_key'])}"
    for one in plan["pinned"]:
        yield f"#{one['older_id']} is pinned and stays beside #{one['newer_id']}"
    if plan["switch"]:
        yield output.line(plan["switch"])


def _confirm() -> None:
    if not sys.stdin.isatty():
        daemon_call.refuse("nothing was moved; say --yes to mean it")
    if not typer.confirm("Make them one? There is no way back."):
        print("nothing was moved")
        raise typer.Exit(1)


# MERGED from memd.cli.switch:
# MERGED `memd switch`: less of memd for one project or session, or all of it again.


class State(StrEnum):
    """What may hold in a place."""

    ON = "on"
    OFF = "off"
    CAPTURE_ONLY = "capture-only"
    RECALL_ONLY = "recall-only"


_WORDS = {
    (True, True): "on",
    (False, False): "off",
    (True, False): "capture-only",
    (False, True): "recall-only",
}


def run_switch(
    state: Annotated[
        State | None,
        typer.Argument(metavar="STATE", help="If left out, what was said so far is listed."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", help="A name or directory; else the one of this directory."
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", help="One session by its id; says more than its project."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Switch memd off, or half of it, for one project or session: on, off, capture-only or recall-only.

    capture-only: what agents do is kept, and nothing is shown to them unasked.

    recall-only: memories are shown, and nothing new is kept, also not by an import.

    Whoever asks is always answered (mem_search, `memd search`), and `memd remember` keeps what it is told.
    """
    if project is not None and session is not None:
        daemon_call.refuse("say --project or --session, not both")
    if state is None:
        if project is not None or session is not None:
            daemon_call.refuse("say what it should be: on, off, capture-only or recall-only")
        said = daemon_call.call("memd/switch")["switches"]
        print(json.dumps(said, ensure_ascii=False) if as_json else "\n".join(_lines(said)))
        return
    where: dict[str, Any] = {"session": session, "directory": daemon_call.here()}
    if project is not None:
        where["project"] = daemon_call.place(project)
    told = daemon_call.call("memd/switch", state=state.value, **where)
    print(json.dumps(told, ensure_ascii=False) if as_json else _told_switch(told))


def _told_switch(told: dict[str, Any]) -> str:
    if "session" in told:
        where, switch = f"session {told['session']}", told["switch"]
    else:
        where, switch = f"project {told['here']['name']}", told["here"]["switch"]
    state = _WORDS[switch["captures"], switch["recalls"]]
    return f"memd is {state} for {output.line(where)}"


def _lines(said: list[dict[str, Any]]) -> list[str]:
    if not said:
        return ["on everywhere"]
    return [
        f"{_WORDS[one['captures'], one['recalls']]:<13}{one['scope']:<8} {output.line(one['name'])}"
        f"  ({output.line(one['target'])}), since {output.minute(one['at'])}"
        for one in said
    ]
