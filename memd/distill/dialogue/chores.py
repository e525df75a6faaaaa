"""Work of the moment: what is done and over, so that agreeing to it, or refusing it, decides nothing. Pure."""

import re

from memd.text import words

_VERBS = frozenset(
    """commit push pull merge rebase run rerun re-run verify check recheck validate explain show summarize summarise review look investigate
    debug continue proceed go start restart stop wait retry try document describe open close create draft stage unstage tag lint format fmt build
    rebuild install reinstall upgrade clean tidy dig trace search find read list print tweak adjust anything help walk tell clarify double-check inspect
    explore analyze analyse identify plan post reply comment file generate regenerate execute finish fix repair correct resolve address squash
    sort track note write prepare test benchmark measure profile compare elaborate report send share copy paste save apply get take see know ask
    provide give delete monitor confirm bump release publish ship deploy cherry-pick amend push commit""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""Work on the work: at its end, nothing of it is left to be remembered but its result."""
_OBJECTS = re.compile(
    r"\b(?:tests?|specs?|coverage|docs?|documentation|readme|changelog|comments?|docstrings?|pull requests?|prs?|commits?|branch(?:es)?|issues?|tickets?|changes|"
    r"fix(?:es)?|bugs?|errors?|warnings?|lint(?:er)?|summary|report|diagram|diff|plan|script|logs?|output|results?|everything|anything|something|other (?:files?|places?)|rest|next|"
    r"these|them|those|it now|this now|notes?|help texts?|messages?|wording|typos?)\b",
    re.IGNORECASE,
)
_FILLERS = frozenset(
    "me to also now then just go ahead and please quickly first actually the a an i we you should can could".split()  # noqa: SIM905
)
_OBJECT_VERBS = frozenset("add update extend improve expand include make do put start implement remove rename move refactor clean handle".split())  # noqa: SIM905  # fmt: skip
_NEAR_WORDS = 6


def is_chore(work: str) -> bool:
    """Whether a proposal or an order is of routine work: `commit this`, `also add a test`, `look into it`."""
    said = [word.lower() for word in words(work)]
    while said and said[0] in _FILLERS:
        said.pop(0)
    if not said:
        return True
    if said[0] in _VERBS:
        return True
    near = " ".join(said[1:_NEAR_WORDS])
    return said[0] in _OBJECT_VERBS and _OBJECTS.search(near) is not None
