"""What a source file says that it imports or calls, as it is written there. Pure.

Python, JavaScript and TypeScript, Go, Rust, and shell scripts that name another by their own place.
Statements are read, not guessed at: comments and long strings are left out, and a text whose long
strings do not end says nothing. Only names are returned, never the text. Standard library only: the
hook uses it. Not here: which file is meant by a name (distill/files.py).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

NAMES_MAX = 60
_TEXT_CHARACTERS = 64_000
_NAME_CHARACTERS = 200

# Texts, compiled when first used: the hook loads this and seldom needs any of it.
_NUMBERED = r"\s*\d+[→\t]"
_LINE_NUMBER = r"(?m)^\s*\d+[→\t]"
_LONG_STRING = r"(?s)(\"\"\"|''').*?\1"
_PYTHON = (
    r"(?m)^[ \t]*(?:import[ \t]+(?P<whole>\w[\w., \t]{0,400})"
    r"|from[ \t]+(?P<base>\.{0,9}\w[\w.]{0,190}|\.{1,9})[ \t]+import[ \t]+"
    r"(?:\((?P<many>[^()]{0,4000})\)|(?P<few>[\w*][\w*, \t]{0,400})))"
)
_BLOCK_COMMENT = r"(?s)/\*.*?\*/"
_LINE_COMMENT = r"(?m)^[ \t]*//.*$"
_TEMPLATE = r"`[^`]*`"
_SCRIPT = (
    r"(?m)^[ \t]*(?:import|export)\b[^'\";]{0,600}?\bfrom[ \t\n]*['\"](?P<from>[^'\"\n]{1,200})['\"]"
    r"|^[ \t]*import[ \t]+['\"](?P<bare>[^'\"\n]{1,200})['\"]"
    r"|^[^'\"/\n]{0,200}?\b(?:require|import)\([ \t]*['\"](?P<call>[^'\"\n]{1,200})['\"][ \t]*\)"
)
_GO = r"(?m)^import[ \t]+(?:[\w.]+[ \t]+)?\"(?P<one>[^\"\n]{1,200})\"|^import[ \t]*\((?P<many>[^()]{0,8000})\)"
_GO_NAME = r"(?m)^[ \t]*(?:[\w.]+[ \t]+)?\"([^\"\n]{1,200})\""
_GO_MODULE = r"(?m)^module[ \t]+\"?([^\s\"]{1,200})"
_RUST = (
    r"(?m)^(?:pub(?:\([^)\n]{0,40}\))?[ \t]+)?(?:mod[ \t]+(?P<mod>\w{1,100})[ \t]*;"
    r"|use[ \t]+(?P<use>crate(?:::\w{1,100}){1,8}))"
)
_SHELL = (
    r"(?m)^[ \t]*(?:(?P<how>source|\.|bash|sh|exec)[ \t]+)?\"?"
    r"(?:\$\(dirname[ \t]+(?:--[ \t]+)?\"?\$(?:0|\{?BASH_SOURCE(?:\[0\])?\}?)\"?\)|\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\})"
    r"\"?/(?P<name>[\w.][\w./-]{0,199})\"?"
)


class Named(NamedTuple):
    """Names as they are written: `.util`, `./util.js`, `crate::auth`, `lib/common.sh`."""

    imports: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    module: str = ""
    """What a go.mod says that everything in its directory is called."""


def read(path: str, text: str) -> Named:
    """What the text, or a part, of the file at this path names; nothing if its language is not known."""
    file = path.rpartition("/")[2]
    _, dot, ending = file.rpartition(".")
    reader = _go_module if file == "go.mod" else _READERS.get(ending.lower())
    if not dot or reader is None:
        return Named()
    text = text[:_TEXT_CHARACTERS]
    if re.match(_NUMBERED, text):
        text = re.sub(_LINE_NUMBER, "", text)
    found = reader(text)
    return Named(_bounded(found.imports), _bounded(found.calls), found.module)


def _bounded(names: tuple[str, ...]) -> tuple[str, ...]:
    short = (name for name in names if name and len(name) <= _NAME_CHARACTERS)
    return tuple(dict.fromkeys(short))[:NAMES_MAX]


def _python(text: str) -> Named:
    text = re.sub(_LONG_STRING, '""', text)
    if '"""' in text or "'''" in text:
        return Named()
    return Named(
        tuple(name for found in re.finditer(_PYTHON, text) for name in _of_python(found))
    )


def _of_python(found: re.Match[str]) -> Iterator[str]:
    if found["whole"]:
        yield from _words(found["whole"])
        return
    base = found["base"]
    if base.strip("."):
        yield base
    given = re.sub(r"#[^\n]*", "", found["many"] or found["few"] or "")
    for name in _words(given):
        if name != "*":
            yield f"{base}{name}" if base.endswith(".") else f"{base}.{name}"


def _words(names: str) -> Iterator[str]:
    """The first word of each name in a list: what is imported, without what it is called here."""
    for name in names.split(","):
        if parts := name.split():
            yield parts[0]


def _without_comments(text: str) -> str:
    return re.sub(_LINE_COMMENT, "", re.sub(_BLOCK_COMMENT, "", text))


def _script(text: str) -> Named:
    text = re.sub(_TEMPLATE, "``", _without_comments(text))
    found = (m["from"] or m["bare"] or m["call"] for m in re.finditer(_SCRIPT, text))
    return Named(tuple(name for name in found if name.startswith(".")))


def _go(text: str) -> Named:
    names: list[str] = []
    for found in re.finditer(_GO, _without_comments(text)):
        names += [found["one"]] if found["one"] else re.findall(_GO_NAME, found["many"])
    return Named(tuple(names))


def _go_module(text: str) -> Named:
    found = re.search(_GO_MODULE, text)
    return Named(module=found[1] if found else "")


def _rust(text: str) -> Named:
    found = re.finditer(_RUST, _without_comments(text))
    return Named(tuple(m["use"] or f"mod {m['mod']}" for m in found))


def _shell(text: str) -> Named:
    found = list(re.finditer(_SHELL, text))
    reads = tuple(m["name"] for m in found if m["how"] in ("source", "."))
    return Named(reads, tuple(m["name"] for m in found if m["how"] not in ("source", ".")))


_READERS: Mapping[str, Callable[[str], Named]] = {
    **dict.fromkeys(("py", "pyi"), _python),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte"), _script),
    "go": _go,
    "rs": _rust,
    **dict.fromkeys(("sh", "bash"), _shell),
}  # fmt: skip
