"""`memd project`: which one this is and why; all of them; two that are one; another name."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, health, show

_Json = Annotated[bool, typer.Option("--json", help="Everything, for programs.")]
_Place = Annotated[
    str | None,
    typer.Argument(metavar="PROJECT", help="A name, a key or a directory; else here."),
]


def run(context: typer.Context) -> None:
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
    found = door.call("memd/projects")["projects"]
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
    names: dict[str, Any] = {"project": door.place(project), "into": door.place(into)}
    if dry_run or not yes:
        plan = door.call("memd/project/merge", dry_run=True, **names)
        print(json.dumps(plan, ensure_ascii=False) if as_json else "\n".join(_moves(plan)))
        if dry_run:
            return
        _confirm()
    merged = door.call("memd/project/merge", dry_run=False, **names)
    print(json.dumps(merged, ensure_ascii=False) if as_json else "\n".join(_moves(merged)))


def rename(
    project: Annotated[
        str, typer.Argument(metavar="PROJECT", help="A name, key or directory.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
) -> None:
    """Call a project something else. Its directories stay its own."""
    found = door.call("memd/project/rename", project=door.place(project), name=name)
    print(f"{show.line(found['key'])} is called {show.line(found['name'])}")


PARTS = {"show": shown, "list": listed, "merge": merge, "rename": rename}
"""The parts of the command, in the order of the help page."""


def _ask(place: str | None) -> dict[str, Any]:
    if place is not None:
        return door.call("memd/project", project=door.place(place))
    return door.call("memd/project", directory=door.here())


def _told(found: dict[str, Any]) -> Iterator[str]:
    yield health.place(found)
    yield from show.table(_rows(found))
    if found["before"]:
        yield (
            f"what was kept before projects.toml said so is in {show.line(found['before'])};"
            f" `memd project merge {show.line(found['before'])} {show.line(found['key'])}` brings it here"
            + ("" if found["is_known"] else ", once something is kept here")
        )
    if found["trouble"]:
        yield show.line(found["trouble"])


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "key", show.line(found["key"])
    yield "holds", _amount(found) if found["is_known"] else "nothing yet"
    if found["last_event_at"]:
        yield "last event", show.minute(found["last_event_at"])
    for n, key in enumerate(found["aliases"]):
        yield "" if n else "merged in", show.line(key)
    yield "memd", found["switch"]["reason"]


def _row(one: dict[str, Any]) -> Iterator[str]:
    last = show.day(_last(one)) if _last(one) else "never"
    switch = one["switch"]
    off = (
        "" if switch["captures"] and switch["recalls"] else f"  ({show.line(switch['reason'])})"
    )
    yield f"{show.line(one['name'])}  {_amount(one)}, last {last}{off}"
    if one["key"] != one["name"]:
        yield f"    {show.line(one['key'])}"
    yield from (f"    merged in: {show.line(key)}" for key in one["aliases"])


def _last(one: dict[str, Any]) -> int:
    """When something happened or was kept there last; 0: never."""
    return max(one["last_event_at"] or 0, one["last_memory_at"] or 0)


def _amount(one: dict[str, Any]) -> str:
    nouns = (("memories", "memory"), ("sessions", "session"), ("events", "event"))
    return ", ".join(show.plural(one[name], noun) for name, noun in nouns)


def _moves(plan: dict[str, Any]) -> Iterator[str]:
    verb = "would move" if plan["is_dry_run"] else "moved"
    source, into = plan["source"], plan["into"]
    yield f"{verb} {_amount(plan)}"
    yield f"    from {show.line(source['name'])} ({show.line(source['key'])})"
    yield f"    into {show.line(into['name'])} ({show.line(into['key'])})"
    hides = "would hide" if plan["is_dry_run"] else "hides"
    for one in plan["replaced"]:
        yield f"#{one['newer_id']} {hides} #{one['older_id']}: {show.line(one['topic_key'])}"
    for one in plan["pinned"]:
        yield f"#{one['older_id']} is pinned and stays beside #{one['newer_id']}"
    if plan["switch"]:
        yield show.line(plan["switch"])


def _confirm() -> None:
    if not sys.stdin.isatty():
        door.refuse("nothing was moved; say --yes to mean it")
    if not typer.confirm("Make them one? There is no way back."):
        print("nothing was moved")
        raise typer.Exit(1)
