import pytest

from memd.distill.files import LINKS_MAX, FileLink, linked
from memd.models import EdgeType, EventKind
from tests.make import make_event


def wrote(path, content, number=1, tool="Write"):
    given = {"file_path": path, "content": content}
    return make_event(
        EventKind.TOOL_RESULT, id=number, tool_name=tool, tool_input=given, tool_response={}
    )


def noted(path, *imports, number=1, **more):
    response = {"path": path, "bytes": 9, "lines": 1, "imports": list(imports), **more}
    given = {"file_path": path}
    return make_event(
        EventKind.TOOL_RESULT, id=number, tool_name="Read", tool_input=given, tool_response=response
    )  # fmt: skip


def targets(path, text, *known):
    return [one.target for one in linked([wrote(path, text)], known)]


def test_a_file_that_was_written_imports_what_the_session_has_seen():
    event = wrote("/p/app/main.py", "from .auth import login\nimport ratelimit\nimport json\n")
    found = linked([event], ["/p/app/auth.py", "/p/ratelimit.py", "/p/json.py"])
    assert found == (
        FileLink("/p/app/main.py", EdgeType.IMPORTS, "/p/app/auth.py", event.at, ".auth"),
        FileLink("/p/app/main.py", EdgeType.IMPORTS, "/p/ratelimit.py", event.at, "ratelimit"),
    )


def test_what_nobody_has_seen_or_what_could_be_two_files_is_left_out():
    assert targets("/p/main.py", "import auth\n") == []
    assert targets("/p/a/main.py", "import auth\n", "/p/auth.py", "/p/a/auth.py") == []
    assert targets("/p/main.ts", "import './auth'\n") == []
    assert targets("/p/main.ts", "import './auth'\n", "/p/auth.ts", "/p/auth/index.ts") == []


def test_a_package_above_or_in_src_is_found():
    text = "from ledger.store import links\n"
    assert targets("/p/tests/t.py", text, "/p/src/ledger/store/links.py") == [
        "/p/src/ledger/store/links.py"
    ]
    assert targets("/p/tests/t.py", text, "/p/ledger/store/__init__.py") == [
        "/p/ledger/store/__init__.py"
    ]
    assert targets("/p/a/b/c.py", "from ..x import y\n", "/p/a/x.py", "/p/x.py") == [
        "/p/a/x.py"
    ]


def test_capture_s_note_of_a_read_is_enough():
    found = linked([noted("/p/main.py", ".auth"), noted("/p/auth.py", number=2)], ())
    assert [(one.path, one.target) for one in found] == [("/p/main.py", "/p/auth.py")]


def test_a_read_whose_text_was_kept_is_read():
    for response in ("import './b.css'\n", {"file": {"content": "import './b.css'\n"}}):
        event = make_event(
            EventKind.TOOL_RESULT, tool_name="Read", tool_input={"file_path": "/p/a.js"},
            tool_response=response,
        )  # fmt: skip
        assert [one.target for one in linked([event], ())] == ["/p/b.css"]


def test_an_edit_shows_what_it_put_in():
    given = {
        "file_path": "/p/a.py",
        "edits": [{"new_string": "import b\n"}, {"new_string": "import c"}],
    }
    event = make_event(EventKind.TOOL_RESULT, tool_name="MultiEdit", tool_input=given)
    assert [one.target for one in linked([event], ["/p/b.py", "/p/c.py"])] == [
        "/p/b.py",
        "/p/c.py",
    ]


def test_scripts_find_typed_sources_and_exact_names():
    assert targets("/p/a.ts", "import './b.js'\n", "/p/b.ts") == ["/p/b.ts"]
    assert targets("/p/a.ts", "import './b.js'\n") == []
    assert targets("/p/a.mjs", "import './b.js'\n") == ["/p/b.js"]
    assert targets("/p/x/a.ts", "import '../ui'\n", "/p/ui/index.tsx") == ["/p/ui/index.tsx"]


def test_go_needs_to_know_what_its_module_is_called():
    text = 'import "example.com/app/auth"\n'
    seen = ("/p/auth/auth.go", "/p/auth/auth_test.go", "/p/auth/deep/x.go")
    assert targets("/p/main.go", text, *seen) == []
    module = noted("/p/go.mod", module="example.com/app", number=2)
    found = linked([wrote("/p/main.go", text), module], seen)
    assert [one.target for one in found] == ["/p/auth/auth.go"]


def test_rust_finds_modules_beside_and_in_the_crate():
    seen = ("/p/src/auth.rs", "/p/src/store/mod.rs", "/p/src/auth/token.rs")
    text = "mod auth;\nuse crate::store::Row;\nmod missing;\n"
    assert targets("/p/src/main.rs", text, *seen) == ["/p/src/auth.rs", "/p/src/store/mod.rs"]
    assert targets("/p/src/auth.rs", "mod token;\n", *seen) == ["/p/src/auth/token.rs"]
    assert targets("/p/src/bin/x.rs", "use crate::store::Row;\n", *seen) == []


def test_a_shell_script_calls_what_it_starts_by_its_own_place():
    event = wrote(
        "/p/bin/run.sh", '. "$(dirname "$0")/../lib.sh"\nbash "$(dirname "$0")/build.sh"\n'
    )
    assert [(one.type.value, one.target) for one in linked([event], ())] == [
        ("imports", "/p/lib.sh"),
        ("calls", "/p/bin/build.sh"),
    ]


def test_a_private_turn_says_nothing():
    prompt = make_event(EventKind.PROMPT, prompt="[REDACTED:private]")
    assert linked([prompt, wrote("/p/a.py", "import b\n", 2)], ["/p/b.py"]) == ()


@pytest.mark.parametrize(
    "event",
    [
        wrote("relative.py", "import b\n"),
        wrote("/p/a.py", "import a\n"),
        make_event(EventKind.TOOL_RESULT, tool_name="Write", tool_input="odd"),
        make_event(EventKind.TOOL_RESULT, tool_name="Read", tool_input={"file_path": "/p/a.py"}, tool_response=7),
        noted("/p/a.py", 7, None),
        make_event(EventKind.TOOL_FAILURE, tool_name="Write", tool_input={"file_path": "/p/a.py", "content": "import b"}),
        make_event(EventKind.TOOL_RESULT, tool_name="Edit", tool_input={"file_path": "/p/a.py", "edits": [1, "x"]}),
    ],
)  # fmt: skip
def test_what_is_odd_links_nothing(event):
    assert linked([event], ["/p/b.py", "b.py"]) == ()


def test_an_episode_never_links_too_much():
    events = [
        wrote(f"/p/f{i}.py", "".join(f"import g{j}\n" for j in range(50)), i)
        for i in range(1, 21)
    ]
    assert len(linked(events, [f"/p/g{j}.py" for j in range(50)])) == LINKS_MAX
