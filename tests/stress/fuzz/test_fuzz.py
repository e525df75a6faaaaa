"""Input that no program wrote is read or refused, and nothing else happens. Long: `scripts/torture fuzz`."""

import pytest
from hypothesis import given, note, settings

from benchmarks import harness
from tests.stress.fuzz import daemon as fuzz_daemon
from tests.stress.fuzz.generators import GENERATORS
from tests.stress.fuzz.targets import TARGETS

pytestmark = [pytest.mark.hypothesis, pytest.mark.usefixtures("forked_daemons")]
some = settings(max_examples=max(1, settings.default.max_examples // 5))


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_makes_a_reader_raise_hang_or_do_half(name):
    with TARGETS[name]() as target:

        @some
        @given(GENERATORS)
        def feed(generator):
            value = target.make(generator)
            note(f"input: {repr(value)[:1_500]}")
            target.take(value)

        feed()


def test_no_line_to_a_daemon_goes_unanswered_or_is_answered_with_an_internal_error():
    with fuzz_daemon.daemon() as daemon:
        wire = fuzz_daemon.Wire(daemon)

        @some
        @given(GENERATORS)
        def feed(generator):
            assert wire.fault(*wire.batch(generator)) is None

        feed()


@pytest.mark.parametrize("is_up", [True, False])
def test_a_hook_prints_nothing_wrong_and_nothing_that_it_is_given_is_lost(is_up):
    with harness.daemon(fuzz_daemon.support.HASHING, tuning=fuzz_daemon.TUNING) as daemon:
        hooks = fuzz_daemon.Hooks(daemon)
        if not is_up:
            daemon.stop()

        @some
        @given(GENERATORS)
        def feed(generator):
            assert hooks.fault(generator) is None

        feed()
        if not is_up:
            daemon.start()
        hooks.wait()
        assert [*fuzz_daemon.complaints(daemon), *fuzz_daemon.logged_errors(daemon)] == []
