"""Read what tool calls changed in files: edits and patches, and the settings that they gave another value. Pure.

A setting is a name with a literal beside it: a constant, key, version, port, flag. What it belongs to is read from the
lines around it that begin a section, a mapping, a class or a call, so that two keys of one name stay two. Comments,
documents, lists and computed values set nothing. What an edit shows is a part of a file, so the path of a key may begin
anywhere; belief/values.py judges with that in mind.
"""

import difflib
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd.caches import cached
from memd.models import PATCH, Event, EventKind, SettingChange
from memd.patterns import Table, compile_lazily
from memd.text import one_line

EDIT_TOOLS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_SHELL_TOOLS = frozenset({"Bash", "PowerShell"})
_DIFF_LINES, _DIFF_CHARACTERS, _DIFF_READ = 14, 160, 400


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change to a file: `old` became `new`. `old` is empty for a new file."""

    event_id: int
    at: int
    path: str
    old: str
    new: str
    is_whole_file: bool = False
    hunks: tuple[tuple[str, str], ...] = ()
    """The old and new lines of each changed part with the lines around it, if the client tells them."""
    is_every_line: bool = False
    """Whether a command changed each such line of the file, not one place in it."""
    agent_id: str = ""
    """The subagent that made it; empty for the session's own agent."""


def is_edit(event: Event) -> bool:
    """Return whether a file was changed."""
    return event.kind is EventKind.TOOL_RESULT and event.tool in EDIT_TOOLS


def text_at(payload: Mapping[str, Any], *keys: str) -> str:
    """The text under these keys; empty if there is none, or something else."""
    value: Any = payload
    for key in keys:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(key)
    return value if isinstance(value, str) else ""


def read_edits(event: Event) -> list[FileEdit]:
    """Read the changes that a successful tool call made to files, those of `sed -i` and `perl -pi` included."""
    agent, known = event.agent or "", _read_known(event.payload)
    if event.kind is EventKind.TOOL_RESULT and event.tool in _SHELL_TOOLS:
        return [
            FileEdit(event.id, event.at, file, old, new, is_every_line=not old, agent_id=agent)
            for file, old, new in known
        ]
    given = event.payload.get("tool_input")
    given = given if isinstance(given, Mapping) else {}
    path = text_at(given, "file_path") or text_at(given, "notebook_path")
    path = path or text_at(event.payload, "tool_response", "filePath")
    if not is_edit(event) or not path:
        return []
    # Claude Code tells the lines around each part; else memd may know them.
    hunks = _read_patch(event.payload) or [(old, new) for _, old, new in known]
    hunks = [(old, new) for old, new in hunks if old or new]
    listed = given.get("edits")
    parts = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    if not isinstance(listed, list):
        parts = [given]
    elif not hunks or any("file_path" in one for one in parts):
        hunks = []  # a patch changes several files
    else:
        names = ("old_string", "new_string")
        parts = [{name: "\n".join(text_at(one, name) for one in parts) for name in names}]
    return [
        FileEdit(
            event.id, event.at, text_at(one, "file_path") or path,
            "" if whole else text_at(one, "old_string"), whole or text_at(one, "new_string"),
            bool(whole), tuple(hunks), agent_id=agent,
        )
        for one in parts
        for whole in [text_at(one, "content") or text_at(one, "new_source")]
    ]  # fmt: skip


