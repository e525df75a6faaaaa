"""Read which settings the edits of a turn gave another value: constants, keys, versions, ports, flags. Pure.

A setting is a name with a literal beside it. What it belongs to is read from the lines around it that begin a section, a
mapping, a class or a call, so that two keys of one name stay two. Comments, documents, lists and computed values set nothing.
What an edit shows is a part of a file, so the path of a key may begin anywhere; belief/values.py judges with that in mind.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memd.caches import cached
from memd.distill.edits import FileEdit
from memd.distill.tables import Table
from memd.models import SettingChange
from memd.patterns import compile_lazily

_FORMS = Table("settings.toml")
SETTINGS_MAX = 200
"""A file that sets more is data."""
_LINE_CHARACTERS, _LINES_MAX, _VALUE_CHARACTERS, _WORDS_MAX = 400, 4_000, 120, 2
_LINES_CACHED = 4_096
_DOCUMENTS = _FORMS.list_words("documents")
_DATA_FILES = _FORMS.compile("data files")
_SPEC_FILES = compile_lazily(r"(?:requirements|constraints)[\w.-]*\.txt$|CMakeLists\.txt$")
"""What ends in .txt and is read all the same."""
_CONFIG = _FORMS.list_words("config")
"""Formats whose plain words are values."""
_SECTIONED = _FORMS.list_words("sectioned")
_MARKUP = _FORMS.list_words("markup")
_DIRECTIVES = _FORMS.list_words("directives")
_DIRECTIVE_FILES = _FORMS.compile("directive files")

_COMMENT = compile_lazily(
    r"(?:#(?!define\b)|//|/\*|\*(?!\w)|--(?!\w)|;|<!--|%|REM\b|dnl\b|\"\"\"|''')", re.IGNORECASE
)
_TRAILING_COMMENT = compile_lazily(r"\s+(?:#|//|/\*|--\s|;\s|<!--).*$")
_BLOCKS = (('"""', '"""'), ("'''", "'''"), ("/*", "*/"), ("<!--", "-->"))
_SECTION = compile_lazily(r"\[{1,2}\s*([\w .:/@*\"'-]+?)\s*\]{1,2}$")
_ASSIGNED = _FORMS.compile("assigned")
_KEYED = _FORMS.compile("keyed")
_DEFINED = _FORMS.compile("defined")
_DIRECTIVE = _FORMS.compile("directive")
_PACKAGE = _FORMS.compile("package")
_ELEMENT = compile_lazily(r"<(?P<name>[\w.:-]+)[^>]*>(?P<value>[^<>]+)</(?P=name)>$")
_IDENTITY = compile_lazily(r"<(?:artifactId|PackageId)>([^<>]+)</")
"""What the elements beside it belong to: Maven names each dependency by a sibling of its version."""
_ATTRIBUTE = _FORMS.compile("attribute")
_FLAG = _FORMS.compile("flag")
_LONE_FLAG = compile_lazily(r"--[\w-]+[=\s]\S+$")
_COMMAND_WORD = _FORMS.compile("command word")
_ARGUMENT = _FORMS.compile("argument")
_LITERAL = _FORMS.compile("literal", re.IGNORECASE)
_FALLBACK = _FORMS.compile("fallback")
"""What a name has where nothing else is given: `getenv("PORT", 8080)`, `env.PORT || 8080`, `${PORT:-8080}`."""
_POSITIONAL = _FORMS.compile("positional")
"""Go's `flag.IntVar(&jobs, "jobs", 4, "how many")`."""
_CALL = _FORMS.compile("call")
_INNER_CALL = _FORMS.compile("inner call")
_QUOTE_OR_DIGIT = compile_lazily(r"[\"'\d$]|[Tt]rue|[Ff]alse")
_QUOTED_FIRST = compile_lazily(r"\w\(\s*[\"']([^\"']+)[\"']")
_TABLE_FILE = _FORMS.compile("table file")
_SCHEDULED = _FORMS.compile("scheduled")
_COLUMN_DEFAULT = _FORMS.compile("column default", re.IGNORECASE)
_COLUMN_SIZE = _FORMS.compile("column size", re.IGNORECASE)
_SQL_WORDS = _FORMS.list_words("sql words")
_SQL_SETS = compile_lazily(r"(?:ALTER|SET|PRAGMA|\\set|DECLARE|CONFIGURE)\b", re.IGNORECASE)
_DESTRUCTURED = _FORMS.compile("destructured")
_BRACED_DEFAULTS = compile_lazily(r"(?:const|let|var)\s*\{(?P<inner>[^{}]*=[^{}]*)\}\s*=")
_MAKES_ONE = _FORMS.compile("makes one")
"""A function that makes a value and what goes with it of one literal: `useState(8)`."""
_PROPERTY = _FORMS.compile("property")
_ONE_ITEM = compile_lazily(r"\[\s*([^\[\],]+?)\s*\]$")
_KEY_HEADER = compile_lazily(r"[\w.@/-]+$")
_ITEM_VALUE = compile_lazily(r"[\"']?[\w.@/:~^*+-]*[\w*][\"']?$")
_VERSION_FILE = compile_lazily(r"\.(?:\w+-version|nvmrc)$|VERSION$")
_COMPUTED = _FORMS.compile("computed")
"""`60 * 1000`, `Duration.ofSeconds(30)`, `timedelta(seconds=30)`."""
_WORD = compile_lazily(r"(?<!\S)[^\W\d_]{2,}(?!\S)")
_BARE = compile_lazily(r"[^\s\[\]{}(),;|>&*!][^\[\]{}(),;]*$")
_LITERAL_EDGE = r"(?<!\w){}(?!\w)"
_OPENS = compile_lazily(r"(?:[{(\[:]|=|->|=>|\bdo|\bthen|\bbegin)$")
_HEADER_END = compile_lazily(r"\s*(?:\(.*|[\s:=>\[{(-]+)$")

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _FoundSetting:
    key: Key
    value: str


