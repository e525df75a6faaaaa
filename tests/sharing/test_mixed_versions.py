"""What a memd of 5a9d27b wrote is read as a whole, what this one writes it could read, and what is too new waits.

`tests/data/sharing` is what that memd wrote: a log, an export, rows of a team, and which records it accepts.
"""

import json
import shutil
from pathlib import Path

import anyio.to_thread
import pytest

from memd.models import EdgeType, Kind, Stance
from memd.sharing import chunks, postgres, records
from memd.sharing.folder import LOGS, FolderTransport
from memd.sharing.records import from_fields, to_fields
from memd.store import integrity
from memd.transfer.archive import ExportReader
from tests.sharing.teammates import append_rows

DATA = Path(__file__).parents[1] / "data" / "sharing"
FORMER = json.loads((DATA / "5a9d27b.json").read_text(encoding="utf-8"))
OTHER = "e" * 16
in_thread = anyio.to_thread.run_sync


def write_lines(place, lines, header=(), device=OTHER):
    """Append a chunk of these JSON objects to a log, as whatever memd."""
    there = sorted(path.name for path in place.glob(f"{LOGS}/{device}/*"))
    last = chunks.parse_name(there[-1]) if there else None
    fields = {
        "record": "memd-sync", "format": 1, "device": device, "label": "future", "epoch": 1,
        "number": last.number + 1 if last else 1, "previous": str(last or ""), "count": len(lines),
        **dict(header),
    }  # fmt: skip
    content = chunks.PLAIN.seal(
        chunks.zlib.compress(b"".join(map(chunks.json_line, (fields, *lines))))
    )
    name = chunks.ChunkName(1, fields["number"], chunks.hash_bytes(content))
    (place / LOGS / device).mkdir(parents=True, exist_ok=True)
    (place / LOGS / device / str(name)).write_bytes(content)


def memory(uid, body, **more):
    value = {
        "project": "/src/ledger", "confidence": 0.9, "kind": "fact", "source": "user", "title": body, "body": body,
        "topic_key": None, "tags": [], "files": [], "at": 5, "created_at": 5, "updated_at": 5, "expires_at": None,
        "quality": 0.5, "revisions": 1, "duplicates": 1, "rule": "remembered", "authority": 5, **more,
    }  # fmt: skip
    return {
        "record": "memory",
        "name": [f"{uid}+0"],
        "rank": 5,
        "stamp": [5, 0, OTHER],
        "value": value,
    }


# ── What the former memd wrote ───────────────────────────────────────────────────────────────────


async def test_a_log_that_the_former_memd_wrote_is_merged_as_a_whole(make_vault):
    vault = make_vault("new")
    await in_thread(shutil.copytree, DATA / LOGS, vault.place / LOGS)
    report = await vault.sync()
    assert (report.refused, report.newer, report.waiting) == ([], {}, 0)
    visible = vault.db.read_now(
        lambda tx: tx.execute(
            "SELECT body FROM summaries WHERE id NOT IN"
            " (SELECT older_id FROM supersessions WHERE undone_at IS NULL) ORDER BY body"
        ).fetchall()
    )
    assert [body for (body,) in visible] == [
        "Ask Ann before each release", "Deploy on Fridays", "Retry five times", "Use spaces in Go files",
        "Use tabs in Go files",
    ]  # fmt: skip
    again = await vault.sync()
    assert (again.sent, again.received, again.rewritten) == (0, {}, False)


def test_an_export_that_the_former_memd_wrote_is_read_to_its_end():
    reader = ExportReader()
    with (DATA / "export.jsonl").open("rb") as lines:
        found = [one for line in lines if (one := reader.feed(line))]
    reader.close()
    assert len(found) == 13


def test_rows_that_the_former_memd_shared_with_a_team_are_read_and_written_alike():
    for _, text in FORMER["rows"]:
        record = postgres.read_row("x", text)
        written = json.loads(postgres.write_row(record))
        assert written.pop("version", None) is None or record.value
        assert written == json.loads(text)


# ── What this memd writes for the former one ─────────────────────────────────────────────────────


async def test_every_record_that_this_memd_writes_is_one_that_the_former_accepts(make_vault):
    vault = make_vault("new")
    await in_thread(shutil.copytree, DATA / LOGS, vault.place / LOGS)
    await vault.sync()
    for text in ("Retry seven times", "Retry nine times"):
        vault.remember(text, topic_key="retry")
    await vault.sync()
    mine = await vault.syncer.identify()
    transport = FolderTransport(str(vault.place), OTHER, "reader")
    found = await in_thread(list, transport.read({}))
    said = [record for batch in found if batch.device == mine for record in batch.records]
    assert {record.kind for record in said} >= {"forget", "memory", "supersession"}
    for record in said:
        parts, fields = FORMER["records"][record.kind]
        written = to_fields(record)
        assert set(written) == {"record", "name", "rank", "stamp", "value"}
        assert len(written["name"]) == parts
        assert written["value"] is None or sorted(written["value"]) == fields


