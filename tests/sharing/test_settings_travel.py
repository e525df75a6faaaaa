"""What edits set travels with a memory, so that every device knows which value holds."""

import json

from memd.belief.values import read_set_values
from memd.models import SETTINGS_NODE, EdgeType
from memd.store.links import NewEdge, add_edges
from tests.sharing.devices import Device, Place, converge
from tests.tables import every_row


def set_value(device, text, was, now, key=("RETRY_LIMIT",)):
    """A memory of an edit."""
    number = device.remember(text)
    detail = {"set": [[list(key), was, now]], "whole": False, "only": True}
    edge = NewEdge("summary", str(number), EdgeType.EDITS, SETTINGS_NODE, "a.py", "turn", device.now, detail=detail)  # fmt: skip
    with device.tx:
        add_edges(device.tx, [edge])
    return number


def replaced(device):
    return [
        str(one).partition(": ")[2] for one in read_set_values(device.tx, device.ids()).replaced
    ]


def test_a_value_that_one_device_set_is_replaced_by_an_edit_on_another():
    one, other, place = Device("one"), Device("other"), Place()
    set_value(one, "Retry up to thirty times", "10", "30")
    converge([one, other], place)
    other.now = one.now + 1_000
    set_value(other, "That was not enough, so sixty", "30", "60")
    converge([one, other], place)
    assert replaced(one) == replaced(other) == ["RETRY_LIMIT = 60, not 30 (a.py)"]


@every_row(
    "edges",
    [
        7,
        [7],
        [["edits", "a.py", {"set": 3}]],
        [["edits", "a.py", {"set": [["A", "1", "2"]]}]],
        [["edits", "a.py", {"set": [[["A"], 1, 2]]}]],
        [["edits", 3, {"set": []}]],
        [["destroys", "a.py", {"set": []}]],
        [[["edits"], "a.py", {"set": []}]],
    ],
)
def test_settings_of_a_form_that_is_not_known_are_left_out(edges):
    one, other, place = Device("one"), Device("other"), Place()
    set_value(one, "Retry up to thirty times", "10", "30")
    converge([one], place)
    lines = [json.loads(line) for line in place.lines()]
    for line in lines:
        if line["record"] == "memory":
            assert line["settings"]["edges"]
            line["settings"] = {"edges": edges}
    other.merge([json.dumps(line) for line in lines])
    assert other.ids()
    assert read_set_values(other.tx, other.ids()).edges == []


def test_the_former_memd_finds_nothing_unknown_in_the_value_of_a_memory():
    """It reads a record's five fields and looks past the others."""
    one, place = Device("one"), Place()
    one.remember("Deploy on Fridays")
    set_value(one, "Retry up to thirty times", "10", "30")
    converge([one], place)
    values = [f["value"] for f in map(json.loads, place.lines()) if f["record"] == "memory"]
    assert len({tuple(sorted(value)) for value in values}) == 1
