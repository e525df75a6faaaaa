"""What later words or work end: a rule that the user takes back, a task that was done, a choice that is made anew."""

import re
from collections.abc import Iterator, Sequence

from memd.belief import supersede
from memd.distill import text as sentences
from memd.distill.assertions import DOUBTS, HERE
from memd.distill.episodes import EpisodeContext, Story
from memd.distill.speech.own_words import read_own_sentences
from memd.distill.speech.vetoes import select_assertions
from memd.models import Authority, Draft, Kind, Session, Source, Summary
from memd.patterns import compile_lazily
from memd.store import judgments, links, summaries
from memd.store.database import Connection
from memd.text import content_stems, stem, words

# ── Rules that are taken back ────────────────────────────────────────────────────────────────────

RETRACTED = "retracted"
"""The rule of a note that ends a rule, and of the supersession by it."""
_PER_TURN_MAX = 8
_NAMED_MIN = 0.5
"""Share of a rule's stems that a shorter retraction must name."""
_NO_LONGER = compile_lazily(
    r"(?:(?:ok|okay|and|but|so|also|please|from now on|by the way|btw)[\s,]+)*(?:"
    r"(?:i|we) no longer (?:want|need|expect|require|ask) (?:you|us|agents) to\s+"
    r"|i (?:don'?t|do not|don’t) (?:want|need|expect) you to\s+(?=.*\bany ?more\b)"
    r"|(?:you|we) no longer (?:need to|have to|must|should)\s+"
    r"|(?:you|we) (?:don'?t|do not|don’t|needn'?t) (?:have to |need to |have |need )?(?=.*\bany ?more\b)"
    r"|(?:there(?:'s| is) )?no (?:more )?need to\s+(?=.*\b(?:any ?more|any longer)\b)"
    r"|(?:forget|drop|ignore|scrap|cancel|revoke|lift) (?:the|my|our|that) (?:old |earlier )?(?:rule|instruction|request)\s+(?:to|that|about|of)\s+(?:you (?:must|should) )?"
    r"|stop (?=(?:always )?\w+ing\b)"
    r")(?P<rule>[^,;.!]+)",
    re.IGNORECASE,
)
_VOID = compile_lazily(
    r"(?:the|my|our|that) (?:old )?(?:rule|instruction)\s+(?:to|that|about|of)\s+(?P<rule>[^,;.!]+?)\s+(?:no longer (?:applies|holds|counts)"
    r"|is (?:void|obsolete|gone|off|cancelled|lifted|no longer valid))\b",
    re.IGNORECASE,
)
_CLAUSE_START = compile_lazily(
    r"[,;:]\s+|\s[–—-]{1,2}\s|\s(?=(?:and|but|so)\s)", re.IGNORECASE
)  # dashes as people type them
_NOT_SAID_OUTRIGHT = compile_lazily(
    r"\b(?:if|when|whenever|unless|until|once|while|whether|in case|as long as|provided|says?|said|told|tells?|claim\w*|thinks?|thought|believe\w*"
    r"|suggest\w*|wrote|writes|insist\w*|asked|according to|suppose|imagine|pretend|would|could|might|maybe|perhaps|not|never|n't)\b",
    re.IGNORECASE,
)
"""What stands before a clause that is then a condition's, somebody else's or no statement."""
_ANY_MORE = compile_lazily(r"\b(?:any ?more|any longer|from now on|always|now)\b", re.IGNORECASE)
_FORBIDS = compile_lazily(r"\b(?:never|not|don'?t|do not|no)\b", re.IGNORECASE)
_EMPTY_STEMS = frozenset(map(stem, ("always", "never", "ever", "please", "from", "now", "future", "must", "should", "anymore", "want", "need")))  # fmt: skip