def test_no_kind_is_written_that_the_former_memd_does_not_know_without_a_mark():
    """Who adds a kind, a relation or a field must see to those that do not know it: then change this test."""
    assert {
        kind: [records.NAME_PARTS[kind], sorted(fields)]
        for kind, fields in records.SCHEMA.items()
        if kind != records.REVIEW
    } == FORMER["records"]
    assert {one.value for one in Kind} == set(FORMER["kinds"])
    assert {one.value for one in EdgeType} == set(FORMER["edges"])
    assert {one.value for one in Stance} == set(FORMER["relations"])
    assert (records.SYNC_FORMAT, records.TEAM_FORMAT) == (1, 1)


def test_a_review_is_to_the_former_memd_a_note_without_words_that_has_expired():
    value = {"verdict": "rejected", "at": 7, "follows": None}
    for said in (value, None):
        review = records.Record(records.REVIEW, ("uid+0",), 5, records.Stamp(7, 0, OTHER), said)
        written = to_fields(review)
        parts, fields = FORMER["records"]["memory"]
        assert (written["record"], len(written["name"])) == ("memory", parts)
        assert sorted(written["value"]) == fields
        assert written["value"]["kind"] in FORMER["kinds"]
        assert written["value"]["expires_at"] == 1
        assert from_fields(written) == review
        damaged = written | {"value": written["value"] | {"body": "[REDACTED]"}}
        assert from_fields(damaged).kind == "memory"


# ── What a newer memd writes ─────────────────────────────────────────────────────────────────────

TOO_NEW = [
    {"record": "skill", "name": ["x"], "rank": 1, "stamp": [5, 0, OTHER], "value": {"steps": ["a"]}},
    {"record": "skill", "whatever": 1},
    memory("new-kind", "A playbook", kind="playbook"),
    memory("marked", "Marked") | {"format": 2},
    {"record": "edge", "name": ["one+0", "explains", "two+0"], "rank": 0, "stamp": [5, 0, OTHER],
     "value": {"confidence": 1.0, "rule": "x", "at": 5, "detail": {}}},
]  # fmt: skip


@pytest.mark.parametrize("line", TOO_NEW)
async def test_a_record_that_is_too_new_is_left_alone_and_told_and_the_rest_is_merged(
    make_vault, line
):
    vault = make_vault("now")
    write_lines(vault.place, [memory("one", "Before it"), line, memory("two", "After it")])
    write_lines(vault.place, [memory("three", "In the next chunk")])
    report = await vault.sync()
    assert (report.refused, report.newer) == ([], {OTHER: 1})
    assert vault.bodies() == ["After it", "Before it", "In the next chunk"]
    found = vault.db.read_now(lambda tx: list(integrity._check_sync(tx, vault.now)))
    assert any("newer memd" in one.words for one in found)
    again = await vault.sync()
    assert (again.newer, again.received) == ({OTHER: 1}, {}), "it is told until memd is updated"


async def test_a_chunk_of_a_newer_format_is_read_as_far_as_it_is_understood(make_vault):
    vault = make_vault("now")
    write_lines(vault.place, [memory("one", "As ever"), {"record": 5}], {"format": 2, "more": "x"})
    write_lines(vault.place, [memory("two", "In the next chunk")])
    report = await vault.sync()
    assert (report.refused, report.newer) == ([], {OTHER: 1})
    assert vault.bodies() == ["As ever", "In the next chunk"]


async def test_what_was_left_is_read_again_once_this_memd_understands_it(make_vault, monkeypatch):
    vault = make_vault("now")
    write_lines(vault.place, [memory("one", "Known"), memory("two", "Later") | {"format": 2}])
    await vault.sync()
    assert vault.bodies() == ["Known"]
    monkeypatch.setattr("memd.sharing.records.SYNC_FORMAT", 2)
    monkeypatch.setattr("memd.sharing.syncer.UNDERSTOOD", "more")
    report = await vault.sync()
    assert (report.newer, vault.bodies()) == ({}, ["Known", "Later"])


async def test_a_log_that_was_rewritten_without_what_is_too_new_is_told_of_no_more(make_vault):
    vault = make_vault("now")
    write_lines(vault.place, TOO_NEW[:1])
    assert (await vault.sync()).newer == {OTHER: 1}
    other = FolderTransport(str(vault.place), OTHER, "future")
    await in_thread(other.rewrite, [], "", 1)
    assert (await vault.sync()).newer == {}


