import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.caches import clear_caches
from memd.distill import turn
from memd.distill.episodes import Episode, EpisodeContext, read_story, split_episodes
from memd.distill.proof import command_output
from memd.distill.proof.chains import find_chains
from memd.distill.turn import distill_episode
from memd.distill.work import read_work
from memd.models import EventKind, Kind
from tests.factories import AT, make_event
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/turn")

CONTEXT = EpisodeContext(session_title="Add a parser", roots=("/p",))
EDIT = make_event(
    "tool_result", id=5, tool_name="Edit",
    tool_input={"file_path": "/p/a.py", "old_string": "x", "new_string": "y"},
)  # fmt: skip


def ran(command, number=6, kind="tool_result", **fields):
    return make_event(kind, id=number, tool_name="Bash", tool_input={"command": command}, **fields)


def draft(prompt, answer="", *events, context=CONTEXT, heard=""):
    found = [make_event(id=1, prompt=prompt), *events]
    if answer:
        found.append(make_event("stop", id=90, last_assistant_message=answer))
    episode = Episode("t1", tuple(found), is_over=True, heard=heard)
    work = read_work(episode, read_story(found, context), context)
    return turn.draft_work(work, context, find_chains(work.whole))


def test_a_turn_tells_what_was_asked_answered_changed_and_run():
    failed = ran("pytest", 6, "tool_failure", error="Exit code 1\nKeyError: 'a'")
    found = draft(
        "Please make it quick.", "It is quick now.", EDIT, failed, ran("pytest", 7), ran("ls", 8)
    )
    assert found.title.endswith(": a.py")
    assert found.kind is Kind.CHANGE
    assert found.body == ("Asked: Please make it quick.\nAnswered: It is quick now.\nFiles: a.py")
    assert found.files == ("a.py",)
    assert [source.event_id for source in found.sources] == [1, 90, 5]


def test_what_runs_printed_is_not_read_while_no_check_has_failed():
    clear_caches()  # an import is mostly such runs, and their outputs are most of its text
    looks = [ran(f"cat {n}.log", n, tool_response={"stdout": f"{n} passed"}) for n in range(6, 9)]
    draft("What do the logs say?", "That all passed.", *looks)
    assert not any(
        reader.cache_info().misses
        for reader in (command_output.shows_pass, command_output.ran_nothing)
    )


def test_a_turn_without_an_edit_is_a_discovery():
    assert draft("Why does it recurse?", "The grammar nests.").kind is Kind.DISCOVERY


def test_a_fix_outside_of_the_files_is_a_fix_if_the_check_passes():
    failed = ran("pytest", 6, "tool_failure", error="Exit code 1\nKeyError: 'a'")
    said = "Why does it fail?", "Fixed: the cache was stale."
    assert draft(*said, failed).kind is Kind.DISCOVERY
    assert draft(*said, failed, ran("rm -r cache", 7), ran("pytest", 8)).kind is Kind.FIX


@pytest.mark.parametrize("command", TABLES["a_turn_whose_commands_left_something_is_a_change"])
def test_a_turn_whose_commands_left_something_is_a_change(command):
    assert draft("And now?", "The orders are sorted.", ran(command)).kind is Kind.CHANGE
    refused = ran(command, 6, "tool_failure", error="Exit code 1\nnot allowed")
    assert (
        draft("Are the orders sorted?", "They are sorted by date.", refused).kind is Kind.DISCOVERY
    )


@pytest.mark.parametrize("command", TABLES["a_turn_that_only_looked_and_tested_is_a_discovery"])
def test_a_turn_that_only_looked_and_tested_is_a_discovery(command):
    assert (
        draft("Are the orders sorted?", "They are sorted by date.", ran(command)).kind
        is Kind.DISCOVERY
    )


@pytest.mark.parametrize(("answer", "left"), TABLES["a_body_says_what_is_left_to_do"])
def test_a_body_says_what_is_left_to_do(answer, left):
    body = draft("Sort the orders", answer, EDIT).body
    assert [line for line in body.split("\n") if line.startswith("Open: ")] == (
        [f"Open: {left}."] if left else []
    )


@every_row(("given", "subject"), TABLES["the_subject_of_a_commit_is_whole_whatever_quotes_it_has"])
def test_the_subject_of_a_commit_is_whole_whatever_quotes_it_has(given, subject):
    committed = ran(f"git mv a.py b.py && git commit {given}", 6)
    body = draft("Retry uploads", "They are retried.", EDIT, committed).body
    assert f"Committed: {subject}" in body.split("\n")


