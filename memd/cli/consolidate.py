"""`memd consolidate`: tidy near-duplicates away now, see what that would do, or take it back."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show

_ROUNDS_MAX = 1_000
_RUNS = 20


def run(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show the pairs, and what in their text decides."),
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|ID|PAIR",
            help="Take back a run (r7), one memory (#12) or a pair (12,15).",
        ),
    ] = None,
    runs: Annotated[
        bool, typer.Option("--runs", help="List the latest runs that changed something.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Let newer memories hide older ones that say the same, and mark those that contradict.

    The daemon does so by itself every few minutes; this asks it to do so now, never beside it.

    Nothing is deleted: what is hidden can be shown again, and is then never hidden by the same one.
    """
    if runs and (undo or dry_run):
        door.refuse("--runs only lists; leave out --undo and --dry-run")
    if runs:
        found: Any = door.call("memd/consolidate/runs", limit=_RUNS)["runs"]
        lines = _runs(found)
    elif undo:
        found = door.call("memd/consolidate/undo", what=undo, dry_run=dry_run)["report"]
        lines = _undone(found)
    elif dry_run:
        found = door.call("memd/consolidate", dry_run=True)["report"]
        lines = _pairs(found)
    else:
        found = _rounds()
        lines = _told(found)
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(lines))


def _rounds() -> list[dict[str, Any]]:
    """One round after another, until nothing is left to be looked at."""
    ticks: list[dict[str, Any]] = []
    while len(ticks) < _ROUNDS_MAX:
        ticks.append(door.call("memd/consolidate", dry_run=False)["report"])
        if not ticks[-1]["has_more"]:
            break
    return ticks


def _told(ticks: list[dict[str, Any]]) -> Iterator[str]:
    total = {
        name: sum(tick[name] for tick in ticks)
        for name in ("examined", "superseded", "contradicts", "similar")
    }
    yield (
        f"looked at {show.plural(total['examined'], 'memory')}: {total['superseded']:,} hidden by"
        f" newer ones, {show.plural(total['contradicts'], 'contradiction')},"
        f" {total['similar']:,} similar and kept"
    )
    done = [tick["run"] for tick in ticks if tick["run"] is not None]
    if done:
        names = ", ".join(f"r{number}" for number in done)
        yield f"{'run' if len(done) == 1 else 'runs'} {names}; `{door.typed(f'consolidate --undo r{done[-1]}')}` takes it back"
    if ticks[-1]["waiting"]:
        yield f"{show.plural(ticks[-1]['waiting'], 'memory')} not indexed yet; the next round takes them"


def _pairs(found: list[dict[str, Any]]) -> Iterator[str]:
    if not found:
        yield "no pair to decide: nothing new says what an older memory says"
    for pair in found:
        newer, older = f"#{pair['newer_id']}", f"#{pair['older_id']}"
        yield f"{newer} {_VERBS[pair['verdict']]} {older}  ({_measure(pair)})"
        yield f"    because: {show.line(pair['finding'])}"
        yield f"    {newer}  {show.line(pair['newer'])}"
        yield f"    {older}  {show.line(pair['older'])}"


_VERBS = {
    "supersedes": "would hide",
    "contradicts": "contradicts",
    "similar_to": "is similar to, and stays beside,",
}


def _measure(pair: dict[str, Any]) -> str:
    if pair["cosine"] is None:
        return "the same words"
    space = f" in {show.line(pair['space'])}" if pair["space"] else ""
    return f"cosine {pair['cosine']:.3f}{space}"


def _undone(found: dict[str, Any]) -> Iterator[str]:
    would = "would show" if found["is_dry_run"] else "shows"
    for newer, older in found["shown"]:
        yield f"#{older} {would} again beside #{newer}"
    for newer, older in found["compatible"]:
        verb = "would be" if found["is_dry_run"] else "is"
        yield f"#{newer} {verb} compatible with #{older}: both hold"
    if not found["is_dry_run"]:
        yield "no later round does it again"


def _runs(found: list[dict[str, Any]]) -> Iterator[str]:
    if not found:
        yield "no run has changed anything yet"
    for one in found:
        taken = f"  (taken back {show.minute(one['undone_at'])})" if one["undone_at"] else ""
        yield (
            f"r{one['id']}  {show.minute(one['at'])}  looked at {one['examined']:,}, {one['superseded']:,} hidden,"
            f" {show.plural(one['contradicts'], 'contradiction')}, {one['similar']:,} similar{taken}"
        )
