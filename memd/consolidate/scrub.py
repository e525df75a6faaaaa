"""Find and replace text in everything stored, by a pattern or by the current rules of redaction; erase what is forgotten.

Backups and exports are named, never rewritten.
Reports contain counts and row ids, never the text that was found. Placeholders of earlier redactions are
left alone, so that scrubbing twice is the same as scrubbing once.
"""

import contextlib
import json
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.consolidate.forget import (
    ForgetPlan,
    ForgetResult,
    ForgetSelection,
    apply_plan,
    plan_selection,
    words_of_payload,
)
from memd.consolidate.wanted_words import WantedWords
from memd.errors import BadRequest, SelectionChanged
from memd.store import backup, database, erasure, fulltext, ledger
from memd.store.backup import ChangedText, note_scrubbed_secrets
from memd.store.database import Connection, Database
from memd.store.erasure import TextRow, TextTable
from memd.store.queries import compact_json
from memd.text import digest, map_strings

if TYPE_CHECKING:
    import regex

SECRETS_NAME = "--secrets"
"""The name of the rule that applies what redaction knows today."""
PLACEHOLDER = "[REDACTED:scrub]"
_PATTERN_CHARACTERS_MAX = 1_000
_PATTERN_TIME_MAX_S = 5.0
"""For a few hundred texts, which normally take milliseconds."""
_STEPS_MAX = 20_000
"""Steps of a compiled pattern: each takes some 500 bytes, and a repetition copies the steps within."""
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\(\??)|(?P<close>\))"
    r"|(?P<repeat>[*+?]|\{(?!\})(?P<least>\d*)(?:,\d*)?\})[?+]?|(?P<brace>\{)|.",
    re.DOTALL,
)
"""The pieces of a pattern, roughly: escapes, classes, groups, repetitions, characters."""
ANY_PLACEHOLDER = re.compile(r"\[REDACTED:[^\]\n]{1,60}\]")
"""What redaction or a scrub puts in place of a text."""
_SHOWN_IDS_MAX = 10


@dataclass(frozen=True, slots=True)
class ScrubRule:
    """Rule for what to scrub. `name` is the pattern, or `--secrets` for the rules of redaction."""

    name: str
    clean: Callable[[Sequence[Any]], Sequence[Any]]
    """Takes texts and JSON values, and returns them scrubbed."""
    version: int = 0
    """Of the rules of redaction."""

    def text(self, text: str) -> str:
        """One text, scrubbed."""
        return str(self.clean([text])[0])

    @property
    def digest(self) -> str:
        """Return the rule's name in the vault, a hash: a pattern may itself be a secret."""
        return digest("scrub", self.name, *([str(self.version)] if self.version else []))[:16]


def make_pattern_rule(pattern: str, time_max_s: float = _PATTERN_TIME_MAX_S) -> ScrubRule:
    """The rule that replaces the matches of a pattern. `clean` raises BadRequest after `time_max_s`.

    BadRequest if the pattern is no regular expression, or matches an empty text. `regex` lets other
    threads run while it searches, and stops in time; `re` does neither, and could search for years.
    """
    import regex  # noqa: PLC0415  # two megabytes, for what most daemons are never asked

    if not 0 < len(pattern) <= _PATTERN_CHARACTERS_MAX:
        raise BadRequest(f"pattern: between 1 and {_PATTERN_CHARACTERS_MAX} characters")
    try:
        compiled = _compile_pattern(pattern)
        matches_nothing = compiled.search("", timeout=time_max_s) is not None
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise BadRequest(f"pattern: not a regular expression ({error})") from error
    if matches_nothing:
        raise BadRequest("pattern: it fits an empty text, so it would be found everywhere")

    def clean(values: Sequence[Any]) -> list[Any]:
        change = partial(_replace_matches, compiled, time.monotonic() + time_max_s)
        try:
            return [map_strings(value, change) for value in values]
        except TimeoutError as error:
            raise BadRequest(
                f"pattern: it searches longer than {time_max_s:g} seconds in some of the texts."
                " What was replaced until then stays replaced; try a simpler pattern, without a"
                " repetition within a repetition such as (a|aa)+"
            ) from error

    return ScrubRule(pattern, clean)