async def test_fields_that_are_not_known_are_kept_and_handed_on(make_vault):
    vault = make_vault("now")
    line = memory("one", "The port is 8080", mood="calm") | {"seen_by": ["ann"]}
    write_lines(vault.place, [line])
    assert (await vault.sync()).received["memory"] == 1
    # Its device goes, and this one speaks for it.
    await in_thread(shutil.rmtree, vault.place / LOGS / OTHER)
    await vault.sync()
    (handed_on,) = await read_memories(vault)
    assert (handed_on["value"]["mood"], handed_on["seen_by"]) == ("calm", ["ann"])
    # Said again here, it is a version of our own, and has them still.
    vault.remember("The port is 8080")
    vault.db.write_now(
        lambda tx: tx.execute("UPDATE summaries SET title = 'Port', updated_at = updated_at + 9")
    )
    await vault.sync()
    *_, last = [one for one in await read_memories(vault) if one["name"] == ["one+0"]]
    assert (last["value"]["title"], last["value"]["mood"]) == ("Port", "calm")
    # And they go with the memory.
    (number,) = vault.db.read_now(
        lambda tx: tx.execute("SELECT id FROM summaries WHERE uid = 'one'").fetchone()
    )
    await vault.forget(number)
    await vault.sync()
    kept = vault.db.read_now(
        lambda tx: tx.execute(
            "SELECT coalesce(extra, '') FROM sync_records UNION SELECT fields FROM unknown_fields"
        ).fetchall()
    )
    assert not any("calm" in extra for (extra,) in kept)


async def read_memories(vault):
    mine = await vault.syncer.identify()
    transport = FolderTransport(str(vault.place), mine, "reader")
    found = await in_thread(list, transport.read({}))
    return [
        to_fields(record)
        for batch in found if batch.device == mine
        for record in batch.records if record.kind == "memory"
    ]  # fmt: skip


async def test_a_secret_in_a_field_that_is_not_known_is_redacted(make_vault):
    vault = make_vault("now")
    vault.syncer.redact = lambda value: json.loads(json.dumps(value).replace("hunter2", "…"))
    write_lines(vault.place, [memory("one", "The port is 8080", mood="hunter2")])
    await vault.sync()
    kept = vault.db.read_now(lambda tx: tx.execute("SELECT fields FROM unknown_fields").fetchall())
    assert any("mood" in extra for (extra,) in kept)
    assert not any("hunter2" in extra for (extra,) in kept)


# ── A team ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_teammate_s_row_that_is_too_new_is_left_told_and_read_once_memd_is_updated(
    teammate, team, monkeypatch
):
    ann = teammate("ann")
    await ann.join()
    shared = json.loads(FORMER["rows"][0][1])
    shared["memory"]["topic_key"] = None
    rows = [
        ("known", json.dumps(shared)),
        ("marked", json.dumps(shared | {"format": 2})),
        ("kind", json.dumps(shared | {"memory": shared["memory"] | {"kind": "playbook"}})),
        ("state", json.dumps({"format": 1, "state": "lent"})),
        (
            "field",
            json.dumps(
                shared | {"memory": shared["memory"] | {"body": "With a field", "mood": "calm"}}
            ),
        ),
    ]

    def append():
        append_rows(team("bob"), rows)

    await in_thread(append)
    report = await ann.exchange()
    assert (report.newer, report.refused) == (3, {})
    assert ann.worker.status()["newer"] == 3
    assert [body for _, body in ann.see()] == ["Invoices are due in nine days", "With a field"]
    monkeypatch.setattr(postgres, "FORMAT", 2)
    monkeypatch.setattr("memd.sharing.syncer.UNDERSTOOD", "more")
    report = await ann.exchange()
    assert (report.newer, report.broken) == (2, 0)
    assert len(ann.see()) == 3
    assert (await ann.exchange()).written == 0


async def test_a_version_of_a_memd_that_does_not_know_a_field_drops_it_nowhere(make_vault):
    vault = make_vault("now")
    write_lines(vault.place, [memory("one", "The port is 8080", mood="calm")])
    await vault.sync()
    later = memory("one", "The port is 8080")
    later["stamp"], later["value"]["title"] = [vault.now - 5, 0, OTHER], "Port"
    write_lines(vault.place, [later])
    await vault.sync()
    await vault.sync()
    *_, last = [one for one in await read_memories(vault) if one["name"] == ["one+0"]]
    assert (last["value"]["title"], last["value"]["mood"]) == ("Port", "calm")
    assert (await vault.sync()).sent == 0
