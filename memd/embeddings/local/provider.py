"""The local model as a Provider: found on the disk, computed by processes that end when they are idle."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from memd.embeddings.base import ModelNotServed, ServedModel, TextsRefused, Vectors
from memd.embeddings.local.packages import AddedModel, list_added
from memd.embeddings.local.process import ModelDamaged, ModelProcess
from memd.errors import EngineFailed

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
