"""A later order of the same speaker replaces the earlier one whose value it names or turns; else both stay."""

from memd.belief.decide import CandidatePair, decide
from memd.models import Authority, EdgeType, Kind
from tests.factories import make_summary
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/reversals")

REPLACED = TABLES["REPLACED"]  # fmt: skip
IN_DOUBT = (
    ("Open pull requests against develop", "Open pull requests against main"),
    ("Deploy the api to staging", "From now on deploy the api to production"),
    ("Deploy the api through the staging cluster", "From now on deploy the api through the production cluster"),
    ("Send mails by Postmark", "Send mails by SES again, Postmark got too expensive"),
    ("Copy rows from orders into archive", "From now on copy rows from archive into orders"),
)  # fmt: skip
BOTH_HOLD = TABLES["BOTH_HOLD"]  # fmt: skip


def compare(older, newer):
    one, other = (
        make_summary(text, f"User: “{text}”", kind=Kind.INSTRUCTION, id=n, at=n * 1_000, authority=Authority.USER_PROMPT)
        for n, text in enumerate((older, newer), 1)
    )  # fmt: skip
    found = list(decide([CandidatePair(one, other, None)]))
    return found[0].type if found else None


@every_row(("older", "newer"), REPLACED)
def test_an_order_that_turns_the_value_of_an_earlier_one_replaces_it(older, newer):
    assert compare(older, newer) is EdgeType.SUPERSEDES


@every_row(("older", "newer"), IN_DOUBT)
def test_where_two_orders_may_both_hold_the_pair_is_named(older, newer):
    assert compare(older, newer) is EdgeType.CONTRADICTS


@every_row(("older", "newer"), BOTH_HOLD)
def test_orders_about_two_things_stay(older, newer):
    assert compare(older, newer) is None
