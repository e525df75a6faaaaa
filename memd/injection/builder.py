"""Builds the injected context: what an agent is shown at an injection moment, fenced and labelled as data.

Building writes nothing, so the same moment gives the same context twice; `memd context` relies on that.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from memd.belief.notes import show_said
from memd.belief.scopes import list_files, name_branch
from memd.capture import clients
from memd.capture.project import ProjectIdentity, ProjectOverrides, read_branch, resolve_project
from memd.capture.redact import redact_blocks
from memd.config import InjectConfig
from memd.distill.distiller import Distiller
from memd.injection import choice, prompt_gate, start
from memd.injection.choice import LINES_MAX, CandidateChoice, CandidateGroup
from memd.injection.evidence import PromptEvidence
from memd.injection.guides import GuideReader
from memd.injection.lines import shorten_sentence
from memd.injection.moments import InjectedContext, InjectionCandidate, InjectionMoment
from memd.injection.origins import (
    TITLE_CHARACTERS,
    OriginReader,
    ToldTexts,
    choose_told,
    shorten_name,
    tell_offers,
    tell_remark,
)
from memd.injection.page import (
    SAID_HEADING,
    ContextLine,
    ContextSection,
    clean_text,
    estimate_tokens,
    find_shared,
    format_hits,
    format_index,
    heading_cost,
    index_capacity,
    line_cost,
    utf16_length,
    write_heading,
)
from memd.injection.prompt_gate import GatedHit, PromptQuery
from memd.injection.said import SAID_CHARACTERS_MAX, SaidSentence, is_told
from memd.injection.start import SessionCandidates, SessionPlace, SessionState
from memd.injection.working_tree import WorkingTree
from memd.models import CLOCK_SKEW_MAX_MS, Authority, Kind, Summary
from memd.recall.query import parse_terms
from memd.recall.recaller import Recaller
from memd.recall.types import Answer, Question, RelevanceGate
from memd.store import judgments, links, session_context, summaries
from memd.store.database import Connection, Database
from memd.store.types import ContextCandidate
from memd.text import one_line, unique
from memd.time_expressions import format_time

SETTLE_S = 0.1
"""Seconds that a compacted session waits until its own last events are distilled."""
_TITLES_MAX = 1_000
"""Titles that tell how rare the words of a prompt are."""
_GIT_SHARE = 0.25
"""The part of the time that a hook waits which one call of git may take."""
_FILES_SHOWN = 3
_WIDTH_SHORT = 80
"""Characters that a sentence is shortened to, as far as its syntax allows, where not all have room."""
_HITS_MAX = 40
"""Hits among which those are looked for that fit a prompt."""
_AUTHOR_CHARACTERS = 40
_BRANCH_CHARACTERS = 60
_NOTHING_KNOWN = (
    "nothing is known that a session begins with: a rule, a decision, an open failure,"
    " what is pinned or what the last sessions did"
)
_SPENT = "this session has been told as much as it may: inject.session_tokens"
_NO_PROMPT = PromptQuery("", "no prompt")


@dataclass(frozen=True, slots=True)
class RecentInjections:
    """Injections into a session that the vault may not have yet. Times are UTC milliseconds."""

    shown: Mapping[int, int]
    """Memory → when it was shown."""
    reset_at: int | None = None
    """When the session was last compacted or cleared."""
    tokens: int = 0
    """What was told since then."""


@dataclass(frozen=True, slots=True)
class ContextDraft:
    """What the event of a moment does not change: it is found while the event is being stored."""

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
        self._told = ToldTexts()
        self._guides = GuideReader()

    def open(self, moment: InjectionMoment) -> ContextDraft:
        """The beginning of a context. Most end here, for most prompts are worth no search."""
        is_prompt = moment.name == "prompt"
        if not (self._config.prompt if is_prompt else self._config.session_start):
            setting = "inject.prompt" if is_prompt else "inject.session_start"
            return ContextDraft(moment, f"switched off in config.toml: {setting}")
        if not is_prompt:
            return ContextDraft(moment)
        prompt = _redact_prompt(moment.prompt)
        wanted = prompt_gate.read_prompt(prompt)
        return ContextDraft(moment, "" if wanted.text else wanted.reason, prompt, wanted)

    async def search_ahead(self, draft: ContextDraft) -> ContextDraft:
        """Find what can be found before the event of the moment is stored. Raises a VaultError."""
        draft, here = await self._look_around(draft)
        if not draft.wanted.text or not here.switch.recalls:
            return draft
        topic = await self._find_topic(draft.wanted)
        question = self._make_question(draft.wanted, here.project_ids, topic, _HITS_MAX)
        return replace(draft, question=question, answer=await self._recaller.search(question))

    async def build(
        self,
        moment: InjectionMoment,
        recent: RecentInjections,
        *,
        explain: bool = False,
        draft: ContextDraft | None = None,
    ) -> InjectedContext:
        """What to inject now; with `explain`, with every candidate. Raises a VaultError.

        `draft` is what `search_ahead` found for this moment, before its event was stored.
        """
        if draft is None:
            draft = self.open(moment)
            if not draft.why_nothing:
                draft, _ = await self._look_around(draft)
        if draft.why_nothing:
            return InjectedContext(draft.why_nothing)
        draft = replace(draft, moment=moment)
        if moment.name == "prompt":
            found = await self._build_hits(draft, recent)
        else:
            found = await self._build_index(draft, recent)
        return found if explain else replace(found, candidates=found.shown)

    async def _look_around(self, draft: ContextDraft) -> tuple[ContextDraft, SessionState]:
        """Find the session, and on the disk its branch and, if the vault does not know it, its project."""
        directory = draft.moment.directory
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

        is_anew = moment.name in ("compact", "clear")
        left = self._config.session_tokens - (0 if is_anew else recent.tokens)
        tree = WorkingTree(moment.directory, self._config.session_s * _GIT_SHARE)
        listener = _Listener(moment.client, tree)
        guides = await anyio.to_thread.run_sync(self._guides.read, moment.directory)

        def build(tx: Connection) -> InjectedContext:
            now = self._clock()
            here = self._read_session_state(tx, draft, recent)
            if moment.name in ("compact", "clear"):
                here = replace(here, context_lost_at=now)
            if not here.switch.recalls:
                return InjectedContext(here.switch.reason, project=here.name)
            found = start.read_candidates(tx, here, moment.name, now, guides)
            reader = OriginReader(tx, self._told)
            return _select_index(here, found, min(self._config.tokens, left), now, listener, reader)

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
            _make_candidate(one.hit.summary, "", one.is_shown, one.why) for one in offers
        )
        chosen = [one for one in offers if one.is_shown]
        if not chosen:
            reason = offers[0].why if offers else "nothing known fits it"
            return InjectedContext(reason, None, here.name, candidates)
        ids = [one.hit.summary.id for one in chosen]
        replaced, against = await self._db.read_inline(
            lambda tx: (links.superseded_ids(tx, ids), judgments.visible_contradictions(tx, ids))
        )
        show = partial(_line_of_offer, branch=here.branch, asking=draft.moment.client)
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
            candidates = tuple(replace(one, shown=False, why=_SPENT) for one in candidates)
            return InjectedContext(_SPENT, None, here.name, candidates)
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
        seen = {one.id: why for one in memories if (why := _find_objection(one, here))}
        seen |= start.name_outdated(one for one in memories if one.pinned_at is None)
        rarity = answer.rarity or prompt_gate.EVEN_RARITY
        titles = await self._db.read_inline(
            lambda tx: session_context.newest_titles(tx, here.project_ids, _TITLES_MAX)
        )
        wanted = replace(wanted, evidence=PromptEvidence.read(wanted.text, titles))
        return prompt_gate.gate_hits(answer.hits, wanted, seen, gate, config.prompt_hits, rarity)

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
        for number, at_ms in recent.shown.items():
            shown[number] = max(at_ms, shown.get(number, 0))
        # An event that a wrong clock dated ahead was not later than the events after it.
        ahead = self._clock() + CLOCK_SKEW_MAX_MS
        resets = [at for at in (here.context_lost_at, recent.reset_at) if at and at < ahead]
        last_at = here.last_at if here.last_at is not None and here.last_at < ahead else None
        return replace(
            here, injected_at=shown, context_lost_at=max(resets, default=None), last_at=last_at,
            branch=draft.branch,
        )  # fmt: skip


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
    """Whether two questions differ at most in the moment at which they were asked."""
    return replace(one, now=other.now) == other


def _find_objection(one: Summary, here: SessionState) -> str | None:
    """Why a session does not need a memory, or may not get it; None if nothing speaks against it."""
    if why := here.why_seen(one.id, one.session_id, one.at):
        return why
    is_of_file = one.authority is Authority.TOOL_OUTPUT and one.source.startswith("import:")
    if is_of_file and not one.pinned_at:
        return "only a file says so: shown when asked for"
    return None if one.pinned_at else here.why_elsewhere(one.tags, one.session_id)


def _find_known_topic(tx: Connection, topics: Iterable[str]) -> str | None:
    return next((topic for topic in topics if summaries.ids_on_topic(tx, topic)), None)


def _redact_prompt(prompt: str) -> str:
    """A prompt without its private parts; of a huge one, the two ends."""
    limit = prompt_gate.PROMPT_END_CHARACTERS_MAX
    if len(prompt) <= 2 * limit:
        return redact_blocks(prompt)
    head, tail = prompt[:limit], prompt[-limit:]
    # Each without the line that the cut went through.
    head, tail = head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail
    return f"{redact_blocks(head)}\n{redact_blocks(tail)}"


@dataclass(frozen=True, slots=True)
class _Listener:
    """Who is told, where he is, and in how many characters a sentence."""

    client: str
    tree: WorkingTree
    width: int = TITLE_CHARACTERS


def _select_index(
    here: SessionState,
    found: SessionCandidates,
    tokens: int,
    now: int,
    listener: _Listener,
    reader: OriginReader,
) -> InjectedContext:
    """The index of a project within its budget; no text if nothing is known.

    Whole sentences if all that stands has room, else the same shortened.
    """
    # Where all have room, none need come first.
    has_many = sum(len(group.candidates) for group in found.groups if group.stands) > LINES_MAX
    if has_many:
        groups = tuple(_mark_branch(each, listener.tree) for each in found.groups)
        found = replace(found, groups=groups)
    listener.tree.look_up(
        [one.title for group in found.groups for one in group.candidates[:LINES_MAX]]
    )
    if not has_many:
        whole = _fill_index(here, found, tokens, now, listener, reader)
        if all(one.why != choice.NO_ROOM for one in whole.candidates):
            return whole
    return _fill_index(here, found, tokens, now, replace(listener, width=_WIDTH_SHORT), reader)


def _mark_branch(group: CandidateGroup, tree: WorkingTree) -> CandidateGroup:
    """The group with a mark on what is about the files of this branch."""
    if not (group.stands and tree.changed_files):
        return group
    marked = (
        replace(one, is_of_branch=tree.touches(one.title, list_files(one.tags)))
        for one in group.candidates
    )
    return replace(group, candidates=tuple(marked))


def _fill_index(
    here: SessionState,
    found: SessionCandidates,
    tokens: int,
    now: int,
    listener: _Listener,
    reader: OriginReader,
) -> InjectedContext:
    project = here.name
    capacity = index_capacity(tokens, project)
    told: dict[int, ContextCandidate] = {}
    shared = {
        group.name: find_shared((one.at, one.authority) for one in group.candidates[:LINES_MAX])
        for group in found.groups
    }
    group_of = {one.id: group.name for group in reversed(found.groups) for one in group.candidates}
    headings = {name: write_heading(name, each) for name, each in shared.items()}

    def show(card: ContextCandidate) -> ContextLine:
        shown = (
            replace(told[card.id], remark=tell_remark(card, reader)) if card.id in told else card
        )
        line = _line_of_card(shown, here.branch, listener)
        gone = listener.tree.note_gone(shown.title, card.at)
        return replace(line, note="; ".join(filter(None, (gone, line.note)))) if gone else line

    said = [(one.text, _format_said(one)) for one in found.said]
    room = capacity - _measure_said([line for _, line in said])

    def choose(groups: Sequence[CandidateGroup]) -> list[CandidateChoice]:
        def cost(card: ContextCandidate) -> int:
            return line_cost(show(card), capacity, shared[group_of[card.id]])

        return choice.choose_candidates(
            groups, room, now, cost, lambda name: heading_cost(headings[name])
        )

    choices, refused = choose_told(found.groups, choose, told, reader)
    sections = [
        ContextSection(
            headings[group.name],
            tuple(show(c.candidate) for c in choices if c.is_shown and c.group == group.name),
            shared[group.name],
        )
        for group in found.groups
    ]
    candidates = tuple(
        _make_candidate(one.candidate, one.group, one.is_shown, one.why)
        for one in (*choices, *refused, *found.left_out)
    )
    shown = [f"{one.title} {one.note}" for section in sections for one in section.lines]
    said_lines = [line for text, line in said if not is_told(text, shown)]
    if not (count := len(shown)) and not said_lines:
        reason = "nothing new is known" if candidates else _NOTHING_KNOWN
        return InjectedContext(reason, None, project, candidates)
    more = sum(one.why == choice.NO_ROOM for one in choices)
    text = format_index(project, sections, capacity, said_lines, more)
    return InjectedContext(f"{count} of {len(candidates)} shown", text, project, candidates)


def _format_said(one: SaidSentence) -> str:
    """A sentence of the user's own, verbatim."""
    day = format_time(one.at).partition("T")[0]
    return f"- “{clean_text(one.text, SAID_CHARACTERS_MAX)}” ({day})"


