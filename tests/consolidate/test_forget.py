import pytest

from memd.consolidate.forget import ForgetSelection, apply_plan, plan_selection
from memd.errors import BadRequest, UnknownId
from memd.models import EdgeType, EventKind, NewEvent, SessionRef
from memd.store import events, fulltext, ledger, links, projects, summaries


def plan_ids(tx, ids):
    return plan_selection(tx, ForgetSelection(ids))


@pytest.fixture
def forget(vault, clock):
    def forget(*ids):
        def work(tx):
            plan = plan_ids(tx, ids)
            apply_plan(tx, plan, clock())
            return plan.report(is_dry_run=False)

        return vault.db.write_now(work)

    return forget


async def test_with_a_memory_go_its_text_vectors_edges_and_events(vault, forget):
    event = vault.event("zzyzx")
    number = vault.put("zzyzx road")
    vault.derives(number, event, "zzyzx")
    vault.link(("event", str(event)), EdgeType.EDITS, ("file", "/a.py"))
    await vault.indexer.settle()
    uid = vault.get(number).uid
    result = forget(number)
    assert ([s.id for s in result.summaries], result.events, result.also_in) == ([number], 1, ())
    assert vault.get(number) is None
    assert vault.db.read_now(lambda tx: events.events_by_ids(tx, [event])) == {}
    assert vault.db.read_now(fulltext.count_passages) == 0
    assert vault.db.read_now(lambda tx: fulltext.match_passages(tx, "zzyzx", 9)) == []
    assert vault.db.read_now(lambda tx: links.edges_at(tx, "file", "/a.py")) == []
    assert vault.db.read_now(lambda tx: ledger.is_forgotten(tx, uid))


def test_an_event_that_another_memory_needs_stays_and_is_named(vault, forget):
    shared, own = vault.event("shared"), vault.event("own")
    one, other = vault.put("one"), vault.put("other")
    for number, event in ((one, shared), (one, own), (other, shared)):
        vault.derives(number, event)
    result = forget(one)
    assert (result.events, result.also_in) == (1, (other,))
    assert list(vault.db.read_now(lambda tx: events.events_by_ids(tx, [shared, own]))) == [shared]
    assert forget(other).events == 1


def test_memories_that_share_an_event_take_it_with_them_together(vault, forget):
    shared = vault.event("shared")
    one, other = vault.put("one"), vault.put("other")
    for number in (one, other):
        vault.derives(number, shared)
    result = forget(one, other)
    assert (result.events, result.also_in) == (1, ())


def test_the_same_event_does_not_come_back(vault, forget):
    ref = SessionRef("claude-code", "s")
    new = NewEvent(ref, "key", EventKind.PROMPT, "p", 1, "import", {"prompt": "x"})
    session = vault.session()
    event, _ = vault.db.write_now(lambda tx: events.append_event(tx, new, session))
    number = vault.put("x")
    vault.derives(number, event)
    forget(number)
    assert vault.db.read_now(lambda tx: ledger.is_forgotten(tx, "key"))


def test_a_session_loses_the_title_that_a_forgotten_prompt_gave_it(vault, forget):
    session = vault.session()
    vault.db.write_now(lambda tx: projects.extend_session(tx, session, 1, "zzyzx"))
    number, event = vault.put("x"), vault.event("zzyzx", session)
    vault.derives(number, event)
    forget(number)
    assert vault.db.read_now(lambda tx: projects.session(tx, session)).title is None


def test_forgetting_the_newer_one_revives_the_older(vault, forget):
    old, new = vault.put("old"), vault.put("new")
    vault.supersede(new, old)
    assert forget(new).revived == (old,)
    assert vault.live() == [old]


def test_forgetting_the_middle_of_a_chain_does_not_revive_its_beginning(vault, forget):
    first, second, third = (vault.put(text) for text in "abc")
    vault.supersede(second, first, rule="topic-key")
    vault.supersede(third, second, rule="topic-key")
    assert forget(second).revived == ()
    (one,) = vault.supersessions(first)
    assert (one.newer_id, one.rule, one.undone_at) == (third, "topic-key", None)
    assert forget(third).revived == (first,)


def test_forgetting_a_whole_chain_revives_nothing(vault, forget):
    first, second, third = (vault.put(text) for text in "abc")
    vault.supersede(second, first)
    vault.supersede(third, second)
    assert forget(first, second, third).revived == ()
    assert vault.live() == []


def test_unknown_ids_are_reported_and_an_error_only_if_all_are_unknown(vault, forget):
    number = vault.put("x")
    assert forget(number, 999, number, 10**30, -4).unknown == (999, 10**30, -4)
    with pytest.raises(UnknownId, match="#999"):
        forget(999)
    with pytest.raises(BadRequest, match="ids"):
        forget()


def test_a_plan_changes_nothing(vault):
    number = vault.put("x")
    plan = vault.db.read_now(lambda tx: plan_ids(tx, (number,)))
    assert plan.report(is_dry_run=True).is_dry_run
    assert vault.db.read_now(summaries.summary_counts)["summaries"] == 1
