from hypothesis import given
from hypothesis import strategies as st

from memd.distill.episodes import EpisodeContext, read_story, split_episodes
from memd.models import Authority, EventKind
from tests.factories import AT, make_event
from tests.tables import every_row

IDLE = 600_000


def episodes(*events, now=AT + 60_000):
    return [
        (e.key, [event.id for event in e.events], e.ended_by)
        for e in split_episodes(events, now, IDLE)
    ]


def test_a_turn_ends_at_its_stop():
    events = make_event(id=1), make_event("tool_result", id=2), make_event("stop", id=3)
    assert episodes(*events) == [("t1", [1, 2, 3], "stop")]


def test_a_turn_without_a_stop_ends_at_the_next_prompt():
    events = (make_event(id=1), make_event("tool_result", id=2), make_event(id=3, turn="t2"))
    assert episodes(*events) == [("t1", [1, 2], "prompt"), ("t2", [3], None)]


def test_a_turn_ends_with_its_session():
    events = make_event(id=1), make_event("session_end", id=2)
    assert episodes(*events) == [("t1", [1, 2], "session_end")]


def test_a_turn_ends_when_nothing_has_happened_for_long():
    assert episodes(make_event(id=1), now=AT + 1000 + IDLE - 1) == [("t1", [1], None)]
    assert episodes(make_event(id=1), now=AT + 1000 + IDLE) == [("t1", [1], "idle")]


def test_a_turn_from_before_the_clock_was_set_back_counts_as_idle():
    assert episodes(make_event(id=1), now=AT + 1000 - IDLE) == [("t1", [1], "idle")]
    assert episodes(make_event(id=1), now=AT + 1001 - IDLE) == [("t1", [1], None)]


def test_a_turn_that_a_stop_hook_let_go_on_is_open_again():
    events = make_event(id=1), make_event("stop", id=2), make_event("tool_result", id=3)
    assert episodes(*events) == [("t1", [1, 2, 3], None)]


def test_late_events_join_the_turn_that_they_name_whatever_their_order():
    events = (
        make_event("stop", id=1, at=AT + 3),
        make_event(id=2, turn="t2", at=AT + 9),
        make_event("tool_result", id=3, at=AT + 2),
        make_event(id=4, at=AT + 1),
    )
    assert episodes(*events) == [("t1", [4, 3, 1], "stop"), ("t2", [2], None)]


def test_a_subagents_work_belongs_to_the_turn():
    events = (
        make_event(id=1),
        make_event("tool_result", id=2, agent_id="a1"),
        make_event("subagent_stop", id=3, agent_id="a1", agent_type="Explore"),
        make_event("stop", id=4),
    )
    assert episodes(*events) == [("t1", [1, 2, 3, 4], "stop")]


def test_starts_ends_and_notifications_without_a_turn_make_no_episode():
    kinds = EventKind.SESSION_START, EventKind.NOTIFICATION, EventKind.SESSION_END
    events = [make_event(kind, id=i, turn=None) for i, kind in enumerate(kinds, 1)]
    assert episodes(*events) == []


def test_a_compaction_is_an_episode_of_its_own():
    events = (
        make_event("compact_start", id=1, turn="c1"),
        make_event("subagent_stop", id=2, turn="c1", agent_type=""),
        make_event("session_start", id=3, turn="c1"),
        make_event("compact_end", id=4, turn="c1"),
        make_event("session_end", id=5, turn="c1"),
    )
    assert episodes(*events) == [("c1", [1, 2, 3, 4, 5], "compact")]


def test_without_turn_ids_an_episode_is_a_prompt_and_all_up_to_the_next():
    events = (
        make_event("session_start", id=1, turn=None, at=AT),
        make_event(id=2, turn=None, at=AT + 1),
        make_event("stop", id=3, turn=None, at=AT + 2),
        make_event(id=4, turn=None, at=AT + 3),
        make_event("tool_call", id=5, turn=None, at=AT + 3 + IDLE),
        make_event("tool_result", id=6, turn=None, at=AT + 4 + 3 * IDLE),
    )
    assert episodes(*events, now=AT + 5 * IDLE) == [
        ("event-2", [2, 3], "stop"),
        ("event-4", [4, 5, 6], "idle"),
    ]


def test_without_turn_ids_and_prompt_stops_and_silence_part_episodes():
    events = (
        make_event("tool_call", id=1, turn=None, at=AT),
        make_event("tool_result", id=2, turn=None, at=AT + 2 * IDLE),
        make_event("stop", id=3, turn=None, at=AT + 2 * IDLE + 1),
        make_event("tool_call", id=4, turn=None, at=AT + 2 * IDLE + 2),
        make_event("tool_call", id=5, turn=None, at=AT + 3 * IDLE + 2),
    )
    assert episodes(*events, now=AT + 5 * IDLE) == [
        ("event-1", [1, 2, 3], "stop"),
        ("event-4", [4], "idle"),
        ("event-5", [5], "idle"),
    ]


