"""A secret goes in every way of writing it, and of two in a sentence both go; what stands around it stays as it was."""

from memd.capture.redact import redact, redact_value
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/views")

ENCODED = TABLES["ENCODED"]
UNSEEN = [
    "la contrasen\u0303a es ⟦girasol49⟧",
    "the pass\u00adword is ⟦tulip83x⟧",
    "p\u200ba\u200bs\u200bs\u200bword=⟦tulip83x⟧",
    "password:\u00a0⟦Marble77x⟧",
]
JOINED = TABLES["JOINED"]
OF_TWO = TABLES["OF_TWO"]
HARMLESS = TABLES["HARMLESS"]
HARMLESS_LINES = TABLES["HARMLESS_LINES"]


def split(told):
    """Return a text without the marks around its secrets, and these."""
    secrets = [part.partition("⟧")[0] for part in told.split("⟦")[1:]]
    return told.replace("⟦", "").replace("⟧", ""), secrets


@every_row("told", [*ENCODED, *UNSEEN, *JOINED, *OF_TWO], ids=str)
def test_a_secret_goes_however_it_is_written(told):
    text, secrets = split(told)
    redacted = redact(text)
    assert not [secret for secret in secrets if secret in redacted]
    assert redact(redacted) == redacted


@every_row("text", [*HARMLESS, *HARMLESS_LINES], ids=str)
def test_what_only_is_written_alike_stays(text):
    assert redact(text) == text


def test_what_stands_around_a_decoded_secret_stays_as_it_was_written():
    text = "ﬁnd％20 ｕｓｅｒ＝ｂｏｂ ｐａｓｓｗｏｒｄ＝ｔｕｌｉｐ８３ｘ 終わり"
    assert (
        redact(f"①\n{text}\n②")
        == f"①\n{text.replace('ｔｕｌｉｐ８３ｘ', '[REDACTED:password]')}\n②"
    )
    assert redact("a%2Fb?next=%2F%3Fpassword%3DTulip83x%26c%3Dd") == (
        "a%2Fb?next=%2F%3Fpassword%3D[REDACTED:password]%26c%3Dd"
    )
    assert (
        redact("ls \\\n  -l; mysql -pTulip83x \\\n  db")
        == "ls \\\n  -l; mysql -p[REDACTED:cli-password] \\\n  db"
    )


def test_the_name_of_a_field_may_be_in_full_width_letters():
    assert redact_value({"ｐａｓｓｗｏｒｄ": "x9"}) == {"ｐａｓｓｗｏｒｄ": "[REDACTED:password]"}


def test_a_run_of_digits_that_is_no_text_in_hexadecimal_is_left_at_once():
    assert redact("7" * 501) == "7" * 501
