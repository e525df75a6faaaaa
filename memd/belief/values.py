"""Judge which memories state a value that a later edit of the same setting has replaced.

What each memory has set is written once, on its edge to the file's settings (`distill/edits.py`). Which value holds is
derived from that whenever it is asked: the last of the edits of one setting in one file. So nothing has to be undone when
a value is given back, a memory is forgotten, or an older session is imported late. A judgment of the pair overrules it.

An edit shows a part of its file. Two keys are one if the shorter one ends the longer one, and the edits prove it: the later one
begins with the value that the earlier one left, or both show the place of the key.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memd.models import name_setting
from memd.store import judgments, links
from memd.store.database import Connection
from memd.store.types import SettingsEdge

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ValueSet:
    """One setting that one memory has given a value."""

    edge: SettingsEdge
    key: Key
    was: str
    now: str
    is_lone: bool
    """Whether no other key that the memory has set in the file has this name."""

    @property
    def is_whole(self) -> bool:
        """Return whether the memory saw all of the file."""
        return bool(self.edge.detail.get("whole"))


@dataclass(frozen=True, slots=True)
class ReplacedValue:
    """A value that a memory has set, and the memory that set it last."""

    older_id: int
    newer_id: int
    key: Key
    was: str
    """What the older memory says."""
    now: str
    """The same as `was` if the value has come back: then nothing is replaced, but the newer one told it last."""
    file: str
    is_only: bool
    """Whether the older memory is about values alone, all of which are replaced."""

    @property
    def name(self) -> str:
        """The name of the setting."""
        return name_setting(self.key)

    @property
    def pair(self) -> tuple[int, int]:
        """Return both ids, the smaller one first."""
        return min(self.older_id, self.newer_id), max(self.older_id, self.newer_id)

    @property
    def is_replaced(self) -> bool:
        """Return whether the older memory states a value that no longer holds."""
        return self.was != self.now

    def __str__(self) -> str:
        """Describe it for the older memory: `value replaced by #304: RETRY_LIMIT = 60, not 30 (config.toml)`."""
        return f"value replaced by #{self.newer_id}: {self.name} = {self.now}, not {self.was} ({self.file})"

    @property
    def told_by_newer(self) -> str:
        """Describe it for the newer memory: `RETRY_LIMIT = 30 of #303`."""
        return f"{self.name} = {self.was} of #{self.older_id}"


@dataclass(frozen=True, slots=True)
class SetValues:
    """Values that some memories, and the others of their projects, have set in the same files."""

    edges: Sequence[SettingsEdge] = ()
    replaced: Sequence[ReplacedValue] = ()
    """The values of these memories that another one has set since, and those that these have set since."""

    @property
    def owners(self) -> frozenset[int]:
        """The memories that have set something there."""
        return frozenset(edge.summary_id for edge in self.edges)


def read_set_values(
    tx: Connection, summary_ids: Collection[int], until: int | None = None
) -> SetValues:
    """Read what these memories have set and what became of it.

    Nothing of after `until` (UTC ms) counts. Who may see the other memory is for the caller to know.
    """
    edges = links.settings_beside(tx, summary_ids) if summary_ids else []
    edges = [edge for edge in edges if until is None or edge.at <= until]
    wanted = set(summary_ids)
    near = [one for one in find_replaced(edges) if {one.older_id, one.newer_id} & wanted]
    judged = judgments.stances_of_pairs(tx, {one.older_id for one in near}) if near else {}
    return SetValues(edges, [one for one in near if one.pair not in judged])


def find_replaced(edges: Sequence[SettingsEdge]) -> list[ReplacedValue]:
    """Find each value that another memory has set since. `edges` are in order of time."""
    by_file: dict[tuple[int, str], list[_ValueSet]] = {}
    for edge in edges:
        known = by_file.setdefault((edge.project_id, edge.file), [])
        known += [one for one in _read_sets(edge) if not _is_kept(one, known)]
    found = [
        (one, last)
        for sets in by_file.values()
        for place, one in enumerate(sets)
        if (last := _find_last(one, sets[place + 1 :])) is not None
    ]
    standing = {
        one.edge.summary_id
        for sets in by_file.values()
        for one in sets
        if not any(one is older and one.now != last.now for older, last in found)
    }
    return [
        ReplacedValue(
            one.edge.summary_id,
            last.edge.summary_id,
            one.key,
            one.now,
            last.now,
            one.edge.file,
            is_only=bool(one.edge.detail.get("only")) and one.edge.summary_id not in standing,
        )
        for one, last in found
    ]


def _read_sets(edge: SettingsEdge) -> list[_ValueSet]:
    rows = edge.detail.get("set")
    given = [
        (tuple(map(str, key)), str(was), str(now))
        for key, was, now in (rows if isinstance(rows, list) else ())
        if key
    ]
    names = [key[-1] for key, _, _ in given]
    return [_ValueSet(edge, key, was, now, names.count(key[-1]) == 1) for key, was, now in given]


def _is_kept(one: _ValueSet, known: Sequence[_ValueSet]) -> bool:
    """Return whether a whole file was written that has a value which was there before: nobody has set it again."""
    if one.was or not one.is_whole:
        return False
    holder = next((other for other in reversed(known) if _goes_on(other, one)), None)
    return holder is not None and holder.now == one.now


def _find_last(one: _ValueSet, later: Sequence[_ValueSet]) -> _ValueSet | None:
    """The last of those that set the same setting, if the value was another one at any time since."""
    last, has_changed = one, False
    for other in later:
        if other.edge.summary_id != one.edge.summary_id and _goes_on(last, other):
            last = other
            has_changed |= other.now != one.now
    return last if has_changed else None


def _goes_on(one: _ValueSet, other: _ValueSet) -> bool:
    """Return whether a later edit is of the same setting."""
    short, long = sorted((one.key, other.key), key=len)
    if long[-len(short) :] != short:
        return False
    if other.was:
        if other.was == one.now:
            return True
        is_placed = one.key == other.key and (len(one.key) > 1 or one.key[0].isupper())
        return is_placed or (one.is_whole and one.is_lone)
    # All of the file was written: then the key is there once, or with its whole path.
    if other.is_whole:
        return one.key == other.key or other.is_lone
    return one.key == other.key and (len(one.key) > 1 or one.key[0].isupper())
