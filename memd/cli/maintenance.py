"""consolidate, reindex, vacuum."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from memd.cli import daemon_call, output

# MERGED from memd.cli.consolidate:
# MERGED `memd consolidate`: tidy near-duplicates away now, see what that would do, or take it back.


_ROUNDS_MAX = 1_000
_RUNS = 20


def run_consolidate(
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
        daemon_call.refuse("--runs only lists; leave out --undo and --dry-run")
    if runs:
        found: Any = daemon_call.call("memd/consolidate/runs", limit=_RUNS)["runs"]
        lines = _runs(found)
    elif undo:
        found = daemon_call.call("memd/consolidate/undo", what=undo, dry_run=dry_run)["report"]
        lines = _undone(found)
    elif dry_run:
        found = daemon_call.call("memd/consolidate", dry_run=True)["report"]
        lines = _pairs(found)
    else:
        found = _rounds()
        lines = _told(found)
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(lines))


def _rounds() -> list[dict[str, Any]]:
    """One round after another, until nothing is left to be looked at."""
    ticks: list[dict[str, Any]] = []
    while len(ticks) < _ROUNDS_MAX:
        ticks.append(daemon_call.call("memd/consolidate", dry_run=False)["report"])
        if not ticks[-1]["has_more"]:
            break
    return ticks


def _told(ticks: list[dict[str, Any]]) -> Iterator[str]:
    total = {
        name: sum(tick[name] for tick in ticks)
        for name in ("examined", "superseded", "contradicts", "similar")
    }
    yield (
        f"looked at {output.plural(total['examined'], 'memory')}: {total['superseded']:,} hidden by"
        f" newer ones, {output.plural(total['contradicts'], 'contradiction')},"
        f" {total['similar']:,} similar and kept"
    )
    done = [tick["run"] for tick in ticks if tick["run"] is not None]
    if done:
        names = ", ".join(f"r{number}" for number in done)
        yield f"{'run' if len(done) == 1 else 'runs'} {names}; `{daemon_call.typed(f'consolidate --undo r{done[-1]}')}` takes it back"
    if ticks[-1]["waiting"]:
        yield f"{output.plural(ticks[-1]['waiting'], 'memory')} not indexed yet; the next round takes them"


def _pairs(found: list[dict[str, Any]]) -> Iterator[str]:
    if not found:
        yield "no pair to decide: nothing new says what an older memory says"
    for pair in found:
        newer, older = f"#{pair['newer_id']}", f"#{pair['older_id']}"
        yield f"{newer} {_VERBS[pair['verdict']]} {older}  ({_measure(pair)})"
        yield f"    because: {output.line(pair['finding'])}"
        yield f"    {newer}  {output.line(pair['newer'])}"
        yield f"    {older}  {output.line(pair['older'])}"


_VERBS = {
    "supersedes": "would hide",
    "contradicts": "contradicts",
    "similar_to": "is similar to, and stays beside,",
}


def _measure(pair: dict[str, Any]) -> str:
    if pair["cosine"] is None:
        return "the same words"
    space = f" in {output.line(pair['space'])}" if pair["space"] else ""
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
        taken = f"  (taken back {output.minute(one['undone_at'])})" if one["undone_at"] else ""
        yield (
            f"r{one['id']}  {output.minute(one['at'])}  looked at {one['examined']:,}, {one['superseded']:,} hidden,"
            f" {output.plural(one['contradicts'], 'contradiction')}, {one['similar']:,} similar{taken}"
        )


# MERGED from memd.cli.reindex:
# MERGED `memd reindex`: compute everything derived anew; with `--embeddings`, what a learned model makes.


_LONG_S = 3_600.0
_LOOK_S = 0.25
_LINES = 10
"""Lines that tell of the progress where there is no terminal."""

Said = dict[str, Any]
Drawn = Callable[[Said], None]


def run_reindex(
    embeddings: Annotated[
        bool,
        typer.Option(
            "--embeddings",
            help="Only the vectors of the learned model; it goes on if you interrupt it.",
        ),
    ] = False,
) -> None:
    """Rebuild full text and vectors from the memories. Always safe.

    The vectors of a learned model follow in the background; `memd status` tells how far they are.
    """
    started = time.monotonic()
    if embeddings:
        _embeddings(started)
        return
    daemon_call.call("memd/reindex", _LONG_S)
    count = daemon_call.call("memd/status")["summaries"]["count"]
    print(f"done in {time.monotonic() - started:.1f} s: {output.plural(count, 'memory')}")


def _embeddings(started: float) -> None:
    """Have everything embedded anew, and watch."""
    begun = daemon_call.call("memd/reindex", _LONG_S, embeddings=True)["report"]
    try:
        with _progress(begun["space"]) as draw:
            said = _watch(draw)
    except KeyboardInterrupt:
        print("it goes on in the background; `memd status` tells how far it is")
        raise
    took = time.monotonic() - started
    print(f"done in {took:.1f} s: {output.plural(said['done'], 'passage')} in {said['space']}")


def _watch(draw: Drawn) -> Said:
    """Show how far it is until nothing is missing."""
    while True:
        rooms = daemon_call.call("memd/status")["rooms"]
        said: Said = next(room for room in rooms if room["name"] == "backfill")
        draw(said)
        if not said["missing"]:
            return said
        time.sleep(_LOOK_S)


@contextlib.contextmanager
def _progress(space: str) -> Iterator[Drawn]:
    """Draw a bar on a terminal; else say now and then on stderr how far it is."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TextColumn("{task.fields[left]}"))  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(output.line(space), total=None, left="")

        def draw(said: Said) -> None:
            total = said["done"] + said["missing"]
            bar.update(task, completed=said["done"], total=total, left=_left(said))

        yield draw


