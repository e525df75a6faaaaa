"""What every transport owes, whatever carries it: a folder, and a team's PostgreSQL."""

import pytest

from memd.sharing.folder import FolderTransport
from memd.sharing.postgres import LogId, LogServer, PostgresTransport, row_name
from memd.sharing.records import FORGET, MEMORY, Record, Stamp, make_ref
from tests.sharing.teammates import postgres, team  # noqa: F401  # fixtures

ME, OTHER = "a" * 16, "b" * 16


def memory(uid, body, wall=5, **more):
    value = {
        "project": "/p", "confidence": 0.5, "kind": "fact", "source": "user", "title": body, "body": body,
        "topic_key": None, "tags": [], "files": [], "at": wall, "created_at": wall, "updated_at": wall,
        "expires_at": None, "quality": 0.5, "revisions": 1, "duplicates": 0, "rule": "x", "authority": 5,
    }  # fmt: skip
    return Record(MEMORY, (make_ref(uid, 0),), 5, Stamp(wall, 0, ME), value, **more)


@pytest.fixture(params=["folder", "postgres"])
def sides(request, tmp_path):
    """Two devices' transports of one place: who writes, and who reads."""
    if request.param == "folder":
        yield [FolderTransport(str(tmp_path), device, "x") for device in (ME, OTHER)]
        return
    url = request.getfixturevalue("team")
    with LogServer.open(url("ann")) as ann, LogServer.open(url("bob")) as bob:
        yield [
            PostgresTransport(server, LogId("app", name, device), "x")
            for server, name, device in ((ann, "ann", ME), (bob, "bob", OTHER))
        ]


def read(reader, positions=None):
    """(what is said now, positions behind it)."""
    said, ends = {}, dict(positions or {})
    for batch in reader.read(positions or {}):
        said |= {row_name(one): one for one in batch.records}
        ends[batch.device] = batch.position
    return said, ends


def test_what_one_appends_the_other_reads_once_with_rank_stamp_and_unknown_fields(sides):
    writer, reader = sides
    assert reader.list_logs() == set()
    said = memory("one", "First", extra={"value": {"mood": "calm"}})
    end = writer.append([said], "", 1)
    found, ends = read(reader)
    (log,) = reader.list_logs()
    assert ends == {log: end}
    there = found["one"]
    assert (there.kind, there.name, there.rank, there.stamp) == (
        MEMORY,
        ("one+0",),
        5,
        Stamp(5, 0, ME),
    )
    assert there.value["body"] == "First"
    assert there.extra["value"]["mood"] == "calm"
    assert read(reader, ends) == ({}, ends)


def test_what_follows_is_read_from_where_the_reader_was(sides):
    writer, reader = sides
    first, second = memory("one", "First"), memory("two", "Second", 6)
    end = writer.append([first], "", 1)
    _, ends = read(reader)
    is_whole = isinstance(writer, PostgresTransport)  # which is handed all that its device shares
    writer.append([first, second] if is_whole else [second], end, 1)
    found, _ = read(reader, ends)
    assert found.keys() == {"two"}


def test_a_rewritten_log_says_what_was_forgotten_and_none_of_its_words(sides):
    writer, reader = sides
    end = writer.append([memory("one", "The word"), memory("two", "It stays")], "", 1)
    forgotten = Record(FORGET, ("one",), 1, Stamp(9, 0, ME), {})
    writer.rewrite([forgotten, memory("two", "It stays")], end, 1)
    found, _ = read(reader)
    assert (found["one"].kind, found["one"].stamp) == (FORGET, Stamp(9, 0, ME))
    assert found["two"].value["body"] == "It stays"
    assert "The word" not in str(found)


def test_a_log_is_described_alike_until_it_changes(sides):
    writer, _ = sides
    end = writer.append([memory("one", "First")], "", 1)
    before = writer.describe_own(end)
    assert before == writer.describe_own(end) != ""
    end = writer.rewrite([memory("one", "Changed", 6)], end, 1)
    assert writer.describe_own(end) != before
