from memd.index.memory_index import KEPT_MAX, Kept


def test_a_value_is_made_once_for_a_version():
    kept, made = Kept(), []
    for version in (1, 1, 2):
        kept.of(version, "a", lambda version=version: made.append(version))
    assert made == [1, 2]


def test_what_was_asked_for_longest_ago_is_forgotten_first():
    kept, made = Kept(), []
    for key in (*range(KEPT_MAX), 0, KEPT_MAX, 0, 1):
        kept.of(1, key, lambda key=key: made.append(key))
    assert made == [*range(KEPT_MAX + 1), 1]


def test_a_room_is_the_same_one_again_and_grows():
    kept = Kept()
    room = kept.room("a", 10)
    assert len(room) == 10
    assert kept.room("a", 9).base is room.base
    assert kept.room("b", 10).base is not room.base
    assert len(kept.room("a", 1_000)) == 1_000
