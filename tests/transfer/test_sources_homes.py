import json
from pathlib import Path

import pytest

from memd.transfer import sources


@pytest.fixture
def base(tmp_path):
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    return tmp_path / ".claude"


def transcript(folder, *records, name="s.jsonl"):
    folder.mkdir(exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (folder / name).write_text("".join(line + "\n" for line in lines))


def test_other_memories_are_where_the_environment_says(tmp_path, base):
    environ = {"HOME": str(tmp_path)}
    assert sources.claude_directories(environ) == [base]
    assert sources.claude_directories({**environ, "CLAUDE_CONFIG_DIR": "/no/such"}) == []
    assert sources.claude_mem_database(environ) == tmp_path / ".claude-mem" / "claude-mem.db"
    assert sources.claude_mem_database({"CLAUDE_MEM_DATA_DIR": "/d"}) == Path(
        "/d/claude-mem.db"
    )


def test_graphs_are_found_by_the_environment_the_client_and_the_cache(tmp_path):
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


def test_memory_folders_are_those_of_projects_and_of_agents(base):
    for name in ("projects/-a/memory", "projects/-b", "agent-memory/reviewer"):
        (base / name).mkdir(parents=True)
    assert sources.find_memory_folders(base) == [
        base / "agent-memory" / "reviewer",
        base / "projects" / "-a" / "memory",
    ]


def test_the_directory_that_a_transcript_recorded_is_the_one(base):
    folder = base / "projects" / "-home-me-my-app"
    transcript(
        folder, "{", {"type": "x"}, {"cwd": "/home/me/my-app/sub"}, {"cwd": "/home/me/my-app"}
    )
    assert sources.resolve_project_directory(folder) == "/home/me/my-app"
    transcript(folder, {"cwd": "/home/me/elsewhere"})
    assert sources.resolve_project_directory(folder) == "/home/me/elsewhere"
    assert sources.session_folders(base) == {"s": folder}


def test_without_a_transcript_the_name_is_held_against_the_directories_that_there_are(
    base, tmp_path
):
    real = tmp_path / "my-app.v2" / "sub_dir"
    real.mkdir(parents=True)
    folder = base / "projects" / sources._SIGN.sub("-", str(real))
    assert sources.resolve_project_directory(folder) == str(real)
    (tmp_path / "my" / "app" / "v2" / "sub_dir").mkdir(parents=True)
    assert sources.resolve_project_directory(folder) is None
    assert (
        sources.resolve_project_directory(base / "projects" / "-no-such-place-at-all") is None
    )
