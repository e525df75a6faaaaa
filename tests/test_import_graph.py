from memd.import_graph import (
    LINKS_MAX,
    NAMES_MAX,
    FileImports,
    FileLink,
    find_file_links,
    read_imports,
)
from memd.models import EventKind
from tests.factories import make_event
from tests.tables import every_row


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
    return [one.target for one in find_file_links([wrote(path, text)], known)]


def test_a_file_that_was_written_imports_what_the_session_has_seen():
    event = wrote("/p/app/main.py", "from .auth import login\nimport ratelimit\nimport json\n")
    found = find_file_links([event], ["/p/app/auth.py", "/p/ratelimit.py", "/p/json.py"])
    assert found == (
        FileLink("/p/app/main.py", "/p/app/auth.py", event.at, ".auth"),
        FileLink("/p/app/main.py", "/p/ratelimit.py", event.at, "ratelimit"),
    )


def test_unseen_or_ambiguous_files_are_left_out():
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
    assert targets("/p/a/b/c.py", "from ..x import y\n", "/p/a/x.py", "/p/x.py") == ["/p/a/x.py"]


def test_capture_s_note_of_a_read_is_enough():
    found = find_file_links([noted("/p/main.py", ".auth"), noted("/p/auth.py", number=2)], ())
    assert [(one.path, one.target) for one in found] == [("/p/main.py", "/p/auth.py")]


def test_a_read_with_its_stored_text_is_read():
    for response in ("import './b.css'\n", {"file": {"content": "import './b.css'\n"}}):
        event = make_event(
            EventKind.TOOL_RESULT, tool_name="Read", tool_input={"file_path": "/p/a.js"},
            tool_response=response,
        )  # fmt: skip
        assert [one.target for one in find_file_links([event], ())] == ["/p/b.css"]


