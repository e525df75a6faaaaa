"""What the user says in one session replaces what he said in another, from the prompt to what stands."""

import pytest

from memd.belief import rejections
from tests.distill.test_speech import Speaker


@pytest.fixture
def desk(db, clock):
    return Speaker(db, clock)


@pytest.mark.parametrize(
    ("first", "then", "standing"),
    [
        (
            "From now on open pull requests against develop.",
            "From now on open pull requests against main.",
            ["Open pull requests against main"],
        ),
        ("Always answer in English.", "From now on answer in German.", ["Answer in German"]),
        (
            "Always answer in English.",
            "From now on write tests in German.",
            ["Always answer in English", "Write tests in German"],
        ),
        (
            "We decided to use Redis for the cache because Memcached lost data.",
            "We decided to use Valkey for the cache instead of Redis because of the licence.",
            ["Use Valkey for the cache instead of Redis because of the licence"],
        ),
        (
            "From now on use tabs in every Makefile.",
            "From now on use tabs in every shell script.",
            ["Use tabs in every Makefile", "Use tabs in every shell script"],
        ),
        (
            "Always use npm to install packages.",
            "From now on use pnpm instead of npm.",
            ["Use pnpm instead of npm"],
        ),
        (
            "We decided to use Redis for the cache.",
            "We decided to go with Valkey, not Redis.",
            ["Go with Valkey, not Redis"],
        ),
        (
            "We decided to use Redis for the cache.",
            "We decided to drop Redis and use Valkey from now on.",
            ["Drop Redis and use Valkey from now on"],
        ),
        (
            "Always use Redis Streams for the queue.",
            "From now on use Valkey instead of Redis.",
            ["Always use Redis Streams for the queue", "Use Valkey instead of Redis"],
        ),
        (
            "Always use tabs in Makefiles.",
            "From now on use spaces instead of tabs in Python files.",
            ["Always use tabs in Makefiles", "Use spaces instead of tabs in Python files"],
        ),
        (
            "Never use Redis for sessions.",
            "From now on use Valkey instead of Redis.",
            ["Never use Redis for sessions", "Use Valkey instead of Redis"],
        ),
        (
            "We decided to use Kafka for the event bus, because we know Kafka.",
            "We don't use Kafka for the event bus any more, we use NATS.",
            ["We don't use Kafka for the event bus any more, we use NATS"],
        ),
        (
            "Never restart the node on weekends.",
            "Restarting the node on weekends is fine from now on.",
            ["Restarting the node on weekends is fine from now on"],
        ),
        (
            "We decided to build the images with Kaniko.",
            "The cache was broken again. We moved from Kaniko to BuildKit.",
            ["We moved from Kaniko to BuildKit"],
        ),
        (
            "We decided to use Kafka for the event bus.",
            "We don't use Kafka for the logs any more.",
            ["Use Kafka for the event bus"],
        ),
        (
            "Never restart the node on weekends.",
            "Restarting the router on weekends is fine from now on.",
            ["Never restart the node on weekends"],
        ),
        (
            "We decided to keep the bookings in SQLite.",
            "We decided to move the bookings to Postgres.",
            ["Move the bookings to Postgres"],
        ),
        (
            "Remember that thumbnails live on the old file server.",
            "Remember that thumbnails have moved to a bucket.",
            ["Thumbnails have moved to a bucket"],
        ),
        (
            "We decided to deploy the planner to Heroku.",
            "We decided to move the planner from Heroku to Fly.",
            ["Move the planner from Heroku to Fly"],
        ),
        (
            "Remember that the nightly build runs on the old Mac.",
            "Remember that the nightly build now runs on the Linux box.",
            ["The nightly build now runs on the Linux box"],
        ),
        (
            "We decided to keep the bookings in SQLite.",
            "We decided to move the booking mails to Postgres.",
            ["Keep the bookings in SQLite", "Move the booking mails to Postgres"],
        ),
        (
            "We decided to put the spam filter in nginx.",
            "We decided to put the spam filter in the gateway from now on.",
            ["Put the spam filter in the gateway from now on"],
        ),
        (
            "We decided to keep the recipes in JSON.",
            "We decided to move the recipes to content/recipes.",
            ["Keep the recipes in JSON", "Move the recipes to content/recipes"],
        ),
        (
            "We decided to keep the logs in Loki.",
            "We decided to move the logs to Elastic next year.",
            ["Keep the logs in Loki", "Move the logs to Elastic next year"],
        ),
        (
            "We decided to keep the logs in Loki.",
            "From now on never move the logs to Elastic.",
            ["Keep the logs in Loki", "Never move the logs to Elastic"],
        ),
        (
            "We decided to run the app on Linux.",
            "We decided to run the app on Windows again.",
            ["Run the app on Linux", "Run the app on Windows again"],
        ),
        (
            "We decided to run the tests in parallel.",
            "We decided to move the tests to the nightly job.",
            ["Move the tests to the nightly job", "Run the tests in parallel"],
        ),
        (
            "We decided to keep the bookings in SQLite.",
            "We decided to move the bookings to Postgres once we have a thousand users.",
            [
                "Keep the bookings in SQLite",
                "Move the bookings to Postgres once we have a thousand users",
            ],
        ),
    ],
)
async def test_the_newer_of_two_orders_on_one_thing_stands_alone(desk, first, then, standing):
    await desk.says(first, name="t1")
    desk.clock.advance(s=3_600)
    found = await desk.says(then, name="t2")
    assert sorted(one.title for one in found) == standing


@pytest.mark.parametrize(
    ("rejected", "then", "is_learned"),
    [
        (
            "Always run the linter before each commit.",
            "Make sure to always run the linter before you commit.",
            False,
        ),
        ("Never push to main.", "Don't ever push to main.", False),
        ("From now on use pnpm instead of npm.", "We decided to use pnpm rather than npm.", False),
        ("Never push to main.", "Never push tags to main.", True),
        ("Never push to main.", "Always push to main.", True),
        ("From now on use pnpm instead of npm.", "From now on use npm instead of pnpm.", True),
    ],
)
async def test_a_rule_that_was_rejected_is_not_learned_in_other_words_of_the_same_sense(
    desk, rejected, then, is_learned
):
    (one,) = await desk.says(rejected, name="t1")
    await desk.db.write(lambda tx: rejections.reject(tx, one.id, desk.clock()))
    desk.clock.advance(s=3_600)
    found = await desk.says(then, name="t2")
    assert any(later.id != one.id and not later.rejected_at for later in found) is is_learned
