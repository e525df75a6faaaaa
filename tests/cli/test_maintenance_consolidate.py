"""`memd consolidate` as people type it, with a daemon of its own."""

import pytest

from memd.cli import app, maintenance
from tests.cli.conftest import Machine, Ran

LONG = (
    "The gateway retries a failed request with exponential backoff and jitter, because the billing service"
    " answers slowly after every deployment; the timeout was raised from 10 to {} seconds"
)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("tidy"))
    try:
        assert machine.run("start").status == 0
        yield machine
    finally:
        machine.kill()


@pytest.fixture
def memd(house, monkeypatch, capsys):
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    monkeypatch.setenv("MEMD_HOME", str(house.home))
    monkeypatch.setenv("HOME", str(house.home))
    monkeypatch.chdir(house.home)

    def run(*arguments):
        status = app.main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return run


def test_a_round_is_rehearsed_done_listed_and_taken_back(memd):
    assert memd("consolidate", "--runs").out == "no run has changed anything yet\n"
    old = memd("remember", LONG.format(30), "--kind", "fact", "--json").json["id"]
    other = memd("remember", LONG.format(60), "--kind", "fact", "--json").json["id"]
    dry = memd("consolidate", "--dry-run").out
    assert f"#{other} contradicts #{old}" in dry
    assert "because: number: 30 seconds → 60 seconds" in dry
    assert f"#{old}  The gateway retries" in dry
    told = memd("consolidate")
    assert told.status == 0
    assert "1 contradiction" in told.out
    assert "`memd consolidate --undo r1` takes it back" in told.out
    assert memd("consolidate", "--runs").out.startswith("r1  ")
    assert "would be compatible" in memd("consolidate", "--undo", "r1", "--dry-run").out
    assert (
        f"#{other} is compatible with #{old}: both hold"
        in memd("consolidate", "--undo", f"{old},{other}").out
    )
    assert memd("consolidate", "--dry-run").out.startswith("no pair to decide")
    again = memd("consolidate", "--undo", "r1")
    assert (again.status, "nothing of run r1 holds" in again.err) == (1, True)


def test_what_names_nothing_is_refused(memd):
    refused = memd("consolidate", "--undo", "everything")
    assert (refused.status, "r7" in refused.err) == (1, True)
    assert memd("consolidate", "--runs", "--dry-run").status == 1


def test_without_a_daemon_it_says_so(alone):
    assert alone("consolidate").status == 2


def test_what_a_round_did_is_told_in_one_line_and_how_to_take_it_back():
    tick = {
        "examined": 3, "superseded": 1, "contradicts": 0, "similar": 2, "run": 4, "waiting": 1,
        "has_more": False,
    }  # fmt: skip
    assert list(maintenance._told([tick])) == [
        "looked at 3 memories: 1 hidden by newer ones, 0 contradictions, 2 similar and kept",
        "run r4; `memd consolidate --undo r4` takes it back",
        "1 memory not indexed yet; the next round takes them",
    ]


def test_a_pair_of_one_form_has_no_cosine_to_show():
    pair = {
        "newer_id": 2, "older_id": 1, "verdict": "supersedes", "finding": "same", "cosine": None,
        "space": "", "newer": "b", "older": "a\x1b[2J",
    }  # fmt: skip
    assert list(maintenance._pairs([pair])) == [
        "#2 would hide #1  (the same words)",
        "    because: same",
        "    #2  b",
        "    #1  a[2J",
    ]
    near = {**pair, "cosine": 0.9712, "space": "ollama/m", "verdict": "similar_to"}
    assert next(maintenance._pairs([near])) == (
        "#2 is similar to, and stays beside, #1  (cosine 0.971 in ollama/m)"
    )


def test_what_was_taken_back_is_told():
    undone = {"shown": [[2, 1]], "compatible": [[4, 3]], "is_dry_run": False}
    assert list(maintenance._undone(undone)) == [
        "#1 shows again beside #2",
        "#4 is compatible with #3: both hold",
        "no later round does it again",
    ]
