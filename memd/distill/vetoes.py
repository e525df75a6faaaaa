"""Vetoes: text that somebody or something else has written, and sentences that are asked, reported or ironic. Pure.

Every test is of text whose quotations are masked already. In doubt the answer is yes: what is lost is one rule that its
speaker can repeat; what is kept wrongly leads every session. Of the tests that there once were, each stays without which
one of the labelled texts of `tests/data/speech.toml` or of 14 people's prompts is taken for a rule.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memd.belief import polarity
from memd.belief.later import begins_with_that, takes_back, withdraws
from memd.belief.polarity import WORDS
from memd.caches import cached
from memd.patterns import Table, compile_lazily
from memd.text import fold, is_stop_word, words

SPEECH = Table("distill/speech.toml")
OPAQUE = "\ue000"
"""Stands for each character of a quotation, a code span or a tag."""


@dataclass(slots=True)
class Line:
    """A line as it was said, and the same with OPAQUE for what is quoted in it."""

    text: str
    bare: str
    is_item: bool = False


BULLET = compile_lazily(r"^\s*(?:[-*]|\d{1,2}[.)])\s+(?=\S)")
_LABEL = compile_lazily(r"^\s*[\[(<*@]{0,2}([A-Za-z][\w .'-]{0,28}?)[\])>*]{0,2}\s*:(?:\s|$)")
_OWN_LABELS = SPEECH.list_words("own labels")
_LABELS_OF_DATA_MIN = 2
_HEADING_WORDS_MAX = 8
_DETERMINERS, _FIRST_PERSON, _THIRD_PERSON, _PASSING = map(
    polarity.list_folded, ("determiners", "first person", "third person", "passing")
)
_SAYING = polarity.list_folded("saying") | polarity.list_folded("sources")
_OF_TEXT = frozenset().union(
    *map(polarity.list_folded, ("verbs of sending", "what is sent", "wording"))
)
_TOWARDS = frozenset({"to", "auf", "zu", "an", "à", "a", "naar"})
_GIVER_WORDS_MAX = 3
_OF = frozenset({"de", "da"})
_ACTING = SPEECH.list_words("behaviour") | SPEECH.list_words("conduct")
_WRAPPED_CHARACTERS_MIN = 50
_WRAPPED_LINES_MIN = 2
_PRINTED_LINES_MIN = 2
"""Lines without words from which a paragraph is output, if none has the form of a known tool."""
_PRINTED = compile_lazily(r"\t|[^\s.!?:] {2,}\S|^\s*\S+[:(]\d+[:,)]|^\s+[a-z][\w.-]*:(?: \S+)?$")
_SPOKEN = compile_lazily(
    r"[(\[]?[^\W\d_]+(?:['’-][^\W\d_]+)*[)\].,:;!?…]*|.*[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af].*"
)
"""A word as it stands in prose; scripts without spaces have whole clauses there."""
COLONS = (":", "：")
SENTENCE_STOP = tuple(".!?:;…")


def has_document_marks(bare: str, blocks: list[list[Line]]) -> bool:
    """Return whether marks of a ticket, a letter, a role or labels say that all of a message was written elsewhere."""
    lines = [line for block in blocks for line in block]
    return (
        SPEECH["whole is data"].search(bare) is not None
        or _count_labels(lines) >= _LABELS_OF_DATA_MIN
    )


def _count_labels(lines: list[Line]) -> int:
    """Lines like `Alice: …` or `key: …`; 0 if every label is one that people set before their own words.

    What stands directly before something shown is no label: `before:`, and the output below it.
    """
    below = (*lines[1:], None)
    said = [
        one
        for one, next_ in zip(lines, below, strict=False)
        if not (next_ and is_shown(next_.bare))
    ]
    found = [m.group(1).strip().lower() for line in said if (m := _LABEL.match(line.bare))]
    labels = [label for label in found if len(words(label)) <= 2]  # noqa: PLR2004  # a name has two words
    return len(labels) if any(label not in _OWN_LABELS for label in labels) else 0


def is_own_label(lead: str) -> bool:
    """Return whether people set this before their own words: `important`, `Regel`."""
    return lead.lower() in _OWN_LABELS


def is_shown(line: str) -> bool:
    """Return whether all of a line is masked."""
    return not line.strip(OPAQUE + " \t")


def is_heading(line: str) -> bool:
    """Return whether a line stands like a heading: short, with a capital, without a stop."""
    line = line.strip()
    return (
        0 < len(words(line)) <= _HEADING_WORDS_MAX
        and line[0].isupper()
        and not line.endswith((*SENTENCE_STOP, ",", OPAQUE))
        and not BULLET.match(line)
    )


def heads_text(line: str) -> bool:
    """Return whether a line without a stop stands above another's text: `jim [09:12]`, `PROJ-7`, `got this from Jim`.

    In doubt it does, unless it orders or tells of work.
    """
    line, tokens = line.strip(), words(line)
    is_short = 0 < len(tokens) <= _HEADING_WORDS_MAX
    if not is_short or line.endswith((*SENTENCE_STOP, ",")) or BULLET.match(line):
        return False
    if SPEECH["stamp"].fullmatch(line):
        return not any(map(is_stop_word, tokens))
    return polarity.names_source(line) or _ends_with_giver(tokens)


def _ends_with_giver(tokens: list[str]) -> bool:
    """Return whether the last words name from whom something comes: “from Jim”, “von Helge bekommen”, not “from now on”."""
    first = tokens[0].lower()
    if not _ACTING.isdisjoint((first, first.removesuffix("ed"), first.removesuffix("d"))):
        return False
    for at, token in enumerate(tokens[:-1]):
        given = tokens[at + 1 :]
        # Romance “de” stands before any noun, and before a name with a capital.
        is_giver = token.lower() in polarity.GIVERS and (
            token.lower() not in _OF or given[0][0].isupper()
        )
        if is_giver and len(given) <= _GIVER_WORDS_MAX:
            return _may_name(given)
    return False


def may_say(phrase: str) -> bool:
    """Return whether a phrase may name who says what follows: by a verb of saying, a source, an article, or “he”, “this”."""
    tokens = [fold(word) for word in words(phrase)]
    starts = _DETERMINERS | _THIRD_PERSON | polarity.GIVERS
    is_text = not _OF_TEXT.isdisjoint(tokens)
    return is_text or has_saying(phrase) or not starts.isdisjoint(tokens[:1])


def _may_name(tokens: list[str]) -> bool:
    """Return whether words behind “from” may name somebody: not “now on”, “today”, “me”, “A to B”."""
    folded = [fold(token) for token in tokens]
    first, aims = folded[0], [one in _TOWARDS for one in folded]
    is_move = any(aims) and _FIRST_PERSON.isdisjoint(folded[aims.index(True) + 1 :])
    is_named = first in _DETERMINERS or not (
        is_stop_word(first) or first in _PASSING | _FIRST_PERSON | {"jetzt", "nun", "nu"}
    )
    return is_named and not is_move and not first[0].isdigit()


def has_saying(text: str) -> bool:
    """Return whether a text has a verb of saying, or a word like “according”."""
    return not _SAYING.isdisjoint(map(fold, words(text)))


def is_wrapped(block: list[Line]) -> bool:
    """Return whether lines were broken at a width, as no one does who types a prompt."""
    breaks = 0
    for line, following in itertools.pairwise(block):
        said = line.bare.rstrip()
        is_open = not said.endswith(SENTENCE_STOP) and not BULLET.match(following.bare)
        breaks += is_open and len(said) >= _WRAPPED_CHARACTERS_MIN and not is_shown(said)
    return breaks >= _WRAPPED_LINES_MIN


def is_copied(paragraph: Sequence[str]) -> bool:
    """Return whether a paragraph was copied from a screen: broken at a width, and every line but perhaps the first set in."""
    is_set_in = all(line.startswith("  ") for line in paragraph[1:])
    return is_set_in and is_wrapped([Line(line, line) for line in paragraph])


def asks_about_text(line: str, *, is_only: bool = False) -> bool:
    """Return whether a line asks something about text that the message holds."""
    if SPEECH["about text"].search(line):
        return True
    parts = re.split(r"(?<=[.!?])\s+", line)
    return not is_only and any(map(SPEECH["about this"].search, parts))


def points_at_text(sentence: str) -> bool:
    """Return whether a sentence that asks about text may mean text of this very message: `what do you think of this?`."""
    return SPEECH["points at text"].search(sentence) is not None


def has_indented_line(block: list[Line]) -> bool:
    """Return whether a line is set in without belonging to a list, as in text copied from a screen or a document."""
    in_list = False
    for line in block:
        in_list = in_list or BULLET.match(line.bare) is not None
        if line.bare.startswith("  ") and not in_list:
            return True
    return False


def is_data(line: str) -> bool:
    """Return whether a line is code, a log, a setting, a table, a comment or quoted; what is below it belongs to it."""
    return any(SPEECH[name].match(line) for name in ("data line", "output line"))


def find_output(paragraph: Sequence[str], *, is_introduced: bool) -> int:
    """The number of the line of a paragraph with which the output of a program begins; that of its lines if none does.

    `is_introduced`: a colon stands before the paragraph.
    """
    sure = [SPEECH["output line"].match(line) is not None for line in paragraph]
    printed = [one or _is_printed(line) for one, line in zip(sure, paragraph, strict=True)]
    none = len(paragraph)
    for line, is_sure in zip(paragraph, sure, strict=True):
        if SPEECH["not output"].match(line) or (begins_data(line) and not is_sure):
            return none
    first = next(itertools.compress(itertools.count(), printed), none)
    introduced = [at for at in range(1, first + 1) if paragraph[at - 1].rstrip().endswith(COLONS)]
    first = 0 if is_introduced else introduced[-1] if introduced else first
    rest = range(first, none)
    is_output = any(sure[first:]) or sum(printed[first:]) >= _PRINTED_LINES_MIN
    belongs = sum(printed[at] or paragraph[at][:1].isspace() for at in rest)
    items = sum(BULLET.match(paragraph[at]) is not None for at in rest)
    return first if is_output and 2 * belongs >= len(rest) + items else none


def _is_printed(line: str) -> bool:
    """Return whether a line has the form of output: columns, tabs, a place in a file, a setting set in, or hardly a word."""
    if BULLET.match(line):
        return False
    if _PRINTED.search(line):
        return True
    tokens = [one for one in line.split() if not one.isupper() and one[0] not in "`\"'“"]
    names = sum(_SPOKEN.fullmatch(one) is None for one in tokens)
    return 2 * names > len(tokens)


def begins_data(line: str) -> bool:
    """Return whether a mail, a page or a diff begins with this line: nothing below it is the speaker's own."""
    return (
        SPEECH["rest is data"].match(line) is not None or SPEECH["greeting"].match(line) is not None
    )


