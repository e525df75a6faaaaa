"""`memd status`: is memd healthy? Runs in health checks, so it loads no typer and little else.

The exit status is 0 healthy, 1 degraded, 2 not running. daemon/status.py describes the JSON field by
field; without a daemon there are fewer fields.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from memd.cli import daemon_call, output
from memd.errors import BadRequest, Broken
from memd.paths import Paths

HEALTHY, DEGRADED, NOT_RUNNING = 0, 1, 2
_EXIT_STATUS = {"healthy": HEALTHY, "degraded": DEGRADED}
_COLORS = {"healthy": "32", "degraded": "33"}
_RED = "31"
_WORKER_COUNTS_MAX = 4
"""Counts shown of each worker; the JSON has all."""
_COUNT_MAX = 10**11
"""A larger number is a time in milliseconds, not a count."""
_COSTS = ("today", "ever")
COSTS = ("definitions", "starts", "prompts", "asks", "answers")
"""What costs an agent tokens, in the order in which it meets it."""
_OUTCOMES = {
    "used": "seen used", "overruled": "overruled", "ignored": "not used", "untraceable": "not to be seen",
}  # fmt: skip
_NOT_COUNTS = {"restarts", "interval_s", "took_ms"}
_FUTURE_MS = 60_000
"""An event dated later than this after now was captured with a wrong clock."""
_STARTERS = {
    "hand": "a command, a hook or an agent",
    "systemd socket": "systemd, at the first connection",
}

StatusFields = dict[str, Any]


def report(*, as_json: bool, verbose: bool = False) -> int:
    """Print the status, in five lines or all of it; return the exit status."""
    try:
        status = fetch_status(daemon_call.paths())
    except ValueError as error:
        print(f"memd: {error}", file=sys.stderr)
        return DEGRADED
    if as_json:
        text = json.dumps(status, ensure_ascii=False)
    else:
        now, is_tty = time.time() * 1000, sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        format_ = format_status if verbose else format_brief_status
        text = "\n".join(format_(status, now, is_tty=is_tty))
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader has closed the pipe; nothing may be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _EXIT_STATUS.get(status["health"], NOT_RUNNING)


def fetch_status(paths: Paths) -> StatusFields:
    """Return the daemon's own status, or what can be seen without a daemon."""
    directory = daemon_call.current_directory()
    try:
        return daemon_call.call("memd/status", daemon_call.QUICK_S, directory=directory)
    except BadRequest:
        # A daemon of an older version does not know `directory`.
        return daemon_call.call("memd/status", daemon_call.QUICK_S)
    except Broken as error:
        from memd.daemon import process  # loads half of the standard library

        return process.describe_absence(paths, error.message)


def format_brief_status(status: StatusFields, now: float, *, is_tty: bool) -> Iterator[str]:
    """Format what most people want to know in five lines; `now` is UTC milliseconds."""
    if not status["running"]:
        yield from format_status(status, now, is_tty=is_tty)
        return
    events, summaries, vault = status["events"], status["summaries"], status["vault"]
    uptime = output.format_duration(status["uptime_s"])
    word = _paint_health(status, is_tty=is_tty)
    yield f"memd is {word} ({status['versions']['memd']}, up {uptime})"
    yield from (f"  - {output.one_line(reason)}" for reason in status["reasons"])
    sessions = f" of {output.plural(events['sessions'], 'session')}" if "sessions" in events else ""
    known = f"{output.plural(summaries['count'], 'memory')}{sessions}"
    to_judge = summaries["contradictions"]
    open_ = (
        f"; {output.plural(to_judge, 'contradiction')} to judge (`memd judge`)" if to_judge else ""
    )
    last = _format_last_event(events["last_at"], now)
    waiting = events["pending"] + summaries["to_index"]
    rows = [
        ("remembers", f"{known}{open_}"),
        ("last event", last + (f"; {waiting:,} on their way" if waiting else "")),
        ("meaning", output.one_line(_format_embedder(status["embedder"]))),
        ("vault", f"{vault['name']}, {output.format_size(vault['bytes'])}, {vault['path']}"),
    ]
    rows += list_told_rows(status.get("told"))
    if sync := _format_sync(status, now):
        rows.append(("sync", sync))
    rows += _list_watched(status)
    if status.get("here"):
        rows.insert(3, ("here", format_project_here(status["here"])))
    if told := _format_told(status):
        rows.insert(2, ("tells", told))
    yield from output.format_table(rows)


def _list_watched(status: StatusFields) -> list[tuple[str, str]]:
    """List the folders that are followed, and whether they are there."""
    folders = (folder for room in status["rooms"] for folder in room.get("watched", ()))
    return [
        ("watched", f"{one['path']}: {one['state']}, {output.plural(one['files'], 'note')}")
        for one in folders
    ]


