"""What is remembered of failures: the memory of the work tells what was there before it and is fixed, or came right from outside."""

from memd.distill.edits import diff_edit
from memd.distill.episodes import Episode, EpisodeContext, read_story
from memd.distill.turn import distill_episode
from memd.models import EdgeType, Kind
from tests.factories import make_event
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/failures")

CONTEXT = EpisodeContext(roots=("/p",))
ERROR = "Exit code 1\n  File \"/p/a.py\", line 3, in f\nKeyError: 'name'"
TESTED = "Exit code 1\nFAILED tests/test_cart.py::test_total - KeyError: 'name'"
WRITING = "Add a page for carts."
REPORTED = "Why does the cart fail? Fix it."


def runs(command, number, error=None, **response):
    given = {"tool_name": "Bash", "tool_input": {"command": command}, "id": number}
    if error:
        return make_event("tool_failure", error=error, **given)
    return make_event("tool_result", tool_response={"stdout": "ok", **response}, **given)


def edits(number, old="x", new="y", path="/p/a.py"):
    change = {"file_path": path, "old_string": old, "new_string": new}
    return make_event("tool_result", id=number, tool_name="Edit", tool_input=change)


def says(text, number):
    return make_event("agent_text", id=number, text=text)


def remember(*events, prompt=REPORTED, answer="The page has a default for the name now."):
    """Return (the memory of the work, the failures)."""
    stop = make_event("stop", id=99, last_assistant_message=answer)
    around = [make_event(id=1, prompt=prompt), *events, stop]
    found = distill_episode(Episode("t1", tuple(around), is_over=True), CONTEXT)
    work = found[0]
    assert work.slot == "turn"
    return work, [one for one in found if one.kind is Kind.FAILURE]


def tell(*events, **said):
    """Return what the memory of the work tells of failures."""
    work, _ = remember(*events, **said)
    marks = ("Error: ", "Said of it: ", "Fix: ", "Then ", "That it passed")
    return [line for line in work.body.split("\n") if line.startswith(marks)]


def test_what_the_user_reported_and_a_run_proves_fixed_makes_the_work_a_fix():
    work, (failure,) = remember(runs("pytest", 2, ERROR), edits(3), runs("pytest", 4))
    assert work.kind is Kind.FIX
    assert (
        "Error: KeyError: 'name'\nFix: changed a.py\nThen `pytest` passed.\nChanged a.py:\n- x\n+ y"
        in work.body
    )
    assert (failure.title, failure.slot) == ("KeyError: 'name' (a.py), from `pytest`", "failure/0")
    assert failure.rule == "same-command"
    assert (failure.edges[0].type, failure.edges[0].to_id) == (EdgeType.CAUSES, "turn")


def test_an_error_that_was_pasted_is_reported():
    steps = runs("pytest", 2, ERROR), edits(3), runs("pytest", 4)
    more = *steps, edits(5, path="/p/b.py")
    assert remember(*more, prompt="Look at KeyError: 'name' in the log")[0].kind is Kind.FIX
    assert remember(*more, prompt=WRITING)[0].kind is Kind.CHANGE


def test_work_that_did_nothing_but_mend_what_stood_before_it_is_a_fix_in_any_language():
    steps = runs("pytest", 2, ERROR), edits(3), runs("pytest", 4)
    assert remember(*steps, prompt="Der Warenkorb geht nicht.")[0].kind is Kind.FIX


def test_a_run_of_more_than_failed_counts_as_a_rerun():
    _, (failure,) = remember(runs("pytest -x tests/a.py", 2, ERROR), edits(3), runs("pytest", 4))
    assert failure.rule == "wider-command"


def test_a_stated_fix_without_a_rerun_is_none_and_nobody_says_that_it_was_not_mended():
    work, (failure,) = remember(runs("pytest", 2, ERROR), edits(3))
    assert (work.kind, failure.rule) == (Kind.CHANGE, "unmended")
    assert failure.body.endswith("After that: changed a.py")
    _, (left,) = remember(runs("pytest", 2, ERROR), runs("git status", 3))
    assert left.body.endswith("Nothing was changed after that in this turn.")


