import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest

from memd.cli.archive import show_progress
from tests.transfer import told_sessions

from .conftest import SAMPLES


def counts(machine):
    status = machine.settle()
    return status["events"]["count"], status["summaries"]["count"]


def test_a_second_import_reads_nothing(machine):
    machine.run("start")
    first = machine.run("import", "claude-code", SAMPLES)
    assert first.status == 0, first.err
    assert "read 3 files\n" in first.out
    assert "of these: 25 stored" in first.out
    assert "all can be searched" in first.out
    assert first.err.count("\n") == 3
    before = counts(machine)
    again = machine.run("import", "claude-code", SAMPLES)
    assert "read 0 files; 3 unchanged since the last import\n" in again.out
    assert counts(machine) == before


def test_an_import_without_a_daemon_says_so_and_not_that_it_read_nothing(machine):
    ran = machine.run("import", "claude-code", SAMPLES)
    assert (ran.status != 0, ran.out) == (True, "")
    assert "memd start" in ran.err


def test_a_dry_run_needs_no_daemon_and_changes_nothing(machine):
    ran = machine.run("import", "claude-code", SAMPLES, "--dry-run")
    assert ran.status == 0, ran.err
    assert "would read 3 files" in ran.out
    assert "UserPromptSubmit" in ran.out
    assert "no daemon runs" in ran.out


def test_lines_that_memd_does_not_understand_are_told_by_their_type(machine, tmp_path):
    ((name, text),) = told_sessions.claude_code()
    odd = '{"type": "custom-title", "customTitle": "Retry"}\n{"type": "zz-new"}\n{"type": "zz-new"}\n{"cut'
    (tmp_path / name).write_text(text + odd, encoding="utf-8")
    ran = machine.run("import", "claude-code", tmp_path, "--dry-run")
    assert ran.status == 0, ran.err
    told = "left out, as memd does not understand them: unknown line zz-new 2, broken line 1\n"
    assert told in ran.out


def test_a_dry_run_asks_the_daemon_what_is_stored(memd, tmp_path):
    ran = memd("import", "claude-code", SAMPLES, "--dry-run")
    assert ran.status == 0, ran.err
    assert ran.out == memd("import", "claude-code", SAMPLES).out.replace("read", "would read")
    assert ran.out.startswith("would read 0 files; 3 unchanged since the last import\n")
    for sample in SAMPLES.rglob("*.jsonl"):  # the same, where nothing was read yet
        shutil.copy(sample, tmp_path)
    ran = memd("import", "claude-code", tmp_path, "--dry-run")
    assert "of these: 25 stored already, or repeated by a resumed session\n" in ran.out
    for copy in tmp_path.iterdir():
        copy.unlink()
    line = {"type": "user", "sessionId": "new", "uuid": "u", "message": {"content": "Hello?"}}
    (tmp_path / "new.jsonl").write_text(json.dumps(line), encoding="utf-8")
    for _ in range(2):
        ran = memd("import", "claude-code", tmp_path, "--dry-run")
        assert "of these: 1 would be stored\n" in ran.out


def sessions(folder, count):
    """As many copies of the sample sessions, each with names of its own."""
    samples = [path.read_text(encoding="utf-8") for path in sorted(SAMPLES.rglob("*.jsonl"))]
    folder.mkdir(parents=True)
    for number in range(count):
        for place, text in enumerate(samples):
            own = text.replace("toolu_", f"toolu_{number:04d}")
            for name in set(re.findall(r'"(?:sessionId|promptId|uuid)": ?"(.{8})', own)):
                own = own.replace(f'"{name}', f'"{number:04x}{name[4:]}')
            (folder / f"{number}-{place}.jsonl").write_text(own, encoding="utf-8")


def test_each_finished_file_is_a_line(capsys):
    with show_progress() as progress:
        for path, done in (("a", 1), ("a", 5), ("b", 7), ("b", 9)):
            progress(path, done, 9)
    assert capsys.readouterr().err == "5 B of 9 B  a\n9 B of 9 B  b\n"


def test_of_many_files_one_line_a_tenth_is_enough(capsys):
    with show_progress() as progress:
        for number in range(200):
            progress(f"file {number}", number + 1, 200)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1].endswith("file 199")


def test_on_a_terminal_the_bar_and_the_time_that_remains_have_room_whatever_the_paths(
    monkeypatch, capsys
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with show_progress() as progress:
        for done in range(0, 9_000_000, 1_000_000):
            progress(
                f"/home/anna/.claude/projects/{'-home-anna-code' * 9}/{done}.jsonl", done, 9_000_000
            )
    drawn = (
        re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)
        .replace("\r", "\n")
        .split("\n")
    )
    last = [line for line in drawn if line.strip()][-1]
    assert re.fullmatch(
        r"reading [━╸╺]{20} 7\.6 MB of 8\.6 MB +\S+ \S+ +(?:-:--:--|\d:\d\d:\d\d) *", last
    )


