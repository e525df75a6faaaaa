import re

import pytest

from memd.cli import edit


def test_without_a_yes_it_only_says_what_would_go(memd, noted):
    number = noted("the secret handshake", "--project", "global")
    ran = memd("forget", number)
    assert ran.status == 1
    assert f"would forget #{number}" in ran.out
    assert "--yes" in ran.err
    assert memd("get", number).status == 0


def test_with_a_yes_it_is_gone(memd):
    number = memd("remember", "a passing thought", "--project", "global", "--json").json["id"]
    ran = memd("forget", f"#{number}", "--yes")
    assert ran.status == 0
    assert ran.out.startswith(f"forgot #{number} ")
    assert memd("get", number).status == 1


def test_what_there_is_not_cannot_be_forgotten(memd):
    ran = memd("forget", "999999")
    assert ran.status == 1
    assert "#999999" in ran.out + ran.err


def test_the_plan_is_for_programs_too(memd, noted):
    number = noted("planned", "--project", "global")
    plan = memd("forget", number, "--json").json
    assert plan["is_dry_run"]
    assert [one["id"] for one in plan["summaries"]] == [number]


def test_a_query_shows_what_says_all_of_its_words_and_erases_it(memd, noted):
    number = noted("a quetzal nests in the attic", "--project", "global")
    noted("a quetzal flies", "--project", "global")
    everywhere = ("--project", "all")
    ran = memd("forget", "--query", "quetzal NESTS", "--dry-run", *everywhere)
    assert (ran.status, ran.out.count("would forget")) == (0, 1)
    assert re.search(rf"would forget #{number} .*  \[global\]\n", ran.out)
    assert memd("forget", "--query", "quetzal nests", "--yes", *everywhere).status == 0
    assert memd("get", number).status == 1


@pytest.mark.parametrize("option", [(), ("--yes",), ("--dry-run",), ("--json",)])
def test_where_nothing_fits_nothing_is_wrong(memd, option):
    ran = memd("forget", "--query", "a bandersnatch frumious", "--project", "all", *option)
    assert (ran.status, ran.err) == (0, "")
    assert "--json" in option or ran.out == "nothing fits\n"


def test_a_query_means_this_project_unless_all_are_meant(memd, noted, monkeypatch, tmp_path):
    for name in ("heath", "moor"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        noted(f"the {name} has a whimbrel")
    ran = memd("forget", "--query", "whimbrel", "--dry-run")
    assert ("the moor has" in ran.out, "the heath has" in ran.out) == (True, False)
    assert "[" not in ran.out
    ran = memd("forget", "--since", "2020-01-01", "--dry-run")
    assert "the heath has" not in ran.out
    ran = memd("forget", "--query", "the heath", "--dry-run")
    assert ran.out == "nothing fits in this project; --project all looks everywhere\n"
    ran = memd("forget", "--query", "whimbrel", "--dry-run", "--project", "all")
    assert "the heath has a whimbrel  [heath]\n" in ran.out
    assert "the moor has a whimbrel\n" in ran.out


def test_a_query_where_nothing_is_known_says_how_to_mean_every_project(
    memd, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    ran = memd("forget", "--query", "whimbrel")
    assert ran.status == 1
    assert "say another, or all for every one" in ran.err


def test_everything_at_once_is_not_forgotten(memd):
    for words in ([], ["--project", "all"], ["1", "--query", "x"]):
        ran = memd("forget", "--yes", *words)
        assert (ran.status, ran.err.count("\n")) == (1, 1)


def test_a_long_list_is_cut_short_and_says_what_stays():
    said = {
        "is_dry_run": True, "summaries": [], "count": 300, "events": 0, "kept_events": 2,
        "sessions": ["a", "b"], "revived": list(range(30)), "also_in": [4], "unknown": [],
        "backups": [], "token": "",
    }  # fmt: skip
    lines = list(edit._lines(said))
    assert lines[0] == "would forget 300 more, 300 memories in all"
    assert "would forget all of the session “a”" in lines
    assert "2 events stay, for other memories come from them" in lines
    assert "… and 10 more such" in lines
    lines = edit._lines({**said, "kept_events": 1})
    assert "1 event stays, for other memories come from it" in list(lines)
