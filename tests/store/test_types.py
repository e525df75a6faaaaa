from memd.store.types import NewPassage, Posting


def test_the_length_of_a_passage_counts_every_word_as_often_as_it_stands_there():
    postings = (Posting("a", 1, 2), Posting("b", 0, 4))
    assert NewPassage(1, 0, 0, 1, "t", "x", "", postings).length == 7
