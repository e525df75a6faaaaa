"""The short form of `scripts/torture security`: no secret reaches the disk, and tricks at socket and files do nothing."""

import tempfile
from pathlib import Path

import pytest

from benchmarks import harness
from memd.capture.redact import redact
from tests.planted_secrets import draw
from tests.stress import intrusion as tricks
from tests.stress import secret_corpus as corpus
from tests.stress import security
from tests.stress.support import as_event, worker

pytestmark = pytest.mark.usefixtures("forked_daemons")


def test_the_corpus_is_as_large_as_promised_and_holds_no_secret_as_it_stands():
    secrets, alike = corpus.load()
    assert len(secrets) >= 200
    assert len({secret.kind for secret in secrets}) >= 40
    assert len(alike) >= 200
    file = corpus.FILE.read_text(encoding="utf-8")
    assert not [secret.kind for secret in secrets if secret.value in file]


def test_every_secret_goes_in_every_notation():
    secrets, _ = corpus.load()
    found = [
        (secret.kind, notation)
        for secret in secrets
        for notation, text in corpus.written(secret)
        for redacted in [redact(text)]
        if any(trace in redacted for trace in secret.traces)
    ]
    assert found == []


def test_of_the_look_alikes_few_are_altered():
    _, alike = corpus.load()
    altered = [one.text for one in alike if redact(one.text) != one.text]
    assert len(altered) <= security.FALSE_MAX * len(alike), altered


def test_a_search_of_the_disk_finds_what_is_there():
    with tempfile.TemporaryDirectory() as home:
        Path(home, "vault.db").write_bytes(b"\x00\xff one-trace \x00")
        found, files, _ = security.search(home, {"one-trace": "token", "other": "key"})
    assert found == {"token in vault.db": 1}
    assert files == 1


def test_no_secret_is_on_the_disk_whichever_way_it_came():
    outcome = security.redaction(brief=True)
    assert not outcome.found
    assert not outcome.missing
    assert outcome.is_redacted_well


def test_another_user_neither_reads_nor_connects():
    assert tricks.strangers() == []


def test_a_process_of_another_user_at_the_socket_receives_nothing():
    assert tricks.squatter() == []


def test_a_hostile_directory_is_not_changed_not_waited_for_and_not_printed():
    assert tricks.projects(["search fox --project all", "project list"]) == []


def test_the_file_behind_a_planted_link_is_not_changed(monkeypatch):
    monkeypatch.setattr(tricks, "PLANTED", {"log": tricks.PLANTED["log → a file"]})
    assert tricks.links() == []


def test_a_token_in_a_directory_s_name_is_stored_nowhere(tmp_path):
    token = "ghp" + "_" + draw(36)
    directory = tmp_path / f"checkout-{token}" / "web"
    (directory / ".git").mkdir(parents=True)
    with harness.stopped_daemon("") as daemon:
        daemon.start()
        payload = {
            "session_id": "s1", "cwd": str(directory), "hook_event_name": "UserPromptSubmit",
            "prompt_id": "p1", "prompt": f"look at {directory}/main.py",
        }  # fmt: skip
        with daemon.client() as client:
            client.call("memd/capture", {"events": [as_event(payload)]})
        daemon.wait_until(lambda status: not worker(status, "intake")["spool"]["files"])
        listed = daemon.run("project", "list").stdout.decode()
        daemon.stop()
        found, *_ = security.search(daemon.home, {token[:30]: "token"})
    assert not found
    assert "REDACTED:github-token" in listed
