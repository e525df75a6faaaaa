from memd.cli import query


def test_a_memory_is_told_with_the_events_it_came_from(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    ran = memd("why", hit["id"])
    assert ran.status == 0
    assert ran.out.startswith(f"#{hit['id']} ")
    assert "  from event " in ran.out
    assert "by rule" in ran.out
    # An event that was quoted is not told again as an edge; a neighbour is told by its title.
    assert f"#{hit['id']} derives_from event:" not in ran.out
    assert " is “" in ran.out


def test_a_hash_before_the_id_is_understood(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    assert memd("why", f"#{hit['id']}", "--json").json["summary"]["id"] == hit["id"]


def test_a_replaced_memory_says_by_what(memd, noted):
    old = noted("the port is 8000", "--topic-key", "test.port", "--project", "global")
    new = noted("the port is 9000", "--topic-key", "test.port", "--project", "global")
    ran = memd("why", old)
    assert f"superseded by #{new}" in ran.out


def test_a_memory_that_there_is_not_is_told(memd):
    ran = memd("why", "999999")
    assert ran.status == 1
    assert "#999999" in ran.err


def test_what_it_is_linked_to_is_drawn_as_a_tree_and_for_graphviz(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    tree = memd("why", hit["id"], "--graph")
    assert tree.out.startswith(f"#{hit['id']} “")
    assert "─ derives_from → event:" in tree.out
    dot = memd("why", hit["id"], "--dot")
    assert dot.out.startswith("digraph memd {\n")
    assert 'label="derives_from"' in dot.out
    assert memd("why", hit["id"], "--dot", "--graph").status == 1


def test_the_rule_its_words_and_the_place_in_the_transcript_are_told(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    ran = memd("why", hit["id"])
    assert f"made by rule {hit['rule']} (" in ran.out
    assert "    in session " in ran.out
    assert "  tool use toolu_" in ran.out or "  line " in ran.out


def test_how_a_memory_was_used_is_told():
    showing = {
        "session": "s", "session_title": None, "moment": "prompt", "at": 0, "reason": "it fits",
    }  # fmt: skip
    access = {"count": 2, "last_at": 0, "shown": 1, "sessions": 1, "latest": [showing]}
    lines = list(query._used(access))
    assert lines[0].startswith("  used in 2 answers, the last ")
    assert lines[1] == "  shown unasked 1 time in 1 session:"
    assert lines[2].endswith("prompt  “s”: it fits")
