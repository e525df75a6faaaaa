"""Name a turn by its outcome: the statement that tells most of what it is about. Pure.

The candidates are the statements of the closing message, commit subjects, titles of pull requests, plans, the client's
own title, and what was asked, as the last resort. Each is freed of the words that only lead up to it, and gets a
score by what it tells; the best one gets its subject in front if it does not name it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from memd.distill import sentences
from memd.distill.outcome.forms import (
    BEFORE,
    close_end,
    has_pronoun,
    is_aside,
    is_order,
    points_back,
    rate_for_work,
    rate_form,
)
from memd.distill.outcome.salience import Salience, find_names, tells_nothing
from memd.distill.outcome.statements import Statement, strip_markup
from memd.distill.speech import verbs
from memd.patterns import compile_lazily
from memd.text import content_stems, is_stop_word, one_line, stem, words

TITLE_CHARACTERS = 100
_CUT_MIN = 40
_LEAD_CHARACTERS = 60
_FEW_ITEMS = 2
_HEAD_WORDS_MIN = 2
_NAME_WORDS_MAX = 3
_TOPIC_MAX = 40
_RUN_WORDS = 3
_TYPED_WORDS = 60
"""Words of a prompt that is typed rather than pasted."""
_FEW_WORDS = 8
"""Words of a prompt that has hardly one that it is not about."""
_WORD_MIN = 3
_NAME_BONUS = 0.3
_PROMINENT_MIN = 1.5
"""The weight of a word of the prompt that the answer comes back to, and of one that the files or earlier prompts have, too."""
_COMMIT_NUMBER = compile_lazily(
    r"^(?:commit(?:ted)?(?: as)?|pushed(?: as)?|done)?:?\s*`?\b(?=[a-f]*\d)[0-9a-f]{7,40}\b`?\s*(?:[:–—-]\s*)?(?=\S)",
    re.IGNORECASE,
)  # dashes as people type them
_LEAD_IN = compile_lazily(
    r"^(?:(?:all )?(?:done|fixed|perfect|great|excellent|awesome|wonderful|brilliant|nice|cool|complete[d]?|finished|success|updated|exactly|right|correct|yes|yep|yeah|no|nope"
    r"|ok|okay|sure|absolutely|definitely|certainly|ah|oh|aha|hmm+|sorry|apologies|thanks|thank you|interesting|understood|agreed|indeed|of course|got it|found it|i see|makes sense|fair (?:point|enough)"
    r"|(?:i )?(?:totally |fully |completely )?agreed?(?: (?:completely|entirely|fully|strongly|with (?:you|that|this)))?|that makes sense|uh[ -]?oh|oops|whoops|wow|good(?= - )|(?:good|great|nice|excellent|fair|valid|sharp|perfect)(?: \w+)? (?:question|point|catch|idea|thinking|call|news|find|observation|suggestion|instinct|approach|eye)"
    r"|you(?:'re|’re| are) (?:\w+ )?(?:right|correct)(?: to (?:ask|question|worry))?|all (?:set|good|green|tests? pass\w*|checks? pass\w*)|tests? pass\w*|my (?:mistake|apologies|bad)"
    r"|(?:here|that|this)(?:'s|’s| is) (?:the )?(?:full |quick )?(?:summary|overview|tl;?dr)|tl;?dr|short answer|(?:in )?(?:short|summary|brief|conclusion)|to (?:summari[sz]e|clarify|recap)|summary|result|answer|conclusion|bottom line|verdict|status"
    r"|note|update|key (?:point|insight|finding)s?|the (?:short|simple) answer|quick answer|good news|bad news|final answer)"
    r"\s*(?:[!.,;:✅🎉👍]+|\s[–—-]+\s)[\s!.✅🎉👍]*)+(?=\S)",
    re.IGNORECASE,
)  # dashes as people type them
_LINKING = compile_lazily(
    r"^(?:so|now|and|but|also|then|well|actually|basically|essentially|ultimately|finally|additionally|however|therefore|thus|hence|meanwhile|again|specifically|importantly|overall|currently|looks like|it looks like|it seems(?: like| that)?|it appears(?: that)?|it turns out(?: that)?|turns out(?: that)?"
    r"|(?:that|which) means(?: that)?|this means(?: that)?|as (?:expected|suspected|requested|you can see|you (?:said|noted|suggested))|i (?:think|believe|found|see|can see|noticed|confirmed|verified)(?: that)?|i'd say|in my (?:view|opinion)|to be (?:clear|honest|precise)|note that|the (?:good|bad) news is(?: that)?)\b[,:]?\s+(?=\S)",
    re.IGNORECASE,
)
_ON_WHAT_GROUNDS = compile_lazily(
    r"^(?:based on|after|looking (?:back )?at|judging by|according to|from|with|given|as of|in) [^,.:;]{3,70}[,:]\s+(?=\S)",
    re.IGNORECASE,
)
_HERE_IS = compile_lazily(
    r"^(?:here(?:'s|’s| is| are)|below (?:is|are)|this is|these are|that(?:'s|’s))\s+(?:a|an|the|my|your|what|how|all|some)?\s*(?:(?:\w+)\s+){0,2}?(?:summary|overview|breakdown|recap|list|explanation|rundown|comparison|analysis|assessment|picture|plan|proposal|design|result|results|changes|instructions|steps|guide|commands)\b(?:\s+(?:of|for|on|about|to))?\s*(?=\S)",
    re.IGNORECASE,
)
_I_DID = compile_lazily(
    r"^(?:i|we)(?:['’]ve| have|['’]d)?(?:\s+(?:now|also|just|already|successfully|then|only|first|finally))*\s+(?=(?:\w+ed|built|made|wrote|rewrote|ran|found|took|put|set|split|moved|kept|cut|left|began|got|read|sent|brought|hid|drew|chose|gave|reran|reset|undid)\b)",
    re.IGNORECASE,
)
_FIXED_BY = compile_lazily(
    r"^(?:i )?(?:fixed|solved|resolved|addressed)(?: (?:this|it|that))? by\s+(?=\w+ing\b)",
    re.IGNORECASE,
)
_NEEDLESS = compile_lazily(
    r"^(?:successfully|now|also)\s+(?=\w)|,? successfully(?=[.\s]|$)", re.IGNORECASE
)
_LABEL = compile_lazily(
    r"^(?:bug|issue|fix|problem|step|phase|part|change|finding|task) #?\d{1,2}(?: \([^)]*\))?\s*(?:[:–—]|\s-)\s+(?=\S)|^(?:summary of (?:what|everything) (?:\w+ ){0,2}?(?:done|changed|fixed)(?: today)?|(?:key |main |summary of |overview of |the |all |other |recent |files? |code |what )*(?:changes?|fix(?:es)?|updates?|improvements?|results?|features?|details?|summary|overview|tests?|files?|usage|example|notes?|next steps?|steps|benefits|problems?|issues?|solutions?|root cause|cause|analysis|implementation|verification|status|modified|created|changed|works?|happened|found|options?|recommendations?|question)(?: (?:made|changed|modified|created|added|summary|works?|is|was|done|now|fixed|updated))?)(?: \([^)]*\))?\s*(?:[:–—]|\s-)\s+(?=\S)",
    re.IGNORECASE,
)  # dashes as people type them
_ANSWERS = compile_lazily(
    r"^(?:yes|yep|yeah|no|nope|correct|exactly)\b\s*[,.!:–—-]\s*(?=\S)", re.IGNORECASE
)
_OLD_STATE = compile_lazily(
    r"\b(?:problem|before|background|context|current(?:ly)?|previous(?:ly)?|original|what (?:happened|was wrong)|issue|bug|question)\b",
    re.IGNORECASE,
)
_AFTER = compile_lazily(
    r"^(?:after|now|new|to)(?: \([^)]*\))?[:—–-]\s*(.+)$", re.IGNORECASE
)  # dashes as people type them
_AFTER_WITHIN = compile_lazily(r"\b(?:after|now)(?: \([^)]*\))?:\s*(.+)$", re.IGNORECASE)
_NO_TOPIC = frozenset(
    stem(word)
    for word in words("""might may maybe ah oh hmm actually however currently showing seems seem seen look looks looked getting got goes going gone did does
    done doing made makes making works worked wondering wonder wondered guess feel feels believe first second third last latter former one two three
    four five lot bit kind sort couple yesterday today tomorrow morning week day hour minute time times good bad better best worse right wrong sure able
    quick proper still already really always never yes ok okay want wanted would like likes liked sense idea ideas people someone somebody everything everyone
    anymore yet since until while though although because unless far included both each every ago later earlier nothing something thing stuff part parts help please thanks hi hello hey high medium low severity priority critical major minor note""")
)
"""Words that name no topic."""
_DETERMINERS = frozenset(words("the our my this these those"))
_ENDINGS_OF_OTHERS = ("ing", "ed", "ly", "er", "est", "own")
"""Endings of words that seldom are nouns."""
_SAYS_SOMETHING = compile_lazily(
    r"^(?:re)?\w+ed\b|^new\b|\b(?:is|are|was|were|has|have|had|now|will|can|cannot|must|needs?|uses?|works?|covers?|creates?|does|did|means|returns?|shows?|supports?|\w+ed)\b",
    re.IGNORECASE,
)
_BORDERS = (
    compile_lazily(r"(?<=[\w`)\"'”])(?=\s+[–—]\s|\s+-\s|;\s|\.\s|:\s)"),
    compile_lazily(r"(?<=[\w`)\"'”])(?=,\s+(?:which|so|because|and|but|instead|since|when|where|rather|not|while|as|with|or)\b|\s+\((?!s\)))"),
    compile_lazily(r"(?<=[\w`)\"'”])(?=,\s|\s+(?:so that|because|instead of|which|since|and then|but|while|when|where|by)\s)"),
)  # fmt: skip
_OPENED = compile_lazily(
    r",? (?:(?:to ensure|so|means|says|ensures) )?(?:that )?(?:when|if|whenever)\b[^,]*$"
    r"|,? (?:that|so that|so|because) (?:for|in|on|with|after|before|by|at|from|to|of)\b[^,]*$"
)
"""A clause that is not over where the title is cut."""
_HANGING = compile_lazily(r"(?<=\S{3}),\s+\w+(?:ed|ing)$")
"""`, separated` of `, separated by lines`."""
_FIRST_CLAUSE = compile_lazily(
    r"^(?:even (?:though|if)|every time|each time|when(?:ever)?|if|since|while|because|although|though|after|before|once|until|unless|as soon as|given that)\b(?:\s+(?:[A-Z]\w*|`[^`]+`),)*[^,]*(?:,[^,]{0,40}\b(?:and|or)\b[^,]*)?,\s+(?=\S)",
    re.IGNORECASE,
)
"""`When a user signs in, ` before what happens then."""
_NEEDS_CLAUSE = compile_lazily(
    r"(?:i|we|you|he|she|its|their|or|and|but|then)\b|\S+,? (?:or|and)\b", re.IGNORECASE
)
_EMPTY_LEAD = compile_lazily(
    r"\b(?:changes? (?:are|is|were|made)|complete[d]?|done|implemented|the following (?:changes|updates|files|edits)\b.*|(?:files?|code) (?:created|added|changed|modified))$"
    r"|^(?:(?:all|both|everything|done|now|and|is|are|two|three|four|\d+)\b[\s,]*|\w+ed\b[\s,]*)+$",
    re.IGNORECASE,
)
_IS_FILE = compile_lazily(r"/|\.[A-Za-z]{1,5}(?::\d[\d:-]*)?`?$")
_IS_CODE = compile_lazily(r"^`[^`]+`$")
_ITEM_HEAD = compile_lazily(r"^(.{3,40}?)(?:(?<=[\w`\"')])(?: - | – | — |: )|\s*$)")
"""`Reader - returns nothing at the end`, of which `Reader` is the name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may name the turn."""

    text: str
    origin: str
    """`heading`, `sentence`, `item`, `only item`, `led` (a lead with its items), `heads` (of items), `commit`, `pull request`,
    `written plan`, `client`, `edits` or `asked`."""
    position: int = 0
    leads: bool = False
    is_old: bool = False
    """It stands under a heading such as `The problem`: it tells how things were."""
    is_announced: bool = False
    """`Here's a summary of …` stood before it."""
    is_answer: bool = False
    """It began with yes or no."""
    is_aside: bool = False
    """It was announced as a remark beside the matter."""

    @property
    def names_itself(self) -> bool:
        """Whether it was written as a title, and so has its subject."""
        return self.origin in ("commit", "pull request", "written plan")


_ORIGIN_SCORES = {
    "sentence": 0.4, "heading": 0.2, "item": -2.2, "only item": -1.0, "led": -0.6, "heads": -1.0, "commit": 2.6, "pull request": 2.6,
    "written plan": 6.0,
    "client": 0.9, "asked": -1.5, "edits": -2.7, "before": -2.2,
}  # fmt: skip
TOLD = frozenset(("sentence", "heading", "item", "only item", "led", "heads"))
"""Origins in the closing message."""
_TELL_OF_WORK = frozenset(("sentence", "heading", "only item"))
_POSITION_SCORE = 1.8
_POSITION_DECAY = 0.82
_ASKED_TOLD_MAX = 1.2
_COMMIT_TOLD_MIN = 2.0
"""What was committed is what was done, whatever was asked last."""
_ANSWER_SCORE, _ANSWER_WORDS_MIN = 0.7, 5
_ORDER_SCORE, _LABEL_SCORE, _FIRST_CLAUSE_SCORE = -3.5, -1.2, -1.5
_TOLD_MOST, _TOLD_HALF = 7.0, 4.0
"""What a candidate tells counts less and less: half of the most for so many weights of words."""


def list_candidates(statements: Sequence[Statement]) -> list[Candidate]:
    """The statements of a closing message as candidates, each freed of what only leads up to it."""
    found, position, is_old = [], 0, False
    joined = _join_changes(statements)
    are_few = sum(one.form == "item" for one in joined) <= _FEW_ITEMS
    for number, one in enumerate(joined):
        text = trim_lead_in(one.text)
        text = close_end(text) if one.leads and len(text) > _CUT_MIN else text
        text = _drop_first_clause(text)
        if (before := BEFORE.match(text)) and (after := _AFTER_WITHIN.search(before[1])):
            text = after[1]
        if one.leads and (whole := _lead_to_items(text, joined[number + 1 :])):
            found.append(Candidate(whole, "led" if whole.startswith(text) else "heads", position))
        if text and not tells_nothing(text):
            is_announced = _HERE_IS.match(_LEAD_IN.sub("", one.text)) is not None
            origin = "only item" if one.form == "item" and are_few else one.form
            is_answer = (
                _ANSWERS.match(one.text) is not None and len(text.split()) >= _ANSWER_WORDS_MIN
            )
            found.append(
                Candidate(
                    text,
                    origin,
                    position,
                    one.leads,
                    is_old,
                    is_announced,
                    is_answer,
                    is_aside(one.text) and not is_aside(text),
                )
            )
            position += 1
        if one.form == "heading":
            is_old = _OLD_STATE.search(one.text) is not None
    return found


def _lead_to_items(lead: str, following: Sequence[Statement]) -> str:
    """`The command has been moved:` with its first item; of several named ones their names. Maybe empty.

    Where the lead says nothing (`The changes are:`) the names of what was done stand alone.
    """
    if not following or following[0].leads or len(lead) >= _LEAD_CHARACTERS:
        return ""
    if following[0].form == "heading" and _IS_CODE.match(following[0].text):
        return f"{lead}: {following[0].text}"
    items = [trim_lead_in(one.text) for one in takewhile(lambda one: one.form == "item", following)]
    heads = [_ITEM_HEAD.match(one) for one in items]
    names = [one[1].strip() for one in heads if one]
    is_empty = not _SAYS_SOMETHING.search(lead) or _EMPTY_LEAD.search(lead) is not None
    if len(names) < max(len(items), 2):
        whole = f"{lead}: {items[0]}" if items and not is_empty else ""
    elif not is_empty:
        whole = join_names(f"{lead}: {names[0]}", names[1:])
    elif any(map(_IS_FILE.search, names[:2])) or len(names[0].split()) < _HEAD_WORDS_MIN:
        whole = ""
    else:
        whole = join_names(names[0], names[1:])
    return "" if tells_nothing(whole) else whole


def list_item_names(statements: Sequence[Statement], text: str) -> list[str]:
    """The names of all items of the list that an item stands in: `Step - one of many`; empty if one has no short name."""
    for is_list, run in groupby(statements, lambda one: one.form == "item"):
        items = [trim_lead_in(one.text) for one in run] if is_list else []
        if text not in items:
            continue
        heads = [_ITEM_HEAD.match(one) for one in items]
        names = [one[1].strip() for one in heads if one and not _IS_FILE.search(one[1])]
        are_short = all(len(name.split()) <= _NAME_WORDS_MAX for name in names)
        return names if are_short and len(names) == len(items) else []
    return []


def join_names(whole: str, names: Sequence[str]) -> str:
    """As many names after the beginning as fit into a title."""
    for name in names:
        if len(whole) + len(name) + 2 > TITLE_CHARACTERS:
            break
        whole += f", {name}"
    return whole


def _drop_first_clause(text: str) -> str:
    """A sentence too long for a title, without the clause that says when; as it is if its rest needs that clause."""
    first = _FIRST_CLAUSE.match(text) if len(text) > TITLE_CHARACTERS else None
    if first is None or first[0].count("(") != first[0].count(")") or first[0].count("`") % 2:
        return text
    rest = text[first.end() :]
    is_whole = len(rest) >= _CUT_MIN and not points_back(rest) and not _NEEDS_CLAUSE.match(rest)
    return rest if is_whole else text


def _join_changes(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, with `Before: a` and `After: b` as one: `a → b`."""
    found: list[Statement] = []
    for one in statements:
        after = _AFTER.match(one.text)
        before = found and BEFORE.match(found[-1].text)
        if before and after and len(before[1]) + len(after[1]) < TITLE_CHARACTERS:
            found[-1] = replace(found[-1], text=f"{before[1].rstrip('.')} → {after[1]}")
        else:
            found.append(one)
    return found


