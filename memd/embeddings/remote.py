"""An embedding model on a server or in a process that may be down: deadlines, a circuit breaker, queries before batches.

The worker checks whether the server has the model, loads it, and then checks now and then whether it is
still the same one; a replaced model is a new space. Batches go in pieces so small that no query waits
long behind one. When answers fail or come late, the circuit opens and calls fail at once until a trial
of the worker has succeeded.
"""

import contextlib
import math
import statistics
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar

import anyio
import numpy as np

from memd import log
from memd.config import EnginesConfig
from memd.embeddings import (
    BATCH_S,
    CircuitBreaker,
    ModelNotServed,
    Provider,
    ServedModel,
    TextsRefused,
    Vectors,
)
from memd.embeddings.batching import (
    HARMLESS_TEXT,
    AdaptiveBatchSize,
    BatchEmbedder,
    validate_vectors,
)
from memd.embeddings.local.packages import CATALOG
from memd.embeddings.local.process import PROVIDER as LOCAL
from memd.embeddings.local.process import LocalProvider
from memd.embeddings.providers import (
    ModelServer,
    OllamaProvider,
    OpenAIProvider,
    prefixes_of,
    space_of,
)
from memd.errors import EngineAbsent, EngineFailed
from memd.models import Space
from memd.wakeup import AutoResetEvent

ModelState = Literal["starting", "absent", "no model", "remote refused", "failing", "ready"]

CHECK_INTERVAL_S = 10.0
"""How long queries may not notice that a model was replaced; batches notice at once."""
REST_S = 60.0
"""Seconds between two checks while nobody asks the model anything."""
_EAGER_TRIALS = 8
"""Trials of a server that does not answer, some twenty seconds of them, before it is tried for those who ask only."""
_DESCRIBE_TIMEOUT_S = 2.0
_LATE_SHARE = 1 / 3
"""A query that its caller cancelled after this share of its deadline counts as late."""
_WAIT_FOR_QUERIES_MAX_S = 1.0
"""How long a piece of a batch waits for queries, so that queries do not starve it."""
_CACHED_QUERIES_MAX = 128
_LATENCIES_MAX = 64
_FIRST = {"auto": "ollama", "ollama": "ollama", "openai": "openai", LOCAL: LOCAL}
"""Value of `engines.embedder` → the provider that is asked first."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The readiness of a model to be asked."""

    state: ModelState
    why: str
    """Why it is not ready; empty if it is."""
    since: int
    """When `state` became this, UTC milliseconds."""


PREFERRED_TIMEOUT_S = 1.0
"""How long a provider may take to say what it serves while another one waits for its turn."""
GRACE_S = 30.0
"""How long a provider that has served may be away before the next one takes over: that starts another space."""


class Connection(Protocol):
    """The way to a provider: where to ask, and as whom."""

    @property
    def url(self) -> str:
        """Its address, for messages."""

    def reopen(self) -> None:
        """Allow requests again after `close`."""

    async def close(self) -> None:
        """End what is open; requests fail until `reopen`."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A provider and what it serves."""

    provider: Provider
    served: ServedModel


class ProviderChoice:
    """One or more providers, the preferred one first."""

    def __init__(self, providers: Sequence[tuple[Provider, Connection]]) -> None:
        self._providers = providers
        self._chosen: Provider | None = None
        self._away_since: float | None = None
        """When the chosen provider was first found to be away; None while it is there."""

    @property
    def url(self) -> str:
        """The address of the preferred provider."""
        return self._providers[0][1].url

    def reopen(self) -> None:
        """Allow requests again after `close`."""
        for _, connection in self._providers:
            connection.reopen()

    async def close(self) -> None:
        """End all connections."""
        for _, connection in self._providers:
            await connection.close()

    async def describe(self) -> Chosen | ModelNotServed:
        """Return the first provider that serves a model, and the model. Raises EngineFailed."""
        if len(self._providers) == 1:
            provider = self._providers[0][0]
            found = await provider.describe_model()
            return found if isinstance(found, ModelNotServed) else Chosen(provider, found)
        reasons = []
        for provider, connection in self._providers:
            found = await _describe_in_time(provider, connection)
            if isinstance(found, ServedModel):
                self._chosen, self._away_since = provider, None
                return Chosen(provider, found)
            reasons.append(found)
            is_away = found.state in {"absent", "failing"}
            if provider is self._chosen and is_away and self._is_in_grace():
                raise EngineAbsent(found.why)
        self._chosen = None
        return ModelNotServed(reasons[0].state, "; and ".join(one.why for one in reasons))

    def _is_in_grace(self) -> bool:
        now = anyio.current_time()
        self._away_since = self._away_since or now
        return now < self._away_since + GRACE_S


