"""`memd view` in a real Chromium: what no test of memd's own can show, in about two minutes.

    scripts/end-to-end view [--pictures DIR] [--documents] [--keep]

A daemon in a temporary home learns the sample sessions of tests/data and some memories of a made-up project. Every page
is opened by itself, dark and light, at a desktop's and a phone's width, and examined by axe; every action is done
with the mouse or the keyboard; the daemon is restarted under a page; other origins, a used link and hostile
texts try to get in. No error may stand in the console, and nothing may be requested from elsewhere. A line per
check; exit 0 if all hold, 1 if not, 2 if it cannot run here. `--pictures DIR` keeps a picture of each page.
"""

import argparse
import contextlib
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from e2e.browsing import PHONE, Visitor, find_barriers, find_chromium, open_chromium
from e2e.claude_code import Impossible
from e2e.workspace import Memd, Report
from memd.client import Client

ROOT = Path(__file__).resolve().parent.parent.parent
SESSIONS = ROOT / "tests" / "data" / "claude-code" / "ledger" / "projects"
MEMORIES = ROOT / "tests" / "data" / "relevance" / "memories.jsonl"
PROJECT = "/home/dev/ledger"
HOSTILE = "<script>alert('memory')</script><img src=x onerror=alert(1)> [x](javascript:alert(2)) \u202etxt.exe"
_FIELDS = ("kind", "title", "at", "source", "tier", "tags", "files", "topic_key")


