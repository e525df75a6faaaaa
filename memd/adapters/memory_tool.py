"""Anthropic's memory tool (`memory_20250818`) on memd: what a model keeps as files are memories of a project.

    import os
    from anthropic import Anthropic
    from memd.adapters.memory_tool import make_memory_tool
    from memd.client import Client
    from memd.paths import Paths

    with Client(Paths(os.environ).socket) as memd:
        tool = make_memory_tool(memd, directory="/code/shop")
        Anthropic().beta.messages.run_tools(model="…", max_tokens=1000, messages=[…], tools=[tool])

A file is a memory whose topic is its path, so a changed file replaces its earlier text, and `mem_why` shows both.
A deleted file expires: the user can still see it; only the user erases (`memd forget`). Below `/memories/memd`
the model reads what memd knows of the project from elsewhere. Texts and errors are those of Anthropic's
documentation; secrets are redacted as everywhere.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from memd.client import Client
from memd.errors import MemdError
from memd.models import TITLE_CHARACTERS_MAX
from memd.store.summaries import fold_topic

ROOT = "/memories"
KNOWN = f"{ROOT}/memd"
"""The directory of what memd knows from elsewhere; read-only."""
SOURCE = "memory-tool"
_PAGE = 500
_KNOWN_MAX = 100
_PATH = re.compile(r"/memories(?:/[^\s/\\%\x00-\x1f\x7f]{1,100}){0,6}/?")
_LEVELS = 2
_COMMANDS = {
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
"""Command of the tool, a method of `MemoryFiles` → the fields that are its arguments."""


class ToolError(Exception):
    """A mistake of the model's, in words for it."""


