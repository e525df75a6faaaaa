"""Something is fixed if the check that failed passes, at its own or a wider scope, and nobody says otherwise."""

import pytest

from memd.models import Kind
from tests.distill.told_sessions import asks, case, edits, fails, runs, says, writes
from tests.tables import read_tables

TABLES = read_tables("distill/proof")

FAILED_ONE = "Exit code 1\nFAILED tests/test_cart.py::test_total - KeyError: 'name'\n1 failed, 3 passed in 0.2s"
PASSED = "4 passed in 0.2s"
ASKED = asks("Why does the cart total fail? Please look into it.")
DONE = says("I changed how the total is read.")
FAILS_TEST = fails("pytest tests/test_cart.py", FAILED_ONE)


WIDER = [
    case("the same command", FAILS_TEST, edits(), runs("pytest tests/test_cart.py", PASSED)),
    case("the whole suite after one file", FAILS_TEST, edits(), runs("pytest", "40 passed in 2.0s")),
    case("the file after one test", fails("pytest tests/test_cart.py::test_total -x", FAILED_ONE), edits(),
         runs("python -m pytest tests/test_cart.py -q", PASSED)),
    case("through another starter", fails("poetry run pytest tests/", FAILED_ONE), edits(), runs("timeout 60 pytest tests", PASSED)),
    case("in a shell of its own", FAILS_TEST, edits(), runs('bash -lc "cd /home/dev/shop && pytest tests/test_cart.py"', PASSED)),
    case("with its directory first", FAILS_TEST, edits(), runs("cd /home/dev/shop && pytest tests/test_cart.py", PASSED)),
    case("behind a pipe that shows the count", FAILS_TEST, edits(), runs("pytest tests/test_cart.py 2>&1 | tail -3", PASSED)),
    case("behind a pipe with pipefail", fails("make test"), edits(), runs("set -o pipefail; make test | tail -3", "done")),
    case("as part of a chain", FAILS_TEST, edits(), runs("ruff check . && pytest tests/test_cart.py && git add -A", PASSED)),
    case("all of mix after a line", fails("mix test test/cart_test.exs:12", "1) test total (CartTest)\n1 test, 1 failure"), edits("lib/cart.ex"),
         runs("mix test", "12 tests, 0 failures")),
    case("all of cargo after a name", fails("cargo test total", "test cart::total ... FAILED\ntest result: FAILED. 0 passed; 1 failed"),
         edits("src/cart.rs"), runs("cargo test", "test result: ok. 9 passed; 0 failed; 0 ignored")),
    case("npm after npm with a pattern", fails("npm test -- cart", "● total\nTests: 1 failed, 1 total"), edits("src/cart.ts"),
         runs("npm test", "Tests: 12 passed, 12 total")),
    case("all packages of go after one", fails("go test ./cart -run TestTotal", "--- FAIL: TestTotal (0.0s)\nFAIL\tshop/cart"),
         edits("cart/cart.go"), runs("go test ./...", "ok  \tshop/cart\t0.1s\nok  \tshop/pay\t(cached)")),
    case("eslint on the folder", fails("npx eslint src/cart.ts", "src/cart.ts:3:1: error no-undef"), edits("src/cart.ts"), runs("npx eslint src --fix")),
    case("gradle by module", fails("./gradlew :cart:test", "BUILD FAILED in 3s"), edits("cart/Cart.kt"), runs("./gradlew test", "BUILD SUCCESSFUL in 9s")),
    case("maven's later phase", fails("mvn -q test -Dtest=CartTest", "[ERROR] CartTest.total\nBUILD FAILURE"), edits("src/Cart.java"), runs("mvn verify", "BUILD SUCCESS")),
    case("rspec after a line", fails("bundle exec rspec spec/cart_spec.rb:3", "1 example, 1 failure"), edits("lib/cart.rb"), runs("bundle exec rspec", "14 examples, 0 failures")),
    case("jest after a file", fails("npx jest src/cart.test.ts", "● total\nTests: 1 failed, 1 total"), edits("src/cart.ts"), runs("npx jest --ci", "Tests: 9 passed, 9 total")),
    case("both parts one after the other", fails("npm run build && npm test", "error TS2304: Cannot find name 'x'."), edits("src/cart.ts"),
         runs("npm run build"), runs("npm test", "Tests: 9 passed, 9 total")),
    case("make that prints what it runs", fails("pytest tests/test_cart.py", FAILED_ONE), edits(), runs("make check", "pytest -q\n12 passed in 1.2s")),
    case("a build that is silent", fails("go build ./... 2>&1 | head -50", "Exit code 1\ncart/cart.go:3:5: undefined: x"), edits("cart/cart.go"), runs("go build ./... 2>&1 | head -50")),
    case("a docker build with a tag", fails("docker build .", "ERROR: failed to solve: not found"), edits("Dockerfile"), runs("docker build -t shop .", "Successfully built 1a2b")),
    case("a look at the test", FAILS_TEST, runs("sed -n '1,40p' tests/test_cart.py"), edits(), runs("pytest tests/test_cart.py", PASSED)),
    case("an install between", FAILS_TEST, runs("pip install six"), runs("pytest tests/test_cart.py", PASSED)),
    case("what a build left behind removed", FAILS_TEST, runs("rm -rf build/test_cart"), runs("pytest tests/test_cart.py", PASSED)),
    case("a skip that was taken back", FAILS_TEST, edits("tests/test_cart.py", "def test_total", "@pytest.mark.skip\ndef test_total"),
         edits("tests/test_cart.py", "@pytest.mark.skip\ndef test_total", "def test_total"), edits(), runs("pytest tests/test_cart.py", PASSED)),
    case("work that was set aside and brought back", FAILS_TEST, runs("git stash"), runs("git stash pop"), edits(), runs("pytest tests/test_cart.py", PASSED)),
]  # fmt: skip


