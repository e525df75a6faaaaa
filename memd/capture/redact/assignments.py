"""Secrets assigned to names: `password=`, `"token":` …, in code, settings, JSON, Markdown and shell. Pure.

`names` says which names hold a secret. A value is redacted unless it only refers to one (`${VAR}`,
`os.environ["X"]`, `get_token()`), declares a type (`password: str`) or is a word of prose. `changeme` is redacted: an
unchanged default is a live password. In ambiguous notations (`password 1234x`, `setPassword("x")`) and for doubtful
names (`pass`, `credentials`) the value must look like a secret; passwords are judged more strictly than tokens, a name
with other meanings.
"""

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from memd.capture.redact.names import (
    LATIN_WORDS,
    VARIABLES,
    VOCABULARY,
    doubtful_rule,
    is_drawn_key,
    is_label,
    is_likely_secret,
    is_numbered,
    is_reference,
    is_secret_under,
    is_state,
    is_working_directory,
    key_rule,
    secret_rule,
    squashed,
)
from memd.capture.redact.regexes import Found, Reading, compile_regex

_NAMES = (
    *("pass", "pw", "psk", "secret", "token", "key", "auth", "cred", "jwt", "mnemonic"),
    *LATIN_WORDS,
)
ANCHOR_WORDS = tuple(word.rsplit(" ", 1)[-1] for word in _NAMES)
_ANCHORS = tuple(zip(_NAMES, ANCHOR_WORDS, strict=True))
_TYPE = r"(?:&(?:'[a-z]{1,12}\s)?)?[A-Za-z_][\w.]{0,40}(?:\[[\w\[\], .|]{0,60}\])?(?:\s?\|\s?[\w.]{1,40}){0,3}"
_TAIL = (
    r"(?a)(?P<name>[\w.-]{0,48}+)\\{0,7}[\"'`]?\]?(?:\[\w{0,20}\](?:\s[A-Z]{1,12})?)?[*]{0,2}"
    r"(?:(?P<declared>(?:\s{0,4}:\s{0,4}"
    + _TYPE
    + r"|\s{1,4}(?:string|str|As\sString))\s{0,4}:?=(?!=))"
    r"|(?P<compared>\s{0,4}[=!]==?)"
    r"|(?P<equals>\s{0,16}(?:=>|[:?+]=|:-|=|<-(?!-)|->|→|\|\||\?\?))"
    r"|(?P<colon>\s{0,8}:(?!//|:|\?[^\s}]*\})[*]{0,2})"
    r"|(?P<called>[({](?=\\{0,7}[\"'][^\"'\\]{4,200}\\{0,7}[\"']\s{0,4}[)}]))"
    r"|(?P<listed>\\{0,7}[\"']?,(?=\s{0,4}@?\\{0,7}[\"']))"
    r"|(?P<flag>(?=[ \t])))"
    r"(?P<space>[ \t]{0,40}+(?:\r?\n[ \t]{1,40}+(?=\\{0,7}[\"'](?![\"'])))?)"
    r"(?:(?:&[\w-]{1,40}|!!\w{1,12})[ \t]{1,4})?"
    r"(?:String::from\(|SecretStr\(|[qQ][qQwW]?(?=[{(])|~s(?=[{(]))?[*]{0,2}"
    r"(?:[fFbBrRuU@]{0,2}(?P<open>\\{0,7}[\"'`]))?"
)
_NOTATIONS = ("declared", "compared", "equals", "colon", "called", "listed", "flag")
# What can follow a name that is assigned to; most names in a text are followed by a word of prose.
_NEAR = r"(?a)[\w.-]{0,48}+(?:[^\w\s.-]|\s{1,16}(?:[:=!?+→|<-]|str|As\b))"
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_ASSIGNED_NAME_CHARACTERS = 64
_SPACED_VALUE = r"(?a)[\w.-]{0,48}+(?:[ \t]{1,8}(?:(\\{0,7}[\"']\S)|([^\s]{5,200})))"
_LOOK_BACK_SPACED = 60
# What stands before a name whose value follows after a blank.
_SETS = (
    r"(?:(?:^|[\s;&\"'+])(?:ENV|ARG|setx|setenv|set\s-\w{1,4}|config(?:ure)?\sset|#\s?define|config(?:\s--?\w+){1,3}|"
    r"git\sconfig|config\screate\s.{1,20}|wifi\sconnect\s\S{1,20})[ \t]+)[\w./:-]{0,40}\Z"
)
_ENGLISH = ("password", "passwd", "pass", "pwd", "pw", "passphrase")
_INSTRUCTION = r"<[A-Za-z][\w .'-]{0,60}>"
_CLOSED = r"[\w.$]{1,40}[)}\]]"
_STOPS = "\"'`,.;:!?)"
_SETTINGS = frozenset(VOCABULARY["assignments"]["settings"])
_FIRST_ARGUMENT = r"([\w.:]{1,40})\s?\(\s{0,4}\\{0,7}[\"'`][\w.#:/ -]{0,30}\Z"
_SETTER = r"(?i)(?:getenv|environ\.get|setenv|env|fetch|define|set|setitem|setproperty|setenvironmentvariable|getordefault)\Z"
_READS = (
    r"(?:get|find|read|load|fetch|lookup|delete|remove|use|on|handle|validate|is|has|parse|check|by|to|no|Get|Find|Read|"
    r"Load|Fetch|Is|Has|Parse|Check)(?=[A-Z_]|\Z)"
)
_QUALIFIED = r"(?i:(?:api|access|secret|private|signing|auth|license)[ ]\Z)"
# A quote before which another one is open, and after which an expression goes on, ends a text.
_CLOSES_TEXT = r"\\{0,7}\s*(?:[,)\]};+%:.|]|\Z|[\r\n])"
_LINE_START = r"(?:[\r\n]|\\n|\A)[\s>+|-]*(?:(?:export|set|ENV|ARG|env)\s+)?\Z"
_IN_CALL = r"[(,]\s*\Z"
_LINE_END = r"[ \t]*(?:\Z|[\r\n#\"']|\\[nr\"'])"
_LOOK_BACK = 24
# Atomic groups, not possessive quantifiers: those of Python before 3.11.4 take one character too many.
# `&` parts the members of a query, ends an HTML sign or a command, else it is part of a password.
_AND = r"&(?![\w.%\[\]-]{1,64}=|#?\w{1,8};|[&\s\"'`]|\Z)"
_BARE = rf"(?>(?:[^\s\"'`,;&<>\\]|{_AND}|\\(?![nrtu\"'`\\])){{1,2048}})"
_SETTING = r"(?>(?:[^\s\"'`\\]|\\(?![nrt\"'`\\])){1,2048})"
_LAST = r"(?>(?:[^\s\"'`,<>\\]|\\(?![nrtu\"'`\\])){1,2048})(?=[ \t]*(?:\Z|[\r\n\"']|\\[nr\"']))"
_SIGN_WITHIN = r"[^\s&;()\[\]{}][&;][^\s&;]"
_HEADER = r"[xX]-"
_LONG = 2048
_LINE_MAX = 200
_SIGNS_MAX = 4
_PLAIN_MIN = 3
_PIN_MIN = 4
_LITERAL_MIN = 6
_VARIABLE_MAX = 10
_SENTENCE_SPACES = 2
_STRONG_KINDS = 3
_USUAL_MIN = 8
_STRONG_DIGITS = 3
_IDENTIFIER_NUMBER = r"[A-Za-z_]+\d{0,1}"
_NOT_VALUES = ("http://", "https://", "id=", "type=", "src=", "source=", "env=")

