"""Where other memories live on this machine, and which directory a folder of Claude Code's stands for.

The client names a project's folder by its path with every sign replaced by a dash, so a name alone is
ambiguous. The transcripts in the folder have recorded the real directory; without one, the name is
held against the directories that there are. Not here: reading the memories.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_TRANSCRIPTS_MAX = 5
_LINES_MAX = 100
_LINE_BYTES = 1024 * 1024
_LOOKS_MAX = 5_000
_SIGN = re.compile(r"[^A-Za-z0-9]")
_SERVER = "node_modules/@modelcontextprotocol/server-memory/dist"
_CLIENTS = (
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)
_CONFIG_BYTES = 16 * 1024 * 1024


def claude(environ: Mapping[str, str]) -> list[Path]:
    """Claude Code's own directories; it has had two."""
    given = environ.get("CLAUDE_CONFIG_DIR")
    home = _home(environ)
    both = [home / ".claude", home / ".config" / "claude"]
    return [path for path in ([Path(given)] if given else both) if path.is_dir()]


def claude_mem(environ: Mapping[str, str]) -> Path:
    """claude-mem's database."""
    given = environ.get("CLAUDE_MEM_DATA_DIR")
    return (Path(given) if given else _home(environ) / ".claude-mem") / "claude-mem.db"


def knowledge_graphs(environ: Mapping[str, str]) -> list[Path]:
    """The files of reference memory servers: as the environment, a client, or the npm cache has them."""
    home = _home(environ)
    given = [path for path in [environ.get("MEMORY_FILE_PATH")] if path]
    given += [path for name in _CLIENTS for path in _configured(home / name)]
    named = [home / path[2:] if path.startswith("~/") else Path(path) for path in given]
    cached = sorted((home / ".npm" / "_npx").glob(f"*/{_SERVER}/memory.json*"))
    found = [path for path in (*named, *cached) if path.is_absolute() and path.is_file()]
    return list(dict.fromkeys(found))


def memory_folders(base: Path) -> list[Path]:
    """The folders with memory files in Claude Code's own directory."""
    found = (*base.glob("projects/*/memory"), *base.glob("agent-memory/*"))
    return sorted(folder for folder in found if folder.is_dir())


def directory_of(folder: Path) -> str | None:
    """The directory that a folder of `projects` stands for; None if nothing tells."""
    return _recorded(folder) or _decoded(folder.name)


def transcripts(base: Path) -> dict[str, Path]:
    """Session → the folder in `projects` that has its transcript."""
    return {path.stem: path.parent for path in base.glob("projects/*/*.jsonl")}


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _configured(config: Path) -> Iterator[str]:
    """The memory files that the servers of a client's configuration are given."""
    try:
        if config.stat().st_size > _CONFIG_BYTES:
            return
        found = json.loads(config.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    for server in servers.values() if isinstance(servers, dict) else ():
        given = server.get("env") if isinstance(server, dict) else None
        path = given.get("MEMORY_FILE_PATH") if isinstance(given, dict) else None
        if isinstance(path, str):
            yield path


def _recorded(folder: Path) -> str | None:
    """The directory that the newest transcripts say that they were made in."""
    stamped = []
    for path in folder.glob("*.jsonl"):
        try:
            stamped.append((path.stat().st_mtime_ns, path))
        except OSError:
            continue
    for _, path in sorted(stamped, reverse=True)[:_TRANSCRIPTS_MAX]:
        try:
            found = _first_directory(path, folder.name)
        except OSError:
            continue
        if found:
            return found
    return None


def _first_directory(path: Path, name: str) -> str | None:
    """The first directory in a transcript; one that the folder is named after, if there is such."""
    first = None
    with path.open("rb") as file:
        for _ in range(_LINES_MAX):
            line = file.readline(_LINE_BYTES)
            try:
                record = json.loads(line) if line else None
            except (ValueError, RecursionError):
                continue
            found = record.get("cwd") if isinstance(record, dict) else None
            if isinstance(found, str) and found.startswith("/"):
                if _SIGN.sub("-", found) == name:
                    return found
                first = first or found
            if not line:
                break
    return first


def _decoded(name: str) -> str | None:
    """The directory whose path is written like this name; None if there is none, or more than one."""
    found: list[str] = []
    looked = 0
    frontier = [Path("/")]
    while frontier and looked < _LOOKS_MAX:
        here = frontier.pop()
        for path in _directories(here):
            looked += 1
            written = _SIGN.sub("-", str(path))
            if written == name:
                found.append(str(path))
            elif name.startswith(f"{written}-"):
                frontier.append(path)
    return found[0] if len(found) == 1 else None


def _directories(here: Path) -> Iterator[Path]:
    try:
        with os.scandir(here) as entries:
            yield from (Path(one.path) for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return
