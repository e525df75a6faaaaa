"""Codex's memory files: what was learned becomes memories, lists of files and keywords do not.

The form is that which Codex CLI 0.169.0 tells its memory agent to keep to.
"""

from memd.models import GLOBAL_PROJECT
from memd.transfer.foreign_memories import read_codex_memory
from memd.transfer.sources import codex_memory_source

MEMORY = """\
# Task Group: shop / checkout retries
scope: retries of payments; use it before touching src/retry.py
applies_to: cwd=/home/dev/shop; reuse_rule=safe in this checkout

## Task 1: Fix the retry check, done
### rollout_summary_files
- rollout_summaries/a.md (cwd=/home/dev/shop, rollout_path=/h/.codex/x.jsonl, thread_id=1)
### keywords
- retry, attempts, count

## User preferences
- when linting, the user asked: "always ruff, never flake8" -> run ruff only [Task 1]
- when linting, the user asked: "always ruff, never flake8" -> run ruff only [Task 2]

## Reusable knowledge
- The audit log is JSON lines, one object a line;
  a reader can follow it while it grows. [Task 1][Task 2]

## Failures and how to do differently
- range(1, count) stops before count -> use count + 1

# Task Group: elsewhere
applies_to: cwd=any; reuse_rule=general
## Reusable knowledge
- Ports below 1024 need root.
"""
SUMMARY = """\
v1

## User Profile
The user builds a shop in Python.

## General Tips
- Read the tests first.

## What's in Memory
### /home/dev/shop
- retries: retry, attempts
"""


def test_each_item_of_what_was_learned_is_a_memory_of_its_place():
    found = read_codex_memory("MEMORY.md", MEMORY, 5)
    assert [(one.kind.value, one.title) for one in found] == [
        (
            "preference",
            'when linting, the user asked: "always ruff, never flake8" -> run ruff only',
        ),
        ("fact", "The audit log is JSON lines, one object a line;"),
        ("discovery", "range(1, count) stops before count -> use count + 1"),
        ("fact", "Ports below 1024 need root."),
    ]
    assert found[1].text.endswith("one object a line;\na reader can follow it while it grows.")
    assert {one.directory for one in found[:3]} == {"/home/dev/shop"}
    assert (found[3].directory, found[3].project) == (None, "elsewhere")
    assert len({one.part for one in found}) == 4
    again = read_codex_memory("MEMORY.md", "# Task Group: new\n" + MEMORY, 6)
    assert [one.part for one in again] == [one.part for one in found]


def test_what_holds_everywhere_is_global_and_the_index_is_left_out():
    found = read_codex_memory("memory_summary.md", SUMMARY, None)
    assert [(one.text, one.project) for one in found] == [
        ("The user builds a shop in Python.", GLOBAL_PROJECT), ("Read the tests first.", GLOBAL_PROJECT),
    ]  # fmt: skip


def test_the_files_are_found_where_codex_keeps_them(tmp_path):
    folder = tmp_path / ".codex" / "memories"
    folder.mkdir(parents=True)
    for name, text in (("MEMORY.md", MEMORY), ("memory_summary.md", SUMMARY), ("raw_memories.md", "x")):  # fmt: skip
        (folder / name).write_text(text)
    for found in (
        codex_memory_source([], {"HOME": str(tmp_path)}),
        codex_memory_source([folder], {}),
        codex_memory_source([tmp_path / ".codex"], {}),
    ):
        assert [file.path.rpartition("/")[2] for file in found.files] == ["MEMORY.md", "memory_summary.md"]  # fmt: skip
    assert not codex_memory_source([], {"HOME": str(tmp_path / "none")}).files