_IDENTIFIER = r"(?a)[A-Za-z_]\w*"
_CALL = r"(?as)(?:await|new|not)?[A-Za-z_][\w.:?]*(?:\(.*|\[.*)"
_DOTTED = r"(?a)[A-Za-z_]\w*(?:(?:\??\.|::|->)[A-Za-z_]\w*)+[!?]?"
_PLAIN = r"[^\W\d_]+(?>(?:[-_/.:’][^\W\d_]+)*)[.:!?…*_]{0,3}"
_SENTENCE_WORD = r"[(“\"']?(?:[^\W\d_]+(?:[-'’][^\W\d_]+)*|\d{1,3})[.,:;!?…)”\"']{0,3}"
_SECRETISH = r"(?i)pass|pwd|secret|token|key|auth|cred|jwt"
_NUMBER = r"(?a)[+-]?\d{1,15}(?:[._]\d{1,15})?[kKmMsh%]?"
_OPENERS = "{[(|=*!~>:"
_CLOSING_MAX = 8
_CLOSING = r"[)\]}]+[)\]}:.;]*\Z"
_PAIRED = {")": "(", "]": "[", "}": "{"}

_STOP = frozenset(VOCABULARY["assignments"]["fillers"])

_OBJECTS = frozenset(VOCABULARY["assignments"]["objects"])


