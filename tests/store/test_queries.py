from memd.store import queries
from memd.store.filter import join_bounds, marks


def test_a_row_is_found_by_its_name_and_inserted_once(db):
    row = {"key": "/a", "name": "a", "reason": "r", "created_at": 1}

    def insert_twice(tx):
        outcomes = [queries.insert_row(tx, "projects", row, or_ignore=True) for _ in range(2)]
        return [*outcomes, queries.last_id(tx, "projects")]

    assert db.write_now(insert_twice) == [True, False, 1]
    assert db.read_now(lambda tx: queries.row_id(tx, "session", "none")) is None


def test_rows_are_counted_and_found_by_a_condition(db):
    def read(tx):
        source = "meta WHERE key = ?"
        return [
            (queries.count_rows(tx, source, (key,)), queries.has_rows(tx, source, (key,)))
            for key in ("created_at", "none")
        ]

    assert db.read_now(read) == [(1, True), (0, False)]


def test_a_missing_row_and_null_are_no_number(db):
    def read(tx):
        return [queries.fetch_int(tx, "SELECT ?", (value,)) for value in (7, None)] + [
            queries.fetch_int(tx, "SELECT id FROM projects WHERE id = 99")
        ]

    assert db.read_now(read) == [7, None, None]


def test_bounds_without_a_value_do_not_bound():
    assert join_bounds(("a =", 0), ("b <", None)) == ("1 AND a = ?", (0,))
    assert join_bounds(("a =", None)) == ("1", ())


def test_json_is_stored_with_its_characters_as_they_are():
    assert queries.compact_json({"ü": [1]}) == '{"ü":[1]}'
    assert queries.compact_json(["\ud83d", 0.5]) == '["\ud83d",0.5]'
    assert queries.json_text(["ü", 1]) == '["ü", 1]'
    assert marks("abc") == "?, ?, ?"
