"""Check whether the files, symbols, flags, versions and commands that a memory names are still in the working tree.

Looked up when a memory is shown or found: what was moved, renamed or deleted since is told with the line. A file is
gone if no path of the tree ends like it. Another name is gone if no code has it and there is evidence that the tree
had it: the commit that was checked out when the memory was made, or the last one, has it; or the memory names a
file beside it. Names of other programs are never in the tree, and so never gone. Without a working tree, or where git does
not answer in time, nothing is marked.
"""

import operator
import os
import re
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from memd.belief.claims import parse_claims
from memd.belief.compare import compare
from memd.belief.turns import name_ended
from memd.belief.values import describe_line, find_line
from memd.caches import cached
from memd.patterns import compile_lazily
from memd.recall import Answer, Hit
from memd.store import projects
from memd.store.database import Database
from memd.text import content_stems, split_sentences

_ENTRIES_MAX = 20_000
_DEPTH_MAX = 12
_NAMED_MAX = 2
_NOT_WALKED = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__"})
_PATH = compile_lazily(
    r"(?<![\w./\\~@:*$<-])(?:\./)?((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w{0,4})(?![\w/*@(]|\.\w)"
)
"""A path relative to something, which ends with a file's suffix."""
_NO_FILE = re.compile(
    r"\d+(?:\.\w+)+|(?:[a-z]+\.)*(?:com|org|net|io|dev|example)|e\.g|i\.e", re.IGNORECASE
)
"""A version, a host or an abbreviation."""
_HOST = re.compile(r"(?:[\w-]+\.)+(?:com|org|net|io|dev|example)/", re.IGNORECASE)
_CODE_SPAN = compile_lazily(r"`([^`\n]+)`")
_NAMES = (
    ("", compile_lazily(r"(?<![\w./-])(?:\w+(?:\.|::))*([A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z][A-Z]\w*)(?![\w/-])")),
    ("()", compile_lazily(r"(?<![\w./-])(?:\w+(?:\.|::))*([A-Za-z_]\w{2,})\(\)")),
    ("--", compile_lazily(r"(?<![\w-])--([a-z][\w-]{2,})")),
    (".", compile_lazily(r"(?<![\w.])v?(\d+\.\d+\.\d+(?:[-+][\w.]+)?)(?![\w.])")),
)  # fmt: skip
"""What stands in every text that has one, and a symbol with a sign of being one, a call, a flag, a full version."""
_SPAN_NAME = compile_lazily(r"[A-Za-z_]\w{3,}")
"""A word that is marked as code is a name, whatever it looks like."""
_SCRIPT = compile_lazily(
    r"\b(?:(?:npm|pnpm|yarn|bun) run|make|just|task|rake) ([a-z][\w:-]+)", re.IGNORECASE
)
"""A command that the project defines."""
_SCRIPT_FILES = (
    "package.json", "**/package.json", "Makefile", "makefile", "*.mk", "justfile", "Justfile", "Taskfile.y*ml", "Rakefile",
)  # fmt: skip
_PROSE = (
    "**/node_modules/**",
    "*.md",
    "*.mdx",
    "*.rst",
    "*.txt",
    "CHANGELOG*",
    "*.lock",
    "*-lock.*",
)
"""What tells of a name when it is gone, too."""
GIT_S, GIT_CALLS = 0.1, 6
"""Seconds that git may take in all, and how often it is asked at most: a hook waits for it. What was found out is kept,
so the next time asks for the rest."""
_LOOKED_UP_MAX = 40
"""Names that are looked up at a time, and those among them of which the past is asked for."""
_PAST_MAX = 6
_KEPT_MAX = 4_000
_TEXTS_CACHED = 256
_MAIN_BRANCHES = ("origin/HEAD", "main", "master")
_CHANGED_MAX = 500
_changed: dict[tuple[str, Sequence[int]], Sequence[str]] = {}
"""The files that the branch of the last tree changed, while its state is the same."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A name in a text, and where the tree has it: anywhere in its code, or among its scripts."""

    text: str
    is_script: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """Return the spellings of a name: a flag is defined with dashes, underscores or neither."""
        return tuple(dict.fromkeys((self.text, self.text.replace("-", "_"))))


