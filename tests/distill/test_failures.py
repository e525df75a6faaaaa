from dataclasses import replace

from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.proof import failures
from memd.distill.proof.chains import find_chains
from memd.models import EdgeType, Kind
from tests.factories import make_event
from tests.tables import every_row

CONTEXT = EpisodeContext(roots=("/p",))
ERROR = "Exit code 1\n  File \"/p/a.py\", line 3, in f\nKeyError: 'name'"


def runs(command, number, error=None, **response):
    given = {"tool_name": "Bash", "tool_input": {"command": command}, "id": number}
    if error:
        return make_event("tool_failure", error=error, **given)
    return make_event("tool_result", tool_response={"stdout": "ok", **response}, **given)


def edits(number, old="x", new="y"):
    change = {"file_path": "/p/a.py", "old_string": old, "new_string": new}
    return make_event("tool_result", id=number, tool_name="Edit", tool_input=change)


def drafts(*events, prompt="Why does it fail? Fix it.", answer="Fixed: the name was missing."):
    around = [make_event(id=1, prompt=prompt), *events]
    if answer:
        around.append(make_event("stop", id=99, last_assistant_message=answer))
    story = read_story(around, CONTEXT)
    return failures.draft_failures(story, CONTEXT, find_chains(story))


def test_the_same_command_failing_and_passing_is_a_failure_and_its_fix():
    failure, fix = drafts(runs("pytest", 2, ERROR), edits(3), runs("pytest", 4))
    assert (failure.kind, failure.title, failure.slot) == (
        Kind.FAILURE,
        "KeyError: 'name' (a.py), from `pytest`",
        "failure/0",
    )
    assert (fix.kind, fix.slot, fix.rule) == (Kind.FIX, "fix/0", "same-command")
    assert "Changed a.py:\n- x\n+ y" in failure.body
    assert (failure.edges[0].type, failure.edges[0].to_id) == (EdgeType.CAUSES, "fix/0")
    assert [(e.type, e.to_id) for e in fix.edges][:2] == [
        (EdgeType.DERIVES_FROM, "failure/0"),
        (EdgeType.EDITS, "/p/a.py"),
    ]


def test_the_fix_is_named_for_what_the_user_asked_if_it_failed_before_anything_changed():
    _, asked = drafts(
        runs("pytest", 2, ERROR), edits(3), runs("pytest", 4), prompt="Login fails. Fix it."
    )
    assert asked.title == "Fixed: Login fails"
    *_, own = drafts(
        edits(2),
        runs("pytest", 3, ERROR),
        runs("pip install six", 4),
        runs("pytest", 5),
        prompt="Fix login.",
    )
    assert own.title == "Fixed: KeyError: 'name' (a.py), from `pytest`"


def test_a_run_of_more_than_failed_counts_as_a_rerun():
    _, fix = drafts(runs("pytest -x tests/a.py", 2, ERROR), edits(3), runs("pytest", 4))
    assert fix.rule == "wider-command"
    assert fix.confidence < 0.9


def test_a_stated_fix_without_a_rerun_is_none_and_nobody_says_that_it_was_not_mended():
    (failure,) = drafts(runs("pytest", 2, ERROR), edits(3))
    assert failure.rule == "unmended"
    assert failure.body.endswith("After that: a.py")
    install = "python3 -m venv env && env/bin/pip install six"
    (failure,) = drafts(runs("pytest", 2, ERROR), runs(install, 3))
    assert failure.body.endswith(f"After that: `{install}`")
    (left,) = drafts(runs("pytest", 2, ERROR), runs("git status", 3))
    assert left.body.endswith("Nothing was changed after that in this turn.")


def test_a_test_that_passes_as_it_was_is_remembered_and_nothing_is_said_to_have_mended_it():
    flaky = "Exit code 1\nFAILED tests/test_queue.py::test_order - KeyError: 'name'"
    (failure,) = drafts(runs("pytest", 2, flaky), runs("git status", 3), runs("pytest", 4))
    assert failure.body.endswith("nothing had been changed.")
    (failure,) = drafts(
        runs("pytest", 2, flaky), runs("make generate", 3, "Exit code 2"), runs("pytest", 4)
    )
    assert "nothing" not in failure.body
    assert failure.body.endswith("Before that: `make generate`")


@every_row(
    ("refused", "error", "worked"),
    [
        ("go build ./cmd/shop", "bash: line 1: go: command not found", "PATH=$PATH:/opt/go/bin go build ./cmd/shop"),
        ("make deploy", "make: *** No rule to make target 'deploy'.  Stop.", "cd ops && make deploy"),
        ("wrap npm run test 2>&1", "error: unrecognized subcommand 'npm'", "npm run test"),
        ("python -m shop.report", "python: command not found", ".venv/bin/python3 -m shop.report"),
        ("pip install rich", "error: externally-managed-environment", ".venv/bin/pip install rich"),
    ],
)  # fmt: skip
def test_of_a_call_that_was_refused_the_way_that_worked_is_kept(refused, error, worked):
    (failure,) = drafts(runs(refused, 2, f"Exit code 1\n{error}"), runs(worked, 3))
    assert f"Worked as: `{worked}`" in failure.body
    assert "nothing had been changed" not in failure.body
    assert failure.rule in {"other-way", "same-command"}


