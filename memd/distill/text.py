"""Sentences of wrapped prose and the remover of markup; own words, offered options, titles and a quality score of plain text. Pure.

What people type is mixed with what they paste and with what tools, the client and memd itself insert. Rules
read a person's own sentences only, so everything else is removed first.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memd.belief import polarity
from memd.belief.polarity import count_telling_words, is_small_talk
from memd.caches import cached
from memd.distill.vetoes import SPEECH, begins_data, is_data
from memd.machine_text import CLIENT_TAGS, read_plan, strip_blocks
from memd.patterns import compile_lazily
from memd.text import WORD, first_word, fold, normalised, one_line, strip_emphasis, words
from memd.text import split_sentences as split_at_ends

TITLE_CHARACTERS = 90
QUOTE_CHARACTERS = 200

_READ_CHARACTERS = 20_000
_SHORT_WORDS, _SHORT_WORDS_CHARACTERS, _SHORT_CHARACTERS = 3, 40, 80
_TEXTS_CACHED = 512
"""Texts of which the sentences are kept: many rules read the same prompts and answers."""

OWN_TAGS = ("recalled-memory", "system-reminder")
"""Blocks that memd or the client injects."""
_FENCE = compile_lazily(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CLOSING_TAG = compile_lazily(r"</([a-zA-Z][\w-]{2,40})>")
_QUOTES = compile_lazily(r"`[^`\n]*`|\"[^\"\n]*\"|“[^“”\n]*”|«[^«»\n]*»")
"""Quoted text. A quotation contains no mark that opens one, so a search for its end never starts over."""
_BULLET = compile_lazily(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_ASKING_WORDS = SPEECH.list_words("asking")
"""Words that begin a question, though no question mark ends it; `when` and `don't` may begin an order, too."""
_LEADING_DASHES = compile_lazily(r"^(?:[ :;,]|[-–—]+(?:\s|$))+")
"""Dashes of a list or an aside, not those of `--force` or `-1`."""
_FULL_SCORE_WORDS = 60
_QUALITIES = {"has a file": 0.15, "has a name": 0.1, "has structure": 0.15, "has a reason": 0.2}
"""Pattern → what it is worth to a body."""


@cached(_TEXTS_CACHED)
def strip_injected(text: str, own_tags: tuple[str, ...] = OWN_TAGS) -> str:
    """The text without what memd and the client put into it; a block that was cut goes to its end."""
    return strip_blocks(text, (*own_tags, *CLIENT_TAGS))


def drop_fences(text: str) -> str:
    """The text without fenced code."""
    return _FENCE.sub("\n", text)


@cached(_TEXTS_CACHED)
def extract_own_words(text: str) -> str:
    """The speaker's words, without code, logs, quotations and pasted documents."""
    text = _strip_tagged_blocks(_FENCE.sub("\n", text[:_READ_CHARACTERS]))
    lines = []
    for line in text.split("\n"):
        if begins_data(line):
            break  # a document begins: its rules are not the speaker's
        lines.append("" if is_data(line) and not _BULLET.match(line) else line)
    return "\n".join(lines).strip()


def _strip_tagged_blocks(text: str) -> str:
    """The text without `<tag>…</tag>`. Looks only where a closing tag follows, so that it is linear."""
    for name in dict.fromkeys(_CLOSING_TAG.findall(text)):
        end = text.rfind(f"</{name}>") + len(name) + 3
        block = compile_lazily(rf"<{name}\b[^<>\n]{{0,200}}>.*?</{name}>", re.DOTALL)
        text = block.sub("\n", text[:end]) + text[end:]
    return text


