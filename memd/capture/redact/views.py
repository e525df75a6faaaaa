"""Other readings of a text, in which a secret shows that the text hides: parts that are joined, characters that are decoded. Pure.

A reading covers the lines that need one. What is found there is replaced in the text itself, and all around it stays
as it was written: `ｐａｓｓｗｏｒｄ＝[REDACTED:password]`.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator

from memd.capture.redact.regexes import compile_regex, mark_characters

_ISSUED = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xoxb-", "xoxp-", "npm_", "pypi-", "hf_", "AKIA",
    "ASIA", "AIza", "ya29.", "eyJ", "SG.", "rk_live_", "sk_live_",
)  # fmt: skip
"""How tokens begin that are looked for at the end of a line."""
_CONTINUED = r"[\\^`](?:(?<=[\\^])|(?<=[ \t]`))\r?\n[ \t]*"
"""The end of a line that goes on in the next one, by a backslash or as the shells of Windows write it."""
_CONTINUING = tuple(f"{sign}{end}" for sign in ("\\", "^", " `", "\t`") for end in ("\n", "\r\n"))
"""The same as texts, of which few have one."""
_JOIN = r"[ \t]*(?:\+\s{0,80}|[\\`]?\r?\n[ \t]*(?:\+[ \t]*)?)"
_LITERALS = (
    r"(?P<kept>[=:(][ \t]*(?P<quote>[\"'])[^\"'\n]{1,200})(?P=quote)"
    rf"{_JOIN}(?P=quote)(?=[^\s\"'$])"
)
"""Two texts in quotes that are one, of which the first is given to a name."""
_SEAM = rf"[\"']{_JOIN}[\"'][^\s\"'$]"
"""Where two texts in quotes meet; few texts have that."""
_SEAM_MARKS = bytes.maketrans(b"'+", b'"\n')
_SEAM_DROPPED = bytes(c for c in range(256) if c > 127 or chr(c) in "\t\v\f\r\x1c\x1d\x1e\x1f ?\\`")  # noqa: PLR2004
"""What may stand in a seam beside its quotes, pluses and line breaks."""
_CUT = (
    rf"(?P<kept>(?<![\w/.-])(?:{'|'.join(map(re.escape, _ISSUED))})[\w.+/=-]{{4,}})\r?\n[ \t]*"
    r"(?=[A-Za-z+/]*\d)(?=[\d+/]*[A-Za-z])(?=[\w+/=-]{6,}(?:[\s\"'`]|\Z))"
)
"""A token that is cut at the end of a line; what follows has letters and digits, as the rest of one has."""
_UNUSUAL = (
    # letters, digits and signs in other widths and styles; accents apart from their letters; characters
    # without a width; blanks of other widths
    r"[\u2100-\u214f\u2460-\u24ff\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
    r"\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff\u00a0\u2000-\u200a\u202f\u3000]"
)
_BYTE = r"%(?:25)*[0-9a-fA-F]{2}"
# Not `(?:…)+`: alternatives that begin with signs of their own are searched for at no cost elsewhere.
_CODED = rf"{_BYTE}(?:{_BYTE})*|\\u00[2-7][0-9a-fA-F]|&#(?:x[2-7][0-9a-fA-F]|\d{{2,3}});"
_ENCODED = rf"{_CODED}|[^\W\d_]?{_UNUSUAL}+"
_ENCODED_BYTE = r"%(?:25)*([0-9a-fA-F]{2})"
_HEX_TEXT = r"(?<![0-9A-Za-z])(?:[2-7][0-9a-f]|[2-7][A-F]|0[9aAdD]){10,4096}(?![0-9A-Za-z])"
"""Printable characters, each as two hexadecimal digits. A digest has other ones, too.

