"""What is known again as a secret: by its form, so that no word, number or name goes with it."""

from memd.capture.prepare import KnownSecrets, ProjectRedaction, is_telling
from memd.capture.redact import redact_value
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/known_secrets")


@every_row("value", TABLES["a_drawn_value_is_known_again"])
def test_a_drawn_value_is_known_again(value):
    assert is_telling(value)


@every_row("value", TABLES["a_word_a_number_or_a_name_is_not"])
def test_a_word_a_number_or_a_name_is_not(value):
    assert not is_telling(value)


def test_a_short_one_goes_as_a_word_of_its_own_alone():
    known = KnownSecrets()
    ProjectRedaction(known, "p", redact_value)("the password is Kite92x!")
    assert (
        known.redact("x=Kite92x!; aKite92x! Kite92x!b")
        == "x=[REDACTED:password]; aKite92x! Kite92x!b"
    )


def test_of_many_the_oldest_are_dropped():
    known = KnownSecrets()
    redact = ProjectRedaction(known, "p", redact_value)
    for number in range(100, 200):
        redact(f"the password is Kite-Anvil-{number}")
    assert known.redact("Kite-Anvil-100") == "Kite-Anvil-100"
    assert known.redact("Kite-Anvil-199") == "[REDACTED:password]"
