from memd.store import queries
from memd.store.filter import marks


def test_json_is_stored_with_its_characters_as_they_are():
    assert queries.compact_json({"ü": [1]}) == '{"ü":[1]}'
    assert queries.compact_json(["\ud83d", 0.5]) == '["\ud83d",0.5]'
    assert queries.json_text(["ü", 1]) == '["ü", 1]'
    assert marks("abc") == "?, ?, ?"