class Stage:
    """A daemon with something to show, and viewers on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {"HOME": str(home), "MEMD_HOME": str(home), "PATH": "/usr/bin:/bin"}
        self.memd = Memd(self.environ, home)

    def call(self, method: str, **params: Any) -> Any:
        """One control call."""
        with Client(self.memd.paths.socket, 60) as client:
            return client.call(f"memd/{method}", params)

    def fill(self) -> None:
        """Let the daemon learn what it shows."""
        self.memd.run("start")
        self.memd.run("import", "claude-code", str(SESSIONS))
        told = [json.loads(line) for line in MEMORIES.read_text(encoding="utf-8").splitlines()]
        memories = [
            {
                "text": one["body"],
                "project": PROJECT if one["project"] == "ledger" else one["project"],
                **{name: one[name] for name in _FIELDS if one.get(name)},
            }
            for one in told
        ]
        self.call("remember", memories=memories)
        start = {
            "session_id": "5b0c7c5e-0000-4000-8000-00000000e2e0",
            "hook_event_name": "SessionStart",
            "source": "startup",
            "cwd": PROJECT,
        }
        self.call("capture", client="claude-code", payload=start, inject=True)
        prompt = {
            "session_id": start["session_id"],
            "cwd": PROJECT,
            "hook_event_name": "UserPromptSubmit",
            "prompt": "where do we keep sessions, in Redis or in SQLite?",
            "prompt_id": "p1",
        }
        self.call("capture", client="claude-code", payload=prompt, inject=True)
        self.memd.settle()
        self.memd.run("backup")

    @contextlib.contextmanager
    def view(self, *options: str) -> Iterator[str]:
        """A running `memd view`; its link."""
        process = subprocess.Popen(
            [str(self.memd.program), "view", "--no-open", *options],
            env=self.environ, cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            said = "".join(process.stdout.readline() for _ in range(3))
            found = re.search(r"http://\S+", said)
            if found is None:
                raise Impossible(f"memd view printed no link: {said!r}")
            yield found[0]
        finally:
            process.terminate()
            process.wait(30)


def find_pages(stage: Stage) -> dict[str, str]:
    """Name → address of each kind of page, with something on it."""
    decision = stage.call("list", project=PROJECT, kinds=["decision"], include_superseded=True)[
        "memories"
    ]
    replaced = next(one for one in decision if one["superseded_by"])
    sessions = stage.call("sessions")["sessions"]
    session = next(one for one in sessions if one["shown"])
    read = max(sessions, key=lambda one: int(one["memories"]))
    at = time.strftime("%Y-%m", time.localtime(replaced["at"] / 1000))
    number = replaced["superseded_by"]
    return {
        "home": "/",
        "search": "/search?q=where+do+we+keep+sessions",
        "search-empty": "/search",
        "search-nothing": "/search?q=zeppelin+airship&speaker=user",
        "why-not": f"/whynot?q=sessions&id={replaced['id']}",
        "timeline-year": f"/timeline?at={at[:4]}",
        "timeline-month": f"/timeline?at={at}",
        "memory": f"/memory/{number}",
        "memory-replaced": f"/memory/{replaced['id']}",
        "file": f"/node?id=file:{PROJECT}/auth.py",
        "memories": "/memories?kind=decision&superseded=1",
        "inbox": "/inbox",
        "sessions": "/sessions",
        "session": f"/session/{session['key']}",
        "session-read": f"/session/{read['key']}",
        "told": "/told",
        "context": "/context",
        "projects": "/projects",
        "project": "/project?name=ledger",
        "health": "/health",
        "all": "/?project=all",
        "edit": f"/memory/{number}/edit",
        "pin": f"/memory/{number}/pin",
        "judge": f"/judge/{number}/{replaced['id']}",
        "forget": f"/memory/{number}/forget",
        "scrub": "/scrub",
        "forget-words": "/forget",
        "rename": "/project/rename?name=ledger",
        "merge": "/project/merge?name=ledger",
        "switch": "/project/switch?name=ledger",
        "away": "/memory/999999",
    }


def look_at_pages(
    report: Report,
    browser: Browser,
    stage: Stage,
    pictures: Path | None,
    *,
    schemes: tuple[str, ...] = ("light", "dark"),
) -> None:
    """Every page: shown, without a finding of axe, no wider than a phone, without errors or foreign requests."""
    pages = find_pages(stage)
    for scheme in schemes:
        report.act(f"Pages, {scheme}")
        with stage.view("--edit", "--project", PROJECT) as link:
            visitor = Visitor(browser, link, color_scheme=scheme)
            for name, path in pages.items():
                visitor.open(path)
                barriers = visitor.find_barriers()
                if pictures:
                    visitor.picture(pictures / scheme / f"{name}.png")
                visitor.page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # width and height
                too_wide = visitor.overflows()
                if name == "home":  # whose head every page has
                    barriers += visitor.find_barriers()
                elif name == "told":
                    inside = "[...document.querySelectorAll('.wide')].every(one => one.scrollWidth <= one.clientWidth)"
                    fits = visitor.page.evaluate(inside)
                    report.check("the tables of told fit a phone", fits)
                if pictures:
                    visitor.picture(pictures / f"{scheme}-phone" / f"{name}.png")
                visitor.page.set_viewport_size({"width": 1280, "height": 900})
                why = "; ".join(barriers) or "wider than a phone"
                report.check(f"{name} is open to everyone", not barriers and not too_wide, why)
            # A page of a memory that is not there is answered with 404, which Chromium notes.
            errors = [one for one in visitor.errors if "404" not in one]
            report.check("no error in the console", not errors, errors[:3])
            report.check(
                "nothing was requested from elsewhere", not visitor.foreign, visitor.foreign[:3]
            )
            visitor.close()


def search_as_one_types(report: Report, browser: Browser, stage: Stage) -> None:
    """Search, filters, the score's parts, why not; back and forward; links; the keyboard alone."""
    report.act("Search and keyboard")
    with stage.view("--project", PROJECT) as link:
        visitor = Visitor(browser, link)
        page = visitor.page
        _type_a_question(report, visitor)
        _walk_through_hits(report, visitor)
        visitor.open("/")
        for _ in range(4):
            page.keyboard.press("Tab")
        report.check(
            "the focus is seen",
            page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none",
        )
        _walk_with_tab(report, visitor)
        _open_other_tabs(report, browser, visitor)
        report.check("no error in the console", not visitor.errors, visitor.errors[:3])
        visitor.close()


