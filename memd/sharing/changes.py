"""A vault's content as devices name it, and the versions of what was changed in it since it was last compared.

What the tables say is compared with the registers, so that no path that writes a memory needs to know of other devices.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from memd.models import PLACELESS_PROJECTS
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
    erasure_rank,
    hash_key,
    make_ref,
    split_erasure_rank,
    split_ref,
    tick,
)
from memd.store import Fields, ledger, projects, sharing, statements
from memd.store.database import Connection
from memd.store.queries import row_id
from memd.store.sharing import Register, RegisterName, read_of_memory
from memd.store.statements import SYNC_RULE, SharedRow

NO_REMOTES: Mapping[str, str] = {}
REMOTE_NOTE = "remote:"
"""With the key of another device's project: the note of its git remote."""


class KnownVault:
    """A vault's knowledge, in one transaction. `now` is UTC milliseconds, `remotes` a project's key → its git remote."""

    def __init__(
        self, tx: Connection, device: str, now: int, *, remotes: Mapping[str, str] = NO_REMOTES
    ) -> None:
        self._tx, self._device, self._now = tx, device, now
        self._remotes = remotes
        self._erased = {one.one: one for one in sharing.read_registers(tx, FORGET)}
        self._forgotten = statements.forgotten_keys(tx)
        self._classes: dict[str, set[str]] = {}
        """Key of a project → the hashes of every key that means it."""

    # ── Records ──────────────────────────────────────────────────────────────────────────────────

    def own_records(
        self, after: int = 0, gone: Collection[str] = ()
    ) -> Iterator[tuple[int, Record]]:
        """Return (id, record) of this device's last versions above an id, of deleted things too."""
        for one in sharing.latest_registers(self._tx, {self._device, *gone}, after, KINDS):
            if (record := self.make_record(one)) is not None:
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
        name = tuple(filter(None, (known.one, known.link, known.other)))
        if not known.live:
            return Record(known.kind, name, known.rank, stamp, None)
        ends = uid_of(known.one), known.link, uid_of(known.other)
        said = statements.read_statement(self._tx, known.kind, *ends)
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
        fields = dict(zip(SCHEMA[known.kind], content, strict=True))
        if known.kind == JUDGMENT:
            fields["newer"] = self._ref(fields["newer"])
        elif known.kind == EDGE:
            fields["detail"] = json.loads(fields["detail"])
        return fields

    def _make_project_record(self, known: Register, stamp: Stamp) -> Record | None:
        keys = {hash_key(key): key for key in statements.project_keys(self._tx)}
        one, other = keys.get(known.one), keys.get(known.other)
        if known.kind == SAME:
            if one is None or other is None:
                return None
            pair = tuple(sorted((one, other)))
            return Record(SAME, pair, known.rank, stamp, {} if known.live else None)
        if one is None or (place := projects.project_by_key(self._tx, one)) is None:
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


# ── Changes ───────────────────────────────────────────────────────────────────────────────────────