def trim_lead_in(text: str) -> str:
    """The statement without interjections, `I've`, `Here's a summary of` and what else says nothing."""
    before = ""
    while text != before:
        before = text
        for pattern in (
            _COMMIT_NUMBER,
            _LEAD_IN,
            _LINKING,
            _ON_WHAT_GROUNDS,
            _HERE_IS,
            _LABEL,
            _I_DID,
            _FIXED_BY,
            _NEEDLESS,
        ):
            shorter = pattern.sub("", text, count=1).strip()
            if any(c.isalnum() for c in shorter):
                text = shorter
    return text


def choose_best(
    candidates: Iterable[Candidate],
    salience: Salience,
    *,
    is_work: bool = False,
    room: int = TITLE_CHARACTERS,
) -> Candidate | None:
    """The candidate that names the turn best, the first of equals; None if there is none.

    `is_work`: something was done, which tells more than how it was before. `room`: characters that are left for it.
    """
    return max(
        candidates,
        key=lambda one: (
            rate(one, salience, room)
            + (is_work and one.origin in _TELL_OF_WORK) * rate_for_work(one.text)
        ),
        default=None,
    )


def rate(one: Candidate, salience: Salience, room: int = TITLE_CHARACTERS) -> float:
    """How well a candidate would name the turn, in so many characters."""
    text = one.text
    told = salience.measure(cut_title(text, room))
    if one.origin in ("commit", "pull request"):
        told = max(told, _COMMIT_TOLD_MIN)
    if one.origin == "asked":
        told = min(told, _ASKED_TOLD_MAX)  # all of its words were asked for
    score = _TOLD_MOST * told / (told + _TOLD_HALF)
    score += _ORIGIN_SCORES[one.origin]
    if one.origin in TOLD or one.origin == "asked":
        score += _POSITION_SCORE * _POSITION_DECAY**one.position
    score += _ANSWER_SCORE * one.is_answer - 1.2 * one.is_old - 1.5 * one.is_announced
    score -= 2.0 * one.is_aside
    if len(text) > room:
        score -= 1.0 if "…" in cut_title(text, room) else 0.4
    if one.origin == "sentence" and is_order(text):
        score += _ORDER_SCORE
    if one.origin == "heading" and not _SAYS_SOMETHING.search(text):
        score += _LABEL_SCORE
    if _FIRST_CLAUSE.match(text) and not _FIRST_CLAUSE.match(cut_title(text)):
        score += _FIRST_CLAUSE_SCORE
    return score + rate_form(text, leads=one.leads)