class _Assignment(NamedTuple):
    """A value that is assigned to a secret name, and the notation around it."""

    start: int
    end: int
    rule: str
    name: str
    quoted: bool
    notation: str
    """One of `_NOTATIONS`; `setting` and `mentioned` are what a flag or a list turned out to be."""
    tight: bool
    """Without a space before the value."""
    setting: bool
    """A line of an .env file: `DB_PASSWORD=…`."""
    line_start: bool
    in_call: bool
    marked: bool
    """Between backticks, as prose marks names."""
    doubtful: bool
    """The name has other meanings, so the value must look like a secret."""


def find_assigned(reading: Reading) -> Iterator[Found]:
    """Yield the values that are assigned to secret names."""
    if not reading.is_named:
        return
    text, done = reading.text, 0
    for anchor in _find_anchors(reading.lowered, reading.signs):
        if anchor < done or not _is_assigned(text, anchor):
            continue
        slot = _parse_assignment(text, anchor)
        if slot is None or slot.start < done or not _is_secret(text, slot):
            continue
        yield slot.start, slot.end, slot.rule
        done = slot.end


def _find_anchors(lowered: str, signs: Container[str]) -> list[int]:
    """Return where words begin that secret names contain."""
    found: list[int] = []
    for word in [word for word, last in _ANCHORS if last in signs]:
        at = lowered.find(word)
        while at >= 0:
            found.append(at)
            at = lowered.find(word, at + len(word))
    return sorted(found)


def _is_assigned(text: str, anchor: int) -> bool:
    """Return whether a sign of an assignment follows the name, or a flag's dashes precede it."""
    if compile_regex(_NEAR).match(text, anchor) is not None:
        return True
    if text.find("--", max(0, anchor - _ASSIGNED_NAME_CHARACTERS), anchor) >= 0:
        return True
    spaced = compile_regex(_SPACED_VALUE).match(text, anchor)
    if spaced is None:
        return False
    quoted, word = spaced.groups()
    return quoted is not None or text[anchor].isupper() or is_likely_secret(word.rstrip(_STOPS))


def _parse_assignment(text: str, anchor: int) -> _Assignment | None:
    """Return the value that is assigned to the name around an anchor, if that name holds a secret."""
    tail = compile_regex(_TAIL).match(text, anchor)
    if tail is None:
        return None
    begin = _name_start(text, anchor)
    name = text[begin : tail.end("name")]
    notation = next(kind for kind in _NOTATIONS if tail[kind] is not None)
    if text.startswith("[REDACTED:", max(0, begin - 10)):
        return None
    rule = secret_rule(name) or _qualified_rule(text, begin, name)
    doubtful = rule is None
    if rule is None:
        rule = doubtful_rule(name) or key_rule(name)
    if rule is None or rule in {"authorization", "cookie"}:  # headers have patterns of their own
        return None
    if not name.startswith("--"):
        if notation == "flag":
            notation = _spaced_notation(text, begin, name)
        elif notation == "listed":
            notation = _argument_notation(text, begin)
        elif notation == "called" and compile_regex(_READS).match(name.rsplit(".", 1)[-1]):
            return None
    if not notation or (doubtful and notation in {"called", "mentioned"}):
        return None
    return _locate_value(text, tail, begin, notation, rule, doubtful=doubtful)


def _spaced_notation(text: str, begin: int, name: str) -> str:
    """Return how to read `DB_PASSWORD x`: after `ENV` or `setx` as a setting, else as prose; "" if it is none."""
    before = text[max(0, begin - _LOOK_BACK_SPACED) : begin]
    if compile_regex(_SETS).search(before):
        return "setting"
    if name.lower() in _SETTINGS and compile_regex(_LINE_START).search(before):
        return "setting"
    return "mentioned"


