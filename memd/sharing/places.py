"""Sync targets: a folder, a git repository, a directory behind ssh.

Each is a folder here, in which the logs lie: what others wrote is fetched into it before a sync, and what this
device wrote is published from it afterwards. Only other programs speak to the network: git and ssh.
"""

import contextlib
import fcntl
import io
import os
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from memd.errors import BadRequest
from memd.paths import private_dir
from memd.sharing import chunks
from memd.sharing.folder import LOGS
from memd.sharing.records import PlaceUnreachable
from memd.text import digest, one_line

COMMAND_S = 120.0
"""Seconds that one call of git or ssh may take."""
PROBE_S = 10.0
"""Seconds that one may take to see whether a place can be reached."""
_PUSH_ATTEMPTS_MAX = 5
_BRANCH = "memd"
_IDENTITY = ("-c", "user.name=memd", "-c", "user.email=memd@localhost")
"""Who commits, for git refuses to without a name."""
_ATTRIBUTES = "* -text -ident -filter -merge !eol !working-tree-encoding\n"
"""Goes before every `.gitattributes` in the repository."""
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_LIKE_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:.+")
_LOG_FILE = re.compile(rf"{LOGS}/[0-9a-f]{{16}}/[^/]+")


def parse_target(text: str, mirrors: str, *, asks: bool) -> "SyncTarget":
    """Parse the target that a user names. `asks`: whether git and ssh may ask for a password. BadRequest if it is none.

    `mirrors` is the directory for copies of what is not a folder.
    """
    if text.startswith("ssh://"):
        return _parse_ssh(text, mirrors, asks=asks)
    url = text.removeprefix("git+")
    path = Path(text).expanduser()
    is_url = url != text or "://" in text or bool(_LIKE_SCP.fullmatch(text))
    if is_url or (path.is_dir() and (path / "HEAD").is_file() and (path / "objects").is_dir()):
        if url.startswith("-"):
            raise BadRequest(f"place: {text!r} is not the address of a repository")
        target = url if is_url else str(path.absolute())
        return GitPlace(target, str(Path(mirrors, digest("git", target)[:16])), asks)
    if not path.is_absolute():
        raise BadRequest(
            f"place: give {text!r} as an absolute path, a git address or ssh://host/path"
        )
    if (path / ".git").exists():
        return CloneTarget(str(path), str(path), asks)
    return FolderTarget(str(path), str(path))


def _parse_ssh(text: str, mirrors: str, *, asks: bool) -> "SshTarget":
    parts = urlsplit(text)
    host, user = parts.hostname or "", parts.username or ""
    path = parts.path.removeprefix("/~/") if parts.path.startswith("/~/") else parts.path
    is_user = not user or _HOST.fullmatch(user.replace("_", ""))
    if not (_HOST.fullmatch(host) and is_user) or path in {"", "/"}:
        raise BadRequest(f"place: {text!r} is not ssh://[user@]host[:port]/path")
    options = (["-p", str(parts.port)] if parts.port else []) + (["-l", user] if user else [])
    folder = str(Path(mirrors, digest("ssh", text)[:16]))
    return SshTarget(text, folder, (*options, "--", host), path, asks)