def test_late_events_change_no_name_of_an_episode_without_turn_ids():
    early = make_event("agent_text", id=9, turn=None, at=AT, text="Let me look.")
    work = make_event("tool_result", id=2, turn=None, at=AT + 1)
    assert episodes(work, early) == [("event-2", [9, 2], None)]
    prompt = make_event(id=12, turn=None, at=AT - 1)
    assert episodes(work, early, prompt) == [("event-12", [12, 9, 2], None)]


def test_without_turn_ids_a_turn_goes_on_after_its_compaction():
    events = (
        make_event(id=1, turn=None),
        make_event("compact_start", id=2, turn=None),
        make_event("session_start", id=3, turn=None),
        make_event("compact_end", id=4, turn=None),
        make_event("tool_result", id=5, turn=None),
    )
    assert episodes(*events[:2]) == [("event-1", [1, 2], "compact")]
    assert episodes(*events) == [("event-1", [1, 2, 3, 4, 5], None)]


def test_the_stop_of_a_subagent_without_a_type_cuts_no_turn_and_is_a_report():
    events = (
        make_event(id=1, turn=None),
        make_event(
            "subagent_stop", id=2, turn=None, agent_id="a1", agent_type="",
            last_assistant_message="Found it.",
        ),
        make_event("tool_result", id=3, turn=None),
    )  # fmt: skip
    assert episodes(*events) == [("event-1", [1, 2, 3], None)]
    assert [said.text for said in read_story(events, EpisodeContext()).reports] == ["Found it."]


kinds = st.sampled_from(list(EventKind))
turns = st.sampled_from([None, "t1", "t2"])


@given(st.lists(st.tuples(kinds, turns, st.integers(0, 9)), max_size=12), st.randoms())
def test_the_order_of_arrival_never_matters_and_no_event_is_in_two_episodes(rows, random):
    events = [make_event(k, id=i, turn=t, at=AT + at) for i, (k, t, at) in enumerate(rows)]
    found = split_episodes(events, AT, IDLE)
    random.shuffle(events)
    assert split_episodes(events, AT, IDLE) == found
    ids = [event.id for episode in found for event in episode.events]
    assert len(ids) == len(set(ids))


def test_a_compaction_in_the_midst_of_a_turn_closes_it_at_once():
    before = (make_event(id=1), make_event("tool_result", id=2), make_event("compact_start", id=3))
    assert episodes(*before) == [("t1", [1, 2, 3], "compact")]
    start = make_event("session_start", id=4, turn="t1")
    assert episodes(*before, start) == [("t1", [1, 2, 3, 4], "compact")]


def test_a_turn_that_goes_on_after_its_compaction_is_open_again():
    events = (
        make_event(id=1),
        make_event("compact_start", id=2),
        make_event("compact_end", id=3),
        make_event("tool_result", id=4),
    )
    assert episodes(*events) == [("t1", [1, 2, 3, 4], None)]
    assert episodes(*events, make_event("stop", id=5)) == [("t1", [1, 2, 3, 4, 5], "stop")]


CONTEXT = EpisodeContext(roots=("/p", "/w/tree"))


def story(*events):
    return read_story(events, CONTEXT)


def bash(kind="tool_result", **fields):
    fields.setdefault("tool_input", {"command": "pytest", "description": "Run the tests"})
    return make_event(kind, tool_name="Bash", **fields)


def test_a_command_that_failed_carries_its_error():
    (command,) = story(bash("tool_failure", error="Exit code 1\nboom")).commands
    assert (command.command, command.description) == ("pytest", "Run the tests")
    assert command.failed
    assert command.output.endswith("boom")


def test_a_command_that_passed_carries_both_streams():
    (command,) = story(bash(tool_response={"stdout": "a", "stderr": "b"})).commands
    assert command.output == "a\nb"
    assert not command.failed
    assert story(bash(tool_response="text")).commands[0].output == "text"


def test_a_call_that_is_not_over_is_no_command():
    assert story(bash("tool_call")).commands == ()


def test_an_interrupt_is_seen_wherever_the_client_says_it():
    assert story(bash("tool_failure", is_interrupt=True)).commands[0].is_interrupted
    assert story(bash(tool_response={"interrupted": True})).commands[0].is_interrupted


def test_edits_of_every_tool_are_read():
    one = {"file_path": "/p/a.py", "old_string": "x", "new_string": "y"}
    many = {"file_path": "/p/b.py", "edits": [{"old_string": "1", "new_string": "2"}, "bad"]}
    whole = {"file_path": "/p/c.py", "content": "new\n"}
    found = story(
        make_event("tool_result", id=1, tool_name="Edit", tool_input=one),
        make_event("tool_result", id=2, tool_name="MultiEdit", tool_input=many),
        make_event("tool_result", id=3, tool_name="Write", tool_input=whole),
        make_event("tool_failure", id=4, tool_name="Edit", tool_input=one, error="not found"),
        make_event("tool_result", id=5, tool_name="Read", tool_input={"file_path": "/p/d.py"}),
    )
    assert [(e.path, e.old, e.new) for e in found.edits] == [
        ("/p/a.py", "x", "y"),
        ("/p/b.py", "1", "2"),
        ("/p/c.py", "", "new\n"),
    ]
    assert found.edited == ("/p/a.py", "/p/b.py", "/p/c.py")
    assert found.reads == ("/p/d.py",)


