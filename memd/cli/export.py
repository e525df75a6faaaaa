"""`memd export`: everything that is remembered, as lines that another memd takes in.

Needs no daemon, and holds none up: it reads the vault itself, as it is at one moment.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from memd import __version__
from memd.cli import door, show

STDOUT = "-"


def run(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A new file; - writes to standard output.")
    ] = STDOUT,
    project: Annotated[
        str | None, typer.Option(help="Only this project: a name, a key or a directory.")
    ] = None,
) -> None:
    """Write everything that is remembered to a file that `memd import FILE` takes in, in any vault.

    The numbers of memories (#12) belong to a vault and change; `memd backup` keeps them.
    """
    from memd.exchange import moving

    if file == STDOUT and sys.stdout.isatty():
        door.refuse("say which file: `memd export FILE`; or `memd export - | …`")
    named = None if project is None else door.place(project)
    with _sink(file) as write:
        counts = moving.export(door.paths().database, __version__, write, named)
    told = f"wrote {show.plural(sum(counts.values()), 'record')} to {show.line(file)}: {totals(counts)}"
    print(told, file=sys.stderr if file == STDOUT else sys.stdout)


def totals(counts: dict[str, int]) -> str:
    """Write how many there are of what people know by name."""
    nouns = {"summary": "memory", "event": "event", "session": "session", "project": "project"}
    return ", ".join(show.plural(counts.get(kind, 0), noun) for kind, noun in nouns.items())


@contextlib.contextmanager
def _sink(file: str) -> Iterator[Callable[[bytes], object]]:
    """Where the lines go: a file has its name only once it is whole, and replaces none."""
    if file == STDOUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    target = Path(file).expanduser()
    if target.exists() or target.is_symlink():
        door.refuse(f"{file} exists; name a new file")
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as lines:
            yield lines.write
            lines.flush()
            os.fsync(lines.fileno())
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
