"""Which provider serves the model: the first that does, so that one may stand in for another that is away."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio

from memd.embeddings.base import ModelNotServed, Provider, ServedModel
from memd.errors import EngineAbsent, EngineFailed

PREFERRED_TIMEOUT_S = 1.0
"""How long a provider may take to say what it serves while another one waits for its turn."""
GRACE_S = 30.0
"""How long a provider that has served may be away before the next one takes over: that starts another space."""


class Connection(Protocol):
    """What a provider asks."""

    @property
    def url(self) -> str:
        """Where it is, for messages."""
        ...

    def reopen(self) -> None:
        """Allow requests again after `close`."""
        ...

    async def close(self) -> None:
        """End what is open; requests fail until `reopen`."""
        ...


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
        """Where the preferred provider is."""
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
