"""The checkable form of a rule: exact arguments and the closed words of a language around them; else there is none."""

import re
from pathlib import Path

from memd.belief.checks import RuleCheck, read_checks
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/checks")


def checks(text):
    return [str(one) for one in read_checks(text)]


@every_row(("rule", "check"), TABLES["a_rule_with_exact_arguments_has_a_check"])
def test_a_rule_with_exact_arguments_has_a_check(rule, check):
    assert checks(rule) == [check]
    assert checks(check) == [check]


def test_a_rule_may_have_several():
    assert checks("Before every commit, run `make lint` and `make test`. Never use `sudo`.") == [
        "`make lint` before commit", "`make test` before commit", "never use `sudo`",
    ]  # fmt: skip
    assert checks("Never edit `package-lock.json` or `yarn.lock`.") == [
        "never edit `package-lock.json`", "never edit `yarn.lock`"
    ]  # fmt: skip


@every_row("said", TABLES["a_sentence_that_limits_or_does_not_forbid_has_none"])
def test_a_sentence_that_limits_or_does_not_forbid_has_none(said):
    assert checks(said) == []


def test_a_check_says_what_is_to_be_used_instead():
    assert read_checks("Use `uv`, never `pip`.") == (RuleCheck("command", "pip", "uv"),)


def test_every_rule_of_the_page_has_a_check():
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    rules = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", page)
    assert len(rules) >= 8
    assert [rule for rule in rules if not checks(rule)] == []
