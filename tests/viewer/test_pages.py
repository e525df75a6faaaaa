"""What the pages show of a real vault, hostile texts among it, and how they behave when the daemon is away."""

import os
import re
import stat
from urllib.parse import parse_qs, urljoin, urlsplit

import apsw
import pytest

from memd.viewer.memory import PART_CHARACTERS, show_memory
from memd.viewer.overview import arrange_session
from memd.viewer.page import Visit, flatten_markdown, render_page, reveal
from memd.viewer.server import PAGES, ViewSettings, connect
from memd.viewer.static import write_page
from tests.cli.conftest import Machine
from tests.viewer.conftest import NOW, Elements, RunningViewer

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "[click](javascript:alert(1)) javascript:alert(2) <a href='javascript:x'>y</a>",
    "user\u202egnp.exe and pay\u200bpal and \u2066hidden\u2069",
    "</main></textarea></title><style>*{display:none}</style><!-- \" ' ` {{7*7}}",
]


@pytest.fixture(scope="session")
def hostile(call):
    """Memories that want to be markup, in a project whose name does, too."""
    ids = [
        call("remember", text=text, title=text[:200], tags=[text[:50]], files=[f"/srv/{text[:40]}"], project="<b onclick=x>evil</b>")["id"]
        for text in HOSTILE
    ]  # fmt: skip
    call("judge", id=ids[0], other=ids[1], relation="contradicts", reason="<script>why</script>")
    place = {"session_id": "hostile-1", "cwd": "/srv/hostile"}
    said = [
        {**place, "hook_event_name": "UserPromptSubmit", "prompt": " ".join(HOSTILE), "prompt_id": "p1"},
        {
            **place, "hook_event_name": "PostToolUse", "tool_name": "<b>Bash</b>", "tool_use_id": "u1",
            "tool_input": {"command": HOSTILE[0], "<i>": HOSTILE[3]}, "tool_response": {"stdout": HOSTILE[2], "stderr": HOSTILE[1]},
        },
        {**place, "hook_event_name": "Stop", "last_assistant_message": "\n\n".join(["# " + HOSTILE[0], *HOSTILE]), "prompt_id": "p1"},
    ]  # fmt: skip
    for payload in said:
        call("capture", client="claude-code", payload=payload)
    return ids


def all_paths(call):
    """An address of every page, with what stands in the vault."""
    number = call("list", limit=1)["memories"][0]["id"]
    session = call("sessions", limit=1)["sessions"][0]["key"]
    names = {"id": number, "other": 1, "key": session, "run": 1}
    for path in PAGES:
        filled = re.sub(r"\{(\w+)\}", lambda found: str(names[found[1]]), path)
        yield filled + {
            "/node": "?id=file:/home/dev/ledger/auth.py",
            "/judge": "?id=1&other=2",
            "/whynot": "?id=1&q=redis",
            "/unmerge": "?key=x",
        }.get(path, "?name=ledger" if path.startswith("/project") else "")


def test_every_page_is_shown_and_leads_to_pages_that_are(reader, call):
    call("remember", text="Merged by hand", project="/srv/one/merge")
    shown = [one for one in Elements(reader.get("/projects").html).links() if one.startswith("/")]
    # A page may stay open while a project of the same name begins.
    call("remember", text="Merged by a robot", project="/srv/two/merge")
    ones = [f"/{page}?project={name}" for name in ("merge", "/srv/one/merge", "%2Fsrv%2Ftwo%2Fmerge") for page in ("", "sessions", "context")]  # fmt: skip
    seen, waiting = set(), [*all_paths(call), *ones, "/projects", *shown]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        reply = reader.get(path)
        # Run 1 may not have happened.
        assert reply.status == 200 or "/run/" in path, (path, reply.body[:300])
        if len(seen) < 120:
            waiting += [link for link in Elements(reply.html).links() if link.startswith("/")]
    assert len(seen) > 60


def test_home_shows_what_holds(reader, call):
    page = Elements(reader.get("/?project=ledger").html)
    decision = call("list", project="ledger", kinds=["decision"])["memories"][0]
    assert decision["title"] in page.text
    assert f"/memory/{decision['id']}?project=ledger" in page.links()
    assert "memd is well" in page.text


