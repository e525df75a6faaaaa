import pytest

from memd.consolidate.forget import ForgetSelection, apply_plan, plan_selection
from memd.consolidate.wanted_words import parse_wanted_words
from memd.errors import BadRequest, UnknownId
from memd.models import TITLE_EVENT, EdgeType, EventKind, NewEvent, SessionRef
from memd.store import events, fulltext, ledger, links, projects
from memd.store.erasure import ErasureBounds


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


def test_a_session_loses_the_title_that_a_forgotten_prompt_gave_it(vault, forget):
    session = vault.session()
    vault.db.write_now(lambda tx: projects.extend_session(tx, session, 1, "zzyzx"))
    number, event = vault.put("x"), vault.event("zzyzx", session)
    vault.derives(number, event)
    forget(number)
    assert vault.db.read_now(lambda tx: projects.session(tx, session)).title is None


def test_a_session_loses_the_title_that_its_client_gave_it_with_the_event(vault, forget):
    ref, told = SessionRef("claude-code", "s"), {"title": "zzyzx", "title_kind": "ai"}
    new = NewEvent(ref, "key", EventKind.OTHER, TITLE_EVENT, 1, "import", told)
    session = vault.session()
    event, _ = vault.db.write_now(lambda tx: events.append_event(tx, new, session))
    assert vault.db.write_now(lambda tx: projects.apply_client_title(tx, session, 80))
    number = vault.put("x")
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


# ── By words ───────────────────────────────────────────────────────────────────────────────────


def plan_words(vault, query, **bounds):
    selection = ForgetSelection(words=parse_wanted_words(query), bounds=ErasureBounds(**bounds))
    return vault.db.read_now(lambda tx: plan_selection(tx, selection))


def test_an_event_that_says_the_words_goes_though_a_memory_that_does_not_needs_it(vault, clock):
    said, silent = vault.event("zzyzx road"), vault.event("other")
    number = vault.put("a summary of both")
    vault.derives(number, said, "the zzyzx road")
    vault.derives(number, silent, "other")
    plan = plan_words(vault, "zzyzx")
    assert (plan.ids, plan.event_ids, plan.uncited) == ((), (said,), (number,))
    vault.db.write_now(lambda tx: apply_plan(tx, plan, clock()))
    assert vault.get(number) is not None
    assert vault.db.read_now(lambda tx: links.sources_of(tx, number)) == [(silent, "other")]


@pytest.mark.parametrize(
    ("payload", "is_taken"),
    [
        ({"tool_input": {"command": "open art"}}, True),
        ({"tool_response": [{"text": "art"}]}, True),
        ({"tool_input": {"the art": 1}}, True),
        ({"tool_response": {"src/art.py": {"lines": 3}}}, True),
        ({"tool_input": {"art": "x"}}, False),
        ({"tool_name": "art"}, False),
        ({"permission_mode": "art", "model": "art"}, False),
        ({"tool_response": "start the party"}, False),
        ({"cwd": "/a/art/deep"}, True),
    ],
)
def test_what_was_said_counts_and_how_fields_are_called_does_not(vault, payload, is_taken):
    event = vault.event("hello", **payload)
    assert plan_words(vault, "art").event_ids == ((event,) if is_taken else ())


def test_a_number_counts_if_it_is_no_size(vault):
    event = vault.event("hello", tool_response={"account": 90017, "lines": 17})
    assert plan_words(vault, "90017").event_ids == (event,)
    assert plan_words(vault, "17").event_ids == ()


def test_words_are_looked_for_within_the_bounds(vault, clock):
    here, there = vault.session("here"), vault.session("there", vault.project("/b"))
    early = vault.event("zzyzx", here)
    clock.advance(s=60)
    late, other = vault.event("zzyzx", here), vault.event("zzyzx", there)
    vault.put("zzyzx", project_id=vault.project("/b"))
    assert plan_words(vault, "zzyzx").event_ids == (early, late, other)
    assert plan_words(vault, "zzyzx", project_id=vault.project_id).event_ids == (early, late)
    assert plan_words(vault, "zzyzx", session_id=there).event_ids == (other,)
    assert plan_words(vault, "zzyzx", since=clock()).event_ids == (late, other)
    assert plan_words(vault, "zzyzx", project_id=vault.project_id).ids == ()


def test_imported_files_of_other_projects_stay(vault):
    files = (
        "/a/zzyzx.md", "/b/zzyzx.md", "/h/.claude/projects/-a/zzyzx.jsonl", "/h/.claude/projects/-ab/zzyzx.jsonl"
    )  # fmt: skip
    for path in files:
        vault.db.write_now(lambda tx, path=path: ledger.mark_imported(tx, path, 1, 1, 1))
    found = plan_words(vault, "zzyzx", project_id=vault.project_id).imported_files
    assert set(found) == {files[0], files[2]}
    assert set(plan_words(vault, "zzyzx").imported_files) == set(files)
    assert plan_words(vault, "zzyzx", since=1).imported_files == ()


def test_a_link_to_a_file_goes_with_its_name_and_a_quote_with_its_words(vault, clock):
    number, event = vault.put("a memory"), vault.event("an event")
    vault.link(("summary", str(number)), EdgeType.EDITS, ("file", "/x/zzyzx.py"))
    vault.link(("file", "/a/zzyzx.py"), EdgeType.IMPORTS, ("file", "/a/other.py"))
    vault.link(("file", "/a/restart.py"), EdgeType.IMPORTS, ("file", "/a/other.py"))
    vault.derives(number, event, "it was zzyzx")
    plan = plan_words(vault, "zzyzx", project_id=vault.project_id)
    assert {name: len(ids) for name, ids in plan.rows.items()} == {"links": 2, "quotes": 1}
    assert plan.ids == plan.event_ids == ()
    vault.db.write_now(lambda tx: apply_plan(tx, plan, clock()))
    assert vault.db.read_now(lambda tx: links.sources_of(tx, number)) == [(event, "")]
    (left,) = vault.db.read_now(lambda tx: links.edges_at(tx, "file", "/a/other.py"))
    assert left.from_id == "/a/restart.py"
