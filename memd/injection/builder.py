"""Builds the injected context: what an agent is shown at an injection moment, fenced and labelled as data.

Building writes nothing, so the same moment gives the same context twice; `memd context` relies on that. The pages of
starts are kept for the next session that begins at the same place.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from memd.capture.project import ProjectIdentity, ProjectOverrides, read_branch, resolve_project
from memd.config import InjectConfig
from memd.distill.distiller import Distiller
from memd.injection import evidence, prompt_gate, start
from memd.injection.budget import SPENT
from memd.injection.evidence import ErrorSignature, read_signature, read_task
from memd.injection.learned import SaidSentence
from memd.injection.moments import InjectedContext, InjectionMoment
from memd.injection.origins import OriginReader, ToldTexts, tell_offers
from memd.injection.page import (
    Audience,
    estimate_tokens,
    format_hits,
    is_crowded,
    line_of_offer,
    make_candidate,
    select_told_page,
)
from memd.injection.prompt_gate import CountedTitles, GatedHit, PromptEvidence, PromptQuery
from memd.injection.start import SessionCandidates, SessionPlace, SessionState
from memd.injection.working_tree import GuideReader, Guides, WorkingTree
from memd.models import CLOCK_SKEW_MAX_MS, Authority, Summary
from memd.recall import Answer, Question, RelevanceGate
from memd.recall.query import parse_terms
from memd.recall.recaller import Recaller
from memd.store import judgments, links, session_context, summaries
from memd.store.database import Connection, Database

_KEPT_MAX = 8
_KEPT_MS = 600_000
"""What only time changes (ages, expiry, use) counts after this long at the latest."""


@dataclass(frozen=True, slots=True)
class StartKey:
    """The place where sessions begin that get the same page: those that have neither done nor been shown anything."""

    client: str
    directory: str | None
    project_ids: tuple[int, ...]
    project: str
    branch: str | None
    tokens: int


@dataclass(frozen=True, slots=True)
class StartInputs:
    """The state that a page rests on when it is written, or looked for, at `now` (UTC milliseconds)."""

    version: tuple[object, ...]
    read_prompts: Callable[[], tuple[SaidSentence, ...]]
    guides: Guides
    tree: WorkingTree
    now: int


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page, and what it rested on."""

    page: InjectedContext
    at: int
    version: tuple[object, ...]
    guides: Guides
    prompts: tuple[SaidSentence, ...] | None
    changed_files: Sequence[str] | None
    """The files that the branch had changed; None where all that stands has room, because then none comes first."""
    gone: tuple[str, ...]
    """What of each line was gone from the working tree."""

    def is_current(self, now: StartInputs) -> bool:
        """Return whether the page would say the same if it was written now."""
        is_same = self.version == now.version and self.guides == now.guides
        is_young = 0 <= now.now - self.at < _KEPT_MS
        is_same = is_same and is_young and self.prompts in (None, now.read_prompts())
        is_same = is_same and self.changed_files in (None, now.tree.changed_files)
        return is_same and _list_gone(self.page, now.tree) == self.gone


class KeptPages:
    """The pages of starts, for the next session that begins at the same place."""

    def __init__(self) -> None:
        self._kept: dict[StartKey, KeptPage] = {}

    def find(self, key: StartKey) -> KeptPage | None:
        """Return the last page that was written at a place."""
        return self._kept.get(key)

    def keep(
        self, key: StartKey, then: StartInputs, found: SessionCandidates, page: InjectedContext
    ) -> None:
        """Keep a page, and those of the places where one was written last."""
        self._kept.pop(key, None)
        files = then.tree.changed_files if is_crowded(found) else None
        gone = _list_gone(page, then.tree)
        self._kept[key] = KeptPage(page, then.now, then.version, then.guides, found.prompts, files, gone)  # fmt: skip
        while len(self._kept) > _KEPT_MAX:
            del self._kept[next(iter(self._kept))]


def _list_gone(page: InjectedContext, tree: WorkingTree) -> tuple[str, ...]:
    tree.look_up([one.title for one in page.shown])
    return tuple(tree.note_gone(one.title, one.at) for one in page.shown)


