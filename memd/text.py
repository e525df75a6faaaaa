"""Tokenizer, stemmer, stop words. Pure.

The lexical index, the hashing embedder, consolidation and the query parser must agree on what a word is. A token is a
run of letters, digits and underscores; an identifier (`decode_token`, `getUserById`, `HTTPServer2`) is indexed whole
and by its parts. Words are lower-cased, stripped of diacritics and stemmed by Snowball's stemmer: English in Latin
letters, and beside it that of the text's language if it is another one; Russian in Cyrillic ones and so on. Runs of
different scripts are words of their own; in scripts without spaces the pairs of characters are.
"""

import functools
import hashlib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memd.caches import cached
from memd.languages import (
    MARKS,
    detect_text_languages,
    has_unspaced,
    is_particle,
    language_of_alphabet,
    split_pairs,
    split_scripts,
    stem_in,
)

_UNSEEN_SIGNS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
UNSEEN = re.compile(f"[{_UNSEEN_SIGNS}]|(?<=[\\x00-\\x7f])[\u200c\u200d]")
"""Controls, marks of direction, spaces without width, variation selectors and tags; joiners behind ASCII letters,
where they join nothing. U+FE0F, which makes an emoji of a sign, is left."""
MAYBE_UNSEEN = re.compile(f"[{_UNSEEN_SIGNS}\u200c\u200d]")
"""The same, and any joiner: one set of signs, which is found ten times as fast."""
TERMS_VERSION = 2
"""How texts become terms. It grows with every release in which that changes; then all memories are indexed again."""
STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been before being between both
    but by can could did do does doing done down for from further had has have having he her here hers
    him his how i if in into is it its itself just let like me more most my no nor not now of off on
    once only or other our ours out over own please s same she should so some such t than that the
    their theirs them then there these they this those through to too under until up us very was we
    were what when where which while who whom why will with would you your yours d ll m re ve don
    didn doesn isn wasn aren weren won wouldn shouldn couldn hasn haven hadn""".split()  # noqa: SIM905  # a page of quotes reads worse
)
"""Words without meaning of their own. They are indexed, but dropped from a query unless nothing else is left."""

_LETTERS = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
WORD = re.compile(
    r"[vV]?\d+(?:\.\d+)+"  # a version or a decimal number is one word
    rf"|{_LETTERS}(?:[_'’]{_LETTERS})*_*"
    rf"|(?<!_)_++{_LETTERS}(?:_{_LETTERS})*_*"
)
_ASCII_WORD = re.compile(
    r"[vV]?[0-9]+(?:\.[0-9]+)+|[A-Za-z0-9]+(?:[_'][A-Za-z0-9]+)*_*|(?<!_)_++[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*_*"
)
"""The same of ASCII, in two thirds of the time."""
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_APOSTROPHE = re.compile(r"['’]")
_SPLITS = re.compile(r"['’_]")
_ELISIONS = frozenset(
    "l d j m t s c n qu jusqu lorsqu puisqu quelqu dell nell all sull dall un quell quest".split()  # noqa: SIM905  # as below
)
"""What stands before an apostrophe in French and Italian and is no word: `l'erreur`."""
_ELIDED_LETTERS_MIN = 3
"""Letters behind the apostrophe: `don't` and `I'd` end there."""
_FOLDED_LETTERS = {
    "ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "\u0640": "", "\u200c": "", "\u200d": ""
}  # fmt: skip
"""Letters without a decomposition, the Arabic line that only stretches a word, and joiners."""
_FOLDED_LETTER = re.compile(f"[{''.join(_FOLDED_LETTERS)}]")
_DIACRITICS = re.compile(
    "["
    + "".join(
        chr(code)
        for first, end in ((0x300, 0x900), (0x1AB0, 0x1B00), (0x1DC0, 0x1E00), (0x20D0, 0x2100), (0xFE20, 0xFE30))
        for code in range(first, end)
        if unicodedata.combining(chr(code))
    )
    + "]+"
)  # fmt: skip
"""Combining signs that only change a letter of an alphabet. Marks of other scripts are vowels, voicings and tones, which
tell words apart."""
_VERSION = re.compile(r"[vV]?(\d+(?:\.\d+)+)")
_TOKEN_MAX = 64
_TOLD_BY_CHARACTERS = 500
"""The beginning of a text by which its language is told."""
_WORDS_CACHED = 16_384
"""Words in each cache, at some 170 bytes."""
_STOP_TESTS_CACHED = 2_048
"""Words of which it is known whether they are stop words: each word of a question is tested several times."""
_SENTENCES_CACHED = 2_048
_TITLES_CACHED = 4_096
"""Sentences of which the stems are kept: each sentence of a turn is compared with several others."""

PRIVATE = "[REDACTED:private]"
"""What redaction puts in place of text between `<private>` and `</private>`."""


def is_private(text: object) -> bool:
    """Return whether all of a redacted text was private."""
    if not isinstance(text, str) or PRIVATE not in text:
        return False
    return not any(c.isalnum() for c in text.replace(PRIVATE, ""))


def fold(text: str) -> str:
    """Lower-case, without diacritics, compatibility forms resolved."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    kept = _DIACRITICS.sub("", decomposed).casefold()
    # A pattern finds the few signs and letters many times as fast as a table looks all letters up.
    kept = _FOLDED_LETTER.sub(lambda letter: _FOLDED_LETTERS[letter[0]], kept)
    return unicodedata.normalize("NFC", kept)


