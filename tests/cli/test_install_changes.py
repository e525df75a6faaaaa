import pytest

from memd.cli import install
from memd.errors import Broken
from memd.installers.plan import FileChange, Plan


@pytest.fixture
def plan(tmp_path):
    """Commands around a change: each says whether the file is there."""
    look = ("/bin/sh", "-c", f"ls {tmp_path} > {tmp_path}.$0")
    return Plan(
        (FileChange(tmp_path / "file", None, b"x\n"),),
        before=((*look, "before"),),
        after=((*look, "after"),),
        notes=("Mind the step.",),
    )


def test_every_place_can_be_planned_both_ways():
    for what in install.PLACES:
        module = install.planner(what)
        assert callable(module.install)
        assert callable(module.uninstall)


def test_commands_come_before_and_after_the_change(plan, tmp_path, capsys):
    install.carry_out(plan)
    seen = [
        tmp_path.with_name(f"{tmp_path.name}.{when}").read_text()
        for when in ("before", "after")
    ]
    assert seen == ["", "file\n"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("$ /bin/sh -c ")
    assert said[1] == f"wrote {tmp_path / 'file'}"
    assert said[-1] == "Mind the step."


def test_showing_does_nothing(plan, tmp_path, capsys):
    install.show(plan)
    assert list(tmp_path.iterdir()) == []
    said = capsys.readouterr().out
    assert said.count("would run: ") == 2
    assert "+x\n" in said
    assert said.endswith("Mind the step.\n")


def test_a_diff_shows_no_secret_that_stands_beside_the_change(tmp_path, capsys):
    before = b'{"env": {"ANTHROPIC_API_KEY": "sk-ant-api03-' + b"a1B2" * 24 + b'"},\n"a": 1}\n'
    install.show(Plan((FileChange(tmp_path / "f", before, before.replace(b"1}", b"2}")),)))
    said = capsys.readouterr().out
    assert '+"a": 2}' in said
    assert "sk-ant-api03-a1B2" not in said


def test_a_command_that_fails_is_named(plan):
    failing = Plan(before=(("/bin/sh", "-c", "exit 3"),), changes=plan.changes)
    with pytest.raises(Broken, match=r"`/bin/sh -c 'exit 3'` failed \(exit 3\)"):
        install.carry_out(failing)
    assert not plan.changes[0].path.exists()


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(Broken, match="cannot be run"):
        install.carry_out(Plan(after=(("/no/such/program",),)))


def test_an_empty_plan_says_so(capsys):
    install.carry_out(Plan())
    assert capsys.readouterr().out == "nothing to do: it is so already\n"
