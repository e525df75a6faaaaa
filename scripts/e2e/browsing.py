"""A Chromium that looks at `memd view`, and notes what must not happen: errors, foreign requests, findings of axe."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from axe_core_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from e2e.claude_code import Impossible

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "microsoft-edge")
_WAIT_S = 20.0
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def find_chromium() -> str:
    """The program, by MEMD_CHROMIUM or in PATH. Raises Impossible."""
    named = os.environ.get("MEMD_CHROMIUM")
    found = named or next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise Impossible(
            "no Chromium was found: install one (Debian: apt install chromium), or name it in MEMD_CHROMIUM"
        )
    return found


@contextlib.contextmanager
def open_chromium() -> Iterator[Browser]:
    """A browser without a window."""
    flags = ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # it refuses root otherwise
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        try:
            yield browser
        finally:
            browser.close()


def find_barriers(page: Page) -> list[str]:
    """What axe finds on a page: rule, and the first element of each."""
    found = Axe().run(page)["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found]


class Visitor:
    """One window of a browser that opens a viewer's link, and what went wrong in it."""

    def __init__(self, browser: Browser, address: str, **settings: Any) -> None:
        self.origin = address.partition("/#")[0]
        self.context: BrowserContext = browser.new_context(viewport=DESKTOP, **settings)
        self.context.set_default_timeout(_WAIT_S * 1_000)
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.dialogs: list[str] = []
        self.page = self.new_page()
        self.page.goto(address)
        self.wait_shown()

    def new_page(self) -> Page:
        """Another tab, watched like the first."""
        page = self.context.new_page()
        page.on("console", lambda said: self._note_console(said.type, said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._note_request(request.url))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        return page

    def _note_console(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.errors.append(text)

    def _note_request(self, url: str) -> None:
        if not url.startswith((f"{self.origin}/", "data:")):
            self.foreign.append(url)

    def wait_shown(self, page: Page | None = None) -> None:
        """Wait until the page has its content, and what it loads later."""
        shown = page or self.page
        shown.wait_for_selector("#page:not([aria-busy]) h1", state="attached")
        shown.wait_for_function("!document.querySelector('[data-load]')")
        shown.wait_for_load_state("networkidle")

    def open(self, path: str) -> str:
        """Show an address as if it was typed; the text of the page."""
        self.page.goto(self.origin + path)
        self.wait_shown()
        return self.text

    def follow(self, click: Callable[[], object], path: str | None = None) -> str:
        """Do something that leads to another page; its text."""
        before = self.page.url
        click()
        self.page.wait_for_function("url => location.href !== url", arg=before)
        self.wait_shown()
        if path is not None and not self.path.startswith(path):
            raise AssertionError(f"that led to {self.path}, not to {path}")
        return self.text

    @property
    def text(self) -> str:
        """What a person reads."""
        return self.page.inner_text("body")

    @property
    def path(self) -> str:
        """The address without its origin."""
        return self.page.url.removeprefix(self.origin)

    def find_barriers(self) -> list[str]:
        """What axe finds: rule, and the first element of each."""
        return find_barriers(self.page)

    def overflows(self) -> bool:
        """Whether the page is wider than its window."""
        width = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
        return bool(self.page.evaluate(width) > 0)

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """Whether it becomes true in good time."""
        deadline = time.monotonic() + _WAIT_S
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.page.wait_for_timeout(50)
        return True

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Write what is seen to a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(file), full_page=whole)

    def close(self) -> None:
        """Close all its tabs."""
        self.context.close()
