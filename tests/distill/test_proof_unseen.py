"""More of the same kinds, written after the rules: other tools, other ways to skip, other words."""

import pytest

from tests.distill.told_sessions import asks, case, edits, fails, runs, says, writes
from tests.tables import read_tables

TABLES = read_tables("distill/proof_unseen")

ASKED = asks("The invoice export is wrong, find out why.")


VITEST = "Exit code 1\n FAIL  src/invoice.test.ts > adds tax\nAssertionError: expected 3 to be 4\n Tests  1 failed | 5 passed (6)"
PHPUNIT = "FAILURES!\nTests: 5, Assertions: 9, Failures: 1."
FIXED = [
    case("a wrong expectation corrected", fails("pytest tests/test_invoice.py", "FAILED tests/test_invoice.py::test_tax - assert 3 == 4\n1 failed in 0.1s"), edits("tests/test_invoice.py", "    assert tax() == 4", "    assert tax() == 3"), runs("pytest tests/test_invoice.py", "1 passed in 0.1s")),
    case("vitest by file, then all", fails("pnpm vitest run src/invoice.test.ts", VITEST), edits("src/invoice.ts"),
         runs("pnpm vitest run", " Test Files  9 passed (9)\n      Tests  60 passed (60)")),
    case("phpunit by filter, then all", fails("./vendor/bin/phpunit --filter testTax", PHPUNIT), edits("src/Invoice.php"),
         runs("vendor/bin/phpunit", "OK (50 tests, 91 assertions)")),
    case("dotnet by filter, then all", fails("dotnet test --filter InvoiceTests", "Failed!  - Failed:     1, Passed:     3"), edits("Invoice.cs"),
         runs("dotnet test --nologo", "Passed!  - Failed:     0, Passed:    40")),
    case("tsc with and without npx", fails("npx tsc --noEmit", "src/invoice.ts(3,5): error TS2304: Cannot find name 'x'."), edits("src/invoice.ts"), runs("cd /home/dev/shop && node_modules/.bin/tsc --noEmit")),
    case("a script with the same words", fails("python3 tools/export.py --year 2024", "ValueError: bad date"), edits("tools/export.py"), runs("python3 tools/export.py --year 2024", "wrote 12 rows")),
    case("uv in front of both", fails("uv run ruff check src tests", "Found 2 errors."), edits("src/invoice.py"), runs("uv run ruff check .", "All checks passed!")),
    case("one of two directories, then both", fails("uv run mypy src/invoice.py", "src/invoice.py:3: error: Incompatible types"), edits("src/invoice.py"), runs("uv run mypy src tests", "Success: no issues found in 30 source files")),
    case("swift by filter, then all", fails("swift test --filter InvoiceTests", "error: InvoiceTests.testTax : XCTAssertEqual failed"), edits("Sources/Invoice.swift"), runs("swift test", "Executed 20 tests, with 0 failures (0 unexpected) in 0.2 seconds")),
    case("unittest by name, then all", fails("python -m unittest tests.test_invoice.TaxTest.test_rounds", "FAIL: test_rounds (tests.test_invoice.TaxTest)\nRan 1 test in 0.0s\n\nFAILED (failures=1)"),
         edits("invoice.py"), runs("python3 -m unittest -v", "Ran 31 tests in 0.2s\n\nOK")),
    case("docker compose, more of it", fails("docker compose run --rm app bundle exec rspec spec/invoice_spec.rb", "5 examples, 1 failure"), edits("app/invoice.rb"),
         runs("docker compose run --rm app bundle exec rspec", "90 examples, 0 failures")),
    case("a migration that is run again", fails("alembic upgrade head", "sqlalchemy.exc.OperationalError: no such table: invoice"), edits("migrations/2.py"), runs("alembic upgrade head", "Running upgrade 1 -> 2")),
    case("workspace of cargo", fails("cargo clippy -p invoice", "error: unused variable: `x`\nerror: could not compile `invoice`"), edits("invoice/src/lib.rs"), runs("cargo clippy --workspace", "Finished `dev` profile")),
]  # fmt: skip
UNPROVEN = [
    case("an assertion that always holds", fails("pytest tests/test_invoice.py", "FAILED tests/test_invoice.py::test_tax - assert 3 == 4\n1 failed in 0.1s"), edits("tests/test_invoice.py", "    assert tax() == 4", "    assert True"), runs("pytest tests/test_invoice.py", "1 passed in 0.1s")),
    case("pass for an assertion", fails("pytest tests/test_invoice.py", "FAILED tests/test_invoice.py::test_tax - assert 3 == 4\n1 failed in 0.1s"), edits("tests/test_invoice.py", "    assert tax() == 4", "    pass"), runs("pytest tests/test_invoice.py", "1 passed in 0.1s")),
    case("expect removed", fails("npx vitest run src/invoice.test.ts", VITEST), edits("src/invoice.test.ts", "expect(tax()).toBe(4);", "tax();"), runs("npx vitest run src/invoice.test.ts", " Tests  6 passed (6)")),
    case("assertions commented out by sed", fails("pytest tests/test_invoice.py", "FAILED tests/test_invoice.py::test_tax - assert 3 == 4\n1 failed in 0.1s"), runs("sed -i 's/assert/#assert/' tests/test_invoice.py"), runs("pytest tests/test_invoice.py", "1 passed in 0.1s")),
    case("the type checker after the tests", fails("npx vitest run src/invoice.test.ts", VITEST), edits("src/invoice.ts"), runs("npx tsc --noEmit")),
    case("a formatter after a linter", fails("npx eslint src", "src/invoice.ts:3:1: error no-undef"), edits("src/invoice.ts"), runs("npx prettier --write src")),
    case("a check of the syntax", fails("php artisan test", "Tests: 1 failed, 4 passed"), edits("app/Invoice.php"), runs("php -l app/Invoice.php", "No syntax errors detected")),
    case("starting the server", fails("npm run build", "error TS2304: Cannot find name 'x'."), edits("src/invoice.ts"), runs("npm start", "listening on 3000")),
    case("todo in vitest", fails("npx vitest run src/invoice.test.ts", VITEST), edits("src/invoice.test.ts", "it('adds tax'", "it.todo('adds tax'"), runs("npx vitest run src/invoice.test.ts", " Tests  5 passed | 1 todo (6)")),
    case("ignored in rust", fails("cargo test", "test adds_tax ... FAILED\ntest result: FAILED. 5 passed; 1 failed"), edits("src/lib.rs", "#[test]\nfn adds_tax", "#[test]\n#[ignore]\nfn adds_tax"), runs("cargo test", "test result: ok. 5 passed; 0 failed; 1 ignored")),
    case("disabled in junit", fails("./gradlew test", "InvoiceTest > addsTax FAILED\nBUILD FAILED in 3s"), edits("src/test/java/InvoiceTest.java", "@Test\nvoid addsTax", "@Disabled\n@Test\nvoid addsTax"), runs("./gradlew test", "BUILD SUCCESSFUL in 2s")),
    case("tagged to be skipped in elixir", fails("mix test", "6 tests, 1 failure"), edits("test/invoice_test.exs", 'test "adds tax"', '@tag :skip\n  test "adds tax"'), runs("mix test", "6 tests, 0 failures, 1 skipped")),
    case("a snapshot written anew", fails("npx jest", "● invoice\nTests: 1 failed, 5 passed, 6 total"), edits("src/invoice.tsx"), runs("npx jest -u", "Tests: 6 passed, 6 total")),
    case("continue on error", fails("npm run lint", "✖ 3 problems (3 errors, 0 warnings)"), edits("package.json", '"lint": "eslint ."', '"lint": "eslint . || true"'), runs("npm run lint", "")),
    case("its folder excluded", fails("mypy .", "src/invoice.py:3: error: Incompatible types"), edits("mypy.ini", "[mypy]", "[mypy]\nexclude = src/invoice"), runs("mypy .", "Success: no issues found in 12 source files")),
    case("its file deleted", fails("go test ./...", "--- FAIL: TestTax (0.0s)\n    invoice_test.go:12: got 3\nFAIL\tshop/invoice"), runs("rm invoice/invoice_test.go"), runs("go test ./...", "ok  \tshop/pay\t0.1s")),
    case("another one's environment", fails("STAGE=prod npm test", "Tests: 1 failed, 5 passed, 6 total"), edits("src/invoice.ts"), runs("npm test", "Tests: 6 passed, 6 total")),
    case("only the last line of a failure", fails("cargo test", "test result: FAILED. 5 passed; 1 failed"), edits("src/lib.rs"), runs("cargo test 2>&1 | tail -1", "error: test failed, to rerun pass `--lib`")),
    case("a semicolon and a word", fails("make check", "make: *** [check] Error 1"), edits("invoice.c"), runs("make check; echo finished", "finished")),
    case("a loop", fails("pytest tests/test_invoice.py", "FAILED tests/test_invoice.py::test_tax - assert 3 == 4\n1 failed in 0.1s"), edits("invoice.py"), runs("for i in 1 2 3; do pytest tests/test_pay.py; done", "3 passed in 0.1s")),
    case("an empty test", fails("pytest tests/test_invoice.py", "FAILED tests/test_invoice.py::test_tax - assert 3 == 4\n1 failed, 2 passed in 0.1s"), writes("tests/test_invoice.py", "def test_nothing():\n    pass\n"), runs("pytest tests/test_invoice.py", "1 passed in 0.1s")),
]  # fmt: skip
PROVEN = (
    ASKED,
    fails("npx vitest run src/invoice.test.ts", VITEST),
    edits("src/invoice.ts"),
    runs("npx vitest run src/invoice.test.ts", " Tests  6 passed (6)"),
)


