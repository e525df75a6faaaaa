"""Each token of the further issuers goes, and what only looks like one stays."""

from memd.capture.redact import PATTERNS, redact
from tests.planted_secrets import ISSUER_ROWS, Row, names
from tests.tables import every_row

ROWS = every_row("row", ISSUER_ROWS, ids=names(ISSUER_ROWS))


def test_no_issuer_is_in_two_tables():
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)


@ROWS
def test_a_token_goes(row: Row):
    assert redact(row.text, entropy=False) == f"{row.before}[REDACTED:{row.name}]{row.after}"


@ROWS
def test_a_token_goes_from_within_json(row: Row):
    assert row.secret not in redact(rf"{{\"stdout\": \"first\n{row.text}\nlast\"}}")


@ROWS
def test_a_look_alike_stays(row: Row):
    assert redact(row.spared) == row.spared


@ROWS
def test_a_pattern_says_when_it_is_worth_trying(row: Row):
    pattern = next(one for one in PATTERNS if one.name == row.name)
    assert any(needle in row.text for needle in pattern.needles)
