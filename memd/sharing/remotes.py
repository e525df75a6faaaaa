"""A project's git remote, by which clones of one repository are known wherever they lie."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_CONFIG_BYTES_MAX = 256 * 1024
_SECTION = re.compile(r'\[\s*remote\s+"(?P<name>[^"]+)"\s*\]')
_URL = re.compile(r"url\s*=\s*(?P<url>\S+)")
_WITH_SCHEME = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+)", re.IGNORECASE
)
_LIKE_SCP = re.compile(r"(?:[^@/]+@)?(?P<host>[^/:@]+):(?!/)(?P<path>.+)")


@dataclass(frozen=True, slots=True)
class SameRemote:
    """Two projects that are clones of one repository; the user says whether they are one."""

    here: str
    """Key of the project in which sessions ran on this device, or of the older one."""
    there: str
    remote: str


def normalise_remote(url: str) -> str:
    """`host/path` of a remote, whatever the way there, without user and password; "" for a local one."""
    match = _WITH_SCHEME.fullmatch(url) or _LIKE_SCP.fullmatch(url)
    if match is None or url.startswith("file:"):
        return ""
    path = match["path"].strip("/").removesuffix(".git")
    return f"{match['host'].lower()}/{path}" if path else ""


def read_remote(directory: str) -> str:
    """The normalised remote `origin` of a checkout, else its only one; "" if it has none."""
    try:
        with Path(directory, ".git", "config").open(encoding="utf-8", errors="replace") as file:
            text = file.read(_CONFIG_BYTES_MAX)
    except OSError:
        return ""
    found: dict[str, str] = {}
    section = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            match = _SECTION.match(line)
            section = match["name"] if match else None
        elif section is not None and (match := _URL.match(line)):
            found.setdefault(section, normalise_remote(match["url"]))
    if "origin" in found or len(found) == 1:
        return found.get("origin") or next(iter(found.values()))
    return ""


def read_remotes(keys: Iterable[str]) -> dict[str, str]:
    """Project's key → its remote, of those that have one."""
    found = {key: read_remote(key) for key in keys if key.startswith("/")}
    return {key: remote for key, remote in found.items() if remote}


def find_clones(remotes: Mapping[str, str], own_sessions: Mapping[str, int]) -> list[SameRemote]:
    """Pairs of projects (key → remote) with one remote; `own_sessions`: key → sessions on this device."""
    groups: dict[str, list[str]] = {}
    for key, remote in remotes.items():
        if remote:
            groups.setdefault(remote, []).append(key)
    pairs = []
    for remote, keys in sorted(groups.items()):
        here, *others = sorted(keys, key=lambda key: (-own_sessions.get(key, 0), key))
        pairs += [SameRemote(here, there, remote) for there in others]
    return pairs