_places: dict[tuple[Path, _Name], tuple[str, int, int]] = {}
"""(tree, name) → the file that has it, with its time and size; this and the next for all trees."""
_absent: dict[tuple[Path, _Name], Sequence[int]] = {}
"""(tree, name) → the state of the tree that lacks it."""
_past: dict[tuple[Path, str, _Name], bool] = {}
"""(tree, moment, name) → whether it had it."""


def _keep(found: dict[Any, Any], key: Any, value: Any) -> None:
    if len(found) >= _KEPT_MAX:
        found.clear()
    found[key] = value


@dataclass
class WorkingTree:
    """The working tree around a directory; nothing is gone from one that is not there."""

    directory: str | None
    git_s: float = GIT_S
    git_calls: int = GIT_CALLS
    _found: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Text → (each thing that it names and that is missing, what is said of it)."""
    _missing: dict[_Name, bool] = field(default_factory=dict)
    """Name → whether the code lacks it."""

    @cached_property
    def root(self) -> Path | None:
        """The directory that has the repository; None without one."""
        if not self.directory or not (here := Path(self.directory)).is_absolute():
            return None
        at = str(here)
        for _ in here.parts[:_DEPTH_MAX]:
            if _stat_file(f"{at}/.git") != (0, 0):
                return Path(at or "/")
            at = at.rpartition("/")[0]
        return None

    @cached_property
    def _state(self) -> Sequence[int]:
        """Return a key that changes with each commit, checkout and `git add`; empty without a commit."""
        assert self.root is not None
        place = self.root / ".git"
        if place.is_file():
            named = place.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:")
            place = self.root / named.strip()
        stamps = [_stat_file(str(place / name)) for name in ("HEAD", "index", "logs/HEAD")]
        return () if stamps[1] == (0, 0) else tuple(part for each in stamps for part in each)

    @cached_property
    def names(self) -> frozenset[str] | None:
        """Every path in the tree and every end of one; None if there are too many."""
        found: set[str] = set()
        for path in self._walk():
            parts = path.split("/")
            found.update("/".join(parts[n:]) for n in range(len(parts)))
            if len(found) > _ENTRIES_MAX:
                return None
        return frozenset(found)

    def _walk(self) -> Iterator[str]:
        assert self.root is not None
        for at, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _NOT_WALKED]
            below = Path(at).relative_to(self.root).as_posix()
            yield from (name if below == "." else f"{below}/{name}" for name in files)

    def look_up(self, texts: Collection[str]) -> None:
        """Look up the names of many texts at once, before they are shown."""
        if self.root is not None:
            self._find_missing(tuple({name: None for text in texts for name in _find_names(text)}))

    def note_gone(self, text: str, at: int = 0) -> str:
        """Describe which of the things that a text names are gone; empty if none.

        `at` is when that was true, in UTC milliseconds.
        """
        if text not in self._found:
            gone = (*self._find_gone(text), *self._find_gone_names(text, at)) if self.root else ()
            # “Use NB_IoT instead of LoRaWAN” says itself that LoRaWAN goes.
            dropped = " ".join(name_ended(parse_claims(text), "drops")).split() if gone else ()
            self._found[text] = tuple(one for one in gone if one[0] not in dropped)
        told: dict[str, list[str]] = {}
        for name, what in self._found[text][:_NAMED_MAX]:
            told.setdefault(what, []).append(name)
        return "; ".join(f"{', '.join(names)}: {what}" for what, names in told.items())

    def _find_gone(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the paths that are not there; whether they ever were is not looked up."""
        for name in _find_paths(text):
            if not self._has_path(name):
                yield name, "not there"

    def _has_path(self, name: str) -> bool:
        assert self.root is not None
        if any((at / name).exists() for at in (self.root, Path(self.directory or self.root))):
            return True
        if self.names is None:
            return not ((self.root / name.split("/", maxsplit=1)[0]).is_dir() and "/" in name)
        return name in self.names

    # ── What this branch changed ─────────────────────────────────────────────────────────────────

    @cached_property
    def changed_files(self) -> Sequence[str]:
        """The files that this branch changed since it left the main one, and those that are not committed yet."""
        if self.root is None or not self._state:
            return ()
        key = str(self.root), self._state
        if (known := _changed.get(key)) is not None:
            return known
        bases = (self._git("merge-base", "HEAD", main) for main in _MAIN_BRANCHES)
        base = next((found.strip() for found in bases if found), "HEAD")
        said = self._git("diff", "--name-only", "--no-renames", "-z", base, "--")
        found = tuple((said or "").split("\0")[:_CHANGED_MAX])
        if said is not None:
            _changed.clear()  # of the tree that was asked for before
            _changed[key] = found
        return found

    def touches(self, text: str, places: Iterable[str]) -> bool:
        """Return whether a text, or one of the places that it holds for, names a file that this branch changed."""
        return any(
            path.startswith(name) if name.endswith("/") else f"/{path}".endswith(f"/{name}")
            for name in (*_find_paths(text), *places)
            for path in self.changed_files
        )

    # ── Symbols, flags, versions, commands ───────────────────────────────────────────────────────

    def _find_gone_names(self, text: str, at: int) -> Iterator[tuple[str, str]]:
        assert self.root is not None
        names = _find_names(text)
        missing = [name for name in names if name in self._find_missing(names)]
        is_placed = missing and any(map(self._has_path, _find_paths(text)))
        for name in missing[:_PAST_MAX]:
            is_known = (self.root, name) in _places
            if is_placed and not is_known:
                yield name.text, "not there"
            elif is_known or self._had_name(name, at):
                yield name.text, "no longer there"

    def _find_missing(self, names: Sequence[_Name]) -> Collection[_Name]:
        """Return the names that no code of the tree has."""
        assert self.root is not None
        new = [name for name in names if name not in self._missing][:_LOOKED_UP_MAX]
        for name in new:
            place = _places.get((self.root, name))
            if place is not None and _stat_file(place[0]) == place[1:]:
                self._missing[name] = False
            elif self._state and _absent.get((self.root, name)) == self._state:
                self._missing[name] = True
        for is_script in (False, True):
            asked = [n for n in new if n not in self._missing and n.is_script is is_script]
            found = self._grep(asked, is_script=is_script) if asked else {}
            for name in asked:
                self._missing[name] = found is not None and name not in found
                if found and name in found:
                    path = str(self.root / found[name])
                    _keep(_places, (self.root, name), (path, *_stat_file(path)))
                elif self._missing[name]:
                    _keep(_absent, (self.root, name), self._state)
        return [name for name in names if self._missing.get(name)]

    def _had_name(self, name: _Name, at: int) -> bool:
        """Return whether the last commit has a name, or the one that was there when something was noted."""
        assert self.root is not None
        moment = f"{self._state} {at}"
        if (known := _past.get((self.root, moment, name))) is not None:
            return known
        before = self._git("rev-list", "-1", f"--before=@{at // 1000 + 1}", "HEAD") if at else ""
        commits = dict.fromkeys(filter(None, ((before or "").strip(), self._head)))
        found = [self._grep([name], is_script=name.is_script, commit=one) for one in commits]
        if self._state and before is not None and None not in found:
            _keep(_past, (self.root, moment, name), any(found))
        return any(found)

    @cached_property
    def _head(self) -> str:
        return (self._git("rev-parse", "--verify", "--quiet", "HEAD") or "").strip()

    def _grep(
        self, names: Sequence[_Name], *, is_script: bool, commit: str = ""
    ) -> dict[_Name, str] | None:
        """Name → a file that has it; None if git did not answer."""
        patterns = [f"-e{spelling}" for name in names for spelling in name.spellings]
        files = _SCRIPT_FILES if is_script else (".", *(f":(exclude){each}" for each in _PROSE))
        everywhere = ("--untracked",) if self._head else ("--no-index", "--exclude-standard")
        where = (commit,) if commit else everywhere
        said = self._git("grep", "-I", "-F", "-w", "-o", "-z", *patterns, *where, "--", *files)
        if said is None:
            return None
        of_spelling = {spelling: name for name in names for spelling in name.spellings}
        found: dict[_Name, str] = {}
        for line in said.splitlines():
            path, _, word = line.partition("\0")
            if word in of_spelling:
                found.setdefault(of_spelling[word], path)
        return found

    def _git(self, *words: str) -> str | None:
        """Return git's output; None if it fails or is late. Nothing that the repository's settings name is run."""
        if self.git_calls <= 0 or self.git_s <= 0:
            return None
        self.git_calls -= 1
        started = time.monotonic()
        argv = ["git", "-C", str(self.root), "-c", "core.fsmonitor=false", "--no-optional-locks", *words]  # fmt: skip
        try:
            done = subprocess.run(argv, capture_output=True, timeout=self.git_s, check=False)  # noqa: S603  # git, with names after -e
        except (OSError, subprocess.TimeoutExpired):
            return None
        finally:
            self.git_s -= time.monotonic() - started
        is_answer = done.returncode == 0 or (words[0] == "grep" and done.returncode == 1)
        return done.stdout.decode("utf-8", "replace") if is_answer else None


