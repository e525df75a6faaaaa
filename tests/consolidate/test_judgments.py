import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.belief.notes import Note, Proof
from memd.consolidate import judgments, runs
from memd.consolidate.judgments import SEPARATING_RELATIONS, NewJudgment, explain_refusal
from memd.consolidate.remember import NewMemory, remember
from memd.errors import BadRequest, UnknownId
from memd.models import HIDING_RELATIONS, Authority, EdgeType, Kind, Stance
from memd.store import judgments as store_judgments
from memd.store import links, summaries
from tests.factories import make_summary


@pytest.fixture
def judge(vault, clock):
    def judge(one, relation, other, reason="because", who="user"):
        clock.advance(s=1)
        ruling = NewJudgment(one, other, Stance(relation), reason, who)
        return vault.db.write_now(lambda tx: judgments.apply_judgment(tx, ruling, clock()))

    return judge


@pytest.fixture
def undo(vault, clock):
    def undo(one, other):
        clock.advance(s=1)
        return vault.db.write_now(
            lambda tx: judgments.undo_judgment(tx, one, other, Authority.USER_HAND, clock())
        )

    return undo


@pytest.fixture
def pair(vault):
    return vault.put("Deploys happen on Friday"), vault.put("Deploys happen on Monday")


def trust(vault, *ids):
    return [vault.get(number).confidence for number in ids]


def against(vault, *ids):
    return vault.db.read_now(lambda tx: store_judgments.visible_contradictions(tx, ids))


def test_what_is_superseded_is_hidden_and_the_reason_stays(vault, judge, pair):
    old, new = pair
    done = judge(new, "supersedes", old, "the team moved it")
    assert (done.outcome, done.relation, done.hidden) == ("judged", Stance.SUPERSEDES, (old,))
    assert vault.live() == [new]
    (said,) = vault.db.read_now(lambda tx: store_judgments.judgments_of(tx, old))
    assert (said.reason, said.who, said.newer_id) == ("the team moved it", "user", new)


def test_a_duplicate_is_hidden_and_strengthens_the_other(vault, judge, pair):
    old, new = pair
    before = trust(vault, new)
    judge(new, "duplicate", old)
    assert vault.live() == [new]
    assert vault.get(new).duplicates == 2
    assert trust(vault, new) > before


def test_an_older_memory_may_supersede_a_newer_one(vault, judge, pair):
    old, new = pair
    judge(old, "supersedes", new)
    assert vault.live() == [old]


SAID = "We decided to send the readings over LoRaWAN because it reaches the valley."


@pytest.fixture
def twins(vault):
    """What the user typed, an agent's note of the same words, another note of other words, and what came later."""
    note = Note(
        "The readings are sent over LoRaWAN.", said=SAID, proved="2026-11-25T09:15Z on desk"
    )
    other = Note("The valley has no mobile network.", said="The valley has no mobile network.")
    return (
        vault.put(
            f"User: “{SAID}”",
            title="Send the readings over LoRaWAN because it reaches the valley",
            authority=Authority.USER_PROMPT,
        ),
        vault.put(note.format(), title=note.text, kind=Kind.DECISION),
        vault.put(other.format(), title=other.text),
        vault.put("The readings are sent over NB-IoT.", authority=Authority.USER_HAND),
    )


def test_what_says_the_same_falls_with_what_is_replaced_and_comes_back_with_one_undo(
    vault, judge, twins, clock
):
    typed, note, other, new = twins
    judge(new, "supersedes", typed)
    assert vault.live() == [other, new]
    clock.advance(s=1)
    vault.db.write_now(lambda tx: runs.undo_change(tx, None, clock()))
    assert vault.live() == [typed, note, other, new]


def test_an_agents_judgment_takes_no_twin_along_that_is_the_users_word(vault, judge, twins):
    typed, note, other, new = twins
    judge(new, "supersedes", note, who="agent")
    assert vault.live() == [typed, other, new]


WHOLE = ("Ab sofort lagern wir den Käse immer im Keller.", "Cheese is always stored in the cellar")


@pytest.mark.parametrize(
    ("said", "text", "is_twin"),
    [
        (*WHOLE, True),
        ("Od dziś mleko z gór wozi wyłącznie Jurek.", "Only Jurek drives the mountain milk", True),
        ("Sera pilnuje Hania, a mleka Jurek.", "Hania looks after the cheese", False),
        ("Ab sofort backt Anna das Brot und Tom die Torten.", "Anna bakes the bread", False),
    ],
)
def test_a_sentence_falls_with_the_note_that_quotes_and_tells_it_whole_in_another_language(
    vault, judge, said, text, is_twin
):
    prompt = vault.event(said)
    typed = vault.put(f"User: “{said}”", title=said, authority=Authority.USER_PROMPT)
    note = vault.put(Note(text, said=said, proved="2026-11-25T09:15Z on desk").format(), title=text)
    new = vault.put("Nothing of it holds any more.", authority=Authority.USER_HAND)
    for number in (typed, note):
        vault.derives(number, prompt)
    judge(new, "supersedes", note)
    assert vault.live() == ([new] if is_twin else [typed, new])