def _argument_notation(text: str, begin: int) -> str:
    """Return how to read `("password", "x")`: as a default after getenv(), as any two arguments, or "" for a list."""
    found = compile_regex(_FIRST_ARGUMENT).search(text[max(0, begin - _LOOK_BACK_SPACED) : begin])
    if found is None:
        return ""
    return "setting" if compile_regex(_SETTER).search(found[1]) else "mentioned"


def _name_start(text: str, anchor: int) -> int:
    begin = anchor
    while (
        begin > 0
        and anchor - begin < _ASSIGNED_NAME_CHARACTERS
        and text[begin - 1] in _NAME_CHARACTERS
    ):
        begin -= 1
    # The letter of an escaped line break is not part of the name: `\nTOKEN=…`.
    return begin + 1 if text[max(0, begin - 1) : begin + 1] in {"\\n", "\\r", "\\t"} else begin


def _qualified_rule(text: str, begin: int, name: str) -> str | None:
    """Return the rule for `API key: …`, written as two words."""
    if name.lower() != "key" or not compile_regex(_QUALIFIED).search(
        text[max(0, begin - 10) : begin]
    ):
        return None
    return "api-key"


def _locate_value(
    text: str, tail: re.Match[str], begin: int, notation: str, rule: str, *, doubtful: bool
) -> _Assignment | None:
    """Return the assignment; None if the quote before the value ends a string that contains the name."""
    before = text[max(0, begin - _LOOK_BACK) : begin]
    name, opened = text[begin : tail.end("name")], tail["open"]
    if opened and _ends_text(text, begin, tail.end(), opened):
        return None
    first = begin <= _LOOK_BACK or "\n" in before or "\\n" in before
    line_start = first and bool(compile_regex(_LINE_START).search(before))
    tight = not tail["space"] and notation in {"equals", "colon"}
    setting = line_start and tight and notation == "equals" and name == name.upper()
    is_last = line_start and notation in {"equals", "colon"}
    is_header = notation == "colon" and compile_regex(_HEADER).match(name) is not None
    start, end = _value_span(text, tail, setting=setting, is_last=is_last or is_header)
    return _Assignment(
        start,
        end,
        rule,
        name,
        quoted=opened is not None,
        notation=notation,
        tight=tight,
        setting=setting,
        line_start=line_start,
        in_call=bool(compile_regex(_IN_CALL).search(before)),
        marked=bool(opened) and opened[-1] == "`",
        doubtful=doubtful,
    )


def _ends_text(text: str, begin: int, after: int, quote: str) -> bool:
    """Return whether the quote after the name closes one before it: `print("token=" + shown)`."""
    if not compile_regex(_CLOSES_TEXT).match(text, after):
        return False
    line = text[max(0, begin - _LINE_MAX) : after - len(quote)].rsplit("\n", 1)[-1]
    return len(compile_regex(rf"(?<!\\){re.escape(quote)}").findall(line)) % 2 == 1


def _value_span(text: str, tail: re.Match[str], *, setting: bool, is_last: bool) -> tuple[int, int]:
    """Return where the value begins and ends."""
    start, opened = tail.end(), tail["open"]
    if opened is None:
        return start, _bare_end(text, start, setting=setting, is_last=is_last)
    if text.startswith(opened * 2, start):  # a triple quote
        start += 2 * len(opened)
        end = text.find(opened * 3, start)
        return start, len(text) if end < 0 else end
    return start, _quoted_end(text, start, opened)


def _bare_end(text: str, start: int, *, setting: bool, is_last: bool) -> int:
    """Return where a value without quotes ends; a bracket that it did not open is not part of it.

    One that is the last of its line goes on over `&` and `;`, which end it elsewhere.
    """
    whole = compile_regex(_LAST).match(text, start) if is_last and not setting else None
    if whole is not None and compile_regex(_SIGN_WITHIN).search(whole[0]):
        return whole.end()
    regex = compile_regex(_SETTING if setting else _BARE)
    found = regex.match(text, start)
    if found is None:
        return start
    end = found.end()
    while end - start >= _LONG and (more := regex.match(text, end)):
        end = more.end()
    closed = compile_regex(_CLOSING).search(text, max(start, end - _CLOSING_MAX), end)
    if closed and _PAIRED[closed[0][0]] not in text[start:end]:
        return closed.start()
    return end


