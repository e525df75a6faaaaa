import io
import json
import signal
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.capture.project import redact_directory
from memd.capture.redact import redact, redact_value
from memd.errors import BadRequest, VaultError
from memd.models import Authority, EdgeType, EventKind, Kind, Stance, Tier
from memd.store.database import Database
from memd.store.import_rows import staging_vault
from memd.store.summaries import fold_topic
from memd.transfer import archive
from tests import export_records
from tests.export_records import (
    AT,
    edge,
    event,
    exported,
    fill,
    imported,
    in_order,
    one_of_each,
    project,
    session,
    summary,
    supersession,
)


@pytest.fixture
def home(tmp_path):
    """A vault with a record of every kind."""
    return fill(tmp_path / "home.db", one_of_each())


def records(data):
    """The records between header and end."""
    found = [json.loads(line) for line in data.splitlines()[1:-1]]
    return [(one.pop("record"), one) for one in found]


def test_an_imported_vault_exports_to_the_same_bytes(home, tmp_path):
    data = exported(home)
    imported(tmp_path / "new.db", data)
    assert exported(tmp_path / "new.db") == data


_TEXT = st.text(max_size=12).map(redact)
_NAME = st.text(min_size=1, max_size=8)
_TIME = st.integers(0, 2**53)
_REAL = st.floats(-1e6, 1e6).map(float)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | _REAL | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_OBJECT = st.dictionaries(_TEXT, _JSON, max_size=3).map(redact_value)


def _maybe(strategy):
    return st.none() | strategy


@st.composite
def vaults(draw):  # one statement a kind of record
    """The records of an arbitrary vault, in the order in which they travel."""

    def some(strategy, most, least=0):
        return draw(st.lists(strategy, min_size=least, max_size=most, unique=True))

    def one(of):
        return draw(st.sampled_from(of))

    keys = [redact(key) for key in some(_NAME, 4, 1)]
    keys = sorted(set(keys))
    projects_ = keys[: max(1, len(keys) - 1)]
    found = [
        project(key, name=draw(_TEXT), reason=draw(_TEXT), created_at=draw(_TIME))
        for key in projects_
    ]
    found += [
        ("alias", {"key": key, "project": one(projects_), "at": draw(_TIME)})
        for key in keys[len(projects_) :]
    ]
    sessions = some(_NAME, 3)
    found += [
        session(
            uid, client=draw(_NAME), project=one(projects_), directory=draw(_maybe(_TEXT)),
            title=draw(_maybe(_TEXT)), started_at=draw(_TIME), last_event_at=draw(_TIME),
        )
        for uid in sessions
    ]  # fmt: skip
    events = some(_NAME, 4) if sessions else []
    found += [
        event(
            key, session=one(sessions), kind=one([*map(str, EventKind)]), at=draw(_TIME),
            turn=draw(_maybe(_TEXT)), payload=draw(_OBJECT), distilled=one([0, 1]),
        )
        for key in events
    ]  # fmt: skip
    uids = some(_NAME, 5)
    found += [
        summary(
            uid, project=one(projects_), session=one([None, *sessions]), kind=one([*map(str, Kind)]),
            tier=one([*map(str, Tier)]), title=draw(_TEXT), body=draw(_TEXT), topic_key=draw(_maybe(_TEXT.map(fold_topic))),
            tags=draw(st.lists(_TEXT, max_size=2)), at=draw(_TIME), updated_at=draw(_TIME),
            expires_at=draw(_maybe(_TIME)), confidence=draw(_REAL), consolidated=one([0, 1]),
            archived_at=draw(_maybe(_TIME)), authority=one([each.code for each in Authority]),
            **one([{}, {"pinned_at": draw(_TIME), "pinned_by": one([each.code for each in Authority])}]),
        )
        for uid in uids
    ]  # fmt: skip
    pairs = [(a, b) for n, b in enumerate(uids) for a in uids[n + 1 :]]
    hidden = set()
    for a, b in draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True)) if pairs else []:
        undone = draw(_TIME) if b in hidden else draw(_maybe(_TIME))
        hidden |= {b} if undone is None else set()
        found.append(supersession(a, b, undone_at=undone, cosine=draw(_maybe(_REAL))))
    nodes = [("file", "x"), *(("summary", u) for u in uids), *(("event", e) for e in events)]
    ends = st.tuples(
        st.sampled_from(nodes), st.sampled_from([*map(str, EdgeType)]), st.sampled_from(nodes)
    )
    found += [edge(*ends_, detail=draw(_OBJECT)) for ends_ in some(ends, 3)]
    for a, b in draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True)) if pairs else []:
        said = {"newer": a, "older": b, "relation": one([*map(str, Stance)]), "reason": draw(_TEXT)}
        found.append(
            (
                "judgment",
                said | {"who": "user", "at": draw(_TIME), "undone_at": draw(_maybe(_TIME))},
            )
        )
    for uid in uids[:2]:
        found.append(("use", {"summary": uid, "count": draw(_TIME), "last_at": draw(_TIME)}))
    if uids and sessions:
        shown = {"session": sessions[0], "summary": uids[0], "moment": draw(_NAME)}
        found.append(("injection", shown | {"at": draw(_TIME), "reason": draw(_TEXT)}))
    for target in sorted(some(_NAME, 2), key=str.encode):
        said = {"scope": "session", "target": redact(target), "captures": one([0, 1])}
        found.append(("switch", said | {"recalls": one([0, 1]), "at": draw(_TIME)}))
    found += [
        ("forgotten", {"key": key, "at": draw(_TIME)})
        for key in sorted(set(some(_NAME, 2)) - {*uids, *events, *sessions}, key=str.encode)
    ]
    return in_order(found)


