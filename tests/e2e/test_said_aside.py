"""What the user said and nobody noted, beside an answer that no memory gives: real daemon, hooks and command line."""

import functools

import pytest

from memd.client import Client


@pytest.fixture
def ask(call):
    return functools.partial(call, "memd/search")


def texts(answer):
    return [one["text"] for one in answer["said"]]


def test_what_the_user_said_in_a_turn_that_left_no_memory_stands_beside_nothing(says, ask):
    says("merk dir, die abgabe beim verlag ist am 15. märz", answer="Gut.")
    says("abgabe ist jetzt erst am 30. april")
    answer = ask(query="wann ist die abgabe?")
    assert answer["verdict"] == "nothing"
    assert answer["hits"] == []
    assert texts(answer) == [
        "abgabe ist jetzt erst am 30. april",
        "merk dir, die abgabe beim verlag ist am 15. märz",
    ]


def test_neither_questions_nor_pastes_nor_what_agents_say_are_the_users_words(says, ask):
    says(
        "when is the regatta?", "regatta when", "look at this:\n```\nthe regatta is on Sunday\n```"
    )
    says("what is up", answer="The regatta is on Sunday, I think.")
    assert texts(ask(query="when is the regatta?")) == []
    says("the regatta got moved to the 9th")
    assert texts(ask(query="when is the regatta?")) == ["the regatta got moved to the 9th"]


def test_a_short_word_in_code_is_read_in_a_question_in_another_language(says, ask):
    says("hab mit `git stash` schon mal alles verloren")
    said = ["hab mit `git stash` schon mal alles verloren"]
    assert texts(ask(query="may I use git stash?")) == said


def test_one_word_of_many_is_not_what_was_asked(says, ask):
    says("the harpsichord stays in the hall over winter")
    assert (
        texts(ask(query="which strings does the harpsichord need for concert pitch tuning")) == []
    )


def test_what_a_memory_answers_is_told_by_the_memory_alone(says, ask):
    session = says("the ferry leaves at nine from pier four")
    session.notes("The ferry leaves at nine from pier four.", kind="fact")
    answer = ask(query="when does the ferry leave?")
    assert answer["verdict"] == "found"
    assert texts(answer) == []


def test_what_is_told_beside_a_hit_in_part_is_not_told_again(says, ask):
    says("Remember that the kiln in the yard is booked by Ada.", answer="OK.")
    long = (
        "the kiln in the yard is raku's call now, the yard's kiln is booked by him from here on and not any more as ada did it,"
        " whoever it may be and whatever it is that shall be fired"
    )
    says(long)
    answer = ask(query="whose call is firing raku in the kiln of the yard")
    assert answer["hits"][0]["said_since"].startswith(
        "he said since: “the kiln in the yard is raku's"
    )
    assert texts(answer) == []


def test_the_prompt_that_asks_is_no_answer_to_itself(says, shared_daemon, tmp_path):
    session = says("tell me about the sluice gate and who has the key")
    asked = {"query": "sluice gate", "directory": str(tmp_path)}
    with Client(shared_daemon.paths.socket, preface={"session": session.key}) as own:
        assert texts(own.call("memd/search", asked)) == []
    says("maria has the key of the sluice gate")
    with Client(shared_daemon.paths.socket, preface={"session": session.key}) as own:
        assert texts(own.call("memd/search", asked)) == ["maria has the key of the sluice gate"]


def test_the_command_line_says_whose_words_they_are_and_when(says, shared_daemon, tmp_path):
    says("the kiln is booked for the 3rd of may")
    found = shared_daemon.run("search", "when is the kiln booked", "--project", str(tmp_path))
    assert (
        "you said, not noted: “the kiln is booked for the 3rd of may” (20" in found.stdout.decode()
    )
