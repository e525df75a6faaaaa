"""Spans of time and the graph: what is drawn, and how much at most."""

import pytest

from memd.viewer.memory import draw_graph
from memd.viewer.page import Visit, format_age, format_gap, format_size, plural
from memd.viewer.search import count_parts, read_span
from tests.tables import every_row
from tests.viewer.conftest import NOW, Elements

DAY_MS = 86_400_000


@pytest.fixture
def berlin(set_zone):
    """Local time changes its clocks twice a year."""
    set_zone("Europe/Berlin")


@every_row(
    ("name", "parts", "first", "last"),
    [
        ("2026", 12, "2026-01", "2026-12"),
        ("2024-02", 29, "2024-02-01", "2024-02-29"),
        ("2026-11-20", 24, "2026-11-20T00", "2026-11-20T23"),
    ],
)
def test_a_span_consists_of_shorter_ones(name, parts, first, last):
    found = read_span(name, NOW).parts()
    assert (len(found), found[0].name, found[-1].name) == (parts, first, last)
    assert all(one.above().name == name for one in found)


def test_an_hour_has_no_parts_and_neighbours():
    hour = read_span("2026-11-20T23", NOW)
    assert (hour.parts(), hour.step(1).name, hour.step(-24).name) == (
        [],
        "2026-11-21T00",
        "2026-11-19T23",
    )


@every_row("name", ["", "1969", "9999", "2026-13", "2026-02-30", "x", "2026-11-20T25"])
def test_a_name_of_no_span_means_this_month(name):
    assert read_span(name, NOW).level == 1


@every_row("name", ["1971", "1971-01", "9998", "9998-12"])
def test_steps_stay_within_what_can_be_told(name):
    span = read_span(name, NOW)
    assert span.step(-1).since >= 0
    assert span.step(1).since > 0


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(("month", "day", "hours"), [("2026-03", 29, 23), ("2026-10", 25, 25)])
def test_each_day_gets_its_own_hours_also_when_the_clock_changes(month, day, hours):
    parts = read_span(month, NOW).parts()

    def call(method, **asked):
        assert (method, asked["step_ms"]) == ("memd/activity", 3_600_000)
        counts = [1] * asked["steps"]
        return {"events": counts, "memories": counts, "superseded": counts}

    counts = [one["events"] for one in count_parts(Visit(call, NOW, "all"), parts)]
    assert sorted(set(counts)) == sorted({24, hours})
    assert counts.index(hours) == day - 1


def why(edges, relations=()):
    return {
        "node": "summary:1",
        "summary": {"title": "<the first>"},
        "edges": edges,
        "relations": relations,
        "titles": {},
        "sources": [],
    }


def edge(start, kind, end):
    (from_kind, from_id), (to_kind, to_id) = start.split(":", 1), end.split(":", 1)
    return {
        "from_kind": from_kind,
        "from_id": from_id,
        "type": kind,
        "to_kind": to_kind,
        "to_id": to_id,
    }


def draw(found):
    return draw_graph(Visit(dict, NOW, "all"), found)


def test_a_graph_has_each_node_once_and_leads_to_its_page():
    found = why(
        [
            edge("summary:1", "edits", "file:/a/b.py"),
            edge("summary:2", "edits", "file:/a/b.py"),
            edge("summary:2", "causes", "summary:1"),
            edge("summary:1", "derives_from", "event:7"),
        ]
    )
    page = Elements(draw(found))
    assert page.links() == [
        "/memory/1",
        "/memory/2",
        "/node?id=file%3A%2Fa%2Fb.py",
        "/node?id=event%3A7",
    ]
    assert "is caused by" in page.text
    assert "#1 <the first>" in page.text


def test_a_graph_of_thousands_of_edges_stays_small_and_says_what_is_left_out():
    edges = [edge("summary:1", "derives_from", f"event:{n}") for n in range(500)]
    edges += [edge(f"event:{n}", "causes", f"summary:{n + 2}") for n in range(5_000)]
    html = draw(why(edges))
    assert html.count("<rect") <= 1 + 14 + 28
    assert "more are not drawn" in html


def test_a_node_without_edges_has_no_picture():
    assert draw(why([])) is None


def test_times_and_sizes_are_told_in_words():
    assert format_age(NOW - 3 * DAY_MS, NOW) == "3 days ago"
    assert format_age(NOW + DAY_MS, NOW) == "in the future"
    assert format_age(NOW - 10, NOW) == "just now"
    assert format_gap(3 * 3_600_000) == "3 hours"
    assert (format_size(500), format_size(12_900_000)) == ("500 bytes", "12.3 MB")
    assert (plural(1, "memory"), plural(1_200, "memory"), plural(2, "day")) == (
        "1 memory",
        "1,200 memories",
        "2 days",
    )
