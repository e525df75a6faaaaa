"""Draft the memories of one episode. Pure: no I/O, no clock.

    events ─ distiller.py   reads the turns that are due, whole: new ones, and those that a new one changes
      │
    episodes.py             groups events into episodes, one a turn, and reads each as a story: what was said and run;
      │                     edits.py: which lines changed, and which settings have another value by that
      │
    work.py                 joins the turns of one piece of work: the first yields its memory, all yield what the user stated
      │
    turn.py  ─┬─ titles/            choose its title: a sentence, or two, by the ranker
              ├─ body.py            writes what a reader will want to know, and judges what work leaves behind
              ├─ proof/             finds what failed, and what proves that it was fixed
              └─ assertions.py      drafts what the user states in one of a few forms, unless vetoes.py rejects it
      │
    transaction.py          writes the drafts and their edges; closes the rules, tasks, choices and failures that they end
      │
    distiller.py            the loop: distils an older episode again, once, when a later exchange closed or disputed it

The same episode and context always give the same drafts with the same slots, so that distilling again
revises what is stored and adds nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from memd.belief.decide import VALUE_KINDS
from memd.belief.standing import OF_BRANCH, PREFIX
from memd.distill import assertions, body, episodes
from memd.distill import text as sentences
from memd.distill.edits import changed_only_settings, diff_edit, read_changes
from memd.distill.episodes import Episode, EpisodeContext, Story
from memd.distill.proof import command_output
from memd.distill.proof.chains import FailureChain, draft_failures, find_chains, tell_chains
from memd.distill.proof.checks import is_failing
from memd.distill.titles import ChosenTitle, name_turn
from memd.distill.titles.features import TITLE_CHARACTERS
from memd.distill.vetoes import SPEECH
from memd.distill.work import (
    Work,
    changed_something,
    find_written_plan,
    has_outcome,
    has_project_edits,
    leaves_something,
    read_work,
)
from memd.machine_text import read_plan_text
from memd.models import (
    ORDER_KINDS,
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
"""Minimum characters kept of a title with a value appended; of a setting's name that is appended."""
_COMPACTION_CHARACTERS_MIN = 40
_ACKNOWLEDGED_MAX = 300
"""An answer shorter than this, to a turn that did nothing else, is taken for an acknowledgement."""
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|\Z)", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


def distill_episode(
    episode: Episode, context: EpisodeContext, story: Story | None = None
) -> list[Draft]:
    """Return what this episode is remembered as; an empty list is an answer.

    `story`: what its events tell, if they have been read already.
    """
    if any(is_private(event.payload.get("prompt")) for event in episode.events):
        return []
    story = story or episodes.read_story(episode.events, context)
    asserted = assertions.draft_assertions(story, context)
    ended = assertions.draft_retractions(story, context)
    found: list[Draft | None] = [*asserted, *ended, *draft_compactions(story, context)]
    # A continuation yields no memory of the work: the first turn of it does.
    if not episode.continues:
        work = read_work(episode, story, context)
        chains = find_chains(work.whole, context.disputes.get(episode.key, ()))
        failed = draft_failures(work.whole, context, chains)
        done = []
        if not _only_repeats_assertions(work.whole, asserted):
            told = [draft.sources[0].quote for draft in asserted]
            done = [draft_work(work, context, chains, context.closed.get(episode.key, ()), told)]
        found = [*done, *failed, *found]
    kept = [draft for draft in found if draft and draft.title.strip() and draft.body.strip()]
    states_values = any(draft.kind in VALUE_KINDS for draft in kept)
    changes = read_changes(story.edits, context.relative) if states_values else ()
    branch = episodes.find_branch(episode.events)
    return [
        replace(
            draft,
            tags=scope_tags(draft, branch),
            edges=(*draft.edges, *_link_stated(draft, changes)),
        )
        for draft in kept
    ]


