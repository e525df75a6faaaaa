"""Orders, and requests to remember something, in other languages than English. Pure.

An order that holds beyond its turn (`Benutze immer pnpm`, `Ne pousse jamais sur main`) begins with an imperative of what an
agent does in its work, with “always” or “never” near it; or with a negation before both; in German also with the two around
all others: `Nie auf main committen`. The imperatives are a table, as the English ones are: in some languages whoever leaves
out the subject reports in the very same form. With a name that can be checked, `Nie `api.yaml` anfassen`, any verb does.
"""

from typing import Literal

from memd.belief.checks import read_checks
from memd.belief.polarity import CLAUSE_BREAK, WORDS, has_condition, list_folded
from memd.caches import cached
from memd.patterns import Table
from memd.text import fold, is_stop_word, words

_TABLE = Table("distill/orders.toml")
_ALWAYS, _NEVER, _NOT, _STILL, POLITE, _SUBJECTS, _HERE, _NOW = map(
    _TABLE.list_words, ("always", "never", "not", "still", "polite", "subjects", "here", "now")
)
_NO_THING = _TABLE.list_words("no thing")
_IMPERATIVES = frozenset(
    word for text in _TABLE.rows["imperatives"].values() for word in text.split()
)
_UNMISTAKABLE = frozenset(
    word
    for language in ("polish", "russian")
    for word in _TABLE.rows["imperatives"][language].split()
)
"""Imperatives that nobody reports with, also behind “always”: `Siempre usa` may tell what a program does."""
_INFINITIVES = frozenset(
    f"{word.removesuffix('e')}en" for word in _TABLE.rows["imperatives"]["german"].split()
) | {"nehmen", "geben", "lesen"}
_ITALIAN_ENDINGS = ("are", "ere", "ire")
"""An infinitive behind `non` forbids."""
_NEAR = 4
"""Words behind an imperative among which “always” or “never” stands."""


_INFINITIVE_ENDINGS = ("en", "ern", "eln", "er", "ir", "re", "ar", "ть")
_BANNED_WITHIN = 4
"""Words from “no …” on among which stands where it is banned: `keine Umlaute in Dateinamen`."""
_TELLING_MIN = 2
_HEDGES, _PASSING, _CONFINING = map(list_folded, ("hedges", "passing", "confining words"))

Wish = Literal["rule", "fact", "task", "decision", "preference"]
"""What is asked to be kept."""


@cached(256)
def read_order(sentence: str, whole: str = "") -> str:
    """Return `always` for an order that holds, `from now on` for one that says since when; empty if it is none.

    `sentence` is masked, `whole` is not.
    """
    since = _TABLE["from now on"].search(sentence)
    if since and CLAUSE_BREAK.search(sentence, 0, since.start()):
        since = None
    begun = since if since and not words(sentence[: since.start()]) else None
    clause = CLAUSE_BREAK.split(sentence[begun.end() :] if begun else sentence)[0]
    tokens = _split_tokens(clause)
    if not tokens or sentence.rstrip().endswith("?") or has_condition(sentence):
        return ""
    bare = _split_tokens(_TABLE["from now on"].sub(" ", clause))
    if WORDS["for once"].search(sentence) or (_HERE | _NOW).intersection(bare):
        return ""
    if begun:
        is_order = _is_order(tokens) or _ends_order(tokens) or _bans_thing(tokens)
        return "from now on" if is_order else ""
    if since and _is_order(tokens):
        return "from now on"
    at = next((n for n, one in enumerate(tokens) if one in _ALWAYS | _NEVER), len(tokens))
    if at > _NEAR + 1 or _STILL.intersection(tokens[at + 1 : at + 2]):
        return ""
    first = tokens[0] in _ALWAYS | _NEVER
    is_order = _ends_order(tokens) if first else _is_order(tokens)
    is_ban = first and tokens[0] in _NEVER and _is_order(tokens[1:])
    is_clear = first and not _UNMISTAKABLE.isdisjoint(tokens[1:2])
    is_held = at < len(tokens) and (is_order or is_ban or is_clear)
    return "always" if is_held or _forbids_name(tokens, whole) else ""


