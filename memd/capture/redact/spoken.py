"""Secrets told in a sentence: a word for a secret, what may stand between, and the value. Pure.

One grammar for every language of `words.toml`, which says what the words are:

    word [phrase] is|:|= [small words] value        the password for root is sunflower49, hasło do bazy to …
    word value, word phrase value                   pw sunflower49, пароль от сервера …
    word [phrase] to value                          set the password to …, setz das Passwort auf …
    as word value                                   als Passwort …, comme mot de passe …
    user value, word value                          Benutzer …, Passwort …
    value as|is|( [small words] word                use … as the password, … is the password for …
    enter value … word, word … enter value          type … when it asks for the password
    … value [but|now|is] value                      the password is no longer …, but …

A value is judged by its structure. Letters with digits or signs, and words in quotes, go wherever the grammar
leads to them; where it leads less surely (no verb between), they must look more drawn. A plain word goes only
where nothing but a value can stand: alone after "is" at the end of its sentence, no adjective and no participle.
"""

import itertools
from collections.abc import Iterator

from memd.capture.redact import names
from memd.capture.redact.names import is_naming, is_reference, judge
from memd.capture.redact.regexes import Found, Reading, compile_regex
from memd.capture.redact.words import (
    BY_SIGN,
    CLAUSE_SIGNS,
    CODE_NAME,
    FINAL,
    FOREIGN,
    LATIN_LAST,
    LINE,
    NEXT_WORD,
    PLAIN_MIN,
    SpokenToken,
    Word,
    among,
    as_listed,
    begin_of_line,
    begins_clause,
    can_be_password,
    find_foreign,
    find_opened,
    find_opening_words,
    find_unspaced,
    find_words,
    has_verb_of_change,
    is_complete,
    is_last,
    is_of_change,
    kinds_of,
    may_be_another,
    read_before,
    read_sentence,
    read_tokens_after,
)

_Span = tuple[int, int]
_PHRASE_MAX = 7
_SMALL_MAX = 3
_LEFT_MAX = 4
_AFTER_CLAUSE = frozenset(["", " ", ",", "?", "？", "\n"])
_COMMAND_MAX = 3
"""Words before the value in "i have set … as the password"."""
_RESULTS = ("ed", "able", "ible", "al")
_PAIR_MAX = 5
_ENGLISH_USING = frozenset(["as", "for"])
_GOES_ON = frozenset(" ,\t\"'’`*)»”“’(（[")
_GOES_ON_FOREIGN = _GOES_ON | frozenset(":=：＝-–—→")
_AFTER_QUOTE = frozenset([" ", "\t", "*", ")", "s", ":", ""])
_SYMBOLS = frozenset([":", "=", "->", "=>", "→", "::", ":=", "＝", "：", "is:"])
_CHANGE = ">"
"""The link of "set the password to"."""
_ARROWS = frozenset(["->", "=>", "→", ">"])
_WRAPPED = r"\n(?=[^\W_]|[\"'`“„«])(?<=[^\n]{40}[^\W_]\n)|\n(?=[^\W_])(?<=[^\n]{40},\n)"
"""The end of a line within a sentence: the line is long, and the next one begins without a mark of a list."""
_INSERTED = r",[^,.;!?\n\"]{3,60},(?= )"
"""A clause between the word and its verb: `the passphrase, in case you need it, is …`."""
_DASHES = frozenset(["-", "–", "—", "--"])
_BREAKS = (".", "!", "?", ";", "…")
_LENGTH_MIN, _USUAL_MIN, _PIN_MIN, _PIN_MAX = 4, 8, 4, 12


def find_spoken(reading: Reading) -> Iterator[Found]:
    """Yield the secrets told in sentences."""
    lowered = reading.lowered
    for at, end, word in find_opening_words(reading):
        yield from _find_around(reading.text, at, end, word)
    if not reading.is_named:
        return
    words = [w for sign in reading.signs & BY_SIGN.keys() for w in BY_SIGN[sign] if w in lowered]
    words += find_foreign(lowered, FOREIGN) if reading.is_foreign else []
    for text in dict.fromkeys((reading.text, compile_regex(_WRAPPED).sub(" ", reading.text))):
        for at, end, word in find_words(text, lowered, words):
            yield from _find_around(text, at, end, word)
        if reading.is_foreign:
            yield from find_unspaced(text, lowered)