def test_search_marks_the_words_and_shows_the_parts_of_each_score(reader):
    html = reader.get("/search?q=where+do+we+keep+sessions&project=ledger").html
    page = Elements(html)
    marked = [name for name, _ in page.found if name == "mark"]
    assert marked
    assert "its words" in page.text
    assert re.search(r"= \d\.\d{3} score", page.text)
    assert any(
        name == "rect" and "lexical" in attributes["class"] for name, attributes in page.found
    )


def test_the_parts_of_a_score_add_up_to_it(reader, call):
    hit = call("search", query="sessions in sqlite", project="all", k=1)["hits"][0]
    html = reader.get("/search?q=sessions+in+sqlite").html
    assert f"= {hit['score']:.3f}" in html


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ("kind=decision", lambda m: m["kind"] == "decision"),
        ("speaker=user", lambda m: m["speaker"] == "user"),
        ("client=claude-code", lambda m: m["source"] == "claude-code"),
    ],
)
def test_filters_choose_the_hits(reader, call, filters, kept):
    page = Elements(reader.get(f"/search?q=sessions&project=ledger&{filters}").html)
    numbers = {
        int(found[1]) for link in page.links() if (found := re.match(r"/memory/(\d+)", link))
    }
    memories = call("get", ids=sorted(numbers))["memories"]
    assert memories
    assert all(map(kept, memories))


def test_a_question_that_cannot_be_understood_is_explained_on_the_page(reader):
    reply = reader.get("/search?q=x&since=nonsense")
    assert (reply.status, "since" in Elements(reply.html).text) == (200, True)


def test_it_is_told_why_a_memory_is_not_among_the_hits(reader, call):
    failure = call("list", project="ledger", kinds=["fix"], include_superseded=True)["memories"][0][
        "id"
    ]
    text = Elements(
        reader.get(f"/whynot?q=zeppelin+airship&id=%23{failure}&project=ledger").html
    ).text
    assert (
        "no retriever found it" in text
        or "left out" in text
        or "Nothing counts as an answer" in text
    )
    old, new = (call("remember", text=f"The {kind} mast holds", project="moored")["id"] for kind in ("old", "new"))  # fmt: skip
    call("judge", id=new, other=old, relation="supersedes", reason="a test")
    assert f"#{new}" in reader.get(f"/whynot?q=mast&id={old}").html
    here = call("search", query="sessions in sqlite", project="all", k=1)["hits"][0]["id"]
    assert "It is among the hits" in reader.get(f"/whynot?q=sessions+in+sqlite&id={here}").html


def test_a_memory_is_shown_with_its_quotes_and_the_place_in_the_transcript(reader, call):
    decision = call("list", project="ledger", kinds=["decision"])["memories"][0]["id"]
    why = call("why", id=decision)
    source = next(one for one in why["sources"] if one["quote"])
    text = " ".join(Elements(reader.get(f"/memory/{decision}").html).text.split())
    assert " ".join(source["quote"].split()) in text
    assert source["position"]["line"] in text


def test_a_chain_of_supersession_is_told_with_its_reasons(reader, call):
    old = call(
        "remember", text="The port is 8080 in staging", topic_key="staging.port", project="chain"
    )["id"]
    new = call(
        "remember", text="The port is 9090 in staging", topic_key="staging.port", project="chain"
    )["id"]
    page = Elements(reader.get(f"/memory/{old}").html)
    assert f"#{new} replaced #{old}" in page.text
    assert "topic-key" in page.text
    assert any(name == "s" for name, _ in page.found)
    assert f"/memory/{new}" in page.links()
    graph = [
        attributes
        for name, attributes in page.found
        if name == "svg" and attributes.get("class") == "graph"
    ]
    assert len(graph) == 1


