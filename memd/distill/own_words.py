"""The sentences of a message that are its speaker's own: no code, no quotation, no pasted document. Pure.

People paste without fences: mails, pages, tickets, logs, diffs. What a pasted text says is not what the one says
who pasted it, so a sentence that only may be pasted is left out. Quotations, code and tags are masked by
characters of the same number first; then lines, blocks and the message as a whole are looked at; what is
left is split into sentences.
"""

import enum
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memd.belief import polarity
from memd.belief.later import TAKING_BACK_WITHIN, takes_back
from memd.caches import cached
from memd.distill import text as sentences
from memd.distill import vetoes
from memd.distill.orders import POLITE, asks_to_keep
from memd.distill.vetoes import BULLET, OPAQUE, SPEECH, Line
from memd.languages import detect_text_languages, is_function_word
from memd.patterns import compile_lazily
from memd.text import find_emphasis, find_sentence_ends, first_word, fold, is_stop_word, words

BEHAVIOUR = SPEECH.list_words("behaviour")
VERBS = BEHAVIOUR | SPEECH.list_words("conduct")
"""Verbs with which people order something."""
_ESCAPED = re.compile(r'\\"(?=[^`]*(?:`[^`]*`[^`]*)*\Z)')
"""A quotation mark that a program wrote inside another: outside of code nobody types it so."""
_CODE_ALONE = compile_lazily(r"\s*`[^`\n]+`\W*")
_CHARACTERS_READ_MAX = 20_000
_MESSAGES_CACHED = 256
"""Messages of which the own sentences are kept: each rule about what somebody says asks for them."""
_OWN_CHARACTERS_MAX = 2_400
"""Nobody types more prose than this into one prompt; a longer text is pasted, whatever else it looks like."""


@dataclass(frozen=True, slots=True)
class OwnSentence:
    """One sentence as it was said, and the same with OPAQUE for what is quoted in it."""

    text: str
    bare: str
    block: int
    """Sentences of one paragraph or list have the same number."""
    lead: str = ""
    """`decision` of `Decision: use tabs`, in lower case; empty without a colon."""
    start: int = 0
    """The position at which the words after the lead begin."""
    following: tuple[str, ...] = ()
    """What its speaker says behind it in the same message, masked."""

    @property
    def unquoted(self) -> str:
        """The words as they were said, with OPAQUE for a quotation or a tag of several words."""
        return _keep_names(self.text, self.bare)

    @property
    def said(self) -> str:
        """The words after the lead, with quotations masked."""
        return self.bare[self.start :]

    @property
    def is_withdrawn(self) -> bool:
        """Return whether the speaker takes it back or doubts it in the same message."""
        return vetoes.is_withdrawn(self.bare, self.following)


@cached(_MESSAGES_CACHED)
def read_own_sentences(message: str) -> tuple[OwnSentence, ...]:
    """Return the speaker's own sentences, in order; nothing if the message as a whole looks pasted."""
    text = message[:_CHARACTERS_READ_MAX]
    prose = _mask_outputs(_mask_fences(text))
    bare = _mask_quotations(_mask_tags(prose))
    blocks = _read_blocks(text, bare)
    if _ESCAPED.search(prose) or vetoes.has_document_marks(bare, blocks):
        return ()
    blocks = _read_blocks(text, _mask_below_head(bare))
    found: list[OwnSentence] = []
    follows = _Follows.OWN
    for number, block in enumerate(blocks):
        if follows is _Follows.DATA:
            break
        own, follows = _read_block(block, number, follows, is_last=number + 1 == len(blocks))
        found += own
    kept = _leave_asked_text(found, blocks)
    if sum(len(sentence.text) for sentence in kept) > _OWN_CHARACTERS_MAX:
        return ()
    return tuple(
        replace(one, following=tuple(_list_following(one, found[at:])))
        for at, one in enumerate(found, 1)
        if one in kept
    )


def _list_following(sentence: OwnSentence, rest: list[OwnSentence]) -> Iterator[str]:
    """Yield what stands behind a sentence; of two with the same lead, `Decision: …`, each is a statement of its own."""
    return (one.bare for one in rest if not one.lead or one.lead != sentence.lead)


