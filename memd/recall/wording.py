"""What the names of rules mean, in words: who or what wrote a memory, an edge or a supersession. Pure."""

from collections.abc import Mapping

_RULES: Mapping[str, str] = {
    "turn": "the whole turn: what was asked, answered, changed and run",
    "compaction": "the client's own summary when it compacted the session",
    "same-command": "a command failed, something was changed, and the same command passed",
    "same-tool": "a check failed, something was changed, and another run of its tool passed",
    "stated-fix": "a check failed, something was changed, and the agent said that it is fixed",
    "unmended": "a check failed and nothing in its turn mended it",
    "remembered": "somebody asked to remember it",
    "remembered:untitled": "somebody asked to remember it",
    "imported": "brought by an import",
    "imported:file": "read from a file",
    "decision:stated": "a sentence announces a decision",
    "decision:changed-mind": "somebody says that they changed their mind",
    "decision:decided": "a sentence says that it was decided or agreed",
    "decision:chose": "a sentence says what was chosen, over what or why",
    "decision:no-longer": "a sentence says what is no longer done",
    "decision:switched": "a sentence says what was switched from and to",
    "decision:rather-than": "a sentence says what is done rather than something else",
    "decision:going-with": "a sentence says what to go with",
    "passed-later": "the same check passed in a later turn",
    "stated-reversal": "the newer one says in words that it replaces the choice",
    "other-choice": "two decisions choose differently about the same thing",
    "repeat": "the same was said again",
    "statement": "a statement in the one file names the other",
    "near-duplicate": "nearly the same text, and no guard objected",
    "restatement": "the same words but for case, order, punctuation or filler",
    "topic-key": "a new value under the same topic key",
    "project-merge": "two projects were merged and hold the same",
    "read-again": "the file that it was read from says it no longer, or otherwise",
    "vault-import": "so it was in the vault that it was imported from",
    "judged": "somebody judged the two",
}
_PREFIXES: Mapping[str, str] = {
    "decision:": "a sentence that decides something",
    "instruction:": "the user told how to do things from now on",
    "preference:": "the user said what they prefer",
    "fact:": "the user told a fact to keep in mind",
    "task:": "the user named something to be done later",
    "imported": "brought by an import",
}


def of_rule(rule: str) -> str:
    """What this rule means; empty for one that nobody put into words."""
    if rule in _RULES:
        return _RULES[rule]
    return next((said for start, said in _PREFIXES.items() if rule.startswith(start)), "")
