"""Records that travel between devices, each the newest version of one thing, their order, and the logs they travel in.

A record is a register: a name, a value or None (retracted), and a rank and a stamp by which two versions
of it compare. The greater version holds wherever both are known, so the order of merging does not matter.
The rank comes first: it is the greatest authority that ever stood in the record, so a lesser authority that did not
know better never wins. The stamp is a hybrid logical clock: the time of the change, but always after the
version that it replaces, so a wrong clock decides nothing between versions that knew of each other.

A memory is named by its uid, the same in every vault, and by how often it was erased before: `9f3c…+0`, then `9f3c…+1`
once it is forgotten and said again. So forgetting is final for what was forgotten, and saying it again needs no leave.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from memd.errors import BadRequest, Broken, RecordTooNew
from memd.models import GLOBAL_PROJECT, Authority, EdgeType, Kind, Stance
from memd.store import Fields
from memd.store.export_rows import (
    COUNT,
    NAME,
    OBJECT,
    PLACE,
    REAL,
    SPEAKER,
    TEXT,
    TEXTS,
    TIME,
    FieldType,
    check_values,
    one_of,
)
from memd.store.reviews import VERDICTS
from memd.text import digest

_T = TypeVar("_T")
FORGET, PROJECT, SAME, MEMORY, PIN, REVIEW, SUPERSESSION, JUDGMENT, EDGE = KINDS = (
    "forget", "project", "same", "memory", "pin", "review", "supersession", "judgment", "edge",
)  # fmt: skip
"""Every kind, in the order in which a batch is merged: no record refers to a later kind."""
NAME_PARTS = {
    FORGET: 1, PROJECT: 1, SAME: 2, MEMORY: 1, PIN: 1, REVIEW: 1, SUPERSESSION: 2, JUDGMENT: 2, EDGE: 3,
}  # fmt: skip
"""Kind → how many texts its name has; of an edge the middle one is its type."""
SYNC_FORMAT = 1
"""Of chunks, and of records that name one: a greater one is for a newer memd."""
TEAM_FORMAT = 1
"""The same of the rows of a team."""
_FIELDS = ("record", "name", "rank", "stamp", "value")
SETTINGS = "settings"
"""What a memory has set in files. It travels beside the value, where a memd that does not know it looks past it."""
_GENERATION = "+"
_COUNTER_MAX = 2**53
_RANK_MAX = 2**32
_OPTIONAL = frozenset({"topic_key", "expires_at", "cosine", "remote", "follows"})

_MEMORY_FIELDS: Mapping[str, FieldType] = {
    "project": PLACE, "confidence": REAL, "kind": one_of(*Kind), "source": TEXT, "title": TEXT,
    "body": TEXT, "topic_key": TEXT, "tags": TEXTS, "files": TEXTS, "at": TIME, "created_at": TIME,
    "updated_at": TIME, "expires_at": TIME, "quality": REAL, "revisions": COUNT, "duplicates": COUNT,
    "rule": TEXT, "authority": SPEAKER,
}  # fmt: skip
SCHEMA: Mapping[str, Mapping[str, FieldType]] = {
    FORGET: {},
    PROJECT: {"name": TEXT, "remote": TEXT},
    SAME: {},
    MEMORY: _MEMORY_FIELDS,
    PIN: {"at": TIME, "by": SPEAKER},
    REVIEW: {"verdict": one_of(*VERDICTS), "at": TIME, "follows": NAME},
    SUPERSESSION: {"rule": TEXT, "cosine": REAL, "guard": TEXT, "at": TIME},
    JUDGMENT: {"newer": NAME, "relation": one_of(*Stance), "reason": TEXT, "who": TEXT, "at": TIME},
    EDGE: {"confidence": REAL, "rule": TEXT, "at": TIME, "detail": OBJECT},
}
"""Kind → the fields of its value."""
UNDERSTOOD = digest(
    str(SYNC_FORMAT), str(TEAM_FORMAT), *(f"{kind} {sorted(fields)}" for kind, fields in SCHEMA.items()),
    *(one.value for names in (Kind, Stance, EdgeType) for one in names), str(max(Authority).code),
)[:16]  # fmt: skip
"""Names all that this memd understands of records: what was left for a newer one is read again when it changes."""


class Stamp(NamedTuple):
    """A hybrid logical clock: UTC milliseconds, a counter within them, and the device that breaks a tie."""

    wall: int
    counter: int
    device: str


def tick(before: Stamp | None, at: int, device: str) -> Stamp:
    """The stamp of a change at this time, after the version that it replaces."""
    if before is None or at > before.wall:
        return Stamp(at, 0, device)
    return Stamp(before.wall, before.counter + 1, device)


@dataclass(frozen=True, slots=True)
class Record:
    """One version of one thing. `value` is None if it was retracted."""

    kind: str
    name: tuple[str, ...]
    rank: int
    stamp: Stamp
    value: Fields | None
    extra: Fields = field(default_factory=dict)
    """Fields that this memd does not know, beside (`record`) and inside (`value`) the value."""

    @property
    def refs(self) -> tuple[str, ...]:
        """The memories that it refers to."""
        return find_refs(self.kind, self.name)


def find_refs(kind: str, name: tuple[str, ...]) -> tuple[str, ...]:
    """The memories that a record of this name refers to."""
    if kind in {FORGET, PROJECT, SAME}:
        return ()
    return (name[0], name[2]) if kind == EDGE else name


# ── Names of memories: a uid, and how often it was erased before it was said again ──────────────


def make_ref(uid: str, generation: int) -> str:
    """The name of a memory in records."""
    return f"{uid}{_GENERATION}{generation}"


def split_ref(ref: str) -> tuple[str, int]:
    """(uid, generation). BadRequest if it is no name of a memory."""
    uid, mark, generation = ref.rpartition(_GENERATION)
    is_number = generation.isascii() and generation.isdigit() and len(generation) < 10  # noqa: PLR2004  # digits
    if not (uid and mark and is_number):
        raise BadRequest(f"{ref[:80]!r} is not the name of a memory")
    return uid, int(generation)


def erasure_rank(generation: int, *, is_forgotten: bool) -> int:
    """Return the rank of the record that says: this uid was erased up to this generation.

    `is_forgotten`: on purpose, so that no import may bring it back; else it was distilled again.
    """
    return 2 * generation + int(is_forgotten)


def split_erasure_rank(rank: int) -> tuple[int, bool]:
    """(generation, whether it was forgotten on purpose)."""
    return rank // 2, bool(rank % 2)


# ── As JSON ────────────────────────────────────────────────────────────────────────────────────


def to_fields(record: Record) -> Fields:
    """The record as a JSON object, with what a newer memd has said of it."""
    if record.kind == REVIEW:
        record = _disguise_review(record)
    stamp, value = record.stamp, record.value
    if value is not None:
        value = {**value, **record.extra.get("value", {})}
    beside = {SETTINGS: value.pop(SETTINGS)} if value and SETTINGS in value else {}
    return {
        "record": record.kind, "name": list(record.name), "rank": record.rank,
        "stamp": [stamp.wall, stamp.counter, stamp.device], "value": value,
        **record.extra.get("record", {}), **beside,
    }  # fmt: skip


def from_fields(fields: Any) -> Record:
    """Check a JSON object and return its record. BadRequest if no memd would write it, RecordTooNew if one would."""
    try:
        kind, name, rank, stamp, value = (fields[key] for key in _FIELDS)
        wall, counter, device = stamp
    except (KeyError, TypeError, ValueError):
        raise _say_unknown(fields) from None
    if not isinstance(kind, str) or kind not in SCHEMA or _is_newer(fields.get("format")):
        raise _say_unknown(fields)
    is_named = (
        isinstance(name, list) and len(name) == NAME_PARTS[kind] and all(map(NAME.accepts, name))
    )
    is_stamped = TIME.accepts(wall) and _is_count(counter, _COUNTER_MAX) and NAME.accepts(device)
    if not (is_named and is_stamped and _is_count(rank, _RANK_MAX)):
        raise BadRequest(f"a {kind} without a proper name, rank or stamp")
    extra = {"record": {key: one for key, one in fields.items() if key not in _FIELDS}}
    if value is not None:
        _check_value(kind, value)
        extra["value"] = {key: one for key, one in value.items() if key not in SCHEMA[kind]}
        value = {key: one for key, one in value.items() if key in SCHEMA[kind]}
        if kind == MEMORY and OBJECT.accepts(set_ := extra["record"].pop(SETTINGS, None)):
            value[SETTINGS] = set_
    extra = {part: found for part, found in extra.items() if found}
    if not OBJECT.accepts(extra):
        raise BadRequest(f"a {kind} with fields that are nested too deep")
    record = Record(kind, tuple(name), rank, Stamp(wall, counter, device), value, extra)
    _check_name(record)
    return _decode_review(record) if value and value.get("source") == _REVIEW_SOURCE else record


# A memd that knows no reviews refuses a log with a kind that it does not know. So a review travels as a note without
# words that expired long ago: such a memd hides it, and this one knows it by its source.

_REVIEW_SOURCE = "memd:review"
_EXPIRED_AT = 1


def _disguise_review(record: Record) -> Record:
    (ref,) = record.name
    at = record.stamp.wall
    said = {"of": ref, **(record.value or {})}
    body = json.dumps(said, sort_keys=True)
    value: Fields = {
        "project": GLOBAL_PROJECT, "confidence": 0.5, "kind": Kind.NOTE.value, "source": _REVIEW_SOURCE,
        "title": "a review", "body": body, "topic_key": None, "tags": [], "files": [], "at": at, "created_at": at,
        "updated_at": at, "expires_at": _EXPIRED_AT, "quality": 0.0, "revisions": 1, "duplicates": 1,
        "rule": REVIEW, "authority": Authority.TOOL_OUTPUT.code,
    }  # fmt: skip
    name = make_ref(digest(REVIEW, ref), 0)
    return Record(MEMORY, (name,), record.rank, record.stamp, value, record.extra)


def _decode_review(record: Record) -> Record:
    """Return the review that a note encodes; the note itself if its text was changed."""
    assert record.value is not None
    try:
        said = json.loads(record.value["body"])
        ref = said.pop("of")
        if said:
            _check_value(REVIEW, said)
        found = Record(REVIEW, (ref,), record.rank, record.stamp, said or None, record.extra)
        _check_name(found)
    except (ValueError, KeyError, AttributeError, TypeError, BadRequest):
        return record
    return found


def _say_unknown(fields: Any) -> BadRequest:
    """Return why something is no record that this memd knows."""
    kind = fields.get("record") if isinstance(fields, dict) else None
    if isinstance(kind, str) and (kind not in SCHEMA or _is_newer(fields.get("format"))):
        return RecordTooNew(kind[:40])
    if kind is None or (isinstance(kind, str) and kind in SCHEMA):
        return BadRequest("a line that is no record")
    return BadRequest(f"a record of a kind that this memd does not know: {str(kind)[:40]!r}")


def _is_newer(version: Any) -> bool:
    return version is not None and not (type(version) is int and version <= SYNC_FORMAT)


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _check_value(kind: str, value: Any) -> None:
    types = SCHEMA[kind]
    if not isinstance(value, dict) or not value.keys() >= types.keys():
        raise BadRequest(f"a {kind} that has not the fields of one")
    check_values(kind, {name: value[name] for name in types}, types, _OPTIONAL)


def _check_name(record: Record) -> None:
    for ref in record.refs:
        split_ref(ref)
    if len(set(record.refs)) < len(record.refs):
        raise BadRequest(f"a {record.kind} of a memory with itself")
    if record.kind == EDGE and record.name[1] not in list(EdgeType):
        raise RecordTooNew(f"edge of type {record.name[1][:40]}")
    if record.kind in {MEMORY, FORGET} and record.value is None:
        raise BadRequest(f"a {record.kind} without a value")
    if record.kind == JUDGMENT and record.value and record.value["newer"] not in record.name:
        raise BadRequest("a judgment of other memories than it names")


def redact_value(record: Record, redact: Callable[[Any], Any]) -> Record:
    """The record with `redact` applied to every text of its value that may contain a secret."""
    if record.extra:
        record = replace(record, extra=redact(record.extra))
    if record.value is None:
        return record
    types = SCHEMA[record.kind]
    value = {
        name: redact(one) if name == SETTINGS or types[name].is_prose else one
        for name, one in record.value.items()
    }
    return replace(record, value=value)


def group_by_size(
    items: Iterable[_T], measure: Callable[[_T], int], size_max: int, count_max: int
) -> Iterator[list[_T]]:
    """Yield the items in groups of at most this size and count; an item that is larger stands alone."""
    group: list[_T] = []
    size = 0
    for item in items:
        length = measure(item)
        if group and (len(group) == count_max or size + length > size_max):
            yield group
            group, size = [], 0
        group.append(item)
        size += length
    if group:
        yield group


def hash_key(key: str) -> str:
    """A project's key as registers name it: they hold no words."""
    return digest("project", key)


