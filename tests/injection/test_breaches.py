"""Which calls break a rule: a command line read as a shell reads it, files by their place, code by what is added."""

from memd.belief.checks import read_checks
from memd.injection.breaches import ToolCall, breaks, list_watched_words, needs, runs
from tests.tables import every_row


def check(rule):
    (found,) = read_checks(rule)
    return found


def run(line, directory="/p"):
    return ToolCall("Bash", {"command": line}, directory, ("/p",))


def edit(path, old="", new="x", **more):
    given = {"file_path": path, "old_string": old, "new_string": new}
    return ToolCall("Edit", given, "/p", ("/p",), **more)


FORCE, TREE = "Never run `git push --force`.", "Never run `rm -rf`."


@every_row(
    ("rule", "line"),
    [
        (FORCE, "git push --force"),
        (FORCE, "git -C x push -f origin main"),
        (FORCE, "cd a && GIT_SSH=b git push -fu origin x 2>&1 | tail"),
        (FORCE, 'bash -lc "git push --force"'),
        (FORCE, "for b in a b; do git push -f origin $b; done"),
        (FORCE, "out=$(git push --force)"),
        (FORCE, "/usr/bin/git push origin +main"),
        (FORCE, "echo x | xargs -n 1 git push -f"),
        (FORCE, "cat > a <<'EOF'\nhello\nEOF\ngit push -f"),
        (TREE, "rm -fr x"),
        (TREE, "rm --recursive -f x"),
        ("Never use `npm`.", "cd x; npm test"),
        ("Never run `npm install`.", "npm i lodash"),
        ("Use `uv` instead of `pip`.", "python3 -m pip install x"),
        ("Never use `jest`.", "npx jest"),
        ("Never use `sudo`.", "sudo -u me ls"),
        ("Never use `--no-verify`.", "git commit -nm x"),
        ("`pytest` always with `-n 2`.", "uv run pytest -q"),
        ("Never run `terraform apply -auto-approve`.", "terraform -chdir=x apply --auto-approve"),
        ("Never edit `gen/`.", "rm src/gen/a.ts"),
        ("Never edit `gen/`.", "cd gen && echo x > a"),
        ("Never edit `gen/`.", "sed -i s/a/b/ gen/a.ts"),
    ],
)
def test_a_command_line_breaks_a_rule_however_it_is_written(rule, line):
    assert breaks(check(rule), run(line))
    assert any(all(word in line for word in row) for row in list_watched_words(check(rule)))


@every_row(
    ("rule", "line"),
    [
        (FORCE, 'echo "never git push --force"'),
        (FORCE, "git commit -m 'no git push --force'"),
        (FORCE, "cat > a.md <<EOF\ngit push --force\nEOF"),
        (FORCE, "gh pr create --body $'remove `git push --force`'"),
        (FORCE, "git push --force-with-lease"),
        (FORCE, "git push && rm -f a"),
        (FORCE, "git stash push -f"),
        (FORCE, "git push --help"),
        (TREE, "rm -r x"),
        ("Never use `npm`.", "pnpm install"),
        ("Never use `npm`.", "which npm; command -v npm; npm --version"),
        ("Never run `git stash`.", "git stash list"),
        ("Use `uv` instead of `pip`.", "uv pip install x"),
        ("Tests run with `uv run pytest`, never bare `pytest`.", "uv run pytest"),
        ("Never use `--no-verify`.", "git push -n"),
        ("Never use `--no-verify`.", "git commit -mnew"),
        ("`pytest` always with `-n 2`.", "pytest -x -n2"),
        ("Never edit `gen/`.", "cat gen/a > b"),
        ("Never edit `gen/`.", "cd /elsewhere && rm gen/a"),
    ],
)
def test_words_of_a_rule_are_not_yet_a_breach(rule, line):
    assert not breaks(check(rule), run(line))


def test_a_directory_is_meant_at_any_depth_unless_it_stands_in_the_root():
    rule = check("Don't touch `docs/`.")
    assert breaks(rule, edit("/p/docs/a.md"))
    assert breaks(rule, edit("/p/web/docs/a.md"))
    assert not breaks(rule, edit("/p/web/docs/a.md", tops=frozenset({"docs"})))
    assert not breaks(rule, edit("/p/docs.py"))
    assert not breaks(rule, edit("/other/docs/a.md"))
    assert not breaks(rule, ToolCall("Read", {"file_path": "/p/docs/a.md"}, "/p", ("/p",)))
    assert not breaks(check("Never edit `src/gen/`."), edit("/p/lib/src/gen/a"))
    assert breaks(check("Never edit `db/*.sql`."), edit("/p/db/1.sql"))


def test_code_breaks_a_rule_where_it_is_added():
    rule = check("Do not use `console.log`.")
    assert breaks(rule, edit("/p/a.js", "", "console.log(1)"))
    assert not breaks(rule, edit("/p/a.js", "console.log(1)", "console.log(2)"))
    assert not breaks(rule, edit("/p/a.js", "", "myconsole.logger"))
    assert not breaks(rule, edit("/p/notes.md", "", "never console.log"))
    assert not breaks(rule, edit("/elsewhere/a.js", "", "console.log(1)"))
    given = {"file_path": "/p/a.js", "content": "console.log(1)"}
    assert breaks(rule, ToolCall("Write", given, "/p", ("/p",)))
    assert not breaks(rule, ToolCall("Write", given, "/p", ("/p",), previous="console.log(1)"))


def test_a_commit_needs_the_command_that_comes_before_it():
    rule = check("Run `make check` before committing.")
    assert needs(rule, run("git add . && git commit -m x"))
    assert not needs(rule, run("make check && git commit -m x"))
    assert not needs(rule, run("git commit --dry-run"))
    assert not needs(rule, run("git status"))
    assert runs(rule, run("cd sub && make -j4 check | tail"))
    assert not runs(rule, run("make checker"))
