"""Three devices that say things apart remember what one vault would that heard the same in order of time."""

import os
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.consolidate.judgments import undo_judgment
from memd.errors import BadRequest, UnknownId
from memd.models import Authority
from tests.sharing.devices import Device, Place, converge
from tests.tables import every_row

EXAMPLES = int(os.environ.get("MEMD_SHARING_EXAMPLES", "40"))
DEVICES = ("desk", "laptop", "train")
TEXTS = {
    "retry": ("Retry three times", "Retry five times", "Retry seven times"),
    "owner": ("Ann answers the phone", "Bob answers the phone", "Kim answers the phone"),
    None: ("Write tests first", "Never on a Sunday", "The port is 8080", "The port is 9090"),
}
STEP_MS = 60_000
_VISIBLE = (
    "SELECT uid FROM summaries WHERE id NOT IN (SELECT older_id FROM supersessions WHERE undone_at IS NULL)"
    " ORDER BY uid"
)


class World:
    """Devices that share a place, and the one vault that hears everything at once."""

    def __init__(self):
        self.devices = {name: Device(name) for name in DEVICES}
        self.one, self.place, self.now = Device("one"), Place(), self.start()
        self.forgotten = {}

    def start(self):
        return next(iter(self.devices.values())).now

    def do(self, name, action):
        """Let somebody do something on a device, and in the one vault, or on neither."""
        self.now += STEP_MS
        device = self.devices[name]
        try:
            with device.tx, self.one.tx:
                for vault in (device, self.one):
                    vault.now = self.now
                    action(vault)
        except (BadRequest, UnknownId):
            return False
        return True

    def sync(self, name):
        self.now += STEP_MS
        self.devices[name].now = self.now
        self.devices[name].sync(self.place)

    def settle_all(self):
        self.now += STEP_MS
        for device in self.devices.values():
            device.now = self.now
        converge(list(self.devices.values()), self.place)


def uids(device):
    return [uid for (uid,) in device.tx.execute("SELECT uid FROM summaries ORDER BY uid")]


def visible(device):
    return [uid for (uid,) in device.tx.execute(_VISIBLE)]


def visible_bodies(device):
    query = _VISIBLE.replace("SELECT uid", "SELECT body")
    return sorted(body for (body,) in device.tx.execute(query))


def settle(world):
    """What each device shows once all have synced, which is the same."""
    world.settle_all()
    first, *others = [visible_bodies(device) for device in world.devices.values()]
    assert others == [first] * len(others)
    return first


def body_of(device, uid):
    return device.tx.execute("SELECT body FROM summaries WHERE uid = ?", (uid,)).get


def number_of(device, uid):
    found = device.tx.execute("SELECT id FROM summaries WHERE uid = ?", (uid,)).get
    if found is None:
        raise UnknownId(uid)
    return found


def hidden_pairs(device):
    rows = device.tx.execute(
        "SELECT n.uid, o.uid FROM supersessions x JOIN summaries n ON n.id = x.newer_id"
        " JOIN summaries o ON o.id = x.older_id WHERE x.undone_at IS NULL ORDER BY 1, 2"
    )
    return list(rows)


# ── The sequences that brought a replaced value back ─────────────────────────────────────────────


def say(world, name, text, topic="retry", by="user"):
    assert world.do(name, lambda vault: vault.remember(text, topic=topic, by=by))


def test_a_value_that_was_replaced_elsewhere_stays_replaced_by_a_third_one():
    world = World()
    say(world, "desk", "Retry three times")
    world.sync("desk")
    say(world, "laptop", "Retry five times")
    for name in ("laptop", "desk"):
        world.sync(name)
    assert visible_bodies(world.devices["desk"]) == ["Retry five times"]
    say(world, "desk", "Retry seven times")
    world.sync("desk")
    assert visible_bodies(world.devices["desk"]) == ["Retry seven times"]
    assert settle(world) == visible_bodies(world.one) == ["Retry seven times"]


@every_row("order", list(permutations(DEVICES)))
def test_the_last_of_three_values_holds_in_whatever_order_devices_hear_of_them(order):
    world = World()
    for name, text in zip(DEVICES, TEXTS["retry"], strict=True):
        say(world, name, text)
    for name in (*order, *order):
        world.sync(name)
    for device in world.devices.values():
        assert visible_bodies(device) == ["Retry seven times"]
    say(world, order[0], "Retry nine times")
    assert settle(world) == ["Retry nine times"]


@every_row(("by", "holds"), [("user", "Retry three times"), ("agent", "Retry five times")])
def test_a_value_said_again_without_knowing_of_another_holds_again_unless_a_lesser_voice_says_it(
    by, holds
):
    world = World()
    say(world, "desk", "Retry three times")
    world.settle_all()
    say(world, "laptop", "Retry five times")
    say(world, "desk", "Retry three times", by=by)
    assert settle(world) == visible_bodies(world.one) == [holds]


def test_a_changed_value_without_a_topic_replaces_the_older_one_with_the_sync():
    world = World()
    say(world, "desk", "The port is 8080", topic=None)
    say(world, "laptop", "The port is 9090", topic=None)
    for name in ("desk", "laptop", "desk"):
        world.sync(name)
    for name in ("desk", "laptop"):
        assert visible_bodies(world.devices[name]) == ["The port is 9090"]
    say(world, "desk", "The port is 7070", topic=None)
    assert settle(world) == visible_bodies(world.one) == ["The port is 7070"]


