"""The JSON schemas of what the MCP tools take (draft 2020-12). Pure.

They are what a model reads, so every field says what it is, in which unit, and what happens without
it. `arguments.py` says the same in types, checked by a test. No `anyOf` at the top of an input
schema: some clients refuse it. Not here: results (results.py), checking (check.py).
"""

from typing import Any

from memd.models import Kind, Stance
from memd.serve import arguments as ask

Schema = dict[str, Any]

KINDS = [kind.value for kind in Kind]


def _text(description: str, longest: int = ask.NAME_CHARACTERS) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": description}


def _whole(description: str, low: int, high: int, default: int | None = None) -> Schema:
    schema = {"type": "integer", "minimum": low, "maximum": high, "description": description}
    return schema if default is None else {**schema, "default": default}


def _flag(description: str, *, default: bool) -> Schema:
    return {"type": "boolean", "default": default, "description": description}


def _many(items: Schema, description: str, longest: int, shortest: int = 0) -> Schema:
    schema = {"type": "array", "items": items, "maxItems": longest, "description": description}
    return {**schema, "minItems": shortest} if shortest else schema


def _time(description: str) -> Schema:
    forms = "ISO 8601 (UTC if no zone), epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week"
    return {
        "type": ["string", "integer"],
        "maxLength": 100,
        "description": f"{description}: {forms}.",
    }


def _input(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_KIND_FILTER = _many({"type": "string", "enum": KINDS}, "Only these kinds.", len(KINDS))
_PROJECT = {
    **_text(
        "'current' (this directory's project and what holds everywhere), 'all', or a project's name or path."
    ),
    "default": "current",
}
_ID = _whole("A memory's number, as in #12.", 1, ask.ID_MAX)
_IDS = _many(_ID, "Numbers of memories, as in #12.", ask.IDS_MAX, 1)

SEARCH = _input(
    {
        "query": {
            "type": "string",
            "maxLength": ask.QUERY_CHARACTERS,
            "description": "What you want to know, in plain words, with names and identifiers as they are."
            ' "phrases", prefix* and OR work. May be left out only if topic_key is given.',
        },
        "k": _whole("How many hits; 5 if left out.", 1, ask.K_MAX),
        "offset": _whole("Skip so many hits: the next page.", 0, 10_000, 0),
        "project": _PROJECT,
        "kinds": _KIND_FILTER,
        "session": _text("Only this session: the beginning of its id, or 'current'."),
        "source": _text(
            "Only what came from there: claude-code, agent, user, or an importer's name."
        ),
        "since": _time("Only what happened at or after"),
        "until": _time("Only what happened at or before"),
        "tags": _many(_text("A tag."), "Only memories with all of these tags.", 20),
        "topic_key": _text("The exact name of one slot of knowledge, such as build.command."),
        "include_superseded": _flag("Also show what a newer memory replaced.", default=False),
        "include_turns": _flag(
            "Also search what was said in past sessions, word for word; shown apart, as turns.",
            default=False,
        ),
        "legs": _many(
            {"type": "string", "enum": ["topic", "lexical", "vector"]},
            "Rank by these legs only.",
            3,
        ),
        "profile": _text(
            "A named ranking recipe: memd, siftcoder, … The configured one if left out."
        ),
        "focus": _many(
            _text("A word, or a glob of files."),
            "What you work on, such as billing or src/auth/**: what it fits counts 1.4 times, for the"
            " rest of the session too; [] ends it.",
            20,
        ),
        "explain": _flag("Also show every candidate and why it missed the cut.", default=False),
        "as_of": _time("See only what was known then, and count ages from there"),
        "min_event": _whole(
            "Wait (at most 2 s) until the event with this sequence number is searchable.",
            0,
            ask.ID_MAX,
        ),
    }
)

TIMELINE = _input(
    {
        "id": _whole("Around this memory.", 1, ask.ID_MAX),
        "at": _time("Around this time"),
        "session": _text(
            "Only of this session: the beginning of its id, or 'current'; from its start, or around id or at."
        ),
        "before": _whole("So many memories before.", 0, ask.AROUND_MAX, ask.AROUND),
        "after": _whole("So many memories after.", 0, ask.AROUND_MAX, ask.AROUND),
        "days": _whole(
            "Instead: everything of so many days (UTC), up to the day of `at`, or today. 1 is that day alone.",
            1,
            ask.DAYS_MAX,
        ),
        "kinds": _KIND_FILTER,
        "project": _PROJECT,
    }
)

WHY = _input(
    {
        "id": {
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": ask.ID_MAX,
            "minLength": 1,
            "maxLength": ask.NAME_CHARACTERS,
            "description": 'A memory (12 or "#12"), or another node: "file:/a/b.py", "event:7".',
        },
        "depth": _whole("How many steps of edges around it.", 1, ask.DEPTH_MAX, ask.DEPTH),
        "project": _PROJECT,
    },
    ("id",),
)

GET = _input({"ids": _IDS, "project": _PROJECT}, ("ids",))

REMEMBER = _input(
    {
        "text": _text("What to remember, complete in itself.", ask.TEXT_CHARACTERS),
        "title": _text("One line that says it; made from the text if left out."),
        "kind": {
            "type": "string",
            "enum": KINDS,
            "default": "note",
            "description": "What it is about.",
        },
        "topic_key": _text(
            "The exact name of its slot (build.command): a new value replaces the old one."
        ),
        "tags": _many(_text("A tag."), "Words to filter by.", 20),
        "files": _many(_text("A path."), "The files that it is about.", 100),
        "project": {
            **_text("'current', or 'global' for what holds everywhere."),
            "default": "current",
        },
        "expires_in": _text(
            "Do not show it any more after this long: 12h, 30d, 2w. Shown for ever if left out."
        ),
    },
    ("text",),
)

FORGET = _input(
    {
        "ids": _IDS,
        "query": _text(
            "Instead of ids: every memory in which all of these words stand.",
            ask.QUERY_CHARACTERS,
        ),
        "session": _text("All of this session: the beginning of its id, or 'current'."),
        "since": _time("Only what happened at or after"),
        "until": _time("Only what happened at or before"),
        "dry_run": _flag("Only say what would go. Pass false to erase for good.", default=True),
        "token": _text("What the dry run returned: then nothing else goes than what it told."),
        "project": _PROJECT,
    }
)

PIN = _input(
    {"id": _ID, "pinned": _flag("false unpins.", default=True), "project": _PROJECT}, ("id",)
)

JUDGE = _input(
    {
        "id": _ID,
        "other": _whole("The other memory's number.", 1, ask.ID_MAX),
        "relation": {
            "type": "string",
            "enum": [stance.value for stance in Stance],
            "description": "What id is to other. supersedes: other no longer holds and is hidden."
            " duplicate: both say the same; other is hidden. contradicts: both cannot hold, and it is open"
            " which does; both stay, marked. compatible: both hold. unrelated: about different things.",
        },
        "reason": _text("Why, in a few words; shown by mem_why."),
        "undo": _flag(
            "Take back what holds between the two instead: a judgment, or what memd decided itself.",
            default=False,
        ),
        "project": _PROJECT,
    },
    ("id", "other"),
)
