import os
import subprocess
import sys
from pathlib import Path

import pytest

from memd.cli import health
from memd.daemon import process as daemon_process
from memd.daemon.status import DaemonStatus
from memd.errors import BadRequest
from memd.paths import Paths
from tests.tables import every_row

NOW = 1_800_000_000_000
HEALTHY = {
    "running": True, "health": "healthy", "reasons": [], "pid": 7, "uptime_s": 7_300.0,
    "versions": {"memd": "0.1.0", "python": "3.11.7", "sqlite": "3.54.1", "mcp": "2.3.0"},
    "socket": "/r/memd.sock", "log": "/s/memd.log",
    "vault": {"name": "default", "path": "/d/default.db", "bytes": 2_048, "schema": 1},
    "books": {
        "received": 5, "stored": 3, "duplicate": 1, "filtered": 1, "refused": 0,
        "balanced": True, "reasons": {"filtered": {"ignored path": 1}, "refused": {}},
    },
    "events": {"count": 3, "pending": 1, "last_at": NOW - 120_000},
    "summaries": {"count": 2, "superseded": 1, "pinned": 0, "contradictions": 0, "to_index": 0, "to_consolidate": 0},
    "embedder": {"configured": "auto", "active": "hashing", "space": "h/1", "why": "none other"},
    "rooms": [
        {"name": "intake", "state": "running", "restarts": 0, "last_error": None, "pending": 2},
        {"name": "indexer", "state": "backing off", "restarts": 3, "last_error": "ValueError: no"},
    ],
    "spool": {"bytes": 0, "files": 0, "oldest_at": None},
}  # fmt: skip


def format_text(status, **settings):
    return "\n".join(health.format_status(status, NOW, is_tty=False, **settings))


def test_a_healthy_status_as_text():
    text = format_text(HEALTHY)
    assert text.startswith("memd is healthy: 0.1.0, pid 7, up 2 h 1 min")
    assert "5 received = 3 stored + 1 duplicate + 1 filtered + 0 refused" in text
    assert "filtered: ignored path 1" in text
    assert "3, 1 to distill, last 2 min ago" in text
    assert "running; pending 2" in text
    assert "does not know" not in text
    strange = {**HEALTHY, "events": {**HEALTHY["events"], "unknown": 2}}
    assert "2 of an agent that memd does not know" in format_text(strange)
    ahead = {**HEALTHY, "events": {"count": 3, "pending": 0, "last_at": NOW + 10**11}}
    assert "last dated in the future; see `memd doctor`" in format_text(ahead)
    assert "backing off, 3 restarts, last error: ValueError: no" in text
    assert "spool      empty" in text


WEEK = {
    "told": {"sessions": 31, "lines": 212, "used": 14, "overruled": 3, "ignored": 90, "untraceable": 105},
    "costs": {
        "answers": {"times": 9, "tokens": 2_100, "wait_ms": 300},
        "starts": {"times": 31, "tokens": 8_000, "wait_ms": 1_200},
    },
}  # fmt: skip


def test_the_last_week_says_what_was_told_and_used_and_what_it_cost():
    rows = dict(health.list_told_rows({"weeks": [WEEK]}))
    assert rows == {
        "told": "in 7 days 212 lines to 31 sessions: 14 seen used, 3 overruled, 90 not used,"
        " 105 not to be seen",
        "cost": "in 7 days about 10,100 tokens (starts 8,000, answers 2,100); agents waited 1.5 s"
        " in memd, 40 times",
    }


def test_a_week_without_agents_and_an_older_daemon_say_nothing_of_it():
    empty = {"told": dict.fromkeys(WEEK["told"], 0), "costs": {}}
    assert health.list_told_rows({"weeks": [empty]}) == []
    assert health.list_told_rows(None) == []


def test_a_worker_says_what_it_waits_for():
    worker = {"name": "rewriter", "state": "running", "restarts": 0, "last_error": None,
            "written": 3, "left_today": 195, "why": "#7 failed: nothing answers"}  # fmt: skip
    text = format_text(HEALTHY | {"rooms": [worker]})
    assert "running; written 3, left_today 195; #7 failed: nothing answers" in text


