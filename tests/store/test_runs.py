from dataclasses import replace

from memd.store import runs
from memd.store.runs import Run


def test_a_run_that_changed_something_is_kept_with_its_counts(db):
    def work(tx):
        number = runs.begin(tx, 5)
        run = Run(number, 5, 9, 3, 2, 1, 0)
        runs.finish(tx, run)
        assert runs.get(tx, number) == run
        runs.mark_undone(tx, number, 6)
        assert runs.latest(tx, 9) == [replace(run, undone_at=6)]

    db.write_now(work)


def test_a_run_that_changed_nothing_leaves_no_row(db):
    def work(tx):
        number = runs.begin(tx, 5)
        runs.finish(tx, Run(number, 5, 9, 0, 0, 0, 0))
        assert runs.get(tx, number) is None
        assert runs.latest(tx, 9) == []

    db.write_now(work)


def test_the_latest_runs_come_first(db):
    def work(tx):
        for at in (1, 2, 3):
            number = runs.begin(tx, at)
            runs.finish(tx, Run(number, at, 1, 1, 1, 0, 0))
        assert [run.at for run in runs.latest(tx, 2)] == [3, 2]

    db.write_now(work)
