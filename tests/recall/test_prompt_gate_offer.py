import pytest

from memd.recall import prompt_gate
from memd.recall.prompt_gate import gate_hits
from memd.recall.types import Hit, RelevanceGate
from tests.factories import make_summary

ASKED = prompt_gate.read_prompt("where do the sessions live")
GATE = RelevanceGate(floor=0.4, ratio=0.5)


def hit(number, score, *, coverage=1.0, title="Sessions live in Redis", **more):
    ranks = {k: more.pop(k) for k in ("topic_rank",) if k in more}
    summary = make_summary(title, id=number, **more)
    return Hit(summary, "p", None, "", score, (), (), coverage=coverage, **ranks)


def shown(hits, seen=None, asked=ASKED):
    return [o.hit.summary.id for o in gate_hits(hits, asked, seen or {}, GATE, 3) if o.is_shown]


def whys(hits, seen=None, asked=ASKED):
    return {o.hit.summary.id: o.why for o in gate_hits(hits, asked, seen or {}, GATE, 3)}


def test_nothing_is_offered_where_nothing_was_found():
    assert gate_hits([], ASKED, {}, GATE, 3) == []


def test_what_covers_too_little_is_not_offered_nor_anything_behind_it():
    hits = [hit(1, 9.0, coverage=0.39), hit(2, 5.0, coverage=0.2)]
    assert shown(hits) == []
    assert whys(hits)[1] == "below the floor: 0.39 of the prompt is covered, 0.40 is required"
    assert shown([hit(1, 9.0, coverage=0.4), hit(2, 5.0, coverage=0.2)]) == [1, 2]


def test_what_is_far_below_the_best_is_not_offered():
    hits = [hit(1, 2.0), hit(2, 1.0), hit(3, 0.9)]
    assert shown(hits) == [1, 2]
    assert whys(hits)[3].startswith("too far below the best")


def test_no_more_are_offered_than_asked_for():
    hits = [hit(n, 2.0) for n in range(1, 6)]
    assert shown(hits) == [1, 2, 3]
    assert whys(hits)[4] == "there were enough better ones"


def test_what_the_agent_has_already_is_passed_over_and_still_measures_the_others():
    hits = [hit(1, 2.0), hit(2, 1.5), hit(3, 0.9)]
    assert shown(hits, {1: "shown to this session already"}) == [2]
    assert (
        whys(hits, {1: "shown to this session already"})[1] == "shown to this session already"
    )


def test_one_word_of_the_prompt_is_not_enough():
    hits = [hit(1, 2.0, title="Redis sessions"), hit(2, 2.0)]
    assert shown(hits) == [2]
    assert whys(hits)[1] == "it has 1 of the prompt's words, 2 are required"


def test_one_name_is_enough():
    asked = prompt_gate.read_prompt("please look at decode_token first")
    assert shown([hit(1, 2.0, title="decode_token raises ValueError")], asked=asked) == [1]


def test_what_was_named_by_its_topic_is_offered():
    found = hit(1, 2.0, coverage=0.0, title="make all", topic_rank=1)
    assert shown([found]) == [1]
    assert whys([found])[1] == "the prompt names its topic"


def test_of_one_turn_one_memory_is_offered():
    of_turn = {"session_id": 4, "episode": "t1"}
    hits = [
        hit(1, 2.0, **of_turn),
        hit(2, 1.9, **of_turn),
        hit(3, 1.8, session_id=5, episode="t1"),
    ]
    assert shown(hits) == [1, 3]
    assert whys(hits)[2] == "from the same turn as #1"
    assert shown([hit(1, 2.0), hit(2, 1.9)]) == [1, 2]


@pytest.mark.parametrize("score", [2.0, -2.0])
def test_the_best_is_never_too_far_below_itself(score):
    assert shown([hit(1, score)]) == [1]
