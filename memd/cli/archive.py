"""`memd export`, `import FILE`, `backup` and `restore`: whole vaults as files. Most work without a daemon."""

import contextlib
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from typer import Argument, Option

from memd import __version__
from memd.cli import daemon_call, output
from memd.cli.daemon import start, stop
from memd.cli.terminal import DryRunOption, YesOption, confirm, print_result, progress_bar, waiting
from memd.daemon import process
from memd.errors import AlreadyRunning
from memd.paths import private_dir

if TYPE_CHECKING:
    from memd.daemon.backup import Backup
    from memd.store.backup import Progress

T = TypeVar("T")
FileProgress = Callable[[str, int, int], None]
"""Takes the file that is read, the bytes read so far, and the bytes in all."""

STDIN = STDOUT = "-"
VAULT_SOURCE = "vault"
"""The name of an export file as a source of `memd import`."""
RECORD_NOUNS = {
    "summary": "memory", "alias": "merged project", "edge": "link", "use": "use count", "together": "pair count",
    "forgotten": "forgotten key",
}  # fmt: skip
"""Kinds of records in an export that people call otherwise."""
_KINDS_COUNTED = ("summary", "event", "session", "project")
_HEADER_BYTES_MAX = 65_536
_RESTORE_ATTEMPTS_MAX = 5
"""Times that a restore stops a daemon that an agent has started again meanwhile."""


# ── export ───────────────────────────────────────────────────────────────────────────────────────


def run_export(
    file: str = Argument(STDOUT, metavar="FILE", help="A new file; - is standard output."),
    project: str | None = Option(None, help="Only this project: a name, a key or a directory."),
) -> None:
    """Write everything that is remembered to a file that `memd import FILE` reads into any vault.

    An import gives memories new numbers (#12); `memd backup` keeps them.
    """
    from memd.daemon import backup
    from memd.transfer import archive

    if file == STDOUT and sys.stdout.isatty():
        daemon_call.fail("name a file: `memd export FILE`; or use a pipe: `memd export - | …`")
    name = None if project is None else daemon_call.read_project(project)
    if file != STDOUT:
        # Before it is written: a killed export leaves a part of it.
        backup.record_copy(daemon_call.paths(), str(Path(file).expanduser()), _now())
    with waiting("writing"), open_new_file(file) as write:
        counts = archive.export_vault(daemon_call.paths().database, __version__, write, name)
    records = output.plural(sum(counts.values()), "record")
    message = f"wrote {records} to {output.one_line(file)}: {format_totals(counts)}"
    print(message, file=sys.stderr if file == STDOUT else sys.stdout)


def format_totals(counts: dict[str, int]) -> str:
    """Format how many memories, events, sessions and projects there are."""
    return ", ".join(_count_records(counts.get(kind, 0), kind) for kind in _KINDS_COUNTED)


def _count_records(count: int, kind: str) -> str:
    return output.plural(count, RECORD_NOUNS.get(kind, kind))