@settings(max_examples=12)
@given(held=vaults())
def test_export_after_import_after_export_is_the_export(held, tmp_path_factory):
    folder = tmp_path_factory.mktemp("moved")
    data = exported(fill(folder / "home.db", held))
    assert records(data) == held
    assert not imported(folder / "new.db", data, redact_value).left
    assert exported(folder / "new.db") == data
    again = imported(folder / "new.db", data, redact_value)
    assert (again.created, again.revised, again.hidden) == ({}, {}, 0)
    assert exported(folder / "new.db") == data


def test_two_vaults_merge_without_colliding_ids(tmp_path):
    one = [
        project(),
        session("s1"),
        event("e1"),
        summary("a"),
        summary("b"),
        supersession("b", "a"),
    ]
    two = [
        project(), project("/x", name="x"), session("s1"), session("s2", project="/x"), event("e1"),
        event("e9", session="s2"), summary("b"), summary("c", project="/x", session="s2"), summary("d"),
        supersession("d", "c"), edge(("summary", "c"), "derives_from", ("event", "e9")),
    ]  # fmt: skip
    target = fill(tmp_path / "one.db", one)
    merged = imported(target, exported(fill(tmp_path / "two.db", two)))
    assert merged.created == {
        "project": 1, "session": 1, "event": 1, "summary": 2, "supersession": 1, "edge": 1,
    }  # fmt: skip
    now = dict.fromkeys(map(json.dumps, records(exported(target))))
    for wanted in (*one[:2], *one[-1:], two[-1], two[-2]):
        assert json.dumps(list(wanted)) in now
    uids = [fields["uid"] for kind, fields in records(exported(target)) if kind == "summary"]
    assert uids == ["a", "b", "c", "d"]


def test_a_forgotten_memory_is_not_imported_again(home, tmp_path):
    gone = [("forgotten", {"key": key, "at": AT}) for key in ("redis", "e2")]
    target = fill(tmp_path / "t.db", gone)
    merged = imported(target, exported(home))
    assert merged.forgotten["summary"] == 1
    assert merged.forgotten["event"] == 1
    left = exported(target)
    assert b'"redis"' not in left.replace(b'"key":"redis"', b"")
    assert "\U0001f5dd".encode() not in left
    assert b'"sqlite"' in left