def _measure_said(lines: Sequence[str]) -> int:
    return heading_cost(SAID_HEADING) + sum(utf16_length(one) + 1 for one in lines) if lines else 0


def _line_of_card(card: ContextCandidate, branch: str | None, listener: _Listener) -> ContextLine:
    author, client = _name_author(card.author), _name_client(card.source, listener.client)
    said = show_said(card.body) if card.authority is Authority.USER_TOLD else ""
    where = _limit_to_branch(card.tags, branch)
    files = _name_files(card) if listener.width == TITLE_CHARACTERS else ""
    note = "; ".join(filter(None, (author, client, where, files, card.remark, said, card.caveat)))
    is_rule = card.kind in (Kind.INSTRUCTION, Kind.PREFERENCE)
    title = shorten_sentence(card.title, listener.width, is_rule=is_rule)
    told = card.id, card.kind, title, card.at, card.authority
    return ContextLine(*told, is_pinned=card.is_pinned, note=note)


def _name_client(source: str, asking: str) -> str:
    """Which client a memory came from, if another one is told of it."""
    return f"from {source}" if asking and source in clients.CLIENTS and source != asking else ""


def _name_author(author: str) -> str:
    """Whose word a teammate's memory is."""
    return f"by {one_line(author, _AUTHOR_CHARACTERS)} of the team" if author else ""


