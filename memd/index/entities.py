"""Files, symbols, identifiers and people in a text, found by their form alone. Pure.

A file is a path or a name with an extension; a symbol is called (`name()`) or belongs to something
(`Class.method`); an identifier is written unlike plain words (snake_case, camelCase, CONSTANT_CASE); a person is an
@handle, or a capitalised name that says or is told something. Names are folded. When in doubt nothing is found:
a missed name only costs a ranking bonus.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from memd.models import Summary
from memd.text import fold, is_stop_word, split_identifier, unique, words

ENTITIES_MAX = 200
_CHARACTERS_MAX = 100_000
_NAME_CHARACTERS_MAX = 200
# No match begins where a name may continue: else a long run would be scanned from each of its characters.
_FILE = re.compile(
    r"(?<![\w@:/.+-])(?:~|\.{1,2})?(?:/?[\w@+-][\w.@+-]*)?(?:/[\w@+-][\w.@+-]*)+"
    r"|(?<![\w@/.-])[\w-]+(?:\.[\w-]+)*\.(?=[a-zA-Z])[a-zA-Z0-9]{1,5}\b(?![(/@])"
)
_ENDINGS = frozenset(
    """py pyi js jsx ts tsx json jsonl yaml yml toml ini cfg conf md rst txt html css scss sql sh bash
    rs go java kt c h cc cpp hpp cs rb php lua pl ex swift xml csv db sqlite lock log env service pdf
    png jpg svg zip gz""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_SYMBOL = re.compile(
    r"(?<![\w/.])(?<!::)[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*(?=\(\))"
    r"|(?<![\w/.])(?<!::)[A-Z]\w*(?:(?:\.|::)[A-Za-z_]\w*)+\b"
)
_WORD = re.compile(r"(?<![\w/.@-])[A-Za-z_]\w*[A-Za-z0-9_](?![\w/])")
_HANDLE = re.compile(r"(?<![\w.@/])@([A-Za-z][\w-]{1,38})\b(?!/)")
_NAME = r"[A-Z][a-z]+(?:[ -][A-Z][a-z]+)?"
_SAYS = re.compile(
    rf"\b({_NAME})(?:’s|'s)? (?:said|says|asked|asks|told|tells|wants?|wanted|prefers?|preferred|likes?"
    r"|suggested|proposed|agreed|approved|reviewed|reported|wrote|decided|thinks|confirmed)\b"
)
_IS_TOLD = re.compile(
    r"\b(?:[Aa]sk(?:ed)?|[Tt](?:ell|old)|[Tt]hank(?:ed|s to)?|[Cc][Cc]|[Mm]et(?: with)?|[Pp]ing(?:ed)?"
    rf"|(?:assigned|reported|spoke|talked) to|(?:approved|reviewed|written|suggested|reported|owned) by) ({_NAME})\b"
)
_NOT_PEOPLE = frozenset(
    """user claude agent assistant somebody someone everybody everyone nobody it this that there monday
    tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december""".split()  # noqa: SIM905  # a page of quotes reads worse
)

NamedEntity = tuple[str, str]
"""(folded name, kind): kind is `file`, `symbol`, `identifier` or `person`."""


def entities_of_summary(summary: Summary) -> tuple[NamedEntity, ...]:
    """Return the entities in a summary's title, body and files; at most 200."""
    listed = [entity for path in summary.files for entity in _file_entities(path)]
    return _limit_entities([*listed, *_find_entities(f"{summary.title}\n{summary.body}")])


def entities_of_text(text: str) -> tuple[NamedEntity, ...]:
    """Return the entities in a text; at most 200."""
    return _limit_entities(_find_entities(text))


def is_name_in(name: str, asked: Collection[str]) -> bool:
    """Return whether every word of an entity's name is among the folded words of a query."""
    parts = [fold(word) for word in words(name)]
    return bool(parts) and all(part in asked for part in parts)


def _limit_entities(found: Iterable[NamedEntity]) -> tuple[NamedEntity, ...]:
    """Return each entity once, in order, none too long, at most 200."""
    kept = dict.fromkeys(e for e in found if 1 < len(e[0]) <= _NAME_CHARACTERS_MAX)
    return tuple(kept)[:ENTITIES_MAX]


def _find_entities(text: str) -> Iterator[NamedEntity]:
    text = text[:_CHARACTERS_MAX]
    for found in _FILE.finditer(text):
        if _is_path(found[0]):
            yield from _file_entities(found[0])
    for found in _SYMBOL.finditer(text):
        if found[0].rpartition(".")[2].lower() not in _ENDINGS:
            yield fold(found[0]), "symbol"
    for word in unique(_WORD.findall(text)):
        if _is_identifier(word):
            yield fold(word), "identifier"
    yield from _find_people(text)


def _is_path(text: str) -> bool:
    """Return whether this is a path and not two words with a slash: `and/or`."""
    ending = text.rstrip(".").rpartition(".")[2].lower()
    return ending in _ENDINGS or text[0] in "/~." or text.count("/") > 1


def _file_entities(path: str) -> Iterator[NamedEntity]:
    """Yield a path, and the file's name alone, by which people ask for it."""
    clean = fold(path).rstrip("./")
    yield clean, "file"
    name = clean.rpartition("/")[2]
    if name != clean and "." in name:
        yield name, "file"


def _is_identifier(word: str) -> bool:
    bare = word.strip("_")
    if "_" in bare:
        return True
    return not bare.isupper() and not bare.islower() and len(split_identifier(bare)) > 1


def _find_people(text: str) -> Iterator[NamedEntity]:
    for found in _HANDLE.finditer(text):
        yield fold(found[1]), "person"
    for pattern in (_SAYS, _IS_TOLD):
        for found in pattern.finditer(text):
            name = fold(found[1])
            if not any(is_stop_word(w) or w in _NOT_PEOPLE for w in words(name)):
                yield name, "person"