def test_the_writer_says_what_it_has_cost():
    today = {"calls": 1, "failed": 0, "ms": 4_120, "characters_in": 3_051, "characters_out": 210}
    ever = {"calls": 9, "failed": 2, "ms": 60_000, "characters_in": 1, "characters_out": 2}
    worker = {"name": "rewriter", "state": "running", "restarts": 0, "last_error": None,
            "written": 3, "today": today, "ever": ever, "why": ""}  # fmt: skip
    text = format_text(HEALTHY | {"rooms": [worker]})
    assert (
        "running; written 3; today: 1 call, 4.1 s, 3,051 characters in, 210 out;"
        " ever: 9 calls, 2 failed, 60.0 s, 1 characters in, 2 out"
    ) in text


def test_a_model_has_a_line_without_figures_if_it_never_answered():
    learned = {
        "provider": "ollama", "model": "nomic-embed-text", "space": "o/1", "state": "ready",
        "since": NOW - 120_000, "why_not": "", "asked": 1_234, "failed": 5, "timeouts": 3,
        "p50_ms": 12.5, "coverage": 0.75, "missing": 1_000,
    }  # fmt: skip
    text = format_text(HEALTHY | {"embedder": HEALTHY["embedder"] | {"learned": learned}})
    assert (
        "nomic-embed-text (ollama): ready for 2 min, 75% embedded (1,000 to go),"
        " 1,234 requests, 5 failed, 3 timed out, 12.5 ms"
    ) in text
    never = {"state": "absent", "since": NOW - 5_000, "asked": 0, "p50_ms": None, "missing": 0}
    learned |= never | {"space": None, "why_not": "no", "failed": 0, "timeouts": 0, "coverage": 0.0}
    text = format_text(HEALTHY | {"embedder": HEALTHY["embedder"] | {"learned": learned}})
    assert "nomic-embed-text (ollama): absent for 5 s\n" in text


def test_a_degraded_status_begins_with_its_reasons():
    text = format_text(HEALTHY | {"health": "degraded", "reasons": ["indexer is backing off: no"]})
    assert text.splitlines()[1] == "  - indexer is backing off: no"


def test_only_a_terminal_gets_colors():
    assert "\x1b[32mhealthy" in next(health.format_status(HEALTHY, NOW, is_tty=True))
    assert "\x1b" not in format_text(HEALTHY)


def test_without_a_daemon_the_status_has_vault_and_spool(alone, tmp_path):
    paths = Paths({"MEMD_HOME": str(tmp_path)})
    for path in (paths.spool_dir, paths.data_dir):
        Path(path).mkdir(parents=True)
    (tmp_path / "state" / "spool" / "active").write_bytes(b"x" * 100)
    (tmp_path / "vaults" / "default.db").write_bytes(b"x" * 2_048)
    ran = alone("status")
    assert ran.status == 2
    assert "memd is not running" in ran.out
    assert "memd start" in ran.out
    assert "2.0 kB" in ran.out
    assert "100 B in 1 file for the daemon to read" in ran.out
    found = alone("status", "--json").json
    assert (found["running"], found["health"]) == (False, "not running")
    assert found["spool"] == {"bytes": 100, "files": 1}


def test_a_daemon_that_does_not_answer_is_named_by_its_pid(alone, tmp_path):
    with daemon_process.hold_lock(Paths({"MEMD_HOME": str(tmp_path)}).lock, 1):
        ran = alone("status")
    assert ran.status == 2
    assert f"pid {os.getpid()}" in ran.out


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_a_closed_pipe_causes_no_traceback(machine, how):
    reader, writer = os.pipe()
    os.close(reader)
    with machine.popen("status", *how, stdout=writer, stderr=-1) as process:
        os.close(writer)
        assert process.stderr.read() == b""
    assert process.returncode == 2


@pytest.mark.parametrize("state", ["healthy", "degraded", "not running"])
def test_the_exit_status_tells_the_health(alone, monkeypatch, state):
    monkeypatch.setattr(health, "fetch_status", lambda _: HEALTHY | {"health": state})
    assert alone("status").status == ["healthy", "degraded", "not running"].index(state)


