import json

import pytest

from memd.errors import BadRequest
from memd.models import Kind
from memd.transfer import sources
from memd.transfer.record import ReadIssues
from tests.claude_mem_files import NEW, OLD, build


@pytest.fixture
def environ(tmp_path):
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    return {"HOME": str(tmp_path)}


def entries(shelf):
    trouble = ReadIssues()
    found = [entry for cargo in shelf.cargoes for entry, _ in cargo.read(trouble)]
    return found, trouble


def test_notes_of_a_folder_are_named_by_their_path_in_it(tmp_path, environ):
    (tmp_path / "n" / "sub").mkdir(parents=True)
    (tmp_path / "n" / "sub" / "a.md").write_text("# A\ntext")
    (tmp_path / "n" / "b.md").write_bytes(b"\0")
    (tmp_path / "n" / "c.md").write_bytes(b"M\xfcde")
    (tmp_path / "n" / "d.md").write_bytes(b"\n")
    shelf = sources.markdown_source([tmp_path / "n"], environ)
    found, trouble = entries(shelf)
    assert [one.title for one in found] == ["c.md", "sub/a.md"]
    assert trouble.skipped == ["empty"]
    assert shelf.notes == [
        f"left out: {tmp_path}/n/b.md: binary",
        f"{tmp_path}/n/c.md is not UTF-8; it was read as Windows-1252",
    ]
    assert {cargo.directory for cargo in shelf.cargoes} == {str(tmp_path / "n")}
    (one,) = sources.markdown_source([tmp_path / "n" / "c.md"], environ).cargoes
    assert one.path == str(tmp_path / "n" / "c.md")


def test_what_is_not_there_is_told(tmp_path, environ):
    gone = tmp_path / "gone"
    for find in (
        sources.markdown_source,
        sources.knowledge_graph_source,
        sources.claude_mem_source,
    ):
        assert find([gone], environ).failed == {str(gone): "No such file or directory"}
    assert sources.claude_memory_source([gone], environ).cargoes == []
    for find in (
        sources.claude_memory_source,
        sources.knowledge_graph_source,
        sources.claude_mem_source,
    ):
        assert find([], environ) == sources.ImportSource(
            is_kept_tidy=find is sources.claude_memory_source
        )


def test_a_graph_is_read_and_an_empty_one_takes_nothing_away(tmp_path, environ, monkeypatch):
    graph = tmp_path / "g" / "memory.jsonl"
    graph.parent.mkdir()
    graph.write_text(json.dumps({"type": "entity", "name": "Ann", "observations": ["x"]}))
    (tmp_path / "g" / "other.txt").write_text("x")
    shelf = sources.knowledge_graph_source([graph.parent], environ)
    assert [one.part for one in entries(shelf)[0]] == ["Ann"]
    assert (shelf.cargoes[0].project, shelf.cargoes[0].directory) == ("global", None)
    graph.write_text("")
    assert entries(shelf)[1].broken == ["no entity in it"]
    monkeypatch.setattr(sources, "_GRAPH_BYTES_MAX", 10)
    with pytest.raises(BadRequest, match="larger than"):
        entries(shelf)


def test_claude_s_memory_belongs_to_the_project_that_a_transcript_recorded(tmp_path, environ):
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
    shelf = sources.claude_memory_source([], environ)
    found, trouble = entries(shelf)
    assert [one.text for one in found] == [
        "Look at the tests first",
        "Use tabs",
        "Never on Friday",
    ]
    assert found[2].kind is Kind.INSTRUCTION
    assert trouble.skipped == ["an index of the notes beside it"]
    assert [(c.directory, c.project) for c in shelf.cargoes] == [
        (None, "global"),
        (None, "-gone-app"),
        ("/home/me/my-app", "-home-me-my-app"),
        ("/home/me/my-app", "-home-me-my-app"),
    ]
    assert "nothing tells which directory -gone-app is" in shelf.notes[0]
    for path in (folder, folder / "memory", folder.parent, tmp_path / ".claude"):
        assert sources.claude_memory_source([path], environ).cargoes


def test_both_layouts_of_claude_mem_are_read(tmp_path, environ):
    folder = tmp_path / ".claude" / "projects" / "-home-me-ledger"
    folder.mkdir()
    (folder / "session-new.jsonl").write_text(json.dumps({"cwd": "/home/me/ledger"}))
    (tmp_path / ".claude-mem").mkdir()
    owner = build(tmp_path / ".claude-mem" / "claude-mem.db", NEW)
    build(tmp_path / "old.db", OLD).close()
    shelf = sources.claude_mem_source([], environ)
    found, trouble = entries(shelf)
    assert [(one.kind.value, one.session, one.directory) for one in found] == [
        ("fix", "session-new", "/home/me/ledger"),
        ("session", "session-new", "/home/me/ledger"),
        ("instruction", None, None),
    ]
    assert trouble.skipped == ["observations without words"]
    assert shelf.notes == ["its prompts (1) are left out; `memd import claude-code` reads them"]
    before = shelf.cargoes[0].stamp
    owner.execute("UPDATE observations SET title = 'x' WHERE id = 8")
    assert sources.claude_mem_source([], environ).cargoes[0].stamp != before
    owner.close()
    (one,), _ = entries(sources.claude_mem_source([tmp_path / "old.db"], environ))
    assert (one.kind, one.text, one.session) == (
        Kind.DECISION, "Chose Decimal for money", "session-old",
    )  # fmt: skip
    assert (one.project, one.directory) == ("ledger", None)


def test_a_database_of_another_program_is_refused(tmp_path, environ):
    build(tmp_path / "a.db", "CREATE TABLE t (x)").close()
    with pytest.raises(BadRequest, match="not claude-mem's"):
        entries(sources.claude_mem_source([tmp_path / "a.db"], environ))