def names_things(hit: Hit) -> bool:
    """Return whether a hit names something that may be gone from the disk."""
    title = hit.summary.title
    return bool(find_line(hit.summary.body) or _find_names(title) or next(_find_paths(title), ""))


def mark_gone(db: Database, answer: Answer) -> Answer:
    """Mark hits whose file, line or name is gone, where the tree is on this machine; reads the disk and asks git."""
    named = {hit.summary.id: hit.summary for hit in answer.hits if names_things(hit)}
    if not named:
        return answer
    ids = {one.project_id for one in named.values()}
    roots = db.read_now(lambda tx: projects.project_keys(tx, ids))
    trees = {number: WorkingTree(root) for number, root in roots.items()}
    for number, tree in trees.items():
        tree.look_up([one.title for one in named.values() if one.project_id == number])

    def mark(hit: Hit) -> Hit:
        if (one := named.get(hit.summary.id)) is None:
            return hit
        gone = describe_line(one.body, roots.get(one.project_id, ""))
        if not gone and (tree := trees.get(one.project_id)):
            gone = tree.note_gone(one.title, one.at)
        return replace(hit, older_value=hit.older_value or gone) if gone else hit

    hits = tuple(map(mark, answer.hits))
    return replace(answer, hits=hits) if any(map(operator.is_not, hits, answer.hits)) else answer


