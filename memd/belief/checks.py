"""Read the checkable form of a rule out of its sentence: `never git push --force`, `make check before done`. Pure.

A form is exact arguments (`memd.belief.arguments`) and the closed words of a language around them: a negation,
“before”, “instead of”, “with”, and what one does with a command, a file or a piece of code. A sentence that limits what it
says (“if”, “on main”, “without asking”) has no form: better no check than a wrong one. The check of a rule of the user's
authority acts at once; one that an agent gave, once the user kept, pinned or wrote that memory himself.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memd.belief.arguments import Argument, find_arguments
from memd.belief.polarity import WORDS, has_condition, is_negation, negation_signs
from memd.caches import cached
from memd.patterns import compile_lazily
from memd.text import fold, split_sentences

Anchor = Literal["done", "commit", "push", "pull request"]
Form = Literal["command", "flag", "required flag", "before", "path", "code"]
FORMS = (
    "never `COMMAND`; use `X`, not `Y`; `COMMAND` with `--flag`; `COMMAND` before commit, push, pull request or done;"
    " never edit `PATH`; never write `CODE`"
)
"""The forms of a check, in English, for who is to give one."""


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """A check that can be made before a tool call or at the end of a turn."""

    form: Form
    what: str
    """The command, flag, path or code that is forbidden; of a required flag and of `before` the command."""
    other: str = ""
    """The flag that is required, what it has to come before, or what is used instead."""

    def __str__(self) -> str:
        """The sentence that has this form: reading it gives this check again."""
        instead = f", use `{self.other}`" if self.other else ""
        sentences = {
            "before": f"`{self.what}` before {self.other}",
            "required flag": f"`{self.what}` with `{self.other}`",
            "path": f"never edit `{self.what}`",
            "code": f"never write `{self.what}`",
        }
        return sentences.get(self.form, f"never use `{self.what}`{instead}")


_PREFIX_LETTERS = 5


def _compile_forms(english: str, others: str) -> re.Pattern[str]:
    """Compile a pattern of folded words: the English forms, short words of other languages, the beginnings of longer ones."""
    foreign = others.split()
    exact = [*english.split(), *(word for word in foreign if len(word) < _PREFIX_LETTERS)]
    prefixes = [word for word in foreign if len(word) >= _PREFIX_LETTERS]
    return re.compile(rf"(?:(?:{'|'.join(exact)})\Z|(?:{'|'.join(prefixes)}))")


_WORDS = {
    name: frozenset(fold(word) for word in listed.split())
    for name, listed in WORDS.rows["rule words"].items()
}
_VERBS = {name: _compile_forms(**forms) for name, forms in WORDS.rows["rule verbs"].items()}
_NO_BANS = _WORDS["limiting negations"].union(
    *(_WORDS[name] for name in ("without", "instead", "instead after"))
)
_HARMLESS = _WORDS["around"].union(
    *(_WORDS[name] for name in ("fillers", "never", "half negations"))
)
_BEFORE = _WORDS["before"] - {"for"}
_ANCHORS: tuple[Anchor, ...] = ("commit", "push", "pull request", "done")
_BEFORE_SIGNS, _BEFORE_LAST = "之前|前に|前|전에", frozenset({"önce", "előtt"})
_ANCHOR_SIGNS: dict[Anchor, str] = {
    "commit": "コミット|提交|커밋",
    "push": "推送|プッシュ|푸시",
    "pull request": "プルリク|PR",
    "done": "完成|结束|結束|完了|終わ|終え|완료|끝",
}
_ANNOUNCEMENT = WORDS.compile("announcement", re.IGNORECASE)
_NEAR, _GAP = 2, 3
"""Words from the end of a clause, and between what belongs together."""
_WORD = compile_lazily(r"[^\W_]+(?:['’][^\W_]+)*|[,;:()—–、，：；]|\s-\s|(?<=\w)\.(?=\s|$)")
_UNSPACED = compile_lazily(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7ff]")
_MARK = "\x00(\\d+)\x01"
"""Stands for an argument."""
_SENTENCES_MAX, _CHECKS_MAX, _CHARACTERS_MAX = 12, 6, 2_000


@dataclass(frozen=True, slots=True)
class _ClauseToken:
    """A folded word, or an argument."""

    word: str
    argument: Argument | None = None
    raw: str = ""
    """In lower case, with its accents."""


@dataclass(slots=True)
class _Clause:
    tokens: list[_ClauseToken] = field(default_factory=list)

    @property
    def arguments(self) -> list[tuple[int, Argument]]:
        return [(n, one.argument) for n, one in enumerate(self.tokens) if one.argument is not None]

    def find(self, wanted: frozenset[str]) -> list[int]:
        return [
            n for n, one in enumerate(self.tokens) if one.word in wanted and one.argument is None
        ]

    def find_verbs(self, table: re.Pattern[str]) -> list[int]:
        return [
            n for n, one in enumerate(self.tokens) if one.argument is None and table.match(one.word)
        ]

    def find_negations(self) -> list[int]:
        """The words that forbid; two that make one negation (“ne … jamais”, “никогда не”) count as their first."""
        found: list[int] = [
            n for n, one in enumerate(self.tokens)
            if one.argument is None and one.word not in _NO_BANS
            and (is_negation(one.word) or one.word in _WORDS["half negations"])
        ]  # fmt: skip
        # Two in a row are one: “nigdy nie”, “не … никогда”.
        found = [n for n in found if n - 1 not in found]
        whole = [n for n in found if self.tokens[n].word not in _WORDS["half negations"]]
        nevers = [n for n in whole if self.tokens[n].word in _WORDS["never"]]
        nots = [n for n in whole or found if n not in nevers]
        return sorted([*nots, *nevers])[: max(len(nots), len(nevers))]


@cached(2_048)
def read_checks(text: str) -> tuple[RuleCheck, ...]:
    """The checks of a rule, in the order of its sentences; empty if it has no checkable form."""
    found: list[RuleCheck] = []
    for sentence in split_sentences(text[:_CHARACTERS_MAX])[:_SENTENCES_MAX]:
        found += _read_sentence(sentence)
    return tuple(dict.fromkeys(found))[:_CHECKS_MAX]


def _read_sentence(sentence: str) -> Iterator[RuleCheck]:
    sentence = _ANNOUNCEMENT.sub("", sentence)
    arguments = list(find_arguments(sentence))
    if not arguments or sentence.rstrip().endswith(("?", "？")):
        return
    if _UNSPACED.search(sentence):
        yield from _read_unspaced(sentence, arguments)
        return
    clauses = _split_clauses(sentence, arguments)
    before = list(_read_before(clauses))
    yield from before
    if before or has_condition(sentence) or any(one.find(_WORDS["when"]) for one in clauses):
        return
    yield from _read_contrast(clauses)
    for clause in clauses:
        yield from _read_clause(clause, clauses)
    yield from _read_pronoun(clauses, arguments)


def _split_clauses(sentence: str, arguments: Sequence[Argument]) -> list[_Clause]:
    clauses = [_Clause()]
    at = 0
    for argument in (*arguments, None):
        end = len(sentence) if argument is None else argument.start
        for match in _WORD.finditer(sentence, at, end):
            word = match.group()
            if not word[0].isalnum():
                clauses.append(_Clause())
                continue
            *elided, last = re.split("['’]", word)
            # “n'utilise”, “l'option” are two words, “don't” is one.
            is_elision = bool(elided) and len(elided[0]) <= 2 and len(last) > 1  # noqa: PLR2004
            parts = [*elided, last] if is_elision else ["".join([*elided, last])]
            for raw in parts:
                part = fold(raw)
                if part in _WORDS["reasons"] and clauses[-1].tokens:
                    clauses.append(_Clause())
                clauses[-1].tokens.append(_ClauseToken(part, raw=raw.lower()))
        if argument is not None:
            clauses[-1].tokens.append(_ClauseToken("", argument))
            at = argument.end
    found = [part for one in clauses for part in _split_followers(one) if part.tokens]
    for clause, following in itertools.pairwise(found):
        if all(token.word in _WORDS["never"] for token in clause.tokens):  # “never, ever run X”
            following.tokens[:0] = clause.tokens
            clause.tokens.clear()
    return [clause for clause in found if clause.tokens]


def _split_followers(clause: _Clause) -> Iterator[_Clause]:
    """Part a clause at “and”, “but”, unless another argument follows: “never npm and yarn” forbids both."""
    start = 0
    for n in clause.find(_WORDS["followers"]):
        following = clause.tokens[n + 1 : n + 2]
        if n > start and not (following and following[0].argument):
            yield _Clause(clause.tokens[start:n])
            start = n + 1
    yield _Clause(clause.tokens[start:])


# ── A command before something ──────────────────────────────────────────────────────────────────


def _read_before(clauses: Sequence[_Clause]) -> Iterator[RuleCheck]:
    """Read “run X before you commit”, “before a commit, run X”, “never commit without X”."""
    tokens = [token for clause in clauses for token in [*clause.tokens, _ClauseToken(",")]]
    whole = _Clause(tokens)
    negations = whole.find_negations()
    befores = [*whole.find(_BEFORE), *(n for n, one in enumerate(tokens) if one.raw == "før")]
    lasts = [n for n, one in enumerate(tokens) if one.raw in _BEFORE_LAST]
    rest = tokens
    if len(lasts) == 1 and not befores:
        waiting = tokens[max(0, lasts[0] - _GAP) : lasts[0]]
    elif len(negations) == 1:
        # What must not be done before, until or without the command.
        joining = _WORDS["without"] | _BEFORE | {"until", "unless", "bis"}
        links = [n for n in whole.find(joining) if n > negations[0]]
        if len(links) != 1:
            return
        waiting = tokens[negations[0] + 1 : links[0]]
        rest = tokens[links[0] + 1 : links[0] + 2 * _GAP]
    elif not befores and not negations and (afters := whole.find(_WORDS["after"])):
        # “commit only after X passes”; what follows a commit is another matter.
        waiting, rest = tokens[max(0, afters[0] - _GAP) : afters[0]], tokens[afters[0] + 1 :]
    elif len(befores) == 1 and not negations:
        at = befores[0]
        end = next((n for n in range(at + 1, len(tokens)) if tokens[n].word == ","), len(tokens))
        waiting = tokens[at + 1 : end]
        # “before committing run X” has no comma.
        rest = tokens[:at] if any(one.argument for one in tokens[:at]) else tokens[at + 1 :]
    else:
        return
    anchor = _find_anchor(waiting)
    for given in (token.argument for token in rest) if anchor else ():
        if given and (given.is_command or given.is_name) and not _anchor_of_command(given):
            yield RuleCheck("before", given.text, anchor or "")


def _find_anchor(tokens: Sequence[_ClauseToken]) -> Anchor | None:
    """Return the anchor that has to wait; None if it is none, or only part of one (“before committing to main”)."""
    for n, token in enumerate(tokens[: _GAP * 2]):
        if token.argument is not None:
            return _anchor_of_command(token.argument)
        following = [one.word for one in tokens[n + 1 : n + 3]]
        is_limited = (
            following
            and following[0] in _WORDS["places"]
            and not {"this", "the", "our"} & set(following)
        )
        for name in _ANCHORS:
            if _VERBS[name].match(token.word):
                return None if is_limited else name
    return None


def _anchor_of_command(one: Argument) -> Anchor | None:
    known: dict[tuple[str, ...], Anchor] = {
        ("git", "commit"): "commit", ("git", "push"): "push", ("gh", "pr"): "pull request", ("glab", "mr"): "pull request",
    }  # fmt: skip
    return known.get(tuple(one.text.split()[:2]))


# ── One thing instead of another ────────────────────────────────────────────────────────────────


def _read_contrast(clauses: Sequence[_Clause]) -> Iterator[RuleCheck]:
    """Read “X instead of Y”, “statt Y nimm X”."""
    for clause in clauses:
        for at in clause.find(_WORDS["instead"] | _WORDS["instead after"]):
            is_after = clause.tokens[at].word in _WORDS["instead after"]
            near = [
                (n, one) for n, one in clause.arguments
                if (0 < at - n <= _GAP if is_after else 0 < n - at <= _GAP)
            ]  # fmt: skip
            if not near:
                continue
            gone = near[-1][1] if is_after else near[0][1]
            others = [one for other in clauses for _, one in other.arguments if one is not gone]
            kept = next((one for one in others if _is_alike(one, gone)), None)
            last = max(n for n, _ in clause.arguments)
            if kept is not None and _all_harmless(clause, range(last + 1, len(clause.tokens))):
                yield _forbid(gone, kept.text)


def _is_alike(one: Argument, other: Argument) -> bool:
    return any(_may_be(one, sort) and _may_be(other, sort) for sort in ("command", "code", "flag"))


def _forbid(one: Argument, instead: str = "", wanted: str = "") -> RuleCheck:
    """Make the check that forbids an argument, as `wanted` if that is given or as its likeliest kind."""
    if wanted == "path":
        return RuleCheck("path", one.text)
    if one.is_flag:
        return RuleCheck("flag", one.text, instead)
    is_code = wanted == "code" or (not wanted and not one.is_command)
    return RuleCheck("code" if is_code else "command", one.text, instead)


# ── What is forbidden, and what is required ─────────────────────────────────────────────────────


def _read_clause(clause: _Clause, clauses: Sequence[_Clause]) -> Iterator[RuleCheck]:
    given = [one for _, one in clause.arguments]
    if not given or clause.find(_WORDS["instead"] | _WORDS["instead after"]):
        return
    negations, without = clause.find_negations(), clause.find(_WORDS["without"])
    flags = [one for one in given if one.is_flag]
    commands = [one for one in given if one.is_command]
    if len(flags) == len(commands) == 1 and len(given) == 2:  # noqa: PLR2004  # a command and its flag
        yield from _read_command_flag(clause, commands[0].text, flags[0].text)
    elif flags == given and len(given) == 1 and not without and len(negations) <= 1:
        yield from _read_flag(clause, flags[0], negations)
    elif len(negations) == 1 and not without:
        yield from _read_ban(clause, negations[0], _find_used(clause, clauses))


def _read_command_flag(clause: _Clause, command: str, flag: str) -> Iterator[RuleCheck]:
    """Read “X always with --flag”, “never X without --flag”, “pass --flag to X”; “never X with --flag”."""
    negations, without = clause.find_negations(), clause.find(_WORDS["without"])
    links = _WORDS["with"] | _WORDS["without"] | _WORDS["links"]
    if not all(
        one.argument or one.word in links or _is_harmless(one.word) for one in clause.tokens
    ):
        return
    if len(negations) == len(without):
        yield RuleCheck("required flag", command, flag)
    elif len(negations) == 1 and not without:
        yield RuleCheck("command", f"{command} {flag}")


def _read_ban(clause: _Clause, negation: int, instead: str) -> Iterator[RuleCheck]:
    """Read “don't touch `gen/`”, “never run X”, “no `console.log`”."""
    given = [one for _, one in clause.arguments]
    tables = (
        (_VERBS["touch"], "path"), (_VERBS["execute"], "command"), (_VERBS["use"], "command"), (_VERBS["write"], "code"),
    )  # fmt: skip
    for table, wanted in tables:
        is_run = table is _VERBS["execute"]
        if not all(_may_be(one, wanted) or (one.is_name and is_run) for one in given):
            continue
        may_follow = wanted != "path" and all(_may_be(one, wanted) for one in given)
        is_direct = may_follow and _is_direct(clause, negation, clause.arguments[0][0])
        if is_direct or _is_forbidden(clause, negation, table):
            yield from (_forbid(one, instead, wanted) for one in given)
            return


