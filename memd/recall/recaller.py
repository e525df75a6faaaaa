"""Answers questions; asynchronous because it embeds them, calls models and counts uses.

Search, fetching and explanation run in one read transaction in one thread (search.py), so that an answer
describes one moment; only the question is embedded before. A learned model has a deadline for that; without
it the hashing space answers alone. A retriever that cannot answer is named in `degraded`. What was returned
is counted in memory and written in the background, so that no answer waits for a write.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np

from memd.config import RecallConfig
from memd.embeddings import Embedder, ModelEmbedder, Reranker, Vectors
from memd.errors import BadRequest, EngineFailed, VaultError
from memd.index.memory_index import MemoryIndex
from memd.models import Kind
from memd.recall import Answer, Question, period, precedence, search, semantic
from memd.recall.hits import find_turns
from memd.recall.period import TimedQuestion
from memd.recall.profiles import Profile, adapt_to_recent, resolve_profile, resolve_profiles
from memd.recall.query import ParsedQuery, QueryTerms, QueryVector, parse_terms, read_intent
from memd.recall.question_time import find_time
from memd.recall.verdict import judge_answer, keep_relevant
from memd.store import SummaryPair, SummaryUse, usage, vectors
from memd.store.database import Connection, Database
from memd.wakeup import AutoResetEvent

FLUSH_S = 5.0
"""Seconds for which uses are collected before they are written."""
FLUSH_HITS = 2_000
"""This many uses are written without waiting longer: a write beside searches slows them, and empties their caches."""
PAIRED_HITS = 5
"""Hits of a page that count as used together: the tail of a long page says little."""
USE_ENTRIES_MAX = 10_000
"""Memories and pairs that are counted at most while nothing can be written."""
INDEX_WAIT_S = 0.3
"""Seconds that a question waits for the index, which a start maps in a moment: full text may take longer."""
RERANKED_HITS = 20
"""Hits that a model scores again."""
RERANKED_CHARACTERS_MAX = 1_200
"""Characters of each such hit; siftcoder's own limit."""
INLINE_LATENCY_MAX_S = 0.01
"""Seconds of CPU time. While answers take less on average, they are made on the event loop's own thread."""
_POLL_S = 0.005
"""Seconds between two looks whether a model that has just started can be asked."""
_NOT_WEIGHED = np.empty(0, np.float32)
_LATENCY_SAMPLES = 8
"""The mean latency is that of about this many answers."""


