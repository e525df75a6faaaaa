"""memd with the real Codex CLI, Copilot CLI, OpenCode and Pi, in about two minutes.

    scripts/end-to-end clients [--keep] [--only NAME] [--codex PATH] [--copilot PATH] [--opencode PATH] [--pi PATH]

The clients are the published ones, their model a script on 127.0.0.1: Codex by a `model_provider` of its own, Copilot by
`COPILOT_PROVIDER_BASE_URL` and `COPILOT_OFFLINE`, so that neither needs an account. They are installed once into
~/.cache/memd. The story: `memd install codex`; untrusted hooks are skipped, and `memd doctor` says so; they are trusted
as /hooks does it; Codex mends a failing test; its next session is told of it and asks memd; Copilot, in the same
project, is told of it too, decides something, and asks; both are uninstalled. OpenCode and Pi, in which memd is a plugin, each
work, are refused what breaks a rule, ask, go on, and give every byte back. Cursor is in no registry: it is not driven.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from e2e import checks, claude_code, plugged
from e2e.claude_code import Impossible, installed
from e2e.scripted_api import Say, Turn, Use
from e2e.scripted_openai import ScriptedOpenAi
from e2e.workspace import Memd, Over, Report, repository, run, waited_for

CODEX, COPILOT = "@openai/codex@0.169.0", "@github/copilot@1.0.102"
FILES = {
    "price.py": "def total(items):\n    return sum(i['price'] for i in items)\n",
    "test_price.py": "from price import total\n\nassert total([{'price': 2}, {}]) == 2\n",
}
PATCH = """*** Begin Patch
*** Update File: price.py
@@
-    return sum(i['price'] for i in items)
+    return sum(i.get('price', 0) for i in items)
*** End Patch"""
TEST = "python3 test_price.py"
ASKED = "Mend the price test. From now on always run make check before you commit."
ANSWER = "Mended the price test: an item may have no price, so total uses get with 0."
TOLD = "always run make check"
_COPILOT_SESSIONS = 3
HOOK_RUNS = 16
_TRIES = 6


def main() -> int:
    """Set the stage, play, tell."""
    options = _read_arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memd"
    began = time.monotonic()
    try:
        codex = options.codex or installed(cache / CODEX.replace("/", "-"), CODEX, "codex")
        copilot = options.copilot or installed(
            cache / COPILOT.replace("/", "-"), COPILOT, "copilot"
        )
        others = plugged.install_clients(cache)
    except Impossible as error:
        print(f"scripts/end-to-end clients: {error}", file=sys.stderr)
        return 2
    top = Path(os.path.realpath(tempfile.mkdtemp(prefix="memd-e2e-")))
    home, project, report = top / "home", top / "shop", Report()
    home.mkdir()
    repository(project, FILES)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
    try:
        with ScriptedOpenAi() as api:
            stage = Stage(report, api, Memd(environ, project), home, project, environ)
            stage.node = others["node"].parent
            with contextlib.suppress(Over):
                if options.only is None:
                    play_codex(stage, codex.absolute())
                    play_copilot(stage, copilot.absolute())
                    play_moments(stage, codex.absolute(), copilot.absolute())
                    look(stage)
                    import_files(stage)
                    leave(stage)
            play_plugged(stage, options, others)
    finally:
        claude_code.end(home)
        if options.keep:
            print(f"\nkept: {top}")
        else:
            shutil.rmtree(top, ignore_errors=True)
    print(f"\n{report.passed} ok, {len(report.failed)} failed, {time.monotonic() - began:.0f} s")
    return 1 if report.failed else 0


def play_plugged(stage: "Stage", options: argparse.Namespace, programs: dict[str, Path]) -> None:
    """Play the clients in which memd is a plugin; one alone has somebody to tell it what the others would have."""
    if options.only is not None:
        stage.memd.run("start")
        stage.memd.run("remember", TOLD.capitalize(), "--kind", "instruction")
    for one in plugged.PLUGGED:
        if options.only in (None, one.name):
            with contextlib.suppress(Over):
                program = getattr(options, one.name) or programs[one.name]
                plugged.play(stage, one, program.absolute(), TOLD)


class Stage:
    """What every part of the story needs."""

    def __init__(
        self, report: Report, api: ScriptedOpenAi, memd: Memd, home: Path, project: Path, environ: dict[str, str]
    ) -> None:  # fmt: skip
        self.report, self.api, self.memd = report, api, memd
        self.home, self.project, self.environ = home, project, environ
        self.before: dict[str, bytes] = {}
        self.node = Path()

    def read_files(self, name: str) -> dict[str, bytes]:
        """The settings of a client."""
        patterns = ("*.json", "*.toml", "hooks/*.json")
        found = {path for one in patterns for path in (self.home / name).glob(one)}
        return {str(path): path.read_bytes() for path in found}

    def doctor(self, name: str) -> dict[str, Any]:
        """What `memd doctor` finds about a client."""
        found = (self.memd.json_of("doctor") or {}).get("findings", ())
        return next((one for one in found if one["name"] == name), {})

    def count_events(self, client: str) -> Counter[tuple[str, str | None]]:
        """(name, tool) of a client's events, with how many of each."""
        if not Path(self.memd.paths.database).exists():
            return Counter()
        words = "SELECT e.name, e.tool FROM events e JOIN sessions s ON s.id = e.session_id WHERE s.client = ?"
        return Counter(checks.rows(self.memd, words.replace("?", f"'{client}'")))

    def check_told(self, who: str) -> None:
        """Check that the first request of a session carries what memd remembers."""
        first = json.dumps(self.api.requests[0]) if self.api.requests else ""
        self.report.check(
            f"{who} is told what was learned before", TOLD in first.lower(), first[-600:]
        )


