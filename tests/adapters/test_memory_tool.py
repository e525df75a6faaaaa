"""Anthropic's memory tool on a real daemon, called as the SDK calls it."""

import pytest

from memd.adapters.memory_tool import make_memory_tool
from tests.e2e.real_daemon import RealDaemon


@pytest.fixture(scope="module")
def memd(tmp_path_factory):
    daemon = RealDaemon(tmp_path_factory.mktemp("memory"))
    daemon.start()
    with daemon.client() as client:
        yield client
    daemon.stop()


@pytest.fixture
def tool(memd, tmp_path):
    """A tool of a project of its own; `tool(command, …)` is a call of the model's."""
    from anthropic.tools.memory import BetaAbstractMemoryTool  # noqa: PLC0415  # as below

    made = make_memory_tool(memd, str(tmp_path))
    assert isinstance(made, BetaAbstractMemoryTool)
    assert made.to_dict() == {"type": "memory_20250818", "name": "memory"}
    return lambda command, **given: made.call({"command": command, **given})


def refused(message):
    """Expect the SDK's error. Its import takes seconds, which every process that collects tests would spend."""
    from anthropic.lib.tools import ToolError  # noqa: PLC0415

    return pytest.raises(ToolError, match=message)


def test_a_file_is_created_read_changed_and_listed(tool):
    tool("create", path="/memories/notes/shop.md", file_text="VAT is 19 %.\nPrices are in cents.\n")
    tool("str_replace", path="/memories/notes/shop.md", old_str="19 %", new_str="20 %")
    tool(
        "insert", path="/memories/notes/shop.md", insert_line=1, insert_text="Rounded at the end.\n"
    )
    read = tool("view", path="/memories/notes/shop.md")
    assert read.split("\n")[1:4] == [
        "     1\tVAT is 20 %.", "     2\tRounded at the end.", "     3\tPrices are in cents.",
    ]  # fmt: skip
    assert tool("view", path="/memories/notes/shop.md", view_range=[2, 2]).endswith("the end.")
    listed = tool("view", path="/memories")
    assert "/memories/notes/\n" in listed
    assert "\t/memories/notes/shop.md" in listed


def test_files_are_memories_that_a_search_finds_and_whose_earlier_text_is_kept(
    tool, memd, tmp_path
):
    tool("create", path="/memories/build.md", file_text="The build needs node 20.")
    tool("str_replace", path="/memories/build.md", old_str="20", new_str="22")
    scope = {"directory": str(tmp_path), "query": "which node does the build need"}
    assert [hit["body"] for hit in memd.call("memd/search", scope)["hits"]] == [
        "The build needs node 22."
    ]
    kept = memd.call("memd/search", {**scope, "include_superseded": True})["hits"]
    assert {hit["body"] for hit in kept} == {"The build needs node 22.", "The build needs node 20."}


def test_what_memd_knows_from_elsewhere_is_read_and_not_changed(tool, memd, tmp_path):
    memory = {"text": "Invoices are numbered without gaps.", "directory": str(tmp_path)}
    number = memd.call("memd/remember", {"memories": [memory]})["remembered"][0]["id"]
    path = f"/memories/memd/{number}.md"
    assert path in tool("view", path="/memories")
    assert "Invoices are numbered without gaps." in tool("view", path=path)
    for command in (
        {"command": "delete", "path": path},
        {"command": "delete", "path": "/memories/memd"},
        {"command": "str_replace", "path": path, "old_str": "without", "new_str": "with"},
        {"command": "create", "path": "/memories/memd/mine.md", "file_text": "x"},
        {"command": "rename", "old_path": path, "new_path": "/memories/mine.md"},
    ):
        with refused("cannot be changed"):
            tool(**command)


def test_a_deleted_file_is_gone_for_the_model_and_comes_back_if_it_is_written_again(
    tool, memd, tmp_path
):
    tool("create", path="/memories/a.md", file_text="The lease ends in May.")
    assert tool("delete", path="/memories/a.md") == "Successfully deleted /memories/a.md"
    asked = {"directory": str(tmp_path), "query": "when does the lease end"}
    assert not memd.call("memd/search", asked)["hits"]
    with refused("does not exist"):
        tool("view", path="/memories/a.md")
    tool("create", path="/memories/a.md", file_text="The lease ends in May.")
    assert "ends in May" in tool("view", path="/memories/a.md")


