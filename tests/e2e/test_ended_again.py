"""What was kept only because it ended something is not told when that holds again: real daemon, hooks, commands."""

import itertools

import pytest

from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_told_at_the_moment import Session

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("d")).start()
    yield it
    it.stop()


@pytest.fixture
def place(tmp_path):
    (tmp_path / ".git").mkdir()
    return str(tmp_path)


@pytest.fixture
def says(daemon, place):
    def say(*prompts):
        session = Session(daemon, f"ended{next(NUMBERS)}", place)
        session.hook("SessionStart", source="startup")
        for prompt in prompts:
            session.asks(prompt)
            session.ends("OK.")
        return session

    return say


@pytest.fixture
def call(daemon, place):
    def ask(method, **params):
        with daemon.client() as client:
            return client.call(method, {"directory": place, **params})

    return ask


@pytest.fixture
def titles(call):
    def ask(query, **more):
        hits = call("memd/search", query=query, show_all=True, **more)["hits"]
        return {one["title"]: one for one in hits}

    return ask


CASES = [
    ("Never water the orchids on Sundays!", "Watering the orchids on Sundays is fine from now on."),
    ("Always write the minutes in Latin!", "Stop writing the minutes in Latin."),
]


@pytest.mark.parametrize(("rule", "later"), CASES)
def test_one_undo_lets_the_old_hold_and_takes_away_what_ended_it(
    daemon, says, call, titles, rule, later
):
    says(rule)
    says(later)
    assert f"user: {rule}" not in call("memd/context")["text"]
    (ended,) = (
        one for one in titles(rule, include_superseded=True).values() if one["title"] == rule
    )
    number, ending = ended["id"], ended["superseded_by"]
    told = call("memd/get", ids=[ending])["memories"][0]["title"]
    said = daemon.run("undo").stdout.decode()
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
    with daemon.client() as client:
        client.call("memd/reindex", {"memories": True})
    daemon.wait_for(
        lambda: (
            "left"
            not in next(one for one in daemon.status()["rooms"] if one["name"] == "redistiller")
        )
    )
    daemon.settle()
    check()
    call("memd/judge", id=ending, relation="supersedes", other=number)
    assert call("memd/why", id=ending)["verdict"] == "current"
    assert f"user: {rule}" not in call("memd/context")["text"]
    assert set(titles(rule)) == {told}
    daemon.run("undo")
    check()
    call("memd/judge", id=ending, relation="compatible", other=number)
    check()
