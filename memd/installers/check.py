"""Check that Claude Code and the service manager run this memd, and only once. Changes nothing."""

from pathlib import Path

from memd import launcher
from memd.errors import MemdError
from memd.installers import agents, claude, claude_settings, service
from memd.installers.file_changes import JsonFile
from memd.installers.host import Host
from memd.models import Finding

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
