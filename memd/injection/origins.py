"""Decide which words of a memory may be shown unasked, by who said them first in its session.

A memory of an agent's answer may repeat what a page, a file, a test or an error said, and would say it as the agent's
word to every later session. The record tells them apart: a run of words belongs to whoever said it first, and to the
user in any case. So of a line that is shown unasked

- a run of words that a tool brought is left out, and with it the line, unless it is a part of a prompt;
- a command stands only if the user typed it or the agent ran it with success;
- a longer quotation or piece of code stands only if the user or the agent wrote it;
- a name stands, shortened to the length of a name.

Where no event of the session is on record (another device's, a teammate's), the rules about form apply alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from memd.belief.standing import is_pinned_by_user
from memd.capture.truncate import fold_plainly, split_units, squeeze, weigh_unit
from memd.injection import lines
from memd.injection.breaches import PROGRAMS
from memd.injection.choice import CandidateChoice, CandidateGroup
from memd.injection.prompt_gate import MATCHED_MIN, OF_ERROR, GatedHit, squeeze_error
from memd.injection.session_record import SessionRecord, read_record
from memd.models import Authority, Summary
from memd.patterns import compile_lazily
from memd.recall.hits import make_snippet
from memd.recall.query import QueryTerms
from memd.store import ContextCandidate
from memd.store.database import Connection
from memd.store.events import TurnFilter, match_turns, sessions_around
from memd.text import is_stop_word, one_line, split_identifier, split_sentences, unique, words

UNTOLD = "its words are a tool's, a page's or a file's"
TEXTS_KEPT_MAX = 2_000
SILENCE_MAX_MS = 3_600_000
"""A session may have been silent for this long when its agent remembered something."""
SESSIONS_MAX = 4
"""Sessions of one time that are read."""
TURNS_MAX = 5
"""Earlier turns with the same words that are looked at."""
RUN_MIN = 5.0
"""Words in a row from which a run is somebody else's sentence, and no common turn of phrase."""
RUN_COUNTED_MIN = 3.0
COVERED_MAX = 0.5
"""A line of which shorter runs make up more than this share is somebody else's sentence, too."""
NAME_WORDS_MAX = 5
"""A name of more words reads like a sentence."""
PATH_WORDS_MAX = 12
"""Of a path of more words only the file is named."""
NAME_CHARACTERS_MAX = 60
NAMES_SHOWN_MAX = 3
QUOTED_WORDS_MAX = 3
GAP = "…"
"""Stands for what is left out."""
_SNIPPET_CHARACTERS = 450
_SNIPPET_BEGINNING = 50
"""Characters of a snippet by which it is found in the memory's body."""
_CODE_SPAN = compile_lazily(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_QUOTATION = compile_lazily(
    r'"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|「([^」]+)」|『([^』]+)』'
)
_URL = compile_lazily(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]]+", re.IGNORECASE)
_SHELL_SIGN = compile_lazily(
    r"\S\s+--?[A-Za-z][\w-]*|\|\s*\w|&&|\$\(|(?:^|[;&|]\s*)(?:sudo\s|\.{1,2}/)\S|>\s*/"
)
"""What only a command line has: options, pipes, lists, substitutions, a program by its path."""
_PROGRAMS = PROGRAMS.list_words("programs")
_TOOLS = PROGRAMS.list_words("named like words")
_WORDS = PROGRAMS.list_words("named like verbs")
_ARGUMENT = compile_lazily(r"-{1,2}[A-Za-z]|\S*/\S|\S+\.\w|\S+@\S")
_SUBCOMMANDS = PROGRAMS.list_words("subcommands")
_LONG_NAME = compile_lazily(r"[^\s`\"“”()\[\],;]{12,}")
"""What may have more than five words of two letters or more."""
_NAME_PART = compile_lazily(r"[^_\-./\\:]+")
_FILE_NAME = compile_lazily(r"[^\s`\"'()\[\],;]*(?:[/\\]|\.[A-Za-z]\w{0,4}\b)[^\s`\"'()\[\],;]*")
_ERROR_NAME = compile_lazily(
    r"\b(?:[A-Z]\w*(?:Error|Exception|Warning)|[A-Z]{1,8}-?\d{3,5}|[\w@+-][\w./@+-]*\.\w{1,5}(?::\d+)*)\b"
)
"""The class or code of an error, and a file with its line."""


# ── Telling ──────────────────────────────────────────────────────────────────────────────────────


Memory = ContextCandidate | Summary
ToldTexts = dict[tuple[int, str], str]
"""(memory, text of it) → what of that may be shown, for the next session that begins."""


