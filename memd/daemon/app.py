"""The composition root: every worker of the daemon, in the order in which an event becomes an answer.

Events become summaries, summaries become the index, the index answers questions. This is the one place
where the clock is read.
"""

import contextlib
import os
import platform
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from memd import caches, log
from memd.capture import spool
from memd.capture.ingest import Ingestor, Receipt
from memd.capture.project import ProjectOverrides, ProjectResolver, read_remote
from memd.capture.redact import RULES_VERSION, redact, redact_value
from memd.config import Config, explain_retired
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator
from memd.consolidate.judgments import JudgmentService
from memd.consolidate.retention import Retention
from memd.consolidate.scrub import Eraser, RelatedFiles, make_redaction_rule
from memd.daemon import backup, doctor, process
from memd.daemon.client_notes import NoteFollower
from memd.daemon.doctor import VaultDoctor
from memd.daemon.follower import TranscriptFollower
from memd.daemon.status import EmbedderTracker, StatusReporter
from memd.daemon.supervisor import (
    NO_MANAGER,
    STOP_S,
    ManagerNotifier,
    ServiceManager,
    Shutdown,
    Supervisor,
    Worker,
    supervise,
)
from memd.daemon.worktrees import WorktreeJoiner
from memd.distill.distiller import Distiller
from memd.distill.redistill import Redistiller
from memd.distill.writer import TurnWriter
from memd.embeddings import ChatModel, Reranker
from memd.embeddings.command import CommandChat, CommandReranker, pick_environment
from memd.embeddings.hashing import HashingEmbedder
from memd.embeddings.providers import OllamaChat
from memd.embeddings.remote import RemoteEmbedder, make_remote_embedder
from memd.errors import VaultError
from memd.index.backfill import Backfill, VectorMaintenance
from memd.index.indexer import Indexer
from memd.index.memory_index import ACTIVE_FROM, MemoryIndex
from memd.injection.ask import Asker
from memd.injection.builder import ContextBuilder
from memd.injection.guard import RuleGuard
from memd.injection.injector import Injector
from memd.injection.outcomes import OutcomeJudge
from memd.models import EventKind, NewEvent
from memd.paths import Paths, find_home, private_dir
from memd.recall.recaller import Recaller
from memd.server.listener import Listener
from memd.server.service import App, MemoryService
from memd.sharing.syncer import Syncer
from memd.sharing.workers import SyncWorker, hash_host
from memd.store.backup import note_rules_of_empty
from memd.store.database import Database
from memd.text import digest

if TYPE_CHECKING:
    from memd.sharing.workers import TeamWorker

_LAST_EVENT_ID = 2**62
"""Greater than the id of any event."""


def utc_now_ms() -> int:
    """Read the clock: UTC milliseconds."""
    return time.time_ns() // 1_000_000


async def serve(
    config: Config,
    paths: Paths,
    clock: Callable[[], int] = utc_now_ms,
    manager: ServiceManager = NO_MANAGER,
) -> None:
    """Serve one vault until a shutdown is requested. Raises AlreadyRunning or a VaultError."""
    caches.limit_arenas()
    for directory in (paths.data_dir, paths.state_dir, paths.runtime_dir):
        private_dir(directory)
    with process.hold_lock(paths.lock, clock()), doctor.open_vault(paths, clock()) as db:
        process.unmark_stopped(paths.stopped)
        backup.remove_leftovers(paths)
        log.configure(
            paths.log,
            level=config.daemon.log_level,
            max_bytes=config.daemon.log_bytes,
            redact=redact,
        )
        shutdown = Shutdown(STOP_S)
        log.get("daemon").info("daemon_started", vault=paths.vault, pid=os.getpid())
        for words in explain_retired(paths.config_file):
            log.get("daemon").warning("setting_ignored", reason=words)
        await _note_rules(db)
        async with anyio.create_task_group() as signals, supervise(redact) as supervisor:
            signals.start_soon(shutdown.watch_signals)
            daemon = Daemon(config, paths, db, clock, shutdown, supervisor, manager=manager)
            for worker in daemon.workers:
                supervisor.start(worker)
            await shutdown.wait()
            if shutdown.is_by_signal:
                process.mark_stopped(paths.stopped)
            manager.notify("STOPPING=1", "STATUS=stopping")
            log.get("daemon").info("shutdown_requested", pid=os.getpid())
            # The listener first: answers in flight are sent while every other worker still runs.
            await supervisor.stop(daemon.listener)
            signals.cancel_scope.cancel()
        process.remove_socket_directory(paths)
    shutdown.complete()
    log.get("daemon").info("daemon_stopped", pid=os.getpid())


