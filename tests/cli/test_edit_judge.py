import re

import pytest


@pytest.fixture
def pair(noted):
    old = noted("the harbour gate opens at six", "--kind", "fact", "--project", "global")
    new = noted("the harbour gate opens at seven", "--kind", "fact", "--project", "global")
    return old, new


def test_remembering_something_alike_asks_for_a_judgment(memd, noted):
    old = noted(
        "the ferry to Ushant leaves from pier 4", "--kind", "fact", "--project", "global"
    )
    ran = memd(
        "remember",
        "the ferry to Ushant leaves from pier 6",
        "--kind",
        "fact",
        "--project",
        "global",
    )
    number = ran.out.split()[0]
    assert f"    #{old} the ferry to Ushant leaves from pier 4" in ran.out
    assert "      number: 4 → 6" in ran.out
    assert f"memd judge {number[1:]} {old} supersedes --reason WHY" in ran.out
    memd("forget", "--yes", number)


def test_what_is_pinned_is_to_be_unpinned_before_it_can_be_replaced(memd, noted):
    old = noted("the lamp oil is in barrel 3", "--kind", "fact", "--project", "global")
    memd("pin", old)
    told = ("--kind", "fact", "--project", "global")
    ran = memd("remember", "the lamp oil is in barrel 5", *told)
    number = ran.out.split()[0].removeprefix("#")
    assert ran.out.endswith(
        f"  #{old} is pinned: memd pin {old} --off first,"
        f" then memd judge {number} {old} supersedes --reason WHY\n"
    )
    memd("forget", "--yes", number)


def test_what_was_hidden_before_is_not_told_as_hidden_now(memd, noted):
    told = ("--topic-key", "bell.rings", "--project", "global")
    first, second = noted("the bell rings at 6", *told), noted("the bell rings at 7", *told)
    third = noted("the bell is broken", "--project", "global")
    ran = memd("judge", third, first, "compatible", "--reason", "both may be")
    stays = f"  #{first} stays hidden, superseded by #{second}"
    assert ran.out.splitlines() == [f"#{third} holds beside #{first}", stays]
    ran = memd("judge", third, first, "--undo")
    assert ran.out.splitlines()[1:] == [stays]


def test_what_is_judged_replaced_is_hidden_and_told_why_and_undone(memd, pair):
    old, new = pair
    ran = memd("judge", new, f"#{old}", "supersedes", "--reason", "the winter hours")
    assert ran.out.splitlines() == [
        f"#{new} supersedes #{old}",
        f"  #{old} is hidden; `memd why {old}` shows it",
    ]
    assert "already" in memd("judge", new, old, "supersedes", "--reason", "again").out
    why = memd("why", old).out
    assert f"superseded by #{new} (judged)" in why
    assert "judged by the user" in why
    assert "the winter hours" in why
    ran = memd("judge", old, new, "--undo")
    assert ran.out.splitlines() == [
        f"undone: supersedes between #{old} and #{new}",
        f"  #{old} shows again",
    ]
    why = memd("why", old).out
    assert f"\n  was superseded by #{new} fact " in why
    assert "; taken back 20" in why
    assert re.search(r"judged by the user [-\d]+ [\d:]+ \(taken back [-\d]+ [\d:]+\): #", why)
    assert f"\n  had superseded #{old} fact " in memd("why", new).out


def test_two_that_contradict_each_other_are_both_shown_and_marked(memd, pair):
    old, new = pair
    done = memd("judge", new, old, "contradicts", "--reason", "nobody knows", "--json").json
    assert (done["outcome"], done["relation"], done["hidden"]) == ("judged", "contradicts", [])
    hits = memd("search", "harbour gate opens", "--project", "all", "--json").json["hits"]
    marks = {hit["id"]: hit["contradicted_by"] for hit in hits if hit["id"] in pair}
    assert marks == {old: [new], new: [old]}
    assert memd("get", old, "--json").json["memories"][0]["contradicted_by"] == [new]
    assert f"contradicted by #{new}" in memd("why", old).out
    told = memd("search", "harbour gate opens", "--project", "all").out
    assert f"(contradicted by #{new})" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("1",), "OTHER"),
        (("1", "2"), "say what it is: supersedes, duplicate"),
        (("1", "2", "beats", "--reason", "x"), "relation: must be one of supersedes, "),
        (("1", "2", "supersedes", "--undo"), "leave out 'supersedes'"),
        (("1", "x", "supersedes"), "an id is a number"),
        (("1", "999999", "unrelated", "--reason", "x"), "#999999"),
    ],
)
def test_a_judgment_that_cannot_be_is_refused(memd, words, told):
    ran = memd("judge", *words)
    assert ran.status == 1
    assert told in ran.err


def test_a_judgment_without_a_reason_is_refused(memd, pair):
    ran = memd("judge", pair[1], pair[0], "supersedes")
    assert ran.status == 1
    assert "say in a few words why (reason)" in ran.err
    ran = memd("judge", pair[1], "999999", "supersedes")
    assert "#999999" in ran.err