def draft_work(
    work: Work,
    context: EpisodeContext,
    chains: Sequence[FailureChain],
    closed: Sequence[str] = (),
    told: Sequence[str] = (),
) -> Draft | None:
    """Draft a piece of work as one memory; None if nothing came of it. `told`: sentences with memories of their own."""
    story = work.whole
    came = work.is_open or any(has_outcome(one.story) for one in work.parts)
    if not (story.prompts or story.sender) or not came:
        return None
    is_proven = any(one.is_mended for one in chains)
    named = _name_work(work, context, told, is_proven=is_proven)
    if not named.text:
        return None
    kind = Kind.CHANGE if changed_something(story) else Kind.DISCOVERY
    if any(chain.outcome == "fixed" for chain in chains):
        kind = Kind.FIX
    changes = read_changes(story.edits, context.relative)
    is_only = changed_only_settings(story.edits, changes)
    failed = list(tell_chains(story, context, chains))
    lines = body.write_lines(work, context, changes, closed, failed)
    text = sentences.clip("\n".join(lines), context.body_characters)
    edited, seen = story.edited, [path for path in story.reads if path not in story.edited]
    return Draft(
        slot="turn", kind=kind, title=_tell_values(named.text, changes, is_only=is_only), body=text,
        at=story.last_at, rule="turn", sources=_collect_sources(story, context),
        files=unique(map(context.relative, (*body.list_changed_files(story), *story.reads)))[:_FILES_MAX],
        confidence=0.7 if story.answer else 0.5, quality=sentences.score_quality(text), title_reasons=named.reasons,
        edges=(
            *(DraftEdge(EdgeType.EDITS, "file", path) for path in edited),
            *(DraftEdge(EdgeType.REFERENCES, "file", path) for path in seen),
            *_link_settings(changes, EdgeType.EDITS, is_only=is_only),
        ),
    )  # fmt: skip


def _only_repeats_assertions(story: Story, asserted: Sequence[Draft]) -> bool:
    """Return whether a turn tells nothing but what its assertions say: the user stated it, and the agent noted it."""
    is_looking = all(command_output.is_read_only(one.command) for one in story.commands)
    is_all = bool(asserted) and len(asserted) >= len(sentences.split_sentences(story.prompt))
    did_nothing = is_all and is_looking and bool(story.answers) and not story.edits
    return did_nothing and len(story.told) < _ACKNOWLEDGED_MAX


def _name_work(
    work: Work, context: EpisodeContext, told: Sequence[str], *, is_proven: bool
) -> ChosenTitle:
    """Name a piece of work: by its plan, by the turn that tells best what came of it, by its files, by its prompt."""
    whole, story = work.whole, work.main.story
    if work.later:
        # The outcome may stand in a later turn.
        answers = whole.answers[-1:] if whole.answer else story.answers
        prompts = work.asking.story.prompts
        story = replace(story, answers=answers, edits=story.edits or whole.edits, prompts=prompts)
    plan = None if has_project_edits(story) else read_plan_text(find_written_plan(story.edits))
    if plan:
        return ChosenTitle(one_line(f"Planned: {plan.subject}", TITLE_CHARACTERS))
    if (named := name_turn(story, context, told, is_proven=is_proven)).text:
        return named
    if names := unique(map(context.relative, story.edited)):
        return ChosenTitle(one_line(f"Changed {', '.join(names)}", TITLE_CHARACTERS))
    return ChosenTitle(sentences.make_title(story.prompt, TITLE_CHARACTERS))


