"""Questions in, answers out. The one file in this room that waits.

The way of a question: its words become terms, each leg ranks what the filters leave, the profile
fuses and weighs, diversity orders, and the page is fetched from the vault. All of that happens in
one read transaction in one thread (search.py), so that an answer is of one moment; only embedding
the question comes before. A leg that cannot answer is named in `degraded`, and the others answer
without it. What was returned is counted in memory and written in the background, never on the way
of an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

from memd.bell import Bell
from memd.config import RecallConfig
from memd.engines.ports import Embedder, Reranker
from memd.errors import BadRequest, EngineFailed, VaultError
from memd.index.shelf import Shelf
from memd.recall import cold, intent, query, rerank, search, verbatim
from memd.recall.answer import Answer, Question
from memd.recall.asked import Asked
from memd.recall.profiles import Profile, check_chosen, for_recent, resolve, resolve_all
from memd.recall.surface import surfaced
from memd.recall.tally import Tally
from memd.store import uses
from memd.store.database import Connection, Database

FLUSH_S = 5.0
"""How long uses are gathered before they are written down."""
FLUSH_HITS = 200
"""So many are written down at once."""
MODEL_HITS = 20
"""So many hits a model looks at again, each cut to"""
MODEL_CHARACTERS = 1_200
"""siftcoder's own cut."""


