"""The routes of OpenAI's protocol, as llama.cpp, LM Studio and vLLM serve them. Conforms to Provider.

/v1/models tells whether the model is there. Nobody tells a digest, so what the server says of the
model that does not change by itself stands for it. Not here: HTTP (server.py), deadlines (learned.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.config import EnginesConfig
from memd.embeddings.ollama import refusal
from memd.embeddings.provider import NotServed, Refused, Served
from memd.embeddings.server import ModelServer, Reply
from memd.errors import EngineFailed
from memd.text import digest

_OK = 200
_LISTED = 3
_TELLING = ("root", "parent", "quantization", "arch", "max_model_len", "meta")
"""What servers say of a model; not `created`, which some set to the time of the question."""
_CONTEXTS = ("max_model_len", "max_context_length", "n_ctx_train")


class OpenAI:
    """One model of a server with /v1/embeddings."""

    name = "openai"

    def __init__(self, server: ModelServer, config: EnginesConfig) -> None:
        self._server = server
        self._model = config.model
        self._base = "" if server.url.endswith("/v1") else "/v1"

    async def look(self) -> Served | NotServed:
        """Return what the server says of the model. Raises EngineFailed."""
        reply = await self._server.ask(f"{self._base}/models")
        models = {
            str(entry["id"]): entry
            for entry in _data(reply)
            if isinstance(entry, Mapping) and "id" in entry
        }
        entry = models.get(self._model)
        if entry is None:
            has = ", ".join(sorted(models)[:_LISTED]) or "no model"
            return NotServed(
                "no model",
                f"{self._server.url} has {has}, not {self._model}: load it there, or set engines.model",
            )
        told = {key: entry[key] for key in _TELLING if entry.get(key)}
        stable = digest(*(f"{key}={told[key]}" for key in sorted(told))) if told else ""
        return Served(
            self.name,
            self._model,
            stable,
            context=_number(entry, _CONTEXTS),
            dimensions=_number(entry, ("n_embd",)),
        )

    async def embed(self, texts: Sequence[str]) -> Any | Refused:
        """Return what the server sends as vectors, in the order of the texts, or why it refuses these.

        Raises EngineFailed.
        """
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        reply = await self._server.ask(f"{self._base}/embeddings", body)
        refused = refusal(reply)
        return refused if refused is not None else _in_order(_data(reply))


def _data(reply: Reply) -> Sequence[Any]:
    if reply.status != _OK:
        raise EngineFailed(f"the server of the model refused: {reply.said}")
    data = reply.value.get("data") if isinstance(reply.value, Mapping) else None
    if not isinstance(data, list):
        raise EngineFailed("what answers does not speak OpenAI's protocol")
    return data


def _in_order(data: Sequence[Any]) -> Any | Refused:
    """Sort by the index that each vector has; without one, the order of the reply counts."""
    if not all(isinstance(entry, Mapping) for entry in data):
        return Refused("the reply has no vectors")
    indices = [entry.get("index", at) for at, entry in enumerate(data)]
    if sorted(indices, key=str) != sorted(range(len(data)), key=str):
        return Refused("the vectors are not numbered as the texts are")
    by_index = dict(zip(indices, data, strict=True))
    return [by_index[at].get("embedding") for at in range(len(data))]


def _number(entry: Mapping[str, Any], keys: Sequence[str]) -> int:
    meta = entry.get("meta")
    places = (entry, meta if isinstance(meta, Mapping) else {})
    found = (place[key] for place in places for key in keys if key in place)
    return next((value for value in found if type(value) is int and value > 0), 0)
