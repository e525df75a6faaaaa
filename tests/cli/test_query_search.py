import re

import pytest

from memd.cli import daemon_call


def test_hits_are_told_with_id_kind_day_and_title(memd):
    ran = memd("search", "why", "did", "login", "answer", "500", "--project", "all")
    assert ran.status == 0
    assert re.match(r"#\d+ \w+  \d{4}-\d\d-\d\d  \S", ran.out)
    assert ran.out.splitlines()[1].startswith("    ")


def test_of_all_projects_a_hit_says_to_which_it_belongs(memd, noted, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    noted("a dotterel on the roof")
    noted("a dotterel in the yard", "--project", "global")
    out = memd("search", "dotterel", "--project", "all").out
    assert "a dotterel on the roof\n" in out
    assert "a dotterel in the yard  [global]\n" in out
    assert "[" not in memd("search", "dotterel").out


def test_what_the_question_asks_for_is_not_told_where_nothing_was_found(memd):
    note = "(the question asks for the latest"
    assert note in memd("search", "latest login", "--project", "all").out
    assert note not in memd("search", "latest zyxwvutsrq", "--project", "global").out


def test_the_full_form_is_for_programs(memd):
    found = memd("search", "login 500", "--project", "all", "-k", "2", "--json").json
    assert 1 <= len(found["hits"]) <= 2
    assert found["hits"][0]["id"] > 0
    assert found["hits"][0]["parts"]


def test_an_explanation_shows_the_steps_of_each_score_and_who_missed_the_cut(memd):
    ran = memd("search", "login 500", "--project", "all", "--explain", "-k", "1")
    assert re.search(r"^ +[\d.e-]+ = \S+ [\d.e-]+", ran.out, re.MULTILINE)
    assert "profile memd" in ran.out
    assert re.search(r"^ *#\d+ .* l+.* hit  .*[Ll]ogin", ran.out, re.MULTILINE)
    assert re.search(r" (?:diversity|rank \d)", ran.out)


def test_what_an_explanation_draws_is_what_the_full_form_says(memd):
    asked = ("search", "login 500", "--project", "all", "--explain")
    trace = memd(*asked, "--json").json["trace"]
    drawn = memd(*asked).out.partition("candidates\n")[2]
    assert trace
    for one in trace:
        assert re.search(rf"^ *#{one['summary_id']} .*{one['score']:.4g} ", drawn, re.MULTILINE)


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
    assert "--kind: there is no 'nonsense'; there are decision, " in ran.err


@pytest.mark.parametrize(
    "query", ['"unbalanced', "AND OR NOT", "((", "a* *", "^x:", "'; DROP TABLE events", "-x --"]
)
def test_operators_are_no_syntax_errors(memd, query):
    """There may be no word in it; then that is what is said."""
    ran = memd("search", "--project", "all", "--", query)
    assert ran.status == 0 or "no word" in ran.err


@pytest.mark.usefixtures("memd")
def test_a_program_can_ask_for_a_focus_and_for_what_is_worth_showing():
    """The control call itself: neither has an option."""
    asked = {"query": "which tests run", "project": "all"}
    (hit, *_) = daemon_call.call("memd/search", **asked, focus=["auth.py"])["hits"]
    assert {"name": "focus", "value": 1.4, "op": "*"} in hit["parts"]
    strong = daemon_call.call(
        "memd/search", query="login answers 500", project="all", surface={}
    )
    assert strong["hits"][0]["coverage"] >= 0.4
    weak = daemon_call.call(
        "memd/search", query="zebra crossing tests", project="all", surface={"floor": 0.9}
    )
    assert weak["hits"] == []
    assert weak["suppressed"]["weak"] > 0