def _read_pronoun(clauses: Sequence[_Clause], arguments: Sequence[Argument]) -> Iterator[RuleCheck]:
    """Read “`gen/` is made by a program; do not edit it”: a sentence about nothing but paths."""
    for clause in clauses[1:]:
        pronouns = clause.find(_WORDS["pronouns"])
        if len(pronouns) == 1 and not clause.arguments and all(one.is_path for one in arguments):
            whole = _Clause([*clause.tokens])
            whole.tokens[pronouns[0]] = _ClauseToken("", arguments[0])
            negations = whole.find_negations()
            if len(negations) == 1 and _is_forbidden(whole, negations[0], _VERBS["touch"]):
                yield from (_forbid(one, wanted="path") for one in arguments)


def _read_flag(clause: _Clause, flag: Argument, negations: list[int]) -> Iterator[RuleCheck]:
    """Read a flag alone: of “push” and “commit” (“never push with --force”), or of any command (“never use --no-verify”)."""
    verbs = [(n, name) for name in ("push", "commit") for n in clause.find_verbs(_VERBS[name])]
    if len(verbs) == 1:
        at, name = verbs[0]
        known = _WORDS["with"] | _WORDS["names"]
        others = (one for n, one in enumerate(clause.tokens) if n != at and one.argument is None)
        if all(one.word in known or _is_harmless(one.word) for one in others):
            banned = RuleCheck("command", f"git {name} {flag.text}")
            yield banned if negations else RuleCheck("required flag", f"git {name}", flag.text)
    elif negations and flag.text.startswith("--"):
        first, negation = clause.arguments[0][0], negations[0]
        is_direct = _is_direct(clause, negation, first)
        if is_direct or _is_forbidden(clause, negation, _VERBS["use"]):
            yield RuleCheck("flag", flag.text)