def _is_by_hand(one: Memory) -> bool:
    """Return whether a user of this vault entered all of a memory by hand, or pinned it."""
    is_pinned = one.is_pinned_by_user if isinstance(one, ContextCandidate) else is_pinned_by_user(one)  # fmt: skip
    return is_pinned or (one.authority >= Authority.USER_HAND and not one.author)


def _is_of_file(one: Memory) -> bool:
    """Return whether a memory comes from an imported file."""
    is_least = one.authority is Authority.TOOL_OUTPUT and one.source.startswith("import:")
    return is_least or one.source == "import:markdown"


class OriginReader:
    """Decides what of memories may be shown, with the records of one vault."""

    def __init__(self, tx: Connection, found: ToldTexts, prompt: str = "") -> None:
        """`found`: what was found before; the user's `prompt` is the user's word, too."""
        self._tx = tx
        self._found = found
        self._prompt = squeeze(prompt)
        self._records: dict[tuple[int, ...], SessionRecord | None] = {}

    def tell(self, memory: Memory, text: str) -> str:
        """Return what may be shown of a text of this memory; empty if nothing may."""
        if _is_by_hand(memory) or self._is_in_prompt(text):
            return text
        key = memory.id, text
        if key not in self._found:
            if len(self._found) >= TEXTS_KEPT_MAX:
                self._found.clear()
            self._found[key] = self._tell(memory, text)
        return self._found[key]

    def is_name(self, memory: Memory, path: str) -> bool:
        """Return whether a path of a memory looks like a file's name, and not like a sentence."""
        name = re.split(r"[/\\]", path)[-1]
        return _is_by_hand(memory) or (
            len(name.split()) <= QUOTED_WORDS_MAX and shorten_name(name) == name
        )

    def _tell(self, memory: Memory, text: str) -> str:
        if _is_of_file(memory):
            return ""
        if memory.authority is Authority.TOOL_OUTPUT:
            return _tell_names(text)
        sessions = self._find_sessions(memory, text)
        record = self._find_record(sessions)
        if record is None and memory.authority >= Authority.USER_PROMPT and not memory.author:
            return text  # said on another device, where the record is
        if told := tell_text(text, record or SessionRecord()):
            return told
        label = OF_ERROR.match(text)
        names = _tell_names(text) if label else ""
        return label[0] + names if label and names else ""

    def _find_sessions(self, memory: Memory, text: str) -> tuple[int, ...]:
        """Find the sessions of a memory: its own, or those that ran when an agent noted it, and earlier ones that said its words.

        memd itself may have shown those to its own session; who said them first, said them first in the project.
        """
        if memory.session_id is not None:
            own = [memory.session_id]
        elif memory.author:
            own = []
        else:
            since = memory.at - SILENCE_MAX_MS
            own = sessions_around(self._tx, memory.project_id, since, memory.at, SESSIONS_MAX)
        said = words(text)
        starts = range(0, max(1, len(said) - int(RUN_MIN) + 1), 2)
        phrases = (" ".join(said[at : at + int(RUN_MIN)]) for at in starts)
        sought = " OR ".join(f'"{phrase}"' for phrase in phrases if phrase)
        where = TurnFilter((memory.project_id,), until=memory.at)
        found = match_turns(self._tx, sought, where, TURNS_MAX) if sought else []
        return tuple(dict.fromkeys((*own, *(one.session_id for one in found))))

    def _find_record(self, sessions: tuple[int, ...]) -> SessionRecord | None:
        if sessions not in self._records:
            self._records[sessions] = read_record(self._tx, sessions)
        return self._records[sessions]

    def _is_in_prompt(self, text: str) -> bool:
        """Return whether the prompt has an error's text word for word; a title also names its place."""
        said = squeeze_error(text)
        return len(said) >= MATCHED_MIN and said in self._prompt


def tell_text(text: str, record: SessionRecord) -> str:
    """Return what may be shown of a text that the agent wrote; empty if nothing may."""
    if record.is_typed(text):
        return text
    told = _QUOTATION.sub(lambda found: _tell_quotation(found, record), text)
    parts: list[str] = []
    at = 0
    for span in _CODE_SPAN.finditer(told):
        kept = _tell_code(span[2].strip(), record)
        if kept is None:
            return ""
        parts += [told[at : span.start()], f"`{kept}`"]
        at = span.end()
    told = "".join((*parts, told[at:]))
    prose = _CODE_SPAN.sub(lambda s: s[0] if " " not in s[2] else " ", told)
    if _has_loose_command(_CODE_SPAN.sub(" ` ", told), record) or is_others_sentence(prose, record):
        return ""
    told = _URL.sub(lambda found: found[0] if record.has_word(found[0]) else GAP, told)
    told = _LONG_NAME.sub(lambda found: _tell_name(found[0], record), told)
    return told if len(words(told)) > 1 or told == text else ""


