import json
from pathlib import Path

import pytest

from memd.cli import app, archive
from memd.store.export_rows import EXPORT_SCHEMA
from tests.export_records import exported, fill, lines, one_of_each

from .conftest import Machine, Ran

# ── export ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def vault(tmp_path):
    """A vault with a record of every kind, and no daemon."""
    (tmp_path / "vaults").mkdir()
    return Path(fill(tmp_path / "vaults" / "default.db", one_of_each()))


def test_an_export_is_a_private_file_and_prints_its_totals(vault, alone, tmp_path):
    ran = alone("export", tmp_path / "x.jsonl")
    assert ran.status == 0, ran.err
    totals = "3 memories, 2 events, 2 sessions, 2 projects"
    assert ran.out == f"wrote {len(one_of_each())} records to {tmp_path}/x.jsonl: {totals}\n"
    lines = (tmp_path / "x.jsonl").read_bytes().splitlines()
    assert lines[1:-1] == exported(str(vault)).splitlines()[1:-1]
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
def test_a_failed_export_leaves_no_file(alone, tmp_path):
    ran = alone("export", tmp_path / "x", "--project", "nowhere")
    assert (ran.status, ran.out) == (1, "")
    assert "there is no 'nowhere'" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["vaults"]


@pytest.mark.usefixtures("vault")
def test_standard_output_has_only_the_lines(alone):
    ran = alone("export")
    kinds = [json.loads(line)["record"] for line in ran.out.splitlines()]
    assert (ran.status, kinds[0], kinds[-1]) == (0, "memd-export", "end")
    assert kinds[1:-1] == [kind for kind, _ in one_of_each()]
    assert ran.err.startswith(f"wrote {len(one_of_each())} records to -: 3 memories")
    assert alone("export", "-", "--project", "ledger").out.count("\n") < len(kinds)


def test_an_export_is_not_printed_to_a_terminal(alone, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = alone("export")
    assert ran.status == 1
    assert "name a file" in ran.err


def test_totals_are_counts_with_nouns():
    totals = archive.format_totals({"summary": 1, "event": 2_000})
    assert totals == "1 memory, 2,000 events, 0 sessions, 0 projects"


# ── moved_in ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A machine with a daemon that every test here moves something into."""
    machine = Machine(tmp_path_factory.mktemp("moved"))
    assert machine.run("start").status == 0
    yield machine
    machine.kill()


@pytest.fixture
def run(home, monkeypatch, capsys):
    """Run a command in this process against that daemon."""
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    monkeypatch.setenv("MEMD_HOME", str(home.home))

    def run(*arguments):
        status = app.main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return run


@pytest.fixture
def file(tmp_path):
    """A file with an export of a record of every kind."""
    path = tmp_path / "moved.jsonl"
    path.write_bytes(b"".join(lines(one_of_each())))
    return path


def export_records(run):
    """Everything in the vault but uses: a search is counted some time after its answer."""
    records = map(json.loads, run("export").out.splitlines()[1:-1])
    return [record for record in records if record["record"] != "use"]


def test_an_export_is_recognised_by_its_header(file, tmp_path):
    assert archive.is_export(file)
    for name, content in {"a.jsonl": b"{}\n", "empty": b"", "binary": bytes(range(256))}.items():
        (tmp_path / name).write_bytes(content)
        assert not archive.is_export(tmp_path / name)
    assert not archive.is_export(tmp_path)
    assert not archive.is_export(tmp_path / "none")


def test_every_kind_of_record_has_a_noun():
    assert set(archive.RECORD_NOUNS) < set(EXPORT_SCHEMA)
    merged = {"created": {"summary": 2, "edge": 1, "forgotten": 27, "use": 0}, "hidden": 0}
    merged |= {name: {} for name in ("known", "revised", "forgotten", "left")}
    assert list(archive._format_merged(merged)) == ["new: 2 memories, 1 link, 27 forgotten keys"]


def test_an_imported_export_can_be_searched_and_a_second_import_adds_nothing(home, run, file):
    first = run("import", file)
    assert first.status == 0, first.err
    assert "read 3 memories, 2 events, 2 sessions, 2 projects\nnew: " in first.out
    found = run("search", "sessions", "--project", "all", "--json").json["hits"]
    assert "Sessions live in rule" in {hit["title"] for hit in found}
    before = export_records(run)
    again = run("import", "vault", file)
    assert again.status == 0, again.err
    assert "new: " not in again.out
    assert "already known: " in again.out
    with file.open("rb") as stdin:
        assert home.popen("import", "vault", "-", stdin=stdin).wait(timeout=60) == 0
    assert export_records(run) == before


def test_a_broken_export_is_refused_with_its_line(home, run, file):
    before = export_records(run)
    file.write_bytes(file.read_bytes()[:-30])
    ran = run("import", file)
    assert (ran.status, ran.out) == (1, "")
    number = len(one_of_each()) + 2
    assert f"memd: line {number}: the file ends within this line: it was cut off." in ran.err
    assert export_records(run) == before
    assert not list((home.home / "vaults").glob("*.staging*"))


def test_a_dry_run_needs_no_daemon_and_changes_nothing(alone, file, tmp_path):
    ran = alone("import", file, "--dry-run")
    assert ran.status == 0, ran.err
    assert (
        ran.out == "would read 3 memories, 2 events, 2 sessions, 2 projects; the file is complete\n"
    )
    assert not list(tmp_path.glob("vaults/*"))


def test_an_import_without_a_daemon_fails_first(alone, file):
    ran = alone("import", file)
    assert (ran.status, ran.out) == (2, "")
    assert "memd start" in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("vault",), "name one file"),
        (("vault", "none.jsonl"), "there is no none.jsonl"),
        (("FILE", "--project", "global"), "has projects of its own"),
        (("nothing",), "the sources are claude-code, "),
    ],
)
def test_a_wrong_import_says_what_to_do(alone, file, words, why):
    ran = alone("import", *(file if word == "FILE" else word for word in words))
    assert (ran.status, ran.out) == (1, "")
    assert why in ran.err


