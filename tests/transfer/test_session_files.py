"""Files of sessions that are compressed, damaged, of an odd form or not there: told one by one, and nothing else is lost."""

import json
import os
import shutil
import sqlite3
import subprocess

import pytest

from memd.capture import truncate
from memd.transfer import session_sources
from memd.transfer.importer import TranscriptImportReport, import_transcripts
from memd.transfer.session_sources import SESSION_SOURCES, SharedLines, find_sessions
from tests.tables import every_row
from tests.transfer import told_sessions as told

MUCH_LATER = told.START + 30 * 86_400_000


def read(source, *paths, environ=None, now=MUCH_LATER, checkpoints=None):
    """Return the payloads that an import would send, and its report."""
    sent = []

    def send(batch):
        sent.extend(event["payload"] for event in batch)
        return [{"outcome": "stored"} for _ in batch]

    report = TranscriptImportReport()
    found = find_sessions(
        SESSION_SOURCES[source], [str(path) for path in paths] or None, environ or {}
    )
    import_transcripts(
        found, send, {} if checkpoints is None else checkpoints, lambda *_: None,
        truncate=truncate.clean_payload, report=report, now=now, source=SESSION_SOURCES[source],
    )  # fmt: skip
    return sent, report


def names(payloads):
    return [payload["hook_event_name"] for payload in payloads]


needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no program zstd")


@needs_zstd
def test_a_compressed_rollout_tells_the_same_once(tmp_path):
    plain = told.write(tmp_path / "plain", told.codex())
    expected, _ = read("codex", plain)
    home = tmp_path / "h" / ".codex" / "archived_sessions"
    home.mkdir(parents=True)
    subprocess.run(["zstd", "-q", plain, "-o", home / f"{plain.name}.zst"], check=True)  # noqa: S607
    environ = {"HOME": str(tmp_path / "h")}
    checkpoints = {}
    assert read("codex", environ=environ, checkpoints=checkpoints)[0] == expected
    assert read("codex", environ=environ, checkpoints=checkpoints)[0] == []
    shutil.copy(plain, home)  # while it is being compressed there are both
    assert read("codex", environ=environ)[0] == expected


@needs_zstd
def test_of_a_damaged_compressed_rollout_the_beginning_is_read(tmp_path):
    plain = told.write(tmp_path, told.codex())
    filler = json.dumps({"type": "event_msg", "payload": {"type": "token_count", "x": os.urandom(200_000).hex()}})  # fmt: skip
    plain.write_text(plain.read_text() + "".join(f"{filler}\n" for _ in range(4)))
    subprocess.run(["zstd", "-q", "--rm", plain], check=True)  # noqa: S607
    packed = tmp_path / f"{plain.name}.zst"
    packed.write_bytes(packed.read_bytes()[:-100_000])
    checkpoints = {}
    sent, report = read("codex", packed, checkpoints=checkpoints)
    assert names(sent).count("UserPromptSubmit") == 2
    assert "damaged; what could be decompressed was read" in report.failed[str(packed)]
    assert not checkpoints
    packed.write_bytes(b"no frame at all")
    assert "damaged" in read("codex", packed)[1].failed[str(packed)]


def test_without_the_program_the_user_is_told_what_to_install(tmp_path, monkeypatch):
    packed = tmp_path / "rollout-x.jsonl.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd")
    plain = told.write(tmp_path, told.codex())
    monkeypatch.setattr(session_sources.shutil, "which", lambda _: None)
    sent, report = read("codex", tmp_path)
    assert report.done == [str(plain)]
    assert sent
    assert "there is no program zstd; install it" in report.failed[str(packed)]


@pytest.mark.parametrize("source", ["codex", "copilot", "cursor", "gemini-cli"])
def test_a_file_that_is_cut_off_has_an_odd_encoding_or_line_ends_is_read(source, tmp_path):
    teller = {**told.TOLD_WHOLE, **told.TOLD_IN_PART}[source]
    path = told.write(tmp_path, teller())
    whole, _ = read(source, path)
    text = path.read_text(encoding="utf-8")
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read(source, path)[0] == whole
    lines = text.splitlines(keepends=True)
    path.write_bytes("".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]).encode())
    sent, report = read(source, path)
    assert report.skipped["broken line"] == 1
    assert sent[: len(sent) - 1] == whole[: len(sent) - 1]
    path.write_bytes(lines[0].encode() + b"\xff\x00 torn {\n[1]\n\n" + "".join(lines[1:]).encode())
    sent, report = read(source, path)
    assert sent == whole or source == "cursor"  # whose ids are the numbers of lines
    assert (report.skipped["broken line"], report.skipped["not an object"]) == (1, 1)


