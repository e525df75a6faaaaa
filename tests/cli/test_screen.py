"""How answers look on a terminal, as people see them: golden pictures at three widths, with and without colour."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from memd.cli import output, query, why
from memd.cli.output import Screen
from memd.cli.query import MemoryColumns
from tests.pseudo_terminal import run_on_terminal
from tests.tables import every_row

GOLDEN = Path(__file__).parent.parent / "data" / "golden" / "terminal"
NOW = 1_795_000_000_000
DAY_MS = 86_400_000
SCREENS = {
    f"{width}{'-color' if has_color else ''}": Screen(width, is_terminal=True, has_color=has_color)
    for width in (60, 80, 120)
    for has_color in (False, True)
}


@pytest.fixture(autouse=True)
def _utc(set_zone):
    set_zone("UTC")


def memory(number, kind, title, *, age=1, speaker="agent", **more):
    return {
        "id": number, "kind": kind, "title": title, "speaker": speaker, "at": NOW - age * DAY_MS,
        "superseded_by": None, "pinned_at": None, "contradicted_by": (), **more,
    }  # fmt: skip


MEMORIES = [
    memory(7, "decision", "Sessions live in SQLite, not in Redis, because one file is easier to back up", age=3, speaker="user"),
    memory(1_204, "fix", "The login answered 500 because the clock of the token was read in local time", age=40, elsewhere="ledger"),
    memory(15, "preference", "我们使用Redis处理会话 и короткие ответы", age=400, speaker="user", pinned_at=1),
    memory(16, "failure", "FAILED tests/test_login.py::test_expiry\x1b[2J", age=0, speaker="tool", superseded_by=1_204),
]  # fmt: skip
SNIPPET = (
    "The token was made in UTC and compared in local time, so a login within the first hour of a day was refused."
    " Ran: `pytest tests/test_login.py` → 12 passed. Files: src/auth.py, src/clock.py, tests/test_login.py and others."
)
ANSWER = {
    "hits": [{**one, "snippet": SNIPPET} for one in MEMORIES[:2]]
    + [{**one, "snippet": ""} for one in MEMORIES[2:]],
    "verdict": "weak", "reason": "no memory has 'Kubernetes'; the nearest, “The login …”, has only 'login'",
    "suppressed": {"superseded": 2, "expired": 1}, "notes": (), "degraded": {},
}  # fmt: skip


def check_golden(name, text):
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("MEMD_BLESS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", "utf-8")
    assert text + "\n" == path.read_text("utf-8"), (
        f"{path.name} changed; if that is wanted, run this test with MEMD_BLESS=1 and look at the file"
    )


@every_row("name", SCREENS)
def test_an_answer_stands_in_columns_that_fit(name):
    lines = list(
        query._draw_answer(
            ANSWER, SCREENS[name], "why did the login answer 500", NOW, explain=False
        )
    )
    for line in lines[1:-1]:  # the reason and the remarks may be longer: a terminal wraps them
        assert output.measure(re.sub(r"\x1b\[[\d;]*m", "", line)) <= SCREENS[name].width
    check_golden(f"search-{name}", "\n".join(lines))


@every_row("name", ["60", "80-color", "120"])
def test_a_timeline_has_days_sessions_and_pauses(name):
    rows = [
        {
            "summary": one, "session_title": "Login", "is_pivot": one["id"] == 7, "gap_ms": None if i else 7_200_000,
            "begins_session": i == 0, "contradicted_by": [9] if i == 1 else [],
        }
        for i, one in enumerate(reversed(MEMORIES[:3]))
    ]  # fmt: skip
    found = {"rows": rows, "pivot_at": NOW - 4 * DAY_MS, "is_span": False, "note": None}
    lines = why._draw_timeline(found, SCREENS[name], marks_time=True)
    check_golden(f"timeline-{name}", "\n".join(lines))


@every_row("name", ["60", "80-color", "120"])
def test_why_is_a_story(name):
    event = {"id": 3, "kind": "prompt", "tool": None, "at": NOW - 3 * DAY_MS}
    place = {"transcript": "", "session": "", "line": "", "tool_use": "", "prompt": ""}
    link = {
        "newer_id": 7, "older_id": 4, "rule": "changed-value", "cosine": 0.912, "guard": "Redis became SQLite",
        "undone_at": None,
    }  # fmt: skip
    found = {
        "node": "summary:7", "verdict": "current", "rule": "said by the user", "judgments": [], "edges": [],
        "summary": {**MEMORIES[0], "authority": "the user in a prompt", "rule": "said:decision", "files": ["src/auth.py"], "tags": ["scope:tests"]},
        "relations": [{"supersession": link, "is_newer": False, "other": memory(4, "decision", "Sessions live in Redis", age=9)}],
        "sources": [{"event": event, "position": place, "quote": SNIPPET}], "titles": {},
        "access": {"count": 2, "last_at": NOW, "shown": 0, "sessions": 0, "latest": []},
    }  # fmt: skip
    check_golden(f"why-{name}", "\n".join(why.tell_story(found, SCREENS[name])))


def test_words_of_the_question_are_marked_in_other_forms_and_common_ones_are_not():
    words = output.match_words("why did the branches use count=1 for login")
    painted = Screen(80, is_terminal=True, has_color=True).paint_matches(
        "A branch of branching logins; why? use 1", words
    )
    marked = re.findall(r"\x1b\[1;33m(.*?)\x1b\[0m", painted)
    assert marked == ["branch", "branching", "logins", "use"]
    assert output.match_words("why did you") is None


@every_row(
    ("text", "width", "expected"),
    [
        ("short", 5, "short"),
        ("too long", 5, "too…"),
        ("漢字仮名", 5, "漢字…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
    ],
)
def test_a_text_is_cut_by_the_columns_that_it_takes(text, width, expected):
    assert output.cut(text, width) == expected


def test_nothing_is_wider_than_the_terminal_even_a_word():
    columns = MemoryColumns(Screen(40, is_terminal=True), MEMORIES, ["1y"] * 4)
    for one in MEMORIES:
        for line in columns.format(one, "x" * 300):
            assert output.measure(line) <= 40


@pytest.fixture
def on_terminal(served):
    def run(*arguments, columns=80, lines=1_000, **environ):
        command = [sys.executable, "-m", "memd", *arguments]
        environ = {**served.environ, "TERM": "xterm", "LANG": "C.UTF-8", **environ}
        return run_on_terminal(command, environ, columns=columns, lines=lines, cwd=served.home)

    return run


def test_a_terminal_gets_columns_and_colour_and_may_refuse_both(on_terminal):
    asked = ("search", "login 500", "--project", "all")
    assert "\x1b[1;33m" in on_terminal(*asked)
    without = on_terminal(*asked, NO_COLOR="1")
    assert "\x1b" not in without
    assert re.search(r"^ +#\d+  \w+ +(?:user|agent|tool) ", without, re.MULTILINE)
    plain = on_terminal("--plain", *asked)
    assert re.search(r"^#\d+ \w+ \(\w+\)  \d{4}-\d\d-\d\d  ", plain, re.MULTILINE)


def test_list_shows_what_there_is_by_kind_and_by_speaker(memd, noted):
    number = noted("a dotterel on the roof", "--kind", "decision", "--project", "global")
    listed = memd("list", "--project", "global", "--kind", "decision", "--speaker", "user").out
    assert re.search(rf"^#{number} decision \(user\)", listed, re.MULTILINE)
    assert f"#{number} " not in memd("list", "--project", "global", "--kind", "fix").out
    found = json.loads(memd("list", "--project", "global", "--since", "today", "--json").out)
    assert number in {one["id"] for one in found["memories"]}
    assert memd("list", "--project", "global", "--until", "2001-01-01").out.startswith(
        "no memories"
    )


def test_edit_writes_a_new_version_and_the_editor_may_be_used(memd, noted, on_terminal, tmp_path):
    number = noted("the gate opens at 7", "--project", "global")
    ran = memd("edit", number, "--title", "the gate opens at 8", "--reason", "winter")
    assert ran.status == 0, ran.err
    new = int(re.match(r"#(\d+) says it now", ran.out)[1])
    assert "edited by hand: winter" in memd("why", new).out
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "the gate opens at 9\\n\\nin spring\\n" > "$1"\n')
    editor.chmod(0o755)
    assert "says it now" in on_terminal("edit", str(new), EDITOR=str(editor))
    assert "the gate opens at 9" in memd("search", "gate opens", "--project", "global").out
    assert "without a terminal" in memd("edit", new).err


@pytest.fixture
def editor(tmp_path):
    """Let $EDITOR be a shell script; what it does to the file, which is its $1."""

    def make(script):
        path = tmp_path / "my editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return {"EDITOR": shlex.quote(str(path)), "VISUAL": " ", "TMPDIR": str(tmp_path)}

    return make


@pytest.mark.parametrize(
    "script", ['rm "$1"', 'printf "\\377" > "$1"', "exit 3", 'rm "$1"; mkdir "$1"']
)
def test_an_editor_that_fails_changes_nothing_and_is_named(
    memd, noted, on_terminal, editor, script
):
    number = noted("the fence is green", "--project", "global")
    said = on_terminal("edit", str(number), **editor(script))
    assert "could not edit" in said
    assert "set EDITOR" in said
    assert "current" in memd("why", number).out


def test_only_the_user_can_read_what_is_edited_and_it_is_gone_afterwards(
    noted, on_terminal, editor, tmp_path
):
    number = noted("the fence is blue", "--project", "global")
    said = on_terminal("edit", str(number), **editor('stat -c %a "$1"'))
    assert "600" in said
    assert "nothing was changed" in said
    assert list(tmp_path.glob("memd-*")) == []


def test_what_was_written_in_the_editor_is_kept_where_memd_cannot_take_it(
    noted, on_terminal, editor, tmp_path
):
    number = noted("the fence is red", "--project", "global")
    said = on_terminal(
        "edit", str(number), **editor('head -c 3000000 /dev/zero | tr "\\0" x > "$1"')
    )
    (file,) = tmp_path.glob("memd-*")
    assert f"what you wrote is in {file}" in said
    assert file.stat().st_size == 3_000_000


def test_a_memory_that_is_hidden_is_refused_before_the_editor_opens(
    memd, noted, on_terminal, editor, tmp_path
):
    number = noted("the fence is grey", "--project", "global")
    memd("edit", number, "--title", "the fence is black")
    said = on_terminal("edit", str(number), **editor(f"touch {shlex.quote(str(tmp_path))}/opened"))
    assert "edit that one" in said
    assert not (tmp_path / "opened").exists()


def test_why_fits_the_terminal_and_tells_of_each_memory_once():
    other = memory(4, "failure", "x" * 200, age=9)
    link = {
        "newer_id": 7,
        "older_id": 4,
        "rule": "mended",
        "cosine": None,
        "guard": "",
        "undone_at": None,
    }
    edge = {
        "from_kind": "summary",
        "from_id": "7",
        "type": "causes",
        "rule": "r",
        "to_kind": "summary",
    }
    found = {
        "node": "summary:7", "verdict": "current", "rule": "", "judgments": [], "sources": [],
        "summary": {**MEMORIES[0], "authority": "the user in a prompt", "rule": "said:decision"},
        "relations": [{"supersession": link, "is_newer": False, "other": other}],
        "edges": [{**edge, "to_id": "4"}, {**edge, "to_id": "5"}], "titles": {"summary:5": "y" * 200},
        "access": {"count": 0, "last_at": None, "shown": 0, "sessions": 0, "latest": []},
    }  # fmt: skip
    lines = list(why.tell_story(found, Screen(80, is_terminal=True)))
    assert max(map(output.measure, lines)) <= 80
    assert sum("#4" in line for line in lines) == 1
    assert sum("#5" in line for line in lines) == 1
    assert any("y" * 200 in line for line in why.tell_story(found, Screen()))


def test_work_of_more_than_a_second_shows_what_it_does(on_terminal):
    assert "rebuilding the index" in on_terminal("reindex")


@pytest.mark.parametrize(
    "command",
    [
        ["import", "claude-code", "--dry-run"], ["install", "systemd", "--dry-run"], ["vacuum", "--dry-run"],
        ["reindex", "--memories", "--dry-run"], ["list"], ["project", "list"], ["model", "list"], ["doctor"],
        ["scrub", "zyxwvut", "--dry-run"], ["backup", "--list"], ["switch"], ["judge"], ["context"],
    ],
)  # fmt: skip
def test_what_reports_something_reports_it_as_json_too(memd, command):
    ran = memd(*command, "--json")
    assert ran.status == 0, ran.err
    assert isinstance(json.loads(ran.out), dict | list)
