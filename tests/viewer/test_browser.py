"""The pages in a real Chromium, where there is one: shown, without a finding of axe, an error, or a foreign request.

`scripts/e2e-view` is the long form of this.
"""

import pytest

from tests.viewer.conftest import NOW
from tests.viewer.test_pages import HOSTILE

pytest.importorskip("playwright", reason="no Playwright: scripts/test installs it")
browsing = pytest.importorskip("e2e.browsing")

PAGES = (
    "/?project=ledger",
    "/search?q=sessions",
    "/timeline?project=ledger",
    "/memory/1",
    "/sessions",
    "/projects",
    "/health",
)


@pytest.fixture(scope="module")
def chromium():
    try:
        browsing.find_chromium()
    except browsing.Impossible as missing:
        pytest.skip(str(missing))
    with browsing.open_chromium() as browser:
        yield browser


@pytest.fixture
def visitor(chromium, reading):
    visitor = browsing.Visitor(chromium, reading.viewer.make_address())
    yield visitor
    visitor.close()


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


def test_a_hostile_text_does_nothing(visitor, call):
    number = call("remember", text=HOSTILE[0], title=HOSTILE[0], at=NOW)["id"]
    visitor.open(f"/memory/{number}")
    assert visitor.page.locator("main img, main script").count() == 0
    assert (visitor.dialogs, visitor.errors) == ([], [])


def test_a_used_link_and_a_tab_without_a_key_show_nothing(chromium, visitor):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(visitor.origin + "/memory/1")
    page.wait_for_selector("main h1:has-text('Locked')")
    context.close()
