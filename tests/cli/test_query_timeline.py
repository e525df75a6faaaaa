import datetime as dt
import re
import time

import pytest

from memd.cli import output, query
from memd.server import time_expressions

HOUR_MS = 3_600_000


@pytest.fixture
def berlin(monkeypatch):
    """A wall clock that is put forward in March and back in October."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_neighbourhood_of_a_memory_marks_it(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    ran = memd("timeline", "--around", f"#{hit['id']}")
    assert ran.status == 0
    (pivot,) = [line for line in ran.out.splitlines() if line.startswith("→")]
    assert f"#{hit['id']} " in pivot
    assert pivot.endswith("  [ledger]")


def test_rows_are_in_the_order_of_their_events(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    times = [row["summary"]["at"] for row in rows]
    assert times == sorted(times)
    assert times


def test_the_moment_asked_for_stands_between_what_was_before_and_after(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    moment = (rows[0]["summary"]["at"] + rows[-1]["summary"]["at"]) // 2
    out = memd("timeline", "--at", moment, "--project", "all").out.splitlines()
    (place,) = [n for n, line in enumerate(out) if line.startswith("→")]
    assert out[place] == f"→  {output.minute(moment)}"
    assert [line for line in out[:place] if "#" in line]
    assert [line for line in out[place:] if "#" in line]
    last = memd("timeline", "--at", rows[-1]["summary"]["at"] + 1, "--project", "all").out
    assert last.splitlines()[-1].startswith("→  20")


def test_a_kind_that_there_is_not_and_days_with_a_neighbourhood_are_refused(memd):
    assert (
        "--kind: there is no 'foo'; there are decision" in memd("timeline", "--kind", "foo").err
    )
    ran = memd("timeline", "--days", "2", "--before", "1")
    assert (ran.status, "leave out --before and --after" in ran.err) == (1, True)


def test_help_and_error_name_the_same_forms_of_a_time(memd):
    said = " ".join(re.sub(r"[│\s]+", " ", memd("timeline", "--help").out).split())
    assert time_expressions.FORMS.removeprefix("an ISO date") in said
    assert time_expressions.FORMS in memd("timeline", "--at", "foo").err


def test_a_memory_that_there_is_not_is_told(memd):
    ran = memd("timeline", "--around", "999999")
    assert ran.status == 1
    assert "#999999" in ran.err


def test_a_project_that_nothing_is_known_of_is_told_with_what_to_type(
    memd, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ran = memd("timeline")
    assert ran.out.startswith("nothing happened there\n(nothing is known of ")
    assert "--project all searches everything" in ran.out


def test_a_quiet_time_is_told(memd):
    ran = memd(
        "timeline", "--at", "2001-01-01", "--before", "1", "--after", "0", "--project", "all"
    )
    assert ran.out == "nothing happened there\n"


def test_only_one_place_may_be_given(memd):
    ran = memd("timeline", "--around", "1", "--at", "yesterday")
    assert ran.status == 1
    assert "--around and --at or --days" in ran.err


def test_days_are_shown_each_under_its_date_with_sessions_and_pauses(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    day = dt.datetime.fromtimestamp(rows[0]["summary"]["at"] / 1000).date()  # noqa: DTZ006
    ran = memd("timeline", "--days", "2", "--at", day, "--project", "all")
    assert ran.status == 0
    assert any(
        line.startswith("── ") and line.endswith(str(day)) for line in ran.out.splitlines()
    )
    assert "── session “" in ran.out
    assert "→" not in ran.out


def test_only_the_kinds_asked_for_are_shown(memd):
    found = memd(
        "timeline", "--at", "2026-11-21", "--kind", "decision", "--project", "all", "--json"
    ).json
    assert {row["summary"]["kind"] for row in found["rows"]} == {"decision"}
    assert memd("timeline", "--kind", "nonsense").status == 1


def test_a_row_tells_its_pause_its_session_and_who_says_otherwise():
    memory = {"id": 3, "kind": "fact", "at": 0, "title": "a", "superseded_by": 9}
    row = {
        "summary": memory, "session_title": "Fix\x1b[2J it", "is_pivot": True, "gap_ms": 3 * HOUR_MS,
        "begins_session": True, "contradicted_by": [7, 8],
    }  # fmt: skip
    lines = list(query._row(row))
    assert lines[:2] == ["   … 3 h idle …", "   ── session “Fix[2J it”"]
    assert lines[2].endswith("a  (superseded by #9)  (contradicted by #7, #8)")


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("day", "hours"), [("2026-10-25", 25), ("2026-03-29", 23), ("2026-07-01", 24)]
)
def test_a_day_lasts_as_long_as_the_wall_clock_says(day, hours):
    first, last = query.span(1, query.local_time(day, dt.date(2026, 1, 1)), dt.date(2026, 1, 1))
    assert last + 1 - first == hours * HOUR_MS


@pytest.mark.usefixtures("berlin")
def test_a_time_is_meant_as_the_wall_clock_shows_it():
    today = dt.date(2026, 11, 21)
    noon = query.local_time("2026-11-20 12:00", today)
    assert noon == query.local_time("2026-11-20T11:00Z", today)
    assert query.local_time("2026-07-20 12:00", today) == query.local_time(
        "2026-07-20T10:00Z", today
    )
    assert query.local_time("yesterday", today) == noon - 12 * HOUR_MS
    assert query.local_time("3 days ago", today) == "3 days ago"


def test_days_up_to_something_that_is_no_date_are_refused(memd):
    for moment in ("3 days ago", "9999-12-31"):
        ran = memd("timeline", "--days", "2", "--at", moment)
        assert ran.status == 1
        assert "--at" in ran.err
