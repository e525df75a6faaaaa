from dataclasses import replace

from memd.store import links
from memd.store.links import Run


def test_a_run_that_changed_something_is_stored_with_its_counts(db):
    def work(tx):
        number = links.begin_run(tx, 5)
        run = Run(number, 5, 9, 3, 2, 1, 0)
        links.finish_run(tx, run)
        assert links.get_run(tx, number) == run
        links.mark_run_undone(tx, number, 6)
        assert links.latest_runs(tx, 9) == [replace(run, undone_at=6)]

    db.write_now(work)


def test_a_run_that_changed_nothing_leaves_no_row(db):
    def work(tx):
        number = links.begin_run(tx, 5)
        links.finish_run(tx, Run(number, 5, 9, 0, 0, 0, 0))
        assert links.get_run(tx, number) is None
        assert links.latest_runs(tx, 9) == []

    db.write_now(work)


def test_the_latest_runs_come_first(db):
    def work(tx):
        for at in (1, 2, 3):
            number = links.begin_run(tx, at)
            links.finish_run(tx, Run(number, at, 1, 1, 1, 0, 0))
        assert [run.at for run in links.latest_runs(tx, 2)] == [3, 2]

    db.write_now(work)
