"""Everything that `memd import` can read, in one table."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memd.transfer import sources
from memd.transfer.session_sources import SESSION_SOURCES, SessionSource
from memd.transfer.sources import ImportSource


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Memories of another program, or of a client."""

    name: str
    title: str
    find: Callable[[Iterable[Path], Mapping[str, str]], ImportSource]
    """(paths, environment) → its files: these, or where the program keeps them."""
    location: str
    """Where its files are by default; empty: the user must name them."""
    noun: str
    tier: str = "agent"
    hint: str = ""
    """What to know about the project of new memories, if the user has named none."""


Source = SessionSource | MemorySource

_MEMORY_SOURCES = (
    MemorySource(
        "knowledge-graph", "MCP memory server", sources.knowledge_graph_source,
        "$MEMORY_FILE_PATH, Claude's configuration and the npm cache", "memory.jsonl",
    ),
    MemorySource(
        "claude-memory", "Claude Code's memory files", sources.claude_memory_source,
        "~/.claude/projects/*/memory", "memory file", "file",
    ),
    MemorySource(
        "codex-memory", "Codex CLI's memory files", sources.codex_memory_source,
        "~/.codex/memories", "memory file", "file",
    ),
    MemorySource(
        "claude-mem", "claude-mem", sources.claude_mem_source, "~/.claude-mem/claude-mem.db",
        "database",
    ),
    MemorySource(
        "markdown", "notes", sources.markdown_source, "", "note", "file",
        "stored in the project of that folder; with `--project global` they are seen everywhere",
    ),
)  # fmt: skip

CATALOGUE: Mapping[str, Source] = {**SESSION_SOURCES, **{one.name: one for one in _MEMORY_SOURCES}}
"""Name of a source → source."""
