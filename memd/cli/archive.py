"""export, import FILE, backup, restore."""

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar

import typer

from memd import __version__
from memd.cli import daemon_call, output
from memd.cli.daemon import start, stop
from memd.daemon import process
from memd.errors import AlreadyRunning
from memd.paths import private_dir

# MERGED from memd.cli.export:
# MERGED `memd export`: everything that is remembered, as lines that another memd takes in.
# MERGED
# MERGED Needs no daemon, and holds none up: it reads the vault itself, as it is at one moment.


STDOUT = "-"


def run_export(
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
    from memd.transfer import archive

    if file == STDOUT and sys.stdout.isatty():
        daemon_call.refuse("say which file: `memd export FILE`; or `memd export - | …`")
    named = None if project is None else daemon_call.place(project)
    with _sink(file) as write:
        counts = archive.export_vault(daemon_call.paths().database, __version__, write, named)
    told = f"wrote {output.plural(sum(counts.values()), 'record')} to {output.line(file)}: {totals(counts)}"
    print(told, file=sys.stderr if file == STDOUT else sys.stdout)


def totals(counts: dict[str, int]) -> str:
    """Write how many there are of what people know by name."""
    nouns = {"summary": "memory", "event": "event", "session": "session", "project": "project"}
    return ", ".join(output.plural(counts.get(kind, 0), noun) for kind, noun in nouns.items())


@contextlib.contextmanager
def _sink(file: str) -> Iterator[Callable[[bytes], object]]:
    """Where the lines go: a file has its name only once it is whole, and replaces none."""
    if file == STDOUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    target = Path(file).expanduser()
    if target.exists() or target.is_symlink():
        daemon_call.refuse(f"{file} exists; name a new file")
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


# MERGED from memd.cli.moved_in:
# MERGED The part of `memd import` that reads a memd export: all of it is taken in, or nothing.
# MERGED
# MERGED It is checked, redacted and put together here; the daemon then takes it over at once.


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
Progress_moved_in = Callable[[str, int, int], None]
_LONG_S = 3_600.0
_HEAD_BYTES = 65_536


def is_export(path: Path) -> bool:
    """Whether this file begins as an export does."""
    from memd.transfer import archive

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return archive.is_header(file.readline(_HEAD_BYTES))


def run_moved_in(
    file: Path, drawn: Callable[[], AbstractContextManager[Progress_moved_in]], *, dry_run: bool
) -> None:
    """Import one file, or standard input. Raises BadRequest with the number of the line; or Unreachable."""
    from memd import config
    from memd.capture.redact import redact_value
    from memd.store.import_rows import commit_staging, staging_vault
    from memd.transfer import archive

    if not dry_run:
        daemon_call.call("memd/ping")  # before all the work
    settings = config.load_config(daemon_call.paths().config_file)
    redact = functools.partial(redact_value, entropy=settings.capture.entropy)
    now = time.time_ns() // 1_000_000
    private_dir(daemon_call.paths().data_dir)
    with staging_vault(daemon_call.paths().database, now) as (vault, name):
        with drawn() as progress, _opened(file) as (lines, size):
            draw = functools.partial(_draw, progress, str(file), size)
            counts = archive.stage_export(lines, vault, redact, draw)
        if dry_run:
            print(f"would read {totals(counts)}; the file is whole")
            return
        commit_staging(vault)
        merged = daemon_call.call("memd/import/vault", _LONG_S, staged=name)
    print(f"read {totals(counts)}")
    print("\n".join(_lines(merged)))


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file, or take standard input; and how many bytes there are, 0 if nobody can know."""
    if str(file) == STDIN:
        yield sys.stdin.buffer, 0
        return
    with file.open("rb") as lines:
        yield lines, file.stat().st_size


def _draw(progress: Progress_moved_in, path: str, size: int, done: int) -> None:
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
            output.plural(count, noun)
            for kind, noun in NOUNS.items()
            if (count := merged[outcome].get(kind))
        ]
        if found:
            yield f"{words}: {', '.join(found)}"
    if merged["hidden"]:
        hidden = output.plural(merged["hidden"], "memory")
        yield f"hidden: {hidden} by a newer value of the same topic key"


# MERGED from memd.cli.backup:
# MERGED `memd backup`: a copy of the vault, proved whole, while everything goes on.
# MERGED
# MERGED Needs no daemon, and holds none up.


if TYPE_CHECKING:
    from memd.daemon.backup import Backup
    from memd.store.backup import Progress


def run_backup(
    to: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where it shall lie; else beside the vault. Only there `memd forget` names it.",
        ),
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, help="How many to keep there; older ones go.")
    ] = 5,
    listed: Annotated[
        bool, typer.Option("--list", help="Only list the backups that there are.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Copy the vault to a dated file, check the copy, and remove the oldest ones.

    `memd restore FILE` puts one back. What a restore has set aside stays until you remove it.
    """
    from memd.daemon import backup

    paths = daemon_call.paths()
    if listed:
        found = backup.list_backups(to or backup.backup_dir(paths), paths.vault)
        _list(found, to or backup.backup_dir(paths), as_json=as_json)
        return
    with progress("copying") as draw:
        made = backup.create_backup(paths, to, keep, time.time_ns() // 1_000_000, draw)
    if as_json:
        print(json.dumps({**_plain(made.backup), "pruned": list(made.pruned)}))
        return
    memories = output.plural(made.rows["summaries"], "memory")
    print(
        f"{output.line(made.backup.path)}: {output.size(made.backup.size)}, {memories}, checked"
    )
    for path in made.pruned:
        print(f"removed {output.line(path)}")


def _list(found: "list[Backup]", where: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"backups": [_plain(one) for one in found]}))
        return
    if not found:
        print(f"no backups in {output.line(where)}")
    for one in found:
        aside = "  (set aside by a restore)" if one.is_aside else ""
        print(
            f"{output.minute(one.at)}  {output.size(one.size):>9}  {output.line(one.path)}{aside}"
        )