def test_a_body_says_which_check_failed_last_and_what_was_committed():
    failed = ran("pytest", 7, "tool_failure", error="Exit code 1\nKeyError: 'a'")
    committed = ran("git mv a.py b.py && git commit -m 'Sort the orders by date'", 6)
    body = draft("Sort the orders", "They are sorted.", EDIT, committed, failed).body
    assert "Committed: Sort the orders by date" in body
    assert "Files: a.py, b.py" in body
    assert "Open: `pytest` failed when it was run last: KeyError: 'a'" in body
    passed = draft("Sort the orders", "They are sorted.", EDIT, failed, ran("pytest", 8)).body
    assert "Open:" not in passed


def test_a_change_that_failed_is_not_told_as_done():
    given = {"file_path": "/p/a.py", "old_string": "x", "new_string": "y"}
    failed = make_event("tool_failure", id=5, tool_name="Edit", tool_input=given, error="File has not been read yet.")  # fmt: skip
    line = "pytest -q && git commit -qam 'Raise the limit to 50'"
    refused = ran(line, 6, "tool_failure", error="Exit code 1\n3 passed in 0.1s\nOn branch main\nnothing to commit")  # fmt: skip
    assert (
        draft("Raise the limit to 50", "The limit is 50 now, and committed.", failed, refused)
        is None
    )
    told = draft("Raise the limit to 50", "The limit is 50 now.", EDIT, refused)
    assert "Committed:" not in told.body
    empty = ran(
        f"{line} | tail -1", 6, tool_response={"stdout": "nothing to commit, working tree clean"}
    )
    assert (
        "Committed:" not in draft("Raise the limit to 50", "The limit is 50 now.", EDIT, empty).body
    )
    done = ran(line, 7, tool_response={"stdout": "3 passed in 0.1s"})
    told = draft("Raise the limit to 50", "The limit is 50 now.", failed, EDIT, refused, done)
    assert "Committed: Raise the limit to 50" in told.body
    found = draft(
        "Raise the limit to 50",
        "It cannot be raised here. " + "The vendor caps it at 30 per key. " * 9,
        failed,
    )
    assert found.kind is Kind.DISCOVERY


def test_a_body_names_the_commands_whose_work_no_file_and_no_commit_shows():
    steps = (
        ran("npm install left-pad && git add -A", 6), ran("git push -u origin orders", 7), ran("rm old.py", 8),
        ran("gh pr create --title 'Sort the orders'", 9), ran("sed -i s/a/b/ a.py", 10), ran("pytest", 11),
    )  # fmt: skip
    body = draft("Sort the orders", "They are sorted.", EDIT, *steps).body
    assert [line for line in body.split("\n") if line.startswith("Ran: ")] == [
        "Ran: `npm install left-pad && git add -A` → ok",
        "Ran: `gh pr create --title 'Sort the orders'` → ok",
    ]


def test_a_check_that_passes_later_in_some_form_is_not_told_as_failed():
    failed = ran("npm run lint 2>&1 | head -20", 6, "tool_failure", error="Exit code 1\n2 errors")
    asked = ran("gh pr checks 12", 8, "tool_failure", error="Exit code 1\ntest\tfail\t55s")
    told = "Sort the orders", "They are sorted.", EDIT, failed
    assert "→ failed" in draft(*told, EDIT, asked).body
    assert "→ failed" not in draft(*told, ran("npm run lint -- --quiet", 7), asked).body


def test_a_prompt_that_the_client_tells_twice_and_its_directives_are_told_once_or_not():
    whole = make_event(id=2, prompt="# Files mentioned:\n\nshot.png\n\nSort the orders")
    body = draft("Sort the orders", 'They are sorted.\n\n::git-push{cwd="/p"}', whole, EDIT).body
    assert body == "Asked: Sort the orders\nAnswered: They are sorted.\nFiles: a.py"


def test_a_few_words_are_told_with_the_sentence_that_they_answer_and_no_mark_of_the_client():
    heard = 'Shall I sort them?\n\n::git-push{cwd="/p" branch="b"}\n</plan>'
    body = draft("yes", "They are sorted.", EDIT, heard=heard).body
    assert "That is: Shall I sort them?" in body