@pytest.mark.parametrize("steps", WIDER)
async def test_the_same_check_or_a_wider_one_proves_a_fix(session, steps):
    await session.tell(ASKED, *steps, DONE)
    assert await session.outcome() == "fixed"


UNKNOWN = "traefik check --configFile=dynamic.yml"
REFUSED = fails(UNKNOWN, "Exit code 1\nrouter cart@file: entrypoint websecur is not defined")
EDITED = edits("dynamic.yml", "websecur", "websecure")
SAME_LINE = [
    case("a program that is in no table", REFUSED, EDITED, runs(UNKNOWN, "configuration is valid")),
    case("that fails twice", REFUSED, edits("a.yml"), REFUSED, EDITED, runs(UNKNOWN)),
    case("in a directory", fails("cd ops && varnishd -C -f shop.vcl", "Exit code 2\nExpected an action, got 'pas'"), edits("ops/shop.vcl"),
         runs("cd ops && varnishd -C -f shop.vcl")),
]  # fmt: skip
BY_ITSELF = [
    case("without a change", REFUSED, runs(UNKNOWN)),
    case("with a change only before it failed last", REFUSED, EDITED, REFUSED, runs(UNKNOWN)),
    case("by another line", REFUSED, EDITED, runs("traefik check --configFile=static.yml")),
    case("whose status is thrown away", REFUSED, EDITED, runs(f"{UNKNOWN} | tail -1", "ok")),
    case("that fetches", fails("curl -f localhost:8080/cart", "Exit code 7\ncurl: (7) could not connect"), EDITED, runs("curl -f localhost:8080/cart")),
    case("that sends", fails("git push origin main", "Exit code 128\nthe remote end hung up"), EDITED, runs("git push origin main")),
    case("that installs", fails("brew install traefik", "Exit code 1\ncould not resolve host"), EDITED, runs("brew install traefik")),
]  # fmt: skip


@pytest.mark.parametrize("steps", SAME_LINE)
async def test_the_same_line_that_passes_after_an_edit_proves_a_fix_whatever_its_program(
    session, steps
):
    await session.tell(ASKED, *steps, DONE)
    assert await session.outcome() == "fixed"


@pytest.mark.parametrize("steps", BY_ITSELF)
async def test_what_may_have_come_right_by_itself_is_not_told(session, steps):
    await session.tell(ASKED, *steps, DONE)
    assert await session.outcome() == "closed"
    assert not any("Error: " in one.body for one in await session.live())