@contextlib.contextmanager
def hold_place(place: "SyncTarget", mirrors: str) -> Iterator[None]:
    """Keep other processes of this user from syncing with the same target."""
    path = Path(private_dir(mirrors), f"{digest('place', place.name)[:16]}.lock")
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PlaceUnreachable(f"{place.name} is being synced by another process") from None
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A folder that something else carries about: Syncthing, a mount, a stick."""

    name: str
    folder: str

    def probe(self) -> str:
        """See whether it is there and can be written."""
        self.fetch("")
        logs = Path(self.folder, LOGS)
        if not os.access(logs if logs.is_dir() else self.folder, os.W_OK | os.X_OK):
            raise PlaceUnreachable(f"{self.folder} cannot be written")
        return _count_logs(Path(self.folder))

    def fetch(self, device: str) -> None:  # noqa: ARG002  # a place's
        """See whether it is there."""
        if not Path(self.folder).is_dir():
            raise PlaceUnreachable(f"{self.folder} is not there; make it, or mount it")

    def publish(self, device: str) -> None:
        """Do nothing: the folder is published by what syncs it."""


@dataclass(frozen=True, slots=True)
class CloneTarget:
    """A clone that the user made: its branch is pulled by rebase and pushed, never by force."""

    name: str
    folder: str
    asks: bool

    def probe(self) -> str:
        """Ask the remote for its branches, if there is one."""
        if self._git("remote"):
            self._ask_remote("-C", self.folder, "ls-remote", "--heads")
        return _count_logs(Path(self.folder))

    def _ask_remote(self, *words: str) -> None:
        _run(["git", *words], asks=self.asks, seconds=PROBE_S)

    def fetch(self, device: str) -> None:  # noqa: ARG002  # a place's
        """Pull what others pushed."""
        self._commit()
        self._pull()

    def publish(self, device: str) -> None:  # noqa: ARG002  # a place's
        """Commit and push; what others pushed meanwhile is pulled first."""
        self._commit()
        if not self._git("remote"):
            return
        for attempt in range(_PUSH_ATTEMPTS_MAX):
            try:
                self._push()
            except PlaceUnreachable:
                if attempt + 1 == _PUSH_ATTEMPTS_MAX:
                    raise
                self._pull()
            else:
                return

    def _push(self) -> None:
        self._git("push", "--quiet")

    def _pull(self) -> None:
        upstream = ("rev-parse", "--verify", "--quiet", "@{upstream}")
        if self._git("remote") and self._git_succeeds(*upstream):
            # A rebase makes commits; they bear the user's name where git knows one.
            who = () if self._git_succeeds("var", "GIT_COMMITTER_IDENT") else _IDENTITY
            self._git(*who, "pull", "--rebase", "--autostash", "--quiet")

    def _commit(self) -> None:
        """Commit the logs alone, whatever else has changed in the clone."""
        if not Path(self.folder, LOGS).is_dir():
            return
        self._git("add", "--all", "--", LOGS)
        if not self._git_succeeds("diff", "--cached", "--quiet", "--", LOGS):
            commit = ("commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", "memd sync")
            self._git(*_IDENTITY, *commit, "--", LOGS)

    def _git_succeeds(self, *words: str) -> bool:
        return (
            _run(["git", "-C", self.folder, *words], asks=self.asks, checks=False).returncode == 0
        )

    def _git(self, *words: str) -> str:
        done = _run(["git", "-C", self.folder, *words], asks=self.asks)
        return done.stdout.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class GitPlace(CloneTarget):
    """A repository that is known by its address: memd has a clone of its own, and a branch of its own in it."""

    def probe(self) -> str:
        """Ask it for its branches."""
        self._ask_remote("ls-remote", "--heads", "--", self.name)
        return _count_logs(Path(self.folder))

    def fetch(self, device: str) -> None:  # noqa: ARG002  # a place's
        """Clone it if that was not done yet, and pull."""
        folder = Path(self.folder)
        if not (folder / ".git").is_dir():
            private_dir(self.folder)
            self._git("init", "--quiet", "--initial-branch", _BRANCH)
        # What others push decides nothing but what chunks say: no link, and no attribute that changes bytes.
        self._git("config", "core.symlinks", "false")
        attributes = folder / ".git" / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text(_ATTRIBUTES, encoding="utf-8")
        # A killed git leaves its lock; nobody else uses this clone, and no other process of ours does now.
        (folder / ".git" / "index.lock").unlink(missing_ok=True)
        if not self._git("remote"):
            self._git("remote", "add", "origin", self.name)
        if self._git_succeeds("rev-parse", "--verify", "--quiet", "REBASE_HEAD"):
            self._git("rebase", "--abort")
        self._commit()
        self._pull()

    def _push(self) -> None:
        if self._git_succeeds("rev-parse", "--verify", "--quiet", "HEAD"):
            self._git("push", "--quiet", "origin", f"HEAD:refs/heads/{_BRANCH}")

    def _pull(self) -> None:
        self._git("fetch", "--quiet", "origin")
        there = f"refs/remotes/origin/{_BRANCH}"
        if not self._git_succeeds("rev-parse", "--verify", "--quiet", there):
            return
        if self._git_succeeds("rev-parse", "--verify", "--quiet", "HEAD"):
            self._git(*_IDENTITY, "rebase", "--quiet", "--no-gpg-sign", there)
        else:
            self._git("reset", "--hard", "--quiet", there)


@dataclass(frozen=True, slots=True)
class SshTarget:
    """A directory of another machine, read and written by `ssh HOST` with a shell, `find` and `tar`."""

    name: str
    folder: str
    target: tuple[str, ...]
    path: str
    asks: bool

    def probe(self) -> str:
        """Look whether the directory is there."""
        self._ssh(f"test ! -e {self._quoted} || test -d {self._quoted}", seconds=PROBE_S)
        return _count_logs(Path(self.folder))

    def fetch(self, device: str) -> None:
        """Copy the chunks that are not here, and remove those of others that are not there any more."""
        mirror = Path(private_dir(self.folder))
        found = self._ssh(
            f"mkdir -p {self._quoted} && cd {self._quoted} && if [ -d {LOGS} ]; then find {LOGS} -type f; fi"
        )
        there = set(filter(_is_log_file, found.decode("utf-8", "replace").splitlines()))
        here = _list_files(mirror)
        for name in here - there:
            # Our own may not have been sent yet; what we have removed, `publish` removes there.
            if not _is_of(name, device):
                (mirror / name).unlink(missing_ok=True)
        epoch = max((_epoch_of(name) for name in here if _is_of(name, device)), default=0)
        missing = {
            name for name in there - here if not _is_of(name, device) or _epoch_of(name) >= epoch
        }
        if missing:
            names = "\n".join(sorted(missing)).encode() + b"\n"
            self._unpack(self._ssh(f"cd {self._quoted} && tar cf - -T -", names), missing)

    def publish(self, device: str) -> None:
        """Send the chunks of this device that are not there, and remove there what it has removed."""
        own = f"{LOGS}/{device}"
        here = {name for name in _list_files(Path(self.folder)) if _is_of(name, device)}
        found = self._ssh(f"cd {self._quoted} && if [ -d {own} ]; then find {own} -type f; fi")
        # A name with a line break in it would else name any file of that machine, to be removed.
        listed = found.decode("utf-8", "replace").splitlines()
        there = {name for name in listed if _LOG_FILE.fullmatch(name) and _is_of(name, device)}
        incoming = f".memd-{device}"
        # A file gets its name when all have arrived: a connection that breaks leaves none cut off.
        script = (
            f"set -e; cd {self._quoted}; rm -rf {incoming}; mkdir -p {incoming}/{own} {own};"
            f" tar xf - -C {incoming}; for one in {incoming}/{own}/*; do"
            f' if [ -f "$one" ]; then mv "$one" {own}/; fi; done; rm -rf {incoming}'
        )
        gone = [shlex.quote(name) for name in sorted(there - here)]
        if gone:
            script += f"; rm -f -- {' '.join(gone)}"
        if here - there or gone:
            self._ssh(script, _pack(Path(self.folder), sorted(here - there)))

    @property
    def _quoted(self) -> str:
        return shlex.quote(self.path)

    def _ssh(self, script: str, stdin: bytes = b"", *, seconds: float = COMMAND_S) -> bytes:
        batch = () if self.asks else ("-o", "BatchMode=yes")
        words = ["ssh", *batch, *self.target, script]
        return _run(words, stdin, asks=self.asks, seconds=seconds).stdout

    def _unpack(self, archive: bytes, wanted: set[str]) -> None:
        """Write these files of an archive, each by a name that it gets when it is complete."""
        with _translate_archive_errors(), tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                content = (
                    tar.extractfile(member) if member.name in wanted and member.isreg() else None
                )
                if content is None or member.size > chunks.FILE_BYTES_MAX:
                    continue
                target = Path(self.folder, member.name)
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                partial = target.with_name(target.name + ".partial")
                partial.write_bytes(content.read())
                partial.rename(target)


SyncTarget = FolderTarget | CloneTarget | SshTarget
"""A sync target: where logs lie, and how they get there.