async def _note_rules(db: Database) -> None:
    """Before anything is captured: note that all of a new vault is written by the present rules of redaction."""
    with contextlib.suppress(VaultError):  # a full disk, say: the next start tries again
        await db.write(partial(note_rules_of_empty, version=RULES_VERSION))


class Daemon:
    """The workers of one vault. Each wakes the next one when it has written something."""

    def __init__(  # noqa: PLR0913  # what all workers share, and what started and stops them
        self,
        config: Config,
        paths: Paths,
        db: Database,
        clock: Callable[[], int],
        shutdown: Shutdown,
        supervisor: Supervisor,
        *,
        manager: ServiceManager,
    ) -> None:
        self._config, self._paths, self._db, self._clock = config, paths, db, clock
        space = (embedders := (HashingEmbedder(),))[0].space.name
        index = MemoryIndex(ACTIVE_FROM)
        overrides = ProjectOverrides(paths.projects_file, find_home(os.environ) or "/")

        # Events → summaries.
        self.ingestor = Ingestor(
            db, config.capture, clock, paths.spool_dir, self._wake_distiller,
            spool_fallbacks=paths.spool_fallbacks, projects=ProjectResolver(clock, overrides),
            writer_dirs=paths.find_writer_dirs(), on_boundary=self._notice_boundary,
        )  # fmt: skip
        self.distiller = Distiller(db, config.distill, clock, self._wake_indexer_and_writer)
        self.follower = self._make_follower()
        self.redistiller = Redistiller(db, config.distill, clock, self._wake_indexer)
        self.chat, self.writer = self._make_writer()

        # Summaries → index: at once in the hashing space, in a model's space as fast as it answers.
        self.model, backfill = self._make_learned_space(index)
        wake_backfill = backfill.nudge if backfill else None
        self.indexer = Indexer(db, embedders, index, on_indexed=wake_backfill)

        # Index → answers, and the context that agents are given unasked.
        recaller = Recaller(
            db, embedders, index, config.recall, config.profiles, _make_reranker(config),
            learned=self.model, make_command_reranker=cache(self._make_command_reranker),
        )  # fmt: skip
        builder = ContextBuilder(db, recaller, self.distiller, config.inject, clock, overrides)
        self.injector = injector = Injector(db, builder, config.inject, clock)
        self.guard = RuleGuard(db, injector, clock, paths.socket, config.inject.rules)

        # Summaries → fewer, truer ones: by rule, by age, and by the user's word.
        consolidator = Consolidator(db, index, space, config.consolidate, clock, self._wake_indexer)
        retention = Retention(db, config.retention, clock, self._wake_indexer)
        judgments = JudgmentService(db, self._redact, clock, self._wake_indexer, index, space)
        curator = self._make_curator()
        self.team = self._make_team((sync := self._make_sync(curator)).syncer)
        self.joiner = self._make_joiner(curator, overrides, builder)

        # All of it for clients, on the socket.
        tracker = EmbedderTracker(config.engines.embedder, space, clock())
        status = StatusReporter(db, supervisor, paths, clock, tracker, lambda: index.active, manager.started_by)  # fmt: skip
        app = App(
            db, self.ingestor, recaller, curator, self.indexer, self.distiller, consolidator,
            status.report, shutdown.request, clock, asker=Asker(db, config.notes, clock), injector=injector, guard=self.guard,
            outcomes=OutcomeJudge(db, clock), retention=retention,
            vector_maintenance=VectorMaintenance(db, embedders, self.model, backfill),
            judge=judgments, redistiller=self.redistiller, overrides=overrides, agents=config.agents,
            look_at_folders=lambda: self.notes.nudge() if self.notes else None,
            checkup=VaultDoctor(db, self.indexer, self.ingestor.drain, clock),
            backups=lambda: backup.list_backups(backup.backup_dir(paths), paths.vault), sync=sync, team=self.team, writer=self.chat,
        )  # fmt: skip
        self.listener = Listener(MemoryService(app), paths.socket, clock=clock, passed=manager.listening_socket)  # fmt: skip
        self.notes, self.outcomes = self._make_note_follower(app), app.outcomes
        workers: tuple[Worker | None, ...] = (
            self.guard, self.ingestor, self.follower, self.distiller, self.redistiller, self.indexer, recaller,
            injector, self.outcomes, consolidator, self.joiner, self.notes, retention, sync if sync.is_periodic else None,
            self.team, self.listener, self.model, backfill, self.writer,
            ManagerNotifier(manager, self.listener.listening, self.indexer.loaded) if manager.notify_address else None,
        )  # fmt: skip
        self.workers = [worker for worker in workers if worker is not None]

    def _redact(self, value: Any, rules: Callable[[Any], Any] = redact_value) -> Any:
        """Redact a JSON value by the rules, and of the secrets that the captured sessions told."""
        return self.ingestor.secrets.redact(value, rules)

    def _make_learned_space(
        self, index: MemoryIndex
    ) -> tuple[RemoteEmbedder | None, Backfill | None]:
        """Make the model and the worker that fills its space; None unless the settings want one."""
        engines, models = self._config.engines, self._paths.models_dir
        model = make_remote_embedder(engines, os.environ, self._clock, random.random, models)
        if model is None:
            return None, None
        backfill = Backfill(self._db, model, index, engines, self._clock)
        model.on_ready(backfill.nudge)
        return model, backfill

    def _make_joiner(
        self, curator: Curator, overrides: ProjectOverrides, builder: ContextBuilder
    ) -> WorktreeJoiner:
        joiner = WorktreeJoiner(self._db, curator, overrides, self._clock)
        builder.join_moved = joiner.join_moved
        return joiner

    def _make_follower(self) -> TranscriptFollower | None:
        """Make the worker that reads the transcripts of live sessions; None if the settings forbid it."""
        config, path = self._config.capture, self._paths.transcripts
        if config.enabled and config.read_transcript:
            return TranscriptFollower(self._db, self.ingestor.capture, path, self.distiller.hurry)
        # What happens meanwhile must not be read later.
        Path(path).unlink(missing_ok=True)
        return None

    def _notice_boundary(self, event: NewEvent, receipt: Receipt) -> None:
        if self.notes is not None:
            self.notes.nudge()
        self.guard.notice(event)
        if event.kind is EventKind.SESSION_END:
            self.outcomes.nudge()
        if event.kind is EventKind.PROMPT and self.model is not None:
            self.model.warm()
        is_read = self.follower is not None and self.follower.notice(event, receipt)
        if event.kind is EventKind.STOP and not is_read:
            self.distiller.hurry()

    def _make_note_follower(self, app: App) -> NoteFollower | None:
        """Make the worker that follows the clients' own notes and watched folders; None if nothing is captured."""
        if not self._config.capture.enabled:
            return None
        follows = self._config.notes.follow
        return NoteFollower(
            self._db, MemoryService(app), self._clock, os.environ, follows_clients=follows
        )

    def _make_chat(self) -> ChatModel | None:
        """Make the model that may write about sessions; None unless the settings name one."""
        config = self._config.distill
        if config.writer == "ollama":
            return OllamaChat(self._config.engines, config.writer_model, config.writer_s)
        if not config.writer_command:
            return None
        return CommandChat(
            config.writer_command, deadline_s=config.writer_s, redact=redact,
            directory=self._paths.writer_dir,
            environ=pick_environment(os.environ, config.writer_environment),
        )  # fmt: skip

    def _make_command_reranker(self, command: Sequence[str]) -> Reranker:
        """Make what has a profile's program pick the best of a search's hits."""
        chat = CommandChat(
            command, deadline_s=self._config.recall.rerank_s, redact=redact,
            directory=f"{self._paths.writer_dir}-rerank-{digest(*command)[:8]}",
            environ=pick_environment(os.environ, self._config.distill.writer_environment),
            settings=("the profile's command", "recall.rerank_s"),
        )  # fmt: skip
        return CommandReranker(chat)

    def _make_writer(self) -> tuple[ChatModel | None, TurnWriter | None]:
        """Make the model, and the worker that has it rewrite summaries; None unless the settings want them."""
        chat, config = self._make_chat(), self._config.distill
        if chat is None or config.writer == "none":
            return chat, None
        return chat, TurnWriter(
            self._db, chat, config, self._clock, self._wake_indexer, redact=redact
        )

    def _make_curator(self) -> Curator:
        """Make what remembers, forgets and scrubs by hand, in the log and the backups too."""
        paths = self._paths
        files = RelatedFiles(
            paths.log, partial(_backup_times, paths), partial(_erase_spool_lines, paths),
            partial(backup.list_leftovers, paths), partial(backup.remove_leftovers, paths),
        )  # fmt: skip
        wake, settle = self._wake_indexer, self.indexer.settle
        eraser = Eraser(self._db, self._clock, wake, files, self._distill_all, settle)
        entropy, task_days = self._config.capture.entropy, self._config.distill.task_days
        clean = partial(self._redact, rules=partial(redact_value, entropy=entropy))
        rule = make_redaction_rule(clean, clean, RULES_VERSION)
        return Curator(self._db, self._redact, self._clock, wake, eraser, rule, task_days=task_days)

    def _make_sync(self, curator: Curator) -> SyncWorker:
        """Make what syncs with other devices; it forgets as the user does."""
        syncer = Syncer(
            self._db, redact_value, self._clock, self._wake_indexer,
            lambda ids: curator.forget(ids, dry_run=False),
            new_device=lambda: secrets.token_hex(8), read_remote=read_remote, finish_erasing=curator.eraser.finish,
            host=hash_host(self._db.path),
        )  # fmt: skip
        label = self._config.sync.name or platform.node() or "unnamed"
        paths = self._paths
        return SyncWorker(
            syncer, self._config.sync, paths.age_key, paths.mirrors_dir, label, self._clock
        )

    def _make_team(self, syncer: Syncer) -> "TeamWorker | None":
        """Make what shares projects with a team; None unless the settings name a server."""
        if not self._config.team.url:
            return None
        from memd.sharing.workers import TeamWorker  # noqa: PLC0415  # few have a team

        syncer = replace(syncer, on_written=self.indexer.nudge)
        return TeamWorker(syncer, self._config.team, platform.node() or "unnamed")

    async def _distill_all(self) -> None:
        """Make memories of the spool and of open turns, so that they can be forgotten."""
        await self.ingestor.drain()
        await self.distiller.settle(_LAST_EVENT_ID)

    def _wake_distiller(self) -> None:
        self.joiner.nudge()
        # What the transcript adds to the turn belongs to the same memories: not twice, if it is read at once.
        if self.follower is None or not self.follower.is_reading:
            self.distiller.nudge()

    def _wake_indexer(self) -> None:
        self.indexer.nudge()
        self.guard.nudge()
        self.injector.notice_change()
        if self.team is not None:
            self.team.nudge()

    def _wake_indexer_and_writer(self) -> None:
        self._wake_indexer()
        if self.writer is not None:
            self.writer.nudge()


def _make_reranker(config: Config) -> Reranker | None:
    if not config.recall.rerank_model:
        return None
    return OllamaChat(config.engines, config.recall.rerank_model, config.recall.rerank_s)


def _backup_times(paths: Paths) -> dict[str, int]:
    found = backup.list_backups(backup.backup_dir(paths), paths.vault)
    return {**backup.list_copies(paths), **{one.path: one.at for one in found}}


def _erase_spool_lines(paths: Paths, is_wanted: Callable[[str], bool], *, erases: bool) -> int:
    return sum(spool.erase_unfinished(one, is_wanted, erases=erases) for one in paths.spools)
