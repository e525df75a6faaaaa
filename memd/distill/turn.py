"""The summary of a turn and of a compaction, and all drafts of an episode. Pure.

The same episode and context always give the same drafts with the same slots, so that distilling again
revises what is stored and adds nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memd.belief.decide import VALUE_KINDS
from memd.distill import decisions, episodes, preferences, retractions, sentences
from memd.distill.dialogue import drafts, findings, withdrawing
from memd.distill.dialogue.corrections import Correction, find_correction
from memd.distill.dialogue.offers import read_offer, strip_markup
from memd.distill.episodes import Episode, EpisodeContext, Exchange, Role, ShellCommand, Story
from memd.distill.outcome import doing
from memd.distill.outcome.naming import find_outcome_text, leave_out, name_turn
from memd.distill.outcome.open_ends import list_open_ends
from memd.distill.outcome.requests import (
    describe_request,
    is_deictic,
    is_praise,
    moves_branch,
    resolve_request,
)
from memd.distill.outcome.titles import TITLE_CHARACTERS, read_commit_subject
from memd.distill.proof import command_output, failures, run_outcome, slips
from memd.distill.proof.chains import FailureChain, find_chains
from memd.distill.scope import scope_tags
from memd.distill.settings import are_about, read_changes
from memd.distill.work import Part, Work, list_messages, read_work
from memd.models import (
    COMMITTED,
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

_COMMANDS_MAX = 12
_FILES_MAX = 20
_EDITS_QUOTED = 10
_ANSWERS_QUOTED = 4
_REPORTS_MAX = 3
_DENIALS_MAX = 3
_SENDER_CHARACTERS = 60
_FINDINGS_MAX, _FINDING_CHARACTERS = 3, 300
_CLOSED_MAX = 3
_SETTINGS_TOLD_MAX = 8
_TITLE_MIN = 40
"""Characters that are left of a title, however long a value is."""
_ANSWER_CHARACTERS_MIN = 160
_ASKED_BACK_MAX = 700
"""Characters of an answer that says little beside the question that it ends with."""
_COMPACTION_CHARACTERS_MIN = 40
_ACKNOWLEDGED_MAX = 300
"""Characters of an answer that only notes what the user has stated."""
_ASKED_SHARE, _ANSWERED_SHARE, _OTHERS_SHARE = 0.25, 0.4, 0.25
"""Of the body's limit, which leaves space for the files and commands."""
_THEN_CHARACTERS = 200
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|\Z)", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


def draft_work(
    work: Work,
    context: EpisodeContext,
    chains: Sequence[FailureChain],
    told_elsewhere: Sequence[str] = (),
    closed: Sequence[str] = (),
    after: Sequence[Exchange] = (),
) -> Draft | None:
    """Return a piece of work as one draft; None if nothing in it is worth a search.

    `chains`: its failures. `told_elsewhere`: sentences that are memories of their own. `closed`: what had failed before and passed in it.
    `after`: the exchanges after its first turn, the next first.
    """
    story = work.whole
    if not (story.prompts or story.sender) or not any(
        _is_worth_a_summary(one.story) for one in work.parts
    ):
        return None
    correction = find_correction(_list_after(work, after))
    title = _name_work(work, context, chains, told_elsewhere, correction)
    if not title:
        return None
    changes = read_changes(story.edits, context.relative)
    title = _tell_last_value(title, changes)
    lines = _write_lines(work, context, told_elsewhere, after)
    lines += [f"Set: {one}" for one in changes if one.was][:_SETTINGS_TOLD_MAX]
    lines += [correction.tell()] if correction else []
    lines += [f"Passed here, had failed before: {one}" for one in closed[:_CLOSED_MAX]]
    body = sentences.clip("\n".join(lines), context.body_characters)
    files = unique(
        map(context.relative, (*story.edited, *doing.list_moved_files(story), *story.reads))
    )[:_FILES_MAX]
    return Draft(
        slot="turn", kind=_find_kind(story, chains), title=title, body=body, at=story.last_at, rule="turn",
        sources=_collect_sources(story, context), files=files,
        confidence=0.7 if story.answer else 0.5, quality=sentences.score_quality(body),
        edges=(*failures.link_files(story.edited, story.reads), *_link_settings(changes, story)),
    )  # fmt: skip


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


