"""Speakers for rows that do not name theirs: of an older vault, an older export or another program.

A migration and the import of records call these, so that both find the same speaker.
"""

import unicodedata
from typing import Any

import apsw

from memd.models import Authority, Kind

_IMPORTED = {
    "user": Authority.USER_HAND,
    "import:markdown": Authority.TOOL_OUTPUT,
    "import:okf": Authority.TOOL_OUTPUT,
    "import:claude-memory": Authority.AGENT_CALL,
    "import:knowledge-graph": Authority.AGENT_CALL,
}
"""Source of memories → whose they are: what the user enters, notes in files that anybody may have written, files that
the agent keeps by its tools. What another program has summed up is an agent's text."""
_SAID = {
    "user": Authority.USER_PROMPT,
    "agent": Authority.AGENT_TEXT,
    "tool": Authority.TOOL_OUTPUT,
}
_EXPLICIT = {"user": Authority.USER_HAND, "agent": Authority.AGENT_CALL}
_KINDS_OF_USER = frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK})
"""Kinds that are only captured from the user's own sentences."""
_LINE_OF_USER = "User: “"
"""The beginning of a line of a captured decision that quotes the user."""
_ROWS_PER_READ = 1_000


def fold_topic(topic_key: str) -> str:
    """A topic key as it is stored: keys that differ only in case name one slot."""
    folded = unicodedata.normalize("NFKC", topic_key).casefold()
    # A few letters fold into what folds again.
    return folded if folded == topic_key else fold_topic(folded)


def imported_authority(source: str, speaker: str | None = None) -> Authority:
    """Return the authority of what an importer (`import:markdown`) or the user brings.

    `speaker`: whose word the file says that it is. A file can say less of itself than its source allows, never more.
    """
    allowed = _IMPORTED.get(source, Authority.AGENT_TEXT)
    return allowed if speaker is None else min(allowed, _SAID[speaker])


def correct_authority(source: str, authority: int) -> int:
    """Return the code of the authority of a stored memory; an earlier memd took notes in files for the user's prompts."""
    is_file = _IMPORTED.get(source) is Authority.TOOL_OUTPUT
    return (
        Authority.TOOL_OUTPUT.code
        if is_file and authority == Authority.USER_PROMPT.code
        else authority
    )


def derive_authority(source: str, kind: str, rule: str, body: str) -> Authority:
    """Derive the authority of a stored memory from where it comes from."""
    if source in _EXPLICIT:
        return _EXPLICIT[source]
    if source.startswith("import:"):
        return imported_authority(source)
    if kind == Kind.DECISION and rule.startswith("decision:"):
        is_users = any(line.startswith(_LINE_OF_USER) for line in body.splitlines())
        return Authority.USER_PROMPT if is_users else Authority.AGENT_TEXT
    if kind in _KINDS_OF_USER and rule.startswith(f"{kind}:"):
        return Authority.USER_PROMPT
    return Authority.TOOL_OUTPUT if kind == Kind.FAILURE else Authority.AGENT_TEXT


def store_speakers(connection: apsw.Connection) -> None:
    """Store the speaker of every memory of an older vault, and fold the topic keys."""
    last = 0
    rows: list[tuple[Any, ...]]
    while rows := connection.execute(
        "SELECT id, source, kind, rule, body, topic_key FROM summaries WHERE id > ? ORDER BY id LIMIT ?",
        (last, _ROWS_PER_READ),
    ).fetchall():
        last = rows[-1][0]
        connection.executemany(
            "UPDATE summaries SET authority = ? WHERE id = ?",
            [(derive_authority(*told).code, number) for number, *told, _ in rows],
        )
        # Apart, and only what changes: a memory with another key is indexed again.
        connection.executemany(
            "UPDATE summaries SET topic_key = ? WHERE id = ?",
            [
                (folded, number)
                for number, *_, topic in rows
                if topic is not None and (folded := fold_topic(topic)) != topic
            ],
        )