def _leave_asked_text(own: list[OwnSentence], blocks: list[list[Line]]) -> list[OwnSentence]:
    """The sentences without those that ask about text, and without the text if it may stand in this message.

    It may be any other paragraph; what is said before the question is the speaker's own if something stands below it. In one
    paragraph with the question it is what does not address the reader.
    """
    is_only = sum(map(len, blocks)) == 1
    asking = {
        number
        for number, block in enumerate(blocks)
        if any(vetoes.asks_about_text(line.bare, is_only=is_only) for line in block)
    }
    if not asking:
        return own
    rest = [one for one in own if not vetoes.asks_about_text(one.bare, is_only=is_only)]
    first, last = min(asking), max(asking)
    asked = [one.bare for one in own if one.block in asking and one not in rest]
    points = not asked or any(map(vetoes.points_at_text, asked))
    if last + 1 < len(blocks):
        return [one for one in rest if one.block <= first or one.block in asking]
    if not points:
        is_named = any(map(SPEECH["about text"].search, asked))
        return [one for one in rest if not is_named or one.block in asking]
    is_elsewhere = len(asking) < len(blocks) or any(OPAQUE in one for one in asked)
    return [
        one
        for one in rest
        if one.block in asking
        and (is_elsewhere or one.lead or SPEECH["addresses"].search(one.bare))
    ]


# ── Masks of the same length for what is shown, not said ─────────────────────────────────────────


def find_typed_paragraphs(message: str) -> list[str]:
    """The paragraphs that its speaker typed, by their form alone; nothing if the message looks like a document.

    A line of data, a fence, a tag and a quotation of several words cut a paragraph in two; what an introduction
    with a colon shows, and all that follows it, is left out.
    """
    bare = _mask_tags(_mask_outputs(_mask_fences(message[:_CHARACTERS_READ_MAX])))
    whole = bare.strip()
    if whole[:1] in _QUOTES and whole[-1:] in _QUOTES[whole[0]] and whole[0] not in whole[1:-1]:
        return [whole[1:-1]]  # the whole message was put between quotation marks
    masked = _mask_quotations(bare)
    if vetoes.has_document_marks(masked, _read_blocks(message[:_CHARACTERS_READ_MAX], masked)):
        return []
    return [part for part in _split_paragraphs(_keep_names(bare, masked), masked) if part.strip()]


def _split_paragraphs(text: str, masked: str) -> list[str]:
    """The paragraphs of a text up to where something else is shown; lines of data end one."""
    at, parts = 0, [""]
    shown = []
    for line in text.split("\n"):
        shown.append(masked[at : at + len(line)])
        at += len(line) + 1
    for number, line in enumerate(text.split("\n")):
        is_ended = not line.strip()
        if number and vetoes.heads_text(shown[number - 1]):
            break
        if vetoes.begins_data(shown[number]) or (
            _shows_rest(parts[-1], is_ended=is_ended)
            and not vetoes.is_shown(next(filter(str.strip, shown[number:]), "…"))
        ):
            break
        if is_ended or (vetoes.is_data(shown[number]) and not BULLET.match(shown[number])):
            parts.append("")
        else:
            parts[-1] = f"{parts[-1]}\n{line}" if parts[-1] else line
    return parts


def _shows_rest(said: str, *, is_ended: bool) -> bool:
    """Return whether what was said so far hands over what stands below it, which somebody else has written."""
    last = said.rpartition("\n")[2].rstrip()
    if last.endswith(vetoes.COLONS) and (is_ended or _introduces_text(last)):
        return True
    return is_ended and (vetoes.shows_text(said) or vetoes.asks_about_text(last))


_CJK_CLOSING = "」』》〉"
_QUOTED_WORDS_MIN = 4
"""A quotation of fewer words is a name in the speaker's own sentence."""


def _keep_names(text: str, masked: str) -> str:
    """The text with OPAQUE only for masked pieces of several words."""
    for match in reversed(list(re.finditer(f"{OPAQUE}+", masked))):
        piece = text[match.start() : match.end()]
        # Scripts without spaces write four words in eight signs.
        if len(piece.split()) >= _QUOTED_WORDS_MIN or (
            piece[-1] in _CJK_CLOSING and len(piece) > 2 * _QUOTED_WORDS_MIN
        ):
            text = text[: match.start()] + OPAQUE * len(piece) + text[match.end() :]
    return text


