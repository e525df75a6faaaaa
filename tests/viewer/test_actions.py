"""What a viewer with --edit changes, and that one without changes nothing."""

import pytest

from memd.viewer.server import ACTIONS
from tests.viewer.conftest import Elements


@pytest.fixture
def note(call):
    """Remember something; its number."""

    def say(text, **more):
        return call("remember", text=text, project="actions", **more)["id"]

    return say


@pytest.fixture
def memory(call):
    return lambda number: call("get", ids=[number])["memories"][0]


@pytest.mark.parametrize("action", list(ACTIONS))
def test_without_edit_every_action_is_refused(reader, action):
    reply = reader.post(action, id=1, ids="1", pinned="1", pattern="x", query="x", project="ledger")
    assert (reply.status, "--edit" in reply.json["error"]) == (403, True)


@pytest.mark.parametrize(
    "path",
    ["/memory/1", "/memory/1/forget", "/memory/1/edit", "/memory/1/pin", "/scrub", "/forget"],
)
def test_without_edit_no_page_has_a_form_that_changes_something(reader, path):
    page = Elements(reader.get(path).html)
    assert not [one for _, one in page.found if "data-act" in one]


def fields_of(html):
    """What the first form that acts sends if nothing is filled in: (its action, its fields)."""
    page = Elements(html)
    action = next(
        one["data-act"] for name, one in page.found if name == "form" and "data-act" in one
    )
    inputs = {
        one["name"]: one.get("value", "")
        for name, one in page.found
        if name == "input" and one.get("type") == "hidden"
    }
    return action.removeprefix("/do/"), inputs


def test_forget_shows_what_goes_and_erases_just_that(editor, call, note):
    number = note("A secret plan about walruses")
    page = editor.get(f"/memory/{number}/forget")
    assert "A secret plan about walruses" in Elements(page.html).text
    assert "cannot be undone" in page.html
    assert call("get", ids=[number])["memories"]
    action, fields = fields_of(page.html)
    done = editor.post(action, **fields)
    assert (done.status, done.json["go"]) == (200, "/")
    assert "Forgotten: 1 memory" in done.json["say"]
    assert editor.get(f"/memory/{number}").status == 404


def test_forget_erases_nothing_if_something_else_would_go(editor, call, note):
    first = note("The walrus colony is at the north pier")
    action, fields = fields_of(
        editor.post("forget-preview", query="walrus", project="actions").json["html"]
    )
    second = note("The walrus colony moved to the south pier in May")
    assert editor.post(action, **fields).status == 400
    assert len(call("get", ids=[first, second])["memories"]) == 2


def test_what_is_of_some_time_is_forgotten(editor, call, note):
    old, new = note("From long ago", at="2001-02-03"), note("From today")
    preview = editor.post(
        "forget-preview", since="2001-01-01", until="2001-12-31", project="actions"
    )
    assert "From long ago" in Elements(preview.json["html"]).text
    action, fields = fields_of(preview.json["html"])
    assert "Forgotten: 1 memory" in editor.post(action, **fields).json["say"]
    assert call("get", ids=[old, new])["unknown"] == [old]


def test_nothing_is_forgotten_without_words_or_time(editor):
    assert editor.post("forget-preview", query="", project="all").status == 400


def test_forgetting_an_edited_memory_takes_its_earlier_versions_along(editor, note):
    old = note("The launch is on Mnday")
    new = int(
        editor.post("edit", id=old, title="", text="The launch is on Monday", reason="")
        .json["go"]
        .rpartition("/")[2]
    )
    page = editor.get(f"/memory/{new}/forget")
    assert "1 earlier version" in page.html
    action, fields = fields_of(page.html)
    assert "Forgotten: 2 memories" in editor.post(action, **fields).json["say"]
    assert editor.get(f"/memory/{old}").status == 404


def test_edit_writes_a_new_version_and_the_page_tells_it(editor, memory, note):
    old = note("We use Redis for queues")
    form = editor.get(f"/memory/{old}/edit")
    assert "We use Redis for queues" in Elements(form.html).text
    done = editor.post(
        "edit", id=old, title="Queues", text="We use Postgres for queues", reason="changed"
    ).json
    new = int(done["go"].rpartition("/")[2])
    assert memory(new)["body"] == "We use Postgres for queues"
    assert memory(old)["superseded_by"] == new
    assert "edited by hand: changed" in editor.get(f"/memory/{new}").html


def test_an_edit_is_taken_back(editor, memory, note):
    old = note("The door code is on the fridge")
    place = editor.post("edit", id=old, title="", text="The door code is in the safe").json["go"]
    assert f"{place}/take-back" in Elements(editor.get(place).html).links()
    action, fields = fields_of(editor.get(f"{place}/take-back").html)
    assert editor.post(action, **fields).json["go"] == f"/memory/{old}"
    assert memory(old)["superseded_by"] is None
    assert memory(int(place.rpartition("/")[2]))["superseded_by"] == old
    assert "/take-back" not in editor.get(f"/memory/{old}").html
    again = editor.post("edit", id=old, title="", text="The door code is in the safe").json["go"]
    assert editor.get(again).status == 200


