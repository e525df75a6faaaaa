"""Which files import or call which, as far as that is certain. Pure.

Statements come from what tools wrote and read; capture keeps the names of what is read even where it
keeps nothing else of it. A name is followed by its language's rule to a file that the session has
seen, and to exactly one; without having seen it only where the rule leaves no choice. A bare package,
a search path, an alias of a build tool: all that is left out. So is who calls whom inside a language:
only a shell script that starts another by its own place says that for certain. Not here: reading the
statements (specifiers.py).
"""

import posixpath
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memd import specifiers
from memd.distill.story import text_at
from memd.models import EdgeType, Event, EventKind
from memd.specifiers import Named
from memd.text import is_private

LINKS_MAX = 200
"""Of one episode."""
_EDITING = frozenset({"Edit", "Write", "MultiEdit"})
_LEVELS = 12
_SCRIPT_ENDINGS = (
    ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte",
)  # fmt: skip
_EXACT = frozenset({"json", "css", "scss", "vue", "svelte", "ts", "tsx"})
"""Endings that mean the file of that very name, whatever builds it."""
_JAVASCRIPT = frozenset({"js", "mjs", "cjs"})
_TYPED = {".js": (".ts", ".tsx"), ".mjs": (".mts",), ".cjs": (".cts",), ".jsx": (".tsx",)}
"""What is written is the ending of what is built; the source may be typed."""
_STANDARD = sys.stdlib_module_names


@dataclass(frozen=True, slots=True)
class FileLink:
    """One file names another. `at` is UTC milliseconds, when the statement was seen."""

    path: str
    type: EdgeType
    """`imports` or `calls`."""
    target: str
    at: int
    name: str
    """As it is written."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A file's statements, as one event shows them."""

    path: str
    at: int
    named: Named


def linked(events: Sequence[Event], known: Iterable[str]) -> tuple[FileLink, ...]:
    """The links that these events of an episode show; `known` are other paths its session has seen."""
    if any(is_private(event.payload.get("prompt")) for event in events):
        return ()
    texts = [text for event in events if (text := _text(event)) is not None]
    seen = frozenset((*known, *(text.path for text in texts)))
    modules = {posixpath.dirname(t.path): t.named.module for t in texts if t.named.module}
    found: dict[tuple[str, EdgeType, str], FileLink] = {}
    for text in texts:
        for one in _links(text, seen, modules):
            found.setdefault((one.path, one.type, one.target), one)
    return tuple(found.values())[:LINKS_MAX]


def _text(event: Event) -> _Text | None:
    if event.kind is not EventKind.TOOL_RESULT or event.tool not in _EDITING | {"Read"}:
        return None
    path = text_at(event.payload, "tool_input", "file_path")
    if not path.startswith("/"):
        return None
    path = posixpath.normpath(path)
    named = _noted(event) if event.tool == "Read" else specifiers.read(path, _written(event))
    return _Text(path, event.at, named)


def _written(event: Event) -> str:
    given = event.payload.get("tool_input")
    given = given if isinstance(given, Mapping) else {}
    parts = given.get("edits")
    several = parts if isinstance(parts, Sequence) and not isinstance(parts, str) else ()
    texts = (text_at(part, "new_string") for part in several if isinstance(part, Mapping))
    return "\n".join((text_at(given, "content"), text_at(given, "new_string"), *texts))


def _noted(event: Event) -> Named:
    """What capture noted of a file that was read, or what its text says if that was kept."""
    response: Any = event.payload.get("tool_response")
    if isinstance(response, str):
        return specifiers.read(text_at(event.payload, "tool_input", "file_path"), response)
    if not isinstance(response, Mapping):
        return Named()
    if content := text_at(response, "file", "content"):
        return specifiers.read(text_at(event.payload, "tool_input", "file_path"), content)
    return Named(
        _names(response.get("imports")),
        _names(response.get("calls")),
        text_at(response, "module"),
    )


