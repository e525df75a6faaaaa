import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings.local.bert import WordPiece, split_words
from tests.tiny_model import CONTEXT, VOCABULARY


def encode(text, limit=CONTEXT):
    return [VOCABULARY[number] for number in WordPiece(VOCABULARY, limit).encode(text)]


def inside(text, limit=CONTEXT):
    found = encode(text, limit)
    assert (found[0], found[-1]) == ("[CLS]", "[SEP]")
    return found[1:-1]


def test_a_word_is_split_into_the_longest_known_pieces():
    assert inside("unaffable sessions") == ["un", "##aff", "##able", "session", "##s"]


def test_letters_become_lower_case_and_lose_their_accents():
    assert inside("SÉSSIÖN Daemon") == inside("session daemon")
    assert split_words("ΣΊΣΥΦΟΣ") == ["σισυφοσ"]  # no final form: each letter by itself


def test_punctuation_stands_alone():
    assert inside("daemon's (sqlite)_") == ["daemon", "'", "s", "(", "sqlite", ")", "_"]
    assert split_words("a—b…c「d」") == ["a", "—", "b", "…", "c", "「", "d", "」"]


def test_chinese_characters_stand_alone_and_those_of_other_scripts_do_not():
    assert inside("漢字the") == ["漢", "字", "the"]
    assert len(split_words("한글 かな")) == 2


def test_control_characters_are_dropped_and_every_blank_separates():
    assert split_words("key\x00\u200d\ufffdword\x1f") == ["keyword"]
    assert split_words("a\u00a0b\u3000c\u2028d\te") == ["a", "b", "c", "d", "e"]


def test_what_the_vocabulary_cannot_make_is_one_unknown_token():
    assert inside("session☃ ☃") == ["[UNK]", "[UNK]"]


def test_a_word_of_more_than_a_hundred_characters_is_unknown():
    assert inside("a" * 100, 200) == ["a", *["##a"] * 99]
    assert inside("a" * 101, 200) == ["[UNK]"]


def test_special_tokens_in_a_text_are_themselves():
    assert inside("keep[SEP]the [mask]") == [
        "keep",
        "[SEP]",
        "the",
        "[",
        "m",
        "##a",
        "##s",
        "##k",
        "]",
    ]


def test_a_long_text_is_cut_to_the_limit_and_still_ends():
    assert inside("the daemon " * 50) == ["the", "daemon"] * ((CONTEXT - 2) // 2)


def test_a_vocabulary_without_special_tokens_is_refused():
    with pytest.raises(ValueError, match=r"lacks \[CLS\]"):
        WordPiece(["[PAD]", "[UNK]", "[SEP]", "[MASK]", "a"], CONTEXT)


@given(st.text())
def test_any_text_has_ids_within_the_limit(text):
    ids = WordPiece(VOCABULARY, CONTEXT).encode(text)
    assert 2 <= len(ids) <= CONTEXT
    assert all(0 <= number < len(VOCABULARY) for number in ids)