def test_the_timeline_goes_from_the_year_to_the_hour(reader, call):
    last = call("overview", project="ledger")["last_at"]
    html = reader.get("/timeline?project=ledger").html
    for step in (
        r"at=\d{4}(?:&|$)",
        r"at=\d{4}-\d\d(?:&|$)",
        r"at=\d{4}-\d\d-\d\d(?:&|$)",
        r"at=\d{4}-\d\d-\d\dT\d\d(?:&|$)",
    ):
        links = [link for link in Elements(html).links() if re.search(step, link)]
        busy = [link for link in links if "memory" in reader.get(link).html]
        assert busy, step
        html = reader.get(busy[0]).html
    assert last
    for nonsense in ("0001", "9999-12-31T23", "2026-13", "x", "%00", "-1"):
        assert reader.get(f"/timeline?at={nonsense}").status == 200


def test_the_timeline_of_one_agent_shows_what_it_left_and_leads_back_to_all(reader, call):
    shown = reader.get("/timeline?project=ledger&client=claude-code").html
    assert "Only what claude-code left" in shown
    ids = {int(found) for found in re.findall(r"/memory/(\d+)", shown)}
    assert {one["source"] for one in call("get", ids=sorted(ids))["memories"]} == {"claude-code"}
    assert "/timeline?project=ledger" in Elements(shown).links()
    assert "Only what" not in reader.get("/timeline?project=ledger").html
    assert "Nothing happened" in reader.get("/timeline?project=ledger&client=codex").html


def test_a_session_tells_what_it_left(reader, call):
    session = next(one for one in call("sessions", project="ledger")["sessions"] if one["memories"])
    page = Elements(reader.get(f"/session/{session['key']}").html)
    left = call("list", session=session["key"])["memories"][0]
    assert left["title"] in page.text


def test_sessions_say_what_they_were_told_what_of_it_was_used_and_what_it_cost(reader, call):
    place = "/home/dev/told"
    call("remember", text="Exports run in told/export_worker.py at night.", directory=place)

    def hook(name, **fields):
        payload = {"session_id": "told-1", "cwd": place, "hook_event_name": name, **fields}
        call("capture", client="claude-code", payload=payload, inject=True)

    hook("SessionStart", source="startup")
    hook("UserPromptSubmit", prompt="it is too slow", prompt_id="p1")
    given = {"file_path": f"{place}/told/export_worker.py", "old_string": "1", "new_string": "2"}
    hook("PostToolUse", tool_name="Edit", tool_input=given, tool_use_id="t1")
    one = Elements(reader.get("/session/told-1").html).text
    assert "1 seen used" in one
    assert "used: told/export_worker.py" in one
    weeks = Elements(reader.get("/sessions?project=told").html).text
    assert "What they were told by weeks" in weeks
    assert "Tokens: starts" in weeks


def test_a_session_is_read_with_its_tools_folded_and_what_it_left_beside_it(reader, call):
    sessions = call("sessions", project="ledger")["sessions"]
    session = max(sessions, key=lambda one: one["memories"])
    page = Elements(reader.get(f"/session/{session['key']}").html)
    read = call("session", session=session["key"])
    for one in read["events"]:
        words = one["headline"] if one["what"] == "tool" else one["text"].split("`")[0][:40]
        assert words in page.text, one
    folded = [one for name, one in page.found if name == "details"]
    assert {one["class"] for one in folded} >= {"calls", "call"}
    assert not any("open" in one for one in folded)
    classes = [attributes.get("class") for _, attributes in page.found]
    assert classes.index("summary") < classes.index("turn") < classes.index("beside")
    assert f"It left {len(read['left'])} memories" in page.text
    assert all(one["title"][:40] in page.text for one in read["left"])


def test_how_a_session_ended_is_told_without_the_signs_of_markdown():
    said = (
        "All pass:\n\n## Summary\n- `mise run test`\n- **Both** are\n  green\n\n1. Unused *paths*\n"
    )
    assert (
        flatten_markdown(said)
        == "All pass: · Summary · mise run test · Both are green · Unused paths"
    )


