"""Follow notes where they lie: what clients keep themselves, and the folders that the user has watched (`memd watch`).

Clients' are Claude Code's memory folders, its subagents', and Codex's memories. They all are read as an import of them
is, and under the same marks, so each text is read once however it is found. A file is looked at after the hooks of a
session, when its client may have written, and every five minutes; a watched folder when something changes in it. What
a file no longer says expires, and holds again if the file says it again.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from memd import log
from memd.models import GLOBAL_PROJECT
from memd.server import requests
from memd.server.scope import Caller
from memd.server.service import MemoryService
from memd.store import ledger, projects
from memd.store.database import Connection, Database
from memd.transfer import importer, sources
from memd.transfer.sources import ImportFile, ImportSource, Stamp
from memd.wakeup import AutoResetEvent

LOOKS_AFTER_S = (1.0, 30.0)
"""When to look after a hook: some clients write their notes behind the answer."""
REST_S = 300.0
"""Seconds between two looks without any hook."""
_POLL_S = 5.0
"""The same while folders are watched whose changes nobody tells."""
_POLL_SHARE = 0.02
"""The most of the time that is spent on looking; a vast folder is looked at more seldom."""
_WATCHED = "markdown"
"""The source of what stands in watched folders: that of `memd import markdown`."""
_ABSENT = "not there"
_ROOTS_MAX = 200
"""Projects in which the folders of subagents are looked for."""


_DEBOUNCE_MS = 200
_STEP_MS = 250
_TIMEOUT_MS = 1_000
"""A stop waits for at most so long: the thread that listens cannot be interrupted."""


class FolderChanges:
    """Calls `on_change`, on the event loop, when something changes directly in one of the directories.

    By inotify, FSEvents or the like, through the extra `watchfiles`. Without it, or where the system has no more watches,
    the folders are only looked through from time to time.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._directories: tuple[str, ...] = ()
        self._is_outdated = anyio.Event()
        """Set when the directories are others."""
        self.is_listening = False
        """False: nobody is told, so that somebody has to look."""
        self.problem = ""

    def watch(self, directories: Iterable[str]) -> None:
        """Listen to these directories instead of those before."""
        wanted = tuple(sorted(set(directories)))
        if wanted != self._directories:
            self._directories = wanted
            self._is_outdated.set()

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            self._is_outdated, self.problem = anyio.Event(), ""
            try:
                if self._directories:
                    await self._listen()
            except ImportError:
                self.problem = "looked at every few seconds; `pip install watchfiles` tells memd"
            except (OSError, RuntimeError) as error:
                self.problem = f"looked at every few seconds: {error}"
            self.is_listening = False
            await self._is_outdated.wait()

    async def _listen(self) -> None:
        import watchfiles  # noqa: PLC0415  # an extra, and loaded only if a folder is watched

        changes = watchfiles.awatch(
            *self._directories, watch_filter=None, recursive=False, stop_event=self._is_outdated,
            debounce=_DEBOUNCE_MS, step=_STEP_MS, rust_timeout=_TIMEOUT_MS,
        )  # fmt: skip
        self.is_listening = True
        self._on_change()  # what changed while nobody listened
        async with aclosing(changes):
            async for _ in changes:
                self._on_change()


class _Marks(dict[str, Stamp]):
    """The stamps of files that were taken; `new` is what this look has added."""

    def __init__(self, known: Mapping[str, Stamp]) -> None:
        super().__init__(known)
        self.new: dict[str, Stamp] = {}

    def __setitem__(self, key: str, stamp: Stamp) -> None:
        super().__setitem__(key, stamp)
        self.new[key] = stamp