def _name_work(
    work: Work,
    context: EpisodeContext,
    chains: Sequence[FailureChain],
    told_elsewhere: Sequence[str],
    correction: Correction | None,
) -> str:
    """The title of a piece: that of the turn that tells best what came of it."""
    whole, main = work.whole, work.main
    story = main.story
    if work.later:
        # The outcome and the commit may stand in a later turn.
        answers = whole.answers[-1:] if whole.answer else story.answers
        since = min((said.at for said in story.prompts), default=0)
        done = tuple(command for command in whole.commands if command.at >= since)
        story = replace(story, answers=answers, commands=done, edits=story.edits or whole.edits)
        story = replace(story, prompts=work.asking.story.prompts, client_titles=whole.client_titles)
    is_proven = any(chain.is_mended for chain in chains)
    return name_turn(
        story,
        context,
        work.asking.before,
        is_proven=is_proven,
        told_elsewhere=told_elsewhere,
        is_refuted=correction.refutes if correction else None,
    )


def _is_worth_a_summary(story: Story) -> bool:
    """Whether a turn did or found something: an unanswered prompt, an interruption and a thank-you did not."""
    if story.edits:
        return True
    said = find_outcome_text(story)
    if not story.prompts:  # a task in the background has ended
        return len(said) >= _ANSWER_CHARACTERS_MIN
    if all(sentences.is_command(one.text) for one in story.prompts) or _only_moves_branch(story):
        return False
    is_praised = all(is_praise(one.text) for one in story.prompts)
    is_brief = not story.answers and len(said) < _ANSWER_CHARACTERS_MIN
    if is_praised or is_brief or _only_asks_back(story):
        return bool(_select_notable(story))
    if all(is_deictic(one.text) for one in story.prompts):
        return bool(_select_notable(story)) or len(said) >= _ANSWER_CHARACTERS_MIN
    return not all(sentences.is_only_placeholders(text) for text in (story.prompt, said))


def _only_moves_branch(story: Story) -> bool:
    """Whether a turn took another branch or its newest state, as it was asked to, and met with nothing there."""
    if not all(moves_branch(one.text) for one in story.prompts) or doing.does_work(story):
        return False
    is_git = all(
        "git " in c.command and "stash" not in c.command and not run_outcome.is_failing(c)
        for c in story.commands
    )
    return bool(story.commands) and is_git and not story.reads


def _only_asks_back(story: Story) -> bool:
    """Whether a turn said little but a question that is left to the user, whose answer brings the outcome."""
    if len(story.answer) > _ASKED_BACK_MAX:
        return False
    offer = read_offer(story.answer)
    return bool(offer.question) and not offer.proposal


def _find_kind(story: Story, chains: Sequence[FailureChain]) -> Kind:
    if doing.has_edits(story):
        return Kind.CHANGE
    if any(chain.is_mended for chain in chains):
        return Kind.FIX
    return Kind.CHANGE if doing.does_work(story) else Kind.DISCOVERY


def _list_findings(work: Work, after: Sequence[Exchange]) -> Iterator[str]:
    """What the agent established before its closing message, which does not say it: the cause first, a line each.

    What it refuted itself is left out, and what a later exchange takes back.
    """
    story = work.whole
    told = strip_markup(" ".join(find_outcome_text(story).split()))
    prompt = next((said.text for said in reversed(story.prompts)), "")
    cause = findings.find_stated_cause(story)
    others = [one for one in findings.find_findings(story) if not cause or one.claim != cause.claim]
    for one in (*([cause] if cause else []), *others[:_FINDINGS_MAX]):
        shown = one_line(one.claim, _FINDING_CHARACTERS)
        later = [exchange for exchange in after if exchange.at > one.said.at]
        is_back = any(
            withdrawing.takes_back(exchange, step, one.rule, shown, prompt)
            for step, exchange in enumerate(later)
        )
        if one.claim not in told and not is_back:
            label = withdrawing.CAUSE_LABEL if one is cause else withdrawing.FOUND_LABEL
            yield label + shown


def _write_lines(
    work: Work, context: EpisodeContext, told_elsewhere: Sequence[str], after: Sequence[Exchange]
) -> list[str]:
    limit, story = context.body_characters, work.whole
    found = list(_list_findings(work, after))
    lines = [*_write_requests(work, limit)]
    lines += [line for line in found if line.startswith(withdrawing.CAUSE_LABEL)]
    label = "Answered: " if story.answer else "Said last: "
    if answer := leave_out(find_outcome_text(story), told_elsewhere):
        lines.append(label + sentences.clip(answer, int(limit * _ANSWERED_SHARE)))
    lines.extend(_write_other_messages(work, limit, told_elsewhere))
    lines += [line for line in found if not line.startswith(withdrawing.CAUSE_LABEL)]
    lines.extend(
        f"{report.speaker} reported: {one_line(report.text, 300)}"
        for report in story.reports[:_REPORTS_MAX]
    )
    if story.broken_off:
        lines.append(f"Broken off by an error of the model's API: {story.broken_off}")
    lines.extend(
        f"Not run, denied by the client: `{one_line(one.what, 160)}`: {one_line(one.reason, 200)}"
        for one in story.denials[:_DENIALS_MAX]
    )
    lines.extend(f"Open: {text}" for text in list_open_ends(story))
    if changed := (*story.edited, *doing.list_moved_files(story)):
        names = unique(map(context.relative, changed))
        more = f" and {len(names) - _FILES_MAX} more" if len(names) > _FILES_MAX else ""
        lines.append("Files: " + ", ".join(names[:_FILES_MAX]) + more)
    lines.extend(
        unique(f"{COMMITTED}{subject}" for c in story.commands if (subject := _read_commit(c)))
    )
    lines.extend(
        unique(
            f"{f'{c.agent} ran' if c.agent else 'Ran'}: {describe_outcome(c)}"
            for c in _select_notable(story)
        )[:_COMMANDS_MAX]
    )
    return lines


