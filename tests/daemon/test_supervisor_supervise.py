import json

import anyio
import pytest

from memd.daemon.supervisor import supervise
from memd.embeddings.circuit_breaker import RestartBackoff
from memd.errors import ConfigError


def hide(text):
    return text.replace("hunter2", "[redacted]")


pytestmark = pytest.mark.usefixtures("journal")


class Room:
    """Does what the test says, once per run: an exception is raised, None returns, else it stays."""

    def __init__(self, name, *script):
        self.name = name
        self.script = list(script)
        self.runs = 0
        self.stays = anyio.Event()

    async def run(self):
        self.runs += 1
        step = self.script.pop(0) if self.script else "stay"
        if isinstance(step, BaseException):
            raise step
        if step == "stay":
            self.stays.set()
            await anyio.sleep_forever()

    def status(self):
        return {}


@pytest.fixture
def quick(monkeypatch):
    """Waits that a test can afford: a thousandth of the real ones."""
    real = RestartBackoff.after_crash

    def hurry(backoff, ran_s, jitter):
        after = real(backoff, ran_s, jitter)
        return RestartBackoff(after.crashes, after.wait_s / 1000)

    monkeypatch.setattr(RestartBackoff, "after_crash", hurry)


@pytest.mark.usefixtures("quick")
async def test_a_crashed_room_is_tried_again_and_its_neighbours_never_notice():
    crashing = Room("indexer", ValueError("one"), ValueError("two"))
    steady = Room("intake")
    async with supervise(hide) as house:
        house.keep(crashing)
        house.keep(steady)
        with anyio.fail_after(60):
            await crashing.stays.wait()
        kept, neighbour = house.rooms
        assert (kept.state, kept.restarts, kept.last_error) == ("running", 2, "ValueError: two")
        assert (neighbour.state, neighbour.restarts, steady.runs) == ("running", 0, 1)
        assert kept.last_error_at is not None


@pytest.mark.usefixtures("quick")
async def test_a_crash_is_logged_with_its_traceback_and_without_secrets(journal):
    room = Room("distiller", RuntimeError("password is hunter2"))
    async with supervise(hide) as house:
        house.keep(room)
        with anyio.fail_after(60):
            await room.stays.wait()
        assert house.rooms[0].last_error == "RuntimeError: password is [redacted]"
    (entry,) = [line for line in journal() if line["event"] == "room_crashed"]
    assert entry["room"] == "distiller"
    assert "Traceback" in entry["exception"]
    assert "hunter2" not in json.dumps(entry)


@pytest.mark.usefixtures("quick")
async def test_a_group_of_errors_is_told_by_its_first_cause():
    inner = ExceptionGroup("inner", [OSError(28, "No space left on device")])
    room = Room("intake", ExceptionGroup("outer", [inner]))
    async with supervise(hide) as house:
        house.keep(room)
        with anyio.fail_after(60):
            await room.stays.wait()
        assert house.rooms[0].last_error == "OSError: [Errno 28] No space left on device"


async def test_while_it_waits_a_room_is_said_to_back_off():
    room = Room("listener", ValueError("no"))
    async with supervise(hide, jitter=lambda: 0.5) as house:
        house.keep(room)
        await anyio.wait_all_tasks_blocked()
        kept = house.rooms[0]
        assert (kept.state, kept.restarts, kept.backoff.wait_s) == ("backing off", 0, 1.0)


async def test_a_room_that_returns_is_done():
    room = Room("carrier", None)
    async with supervise(hide) as house:
        house.keep(room)
        await anyio.wait_all_tasks_blocked()
        assert (house.rooms[0].state, room.runs) == ("stopped", 1)


async def test_one_room_can_be_stopped_while_the_others_go_on():
    listener, intake = Room("listener"), Room("intake")
    async with supervise(hide) as house:
        house.keep(listener)
        house.keep(intake)
        await anyio.wait_all_tasks_blocked()
        await house.stop(listener)
        await house.stop(listener)  # it has already
        assert [kept.state for kept in house.rooms] == ["stopped", "running"]


async def test_leaving_the_house_stops_every_room():
    rooms = [Room("a"), Room("b", ValueError("backing off when the house closes"))]
    with anyio.fail_after(60):
        async with supervise(hide, jitter=lambda: 0.5) as house:
            for room in rooms:
                house.keep(room)
            await anyio.wait_all_tasks_blocked()
    assert [kept.state for kept in house.rooms] == ["stopped", "stopped"]


@pytest.mark.usefixtures("quick")
async def test_a_minute_of_health_forgives_earlier_crashes():
    clock = iter(
        [0, 1, 2, 3, 4, 100, 101]
    )  # started and crashed, three times; the third lasted
    room = Room("indexer", ValueError("1"), ValueError("2"), ValueError("3"))
    async with supervise(hide, seconds=lambda: next(clock)) as house:
        house.keep(room)
        with anyio.fail_after(60):
            await room.stays.wait()
        assert (house.rooms[0].backoff.crashes, house.rooms[0].restarts) == (1, 3)


async def test_a_wrong_setting_ends_the_house_rather_than_being_tried_again():
    with pytest.RaisesGroup(ConfigError):
        async with supervise(hide) as house:
            house.keep(Room("listener", ConfigError("the socket's path is too long")))
            await anyio.sleep_forever()
