"""What is shared with a team, as records, and what a teammate's record may be here. Pure.

A record is the whole memory, or says that it is withdrawn (superseded, expired, unshared) or forgotten.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from memd.errors import BadRequest, RecordTooNew
from memd.models import Authority, Draft, Kind
from memd.sharing.records import UNDERSTOOD as RECORDS_UNDERSTOOD
from memd.store.sharing.team import TEAM_SOURCE, SharedMemory
from memd.text import digest, one_line

FORMAT = 1
UNDERSTOOD = f"{FORMAT} {RECORDS_UNDERSTOOD}"
"""Names all that this memd understands of a team's records: what was left for a newer one is read again when it changes."""
SHARED_KINDS = (
    Kind.DECISION, Kind.FIX, Kind.FAILURE, Kind.CHANGE, Kind.DISCOVERY, Kind.FACT, Kind.NOTE,
)  # fmt: skip
"""Kinds that a team sees. Preferences, tasks and sessions are one person's own."""
State = Literal["shared", "withdrawn", "forgotten"]
_TITLE_CHARACTERS_MAX = 500
_TEXT_BYTES_MAX = 64 * 1024
_LIST_MAX = 1_000
_TIME_MAX = 2**53


@dataclass(frozen=True, slots=True)
class TeamRecord:
    """What a record says. `memory` is None unless it is shared."""

    state: State
    memory: SharedMemory | None = None


def shared_kinds(*, has_instructions: bool) -> tuple[Kind, ...]:
    """The kinds that are shared: instructions only on purpose, because teammates' agents follow them."""
    return (*SHARED_KINDS, Kind.INSTRUCTION) if has_instructions else SHARED_KINDS


def write_record(memory: SharedMemory) -> str:
    """A memory as a record: one line of JSON, the same for the same memory."""
    fields = {
        "kind": memory.kind.value, "title": memory.title, "body": memory.body,
        "topic_key": memory.topic_key, "tags": memory.tags, "files": memory.files, "at": memory.at,
        "expires_at": memory.expires_at, "confidence": memory.confidence, "quality": memory.quality,
    }  # fmt: skip
    return _to_json({"format": FORMAT, "state": "shared", "memory": fields})


def write_removal(*, is_forgotten: bool) -> str:
    """The record of a memory that is shared no more."""
    return _to_json({"format": FORMAT, "state": "forgotten" if is_forgotten else "withdrawn"})


def _to_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "replace").decode()


def parse_record(text: str, redact: Callable[[str], str]) -> TeamRecord:
    """Check a record that a teammate wrote, redact and return it. BadRequest if no memd would write it.

    RecordTooNew if this memd cannot understand it. Fields that it does not know stay in the author's log.
    """
    try:
        found = json.loads(text)
        if "\\u" in text:
            json.dumps(
                found, ensure_ascii=False
            ).encode()  # half a surrogate pair is no text that the vault could keep
        state = found["state"]
        if type(found["format"]) is not int or found["format"] > FORMAT:
            raise RecordTooNew(f"format {str(found['format'])[:20]}")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadRequest("it is no record of a team's memory") from None
    if state in ("withdrawn", "forgotten"):
        return TeamRecord(state)
    fields = found.get("memory")
    if isinstance(state, str) and state != "shared":
        raise RecordTooNew(f"state {state[:40]}")
    if state != "shared" or not isinstance(fields, dict):
        raise BadRequest("it is no record of a team's memory")
    return TeamRecord("shared", _read_memory(fields, redact))


def _read_memory(fields: dict[str, Any], redact: Callable[[str], str]) -> SharedMemory:
    kind, topic_key = fields.get("kind"), fields.get("topic_key")
    if isinstance(kind, str) and kind not in list(Kind):
        raise RecordTooNew(f"kind {kind[:40]}")
    if not isinstance(kind, str) or kind not in {
        one.value for one in shared_kinds(has_instructions=True)
    }:
        raise BadRequest(f"its kind, {str(kind)[:40]!r}, is none that a team shares")
    if topic_key is not None:
        topic_key = redact(_read_text(fields, "topic_key", _TITLE_CHARACTERS_MAX))
    return SharedMemory(
        Kind(kind),
        one_line(redact(_read_text(fields, "title", _TITLE_CHARACTERS_MAX)), 200),
        redact(_read_text(fields, "body", _TEXT_BYTES_MAX)),
        topic_key,
        _read_texts(fields, "tags", redact),
        _read_texts(fields, "files", redact),
        _read_time(fields, "at"),
        None if fields.get("expires_at") is None else _read_time(fields, "expires_at"),
        _read_share(fields, "confidence"),
        _read_share(fields, "quality"),
    )


def _read_text(fields: dict[str, Any], name: str, most: int) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or len(value.encode("utf-8", "replace")) > 4 * most:
        raise BadRequest(f"its {name} is no text, or too long")
    return value.replace("\0", "")


def _read_texts(fields: dict[str, Any], name: str, redact: Callable[[str], str]) -> tuple[str, ...]:
    values = fields.get(name)
    if not isinstance(values, list) or len(values) > _LIST_MAX:
        raise BadRequest(f"its {name} are no list, or too many")
    if not all(isinstance(one, str) and len(one) <= _TITLE_CHARACTERS_MAX for one in values):
        raise BadRequest(f"its {name} are no texts, or too long")
    return tuple(redact(one.replace("\0", "")) for one in values)


def _read_time(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value <= _TIME_MAX:
        raise BadRequest(f"its {name} is no time")
    return value


def _read_share(fields: dict[str, Any], name: str) -> float:
    value = fields.get(name)
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadRequest(f"its {name} is no share")
    return float(value)


def make_uid(project: str, author: str, name: str) -> str:
    """What a teammate's memory is called here: no author can name, and so replace, another's."""
    return digest("team", project, author, name)


def make_draft(memory: SharedMemory) -> Draft:
    """A teammate's memory as it is written here: never more than an agent's word, whoever said it there."""
    return Draft(
        slot="memory", kind=memory.kind, title=memory.title, body=memory.body, at=memory.at,
        rule=TEAM_SOURCE, sources=(), tags=memory.tags, files=memory.files,
        topic_key=memory.topic_key, expires_at=memory.expires_at, confidence=memory.confidence,
        quality=memory.quality, authority=Authority.AGENT_CALL,
    )  # fmt: skip


def propose_name(remote: str, names: Collection[str]) -> str | None:
    """The one of these names that a git remote (`host/owner/app`) is most likely meant by: the longest part of it."""
    parts = remote.split("/")
    candidates = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((one for one in candidates if one and one in names), None)
