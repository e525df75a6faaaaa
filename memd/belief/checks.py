"""Read the checkable form of a rule out of its sentence: `never git push --force`, `make check before done`. Pure.

A form is exact arguments (`memd.belief.arguments`) and the closed words of a language around them: a negation,
“before”, “instead of”, “with”, and what one does with a command, a file or a piece of code. A sentence that limits what it
says (“if”, “on main”, “without asking”) has no form: better no check than a wrong one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from memd.belief.arguments import Argument, find_arguments
from memd.belief.polarity import has_condition, is_negation, negation_signs
from memd.caches import cached
from memd.patterns import compile_lazily
from memd.text import fold

Form = Literal["command", "flag", "required flag", "before", "path", "code"]
Anchor = Literal["done", "commit", "push", "pull request"]
FORMS = (
    "never `COMMAND`; use `X`, not `Y`; `COMMAND` with `--flag`; `COMMAND` before commit, push, pull request or done;"
    " never edit `PATH`; never write `CODE`"
)
"""The forms of a check, in English, for who is to give one."""


@dataclass(frozen=True, slots=True)
class Check:
    """What can be looked at before a tool call or at the end of a turn."""

    form: Form
    what: str
    """The command, flag, path or code that is forbidden; of a required flag and of `before` the command."""
    other: str = ""
    """The flag that is required, what it has to come before, or what is used instead."""

    def __str__(self) -> str:
        """The sentence that has this form: reading it gives this check again."""
        match self.form:
            case "before":
                return f"`{self.what}` before {self.other}"
            case "required flag":
                return f"`{self.what}` with `{self.other}`"
            case "path":
                return f"never edit `{self.what}`"
            case "code":
                return f"never write `{self.what}`"
            case _:
                instead = f", use `{self.other}`" if self.other else ""
                return f"never use `{self.what}`{instead}"


def _table(english: str, *others: str) -> re.Pattern[str]:
    """A pattern of folded words: the English forms, short words of other languages, and the beginnings of longer ones."""
    words = " ".join(others).split()
    exact = [*english.split(), *(word for word in words if len(word) < _PREFIX_MIN)]
    prefixes = [word for word in words if len(word) >= _PREFIX_MIN]
    return re.compile(rf"(?:(?:{'|'.join(exact)})\Z|(?:{'|'.join(prefixes)}))")


def _set(*lines: str) -> frozenset[str]:
    return frozenset(fold(word) for word in " ".join(lines).split())


_PREFIX_MIN = 5
_EXECUTE = _table(
    "run runs ran running execute executes executed executing call calls called calling invoke invoked invoking launch launched start started starting",
    "fuhre fuhren fuhrt ausfuhr ausgefuhrt aufruf starte lasse lance lancer lancez execut appel ejecut corre corras lanza lanzes llames llama esegu lanciar chiamar",
    "rode rodes rodar chame draai voer start roep uruch wywol odpal запуск запуст вызыв выполн запуска spoust volej kora korer kjor calistir ajaa futtat rula jalankan",
)  # fmt: skip
_USE = _table(
    "use uses used using want wants pass passed passing issue try type typed",
    "benutz verwend nutze nutzt nutzen nimm nehme nehmen utilis emploi emploie usa use uso usar uses usen usare usiamo utiliz utilizz gebruik uzywa uzyj",
    "использ примен використов pouziv anvand brug bruge bruk bruke bruker kullan kayta hasznal folos folosi pakai gunakan",
)  # fmt: skip
_TOUCH = _table(
    "touch touches touched touching edit edits edited editing modify modified modifying change changes changed changing write writes written writing"
    " update updated updating delete deleted deleting alter altered overwrite overwritten rewrite rewritten create created",
    "fasse fass anfass anzufass angefass andern andere andert geandert bearbeit editier losche loschen ruhre anruhr schreib uberschreib touche modifi change edite editer"
    " supprim ecris ecrire toque toca toques tocar modifiq modifiqu cambi cambie cambies borre borres elimin escrib tocca toccare modifica cancell scriver mexa mexas mexer altere"
    " alterar alteres mude mudar apague escrev wijzig aanpass bewerk raak verander schrijf verwijder edytuj zmieni ruszaj dotyka modyfik usuwa трога тронь изменя измени правь"
    " правит редакт удаля удали перепис змінюй редаг uprav nesahej mazat andra andre redig rediger dokun degistir duzenle muokka szerkeszt ubah sunting",
)  # fmt: skip
_WRITE = _table(
    "use uses used using add adds added adding write writes writing written introduce introduced call calls put import imports insert leave want wants",
    "benutz verwend nutze nutzen schreib fuge utilis ajout ecris emploie usa use uses usar anad agreg escrib utilizz aggiung scriv adicion escrev gebruik voeg schrijf uzywa dodaw"
    " использ добавл пиши pouziv anvand lagg skriv brug bruk kullan ekle",
)  # fmt: skip
_SIGNS = {
    "run": re.compile(
        "[用跑]|使[用うわ]?|运行|執行|执行|调用|実行|走らせ|叩[かく]|사용|실행|쓰지|돌리"
    ),
    "touch": re.compile(
        "[改动動碰删刪触]|修改|编辑|編集|変更|修正|削除|수정|건드|변경|편집|삭제|만지"
    ),
    "write": re.compile("[用写寫書加]|使[用うわ]?|添加|追加|사용|쓰지|추가"),
}
_ANCHORS: dict[Anchor, re.Pattern[str]] = {
    "commit": _table("commits", "commit коммит комміт"),
    "push": _table("push pushes pushing pushed", "pushen pusher pousser запуши пуша пушить"),
    "pull request": _table("pr prs pull", "pullreq"),
    "done": _table(
        "done finish finished finishing finishes complete completed completing completion say saying stop stopping report reporting hand handing ready"
        " declare declaring claim claiming end ending",
        "fertig abschlie abschluss beende beenden schluss ende termin terminer finir fini finis acabar acabes lista listo finaliz finire concluir concluy pronto pronta"
        " klaar afrond skoncz konczy zakonc gotowe ukonc hotovo dokonc готово законч заверш klar fardig avslut faerdig afslut ferdig bitir bitti tamamla valmis befejez gata",
    ),
}  # fmt: skip
_BEFORE = _set(
    "before bevor vor avant antes prima przed zanim перед до voor voordat innan for før inden pred nez než înainte sebelum ennen"
)
_BEFORE_WORDS = _BEFORE - {"for"}
_ANCHOR_SIGNS: dict[Anchor, str] = {
    "commit": "コミット|提交|커밋", "push": "推送|プッシュ|푸시", "pull request": "プルリク|PR", "done": "完成|结束|完了|終わ|終え|완료|끝",
}  # fmt: skip
_BEFORE_AFTER, _BEFORE_LAST = re.compile("之前|前に|前|전에"), frozenset({"önce", "előtt"})
_WITHOUT = _set(
    "without ohne sans sin senza sem zonder utan uden uten bez без tanpa olmadan nelkul fara ilman"
)
_INSTEAD = _set(
    "instead rather statt anstatt anstelle lieu vez invece plaats istallet stedet zamiast misto вместо замість umjesto"
)
_INSTEAD_AFTER = _set("yerine helyett sijaan")
_INSTEAD_SIGNS = re.compile("的代わり|の代わり|代わり|ではなく|대신|말고")
_INSTEAD_FIRST = re.compile("而不是|而非|代替")
_WITH = _set("with mit avec con com met z с з med s ile cu kanssa dengan")
_LIMITING_NEGATIONS = _set(
    "only just nur seulement uniquement solo sólo só somente apenas alleen bara endast kun tylko jen sadece только лишь лише hanya csak doar vain samo само μόνο",
    "remove removed drop skip skips refuse refuses reject rejects rejected except unlike nothing nobody none neither nor nope nah weder ni ani né nem sondern",
)  # fmt: skip
"""Words that deny or leave out, but forbid nothing that follows them."""
_HALF_NEGATIONS = _set("ne n не")
"""Deny by themselves only where no other word of their clause does."""
_NEVER = _set(
    "never ever nie niemals jamais nunca jamas mai nooit aldrig nigdy nikdy никогда ніколи soha niciodata asla koskaan"
)
_REASONS = _set(
    "because since as weil da denn parce car porque pues perche poiche omdat ponieważ потому чтобы protoze eftersom fordi cunku koska mert karena kvůli"
)
_FOLLOWERS = _set(
    "and but und aber sondern oder et mais y e pero sino ma bensi mas maar ale и а но och og ve ama mutta hanem"
)
_WHEN = _set(
    "when while whenever where wenn wahrend quand lorsque cuando mientras quando mentre wanneer terwijl kiedy gdy когда kdyz nar unless until"
)
_FILLERS = _set(
    "ever the a an any of to please be directly der die das den dem ein eine le la les un une du de des d el los las lo il gli i o os as da do het een mir bitte",
)  # fmt: skip
_AROUND = _FILLERS | _set(
    "here in this our repo repository project projects codebase again anymore at all command commands tool flag option directory directories folder folders",
    "file files package manager you we i agent agents should must may can always there inside under anything everything it is are",
    "hier diesem projekt im unser befehl datei dateien verzeichnis ordner darf dürfen soll sollen wird werden man immer an aus auf ici dans ce projet depot toujours on",
    "aqui en este proyecto siempre se qui questo progetto sempre si neste projeto hier dit project niet we wij tutaj w tym projekcie здесь в этом проекте нельзя здесь",
    "or and und oder et ou y e o und och och og of en ili или и be been being was were gets get being do does done ever nothing something",
    "har i det nie pas plus rien using sein not calls call anywhere code casts cast",
)  # fmt: skip
"""Words that limit nothing."""
_PLACES = _set("to on in into onto for from during at auf nach fur sur pour dans para su per")
_NEAR, _GAP = 2, 3
_SENTENCE_END = compile_lazily(r"(?<=[.!?])\s+|[。！？\n;；]+")
_WORD = compile_lazily(r"[^\W_]+(?:['’][^\W_]+)*|[,:()—–、，：]|\s-\s|(?<=\w)\.(?=\s|$)")
_UNSPACED = compile_lazily(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7ff]")
_SENTENCES_MAX, _CHECKS_MAX, _CHARACTERS_MAX = 12, 6, 2_000


@dataclass(frozen=True, slots=True)
class _Token:
    """A folded word, or an argument."""

    word: str
    argument: Argument | None = None
    raw: str = ""
    """In lower case, with its accents."""


@dataclass(slots=True)
class _Clause:
    tokens: list[_Token] = field(default_factory=list)

    @property
    def arguments(self) -> list[tuple[int, Argument]]:
        return [(n, one.argument) for n, one in enumerate(self.tokens) if one.argument is not None]

    def find(self, words: frozenset[str]) -> list[int]:
        return [
            n for n, one in enumerate(self.tokens) if one.word in words and one.argument is None
        ]

    def find_verbs(self, table: re.Pattern[str]) -> list[int]:
        return [
            n for n, one in enumerate(self.tokens) if one.argument is None and table.match(one.word)
        ]

    def find_negations(self) -> list[int]:
        """The words that forbid; two that make one negation (“ne … jamais”, “никогда не”) count as their first."""
        found: list[int] = [
            n for n, one in enumerate(self.tokens)
            if one.argument is None and one.word not in _LIMITING_NEGATIONS | _WITHOUT | _INSTEAD | _INSTEAD_AFTER
            and (is_negation(one.word) or one.word in _HALF_NEGATIONS)
        ]  # fmt: skip
        # Two in a row are one: “nigdy nie”, “не … никогда”.
        found = [n for n in found if n - 1 not in found]
        whole = [n for n in found if self.tokens[n].word not in _HALF_NEGATIONS]
        nots = [n for n in whole if self.tokens[n].word not in _NEVER] or [
            n for n in found if n not in whole
        ]
        nevers = [n for n in whole if self.tokens[n].word in _NEVER]
        return (
            max(nots, nevers, key=len)
            if len(nots) != len(nevers)
            else sorted([*nots, *nevers])[: len(nots)]
        )


@cached(2_048)
def read_checks(text: str) -> tuple[Check, ...]:
    """The checks of a rule, in the order of its sentences; empty if it has no checkable form."""
    found: list[Check] = []
    for sentence in _SENTENCE_END.split(text[:_CHARACTERS_MAX])[:_SENTENCES_MAX]:
        found += _read_sentence(sentence)
    return unique_checks(found)[:_CHECKS_MAX]


def unique_checks(found: Sequence[Check]) -> tuple[Check, ...]:
    """The checks once each; what the sentence requires is not what it forbids."""
    return tuple(dict.fromkeys(found))


def _read_sentence(sentence: str) -> Iterator[Check]:
    arguments = list(find_arguments(sentence))
    if not arguments or sentence.rstrip().endswith(("?", "？")):
        return
    if _UNSPACED.search(sentence):
        yield from _read_unspaced(sentence, arguments)
        return
    clauses = _split_clauses(sentence, arguments)
    before = list(_read_before(clauses))
    yield from before
    if before or has_condition(sentence) or any(one.find(_WHEN) for one in clauses):
        return
    yield from _read_contrast(clauses)
    for clause in clauses:
        yield from _read_clause(clause, clauses)


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
                if part in _REASONS and clauses[-1].tokens:
                    clauses.append(_Clause())
                clauses[-1].tokens.append(_Token(part, raw=raw.lower()))
        if argument is not None:
            clauses[-1].tokens.append(_Token("", argument))
            at = argument.end
    return [part for one in clauses for part in _split_followers(one) if part.tokens]


def _split_followers(clause: _Clause) -> Iterator[_Clause]:
    """Part a clause at “and”, “but”, unless another argument follows: “never npm and yarn” forbids both."""
    start = 0
    for n in clause.find(_FOLLOWERS):
        following = clause.tokens[n + 1 : n + 2]
        if n > start and not (following and following[0].argument):
            yield _Clause(clause.tokens[start:n])
            start = n + 1
    yield _Clause(clause.tokens[start:])


# ── A command before something ──────────────────────────────────────────────────────────────────


def _read_before(clauses: Sequence[_Clause]) -> Iterator[Check]:
    """“run X before you commit”, “before a commit, run X”, “never commit without X”."""
    tokens = [token for clause in clauses for token in [*clause.tokens, _Token(",")]]
    whole = _Clause(tokens)
    negations = whole.find_negations()
    befores = whole.find(_BEFORE_WORDS)
    lasts = [n for n, one in enumerate(tokens) if one.raw in _BEFORE_LAST]
    if len(lasts) == 1 and not befores:
        anchor = _find_anchor(tokens[max(0, lasts[0] - _GAP) : lasts[0]])
        yield from _make_before(anchor, tokens)
        return
    if len(negations) == 1:
        # What must not be done before, until or without the command.
        links = [
            n
            for n in whole.find(_WITHOUT | _BEFORE_WORDS | {"until", "unless", "bis"})
            if n > negations[0]
        ]
        if len(links) == 1:
            anchor = _find_anchor(tokens[negations[0] + 1 : links[0]])
            behind = [token for token in tokens[links[0] + 1 : links[0] + 6]]
            yield from _make_before(anchor, behind)
        return
    if len(befores) != 1 or negations:
        return
    at = befores[0]
    end = next((n for n in range(at + 1, len(tokens)) if tokens[n].word == ","), len(tokens))
    anchor = _find_anchor(tokens[at + 1 : end])
    rest = tokens[:at] if at else []
    # “before committing run X” has no comma.
    behind = [
        one for one in tokens[at + 1 :] if one.argument and not _anchor_of_command(one.argument)
    ]
    yield from _make_before(anchor, rest if any(one.argument for one in rest) else behind)


def _make_before(anchor: Anchor | None, tokens: Sequence[_Token]) -> Iterator[Check]:
    if anchor is None:
        return
    for token in tokens:
        one = token.argument
        if one is not None and (one.is_command or one.is_name) and not _anchor_of_command(one):
            yield Check("before", one.text, anchor)


def _find_anchor(tokens: Sequence[_Token]) -> Anchor | None:
    """What has to wait; None if it is none of the anchors, or only some of them (“before committing to main”)."""
    for n, token in enumerate(tokens[: _GAP * 2]):
        if token.argument is not None:
            return _anchor_of_command(token.argument)
        following = [one.word for one in tokens[n + 1 : n + 3]]
        is_limited = (
            following and following[0] in _PLACES and not {"this", "the", "our"} & set(following)
        )
        for name, table in _ANCHORS.items():
            if table.match(token.word):
                return None if is_limited else name
    return None


def _anchor_of_command(one: Argument) -> Anchor | None:
    words = one.text.split()[:2]
    known: dict[tuple[str, ...], Anchor] = {
        ("git", "commit"): "commit", ("git", "push"): "push", ("gh", "pr"): "pull request", ("glab", "mr"): "pull request",
    }  # fmt: skip
    return known.get(tuple(words))


# ── One thing instead of another ────────────────────────────────────────────────────────────────


def _read_contrast(clauses: Sequence[_Clause]) -> Iterator[Check]:
    """“X instead of Y”, “statt Y nimm X”."""
    for clause in clauses:
        for at in clause.find(_INSTEAD | _INSTEAD_AFTER):
            is_after = clause.tokens[at].word in _INSTEAD_AFTER
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
            if kept is not None and _limits_nothing(clause, last + 1, len(clause.tokens)):
                yield from _forbid(gone, kept.text)


def _is_alike(one: Argument, other: Argument) -> bool:
    return (
        (one.is_command and other.is_command)
        or (one.is_code and other.is_code)
        or (one.is_flag and other.is_flag)
    )


def _forbid(one: Argument, instead: str = "") -> Iterator[Check]:
    if one.is_command:
        yield Check("command", one.text, instead)
    elif one.is_flag and one.text.startswith("--"):
        yield Check("flag", one.text, instead)
    elif one.is_code:
        yield Check("code", one.text, instead)


# ── What is forbidden, and what is required ─────────────────────────────────────────────────────


def _read_clause(clause: _Clause, clauses: Sequence[_Clause]) -> Iterator[Check]:
    arguments = clause.arguments
    if not arguments or clause.find(_INSTEAD | _INSTEAD_AFTER):
        return
    negations, without = clause.find_negations(), clause.find(_WITHOUT)
    commands = [one for _, one in arguments if one.is_command]
    flags = [one for _, one in arguments if one.is_flag]
    if len(commands) == 1 and len(flags) == 1 and len(arguments) == 2:  # noqa: PLR2004  # a command and its flag
        # “X always with --flag”, “never X without --flag”, “pass --flag to X”; “never X with --flag”.
        if len(negations) == len(without) and _limits_nothing_but(clause, _WITH | _WITHOUT):
            yield Check("required flag", commands[0].text, flags[0].text)
        elif len(negations) == 1 and not without and _limits_nothing_but(clause, _WITH):
            yield Check("command", f"{commands[0].text} {flags[0].text}")
        return
    if len(negations) != 1 or without:
        return
    instead = _find_used(clause, clauses)
    for table, wanted in (
        (_TOUCH, "path"),
        (_EXECUTE, "command"),
        (_USE, "command"),
        (_WRITE, "code"),
    ):
        chosen = [
            one
            for _, one in arguments
            if _may_be(one, wanted) or (one.is_name and table is _EXECUTE)
        ]
        if len(chosen) != len(arguments):
            continue
        is_direct = wanted != "path" and _is_direct(clause, negations[0], arguments[0][0])
        if is_direct or _is_forbidden(clause, negations[0], table):
            for one in chosen:
                yield (
                    Check("path", one.text)
                    if wanted == "path"
                    else from_argument(one, wanted, instead)
                )
            return


def from_argument(one: Argument, wanted: str, instead: str) -> Check:
    """The check that forbids a command, flag or code."""
    if wanted == "code":
        return Check("code", one.text, instead)
    return Check("flag" if one.is_flag else "command", one.text, instead)


def _may_be(one: Argument, wanted: str) -> bool:
    if wanted == "path":
        return one.is_path
    if wanted == "command":
        return one.is_command or (one.is_flag and one.text.startswith("--"))
    return one.is_code


def _find_used(clause: _Clause, clauses: Sequence[_Clause]) -> str:
    """What another clause of the sentence says to use: “use pnpm, never npm”."""
    for other in clauses:
        if other is not clause and not other.find_negations():
            for _, one in other.arguments:
                if one.is_command and any(_is_alike(one, mine) for _, mine in clause.arguments):
                    return one.text
    return ""


def _is_direct(clause: _Clause, negation: int, first: int) -> bool:
    """Whether the argument follows the negation at once: “not npm”, “never `git push --force`”."""
    between = clause.tokens[negation + 1 : first]
    is_near = negation < first and all(one.word in _FILLERS for one in between)
    last = clause.arguments[-1][0]
    return (
        is_near
        and _limits_nothing(clause, 0, negation)
        and _limits_nothing(clause, last + 1, len(clause.tokens))
    )


def _is_forbidden(clause: _Clause, negation: int, table: re.Pattern[str]) -> bool:
    """Whether the clause says that this must not be done with its arguments, in whatever order its language has."""
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


def _limits_nothing(clause: _Clause, start: int, end: int) -> bool:
    return _all_harmless(clause, range(start, end))


def _all_harmless(clause: _Clause, places: Sequence[int]) -> bool:
    tokens = [clause.tokens[n] for n in places]
    return all(one.argument is None and _is_harmless(one.word) for one in tokens)


def _is_harmless(word: str) -> bool:
    return (
        word in _AROUND
        or word in _NEVER
        or is_negation(word)
        or bool(_EXECUTE.match(word) or _USE.match(word))
    )


def _limits_nothing_but(clause: _Clause, words: frozenset[str]) -> bool:
    return all(
        one.argument is not None or one.word in words or _is_harmless(one.word)
        for one in clause.tokens
    )


# ── Languages that put no spaces between words, and Korean ──────────────────────────────────────


def _read_unspaced(sentence: str, arguments: Sequence[Argument]) -> Iterator[Check]:
    if re.search("如果|除非|的时候|場合|とき|なら|경우|면 ", sentence):
        return
    marked, at = "", 0
    for number, one in enumerate(arguments):
        marked += sentence[at : one.start] + f"\x00{number}\x01"
        at = one.end
    marked += sentence[at:]
    for name, signs in _ANCHOR_SIGNS.items():
        if re.search(rf"(?:{signs})[^\x00，、,]{{0,6}}?(?:{_BEFORE_AFTER.pattern})", marked):
            yield from (Check("before", one.text, name) for one in arguments if one.is_command)
            return
    gone: set[int] = set()
    for pattern in (
        rf"\x00(\d+)\x01\s?(?:{_INSTEAD_SIGNS.pattern})",
        rf"(?:{_INSTEAD_FIRST.pattern})\s?\x00(\d+)\x01",
    ):
        gone |= {int(found[1]) for found in re.finditer(pattern, marked)}
    if gone:
        kept = next((one.text for n, one in enumerate(arguments) if n not in gone), "")
        for n in sorted(gone):
            yield from _forbid(arguments[n], kept)
        return
    clauses = re.split("[，、,：]", marked)
    for clause in clauses:
        numbers = [int(found) for found in re.findall(r"\x00(\d+)\x01", clause)]
        bare = re.sub(r"\x00\d+\x01", " ", clause)
        if not numbers or len(negation_signs(bare)) != 1:
            continue
        for wanted, name in (("path", "touch"), ("command", "run"), ("code", "write")):
            chosen = [arguments[n] for n in numbers if _may_be(arguments[n], wanted)]
            if len(chosen) == len(numbers) and _SIGNS[name].search(bare):
                others = [
                    one.text
                    for n, one in enumerate(arguments)
                    if n not in numbers and one.is_command
                ]
                for one in chosen:
                    yield (
                        Check("path", one.text)
                        if wanted == "path"
                        else from_argument(one, wanted, next(iter(others), ""))
                    )
                break