DENIED_BY_USER = TABLES["DENIED_BY_USER"]
OTHER_WORDS_OF_USER = TABLES["OTHER_WORDS_OF_USER"]
DENIED_BY_AGENT = [
    "The export is still broken for negative amounts.",
    "The tax is half fixed; the rounding keeps failing.",
    "I gave up on the rounding.",
    "The invoice test is still red on my second run.",
]
OTHER_WORDS_OF_AGENT = [
    "The tax was not rounded, which is why the sum was wrong. It is now.",
    "Fixed. I have not run the slow suite.",
    "The rounding failed on halves; the test passes now.",
    "Should it ever still fail, look at the locale.",
]


@pytest.mark.parametrize(
    ("steps", "answer", "expected"),
    [(*one.values, "The tax is rounded now.", "fixed") for one in FIXED]
    + [(*one.values, "This is fixed now, everything works.", "open") for one in UNPROVEN]
    + [(PROVEN[1:], said, "open") for said in DENIED_BY_AGENT]
    + [(PROVEN[1:], said, "fixed") for said in OTHER_WORDS_OF_AGENT],
)
async def test_what_a_turn_proves(session, steps, answer, expected):
    await session.tell(ASKED, *steps, says(answer))
    assert await session.outcome() == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [*((one, "open") for one in DENIED_BY_USER), *((one, "fixed") for one in OTHER_WORDS_OF_USER)],
)
async def test_what_the_user_denies(session, prompt, expected):
    await session.tell(*PROVEN, says("The tax is rounded now."))
    await session.tell(asks(prompt), says("I see."))
    assert await session.outcome() == expected
