from memd.models import Draft, Kind
from memd.store import links, projects, summaries


def put(tx, uid, project="/a"):
    owner = summaries.SummaryOwner(
        projects.ensure_project(tx, project, project, "", 1), None, "test"
    )
    return summaries.put_summary(tx, uid, Draft("s", Kind.NOTE, uid, "", 1, "r", ()), owner, 1)[0]


def test_live_memories_of_one_text_and_project_are_paired(db):
    def work(tx):
        a, b, c = (put(tx, uid) for uid in "abc")
        elsewhere = put(tx, "d", "/b")
        summaries.put_text_hashes(tx, {a: 7, b: 7, c: 8, elsewhere: 7, 999: 7})
        project = summaries.get_summary(tx, a).project_id
        assert summaries.find_equal_texts(
            tx, [(a, project, 7), (b, project, 7), (c, project, 8)], 9
        ) == {(a, b)}
        links.supersede(tx, newer_id=b, older_id=a, rule="r", cosine=None, guard="same", at=1)
        assert summaries.find_equal_texts(tx, [(b, project, 7)], 9) == set()

    db.write_now(work)


def test_a_memory_is_paired_with_at_most_limit_others_the_newest_first(db):
    def work(tx):
        ids = [put(tx, uid) for uid in "abcd"]
        summaries.put_text_hashes(tx, dict.fromkeys(ids, 7))
        project = summaries.get_summary(tx, ids[0]).project_id
        assert summaries.find_equal_texts(tx, [(ids[0], project, 7)], 2) == {
            (ids[0], ids[3]),
            (ids[0], ids[2]),
        }

    db.write_now(work)


def test_consolidated_summaries_without_a_hash_are_consolidated_again(db):
    def work(tx):
        ids = [put(tx, uid) for uid in "abcd"]
        summaries.mark_consolidated(tx, list(summaries.summaries_by_ids(tx, ids[:3]).values()))
        summaries.put_text_hashes(tx, {ids[1]: 7})
        unhashed = summaries.list_unhashed_summaries(tx)
        assert unhashed == [ids[0], ids[2], ids[3]]
        summaries.reopen_summaries(tx, unhashed)
        assert [one.id for one in summaries.to_consolidate(tx, 9)] == unhashed

    db.write_now(work)
