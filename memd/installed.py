"""Which interpreter runs memd, and from where: a note of two lines that the plugin's launcher reads.

A plugin is copied into a new directory at every update, and a client that was started from a desktop
has a short PATH: neither finds the memd that is installed. So memd says where it is whenever it is
installed somewhere or a daemon starts. Not here: reading it (plugin/scripts/memd).
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
"""The directory of the package `memd`."""


def python() -> str:
    """Return the interpreter that runs us, by the name under which it knows its packages."""
    return os.path.abspath(sys.executable)  # noqa: PTH100  # a virtual environment is a link: not followed


def leave(note: str) -> None:
    """Write the note, whole or not at all; one that cannot be written holds nobody up."""
    path, said = Path(note), f"{python()}\n{PACKAGE}\n"
    with contextlib.suppress(OSError, ValueError):
        if path.exists() and path.read_text(encoding="utf-8") == said:
            return
        number, name = tempfile.mkstemp(prefix=".installed.", dir=path.parent)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(said)
        Path(name).replace(path)
