"""The table of contents: every room, in the order in which a memory passes through them.

This is the one file that knows them all, and the one place where the clock is read. Events become
summaries, summaries become the index, the index becomes answers; consolidation tidies behind them.
When a worker finishes something, it wakes the next one. Not here: any work.
"""

import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from memd import log
from memd.capture.ingest import Ingestor
from memd.capture.project import ProjectOverrides, ProjectResolver
from memd.capture.redact import redact, redact_value
from memd.config import Config
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator
from memd.consolidate.forget import Eraser, RelatedFiles
from memd.consolidate.judgments import JudgmentService
from memd.consolidate.retention import Retention
from memd.consolidate.scrub import make_redaction_rule
from memd.daemon import backup, doctor, process
from memd.daemon.doctor import VaultDoctor
from memd.daemon.status import (
    DaemonFacts,
    EmbedderTracker,
    VaultCounter,
    collect_status,
    worker_report,
)
from memd.daemon.supervisor import Shutdown, Supervisor, Worker, supervise
from memd.daemon.systemd import NO_MANAGER, ManagerNotifier, ServiceManager
from memd.distill.distiller import Distiller
from memd.distill.writer import TurnWriter
from memd.embeddings.base import Reranker
from memd.embeddings.hashing import HashingEmbedder
from memd.embeddings.ollama import OllamaChat
from memd.embeddings.remote import RemoteEmbedder, make_remote_embedder
from memd.index import malloc
from memd.index.backfill import Backfill, VectorMaintenance
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.paths import Paths, private_dir
from memd.recall.recaller import Recaller
from memd.server.context_builder import ContextBuilder
from memd.server.injector import Injector
from memd.server.listener import Listener
from memd.server.service import App
from memd.store import import_rows
from memd.store.database import Database

_EVERYTHING = 2**62


def utc_now_ms() -> int:
    """Read the clock: UTC milliseconds."""
    return time.time_ns() // 1_000_000


async def serve(
    config: Config,
    paths: Paths,
    clock: Callable[[], int] = utc_now_ms,
    starter: ServiceManager = NO_MANAGER,
) -> None:
    """Serve one vault until asked to leave. Raises AlreadyRunning, or a VaultError."""
    malloc.limit_arenas()
    for directory in (paths.data_dir, paths.state_dir, paths.runtime_dir):
        private_dir(directory)
    with process.hold_lock(paths.lock, clock()), doctor.open_vault(paths, clock()) as db:
        import_rows.remove_stale_staging(paths.database)
        log.configure(
            paths.log,
            level=config.daemon.log_level,
            max_bytes=config.daemon.log_bytes,
            redact=redact,
        )
        leave = Shutdown(config.daemon.stop_s)
        log.get("daemon").info("daemon_started", vault=paths.vault, pid=os.getpid())
        async with anyio.create_task_group() as signals, supervise(redact) as house:
            signals.start_soon(leave.heed_signals)
            listener = furnish(house, config, paths, db, clock, leave, starter=starter)
            await leave.wait()
            starter.tell("STOPPING=1", "STATUS=leaves")
            log.get("daemon").info("daemon_asked_to_leave", pid=os.getpid())
            # First the door: answers in flight leave while every other room still works.
            await house.stop(listener)
            signals.cancel_scope.cancel()
    leave.done()
    log.get("daemon").info("daemon_stopped", pid=os.getpid())


