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