@dataclass(slots=True)
class UseCounter:
    """Counts what answers return until it is written; bounded, so it may stop counting."""

    uses: dict[int, SummaryUse] = field(default_factory=dict)
    pairs: Counter[SummaryPair] = field(default_factory=Counter)
    pending: int = 0
    """Hits that are counted and not written."""

    def add(self, summary_ids: Sequence[int], at: int) -> None:
        """Count the page of one answer, best first, given at `at` (UTC ms)."""
        if len(self.uses) + len(self.pairs) >= USE_ENTRIES_MAX:
            return
        self.pending += len(summary_ids)
        self._add_uses({number: SummaryUse(1, at) for number in summary_ids})
        for pair in itertools.combinations(sorted(summary_ids[:PAIRED_HITS]), 2):
            self.pairs[pair] += 1

    def merge(self, other: "UseCounter") -> None:
        """Add the counts of another counter."""
        self.pending += other.pending
        self.pairs.update(other.pairs)
        self._add_uses(other.uses)

    def _add_uses(self, uses: Mapping[int, SummaryUse]) -> None:
        for number, use in uses.items():
            if (old := self.uses.get(number)) is not None:
                use = SummaryUse(old.count + use.count, max(old.last_at, use.last_at))  # noqa: PLW2901
            self.uses[number] = use


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
        make_command_reranker: Callable[[Sequence[str]], Reranker] | None = None,
    ) -> None:
        """Raise ConfigError if any profile is not valid, whether or not it is used."""
        self._reranker = reranker
        self._make_command_reranker = make_command_reranker
        self._db = db
        self._embedder = embedders[0]
        self._hashing_space = self._embedder.space.name
        self._learned = learned
        if learned is not None:
            learned.on_ready(self.notice_model)
        self._unrelated: tuple[str, Vectors] | None = None
        """A learned space, and the sentences that no question is about in it."""
        self._is_model_new = True
        """Whether questions wait for the model, which has just started or changed."""
        self._index = index
        self._config = config
        self._profiles = resolve_profiles(config.profile, own_profiles)
        self._own_profiles = own_profiles
        self._chosen: dict[tuple[str, bool], Profile] = {}
        """Name, and whether the latest is asked for → the profile as it is then."""
        self._answered = 0
        self._uses = UseCounter()
        self._is_work_due, self._is_flush_due = AutoResetEvent(), AutoResetEvent()
        self._is_comparison_due = AutoResetEvent()
        self._is_answering_inline = False
        self._latency_s = 2 * INLINE_LATENCY_MAX_S
        """The mean latency of an answer; it starts high, because the first answers read from a cold cache."""
        self._searched_version = -1
        """The version of the index that was searched last."""

    async def run(self) -> None:
        """Write what was used, until cancelled, and then once more; embed the unrelated sentences of a new model."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._embed_unrelated_when_due)
                while True:
                    await self._is_work_due.wait()
                    await self._is_flush_due.wait(FLUSH_S)
                    await self.flush()
        except anyio.get_cancelled_exc_class():
            await self.flush()
            raise

    async def flush(self) -> None:
        """Write what was used; raises a VaultError if that fails, and counts it again."""
        if not self._uses.pending:
            return
        counts, self._uses = self._uses, UseCounter()
        try:
            # A cancellation must not lose the counts.
            with anyio.CancelScope(shield=True):
                await self._db.write_unsynced(
                    lambda tx: usage.record_uses(tx, counts.uses, counts.pairs)
                )
        except VaultError:
            self._uses.merge(counts)
            self._is_work_due.set()
            raise

    def notice_model(self) -> None:
        """Prepare for the questions that follow: the model is back, was replaced or was removed."""
        self._is_model_new = True
        self._is_comparison_due.set()

    async def _embed_unrelated_when_due(self) -> None:
        while True:
            await self._is_comparison_due.wait()
            await self.embed_unrelated()

    async def embed_unrelated(self) -> None:
        """Embed the unrelated sentences in the learned space; if that fails, a later question asks again.

        Until then no memory matches by its meaning alone.
        """
        model = self._learned
        if model is None or model.current is None or not model.is_ready:
            return
        space = model.current
        if self._unrelated is not None and self._unrelated[0] == space.name:
            return
        try:
            vectors = await model.documents(semantic.UNRELATED)
        except EngineFailed:
            return
        if model.current == space and vectors.shape[1:] == (space.dimensions,):
            self._unrelated = (space.name, vectors)

    @property
    def space(self) -> str:
        """The name of the space that leads."""
        return self._index.active or self._embedder.space.name

    def status(self) -> dict[str, object]:
        """Return the recaller's part of `memd status`."""
        return {
            "answered": self._answered,
            "profile": self._config.profile,
            "space": self.space,
            "uses_pending": self._uses.pending,
        }

    # ── An answer ────────────────────────────────────────────────────────────────────────────────

    @property
    def sources(self) -> frozenset[str]:
        """Return the sources of the memories in the index: clients, `user`, importers."""
        return frozenset(self._index.columns.source_names)

    async def search(self, question: Question) -> Answer:
        """Answer a question; BadRequest if it asks for nothing or for an unknown profile."""
        started = time.monotonic()
        meant = await self._read_time(question)
        if meant is None:
            answer = await self._answer(question)
        else:
            answer = await self._answer_within(meant)
        self._answered += 1
        # What a person examined, or a benchmark asked of the past, was not used.
        # A weak answer shows what is nearest, which nobody has asked for.
        is_answer = answer.verdict == "found"
        if is_answer and question.count_use and not question.explain and question.as_of is None:
            self._count_uses(answer, question.now)
        return replace(answer, took_ms=round((time.monotonic() - started) * 1000, 2))

    async def _read_time(self, question: Question) -> TimedQuestion | None:
        """The question with the time that its words name as a filter; the caller's own filter wins."""
        is_given = question.since is not None or question.until is not None
        if is_given or question.relevance_gate is not None:
            return None
        found = find_time(question.text, question.asked_at)
        if found is None:
            return None
        return await self._db.read(lambda tx: period.apply_time(tx, question, found))

    async def _answer_within(self, meant: TimedQuestion) -> Answer:
        """Answer from the time that is meant; if nothing is from then, from the nearest, and say so."""
        answer, note = await self._answer(meant.question), meant.note
        if (not answer.hits or answer.verdict == "nothing") and meant.outside is not None:
            note = meant.note_outside
            answer = await self._answer(meant.outside, doubt=note)
        return replace(answer, notes=(note, *answer.notes)) if answer.hits else answer

    async def _answer(self, question: Question, doubt: str = "") -> Answer:
        """The answer, judged; for a `doubt` it is weak at most."""
        if kinds := self._find_listed_kinds(question):
            parsed = await self._parse_question(replace(question, kinds=question.kinds or kinds))
            listed = await self._db.read(lambda tx: period.list_newest(tx, parsed))
            if listed is not None:
                return judge_answer(listed, question, doubt)
            missing = " or ".join(kind.value for kind in kinds)
            doubt = doubt or f"no memory is a {missing}; these have the words"
        answer = judge_answer(await self._rank(question), question, doubt)
        if answer.hits or " AND " not in question.text or question.all_words:
            return answer
        doubt = "no memory has both sides of AND"
        either = replace(question, text=question.text.replace(" AND ", " "))
        return judge_answer(await self._rank(either), either, doubt)

    async def _rank(self, question: Question) -> Answer:
        parsed = await self._parse_question(question)
        if question.in_order:
            return await self._db.read(lambda tx: period.list_in_order(tx, parsed))
        if parsed.profile.rerank in {"model", "command"}:
            answer = await self._search_with_reranker(parsed)
        else:
            answer = await self._search_here_or_in_thread(parsed)
        if question.relevance_gate is not None:
            answer = keep_relevant(answer, question.relevance_gate, parsed.k)
        return answer

    @staticmethod
    def _find_listed_kinds(question: Question) -> tuple[Kind, ...]:
        """The kinds that the question asks for, if it asks for all of them and nothing else."""
        is_special = question.in_order or question.explain or question.legs or question.topic_key
        if is_special or question.browse or question.relevance_gate is not None:
            return ()
        return period.asks_for_kinds(question.text)

    async def _search_here_or_in_thread(self, parsed: ParsedQuery) -> Answer:
        """Search inline if that is sure to be quick: a change of thread costs half as much as an answer.

        Run at most one search inline on the event loop; concurrent ones use a worker thread.
        """
        version = self._index.version
        answer = None
        if self._may_search_inline(parsed.question):
            answer = await self._try_search_inline(parsed)
        if answer is None:
            answer = await self._db.read(lambda tx: self._search_vault(tx, parsed))
        self._searched_version = version
        return answer

    def _may_search_inline(self, question: Question) -> bool:
        """Return whether a search is sure to take milliseconds; after a change of the index much is recomputed."""
        is_long = question.explain or question.include_turns or question.as_of is not None
        return (
            not self._is_answering_inline
            and self._latency_s <= INLINE_LATENCY_MAX_S
            and self._searched_version == self._index.version
            and not is_long
        )

    async def _try_search_inline(self, parsed: ParsedQuery) -> Answer | None:
        """The answer, unless the search would have to wait for a lock."""
        self._is_answering_inline = True
        try:
            with self._index.try_lock() as is_free:
                if not is_free:
                    return None
                answer = self._db.try_read_now(lambda tx: self._search_vault(tx, parsed))
            await anyio.lowlevel.checkpoint()
        finally:
            self._is_answering_inline = False
        return answer

    def _search_vault(self, tx: Connection, parsed: ParsedQuery) -> Answer:
        # The CPU's time: on a busy machine a change of thread waits longer still.
        began = time.thread_time()
        answer = self._search_index_or_fulltext(tx, parsed)
        self._latency_s += (time.thread_time() - began - self._latency_s) / _LATENCY_SAMPLES
        return answer

    def _search_index_or_fulltext(self, tx: Connection, parsed: ParsedQuery) -> Answer:
        is_loaded = self._index.wait_until_loaded(INDEX_WAIT_S)
        if is_loaded and parsed.question.browse:
            answer = period.browse_index(tx, self._index, parsed)
        elif is_loaded:
            answer = search.search_index(tx, self._index, parsed)
        else:
            answer = search.search_fulltext(tx, parsed)
        if not parsed.question.include_turns:
            return answer
        return replace(answer, turns=find_turns(tx, parsed))

    def _count_uses(self, answer: Answer, now: int) -> None:
        if answer.hits:
            self._uses.add([hit.summary.id for hit in answer.hits], now)
            self._is_work_due.set()
        if self._uses.pending >= FLUSH_HITS:
            self._is_flush_due.set()

    # ── Re-ranking by a model or a program ───────────────────────────────────────────────────────

    async def _search_with_reranker(self, parsed: ParsedQuery) -> Answer:
        """The page by a reranker's scores of the first 20 hits; without the reranker, as it was."""
        question = parsed.question
        wide = replace(
            parsed,
            k=max(RERANKED_HITS, parsed.page_end),
            question=replace(question, offset=0, include_turns=False),
        )
        answer = await self._db.read(lambda tx: self._search_vault(tx, wide))
        if question.include_turns:
            turns = await self._db.read(lambda tx: find_turns(tx, parsed))
            answer = replace(answer, turns=turns)
        try:
            scores = await self._ask_reranker(parsed.profile, question.text, answer)
        except EngineFailed as error:
            answer = replace(answer, degraded={**answer.degraded, "rerank": error.message})
            return precedence.cut_page(answer, question.offset, parsed.k)
        return precedence.rerank_by_model(answer, scores, question.offset, parsed.k)

    async def _ask_reranker(
        self, profile: Profile, text: str, answer: Answer
    ) -> Sequence[float | None]:
        """A score per hit, None for one that is left out; raises EngineFailed."""
        reranker, name = self._reranker, "model"
        if profile.rerank == "command" and self._make_command_reranker is not None:
            reranker, name = self._make_command_reranker(profile.command), profile.command[0]
        if reranker is None:
            raise EngineFailed("there is no model to rerank with: set recall.rerank_model")
        texts = [
            f"{hit.summary.title}\n{hit.summary.body}"[:RERANKED_CHARACTERS_MAX]
            for hit in answer.hits
        ]
        try:
            with anyio.fail_after(self._config.rerank_s):
                scores = await reranker.rerank(text, texts)
        except TimeoutError as error:
            raise EngineFailed(
                f"the {name} took longer than {self._config.rerank_s:g} s"
            ) from error
        given = [score for score in scores if score is not None]
        if len(scores) != len(texts) or not np.isfinite(given).all():
            raise EngineFailed("the model's scores cannot be read")
        return scores

    # ── The question ─────────────────────────────────────────────────────────────────────────────

    async def _parse_question(self, question: Question) -> ParsedQuery:
        terms = parse_terms(f"{question.text} {question.keywords}")
        is_named = question.topic_key is not None or question.embedding is not None
        if terms.is_empty and not (is_named or question.browse):
            raise BadRequest("query: it has no word to search for; add some")
        intent = read_intent(question.text)
        name = question.profile or self._config.profile
        profile = self._choose_profile(name, is_recent=intent.is_recent)
        if question.legs is not None:
            profile = _limit_retrievers(profile, question.legs)
        hashing, learned, degraded = await self._embed_question(question, terms, profile)
        return ParsedQuery(
            question=question,
            terms=terms,
            intent=intent,
            profile=profile,
            profile_name=name,
            k=question.k or profile.k,
            hashing_vector=hashing,
            learned_vector=learned,
            degraded=degraded,
        )

    def _choose_profile(self, name: str, *, is_recent: bool) -> Profile:
        """The profile of this name, as it is for a question about what is recent if it is one."""
        if (chosen := self._chosen.get((name, is_recent))) is not None:
            return chosen
        profile = self._profiles.get(name) or resolve_profile(name, self._own_profiles)
        return self._chosen.setdefault(
            (name, is_recent), adapt_to_recent(profile) if is_recent else profile
        )

    async def _embed_question(  # noqa: PLR0911  # each return is one reason to ask no model
        self, question: Question, terms: QueryTerms, profile: Profile
    ) -> tuple[QueryVector | None, QueryVector | None, dict[str, str]]:
        """The question in the hashing space and in a learned one, and what could not be embedded."""
        if not profile.legs.get("vector"):
            return None, None, {}
        if question.embedding is not None:
            return *self._read_given_vector(question.embedding), {}
        if terms.is_empty:
            return None, None, {}
        vector = _NOT_WEIGHED
        if not profile.weigh_words:
            vector = await self._embedder.query(question.text)
        hashing = QueryVector(self._hashing_space, vector)
        # Injected context is judged by its words and has no time for a model; and a profile that
        # ranks by the leading space alone has no use for another.
        is_unused = profile.learned is None and self._index.learned != self._index.active
        if question.relevance_gate is not None or is_unused:
            return hashing, None, {}
        try:
            learned = await self._embed_in_learned_space(question.text or question.keywords)
        except EngineFailed as error:
            why = f"{error.message}; the hashing space answered alone"
            return hashing, None, {"vector": why}
        if learned is None or learned.unrelated is not None:
            return hashing, learned, {}
        why = (
            "the model has just started: it orders what has the words, and finds nothing by meaning"
        )
        return hashing, learned, {"vector": why}

    async def _embed_in_learned_space(self, text: str) -> QueryVector | None:
        """The question in the learned space; None if there is no model. Raises EngineFailed.

        A model that has just started is waited for, in all no longer than a question may take.
        """
        model = self._learned
        if model is None:
            return None
        until = anyio.current_time() + model.query_s
        was_new = self._is_model_new
        await self._wait_for_model(until, lambda: self._is_wait_over(model))
        filled = self._index.learned
        if not model.is_ready:
            is_missed = model.is_starting or model.is_failing or model.is_wanted
            if (
                filled is None
                and not is_missed
                and not await self._db.read_inline(vectors.has_learned)
            ):
                return None
            raise EngineFailed(model.why_not or "the model is not ready")
        if filled is None:
            raise EngineFailed("no memory has a vector of the model yet")
        try:
            # By itself a call keeps the deadline; after a wait, less is left of it.
            with anyio.fail_after(until - anyio.current_time() if was_new else None):
                vector = await model.query(text)
        except TimeoutError as error:
            raise EngineFailed(f"the model did not answer within {model.query_s:g} s") from error
        space = model.current
        if space is None or space.name != filled:
            raise EngineFailed("the model has changed, and no memory has a vector of it yet")
        if vector.shape != (space.dimensions,):
            raise EngineFailed(
                f"the model gave {len(vector)} numbers instead of {space.dimensions}"
            )
        unrelated = self._compare_with_unrelated(filled, vector)
        await self._wait_for_model(until, lambda: self._knows_unrelated(filled))
        self._is_model_new = False
        if unrelated is None:
            unrelated = self._compare_with_unrelated(filled, vector)
        return QueryVector(filled, vector, unrelated)

    async def _wait_for_model(self, until: float, is_met: Callable[[], bool]) -> None:
        """Wait for a new model until a moment of the event loop; after one question in vain, no other waits."""
        while self._is_model_new and not is_met():
            if anyio.current_time() >= until:
                self._is_model_new = False
            else:
                await anyio.sleep(_POLL_S)

    def _is_wait_over(self, model: ModelEmbedder) -> bool:
        """Return whether waiting for a new model may end: it started and fails, or is ready and memories have its vectors."""
        if model.is_starting or not model.is_ready:
            return not model.is_starting
        filled = self._index.learned
        done, rows = self._index.counts(filled or "")
        return filled is not None and (done > 0 or rows == 0)

    def _knows_unrelated(self, space: str) -> bool:
        return self._unrelated is not None and self._unrelated[0] == space

    def _compare_with_unrelated(self, space: str, vector: Vectors) -> Vectors | None:
        """The cosines with the unrelated sentences; None until `run` has embedded them."""
        if self._unrelated is None or self._unrelated[0] != space:
            self._is_comparison_due.set()
            return None
        return np.asarray(self._unrelated[1] @ vector, np.float32)

    def _read_given_vector(
        self, embedding: Sequence[float]
    ) -> tuple[QueryVector | None, QueryVector | None]:
        """A vector that the caller gives, of length 1, in the hashing or in the learned space."""
        space, hashing = self.space, self._embedder.space
        matrix = self._index.matrices.get(space)
        dimensions = hashing.dimensions if matrix is None else matrix.dimensions
        vector = np.asarray(embedding, dtype=np.float32)
        if len(vector) != dimensions or not np.isfinite(vector).all():
            raise BadRequest(
                f"embedding: {len(vector)} numbers; the space {space} has {dimensions}, all finite"
            )
        vector = np.asarray(vector / (float(np.linalg.norm(vector)) or 1.0), dtype=np.float32)
        if space == hashing.name:
            return QueryVector(space, vector), None
        unrelated = self._compare_with_unrelated(space, vector)
        return None, QueryVector(space, vector, unrelated)


def _limit_retrievers(profile: Profile, wanted: frozenset[str]) -> Profile:
    named = {name: weight for name, weight in profile.legs.items() if name in wanted}
    # A leg that the profile has switched off can still be asked for by itself.
    legs = {name: weight for name, weight in named.items() if weight > 0} or dict.fromkeys(named, 1)
    if not legs:
        raise BadRequest(f"legs: this profile has {', '.join(profile.legs)}; give one of these")
    return profile.model_copy(update={"legs": legs})
