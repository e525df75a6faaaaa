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
_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct faults { volatile int full, read_only, fsync_ms, eio_write, eio_fsync, eio_read, hits; };
static struct faults *told;

static int load(void) {
  if (told) return 1;
  const char *path = getenv("TORTURE_FAULTS");
  if (!path) return 0;
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int fd = real(path, O_RDWR);
  if (fd < 0) return 0;
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) return 0;
  told = page;
  return 1;
}
static int below(const char *path) {
  const char *prefix = (const char *)told + 256;
  return path && prefix[0] && !strncmp(path, prefix, strlen(prefix));
}
static int ours(int fd) {
  char link[64], path[4096];
  if (!load()) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return below(path);
}
static int fail(int code) { __atomic_add_fetch(&told->hits, 1, __ATOMIC_SEQ_CST); errno = code; return -1; }
/* -1: every one of them; n: the n-th from now on, once. */
static int struck(volatile int *count) {
  if (!*count) return 0;
  if (*count < 0) return 1;
  return __atomic_sub_fetch(count, 1, __ATOMIC_SEQ_CST) == 0;
}
static int grows(int fd, off_t at, size_t n) {
  struct stat s;
  if (fstat(fd, &s) || !S_ISREG(s.st_mode)) return 0;
  if (fcntl(fd, F_GETFL) & O_APPEND) at = s.st_size;
  if (at < 0) at = lseek(fd, 0, SEEK_CUR);
  return at + (off_t)n > s.st_size;
}
#define REAL(name, type, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *b, size_t n) {
  REAL("write", ssize_t, int, const void *, size_t);
  if (ours(fd)) {
    if (told->read_only) return fail(EROFS);
    if (told->full && grows(fd, -1, n)) return fail(ENOSPC);
    if (struck(&told->eio_write)) { if (n > 1) real(fd, b, n / 2); return fail(EIO); }
  }
  return real(fd, b, n);
}
static ssize_t put(ssize_t (*real)(int, const void *, size_t, off_t), int fd, const void *b, size_t n, off_t at) {
  if (ours(fd)) {
    if (told->read_only) return fail(EROFS);
    if (told->full && grows(fd, at, n)) return fail(ENOSPC);
    if (struck(&told->eio_write)) { if (n > 1) real(fd, b, n / 2, at); return fail(EIO); }
  }
  return real(fd, b, n, at);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) {
  REAL("pwrite", ssize_t, int, const void *, size_t, off_t);
  return put(real, fd, b, n, at);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off_t at) {
  REAL("pwrite64", ssize_t, int, const void *, size_t, off_t);
  return put(real, fd, b, n, at);
}
static ssize_t get(ssize_t (*real)(int, void *, size_t, off_t), int fd, void *b, size_t n, off_t at) {
  if (ours(fd) && struck(&told->eio_read)) return fail(EIO);
  return real(fd, b, n, at);
}
ssize_t pread(int fd, void *b, size_t n, off_t at) {
  REAL("pread", ssize_t, int, void *, size_t, off_t);
  return get(real, fd, b, n, at);
}
ssize_t pread64(int fd, void *b, size_t n, off_t at) {
  REAL("pread64", ssize_t, int, void *, size_t, off_t);
  return get(real, fd, b, n, at);
}
ssize_t read(int fd, void *b, size_t n) {
  REAL("read", ssize_t, int, void *, size_t);
  if (ours(fd) && struck(&told->eio_read)) return fail(EIO);
  return real(fd, b, n);
}
static int flush(int (*real)(int), int fd) {
  if (ours(fd)) {
    if (told->fsync_ms) usleep(told->fsync_ms * 1000);
    if (struck(&told->eio_fsync)) return fail(EIO);
  }
  return real(fd);
}
int fsync(int fd) { REAL("fsync", int, int); return flush(real, fd); }
int fdatasync(int fd) { REAL("fdatasync", int, int); return flush(real, fd); }
static int refused(const char *path, int flags) {
  struct stat s;
  if (!load() || !below(path)) return 0;
  if (told->read_only && (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))) return fail(EROFS);
  if (told->full && (flags & O_CREAT) && stat(path, &s)) return fail(ENOSPC);
  return 0;
}
#define OPEN(name) int name(const char *path, int flags, ...) { \
  REAL(#name, int, const char *, int, ...); mode_t mode = 0; \
  if (flags & (O_CREAT | __O_TMPFILE)) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); } \
  if (refused(path, flags)) return -1; return real(path, flags, mode); }
OPEN(open)
OPEN(open64)
static int changes(const char *path, int needs) {
  if (!load() || !below(path)) return 0;
  if (told->read_only) return fail(EROFS);
  return needs && told->full ? fail(ENOSPC) : 0;
}
int mkdir(const char *p, mode_t m) { REAL("mkdir", int, const char *, mode_t); return changes(p, 1) ? -1 : real(p, m); }
int unlink(const char *p) { REAL("unlink", int, const char *); return changes(p, 0) ? -1 : real(p); }
int rename(const char *a, const char *b) { REAL("rename", int, const char *, const char *); return changes(b, 0) ? -1 : real(a, b); }
int link(const char *a, const char *b) { REAL("link", int, const char *, const char *); return changes(b, 1) ? -1 : real(a, b); }
static int cut(int fd, off_t n) {
  struct stat s;
  if (!ours(fd)) return 0;
  if (told->read_only) return fail(EROFS);
  return told->full && !fstat(fd, &s) && n > s.st_size ? fail(ENOSPC) : 0;
}
int ftruncate(int fd, off_t n) { REAL("ftruncate", int, int, off_t); return cut(fd, n) ? -1 : real(fd, n); }
int ftruncate64(int fd, off_t n) { REAL("ftruncate64", int, int, off_t); return cut(fd, n) ? -1 : real(fd, n); }
int posix_fallocate(int fd, off_t at, off_t n) {
  REAL("posix_fallocate", int, int, off_t, off_t);
  return ours(fd) && told->full ? ENOSPC : real(fd, at, n);
}
int posix_fallocate64(int fd, off_t at, off_t n) {
  REAL("posix_fallocate64", int, int, off_t, off_t);
  return ours(fd) && told->full ? ENOSPC : real(fd, at, n);
}
"""


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
        source, library = Path(folder, "shim.c"), str(Path(folder, "shim.so"))
        source.write_text(_SHIM, encoding="utf-8")
        command = [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-w",
            "-o",
            library,
            str(source),
            "-ldl",
        ]
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


def remount(folder: str, size: int, *, is_read_only: bool = False) -> None:
    """Change a small disk's size, or whether it may be written to. OSError if the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = 32 | is_read_only  # MS_REMOUNT | MS_RDONLY
    if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", flags, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), "the disk could not be changed")
