"""Tokenizer, stemmer, stop words. Pure.

The lexical index, the hashing embedder, consolidation and the query parser must agree on what a word is. A token is a
run of letters, digits and underscores; an identifier (`decode_token`, `getUserById`, `HTTPServer2`) is indexed whole
and by its parts. Words are lower-cased, stripped of diacritics and stemmed by Snowball's English stemmer.
"""

import functools
import hashlib
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator

import snowballstemmer

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

WORD = re.compile(
    r"[vV]?\d+(?:\.\d+)+"  # a version or a decimal number is one word
    r"|[^\W_]+(?:[_'’][^\W_]+)*_*"
    r"|(?<!_)_++[^\W_]+(?:_[^\W_]+)*_*"
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_APOSTROPHE = re.compile(r"['’]")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_VERSION = re.compile(r"[vV]?(\d+(?:\.\d+)+)")
_TOKEN_MAX = 64
_WORDS_CACHED = 16_384
"""Words in each of two caches, at some 170 bytes."""

PRIVATE = "[REDACTED:private]"
"""What redaction puts in place of text between `<private>` and `</private>`."""


class _Stemmers(threading.local):
    """One stemmer per thread: a stemmer holds the word it works on."""

    def __init__(self) -> None:
        self.english = snowballstemmer.stemmer("english")


_stemmers = _Stemmers()


def is_private(text: object) -> bool:
    """Whether all of a redacted text was private."""
    if not isinstance(text, str) or PRIVATE not in text:
        return False
    return not any(c.isalnum() for c in text.replace(PRIVATE, ""))


def fold(text: str) -> str:
    """Lower-case, without diacritics, compatibility forms resolved."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


@functools.lru_cache(maxsize=_WORDS_CACHED)
def stem(word: str) -> str:
    """The Snowball English stem of one folded word; digits and long tokens stay as they are."""
    if len(word) > _TOKEN_MAX or not word.isalpha():
        return word[:_TOKEN_MAX]
    return str(_stemmers.english.stemWord(word))


@functools.lru_cache(maxsize=_WORDS_CACHED)
def terms(token: str) -> tuple[str, ...]:
    """The index terms of one raw token: its stem, and those of its parts if it is an identifier.

    >>> terms("decode_token")
    ('decode_token', 'decod', 'token')
    """
    if version := _VERSION.fullmatch(token):
        return (version.group(1),)
    bare = token.strip("_")
    if _CJK.search(bare) and len(bare) > 2:  # noqa: PLR2004  # no spaces between words: pairs of characters
        return tuple(dict.fromkeys(bare[i : i + 2] for i in range(len(bare) - 1)))
    pieces = [piece for piece in _APOSTROPHE.split(bare) if piece]
    if len(pieces) > 1:
        # Both spellings: "user's" is found as "user", "O'Brien" as "obrien".
        whole = stem(fold("".join(pieces)))
        return tuple(dict.fromkeys((stem(fold(pieces[0])), whole)))
    parts = [fold(part) for part in split_identifier(bare)]
    whole = stem(fold(bare)[:_TOKEN_MAX])
    if len(parts) <= 1:
        return (whole,) if whole else ()
    return tuple(dict.fromkeys((whole, *(stem(part) for part in parts if len(part) > 1))))


def clear_word_caches() -> None:
    """Empty the caches, which hold megabytes after much text."""
    stem.cache_clear()
    terms.cache_clear()


def split_identifier(token: str) -> list[str]:
    """The parts of `snake_case`, `camelCase`, `HTTPServer2`; one part if there is nothing to split."""
    if not token.isascii():
        return [part for part in token.split("_") if part]
    return [part for chunk in token.split("_") for part in _CAMEL.findall(chunk)]


def words(text: str) -> list[str]:
    """The raw tokens of a text, in order, as written."""
    return WORD.findall(text)


def stems(text: str) -> Iterator[str]:
    """Yield every index term of a text, in order, with repetitions."""
    for token in words(text):
        yield from terms(token)


def is_stop_word(token: str) -> bool:
    """Whether a raw token is a stop word: `the`, `didn't`."""
    folded = fold(token)
    return folded in STOP_WORDS or _APOSTROPHE.split(folded)[0] in STOP_WORDS


def content_stems(text: str) -> list[str]:
    """The terms of a text without stop words; all of them if nothing else is left."""
    tokens = words(text)
    kept = [token for token in tokens if not is_stop_word(token)]
    return [term for token in (kept or tokens) for term in terms(token)]


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