def test_an_edit_shows_what_it_put_in():
    given = {
        "file_path": "/p/a.py",
        "edits": [{"new_string": "import b\n"}, {"new_string": "import c"}],
    }
    event = make_event(EventKind.TOOL_RESULT, tool_name="MultiEdit", tool_input=given)
    assert [one.target for one in find_file_links([event], ["/p/b.py", "/p/c.py"])] == [
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
    found = find_file_links([wrote("/p/main.go", text), module], seen)
    assert [one.target for one in found] == ["/p/auth/auth.go"]


@every_row(
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
    assert find_file_links([event], ["/p/b.py", "b.py"]) == ()


def ran(command, number=2):
    given = {"command": command}
    return make_event(
        EventKind.TOOL_RESULT, id=number, tool_name="Bash", tool_input=given, tool_response={}
    )


def calls(*events, known=()):
    return [
        (one.path, one.target, one.name) for one in find_file_links(events, known) if one.is_call
    ]


def test_a_python_file_calls_the_files_whose_names_it_imports_and_calls():
    """siftcoder: `calls` is one of its edge types, walked by mem_why."""
    text = (
        "import json\nimport ratelimit as limit\nfrom .auth import login, Token\nfrom .text import fold\n"
        "def main(words=fold):\n    json.loads('1')\n    limit.bucket.take()\n    return login(Token.read())\n"
    )
    known = ["/p/app/auth.py", "/p/app/text.py", "/p/ratelimit.py", "/p/json.py"]
    assert sorted(calls(wrote("/p/app/main.py", text), known=known)) == [
        ("/p/app/main.py", "/p/app/auth.py", ".auth.login"),
        ("/p/app/main.py", "/p/ratelimit.py", "ratelimit.bucket.take"),
    ]


def test_what_capture_notes_of_a_read_has_its_calls():
    text = "from auth import check\ncheck()\n"
    assert read_imports("/p/m.py", text).calls == ("auth.check",)
    event = noted("/p/m.py", "auth", calls=["auth.check", 7])
    assert calls(event, known=["/p/auth.py"]) == [("/p/m.py", "/p/auth.py", "auth.check")]


def test_a_word_in_a_string_or_comment_and_a_definition_are_no_calls():
    text = "from auth import check, login, Token\n# check()\nx = 'check()'\ndef login(): ...\nclass Token(Base): ...\n"
    assert read_imports("/p/m.py", text).calls == ()
    assert read_imports("/p/m.py", f'{text}"""\ncheck()\n"""\n').calls == ()
    assert read_imports("/p/m.js", "import x from './x'\nx()\n").calls == ()


def test_what_a_command_runs_is_called_and_what_it_only_reads_is_not():
    known = ["/p/tests/test_a.py", "/p/tool.py", "/p/run.sh", "/q/run.sh", "/p/go.sh"]
    known += ["/p/pkg/serve.py", "/q/other/serve.py"]
    command = "cd /p && A=1 .venv/bin/python -m pytest -q tests/test_a.py::test_x; cat tool.py | head; ./go.sh; sh run.sh; python3 -m pkg.serve"
    assert calls(ran(command), known=known) == [
        ("", "/p/tests/test_a.py", "tests/test_a.py::test_x"),
        ("", "/p/go.sh", "./go.sh"),
        ("", "/p/pkg/serve.py", "pkg.serve"),
    ]


def test_an_episode_never_links_too_much():
    events = [
        wrote(f"/p/f{i}.py", "".join(f"import g{j}\n" for j in range(50)), i) for i in range(1, 21)
    ]
    assert len(find_file_links(events, [f"/p/g{j}.py" for j in range(50)])) == LINKS_MAX


def imports(path, text):
    return list(read_imports(path, text).imports)


def test_python_says_what_it_imports_with_its_dots():
    text = (
        "import os, ledger.auth as a\nfrom . import util\nfrom .store import (\n    links,  # graph\n    rows as r,\n)\n"
        "from ..text import *\n    from late import thing\nimportant = 1\n"
    )
    assert imports("/p/m.py", text) == [
        "os", "ledger.auth", ".util", ".store", ".store.links", ".store.rows", "..text", "late", "late.thing",
    ]  # fmt: skip


def test_what_stands_in_a_long_string_is_no_statement():
    assert imports("/p/m.py", '"""\nimport lies\n"""\nimport truth\n') == ["truth"]
    assert imports("/p/m.py", 'end of it"""\nimport maybe\n') == []
    assert imports("/p/m.py", "# import not_this\n") == []


def test_scripts_say_only_their_relative_imports():
    text = (
        "import React from 'react';\nimport { a,\n  b } from \"./a\";\nimport './side.css'\n"
        "export * from '../up.js';\nconst c = require('./c');\n// import x from './gone'\n"
        "/* import y from './gone' */\nconst t = `\nimport z from './gone'\n`;\nconst d = await import('./d.mjs');\n"
    )
    assert imports("/p/a.tsx", text) == ["./a", "./side.css", "../up.js", "./c", "./d.mjs"]


def test_go_says_its_packages_and_its_module():
    text = 'package main\nimport "fmt"\nimport (\n\t"example.com/app/auth"\n\tl "example.com/app/log"\n\t// "example.com/gone"\n)\n'
    assert imports("/p/main.go", text) == ["fmt", "example.com/app/auth", "example.com/app/log"]
    assert read_imports("/p/go.mod", "module example.com/app\n\ngo 1.22\n").module == (
        "example.com/app"
    )


def test_numbered_lines_are_read_without_their_numbers():
    assert imports("/p/m.py", "     1→import a\n     2→import b\n") == ["a", "b"]


@every_row("path", ["/p/notes.md", "/p/.env", "/p/Makefile", "", "py", "/p/m.rs", "/p/run.sh"])
def test_other_files_say_nothing(path):
    assert read_imports(path, "import a\n") == FileImports()


def test_there_are_never_too_many_names_nor_long_ones():
    text = "".join(f"import m{i}\n" for i in range(500))
    assert len(imports("/p/m.py", text)) == NAMES_MAX
    assert imports("/p/m.py", f"import {'x' * 300}\n") == []


@every_row(
    ("path", "text"),
    [
        ("/p/m.py", "import " + " " * 300_000), ("/p/m.py", "from a import (" * 20_000), ("/p/m.py", '"""' * 100_005),
        ("/p/m.ts", "export const " * 25_000), ("/p/m.ts", "/*" * 150_000), ("/p/m.ts", "require(" * 40_000),
        ("/p/m.go", "import (" * 40_000), ("/p/m.rs", "use crate" + "::a" * 100_000), ("/p/m.sh", "$(dirname " * 30_000),
    ],
)  # fmt: skip
def test_no_text_takes_long(path, text):
    read_imports(path, text)
