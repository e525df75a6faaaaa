"""Ollama's routes: which models it has, and vectors of texts. Conforms to Provider.

The digest comes from /api/tags, which also tells a model that runs in somebody's cloud from one that
runs here; what a model can take from /api/show, asked once per digest. Statuses about the texts are a
Refused; all others mean that it does not answer now. Not here: HTTP (server.py), deadlines and what
to do in the meantime (learned.py), prefixes (families.py).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memd.config import EnginesConfig
from memd.embeddings.provider import NotServed, Refused, Served
from memd.embeddings.server import ModelServer, Reply
from memd.errors import EngineAbsent, EngineFailed

_OK, _BAD_REQUEST, _NOT_FOUND, _BROKEN = 200, 400, 404, 500
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|too (?:large|long)|larger than|maximum .*tokens",
    re.IGNORECASE,
)


class Ollama:
    """One model of a server that speaks Ollama's own protocol."""

    name = "ollama"

    def __init__(self, server: ModelServer, config: EnginesConfig) -> None:
        self._server = server
        self._model = config.model
        self._dimensions = config.dimensions
        self._keep_alive = config.keep_alive
        self._is_remote_allowed = config.remote
        self._shown: Served | None = None
        """What was last asked about in full."""

    async def look(self) -> Served | NotServed:
        """Return what the server says of the model. Raises EngineFailed."""
        try:
            reply = await self._server.ask("/api/tags")
        except EngineAbsent as error:
            raise EngineAbsent(
                f"{error.message}: start Ollama, and `ollama pull {self._model}` once"
            ) from error
        entry = _entry(_value(reply, "models"), self._model)
        if entry is None:
            return NotServed(
                "no model", f"Ollama does not have {self._model}: `ollama pull {self._model}`"
            )
        if entry.get("remote_host") and not self._is_remote_allowed:
            return NotServed(
                "remote refused",
                f"{self._model} runs on another machine, not in this Ollama; what is remembered goes"
                " there only with engines.remote = true",
            )
        digest = str(entry.get("digest") or "")
        if self._shown is None or self._shown.digest != digest or not digest:
            self._shown = await self._show(digest)
        return self._shown

    async def embed(self, texts: Sequence[str]) -> Any | Refused:
        """Return what the server sends as vectors, unvetted, or why it refuses these texts.

        Raises EngineFailed.
        """
        body: dict[str, Any] = {
            "model": self._model,
            "input": list(texts),
            "truncate": True,
            "keep_alive": duration(self._keep_alive),
        }
        if self._dimensions:
            body["dimensions"] = self._dimensions
        reply = await self._server.ask("/api/embed", body)
        refused = refusal(reply)
        return refused if refused is not None else _value(reply, "embeddings")

    async def _show(self, digest: str) -> Served:
        info = _value(await self._server.ask("/api/show", {"model": self._model}), "model_info")
        told = info if isinstance(info, Mapping) else {}
        return Served(
            self.name,
            self._model,
            digest,
            context=_number(told, ".context_length"),
            dimensions=_number(told, ".embedding_length"),
        )


def refusal(reply: Reply) -> Refused | None:
    """Return why a server refuses these texts, None if it took them.

    Raises EngineFailed if it would have refused any others, too.
    """
    if reply.status == _OK:
        return None
    if reply.status in (_BAD_REQUEST, _BROKEN) or _TOO_LONG.search(reply.said):
        return Refused(reply.said, is_length=bool(_TOO_LONG.search(reply.said)))
    raise EngineFailed(f"the server of the model refused: {reply.said}")


def _value(reply: Reply, key: str) -> Any:
    if reply.status != _OK:
        raise EngineFailed(f"Ollama refused: {reply.said}")
    if not isinstance(reply.value, Mapping):
        raise EngineFailed("what answers is not Ollama")
    return reply.value.get(key)


def _entry(models: Any, name: str) -> Mapping[str, Any] | None:
    full = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    known = models if isinstance(models, list) else ()
    named = (m for m in known if isinstance(m, Mapping))
    return next((m for m in named if full in (m.get("name"), m.get("model"))), None)


def _number(told: Mapping[str, Any], ending: str) -> int:
    """Find a number whose key begins with the name of the architecture."""
    found = (value for key, value in told.items() if key.endswith(ending))
    return next((value for value in found if type(value) is int and value > 0), 0)


def duration(text: str) -> str | int:
    """Return seconds as a number: Ollama wants a unit in a text."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text
