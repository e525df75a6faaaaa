"""High-entropy strings: long runs of characters that neither people nor compilers write. Pure.

A word counts as random when its pairs of letters are unusual in words, its character classes alternate, and its
Shannon entropy is high. Hashes, ids, paths, URLs without credentials and images are random too; their form or the
text before them exempts them.
"""

import bisect
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable

from memd.capture.redact.regexes import compile_regex

_WORD = re.compile(
    # The letter of an escaped line break is no part of a word.
    r"(?:(?<=\\[nrtbf])|(?<![A-Za-z0-9_+/-])(?!(?<=\\)[nrtbf]))[A-Za-z0-9_+/-]{24,}+={0,2}",
    re.ASCII,
)
_SPLIT = re.compile(r"[_+/=-]")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F_-]+", re.ASCII)
_LETTERS = re.compile(r"[a-z]{2,}", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", re.ASCII)
_SEAM = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])", re.ASCII)
_DIGIT = re.compile(r"[0-9]", re.ASCII)
_ID_PREFIX = (
    r"(?a)(?:srv)?tool(?:u|use)?_|(?:msg|req|resp|run|thread|asst|call|fc|rs|evt|batch|file|container|"
    r"session|sess|agent|bash|shell|task|org|user|team|prompt|step|chatcmpl|cse|env|cus|price|prod|sub|"
    r"in|pi|ch|acct|trace|span|job|doc)[_-](?!live|test)"
)
_PUBLIC = (
    # digests, ssh public keys, certificates and public keys in base64, images, documents, fonts
    r"(?a)[Ss][Hh][Aa]\d{1,3}-|AAAA[BCE][A-Za-z0-9]|MII[BCDEFGHI]|MCowBQYDK2V|MFkwEwYH|MFYwEAYH|MHYwEAYH|LS0tLS1CRUdJTiBDRVJU|LS0tLS1CRUdJTiBQVUJM|iVBORw0KGgo|/9j/|R0lGOD|"
    # and public keys of Stripe and its like, PostHog, age, Nostr and Bitcoin
    r"pk_(?:live|test)_|phc_|age1[a-z0-9]{50}|npub1[a-z0-9]{50}|bc1[a-z0-9]{20}|UklGR|PHN2Zy|PD94bWw|JVBERi0|AAABAA|d09GM|d09GR|T2dnUw|SUQz|AAAAIGZ0eX"
)
_DIGEST_BEFORE = (
    r"(?a)(?i:(?:sha-?\d{1,3}|md5|blake\w{1,3}|h1|etag|integrity|checksum|digest|hash|nonce|[a-z_-]{0,20}id|"
    r"uuid|pub(?:lic)?[ _-]?key|cursor|signature|thumbprint|fingerprint)\\{0,3}[\"'`]?\s?[-:=]\s?\\{0,3}[\"'`]?(?:W/)?\\?[\"']?)\Z"
)
_BASE64_BEFORE = r"base64,\s{0,4}\Z"
_PUBLIC_BLOCK = (
    # Lines of base64 between marks that say they are for everybody, also as JSON writes them.
    r"(?a)-----BEGIN ((?:[A-Z0-9]{1,12} ){0,3}(?:PUBLIC KEY(?: BLOCK)?|CERTIFICATE|REQUEST|SIGNATURE|CRL))-----"
    r"(?:[A-Za-z0-9+/=]{1,80}+|[ \t]{1,40}+|\r?\n|\\{1,7}[nr]){1,4000}?-----END \1-----"
)
_LOOK_BACK = 60
_TOKEN_MAX = 300
_SAMPLE = 512
_NAME_MIN = 3
_BITS_MIN = 3.5
_PART_MIN = 5
_LETTERS_A_TURN = 3
"""Letters per change of case in a name, at least: MyProject."""
_DRAWN_MIN = 20
_DRAWN_SHARE = 0.6
_MARGIN = 0.15
_USUAL_WEIGHT = 1.1
_AWS_SECRET = 40
_LONG_PART = 10
_DELIMITERS = frozenset(" \t\r\n\"'`<>()[]{}|,;\\")

_USUAL = """th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me
    de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il
    tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir
    su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag if ap gr
    od bo sp rd do uc bu ei ov by rm ep tt oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um
    pp ua up lu go ht ru ug ds lt pi rc rr eg au ck ew mu br bi pt ak pu ui rg ib tl ny ki rk ys ob mm fu
    ph og ms ye ud mb ip ub oi rl gu dr hr cc tw ft wn nu af hu nn eo vo rv nf xp gn sm fl iz ok nl my gl
    aw ju oa eq sy sl ps jo lf nv je nk kn gs dy hy ze ks xt bs ik dd py rp sk xi oe oy ws lv dl rf eu dg
    wr xa yi nm eb fy js db ql lp tm sq cs ht tp ml xm np yp yn yt ax ox"""
_PAIRS = frozenset(_USUAL.split())
"""Pairs of letters that make up nine in ten of those in English words and identifiers; chance alone
would find them in four of ten."""


