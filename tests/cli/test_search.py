import re

import pytest


def test_hits_are_told_with_id_kind_day_and_title(memd):
    ran = memd("search", "why", "did", "login", "answer", "500", "--project", "all")
    assert ran.status == 0
    assert re.match(r"#\d+ \w+  \d{4}-\d\d-\d\d  \S", ran.out)
    assert ran.out.splitlines()[1].startswith("    ")


def test_the_full_form_is_for_programs(memd):
    found = memd("search", "login 500", "--project", "all", "-k", "2", "--json").json
    assert 1 <= len(found["hits"]) <= 2
    assert found["hits"][0]["id"] > 0
    assert found["hits"][0]["parts"]


def test_an_explanation_shows_the_steps_of_each_score_and_who_missed_the_cut(memd):
    ran = memd("search", "login 500", "--project", "all", "--explain")
    assert re.search(r"^ +[\d.e-]+ = \S+ [\d.e-]+", ran.out, re.MULTILINE)
    assert "profile memd" in ran.out


def test_only_the_kinds_asked_for_are_found(memd):
    found = memd("search", "sessions", "--project", "all", "--kind", "decision", "--json").json
    assert {hit["kind"] for hit in found["hits"]} <= {"decision"}


def test_nothing_found_is_an_answer(memd):
    ran = memd("search", "zyzzyva", "qwfpgj", "--project", "all", "--kind", "preference")
    assert ran.status == 0
    assert "nothing found" in ran.out


def test_a_kind_that_there_is_not_is_refused_by_its_name(memd):
    ran = memd("search", "x", "--kind", "nonsense")
    assert ran.status == 1
    assert "kinds" in ran.err


@pytest.mark.parametrize(
    "query", ['"unbalanced', "AND OR NOT", "((", "a* *", "^x:", "'; DROP TABLE events", "-x --"]
)
def test_operators_are_no_syntax_errors(memd, query):
    """There may be no word in it; then that is what is said."""
    ran = memd("search", "--project", "all", "--", query)
    assert ran.status == 0 or "no word" in ran.err
