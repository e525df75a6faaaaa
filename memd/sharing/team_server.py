"""A connection to the team's PostgreSQL: bounded in time, its errors translated, its schema kept up to date.

psycopg is imported when somebody connects, so that memd works without it.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memd.errors import BadRequest, Broken

if TYPE_CHECKING:
    import psycopg

CONNECT_S = 5
STATEMENT_S = 30
"""Seconds that one statement may take on the server."""
CALL_S = 60
"""Seconds that one conversation may take; then its connection is cut off, whatever it waits for."""
VERSION_MIN = 14
SCHEMES = ("postgresql", "postgres")
_LIMITS = (
    f"SET statement_timeout = {STATEMENT_S * 1000}; SET lock_timeout = {CONNECT_S * 1000};"
    f" SET idle_in_transaction_session_timeout = {CALL_S * 1000}"
)
EXAMINE_S = 10
"""Seconds that `memd doctor` waits."""
_GUARDED = ["heads", "members", "projects", "records"]
"""Tables with row-level security."""
ROLES = ("reader", "writer", "maintainer")


class ServerUnreachable(Broken):
    """The team's server does not answer. Nothing is lost: what is to be shared waits."""


class ServerRefused(BadRequest):
    """The team's server refuses this."""


def describe_url(url: str) -> str:
    """The address without its password, for people."""
    try:
        parts = urlsplit(url)
        user = f"{parts.username}@" if parts.username else ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the team's server"
    if parts.scheme not in SCHEMES:
        return "the team's server"
    return f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"


@contextlib.contextmanager
def connect(url: str) -> Iterator["psycopg.Connection[Any]"]:
    """Yield a connection that commits every statement by itself, unless a transaction is begun.

    Raises ServerUnreachable if the server is away, slow or cut off, ServerRefused for what it will not do.
    """
    psycopg = _import_psycopg()
    if not url.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        raise ServerRefused("[team] url: it must begin with postgresql://")
    with translated(url):
        connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_S,
            application_name="memd",
            prepare_threshold=None,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
        )
        with contextlib.closing(connection):
            with bounded(connection):
                connection.execute(_LIMITS.encode())
            yield connection


@contextlib.contextmanager
def bounded(connection: "psycopg.Connection[Any]", seconds: float = CALL_S) -> Iterator[None]:
    """Cut the connection off if the block takes longer, whatever it waits for."""
    watchdog = threading.Timer(seconds, cut_off, [connection])
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _import_psycopg() -> Any:
    try:
        import psycopg  # noqa: PLC0415  # an extra that most do without
    except ImportError as error:
        raise BadRequest(
            "a team's memory needs psycopg 3: install memd with its extra,"
            " such as `uv tool install 'memd-daemon[team]' 'psycopg[binary]'`"
            f" ({error})"
        ) from None
    return psycopg


def cut_off(connection: "psycopg.Connection[Any]") -> None:
    """Shut a connection's socket, so that the thread that waits for it goes on."""
    with (
        contextlib.suppress(OSError, _import_psycopg().Error),  # it may have been closed by then
        socket.socket(fileno=os.dup(connection.fileno())) as copy,
    ):
        copy.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def translated(url: str) -> Iterator[None]:
    """Raise psycopg's errors as ServerUnreachable or ServerRefused, which name the server."""
    psycopg = _import_psycopg()
    place = describe_url(url)
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise ServerRefused(
            f"{place}: {_first_line(error, url)}; ask a maintainer for a role, `memd team grant` gives it"
        ) from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise ServerRefused(
            f"{place} is not prepared for a team; its owner does that with `memd team init`"
        ) from error
    except (psycopg.errors.UndefinedObject, psycopg.errors.CheckViolation) as error:
        raise ServerRefused(f"{place}: {_first_line(error, url)}") from error
    except psycopg.ProgrammingError as error:
        raise ServerRefused(f"{place}: {_first_line(error, url)}; see [team] url") from error
    except (psycopg.Error, UnicodeError) as error:
        raise ServerUnreachable(f"{place}: {_first_line(error, url)}") from error


def _first_line(error: Exception, url: str) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    line = (primary or str(error)).strip().partition("\n")[0][:300] or type(error).__name__
    with contextlib.suppress(ValueError):
        secret = urlsplit(url).password
        line = line.replace(secret, "…") if secret else line
    return line


# ── The schema, and who may do what ────────────────────────────────────────────────────────────


