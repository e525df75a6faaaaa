"""Whether a statement affirms or denies, and under which condition, by the function words of its language. Pure.

These are closed classes of words (negations, conditions, yes), given for each language; nothing here lists what
people may mean.
"""

import itertools
import re
from collections.abc import Iterator

from memd.text import content_stems, fold, is_stop_word, stem, words

_NEGATIONS = {
    "english": "not no never none neither nor without cannot nobody nothing nowhere dont doesnt didnt cant wont isnt arent wasnt"
    " werent shouldnt couldnt wouldnt mustnt aint avoid avoids avoiding instead rather forbidden forbids except unlike stop drop"
    " skip skips refuse refuses reject rejects rejected disallow disallowed ban bans banned only nope nah remove removed",
    "german": "nicht nein kein keine keinen keinem keiner keines nie niemals nichts ohne statt anstatt weder nur verboten",
    "french": "ne pas non jamais aucun aucune sans rien ni interdit lieu seulement uniquement",
    "spanish": "no nunca jamás ningún ninguna ninguno sin nada tampoco ni solo sólo vez prohibido",
    "italian": "non no mai nessun nessuna nessuno senza niente nulla né solo invece vietato",
    "portuguese": "não nunca jamais nenhum nenhuma sem nada nem só somente apenas vez proibido",
    "dutch": "niet nee geen nooit niets zonder noch alleen plaats verboden",
    "swedish": "inte nej ingen inget inga aldrig utan istället bara endast förbjudet",
    "danish": "ikke nej ingen intet aldrig uden kun stedet",
    "norwegian": "ikke nei ingen intet aldri uten kun stedet",
    "polish": "nie nigdy żaden żadna żadne bez nic ani tylko zamiast",
    "czech": "ne nikdy žádný žádná žádné bez nic ani jen místo není nechci nepoužívej",
    "turkish": "değil hayır asla yok hiç hiçbir olmadan yerine sadece",
    "russian": "не нет никогда ни без ничего нельзя вместо только никаких",
    "indonesian": "tidak bukan jangan tanpa belum hanya",
    "hungarian": "nem ne soha sem nincs nélkül helyett csak",
    "romanian": "nu niciodată fără niciun nicio nimic doar",
    "finnish": "ei älä älkää koskaan ilman eikä vain sijaan",
    "hindi": "नहीं मत कभी बिना",
    "arabic": "لا ليس لن لم بدون غير",
    "hebrew": "לא אל אין בלי אסור רק",
    "persian": "نه نیست نباید نکن نکنید بدون هرگز",
    "vietnamese": "không đừng chưa chớ",
    "ukrainian": "не ні ніколи без нічого тільки лише",
    "bulgarian": "не никога без само вместо",
    "croatian": "ne nije nemoj nikad nikada bez samo umjesto",
    "slovak": "nie nikdy žiadny bez ani",
    "greek": "δεν μην όχι ποτέ χωρίς μόνο",
}  # fmt: skip
_ACCENTED = frozenset({"só"})
"""Without its accent it is an English word that denies nothing."""
_NEGATION_WORDS = frozenset(
    fold(word) for text in _NEGATIONS.values() for word in text.split() if word not in _ACCENTED
)
_NEGATION_STEMS = frozenset(map(stem, _NEGATIONS["english"].split()))
_NEGATION_SIGNS = re.compile("不|别|別|没|沒|勿|禁|非|无|無|未|ない|ません|ず|禁止|않|안 |말고|말아|마세요|지 마|없|금지|ไม่|อย่า|ห้าม|ไม่ต้อง")  # fmt: skip
"""Negation in languages that do not write it as a word of its own."""
_CONDITIONS = frozenset(
    fold(word)
    for word in """if unless until till except wenn falls außer bis sofern solange si sauf jusqu sinon salvo hasta finché tranne se exceto até als
    tenzij totdat om tills förrän hvis indtil medmindre jeśli chyba dopóki pokud dokud eğer sürece если пока кроме jika kecuali sampai
    ha hacsak dacă decât jos ellei kunnes अगर जब إذا إلا حتى αν εκτός μέχρι""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_ASSENTS = frozenset(
    fold(word)
    for word in """yes yep yeah yup sure ok okay okey k y right correct exactly agreed agree fine good great perfect please go ahead do it sounds lgtm proceed approved absolutely definitely
    ja jo jawohl genau gut klar richtig passt mach gerne oui ouais daccord accord bien vas exact parfait sí si vale claro bueno correcto dale
    va bene certo esatto sim claro certo pode goed prima graag ja bra gärna precis godt fint tak dobrze jasne zgoda ano dobře jistě evet tamam olur
    да ага хорошо ладно верно точно давай iya ya baik setuju igen jó rendben da bine sigur kyllä joo hyvä हाँ ठीक نعم حسنا تمام ναι εντάξει""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_ASSENT_SIGNS = re.compile("^(?:是|好|对|對|可以|行|同意|没问题|沒問題|はい|うん|了解|お願い|それで|いい|オーケー|네|예|응|좋|그래|ใช่|ได้|ตกลง|โอเค)")  # fmt: skip
_ASSENT_WORDS_MAX = 8
_CLAUSE_BREAK = re.compile(r"[,;:—–()\n。、，；：]|\s-\s|[.!?！？](?=\s|$)")
_NEAR_WORDS = 4
"""Words before a quoted part of a sentence in which a negation denies it."""
_AGREED_SAID_MIN, _AGREED_TOLD_MIN = 0.7, 0.6
"""Shares of the content words of both sides that make two statements agree but for their negations."""
_WINDOW_STEMS = 3
"""Content words behind a negation that it surely denies."""


def is_negation(word: str) -> bool:
    """Whether a raw word denies, excludes or replaces."""
    folded = fold(word).replace("'", "").replace("’", "")
    is_word = folded in _NEGATION_WORDS or word.lower() in _ACCENTED
    return is_word or stem(folded) in _NEGATION_STEMS


def has_negation(text: str) -> bool:
    """Whether a text has any word or sign that denies."""
    return any(map(is_negation, words(text))) or _NEGATION_SIGNS.search(text) is not None


def negation_signs(text: str) -> list[str]:
    """The negations of a text in languages that do not write them as words."""
    return _NEGATION_SIGNS.findall(text)


def has_condition(text: str) -> bool:
    """Whether a text has a word that begins a condition."""
    return any(fold(word) in _CONDITIONS for word in words(text))


def list_conditions(sentence: str) -> Iterator[frozenset[str]]:
    """Yield the content stems of each clause of a sentence that begins with a condition."""
    for clause in _CLAUSE_BREAK.split(sentence):
        tokens = words(clause)
        starts = [at for at, token in enumerate(tokens) if fold(token) in _CONDITIONS]
        for start, end in itertools.pairwise([*starts, len(tokens)]):
            if found := _content(tokens[start + 1 : end]):
                yield found


def limits(before: str, after: str) -> str:
    """The part of a sentence right before or after a quoted part of it that turns or limits it; empty if none does."""
    ahead, behind = words(before)[-_NEAR_WORDS:], words(after)[:_NEAR_WORDS]
    clauses = _CLAUSE_BREAK.split(before)
    if any(map(is_negation, words(clauses[-1])[-_NEAR_WORDS:])):
        return " ".join(ahead)
    if len(clauses) > 1 and not clauses[-1].strip() and _begins_condition(clauses[-2]):
        return clauses[-2]
    if _begins_condition(clauses[-1]):
        return clauses[-1]
    if any(fold(word) in _CONDITIONS for word in behind[:2]):
        return after
    return after if behind[:1] and _NEGATION_SIGNS.match(after.strip()) else ""


def retracts(following: str) -> str:
    """The sentence that follows another, if it only takes that back or says when it holds; empty if it does not.

    It takes back what it denies without naming it (“no”, “don't”, “never do that”), and limits what it names only a
    condition of (“but only if …”): neither is a statement of its own.
    """
    clauses = [clause for clause in _CLAUSE_BREAK.split(following) if words(clause)]
    if any(_denies_nothing_named(clause) for clause in clauses):
        return following
    begins = [fold(word) for word in words(following)[:1]]
    if begins and begins[0] in _ADVERSATIVES and has_negation(following):
        return following
    first = [fold(word) for word in words(clauses[0])[:_FIRST_WORDS]] if len(clauses) == 1 else []
    return following if any(word in _CONDITIONS for word in first) else ""


_FIRST_WORDS = 3
_ADVERSATIVES = frozenset(
    [
        "but",
        "however",
        "aber",
        "doch",
        "mais",
        "pero",
        "ma",
        "mas",
        "maar",
        "ale",
        "но",
        "але",
        "αλλά",
        "ama",
        "tapi",
        "dar",
        "mutta",
        "लेकिन",
        "لكن",
        "אבל",
        "ولی",
        "nhưng",
    ]
)  # a page of quotes reads worse


def _denies_nothing_named(clause: str) -> bool:
    tokens = words(clause)
    named = (token for token in tokens if not is_negation(token) and not is_stop_word(token))
    return any(map(is_negation, tokens)) and not any(named)


def _begins_condition(clause: str) -> bool:
    return any(fold(word) in _CONDITIONS for word in words(clause)[:2])


def begins_with_denial(text: str) -> bool:
    """Whether an answer begins with a negation: “no, …”, “don't”."""
    tokens = words(text)
    return bool(tokens) and (is_negation(tokens[0]) or _NEGATION_SIGNS.match(tokens[0]) is not None)


def is_assent(text: str) -> bool:
    """Whether a short answer only agrees: it begins with a word of assent and denies nothing."""
    tokens = words(text)
    if _ASSENT_SIGNS.match(text.strip()):
        return not _NEGATION_SIGNS.search(text.strip()[2:])
    if not tokens or len(tokens) > _ASSENT_WORDS_MAX:
        return False
    first = fold(tokens[0]).replace("'", "").replace("’", "")
    return first in _ASSENTS and not any(map(is_negation, tokens))


def _content(tokens: list[str]) -> frozenset[str]:
    bare = " ".join(token for token in tokens if not is_negation(token))
    return frozenset(content_stems(bare)) if bare else frozenset()


def _denied_windows(text: str) -> Iterator[frozenset[str]]:
    """Yield the content stems that follow each negation in its clause, and those before a sign of one."""
    for clause in _CLAUSE_BREAK.split(text):
        tokens = words(clause)
        for at, token in enumerate(tokens):
            if is_negation(token):
                ahead = [t for t in tokens[at + 1 :] if content_stems(t)]
                yield _content(ahead[:_WINDOW_STEMS])
        if _NEGATION_SIGNS.search(clause) and not any(map(is_negation, tokens)):
            yield _content(tokens)


def _list_contrasts(text: str) -> Iterator[frozenset[str]]:
    """Yield the content stems of each clause that is nothing but a denial: “not to staging”, “never npm”."""
    for clause in _CLAUSE_BREAK.split(text):
        tokens = words(clause)
        if any(map(is_negation, tokens[:1])) and (named := _content(tokens)):
            yield named


def is_turned(said: str, told: str) -> bool:
    """Whether `told` affirms what `said` denies, or denies what it affirms, where both speak of the same."""
    denied = [window for window in _denied_windows(said) if window]
    about, mine = _content(words(told)), _content(words(said))
    if denied:
        if has_negation(told):
            # “A, not B” for “B, not A”: each affirms what the other denies.
            theirs = [window for window in _denied_windows(told) if window]
            affirmed = about.difference(*theirs), mine.difference(*denied)
            return any(one <= affirmed[0] for one in _list_contrasts(said)) and any(
                one <= affirmed[1] for one in _list_contrasts(told)
            )
        return any(len(one & about) * 2 >= len(one) for one in denied)
    shared = len(about & mine)
    agrees = shared >= _AGREED_SAID_MIN * len(mine) and shared >= _AGREED_TOLD_MIN * len(about)
    return agrees and any(window and window <= mine for window in _denied_windows(told))