def draft_retractions(story: Story, context: EpisodeContext) -> list[Draft]:
    """Return a note for each sentence by which the user ends a rule, at most eight."""
    found: list[Draft] = []
    for said in story.prompts:
        for sentence in select_assertions(read_own_sentences(said.text)):
            match = _find_retraction(sentence.said)
            is_open = DOUBTS.search(sentence.said) or HERE.search(sentence.said)
            if match is None or is_open or len(found) == _PER_TURN_MAX:
                continue
            start, end = (sentence.start + at for at in match.span("rule"))
            rule = " ".join(_ANY_MORE.sub(" ", sentence.text[start:end]).split())
            body = sentences.clip(f"User: “{sentence.text}”", context.body_characters)
            found.append(Draft(
                slot=f"retraction/{len(found)}", kind=Kind.NOTE, title=sentences.format_title(f"No longer: {rule}"),
                body=body, at=said.at, rule=RETRACTED,
                sources=(Source(said.event_id, sentences.clip_quote(sentence.text), said.authority),),
                authority=said.authority, confidence=0.8, quality=sentences.score_quality(body),
            ))  # fmt: skip
    return found


def _find_retraction(said: str) -> re.Match[str] | None:
    """The first clause that ends a rule, if all before it leave it to be what it looks like."""
    for start in (0, *(match.end() for match in _CLAUSE_START.finditer(said))):
        if start and _NOT_SAID_OUTRIGHT.search(said[:start]):
            return None
        if match := _NO_LONGER.match(said, start) or _VOID.match(said, start):
            return match
    return None


def related_stems(draft: Draft) -> frozenset[str]:
    """The stems of what a retraction takes back."""
    return _rule_stems(draft.title.partition(":")[2])


def pick_ended(draft: Draft, rules: Sequence[Summary]) -> list[Summary]:
    """The rules that say just what is taken back, else the only one that says a little more."""
    named, stems = draft.title.partition(":")[2], related_stems(draft)
    same = [r for r in rules if r.at <= draft.at and _forbids(r.title) == _forbids(named)]
    exact = [one for one in same if _rule_stems(one.title) == stems]
    return exact or _find_only_longer(same, stems)


def _find_only_longer(rules: Sequence[Summary], stems: frozenset[str]) -> list[Summary]:
    longer = [one for one in rules if stems < _rule_stems(one.title)]
    if len(longer) != 1 or len(stems) < _NAMED_MIN * len(_rule_stems(longer[0].title)):
        return []
    return longer


def _rule_stems(text: str) -> frozenset[str]:
    """What a rule is about, as stems. A gerund has the stem of its verb."""
    return frozenset(content_stems(text)) - _EMPTY_STEMS


def _forbids(text: str) -> bool:
    return bool(words(text)) and _FORBIDS.search(text) is not None


_RULE_KINDS = (Kind.INSTRUCTION, Kind.PREFERENCE)
_RULES_EXAMINED_MAX = 100


def find_ended_rules(
    tx: Connection, drafts: Sequence[Draft], project_id: int
) -> dict[str, list[Summary]]:
    """The live rules of a project that each retraction among these drafts ends, by its slot."""
    return {d.slot: _find_ended(tx, d, project_id) for d in drafts if d.rule == RETRACTED}


def end_rules(tx: Connection, note_id: int, draft: Draft, ended: Sequence[Summary]) -> None:
    """Let a stored retraction hide the rules that it ends, as far as its speaker may."""
    for rule in ended:
        if judgments.stance_between(tx, note_id, rule.id) is None:
            reason = f"it was taken back: {draft.body}"
            supersede.hide(tx, note_id, rule.id, RETRACTED, reason, draft.at)


def _find_ended(tx: Connection, draft: Draft, project_id: int) -> list[Summary]:
    stems = related_stems(draft)
    if not stems:
        return []
    ids = [
        number
        for kind in _RULE_KINDS
        for number in summaries.ids_sharing_keys(
            tx, project_id, kind, stems, limit=_RULES_EXAMINED_MAX
        )
    ]
    return pick_ended(draft, list(summaries.summaries_by_ids(tx, ids).values()))


# ── Tasks that were done ─────────────────────────────────────────────────────────────────────────

TASK_DONE = "task-done"
"""The rule of the supersession of a task by the turn that did it."""
_DONE_KINDS = (Kind.CHANGE, Kind.FIX)
_SHARED_MIN, _SHARED_PART = 3, 0.6
"""Stems of a task that the outcome of a turn, or what was asked for in it, must have."""
_TASKS_EXAMINED_MAX = 50
_SAID = re.compile(r"^User: “([^”]{20,})”", re.MULTILINE)
_LABEL = re.compile(r"^(?:put off|to be continued|to-?do):\s+", re.IGNORECASE)


