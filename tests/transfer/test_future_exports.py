"""An export with fields that are not known keeps them; one that only a newer memd understands is refused."""

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
    event,
    exported,
    imported,
    one_of_each,
    plain,
    project,
    session,
    summary,
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
def test_fields_that_are_not_known_are_kept_by_memories_and_exported_again(vault, version):
    imported(vault, future(WITH_FIELDS, version))
    found = records_of(exported(vault))
    assert len(found) == len(WITH_FIELDS)
    kept = [one["record"] == "summary" for one in found if one.get("mood") == {"of": ["calm"]}]
    assert len(kept) > 1
    assert all(kept)
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


@pytest.mark.parametrize(
    "record",
    [SKILL, event("e9", kind="dream"), summary("p", kind="playbook"), summary("b", authority=77)],
    ids=["kind of record", "kind of event", "kind of memory", "authority"],
)
def test_what_is_too_new_is_refused_with_all_of_its_file(vault, record):
    with pytest.raises(BadRequest, match="newer memd wrote this; update memd"):
        stage(vault, future([project(), session("s1"), record]))


def test_a_newer_format_is_refused(vault):
    with pytest.raises(BadRequest, match="line 1: a newer memd"):
        stage(vault, future([project()], archive.EXPORT_FORMAT + 1))


def test_a_wrong_record_of_a_known_format_is_still_refused(vault):
    with pytest.raises(BadRequest, match="line 4: at of this summary"):
        stage(vault, future([project(), session("s1"), summary("b", at="soon")]))