def list_told_rows(told: dict[str, Any] | None) -> list[tuple[str, str]]:
    """List what agents were shown lately, its outcomes and costs."""
    if not told:
        return []
    week = told["weeks"][0]
    counts, costs = week["told"], week["costs"]
    rows = []
    if counts["lines"]:
        lines, sessions = (output.plural(counts[name], name[:-1]) for name in ("lines", "sessions"))
        seen = ", ".join(f"{counts[name]:,} {words}" for name, words in _OUTCOMES.items())
        rows.append(("told", f"in 7 days {lines} to {sessions}: {seen}"))
    if costs:
        tokens = sum(one["tokens"] for one in costs.values())
        names = sorted(costs, key=lambda name: (*COSTS, name).index(name))
        parts = ", ".join(f"{name} {costs[name]['tokens']:,}" for name in names)
        wait_s = sum(one["wait_ms"] for one in costs.values()) / 1000
        times = sum(one["times"] for one in costs.values() if one["wait_ms"])
        waits = f"agents waited {wait_s:,.1f} s in memd, {times:,} times"
        rows.append(("cost", f"in 7 days about {tokens:,} tokens ({parts}); {waits}"))
    return rows


def _format_told(status: StatusFields) -> str:
    """Say what a session is told unasked at most, and what was told since the daemon began; nothing of an older daemon."""
    room: dict[str, Any] = next((one for one in status["rooms"] if one["name"] == "injector"), {})
    if "session_wait_s" not in room:
        return ""
    most = f"at most {room['session_tokens']:,} tokens and {room['session_wait_s']:g} s of waiting a session"
    return f"{most}; {output.plural(room['shown'], 'memory')} in {room['tokens']:,} tokens since its start"


def _format_sync(status: StatusFields, now: float) -> str:
    """Format when the daemon synced with other machines, and what is wrong; empty if it does not."""
    room: dict[str, Any] = next((one for one in status["rooms"] if one["name"] == "sync"), {})
    if not room.get("place"):
        return ""
    when = output.format_ago(room["last_at"], now) if room["last_at"] else "not yet"
    problem = f"; {output.one_line(room['problem'])}" if room["problem"] else ""
    return f"{when}, with {output.one_line(room['place'])}{problem}"


def _format_embedder(embedder: dict[str, Any]) -> str:
    """Format the state of the model that finds memories by their meaning."""
    model = embedder.get("learned")
    if model is None or model["state"] != "ready":
        return (
            "by words and their parts; `memd model add` adds a model of meaning (80 MB, no server)"
        )
    missing = f", {model['missing']:,} memories to read" if model["missing"] else ""
    return f"{model['model']} ({model['provider']}){missing}"


def _paint_health(status: StatusFields, *, is_tty: bool) -> str:
    health = status["health"]
    word = "not answering" if not status["running"] and status["pid"] else health
    return f"\x1b[{_COLORS.get(health, _RED)}m{word}\x1b[0m" if is_tty else str(word)


def format_status(status: StatusFields, now: float, *, is_tty: bool) -> Iterator[str]:
    """Format all of a status for people; `now` is UTC milliseconds."""
    is_running = status["running"]
    word = _paint_health(status, is_tty=is_tty)
    yield f"memd is {word}" + (_format_versions(status) if is_running else "")
    yield from (f"  - {output.one_line(reason)}" for reason in status["reasons"])
    yield from output.format_table(_list_rows(status, now))
    for worker in status.get("rooms", ()):
        yield "  " + output.format_row(worker["name"], _format_worker(worker, now), 14)


def _format_versions(status: StatusFields) -> str:
    versions = status["versions"]
    libraries = ", ".join(f"{name} {versions[name]}" for name in ("python", "sqlite", "mcp"))
    uptime = output.format_duration(status["uptime_s"])
    return f": {versions['memd']}, pid {status['pid']}, up {uptime} ({libraries})"


def _list_rows(status: StatusFields, now: float) -> Iterator[tuple[str, str]]:
    vault, spool = status["vault"], status["spool"]
    if status.get("here"):
        yield "here", format_project_here(status["here"])
    schema = f", schema {vault['schema']}" if "schema" in vault else ""
    size = output.format_size(vault["bytes"]) if vault["bytes"] else "not created yet"
    yield "vault", f"{vault['name']}, {size}{schema}, {vault['path']}"
    yield "socket", status["socket"]
    yield "log", status["log"]
    if status["running"]:
        starter: str = status.get("started_by", "hand")
        yield "started by", _STARTERS.get(starter, starter)
        yield from _list_content_rows(status, now)
    waiting = f"{output.format_size(spool['bytes'])} in {output.plural(spool['files'], 'file')}"
    yield "spool", f"{waiting} for the daemon to read" if spool["files"] else "empty"
    if status["running"]:
        yield from _list_watched(status)
        yield "workers", ""