# ── backup ────────────────────────────────────────────────────────────────────────────────────────


def test_a_backup_prints_its_path_and_is_listed(vault, alone):
    ran = alone("backup")
    assert ran.status == 0, ran.err
    path = ran.out.partition(": ")[0]
    assert ran.out.endswith("3 memories, checked\n")
    assert Path(path).parent == vault.parent / "backups"
    listed = alone("backup", "--list")
    assert listed.out.endswith(f"  {path}\n")
    assert alone("backup", "--list", "--json").json["backups"][0]["path"] == path


@pytest.mark.usefixtures("vault")
def test_backups_go_to_the_named_directory_and_old_ones_are_removed(alone, tmp_path):
    folder = tmp_path / "disk"
    assert alone("backup", "--to", folder, "--list").out == f"no backups in {folder}\n"
    made = [alone("backup", "--to", folder, "--keep", "1", "--json").json for _ in range(2)]
    assert made[1]["pruned"] == [made[0]["path"]]
    assert [str(path) for path in folder.iterdir()] == [made[1]["path"]]
    ran = alone("backup", "--to", folder, "--keep", "1")
    assert f"removed {made[1]['path']}\n" in ran.out
    assert alone("backup", "--keep", "0").status == 1


def test_a_terminal_gets_a_progress_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with archive._show_copying() as draw:
        draw(3, 4)
    assert "copying" in capsys.readouterr().err


def test_times_are_of_the_zone_in_which_a_command_is_run(machine):
    backups = machine.home / "vaults" / "backups"
    backups.mkdir(parents=True)
    (backups / "default-20261120T120000Z.memd").write_bytes(b"")
    for zone, shown in (("UTC", "2026-11-20 12:00"), ("Asia/Tokyo", "2026-11-20 21:00")):
        machine.environ["TZ"] = zone
        assert machine.run_forked(["backup", "--list"]).out.startswith(shown)
