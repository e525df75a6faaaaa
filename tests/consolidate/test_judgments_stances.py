from memd.consolidate.judgments import HIDING_RELATIONS, SEPARATING_RELATIONS, explain_refusal
from memd.models import Stance
from tests.factories import make_summary

ONE, OTHER = make_summary(id=1), make_summary(id=2)
GLOBAL = 9


def test_every_relation_either_hides_or_keeps_apart():
    assert set(Stance) == HIDING_RELATIONS | SEPARATING_RELATIONS
    assert not HIDING_RELATIONS & SEPARATING_RELATIONS


def test_two_of_one_project_may_be_anything_to_each_other():
    assert not any(explain_refusal(ONE, OTHER, relation, GLOBAL) for relation in Stance)


def test_a_pinned_memory_is_not_hidden_and_the_remedy_is_named():
    pinned = make_summary(id=2, pinned_at=1)
    for relation in HIDING_RELATIONS:
        said = explain_refusal(ONE, pinned, relation, GLOBAL)
        assert "unpin it first" in said
        assert "memd pin --off 2" in said
    assert not any(
        explain_refusal(ONE, pinned, relation, GLOBAL) for relation in SEPARATING_RELATIONS
    )
    assert not explain_refusal(pinned, ONE, Stance.SUPERSEDES, GLOBAL)


def test_only_a_memory_that_holds_everywhere_hides_one_of_another_project():
    far, everywhere = make_summary(id=3, project_id=2), make_summary(id=4, project_id=GLOBAL)
    assert "different projects" in explain_refusal(ONE, far, Stance.SUPERSEDES, GLOBAL)
    assert "different projects" in explain_refusal(ONE, everywhere, Stance.DUPLICATE, GLOBAL)
    assert not explain_refusal(everywhere, ONE, Stance.DUPLICATE, GLOBAL)
    assert not explain_refusal(ONE, far, Stance.CONTRADICTS, None)


def test_a_memory_is_not_judged_against_itself():
    assert all("twice" in explain_refusal(ONE, ONE, relation, GLOBAL) for relation in Stance)
