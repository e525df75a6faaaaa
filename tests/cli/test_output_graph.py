import re
import shutil
import subprocess

import pytest

from memd.cli import output

HOSTILE = 'a"]; x [label="\\"; \n}\x1b[2J\u202e <b>\\N\\'
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


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


def test_the_tree_shows_every_edge_once_with_its_type_and_direction():
    assert list(output.tree(FOUND)) == [
        "#12 “Login”",
        "├─ edits → file:/a.py",
        "│  ├─ imports → file:/b.py",
        "│  └─ ← references #15",
        "├─ ← causes #11 “It failed”",
        "│  └─ references → file:/b.py  (drawn elsewhere)",
        "└─ ← supersedes (undone) #20 “Newer”",
    ]


def test_a_circle_is_drawn_and_ends():
    found = why(
        [
            edge("summary:12", "causes", "summary:13"),
            edge("summary:13", "derives_from", "summary:12"),
        ]
    )
    assert list(output.tree(found)) == [
        "#12 “Login”",
        "├─ causes → #13",
        "└─ ← derives_from #13  (drawn elsewhere)",
    ]
    itself = why([edge("summary:12", "similar_to", "summary:12")])
    assert list(output.tree(itself))[1:] == ["└─ similar_to → #12 “Login”  (drawn elsewhere)"]


def test_an_event_behind_it_is_named_by_what_it_was():
    found = why(
        [
            edge("summary:12", "derives_from", "event:7"),
            edge("summary:12", "derives_from", "event:8"),
        ]
    )
    assert list(output.tree(found))[1:] == [
        "├─ derives_from → event:7 prompt",
        "└─ derives_from → event:8",
    ]


def test_a_memory_that_nothing_is_linked_to_stands_alone():
    assert list(output.tree(why())) == ["#12 “Login”"]
    assert list(output.dot(why()))[-2:] == ['  n0 [label="#12 “Login”", penwidth="2"];', "}"]


def test_the_dot_has_a_line_for_each_node_and_each_edge():
    lines = list(output.dot(FOUND))
    assert lines[0] == "digraph memd {"
    assert sum("->" in line for line in lines) == len(output.arrows(FOUND))
    assert '  n0 -> n1 [label="edits"];' in lines
    assert any('label="supersedes (undone)", style="dotted"' in line for line in lines)


def hostile():
    return why(
        [edge("summary:12", "edits", f"file:/{HOSTILE}"), edge("summary:12", "causes", "summary:13")],
        [supersession(14, 12, HOSTILE)], title=HOSTILE, titles={"summary:13": HOSTILE * 40},
    )  # fmt: skip


def test_no_title_can_end_a_string_or_a_line():
    lines = list(output.dot(hostile()))
    for line in lines[1:-1]:
        rest = STRING.sub("", line)
        assert re.fullmatch(
            r"  (?:n\d+(?: -> n\d+)? \[[\w=, ]*\]|(?:node|edge) \[[\w=, ]*\]|rankdir=);", rest
        ), line
    for line in (*lines, *output.tree(hostile())):
        assert line.isprintable()
        assert len(line) < 300


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it():
    for found in (FOUND, hostile()):
        drawn = subprocess.run(
            [shutil.which("dot"), "-Tsvg"], input="\n".join(output.dot(found)), text=True, capture_output=True, check=False
        )  # fmt: skip
        assert drawn.returncode == 0, drawn.stderr
        assert "</svg>" in drawn.stdout
