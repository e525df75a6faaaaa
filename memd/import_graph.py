"""Imports and calls between files: statements of Python, JavaScript/TypeScript and Go, resolved to paths. Pure.

Calls are read of Python alone: a name that was imported and is called. Its parser takes twenty times as long, a hook waits
for that, and it reads no part of a file. What a command ran is called by who ran it.

Comments and long strings are not read, and a text with an unclosed long string yields nothing. A name is
linked only if it can mean exactly one file that the session has seen, or if its language leaves no choice.
The hook imports this module: it loads neither memd.models nor dataclasses, and compiles patterns on first use.
"""

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from memd.models import Event

NAMES_MAX = 60
"""Imports per file."""
LINKS_MAX = 200
"""Links per episode."""
_COMMANDS_END = r"[;&|\n]+"
_RUNNERS = frozenset({
    "python", "python3", "pytest", "py.test", "node", "deno", "bun", "ts-node", "tsx", "npx", "bash", "sh", "zsh", "ruby",
    "perl", "php", "uv", "poetry",
})  # fmt: skip
"""Programs that run the file that they are given."""
_TEXT_CHARACTERS = 64_000
_NAME_CHARACTERS = 200
_PARENT_DIRECTORIES_MAX = 12

_LINE_NUMBERS = r"(?m)^\s*\d+[→\t]"
_LONG_STRING = r"(?s)(\"\"\"|''').*?\1"
_PYTHON_IMPORT = (
    r"(?m)^[ \t]*(?:import[ \t]+(?P<whole>\w[\w., \t]{0,400})"
    r"|from[ \t]+(?P<base>\.{0,9}\w[\w.]{0,190}|\.{1,9})[ \t]+import[ \t]+"
    r"(?:\((?P<many>[^()]{0,4000})\)|(?P<few>[\w*][\w*, \t]{0,400})))"
)
_PYTHON_QUOTES = r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*"
_PYTHON_CALL = r"(?<![\w.])(?<!def )(?<!class )([A-Za-z_][\w.]{0,200}) ?\("
_BLOCK_COMMENT = r"(?s)/\*.*?\*/"
_LINE_COMMENT = r"(?m)^[ \t]*//.*$"
_TEMPLATE_STRING = r"`[^`]*`"
_SCRIPT_IMPORT = (
    r"(?m)^[ \t]*(?:import|export)\b[^'\";]{0,600}?\bfrom[ \t\n]*['\"](?P<from>[^'\"\n]{1,200})['\"]"
    r"|^[ \t]*import[ \t]+['\"](?P<bare>[^'\"\n]{1,200})['\"]"
    r"|^[^'\"/\n]{0,200}?\b(?:require|import)\([ \t]*['\"](?P<call>[^'\"\n]{1,200})['\"][ \t]*\)"
)
_GO_IMPORT = r"(?m)^import[ \t]+(?:[\w.]+[ \t]+)?\"(?P<one>[^\"\n]{1,200})\"|^import[ \t]*\((?P<many>[^()]{0,8000})\)"
_GO_NAME = r"(?m)^[ \t]*(?:[\w.]+[ \t]+)?\"([^\"\n]{1,200})\""
_GO_MODULE = r"(?m)^module[ \t]+\"?([^\s\"]{1,200})"

_PYTHON_ENDINGS = frozenset({"py", "pyi"})
_SCRIPT_ENDINGS = frozenset({"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte"})
_ADDED_ENDINGS = (
    ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte",
)  # fmt: skip
"""What a bundler tries after a name without an ending."""
_TYPED_SOURCES = {
    ".js": (".ts", ".tsx"), ".mjs": (".mts",), ".cjs": (".cts",), ".jsx": (".tsx",),
}  # fmt: skip
"""A typed source imports the file that will be built from another typed source."""
_EXACT_ENDINGS = frozenset({"json", "css", "scss", "vue", "svelte", "ts", "tsx"})
"""A name with such an ending means the file of that very name."""
_EXACT_IN_JAVASCRIPT = frozenset({"js", "mjs", "cjs"})


class FileImports(NamedTuple):
    """Names as they are written: `.util`, `./util.js`, `example.com/app/auth`."""

    imports: tuple[str, ...] = ()
    module: str = ""
    """The module path in a go.mod."""
    calls: tuple[str, ...] = ()
    """What was imported and is called: `auth.tokens.check`."""


class FileLink(NamedTuple):
    """One file imports or calls another. `at` is when that was seen, UTC milliseconds."""

    path: str
    """Empty: a command of the episode ran the other."""
    target: str
    at: int
    name: str
    """As the statement writes it."""
    is_call: bool = False