def make_redaction_rule(
    redact: Callable[[str], str], redact_value: Callable[[Any], Any] | None = None, version: int = 0
) -> ScrubRule:
    """The rule that redacts what was written before redaction knew it."""
    clean = redact_value or (lambda value: map_strings(value, redact))
    return ScrubRule(
        SECRETS_NAME,
        lambda values: [redact(v) if isinstance(v, str) else clean(v) for v in values],
        version,
    )


def _compile_pattern(pattern: str) -> "regex.Pattern[str]":
    """A pattern in the dialect of `re`: additions of `regex`, such as recursion, can eat all memory."""
    import regex  # noqa: PLC0415  # as above

    re.compile(pattern)
    pieces = list(_PIECE.finditer(pattern))
    if _count_steps(pieces) > _STEPS_MAX:
        raise BadRequest("pattern: too many repetitions within repetitions")
    # A brace that repeats nothing is a character to `re`, and may be an approximate match to `regex`.
    text = "".join("\\{" if piece["brace"] else piece[0] for piece in pieces)
    return regex.compile(text, cache_pattern=False)


def _count_steps(pieces: Sequence[re.Match[str]]) -> int:
    """The steps that `regex` compiles these pieces to, or more."""
    groups = [[0]]
    for piece in pieces:
        steps = groups[-1]
        if piece["open"]:
            groups.append([0])
        elif piece["close"] and len(groups) > 1:
            groups[-2].append(sum(groups.pop()) + 1)
        elif piece["repeat"]:
            steps[-1] *= max(2, int(piece["least"] or 0) + 1)
        else:
            steps.append(1)
    return sum(map(sum, groups))