@dataclass(slots=True)
class _FileState:
    """What the edits of one file have set so far."""

    was: dict[Key, str] = field(default_factory=dict)
    now: dict[Key, str] = field(default_factory=dict)
    removed: dict[Key, str] = field(default_factory=dict)
    passed: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    is_whole: bool = False

    def apply(self, edit: FileEdit, form: "_FileForm") -> None:
        """Add what an edit sets."""
        parts = edit.hunks or ((edit.old, edit.new),)
        if (edit.is_whole_file and not edit.hunks) or edit.is_every_line:
            self.is_whole = True
        for old, new in parts:
            before = _index_settings(old, form)
            after = _index_settings(new, form)
            for key, value in before.items():
                if key not in after:
                    self.removed[key] = value
                    if key in self.now and self.was.get(key):
                        self.removed[key] = self.was[key]
                    self.now.pop(key, None)
            for key, value in after.items():
                if before.get(key) != value:
                    self._set(key, before.get(key, self.removed.get(key, "")), value)
        for key, value in self.removed.items():
            if key in self.now and not self.was[key]:
                self.was[key] = value  # it was moved within the file

    def _set(self, key: Key, was: str, value: str) -> None:
        if key in self.now and self.now[key] != value:
            self.passed[key] = (*self.passed.get(key, ()), self.now[key])
        self.was.setdefault(key, was)
        self.now[key] = value


def read_changes(
    edits: Iterable[FileEdit], relative: Callable[[str], str]
) -> tuple[SettingChange, ...]:
    """What these edits, in their order, gave another value in the end; a value that was given back is none."""
    states: dict[str, _FileState] = {}
    for edit in edits:
        path = relative(edit.path)
        form = _find_form(path)
        if form is not None:
            states.setdefault(path, _FileState()).apply(edit, form)
    return tuple(
        SettingChange(path, key, state.was[key], value, state.is_whole, state.passed.get(key, ()))
        for path, state in states.items()
        if len(state.now) <= SETTINGS_MAX
        for key, value in state.now.items()
        if state.was[key] != value
    )