def read_imports(path: str, text: str) -> FileImports:
    """Return what the text, or a part, of the file at this path imports; empty for other languages."""
    file = path.rpartition("/")[2]
    ending = file.rpartition(".")[2].lower() if "." in file else ""
    text = text[:_TEXT_CHARACTERS]
    if re.match(_LINE_NUMBERS, text):
        text = re.sub(_LINE_NUMBERS, "", text)
    if file == "go.mod":
        found = re.search(_GO_MODULE, text)
        return FileImports(module=found[1] if found else "")
    names: Iterable[str]
    calls: Iterable[str] = ()
    if ending in _PYTHON_ENDINGS:
        found_names = list(_read_python(text))
        names = (name for name, _ in found_names)
        calls = _find_calls(text, {here: name for name, here in found_names if here})
    elif ending == "go" or ending in _SCRIPT_ENDINGS:
        text = re.sub(_LINE_COMMENT, "", re.sub(_BLOCK_COMMENT, "", text))
        names = _read_go(text) if ending == "go" else _read_script(text)
    else:
        return FileImports()
    return FileImports(_keep_short(names), calls=_keep_short(calls))


def _keep_short(names: Iterable[str]) -> tuple[str, ...]:
    short = (name for name in names if name and len(name) <= _NAME_CHARACTERS)
    return tuple(dict.fromkeys(short))[:NAMES_MAX]


def _find_calls(text: str, known: Mapping[str, str]) -> Iterator[str]:
    """Yield the full names of what a Python text calls; `known`: as it is called here → its full name."""
    code = re.sub(_PYTHON_QUOTES, "''", re.sub(_LONG_STRING, "''", text))
    for found in re.finditer(_PYTHON_CALL, code):
        parts = found[1].split(".")
        for size in range(len(parts), 0, -1):
            if (full := known.get(".".join(parts[:size]))) is not None:
                yield ".".join((full, *parts[size:]))
                break


def _read_python(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name of what is imported, what it is called in this file; empty for what has no name here)."""
    text = re.sub(_LONG_STRING, '""', text)
    if '"""' in text or "'''" in text:
        return
    for found in re.finditer(_PYTHON_IMPORT, text):
        base = found["base"] or ""
        if base.strip("."):
            yield base, ""
        listed = found["whole"] or found["many"] or found["few"] or ""
        prefix = base if not base or base.endswith(".") else f"{base}."
        for item in re.sub(r"#[^\n]*", "", listed).split(","):
            # The first word: what is imported, without the name that it gets here.
            if (parts := item.split()) and parts[0] != "*":
                yield prefix + parts[0], parts[-1]


def _read_script(text: str) -> Iterator[str]:
    for found in re.finditer(_SCRIPT_IMPORT, re.sub(_TEMPLATE_STRING, "``", text)):
        name = found["from"] or found["bare"] or found["call"]
        if name.startswith("."):
            yield name


def _read_go(text: str) -> Iterator[str]:
    for found in re.finditer(_GO_IMPORT, text):
        yield from [found["one"]] if found["one"] else re.findall(_GO_NAME, found["many"])


def find_file_links(events: Sequence["Event"], known: Iterable[str]) -> tuple[FileLink, ...]:
    """Return the imports that an episode's events show; `known` are other paths its session has seen."""
    files = [found for event in events if (found := _read_event(event)) is not None]
    seen = frozenset((*known, *(path for path, _, _ in files)))
    modules = {posixpath.dirname(path): f.module for path, _, f in files if f.module}
    links: dict[tuple[str, str, bool], FileLink] = {}
    for path, at, file in files:
        named = [
            *((False, n, t) for n in file.imports for t in _resolve_import(path, n, seen, modules)),
            *((True, n, t) for n in file.calls for t in _resolve_call(path, n, seen)),
        ]
        for is_call, name, target in named:
            if target != path:
                link = FileLink(path, target, at, name, is_call)
                links.setdefault((path, target, is_call), link)
    for event in events:
        for name, target in _find_files_run(event, seen):
            links.setdefault(("", target, True), FileLink("", target, event.at, name, is_call=True))
    return tuple(links.values())[:LINKS_MAX]