_FENCE = compile_lazily(r"`{3,}|^[ \t]*~{3,}", re.MULTILINE)
_TAG = compile_lazily(r"<(/?)([a-zA-Z][\w:-]{0,40})(?:\s[^<>]{0,300})?/?>")
_OPENS_TEXT = compile_lazily(r" ?[A-Z]\w")
"""After an open tag: a sentence begins in it."""
_QUOTES = {
    "“": "”", "„": "“”", "«": "»", "‹": "›", "「": "」", "『": "』", "《": "》", "〈": "〉", "〝": "〟",
    "‘": "’", "‚": "‘’", "”": "”", "»": "«", "›": "‹", '"': '"', "＂": "＂", "'": "'",
}  # fmt: skip
"""Each opening mark → the marks that may close it."""
_UNSURE_OPENINGS = "‘‚”»›'\""
"""These open a quotation only where a word begins; the rest always do."""
_UNCLOSED_IGNORED = "‘‚”»›'"
"""An apostrophe or a closing mark is no open quotation."""
_ELISIONS = ("'tis", "'twas", "'em", "'cause", "'til", "'bout")
_QUOTE_MARK = compile_lazily(r"\"\"\"|'''|``?|[" + "".join(_QUOTES) + "]")


def _mask_fences(text: str) -> str:
    """The text with fenced code masked; an open fence goes to the end."""
    parts: list[tuple[int, int]] = []
    fence, start = "", 0
    for match in _FENCE.finditer(text):
        mark = match.group().strip()
        if not fence:
            fence, start = mark, match.start()
        elif mark[0] == fence[0] and len(mark) >= len(fence):
            parts.append((start, match.end()))
            fence = ""
    if fence:
        parts.append((start, len(text)))
    return _mask_parts(text, parts, keeps_lines=True)


def _mask_parts(text: str, parts: list[tuple[int, int]], *, keeps_lines: bool) -> str:
    shown, at = [], 0
    for start, end in parts:
        if end <= at:
            continue
        inner = text[max(start, at) : end]
        shown.append(text[at : max(start, at)])
        shown.append(re.sub(r"[^\n]", OPAQUE, inner) if keeps_lines else OPAQUE * len(inner))
        at = end
    return "".join(shown) + text[at:]


def _mask_tags(text: str) -> str:
    """The text with `<tag>…</tag>` masked; what an open tag stands before is masked to the end.

    `feat/<ticket>` and `<Link>` inside a sentence stand for names: of these the tag alone is masked.
    """
    found = list(_TAG.finditer(text))
    last_close = {m.group(2): m.end() for m in found if m.group(1)}
    parts: list[tuple[int, int]] = []
    for match in found:
        if parts and match.start() < parts[-1][1]:
            continue
        end = last_close.get(match.group(2), 0)
        if end <= match.start():
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            begins_line = not line.strip()
            ends_line = line.endswith(" ") and text[match.end() : match.end() + 1] in ("", "\n")
            holds_text = line.endswith(" ") and _OPENS_TEXT.match(text, match.end())
            end = len(text) if begins_line or ends_line or holds_text else match.end()
        parts.append((match.start(), end))
    return _mask_parts(text, parts, keeps_lines=True)


def _mask_outputs(text: str) -> str:
    """The text with what programs printed masked, to the next empty line, as if it stood in a fence.

    Output below several paragraphs, without a colon, may be part of an article.
    """
    lines = text.split("\n")
    said: list[str] = []
    is_shown, start = False, 0
    for end, line in enumerate([*lines, ""]):
        if line.strip() or start == end:
            start = start if line.strip() else end + 1
            continue
        paragraph = lines[start:end]
        is_introduced = bool(said) and said[-1].endswith(vetoes.COLONS)
        first = vetoes.find_output(paragraph, is_introduced=is_introduced)
        is_rest = is_shown and all(one[:1].isspace() for one in paragraph)
        if is_rest or vetoes.is_copied(paragraph):
            first = 0
        if first and not vetoes.is_data(paragraph[first - 1]):
            said.append(paragraph[first - 1].rstrip())
        is_shown = first < len(paragraph) and (len(said) <= 1 or said[-1].endswith(vetoes.COLONS))
        if is_shown:
            lines[start + first : end] = [OPAQUE * len(one) for one in paragraph[first:]]
        start = end + 1
    return "\n".join(lines)


