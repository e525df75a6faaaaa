def test_the_command_line_leads_to_the_same_status_as_the_side_door(served, memd):
    """`__main__` answers `memd status` itself; with a help page in between it must say the same."""
    quick, slow = served.run("status", "--json"), memd("status", "--json")
    assert slow.status == quick.status == 0
    assert slow.json["pid"] == quick.json["pid"]


def test_its_help_says_what_the_exit_status_means(alone):
    assert "2 not running" in " ".join(alone("status", "--help").out.split())
