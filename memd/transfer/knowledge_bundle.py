"""Write a vault as a folder of notes in the Open Knowledge Format, for people who keep notes in git.

A folder a project, a file a memory. Written again, a file keeps its name, and what has not changed is not
touched; the note of a memory that is gone is removed. Files that memd did not write stay as they are.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import BadRequest
from memd.store.backup import read_snapshot, require_current_schema
from memd.store.export_rows import VaultRecords, redact_record
from memd.store.types import Fields
from memd.text import digest
from memd.transfer.archive import find_project
from memd.transfer.knowledge_notes import OKF_VERSION, NoteLink, describe, write_link, write_note

INDEX = "index.md"
_INDEX_MARK = "<!-- written by memd export -->"
_UID_DIGITS = 12
_SLUG_CHARACTERS_MAX = 60
_OWN_NAME = re.compile(rf".*-([0-9a-f]{{{_UID_DIGITS}}})\.md", re.ASCII)
_HEAD_BYTES_MAX = 65_536
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class BundleReport:
    """What became of the files."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    """Notes of memories that are not in the vault any more."""


@dataclass(slots=True)
class _Bundle:
    """The memories of an export, and where their notes go."""

    memories: dict[str, Fields] = field(default_factory=dict)
    """Uid → fields."""
    names: dict[str, str] = field(default_factory=dict)
    """Key of a project → by which it goes in heads: its name, or its key where two have that name."""
    folders: dict[str, str] = field(default_factory=dict)
    """Key of a project → its folder."""
    newer: dict[str, list[str]] = field(default_factory=dict)
    """Uid → the uids of what supersedes it now."""
    older: dict[str, list[str]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    """Uid → the path of its note."""

    def of_project(self, key: str) -> list[Fields]:
        return [one for one in self.memories.values() if one["project"] == key]

    def links(self, uids: Iterable[str]) -> list[NoteLink]:
        return [NoteLink(self.memories[uid]["title"], self.paths[uid]) for uid in sorted(uids)]


def export_bundle(
    vault: str, target: Path, redact: Callable[[Any], Any], now: int, project: str | None = None
) -> BundleReport:
    """Write a vault, or one project of it by name or key, to a folder. `now`: UTC ms.

    Left out: what has expired or is archived, and events. Raises BadRequest, OSError and a VaultError.
    """
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise BadRequest(f"{target} is not a folder")
    bundle = _read_bundle(vault, redact, now, project)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    writer = _BundleWriter(target)
    for key, folder in bundle.folders.items():
        known = writer.find_own(folder)
        for memory in bundle.of_project(key):
            name = known.get(memory["uid"][:_UID_DIGITS]) or _name_note(memory)
            bundle.paths[memory["uid"]] = f"{folder}/{name}"
    for key, folder in bundle.folders.items():
        writer.write_folder(folder, bundle, key)
    if project is None:
        writer.remove_other_folders(set(bundle.folders.values()))
        writer.write_index(INDEX, _write_root(bundle))
    return writer.report


def _read_bundle(
    vault: str, redact: Callable[[Any], Any], now: int, project: str | None
) -> _Bundle:
    bundle = _Bundle()
    projects: dict[str, str] = {}
    with read_snapshot(vault) as connection:
        require_current_schema(connection)
        chosen = None if project is None else find_project(connection, project)
        records = VaultRecords(connection, chosen.id if chosen else None)
        for kind, raw in records.records("project", "summary", "supersession"):
            fields = redact_record(kind, raw, redact)
            if kind == "project":
                projects[raw["key"]] = fields["name"]
            elif kind == "summary":
                if fields["archived_at"] is None and not _is_past(fields["expires_at"], now):
                    bundle.memories[fields["uid"]] = fields | {"project": raw["project"]}
            elif fields["undone_at"] is None:
                newer, older = fields["newer"], fields["older"]
                if newer in bundle.memories and older in bundle.memories:
                    bundle.newer.setdefault(older, []).append(newer)
                    bundle.older.setdefault(newer, []).append(older)
    used = {one["project"] for one in bundle.memories.values()}
    projects = {key: name for key, name in projects.items() if key in used or chosen}
    counts = Counter(projects.values())
    slugs = {key: _slug(name) or "project" for key, name in projects.items()}
    is_shared = Counter(slugs.values())
    for key, name in projects.items():
        bundle.names[key] = name if counts[name] == 1 else key
        suffix = f"-{digest(key)[:8]}" if is_shared[slugs[key]] > 1 else ""
        bundle.folders[key] = slugs[key] + suffix
    return bundle


def _is_past(at: int | None, now: int) -> bool:
    return at is not None and at <= now


def _slug(text: str) -> str:
    """A text as a part of a file's name: ASCII letters and digits, and dashes between."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _NOT_SLUG.sub("-", plain).strip("-")[:_SLUG_CHARACTERS_MAX].strip("-")


