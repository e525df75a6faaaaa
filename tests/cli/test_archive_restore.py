import contextlib
from pathlib import Path

import apsw
import pytest

from tests.export_records import fill, one_of_each


@pytest.fixture
def vault(tmp_path):
    """A vault with a record of every kind, and no daemon."""
    (tmp_path / "vaults").mkdir()
    return Path(fill(tmp_path / "vaults" / "default.db", one_of_each()))


def test_a_restore_brings_back_the_vault_and_the_daemon(vault, machine, alone, tmp_path):
    assert machine.run("start").status == 0
    pid = alone("status", "--json").json["pid"]
    (tmp_path / "x.memd").write_bytes(b"no vault" * 1_000)
    refused = alone("restore", tmp_path / "x.memd", "--yes")
    assert (refused.status, refused.out) == (1, "")
    assert "not an SQLite database" in refused.err
    assert alone("status", "--json").json["pid"] == pid

    text = "The vault key is under the mat."
    secret = alone("remember", text, "--project", "global", "--json").json["id"]
    path = alone("backup", "--json").json["path"]
    alone("forget", "--yes", secret)
    alone("remember", "The build needs Go.", "--project", "global")
    ran = machine.run("restore", path, "--yes")
    assert ran.status == 0, ran.err
    assert " is intact: 4 memories, 2 events\n" in ran.out
    assert "1 memory did not come back, forgotten since the backup\n" in ran.out
    assert "\nrestored\nstarted, pid " in ran.out
    status = alone("status", "--json").json
    assert (status["summaries"]["count"], status["pid"] != pid) == (3, True)
    assert b"under the mat" not in vault.read_bytes()
    assert b"The build needs Go." not in vault.read_bytes()
    aside = next(line for line in ran.out.splitlines() if line.startswith("replaced vault"))
    assert b"The build needs Go." in Path(aside.partition(": ")[2]).read_bytes()


def test_a_failed_restore_leaves_the_vault_and_the_daemon(vault, machine, alone, tmp_path):
    machine.run("start")
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    (vault.parent / "backups").write_text("no directory")
    ran = machine.run("restore", path, "--yes")
    assert ran.status == 1
    assert "started, pid" in ran.out
    assert "restored" not in ran.out
    assert ran.err.startswith("memd: ")
    assert alone("status", "--json").json["summaries"]["count"] == 3


@pytest.mark.usefixtures("vault")
def test_a_restore_starts_no_daemon_where_none_ran(alone):
    path = alone("backup", "--json").json["path"]
    ran = alone("restore", path, "--yes")
    assert ran.status == 0, ran.err
    assert alone("status").status == 2
    assert alone("backup", "--list").out.count("replaced by a restore") == 1


def test_a_restore_asks_for_confirmation(vault, alone, monkeypatch):
    path = alone("backup", "--json").json["path"]
    before = vault.read_bytes()
    ran = alone("restore", path)
    assert ran.status == 1
    assert "use --yes to confirm" in ran.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda _: False)
    ran = alone("restore", path)
    assert ran.out.endswith("nothing was changed\n")
    assert vault.read_bytes() == before


def spoil(vault, at=8_192, size=200_000):
    with vault.open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * min(size, vault.stat().st_size - at))
    return vault.read_bytes()


def page_of(vault, table):
    with contextlib.closing(apsw.Connection(str(vault))) as connection:
        return connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,)).get


def test_without_a_file_the_latest_intact_backup_is_restored(vault, alone):
    first = Path(alone("backup", "--json").json["path"])
    last = Path(alone("backup", "--json").json["path"])
    last.write_bytes(b"torn")
    spoiled = spoil(vault)
    ran = alone("restore", "--yes")
    assert ran.status == 0, ran.err
    assert f"{first} is intact: 3 memories" in ran.out
    aside = next(line for line in ran.out.splitlines() if line.startswith("replaced vault"))
    assert Path(aside.partition(": ")[2]).read_bytes() == spoiled


def test_without_a_vault_no_salvage_is_offered(alone):
    ran = alone("restore", "--yes")
    assert (ran.status, "salvage" in ran.err) == (1, False)
    assert "; name a FILE" in ran.err


@pytest.mark.usefixtures("vault")
def test_without_a_file_and_without_a_backup_a_salvage_is_offered(alone):
    ran = alone("restore", "--yes")
    assert ran.status == 1
    assert "`memd restore --salvage`" in ran.err


