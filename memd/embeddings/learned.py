"""A learned model that may not be there: asked in time or not at all, and found again when it is back.

The room looks whether the server has the model, wakes it, and from then on looks now and then whether
it is still the same. A question has a deadline and comes before batches, which go in pieces so small
that no question waits long behind one. Once answers fail or come late, nobody asks until a trial of
the room's own has succeeded, so an outage costs no question anything. A changed model is a new space.
Not here: what a server says (ollama.py, openai.py), or which texts lack a vector.
"""

import contextlib
import math
import statistics
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import anyio
import numpy as np

from memd import log
from memd.bell import Bell
from memd.config import EnginesConfig
from memd.embeddings.breaker import Breaker
from memd.embeddings.families import prefixes, space_of
from memd.embeddings.ollama import Ollama
from memd.embeddings.openai import OpenAI
from memd.embeddings.pace import Pace
from memd.embeddings.ports import Vectors
from memd.embeddings.provider import NotServed, Provider, Refused, Served
from memd.embeddings.salvage import HARMLESS, Asking
from memd.embeddings.server import ModelServer
from memd.embeddings.vetted import vetted
from memd.errors import EngineAbsent, EngineFailed
from memd.models import Space

State = Literal["starting", "absent", "no model", "remote refused", "failing", "ready"]

LOOK_EVERY_S = 10.0
"""How long a model that was replaced may go unnoticed by questions; batches notice at once."""
_LOOK_S = 2.0
_AGAIN_S, _AGAIN_FOR_S = 1.0, 3.0
_LATE_PART = 1 / 3
"""A question that somebody else gave up after this part of its deadline counts as late, too."""
_QUESTIONS_FIRST_S = 1.0
"""How long a piece of a batch waits for questions; they must not starve it."""
_CACHED = 128
_TIMED = 64
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Standing:
    """How it is with the model."""

    state: State
    why: str
    """Why it is not ready; empty if it is."""
    since: int
    """UTC milliseconds; when `state` became this."""


