from typing import get_args

import pytest

from memd.errors import BadRequest, ConfigError
from memd.recall.profiles import (
    BUILT_IN,
    ProfileStep,
    adapt_to_recent,
    overlay_tables,
    resolve_profile,
    resolve_profiles,
)
from memd.recall.ranking import SIGNALS
from tests.tables import every_row


@every_row("name", sorted(BUILT_IN))
def test_every_profile_that_comes_with_memd_is_valid(name):
    assert any(weight > 0 for weight in resolve_profile(name, {}).legs.values())


def test_every_signal_that_a_step_may_name_has_a_formula():
    named = set(get_args(ProfileStep.model_fields["signal"].annotation))
    assert named - {"context"} == SIGNALS.keys()


def test_a_profile_of_ones_own_changes_only_what_it_says():
    own = {"mine": {"base": "siftcoder", "legs": {"vector": 0.0}, "k": 9}}
    mine, base = resolve_profile("mine", own), resolve_profile("siftcoder", {})
    assert (mine.legs["lexical"], mine.legs["vector"], mine.k) == (1.0, 0.0, 9)
    assert mine.steps == base.steps


def test_bases_are_followed():
    own = {"a": {"base": "b", "k": 7}, "b": {"base": "siftcoder", "pool": 20}}
    assert (resolve_profile("a", own).pool, resolve_profile("a", own).k) == (20, 7)


@every_row(
    ("own", "said"),
    [
        ({"x": {"base": "x"}}, "circle: x → x"),
        ({"x": {"base": "y"}, "y": {"base": "x"}}, "circle: x → y → x"),
        ({"x": {"base": "nowhere"}}, r"profiles\.x\.base: there is no profile 'nowhere'"),
        ({"x": {"base": "memd", "legs": {"lexical": float("nan")}}}, r"profiles\.x\.legs\.lexical"),
        ({"x": {"base": "memd", "legs": {"lexical": -1}}}, r"profiles\.x\.legs\.lexical"),
        ({"x": {"legs": {"lexical": 0}}}, "at least one leg"),
        ({"x": {"base": "memu", "steps": [{"signal": "context"}]}}, "needs lexical.model"),
        ({"x": {"base": "memd", "colour": "red"}}, r"profiles\.x\.colour"),
        ({"x": {"base": "memd", "steps": [{"signal": "magic"}]}}, r"profiles\.x\.steps\.0\.signal"),
        (
            {"x": {"base": "memu", "steps": [{"signal": "pin", "weight": float("nan")}]}},
            r"profiles\.x\.steps\.0\.weight",
        ),
        (
            {"x": {"base": "clawmem", "steps": [{"signal": "pin", "weight": -0.1}]}},
            r"profiles\.x\.steps\.0\.weight",
        ),
        ({"x": {"base": "covalence", "scale": float("inf")}}, r"profiles\.x\.scale"),
        ({"x": {"base": "memoturn", "legs": {"smell": 1}}}, r"profiles\.x\.legs\.smell"),
    ],
)
def test_a_mistake_in_a_profile_is_reported_with_its_key(own, said):
    with pytest.raises(ConfigError, match=said):
        resolve_profiles("memd", own)


def test_an_unknown_profile_is_the_callers_mistake_and_the_answer_names_what_there_is():
    with pytest.raises(BadRequest, match=r"there are .*memd, .*siftcoder"):
        resolve_profile("nosuch", {})


def test_tables_are_merged_and_lists_replaced():
    assert overlay_tables({"a": {"b": 1, "c": 2}, "l": [1]}, {"a": {"c": 3}, "l": [2]}) == {
        "a": {"b": 1, "c": 3},
        "l": [2],
    }


def test_the_latest_is_asked_for_with_other_weights():
    profile = resolve_profile("memd", {})
    assert adapt_to_recent(profile).steps != profile.steps
    assert adapt_to_recent(resolve_profile("siftcoder", {})) == resolve_profile("siftcoder", {})


def test_a_choice_in_the_settings_that_is_not_there_names_its_key():
    with pytest.raises(ConfigError, match=r"recall\.profile: there is no profile 'nosuch'"):
        resolve_profiles("nosuch", {})
    assert "mine" in resolve_profiles("mine", {"mine": {"base": "memu"}})


def test_the_latest_changes_clawmems_three_weights():
    usual, recent = (
        resolve_profile("clawmem", {}),
        adapt_to_recent(resolve_profile("clawmem", {})),
    )
    for profile, weights in ((usual, (0.50, 0.25, 0.25)), (recent, (0.10, 0.70, 0.20))):
        search = profile.scale * 2 / 61
        recency, confidence = (step.weight for step in profile.steps[:2])
        assert (search, recency, confidence) == pytest.approx(weights)
    assert usual.steps[2:] == recent.steps[2:]


def test_the_published_numbers():
    published = {name: resolve_profile(name, {}) for name in BUILT_IN}
    assert published["memoturn"].legs == {"topic": 2.0, "lexical": 1.0, "vector": 1.0}
    assert published["memoturn"].k == 8
    assert {published[name].rrf_k for name in ("siftcoder", "covalence", "memoturn")} == {60}
    assert published["covalence"].lexical.title_weight == 5.0
    assert published["clawmem"].diversity.jaccard == 0.6
    assert (published["siftcoder"].pool, published["siftcoder"].k) == (50, 5)
