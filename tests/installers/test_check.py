import json
import os
from pathlib import Path

import pytest

from memd.cli import doctor
from memd.installers import claude, file_changes, service
from memd.installers.file_changes import Host

NOW = 1_800_000_000_000


@pytest.fixture
def host(tmp_path):
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    for name in ("python", "memd/hook.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    environ = {"HOME": str(home), "MEMD_HOME": str(home / "memd"), "PATH": ""}
    return Host(environ, str(tmp_path / "python"), tmp_path / "memd", "linux")


def install(host, make_plan=claude.install_claude_code):
    for change in make_plan(host).changes:
        file_changes.apply_change(change, NOW)


def find(host, name="hooks"):
    return next(one for one in doctor.examine(host) if one.name == name)


def add_settings(host, **more):
    path = claude.settings_file(host)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(found | more), encoding="utf-8")


def test_installed_hooks_are_ok(host):
    install(host)
    assert find(host).verdict == "ok"


def test_hooks_that_were_written_for_a_client_that_this_shell_does_not_find_are_ok(host, tmp_path):
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '2.1.332 (Claude Code)'\n", encoding="utf-8")
    program.chmod(0o755)
    path = f"{program.parent}:{os.defpath}"
    install(Host({**host.environ, "PATH": path}, host.python, host.package, "linux"))
    assert '"args"' in claude.settings_file(host).read_text(encoding="utf-8")
    assert find(host).verdict == "ok"


def test_without_claude_code_nothing_is_missing(host):
    claude.settings_file(host).parent.rmdir()
    assert find(host).verdict == "ok"


def test_no_hooks_are_a_warning(host):
    found = find(host)
    assert (found.verdict, found.remedy) == ("warning", "`memd install claude-code`")


def test_hooks_of_a_removed_interpreter_are_a_problem(host):
    install(host)
    Path(host.python).unlink()
    found = find(host)
    assert found.verdict == "problem"
    assert host.python in found.words


def test_hooks_of_another_memd_are_a_warning(host, tmp_path):
    install(host)
    (tmp_path / "python3").touch()
    other = Host(host.environ, str(tmp_path / "python3"), host.package, "linux")
    assert find(other).verdict == "warning"


def test_hooks_that_are_switched_off_are_a_warning(host):
    install(host)
    add_settings(host, disableAllHooks=True)
    assert "disableAllHooks" in find(host).words


def test_plugin_and_hooks_together_are_a_problem_that_installing_fixes(host):
    install(host)
    add_settings(host, enabledPlugins={"memd@memd": True})
    assert "both capture" in find(host).words
    install(host)
    assert "both capture" not in find(host).words


def test_a_plugin_must_run_this_memd(host):
    add_settings(host, enabledPlugins={"memd@memd": True})
    assert find(host).verdict == "problem"
    note = Path(host.environ["MEMD_HOME"]) / "state" / "installed"
    note.parent.mkdir(parents=True)
    note.write_text(f"{host.python}\n{host.package}\n", encoding="utf-8")
    assert find(host).verdict == "ok"
    note.write_text(f"{host.python}\n{host.package.parent}\n", encoding="utf-8")
    assert find(host).verdict == "warning"


def test_settings_that_do_not_parse_are_a_problem(host):
    claude.settings_file(host).write_text("{", encoding="utf-8")
    assert find(host).verdict == "problem"


def test_units_are_compared_with_what_this_memd_would_write(host, tmp_path):
    assert "no service manager runs memd" in find(host, "service").words
    install(host, service.install_systemd)
    assert find(host, "service").words == "systemd runs this memd"
    other = Host(host.environ, str(tmp_path / "other"), host.package, "linux")
    found = find(other, "service")
    assert (found.verdict, found.remedy) == ("warning", "`memd install systemd`")
