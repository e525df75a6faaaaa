"""Draft all that an episode is remembered as. Pure.

    events ─ due.py         reads the turns that are due, whole: new ones, and those that a new one changes
      │
    episodes.py             groups events into episodes, one a turn, and reads each as a story: what was said, run, edited
      │
    work.py                 joins the turns of one piece of work; its first turn tells of it, the others only assert
      │
    turn.py  ─┬─ titles/            choose its title: a sentence, or two, by the ranker
              ├─ body.py            writes what a reader will want to know
              ├─ proof/             finds what failed, and what proves that it was fixed
              └─ assertions.py      keeps what the user says by one of the few forms, once vetoes.py lets it pass
      │
    transaction.py          writes the drafts with their edges, and what they end: rules, tasks, choices, failures
      │
    distiller.py            the loop: distils again, once, what an exchange has closed or disputed

The same episode and context always give the same drafts with the same slots, so that distilling again
revises what is stored and adds nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from memd.belief.decide import VALUE_KINDS
from memd.belief.standing import OF_BRANCH, PREFIX
from memd.distill import assertions, body, doing, episodes
from memd.distill import text as sentences
from memd.distill.assertions import draft_retractions
from memd.distill.edits import diff_edit
from memd.distill.episodes import Episode, EpisodeContext, ShellCommand, Story
from memd.distill.proof import command_output
from memd.distill.proof.chains import (
    FailureChain,
    Outcome,
    draft_failures,
    find_chains,
    tell_chains,
)
from memd.distill.proof.checks import is_failing
from memd.distill.settings import are_about, read_changes
from memd.distill.titles.candidates import TITLE_CHARACTERS
from memd.distill.titles.naming import ChosenTitle, name_turn
from memd.distill.work import Work, came_to_something, read_work
from memd.machine_text import read_plan_text
from memd.models import (
    SETTINGS_NODE,
    Authority,
    Draft,
    DraftEdge,
    EdgeType,
    Kind,
    SettingChange,
    Source,
)
from memd.text import content_stems, is_private, one_line, unique

_FILES_MAX, _EDITS_QUOTED, _ANSWERS_QUOTED, _COMMANDS_QUOTED = 20, 10, 4, 6
_TITLE_MIN, _SETTING_NAME_MIN = 40, 3
"""Characters that are left of a title, however long a value is."""
_COMPACTION_CHARACTERS_MIN = 40
_ACKNOWLEDGED_MAX = 300
"""Characters of an answer that only notes what the user has stated."""
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|\Z)", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


def distill_episode(
    episode: Episode, context: EpisodeContext, story: Story | None = None
) -> list[Draft]:
    """Return what this episode is remembered as; an empty list is an answer, and that of a private turn.

    Of one that goes on with the work of another only its assertions are: the other tells of the work. `story`: what its
    events tell, if they have been read already.
    """
    if any(is_private(event.payload.get("prompt")) for event in episode.events):
        return []
    story = story or episodes.read_story(episode.events, context)
    asserted = assertions.draft_assertions(story, context)
    ended = draft_retractions(story, context)
    found: list[Draft | None] = [*asserted, *ended, *draft_compactions(story, context)]
    if not episode.continues:
        found = [*_draft_done(episode, story, context, asserted), *found]
    kept = [draft for draft in found if draft and draft.title.strip() and draft.body.strip()]
    branch = episodes.find_branch(episode.events)
    states_values = any(draft.kind in VALUE_KINDS for draft in kept)
    changes = read_changes(story.edits, context.relative) if states_values else ()
    return [
        replace(
            draft,
            tags=scope_tags(draft, branch),
            edges=(*draft.edges, *_link_stated(draft, changes)),
        )
        for draft in kept
    ]


def _draft_done(
    episode: Episode, story: Story, context: EpisodeContext, asserted: Sequence[Draft]
) -> list[Draft | None]:
    """Return what was done in the piece of work that an episode begins, and what failed and was mended in it."""
    work = read_work(episode, story, context)
    disputes = context.disputes.get(episode.key, ())
    chains = find_chains(work.whole, disputes)
    done: list[Draft | None] = [*draft_failures(work.whole, context, chains)]
    if _only_acknowledges(work.whole, asserted):
        return done
    closed = context.closed.get(episode.key, ())
    told = [draft.sources[0].quote for draft in asserted]
    return [draft_work(work, context, chains, closed, told), *done]


def draft_work(
    work: Work,
    context: EpisodeContext,
    chains: Sequence[FailureChain],
    closed: Sequence[str] = (),
    told: Sequence[str] = (),
) -> Draft | None:
    """A piece of work as one draft; None if nothing came of it. `told`: what is a memory of its own."""
    story = work.whole
    came = work.is_open or any(came_to_something(one.story) for one in work.parts)
    if not (story.prompts or story.sender) or not came:
        return None
    named = _name_work(work, context, told, is_proven=any(one.is_mended for one in chains))
    if not named.text:
        return None
    changes = read_changes(story.edits, context.relative)
    failed = list(tell_chains(story, context, chains))
    lines = body.write_lines(work, context, changes, closed, failed)
    text = sentences.clip("\n".join(lines), context.body_characters)
    files = unique(map(context.relative, (*body.list_changed(story), *story.reads)))[:_FILES_MAX]
    return Draft(
        slot="turn", kind=_find_kind(story, chains), title=_tell_values(named.text, changes, story), body=text,
        at=story.last_at, rule="turn", sources=_collect_sources(story, context), files=files,
        confidence=0.7 if story.answer else 0.5, quality=sentences.score_quality(text), title_reasons=named.reasons,
        edges=(*_link_files(story.edited, story.reads), *_link_settings(changes, story)),
    )  # fmt: skip


def _name_work(
    work: Work, context: EpisodeContext, told: Sequence[str], *, is_proven: bool
) -> ChosenTitle:
    """The title of a piece: that of the turn that tells best what came of it."""
    whole, story = work.whole, work.main.story
    if work.later:
        # The outcome may stand in a later turn.
        answers = whole.answers[-1:] if whole.answer else story.answers
        story = replace(story, answers=answers, edits=story.edits or whole.edits)
        story = replace(story, prompts=work.asking.story.prompts)
    plan = (
        read_plan_text(doing.find_written_plan(story.edits)) if not doing.has_edits(story) else None
    )
    if plan:
        return ChosenTitle(one_line(f"Planned: {plan.subject}", TITLE_CHARACTERS))
    named = name_turn(story, context, told, is_proven=is_proven)
    return named if named.text else ChosenTitle(_name_without_words(story, context))


def _name_without_words(story: Story, context: EpisodeContext) -> str:
    """Return what was changed, or what was asked, of a turn in which nothing was said that names it."""
    if names := unique(map(context.relative, story.edited)):
        return one_line(f"Changed {', '.join(names)}", TITLE_CHARACTERS)
    return sentences.make_title(story.prompt, TITLE_CHARACTERS)


def _find_kind(story: Story, chains: Sequence[FailureChain]) -> Kind:
    if any(chain.outcome is Outcome.FIXED for chain in chains):
        return Kind.FIX
    return Kind.CHANGE if doing.does_work(story) else Kind.DISCOVERY


def _link_files(edited: Sequence[str], reads: Sequence[str]) -> list[DraftEdge]:
    """The edges to the files that were edited or only read."""
    found = [DraftEdge(EdgeType.EDITS, "file", path) for path in edited]
    return found + [DraftEdge(EdgeType.REFERENCES, "file", p) for p in reads if p not in edited]


def _tell_values(title: str, changes: Sequence[SettingChange], story: Story) -> str:
    """The title with the values that the edits prove, where it does not name the setting or tells a value in between."""
    told = "; ".join(f"{one.key[-1]} {one.was} → {one.now}" for one in changes if one.was)
    if len(changes) == 1 and told and are_about(story.edits, changes):
        name = changes[0].key[-1]
        is_named = set(content_stems(name)) & set(content_stems(title))
        has_room = len(title) + len(told) + 2 <= TITLE_CHARACTERS
        if not is_named and has_room and len(name) >= _SETTING_NAME_MIN:
            return f"{title}: {told}"
    return _tell_last_value(title, changes)


def _tell_last_value(title: str, changes: Sequence[SettingChange]) -> str:
    """The title with the value that a setting has in the end, if it tells of one that it had in between."""
    for one in changes:
        had = [value for value in one.passed if value != one.now and _has_word(title, value)]
        if had and not _has_word(title, one.now):
            end = f"; now {one.key[-1]} = {one.now}"
            return one_line(title, max(TITLE_CHARACTERS - len(end), _TITLE_MIN)) + end
    return title


def _link_stated(draft: Draft, changes: Sequence[SettingChange]) -> list[DraftEdge]:
    """An edge from a statement to the settings whose new value it states, as the edits of its turn prove."""
    if draft.kind not in VALUE_KINDS:
        return []
    said = frozenset(content_stems(draft.title))
    stated = [
        one
        for one in changes
        if _has_word(draft.title, one.now) and said.intersection(content_stems(" ".join(one.key)))
    ]
    return _link_each_file(stated, EdgeType.REFERENCES, is_only=True)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _link_settings(changes: Sequence[SettingChange], story: Story) -> list[DraftEdge]:
    """An edge to each file's settings, with what was set; `only` if the work did nothing else."""
    return _link_each_file(changes, EdgeType.EDITS, is_only=are_about(story.edits, changes))