@every_row(
    ("prompt", "heard", "is_answer"),
    TABLES["a_few_words_explain_themselves_by_the_sentence_before_them_only_where_they_answer_it"],
)
def test_a_few_words_explain_themselves_by_the_sentence_before_them_only_where_they_answer_it(
    prompt, heard, is_answer
):
    body = draft(prompt, "They are sorted.", EDIT, heard=heard).body
    assert (f"That is: {heard}".rstrip(".") in body) is is_answer


def test_one_version_that_is_raised_in_several_files_is_told_once():
    raised = [
        make_event("tool_result", id=n, tool_name="Edit", tool_input={
            "file_path": f"/p/{name}.json", "old_string": '"version": "0.1.0"', "new_string": '"version": "0.2.0"'})
        for n, name in ((5, "package"), (6, "plugin"))
    ]  # fmt: skip
    assert draft("Bump it", "It is bumped.", *raised).body.count("Set: version 0.1.0 → 0.2.0") == 1


def test_a_turn_that_only_wrote_a_plan_is_named_by_the_plan_and_changed_nothing():
    plan = make_event(
        "tool_result", id=5, tool_name="Write",
        tool_input={"file_path": "/home/a/.claude/plans/brave-fox.md", "content": "# Plan: Page the orders\n\nSlow."},
    )  # fmt: skip
    found = draft("The orders are slow, what can we do?", "Let me write the plan.", plan)
    assert (found.kind, found.title) == (Kind.DISCOVERY, "Planned: Page the orders")
    found = draft("The orders are slow, what can we do?", "Let me write the plan.", plan, EDIT)
    assert found.kind is Kind.CHANGE
    assert "Planned" not in found.title


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("ok", "Fine."),
        ("/clear", "Cleared everything for you, and here is a long story about it. " * 5),
        ("thanks!", "You are welcome."),
        (
            "Wonderful, thank you very much",
            "You're welcome! I am glad that the invoices are right.",
        ),
        ("[REDACTED:private]", "[REDACTED:private]#2"),
    ],
)
def test_small_talk_commands_and_what_was_redacted_are_no_turn(prompt, answer):
    assert draft(prompt, answer) is None


@pytest.mark.parametrize(
    ("prompt", "answer", "printed"),
    [
        ("did the login code arrive?", "Your new code is **469320**.", "DEV CODE for ann: 469320"),
        ("ok which branch are we on there?", "On `feat/pages`.", "feat/pages"),
        ("und wie viele sind es jetzt?", "Es sind 412 Zeilen.", "412 Zeilen"),
    ],
)
def test_a_turn_that_only_reads_out_what_a_look_printed_leaves_nothing(prompt, answer, printed):
    look = ran("tail -3 api.log", 6, tool_response={"stdout": printed, "stderr": ""})
    assert draft(prompt, answer, look) is None
    why = f"{answer} The mails are sent through a queue, which a worker empties every ten seconds."
    assert draft(prompt, why, look) is not None
    assert draft(prompt, answer, look, EDIT) is not None


HELM = "1. [MH] Show this menu\n2. [PR] Plan the route\n3. [CR] Check the rigging\n"
ABOARD = f"Ahoy Ann, Helm is at your service.\n\n{HELM}\nWhat shall it be?"
READ = make_event("tool_result", id=6, tool_name="Read", tool_input={"file_path": "/p/helm.md"},
                  tool_response={"file": {"content": f"<menu>{HELM}</menu>"}})  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "look"),
    [
        ("Become Helm and load your whole file.", ran("cat helm.md", tool_response={"stdout": HELM})),
        ("Devenez Helm et chargez tout votre fichier.", READ),
        (f"You must fully embody Helm.\n<menu>\n{HELM}</menu>", ran("ls", tool_response={"stdout": ""})),
    ],
    ids=["printed", "read", "in the prompt"],
)  # fmt: skip
def test_a_menu_that_is_read_out_for_the_user_to_choose_from_leaves_nothing(prompt, look):
    assert draft(prompt, ABOARD, look) is None
    assert draft(prompt, ABOARD, look, EDIT) is not None


def test_a_list_that_the_agent_made_itself_is_no_menu():
    found = (
        "Three things are wrong:\n\n1. The sail is torn\n2. The keel is cracked\n3. The log is lost"
    )
    look = ran("cat hull.txt", tool_response={"stdout": "sail: torn\nkeel: cracked"})
    assert draft("Inspect the hull of the boat.", found, look) is not None