@cached(_TEXTS_CACHED)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of wrapped prose: line breaks before a bullet or a blank line end one, others do not."""
    return tuple(itertools.chain.from_iterable(map(split_at_ends, _split_blocks(text))))


def _split_blocks(text: str) -> list[str]:
    """Paragraphs and list items, each with its lines joined."""
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if not line.strip() or _BULLET.match(line):
            blocks.append([])
        blocks[-1].append(_BULLET.sub("", line).strip())
    return [" ".join(lines).strip() for lines in blocks]


def blank_quotes(sentence: str) -> str:
    """The sentence with what stands in quotes or backticks blanked out, at the same positions."""
    return _QUOTES.sub(lambda match: " " * len(match.group()), sentence)


QUESTION_MARKS = ("?", "？", "؟", "\u037e")


def asks_by_mark(text: str) -> bool:
    """Return whether a text ends with the question mark of some script."""
    return text.rstrip("\"')”» \n").endswith(QUESTION_MARKS)


def is_question(sentence: str) -> bool:
    """Return whether this asks rather than says."""
    if sentence.rstrip("\"')”» ").endswith("?"):
        return True
    return first_word(sentence).replace("’", "'") in _ASKING_WORDS  # as people type it


def is_short(prompt: str) -> bool:
    """Return whether a prompt has too few words to name a piece of work, or one beside assent and courtesy."""
    text = prompt.strip()
    if "\n" in text or len(text) > _SHORT_CHARACTERS:
        return False
    if len(words(text)) <= _SHORT_WORDS:
        return len(text) <= _SHORT_WORDS_CHARACTERS
    return count_telling_words(text) <= 1


def is_command(prompt: str) -> bool:
    """Return whether a prompt is a slash command of the client."""
    return re.match(r"/[a-z][\w:-]*(?:\s|$)", prompt.strip()) is not None


def is_only_placeholders(text: str) -> bool:
    """Return whether nothing but redaction marks is left of a text."""
    return not normalised(SPEECH["placeholder"].sub(" ", text))


def strip_politeness(sentence: str) -> str:
    """The sentence without politeness at either end."""
    text = sentence.strip()
    before = ""
    while text != before:
        before = text
        for pattern in SPEECH.list_patterns("opening politeness"):
            if match := pattern.match(text):
                text = text[match.end() :].strip() or text
    return SPEECH["closing thanks"].sub("", text) or text


_TALKED_OF = polarity.list_folded("nouns of talk")
_TALK = (
    polarity.list_folded("interjections")
    | polarity.list_folded("fillers")
    | polarity.COURTESIES - {"no", "nope"}
) - {"and", "but", "wait", "sorry", "now", "currently", *_TALKED_OF}
_AROUND_TALK = polarity.list_folded("before nouns of talk") | {
    "and",
    "also",
    "by",
    "the",
    "as",
    "a",
    "an",
    "on",
}
_COMMA = re.compile(r"\s*[,:;–—-]")  # dashes as people type them
_OPENING_WORDS_MAX = 5


def find_opening_end(sentence: str) -> int:
    """Return where a sentence begins behind what only opens it: interjections, courtesies, “by the way”, “one more thing,”.

    That names nothing, and a comma may follow it: “in tests, …”, “for now, …” and “if so, …” limit what is said.
    """
    end, before = 0, ""
    for token, following in itertools.pairwise(
        itertools.islice(WORD.finditer(sentence), _OPENING_WORDS_MAX + 1)
    ):
        word = fold(token[0])
        is_apart = _COMMA.match(sentence, token.end()) is not None or before == "by the"
        if word in _TALK or (word in _TALKED_OF and before and is_apart):
            end, before = following.start(), ""
        elif word in _AROUND_TALK:
            before = f"{before} {word}".strip()
        else:
            break
    return end


def make_title(text: str, limit: int = TITLE_CHARACTERS) -> str:
    """Return the first sentence that says something, without politeness, as a title; of a plan its heading."""
    if plan := read_plan(text):
        return format_title(plan.subject, limit)
    candidates = [
        s for s in split_sentences(extract_own_words(text) or text) if not is_small_talk(s)
    ]
    for sentence in candidates or [text]:
        if not is_only_placeholders(sentence):
            return format_title(strip_politeness(sentence), limit)
    return ""


def format_title(sentence: str, limit: int = TITLE_CHARACTERS) -> str:
    """One line that begins with a capital and ends without a full stop."""
    line = one_line(sentence, limit).rstrip(" -–—:;,")  # dashes as people type them
    line = _LEADING_DASHES.sub("", line)
    line = line[:-1] if line.endswith(".") and not line.endswith("..") else line
    first = line.split(maxsplit=1)[0] if line else ""
    is_name = any(c in first for c in "_./\\`=(") or any(c.isupper() for c in first[1:])
    return line if is_name else line[:1].upper() + line[1:]


def clip(text: str, limit: int) -> str:
    """The text, cut after `limit` characters at a word, with the cut said by an ellipsis."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[: max(limit - 1, 0)]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > limit * 2 // 3 else cut).rstrip() + "…"