def _link_each_file(
    changes: Sequence[SettingChange], type_: EdgeType, *, is_only: bool
) -> list[DraftEdge]:
    return [
        DraftEdge(
            type_, SETTINGS_NODE, file,
            {"set": [[list(one.key), one.was, one.now] for one in changes if one.file == file],
             "whole": any(one.is_whole for one in changes if one.file == file), "only": is_only},
        )
        for file in unique(one.file for one in changes)
    ]  # fmt: skip


def _collect_sources(story: Story, context: EpisodeContext) -> tuple[Source, ...]:
    said = (*story.prompts, *story.answers[-_ANSWERS_QUOTED:])
    found = [Source(s.event_id, sentences.clip_quote(s.text), s.authority) for s in said]
    for edit in story.edits[:_EDITS_QUOTED]:
        change = " ".join(diff_edit(edit))
        found.append(
            Source(edit.event_id, sentences.clip_quote(f"{context.relative(edit.path)}: {change}"))
        )
    last_runs = {run.line or run.command: run for run in story.commands}
    found.extend(
        Source(
            one.event_id, sentences.clip_quote(body.describe_outcome(one)), Authority.TOOL_OUTPUT
        )
        for one in islice(filter(_did_or_failed, last_runs.values()), _COMMANDS_QUOTED)
    )
    return tuple(found)


