def test_what_is_remembered_is_found_at_once(memd, noted):
    number = noted(
        "deploys happen from the harbour branch", "--kind", "fact", "--project", "global"
    )
    hits = memd("search", "harbour branch deploys", "--project", "all", "--json").json["hits"]
    assert hits[0]["id"] == number
    assert hits[0]["kind"] == "fact"


def test_a_new_value_of_a_topic_says_what_it_replaces(memd, noted):
    old = noted("tabs", "--topic-key", "test.indent", "--project", "global")
    ran = memd("remember", "spaces", "--topic-key", "test.indent", "--project", "global")
    assert f"replaces #{old}" in ran.out
    memd("forget", "--yes", ran.out.split()[0])


def test_words_need_no_quotes_and_what_was_kept_is_shown(memd):
    ran = memd("remember", "the", "harbour", "is", "closed", "--project", "global")
    number, said = ran.out.splitlines()
    assert number.endswith("remembered in global")
    assert said == "    the harbour is closed"
    memd("forget", "--yes", number.split()[0])


def test_a_kind_that_there_is_not_is_refused(memd):
    ran = memd("remember", "x", "--kind", "nonsense")
    assert ran.status == 1
    assert ran.err.startswith("memd: kind: must be one of decision, fix, ")


def test_an_empty_text_is_refused(memd):
    assert memd("remember", "").status == 1
