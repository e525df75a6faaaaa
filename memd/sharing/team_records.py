"""A team's records as rows of a log: records that devices share, in words that every memd of a team reads.

A row says what one device says of one memory: the whole memory, or that it is withdrawn (superseded, expired,
unshared) or forgotten. `version` has the record's generation, rank and stamp; rows of a former memd have none.
"""

import json
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memd.errors import BadRequest, RecordTooNew
from memd.models import Authority, Draft, Kind
from memd.sharing.records import FORGET, MEMORY, Record, Stamp, erasure_rank, make_ref, split_ref
from memd.sharing.records import TEAM_FORMAT as FORMAT
from memd.store.sharing.team import TEAM_SOURCE
from memd.store.types import Fields
from memd.text import digest, one_line

SHARED_KINDS = (
    Kind.DECISION, Kind.FIX, Kind.FAILURE, Kind.CHANGE, Kind.DISCOVERY, Kind.FACT, Kind.NOTE,
)  # fmt: skip
"""Kinds that a team sees. Preferences, tasks and sessions are one person's own."""
NOWHERE = Stamp(0, 0, "")
"""The stamp of what was never changed, only not shared here (any more): it stands against no other device."""
_TITLE_CHARACTERS_MAX = 500
_TEXT_CHARACTERS_MAX = 256 * 1024
_LIST_MAX = 1_000
_TIME_MAX = 2**53
_VERSION_PARTS = 5

_Text = Annotated[
    str,
    Field(max_length=4 * _TITLE_CHARACTERS_MAX),
    AfterValidator(lambda text: text.replace("\0", "")),
]
_Texts = Annotated[list[_Text], Field(max_length=_LIST_MAX)]
_Time = Annotated[int, Field(ge=0, le=_TIME_MAX)]
_Share = Annotated[float, Field(ge=0, le=1)]
_VERSION = TypeAdapter(tuple[_Time, _Time, _Time, _Time, str], config=ConfigDict(strict=True))
"""Generation, rank and stamp."""


class _MemoryFields(BaseModel):
    """What a row says of a memory, beside what only a newer memd knows."""

    model_config = ConfigDict(strict=True)
    kind: str
    title: _Text
    body: Annotated[
        str,
        Field(max_length=_TEXT_CHARACTERS_MAX),
        AfterValidator(lambda text: text.replace("\0", "")),
    ]
    topic_key: _Text | None = None
    tags: _Texts
    files: _Texts
    at: _Time
    expires_at: _Time | None = None
    confidence: _Share
    quality: _Share


def shared_kinds(*, has_instructions: bool) -> tuple[Kind, ...]:
    """The kinds that are shared: instructions only on purpose, because teammates' agents follow them."""
    return (*SHARED_KINDS, Kind.INSTRUCTION) if has_instructions else SHARED_KINDS


def row_name(record: Record) -> str:
    """The name of a record's row: the uid of its memory."""
    return record.name[0] if record.kind == FORGET else split_ref(record.name[0])[0]


def write_row(record: Record) -> str:
    """A record as a row: one line of JSON, the same for the same record."""
    fields: Fields = {"format": FORMAT, "state": "shared", **record.extra.get("record", {})}
    if record.kind == FORGET:
        fields["state"] = "forgotten"
    elif record.value is None:
        fields["state"] = "withdrawn"
    else:
        fields["memory"] = {**record.extra.get("value", {}), **record.value}
    if (stamp := record.stamp) != NOWHERE:
        generation = record.rank // 2 if record.kind == FORGET else split_ref(record.name[0])[1]
        fields["version"] = [generation, record.rank, stamp.wall, stamp.counter, stamp.device]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "replace").decode()


def read_row(name: str, text: str) -> Record:
    """Check a row that a teammate wrote and return its record. BadRequest if no memd would write it.

    RecordTooNew if this memd cannot understand it.
    """
    try:
        found = json.loads(text)
        if "\\u" in text:
            # Half a surrogate pair is no text that the vault could keep.
            json.dumps(found, ensure_ascii=False).encode()
        state = found["state"]
        if type(found["format"]) is not int or found["format"] > FORMAT:
            raise RecordTooNew(f"format {str(found['format'])[:20]}")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadRequest("it is no record of a team's memory") from None
    generation, rank, stamp = _read_version(found.get("version"))
    if state == "forgotten":
        return Record(FORGET, (name,), erasure_rank(generation, is_forgotten=True), stamp, {})
    ref = (make_ref(name, generation),)
    if state == "withdrawn":
        return Record(MEMORY, ref, rank, stamp, None)
    fields = found.get("memory")
    if isinstance(state, str) and state != "shared":
        raise RecordTooNew(f"state {state[:40]}")
    if state != "shared" or not isinstance(fields, dict):
        raise BadRequest("it is no record of a team's memory")
    value = _read_memory(fields)
    unknown = {one: fields[one] for one in fields.keys() - value.keys()}
    extra = {"value": unknown} if unknown else {}
    if isinstance(beside := found.get("beside"), list):
        extra["record"] = {"beside": [one for one in beside[:_LIST_MAX] if isinstance(one, str)]}
    if stamp == NOWHERE:
        # A former memd does not say whose word it is: then the last one holds.
        rank, stamp = Authority.USER_HAND.code, Stamp(value["at"], 0, "")
    return Record(MEMORY, ref, rank, stamp, value, extra)


def _read_version(found: Any) -> tuple[int, int, Stamp]:
    """Read (generation, rank, stamp) of a record; of one that this memd would not write, those of none."""
    try:
        said = _VERSION.validate_python(tuple(found[:_VERSION_PARTS]))
    except (ValidationError, TypeError, KeyError):
        return 0, 0, NOWHERE
    generation, rank, wall, counter, device = said
    return generation % 10**9, rank, Stamp(wall, counter, device[:100])


def _read_memory(fields: Fields) -> Fields:
    kind = fields.get("kind")
    if isinstance(kind, str) and kind not in list(Kind):
        raise RecordTooNew(f"kind {kind[:40]}")
    if kind not in [one.value for one in shared_kinds(has_instructions=True)]:
        raise BadRequest(f"its kind, {str(kind)[:40]!r}, is none that a team shares")
    try:
        return _MemoryFields.model_validate(fields).model_dump()
    except ValidationError as error:
        wrong = error.errors(include_input=False)[0]["loc"][0]
        raise BadRequest(f"its {wrong} is missing, of another kind or too long") from None


def make_uid(project: str, author: str, name: str) -> str:
    """Make the uid of a teammate's memory here, so that no author can name, and replace, another's."""
    return digest("team", project, author, name)


def make_draft(fields: Fields) -> Draft:
    """A teammate's memory as it is written here: never more than an agent's word, whoever said it there."""
    return Draft(
        slot="memory", kind=Kind(fields["kind"]), title=one_line(fields["title"], 200), body=fields["body"],
        at=fields["at"], rule=TEAM_SOURCE, sources=(), tags=tuple(fields["tags"]),
        files=tuple(fields["files"]), topic_key=fields["topic_key"], expires_at=fields["expires_at"],
        confidence=fields["confidence"], quality=fields["quality"], authority=Authority.AGENT_CALL,
    )  # fmt: skip


def propose_name(remote: str, names: Collection[str]) -> str | None:
    """Propose the one of these names that a git remote (`host/owner/app`) most likely means: the longest part of it."""
    parts = remote.split("/")
    candidates = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((one for one in candidates if one and one in names), None)
