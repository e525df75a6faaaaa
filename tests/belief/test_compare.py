from hypothesis import assume, given
from hypothesis import strategies as st

from memd.belief.claims import parse_claims
from memd.belief.compare import Agreement, compare, is_reordered
from tests.belief.value_pairs import DIFFERENT_VALUES, LITERALS, SAME_STATEMENTS
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/compare")

DIFFERENT = TABLES["DIFFERENT"]
RESTATED = TABLES["RESTATED"]


@every_row(("older", "newer", "aspect"), DIFFERENT)
def test_different_texts_disagree_in_the_named_aspect(older, newer, aspect):
    comparison = compare(older, newer)
    assert comparison.agreement is Agreement.DIFFERS
    assert aspect in comparison.aspects, comparison.reason
    assert not compare(newer, older).agrees


@every_row(("older", "newer"), RESTATED)
def test_restated_texts_agree(older, newer):
    comparison = compare(older, newer)
    assert comparison.agrees, comparison.reason
    assert compare(newer, older).agrees


def test_the_reason_is_written_in_words():
    assert compare("wait 30 s", "wait 60 s").reason == "number: 30 s → 60 s"
    assert compare("Enable it", "Disable it").reason == "antonym: enable/disable"
    assert compare("Decided to cache", "Decided not to cache").reason == "negation: not cache"


def test_an_additional_sentence_is_an_elaboration_and_reported():
    comparison = compare("Use pytest.", "Use pytest. It needs a database.")
    assert (comparison.agreement, comparison.gained, comparison.lost) == (
        Agreement.RESTATED,
        ("It needs a database",),
        (),
    )
    assert compare("Use pytest. It needs a database.", "Use pytest.").lost == (
        "It needs a database",
    )


def test_a_title_that_repeats_the_body_is_not_a_difference():
    assert compare(
        "Use Redis\nUse Redis for sessions.", "Use Redis for sessions\nUse Redis for sessions."
    ).agrees


VOCABULARY = (
    "cache redis session timeout 10 30 60 s not never enable disable src/a.py b.py v1.2 from to over "
    "and , . ? use we you is was only `user` users getUser -v > ✅ because Monday 2026-05-01"
)
WORDS = st.sampled_from(VOCABULARY.split())
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@given(st.text(max_size=200) | TEXTS)
def test_every_text_is_the_same_as_itself(text):
    assert compare(text, text).agreement is Agreement.SAME


@given(TEXTS, TEXTS)
def test_refusing_does_not_depend_on_which_text_is_newer(one, other):
    assert compare(one, other).agrees == compare(other, one).agrees


@given(TEXTS, st.integers(0, 10**6), st.integers(0, 10**6), TEXTS)
def test_a_changed_number_always_refuses(head, was, now, tail):
    assume(was != now)
    numbers = {int(word) for word in f"{head} {tail}".split() if word.isdigit()}
    assume(not {was, now} & numbers)
    assert not compare(f"{head} wait {was} ticks {tail}", f"{head} wait {now} ticks {tail}").agrees


@given(TEXTS)
def test_a_denied_text_never_merges_with_itself_affirmed(text):
    assert not compare(f"{text}. We cache profiles", f"{text}. We do not cache profiles").agrees


@given(
    st.lists(
        st.sampled_from(["we keep sessions in redis", "use pytest", "wait 30 s", "never push"]),
        unique=True,
    ),
    st.randoms(),
)
def test_the_order_of_sentences_does_not_matter(sentences, random):
    shuffled = list(sentences)
    random.shuffle(shuffled)
    assert compare(". ".join(sentences), ". ".join(shuffled).upper()).agrees


def test_reordered_leading_phrases_may_belong_to_something_else():
    one = parse_claims("In CI, debug is on; in staging, it is off")
    assert is_reordered(one, parse_claims("In staging, debug is on; in CI, it is off"))
    assert not is_reordered(one, one)
    assert not is_reordered(parse_claims("In CI, it is on"), parse_claims("It is on, in CI"))


def test_the_order_of_a_sequence_matters():
    one = parse_claims("Build the docs, then deploy the site")
    assert is_reordered(one, parse_claims("Deploy the site, then build the docs"))
    assert not is_reordered(one, parse_claims("Build the docs then deploy the site"))


@every_row(("one", "other"), [pair for pairs in DIFFERENT_VALUES.values() for pair in pairs])
def test_statements_that_differ_in_a_value_are_never_the_same(one, other):
    for frame in ("{}", "Decision: {}.", "We agreed: {} (see the notes)", "{}\nIt was reviewed."):
        assert not compare(frame.format(one), frame.format(other)).agrees
        assert not compare(frame.format(other), frame.format(one)).agrees


@every_row(("one", "other"), SAME_STATEMENTS)
def test_other_spellings_of_a_statement_are_the_same(one, other):
    assert compare(one, other).agrees, compare(one, other).reason
    assert compare(other, one).agrees


PLAIN_WORDS = st.lists(
    st.sampled_from(
        [
            "the",
            "cache",
            "of",
            "each",
            "worker",
            "keeps",
            "its",
            "rows",
            "and",
            "we",
            "check",
            "them",
            "with",
            "care",
        ]
    ),
    max_size=5,
).map(" ".join)


@given(PLAIN_WORDS, PLAIN_WORDS, st.sampled_from(LITERALS), st.sampled_from(LITERALS))
def test_another_literal_in_the_same_words_is_another_statement(head, tail, was, now):
    assume(was != now)
    one, other = (f"{head} uses {value} {tail}".strip() for value in (was, now))
    assert not compare(one, other).agrees
    assert not compare(other, one).agrees
