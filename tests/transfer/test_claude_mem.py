import json

from memd.models import Kind
from memd.transfer import foreign_memories
from memd.transfer.foreign_memories import WatchedSession
from tests.tables import every_row

OBSERVATION = {
    "id": "12",
    "memory_session_id": "m-1",
    "project": "ledger",
    "text": None,
    "type": "bugfix",
    "title": "Rounding error in totals",
    "subtitle": "Cents were lost",
    "facts": json.dumps(["Totals are Decimal now", ""]),
    "narrative": "The totals were floats.",
    "concepts": json.dumps(["gotcha"]),
    "files_read": json.dumps(["a.py", "b.py"]),
    "files_modified": json.dumps(["a.py"]),
    "created_at_epoch": "1735689600000",
}
KNOWN = {"m-1": WatchedSession("s-1", "claude-code")}


def read(table="observations", known=KNOWN, **change):
    return foreign_memories.read_row(table, {**OBSERVATION, **change}, known)


def test_an_observation_becomes_a_memory_with_its_time_session_and_files():
    (one,) = read()
    assert one.title == "Rounding error in totals"
    assert one.text == ("Cents were lost\n\nThe totals were floats.\n\n- Totals are Decimal now")
    assert (one.kind, one.tags) == (Kind.FIX, ("bugfix", "gotcha"))
    assert (one.at, one.session, one.client) == (1_735_689_600_000, "s-1", "claude-code")
    assert (one.files, one.project, one.part) == (("a.py", "b.py"), "ledger", "observations m-1 12")


@every_row(
    ("type_", "kind"),
    [
        ("decision", Kind.DECISION),
        ("feature", Kind.CHANGE),
        ("refactor", Kind.CHANGE),
        ("change", Kind.CHANGE),
        ("discovery", Kind.DISCOVERY),
        ("security_alert", Kind.DISCOVERY),
        ("whatever", Kind.NOTE),
        (None, Kind.NOTE),
    ],
)
def test_each_type_has_its_kind(type_, kind):
    (one,) = read(type=type_)
    assert one.kind is kind


def test_old_rows_are_read_by_the_old_names_of_columns():
    row = {"id": "1", "sdk_session_id": "m-1", "project": "p", "text": "Chose SQLite", "type": "decision",
           "created_at_epoch": "1735689600"}  # fmt: skip
    (one,) = foreign_memories.read_row("observations", row, KNOWN)
    assert (one.title, one.text, one.session) == ("Chose SQLite", "Chose SQLite", "s-1")
    assert one.at == 1_735_689_600_000


def test_a_session_summary_has_the_request_and_what_was_learned():
    (one,) = read("session_summaries", request="Fix totals", learned="Floats lose", next_steps=" ",
                  files_edited="a.py, c.py")  # fmt: skip
    assert one.kind is Kind.SESSION
    assert one.text == "Asked: Fix totals\n\nLearned: Floats lose"
    assert one.files == ("a.py", "b.py")


def test_directives_are_instructions_while_they_are_active():
    row = {"id": "3", "content": "Always run the tests", "status": "active", "project": None}
    (one,) = foreign_memories.read_row("directives", row, {})
    assert (one.kind, one.project) == (Kind.INSTRUCTION, None)
    assert foreign_memories.read_row("directives", {**row, "status": "retired"}, {}) == []


@every_row("cell", ["", "null", "[", "3", '{"a": 1}', "a, b", "[[1], null, 2]"])
def test_malformed_lists_never_raise(cell):
    assert read(facts=cell, concepts=cell, files_read=cell, files_modified=cell)


def test_sessions_are_known_by_both_their_ids():
    rows = [
        {"content_session_id": "s-1", "memory_session_id": "m-1", "platform_source": "claude"},
        {"claude_session_id": "s-2", "sdk_session_id": None},
        {"content_session_id": "s-3", "memory_session_id": "m-3", "platform_source": "codex"},
        {"content_session_id": None},
    ]
    known = foreign_memories.read_sessions(iter(rows))
    assert known["m-1"] == known["s-1"] == WatchedSession("s-1", "claude-code")
    assert known["s-2"].client == "claude-code"
    assert known["m-3"].client == "codex"


def test_only_its_own_tables_are_read():
    there = {"observations": ("id", "project"), "users": ("id",), "overviews": ("id", "content")}
    assert foreign_memories.memory_tables(there) == ["observations", "overviews"]
    assert foreign_memories.memory_tables({"memories": ("id", "text")}) == []