@every_row(
    ("name", "steps"),
    [
        ("a test", (runs("pytest", 3, TESTED), edits(4), runs("pytest", 5))),
        ("a test that did not run again", (runs("pytest", 3, TESTED), edits(4))),
        ("a test of another file", (runs("npx tsc", 3, "Exit code 2\nshop/tax.ts(3,5): error TS2339: no property 'rate'"), edits(4), runs("npx tsc", 5))),
        ("files by hand", (runs("pytest", 3, TESTED), runs("sed -i s/x/y/ /p/a.py", 4), runs("pytest", 5))),
        ("what a hook said", (runs("make check && git commit -m rates", 3, TESTED), edits(4), runs("make check && git commit -m rates", 5))),
        ("a lint", (runs("npm run lint", 3, "Exit code 1\n× Formatter would have printed the following content:"), runs("npm run lint:fix", 4), runs("npm run lint", 5))),
        ("a suppression", (runs("ruff check shop", 3, "Exit code 1\nshop/cart.py:3:5: F401 `os` imported but unused"), edits(4, "import os", "import os  # noqa: F401"), runs("ruff check shop", 5))),
    ],
)  # fmt: skip
def test_what_the_work_itself_broke_and_mended_is_told_nowhere(name, steps):
    work, failures = remember(edits(2), *steps, prompt=WRITING)
    assert failures == [], name
    assert tell(edits(2), *steps, prompt=WRITING) == [], name
    assert work.kind is Kind.CHANGE


def test_a_slip_that_the_closing_message_names_is_a_line():
    steps = edits(2), runs("pytest", 3, TESTED), edits(4), runs("pytest", 5)
    told = tell(*steps, prompt=WRITING, answer="Added it. My first version had a KeyError.")
    assert told[1:] == ["Fix: changed a.py"]


@every_row(
    ("breaks",),
    [
        ("cp cart.py /tmp/c && sed -i s/1/2/ cart.py && pytest; cp /tmp/c cart.py",),
        ("python3 - <<'EOF'\nopen('cart.py', 'w').write('')\nEOF\npytest",),
        ("echo 'raise 1' >> cart.py; pytest",),
    ],
)
def test_a_test_that_was_broken_on_purpose_is_told_nowhere(breaks):
    steps = runs(breaks, 2, TESTED), edits(4), runs("pytest", 5)
    work, failures = remember(*steps, prompt="Is it wrong? Show that the test catches it.")
    assert (work.kind, failures) == (Kind.CHANGE, [])
    assert "Error: " not in work.body


def test_what_stood_before_the_work_and_passes_after_it_is_told():
    steps = runs("pytest", 2, TESTED), edits(3), runs("pytest", 4), edits(5, path="/p/b.py")
    assert tell(*steps, prompt=WRITING) == [
        "Error: FAILED tests/test_cart.py::test_total - KeyError: 'name'",
        "Fix: changed a.py",
    ]


def test_what_an_install_cured_is_told_though_the_work_had_begun():
    steps = edits(2), runs("pytest", 3, "Exit code 1\nModuleNotFoundError: No module named 'six'")
    assert tell(*steps, runs("pip install six", 4), runs("pytest", 5), prompt=WRITING) == [
        "Error: ModuleNotFoundError: No module named 'six'",
        "Fix: ran `pip install six`",
    ]


def test_a_test_that_passes_when_it_is_run_again_is_told_as_that():
    steps = runs("pytest", 3, TESTED), runs("git status", 4), runs("pytest", 5)
    assert tell(edits(2), *steps, prompt=WRITING)[1] == "Fix: none, it passed when it was run again"


