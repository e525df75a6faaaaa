"""What the user says in one session replaces what he said in another, from the prompt to what stands."""

import pytest

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
    ],
)
async def test_the_newer_of_two_orders_on_one_thing_stands_alone(desk, first, then, standing):
    await desk.says(first, name="t1")
    desk.clock.advance(s=3_600)
    found = await desk.says(then, name="t2")
    assert sorted(one.title for one in found) == standing