def _names(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else ()
    return tuple(name for name in listed if isinstance(name, str))[: specifiers.NAMES_MAX]


def _links(text: _Text, seen: frozenset[str], modules: Mapping[str, str]) -> Iterator[FileLink]:
    for type_, names in (
        (EdgeType.IMPORTS, text.named.imports),
        (EdgeType.CALLS, text.named.calls),
    ):
        for name in names:
            for target in _targets(text.path, name, seen, modules):
                if target != text.path:
                    yield FileLink(text.path, type_, target, text.at, name)


def _targets(
    path: str, name: str, seen: frozenset[str], modules: Mapping[str, str]
) -> Sequence[str]:
    """The files that a name means in this file; empty if that is not certain."""
    ending = path.rpartition(".")[2].lower()
    if ending in ("py", "pyi"):
        return _only(_of_python(path, name), seen)
    if ending == "go":
        return _of_go(name, seen, modules)
    if ending == "rs":
        return _of_rust(path, name, seen)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    return [target] if ending in ("sh", "bash") else _of_script(ending, target, seen)


def _only(candidates: Iterable[str], seen: frozenset[str]) -> Sequence[str]:
    found = list(dict.fromkeys(one for one in candidates if one in seen))
    return found if len(found) == 1 else ()


def _of_python(path: str, name: str) -> Iterator[str]:
    parts = name.lstrip(".").split(".")
    dots = len(name) - len(name.lstrip("."))
    if not dots and parts[0] in _STANDARD:
        return
    base = posixpath.dirname(path)
    for _ in range(dots - 1):
        base = posixpath.dirname(base)
    bases = [base] if dots else list(_upward(base))
    for one in bases:
        stem = posixpath.join(one, *parts)
        yield from (f"{stem}.py", f"{stem}.pyi", f"{stem}/__init__.py")


def _upward(base: str) -> Iterator[str]:
    """Where a package of one's own may begin: here or above, or in a `src` beside that."""
    for _ in range(_LEVELS):
        yield base
        yield posixpath.join(base, "src")
        if base == "/":
            return
        base = posixpath.dirname(base)


def _of_script(ending: str, target: str, seen: frozenset[str]) -> Sequence[str]:
    stem, written = posixpath.splitext(target)
    built = (stem + other for other in _TYPED.get(written, ()))
    added = (target + other for other in _SCRIPT_ENDINGS)
    inside = (f"{target}/index{other}" for other in _SCRIPT_ENDINGS)
    if found := _only((target, *built, *added, *inside), seen):
        return found
    exact = _EXACT | (_JAVASCRIPT if ending in _JAVASCRIPT else frozenset())
    return [target] if written[1:] in exact else ()


def _of_go(name: str, seen: frozenset[str], modules: Mapping[str, str]) -> Sequence[str]:
    """An import takes all the files of a package: those that were seen."""
    for directory, module in modules.items():
        if name == module or name.startswith(module + "/"):
            package = posixpath.normpath(directory + "/" + name[len(module) :])
            return sorted(
                path
                for path in seen
                if path.endswith(".go")
                and not path.endswith("_test.go")
                and posixpath.dirname(path) == package
            )
    return ()


def _of_rust(path: str, name: str, seen: frozenset[str]) -> Sequence[str]:
    directory, file = posixpath.split(path)
    if name.startswith("mod "):
        is_root = file in ("main.rs", "lib.rs", "mod.rs", "build.rs")
        base = directory if is_root else posixpath.join(directory, file.removesuffix(".rs"))
        stem = posixpath.join(base, name[4:])
        return _only((f"{stem}.rs", f"{stem}/mod.rs"), seen)
    root, found, _ = (directory + "/").rpartition("/src/")
    if not found or "/bin/" in path.removeprefix(root):
        return ()
    parts = name.split("::")[1:]
    for length in range(len(parts), 0, -1):
        stem = posixpath.join(root, "src", *parts[:length])
        if certain := _only((f"{stem}.rs", f"{stem}/mod.rs"), seen):
            return certain
    return ()
