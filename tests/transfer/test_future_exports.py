"""What a newer memd exports is imported as far as it is understood; the rest is kept or left, and told."""

import hashlib
import io
import json

import pytest

from memd.errors import BadRequest
from memd.store.database import Database
from memd.store.import_rows import staging_vault
from memd.transfer import archive
from tests.export_records import (
    AT,
    edge,
    event,
    exported,
    imported,
    judgment,
    one_of_each,
    plain,
    project,
    session,
    summary,
    supersession,
)


def future(records, version=2, header=None, end=None):
    """An export of these records, whatever they are, with right counts and hash."""
    counts = dict.fromkeys(archive.EXPORT_SCHEMA, 0)
    for kind, _ in records:
        counts[kind] = counts.get(kind, 0) + 1
    head = {
        "record": "memd-export",
        "format": version,
        "memd": "9.1",
        "project": None,
        "counts": counts,
    }
    said = [head | (header or {}), *({"record": kind, **fields} for kind, fields in records)]
    data = b"".join(json.dumps(one).encode() + b"\n" for one in said)
    last = {"record": "end", "counts": counts, "sha256": hashlib.sha256(data).hexdigest()}
    return data + json.dumps(last | (end or {})).encode() + b"\n"


def stage(path, data):
    with staging_vault(str(path), AT) as (tx, _):
        return archive.stage_export(io.BytesIO(data), tx, plain, lambda _: None)


def records_of(data):
    return [json.loads(line) for line in data.splitlines()[1:-1]]


@pytest.fixture
def vault(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), AT).close()
    return path


WITH_FIELDS = [(kind, fields | {"mood": {"of": ["calm"]}}) for kind, fields in one_of_each()]
SKILL = ("skill", {"uid": "k1", "steps": ["a"]})


@pytest.mark.parametrize("version", [2, 3])
def test_fields_that_are_not_known_are_kept_by_every_kind_and_exported_again(vault, version):
    imported(vault, future(WITH_FIELDS, version))
    found = records_of(exported(vault))
    assert len(found) == len(WITH_FIELDS)
    assert [one for one in found if one.get("mood") != {"of": ["calm"]}] == []
    assert imported(vault, future(WITH_FIELDS, version)).created == {}
    assert records_of(exported(vault)) == found


def test_unknown_fields_go_with_what_is_erased(vault):
    imported(vault, future(WITH_FIELDS))
    db = Database(str(vault), AT)
    db.write_now(lambda tx: tx.execute("DELETE FROM summaries WHERE uid = 'redis'"))
    db.write_now(lambda tx: tx.execute("DELETE FROM edges"))
    db.write_now(lambda tx: tx.execute("DELETE FROM events"))
    rows = db.read_now(lambda tx: list(tx.execute("SELECT kind, one, other FROM unknown_fields")))
    assert not [row for row in rows if {"redis", "e1", "e2"} & set(row)]
    db.close()


def test_a_secret_in_an_unknown_field_is_redacted(vault):
    data = future([project(), session("s1"), summary("a", mood=["hunter2"])])
    imported(vault, data, lambda value: json.loads(json.dumps(value).replace("hunter2", "…")))
    assert b"hunter2" not in exported(vault)
    assert "…" in json.loads(exported(vault).splitlines()[3])["mood"]


@pytest.mark.parametrize("version", [2, 3])
def test_what_is_too_new_is_left_and_told_with_all_that_speaks_of_it(vault, version):
    records = [
        SKILL, project(), session("s1"), event("e1"), event("e9", kind="dream"), summary("a"),
        summary("p", kind="playbook"), summary("b", authority=77), SKILL, summary("c"),
        supersession("p", "a"), edge(("summary", "a"), "explains", ("summary", "c")),
        edge(("summary", "a"), "derives_from", ("event", "e1")),
        edge(("summary", "a"), "derives_from", ("event", "e9")),
        judgment("a", "c", "loves"), ("use", {"summary": "p", "count": 1, "last_at": AT}),
        ("habit", {}),
    ]  # fmt: skip
    data = future(records, version)
    assert stage(vault, data).newer == {
        "skill": 2, "habit": 1, "event with kind dream": 1, "summary with kind playbook": 1,
        "summary with authority 77": 1, "supersession of what was left": 1, "edge with type explains": 1,
        "edge of what was left": 1, "judgment with relation loves": 1, "use of what was left": 1,
    }  # fmt: skip
    done = imported(vault, data)
    assert done.created == {"project": 1, "session": 1, "event": 1, "summary": 2, "edge": 1}
    assert imported(vault, data).created == {}


def test_a_newer_format_is_read_as_far_as_it_is_understood(vault):
    bare = {name: one for name, one in summary("a")[1].items() if name != "quality"}
    records = [project(), session("s1"), ("summary", bare), summary("b", at="soon"), summary("c")]
    data = future(records, archive.EXPORT_FORMAT + 1, {"more": 1}, {"signed": "x"})
    assert stage(vault, data).newer == {
        "this summary lacks the field 'quality'": 1,
        "at of this summary must be a time in UTC milliseconds": 1,
    }
    assert imported(vault, data).created == {"project": 1, "session": 1, "summary": 1}


def test_a_wrong_record_of_a_known_format_is_still_refused(vault):
    with pytest.raises(BadRequest, match="line 4: at of this summary"):
        stage(vault, future([project(), session("s1"), summary("b", at="soon")]))


@pytest.mark.parametrize("version", [2, 3])
def test_unknown_lines_are_covered_by_counts_and_hash(vault, version):
    data = future([project(), SKILL, session("s1")], version)
    with pytest.raises(BadRequest, match="SHA-256"):
        stage(vault, data.replace(b'"steps": ["a"]', b'"steps": ["b"]'))
    whole = data.splitlines(keepends=True)
    with pytest.raises(BadRequest, match="missing"):
        stage(vault, b"".join([*whole[:2], *whole[3:]]))
    with pytest.raises(BadRequest, match="missing"):
        stage(vault, b"".join([*whole[:2], whole[2], whole[2], *whole[3:]]))
    with pytest.raises(BadRequest, match="cut off"):
        stage(vault, b"".join(whole[:-1]))
