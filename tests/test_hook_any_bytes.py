"""Both hooks take any bytes in silence, and what comes of them is counted by the daemon that reads the spool."""

import json
from pathlib import Path

import pytest

from memd.capture.prepare import CaptureRequest
from memd.paths import Paths
from memd.store import ledger
from tests.capture.test_any_payload import take
from tests.test_hook import printed, spooled
from tests.test_quick_hook import command, home, run  # noqa: F401  # fixtures

WHOLE = json.dumps(
    {"session_id": "s", "hook_event_name": "Stop", "cwd": "/p", "last_assistant_message": "naïve 日本 😀"},
    ensure_ascii=False,
).encode()  # fmt: skip
BYTES = {
    "nothing": b"",
    "a mark alone": b"\xef\xbb\xbf",
    "cut in a character": WHOLE[: WHOLE.index("日".encode()) + 1],
    "cut in an emoji": WHOLE[: WHOLE.index("😀".encode()) + 2],
    "cut in the last bracket": WHOLE[:-1],
    "no UTF-8": b"\xff\xfe\x00{}",
    "zeros": bytes(64),
    "a list": b"[1, 2]",
    "two objects": WHOLE + b"\n" + WHOLE,
    "not a number": b'{"session_id": NaN}',
    "a number of 5,000 digits": b'{"session_id": "s", "hook_event_name": "Stop", "n": ' + b"9" * 5_000 + b"}",
    "brackets in brackets": b"[" * 100_000,
    "a deep object": b'{"session_id": "s", "hook_event_name": "Stop", "a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "half a surrogate": b'{"session_id": "s\\ud800", "hook_event_name": "Stop"}',
    "a name with an order in it": b'{"session_id": "s", "hook_event_name": "Stop\\u0000\\u001b[2J"}',
}  # fmt: skip
SPOOLED = {"nothing": 0, "a mark alone": 0, "zeros": 1}
"""Lines of both hooks together: a shell reads no zeros."""


@pytest.mark.parametrize("what", BYTES)
def test_any_bytes_are_taken_in_silence_and_counted(what, home, run):  # noqa: F811
    assert printed(home | {"MEMD_START": "0"}, BYTES[what]) == b""
    assert run(BYTES[what], environ={"MEMD_START": "0"}) == b""
    lines = spooled(home)
    assert len(lines) == SPOOLED.get(what, 2)
    items = [CaptureRequest(one["client"], one["payload"], one["at"], source="spool") for one in lines]  # fmt: skip
    _, receipts, tx = take(items)
    balance = ledger.balance(tx)
    assert balance.pop("received") == len(lines) == len(receipts) == sum(balance.values())


def test_a_payload_of_20_mb_is_taken_in_silence(home, run):  # noqa: F811
    head = b'{"session_id":"s","hook_event_name":"PostToolUse","tool_response":"'
    huge = head + "é".encode() * 10_000_000 + b'"}'
    assert printed(home | {"MEMD_START": "0"}, huge) == b""
    assert run(huge, environ={"MEMD_START": "0"}, told="PostToolUse") == b""
    folder = Path(Paths(home).spool_dir)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_000_000