class ChangeNoter(KnownVault):
    """Notes changes, in the caller's transaction."""

    def note_changes(self) -> int:
        """Make a version of everything that was changed here since it was last compared; how many."""
        before = sharing.last_register_id(self._tx)
        self.note_memories(self.find_changed_memories())
        self.note_rest()
        return sharing.last_register_id(self._tx) - before

    def note_rest(self) -> None:
        """Make a version of everything that was changed here but memories."""
        for key in sorted(self._forgotten):
            generation, is_forgotten = self._erased_up_to(key)
            if not is_forgotten:
                self._write_erasure(key, max(generation, 0), is_forgotten=True)
        self._note_projects()
        self.note_relations()

    def note_relations(self) -> None:
        """Make a version of every pin, review, supersession, judgment and edge that was changed here."""
        for kind in (PIN, REVIEW, SUPERSESSION, JUDGMENT, EDGE):
            self._note_kind(kind)

    def find_changed_memories(self) -> list[str]:
        """The uids of memories that were written, changed or deleted here. It reads every memory and writes nothing."""
        known = {one.one: one for one in sharing.read_registers(self._tx, MEMORY)}
        found = [
            said.one
            for said in statements.each_statement(self._tx, MEMORY)
            if self._is_changed(known.pop(self._ref(said.one), None), said)
        ]
        return [*found, *map(uid_of, known)]

    def note_memories(self, uids: Iterable[str]) -> None:
        """Make a version of each of these memories that differs from its register."""
        for uid in uids:
            if row_id(self._tx, "summary", uid) is not None:
                self._note_statement(MEMORY, uid)
            elif known := self._read_memory(self._ref(uid)):
                self._note_gone(known)

    def _note_gone(self, gone: Register) -> None:
        """Note that a memory is gone: it was forgotten, distilled again, or expired long ago."""
        uid, generation = split_ref(gone.one)
        if uid in self._forgotten:
            self._write_erasure(uid, generation, is_forgotten=True)
        elif gone.expires_at is None or gone.expires_at > self._now:
            self._write_erasure(uid, generation, is_forgotten=False)

    def _write_erasure(self, key: str, generation: int, *, is_forgotten: bool) -> None:
        before = self._erased.get(key)
        rank = erasure_rank(generation, is_forgotten=is_forgotten)
        if before is not None and before.rank >= rank:
            return
        stamp = tick(stamp_of(before) if before else None, self._now, self._device)
        self._put_erasure(key, rank, stamp)

    def _put_erasure(self, key: str, rank: int, stamp: Stamp) -> None:
        generation, _ = split_erasure_rank(rank)
        if self._generation(key) <= generation:
            sharing.drop_registers_of(self._tx, key)
        new = Register(FORGET, key, "", "", rank, *stamp)
        sharing.write_register(self._tx, new)
        self._erased[key] = new

    def _note_projects(self) -> None:
        for key, (label, made_at) in statements.projects_with_memories(self._tx).items():
            known = sharing.read_register(self._tx, name := (PROJECT, hash_key(key), "", ""))
            shown = self._show_project(key, label)
            if key not in PLACELESS_PROJECTS and (known is None or known.shown != shown):
                self._write_version(known, name, 0, self._now if known else made_at, shown)
        for key, into, at in statements.aliases(self._tx):
            self._note_same(key, into, at)
        hashes = {hash_key(key): into for key, into in statements.project_keys(self._tx).items()}
        for known in sharing.read_registers(self._tx, SAME):
            one, other = hashes.get(known.one), hashes.get(known.other)
            if known.live and known.shown and one and other and one != other:
                self._write_version(known, known.name, 0, self._now, "", live=0)

    def _note_same(self, key: str, into: str, at: int) -> None:
        one, other = sorted((hash_key(key), hash_key(into)))
        known = sharing.read_register(self._tx, name := (SAME, one, "", other))
        if known is None or not known.shown:
            self._write_version(known, name, 0, at, "1")

    def _note_kind(self, kind: str) -> None:
        said = statements.read_statements(self._tx, kind)
        known = {one.name: one for one in sharing.read_registers(self._tx, kind)}
        changed = set()
        for (one, link, other), statement in said.items():
            name = self._name(kind, one, link, other)
            if self._is_new(kind, statement, known.pop(name, None)):
                changed.add((one, link, other))
        for lost in known.values():
            if lost.shown and all(self._row(ref) for ref in (lost.one, lost.other) if ref):
                changed.add((uid_of(lost.one), lost.link, uid_of(lost.other)))
        for one, link, other in sorted(changed):
            self._note_statement(kind, one, link, other)

    def _is_new(self, kind: str, said: SharedRow | None, known: Register | None) -> bool:
        """Return whether the tables differ from the register."""
        if said is not None and said.rule == SYNC_RULE and said.content is not None:
            return False
        if known is None:
            # A retraction that is not recorded would be undone by the values of the topic.
            return said is not None and (said.content is not None or kind == SUPERSESSION)
        if kind == SUPERSESSION and said is not None and said.content is None and not known.live:
            # Retracted once more: what follows from the values of a topic had held meanwhile.
            return said.at > known.wall
        return (said.hash if said else "") != known.shown

    def _is_changed(self, known: Register | None, said: SharedRow) -> bool:
        """Return whether a memory differs from its register, or was moved to another project."""
        if known is None or known.shown != said.hash:
            return True
        return known.project not in self._hashes_of_project(said.project)

    def _note_statement(self, kind: str, one: str, link: str = "", other: str = "") -> None:
        """Make a version of the tables' state of one thing, if it differs from the register."""
        refs = [one, other] if other else [one]
        if not self._forgotten.isdisjoint(refs):
            return
        name = self._name(kind, one, link, other)
        known = sharing.read_register(self._tx, name)
        said = statements.read_statement(self._tx, kind, one, link, other)
        if kind == MEMORY:
            if said is None:
                if known is not None:
                    self._note_gone(known)
                return
            if not self._is_changed(known, said):
                return
        elif not self._is_new(kind, said, known):
            return
        at = min(said.at if said else self._now, self._now)
        voice = said.voice if said else 0
        content = {} if said is None or kind != MEMORY else about_memory(said)
        is_live = said is not None and said.content is not None
        self._write_version(
            known, name, voice, at, said.hash if said else "", live=int(is_live), **content
        )

    def _read_memory(self, ref: str) -> Register | None:
        return sharing.read_register(self._tx, (MEMORY, ref, "", ""))

    def _write_version(  # noqa: PLR0913  # one argument a column
        self,
        known: Register | None,
        name: RegisterName,
        voice: int,
        at: int,
        shown: str,
        *,
        live: int = 1,
        project: str = "",
        expires_at: int | None = None,
    ) -> None:
        """Write a version of our own: its rank is at least that of the version that it replaces.

        What relates two memories is stamped after both, whatever the clocks of the devices that said those.
        """
        rank = max(voice, known.rank if known else 0)
        before = [known] if known else []
        if name[0] == SUPERSESSION:
            ends = (self._read_memory(ref) for ref in (name[1], name[3]))
            before += [end for end in ends if end is not None]
        stamp = tick(max(map(stamp_of, before), default=None), at, self._device)
        extra = known.extra if known else ""
        new = Register(*name, rank, *stamp, live, shown, project, expires_at, extra)
        sharing.write_register(self._tx, new)
