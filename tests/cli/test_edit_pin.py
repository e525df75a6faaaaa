def test_a_memory_is_pinned_and_let_go(memd, noted):
    number = noted("always say please", "--project", "global")
    assert "(pinned)" in memd("pin", number).out
    assert "(pinned)" not in memd("pin", f"#{number}", "--off").out


def test_a_pin_of_what_is_hidden_says_that_it_stays_so_and_what_shows_it(memd, noted):
    old = noted("meet at noon", "--topic-key", "meet.at", "--project", "global")
    new = noted("meet at one", "--topic-key", "meet.at", "--project", "global")
    ran = memd("pin", old)
    assert ran.out.endswith(
        f"\n  it stays hidden by #{new}; memd judge {new} {old} --undo shows it\n"
    )
    assert memd("judge", new, old, "--undo").out.endswith(f"#{old} shows again\n")
    assert "stays hidden" not in memd("pin", old, "--off").out


def test_a_memory_that_there_is_not_cannot_be_pinned(memd):
    ran = memd("pin", "999999")
    assert ran.status == 1
    assert "#999999" in ran.err
