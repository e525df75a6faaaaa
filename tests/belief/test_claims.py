from hypothesis import given
from hypothesis import strategies as st

from memd.belief.claims import TokenType, parse_claims, word_key
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/claims")


def tokens(text, type_):
    return [token.key for token in parse_claims(text).tokens if token.type is type_]


@every_row(("text", "keys"), TABLES["a_number_carries_its_unit_however_it_is_written"])
def test_a_number_carries_its_unit_however_it_is_written(text, keys):
    assert tokens(text, TokenType.NUMBER) == keys


@every_row(
    ("text", "type_", "keys"),
    [
        ("see src/app/auth.py.", TokenType.PATH, ["src/app/auth.py"]),
        ("at https://a.example/x?y=1, then", TokenType.PATH, ["https://a.example/x?y=1"]),
        ("edit main.py and .env", TokenType.PATH, ["main.py", ".env"]),
        ("all *.ts files", TokenType.PATH, ["*.ts"]),
        ("call os.path.join()", TokenType.IDENTIFIER, ["os.path.join"]),
        ("getUserById and decode_token", TokenType.IDENTIFIER, ["getUserById", "decode_token"]),
        ("run it with -v, -V or --Force", TokenType.IDENTIFIER, ["-v", "-V", "--Force"]),
        ("commit 3f2a9c1", TokenType.IDENTIFIER, ["3f2a9c1"]),
        ("in C++ or C#", TokenType.IDENTIFIER, ["c++", "c#"]),
        ("needs v1.2 or 1.2.3-rc1", TokenType.VERSION, ["1.2", "1.2.3-rc1"]),
        ("on 2026-05-01 at 10:30 or Monday", TokenType.DATE, ["2026-05-01", "10:30", "monday"]),
        ("x >= 5 ✅ [x] €", TokenType.SYMBOL, [">=", "✅", "[x]", "€"]),
        ("it doesn’t, can't, never and no longer", TokenType.NEGATION, ["not"] * 4),
    ],
)
def test_names_and_values_have_types(text, type_, keys):
    assert tokens(text, type_) == keys


def test_a_log_stamp_at_the_head_of_a_line_is_dropped():
    assert tokens("2026-01-02T10:11:12Z build ok\n[10:11:12] done", TokenType.DATE) == []
    assert tokens("the window opens at 2026-01-02T10:11:12Z", TokenType.DATE) != []


def test_a_text_falls_into_sentences_and_clauses():
    reading = parse_claims("Use Redis, not SQLite. It is quick\nand small.")
    said = [
        [" ".join(t.text for t in clause) for clause in sentence] for sentence in reading.sentences
    ]
    assert said == [["Use Redis", "not SQLite"], ["It is quick and", "small"]]


def test_a_word_is_known_by_its_stem_and_a_few_synonyms():
    assert word_key("caching") == word_key("cached")
    assert word_key("remove") == word_key("deleted")
    assert word_key("basically") == ""


@given(st.text(max_size=300))
def test_any_text_can_be_read(text):
    assert all(token.key and token.text for token in parse_claims(text).tokens)


@every_row("piece", ["-", "a-", "\n", "/", "1,", "`a` ", "a.", "~/", "@", "["])
def test_a_long_hostile_text_is_read_in_linear_time(piece):
    # Quadratic behaviour would run into the suite's timeout.
    assert parse_claims(piece * (16_384 // len(piece))) is not None