def _plain(one: "Backup") -> dict[str, object]:
    return {"path": one.path, "at": one.at, "size": one.size, "is_aside": one.is_aside}


@contextlib.contextmanager
def progress(words: str) -> Iterator["Progress"]:
    """Draw a bar on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# MERGED from memd.cli.restore:
# MERGED `memd restore`: a backup, or what can be read of a damaged vault, takes the vault's place.
# MERGED
# MERGED What was there is set aside.


if TYPE_CHECKING:
    from memd.store.backup import Progress

T = TypeVar("T")
_TRIES = 5


def run_restore(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="A backup of a vault; else the last that is whole."
        ),
    ] = None,
    salvage: Annotated[
        bool,
        typer.Option(
            "--salvage",
            help="Take what can be read of FILE, or of the vault itself, if damaged.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Check a backup, and put it in the vault's place. The vault that is there now is set aside.

    Of a damaged vault `--salvage` makes one of all that can be read of it, and counts what cannot.

    The daemon leaves for as long as that takes; what agents say meanwhile is kept. What was forgotten
    since the backup was made does not come back. If anything fails, the old vault stays.
    """
    from memd.daemon import backup

    paths = daemon_call.paths()
    if salvage:
        _salvage(None if file is None else str(file.expanduser().absolute()), yes=yes)
        return
    source = _last() if file is None else file.expanduser().absolute()
    rows = backup.check_backup(paths, str(source))
    memories = output.plural(rows.get("summaries", 0), "memory")
    print(
        f"{output.line(str(file or source))} is whole: {memories}, {output.plural(rows.get('events', 0), 'event')}"
    )
    if not yes:
        _confirm(
            f"Put it in the place of the vault {paths.vault!r}?"
            " What is only in that will be missing; its file is set aside."
        )
    with _daemon_away():
        restored = _alone(lambda now, draw: backup.restore(paths, str(source), now, draw))
        if restored.erased:
            erased = output.plural(restored.erased, "memory")
            print(f"{erased} of it had been forgotten since, and did not come back")
        if restored.aside:
            print(f"what was there before: {output.line(restored.aside)}")
        print("restored")


def _last() -> Path:
    """The last backup that is whole."""
    from memd.daemon import backup

    paths = daemon_call.paths()
    found = backup.find_newest_intact(paths, time.time_ns() // 1_000_000)
    if found is None and not Path(paths.database).exists():
        daemon_call.refuse(
            f"there is no whole backup in {backup.backup_dir(paths)}, and no vault {paths.vault!r}; name a FILE"
        )
    if found is None:
        daemon_call.refuse(
            f"there is no whole backup in {backup.backup_dir(paths)}; name a FILE, or take what can still"
            " be read of the vault with `memd restore --salvage`"
        )
    return Path(found.path)


def _salvage(file: str | None, *, yes: bool) -> None:
    from memd.daemon import backup

    paths = daemon_call.paths()
    backup.require_damaged(paths, file)
    if not yes:
        what = output.line(file or "the vault itself")
        _confirm(f"Make the vault {paths.vault!r} anew of what can be read of {what}?")
    with _daemon_away():
        made = _alone(lambda now, _: backup.salvage(paths, file, now))
    for table, count in made.kept.items():
        if missing := made.lost.get(table, 0):
            print(f"{table}: {count:,} kept, at least {missing:,} could not be read")
        elif count:
            print(f"{table}: {count:,}, all of them")
    if made.aside:
        print(f"what was there before: {output.line(made.aside)}")
    print("salvaged; the index is made anew when the daemon runs")


@contextlib.contextmanager
def _daemon_away() -> Iterator[None]:
    """If a daemon runs, it runs again afterwards, whatever happens."""
    holder = process.find_lock_holder(daemon_call.paths().lock)
    ran = holder is not None and not holder.why
    try:
        yield
    finally:
        if ran:
            print(start())


def _alone(work: "Callable[[int, Progress], T]") -> T:
    """Have the daemon leave, and keep every other one out until it is done."""
    paths = daemon_call.paths()
    private_dir(paths.data_dir)
    for left in reversed(range(_TRIES)):
        stop()
        now = time.time_ns() // 1_000_000
        try:
            with process.hold_lock(paths.lock, now, "restore"), progress("copying") as draw:
                done = work(now, draw)
                process.log_event(paths.log, "vault_replaced", now)
                return done
        except AlreadyRunning:
            # An agent has started it again in between.
            if not left:
                raise
    raise AssertionError


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        daemon_call.refuse("nothing was changed; say --yes to mean it")
    if not typer.confirm(question):
        print("nothing was changed")
        raise typer.Exit(1)
