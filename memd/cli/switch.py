"""`memd switch`: less of memd for one project or session, or all of it again."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from memd.cli import door, show


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


def run(
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
        door.refuse("say --project or --session, not both")
    if state is None:
        if project is not None or session is not None:
            door.refuse("say what it should be: on, off, capture-only or recall-only")
        said = door.call("memd/switch")["switches"]
        print(json.dumps(said, ensure_ascii=False) if as_json else "\n".join(_lines(said)))
        return
    where: dict[str, Any] = {"session": session, "directory": door.here()}
    if project is not None:
        where["project"] = door.place(project)
    told = door.call("memd/switch", state=state.value, **where)
    print(json.dumps(told, ensure_ascii=False) if as_json else _told(told))


def _told(told: dict[str, Any]) -> str:
    if "session" in told:
        where, switch = f"session {told['session']}", told["switch"]
    else:
        where, switch = f"project {told['here']['name']}", told["here"]["switch"]
    state = _WORDS[switch["captures"], switch["recalls"]]
    return f"memd is {state} for {show.line(where)}"


def _lines(said: list[dict[str, Any]]) -> list[str]:
    if not said:
        return ["on everywhere"]
    return [
        f"{_WORDS[one['captures'], one['recalls']]:<13}{one['scope']:<8} {show.line(one['name'])}"
        f"  ({show.line(one['target'])}), since {show.minute(one['at'])}"
        for one in said
    ]
