import json
from pathlib import Path

import pytest

from memd.cli.archive import totals
from tests.export_records import exported, fill, one_of_each


@pytest.fixture
def vault(tmp_path):
    """A vault with a record of every kind, and no daemon."""
    (tmp_path / "vaults").mkdir()
    return fill(tmp_path / "vaults" / "default.db", one_of_each())


def test_an_export_is_a_private_file_and_says_what_is_in_it(vault, alone, tmp_path):
    ran = alone("export", tmp_path / "x.jsonl")
    assert ran.status == 0, ran.err
    told = f"wrote {len(one_of_each())} records to {tmp_path}/x.jsonl: 3 memories, 2 events, "
    assert ran.out == f"{told}2 sessions, 2 projects\n"
    lines = (tmp_path / "x.jsonl").read_bytes().splitlines()
    assert lines[1:-1] == exported(vault).splitlines()[1:-1]
    assert Path(tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vaults", "x.jsonl"]


@pytest.mark.usefixtures("vault")
def test_an_export_replaces_no_file(alone, tmp_path):
    (tmp_path / "mine").write_text("precious")
    ran = alone("export", tmp_path / "mine")
    assert (ran.status, ran.out) == (1, "")
    assert "exists; name a new file" in ran.err
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.usefixtures("vault")
def test_nothing_is_left_of_an_export_that_fails(alone, tmp_path):
    ran = alone("export", tmp_path / "x", "--project", "nowhere")
    assert (ran.status, ran.out) == (1, "")
    assert "there is no 'nowhere'" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["vaults"]


@pytest.mark.usefixtures("vault")
def test_standard_output_has_the_lines_and_nothing_else(alone):
    ran = alone("export")
    kinds = [json.loads(line)["record"] for line in ran.out.splitlines()]
    assert (ran.status, kinds[0], kinds[-1]) == (0, "memd-export", "end")
    assert kinds[1:-1] == [kind for kind, _ in one_of_each()]
    assert ran.err.startswith(f"wrote {len(one_of_each())} records to -: 3 memories")
    assert alone("export", "-", "--project", "ledger").out.count("\n") < len(kinds)


def test_a_daemon_that_serves_is_not_held_up(memd, tmp_path):
    ran = memd("export", tmp_path / "x")
    assert ran.status == 0, ran.err
    assert f"{memd('status', '--json').json['summaries']['count']} memories" in ran.out


def test_a_terminal_is_not_filled_with_lines(alone, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = alone("export")
    assert ran.status == 1
    assert "say which file" in ran.err


def test_where_there_is_no_vault_it_says_so(alone, tmp_path):
    ran = alone("export", tmp_path / "x")
    assert ran.status == 1
    assert "there is no vault" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_counts_are_told_by_the_names_people_know():
    told = totals({"summary": 1, "event": 2_000})
    assert told == "1 memory, 2,000 events, 0 sessions, 0 projects"


def test_another_vault_is_another_file(vault, alone, monkeypatch, tmp_path):
    fill(tmp_path / "vaults" / "work.db", one_of_each()[:1])
    monkeypatch.setenv("MEMD_VAULT", "work")
    ran = alone("export")
    assert ran.out.count("\n") == 3
    assert ran.out.encode().splitlines()[1] == exported(vault).splitlines()[1]