def test_what_was_told_and_left_stands_beside_the_turn_in_which_that_was():
    def prompt(at):
        return {"what": "prompt", "at": at, "text": str(at), "agent": None}

    def memory(at):
        return {"at": at, "moment": "prompt", "held": False, "tokens": 1, "outcome": None}

    found = {
        "outcome": None, "events": [prompt(10), {"what": "tool", "at": 12}, {"what": "tool", "at": 14}, prompt(20)],
        "told": [memory(9), memory(10), memory(21)], "left": [memory(25), memory(15)], "next": None,
        "started_at": 9, "counts": {"prompt": 2, "tool_result": 2}, "files": [],
    }  # fmt: skip
    first, second = arrange_session(found)["turns"]
    assert [one["what"] for one in first[0]] == ["prompt", "tools"]
    assert [at for _, at, _ in first[1]] == [9, 10]
    assert [one["at"] for one in first[2]] == [15]
    assert ([at for _, at, _ in second[1]], [one["at"] for one in second[2]]) == ([21], [25])
    later = arrange_session({**found, "events": found["events"][3:]}, is_first=False)
    assert [at for _, at, _ in later["turns"][0][1]] == [21]
    earlier = arrange_session({**found, "events": found["events"][:3], "next": [20, 1]})
    assert [one["at"] for one in earlier["turns"][0][2]] == [15]
    named = arrange_session(
        {**found, "files": ["/a/docs/guide.md", "/a/site/guide.md", "/a/run.py", "guide.md"]}
    )
    assert [name for _, name in named["files"]] == [
        "docs/guide.md",
        "site/guide.md",
        "run.py",
        "guide.md",
    ]


def test_a_long_session_leads_to_its_later_part(reader, call):
    def hook(number):
        payload = {
            "session_id": "long-1", "cwd": "/home/dev/long", "hook_event_name": "PreCompact" if number < 0 else "UserPromptSubmit",
            "prompt": f"Question number {number}", "prompt_id": f"p{number}",
        }  # fmt: skip
        return {"client": "claude-code", "payload": payload, "at": NOW + number * 1_000}

    call("capture", events=[hook(number) for number in range(220)])
    first = Elements(reader.get("/session/long-1").html)
    (later,) = [link for link in first.links() if "after=" in link]
    assert ("Question number 0" in first.text, "Question number 219" in first.text) == (True, False)
    assert "Question number 219" in Elements(reader.get(later).html).text


def test_home_the_lists_and_the_inbox_mark_what_the_user_said_since(reader, call):
    for number, said in enumerate(
        (
            "Never repaint the ark's horses!",
            "the ark's horses can be repainted again, the insurer is happy",
        )
    ):
        place = {"session_id": f"ark-{number}", "cwd": "/srv/ark", "prompt_id": f"p{number}"}
        for event in (
            {"hook_event_name": "UserPromptSubmit", "prompt": said},
            {"hook_event_name": "Stop", "last_assistant_message": "OK."},
            {"hook_event_name": "SessionEnd", "reason": "other"},
        ):  # fmt: skip
            last = call("capture", client="claude-code", payload={**place, **event})["seq"]
        call("search", query="ark", project="all", min_event=last)
    for path in ("/?project=ark", "/memories?project=ark&kind=instruction", "/inbox?project=ark"):
        assert "he said since: “the ark's horses can" in Elements(reader.get(path).html).text


def test_home_leads_to_the_inbox_and_to_what_was_told(reader):
    page = Elements(reader.get("/?project=ledger").html)
    assert {"/inbox?project=ledger", "/told?project=ledger"} <= set(page.links())
    assert "Told, and did it help" in page.text


def test_what_was_told_is_summed_up_by_weeks_and_sessions(reader, call):
    payload = {"session_id": "told-2", "cwd": "/home/dev/told", "hook_event_name": "SessionStart", "source": "startup"}  # fmt: skip
    call("remember", text="Exports are written at night", directory="/home/dev/told")
    call("capture", client="claude-code", payload=payload, inject=True)
    page = Elements(reader.get("/told?project=told").html)
    assert "In the last seven days" in page.text
    assert "/session/told-2?project=told" in page.links()


def test_home_tells_that_fewer_memories_hold_than_before_and_how_many_were_replaced(editor, call):
    home = "/?project=dropping"
    ids = [call("remember", text=f"The {name} is painted", project="dropping")["id"] for name in ("door", "gate", "wall")]  # fmt: skip
    assert "fewer hold" not in editor.get(home).html
    call("judge", id=ids[1], other=ids[0], relation="supersedes", reason="a test")
    call("forget", ids=[ids[2]], dry_run=False)
    text = " ".join(Elements(editor.get(home).html).text.split())
    assert "2 fewer hold than at" in text
    assert "1 was replaced by a newer one and counts no more: 1 note" in text


