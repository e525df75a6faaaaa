import pytest

from memd import specifiers
from memd.specifiers import NAMES_MAX, Named


def imports(path, text):
    return list(specifiers.read(path, text).imports)


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
    assert specifiers.read("/p/go.mod", "module example.com/app\n\ngo 1.22\n").module == (
        "example.com/app"
    )


def test_rust_says_its_modules_and_paths_of_its_own_crate():
    text = "mod auth;\npub(crate) mod log;\nuse crate::store::Row;\nuse std::io;\nmod inner { mod deeper; }\n    mod nested;\n"
    assert imports("/p/src/main.rs", text) == ["mod auth", "mod log", "crate::store::Row"]


def test_a_shell_script_names_others_by_its_own_place():
    text = (
        'source "$(dirname "$0")/lib/common.sh"\n. ${BASH_SOURCE%/*}/env.sh\n'
        'bash "$(dirname "${BASH_SOURCE[0]}")/build.sh" --fast\n"$(dirname "$0")"/check\n./not-certain.sh\n'
    )
    assert specifiers.read("/p/run.sh", text) == Named(
        ("lib/common.sh", "env.sh"), ("build.sh", "check")
    )


def test_numbered_lines_are_read_without_their_numbers():
    assert imports("/p/m.py", "     1→import a\n     2→import b\n") == ["a", "b"]


@pytest.mark.parametrize("path", ["/p/notes.md", "/p/.env", "/p/Makefile", "", "py"])
def test_other_files_say_nothing(path):
    assert specifiers.read(path, "import a\n") == Named()


def test_there_are_never_too_many_names_nor_long_ones():
    text = "".join(f"import m{i}\n" for i in range(500))
    assert len(imports("/p/m.py", text)) == NAMES_MAX
    assert imports("/p/m.py", f"import {'x' * 300}\n") == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/p/m.py", "import " + " " * 300_000), ("/p/m.py", "from a import (" * 20_000), ("/p/m.py", '"""' * 100_005),
        ("/p/m.ts", "export const " * 25_000), ("/p/m.ts", "/*" * 150_000), ("/p/m.ts", "require(" * 40_000),
        ("/p/m.go", "import (" * 40_000), ("/p/m.rs", "use crate" + "::a" * 100_000), ("/p/m.sh", "$(dirname " * 30_000),
    ],
)  # fmt: skip
def test_no_text_takes_long(path, text):
    specifiers.read(path, text)
