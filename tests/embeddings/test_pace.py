from memd.embeddings.pace import REQUEST_S, Pace


def test_it_begins_with_a_few():
    assert Pace().size(32) == 4
    assert Pace().size(2) == 2


def test_a_slow_machine_gets_one_text_at_a_time():
    assert Pace().after(4, 2.0).size(32) == 1


def test_a_quick_one_gets_ever_more_up_to_the_limit():
    pace, sizes = Pace(), []
    for _ in range(6):
        sizes.append(pace.size(32))
        pace = pace.after(sizes[-1], 0.0005 * sizes[-1])
    assert sizes == [4, 8, 16, 32, 32, 32]


def test_a_request_takes_about_as_long_as_a_question_can_bear():
    pace = Pace().after(4, 4 * 0.004).after(5, 5 * 0.004)
    assert pace.size(32) * 0.004 <= REQUEST_S


def test_no_time_at_all_is_not_divided_by():
    assert Pace().after(4, 0.0).size(64) == 8