def _collect_sources(story: Story, context: EpisodeContext) -> tuple[Source, ...]:
    """The events that a piece of work is told of, each quoted: what was said, edited and run."""
    found = [(one.event_id, one.text, one.authority) for one in (*story.prompts, *story.answers[-_ANSWERS_QUOTED:])]  # fmt: skip
    found += [
        (edit.event_id, f"{context.relative(edit.path)}: {' '.join(diff_edit(edit))}", Authority.AGENT_TEXT)
        for edit in story.edits[:_EDITS_QUOTED]
    ]  # fmt: skip
    last_runs = {run.line or run.command: run for run in story.commands}.values()
    telling = (
        run
        for run in last_runs
        if leaves_something(run)
        or (is_failing(run) and not command_output.is_read_only(run.command))
    )
    found += [
        (run.event_id, body.describe_outcome(run), Authority.TOOL_OUTPUT)
        for run in islice(telling, _COMMANDS_QUOTED)
    ]
    return tuple(Source(event, sentences.clip_quote(text), by) for event, text, by in found)


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


# ── The values that edits prove ──────────────────────────────────────────────────────────────────


def _tell_values(title: str, changes: Sequence[SettingChange], *, is_only: bool) -> str:
    """Append the values that the edits prove to a title that omits the setting or states an intermediate value.

    `is_only`: the edits did nothing but change them.
    """
    if len(changes) == 1 and changes[0].was and is_only:
        one, name = changes[0], changes[0].key[-1]
        told = f"{title}: {name} {one.was} → {one.now}"
        is_named = set(content_stems(name)) & set(content_stems(title))
        if not is_named and len(told) <= TITLE_CHARACTERS and len(name) >= _SETTING_NAME_MIN:
            return told
    for one in changes:
        had = [value for value in one.passed if value != one.now and _has_word(title, value)]
        if had and not _has_word(title, one.now):
            end = f"; now {one.key[-1]} = {one.now}"
            return one_line(title, max(TITLE_CHARACTERS - len(end), _TITLE_MIN)) + end
    return title


def _link_stated(draft: Draft, changes: Sequence[SettingChange]) -> list[DraftEdge]:
    """An edge from a statement to the settings whose new value it states, as the edits of its turn prove."""
    said = frozenset(content_stems(draft.title))
    stated = [
        one
        for one in changes
        if draft.kind in VALUE_KINDS
        and _has_word(draft.title, one.now)
        and said.intersection(content_stems(" ".join(one.key)))
    ]
    return _link_settings(stated, EdgeType.REFERENCES, is_only=True)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _link_settings(
    changes: Sequence[SettingChange], type_: EdgeType, *, is_only: bool
) -> list[DraftEdge]:
    """An edge to each file's settings, with what was set."""
    return [
        DraftEdge(
            type_, SETTINGS_NODE, file,
            {"set": [[list(one.key), one.was, one.now] for one in changes if one.file == file],
             "whole": any(one.is_whole for one in changes if one.file == file), "only": is_only},
        )
        for file in unique(one.file for one in changes)
    ]  # fmt: skip


# ── Where a statement holds, as its speaker says it ───────────────────────────────────────────────

_SCOPE_FILES_MAX = 2
_SCOPES = ("everywhere", "repository", "branch", "session", "tests")


def find_scopes(said: str) -> tuple[str, ...]:
    """Return the scope tags of a statement; none if it holds in its whole project."""
    found = [name for name in _SCOPES if SPEECH[f"in {name}"].search(said)]
    found += [f"file:{name}" for name in unique(SPEECH["file"].findall(said))[:_SCOPE_FILES_MAX]]
    found += ["for-now"] if SPEECH["for now"].search(said) else []
    return tuple(PREFIX + name for name in found)


def scope_tags(draft: Draft, branch: str = "") -> tuple[str, ...]:
    """The tags of a draft with those of its scope: only the user says where something holds.

    `branch`: the git branch on which he said it; empty if unknown.
    """
    if draft.kind not in ORDER_KINDS or draft.authority < Authority.USER_PROMPT:
        return draft.tags
    said = "\n".join((draft.title, *(one.quote for one in draft.sources[:1])))
    found = (f"{one}:{branch}" if one == OF_BRANCH and branch else one for one in find_scopes(said))
    return unique((*draft.tags, *found))
