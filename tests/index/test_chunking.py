from hypothesis import given
from hypothesis import strategies as st

from memd.index.passages import passage_spans, passage_text, split_into_passages
from memd.models import Kind, Summary, Tier
from memd.text import words
from tests.tables import every_row


def summary(body="", *, title="", **more):
    return Summary(
        id=7, uid="u", project_id=1, session_id=None, kind=Kind.NOTE, tier=Tier.AGENT,
        source="agent", title=title, body=body, at=1, created_at=1, updated_at=1, rule="r", **more,
    )  # fmt: skip


def counts(passage):
    return {p.term: (p.in_title, p.in_body) for p in passage.postings}


def test_words_are_counted_by_stem_in_title_and_body():
    (only,) = split_into_passages(summary("Decoding decodes tokens", title="decode_token"))
    found = counts(only)
    assert found["decode_token"] == (1, 0)
    assert found["decod"] == (1, 2)
    assert found["token"] == (1, 1)


def test_a_word_that_is_repeated_without_end_is_counted_up_to_255():
    (only,) = split_into_passages(summary("no " * 390, title="no"))
    assert counts(only) == {"no": (1, 255)}
    assert only.length == 256


def test_tags_topic_and_file_names_are_found_with_every_passage():
    body = "word " * 900
    found = split_into_passages(
        summary(
            body, tags=("auth",), files=("/home/dev/ledger/login_view.py",), topic_key="user.diet"
        )
    )
    assert len(found) == 3
    for passage in found:
        terms = counts(passage)
        assert {"auth", "login_view", "login", "py", "user", "diet"} <= terms.keys()
        assert "ledger" not in terms
        assert "login_view.py" in passage.text


def test_the_title_is_repeated_with_every_passage_and_leads_its_embedded_text():
    whole = summary("word " * 900, title="Ledger totals")
    for passage in split_into_passages(whole):
        assert passage.title == "Ledger totals"
        assert counts(passage)["ledger"] == (1, 0)
        assert (
            passage_text(whole.title, whole.body, passage.start, passage.stop)
            == f"Ledger totals\n{whole.body[passage.start : passage.stop]}"
        )


def test_identifiers_are_split_for_the_full_text_index():
    (only,) = split_into_passages(summary("call getUserById and HTTPServer2", title="decode_token"))
    assert only.identifiers.split() == [
        "decode",
        "token",
        "get",
        "User",
        "By",
        "Id",
        "HTTP",
        "Server",
        "2",
    ]


@every_row("border", ["\n\n", "\n", ". "])
def test_a_cut_falls_on_the_last_border_of_its_kind(border):
    part = " ".join(["word"] * 90) + border
    cuts = passage_spans(part * 6)
    assert cuts == [(0, 4 * len(part)), (4 * len(part), 6 * len(part))]


def test_a_paragraph_border_is_preferred_to_a_later_line_or_sentence():
    body = "word " * 250 + "\n\n" + "word " * 100 + "\n" + "End. " + "word " * 300
    assert passage_spans(body)[0] == (0, 250 * 5 + 2)


def test_text_without_spaces_is_cut_between_characters():
    body = "数据库迁移失败" * 200
    assert [stop - start for start, stop in passage_spans(body)] == [400, 400, 400, 200]


@given(
    st.text(st.sampled_from("ab Z_. \n\n。é数1'"), max_size=300),
    st.integers(min_value=1, max_value=12),
)
def test_spans_cover_the_body_and_none_has_too_many_words(body, most):
    found = passage_spans(body, tokens_max=most)
    assert "".join(body[start:stop] for start, stop in found) == body
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    if "数" not in body:
        assert all(len(words(body[start:stop])) <= most for start, stop in found)