@cached(_WORDS_CACHED)
def stem(word: str) -> str:
    """The Snowball English stem of one folded word; digits and long tokens stay as they are."""
    if len(word) > _TOKEN_MAX or not word.isalpha():
        return word[:_TOKEN_MAX]
    return stem_in("english", word)


@cached(_WORDS_CACHED)
def terms(token: str) -> tuple[str, ...]:
    """The index terms of one raw token: its stem, and those of its parts if it is an identifier.

    >>> terms("decode_token")
    ('decode_token', 'decod', 'token')
    """
    if version := _VERSION.fullmatch(token):
        return (version.group(1),)
    bare = token.strip("_")
    if not bare.isascii():
        bare = unicodedata.normalize("NFKC", bare)
        runs = split_scripts(bare)
        if len(runs) > 1 or has_unspaced(bare):
            return _terms_of_runs(bare, runs)
        if (language := language_of_alphabet(bare)) is not None:
            return tuple(
                dict.fromkeys(_stem_alphabet(p, language) for p in _SPLITS.split(bare) if p)
            )
    pieces = [piece for piece in _APOSTROPHE.split(bare) if piece]
    if len(pieces) > 1:
        # Both spellings: "user's" is found as "user", "O'Brien" as "obrien".
        whole = stem(fold("".join(pieces)))
        elided = terms(pieces[1]) if _is_elision(pieces) else ()
        return tuple(dict.fromkeys((stem(fold(pieces[0])), whole, *elided)))
    parts = [fold(part) for part in split_identifier(bare)]
    whole = stem(fold(bare)[:_TOKEN_MAX])
    if len(parts) <= 1:
        return (whole,) if whole else ()
    return tuple(dict.fromkeys((whole, *(stem(part) for part in parts if len(part) > 1))))


def without_elision(token: str) -> str:
    """The word behind `l'` and its like; any other token as it is."""
    pieces = _APOSTROPHE.split(token)
    return pieces[1] if len(pieces) > 1 and _is_elision(pieces) else token


def _is_elision(pieces: Sequence[str]) -> bool:
    return pieces[0].lower() in _ELISIONS and len(pieces[1]) >= _ELIDED_LETTERS_MIN


def _stem_alphabet(word: str, language: str) -> str:
    """The stem of a word in the language of its alphabet, folded."""
    return fold(stem_in(language, word[:_TOKEN_MAX].lower())) or fold(word)


