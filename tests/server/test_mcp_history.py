import dataclasses

from memd.models import (
    Edge,
    EdgeType,
    Event,
    EventKind,
    Judgment,
    Kind,
    Stance,
    Summary,
    Supersession,
    Tier,
)
from memd.recall import (
    JudgmentLink,
    PastInjection,
    SourceEvent,
    SupersessionLink,
    Timeline,
    TimelineRow,
    TranscriptPosition,
    UsageHistory,
    Why,
)
from memd.server import mcp_format, mcp_history
from memd.server.responses import TimelineResponse, WhyResponse, check_response
from memd.time_expressions import DAY_MS, HOUR_MS, MINUTE_MS
from tests.tables import every_row

NOW = 1_800_000_000_000


def summary(number=12, title="Login answered 500", **more):
    at = more.pop("at", NOW - 3 * DAY_MS)
    return Summary(
        id=number, uid=f"u{number}", project_id=1, session_id=1, kind=Kind.FIX, tier=Tier.CAPTURED,
        source="claude-code", title=title, body="", at=at, created_at=NOW, updated_at=NOW,
        rule="fix", **more,
    )  # fmt: skip


def test_a_timeline_has_a_row_for_each_memory():
    rows = (
        TimelineRow(summary(1, superseded_by=3), "a session"),
        TimelineRow(summary(2), None, is_pivot=True, gap_ms=3 * DAY_MS),
    )
    shown = mcp_history.format_timeline(
        Timeline(rows, NOW, more_before=True, more_after=False), None, NOW
    )
    assert shown["rows"][0]["superseded_by"] == 3
    assert shown["rows"][1]["pivot"] is True
    assert shown["rows"][1]["gap"] == "3 days idle"
    assert shown["more"] == "before"
    check_response(TimelineResponse, shown)


def test_a_long_timeline_says_what_it_left_out():
    rows = tuple(TimelineRow(summary(i, title="t" * 400), "s" * 300) for i in range(101))
    shown = mcp_history.format_timeline(
        Timeline(rows, NOW, more_before=False, more_after=False), None, NOW
    )
    assert mcp_format.count_bytes(shown) < 20_000
    assert "left_out" in shown


def reasons(count=1):
    event = Event(7, 1, EventKind.PROMPT, "UserPromptSubmit", NOW - DAY_MS, {})
    relation = SupersessionLink(
        Supersession(1, 13, 12, "topic", 0.97, "no objection", NOW, undone_at=NOW),
        summary(13),
        is_newer=True,
    )
    edge = Edge(1, "summary", "12", EdgeType.EDITS, "file", "/a/b.py", 1.0, "turn", NOW)
    return Why(
        "summary:12", summary(), "superseded by #13",
        (SourceEvent(event, "login answers " + "500 " * 500),) * count, (relation,) * count, (edge,) * count,
        {"summary:12": "Login"},
    )  # fmt: skip


def test_why_has_verdict_sources_relations_and_edges():
    shown = mcp_history.format_why(reasons(), NOW)
    assert shown["node"] == "#12"
    assert shown["verdict"] == "superseded by #13"
    assert shown["sources"][0]["quote"].startswith("login answers 500")
    assert shown["relations"][0]["is"] == "superseded by"
    assert shown["relations"][0]["undone_at"].startswith("20")
    assert shown["edges"][0] == {
        "from": "#12", "type": "edits", "to": "file:/a/b.py", "rule": "turn",
    }  # fmt: skip
    check_response(WhyResponse, shown)


def test_why_names_the_title_of_a_neighbour_once():
    titles = {"summary:12": "Login", "summary:13": "Login again"}
    edge = Edge(1, "summary", "12", EdgeType.CAUSES, "summary", "13", 1.0, "turn", NOW)
    shown = mcp_history.format_why(
        dataclasses.replace(reasons(), edges=(edge, edge), titles=titles), NOW
    )
    first, second = shown["edges"]
    assert first["to_title"] == "Login again"
    assert not {"from_title", "to_title"} & set(second)
    assert "from_title" not in first


def test_a_long_why_is_cut_with_a_count():
    shown = mcp_history.format_why(reasons(200), NOW)
    assert mcp_format.count_bytes(shown) < 20_000
    assert shown["sources_left_out"]
    assert shown["edges"]


def test_why_of_a_file_needs_no_summary():
    shown = mcp_history.format_why(
        dataclasses.replace(reasons(), node="file:/a/b.py", summary=None), NOW
    )
    assert shown["node"] == "file:/a/b.py"
    check_response(WhyResponse, shown)


def test_a_timeline_marks_new_sessions_and_what_is_contradicted():
    rows = (
        TimelineRow(summary(1), "one", begins_session=True),
        TimelineRow(summary(2), "one", contradicted_by=(3, 4, 5, 6)),
    )
    shown = mcp_history.format_timeline(
        Timeline(rows, NOW, more_before=False, more_after=False), None, NOW
    )
    assert [row.get("new_session") for row in shown["rows"]] == [True, None]
    assert shown["rows"][1]["contradicted_by"] == [4, 5, 6]
    check_response(TimelineResponse, shown)


