"""Say in words how a memory was made: the rule that wrote it; of an agent's note also which agent, where and when."""

from collections.abc import Mapping

from memd.belief.notes import split_note
from memd.models import NOTED, REMEMBERED, Session, Summary
from memd.time_expressions import format_time

_RULES: Mapping[str, str] = {
    "turn": "the whole turn: what was asked, answered, changed and run",
    "sync": "what all devices together say",
    "compaction": "the client's own summary when it compacted the session",
    "same-command": "a command failed, something was changed, and the same command passed",
    "wider-command": "a check failed, something was changed, and a wider check that contains it passed",
    "same-tool": "a check failed, something was changed, and another run of its tool passed",
    "stated-fix": "a check failed, something was changed, and the agent said that it is fixed",
    "unmended": "a check failed, and no run of it in its turn is known to have passed",
    "mended": "the newer one tells what mended it",
    "same-problem": "the same error happened again",
    "noted": "the agent noted it, and the user's own words prove it",
    "stood": "the agent proposed it, and the user let it stand",
    "replaced": "its speaker said that it replaces the older one",
    "task-done": "a later turn did the task",
    "chosen-again": "the user answered the same question again in that session",
    "other-way": "a call was refused, and another one worked instead",
    "silenced": "a check failed, and it passed after it was skipped, removed or set aside",
    "rewritten": "a test failed, and another one was written in its place",
    "suppressed": "a check failed, and it passed after its finding was suppressed",
    "disputed": "a check failed and passed, but somebody said that it is not fixed",
    "disputed-later": "somebody said in a later turn that it is not fixed",
    "remembered": "a user or an agent asked to remember it",
    "imported": "it was imported",
    "imported:file": "read from a file",
    "decision": "a sentence that decides something",
    "instruction": "the user said how to do things from now on",
    "preference": "the user said what they prefer",
    "fact": "the user stated a fact to keep in mind",
    "task": "the user named something to be done later",
    "passed-later": "the same check passed in a later turn",
    "stated-reversal": "the newer one says in words that it replaces the choice",
    "other-choice": "two decisions choose differently about the same thing",
    "repeat": "the same was said again",
    "said-again": "the same was said again",
    "statement": "a statement in the one file names the other",
    "merged": "near-duplicates that each said something of their own, merged into one",
    "near-duplicate": "nearly the same text, and no guard objected",
    "restatement": "the same words but for case, order, punctuation or filler",
    "changed-value": "the newer one gives the same thing another value",
    "topic-key": "a new value under the same topic key",
    "project-merge": "two projects were merged and hold the same",
    "read-again": "the file that it was read from no longer says it, or says otherwise",
    "vault-import": "it was like this in the vault that it was imported from",
    "edited": "the user wrote it anew by hand",
    "judged": "a user or an agent judged the two",
    "judged-twin": "what says the same was judged to be replaced",
    "said-against": "its speaker said that it replaces the older one, which the user's later words turn",
    "asked": "an agent asks the user to judge the two",
    "said:": "the user said it in a message",
    "asked:": "the user asked for it in a message",
    "answer:": "the user answered what the agent had asked or proposed",
    "found:": "the agent found it out and said so",
}
"""Rule → its meaning; for any other rule, that of the part up to the colon, with the colon or without."""


def describe_rule(rule: str) -> str:
    """Describe a rule in words; empty for an unknown one."""
    family, colon, _ = rule.partition(":")
    return _RULES.get(rule) or _RULES.get(family + colon) or _RULES.get(family, "")


def describe_making(one: Summary, session: Session | None) -> str:
    """Describe the rule that made a memory; of what an agent noted also which agent, in which session, and when."""
    family, told = one.rule.partition(":")[0], describe_rule(one.rule)
    if one.source != "agent" or family not in {REMEMBERED, NOTED}:
        return told
    who, where = "an agent", "a session that its client did not name"
    if session is not None:
        title = f" “{session.title}”" if session.title else ""
        who, where = f"an agent ({session.client})", f"session{title} {session.key}"
    made = f"{who} noted it in {where}, {format_time(one.created_at)}"
    note = split_note(one.body)
    if family == NOTED:
        return f"{made}, and the user's own words prove it"
    has_basis = note.said or note.quoted or note.stood or note.seen or note.line
    return made if has_basis else f"{made}, without a quote"
