"""What was kept only because it ended something is not told when that holds again: real daemon, hooks, commands."""

import pytest


@pytest.fixture
def titles(call):
    def ask(query, **more):
        hits = call("memd/search", query=query, show_all=True, **more)["hits"]
        return {one["title"]: one for one in hits}

    return ask


@pytest.fixture
def undo(shared_daemon, place):
    """`memd undo` in the test's place; what it says."""

    def run():
        return shared_daemon.run("undo", "--project", place).stdout.decode()

    return run


CASES = [
    ("Never water the orchids on Sundays!", "Watering the orchids on Sundays is fine from now on."),
    ("Always write the minutes in Latin!", "Stop writing the minutes in Latin."),
]


@pytest.mark.parametrize(("rule", "later"), CASES)
def test_one_undo_lets_the_old_hold_and_takes_away_what_ended_it(  # noqa: PLR0917  # cases and fixtures
    shared_daemon, says, call, titles, undo, rule, later
):
    says(rule)
    says(later)
    assert f"user: {rule}" not in call("memd/context")["text"]
    (ended,) = (
        one for one in titles(rule, include_superseded=True).values() if one["title"] == rule
    )
    number, ending = ended["id"], ended["superseded_by"]
    told = call("memd/get", ids=[ending])["memories"][0]["title"]
    said = undo()
    assert f"#{number} is shown again instead of #{ending}" in said

    def check():
        shown = call("memd/context")["text"]
        assert f"user: {rule}" in shown
        assert told not in shown
        assert "No longer" not in shown
        assert later not in shown
        assert set(titles(rule)) == {rule}
        assert call("memd/why", id=number)["verdict"] == "current"
        assert call("memd/why", id=ending)["verdict"].startswith("not told: what it ended holds")

    check()
    assert titles(rule, include_superseded=True).keys() == {rule, told}
    with shared_daemon.client() as client:
        client.call("memd/reindex", {"memories": True})
    shared_daemon.wait_for(
        lambda: (
            "left"
            not in next(
                one for one in shared_daemon.status()["rooms"] if one["name"] == "redistiller"
            )
        )
    )
    shared_daemon.settle()
    check()
    call("memd/judge", id=ending, relation="supersedes", other=number)
    assert call("memd/why", id=ending)["verdict"] == "current"
    assert f"user: {rule}" not in call("memd/context")["text"]
    assert set(titles(rule)) == {told}
    undo()
    check()
    call("memd/judge", id=ending, relation="compatible", other=number)
    check()
