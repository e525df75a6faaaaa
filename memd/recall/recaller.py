"""Async entry point; embeds the query, counts use."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np

from memd.config import RecallConfig
from memd.embeddings.base import Embedder, ModelEmbedder, Reranker, Vectors
from memd.errors import BadRequest, EngineFailed, VaultError
from memd.index.memory_index import MemoryIndex
from memd.recall import fts_fallback, hits, query, rerank, search, semantic
from memd.recall.profiles import (
    Profile,
    adapt_to_recent,
    check_default_profile,
    resolve_profile,
    resolve_profiles,
)
from memd.recall.prompt_gate import keep_relevant
from memd.recall.query import ParsedQuery, QueryVector
from memd.recall.types import Answer, Question
from memd.store import judgments, usage
from memd.store.database import Connection, Database
from memd.store.types import SummaryPair, SummaryUse
from memd.wakeup import AutoResetEvent

# MERGED from memd.recall.tally:
# MERGED What answers returned, counted until somebody writes it down. Pure.
# MERGED
# MERGED Two memories of one page were used together; only its best five make pairs, since the tail of a long
# MERGED page says little. Bounded: what is not written for long is counted no further.


PAIRED = 5
ENTRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class UseCounts:
    """What was counted since the last time."""

    uses: Mapping[int, SummaryUse]
    pairs: Mapping[SummaryPair, int]


class UseCounter:
    """Counts of what was returned and not written down yet."""

    def __init__(self) -> None:
        self._uses: dict[int, SummaryUse] = {}
        self._pairs: dict[SummaryPair, int] = {}
        self.pending = 0
        """How many hits were counted since the last `take`."""

    def add(self, summary_ids: Sequence[int], at: int) -> None:
        """Count the page of one answer, best first, given at `at` (UTC ms)."""
        if len(self._uses) + len(self._pairs) >= ENTRIES_MAX:
            return
        self.pending += len(summary_ids)
        for number in summary_ids:
            self._use(number, SummaryUse(1, at))
        for one, other in itertools.combinations(summary_ids[:PAIRED], 2):
            self._pair((min(one, other), max(one, other)), 1)

    def take(self) -> UseCounts:
        """Hand everything over and begin anew."""
        taken = UseCounts(self._uses, self._pairs)
        self._uses, self._pairs, self.pending = {}, {}, 0
        return taken

    def give_back(self, counts: UseCounts) -> None:
        """Count what was taken and could not be written."""
        self.pending += sum(use.count for use in counts.uses.values())
        for number, use in counts.uses.items():
            self._use(number, use)
        for pair, count in counts.pairs.items():
            self._pair(pair, count)

    def _use(self, number: int, use: SummaryUse) -> None:
        old = self._uses.get(number, SummaryUse(0, use.last_at))
        self._uses[number] = SummaryUse(old.count + use.count, max(old.last_at, use.last_at))

    def _pair(self, pair: SummaryPair, count: int) -> None:
        self._pairs[pair] = self._pairs.get(pair, 0) + count


# MERGED from memd.recall.recaller:
# MERGED Questions in, answers out. The one file in this room that waits.
# MERGED
# MERGED The way of a question: its words become terms, each leg ranks what the filters leave, the profile
# MERGED fuses and weighs, diversity orders, and the page is fetched from the vault. All of that happens in
# MERGED one read transaction in one thread (search.py), so that an answer is of one moment; only embedding
# MERGED the question comes before. A learned model has its own deadline for that; without it the hashing space
# MERGED answers alone. A leg that cannot answer is named in `degraded`, and the others answer without it. What
# MERGED was returned is counted in memory and written in the background, never on the way of an answer.


FLUSH_S = 5.0
"""How long uses are gathered before they are written down."""
FLUSH_HITS = 200
"""So many are written down at once."""
PATIENCE_S = 0.3
"""A start maps the index in a moment: until then a question waits so long, for full text alone may take longer."""
MODEL_HITS = 20
"""So many hits a model looks at again, each cut to"""
MODEL_CHARACTERS = 1_200
"""siftcoder's own cut."""
AT_ONCE_S = 0.006
"""Seconds. While answers take less, they are made on the event loop's own thread."""
_REMEMBERED = 8
"""Of so many answers that is the mean, nearly."""
_ALONE = "the hashing space answered alone"


