"""The directory beside a vault in which the index keeps its copy: where it is, what it weighs, how it goes.

Derived, and numbers only. Not here: what lies in it (index/copy.py).
"""

import contextlib
import os
import shutil
from pathlib import Path

_SUFFIX = ".shelf"
_BLOCK = 512
"""What `stat` counts in: most of a copy's room is a hole that takes no disk."""


def directory(vault: str) -> str:
    """Where the copies of a vault's index lie."""
    return vault + _SUFFIX


def weigh(vault: str) -> int:
    """Bytes on the disk."""
    total = 0
    for folder, _, names in os.walk(directory(vault)):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).stat().st_blocks * _BLOCK
    return total


def discard(vault: str) -> None:
    """Take all of it away. What cannot be is left: no start takes it for anything."""
    shutil.rmtree(directory(vault), ignore_errors=True)