class Recaller:
    """Answers questions over one vault."""

    name = "recaller"

    def __init__(
        self,
        db: Database,
        embedders: Sequence[Embedder],
        shelf: Shelf,
        config: RecallConfig,
        own_profiles: Mapping[str, Mapping[str, Any]],
        reranker: Reranker | None = None,
    ) -> None:
        """Raise ConfigError if any profile is not valid, whether or not it is used."""
        self._reranker = reranker
        self._db = db
        self._embedder = embedders[-1]
        self._shelf = shelf
        self._config = config
        self._profiles = resolve_all(own_profiles)
        self._own = own_profiles
        check_chosen(config.profile, own_profiles)
        self._answered = 0
        self._tally = Tally()
        self._counted, self._enough = Bell(), Bell()

    async def run(self) -> None:
        """Write down for ever what was used, and once more when asked to stop."""
        try:
            while True:
                await self._counted.wait()
                await self._enough.wait(FLUSH_S)
                await self.flush()
        except anyio.get_cancelled_exc_class():
            await self.flush()
            raise

    async def flush(self) -> None:
        """Write down what was used until now; raises a VaultError and keeps it if that fails."""
        if not self._tally.pending:
            return
        counts = self._tally.take()
        try:
            # Who stops the room meanwhile must not lose what was taken out of the tally.
            with anyio.CancelScope(shield=True):
                await self._db.write(lambda tx: uses.record(tx, counts.uses, counts.pairs))
        except VaultError:
            self._tally.give_back(counts)
            self._counted.ring()
            raise

    @property
    def space(self) -> str:
        """The name of the space whose vectors are compared."""
        return self._embedder.space.name

    def status(self) -> dict[str, object]:
        """What `memd status` shows of this room."""
        return {
            "answered": self._answered,
            "profile": self._config.profile,
            "space": self.space,
            "uses_pending": self._tally.pending,
        }

    async def search(self, question: Question) -> Answer:
        """Answer a question; BadRequest if it asks for nothing or for an unknown profile."""
        started = anyio.current_time()
        asked = await self._read(question)
        if asked.profile.rerank == "model":
            answer = await self._looked_at_again(asked)
        else:
            answer = await self._db.read(lambda tx: self._answer(tx, asked))
        if question.surface is not None:
            answer = surfaced(answer, question.surface, asked.k)
        self._answered += 1
        self._count(question, answer)
        return replace(answer, took_ms=round((anyio.current_time() - started) * 1000, 2))

    def _answer(self, tx: Connection, asked: Asked) -> Answer:
        found = (
            search.answer(tx, self._shelf, asked)
            if self._shelf.loaded
            else cold.answer(tx, asked)
        )
        if not asked.question.include_turns:
            return found
        return replace(found, turns=verbatim.turns(tx, asked))

    async def _looked_at_again(self, asked: Asked) -> Answer:
        """The page by the scores of a model over the first 20 hits; without it, as it was."""
        wide = replace(
            asked,
            k=max(MODEL_HITS, asked.last),
            question=replace(asked.question, offset=0, include_turns=False),
        )
        answer = await self._db.read(lambda tx: self._answer(tx, wide))
        if asked.question.include_turns:
            said = await self._db.read(lambda tx: verbatim.turns(tx, asked))
            answer = replace(answer, turns=said)
        offset = asked.question.offset
        scores, failed = await self._ask_model(asked.question.text, answer)
        if failed is None:
            return rerank.by_model(answer, scores, offset, asked.k)
        answer = replace(answer, degraded={**answer.degraded, "rerank": failed})
        return rerank.page(answer, offset, asked.k)

    async def _ask_model(self, text: str, answer: Answer) -> tuple[Sequence[float], str | None]:
        """A score per hit, or why there is none."""
        if self._reranker is None:
            return (), "there is no model to rerank with"
        texts = [
            f"{hit.summary.title}\n{hit.summary.body}"[:MODEL_CHARACTERS] for hit in answer.hits
        ]
        try:
            with anyio.fail_after(self._config.rerank_s):
                scores = await self._reranker.rerank(text, texts)
        except TimeoutError:
            return (), f"the model took longer than {self._config.rerank_s:g} s"
        except EngineFailed as error:
            return (), error.message
        if len(scores) != len(texts) or not np.isfinite(scores).all():
            return (), "the model's scores cannot be read"
        return scores, None

    def _count(self, question: Question, answer: Answer) -> None:
        """What a person looked into, or a benchmark asked of the past, was not used."""
        if question.explain or question.as_of is not None or not question.count_use:
            return
        if answer.hits:
            self._tally.add([hit.summary.id for hit in answer.hits], question.now)
            self._counted.ring()
        if self._tally.pending >= FLUSH_HITS:
            self._enough.ring()

    async def _read(self, question: Question) -> Asked:
        parsed = query.parse(question.text)
        if parsed.is_empty and question.topic_key is None and question.embedding is None:
            raise BadRequest(
                "query: there is no word in it to look for; say a few, or give a topic_key"
            )
        meant = intent.read(question.text)
        name = question.profile or self._config.profile
        profile = self._profile(name, is_recent=meant.is_recent)
        if question.legs is not None:
            profile = _with_legs(profile, question.legs)
        vector, degraded = await self._embed(question, parsed, profile)
        return Asked(
            question=question,
            query=parsed,
            intent=meant,
            profile=profile,
            profile_name=name,
            k=question.k or profile.k,
            space=self.space,
            vector=vector,
            degraded=degraded,
        )

    def _profile(self, name: str, *, is_recent: bool) -> Profile:
        """The profile of this name; what it does not say of `k` and `pool`, the settings do."""
        profile = self._profiles.get(name) or resolve(name, self._own)
        said = profile.model_fields_set
        if is_recent:
            said = said | (profile.when_recent or {}).keys()
            profile = for_recent(profile)
        settings = {"k": self._config.k, "pool": self._config.pool}
        return profile.model_copy(
            update={key: value for key, value in settings.items() if key not in said}
        )

    async def _embed(
        self, question: Question, parsed: query.Query, profile: Profile
    ) -> tuple[NDArray[np.float32] | None, dict[str, str]]:
        """The question's vector if a leg wants it, and what could not be done."""
        if not profile.legs.get("vector"):
            return None, {}
        if question.embedding is not None:
            return self._ready(question.embedding), {}
        if parsed.is_empty:
            return None, {}
        try:
            return await self._embedder.query(question.text), {}
        except EngineFailed as error:
            return None, {"vector": error.message}

    def _ready(self, embedding: Sequence[float]) -> NDArray[np.float32]:
        """A vector that the caller brings, as a unit vector of the active space."""
        wanted = self._embedder.space.dimensions
        vector = np.asarray(embedding, dtype=np.float32)
        if len(vector) != wanted or not np.isfinite(vector).all():
            raise BadRequest(
                f"embedding: {len(vector)} numbers; the space {self.space} has {wanted}, all finite"
            )
        return np.asarray(vector / (float(np.linalg.norm(vector)) or 1.0), dtype=np.float32)


def _with_legs(profile: Profile, wanted: frozenset[str]) -> Profile:
    kept = {leg: weight for leg, weight in profile.legs.items() if leg in wanted and weight > 0}
    if not kept:
        raise BadRequest(
            f"legs: this profile has {', '.join(profile.legs)}; none of them is asked for"
        )
    return profile.model_copy(update={"legs": kept})