def are_about(edits: Iterable[FileEdit], changes: Sequence[SettingChange]) -> bool:
    """Whether edits did nothing but change these settings, and what states their values elsewhere: a test, a document."""
    values = {value for one in changes for value in (one.was, one.now, *one.passed) if value}
    found = [_LITERAL_EDGE.format(re.escape(value)) for value in values]
    pattern = re.compile("|".join(found)) if found else None
    for edit in edits:
        if pattern is None or (edit.is_whole_file and not edit.hunks):
            return False
        for old, new in edit.hunks or ((edit.old, edit.new),):
            lines = {line.strip() for line in old.splitlines()}
            lines ^= {line.strip() for line in new.splitlines()}
            if not all(
                pattern.search(line.replace("_", "")) or pattern.search(line)
                for line in lines
                if line
            ):
                return False
    return bool(changes)


# ── One file ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _FileForm:
    """How the lines of a file are read."""

    is_config: bool
    has_sections: bool
    is_markup: bool
    has_directives: bool
    is_version: bool = False
    """It holds nothing but a version."""
    is_table: bool = False
    """It holds the times at which commands run."""
    is_sql: bool = False


def _find_form(path: str) -> _FileForm | None:
    """How to read a file by its name; None for documents and data."""
    name = posixpath.basename(path)
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    is_table = _TABLE_FILE.search(path) is not None
    is_document = extension in _DOCUMENTS and not is_table and not _SPEC_FILES.search(name)
    if is_document or _DATA_FILES.search(name):
        return None
    is_env = name.startswith(".env")
    is_directive = bool(_DIRECTIVE_FILES.search(name)) or extension in _DIRECTIVES
    return _FileForm(
        is_config=is_env or is_directive or extension in _CONFIG,
        has_sections=extension in _SECTIONED or "." not in name.lstrip("."),
        is_markup=extension in _MARKUP,
        has_directives=is_directive,
        is_version=bool(_VERSION_FILE.search(name)),
        is_table=is_table,
        is_sql=extension == "sql",
    )


def _index_settings(text: str, form: _FileForm) -> dict[Key, str]:
    """The settings of a text whose key stands in it once."""
    found = list(_read_settings(text, form))
    counts = Counter(one.key for one in found)
    return {one.key: one.value for one in found if counts[one.key] == 1}


def _read_settings(text: str, form: _FileForm) -> Iterator[_FoundSetting]:
    section: Key = ()
    headers: list[tuple[int, str]] = []
    sibling: tuple[int, str] | None = None
    until = ""
    for raw in text.splitlines()[:_LINES_MAX]:
        line = raw.strip()
        if form.is_table and (timed := _SCHEDULED.match(line)):
            yield _FoundSetting(
                (" ".join(timed["name"].split()),), " ".join(timed["value"].split())
            )
            continue
        if until or not line or len(line) > _LINE_CHARACTERS:
            until = "" if until and until in line else until
            continue
        opening = next((pair for pair in _BLOCKS if pair[0] in line), None)
        if (
            opening is not None
            and line.count(opening[0]) + (opening[0] != opening[1]) * line.count(opening[1]) == 1
        ):
            until = opening[1]
            continue
        if _COMMENT.match(line):
            continue
        line = _TRAILING_COMMENT.sub("", line) if line[0] not in "\"'" else line
        if form.has_sections and (named := _SECTION.match(line)):
            section, headers = (named[1],), []
            continue
        indent = len(raw.expandtabs(4)) - len(raw.expandtabs(4).lstrip())
        while headers and headers[-1][0] >= indent:
            headers.pop()
        around = (*section, *(name for _, name in headers))
        sibling = _find_sibling(line, indent, sibling) if form.is_markup else None
        around = (*around, sibling[1]) if sibling and sibling[0] == indent else around
        is_item = line.startswith("- ")
        yield from _read_line(line, around, form)
        if is_item:
            headers.append((indent, line))
        elif (_OPENS.search(line) and re.search(r"\w", line)) or (
            form.is_markup and re.fullmatch(r"<[\w.:-]+[^/>]*>", line)
        ):
            headers.append((indent, _name_header(line)))


