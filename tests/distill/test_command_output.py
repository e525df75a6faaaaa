from memd.distill.proof import command_output
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/command_output")

PYTHON = """Exit code 1
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
  File "/p/ratelimit.py", line 12, in allow
    return len(recent) < LIMITS
NameError: name 'LIMITS' is not defined"""


def test_a_tracebacks_last_line_and_own_files_are_what_counts():
    said = command_output.read_error(PYTHON)
    assert said.line == "NameError: name 'LIMITS' is not defined"
    assert said.files == ("/p/ratelimit.py",)
    assert said.has_signature


@every_row(("output", "line"), TABLES["compilers_and_test_runners_have_a_signature"])
def test_compilers_and_test_runners_have_a_signature(output, line):
    said = command_output.read_error(output)
    assert (said.line, said.has_signature) == (line, True)


def test_any_other_failure_is_told_by_its_last_line():
    said = command_output.read_error("Exit code 1\ncat: deploy.yaml: No such file or directory\n")
    assert said.line == "cat: deploy.yaml: No such file or directory"
    assert not said.has_signature
    assert command_output.read_error("Exit code 3").line == ""


@every_row(
    "command",
    ["pytest -q", "python3 -m unittest -q", "cd /p && npm run build 2>&1 | tail -5", "cargo test", "make", "./run.sh",
     "FOO=1 go test ./...", "python3 -c 'print(1)'", "uv run pytest", "npx tsc --noEmit"],
)  # fmt: skip
def test_checks_are_told_from_the_rest(command):
    assert command_output.is_check(command)
    assert not command_output.is_read_only(command)


@every_row(
    "command", ["cat a", "grep -rn pytest .", "ls", "cd /p && git status", "exit 3", "which node"]
)
def test_looking_is_no_check(command):
    assert command_output.is_read_only(command)
    assert not command_output.is_check(command)


def test_a_command_is_the_same_whatever_pipe_it_ends_in():
    assert command_output.normalize_command("cd /p &&  pytest -q 2>&1 | tail -20") == "pytest -q"
    assert command_output.normalize_command("PYTHONPATH=. pytest -q") == "pytest -q"


def test_a_swallowed_exit_code_shows_in_the_output():
    assert command_output.shows_failure("..F\nFAILED (errors=1)")
    assert command_output.shows_failure("===== 1 failed, 2 passed in 0.1s =====")
    assert not command_output.shows_failure("Ran 2 tests\nOK")


def test_minified_code_costs_no_time():
    command_output.read_error("at " + "a.b(" * 20_000 + "\n" * 20_000 + "x" * 40_000)


@every_row("output", ["Tests:" + " " * 40_000, "1 skipped, " * 4_000, " \t" * 20_000])
def test_long_lines_of_a_report_cost_no_time(output):
    assert not command_output.shows_pass(output)
    assert not command_output.shows_failure(output)
    command_output.ran_nothing(output)
    command_output.count_tests(output)


LOGGED = """[Queue] task 2 failed: error: Item 2 is late
(pass) queue > keeps going [0.10ms]
12 |   expect(total([1, 2])).toBe(4);
error: expect(received).toBe(expected)

Expected: 4
Received: 3

      at <anonymous> (/p/src/total.test.ts:12:25)
(fail) total > adds up [0.12ms]
 7 pass
 1 fail
Ran 8 tests across 2 files. [20.00ms]
error: script "test" exited with code 1"""


def test_the_failed_test_is_named_and_not_what_passing_ones_log():
    said = command_output.read_error("error: Item 2 failed\n" + LOGGED)
    assert said.line == "test failed: total > adds up"
    thrown = LOGGED.replace(
        "error: expect(received).toBe(expected)", "SQLiteError: no such column: tax"
    )
    assert command_output.read_error(thrown).line == "SQLiteError: no such column: tax"


def test_a_run_that_only_counts_is_told_by_its_count():
    output = "error: Item 2 failed\n 7 pass\n 3 fail\nRan 10 tests across 2 files. [20.00ms]"
    said = command_output.read_error(output)
    assert (said.line, said.tells) == ("3 tests failed", False)
    assert command_output.read_error(LOGGED).tells


@every_row(("output", "line"), TABLES["banners_progress_and_warnings_are_no_error"])
def test_banners_progress_and_warnings_are_no_error(output, line):
    assert command_output.read_error(f"Exit code 1\n{output}").line == line
