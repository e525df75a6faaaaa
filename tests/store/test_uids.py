from memd.store import queries
from memd.store.import_rows import RecordImporter
from tests.export_records import project, session, summary, supersession


def test_a_row_is_found_by_its_name_and_written_once(db):
    row = {"key": "/a", "name": "a", "reason": "r", "created_at": 1}

    def work(tx):
        first = queries.insert_row(tx, "projects", row, or_leave=True)
        return (
            first,
            queries.insert_row(tx, "projects", row, or_leave=True),
            queries.last_id(tx, "projects"),
        )

    assert db.write_now(work) == (True, False, 1)
    assert db.read_now(lambda tx: queries.has_row(tx, "projects", "key, name", ("/a", "a")))
    assert not db.read_now(lambda tx: queries.has_row(tx, "projects", "key, name", ("/a", "b")))
    assert db.read_now(lambda tx: queries.row_id(tx, "session", "none")) is None


def test_json_is_kept_as_people_read_it():
    assert queries.json_text({"ü": [1]}, (",", ":")) == '{"ü":[1]}'
    assert queries.marks("abc") == "?, ?, ?"


def test_who_hides_a_summary_is_told_until_that_is_undone(db):
    def work(tx):
        importer = RecordImporter(tx)
        held = [project(), session("s1"), *map(summary, "abc"), supersession("b", "a")]
        for kind, fields in [*held, supersession("c", "b", undone_at=9)]:
            importer.import_record(kind, fields)
        return [queries.superseder_of(tx, queries.row_id(tx, "summary", uid)) for uid in "abc"]

    assert db.write_now(work) == [2, None, None]


def test_of_rows_that_look_alike_each_is_met_once(db):
    def work(tx):
        held = [project(), session("s1"), *map(summary, "ab"), supersession("b", "a")]
        importer = RecordImporter(tx)
        for kind, fields in held:
            importer.import_record(kind, fields)
        met, columns = queries.SeenRows(tx), "newer_id, older_id"
        return [
            met.is_here("supersessions", columns, pair, undone_at)
            for pair in ((2, 1), (1, 2))
            for undone_at in (7, None, None)
        ]

    assert db.write_now(work) == [True, True, False, False, False, False]
