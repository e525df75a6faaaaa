from memd.distill.passing import Passed, closed, closes, passed
from memd.distill.story import Context
from tests.make import AT, make_event, make_summary

CONTEXT = Context()


def ran(command, *, id=1, output="ok", kind="tool_result", **more):  # noqa: A002  # the field's name
    return make_event(
        kind, id=id, tool_name="Bash", tool_input={"command": command},
        tool_response={"stdout": output, **more},
    )  # fmt: skip


def failure(command, *, at=AT, purpose=""):
    return make_summary(
        "It failed", f"`{command}`{purpose} failed: ValueError: x\nWhile: y", at=at
    )


def test_a_check_that_passed_is_told_by_its_last_run():
    events = (
        ran("cd /p && pytest -q 2>&1 | tail", id=1),
        ran("pytest -q", id=5),
        ran("ls", id=6),
    )
    assert passed(events, CONTEXT) == (Passed("pytest -q", 5, AT + 5000),)


def test_what_failed_or_was_stopped_did_not_pass():
    swallowed = "FAILED tests/test_a.py::test_x - boom\n1 failed"
    events = (
        ran("pytest -q", id=1, kind="tool_failure"),
        ran("pytest -x", id=2, output=swallowed),
        ran("pytest -v", id=3, interrupted=True),
    )
    assert passed(events, CONTEXT) == ()


def test_the_same_check_closes_an_earlier_failure():
    run = Passed("pytest -q", 5, AT + 10)
    assert closes(run, failure("pytest -q"))
    assert closes(run, failure("cd app && pytest -q", purpose=" (Run the tests)"))
    assert not closes(run, failure("pytest -q tests/test_a.py"))
    assert not closes(run, failure("pytest -q", at=AT + 10))
    assert not closes(run, make_summary("Failed", "a person's words", at=AT))


def test_each_failure_is_closed_once():
    first, second = failure("pytest -q"), failure("mypy")
    runs = Passed("pytest -q", 5, AT + 10), Passed("pytest -q", 6, AT + 20)
    assert closed(runs, [first, second]) == [(first, runs[0])]