def _did_or_failed(run: ShellCommand) -> bool:
    is_failed = is_failing(run) and not command_output.is_read_only(run.command)
    return is_failed or doing.leaves_something(run)


def draft_compactions(story: Story, context: EpisodeContext) -> list[Draft]:
    """Draft a memory of the session so far from each of the client's own summaries at a compaction."""
    found: list[Draft] = []
    for said in story.compactions:
        text = _ANALYSIS.sub("", said.text)
        match = _SUMMARY.search(text)
        text = (match.group(1) if match else text).strip()
        if len(text) < _COMPACTION_CHARACTERS_MIN or sentences.is_only_placeholders(text):
            continue
        name = context.session_title or sentences.make_title(text)
        told = sentences.clip(text, context.body_characters)
        found.append(Draft(
            slot=f"session/{len(found)}" if found else "session", kind=Kind.SESSION,
            title=one_line(f"Session so far: {name}", TITLE_CHARACTERS).rstrip("?"), body=told,
            at=said.at, rule="compaction", sources=(Source(said.event_id, sentences.clip_quote(text)),),
            confidence=0.7, quality=sentences.score_quality(told),
        ))  # fmt: skip
    return found


def _only_acknowledges(story: Story, asserted: Sequence[Draft]) -> bool:
    """Return whether a turn tells nothing but what its assertions say: the user stated it, and the agent noted it."""
    is_looking = all(command_output.is_read_only(one.command) for one in story.commands)
    is_all = bool(asserted) and len(asserted) >= len(sentences.split_sentences(story.prompt))
    did_nothing = is_all and is_looking and bool(story.answers) and not story.edits
    return did_nothing and len(story.told) < _ACKNOWLEDGED_MAX