OTHER = [
    case("another test file", FAILS_TEST, edits(), runs("pytest tests/test_pay.py", PASSED)),
    case("a narrower run", fails("pytest", FAILED_ONE), edits(), runs("pytest tests/test_cart.py", PASSED)),
    case("one test of the file", FAILS_TEST, edits(), runs("pytest tests/test_cart.py -k total", PASSED)),
    case("a linter after a build", fails("npm run build", "error TS2304: Cannot find name 'x'."), edits("src/cart.ts"), runs("npm run lint")),
    case("another target", fails("make test", "make: *** [test] Error 1"), edits(), runs("make clean")),
    case("another directory", fails("cd web && make", "make: *** [all] Error 2"), edits(), runs("cd api && make")),
    case("another package", fails("go test ./cart", "--- FAIL: TestTotal (0.0s)"), edits("cart/cart.go"), runs("go test ./pay", "ok  \tshop/pay\t0.1s")),
    case("a module alone of a workspace", fails("cargo test", "test result: FAILED. 3 passed; 1 failed"), edits("src/cart.rs"), runs("cargo test -p pay", "test result: ok. 3 passed")),
    case("with a feature off", fails("FEATURE=on pytest tests/test_cart.py", FAILED_ONE), edits(), runs("FEATURE=off pytest tests/test_cart.py", PASSED)),
    case("in another container", fails("docker compose exec web pytest", FAILED_ONE), edits(), runs("docker compose exec worker pytest", PASSED)),
    case("with another interpreter", fails("python3.11 -m pytest", FAILED_ONE), edits(), runs("python3.13 -m pytest", PASSED)),
    case("with less strictness", fails("mypy --strict shop", "shop/cart.py:3: error: Missing type"), edits(), runs("mypy shop", "Success: no issues found in 3 source files")),
    case("validating a plan", fails("terraform plan", "Error: Invalid reference"), edits("main.tf"), runs("terraform validate", "Success! The configuration is valid.")),
    case("another script", fails("./scripts/deploy.sh", "RuntimeError: no route"), edits("scripts/deploy.sh"), runs("./scripts/test.sh")),
    case("compiling the tests", fails("cargo test", "test result: FAILED. 3 passed; 1 failed"), edits("src/cart.rs"), runs("cargo build", "Finished `dev` profile")),
]  # fmt: skip
NOTHING = [
    case("only collecting", FAILS_TEST, edits(), runs("pytest tests/test_cart.py --collect-only", "tests/test_cart.py::test_total\n4 tests collected")),
    case("only compiling", fails("cargo test", "test result: FAILED. 3 passed; 1 failed"), edits("src/cart.rs"), runs("cargo test --no-run", "Finished `test` profile")),
    case("a dry run", fails("make test", "make: *** [test] Error 1"), edits(), runs("make -n test", "pytest -q")),
    case("ignoring errors", fails("make test", "make: *** [test] Error 1"), edits(), runs("make -i test", "make: [test] Error 1 (ignored)")),
    case("its version", FAILS_TEST, edits(), runs("pytest --version", "pytest 8.3")),
    case("its help", fails("python app.py", "ValueError: bad port"), edits("app.py"), runs("python app.py --help", "usage: app.py")),
    case("a status that is thrown away", FAILS_TEST, edits(), runs("pytest tests/test_cart.py || true")),
    case("a status that is replaced", FAILS_TEST, edits(), runs("pytest tests/test_cart.py > log.txt; exit 0")),
    case("a failure behind a pipe", FAILS_TEST, edits(), runs("pytest tests/test_cart.py | tail -1", "1 failed, 3 passed in 0.2s")),
    case("nothing behind a pipe", FAILS_TEST, edits(), runs("pytest tests/test_cart.py | head -1", "==== test session starts ====")),
    case("a linter that never fails", fails("ruff check shop", "Found 3 errors."), edits(), runs("ruff check shop --exit-zero", "Found 3 errors.")),
    case("the test left out", FAILS_TEST, edits(), runs("pytest tests/test_cart.py -k 'not total'", "3 passed, 1 deselected in 0.1s")),
    case("the file left out", fails("pytest", FAILED_ONE), edits(), runs("pytest --ignore=tests/test_cart.py", PASSED)),
    case("the test deselected", fails("pytest", FAILED_ONE), edits(), runs("pytest --deselect tests/test_cart.py::test_total", "3 passed in 0.1s")),
    case("no test at all", FAILS_TEST, edits(), runs("pytest tests/test_cart.py", "collected 0 items\nno tests ran in 0.01s")),
    case("no package of go", fails("go test ./cart -run TestTotal", "--- FAIL: TestTotal (0.0s)"), edits("cart/cart.go"), runs("go test ./cart -run TestTotal", "ok  \tshop/cart\t0.1s [no tests to run]")),
    case("only started", FAILS_TEST, edits(), runs("pytest tests/test_cart.py", "running", background=True)),
    case("behind an ampersand", FAILS_TEST, edits(), runs("pytest tests/test_cart.py > out.log 2>&1 &")),
    case("an interrupted run", FAILS_TEST, edits(), ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "pytest tests/test_cart.py"}, "tool_response": {"stdout": "..", "stderr": "", "interrupted": True}})),
]  # fmt: skip
SILENCED = [
    case("skipped", FAILS_TEST, edits("tests/test_cart.py", "def test_total", "@pytest.mark.skip(reason='later')\ndef test_total"), runs("pytest tests/test_cart.py", "3 passed, 1 skipped in 0.1s")),
    case("expected to fail", FAILS_TEST, edits("tests/test_cart.py", "def test_total", "@pytest.mark.xfail\ndef test_total"), runs("pytest tests/test_cart.py", "3 passed, 1 xfailed in 0.1s")),
    case("deleted", FAILS_TEST, edits("tests/test_cart.py", "def test_total():\n    assert total() == 3\n", ""), runs("pytest tests/test_cart.py", "3 passed in 0.1s")),
    case("renamed away", FAILS_TEST, edits("tests/test_cart.py", "def test_total", "def check_total"), runs("pytest", "3 passed in 0.1s")),
    case("its file removed", fails("pytest", FAILED_ONE), runs("git rm tests/test_cart.py"), runs("pytest", "3 passed in 0.1s")),
    case("its file moved", fails("pytest", FAILED_ONE), runs("mv tests/test_cart.py tests/cart_old.py"), runs("pytest", "3 passed in 0.1s")),
    case("commented out", FAILS_TEST, edits("tests/test_cart.py", "    assert total() == 3", "    # assert total() == 3"), runs("pytest tests/test_cart.py", PASSED)),
    case("fewer tests", FAILS_TEST, edits(), runs("pytest tests/test_cart.py", "3 passed in 0.1s")),
    case("written anew without it", FAILS_TEST, writes("tests/test_cart.py", "def test_other():\n    pass\n"), runs("pytest tests/test_cart.py", "1 passed in 0.1s")),
    case("set aside", FAILS_TEST, runs("git stash"), runs("pytest tests/test_cart.py", PASSED)),
    case("on another branch", FAILS_TEST, edits(), runs("git checkout main"), runs("pytest tests/test_cart.py", PASSED)),
    case("a skip of jest", fails("npx jest", "● total\nTests: 1 failed, 3 passed, 4 total"), edits("src/cart.test.ts", "it('total'", "it.skip('total'"), runs("npx jest", "Tests: 1 skipped, 3 passed, 4 total")),
    case("a skip of go", fails("go test ./cart", "--- FAIL: TestTotal (0.0s)"), edits("cart/cart_test.go", "func TestTotal(t *testing.T) {", "func TestTotal(t *testing.T) {\n\tt.Skip()"), runs("go test ./cart", "ok  \tshop/cart\t0.1s")),
    case("a target that ignores it", fails("make test", "make: *** [test] Error 1"), edits("Makefile", "\tpytest", "\tpytest || true"), runs("make test")),
    case("a script that does nothing", fails("npm test", "Tests: 1 failed, 1 total"), edits("package.json", '"test": "jest"', '"test": "jest || exit 0"'), runs("npm test")),
    case("left out by its settings", fails("pytest", FAILED_ONE), edits("pyproject.toml", 'addopts = "-q"', 'addopts = "-q --ignore=tests/test_cart.py"'), runs("pytest", "3 passed in 0.1s")),
]  # fmt: skip


