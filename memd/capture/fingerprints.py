"""Fingerprints of texts, recognised despite different case, spacing and markup. Pure, standard library only.

Case, spacing, punctuation, markup, accents, invisible characters and look-alike letters make no difference. A
fingerprint recognises the sentences of a text that is not kept: a Bloom filter of its runs of three words, and of
prose of the pairs of longer words that stand near each other, by which a sentence is known again that was told in
slightly other words.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from math import ceil

FINGERPRINT = "fingerprint"
"""The field of a tool's response that stands for a text which is not stored."""
_UNITS_MAX = 6_000
"""Words of a text that a fingerprint holds; some 15 kB in hexadecimal at most, which redaction leaves as it is."""
_BITS_PER_UNIT = 10
_PROBES = 3
_ONE = ord("1")
_RUN = 3
_ROOT_MIN = 4
"""Letters of a word that is counted in pairs: most function words are shorter."""
_ROOT = 5
"""Letters by which such a word is known in its other forms."""
_NEAR = 3
"""How far the words of a pair stand from each other in the text; in a sentence that retells it one less."""
_LINKED_MIN = 0.6
"""Share of a sentence's words that begin a pair of the text, from which it retells the text."""
ROOTS_MIN = 4
"""A sentence of fewer longer words retells nothing."""
_PROSE_SUFFIXES = frozenset(("", "md", "mdx", "markdown", "txt", "rst", "adoc", "html", "htm"))
_ASCII_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())
_ASCII_LOWERED = bytes(range(256)).lower()
_ASCII_SPACED = _ASCII_LOWERED.translate(
    bytes.maketrans(_ASCII_DROPPED, b" " * len(_ASCII_DROPPED))
)
_MARKUP = re.compile(r"[*`~]+")
_LOOK_ALIKES = str.maketrans(
    "авеѕіјкмнорстухԁһӏԛԝοαενρτυιχκ", "abesijkmhopctyxdhlqwoaevptuixk"
)  # Cyrillic and Greek letters, folded
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")
_IS_SPACELESS = re.compile(rf"[{_SPACELESS}]")


def squeeze(text: str) -> str:
    """The letters and digits of a text alone, folded."""
    if text.isascii():
        return text.encode().translate(_ASCII_LOWERED, _ASCII_DROPPED).decode()
    return "".join(filter(str.isalnum, _fold(text)))


def split_units(text: str) -> list[str]:
    """The words of a text and the characters of scripts without spaces, folded, in order."""
    text = _MARKUP.sub("", text)
    if text.isascii():
        return text.encode().translate(_ASCII_SPACED).decode().split()
    return _UNIT.findall(fold_plainly(text))


def fold_plainly(text: str) -> str:
    """Fold a text to what a reader sees: without marks and invisible characters, which part no words."""
    if text.isascii():
        return text.lower()
    folded = _fold(text)
    unseen = [c for c in set(folded) if not c.isascii() and unicodedata.category(c)[0] in "MC"]
    return folded.translate(dict.fromkeys(map(ord, unseen))) if unseen else folded


def weigh_unit(unit: str) -> float:
    """Return the number of words that a unit counts for in its sentence."""
    return 0.5 if _IS_SPACELESS.match(unit) else 1.0


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKD", text).casefold().translate(_LOOK_ALIKES)


def is_prose(path: str) -> bool:
    """Return whether a file holds sentences rather than code, by its name."""
    name = re.split(r"[/\\]", path)[-1].lstrip(".")
    return (name.rpartition(".")[2] if "." in name else "").lower() in _PROSE_SUFFIXES


def list_roots(units: Sequence[str]) -> list[str]:
    """The longer words of a text, in order, as their beginnings."""
    return [unit[:_ROOT] for unit in units if len(unit) >= _ROOT_MIN and not unit.isdigit()]


def count_linked_min(roots: Sequence[str]) -> int:
    """Return how many of a sentence's longer words must be near each other in a text that it retells."""
    return max(ROOTS_MIN - 1, ceil(_LINKED_MIN * (len(roots) - 1)))


def is_retold(roots: Sequence[str], fingerprint: bytes) -> bool:
    """Return whether a sentence of these longer words retells a sentence of the text of a fingerprint."""
    if len(roots) < ROOTS_MIN or not fingerprint:
        return False
    size, coded = len(fingerprint) * 8, _encode(roots)
    linked = sum(
        any(
            all(fingerprint[place >> 3] & 1 << (place & 7) for place in _find_places(pair, size))
            for pair in _list_pairs(coded[at : at + _NEAR])
        )
        for at in range(len(roots) - 1)
    )
    return linked >= count_linked_min(roots)


def _list_pairs(roots: Sequence[bytes]) -> list[bytes]:
    """The pairs of the first of these with the others, whichever comes first."""
    first = roots[0]
    return [
        b"%b+%b" % ((first, other) if first <= other else (other, first)) for other in roots[1:]
    ]


def _encode(units: Sequence[str]) -> list[bytes]:
    return [unit.encode("utf-8", "replace") for unit in units]


def make_fingerprint(text: str, *, prose: bool = False) -> str:
    """The fingerprint of a text, in hexadecimal; empty if it has fewer than three words."""
    units = split_units(text)[:_UNITS_MAX]
    runs = {*_list_runs(units)}
    if prose:
        roots = _encode(list_roots(units))
        runs |= {
            pair for at in range(len(roots)) for pair in _list_pairs(roots[at : at + _NEAR + 1])
        }
    if not runs:
        return ""
    size = -(-len(runs) * _BITS_PER_UNIT // 8) * 8
    # As `_find_places`, a digit for each bit: it runs for each word of a file that is read.
    digits = bytearray(b"0" * size)
    for first, step in zip(map(zlib.crc32, runs), map(zlib.adler32, runs), strict=True):
        step |= 1  # noqa: PLW2901
        digits[first % size] = digits[(first + step) % size] = digits[(first + 2 * step) % size] = (
            _ONE
        )
    digits.reverse()
    return int(digits, 2).to_bytes(size // 8, "little").hex()


def read_fingerprint(text: object) -> bytes:
    """The filter of a fingerprint; empty if it is none."""
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""


def find_known_runs(units: Sequence[str], fingerprint: bytes) -> list[bool]:
    """Return for each run of three of these units whether the text of a fingerprint has it."""
    size = len(fingerprint) * 8
    return [
        all(fingerprint[place >> 3] & 1 << (place & 7) for place in _find_places(run, size))
        for run in _list_runs(units)
    ]


def chance_of_run(fingerprint: bytes) -> float:
    """Return the chance that a run is found in a fingerprint whose text does not have it."""
    is_set = int.from_bytes(fingerprint).bit_count()
    return float((is_set / (len(fingerprint) * 8)) ** _PROBES)


def _list_runs(units: Sequence[str]) -> Iterator[bytes]:
    coded = _encode(units)
    return map(b" ".join, zip(*(coded[n:] for n in range(_RUN)), strict=False))


def _find_places(run: bytes, size: int) -> Iterator[int]:
    first, step = zlib.crc32(run), zlib.adler32(run) | 1
    return ((first + number * step) % size for number in range(_PROBES))
