"""Drafts of what a dialogue leaves standing: what the user chose, refused, put off, set right, and what was found out. Pure."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memd.distill import sentences
from memd.distill.dialogue import acts, findings, statements, wishes, withdrawing, wording
from memd.distill.dialogue.acts import Act, ActKind, ListedAnswer
from memd.distill.dialogue.chores import is_chore
from memd.distill.dialogue.corrections import find_granted_norm
from memd.distill.dialogue.findings import AgentFinding
from memd.distill.dialogue.offers import strip_markup
from memd.distill.dialogue.specifications import Specification, find_specification
from memd.distill.dialogue.spoken import read_spoken
from memd.distill.dialogue.statements import Reaction, Standing
from memd.distill.episodes import AskedQuestion, EpisodeContext, Exchange, Refusal, Story, Utterance
from memd.models import Authority, Draft, Kind, Source

_USER_DRAFTS_MAX, _QUESTIONS_MAX, _FINDINGS_MAX = 3, 16, 2
"""Drafts of one turn. Questions that the agent asks with a tool come in long rows, each with a decision."""
_LISTED_CHARACTERS = 60
"""Of a question in the title of several answers."""
_DAY_MS = 86_400_000
_PROMPT_CHARACTERS = 600
_ASKED_CHARACTERS = 300
_CALL_CHARACTERS = 40
_OUTCOME_CHARACTERS = 400
_CONFIDENCE = {
    ActKind.CHOSEN: 0.85,
    ActKind.AGREED: 0.6,
    ActKind.DECLINED: 0.7,
    ActKind.DEFERRED: 0.6,
}


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn with what was said around it."""

    story: Story
    context: EpisodeContext
    before: tuple[Exchange, ...]
    after: tuple[Exchange, ...]
    states: tuple[AgentFinding, ...]
    """How things are after its work, in the agent's words."""

    @property
    def state(self) -> str:
        """The first of these as a title; empty if there is none."""
        return findings.name_claim(self.states[0].claim) if self.states else ""


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a draft says, and by which rule. `quote` is its speaker's sentence; empty for all that he said."""

    kind: Kind
    rule: str
    title: str
    confidence: float
    quote: str = ""


def draft_dialogue(
    story: Story, context: EpisodeContext, key: str, known: Sequence[Draft]
) -> list[Draft]:
    """What an episode leaves standing beyond the decisions, rules and retractions that are `known` already."""
    found = findings.find_findings(story)
    states = tuple(one for one in found if one.rule == "found:state")
    turn = _Turn(story, context, context.before.get(key, ()), context.after.get(key, ()), states)
    answered = [d for asked in story.questions for d in _draft_question(asked, turn)]
    said = [draft for draft in _draft_users(turn) if draft.title]
    prompted = {one.event_id for one in story.prompts}
    if not any(one.sources[0].event_id in prompted for one in (*answered, *said, *known)):
        said += _draft_granted(turn)
    users = _drop_known([*answered[:_QUESTIONS_MAX], *said], known)
    users = users[: len(answered[:_QUESTIONS_MAX]) + _USER_DRAFTS_MAX]
    told = {draft.title for draft in users}
    lasting = [one for one in found if one not in states]  # a state is the outcome of its turn
    agents = [draft for one in lasting if (draft := _draft_finding(one, turn)).title not in told]
    drafts = [*users, *agents[:_FINDINGS_MAX]]
    kept = [d for d in drafts if not withdrawing.is_withdrawn(d, story.prompt, turn.after)]
    return [replace(draft, slot=f"standing/{number}") for number, draft in enumerate(kept)]


def _drop_known(found: Sequence[Draft], known: Sequence[Draft]) -> list[Draft]:
    """The drafts whose sentence is not remembered already, each sentence once."""
    quoted = [source.quote for draft in known for source in draft.sources]
    kept: list[Draft] = []
    for draft in found:
        quote = draft.sources[0].quote
        if draft.rule.startswith((withdrawing.ANSWERED, statements.GONE)) or not any(
            quote in q or q in quote for q in quoted
        ):
            kept.append(draft)
            quoted.append(quote)
    return kept


def _draft_users(turn: _Turn) -> Iterator[Draft]:
    """What the user's words leave standing: an answer first, then statements."""
    story = turn.story
    if not story.prompts:
        return
    said = story.prompts[0]
    before = [e.answer.text for e in turn.before if e.answer]
    if listed := acts.read_listed_answers(said.text, before):
        yield _draft_listed(listed, said, turn)
    act = acts.read_answer(said.text, before, turn.before[0].prompt if turn.before else "")
    if act is not None and (act.kind is not ActKind.AGREED or story.edits):
        yield _draft_act(act, said, turn)
    reaction = Reaction(bool(story.edits), wording.read_first_words(story), bool(turn.before))
    heard = "\n".join(e.answer.text for e in turn.before[:1] if e.answer)
    for utterance in story.prompts:
        if reaction.does_work and (spec := find_specification(utterance.text)):
            yield _draft_specification(spec, utterance, turn)
            continue
        for one in statements.find_standing(read_spoken(utterance.text, heard), reaction):
            yield _draft_standing(one, utterance, turn)
    for refusal in story.refusals:
        yield from _draft_refusal(refusal, reaction, heard, turn)