class LearnedEmbedder:
    """The model of the settings, wherever it is. Conforms to Learned; a room of the house."""

    name = "embedder"

    def __init__(
        self,
        provider: Provider,
        server: ModelServer,
        config: EnginesConfig,
        clock: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self._provider = provider
        self._server = server
        self._config = config
        self._clock = clock
        self._jitter = jitter
        self._bell = Bell()
        self._trying = anyio.Lock()
        self._slots = anyio.CapacityLimiter(config.concurrency)
        self._batches = anyio.CapacityLimiter(max(1, config.concurrency - 1))
        self._questions = 0
        self._quiet = anyio.Event()
        self._pace = Pace()
        self._breaker = Breaker()
        self._standing = Standing("starting", "it has not been asked yet", clock())
        self._served: Served | None = None
        self._asking: Asking | None = None
        self._looked_at = -math.inf
        self._is_doubted = False
        """Whether a late answer asks for a trial, since a model that has to be loaded first needs more
        time than any question has."""
        self._wakes: list[Callable[[], None]] = []
        self._cache: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._took: deque[float] = deque(maxlen=_TIMED)
        self._counts = {"asked": 0, "failed": 0, "timeouts": 0}

    @property
    def current(self) -> Space | None:
        """The space of the model as it last answered; None before it ever did."""
        return self._asking.space if self._asking else None

    @property
    def is_ready(self) -> bool:
        """Whether asking now is worth it."""
        return self._standing.state == "ready"

    @property
    def why_not(self) -> str:
        """Why it is not ready, with what to do; empty if it is."""
        return self._standing.why

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Have somebody woken whenever the model is back, or is another one."""
        self._wakes.append(wake)

    def nudge(self) -> None:
        """Look at the model now instead of when it is due."""
        self._breaker = self._breaker.now_due()
        self._looked_at = -math.inf
        self._bell.ring()

    def status(self) -> dict[str, object]:
        """How it is, and counts since the start; `trouble` if a person asked for this very model."""
        standing = self._standing
        is_missed = standing.state not in ("ready", "starting")
        wanted = self._config.embedder
        return {
            "provider": "ollama" if wanted == "auto" else wanted,
            "model": self._config.model,
            "space": self.current.name if self.current else None,
            "state": standing.state,
            "since": standing.since,
            "why_not": standing.why,
            **self._counts,
            "p50_ms": round(statistics.median(self._took) * 1000, 1) if self._took else None,
            "trouble": f"engines.embedder is {wanted}, but {standing.why}"
            if is_missed and wanted != "auto"
            else None,
        }

    async def run(self) -> None:
        """Try whenever it is due, and look now and then, until the house closes."""
        self._server.reopen()
        try:
            while True:
                wait_s = self._due_in()
                if wait_s > 0:
                    await self._bell.wait(wait_s)
                else:
                    await self.probe()
        finally:
            with anyio.CancelScope(shield=True):
                await self._server.close()

    async def query(self, text: str) -> Vectors:
        """Return the vector of a question, (dimensions,), of length 1; zeros if it is blank.

        Within `query_s`. Raises EngineFailed, at once if the model is not ready.
        """
        asking = self._ready()
        if not text.strip():
            return np.zeros(asking.space.dimensions, np.float32)
        key = (asking.space.name, text)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        started = anyio.current_time()
        with self._comes_first():
            found = await self._counted(
                self._config.query_s, partial(self._slotted, partial(asking.question, text))
            )
        self._took.append(anyio.current_time() - started)
        found.flags.writeable = False  # it is shared from now on
        self._cache[key] = found
        if len(self._cache) > _CACHED:
            self._cache.popitem(last=False)
        return found

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dimensions), rows of length 1; zeros for a text that is blank or cannot be taken.

        Within `batch_s` for every `batch` texts. Raises EngineFailed, at once if the model is not
        ready; so it does if the model was replaced meanwhile.
        """
        asking = self._ready()
        rows = np.zeros((len(texts), asking.space.dimensions), np.float32)
        worded = [at for at, text in enumerate(texts) if text.strip()]
        if worded:
            seconds = self._config.batch_s * -(-len(worded) // self._config.batch)
            work = partial(self._in_pieces, asking, [texts[at] for at in worded])
            async with self._batches:
                rows[worded] = await self._counted(seconds, work)
        return rows

    async def probe(self) -> None:
        """Look whether the server has the model, and whether it answers if there is doubt."""
        async with self._trying:
            with contextlib.suppress(EngineFailed):
                await self._within(
                    _LOOK_S + self._config.batch_s + _LOOK_S, self._look, is_trial=True
                )
            self._looked_at = anyio.current_time()

    async def _look(self) -> None:
        try:
            with anyio.fail_after(_LOOK_S):
                found = await self._provider.look()
        except TimeoutError:
            raise EngineFailed(f"{self._server.url} does not answer") from None
        if isinstance(found, NotServed):
            self._breaker = self._breaker.failed(anyio.current_time(), self._jitter())
            self._stand(found.state, found.why)
        elif found != self._served or not self.is_ready or self._is_doubted:
            await self._wake(found)

    async def _wake(self, served: Served) -> None:
        """Have the model loaded and answer: what it answers shows its space."""
        cut = self._config.dimensions
        dimensions = min(cut or served.dimensions, served.dimensions)
        if self._asking and served == self._served:
            dimensions = self._asking.space.dimensions
        raw = await self._sampled(prefixes(served.model)[1] + HARMLESS)
        rows = (
            raw if isinstance(raw, Refused) else vetted(raw, 1, cut=cut, dimensions=dimensions)
        )
        if isinstance(rows, Refused):
            raise EngineFailed(f"the model gives no usable vectors: {rows.reason}")
        before, self._served = self.current, served
        space = space_of(served, rows.shape[1])
        self._asking = Asking(self._provider, space, cut, served.context)
        self._breaker, self._is_doubted = self._breaker.succeeded(), False
        is_news = not self.is_ready or space != before
        self._stand("ready", "")
        for wake in self._wakes if is_news else ():
            wake()

    async def _sampled(self, text: str) -> object:
        """Return the reply of the one who answers first: somebody patient, or somebody who asks anew.

        Loading a model may take a minute, and giving up stops it; but a server that has recovered may
        never answer what it was asked before.
        """
        found: list[object] = []

        async def wait(scope: anyio.CancelScope) -> None:
            try:
                found.append(await self._provider.embed([text]))
            except EngineFailed as error:
                found.append(error)
            scope.cancel()

        async def ask_anew(scope: anyio.CancelScope) -> None:
            while True:
                await anyio.sleep(_AGAIN_S)
                with anyio.move_on_after(_AGAIN_FOR_S), contextlib.suppress(EngineFailed):
                    found.append(await self._provider.embed([text]))
                    scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait, group.cancel_scope)
            group.start_soon(ask_anew, group.cancel_scope)
        if isinstance(found[0], EngineFailed):
            raise found[0]
        return found[0]

    async def _in_pieces(self, asking: Asking, texts: Sequence[str]) -> Vectors:
        rows: list[Vectors] = []
        at = 0
        while at < len(texts):
            piece = texts[at : at + self._pace.size(self._config.batch)]
            await self._let_questions_pass()
            started = anyio.current_time()
            rows.append(await self._slotted(partial(asking.documents, piece)))
            self._pace = self._pace.after(len(piece), anyio.current_time() - started)
            at += len(piece)
        if await self._provider.look() != self._served:
            raise EngineFailed(f"{self._config.model} was replaced while it was asked")
        return np.concatenate(rows)

    async def _slotted(self, work: Callable[[], Awaitable[Vectors]]) -> Vectors:
        async with self._slots:
            return await work()

    @contextlib.contextmanager
    def _comes_first(self) -> Iterator[None]:
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._quiet.set()

    async def _let_questions_pass(self) -> None:
        with anyio.move_on_after(_QUESTIONS_FIRST_S):
            while self._questions:
                self._quiet = anyio.Event() if self._quiet.is_set() else self._quiet
                await self._quiet.wait()

    async def _counted(self, seconds: float, work: Callable[[], Awaitable[_T]]) -> _T:
        self._counts["asked"] += 1
        try:
            return await self._within(seconds, work)
        except EngineFailed:
            self._counts["failed"] += 1
            raise

    async def _within(
        self, seconds: float, work: Callable[[], Awaitable[_T]], *, is_trial: bool = False
    ) -> _T:
        """Do this in time, and remember how it went. Raises EngineFailed."""
        started = anyio.current_time()
        try:
            with anyio.fail_after(seconds):
                found = await work()
        except TimeoutError:
            error = EngineFailed(f"{self._config.model} did not answer within {seconds:g} s")
            self._miss(error, is_late=not is_trial)
            raise error from None
        except EngineFailed as error:
            self._miss(error)
            raise
        except anyio.get_cancelled_exc_class():
            waited_s = anyio.current_time() - started
            if not is_trial and waited_s >= seconds * _LATE_PART:
                told = f"{self._config.model} did not answer within {waited_s:.2g} s"
                self._miss(EngineFailed(told), is_late=True)
            raise
        if self.is_ready and not is_trial:
            self._breaker = self._breaker.succeeded()
        return found

    def _miss(self, error: EngineFailed, *, is_late: bool = False) -> None:
        now, jitter = anyio.current_time(), self._jitter()
        if is_late:
            self._counts["timeouts"] += 1
            self._breaker = self._breaker.was_late(now, jitter)
            self._is_doubted = True
            self._bell.ring()
        else:
            self._breaker = self._breaker.failed(now, jitter)
        if self._breaker.state(now) != "closed":
            self._stand(
                "absent" if isinstance(error, EngineAbsent) else "failing", error.message
            )
            self._bell.ring()

    def _stand(self, state: State, why: str) -> None:
        before = self._standing
        since = before.since if before.state == state else self._clock()
        self._standing = Standing(state, why, since)
        if before.state != state:
            space = self.current.name if self.current else None
            report = log.get(self.name).info
            if state == "ready":
                report("model_answered", space=space)
            else:
                report("model_not_to_be_had", state=state, reason=why)

    def _ready(self) -> Asking:
        if self._asking is None or not self.is_ready:
            raise EngineFailed(self.why_not)
        return self._asking

    def _due_in(self) -> float:
        """Return in how many seconds to look at the model again."""
        now = anyio.current_time()
        if self.is_ready:
            return 0.0 if self._is_doubted else self._looked_at + LOOK_EVERY_S - now
        return 0.0 if self._breaker.state(now) != "open" else self._breaker.due - now


def learned_of(
    config: EnginesConfig,
    environ: Mapping[str, str],
    clock: Callable[[], int],
    jitter: Callable[[], float],
) -> LearnedEmbedder | None:
    """Return the model that the settings name, None if they want none.

    `clock` tells UTC milliseconds, `jitter` numbers in [0, 1). Raises ConfigError, naming the key.
    """
    if config.embedder == "hashing":
        return None
    key = environ.get(config.api_key_env, "") if config.embedder == "openai" else ""
    server = ModelServer(config.url, is_remote_allowed=config.remote, key=key)
    provider: Provider = (
        OpenAI(server, config) if config.embedder == "openai" else Ollama(server, config)
    )
    return LearnedEmbedder(provider, server, config, clock, jitter)