def _type_a_question(report: Report, visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("/")
    page.wait_for_selector("#q:focus")
    page.keyboard.type("keep sessions sqlite", delay=15)
    report.check(
        "hits appear while one types",
        visitor.wait_for(lambda: page.locator(".hits .memory").count() > 0),
    )
    report.check("the field keeps its focus", page.evaluate("document.activeElement.id") == "q")
    report.check("words are marked", page.locator(".hits mark").count() > 0)
    report.check(
        "the address has the question", "q=keep+sessions+sqlite" in visitor.path, visitor.path
    )
    page.locator(".scored summary").first.click()
    report.check("a score opens into its parts", page.locator(".parts").first.is_visible())
    page.locator("summary", has_text="Filters").click()
    page.select_option("select[name=kind]", "decision")
    report.check(
        "a filter chooses",
        visitor.wait_for(
            lambda: set(page.locator(".hits .kind").all_inner_texts()) == {"decision"}
        ),
    )


def _walk_through_hits(report: Report, visitor: Visitor) -> None:
    page = visitor.page
    address = visitor.path
    page.reload()
    visitor.wait_shown()
    report.check(
        "a reload shows the same",
        visitor.path == address and page.locator(".hits .memory").count() > 0,
    )
    visitor.follow(lambda: page.select_option("select[data-choose]", label="All projects"))
    kept = "project=all" in visitor.path and "q=keep" in visitor.path
    report.check("another project is asked the same", kept, visitor.path)
    visitor.follow(page.go_back)
    page.focus("#q")
    page.keyboard.press("ArrowDown")
    visitor.follow(lambda: page.keyboard.press("Enter"), "/memory/")
    report.check("an arrow and Enter open a hit from the search field", True)
    visitor.follow(page.go_back)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    report.check("a question mark lists the keys", page.locator("#keys").is_visible())
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    visitor.follow(lambda: page.keyboard.press("Enter"), "/memory/")
    report.check("j and Enter open a hit", visitor.path.startswith("/memory/"))
    report.check(
        "the heading has the focus", page.evaluate("document.activeElement.tagName") == "H1"
    )
    visitor.follow(page.go_back)
    report.check(
        "back leads to the answer",
        visitor.path == address and page.locator(".hits .memory").count() > 0,
    )
    page.fill("input[name=id]", "1")
    visitor.follow(lambda: page.keyboard.press("Enter"), "/whynot")
    report.check("it is told why not", "It " in page.inner_text("main"))


def _walk_with_tab(report: Report, visitor: Visitor) -> None:
    """Reach every link of a page with the Tab key."""
    visitor.open("/health")
    links = visitor.page.locator("#page a:visible").count()
    reached: set[str] = set()
    for _ in range(links + 30):
        visitor.page.keyboard.press("Tab")
        reached.add(visitor.page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
    report.check("Tab reaches every link", len(reached) >= links, f"{len(reached)} of {links}")


def _open_other_tabs(report: Report, browser: Browser, visitor: Visitor) -> None:
    other = visitor.new_page()
    other.goto(f"{visitor.origin}/timeline")
    visitor.wait_shown(other)
    report.check("a link opens in another tab", "Locked" not in other.inner_text("main"))
    other.close()
    stranger = browser.new_context()
    page = stranger.new_page()
    page.goto(f"{visitor.origin}/search?q=x")
    page.wait_for_selector("main h1:has-text('Locked')")
    report.check(
        "without a key a page says how to get one",
        "Press Enter in the terminal" in page.inner_text("main"),
    )
    report.check("a locked page is open to everyone", not find_barriers(page), find_barriers(page))
    stranger.close()


def change_things(report: Report, browser: Browser, stage: Stage) -> None:
    """Every action, by its own page."""
    report.act("Actions")
    texts = (
        "The cache holds 10 minutes",
        "The cache holds forever",
        "Forget this: it is about walruses",
        "Our codename is bluewhale",
    )
    ids = [stage.call("remember", text=one, project="/home/dev/actions")["id"] for one in texts]
    with stage.view("--edit", "--project", "/home/dev/actions") as link:
        visitor = Visitor(browser, link)
        _change_memories(report, visitor, ids)
        _erase_things(report, visitor, ids)
        _change_projects(report, visitor)
        report.check("no error in the console", not visitor.errors, visitor.errors[:3])
        visitor.close()


def _press(visitor: Visitor, button: str) -> str:
    """Press a button that leads to another page; its text."""
    return visitor.follow(lambda: visitor.page.click(f"button:has-text('{button}')"))


def _choose(visitor: Visitor, link: str) -> str:
    return visitor.follow(lambda: visitor.page.click(f"a:has-text('{link}')"))


def _change_memories(report: Report, visitor: Visitor, ids: list[int]) -> None:
    page = visitor.page
    visitor.open(f"/memory/{ids[0]}")
    _choose(visitor, "Edit…")
    page.fill("textarea[name=text]", "The cache holds 20 minutes")
    page.fill("input[name=reason]", "mistyped")
    text = _press(visitor, "Save as a new version")
    is_new = "The cache holds 20 minutes" in text and "mistyped" in text
    report.check("an edit leads to the new version", is_new)
    new = int(visitor.path.rpartition("/")[2].partition("?")[0])
    _choose(visitor, "Take the edit back…")
    report.check("and is taken back", f"#{ids[0]} holds again" in _press(visitor, "Take it back"))
    visitor.open(f"/judge/{new}/{ids[0]}")
    page.fill("input[name=reason]", "the edit was right")
    _press(visitor, "Judge")
    visitor.open(f"/memory/{new}")
    _choose(visitor, "Pin…")
    report.check("a pin is set", "is pinned" in _press(visitor, "Pin"))
    visitor.open(f"/judge/{new}/{ids[1]}")
    page.fill("input[name=reason]", "it is not forever")
    report.check("a judgment hides the other", f"#{ids[1]} is hidden" in _press(visitor, "Judge"))
    visitor.open(f"/judge/{new}/{ids[1]}")
    report.check("and is undone", f"#{ids[1]} shows again" in _press(visitor, "Undo that"))


def _erase_things(report: Report, visitor: Visitor, ids: list[int]) -> None:
    page = visitor.page
    visitor.open(f"/memory/{ids[2]}")
    text = _choose(visitor, "Forget…")
    is_shown = "What goes" in text and "cannot be undone" in text
    report.check("a dry run is shown first", is_shown)
    report.check("forget erases", "Forgotten: 1 memory" in _press(visitor, "Forget for good"))
    visitor.open("/scrub")
    page.fill("input[name=pattern]", "bluewhale")
    page.click("button:has-text('Show how much')")
    page.wait_for_selector("#outcome button")
    report.check("a scrub replaces", "Replaced in" in _press(visitor, "Replace for good"))
    visitor.open("/forget")
    page.fill("input[name=query]", "codename")
    page.click("button:has-text('Show what would go')")
    page.wait_for_selector("#outcome button")
    report.check("words are forgotten", "Forgotten: 1 memory" in _press(visitor, "Forget for good"))


def _change_projects(report: Report, visitor: Visitor) -> None:
    visitor.open("/project/rename?name=actions")
    visitor.page.fill("input[name=name]", "renamed")
    report.check("a project is renamed", "It is called renamed" in _press(visitor, "Rename"))
    visitor.open("/project/switch?name=renamed")
    visitor.page.check("input[value=off]")
    report.check("a project is switched off", "switched off" in _press(visitor, "Switch"))
    visitor.open("/project/merge?name=renamed&into=ledger")
    report.check("projects are merged", "moved to ledger" in _press(visitor, "Merge"))
    visitor.open("/project?name=ledger")
    _choose(visitor, "take the merge back…")
    report.check("and parted again", "went back to renamed" in _press(visitor, "Take it back"))


def review_by_keys(report: Report, browser: Browser, stage: Stage) -> None:
    """Keep, reject, undo and edit what was learned, one key each."""
    report.act("Inbox")
    place = "/home/dev/inbox"
    texts = (
        "The parser needs 2 GB for the largest file",
        "Releases are tagged by the robot",
        "The mirror is read at night",
    )
    ids = {one: stage.call("remember", text=one, project=place, source="agent")["id"] for one in texts}  # fmt: skip
    with stage.view("--edit", "--project", place) as link:
        visitor = Visitor(browser, link)

        def first() -> int:
            return int(visitor.page.locator(".memory input[name=id]").first.input_value())

        def press(key: str) -> str:
            return visitor.follow(lambda: visitor.page.keyboard.press(key))

        visitor.open("/inbox")
        rejected = first()
        text = next(one for one, number in ids.items() if number == rejected)
        press("r")
        report.check("r rejects the first", text not in visitor.text)
        visitor.open("/rejected")
        report.check("what is rejected is listed", text in visitor.text)
        visitor.open(f"/inbox?undo={rejected}")
        report.check("u takes it back", text in press("u"))
        kept = first()
        press("k")
        waiting = [one["id"] for one in stage.call("review/list", project=place)["memories"]]
        report.check("k keeps the first", kept not in waiting, waiting)
        edited = first()
        press("e")
        report.check("e edits the first", visitor.path.startswith(f"/memory/{edited}/edit"))
        visitor.page.keyboard.type("krk")
        report.check("no key acts while one writes", "/edit" in visitor.path, visitor.path)
        report.check("no error in the console", not visitor.errors, visitor.errors[:3])
        visitor.close()


def survive_a_restart(report: Report, browser: Browser, stage: Stage) -> None:
    """A page says that memd is away, and comes back by itself."""
    report.act("A daemon that goes and comes")
    with stage.view("--project", PROJECT) as link:
        visitor = Visitor(browser, link)
        stage.memd.run("stop")
        text = visitor.follow(lambda: visitor.page.click("nav a:has-text('Sessions')"))
        report.check("the page says that memd is away", "memd is not there" in text, text[:200])
        report.check("that page is open to everyone", not visitor.find_barriers())
        stage.memd.run("start")
        report.check(
            "and comes back by itself", visitor.wait_for(lambda: "Memories left" in visitor.text)
        )
        visitor.close()


def attack(report: Report, browser: Browser, stage: Stage) -> None:
    """A used link, another origin, a name bound to this machine, hostile texts."""
    report.act("Attacks")
    number = stage.call("remember", text=HOSTILE, title=HOSTILE[:150], project=PROJECT)["id"]
    said = {"session_id": "hostile", "cwd": PROJECT, "hook_event_name": "UserPromptSubmit", "prompt": HOSTILE}  # fmt: skip
    stage.call("capture", client="claude-code", payload=said)
    answer = {**said, "hook_event_name": "Stop", "last_assistant_message": f"# {HOSTILE}\n- {HOSTILE}"}  # fmt: skip
    stage.call("capture", client="claude-code", payload=answer)
    with stage.view("--edit", "--project", PROJECT) as link:
        visitor = Visitor(browser, link)
        for path in (
            f"/memory/{number}",
            "/search?q=alert+memory",
            "/",
            f"/memory/{number}/edit",
            f"/memory/{number}/forget",
            "/session/hostile",
        ):
            visitor.open(path)
        visitor.open("/search?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
        harmless = (
            not visitor.dialogs and visitor.page.locator("main img, main script").count() == 0
        )
        report.check(
            "a hostile text does nothing", harmless and not visitor.errors, visitor.errors[:3]
        )
        thief = browser.new_context()
        page = thief.new_page()
        page.goto(link)
        page.wait_for_selector("main h1:has-text('Locked')")
        report.check("a stolen link is void", "used already" in page.inner_text("main"))
        with _other_site(visitor.origin) as site:
            page.goto(site)
            page.wait_for_function("window.results && window.results.length === 4")
            results = page.evaluate("window.results")
            report.check(
                "another site reads nothing",
                all(one.startswith("refused") for one in results),
                results,
            )
            framed = page.frames[-1].url
            report.check(
                "nor shows it in a frame",
                not framed.startswith(visitor.origin) or "chrome-error" in framed,
                framed,
            )
        port = visitor.origin.rpartition(":")[2]
        page.goto(f"http://localhost:{port}/")
        report.check(
            "another name of this machine is refused", "another name" in page.inner_text("body")
        )
        thief.close()
        visitor.close()


_ATTACKS = """<!doctype html><script>
window.results = [];
const note = (name) => (found) => results.push(found);
const tries = [
  fetch("ORIGIN/_/"), fetch("ORIGIN/", {method: "POST", body: "x"}),
  fetch("ORIGIN/key", {method: "POST", mode: "no-cors", body: '{"token":"x"}'}).then((r) => { if (r.type === "opaque") throw 0; return r; }),
  fetch("ORIGIN/_/", {headers: {"Memd-Key": "x"}}),
];
for (const one of tries) one.then(() => results.push("read"), () => results.push("refused"));
</script><iframe src="ORIGIN/"></iframe>"""


@contextlib.contextmanager
def _other_site(origin: str) -> Iterator[str]:
    """A page of another port of this machine that tries to read the viewer; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = _ATTACKS.replace("ORIGIN", origin).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def write_static_pages(
    report: Report, browser: Browser, stage: Stage, pictures: Path | None
) -> None:
    """A file that needs no script and no server."""
    report.act("Static pages")
    for query in ((), ("--query", "where do we keep sessions")):
        file = stage.home / f"page-{len(query)}.html"
        ran = stage.memd.run("view", "--static", str(file), "--project", PROJECT, *query)
        context = browser.new_context(java_script_enabled=False)
        requests: list[str] = []
        errors: list[str] = []
        page = context.new_page()
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.on("console", lambda said, seen=errors: seen.append(said.text))
        page.goto(file.as_uri())
        name = "of an answer" if query else "of a project"
        report.check(
            f"a page {name} stands alone",
            requests == [file.as_uri()] and not errors,
            [*requests, *errors, ran.stderr],
        )
        report.check(
            "it is styled and readable",
            "SQLite" in page.inner_text("body") and page.evaluate("1") == 1,
        )
        if pictures:
            page.screenshot(path=str(pictures / f"static-{len(query)}.png"))
        context.close()


def picture_documents(browser: Browser, stage: Stage) -> None:
    """Make the pictures that README and docs/ show."""
    memory = find_pages(stage)["memory"]
    with stage.view("--project", PROJECT) as link:
        visitor = Visitor(browser, link, device_scale_factor=1.5)
        for name, path, height in (("viewer", "/", 1000), ("viewer-memory", memory, 860)):
            visitor.page.set_viewport_size({"width": 1120, "height": height})
            visitor.open(path)
            visitor.picture(ROOT / "docs" / f"{name}.png", whole=False)
        visitor.close()


def main() -> int:
    """Set the stage, look, tell."""
    parser = argparse.ArgumentParser(
        prog="scripts/end-to-end view",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--pictures", type=Path, metavar="DIR", help="write a picture of each page there"
    )
    parser.add_argument("--documents", action="store_true", help="only make the pictures in docs/")
    parser.add_argument("--keep", action="store_true", help="leave the home behind")
    options = parser.parse_args()
    report, began = Report(), time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="memd-view-"))
    stage = Stage(home)
    try:
        print(f"Chromium {find_chromium()}")
        stage.fill()
        with open_chromium() as browser:
            if options.documents:
                picture_documents(browser, stage)
                return 0
            look_at_pages(report, browser, stage, options.pictures)
            search_as_one_types(report, browser, stage)
            write_static_pages(report, browser, stage, options.pictures)
            survive_a_restart(report, browser, stage)
            attack(report, browser, stage)
            change_things(report, browser, stage)
            review_by_keys(report, browser, stage)
    except Impossible as error:
        print(f"scripts/end-to-end view: {error}", file=sys.stderr)
        return 2
    finally:
        stage.memd.run("stop")
        print(f"\nkept: {home}") if options.keep else shutil.rmtree(home, ignore_errors=True)
    print(f"\n{report.passed} ok, {len(report.failed)} failed, {time.monotonic() - began:.0f} s")
    for what in report.failed:
        print(f"  FAIL {what}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