def _quoted_end(text: str, start: int, opened: str) -> int:
    """Return where a quoted value ends: at its own quote, however deeply escaped, or with the line."""
    depth, quote = len(opened) - 1, opened[-1]
    at = text.find(quote, start)
    while at >= 0 and _is_escaped(_count_backslashes(text, start, at), depth):
        at = text.find(quote, at + 1)
    line = text.find("\n", start, at if at >= 0 else len(text))
    if line >= 0:
        return line
    return at - min(_count_backslashes(text, start, at), depth) if at >= 0 else len(text)


def _count_backslashes(text: str, start: int, at: int) -> int:
    count = 0
    while at - count > start and text[at - count - 1] == "\\":
        count += 1
    return count


def _is_escaped(slashes: int, depth: int) -> bool:
    """Return whether a quote belongs to the value: beyond `depth` backslashes of its level an odd number is left."""
    return slashes > depth and (slashes - depth) // (depth + 1) % 2 == 1


def _is_secret(text: str, slot: _Assignment) -> bool:
    """Return whether the assigned value is itself a secret."""
    value = text[slot.start : slot.end]
    if is_reference(value) or is_working_directory(slot.name, value):
        return False
    is_flag = slot.notation == "flag" and value[0] == "-"
    if is_flag or (value[0] == "<" and compile_regex(_INSTRUCTION).match(text, slot.start)):
        return False
    if slot.notation in {"mentioned", "called"}:
        return _is_mentioned_secret(slot, _strip_emphasis(text, slot.start, value))
    if slot.doubtful:
        return _is_doubtful_secret(slot, value)
    if slot.quoted or slot.end - slot.start >= _LONG:
        return _is_quoted_secret(slot, value)
    return _is_bare_secret(text, slot, value)