# ── Where a statement holds, as its speaker says it ───────────────────────────────────────────────

SCOPED_KINDS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE})
_SCOPE_FILES_MAX = 2
_EVERYWHERE = re.compile(
    r"\b(?:in|for|across) (?:all|any|every|each)(?: of)?(?: my| our| the)? (?:project|repo|repositorie|repository|codebase)s?\b|\b(?:in|for) all (?:my|our) work\b|\bwherever (?:you|we) work\b",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"\b(?:in|for|of) (?:(?:all|any|every|each|the|our|these|those|my|new|unit|integration|e2e|end-to-end)[\s,-]+){0,4}tests?\b(?! (?:repo|data|server))|\ball tests\b",
    re.IGNORECASE,
)
_FOR_NOW = re.compile(
    r"\b(?:for now|for the (?:moment|time being)|until (?:then|the|we)|at least now|in this (?:phase|release|version|iteration|sprint)|for this (?:phase|release|version|iteration|sprint))\b",
    re.IGNORECASE,
)
_SESSION = re.compile(
    r"\b(?:in|for|during) (?:this|the current|today's) session\b|\b(?:only|just) (?:for )?(?:this time|today)\b|\bfor today\b",
    re.IGNORECASE,
)
_BRANCH = re.compile(
    r"\b(?:in|for|on) (?:this|the current) (?:\w+ )?(?:branch|pr|pull request|merge request)\b",
    re.IGNORECASE,
)
_REPOSITORY = re.compile(
    r"\b(?:in|for|across) (?:this|the|our) (?:whole |entire )?(?:repo|repository|project|codebase|monorepo)\b",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?<![\w/.@-])`?@?((?:[\w.-]+/)*[\w-]+\.(?:py|go|rs|ts|tsx|js|jsx|java|rb|c|h|cpp|md|json|toml|ya?ml|sh|sql|css|html|vue|ex|exs))`?(?![\w/])"
)


_PLACES = (
    ("everywhere", _EVERYWHERE),
    ("repository", _REPOSITORY),
    ("branch", _BRANCH),
    ("session", _SESSION),
    ("tests", _TESTS),
)


def find_scopes(said: str) -> tuple[str, ...]:
    """The tags of where a statement holds; none if in its whole project."""
    found = [name for name, pattern in _PLACES if pattern.search(said)]
    found += [f"file:{name}" for name in dict.fromkeys(_FILE.findall(said))][:_SCOPE_FILES_MAX]
    if _FOR_NOW.search(said):
        found.append("for-now")
    return tuple(PREFIX + name for name in found)


def scope_tags(draft: Draft, branch: str = "") -> tuple[str, ...]:
    """The tags of a draft with those of its scope: only the user says where something holds.

    `branch`: the git branch on which he said it; empty if unknown.
    """
    if draft.kind not in SCOPED_KINDS or draft.authority < Authority.USER_PROMPT:
        return draft.tags
    said = f"{draft.title}\n{draft.sources[0].quote}" if draft.sources else draft.title
    found = (
        f"{OF_BRANCH}:{branch}" if one == OF_BRANCH and branch else one for one in find_scopes(said)
    )
    return tuple(dict.fromkeys((*draft.tags, *found)))
