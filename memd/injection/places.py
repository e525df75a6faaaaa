"""Match a tool call against the file, directory or command for which alone a memory holds. Pure.

A place with a slash is looked for below the project's directories, one without anywhere in them; `*` and `**` stand for
what they stand for in a shell. A command is one whose words begin with those of the place, with options in between.
"""

import json
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from memd.belief.standing import OF_COMMAND, OF_FILE
from memd.caches import cached
from memd.distill.proof.shell import parse_line
from memd.injection.moments import EndedCall
from memd.patterns import compile_lazily

_COMMAND_CHARACTERS_MAX = 4_000
_SEPARATORS = compile_lazily(r"[\s'\"`;|&()<>=,]+")
_LINE_OF_FILE = compile_lazily(r"(?<=\w):\d+(?::\d+)?\Z")
_LIST = compile_lazily(r"[;&|\n(){}]+|\b(?:then|do|else|if|while|until)\b")
_STARTERS = frozenset({"sudo", "doas", "time", "nohup", "exec", "command", "nice", "npx", "bunx", "uvx", "pipx"})  # fmt: skip
"""Programs that start the one named after them."""
_RUNNERS = frozenset({("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run"), ("python", "-m"),
                      ("python3", "-m"), ("bundle", "exec"), ("npm", "exec"), ("pnpm", "exec"), ("yarn", "exec")})  # fmt: skip
Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class _NotedPlace:
    """A place, and a word without which no call touches it; none of one with a `*` in its last part."""

    name: str
    is_command: bool
    key: str

    @property
    def words(self) -> Words:
        """The words of a command."""
        return self.name.split() if self.is_command else (self.name,)


@cached(4_096)
def read_places(tags: str) -> tuple[_NotedPlace, ...]:
    """The places among the tags of a memory, which are given as JSON."""
    found = []
    for tag in json.loads(tags):
        if tag.startswith(OF_COMMAND) and (name := tag.removeprefix(OF_COMMAND)):
            found.append(
                _NotedPlace(name, is_command=True, key=posixpath.basename(name.split()[0]))
            )
        elif tag.startswith(OF_FILE) and (name := tag.removeprefix(OF_FILE).strip("/")):
            last = posixpath.basename(name)
            whole = tag.removeprefix(OF_FILE)
            found.append(_NotedPlace(whole, is_command=False, key="" if "*" in name else last))
    return tuple(found)


class TouchedPlaces:
    """The paths and commands that a call reads, changes or runs."""

    def __init__(self, call: EndedCall) -> None:
        self._commands = _read_commands(call.command, call.directory or "")
        moved = (path for words, at in self._commands for path in _resolve(words, at))
        self._paths = {*_list_paths(call), *moved}
        self._keys = {part for path in self._paths for part in path.split("/")}
        self._keys.update(posixpath.basename(words[0]) for words, _ in self._commands if words)

    def may_touch(self, places: Sequence[_NotedPlace]) -> bool:
        """Return whether one of these may be touched: most are not, and this costs next to nothing."""
        return any(not one.key or one.key in self._keys for one in places)

    def find(self, places: Sequence[_NotedPlace], roots: Sequence[str]) -> str | None:
        """The first of these places that is touched; None if none is. `roots`: what a relative place is relative to."""
        for one in places:
            is_bare = one.is_command or "/" not in one.name
            is_run = is_bare and any(_runs(words, one.words) for words, _ in self._commands)
            if is_run or (
                not one.is_command and any(_is_at(path, one.name, roots) for path in self._paths)
            ):
                return one.name
        return None


def find_mentioned(tags: Collection[str], text: str, roots: Sequence[str]) -> str | None:
    """The place among a memory's tags that a text names; None if it names none of them."""
    named = tuple(_resolve(_SEPARATORS.split(text), roots[0] if roots else ""))
    for tag in tags:
        if tag.startswith(OF_COMMAND) and _has_words(text, tag.removeprefix(OF_COMMAND)):
            return tag.removeprefix(OF_COMMAND)
        place = tag.removeprefix(OF_FILE) if tag.startswith(OF_FILE) else ""
        if place and (_has_words(text, place) or any(_is_at(one, place, roots) for one in named)):
            return place
    return None


def _has_words(text: str, place: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(place.rstrip('/'))}(?![\w-])", text) is not None


def _list_paths(call: EndedCall) -> Iterator[str]:
    base = call.directory or "/"
    yield from (posixpath.normpath(posixpath.join(base, path)) for path in call.paths)
    # Redirections and here-documents name files, too.
    yield from _resolve(_SEPARATORS.split(call.command[:_COMMAND_CHARACTERS_MAX]), base)


def _resolve(words: Words, base: str) -> Iterator[str]:
    """The words that may be paths, as absolute ones."""
    for word in words:
        name = _LINE_OF_FILE.sub("", word).rstrip(".:")
        if name and not name.startswith(("-", "$")) and "://" not in name:
            yield posixpath.normpath(posixpath.join(base or "/", posixpath.expanduser(name)))


@cached(64)
def _read_commands(line: str, directory: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Read (words, directory) of each command of a line, without wrappers; of a line with loops as far as it can be parsed."""
    found: list[tuple[tuple[str, ...], str]] = []
    for one in parse_line(line[:_COMMAND_CHARACTERS_MAX], directory) if line else ():
        if len(one.words) == 1 and " " in one.words[0]:
            found += [(tuple(part.split()), one.directory) for part in _LIST.split(one.words[0])]
        else:
            found.append((one.words, one.directory))
    return tuple((_skip_starters(words), at) for words, at in found if words)


def _skip_starters(words: tuple[str, ...]) -> tuple[str, ...]:
    while words:
        if words[:2] in _RUNNERS:
            words = words[2:]
        elif words[0] in _STARTERS:
            words = words[1:]
            while words and words[0].startswith("-"):
                words = words[1:]
        else:
            break
    return words


def _runs(words: Words, wanted: Words) -> bool:
    """Return whether a command is the wanted one: its words in their order, with only options in between."""
    if not words or not wanted or posixpath.basename(words[0]) != posixpath.basename(wanted[0]):
        return False
    left, is_value = list(wanted[1:]), False
    for word in words[1:]:
        if not left:
            break
        if word == left[0]:
            left.pop(0)
            is_value = False
        elif word.startswith("-"):
            is_value = "=" not in word
        elif is_value:
            is_value = False
        else:
            return False
    return not left


def _is_at(path: str, place: str, roots: Sequence[str]) -> bool:
    """Return whether an absolute path is a place, or below it."""
    wanted = posixpath.expanduser(place.removeprefix("./").rstrip("/"))
    if not wanted:
        return False
    if wanted.startswith("/"):
        return _begins(path, wanted)
    for root in roots:
        if path.startswith(f"{root.rstrip('/')}/"):
            relative = path[len(root.rstrip("/")) + 1 :]
            parts = relative.split("/")
            # A bare name is that of a file or folder anywhere.
            starts = range(len(parts)) if "/" not in wanted else (0,)
            if any(_begins("/".join(parts[start:]), wanted) for start in starts):
                return True
    return False


def _begins(path: str, wanted: str) -> bool:
    if path == wanted or path.startswith(f"{wanted}/"):
        return True
    return "*" in wanted and _compile_glob(wanted).match(path) is not None


@cached(256)
def _compile_glob(place: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/?|\*)", place)
    stands_for = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(stands_for.get(one) or re.escape(one) for one in parts) + r"(?:/|\Z)")