def shows_text(sentence: str) -> bool:
    """Return whether a sentence hands over a text from elsewhere: `this is from the wiki`, `put this into the README`."""
    return bool(SPEECH["shows source"].search(sentence) or SPEECH["writes this"].search(sentence))


def introduces_text(clause: str) -> bool:
    """Return whether a text from elsewhere stands after this clause and a colon."""
    return shows_text(clause) or SPEECH["others text"].search(clause) is not None


# ── Sentences that their speaker does not affirm ──────────────────────────────────────────────────


def is_reported(text: str) -> bool:
    """Return whether a text, masked, gives somebody else's words or wishes."""
    return SPEECH["speaker"].search(text) is not None


def is_for_this_time(text: str) -> bool:
    """Return whether an order binds itself to the work at hand: `from now on …, for this test only`."""
    return SPEECH["for this time"].search(text) is not None


def is_ironic(text: str) -> bool:
    """Return whether a text, masked, is meant in irony."""
    return SPEECH["irony"].search(text) is not None


_ASIDE_WORDS_MAX = 6
"""Words of a sentence that only bounds what was said before it: “just for today”."""


@cached(1_024)
def is_withdrawn(sentence: str, following: tuple[str, ...]) -> bool:
    """Return whether a sentence, masked, is taken back or doubted, in its own words or by those that follow it in its message."""
    if SPEECH["either number"].search(sentence) or WORDS["corrects itself"].search(sentence):
        return True
    is_doubted = any(takes_back_before(one, sentence) for one in following[:1])
    return is_doubted or any(takes_back(one, sentence) for one in following)


def takes_back_before(following: str, sentence: str) -> bool:
    """Return whether a sentence, masked, takes back or doubts the one right before it."""
    return withdraws(following, sentence) or _gives_away(following)


def _gives_away(following: str) -> bool:
    """Return whether a sentence says that the one before it was another's word, a joke, or for this time."""
    is_about = begins_with_that(following) or SPEECH["speaker"].match(following)
    is_short = len(words(following)) <= _ASIDE_WORDS_MAX and not following.endswith("?")
    is_aside = is_short and is_for_this_time(following)
    # “That's what the importer expects” gives a reason.
    is_said = is_reported(following) and not SPEECH["wants"].search(following)
    return is_aside or is_ironic(following) or bool(is_about and is_said)