def _find_files_run(event: "Event", seen: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (as it was written, path) of each file that a command ran."""
    given = event.payload.get("tool_input") if event.tool == "Bash" else None
    command = given.get("command") if isinstance(given, Mapping) else None
    for part in (
        re.split(_COMMANDS_END, command[:_TEXT_CHARACTERS]) if isinstance(command, str) else ()
    ):
        words = [word.strip("'\"") for word in part.split()]
        words = [word for word in words if not re.match(r"\w+=", word)]
        is_runner = bool(words) and words[0].rpartition("/")[2] in _RUNNERS
        for before, word in zip(["", *words], words[: None if is_runner else 1], strict=False):
            name = word.partition("::")[0].removeprefix("./")
            if before == "-m":  # a module
                name = f"{name.replace('.', '/')}.py"
            targets = [path for path in seen if path == name or path.endswith(f"/{name}")]
            if len(targets) == 1 and "." in name:
                yield word, targets[0]


def _resolve_call(path: str, name: str, seen: frozenset[str]) -> Sequence[str]:
    """Return the file whose module is the longest beginning of a called name."""
    module = name.rpartition(".")[0]
    while module.strip("."):
        if found := _only_seen(_python_candidates(path, module), seen):
            return found
        module = module.rpartition(".")[0]
    return ()


def _read_event(event: "Event") -> tuple[str, int, FileImports] | None:
    """Return (path, time, imports) of a file that this event shows."""
    given = event.payload.get("tool_input")
    given = given if isinstance(given, Mapping) else {}
    path = given.get("file_path")
    is_result = event.kind == "tool_result"
    if not is_result or not isinstance(path, str) or not path.startswith("/"):
        return None
    path = posixpath.normpath(path)
    if event.tool in ("Edit", "Write", "MultiEdit"):
        edits = given.get("edits")
        parts = [given, *(edits if isinstance(edits, list | tuple) else ())]
        texts = [
            p.get(k) for p in parts if isinstance(p, Mapping) for k in ("content", "new_string")
        ]
        return (
            path,
            event.at,
            read_imports(path, "\n".join(t for t in texts if isinstance(t, str))),
        )
    if event.tool != "Read":
        return None
    return path, event.at, _read_response(path, event.payload.get("tool_response"))


def _read_response(path: str, response: Any) -> FileImports:
    """Return the imports that capture has noted of a file that was read, or those in its text."""
    if isinstance(response, Mapping):
        file, module = response.get("file"), response.get("module")
        names, calls = [_list_names(response.get(key)) for key in ("imports", "calls")]
        response = file.get("content") if isinstance(file, Mapping) else None
        if not response:
            return FileImports(names, module if isinstance(module, str) else "", calls)
    return read_imports(path, response) if isinstance(response, str) else FileImports()


def _list_names(listed: Any) -> tuple[str, ...]:
    names = listed if isinstance(listed, list | tuple) else ()
    return tuple(name for name in names if isinstance(name, str))[:NAMES_MAX]


def _resolve_import(
    path: str, name: str, seen: frozenset[str], modules: Mapping[str, str]
) -> Sequence[str]:
    """Return the files that a name means in this file; empty if that is not certain."""
    ending = path.rpartition(".")[2].lower()
    if ending in _PYTHON_ENDINGS:
        return _only_seen(_python_candidates(path, name), seen)
    if ending == "go":
        return _resolve_go(name, seen, modules)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    stem, written = posixpath.splitext(target)
    candidates = [target, *(stem + typed for typed in _TYPED_SOURCES.get(written, ()))]
    for added in _ADDED_ENDINGS:
        candidates += [target + added, f"{target}/index{added}"]
    is_exact = written[1:] in _EXACT_ENDINGS or ({ending, written[1:]} <= _EXACT_IN_JAVASCRIPT)
    return _only_seen(candidates, seen) or ([target] if is_exact else ())


def _only_seen(candidates: Iterable[str], seen: frozenset[str]) -> Sequence[str]:
    found = list(dict.fromkeys(one for one in candidates if one in seen))
    return found if len(found) == 1 else ()


def _python_candidates(path: str, name: str) -> Iterator[str]:
    module = name.lstrip(".")
    parts, dots = module.split("."), len(name) - len(module)
    if not dots and parts[0] in sys.stdlib_module_names:
        return
    base = posixpath.dirname(path)
    for _ in range(dots - 1):
        base = posixpath.dirname(base)
    # An absolute import may begin here or above, or in a `src` beside that.
    for _ in range(1 if dots else _PARENT_DIRECTORIES_MAX):
        for root in (base,) if dots else (base, posixpath.join(base, "src")):
            stem = posixpath.join(root, *parts)
            yield from (f"{stem}.py", f"{stem}.pyi", f"{stem}/__init__.py")
        base = posixpath.dirname(base)


def _resolve_go(name: str, seen: frozenset[str], modules: Mapping[str, str]) -> Sequence[str]:
    """Return the files of a package that were seen: an import takes all of them."""
    for directory, module in modules.items():
        if name == module or name.startswith(module + "/"):
            package = posixpath.normpath(directory + "/" + name[len(module) :])
            files = (p for p in seen if p.endswith(".go") and not p.endswith("_test.go"))
            return sorted(path for path in files if posixpath.dirname(path) == package)
    return ()
