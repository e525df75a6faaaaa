import pytest

from memd.consolidate.claims import parse_claims
from memd.consolidate.compare import is_phrase_moved, is_reordered


def moved(one, other):
    found = is_phrase_moved(parse_claims(one), parse_claims(other))
    assert is_phrase_moved(parse_claims(other), parse_claims(one)) is found
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "It retries failed requests with backoff and jitter, because the service is slow",
            "With backoff and jitter it retries failed requests, because the service is slow",
        ),
        ("Lint everything in CI and on laptops", "In CI and on laptops, lint everything"),
        ("After the review, deploy to production", "Deploy to production after the review"),
    ],
)
def test_a_phrase_that_says_its_part_may_move(one, other):
    assert moved(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use Redis", "Use Redis"),
        ("Use Redis here", "Use Redis"),
        ("Use Redis", "Use Postgres"),
        ("Diff old file and new file", "Diff new file and old file"),
        ("Run test on Linux, run build on Mac", "On Linux run build, on Mac run test"),
        ("Run tests, run builds on Mac", "On Mac run tests, run builds"),
        ("Unit tests pass and builds break on Mac", "On Mac unit tests pass and builds break"),
        ("Move it from Redis to Postgres", "Move it from Postgres to Redis"),
        ("", ""),
    ],
)
def test_what_would_then_belong_to_something_else_may_not(one, other):
    assert not moved(one, other)


def test_circumstances_in_another_order_may_belong_to_something_else():
    one = parse_claims("In CI, debug is on; in staging, it is off")
    assert is_reordered(one, parse_claims("In staging, debug is on; in CI, it is off"))
    assert not is_reordered(one, one)
    assert not is_reordered(parse_claims("In CI, it is on"), parse_claims("It is on, in CI"))


def test_what_comes_then_comes_then():
    one = parse_claims("Build the docs, then deploy the site")
    assert is_reordered(one, parse_claims("Deploy the site, then build the docs"))
    assert not is_reordered(one, parse_claims("Build the docs then deploy the site"))