def test_a_salvage_rescues_what_can_be_read_and_keeps_the_damaged_file(vault, alone):
    spoiled = spoil(vault, (page_of(vault, "passages") - 1) * 4_096, 4_096)
    assert alone("doctor").status == 1
    ran = alone("restore", "--salvage", "--yes")
    assert ran.status == 0, ran.err
    assert "events: 2, all of them" in ran.out
    assert "summaries: 3, all of them" in ran.out
    aside = next(line for line in ran.out.splitlines() if line.startswith("replaced vault"))
    assert Path(aside.partition(": ")[2]).read_bytes() == spoiled
    assert not list(vault.parent.glob("backups/*.damaged*"))


def test_an_intact_or_missing_vault_is_not_salvaged(vault, machine, alone, tmp_path):
    path = alone("backup", "--json").json["path"]
    machine.run("start")
    pid = alone("status", "--json").json["pid"]
    for arguments, message in (
        ((), "the vault is intact; there is nothing to salvage"),
        ((path,), f"{path} is intact; there is nothing to salvage"),
        ((tmp_path / "none.memd",), f"there is no file {tmp_path / 'none.memd'}"),
    ):
        ran = alone("restore", *arguments, "--salvage", "--yes")
        assert (ran.status, ran.out) == (1, "")
        assert message in ran.err
    assert alone("status", "--json").json["pid"] == pid
    assert len(list(vault.parent.glob("backups/*"))) == 1


def test_a_file_that_is_no_vault_is_not_salvaged(vault, alone):
    vault.write_bytes(b"Dear diary.\n" * 99)
    ran = alone("restore", "--salvage", "--yes")
    assert (ran.status, vault.read_bytes()) == (1, b"Dear diary.\n" * 99)
    assert "can be read" in ran.err


def test_status_and_doctor_advise_about_a_damaged_vault(vault, machine, alone):
    alone("backup")
    spoil(vault, 0, 16)
    started = machine.run("start")
    assert started.status == 1
    assert "`memd restore` brings back the backup of " in started.err
    status = alone("status")
    assert status.status == 2
    assert "`memd restore --salvage`" in status.out
    assert "`memd restore` brings back the backup of " in alone("doctor").out
    assert alone("restore", "--yes").status == 0
    assert "restore" not in alone("status").out


# ── What was scrubbed or forgotten since, and what a killed restore leaves ────────────────────────


def remember(alone, text, *options):
    return alone("remember", text, "--project", "global", "--json", *options).json["id"]


def files_with(folder, *words):
    """The files below a folder, other than those the test names as backups, that contain a word."""
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words)
    ]


@pytest.mark.usefixtures("vault")
def test_a_restore_does_not_bring_back_what_was_scrubbed(machine, alone, tmp_path):
    machine.run("start")
    kept = remember(alone, "The safe is opened by quuxfrob, says Ann.")
    gone = remember(alone, "Only the backup knows that quuxfrob is old.")
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    alone("forget", str(gone), "--yes")
    other = remember(alone, "Another one with quuxfrob.")
    assert machine.run("scrub", "quux[a-z]+", "--yes").status == 0
    ran = machine.run("restore", path, "--yes")
    assert ran.status == 0, ran.err
    assert "scrubbed again, as in the replaced vault\n" in ran.out
    (memory,) = alone("get", kept, "--json").json["memories"]
    assert memory["title"].startswith("The safe is opened by [REDACTED:scrub], says Ann")
    assert alone("get", gone, other).status == 1
    machine.run("stop")
    assert files_with(tmp_path / "vaults", "quuxfrob") == []
    assert files_with(tmp_path / "disk", "quuxfrob"), "else this test proves nothing"


@pytest.mark.usefixtures("vault")
def test_a_row_that_only_the_backup_has_is_scrubbed_as_the_others(machine, alone, tmp_path):
    machine.run("start")
    remember(alone, "We pay with quuxfrob since May.")
    expired = remember(alone, "The tide takes quuxfrob away.")
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    machine.run("stop")
    with contextlib.closing(apsw.Connection(str(tmp_path / "vaults" / "default.db"))) as tx:
        # As if it had expired: it goes without a hash of it.
        tx.execute("DELETE FROM passages WHERE summary_id = ?", (expired,))
        tx.execute("DELETE FROM summaries WHERE id = ?", (expired,))
    machine.run("start")
    assert machine.run("scrub", "quuxfrob", "--yes").status == 0
    assert machine.run("restore", path, "--yes").status == 0
    (memory,) = alone("get", expired, "--json").json["memories"]
    assert memory["title"] == "The tide takes [REDACTED:scrub] away"
    machine.run("stop")
    assert b"quuxfrob" not in (tmp_path / "vaults" / "default.db").read_bytes()


