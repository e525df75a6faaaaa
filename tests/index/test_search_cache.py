from memd.index.memory_index import CACHED_VALUES_MAX, SearchCache


def test_a_value_is_made_once_for_a_version():
    cache, made = SearchCache(), []
    for version in (1, 1, 2):
        cache.get_or_compute(version, "a", lambda version=version: made.append(version))
    assert made == [1, 2]


def test_what_was_asked_for_longest_ago_is_forgotten_first():
    cache, made = SearchCache(), []
    for key in (*range(CACHED_VALUES_MAX), 0, CACHED_VALUES_MAX, 0, 1):
        cache.get_or_compute(1, key, lambda key=key: made.append(key))
    assert made == [*range(CACHED_VALUES_MAX + 1), 1]


def test_a_scratch_array_is_the_same_one_again_and_grows():
    cache = SearchCache()
    array = cache.scratch("a", 10)
    assert len(array) == 10
    assert cache.scratch("a", 9).base is array.base
    assert cache.scratch("b", 10).base is not array.base
    assert len(cache.scratch("a", 1_000)) == 1_000


def test_at_rest_the_arrays_to_work_in_go_and_values_stay_where_they_are_small():
    cache, made = SearchCache(), []
    for is_kept in (True, False):
        for _ in range(2):
            array = cache.scratch("a", 10)
            cache.get_or_compute(1, "key", lambda is_kept=is_kept: made.append(is_kept))
            cache.release_memory(keep_values=is_kept)
            assert cache.scratch("a", 10).base is not array.base
    assert made == [True, False]
