"""`memd reindex`: compute everything derived anew; with `--embeddings`, what a learned model makes."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show

_LONG_S = 3_600.0
_LOOK_S = 0.25
_LINES = 10
"""Lines that tell of the progress where there is no terminal."""

Said = dict[str, Any]
Drawn = Callable[[Said], None]


def run(
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
    door.call("memd/reindex", _LONG_S)
    count = door.call("memd/status")["summaries"]["count"]
    print(f"done in {time.monotonic() - started:.1f} s: {show.plural(count, 'memory')}")


def _embeddings(started: float) -> None:
    """Have everything embedded anew, and watch."""
    begun = door.call("memd/reindex", _LONG_S, embeddings=True)["report"]
    try:
        with _progress(begun["space"]) as draw:
            said = _watch(draw)
    except KeyboardInterrupt:
        print("it goes on in the background; `memd status` tells how far it is")
        raise
    took = time.monotonic() - started
    print(f"done in {took:.1f} s: {show.plural(said['done'], 'passage')} in {said['space']}")


def _watch(draw: Drawn) -> Said:
    """Show how far it is until nothing is missing."""
    while True:
        rooms = door.call("memd/status")["rooms"]
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
        task = bar.add_task(show.line(space), total=None, left="")

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
        return f"waits: {show.line(said['why'])}"
    return "" if said["eta_s"] is None else f"{show.span(said['eta_s'])} left"