def test_a_span_of_days_names_each_day_and_keeps_the_latest_rows():
    rows = tuple(
        TimelineRow(summary(i, "t" * 400, at=NOW - (300 - i) * HOUR_MS), "s") for i in range(300)
    )
    span = Timeline(rows, NOW, more_before=False, more_after=False, is_span=True)
    shown = mcp_history.format_timeline(span, None, NOW)
    assert mcp_format.count_bytes(shown) < 20_000
    assert shown["rows"][-1]["id"] == 299
    assert "earlier rows" in shown["left_out"]
    days = [row["day"] for row in shown["rows"] if "day" in row]
    assert days == sorted(set(days))
    assert len(days) > 1
    check_response(TimelineResponse, shown)


@every_row(
    ("length", "words"),
    [
        (HOUR_MS, "1 hour idle"), (3 * HOUR_MS + 59 * MINUTE_MS, "3 hours idle"), (25 * HOUR_MS, "1 day idle"),
        (90 * DAY_MS, "90 days idle"), (MINUTE_MS, "1 minute idle"), (0, "0 minutes idle"),
    ],
)  # fmt: skip
def test_a_pause_is_written_in_words(length, words):
    assert mcp_history.format_pause(length) == words


def test_a_transcript_is_named_where_it_changes():
    found = reasons()
    event = found.sources[0].event
    places = (
        TranscriptPosition("/t/a.jsonl", "s", line="u1"), TranscriptPosition("/t/a.jsonl", "s", prompt="p1", tool_use="toolu_1"),
        TranscriptPosition(session="s2", prompt="p2"), TranscriptPosition(),
    )  # fmt: skip
    sources = tuple(SourceEvent(event, "words", place) for place in places)
    shown = mcp_history.format_why(dataclasses.replace(found, sources=sources), NOW)["sources"]
    assert [(one.get("place"), one.get("transcript")) for one in shown] == [
        ("line u1", "/t/a.jsonl"),
        ("tool_use toolu_1", None),
        ("prompt p2", "session s2"),
        (None, None),
    ]


def test_why_has_the_rule_in_words_and_how_the_memory_was_used():
    showing = PastInjection("s1", "Fix the login", "prompt", NOW, "fits the prompt")
    access = UsageHistory(7, NOW - DAY_MS, 2, 1, (showing,))
    shown = mcp_history.format_why(
        dataclasses.replace(reasons(), rule="a check failed", access=access), NOW
    )
    assert shown["because"] == "a check failed"
    assert shown["used"]["count"] == 7
    assert shown["shown_unasked"]["latest"][0]["session"] == "Fix the login"
    check_response(WhyResponse, shown)
    assert not {"because", "used", "shown_unasked"} & set(mcp_history.format_why(reasons(), NOW))


def test_why_says_where_a_memory_holds():
    tags = ("scope:tests", "red", "scope:for-now", "scope:file:src/gate.py")
    scoped = dataclasses.replace(reasons(), summary=dataclasses.replace(summary(), tags=tags))
    shown = mcp_history.format_why(scoped, NOW)
    assert shown["scope"] == "tests, for now, src/gate.py"
    check_response(WhyResponse, shown)
    assert "scope" not in mcp_history.format_why(reasons(), NOW)


@every_row("letter", ["w", "ä", "漢", "😀", '"', "a\n"])
def test_why_is_under_twenty_kilobytes_whatever_it_holds(letter):
    long = letter * 3_000
    event = Event(7, 1, EventKind.PROMPT, "p", NOW, {}, tool=letter * 50)
    judged = JudgmentLink(
        Judgment(1, 12, 13, Stance.COMPATIBLE, long, "agent", NOW), summary(13, long)
    )
    link = Supersession(1, 13, 12, "topic-key", 0.97, long, NOW)
    found = Why(
        f"file:{long}", summary(12, long), "current",
        (SourceEvent(event, long, TranscriptPosition(long, long, long, long, long)),) * 200,
        (SupersessionLink(link, summary(13, long), is_newer=True),) * 200,
        (Edge(1, "file", long, EdgeType.EDITS, "file", long, 1.0, "turn", NOW),) * 200,
        {"summary:13": long}, "rule " * 20,
        UsageHistory(10**9, NOW, 10**9, 10**9, (PastInjection(long, long, "prompt", NOW, long),) * 10),
        (judged,) * 200, tuple(range(10**9, 10**9 + 500)),
    )  # fmt: skip
    shown = mcp_history.format_why(found, NOW)
    assert mcp_format.count_bytes(shown) < 20_000
    assert all(shown[name] for name in ("sources", "relations", "judgments", "edges"))
    check_response(WhyResponse, shown)


def test_a_row_names_its_client_where_there_are_several():
    timeline = Timeline((TimelineRow(summary(1), None),), NOW, more_before=False, more_after=False)
    told = [
        mcp_history.format_timeline(timeline, None, NOW, which) for which in ((), ("claude-code",))
    ]
    assert [one["rows"][0].get("client") for one in told] == [None, "claude-code"]
    check_response(TimelineResponse, told[1])
