"""The import: streamed, resumable, and one bad file never stops the rest."""

import json
import os
import shutil
from pathlib import Path

import pytest

from memd.errors import Broken, Unreachable
from memd.exchange import carrier
from memd.exchange.carrier import carry, find_transcripts

LEDGER = Path(__file__).parents[1] / "data" / "claude-code" / "ledger" / "projects"


@pytest.fixture
def config(tmp_path):
    shutil.copytree(LEDGER, tmp_path / "c" / "projects")
    return tmp_path / "c"


@pytest.fixture
def files(config):
    return find_transcripts(None, {"CLAUDE_CONFIG_DIR": str(config)})


class Listener:
    """Remembers what it is sent, and answers that it was stored."""

    def __init__(self):
        self.batches = []

    def __call__(self, batch):
        self.batches.append(batch)
        return [{"outcome": "stored"} for _ in batch]

    @property
    def captures(self):
        return [capture for batch in self.batches for capture in batch]


def silent(*_):
    pass


def prompts(path, count, words="hello"):
    line = {"type": "user", "sessionId": "s", "cwd": "/p", "message": {"content": words}}
    path.write_text(
        "".join(
            json.dumps({**line, "promptId": f"p{n}", "uuid": f"u{n}"}) + "\n"
            for n in range(count)
        )
    )


def test_transcripts_are_found_where_claude_code_keeps_them_oldest_first(config, tmp_path):
    folder = config / "projects" / "-home-dev-ledger"
    (folder / "abc" / "subagents").mkdir(parents=True)
    (folder / "abc" / "subagents" / "agent-1.jsonl").write_text("")
    os.utime(folder / "abc" / "subagents" / "agent-1.jsonl", (1, 1))
    (folder / "abc" / "notes.txt").write_text("")
    found = find_transcripts(None, {"CLAUDE_CONFIG_DIR": str(config)})
    assert len(found) == 4
    assert found[0].endswith("agent-1.jsonl")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".claude").symlink_to(config)
    assert len(find_transcripts(None, {"HOME": str(tmp_path / "home")})) == 4
    assert find_transcripts([str(folder / "x.jsonl")], {}) == [str(folder / "x.jsonl")]
    assert find_transcripts(None, {"HOME": str(tmp_path / "nobody")}) == []


def test_everything_is_handed_over_as_an_import(files):
    listener, marks, steps = Listener(), {}, []
    report = carry(files, listener, marks, lambda *step: steps.append(step))
    assert report.outcomes == {"stored": len(listener.captures)}
    assert report.events["UserPromptSubmit"] == 6
    assert sorted(report.done) == sorted(files) == sorted(marks)
    assert {(c["client"], c["source"], c["directory"]) for c in listener.captures} == {
        ("claude-code", "import", "/home/dev/ledger")
    }
    assert all(isinstance(c["at"], int) for c in listener.captures)
    sizes = [done for _, done, _ in steps]
    assert sizes == sorted(sizes)
    assert sizes[-1] == steps[-1][2] == sum(Path(f).stat().st_size for f in files)


def test_a_file_that_has_not_changed_is_not_read_again(files):
    marks = {}
    carry(files, Listener(), marks, silent)
    Path(files[0]).open("a").close()
    os.utime(files[1], (5, 5))
    listener = Listener()
    report = carry(files, listener, marks, silent)
    assert report.done == [files[1]]
    assert len(report.unchanged) == 2
    assert listener.captures


def test_a_dry_run_sends_nothing_and_marks_nothing(files):
    listener, marks = Listener(), {}
    report = carry(files, listener, marks, silent, dry_run=True)
    assert report.is_dry_run
    assert report.events["Stop"] == 6
    assert (listener.batches, marks, report.outcomes) == ([], {}, {})


def test_one_bad_file_never_stops_the_rest(files, tmp_path):
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"\0\xff{\n" + Path(files[0]).read_bytes()[:-40])
    gone = str(tmp_path / "gone.jsonl")
    marks = {}
    report = carry([gone, str(torn), str(tmp_path), *files], Listener(), marks, silent)
    assert set(report.failed) == {gone, str(tmp_path)}
    assert set(marks) == {str(torn), *files}
    assert report.skipped["broken line"] == 2


def test_pipes_devices_and_dangling_links_of_a_directory_are_not_waited_for(tmp_path):
    prompts(tmp_path / "real.jsonl", 1)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "endless.jsonl").symlink_to("/dev/zero")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle").symlink_to(tmp_path)
    assert find_transcripts([str(tmp_path)], {}) == [str(tmp_path / "real.jsonl")]


def test_a_file_whose_events_were_not_taken_is_not_marked(files):
    listener = Listener()

    def send(batch):
        if len(listener.batches) == 1:
            listener.batches.append([])
            raise Broken("no room")
        return listener(batch)

    marks = {}
    report = carry(files, send, marks, silent)
    assert report.failed == {files[1]: "no room"}
    assert set(marks) == {files[0], files[2]}


def test_with_nobody_listening_the_import_ends(files):
    def send(_):
        raise Unreachable

    marks = {}
    with pytest.raises(Unreachable):
        carry(files, send, marks, silent)
    assert marks == {}


def test_batches_are_bounded_by_number_and_bytes(tmp_path, monkeypatch):
    prompts(tmp_path / "many.jsonl", 450)
    listener = Listener()
    carry([str(tmp_path / "many.jsonl")], listener, {}, silent)
    assert [len(batch) for batch in listener.batches] == [200, 200, 50]
    monkeypatch.setattr(carrier, "BATCH_BYTES", 10_000)
    prompts(tmp_path / "big.jsonl", 10, "word " * 1_000)
    listener = Listener()
    carry([str(tmp_path / "big.jsonl")], listener, {}, silent)
    assert [len(batch) for batch in listener.batches] == [1] * 10


def test_what_is_too_large_is_passed_over_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(carrier, "LINE_BYTES_MAX", 2_000)
    file = tmp_path / "a.jsonl"
    prompts(file, 1, "word " * 2_000)
    long_line = file.read_bytes()
    prompts(file, 2)
    file.write_bytes(long_line + file.read_bytes())
    report = carry([str(file)], Listener(), {}, silent)
    assert report.skipped == {"line too long": 1}
    assert report.outcomes == {"stored": 2}
    monkeypatch.setattr(carrier, "REQUEST_BYTES_MAX", 10)
    report = carry([str(file)], Listener(), {}, silent)
    assert report.skipped["too large to hand over"] == 2
