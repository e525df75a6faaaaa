import os
import signal

import apsw
import pytest

from memd.cli import doctor
from memd.daemon import process
from tests.tables import every_row

# ── doctor ────────────────────────────────────────────────────────────────────────────────────────


def list_wrong(ran):
    return {one["name"]: one for one in ran.json["findings"] if one["verdict"] != "ok"}


@pytest.fixture(autouse=True)
def no_claude(tmp_path, monkeypatch):
    """A person without Claude Code and without a service manager."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def database(served):
    """Whatever a test breaks, as SQLite sees it."""
    connection = apsw.Connection(str(served.home / "vaults" / "default.db"))
    connection.set_busy_timeout(5_000)
    yield connection
    connection.close()


def test_a_working_daemon_has_no_problems(memd):
    ran = memd("doctor", "--verbose")
    *findings, summary = ran.out.splitlines()
    assert (ran.status, summary) == (0, f"{len(findings)} checks: all well")
    names = {line.split()[1] for line in findings}
    assert {"daemon", "vectors", "permissions", "hooks"} <= names
    assert memd("doctor").out == f"{summary}\n"


def test_a_problem_is_first_with_its_remedy_and_is_fixed(memd, database):
    database.execute("DELETE FROM passages WHERE summary_id = (SELECT min(id) FROM summaries)")
    ran = memd("doctor")
    first, second = ran.out.splitlines()[:2]
    assert ran.status == 1
    assert first.startswith("problem  ")
    assert second.startswith("                     → `memd doctor --fix`")
    mended = memd("doctor", "--fix")
    assert mended.status == 0
    assert "fixed: rebuilt full text and vectors" in mended.out
    assert memd("doctor").out.endswith(" checks: all well\n")


def test_without_a_daemon_the_exit_status_is_2(alone, tmp_path):
    ran = alone("doctor", "--json")
    assert (ran.status, ran.json["running"], list_wrong(ran).keys()) == (2, False, {"daemon"})
    assert list(tmp_path.iterdir()) == []


def test_without_a_daemon_a_problem_exits_1(alone, tmp_path):
    (tmp_path / "config.toml").write_text("[nothing]\nx = 1\n", encoding="utf-8")
    ran = alone("doctor")
    assert ran.status == 1
    assert ran.out.startswith("problem  settings    ")


def status(**more):
    embedder = {"configured": "auto", "learned": None}
    return {
        "versions": {"memd": doctor.__version__}, "pid": 1, "health": "healthy", "reasons": [],
        "embedder": embedder, "rooms": [],
    } | more  # fmt: skip


WRITER = {
    "name": "rewriter", "model": "command/claude", "obstacle": "", "why": "", "failures_in_a_row": 0,
}  # fmt: skip
LEARNED = {"model": "m", "state": "absent", "why_not": "start it", "coverage": 0.5}


@every_row(
    ("fields", "name", "verdict", "words"),
    [
        (status(versions={"memd": "0.0"}), "daemon", "warning", "it is memd 0.0"),
        (status(health="degraded", reasons=["a", "b"]), "daemon", "warning", "a; b"),
        (status(), "model", "ok", "no embedding model is configured"),
        (
            status(embedder={"configured": "ollama", "learned": LEARNED}),
            "model",
            "warning",
            "start it",
        ),
        (status(embedder={"configured": "auto", "learned": LEARNED}), "model", "ok", "start it"),
        (
            status(embedder={"configured": "auto", "learned": LEARNED | {"state": "ready"}}),
            "model",
            "ok",
            "50% of the passages",
        ),
        (status(rooms=[WRITER]), "writer", "ok", "command/claude improves"),
        (
            status(rooms=[WRITER | {"obstacle": "claude is not there"}]),
            "writer",
            "warning",
            "claude is not there",
        ),
        (
            status(rooms=[WRITER | {"why": "#7 failed: no", "failures_in_a_row": 2}]),
            "writer",
            "warning",
            "#7 failed: no",
        ),
        (status(rooms=[WRITER | {"why": "#7 refused: no"}]), "writer", "ok", "command/claude"),
    ],
)
def test_the_daemons_status_becomes_findings(fields, name, verdict, words):
    found = next(one for one in doctor._check_status(fields) if one.name == name)
    assert found.verdict == verdict
    assert words in found.words


def test_the_help_page_of_doctor_explains_the_exit_status(alone):
    assert "2 no problem, but no daemon runs" in " ".join(alone("doctor", "--help").out.split())


def test_without_a_daemon_its_remains_and_a_broken_vault_are_fixed(machine, alone):
    assert machine.run("start").status == 0
    assert machine.run("remember", "the ledger is kept in SQLite").status == 0
    os.kill(machine.run("status", "--json").json["pid"], signal.SIGKILL)
    assert process.wait_until_unlocked(str(machine.home / "vaults" / "default.lock"), 10)
    connection = apsw.Connection(str(machine.home / "vaults" / "default.db"))
    connection.execute("UPDATE passages SET length = length + 1")
    connection.close()
    found = list_wrong(alone("doctor", "--json"))
    assert {"daemon", "lock", "sample"} <= found.keys()
    mended = alone("doctor", "--fix", "--json")
    assert mended.json["mended"] == [
        "removed what a dead daemon left",
        "rebuilt full text and vectors",
    ]
    assert (mended.status, list_wrong(mended).keys()) == (2, {"daemon"})


# ── status ────────────────────────────────────────────────────────────────────────────────────────


def test_status_is_the_same_with_and_without_the_command_line(served, memd):
    """`__main__` answers `memd status` itself; with a help page in between it must say the same."""
    quick, slow = served.run("status", "--json"), memd("status", "--json")
    assert slow.status == quick.status == 0
    assert slow.json["pid"] == quick.json["pid"]


def test_the_help_page_of_status_explains_the_exit_status(alone):
    assert "2 not running" in " ".join(alone("status", "--help").out.split())
