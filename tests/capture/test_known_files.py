"""An edit of a part of a line is stored with the line, where the session has seen it."""

from memd.capture.known_files import KnownFiles
from memd.models import PATCH
from tests.tables import every_row

TEXT = "import os\n\nclass A:\n    limit = 10\n    wait = 5\n"


def call(tool, response=None, session="s", cwd="/p", **given):
    return {
        "hook_event_name": "PostToolUse", "session_id": session, "cwd": cwd, "tool_name": tool,
        "tool_input": given, "tool_response": response or {},
    }  # fmt: skip


def read(text, path="/p/a.py", **given):
    return call("Read", {"file": {"content": text}}, file_path=path, **given)


def edit(old, new, path="/p/a.py", **given):
    return call("Edit", file_path=path, old_string=old, new_string=new, **given)


def patches(*payloads):
    """(old, new) of the last payload."""
    known = KnownFiles()
    told = [known.complete(one, number) for number, one in enumerate(payloads)]
    return [(one["old"], one["new"]) for one in told[-1].get(PATCH, ())]


@every_row(
    "known",
    [
        read(TEXT),
        read("\n".join(f"{n}\t{line}" for n, line in enumerate(TEXT.splitlines(), 1))),
        call("Write", file_path="/p/a.py", content=TEXT),
        call("Write", file_path="a.py", content=TEXT),
        read(TEXT) | {"session_id": "another"},
    ],
)
def test_a_part_of_a_line_gets_its_line_and_what_it_stands_below(known):
    ((old, new),) = patches(known, edit("10", "60"))
    assert "class A:" in old
    assert "    limit = 10" in old.splitlines()
    assert "    limit = 60" in new.splitlines()


def test_what_an_edit_put_there_is_known_to_the_next():
    assert patches(edit("limit = 10", "limit = 30"), edit("30", "60")) == [
        ("limit = 30", "limit = 60")
    ]


def test_a_far_line_that_one_stands_below_is_kept():
    text = "[a]\nx = 1\n[b]\n" + "".join(f"n{i} = 0\n" for i in range(9)) + "x = 70\n"
    ((old, _),) = patches(read(text), edit("70", "80"))
    assert old.splitlines()[0] == "[b]"


@every_row(
    "before",
    [
        [],
        [read(TEXT, "/p/b.py")],
        [read("a = 10\nb = 10\n")],
        [read(TEXT), call("Write", file_path="/p/a.py", content="limit = 7")],
        [read(TEXT), call("Bash", command="sed -i 's/limit = [0-9]*/limit = 7/' a.py")],
    ],
)
def test_a_line_that_is_not_known_is_not_invented(before):
    assert patches(*before, edit("10", "60")) == []


def test_the_clients_own_patch_is_left_alone():
    patched = call("Edit", {"structuredPatch": [{"lines": ["-a", "+b"]}]}, **edit("10", "60")["tool_input"])  # fmt: skip
    assert patches(read(TEXT), patched) == []
    ((old, _),) = patches(read(TEXT), patched, edit("60", "90"))
    assert "    limit = 60" in old


def test_a_call_that_is_told_again_changes_nothing():
    once = edit("10", "30") | {"tool_use_id": "t1"}
    known = KnownFiles()
    known.complete(read("a = 10\nb = 7 # of 10s\n", path="/p/a.py"), 1)
    first = known.complete(once | {"tool_input": edit("a = 10", "a = 30")["tool_input"]}, 2)
    assert first[PATCH]
    assert PATCH not in known.complete(once, 3)


def test_what_was_read_before_does_not_replace_what_was_read_later():
    known = KnownFiles()
    known.complete(read("limit = 30\n"), 5)
    known.complete(read("limit = 10\n"), 2)
    assert known.complete(edit("30", "60"), 6)[PATCH][0]["old"] == "limit = 30"


@every_row(
    ("command", "told"),
    [
        ("sed -i 's/LIMIT = 1/LIMIT = 2/' a.py", ("LIMIT = 1", "LIMIT = 2")),
        ("cd b && sed -i.bak -e 's|v=1|v=2|g' a.py && git diff", ("v=1", "v=2")),
        ("sed -i '' 's/^a = 1$/a = 2/' a.py", ("a = 1", "a = 2")),
        ("sed -i 's/LIMIT = [0-9]*/LIMIT = 2/' a.py", ("", "LIMIT = 2")),
        (r"sed -i 's/1\.2\.3/1.2.4/' a.py", ("1.2.3", "1.2.4")),
        ("perl -0pi -e 's/a = 1/a = 2/' a.py", ("a = 1", "a = 2")),
        ("sudo sed -i s/a=1/a=2/ a.py", ("a=1", "a=2")),
    ],
)
def test_a_command_that_edits_in_place_tells_what_it_changed(command, told):
    assert patches(call("Bash", command=command)) == [told]


@every_row(
    "command",
    [
        "sed 's/a = 1/a = 2/' a.py",
        "sed -n 's/a = 1/a = 2/p' a.py",
        "echo \"sed -i 's/a = 1/a = 2/' a.py\"",
        "sed -i 's/a = 1/a = 2/' *.py",
        "git ls-files | xargs sed -i 's/a = 1/a = 2/'",
        "sed -i '/a/d' a.py",
        "sed -i 's/a = 1/a = 2",
    ],
)
def test_a_command_that_edits_no_named_file_in_place_tells_nothing(command):
    assert patches(call("Bash", command=command)) == []


def test_a_part_of_a_line_in_a_command_gets_its_line():
    ((old, new),) = patches(read("LIMIT = 1\n"), call("Bash", command="sed -i 's/= 1/= 2/' a.py"))
    assert (old, new) == ("LIMIT = 1", "LIMIT = 2")


@every_row("given", [None, 3, [], {"file_path": 3}, {"file_path": "a", "edits": [7]}])
def test_calls_of_any_shape_pass_unchanged(given):
    payload = call("MultiEdit") | {"tool_input": given, "tool_response": [None]}
    assert KnownFiles().complete(payload, 1) is payload