@pytest.mark.parametrize("steps", [*OTHER, *NOTHING, *SILENCED])
async def test_another_check_or_one_that_proves_nothing_fixes_nothing(session, steps):
    await session.tell(ASKED, *steps, says("Fixed: the total is right now."))
    assert await session.outcome() == "open"


@pytest.mark.parametrize("steps", SILENCED)
async def test_what_was_silenced_stays_open_when_the_check_runs_again(session, steps):
    await session.tell(ASKED, *steps, DONE)
    again = [
        runs(fields["tool_input"]["command"], "3 passed in 0.1s")
        for name, fields in steps
        if name == "PostToolUseFailure"
    ]
    await session.tell(asks("Add the docs."), *again, says("Added."))
    assert await session.outcome() == "open"


async def test_another_check_that_fails_takes_nothing_back(session):
    await session.tell(*PROVEN, DONE)
    await session.tell(asks("Now the build is failing."), says("I see."))
    assert await session.outcome() == "fixed"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("import os", "import os  # noqa: F401", "closed"),
        ("import os", "import os  # noqa", "closed"),
        ("import os  # noqa: E501, D100", "import json  # noqa: E501", "fixed"),
        ("import os", "import json  # noqa: D100", "fixed"),
    ],
)
async def test_a_suppression_counts_if_it_is_of_the_finding(session, old, new, expected):
    await session.tell(
        ASKED,
        fails("ruff check shop", "shop/cart.py:3:5: F401 `os` imported but unused\nFound 1 error."),
        edits("shop/cart.py", old, new),
        runs("ruff check shop", "All checks passed!"),
        DONE,
    )
    assert await session.outcome() == expected


