"""Whose word holds when two devices did not know of each other."""

import pytest

from tests.sharing.devices import Device, Place, converge


@pytest.fixture
def devices():
    """Two devices that both know two memories of the agent's, the second with a clock a year ahead."""
    desk, laptop = Device("desk"), Device("laptop", skew=365 * 86_400_000)
    place = Place()
    for text in ("The port is 8080", "Deploy on Fridays"):
        desk.remember(text, by="agent")
    converge((desk, laptop), place)
    return desk, laptop, place


def hidden(device):
    rows = device.tx.execute("SELECT older_id FROM supersessions WHERE undone_at IS NULL")
    return {number for (number,) in rows}


def contradictions(device):
    return [row for row in device.state()["edges"] if row[1] == "contradicts"]


def test_what_the_user_pinned_here_is_not_hidden_by_what_an_agent_said_there(devices):
    desk, laptop, place = devices
    desk.pin(1)
    laptop.judge(2, 1, "supersedes", by="agent")
    assert hidden(laptop) == {1}
    converge((laptop, desk), place)
    assert hidden(desk) == hidden(laptop) == set()
    assert len(contradictions(desk)) == len(contradictions(laptop)) == 1
    # When the pin goes, what the agent said holds after all, and the contradiction goes.
    desk.unpin(1)
    converge((laptop, desk), place)
    assert hidden(desk) == hidden(laptop) == {1}
    assert contradictions(desk) == contradictions(laptop) == []


def test_the_user_s_judgment_stands_above_an_agent_s_later_one(devices):
    desk, laptop, place = devices
    desk.judge(1, 2, "compatible", by="user")
    laptop.judge(2, 1, "supersedes", by="agent")
    converge((desk, laptop), place)
    assert hidden(desk) == hidden(laptop) == set()
    assert desk.state()["judged"] == laptop.state()["judged"]
    assert [row[2:] for row in desk.state()["judged"]] == [("compatible", "user")]


def test_a_wrong_clock_decides_nothing_between_versions_that_know_of_each_other(devices):
    desk, laptop, place = devices
    laptop.pin(1)  # a year ahead
    converge((desk, laptop), place)
    desk.unpin(1)
    converge((laptop, desk), place)
    assert not [row for row in laptop.state()["memories"] if row[-1]]


def test_two_circles_of_replacement_become_one_order(devices):
    desk, laptop, place = devices
    desk.judge(1, 2, "supersedes")
    laptop.judge(2, 1, "supersedes")
    converge((desk, laptop), place)
    assert len(hidden(desk)) == 1
    assert desk.state() == laptop.state()


def test_values_of_one_topic_from_two_devices_leave_the_newest_unless_a_greater_voice_said_the_other():
    desk, laptop, place = Device("desk"), Device("laptop"), Place()
    laptop.now += 1_000
    desk.remember("We deploy on Mondays", topic="deploy.day")
    laptop.remember("We deploy on Tuesdays", topic="deploy.day")
    desk.remember("The port is 8080", topic="port")
    laptop.remember("Port nine thousand it is", topic="port", by="agent")
    converge((desk, laptop), place)
    assert desk.state() == laptop.state()
    bodies = {
        body
        for (body,) in desk.tx.execute(
            "SELECT body FROM summaries WHERE id NOT IN (SELECT older_id FROM supersessions WHERE undone_at IS NULL)"
        )
    }
    assert bodies == {"We deploy on Tuesdays", "The port is 8080", "Port nine thousand it is"}
    assert len(contradictions(desk)) == 1


def test_what_was_forgotten_here_is_forgotten_though_it_was_strengthened_there(devices):
    desk, laptop, place = devices
    desk.forget(1)
    laptop.remember("The port is 8080", by="user")
    laptop.pin(1)
    converge((laptop, desk), place)
    assert len(desk.ids()) == len(laptop.ids()) == 1
    # Said again, it is a new memory, on both; forgotten again, it is gone again.
    desk.remember("The port is 8080")
    converge((laptop, desk), place)
    assert len(laptop.ids()) == 2
    laptop.forget(max(laptop.ids()))
    converge((desk, laptop), place)
    assert len(desk.ids()) == len(laptop.ids()) == 1