def furnish(  # noqa: PLR0913  # what all rooms have in common
    house: Supervisor,
    config: Config,
    paths: Paths,
    db: Database,
    clock: Callable[[], int],
    leave: Shutdown,
    *,
    starter: ServiceManager,
) -> Listener:
    """Put every room into the house, and return the one at the door."""
    embedders = (HashingEmbedder(),)
    space = embedders[0].space.name
    index = MemoryIndex(config.engines.active_from)
    learned, backfill = _learning(config, db, index, clock)

    # Events → summaries → index → answers. Each room rings the next; so they are made from the end.
    filled = backfill.nudge if backfill else None
    indexer = Indexer(db, embedders, index, config.index, on_indexed=filled)
    rewriter = _rewriter(config, db, clock, indexer.nudge)
    distilled = partial(_nudge, indexer, *rewriter)
    distiller = Distiller(db, config.distill, clock, distilled)
    overrides = ProjectOverrides(paths.projects_file, str(Path.home()))
    ingestor = _make_ingestor(config, paths, db, clock, distiller.nudge, overrides)
    recaller = Recaller(
        db, embedders, index, config.recall, config.profiles, _reranker(config), learned=learned
    )

    # Summaries → fewer, better summaries: by rule, and by a person's word.
    consolidator = Consolidator(db, index, space, config.consolidate, clock, indexer.nudge)
    bring_in = partial(_bring_in, ingestor, distiller)
    curator = _curator(config, paths, db, clock, indexer, bring_in)
    judge = JudgmentService(db, redact, clock, indexer.nudge, index, space)

    # What is old, cut down to what is cited.
    retention = Retention(db, config.retention, clock, indexer.nudge)

    # Answers → agents, unasked.
    builder = ContextBuilder(db, recaller, distiller, config.inject, clock, overrides)
    injector = Injector(db, builder, config.inject, clock)

    # The outside.
    lead = EmbedderTracker(config.engines.embedder, space, clock())
    about = DaemonFacts(
        paths, clock(), lead.told(space, {}, {}, clock()), starter.by, house.seconds()
    )
    status = partial(_status, VaultCounter(db), house, about, clock, lead, index)
    app = App(
        db, ingestor, recaller, curator, indexer, distiller, consolidator, status, leave.ask, clock,
        overrides, injector=injector, vector_maintenance=VectorMaintenance(db, embedders, learned, backfill), retention=retention,
        judge=judge, checkup=VaultDoctor(db, indexer, ingestor, config.index.passage_tokens, clock),
    )  # fmt: skip
    listener = Listener(app, config.serve, paths.socket, clock=clock, passed=starter.door)

    herald = (
        ManagerNotifier(starter, listener.listening, indexer.loaded)
        if starter.address
        else None
    )
    rooms: tuple[Worker | None, ...] = (
        ingestor, distiller, indexer, recaller, injector, consolidator, retention, listener,
        learned, backfill, *rewriter, herald,
    )  # fmt: skip
    for room in filter(None, rooms):
        house.keep(room)
    return listener


def _make_ingestor(
    config: Config,
    paths: Paths,
    db: Database,
    clock: Callable[[], int],
    on_stored: Callable[[], None],
    overrides: ProjectOverrides,
) -> Ingestor:
    """Make the room that takes events in."""
    return Ingestor(
        db,
        config.capture,
        clock,
        paths.spool_dir,
        on_stored,
        spool_fallbacks=paths.spool_fallbacks,
        projects=ProjectResolver(clock, overrides),
    )


def _learning(
    config: Config, db: Database, index: MemoryIndex, clock: Callable[[], int]
) -> tuple[RemoteEmbedder | None, Backfill | None]:
    """Make the rooms of the learned model and of its space; neither if the settings want none."""
    learned = make_remote_embedder(config.engines, os.environ, clock, random.random)
    if learned is None:
        return None, None
    backfill = Backfill(db, learned, index, config.engines, clock)
    learned.on_ready(backfill.nudge)
    return learned, backfill


def _rewriter(
    config: Config, db: Database, clock: Callable[[], int], on_written: Callable[[], None]
) -> tuple[TurnWriter, ...]:
    """Make the room that has a model write; none unless a person asked for it."""
    if config.distill.writer == "none":
        return ()
    chat = OllamaChat(config.engines, config.distill.writer_model, config.distill.writer_s)
    return (TurnWriter(db, chat, config.distill, clock, on_written),)


def _reranker(config: Config) -> Reranker | None:
    if not config.recall.rerank_model:
        return None
    return OllamaChat(config.engines, config.recall.rerank_model, config.recall.rerank_s)


def _curator(
    config: Config,
    paths: Paths,
    db: Database,
    clock: Callable[[], int],
    indexer: Indexer,
    bring_in: Callable[[], Awaitable[None]],
) -> Curator:
    """Make the room of a person's word, which also erases: from the log, too, and by today's redaction."""
    places = RelatedFiles(paths.log, partial(_backups, paths))
    eraser = Eraser(db, clock, indexer.nudge, places, bring_in, indexer.settle)
    entropy = config.capture.entropy
    present = make_redaction_rule(
        partial(redact, entropy=entropy), partial(redact_value, entropy=entropy)
    )
    return Curator(
        db, redact, clock, indexer.nudge, eraser, present, task_days=config.distill.task_days
    )


def _backups(paths: Paths) -> dict[str, int]:
    return {
        one.path: one.at for one in backup.list_backups(backup.backup_dir(paths), paths.vault)
    }


async def _bring_in(ingestor: Ingestor, distiller: Distiller) -> None:
    """Let what waits in the spool and in open turns become memories, so that it can be forgotten."""
    await ingestor.drain()
    await distiller.settle(_EVERYTHING)


def _nudge(*rooms: Indexer | TurnWriter) -> None:
    for room in rooms:
        room.nudge()


async def _status(
    gauge: VaultCounter,
    house: Supervisor,
    about: DaemonFacts,
    clock: Callable[[], int],
    lead: EmbedderTracker,
    index: MemoryIndex,
) -> dict[str, Any]:
    now = clock()
    said, filled = (
        worker_report(house.rooms, "embedder"),
        worker_report(house.rooms, "backfill"),
    )
    embedder = lead.told(index.active, said, filled, now)
    return await collect_status(gauge, house, replace(about, embedder=embedder), now)