def _read_commit(command: ShellCommand) -> str:
    """The subject of the commit that a command made; empty if it made none."""
    return "" if run_outcome.is_failing(command) else read_commit_subject(command.command)


def _write_requests(work: Work, limit: int) -> Iterator[str]:
    """What the user asked for, and what a short message meant."""
    head = work.parts[0]
    if head.story.prompts:
        asked = describe_request([said.text for said in head.story.prompts], head.before)
        yield "Asked: " + one_line(asked, int(limit * _ASKED_SHARE))
    else:
        yield f"Asked by no person: {one_line(head.story.sender, _SENDER_CHARACTERS)}"
    if meant := _resolve(head):
        yield f"That is: {meant}"
    for one in work.later:
        if not one.story.prompts:
            continue
        meant = _resolve(one)
        yield f"Then: {one_line(one.story.prompt, _THEN_CHARACTERS)}" + (
            f" (that is: {meant})" if meant else ""
        )


def _resolve(part: Part) -> str:
    """What a turn's prompt means after what was said before it; empty if it says so itself."""
    meant = (resolve_request(said.text, part.before) for said in part.story.prompts)
    return next(filter(None, meant), "")


def _write_other_messages(work: Work, limit: int, told_elsewhere: Sequence[str]) -> Iterator[str]:
    """What the agent said at the end of the other turns of a piece."""
    said = list(list_messages(work)) if work.later else []
    each = int(limit * _OTHERS_SHARE) // max(1, len(said))
    for text in said:
        if left := leave_out(text, told_elsewhere):
            yield "Said before or after: " + sentences.clip(left, each)


def _select_notable(story: Story) -> list[ShellCommand]:
    """Commands worth a line: not those that only looked and found."""
    return [
        command
        for command in story.commands
        if run_outcome.is_failing(command)
        or not command_output.is_read_only(command.command)
        or doing.leaves_something(command)
    ]


def describe_outcome(command: ShellCommand) -> str:
    """A command and how it ended, on one line."""
    name = f"`{one_line(command.command, 160)}`"
    if command.is_interrupted:
        return f"{name} → interrupted"
    if not run_outcome.is_failing(command):
        return f"{name} → ok"
    line = command_output.read_error(command.output).line
    return f"{name} → failed: {line}" if line else f"{name} → failed"


def _collect_sources(story: Story, context: EpisodeContext) -> tuple[Source, ...]:
    said = (*story.prompts, *story.answers[-_ANSWERS_QUOTED:])
    found = [Source(s.event_id, sentences.clip_quote(s.text), s.authority) for s in said]
    for edit in story.edits[:_EDITS_QUOTED]:
        change = " ".join(failures.diff_edit(edit))
        found.append(
            Source(edit.event_id, sentences.clip_quote(f"{context.relative(edit.path)}: {change}"))
        )
    found.extend(
        Source(
            command.event_id, sentences.clip_quote(describe_outcome(command)), Authority.TOOL_OUTPUT
        )
        for command in _select_notable(story)[:_COMMANDS_MAX]
    )
    return tuple(found)


def draft_compactions(story: Story, context: EpisodeContext) -> list[Draft]:
    """What the client's own summaries at compactions say about the session so far."""
    found: list[Draft] = []
    for said in story.compactions:
        text = _ANALYSIS.sub("", said.text)
        match = _SUMMARY.search(text)
        text = (match.group(1) if match else text).strip()
        if len(text) < _COMPACTION_CHARACTERS_MIN or sentences.is_only_placeholders(text):
            continue
        name = context.session_title or sentences.make_title(text)
        body = sentences.clip(text, context.body_characters)
        found.append(Draft(
            slot=f"session/{len(found)}" if found else "session", kind=Kind.SESSION,
            title=one_line(f"Session so far: {name}", TITLE_CHARACTERS).rstrip("?"), body=body,
            at=said.at, rule="compaction", sources=(Source(said.event_id, sentences.clip_quote(text)),),
            confidence=0.7, quality=sentences.score_quality(body),
        ))  # fmt: skip
    return found


