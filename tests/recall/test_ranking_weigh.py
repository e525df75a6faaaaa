import pytest

from memd.models import Kind
from memd.recall.ranking import split_words_as_typed
from memd.store import summaries, usage
from memd.store.types import SummaryUse
from tests.indexed_vault import NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(
        db,
        {
            "mine": {
                "legs": {"lexical": 1.0},
                "steps": [
                    {"signal": signal, "op": "*"}
                    for signal in ("significance", "reinforcement", "entity", "coactivation")
                ],
            }
        },
    )


async def parts(library, text):
    answer = await library.ask(text, profile="mine")
    return {hit.summary.id: {p.name: p.value for p in hit.parts} for hit in answer.hits}


def test_the_words_of_a_question_are_taken_as_typed_for_the_title():
    assert split_words_as_typed('What is "roadmap 1.4"?') == ("what", "is", "roadmap", "1.4")
    assert split_words_as_typed(" ?! ") == ()


async def test_significance_is_told_by_the_kind_and_core_by_the_pin(library):
    decision = library.put("kettle", kind=Kind.DECISION)
    change = library.put("kettle", kind=Kind.CHANGE)
    pinned = library.put("kettle", kind=Kind.CHANGE)
    library.db.write_now(lambda tx: summaries.pin_summary(tx, pinned, 1))
    found = await parts(library, "kettle")
    # 8, 3 and 10 of 10
    assert {n: p["significance"] for n, p in found.items()} == {
        decision: pytest.approx(0.8), change: pytest.approx(0.3), pinned: pytest.approx(1.0),
    }  # fmt: skip


async def test_saying_it_again_and_recalling_it_reinforce_alike(library):
    said, recalled = library.put("kettle"), library.put("kettle")
    for _ in range(6):
        library.db.write_now(lambda tx: summaries.strengthen_summary(tx, said, 1))
    library.db.write_now(lambda tx: usage.record_uses(tx, {recalled: SummaryUse(6, NOW)}, {}))
    await library.indexer.load()  # what is said again changes no text, and waits for a load
    found = await parts(library, "kettle")
    # log2(1 + 7) = 3, both
    assert [found[n]["reinforcement"] for n in (said, recalled)] == pytest.approx([3.0, 3.0])


async def test_an_entity_must_be_named_whole(library):
    one = library.put("kettle of Anna", "Anna Lindqvist approved it")
    assert (await parts(library, "kettle anna"))[one]["entity"] == 1.0
    assert (await parts(library, "kettle anna lindqvist"))[one]["entity"] == pytest.approx(1.3)


async def test_only_what_is_outside_the_best_quarter_is_lifted(library):
    ids = [library.put("kettle", days_ago=day) for day in range(8)]
    # the best two of eight, by the legs; the third was returned once with each, the fourth with the fifth
    pairs = {(ids[0], ids[2]): 1, (ids[1], ids[2]): 1, (ids[3], ids[4]): 9, (ids[0], ids[1]): 9}
    library.db.write_now(lambda tx: usage.record_uses(tx, {}, pairs))
    answer = await library.ask("kettle", profile="mine", k=8)
    found = {
        h.summary.id: p.value for h in answer.hits for p in h.parts if p.name == "coactivation"
    }
    # 1 + min(2/10, 0.15) for the third
    assert [found[n] for n in ids] == pytest.approx([1, 1, 1.15, 1, 1, 1, 1, 1])