def _may_be(one: Argument, wanted: str) -> bool:
    return bool(getattr(one, f"is_{wanted}"))


def _find_used(clause: _Clause, clauses: Sequence[_Clause]) -> str:
    """Return what another clause of the sentence says to use: “use pnpm, never npm”."""
    for other in clauses:
        if other is not clause and not other.find_negations():
            for _, one in other.arguments:
                if one.is_command and any(_is_alike(one, mine) for _, mine in clause.arguments):
                    return one.text
    return ""


def _is_direct(clause: _Clause, negation: int, first: int) -> bool:
    """Return whether the argument follows the negation at once: “not npm”, “never `git push --force`”."""
    between = clause.tokens[negation + 1 : first]
    last = clause.arguments[-1][0]
    if clause.tokens[negation].word in _WORDS["forbidden"] and negation > last:
        between = [*clause.tokens[:first], *clause.tokens[last + 1 : negation]]
        return (
            all(one.word in _WORDS["fillers"] for one in between)
            and negation == len(clause.tokens) - 1
        )
    is_first = all(
        one.word in _WORDS["fillers"] | _WORDS["never"] or _VERBS["use"].match(one.word)
        for one in clause.tokens[:negation]
    )
    is_near = negation < first and all(one.word in _WORDS["fillers"] for one in between)
    return is_near and is_first and _all_harmless(clause, range(last + 1, len(clause.tokens)))