def _terms_of_runs(bare: str, runs: Sequence[str]) -> tuple[str, ...]:
    """The terms of a word of several scripts, or of one without spaces."""
    found: list[str] = []
    for run in runs:
        if has_unspaced(run):
            found.extend(() if len(runs) > 1 and is_particle(run) else split_pairs(fold(run)))
        elif len(run) > 1 or len(runs) == 1:
            found.extend(terms(run))
    if not has_unspaced(bare):
        found.append(fold(bare)[:_TOKEN_MAX])
    return tuple(dict.fromkeys(term for term in found if term))


def stem_as(language: str, token: str) -> tuple[str, ...]:
    """The folded stem of a raw token in a language in Latin letters; nothing if it is no plain word."""
    pieces = _APOSTROPHE.split(token)
    word = pieces[1] if len(pieces) > 1 and _is_elision(pieces) else token
    if not word.isalpha() or len(word) > _TOKEN_MAX or len(terms(word)) > 1:
        return ()
    if not word.isascii() and language_of_alphabet(word) is not None:
        return ()
    found = fold(stem_in(language, word.replace("İ", "i").lower()))
    return (found,) if found else ()


@cached(_WORDS_CACHED)
def split_identifier(token: str) -> tuple[str, ...]:
    """The parts of `snake_case`, `camelCase`, `HTTPServer2`; one part if there is nothing to split."""
    if not token.isascii():
        return tuple(part for part in token.split("_") if part)
    return tuple(part for chunk in token.split("_") for part in _CAMEL.findall(chunk))


def words(text: str) -> list[str]:
    """The raw tokens of a text, in order, as written."""
    return (_ASCII_WORD if text.isascii() else WORD).findall(text)


def first_word(text: str) -> str:
    """The first raw token of a text, in lower case; empty if there is none."""
    match = WORD.search(text)
    return match.group().lower() if match else ""


def languages_of(text: str) -> tuple[str, ...]:
    """The languages that a text in Latin letters may be in; none if it is English. Its beginning tells."""
    return detect_text_languages(text[:_TOLD_BY_CHARACTERS].lower().split())


def stems(text: str, languages: Sequence[str] = ()) -> Iterator[str]:
    """Yield every index term of a text, in order, with repetitions; its words also stemmed as in these languages."""
    for token in words(text):
        found = terms(token)
        yield from found
        for language in languages:
            yield from (one for one in stem_as(language, token) if one not in found)


_SENTENCE_END = re.compile(
    # What is looked for first is one of these signs, which is found many times as fast as what may stand before it.
    r"[.!?。！？\n](?:"
    r"(?<=[.!?])(?<![.!?][.!?])(?!(?<=[\s(\[{/<=,]\.)\.)[.!?]*+[\"'”’»)\]]*+(?=\s+\S)"
    r"|(?<=[。！？])[。！？]*+[」』”）]*+|(?<=\n)\s*)"
)
"""Dots that stand at no word end nothing: `git diff a ... b`, `f(...)`, `./...`."""
_CODE_SPAN = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|etc|approx|incl|resp|Dr|Mr|Mrs|Ms|St|(?P<numbered>fig|no))\.$",
    re.IGNORECASE,
)
_GERMAN_MONTH = re.compile(
    r"\s(?:januar|jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)\b",
    re.IGNORECASE,
)
_ABBREVIATION_CHARACTERS = 12
"""Characters at the end of a text that decide it."""


def find_sentence_ends(text: str) -> Iterator[int]:
    """Yield the position after each sentence of a text; a line break ends one, an abbreviation or code does not."""
    start = 0
    code = [one.span() for one in _CODE_SPAN.finditer(text)] if "`" in text else []
    for match in _SENTENCE_END.finditer(text):
        end = match.start() if match[0][0] == "\n" else match.end()
        while code and code[0][1] <= match.start():
            del code[0]
        if code and code[0][0] < match.start():
            continue
        if end > start and not (match[0] == "." and _is_abbreviated(text, start, end)):
            yield end
            start = end
    if start < len(text) or not text:
        yield len(text)