# ── Codex ────────────────────────────────────────────────────────────────────────────────────────


def play_codex(stage: Stage, program: Path) -> None:
    """Install, trust, work, be told."""
    report, api, memd = stage.report, stage.api, stage.memd
    report.act(
        f"Codex CLI {run([str(program), '--version'], stage.environ, stage.project).stdout.strip()}"
    )
    settings = stage.home / ".codex"
    settings.mkdir()
    provider = {
        "name": "scripted",
        "base_url": api.url,
        "wire_api": "responses",
        "env_key": "SCRIPTED_KEY",
    }
    (settings / "config.toml").write_text(
        '# the user\'s own\nmodel = "scripted"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\n'
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in provider.items())
    )
    stage.before |= stage.read_files(".codex")
    done = memd.run("install", "codex")
    report.check("memd install codex", not done.returncode and "/hooks" in done.stdout, done)
    again = memd.run("install", "codex").stdout
    report.check("a second installation has nothing to do", "nothing to do" in again, again)
    ask_codex(stage, program, "Hello?", Say("Hello."))
    events = stage.count_events("codex")
    report.check("hooks that are not trusted are skipped", not events, events)
    found = stage.doctor("codex")
    report.check(
        "memd doctor says so",
        found.get("verdict") == "problem" and "trusted" in found["words"],
        found,
    )
    states = trust(stage, program)
    report.check("Codex trusts them as memd reckons", set(states) == {"trusted"}, states)
    found = stage.doctor("codex")
    report.check("memd doctor finds them trusted", found.get("verdict") == "ok", found)
    test, edit = {"cmd": TEST}, {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"}
    ask_codex(
        stage,
        program,
        ASKED,
        *(Use("exec_command", one) for one in (test, edit, test)),
        Say(ANSWER),
    )
    report.check("memd is at work", memd.settle(), memd.status())
    events = stage.count_events("codex")
    expected = {
        ("SessionStart", None): 1, ("UserPromptSubmit", None): 1, ("PostToolUseFailure", "Bash"): 1,
        ("PostToolUse", "Bash"): 1, ("Stop", None): 1, ("SessionEnd", None): 1,
    }  # fmt: skip
    wrong = {key: events[key] for key in expected if events[key] != expected[key]}
    report.check("each event is there once, the failure as one", not wrong, dict(events))
    search = Use("mcp__memd/mem_search", {"query": "price test"})
    ask_codex(
        stage, program, "What did we say about the price test?", search, Say("It was mended.")
    )
    stage.check_told("Codex's next session")
    answered = json.dumps(api.requests[-1].get("input", ())[-1:]) if api.requests else ""
    report.check(
        "mem_search answers Codex",
        "price" in answered and "call_output" in answered,
        answered[:600],
    )


def ask_codex(stage: Stage, program: Path, prompt: str, *turns: Turn) -> None:
    """One `codex exec`."""
    stage.api.script(*turns)
    words = [str(program), "exec", "--dangerously-bypass-approvals-and-sandbox", prompt]
    done = run(words, {**stage.environ, "SCRIPTED_KEY": "none"}, stage.project)
    if done.returncode:
        stage.report.over(f"codex exec {prompt!r}", done.stderr[-600:])


def trust(stage: Stage, program: Path) -> list[str]:
    """Trust all hooks as /hooks does, through Codex's own server; how Codex sees each of them then."""
    with subprocess.Popen(
        [program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=stage.environ, cwd=stage.project, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(number: int, method: str, params: dict[str, Any]) -> Any:
            print(
                json.dumps({"id": number, "method": method, "params": params}),
                file=server.stdin,
                flush=True,
            )
            for line in server.stdout:
                if (said := json.loads(line)).get("id") == number:
                    return said.get("result")
            return None

        ask(1, "initialize", {"clientInfo": {"name": "memd-e2e", "title": "e2e", "version": "1"}})
        where = {"cwds": [str(stage.project)]}
        hooks = ask(2, "hooks/list", where)["data"][0]["hooks"]
        states = {one["key"]: {"trusted_hash": one["currentHash"]} for one in hooks}
        change = {"keyPath": "hooks.state", "value": states, "mergeStrategy": "upsert"}
        ask(3, "config/batchWrite", {"edits": [change]})
        trusted = [one["trustStatus"] for one in ask(4, "hooks/list", where)["data"][0]["hooks"]]
        server.terminate()
        return trusted


# ── Copilot ──────────────────────────────────────────────────────────────────────────────────────


def play_copilot(stage: Stage, program: Path) -> None:
    """Install, be told what Codex learned, work, ask."""
    report, api, memd = stage.report, stage.api, stage.memd
    version = run([str(program), "--version"], stage.environ, stage.project).stdout.strip()
    report.act(version.splitlines()[0] if version else "Copilot CLI")
    done = memd.run("install", "copilot")
    report.check("memd install copilot", not done.returncode, done)
    fails = Use("bash", {"command": "python3 -c 'import shop'", "description": "try it"})
    edit = {"path": str(stage.project / "shop.py"), "file_text": "from price import total\n"}
    said = Say("Made the module shop, which offers total.")
    ask_copilot(stage, program, "Make a module shop.", fails, Use("create", edit), fails, said)
    stage.check_told("Copilot")
    report.check("memd is at work", memd.settle(), memd.status())
    events = stage.count_events("copilot")
    expected = {
        ("SessionStart", None): 1, ("UserPromptSubmit", None): 1, ("PostToolUseFailure", "Bash"): 1,
        ("PostToolUse", "Write"): 1, ("PostToolUse", "Bash"): 1, ("SessionEnd", None): 1,
    }  # fmt: skip
    wrong = {key: events[key] for key in expected if events[key] != expected[key]}
    report.check("each event is there once, the failure as one", not wrong, dict(events))
    search = Use("memd-mem_search", {"query": "price test"})
    ask_copilot(
        stage, program, "What did we say about the price test?", search, Say("It was mended.")
    )
    messages = api.requests[-1].get("messages", ()) if api.requests else ()
    answered = json.dumps([one for one in messages if one["role"] == "tool"])
    report.check("mem_search answers Copilot", "price" in answered, answered[:600])


def ask_copilot(stage: Stage, program: Path, prompt: str, *turns: Turn) -> None:
    """One `copilot -p`, without an account."""
    stage.api.script(*turns)
    provider = {
        "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_MODEL": "gpt-5",
        "COPILOT_PROVIDER_BASE_URL": stage.api.url, "COPILOT_PROVIDER_API_KEY": "none",
    }  # fmt: skip
    words = [str(program), "-p", prompt, "--allow-all-tools", "--allow-all-paths", "--no-color"]
    done = run(words, {**stage.environ, **provider}, stage.project)
    if done.returncode:
        stage.report.over(f"copilot -p {prompt!r}", (done.stderr + done.stdout)[-600:])


def play_moments(stage: Stage, codex: Path, copilot: Path) -> None:
    """Check that both are told at a file what was noted for it, and at a failure what fixed it before."""
    report, memd = stage.report, stage.memd
    report.act("At a file, and at a failure")
    config = Path(memd.paths.config_file)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[inject]\nsession_start = false\n", encoding="utf-8")  # which tells all
    done = memd.run("remember", "All prices are euros.", "--kind", "fact", "--where", "price.py")
    report.check("memd remember --where", not done.returncode, done)
    _restart(stage)
    look_at, fail = "cat price.py", "python3 -c \"{}['price']\""
    calls = [Use("exec_command", {"cmd": one}) for one in (look_at, fail)]
    ask = partial(ask_codex, stage, codex, "Look at the prices.", *calls, Say("They are well."))
    _ask_in_time(stage, ask)
    _check_moments(stage, "Codex")
    calls = [Use("bash", {"command": one, "description": "look"}) for one in (look_at, fail)]
    ask = partial(ask_copilot, stage, copilot, "Look at the prices.", *calls, Say("They are well."))
    _ask_in_time(stage, ask)
    _check_moments(stage, "Copilot")
    config.unlink()
    _restart(stage)


def _ask_in_time(stage: Stage, ask: Callable[[], None]) -> None:
    """Ask until memd was late for no moment: after its deadline it tells nothing, and a busy machine lets that pass."""
    for _ in range(_TRIES):
        before = _count_late(stage)
        ask()
        if _count_late(stage) == before:
            return


def _count_late(stage: Stage) -> int:
    rooms = stage.memd.status().get("rooms", ())
    return sum(one["late"] for one in rooms if one["name"] == "injector")


def _restart(stage: Stage) -> None:
    is_settled = stage.memd.settle()
    done = stage.memd.run("restart")
    stage.report.check("memd restart", is_settled and not done.returncode, done)


def _check_moments(stage: Stage, who: str) -> None:
    last = json.dumps(stage.api.requests[-1]) if stage.api.requests else ""
    stage.report.check(f"{who} is told of the file", "prices are euros" in last, last[-1500:])
    stage.report.check(f"{who} is told of the fix", "changed price.py" in last, last[-1500:])


# ── Both ─────────────────────────────────────────────────────────────────────────────────────────


def look(stage: Stage) -> None:
    """The vault, and the time of a hook."""
    report, memd = stage.report, stage.memd
    report.act("One memory")
    status = memd.status()
    report.check("memd status: healthy", status.get("health") == "healthy", status.get("reasons"))
    report.check("nothing was refused", not status["books"]["refused"], status["books"])
    report.check("nothing is of an unknown client", not stage.count_events("unknown"))
    kinds = Counter(kind for (kind,) in checks.rows(memd, "SELECT kind FROM summaries"))
    report.check(
        "the failure was mended, the rule is kept", kinds["fix"] and kinds["instruction"], kinds
    )
    report.note(f"summaries: {', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items()))}")
    for name, took in time_hooks(stage).items():
        report.note(
            f"hook of {name}: {statistics.median(took) * 1000:.1f} ms, the median of {HOOK_RUNS}"
        )


def import_files(stage: Stage) -> None:
    """Import the files of the sessions that were just captured: of these nothing is new."""
    report, memd = stage.report, stage.memd
    report.act("Imported what was captured")
    # Copilot's hooks leave out its answers, which its files have some time later.
    answers = "SELECT 1 FROM events WHERE name = 'Stop' AND source = 'transcript'"
    is_read = waited_for(lambda: len(checks.rows(memd, answers)) >= _COPILOT_SESSIONS)
    report.check("Copilot's answers are read from its files", is_read)
    words = "SELECT s.client, s.key, e.name, e.tool FROM events e JOIN sessions s ON s.id = e.session_id"
    before = Counter(checks.rows(memd, words))
    known = {(client, session) for client, session, *_ in before}
    for name in ("codex", "copilot"):
        done = memd.run("import", name)
        is_read = "read 0 files" not in done.stdout and not done.returncode
        report.check(f"memd import {name} reads the files of its sessions", is_read, done)
    new = Counter(checks.rows(memd, words)) - before
    again = {row: n for row, n in new.items() if row[:2] in known}
    report.check("no event of a captured session comes twice", not again, again)
    sessions = {row[:2] for row in new}
    report.check("the session without trusted hooks is known now", len(sessions) == 1, sessions)


def time_hooks(stage: Stage) -> dict[str, list[float]]:
    """Seconds of each client's hook, one after the other so that all meet the same machine."""
    python, package = Path(stage.memd.paths.installed).read_text().splitlines()
    launcher = str(next(Path(stage.memd.paths.state_dir).glob("memd-agent-hook")))
    commands = {
        "claude-code, hook.py itself": [python, "-I", "-S", f"{package}/hook.py", "PostToolUse"],
        **{
            name: ["/bin/sh", launcher, f"{name}:PostToolUse"]
            for name in ("codex", "copilot", "cursor")
        },
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    payload = {"session_id": "timed", "hook_event_name": "PostToolUse", "cwd": str(stage.project)}
    for number in range(HOOK_RUNS):
        given = json.dumps({**payload, "tool_use_id": f"timed-{number}"}).encode()
        names = list(commands)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            words = commands[name]
            took[name].append(time_program(words, stage.environ, given))
    return took


def time_program(words: list[str], environ: dict[str, str], given: bytes) -> float:
    """Seconds of a program from its start to its end."""
    began = time.perf_counter()
    subprocess.run(words, input=given, env=environ, capture_output=True, check=False)
    return time.perf_counter() - began


def leave(stage: Stage) -> None:
    """Uninstall; what the user had is as it was, but for Codex's own record of trust."""
    report = stage.report
    report.act("Uninstalled")
    for name in ("codex", "copilot"):
        done = stage.memd.run("uninstall", name)
        report.check(f"memd uninstall {name}", not done.returncode, done)
    left = {**stage.read_files(".codex"), **stage.read_files(".copilot")}
    text = b"".join(left.values())
    report.check(
        "nothing of memd is left to run",
        b"memd-agent-hook" not in text and b"mcp_servers.memd" not in text,
    )
    config = str(stage.home / ".codex" / "config.toml")
    is_kept = left.get(config, b"").startswith(stage.before[config])
    report.check("the user's settings are as they were", is_kept, left.get(config))


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/end-to-end clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory")
    parser.add_argument("--codex", type=Path, help="your own codex")
    parser.add_argument("--copilot", type=Path, help="your own copilot")
    for one in plugged.PLUGGED:
        parser.add_argument(f"--{one.name}", type=Path, help=f"your own {one.program}")
    parser.add_argument("--only", choices=[one.name for one in plugged.PLUGGED], help="one client")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
