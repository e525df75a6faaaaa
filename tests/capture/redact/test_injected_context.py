import json
from html import escape

from hypothesis import given
from hypothesis import strategies as st

from memd.capture.redact import redact, redact_value
from memd.capture.redact.documents import (
    INJECTED_CLOSING,
    INJECTED_OPENING,
    redact_blocks,
    strip_injected_context,
)
from tests.tables import every_row

BLOCK = f'{INJECTED_OPENING} project="ledger">\nRecorded.\n- #6 2026-11-20 decision: x\n{INJECTED_CLOSING}'


def test_a_block_is_taken_out_and_what_is_around_it_stays():
    assert strip_injected_context(f"before\n{BLOCK}\nafter") == "before\n\nafter"
    assert strip_injected_context(f"{BLOCK}{BLOCK} end") == " end"
    assert strip_injected_context(f"{INJECTED_OPENING}>\r\nold shape\r\n{INJECTED_CLOSING}!") == "!"


def test_a_block_that_was_cut_reaches_to_the_end():
    assert strip_injected_context(f"before {BLOCK[:-30]}") == "before "


@every_row("dress", [json.dumps, lambda text: json.dumps(json.dumps(text)), escape])
def test_a_block_is_known_in_another_dress(dress):
    assert "#6" not in strip_injected_context(dress(f"before {BLOCK} after"))
    assert "after" in strip_injected_context(dress(f"before {BLOCK} after"))


@every_row(
    "text",
    [f"the tag is `{INJECTED_OPENING}>` in our code, then more", "<recalled-memory>\nof mine\n</recalled-memory>",
     '<recalled-memory source="other">\nmine\n</recalled-memory>', f"print('{INJECTED_OPENING}')\nx"],
)  # fmt: skip
def test_who_only_writes_about_it_keeps_the_words(text):
    assert strip_injected_context(text) == text


def test_redaction_takes_it_out_everywhere():
    assert redact(f"a {BLOCK} b") == "a  b"
    assert redact_blocks(f"a {BLOCK} b") == "a  b"
    assert redact_value({"prompt": [f"a {BLOCK}"]}) == {"prompt": ["a "]}


@given(
    st.lists(
        st.sampled_from([INJECTED_OPENING, ' project="p">', "\n", INJECTED_CLOSING, "x", BLOCK]),
        max_size=9,
    )
)
def test_to_redact_twice_is_to_redact_once(pieces):
    once = redact("".join(pieces))
    assert redact(once) == once