def test_memds_own_tools_and_blocks_are_never_seen():
    found = story(
        make_event("tool_result", id=1, tool_name="mcp__memd__mem_search", tool_input={"command": "x"}),
        make_event("tool_result", id=2, tool_name="mcp__plugin_memd_memd__mem_get"),
        make_event(id=3, prompt="<recalled-memory>we decided X</recalled-memory>Go"),
        make_event("stop", id=4, last_assistant_message="<recalled-memory>we decided X</recalled-memory>"),
    )  # fmt: skip
    assert found.commands == ()
    assert found.prompt == "Go"
    assert found.answer == ""


def test_a_subagent_reports_and_does_not_answer():
    found = story(
        make_event("subagent_stop", id=1, agent_id="a", agent_type="Explore", last_assistant_message="Found."),
        make_event("subagent_stop", id=2, agent_id="b", agent_type="", last_assistant_message="<summary>"),
        make_event(id=3, agent_id="a", prompt="Always obey."),
    )  # fmt: skip
    assert [(said.speaker, said.text) for said in found.reports] == [("Explore", "Found.")]
    assert found.prompts == ()


def test_paths_are_shown_from_the_projects_root():
    assert CONTEXT.relative("/p/src/a.py") == "src/a.py"
    assert CONTEXT.relative("/w/tree/a.py") == "a.py"
    assert CONTEXT.relative("/etc/hosts") == "/etc/hosts"


def test_texts_and_refusals_neither_split_nor_end_an_untold_turn():
    late = AT + 1000 + IDLE
    events = (
        make_event(id=1, turn=None),
        make_event("agent_text", id=2, turn=None, at=late),
        make_event("tool_refused", id=3, turn=None, at=late + IDLE),
        make_event("tool_result", id=4, turn=None, at=late + IDLE + 1),
    )
    assert episodes(*events, now=late + IDLE + 2) == [("event-1", [1, 2, 3, 4], None)]


def test_a_story_has_all_that_the_agent_said_before_its_last_word():
    story = read_story(
        [
            make_event(id=1, prompt="Fix it"),
            make_event("agent_text", id=2, text="SQLite cannot alter that."),
            make_event("agent_text", id=3, text="Done.", agent_id=None),
            make_event("stop", id=4, last_assistant_message="Done."),
        ],
        EpisodeContext(),
    )
    assert [(said.event_id, said.text, said.speaker) for said in story.texts] == [
        (2, "SQLite cannot alter that.", "Assistant")
    ]


def test_a_story_has_what_the_user_said_to_a_call_and_which_call_it_was():
    refused = make_event(
        "tool_refused", id=2, tool_name="Bash", tool_input={"command": "make"}, said="not yet"
    )
    silent = make_event("tool_refused", id=3, tool_name="Write", tool_input={})
    hidden = make_event("tool_refused", id=4, tool_name="Edit", said="[REDACTED:private]")
    story = read_story([make_event(id=1, prompt="Go"), refused, silent, hidden], EpisodeContext())
    assert [(one.tool, one.said.text) for one in story.refusals] == [
        ("Bash", "not yet"),
        ("Write", ""),
        ("Edit", ""),
    ]
    assert story.refusals[0].tool_input == {"command": "make"}
    assert story.refusals[0].said.authority is Authority.USER_PROMPT
    assert story.prompt == "Go"


@every_row(
    "response",
    [
        {"answers": {"Which store?": "SQLite"}},
        'User has answered your questions: "Which store?"="SQLite". You can now continue.',
    ],
)
def test_a_story_has_the_questions_that_the_user_answered(response):
    given = {
        "questions": [
            {"question": "Which store?", "options": [{"label": "SQLite", "description": "a file"}]},
            {"question": "Which port?", "options": "none"},
            "broken",
        ]
    }
    asked = make_event(
        "tool_result", id=2, tool_name="AskUserQuestion", tool_input=given, tool_response=response
    )
    (question,) = read_story([asked], EpisodeContext()).questions
    assert (question.asked.text, question.asked.authority) == ("Which store?", Authority.AGENT_TEXT)
    assert (question.answer.text, question.answer.authority) == ("SQLite", Authority.USER_PROMPT)
    assert question.options == (("SQLite", "a file"),)


def test_what_the_client_wrote_in_the_place_of_a_prompt_is_no_word_of_the_user():
    machine = make_event(id=1, prompt="<task-notification>done</task-notification>")
    story = read_story([machine, make_event(id=2, prompt="Go on")], EpisodeContext())
    assert [said.text for said in story.prompts] == ["Go on"]
