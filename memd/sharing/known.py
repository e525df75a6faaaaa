"""A vault's content as devices name it: memories, their generations, and the last versions from this device."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from memd.sharing.records import (
    EDGE,
    FORGET,
    JUDGMENT,
    KINDS,
    MEMORY,
    PIN,
    PROJECT,
    REVIEW,
    SAME,
    SCHEMA,
    SUPERSESSION,
    Record,
    Stamp,
    hash_key,
    make_ref,
    split_erasure_rank,
    split_ref,
)
from memd.store import ledger, projects
from memd.store.database import Connection
from memd.store.queries import row_id
from memd.store.sharing import registers, statements
from memd.store.sharing.registers import Register, RegisterName
from memd.store.sharing.statements import SharedRow
from memd.store.sharing.unknown_fields import read_of_memory
from memd.store.types import Fields

_NO_REMOTES: Mapping[str, str] = {}
REMOTE_NOTE = "remote:"
"""With the key of another device's project: the note of its git remote."""


class KnownVault:
    """A vault's knowledge, in one transaction. `now` is UTC milliseconds, `remotes` a project's key → its git remote."""

    def __init__(
        self, tx: Connection, device: str, now: int, *, remotes: Mapping[str, str] = _NO_REMOTES
    ) -> None:
        self._tx, self._device, self._now = tx, device, now
        self._remotes = remotes
        self._erased = {one.one: one for one in registers.read_registers(tx, FORGET)}
        self._forgotten = statements.forgotten_keys(tx)
        self._classes: dict[str, set[str]] = {}
        """Key of a project → the hashes of every key that means it."""

    # ── Records ──────────────────────────────────────────────────────────────────────────────────

    def own_records(
        self, after: int = 0, gone: Collection[str] = ()
    ) -> Iterator[tuple[int, Record]]:
        """Return (id, record) of this device's last versions above an id, of deleted things too."""
        devices = {self._device, *gone}
        found = list(registers.latest_registers(self._tx, devices, after, KINDS))
        for one in found:
            record = self.make_record(one)
            if record is not None:
                yield one.id, record

    def make_record(self, known: Register) -> Record | None:
        """Make the record of a register; None if its content is gone."""
        record = self._make_record(known)
        if record is None:
            return None
        extra = json.loads(known.extra or "{}")
        if known.kind == MEMORY and (unknown := read_of_memory(self._tx, uid_of(known.one))):
            extra["value"] = extra.get("value", {}) | unknown
        return replace(record, extra=extra)

    def _make_record(self, known: Register) -> Record | None:
        stamp = stamp_of(known)
        if known.kind == FORGET:
            return Record(FORGET, (known.one,), known.rank, stamp, {})
        if known.kind in {PROJECT, SAME}:
            return self._make_project_record(known, stamp)
        name = tuple(part for part in (known.one, known.link, known.other) if part)
        if not known.live:
            return Record(known.kind, name, known.rank, stamp, None)
        said = statements.read_statement(
            self._tx, known.kind, uid_of(known.one), known.link, uid_of(known.other)
        )
        value = None if said is None else self._make_value(known, said)
        return None if value is None else Record(known.kind, name, known.rank, stamp, value)

    def _make_value(self, known: Register, said: SharedRow) -> Fields | None:
        if known.kind == MEMORY:
            return statements.memory_fields(self._tx, said)
        content = said.content
        if content is None and known.kind == SUPERSESSION:
            content = statements.last_content(self._tx, said.one, said.other)
        if content is None:
            return None
        if known.kind in {PIN, REVIEW, SUPERSESSION}:
            return dict(zip(SCHEMA[known.kind], content, strict=True))
        if known.kind == JUDGMENT:
            newer, *rest = content
            return {"newer": self._ref(newer)} | dict(
                zip(("relation", "reason", "who", "at"), rest, strict=True)
            )
        fields = dict(zip(("confidence", "rule", "at", "detail"), content, strict=True))
        return fields | {"detail": json.loads(fields["detail"])}

    def _make_project_record(self, known: Register, stamp: Stamp) -> Record | None:
        keys = {hash_key(key): key for key in statements.project_keys(self._tx)}
        one, other = keys.get(known.one), keys.get(known.other)
        if known.kind == SAME:
            if one is None or other is None:
                return None
            pair = tuple(sorted((one, other)))
            return Record(SAME, pair, known.rank, stamp, {} if known.live else None)
        place = one and projects.project_by_key(self._tx, one)
        if not one or not place:
            return None
        value = {"name": place.name, "remote": self.remote_of(one) or None}
        return Record(PROJECT, (one,), known.rank, stamp, value)

    # ── Names ────────────────────────────────────────────────────────────────────────────────────

    def _erased_up_to(self, key: str) -> tuple[int, bool]:
        """(generation, whether it was forgotten on purpose); (-1, False) if it never was erased."""
        known = self._erased.get(key)
        return (-1, False) if known is None else split_erasure_rank(known.rank)

    def _generation(self, uid: str) -> int:
        return self._erased_up_to(uid)[0] + 1

    def _ref(self, uid: str) -> str:
        return make_ref(uid, self._generation(uid))

    def _is_dead(self, ref: str) -> bool:
        uid, generation = split_ref(ref)
        return generation < self._generation(uid)

    def _row(self, ref: str) -> int | None:
        """The id of a memory that is here and not to be erased."""
        uid, generation = split_ref(ref)
        if generation != self._generation(uid) or uid in self._forgotten:
            return None
        return row_id(self._tx, "summary", uid)

    def _name(self, kind: str, one: str, link: str, other: str) -> RegisterName:
        ends = [self._ref(one), self._ref(other) if other else ""]
        if kind == JUDGMENT:
            ends.sort()
        return kind, ends[0], link, ends[1]

    def _hashes_of_project(self, key: str) -> set[str]:
        """The hashes of every key that means the same project."""
        if key not in self._classes:
            for alias, into in statements.project_keys(self._tx).items():
                self._classes.setdefault(into, {hash_key(into)}).add(hash_key(alias))
        return self._classes.setdefault(key, {hash_key(key)})

    def _show_project(self, key: str, label: str) -> str:
        return hash_key(f"{label}\n{self.remote_of(key)}")

    def remote_of(self, key: str) -> str:
        """The git remote of a project, here or on the device that has it; "" if it has none."""
        return self._remotes.get(key) or ledger.read_note(self._tx, REMOTE_NOTE + key) or ""


def stamp_of(known: Register) -> Stamp:
    """The stamp of a register's version."""
    return Stamp(known.wall, known.counter, known.device)


def uid_of(ref: str) -> str:
    """Return the uid in the name of a memory; "" for ""."""
    return split_ref(ref)[0] if ref else ""


def refs_of(known: Register) -> tuple[str, ...]:
    """The memories that a register refers to."""
    return (known.one, known.other) if known.other else (known.one,)


def split_name(record: Record) -> tuple[str, str, str]:
    """A record's name as registers have it: one end, the type of an edge, the other end."""
    if record.kind == EDGE:
        return record.name[0], record.name[1], record.name[2]
    ends = sorted(record.name) if record.kind == JUDGMENT else record.name
    return ends[0], "", ends[1] if len(ends) > 1 else ""


def about_memory(said: SharedRow) -> dict[str, Any]:
    """Return what a register keeps of a memory: nothing of its words."""
    assert said.content is not None
    return {"project": hash_key(said.project), "expires_at": said.content[10]}