@every_row(
    ("asked", "error", "next_"),
    [
        ("ssh dev@shop 'cat /srv/old.conf'", "cat: /srv/old.conf: No such file or directory", "ssh dev@shop 'make -C /srv'"),
        ("python3 -c 'import carts'", "ModuleNotFoundError: No module named 'carts'", "python3 -c 'import shop.carts'"),
    ],
)  # fmt: skip
def test_a_look_at_what_is_not_there_has_no_other_way(asked, error, next_):
    assert drafts(runs(asked, 2, f"Exit code 1\n{error}"), runs(next_, 3)) == []


def test_another_code_or_message_is_another_thing():
    failed = runs("tool run 'count carts' --now", 2, "Exit code 1\nerror: unknown option '--now'")
    assert not [
        one
        for one in drafts(failed, runs("tool run 'send mails' --now", 3))
        if "Worked as" in one.body
    ]


def test_the_way_that_worked_is_in_the_title_where_there_is_space():
    error = "Exit code 2\nerror: unrecognized subcommand 'npm'"
    (failure,) = drafts(runs("wrap npm test 2>&1", 2, error), runs("npm test 2>&1", 3))
    assert failure.title == (
        "error: unrecognized subcommand 'npm', from `wrap npm test`; worked as `npm test`"
    )


@every_row(
    ("command", "error"),
    [
        ("python3 -c 'from shop import Cart; print(Cart.total)'", "AttributeError: type object 'Cart' has no attribute 'total'"),
        ("uv run python - <<'EOF'\nimport carts\nEOF", "ModuleNotFoundError: No module named 'carts'"),
        ("node -e \"require('left')\"", "Error: Cannot find module 'left'"),
        ("systemctl status shop.service", "Unit shop.service could not be found."),
        ("ssh dev@shop 'systemctl is-active shop'", "inactive"),
        ("psql shop -c 'SELECT * FROM carts'", 'ERROR: relation "carts" does not exist'),
        ("docker compose logs web", "Error: No such container: web"),
        ("shop-tool --version", "Error: unknown flag"),
        ("for i in 1 2 3; do curl -f localhost:80$i; done", "RuntimeError: refused"),
    ],
)  # fmt: skip
def test_a_command_that_merely_asks_does_not_fail(command, error):
    assert drafts(runs(command, 2, f"Exit code 1\n{error}")) == []


def test_a_program_that_was_stopped_is_not_named_by_what_it_printed_last():
    assert drafts(runs("python3 serve.py", 2, "Exit code 143\n * Debug mode: off")) == []


@every_row(
    ("command", "complaint"),
    [
        ("npm run lint", "× Formatter would have printed the following content:"),
        ("npx prettier --check src", "[warn] Code style issues found in 2 files."),
        ("git commit -m 'Add rates'", "rates.md:14 error MD040/fenced-code-language"),
    ],
)
def test_what_a_formatter_complains_of_is_remembered_only_if_the_user_asked(command, complaint):
    failed = runs(command, 3, f"Exit code 1\n{complaint}")
    steps = edits(2), failed, runs("npm run lint:fix", 4), edits(5), runs(command, 6)
    assert drafts(*steps, prompt="Add the new rates.") == []
    assert drafts(failed, *steps[2:], prompt="Why does this fail? Fix it.") != []


RUST = """Exit code 101
test rates::tests::rounds_up ... FAILED
thread 'rates::tests::rounds_up' panicked at src/rates.rs:40:9:
assertion `left == right` failed
test result: FAILED. 4 passed; 1 failed
error: test failed, to rerun pass `--lib`"""


def test_a_failed_test_is_named_instead_of_what_the_wrapper_says_last():
    (failure,) = drafts(runs("cargo test", 2, RUST))
    assert failure.title.startswith("rates::tests::rounds_up panicked: assertion `left == right`")
    bun = 'Exit code 1\n(fail) rates > rounds up [0.12ms]\nerror: script "test" exited with code 1'
    (failure,) = drafts(runs("bun run test", 2, bun))
    assert failure.title == "test failed: rates > rounds up"


def test_installing_something_is_a_change():
    _, fix = drafts(runs("pytest", 2, ERROR), runs("pip install six", 3), runs("pytest", 4))
    assert "Ran `pip install six`." in fix.body