def test_the_middle_of_three_values_is_forgotten_and_the_first_stays_replaced():
    world = World()
    for name, text in zip(DEVICES, TEXTS["retry"], strict=True):
        say(world, name, text)
    world.settle_all()
    (middle,) = (
        uid
        for uid, body in world.devices["desk"].tx.execute("SELECT uid, body FROM summaries")
        if body == "Retry five times"
    )
    assert world.do("desk", lambda vault: vault.forget(number_of(vault, middle)))
    assert settle(world) == ["Retry seven times"]


# ── Any history ──────────────────────────────────────────────────────────────────────────────────

NUMBERS = st.integers(0, 7)
SPEAKERS = st.sampled_from(("user", "user", "agent"))
STATEMENTS = st.sampled_from([(topic, text) for topic, texts in TEXTS.items() for text in texts])
ACTIONS = st.one_of(
    st.tuples(st.just("remember"), STATEMENTS, SPEAKERS),
    st.tuples(st.just("remember"), STATEMENTS, SPEAKERS),
    st.tuples(st.just("edit"), NUMBERS, st.sampled_from(("In other words", "Put another way"))),
    st.tuples(st.sampled_from(("pin", "unpin", "forget")), NUMBERS),
    st.tuples(st.just("judge"), NUMBERS, NUMBERS, st.sampled_from(("supersedes", "compatible")), SPEAKERS),
    st.tuples(st.just("undo"), NUMBERS),
    st.tuples(st.just("sync")),
    st.tuples(st.just("sync")),
)  # fmt: skip
HISTORIES = st.lists(st.tuples(st.sampled_from(DEVICES), ACTIONS), min_size=6, max_size=24)


def act(world, name, what, *arguments):
    """Do it on the device with what is known there."""
    device = world.devices[name]
    if what == "sync":
        world.sync(name)
    elif what == "remember":
        (topic, text), by = arguments
        # Forgetting is final for who does not know of it: memd/sharing/records.py.
        if text not in world.forgotten.values():
            world.do(name, lambda vault: vault.remember(text, topic=topic, by=by))
    elif what == "undo":
        if pairs := hidden_pairs(device):
            newer, older = pairs[arguments[0] % len(pairs)]
            world.do(name, lambda vault: undo_judgment(
                vault.tx, number_of(vault, newer), number_of(vault, older), Authority.USER_HAND, vault.clock(),
            ))  # fmt: skip
    elif known := visible(device):
        picked = known[arguments[0] % len(known)]
        if what == "judge":
            other = known[arguments[1] % len(known)]
            relation, by = arguments[2:]
            world.do(name, lambda vault: vault.judge(
                number_of(vault, picked), number_of(vault, other), relation, by,
            ))  # fmt: skip
        else:
            said = body_of(device, picked)
            done = world.do(
                name, lambda vault: getattr(vault, what)(number_of(vault, picked), *arguments[1:])
            )
            if done and what == "forget":
                world.forgotten[picked] = said


@settings(max_examples=EXAMPLES)
@given(HISTORIES)
def test_all_devices_end_as_the_one_vault_that_heard_everything_in_order_of_time(history):
    world = World()
    for name, action in history:
        act(world, name, *action)
    world.settle_all()
    first, *others = world.devices.values()
    for device in others:
        assert device.state() == first.state()
    assert visible(first) == visible(world.one)
    assert world.forgotten.keys().isdisjoint(uids(first))


# ── What random histories do not try: two edits of one memory, and what a newest value hid ────────


def edit(world, name, text):
    device = world.devices[name]
    device.now = world.now = world.now + STEP_MS
    with device.tx:
        device.edit(number_of(device, visible(device)[0]), text)


@every_row("topic", ["owner", None])
def test_of_two_edits_of_one_memory_on_two_devices_the_last_one_stands(topic):
    world = World()
    say(world, "desk", "Ann answers the phone", topic)
    for name in ("desk", "laptop"):
        world.sync(name)
    edit(world, "desk", "Bob answers the phone")
    edit(world, "laptop", "Kim answers the phone")
    assert settle(world) == ["Kim answers the phone"]


def test_forgetting_the_last_of_three_values_shows_the_second_and_never_the_first():
    world = World()
    say(world, "desk", "Retry three times")
    for name in ("desk", "laptop"):
        world.sync(name)
    say(world, "desk", "Retry five times")
    say(world, "laptop", "Retry seven times")
    world.settle_all()
    laptop = world.devices["laptop"]
    (uid,) = visible(laptop)
    laptop.forget(number_of(laptop, uid))
    assert visible_bodies(laptop) == ["Retry five times"], "before any sync, too"
    assert settle(world) == ["Retry five times"]


def test_an_edit_stands_where_the_version_that_it_words_anew_was_said_last():
    world = World()
    say(world, "laptop", "Ann answers the phone", "owner")
    say(world, "desk", "Bob answers the phone", "owner")
    world.sync("desk")
    say(world, "desk", "Ann answers the phone", "owner")
    act(world, "laptop", "edit", 0, "In other words")
    act(world, "desk", "undo", 0)
    world.settle_all()
    for device in world.devices.values():
        assert visible(device) == visible(world.one)


def test_what_was_refused_to_an_agent_holds_if_the_user_had_said_it_elsewhere():
    world = World()
    say(world, "desk", "Retry three times")
    say(world, "laptop", "Retry five times")
    say(world, "desk", "Retry five times", by="agent")
    assert settle(world) == visible_bodies(world.one) == ["Retry five times"]
