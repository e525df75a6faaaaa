"""Export records by hand: one of every kind, and helpers that import and export them."""

import io

from memd.store.database import Database
from memd.store.export_rows import EXPORT_SCHEMA
from memd.store.import_rows import RecordImporter, commit_staging, staged_path, staging_vault
from memd.transfer import archive

AT = 1_790_000_000_000


def plain(value):
    return value


def summary(uid, **fields):
    return (
        "summary",
        {
            "uid": uid, "project": "/home/dev/ledger", "session": "s1", "episode": "t1",
            "kind": "decision", "tier": "captured", "source": "claude-code",
            "title": f"Sessions live in {uid}", "body": "Because they are shared.",
            "topic_key": None, "tags": ["sessions"], "files": ["/home/dev/ledger/app.py"],
            "at": AT, "created_at": AT, "updated_at": AT, "expires_at": None, "pinned_at": None,
            "confidence": 0.5, "quality": 0.25, "revisions": 1, "duplicates": 2, "rule": "turn",
            "consolidated": 1, "archived_at": None, "authority": 4, "pinned_by": None,
        }
        | fields,
    )  # fmt: skip


def event(key, **fields):
    return (
        "event",
        {
            "key": key, "session": "s1", "kind": "prompt", "name": "UserPromptSubmit", "at": AT,
            "source": "live", "turn": "t1", "tool": None, "agent": None,
            "payload": {"prompt": "Where shall the sessions live?"}, "distilled": 1,
        }
        | fields,
    )  # fmt: skip


def session(uid, **fields):
    return (
        "session",
        {
            "uid": uid, "client": "claude-code", "key": f"key of {uid}",
            "project": "/home/dev/ledger", "directory": "/home/dev/ledger", "title": "Sessions",
            "started_at": AT, "last_event_at": AT + 5,
        }
        | fields,
    )  # fmt: skip


def project(key="/home/dev/ledger", **fields):
    return (
        "project",
        {"key": key, "name": "ledger", "reason": "a git repository", "created_at": AT} | fields,
    )


def supersession(newer, older, **fields):
    return (
        "supersession",
        {
            "newer": newer, "older": older, "rule": "near-duplicate", "cosine": 0.97,
            "guard": "no finding", "at": AT, "undone_at": None,
        }
        | fields,
    )  # fmt: skip


def edge(start, type_, stop, **fields):
    return (
        "edge",
        {
            "from_kind": start[0], "from": start[1], "type": type_, "to_kind": stop[0],
            "to": stop[1], "confidence": 1.0, "rule": "turn", "at": AT, "detail": {"quote": "sessions"},
        }
        | fields,
    )  # fmt: skip


def judgment(newer, older, relation, **fields):
    return (
        "judgment",
        {
            "newer": newer, "older": older, "relation": relation, "reason": "so it is",
            "who": "user", "at": AT, "undone_at": None,
        }
        | fields,
    )  # fmt: skip


def one_of_each():
    """A vault with a record of every kind, in the order of an export."""
    return [
        project(),
        project("global", name="global", reason="memories that hold everywhere"),
        ("alias", {"key": "/home/dev/old", "project": "/home/dev/ledger", "at": AT}),
        session("s1"),
        session("s2", directory=None, title=None),
        event("e1"),
        event("e2", kind="tool_call", payload={"n": [1, 2.5, None, True, {"ü": "\U0001f5dd"}]}),
        summary("sqlite"),
        summary("redis", topic_key="sessions.store", expires_at=AT + 9, pinned_at=AT + 1, pinned_by=5),
        summary("rule", project="global", session=None, episode=None, kind="instruction"),
        supersession("redis", "sqlite"),
        supersession("rule", "redis", undone_at=AT + 3, cosine=None),
        edge(("summary", "redis"), "derives_from", ("event", "e1")),
        edge(("summary", "redis"), "edits", ("file", "../../etc/passwd")),
        edge(("session", "s1"), "references", ("summary", "rule"), detail={}),
        edge(("file", "/home/dev/ledger/a.py"), "imports", ("file", "/home/dev/ledger/b.py")),
        judgment("redis", "rule", "compatible", reason="both hold"),
        ("review", {"summary": "redis", "verdict": "kept", "at": AT, "follows": None}),
        ("use", {"summary": "redis", "count": 3, "last_at": AT}),
        ("together", {"one": "sqlite", "other": "redis", "count": 2}),
        (
            "injection",
            {"session": "s1", "summary": "redis", "moment": "startup", "at": AT, "reason": "pinned"},
        ),
        (
            "switch",
            {"scope": "project", "target": "/home/dev/ledger", "captures": 1, "recalls": 0, "at": AT},
        ),
        ("forgotten", {"key": "a" * 32, "at": AT}),
    ]  # fmt: skip


def in_order(records):
    """The records in the order of an export."""
    return sorted(records, key=lambda record: list(EXPORT_SCHEMA).index(record[0]))


def fill(path, records):
    """Make a vault of these records."""
    db = Database(str(path), AT)
    try:

        def put(tx):
            importer = RecordImporter(tx)
            for kind, fields in in_order(records):
                assert importer.import_record(kind, dict(fields)) == "created", (kind, fields)

        db.write_now(put)
    finally:
        db.close()
    return str(path)


def lines(records, version="1"):
    """The lines of an export with these records, right in everything else."""
    counts = {kind: sum(one[0] == kind for one in records) for kind in EXPORT_SCHEMA}
    return list(archive.export_lines(version, None, counts, records))


def exported(vault, project=None):
    """A vault's export, whole."""
    out = io.BytesIO()
    archive.export_vault(str(vault), "1", out.write, project)
    return out.getvalue()


def imported(vault, data, redact=plain, now=AT + 100):
    """Import an export into a vault; what became of it."""
    path = str(vault)
    with staging_vault(path, now) as (tx, name):
        archive.stage_export(io.BytesIO(data), tx, redact, lambda _: None)
        commit_staging(tx)
        db = Database(path, now)
        try:
            return db.write_now(lambda tx: archive.merge_staged(tx, staged_path(path, name), now))
        finally:
            db.close()
