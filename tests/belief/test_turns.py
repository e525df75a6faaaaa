"""What a later statement of the user's ends in other words: it denies, drops, passes over or allows what an earlier one says."""

from memd.belief.decide import changes_sentence, find_change
from memd.models import Kind
from tests.factories import make_summary
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/turns")

ENDED = TABLES["ENDED"]  # fmt: skip
LEFT = TABLES["LEFT"]  # fmt: skip


@every_row(("earlier", "later"), ENDED)
def test_what_the_user_denies_drops_passes_over_or_allows_holds_no_longer(earlier, later):
    assert changes_sentence(earlier, later)


@every_row(("earlier", "later"), LEFT)
def test_what_is_about_another_thing_place_or_time_leaves_it(earlier, later):
    assert not changes_sentence(earlier, later)


def test_one_thing_before_another_contradicts_the_other_before_the_one():
    def find(newer):
        one, other = (
            "I prefer tabs over spaces",
            make_summary(newer, newer, id=2, kind=Kind.PREFERENCE),
        )
        return find_change(other, make_summary(one, one, kind=Kind.PREFERENCE))

    change = find("I prefer spaces over tabs")
    assert change is not None
    assert not change.is_whole
    for other in ("spaces over tabs in Python", "tabs over two spaces"):
        assert find(f"I prefer {other}") is None


DECIDED = (
    ("Use Kafka for the event bus", "Drop Kafka for the event bus"),
    ("Use Kafka for the event bus", "Drop Kafka for the event bus and use NATS"),
    ("Render charts with D3", "Abandon D3"),
)


@every_row(("earlier", "later"), DECIDED)
def test_a_decision_to_drop_a_thing_ends_it_though_its_title_does_not_say_that_it_was_decided(
    earlier, later
):
    """`We decided to` is left out of a title."""
    older = make_summary(
        earlier, f"User: “We decided to {earlier[0].lower()}{earlier[1:]}.”", kind=Kind.DECISION
    )
    said = f"User: “We decided to {later[0].lower()}{later[1:]}.”"
    change = find_change(make_summary(later, said, id=2, kind=Kind.DECISION), older)
    assert change is not None
    assert change.is_whole
    fact = make_summary("Test against staging", "Test against staging", id=3, kind=Kind.DECISION)
    assert (
        find_change(
            fact, make_summary("Deploy to staging", "Deploy to staging", kind=Kind.DECISION)
        )
        is None
    )
