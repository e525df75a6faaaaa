"""Private blocks and keys go whole, wherever a text was cut, in time that grows with the text alone."""

from memd.capture.redact.documents import redact_blocks
from tests.planted_secrets import draw
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/blocks")

BODY = "\n".join(draw(64, seed=n) for n in range(5))
DASHES = "-" * 5


def key(kind="", end=True):
    name = f"{kind} PRIVATE KEY".strip()
    tail = f"{DASHES}END {name}{DASHES}" if end else ""
    return f"{DASHES}BEGIN {name}{DASHES}\n{BODY}\n{tail}"


@every_row(("text", "expected"), TABLES["a_private_block_goes"])
def test_a_private_block_goes(text, expected):
    assert redact_blocks(text) == expected


@every_row("kind", ["", "RSA", "EC", "DSA", "OPENSSH", "ENCRYPTED"])
def test_a_private_key_goes(kind):
    assert redact_blocks(f"a\n{key(kind)}\nb") == "a\n[REDACTED:private-key]\nb"


def test_keys_of_other_makers_go():
    pgp = f"{DASHES}BEGIN PGP PRIVATE KEY BLOCK{DASHES}\n{BODY}\n{DASHES}END PGP PRIVATE KEY BLOCK{DASHES}"
    ssh2 = f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{BODY}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----"
    assert redact_blocks(pgp) == "[REDACTED:pgp-private-key]"
    assert redact_blocks(ssh2) == "[REDACTED:ssh2-private-key]"


def test_a_key_inside_a_json_string_goes():
    inside = key("RSA").replace("\n", r"\n")
    assert redact_blocks(f'{{"private_key": "{inside}\\n"}}') == (
        '{"private_key": "[REDACTED:private-key]\\n"}'
    )


def test_a_key_that_was_cut_goes_to_its_edge():
    assert redact_blocks("a\n" + key(end=False)) == "a\n[REDACTED:private-key]"
    assert redact_blocks(key().split("\n", 1)[1] + "\nb") == "[REDACTED:private-key]\nb"


def test_a_key_concatenated_in_code_goes():
    lines = "".join(f'    "{line}\\n" +\n' for line in key("RSA").split("\n"))
    assert not any(line in redact_blocks(lines) for line in BODY.split("\n"))


@every_row(
    "text",
    [
        f'if "{DASHES}BEGIN RSA PRIVATE KEY{DASHES}" in text:\n    return True',
        f"if '{DASHES}END PRIVATE KEY{DASHES}' in text:\n    return True",
        f"{DASHES}BEGIN CERTIFICATE{DASHES}\nMIIB\n{DASHES}END CERTIFICATE{DASHES}",
        f"{DASHES}BEGIN PUBLIC KEY{DASHES}\nMIIB\n{DASHES}END PUBLIC KEY{DASHES}",
        "private static final int x; List<PrivateKey> <private-note> <privateer> <private/>",
        "the PRIVATE KEY is in the safe",
    ],
)
def test_what_only_speaks_of_a_block_stays(text):
    assert redact_blocks(text) == text


@every_row(
    "piece",
    [
        "<private>",
        "</private>",
        "<private",
        f"{DASHES}BEGIN PRIVATE KEY{DASHES}",
        f"{DASHES}BEGIN ",
        "x",
    ],
)
def test_megabytes_take_no_time(piece):
    text = piece * (1_000_000 // len(piece))
    redact_blocks(text)
