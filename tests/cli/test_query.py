import datetime as dt
import re

import pytest

from memd import time_expressions
from memd.cli import daemon_call, output, terminal, why
from tests.tables import read_tables

TABLES = read_tables("cli/query")

# ── search ────────────────────────────────────────────────────────────────────────────────────────


def test_a_hit_has_id_kind_date_title_and_snippet(memd):
    ran = memd("search", "why", "did", "login", "answer", "500", "--project", "all")
    assert ran.status == 0
    assert re.match(r"#\d+ \w+ \(\w+\)  \d{4}-\d\d-\d\d  \S", ran.out)
    assert ran.out.splitlines()[1].startswith("    ")


def test_a_hit_of_another_project_names_it(memd, noted, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    noted("a dotterel on the roof")
    noted("a dotterel in the yard", "--project", "global")
    out = memd("search", "dotterel", "--project", "all").out
    assert "a dotterel on the roof\n" in out
    assert "a dotterel in the yard  [global]\n" in out
    assert "[" not in memd("search", "dotterel").out


def test_what_one_agent_left_is_chosen_by_its_name(memd, served):
    # Names of no known client: with a second one of those, every answer to other tests would name its clients.
    for name in ("first-agent", "second-agent"):
        text = f"The wagtail sings for {name}"
        more = {"text": text, "source": name, "directory": str(served.home)}
        daemon_call.call("memd/remember", **more)
    for command in (["search", "wagtail"], ["list"], ["timeline", "--days", "1"]):
        out = memd(*command, "--client", "first-agent").out
        assert "The wagtail sings for first-agent" in out
        assert "second-agent" not in out


def test_a_note_about_the_query_needs_hits(memd):
    note = "(the question asks for the latest"
    assert note in memd("search", "latest login", "--project", "all").out
    assert note not in memd("search", "latest zyxwvutsrq", "--project", "global").out


def test_search_as_json(memd):
    found = memd("search", "login 500", "--project", "all", "-k", "2", "--json").json
    assert 1 <= len(found["hits"]) <= 2
    assert found["hits"][0]["id"] > 0
    assert found["hits"][0]["parts"]


def test_a_time_in_the_question_or_as_an_option_limits_the_answer(memd, noted):
    noted("a dotterel on the roof")
    asked = ("search", "--project", "all")
    assert "nothing found" in memd(*asked, "dotterel", "--until", "yesterday").out
    assert "nothing found" in memd(*asked, "dotterel", "--as-of", "2020-01-01").out
    assert "dotterel" in memd(*asked, "dotterel", "--since", "today").out
    assert "dotterel" in memd(*asked, "dotterel", "--until", "today").out
    assert "the nearest outside it" in memd(*asked, "dotterel", "in", "February", "2001").out


@pytest.mark.usefixtures("berlin")
def test_the_end_of_a_local_day_is_its_last_millisecond():
    today = dt.date(2026, 11, 20)
    assert terminal.read_local_end("today", today) == 1_795_215_600_000 - 1
    assert terminal.read_local_end("2026-11-19", today) == 1_795_129_200_000 - 1
    assert terminal.read_local_end("2026-11-19T10:00:00Z", today) == 1_795_082_400_000
    assert terminal.read_local_end("last week", today) == "last week"


def test_an_explanation_shows_scores_and_near_misses(memd):
    ran = memd("search", "login 500", "--project", "all", "--explain", "--limit", "1")
    assert re.search(r"^ +[\d.e-]+ = \S+ [\d.e-]+", ran.out, re.MULTILINE)
    assert "profile memd" in ran.out
    assert re.search(r"^ *#\d+ [\d.]+ hit: .*[Ll]ogin", ran.out, re.MULTILINE)
    assert re.search(r" (?:diversity|rank \d)", ran.out)


def test_an_explanation_draws_the_trace_of_the_json(memd):
    asked = ("search", "login 500", "--project", "all", "--explain")
    trace = memd(*asked, "--json").json["trace"]
    drawn = memd(*asked).out.partition("candidates\n")[2]
    assert trace
    for one in trace:
        assert re.search(rf"^ *#{one['summary_id']} .*{one['score']:.4g} ", drawn, re.MULTILINE)


def test_nothing_found_is_no_error(memd):
    ran = memd("search", "zyzzyva", "qwfpgj", "--project", "all", "--kind", "preference")
    assert ran.status == 0
    assert "nothing found" in ran.out


@pytest.mark.parametrize(
    "query", ['"unbalanced', "AND OR NOT", "((", "a* *", "^x:", "'; DROP TABLE events", "-x --"]
)
def test_operators_cause_no_syntax_errors(memd, query):
    """Without any word, that is the message."""
    ran = memd("search", "--project", "all", "--", query)
    assert ran.status == 0 or "no word" in ran.err


@pytest.mark.usefixtures("memd")
def test_the_control_call_takes_a_focus():
    """The command has no option for it."""
    asked = {"query": "which tests run", "project": "all"}
    hits = daemon_call.call("memd/search", **asked, focus=["auth.py"])["hits"]
    factors = {part["value"] for hit in hits for part in hit["parts"] if part["name"] == "focus"}
    assert factors == {1.0, 1.4}


# ── get ───────────────────────────────────────────────────────────────────────────────────────────


def test_get_shows_a_memory_in_full(memd, noted):
    text = "first line\n\n" + "the whole of a long text " * 50
    number = noted(text, "--title", "long", "--project", "global")
    ran = memd("get", f"#{number}")
    assert ran.status == 0
    assert ran.out.startswith(f"#{number} note (user)  ")
    assert text.strip() in ran.out


def test_get_shows_known_memories_and_fails_for_unknown_ones(memd, noted):
    number = noted("something that is there", "--project", "global")
    ran = memd("get", number, "999999")
    assert ran.status == 1
    assert "something that is there" in ran.out
    assert "#999999" in ran.err


# ── timeline ──────────────────────────────────────────────────────────────────────────────────────


HOUR_MS = 3_600_000


@pytest.fixture
def berlin(set_zone):
    """A wall clock that is put forward in March and back in October."""
    set_zone("Europe/Berlin")


def test_a_timeline_around_a_memory_marks_it(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    ran = memd("timeline", "--around", f"#{hit['id']}")
    assert ran.status == 0
    (pivot,) = [line for line in ran.out.splitlines() if line.startswith("→")]
    assert f"#{hit['id']} " in pivot
    assert pivot.endswith("  [ledger]")


def test_a_timeline_takes_a_time_without_an_option(memd, noted):
    noted("the plover is counted at dawn")
    day = memd("timeline", "--days", "1", "--json").json
    said = memd("timeline", "today", "--json").json
    assert day["rows"]
    assert said == day
    assert memd("timeline", "last", "week", "--json").json["is_span"]
    assert memd("timeline", "yesterday").status == 0
    moment = memd("timeline", "2026-11-21T09:00", "--project", "all", "--json").json
    assert not moment["is_span"]


@pytest.mark.parametrize("options", [["--at", "today"], ["--days", "2"], ["--around", "1"]])
def test_a_timeline_has_one_time(memd, options):
    ran = memd("timeline", "yesterday", *options)
    assert (ran.status, "give only one of WHEN" in ran.err) == (1, True)


def test_a_search_needs_no_quotes_though_a_word_looks_like_an_option(memd, noted):
    number = noted("plover --print fails when stdin is a tty")
    found = memd("search", "why", "did", "plover", "--print", "fail", "--json").json
    assert [hit["id"] for hit in found["hits"]] == [number]


def test_a_timeline_is_in_the_order_of_events(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    times = [row["summary"]["at"] for row in rows]
    assert times == sorted(times)
    assert times


def test_a_timeline_marks_the_time_asked_for(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    moment = (rows[0]["summary"]["at"] + rows[-1]["summary"]["at"]) // 2
    out = memd("timeline", "--at", moment, "--project", "all").out.splitlines()
    (place,) = [n for n, line in enumerate(out) if line.startswith("→")]
    assert out[place] == f"→  {output.format_time(moment)}"
    assert [line for line in out[:place] if "#" in line]
    assert [line for line in out[place:] if "#" in line]
    last = memd("timeline", "--at", rows[-1]["summary"]["at"] + 1, "--project", "all").out
    assert last.splitlines()[-1].startswith("→  20")


def test_a_wrong_timeline_is_refused(memd):
    assert "--kind: there is no 'foo'; there are decision" in memd("timeline", "--kind", "foo").err
    ran = memd("timeline", "--days", "2", "--before", "1")
    assert (ran.status, "leave out --before and --after" in ran.err) == (1, True)


def test_help_and_error_name_the_same_time_formats(memd):
    said = " ".join(re.sub(r"[│\s]+", " ", memd("timeline", "--help").out).split())
    assert time_expressions.FORMS.removeprefix("an ISO date") in said
    assert time_expressions.FORMS in memd("timeline", "--at", "foo").err


def test_a_timeline_of_an_unknown_project_says_what_to_type(memd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Other files share the daemon and note what holds everywhere: only a time without memories is empty for certain.
    ran = memd("timeline", "--at", "2001-01-01", "--before", "1", "--after", "0")
    assert ran.out.startswith("nothing happened then\n(nothing is known of ")
    assert "--project all searches everything" in ran.out


def test_a_timeline_is_around_a_memory_or_a_time(memd):
    ran = memd("timeline", "--around", "1", "--at", "yesterday")
    assert ran.status == 1
    assert "--around and --at or --days" in ran.err


def test_days_have_their_dates_and_sessions(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    day = dt.datetime.fromtimestamp(rows[0]["summary"]["at"] / 1000).date()  # noqa: DTZ006
    ran = memd("timeline", "--days", "2", "--at", day, "--project", "all")
    assert ran.status == 0
    assert any(line.startswith("── ") and line.endswith(str(day)) for line in ran.out.splitlines())
    assert "── session “" in ran.out
    assert "→" not in ran.out


def test_a_timeline_by_kind(memd):
    found = memd(
        "timeline", "--at", "2026-11-21", "--kind", "decision", "--project", "all", "--json"
    ).json
    assert {row["summary"]["kind"] for row in found["rows"]} == {"decision"}


def test_a_timeline_row_has_idle_time_session_and_contradictions():
    memory = {"id": 3, "kind": "fact", "at": 0, "title": "a", "superseded_by": 9}
    row = {
        "summary": memory, "session_title": "Fix\x1b[2J it", "is_pivot": True, "gap_ms": 3 * HOUR_MS,
        "begins_session": True, "contradicted_by": [7, 8],
    }  # fmt: skip
    found = {"rows": [row], "pivot_at": 0, "is_span": False}
    lines = list(why._draw_timeline(found, output.Screen(), marks_time=False))
    assert lines[:2] == ["   … 3 h idle …", "   ── session “Fix[2J it”"]
    assert lines[2].endswith("a  (superseded by #9)  (contradicted by #7, #8)")


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("day", "hours"), [("2026-10-25", 25), ("2026-03-29", 23), ("2026-07-01", 24)]
)
def test_a_day_is_a_local_day(day, hours):
    first, last = terminal.read_days(
        1, terminal.read_local_time(day, dt.date(2026, 1, 1)), dt.date(2026, 1, 1)
    )
    assert last + 1 - first == hours * HOUR_MS


@pytest.mark.usefixtures("berlin")
def test_a_time_is_local():
    today = dt.date(2026, 11, 21)
    noon = terminal.read_local_time("2026-11-20 12:00", today)
    assert noon == terminal.read_local_time("2026-11-20T11:00Z", today)
    assert terminal.read_local_time("2026-07-20 12:00", today) == terminal.read_local_time(
        "2026-07-20T10:00Z", today
    )
    assert terminal.read_local_time("yesterday", today) == noon - 12 * HOUR_MS
    assert terminal.read_local_time("3 days ago", today) == "3 days ago"


def test_days_up_to_no_date_are_refused(memd):
    for moment in ("3 days ago", "9999-12-31"):
        ran = memd("timeline", "--days", "2", "--at", moment)
        assert ran.status == 1
        assert "--at" in ran.err


# ── why ───────────────────────────────────────────────────────────────────────────────────────────


def test_why_shows_the_source_events(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    ran = memd("why", f"#{hit['id']}")
    assert ran.status == 0
    assert ran.out.startswith(f"#{hit['id']} ")
    assert f"made by      rule {hit['rule']} (" in ran.out
    assert "\n             in session " in ran.out
    assert "  tool use toolu_" in ran.out or "  message " in ran.out
    assert "\nbecause of   20" in ran.out
    # An event that was quoted is not told again as an edge; a neighbour is told by its title.
    assert "derives_from event:" not in ran.out
    assert re.search(r"\n(?:linked|replaces|replaced by) .*#\d+ ", ran.out)


def test_why_names_the_newer_memory(memd, noted):
    old = noted("the port is 8000", "--topic-key", "test.port", "--project", "global")
    new = noted("the port is 9000", "--topic-key", "test.port", "--project", "global")
    ran = memd("why", old)
    assert f"superseded by #{new}" in ran.out
    assert f"\nreplaced by  #{new} " in ran.out
    assert "\n             because: " in ran.out
    assert f"\nreplaces     #{old} " in memd("why", new).out


def test_why_takes_the_name_of_a_file_and_lists_what_is_known_of_it(memd):
    hits = memd("search", "login 500", "--project", "all", "--json").json["hits"]
    edges = [edge for hit in hits for edge in memd("why", hit["id"], "--json").json["edges"]]
    path = next(edge["to_id"] for edge in edges if edge["to_kind"] == "file")
    ran = memd("why", path.rpartition("/")[2])
    assert ran.status == 0, ran.err
    assert ran.out.splitlines()[0] == path
    assert re.search(r"known from \d+ memor", ran.out)
    assert memd("why", "nothing-like-it.py").status == 1


def test_why_draws_a_tree(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    tree = memd("why", hit["id"], "--graph")
    assert tree.out.startswith(f"#{hit['id']} “")
    assert "─ derives_from → event:" in tree.out
    assert memd("why", hit["id"], "--json", "--graph").status == 1


def test_why_shows_uses():
    showing = {
        "session": "s", "session_title": None, "moment": "prompt", "at": 0, "reason": "it fits",
    }  # fmt: skip
    access = {"count": 2, "last_at": 0, "shown": 1, "sessions": 1, "latest": [showing]}
    lines = list(why._tell_uses(access))
    assert lines[0].startswith("used         in 2 answers, last ")
    assert lines[1] == "shown        1 time unasked in 1 session:"
    assert lines[2].endswith("prompt  “s”: it fits")


def test_a_memory_has_a_name_that_is_the_same_on_every_machine(memd, noted):
    """Its number is another in each vault; any command takes either."""
    number = noted("the plover has a name")
    uid = memd("get", number, "--json").json["memories"][0]["uid"]
    name = f"m{uid[:7]}"
    assert re.search(rf"^name +{name}$", memd("get", number).out, re.MULTILINE)
    assert memd("get", name).out == memd("get", number).out
    assert memd("why", name).out == memd("why", number).out
    assert memd("pin", name, "--json").json["id"] == number
    missing = memd("get", "m0000000")
    assert (missing.status, "no memory alone is called m0000000" in missing.err) == (1, True)


@pytest.mark.parametrize("command", ["get", "forget", "pin", "why", "timeline --around"])
def test_a_memory_that_is_not_there_is_named(memd, command):
    ran = memd(*command.split(), "999999")
    assert (ran.status, "#999999" in ran.out + ran.err) == (1, True)


@pytest.mark.parametrize(("words", "message"), TABLES["an_error_names_what_a_person_types"])
def test_an_error_names_what_a_person_types(memd, words, message):
    ran = memd(*words)
    assert ran.status == 1
    assert ran.err.startswith(f"memd: {message}")
