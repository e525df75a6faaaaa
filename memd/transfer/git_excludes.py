"""Read which files of a repository its user keeps out of git: `.gitignore`, `.git/info/exclude` and `core.excludesFile`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memd import directories
from memd.directories import PathPattern
from memd.paths import find_config_home, find_home

Rules = tuple[tuple[Path, Sequence[PathPattern]], ...]
"""Patterns, with the folder that their paths begin at; later ones go first."""
_FILE_BYTES_MAX = 256 * 1024
_EXCLUDES_FILE = re.compile(
    r"""^[ \t]*\[core\](?:[^\[]*?\n)??[ \t]*excludesfile[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|[^\n#;]*)""",
    re.MULTILINE | re.IGNORECASE,
)


def read_rules_above(top: Path, environ: Mapping[str, str]) -> Rules:
    """Return the rules of the folders above, up to the root of the git repository; none outside of one."""
    rules: Rules = ()
    folder = top
    while not (folder / ".git").exists():
        if folder == folder.parent:
            return ()
        folder = folder.parent
        rules = (*read_rules(folder, environ), *rules)
    return rules


def read_rules(folder: Path, environ: Mapping[str, str]) -> Rules:
    """Return the rules that begin at a folder; at the root of a repository also those outside its files."""
    files = [*_find_own_excludes(folder, environ), folder / ".gitignore"]
    lines = [line for file in files for line in (_read_small(file) or "").splitlines()]
    patterns = [one for line in lines if (one := directories.parse_pattern(line))]
    return ((folder, patterns),) if patterns else ()


def is_excluded(path: Path, rules: Rules, *, is_directory: bool) -> bool:
    """Return whether the last rule that names a path, or the folder that it is in, excludes it."""
    is_found = False
    for folder, patterns in rules:
        name = path.relative_to(folder).as_posix()
        last = directories.last_match(patterns, name, is_directory=is_directory)
        is_found = is_found if last is None else not last.is_negated
    return is_found


def _find_own_excludes(folder: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of patterns that a repository's user has for himself, the weakest first."""
    common = _find_git_directory(folder)
    if common is None:
        return
    home = Path(find_home(dict(environ)) or "/")
    settings = Path(find_config_home(dict(environ), str(home))) / "git"
    chosen = environ.get("GIT_CONFIG_GLOBAL")
    of_user = [Path(chosen)] if chosen else [settings / "config", home / ".gitconfig"]
    named = ""
    for config in (Path("/etc/gitconfig"), *of_user, common / "config", common / "config.worktree"):
        for found in _EXCLUDES_FILE.finditer(_read_small(config) or ""):
            named = found[1].strip().strip('"').replace("\\\\", "\\")
    if named.startswith("~/"):
        yield home / named[2:]
    else:
        yield folder / named if named else settings / "ignore"
    yield common / "info" / "exclude"


def _find_git_directory(folder: Path) -> Path | None:
    """Return what the worktrees of a repository share; None if this is the root of none."""
    marker = folder / ".git"
    if marker.is_dir():
        return marker
    line = _read_small(marker)
    if line is None or not line.startswith("gitdir:"):
        return None
    own = folder / line.removeprefix("gitdir:").strip()
    shared = _read_small(own / "commondir")
    return own / shared.strip() if shared else own


def _read_small(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _FILE_BYTES_MAX:
            return None
        return path.read_text("utf-8-sig", "replace")
    except (OSError, ValueError):
        return None