def test_a_directory_is_renamed_and_deleted_with_all_its_files(tool):
    for name in ("one", "two/three"):
        tool("create", path=f"/memories/old/{name}.md", file_text=f"file {name}")
    tool("rename", old_path="/memories/old", new_path="/memories/new")
    assert "file two/three" in tool("view", path="/memories/new/two/three.md")
    with refused("does not exist"):
        tool("view", path="/memories/old")
    with refused("already exists"):
        tool("rename", old_path="/memories/new/one.md", new_path="/memories/new/two")
    tool("delete", path="/memories/new")
    assert "new" not in tool("view", path="/memories").split("\n", 1)[1]


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/memories/../etc/passwd", "/memories/%2e%2e/x", "/memories/./a", "/memoriesx/a",
     "memories/a", "/memories//a", "/memories/a b.md", "/memories/a.md ", "/memories/a\\b", "/memories/a\0b", "/memories/" + "a" * 101, ""],
)  # fmt: skip
def test_no_path_leads_out_of_memories(tool, path):
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": "/memories/a.md", "new_path": path},
    ):
        with refused("not one below /memories"):
            tool(**command)


def test_errors_say_what_is_wrong_and_nothing_changes(tool):
    tool("create", path="/memories/a.md", file_text="tea\ntea\n")
    for message, command in (
        ("already exists", {"command": "create", "path": "/memories/a.md", "file_text": "x"}),
        ("is a directory", {"command": "create", "path": "/memories/a.md/b", "file_text": "x"}),
        ("not in lines 1, 2", {"command": "str_replace", "path": "/memories/a.md", "old_str": "tea", "new_str": "x"}),
        ("no line", {"command": "str_replace", "path": "/memories/a.md", "old_str": "milk", "new_str": "x"}),
        ("no line", {"command": "str_replace", "path": "/memories/a.md", "old_str": "", "new_str": "x"}),
        (r"\[0, 2\]", {"command": "insert", "path": "/memories/a.md", "insert_line": 3, "insert_text": "x"}),
        ("would be empty", {"command": "create", "path": "/memories/b.md", "file_text": " \n"}),
        ("text", {"command": "create", "path": "/memories/c.md", "file_text": "x" * 70_000}),
    ):  # fmt: skip
        with refused(message):
            tool(**command)
    assert tool("view", path="/memories/a.md").count("tea") == 2
    assert "b.md" not in tool("view", path="/memories")


def test_a_secret_in_a_file_is_redacted(tool):
    tool("create", path="/memories/keys.md", file_text="token ghp_" + "a1B2" * 9)
    assert "[REDACTED" in tool("view", path="/memories/keys.md")


def test_no_spelling_of_a_path_shows_the_models_text_for_what_memd_knows(tool, memd, tmp_path):
    memory = {"text": "Never push to main without a review.", "directory": str(tmp_path)}
    number = memd.call("memd/remember", {"memories": [memory]})["remembered"][0]["id"]
    with refused("cannot be changed"):
        tool("create", path=f"/memories/MEMD/{number}.md", file_text="Always push to main.")
    tool("create", path="/memories/README.md", file_text="Read me.")
    assert "Read me." in tool("view", path="/memories/README.md")
    with refused("already exists"):
        tool("create", path="/memories/readme.md", file_text="x")


def test_a_change_of_signs_alone_is_refused_rather_than_lost(tool):
    tool("create", path="/memories/c.md", file_text="steps:\n  - first line\n  - second line\n")
    with refused("is not changed"):
        tool("str_replace", path="/memories/c.md", old_str="second line", new_str="second, line!")
    tool("str_replace", path="/memories/c.md", old_str="second line", new_str="third line")
    assert "  - third line" in tool("view", path="/memories/c.md")


def test_a_file_does_not_become_a_directory_by_a_rename(tool):
    for name in ("f", "g"):
        tool("create", path=f"/memories/{name}", file_text=f"the text of {name}")
    for new in ("/memories/f/x", "/memories/g/x"):
        with refused("already exists"):
            tool("rename", old_path="/memories/g", new_path=new)