def _is_abbreviated(text: str, start: int, end: int) -> bool:
    """Return whether a full stop belongs to an abbreviation: “No. 5”, but not “No. Use the other one.”; or to a German date."""
    if text[end - 2 : end - 1].isdigit() and _GERMAN_MONTH.match(text, end):
        return True
    # The end alone: a text of abbreviations would be read again at each of them.
    found = _ABBREVIATION.search(text, max(start, end - _ABBREVIATION_CHARACTERS), end)
    is_numbered = found is not None and found["numbered"] is not None
    return found is not None and (not is_numbered or text[end : end + 3].lstrip()[:1].isdigit())


@cached(_SENTENCES_CACHED)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, without the space around them."""
    ends = (0, *find_sentence_ends(text))
    found = (text[start:end].strip() for start, end in itertools.pairwise(ends))
    return tuple(filter(None, found))


_END_MARKS = re.compile(r"(?<=[\w)\]\"'”’»`%…])(?:[.?!]+|\s[?!]+)$")


def strip_end(text: str) -> str:
    """The text without the marks that end its sentence; those of `./...`, `cd ..` and `add .` stay."""
    return _END_MARKS.sub("", text.rstrip())


_MARK_RUN = re.compile(
    _CODE_SPAN.pattern + r"|\\[*_~\\]"  # what is no mark
    r"|(?P<run>\*+|~~|(?<!\w)_{1,2}(?=[^\W_])|(?<=[^\W_])_{1,2}(?!\w))"
)
_OPENS_AFTER = frozenset("([{\"'“‘«‹„`-:;,*_~")
"""Signs behind which emphasis may begin; in `(a)*(b)` or `src/**` it may not."""
_CLOSES_BEFORE = frozenset(")]}\"'`-.,;:!?*_~")
_BEGINS_NONE, _ENDS_NONE = frozenset(")]}\\=,;:!?>|"), frozenset("([{\\=<|@#$&")
"""Signs with which nothing that is emphasised begins, or ends."""
_OPENERS_MAX = 16
"""Marks before a closing one among which its partner is looked for."""


def find_emphasis(text: str) -> list[slice]:
    """Find the marks of Markdown around what is emphasised or struck out, in order.

    CommonMark's delimiter runs, but stricter, since a text may be none of Markdown: a mark within a word or a number
    (`2**n`), at a slash (`src/**`), across a bracket (`*a) * b*`) or around a name (`__init__`) is text.
    """
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        if any(mark in line for mark in "*_~"):
            found += [(start + one, start + end) for one, end in _find_line_emphasis(line)]
        start += len(line) + 1
    return [slice(*span) for span in sorted(found)]


def _find_line_emphasis(line: str) -> Iterator[tuple[int, int]]:
    openers: list[tuple[int, int]] = []
    for match in _MARK_RUN.finditer(line):
        if match["run"] is None:
            continue
        start, end = match.span("run")
        opens, closes = _flanks_text(line, start, end)
        while closes and start < end:
            place = _find_opener(line, openers, start, end, is_both=opens)
            if place is None:
                break
            first, last = openers[place]
            size = 2 if min(last - first, end - start) > 1 else 1
            inner = line[last:start]
            if line[start] != "_" or (" " in inner if size > 1 else inner.isalpha()):
                yield from ((last - size, last), (start, start + size))
            openers[place:] = [(first, last - size)] if first < last - size else []
            start += size
        if opens and start < end:
            openers = [*openers[1 - _OPENERS_MAX :], (start, end)]


def _find_opener(
    line: str, openers: Sequence[tuple[int, int]], start: int, end: int, *, is_both: bool
) -> int | None:
    """Find the nearest run that this one closes."""
    for place in reversed(range(len(openers))):
        first, last = openers[place]
        inner, sizes = line[last:start], (last - first, end - start)
        is_odd = is_both and sum(sizes) % 3 == 0 and any(size % 3 for size in sizes)
        is_one = line[first] == line[start] and not is_odd
        if is_one and all(
            inner.count(pair[0]) == inner.count(pair[1]) for pair in ("()", "[]", "{}")
        ):
            return place
    return None


def _flanks_text(line: str, start: int, end: int) -> tuple[bool, bool]:
    """Return whether emphasis may begin with a run of marks, and whether it may end with it."""
    before, after = line[start - 1 : start] or " ", line[end : end + 1] or " "
    is_word = [one.isalnum() and not has_unspaced(one) for one in (before, after)]
    if all(is_word) or "/" in (before, after):
        return False, False
    opens = before.isspace() or before in _OPENS_AFTER or not (before.isascii() or is_word[0])
    closes = after.isspace() or after in _CLOSES_BEFORE or not (after.isascii() or is_word[1])
    opens &= not (after.isspace() or after in _BEGINS_NONE or (after == "." and end - start == 1))
    closes &= not (before.isspace() or before in _ENDS_NONE)
    return opens, closes


def strip_emphasis(text: str, by: str = "") -> str:
    """Return a text of Markdown without the marks around what is emphasised or struck out; `by` stands for each."""
    for mark in reversed(find_emphasis(text)):
        text = text[: mark.start] + by + text[mark.stop :]
    return text


@cached(_STOP_TESTS_CACHED)
def is_stop_word(token: str) -> bool:
    """Return whether a raw token is a stop word: `the`, `didn't`."""
    folded = fold(token)
    pieces = _APOSTROPHE.split(folded)
    if len(pieces) > 1 and _is_elision(pieces):
        return pieces[1] in STOP_WORDS
    return folded in STOP_WORDS or pieces[0] in STOP_WORDS


@cached(_SENTENCES_CACHED)
def content_stems(text: str) -> tuple[str, ...]:
    """The terms of a text without stop words; all of them if nothing else is left."""
    tokens = words(text)
    kept = [token for token in tokens if not is_stop_word(token)]
    return tuple(term for token in (kept or tokens) for term in terms(token))


@functools.lru_cache(_TITLES_CACHED)
def list_stems(text: str) -> tuple[str, ...]:
    """Return the content of a text, each stem once, in order.

    What is kept stays when the other caches are emptied: each prompt asks for the same thousand titles.
    """
    return tuple(dict.fromkeys(content_stems(text)))


def one_line(text: str, limit: int) -> str:
    """The text on one line of at most `limit` characters, cut at a word with an ellipsis."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit * 2 // 3 else cut).rstrip(" ,;:.-") + "…"


