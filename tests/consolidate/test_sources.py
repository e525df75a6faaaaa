import dataclasses

import pytest

from memd.consolidate import sources
from memd.consolidate.forget import ForgetSelection, apply_plan, plan_selection
from memd.consolidate.remember import NewMemory, remember
from memd.consolidate.sources import Origin
from memd.models import EdgeType, Tier
from memd.store import summaries

HERE = Origin("/n/a.md", "Install", 3)
NOTE = NewMemory(
    "Run make", title="a.md › Install", project_key="/a", at=100, source="import:markdown",
    tier=Tier.FILE, origin=HERE,
)  # fmt: skip


@pytest.fixture
def say(vault, clock):
    def say(text="Run make", **change):
        clock.advance(s=1)
        memory = dataclasses.replace(NOTE, text=text, **change)
        return vault.db.write_now(lambda tx: remember(tx, memory, clock()))

    return say


@pytest.fixture
def withdraw(vault, clock):
    return lambda *staying, path="/n/a.md": vault.db.write_now(
        lambda tx: sources.expire_missing(tx, path, staying, clock())
    )


@pytest.fixture
def forget(vault, clock):
    def forget(number):
        def work(tx):
            apply_plan(tx, plan_selection(tx, ForgetSelection((number,))), clock())

        vault.db.write_now(work)

    return forget


def list_origins(vault, number):
    return [
        (edge.type.value, edge.to_id) for edge in vault.edges(number) if edge.to_kind == "origin"
    ]


def test_the_same_import_again_is_no_repetition_and_updates_the_line(vault, say):
    first = say()
    again = say(at=200, origin=dataclasses.replace(HERE, line=9))
    assert (again.id, again.outcome) == (first.id, "duplicate")
    assert vault.get(first.id).duplicates == 1
    assert [edge.rule for edge in vault.edges(first.id)] == ["imported, line 9"]


def test_a_changed_origin_replaces_its_memory(vault, say):
    old, new = say(), say("Run just")
    assert (new.outcome, new.superseded) == ("created", (old.id,))
    (one,) = vault.supersessions(old.id)
    assert (one.newer_id, one.rule) == (new.id, sources.READ_AGAIN_RULE)
    assert list_origins(vault, old.id) == [("references", "/n/a.md#Install")]
    assert list_origins(vault, new.id) == [("derives_from", "/n/a.md#Install")]


@pytest.mark.parametrize("at", [50, 100, 150])
def test_an_origin_that_goes_back_revives_its_memory_whatever_its_time(vault, say, at):
    old, new = say(), say("Run just")
    back = say(at=at)
    assert (back.id, back.outcome, back.superseded) == (old.id, "revived", (new.id,))
    assert vault.live() == [old.id]
    assert list_origins(vault, old.id) == [("derives_from", "/n/a.md#Install")]
    assert say("Run just").superseded == (old.id,)
    assert vault.live() == [new.id]


def test_another_title_or_other_tags_revise_the_memory(vault, say):
    first = say()
    result = say(title="b.md", tags=("ops",), files=("/x.py",))
    assert (result.id, result.outcome) == (first.id, "revised")
    assert (vault.get(first.id).title, vault.get(first.id).tags) == ("b.md", ("ops",))
    assert say(title="b.md", tags=("ops",), files=("/x.py",)).outcome == "duplicate"


def test_what_is_pinned_stays_and_is_contradicted(vault, say):
    old = say()
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, old.id, 1))
    new = say("Run just")
    assert new.superseded == ()
    assert any(edge.type is EdgeType.CONTRADICTS for edge in vault.edges(new.id))


def test_a_memory_stays_in_its_project_unless_the_caller_chose_another(vault, say):
    first = say()
    assert say(project_key="/b").id == first.id
    moved = say(project_key="/b", origin=dataclasses.replace(HERE, moves=True))
    assert (moved.outcome, moved.superseded) == ("created", (first.id,))
    assert vault.live() == []
    again = say(project_key="/b", origin=dataclasses.replace(HERE, moves=True))
    assert (again.id, again.outcome) == (moved.id, "duplicate")


def test_a_memory_missing_from_its_file_expires_and_returns_with_it(vault, say, withdraw):
    stays, goes = say(), say("Old words", origin=Origin("/n/a.md", "Old"))
    elsewhere = say("Other words", origin=Origin("/n/a.md.bak", "Old"))
    assert withdraw(stays.id) == (goes.id,)
    assert vault.get(goes.id).expires_at is not None
    assert [vault.get(one.id).expires_at for one in (stays, elsewhere)] == [None, None]
    assert withdraw(stays.id) == ()
    back = say("Old words", origin=Origin("/n/a.md", "Old"), at=1)
    assert (back.id, back.outcome) == (goes.id, "duplicate")
    assert vault.get(goes.id).expires_at is None


def test_pinned_shared_and_hidden_memories_do_not_expire(vault, say, withdraw):
    pinned = say()
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, pinned.id, 1))
    shared = say("Shared", origin=Origin("/n/a.md", "S"))
    say("Shared", origin=Origin("/n/b.md", "S"))
    hidden = say("Hidden", origin=Origin("/n/a.md", "H"))
    vault.supersede(shared.id, hidden.id)
    assert withdraw() == ()


def test_a_forgotten_memory_does_not_come_back_from_its_origin_in_other_words(say, forget):
    number = say().id
    forget(number)
    assert (say().id, say().outcome) == (0, "forgotten")
    assert say("Run make, and more").outcome == "forgotten"
    assert say(origin=Origin("/n/moved.md")).outcome == "forgotten"
    assert say("Something else", origin=Origin("/n/moved.md")).outcome == "created"


def test_forgetting_an_earlier_text_of_an_origin_does_not_block_it(say, forget):
    old = say().id
    say("Run just")
    forget(old)
    assert say("Run a third thing").outcome == "created"
    assert say().outcome == "forgotten"
