import pytest

from memd.errors import BadRequest, Broken, Unreachable
from memd.models import Kind
from memd.transfer import importer
from memd.transfer.importer import ImportOptions, import_source, memory_request
from memd.transfer.record import ForeignMemory
from memd.transfer.sources import ImportFile, ImportSource


class Daemon:
    """Remembers what it is sent, and refuses what says so."""

    def __init__(self):
        self.batches, self.withdrawn = [], []

    def remember(self, batch):
        if any("refuse" in one["text"] for one in batch):
            raise BadRequest("text: refused")
        self.batches.append(batch)
        return [
            {"id": len(one["text"]), "outcome": "created", "superseded": [9]} for one in batch
        ]

    def withdraw(self, path, staying):
        self.withdrawn.append((path, staying))
        return 1

    @property
    def texts(self):
        return [one["text"] for batch in self.batches for one in batch]


@pytest.fixture
def daemon():
    return Daemon()


@pytest.fixture
def run(daemon):
    def run(*cargoes, marks=None, waybill=None, **shelf):
        marks = {} if marks is None else marks
        hands = (daemon.remember, daemon.withdraw)
        return import_source(
            ImportSource(list(cargoes), **shelf),
            waybill or ImportOptions("import:x"),
            hands,
            marks,
            silent,
        )

    return run


def silent(*_):
    pass


def cargo(*texts, path="/a", fails=None, broken=(), unread="", **more):
    def read(trouble):
        for number, text in enumerate(texts):
            yield ForeignMemory("title", text, part=str(number)), 0.5
        trouble.broken += broken
        trouble.unread = unread
        if fails:
            raise fails

    return ImportFile(path, (10, 1), read, **more)


def test_everything_is_handed_over_and_marked_and_a_second_time_nothing_is(run, daemon):
    marks = {}
    report = run(cargo("a", "bb"), marks=marks)
    assert daemon.texts == ["a", "bb"]
    assert report.outcomes == {"created": 2, "superseded": 2}
    assert (report.done, report.kinds, report.withdrawn) == (["/a"], {"note": 2}, 1)
    assert daemon.withdrawn == [("/a", [1, 2])]
    assert marks == {"import:x:/a": (10, 1)}
    again = run(cargo("a", "bb"), marks=marks)
    assert (again.unchanged, again.done, len(daemon.batches)) == (["/a"], [], 1)


def test_a_dry_run_sends_nothing_and_marks_nothing(run, daemon):
    marks = {}
    report = run(cargo("a"), marks=marks, waybill=ImportOptions("import:x", is_dry_run=True))
    assert (report.kinds, report.done, report.is_dry_run) == ({"note": 1}, ["/a"], True)
    assert (marks, daemon.batches, daemon.withdrawn) == ({}, [], [])


def test_what_is_refused_is_named_and_costs_nothing_else(run, daemon):
    marks = {}
    report = run(cargo("a", "refuse", "b"), marks=marks)
    assert daemon.texts == ["a", "b"]
    assert report.broken == ["/a: title: text: refused"]
    assert (daemon.withdrawn, marks) == ([], {})


@pytest.mark.parametrize("error", [Broken("locked"), PermissionError(13, "Permission denied")])
def test_one_bad_file_never_stops_the_rest(run, daemon, error):
    marks = {}
    report = run(cargo("a", fails=error), cargo("b", path="/b"), marks=marks)
    assert report.failed == {
        "/a": "locked" if isinstance(error, Broken) else "Permission denied"
    }
    assert (report.done, list(marks), daemon.texts) == (["/b"], ["import:x:/b"], ["b"])


def test_with_nobody_listening_the_import_ends(run, daemon, monkeypatch):
    def gone(_):
        raise Unreachable

    monkeypatch.setattr(daemon, "remember", gone)
    with pytest.raises(Unreachable):
        run(cargo("a"))


def test_nothing_is_withdrawn_for_a_file_that_was_not_read_whole(run, daemon):
    marks = {}
    run(cargo("a", broken=["line 1: no JSON"]), marks=marks)
    run(cargo(path="/b", unread="binary"), marks=marks)
    run(cargo("a", path="/c", is_whole=False), marks=marks)
    assert daemon.withdrawn == []
    assert list(marks) == ["import:x:/b", "import:x:/c"]


def test_batches_are_bounded_by_number_and_bytes(run, daemon, monkeypatch):
    run(cargo(*(f"text {n}" for n in range(250))))
    assert [len(batch) for batch in daemon.batches] == [100, 100, 50]
    monkeypatch.setattr(importer, "BATCH_BYTES_MAX", 2_500)
    daemon.batches.clear()
    run(cargo("x" * 1_000, "y" * 1_000, "z" * 1_000))
    assert [len(batch) for batch in daemon.batches] == [2, 1]


def test_files_that_are_gone_are_told_once(run, daemon, tmp_path):
    (tmp_path / "there.md").write_text("x")
    gone, there = str(tmp_path / "gone.md"), str(tmp_path / "there.md")
    marks = {
        f"import:x:{gone}": (1, 1),
        f"import:x:{there}": (1, 1),
        "import:x:/elsewhere/gone.md": (1, 1),
        f"import:y:{gone}": (1, 1),
        gone: (1, 1),
    }
    assert run(marks=marks, tops=[str(tmp_path)]).gone == [gone]
    assert run(marks=marks, tops=[str(tmp_path)]).gone == []
    assert daemon.withdrawn == []
    marks[f"import:x:{gone}"] = (1, 1)
    run(marks=marks, tops=[str(tmp_path)], is_kept_tidy=True)
    assert daemon.withdrawn == [(gone, [])]


def test_what_was_left_out_while_looking_is_in_the_report(run):
    report = run(left={"hidden": 2}, failed={"/x": "Permission denied"})
    assert (report.skipped, report.failed) == ({"hidden": 2}, {"/x": "Permission denied"})


def test_an_entry_goes_with_all_that_is_known_of_it():
    entry = ForeignMemory(
        "t", "x", "p", 3, Kind.FIX, 5, ("a",), ("/f",), "s", "claude-code", "ledger"
    )
    assert memory_request(entry, cargo(), ImportOptions("import:x", "file")) == {
        "title": "t", "text": "x", "kind": "fix", "tags": ["a"], "files": ["/f"], "at": 5,
        "session": "s", "client": "claude-code", "source": "import:x", "tier": "file",
        "origin": {"path": "/a", "part": "p", "line": 3}, "project": "ledger",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "cargo_", "named", "owner"),
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
def test_the_nearest_project_counts_and_the_user_s_word_most(entry, cargo_, named, owner):
    sent = memory_request(
        ForeignMemory("t", "x", **entry), cargo(**cargo_), ImportOptions("s", project=named)
    )
    assert (sent["project"], sent.get("directory")) == owner
    assert sent["origin"].get("moves") == (True if named else None)


def test_marks_of_one_project_are_not_those_of_another():
    assert ImportOptions("import:x").key("/a") == "import:x:/a"
    assert ImportOptions("import:x", project="p").key("/a") == "import:x@p:/a"
