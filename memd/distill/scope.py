"""Where a decision or a rule holds, as its speaker says it: everywhere, for tests, for some files, for now. Pure.

A memory holds in its project. What its speaker says beyond that is a tag of it, `scope:tests`, so that it is exported,
shown and can be searched by.
"""

import re

from memd.belief.scopes import OF_BRANCH, PREFIX
from memd.models import Authority, Draft, Kind

SCOPED_KINDS = frozenset({Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE})
_FILES_MAX = 2
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
    found += [f"file:{name}" for name in dict.fromkeys(_FILE.findall(said))][:_FILES_MAX]
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