def test_a_memory_of_forgotten_events_only_is_not_imported(tmp_path):
    held = [
        project(), session("s1", title="Where shall the sessions live?"), event("e1"), event("e2"),
        summary("only"), summary("both"),
        *(edge(("summary", "only"), "derives_from", ("event", "e1")),),
        edge(("summary", "both"), "derives_from", ("event", "e1")),
        edge(("summary", "both"), "derives_from", ("event", "e2")),
    ]  # fmt: skip
    data = exported(fill(tmp_path / "home.db", held))
    target = fill(tmp_path / "t.db", [("forgotten", {"key": "e1", "at": AT})])
    merged = imported(target, data)
    assert (merged.created["summary"], merged.forgotten["summary"]) == (1, 1)
    kept = records(exported(target))
    assert [fields["uid"] for kind, fields in kept if kind == "summary"] == ["both"]
    # The prompt that the session is titled with may be the forgotten one.
    assert [fields["title"] for kind, fields in kept if kind == "session"] == [None]


def test_a_memory_forgotten_in_the_other_vault_stays_in_this_one(home, tmp_path):
    there = fill(tmp_path / "there.db", [("forgotten", {"key": "redis", "at": AT})])
    merged = imported(home, exported(there))
    assert merged.left == {"forgotten": 1}
    assert records(exported(home)) == one_of_each()


def test_a_secret_that_an_older_memd_missed_is_redacted_on_import(tmp_path):
    secret = "ghp_" + "x4K9mQ2vL7nR5tY8wB3cD6fG1hJ0kP4sA9zE"
    held = [
        project(), session("s1", title=f"use {secret}"), event("e1", payload={"prompt": secret}),
        summary("a", body=f"token {secret}", tags=[secret]), edge(("summary", "a"), "edits", ("file", secret)),
    ]  # fmt: skip
    data = exported(fill(tmp_path / "home.db", held))
    assert secret.encode() in data
    imported(tmp_path / "new.db", data, redact_value)
    assert secret.encode() not in exported(tmp_path / "new.db")
    assert secret.encode() not in (tmp_path / "new.db").read_bytes()


GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OTHER_GITHUB = GITHUB.replace("a1", "Z9")


def test_directories_that_differ_only_in_a_token_are_imported_as_one_project(tmp_path):
    one, other = (f"/home/dev/{token}/ledger" for token in (GITHUB, OTHER_GITHUB))
    safe = redact_directory(one)
    old = fill(
        tmp_path / "old.db",
        [
            project(one), project(other), project(safe), ("alias", {"key": GITHUB, "project": one, "at": AT}),
            ("alias", {"key": OTHER_GITHUB, "project": one, "at": AT}),
            session("s1", project=one, directory=one), session("s2", project=other, directory=other),
            event("e1"), summary("A", project=one, files=[f"{one}/app.py"]), summary("B", project=safe),
            *(edge(("summary", "A"), "edits", ("file", f"{place}/app.py")) for place in (one, other)),
            ("switch", {"scope": "project", "target": one, "captures": 0, "recalls": 1, "at": AT}),
            ("switch", {"scope": "project", "target": other, "captures": 0, "recalls": 1, "at": AT}),
        ],
    )  # fmt: skip
    new = tmp_path / "new.db"
    created = imported(new, exported(old), redact_value).created
    assert (created["project"], created["session"], created["summary"]) == (1, 2, 2)
    data = exported(new)
    assert GITHUB.encode() not in data
    assert OTHER_GITHUB.encode() not in data
    assert {fields["key"] for kind, fields in records(data) if kind == "project"} == {safe}
    assert exported(new) == data


def test_a_record_that_stands_twice_in_an_export_is_refused_unless_a_secret_made_them_two(tmp_path):
    twice = [project(), project("/home/dev/other")]
    data = exported(fill(tmp_path / "old.db", twice)).replace(
        b"/home/dev/other", b"/home/dev/ledger"
    )
    with pytest.raises(BadRequest, match="stands there twice"):
        imported(tmp_path / "new.db", data, redact_value)