def test_the_timeline_begins_with_this_month_and_its_last_day(reader, call):
    for day in ("2026-11-21", "2026-11-22"):
        call("remember", text=f"Noted on {day}", project="daily", at=day)
    page = Elements(reader.get("/timeline?project=daily").html)
    assert page.text.index("November 2026") < page.text.index("Noted on 2026-11-22")
    days = r"Today, Monday, 23 November 2026|Nothing yet|Sunday, 22 November|Saturday, 21 November"
    assert re.findall(days, page.text) == days.split("|"), page.text
    call("remember", text="Of another time", project="older", at="2024-02-03")
    empty = Elements(reader.get("/timeline?project=older").html)
    assert "The last memory is of 3 Feb 2024" in " ".join(empty.text.split())
    assert "/timeline?at=2024-02&project=older" in empty.links()


def test_health_is_told_in_sentences(reader):
    text = " ".join(Elements(reader.get("/health").html).text.split())
    assert re.search(r"It has run for \d+ \w+, and last heard of an agent", text)
    assert re.search(r"It holds [\d,]+ memor", text)
    assert "There is no backup yet" in text


def test_a_memorys_markdown_is_formatted_and_can_be_seen_as_it_is_written(reader, call):
    body = "Steps:\n\n- **first** `make`\n- second"
    number = call("remember", text=body, title="Steps", project="marked")["id"]
    page = reader.get(f"/memory/{number}?project=marked")
    assert "<li><b>first</b> <code>make</code></li>" in page.html
    (plain,) = [link for link in Elements(page.html).links() if "plain=1" in link]
    assert body in Elements(reader.get(plain).html).text


def test_lists_come_page_by_page(reader, call):
    for number in range(60):
        call(
            "remember",
            text=f"Note number {number} of a long list, about thing {number * 7}",
            project="long",
        )
    first = Elements(reader.get("/memories?project=long").html)
    (older,) = [link for link in first.links() if "after=" in link]
    second = Elements(reader.get(older).html)
    titles = [
        {link for link in page.links() if link.startswith("/memory/")} for page in (first, second)
    ]
    assert titles[1]
    assert not titles[0] & titles[1]


# ── Hostile texts ────────────────────────────────────────────────────────────────────────────────

_ALLOWED = {
    "a", "b", "blockquote", "button", "code", "dd", "details", "div", "dl", "dt", "em", "fieldset", "figure", "form", "g",
    "h1", "h2", "h3", "header", "input", "label", "legend", "li", "main", "mark", "nav", "ol", "option", "p", "path", "pre",
    "q", "rect", "s", "section", "select", "span", "summary", "svg", "table", "tbody", "td", "text", "textarea", "th",
    "thead", "caption", "time", "title", "tr", "ul",
}  # fmt: skip


def test_hostile_texts_are_shown_and_do_nothing_on_every_page(editor, hostile):
    paths = [
        "/", "/inbox", "/memories", "/search?q=alert", "/search?q=<script>alert(1)</script>", "/timeline", "/projects",
        "/sessions", "/session/hostile-1", "/told", "/health", f"/judge/{hostile[0]}/{hostile[1]}",
        *(f"/memory/{number}{what}" for number in hostile for what in ("", "/edit", "/pin", "/forget", "/judge")),
        f"/whynot?q=alert&id={hostile[0]}", "/node?id=file:/srv/<script>", "/project?name=<b onclick=x>evil</b>",
        "/project/rename?name=<b onclick=x>evil</b>", "/?project=<b onclick=x>evil</b>", "/memory/<script>",
    ]  # fmt: skip
    for path in paths:
        address = (
            path.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20").replace("</", "%3C/")
        )
        html = editor.get(address).html
        page = Elements(html)
        names = {name for name, _ in page.found}
        assert names <= _ALLOWED, (path, names - _ALLOWED)
        for name, attributes in page.found:
            assert not any(key.startswith("on") or key == "style" for key in attributes), (
                path,
                name,
                attributes,
            )
            for key in ("href", "src", "action", "formaction"):
                assert attributes.get(key, "/").startswith(("/", "#")), (path, attributes)
        assert not re.search("[\u202e\u200b\u2066]", html), path