class NoteFollower:
    """The worker. `nudge` it when a hook was called."""

    def __init__(
        self,
        db: Database,
        service: MemoryService,
        clock: Callable[[], int],
        environ: Mapping[str, str],
        *,
        follows_clients: bool = True,
    ) -> None:
        """`follows_clients`: False follows watched folders only."""
        self.name = "notes" if follows_clients else "folders"
        self._follows_clients = follows_clients
        self._changes = FolderChanges(self._notice_change)
        self._watched: list[dict[str, object]] = []
        self._took_s = 0.0
        self._db, self._service, self._clock = db, service, clock
        self._environ = dict(environ)
        self._wakeup = AutoResetEvent()
        self._due: list[float] = []
        self._directories: dict[tuple[str, int], str | None] = {}
        """(folder of a project, its time of change) → the project's directory."""
        self._switched: dict[str, bool] = {}
        self._held: set[str] = set()
        """Files of which something was left out in this look."""
        self._files = self._looks = 0
        self._left_out: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._failed: dict[str, str] = {}

    def status(self) -> dict[str, object]:
        """Return how many `files` are followed, what of them was taken, left out and could not be read, and why."""
        return {
            "files": self._files,
            "looks": self._looks,
            "taken": dict(self._outcomes),
            "left_out": dict(self._left_out),
            "failed": len(self._failed),
            "watched": self._watched,
            "how_watched": self._changes.problem or "told by the system" if self._watched else "",
            "why": next((f"{path}: {why}" for path, why in self._failed.items()), ""),
        }

    def nudge(self) -> None:
        """Look soon, and once more a little later."""
        now = anyio.current_time()
        self._due = [now + after for after in LOOKS_AFTER_S]
        self._wakeup.set()

    async def run(self) -> None:
        """Look at the files when something may have changed, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._changes.run)
            while True:
                await self.look()
                rests_until = anyio.current_time() + self._find_rest_s()
                while (now := anyio.current_time()) < min([rests_until, *self._due[:1]]):
                    await self._wakeup.wait(min([rests_until, *self._due[:1]]) - now)
                self._due = [at for at in self._due if at > now]

    def _find_rest_s(self) -> float:
        is_absent = any(one["state"] == _ABSENT for one in self._watched)
        if is_absent or (self._watched and not self._changes.is_listening):
            return max(_POLL_S, self._took_s / _POLL_SHARE)
        return REST_S

    def _notice_change(self) -> None:
        """Look soon; a file that never rests does not put that off."""
        soon = anyio.current_time() + LOOKS_AFTER_S[0]
        if not self._due or self._due[0] > soon:
            self._due = [soon, *self._due]
            self._wakeup.set()

    async def look(self) -> None:
        """Read every file that is new or has changed, and forget what those that are gone said."""
        began = anyio.current_time()
        known, roots, folders = await self._db.read(
            lambda tx: (ledger.imported_files(tx), _list_roots(tx), ledger.watched_folders(tx))
        )
        self._switched.clear()
        self._held.clear()
        marks = _Marks(known)
        await anyio.to_thread.run_sync(self._read_all, marks, roots)
        self._changes.watch(await anyio.to_thread.run_sync(self._read_watched, marks, folders))
        if marks.new:
            now = self._clock()

            def mark(tx: Connection) -> None:
                for path, stamp in marks.new.items():
                    ledger.mark_imported(tx, path, *stamp, now)

            await self._db.write(mark)
        self._looks += 1
        self._took_s = anyio.current_time() - began

    # ── In a thread ──────────────────────────────────────────────────────────────────────────────

    def _read_all(self, marks: _Marks, roots: Sequence[str]) -> None:
        self._files, self._failed, self._left_out = 0, {}, Counter()
        if not self._follows_clients:
            return
        claude = sources.claude_memory_source([], self._environ, self._find_directory)
        sources.add_agents_folders(claude, roots)
        codex = sources.codex_memory_source([], self._environ)
        self._left_out = claude.skipped + codex.skipped
        for name, source in (("claude-memory", claude), ("codex-memory", codex)):
            source.files = [one for one in source.files if self._is_followed(one)]
            self._files += len(source.files)
            self._read_source(name, source, marks)

    def _read_watched(self, marks: _Marks, folders: Mapping[str, bool]) -> list[str]:
        """Read the folders that the user has watched; return the directories whose changes matter."""
        watched: list[dict[str, object]] = []
        directories: list[str] = []
        for folder, by_headings in folders.items():
            state, files = "followed", 0
            if not _is_in_place(folder):
                state = _ABSENT
            elif not self._captures(folder):
                state = "its project is switched off"
            else:
                source = sources.watched_source(
                    Path(folder), self._environ, by_headings=by_headings
                )
                files = len(source.files)
                self._failed |= source.failed
                self._read_source(_WATCHED, source, marks)
                directories += source.mirrored
            watched.append({"path": folder, "files": files, "state": state})
        self._watched = watched
        return directories

    def _read_source(self, name: str, source: ImportSource, marks: _Marks) -> None:
        options = importer.ImportOptions(f"import:{name}", "file")
        report = importer.import_source(
            source, options, importer.MemorySink(self._take, self._withdraw), marks,
            lambda *_: anyio.from_thread.check_cancelled(),
        )  # fmt: skip
        for path in self._held:
            marks.new.pop(options.checkpoint_prefix + path, None)
        self._left_out += report.skipped
        told = {**report.failed, **dict(one.split(": ", 1) for one in report.broken)}
        for path, why in told.items():
            log.get(self.name).warning("note_not_read", path=path, reason=why)
        self._failed |= told
        self._outcomes += report.outcomes
        self._outcomes["withdrawn"] += report.withdrawn

    def _is_followed(self, file: ImportFile) -> bool:
        if file.directory is None and file.project != GLOBAL_PROJECT:
            self._left_out["of an unknown directory"] += 1
            return False
        if file.directory is not None and not self._captures(file.directory):
            self._left_out["of a project that is switched off"] += 1
            return False
        return True

    def _captures(self, directory: str) -> bool:
        if directory not in self._switched:
            self._switched[directory] = anyio.from_thread.run(self._read_switch, directory)
        return self._switched[directory]

    async def _read_switch(self, directory: str) -> bool:
        key = (await self._service.scopes.identify(directory)).key
        return await self._db.read(lambda tx: projects.effective_switch(tx, key, None).captures)

    def _find_directory(self, folder: Path) -> str | None:
        try:
            key = str(folder), folder.stat().st_mtime_ns
        except OSError:
            return None
        if key not in self._directories:
            self._directories[key] = sources.resolve_project_directory(folder)
        return self._directories[key]

    def _take(self, batch: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        notes: list[requests.RememberRequest] = []
        for one in batch:
            path, project = one["origin"]["path"], one.get("project")
            is_placed = project == GLOBAL_PROJECT or one.get("directory") is not None
            if not is_placed or (one.get("directory") and not self._captures(one["directory"])):
                self._held.add(path)
                continue
            fields = {k: list(v) if isinstance(v, tuple) else v for k, v in one.items()}
            if project == GLOBAL_PROJECT:
                # No agent writes for everywhere as with a tool call: what its client keeps there is its text.
                fields["speaker"] = "agent"
            elif sources.is_shared_folder(path) or one["source"] == f"import:{_WATCHED}":
                fields["speaker"] = "tool"
            notes.append(requests.parse(requests.RememberRequest, fields))
        if not notes:
            return []
        stored = anyio.from_thread.run(self._service.take_notes, notes, Caller(), "user")
        return [
            {"id": one.id, "outcome": one.outcome, "superseded": one.superseded} for one in stored
        ]

    def _withdraw(self, path: str, staying: list[int]) -> int:
        if path in self._held:  # what was left out may be said there still
            return 0
        return len(
            anyio.from_thread.run(self._service.app.curator.withdraw, path, frozenset(staying))
        )


def _list_roots(tx: Connection) -> list[str]:
    """The directories of the projects that are known, the latest first."""
    known = [one.key for one in projects.projects(tx) if os.path.isabs(one.key)]  # noqa: PTH117  # nothing is looked up here
    return known[-_ROOTS_MAX:][::-1]


def _is_in_place(folder: str) -> bool:
    """Return whether a watched folder is where the user named it.

    One that is gone may lie on a disk that is not mounted: nothing is withdrawn. One that has become a link leads to
    what the user has not named.
    """
    return Path(folder).is_dir() and os.path.realpath(folder) == folder
