"""Split memories into passages; list the terms of each, and the files, symbols, identifiers and people that they name. Pure.

A passage has a limited number of words and ends where a paragraph ends if one does in its second half, else at a
line, a sentence or a word. The spans of a body's passages cover it without gap or overlap. What names the whole
summary (title, tags, topic, file names) is repeated in every passage, because a hit is ranked by its best passage.

A file is a path or a name with an extension; a symbol is called (`name()`) or belongs to something
(`Class.method`); an identifier is written unlike plain words (snake_case, camelCase, CONSTANT_CASE); a person is an
@handle, or a capitalised name that says or is told something. Names are folded. When in doubt nothing is found:
a missed name only costs a ranking bonus.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from memd.languages import has_unspaced, language_mark, split_scripts
from memd.models import SIGNIFICANCE_TAG, UNTITLED_RULES, Summary
from memd.store import NewPassage, Posting
from memd.text import (
    WORD,
    fold,
    is_stop_word,
    languages_of,
    split_identifier,
    stems,
    terms,
    unique,
    words,
)

TOKENS_MAX = 400
"""Words of a passage: most memories are one passage, and a long one is found by the part that is about the question."""
_COUNT_MAX = 255
_BOUNDARIES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?]['\")\]]*\s+|[\u3002\uff01\uff1f]"),
)
"""Where a paragraph, a line and a sentence end."""


def split_into_passages(summary: Summary, *, tokens_max: int = TOKENS_MAX) -> list[NewPassage]:
    """Split a summary into passages, in order; at least one, even of an empty body."""
    # A title that repeats the beginning of the text would count those words twice.
    languages = languages_of(f"{summary.title}\n{summary.body}")
    title = Counter(() if summary.rule in UNTITLED_RULES else stems(summary.title, languages))
    about = _summary_names(summary)
    return [
        _make_passage(summary, (seq, *span), title, about, languages)
        for seq, span in enumerate(passage_spans(summary.body, tokens_max=tokens_max))
    ]


def passage_text(title: str, body: str, start: int, stop: int) -> str:
    """Return the text to embed for a passage of a memory with this title and body."""
    return f"{title}\n{body[start:stop]}"


def passage_spans(body: str, *, tokens_max: int = TOKENS_MAX) -> list[tuple[int, int]]:
    """Return consecutive [start, stop) in characters, from 0 to the end."""
    units = list(_find_words(body))
    cuts, first = [0], 0
    while len(units) - first > tokens_max:
        earliest, latest = units[first + max(tokens_max // 2, 1)], units[first + tokens_max]
        cuts.append(_find_cut(body, earliest, latest))
        while units[first] < cuts[-1]:
            first += 1
    return list(zip(cuts, [*cuts[1:], len(body)], strict=True))


def _find_words(body: str) -> Iterator[int]:
    """Yield where each word begins; in scripts without spaces, each character."""
    for word in WORD.finditer(body):
        if not word[0].isascii() and has_unspaced(word[0]):
            yield from range(*word.span())
        else:
            yield word.start()


def _find_cut(body: str, earliest: int, latest: int) -> int:
    """Return the last good boundary in (earliest, latest]; a word begins at `latest`."""
    for boundary in _BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(body, earliest, latest)]
        if ends:
            return ends[-1]
    return latest


def _make_passage(
    summary: Summary,
    place: tuple[int, int, int],
    title: Counter[str],
    about: str,
    languages: Sequence[str],
) -> NewPassage:
    seq, start, stop = place
    text = summary.body[start:stop]
    body = Counter(stems(text, languages))
    body.update(stems(about))
    body.update(map(language_mark, languages))
    return NewPassage(
        summary_id=summary.id, seq=seq, start=start, stop=stop,
        title=summary.title, text=f"{text}\n{about}" if about else text,
        identifiers=_split_identifiers(f"{summary.title}\n{text}\n{about}"),
        postings=tuple(
            Posting(term, min(title[term], _COUNT_MAX), min(body[term], _COUNT_MAX))
            for term in (title | body)
        ),
    )  # fmt: skip


def _split_identifiers(text: str) -> str:
    """Return the parts of the identifiers in a text: FTS5 splits `decode_token`, but not `decodeToken`.

    Of words in scripts without spaces or in several scripts, the terms, as queries have them.
    """
    found: list[str] = []
    for token in words(text):
        if not token.isascii() and (has_unspaced(token) or len(split_scripts(token)) > 1):
            found.extend(terms(token))
        elif len(parts := split_identifier(token)) > 1:
            found.extend(parts)
    return " ".join(unique(found))


def _summary_names(summary: Summary) -> str:
    """Return what names the summary beside its title, a line each."""
    names = (
        *(tag for tag in summary.tags if not tag.startswith(SIGNIFICANCE_TAG)),
        *(path.rstrip("/").rpartition("/")[2] for path in summary.files),
        summary.topic_key or "",
    )
    return "\n".join(name for name in unique(names) if name)


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