def _find_around(text: str, start: int, end: int, word: Word) -> Iterator[Found]:
    following = text[end : end + 1]
    if following == "-" and text[end + 1 : end + 2].isalnum():
        return
    if following in "\"'’`" and text[end + 1 : end + 2] not in _AFTER_QUOTE:
        return
    is_noun = word.is_english and following == " " and not _may_go_on(text, end, word)
    if is_noun:
        following = ""  # most words after "password" are nouns: "password field"
    value = _find_value(text, start, end, word, following)
    if word.opens:
        yield from find_opened(text, end, word, value)
        return
    found = [] if value is None else [value]
    least = names.STRONG if is_noun and not is_of_change(text, end, word) else names.FAIR
    found += _find_others(text, start, end, word, value, least)
    for span in found:
        yield (*span, "password" if word.is_password else "token")


def _find_value(text: str, start: int, end: int, word: Word, following: str) -> _Span | None:
    """Return the value after a word, else the one before it, else one that is entered or looks drawn."""
    before = text[max(0, start - LINE // 2) : start].rpartition("\n")[2].split()
    used = bool(before) and before[-1] != "for" and among(word, "using", before[-1].lower())
    if used and (value := _find_before(text, start, end, word)) is not None:
        return value
    value = _find_paired(text, before, end, word)
    if value is None and following in (
        _GOES_ON if word.is_english and not word.opens else _GOES_ON_FOREIGN
    ):
        tokens = read_tokens_after(text, end) if used else []
        value = _find_linked(text, start, tokens, word, "as") or _find_after(text, start, end, word)
    for find in (_find_before, _find_entered, _find_drawn):
        value = value or find(text, start, end, word)
    return value


def _find_drawn(text: str, start: int, end: int, word: Word) -> _Span | None:
    """Return a value in the word's clause that looks drawn and ends or begins it, whatever stands between."""
    if not word.is_password or text[end : end + 1] not in _AFTER_CLAUSE:
        return None
    low = max(0, start - LINE // 2)
    begin = max(low, *(text.rfind(sign, low, start) + 1 for sign in "\n.!?;"))
    # A value without a digit and a sign does not look drawn.
    if not compile_regex(r"[\d!@#$%^&*+?=~§€£]").search(text, begin, end + LINE):
        return None
    is_sure = word.parts not in {"pass", "pwd", "pin"}
    clause = read_before(text, begin, start) if is_sure else []
    for tokens in (read_tokens_after(text, end), clause):
        previous = ""
        for token in tokens:
            if _is_drawn(text, token, word) and not among(word, "of", previous):
                return token.start, token.end
            if tokens is not clause and among(word, "of", previous := token.bare.lower()):
                break
            previous = token.bare.lower()
    # "Kirpi77 veritabanının şifresi": a sentence without a verb
    is_short = 1 < len(clause) <= _LEFT_MAX and not word.is_english
    if is_short and judge(clause[0].bare) >= names.FAIR and is_complete(text, end, word):
        is_named = compile_regex(CODE_NAME).fullmatch(clause[0].bare)
        return None if is_named else (clause[0].start, clause[0].end)
    return None


def _is_drawn(text: str, token: SpokenToken, word: Word) -> bool:
    """Return whether a word looks like a secret by itself: digests, identifiers and names with a number do not."""
    kind, bare = judge(token.bare), token.bare
    if kind < names.FAIR or token.quote == "`" or "..." in bare or not is_last(text, token, word):
        return False
    if compile_regex(r"r?[0-9a-f]+|\d+/.*|.*[*/|].*").fullmatch(bare):
        return False
    is_named = compile_regex(CODE_NAME).fullmatch(bare) is not None
    # In English nouns join the word: "the password policy is min12chars".
    is_usual = len(bare) >= _USUAL_MIN and bare.count("-") <= 1 and not is_named
    return kind == names.STRONG or (is_usual and not word.is_english)


def _find_paired(text: str, before: list[str], end: int, word: Word) -> _Span | None:
    """Return a plain word after "user admin, password"."""
    if not word.is_password:
        return None
    pair = [one.strip(CLAUSE_SIGNS).lower() for one in before[-_PAIR_MAX:]]
    if not any(among(word, "user", one) for one in pair[:-1]):
        return None
    tokens = read_tokens_after(text, end)
    has_sign = bool(tokens) and tokens[0].raw in _SYMBOLS
    tokens = tokens[has_sign:]
    if not tokens or (word.is_english and not has_sign):  # user login, password reset
        return None
    joins = before[-1][-1] in ",/" or any(pair[-1] in one.closing for one in word.languages)
    value = tokens[0]
    is_plain = judge(value.bare) == names.PLAIN and can_be_password(
        value.bare, word, word.languages[0]
    )
    is_final = compile_regex(FINAL).match(text, value.end) is not None
    return (value.start, value.end) if joins and is_plain and is_final else None


def _find_others(  # the place, and what is known of it
    text: str, start: int, end: int, word: Word, known: _Span | None, least: int
) -> Iterator[_Span]:
    """Yield the other values in a sentence: the one before a change or after it, that of another user."""
    if not word.is_password or word.parts in {"pass", "pin"}:
        return
    low = max(start - LINE // 2, 0)
    if known is None and compile_regex(r"\d").search(text, low, end + LINE) is None:
        return
    tokens = read_sentence(text, start, end)
    drawn = {n for n, token in enumerate(tokens) if may_be_another(token, least)}
    if least == names.STRONG:  # names that only their numbers tell apart
        stems = [tokens[n].bare.rstrip("0123456789") for n in drawn]
        drawn = {n for n in drawn if stems.count(tokens[n].bare.rstrip("0123456789")) == 1}
    told = next((n for n, token in enumerate(tokens) if known and token.end >= known[1]), None)
    has_change = has_verb_of_change(text, start, end, word)
    others = [
        n
        for n in sorted(drawn - {told})
        if _is_former_or_new(tokens, n, drawn, word)
        or _is_joined(text, tokens, n, told, word, has_change=has_change)
    ]
    if told is not None and judge(tokens[told].bare) == names.PLAIN:
        others += _find_plain_successor(text, tokens, told, word)
    for n in others:
        yield tokens[n].start, tokens[n].end


def _is_kind(tokens: list[SpokenToken], n: int, word: Word, *kinds: str) -> bool:
    low = tokens[n].bare.lower() if 0 <= n < len(tokens) else ""
    return any(among(word, kind, low) for kind in kinds)


def _is_former_or_new(tokens: list[SpokenToken], n: int, drawn: set[int], word: Word) -> bool:
    """Return whether a word is one of the two in "from … to …"."""
    return any(
        {m, m + 2} <= drawn
        and _is_kind(tokens, m - 1, word, "former")
        and _is_kind(tokens, m + 1, word, "to")
        for m in (n, n - 2)
    )


def _is_joined(
    text: str, tokens: list[SpokenToken], n: int, told: int | None, word: Word, *, has_change: bool
) -> bool:
    """Return whether a word is joined to the value of its sentence, as another value is."""
    if told is None and not any("[REDACTED:" in token.raw for token in tokens):
        return False
    after = range(n + 1, len(tokens))
    if _is_kind(tokens, n + 1, word, "being"):  # … is the new one
        return all(_is_kind(tokens, m, word, "being", "small") for m in after)
    if not (is_last(text, tokens[n], word) or _is_kind(tokens, n + 1, word, "small", "closing")):
        return False
    is_alike = told is not None and kinds_of(tokens[n].bare) == kinds_of(tokens[told].bare)
    if _is_kind(tokens, n - 1, word, "being"):
        is_placed = n > 1 and "[REDACTED:" in tokens[n - 2].raw
        return is_alike or is_placed or _is_kind(tokens, n - 2, word, "small", "closing")
    is_elided = n > 0 and ("'" in tokens[n - 1].raw or "’" in tokens[n - 1].raw)  # d'admin
    if is_elided or _is_kind(tokens, n - 1, word, "of") or _is_kind(tokens, n - 2, word, "of"):
        # "replaced … with …", "and for admin …"
        joins = has_change or any(_is_kind(tokens, m, word, "closing") for m in range(told or 0, n))
        if is_alike and joins:
            return True
    before = tokens[n - 1] if n else tokens[n]
    is_value = told == n - 1 or "[REDACTED:" in before.raw
    is_arrow = before.raw in _ARROWS or (is_value and before.raw.endswith((",", "/")))
    is_of = _is_kind(tokens, n - 1, word, "of")
    return is_arrow or (not is_of and _is_kind(tokens, n - 1, word, "small", "closing", "to"))


def _find_plain_successor(
    text: str, tokens: list[SpokenToken], told: int, word: Word
) -> Iterator[int]:
    """Yield the plain word that follows a plain word: "the new one is …"."""
    for n in range(told + 1, len(tokens)):
        is_named = _is_kind(tokens, n - 1, word, "being") and _is_kind(tokens, n - 2, word, "small")
        is_plain = is_named and can_be_password(tokens[n].bare, word, word.languages[0])
        if is_plain and is_last(text, tokens[n], word):
            yield n
        if not _is_kind(tokens, n, word, "small", "closing", "being"):
            return


def _find_entered(text: str, start: int, end: int, word: Word) -> _Span | None:
    """Return what is to be typed when the secret is asked for, before the word or after it."""
    if not word.is_password:
        return None
    begin = begin_of_line(text, start)
    window = as_listed(text[begin : end + LINE // 2].lower()).split()
    if word.all.enter.isdisjoint(window):
        return None
    for tokens in (read_before(text, begin, start), read_tokens_after(text, end)):
        for one, other in itertools.pairwise(tokens):
            # In languages whose verbs come last also after it.
            for verb, value in ((one, other), (other, one)):
                is_verb = not verb.quote and among(word, "enter", verb.bare.lower())
                if is_verb and _is_entered(text, start, value, word, is_order=verb is one):
                    return value.start, value.end
    return None


def _is_entered(text: str, start: int, value: SpokenToken, word: Word, *, is_order: bool) -> bool:
    """Return whether what stands beside a verb of typing is a value: in an order also a plain word."""
    kind = judge(value.bare)
    if kind < names.PLAIN or value.end >= start - 1 > value.start:
        return False
    if kind >= names.FAIR:
        return compile_regex(CODE_NAME).fullmatch(value.bare) is None
    is_plain = (
        is_order and kind == names.PLAIN and can_be_password(value.bare, word, word.languages[0])
    )
    return is_plain and is_last(text, value, word)


def _may_go_on(text: str, end: int, word: Word) -> bool:
    """Return whether the next word is a value, or one that may stand before it."""
    following = text[end + 1 : end + 24].partition(" ")[0]
    if not following.isalpha():
        return True
    return following.lower() in word.goes_on


def _find_after(  # noqa: PLR0911  # one for each form of the grammar
    text: str, start: int, end: int, word: Word
) -> _Span | None:
    """Return where the value after a word is: its sentence is read word by word."""
    if text.startswith(("'s ", "’s "), end):
        return _find_linked(text, start, read_tokens_after(text, end + 2), word, "is")
    if clause := compile_regex(_INSERTED).match(text, end):
        tokens = read_tokens_after(text, clause.end())
        link = _read_link(tokens[0], word) if tokens else ""
        return _find_linked(text, start, tokens[1:], word, link) if link else None
    tokens = read_tokens_after(text, end)
    nouns, of = 0, False
    for n, token in enumerate(tokens):
        rest = tokens[n + 1 :]
        if link := _read_link(token, word):
            return _find_linked(text, start, rest, word, link)
        low = token.bare.lower()
        is_to = bool(rest) and among(word, "to", low)
        if is_to and (changed := _value_after(text, start, rest[0], word, _CHANGE)):
            return changed
        is_of = not token.quote and among(word, "of", low)
        is_adjacent = nouns == 0 and not of and word.parts != "pass"
        may_be_told = is_adjacent or (of and nouns > 0)
        if may_be_told and not is_of and _is_stated_value(text, token, word, adjacent=is_adjacent):
            return token.start, token.end
        if n >= _PHRASE_MAX or not _continues_phrase(token, word, n, is_of=is_of):
            return None
        of = of or is_of
        nouns = 0 if is_of else nouns + (not among(word, "small", low))
        if token.raw.endswith((":", "：")):
            return _find_linked(text, start, rest, word, ":")
    return None


def _read_link(token: SpokenToken, word: Word) -> str:
    """Return the verb or the sign that a token is; "" for all other tokens."""
    if token.quote:
        return ""
    if token.raw in _SYMBOLS:
        return token.raw
    low = token.bare.lower().rstrip(":")
    listed = as_listed(low)
    # n'est, c'est, e'
    forms = (listed, listed.rpartition("’")[2], as_listed(token.raw.lower()))
    if not word.all.being.isdisjoint(forms):
        return low
    return "-" if token.raw in _DASHES else ""


def _continues_phrase(token: SpokenToken, word: Word, n: int, *, is_of: bool) -> bool:
    """Return whether this token continues a phrase about the secret.

    In English what is said of a noun after the word is not said of the secret: "the password policy is".
    """
    is_free = not word.is_english or n > 0 or is_of or token.raw[0] == "("
    is_phrase = is_free or among(word, "small", token.bare.lower())
    return is_phrase and not token.raw.endswith(_BREAKS)


def _find_linked(
    text: str, start: int, tokens: list[SpokenToken], word: Word, link: str
) -> _Span | None:
    """Return the value after a verb or a sign, and after what may stand between: "is still set to"."""
    small = 0
    for n, token in enumerate(tokens):
        low = token.bare.lower()
        if n + 2 < len(tokens) and tokens[n + 1].raw == "/":  # user / password
            return _value_after(text, start, tokens[n + 2], word, link)
        if not token.quote and low in word.languages[0].to:
            link = _CHANGE
        elif (
            not token.quote
            and small < _SMALL_MAX
            and among(word, "small", low)
            and not (link == "as" and is_last(text, token, word))
        ):
            small += 1
            link = ":" if link == "-" else link
        else:
            return _value_after(text, start, token, word, link)
    return None


def _value_after(text: str, start: int, token: SpokenToken, word: Word, link: str) -> _Span | None:
    """Return where the value is that a word such as "is" leads to, if it is one."""
    kind = judge(token.bare)
    if word.parts == "pin" and kind != names.NUMBER:
        found = False
    elif token.quote:
        found = _is_quoted_value(token, word, link)
    elif (
        link == "-" and kind == names.PLAIN and word.parts[0] > LATIN_LAST and token.bare.isascii()
    ):
        found = _is_plain_value(text, start, token, word, link)
    elif link in {_CHANGE, "-"}:
        found = _is_stated_value(text, token, word, adjacent=link == _CHANGE)
        found = found or (link == _CHANGE and _is_usual(text, token, word, digits_min=1))
        if link == _CHANGE and not found and has_verb_of_change(text, start, token.end, word):
            is_plain = kind == names.PLAIN and _is_plain_value(text, start, token, word, link)
            found = is_plain or (kind >= names.FAIR and is_last(text, token, word))
    elif kind >= names.FAIR:
        found = word.is_password or (kind == names.STRONG or len(token.bare) >= _USUAL_MIN)
    elif kind == names.NUMBER:
        is_told = not token.bare.isdigit() or is_last(text, token, word)
        found = word.is_password and is_told
    else:
        found = kind == names.PLAIN and _is_plain_value(text, start, token, word, link)
    return (token.start, token.end) if found else None


def _is_quoted_value(token: SpokenToken, word: Word, link: str) -> bool:
    """Return whether what stands in quotes is a value, and no name, state or text about secrets."""
    bare = token.bare.strip()
    if len(bare) < _LENGTH_MIN or is_reference(bare) or is_naming(bare) or names.is_state(bare):
        return False
    if any(bare.lower() in language.state for language in word.languages):
        return False
    kind = judge(bare)
    if link == _CHANGE or token.quote == "`" or not word.is_password or word.parts == "pass":
        return kind >= names.FAIR
    if " " in bare:
        return all(part.isalnum() for part in bare.split()) and not compile_regex(
            r"(?i)pass|secret|token|key|auth"
        ).search(bare)
    return not compile_regex(names.HARMLESS_TOLD).fullmatch(bare)


def _is_stated_value(text: str, token: SpokenToken, word: Word, *, adjacent: bool) -> bool:
    """Return whether a word without a verb before it is a value: drawn, or the last of its sentence."""
    kind = judge(token.bare)
    if kind == names.NUMBER:
        pin = word.parts in {"pin", "passcode"} and _PIN_MIN <= len(token.bare) <= _PIN_MAX
        is_told = (adjacent and pin) or not token.bare.isdigit()
        return word.is_password and is_told and is_last(text, token, word)
    if kind < names.FAIR or compile_regex(CODE_NAME).fullmatch(token.bare):
        return False
    if kind == names.STRONG:
        return adjacent or token.quote != "" or is_last(text, token, word)
    if adjacent and sum(map(str.isdigit, token.bare)) > 1:
        return word.is_password and len(token.bare) >= _USUAL_MIN
    # A digit in the middle of a word is drawn, at its end it may be the number of a version.
    is_within = compile_regex(r"[^\W\d_]\d[^\W\d_]").search(token.bare) is not None
    return _is_usual(text, token, word, digits_min=1 if adjacent and is_within else 2)


def _is_usual(text: str, token: SpokenToken, word: Word, *, digits_min: int) -> bool:
    """Return whether a word that ends its sentence has the length and the digits of usual passwords."""
    if not word.is_password or compile_regex(CODE_NAME).fullmatch(token.bare):
        return False
    digits = sum(map(str.isdigit, token.bare))
    drawn = judge(token.bare) >= names.FAIR and digits >= digits_min
    return drawn and len(token.bare) >= _USUAL_MIN and is_last(text, token, word)


def _is_plain_value(text: str, start: int, token: SpokenToken, word: Word, link: str) -> bool:
    """Return whether a plain word is a value: nothing else can stand alone where it does.

    After "is" and its like an adjective, a participle or a word about secrets may stand, but no noun without an
    article, which a value is.
    """
    if word.parts == "pw" and link == "=":  # pw = playwright
        return False
    language = next((one for one in word.languages if link in one.being), word.languages[0])
    least = _LENGTH_MIN if link == "as" else PLAIN_MIN
    if link == _CHANGE:  # what something becomes is seldom an adjective
        language = language._replace(endings=_RESULTS if word.is_english else ())
    if not can_be_password(token.bare, word, language, least) or not begins_clause(
        text, start, word
    ):
        return False
    if link in {"as", _CHANGE}:
        return is_last(text, token, word)
    if compile_regex(FINAL).match(text, token.end):
        return True
    following = compile_regex(NEXT_WORD).match(text, token.end)
    return following is not None and following[1].lower() in language.polite


def _find_before(text: str, start: int, end: int, word: Word) -> _Span | None:
    """Return where the value is of which the word is said: `use … as the password`, `… is the password`."""
    begin = begin_of_line(text, start)
    near = text[begin:start].rsplit(None, _LEFT_MAX)[-_LEFT_MAX:]
    listed = [as_listed(one.strip(CLAUSE_SIGNS).lower()) for one in near]
    if word.leads.isdisjoint(listed) and not any(one[0] in "(=→" for one in near):
        return None
    tokens = [one for one in read_before(text, begin, start) if one.raw not in _DASHES]
    for back in range(1, min(_LEFT_MAX, len(tokens) - 1) + 1):
        token, value = tokens[-back], tokens[-back - 1]
        low = token.bare.lower()
        if (not low and token.raw != "=") or token.raw.endswith((*_BREAKS, ",", ":")):
            return None
        if among(word, "using", low):
            said = [one.bare.lower() for one in tokens[: -back - 1]]
            is_changed = has_verb_of_change(text, start, start, word)
            is_article = len(said) > 1 and among(word, "small", said[-1]) and not is_changed
            is_first = len(said) <= _COMMAND_MAX and not is_article
            is_used = _is_used(text, end, value, word, low, is_first=is_first)
            return (value.start, value.end) if is_used else None
        if judge(token.bare) >= names.FAIR:  # is … the password? c'est … le mot de passe
            is_told = among(word, "being", value.bare.lower())
            is_told = is_told and _is_subject(text, [], token, word, end, bracketed=False)
            return (token.start, token.end) if is_told else None
        is_said = among(word, "being", low) or token.raw in {"=", "→"} or token.raw[0] == "("
        if is_said and _is_subject(
            text, tokens[: -back - 1], value, word, end, bracketed=token.raw[0] == "("
        ):
            return value.start, value.end
    return None


def _is_subject(
    text: str, said: list[SpokenToken], value: SpokenToken, word: Word, end: int, *, bracketed: bool
) -> bool:
    """Return whether what stands before "is the password" is the password itself."""
    if not is_complete(text, end, word):
        return False
    if judge(value.bare) == names.PLAIN:
        may_be = (
            not (said or bracketed)
            and value.bare.islower()
            and "?" not in text[end : end + LINE // 2]
        )
        return may_be and can_be_password(value.bare, word, word.languages[0])
    is_drawn = judge(value.bare) >= names.FAIR and word.is_password and not bracketed
    is_named = compile_regex(CODE_NAME).fullmatch(value.bare) is not None
    return (is_drawn and not is_named) or _is_stated_value(text, value, word, adjacent=True)


def _is_used(
    text: str, end: int, value: SpokenToken, word: Word, using: str, *, is_first: bool
) -> bool:
    """Return whether what stands before "as the password" is one; a plain word is only in an order."""
    language = next(one for one in word.languages if using in one.using)
    # Whose it is may be all that follows: "comme mot de passe root". In English that is a noun of its own: "hash".
    owner = None if using in _ENGLISH_USING else language
    kind = judge(value.bare)
    if not is_complete(text, end, word, owner, is_strict=kind == names.PLAIN):
        return False
    if value.quote:
        return _is_quoted_value(value, word, "is" if is_first else _CHANGE)
    if kind == names.PLAIN:
        return is_first and using != "for" and can_be_password(value.bare, word, language)
    return kind >= names.FAIR or (kind == names.NUMBER and word.is_password)
