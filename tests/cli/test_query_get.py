def test_a_memory_is_shown_whole(memd, noted):
    text = "first line\n\n" + "the whole of a long text " * 50
    number = noted(text, "--title", "long", "--project", "global")
    ran = memd("get", f"#{number}")
    assert ran.status == 0
    assert ran.out.startswith(f"#{number} note  ")
    assert text.strip() in ran.out


def test_a_memory_that_there_is_not_is_told_beside_those_that_are(memd, noted):
    number = noted("something that is there", "--project", "global")
    ran = memd("get", number, "999999")
    assert ran.status == 1
    assert "something that is there" in ran.out
    assert "#999999" in ran.err


def test_the_full_form_is_for_programs(memd, noted):
    number = noted("something that is there", "--project", "global")
    assert memd("get", number, "--json").json["memories"][0]["id"] == number