SENTENCES = TABLES["SENTENCES"]


@pytest.mark.parametrize("answer", SENTENCES)
@pytest.mark.parametrize("prompt", ["Why does the cart fail? Fix it.", "go on"])
async def test_no_sentence_makes_a_fix(session, prompt, answer):
    await session.tell(asks(prompt), FAILS_TEST, edits(), says(answer))
    assert await session.outcome() == "open"


@pytest.mark.parametrize("answer", SENTENCES)
async def test_a_claim_without_any_check_is_no_fix(session, answer):
    await session.tell(asks("ok"), edits(), says(answer))
    assert await session.fixes() == []
    (change,) = await session.memories()
    assert change.kind is Kind.CHANGE


async def test_a_claim_without_a_change_or_a_check_is_told_as_a_claim(session):
    await session.tell(
        asks("continue"),
        says(
            "Fixed the cache in production: I asked the hosting team to flush it twice, and they have done so now as far as they told me, in both regions, today, before the shop opened."
        ),
    )
    (memory,) = await session.memories()
    assert memory.kind is Kind.DISCOVERY
    assert memory.title.startswith("Said, not checked: Fixed the cache")


PROVEN = (ASKED, FAILS_TEST, edits(), runs("pytest tests/test_cart.py", PASSED))


@pytest.mark.parametrize("answer", TABLES["the_agent_that_says_otherwise_is_believed"])
async def test_the_agent_that_says_otherwise_is_believed(session, answer):
    await session.tell(*PROVEN, says(answer))
    assert await session.outcome() == "open"


@pytest.mark.parametrize("answer", TABLES["what_was_wrong_before_or_elsewhere_takes_nothing_back"])
async def test_what_was_wrong_before_or_elsewhere_takes_nothing_back(session, answer):
    await session.tell(*PROVEN, says(answer))
    assert await session.outcome() == "fixed"


DENIALS = TABLES["DENIALS"]


@pytest.mark.parametrize("prompt", DENIALS)
async def test_the_user_who_says_otherwise_opens_it_again(session, prompt):
    await session.tell(*PROVEN, DONE)
    assert await session.outcome() == "fixed"
    await session.tell(asks(prompt), says("Let me look again."))
    assert await session.outcome() == "open"
    (failure,) = [one for one in await session.memories() if one.kind is Kind.FAILURE]
    assert "the user said later" in failure.body
    assert "Mended by" not in failure.body
    work = next(one for one in await session.memories() if one.episode == failure.episode)
    assert work.kind is Kind.CHANGE
    assert "the user said later" in work.body


@pytest.mark.parametrize("prompt", TABLES["other_words_of_the_user_leave_the_fix"])
async def test_other_words_of_the_user_leave_the_fix(session, prompt):
    await session.tell(*PROVEN, DONE)
    await session.tell(asks(prompt), says("Done."))
    assert await session.outcome() == "fixed"


async def test_a_dispute_is_the_same_however_often_it_is_read(session):
    await session.tell(*PROVEN, DONE)
    await session.tell(asks("still broken"), says("Let me see."))
    before = await session.memories()
    await session.db.write(lambda tx: tx.execute("UPDATE events SET distilled = 0"))
    await session.distils()
    assert await session.memories() == before


async def test_a_check_that_passes_after_the_dispute_closes_the_failure(session):
    await session.tell(*PROVEN, DONE)
    await session.tell(
        asks("still broken"),
        edits(new="return dict(x or {})"),
        runs("pytest tests/test_cart.py", PASSED),
        DONE,
    )
    assert await session.outcome() == "closed"
    await session.tell(asks("it's still not working"), says("Hm."))
    assert await session.outcome() == "open"


