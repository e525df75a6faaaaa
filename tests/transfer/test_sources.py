import json
import os
from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.models import Kind
from memd.transfer import ReadIssues, sources
from memd.transfer.sources import markdown_source
from tests.claude_mem_files import NEW, OLD, build
from tests.tables import every_row


@pytest.fixture
def environ(tmp_path):
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    return {"HOME": str(tmp_path)}


def read(source):
    issues = ReadIssues()
    found = [memory for file in source.files for memory, _ in file.read(issues)]
    return found, issues


def test_notes_are_named_by_their_path_in_the_folder(tmp_path, environ):
    (tmp_path / "n" / "sub").mkdir(parents=True)
    (tmp_path / "n" / "sub" / "a.md").write_text("# A\ntext")
    (tmp_path / "n" / "b.md").write_bytes(b"\0")
    (tmp_path / "n" / "c.md").write_bytes(b"M\xfcde")
    (tmp_path / "n" / "d.md").write_bytes(b"\n")
    source = sources.markdown_source([tmp_path / "n"], environ)
    found, issues = read(source)
    assert [one.title for one in found] == ["c.md", "sub/a.md"]
    assert issues.skipped == ["empty"]
    assert source.messages == [
        f"left out: {tmp_path}/n/b.md: binary",
        f"{tmp_path}/n/c.md is not UTF-8; it was read as Windows-1252",
    ]
    assert {file.directory for file in source.files} == {str(tmp_path / "n")}
    (one,) = sources.markdown_source([tmp_path / "n" / "c.md"], environ).files
    assert one.path == str(tmp_path / "n" / "c.md")


def test_a_missing_file_is_reported(tmp_path, environ):
    gone = tmp_path / "gone"
    for find in (
        sources.markdown_source,
        sources.knowledge_graph_source,
        sources.claude_mem_source,
    ):
        assert find([gone], environ).failed == {str(gone): "No such file or directory"}
    assert sources.claude_memory_source([gone], environ).files == []
    for find in (
        sources.claude_memory_source,
        sources.knowledge_graph_source,
        sources.claude_mem_source,
    ):
        assert find([], environ) == sources.ImportSource(
            withdraws_missing=find is sources.claude_memory_source
        )


def test_a_graph_is_read_and_an_empty_one_is_broken(tmp_path, environ, monkeypatch):
    graph = tmp_path / "g" / "memory.jsonl"
    graph.parent.mkdir()
    graph.write_text(json.dumps({"type": "entity", "name": "Ann", "observations": ["x"]}))
    (tmp_path / "g" / "other.txt").write_text("x")
    source = sources.knowledge_graph_source([graph.parent], environ)
    assert [one.part for one in read(source)[0]] == ["Ann"]
    assert (source.files[0].project, source.files[0].directory) == ("global", None)
    graph.write_text("")
    assert read(source)[1].broken == ["no entity in it"]
    monkeypatch.setattr(sources, "GRAPH_BYTES_MAX", 10)
    with pytest.raises(BadRequest, match="larger than"):
        read(source)


def test_memory_files_belong_to_the_directory_that_a_transcript_recorded(tmp_path, environ):
    folder = tmp_path / ".claude" / "projects" / "-home-me-my-app"
    (folder / "memory").mkdir(parents=True)
    (folder / "s.jsonl").write_text(json.dumps({"cwd": "/home/me/my-app"}))
    (folder / "memory" / "MEMORY.md").write_text("- [Deploy](deploy.md) — x\n")
    (folder / "memory" / "deploy.md").write_text(
        "---\nname: d\ntype: feedback\n---\nNever on Friday"
    )
    lost = tmp_path / ".claude" / "projects" / "-gone-app" / "memory"
    lost.mkdir(parents=True)
    (lost / "MEMORY.md").write_text("Use tabs")
    agent = tmp_path / ".claude" / "agent-memory" / "reviewer"
    agent.mkdir(parents=True)
    (agent / "MEMORY.md").write_text("Look at the tests first")
    source = sources.claude_memory_source([], environ)
    found, issues = read(source)
    assert [one.text for one in found] == ["Look at the tests first", "Use tabs", "Never on Friday"]
    assert found[2].kind is Kind.INSTRUCTION
    assert issues.skipped == ["an index of the notes beside it"]
    assert [(file.directory, file.project) for file in source.files] == [
        (None, "global"),
        (None, "-gone-app"),
        ("/home/me/my-app", "-home-me-my-app"),
        ("/home/me/my-app", "-home-me-my-app"),
    ]
    assert "the directory of -gone-app is unknown" in source.messages[0]
    for path in (folder, folder / "memory", folder.parent, tmp_path / ".claude"):
        assert sources.claude_memory_source([path], environ).files


