"""Whatever three devices do, apart and for however long: once they have synced, they remember the same."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sharing.devices import Device, Place, converge

TEXTS = (
    "The port is 8080",
    "The port is 9090",
    "Deploy on Fridays",
    "Use tabs in Go files",
    "Use spaces in Go files",
)
RELATIONS = ("supersedes", "compatible", "contradicts", "duplicate")
DEVICES = ("desk", "laptop", "train")
NUMBERS = st.integers(0, 5)
SPEAKERS = st.sampled_from(("user", "agent"))
ACTIONS = st.one_of(
    st.tuples(
        st.just("remember"), st.sampled_from(TEXTS), SPEAKERS, st.sampled_from((None, "port", "style"))
    ),
    st.tuples(st.just("judge"), NUMBERS, NUMBERS, st.sampled_from(RELATIONS), SPEAKERS),
    st.tuples(st.just("judge"), NUMBERS, NUMBERS, st.just("supersedes"), SPEAKERS),
    st.tuples(st.sampled_from(("forget", "pin", "unpin", "reject", "take_back")), NUMBERS),
    st.tuples(st.just("edit"), NUMBERS, st.sampled_from(TEXTS)),
    st.tuples(st.just("sync")),
)  # fmt: skip
HISTORIES = st.lists(st.tuples(st.sampled_from(DEVICES), ACTIONS), min_size=8, max_size=20)


def act(device, name, *arguments):
    ids = device.ids()

    def pick(number):
        return ids[number % len(ids)]

    if name == "remember":
        text, by, topic = arguments
        device.try_to(lambda: device.remember(text, by=by, topic=topic))
    elif name == "judge" and ids:
        one, other, relation, by = arguments
        device.try_to(device.judge, pick(one), pick(other), relation, by)
    elif ids:
        device.try_to(getattr(device, name), pick(arguments[0]), *arguments[1:])


def live_through(history):
    """Three devices, one with a clock that is a year ahead, after this history; not yet synced."""
    devices = {name: Device(name) for name in DEVICES}
    devices["train"].skew = 365 * 86_400_000
    place = Place()
    for text in TEXTS:
        devices["desk"].remember(text, by="agent")
    for device in devices.values():
        device.sync(place)
    for step, (name, action) in enumerate(history):
        for device in devices.values():
            device.now += 1_000 * (step + 1)
        if action[0] == "sync":
            devices[name].sync(place)
        else:
            act(devices[name], *action)
    return list(devices.values()), place


@settings(max_examples=25)
@given(HISTORIES, st.randoms(use_true_random=False))
def test_any_order_of_merging_any_history_gives_the_same_state(history, order):
    devices, place = live_through(history)
    order.shuffle(devices)
    converge(devices, place)
    first = devices[0].state()
    for other in devices[1:]:
        assert other.state() == first
    lines = place.lines()
    for seed in range(2):
        fresh = Device(f"new-{seed}")
        shuffled = lines * 2
        order.shuffle(shuffled)
        cut = order.randrange(len(shuffled) + 1)
        for batch in (shuffled[:cut], shuffled[cut:], shuffled):
            fresh.merge(batch)
        assert fresh.merge(shuffled) is False
        assert fresh.state() == first
