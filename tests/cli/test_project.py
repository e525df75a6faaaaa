"""`memd project` as people type it, with a daemon of its own."""

import pytest

from memd.cli import app
from tests.cli.conftest import Machine, Ran


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A machine with two projects: `ledger` and `ledger-api`."""
    machine = Machine(tmp_path_factory.mktemp("town"))
    try:
        assert machine.run("start").status == 0
        for name in ("ledger", "ledger-api"):
            (machine.home / name / ".git").mkdir(parents=True)
        yield machine
    finally:
        machine.kill()


@pytest.fixture
def memd(town, monkeypatch, capsys):
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    monkeypatch.setenv("MEMD_HOME", str(town.home))
    monkeypatch.setenv("HOME", str(town.home))

    def run(*arguments, where="ledger"):
        monkeypatch.chdir(town.home / where)
        status = app.main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return run


def test_two_projects_are_told_merged_and_renamed(memd, town):
    ledger, api = town.home / "ledger", town.home / "ledger-api"
    told = memd("project").out
    assert told.startswith("ledger, because it is the git repository's top level\n")
    assert "nothing yet" in told
    memd("remember", "The build needs make.", "--topic-key", "build.command")
    memd(
        "remember", "The build needs just.", "--topic-key", "build.command", where="ledger-api"
    )
    assert "1 memory, 0 sessions, 0 events" in memd("project", "show", "ledger").out
    assert (
        memd("project", "show", "../ledger-api").out == memd("project", where="ledger-api").out
    )

    listed = memd("project", "list").out
    assert "ledger-api  1 memory, 0 sessions, 0 events, last 20" in listed
    assert "\n    global\n" not in listed
    assert str(ledger) in listed
    names = [one["name"] for one in memd("project", "list", "--json").json]
    assert {"ledger", "ledger-api"} <= set(names)

    dry = memd("project", "merge", "../ledger-api", "ledger", "--dry-run")
    assert dry.out.startswith("would move 1 memory, 0 sessions, 0 events\n")
    assert "would hide" in dry.out
    asked = memd("project", "merge", "ledger-api", "ledger")
    assert (asked.status, asked.err) == (1, "memd: nothing was moved; say --yes to mean it\n")
    assert "ledger-api" in memd("project", "list").out
    done = memd("project", "merge", "ledger-api", "ledger", "--yes")
    assert "moved 1 memory" in done.out
    assert done.out.endswith(": build.command\n")

    told = memd("project", where="ledger-api").out
    assert f"{api} was merged into it" in told
    assert f"merged in  {api}" in told
    assert "needs just" in memd("search", "what does the build need").out
    again = memd("project", "merge", "ledger-api", "ledger", "--yes")
    assert (again.status, "is that project already" in again.err) == (1, True)

    assert memd("project", "rename", "ledger", "money").out == f"{ledger} is called money\n"
    assert memd("project", "show", "--json").json["name"] == "money"
    assert memd("project", "rename", "ledger", "x").status == 1


def test_a_persons_own_word_is_heeded_and_a_broken_one_is_told(memd, town):
    (town.home / "yard" / "deep").mkdir(parents=True)
    memd("remember", "Said before.", where="yard")
    file = town.home / "projects.toml"
    try:
        file.write_text('[projects]\n"~/ya*" = "barn"')
        assert memd("project", where="yard/deep").out.startswith("barn, because projects.toml")
        told = memd("project", where="yard").out
        assert "barn, because projects.toml says so for ~/ya*" in told
        advice = f"`memd project merge {town.home}/yard barn` brings it here"
        assert f"{advice}, once something is kept here\n" in told
        memd("remember", "Said afterwards.", where="yard")
        assert f"{advice}\n" in memd("project", where="yard").out
        merged = memd("project", "merge", town.home / "yard", "barn", "--yes")
        assert (merged.status, "moved 1 memory" in merged.out) == (0, True)
        file.write_text("[projects")
        told = memd("project", where="yard").out
        assert "because it is the directory" in told
        assert f"{file} is not used: it is not valid TOML" in told
        town.wait_for(lambda status: "projects.toml is not used" in str(status["reasons"]))
    finally:
        file.unlink()
