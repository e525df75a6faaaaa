"""The import: streamed, resumable, and one bad file never stops the rest."""

import json
import os
import shutil
from pathlib import Path

import pytest

from memd.capture import truncate
from memd.errors import Broken, Unreachable
from memd.paths import LINE_BYTES_MAX
from memd.transfer import importer
from memd.transfer.importer import TranscriptImportReport
from memd.transfer.session_sources import CLAUDE_CODE, find_sessions

LEDGER = Path(__file__).parents[1] / "data" / "claude-code" / "ledger" / "projects"


@pytest.fixture
def config(tmp_path):
    shutil.copytree(LEDGER, tmp_path / "c" / "projects")
    return tmp_path / "c"


@pytest.fixture
def files(config):
    return find_sessions(CLAUDE_CODE, None, {"CLAUDE_CONFIG_DIR": str(config)})


class FakeDaemon:
    """Records what it is sent, and answers that it was stored."""

    def __init__(self):
        self.batches = []

    def __call__(self, batch):
        self.batches.append(batch)
        return [self.receipt for _ in batch]

    receipt = {"outcome": "stored"}  # noqa: RUF012  # never written to

    @property
    def events(self):
        return [event for batch in self.batches for event in batch]


def silent(*_):
    pass


NOW = 4_000_000_000_000
"""Long after every file here was written."""


def run_import(files, send, checkpoints, progress=silent, *, dry_run=False, now=NOW):
    report = TranscriptImportReport(is_dry_run=dry_run)
    importer.import_transcripts(
        files, send, checkpoints, progress, truncate=truncate.clean_payload, report=report, now=now
    )
    return report


def write_prompts(path, count, words="hello"):
    line = {"type": "user", "sessionId": "s", "cwd": "/p", "message": {"content": words}}
    path.write_text(
        "".join(
            json.dumps({**line, "promptId": f"p{n}", "uuid": f"u{n}"}) + "\n" for n in range(count)
        )
    )


def test_transcripts_are_found_where_claude_code_keeps_them_oldest_first(config, tmp_path):
    folder = config / "projects" / "-home-dev-ledger"
    (folder / "abc" / "subagents").mkdir(parents=True)
    (folder / "abc" / "subagents" / "agent-1.jsonl").write_text("")
    os.utime(folder / "abc" / "subagents" / "agent-1.jsonl", (1, 1))
    (folder / "abc" / "notes.txt").write_text("")
    found = find_sessions(CLAUDE_CODE, None, {"CLAUDE_CONFIG_DIR": str(config)})
    assert len(found) == 4
    assert found[0].endswith("agent-1.jsonl")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".claude").symlink_to(config)
    assert len(find_sessions(CLAUDE_CODE, None, {"HOME": str(tmp_path / "home")})) == 4
    assert find_sessions(CLAUDE_CODE, [str(folder / "x.jsonl")], {}) == [str(folder / "x.jsonl")]
    assert find_sessions(CLAUDE_CODE, None, {"HOME": str(tmp_path / "none")}) == []


def test_all_events_are_sent_as_an_import(files):
    daemon, checkpoints, steps = FakeDaemon(), {}, []
    report = run_import(files, daemon, checkpoints, lambda *step: steps.append(step))
    assert report.outcomes == {"stored": len(daemon.events)}
    assert report.events["UserPromptSubmit"] == 6
    assert sorted(report.done) == sorted(files) == sorted(checkpoints)
    assert {(c["client"], c["source"], c["directory"]) for c in daemon.events} == {
        ("claude-code", "import", "/home/dev/ledger")
    }
    assert all(isinstance(c["at"], int) for c in daemon.events)
    sizes = [done for _, done, _ in steps]
    assert sizes == sorted(sizes)
    assert sizes[-1] == steps[-1][2] == sum(Path(f).stat().st_size for f in files)


