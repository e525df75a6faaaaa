import os
import shutil

import pytest

from memd.cli.import_ import Marks, _exact

from .conftest import SAMPLES


def counts(machine):
    status = machine.settle()
    return status["events"]["count"], status["summaries"]["count"]


def test_an_import_says_what_it_read_and_a_second_one_reads_nothing(machine):
    machine.run("start")
    first = machine.run("import", "claude-code", SAMPLES)
    assert first.status == 0, first.err
    assert "read 3 files\n" in first.out
    assert "stored " in first.out
    assert "all of them can be found" in first.out
    assert first.err.count("\n") == 3
    before = counts(machine)
    again = machine.run("import", "claude-code", SAMPLES)
    assert "read 0 files; 3 unchanged since the last import\n" in again.out
    assert counts(machine) == before


def test_a_copy_elsewhere_converges_on_the_same_rows(machine, tmp_path):
    machine.run("start")
    machine.run("import", "claude-code", SAMPLES)
    before = counts(machine)
    shutil.copytree(SAMPLES, tmp_path / "copy")
    ran = machine.run("import", "claude-code", tmp_path / "copy")
    assert "read 3 files" in ran.out
    assert "stored" not in ran.out
    assert counts(machine) == before


def test_a_dry_run_needs_no_daemon_and_changes_nothing(machine):
    ran = machine.run("import", "claude-code", SAMPLES, "--dry-run")
    assert ran.status == 0, ran.err
    assert "would read 3 files" in ran.out
    assert "UserPromptSubmit" in ran.out


def test_the_client_s_own_transcripts_are_the_default(machine):
    shutil.copytree(SAMPLES, machine.home / ".claude" / "projects")
    ran = machine.run("import", "claude-code", "--dry-run")
    assert "would read 3 files" in ran.out


def test_nothing_to_import_is_said(alone, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert alone("import", "claude-code").out == "no transcripts found in ~/.claude/projects\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cursor"], "knows claude-code, not 'cursor'"),
        (["claude-code", "/no/such"], "there is no /no/such"),
    ],
)
def test_a_mistake_is_told_on_one_line(alone, arguments, said):
    ran = alone("import", *arguments)
    assert ran.status == 1
    assert said in ran.err


def test_a_file_s_time_survives_a_wire_that_carries_microseconds(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("x", encoding="utf-8")
    os.utime(file, ns=(1, 1_800_000_000_123_456_789))
    assert _exact(str(file), 1_800_000_000_123_456) == 1_800_000_000_123_456_789
    assert _exact(str(file), 1_800_000_000_123_457) == -1
    assert Marks({str(file): (1, 1_800_000_000_123_456)})[str(file)] == (
        1,
        1_800_000_000_123_456_789,
    )
