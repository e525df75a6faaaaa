"""Bad disks to put under a real daemon: a small file system that fills up, and a shim that lets system calls fail.

The shim is a library in front of libc (LD_PRELOAD) that looks, at every call on a file below one
directory, into a mapped page which the test writes: so a fault begins and ends while a daemon runs.
Needs a C compiler, and Linux; the small file system needs the right to mount. Not here: what must hold.
"""

import contextlib
import ctypes
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PAGE = 4096
_PREFIX_AT = 256
_FIELDS = ("full", "read_only", "fsync_ms", "eio_write", "eio_fsync", "eio_read", "hits")
_SOURCE = Path(__file__).with_suffix(".c")


class Faults:
    """What is wrong with the files below one directory, for programs that run with `environ`.

    `full`, `read_only`: 1 while it is so. `fsync_ms`: how much longer each takes. `eio_write`,
    `eio_fsync`, `eio_read`: −1 for each, n for the n-th from now, once; half of a write is written.
    """

    def __init__(self, folder: str, library: str) -> None:
        page = Path(folder, "faults")
        page.write_bytes(bytes(_PAGE))
        self.environ = {"LD_PRELOAD": library, "TORTURE_FAULTS": str(page)}
        with page.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), _PAGE)

    def strike(self, below: str, **faults: int) -> None:
        """From now on it is so; what is not named is well."""
        self._page[_PREFIX_AT : _PREFIX_AT + len(below) + 1] = os.fsencode(below) + b"\0"
        values = [faults.get(name, 0) for name in _FIELDS]
        self._page[: 4 * len(values)] = struct.pack(f"{len(values)}i", *values)

    def heal(self) -> None:
        """All is well again."""
        self._page[:_PREFIX_AT] = bytes(_PREFIX_AT)

    @property
    def hits(self) -> int:
        """How many calls were made to fail since the last strike."""
        return int(struct.unpack_from("i", self._page, 4 * _FIELDS.index("hits"))[0])

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()


@contextlib.contextmanager
def faults() -> Iterator[Faults]:
    """The shim, compiled. LookupError where that cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not sys.platform.startswith("linux") or compiler is None:
        raise LookupError("no C compiler here, or not Linux: nothing can stand before libc")
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        library = str(Path(folder, "faults.so"))
        command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, str(_SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LookupError(f"the shim does not compile here: {done.stderr.strip()}")
        it = Faults(folder, library)
        try:
            yield it
        finally:
            it.close()


@contextlib.contextmanager
def small_disk(size: int) -> Iterator[str]:
    """A file system of this many bytes, mounted for the block. LookupError where one may not mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        options = f"size={size},mode=0700".encode()
        if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, options):
            raise LookupError(f"no mounting here: {os.strerror(ctypes.get_errno())}")
        try:
            yield folder
        finally:
            libc.umount2(folder.encode(), 2)
