import pytest

from memd.consolidate.near_duplicates import hash_form


def of(text):
    return hash_form("", text)


@pytest.mark.parametrize(
    "other",
    [
        "USE REDIS FOR SESSIONS",
        "for sessions, use `redis`!",
        "Basically just use Redis for sessions, please.",
        "2026-01-02T10:11:12Z Use Redis for sessions",
        "[10:11:12] Use Redis for sessions",
        "Nov 21 10:11:12 Use Redis for sessions",
    ],
)
def test_dress_changes_no_form(other):
    assert of("Use Redis for sessions.") == of(other)


@pytest.mark.parametrize(
    "other", ["Use Postgres for sessions", "Use Redis for 30 sessions", ""]
)
def test_another_word_is_another_form(other):
    assert of("Use Redis for sessions") != of(other)


def test_a_title_that_begins_the_body_changes_no_form():
    assert hash_form("Use Redis", "Use Redis for sessions") == of("use redis for sessions")


def test_a_form_fits_into_sixty_four_bits():
    assert all(-(2**63) <= of(str(number)) < 2**63 for number in range(100))