def test_what_a_note_says_it_replaces_takes_its_sentence_along(vault, clock):
    said, text = WHOLE
    prompt = vault.event(said)
    typed = vault.put(f"User: “{said}”", title=said, authority=Authority.USER_TOLD)
    note = vault.put(Note(text, said=said, proved="2026-11-25T09:15Z on desk").format(), title=text)
    for number in (typed, note):
        vault.derives(number, prompt)
    later = NewMemory(
        "Cheese is stored in the barn.",
        project_key="/a",
        authority=Authority.USER_TOLD,
        proof=Proof(prompt, clock(), "The cheese moves to the barn."),
        replaces=(note,),
    )
    told = vault.db.write_now(lambda tx: remember(tx, later, clock()))
    assert told.superseded == (note, typed)


def test_a_contradiction_shows_both_marks_both_and_lowers_both(vault, judge, pair):
    old, new = pair
    before = trust(vault, old, new)
    judge(new, "contradicts", old)
    assert vault.live() == [old, new]
    assert against(vault, old, new) == {old: (new,), new: (old,)}
    assert all(a < b for a, b in zip(trust(vault, old, new), before, strict=True))
    (edge,) = vault.edges(old)
    assert (edge.type, edge.rule) == (EdgeType.CONTRADICTS, judgments.JUDGED_RULE)


@pytest.mark.parametrize("relation", list(Stance))
def test_undoing_restores_what_was(vault, judge, undo, pair, relation):
    old, new = pair
    before = [vault.get(n) for n in pair]
    judge(new, relation, old)
    done = undo(old, new)
    assert (done.outcome, done.relation, done.was) == ("undone", None, relation.value)
    for number, was in zip(pair, before, strict=True):
        now = vault.get(number)
        assert (now.superseded_by, now.duplicates) == (was.superseded_by, was.duplicates)
        assert now.confidence == pytest.approx(was.confidence, abs=1e-5)
    assert vault.edges(old) == []


def test_what_a_rule_had_hidden_shows_when_the_two_hold_beside_each_other(vault, judge, undo, pair):
    old, new = pair
    vault.supersede(new, old)
    done = judge(new, "compatible", old)
    assert (done.shown, done.was) == ((old,), "near-duplicate")
    assert vault.live() == [old, new]
    assert undo(new, old).hidden == (old,)
    assert vault.get(old).superseded_by == new


def test_the_supersession_of_a_rule_can_be_undone_without_a_judgment(vault, undo, pair):
    old, new = pair
    vault.supersede(new, old)
    done = undo(old, new)
    assert (done.outcome, done.was, done.shown) == ("undone", "near-duplicate", (old,))
    with pytest.raises(BadRequest, match="nothing to undo"):
        undo(old, new)


def test_a_new_judgment_replaces_the_last(vault, judge, pair):
    old, new = pair
    judge(new, "duplicate", old)
    done = judge(old, "supersedes", new)
    assert (done.was, done.hidden, done.shown) == ("duplicate", (new,), (old,))
    assert vault.get(new).duplicates == 1
    assert vault.live() == [old]


def test_the_same_judgment_again_changes_nothing(vault, judge, pair):
    old, new = pair
    judge(new, "contradicts", old)
    before = [vault.get(n) for n in pair]
    assert judge(old, "contradicts", new).outcome == "unchanged"
    assert [vault.get(n) for n in pair] == before
    judge(new, "supersedes", old)
    assert judge(new, "supersedes", old).outcome == "unchanged"


def test_a_judgment_replaces_what_hides_a_memory(vault, judge, undo, pair):
    old, new = pair
    third = vault.put("Deploys happen at noon")
    vault.supersede(third, old)
    judge(new, "supersedes", old)
    assert vault.get(old).superseded_by == new
    undo(new, old)
    assert vault.get(old).superseded_by == third


def test_a_chain_never_becomes_a_circle(vault, judge, undo):
    first, middle, last = (vault.put(text) for text in ("one value", "another", "a third"))
    judge(middle, "supersedes", first)
    judge(last, "supersedes", middle)
    done = judge(first, "supersedes", last)
    assert done.shown == (first,)
    assert vault.live() == [first]
    for number in (first, middle, last):
        assert vault.db.read_now(lambda tx, n=number: links.final_superseder(tx, n)) == first
    undo(first, last)
    assert vault.live() == [last]


