"""How memd is, for a person or a health check: exit 0 healthy, 1 degraded, 2 not running. Light.

The JSON is described field by field in daemon/status.py. With no daemon there is less to tell, but
the vault and what waits in the spool are told all the same. Not here: deciding what is healthy.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memd.cli import daemon_call, output
from memd.daemon import process
from memd.errors import BadRequest, Broken, ConfigError
from memd.paths import Paths

HEALTHY, DEGRADED, NOT_RUNNING = 0, 1, 2
_COLOURS = {"healthy": "32", "degraded": "33"}
_RED = "31"
_ROOM_FACTS = 4
_TIMES_FROM = 10**11
"""Milliseconds: no room counts that far."""
_NOTHING = 65_536
"""Bytes free with which no daemon starts."""
_AHEAD_MS = 60_000
_NO_COUNTS = {"restarts", "interval_s", "took_ms"}
_STARTERS = {
    "hand": "hand, a hook or an agent",
    "systemd socket": "systemd, when somebody connected",
}

Status = dict[str, Any]


def report(*, as_json: bool) -> int:
    """Print how memd is; the exit status."""
    try:
        status = ask(daemon_call.paths())
    except ValueError as error:
        print(f"memd: {error}", file=sys.stderr)
        return DEGRADED
    if as_json:
        _print(json.dumps(status, ensure_ascii=False))
    else:
        _print("\n".join(lines(status, time.time() * 1000, is_tty=sys.stdout.isatty())))
    return {"healthy": HEALTHY, "degraded": DEGRADED}.get(status["health"], NOT_RUNNING)


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Whoever read us has seen enough; nothing may be flushed into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def ask(paths: Paths) -> Status:
    """Return what the daemon says of itself, or what can be seen without one."""
    try:
        return daemon_call.call(
            "memd/status", daemon_call.QUICK_S, directory=daemon_call.here()
        )
    except BadRequest:
        # A daemon of an older version, until it is restarted.
        return daemon_call.call("memd/status", daemon_call.QUICK_S)
    except Broken as error:
        return _absent(paths, error.message)


def _absent(paths: Paths, reason: str) -> Status:
    holder = process.find_lock_holder(paths.lock)
    if holder is not None:
        reason = f"a daemon (pid {holder.pid}) holds the vault and does not answer; it may be starting"
    elif wrong := _misconfigured(paths) or _not_started(paths):
        reason = wrong
    files, size = _spooled(paths.spools)
    vault = sum(_size(Path(paths.database + suffix)) for suffix in ("", "-wal"))
    return {
        "running": False,
        "health": "not running",
        "reasons": [reason],
        "pid": holder.pid if holder else None,
        "socket": paths.socket,
        "log": paths.log,
        "vault": {"name": paths.vault, "path": paths.database, "bytes": vault},
        "spool": {"bytes": size, "files": files},
    }


def _misconfigured(paths: Paths) -> str | None:
    """Say what no daemon could start with; only looked for when there is none, and a file is."""
    try:
        if not Path(paths.config_file).exists():
            return None
    except OSError as error:  # such as a name that is too long
        return f"no daemon can start: {error}"
    from memd import config

    try:
        config.load_config(paths.config_file)
    except ConfigError as error:
        return f"no daemon can start: {error.message}"
    return None


def _not_started(paths: Paths) -> str | None:
    """Say why the last daemon did not start, if that is the last that was heard of one."""
    from memd.daemon import process

    said = process.read_start_failure(paths.log)
    if said is not None:
        return f"the last daemon could not start: {said}"
    with contextlib.suppress(OSError):
        disk = os.statvfs(Path(paths.data_dir))
        if disk.f_flag & os.ST_RDONLY:
            return f"no daemon can start: the disk of {paths.data_dir} is mounted read-only; make it writable"
        if disk.f_bavail * disk.f_frsize < _NOTHING:
            return f"no daemon can start: the disk of {paths.data_dir} is full; make room"
    return None


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _spooled(directories: Sequence[str]) -> tuple[int, int]:
    """Count the files that hold something, and their bytes."""
    sizes: list[int] = []
    for directory in directories:
        with contextlib.suppress(OSError):
            sizes += [size for path in Path(directory).iterdir() if (size := _size(path))]
    return len(sizes), sum(sizes)


def lines(status: Status, now: float, *, is_tty: bool) -> Iterator[str]:
    """Tell a status to a person."""
    health = status["health"]
    word = f"\x1b[{_COLOURS.get(health, _RED)}m{health}\x1b[0m" if is_tty else health
    if not status["running"] and status["pid"]:
        word = "not answering"  # for programs it is `not running` all the same
    yield f"memd is {word}" + (_up(status) if status["running"] else "")
    yield from (f"  - {output.line(reason)}" for reason in status["reasons"])
    yield from output.table(_rows(status, now))
    for room in status.get("rooms", ()):
        yield f"  {room['name']:<13} {_room(room, now)}"


def _up(status: Status) -> str:
    versions = status["versions"]
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("python", "sqlite", "mcp"))
    return f": {versions['memd']}, pid {status['pid']}, up {output.span(status['uptime_s'])} ({libraries})"


def _rows(status: Status, now: float) -> Iterator[tuple[str, str]]:
    vault, spool = status["vault"], status["spool"]
    if status.get("here"):
        yield "here", place(status["here"])
    schema = f", schema {vault['schema']}" if "schema" in vault else ""
    exists = output.size(vault["bytes"]) if vault["bytes"] else "not made yet"
    yield "vault", f"{vault['name']}, {exists}{schema}, {vault['path']}"
    yield "socket", status["socket"]
    yield "log", status["log"]
    if status["running"]:
        starter: str = status.get("started_by", "hand")
        yield "started by", _STARTERS.get(starter, starter)
        yield from _contents(status, now)
    waiting = f"{output.size(spool['bytes'])} in {output.plural(spool['files'], 'file')}"
    yield "spool", f"{waiting} for the daemon to take in" if spool["files"] else "empty"
    if status["running"]:
        yield "rooms", ""


def place(here: dict[str, Any]) -> str:
    """Tell which project a directory belongs to, and why, and what is switched off there."""
    is_noun = here["reason"].startswith("the ") and not here["reason"].startswith("the session")
    told = f"{here['name']}, because {'it is ' if is_noun else ''}{here['reason']}"
    switch = here["switch"]
    is_on = switch["captures"] and switch["recalls"]
    return output.line(told if is_on else f"{told}; {switch['reason']}")


def _contents(status: Status, now: float) -> Iterator[tuple[str, str]]:
    booked, events, summaries = status["books"], status["events"], status["summaries"]
    parts = " + ".join(
        f"{booked[k]:,} {k}" for k in ("stored", "duplicate", "filtered", "refused")
    )
    yield (
        "books",
        f"{booked['received']:,} received {'=' if booked['balanced'] else '≠'} {parts}",
    )
    for outcome, reasons in booked["reasons"].items():
        if reasons:
            yield "", f"{outcome}: {output.counts(reasons)}"
    yield (
        "events",
        f"{events['count']:,}, {events['pending']:,} to distil, last {_ago(events['last_at'], now)}",
    )
    shown = ", ".join(
        f"{summaries[key]:,} {key.replace('_', ' ')}"
        for key in ("superseded", "pinned", "to_index", "to_consolidate")
    )
    yield "summaries", f"{summaries['count']:,}, {shown}"
    embedder = status["embedder"]
    yield (
        "embedder",
        output.line(
            f"{embedder['active']} ({embedder['configured']}: {embedder['why']}), space {embedder['space']}"
        ),
    )
    if embedder.get("learned"):
        yield "", output.line(_learned(embedder["learned"], now))


def _ago(at: int | None, now: float) -> str:
    if at is None:
        return "never"
    if at > now + _AHEAD_MS:
        return "dated ahead of this clock; see `memd doctor`"
    return f"{output.span((now - at) / 1000)} ago"


def _learned(learned: dict[str, Any], now: float) -> str:
    ago = output.span((now - learned["since"]) / 1000)
    told = f"{learned['model']} ({learned['provider']}): {learned['state']} for {ago}"
    if learned["space"]:
        told += f", {learned['coverage']:.0%} filled"
        told += f" ({learned['missing']:,} to go)" if learned["missing"] else ""
    if learned["asked"]:
        told += f", {learned['asked']:,} asked, {learned['failed']:,} failed, {learned['timeouts']:,} late"
    return told + (f", {learned['p50_ms']:g} ms" if learned["p50_ms"] is not None else "")


def _room(room: dict[str, Any], now: float) -> str:
    again = f", {output.plural(room['restarts'], 'restart')}" if room["restarts"] else ""
    error = f", last error: {output.line(room['last_error'])}" if room["last_error"] else ""
    why = f"; {output.line(room['why'])}" if room.get("why") else ""
    facts = [*_counts(room)[:_ROOM_FACTS], *_last(room.get("last"), now)]
    return f"{room['state']}{again}{error}" + (f"; {', '.join(facts)}" if facts else "") + why


def _counts(said: dict[str, Any]) -> list[str]:
    """Tell what a room counts; its times and settings are for programs."""
    return [
        f"{name} {value:,}"
        for name, value in said.items()
        if type(value) is int and value < _TIMES_FROM and name not in _NO_COUNTS
    ]


def _last(last: dict[str, Any] | None, now: float) -> list[str]:
    """Tell of a room's last run, if it has runs."""
    if not last:
        return []
    found = ", ".join(_counts(last))
    ago = f"last run {output.span((now - last['at']) / 1000)} ago"
    return [f"{ago} ({found})" if found else ago]