async def _describe_in_time(
    provider: Provider, connection: Connection
) -> ServedModel | ModelNotServed:
    try:
        with anyio.fail_after(PREFERRED_TIMEOUT_S):
            return await provider.describe_model()
    except TimeoutError:
        # Something listens there: a question is told so, as it is not where there is no server at all.
        return ModelNotServed("failing", f"{connection.url} does not answer")
    except EngineAbsent as error:
        return ModelNotServed("absent", error.message)
    except EngineFailed as error:
        return ModelNotServed("failing", error.message)


class RemoteEmbedder:
    """The embedding model of the settings, and the worker that checks it. Conforms to ModelEmbedder."""

    name = "embedder"

    def __init__(
        self,
        choice: ProviderChoice,
        config: EnginesConfig,
        clock: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self._choice = choice
        self._config = config
        self._clock = clock
        self._jitter = jitter
        self._wakeup = AutoResetEvent()
        self._trying = anyio.Lock()
        self._slots = anyio.CapacityLimiter(config.concurrency)
        self._batches = anyio.CapacityLimiter(max(1, config.concurrency - 1))
        self._open_queries = 0
        self._queries_done = anyio.Event()
        self._batch_size = AdaptiveBatchSize()
        self._breaker = CircuitBreaker()
        self._status = ModelStatus("starting", "it has not been asked yet", clock())
        self._chosen: Chosen | None = None
        self._embedder: BatchEmbedder | None = None
        self._checked_at = -math.inf
        self._is_doubted = False
        """Whether a late answer asks for a trial: loading a model takes longer than a query may."""
        self._is_question_near = False
        self._was_asked = False
        """Whether the model was wanted since the last check."""
        self._ready_callbacks: list[Callable[[], None]] = []
        self._cache: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._latencies_s: deque[float] = deque(maxlen=_LATENCIES_MAX)
        self._counts = {"asked": 0, "failed": 0, "timeouts": 0}

    @property
    def current(self) -> Space | None:
        """The space of the model as it last answered; None before its first answer."""
        return self._embedder.space if self._embedder else None

    @property
    def query_s(self) -> float:
        """Seconds that a question may take."""
        return self._config.query_s

    @property
    def is_starting(self) -> bool:
        """Return whether it is not known yet if there is a model that answers."""
        return self._status.state == "starting"

    @property
    def is_wanted(self) -> bool:
        """Return whether the settings name it, rather than take whatever model there is."""
        return self._config.embedder != "auto"

    @property
    def is_failing(self) -> bool:
        """Return whether there is a model, and it did not answer last time."""
        return self._status.state == "failing"

    @property
    def is_ready(self) -> bool:
        """Return whether the model answered last time."""
        return self._status.state == "ready"

    @property
    def why_not(self) -> str:
        """The reason that it is not ready, and what to do about it; empty if it is ready."""
        return self._status.why

    @property
    def _model_name(self) -> str:
        if self._chosen is not None:
            return self._chosen.served.model
        return CATALOG[0].name if self._config.embedder == LOCAL else self._config.model

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever the model is back, was replaced or was removed."""
        self._ready_callbacks.append(wake)

    def warm(self) -> None:
        """Have a local model ready for a question that may follow soon: starting it takes longer than that may."""
        if self._chosen is not None and self._chosen.served.provider == LOCAL:
            self._is_question_near = True
            self._wakeup.set()

    def nudge(self) -> None:
        """Check the model now instead of when it is due."""
        self._breaker = self._breaker.allow_trial()
        self._checked_at = -math.inf
        self._wakeup.set()

    def status(self) -> dict[str, object]:
        """Return the state and counts since the start; `trouble` is set if the settings name this model."""
        self._note_asked()  # who looks may have just started the server
        current = self._status
        is_missed = current.state not in ("ready", "starting")
        wanted = self._config.embedder
        trouble = f"engines.embedder is {wanted}, but {current.why}"
        p50_s = statistics.median(self._latencies_s) if self._latencies_s else None
        return {
            "provider": self._chosen.served.provider if self._chosen else _FIRST[wanted],
            "model": self._model_name,
            "space": self.current.name if self.current else None,
            "state": current.state,
            "since": current.since,
            "why_not": current.why,
            **self._counts,
            "p50_ms": None if p50_s is None else round(p50_s * 1000, 1),
            "trouble": trouble if is_missed and wanted != "auto" else None,
        }

    async def run(self) -> None:
        """Check the model whenever it is due, until cancelled."""
        self._choice.reopen()
        try:
            while True:
                wait_s = self._seconds_until_check()
                if self._is_question_near:
                    await self._warm_model()
                elif wait_s > 0:
                    await self._wakeup.wait(wait_s)
                else:
                    await self.check()
        finally:
            with anyio.CancelScope(shield=True):
                await self._choice.close()

    async def query(self, text: str) -> Vectors:
        """Return the vector of a query, (dimensions,), of length 1; zeros if it is blank.

        Within `query_s`. Raises EngineFailed, at once if the model is not ready.
        """
        embedder = self._require_ready()
        if not text.strip():
            return np.zeros(embedder.space.dimensions, np.float32)
        key = (embedder.space.name, text)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        started = anyio.current_time()
        work = partial(self._run_in_slot, partial(embedder.embed_query, text))
        self._open_queries += 1  # batches wait
        try:
            found = await self._count_call(self._config.query_s, work)
        finally:
            self._open_queries -= 1
            if not self._open_queries:
                self._queries_done.set()
        self._latencies_s.append(anyio.current_time() - started)
        found.flags.writeable = False  # the cache shares it
        self._cache[key] = found
        if len(self._cache) > _CACHED_QUERIES_MAX:
            self._cache.popitem(last=False)
        return found

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dimensions), rows of length 1; zeros for a text that is blank or cannot be embedded.

        Within `BATCH_S` for every `batch` texts. Raises EngineFailed, at once if the model is not
        ready; so it does if the model was replaced meanwhile.
        """
        embedder = self._require_ready()
        rows = np.zeros((len(texts), embedder.space.dimensions), np.float32)
        nonblank = [at for at, text in enumerate(texts) if text.strip()]
        if nonblank:
            seconds = BATCH_S * -(-len(nonblank) // self._config.batch)
            work = partial(self._embed_in_pieces, embedder, [texts[at] for at in nonblank])
            async with self._batches:
                rows[nonblank] = await self._count_call(seconds, work)
        return rows

    async def _warm_model(self) -> None:
        self._is_question_near = False
        if self._embedder is not None and self.is_ready:
            with contextlib.suppress(EngineFailed):
                await self._embedder.provider.embed([HARMLESS_TEXT], is_query=True)

    async def check(self) -> None:
        """Check whether the server has the model, and if in doubt whether it answers."""
        async with self._trying:
            self._was_asked = False
            with contextlib.suppress(EngineFailed):
                await self._run_within(
                    _DESCRIBE_TIMEOUT_S + BATCH_S + _DESCRIBE_TIMEOUT_S,
                    self._check_served,
                    is_trial=True,
                )
            self._checked_at = anyio.current_time()

    async def _check_served(self) -> None:
        try:
            with anyio.fail_after(_DESCRIBE_TIMEOUT_S):
                found = await self._choice.describe()
        except TimeoutError:
            raise EngineFailed(f"{self._choice.url} does not answer") from None
        if isinstance(found, ModelNotServed):
            self._breaker = self._breaker.record_failure(anyio.current_time(), self._jitter())
            self._set_status(found.state, found.why)
            self._forget_removed_model()
        elif found != self._chosen or not self.is_ready or self._is_doubted:
            await self._load_model(found)

    def _forget_removed_model(self) -> None:
        """Have no model if the last one was removed from this machine: nothing will bring it back by itself."""
        if self._chosen is not None and self._chosen.served.provider == LOCAL:
            self._chosen = self._embedder = None
            self._wake_all()

    async def _load_model(self, chosen: Chosen) -> None:
        """Make the provider load the model; the length of its answer shows the space."""
        served = chosen.served
        # Only the model of the settings may be one whose vectors can be cut.
        cut = 0 if served.provider == LOCAL else self._config.dimensions
        dimensions = min(cut or served.dimensions, served.dimensions)
        if self._embedder and chosen == self._chosen:
            dimensions = self._embedder.space.dimensions
        raw = await chosen.provider.embed([prefixes_of(served.model)[1] + HARMLESS_TEXT])
        rows = validate_vectors(raw, 1, cut=cut, dimensions=dimensions)
        if isinstance(rows, TextsRefused):
            raise EngineFailed(f"the model gives no usable vectors: {rows.reason}")
        before, self._chosen = self.current, chosen
        space = space_of(served, rows.shape[1])
        self._embedder = BatchEmbedder(chosen.provider, space, cut, served.context)
        self._breaker, self._is_doubted = CircuitBreaker(), False
        is_news = not self.is_ready or space != before
        self._set_status("ready", "")
        if is_news:
            self._wake_all()

    def _wake_all(self) -> None:
        for wake in self._ready_callbacks:
            wake()

    async def _embed_in_pieces(self, embedder: BatchEmbedder, texts: Sequence[str]) -> Vectors:
        rows: list[Vectors] = []
        at = 0
        while at < len(texts):
            piece = texts[at : at + self._batch_size.size(self._config.batch)]
            await self._wait_for_queries()
            started = anyio.current_time()
            rows.append(await self._run_in_slot(partial(embedder.embed_documents, piece)))
            self._batch_size = self._batch_size.record_request(
                len(piece), anyio.current_time() - started
            )
            at += len(piece)
        if self._chosen is None or await embedder.provider.describe_model() != self._chosen.served:
            self.nudge()
            raise EngineFailed(f"{embedder.space.model} was replaced while it was asked")
        return np.concatenate(rows)

    async def _run_in_slot(self, work: Callable[[], Awaitable[Vectors]]) -> Vectors:
        async with self._slots:
            return await work()

    async def _wait_for_queries(self) -> None:
        with anyio.move_on_after(_WAIT_FOR_QUERIES_MAX_S):
            while self._open_queries:
                self._queries_done = (
                    anyio.Event() if self._queries_done.is_set() else self._queries_done
                )
                await self._queries_done.wait()

    async def _count_call(self, seconds: float, work: Callable[[], Awaitable[_T]]) -> _T:
        self._counts["asked"] += 1
        try:
            return await self._run_within(seconds, work)
        except EngineFailed:
            self._counts["failed"] += 1
            raise

    async def _run_within(
        self, seconds: float, work: Callable[[], Awaitable[_T]], *, is_trial: bool = False
    ) -> _T:
        """Run this within a deadline and record the outcome in the circuit breaker. Raises EngineFailed."""
        started = anyio.current_time()
        try:
            with anyio.fail_after(seconds):
                found = await work()
        except TimeoutError:
            error = EngineFailed(f"{self._model_name} did not answer within {seconds:g} s")
            self._record_failure(error, is_late=not is_trial)
            raise error from None
        except EngineFailed as error:
            self._record_failure(error)
            raise
        except anyio.get_cancelled_exc_class():
            waited_s = anyio.current_time() - started
            if not is_trial and waited_s >= seconds * _LATE_SHARE:
                reason = f"{self._model_name} did not answer within {waited_s:.2g} s"
                self._record_failure(EngineFailed(reason), is_late=True)
            raise
        if self.is_ready and not is_trial:
            self._breaker = CircuitBreaker()
        return found

    def _record_failure(self, error: EngineFailed, *, is_late: bool = False) -> None:
        now, jitter = anyio.current_time(), self._jitter()
        if is_late:
            self._counts["timeouts"] += 1
            self._breaker = self._breaker.record_late(now, jitter)
            self._is_doubted = True
            self._wakeup.set()
        else:
            self._breaker = self._breaker.record_failure(now, jitter)
        if self._breaker.state(now) != "closed":
            self._set_status(
                "absent" if isinstance(error, EngineAbsent) else "failing", error.message
            )
            self._wakeup.set()

    def _set_status(self, state: ModelState, why: str) -> None:
        before = self._status
        since = before.since if before.state == state else self._clock()
        self._status = ModelStatus(state, why, since)
        if before.state != state:
            space = self.current.name if self.current else None
            report = log.get(self.name).info
            if state == "ready":
                report("model_answered", space=space)
            else:
                report("model_unavailable", state=state, reason=why)

    def _note_asked(self) -> None:
        if not self._was_asked:
            self._was_asked = True
            self._wakeup.set()

    def _require_ready(self) -> BatchEmbedder:
        self._note_asked()
        if self._embedder is None or not self.is_ready:
            raise EngineFailed(self.why_not)
        return self._embedder

    def _seconds_until_check(self) -> float:
        """Return the seconds until the model is due to be checked."""
        now = anyio.current_time()
        if self.is_ready:
            interval_s = CHECK_INTERVAL_S if self._was_asked else REST_S
            return 0.0 if self._is_doubted else self._checked_at + interval_s - now
        wait_s = 0.0 if self._breaker.state(now) != "open" else self._breaker.due - now
        is_eager = self._was_asked or self._breaker.trials <= _EAGER_TRIALS
        return wait_s if is_eager else max(wait_s, self._checked_at + REST_S - now)


def make_remote_embedder(
    config: EnginesConfig,
    environ: Mapping[str, str],
    clock: Callable[[], int],
    jitter: Callable[[], float],
    models_dir: str = "",
) -> RemoteEmbedder | None:
    """Return the model that the settings name, None if they name none.

    `clock` returns UTC milliseconds, `jitter` numbers in [0, 1); without `models_dir` there is no local model.
    Raises ConfigError, naming the key.
    """
    providers: list[tuple[Provider, Connection]] = []
    if config.embedder in ("auto", "ollama", "openai"):
        key = environ.get(config.api_key_env, "") if config.embedder == "openai" else ""
        server = ModelServer(config.url, is_remote_allowed=config.remote, key=key)
        make = OpenAIProvider if config.embedder == "openai" else OllamaProvider
        providers.append((make(server, config), server))
    if models_dir and config.embedder in ("auto", LOCAL):
        local = LocalProvider(models_dir)
        providers.append((local, local))
    if not providers:
        return None
    return RemoteEmbedder(ProviderChoice(providers), config, clock, jitter)
