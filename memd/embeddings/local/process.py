"""The local model as a Provider, and the daemon's side of the process that computes its vectors: start, ask, end.

A process of its own, because then a crash (a file that is cut while it is mapped) is not the daemon's, what it used
goes back to the system to the last byte when it ends, and only its priority is lowered, not that of a thread that
holds the interpreter's lock while others wait for it.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import numpy as np

import memd
from memd.embeddings import ModelNotServed, ServedModel, TextsRefused, Vectors
from memd.embeddings.command import explain_status
from memd.embeddings.local.bert import VECTORS
from memd.embeddings.local.packages import AddedModel, list_added
from memd.errors import EngineFailed

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from memd.embeddings.local.bert import main; main(sys.argv[2:])"
)
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""Two pools of threads that fight for two cores stall each other, and a question needs one core."""
REPLY_TIMEOUT_S = 30.0
"""A process that takes longer for one request hangs, and is killed."""
_LENGTH_BYTES = 4
_REPLY_BYTES_MAX = 1 << 26


class ModelDamaged(EngineFailed):
    """The files of the model cannot be used."""


class ModelProcess:
    """One process for one model, started when it is asked and when it has ended meanwhile. Blocks; thread-safe."""

    def __init__(self, *, idle_s: float, nice: int) -> None:
        self._idle_s = idle_s
        self._nice = nice
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        """The process's stdin and stdout."""
        self._model: AddedModel | None = None
        self._is_closed = False

    def embed(self, model: AddedModel, texts: Sequence[str], *, checks: bool) -> Vectors:
        """Return one row per text. Raises EngineFailed, ModelDamaged. `checks`: a new process compares the weights' SHA-256 first."""
        if not self._lock.acquire(timeout=REPLY_TIMEOUT_S):
            raise EngineFailed(f"{model.name} is busy")
        try:
            body = json.dumps(list(texts)).encode("ascii")
            is_fresh = self._ensure_started(model, checks=checks)
            reply = self._exchange(body)
            if reply is None and not is_fresh and self._has_ended_by_itself():
                # It was idle for so long that it left when we asked.
                self._ensure_started(model, checks=checks)
                reply = self._exchange(body)
            if reply is None:
                raise EngineFailed(
                    f"the process of {model.name} {self._end()}; it is started again"
                )
        finally:
            self._lock.release()
        return _parse_reply(model, reply, len(texts))

    def reap(self) -> None:
        """Forget a process that has ended, so that the system can."""
        if (
            self._process is not None
            and self._process.poll() is not None
            and self._lock.acquire(blocking=False)
        ):
            try:
                self._end()
            finally:
                self._lock.release()

    def reopen(self) -> None:
        """Allow to be asked again after `close`."""
        self._is_closed = False

    def close(self) -> None:
        """End the process, also in the middle of a request, which fails then."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        """The number of the running process; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def _ensure_started(self, model: AddedModel, *, checks: bool) -> bool:
        """Start the process unless it runs with this model; return whether it was started."""
        if self._is_closed:
            raise EngineFailed("the daemon is about to leave")
        if self._process is not None and self._model == model and self._process.poll() is None:
            return False
        self._end()
        digest = (model.digest,) if checks else ()
        self._socket, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # this Python, our own module
                [sys.executable, "-I", "-S", "-c", _BOOT, _list_import_paths(), model.folder, str(model.heads),
                 str(model.context), str(self._idle_s), str(self._nice), *digest],
                stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EngineFailed(
                f"the process of {model.name} cannot be started: {error.strerror}"
            ) from error
        finally:
            theirs.close()
        self._model = model
        return True

    def _exchange(self, body: bytes) -> bytes | None:
        """Send a request and return the reply; None if the process has ended. Raises EngineFailed if it hangs."""
        assert self._process is not None
        assert self._socket is not None
        self._socket.settimeout(REPLY_TIMEOUT_S)
        try:
            self._socket.sendall(len(body).to_bytes(_LENGTH_BYTES, "little") + body)
            with self._socket.makefile("rb") as file:
                length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
                reply = file.read(min(length, _REPLY_BYTES_MAX))
        except TimeoutError:
            self._end()
            raise EngineFailed(
                f"the process of the model took longer than {REPLY_TIMEOUT_S:g} s"
            ) from None
        except OSError:
            return None
        return reply if reply and len(reply) == length else None

    def _has_ended_by_itself(self) -> bool:
        assert self._process is not None
        return self._process.wait() == 0

    def _end(self) -> str:
        """End the process; return how it ended, in words."""
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
        if process is None:
            return "has ended"
        process.kill()
        return explain_status(process.wait())