`name` is that of the target in the vault, `folder` the directory of its logs on this machine. `probe` sees within seconds whether
it can be reached, and changes nothing. `fetch` brings what others wrote, `publish` takes there what this device wrote:
PlaceUnreachable if that is impossible now.
"""


@contextlib.contextmanager
def _translate_archive_errors() -> Iterator[None]:
    try:
        yield
    except tarfile.TarError as error:
        raise PlaceUnreachable(f"ssh sent no archive: {error}") from error


def _is_log_file(name: str) -> bool:
    return bool(_LOG_FILE.fullmatch(name)) and chunks.parse_name(Path(name).name) is not None


def _is_of(name: str, device: str) -> bool:
    return name.startswith(f"{LOGS}/{device}/")


def _epoch_of(name: str) -> int:
    found = chunks.parse_name(Path(name).name)
    return found.epoch if found else 0


def _count_logs(folder: Path) -> str:
    count = len({Path(name).parent for name in _list_files(folder)})
    return f"devices with a log: {count}" if count else "no logs yet"


def _list_files(folder: Path) -> set[str]:
    found = (str(path.relative_to(folder)) for path in (folder / LOGS).glob("*/*"))
    return set(filter(_is_log_file, found))


def _pack(folder: Path, names: Sequence[str]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names:
            tar.add(folder / name, arcname=name, recursive=False)
    return archive.getvalue()


def _run(
    words: Sequence[str],
    stdin: bytes = b"",
    *,
    asks: bool,
    checks: bool = True,
    seconds: float = COMMAND_S,
) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "LC_ALL": "C"} | ({} if asks else {"GIT_TERMINAL_PROMPT": "0"})
    if not asks:
        environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    try:
        done = subprocess.run(  # noqa: S603  # git and ssh, with words that were checked
            words, input=stdin, capture_output=True, timeout=seconds, env=environment, check=False
        )
    except FileNotFoundError:
        raise PlaceUnreachable(f"there is no {words[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise PlaceUnreachable(f"{words[0]} took longer than {seconds:.0f} s") from None
    if checks and done.returncode:
        said = one_line(done.stderr.decode("utf-8", "replace").strip(), 300)
        raise PlaceUnreachable(f"{words[0]} failed: {said or f'status {done.returncode}'}")
    return done
