"""Instruction files that the client itself gives the agent: nothing in them is shown a second time.

The files are those that clients read at a start: CLAUDE.md, AGENTS.md and rules of the directory and those above it up
to the repository's root, and the notes that Claude Code keeps of the directory. Each is read again when it changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memd.belief.compare import compare
from memd.text import content_stems, split_sentences

FILES = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md", "GEMINI.md")
RULES = ".claude/rules"
_FILES_MAX, _BYTES_MAX, _DEPTH_MAX, _DIRECTORIES_KEPT = 40, 100_000, 12, 32
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
        for at in (here, *here.parents)[:_DEPTH_MAX]:
            yield from (at / name for name in FILES)
            if (rules := at / RULES).is_dir():
                yield from sorted(rules.rglob("*.md"))[:_FILES_MAX]
            if (at / ".git").exists():
                break
        key = "".join(c if c.isalnum() else "-" for c in str(here))
        home = self.home or Path.home()
        yield home / ".claude" / "projects" / key / "memory" / "MEMORY.md"
        yield home / ".claude" / "CLAUDE.md"

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
