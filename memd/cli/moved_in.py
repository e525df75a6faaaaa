"""The part of `memd import` that reads a memd export: all of it is taken in, or nothing.

It is checked, redacted and put together here; the daemon then takes it over at once.
"""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

from memd.cli import door, export, show
from memd.paths import private_dir

NAME = "vault"
NOUNS = {
    "summary": "memory",
    "event": "event",
    "session": "session",
    "project": "project",
    "alias": "merged project",
    "edge": "link",
    "supersession": "supersession",
    "judgment": "judgment",
    "use": "use count",
    "together": "pair count",
    "injection": "showing",
    "switch": "switched place",
    "forgotten": "forgotten key",
}
"""What people call the kinds of records, the best known first."""
STDIN = "-"
Progress = Callable[[str, int, int], None]
_LONG_S = 3_600.0
_HEAD_BYTES = 65_536


def is_export(path: Path) -> bool:
    """Whether this file begins as an export does."""
    from memd.exchange import jsonl

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return jsonl.is_header(file.readline(_HEAD_BYTES))


def run(
    file: Path, drawn: Callable[[], AbstractContextManager[Progress]], *, dry_run: bool
) -> None:
    """Import one file, or standard input. Raises BadRequest with the number of the line; or Unreachable."""
    from memd import config
    from memd.capture.redact import redact_value
    from memd.exchange import moving
    from memd.store.staging import commit, staging

    if not dry_run:
        door.call("memd/ping")  # before all the work
    settings = config.load(door.paths().config_file)
    redact = functools.partial(redact_value, entropy=settings.capture.entropy)
    now = time.time_ns() // 1_000_000
    private_dir(door.paths().data_dir)
    with staging(door.paths().database, now) as (vault, name):
        with drawn() as progress, _opened(file) as (lines, size):
            draw = functools.partial(_draw, progress, str(file), size)
            counts = moving.stage(lines, vault, redact, draw)
        if dry_run:
            print(f"would read {export.totals(counts)}; the file is whole")
            return
        commit(vault)
        merged = door.call("memd/import/vault", _LONG_S, staged=name)
    print(f"read {export.totals(counts)}")
    print("\n".join(_lines(merged)))


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file, or take standard input; and how many bytes there are, 0 if nobody can know."""
    if str(file) == STDIN:
        yield sys.stdin.buffer, 0
        return
    with file.open("rb") as lines:
        yield lines, file.stat().st_size


def _draw(progress: Progress, path: str, size: int, done: int) -> None:
    progress(path, done, max(size, done))


def _lines(merged: dict[str, Any]) -> Iterator[str]:
    said = {
        "created": "new",
        "known": "known already",
        "revised": "newer than what was here",
        "forgotten": "left out, for they were forgotten on purpose",
        "left": "left out, for they cannot stand beside what is here",
    }
    for outcome, words in said.items():
        found = [
            show.plural(count, noun)
            for kind, noun in NOUNS.items()
            if (count := merged[outcome].get(kind))
        ]
        if found:
            yield f"{words}: {', '.join(found)}"
    if merged["hidden"]:
        hidden = show.plural(merged["hidden"], "memory")
        yield f"hidden: {hidden} by a newer value of the same topic key"
