"""The checkable form of a rule: exact arguments and the closed words of a language around them; else there is none."""

import re
from pathlib import Path

from memd.belief.checks import RuleCheck, read_checks
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/checks")


def checks(text):
    return [str(one) for one in read_checks(text)]


FORCE, NPM, GENERATED = "never use `git push --force`", "never use `npm`", "never edit `gen/`"
TESTED = "`make test` before commit"


@every_row(
    ("rule", "check"),
    [
        ("Never run `git push --force`.", FORCE),
        ("never git push --force", FORCE),
        ("Please never push with --force.", FORCE),
        ("git push never with --force", FORCE),
        ("Niemals mit `--force` pushen.", FORCE),
        ("Nunca hagas push con --force.", FORCE),
        ("永远不要用 git push --force", FORCE),
        ("`npm` is forbidden.", NPM),
        ("Avoid using npm in this repo.", NPM),
        ("N'utilise jamais `npm`.", NPM),
        ("Никогда не используй `npm`.", NPM),
        ("Nigdy nie używaj `npm`.", NPM),
        ("Gebruik nooit `npm`.", NPM),
        ("`npm` は禁止。", NPM),
        ("`npm`은 사용하지 마세요.", NPM),
        ("Use `pnpm` and don't use `npm`.", f"{NPM}, use `pnpm`"),
        ("Benutze `pnpm` und nie `npm`.", f"{NPM}, use `pnpm`"),
        ("Never, ever run `git push --force`.", FORCE),
        ("Use pnpm, not npm.", f"{NPM}, use `pnpm`"),
        ("Always use pnpm instead of npm here.", f"{NPM}, use `pnpm`"),
        ("Benutze `npm` nicht, sondern `pnpm`.", f"{NPM}, use `pnpm`"),
        ("npm yerine pnpm kullan", f"{NPM}, use `pnpm`"),
        ("`npm` 대신 `pnpm`을 사용해.", f"{NPM}, use `pnpm`"),
        ("不要使用 `npm`，用 `pnpm`。", f"{NPM}, use `pnpm`"),
        ("Don't touch gen/.", GENERATED),
        ("`gen/` must not be modified.", GENERATED),
        ("`gen/` is made by a program; do not edit it by hand.", GENERATED),
        ("Fass `gen/` nicht an.", GENERATED),
        ("No toques `gen/`.", GENERATED),
        ("`gen/` を変更しないで。", GENERATED),
        ("Run `make test` before committing.", TESTED),
        ("Never commit without running `make test`.", TESTED),
        ("Do not commit until `make test` passes.", TESTED),
        ("Commit only after `make test` passes.", TESTED),
        ("Vor jedem Commit `make test` ausführen.", TESTED),
        ("Commit yapmadan önce `make test` çalıştır.", TESTED),
        ("コミットする前に `make test` を実行して。", TESTED),
        ("Run `make test` before you say that you are done.", "`make test` before done"),
        ("Führe `make test` aus, bevor du fertig meldest.", "`make test` before done"),
        ("Before opening a pull request, run `make test`.", "`make test` before pull request"),
        ("`pytest` always with `-n 2`.", "`pytest` with `-n 2`"),
        ("Never run `cargo build` without `--locked`.", "`cargo build` with `--locked`"),
        ("Always commit with `--signoff`.", "`git commit` with `--signoff`"),
        ("Never use `--no-verify`.", "never use `--no-verify`"),
        ("Do not use `console.log`.", "never write `console.log`"),
        ("Don't add `# type: ignore` comments.", "never write `# type: ignore`"),
    ],
)
def test_a_rule_with_exact_arguments_has_a_check(rule, check):
    assert checks(rule) == [check]
    assert checks(check) == [check]


def test_a_rule_may_have_several():
    assert checks("Before every commit, run `make lint` and `make test`. Never use `sudo`.") == [
        "`make lint` before commit", "`make test` before commit", "never use `sudo`",
    ]  # fmt: skip
    assert checks("Never edit `package-lock.json` or `yarn.lock`.") == [
        "never edit `package-lock.json`", "never edit `yarn.lock`"
    ]  # fmt: skip


@every_row("said", TABLES["a_sentence_that_limits_or_does_not_forbid_has_none"])
def test_a_sentence_that_limits_or_does_not_forbid_has_none(said):
    assert checks(said) == []


def test_a_check_says_what_is_to_be_used_instead():
    assert read_checks("Use `uv`, never `pip`.") == (RuleCheck("command", "pip", "uv"),)


def test_every_rule_of_the_page_has_a_check():
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    rules = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", page)
    assert len(rules) >= 8
    assert [rule for rule in rules if not checks(rule)] == []
