import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall import prompt_gate
from tests.factories import make_summary


@pytest.mark.parametrize(
    "prompt",
    ["hi", "Hello!", "good morning Claude", "yes", "ok, go on", "continue", "thanks", "do it",
     "yes please, go ahead and do that", "looks good to me, ship it", "1", "2 and 3", "👍", "try again",
     "please", "no", "deploy", "what?", "fix", "guten Morgen", "ja, mach weiter bitte", "merci beaucoup",
     "buenos días", "sí, por favor continúa", "спасибо большое", "продолжай пожалуйста", "好的，继续",
     "ありがとうございます"],
)  # fmt: skip
def test_greetings_and_acknowledgements_are_not_worth_a_look(prompt):
    assert prompt_gate.read_prompt(prompt).text == ""
    assert "fewer than 2 words" in prompt_gate.read_prompt(prompt).reason


@pytest.mark.parametrize(
    "prompt", ["/compact keep the decisions", "/clear", "  /memd:status now please", "!ls build",
               "# always use tabs in makefiles"],
)  # fmt: skip
def test_commands_to_the_client_are_not_worth_a_look(prompt):
    assert prompt_gate.read_prompt(prompt).reason == "a command to the client"


@pytest.mark.parametrize(
    "prompt",
    ["# Login\n\nThe session expires too early.", "#12 fails on postgres, why?", "!!! login is broken\nwhy?"],
)  # fmt: skip
def test_a_heading_or_a_number_is_no_command(prompt):
    assert prompt_gate.read_prompt(prompt).text


def test_a_path_is_no_command():
    assert prompt_gate.read_prompt("/home/dev/app/auth.py raises a ValueError, why").text


@pytest.mark.parametrize(
    "prompt", ["[REDACTED:private]", " [REDACTED:private]\n[REDACTED:jwt] "]
)
def test_a_private_prompt_is_not_worth_a_look(prompt):
    assert prompt_gate.read_prompt(prompt).reason == "all of it is private"
    assert prompt_gate.read_prompt("  ").reason == "it is empty"


def test_what_is_private_is_not_looked_for():
    judged = prompt_gate.read_prompt("Where do [REDACTED:private] sessions live in staging?")
    assert "REDACTED" not in judged.text
    assert len(judged.words) == 3


def test_content_words_count_once_however_they_are_inflected():
    assert prompt_gate.read_prompt("test the tests, testing tested!").text == ""
    assert len(prompt_gate.read_prompt("why do the session tests fail").words) == 3


def test_text_without_spaces_has_words_too():
    assert prompt_gate.read_prompt("セッションはどこに保存されますか").text


def test_names_and_topics_are_read():
    judged = prompt_gate.read_prompt(
        "does build.command still call decode_token in app/auth.py?"
    )
    assert {"decode_token", "app/auth.py", "auth.py"} <= set(judged.names)
    assert judged.topics == ("build.command",)


def test_a_repeat_is_known_whatever_its_dress():
    assert prompt_gate.is_repeated("Why does login FAIL?", ["thanks", "why does  login fail"])
    assert not prompt_gate.is_repeated("Why does login fail?", ["why does logout fail"])


def test_of_a_long_paste_only_the_ends_are_looked_for():
    paste = "\n".join(f"2026-11-20 12:00:{i:02} worker{i} heartbeat" for i in range(200))
    judged = prompt_gate.read_prompt(
        f"Why is the queue stuck? See the log.\n{paste}\nI suspect the broker."
    )
    assert "queue stuck" in judged.text
    assert "suspect the broker" in judged.text
    assert "worker99" not in judged.text
    fenced = f"Look at this.\n```\n{paste}\n```\nWhy is the kettle cold?"
    assert "worker1 " not in prompt_gate.read_prompt(fenced).text
    assert "kettle" in prompt_gate.read_prompt(fenced).text


@given(st.text(max_size=4_000))
def test_any_prompt_is_judged(prompt):
    judged = prompt_gate.read_prompt(prompt)
    assert judged.reason
    assert len(judged.text) <= 4_000


def test_words_stand_in_a_memory_by_their_stems_and_names_by_themselves():
    memory = make_summary(
        "Sessions live in Redis", "`decode_token` reads them.", files=("a/b.py",)
    )
    assert prompt_gate.count_words_found(
        prompt_gate.read_prompt("where does the session live"), memory
    ) == (
        2,
        False,
    )
    assert prompt_gate.count_words_found(
        prompt_gate.read_prompt("the kettle in redis"), memory
    ) == (1, False)
    assert prompt_gate.count_words_found(
        prompt_gate.read_prompt("rewrite decode_token"), memory
    ) == (1, True)
    assert prompt_gate.count_words_found(prompt_gate.read_prompt("rewrite a/b.py"), memory)[1]


def test_courtesies_are_not_looked_for():
    judged = prompt_gate.read_prompt(
        "Hi Claude, please retry the upload of the session files, thanks!"
    )
    assert judged.text.split() == [
        ",",
        "retry",
        "the",
        "upload",
        "of",
        "the",
        "session",
        "files,",
        "!",
    ]
