def test_a_memory_is_pinned_and_let_go(memd, noted):
    number = noted("always say please", "--project", "global")
    assert "(pinned)" in memd("pin", number).out
    assert "(pinned)" not in memd("pin", f"#{number}", "--off").out


def test_a_memory_that_there_is_not_cannot_be_pinned(memd):
    ran = memd("pin", "999999")
    assert ran.status == 1
    assert "#999999" in ran.err
