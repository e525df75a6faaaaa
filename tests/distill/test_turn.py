import pytest

from memd.distill import turn
from memd.distill.story import Context, read
from memd.models import Kind
from tests.make import make_event

CONTEXT = Context(session_title="Add a parser", roots=("/p",))
EDIT = make_event(
    "tool_result", id=5, tool_name="Edit",
    tool_input={"file_path": "/p/a.py", "old_string": "x", "new_string": "y"},
)  # fmt: skip


def ran(command, number=6, kind="tool_result", **fields):
    return make_event(
        kind, id=number, tool_name="Bash", tool_input={"command": command}, **fields
    )


def draft(prompt, answer="", *events, context=CONTEXT):
    found = [make_event(id=1, prompt=prompt), *events]
    if answer:
        found.append(make_event("stop", id=90, last_assistant_message=answer))
    return turn.draft(read(found, context), context)


def test_a_turn_tells_what_was_asked_answered_changed_and_run():
    failed = ran("pytest", 6, "tool_failure", error="Exit code 1\nKeyError: 'a'")
    found = draft(
        "Please make it quick.",
        "It is quick now.",
        EDIT,
        failed,
        ran("pytest", 7),
        ran("ls", 8),
    )
    assert found.title == "Make it quick"
    assert found.kind is Kind.CHANGE
    assert found.body == (
        "Asked: Please make it quick.\nAnswered: It is quick now.\nFiles: a.py\n"
        "Ran: `pytest` → failed: KeyError: 'a'\nRan: `pytest` → ok"
    )
    assert found.files == ("a.py",)
    assert [source.event_id for source in found.sources] == [1, 90, 5, 6, 7]


def test_a_turn_without_an_edit_is_a_discovery():
    assert draft("Why does it recurse?", "The grammar nests.").kind is Kind.DISCOVERY


def test_a_fix_outside_of_the_files_is_a_fix():
    failed = ran("pytest", 6, "tool_failure", error="Exit code 1\nKeyError: 'a'")
    assert draft("Why does it fail?", "Fixed: the cache was stale.", failed).kind is Kind.FIX


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("ok", "Fine."),
        ("/clear", "Cleared everything for you, and here is a long story about it. " * 5),
        ("thanks!", "You are welcome."),
        ("[REDACTED:private]", "[REDACTED:private]#2"),
    ],
)
def test_small_talk_commands_and_what_was_redacted_are_no_turn(prompt, answer):
    assert draft(prompt, answer) is None


def test_a_turn_that_goes_on_after_small_talk_is_named_by_its_answer():
    assert (
        draft("go on", "Renamed the parser. All tests pass.", EDIT).title
        == "Renamed the parser"
    )
    assert draft("go on", "", EDIT).title == "Changed a.py"


def test_long_texts_are_bounded_and_leave_room_for_the_rest():
    small = Context(body_characters=400)
    found = draft("word " * 500, "word " * 500, EDIT, context=small)
    assert len(found.body) <= 400
    assert "Files: /p/a.py" in found.body


def test_a_subagents_report_is_told():
    report = make_event(
        "subagent_stop",
        id=7,
        agent_type="Explore",
        agent_id="a",
        last_assistant_message="It is in b.py.",
    )
    assert "Explore reported: It is in b.py." in draft("Find it.", "Found.", report).body


def sessions(summary):
    return turn.sessions(
        read([make_event("compact_end", compact_summary=summary)], CONTEXT), CONTEXT
    )


def test_a_compactions_summary_is_kept_without_its_analysis():
    text = "The parser was written and tested. The printer is next."
    (found,) = sessions(f"<analysis>hm</analysis>\n<summary>\n{text}\n</summary>")
    assert (found.kind, found.slot, found.body) == (Kind.SESSION, "session", text)
    assert found.title == "Session so far: Add a parser"


def test_a_trivial_compaction_is_not_kept():
    assert (
        sessions("<analysis>a long story of what was done</analysis><summary>FAKE</summary>")
        == []
    )