@pytest.mark.usefixtures("vault")
def test_a_restore_applies_redaction_where_the_vault_was_scrubbed_by_it(machine, alone, tmp_path):
    token = "ghp_" + "aB3" * 12
    machine.run("start")
    number = remember(alone, "The deploy token is in the safe.")
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    machine.run("stop")
    with contextlib.closing(apsw.Connection(path)) as tx:
        tx.execute("UPDATE summaries SET body = ? WHERE id = ?", (f"It is {token} now.", number))
    assert machine.run("start").status == 0
    assert machine.run("scrub", "--secrets", "--yes").status == 0
    alone("forget", "--yes", number)
    assert machine.run("restore", path, "--yes").status == 0
    machine.run("stop")
    assert files_with(tmp_path / "vaults", token) == []


@pytest.mark.usefixtures("vault")
def test_a_restore_does_not_bring_back_reasons_titles_and_links_that_were_forgotten(
    machine, alone, tmp_path
):
    machine.run("start")
    one, two = remember(alone, "tea is green"), remember(alone, "tea is black")
    alone("judge", two, one, "supersedes", "--reason", "quuxfrob said so")
    remember(alone, "about quuxfrob itself")
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    assert alone("forget", "--query", "quuxfrob", "--yes", "--project", "all").status == 0
    ran = machine.run("restore", path, "--yes")
    assert ran.status == 0, ran.err
    machine.run("stop")
    assert files_with(tmp_path / "vaults", "quuxfrob") == []


@pytest.mark.usefixtures("vault")
def test_a_salvaged_backup_brings_back_nothing_that_was_forgotten_or_scrubbed(
    machine, alone, tmp_path
):
    machine.run("start")
    gone = remember(alone, "Nobody shall know of quuxfrob.")
    kept = remember(alone, "The safe opens with zzyzxfrob today.")
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    alone("forget", gone, "--yes")
    assert machine.run("scrub", "zzyzxfrob", "--yes").status == 0
    spoil(Path(path), (page_of(Path(path), "passages") - 1) * 4_096, 4_096)
    ran = machine.run("restore", path, "--salvage", "--yes")
    assert ran.status == 0, ran.err
    (memory,) = alone("get", kept, "--json").json["memories"]
    assert memory["title"] == "The safe opens with [REDACTED:scrub] today"
    assert alone("get", gone).status == 1
    machine.run("stop")
    assert files_with(tmp_path / "vaults", "quuxfrob", "zzyzxfrob") == []


def kill_restore(machine, path, folder):
    """Restore until the copy is being made, then kill it; the file it leaves."""
    for _ in range(50):
        process = machine.fork("restore", path, "--yes")
        while process.poll() is None:
            if found := list(folder.glob("*.partial")):
                process.kill()
                process.wait(60)
                if found[0].exists():
                    return found[0]
    raise AssertionError("no restore was caught in the act")


@pytest.mark.parametrize("end", ["doctor", "start", "restore", "forget"])
def test_what_a_killed_restore_left_is_named_and_goes(vault, machine, alone, tmp_path, end):
    path = alone("backup", "--to", tmp_path / "disk", "--json").json["path"]
    left = kill_restore(machine, path, vault.parent / "backups")
    examined = {one["name"]: one for one in alone("doctor", "--json").json["findings"]}
    assert (examined["copies"]["verdict"], str(left) in examined["copies"]["words"]) == (
        "warning",
        True,
    )
    if end == "doctor":
        alone("doctor", "--fix")
    elif end == "start":
        machine.run("start")
    elif end == "restore":
        assert machine.run("restore", path, "--yes").status == 0
    else:
        machine.run("start")
        left.write_bytes(b"as if a backup had just been killed")
        ran = alone("forget", "--query", "no such thing", "--project", "all", "--dry-run")
        assert f"would forget {left}, which was never finished" in ran.out
        assert left.exists()
        alone("forget", "--query", "no such thing", "--project", "all", "--yes")
    assert not left.exists()
    machine.run("stop")