def _bans_thing(tokens: list[str]) -> bool:
    """Return whether these words ban a thing from a place, without a verb: `keine Umlaute in Dateinamen`."""
    places = _CONFINING.intersection(tokens[_TELLING_MIN:_BANNED_WITHIN])
    return tokens[0] in _NO_THING and bool(places) and _SUBJECTS.isdisjoint(tokens)


def _forbids_name(tokens: list[str], whole: str) -> bool:
    """Return whether an infinitive with “never” before all else forbids something that can be checked."""
    is_ban = not _NEVER.isdisjoint(tokens[:2]) and _SUBJECTS.isdisjoint(tokens)
    rest = [one for one in tokens if one not in _NEVER]
    return (
        is_ban
        and any(one.endswith(_INFINITIVE_ENDINGS) for one in rest)
        and bool(read_checks(whole))
    )


def drop_place(said: str, whole: str) -> str:
    """Return masked words without “here” where that means the project: in an order that can be checked."""
    found = _TABLE["place"].search(said)
    return _TABLE["place"].sub(" ", said) if found and read_checks(whole) else said


def asks_to_keep(lead: str) -> bool:
    """Return whether what stands before a colon asks to remember what follows: `merk dir: …`."""
    return _TABLE["remember lead"].fullmatch(lead) is not None


def read_wish(said: str, lead: str) -> tuple[Wish, str] | None:
    """Return what a sentence asks to be kept, and its words; None if it asks for nothing."""
    tokens = _split_tokens(said)
    if not (_HEDGES | _PASSING | _NOW).isdisjoint(tokens) or said.rstrip().endswith("?"):
        return None
    match = _TABLE["remember"].match(said) or WORDS["remember that elsewhere"].match(said)
    if match or asks_to_keep(lead):
        rest = match["rest"] if match else said
        kept = _name_kept(rest)
        return (kept, rest) if kept else None
    for name in ("task", "decided", "prefer"):
        match = _TABLE[name].match(said)
        if match and _tells(match["rest"]):
            return _WISHES[name], match["rest"]
    return None


_WISHES: dict[str, Wish] = {"task": "task", "decided": "decision", "prefer": "preference"}


def _name_kept(rest: str) -> Wish | None:
    """Name what is to be remembered: a rule or a fact; None for a thing at hand: `die Tests laufen lassen`."""
    if read_order(rest):
        return "rule"
    tokens = _split_tokens(rest)
    is_at_hand = not tokens or _is_order(tokens) or _ends_order(tokens)
    return "fact" if not is_at_hand and _tells(rest) else None


def _tells(text: str) -> bool:
    return sum(not is_stop_word(word) for word in words(text)) >= _TELLING_MIN


def _split_tokens(sentence: str) -> list[str]:
    """The folded words without courtesies before them; `n'utilise` is two."""
    tokens = [part for one in words(sentence) for part in fold(one).replace("’", "'").split("'")]
    at = next((n for n, one in enumerate(tokens) if one not in POLITE), len(tokens))
    return tokens[at:]


def _is_order(tokens: list[str]) -> bool:
    """Return whether these words begin with an imperative, or with a negation before one."""
    denied = tokens[:1] != [] and tokens[0] in _NOT
    verb, *rest = tokens[1:] if denied and len(tokens) > 1 else tokens or [""]
    is_verb = verb in _IMPERATIVES or (tokens[:1] == ["non"] and verb.endswith(_ITALIAN_ENDINGS))
    is_formal = verb in _INFINITIVES and rest[:1] == ["sie"]
    return is_formal or (is_verb and not _SUBJECTS.intersection(rest[:1]))


def _ends_order(tokens: list[str]) -> bool:
    """Return whether these words end with a German infinitive: `immer pnpm benutzen`."""
    return tokens[-1] in _INFINITIVES and _SUBJECTS.isdisjoint(tokens)