class Recaller:
    """Answers questions over one vault."""

    name = "recaller"

    def __init__(  # noqa: PLR0913  # what it answers from, and two models that may not be there
        self,
        db: Database,
        embedders: Sequence[Embedder],
        index: MemoryIndex,
        config: RecallConfig,
        own_profiles: Mapping[str, Mapping[str, Any]],
        reranker: Reranker | None = None,
        *,
        learned: ModelEmbedder | None = None,
    ) -> None:
        """Raise ConfigError if any profile is not valid, whether or not it is used."""
        self._reranker = reranker
        self._db = db
        self._embedder = embedders[0]
        self._learned = learned
        self._unrelated: tuple[str, Vectors] | None = None
        """The space of a learned model, and the sentences in it that no question is about."""
        self._index = index
        self._config = config
        self._profiles = resolve_profiles(own_profiles)
        self._own = own_profiles
        check_default_profile(config.profile, own_profiles)
        self._count_answered = 0
        self._tally = UseCounter()
        self._due, self._enough = AutoResetEvent(), AutoResetEvent()
        self._is_at_it = False
        """Whether this thread is answering."""
        self._pace_s = 2 * AT_ONCE_S
        """What an answer takes now; the first ones, which read what was never read, are nobody's pace."""
        self._answered_from = -1
        """The version of the index that was searched last."""

    async def run(self) -> None:
        """Write down for ever what was used, and once more when asked to stop."""
        try:
            while True:
                await self._due.wait()
                await self.prepare()
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
                await self._db.write(
                    lambda tx: usage.record_uses(tx, counts.uses, counts.pairs)
                )
        except VaultError:
            self._tally.give_back(counts)
            self._due.set()
            raise

    @property
    def space(self) -> str:
        """The name of the space that leads."""
        return self._index.active or self._embedder.space.name

    def status(self) -> dict[str, object]:
        """What `memd status` shows of this room."""
        return {
            "answered": self._count_answered,
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
            answer = await self._answered(asked)
        if question.relevance_gate is not None:
            answer = keep_relevant(answer, question.relevance_gate, asked.k)
        self._count_answered += 1
        self._count(question, answer)
        return replace(answer, took_ms=round((anyio.current_time() - started) * 1000, 2))

    async def _answered(self, asked: ParsedQuery) -> Answer:
        """On this thread, if that is sure to be quick: to change it would cost half as much as to answer.

        Only one at a time: who asks in the same moment is answered in another thread, so that the event
        loop looks in between at what else has come.
        """
        version = self._index.version
        answer = await self._at_once(asked) if self._is_quick(asked.question) else None
        if answer is None:
            began = anyio.current_time()
            answer = await self._db.read(lambda tx: self._answer(tx, asked))
            self._took(began)
        self._answered_from = version
        return answer

    def _is_quick(self, question: Question) -> bool:
        """Whether an answer takes a few milliseconds: after every change much is worked out anew."""
        return (
            not self._is_at_it
            and self._pace_s <= AT_ONCE_S
            and self._answered_from == self._index.version
            and not _is_long(question)
        )

    async def _at_once(self, asked: ParsedQuery) -> Answer | None:
        """The answer, unless something would have to be waited for."""
        self._is_at_it = True
        try:
            began = anyio.current_time()
            with self._index.try_lock() as is_free:
                if not is_free:
                    return None
                answer = self._db.try_read_now(lambda tx: self._answer(tx, asked))
            if answer is not None:
                self._took(began)
            await anyio.lowlevel.checkpoint()
        finally:
            self._is_at_it = False
        return answer

    def _took(self, began: float) -> None:
        self._pace_s += (anyio.current_time() - began - self._pace_s) / _REMEMBERED

    def _answer(self, tx: Connection, asked: ParsedQuery) -> Answer:
        found = self._found(tx, asked)
        against = judgments.visible_contradictions(
            tx, [hit.summary.id for hit in found.hits], asked.question.project_ids
        )
        turns = hits.find_turns(tx, asked) if asked.question.include_turns else ()
        return replace(found, contradicted=against, turns=turns)

    def _found(self, tx: Connection, asked: ParsedQuery) -> Answer:
        """By the index; by full text alone while that is not loaded."""
        if self._index.wait_until_loaded(PATIENCE_S):
            return search.search_index(tx, self._index, asked)
        return fts_fallback.search_fulltext(tx, asked)

    async def _looked_at_again(self, asked: ParsedQuery) -> Answer:
        """The page by the scores of a model over the first 20 hits; without it, as it was."""
        wide = replace(
            asked,
            k=max(MODEL_HITS, asked.last),
            question=replace(asked.question, offset=0, include_turns=False),
        )
        answer = await self._db.read(lambda tx: self._answer(tx, wide))
        if asked.question.include_turns:
            said = await self._db.read(lambda tx: hits.find_turns(tx, asked))
            answer = replace(answer, turns=said)
        offset = asked.question.offset
        scores, failed = await self._ask_model(asked.question.text, answer)
        if failed is None:
            return rerank.rerank_by_model(answer, scores, offset, asked.k)
        answer = replace(answer, degraded={**answer.degraded, "rerank": failed})
        return rerank.cut_page(answer, offset, asked.k)

    async def _ask_model(self, text: str, answer: Answer) -> tuple[Sequence[float], str | None]:
        """A score per hit, or why there is none."""
        if self._reranker is None:
            return (), "there is no model to rerank with: set recall.rerank_model"
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
            self._due.set()
        if self._tally.pending >= FLUSH_HITS:
            self._enough.set()

    async def _read(self, question: Question) -> ParsedQuery:
        parsed = query.parse_terms(question.text)
        if parsed.is_empty and question.topic_key is None and question.embedding is None:
            raise BadRequest(
                "query: there is no word in it to look for; say a few, or give a topic_key"
            )
        meant = query.read_intent(question.text)
        name = question.profile or self._config.profile
        profile = self._profile(name, is_recent=meant.is_recent)
        if question.legs is not None:
            profile = _with_legs(profile, question.legs)
        local, learned, degraded = await self._aims(question, parsed, profile)
        return ParsedQuery(
            question=question,
            query=parsed,
            intent=meant,
            profile=profile,
            profile_name=name,
            k=question.k or profile.k,
            local=local,
            learned=learned,
            degraded=degraded,
        )

    def _profile(self, name: str, *, is_recent: bool) -> Profile:
        """The profile of this name; what it does not say of `k` and `pool`, the settings do."""
        profile = self._profiles.get(name) or resolve_profile(name, self._own)
        said = profile.model_fields_set
        if is_recent:
            said = said | (profile.when_recent or {}).keys()
            profile = adapt_to_recent(profile)
        settings = {"k": self._config.k, "pool": self._config.pool}
        return profile.model_copy(
            update={key: value for key, value in settings.items() if key not in said}
        )

    async def _aims(
        self, question: Question, parsed: query.QueryTerms, profile: Profile
    ) -> tuple[QueryVector | None, QueryVector | None, dict[str, str]]:
        """The question in the hashing space and in a learned one, and what could not be done."""
        if not profile.legs.get("vector"):
            return None, None, {}
        if question.embedding is not None:
            return *self._brought(question.embedding), {}
        if parsed.is_empty:
            return None, None, {}
        local = QueryVector(
            self._embedder.space.name, await self._embedder.query(question.text)
        )
        # What is shown unasked is judged by its words and has no time for a model; and a profile that
        # ranks by the leading space alone has no use for another.
        is_unused = profile.learned is None and self._index.learned != self._index.active
        if question.relevance_gate is not None or is_unused:
            return local, None, {}
        learned, why = await self._ask_learned(question.text)
        return local, learned, {"vector": f"{why}; {_ALONE}"} if why else {}

    async def _ask_learned(self, text: str) -> tuple[QueryVector | None, str]:
        """The question in the learned space that is filled, or why not; neither if none is."""
        model, filled = self._learned, self._index.learned
        if model is None or filled is None:
            return None, ""
        if not model.is_ready:
            return None, model.why_not or "the model is not ready"
        try:
            vector = await model.query(text)
        except EngineFailed as error:
            return None, error.message
        space = model.current
        if space is None or space.name != filled:
            return (
                None,
                "the model has changed, and what is remembered has no vectors of it yet",
            )
        if vector.shape != (space.dimensions,):
            return None, f"the model gave {len(vector)} numbers instead of {space.dimensions}"
        return QueryVector(filled, vector, self._unlike(filled, vector)), ""

    def _unlike(self, space: str, vector: Vectors) -> Vectors | None:
        """The cosines with what no question is about; if they are not known, who runs finds out."""
        if self._unrelated is None or self._unrelated[0] != space:
            self._due.set()
            return None
        return np.asarray(self._unrelated[1] @ vector, np.float32)

    async def prepare(self) -> None:
        """Find out where unrelated sentences lie in the learned space; if that fails, a later question asks.

        Until then nothing comes in by its meaning alone.
        """
        model = self._learned
        if model is None or model.current is None or not model.is_ready:
            return
        space = model.current
        if self._unrelated is not None and self._unrelated[0] == space.name:
            return
        try:
            found = await model.documents(semantic.UNRELATED)
        except EngineFailed:
            return
        if model.current == space and found.shape[1:] == (space.dimensions,):
            self._unrelated = (space.name, found)

    def _brought(
        self, embedding: Sequence[float]
    ) -> tuple[QueryVector | None, QueryVector | None]:
        """A vector that the caller brings, of length 1, in the hashing or in the learned space."""
        space, local = self.space, self._embedder.space
        matrix = self._index.matrices.get(space)
        wanted = local.dimensions if matrix is None else matrix.dimensions
        vector = np.asarray(embedding, dtype=np.float32)
        if len(vector) != wanted or not np.isfinite(vector).all():
            raise BadRequest(
                f"embedding: {len(vector)} numbers; the space {space} has {wanted}, all finite"
            )
        vector = np.asarray(vector / (float(np.linalg.norm(vector)) or 1.0), dtype=np.float32)
        if space == local.name:
            return QueryVector(space, vector), None
        return None, QueryVector(space, vector, self._unlike(space, vector))


def _is_long(question: Question) -> bool:
    """Whether more is read for it than for a page of hits."""
    return question.explain or question.include_turns or question.as_of is not None


def _with_legs(profile: Profile, wanted: frozenset[str]) -> Profile:
    kept = {leg: weight for leg, weight in profile.legs.items() if leg in wanted and weight > 0}
    if not kept:
        raise BadRequest(
            f"legs: this profile has {', '.join(profile.legs)}; none of them is asked for"
        )
    return profile.model_copy(update={"legs": kept})
