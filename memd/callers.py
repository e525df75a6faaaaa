"""Tell an agent's shell from a person's: by the marks that clients leave there, and by who started a process.

A variable can be dropped (`env -u CLAUDECODE memd stop`), so the processes above are looked at, too: the shell that has the
mark, or the client's own program. A terminal in between is a person's: what stands above it was only inherited, as by a
tmux that was once started in an agent's shell; there somebody must have it before them. Who drops the mark *and* leaves
its ancestors (`env -i setsid -f`, `env -i tmux new -d`) is not found out: it looks as what cron or a person's own tmux
starts. Standard library only, without `dataclasses`, whose imports are a third of what `memd status` needs. Without /proc
(macOS) only a process's own variables tell.
"""

import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

MARKS = frozenset({
    "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_THREAD_ID", "CODEX_CI", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED",
    "COPILOT_CLI", "COPILOT_AGENT_SESSION_ID", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "ANTIGRAVITY_AGENT",
    "PI_CODING_AGENT", "QWEN_CODE", "AUGMENT_AGENT", "CLINE_ACTIVE", "AI_AGENT",
})  # fmt: skip
"""Variables that clients set for the commands of their agents, and never in a person's terminal."""
_UNSET = frozenset({"", "0", "false"})
_CLIENTS = frozenset({
    "claude", "codex", "copilot", "cursor-agent", "gemini", "opencode", "agy", "amp", "goose", "aider", "qwen", "crush",
})  # fmt: skip
"""Programs of clients, by the last name of what was started."""
_CLIENT_PATHS = (
    "/@anthropic-ai/claude-code/", "/claude/versions/", "/@openai/codex/", "/@github/copilot/", "/cursor-agent/versions/",
    "/@google/gemini-cli/", "/opencode-ai/", "/pi-coding-agent/", "/@sourcegraph/amp/", "/@qwen-code/qwen-code/",
)  # fmt: skip
"""Parts of the paths of what clients run."""
_INTERPRETERS = ("node", "bun", "deno", "python", "electron")
_TERMINALS = frozenset({
    "tmux", "screen", "zellij", "dtach", "abduco", "sshd", "sshd-session", "mosh-server", "login", "code", "code-insiders",
    "code-oss", "codium", "cursor", "windsurf", "zed", "zed-editor", "gnome-terminal-", "konsole", "kitty", "alacritty",
    "wezterm-gui", "wezterm-mux-ser", "ghostty", "xterm", "foot", "tilix", "terminator", "xfce4-terminal", "ptyxis-agent",
    "kgx", "st", "urxvt", "yakuake", "warp-terminal", "idea", "pycharm", "goland", "webstorm", "rustrover", "clion",
})  # fmt: skip
"""Programs in which a person's shells run, by the names that the kernel gives them: 15 characters at most."""
_MULTIPLEXERS = frozenset({"tmux", "screen", "zellij", "dtach", "abduco"})
"""Terminals that go on with nobody before them: who looks at one has a client of it in a terminal."""
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "env"})
"""Programs that run commands, and are no terminal by whatever name they were started."""
GONE = "a process that has ended"
_ANCESTORS_MAX = 64
_WORDS_READ = 8
_FILE_BYTES_MAX = 256 * 1024