def test_an_older_version_of_a_memory_changes_nothing_and_a_newer_one_revises_it(tmp_path):
    target = fill(tmp_path / "t.db", [project(), session("s1"), summary("a", title="now")])
    older = fill(
        tmp_path / "o.db", [project(), session("s1"), summary("a", title="then", updated_at=AT - 1)]
    )
    assert imported(target, exported(older)).revised == {}
    newer = fill(
        tmp_path / "n.db",
        [project(), session("s1"), summary("a", title="later", updated_at=AT + 1)],
    )
    assert imported(target, exported(newer)).revised == {"summary": 1}
    assert records(exported(target))[-1][1]["title"] == "later"


def test_the_export_of_one_project_refers_to_nothing_else(tmp_path):
    other = {"project": "/home/dev/secret", "session": "s9"}
    held = [
        project(), project("/home/dev/secret", name="secret"), session("s1"),
        session("s9", project="/home/dev/secret"), event("e1"), event("e9", session="s9"), summary("a"),
        summary("hushed", **other), supersession("hushed", "a"),
        edge(("summary", "a"), "derives_from", ("event", "e9")),
        edge(("summary", "a"), "derives_from", ("event", "e1")),
        ("switch", {"scope": "project", "target": "/home/dev/secret", "captures": 0, "recalls": 0, "at": AT}),
        ("forgotten", {"key": "hash", "at": AT}),
    ]  # fmt: skip
    home = fill(tmp_path / "home.db", held)
    data = exported(home, "ledger")
    assert [kind for kind, _ in records(data)] == ["project", "session", "event", "summary", "edge"]
    told, _, _ = data.rpartition(b'"sha256"')
    for word in (b"secret", b"hushed", b"e9", b"s9"):
        assert word not in told
    imported(tmp_path / "new.db", data)
    assert records(exported(tmp_path / "new.db", "/home/dev/ledger")) == records(data)


def test_an_unknown_or_ambiguous_project_is_refused(home, tmp_path):
    with pytest.raises(BadRequest, match="there is no 'nowhere'"):
        exported(home, "nowhere")
    twins = fill(tmp_path / "t.db", [project("/a", name="x"), project("/b", name="x")])
    with pytest.raises(BadRequest, match="may be /a, /b"):
        exported(twins, "x")


def test_an_export_is_one_snapshot(home):
    db = Database(home, AT)
    taken = []

    def write(line):
        if not taken:
            db.write_now(lambda tx: tx.execute("UPDATE summaries SET title = 'changed meanwhile'"))
        taken.append(line)

    archive.export_vault(home, "1", write)
    db.close()
    assert records(b"".join(taken)) == one_of_each()


def test_a_vault_of_another_schema_is_not_exported(home):
    db = Database(home, AT)
    db.write_now(lambda tx: tx.pragma("user_version", 1))
    db.close()
    with pytest.raises(VaultError, match="memd restart"):
        exported(home)


@pytest.mark.parametrize("cut", [1, 40, 4_000])
def test_a_refused_file_is_refused_with_its_line_and_changes_nothing(home, tmp_path, cut):
    target = fill(tmp_path / "t.db", [project()])
    before = exported(target)
    with pytest.raises(BadRequest, match=r"^line \d+: .*Nothing was imported\.$"):
        imported(target, exported(home)[:-cut])
    assert exported(target) == before
    assert not list(tmp_path.glob("*.staging*"))


