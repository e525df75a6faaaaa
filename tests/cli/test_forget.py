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
