"""The plugin as package data: well-formed, in step with the code, and its launcher as a real process."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import memd
from memd.capture import spool
from memd.installers import claude_settings, file_changes
from memd.paths import Paths
from memd.server import tools

ROOT = Path(__file__).parent.parent.parent
PLUGIN = ROOT / "memd" / "plugin"
LAUNCHER = PLUGIN / "scripts" / "memd"
DISTRIBUTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
STOP = {
    "session_id": "s",
    "hook_event_name": "Stop",
    "prompt_id": "p",
    "last_assistant_message": "ok",
}


NODE = shutil.which("node")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


# ── What it consists of ──────────────────────────────────────────────────────────────────────────


def test_the_hooks_are_those_of_the_table():
    command = ("/bin/sh", "${CLAUDE_PLUGIN_ROOT}/scripts/memd", "hook")
    listed = {event: [group] for event, group in claude_settings.hook_groups(command)}
    assert read(PLUGIN / "hooks" / "hooks.json")["hooks"] == listed


def test_every_file_that_is_run_exists_and_can_be_run():
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    assert servers["memd"]["args"] == ["${CLAUDE_PLUGIN_ROOT}/scripts/memd", "mcp"]
    assert os.access(LAUNCHER, os.X_OK)
    assert not (PLUGIN / "bin").exists(), "Cowork refuses a plugin that has one"


def test_every_version_is_memd_s():
    assert read(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == memd.__version__
    for path in (ROOT, ROOT / "memd"):
        for plugin in read(path / ".claude-plugin" / "marketplace.json")["plugins"]:
            assert plugin["version"] == memd.__version__
            there = path / plugin["source"]
            assert read(there / ".claude-plugin" / "plugin.json")["version"] == memd.__version__


def test_both_marketplaces_lead_to_the_plugin_and_the_mod():
    for path in (ROOT, ROOT / "memd"):
        market = read(path / ".claude-plugin" / "marketplace.json")
        assert market["name"] == "memd"
        places = [(path / one["source"]).resolve() for one in market["plugins"]]
        assert places == [PLUGIN, PLUGIN.with_name("mod")]


@pytest.mark.skipif(NODE is None, reason="the mod runs in JavaScript")
def test_the_mod_shows_what_was_told_and_learned(tmp_path):
    mod = tmp_path / "register.mjs"
    mod.write_text((PLUGIN.with_name("mod") / "hooks" / "register.js").read_text())
    told = [{"id": 7, "title": "Use tabs", "outcome": "used"}, {"id": 8, "title": "x", "held": True}]  # fmt: skip
    found = json.dumps({"injections": told, "learned": 2})
    driver = tmp_path / "driver.mjs"
    driver.write_text(f"""
        import {{ register }} from '{mod}'
        const handlers = {{}}
        register((event, ...rest) => (handlers[event] = rest.at(-1)))
        const shown = []
        const notes = {{ '/s/memd/installed': '/v/python\\n/v/memd\\n' }}
        const $ = {{
          env: {{ get: async (name) => ({{ HOME: '/home/u', XDG_STATE_HOME: '/s' }})[name] }},
          fs: {{ read: async (file) => {{ if (!(file in notes)) throw new Error(file); return notes[file] }} }},
          session: {{ id: async () => 's-1' }},
          process: {{ run: async (argv) => (shown.push(argv), {{ exitCode: 0, stdout: {json.dumps(found)} }}) }},
          ui: {{ status: (text) => shown.push(text) }},
        }}
        await handlers['turn.complete']($, {{}}, () => {{}})
        await new Promise((resolve) => setTimeout(resolve, 20))
        shown.push(await handlers['command.run']($))
        console.log(JSON.stringify(shown))
    """)
    done = subprocess.run([NODE, str(driver)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    argv, line, _, answer = json.loads(done.stdout)
    assert argv == ["/v/python", "-P", "-m", "memd", "injected", "s-1", "--json"]
    assert line == "memd: told 1, learned 2"
    assert answer["text"].startswith("#7 Use tabs (used)")


def test_skills_name_tools_that_exist():
    served = set(tools.TOOLS)
    for path in (PLUGIN / "skills").glob("*/SKILL.md"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"---\nname: {path.parent.name}\ndescription: ")
        named = set(re.findall(r"mem_[a-z]+", text))
        assert named
        assert named <= served


def test_all_of_it_is_kept_by_git_and_so_goes_into_the_wheel():
    """The wheel holds what stands below memd/ and is not ignored."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a repository")
    files = [str(path) for path in (*PLUGIN.rglob("*"), ROOT / "memd" / ".claude-plugin")]
    ignored = subprocess.run(
        [git, "-C", str(ROOT), "check-ignore", *files], capture_output=True, check=False
    )
    assert ignored.stdout == b""
    assert len(files) > 10


