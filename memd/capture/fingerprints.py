"""Texts in forms in which they are recognised however they are dressed up. Pure, standard library only.

Case, spacing, punctuation, markup, accents, invisible characters and look-alike letters make no difference. A
fingerprint recognises the sentences of a text that is not kept: a Bloom filter of its runs of three words.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence

FINGERPRINT = "fingerprint"
"""The field of a tool's response that stands for a text which is not stored."""
_UNITS_MAX = 6_000
"""Words of a text that a fingerprint holds; some 15 kB in hexadecimal at most, which redaction leaves as it is."""
_BITS_PER_UNIT = 10
_PROBES = 3
_RUN = 3
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
    """A text as it looks: folded, without marks and invisible characters, which part no words."""
    if text.isascii():
        return text.lower()
    folded = _fold(text)
    return "".join(c for c in folded if c.isascii() or unicodedata.category(c)[0] not in "MC")


def weigh_unit(unit: str) -> float:
    """How much of a sentence a unit is, in words."""
    return 0.5 if _IS_SPACELESS.match(unit) else 1.0


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKD", text).casefold().translate(_LOOK_ALIKES)


def make_fingerprint(text: str) -> str:
    """The fingerprint of a text, in hexadecimal; empty if it has fewer than three words."""
    runs = {*_list_runs(split_units(text)[:_UNITS_MAX])}
    if not runs:
        return ""
    bits = bytearray(-(-len(runs) * _BITS_PER_UNIT // 8))
    for run in runs:
        for place in _find_places(run, len(bits) * 8):
            bits[place >> 3] |= 1 << (place & 7)
    return bits.hex()


def read_fingerprint(text: object) -> bytes:
    """The filter of a fingerprint; empty if it is none."""
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""


def find_known_runs(units: Sequence[str], fingerprint: bytes) -> list[bool]:
    """For each run of three of these units whether the text of a fingerprint has it."""
    size = len(fingerprint) * 8
    return [
        all(fingerprint[place >> 3] & 1 << (place & 7) for place in _find_places(run, size))
        for run in _list_runs(units)
    ]


def _list_runs(units: Sequence[str]) -> Iterator[bytes]:
    for start in range(len(units) - _RUN + 1):
        yield " ".join(units[start : start + _RUN]).encode("utf-8", "replace")


def _find_places(run: bytes, size: int) -> Iterator[int]:
    first, step = zlib.crc32(run), zlib.adler32(run) | 1
    return ((first + number * step) % size for number in range(_PROBES))
