"""Files of JSON settings, read strictly and changed gently: a file that does not parse is left alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memd.errors import BadRequest
from memd.setup import files, jsontext
from memd.setup.files import FileChange

_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Document:
    """An object in a file."""

    path: Path
    before: bytes | None
    value: Mapping[str, Any]

    def changed(self, how: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> FileChange:
        """Plan what `how` makes of the object. A file that would say nothing goes.

        Raises BadRequest with the file's name if `how` cannot deal with what it finds.
        """
        try:
            value = how(self.value)
        except BadRequest as error:
            raise _refused(self.path, error.message) from error
        if value == self.value:
            return FileChange(self.path, self.before, self.before)
        if not value:
            return FileChange(self.path, self.before, None)
        mark, text = _decoded(self.before)
        after = jsontext.edit(text if text.strip() else "{}\n", value)
        return FileChange(self.path, self.before, f"{mark}{after}".encode())


def read(path: Path) -> Document:
    """Read a file of settings. Raises BadRequest with path, line and column if it is broken."""
    before = files.read(path)
    try:
        text = _decoded(before)[1]
        value = jsontext.parse(text) if text.strip() else {}
    except UnicodeDecodeError as error:
        raise _refused(path, f"byte {error.start} is not UTF-8") from error
    except BadRequest as error:
        raise _refused(path, error.message) from error
    if not isinstance(value, dict):
        raise _refused(path, "it holds no object")
    return Document(path, before, value)


def _decoded(content: bytes | None) -> tuple[str, str]:
    """The mark that some editors put before UTF-8, and the text."""
    text = (content or b"").decode("utf-8")
    bare = text.removeprefix(_MARK)
    return _MARK if bare != text else "", bare


def _refused(path: Path, why: str) -> BadRequest:
    return BadRequest(f"{path}: {why}. Nothing was changed; mend the file, then try again")