def cut_title(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """The text in at most `limit` characters, cut where a clause ends if it can be."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return _close_marks(flat)
    for border in _BORDERS:
        ends = [m.start() for m in border.finditer(flat) if _CUT_MIN <= m.start() <= limit]
        if ends := [end for end in ends if _can_end(flat, end)]:
            cut = _HANGING.sub("", flat[: ends[-1]])
            opened = _OPENED.search(cut, _CUT_MIN) if flat[len(cut)] == "," else None
            return cut[: opened.start()] if opened else cut
    return _close_marks(one_line(flat, limit))


def _can_end(flat: str, end: int) -> bool:
    """Whether a text may be cut here: outside of code and brackets, and what a colon follows says something."""
    cut = flat[:end]
    if cut.count("`") % 2 or cut.count("(") > cut.count(")"):
        return False
    return flat[end] != ":" or (
        _SAYS_SOMETHING.search(cut) is not None and not _EMPTY_LEAD.search(cut)
    )


def _close_marks(text: str) -> str:
    """The text without a backtick or bracket that is opened and never closed."""
    if text.count("`") % 2:
        at = text.rfind("`")
        text = text[:at] + text[at + 1 :]
    return text


def finish_title(text: str, topic: str = "") -> str:
    """A title of one line: the topic, if any, then the text, cut."""
    body = sentences.format_title(cut_title(text), TITLE_CHARACTERS)
    body = body.strip('"') if body.count('"') == 2 and body[0] == body[-1] == '"' else body  # noqa: PLR2004  # a pair
    body = body.rstrip("?!. ").rstrip() if body[-1:] in "?!." and not body.endswith("..") else body
    if not topic:
        return body
    room = TITLE_CHARACTERS - len(topic) - 2
    return f"{topic}: {sentences.format_title(cut_title(body, room), room)}"


def find_topic(salience: Salience, title: str, files: Sequence[str]) -> str:
    """A name for what was asked about: an identifier, a file or a short run of telling words; maybe empty.

    It is one that the answer or the files use, too, a phrase word for word: otherwise a chance word would become one.
    A word of the prompt alone is one only of a title that has its subject elsewhere, or of a prompt of a few words.
    """
    names = [name for name in find_names(salience.focus) if len(name) <= _TOPIC_MAX]
    said = set(content_stems(title))
    found = [
        text
        for text in (*names, *_find_runs(salience.focus, salience))
        if (_IS_FILE.search(text) or not tells_nothing(text)) and not _is_said(text, said)
    ]
    if not has_pronoun(title) and any(name in title for name in find_names(salience.focus)):
        return ""
    has_subject = any(not _IS_FILE.search(name) for name in find_names(title))

    def weigh(text: str) -> float:
        weight = sum(salience.keys.get(one, 0.0) for one in set(content_stems(text)))
        return weight + _NAME_BONUS * (text in names)

    known = [text for text in found if all(map(salience.is_known_or_generic, words(text)))]
    if has_subject and not points_back(title):
        # It needs only what the whole answer is about.
        known = [text for text in known if text in names and salience.count_told(text) > 1]
        files = ()
    elif not points_back(title):
        known = [text for text in known if text in names or _is_telling(text, salience)]
    if not known and not has_subject and not salience.is_recalled:
        known = _list_prompted(found, names, salience.focus, 1 if points_back(title) else 2)
    if best := max(known, key=weigh, default=""):
        return strip_markup(best)
    named = files[0].rsplit("/", 1)[-1] if files else ""
    return "" if set(content_stems(named)) <= said else named


def _is_said(topic: str, said: AbstractSet[str]) -> bool:
    """Whether a title has the stems of a topic already, or the identifier in it: `existing GetUnit` of `GetUnit`."""
    named = {one for name in find_names(topic) for one in content_stems(name)}
    return (named or set(content_stems(topic))) <= said


def _list_prompted(
    found: Sequence[str], names: Sequence[str], prompt: str, least: int
) -> list[str]:
    """What a prompt alone speaks of: a file that it names, and of a few words a name or so many telling ones in a row."""
    count = len(words(prompt))
    files = [one for one in found if one in names and _IS_FILE.search(one)]
    if files or count > _FEW_WORDS:
        return files if count <= _TYPED_WORDS else []
    return [one for one in found if one in names or len(one.split()) >= least]


def _is_telling(run: str, salience: Salience) -> bool:
    """Whether words of a prompt name something: several that the answer has side by side, or one that it comes back to."""
    if len(run.split()) > 1:
        return salience.count_told(run) > 0
    return all(
        min(salience.keys.get(one, 0.0), salience.weights.get(one, 0.0)) >= _PROMINENT_MIN
        for one in content_stems(run)
    )


def says_something(text: str) -> bool:
    """Whether a text has a verb, or begins with what was done."""
    return _SAYS_SOMETHING.search(text) is not None or is_order(text)


def _can_be_topic(word: str) -> bool:
    """Whether a word of a prompt may name what it is about."""
    if not _WORD_MIN <= len(word) <= _TOPIC_MAX or is_stop_word(word) or not word[0].isalpha():
        return False
    return word.lower() not in verbs.ALL and stem(word.lower()) not in _NO_TOPIC


def _find_runs(text: str, salience: Salience) -> Iterator[str]:
    """The runs of one to three telling words, side by side."""
    run: list[str] = []
    last_end, last_word = 0, ""
    for match in re.finditer(r"[\w'’./-]+", text):
        word = match.group().strip("'’./-")
        apart = text[last_end : match.start()].strip()
        last_end = match.end()
        is_noun = last_word in _DETERMINERS or (bool(run) and not word.endswith(_ENDINGS_OF_OTHERS))
        is_telling = _can_be_topic(word) and (is_noun or salience.is_known(word))
        last_word = word.lower()
        if run and (apart or not is_telling or len(run) == _RUN_WORDS):
            yield " ".join(run)
            run = []
        if is_telling:
            run.append(word)
    if run:
        yield " ".join(run)


_COMMIT = compile_lazily(r"\bgit\b(?:\s+-\S+(?:\s+\S+)?)*?\s+commit\b")
_MESSAGE = compile_lazily(r"(?:-\w*m|--message)[\s=]+(\"|')(.+?)(?<!\\)\1", re.DOTALL)
_HEREDOC = compile_lazily(r"<<-?\s*['\"]?(\w+)['\"]?\s*\n\s*(.+?)\n", re.DOTALL)
_PR = compile_lazily(
    r"\b(?:gh pr|glab mr) (?:create|edit)\b.*?(?:--title|-t)[\s=]+(\"|')(.+?)(?<!\\)\1", re.DOTALL
)


def read_commit_subject(command: str) -> str:
    """The subject of the commit that a shell command makes; empty if it makes none."""
    match = _COMMIT.search(command)
    if match is None:
        return ""
    rest = command[match.end() :]
    found = _HEREDOC.search(rest) if "<<" in rest else None
    message = found[2] if found else ((m := _MESSAGE.search(rest)) and m[2]) or ""
    subject = message.strip().split("\n", 1)[0].strip().replace('\\"', '"')
    return "" if subject.startswith("Merge ") else subject


def read_pull_request_title(command: str) -> str:
    """The title of the pull request that a shell command opens; empty if it opens none."""
    match = _PR.search(command)
    return match[2].strip() if match else ""