def test_the_name_of_a_file_leads_to_what_is_known_of_it(reader):
    links = Elements(reader.get("/search?q=auth.py&project=ledger").html).links()
    (link,) = {one for one in links if one.startswith("/node")}
    page = reader.get(link)
    assert page.status == 200
    assert "/home/dev/ledger/auth.py" in Elements(page.html).text
    for query in ("auth", "why+auth.py", "<b>.py", "v1.2"):
        links = Elements(reader.get(f"/search?q={query}&project=ledger").html).links()
        assert not any(one.startswith("/node") for one in links), query


HOSTILE_PROJECTS = (
    "..", "../../health", "deep/merge", "/srv/one/merge", "new\nline", 'we"ird\'na<b>me', "a?b=1#c", "%2e%2e", "\u202eevil",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_PROJECTS)
def test_the_links_of_a_project_lead_to_it_whatever_its_name(editor, call, name):
    """As a browser follows them: it takes `..` out of a path before it asks for it."""
    call("remember", text=f"Of the project {name!r}", project=name)
    call("remember", text="Of another one", project="/srv/two/merge")
    found = call("project", project=name)
    pages = Elements(editor.get("/projects").html).links()
    (link,) = {one for one in pages if name in read_name(one)}
    for what, told in (
        ("", found["key"]),
        ("/rename", "new name"),
        ("/merge", "that stays"),
        ("/switch", "Now: "),
    ):
        address = urljoin(editor.own, link.replace("/project?", f"/project{what}?")).removeprefix(
            editor.own
        )
        reply = editor.get(address)
        assert reply.status == 200, address
        text = Elements(reply.html).text
        assert told in text or reveal(told) in text
        assert reveal(found["name"]) in text or reveal(name) in text
        assert reveal(reply.json["title"]) == reply.json["title"]


def read_name(link):
    return parse_qs(urlsplit(link).query).get("name", [])


def test_a_hostile_text_can_be_read_as_it_is(reader, hostile):
    assert HOSTILE[0] in Elements(reader.get(f"/memory/{hostile[0]}").html).text
    assert "user⟨U+202E⟩gnp.exe" in reader.get(f"/memory/{hostile[2]}").html


@pytest.mark.parametrize("number", ["0", "99999999", "-1", "1e3", "x", "%00", "9" * 30, "%D9%A1"])
def test_a_memory_that_is_not_there_is_said_so(reader, number):
    reply = reader.get(f"/memory/{number}")
    assert reply.status in {400, 404}
    assert "not" in Elements(reply.html).text


class Vast:
    """A daemon whose one memory is larger than any screen."""

    def __init__(self, call, body):
        self._call, self._body = call, body

    def __call__(self, method, **params):
        answer = self._call(method.removeprefix("memd/"), **params)
        for memory in answer.get("memories", ()):
            memory["body"] = memory["snippet"] = memory["title"] = self._body
        return answer


def test_a_text_of_10_mb_is_shown_in_parts(call, hostile):
    vast = Vast(call, "word <b> \u202e" * 1_000_000)

    def show(**params):
        visit = Visit(vast, NOW, "all", (), params, {"id": str(hostile[0])})
        return render_page(visit, "memory.html", "", show_memory(visit))["html"]

    first, last, beyond = show(), show(part="250"), show(part="10000000")
    assert max(map(len, (first, last, beyond))) < 10 * PART_CHARACTERS
    assert "Part 1 of 500" in first
    assert "Part 250 of 500" in last
    assert "Part 500 of 500" in beyond


# ── The daemon goes and comes back ───────────────────────────────────────────────────────────────


def test_a_page_says_that_the_daemon_is_away_and_works_again_when_it_is_back(tmp_path):
    machine = Machine(tmp_path)
    machine.run("start")
    running = RunningViewer(machine.run("status", "--json").json["socket"])
    try:
        browser = running.open()
        assert browser.get("/").status == 200
        machine.run("stop")
        away = browser.get("/")
        assert away.status == 503
        assert "memd is not there" in Elements(away.html).text
        assert browser.get("/part/doctor").status == 503
        machine.run("start")
        assert browser.get("/").status == 200
    finally:
        running.stop()
        machine.kill()