def _strip_emphasis(text: str, start: int, value: str) -> str:
    """The value without the end of a bold text that began before it: `**Token Visualization**`."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return value.removesuffix("**") if before.count("**") % 2 else value


def _is_mentioned_secret(slot: _Assignment, value: str) -> bool:
    """Return whether a word that only follows the name, or an argument, is a secret."""
    if value[0] in _OPENERS or not is_likely_secret(value.rstrip(_STOPS)):
        return False
    # A password of a word and two digits; `token item12` is none.
    digits = sum(map(str.isdigit, value))
    is_usual = slot.rule == "password" and len(value) >= _USUAL_MIN and digits > 1
    return slot.quoted or is_usual or _is_strong(value)


def _is_bare_secret(text: str, slot: _Assignment, value: str) -> bool:
    """Return whether a value without quotes is a secret rather than code or prose."""
    if slot.setting or slot.notation == "setting":
        can_be_number = slot.setting and slot.rule == "password"
        number = not can_be_number and compile_regex(_NUMBER).fullmatch(value)
        return not number and not compile_regex(_CALL).fullmatch(value)
    if slot.notation in {"compared", "listed", "declared"} or _is_code(slot, value):
        return False
    if compile_regex(_PLAIN).fullmatch(value):
        return _is_plain_secret(text, slot, value)
    return _is_literal_secret(slot, value)


def _is_doubtful_secret(slot: _Assignment, value: str) -> bool:
    """Return whether the value of `pass`, `pw`, `credentials` … looks like a secret."""
    if doubtful_rule(slot.name) is None:
        return is_drawn_key(slot.name, value)
    if slot.quoted:
        return not slot.marked and is_secret_under(slot.name, value)
    if slot.notation in {"compared", "listed", "declared"} or _is_code(slot, value):
        return False
    # `PASS: TestLogin2` is an outcome.
    named = slot.name.isupper() and slot.notation == "colon"
    return (
        not named
        and is_likely_secret(value)
        and not compile_regex(_IDENTIFIER_NUMBER).fullmatch(value)
    )


def _is_strong(value: str) -> bool:
    """Return whether a word in prose is more like a password than like a name with a number: `Kite92`, not `argon2`."""
    kinds = (str.islower, str.isupper, str.isdigit, lambda c: not c.isalnum())
    return sum(any(map(kind, value)) for kind in kinds) >= _STRONG_KINDS or (
        sum(map(str.isdigit, value)) >= _STRONG_DIGITS
    )


def _is_quoted_secret(slot: _Assignment, value: str) -> bool:
    """Return whether a quoted value is a secret: everything but text for people."""
    signs = not any(c.isalnum() for c in value) and len(value) < _SIGNS_MAX
    may_be_state = slot.rule == "token" or slot.notation == "compared"
    if signs or (may_be_state and is_state(value)) or _is_for_people(slot, value):
        return False
    if slot.notation == "compared" and slot.rule != "password":  # a lexer's `token == "def"`
        return _is_mixed(value) and len(value) >= _LITERAL_MIN
    return not (slot.marked and compile_regex(_PLAIN).fullmatch(value))


def _is_for_people(slot: _Assignment, value: str) -> bool:
    """Return whether a quoted text is for people: the name itself, a sentence about it, a header that refers to it."""
    if is_label(slot.name, value):
        return True
    scheme, _, rest = value.partition(" ")
    if scheme.lower() in {"bearer", "basic", "token"} and is_reference(rest):
        return True
    # A password may be words; a token and a key are not.
    is_about = slot.rule in {"token", "api-key"} or compile_regex(_SECRETISH).search(value)
    if value.count(" ") < _SENTENCE_SPACES or not is_about:
        return False
    return all(compile_regex(_SENTENCE_WORD).fullmatch(word) for word in value.split())


def _is_code(slot: _Assignment, value: str) -> bool:
    """Return whether a value is an expression, a type or a number rather than a literal."""
    openers = _OPENERS[:3] if compile_regex(_HEADER).match(slot.name) else _OPENERS
    if value[0] in openers or not any(c.isalnum() for c in value):
        return True
    if compile_regex(_NUMBER).fullmatch(value):
        return slot.rule != "password" or len(value) < _PIN_MIN  # "password: 8" is a length
    is_closed = not slot.line_start and compile_regex(_CLOSED).match(value)
    if is_closed or value.startswith(_NOT_VALUES) or compile_regex(_CALL).fullmatch(value):
        return True
    if compile_regex(_IDENTIFIER).fullmatch(value):
        return secret_rule(value) is not None and not is_numbered(value)  # password=password
    if not compile_regex(_DOTTED).fullmatch(value):
        return False
    typed = slot.notation == "colon" and slot.rule != "password"
    return typed or not any(c.isdigit() for c in value) or value.split(".", 1)[0] in _OBJECTS


def _is_plain_secret(text: str, slot: _Assignment, value: str) -> bool:
    """Return whether letters alone are a secret: a weak one in a setting or on a command line, not a name or a word."""
    if len(value) < _PLAIN_MIN or value.lower() in _STOP:
        return False
    at_end = compile_regex(_LINE_END).match(text, slot.end) is not None
    if slot.notation == "flag":
        return not value.isupper()
    if slot.notation == "colon" and compile_regex(_HEADER).match(slot.name):
        return True
    if slot.tight and slot.notation == "equals":
        return not slot.in_call and text[slot.end : slot.end + 1] not in {",", ")"}
    if slot.rule != "password" or not slot.line_start or not at_end:
        return False
    # In other languages the word after it is more often a word: `Passwort: erforderlich`.
    is_english = squashed(slot.name).endswith(_ENGLISH)
    return is_english and value[0].islower() and value.lower() not in VARIABLES


def _is_literal_secret(slot: _Assignment, value: str) -> bool:
    """Return whether a literal is a secret: it has digits or signs and is longer than a variable's name."""
    if slot.rule == "password":
        return len(value) >= _PLAIN_MIN
    named = slot.notation == "equals" and (slot.in_call or not slot.tight)
    if named and compile_regex(_IDENTIFIER).fullmatch(value):
        return len(value) >= _VARIABLE_MAX  # `token = tok2`
    return len(value) >= _LITERAL_MIN or slot.tight


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