def _name_note(memory: Fields) -> str:
    return f"{_slug(memory['title']) or memory['kind']}-{memory['uid'][:_UID_DIGITS]}.md"


def _write_root(bundle: _Bundle) -> Iterator[str]:
    yield from ("---", f'okf_version: "{OKF_VERSION}"', "---", _INDEX_MARK, "", "# Projects", "")
    counts = Counter(one["project"] for one in bundle.memories.values())
    for key, folder in sorted(bundle.folders.items(), key=lambda one: one[1]):
        link = write_link(bundle.names[key].rpartition("/")[2] or folder, f"{folder}/")
        yield f"* {link} - {counts[key]} notes"


def _write_listing(bundle: _Bundle, key: str) -> Iterator[str]:
    yield _INDEX_MARK
    kinds: dict[str, list[str]] = {}
    for one in bundle.of_project(key):
        if one["uid"] not in bundle.newer:
            kinds.setdefault(one["kind"], []).append(one["uid"])
    for kind in sorted(kinds):
        yield from ("", f"# {kind.capitalize()}", "")
        for uid in sorted(kinds[kind], key=lambda uid: bundle.paths[uid]):
            one = bundle.memories[uid]
            link = write_link(one["title"], bundle.paths[uid].rpartition("/")[2])
            yield f"* {link}" + (f" - {said}" if (said := describe(one)) else "")


class _BundleWriter:
    """Writes into a folder, and follows no link in it."""

    def __init__(self, target: Path) -> None:
        self._target, self.report = target, BundleReport()

    def find_own(self, folder: str) -> Mapping[str, str]:
        """The beginning of a uid → the name of its note, of those that memd has written there."""
        here = self._target / folder
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            raise BadRequest(f"{here} is not a folder; move it away")
        names = sorted(os.listdir(here)) if here.is_dir() else []  # noqa: PTH208  # names alone
        matches = (_OWN_NAME.fullmatch(name) for name in names)
        return {one[1]: one[0] for one in matches if one and self._is_own(here / one[0], one[1])}

    def _is_own(self, path: Path, beginning: str) -> bool:
        head = _read_file(path, _HEAD_BYTES_MAX) or b""
        return re.search(rf'^  id: "?{beginning}'.encode(), head, re.MULTILINE) is not None

    def write_folder(self, folder: str, bundle: _Bundle, key: str) -> None:
        """Write the notes and the index of one project, and remove the notes of what is gone."""
        (self._target / folder).mkdir(mode=0o700, exist_ok=True)
        written = set()
        for memory in bundle.of_project(key):
            path, newer = bundle.paths[memory["uid"]], bundle.newer.get(memory["uid"], ())
            older = bundle.older.get(memory["uid"], ())
            links = bundle.links(older), bundle.links(newer)
            self._write(path, write_note(memory, bundle.names[key], *links))
            written.add(path.rpartition("/")[2])
        self._remove_others(folder, written)
        self.write_index(f"{folder}/{INDEX}", _write_listing(bundle, key))

    def remove_other_folders(self, folders: set[str]) -> None:
        """Remove the notes of projects that have no memories any more."""
        for entry in sorted(os.scandir(self._target), key=lambda one: one.name):
            if entry.name in folders or not entry.is_dir(follow_symlinks=False):
                continue
            before = self.report.removed
            self._remove_others(entry.name, set())
            if self.report.removed > before:
                index = Path(entry.path, INDEX)
                if _INDEX_MARK.encode() in (_read_file(index, _HEAD_BYTES_MAX) or b""):
                    index.unlink()
                if not os.listdir(entry.path):  # noqa: PTH208  # names alone
                    Path(entry.path).rmdir()

    def _remove_others(self, folder: str, staying: set[str]) -> None:
        for name in self.find_own(folder).values():
            if name not in staying:
                (self._target / folder / name).unlink()
                self.report.removed += 1

    def write_index(self, path: str, lines: Iterable[str]) -> None:
        """Write an index, unless somebody has written one by hand."""
        known = _read_file(self._target / path, _HEAD_BYTES_MAX)
        if known is None or _INDEX_MARK.encode() in known:
            self._write(path, "\n".join(lines) + "\n")

    def _write(self, path: str, text: str) -> None:
        target, content = self._target / path, text.encode("utf-8", "replace")
        if _read_file(target, len(content) + 1) == content:
            self.report.unchanged += 1
            return
        partial = target.with_name(f".{target.name}.partial")
        with os.fdopen(os.open(partial, _WRITE_FLAGS, 0o600), "wb") as file:
            file.write(content)
        partial.rename(target)
        self.report.written += 1


def _read_file(path: Path, most: int) -> bytes | None:
    """The beginning of a file; None if there is none or it is a link."""
    try:
        handle = os.open(path, _READ_FLAGS)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(most)