def drop_arguments(text: str) -> str:
    """Return a text without the files that its commands are given: a command may make or remove them."""

    def drop(span: re.Match[str]) -> str:
        program, blank, rest = span[0].partition(" ")
        return program + blank + _PATH.sub("", rest)

    return _CODE_SPAN.sub(drop, text)


def _find_paths(text: str) -> Iterator[str]:
    """The files of a project that a text names."""
    if "." not in text:
        return
    marked = {found for span in _CODE_SPAN.findall(text) for found in _PATH.findall(span)}
    for name in dict.fromkeys(_PATH.findall(text)):
        # Prose has names with dots that are no files: only what has a folder, or stands as code, is one.
        is_named = "/" in name or name in marked
        if is_named and not _NO_FILE.fullmatch(name) and not _HOST.match(name):
            yield name


@cached(_TEXTS_CACHED)
def _find_names(text: str) -> tuple[_Name, ...]:
    """The symbols, flags, versions and commands that a text names."""
    bare = _PATH.sub(" ", text) if "." in text else text
    scripts = _SCRIPT.findall(bare) if "`" in text else []
    spans = [span for span in _CODE_SPAN.findall(bare) if _SPAN_NAME.fullmatch(span)]
    found = (*(one for sign, its in _NAMES if sign in bare for one in its.findall(bare)), *spans)
    named = (_Name(one, is_script=one in scripts) for one in (*found, *scripts))
    return tuple(dict.fromkeys(named))


