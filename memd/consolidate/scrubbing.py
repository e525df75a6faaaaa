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
from memd.consolidate.sifting import mapped
from memd.store import texts
from memd.store.database import Connection
from memd.store.texts import Row, Table
from memd.text import digest

_PLACEHOLDER = re.compile(r"\[REDACTED:[^\]\n]{1,60}\]")
_IDS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Rule:
    """How a text, or a JSON value, is without what shall go."""

    name: str
    clean: Callable[[Sequence[Any]], Sequence[Any]]
    """Takes texts and JSON values, and returns them without what shall go."""

    def text(self, text: str) -> str:
        """One text without it."""
        return str(self.clean([text])[0])

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


def by_redaction(
    redact: Callable[[str], str], redact_value: Callable[[Any], Any] | None = None
) -> Rule:
    """The rule that redacts what was written before redaction knew it."""
    clean = redact_value or (lambda value: mapped(value, redact))
    return Rule(
        "--secrets",
        lambda values: [redact(v) if isinstance(v, str) else clean(v) for v in values],
    )


def hits(rule: Rule, table: Table, rows: Sequence[Row]) -> dict[int, Counter[str]]:
    """Those of these rows in which the rule finds something: row → what it puts there."""
    return {
        row.id: sum(
            (_put(row.texts[column], text) for column, text in new.items()), Counter[str]()
        )
        for row, new in zip(rows, changed(rule, table, rows), strict=True)
        if new
    }


def changed(rule: Rule, table: Table, rows: Sequence[Row]) -> list[dict[str, str]]:
    """Of each row: column → its new text, of those that change."""
    cells = [
        (number, column, json.loads(text) if column in table.json else text)
        for number, row in enumerate(rows)
        for column, text in row.texts.items()
        if not (table.name == "edges" and column in ("from_id", "to_id") and text.isdigit())
    ]
    new: list[dict[str, str]] = [{} for _ in rows]
    cleaned = rule.clean([value for _, _, value in cells])
    for (number, column, value), clean in zip(cells, cleaned, strict=True):
        if clean != value:
            new[number][column] = texts.compact_json(clean) if column in table.json else clean
    return new


def stays(tx: Connection, rule: Rule) -> dict[str, int]:
    """Names that cannot be changed in which the rule finds something, by table and column."""
    names = list(texts.names(tx))
    cleaned = rule.clean([text for _, text in names])
    return dict(
        Counter(where for (where, text), new in zip(names, cleaned, strict=True) if new != text)
    )


def log_lines(
    path: str, rule: Callable[[str], str], change: Callable[[str], str] | None
) -> int:
    """How many lines of the log the rule changes; with `change` they are changed."""
    if change is not None:
        return log.rewrite(path, change)
    return sum(rule(line) != line for line in log.lines(path))


def _put(before: str, after: str) -> Counter[str]:
    return Counter(_PLACEHOLDER.findall(after)) - Counter(_PLACEHOLDER.findall(before))