def test_a_file_that_has_not_changed_is_not_read_again(files):
    checkpoints = {}
    run_import(files, FakeDaemon(), checkpoints)
    Path(files[0]).open("a").close()
    os.utime(files[1], (5, 5))
    daemon = FakeDaemon()
    report = run_import(files, daemon, checkpoints)
    assert report.done == [files[1]]
    assert len(report.unchanged) == 2
    assert daemon.events


def test_a_dry_run_stores_nothing_and_sets_no_checkpoint(files):
    checkpoints = {}
    report = run_import(files, None, checkpoints, dry_run=True)
    assert report.events["Stop"] == 6
    assert (checkpoints, report.outcomes) == ({}, {})
    daemon = FakeDaemon()
    daemon.receipt = {"outcome": "filtered", "reason": "ignored path: x"}
    report = run_import(files, daemon, checkpoints, dry_run=True)
    assert checkpoints == {}
    assert report.outcomes == {"filtered": 25} == {"filtered": len(daemon.events)}
    assert report.reasons == {"ignored path: x": 25}


def test_a_dry_run_counts_what_a_fork_copied_once(files, tmp_path):
    fork = tmp_path / "fork.jsonl"
    fork.write_text(Path(files[0]).read_text().replace(Path(files[0]).stem, "f0"))
    once, both = (
        run_import(found, None, {}, dry_run=True) for found in ([files[0]], [files[0], str(fork)])
    )
    assert both.events == once.events
    assert both.skipped["copied from another session"] > 5


def test_one_bad_file_never_stops_the_rest(files, tmp_path):
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"\0\xff{\n" + Path(files[0]).read_bytes()[:-40])
    gone = str(tmp_path / "gone.jsonl")
    checkpoints = {}
    report = run_import([gone, str(torn), str(tmp_path), *files], FakeDaemon(), checkpoints)
    assert set(report.failed) == {gone, str(tmp_path)}
    assert set(checkpoints) == {str(torn), *files}
    assert report.skipped["broken line"] == 2


def test_pipes_devices_and_dangling_links_are_not_read(tmp_path):
    write_prompts(tmp_path / "real.jsonl", 1)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "endless.jsonl").symlink_to("/dev/zero")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle").symlink_to(tmp_path)
    assert find_sessions(CLAUDE_CODE, [str(tmp_path)], {}) == [str(tmp_path / "real.jsonl")]


def test_a_file_whose_events_were_not_taken_gets_no_checkpoint(files):
    daemon = FakeDaemon()

    def send(batch):
        if len(daemon.batches) == 1:
            daemon.batches.append([])
            raise Broken("no room")
        return daemon(batch)

    checkpoints = {}
    report = run_import(files, send, checkpoints)
    assert report.failed == {files[1]: "no room"}
    assert set(checkpoints) == {files[0], files[2]}


def test_without_a_daemon_the_import_ends(files):
    def send(_):
        raise Unreachable

    checkpoints = {}
    with pytest.raises(Unreachable):
        run_import(files, send, checkpoints)
    assert checkpoints == {}


def test_batches_are_bounded_by_number_and_bytes(tmp_path, monkeypatch):
    write_prompts(tmp_path / "many.jsonl", 450)
    daemon = FakeDaemon()
    run_import([str(tmp_path / "many.jsonl")], daemon, {})
    assert [len(batch) for batch in daemon.batches] == [200, 200, 50]
    monkeypatch.setattr(importer, "EVENT_BYTES_MAX", 10_000)
    write_prompts(tmp_path / "big.jsonl", 10, "word " * 1_000)
    daemon = FakeDaemon()
    run_import([str(tmp_path / "big.jsonl")], daemon, {})
    assert [len(batch) for batch in daemon.batches] == [1] * 10


def test_a_line_that_is_too_long_is_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(importer, "TRANSCRIPT_LINE_BYTES_MAX", 2_000)
    file = tmp_path / "a.jsonl"
    write_prompts(file, 1, "word " * 2_000)
    long_line = file.read_bytes()
    write_prompts(file, 2)
    file.write_bytes(long_line + file.read_bytes())
    report = run_import([str(file)], FakeDaemon(), {})
    assert report.skipped == {"line too long": 1}
    assert report.outcomes == {"stored": 2}


