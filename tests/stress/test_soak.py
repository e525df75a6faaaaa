"""A realistic day in a few seconds: the short form of `scripts/torture soak`."""

import pytest

from tests.stress import soak

pytestmark = pytest.mark.usefixtures("forked_daemons")


def test_after_a_day_nothing_has_leaked_and_nothing_is_lost():
    day, figures = soak.soak(2.5, 3, 5)
    assert day.events > 10
    assert day.did["restarts"] == 1
    assert day.wrong == []
    # In so short a time a line through memory, descriptors or threads says nothing.
    bounded = [(words, holds) for words, holds in figures if "on the line" not in words]
    assert len(bounded) == 3
    assert [words for words, holds in bounded if not holds] == []


def sample(at, descriptors):
    return soak.Sample(at, 100.0 + at, descriptors, 8, 0, 1.0, 0.1, 10.0, 0)


def test_a_leak_is_seen_however_noisy_the_samples_are():
    samples = [sample(at, 20 + at + 3 * (at % 2)) for at in range(60)]
    said = dict.fromkeys(
        words.split()[0] for words, holds in soak.verdicts(samples, 1.0) if not holds
    )
    assert list(said) == ["RSS", "descriptors"]
    flat = [soak.Sample(at, 100.0, 20 + 3 * (at % 2), 8, 0, 1.0, 0.1, 10.0, 0) for at in range(60)]
    assert all(holds for _, holds in soak.verdicts(flat, 1.0))