def test_pin_and_unpin(editor, memory, note):
    number = note("Pin me")
    for _ in range(2):
        before = bool(memory(number)["pinned_at"])
        action, fields = fields_of(editor.get(f"/memory/{number}/pin").html)
        assert editor.post(action, **fields).status == 200
        assert bool(memory(number)["pinned_at"]) is not before


def test_judge_and_undo(editor, memory, note):
    one, other = note("Tabs are used in Makefiles"), note("Spaces are used in Python files")
    judged = editor.post(
        "judge", order=f"{one} {other}", relation="supersedes", reason="a test"
    ).json
    assert f"#{other} is hidden" in judged["say"]
    page = editor.get(f"/judge/{one}/{other}")
    assert "a test" in page.html
    action, fields = fields_of(page.html)
    assert f"#{other} shows again" in editor.post(action, **fields).json["say"]
    assert memory(other)["superseded_by"] is None


def test_scrub_shows_how_much_and_never_the_text(editor, memory, note):
    number = note("The codename is bluewhale42")
    preview = editor.post("scrub-preview", pattern="bluewhale42").json["html"]
    assert "memory" in preview or "row" in preview
    action, fields = fields_of(preview)
    assert editor.post(action, **fields).status == 200
    assert "bluewhale42" not in memory(number)["body"]


def test_projects_are_renamed_switched_and_merged(editor, call):
    first = call("remember", text="Of the first of two projects", project="one-of-two")["id"]
    call("remember", text="Of the second of two projects", project="two-of-two")
    assert editor.post("rename", project="one-of-two", name="renamed").status == 200
    assert editor.post("switch", project="renamed", state="off").status == 200
    assert "switched off" in editor.get("/project?name=renamed").html
    plan = editor.get("/project/merge?name=renamed&into=two-of-two")
    assert "1 memory" in plan.html
    action, fields = fields_of(plan.html)
    assert editor.post(action, **fields).status == 200
    assert call("get", ids=[first])["memories"][0]["project"] == "two-of-two"
    (back,) = [
        link
        for link in Elements(editor.get("/project?name=two-of-two").html).links()
        if link.startswith("/unmerge")
    ]
    action, fields = fields_of(editor.get(back).html)
    assert editor.post(action, **fields).status == 200
    assert call("get", ids=[first])["memories"][0]["project"] == "renamed"


@pytest.mark.parametrize(
    ("action", "fields"),
    [("edit", {"id": "x"}), ("edit", {}), ("pin", {"id": [1]}), ("take-back", {"id": 1}), ("judge", {"order": "1"}), ("judge", {"undo": "1", "id": {}}),
     ("forget", {}), ("forget", {"ids": "99999"}), ("scrub", {"pattern": "("}), ("rename", {"project": "no", "name": "x"}),
     ("switch", {"project": "ledger", "state": "sideways"}), ("undo", {"run": "x"}), ("merge", {"project": 5}), ("unmerge", {"project": "never-merged"})],
)  # fmt: skip
def test_fields_that_make_no_sense_are_explained(editor, action, fields):
    reply = editor.post(action, **fields)
    assert reply.status in {400, 404}
    assert reply.json["error"]


def test_an_unknown_action_is_none(editor):
    assert editor.post("explode").status == 404


def test_the_inbox_shows_what_was_learned_with_its_proof_and_each_button_can_be_taken_back(
    editor, reader, call
):
    number = call(
        "remember",
        text="Feature flags live in flags.toml",
        source="import:notes",
        project="actions",
    )["id"]
    shown = editor.get("/inbox").html
    assert "Feature flags live in flags.toml" in Elements(shown).text
    assert not [one for _, one in Elements(reader.get("/inbox").html).found if "data-act" in one]
    done = editor.post("review", id=number, verdict="reject").json
    assert "never learned again" in done["say"]
    assert done["go"] == f"/inbox?undo={number}"
    assert "Feature flags live" not in Elements(editor.get("/inbox").html).text
    assert "Feature flags live in flags.toml" in Elements(editor.get("/rejected").html).text
    assert "Rejected by the user on" in Elements(editor.get(f"/memory/{number}").html).text
    assert f"Undo what you said of #{number}" in editor.get(done["go"]).html
    editor.post("review", id=number, verdict="undo")
    assert "Feature flags live in flags.toml" in Elements(editor.get("/inbox").html).text
    editor.post("review", id=number, verdict="keep")
    assert "Feature flags live" not in Elements(editor.get("/inbox").html).text
