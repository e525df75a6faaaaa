from memd.index.vocabulary import Vocabulary


def vocabulary(uses, numbers=None):
    made = Vocabulary(lambda number: uses.get(number, 0))
    made.learn(numbers or {})
    return made


def test_a_term_has_a_number_and_a_number_a_term():
    made = vocabulary({}, {"redis": 3, "sqlite": 1})
    assert (made.number("redis"), made.number("oracle")) == (3, None)
    assert (made.term(1), made.term(2), made.term(99), made.term(-1)) == (
        "sqlite",
        None,
        None,
        None,
    )
    assert len(made) == 2


def test_a_number_that_was_given_back_means_the_new_word():
    made = vocabulary({}, {"old": 1, "other": 2})
    made.learn({"new": 1})
    assert made.number("old") is None
    assert (made.number("new"), made.term(1)) == (1, "new")


def test_a_word_that_comes_back_under_another_number_leaves_its_first_one():
    made = vocabulary({}, {"one": 1, "two": 2})
    made.learn({"one": 2})
    assert (made.number("one"), made.number("two")) == (2, None)
    assert (made.term(1), made.term(2)) == (None, "one")


def test_a_prefix_expands_to_the_most_frequent_terms_first():
    made = vocabulary(
        {1: 2, 2: 9, 3: 2, 4: 5, 5: 0}, {"config": 1, "configur": 2, "con": 4, "confid": 3}
    )
    made.learn({"configs": 5})
    assert made.expand("conf") == [2, 3, 1]
    assert made.expand("con", limit=2) == [2, 4]
    assert made.expand("x") == []
    assert made.expand("") == []


def test_fresh_words_are_expanded_like_old_ones():
    made = vocabulary(dict.fromkeys(range(200), 1), {f"aa{n}": n for n in range(100)})
    assert len(made.expand("aa")) == 100
    made.learn({"aab": 150})
    assert 150 in made.expand("aa")
    made.learn({f"bb{n}": n for n in range(50)})
    assert len(made.expand("aa")) == 51
    assert len(made.expand("bb")) == 50


def test_what_is_not_kept_is_forgotten():
    made = vocabulary({1: 1, 2: 1}, {"one": 1, "only": 2})
    made.keep({2})
    assert (made.number("one"), made.term(1), made.expand("on")) == (None, None, [2])
