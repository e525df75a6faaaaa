"""`memd judge`: which of two memories holds, or that both do."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show

_RELATION = (
    "supersedes: OTHER is hidden; duplicate: it is hidden and ID firmer; contradicts: both stay, marked;"
    " compatible, unrelated: both stay, and nobody asks again."
)


def run(  # one parameter per option
    number: Annotated[str, typer.Argument(metavar="ID", help="12 or #12: what holds.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The other one.")],
    relation: Annotated[
        str | None, typer.Argument(metavar="RELATION", help=_RELATION, show_default=False)
    ] = None,
    *,
    reason: Annotated[
        str | None, typer.Option(help="Why; needed, but for --undo. `memd why` shows it.")
    ] = None,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Take back what holds of them, also what memd decided."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what one memory is to another, with a --reason, or take that back."""
    ids = door.numbers([number, other])
    if not undo and relation is None:
        door.refuse(
            "say what it is: supersedes, duplicate, contradicts, compatible or unrelated"
        )
    if undo and relation is not None:
        door.refuse(f"--undo takes back what holds; leave out {relation!r}")
    done = door.call(
        "memd/judge", id=ids[0], other=ids[1], relation=relation, reason=reason, undo=undo
    )
    print(json.dumps(done, ensure_ascii=False) if as_json else "\n".join(_lines(done)))


def _lines(done: dict[str, Any]) -> list[str]:
    pair = f"#{done['id']}", f"#{done['other']}"
    if done["outcome"] == "undone":
        lines = [f"undone: {show.line(done['was'])} between {pair[0]} and {pair[1]}"]
    else:
        known = " already" if done["outcome"] == "unchanged" else ""
        words = {
            "supersedes": "supersedes",
            "duplicate": "says the same as",
            "contradicts": "contradicts",
            "compatible": "holds beside",
            "unrelated": "has nothing to do with",
        }
        lines = [f"{pair[0]} {words[done['relation']]} {pair[1]}{known}"]
    stays = dict(done["stays"])
    lines += [
        f"  #{number} stays hidden, superseded by #{stays[number]}"
        if number in stays
        else f"  #{number} is hidden; `{door.typed(f'why {number}')}` shows it"
        for number in done["hidden"]
    ]
    return lines + [f"  #{number} shows again" for number in done["shown"]]
