import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import BadRequest
from memd.installers import hooks, plan, settings

OLD = ("/old/bin/python", "-I", "-S", "/old/memd/hook.py")
NEW = ("/new/bin/python", "-I", "-S", "/new/memd/hook.py")
EVENTS = [one.event for one in hooks.EVENTS]

words = st.text(st.characters(categories=["L", "N", "P", "Z"]), max_size=6)
foreign = st.fixed_dictionaries(
    {"type": st.just("command"), "command": words},
    optional={"timeout": st.integers(1, 60), "args": st.lists(words, max_size=2)},
).filter(lambda hook: not hooks.is_ours(hook))
group = st.fixed_dictionaries(
    {"hooks": st.lists(foreign, min_size=1, max_size=2)}, optional={"matcher": words}
) | st.just("what is this")
listed = st.dictionaries(
    st.sampled_from([*EVENTS, "PreToolUse", "Notification"]),
    st.lists(group, min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)
others = st.fixed_dictionaries(
    {},
    optional={
        "hooks": listed,
        "model": words,
        "env": st.dictionaries(words, words, max_size=2),
        "permissions": st.fixed_dictionaries({"allow": st.lists(words, max_size=2)}),
    },
)


@given(others, st.sampled_from([None, 2, "\t"]))
def test_uninstalling_undoes_installing_to_the_byte(before, indent):
    text = json.dumps(before, indent=indent)
    merged = plan.edit(text, settings.merge(before, NEW))
    assert json.loads(merged) == settings.merge(before, NEW)
    after = settings.unmerge(json.loads(merged))
    assert after == before
    # An empty object has no manner of its own to go back to; such a file goes.
    assert not before or plan.edit(merged, after) == text


@given(others)
def test_a_second_installation_changes_nothing_and_a_newer_one_replaces(before):
    once = settings.merge(before, OLD)
    assert settings.merge(once, OLD) == once
    assert settings.merge(once, NEW) == settings.merge(before, NEW)


@given(others)
def test_other_hooks_keep_their_order_and_the_arguments_stay_as_they_are(before):
    kept = deepcopy(before)
    merged = settings.merge(before, NEW)
    assert before == kept
    assert list(merged)[: len(before)] == list(before)
    for event, groups in before.get("hooks", {}).items():
        assert merged["hooks"][event][: len(groups)] == groups


def test_every_event_gets_its_hook():
    assert list(settings.merge({}, NEW)["hooks"]) == EVENTS


def test_an_older_entry_is_replaced_where_it_stands():
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    ours = dict(hooks.groups(NEW))["Stop"]
    readme = {"hooks": [{"type": "command", "command": "/old/memd", "args": ["hook"]}]}
    merged = settings.merge({"hooks": {"Stop": [readme, mine, readme]}}, NEW)
    assert merged["hooks"]["Stop"] == [ours, mine]


def test_a_group_that_we_share_keeps_what_is_not_ours():
    mine = {"type": "command", "command": "mine"}
    ours = {"type": "command", "command": "memd hook"}
    before = {"hooks": {"Stop": [{"hooks": [mine, ours]}]}}
    assert settings.unmerge(before) == {"hooks": {"Stop": [{"hooks": [mine]}]}}
    assert settings.merge(before, NEW)["hooks"]["Stop"][0] == {"hooks": [mine]}


def test_an_event_that_we_no_longer_listen_to_is_left():
    before = {
        "hooks": {"PreToolUse": [{"hooks": [{"command": "/old/memd", "args": ["hook"]}]}]}
    }
    assert "PreToolUse" not in settings.merge(before, NEW)["hooks"]
    assert settings.unmerge(before) == {}


def test_without_ours_nothing_is_taken_away():
    before = {"hooks": {"Stop": [], "Setup": [{"hooks": []}]}, "x": {}}
    assert settings.unmerge(before) == before


@pytest.mark.parametrize("found", [[], "x", None, {"Stop": {}}, {"Stop": None}])
def test_hooks_that_are_no_object_of_lists_are_refused(found):
    for change in (lambda s: settings.merge(s, NEW), settings.unmerge):
        with pytest.raises(BadRequest, match=r"`hooks(\.Stop)?` is not"):
            change({"hooks": found})


@pytest.mark.parametrize(
    ("enabled", "found"),
    [
        ({"memd@memd": True, "x@y": True}, ["memd@memd"]),
        ({"memd@elsewhere": True}, ["memd@elsewhere"]),
        ({"memd@memd": False}, []),
        ({"memdx@memd": True}, []),
        ([], []),
        (None, []),
    ],
)
def test_an_enabled_plugin_is_found_wherever_it_comes_from(enabled, found):
    assert settings.plugins({"enabledPlugins": enabled}) == found


def test_it_is_told_when_no_hook_will_run():
    assert settings.warnings({"disableAllHooks": False}) == ()
    assert "disableAllHooks" in settings.warnings({"disableAllHooks": True})[0]
