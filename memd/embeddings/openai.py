"""Embeddings over OpenAI's API, as llama.cpp, LM Studio and vLLM serve it.

These servers report no digest, so the properties of a model that do not change by themselves stand for it.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from memd.config import EnginesConfig
from memd.embeddings.base import ModelNotServed, ServedModel, TextsRefused
from memd.embeddings.http import ModelServer, Reply
from memd.errors import EngineFailed
from memd.text import digest

_MODELS_LISTED_MAX = 3
_STABLE_KEYS = ("root", "parent", "quantization", "arch", "max_model_len", "meta")
"""Properties that identify a model; not `created`, which some servers set to the time of the request."""
_CONTEXT_KEYS = ("max_model_len", "max_context_length", "n_ctx_train")


class OpenAIProvider:
    """One model of a server with /v1/embeddings. Conforms to Provider."""

    name = "openai"

    def __init__(self, server: ModelServer, config: EnginesConfig) -> None:
        self._server = server
        self._model = config.model
        self._base = "" if server.url.endswith("/v1") else "/v1"

    async def describe_model(self) -> ServedModel | ModelNotServed:
        """Return what the server reports of the model. Raises EngineFailed."""
        reply = await self._server.ask(f"{self._base}/models")
        models = {
            str(entry["id"]): entry
            for entry in _data_of(reply)
            if isinstance(entry, Mapping) and "id" in entry
        }
        entry = models.get(self._model)
        if entry is None:
            has = ", ".join(sorted(models)[:_MODELS_LISTED_MAX]) or "no model"
            return ModelNotServed(
                "no model",
                f"{self._server.url} has {has}, not {self._model}: load it there, or set engines.model",
            )
        stable = {key: entry[key] for key in _STABLE_KEYS if entry.get(key)}
        identity = digest(*(f"{key}={stable[key]}" for key in sorted(stable))) if stable else ""
        return ServedModel(
            self.name,
            self._model,
            identity,
            context=_find_number(entry, _CONTEXT_KEYS),
            dimensions=_find_number(entry, ("n_embd",)),
        )

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Any | TextsRefused:  # noqa: ARG002  # a server has one queue
        """Return the vectors as the server sends them, in the order of the texts, or why it refuses these.

        Raises EngineFailed.
        """
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        reply = await self._server.ask(f"{self._base}/embeddings", body)
        return reply.refusal() or _sort_vectors(_data_of(reply))


def _data_of(reply: Reply) -> Sequence[Any]:
    if reply.status != HTTPStatus.OK:
        raise EngineFailed(f"the server of the model refused: {reply.reason}")
    data = reply.value.get("data") if isinstance(reply.value, Mapping) else None
    if not isinstance(data, list):
        raise EngineFailed("what answers does not speak OpenAI's protocol")
    return data


def _sort_vectors(data: Sequence[Any]) -> Any | TextsRefused:
    """Return the vectors by their index; without one, in the order of the reply."""
    if not all(isinstance(entry, Mapping) for entry in data):
        return TextsRefused("the reply has no vectors")
    indices = [entry.get("index", at) for at, entry in enumerate(data)]
    if sorted(indices, key=str) != sorted(range(len(data)), key=str):
        return TextsRefused("the vectors are not numbered as the texts are")
    by_index = dict(zip(indices, data, strict=True))
    return [by_index[at].get("embedding") for at in range(len(data))]


def _find_number(entry: Mapping[str, Any], keys: Sequence[str]) -> int:
    meta = entry.get("meta")
    places = (entry, meta if isinstance(meta, Mapping) else {})
    found = (place[key] for place in places for key in keys if key in place)
    return next((value for value in found if type(value) is int and value > 0), 0)