def redact_words(text: str) -> str:
    """Replace random words by `[REDACTED:high-entropy]`."""
    kept: list[str] = []
    done = 0
    blocks = _public_blocks(text)
    for found in _WORD.finditer(text):
        start, end = found.span()
        # What was taken out before it says nothing about this one any more.
        if not is_random(found[0]) or _is_public(
            text[max(done, start - _TOKEN_MAX) : start], found[0]
        ):
            continue
        block = bisect.bisect(blocks, (start, end)) - 1
        if block >= 0 and start < blocks[block][1]:
            continue
        kept += [text[done:start], "[REDACTED:high-entropy]"]
        done = end
    return "".join((*kept, text[done:])) if kept else text


def _public_blocks(text: str) -> list[tuple[int, int]]:
    """Yield where certificates and public keys stand."""
    if "-----BEGIN " not in text:
        return []
    return [found.span() for found in compile_regex(_PUBLIC_BLOCK).finditer(text)]


def has_random_words(runs: Iterable[str]) -> bool:
    """Return whether any of these runs of characters contains a random word."""
    return any(is_random(word) for run in runs for word in _WORD.findall(run))


def is_random(word: str) -> bool:
    """Return whether a word of 24 or more characters looks random, judged by its first 512.

    Small letters alone, capitals alone, digits and hexadecimal are no evidence.
    """
    sample = word[:_SAMPLE].rstrip("=")
    mixed = _DIGIT.search(sample) is not None or not (sample.islower() or sample.isupper())
    if not mixed or _HEX.fullmatch(sample):
        return False
    return _has_random_parts(sample) and entropy(sample) >= _BITS_MIN and not _is_alphabet(sample)


def _has_random_parts(sample: str) -> bool:
    """Return whether the parts of a word between `-`, `_`, `/` and `+` look drawn.

    They are judged one by one; the random ones must make up twenty characters or more, and most of
    the word. Separators may be part of a draw themselves (base64), so a word of all classes of
    characters may also be random as a whole.
    """
    parts = [part for part in _SPLIT.split(sample) if part]
    chances = [_score_randomness(part) for part in parts]
    drawn = [
        len(part)
        for part, chance in zip(parts, chances, strict=True)
        if _is_random_part(part, chance)
    ]
    if sum(drawn) >= max(_DRAWN_MIN, _DRAWN_SHARE * len(sample)):
        return True
    if sample.islower() or sample.isupper() or not _DIGIT.search(sample):
        return False
    if len(sample) == _AWS_SECRET and max(drawn, default=0) >= _LONG_PART:
        return True
    return sum(chances) > _MARGIN * sum(map(len, parts))


def entropy(word: str) -> float:
    """Shannon entropy in bits per character (Shannon 1948): −Σ p·log2 p."""
    total = len(word)
    return -math.fsum(n / total * math.log2(n / total) for n in Counter(word).values())


def _is_alphabet(word: str) -> bool:
    """Return whether letters follow the alphabet and are not random: `ABCDEFG…`."""
    steps = [a - b for a, b in itertools.pairwise(word.encode())]
    return steps.count(1) + steps.count(-1) > len(word) // 2


def _is_random_part(part: str, chance: float) -> bool:
    """Return whether one part, free of separators, is more like a draw of characters than like words."""
    return len(part) >= _PART_MIN and chance > _MARGIN * len(part) and not _HEX.fullmatch(part)


def _score_randomness(part: str) -> float:
    """The evidence that a part was drawn: seams and odd pairs of letters, less the usual pairs.

    camelCase is made of words, so a pair of letters across its humps is no evidence of either.
    """
    is_word = part.isalpha() and part.islower()
    runs = [part] if is_word else _LETTERS.findall(_HUMP.sub(" ", part).lower())
    pairs = [run[i : i + 2] for run in runs for i in range(len(run) - 1)]
    usual = sum(map(_PAIRS.__contains__, pairs))
    seams = 0 if is_word else len(_SEAM.findall(part))
    return seams + (len(pairs) - usual) - _USUAL_WEIGHT * usual


def _is_public(before: str, word: str) -> bool:
    """Return whether what stands before a random word, or its own beginning, says that it is no secret."""
    if compile_regex(_PUBLIC).match(word) or compile_regex(_ID_PREFIX).match(word):
        return True
    near = before[-_LOOK_BACK:]
    if compile_regex(_BASE64_BEFORE).search(near) or compile_regex(_DIGEST_BEFORE).search(near):
        return True
    # As much of it as stands there without a space or a quote between.
    return _is_path_or_url(before[max(map(before.rfind, _DELIMITERS)) + 1 :], word)


def _is_path_or_url(before: str, word: str) -> bool:
    """Return whether the word belongs to a path or to a URL, outside its query."""
    whole = before + word
    if "://" in whole:
        return "?" not in before and "#" not in before
    head = whole.split("/", 1)[0]
    if "/" not in whole or not (head == "" or head in {".", "..", "~"} or before):
        return False
    parts = _SPLIT.split(whole)
    return any(_is_name(part) for part in parts if part.isalpha() and len(part) >= _NAME_MIN)


def _is_name(part: str) -> bool:
    """Return whether letters are what a directory may be called. Of small ones alone a draw seldom has three."""
    if len(part) < _PART_MIN:
        return part.islower()
    turns = len(_SEAM.findall(part))
    return turns * _LETTERS_A_TURN <= len(part) and not _is_random_part(
        part, _score_randomness(part)
    )
