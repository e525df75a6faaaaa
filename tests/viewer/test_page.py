"""Text never becomes markup, and what is not seen is shown; every template keeps to the rules that make it so."""

import re
import time
from importlib import resources

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.viewer.page import (
    Visit,
    highlight,
    make_page,
    query_terms,
    render,
    render_markdown,
    render_title,
    reveal,
    strip_code,
)
from tests.tables import every_row, read_tables
from tests.viewer.conftest import NOW, Elements

TABLES = read_tables("viewer/page")


TEMPLATES = {
    one.name: one.read_text(encoding="utf-8")
    for one in resources.files("memd.viewer").joinpath("templates").iterdir()
}
VISIT = Visit(dict, NOW, "all")


def write_message(text):
    return render("message.html", VISIT, section="", heading=text, words=text, comes_back=False)


@given(st.text(alphabet="<>/&\"' =abp\x00", min_size=1))
@example("<script>alert(1)</script>")
def test_no_text_opens_an_element(text):
    names, made = ([name for name, _ in Elements(write_message(one)).found] for one in ("x", text))
    assert made == names


# What would let a text out of its place: each template is looked at, not what it writes today.


@every_row("name", sorted(TEMPLATES))
def test_no_template_trusts_a_text(name):
    assert not re.search(r"\|\s*safe|autoescape|Markup", TEMPLATES[name])


@every_row("name", sorted(TEMPLATES))
def test_every_attribute_of_a_template_is_quoted_and_none_is_a_script_or_a_style(name):
    text = TEMPLATES[name]
    assert not re.search(
        r"""[\w-]=(?:\{\{|')""", re.sub(r"\{[%{].*?[%}]\}", lambda m: m[0].replace("=", ""), text)
    )
    assert not re.search(r"\s(?:on\w+|style)=\"", text)


@every_row("name", sorted(TEMPLATES))
def test_every_address_of_a_template_is_made_by_the_visit_or_of_this_server(name):
    made = re.findall(
        r'(?:href|src|action|data-(?:load|act|go|save))="(.*?)"(?=[\s>{])', TEMPLATES[name]
    )
    for address in made:
        is_made = re.match(r"\{\{ (?:link|visit\.same_page)\(", address)
        is_computed = address in {"{{ node.href }}", "{{ place }}"}  # by `Visit.link`
        assert (
            is_made
            or is_computed
            or re.match(r"/(?!/)[\w/.-]*(?:\{\{ action \}\})?$|#content$", address)
        ), address


@every_row(
    "path",
    ["javascript:alert(1)", "https://example.org/", "//example.org/", "data:text/html,x", "", " /a"],
)  # fmt: skip
def test_a_link_that_leads_elsewhere_is_an_error(path):
    with pytest.raises(ValueError, match="leads elsewhere"):
        VISIT.link(path)


def test_links_to_this_server_are_made():
    assert VISIT.link("/memory/1", q="a b") == "/memory/1?q=a+b"


@every_row(("text", "shown"), TABLES["what_nobody_sees_is_shown_by_its_code_point"])
def test_what_nobody_sees_is_shown_by_its_code_point(text, shown):
    assert reveal(text) == shown
    assert shown in Elements(write_message(text)).text


@every_row("text", ["👩‍👩‍👧 family", "می‌خواهم", "a\tb\nc", "❤️"])
def test_joiners_and_whitespace_that_have_a_use_stay(text):
    assert reveal(text) == text


@given(st.text(), st.text())
def test_highlighting_keeps_every_character(text, query):
    marked, plain = highlight(text, query_terms(query)), highlight(text, ())
    assert Elements(marked).text == Elements(plain).text


@pytest.mark.parametrize(
    ("title", "html", "plain"), TABLES["code_in_a_title_is_code_on_a_page_and_plain_in_the_window"]
)
def test_code_in_a_title_is_code_on_a_page_and_plain_in_the_window(title, html, plain):
    assert (render_title(title, 80), strip_code(title)) == (html, plain)
    assert make_page(title).title == f"{plain} · memd"


@given(st.text(alphabet="`<>&\"'ab …"))
def test_no_title_opens_an_element_that_it_does_not_have(title):
    assert not set("<>\"'") & set(re.sub("</?code>", "", render_title(title, 40)))


def test_a_title_is_cut_and_words_are_marked_in_its_code():
    assert render_title("see `ledger.py` now", 30, query_terms("ledger")) == (
        "see <code><mark>ledger</mark>.py</code> now"
    )
    assert render_title("see `ledger.py and more` now", 14) == "see <code>ledger.p…</code>"


def test_words_of_a_query_are_marked_in_every_form():
    made = highlight("Retrying the getFileContent retry", query_terms("retries of content"))
    assert made == "<mark>Retrying</mark> the <mark>getFileContent</mark> <mark>retry</mark>"


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────


@every_row(("text", "shown"), TABLES["markdown_is_shown_formatted"])
def test_markdown_is_shown_formatted(text, shown):
    assert render_markdown(text).strip() == shown


@every_row("text", TABLES["markdown_makes_no_link_no_picture_and_no_markup_of_its_own"])
def test_markdown_makes_no_link_no_picture_and_no_markup_of_its_own(text):
    page = Elements(render_markdown(text))
    names = {name for name, _ in page.found}
    assert names <= {"p", "code", "pre", "blockquote", "table", "thead", "tbody", "tr", "th", "td"}
    assert not any(set(attributes) - {"class"} for _, attributes in page.found)
    assert set(re.findall(r"\w+", page.text)) >= set(
        re.findall(r"\b(?:script|iframe|svg|img|example)\b", text)
    )


@given(st.text(alphabet="<>&\"'`*_~#-|[]()!: \n\\x1.", max_size=200))
def test_no_markdown_opens_an_element_that_it_does_not_have(text):
    allowed = {"p", "b", "em", "s", "code", "pre", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
    page = Elements(render_markdown(text))
    assert {name for name, _ in page.found} <= allowed
    assert not any(set(attributes) - {"class", "start"} for _, attributes in page.found)


@every_row("text", ["*a" * 10_000, "- " * 10_000, ">" * 20_000, "[" * 20_000, "~~a" * 6_000])
def test_a_memory_that_is_all_signs_is_soon_shown(text):
    began = time.process_time()
    render_markdown(text)
    assert time.process_time() - began < 20


def test_pages_of_a_project_are_found_by_what_tells_it_from_its_namesakes():
    keys = ("/home/dev/a/ledger", "/home/dev/b/ledger", "/home/dev/web", "/srv/a/ledger")
    projects = [{"key": key, "name": key.rpartition("/")[2]} for key in keys]
    visit = Visit(dict, NOW, "all", projects)
    labels = {name: label for name, label, _ in visit.choices("/")}
    assert labels == {
        "all": "All projects",
        "/home/dev/a/ledger": "ledger · dev/a",
        "/home/dev/b/ledger": "ledger · b",
        "/home/dev/web": "web",
        "/srv/a/ledger": "ledger · srv/a",
    }


@pytest.mark.parametrize("key", ["/ledger", "/x/ledger"])
def test_a_project_whose_path_is_the_end_of_anothers_has_a_label_too(key):
    projects = [{"key": one, "name": "ledger"} for one in ("/ledger", "/x/ledger")]
    assert Visit(dict, NOW, "all", projects).label_project(key).startswith("ledger · ")
