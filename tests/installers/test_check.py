"""Installations that are broken for real, in a home of their own."""

import json
from pathlib import Path

import pytest

from memd.installers import check, claude_code, plan, systemd
from memd.installers.plan import Place

NOW = 1_800_000_000_000


@pytest.fixture
def place(tmp_path):
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    for name in ("python", "memd/hook.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    environ = {"HOME": str(home), "MEMD_HOME": str(home / "memd"), "PATH": ""}
    return Place(environ, str(tmp_path / "python"), tmp_path / "memd", "linux")


def install(place, what=claude_code):
    for change in what.install(place).changes:
        plan.apply(change, NOW)


def look(place, name="hooks"):
    return next(one for one in check.examine(place) if one.name == name)


def settings(place, **more):
    path = claude_code.settings_file(place)
    said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(said | more), encoding="utf-8")


def test_hooks_as_they_are_installed_are_well(place):
    install(place)
    assert look(place).verdict == "ok"


def test_where_there_is_no_claude_code_nothing_is_missing(place):
    claude_code.settings_file(place).parent.rmdir()
    assert look(place).verdict == "ok"


def test_no_hooks_are_a_warning(place):
    found = look(place)
    assert (found.verdict, found.remedy) == ("warning", "`memd install claude-code`")


def test_hooks_of_an_interpreter_that_is_gone_are_a_problem(place):
    install(place)
    Path(place.python).unlink()
    found = look(place)
    assert found.verdict == "problem"
    assert place.python in found.words


def test_hooks_of_another_memd_are_a_warning(place, tmp_path):
    install(place)
    (tmp_path / "python3").touch()
    other = Place(place.environ, str(tmp_path / "python3"), place.package, "linux")
    assert look(other).verdict == "warning"


def test_hooks_that_are_switched_off_are_a_warning(place):
    install(place)
    settings(place, disableAllHooks=True)
    assert "disableAllHooks" in look(place).words


def test_plugin_and_hooks_together_are_a_problem_until_installed_again(place):
    install(place)
    settings(place, enabledPlugins={"memd@memd": True})
    assert "both capture" in look(place).words
    install(place)
    assert "both capture" not in look(place).words


def test_a_plugin_must_find_this_memd(place):
    settings(place, enabledPlugins={"memd@memd": True})
    assert look(place).verdict == "problem"
    note = Path(place.environ["MEMD_HOME"]) / "state" / "installed"
    note.parent.mkdir(parents=True)
    note.write_text(f"{place.python}\n{place.package}\n", encoding="utf-8")
    assert look(place).verdict == "ok"
    note.write_text(f"{place.python}\n{place.package.parent}\n", encoding="utf-8")
    assert look(place).verdict == "warning"


def test_settings_that_do_not_parse_are_a_problem(place):
    claude_code.settings_file(place).write_text("{", encoding="utf-8")
    assert look(place).verdict == "problem"


def test_units_are_compared_with_what_this_memd_would_write(place, tmp_path):
    assert "no service manager" in look(place, "service").words
    install(place, systemd)
    assert look(place, "service").words == "systemd is set to run this memd"
    other = Place(place.environ, str(tmp_path / "other"), place.package, "linux")
    found = look(other, "service")
    assert (found.verdict, found.remedy) == ("warning", "`memd install systemd`")