@every_row(
    ("refused", "error", "worked"),
    [
        ("go build ./cmd/shop", "bash: line 1: go: command not found", "PATH=$PATH:/opt/go/bin go build ./cmd/shop"),
        ("wrap npm run test 2>&1", "error: unrecognized subcommand 'npm'", "npm run test"),
        ("python -m shop.report", "python: command not found", ".venv/bin/python3 -m shop.report"),
        ("pip install rich", "error: externally-managed-environment", ".venv/bin/pip install rich"),
    ],
)  # fmt: skip
def test_of_a_call_that_was_refused_the_way_that_worked_is_told(refused, error, worked):
    steps = runs(refused, 2, f"Exit code 1\n{error}"), runs(worked, 3)
    for prompt in (WRITING, REPORTED):
        assert tell(*steps, prompt=prompt) == [f"Error: {error}", f"Fix: worked as `{worked}`"]
        assert remember(*steps, prompt=prompt)[1] == []


MODULE = "Error: The module 'sqlite.node' was compiled against a different Node.js version"


@every_row(
    ("failed", "error", "worked"),
    [
        ("npm test", MODULE, "npm rebuild sqlite && npm test"),
        ("pytest", "ModuleNotFoundError: No module named 'shop'", "pip install -e . && pytest -q"),
        ("./gradlew build", "error: invalid source release: 21", "JAVA_HOME=/opt/jdk-21 ./gradlew build"),
        ("npm test", "FATAL ERROR: heap out of memory", "export NODE_OPTIONS=--max-old-space-size=4096 && npm test"),
        ("npm ci", "npm ERR! code ERESOLVE", "npm ci --legacy-peer-deps"),
    ],
)  # fmt: skip
def test_a_fix_in_the_line_that_passes_is_told_as_the_way_that_worked(failed, error, worked):
    steps = runs(failed, 2, f"Exit code 1\n{error}"), runs(worked, 3)
    assert tell(*steps) == [f"Error: {error}", f"Fix: worked as `{worked}`"]
    denied = "It still fails with the same error."
    assert f"Fix: worked as `{worked}`" not in tell(*steps, answer=denied)


@every_row(
    ("failed", "error", "passed"),
    [
        ("npm test", MODULE, "npm test"),
        ("npm test", MODULE, "cd /p && npm test"),
        ("npm test", MODULE, "git stash && npm test"),
        ("npm test", MODULE, "npm test && npm publish"),
        ("npm test", MODULE, "SKIP_DATABASE=1 npm test"),
        ("npm test", MODULE, "npm test -- --only-unit"),
        ("mypy .", "error: bad type", "MYPYPATH=stubs mypy ."),
        ("npm ci", "npm ERR! code ERESOLVE", "npm ci --dry-run"),
        ("npm ci", "npm ERR! code ERESOLVE", "npm ci --help"),
        ("git push", "fatal: the hook declined", "git push --no-verify"),
    ],
)
def test_a_line_that_mends_nothing_or_looks_at_less_is_no_way_that_worked(failed, error, passed):
    steps = runs(failed, 2, f"Exit code 1\n{error}"), runs(passed, 3)
    assert not [line for line in tell(*steps) if "worked as" in line]


def test_a_program_that_cannot_even_show_its_help_has_failed():
    broken = "Exit code 1\nImportError: cannot import name 'total' from 'shop.cart'"
    steps = runs("python app.py cart --help", 2, broken), edits(3)
    told = tell(*steps, runs("python app.py cart --help", 4))
    assert told[:2] == [f"Error: {broken[12:]}", "Fix: changed a.py"]


def test_what_passes_in_another_environment_after_a_file_was_changed_is_not_told_as_the_way():
    steps = runs("npm test", 2, f"Exit code 1\n{MODULE}"), edits(3), runs("TZ=UTC npm test", 4)
    assert not [line for line in tell(*steps) if "worked as" in line]


@every_row(
    ("mistyped", "error", "next_"),
    TABLES["a_slip_of_the_hand_and_one_of_several_ways_are_told_nowhere"],
)
def test_a_slip_of_the_hand_and_one_of_several_ways_are_told_nowhere(mistyped, error, next_):
    steps = runs(mistyped, 2, f"Exit code 1\n{error}"), runs(next_, 3)
    assert tell(*steps, prompt=WRITING) == []
    assert remember(*steps, prompt=WRITING)[1] == []


@every_row(("command", "error"), TABLES["a_command_that_merely_asks_does_not_fail"])
def test_a_command_that_merely_asks_does_not_fail(command, error):
    assert remember(runs(command, 2, f"Exit code 1\n{error}"))[1] == []


