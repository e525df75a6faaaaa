"""Ignore rules: the meaning of .gitignore, and memd never remembers itself."""

from hypothesis import given
from hypothesis import strategies as st

from memd.capture.ignore import compile_ignore
from memd.config import CaptureConfig
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/ignore")


def ignored(path, *patterns, directory="/p"):
    return compile_ignore(patterns, ()).ignored_path(path, directory)


@every_row(("pattern", "path"), TABLES["it_drops"])
def test_it_drops(pattern, path):
    assert ignored(path, pattern) == pattern


@every_row(("pattern", "path"), TABLES["it_keeps"])
def test_it_keeps(pattern, path):
    directory = "/home/build/p" if path.startswith("/home") else "/p"
    assert ignored(path, pattern, directory=directory) is None


@every_row("directory", ["D:\\p", "d:/p", None])
def test_a_path_of_windows_is_split_at_its_own_separators(directory):
    assert ignored("D:\\p\\web\\node_modules\\x.js", "node_modules/", directory=directory)
    assert not ignored("D:\\p\\web\\a.js", "node_modules/", directory=directory)


def test_the_last_pattern_that_matches_decides():
    assert ignored("/p/vendor/ours/a.py", "vendor/", "!vendor/ours/") is None
    assert ignored("/p/vendor/a.py", "vendor/", "!vendor/ours/") == "vendor/"
    assert ignored("/p/a.map", "!*.map", "*.map") == "*.map"


def reason(tool, given_input, directory="/p", patterns=("dist/",), tools=("Skip*",)):
    rules = compile_ignore(patterns, tools)
    return rules.reason({"tool_name": tool, "tool_input": given_input}, directory)


def test_only_tool_events_are_looked_at():
    rules = compile_ignore(("*",), ("*",))
    assert rules.reason({"prompt": "look into /p/dist/a"}, "/p") is None
    assert rules.reason("text", "/p") is None
    assert rules.reason({"tool_name": 7}, "/p") is None


@every_row("field", ["file_path", "path", "notebook_path"])
def test_a_path_is_looked_for_where_tools_name_it(field):
    assert reason("Edit", {field: "/p/dist/a.js"}) == "ignored path: dist/"
    assert reason("Edit", {field: 7}) is None
    assert reason("Edit", None) is None


def test_a_directory_itself_is_ignored_where_a_tool_takes_directories():
    assert reason("LS", {"path": "/p/dist"}) == "ignored path: dist/"
    assert reason("Write", {"file_path": "/p/dist"}) is None


def test_shell_commands_are_not_looked_into():
    assert reason("Bash", {"command": "cat /p/dist/a.js"}) is None


def test_memds_own_tools_are_dropped_whatever_is_configured():
    for tool in ("mcp__memd__mem_search", "mcp__plugin_memd_memd__mem_why"):
        assert reason(tool, {}, tools=()).startswith("ignored tool: mcp__")
    assert reason("SkipMe", {}) == "ignored tool: Skip*"
    assert reason("mcp__other__mem", {}) is None


def test_the_default_patterns_spare_sources():
    config = CaptureConfig()
    rules = compile_ignore(config.ignore_paths, config.ignore_tools)
    for path in ("/p/src/build.py", "/p/a/target.rs", "/p/README.md", "/p/.github/x.yml"):
        assert rules.ignored_path(path, "/p") is None
    for path in ("/p/.git/config", "/p/x/__pycache__/a.pyc", "/p/package-lock.json", "/p/uv.lock"):
        assert rules.ignored_path(path, "/p") is not None


PATTERNS = st.text("ab*?[]!/\\-^.#z", max_size=12) | st.text(max_size=8)


@given(PATTERNS, st.text("ab/.", max_size=20) | st.text(max_size=20), st.none() | st.just("/a"))
def test_no_pattern_and_no_path_makes_it_raise(pattern, path, directory):
    assert ignored(path, pattern, directory=directory) in (None, pattern)


@given(st.lists(st.text("abc.", min_size=1, max_size=5), min_size=1, max_size=4))
def test_a_path_is_matched_by_itself(names):
    path = "/".join(name for name in names if name.strip("."))
    if path:
        assert ignored("/p/" + path, "/" + path) is not None


@every_row("mark", ["&&", "||", "~~", "&", "|", "~", "["])
def test_what_is_an_operator_in_a_class_of_re_is_a_character_here(mark):
    assert ignored(f"/p/{mark[0]}.js", f"[a{mark}b].js")
    assert ignored("/p/b.js", f"[a{mark}b].js")
    assert not ignored("/p/c.js", f"[a{mark}b].js")


def test_a_class_with_two_dashes_is_no_set_difference():
    assert ignored("/p/-.js", "[+--].js")
    assert not ignored("/p/a.js", "[a--b].js")
