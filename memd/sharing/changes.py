"""Find what was changed in a vault since it was last compared, and make a version of each change.

What the tables say is compared with the registers, so that no path that writes a memory needs to know of
other devices.
"""

from collections.abc import Iterable

from memd.models import GLOBAL_PROJECT, SCRATCH_PROJECT
from memd.sharing.known import KnownVault, about_memory, refs_of, stamp_of, uid_of
from memd.sharing.records import (
    EDGE,
    FORGET,
    JUDGMENT,
    MEMORY,
    PIN,
    PROJECT,
    REVIEW,
    SAME,
    SUPERSESSION,
    Stamp,
    erasure_rank,
    hash_key,
    split_erasure_rank,
    split_ref,
    tick,
)
from memd.store.queries import row_id
from memd.store.sharing import registers, statements
from memd.store.sharing.registers import Register, RegisterName
from memd.store.sharing.statements import SYNC_RULE, SharedRow

_PLACELESS = frozenset({GLOBAL_PROJECT, SCRATCH_PROJECT})


class ChangeNoter(KnownVault):
    """Notes changes, in the caller's transaction."""

    def note_changes(self) -> int:
        """Make a version of everything that was changed here since it was last compared; how many."""
        before = registers.last_register_id(self._tx)
        self.note_memories(self.find_changed_memories())
        self.note_rest()
        return registers.last_register_id(self._tx) - before

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
        known = {one.one: one for one in registers.read_registers(self._tx, MEMORY)}
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
            elif known := registers.read_register(self._tx, (MEMORY, self._ref(uid), "", "")):
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
            registers.drop_registers_of(self._tx, key)
        new = Register(FORGET, key, "", "", rank, stamp.wall, stamp.counter, stamp.device)
        registers.write_register(self._tx, new)
        self._erased[key] = new

    def _note_projects(self) -> None:
        for key, (label, made_at) in statements.projects_with_memories(self._tx).items():
            known = registers.read_register(self._tx, name := (PROJECT, hash_key(key), "", ""))
            shown = self._show_project(key, label)
            if key not in _PLACELESS and (known is None or known.shown != shown):
                self._write_version(known, name, 0, self._now if known else made_at, shown)
        for (key, into), at in statements.aliases(self._tx).items():
            self._note_same(key, into, at)
        keys = statements.project_keys(self._tx)
        hashes = {hash_key(key): into for key, into in keys.items()}
        for known in list(registers.read_registers(self._tx, SAME)):
            one, other = hashes.get(known.one), hashes.get(known.other)
            if known.live and known.shown and one and other and one != other:
                self._write_version(known, known.name, 0, self._now, "", live=0)

    def _note_same(self, key: str, into: str, at: int) -> None:
        one, other = sorted((hash_key(key), hash_key(into)))
        known = registers.read_register(self._tx, (SAME, one, "", other))
        if known is None or not known.shown:
            self._write_version(known, (SAME, one, "", other), 0, at, "1")

    def _note_kind(self, kind: str) -> None:
        said = statements.read_statements(self._tx, kind)
        known = {one.name: one for one in registers.read_registers(self._tx, kind)}
        changed = set()
        for (one, link, other), statement in said.items():
            name = self._name(kind, one, link, other)
            if self._is_new(kind, statement, known.pop(name, None)):
                changed.add((one, link, other))
        for lost in known.values():
            if lost.shown and all(self._row(ref) for ref in refs_of(lost)):
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
        if any(uid in self._forgotten for uid in refs):
            return
        name = self._name(kind, one, link, other)
        known = registers.read_register(self._tx, name)
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
            ends = (
                registers.read_register(self._tx, (MEMORY, ref, "", ""))
                for ref in (name[1], name[3])
            )
            before += [end for end in ends if end is not None]
        stamp = tick(max(map(stamp_of, before), default=None), at, self._device)
        registers.write_register(
            self._tx,
            Register(
                *name,
                rank,
                stamp.wall,
                stamp.counter,
                stamp.device,
                live,
                shown,
                project,
                expires_at,
                known.extra if known else "",
            ),
        )
