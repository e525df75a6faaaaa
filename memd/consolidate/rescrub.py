"""Scrub a copy of an older vault as its successor was scrubbed, so that a restore brings nothing back.

What was scrubbed is not written down anywhere. But where a row has a placeholder now and none in the copy, what
stands in its place in the copy is what was scrubbed: it goes from every row of the copy.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memd.consolidate.scrub import ANY_PLACEHOLDER, ScrubRule, map_strings, rewrite_rows
from memd.store import backup, erasure, fulltext
from memd.store.backup import ChangedText
from memd.store.database import Connection, Database
from memd.store.erasure import TextRow, TextTable

_LITERAL_CHARACTERS_MIN = 4
"""What is shorter is scrubbed only where the vault has the placeholder."""
_LITERALS_MAX = 5_000
_ROWS = 500
"""Rows per transaction."""


@dataclass(frozen=True, slots=True)
class ScrubbedText:
    """A text that a scrub has replaced. `is_word`: nothing of a word stood on either side."""

    text: str
    placeholder: str
    is_word: bool


def find_scrubbed(old: str, new: str) -> list[ScrubbedText]:
    """Find what the placeholders of `new` have replaced in `old`; nothing if the texts differ otherwise."""
    parts = ANY_PLACEHOLDER.split(new)
    found = []
    start, end = len(parts[0]), len(old) - len(parts[-1])
    if not (old.startswith(parts[0]) and old.endswith(parts[-1]) and start <= end):
        return []
    for number, placeholder in enumerate(ANY_PLACEHOLDER.findall(new)):
        following = parts[number + 1]
        is_last = number == len(parts) - 2
        stop = end if is_last else old.find(following, start + 1, end)
        if stop <= start or not (following or is_last):
            return []
        text = old[start:stop]
        if text != placeholder:
            around = old[start - 1 : start] + old[stop : stop + 1]
            is_word = not any(character.isalnum() or character == "_" for character in around)
            found.append(ScrubbedText(text, placeholder, is_word))
        start = stop + len(following)
    return found


def make_literal_rule(scrubbed: Iterable[ScrubbedText]) -> ScrubRule | None:
    """The rule that replaces these texts wherever they stand; None if there are none that are long enough."""
    placeholders = {
        one.text: one
        for one in scrubbed
        if len(one.text) >= _LITERAL_CHARACTERS_MIN and one.text.strip()
    }
    longest = sorted(placeholders, key=len, reverse=True)[:_LITERALS_MAX]
    if not longest:
        return None
    patterns = (
        rf"(?<!\w){re.escape(text)}(?!\w)" if placeholders[text].is_word else re.escape(text)
        for text in longest
    )
    pattern = re.compile("|".join(patterns))

    def replace_all(text: str) -> str:
        return pattern.sub(lambda match: placeholders[match[0]].placeholder, text)

    return ScrubRule(
        "carried over", lambda values: [map_strings(one, replace_all) for one in values]
    )


def scrub_copy(copy: Database, changed: Sequence[ChangedText], redact: ScrubRule | None) -> int:
    """Rewrite a copy as the vault was rewritten since; return how many of its rows were.

    `redact`: the rules of redaction, if the vault was scrubbed by them.
    """
    rule = make_literal_rule(one for each in changed for one in _find_in_row(each))
    rules = [one for one in (rule, redact) if one is not None]
    rewritten = {(each.table, each.id) for each in changed}
    copy.write_now(partial(backup.write_changed, changed=changed))
    for table in erasure.TEXT_TABLES:
        after = 0
        read = partial(erasure.read_texts, table=table, limit=_ROWS)
        while rules and (rows := copy.read_now(partial(read, after=after))):
            after = rows[-1].id
            ids = copy.write_now(partial(_rewrite_rows, rules=rules, table=table, rows=rows))
            rewritten.update((table.name, number) for number in ids)
    memories = [number for name, number in rewritten if name == "summaries"]
    copy.write_now(lambda tx: [fulltext.remove_passages(tx, number) for number in memories])
    return len(rewritten)


def _find_in_row(changed: ChangedText) -> list[ScrubbedText]:
    found = [] if changed.now is None else find_scrubbed(changed.then, changed.now)
    if not changed.is_json:
        return found
    plain = []
    for one in found:
        # Half of an escape sequence is no text.
        with contextlib.suppress(ValueError):
            plain.append(replace(one, text=json.loads(f'"{one.text}"')))
    return plain


def _rewrite_rows(
    tx: Connection, rules: Sequence[ScrubRule], table: TextTable, rows: Sequence[TextRow]
) -> set[int]:
    """Rewrite these rows by every rule, one after the other; the ids of those that changed."""
    ids = set()
    for rule in rules:
        for row, new in zip(rows, rewrite_rows(rule, table, rows), strict=True):
            erasure.write_texts(tx, table, row, new)
            ids |= {row.id} if new else set()
        rows = erasure.texts_by_ids(tx, table, [row.id for row in rows])
    return ids
