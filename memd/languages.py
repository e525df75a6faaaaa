"""Scripts of characters, languages of texts, and the stem of a word in its language. Pure.

Where a script tells the language, every word has that language's stem. Texts in Latin letters are told apart by
their function words and letters; without enough of them a text counts as English.
"""

import re
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import Stemmer

from memd.caches import cached
from memd.patterns import Table

_MARK_RANGES = ((0x300, 0x1B00), (0x1DC0, 0x1E00), (0x20D0, 0x2100), (0x3099, 0x309B), (0xA8E0, 0xA900), (0xFE20, 0xFE30))  # fmt: skip
MARKS = (
    "".join(
        chr(code)
        for first, stop in _MARK_RANGES
        for code in range(first, stop)
        if unicodedata.category(chr(code)).startswith("M")
    )
    + "\u200c\u200d"
)
"""Signs that belong to the letter before them, and joiners between letters, for a set in a pattern."""

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a0-\u30ff\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff"
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
UNSPACED = HAN + _HIRAGANA + _KATAKANA + _SOUTH_EAST
"""Han, kana, Thai, Lao, Burmese and Khmer: no spaces between words."""
_ALPHABETS = {
    "russian": "\u0400-\u052f\u1c80-\u1c8f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff",
    "hindi": "\u0900-\u097f",
    "armenian": "\u0530-\u058f",
    "tamil": "\u0b80-\u0bff",
    "": "\u0590-\u05ff",
}
"""Language of the stemmer for an alphabet → its letters; Hebrew has none."""
_SCRIPTS = (HAN, _HIRAGANA, _KATAKANA, HANGUL, _SOUTH_EAST, *_ALPHABETS.values())
_RUN = re.compile("|".join([*(f"[{one}]+" for one in _SCRIPTS), f"[^{''.join(_SCRIPTS)}]+"]))
_UNSPACED_RUN = re.compile(f"[{UNSPACED}{HANGUL}]")
_ALPHABET_OF = tuple((name, re.compile(f"[{letters}]")) for name, letters in _ALPHABETS.items())
_HIRAGANA_LETTER = re.compile(f"[{_HIRAGANA}]")
_WORDS_CACHED = 16_384

