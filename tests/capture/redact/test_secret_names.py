"""Which names hold a secret, and which values only refer to one."""

from memd.capture.redact import redact, redact_value
from memd.capture.redact.names import is_reference, is_working_directory, secret_rule, squashed
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/secret_names")


@every_row(("name", "rule"), TABLES["a_name_that_ends_like_a_secret_holds_one"])
def test_a_name_that_ends_like_a_secret_holds_one(name, rule):
    assert secret_rule(name) == rule


@every_row("name", TABLES["a_name_that_only_speaks_of_secrets_holds_none"])
def test_a_name_that_only_speaks_of_secrets_holds_none(name):
    assert secret_rule(name) is None


@every_row("value", TABLES["a_reference_is_no_secret"])
def test_a_reference_is_no_secret(value):
    assert is_reference(value)


@every_row("value", TABLES["a_value_of_its_own_is_no_reference"])
def test_a_value_of_its_own_is_no_reference(value):
    assert not is_reference(value)


def test_where_a_shell_stands_is_no_password():
    assert is_working_directory("PWD", "/home/dev")
    assert not is_working_directory("PWD", "hunter2")
    assert not is_working_directory("password", "/home/dev")


def test_a_name_is_compared_without_its_joints():
    assert squashed("X-Api_Key") == squashed("xApiKey") == "xapikey"


@every_row("line", ["proxy_pass http://localhost:3334;", "proxy_pass https://backend.internal/;"])
def test_a_host_that_requests_are_passed_to_is_no_password(line):
    assert redact(line) == line
    assert "s3cret" not in redact("proxy_pass=http://web:s3cret99@localhost:3334")


def test_the_answer_to_a_question_about_a_token_is_what_the_user_chose():
    answers = {"What happens with an expired token?": "Send the user back to the login"}
    assert redact_value(answers) == answers
    for asked in ("Which token?", "What is the api key?", "What is the password?"):
        assert redact_value({asked: "gr4ss-0n-the-r00f"})[asked].startswith("[REDACTED:")
    assert redact_value({"What is the password?": "grass on the roof"}) != {
        "What is the password?": "grass on the roof"
    }


DIGITS = "2B7E151628AED2A6ABF7158809CF4F3C"


@every_row("said", TABLES["a_key_in_hexadecimal_is_known_by_what_it_is_called"])
def test_a_key_in_hexadecimal_is_known_by_what_it_is_called(said):
    assert redact(said.format(DIGITS)) == said.replace("0x", "").format("[REDACTED:api-key]")
    assert DIGITS.lower() not in redact(said.format(DIGITS.lower()))


@every_row("said", TABLES["a_digest_beside_the_word_for_a_key_is_none"])
def test_a_digest_beside_the_word_for_a_key_is_none(said):
    assert redact(said.format(DIGITS.lower())) == said.format(DIGITS.lower())


def test_digits_of_a_form_are_no_key():
    assert redact("AES key: 00000000000000000000000000000000") == "AES key: " + "0" * 32
