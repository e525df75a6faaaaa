"""The table of contents: every room, in the order in which a memory passes through them.

This is the one file that knows them all, and the one place where the clock is read. Events become
summaries, summaries become the index, the index becomes answers; consolidation tidies behind them.
What one room finishes, it tells the next by a bell. Not here: any work.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from memd import log
from memd.capture.identity import Identities
from memd.capture.intake import Intake
from memd.capture.overrides import Overrides
from memd.capture.redact import redact
from memd.config import Config
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator
from memd.daemon import lock
from memd.daemon.leave import Leave
from memd.daemon.notify import BY_HAND, Herald, Starter
from memd.daemon.status import About, Embedder, Gauge, gather
from memd.daemon.supervise import House, supervise
from memd.distill.distiller import Distiller
from memd.engines.hashing import HashingEmbedder
from memd.index import heap
from memd.index.indexer import Indexer
from memd.index.shelf import Shelf
from memd.paths import Paths, private_dir
from memd.recall.recaller import Recaller
from memd.serve.app import App
from memd.serve.injecting import Injector
from memd.serve.listener import Listener
from memd.serve.looking import Looker
from memd.store.database import Database, open_database


def clock() -> int:
    """Read the clock: UTC milliseconds."""
    return time.time_ns() // 1_000_000


async def serve(
    config: Config,
    paths: Paths,
    clock: Callable[[], int] = clock,
    starter: Starter = BY_HAND,
) -> None:
    """Serve one vault until asked to leave. Raises AlreadyRunning, or a VaultError."""
    heap.tighten()
    for directory in (paths.data_dir, paths.state_dir, paths.runtime_dir):
        private_dir(directory)
    with lock.held(paths.lock, clock()), open_database(paths.database, clock()) as db:
        log.configure(
            paths.log,
            level=config.daemon.log_level,
            max_bytes=config.daemon.log_bytes,
            redact=redact,
        )
        leave = Leave(config.daemon.stop_s)
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
    house: House,
    config: Config,
    paths: Paths,
    db: Database,
    clock: Callable[[], int],
    leave: Leave,
    *,
    starter: Starter,
) -> Listener:
    """Put every room into the house, and return the one at the door."""
    embedders = (HashingEmbedder(),)
    space = embedders[0].space.name
    shelf = Shelf()

    # Events → summaries → index → answers. Each room rings the next; so they are made from the end.
    indexer = Indexer(db, embedders, shelf, config.index)
    distiller = Distiller(db, config.distill, clock, indexer.nudge)
    overrides = Overrides(paths.projects_file, str(Path.home()))
    intake = Intake(
        db,
        config.capture,
        clock,
        paths.spool_dir,
        distiller.nudge,
        spool_fallbacks=paths.spool_fallbacks,
        identities=Identities(clock, overrides),
    )
    recaller = Recaller(db, embedders, shelf, config.recall, config.profiles)

    # Summaries → fewer, better summaries: by rule, and by a person's word.
    consolidator = Consolidator(db, shelf, space, config.consolidate, clock, indexer.nudge)
    curator = Curator(db, redact, clock, indexer.nudge)

    # Answers → agents, unasked.
    looker = Looker(db, recaller, distiller, config.inject, clock, overrides)
    injector = Injector(db, looker, config.inject, clock)

    # The outside.
    about = _about(config, paths, space, clock(), starter)
    status = partial(_status, Gauge(db), house, about, clock)
    app = App(
        db,
        intake,
        recaller,
        curator,
        indexer,
        distiller,
        consolidator,
        status,
        leave.ask,
        clock,
        overrides,
        injector=injector,
    )
    listener = Listener(app, config.serve, paths.socket, clock=clock, passed=starter.door)

    for room in (intake, distiller, indexer, recaller, injector, consolidator, listener):
        house.keep(room)
    if starter.address is not None:
        house.keep(Herald(starter, listener.listening, indexer.loaded))
    return listener


async def _status(
    gauge: Gauge, house: House, about: About, clock: Callable[[], int]
) -> dict[str, Any]:
    return await gather(gauge, house, about, clock())


def _about(config: Config, paths: Paths, space: str, now: int, starter: Starter) -> About:
    why = "this version has no learned engine"
    embedder = Embedder(
        configured=config.engines.embedder, active="hashing", space=space, why=why
    )
    return About(paths, now, embedder, starter.by)