_TABLE = Table("languages.toml")
_FUNCTION_WORDS: Mapping[str, str] = _TABLE.rows["known"]
"""Words by which a text in Latin letters is known, and which say nothing in a question."""
_MORE_FUNCTION_WORDS: Mapping[str, str] = _TABLE.rows["more"]
"""More words that say nothing in a question; by them no language is known."""
_FUNCTION_WORDS_ELSEWHERE = _TABLE.list_words("other_scripts")
"""The same of Russian, Ukrainian, Arabic, Hindi and Korean, whose scripts tell them."""
_FUNCTION_PIECES = re.compile(
    unicodedata.normalize(
        "NFKC",
        "为什么|什么时候|什么|为何|怎么样|怎么|怎样|如何|哪里|哪儿|哪些|哪个|哪|多少|多久|谁|我们|你们|他们|是不是|能不能|可以|应该|还是"
        "|没有|的话|[吗呢吧么的了在是和与把被对从里中上时会能该得要几有给这那就都也还不用何誰幾]|之后|之前|以后"
        "|ทำไม|อย่างไร|ยังไง|เมื่อไร|เมื่อไหร่|ที่ไหน|ตรงไหน|อะไร|ใคร|เท่าไร|เท่าไหร่|แค่ไหน|ไหม|หรือไม่|หรือเปล่า|หรือยัง|พวกเรา|เรา"
        "|เพราะ|อย่าง|ต้อง|ควร|ของ|ที่|ใน|ได้|ให้|ถึง|ถูก|เป็น|คือ|จะ|และ|หรือ|ไม่|มี|ไว้|แล้ว|ด้วย|โดย|กับ|แต่|จาก|บน|ตอน|กี่|ไหน"
        "|บ้าง|การ|ความ|อยาก",
    )
)
"""The same where words are not told by spaces: question words, particles, auxiliaries of Chinese, Japanese and Thai."""
_LETTERS: Mapping[str, str] = _TABLE.rows["letters"]
LATIN_LANGUAGES = tuple(_FUNCTION_WORDS)
_ENGLISH = _TABLE.list_words("english")
_SILENT_WORDS = {
    name: frozenset(f"{text} {_MORE_FUNCTION_WORDS.get(name, '')}".split())
    for name, text in _FUNCTION_WORDS.items()
}
_SPLIT_WORDS = {name: frozenset(text.split()) for name, text in _FUNCTION_WORDS.items()}
_AMBIGUOUS = _TABLE.list_words("ambiguous")
"""Function words that code, addresses, names or English use, too: alone they tell nothing."""
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(name for name, own in _SPLIT_WORDS.items() if word in own)
    for word in frozenset().union(*_SPLIT_WORDS.values()) - _ENGLISH
}
_TELLING_WORDS = {
    word for word in _LANGUAGES_OF.keys() - _AMBIGUOUS if len(word) > 1 or not word.isascii()
}
_LETTER_LANGUAGES = {
    letter: tuple(name for name, own in _LETTERS.items() if letter in own)
    for letter in set("".join(_LETTERS.values()))
}
_LETTER_SHARE = 0.5
"""What a letter that some languages have counts, in function words."""
_TEXT_MIN, _QUESTION_MIN = 1.0, 0.3
_TEXT_SHARE_MIN = 0.08
"""A text's different function words, as a share of all its words: of prose they are a quarter or more."""
_TELLING_MIN, _WORDS_FEW = 2, 8
"""Different function words that tell a language; of a text of so few words, one."""
_FUNCTION_WORDS_MIN, _FUNCTION_SHARE_MIN = 3, 0.2
"""Different function words of one language, ambiguous ones too, and their share of all words, that tell it."""
_NEAR_SHARE = 0.6
"""A language whose evidence is at least this share of the best one's may be the language, too."""
_LANGUAGES_MAX = 3


class _Stemmers(threading.local):
    """A stemmer per thread and language: a stemmer holds the word it works on."""

    def __init__(self) -> None:
        self._made: dict[str, Stemmer.Stemmer] = {}

    def stem(self, word: str, language: str) -> str:
        if language not in self._made:
            self._made[language] = Stemmer.Stemmer(language, 0)  # `stem_in` keeps what it made
        return str(self._made[language].stemWord(word))


_stemmers = _Stemmers()


@cached(_WORDS_CACHED)
def stem_in(language: str, word: str) -> str:
    """The Snowball stem of one word in lower case, diacritics and all; the word itself without a language."""
    return _stemmers.stem(unicodedata.normalize("NFC", word), language) if language else word


def split_scripts(token: str) -> list[str]:
    """The runs of one script in a word: `我们使用Redis处理` has three."""
    return _RUN.findall(token)


def has_unspaced(text: str) -> bool:
    """Return whether a text has characters whose words are not found at spaces: Han, kana, Hangul, Thai."""
    return not text.isascii() and _UNSPACED_RUN.search(text) is not None


def split_pairs(run: str) -> tuple[str, ...]:
    """The pairs of neighbouring characters in a run of such a script; one character stays as it is."""
    if len(run) <= 2:  # noqa: PLR2004  # it is a pair itself
        return (run,)
    return tuple(dict.fromkeys(run[i : i + 2] for i in range(len(run) - 1)))


def is_particle(run: str) -> bool:
    """Return whether a run is one hiragana, which says nothing beside other runs."""
    return len(run) == 1 and _HIRAGANA_LETTER.match(run) is not None


def language_of_alphabet(word: str) -> str | None:
    """The language whose stemmer an alphabet has, empty for none; None for Latin letters."""
    return next((name for name, letter in _ALPHABET_OF if letter.search(word)), None)


