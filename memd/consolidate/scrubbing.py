"""What a scrub finds and what it puts there: a pattern, or the present rules of redaction.

Counts and places are told, never what was found. A placeholder of an earlier redaction is left as it
is, so that scrubbing twice is scrubbing once. Not here: walking the vault (eraser.py).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memd import log
from memd.errors import BadRequest
from memd.store import texts
from memd.store.database import Connection
from memd.store.texts import Row, Table
from memd.text import digest

PATTERN_CHARACTERS = 1_000
_PUT_THERE = "[REDACTED:scrub]"
_PLACEHOLDER = re.compile(r"\[REDACTED:[^\]\n]{1,60}\]")
_IDS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """How a text, or a JSON value, is without what shall go."""

    name: str
    text: Callable[[str], str]
    value: Callable[[Any], Any]

    @property
    def digest(self) -> str:
        """What it is called in the vault: a pattern may itself be a secret."""
        return digest("scrub", self.name)[:16]


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What a scrub rewrote, or would rewrite. `rule` is for the caller, who knows it."""

    rule: str
    is_dry_run: bool
    rows: Mapping[str, int] = field(default_factory=dict)
    """Table (or `log`) → rows in which something was found."""
    ids: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Table → the first of these rows."""
    found: Mapping[str, int] = field(default_factory=dict)
    """What stands there instead → how often."""
    stays: Mapping[str, int] = field(default_factory=dict)
    """Names that cannot be changed, by table and column → in how many it stands."""
    backups: tuple[str, ...] = ()

    def with_rows(self, table: str, hits: Mapping[int, Counter[str]]) -> "Scrubbed":
        """With these rows of a table: row → what was put there."""
        if not hits:
            return self
        shown = (*self.ids.get(table, ()), *hits)[:_IDS_SHOWN]
        total = Counter(self.found)
        for put in hits.values():
            total.update(put)
        more = self.with_count(table, len(hits))
        return replace(more, ids={**self.ids, table: shown}, found=dict(total))

    def with_count(self, where: str, count: int) -> "Scrubbed":
        """With so many more rows or lines of one place."""
        if not count:
            return self
        return replace(self, rows={**self.rows, where: self.rows.get(where, 0) + count})


def by_pattern(pattern: str) -> Rule:
    """The rule of a regular expression. BadRequest if it is none, or would find nothing at all."""
    if not pattern or len(pattern) > PATTERN_CHARACTERS:
        raise BadRequest(f"pattern: between 1 and {PATTERN_CHARACTERS} characters")
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadRequest(f"pattern: not a regular expression ({error})") from error
    if compiled.search(""):
        raise BadRequest("pattern: it fits an empty text, so it would be found everywhere")

    def clean(text: str) -> str:
        parts, done = [], 0
        for kept in _PLACEHOLDER.finditer(text):
            parts += [compiled.sub(_PUT_THERE, text[done : kept.start()]), kept.group()]
            done = kept.end()
        return "".join((*parts, compiled.sub(_PUT_THERE, text[done:])))

    return Rule(pattern, clean, lambda value: _mapped(value, clean))


def by_redaction(
    redact: Callable[[str], str], redact_value: Callable[[Any], Any] | None = None
) -> Rule:
    """The rule that redacts what was written before redaction knew it."""
    return Rule("--secrets", redact, redact_value or (lambda value: _mapped(value, redact)))


def hits(rule: Rule, table: Table, rows: Sequence[Row]) -> dict[int, Counter[str]]:
    """Those of these rows in which the rule finds something: row → what it puts there."""
    found = {}
    for row in rows:
        if new := changed(rule, table, row):
            found[row.id] = sum(
                (_put(row.texts[column], text) for column, text in new.items()), Counter[str]()
            )
    return found


def changed(rule: Rule, table: Table, row: Row) -> dict[str, str]:
    """Column → its new text, of those that change."""
    new = {}
    for column, text in row.texts.items():
        if table.name == "edges" and column in ("from_id", "to_id") and text.isdigit():
            continue
        if column in table.json:
            value = json.loads(text)
            clean = rule.value(value)
            if clean != value:
                new[column] = texts.compact_json(clean)
        elif (clean := rule.text(text)) != text:
            new[column] = clean
    return new


def stays(tx: Connection, rule: Rule) -> dict[str, int]:
    """Names that cannot be changed in which the rule finds something, by table and column."""
    return dict(Counter(where for where, text in texts.names(tx) if rule.text(text) != text))


def log_lines(
    path: str, rule: Callable[[str], str], change: Callable[[str], str] | None
) -> int:
    """How many lines of the log the rule changes; with `change` they are changed."""
    if change is not None:
        return log.rewrite(path, change)
    return sum(rule(line) != line for line in log.lines(path))


def _put(before: str, after: str) -> Counter[str]:
    return Counter(_PLACEHOLDER.findall(after)) - Counter(_PLACEHOLDER.findall(before))


def _mapped(value: Any, clean: Callable[[str], str]) -> Any:
    """A JSON value with its strings and keys changed; keys that become one keep the last value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _mapped(inner, clean) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, clean) for inner in value]
    return value
