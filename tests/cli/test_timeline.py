def test_the_neighbourhood_of_a_memory_marks_it(memd):
    hit = memd("search", "login 500", "--project", "all", "--json").json["hits"][0]
    ran = memd("timeline", "--around", f"#{hit['id']}")
    assert ran.status == 0
    (pivot,) = [line for line in ran.out.splitlines() if line.startswith("→")]
    assert f"#{hit['id']} " in pivot


def test_rows_are_in_the_order_of_their_events(memd):
    rows = memd("timeline", "--at", "2026-11-21", "--project", "all", "--json").json["rows"]
    times = [row["summary"]["at"] for row in rows]
    assert times == sorted(times)
    assert times


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
    assert "--around, --session and --at" in ran.err