# ── Static pages ─────────────────────────────────────────────────────────────────────────────────


def make_static(socket_path, project, **what):
    with connect(ViewSettings(socket_path, project, lambda: NOW)) as visit:
        return write_page(visit, **what)


def test_a_static_page_stands_alone(socket_path, call):
    text = make_static(socket_path, "ledger")
    page = Elements(text)
    names = {name for name, _ in page.found}
    assert not names & {"script", "link", "img", "iframe", "form", "base"}
    assert all(link.startswith("#") for link in page.links())
    policy = next(
        a["content"] for n, a in page.found if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert call("list", project="ledger", kinds=["decision"])["memories"][0]["title"] in page.text
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))


SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture(scope="session")
def risky(served, call):
    """A session with a secret that redaction did not know when it was stored."""
    place = {"session_id": "risky-1", "cwd": "/home/dev/risky"}
    said = {**place, "hook_event_name": "UserPromptSubmit", "prompt": "deploy with THE-KEY <b>now</b>", "prompt_id": "p1"}  # fmt: skip
    call("capture", client="claude-code", payload=said)
    path = served.run("status", "--json").json["vault"]["path"]
    connection = apsw.Connection(path)
    connection.set_busy_timeout(60_000)
    connection.execute("UPDATE events SET payload = replace(payload, 'THE-KEY', ?)", (SECRET,))
    connection.close()
    return place["session_id"]


def test_a_session_as_a_file_stands_alone_and_has_no_secret(reader, socket_path, risky):
    shown = reader.get(f"/session/{risky}").html
    assert SECRET in shown
    (button,) = [one for name, one in Elements(shown).found if "data-save" in one]
    for text in (
        reader.get(button["data-save"]).html,
        make_static(socket_path, "all", session=risky),
    ):
        page = Elements(text)
        assert SECRET not in text
        assert "deploy with [REDACTED" in page.text
        names = {name for name, _ in page.found}
        assert not names & {"script", "link", "img", "iframe", "form", "base", "button"}
        assert all(link.startswith("#") for link in page.links())
        assert "style-src &#39;sha256-" in text


def test_the_command_writes_a_session(served, tmp_path, risky):
    file = tmp_path / "session.html"
    ran = served.run("view", "--static", str(file), "--session", risky)
    assert ran.status == 0, ran.err
    assert "deploy with [REDACTED" in file.read_text(encoding="utf-8")
    assert served.run("view", "--session", risky).status == 1


@pytest.mark.usefixtures("hostile")
def test_a_static_page_of_hostile_texts_is_harmless(socket_path):
    text = make_static(socket_path, "<b onclick=x>evil</b>", query="alert")
    for made in (text, make_static(socket_path, "all", session="hostile-1")):
        page = Elements(made)
        assert not {name for name, _ in page.found} & {"script", "img"}
        assert not any(
            key.startswith("on") or key == "style"
            for _, attributes in page.found
            for key in attributes
        )
        assert len(re.findall("<style", made)) == 1
        assert not re.search("[\u202e\u200b\u2066]", made)


def test_the_command_writes_a_file_that_only_the_user_can_read(served, tmp_path):
    file = tmp_path / "page.html"
    ran = served.run(
        "view", "--static", str(file), "--query", "where do we keep sessions", "--project", "ledger"
    )
    assert ran.status == 0, ran.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "SQLite" in file.read_text(encoding="utf-8")


def test_a_static_page_replaces_nothing_and_follows_no_link(served, tmp_path):
    kept, link, device = (tmp_path / name for name in ("notes.md", "link.html", "pipe.html"))
    kept.write_text("mine")
    link.symlink_to(tmp_path / "elsewhere.html")
    os.mkfifo(device)
    for path in (kept, link, device, tmp_path):
        ran = served.run("view", "--static", str(path), "--project", "ledger")
        assert (ran.status, "exists; name a new file" in ran.err) == (1, True), ran.err
    assert kept.read_text() == "mine"
    assert link.is_symlink()
    assert stat.S_ISFIFO(device.stat().st_mode)
    assert not (tmp_path / "elsewhere.html").exists()