def test_a_test_that_the_work_leaves_failing_is_open_and_what_went_on_is_not():
    _, (failure,) = remember(edits(2), runs("pytest", 3, TESTED), prompt=WRITING)
    assert failure.title == "test test_total failed: KeyError: 'name' (tests/test_cart.py)"
    assert remember(edits(2), runs("pytest", 3, TESTED), edits(4), prompt=WRITING)[1] == []


def test_why_a_pass_proves_nothing_is_told_of_what_was_reported():
    skips = edits(3, "def test_total", "@pytest.mark.skip\ndef test_total", "/p/tests/test_cart.py")
    steps = runs("pytest", 2, TESTED), skips, runs("pytest", 4)
    work, (failure,) = remember(*steps)
    assert work.kind is Kind.CHANGE
    said = "That it passed later proves nothing: a test was marked to be skipped."
    assert said in work.body
    assert said in failure.body


def test_a_reported_check_that_complains_of_style_is_a_failure():
    linted = "Exit code 1\nshop/cart.py:3:5: F401 `os` imported but unused"
    assert remember(runs("ruff check shop", 2, linted))[1] != []


RUST = """Exit code 101
test rates::tests::rounds_up ... FAILED
thread 'rates::tests::rounds_up' panicked at src/rates.rs:40:9:
assertion `left == right` failed
test result: FAILED. 4 passed; 1 failed
error: test failed, to rerun pass `--lib`"""


@every_row(
    ("printed", "title"),
    [
        (RUST, "rates::tests::rounds_up panicked: assertion `left == right` failed"),
        ('(fail) rates > rounds up [0.12ms]\nerror: script "test" exited with code 1', "test failed: rates > rounds up"),
        ("FAILED tests/test_cart.py::TestCart::test_total - a...", "test TestCart::test_total failed (tests/test_cart.py)"),
        ("--- FAIL: TestRounding (0.02s)", "test TestRounding failed, from `make test`"),
        ("src/shop/cart.spec.ts(61,4): error TS2739: Type 'Cart' lacks a total", "TS2739: Type 'Cart' lacks a total (cart.spec.ts:61)"),
        ("internal/billing/rates.go:57:12: undefined: taxRate", "undefined: taxRate (rates.go:57), from `make test`"),
    ],
)  # fmt: skip
def test_a_title_says_what_failed_and_not_how_a_test_runner_or_a_shell_prints_it(printed, title):
    _, (failure,) = remember(runs("make test", 2, f"Exit code 1\n{printed}"))
    assert failure.title == title


def test_different_errors_on_the_way_are_told_with_one_fix():
    other = runs("pytest", 4, "Exit code 1\nTypeError: no")
    steps = runs("pytest", 2, ERROR), edits(3), other, edits(5), runs("pytest", 6)
    assert tell(*steps)[:3] == ["Error: KeyError: 'name'", "Error: TypeError: no", "Fix: changed a.py"]  # fmt: skip


def test_a_swallowed_exit_code_is_a_failure_too():
    hidden = runs("pytest | tail", 2, stdout="=== 1 failed ===\nE   KeyError: 'a'")
    assert tell(hidden, edits(3), runs("pytest", 4))[0] == "Error: KeyError: 'a'"


def test_a_fix_tells_what_the_agent_said_of_the_error_before_it_passed():
    said = "The session store drops the name when the cookie is older than a day."
    steps = runs("pytest", 2, ERROR), says(said, 3), edits(4), runs("pytest", 5)
    assert tell(*steps)[1:] == [f"Said of it: {said}", "Fix: changed a.py", "Then `pytest` passed."]


def test_a_diff_shows_only_what_changed_and_is_bounded():
    before = "a\nb\nc"
    (edit,) = read_story([edits(1, before, "a\n  B\nc")], CONTEXT).edits
    assert diff_edit(edit) == ["- b", "+ B"]
    (edit,) = read_story([edits(1, "x\n" * 50, "y\n" * 50)], CONTEXT).edits
    assert diff_edit(edit)[-1] == "  … and 86 more lines"