@pytest.mark.parametrize(
    ("held", "number", "why"),
    [
        ([project(), project()], 3, "stands there twice"),
        ([project(), session("s1"), session("s2", key="key of s1")], 4, "stands there twice"),
        ([project(), session("s1"), summary("a"), summary("a")], 5, "stands there twice"),
        ([project(), session("s1"), event("a"), event("a")], 5, "stands there twice"),
        ([summary("a")], 2, "there is no project"),
        ([project(), summary("a")], 3, "there is no session 's1'"),
        ([project(), session("s1"), summary("a"), supersession("b", "a")], 5, "there is no summary 'b'"),
        ([project(), session("s1"), summary("a"), supersession("a", "a")], 5, "circle"),
        (
            [project(), session("s1"), *map(summary, "abc"), supersession("a", "b"), supersession("b", "c"), supersession("c", "a")],
            9, "circle",
        ),
        ([project(), session("s1"), *map(summary, "abc"), supersession("a", "c"), supersession("b", "c")], 8, "otherwise"),
        ([edge(("file", "x"), "edits", ("event", "nothing"))], 2, "there is no event 'nothing'"),
        ([("use", {"summary": "a", "count": 1, "last_at": 1})], 2, "there is no summary"),
        ([project(), ("alias", {"key": "/home/dev/ledger", "project": "/home/dev/ledger", "at": 1})], 3, "twice"),
    ],
)  # fmt: skip
def test_a_hostile_file_is_refused_at_its_line(tmp_path, held, number, why):
    data = b"".join(export_records.lines(held))
    with pytest.raises(BadRequest, match=f"line {number}: .*{why}"):
        imported(tmp_path / "t.db", data)
    assert not (tmp_path / "t.db").exists()


def test_an_endless_line_is_refused_before_it_fills_the_memory(tmp_path):
    class Endless:
        """A file of one line that never ends, and what was read of it."""

        read = 0

        def readline(self, limit):
            self.read += limit
            return b" " * limit

    file = Endless()
    with (
        staging_vault(str(tmp_path / "t.db"), AT) as (tx, _),
        pytest.raises(BadRequest, match="line 1: longer than 32 MiB"),
    ):
        archive.stage_export(file, tx, export_records.plain, lambda _: None)
    assert file.read < 40 * 1024 * 1024


def test_a_file_of_another_program_is_no_export(tmp_path):
    for data in (
        b"",
        b"\n",
        b"{}\n",
        b"[1]\n",
        b"name,age\n",
        bytes(range(256)),
        b'{"record":1}\n',
    ):
        with (
            staging_vault(str(tmp_path / "t.db"), AT) as (tx, _),
            pytest.raises(BadRequest, match=r"line 1: .*not a memd export"),
        ):
            archive.stage_export(io.BytesIO(data), tx, export_records.plain, lambda _: None)


HALFWAY = """
import sys, time
from memd.transfer import archive
from memd.store.database import Database
db = Database(sys.argv[1], 1)
def work(tx):
    archive.merge_staged(tx, sys.argv[2], 1)
    print("merged", flush=True)
    time.sleep(60)
db.write_now(work)
"""


def test_a_daemon_that_is_killed_while_it_merges_has_merged_nothing(home, tmp_path):
    target = fill(tmp_path / "t.db", [project("/x")])
    before = exported(target)
    with subprocess.Popen(
        [sys.executable, "-c", HALFWAY, target, home], stdout=subprocess.PIPE
    ) as daemon:
        assert daemon.stdout.readline() == b"merged\n"
        daemon.send_signal(signal.SIGKILL)
    assert exported(target) == before
    imported(target, exported(home))
    assert len(records(exported(target))) == 1 + len(one_of_each())


def test_a_vault_of_many_records_moves_in_little_memory(tmp_path):
    long = [summary(f"m{n}", body="word " * 2_000) for n in range(400)]
    data = exported(fill(tmp_path / "home.db", [project(), session("s1"), *long]))
    assert len(data) > 4_000_000
    tracemalloc.start()
    archive.export_vault(str(tmp_path / "home.db"), "1", lambda _: None)
    with staging_vault(str(tmp_path / "t.db"), AT) as (tx, _):
        archive.stage_export(io.BytesIO(data), tx, export_records.plain, lambda _: None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_500_000
