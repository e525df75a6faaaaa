"""What any way of sharing owes to two vaults: a folder, a repository, a clone, ssh, and PostgreSQL, by one suite."""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import psycopg
import pytest

from memd.sharing.records import PlaceUnreachable
from memd.sharing.team_server import ServerUnreachable
from tests.sharing.test_places import fake_ssh, make_place, sync_place  # noqa: F401  # a fixture

GOLD = "The ledger rounds half to even"
_VISIBLE = (
    "SELECT body FROM summaries WHERE id NOT IN"
    " (SELECT older_id FROM supersessions WHERE undone_at IS NULL)"
)
in_thread = anyio.to_thread.run_sync


class Device:
    """A vault that shares all it has, by a place."""

    def __init__(self, vault, place):
        self.vault, self.place = vault, place

    async def say(self, text, **more):
        self.vault.now += 60_000
        return self.vault.remember(text, **more)

    async def forget(self, number):
        await self.vault.forget(number)

    async def share(self):
        """How much was sent, and how much came."""
        report = await sync_place(self.vault, self.place)
        return report.sent, sum(report.received.values())

    def see(self):
        return sorted(
            body for (body,) in self.vault.db.read_now(lambda tx: list(tx.execute(_VISIBLE)))
        )


class Person:
    """A vault that shares a project, by a server."""

    def __init__(self, teammate):
        self.teammate, self.has_joined = teammate, False

    async def say(self, text, **more):
        self.teammate.clock.advance(s=60)
        return await self.teammate.remember(text, **more)

    async def forget(self, number):
        await self.teammate.forget(number)

    async def share(self):
        """How much was sent, and how much came."""
        if not self.has_joined:
            await self.teammate.join()
            self.has_joined = True
        exchange = await self.teammate.exchange()
        return exchange.sent, exchange.written

    def see(self):
        return sorted(body for _, body in self.teammate.see())


@dataclass
class Sharing:
    """Two who share something, and what is between them."""

    one: Any
    other: Any
    read: Any
    """All texts that it has now."""
    cut: Any
    """Make it unreachable, and `mend` undoes that."""
    mend: Any


@pytest.fixture(params=["folder", "repository", "clone", "ssh", "postgres"])
def sharing(request, tmp_path):
    if request.param == "postgres":
        return share_by_server(request)
    cut_ssh = request.getfixturevalue("fake_ssh")
    make = request.getfixturevalue("make_vault")
    find = make_place(request.param, tmp_path)
    one, other = [Device(make(name), find(name)) for name in ("desk", "laptop")]
    home = tmp_path / ("place.git" if request.param in {"repository", "clone"} else "there")
    away = tmp_path / "away"
    if request.param == "ssh":
        return Sharing(one, other, lambda: read_chunks(home), cut_ssh.touch, cut_ssh.unlink)
    texts = home if request.param == "folder" else one.place.folder
    return Sharing(
        one, other, lambda: read_chunks(texts), lambda: home.rename(away), lambda: away.rename(home)
    )


def share_by_server(request):
    teammate, team = request.getfixturevalue("teammate"), request.getfixturevalue("team")
    postgres = request.getfixturevalue("postgres")

    def read():
        with psycopg.connect(team("owner")) as connection:
            rows = connection.execute("SELECT record FROM memd.records")
            return "\n".join(str(record) for (record,) in rows)

    one, other = Person(teammate("ann")), Person(teammate("bob"))
    return Sharing(one, other, read, postgres.kill, postgres.start)


def read_chunks(folder):
    found = Path(folder).rglob("*.memd")
    return "\n".join(zlib.decompress(file.read_bytes()).decode() for file in found)


async def test_what_each_says_the_other_sees_once_and_then_nobody_has_anything_to_say(sharing):
    one, other = sharing.one, sharing.other
    await one.say(GOLD)
    await other.say("Tests run without a network")
    for party in (one, other, one):
        await party.share()
    assert one.see() == other.see() == ["Tests run without a network", GOLD]
    assert GOLD in await in_thread(sharing.read)
    assert [await party.share() for party in (one, other)] == [(0, 0), (0, 0)]


async def test_a_new_value_replaces_the_old_one_for_both(sharing):
    one, other = sharing.one, sharing.other
    await one.say("The port is 8080", topic_key="port")
    for party in (one, other):
        await party.share()
    await one.say("The port is 9090", topic_key="port")
    for party in (one, other):
        await party.share()
    assert one.see() == other.see() == ["The port is 9090"]


async def test_what_is_forgotten_leaves_both_and_what_is_between_them(sharing):
    one, other = sharing.one, sharing.other
    number = await one.say(GOLD)
    await one.say("It stays")
    for party in (one, other):
        await party.share()
    await one.forget(number)
    for party in (one, other, one):
        await party.share()
    assert one.see() == other.see() == ["It stays"]
    assert GOLD not in await in_thread(sharing.read)


async def test_what_is_said_while_nothing_is_reachable_waits(sharing):
    one, other = sharing.one, sharing.other
    await one.say(GOLD)
    await one.share()
    await in_thread(sharing.cut)
    await one.say("Said on the train")
    with pytest.raises((PlaceUnreachable, ServerUnreachable)):
        await one.share()
    await in_thread(sharing.mend)
    for party in (one, other):
        await party.share()
    assert one.see() == other.see() == ["Said on the train", GOLD]