def detect_text_languages(words: Sequence[str]) -> tuple[str, ...]:
    """The languages, the likeliest first, that a text of these words in lower case may be in; none if it is English."""
    if not _has_telling_words(words):
        return ()
    scores = _score_languages(words)
    best = max(scores.values(), default=0.0)
    if best < max(_TEXT_MIN, _TEXT_SHARE_MIN * len(words)):
        return ()
    return _choose_languages(scores, words)


def _has_telling_words(words: Sequence[str]) -> bool:
    """Return whether there are function words or letters that English has not, or many of the function words of a language."""
    found = set(words)
    telling = len(_TELLING_WORDS & found)
    if telling < _TELLING_MIN:
        others = [word for word in words if not word.isascii()]
        telling += sum(not _LETTER_LANGUAGES.keys().isdisjoint(word) for word in others)
    if telling >= (_TELLING_MIN if len(words) > _WORDS_FEW else 1):
        return True
    function_words = _LANGUAGES_OF.keys() & found
    least = max(_FUNCTION_WORDS_MIN, _FUNCTION_SHARE_MIN * len(words))
    if len(function_words) < least:
        return False
    return any(len(own & function_words) >= least for own in _SPLIT_WORDS.values())


def detect_question_languages(words: Sequence[str]) -> tuple[str, ...]:
    """The same of a question, which is short: one word, or one letter, may tell its language."""
    if all(word.isascii() for word in words) and not _TELLING_WORDS & set(words):
        return ()
    return _choose_languages(_score_languages(words), set(words) - _AMBIGUOUS)


def may_be_english(words: Sequence[str]) -> bool:
    """Return whether a question of these words in lower case may be English: in its letters, with no sign of another language."""
    if not all(word.isascii() for word in words) or detect_question_languages(words):
        return False
    asked = set(words)
    return bool(asked & (_ENGLISH - _AMBIGUOUS)) or not any(
        asked & own for own in _SPLIT_WORDS.values()
    )


def may_share_language(asked: Sequence[str], text: str) -> bool:
    """Return whether nothing tells that a text is in none of a question's languages: then forms of words may be alike by chance."""
    if not asked:
        return True
    said = text.lower().split()
    told = detect_text_languages(said)
    return bool(set(asked) & set(told)) if told else not (_ENGLISH - _AMBIGUOUS) & set(said)


def _score_languages(words: Iterable[str]) -> dict[str, float]:
    """Count the different function words, and letters, of each language, each shared among its languages."""
    scores: defaultdict[str, float] = defaultdict(float)
    for word in dict.fromkeys(words):
        for name in (names := _LANGUAGES_OF.get(word, ())):
            scores[name] += 1 / len(names)
        if not word.isascii():
            for letter in set(word) & _LETTER_LANGUAGES.keys():
                for name in (names := _LETTER_LANGUAGES[letter]):
                    scores[name] += _LETTER_SHARE / len(names)
    return scores


def _choose_languages(scores: Mapping[str, float], words: Iterable[str]) -> tuple[str, ...]:
    """Languages with nearly the best score; none if English has at least that."""
    best, english = max(scores.values(), default=0.0), len(_ENGLISH & set(words))
    if best < _QUESTION_MIN or best <= english:
        return ()
    near = sorted((-score, name) for name, score in scores.items() if score >= _NEAR_SHARE * best)
    return tuple(name for _, name in near[:_LANGUAGES_MAX])


def is_function_word(word: str, languages: Iterable[str]) -> bool:
    """Return whether a word in lower case says nothing in one of these languages, or in that of its script."""
    return word in _FUNCTION_WORDS_ELSEWHERE or any(
        word in _SILENT_WORDS[name] for name in languages
    )


def find_content_places(run: str) -> list[int]:
    """The places of the characters of an unspaced run that belong to no function word, as far as its script tells."""
    places = set(range(len(run)))
    for piece in _FUNCTION_PIECES.finditer(run):
        places -= set(range(*piece.span()))
    return [i for i in sorted(places) if not _HIRAGANA_LETTER.match(run[i])]


def language_mark(language: str) -> str:
    """The term of every passage in a language other than English; no word has it."""
    return f"lang:{language}"