def _draft_granted(turn: _Turn) -> Iterator[Draft]:
    """How something shall be, as the agent put it when it granted the user's objection and then did so."""
    story = turn.story
    if not (story.prompts and turn.before and story.edits):
        return
    texts, answer = tuple(said.text for said in story.texts), next(iter(story.answers[-1:]), None)
    objection, norm = find_granted_norm(Exchange(story.prompt, answer, texts=texts))
    if norm:
        lines = [
            f"User: “{wording.clip_line(story.prompt, _PROMPT_CHARACTERS)}”",
            *wording.quote_outcome(story),
        ]
        title = sentences.format_title(norm, wording.TITLE_CHARACTERS)
        claim = _Claim(Kind.DECISION, "said:granted", title, 0.6, objection)
        yield _make(turn, story.prompts[0], claim, lines)


def _draft_refusal(
    refusal: Refusal, reaction: Reaction, heard: str, turn: _Turn
) -> Iterator[Draft]:
    """What the user said instead of letting a call run: statements, else what he wants instead."""
    said = refusal.said
    found = statements.find_standing(read_spoken(said.text, heard), reaction) if said.text else []
    for one in found:
        yield _draft_standing(one, said, turn)
    instead = wishes.find_objection(said.text) if not found else ""
    if not instead:
        return
    call = describe_call(refusal)
    title = sentences.format_title(f"{instead} – refused: {call}", wording.TITLE_CHARACTERS)
    lines = [
        f"User: “{wording.clip_line(said.text, _PROMPT_CHARACTERS)}”",
        f"The user refused: {call}",
        *wording.quote_outcome(turn.story),
    ]
    yield _make(turn, said, _Claim(Kind.DECISION, "said:refused", title, 0.65, said.text), lines)


def describe_call(refusal: Refusal) -> str:
    """A refused call in a few words: `Edit api.py`, `Bash git push`."""
    given = refusal.tool_input
    named = str(given.get("file_path") or given.get("command") or given.get("url") or "")
    if "file_path" in given:
        named = posixpath.basename(named)
    return f"{refusal.tool} {wording.clip_line(named, _CALL_CHARACTERS)}".strip()


def _draft_question(asked: AskedQuestion, turn: _Turn) -> Iterator[Draft]:
    """The user's choice among the options of a question that the agent asked with a tool."""
    offered = {label.lower(): text for label, text in asked.options}
    act = acts.read_tool_answer(asked.asked.text, asked.answer.text, offered)
    if act is None:
        return
    options = "; ".join(f"{label}: {text}" if text else label for label, text in asked.options)
    lines = [
        f"{wording.LABELS[act.kind]}: {act.details or act.subject}",
        f"Assistant asked: “{asked.asked.text}”",
        f"User: “{wording.clip_line(asked.answer.text, _PROMPT_CHARACTERS)}”",
        f"Assistant had offered: “{wording.clip_line(strip_markup(options), _PROMPT_CHARACTERS)}”",
    ]
    title = wording.title_act(act, asked.answer.text, (), "")
    claim = _Claim(Kind.DECISION, "answer:chosen", title, _CONFIDENCE[act.kind])
    draft = _make(turn, asked.answer, claim, lines)
    asking = Source(
        asked.asked.event_id, sentences.clip_quote(asked.asked.text), Authority.AGENT_CALL
    )
    yield replace(draft, sources=(draft.sources[0], asking))


def _draft_listed(listed: Sequence[ListedAnswer], said: Utterance, turn: _Turn) -> Draft:
    """The user's answers to a numbered list of questions, as one decision."""
    pairs = [(strip_markup(one.question), one.answer) for one in listed]
    lines = [
        *(f"{question} → {answer}" for question, answer in pairs),
        f"User: “{wording.clip_line(said.text, _PROMPT_CHARACTERS)}”",
        *wording.quote_outcome(turn.story),
    ]
    longest = max(pairs, key=lambda pair: len(pair[1]))
    ordered = (longest, *(pair for pair in pairs if pair is not longest))
    told = "; ".join(
        f"{wording.clip_line(q, _LISTED_CHARACTERS)} → {a}" for q, a in ordered if not is_chore(q)
    )
    title = sentences.format_title(f"Answered: {told}", wording.TITLE_CHARACTERS)
    return _make(turn, said, _Claim(Kind.DECISION, "answer:listed", title, 0.7), lines)


def _draft_specification(spec: Specification, said: Utterance, turn: _Turn) -> Draft:
    """How something shall be, in several points, as one decision."""
    intro = sentences.strip_politeness(spec.intro).rstrip(": ")
    told = f"{intro}: {'; '.join(spec.items)}" if intro else "; ".join(spec.items)
    title = sentences.format_title(told, wording.TITLE_CHARACTERS)
    lines = [f"User: “{said.text.strip()}”", *wording.quote_outcome(turn.story)]
    return _make(turn, said, _Claim(Kind.DECISION, "said:specification", title, 0.6), lines)


