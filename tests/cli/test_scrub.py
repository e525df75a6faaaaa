import pytest

from memd.cli import scrub


def test_without_a_yes_it_only_says_where_it_is(memd, noted):
    number = noted("the okapi sleeps", "--project", "global")
    ran = memd("scrub", "okap[i]")
    assert ran.status == 1
    assert f"would rewrite 1 of the summaries: #{number}" in ran.out
    assert "with [REDACTED:scrub]" in ran.out
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


def test_what_stays_is_named():
    said = {
        "is_dry_run": False, "rows": {"log": 2, "events": 11}, "ids": {"events": [1, 2]},
        "found": {}, "stays": {"projects.key": 1}, "backups": ["/b/one.db"],
    }  # fmt: skip
    assert list(scrub._lines(said)) == [
        "rewrote 2 of the log",
        "rewrote 11 of the events: #1, #2, …",
        "stays in 1 of projects.key: by that it is found; `memd forget` takes it",
        "/b/one.db is a backup and may still hold it",
    ]


def test_without_a_daemon_it_says_so(alone):
    assert alone("scrub", "x").status == 2
