import json

import pytest

from tests.cli.conftest import make_command, running

# ── project ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def shared_machine(tmp_path_factory):
    """A machine with two projects: `ledger` and `ledger-api`."""
    with running(tmp_path_factory.mktemp("town")) as machine:
        for name in ("ledger", "ledger-api"):
            (machine.home / name / ".git").mkdir(parents=True)
        yield machine


@pytest.fixture
def memd(shared_machine, monkeypatch, capsys):
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    monkeypatch.setenv("MEMD_HOME", str(shared_machine.home))
    monkeypatch.setenv("HOME", str(shared_machine.home))

    command = make_command(capsys)

    def run(*arguments, where="ledger"):
        monkeypatch.chdir(shared_machine.home / where)
        return command(*arguments)

    return run


def test_two_projects_are_shown_merged_and_renamed(memd, shared_machine):
    ledger, api = shared_machine.home / "ledger", shared_machine.home / "ledger-api"
    text = memd("project").out
    assert text.startswith("ledger, because it is the git repository's top level\n")
    assert "nothing yet" in text
    memd("remember", "The build needs make.", "--topic-key", "build.command")
    memd("remember", "The build needs just.", "--topic-key", "build.command", where="ledger-api")
    assert "1 memory, 0 sessions, 0 events" in memd("project", "show", "ledger").out
    assert memd("project", "show", "../ledger-api").out == memd("project", where="ledger-api").out

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
    assert (asked.status, asked.err) == (
        1,
        "memd: nothing was moved; use --yes to confirm without a terminal\n",
    )
    assert "ledger-api" in memd("project", "list").out
    done = memd("project", "merge", "ledger-api", "ledger", "--yes")
    assert "moved 1 memory" in done.out
    assert done.out.endswith(": build.command\n")

    text = memd("project", where="ledger-api").out
    assert f"{api} was merged into it" in text
    assert f"merged in  {api}" in text
    assert "needs just" in memd("search", "what does the build need").out
    again = memd("project", "merge", "ledger-api", "ledger", "--yes")
    assert (again.status, "is that project already" in again.err) == (1, True)

    assert memd("project", "rename", "ledger", "money").out == f"{ledger} is now named money\n"
    assert memd("project", "show", "--json").json["name"] == "money"
    assert memd("project", "rename", "ledger", "x").status == 1


def test_projects_toml_overrides_and_a_broken_one_is_reported(memd, shared_machine):
    (shared_machine.home / "yard" / "deep").mkdir(parents=True)
    memd("remember", "Said before.", where="yard")
    file = shared_machine.home / "projects.toml"
    try:
        file.write_text('[projects]\n"~/ya*" = "barn"')
        assert memd("project", where="yard/deep").out.startswith("barn, because projects.toml")
        text = memd("project", where="yard").out
        assert "barn, because projects.toml says so for ~/ya*" in text
        advice = f"`memd project merge {shared_machine.home}/yard barn` moves them here"
        assert f"{advice}, once something is stored here\n" in text
        memd("remember", "Said afterwards.", where="yard")
        assert f"{advice}\n" in memd("project", where="yard").out
        merged = memd("project", "merge", shared_machine.home / "yard", "barn", "--yes")
        assert (merged.status, "moved 1 memory" in merged.out) == (0, True)
        file.write_text("[projects")
        text = memd("project", where="yard").out
        assert "because it is the directory" in text
        assert f"{file} is not used: it is not valid TOML" in text
        shared_machine.wait_for(
            lambda status: "projects.toml is not used" in str(status["reasons"])
        )
    finally:
        file.unlink()


# ── switch ────────────────────────────────────────────────────────────────────────────────────────


KEY = "0f0f0f0f-0000-4000-8000-0123456789ab"


def test_memd_is_switched_where_one_stands_and_back_on(machine):
    here = machine.home.name
    assert machine.run("start").status == 0
    assert machine.run("switch").out == "on everywhere\n"
    off = machine.run("switch", "off").out
    assert off == f"memd is off for project {here}\n"
    assert machine.run("switch").out.startswith(f"off          project  {here}")
    assert f"switched off for project {here}" in machine.run("status").out
    hook = {
        "session_id": KEY, "hook_event_name": "UserPromptSubmit", "prompt_id": "p",
        "prompt": "keep this", "cwd": str(machine.home),
    }  # fmt: skip
    assert machine.run("hook", "UserPromptSubmit", stdin=json.dumps(hook)).status == 0
    status = machine.wait_for(lambda status: status["books"]["received"])
    assert status["books"]["reasons"]["filtered"] == {"switched off for this project": 1}
    assert status["here"]["switch"]["captures"] is False
    assert machine.run("remember", "Said by hand.").status == 0
    assert "Said by hand" in machine.run("search", "said by hand").out

    text = machine.run("switch", "on", "--session", KEY).out
    assert text == f"memd is on for session {KEY}\n"
    assert machine.run("hook", "UserPromptSubmit", stdin=json.dumps(hook)).status == 0
    assert machine.wait_for(lambda status: status["books"]["stored"])
    text = machine.run("switch", "capture-only", "--project", ".").out
    assert text == f"memd is capture-only for project {here}\n"
    text = machine.run("switch", "on", "--project", ".").out
    assert text == f"memd is on for project {here}\n"
    rows = machine.run("switch", "--json").json
    assert [(row["scope"], row["target"]) for row in rows] == [("session", KEY)]


def test_a_wrong_switch_is_refused(memd):
    for words, message in (
        (["off", "--project", "a", "--session", "b"], "not both"),
        (["--project", "a"], "give a state"),
        (["off", "--session", "typo"], "there is no 'typo'"),
        (["off", "--project", "typo"], "there is no 'typo'"),
        (["sideways"], "see `memd switch --help`"),
    ):
        ran = memd("switch", *words)
        assert ran.status == 1
        assert message in ran.err
    assert memd("switch").out == "on everywhere\n"


def test_a_merge_is_taken_back_by_the_name_of_what_is_gone(memd, shared_machine):
    gone, stays = (shared_machine.home / name for name in ("gone", "stays"))
    for place in (gone, stays):
        (place / ".git").mkdir(parents=True)
        assert memd("remember", f"a dotterel in {place.name}", where=place.name).status == 0
    assert memd("project", "merge", gone, stays, "--yes").status == 0
    ran = memd("project", "merge", "gone", "--undo")
    assert (
        ran.out == "gone is a project of its own again: 0 sessions, 1 memory came back from stays\n"
    )
    assert "a dotterel in gone" in memd("list", "--project", gone).out
    assert "a dotterel in gone" not in memd("list", "--project", stays).out
    assert "was not merged" in memd("project", "merge", "gone", "--undo").err
    assert "INTO" in memd("project", "merge", gone).err
    assert "leave out" in memd("project", "merge", gone, stays, "--undo").err