def _parse_reply(model: AddedModel, reply: bytes, count: int) -> Vectors:
    if reply[:1] != VECTORS:
        reason = reply[1:].decode("utf-8", "replace")
        raise ModelDamaged(
            f"{model.name} cannot be used: {reason}; `memd model add` fetches it again"
        )
    found: Vectors = np.frombuffer(reply, "<f4", offset=1)
    if found.size != count * model.dimensions:
        raise ModelDamaged(f"{model.name} gave {found.size:,} numbers for {count} texts")
    return found.reshape(count, model.dimensions)


def _list_import_paths() -> str:
    """List the paths that modules are imported from, as JSON; the process starts without looking for them again."""
    own = str(Path(memd.__file__).resolve().parent.parent)
    return json.dumps([own, *(path for path in sys.path if path and path != own)])


# ── The provider ──────────────────────────────────────────────────────────────────────────────────

PROVIDER = "local"
OFFER = "`memd model add` fetches one, 80 MB, that runs here without a server"
QUESTIONS_IDLE_S = 900.0
"""How long the process for questions waits for the next one: a start takes longer than an answer may."""
BATCHES_IDLE_S = 20.0
_LOWEST_PRIORITY = 19
_THREADS = 4
"""Calls that may wait in threads at a time; those of a process that hangs must not take all of the daemon's."""


class LocalProvider:
    """The model that was added on this machine. Conforms to Provider.

    Questions have a process of their own: one of lowest priority would answer late while others compute, and an
    unprivileged process cannot raise its priority again.
    """

    def __init__(self, models_dir: str) -> None:
        self.url = models_dir
        self._questions = ModelProcess(idle_s=QUESTIONS_IDLE_S, nice=0)
        self._batches = ModelProcess(idle_s=BATCHES_IDLE_S, nice=_LOWEST_PRIORITY)
        self._model: AddedModel | None = None
        self._verified: AddedModel | None = None
        """The model whose weights were compared with their SHA-256 since the start."""
        self._damaged: tuple[AddedModel | None, str] = (None, "")
        """The model that could not be used, and why: it is not read again before it was added again."""
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def describe_model(self) -> ServedModel | ModelNotServed:
        """Return the model that is added, as far as its folder tells."""
        return await anyio.to_thread.run_sync(self._describe)

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Any | TextsRefused:
        """Return the vectors, unchecked. Raises EngineFailed."""
        model = self._model
        if model is None:
            raise EngineFailed("no local model is added")
        checks = not is_query and model != self._verified
        process = self._questions if is_query else self._batches
        work = partial(process.embed, model, texts, checks=checks)
        try:
            # Abandoned when cancelled: the reply must be read, or the next question would get it.
            rows: Vectors = await anyio.to_thread.run_sync(
                work, abandon_on_cancel=True, limiter=self._threads
            )
        except ModelDamaged as error:
            self._damaged = (model, error.message)
            raise
        if checks:
            self._verified = model
        return rows.tolist()

    def reopen(self) -> None:
        """Allow processes to be started again after `close`."""
        for process in (self._questions, self._batches):
            process.reopen()

    async def close(self) -> None:
        """End both processes."""
        for process in (self._questions, self._batches):
            await anyio.to_thread.run_sync(process.close)

    def _describe(self) -> ServedModel | ModelNotServed:
        for process in (self._questions, self._batches):
            process.reap()
        added = list_added(self.url)
        if not added:
            self._model = None
            return ModelNotServed("no model", f"no local model is added ({OFFER})")
        model, damage = added[0], added[0].find_damage()
        if damage:
            damage = f"{model.name} is damaged: {damage}; `memd model add` fetches it again"
        elif model == self._damaged[0]:
            damage = self._damaged[1]
        if damage:
            return ModelNotServed("no model", damage)
        self._model = model
        return ServedModel(PROVIDER, model.name, model.digest, dimensions=model.dimensions)
