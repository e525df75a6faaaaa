"""What `it` and `them` of a rule mean: what the words before it were about. Pure.

`The snapshot tests broke again. From now on regenerate them with make` is the rule `regenerate the snapshot tests with
make`; that they broke is over, and no part of it.
"""

import re

from memd.patterns import compile_lazily
from memd.text import is_stop_word, one_line, words

_BEFORE_CHARACTERS = 60
_AFTER_POINTER = r"(?=\s*(?:$|[.,;!]|(?:with|in|into|by|under|to|from|before|after|when|until|first|again|every|each|as|at|on|for|without|via|through|yourself|three|twice|once|always|from|going)\b))"
_POINTER = rf"(?P<it>it|them|(?:this|that|these|those){_AFTER_POINTER})\b"
_POINTS = (
    compile_lazily(
        rf"(?:(?:please|always|never|ever|only|just|don['’]?t|do not|you|we|must|should)\s+)*[\w'’-]+\s+{_POINTER}",
        re.IGNORECASE,
    ),
    compile_lazily(
        r"(?!(?:if|when|whenever|for|before|after|every|each)\b).*\s(?:in|into|on|onto|for|with|to|of|from|around|against)\s+(?P<it>it|them)(?=\W*$)",
        re.IGNORECASE,
    ),
)
_PLURALS = frozenset(("them", "these", "those"))
_PEOPLE = frozenset(
    words("i you we he she it they this that these those who there nobody somebody")
)
_EXISTS = compile_lazily(
    r"^(?:there(?:'s|’s| is| are| was| were)|i (?:see|have|get|found)|we (?:have|get))\s+(?!to\b)(?=\S)",
    re.IGNORECASE,
)
_LEAD = compile_lazily(
    r"^\W*(?:(?:and|but|so|ok(?:ay)?|btw|fyi|hm+|also|now|again|look|sorry|please note(?: that)?|note(?: that)?)\b[\s,:]*)*",
    re.IGNORECASE,
)
_STATE = compile_lazily(
    r"\s+(?:(?:still|just|again|now|all|both|always|often|never|sometimes|already)\s+)*(?:is|are|was|were|'s|isn'?t|aren'?t|wasn'?t|weren'?t|has|have|had|fails?|failed|breaks?|broke|crash(?:es|ed)?|keeps?|kept|takes?|took"
    r"|does|did|don'?t|doesn'?t|didn'?t|do|shows?|says?|needs?|hangs?|hung|times?|timed|ran|runs?|can(?:'?t|not)?|won'?t|will|looks?|looked|got|gets?|goes|went|lacks?|contains?|used?|uses|\w{3,}ed)\b.*|\s*[:,;(–—].*|\s+-\s.*|[.!]+$",
    re.IGNORECASE | re.DOTALL,
)  # dashes as people type them
_HEAD_END = compile_lazily(r"\s+(?:in|of|for|from|on|with|to|at|under|by)\s", re.IGNORECASE)
_NOUN_WORDS_MAX, _TELLING_WORDS_MIN = 7, 3


def resolve(rule: str, before: str) -> str:
    """A rule with the noun that its pronoun means, from the words before it; as it is if it has none.

    Where those words name no such noun, they stand after the rule.
    """
    match = next(filter(None, (pattern.match(rule) for pattern in _POINTS)), None)
    said = _LEAD.sub("", before).strip()
    if match is None or not said:
        return rule
    noun = _find_noun(said, is_plural=match["it"].lower() in _PLURALS)
    if noun:
        return rule[: match.start("it")] + noun + rule[match.end("it") :]
    if sum(not is_stop_word(word) for word in words(said)) < _TELLING_WORDS_MIN:
        return rule
    return f"{rule.rstrip(' .!')} – {one_line(said.rstrip(' .!,;:–—-'), _BEFORE_CHARACTERS)}"  # dashes as people type them


def _find_noun(said: str, *, is_plural: bool) -> str:
    """What a sentence is about, by its beginning; empty if that is a person or of another number."""
    noun = _STATE.sub("", _EXISTS.sub("", said), count=1).strip()
    named = words(noun)
    if (
        not named
        or len(noun.split()) > _NOUN_WORDS_MAX
        or named[0].lower() in _PEOPLE - {"this", "that", "these", "those"}
    ):
        return ""
    if all(map(is_stop_word, named)) or (len(named) == 1 and named[0].lower() in _PEOPLE):
        return ""
    head = _HEAD_END.split(noun, maxsplit=1)[0].rstrip("`'\"")
    if is_plural != (head.lower().endswith("s") and not head.lower().endswith(("ss", "us", "is"))):
        return ""
    return (
        noun if noun[:1].islower() or not noun.split()[0].istitle() else noun[0].lower() + noun[1:]
    )