class MemoryFiles:
    """The six commands, on the memories of the project of a directory. ToolError says what is wrong."""

    def __init__(self, memd: Client, directory: str) -> None:
        self._memd = memd
        self._scope = {"directory": directory}

    def view(self, path: str, lines: list[int] | None = None) -> str:
        """Return a file with numbered lines, or a directory's files up to two levels deep."""
        path, files = _check_path(path), self._read_files()
        if (text := files.get(path)) is not None:
            first, last = lines or (1, -1)
            rows = list(enumerate(text.split("\n"), 1))[max(first, 1) - 1 :]
            numbered = (f"{n:6}\t{row}" for n, row in rows if last == -1 or n <= last)
            return "\n".join([f"Here's the content of {path} with line numbers:", *numbered])
        below = [name for name in files if name.startswith(f"{path}/")]
        if not below and path != ROOT:
            _fail_missing(path)
        depth = path.count("/") + _LEVELS
        sizes = {f"{posixpath.dirname(name)}/": 0 for name in below}
        sizes |= {name: len(files[name].encode()) for name in below}
        shown = [name for name in sorted(sizes) if name.rstrip("/").count("/") <= depth]
        listed = [f"{sizes[name]}B\t{name}" for name in shown if name != f"{path}/"]
        head = f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding hidden items:"
        return "\n".join([head, f"0B\t{path}", *listed])

    def create(self, path: str, text: str) -> str:
        """Create a file."""
        self._write(path := self._find_free(path), text)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs once in a file."""
        path, text = self._read_own(path)
        found = re.finditer(re.escape(old), text) if old else ()
        rows = [text.count("\n", 0, one.start()) + 1 for one in found]
        if len(rows) != 1:
            where = f"lines {', '.join(map(str, rows))}" if rows else "no line"
            raise ToolError(f"No replacement was performed: `{old}` must be once, not in {where}.")
        self._write(path, text.replace(old, new))
        snippet = self.view(path, [rows[0] - 2, rows[0] + 2 + new.count("\n")]).split("\n", 1)[-1]
        return f"The memory file has been edited.\n{snippet}"

    def insert(self, path: str, line: int, text: str) -> str:
        """Insert a text after a line; 0 is before the first."""
        path, old = self._read_own(path)
        rows = old.removesuffix("\n").split("\n")
        if not 0 <= line <= len(rows):
            raise ToolError(f"Error: Invalid `insert_line` {line}: not in [0, {len(rows)}].")
        rows.insert(line, text.removesuffix("\n"))
        self._write(path, "\n".join(rows) + "\n")
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Let a file, or all files of a directory, expire."""
        for name, text in self._find_own(path).items():
            self._write(name, text, expires_at=1)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename a file or a directory."""
        new_path = self._find_free(new_path)
        for name, text in self._find_own(old_path).items():
            self._write(new_path + name.removeprefix(_check_path(old_path)), text)
            self._write(name, text, expires_at=1)
        return f"Successfully renamed {old_path} to {new_path}"

    def _find_free(self, path: str) -> str:
        """Return a path at which a file can be made."""
        path = _check_own(path)
        for name in self._read_files():
            if f"{name}/".startswith(f"{path}/") or path.startswith(f"{name}/"):
                raise ToolError(
                    f"Error: {path} already exists, is a directory, or lies below a file"
                )
        return path

    def _read_own(self, path: str) -> tuple[str, str]:
        path = _check_own(path)
        return path, self._find_own(path).get(path) or _fail_missing(path)

    def _find_own(self, path: str) -> dict[str, str]:
        every, path = self._read_files().items(), _check_own(path)
        found = {name: text for name, text in every if f"{name}/".startswith(f"{path}/")}
        return found or _fail_missing(path)

    def _read_files(self) -> dict[str, str]:
        """Return all files: path → text."""
        files: dict[str, str] = {}
        latest = self._call("memd/list", {**self._scope, "limit": _KNOWN_MAX})["memories"]
        for one in (known for known in latest if not _is_file(known)):
            files[f"{KNOWN}/{one['id']}.md"] = f"# {one['title']}\n\n{one['body']}\n"
        after = None
        while True:
            wanted = {**self._scope, "source": SOURCE, "limit": _PAGE, "after": after}
            page = self._call("memd/list", wanted)
            files |= {one["topic_key"]: one["body"] for one in page["memories"] if _is_file(one)}
            if (after := page["next"]) is None:
                return files

    def _write(self, path: str, text: str, **more: object) -> None:
        if not text.strip():
            raise ToolError(f"Error: {path} would be empty, which memd does not keep; delete it.")
        first = next(row for row in text.split("\n") if row.strip())
        title = f"{path.removeprefix(ROOT)[1:]}: {first}"[:TITLE_CHARACTERS_MAX]
        slot = {"title": title, "topic_key": path, "source": SOURCE, **more}
        asked = {"memories": [{**self._scope, "text": text, **slot}]}
        done = self._call("memd/remember", asked)["remembered"][0]
        is_known = done["outcome"] == "duplicate" and not more
        kept = self._read_files().get(path, "") if is_known else text
        if kept.split() != text.split() and "[REDACTED" not in kept:
            raise ToolError(f"Error: {path} is not changed: the same is said in other signs.")

    def _call(self, method: str, params: Mapping[str, Any]) -> Any:
        try:
            return self._memd.call(method, params)
        except MemdError as error:
            raise ToolError(f"Error: {error.message}") from error


def _is_file(memory: Mapping[str, Any]) -> bool:
    return (memory["topic_key"] or "").startswith(f"{ROOT}/")


def _fail_missing(path: str) -> NoReturn:
    raise ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _check_path(path: str) -> str:
    """Return the path as the topic of a memory, without a slash at its end; ToolError if it leads out of /memories."""
    parts = path.split("/")
    if not _PATH.fullmatch(path) or "." in parts or ".." in parts:
        raise ToolError(f"Error: the path {path[:200]!r} is not one below {ROOT}")
    return fold_topic(path.rstrip("/"))


def _check_own(path: str) -> str:
    path = _check_path(path)
    if path in {ROOT, KNOWN} or path.startswith(f"{KNOWN}/"):
        raise ToolError(f"Error: {path} cannot be changed; keep what is new in a file of your own")
    return path


def make_memory_tool(memd: Client, directory: str) -> Any:
    """Make a tool for `run_tools` of the `anthropic` package. ImportError without it."""
    from anthropic.lib.tools import ToolError as Refused  # noqa: PLC0415  # an application's package
    from anthropic.tools.memory import BetaAbstractMemoryTool  # noqa: PLC0415

    files = MemoryFiles(memd, directory)

    def make_method(name: str, fields: Sequence[str]) -> Callable[[Any, Any], str]:
        def run(_: Any, command: Any) -> str:
            try:
                answer: str = getattr(files, name)(*(getattr(command, field) for field in fields))
            except ToolError as error:
                raise Refused(str(error)) from error
            return answer

        return run

    methods = {name: make_method(name, fields) for name, fields in _COMMANDS.items()}
    return type("MemdMemoryTool", (BetaAbstractMemoryTool,), methods)()
