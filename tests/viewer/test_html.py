"""Text never becomes markup, and what is not seen is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.viewer.html import Markup, render, reveal, tag
from memd.viewer.wording import highlight, query_terms, write_body
from tests.tables import every_row
from tests.viewer.conftest import Elements


def test_text_is_escaped_and_markup_is_not():
    made = tag("p", "<script>", tag("b", "a & b"), class_="x")
    assert made == '<p class="x">&lt;script&gt;<b>a &amp; b</b></p>'


def test_a_part_of_markup_is_text_again():
    assert render(tag("b", "x")[:2]) == "&lt;b"
    assert render(Markup("<b>") + "<i>") == "&lt;b&gt;&lt;i&gt;"


def test_attributes_are_escaped_left_out_or_bare():
    made = tag("input", value='"><script>', required=True, checked=False, size=None, aria_label="a")
    assert made == '<input value="&quot;&gt;&lt;script&gt;" required aria-label="a">'


@every_row(
    "address",
    ["javascript:alert(1)", "JaVaScRiPt:x", "https://example.org/", "//example.org/", "/\\example.org",
     "/\t/example.org", "data:text/html,x", "", " /a", "\x00/a"],
)  # fmt: skip
def test_a_link_that_leads_elsewhere_is_an_error(address):
    with pytest.raises(ValueError, match="leads elsewhere"):
        tag("a", "x", href=address)


def test_links_to_this_server_and_page_are_made():
    assert tag("a", "x", href="/memory/1?q=a%20b") == '<a href="/memory/1?q=a%20b">x</a>'
    assert tag("a", "x", href="#m1") == '<a href="#m1">x</a>'


@every_row(
    ("text", "shown"),
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("pay\u200bpal", "pay⟨U+200B⟩pal"),
        ("a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"),
        ("x\x00\x1b[31m", "x⟨U+0000⟩⟨U+001B⟩[31m"),
        ("pass\u200dword", "pass⟨U+200D⟩word"),
        ("hi\U000e0041", "hi⟨U+E0041⟩"),
    ],
)
def test_what_nobody_sees_is_shown_by_its_code_point(text, shown):
    assert reveal(text) == shown


@every_row("text", ["👩‍👩‍👧 family", "می‌خواهم", "a\tb\nc", "❤️"])
def test_joiners_and_whitespace_that_have_a_use_stay(text):
    assert reveal(text) == text


@given(st.text(), st.text())
def test_no_text_opens_an_element(text, other):
    made = tag("p", text, tag("b", other), title=other)
    assert [name for name, _ in Elements(made).found] == ["p", "b"]


@given(st.text(), st.text())
def test_highlighting_keeps_every_character(text, query):
    for made in (highlight(text, query_terms(query)), write_body(text, query_terms(query))):
        assert Elements(render(made)).text.replace("\r", "\n") == Elements(
            render(text)
        ).text.replace("\r", "\n")


def test_words_of_a_query_are_marked_in_every_form():
    made = render(highlight("Retrying the getFileContent retry", query_terms("retries of content")))
    assert made == "<mark>Retrying</mark> the <mark>getFileContent</mark> <mark>retry</mark>"