def is_others_sentence(prose: str, record: SessionRecord) -> bool:
    """Return whether a text has words that a tool output before the agent wrote them, or a sentence that retells them."""
    sentences = split_sentences(prose)
    if any(record.is_retold(split_units(_FILE_NAME.sub(" ", one))) for one in sentences):
        return True
    units = split_units(_FILE_NAME.sub(" ", prose))
    weights = [weigh_unit(unit) for unit in units]
    if any(record.is_outside(run) for run in _list_long_runs(units, weights)):
        return True
    sources = record.find_sources(units)
    covered, start = 0.0, 0
    while start < len(units):
        end, weight = start, 0.0
        while end < len(units) and weight < RUN_COUNTED_MIN:
            weight += weights[end]
            end += 1
        if weight < RUN_COUNTED_MIN or not record.is_outside(units[start:end], sources):
            start += 1
            continue
        while end < len(units) and record.is_outside(units[start : end + 1], sources):
            weight += weights[end]
            end += 1
        covered += weight
        start = end
    return covered > COVERED_MAX * sum(weights)


def _list_long_runs(units: Sequence[str], weights: Sequence[float]) -> Iterator[Sequence[str]]:
    """The runs of words that are long enough to be no common phrase."""
    end, weight = 0, 0.0
    for start in range(len(units)):
        while end < len(units) and weight < RUN_MIN:
            weight += weights[end]
            end += 1
        if weight < RUN_MIN:
            return
        yield units[start:end]
        weight -= weights[start]


def _tell_name(name: str, record: SessionRecord) -> str:
    short = shorten_name(name)
    return name if short == name or record.is_typed(name) else short


def _tell_quotation(found: re.Match[str], record: SessionRecord) -> str:
    inner = next(filter(None, found.groups()))
    is_short = sum(map(weigh_unit, split_units(inner))) <= QUOTED_WORDS_MAX
    if is_short or record.is_typed(inner) or record.code.find(squeeze(inner)) is not None:
        return found[0]
    return found[0].replace(inner, GAP)


def _tell_code(code: str, record: SessionRecord) -> str | None:
    """Return what is shown of a code span; None if it is a command that nothing backs."""
    if record.is_typed(code):
        return code
    if not any(map(str.isspace, code)):
        is_link = _URL.search(code) is not None
        return GAP if is_link and not record.has_word(code) else shorten_name(code)
    if record.has_run(code):
        return code
    if is_command(code):
        return None
    return code if record.code.find(squeeze(code)) is not None else GAP


def is_command(code: str) -> bool:
    """Return whether a piece of code is a command line, by its form."""
    code = fold_plainly(code)
    first = code.lstrip("$ ").split(maxsplit=1)[0]
    is_program = first in _PROGRAMS | _TOOLS | _WORDS
    return is_program or _SHELL_SIGN.search(code) is not None or _URL.search(code) is not None


