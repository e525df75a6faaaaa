/* LD_PRELOAD library: makes calls on files below one directory fail as a shared page says; see disk_faults.py. */
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
static struct faults *faults;

static int load(void) {
  if (faults) return 1;
  const char *path = getenv("TORTURE_FAULTS");
  if (!path) return 0;
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int fd = real(path, O_RDWR);
  if (fd < 0) return 0;
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) return 0;
  faults = page;
  return 1;
}
static int below(const char *path) {
  const char *prefix = (const char *)faults + 256;
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
static int fail(int code) { __atomic_add_fetch(&faults->hits, 1, __ATOMIC_SEQ_CST); errno = code; return -1; }
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
    if (faults->read_only) return fail(EROFS);
    if (faults->full && grows(fd, -1, n)) return fail(ENOSPC);
    if (struck(&faults->eio_write)) { if (n > 1) real(fd, b, n / 2); return fail(EIO); }
  }
  return real(fd, b, n);
}
static ssize_t put(ssize_t (*real)(int, const void *, size_t, off_t), int fd, const void *b, size_t n, off_t at) {
  if (ours(fd)) {
    if (faults->read_only) return fail(EROFS);
    if (faults->full && grows(fd, at, n)) return fail(ENOSPC);
    if (struck(&faults->eio_write)) { if (n > 1) real(fd, b, n / 2, at); return fail(EIO); }
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
  if (ours(fd) && struck(&faults->eio_read)) return fail(EIO);
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
  if (ours(fd) && struck(&faults->eio_read)) return fail(EIO);
  return real(fd, b, n);
}
static int flush(int (*real)(int), int fd) {
  if (ours(fd)) {
    if (faults->fsync_ms) usleep(faults->fsync_ms * 1000);
    if (struck(&faults->eio_fsync)) return fail(EIO);
  }
  return real(fd);
}
int fsync(int fd) { REAL("fsync", int, int); return flush(real, fd); }
int fdatasync(int fd) { REAL("fdatasync", int, int); return flush(real, fd); }
static int refused(const char *path, int flags) {
  struct stat s;
  if (!load() || !below(path)) return 0;
  if (faults->read_only && (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))) return fail(EROFS);
  if (faults->full && (flags & O_CREAT) && stat(path, &s)) return fail(ENOSPC);
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
  if (faults->read_only) return fail(EROFS);
  return needs && faults->full ? fail(ENOSPC) : 0;
}
int mkdir(const char *p, mode_t m) { REAL("mkdir", int, const char *, mode_t); return changes(p, 1) ? -1 : real(p, m); }
int unlink(const char *p) { REAL("unlink", int, const char *); return changes(p, 0) ? -1 : real(p); }
int rename(const char *a, const char *b) { REAL("rename", int, const char *, const char *); return changes(b, 0) ? -1 : real(a, b); }
int link(const char *a, const char *b) { REAL("link", int, const char *, const char *); return changes(b, 1) ? -1 : real(a, b); }
static int cut(int fd, off_t n) {
  struct stat s;
  if (!ours(fd)) return 0;
  if (faults->read_only) return fail(EROFS);
  return faults->full && !fstat(fd, &s) && n > s.st_size ? fail(ENOSPC) : 0;
}
int ftruncate(int fd, off_t n) { REAL("ftruncate", int, int, off_t); return cut(fd, n) ? -1 : real(fd, n); }
int ftruncate64(int fd, off_t n) { REAL("ftruncate64", int, int, off_t); return cut(fd, n) ? -1 : real(fd, n); }
int posix_fallocate(int fd, off_t at, off_t n) {
  REAL("posix_fallocate", int, int, off_t, off_t);
  return ours(fd) && faults->full ? ENOSPC : real(fd, at, n);
}
int posix_fallocate64(int fd, off_t at, off_t n) {
  REAL("posix_fallocate64", int, int, off_t, off_t);
  return ours(fd) && faults->full ? ENOSPC : real(fd, at, n);
}
