import doctest
import sys
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from memd import caches, text
from tests.tables import every_row, read_tables

TABLES = read_tables("text")

ANY = st.text(max_size=300)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(text).failed == 0


@every_row(("token", "terms"), TABLES["what_a_token_is_indexed_as"])
def test_what_a_token_is_indexed_as(token, terms):
    assert set(terms) <= set(text.terms(token))


def test_a_name_with_an_apostrophe_is_found_in_both_spellings():
    assert set(text.terms("O'Brien")) >= set(text.terms("obrien"))


def test_a_version_is_one_word_and_an_underscore_joins():
    assert text.words("use v1.2.3 of snake_case, not camelCase!") == [
        "use", "v1.2.3", "of", "snake_case", "not", "camelCase",
    ]  # fmt: skip


def test_stop_words_are_dropped_unless_nothing_else_is_left():
    assert text.content_stems("why did the login fail") == ("login", "fail")
    assert text.content_stems("to be or not to be")
    assert text.is_stop_word("didn't")
    assert text.is_stop_word("The")
    assert not text.is_stop_word("login")


def test_a_line_is_cut_at_a_word_and_says_so():
    cut = text.one_line("one  two\n\nthree four five six seven", 20)
    assert cut == "one two three four…"
    assert text.one_line(" short\ntext ", 20) == "short text"


def test_normalised_texts_differ_only_in_what_matters():
    assert text.normalised("Use Redis!") == text.normalised("use   redis")
    assert text.normalised("Use Redis 7") != text.normalised("Use Redis 6")


def test_a_digest_is_stable_and_keeps_its_parts_apart():
    assert text.digest("a", "b") == text.digest("a", "b")
    assert text.digest("a", "b") != text.digest("ab")
    assert len(text.digest("\ud800")) == 32


def test_unique_keeps_the_first_of_each():
    assert text.unique(["b", "a", "b"]) == ("b", "a")


@given(ANY)
def test_nothing_anyone_writes_breaks_the_words(anything):
    for term in text.stems(anything):
        assert term
    text.content_stems(anything)
    text.normalised(anything)


@given(ANY, st.integers(2, 80))
def test_one_line_is_one_line_and_never_too_long(anything, limit):
    line = text.one_line(anything, limit)
    assert len(line) <= limit
    assert "\n" not in line


@given(ANY)
def test_folding_twice_is_folding_once(anything):
    once = text.fold(anything)
    assert text.fold(once) == once


def test_words_that_were_forgotten_are_split_and_stemmed_alike():
    before = text.terms("decodingTokens")
    caches.clear_caches()
    assert text.terms.cache_info().currsize == text.stem.cache_info().currsize == 0
    assert text.terms("decodingTokens") == before


@every_row(
    ("said", "is_so"),
    [
        ("[REDACTED:private]", True),
        (" [REDACTED:private]\n[REDACTED:private]. ", True),
        ("please [REDACTED:private]", False),
        ("[REDACTED:private] [REDACTED:aws-key]", False),
        ("[REDACTED:aws-key]", False),
        ("", False),
        (None, False),
    ],
)
def test_a_text_is_private_if_nothing_else_is_said(said, is_so):
    assert text.is_private(said) is is_so


def test_threads_that_stem_at_the_same_time_do_not_mix_their_words():
    words = [
        f"{a}{b}{c}"
        for a in "bdfgkl"
        for b in ("ar", "int", "oun")
        for c in ("ing", "ed", "ations")
    ]
    alone = {word: text.stem(word) for word in words}
    stem = text.stem.__wrapped__  # without what is remembered of other calls
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(stem, words * 8))
    finally:
        sys.setswitchinterval(before)
    assert found == [alone[word] for word in words * 8]


def test_a_long_line_of_underscores_is_read_once():
    assert text.words("_" * 2_000_000) == []
    assert text.words("__init__ ___x" + "_" * 2_000_000) == ["__init__", "___x" + "_" * 2_000_000]


@every_row(
    ("token", "terms"),
    [
        ("我们使用Redis处理", {"我们", "使用", "redi", "处理"}),
        ("Redisを使った", {"redi", "使", "った"}),
        ("ｻｰﾊﾞｰ", {"サー", "ーバ", "バー"}),
        ("서버를", {"서버", "버를"}),
        ("서버", {"서버"}),
        ("Redis를", {"redi", "를"}),
        ("ตาราง", {"ตา", "รา", "าง"}),
        ("настройками", {text.terms("настройка")[0]}),
        ("الأخطاء", {text.terms("أخطاء")[0]}),
        ("त्रुटियों", {text.terms("त्रुटि")[0]}),
        ("l'erreur", {"erreur"}),
        ("ﬁle", {"file"}),
        ("łącze", {"lacz"}),
    ],
)
def test_what_a_word_of_another_language_is_indexed_as(token, terms):
    assert terms <= set(text.terms(token))
    assert text.words(token) == [token]


def test_signs_above_letters_stay_with_their_word():
    assert text.words("हिन्दी में ตั้งค่า cafe\u0301") == ["हिन्दी", "में", "ตั้งค่า", "cafe\u0301"]
    assert text.terms("cafe\u0301") == text.terms("café")
    assert text.fold("バグ") != text.fold("ハク")
    assert text.fold("й ё ł ı") == "и е l i"


@every_row(
    ("said", "languages"),
    [
        ("Warum schlägt die Verbindung fehl, wenn der Server neu startet?", ("german",)),
        ("Pourquoi la base est lente quand on la relit", ("french",)),
        ("The café in the Straße was closed because of the naïve resume", ()),
        ("x = 1; for i in range(10): print(i)", ()),
        ("Use el and la as variables, because the von Neumann code does", ()),
        ("", ()),
    ],
)
def test_the_language_of_a_text_is_told_by_its_function_words(said, languages):
    assert text.languages_of(said)[:1] == languages


def test_words_of_a_language_are_stemmed_as_in_it_and_as_in_english():
    found = set(text.stems("Konfigurationen", ("german",)))
    assert found >= set(text.terms("Konfigurationen"))
    assert found & set(text.stems("die Konfiguration", ("german",)))
    assert list(text.stems("decode_token 我们", ("german",))) == list(
        text.stems("decode_token 我们")
    )