def _find_sibling(line: str, indent: int, before: tuple[int, str] | None) -> tuple[int, str] | None:
    """(indent, name) of the artifact that the elements from this line on belong to."""
    if identity := _IDENTITY.match(line):
        return indent, identity[1]
    has_ended = before is not None and (indent < before[0] or line.startswith("</"))
    return None if has_ended else before


def _name_header(line: str) -> str:
    """What a line that begins a block is called: `class A(B):` is `class A`, `"server": {` is `server`."""
    if line.startswith("<"):
        return line.strip("<>").split()[0]
    return _HEADER_END.sub("", line).strip().strip("\"'{[( ") or line


@cached(_LINES_CACHED)
def _read_line(line: str, around: Key, form: _FileForm) -> tuple[_FoundSetting, ...]:
    """Return the settings of a line; both sides of an edit, and the next edit, have most of their lines in common."""
    return tuple(_find_settings(line, around, form))


def _find_settings(line: str, around: Key, form: _FileForm) -> Iterator[_FoundSetting]:
    """Find the settings of a line: by what its file's format has of its own, else as an assignment."""
    bare = line.rstrip(",;").rstrip()
    if form.is_version:
        yield _FoundSetting(("version",), bare)
    elif form.is_sql and (columns := list(_read_columns(bare, around))):
        yield from columns
    elif form.is_sql and not _SQL_SETS.match(bare):
        return
    elif package := _find_pair(_PACKAGE.match(bare)):
        yield _FoundSetting((*around, package[0]), _plain(package[1]))
    elif defined := _find_pair(_DEFINED.match(bare)):
        if _is_scalar(defined[1], form):
            yield _FoundSetting((*around, defined[0]), _plain(defined[1]))
    elif form.is_markup:
        yield from _read_markup(bare, around)
    elif together := list(_read_together(bare)):
        yield from (_FoundSetting((*around, name), _plain(value)) for name, value in together)
    else:
        yield from _read_assignment(bare, around, form)


def _read_assignment(bare: str, around: Key, form: _FileForm) -> Iterator[_FoundSetting]:
    item = bare[2:].strip() if bare.startswith("- ") else bare
    is_item = item != bare and form.is_config and bool(around)
    if is_item and _KEY_HEADER.match(around[-1]) and _ITEM_VALUE.match(item):
        # The only item of a list; of several, none is known by the list's name.
        yield _FoundSetting(around, _plain(item))
        return
    found = _PROPERTY.match(item) or _ASSIGNED.match(item) or _KEYED.match(item)
    if found is None and form.has_directives:
        found = _DIRECTIVE.match(item)
    is_flag = found is not None and found["name"].startswith("-")
    if found is None or (is_flag and not _LONE_FLAG.match(item)):
        yield from _read_parts(item, around)
        return
    name, value = found["name"].strip("\"'"), found["value"].strip()
    if form.is_config and (only := _ONE_ITEM.match(value)):
        value = only[1]
    parts = list(_read_parts(value, (*around, name), is_value=True))
    if _is_scalar(value, form) and len(parts) < 2 and not _FLAG.search(value):  # noqa: PLR2004  # one argument is the value
        yield _FoundSetting((*around, name), _plain(value))
    else:
        yield from parts


def _read_columns(line: str, around: Key) -> Iterator[_FoundSetting]:
    """The default and the size that a line of SQL gives a column."""
    for pattern, part in ((_COLUMN_DEFAULT, ""), (_COLUMN_SIZE, "kind")):
        if (found := pattern.match(line)) and found["name"].upper() not in _SQL_WORDS:
            of = (found["of"].strip('"`[]'),) if found["of"] else ()
            kind = (found[part].lower(),) if part else ()
            yield _FoundSetting(
                (*around, *of, found["name"].strip('"`[]'), *kind), _plain(found["value"])
            )