def test_different_errors_on_the_way_are_failures_of_one_fix():
    found = drafts(
        runs("pytest", 2, ERROR),
        edits(3),
        runs("pytest", 4, "Exit code 1\nTypeError: no"),
        edits(5),
        runs("pytest", 6),
    )
    assert [draft.slot for draft in found] == ["failure/0", "failure/0/1", "fix/0"]
    assert {d.edges[0].to_id for d in found[:2]} == {"fix/0"}


def test_a_swallowed_exit_code_is_a_failure_too():
    failure, fix = drafts(
        runs("pytest | tail", 2, stdout="=== 1 failed ===\nE   KeyError: 'a'"),
        edits(3),
        runs("pytest", 4),
    )
    assert failure.title == "KeyError: 'a', from `pytest`"
    assert fix.rule == "same-command"


def test_looking_in_vain_and_interrupts_teach_nothing():
    missing = runs("cat deploy.yaml", 2, "Exit code 1\ncat: deploy.yaml: No such file or directory")
    stopped = make_event(
        "tool_failure",
        id=3,
        tool_name="Bash",
        tool_input={"command": "pytest"},
        is_interrupt=True,
        error=ERROR,
    )
    assert (
        drafts(
            missing, runs("grep x y", 4, "Exit code 1"), runs("exit 3", 5, "Exit code 3"), stopped
        )
        == []
    )


def test_a_diff_shows_only_what_changed_and_is_bounded():
    before = "a\nb\nc"
    (edit,) = read_story([edits(1, before, "a\n  B\nc")], CONTEXT).edits
    assert failures.diff_edit(edit) == ["- b", "+ B"]
    (edit,) = read_story([edits(1, "x\n" * 50, "y\n" * 50)], CONTEXT).edits
    assert failures.diff_edit(edit)[-1] == "  … and 86 more lines"


def test_a_failure_is_named_by_what_went_wrong_and_not_by_a_long_path():
    line = "internal/billing/rates.go:57:12: undefined: taxRate"
    (failure,) = drafts(runs("go build ./...", 2, f"Exit code 1\n{line}"))
    assert failure.title == "undefined: taxRate (rates.go:57), from `go build ./...`"


@every_row(
    ("printed", "title"),
    [
        ("FAILED tests/test_cart.py::TestCart::test_total - a...", "test TestCart::test_total failed (tests/test_cart.py)"),
        ("--- FAIL: TestRounding (0.02s)", "test TestRounding failed, from `make test`"),
        ("FAIL\tshop.example/store/internal/pricing 1.204s", "Tests of internal/pricing failed"),
        ("src/shop/cart.spec.ts(61,4): error TS2739: Type 'Cart' lacks a total", "TS2739: Type 'Cart' lacks a total (cart.spec.ts:61)"),
        ("/bin/bash: .env/bin/activate: No such file or directory", ".env/bin/activate: No such file or directory"),
    ],
)  # fmt: skip
def test_a_title_says_what_failed_and_not_how_a_test_runner_or_a_shell_prints_it(printed, title):
    steps = runs("make test", 2, f"Exit code 1\n{printed}"), edits(3), runs("make test", 4)
    failure, fix = drafts(*steps, prompt="")
    assert failure.title == title
    assert fix.title == f"Fixed: {title}"
    assert f"failed: {printed.strip()}" in failure.body.replace("FAIL shop", "FAIL\tshop")


def says(text, number):
    return make_event("agent_text", id=number, text=text)


def test_a_fix_tells_what_the_agent_said_of_the_error_before_it_passed():
    said = "The session store drops the name when the cookie is older than a day."
    steps = runs("pytest", 2, ERROR), says(said, 3), edits(4), runs("pytest", 5)
    *_, fix = drafts(*steps, answer="I added three new features.")
    assert f"Said of it: {said}\nFix: changed a.py\nThen `pytest` passed." in fix.body


WRITING = "Add a page for carts."
TESTED = "Exit code 1\nFAILED tests/test_cart.py::test_total - KeyError: 'name'"


def test_what_the_agent_breaks_and_mends_while_it_writes_is_no_memory():
    steps = edits(2), runs("pytest", 3, TESTED), edits(4), runs("pytest", 5)
    assert drafts(*steps, prompt=WRITING) == []
    assert drafts(*steps[:3], prompt=WRITING) == []
    assert drafts(*steps[:2], prompt=WRITING) != []


@every_row(
    ("mistyped", "error", "next_"),
    [
        ("git add shop/cart.py", "fatal: pathspec 'shop/cart.py' did not match any files", "git add cart.py"),
        ("rg-index build --fast", "error: unexpected argument '--fast' found", "rg-index build"),
        ("make -C opps deploy", "make: *** opps: No such file or directory.  Stop.", "make -C ops deploy"),
    ],
)  # fmt: skip
def test_a_slip_of_the_hand_is_no_memory(mistyped, error, next_):
    assert drafts(runs(mistyped, 2, f"Exit code 1\n{error}"), runs(next_, 3), prompt=WRITING) == []


