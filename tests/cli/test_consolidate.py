"""`memd consolidate` as people type it, with a daemon of its own."""

import pytest

from memd.cli import maintenance
from tests.cli.conftest import make_command, running

LONG = (
    "The gateway retries a failed request with exponential backoff and jitter, because the billing service"
    " answers slowly after every deployment; the timeout was raised from 10 to {} seconds"
)


@pytest.fixture(scope="module")
def tidy_machine(tmp_path_factory):
    with running(tmp_path_factory.mktemp("tidy")) as machine:
        yield machine


@pytest.fixture
def memd(tidy_machine, monkeypatch, capsys):
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    monkeypatch.setenv("MEMD_HOME", str(tidy_machine.home))
    monkeypatch.setenv("HOME", str(tidy_machine.home))
    monkeypatch.chdir(tidy_machine.home)
    return make_command(capsys)


def test_a_run_is_previewed_done_listed_and_undone(memd):
    assert memd("consolidate", "--runs").out == "no run has changed anything yet\n"
    old = memd("remember", LONG.format(30), "--kind", "fact", "--json").json["id"]
    other = memd("remember", LONG.format(60), "--kind", "fact", "--json").json["id"]
    dry = memd("consolidate", "--dry-run").out
    assert f"#{other} contradicts #{old}" in dry
    assert "because: number: 30 seconds → 60 seconds" in dry
    assert f"#{old}  The gateway retries" in dry
    ran = memd("consolidate")
    assert ran.status == 0
    assert "1 contradiction" in ran.out
    assert "to undo: `memd consolidate --undo r1`" in ran.out
    assert memd("consolidate", "--runs").out.startswith("r1  ")
    assert "would be compatible" in memd("consolidate", "--undo", "r1", "--dry-run").out
    assert (
        f"#{other} is compatible with #{old}: both hold" in memd("consolidate", "--undo", "r1").out
    )
    assert memd("consolidate", "--dry-run").out.startswith("nothing to do")
    again = memd("consolidate", "--undo", "r1")
    assert (again.status, "nothing of run r1 holds" in again.err) == (1, True)


def test_an_invalid_undo_is_refused(memd):
    refused = memd("consolidate", "--undo", "everything")
    assert (refused.status, "r7" in refused.err) == (1, True)
    assert memd("consolidate", "--runs", "--dry-run").status == 1


def test_rounds_are_summed_up_with_the_command_that_undoes_them():
    tick = {
        "examined": 3, "superseded": 1, "contradicts": 0, "similar": 2, "run": 4, "waiting": 1,
        "has_more": False,
    }  # fmt: skip
    assert list(maintenance._format_rounds([tick])) == [
        "examined 3 memories: 1 hidden by newer ones, 0 contradictions, 2 similar",
        "run r4; to undo: `memd consolidate --undo r4`",
        "1 memory not indexed yet; the next round examines them",
    ]


def test_a_pair_has_its_cosine_or_the_same_words():
    pair = {
        "newer_id": 2, "older_id": 1, "verdict": "supersedes", "finding": "same", "cosine": None,
        "space": "", "newer": "b", "older": "a\x1b[2J",
    }  # fmt: skip
    assert list(maintenance._format_pairs([pair])) == [
        "#2 would hide #1  (the same words)",
        "    because: same",
        "    #2  b",
        "    #1  a[2J",
    ]
    near = {**pair, "cosine": 0.9712, "space": "ollama/m", "verdict": "similar_to"}
    assert next(maintenance._format_pairs([near])) == (
        "#2 is similar to #1  (cosine 0.971 in ollama/m)"
    )


def test_undone_pairs_are_listed():
    undone = {"shown": [[2, 1]], "compatible": [[4, 3]], "is_dry_run": False}
    assert list(maintenance._format_undone(undone)) == [
        "#1 is visible again beside #2",
        "#4 is compatible with #3: both hold",
        "later rounds leave these pairs alone",
    ]
