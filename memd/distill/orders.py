"""Orders in other languages than English that hold beyond their turn: `Benutze immer pnpm`, `Ne pousse jamais sur main`. Pure.

Such a sentence begins with an imperative of what an agent does in its work, with “always” or “never” near it; or with a
negation before both; in German also with the two around all others: `Nie auf main committen`. The imperatives are a table, as
the English ones are: in some languages whoever leaves out the subject reports in the very same form.
"""

from memd.belief.polarity import CLAUSE_BREAK, WORDS, has_condition
from memd.caches import cached
from memd.patterns import Table
from memd.text import fold, words

_TABLE = Table("distill/orders.toml")
_ALWAYS, _NEVER, _NOT, _STILL, _POLITE, _SUBJECTS, _HERE = map(
    _TABLE.list_words, ("always", "never", "not", "still", "polite", "subjects", "here")
)
_IMPERATIVES = frozenset(
    word for text in _TABLE.rows["imperatives"].values() for word in text.split()
)
_INFINITIVES = frozenset(
    f"{word.removesuffix('e')}en" for word in _TABLE.rows["imperatives"]["german"].split()
) | {"nehmen", "geben", "lesen"}
_ITALIAN_ENDINGS = ("are", "ere", "ire")
"""An infinitive behind `non` forbids."""
_NEAR = 4
"""Words behind an imperative among which “always” or “never” stands."""


@cached(256)
def read_order(sentence: str) -> str:
    """Return `always` for an order that holds, `from now on` for one that says since when; empty if it is none."""
    begun = _TABLE["from now on"].match(sentence)
    clause = CLAUSE_BREAK.split(sentence[begun.end() :] if begun else sentence)[0]
    tokens = _split_tokens(clause)
    if not tokens or sentence.rstrip().endswith("?") or has_condition(sentence):
        return ""
    if WORDS["for once"].search(sentence) or _HERE.intersection(tokens):
        return ""
    if begun:
        return "from now on" if _is_order(tokens) or _ends_order(tokens) else ""
    at = next((n for n, one in enumerate(tokens) if one in _ALWAYS | _NEVER), len(tokens))
    if at > _NEAR + 1 or _STILL.intersection(tokens[at + 1 : at + 2]):
        return ""
    first = tokens[0] in _ALWAYS | _NEVER
    is_order = _ends_order(tokens) if first else _is_order(tokens)
    is_ban = first and tokens[0] in _NEVER and _is_order(tokens[1:])
    return "always" if at < len(tokens) and (is_order or is_ban) else ""


def _split_tokens(sentence: str) -> list[str]:
    """The folded words without courtesies before them; `n'utilise` is two."""
    tokens = [part for one in words(sentence) for part in fold(one).replace("’", "'").split("'")]
    at = next((n for n, one in enumerate(tokens) if one not in _POLITE), len(tokens))
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
