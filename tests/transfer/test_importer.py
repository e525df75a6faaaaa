import pytest

from memd.errors import BadRequest, Broken, Unreachable
from memd.transfer import ForeignMemory, importer
from memd.transfer.importer import ImportOptions, MemorySink, import_source, memory_request
from memd.transfer.sources import ImportFile, ImportSource
from tests.tables import every_row


class FakeDaemon:
    """Stores what it is sent, and refuses texts with the word `refuse`."""

    def __init__(self):
        self.batches, self.withdrawn = [], []

    def remember(self, batch):
        if any("refuse" in one["text"] for one in batch):
            raise BadRequest("text: refused")
        self.batches.append(batch)
        return [{"id": len(one["text"]), "outcome": "created", "superseded": [9]} for one in batch]

    def withdraw(self, path, staying):
        self.withdrawn.append((path, staying))
        return 1

    @property
    def texts(self):
        return [one["text"] for batch in self.batches for one in batch]


@pytest.fixture
def daemon():
    return FakeDaemon()


@pytest.fixture
def run(daemon):
    def run(*files, checkpoints=None, options=None, **source):
        return import_source(
            ImportSource(list(files), **source),
            options or ImportOptions("import:x"),
            MemorySink(daemon.remember, daemon.withdraw),
            {} if checkpoints is None else checkpoints,
            silent,
        )

    return run


def silent(*_):
    pass


def file(*texts, path="/a", fails=None, broken=(), unread="", **more):
    def read(issues):
        for number, text in enumerate(texts):
            yield ForeignMemory("title", text, part=str(number)), 0.5
        issues.broken += broken
        issues.unread = unread
        if fails:
            raise fails

    return ImportFile(path, (10, 1), read, **more)


def test_a_file_is_imported_once_until_it_changes(run, daemon):
    checkpoints = {}
    report = run(file("a", "bb"), checkpoints=checkpoints)
    assert daemon.texts == ["a", "bb"]
    assert report.outcomes == {"created": 2, "superseded": 2}
    assert (report.done, report.kinds, report.withdrawn) == (["/a"], {"note": 2}, 1)
    assert daemon.withdrawn == [("/a", [1, 2])]
    assert checkpoints == {"import:x:/a": (10, 1)}
    again = run(file("a", "bb"), checkpoints=checkpoints)
    assert (again.unchanged, again.done, len(daemon.batches)) == (["/a"], [], 1)


def test_a_dry_run_sends_nothing_and_sets_no_checkpoint(run, daemon):
    checkpoints = {}
    report = run(
        file("a"), checkpoints=checkpoints, options=ImportOptions("import:x", is_dry_run=True)
    )
    assert (report.kinds, report.done, report.is_dry_run) == ({"note": 1}, ["/a"], True)
    assert (checkpoints, daemon.batches, daemon.withdrawn) == ({}, [], [])


def test_a_refused_memory_is_named_and_costs_nothing_else(run, daemon):
    checkpoints = {}
    report = run(file("a", "refuse", "b"), checkpoints=checkpoints)
    assert daemon.texts == ["a", "b"]
    assert report.broken == ["/a: title: text: refused"]
    assert (daemon.withdrawn, checkpoints) == ([], {})


@pytest.mark.parametrize("error", [Broken("locked"), PermissionError(13, "Permission denied")])
def test_one_bad_file_never_stops_the_rest(run, daemon, error):
    checkpoints = {}
    report = run(file("a", fails=error), file("b", path="/b"), checkpoints=checkpoints)
    assert report.failed == {"/a": "locked" if isinstance(error, Broken) else "Permission denied"}
    assert (report.done, list(checkpoints), daemon.texts) == (["/b"], ["import:x:/b"], ["b"])


def test_without_a_daemon_the_import_ends(run, daemon, monkeypatch):
    def fail(_):
        raise Unreachable

    monkeypatch.setattr(daemon, "remember", fail)
    with pytest.raises(Unreachable):
        run(file("a"))


def test_nothing_is_withdrawn_for_a_file_that_was_read_partly(run, daemon):
    checkpoints = {}
    run(file("a", broken=["line 1: no JSON"]), checkpoints=checkpoints)
    run(file(path="/b", unread="binary"), checkpoints=checkpoints)
    run(file("a", path="/c", is_complete=False), checkpoints=checkpoints)
    assert daemon.withdrawn == []
    assert list(checkpoints) == ["import:x:/b", "import:x:/c"]


def test_batches_are_bounded_by_number_and_bytes(run, daemon, monkeypatch):
    run(file(*(f"text {n}" for n in range(250))))
    assert [len(batch) for batch in daemon.batches] == [100, 100, 50]
    monkeypatch.setattr(importer, "BATCH_BYTES_MAX", 2_500)
    daemon.batches.clear()
    run(file("x" * 1_000, "y" * 1_000, "z" * 1_000))
    assert [len(batch) for batch in daemon.batches] == [2, 1]


def test_missing_files_are_reported_once(run, daemon, tmp_path):
    (tmp_path / "there.md").write_text("x")
    gone, there = str(tmp_path / "gone.md"), str(tmp_path / "there.md")
    checkpoints = {
        f"import:x:{gone}": (1, 1),
        f"import:x:{there}": (1, 1),
        "import:x:/elsewhere/gone.md": (1, 1),
        f"import:y:{gone}": (1, 1),
        gone: (1, 1),
    }
    assert run(checkpoints=checkpoints, folders=[str(tmp_path)]).missing == [gone]
    assert run(checkpoints=checkpoints, folders=[str(tmp_path)]).missing == []
    assert daemon.withdrawn == []
    checkpoints[f"import:x:{gone}"] = (1, 1)
    run(checkpoints=checkpoints, folders=[str(tmp_path)], withdraws_missing=True)
    assert daemon.withdrawn == [(gone, [])]


@every_row(
    ("memory", "file_", "named", "owner"),
    [
        ({}, {}, None, ("global", None)),
        ({}, {"directory": "/d"}, None, ("current", "/d")),
        ({}, {"project": "p"}, None, ("p", None)),
        ({"project": "p"}, {"directory": "/d"}, None, ("p", None)),
        ({"project": "p", "directory": "/e"}, {}, None, ("current", "/e")),
        ({"project": "all"}, {}, None, ("all (imported)", None)),
        ({"project": "p", "directory": "/e"}, {}, "global", ("global", None)),
    ],
)
def test_the_project_is_the_users_else_that_of_the_memory_else_that_of_the_file(
    memory, file_, named, owner
):
    sent = memory_request(
        ForeignMemory("t", "x", **memory), file(**file_), ImportOptions("s", project=named)
    )
    assert (sent["project"], sent.get("directory")) == owner
    assert sent["origin"].get("moves") == (True if named else None)
