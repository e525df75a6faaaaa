"""What the user sets from now on, what is moved, and what is taken back in the middle of a sentence."""

import pytest

from memd.models import Kind
from tests.distill.written import Desk

RULE = "Always run the linter before a commit."


@pytest.fixture
def desk(db, clock):
    return Desk(db, clock)


async def said(desk, *prompts):
    """What is remembered of these prompts, each in a turn of its own, without the turns."""
    for prompt in prompts:
        await desk.turn(f"t{desk.clock()}", prompt, "Noted.")
    return [one for one in await desk.all() if one.rule != "turn"]


@pytest.mark.parametrize(
    "prompt",
    [
        "From now on the timeout is 60 seconds.",
        "Going forward the API version is v3.",
        "From now on the port is 8080 because 80 is taken.",
        "From now on the linter is mandatory.",
        "The API timeout is 45 seconds from now on.",
        "Thanks! From now on the default region will be eu-west-1.",
    ],
)
async def test_a_value_that_the_user_sets_from_now_on_is_a_decision(desk, prompt):
    (found,) = await said(desk, prompt)
    assert (found.kind, found.authority.speaker) == (Kind.DECISION, "user")


@pytest.mark.parametrize(
    "prompt",
    [
        "We're moving from Berlin to Hamburg.",
        "We moved from Berlin to Hamburg because rents are lower.",
        "We are going from Paris to London next week.",
        "Is the timeout 60 seconds from now on?",
        "Why is it that from now on the timeout is 60 seconds?",
        "If we scale, from now on the timeout is 60 seconds.",
        "The vendor says from now on the limit is 100 requests.",
        "From now on the tests are green.",
        "From now on the tests are 3 times slower.",
        "From now on the CI is broken.",
        "From now on you don't have to run the linter.",
        "Raise the pool to 16 threads.",
        "Set the timeout to 30 seconds",
        "As of today the coverage is 71%.",
        "Starting today the train is 10 minutes late.",
        "In the tutorial, we chose Redis over Memcached because it persists.",
        "In my dream, we switched from Python to COBOL.",
        "Going forward the timeout is 10 seconds, they claim.",
        "From now on the timeout is 10 seconds, or is it 20?",
    ],
)
async def test_what_sets_nothing_for_the_project_is_not_remembered_as_set(desk, prompt):
    assert await said(desk, prompt) == []


async def test_a_later_value_from_now_on_replaces_the_earlier_one(desk):
    prompts = "From now on the timeout is 60 seconds.", "From now on the timeout is 90 seconds."
    first, second = await said(desk, *prompts)
    assert (first.superseded_by, second.superseded_by) == (second.id, None)


@pytest.mark.parametrize(
    "prompt",
    [
        "By the way, since CI does it now, you no longer need to run the linter before a commit.",
        "Thanks, that works; and you don't have to run the linter before a commit any more.",
        "Fix the build, and from now on you no longer need to run the linter before a commit.",
        "Great work on the parser, but please stop always running the linter before a commit.",
        "I've changed my mind: you no longer need to run the linter before a commit.",
    ],
)
async def test_a_rule_ends_in_the_middle_of_a_sentence(desk, prompt):
    rule, *others = await said(desk, RULE, prompt)
    assert rule.superseded_by in {one.id for one in others if one.kind is Kind.NOTE}
    assert not [one for one in others if one.kind is Kind.INSTRUCTION]


@pytest.mark.parametrize(
    "prompt",
    [
        "If CI is green, you no longer need to run the linter before a commit.",
        "Jo says, you no longer need to run the linter before a commit.",
        "I never said, you no longer need to run the linter before a commit.",
        "When we have CI, then you no longer need to run the linter before a commit.",
        "It would be nice, and you don't have to run the linter before a commit any more?",
        "Suppose CI does it, so you no longer need to run the linter before a commit.",
        "Maybe later, but you no longer need to run the linter before a commit.",
    ],
)
async def test_a_rule_stays_where_its_end_is_conditional_reported_or_asked(desk, prompt):
    rule, *_ = await said(desk, RULE, prompt)
    assert rule.superseded_by is None