def storable(text: str) -> str:
    """Replace what UTF-8 cannot encode (half of a surrogate pair) by `?`."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def normalised(text: str) -> str:
    """Return the same for texts that differ only in case, spacing and punctuation."""
    return " ".join(fold(token) for token in words(text))


def literal_form(text: str) -> str:
    """Return the same for texts that differ only in spacing, in the case of words and in punctuation around them.

    A text of words alone has its `normalised` form; signs, names and numbers stay as they are.
    """
    chunks = (chunk.lstrip("\"'`(").rstrip(".,;:!?\"'`)") or chunk for chunk in text.split())
    return " ".join(fold(chunk) if chunk.isalpha() else chunk for chunk in chunks)


def digest(*parts: str) -> str:
    """A stable 128-bit name for these parts, as 32 hex digits."""
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=16).hexdigest()


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """The items once each, in order of first appearance."""
    return tuple(dict.fromkeys(items))


# ── The strings of a JSON value ──────────────────────────────────────────────────────────────────


def list_strings(value: Any, *, keys: bool = False) -> list[str]:
    """List the strings of a JSON value in their order; `keys`: those of its objects, too."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            waiting += reversed(one.values())
            waiting += one if keys else ()
        elif isinstance(one, list):
            waiting += reversed(one)
    return found


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with its strings and keys changed; of keys that become equal, the last one stays."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): map_strings(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [map_strings(inner, change) for inner in value]
    return value