def _replace_matches(pattern: "regex.Pattern[str]", deadline: float, text: str) -> str:
    """Replace the matches between placeholders. TimeoutError after the deadline."""
    parts, done = [], 0
    for placeholder in [*ANY_PLACEHOLDER.finditer(text), None]:
        end = len(text) if placeholder is None else placeholder.start()
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        parts.append(pattern.sub(PLACEHOLDER, text[done:end], timeout=left_s))
        if placeholder is not None:
            parts.append(placeholder.group())
            done = placeholder.end()
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class ScrubResult:
    """Result of a scrub, or of its dry run. `rule` is for the caller, which knows it."""

    rule: str
    is_dry_run: bool
    rows: Mapping[str, int] = field(default_factory=dict)
    """Table (or `log`) → number of rows with a match."""
    ids: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Table → the first of these rows."""
    found: Mapping[str, int] = field(default_factory=dict)
    """Placeholder → how often it was inserted."""
    stays: Mapping[str, int] = field(default_factory=dict)
    """Table and column of names that cannot be changed → number of rows with a match."""
    backups: tuple[str, ...] = ()
    pending: str = ""
    """What keeps the last bytes in the files, in words; empty once nothing is left."""

    def with_rows(self, table: str, replaced: Mapping[int, Counter[str]]) -> "ScrubResult":
        """Return the progress with these rows of a table added: row id → the placeholders inserted."""
        if not replaced:
            return self
        shown = (*self.ids.get(table, ()), *replaced)[:_SHOWN_IDS_MAX]
        total = dict(sum(replaced.values(), Counter(self.found)))
        more = self.with_count(table, len(replaced))
        return replace(more, ids={**self.ids, table: shown}, found=total)

    def with_count(self, where: str, count: int) -> "ScrubResult":
        """Return the progress with `count` more rows or lines."""
        if not count:
            return self
        return replace(self, rows={**self.rows, where: self.rows.get(where, 0) + count})


def rewrite_rows(
    rule: ScrubRule, table: TextTable, rows: Sequence[TextRow]
) -> list[dict[str, str]]:
    """Return for each row: column → new text, where it changes."""
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
            new[number][column] = compact_json(clean) if column in table.json else clean
    return new


def count_replacements(
    rule: ScrubRule, table: TextTable, rows: Sequence[TextRow]
) -> dict[int, Counter[str]]:
    """Count for each row that the rule changes: its id → the placeholders inserted."""
    found: dict[int, Counter[str]] = {}
    for row, new in zip(rows, rewrite_rows(rule, table, rows), strict=True):
        for column, text in new.items():
            inserted = Counter(ANY_PLACEHOLDER.findall(text))
            inserted -= Counter(ANY_PLACEHOLDER.findall(row.texts[column]))
            found[row.id] = found.get(row.id, Counter()) + inserted
    return found


def find_unchangeable(tx: Connection, rule: ScrubRule) -> dict[str, int]:
    """Names that cannot be changed: table and column → number of rows with a match."""
    names = list(erasure.lookup_names(tx))
    cleaned = rule.clean([text for _, text in names])
    matches = (where for (where, text), new in zip(names, cleaned, strict=True) if new != text)
    return dict(Counter(matches))


def scrub_log(path: str, rule: Callable[[str], str], *, dry_run: bool) -> int:
    """Change the lines of the log, or only count those that would change."""
    if dry_run:
        return sum(rule(line) != line for line in log.lines(path))
    return log.rewrite(path, rule)


# ── A copy of an older vault ──────────────────────────────────────────────────────────────────────
# What was scrubbed is not written down anywhere. But where a row has a placeholder now and none in the copy, what
# stands in its place in the copy is what was scrubbed: it goes from every row of the copy.

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


_SCRUB_ROWS = 200
"""Rows per transaction of a scrub."""
_BACKUP_DURATION_MS = 10_000
"""A backup may contain what was written so long after it was begun."""
_LOG_FIELDS_WITHOUT_WORDS = frozenset({"event", "level", "timestamp", "room", "vault"})
"""Fields of a log line that say nothing of what a session said."""


def _count_no_lines(_: Callable[[str], bool], *, erases: bool) -> int:  # noqa: ARG001  # as the spool's
    return 0


@dataclass(frozen=True, slots=True)
class RelatedFiles:
    """The files beside the vault that may repeat its text."""

    log: str = ""
    """Empty if there is none."""
    backups: Callable[[], Mapping[str, int]] = dict
    """Read the backups and exports of the vault: path → when it was begun, UTC milliseconds."""
    spool_lines: Callable[..., int] = _count_no_lines
    """Count the lines of the spool that no drain takes and that a check accepts; with `erases`, erase them."""
    leftovers: Callable[[], Sequence[str]] = tuple
    """List the files that killed backups, restores and imports have left."""
    remove_leftovers: Callable[[], object] = tuple


@dataclass(frozen=True, slots=True)
class LineCheck:
    """Test for lines of the log and the spool that are to be removed: they have the words, or name the sessions."""

    words: WantedWords
    session_keys: Collection[str] = ()

    def is_log_line(self, line: str) -> bool:
        """Return whether this line of the log is to be removed."""
        return self._accepts(
            line, lambda one: {k: v for k, v in one.items() if k not in _LOG_FIELDS_WITHOUT_WORDS}
        )

    def is_spool_line(self, line: str) -> bool:
        """Return whether this line of the spool is to be removed."""
        return self._accepts(line, lambda entry: entry.get("payload"))

    def _accepts(self, line: str, find_said: Callable[[dict[str, Any]], Any]) -> bool:
        if any(key in line for key in self.session_keys):
            return True
        said: Any = line
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            said = find_said(found) if isinstance(found, dict) else line
        return bool(self.words.terms) and self.words.are_in(list(words_of_payload(said)))


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases text from a vault and from its log, by forgetting or by scrubbing."""

    db: Database
    clock: Callable[[], int]
    on_written: Callable[[], None]
    files: RelatedFiles = field(default_factory=RelatedFiles)
    bring_in: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    """Returns when the spool and open turns have become memories, which else would come back later."""
    indexed: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    """Returns when the index contains everything written."""

    async def forget(
        self, selection: ForgetSelection, *, dry_run: bool, token: str = ""
    ) -> ForgetResult:
        """Erase a selection, or report what would be erased. UnknownId if no id exists.

        SelectionChanged if `token` names another plan than the current one.
        """
        if not selection.ids:
            await self.bring_in()
        backups = await anyio.to_thread.run_sync(self.files.backups)
        leftovers = tuple(await anyio.to_thread.run_sync(self.files.leftovers))
        plan = await self.db.read(partial(plan_selection, selection=selection))
        check = await self._make_line_check(selection, plan)
        pending = ""
        if not dry_run:
            plan = await self._erase_selection(selection, token)
        lines = await anyio.to_thread.run_sync(self._handle_lines, check, not dry_run)
        if not dry_run:
            await anyio.to_thread.run_sync(self.files.remove_leftovers)
            pending = await self._clean_up_vault()
        # No older one can contain it.
        since = math.inf if plan.since is None else plan.since - _BACKUP_DURATION_MS
        named = tuple(path for path, begun in backups.items() if begun >= since)
        return replace(
            plan.report(is_dry_run=dry_run),
            backups=named, lines=lines, leftovers=leftovers, pending=pending,
        )  # fmt: skip

    async def scrub(self, rule: ScrubRule, *, dry_run: bool) -> ScrubResult:
        """Rewrite every text in which the rule finds something, or report where that is."""
        await self.bring_in()
        result = ScrubResult(rule.name, is_dry_run=dry_run)
        for table in erasure.TEXT_TABLES:
            result = await self._scrub_table(result, rule, table, dry_run)
        stays = await self.db.read(partial(find_unchangeable, rule=rule))
        result = replace(result, stays=stays)
        if self.files.log:
            work = partial(scrub_log, self.files.log, rule.text, dry_run=dry_run)
            result = result.with_count("log", await anyio.to_thread.run_sync(work))
        if not dry_run:
            await self.db.write(partial(ledger.drop_notes, beginning=ledger.TOLD))
            if rule.name == SECRETS_NAME:
                await self.db.write(partial(note_scrubbed_secrets, version=rule.version))
            self.on_written()
            result = replace(result, pending=await self.finish())
        backups = await anyio.to_thread.run_sync(self.files.backups)
        return replace(result, backups=tuple(backups))

    async def finish(self) -> str:
        """Remove every trace of what was erased; return what prevents that, in words."""
        # Until then the index still has the old words.
        await self.indexed()
        return await self._clean_up_vault()

    async def _make_line_check(self, selection: ForgetSelection, plan: ForgetPlan) -> LineCheck:
        if selection.spares_prompts:
            return LineCheck(WantedWords())
        names = await self.db.read(erasure.directories) if selection.words.terms else ()
        return LineCheck(selection.words.with_names(names), tuple(one.key for one in plan.sessions))

    def _handle_lines(self, check: LineCheck, erases: bool) -> dict[str, int]:
        """Count the lines that go, `log` and `spool`, or erase them; none without words and sessions."""
        if not (check.words.terms or check.session_keys):
            return {}
        counts = {"spool": self.files.spool_lines(check.is_spool_line, erases=erases)}
        if self.files.log and erases:
            counts["log"] = log.rewrite(
                self.files.log, lambda line: None if check.is_log_line(line) else line
            )
        elif self.files.log:
            counts["log"] = sum(map(check.is_log_line, log.lines(self.files.log)))
        return {name: count for name, count in counts.items() if count}

    async def _erase_selection(self, selection: ForgetSelection, token: str) -> ForgetPlan:
        """Plan and erase; a small plan in one transaction, so that nothing changes in between."""

        def begin(tx: Connection) -> ForgetPlan:
            plan = plan_selection(tx, selection)
            if token and token != plan.token:
                raise SelectionChanged
            apply_plan(tx, plan.split()[0], self.clock())
            return plan

        plan = await self.db.write(begin)
        for part in plan.split()[1:]:
            await self.db.write(partial(apply_plan, plan=part, now=self.clock()))
        self.on_written()
        return plan

    async def _clean_up_vault(self) -> str:
        """Remove the words of deleted rows from the segments of the full texts and from the WAL, too.

        Returns what keeps them in the WAL, in words, or an empty text. The daemon goes on until they are gone.
        """
        marks = await self.db.read(erasure.pending_marks)
        marks.pop("private", None)
        if await erasure.clean_up(self.db, marks):
            return ""
        return await anyio.to_thread.run_sync(database.describe_readers, self.db.path)

    async def _scrub_table(
        self, result: ScrubResult, rule: ScrubRule, table: TextTable, dry_run: bool
    ) -> ScrubResult:
        after = 0
        read = partial(erasure.read_texts, table=table, limit=_SCRUB_ROWS)
        while rows := await self.db.read(partial(read, after=after)):
            found = await anyio.to_thread.run_sync(count_replacements, rule, table, rows)
            after = rows[-1].id
            result = result.with_rows(table.name, found)
            if not dry_run:
                await self.db.write(partial(_scrub_rows, rule=rule, table=table, ids=[*found]))
        return result


def _scrub_rows(tx: Connection, rule: ScrubRule, table: TextTable, ids: Sequence[int]) -> None:
    """Scrub these rows as they are now."""
    rows = erasure.texts_by_ids(tx, table, ids)
    for row, new in zip(rows, rewrite_rows(rule, table, rows), strict=True):
        erasure.write_texts(tx, table, row, new)
    if ids:
        erasure.mark_erased(tx, "forgotten")
