import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.distill.parse import Refused, Written, written

SOURCE = "Fixed: login answers 500\nauth.py raised ValueError because the token has 3 parts; see decode_token."


def reply(title="Login is fixed", facts=("auth.py raised ValueError.",)):
    return json.dumps({"title": title, "facts": list(facts)})


def test_a_good_reply_is_taken():
    assert written(reply(), SOURCE) == Written(
        "Login is fixed", ("auth.py raised ValueError.",)
    )


def test_fences_and_thinking_are_no_part_of_a_reply():
    assert isinstance(written(f"<think>hm</think>\n```json\n{reply()}\n```", SOURCE), Written)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Sure! Here it is", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ("{}", "not one line"),
        (reply(title="a\nb"), "not one line"),
        (reply(title="x" * 91), "3 to 90 characters"),
        (json.dumps({"title": "abc", "facts": "x"}), "not a list of texts"),
        (reply(facts=["x"] * 9), "more than 8"),
        (reply(facts=[" "]), "empty or longer"),
        (reply(facts=["It took 47 minutes."]), "“47”"),
        (reply(facts=["See login_handler."]), "“login_handler”"),
        (reply(facts=["See src/web.py."]), "“src/web.py”"),
    ],
)
def test_a_bad_reply_is_refused_with_its_reason(text, reason):
    found = written(text, SOURCE)
    assert isinstance(found, Refused)
    assert reason in found.reason


@given(st.text(max_size=200))
def test_any_reply_is_either_taken_or_refused(text):
    assert isinstance(written(text, SOURCE), Written | Refused)
