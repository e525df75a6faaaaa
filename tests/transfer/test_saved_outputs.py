"""Files beside a transcript are read where they may be, and nowhere else."""

import os

import pytest

from memd.transfer.session_files import TranscriptLocation, locate_transcript, read_saved_output

SESSION = "319a6304-209e-442a-844b-fd52e826e7ff"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "-home-dev-ledger"
    (folder / SESSION / "tool-results").mkdir(parents=True)
    (folder / SESSION / "subagents").mkdir()
    return folder


def save_result(project, name, text, session=SESSION):
    folder = project / session / "tool-results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def saved_path(name, session=SESSION):
    return f"/home/other/.claude/projects/-elsewhere/{session}/tool-results/{name}"


def test_the_path_of_a_transcript_gives_project_session_and_agent(project):
    assert locate_transcript(str(project / f"{SESSION}.jsonl")) == TranscriptLocation(
        str(project), SESSION
    )
    agent = project / SESSION / "subagents" / "agent-a1.jsonl"
    assert locate_transcript(str(agent)) == TranscriptLocation(str(project), SESSION, "a1")
    agent.with_suffix(".meta.json").write_text('{"agentType": "Explore", "description": "look"}')
    assert locate_transcript(str(agent)).agent_type == "Explore"
    nested = project / SESSION / "subagents" / "workflows" / "agent-a2.jsonl"
    assert locate_transcript(str(nested)) == TranscriptLocation(str(project), SESSION, "a2")
    assert locate_transcript(str(project / "agent-0c1d.jsonl")) == TranscriptLocation(
        str(project), "", "0c1d"
    )


@pytest.mark.parametrize("meta", ["{torn", "[]", '{"agentType": 7}', "[" * 100_000])
def test_a_malformed_description_is_ignored(project, meta):
    agent = project / SESSION / "subagents" / "agent-a1.jsonl"
    agent.with_suffix(".meta.json").write_text(meta)
    assert locate_transcript(str(agent)).agent_type is None


def test_a_saved_result_is_found_beside_a_transcript_that_was_moved(project):
    save_result(project, "b1.txt", "all of it\n")
    here = locate_transcript(str(project / f"{SESSION}.jsonl"))
    assert read_saved_output(here, saved_path("b1.txt")) == "all of it\n"
    assert read_saved_output(here, rf"C:\Users\x\{SESSION}\tool-results\b1.txt") == "all of it\n"
    assert read_saved_output(here, saved_path("gone.txt")) is None


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        "/x/../tool-results/secret.txt",
        "/x/./tool-results/..",
        "tool-results/",
        "",
        "/",
        "\0.txt",
        f"/{SESSION}/tool-results/.hidden",
    ],
)
def test_a_path_that_leads_elsewhere_finds_nothing(project, tmp_path, path):
    save_result(project, ".hidden", "x")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "tool-results").mkdir()
    (tmp_path / "tool-results" / "secret.txt").write_text("secret")
    assert read_saved_output(locate_transcript(str(project / f"{SESSION}.jsonl")), path) is None


def test_links_pipes_and_folders_are_not_results(project, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    results = project / SESSION / "tool-results"
    (results / "link.txt").symlink_to(tmp_path / "secret.txt")
    (results / "folder.txt").mkdir()
    os.mkfifo(results / "pipe.txt")
    (tmp_path / "outside" / "tool-results").mkdir(parents=True)
    (tmp_path / "outside" / "tool-results" / "x.txt").write_text("secret")
    (project / "linked").symlink_to(tmp_path / "outside")
    here = locate_transcript(str(project / f"{SESSION}.jsonl"))
    for name in ("link.txt", "folder.txt", "pipe.txt"):
        assert read_saved_output(here, saved_path(name)) is None
    assert read_saved_output(here, saved_path("x.txt", session="linked")) is None


def test_both_ends_of_a_huge_result_are_read_in_whole_lines(project):
    path = project / SESSION / "tool-results" / "huge.txt"
    with path.open("wb") as file:
        file.write(b"first line\n" + b"x" * 200_000 + b"\n")
        file.truncate(5 * 1024**3)  # a hole: nothing on the disk, five gigabytes to read
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast line\n")
    text = read_saved_output(
        locate_transcript(str(project / f"{SESSION}.jsonl")), saved_path("huge.txt")
    )
    assert text.startswith("first line\n")
    assert text.endswith("last line\n")
    assert "bytes left in the file" in text
    assert len(text) < 300_000