def test_both_layouts_of_claude_mem_are_read(tmp_path, environ):
    folder = tmp_path / ".claude" / "projects" / "-home-me-ledger"
    folder.mkdir()
    (folder / "session-new.jsonl").write_text(json.dumps({"cwd": "/home/me/ledger"}))
    (tmp_path / ".claude-mem").mkdir()
    owner = build(tmp_path / ".claude-mem" / "claude-mem.db", NEW)
    build(tmp_path / "old.db", OLD).close()
    source = sources.claude_mem_source([], environ)
    found, issues = read(source)
    assert [(one.kind.value, one.session, one.directory) for one in found] == [
        ("fix", "session-new", "/home/me/ledger"),
        ("session", "session-new", "/home/me/ledger"),
        ("instruction", None, None),
    ]
    assert issues.skipped == ["observations without words"]
    assert source.messages == ["its prompts (1) are left out; `memd import claude-code` reads them"]
    before = source.files[0].stamp
    owner.execute("UPDATE observations SET title = 'x' WHERE id = 8")
    assert sources.claude_mem_source([], environ).files[0].stamp != before
    owner.close()
    (one,), _ = read(sources.claude_mem_source([tmp_path / "old.db"], environ))
    assert (one.kind, one.text, one.session) == (
        Kind.DECISION, "Chose Decimal for money", "session-old",
    )  # fmt: skip
    assert (one.project, one.directory) == ("ledger", None)


def test_a_database_of_another_program_is_refused(tmp_path, environ):
    build(tmp_path / "a.db", "CREATE TABLE t (x)").close()
    with pytest.raises(BadRequest, match="not claude-mem's"):
        read(sources.claude_mem_source([tmp_path / "a.db"], environ))


# ── Notes in a folder ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def notes(tmp_path):
    top = tmp_path / "repo" / "notes"
    for name in ("sub", "node_modules", ".hidden", "drafts"):
        (top / name).mkdir(parents=True)
        (top / name / "a.md").write_text("x")
    (top / "b.Markdown").write_text("x")
    (top / "c.txt").write_text("x")
    (top / ".dot.md").write_text("x")
    return top


def names(source, top):
    return [Path(file.path).relative_to(top).as_posix() for file in source.files]


def test_notes_are_found_and_others_are_left_out_with_a_reason(notes):
    (notes / ".gitignore").write_text("drafts/\n")
    (notes / "out.md").symlink_to("/etc/passwd")
    (notes / "in.md").symlink_to(notes / "b.Markdown")
    (notes / "etc").symlink_to("/etc")
    (notes / "circle").symlink_to(notes)
    source = markdown_source([notes], {})
    assert names(source, notes) == ["b.Markdown", "sub/a.md"]
    assert source.skipped == {"hidden": 2, "packages of others": 1, "a link": 4, ".gitignore": 1}


def test_the_gitignore_of_the_repository_above_applies(notes):
    (notes.parent / ".git").mkdir()
    (notes.parent / ".gitignore").write_text("/notes/sub\n")
    (notes.parent.parent / ".gitignore").write_text("*\n")
    assert names(markdown_source([notes], {}), notes) == ["b.Markdown", "drafts/a.md"]


@every_row(
    ("excludes", "config"),
    [
        (".git/info/exclude", {}),
        ("home/.config/git/ignore", {}),
        ("home/mine", {"home/.gitconfig": '[user]\n\tname = A\n[core]\n\tExcludesFile = "~/mine"\n'}),
        ("home/mine", {"home/.config/git/config": "[core] excludesfile = ~/mine # mine\n"}),
        ("mine", {".git/config": "[core]\n\tbare = false\n\texcludesFile = mine\n[a]\n\tb = c\n"}),
    ],
)  # fmt: skip
def test_what_git_excludes_outside_of_gitignore_is_left_out_as_well(notes, excludes, config):
    top = notes.parent
    for name, text in {excludes: "sub/\n*.Markdown\n", ".git/HEAD": "x", **config}.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    source = markdown_source([notes], {"HOME": str(top / "home")})
    assert (names(source, notes), source.skipped[".gitignore"]) == (["drafts/a.md"], 2)
    (notes / ".gitignore").write_text("!b.Markdown\n")  # is nearer, so it goes first
    assert "b.Markdown" in names(markdown_source([notes], {"HOME": str(top / "home")}), notes)
    for name in (excludes, *config, "notes/.gitignore"):
        (top / name).unlink()