def test_a_pinned_memory_is_not_hidden_by_a_judgment(vault, judge, pair):
    old, new = pair
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, old, 1))
    with pytest.raises(BadRequest, match="unpin it first"):
        judge(new, "supersedes", old)
    assert vault.live() == [old, new]
    assert judge(new, "contradicts", old).outcome == "judged"


def test_what_was_pinned_meanwhile_is_not_hidden_by_an_undo(vault, judge, undo, pair):
    old, new = pair
    vault.supersede(new, old)
    judge(new, "compatible", old)
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, old, 1))
    assert undo(new, old).hidden == ()


def test_a_memory_that_is_not_there_cannot_be_judged(judge, undo, pair):
    with pytest.raises(UnknownId, match="#999"):
        judge(pair[0], "supersedes", 999)
    with pytest.raises(UnknownId, match="#999"):
        undo(999, pair[0])


def test_a_contradiction_that_a_rule_found_is_settled_by_a_judgment_and_comes_back_with_its_undo(
    vault, judge, undo, pair
):
    old, new = pair
    vault.link(("summary", str(new)), EdgeType.CONTRADICTS, ("summary", str(old)))
    doubted = trust(vault, old, new)
    judge(new, "compatible", old)
    assert against(vault, old, new) == {}
    judge(new, "contradicts", old)
    assert trust(vault, old, new) == pytest.approx(doubted, abs=1e-5)
    undo(new, old)
    assert against(vault, old) == {old: (new,)}
    assert trust(vault, old, new) == pytest.approx(doubted, abs=1e-5)


def test_memories_of_two_projects_can_contradict_but_not_hide_each_other(vault, judge):
    here = vault.put("The port is 80", kind=Kind.FACT)
    there = vault.put("The port is 81", project_id=vault.project("/b"))
    with pytest.raises(BadRequest, match="different projects"):
        judge(here, "supersedes", there)
    assert judge(here, "contradicts", there).outcome == "judged"


def test_a_dropped_judgment_holds_no_longer(vault, judge, clock, pair):
    old, new = pair
    judge(new, "supersedes", old)
    vault.db.write_now(lambda tx: judgments.drop_judgment(tx, old, new, clock()))
    assert vault.db.read_now(lambda tx: store_judgments.stance_between(tx, old, new)) is None
    vault.db.write_now(lambda tx: judgments.drop_judgment(tx, old, new, clock()))


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([*map(str, Stance), "undo"])),
    max_size=14,
)


@given(STEPS)
def test_judgments_in_any_order_make_no_cycle_and_can_all_be_undone(vault, judge, undo, steps):
    ids = [vault.put(f"value {place}") for place in range(4)]
    began = trust(vault, *ids)
    for one, other, what in steps:
        if one != other and what != "undo":
            judge(ids[one], what, ids[other])
        elif one != other:
            with contextlib.suppress(BadRequest):
                undo(ids[one], ids[other])
        tops = {n: vault.db.read_now(lambda tx, n=n: links.final_superseder(tx, n)) for n in ids}
        assert all(vault.get(top).superseded_by is None for top in tops.values())
    for one, other in itertools.combinations(ids, 2):
        if vault.db.read_now(lambda tx, p=(one, other): store_judgments.stance_between(tx, *p)):
            undo(one, other)
    assert set(ids) <= set(vault.live())
    assert [vault.get(number).duplicates for number in ids] == [1] * 4
    assert trust(vault, *ids) == pytest.approx(began, abs=1e-4)


def test_what_a_user_undid_stays_undone_after_a_judgment_at_the_same_time(vault, clock, pair):
    old, new = pair

    def at_once(tx):
        now = clock()
        links.supersede(
            tx, newer_id=new, older_id=old, rule="near-duplicate", cosine=1.0, guard="", at=now
        )
        judgments.undo_judgment(tx, new, old, Authority.USER_HAND, now)
        judgments.apply_judgment(tx, NewJudgment(new, old, Stance.COMPATIBLE, "", "user"), now)
        judgments.undo_judgment(tx, new, old, Authority.USER_HAND, now)

    vault.db.write_now(at_once)
    assert vault.live() == [old, new]


ONE, OTHER = make_summary(id=1), make_summary(id=2)
GLOBAL = 9


def test_every_relation_either_hides_or_keeps_apart():
    assert set(Stance) == HIDING_RELATIONS | SEPARATING_RELATIONS
    assert not HIDING_RELATIONS & SEPARATING_RELATIONS


def test_two_of_one_project_may_be_anything_to_each_other():
    assert not any(explain_refusal(ONE, OTHER, relation, GLOBAL) for relation in Stance)


def test_a_pinned_memory_is_not_hidden_and_the_remedy_is_named():
    pinned = make_summary(id=2, pinned_at=1, pinned_by=Authority.USER_HAND)
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