def hear_interrupts():
    """Undo what a shell does to jobs in the background: they inherit that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_import_continues_the_next_time(machine, tmp_path):
    sessions(tmp_path / "many", 6)
    machine.run("start")
    command = ("import", "claude-code", tmp_path / "many")
    broken = machine.popen(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=hear_interrupts,
    )  # fmt: skip
    for _ in range(4):  # by then three files are in the vault
        broken.stderr.readline()
    broken.send_signal(signal.SIGINT)
    out, err = broken.communicate(timeout=60)
    assert broken.returncode == 130, err
    assert "interrupted; run the same command again to continue" in out
    rest = machine.run(*command)
    assert rest.status == 0, rest.err
    assert "unchanged since the last import" in rest.out
    assert machine.settle()["events"]["count"] == 6 * 25


def test_no_transcripts_are_no_error(alone, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    message = "no transcripts found in ~/.claude/projects or ~/.config/claude/projects\n"
    assert alone("import", "claude-code").out == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["zed"], "'zed' is neither a source nor a file"),
        (["claude-code", "/no/such"], "there is no /no/such"),
        (["/no/such"], "'/no/such' is neither a source nor a file"),
        ([os.devnull], "is neither a source nor a file"),
        ([__file__], "nor a file of `memd export`"),
        ([], "name a source (claude-code, codex, "),
        (["codex", "--all"], "--all takes neither a source nor --project"),
        (["--all", "--project", "x"], "--all takes neither a source nor --project"),
        (["markdown"], "name a folder"),
        (["markdown", "/no/such"], "there is no /no/such"),
        (["claude-code", "--project", "x"], "transcripts have projects of their own"),
    ],
)
def test_a_wrong_source_is_refused(alone, arguments, message):
    ran = alone("import", *arguments)
    assert ran.status == 1
    assert message in ran.err


def test_all_of_it_is_found_shown_and_imported_at_once(machine):
    ran = machine.run("import", "--all", "--dry-run")
    assert (ran.status, ran.out[:14]) == (0, "nothing found:")
    assert "codex in ~/.codex/sessions" in ran.out
    told_sessions.write(machine.home / ".codex" / "sessions" / "2026", told_sessions.codex())
    told_sessions.write(machine.home / ".copilot" / "session-state", told_sessions.copilot())
    told_sessions.write(machine.home / ".gemini" / "tmp", told_sessions.gemini_cli())
    memories = machine.home / ".codex" / "memories"
    memories.mkdir()
    (memories / "MEMORY.md").write_text(
        "# Task Group: shop\n## Reusable knowledge\n- Ports need root.\n"
    )
    ran = machine.run("import", "--all", "--dry-run")
    assert ran.status == 0, ran.err
    for title in ("Codex CLI", "Copilot CLI", "Gemini CLI", "Codex CLI's memory files"):
        assert f"{title}: 1 file, " in ran.out
    assert ran.out.count("\nwould read 1 ") == 4
    assert "Cursor" not in ran.out
    machine.run("start")
    refused = machine.run("import", "--all")
    assert (refused.status, machine.run("status", "--json").json["events"]["count"]) == (1, 0)
    assert "nothing was imported; use --yes" in refused.err
    torn = machine.home / ".codex" / "sessions" / "rollout-torn.jsonl.zst"
    torn.write_bytes(b"no frame")
    ran = machine.run("import", "--all", "--yes")
    assert ran.status == 1
    assert f"failed: {torn}: " in ran.out
    assert ran.out.count("\nread 1 ") == 4
    assert ran.out.endswith("all can be searched\n")
    machine.wait_for(lambda status: status["events"]["count"] == 27)  # nine of each session
    torn.unlink()
    again = machine.run("import", "--all", "--json")  # nothing is new, so nothing is asked
    assert again.status == 0, again.err
    assert [(one["source"], one["files"], one["new"]) for one in again.json["found"]] == [
        ("codex", 1, 0), ("copilot", 1, 0), ("gemini-cli", 1, 0), ("codex-memory", 1, 0),
    ]  # fmt: skip
    assert [len(one["done"]) for one in again.json["imported"].values()] == [0, 0, 0, 0]
    machine.wait_for(lambda status: status["events"]["count"] == 27)


def test_a_file_that_an_older_memd_checked_off_is_read_again(machine, tmp_path):
    """A vault as 5a9d27b left it: the file is known by its path alone."""
    ((name, text),) = told_sessions.claude_code()
    file = tmp_path / name
    file.write_text('{"type": "mode", "mode": "normal"}\n' + text, encoding="utf-8")
    machine.run("start")
    machine.run("import", "claude-code", file)
    machine.settle()
    machine.run("stop")
    vault = sqlite3.connect(machine.home / "vaults" / "default.db")
    with vault:
        vault.execute("UPDATE imports SET path = replace(path, 'session:', '')")
        assert vault.execute("SELECT count(*) FROM imports").fetchone() == (1,)
    vault.close()
    machine.run("start")
    again = machine.run("import", "claude-code", file)
    assert "read 1 file\n" in again.out
    assert "unchanged" in machine.run("import", "claude-code", file).out