def test_a_worktree_has_the_excludes_of_its_repository(notes, tmp_path):
    own = tmp_path / "main" / ".git" / "worktrees" / "n"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own.parent.parent / "info").mkdir()
    (own.parent.parent / "info" / "exclude").write_text("drafts\n")
    (notes / ".git").write_text(f"gitdir: {own}\n")
    assert names(markdown_source([notes], {"HOME": "/"}), notes) == ["b.Markdown", "sub/a.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every directory")
def test_a_directory_without_permission_is_reported(notes):
    (notes / "sub").chmod(0)
    try:
        assert list(markdown_source([notes], {}).failed) == [str(notes / "sub")]
    finally:
        (notes / "sub").chmod(0o700)


@every_row(
    ("raw", "text"),
    [
        ("Müde".encode(), ("Müde", "UTF-8")),
        ("Müde".encode("latin-1"), ("Müde", "Windows-1252")),
        ("Müde".encode("utf-16"), ("Müde", "UTF-16")),
        (b"", ("", "UTF-8")),
    ],
)
def test_a_text_is_decoded_by_its_encoding(raw, text):
    assert sources.decode_text(raw) == text


def test_huge_and_irregular_files_are_left_out(notes):
    with (notes / "sub" / "a.md").open("wb") as file:
        file.truncate(1024**3)
    os.mkfifo(notes / "pipe.md")
    for name, reason in (("sub/a.md", "larger than 4 MiB"), ("pipe.md", "no regular file")):
        source = markdown_source([notes / name], {})
        assert read(source) == ([], ReadIssues(unread=reason))
        assert source.messages == [f"left out: {notes / name}: {reason}"]


# ── Where other programs keep their memories ─────────────────────────────────────────────────────


@pytest.fixture
def base(tmp_path):
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    return tmp_path / ".claude"


def write_transcript(folder, *records, name="s.jsonl"):
    folder.mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (folder / name).write_text("".join(line + "\n" for line in lines))


def test_graphs_are_found_by_environment_client_configuration_and_npm_cache(tmp_path):
    cache = tmp_path / ".npm/_npx/abc/node_modules/@modelcontextprotocol/server-memory/dist"
    cache.mkdir(parents=True)
    for file in (cache / "memory.jsonl", tmp_path / "a.jsonl", tmp_path / "b.jsonl"):
        file.write_text("")
    servers = {
        "memory": {"env": {"MEMORY_FILE_PATH": "~/b.jsonl"}},
        "gone": {"env": {"MEMORY_FILE_PATH": "/gone"}},
        "odd": {"env": []},
    }
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    environ = {"HOME": str(tmp_path), "MEMORY_FILE_PATH": str(tmp_path / "a.jsonl")}
    assert sources.find_knowledge_graphs(environ) == [
        tmp_path / "a.jsonl",
        tmp_path / "b.jsonl",
        cache / "memory.jsonl",
    ]
    (tmp_path / ".claude.json").write_text("{")
    assert len(sources.find_knowledge_graphs(environ)) == 2


def test_a_project_directory_is_read_from_a_transcript(base):
    folder = base / "projects" / "-home-me-my-app"
    write_transcript(
        folder, "{", {"type": "x"}, {"cwd": "/home/me/my-app/sub"}, {"cwd": "/home/me/my-app"}
    )
    assert sources.resolve_project_directory(folder) == "/home/me/my-app"
    write_transcript(folder, {"cwd": "/home/me/elsewhere"})
    assert sources.resolve_project_directory(folder) == "/home/me/elsewhere"
    assert sources.session_folders(base) == {"s": folder}


def test_without_a_transcript_the_directory_is_found_by_its_name(base, tmp_path):
    real = tmp_path / "my-app.v2" / "sub_dir"
    real.mkdir(parents=True)
    folder = base / "projects" / sources.name_folder(str(real))
    assert sources.resolve_project_directory(folder) == str(real)
    (tmp_path / "my" / "app" / "v2" / "sub_dir").mkdir(parents=True)
    assert sources.resolve_project_directory(folder) is None
    assert sources.resolve_project_directory(base / "projects" / "-no-such-place-at-all") is None
