import re

import pytest

from memd.cli import edit


def test_without_a_yes_it_only_says_where_it_is(memd, noted):
    number = noted("the okapi sleeps", "--project", "global")
    ran = memd("scrub", "okap[i]")
    assert ran.status == 1
    assert f"would rewrite 1 memory: #{number}\n" in ran.out
    assert re.search(r"\n\d+ places become \[REDACTED:scrub\]\n", ran.out)
    assert "okapi" not in ran.out
    assert "--yes" in ran.err
    assert "okapi" in memd("get", number).out


def test_with_a_yes_it_is_replaced(memd, noted):
    number = noted("the okapi sleeps", "--project", "global")
    assert memd("scrub", "okap[i]", "--yes").status == 0
    assert "the [REDACTED:scrub] sleeps" in memd("get", number).out
    assert memd("scrub", "okap[i]", "--dry-run").out == "found nowhere\n"


@pytest.mark.parametrize("words", [[], ["(", "--dry-run"], ["x*", "--yes"], ["a", "--secrets"]])
def test_what_makes_no_sense_is_refused_in_one_line(memd, words):
    ran = memd("scrub", *words)
    assert (ran.status, ran.err.count("\n")) == (1, 1)


def test_a_pattern_and_the_secrets_are_not_both_scrubbed(memd):
    assert "give a pattern or --secrets, not both" in memd("scrub", "a", "--secrets").err


def test_what_stays_is_named():
    said = {
        "is_dry_run": False, "rows": {"log": 2, "events": 11, "summaries": 3},
        "ids": {"events": [1, 2], "summaries": [4, 5]}, "found": {"[REDACTED:scrub]": 1}, "stays": {"projects.key": 1}, "backups": ["/b/one.db"],
    }  # fmt: skip
    assert list(edit._lines_scrub(said)) == [
        "rewrote 2 log lines",
        "rewrote 11 events",
        "rewrote 3 memories: #4, #5, …",
        "1 place became [REDACTED:scrub]",
        "stays in 1 of projects.key: by that it is found; `memd forget` takes it",
        "/b/one.db is a backup and may still hold it",
    ]


def test_without_a_daemon_it_says_so(alone):
    assert alone("scrub", "x").status == 2