def clip_quote(text: str) -> str:
    """A source's words for `mem_why`: on one line, bounded."""
    return one_line(text, QUOTE_CHARACTERS)


def score_quality(body: str) -> float:
    """The quality of a body, 0 to 1, by its length, names, structure and reasons."""
    count = sum(1 for _ in itertools.islice(WORD.finditer(body), _FULL_SCORE_WORDS))
    score = 0.15 + 0.25 * (count / _FULL_SCORE_WORDS)
    found = (worth for name, worth in _QUALITIES.items() if SPEECH[name].search(body))
    return round(min(sum(found, start=score), 1.0), 3)


# ── Messages in Markdown ─────────────────────────────────────────────────────────────────────────

Form = Literal["heading", "sentence", "item"]
_MESSAGE_CHARACTERS = 12_000
_STATEMENTS_MAX = 80
_LINES_CACHED = 1_024
"""Lines that are kept without markup: a message is read again with those around it."""
_ENDS = (".", "!", "?", ":", "…", "。", "！", "？")
_FENCE_LINE = compile_lazily(r"^\s*(?:```|~~~)")
_HEADING_LINE = compile_lazily(r"^\s*#{1,6}\s+(.+?)\s*#*$")
_BOLD_LINE = compile_lazily(r"^\s*(?:\d{1,2}[.)]\s+)?\*\*([^*]+?)\*\*:?\s*$")
_ITEM = compile_lazily(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?")
_NO_PROSE = compile_lazily(
    r"^\s*(?:\||>|\"[\w-]+\":|[{}\[\]]+,?\s*$|[-=*_─━═]{3,}\s*$|[\u2500-\u257f])"
)  # tables, quotes, JSON, rules, boxes
_BOX = compile_lazily(r"^\s*`?[^\w\s`]*\s*\w[\w ]{2,30}\s*[-=*_─━═]{8,}`?\s*$")
_RULE = compile_lazily(r"^\s*`?[-=*_─━═]{8,}`?\s*$")
"""`★ Insight ─────` and the rule under it: a lesson in a box, beside what was done."""
_BOLD_HEAD = compile_lazily(r"^\*\*([^*\n]{3,60}?)(?:\.\*\*|\*\*\.)\s+(?=\w)")
"""`**No more pulsing.** The cue …`: how an item of a list is called."""
_LINK = compile_lazily(r"!?\[([^\]\n]{1,300})\]\([^)\n]{0,500}\)")
_LEADING_SIGNS = compile_lazily(r"^(?:(?!\*+[^\s*])[^\w`\"'“(\[<@#./~$+-])+\s*")
"""Bullets, arrows, emoji; but not the beginning of `**kwargs` or `*.tmp`."""
_EMPHASIS_SIGN = "\ue000"
"""Stands for a mark of emphasis while a paragraph is split: no sentence ends at `**Note.**`."""
_NUMBERING = compile_lazily(r"^(?:\d{1,2}[.)]|step \d+:|[a-h]\))\s+(?=\S)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a message says, on one line."""

    text: str
    form: Form
    position: int
    """Its number within the message, from 0."""
    leads: bool = False
    """It ends with a colon: what follows says the rest."""


def read_statements(message: str) -> list[Statement]:
    """The statements of a message, in order, without code, tables and quotations; bounded."""
    found: list[Statement] = []
    for form, text in _split_prose(message[:_MESSAGE_CHARACTERS]):
        marked = strip_emphasis(text, _EMPHASIS_SIGN)
        for one in [marked] if form == "heading" else split_sentences(marked):
            plain = strip_markup(one.replace(_EMPHASIS_SIGN, ""))
            if any(c.isalnum() for c in plain):
                found.append(Statement(plain.rstrip(":"), form, len(found), plain.endswith(":")))
        if len(found) >= _STATEMENTS_MAX:
            break
    return found[:_STATEMENTS_MAX]


@cached(_LINES_CACHED)
def strip_markup(text: str) -> str:
    """One line of Markdown as plain text; backticks stay, since they mark names."""
    text = strip_emphasis(_LINK.sub(r"\1", text))
    return _NUMBERING.sub("", _LEADING_SIGNS.sub("", " ".join(text.split())))


def _split_prose(message: str) -> Iterator[tuple[Form, str]]:
    """(form, text) of each heading, paragraph and item."""
    form: Form = "sentence"
    lines: list[str] = []
    is_code = is_box = False
    for line in (*message.split("\n"), ""):
        if _FENCE_LINE.match(line):
            is_code = not is_code
            if lines and is_code:
                # What code follows leads to it, as with a colon, if no sentence ended there.
                said = " ".join(lines)
                yield form, said if said.endswith(_ENDS) else f"{said}:"
                form, lines = "sentence", []
            continue
        if not is_code and (_RULE.match(line) or _BOX.match(line)):
            is_box = not is_box and _RULE.match(line) is None
            continue
        if is_code or is_box or _NO_PROSE.match(line):
            continue
        heading = _HEADING_LINE.match(line) or _BOLD_LINE.match(line)
        item = _ITEM.match(line)
        if lines and (heading or item or not line.strip()):
            yield form, " ".join(lines)
            form, lines = "sentence", []
        if heading:
            yield "heading", heading[1]
        elif line.strip():
            form = "item" if item else form
            own = _BOLD_HEAD.sub(r"\1 — ", line[item.end() :]) if item else line
            lines.append(own.strip())


_OPTIONS_MAX, _OPTION_CHARACTERS, _OFFERS_READ = 12, 700, 24_000
_MESSAGES_CACHED = 64
"""Messages of which the options are kept: they are read before their answer, with it and after it."""
_QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_NAMED = r"(?:option|approach|alternative|variant|solution|choice|plan|strategy|path|possibility|idea|variante|möglichkeit)"
_BEFORE_LABEL = r"(?:#{1,6}[ \t]+|[-*•][ \t]+|\|[ \t]*)?"
_LABEL = (
    rf"(?P<name>{_NAMED})[ \t]+[(\[]?(?P<named>[A-Za-z]|\d{{1,2}})\b[)\].:]?"
    r"|[(\[]?(?P<letter>[A-Za-z])[).\]]|[(\[]?(?P<number>\d{1,2})[)\].:]"
)
_BOLD, _DASH = r"(?:\*\*|__)?", r"[—–:|-]?"  # dashes as people type them
_LABELLED = re.compile(
    rf"^[ \t]*{_BEFORE_LABEL}{_BOLD}[ \t]*(?:{_LABEL}){_BOLD}[ \t]*{_DASH}[ \t]*{_BOLD}[ \t]*(?P<text>\S.*)$",
    re.IGNORECASE,
)
_NEXT_BLOCK = re.compile(r"\s*(?:#{1,6}\s|---|\*\*\S)")
_INSIDE = re.compile(r"\s+\S|\s*[-*•]\s")
_TAKEN = re.compile(r"(?:^|\s|[(#])(?P<label>[A-Za-z]|\d{1,2})(?=[\s,.;:!)\]]*$)")
"""The label with which a short answer ends."""
_LINES_AFTER = 12
"""Lines after a list in which the question stands that it answers."""


@cached(_MESSAGES_CACHED)
def read_options(message: str) -> tuple[tuple[str, str], ...]:
    """(label, text) of the last list of options in a message: one that is named so, else one that a question stands at.

    A label is `2` or `b`, in lower case; a text is whole, without markup, on one line.
    """
    lines = _QUOTED.sub("", drop_fences(message[-_OFFERS_READ:])).split("\n")
    found: tuple[tuple[str, str], ...] = ()
    is_named = False
    for run in _split_runs(lines):
        first, last = run[0][0], run[-1][0]
        around = " ".join((*lines[max(0, first - 2) : first], *lines[last : last + _LINES_AFTER]))
        names_options = bool(run[0][1]["name"])
        if names_options or ("?" in around and not is_named):
            found, is_named = tuple(_make_options(lines, run)), names_options or is_named
    return found


def list_labelled(message: str) -> list[str]:
    """The lines of a message that are labelled one after the other, without their labels."""
    runs = _split_runs(drop_fences(message[-_OFFERS_READ:]).split("\n"))
    return [match["text"] for run in runs for _, match in run]


def find_taken(said: str, before: str) -> str:
    """The option of the message `before` that a short answer takes by its label; empty if it takes none."""
    match = _TAKEN.search(said.strip()) if is_short(said) else None
    return dict(read_options(before)).get(match["label"].lower(), "") if match else ""


_Mark = tuple[int, re.Match[str]]


def _split_runs(lines: Sequence[str]) -> Iterator[list[_Mark]]:
    """Yield the runs of labels that count on: 1, 2, 3 or A, B, C."""
    marked = [(i, match) for i, line in enumerate(lines) if (match := _LABELLED.match(line))]
    for is_named in (False, True):
        run: list[_Mark] = []
        for mark in (one for one in marked if bool(one[1]["name"]) is is_named):
            label = _read_label(mark[1])
            if run and label == _count_on(_read_label(run[-1][1])):
                run.append(mark)
                continue
            if len(run) > 1:
                yield run
            run = [mark] if label in ("1", "a") else []
        if len(run) > 1:
            yield run


def _read_label(match: re.Match[str]) -> str:
    return (match["named"] or match["letter"] or match["number"]).lower()


def _count_on(label: str) -> str:
    return str(int(label) + 1) if label.isdigit() else chr(ord(label) + 1)


def _make_options(lines: Sequence[str], run: Sequence[_Mark]) -> Iterator[tuple[str, str]]:
    ends = [number for number, _ in run[1:]] + [_find_list_end(lines, run[-1][0])]
    for (number, match), end in itertools.islice(zip(run, ends, strict=True), _OPTIONS_MAX):
        rest = " ".join(line.strip() for line in lines[number + 1 : end])
        plain = _LABELLED.match(strip_emphasis(lines[number])) or match
        text = one_line(strip_markup(f"{plain['text']} {rest}"), _OPTION_CHARACTERS)
        yield _read_label(match), text


def _find_list_end(lines: Sequence[str], start: int) -> int:
    """The line after the last option: a heading, or a blank line that no indented or listed line follows."""
    for number in range(start + 1, len(lines)):
        is_after_heading = lines[start].lstrip().startswith("#") and number == start + 1
        following = lines[number + 1] if number + 1 < len(lines) else ""
        is_blank = not lines[number].strip() and not is_after_heading
        if _NEXT_BLOCK.match(lines[number]) or (is_blank and not _INSIDE.match(following)):
            return number
    return len(lines)
