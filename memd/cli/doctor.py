"""doctor; help page of status."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memd import __version__
from memd.cli import daemon_call, health, output
from memd.errors import Broken, ConfigError, MemdError
from memd.models import Finding
from memd.paths import Paths

# MERGED from memd.cli.doctor:
# MERGED `memd doctor`: is everything right, what is not, what to do about it; with `--fix`, do what is safe.
# MERGED
# MERGED The vault is asked of the daemon, which alone may mend it while it runs; without one it is read, and
# MERGED mended, here. What lies around it is looked at here in any case.


if TYPE_CHECKING:
    from memd.config import IndexConfig

WELL, PROBLEMS, NOT_RUNNING = 0, 1, 2
_LONG_S = 3_600.0
_RANK = {"problem": 0, "warning": 1, "ok": 2}
_COLOURS = {"problem": "31", "warning": "33", "ok": "32"}


def run_doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Mend what is safe and say what was done; no memory or event goes."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> int:
    """Look at everything that could be wrong, and say what to do about it.

    Exit: 0 well (or only warnings), 1 a problem, 2 none, but no daemon runs.
    """
    # Here and below: the help page must not wait for these.
    from memd.daemon import doctor
    from memd.installers import check
    from memd.installers.host import Host

    now = time.time_ns() // 1_000_000
    paths = daemon_call.paths()
    mended = doctor.repair_files(paths, now) if fix else []
    status, findings = _served(paths, mended, fix=fix)
    if status is None:
        findings = _alone(paths, now, mended, fix=fix)
    findings += doctor.examine_files(paths, str(Path.home()), now, is_served=status is not None)
    findings += check.examine(Host.current())
    findings.sort(key=lambda one: _RANK[one.verdict])
    if as_json:
        told = {"running": status is not None, "mended": mended}
        told["findings"] = [asdict(one) for one in findings]
        print(json.dumps(told, ensure_ascii=False))
    else:
        print("\n".join(_lines(findings, mended, is_tty=sys.stdout.isatty())))
    if any(one.verdict == "problem" for one in findings):
        return PROBLEMS
    return NOT_RUNNING if status is None else WELL


def _served(
    paths: Paths, mended: list[str], *, fix: bool
) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Ask the daemon: how it is, None without one, and what it finds in its vault."""
    try:
        status = daemon_call.call("memd/status", daemon_call.QUICK_S)
    except Broken:
        return None, []
    found = list(_daemon(status))
    try:
        said = daemon_call.call("memd/doctor", _LONG_S, fix=fix)
    except MemdError as error:
        words = f"the daemon cannot look at its vault: {error.message}"
        found.append(Finding("vault", "problem", words, "`memd restart`, then this again"))
        return status, found + _read(paths, time.time_ns() // 1_000_000)
    mended += said["mended"]
    return status, found + [Finding(**one) for one in said["findings"]]


def _alone(paths: Paths, now: int, mended: list[str], *, fix: bool) -> list[Finding]:
    """Look at a vault that nobody serves."""
    from memd.daemon import doctor

    absent = Finding("daemon", "warning", "no daemon runs", "`memd start`, or a hook starts it")
    found = _read(paths, now)
    if fix and any(one.fixable for one in found):
        try:
            mended += doctor.repair_unserved_vault(paths, _settings(paths), now)
        except MemdError as error:
            words = f"the vault could not be mended: {error.message}"
            return [absent, Finding("vault", "problem", words), *found]
        found = _read(paths, now)
    return [absent, *found]


def _read(paths: Paths, now: int) -> list[Finding]:
    from memd.daemon import doctor

    if damaged := doctor.find_damage(paths):
        return [damaged]
    file = Path(paths.database)
    if not file.exists() or not file.stat().st_size:
        return [Finding("database", "ok", "there is no vault yet; the first daemon makes it")]
    tokens_max = _settings(paths).passage_tokens
    found = doctor.examine_vault(paths.database, tokens_max, now, is_served=False)
    return [_offered(one, doctor.advise_recovery(paths)) for one in found]


def _offered(found: Finding, offer: str) -> Finding:
    """Say of a damaged vault which backup there is."""
    is_damaged = found.name == "database" and found.verdict == "problem" and found.remedy
    return replace(found, remedy=offer) if is_damaged else found


def _settings(paths: Paths) -> "IndexConfig":
    from memd import config

    try:
        return config.load_config(paths.config_file).index
    except ConfigError:
        return config.IndexConfig()  # what is wrong with it is a finding of its own


def _daemon(status: Mapping[str, Any]) -> Iterator[Finding]:
    version = status["versions"]["memd"]
    if version != __version__:
        words = f"it is memd {version}, this program is {__version__}"
        yield Finding("daemon", "warning", words, "`memd restart`")
    elif status["health"] != "healthy":
        words = "; ".join(status["reasons"])
        yield Finding("daemon", "warning", words, "`memd status` tells of each room")
    else:
        yield Finding("daemon", "ok", f"memd {version}, pid {status['pid']}, healthy")
    embedder = status["embedder"]
    learned = embedder.get("learned")
    if learned is None:
        yield Finding("model", "ok", "none is wanted; the hashing space answers")
    elif learned["state"] == "ready":
        words = f"{learned['model']} answers, {learned['coverage']:.0%} of its space is filled"
        yield Finding("model", "ok", words)
    else:
        words = (
            f"{learned['model']} is not there, the hashing space answers: {learned['why_not']}"
        )
        is_wanted = embedder["configured"] != "auto"
        yield Finding("model", "warning" if is_wanted else "ok", words)


def _lines(
    findings: Sequence[Finding], mended: Sequence[str], *, is_tty: bool
) -> Iterator[str]:
    yield from (f"mended: {output.line(one)}" for one in mended)
    for one in findings:
        mark = f"{one.verdict:<8}"
        mark = f"\x1b[{_COLOURS[one.verdict]}m{mark}\x1b[0m" if is_tty else mark
        yield f"{mark} {one.name:<11} {daemon_call.for_this_vault(output.line(one.words))}"
        if one.remedy and one.verdict != "ok":
            yield f"{'':<21}→ {daemon_call.for_this_vault(output.line(one.remedy))}"
    counted = [
        output.plural(count, verdict)
        for verdict in ("problem", "warning")
        if (count := sum(one.verdict == verdict for one in findings))
    ]
    yield ", ".join(counted) if counted else "all is well"


# MERGED from memd.cli.status:
# MERGED `memd status`: is it healthy? Here for the help page; `__main__` goes to health.py directly.


def run_status(
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Tell how memd is. Exit status: 0 healthy, 1 degraded, 2 not running."""
    raise typer.Exit(health.report(as_json=as_json))