class _Lines:
    """A line whenever a tenth more is done, or the model stops answering."""

    def __init__(self) -> None:
        self._last: tuple[int, str] | None = None

    def __call__(self, said: Said) -> None:
        total = said["done"] + said["missing"]
        now = (_LINES * said["done"] // total if total else _LINES, said["why"])
        if now != self._last:
            self._last = now
            print(f"{said['done']:,} of {total:,}  {_left(said)}".rstrip(), file=sys.stderr)


def _left(said: Said) -> str:
    """Say how long it will take, or why it waits."""
    if said["why"]:
        return f"waits: {output.line(said['why'])}"
    return "" if said["eta_s"] is None else f"{output.span(said['eta_s'])} left"


# MERGED from memd.cli.vacuum:
# MERGED `memd vacuum`: cut down what is old, drop vectors that no model in use can compare, give room back.


def run_vacuum(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would go, and how many bytes.")
    ] = False,
) -> None:
    """Cut down what is old, drop the vectors of models that are not used any more, shrink the vault.

    What counts as old is said under `retention` in config.toml. No memory goes that has not expired long ago.

    Searches go on; what agents do meanwhile is kept by their hooks until the file is written.
    """
    said = daemon_call.call("memd/vacuum", _LONG_S, dry_run=dry_run)["report"]
    print("\n".join(_lines(said)))


def _lines(said: dict[str, Any]) -> Iterator[str]:
    yield from _aged(said["retention"])
    verb = "would drop" if said["is_dry_run"] else "dropped"
    for one in said["dropped"]:
        count, size = output.plural(one["vectors"], "vector"), output.size(one["bytes"])
        yield f"{verb} {output.line(one['space'])}: {count}, {size}"
    if not said["dropped"]:
        yield "no space of vectors that is not in use"
    if said["note"]:
        yield output.line(said["note"])
    if said["is_dry_run"]:
        size = said["free"] + sum(one["bytes"] for one in said["dropped"])
        size += said["retention"]["bytes"]
        yield f"would free about {output.size(size)} of {output.size(said['before'])}"
    else:
        freed = max(0, said["before"] - said["after"])
        yield f"freed {output.size(freed)}: {output.size(said['before'])} → {output.size(said['after'])}"


def _aged(aged: dict[str, Any]) -> Iterator[str]:
    verb = "would " if aged["is_dry_run"] else ""
    events, size = output.plural(aged["compacted"], "event"), output.size(aged["bytes"])
    if aged["compacted"]:
        cut = f"{verb}cut down {events} older than {aged['days']} days to what is cited"
        yield f"{cut}: {size}"
    if aged["expired"]:
        past = "drop" if verb else "dropped"
        yield f"{verb}{past} {output.plural(aged['expired'], 'memory')} that expired long ago"
    if aged["archived"]:
        yield f"{verb}hide {output.plural(aged['archived'], 'memory')} that no answer ever returned"
    if not (aged["compacted"] or aged["expired"] or aged["archived"]):
        yield "nothing that is old enough to cut down"