def _has_loose_command(prose: str, record: SessionRecord) -> bool:
    """Return whether a command stands in a text without being marked as one, and nothing backs it."""
    prose = fold_plainly(prose)
    if re.search(r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|&&|\$\(", prose):
        return not record.is_typed(prose)
    chunks = prose.split()
    for number, chunk in enumerate(chunks):
        name = chunk.strip(".,;:!?()[]{}'\"")
        rest = [one.strip(".,;:!?()[]{}'\"") for one in chunks[number + 1 : number + 4]]
        if not rest or not rest[0] or chunk.endswith((".", ";", ":", "!", "?", ",")):
            continue
        is_argument = _ARGUMENT.match(rest[0]) is not None
        is_loose = (
            (name in _WORDS and is_argument)
            or (name in _TOOLS and (is_argument or rest[0] in _SUBCOMMANDS))
            or (name in _PROGRAMS and not is_stop_word(rest[0]))
        )
        is_run = any(run[:2] == (name, rest[0]) for run in record.runs)
        if is_loose and not is_run and not record.is_typed(f"{name} {rest[0]}"):
            return True
    return False


def shorten_name(name: str) -> str:
    """A name at a name's length; what reads like a sentence is cut after its third word."""
    ends = [
        part.start() + found.end()
        for part in _NAME_PART.finditer(name)
        for found in re.finditer(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+", part[0])
        if len(found[0]) > 1
    ]
    last = re.split(r"[/\\]", name)[-1]
    if last != name and _count_words(re.sub(r"[/\\]", "-", name)) > PATH_WORDS_MAX:
        return f"{GAP}/{shorten_name(last)}"
    is_long = any(_count_words(one) > NAME_WORDS_MAX for one in re.split(r"[/\\]", name))
    if not is_long and len(last) <= NAME_CHARACTERS_MAX:
        return name
    return name[: ends[2]] + GAP if is_long and len(ends) > 2 else GAP  # noqa: PLR2004  # three words


def _count_words(name: str) -> int:
    parts = (one for part in re.split(r"[_\-.:]", name) for one in split_identifier(part))
    return sum(len(one) > 1 and not one.isdigit() for one in parts)


def _tell_names(text: str) -> str:
    """The names in an error's or a file's text, in backticks: which error, where."""
    text = _URL.sub(" ", text)
    spans = (found[2].strip() for found in _CODE_SPAN.finditer(text))
    named = (found[0] for found in _ERROR_NAME.finditer(text))
    names = unique(shorten_name(one) for one in (*named, *spans) if one and " " not in one)
    return ", ".join(f"`{one}`" for one in names[:NAMES_SHOWN_MAX] if one != GAP)


# ── Of memories that are chosen ──────────────────────────────────────────────────────────────────


def choose_told(
    groups: Sequence[CandidateGroup],
    choose: Callable[[Sequence[CandidateGroup]], list[CandidateChoice]],
    told: dict[int, ContextCandidate],
    reader: OriginReader,
) -> tuple[list[CandidateChoice], list[CandidateChoice]]:
    """Return (what `choose` chooses of what may be shown, what it would have chosen); `told` gets the words of both.

    Only what is chosen is looked up, and what may not be shown makes room for others.
    """
    refused: list[CandidateChoice] = []
    while True:
        choices = choose(groups)
        new = [one for one in choices if one.is_shown and one.candidate.id not in told]
        if not new:
            return choices, refused
        told |= {one.candidate.id: tell_card(one.candidate, reader) for one in new}
        refused += [
            replace(c, is_shown=False, why=UNTOLD) for c in new if not told[c.candidate.id].title
        ]
        ids = {one.candidate.id for one in refused}
        groups = [
            replace(group, candidates=tuple(c for c in group.candidates if c.id not in ids))
            for group in groups
        ]


def tell_remark(card: ContextCandidate, reader: OriginReader) -> str:
    """Return the remark that tells a memory from another one with its title, if that may be shown."""
    return reader.tell(card, card.remark) if card.remark else ""


def tell_card(card: ContextCandidate, reader: OriginReader) -> ContextCandidate:
    """The card with the words that may be shown; without a title if none may."""
    title = next(
        filter(None, (_tell_statement(card, one, reader) for one in lines.write_statements(card))),
        "",
    )
    files = tuple(path for path in card.edited if reader.is_name(card, path))
    left_open = tuple(filter(None, (reader.tell(card, one) for one in card.left_open)))
    return replace(card, title=title, edited=files, left_open=left_open)


def _tell_statement(card: ContextCandidate, said: str, reader: OriginReader) -> str:
    title = reader.tell(card, said)
    # Half of a report tells nothing.
    return "" if card.kind in lines.OUTCOME_KINDS and GAP in title and title != said else title


def tell_offers(
    offers: Iterable[GatedHit], terms: QueryTerms, reader: OriginReader
) -> tuple[list[GatedHit], dict[int, tuple[str, str]]]:
    """Return (the hits without those whose words may not be shown, id → title and snippet of the others)."""
    kept: list[GatedHit] = []
    told: dict[int, tuple[str, str]] = {}
    for one in offers:
        summary = one.hit.summary
        title = reader.tell(summary, summary.title) if one.is_shown else ""
        if title:
            sentences = _list_sentences(
                summary.body, make_snippet(summary.title, one.hit.snippet, terms)
            )
            said = (reader.tell(summary, sentence) for sentence in sentences)
            told[summary.id] = title, one_line(" ".join(filter(None, said)), _SNIPPET_CHARACTERS)
        kept.append(replace(one, is_shown=False, why=UNTOLD) if one.is_shown and not title else one)
    return kept, told


def _list_sentences(body: str, snippet: str) -> list[str]:
    """The sentences of a body from where a snippet of it begins; those of the snippet if it is not a part of it."""
    begins = snippet[:_SNIPPET_BEGINNING].rstrip("…")
    found: list[str] = []
    length = 0
    for line in body.split("\n"):
        for sentence in split_sentences(" ".join(line.split())):
            found += (
                [sentence] if found or sentence.startswith(begins) or begins in sentence else []
            )
            length += len(sentence) if found else 0
            if length > _SNIPPET_CHARACTERS:
                return found
    return found or list(split_sentences(snippet))