@pytest.mark.parametrize(("source", "name"), [("opencode", "e.json"), ("gemini-cli", "session-1.json")])  # fmt: skip
def test_a_document_that_is_cut_off_is_named_and_the_others_are_read(source, name, tmp_path):
    teller = told.opencode if source == "opencode" else told.gemini_document
    path = told.write(tmp_path, teller())
    torn = path.with_name(name)
    torn.write_text(path.read_text()[:-30])
    nothing = path.with_name(f"session-2{path.suffix}")
    nothing.write_text("[]")
    sent, report = read(source, path, torn, nothing)
    assert names(sent).count("UserPromptSubmit") == 2
    assert "not JSON, or cut off" in report.failed[str(torn)]
    assert report.done == [str(path)] or set(report.done) == {str(path), str(nothing)}


def test_what_is_no_file_of_the_users_is_told_and_nothing_waits_for_it(tmp_path):
    path = told.write(tmp_path, told.codex())
    pipe, gone = tmp_path / "rollout-pipe.jsonl", tmp_path / "rollout-gone.jsonl"
    os.mkfifo(pipe)
    link = tmp_path / "rollout-link.jsonl"
    link.symlink_to(tmp_path / "rollout-nowhere.jsonl")
    sent, report = read("codex", pipe, gone, link, path)
    assert sent
    assert report.done == [str(path)]
    assert report.failed[str(pipe)] == "no regular file"
    assert report.failed[str(gone)] == report.failed[str(link)] == "No such file or directory"
    assert read("codex", tmp_path)[1].done == [str(path)]  # in a folder none of these is a session


def test_a_folder_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    path = told.write(tmp_path / "open", told.codex())
    closed = tmp_path / "closed"
    closed.mkdir()
    scandir = os.scandir

    def refuse(folder):
        if str(folder) == str(closed):
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)  # root may read every folder
    sent, report = read("codex", tmp_path)
    assert sent
    assert report.done == [str(path)]
    assert report.failed == {str(closed): "a folder that cannot be read"}


def make_database(path):
    """OpenCode's database with the told session, in its tables of 1.18.33."""
    ((_, text),) = told.opencode()
    document = json.loads(text)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, time_created integer, time_updated integer);"
            "CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);"
            "CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);"
        )
        info = document["info"]
        row = (info["id"], None, info["directory"], info["title"], told.START, told.START)
        connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
        for message in document["messages"]:
            own = message["info"]
            data = json.dumps({k: v for k, v in own.items() if k not in ("id", "sessionID")})
            connection.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?)",
                (own["id"], info["id"], own["time"]["created"], data),
            )
            for part in message["parts"]:
                data = json.dumps({k: v for k, v in part.items() if k not in ("id", "sessionID")})
                connection.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?)",
                    (part["id"], own["id"], info["id"], data),
                )
    connection.close()


def test_opencodes_database_tells_what_its_export_tells(tmp_path):
    path = told.write(tmp_path, told.opencode())
    data = tmp_path / "data" / "opencode"
    data.mkdir(parents=True)
    make_database(data / "opencode.db")
    sent, report = read("opencode", environ={"XDG_DATA_HOME": str(tmp_path / "data")})
    assert sent == read("opencode", path)[0]
    assert not report.failed
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    (tmp_path / "text.db").write_text("no database")
    _, report = read("opencode", tmp_path / "other.db", tmp_path / "text.db")
    assert "not OpenCode's" in report.failed[str(tmp_path / "other.db")]
    assert "not an SQLite database" in report.failed[str(tmp_path / "text.db")]


@every_row("meta", ['{"agentType": "Explore"}', "{torn", "[]", '{"agentType": 7}', "[" * 100_000])
def test_the_type_of_a_subagent_stands_beside_its_file(tmp_path, meta):
    path = tmp_path / "s" / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".meta.json").write_text(meta)
    reader = SESSION_SOURCES["claude-code"].make_reader(path, SharedLines())
    assert (reader.agent, reader.agent_type) == ("a1", "Explore" if "Expl" in meta else None)
