import pytest

from memd.belief import supersede
from memd.belief.compare import Agreement, Comparison, compare
from memd.belief.decide import Decision
from memd.consolidate import runs
from memd.consolidate.judgments import undo_judgment
from memd.consolidate.runs import list_changes, parse_run, undo_change
from memd.errors import BadRequest
from memd.models import Authority, EdgeType, Stance
from memd.store import judgments, links
from tests.tables import every_row


def write(vault, *decisions):
    """Write these in one round; its number."""

    def work(tx):
        run = links.begin_run(tx, vault.clock())
        written = [runs.write_decision(tx, one, run, vault.clock()) for one in decisions]
        links.finish_run(tx, links.Run(run, vault.clock(), 9, 9, sum(written), 0, 0))
        return run, written

    return vault.db.write_now(work)


def undo(vault, number):
    return vault.db.write_now(lambda tx: runs.undo_run(tx, number, vault.clock()))


def part(vault, one, other):
    """Undo what links two memories."""
    vault.db.write_now(lambda tx: undo_judgment(tx, one, other, Authority.USER_HAND, vault.clock()))


def same(newer, older):
    comparison = Comparison(Agreement.SAME)
    return Decision(newer, older, EdgeType.SUPERSEDES, 0.97, comparison)


def opposed(newer, older):
    comparison = compare("wait 30 s", "wait 60 s")
    return Decision(newer, older, EdgeType.CONTRADICTS, 0.96, comparison)


@every_row("text", ["", "x", "r", "12", "-3"])
def test_what_is_no_run_is_refused_with_an_example(text):
    with pytest.raises(BadRequest, match=r"a run \(r7\)"):
        parse_run(text)


def test_a_hidden_memory_shows_again_and_is_not_hidden_by_the_same_one_again(vault):
    a, b = vault.put("a"), vault.put("b")
    run, _ = write(vault, same(b, a))
    assert undo(vault, run).shown == ((b, a),)
    assert vault.live() == [a, b]
    assert write(vault, same(b, a))[1] == [False]
    assert vault.live() == [a, b]


def test_an_undone_contradiction_restores_confidence_and_counts_as_judged(vault):
    a, b = vault.put("a"), vault.put("b")
    trust = vault.get(a).confidence
    run, _ = write(vault, opposed(b, a))
    assert vault.get(a).confidence < trust
    assert undo(vault, run).compatible == ((b, a),)
    assert vault.get(a).confidence == pytest.approx(trust)
    assert vault.edges(a) == []
    assert vault.db.read_now(lambda tx: judgments.stance_between(tx, a, b)) is Stance.COMPATIBLE
    assert write(vault, opposed(b, a))[1] == [False]
    with pytest.raises(BadRequest, match="nothing of run"):
        undo(vault, run)


def test_a_run_is_undone_except_for_what_was_undone_before(vault):
    a, b, c, d = (vault.put(text) for text in "abcd")
    run, _ = write(vault, same(b, a), same(d, c))
    part(vault, a, b)
    assert undo(vault, run).shown == ((d, c),)
    assert vault.live() == [a, b, c, d]


def test_a_run_is_one_of_the_last_changes_until_nothing_of_it_holds(vault):
    a, b, c, d = (vault.put(text) for text in "abcd")
    first, _ = write(vault, opposed(d, c))
    second, _ = write(vault, same(b, a))

    def listed():
        return [one.name for one in vault.db.read_now(lambda tx: list_changes(tx, 10))]

    assert listed() == [f"r{second}", f"r{first}"]
    undone = vault.db.write_now(lambda tx: undo_change(tx, None, vault.clock()))
    assert (undone.name, vault.live()) == (f"r{second}", [a, b, c, d])
    undo(vault, first)
    assert listed() == []
    with pytest.raises(BadRequest, match="nothing was changed here yet"):
        vault.db.write_now(lambda tx: undo_change(tx, None, vault.clock()))


def test_a_run_that_never_was_is_refused(vault):
    with pytest.raises(BadRequest, match="no run r9"):
        undo(vault, 9)


def test_the_last_change_of_a_project_is_taken_back_and_that_of_another_stays(vault):
    own = vault.project("/here")
    here = vault.put("a", project_id=own)
    there = vault.put("b", project_id=vault.project("/there"))
    for number in (here, there):
        one = vault.get(number)
        vault.db.write_now(
            lambda tx, one=one: supersede.pin(tx, one, Authority.USER_HAND, vault.clock())
        )
    undone = vault.db.write_now(lambda tx: undo_change(tx, None, vault.clock(), (own,)))
    assert undone.name == f"p{here}"
    assert vault.get(there).pinned_at is not None
    with pytest.raises(BadRequest, match="nothing was changed here yet"):
        vault.db.write_now(lambda tx: undo_change(tx, None, vault.clock(), (own,)))


def test_a_run_is_a_change_of_the_projects_in_which_it_hid_something(vault):
    own, other = vault.project("/here"), vault.project("/there")
    a, b = (vault.put(text, project_id=own) for text in "ab")
    run, _ = write(vault, same(b, a))
    listed = [
        [one.name for one in vault.db.read_now(lambda tx, n=n: list_changes(tx, 10, (n,)))]
        for n in (own, other)
    ]
    assert listed == [[f"r{run}"], []]