def end_done_tasks(tx: Connection, turn_id: int, draft: Draft, project_id: int) -> int:
    """Let a stored turn hide the earlier tasks of its project that it has done; how many."""
    if draft.slot != "turn" or draft.kind not in _DONE_KINDS:
        return 0
    asked = draft.body.partition("\n")[0]
    done = frozenset(content_stems(f"{draft.title} {asked}"))
    ids = summaries.ids_sharing_keys(tx, project_id, Kind.TASK, done, limit=_TASKS_EXAMINED_MAX)
    past = {one.older_id for one in links.supersessions_of(tx, turn_id)}
    turn = summaries.get_summary(tx, turn_id)
    count = 0
    for task in summaries.summaries_by_ids(tx, ids).values():
        # What a turn leaves open it has not done, though its outcome says the same.
        is_own = turn is not None and task.episode == turn.episode
        # Of a prompt that was broken off, the turn after it tells what was asked.
        is_own = is_own or any(said in asked for said in _SAID.findall(task.body))
        is_past = task.at < draft.at and not is_own
        if not is_past or task.id in past or not _is_done(task.title, done):
            continue
        if judgments.stance_between(tx, turn_id, task.id) is None:
            reason = f"a later turn did it: {draft.title}"
            # The user had the turn do it, whoever words its outcome.
            hidden = supersede.hide(
                tx, turn_id, task.id, TASK_DONE, reason, draft.at, voice=Authority.USER_PROMPT
            )
            count += hidden is not None
    return count


def _is_done(task: str, done: frozenset[str]) -> bool:
    wanted = frozenset(content_stems(_LABEL.sub("", task)))
    return len(wanted & done) >= max(_SHARED_MIN, _SHARED_PART * len(wanted))


# ── Choices that are made anew ───────────────────────────────────────────────────────────────────

CHOSEN_AGAIN = "chosen-again"
"""The rule of the supersession of a choice by a later one."""
_ANSWERS = ("answer:chosen",)
_QUESTION = re.compile(r"^Assistant asked: “(.+)”$", re.MULTILINE)
_ASKED_MIN, _ASKED_SHARE = 3, 0.8
"""Stems of a question, and their share that two wordings of it have in common."""


def end_earlier_choices(tx: Connection, summary_id: int, session: Session) -> int:
    """Let the later of two answers to one question hide the earlier, whichever was stored first; how many."""
    mine = summaries.get_summary(tx, summary_id)
    if mine is None or mine.superseded_by is not None or mine.rule not in _ANSWERS:
        return 0
    others = summaries.session_summaries(tx, session.id, _ANSWERS, 0)
    return sum(_end_choice(tx, *pair) for pair in _find_pairs(mine, others))


def _find_pairs(mine: Summary, others: list[Summary]) -> Iterator[tuple[Summary, Summary]]:
    """Each (newer, older) of two answers to one question that differ."""
    asked = _question_stems(mine)
    for other in others:
        if other.at != mine.at and other.title != mine.title and _asks_the_same(asked, other):
            yield (mine, other) if mine.at > other.at else (other, mine)


def _question_stems(answer: Summary) -> frozenset[str]:
    found = _QUESTION.search(answer.body)
    return frozenset(content_stems(found[1])) if found else frozenset()


def _asks_the_same(asked: frozenset[str], other: Summary) -> bool:
    theirs = _question_stems(other)
    if min(len(asked), len(theirs)) < _ASKED_MIN:
        return False
    return len(asked & theirs) >= _ASKED_SHARE * len(asked | theirs)


def _end_choice(tx: Connection, newer: Summary, older: Summary) -> bool:
    past = {one.older_id for one in links.supersessions_of(tx, newer.id)}
    if older.id in past or judgments.stance_between(tx, newer.id, older.id) is not None:
        return False  # what a person undid stays undone
    reason = f"the same question was answered again: {newer.title}"
    return supersede.hide(tx, newer.id, older.id, CHOSEN_AGAIN, reason, newer.at) is not None
