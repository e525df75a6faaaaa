"""What the client adds to texts is removed, and nothing else."""

import json

from memd import machine_text
from memd.transfer import claude_markup
from tests.tables import every_row


def test_the_text_of_a_message_has_no_reminders_and_images():
    content = [
        {"type": "image", "source": {"data": "AAAA"}},
        {"type": "text", "text": "Look. <system-reminder>be good</system-reminder>"},
        7,
    ]
    assert claude_markup.message_text(content) == "Look."
    assert claude_markup.message_text("<system-reminder>never closed") == ""
    assert claude_markup.message_text(None) == ""


@every_row(
    ("text", "is_private"),
    [
        ("<private>Anna's number</private>", True),
        (" <PRIVATE>never closed", True),
        ("<private>x</private> Fix login.", False),
        ("Fix login.", False),
        ("", False),
    ],
)
def test_a_prompt_is_private_if_nothing_else_is_in_it(text, is_private):
    assert claude_markup.is_private_text(text) is is_private


def test_a_command_is_read_as_it_was_typed():
    wrapped = (
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>auth.py please</command-args>"
    )
    assert machine_text.is_markup(wrapped)
    assert claude_markup.typed_command(wrapped) == "/review auth.py please"
    assert claude_markup.typed_command("<command-name>init</command-name>") == "/init"
    assert claude_markup.typed_command("<local-command-stdout>ok</local-command-stdout>") is None
    assert claude_markup.is_local_output("<local-command-stdout>ok</local-command-stdout>")


def test_hostile_text_is_read_in_linear_time():
    claude_markup.message_text("<system-reminder>" * 1_000_000)
    claude_markup.is_private_text("<private>" * 1_000_000)


def test_images_are_replaced_by_their_size_at_any_depth():
    shot = {"type": "image", "source": {"type": "base64", "data": "A" * 5_000}}
    assert claude_markup.strip_images([{"type": "text", "text": "see"}, shot]) == [
        {"type": "text", "text": "see"},
        {"type": "image", "characters": 5_000},
    ]
    read = {"type": "image", "file": {"base64": "A" * 7, "type": "image/png"}}
    assert claude_markup.strip_images(read) == {"type": "image", "characters": 7}
    assert claude_markup.strip_images({"file": {"content": "text"}}) == {
        "file": {"content": "text"}
    }


def test_a_command_with_unclosed_tags_is_parsed_in_linear_time():
    assert claude_markup.typed_command("<command-name>" * 500_000) is None
    assert (
        claude_markup.typed_command("<command-name>/a</command-name>" + "<command-args>" * 500_000)
        == "/a"
    )


def test_a_value_is_limited_to_what_a_request_can_have():
    deep = {"a": 1}
    for _ in range(500):
        deep = {"a": [deep]}
    sent = claude_markup.limit_for_wire(
        {"deep": deep, "n": float("inf"), "m": float("nan"), "list": [1, "x"]}
    )
    assert (sent["n"], sent["m"], sent["list"]) == ("inf", "nan", [1, "x"])
    assert json.dumps(sent, allow_nan=False).count("[") < 64
    assert "nested too deep" in json.dumps(sent)


REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected. "
ASKED = "To tell you how to proceed, the user said:\n"


@every_row(
    ("result", "said"),
    [
        (f"{REFUSED}{ASKED}why not tabs?\nand no semicolons", "why not tabs?\nand no semicolons"),
        (f"{REFUSED}{ASKED}use tabs\n\nNote: The user's next message may contain a correction", "use tabs"),
        (f"{REFUSED}STOP what you are doing and wait for the user.", ""),
        ("The user doesn't want to take this action right now. STOP what you are doing.", ""),
        ("Permission for this tool use was denied. The user said:\nask me first", "ask me first"),
        (f"{REFUSED}{ASKED}The user wants to clarify these questions.\n  Questions asked: …", ""),
        ("Exit code 1\nThe user said: no", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_refusal_is_told_from_an_error_and_gives_only_the_users_words(result, said):
    assert claude_markup.refusal_words(result) == said