def format_project_here(here: dict[str, Any]) -> str:
    """Say which project a directory belongs to and why, and what is switched off there."""
    reason, switch = here["reason"], here["switch"]
    is_noun = reason.startswith("the ") and not reason.startswith("the session")
    text = f"{here['name']}, because {'it is ' if is_noun else ''}{reason}"
    is_on = switch["captures"] and switch["recalls"]
    return output.one_line(text if is_on else f"{text}; {switch['reason']}")


def _list_content_rows(status: StatusFields, now: float) -> Iterator[tuple[str, str]]:
    ledger, events, summaries = status["books"], status["events"], status["summaries"]
    outcomes = ("stored", "duplicate", "filtered", "refused")
    sum_ = " + ".join(f"{ledger[outcome]:,} {outcome}" for outcome in outcomes)
    yield ("ledger", f"{ledger['received']:,} received {'=' if ledger['balanced'] else '≠'} {sum_}")
    for outcome, reasons in ledger["reasons"].items():
        if reasons and outcome != "stored":
            yield "", f"{outcome}: {output.format_counts(reasons)}"
    last = _format_last_event(events["last_at"], now)
    yield "events", f"{events['count']:,}, {events['pending']:,} to distill, last {last}"
    if events.get("unknown"):
        yield "", f"{events['unknown']:,} of an agent that memd does not know: kept, not read"
    for kind, count in ledger["reasons"].get("stored", {}).items():
        yield "", output.one_line(f"{count:,} of an unknown kind {kind}: kept, not read")
    names = ("superseded", "pinned", "contradictions", "to_index", "to_consolidate")
    details = ", ".join(f"{summaries[name]:,} {name.replace('_', ' ')}" for name in names)
    yield "summaries", f"{summaries['count']:,}, {details}"
    yield from list_told_rows(status.get("told"))
    embedder = status["embedder"]
    active = f"{embedder['active']} ({embedder['configured']}: {embedder['why']})"
    yield "embedder", output.one_line(f"{active}, space {embedder['space']}")
    if embedder.get("learned"):
        yield "", output.one_line(_format_model(embedder["learned"], now))


def _format_last_event(at: int | None, now: float) -> str:
    if at is None:
        return "never"
    if at > now + _FUTURE_MS:
        return "dated in the future; see `memd doctor`"
    return output.format_ago(at, now)


def _format_model(model: dict[str, Any], now: float) -> str:
    duration = output.format_duration((now - model["since"]) / 1000)
    text = f"{model['model']} ({model['provider']}): {model['state']} for {duration}"
    if model["space"]:
        text += f", {model['coverage']:.0%} embedded"
        text += f" ({model['missing']:,} to go)" if model["missing"] else ""
    if model["asked"]:
        text += f", {model['asked']:,} requests, {model['failed']:,} failed, {model['timeouts']:,} timed out"
    return text + (f", {model['p50_ms']:g} ms" if model["p50_ms"] is not None else "")


def _format_worker(worker: dict[str, Any], now: float) -> str:
    text = str(worker["state"])
    if worker["restarts"]:
        text += f", {output.plural(worker['restarts'], 'restart')}"
    if worker["last_error"]:
        text += f", last error: {output.one_line(worker['last_error'])}"
    counts = _list_counts(worker)[:_WORKER_COUNTS_MAX]
    if last := worker.get("last"):
        found = ", ".join(_list_counts(last))
        ago = f"last run {output.format_ago(last['at'], now)}"
        counts.append(f"{ago} ({found})" if found else ago)
    if counts:
        text += f"; {', '.join(counts)}"
    text += "".join(f"; {name}: {_format_cost(worker[name])}" for name in _COSTS if name in worker)
    return text + (f"; {output.one_line(worker['why'])}" if worker.get("why") else "")


def _format_cost(cost: dict[str, int]) -> str:
    """Say what calls of a model have cost."""
    failed = f", {cost['failed']:,} failed" if cost["failed"] else ""
    return (
        f"{output.plural(cost['calls'], 'call')}{failed}, {cost['ms'] / 1000:,.1f} s,"
        f" {cost['characters_in']:,} characters in, {cost['characters_out']:,} out"
    )


def _list_counts(fields: dict[str, Any]) -> list[str]:
    """List the counts of a worker, without its times and settings."""
    return [
        f"{name} {value:,}"
        for name, value in fields.items()
        if type(value) is int and value < _COUNT_MAX and name not in _NOT_COUNTS
    ]