SETTLE_S = 0.1
"""Seconds that a compacted session waits until its own last events are distilled."""
_TITLES_MAX = 1_000
"""Titles that tell how rare the words of a prompt are."""
_PROJECTS_COUNTED_MAX = 16
"""Projects of whose titles the words are kept."""
_GIT_SHARE = 0.5
"""The part of the time that a hook waits which git may take in all."""
_GIT_REST_S = 5.0
"""Seconds for git where no hook waits."""
_JOIN_SHARE = 0.5
"""The part of the time of a start in which a moved checkout is joined to what is known of it."""
_HITS_MAX = 40
"""Hits among which those are looked for that fit a prompt."""
_NO_PROMPT = PromptQuery("", "no prompt")
_SETTINGS = {
    "prompt": "prompt", "file": "files", "failure": "failures", "subagent": "subagents",
}  # fmt: skip
"""Moment → the setting that switches it; of a session's start `session_start`."""
_EVIDENCE_TOKENS = 400


@dataclass(frozen=True, slots=True)
class RecentInjections:
    """Injections into a session that the vault may not have yet. Times are UTC milliseconds."""

    shown: Mapping[int, tuple[int, str]]
    """Memory → when it was shown, and at which moment."""
    reset_at: int | None = None
    """When the session was last compacted or cleared."""
    tokens: int = 0
    """What was told since then."""


@dataclass(frozen=True, slots=True)
class ContextDraft:
    """The part of a context that does not depend on the event: found while the event is being stored."""

    moment: InjectionMoment
    why_nothing: str = ""
    """Why nothing is to be injected; empty if something may be."""
    prompt: str = ""
    """Without its private parts."""
    wanted: PromptQuery = _NO_PROMPT
    branch: str | None = None
    """The git branch that is checked out in the directory of the moment."""
    identity: ProjectIdentity | None = None
    """The project of that directory, if the vault did not know the session yet."""
    question: Question | None = None
    """What was asked ahead; None if nothing was."""
    answer: Answer | None = None


