"""Text to the token ids of an uncased BERT model, as Hugging Face's tokenizers make them. Pure.

Control characters go, Chinese characters and punctuation stand alone, accents are stripped, letters become lower
case; then each word is split greedily into the longest pieces that the vocabulary has (Devlin et al., 2018).
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

WORD_CHARACTERS_MAX = 100
"""A longer word is one unknown token."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LITERAL_SPECIAL = re.compile("|".join(f"({re.escape(token)})" for token in _SPECIAL))
"""Special tokens that stand in a text are themselves, whatever their letters would make."""
_CONTINUED = "##"
_WORDS_CACHED = 8_192
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""First and last code points of what BERT calls Chinese characters."""
_NO_CHARACTERS = (0x0, 0xFFFD)
_ASCII_PUNCTUATION = frozenset(r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")


class WordPiece:
    """The tokenizer of one vocabulary."""

    def __init__(self, vocabulary: Sequence[str], limit: int) -> None:
        """Take the tokens in the order of their ids, and the most ids that a text may have.

        Raises ValueError if a special token is missing.
        """
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        missing = [token for token in _SPECIAL if token not in self._ids]
        if missing:
            raise ValueError(f"the vocabulary lacks {', '.join(missing)}")
        self._limit = limit
        self._unknown = self._ids["[UNK]"]
        self._split_word = functools.lru_cache(_WORDS_CACHED)(self._find_pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text: `[CLS]`, at most `limit` - 2 pieces, `[SEP]`."""
        found: list[int] = []
        for ids in self._pieces_of(text):
            found += ids
            if len(found) >= self._limit - 2:
                break
        return [self._ids["[CLS]"], *found[: self._limit - 2], self._ids["[SEP]"]]

    def _pieces_of(self, text: str) -> Iterator[Sequence[int]]:
        for part in _LITERAL_SPECIAL.split(text):
            if part in _SPECIAL:
                yield (self._ids[part],)
            elif part:
                yield from map(self._split_word, split_words(part))

    def _find_pieces(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word's pieces, longest first; one unknown token if there are none for all of it."""
        if len(word) > WORD_CHARACTERS_MAX:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = _CONTINUED if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._ids), None)
            if end is None:
                return (self._unknown,)
            found.append(self._ids[prefix + word[start:end]])
            start = end
        return tuple(found)


def split_words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text, cleaned, without accents, in lower case.

    >>> split_words("Größe:  naïve_码x")
    ['große', ':', 'naive', '_', '码', 'x']
    """
    cleaned = text.translate(_CLEANED)
    # Of ASCII there is nothing to decompose.
    decomposed = cleaned if cleaned.isascii() else unicodedata.normalize("NFD", cleaned)
    return decomposed.translate(_LOWERED).split()


class _CharacterTable(dict[int, str]):
    """What becomes of each character; computed when it first occurs."""

    def __init__(self, convert: Callable[[str], str]) -> None:
        super().__init__()
        self._convert = convert

    def __missing__(self, code: int) -> str:
        self[code] = found = self._convert(chr(code))
        return found


def _clean(character: str) -> str:
    """Drop a control character, make every blank a space, set a Chinese character apart."""
    if ord(character) in _NO_CHARACTERS:
        return ""
    if character in "\t\n\r" or (character.isspace() and not _is_control(character)):
        return " "
    if _is_control(character):
        return ""
    return f" {character} " if _is_ideograph(ord(character)) else character


def _lower(character: str) -> str:
    """Drop an accent, set punctuation apart, make each letter lower case by itself, final sigma included."""
    if unicodedata.category(character) == "Mn":
        return ""
    is_mark = character in _ASCII_PUNCTUATION or unicodedata.category(character)[0] == "P"
    return f" {character} " if is_mark else character.lower()


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")


def _is_ideograph(code: int) -> bool:
    return any(first <= code <= last for first, last in _IDEOGRAPHS)


_CLEANED, _LOWERED = _CharacterTable(_clean), _CharacterTable(_lower)
