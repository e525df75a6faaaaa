from memd.recall import provenance
from memd.recall.types import UsageHistory
from memd.store import projects, summaries, usage
from memd.store.usage import NewInjection
from tests.factories import make_draft, make_new_event


def test_the_last_few_times_are_told_and_all_are_counted(db):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        session = projects.ensure_session(tx, make_new_event().session, project, 1)
        owner = summaries.SummaryOwner(project, session, "c")
        number, _ = summaries.put_summary(tx, "u", make_draft(), owner, 1)
        shown = [NewInjection(session, number, "prompt", at, "it fits") for at in range(30)]
        usage.record_injections(tx, shown)
        return number, project

    number, project = db.write_now(write)
    told = db.read_now(lambda tx: provenance.read_usage(tx, number, (project,)))
    assert (told.shown, told.sessions, told.latest[0].at) == (30, 1, 29)
    assert len(told.latest) == provenance.LATEST_MAX
    assert db.read_now(lambda tx: provenance.read_usage(tx, 999, None)) == UsageHistory()