def _is_forbidden(clause: _Clause, negation: int, table: re.Pattern[str]) -> bool:
    """Return whether the clause says that this must not be done with its arguments, in whatever order its language has."""
    first, last = clause.arguments[0][0], clause.arguments[-1][0]
    verbs = [n for n in clause.find_verbs(table) if n != negation]
    if not verbs:
        return False
    verb = min(verbs, key=lambda n: abs(n - negation))
    if verb < first and last < negation:
        # “Fass `gen/` nicht an”: the negation ends the clause; not in English, where it begins something else.
        is_end = negation >= len(clause.tokens) - _NEAR
        if not is_end or clause.tokens[negation].word in ("not", "no", "never"):
            return False
    places = {verb, negation, *(n for n, _ in clause.arguments)}
    return _all_harmless(clause, [n for n in range(len(clause.tokens)) if n not in places])


def _all_harmless(clause: _Clause, places: Sequence[int]) -> bool:
    tokens = [clause.tokens[n] for n in places]
    return all(one.argument is None and _is_harmless(one.word) for one in tokens)


def _is_harmless(word: str) -> bool:
    is_verb = _VERBS["execute"].match(word) or _VERBS["use"].match(word)
    return word in _HARMLESS or is_negation(word) or bool(is_verb)


# ── Languages that put no spaces between words, and Korean ──────────────────────────────────────


