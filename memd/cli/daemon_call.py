"""Call the daemon of the selected vault, and read the arguments that calls need."""

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from memd import callers, client
from memd.cli import output
from memd.errors import Broken, Unreachable
from memd.paths import VAULT_DEFAULT, Paths

QUICK_S = 2.0
"""Timeout in seconds of calls that any daemon answers at once, for health checks."""
DEFAULT_S = 60.0
"""Timeout in seconds of calls that search or change a few memories."""
LONG_S = 3_600.0
"""Timeout in seconds of calls that read or rewrite the whole vault."""
_OPINIONS = frozenset(
    {"memd/remember", "memd/forget", "memd/pin", "memd/judge", "memd/capture", "memd/edit"}
)
"""Calls of which an agent's shell is told that they count as the agent's."""
_NAME = re.compile(r"m[0-9a-f]{4,32}")
_COMMAND = re.compile(r"`memd (?!--vault )")


def paths() -> Paths:
    """Return the file locations of the selected vault."""
    found = Paths(os.environ)
    _say_ignored(found.ignored)
    return found


@functools.cache
def _say_ignored(ignored: tuple[str, ...]) -> None:
    """Say once on stderr what of the environment is not used."""
    for reason in ignored:
        print(f"memd: {output.clean(reason)}", file=sys.stderr)


def find_agent() -> str | None:
    """Return what says that an agent runs this command: a variable or a program; None if nothing does."""
    return callers.find_agent(os.getpid(), callers.find_marks(os.environ))


def require_user(arguments: str) -> None:
    """Exit with a message in an agent's shell: this command is for the user to run, in the user's own shell."""
    mark = find_agent()
    if mark is not None and not _is_agent_trusted(paths().config_file):
        fail(callers.explain_refusal(f"memd {arguments}", mark))


@functools.cache
def _is_agent_trusted(config: str) -> bool:
    from memd.config import load_config

    return load_config(config).agents.user_memories


def _make_preface() -> dict[str, str] | None:
    if find_agent() is None:
        return None
    session = os.environ.get("CLAUDE_CODE_SESSION_ID")
    said = {
        "cwd": current_directory(),
        "session": session,
        "client": "claude-code" if session else None,
        "speaker": "agent",
    }
    return {name: text for name, text in said.items() if text}


@functools.cache
def _say_agent(config: str) -> None:
    """Say once on stderr that what an agent's shell runs counts as the agent's word, if it does."""
    if not _is_agent_trusted(config):
        print(
            f"memd: this is an agent's shell ({find_agent()}), so this is the agent's word, not the user's; the user says it in a"
            " shell of their own, or sets user_memories = true under [agents] in config.toml",
            file=sys.stderr,
        )


Calling = Callable[..., dict[str, Any]]
"""Makes one control call: its method, and parameters by name; those that are None are left out."""


@contextlib.contextmanager
def connection(timeout_s: float = DEFAULT_S) -> Iterator[Calling]:
    """Make several calls on one connection.

    Raises Unreachable if no daemon runs, and whatever error the daemon answers.
    """
    where = paths()
    try:
        with client.Client(where.socket, timeout_s, _make_preface()) as daemon:

            def call_once(method: str, **params: Any) -> dict[str, Any]:
                if method in _OPINIONS and find_agent():
                    _say_agent(where.config_file)
                given = {name: value for name, value in params.items() if value is not None}
                result: dict[str, Any] = daemon.call(method, given)
                return result

            yield call_once
    except Unreachable as error:
        from memd.daemon import process  # loads half of the standard library

        why = process.find_config_error(where)
        raise Unreachable(insert_vault(why or error.message)) from error


def call(method: str, timeout_s: float = DEFAULT_S, **params: Any) -> dict[str, Any]:
    """Make one control call on a connection of its own."""
    with connection(timeout_s) as call_once:
        return call_once(method, **params)


def answers(timeout_s: float = QUICK_S) -> bool:
    """Return whether a daemon answers."""
    try:
        call("memd/ping", timeout_s)
    except Broken:
        return False
    return True


def is_listening() -> bool:
    """Return whether the socket accepts connections: a daemon listens, or a service manager that now starts one."""
    try:
        with client.Client(paths().socket, QUICK_S):
            return True
    except Unreachable:
        return False


def current_directory() -> str | None:
    """Return the working directory, from which the daemon finds the project; None if it was deleted or cannot be read."""
    try:
        return os.getcwd()  # noqa: PTH109  # pathlib loads slowly
    except OSError:
        return None


def find_place(project: str | None) -> dict[str, Any]:
    """Return the project and the directory of a question: in a directory that was deleted, of what holds everywhere."""
    directory = current_directory()
    if directory is None and project in {None, "current"}:
        print(
            "memd: this directory is gone, so only what holds everywhere is shown; --project all shows every project",
            file=sys.stderr,
        )
        project = "global"
    return {"project": project, "directory": directory}


def read_project(text: str) -> str:
    """Return a project as the daemon reads it: a name, a key, or an absolute directory."""
    if text[:1] not in {".", "/", "~"}:
        return text
    return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111  # links are the daemon's to follow


def is_id(text: str) -> bool:
    """Return whether a word names a memory: 12, #12 or m9f3c2a1."""
    return text.removeprefix("#").isdecimal() or _NAME.fullmatch(text) is not None


def read_ids(texts: Sequence[str]) -> list[int]:
    """Read ids such as 12, #12, or a memory's name such as m9f3c2a1; exit with a message if one is neither."""
    ids = []
    for text in texts:
        if _NAME.fullmatch(text):
            ids.append(call("memd/why", id=text)["summary"]["id"])
            continue
        try:
            ids.append(int(text.removeprefix("#")))
        except ValueError:
            fail(f"an id is a number such as 12 or #12, not {text!r}")
    return ids


def format_command(arguments: str) -> str:
    """Return a command as the user types it for the selected vault: `memd --vault work pin 12`."""
    vault = os.environ.get("MEMD_VAULT") or VAULT_DEFAULT
    return f"memd {arguments}" if vault == VAULT_DEFAULT else f"memd --vault {vault} {arguments}"


def insert_vault(message: str) -> str:
    """Insert the selected vault into every command that stands in `backticks` in a message."""
    return _COMMAND.sub(f"`{format_command('')}", message)


def fail(message: str) -> NoReturn:
    """Print a message on one line of stderr and exit 1."""
    sys.stdout.flush()  # what was printed before must come first
    sys.stderr.write(f"memd: {output.clean(insert_vault(message))}\n")
    raise SystemExit(1)
