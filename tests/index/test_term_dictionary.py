from hypothesis import given
from hypothesis import strategies as st

from memd.index.term_dictionary import TermDictionary


class Vocabulary(TermDictionary):
    """A dictionary of terms with known numbers of uses."""

    uses: dict[int, int]

    def expand(self, prefix, limit=200):
        """Those of a prefix, by their uses."""
        return super().expand(prefix, lambda number: self.uses.get(number, 0), limit)


def vocabulary(uses, numbers=None):
    made = Vocabulary()
    made.uses = uses
    made.learn(numbers or {})
    return made


def lines(words):
    """Terms and numbers as the store gives them."""
    return b"\n".join(t.encode() for t, _ in words), b"\n".join(b"%d" % n for _, n in words)


def test_a_loaded_word_that_was_looked_up_is_gone_once_its_number_means_another():
    made = vocabulary({})
    made.load(*lines([("old", 1), ("other", 2)]))
    assert (made.number("old"), made.number("other")) == (1, 2)
    made.learn({"new": 1})
    assert (made.number("old"), made.number("new"), made.number("other")) == (None, 1, 2)


def test_a_prefix_expands_to_the_most_frequent_terms_first():
    made = vocabulary(
        {1: 2, 2: 9, 3: 2, 4: 5, 5: 0}, {"config": 1, "configur": 2, "con": 4, "confid": 3}
    )
    made.learn({"configs": 5})
    assert made.expand("conf") == [2, 3, 1]
    assert made.expand("con", limit=2) == [2, 4]
    assert made.expand("x") == []
    assert made.expand("") == []


def test_a_vocabulary_is_loaded_in_one_go_and_learns_on():
    words = sorted((f"word{n}", n) for n in range(1, 2_000))
    made = vocabulary(dict.fromkeys(range(3_000), 1))
    made.load(*lines(words))
    assert all(made.number(term) == number for term, number in words)
    assert all(made.term(number) == term for term, number in words)
    made.learn({f"new{n}": n for n in range(2_000, 2_500)})
    assert (made.number("new2300"), made.number("word7"), len(made)) == (2_300, 7, 2_499)
    assert len(made.expand("new", limit=1_000)) == 500


def test_words_of_other_scripts_lie_in_the_order_of_their_bytes():
    made = vocabulary(dict.fromkeys(range(9), 1))
    made.load(*lines([("a", 1), ("z", 2), ("é", 3), ("東京", 4), ("\U0001f600", 5)]))
    assert [made.number(t) for t in ("é", "東京", "\U0001f600", "東")] == [3, 4, 5, None]
    assert made.expand("東") == [4]


_WORDS = st.text("abß東", min_size=1, max_size=3)


@given(
    st.lists(
        st.dictionaries(_WORDS, st.integers(0, 12), max_size=6).filter(
            lambda made: len(set(made.values())) == len(made)
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_it_is_a_dictionary_in_which_each_number_has_one_word(batches, packs):
    made, wanted = vocabulary(dict.fromkeys(range(13), 1)), {}
    for batch in batches:
        made.learn(batch)
        if packs:
            made._merge_fresh()
        for term, number in batch.items():
            wanted = {t: n for t, n in wanted.items() if t != term and n != number}
            wanted[term] = number
    assert len(made) == len(wanted)
    assert {term: made.number(term) for term in wanted} == wanted
    assert {n: made.term(n) for n in range(13)} == {
        **dict.fromkeys(range(13)),
        **{n: t for t, n in wanted.items()},
    }
    assert set(made.expand("a")) == {n for t, n in wanted.items() if t.startswith("a")}
    made.keep(range(6))
    assert len(made) == sum(n < 6 for n in wanted.values())
