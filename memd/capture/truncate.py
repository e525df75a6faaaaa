"""Size limits of a payload: truncate, redact, truncate again; and fingerprints, by which what was cut is known again. Pure.

A long text is reduced to its head and tail. Redacting all of it would make the agent wait, and cutting it first
could leave half a secret that no pattern matches. So blocks (`<private>`, PEM keys) are removed from the whole
text in one linear pass; both ends are taken with a margin, redacted, and then lose the margin, in which a secret
may have been cut in two. Standard library only: the hook imports it.

Case, spacing, punctuation, markup, accents, invisible characters and look-alike letters make no difference to a
fingerprint. It recognises the sentences of a text that is not kept: a Bloom filter of its runs of three words, and of
prose of the pairs of longer words that stand near each other, by which a sentence is known again that was told in
slightly other words.
"""

import hashlib
import itertools
import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from memd.capture.redact import redact_value
from memd.capture.redact.documents import redact_blocks
from memd.import_graph import FileImports, read_imports

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


RedactValue = Callable[[Any], Any]
"""Removes secrets from a JSON value; a text stays a text."""


class PayloadLimits(NamedTuple):
    """Limits of one payload. Bytes are of UTF-8."""

    field_bytes: int = 32_768
    """A longer text field is reduced to its head and tail: what a person or an agent wrote is shorter, and the
    middle of a tool's output is cited by no memory."""
    total_bytes: int = 262_144
    depth: int = 16
    items: int = 500


PAYLOAD_LIMITS = PayloadLimits()
MARGIN_CHARACTERS = 16_384
"""Characters; more than any header line or token that a pattern must see whole."""
_KEY_CHARACTERS = 200
_SMALL_CHARACTERS = 1_024
"""Characters of a text that is stored even if the payload is over its limit."""
_WORD_CHARACTERS_MAX = 200
"""Characters within which a cut text is shortened to a whole word."""
_INTEGER_MAX = 2**63
_DEPTH_MARK = "… [nested too deep] …"
_TOTAL_MARK = "… [payload too large] …"