LINTED = "Exit code 1\nshop/cart.py:3:5: F401 `os` imported but unused"


def test_an_objection_is_of_the_error_that_was_silenced_alone():
    other = "Exit code 1\nshop/cart.py:9:5: E711 comparison to None"
    found = drafts(
        runs("ruff check shop", 2, LINTED), edits(3, "import os", ""),
        runs("ruff check shop", 4, other), edits(5, "x == None", "x == None  # noqa: E711"),
        runs("ruff check shop", 6), prompt="Why does the check fail?",
    )  # fmt: skip
    (suppressed,) = found
    assert "E711" in suppressed.title
    assert "proves nothing: its finding was suppressed" in suppressed.body
    assert "import os" not in suppressed.body


def test_what_a_commit_hook_finds_in_the_work_that_is_committed_is_a_slip_too():
    commit = make_event(id=3, prompt="commit this")
    hooked = runs("make check && git commit -m rates", 4, f"Exit code 1\n{TESTED}")
    steps = edits(2), commit, hooked, edits(5), runs("make check && git commit -m rates", 6)
    assert drafts(*steps, prompt=WRITING) == []
    asked = make_event(id=3, prompt="Why does the check fail?")
    assert drafts(edits(2), asked, hooked, *steps[3:], prompt=WRITING) != []


def test_an_error_in_a_file_that_the_agent_did_not_touch_stays_whatever_it_went_on_with():
    elsewhere = runs(
        "npx tsc", 3, "Exit code 2\nshop/tax.ts(3,5): error TS2339: no property 'rate'"
    )
    (failure,) = drafts(edits(2), elsewhere, edits(4), prompt=WRITING)
    assert failure.rule == "unmended"


def test_what_checks_nothing_is_not_silenced():
    line = "rm .git/index.lock && git checkout main"
    steps = (
        runs(line, 2, "Exit code 1\nrm: .git/index.lock: No such file or directory"),
        runs("git checkout main", 3),
    )
    assert drafts(*steps, prompt=WRITING) == []


def test_one_of_several_ways_is_no_way_that_worked():
    error = "Exit code 127\nbash: line 1: docker: command not found"
    steps = (
        runs("docker build .", 2, error),
        runs("which docker || /opt/docker build . || echo none", 3),
    )
    assert not [one for one in drafts(*steps, prompt=WRITING) if "Worked as" in one.body]


def of(agent, event):
    """An event of a subagent."""
    return replace(event, agent=agent)


def chains(*events):
    """(rule, runs that failed, id of the run that passed) of each chain."""
    found = find_chains(read_story([make_event(id=1, prompt="Fix it."), *events], CONTEXT))
    return [
        (one.rule, [run.event_id for run in one.failures], one.passed and one.passed.event_id)
        for one in found
    ]


def test_what_fails_for_one_agent_is_not_mended_by_what_passes_for_another():
    assert chains(of("a", runs("pytest", 2, ERROR)), of("b", edits(3)), of("b", runs("pytest", 4))) == [
        ("unmended", [2], None)
    ]  # fmt: skip
    assert chains(runs("pytest", 2, ERROR), edits(3), of("a", runs("pytest", 4))) == [
        ("unmended", [2], None)
    ]


def test_two_agents_that_fail_alike_have_a_chain_each():
    found = chains(
        runs("pytest", 2, ERROR), of("a", runs("pytest", 3, ERROR)), of("a", edits(4)),
        of("a", edits(5)), edits(6), runs("pytest", 7), of("a", runs("pytest", 8)),
    )  # fmt: skip
    assert found == [("same-command", [2], 7), ("same-command", [3], 8)]


def test_a_subagent_that_mends_and_checks_has_mended_what_failed_for_the_main_agent():
    assert chains(runs("pytest", 2, ERROR), of("a", edits(3)), of("a", runs("pytest", 4))) == [
        ("same-command", [2], 4)
    ]


def test_what_another_agent_changed_meanwhile_is_no_part_of_a_fix():
    events = [runs("pytest", 2, ERROR), of("a", edits(3, "p", "q")), edits(4), runs("pytest", 5)]
    (one,) = find_chains(read_story([make_event(id=1, prompt="Fix it."), *events], CONTEXT))
    assert [edit.event_id for edit in one.edits] == [4]
    delegated = [runs("pytest", 2, ERROR), of("a", edits(3)), runs("pytest", 5)]
    (one,) = find_chains(read_story([make_event(id=1, prompt="Fix it."), *delegated], CONTEXT))
    assert [edit.event_id for edit in one.edits] == [3]
