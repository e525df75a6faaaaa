"""`memd undo`: the last change of any kind is taken back, or it is said why not."""

import pytest


@pytest.fixture
def pair(noted):
    return noted("the ferry leaves at nine from the old pier"), noted("gulls nest on the mast")


def shown(memd, *numbers):
    """Of these memories, those that nothing hides."""
    found = memd("get", *numbers, "--json").json["memories"]
    return [one["id"] for one in found if not one["superseded_by"]]


def listed(memd):
    return memd("undo", "--list", "--json").json["changes"]


def test_undo_takes_back_a_judgment(memd, pair):
    one, other = pair
    memd("judge", one, "supersedes", other, "--reason", "seen")
    ran = memd("undo")
    assert ran.out.startswith(f"undone: #{one} supersedes #{other}\n")
    assert shown(memd, *pair) == [one, other]


def test_undo_takes_back_an_edit_with_its_pin_and_then_what_came_before(memd, pair):
    old, _ = pair
    memd("pin", old)
    new = memd("edit", old, "--text", "the ferry leaves at ten", "--json").json["id"]
    assert f"#{old} was edited, into #{new}" in memd("undo").out
    assert shown(memd, old, new) == [old]
    assert memd("get", old, "--json").json["memories"][0]["pinned_at"]
    assert f"#{old} was pinned" in memd("undo").out
    assert not memd("get", old, "--json").json["memories"][0]["pinned_at"]
    memd("forget", "--yes", new)


def test_undo_takes_back_a_rejection(memd, pair):
    memd("review", "--reject", pair[0])
    assert "was reviewed: rejected" in memd("undo").out
    assert memd("review", "--rejected", "--json").json["memories"] == []


def test_undo_takes_back_the_change_that_is_named(memd, pair):
    one, other = pair
    memd("judge", one, "supersedes", other, "--reason", "seen")
    memd("pin", one)
    pin, judgment = listed(memd)[:2]
    assert (pin["did"], judgment["did"]) == (f"#{one} was pinned", f"#{one} supersedes #{other}")
    assert judgment["effect"] == f"#{other} is shown again beside #{one}"
    assert memd("undo", judgment["name"]).status == 0
    assert shown(memd, *pair) == [one, other]
    assert listed(memd)[0] == pin
    assert "there is no change" in memd("undo", judgment["name"]).err


def test_what_cannot_be_undone_says_why_and_what_to_do(memd, noted):
    gone = noted("the harbour master sings")
    memd("forget", "--yes", gone)
    assert (
        "something was forgotten, which cannot be undone: it is erased for good" in memd("undo").err
    )
    assert "memd restore FILE" in memd("undo", "--list").out


def test_undo_takes_back_what_was_remembered_and_what_it_replaced_stands_again(memd):
    def remember(text):
        return memd("remember", text, "--topic-key", "ferry.pier", "--json").json["id"]

    old = remember("the ferry leaves from the old pier")
    new = remember("the ferry leaves from the new pier")
    before = listed(memd)
    assert f"undone: #{new} was remembered" in memd("undo").out
    assert shown(memd, old) == [old]
    found = [one["id"] for one in memd("list", "--limit", "50", "--json").json["memories"]]
    assert (old in found, new in found) == (True, False)
    assert f"n{new}" not in [one["name"] for one in listed(memd)]
    assert remember("the ferry leaves from the new pier") == new
    assert shown(memd, old, new) == [new]
    assert listed(memd)[0]["name"] == before[0]["name"] == f"n{new}"
    memd("forget", "--yes", old, new)


def test_what_was_remembered_and_edited_goes_in_two_steps(memd, noted):
    old = noted("the buoy is green")
    new = memd("edit", old, "--text", "the buoy is red", "--json").json["id"]
    assert f"#{new} stands in its place" in memd("undo", f"n{old}").err
    assert "was edited" in memd("undo").out
    assert f"#{old} was remembered" in memd("undo").out
    found = [one["id"] for one in memd("list", "--limit", "50", "--json").json["memories"]]
    assert not {old, new} & set(found)


