def test_what_was_found_before_is_found_after(memd):
    query = ("search", "login 500", "--project", "all", "--json")
    before = [hit["id"] for hit in memd(*query).json["hits"]]
    ran = memd("reindex")
    assert ran.status == 0
    assert ran.out.startswith("done in ")
    assert [hit["id"] for hit in memd(*query).json["hits"]] == before