# ── Transports between devices ─────────────────────────────────────────────────────────────────
# A transport keeps one log for each device, written by that device alone. It neither looks into records nor decides
# anything. Reading returns what stands in each log behind a position; appending continues the caller's own log.
# Whatever a transport returns twice, late or in another order changes nothing: merging does not depend on it.


class PlaceUnreachable(Broken):
    """The sync target cannot be reached now; what is to be sent waits."""


class LogLost(Broken):
    """The own log does not end where it ended, or lacks a part: somebody removed it. It can be rewritten."""


@dataclass(frozen=True, slots=True)
class LogRow:
    """A record's position in a log that has one row for each name."""

    name: str
    seq: int
    mark: int
    """A hash of the row: the sum of all of them is that of the log."""
    problem: str
    """`refused` or `newer` if no record was made of it, else "": `reason` says why."""
    reason: str


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Some records of one log, all or nothing of which is merged."""

    device: str
    label: str
    """What its device is called."""
    position: str
    """Where the log goes on behind them."""
    records: tuple[Record, ...]
    newer: tuple[str, ...] = ()
    """What it says that only a newer memd understands, in a few words each."""
    is_first: bool = False
    """Whether a log begins with it."""
    rows: tuple[LogRow, ...] = ()
    """The rows that were read, where a log has one row a name. `position` is a number, and at the end the sum of all marks."""


@dataclass(frozen=True, slots=True)
class RefusedChunk:
    """The reason for which a log cannot be read further."""

    device: str
    chunk: str
    """The name of the file, or of whatever holds the batch."""
    reason: str


class Transport(Protocol):
    """A target's logs, as one device sees them. Every method blocks; PlaceUnreachable or OSError if it cannot."""

    @property
    def form(self) -> str:
        """Name the form in which it writes records now: a log that was written in another form is rewritten."""

    def list_logs(self) -> set[str]:
        """The devices that have a log here."""

    def read(
        self, positions: Mapping[str, str], *, only_erasures: bool = False
    ) -> Iterator[LogBatch | RefusedChunk]:
        """Yield what follows these positions (device → position) in every log, the caller's own included.

        A log that is not named is read from its beginning. A log ends at its first refusal; others go on.
        `only_erasures`: without any record but those that say what was forgotten.
        """

    def describe_own(self, position: str) -> str:
        """Return a hash of the own log there; "" if the log does not end at this position."""

    def append(self, records: Sequence[Record], position: str, now: int) -> str:
        """Append to the own log, which ends at this position ("": is empty); the position of its new end.

        LogLost if it does not end there.
        """

    def rewrite(self, records: Sequence[Record], position: str, now: int) -> str:
        """Make the own log consist of these records alone, with no byte of its former content."""