# ── The launcher ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def home(tmp_path):
    return {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "m"), "PATH": ""}


def leave_note(home, text=None):
    note = Path(Paths(home).installed)
    note.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        file_changes.write_location(str(note))
    else:
        note.write_text(text, encoding="utf-8")


def launch(home, *words, stdin=STOP):
    return subprocess.run(
        ["/bin/sh", str(LAUNCHER), *words],
        input=json.dumps(stdin).encode(), env=home, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def is_silent(done):
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def spooled(home):
    directory = Paths(home).spool_dir
    lines = [line for path in spool.drainable(directory) for line in spool.read(path)]
    return [json.loads(line)["payload"] for line in lines]


def program(path, says):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says} $*\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_with_an_empty_path_the_note_leads_to_the_hook(home):
    leave_note(home)
    assert is_silent(launch(home, "hook", "Stop"))
    assert spooled(home) == [STOP]


def test_the_note_leads_to_the_bridge_too(home):
    leave_note(home)
    done = launch({**home, "MEMD_START": "0"}, "mcp", "--vault", "not a name")
    assert done.returncode == 1
    assert b"a vault's name is" in done.stderr


@pytest.mark.parametrize(
    "note",
    [
        "/gone/python\n/gone/memd\n",
        f"{sys.executable}\n/gone/memd\n",
        f"/gone/python\n{file_changes.PACKAGE}\n",
        f"{sys.executable}\n",
        "",
    ],
)
def test_a_note_that_has_become_untrue_is_passed_over(home, tmp_path, note):
    leave_note(home, note)
    assert is_silent(launch(home, "hook", "Stop"))
    program(tmp_path / ".local" / "bin" / "memd", "local")
    assert launch(home, "hook", "Stop").stdout == b"local hook Stop\n"


@pytest.mark.parametrize(
    "where",
    [
        ".local/bin/memd",
        f".local/share/uv/tools/{DISTRIBUTION}/bin/memd",
        f".local/share/pipx/venvs/{DISTRIBUTION}/bin/memd",
        f".local/pipx/venvs/{DISTRIBUTION}/bin/memd",
    ],
)
def test_it_is_found_where_installers_put_it(home, tmp_path, where):
    program(tmp_path / where, "found")
    assert launch(home, "mcp").stdout == b"found mcp\n"


def test_the_installed_distribution_comes_before_another_program_of_the_same_name(home, tmp_path):
    home["PATH"] = str(program(tmp_path / "bin" / "memd", "another").parent)
    program(tmp_path / ".local/share/uv/tools" / DISTRIBUTION / "bin/memd", "ours")
    assert launch(home, "mcp").stdout == b"ours mcp\n"


def test_what_is_named_comes_before_the_note_and_the_note_before_the_path(home, tmp_path):
    on_path = program(tmp_path / "bin" / "memd", "path")
    home["PATH"] = str(on_path.parent)
    assert launch(home, "hook", "Stop").stdout == b"path hook Stop\n"
    leave_note(home)
    assert is_silent(launch(home, "hook", "Stop"))
    home["MEMD_BIN"] = str(program(tmp_path / "named" / "memd", "named"))
    assert launch(home, "hook", "Stop").stdout == b"named hook Stop\n"
    home["MEMD_BIN"] = "${user_config.program}"
    assert is_silent(launch(home, "hook", "Stop"))


def test_the_launcher_never_finds_itself(home):
    home["PATH"] = str(LAUNCHER.parent)
    assert is_silent(launch(home, "hook", "Stop"))


def test_without_memd_a_hook_is_silent_and_takes_a_large_payload(home):
    assert is_silent(launch(home, "hook", "Stop", stdin={**STOP, "text": "x" * 1_000_000}))
    del home["HOME"]
    assert is_silent(launch(home, "hook", "Stop"))


def test_without_memd_the_server_says_how_to_get_it(home):
    done = launch(home, "mcp")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"memd is not installed" in done.stderr
    assert b"memd start" in done.stderr