def test_the_json_of_a_daemon_matches_the_documented_schema(served):
    ran = served.run("status", "--json")
    assert ran.status == 0, ran.out
    found = DaemonStatus.model_validate(
        ran.json | {"vault": ran.json["vault"] | {"schema_version": ran.json["vault"]["schema"]}}
    )
    assert found.health == "healthy"
    assert [room.name for room in found.rooms] == [
        "guard", "intake", "follower", "distiller", "redistiller", "indexer", "recaller", "injector", "outcomes",
        "consolidator", "worktrees", "notes", "retention", "listener", "embedder", "backfill",
    ]  # fmt: skip
    assert found.books.balanced
    assert found.events.count > 10
    assert found.summaries.count > 3


def test_a_running_daemon_is_healthy(served):
    ran = served.run("status")
    assert ran.status == 0
    assert "memd is healthy" in ran.out


@every_row(
    ("reason", "switch", "text"),
    [
        (
            "the git repository's top level",
            "",
            "shop, because it is the git repository's top level",
        ),
        ("projects.toml says so for ~/shop", "", "shop, because projects.toml says so for ~/shop"),
        ("the session has no directory", "", "shop, because the session has no directory"),
        ("x", "switched off for project shop", "shop, because x; switched off for project shop"),
    ],
)
def test_the_project_of_a_directory_has_a_reason(reason, switch, text):
    holds = {"captures": not switch, "recalls": True, "reason": switch}
    here = {"name": "shop", "reason": reason, "switch": holds}
    assert f"here       {text}\n" in format_text(HEALTHY | {"here": here})


def test_status_names_the_project_of_the_directory(served):
    found = served.run("status", "--json").json["here"]
    assert found["name"] == served.home.name
    assert f"here       {served.home.name}, because it is the directory" in served.run("status").out


def test_an_older_daemon_is_asked_without_a_directory(monkeypatch, tmp_path):
    asked = []

    def call(method, _timeout_s, **params):
        asked.append(params)
        if params:
            raise BadRequest("directory: there is no such")
        return {"method": method}

    monkeypatch.setattr(health.daemon_call, "call", call)
    found = health.fetch_status(Paths({"MEMD_HOME": str(tmp_path)}))
    assert (found, len(asked)) == ({"method": "memd/status"}, 2)


def test_without_a_daemon_a_broken_configuration_is_the_reason(alone, tmp_path):
    (tmp_path / "config.toml").write_text("[capture]\nfoo = 1\n")
    ran = alone("status")
    assert ran.status == 2
    assert "capture.foo: there is no such key" in ran.out


def test_the_brief_status_is_five_lines_and_says_what_waits():
    status = HEALTHY | {"events": {**HEALTHY["events"], "sessions": 1}}
    lines = list(health.format_brief_status(status, NOW, is_tty=False))
    assert lines == [
        "memd is healthy (0.1.0, up 2 h 1 min)",
        "remembers  2 memories of 1 session",
        "last event 2 min ago; 1 on their way",
        "meaning    by words and their parts; `memd model add` adds a model of meaning (80 MB, no server)",
        "vault      default, 2.0 kB, /d/default.db",
    ]
    learned = {"provider": "local", "model": "all-MiniLM-L6-v2", "state": "ready", "missing": 3}
    status = status | {
        "health": "degraded", "reasons": ["the disk is full"],
        "summaries": {**HEALTHY["summaries"], "contradictions": 2},
        "embedder": {**HEALTHY["embedder"], "learned": learned},
    }  # fmt: skip
    text = "\n".join(health.format_brief_status(status, NOW, is_tty=False))
    assert "\n  - the disk is full\n" in text
    assert "; 2 contradictions to judge (`memd judge`)" in text
    assert "\nmeaning    all-MiniLM-L6-v2 (local), 3 memories to read\n" in text


def test_the_whole_status_is_shown_when_asked_for(memd):
    assert "ledger" not in memd("status").out
    assert "\nledger     " in memd("status", "--verbose").out


def test_a_health_check_loads_little(machine):
    program = "import sys, memd.cli.health; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        env=machine.environ,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    # dataclasses were a third of its time
    heavy = {"anyio", "dataclasses", "memd.models", "numpy", "pydantic", "rich", "typer"}
    assert not heavy & set(loaded)
