"""`memd vacuum`: cut down what is old, drop vectors that no model in use can compare, give room back."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show

_LONG_S = 3_600.0


def run(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would go, and how many bytes.")
    ] = False,
) -> None:
    """Cut down what is old, drop the vectors of models that are not used any more, shrink the vault.

    What counts as old is said under `retention` in config.toml. No memory goes that has not expired long ago.

    Searches go on; what agents do meanwhile is kept by their hooks until the file is written.
    """
    said = door.call("memd/vacuum", _LONG_S, dry_run=dry_run)["report"]
    print("\n".join(_lines(said)))


def _lines(said: dict[str, Any]) -> Iterator[str]:
    yield from _aged(said["retention"])
    verb = "would drop" if said["is_dry_run"] else "dropped"
    for one in said["dropped"]:
        count, size = show.plural(one["vectors"], "vector"), show.size(one["bytes"])
        yield f"{verb} {show.line(one['space'])}: {count}, {size}"
    if not said["dropped"]:
        yield "no space of vectors that is not in use"
    if said["note"]:
        yield show.line(said["note"])
    if said["is_dry_run"]:
        size = said["free"] + sum(one["bytes"] for one in said["dropped"])
        size += said["retention"]["bytes"]
        yield f"would free about {show.size(size)} of {show.size(said['before'])}"
    else:
        freed = max(0, said["before"] - said["after"])
        yield f"freed {show.size(freed)}: {show.size(said['before'])} → {show.size(said['after'])}"


def _aged(aged: dict[str, Any]) -> Iterator[str]:
    verb = "would " if aged["is_dry_run"] else ""
    events, size = show.plural(aged["compacted"], "event"), show.size(aged["bytes"])
    if aged["compacted"]:
        cut = f"{verb}cut down {events} older than {aged['days']} days to what is cited"
        yield f"{cut}: {size}"
    if aged["expired"]:
        past = "drop" if verb else "dropped"
        yield f"{verb}{past} {show.plural(aged['expired'], 'memory')} that expired long ago"
    if aged["archived"]:
        yield f"{verb}hide {show.plural(aged['archived'], 'memory')} that no answer ever returned"
    if not (aged["compacted"] or aged["expired"] or aged["archived"]):
        yield "nothing that is old enough to cut down"