def _limit_to_branch(tags: Iterable[str], branch: str | None) -> str:
    """For which branch a memory was said; empty if for none, or for the one that is checked out."""
    named = name_branch(tags)
    if named is None or (named and named == branch):
        return ""
    return (
        f"only on branch {shorten_name(one_line(named, _BRANCH_CHARACTERS))}"
        if named
        else "only on the branch of that day"
    )


def _name_files(card: ContextCandidate) -> str:
    """The files that it edited and its title does not name, by their last names."""
    names = unique(re.split(r"[/\\]", path)[-1] or path for path in card.edited)
    names = tuple(name for name in names if name not in card.title)
    more = f" and {len(names) - _FILES_SHOWN} more" if len(names) > _FILES_SHOWN else ""
    return ", ".join(names[:_FILES_SHOWN]) + more


def _line_of_offer(
    one: GatedHit,
    told: tuple[str, str],
    replaced: Mapping[int, Sequence[int]],
    against: Mapping[int, Sequence[int]],
    *,
    branch: str | None,
    asking: str,
) -> ContextLine:
    summary = one.hit.summary
    older = ", ".join(f"#{number}" for number in replaced.get(summary.id, ()))
    note = f"replaces {older}" if older else ""
    if summary.id in against:
        note = one.hit.contradiction or ""
    if summary.superseded_by:
        note = f"superseded by #{summary.superseded_by}"
    author, client = _name_author(summary.author), _name_client(summary.source, asking)
    note = "; ".join(filter(None, (author, client, _limit_to_branch(summary.tags, branch), note)))
    title, snippet = told
    return ContextLine(
        summary.id,
        summary.kind,
        title,
        summary.at,
        summary.authority,
        is_pinned=summary.pinned_at is not None,
        note=note,
        snippet=snippet,
    )


def _make_candidate(
    one: Summary | ContextCandidate, group: str, is_shown: bool, why: str
) -> InjectionCandidate:
    return InjectionCandidate(one.id, one.kind, one.title, one.at, group, is_shown, why)