No two alternatives match the same two digits: else each pair of an odd run doubles the time.
"""
_HEX_MARKS = bytes(b"0"[0] if chr(c) in "0123456789abcdefABCDEF" else 0 for c in range(256))
_HEX_RUN = b"0" * 20
"""What is in each such text when its digits are marked so."""
_MISREAD = (
    r"(?<![\w.-])(?:[A-Za-z][ ]){5,14}[A-Za-z](?=[ \t]{0,3}[:=])"
    r"|(?<![\w.-])[Pp]ass[ ]?[A-Za-z0-9]{3,5}(?=[ \t]{0,3}[:=])"
)
"""What a picture's reader may have made of a label: letters apart, a digit or another letter in the place of one."""
_MISREAD_WORD = r"ass ?[A-Za-z0-9]{3,5}[ \t]{0,3}[:=]"
_MISREAD_LETTERS = (" s s ", " S S ", " n n ", " N N ")
"""What a text with such a label has, and what is looked for at no cost."""
_LABELS = ("password", "passwort", "passcode", "kennwort", "passphrase")
_LOOK_ALIKE = [
    set(pair)
    for pair in (
        "rn",
        "nm",
        "hb",
        "ec",
        "oc",
        "oe",
        "il",
        "lt",
        "tf",
        "uv",
        "vy",
        "vw",
        "ao",
        "gq",
        "rt",
    )
]
_MISREAD_SIGNS = str.maketrans("01345", "oleas")
_Piece = tuple[int, str]
"""Where a part of a text begins, and how it is read."""


def redact_joined(text: str, redact: Callable[[str], str]) -> str:
    """Redact the secrets that a line break or a quote parts."""
    has_end = "\n" in text
    if has_end and any(map(text.__contains__, _CONTINUING)):
        text = _redact_view(text, _CONTINUED, _join, redact)
    if (has_end or "+" in text) and _may_have_seam(text) and compile_regex(_SEAM).search(text):
        text = _redact_view(text, _LITERALS, _join, redact)
    if has_end and any(map(text.__contains__, _ISSUED)):
        text = _redact_view(text, _CUT, _join, redact)
    return text


def _may_have_seam(text: str) -> bool:
    """Return whether nothing but what may stand in a seam is between two quotes."""
    marks = mark_characters(text, _SEAM_MARKS, _SEAM_DROPPED)
    return b'"\n' in marks and re.search(b'"\n+"', marks) is not None


def redact_encoded(text: str, redact: Callable[[str], str]) -> str:
    """Redact the secrets that are percent-encoded, escaped, in hexadecimal or in unusual characters."""
    if _HEX_RUN in mark_characters(text, _HEX_MARKS) and compile_regex(_HEX_TEXT).search(text):
        text = compile_regex(_HEX_TEXT).sub(lambda found: _redact_hex(found[0], redact), text)
    if not text.isascii() and compile_regex(_UNUSUAL).search(text):
        return _redact_view(text, _ENCODED, _decode, redact)
    is_coded = "\\u00" in text or "&#" in text  # which take no time to look for
    if is_coded or ("%" in text and compile_regex(_BYTE).search(text)):
        return _redact_view(text, _CODED, _decode, redact)
    return text


def redact_misread(text: str, redact: Callable[[str], str]) -> str:
    """Redact the secrets behind a label that was read off a picture: `P a s s w o r d:`, `Passw0rd:`, `Passwond:`."""
    if ":" not in text and "=" not in text:  # one of which ends each such label
        return text
    is_word = "ass" in text and compile_regex(_MISREAD_WORD).search(text)
    may_have = is_word or any(map(text.__contains__, _MISREAD_LETTERS))
    if may_have and compile_regex(_MISREAD).search(text):
        return _redact_view(text, _MISREAD, _read_label, redact)
    return text


def _read_label(found: re.Match[str]) -> Iterator[_Piece]:
    read = found[0].replace(" ", "")
    plain = read.lower().translate(_MISREAD_SIGNS)
    meant = next((label for label in _LABELS if _is_misread(plain, label)), "")
    yield found.start(), meant or found[0]


