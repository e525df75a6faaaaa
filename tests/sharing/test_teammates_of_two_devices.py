"""A teammate of somebody with two devices sees what one vault of that person would show, by whichever log it came."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.sharing import postgres
from memd.sharing.postgres import compute_mark
from memd.sharing.records import LogBatch, LogRow
from memd.sharing.team_replica import TeamReplica
from memd.store.sharing import JoinedProject
from tests.sharing.devices import Device
from tests.sharing.test_one_vault import EXAMPLES, HISTORIES, World, act, uids, visible_bodies
from tests.tables import every_row

JOINED = JoinedProject("app", "/src/ledger", has_instructions=False, joined_at=1)
HERS = ("desk", "laptop", "train")


class Server:
    """What a team's server holds, without one: log → name → (number, text)."""

    def __init__(self):
        self.logs = {}

    def write(self, device):
        """Let a device's log say what it shares, as PostgresTransport does."""
        with device.tx:
            device.replica().note_changes()
            replica = TeamReplica(device.tx, device.name, device.clock(), joined=JOINED)
            records = [record for _, record in replica.own_records()]
        mine = self.logs.setdefault(f"ann {device.name}", {})
        said = {name for log in self.logs.values() for name in log}
        for record in records:
            name, text = postgres.row_name(record), postgres.write_row(record)
            is_retraction = record.value is None or record.kind == "forget"
            is_local = record.stamp == postgres.NOWHERE
            if is_retraction and name not in (mine if is_local else said):
                continue
            if name not in mine or mine[name][1] != text:
                mine[name] = (max([0, *(seq for seq, _ in mine.values())]) + 1, text)

    def read(self, reader):
        """Let a teammate read every log from its beginning."""
        for log, rows in self.logs.items():
            found = sorted((seq, name, text) for name, (seq, text) in rows.items())
            noted = tuple(
                LogRow(name, seq, compute_mark(seq, name, text), "", "")
                for seq, name, text in found
            )
            records = tuple(postgres.read_row(name, text) for _, name, text in found)
            position = f"{len(found)} {sum(row.mark for row in noted)}"
            batch = LogBatch(log, log, position, records, (), True, noted)
            with reader.tx:
                replica = TeamReplica(reader.tx, "bob", reader.clock(), joined=JOINED)
                replica.merge(records, batch)
                replica.settle()
        reader.erase()


@settings(max_examples=EXAMPLES)
@given(HISTORIES, st.lists(st.sampled_from(HERS), max_size=6))
def test_a_teammate_sees_what_the_one_vault_of_the_author_shows(history, some):
    world, server, bob = World(), Server(), Device("bob")
    for number, (name, action) in enumerate(history):
        act(world, name, *action)
        if number % 5 == 4:  # in between, too
            for one in some:
                server.write(world.devices[one])
            server.read(bob)
            for one in some:
                gone = world.devices[one].tx.execute("SELECT key FROM forgotten").fetchall()
                there = {postgres.make_uid("app", "ann", uid) for (uid,) in gone}
                assert there.isdisjoint(uids(bob))
    world.settle_all()
    for name in HERS:
        server.write(world.devices[name])
    server.read(bob)
    assert visible_bodies(bob) == visible_bodies(world.one)
    texts = "".join(text for log in server.logs.values() for _, text in log.values())
    for said in world.forgotten.values():
        assert f'"body":"{said}"' not in texts


def say(world, name, text, **more):
    assert world.do(name, lambda vault: vault.remember(text, **more))


@every_row("order", [("desk", "laptop"), ("laptop", "desk")])
def test_of_two_values_that_two_devices_share_a_teammate_sees_the_last_before_the_devices_have_met(
    order,
):
    world, server, bob = World(), Server(), Device("bob")
    say(world, "desk", "Retry three times", topic="retry")
    say(world, "laptop", "Retry five times", topic="retry")
    for name in order:
        server.write(world.devices[name])
    server.read(bob)
    assert visible_bodies(bob) == ["Retry five times"]


@pytest.mark.parametrize("change", ["replaces", "forgets"])
def test_what_one_device_changed_is_gone_though_the_other_still_shares_it(change):
    world, server, bob = World(), Server(), Device("bob")
    say(world, "desk", "Retry three times", topic="retry")
    for name in ("desk", "laptop"):
        world.sync(name)
        server.write(world.devices[name])
    (number,) = world.devices["laptop"].ids()
    world.devices["laptop"].now = world.now + 1_000
    if change == "replaces":
        world.devices["laptop"].edit(number, "Repeat it thrice")
    else:
        world.devices["laptop"].forget(number)
    server.write(world.devices["laptop"])
    server.read(bob)
    assert visible_bodies(bob) == (["Repeat it thrice"] if change == "replaces" else [])
