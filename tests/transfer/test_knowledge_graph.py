import json

from memd import transfer
from memd.transfer import ReadIssues, foreign_memories
from tests.tables import every_row

GRAPH = [
    {"type": "entity", "name": "Ann Lee", "entityType": "person", "observations": ["likes tea"]},
    {"type": "entity", "name": "Acme", "entityType": "company", "observations": []},
    {"type": "relation", "from": "Ann Lee", "to": "Acme", "relationType": "works at"},
]


def read(records, at=7):
    issues = ReadIssues()
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    return foreign_memories.read_graph(lines, at, issues), issues


def test_a_broken_line_is_reported_and_costs_nothing_else():
    broken = [b"{no", b"", b"[]", b'{"type":"entity"}', b'{"type":"relation","from":"a"}', b"\xff"]
    found, issues = read([GRAPH[0], *broken])
    assert [one.part for one in found] == ["Ann Lee"]
    assert [where.partition(":")[0] for where in issues.broken] == [
        "line 2", "line 4", "line 5", "line 7", "line 6",
    ]  # fmt: skip


def test_repeated_and_only_related_entities_are_one_each():
    again = {**GRAPH[0], "observations": ["likes tea", {"content": "plays chess"}]}
    found, _ = read([*GRAPH[:1], again, {"from": "Ann Lee", "to": "Bob", "relationType": "knows"}])
    assert [one.text for one in found] == [
        "Ann Lee (person)\n- likes tea\n- plays chess\n- Ann Lee knows Bob",
        "Bob\n- Ann Lee knows Bob",
    ]


def test_a_graph_in_one_object_is_read_too():
    whole = {"entities": GRAPH[:2], "relations": GRAPH[2:]}
    assert [one.part for one in read([whole])[0]] == ["Ann Lee", "Acme"]


def test_an_entity_with_many_observations_is_split():
    large = {**GRAPH[0], "observations": [f"{n} " + "word " * 500 for n in range(40)]}
    found, _ = read([large])
    assert [one.part for one in found] == ["Ann Lee", "Ann Lee [2]", "Ann Lee [3]", "Ann Lee [4]"]
    assert all(len(one.text.encode()) <= transfer.TEXT_BYTES_MAX for one in found)


@every_row("value", [None, 3, "text", {}, [None, 3, []]])
def test_strange_values_never_raise(value):
    for name in ("name", "entityType", "observations"):
        read([{**GRAPH[0], name: value}])
    read([{**GRAPH[2], "relationType": value, "to": value}])


def test_a_graph_whose_relations_are_no_list_keeps_its_entities():
    lines = [json.dumps({"entities": [GRAPH[0]], "relations": True}).encode()]
    assert len(foreign_memories.read_graph(lines, 7, ReadIssues())) == 1
