"""A rejection travels: on no device does anything come back, and taking it back shows it on all."""

from memd.models import Kind
from tests.sharing.devices import Device, Place, converge

TEXT = "Always run the linter before each commit."
ALIKE = "Before each commit, always run the linters."


def make_devices():
    desk, laptop, place = Device("desk"), Device("laptop"), Place()
    number = desk.remember(TEXT, by="agent")
    converge([desk, laptop], place)
    return desk, laptop, place, number


def test_what_one_device_rejects_is_gone_on_all_with_what_says_the_same_there():
    desk, laptop, place, number = make_devices()
    laptop.remember(ALIKE, by="agent", kind=Kind.PREFERENCE)
    desk.now += 1_000
    desk.reject(number)
    converge([desk, laptop], place)
    assert (desk.visible(), laptop.visible()) == ([], [])
    assert laptop.remember(ALIKE.upper(), by="agent") == 0
    desk.take_back(number)
    converge([desk, laptop], place)
    assert desk.visible() == laptop.visible() == sorted([TEXT[:40], ALIKE[:40]])


def test_what_a_device_that_did_not_know_learns_and_keeps_later_does_not_bring_it_back():
    desk, laptop, place, number = make_devices()
    desk.reject(number)
    laptop.now += 100_000
    other = laptop.remember(ALIKE, by="agent", kind=Kind.PREFERENCE)
    mine = laptop.ids()[0]
    laptop.tx.execute("INSERT INTO reviews VALUES (?, 'kept', ?, NULL)", (mine, laptop.clock()))
    laptop.tx.execute("UPDATE summaries SET updated_at = ? WHERE id = ?", (laptop.clock(), other))
    converge([desk, laptop], place)
    assert (desk.visible(), laptop.visible()) == ([], [])
    third = Device("third")
    converge([desk, laptop, third], place)
    assert third.visible() == []
    assert third.remember(TEXT, by="agent") == 0


def test_what_the_user_says_by_hand_elsewhere_afterwards_holds():
    desk, laptop, place, number = make_devices()
    desk.reject(number)
    laptop.now += 100_000
    laptop.remember(ALIKE, by="user")
    converge([desk, laptop], place)
    assert desk.visible() == laptop.visible() == [TEXT[:40]]
