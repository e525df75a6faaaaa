"""Each issued token goes, and what only looks like one stays."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.capture.redact import PATTERNS, redact
from memd.capture.redact.regexes import compile_regex, find_beginning, lower_alike
from tests.planted_secrets import ISSUER_ROWS, SHAPE_ROWS, TOKEN_ROWS, Row, names
from tests.tables import every_row

TOKENS = [*TOKEN_ROWS, *ISSUER_ROWS]
ROWS = every_row("row", TOKENS, ids=names(TOKENS))


def test_the_table_is_long_and_its_names_are_unique():
    names = [pattern.name for pattern in PATTERNS]
    assert len(names) >= 45
    assert len(names) == len(set(names))


@ROWS
def test_a_token_goes(row: Row):
    assert redact(row.text) == f"{row.before}[REDACTED:{row.name}]{row.after}"


@every_row("row", [*TOKENS, *SHAPE_ROWS], ids=names([*TOKENS, *SHAPE_ROWS]))
def test_a_look_alike_stays(row: Row):
    assert redact(row.spared) == row.spared


@ROWS
def test_a_token_goes_without_the_help_of_the_entropy_rule(row: Row):
    redacted = redact(f'print("{row.text}")', entropy=False)
    assert row.secret not in redacted
    assert redact(row.text, entropy=False) == f"{row.before}[REDACTED:{row.name}]{row.after}"


@ROWS
def test_a_token_goes_after_an_escaped_line_break(row: Row):
    assert row.secret not in redact(rf"{{\"stdout\": \"first\n{row.text}\nlast\"}}")


@every_row("pattern", PATTERNS, ids=names(PATTERNS))
def test_a_pattern_says_when_it_is_worth_trying(pattern):
    rows = [row for row in TOKENS if row.name == pattern.name]
    assert all(
        not pattern.needles
        or any(
            needle in (row.text.lower() if pattern.folded else row.text)
            for needle in pattern.needles
        )
        for row in rows
    )


def test_a_regex_is_compiled_once():
    assert compile_regex("ab+c") is compile_regex("ab+c")


def test_only_the_last_group_of_a_match_goes():
    text = "https://hooks.slack.com/services/" + "T0/B0/" + "x1" * 12
    assert redact(text) == "https://hooks.slack.com/services/[REDACTED:slack-webhook]"


@settings(max_examples=100)
@given(st.text(alphabet=st.sampled_from("seSEd wİ1=x"), max_size=60))
def test_a_regex_tried_where_its_words_stand_finds_what_it_finds_everywhere(text):
    regex = re.compile(r"(?i:seed=?|sed)[1x]?(?P<s>\w*)")
    found = find_beginning(regex, ("seed", "sed"), text, lower_alike(text))
    assert [one.span("s") for one in found] == [one.span("s") for one in regex.finditer(text)]


def test_an_app_token_goes_whole_where_an_address_encodes_its_bar():
    address = "https://graph.example/me?id=123456789012345%7CAbCdEfGhIjKlMnOpQrStUvWxYz0"
    assert redact(address, entropy=False).endswith("?id=[REDACTED:facebook-app-token]")