class _Process(NamedTuple):
    pid: int
    name: str
    """As the kernel has it."""
    parent: int
    session: int
    """The process that began its session."""
    terminal: int
    """The number of its controlling terminal; 0 if it has none."""

    @property
    def program(self) -> str:
        """`tmux` of `tmux: server`."""
        return self.name.lower().partition(":")[0]

    @property
    def is_terminal(self) -> bool:
        return self.program in _TERMINALS and _read_program(self.pid) not in _SHELLS

    def is_attended(self) -> bool:
        """Return whether somebody may be before this terminal."""
        if self.program not in _MULTIPLEXERS or self.terminal:
            return True
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        others = (_find_process(pid) for pid in pids if pid != self.pid)
        return any(one.terminal and one.program == self.program for one in others if one)

    def find_marks(self) -> set[str]:
        """Return the marks in the environment that it was started with."""
        pairs = (line.partition(b"=") for line in _read(self.pid, "environ").split(b"\0"))
        return find_marks({name.decode("ascii", "replace"): os.fsdecode(v) for name, _, v in pairs})

    def find_client(self) -> str | None:
        """Return the name of the client that it runs."""
        words = [
            os.fsdecode(word) for word in _read(self.pid, "cmdline").split(b"\0")[:_WORDS_READ]
        ]
        names = [word.rpartition("/")[2] for word in words]
        if names[0].startswith(_INTERPRETERS):
            # What it runs, behind its own options.
            scripts = [n for n, word in enumerate(words) if n and not word.startswith("-")]
            words, names = [[few[n] for n in scripts[:1]] for few in (words, names)]
        for word, name in zip(words[:1], names[:1], strict=True):
            if name in _CLIENTS or name.startswith("codex-"):
                return name
            if any(part in word for part in _CLIENT_PATHS):
                return word
        return None


def find_marks(environ: Mapping[str, str]) -> set[str]:
    """Return the variables which say that an agent's client started this."""
    return {name for name in MARKS if environ.get(name, "") not in _UNSET}


def find_agent(pid: int, own: AbstractSet[str] = frozenset()) -> str | None:
    """Return what says that an agent's client is behind a process, a variable or a program; None if nothing does.

    `own`: marks that the process is known to have. One that has ended could have been anybody's: it counts as an agent's.
    Reads files; takes half a millisecond.
    """
    process = _find_process(pid)
    if process is None:
        return GONE if _has_processes() else min(own, default=None)
    found = _find_agent_above(process, own)
    if found is None and process.session not in {pid, 0}:
        # It may have been left behind by the shell that began its session.
        leader = _find_process(process.session)
        found = None if leader is None else _find_agent_above(leader)
    return found


def explain_refusal(command: str, mark: str) -> str:
    """Return why an agent's shell, known by `mark`, may not run a command, and what to do."""
    return (
        f"only the user decides this, and an agent asks for it ({mark}): ask the user to run `{command}` in a"
        " terminal of their own (or to set user_memories = true under [agents] in config.toml)"
    )


def _find_agent_above(process: _Process, own: AbstractSet[str] = frozenset()) -> str | None:
    marks = set(own)
    for one in _walk_up(process):
        if one.is_terminal and one is not process:
            inherited = one.find_marks()
            marks = marks - inherited if not inherited or one.is_attended() else marks | inherited
            break
        marks |= one.find_marks()
        if (client := one.find_client()) is not None:
            return min(marks, default=client)
    return min(marks, default=None)


def _walk_up(process: _Process) -> Iterator[_Process]:
    """Yield a process and those above it, up to the first one of the system."""
    for _ in range(_ANCESTORS_MAX):
        yield process
        above = _find_process(process.parent) if process.parent > 1 else None
        if above is None:
            return
        process = above


def _find_process(pid: int) -> _Process | None:
    # The name stands in brackets and may have brackets and spaces itself.
    before, _, rest = _read(pid, "stat").rpartition(b")")
    fields = rest.split()
    if len(fields) < 5 or fields[0] == b"Z":  # noqa: PLR2004  # state, parent, group, session, terminal
        return None
    name = before.partition(b"(")[2].decode("utf-8", "replace")
    return _Process(pid, name, int(fields[1]), int(fields[3]), int(fields[4]))


def _read_program(pid: int) -> str:
    """Return the name of the file that a process runs; "" of another user's."""
    try:
        return os.readlink(f"/proc/{pid}/exe").rpartition("/")[2]
    except OSError:
        return ""


def _has_processes() -> bool:
    return os.path.exists("/proc/self/stat")


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(_FILE_BYTES_MAX)
    except OSError:
        return b""