async def test_what_passed_in_a_later_turn_is_not_disputed_by_what_another_session_says_of_its_own(
    session,
):
    await session.tell(ASKED, FAILS_TEST, says("Let me think."))
    await session.tell(
        asks("Have another look."), edits(), runs("pytest tests/test_cart.py", PASSED), DONE
    )
    assert await session.outcome() == "closed"
    await session.starts_another("s2")
    await session.tell(
        asks("We tried thicker rugs against the draught, they didn't help."), says("I see.")
    )
    assert await session.outcome() == "closed"
    await session.tell(asks("The cart total still fails."), says("Let me see."))
    assert await session.outcome() == "open"


def make_says(*lines):
    said = "\n".join(lines)
    return fails("make check", f"Exit code 2\npython3 tools/check.py\n{said}\nmake: *** [Makefile:2: check] Error 1")  # fmt: skip


MAKE_PASSES = runs("make check", "all 7 checks passed")
OVEN = make_says("oven 3: no answer from the thermostat, timed out")
GLAZE = make_says("glaze.yaml: unknown colour 'teal'")


async def test_a_failure_is_named_by_what_failed_and_not_by_the_program_that_ran_it(session):
    await session.tell(asks("Why does the oven fail?"), OVEN, says("It does not answer."))
    (failed,) = [one for one in await session.live() if one.kind is Kind.FAILURE]
    assert failed.title.startswith("oven 3: no answer from the thermostat, timed out")


async def test_a_turn_that_mends_another_error_of_the_same_command_does_not_tell_of_the_first(
    session,
):
    await session.tell(asks("Why does the oven fail?"), OVEN, says("It does not answer."))
    (failed,) = [one for one in await session.live() if one.kind is Kind.FAILURE]
    await session.starts_another("s2")
    mended = says("The colour is called petrol now.")
    await session.tell(asks("Fix the glaze."), GLAZE, edits("glaze.yaml"), MAKE_PASSES, mended)
    assert not await session.open_failures()
    fix = next(one for one in await session.live() if one.session_id != failed.session_id)
    assert "oven 3" not in fix.body
    hidden = next(one for one in await session.memories() if one.id == failed.id)
    assert hidden.superseded_by not in (None, fix.id)


async def test_a_check_that_passes_and_fails_again_with_another_error_is_mended_all_the_same(
    session,
):
    await session.tell(
        asks("Why does the oven fail?"), OVEN, edits("oven.c"), MAKE_PASSES,
        asks("Now the glaze."), GLAZE, says("The oven answers; the colour is unknown."),
    )  # fmt: skip
    assert any("oven 3" in one.body and one.kind is Kind.FIX for one in await session.live())


async def test_a_fix_is_disputed_from_another_session_that_names_it(session):
    await session.tell(*PROVEN, DONE)
    await session.starts_another("s2")
    await session.tell(asks("still broken"), says("What is?"))
    assert await session.outcome() == "fixed"
    await session.tell(asks("The cart total still fails."), says("Let me see."))
    assert await session.outcome() == "open"


async def test_a_later_agent_that_says_otherwise_opens_it_again(session):
    await session.tell(*PROVEN, DONE)
    await session.tell(asks("What is the state of the cart?"), says("The cart total still fails."))
    assert await session.outcome() == "open"


@pytest.mark.parametrize("steps", WIDER)
async def test_a_check_of_a_later_turn_closes_an_open_failure(session, steps):
    failed = [step for step in steps if step[0] == "PostToolUseFailure"]
    rest = [step for step in steps if step not in failed]
    await session.tell(ASKED, *failed, says("Let me think."))
    assert await session.outcome() == "open"
    await session.tell(asks("Now look at the invoices."), *rest, DONE)
    assert await session.outcome() == "closed"


# The same judge in another place: every second case shows that it is asked there.
@pytest.mark.parametrize("steps", [*OTHER, *NOTHING, *SILENCED][::2])
async def test_nothing_else_closes_an_open_failure_in_a_later_turn(session, steps):
    failed = [step for step in steps if step[0] == "PostToolUseFailure"]
    rest = [step for step in steps if step not in failed]
    await session.tell(ASKED, *failed, says("Let me think."))
    await session.tell(asks("Now look at the invoices."), *rest, DONE)
    assert await session.outcome() == "open"