class ContextBuilder:
    """Searches and chooses what to inject at a moment."""

    def __init__(
        self,
        db: Database,
        recaller: Recaller,
        distiller: Distiller,
        config: InjectConfig,
        clock: Callable[[], int],
        overrides: ProjectOverrides | None = None,
    ) -> None:
        self._db = db
        self._recaller = recaller
        self._distiller = distiller
        self._config = config
        self._clock = clock
        self._overrides = overrides
        self.join_moved: Callable[[], Awaitable[None]] | None = None
        """Joins a checkout that was moved to what is known of it."""
        self._told = ToldTexts()
        self._guides = GuideReader()
        self._pages = KeptPages()
        self._titles: dict[tuple[int, ...], tuple[int, CountedTitles]] = {}
        """Projects → how often their memories had changed, and the words of their titles."""

    def begin_draft(self, moment: InjectionMoment) -> ContextDraft:
        """Begin a context: most end here, as most prompts are not worth a search."""
        setting = _SETTINGS.get(moment.name, "session_start")
        if not getattr(self._config, setting):
            return ContextDraft(moment, f"switched off in config.toml: inject.{setting}")
        if moment.name != "prompt":
            return ContextDraft(moment)
        prompt = prompt_gate.redact_prompt(moment.prompt)
        wanted = prompt_gate.read_prompt(prompt)
        return ContextDraft(moment, "" if wanted.text else wanted.reason, prompt, wanted)

    async def may_matter(self, moment: InjectionMoment) -> bool:
        """Return whether a tool call may be worth a context; most are ruled out by a row or two. Raises a VaultError."""
        call = moment.call
        if call is None or self.begin_draft(moment).why_nothing:
            return False
        if moment.name == "failure" and read_signature(call) is not None:
            return True
        return await self._db.read_inline(lambda tx: bool(evidence.find_touched_notes(tx, moment)))

    async def search_ahead(self, draft: ContextDraft) -> ContextDraft:
        """Find what can be found before the event of the moment is stored. Raises a VaultError."""
        draft, here = await self._look_around(draft)
        if not draft.wanted.text or not here.switch.recalls:
            return draft
        topic = await self._find_topic(draft.wanted)
        question = self._make_question(draft.wanted, here.project_ids, topic, _HITS_MAX)
        return replace(draft, question=question, answer=await self._recaller.search(question))

    async def prepare_start(self, client: str, directory: str) -> None:
        """Build the page of the next session's start, and count the words that its prompts are compared with. Raises a VaultError."""
        moment = InjectionMoment(client, "", "startup", "", directory=directory)
        draft, here = await self._look_around(ContextDraft(moment))
        await self.build(moment, RecentInjections({}), draft=draft)
        await self._db.read(lambda tx: self._count_titles(tx, here.project_ids))

    async def build(
        self,
        moment: InjectionMoment,
        recent: RecentInjections,
        *,
        explain: bool = False,
        draft: ContextDraft | None = None,
    ) -> InjectedContext:
        """Build the context to inject now; with `explain`, with every candidate. Raises a VaultError.

        `draft` is what `search_ahead` found for this moment, before its event was stored.
        """
        if draft is None:
            draft = self.begin_draft(moment)
            if not draft.why_nothing:
                draft, _ = await self._look_around(draft)
        if draft.why_nothing:
            return InjectedContext(draft.why_nothing)
        draft = replace(draft, moment=moment)
        if moment.name == "prompt":
            found = await self._build_hits(draft, recent)
        elif moment.is_start:
            found = await self._build_index(draft, recent)
        else:
            call = moment.call
            signature = read_signature(call) if call is not None and call.error else None
            found = await self._build_evidence(draft, recent, signature)
        return found if explain else replace(found, candidates=found.shown)

    async def _look_around(self, draft: ContextDraft) -> tuple[ContextDraft, SessionState]:
        """Find the session, and on the disk its branch and, if the vault does not know it, its project."""
        moment = draft.moment
        directory = moment.directory
        if moment.name == "subagent" and not moment.prompt and moment.transcript:
            asked = await anyio.to_thread.run_sync(read_task, moment.transcript, moment.agent_type)
            draft = replace(draft, prompt=asked)
        here = await self._read_place(draft)
        if not directory:
            return draft, here
        branch, identity = await anyio.to_thread.run_sync(
            _read_directory, directory, self._overrides, here.session is None
        )
        draft = replace(draft, branch=branch, identity=identity)
        return draft, here if identity is None else await self._read_place(draft)

    async def _read_place(self, draft: ContextDraft) -> SessionState:
        place = _place_of(draft)
        return await self._db.read_inline(lambda tx: start.read_session_place(tx, place, None))

    async def _build_index(self, draft: ContextDraft, recent: RecentInjections) -> InjectedContext:
        moment = draft.moment
        if moment.name == "compact" and moment.event_id is not None:
            with anyio.move_on_after(SETTLE_S):
                await self._distiller.settle(moment.event_id)

        if (
            moment.name == "startup"
            and self.join_moved is not None
            and not await self._db.read_inline(lambda tx: _is_project_known(tx, draft))
        ):
            with anyio.move_on_after(self._config.session_s * _JOIN_SHARE):
                await self.join_moved()
        is_anew = moment.name in ("compact", "clear")
        left = self._config.session_tokens - (0 if is_anew else recent.tokens)
        # Of a start that is prepared nobody waits for the page.
        git_s = self._config.session_s * _GIT_SHARE if moment.session else _GIT_REST_S
        tree = WorkingTree(moment.directory, git_s)

        def build(tx: Connection) -> InjectedContext:
            guides, now = self._guides.read(moment.directory), self._clock()
            here = self._read_session_state(tx, draft, recent)
            if moment.name in ("compact", "clear"):
                here = replace(here, context_lost_at=now)
            if not here.switch.recalls:
                return InjectedContext(here.switch.reason, project=here.name)
            read_prompts = partial(start.read_late_prompts, tx, here, now)
            rests_on = StartInputs(start.read_version(tx, here), read_prompts, guides, tree, now)
            tokens = min(self._config.tokens, left)
            return self._write_start(tx, moment, here, rests_on, tokens)

        return await self._db.read(build)

    def _write_start(
        self,
        tx: Connection,
        moment: InjectionMoment,
        here: SessionState,
        rests_on: StartInputs,
        tokens: int,
    ) -> InjectedContext:
        """Write the page of a start, or find the last one of that place if it would be the same now."""
        known = here.project_ids, here.name, here.branch
        place = StartKey(moment.client, moment.directory, *known, tokens)
        kept = self._pages.find(place) if moment.name in ("startup", "clear") else None
        if kept is not None and not here.seen_at and kept.is_current(rests_on):
            return kept.page
        now, tree = rests_on.now, rests_on.tree
        found = start.read_candidates(tx, here, moment.name, now, rests_on.guides)
        audience, reader = Audience(moment.client, tree), OriginReader(tx, self._told)
        page = select_told_page(here, found, tokens, now, audience, reader)
        if moment.name in ("startup", "clear") and not here.seen_at:
            self._pages.keep(place, rests_on, found, page)
        return page

    async def _build_evidence(
        self, draft: ContextDraft, recent: RecentInjections, signature: ErrorSignature | None
    ) -> InjectedContext:
        """Build the few lines for which an error, a file, a command or a subagent's task is evidence."""
        moment = draft.moment
        audience = Audience(moment.client, WorkingTree(moment.directory))
        guides = await anyio.to_thread.run_sync(self._guides.read, moment.directory)
        hits: list[Summary] = []
        if signature is not None:
            here = await self._read_place(draft)
            question = self._make_question(PromptQuery(signature.line, ""), here.project_ids, None, _HITS_MAX)  # fmt: skip
            question = replace(
                question, kinds=evidence.ERROR_KINDS, include_superseded=True, show_all=True
            )
            hits = [hit.summary for hit in (await self._recaller.search(question)).hits]
        left = self._config.session_tokens - recent.tokens

        def build(tx: Connection) -> InjectedContext:
            now = self._clock()
            here = self._read_session_state(tx, draft, recent)
            if not here.switch.recalls:
                return InjectedContext(here.switch.reason, project=here.name)
            fixes = (
                evidence.find_fixes(tx, signature, hits, here.project_ids, now)
                if signature is not None
                else None
            )
            is_known = fixes is not None and bool(fixes.candidates)
            if fixes is not None and is_known:
                group = fixes
            elif moment.name == "subagent":
                group = evidence.find_rules(tx, here, moment, draft.prompt or moment.prompt, now)
            else:
                group = evidence.find_noted(tx, moment, here, now)
            seen: start.Seen = "later" if is_known else "all"
            seen = "nothing" if moment.name == "subagent" else seen
            found = start.read_evidence(tx, here, group, now, guides, seen)
            found = evidence.drop_gone(found, audience.tree)
            reader = OriginReader(tx, self._told)
            tokens = min(_EVIDENCE_TOKENS, left)
            return select_told_page(here, found, tokens, now, audience, reader)

        return await self._db.read(build)

    async def _build_hits(self, draft: ContextDraft, recent: RecentInjections) -> InjectedContext:
        here = await self._db.read_inline(lambda tx: self._read_session_state(tx, draft, recent))
        if not here.switch.recalls:
            return InjectedContext(here.switch.reason, project=here.name)
        if prompt_gate.is_repeated(draft.prompt, here.prompts):
            reason = "the same was asked before in this session"
            return InjectedContext(reason, project=here.name)
        offers = await self._search_hits(draft, here)
        terms = parse_terms(draft.wanted.text)
        offers, told = await self._db.read(
            lambda tx: tell_offers(offers, terms, OriginReader(tx, self._told, draft.prompt))
        )
        candidates = tuple(
            make_candidate(one.hit.summary, "", one.is_shown, one.why) for one in offers
        )
        chosen = [one for one in offers if one.is_shown]
        is_known = any(one.why == prompt_gate.SAME_ERROR for one in chosen)
        if not is_known:
            pasted = await anyio.to_thread.run_sync(evidence.read_pasted, draft.prompt)
            fixes = await self._build_evidence(draft, recent, pasted) if pasted else None
            if fixes is not None and fixes.text is not None:
                return fixes
        if not chosen:
            reason = offers[0].why if offers else "nothing known fits it"
            return InjectedContext(reason, None, here.name, candidates)
        ids = [one.hit.summary.id for one in chosen]
        replaced, against = await self._db.read_inline(
            lambda tx: (links.superseded_ids(tx, ids), judgments.visible_contradictions(tx, ids))
        )
        show = partial(line_of_offer, branch=here.branch, asking=draft.moment.client)
        lines = [show(one, told[one.hit.summary.id], replaced, against) for one in chosen]
        tree = WorkingTree(draft.moment.directory, self._config.prompt_s * _GIT_SHARE)
        gone = await anyio.to_thread.run_sync(
            lambda: [tree.note_gone(one.title, one.at) for one in lines]
        )
        lines = [
            replace(one, note="; ".join(filter(None, (note, one.note))))
            for one, note in zip(lines, gone, strict=True)
        ]
        text = format_hits(here.name, lines)
        if estimate_tokens(text) > self._config.session_tokens - recent.tokens:
            candidates = tuple(replace(one, shown=False, why=SPENT) for one in candidates)
            return InjectedContext(SPENT, None, here.name, candidates)
        return InjectedContext(f"{len(lines)} fit it", text, here.name, candidates)

    async def _search_hits(self, draft: ContextDraft, here: SessionState) -> list[GatedHit]:
        wanted, config = draft.wanted, self._config
        topic = draft.question.topic_key if draft.question else await self._find_topic(wanted)
        gate = RelevanceGate(config.floor, config.ratio)
        # What has a name or rare words of the prompt in its title may stand behind longer texts that only mention them.
        question = self._make_question(wanted, here.project_ids, topic, _HITS_MAX)
        answer = draft.answer
        if answer is None or draft.question is None or not _is_same(question, draft.question):
            answer = await self._recaller.search(question)
        memories = [hit.summary for hit in answer.hits]
        seen = {one.id: why for one in memories if (why := _why_not_told(one, here))}
        seen |= start.find_outdated_cards(one for one in memories if one.pinned_at is None)
        rarity = answer.rarity or prompt_gate.EVEN_RARITY
        counted = await self._db.read_inline(lambda tx: self._count_titles(tx, here.project_ids))
        wanted = replace(wanted, evidence=PromptEvidence.read(wanted.text, counted))
        return prompt_gate.gate_hits(answer.hits, wanted, seen, gate, config.prompt_hits, rarity)

    def _count_titles(self, tx: Connection, project_ids: tuple[int, ...]) -> CountedTitles:
        """Count the words of these projects' titles, once for all prompts until a memory changes."""
        version = session_context.count_changes(tx)
        if (kept := self._titles.get(project_ids)) is not None and kept[0] == version:
            return kept[1]
        titles = session_context.newest_titles(tx, project_ids, _TITLES_MAX)
        if len(self._titles) >= _PROJECTS_COUNTED_MAX:
            self._titles.clear()
        counted = CountedTitles.count(titles)
        self._titles[project_ids] = version, counted
        return counted

    async def _find_topic(self, wanted: PromptQuery) -> str | None:
        topics = wanted.topics
        if not topics:
            return None
        return await self._db.read_inline(lambda tx: _find_known_topic(tx, topics))

    def _make_question(
        self, wanted: PromptQuery, project_ids: tuple[int, ...], topic: str | None, k: int
    ) -> Question:
        return Question(
            text=wanted.text,
            now=self._clock(),
            project_ids=project_ids,
            topic_key=topic,
            k=k,
            relevance_gate=RelevanceGate(floor=0.0, ratio=0.0),
            whole_passages=True,
            # An injected memory was not asked for. If it counted as used, it would rise by itself.
            count_use=False,
        )

    def _read_session_state(
        self, tx: Connection, draft: ContextDraft, recent: RecentInjections
    ) -> SessionState:
        here = start.read_session_state(
            tx, _place_of(draft), draft.moment.event_id, with_prompts=draft.moment.name == "prompt"
        )
        shown = dict(here.injected_at)
        for number, last in recent.shown.items():
            shown[number] = max(last, shown.get(number, last))
        # An event that a wrong clock dated ahead was not later than the events after it.
        ahead = self._clock() + CLOCK_SKEW_MAX_MS
        resets = [at for at in (here.context_lost_at, recent.reset_at) if at and at < ahead]
        last_at = here.last_at if here.last_at is not None and here.last_at < ahead else None
        return replace(
            here, injected_at=shown, context_lost_at=max(resets, default=None), last_at=last_at,
            branch=draft.branch,
        )  # fmt: skip


