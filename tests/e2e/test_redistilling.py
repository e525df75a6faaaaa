"""An upgrade distils what older rules made again: once, through kill -9, beside captures and searches."""

import json
import signal

import apsw
import pytest

from tests.e2e.real_daemon import LEDGER

TEXTS = "SELECT id, uid, kind, title, body, duplicates FROM summaries ORDER BY id"


@pytest.fixture
def old(daemon):
    """A vault whose memories older rules have made, and how today's rules make them."""
    daemon.start()
    daemon.run("import", "claude-code", str(LEDGER / "projects"))
    daemon.settle()
    daemon.stop()
    daemon.today = rows(daemon, TEXTS)
    rows(daemon, "UPDATE summaries SET title = 'An older title' WHERE rule = 'turn'")
    rows(daemon, "DELETE FROM meta WHERE key IN ('rules', 'redistilling')")
    return daemon


def rows(daemon, sql):
    connection = apsw.Connection(str(daemon.paths.database))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def redistiller(daemon):
    return next(one for one in daemon.status()["rooms"] if one["name"] == "redistiller")


def finish(daemon):
    daemon.wait_for(lambda: "left" not in redistiller(daemon) and is_done(daemon))


def is_done(daemon):
    return rows(daemon, "SELECT value FROM meta WHERE key = 'redistilling'") == [("",)]


def test_a_run_that_is_killed_goes_on_and_holds_up_nobody(old):
    for _ in range(2):
        old.start()
        with old.client() as client:
            found = client.call("memd/search", {"query": "login", "project": "all"})
            assert found["hits"]
            payload = {"session_id": "late", "prompt_id": "p", "hook_event_name": "UserPromptSubmit",
                       "cwd": "/nowhere", "prompt": "Where do we keep the kettle?"}  # fmt: skip
            receipt = client.call("memd/capture", {"client": "claude-code", "payload": payload})
        assert receipt["outcome"] in {"stored", "duplicate"}
        old.stop(signal.SIGKILL)
    old.start()
    finish(old)
    known = {row[0] for row in old.today}
    assert [row for row in rows(old, TEXTS) if row[0] in known] == old.today
    assert json.loads(old.run("status", "--json").stdout)["health"] == "healthy"