def _mask_below_head(text: str) -> str:
    """The text with all masked that stands below a line which says that somebody else wrote it."""
    at = 0
    for line in text.split("\n")[:-1]:
        at += len(line) + 1
        if vetoes.heads_text(line):
            return _mask_parts(text, [(at, len(text))], keeps_lines=True)
    return text


def _mask_quotations(text: str) -> str:
    """The text with quotations and code spans masked, over line breaks too. Each mark is looked up once."""
    return _mask_parts(text, _find_quotations(text), keeps_lines=False)


def _find_quotations(text: str) -> list[tuple[int, int]]:
    """The spans of quotations and code, in order."""
    parts: list[tuple[int, int]] = []
    missing: set[str] = set()
    at = 0
    while match := _QUOTE_MARK.search(text, at):
        at = match.end()
        end = _find_closing(text, match, missing)
        if end is not None:
            parts.append((match.start(), end))
            at = end
    return parts


def _find_closing(text: str, match: re.Match[str], missing: set[str]) -> int | None:
    """The end of the quotation that begins at `match`; None if none begins there."""
    mark, at = match.group(), match.end()
    if mark in ('"""', "'''", "`", "``"):
        closing = text.find(mark, at) if mark not in missing else -1
        if mark == "``" and closing < 0:
            mark, closing = "''", text.find("''", at)
        if closing < 0:
            missing.add(mark)
            return len(text) if len(mark) == 3 else None  # noqa: PLR2004  # a triple mark
        return closing + len(mark)
    before, after = text[match.start() - 1 : match.start()], text[at : at + 1]
    if mark in _UNSURE_OPENINGS and (before.isalnum() or not after.strip()):
        return None
    if mark == "'" and text[match.start() : at + 6].lower().startswith(_ELISIONS):
        return None
    return _find_mark(text, at, _QUOTES[mark], missing, is_sure=mark not in _UNCLOSED_IGNORED)


def _find_mark(text: str, at: int, marks: str, missing: set[str], *, is_sure: bool) -> int | None:
    if marks not in missing:
        is_apostrophe = marks[-1] in "'’"
        for match in compile_lazily(f"[{marks}]").finditer(text, at):
            follows = text[match.end() : match.end() + 1]
            if is_apostrophe and (follows.isalnum() or text[match.start() - 1].isspace()):
                continue
            return match.end()
        missing.add(marks)
    return len(text) if is_sure else None


def _read_blocks(text: str, bare: str) -> list[list[Line]]:
    """The paragraphs of a message, each a list of lines."""
    blocks: list[list[Line]] = [[]]
    at = 0
    for line in bare.split("\n"):
        said = text[at : at + len(line)]
        at += len(line) + 1
        if line.strip():
            blocks[-1].append(Line(said, line))
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


# ── Leads and sentences ───────────────────────────────────────────────────────────────────────────

_JOINING = (
    polarity.list_folded("adversatives")
    | polarity.list_folded("interjections")
    | POLITE
    | {"so", "then", "now"}
)
_COUNTED = (
    polarity.list_folded("nouns of talk") | {*polarity.WORDS.rows["numerals"]} | set("0123456789")
)
_COLON = compile_lazily(r":(?=\s|$)|：|\s[-–—](?=\s)")  # dashes as people type them


class _Follows(enum.Enum):
    """The kind of text that may stand after a piece of a message."""

    OWN = enum.auto()
    LIST = enum.auto()
    """A list or a text that the piece introduces."""
    BLOCK = enum.auto()
    """The rest of a block that somebody else says."""
    TEXT = enum.auto()
    """A text from elsewhere, which the piece hands over: what is masked, or else all of the rest."""
    DATA = enum.auto()
    """Nothing that is sure to be the speaker's own."""