def distill_episode(
    episode: Episode, context: EpisodeContext, story: Story | None = None
) -> list[Draft]:
    """What this episode is remembered as; an empty list is an answer, and that of a private turn.

    Of one that goes on with the work of another only its statements are: the other tells of the work. `story`: what its
    events tell, if they have been read already.
    """
    if any(is_private(event.payload.get("prompt")) for event in episode.events):
        return []
    story = story or episodes.read_story(episode.events, context)
    typed, decided = _draft_typed(story, context)
    ruled = [*typed, *retractions.draft_retractions(story, context)]
    standing = drafts.draft_dialogue(story, context, episode.key, ruled)
    found: list[Draft | None] = [
        *(draft for draft in ruled if not _is_resolved(draft, standing)),
        *standing,
        *draft_compactions(story, context),
    ]
    if not episode.continues:
        found = [*_draft_done(episode, story, context, (typed, decided)), *found]
    kept = (draft for draft in found if draft and draft.title.strip() and draft.body.strip())
    branch = episodes.find_branch(episode.events)
    changes = read_changes(story.edits, context.relative)
    return [
        replace(
            draft,
            tags=scope_tags(draft, branch),
            edges=(*draft.edges, *_link_stated(draft, changes)),
        )
        for draft in kept
    ]


def _is_resolved(draft: Draft, standing: Sequence[Draft]) -> bool:
    """Whether `let's go with option B` is told with what option B is."""
    answered = (one for one in standing if one.rule.startswith(withdrawing.ANSWERED))
    quote = draft.sources[0].quote
    return draft.rule == "decision:going-with" and any(
        quote in one.sources[0].quote for one in answered
    )


_Typed = tuple[Sequence[Draft], frozenset[str]]


def _draft_typed(story: Story, context: EpisodeContext) -> _Typed:
    """(decisions, rules and preferences of a turn, the sentences that decide)."""
    stated = decisions.find_statements(story)
    decided = frozenset(statement.sentence for statement in stated)
    typed = [
        *decisions.draft_decisions(stated, context),
        *preferences.draft_preferences(story, context, decided),
    ]
    return typed, decided


def _draft_done(
    episode: Episode, story: Story, context: EpisodeContext, own: _Typed
) -> list[Draft | None]:
    """What was done in the piece of work that an episode begins, and what failed and was mended in it."""
    work = read_work(episode, story, context)
    said = [own, *(_draft_typed(one.story, context) for one in work.later)]
    told = [text for typed, decided in said for text in (*decided, *(d.title for d in typed))]
    disputes = context.disputes.get(episode.key, ())
    chains = find_chains(work.whole, disputes)
    done = [*failures.draft_failures(work.whole, context, chains, disputes)]
    if _only_acknowledges(work.whole, [draft for typed, _ in said for draft in typed]):
        return [*done]
    closed = context.closed.get(episode.key, ())
    after = context.after.get(episode.key, ())
    whole = draft_work(work, context, chains, told, closed, after)
    if whole and not closed and _is_all_about_a_fix(work, chains):
        done = [_tell_of_turn(one, work, context) if one.kind is Kind.FIX else one for one in done]
    return [whole, *done]


def _list_after(work: Work, after: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges after a piece of work, of those after its first turn."""
    until = max((said.at for one in work.parts for said in one.story.prompts), default=0)
    return [one for one in after if one.at > until]


def _is_all_about_a_fix(work: Work, chains: Sequence[FailureChain]) -> bool:
    """Whether a piece of work did nothing but mend the one failure that the user had asked about."""
    story = work.whole
    if len(chains) != 1 or any(one.role is not Role.CHORE for one in work.later):
        return False
    (chain,) = chains
    is_asked = chain.is_mended and slips.is_asked_for(chain, story)
    return is_asked and set(story.edits) <= set(chain.edits)


def _tell_of_turn(fix: Draft, work: Work, context: EpisodeContext) -> Draft:
    """The fix that tells of its whole turn, so that one memory does."""
    limit = context.body_characters
    said = sentences.clip(find_outcome_text(work.whole), int(limit * _ANSWERED_SHARE))
    body = sentences.clip(f"{fix.body}\nAnswered: {said}" if said else fix.body, limit)
    turn = DraftEdge(EdgeType.DERIVES_FROM, "slot", "turn")
    return replace(fix, body=body, edges=(*fix.edges, turn))


def _only_acknowledges(story: Story, typed: Sequence[Draft]) -> bool:
    """Whether a turn tells nothing but what its typed memories say: the user stated it, and the agent noted it."""
    is_users = any(draft.authority >= Authority.USER_PROMPT for draft in typed)
    did_nothing = not (story.edits or _select_notable(story))
    return is_users and did_nothing and len(find_outcome_text(story)) < _ACKNOWLEDGED_MAX