def _stat_file(path: str) -> tuple[int, int]:
    """(time of the last change, size) of a file; zeros if it is gone."""
    try:
        stat = os.stat(path)  # noqa: PTH116  # a tenth of the time of Path.stat
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


# ── Instruction files ────────────────────────────────────────────────────────────────────────────

FILES = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md", "GEMINI.md")
RULES = ".claude/rules"
_FILES_MAX, _BYTES_MAX, _DIRECTORIES_KEPT = 40, 100_000, 32
_NEAR = 0.75
"""The share of a line's stems that one sentence of a file has if it says the same."""
_STEMS_MIN = 2
_Sentences = tuple[tuple[frozenset[str], str], ...]


@dataclass(slots=True)
class GuideReader:
    """Reads what the files of a directory say, and keeps it until they change."""

    home: Path | None = None
    """The user's directory, below which Claude Code keeps notes of projects; None: the user's own."""
    _kept: dict[Path, tuple[tuple[int, int], _Sentences]] = field(default_factory=dict)

    def read(self, directory: str | None) -> "Guides":
        """Return what the files of a directory say; nothing without one."""
        if not directory or not (here := Path(directory)).is_absolute():
            return Guides(())
        paths = list(self._list_files(here))[:_FILES_MAX]
        return Guides(tuple(one for path in paths for one in self._read_file(path)))

    def _list_files(self, here: Path) -> Iterator[Path]:
        """Yield the client's own first: above a deep directory stand more than are read."""
        key = "".join(c if c.isalnum() else "-" for c in str(here))
        home = self.home or Path.home()
        yield home / ".claude" / "projects" / key / "memory" / "MEMORY.md"
        yield home / ".claude" / "CLAUDE.md"
        for at in (here, *here.parents)[:_DEPTH_MAX]:
            yield from (at / name for name in FILES)
            if (rules := at / RULES).is_dir():
                yield from sorted(rules.rglob("*.md"))[:_FILES_MAX]
            if (at / ".git").exists():
                break

    def _read_file(self, path: Path) -> _Sentences:
        try:
            found = path.stat()
            state = found.st_mtime_ns, found.st_size
            if path not in self._kept or self._kept[path][0] != state:
                if len(self._kept) >= _DIRECTORIES_KEPT * len(FILES):
                    self._kept.clear()
                with path.open("rb") as file:
                    text = file.read(_BYTES_MAX).decode("utf-8", "replace")
                self._kept[path] = state, _split(text)
            return self._kept[path][1]
        except OSError:
            return ()


def _split(text: str) -> _Sentences:
    said = (one.strip(" \t#*->`") for one in split_sentences(text))
    return tuple((frozenset(content_stems(one)), one) for one in said if one)


@dataclass(frozen=True, slots=True)
class Guides:
    """The sentences of a directory's instruction files."""

    sentences: Sequence[tuple[frozenset[str], str]]

    def say(self, text: str) -> bool:
        """Return whether one of the sentences says this in the same or nearly the same words, and not its opposite."""
        stems = frozenset(content_stems(text))
        return len(stems) >= _STEMS_MIN and any(
            len(stems & others) >= _NEAR * len(stems) and compare(text, said).agrees
            for others, said in self.sentences
        )


NO_GUIDES = Guides(())