def _read_block(
    block: list[Line], number: int, follows: _Follows, *, is_last: bool
) -> tuple[list[OwnSentence], _Follows]:
    """The own sentences of a block after a piece that `follows`, and what may follow the block."""
    head = block[0].bare
    if all(vetoes.is_shown(line.bare) for line in block):
        return [], _Follows.OWN
    is_headed = number > 0 and not is_last and len(block) == 1 and vetoes.is_heading(head)
    is_unlisted = follows is _Follows.TEXT or (follows is _Follows.LIST and not BULLET.match(head))
    if is_headed or is_unlisted or vetoes.is_wrapped(block) or vetoes.has_indented_line(block):
        return [], _Follows.DATA
    found: list[OwnSentence] = []
    is_in_list, introduces_list = False, follows is _Follows.OWN
    for piece in _join_lines(block):
        if piece is None:
            return found, _Follows.OWN
        if is_in_list and introduces_list and not piece.is_item and follows is _Follows.LIST:
            follows = _Follows.OWN  # below its items he goes on, as he does after an empty line
        is_in_list = piece.is_item
        own, follows = _read_piece(piece, number, follows)
        found += own
        if follows is _Follows.BLOCK:
            return found, _Follows.OWN
        if follows is _Follows.DATA:
            return found, follows
    is_answered = follows is _Follows.LIST and block[-1].is_item
    return found, _Follows.OWN if is_answered else follows


def _join_lines(block: list[Line]) -> Iterator[Line | None]:
    """Sentences and items as single lines; None where data begins, which ends a block."""
    current: Line | None = None
    for line in block:
        is_rest = vetoes.begins_data(line.bare)
        if not is_rest and (vetoes.is_data(line.bare) or vetoes.is_shown(line.bare)):
            if current is not None and current.bare.rstrip().endswith(vetoes.SENTENCE_STOP):
                yield current
            yield None
            return
        bullet = BULLET.match(line.bare)
        cut = bullet.end() if bullet else len(line.bare) - len(line.bare.lstrip())
        text, bare = line.text[cut:].rstrip(), line.bare[cut:].rstrip()
        text, bare = text[: len(bare)], bare[: len(text)]
        line.is_item = bullet is not None
        joins = bare[:1].islower() or bare[:1] == OPAQUE
        if current and not bullet and joins and not current.bare.endswith(vetoes.SENTENCE_STOP):
            current = replace(current, text=f"{current.text} {text}", bare=f"{current.bare} {bare}")
            continue
        if current is not None:
            yield current
        current = Line(text, bare, is_item=bullet is not None)
    if current is not None:
        yield current


def _read_piece(piece: Line, number: int, follows: _Follows) -> tuple[list[OwnSentence], _Follows]:
    """The own sentences of a line after one that `follows`, and what may follow the line."""
    if vetoes.begins_data(piece.bare) or follows is _Follows.TEXT:
        return [], _Follows.DATA
    if follows is _Follows.LIST:
        return [], _Follows.LIST if piece.is_item else _Follows.DATA
    found: list[OwnSentence] = []
    for text, bare in _split(piece):
        sentence, follows = _read_lead(OwnSentence(text, bare, number))
        if sentence.said.strip(OPAQUE + " \t.,:;"):
            found.append(sentence)
        if vetoes.shows_text(bare):
            return found, _Follows.TEXT
        if follows is not _Follows.OWN:
            return found, follows
    return found, _Follows.OWN


def _split(piece: Line) -> Iterator[tuple[str, str]]:
    """The sentences of a line with their masked forms, of equal lengths, without emphasis."""
    at = 0
    for end in find_sentence_ends(piece.bare):
        text, bare = piece.text[at:end], piece.bare[at:end]
        at = end
        cut = len(bare) - len(bare.lstrip())
        text, bare = text[cut:], bare[cut:].rstrip()
        text = text[: len(bare)]
        for mark in reversed(find_emphasis(bare)):
            text = text[: mark.start] + text[mark.stop :]
            bare = bare[: mark.start] + bare[mark.stop :]
        if bare:
            yield text, bare


def _read_lead(sentence: OwnSentence) -> tuple[OwnSentence, _Follows]:
    """The sentence with its lead, and what may follow it.

    After a colon stands what somebody else says, unless the words before it lead one's own or name nobody.
    """
    sentence = replace(sentence, start=sentences.find_opening_end(sentence.bare))
    while match := _COLON.search(sentence.bare, sentence.start):
        lead = sentence.bare[sentence.start : match.start()].strip()
        after = sentence.bare[match.end() :]
        bare = sentences.strip_politeness(lead)
        is_own = any(map(SPEECH["own lead"].fullmatch, (lead, bare))) or asks_to_keep(bare)
        if not (is_own or (after.strip() and _only_opens(lead))):
            if sentence.lead or match.group() not in vetoes.COLONS:
                break  # `Decision: batch size: 500`, or a dash inside a sentence
            end = match.start()
            cut = replace(sentence, text=sentence.text[:end], bare=sentence.bare[:end])
            if _introduces_text(lead):
                return cut, _Follows.TEXT
            if _CODE_ALONE.fullmatch(
                sentence.text[match.end() :]
            ):  # “lint before you commit: `make lint`”
                return sentence, _Follows.OWN
            if not after.strip():
                return cut, _Follows.LIST
            if _is_about_work(lead):
                return cut, _Follows.OWN
            return (sentence, _Follows.OWN) if _names_nobody(bare, after) else (cut, _Follows.BLOCK)
        start = len(sentence.bare) - len(after.lstrip())
        sentence = replace(sentence, lead=sentence.lead or lead.lower(), start=start)
    return sentence, _Follows.OWN


