"""`memd doctor`: find what is wrong, also with Claude Code and the service manager, and fix what is safe; the help page of `memd status`.

While the daemon runs, only it reads and fixes the vault. Without a daemon this process does.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from typer import Option

from memd import __version__, launcher
from memd.cli import daemon_call, health, output
from memd.cli.output import Screen, find_screen
from memd.cli.terminal import VerboseOption, print_result, waiting, wants_json
from memd.errors import Broken, ConfigError, MemdError
from memd.installers import agents, claude, claude_settings, service
from memd.installers.file_changes import Host, JsonFile
from memd.models import Finding
from memd.paths import Paths, find_home

OK, PROBLEMS, NOT_RUNNING = 0, 1, 2
_ORDER = ("problem", "warning", "ok")
_STYLES = {"problem": "bad", "warning": "warning", "ok": "good"}


def run_status(verbose: VerboseOption = False) -> None:
    """Show how memd is. Exit status: 0 healthy, 1 degraded, 2 not running."""
    raise typer.Exit(health.report(as_json=wants_json(), verbose=verbose))


def run_doctor(
    fix: bool = Option(False, "--fix", help="Fix what is safe; no memory or event is deleted."),
    verbose: VerboseOption = False,
) -> int:
    """Check everything that could be wrong, and say what to do about it.

    Exit status: 0 no problem, 1 a problem, 2 no problem, but no daemon runs.
    """
    from memd.daemon import doctor
    from memd.installers.file_changes import Host

    now = time.time_ns() // 1_000_000
    paths = daemon_call.paths()
    fixed = doctor.repair_files(paths, now) if fix else []
    status, findings = _check_daemon(paths, fixed, fix=fix)
    if status is None:
        findings = _check_without_daemon(paths, now, fixed, fix=fix)
    findings += doctor.examine_files(
        paths, find_home(os.environ) or "/", now, is_served=status is not None
    )
    findings += examine(Host.current())
    findings += _check_sharing(paths)
    findings.sort(key=lambda finding: _ORDER.index(finding.verdict))
    report = {
        "running": status is not None,
        "mended": fixed,
        "findings": list(map(asdict, findings)),
    }
    lines = _format_findings(findings, fixed, find_screen(), verbose=verbose)
    print_result(report, lines)
    if any(finding.verdict == "problem" for finding in findings):
        return PROBLEMS
    return NOT_RUNNING if status is None else OK


def _check_daemon(
    paths: Paths, fixed: list[str], *, fix: bool
) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return the daemon's status, None if none runs, and what the daemon finds in its vault."""
    try:
        status = daemon_call.call("memd/status", daemon_call.QUICK_S)
    except Broken:
        return None, []
    findings = list(_check_status(status))
    try:
        with waiting("checking the vault"):
            report = daemon_call.call("memd/doctor", daemon_call.LONG_S, fix=fix)
    except MemdError as error:
        words = f"the daemon cannot check its vault: {error.message}"
        findings.append(Finding("vault", "problem", words, "`memd restart`, then this again"))
        return status, findings + _check_vault(paths, time.time_ns() // 1_000_000)
    fixed += report["mended"]
    return status, findings + [Finding(**fields) for fields in report["findings"]]


def _check_without_daemon(paths: Paths, now: int, fixed: list[str], *, fix: bool) -> list[Finding]:
    from memd.daemon import doctor

    absent = Finding("daemon", "warning", "no daemon runs", "`memd start`, or a hook starts it")
    findings = _check_vault(paths, now)
    if fix and any(finding.fixable for finding in findings):
        try:
            fixed += doctor.repair_unserved_vault(paths, now)
        except MemdError as error:
            words = f"the vault could not be fixed: {error.message}"
            return [absent, Finding("vault", "problem", words), *findings]
        findings = _check_vault(paths, now)
    return [absent, *findings]


def _check_vault(paths: Paths, now: int) -> list[Finding]:
    from memd.daemon import doctor

    if damage := doctor.find_damage(paths):
        return [damage]
    file = Path(paths.database)
    if not file.exists() or not file.stat().st_size:
        return [Finding("database", "ok", "there is no vault yet; the daemon creates it")]
    findings = doctor.examine_vault(paths.database, now, is_served=False)
    return [
        replace(finding, remedy=doctor.advise_recovery(paths))
        if finding.name == "database" and finding.verdict == "problem" and finding.remedy
        else finding
        for finding in findings
    ]


def _check_sharing(paths: Paths) -> list[Finding]:
    """Check the way over which memories are shared, if the settings name one."""
    from memd import config

    try:
        settings = config.load_config(paths.config_file)
    except ConfigError:
        return []  # a finding of its own
    if not (settings.sync.place or settings.sync.recipients or settings.team.url):
        return []
    from memd.daemon import doctor

    with waiting("asking what memories are shared over"):
        return doctor.examine_sharing(settings, paths)


def _check_status(status: Mapping[str, Any]) -> Iterator[Finding]:
    version = status["versions"]["memd"]
    if version != __version__:
        words = f"it is memd {version}, this program is {__version__}"
        yield Finding("daemon", "warning", words, "`memd restart`")
    elif status["health"] != "healthy":
        words = "; ".join(status["reasons"])
        yield Finding("daemon", "warning", words, "`memd status` shows each worker")
    else:
        yield Finding("daemon", "ok", f"memd {version}, pid {status['pid']}, healthy")
    embedder = status["embedder"]
    model = embedder.get("learned")
    if model is None:
        yield Finding("model", "ok", "no embedding model is configured; hashing is used")
    elif model["state"] == "ready":
        words = f"{model['model']} answers, {model['coverage']:.0%} of the passages are embedded"
        yield Finding("model", "ok", words)
    else:
        words = f"{model['model']} does not answer, hashing is used: {model['why_not']}"
        is_required = embedder["configured"] != "auto"
        yield Finding("model", "warning" if is_required else "ok", words)
    yield from _check_workers(status["rooms"])


def _check_workers(rooms: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    for room in rooms:
        if room["name"] == "rewriter":
            yield _check_writer(room)
        if room["name"] == "notes":
            words = f"{room['files']:,} files of the clients' own notes are followed"
            failed = f"; {room['failed']:,} cannot be read: {room['why']}" if room["failed"] else ""
            yield Finding("notes", "warning" if failed else "ok", words + failed)
        for folder in room.get("watched", ()):
            words = f"{folder['path']}: {folder['state']}, {output.plural(folder['files'], 'note')}; {room['how_watched']}"
            is_ok = folder["state"] != "not there"
            yield Finding(
                "watch",
                "ok" if is_ok else "warning",
                words,
                "" if is_ok else "`memd watch DIR --remove`",
            )
        if room["name"] == "sync" and room.get("problem"):
            yield Finding("sync", "warning", f"the last sync: {room['problem']}", "`memd sync`")
        if room["name"] == "team":
            for name, problem in room.get("problems", {}).items():
                yield Finding("team", "warning", f"{name}: {problem}")


def _check_writer(worker: Mapping[str, Any]) -> Finding:
    if worker.get("obstacle"):
        return Finding("writer", "warning", worker["obstacle"], "then `memd restart`")
    if worker.get("failures_in_a_row"):  # an older daemon does not say
        return Finding("writer", "warning", worker["why"], "`memd status` shows what it has cost")
    return Finding("writer", "ok", f"{worker['model']} improves the text of turns")


def _format_findings(
    findings: Sequence[Finding], fixed: Sequence[str], screen: Screen, *, verbose: bool
) -> Iterator[str]:
    """Format the findings that are not well, or all, then a count."""
    yield from (f"fixed: {output.one_line(line)}" for line in fixed)
    for finding in findings:
        if finding.verdict == "ok" and not verbose:
            continue
        verdict = screen.paint(f"{finding.verdict:<8}", _STYLES[finding.verdict])
        words = daemon_call.insert_vault(output.one_line(finding.words))
        yield f"{verdict} {finding.name:<11} {words}"
        if finding.remedy and finding.verdict != "ok":
            yield f"{'':<21}→ {daemon_call.insert_vault(output.one_line(finding.remedy))}"
    counts = [
        output.plural(count, verdict)
        for verdict in ("problem", "warning")
        if (count := sum(finding.verdict == verdict for finding in findings))
    ]
    checks = output.plural(len(findings), "check")
    yield f"{checks}: {', '.join(counts) if counts else 'all well'}"


_INSTALL = "`memd install claude-code`"


def examine(host: Host) -> list[Finding]:
    """Compare the hooks and the units with what an installation would write now."""
    connected = (_check_agent(agent, host) for agent in agents.AGENTS.values())
    return [_check_hooks(host), *filter(None, connected), _check_service(host)]


def _check_agent(agent: agents.Agent, host: Host) -> Finding | None:
    """Check an agent's hooks; None if memd is not connected to it."""
    remedy = f"`memd install {agent.name}`"
    try:
        file = agents.hooks_path(agent, host)
        if not _is_connected(agent, host):
            return None
        changes = agents.install_agent(host, agent.name).changes
        untrusted = _list_untrusted(agent, host)
    except MemdError as error:
        return Finding(agent.name, "problem", error.message, f"then {remedy}")
    if any(change.is_needed for change in changes):
        words = "the hooks or the MCP server differ from what this memd would write"
        return Finding(agent.name, "warning", words, remedy)
    if untrusted:
        words = (
            f"{agent.title} skips memd's hooks, for they are not trusted: {', '.join(untrusted)}"
        )
        return Finding(agent.name, "problem", words, "run /hooks in Codex and trust memd")
    return Finding(agent.name, "ok", f"{file} runs this memd")


def _is_connected(agent: agents.Agent, host: Host) -> bool:
    if agent.is_plugin:
        return agents.runs_hooks(agent, host)
    hooks = JsonFile.read(agents.hooks_path(agent, host)).value
    return any(claude_settings.memd_hook_commands(hooks))


def _list_untrusted(agent: agents.Agent, host: Host) -> list[str]:
    if agent.name != "codex":
        return []
    config, file = agent.directory(host) / agent.servers_file, agents.hooks_path(agent, host)
    return agents.find_untrusted(config, file, JsonFile.read(file).value)


def _check_hooks(host: Host) -> Finding:
    file = claude.settings_file(host)
    if not file.parent.exists():
        return Finding("hooks", "ok", "Claude Code is not installed for this user")
    try:
        settings = JsonFile.read(file).value
        plugins = claude_settings.enabled_plugins(settings)
        commands = list(claude_settings.memd_hook_commands(settings))
        if plugins and commands:
            words = f"the plugin {plugins[0]} is enabled and {file} has hooks: both capture"
            return Finding("hooks", "problem", words, f"{_INSTALL} keeps only the plugin")
        if plugins:
            return _check_plugin(plugins[0], host)
        # Where the client is not on this shell's PATH, the hooks may have been written for one that is current.
        plans = (
            claude.install_claude_code(host, assumed)
            for assumed in (None, claude_settings.CURRENT_CLIENT)
        )
        differ = all(any(change.is_needed for change in plan.changes) for plan in plans)
    except MemdError as error:
        return Finding("hooks", "problem", error.message, f"then {_INSTALL}")
    wrong = _find_hook_problem(commands, settings, file)
    if wrong is None and differ:
        words = "the hooks or the MCP server differ from what this memd would write"
        wrong = Finding("hooks", "warning", words, _INSTALL)
    return wrong or Finding("hooks", "ok", f"{file} runs this memd")


def _find_hook_problem(
    commands: list[list[str]], settings: claude_settings.Settings, file: Path
) -> Finding | None:
    """Report hooks in the settings that do not run, or that there are none."""
    if not commands:
        words = "Claude Code does not run memd: nothing is captured"
        return Finding("hooks", "warning", words, _INSTALL)
    paths = dict.fromkeys(
        word
        for words in commands
        for word in words
        if word.startswith("/") and not word.endswith(".sock")  # there only while a daemon runs
    )
    if missing := [path for path in paths if not Path(path).exists()]:
        words = f"the hooks run files that do not exist: {', '.join(missing)}"
        return Finding("hooks", "problem", words, _INSTALL)
    if warnings := claude_settings.hook_warnings(settings):
        return Finding("hooks", "warning", warnings[0], f"remove it from {file}")
    return None


def _check_plugin(plugin: str, host: Host) -> Finding:
    """Check the file from which the plugin learns where memd is."""
    file = Path(host.paths.installed)
    try:
        python, package = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # also a text that has not two lines
        python = package = ""
    if not (python and Path(python).exists() and Path(package).exists()):
        words = f"{file} does not tell the plugin {plugin} where memd is"
        return Finding("hooks", "problem", words, "`memd restart` writes it again")
    if (python, package) != (host.python, str(host.package)):
        words = f"the plugin {plugin} runs another memd: {package}"
        return Finding("hooks", "warning", words, "`memd restart` makes it this one")
    return Finding("hooks", "ok", f"the plugin {plugin} runs this memd")


def _check_service(host: Host) -> Finding:
    if not launcher.is_managed(dict(host.environ)):
        return Finding("service", "ok", "no service manager runs memd; hooks start it")
    is_mac = host.platform == "darwin"
    manager = "launchd" if is_mac else "systemd"
    try:
        plan = service.install_launchd(host) if is_mac else service.install_systemd(host)
    except MemdError as error:
        return Finding("service", "problem", error.message)
    outdated = [str(change.path) for change in plan.changes if change.is_needed]
    if outdated:
        words = f"differs from what this memd would write: {', '.join(outdated)}"
        return Finding("service", "warning", words, f"`memd install {manager}`")
    return Finding("service", "ok", f"{manager} runs this memd")