async def test_the_directory_of_the_session_counts(session):
    await session.tell(
        ASKED,
        fails("make", "make: *** [all] Error 2", cwd="/home/dev/shop/web"),
        edits("web/Makefile"),
        runs("make", "ok", cwd="/home/dev/shop/api"),
        runs("cd web && ls", "Makefile", cwd="/home/dev/shop/web"),
        DONE,
    )
    assert await session.outcome() == "open"
    await session.tell(
        asks("Now look at the invoices."),
        runs("cd web && make", "ok", cwd="/home/dev/shop/web"),
        DONE,
    )
    assert await session.outcome() == "closed"


async def test_a_check_that_fails_again_at_the_end_is_not_fixed(session):
    await session.tell(*PROVEN, edits(old="y", new="z"), FAILS_TEST, DONE)
    assert await session.outcome() == "open"


async def test_a_check_that_passes_by_itself_is_closed_without_a_fix(session):
    await session.tell(ASKED, FAILS_TEST, runs("pytest tests/test_cart.py", PASSED), DONE)
    assert await session.outcome() == "closed"


async def test_a_pass_in_another_project_closes_nothing(session):
    await session.tell(ASKED, FAILS_TEST, DONE)
    await session.starts_another("s2")
    elsewhere = {"cwd": "/home/dev/other"}
    prompt, answer = asks("Run the tests."), says("They pass.")
    await session.tell(
        (prompt[0], prompt[1] | elsewhere),
        runs("pytest tests/test_cart.py", PASSED, **elsewhere),
        (answer[0], answer[1] | elsewhere),
    )
    assert await session.outcome() == "open"


async def test_a_check_that_was_silenced_in_a_turn_between_closes_nothing(session):
    await session.tell(ASKED, FAILS_TEST, says("Let me think."))
    mark = "@pytest.mark.skip\ndef test_total"
    await session.tell(
        asks("Now look at the invoices."), edits("tests/test_cart.py", "def test_total", mark), DONE
    )
    await session.tell(
        asks("Run all tests."), runs("pytest", "39 passed in 2.0s"), says("They pass.")
    )
    assert await session.outcome() == "open"
    await session.tell(
        asks("Take the skip out."), edits("tests/test_cart.py", mark, "def test_total"), DONE
    )
    await session.tell(
        asks("Run all tests."), runs("pytest", "40 passed in 2.0s"), says("They pass.")
    )
    assert await session.outcome() == "closed"


async def test_a_failure_that_was_mended_is_told_by_its_fix_alone_until_that_is_disputed(session):
    await session.tell(*PROVEN, DONE)
    kinds = {one.kind for one in await session.live()}
    assert (Kind.FIX in kinds, Kind.FAILURE in kinds) == (True, False)
    await session.tell(asks("it's still not working"), says("Hm."))
    assert Kind.FAILURE in {one.kind for one in await session.live()}


async def test_one_memory_tells_of_the_work_and_of_its_fix_until_that_is_disputed(session):
    more = edits("docs/cart.md", "Total", "Sum"), runs("git commit -am 'Read names'")
    await session.tell(*PROVEN, *more, DONE)
    (fix,) = await session.live()
    assert fix.kind is Kind.FIX
    assert "KeyError: 'name'" in fix.body
    assert "Answered: I changed how the total is read." in fix.body
    await session.tell(asks("it's still not working"), says("Hm."))
    assert {one.rule for one in await session.live()} >= {"turn", "disputed"}


async def test_what_passes_in_a_later_turn_is_told_by_that_turn_and_no_failure_any_more(session):
    async def live_failures():
        return [one for one in await session.live() if one.kind is Kind.FAILURE]

    await session.tell(ASKED, FAILS_TEST, says("Let me think about it some more."))
    assert len(await live_failures()) == 1
    await session.starts_another("s2")
    await session.tell(
        asks("Make the cart read names."), edits(), runs("pytest", "40 passed in 2.0s"), DONE
    )
    assert await live_failures() == []
    later = (await session.memories())[-1]
    assert later.rule == "turn"
    assert (
        "Passed here, had failed before: test test_total failed: KeyError: 'name' (tests/test_cart.py)"
        in later.body
    )
    await session.distils()
    assert (await session.memories())[-1] == later
    await session.tell(asks("The cart total still fails."), says("Let me see."))
    assert len(await live_failures()) == 1
