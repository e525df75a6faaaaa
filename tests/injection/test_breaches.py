"""Which calls break a rule: a command line read as a shell reads it, files by their place, code by what is added."""

from memd.belief.checks import read_checks
from memd.injection.breaches import ToolCall, breaks, list_watched_words, needs, runs
from tests.tables import every_row, read_tables

TABLES = read_tables("injection/breaches")


def check(rule):
    (found,) = read_checks(rule)
    return found


def run(line, directory="/p"):
    return ToolCall("Bash", {"command": line}, directory, ("/p",))


def edit(path, old="", new="x", **more):
    given = {"file_path": path, "old_string": old, "new_string": new}
    return ToolCall("Edit", given, "/p", ("/p",), **more)


FORCE, TREE = "Never run `git push --force`.", "Never run `rm -rf`."


@every_row(("rule", "line"), TABLES["a_command_line_breaks_a_rule_however_it_is_written"])
def test_a_command_line_breaks_a_rule_however_it_is_written(rule, line):
    assert breaks(check(rule), run(line))
    assert any(all(word in line for word in row) for row in list_watched_words(check(rule)))


@every_row(("rule", "line"), TABLES["words_of_a_rule_are_not_yet_a_breach"])
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
