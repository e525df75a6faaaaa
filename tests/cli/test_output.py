from hypothesis import given
from hypothesis import strategies as st

from memd.cli import output
from tests.tables import every_row

# ── show ──────────────────────────────────────────────────────────────────────────────────────────


HOUR = 3_600
NOON = 1_800_000_000_000


@every_row(
    ("seconds", "text"),
    [
        (0, "0 s"), (-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (61, "1 min 1 s"),
        (3 * HOUR + 12 * 60 + 7, "3 h 12 min"), (25 * HOUR, "1 d 1 h"), (86_400 * 400, "400 d"),
    ],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert output.format_duration(seconds) == text


@every_row(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 kB"),
        (12_900_000, "12.3 MB"),
        (5 * 2**30, "5.0 GB"),
    ],
)
def test_a_size_has_a_unit_that_fits(count, text):
    assert output.format_size(count) == text


def test_a_noun_follows_its_count():
    assert output.plural(1, "memory") == "1 memory"
    assert output.plural(1_200, "memory") == "1,200 memories"
    assert output.plural(0, "file") == "0 files"
    assert output.plural(2, "key") == "2 keys"


def test_a_headline_has_id_kind_date_and_title():
    memory = {"id": 12, "kind": "fix", "at": NOON, "title": "Login\nanswered 500"}
    assert (
        output.format_headline(memory) == f"#12 fix  {output.format_date(NOON)}  Login answered 500"
    )


def test_a_headline_marks_superseded_and_pinned_memories():
    memory = {"id": 1, "kind": "note", "at": NOON, "title": "t", "superseded_by": 7, "pinned_at": 1}
    assert output.format_headline(memory).endswith("t  (superseded by #7)  (pinned)")
    told = output.list_marks({**memory, "replaced_by": "Retry three times", "alike": [8, 9]})
    assert told[:2] == ["superseded by #7: Retry three times", "2 more like it: #8, #9"]


def test_control_characters_are_removed():
    assert output.clean("a\x1b[31mred\x07\x9b2J\u202eb") == "a[31mred2Jb"


def test_what_nobody_sees_is_removed_and_what_joins_letters_is_left():
    assert output.clean("pay\u200bpal\ufeff\u2060\U000e0041\ud800") == "paypal"
    assert output.clean("👩\u200d💻 می\u200cخواهم") == "👩\u200d💻 می\u200cخواهم"


@given(st.text(max_size=400), st.integers(20, 100))
def test_a_snippet_is_at_most_three_indented_lines(text, width):
    lines = list(output.format_snippet(text, width=width))
    assert len(lines) <= 3
    assert all(line.startswith("    ") for line in lines)


def test_a_score_shows_its_steps_and_ranks():
    hit = {
        "score": 2.5, "cosine": 0.91, "lexical_rank": 1, "vector_rank": 3, "topic_rank": None,
        "parts": [
            {"name": "lexical", "value": 2.0, "op": "+"}, {"name": "kind", "value": 1.25, "op": "*"},
        ],
    }  # fmt: skip
    assert output.format_score(hit).strip() == (
        "2.5 = lexical 2 * kind 1.25  (lexical #1, vector #3, cosine 0.910)"
    )


def test_a_sum_that_is_multiplied_is_in_parentheses():
    steps = (
        ("+", "a", 1),
        ("+", "b", 2),
        ("*", "c", 3),
        ("*", "d", 4),
        ("+", "e", 5),
        ("*", "f", 2),
    )
    parts = [{"op": op, "name": name, "value": value} for op, name, value in steps]
    text = output.format_score({"score": 82, "parts": parts})
    assert text == "    82 = ((a 1 + b 2) * c 3 * d 4 + e 5) * f 2"
    assert output.format_score({"score": 1, "parts": parts[:1]}) == "    1 = a 1"


def test_a_headline_names_another_project():
    memory = {"id": 1, "kind": "note", "at": NOON, "title": "t", "elsewhere": "led\nger"}
    assert output.format_headline(memory).endswith("t  [led ger]")


def test_a_table_aligns_its_texts():
    assert list(output.format_table([("ledger", "1"), ("", "2")])) == [
        "ledger     1",
        "           2",
    ]


@every_row("at", [-1, 10**15, 2**62])
def test_a_time_outside_the_calendar_is_clamped(at):
    assert output.format_date(at) in {"1969-12-31", "1970-01-01", "9999-12-30", "9999-12-31"}


def test_a_table_has_no_control_characters():
    assert list(output.format_table([("vault", "a\x1b[31mb\u202ec")])) == ["vault      a[31mbc"]


# ── graph ─────────────────────────────────────────────────────────────────────────────────────────


HOSTILE = 'a"]; x [label="\\"; \n}\x1b[2J\u202e <b>\\N\\'


def edge(start, type_, end):
    (from_kind, from_id), (to_kind, to_id) = (one.split(":", 1) for one in (start, end))
    return {
        "from_kind": from_kind, "from_id": from_id, "type": type_, "to_kind": to_kind, "to_id": to_id, "rule": "r",
    }  # fmt: skip


def supersession(newer, older, title, undone_at=None, *, is_newer=True):
    link = {
        "newer_id": newer,
        "older_id": older,
        "undone_at": undone_at,
        "rule": "r",
        "cosine": None,
    }
    other = {"id": newer if is_newer else older, "title": title}
    return {"supersession": link, "other": other, "is_newer": is_newer}


def why(edges=(), relations=(), title="Login", titles=None):
    return {
        "node": "summary:12", "summary": {"id": 12, "title": title}, "edges": list(edges),
        "relations": list(relations), "titles": titles or {},
        "sources": [{"event": {"id": 7, "tool": None, "kind": "prompt"}}],
    }  # fmt: skip


FOUND = why(
    [
        edge("summary:12", "edits", "file:/a.py"), edge("file:/a.py", "imports", "file:/b.py"),
        edge("summary:15", "references", "file:/a.py"), edge("summary:11", "causes", "summary:12"),
        edge("summary:11", "references", "file:/b.py"),
    ],
    [supersession(20, 12, "Newer", undone_at=5)],
    titles={"summary:11": "It failed"},
)  # fmt: skip


def test_the_tree_shows_every_node_once_with_the_type_and_direction_of_its_edge():
    assert list(output.format_tree(FOUND)) == [
        "#12 “Login”",
        "├─ edits → file:/a.py",
        "│  ├─ imports → file:/b.py",
        "│  └─ ← references #15",
        "├─ ← causes #11 “It failed”",
        "└─ ← supersedes (undone) #20 “Newer”",
    ]


def test_a_cycle_ends():
    found = why(
        [
            edge("summary:12", "causes", "summary:13"),
            edge("summary:13", "derives_from", "summary:12"),
        ]
    )
    assert list(output.format_tree(found)) == ["#12 “Login”", "└─ causes → #13"]
    itself = why([edge("summary:12", "similar_to", "summary:12")])
    assert list(output.format_tree(itself)) == ["#12 “Login”"]


def test_an_event_is_named_by_its_tool_or_kind():
    found = why(
        [
            edge("summary:12", "derives_from", "event:7"),
            edge("summary:12", "derives_from", "event:8"),
        ]
    )
    assert list(output.format_tree(found))[1:] == [
        "├─ derives_from → event:7 prompt",
        "└─ derives_from → event:8",
    ]


def test_a_memory_without_edges_is_one_node():
    assert list(output.format_tree(why())) == ["#12 “Login”"]


def hostile():
    return why(
        [edge("summary:12", "edits", f"file:/{HOSTILE}"), edge("summary:12", "causes", "summary:13")],
        [supersession(14, 12, HOSTILE)], title=HOSTILE, titles={"summary:13": HOSTILE * 40},
    )  # fmt: skip


def test_no_title_can_end_a_line_of_the_tree():
    for line in output.format_tree(hostile()):
        assert line.isprintable()
        assert len(line) < 300