def _is_project_known(tx: Connection, draft: ContextDraft) -> bool:
    """Return whether anything is remembered of the project of a session that begins."""
    project = start.read_session_place(tx, _place_of(draft), None).project
    return project is not None and bool(session_context.newest_titles(tx, [project.id], 1))


def _place_of(draft: ContextDraft) -> SessionPlace:
    moment, identity = draft.moment, draft.identity
    place = SessionPlace(moment.client, moment.session or None)
    if identity is None:
        return place
    return replace(place, project_key=identity.key, project_name=identity.name)


def _read_directory(
    directory: str, overrides: ProjectOverrides | None, with_project: bool
) -> tuple[str | None, ProjectIdentity | None]:
    """The branch of a directory and, if asked for, its project."""
    identity = resolve_project(directory, overrides) if with_project else None
    return read_branch(directory), identity


def _is_same(one: Question, other: Question) -> bool:
    """Return whether two questions differ at most in the moment at which they were asked."""
    return replace(one, now=other.now) == other


def _why_not_told(one: Summary, here: SessionState) -> str | None:
    """Return why a session does not need a memory, or may not get it; None if nothing speaks against it."""
    if why := here.why_seen(one.id, one.session_id, one.at):
        return why
    is_of_file = one.authority is Authority.TOOL_OUTPUT and one.source.startswith("import:")
    if is_of_file and not one.pinned_at:
        return "only a file says so: shown when asked for"
    return None if one.pinned_at else here.why_elsewhere(one.tags, one.session_id)


def _find_known_topic(tx: Connection, topics: Iterable[str]) -> str | None:
    return next((topic for topic in topics if summaries.ids_on_topic(tx, topic)), None)