def test_a_turn_that_broke_off_is_told_if_it_had_begun_to_look_and_said_what_it_does():
    asked = "The logo is missing in the market, please mend it."
    begun = make_event("agent_text", id=7, text="The manifest names no icon, so I add one.")
    look = ran("cat package.json", 6)
    assert "Said last: The manifest names no icon" in draft(asked, "", look, begun).body
    assert draft(asked, "", look) is None
    assert draft(asked, "", begun) is None


def test_a_turn_that_goes_on_after_small_talk_is_named_by_its_answer():
    title = draft("go on", "Renamed the parser. All tests pass.", EDIT).title
    assert title.startswith("Renamed the parser")
    assert draft("go on", "", EDIT).title == "Changed a.py"


def test_long_texts_are_bounded_and_leave_room_for_the_rest():
    small = EpisodeContext(body_characters=400)
    found = draft("word " * 500, "word " * 500, EDIT, context=small)
    assert len(found.body) <= 400
    assert "Files: /p/a.py" in found.body


def test_a_subagents_report_is_part_of_the_turn():
    report = make_event(
        "subagent_stop",
        id=7,
        agent_type="Explore",
        agent_id="a",
        last_assistant_message="It is in b.py.",
    )
    assert (
        "Explore reported: It is in b.py."
        in draft("Find the parser.", "Found the parser in b.py.", report).body
    )


def sessions(summary):
    return turn.draft_compactions(
        read_story([make_event("compact_end", compact_summary=summary)], CONTEXT), CONTEXT
    )


def test_a_compactions_summary_is_kept_without_its_analysis():
    text = "The parser was written and tested. The printer is next."
    (found,) = sessions(f"<analysis>hm</analysis>\n<summary>\n{text}\n</summary>")
    assert (found.kind, found.slot, found.body) == (Kind.SESSION, "session", text)
    assert found.title == "Session so far: Add a parser"


def test_a_trivial_compaction_is_not_kept():
    assert (
        sessions("<analysis>a long story of what was done</analysis><summary>FAKE</summary>") == []
    )


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = (
    "prompt", "last_assistant_message", "tool_input", "tool_response", "error", "compact_summary", "agent_type",
    "is_interrupt", "tool_name",
)  # fmt: skip
TELLING = st.sampled_from(
    [
        "we decided to use a over b because c", "from now on always run make check", "pytest", "Bash", "Edit",
        "Traceback (most recent call last):\nKeyError: 'a'", "decision: x y", "we changed our mind", "<summary>",
    ]
)  # fmt: skip
values = (
    TELLING
    | json
    | st.fixed_dictionaries({"command": TELLING, "file_path": TELLING, "edits": json})
)
payloads = st.dictionaries(st.sampled_from(FIELDS), values, max_size=5)


@given(st.lists(st.tuples(st.sampled_from(list(EventKind)), payloads), min_size=1, max_size=8))
def test_no_payload_however_strange_stops_the_distiller(rows):
    events = []
    for number, (kind, payload) in enumerate(rows, 1):
        given_tool = payload.get("tool_name")
        event = make_event(
            kind, id=number, **{k: v for k, v in payload.items() if k != "tool_name"}
        )
        if isinstance(given_tool, str):
            event = make_event(kind, id=number, **{**event.payload, "tool_name": given_tool})
        events.append(event)
    context = EpisodeContext(body_characters=300)
    drafts = distill_episode(Episode("t1", tuple(events), is_over=True), context)
    assert len({draft.slot for draft in drafts}) == len(drafts)
    slots = {draft.slot for draft in drafts}
    for draft in drafts:
        assert draft.title.strip()
        assert "\n" not in draft.title
        assert len(draft.body) <= 300
        assert draft.sources
        assert all(len(source.quote) <= 200 for source in draft.sources)
        assert 0 <= draft.quality <= 1
        assert {edge.to_id for edge in draft.edges if edge.to_kind == "slot"} <= slots
    assert distill_episode(Episode("t1", tuple(events), is_over=True), context) == drafts


def test_an_episode_of_nothing_yields_nothing():
    (episode,) = split_episodes([make_event(prompt="ok")], AT, 1)
    assert distill_episode(episode, EpisodeContext()) == []


def test_nothing_is_remembered_of_a_private_turn():
    events = [
        make_event("prompt", id=1, prompt="[REDACTED:private]"),
        make_event("stop", id=2, last_assistant_message="From now on always run make check."),
    ]
    (episode,) = split_episodes(events, AT * 2, 1)
    assert distill_episode(episode, EpisodeContext()) == []