_READ_TOOLS = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
_EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_REPEATED_FIELDS = {"content": "content", "oldString": "old_string", "newString": "new_string"}
"""Field of an edit's response → field of its input that holds the same."""
_SIZE_FIELDS = frozenset({"path", "bytes", "lines"})
_IMPORT_FIELDS = frozenset((*FileImports._fields, FINGERPRINT))
"""Fields that may follow the sizes."""
_ID_FIELDS = (
    "session_id",
    "prompt_id",
    "tool_use_id",
    "agent_id",
    "uuid",
    "hook_event_name",
    "tool_name",
)
_PLAIN_ID = re.compile(
    r"[0-9a-fA-F-]{1,64}|(?:srv)?toolu_[A-Za-z0-9]{1,64}|id-[0-9a-f]{32}|ses_[0-9a-f]{12}[A-Za-z0-9]{14}"
    r"|(?:[A-Z][a-z]{1,20}){1,4}|mcp__[A-Za-z0-9_-]{1,120}"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_payload(
    payload: Any, limits: PayloadLimits = PAYLOAD_LIMITS, redact: RedactValue = redact_value
) -> Any:
    """Return a JSON value that may be stored: bounded, redacted, valid UTF-8, finite numbers only.

    The ids of an object's top level are neither truncated nor redacted, because events are joined by them;
    one that looks like a secret becomes its hash.
    """
    budget = _PayloadBudget(limits, redact)
    if not isinstance(payload, Mapping):
        return redact(budget.fit(payload, 0))
    ids = {
        name: clean_id(payload[name], redact)
        for name in _ID_FIELDS
        if isinstance(payload.get(name), str)
    }
    rest = {key: value for key, value in payload.items() if key not in ids}
    return {**ids, **redact(budget.fit_object(rest, 0))}


def trim_tool_response(
    payload: Any, *, keep_reads: bool, redact: RedactValue = redact_value
) -> Any:
    """Return the payload of a tool event without bulk that is not worth remembering.

    The content of a file that was read becomes its path, its size, the names that it imports, and a fingerprint by
    which its sentences are known again; the response to an edit loses what its input contains.
    """
    if not isinstance(payload, Mapping) or "tool_response" not in payload:
        return payload
    tool, given, response = (payload.get(k) for k in ("tool_name", "tool_input", "tool_response"))
    given = given if isinstance(given, Mapping) else {}
    if not isinstance(tool, str):  # a list could not be looked up in a set
        return payload
    if tool in _READ_TOOLS and not keep_reads:
        imports = _find_imports(given, response) if tool == "Read" else {}
        measured = _measure_response(given, response, redact)
        return {**payload, "tool_response": {**measured, **imports}}
    if tool in _EDIT_TOOLS and isinstance(response, Mapping):
        slim = {k: v for k, v in response.items() if not _is_repeated(k, v, given)}
        return {**payload, "tool_response": slim}
    return payload


def truncate_text(text: str, limit: int, redact: RedactValue) -> str:
    """Shorten a text to `limit` bytes: head, a mark with the number of characters cut, tail; no half secret."""
    if text.isascii():
        if len(text) <= limit:
            return text
    elif utf8_size(text := _SURROGATE.sub("\ufffd", text)) <= limit:
        return text
    text = str(redact_blocks(text))
    if utf8_size(text) <= limit:
        return text
    share = max(limit - _WORD_CHARACTERS_MAX, _WORD_CHARACTERS_MAX) // 2
    reach = share + MARGIN_CHARACTERS
    if len(text) <= 2 * reach:
        # Short enough to be redacted as a whole: no secret is cut in two.
        whole = str(redact(text))
        head, tail = whole[:share], whole[-share:]
    else:
        head = _drop_margin(str(redact(text[:reach])))[:share]
        tail = _drop_margin(str(redact(text[-reach:]))[::-1])[:share][::-1]
    head = head.encode("utf-8", "surrogatepass")[:share].decode("utf-8", "ignore")
    tail = tail.encode("utf-8", "surrogatepass")[-share:].decode("utf-8", "ignore")
    return f"{head}… [{len(text) - len(head) - len(tail):,} characters cut] …{tail}"


def utf8_size(text: str) -> int:
    """Return the number of bytes of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _PayloadBudget:
    """The bytes left for the rest of a payload while it is truncated."""

    def __init__(self, limits: PayloadLimits, redact: RedactValue) -> None:
        self._limits = limits
        self._redact = redact
        self._left = limits.total_bytes

    def fit(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._fit_text(value)
        if value is None or isinstance(value, (int, float)):
            return _fit_number(value)
        if depth >= self._limits.depth or self._left <= 0:
            return _TOTAL_MARK if self._left <= 0 else _DEPTH_MARK
        if isinstance(value, dict):
            return self.fit_object(value, depth)
        return (
            self._fit_list(value, depth) if isinstance(value, (list, tuple)) else str(type(value))
        )

    def fit_object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        """Fit small values first, so that a huge one cannot displace them; return them in their order."""
        items = list(itertools.islice(value.items(), self._limits.items))
        small = [_is_small(item) for _, item in items]
        fitted = {
            index: self.fit(items[index][1], depth + 1)
            for is_small in (True, False)
            for index in range(len(items))
            if small[index] is is_small
        }
        kept = {self._fit_key(key): fitted[index] for index, (key, _) in enumerate(items)}
        if len(value) > len(items):
            kept["…"] = f"[{len(value) - len(items):,} more cut]"
        return kept

    def _fit_key(self, key: Any) -> str:
        name = truncate_text(str(key), _KEY_CHARACTERS * 4, self._redact)
        self._left -= len(name)
        return name

    def _fit_list(self, value: Sequence[Any], depth: int) -> list[Any]:
        kept = [self.fit(item, depth + 1) for item in value[: self._limits.items]]
        if len(value) > self._limits.items:
            kept.append(f"… [{len(value) - self._limits.items:,} more cut] …")
        return kept

    def _fit_text(self, text: str) -> str:
        if len(text) > _SMALL_CHARACTERS and self._left <= 0:
            return _TOTAL_MARK
        limit = min(self._limits.field_bytes, max(self._left, _SMALL_CHARACTERS * 4))
        kept = truncate_text(text, limit, self._redact)
        self._left -= utf8_size(kept)
        return kept


def clean_id(value: str, redact: RedactValue = redact_value) -> str:
    """Return an id as events keep it: itself, or its hash if it looks like a secret."""
    # A random id looks like a secret. Two ids redacted to one mark would lose an event.
    if _PLAIN_ID.fullmatch(value):
        return value
    if len(value) <= _KEY_CHARACTERS and redact(value) == value:
        return _SURROGATE.sub("\ufffd", value)
    return mask_id(value)


def mask_id(value: str) -> str:
    """Return what stands for an id that looks like a secret."""
    raw = value.encode("utf-8", "surrogatepass")
    return "id-" + hashlib.blake2b(raw, digest_size=16).hexdigest()


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SMALL_CHARACTERS
    return not isinstance(value, (dict, list, tuple))


def _fit_number(value: Any) -> Any:
    """Return a number, boolean or null that JSON and SQLite can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "… [huge number] …" if isinstance(value, int) and abs(value) >= _INTEGER_MAX else value


def _drop_margin(piece: str) -> str:
    """Drop the last characters of a redacted piece, in which a secret may have been cut in two."""
    kept = piece[:-MARGIN_CHARACTERS] if len(piece) > MARGIN_CHARACTERS else ""
    end = kept.rstrip()
    first = len(end) - _WORD_CHARACTERS_MAX
    space = max(end.rfind(" ", first), end.rfind("\n", first))
    return kept[: space + 1] if space > 0 else kept


def _measure_response(
    given: Mapping[str, Any], response: Any, redact: RedactValue
) -> dict[str, Any]:
    if isinstance(response, Mapping) and _has_sizes_only(response):
        return dict(response)
    texts = _list_texts(response, 0)
    text = truncate_text("\n".join(texts), PAYLOAD_LIMITS.field_bytes, redact)
    path = next((p for k in ("file_path", "notebook_path", "path") if (p := given.get(k))), None)
    readable = str(redact(redact_blocks(text)))
    fingerprint = make_fingerprint(readable, prose=isinstance(path, str) and is_prose(path))
    return {
        "path": path,
        "bytes": sum(utf8_size(text) for text in texts),
        "lines": sum(text.count("\n") + (not text.endswith("\n")) for text in texts if text),
        **({FINGERPRINT: fingerprint} if fingerprint else {}),
    }


def _has_sizes_only(response: Mapping[Any, Any]) -> bool:
    return _SIZE_FIELDS <= set(response) <= _SIZE_FIELDS | _IMPORT_FIELDS


def _find_imports(given: Mapping[str, Any], response: Any) -> dict[str, Any]:
    """Return the names that a file imports, for the graph of files; its text is not stored."""
    path = given.get("file_path")
    if not isinstance(path, str) or (isinstance(response, Mapping) and _has_sizes_only(response)):
        return {}
    found = read_imports(path, str(redact_blocks("\n".join(_list_texts(response, 0)))))
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in found._asdict().items()
        if value
    }


def _list_texts(value: Any, depth: int) -> Sequence[str]:
    """Return the contents and names in a response, without its labels."""
    if isinstance(value, str):
        return [value]
    if depth > PAYLOAD_LIMITS.depth:
        return []
    if isinstance(value, Mapping):
        inner = [v for k, v in value.items() if k not in ("type", "filePath", "mode")]
        return [text for item in inner for text in _list_texts(item, depth + 1)]
    if isinstance(value, Sequence):
        return [text for item in value for text in _list_texts(item, depth + 1)]
    return []


def _is_repeated(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    source = _REPEATED_FIELDS.get(name)
    return name == "originalFile" or (source is not None and given.get(source) == value)
