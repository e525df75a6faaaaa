"""The pages in a real Chromium, where there is one: shown, without a finding of axe, an error, or a foreign request.

`scripts/end-to-end view` is the long form of this.
"""

import pytest

from tests.viewer.conftest import NOW
from tests.viewer.test_pages import HOSTILE

pytest.importorskip("playwright", reason="no Playwright: scripts/test installs it")
browsing = pytest.importorskip("e2e.browsing")

PAGES = ("/?project=ledger", "/search?q=sessions", "/memory/1")


@pytest.fixture(scope="module")
def chromium():
    try:
        browsing.find_chromium()
    except browsing.Impossible as missing:
        pytest.skip(str(missing))
    with browsing.open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def window(chromium, reading):
    window = browsing.Visitor(chromium, reading.viewer.make_address())
    yield window
    window.close()


@pytest.fixture
def visitor(window):
    """The one window, as wide as at first: another one takes a second."""
    window.page.set_viewport_size(browsing.DESKTOP)
    return window


def test_pages_are_shown_to_everyone_and_ask_nobody_else(visitor):
    for path in PAGES:
        visitor.open(path)
        assert visitor.find_barriers() == [], path
    assert (visitor.errors, visitor.foreign) == ([], [])


def test_hits_appear_while_one_types_and_lead_to_their_memory(visitor):
    visitor.open("/search")
    visitor.page.keyboard.type("keep sessions sqlite")
    assert visitor.wait_for(lambda: visitor.page.locator(".hits mark").count() > 0)
    visitor.follow(visitor.page.locator(".hits a.title").first.click, "/memory/")
    visitor.follow(visitor.page.go_back, "/search?q=keep+sessions+sqlite")
    assert visitor.errors == []


def test_the_arrows_lead_from_the_search_field_to_a_hit_and_back_and_enter_opens_it(visitor):
    visitor.open("/search?q=keep+sessions+sqlite")
    focused = "document.activeElement.className || document.activeElement.id"
    for key, place in (("ArrowDown", "title"), ("ArrowUp", "q"), ("ArrowDown", "title")):
        visitor.page.keyboard.press(key)
        assert visitor.page.evaluate(focused) == place
    visitor.follow(lambda: visitor.page.keyboard.press("Enter"), "/memory/")


def test_a_question_mark_lists_the_keys(visitor):
    visitor.open("/")
    visitor.page.keyboard.press("?")
    assert visitor.page.locator("#keys").is_visible()
    assert visitor.find_barriers() == []
    visitor.page.keyboard.press("Escape")
    assert not visitor.page.locator("#keys").is_visible()


def test_a_narrow_head_shows_that_there_is_more(visitor):
    visitor.page.set_viewport_size(browsing.PHONE)
    visitor.open("/")
    nav = visitor.page.locator(".head nav")
    assert nav.get_attribute("class") == "more"
    nav.evaluate("one => one.scrollLeft = one.scrollWidth")
    assert visitor.wait_for(lambda: nav.get_attribute("class") == "before")
    visitor.open("/health")
    assert visitor.page.locator("nav [aria-current]").bounding_box()["x"] < browsing.PHONE["width"]


def test_a_session_is_saved_as_a_file(visitor, call, tmp_path):
    session = call("sessions", project="ledger")["sessions"][-1]
    visitor.open(f"/session/{session['key']}")
    with visitor.page.expect_download() as saved:
        visitor.page.click("button[data-save]")
    saved.value.save_as(tmp_path / "session.html")
    assert "Content-Security-Policy" in (tmp_path / "session.html").read_text(encoding="utf-8")
    assert (visitor.errors, visitor.foreign) == ([], [])


def test_a_hostile_text_does_nothing(visitor, call):
    # In a project of its own: a memory of all projects stands first in each timeline that other tests look at.
    memory = {"text": HOSTILE[0], "title": HOSTILE[0], "project": "hostile", "at": NOW}
    number = call("remember", **memory)["id"]
    visitor.open(f"/memory/{number}")
    assert visitor.page.locator("main img, main script").count() == 0
    assert (visitor.dialogs, visitor.errors) == ([], [])


def test_a_used_link_and_a_tab_without_a_key_show_nothing(chromium, visitor):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(visitor.origin + "/memory/1")
    page.wait_for_selector("main h1:has-text('Locked')")
    context.close()
