"""Headers, addresses and command lines lose the secret and keep what stands around it."""

from memd.capture.redact import redact
from tests.planted_secrets import SHAPE_ROWS, Row, names
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/formats")


@every_row("row", SHAPE_ROWS, ids=names(SHAPE_ROWS))
def test_a_secret_goes(row: Row):
    redacted = redact(row.text)
    assert row.secret not in redacted
    assert f"[REDACTED:{row.name}]" in redacted
    assert redacted.endswith(row.after)


def test_only_the_password_of_an_address_goes():
    assert redact("postgres://app:s3cret@db:5432/app?ssl=1") == (
        "postgres://app:[REDACTED:database-url]@db:5432/app?ssl=1"
    )


@every_row(("text", "secret"), TABLES["a_secret_goes_in_other_notations"])
def test_a_secret_goes_in_other_notations(text, secret):
    assert secret not in redact(text)