def _is_about_work(lead: str) -> bool:
    """Return whether a lead orders or reports work, of which the colon gives a detail: `Added the limit: …`."""
    first = first_word(sentences.strip_politeness(lead))
    return not VERBS.isdisjoint((first, first.removesuffix("ed"), first.removesuffix("d")))


def _only_opens(lead: str) -> bool:
    """Return whether a lead has nothing but what opens a statement: `so`, `two things`, `wichtig`."""
    is_counted = all(map(_COUNTED.__contains__, _read_lead_words(lead)))
    return vetoes.is_own_label(lead) or (is_counted and bool(words(lead)))


def _names_nobody(lead: str, after: str) -> bool:
    """Return whether a lead names nobody who may say what stands behind it: it begins with a number or a function word.

    In doubt it names somebody: so may one word or two that are no such words, `Jim`, and a noun with an article, `the vendor`.
    """
    tokens = _read_lead_words(lead)
    is_heard = vetoes.may_say(lead) or vetoes.has_saying(after) or vetoes.is_reported(lead)
    is_asked = sentences.is_question(lead) or vetoes.asks_about_text(lead)
    if len(tokens) <= 1 or is_heard or is_asked or SPEECH["names text"].search(lead):
        return False
    languages = detect_text_languages(words(f"{lead} {after}".lower()))
    is_small = is_stop_word(tokens[0]) or is_function_word(tokens[0], languages)
    return is_small or tokens[0] in _COUNTED


def _read_lead_words(lead: str) -> list[str]:
    """The folded words of a lead without those that only join it to what was said."""
    return list(itertools.dropwhile(_JOINING.__contains__, map(fold, words(lead))))


def _introduces_text(lead: str) -> bool:
    return vetoes.introduces_text(lead) or polarity.introduces_others(lead)


# ── What is affirmed ──────────────────────────────────────────────────────────────────────────────


def select_assertions(own: Sequence[OwnSentence]) -> list[OwnSentence]:
    """Select the sentences that are affirmed; what follows a reported sentence may be reported, too."""
    found: list[OwnSentence] = []
    reported_block = -1
    for number, sentence in enumerate(own):
        if sentence.block == reported_block:
            continue
        if vetoes.is_reported(_drop_reason(sentence.bare)):
            reported_block = sentence.block
            continue
        near = (one.bare for one in own[max(0, number - 1) : number + 1])
        said = sentences.strip_politeness(sentence.said)
        is_asked = sentences.is_question(sentence.bare) or sentences.is_question(said)
        if is_asked or any(map(vetoes.is_ironic, near)) or sentence.is_withdrawn:
            continue
        found.append(sentence)
    return found


def _drop_reason(text: str) -> str:
    """Return a sentence without its reason, in which somebody else may speak: “… because the harbour master says so”."""
    return SPEECH["because"].split(text, maxsplit=1)[0] or text


def is_firm(own: Sequence[OwnSentence], number: int) -> bool:
    """Return whether a sentence is neither taken back nor doubted in its message, nor the one that does so."""
    text, before = own[number].bare, own[number - 1].bare if number else ""
    # “We don't use Kafka any more” says something itself.
    only_takes_back = vetoes.takes_back_before(text, before) and not takes_back(text, before)
    return not own[number].is_withdrawn and not only_takes_back


def read_beginning(message: str, count: int | None = TAKING_BACK_WITHIN) -> str:
    """The first own sentences of a message, in one line."""
    return " ".join(one.text for one in read_own_sentences(message)[:count])
