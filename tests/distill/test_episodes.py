from hypothesis import given
from hypothesis import strategies as st

from memd.distill.episodes import EpisodeContext, read_story, split_episodes
from memd.models import Authority, EventKind
from tests.factories import AT, make_event
from tests.tables import every_row

IDLE = 600_000


def episodes(*events, now=AT + 60_000):
    return [
        (e.key, [event.id for event in e.events], e.is_over)
        for e in split_episodes(events, now, IDLE)
    ]


def told(steps):
    """Events with the numbers 1, 2, …: `prompt stop@t2 tool_result@-` are of turn t1, of t2, and of none."""
    found = []
    for number, step in enumerate(steps.split(), 1):
        kind, _, name = step.partition("@")
        found.append(make_event(kind, id=number, turn=None if name == "-" else name or "t1"))
    return found


@every_row(
    ("rule", "steps", "expected"),
    [
        ("it ends at its stop", "prompt tool_result stop", [("t1", [1, 2, 3], True)]),
        ("or at the next prompt", "prompt tool_result prompt@t2", [("t1", [1, 2], True), ("t2", [3], False)]),
        ("or with its session", "prompt session_end", [("t1", [1, 2], True)]),
        ("a stop hook may let it go on", "prompt stop tool_result", [("t1", [1, 2, 3], False)]),
        ("without a turn these make none", "session_start@- notification@- session_end@-", []),
        ("a compaction is one of its own", "compact_start@c1 session_start@c1 compact_end@c1 session_end@c1",
         [("c1", [1, 2, 3, 4], True)]),
        ("a compaction closes a turn at once", "prompt tool_result compact_start", [("t1", [1, 2, 3], True)]),
        ("though the client says that a session starts", "prompt compact_start session_start", [("t1", [1, 2, 3], True)]),
        ("it is open if it goes on", "prompt compact_start compact_end tool_result", [("t1", [1, 2, 3, 4], False)]),
        ("and ends at its stop", "prompt compact_start compact_end tool_result stop", [("t1", [1, 2, 3, 4, 5], True)]),
        ("so it does without the client's id", "prompt@- compact_start@-", [("event-1", [1, 2], True)]),
        ("and goes on", "prompt@- compact_start@- session_start@- compact_end@- tool_result@-", [("event-1", [1, 2, 3, 4, 5], False)]),
    ],
)  # fmt: skip
def test_a_turn_is_an_episode(rule, steps, expected):
    assert episodes(*told(steps)) == expected, rule


def test_a_turn_ends_when_nothing_has_happened_for_long():
    assert episodes(make_event(id=1), now=AT + 1000 + IDLE - 1) == [("t1", [1], False)]
    assert episodes(make_event(id=1), now=AT + 1000 + IDLE) == [("t1", [1], True)]


def test_a_turn_from_before_the_clock_was_set_back_counts_as_idle():
    assert episodes(make_event(id=1), now=AT + 1000 - IDLE) == [("t1", [1], True)]
    assert episodes(make_event(id=1), now=AT + 1001 - IDLE) == [("t1", [1], False)]


def test_late_events_join_the_turn_that_they_name_whatever_their_order():
    events = (
        make_event("stop", id=1, at=AT + 3),
        make_event(id=2, turn="t2", at=AT + 9),
        make_event("tool_result", id=3, at=AT + 2),
        make_event(id=4, at=AT + 1),
    )
    assert episodes(*events) == [("t1", [4, 3, 1], True), ("t2", [2], False)]


def test_a_subagents_work_belongs_to_the_turn_and_that_of_a_compaction_to_the_compaction():
    ran = make_event("tool_result", id=2, agent_id="a1")
    stopped = make_event("subagent_stop", id=3, agent_id="a1", agent_type="Explore")
    events = make_event(id=1), ran, stopped, make_event("stop", id=4)
    assert episodes(*events) == [("t1", [1, 2, 3, 4], True)]
    begins, ends = (
        make_event(f"compact_{n}", id=i, turn="c1") for i, n in ((1, "start"), (4, "end"))
    )
    sums_up = make_event("subagent_stop", id=2, turn="c1", agent_type="")
    assert episodes(begins, sums_up, ends) == [("c1", [1, 2, 4], True)]


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
        ("event-2", [2, 3], True),
        ("event-4", [4, 5, 6], True),
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
        ("event-1", [1, 2, 3], True),
        ("event-4", [4], True),
        ("event-5", [5], True),
    ]


def test_late_events_change_no_name_of_an_episode_without_turn_ids():
    early = make_event("agent_text", id=9, turn=None, at=AT, text="Let me look.")
    work = make_event("tool_result", id=2, turn=None, at=AT + 1)
    assert episodes(work, early) == [("event-2", [9, 2], False)]
    prompt = make_event(id=12, turn=None, at=AT - 1)
    assert episodes(work, early, prompt) == [("event-12", [12, 9, 2], False)]


def test_the_stop_of_a_subagent_without_a_type_cuts_no_turn_and_is_a_report():
    events = (
        make_event(id=1, turn=None),
        make_event(
            "subagent_stop", id=2, turn=None, agent_id="a1", agent_type="",
            last_assistant_message="Found it.",
        ),
        make_event("tool_result", id=3, turn=None),
    )  # fmt: skip
    assert episodes(*events) == [("event-1", [1, 2, 3], False)]
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


CONTEXT = EpisodeContext(roots=("/p", "/w/tree"))


def story(*events):
    return read_story(events, CONTEXT)


def bash(kind="tool_result", **fields):
    fields.setdefault("tool_input", {"command": "pytest", "description": "Run the tests"})
    return make_event(kind, tool_name="Bash", **fields)


def test_a_command_tells_its_output_and_how_it_ended():
    (command,) = story(bash("tool_failure", error="Exit code 1\nboom")).commands
    assert (command.command, command.description) == ("pytest", "Run the tests")
    assert command.failed
    assert command.output.endswith("boom")
    (command,) = story(bash(tool_response={"stdout": "a", "stderr": "b"})).commands
    assert (command.output, command.failed) == ("a\nb", False)
    assert story(bash(tool_response="text")).commands[0].output == "text"
    assert story(bash("tool_call")).commands == (), "it is not over"
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
    assert episodes(*events, now=late + IDLE + 2) == [("event-1", [1, 2, 3, 4], False)]


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