def _is_misread(plain: str, label: str) -> bool:
    """Return whether two words have the same letters but for one that looks like its other."""
    if len(plain) != len(label):
        return False
    differing = [{one, other} for one, other in zip(plain, label, strict=True) if one != other]
    return len(differing) <= 1 and all(pair in _LOOK_ALIKE for pair in differing)


def _redact_hex(coded: str, redact: Callable[[str], str]) -> str:
    plain = bytes.fromhex(coded).decode()
    return coded if redact(plain) == plain else "[REDACTED:hexadecimal]"


def _join(found: re.Match[str]) -> Iterator[_Piece]:
    if "kept" in found.re.groupindex:
        yield found.start("kept"), found["kept"]


def _decode(found: re.Match[str]) -> Iterator[_Piece]:
    coded, at = found[0], found.start()
    if coded[0] == "%":
        units = list(compile_regex(_ENCODED_BYTE).finditer(coded))
        raw = bytes.fromhex("".join(unit[1] for unit in units))
        try:
            characters = raw.decode()
        except UnicodeDecodeError:
            characters = raw.decode("latin-1")
        is_single = len(raw) == len(characters)
        n = 0
        for character in characters:
            yield at + units[n].start(), character
            n += 1 if is_single else len(character.encode())
    elif coded[0] == "\\" or coded[0] == "&":
        digits = coded.strip("\\&#;")
        yield (
            at,
            chr(int(digits) if digits.isdecimal() and coded[0] == "&" else int(digits[1:], 16)),
        )
    else:
        yield at, unicodedata.normalize("NFKC", coded).strip("\u00ad\u200b\u200c\u200d\u2060\ufeff")


def _redact_view(
    text: str,
    regex: str,
    read: Callable[[re.Match[str]], Iterator[_Piece]],
    redact: Callable[[str], str],
) -> str:
    lines = [
        (*line, "".join(piece for _, piece in line[0])) for line in _read_lines(text, regex, read)
    ]
    together = "\n".join(view for _, _, view in lines)
    if redact(together) == together:  # as nearly always
        return text
    kept: list[str] = []
    done = 0
    for pieces, end, view in lines:
        redacted = redact(view)
        if redacted != view:
            kept += [text[done : pieces[0][0]], _restore(text[:end], pieces, view, redacted)]
            done = end
    return "".join((*kept, text[done:])) if kept else text


def _read_lines(
    text: str, regex: str, read: Callable[[re.Match[str]], Iterator[_Piece]]
) -> Iterator[tuple[list[_Piece], int]]:
    """Yield how each line with a match is read, and where it ends; lines that are joined are one."""
    search, end = compile_regex(regex).search, 0
    found = search(text)
    while found is not None:
        at = max(text.rfind("\n", 0, found.start()) + 1, end)
        end = _line_end(text, found.start())
        pieces: list[_Piece] = []
        while found is not None and found.start() <= end:
            pieces += [(at, text[at : found.start()]), *read(found)]
            at, end = found.end(), _line_end(text, found.end())
            found = search(text, at)
        yield [*pieces, (at, text[at:end])], end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _restore(text: str, pieces: list[_Piece], view: str, redacted: str) -> str:
    """Return the redacted reading of the end of a text, with what stands before and after all findings as it was written."""
    ends = [0]
    for _, piece in pieces:
        ends.append(ends[-1] + len(piece))

    def locate(at: int) -> int:
        n = bisect_right(ends, at) - 1
        return len(text) if n == len(pieces) else pieces[n][0] + at - ends[n]

    head = _count_alike(view, redacted)
    tail = _count_alike(view[head:][::-1], redacted[head:][::-1])
    last = locate(len(view) - tail)
    return (
        f"{text[pieces[0][0] : locate(head)]}{redacted[head : len(redacted) - tail]}{text[last:]}"
    )


def _count_alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