def _read_patch(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The changed parts of an edit by Claude Code's patch, each as its old and its new lines."""
    response = payload.get("tool_response")
    patch = response.get("structuredPatch") if isinstance(response, Mapping) else None
    found: list[tuple[str, str]] = []
    for hunk in patch if isinstance(patch, list) else ():
        given = hunk.get("lines") if isinstance(hunk, Mapping) else None
        lines = [one for one in given or () if isinstance(one, str)]
        old, new = ("\n".join(o[1:] for o in lines if o[:1] in marks) for marks in (" -", " +"))
        found.append((old, new))
    return found


def _read_known(payload: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(file, old, new) of what memd found out itself of the lines of an edit."""
    known = payload.get(PATCH)
    parts = [part for part in known if isinstance(part, Mapping)] if isinstance(known, list) else []
    names = ("file", "old", "new")
    return [
        (file, old, new)
        for file, old, new in (tuple(text_at(part, name) for name in names) for part in parts)
        if file and new
    ]


def diff_edit(edit: FileEdit) -> list[str]:
    """List what an edit took away and put in, a line each, bounded; a change of indentation alone is not worth a line."""
    if edit.is_whole_file:
        return [f"  written anew, {len(edit.new.splitlines())} lines"]
    before, after = (
        [line.strip() for line in text.splitlines()[:_DIFF_READ]] for text in (edit.old, edit.new)
    )
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed: list[str] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            changed += [f"- {line}" for line in before[i1:i2] if line]
            changed += [f"+ {line}" for line in after[j1:j2] if line]
    lines = [one_line(line, _DIFF_CHARACTERS) for line in changed]
    more = len(lines) - _DIFF_LINES
    return [*lines[:_DIFF_LINES], f"  … and {more} more lines"] if more > 0 else lines


# ── Settings ─────────────────────────────────────────────────────────────────────────────────────

_FORMS = Table("distill/settings.toml")
_QUOTE_OR_DIGIT = compile_lazily(r"[\"'\d$]|[Tt]rue|[Ff]alse")
_LINES_CACHED = 4_096
SETTINGS_MAX = 200
"""A file that sets more is data."""
_LINE_CHARACTERS, _LINES_MAX, _VALUE_CHARACTERS, _WORDS_MAX = 400, 4_000, 120, 2
_COMMENT_BLOCKS = {'"""': '"""', "'''": "'''", "/*": "*/", "<!--": "-->"}

Key = tuple[str, ...]
Setting = tuple[Key, str]
"""A key and the literal that it is given."""


@dataclass(slots=True)
class _FileSettings:
    """The settings that the edits of one file have changed so far."""

    was: dict[Key, str] = field(default_factory=dict)
    now: dict[Key, str] = field(default_factory=dict)
    removed: dict[Key, str] = field(default_factory=dict)
    passed: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    is_whole: bool = False

    def apply(self, edit: FileEdit, form: "_FileSyntax") -> None:
        """Add what an edit sets."""
        if (edit.is_whole_file and not edit.hunks) or edit.is_every_line:
            self.is_whole = True
        for old, new in edit.hunks or ((edit.old, edit.new),):
            before, after = _index_settings(old, form), _index_settings(new, form)
            for key in before.keys() - after.keys():
                is_known = key in self.now and self.was.get(key)
                self.removed[key] = self.was[key] if is_known else before[key]
                self.now.pop(key, None)
            for key, value in after.items():
                if before.get(key) == value:
                    continue
                if self.now.get(key, value) != value:
                    self.passed[key] = (*self.passed.get(key, ()), self.now[key])
                self.was.setdefault(key, before.get(key, self.removed.get(key, "")))
                self.now[key] = value
        for key in self.removed.keys() & self.now.keys():
            self.was[key] = self.was[key] or self.removed[key]  # it was moved within the file


def read_changes(
    edits: Iterable[FileEdit], relative: Callable[[str], str]
) -> tuple[SettingChange, ...]:
    """Read what these edits, in their order, gave another value in the end; a value that was given back is none."""
    states: dict[str, _FileSettings] = {}
    for edit in edits:
        path = relative(edit.path)
        form = _classify_file(path)
        if form is not None:
            states.setdefault(path, _FileSettings()).apply(edit, form)
    return tuple(
        SettingChange(path, key, state.was[key], value, state.is_whole, state.passed.get(key, ()))
        for path, state in states.items()
        if len(state.now) <= SETTINGS_MAX
        for key, value in state.now.items()
        if state.was[key] != value
    )


def changed_only_settings(edits: Iterable[FileEdit], changes: Sequence[SettingChange]) -> bool:
    """Return whether edits did nothing but change these settings, and what states their values elsewhere: a test, a document."""
    values = {value for one in changes for value in (one.was, one.now, *one.passed) if value}
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(value)}(?!\w)" for value in values))
    for edit in edits if values else ():
        if edit.is_whole_file and not edit.hunks:
            return False
        for parts in edit.hunks or ((edit.old, edit.new),):
            old, new = ({line.strip() for line in part.splitlines()} - {""} for part in parts)
            for line in old ^ new:
                if not (pattern.search(line.replace("_", "")) or pattern.search(line)):
                    return False
    return bool(values)


# ── One file ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _FileSyntax:
    """The form of a file, by which its lines are read."""

    is_config: bool
    """Its plain words are values."""
    has_sections: bool
    is_markup: bool
    has_directives: bool
    is_version: bool
    """It holds nothing but a version."""
    is_table: bool
    """It holds the times at which commands run."""
    is_sql: bool


def _classify_file(path: str) -> _FileSyntax | None:
    """Find the form of a file by its name; None for documents and data."""
    name = posixpath.basename(path)
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    is_table = _FORMS["table file"].search(path) is not None
    is_read = is_table or _FORMS["spec files"].search(name)  # though it ends in .txt
    is_document = extension in _FORMS.list_words("documents") and not is_read
    if is_document or _FORMS["data files"].search(name):
        return None
    is_directive = bool(_FORMS["directive files"].search(name))
    is_directive = is_directive or extension in _FORMS.list_words("directives")
    is_config = is_directive or extension in _FORMS.list_words("config")
    return _FileSyntax(
        is_config=is_config or name.startswith(".env"),
        has_sections=extension in _FORMS.list_words("sectioned") or "." not in name.lstrip("."),
        is_markup=extension in _FORMS.list_words("markup"),
        has_directives=is_directive,
        is_version=bool(_FORMS["version file"].search(name)),
        is_table=is_table,
        is_sql=extension == "sql",
    )


def _index_settings(text: str, form: _FileSyntax) -> dict[Key, str]:
    """The settings of a text whose key stands in it once."""
    found = list(_read_settings(text, form))
    counts = Counter(key for key, _ in found)
    return {key: value for key, value in found if counts[key] == 1}


def _read_settings(  # noqa: C901, PLR0912  # what a line may be, in order
    text: str, form: _FileSyntax
) -> Iterator[Setting]:
    """Yield the settings of a text, each with the names of what is around it: section, mapping, class, call."""
    section: Key = ()
    headers: list[tuple[int, str]] = []
    artifact: tuple[int, str] | None = None
    comment_end = ""
    for raw in text.splitlines()[:_LINES_MAX]:
        line = raw.strip()
        if form.is_table and (timed := _FORMS["scheduled"].match(line)):
            yield (" ".join(timed["name"].split()),), " ".join(timed["value"].split())
            continue
        if comment_end or not line or len(line) > _LINE_CHARACTERS:
            comment_end = "" if comment_end and comment_end in line else comment_end
            continue
        if opening := next((mark for mark in _COMMENT_BLOCKS if mark in line), ""):
            end = _COMMENT_BLOCKS[opening]
            if line.count(opening) + (opening != end) * line.count(end) == 1:
                comment_end = end
                continue
        if _FORMS["comment"].match(line):
            continue
        line = _FORMS["trailing comment"].sub("", line) if line[0] not in "\"'" else line
        if form.has_sections and (named := _FORMS["section"].match(line)):
            section, headers = (named[1],), []
            continue
        indent = len(raw.expandtabs(4)) - len(raw.expandtabs(4).lstrip())
        while headers and headers[-1][0] >= indent:
            headers.pop()
        around = (*section, *(name for _, name in headers))
        if form.is_markup:
            # Maven names each dependency by a sibling of its version.
            if identity := _FORMS["identity"].match(line):
                artifact = indent, identity[1]
            elif artifact and (indent < artifact[0] or line.startswith("</")):
                artifact = None
            around = (*around, artifact[1]) if artifact and artifact[0] == indent else around
        yield from _read_line(line, around, form)
        opens = _FORMS["opens"].search(line) and re.search(r"\w", line)
        if line.startswith("- "):
            headers.append((indent, line))
        elif opens or (form.is_markup and _FORMS["opening element"].match(line)):
            headers.append((indent, _name_header(line)))


def _name_header(line: str) -> str:
    """Return what a line that begins a block is called: `class A(B):` is `class A`, `"server": {` is `server`."""
    if line.startswith("<"):
        return line.strip("<>").split()[0]
    return _FORMS["header end"].sub("", line).strip().strip("\"'{[( ") or line


# ── One line ─────────────────────────────────────────────────────────────────────────────────────


@cached(_LINES_CACHED)
def _read_line(line: str, around: Key, form: _FileSyntax) -> tuple[Setting, ...]:
    """Return the settings of a line; both sides of an edit, and the next edit, have most of their lines in common."""
    return tuple(_find_settings(line, around, form))


def _find_settings(  # noqa: C901, PLR0912  # what a line may be, in order
    line: str, around: Key, form: _FileSyntax
) -> Iterator[Setting]:
    """Yield the settings of a line: by what its file's format has of its own, else as an assignment."""
    bare = line.rstrip(",;").rstrip()
    if form.is_version:
        yield ("version",), bare
    elif form.is_sql and (columns := list(_read_columns(bare, around))):
        yield from columns
    elif form.is_sql and not _FORMS["sql sets"].match(bare):
        return
    elif package := _find_name_and_value(_FORMS["package"].match(bare)):
        yield (*around, package[0]), _strip_quotes(package[1])
    elif defined := _find_name_and_value(_FORMS["defined"].match(bare)):
        if _is_scalar(defined[1], form):
            yield (*around, defined[0]), _strip_quotes(defined[1])
    elif form.is_markup and (found := _FORMS["element"].match(bare)):
        yield (*around, found["name"]), _strip_quotes(found["value"])
    elif form.is_markup and (found := _FORMS["attribute"].match(bare)):
        yield (*around, found["of"], found["name"]), _strip_quotes(found["value"])
    elif form.is_markup:
        return
    elif together := list(_read_several(bare)):
        yield from (((*around, name), _strip_quotes(value)) for name, value in together)
    else:
        yield from _read_assignment(bare, around, form)


def _read_assignment(bare: str, around: Key, form: _FileSyntax) -> Iterator[Setting]:
    item = bare[2:].strip() if bare.startswith("- ") else bare
    is_item = item != bare and form.is_config and bool(around)
    if is_item and _FORMS["key header"].match(around[-1]) and _FORMS["item value"].match(item):
        # The only item of a list; of several, none is known by the list's name.
        yield around, _strip_quotes(item)
        return
    names = ("property", "assigned", "keyed", *(("directive",) if form.has_directives else ()))
    found = next((match for name in names if (match := _FORMS[name].match(item))), None)
    is_flag = found is not None and found["name"].startswith("-")
    if found is None or (is_flag and not _FORMS["lone flag"].match(item)):
        yield from _read_arguments(item, around)
        return
    name, value = found["name"].strip("\"'"), found["value"].strip()
    if form.is_config and (only := _FORMS["one item"].match(value)):
        value = only[1]
    parts = list(_read_arguments(value, (*around, name), is_value=True))
    # One argument is the value.
    if _is_scalar(value, form) and not parts[1:] and not _FORMS["flag"].search(value):
        yield (*around, name), _strip_quotes(value)
    else:
        yield from parts


def _read_columns(line: str, around: Key) -> Iterator[Setting]:
    """Yield the default and the size that a line of SQL gives a column."""
    for form, part in (("column default", ""), ("column size", "kind")):
        found = _FORMS[form].match(line)
        if found and found["name"].upper() not in _FORMS.list_words("sql words"):
            names = [found["of"], found["name"]] if found["of"] else [found["name"]]
            kind = (found[part].lower(),) if part else ()
            yield (
                (*around, *(name.strip('"`[]') for name in names), *kind),
                _strip_quotes(found["value"]),
            )


def _read_several(line: str) -> Iterator[tuple[str, str]]:
    """Yield several names that one line gives values, or the first that a function makes of one literal: `useState(8)`."""
    literal = _FORMS["literal"]
    if braced := _FORMS["braced defaults"].match(line):
        for part in braced["inner"].split(","):
            name, sign, value = part.partition("=")
            if sign and literal.match(value.strip()):
                yield name.rpartition(":")[2].strip(), value.strip()
    elif found := _FORMS["destructured"].match(line):
        names = [name.strip() for name in found["names"].split(",")]
        value = found["value"].strip()
        if made := _FORMS["makes one"].match(value):
            yield names[0], made["value"]
            return
        values = [one.strip() for one in value.strip("[]()").split(",")]
        if len(values) == len(names) and all(map(literal.match, values)):
            pairs = zip(names, values, strict=True)
            yield from ((name, one) for name, one in pairs if name.strip("_"))


def _find_name_and_value(found: re.Match[str] | None) -> tuple[str, str] | None:
    """The name and the value of whichever form a pattern has found."""
    part = found.groupdict() if found else {}
    numbers = (number for number in ("", *"2345678") if part.get(f"name{number}"))
    return next(((part[f"name{n}"], part[f"value{n}"].strip()) for n in numbers), None)


def _read_arguments(text: str, around: Key, *, is_value: bool = False) -> Iterator[Setting]:
    """Yield the flags of a command, or the named arguments of a call, on one line."""
    if flags := list(_FORMS["flag"].finditer(text)) if "-" in text else []:
        word = _FORMS["command word"].match(text)
        place = (*around, word["name"]) if word and not word["name"].startswith("-") else around
        for flag in flags:
            if not _FORMS["flag"].match(flag["value"]):
                yield (*place, flag["name"]), _strip_quotes(flag["value"])
        return
    # What a name has where nothing else is given, `getenv("PORT", 8080)`; Go's `flag.IntVar(&jobs, "jobs", 4, …)`.
    # Such a value is quoted, a number, or in `${…}`.
    may_be_given = _QUOTE_OR_DIGIT.search(text) is not None
    fallback = may_be_given and (
        _FORMS["fallback"].search(text) or _FORMS["positional"].search(text)
    )
    if given := _find_name_and_value(fallback or None):
        yield (*around, given[0]), _strip_quotes(given[1])
        return
    head = _FORMS["header end"].sub("", text).strip()
    place = around if is_value else (*around, head)
    if quoted := _FORMS["quoted first"].search(text):
        place = (*place, quoted[1])
    inner = list(_FORMS["inner call"].finditer(text)) if "(" in text else []
    if called := _FORMS["call"].match(text):
        yield (*around, called["name"]), _strip_quotes(called["value"])
    elif len(inner) == 1 and "(" in text[: inner[0].start()]:
        # The one number in a call inside another call: `retry(stop=stop_after_attempt(3))`.
        outer = _FORMS["header end"].sub("", text[: inner[0].start()]).strip()
        yield (*around, outer, inner[0]["name"]), _strip_quotes(inner[0]["value"])
    for argument in _FORMS["argument"].finditer(text) if "=" in text or ":" in text else ():
        if _FORMS["literal"].match(argument["value"]):
            yield (*place, argument["name"]), _strip_quotes(argument["value"])


def _is_scalar(value: str, form: _FileSyntax) -> bool:
    """Return whether a value is one literal: lists, sentences, and what is computed from other names, set nothing."""
    if len(value) > _VALUE_CHARACTERS or len(_FORMS["word"].findall(value)) > _WORDS_MAX:
        return False
    if _FORMS["literal"].match(value) or _FORMS["computed"].match(value):
        return True
    return form.is_config and _FORMS["bare"].match(value) is not None


def _strip_quotes(value: str) -> str:
    """The value without its quotes; `30_000` is `30000`."""
    bare = value.strip().strip("\"'`").strip()
    return bare.replace("_", "") if bare.replace("_", "").isdigit() else bare
