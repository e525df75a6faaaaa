"""Whether a line that was shown was used: by what the agent did next, if nothing else had told it."""

from memd.capture.truncate import FINGERPRINT, make_fingerprint
from memd.injection.outcomes import ToldLine, find_use, judge_line, read_texts
from memd.models import EventKind, Kind
from tests.factories import AT, make_event
from tests.tables import every_row, read_tables

TABLES = read_tables("injection/helped")

LINE = "Retries live in `app/net/retry_policy.py`, the limit is RETRY_LIMIT_MAX"


def prompt(text, at):
    return make_event(EventKind.PROMPT, id=at, prompt=text)


def call(at, tool="Bash", response="", **given):
    return make_event(
        EventKind.TOOL_RESULT, id=at, tool_name=tool, tool_input=given, tool_response=response
    )


def use(line, *events, kind=Kind.DECISION, named=1, shown=0):
    told = ToldLine(1, kind, line, AT + shown * 1000)
    return find_use(told, read_texts(events), lambda _: named)


def outcome(line, *events, kind=Kind.DECISION):
    told = ToldLine(1, kind, line, AT)
    return judge_line(told, read_texts(events), lambda _: 1).outcome


EDIT = call(5, "Edit", file_path="/p/app/net/retry_policy.py", old_string="3", new_string="4")


def test_a_file_that_only_the_line_told_and_the_agent_opens_is_a_use():
    assert use(LINE, prompt("make it try more often", 1), EDIT) == "app/net/retry_policy.py"


@every_row(
    ("line", "command", "found"),
    TABLES["identifiers_commands_values_flags_and_words_in_a_row_are_seen"],
)
def test_identifiers_commands_values_flags_and_words_in_a_row_are_seen(line, command, found):
    assert use(line, prompt("go on", 1), call(5, command=command)) == found


@every_row(
    "before",
    [
        prompt("look into app/net/retry_policy.py", 1),
        prompt("the retry policy is wrong", 1),
        prompt("open RetryPolicy", 1),
        call(2, "AskUserQuestion", questions=[{"question": "app/net/retry_policy.py?"}]),
        prompt("which policy is it that we retry by?", 1),
        call(2, command="ls -R", response={"stdout": "app/net/retry_policy.py"}),
        make_event(EventKind.AGENT_TEXT, id=0, text="I know app/net/retry_policy.py"),
        make_event(EventKind.SUBAGENT_STOP, id=2, last_assistant_message="It is in app/net/retry_policy.py"),
        make_event(EventKind.TOOL_RESULT, id=2, agent_id="sub", tool_name="Read",
                   tool_input={"file_path": "/p/app/net/retry_policy.py"}),
        call(2, "Read", file_path="/p/a", response={FINGERPRINT: make_fingerprint("see app/net/retry_policy.py there")}),
    ],
    ids=["prompt", "its words", "its words in another case", "question", "its words apart", "output", "earlier answer", "subagent's answer", "subagent", "text that was read"],
)  # fmt: skip
def test_what_something_else_told_first_is_no_use_of_the_line(before):
    line = "Retries live in `app/net/retry_policy.py`"
    assert not use(line, before, EDIT)
    assert use(line, prompt("go on", 1), EDIT)


def test_an_agent_may_say_what_it_was_told_before_it_does_it():
    said = make_event(EventKind.AGENT_TEXT, id=2, text="That is in app/net/retry_policy.py.")
    assert use(LINE, prompt("go on", 1), said, EDIT) == "app/net/retry_policy.py"


def test_a_text_that_was_read_and_does_not_have_the_name_told_nothing():
    read = call(
        2,
        "Read",
        file_path="/p/a",
        response={FINGERPRINT: make_fingerprint("nothing of it is here at all")},
    )
    assert use(LINE, read, EDIT) == "app/net/retry_policy.py"  # fmt: skip


def test_what_was_done_before_the_line_was_shown_is_no_use_of_it():
    assert not use(LINE, EDIT, call(9, "Read", file_path="/p/app/net/retry_policy.py"), shown=7)


def test_what_many_memories_name_is_no_use_of_one():
    assert not use(LINE, prompt("go on", 1), EDIT, named=50)


@every_row(
    ("line", "command"), TABLES["what_every_project_has_and_parts_of_other_commands_are_no_use"]
)
def test_what_every_project_has_and_parts_of_other_commands_are_no_use(line, command):
    assert not use(line, prompt("go on", 1), call(5, command=command))


def test_of_a_failure_only_what_worked_is_used_and_not_by_failing_again():
    line = "error: no such command, from `rtk bun run check`; worked as `bun run check`"
    right, wrong = call(5, command="bun run check"), call(3, command="rtk bun run check")
    assert use(line, right, kind=Kind.FAILURE) == "bun run check"
    assert not use(line, wrong, kind=Kind.FAILURE)
    assert not use(line, wrong, right, kind=Kind.FAILURE)


def test_a_line_with_a_name_that_nothing_came_of_was_ignored():
    assert outcome(LINE, prompt("go on", 1), call(5, command="ls")) == "ignored"


@every_row("kind", [Kind.INSTRUCTION, Kind.PREFERENCE])
def test_a_rule_leaves_no_trace_when_it_is_obeyed_and_counts_as_nothing(kind):
    assert outcome(LINE, prompt("go on", 1), call(5, command="ls"), kind=kind) == "untraceable"


def test_a_line_about_what_the_session_worked_on_anyway_is_neither_used_nor_ignored():
    assert outcome(LINE, prompt("mend the retry policy", 1), EDIT) == "untraceable"


def test_what_cannot_be_seen_counts_as_nothing():
    assert outcome("We chose the simple way", call(5, command="ls")) == "untraceable"
    assert outcome(LINE, prompt("thanks, that was all", 1)) == "untraceable"