def _now() -> int:
    """The time, UTC milliseconds."""
    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def open_new_file(file: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to a file, which gets its name only when it is complete."""
    if file == STDOUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    target = Path(file).expanduser()
    if target.exists() or target.is_symlink():
        daemon_call.fail(f"{file} exists; name a new file")
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


_PROGRESS_LINES = 10
"""At most, where there is no terminal."""


@contextlib.contextmanager
def show_progress() -> Iterator[FileProgress]:
    """Draw how much of the files is read; where there is no terminal, print at most one line a tenth to stderr."""
    last_path = last_line = ""
    read = printed = 0

    def show(path: str, done: int, total: int) -> None:
        nonlocal last_path, last_line, read, printed
        if is_terminal:
            update(done, total, _format_done(done, total))  # no path: it takes the bar's room
        elif last_line and path != last_path and read > printed:
            print(last_line, file=sys.stderr)
            printed = read
        read = done * _PROGRESS_LINES // max(total, 1)
        last_path, last_line = path, f"{_format_done(done, total)}  {path}"

    is_terminal = sys.stderr.isatty()
    with progress_bar("reading") as update:
        yield show
    if last_line and not is_terminal:
        print(last_line, file=sys.stderr)


def _format_done(done: int, total: int) -> str:
    return f"{output.format_size(done)} of {output.format_size(total)}"


# ── import FILE ──────────────────────────────────────────────────────────────────────────────────


def is_export(path: Path) -> bool:
    """Return whether this file begins as an export does."""
    from memd.transfer import archive

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return archive.is_header(file.readline(_HEADER_BYTES_MAX))


def import_export(file: Path, *, dry_run: bool) -> None:
    """Import all of an export file, or nothing if a line is wrong.

    The file is checked, redacted and staged here; the daemon then merges it in one transaction. Raises
    BadRequest with the number of a line, or Unreachable.
    """
    from memd import config
    from memd.capture.redact import redact_value
    from memd.store.import_rows import commit_staging, staging_vault
    from memd.transfer import archive

    if not dry_run:
        daemon_call.call("memd/ping")  # fail before all the work
    settings = config.load_config(daemon_call.paths().config_file)
    redact = functools.partial(redact_value, entropy=settings.capture.entropy)
    now = _now()
    private_dir(daemon_call.paths().data_dir)
    is_stdin = str(file) == STDIN
    source = contextlib.nullcontext(sys.stdin.buffer) if is_stdin else file.open("rb")
    size = 0 if is_stdin else file.stat().st_size
    with staging_vault(daemon_call.paths().database, now) as (vault, name):
        with show_progress() as progress, source as lines:
            counts = archive.stage_export(
                lines, vault, redact, lambda done: progress(str(file), done, max(size, done))
            )
        result: dict[str, Any] = {"read": counts}
        if dry_run:
            line = f"would read {format_totals(counts)}; the file is complete"
            print_result(result, [line])
            return
        commit_staging(vault)
        with waiting("merging"):
            merged = daemon_call.call("memd/import/vault", daemon_call.LONG_S, staged=name)
    said = [f"read {format_totals(counts)}", *_format_merged(merged)]
    print_result({**result, **merged}, said)


def _format_merged(merged: dict[str, Any]) -> Iterator[str]:
    labels = {
        "created": "new",
        "known": "already known",
        "revised": "newer than in this vault",
        "forgotten": "left out because they were forgotten on purpose",
        "left": "left out because they conflict with this vault",
    }
    for outcome, label in labels.items():
        if counts := [
            _count_records(count, kind) for kind, count in merged[outcome].items() if count
        ]:
            yield f"{label}: {', '.join(counts)}"
    if merged["hidden"]:
        hidden = output.plural(merged["hidden"], "memory")
        yield f"hidden: {hidden} by a newer value of the same topic key"


# ── backup ───────────────────────────────────────────────────────────────────────────────────────


def run_backup(
    to: str | None = Option(None, metavar="DIR", help="Default: `backups` beside the vault."),
    keep: int = Option(5, min=1, help="Number of backups to keep there."),
    listed: bool = Option(False, "--list", help="List the backups, and make none."),
) -> None:
    """Copy the vault to a dated file while it is in use, check the copy, and remove the oldest ones.

    `memd restore FILE` puts one back. A vault that a restore has replaced stays until you remove it.
    """
    from memd.daemon import backup

    paths = daemon_call.paths()
    if listed:
        directory = to or backup.backup_dir(paths)
        found = backup.list_backups(directory, paths.vault)
        entries = {"backups": [_describe_backup(one) for one in found]}
        print_result(entries, _format_backups(found, directory))
        return
    with _show_copying() as progress:
        made = backup.create_backup(paths, to, keep, _now(), progress)
    memories = output.plural(made.rows["summaries"], "memory")
    path, size = output.one_line(made.backup.path), output.format_size(made.backup.size)
    removed = (f"removed {output.one_line(pruned)}" for pruned in made.pruned)
    print_result(
        {**_describe_backup(made.backup), "pruned": list(made.pruned)},
        (f"{path}: {size}, {memories}, checked", *removed),
    )


def _format_backups(backups: "list[Backup]", directory: str) -> Iterator[str]:
    if not backups:
        yield f"no backups in {output.one_line(directory)}"
    for one in backups:
        replaced = "  (replaced by a restore)" if one.is_aside else ""
        at, size = output.format_time(one.at), output.format_size(one.size)
        yield f"{at}  {size:>9}  {output.one_line(one.path)}{replaced}"


def _describe_backup(one: "Backup") -> dict[str, object]:
    return {"path": one.path, "at": one.at, "size": one.size, "is_aside": one.is_aside}


@contextlib.contextmanager
def _show_copying() -> Iterator["Progress"]:
    with progress_bar("copying") as update:
        yield lambda done, total: update(done, total, f"{done / max(total, 1):.0%}")


# ── sync ─────────────────────────────────────────────────────────────────────────────────────────


def run_sync(
    place: str | None = Argument(
        None, metavar="[PLACE]", help="A folder, a git repository or ssh://host/path."
    ),
    *,
    new_key: bool = Option(False, "--new-key", help="Only make and show this machine's age key."),
    dry_run: DryRunOption = False,
) -> None:
    """Share memories with your other machines, by a place that all of them reach.

    Sends what is new here and brings what is new there. What you forget is forgotten on every machine.
    With a place under `sync` in config.toml the daemon does it every few minutes.
    """
    from memd.config import load_config
    from memd.sharing import places

    paths = daemon_call.paths()
    settings = load_config(paths.config_file).sync
    if new_key:
        path = os.path.expanduser(settings.identity) or paths.age_key  # noqa: PTH111  # as it was named
        _make_key(path)
        return
    named = place or settings.place
    if not named:
        daemon_call.fail(
            "name a place, or set place = … under [sync] in config.toml: `memd sync ~/Sync/memd`"
        )
    if place and "://" not in place and not re.match(r"[^/]+@[^/]+:", place):
        named = os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111  # links stay
    where = places.parse_target(named, paths.mirrors_dir, asks=sys.stdin.isatty())
    with waiting("syncing"), places.hold_place(where, paths.mirrors_dir):
        device = daemon_call.call("memd/sync")["device"]
        where.fetch(device)
        done = daemon_call.call(
            "memd/sync", daemon_call.LONG_S, place=where.name, folder=where.folder, dry_run=dry_run
        )
        if not dry_run:
            where.publish(device)
    report = done["report"]
    is_git = isinstance(where, places.CloneTarget)
    print_result(report, _format_sync(report, keeps_history=is_git))


def _make_key(path: str) -> None:
    """Make this machine's key unless it has one, and say what to write into config.toml."""
    from memd.sharing import chunks

    is_new = not os.path.lexists(path)
    public = [chunks.create_identity(path)] if is_new else chunks.read_public_keys(path)
    words = "made; keep it to this machine" if is_new else "is this machine's key already"
    lines = [
        f"{output.one_line(path)} {words}; public key:",
        *(f"  {one}" for one in public),
        "under [sync] in config.toml of each machine, name the public keys of all of them: recipients = [...]",
    ]
    print_result({"path": path, "new": is_new, "public_keys": public}, lines)


def _format_sync(report: dict[str, Any], *, keeps_history: bool) -> Iterator[str]:
    would = "would be " if report["is_dry_run"] else ""
    received = output.plural(sum(report["received"].values()), "record")
    devices = ", ".join(sorted(map(output.one_line, report["devices"].values())))
    sent = output.plural(report["sent"], "record")
    yield f"{would}sent: {sent}; {would}received: {received}" + (
        f" of {devices}" if devices else ""
    )
    if report["forgotten"]:
        count = output.plural(report["forgotten"], "memory")
        yield f"{would}forgotten here, because forgotten on another machine: {count}"
    if report["rewritten"]:
        yield "this machine's log was written anew: something was erased, or keys or machines have changed"
        if keeps_history:
            yield "git keeps the former commits, with the former log: see docs/machines.md"
    if report["waiting"]:
        yield f"{output.plural(report['waiting'], 'chunk')} of memories that have not arrived yet; the next sync merges them"
    for device, count in report["newer"].items():
        name = output.one_line(report["devices"].get(device) or device)
        yield f"{output.plural(count, 'record')} of {name}: written by a newer memd, left where they are; update memd here"
    for one in report["refused"]:
        yield f"refused: {one['chunk']} of device {one['device']}: {output.one_line(one['reason'])}"
    for one in report["same"]:
        yield f"{one['here']} and {one['there']} are clones of {one['remote']}; to make them one project:"
        yield f"  {daemon_call.format_command('project merge')} {one['there']} {one['here']}"


# ── restore ──────────────────────────────────────────────────────────────────────────────────────


def run_restore(
    file: Path | None = Argument(None, metavar="[FILE]", help="Default: the latest intact backup."),
    salvage: bool = Option(False, "--salvage", help="Read what is left of a damaged one."),
    yes: YesOption = False,
) -> None:
    """Check a backup and put it in place of the vault. The replaced vault stays beside the backups.

    With --salvage, make a vault of all that can be read of a damaged one, and count what cannot.

    The daemon stops meanwhile; hooks spool new events. Memories that were forgotten after the backup do
    not come back. If anything fails, the old vault stays.
    """
    from memd.daemon import backup

    daemon_call.require_user(
        " ".join(["restore", *(["--salvage"] if salvage else []), str(file or "")]).strip()
    )
    paths = daemon_call.paths()
    if salvage:
        _salvage_vault(None if file is None else str(file.expanduser().absolute()), yes=yes)
        return
    source = _find_last_backup() if file is None else file.expanduser().absolute()
    rows = backup.check_backup(paths, str(source))
    memories = output.plural(rows.get("summaries", 0), "memory")
    events = output.plural(rows.get("events", 0), "event")
    print(f"{output.one_line(str(file or source))} is intact: {memories}, {events}")
    if not yes:
        confirm(
            f"Replace the vault {paths.vault!r} by it? What only that contains will be missing;"
            " its file stays beside the backups.",
            "nothing was changed",
        )
    with _restarting_daemon():
        restored = _run_exclusively(
            lambda now, progress: backup.restore(paths, str(source), now, progress)
        )
        if restored.erased:
            erased = output.plural(restored.erased, "memory")
            print(f"{erased} did not come back, forgotten since the backup")
        if restored.rewritten:
            scrubbed = output.plural(restored.rewritten, "row")
            print(f"{scrubbed} scrubbed again, as in the replaced vault")
        if restored.aside:
            print(f"replaced vault: {output.one_line(restored.aside)}")
        print("restored")


def _find_last_backup() -> Path:
    from memd.daemon import backup

    paths = daemon_call.paths()
    found = backup.find_newest_intact(paths, _now())
    if found is None:
        advice = "name a FILE"
        if Path(paths.database).exists():
            advice += ", or rescue what can be read of the vault: `memd restore --salvage`"
        daemon_call.fail(f"there is no intact backup in {backup.backup_dir(paths)}; {advice}")
    return Path(found.path)


def _salvage_vault(file: str | None, *, yes: bool) -> None:
    from memd.daemon import backup

    paths = daemon_call.paths()
    backup.require_damaged(paths, file)
    if not yes:
        source = output.one_line(file or "the vault itself")
        confirm(
            f"Replace the vault {paths.vault!r} by what can be read of {source}?",
            "nothing was changed",
        )
    with _restarting_daemon():
        made = _run_exclusively(lambda now, _: backup.salvage(paths, file, now))
    for table, count in made.kept.items():
        if missing := made.lost.get(table, 0):
            print(f"{table}: {count:,} rescued, at least {missing:,} could not be read")
        elif count:
            print(f"{table}: {count:,}, all of them")
    if made.aside:
        print(f"replaced vault: {output.one_line(made.aside)}")
    print("salvaged; the daemon rebuilds the index when it starts")


@contextlib.contextmanager
def _restarting_daemon() -> Iterator[None]:
    """Start the daemon again at the end, whatever happens, if one runs now."""
    holder = process.find_lock_holder(daemon_call.paths().lock)
    is_running = holder is not None and not holder.why
    try:
        yield
    finally:
        if is_running:
            print(start())


def _run_exclusively(work: "Callable[[int, Progress], T]") -> T:
    """Stop the daemon and prevent a new one from starting until the work is done."""
    paths = daemon_call.paths()
    private_dir(paths.data_dir)
    attempts = 0
    while True:
        attempts += 1
        stop()
        now = _now()
        try:
            with process.hold_lock(paths.lock, now, "restore"), _show_copying() as progress:
                done = work(now, progress)
                process.log_event(paths.log, "vault_replaced", now)
        except AlreadyRunning:
            # An agent has started the daemon again.
            if attempts == _RESTORE_ATTEMPTS_MAX:
                raise
        else:
            return done
