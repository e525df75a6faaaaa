from memd.store import uids
from memd.store.import_rows import Arrivals
from tests.freight import project, session, summary, supersession


def test_a_row_is_found_by_its_name_and_written_once(db):
    row = {"key": "/a", "name": "a", "reason": "r", "created_at": 1}

    def work(tx):
        first = uids.insert(tx, "projects", row, or_leave=True)
        return (
            first,
            uids.insert(tx, "projects", row, or_leave=True),
            uids.last(tx, "projects"),
        )

    assert db.write_now(work) == (True, False, 1)
    assert db.read_now(lambda tx: uids.is_there(tx, "projects", "key, name", ("/a", "a")))
    assert not db.read_now(lambda tx: uids.is_there(tx, "projects", "key, name", ("/a", "b")))
    assert db.read_now(lambda tx: uids.number(tx, "session", "none")) is None


def test_json_is_kept_as_people_read_it():
    assert uids.text({"ü": [1]}, (",", ":")) == '{"ü":[1]}'
    assert uids.marks("abc") == "?, ?, ?"


def test_who_hides_a_summary_is_told_until_that_is_undone(db):
    def work(tx):
        arrivals = Arrivals(tx)
        held = [project(), session("s1"), *map(summary, "abc"), supersession("b", "a")]
        for kind, fields in [*held, supersession("c", "b", undone_at=9)]:
            arrivals.admit(kind, fields)
        return [uids.hider(tx, uids.number(tx, "summary", uid)) for uid in "abc"]

    assert db.write_now(work) == [2, None, None]


def test_of_rows_that_look_alike_each_is_met_once(db):
    def work(tx):
        held = [project(), session("s1"), *map(summary, "ab"), supersession("b", "a")]
        arrivals = Arrivals(tx)
        for kind, fields in held:
            arrivals.admit(kind, fields)
        met, columns = uids.Met(tx), "newer_id, older_id"
        return [
            met.is_here("supersessions", columns, pair, undone_at)
            for pair in ((2, 1), (1, 2))
            for undone_at in (7, None, None)
        ]

    assert db.write_now(work) == [True, True, False, False, False, False]