def test_an_event_that_is_too_large_for_a_request_is_truncated(tmp_path):
    write_prompts(tmp_path / "a.jsonl", 2, "word " * 1_000_000)
    daemon = FakeDaemon()
    report = run_import([str(tmp_path / "a.jsonl")], daemon, {})
    assert (report.skipped, report.outcomes) == ({}, {"stored": 2})
    assert all(len(json.dumps(batch)) < LINE_BYTES_MAX // 2 for batch in daemon.batches)
    assert all("characters cut" in one["payload"]["prompt"] for one in daemon.events)


def test_an_event_that_is_too_large_even_truncated_is_counted(tmp_path, monkeypatch):
    write_prompts(tmp_path / "a.jsonl", 2)
    file = tmp_path / "a.jsonl"
    monkeypatch.setattr(importer, "REQUEST_BYTES_MAX", 10)
    report = run_import([str(file)], FakeDaemon(), {})
    assert report.skipped["too large to hand over"] == 2


def test_of_a_configuration_directory_only_the_projects_are_read(config):
    (config / "settings.json").write_text("{}")
    (config / "history.jsonl").write_text('{"display": "typed"}\n')
    found = find_sessions(CLAUDE_CODE, [str(config)], {})
    assert len(found) == 3
    assert all("/projects/" in path for path in found)


def test_a_growing_file_is_read_again_the_next_time(tmp_path):
    file = tmp_path / "live.jsonl"
    write_prompts(file, 2)
    reply = {
        "type": "assistant",
        "sessionId": "s",
        "message": {"content": [{"type": "text", "text": "So far"}]},
    }
    file.write_bytes(file.read_bytes() + json.dumps(reply).encode() + b'\n{"type": "user", "sess')
    checkpoints, daemon = {}, FakeDaemon()
    now = file.stat().st_mtime_ns // 1_000_000
    report = run_import([str(file)], daemon, checkpoints, now=now)
    assert report.growing == [str(file)]
    assert checkpoints == {}
    assert [c["payload"]["hook_event_name"] for c in daemon.events] == ["UserPromptSubmit"] * 2
    report = run_import([str(file)], FakeDaemon(), checkpoints, now=now + importer.QUIET_MS)
    assert (report.growing, list(checkpoints)) == ([], [str(file)])
    assert report.events["Stop"] == 1


def test_a_fresh_copy_of_an_old_session_is_not_growing_and_comes_in_its_own_order(tmp_path):
    for name, day in (("a", "2026-03-02"), ("b", "2026-03-01")):
        reply = {"type": "assistant", "sessionId": name, "timestamp": f"{day}T10:00:00Z",
                 "message": {"content": [{"type": "text", "text": "The cache is warm now."}]}}  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(reply) + "\n")
    copied_at = (tmp_path / "a.jsonl").stat().st_mtime_ns // 1_000_000
    found = find_sessions(CLAUDE_CODE, [str(tmp_path)], {})
    report = run_import(found, FakeDaemon(), {}, now=copied_at)
    assert [Path(file).name for file in found] == ["b.jsonl", "a.jsonl"]
    assert (report.growing, report.events["Stop"]) == ([], 2)


def test_a_request_has_no_more_values_than_the_daemon_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(importer, "REQUEST_VALUES_MAX", 100)
    daemon = FakeDaemon()
    write_prompts(tmp_path / "a.jsonl", 40)
    report = run_import([str(tmp_path / "a.jsonl")], daemon, {})
    assert report.failed == {}
    assert len(daemon.events) == 40
    assert max(sum(map(json.dumps(batch).count, ",[{")) for batch in daemon.batches) <= 150
    assert len(daemon.batches) > 1
