from memd.distill.story import Context, read
from tests.make import make_event

CONTEXT = Context(roots=("/p", "/w/tree"))


def story(*events):
    return read(events, CONTEXT)


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
