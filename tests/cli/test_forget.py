from memd.cli import forget


def test_without_a_yes_it_only_says_what_would_go(memd, noted):
    number = noted("the secret handshake", "--project", "global")
    ran = memd("forget", number)
    assert ran.status == 1
    assert f"would forget #{number}" in ran.out
    assert "--yes" in ran.err
    assert memd("get", number).status == 0


def test_with_a_yes_it_is_gone(memd):
    number = memd("remember", "a passing thought", "--project", "global", "--json").json["id"]
    ran = memd("forget", f"#{number}", "--yes")
    assert ran.status == 0
    assert ran.out.startswith(f"forgot #{number} ")
    assert memd("get", number).status == 1


def test_what_there_is_not_cannot_be_forgotten(memd):
    ran = memd("forget", "999999")
    assert ran.status == 1
    assert "#999999" in ran.out + ran.err


def test_the_plan_is_for_programs_too(memd, noted):
    number = noted("planned", "--project", "global")
    plan = memd("forget", number, "--json").json
    assert plan["is_dry_run"]
    assert [one["id"] for one in plan["summaries"]] == [number]


def test_a_query_shows_what_says_all_of_its_words_and_erases_it(memd, noted):
    number = noted("a quetzal nests in the attic", "--project", "global")
    noted("a quetzal flies", "--project", "global")
    ran = memd("forget", "--query", "quetzal NESTS", "--dry-run")
    assert (ran.status, ran.out.count("would forget")) == (0, 1)
    assert f"would forget #{number} " in ran.out
    assert memd("forget", "--query", "quetzal nests", "--yes").status == 0
    assert memd("get", number).status == 1
    assert memd("forget", "--query", "quetzal nests").out == "nothing fits\n"


def test_everything_at_once_is_not_forgotten(memd):
    for words in ([], ["--project", "all"], ["1", "--query", "x"]):
        ran = memd("forget", "--yes", *words)
        assert (ran.status, ran.err.count("\n")) == (1, 1)


def test_a_long_list_is_cut_short_and_says_what_stays():
    said = {
        "is_dry_run": True, "summaries": [], "count": 300, "events": 0, "kept_events": 2,
        "sessions": ["a", "b"], "revived": list(range(30)), "also_in": [4], "unknown": [],
        "backups": [], "token": "",
    }  # fmt: skip
    lines = list(forget._lines(said))
    assert lines[0] == "would forget 300 more, 300 memories in all"
    assert "would forget all of the session “a”" in lines
    assert "2 events stay, for other memories come from them" in lines
    assert "… and 10 more such" in lines