def prepare(url: str) -> list[int]:
    """Make the tables, or bring them up to date; the numbers of the migrations that ran. For the owner."""
    psycopg = _import_psycopg()
    with connect(url) as connection, bounded(connection), connection.transaction():
        version = connection.info.server_version // 10_000
        if version < VERSION_MIN:
            raise ServerRefused(
                f"{describe_url(url)} is PostgreSQL {version}; {VERSION_MIN} or newer is needed"
            )
        done = _applied_migrations(connection)
        missing = {number: sql for number, sql in _read_migrations().items() if number not in done}
        try:
            for number, sql in sorted(missing.items()):
                connection.execute(sql.encode())
                connection.execute("INSERT INTO memd.migrations (number) VALUES (%s)", [number])
        except psycopg.errors.InsufficientPrivilege as error:
            raise ServerRefused(
                f"{describe_url(url)}: {_first_line(error, url)}; use a user who may create a schema"
            ) from error
        return sorted(missing)


def check_schema(connection: "psycopg.Connection[Any]", url: str) -> None:
    """ServerRefused, with what to do, if this memd and the server's tables do not fit."""
    there = max(_applied_migrations(connection), default=0)
    known = max(_read_migrations())
    if there == 0:
        raise ServerRefused(
            f"{describe_url(url)} is not prepared for a team; its owner does that with `memd team init`"
        )
    if there > known:
        raise ServerRefused(
            f"{describe_url(url)} was prepared by a newer memd (schema {there}); update memd"
        )
    if there < known:
        raise ServerRefused(
            f"{describe_url(url)} has schema {there}, this memd needs {known};"
            " its owner runs `memd team init`"
        )


@contextlib.contextmanager
def _visit(url: str, seconds: float = CALL_S) -> Iterator["psycopg.Connection[Any]"]:
    """Connect to a server whose tables fit, for one short conversation."""
    with connect(url) as connection, bounded(connection, seconds):
        check_schema(connection, url)
        yield connection


@dataclass(frozen=True, slots=True)
class ServerExamination:
    """Findings from examining the server."""

    user: str
    roles: dict[str, str]
    """Project → our role in it."""
    version: str
    schema: int
    """The number of the last migration."""
    unguarded: tuple[str, ...]
    """Tables without row-level security."""
    is_above: bool
    """Whether row-level security does not hold for us: the owner, or a superuser."""


def examine(url: str) -> ServerExamination:
    """Look at the server as a member. ServerUnreachable or ServerRefused, with what to do."""
    with _visit(url, EXAMINE_S) as connection, translated(url):
        user, roles = read_roles(connection)
        rows = connection.execute(
            "SELECT c.relname::text, c.relrowsecurity, row_security_active(c.oid) FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'memd' AND c.relname = ANY(%s)"
            " ORDER BY c.relname",
            [_GUARDED],
        ).fetchall()
        ((version,),) = connection.execute("SHOW server_version").fetchall()
        return ServerExamination(
            user, roles, str(version).partition(" ")[0], max(_applied_migrations(connection)),
            tuple(f"memd.{name}" for name, is_guarded, _ in rows if not is_guarded),
            not all(is_active for _, _, is_active in rows),
        )  # fmt: skip


def _applied_migrations(connection: "psycopg.Connection[Any]") -> set[int]:
    found = connection.execute("SELECT to_regclass('memd.migrations') IS NOT NULL").fetchone()
    if not found or not found[0]:
        return set()
    return {number for (number,) in connection.execute("SELECT number FROM memd.migrations")}


def _read_migrations() -> dict[int, str]:
    folder = resources.files("memd.sharing") / "migrations"
    return {
        int(file.name[:4]): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def grant(url: str, member: str, role: str, project: str) -> None:
    """Give a database user a role in a project, or `none`. For its maintainers; the owner makes projects."""
    if role not in {*ROLES, "none"}:
        raise BadRequest(f"role: {role[:40]!r} is none of {', '.join(ROLES)}, none")
    with _visit(url) as connection:
        connection.execute("SELECT memd.set_role(%s, %s, %s)", [project, member, role])


def list_roles(url: str) -> tuple[str, dict[str, str]]:
    """Return (the user's name on the server, project → the user's role in it)."""
    with _visit(url) as connection:
        return read_roles(connection)


def read_roles(connection: "psycopg.Connection[Any]") -> tuple[str, dict[str, str]]:
    """The same on a connection."""
    ((name,),) = connection.execute("SELECT session_user::text").fetchall()
    rows = connection.execute("SELECT project, role FROM memd.members WHERE member = session_user")
    return str(name), {str(project): str(role) for project, role in rows}