def _draft_act(act: Act, said: Utterance, turn: _Turn) -> Draft:
    told = f"{act.details or act.subject}{f' – {act.restriction}' if act.restriction else ''}"
    lines = [
        f"{wording.LABELS[act.kind]}: {told}",
        *([f"Assistant asked: “{act.question}”"] if act.question else []),
        f"User: “{wording.clip_line(said.text, _PROMPT_CHARACTERS)}”",
        *wording.quote_before(turn.before),
        *wording.quote_outcome(turn.story),
    ]
    kind = Kind.TASK if act.kind is ActKind.DEFERRED else Kind.DECISION
    title = wording.title_act(act, said.text, turn.before, turn.state)
    rule = f"{withdrawing.ANSWERED}{act.kind.name.lower()}"
    draft = _make(turn, said, _Claim(kind, rule, title, _CONFIDENCE[act.kind]), lines)
    heard = [e.answer for e in turn.before[:1] if e.answer]
    offered = (
        Source(
            u.event_id,
            sentences.clip_quote(act.details or act.question or act.subject),
            u.authority,
        )
        for u in heard
    )
    return replace(draft, sources=(*draft.sources, *offered))


def _draft_standing(one: Standing, said: Utterance, turn: _Turn) -> Draft:
    first = wording.read_first_words(turn.story)
    title = wording.title_statement(
        one.title, first, turn.state if one.rule.startswith(withdrawing.ASKED) else ""
    )
    title = _name_standing(one, title, turn)
    is_part = len(said.text) > len(one.sentence.text) + 8
    lines = [
        f"User: “{one.sentence.text}”",
        *([f"In: “{wording.clip_line(said.text, _PROMPT_CHARACTERS)}”"] if is_part else []),
        *wording.quote_outcome(turn.story),
        *wording.quote_before(turn.before),
    ]
    if one.rule == statements.TO_BE_CONTINUED and (outcome := _find_outcome(turn)):
        title = sentences.format_title(
            f"To be continued: {sentences.make_title(outcome)}", wording.TITLE_CHARACTERS
        )
        lines.insert(
            0, f"Left open: {wording.clip_line(strip_markup(outcome), _OUTCOME_CHARACTERS)}"
        )
    return _make(
        turn, said, _Claim(one.kind, one.rule, title, one.confidence, one.sentence.text), lines
    )


def _name_standing(one: Standing, title: str, turn: _Turn) -> str:
    """The title with what it is about; empty if it points at something that nobody named."""
    is_pointing = wording.points_only(one.title)
    if one.rule == "said:later":
        what = wording.find_put_off(one.title, wording.read_first_words(turn.story))
        title = f"{wording.LABELS[ActKind.DEFERRED]}: {what}" if what else ""
    elif one.rule == "said:habit" and is_pointing:
        about = one.context if not wording.is_vague(one.context) else ""
        about = about or wording.find_subject(turn.before)
        title = f"{one.title} – {about}" if about else ""
    elif one.rule == statements.DISLIKE and len(one.thing.split()) == 1:
        about = wording.find_mention(one.thing, turn.before) or wording.find_subject(turn.before)
        title = f"{title} – {about}" if about else ""
    else:
        title = wording.add_subject(title, turn.before)
    return sentences.format_title(title, wording.TITLE_CHARACTERS) if title else ""


def _find_outcome(turn: _Turn) -> str:
    """The agent's closing message, or that of the next turn if this one has none."""
    later = (e.answer.text for e in turn.after[:1] if e.answer)
    return turn.story.answer or next(later, "")


def _draft_finding(one: AgentFinding, turn: _Turn) -> Draft:
    title = sentences.format_title(
        findings.name_claim(one.claim).rstrip(":!"), wording.TITLE_CHARACTERS
    )
    lines = [
        f"Assistant: “{one.passage}”",
        f"User asked: “{wording.clip_line(turn.story.prompt, _ASKED_CHARACTERS)}”",
    ]
    if turn.story.answer and one.said not in turn.story.answers:
        lines.append(
            f"Assistant then: “{wording.clip_line(strip_markup(turn.story.answer), _OUTCOME_CHARACTERS)}”"
        )
    return _make(
        turn, one.said, _Claim(Kind.FACT, one.rule, title, one.confidence, one.claim), lines
    )


def _make(turn: _Turn, said: Utterance, claim: _Claim, lines: Sequence[str]) -> Draft:
    body = sentences.clip("\n".join(lines), turn.context.body_characters)
    days = turn.context.task_days if claim.kind is Kind.TASK else 0
    return Draft(
        slot="", kind=claim.kind, title=claim.title, body=body, at=said.at, rule=claim.rule,
        sources=(Source(said.event_id, sentences.clip_quote(claim.quote or said.text), said.authority),),
        authority=said.authority, confidence=claim.confidence, quality=sentences.score_quality(body),
        expires_at=said.at + days * _DAY_MS if days else None,
    )  # fmt: skip
