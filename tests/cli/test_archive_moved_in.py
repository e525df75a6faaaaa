import signal
import subprocess

import pytest

from memd.cli import app, archive
from memd.store.export_rows import EXPORT_SCHEMA
from tests.export_records import lines, one_of_each, project, session, summary

from .conftest import Machine, Ran


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


def test_an_export_is_known_by_its_header_whatever_it_is_called(file, tmp_path):
    assert archive.is_export(file)
    for name, content in {
        "a.jsonl": b"{}\n",
        "empty": b"",
        "binary": bytes(range(256)),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert not archive.is_export(tmp_path / name)
    assert not archive.is_export(tmp_path)
    assert not archive.is_export(tmp_path / "none")


def test_every_kind_of_record_has_a_word_of_its_own():
    assert set(archive.NOUNS) == set(EXPORT_SCHEMA)
    merged = {"created": {"summary": 2, "edge": 1, "forgotten": 27, "use": 0}, "hidden": 0}
    merged |= {name: {} for name in ("known", "revised", "forgotten", "left")}
    assert list(archive._lines(merged)) == ["new: 2 memories, 1 link, 27 forgotten keys"]


def test_what_moves_in_can_be_found_and_a_second_time_adds_nothing(home, run, file):
    first = run("import", file)
    assert first.status == 0, first.err
    assert "read 3 memories, 2 events, 2 sessions, 2 projects\nnew: " in first.out
    found = run("search", "sessions", "--project", "all", "--json").json["hits"]
    assert "Sessions live in rule" in {hit["title"] for hit in found}
    before = run("export").out
    again = run("import", "vault", file)
    assert again.status == 0, again.err
    assert "new: " not in again.out
    assert "known already: " in again.out
    with file.open("rb") as stdin:
        assert home.popen("import", "vault", "-", stdin=stdin).wait(timeout=60) == 0
    assert run("export").out == before


def test_a_refused_file_names_its_line_and_changes_nothing(home, run, file):
    before = run("export").out
    file.write_bytes(file.read_bytes()[:-30])
    ran = run("import", file)
    assert (ran.status, ran.out) == (1, "")
    number = len(one_of_each()) + 2
    assert f"memd: line {number}: the file ends within this line: it was cut off." in ran.err
    assert run("export").out == before
    assert not list((home.home / "vaults").glob("*.staging*"))


def test_an_import_that_is_killed_leaves_the_vault_as_it_was_and_can_be_repeated(
    home, run, tmp_path
):
    held = [
        project(),
        session("s7"),
        *(summary(f"killed {n}", session="s7") for n in range(20)),
    ]
    data = lines(held)
    (tmp_path / "many.jsonl").write_bytes(b"".join(data))
    before = run("export").out
    process = home.popen("import", "vault", "-", stdin=subprocess.PIPE)
    process.stdin.write(b"".join(data[:12]))
    process.stdin.flush()
    folder = home.home / "vaults"
    while not any(path.stat().st_size for path in folder.glob("*.staging")):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    assert run("export").out == before
    assert list(folder.glob("*.staging"))
    ran = run("import", tmp_path / "many.jsonl")
    assert "new: 20 memories, " in ran.out
    assert not list(folder.glob("*.staging*"))


def test_a_rehearsal_needs_no_daemon_and_changes_nothing(alone, file, tmp_path):
    ran = alone("import", file, "--dry-run")
    assert ran.status == 0, ran.err
    assert (
        ran.out
        == "would read 3 memories, 2 events, 2 sessions, 2 projects; the file is whole\n"
    )
    assert not list(tmp_path.glob("vaults/*"))


def test_with_no_daemon_it_says_so_before_all_the_work(alone, file):
    ran = alone("import", file)
    assert (ran.status, ran.out) == (2, "")
    assert "memd start" in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("vault",), "say which file"),
        (("vault", "none.jsonl"), "there is no none.jsonl"),
        (("FILE", "--project", "global"), "knows its projects"),
        (("nothing",), "import knows"),
    ],
)
def test_a_command_that_cannot_be_meant_says_what_to_do(alone, file, words, why):
    ran = alone("import", *(file if word == "FILE" else word for word in words))
    assert (ran.status, ran.out) == (1, "")
    assert why in ran.err