def _read_together(line: str) -> Iterator[tuple[str, str]]:
    """(name, value) of several names that one line gives values, or of the first that a function makes of one literal."""
    if braced := _BRACED_DEFAULTS.match(line):
        for part in braced["inner"].split(","):
            name, sign, value = part.partition("=")
            if sign and _LITERAL.match(value.strip()):
                yield name.rpartition(":")[2].strip(), value.strip()
        return
    found = _DESTRUCTURED.match(line)
    if found is None:
        return
    names = [name.strip() for name in found["names"].split(",")]
    value = found["value"].strip()
    if made := _MAKES_ONE.match(value):
        yield names[0], made["value"]
        return
    values = [one.strip() for one in value.strip("[]()").split(",")]
    if len(values) == len(names) and all(map(_LITERAL.match, values)):
        yield from ((name, one) for name, one in zip(names, values, strict=True) if name.strip("_"))


def _find_pair(found: re.Match[str] | None) -> tuple[str, str] | None:
    """The name and the value of whichever form a pattern has found."""
    part = found.groupdict() if found else {}
    for number in ("", *"2345678"):
        if part.get(f"name{number}"):
            return str(part[f"name{number}"]), str(part[f"value{number}"]).strip()
    return None


def _read_markup(line: str, around: Key) -> Iterator[_FoundSetting]:
    if found := _ELEMENT.match(line):
        yield _FoundSetting((*around, found["name"]), _plain(found["value"]))
    elif found := _ATTRIBUTE.match(line):
        yield _FoundSetting((*around, found["of"], found["name"]), _plain(found["value"]))


def _read_parts(text: str, around: Key, *, is_value: bool = False) -> Iterator[_FoundSetting]:
    """The flags of a command, or the named arguments of a call, on one line."""
    if flags := list(_FLAG.finditer(text)) if "-" in text else []:
        word = _COMMAND_WORD.match(text)
        place = (*around, word["name"]) if word and not word["name"].startswith("-") else around
        for flag in flags:
            if not _FLAG.match(flag["value"]):
                yield _FoundSetting((*place, flag["name"]), _plain(flag["value"]))
        return
    # A value that is given beside a name is quoted, a number, or in `${…}`.
    may_be_given = _QUOTE_OR_DIGIT.search(text) is not None
    if may_be_given and (given := _find_pair(_FALLBACK.search(text) or _POSITIONAL.search(text))):
        yield _FoundSetting((*around, given[0]), _plain(given[1]))
        return
    head = _HEADER_END.sub("", text).strip()
    place = around if is_value else (*around, head)
    if quoted := _QUOTED_FIRST.search(text):
        place = (*place, quoted[1])
    inner = list(_INNER_CALL.finditer(text)) if "(" in text else []
    if called := _CALL.match(text):
        yield _FoundSetting((*around, called["name"]), _plain(called["value"]))
    elif len(inner) == 1 and "(" in text[: inner[0].start()]:
        # The one number in a call inside another call: `retry(stop=stop_after_attempt(3))`.
        outer = _HEADER_END.sub("", text[: inner[0].start()]).strip()
        yield _FoundSetting((*around, outer, inner[0]["name"]), _plain(inner[0]["value"]))
    for argument in _ARGUMENT.finditer(text) if "=" in text or ":" in text else ():
        if _LITERAL.match(argument["value"]):
            yield _FoundSetting((*place, argument["name"]), _plain(argument["value"]))


def _is_scalar(value: str, form: _FileForm) -> bool:
    """Whether a value is one literal: lists, sentences, and what is computed from other names, set nothing."""
    if len(value) > _VALUE_CHARACTERS or len(_WORD.findall(value)) > _WORDS_MAX:
        return False
    if _LITERAL.match(value) or _COMPUTED.match(value):
        return True
    return form.is_config and _BARE.match(value) is not None


def _plain(value: str) -> str:
    """The value without its quotes; `30_000` is `30000`."""
    bare = value.strip().strip("\"'`").strip()
    return bare.replace("_", "") if bare.replace("_", "").isdigit() else bare
