"""Secrets told in a sentence of a language that writes no blanks; its words are in `words.toml`. Pure."""

from collections.abc import Iterator

from memd.capture.redact import names
from memd.capture.redact.names import is_naming, is_reference, judge
from memd.capture.redact.regexes import compile_regex

_UNSPACED = [row for row in names.WORD_TABLES.values() if "after" in row]
_USUAL_MIN = 8
_RUN = r"[\"'`「『“*(（]{0,3}\s{0,2}(?P<s>[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x5f\x61-\x7e]{4,128})"
_GAP = r"[^\x21-\x7e。！？；\n]{0,24}?"


_UNSPACED_END = r"[\"'`」』”)）]{0,3}\s{0,2}(?:です|だよ?|だ|입니다|이야|야|예요|이에요|。|，|、|,|\.|\Z|\n|\\n)"


def find_unspaced(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and rule of the values in languages that write no blanks: 密码是…, パスワードは…です, 비밀번호는 …, 用…作为密码."""
    for table in _UNSPACED:
        for kind in ("password", "key"):
            for word in table[kind].replace("_", " ").split():
                if word in lowered:
                    yield from _find_beside(text, word, kind, table)


def _find_beside(
    text: str, word: str, kind: str, table: dict[str, str]
) -> Iterator[tuple[int, int, str]]:
    links = "|".join(sorted(table["after"].split(), key=len, reverse=True))
    after = compile_regex(rf"(?i){word}{_GAP}(?:{links})\s{{0,3}}[:：]?\s{{0,3}}{_RUN}")
    told = compile_regex(rf"(?i){word}{_GAP}{_RUN}")
    instead = compile_regex(rf"\s{{0,3}}[，,、]?\s{{0,3}}[^\x21-\x7e。！？；\n]{{1,8}}?{_RUN}")
    befores = "|".join(sorted(table["before"].split(), key=len, reverse=True))
    before = compile_regex(
        rf"(?i){_RUN}[\"'`」』”*)）]{{0,3}}\s{{0,2}}(?:{befores})[^\x21-\x7e。！？；，、\n]{{0,8}}?{word}"
    )
    is_password = kind == "password"
    least = names.FAIR if is_password else names.STRONG
    for regex in (after, told, before):
        for found in regex.finditer(text):
            start, bare = found.start("s"), found["s"].rstrip("\"'`*().,;:")
            is_last = compile_regex(_UNSPACED_END).match(text, start + len(bare)) is not None
            strength = judge(bare)
            if (
                is_last
                and is_password
                and strength in {names.PLAIN, names.NUMBER}
                and regex is not told
            ):
                named = is_naming(bare) or is_reference(bare)
                is_value = strength == names.NUMBER or (
                    regex is after and bare.islower() and not named
                )
            else:
                # A short name with a number may be a part of the page: 密码框是input2组件.
                is_usual = len(bare) >= _USUAL_MIN and (regex is not told or _has_digits(bare))
                is_value = strength >= least and (
                    strength == names.STRONG or (is_last and regex is not told) or is_usual
                )
            if is_value:
                yield start, start + len(bare), "password" if is_password else "token"
            newer = instead.match(text, start + len(bare)) if is_password else None
            if newer and regex is after and judge(newer["s"]) >= names.FAIR:
                yield *newer.span("s"), "password"


def _has_digits(bare: str) -> bool:
    return sum(map(str.isdigit, bare)) > 1