def _read_unspaced(sentence: str, arguments: Sequence[Argument]) -> Iterator[RuleCheck]:
    if WORDS["condition signs"].search(sentence):
        return
    marked, at = "", 0
    for number, one in enumerate(arguments):
        marked += f"{sentence[at : one.start]}\x00{number}\x01"
        at = one.end
    marked += sentence[at:]
    if anchor := _find_anchor_sign(marked):
        yield from (RuleCheck("before", one.text, anchor) for one in arguments if one.is_command)
    elif gone := _find_replaced(marked):
        kept = next((one.text for n, one in enumerate(arguments) if n not in gone), "")
        yield from (_forbid(arguments[n], kept) for n in sorted(gone))
    else:
        for clause in re.split("[，、,：；;]", marked):
            yield from _read_unspaced_clause(clause, arguments)


def _find_anchor_sign(marked: str) -> Anchor | None:
    for name, signs in _ANCHOR_SIGNS.items():
        if re.search(rf"(?:{signs})[^\x00，、,]{{0,6}}?(?:{_BEFORE_SIGNS})", marked):
            return name
    return None


def _find_replaced(marked: str) -> set[int]:
    """Find the arguments that another one is to replace."""
    after = rf"{_MARK}\s?(?:的代わり|の代わり|代わり|ではなく|대신|말고)"
    first = rf"(?:而不是|而非|代替)\s?{_MARK}"
    return {int(found[1]) for one in (after, first) for found in re.finditer(one, marked)}


def _read_unspaced_clause(clause: str, arguments: Sequence[Argument]) -> Iterator[RuleCheck]:
    numbers = [int(found) for found in re.findall(_MARK, clause)]
    bare = re.sub(_MARK, " ", clause)
    if not numbers or len(negation_signs(bare)) != 1:
        return
    mine = [arguments[n] for n in numbers]
    others = (one.text for one in arguments if one not in mine and one.is_command)
    for wanted, name in (("path", "touch"), ("command", "run"), ("code", "write")):
        is_said = WORDS[f"{name} signs"].search(bare) or (
            wanted != "path" and WORDS["forbidden signs"].search(bare)
        )
        if is_said and all(_may_be(one, wanted) for one in mine):
            instead = next(others, "")
            yield from (_forbid(one, instead, wanted) for one in mine)
            return
