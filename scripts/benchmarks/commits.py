"""A daemon of this checkout, or of another commit that is checked out for it, driven from outside."""

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks import harness, metrics

GENERATE = (
    "import sys; from benchmarks import vault_generator as v; v.fill(sys.argv[1], int(sys.argv[2]))"
)
CLIENT_VERSION = "2.1.332"
"""A Claude Code that starts hooks without a shell."""
_EVENTS = ("PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart")

Command = list[str]


class Side:
    """memd of one commit (None: this checkout, as it stands) with a home below `folder`.

    A commit whose dependencies are not those of this checkout gets an environment of its own, with the versions of
    this one. Use it as a context manager: it stops its daemon and removes the checkout.
    """

    def __init__(self, commit: str | None, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._removed: Path | None = None
        self.name = "now"
        self.source, python = harness.ROOT, sys.executable
        if commit is not None:
            self.name = git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}")
            self.source = self._removed = folder / "checkout"
            git("worktree", "add", "--detach", "--force", str(self.source), self.name)
            python = _interpreter(self.source, folder / "venv")
        self.python = python
        self.daemon = self._make_daemon(folder / "home")
        where = [python, "-P", "-c", "import memd; print(memd.__file__)"]
        file = metrics.run_process(where, self.daemon.environ)[1].decode().strip()
        if not Path(file).is_relative_to(self.source):
            raise SystemExit(f"{self.name} would run the code of {file}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.daemon.stop()
        if self._removed is not None:
            git("worktree", "remove", "--force", str(self._removed))

    def use_vault(self, size: int) -> None:
        """Stop the daemon, and start one on a vault of `size` memories that this commit generates."""
        self.daemon.stop()
        self.daemon = self._make_daemon(self._folder / str(size))
        target = Path(self.daemon.paths.database)
        target.parent.mkdir(parents=True, mode=0o700)
        path = f"{self.source}:{self.source / 'scripts'}"
        generate = [self.python, "-P", "-c", GENERATE, str(target), str(size)]
        metrics.run_process(generate, {**self.daemon.environ, "PYTHONPATH": path})
        self.daemon.start()
        self.daemon.settle(is_distilled=False)

    def installed_hooks(self, path: str) -> dict[str, Command]:
        """What `memd install claude-code` writes into the settings of a current Claude Code when PATH is this."""
        client = Path(self.daemon.home, ".local", "bin", CLIENT_VERSION, "claude")
        client.parent.mkdir(parents=True, exist_ok=True)
        client.write_text("#!/bin/sh\n")
        client.chmod(0o755)
        link = client.parent.parent / "claude"
        link.unlink(missing_ok=True)
        link.symlink_to(client)
        environ = {"PATH": path, "HOME": self.daemon.home}
        done = self.daemon.run("install", "claude-code", **environ)
        if done.returncode:
            raise SystemExit(f"{self.name} cannot be installed: {done.stderr.decode()}")
        file = Path(self.daemon.home, ".claude", "settings.json")
        hooks = json.loads(file.read_text("utf-8"))["hooks"]
        return {event: _plain_command(hooks[event][0]["hooks"][0]) for event in _EVENTS}

    def _make_daemon(self, home: Path) -> harness.Daemon:
        home.mkdir()
        daemon = harness.Daemon(str(home), self.source)
        daemon.environ["PYTHONPATH"] = str(self.source)
        # -P: the directory where the benchmark was started must not come before the checkout.
        daemon.command = [self.python, "-P", "-m", "memd"]
        return daemon


def _plain_command(hook: dict[str, object]) -> Command:
    """The command without the `env NAME=VALUE` before it: who does not set MEMD_HOME has none."""
    if "args" not in hook:  # a shell starts it
        return ["/bin/sh", "-c", str(hook["command"])]
    words = [str(hook["command"]), *map(str, hook["args"])]  # type: ignore[call-overload]
    if Path(words[0]).name == "env":
        words = words[1:]
        while "=" in words[0]:
            words = words[1:]
    return words


def git(*words: str) -> str:
    """What git prints; ends the benchmark if git fails."""
    command = ["git", "-C", str(harness.ROOT), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _interpreter(checkout: Path, folder: Path) -> str:
    """A Python with the dependencies of a checkout: ours if they are the same, else a new one."""
    wanted = _dependencies(checkout)
    if wanted == _dependencies(harness.ROOT):
        return sys.executable
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    constraints = folder / "constraints.txt"
    installed = {
        one.name: one.version
        for one in metadata.distributions()
        if one.name not in ("memd", "memd-daemon")  # earlier commits are named memd
    }
    constraints.write_text("".join(f"{name}=={installed[name]}\n" for name in installed), "utf-8")
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", constraints, *wanted], check=True)
    return python


def _dependencies(checkout: Path) -> list[str]:
    project = tomllib.loads(Path(checkout, "pyproject.toml").read_text("utf-8"))["project"]
    return sorted(project["dependencies"])