def test_undo_gives_a_project_its_former_name(memd, noted):
    noted("crates are pink", "--project", "quay-a")
    memd("project", "rename", "quay-a", "quay-b")
    ran = memd("undo", "--project", "quay-b")
    assert "it is called quay-a again" in ran.out
    names = [one["name"] for one in memd("project", "list", "--json").json]
    assert ("quay-a" in names, "quay-b" in names) == (True, False)


def test_what_cannot_be_undone_elsewhere_bars_no_undo_here(memd, pair, noted):
    before = listed(memd)
    memd("pin", pair[0])
    elsewhere = noted("crates are blue", "--project", "warehouse-a")
    memd("forget", "--yes", elsewhere)
    memd("switch", "off", "--project", "warehouse-a")
    assert f"undone: #{pair[0]} was pinned" in memd("undo").out
    assert listed(memd) == before
    everywhere = memd("undo", "--list", "--project", "all").out
    assert "something was forgotten" in everywhere
    assert "memd was switched" in everywhere


def test_each_time_that_something_of_a_project_was_forgotten_is_listed_until_the_project_goes(
    memd, noted
):
    def list_forgotten(project):
        changes = memd("undo", "--list", "--project", project, "--json").json["changes"]
        return {one["at"] for one in changes if "forgotten" in one["did"]}

    kept = noted("crates are blue", "--project", "depot-a")
    before = list_forgotten("depot-a")  # of what holds everywhere
    for text in ("crates are heavy", "crates are wide"):
        memd("forget", "--yes", noted(text, "--project", "depot-a"))
    assert len(list_forgotten("depot-a") - before) == 2
    memd("forget", "--yes", "--project", "depot-a")
    assert memd("get", kept).status == 1
    # Its number is the next one's.
    noted("ferries are late", "--project", "depot-b")
    assert list_forgotten("depot-b") <= before


def test_what_works_is_named_before_what_cannot_be_undone(memd, pair, noted):
    memd("pin", pair[0])
    gone = noted("the harbour master sings")
    memd("forget", "--yes", gone)
    assert memd("undo").err.startswith(f"memd: `memd undo p{pair[0]}` takes back")


def test_undo_takes_back_a_merge(memd, noted):
    noted("crates are blue", "--project", "warehouse-a")
    noted("crates are heavy", "--project", "warehouse-b")
    assert memd("project", "merge", "warehouse-a", "warehouse-b", "--yes").status == 0
    assert "was merged into" in memd("undo").out
    names = [one["name"] for one in memd("project", "list", "--json").json]
    assert {"warehouse-a", "warehouse-b"} <= set(names)


def test_at_most_ten_changes_are_listed_the_last_first(memd, noted):
    for number in range(12):
        noted(f"crate {number} holds {number * 7} ropes")
    times = [one["at"] for one in listed(memd)]
    assert (len(times), times) == (10, sorted(times, reverse=True))


def test_an_agent_undoes_nothing_but_may_look(memd, pair, monkeypatch):
    memd("pin", pair[0])
    monkeypatch.setenv("CLAUDECODE", "1")
    assert memd("undo").status == 1
    assert memd("undo", "--list").status == 0
    monkeypatch.delenv("CLAUDECODE")
    assert listed(memd)[0]["did"] == f"#{pair[0]} was pinned"


def test_an_agent_that_judges_what_only_the_user_may_is_told_that_both_stay(
    memd, pair, monkeypatch
):
    one, other = pair
    other = memd("edit", other, "--text", "gulls nest on the mast, I saw it", "--json").json["id"]
    monkeypatch.setenv("CLAUDECODE", "1")
    ran = memd("judge", one, "supersedes", other, "--reason", "older")
    monkeypatch.delenv("CLAUDECODE")
    assert ran.status == 0
    assert f"until the user himself says `memd judge {one} RELATION {other}`" in ran.out
    assert shown(memd, one, other) == [one, other]
