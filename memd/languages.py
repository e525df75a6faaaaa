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

_FUNCTION_WORDS = {
    "german": "der das und ist nicht ein eine einen einem einer den dem des mit für auf von wird werden wir sich bei nach aus dass wenn wie warum wurde wurden oder nur noch auch über zum zur beim im sind haben kann muss welche welcher welches wo wohin wann wer weil durch unser unsere bevor als er es ihr sie",
    "french": "le la les des une est pas dans pour que qui avec sur nous vous sont par mais cette ces aux pourquoi comment quand où été être fait du au ne ce sans plus quel quelle quels quelles notre nos leur avant après faut il elle ils et un de",
    "spanish": "el la los las una es que por para con del como pero se está cuando porque cómo dónde qué en al más fue hay sin sobre nuestro nuestra cuál quién cuándo desde hasta antes después lo su y un de",
    "italian": "il lo gli della del dei delle che non per una con sono è nel nella alla come perché dove quando si di da più stato stata viene dal dalla ai sul prima dopo cosa quale quali nostro nostra la le un ed",
    "portuguese": "os uma não para com que dos das em por se foi são é como onde quando mas mais ao pela pelo na nas nos porque qual quais quem depois antes nosso nossa sem está o um de e do da",
    "dutch": "het een van niet voor met zijn wordt naar aan bij ook maar dat deze dit hoe waarom waar werd worden moet kan geen onze welke wanneer omdat nog wel uit over de en op te",
    "swedish": "och att det är som för med inte på av till den ett har vi från när hur varför ska vid eller efter innan vilken vilket vilka måste sedan kan utan om den en",
    "danish": "og at det er som med ikke på af til den har vi fra når hvordan hvorfor skal ved eller efter blev hvilken hvilket hvor bliver før uden et en der",
    "norwegian": "og at det er som med ikke på av til den har vi fra når hvordan hvorfor skal ved eller etter ble hvilken hvilket hvor blir før uten et en",
    "finnish": "ja on ei että se kun tai mutta jos ovat oli myös miten miksi missä mikä vain kuin ennen jälkeen kanssa ole ettei",
    "hungarian": "és az nem hogy egy van mert ha vagy csak már miért hogyan hol mikor volt kell után előtt melyik ez",
    "romanian": "și este nu în pe cu care pentru din sau dar că când unde cum după sunt fost înainte fără mai",
    "turkish": "ve bir bu için ile değil daha olarak gibi sonra neden nasıl nerede çok ama veya kadar olan önce hangi mi mı ne ki artık",
    "polish": "nie się jest że jak ale dla czy gdy oraz gdzie dlaczego kiedy przez przy został jest są być tylko po na do od ze we w z i przed który która które",
    "czech": "je se že pro jak ale při nebo proč kde kdy byl byla bylo jsou není když už na po ve ze od který která které před jen do v z k s i",
    "indonesian": "yang dan di untuk dengan tidak ini dari pada adalah karena itu saat mengapa bagaimana ke kita",
}  # fmt: skip
"""Words by which a text in Latin letters is known, and which say nothing in a question."""
_MORE_FUNCTION_WORDS = {
    "german": "die in an zu ich du uns euch mir mich dir dich ihm ihn ihnen hat hatte war waren wäre man vor gegen wieso weshalb woran worauf womit wofür wodurch wem wen wessen wieviel welchem welchen so dann da damit denn etwa mal jetzt schon immer soll sollte darf dürfen müssen können wollen würde gibt ab um diese dieser dieses diesem diesen",
    "french": "à a ai as avons avez ont on je tu y en se s l d n qu c j m t était étaient sont peut peux pouvons doit doivent faire fait combien lequel laquelle comment leurs mon ma mes ton son sa ses si non oui donc alors aussi très chez vers sous entre depuis jusqu pendant vient",
    "spanish": "a me te nos os le les mi tu sus nuestros nuestras cuáles cuánto cuánta cuántos cuántas quiénes adónde hay he ha han hemos era eran ser estar están estamos puede pueden puedo podemos debe debemos hace hacer hacemos entre ya no si sí muy este esta estos estas ese esa eso esto e u o",
    "italian": "i a e o in ma se no ci mi ti vi ne al allo alla agli alle ha hanno abbiamo ho era erano siamo può possiamo posso deve dobbiamo fare fa chi dov cos quanto quanta quanti quante questo questa questi queste nostri nostre su tra fra anche già ogni",
    "portuguese": "a o e eu nós você ele ela eles elas no à às aos num numa pelos pelas isso isto este esta esse essa seu sua nossos nossas quanto quanta quantos quantas está estão estamos era eram ser ter tem têm temos pode podem posso podemos deve devemos fazer faz fazemos já se sobre até entre também",
    "polish": "a i o u my nas nam ich go mu jej to ten ta te tego tej tym tych kto co czym czego czemu skąd dokąd ile ilu jaki jaka jakie jakiej jakim jakich którego której którym czyli można trzeba mamy był była było były też tak dla żeby bez nad pod",
    "turkish": "o şu biz siz ben kim kimi kime kaç nereye nereden neyi neyle niçin mu mü miyiz mıyız muyuz musun hem ya her şey var yok ise kadar göre ise diye ediyoruz",
}  # fmt: skip
"""More words that say nothing in a question; by them no language is known."""
_FUNCTION_WORDS_ELSEWHERE = frozenset(
    """
    и в во не что он на я с со как а то все всё она так его но да ты к у же вы за бы по только ее её мне было вот от меня еще
    ещё нет о об из ему теперь когда даже ну ли если уже или ни быть был была были будет до вас вам там потом себя ей может они
    тут где есть надо для мы тебя их чем сам без чего раз тоже себе под чтобы кто этот эта это эти того потому этого этом какой
    какая какое какие каком какую каким каких который которая которое которые почти мой тем сейчас куда откуда зачем почему
    сколько нам нас наш наша наше наши можно нельзя нужно при после перед через между над всегда никогда также такой чей
    і й та у що він з із зі як вона його але ти від якщо вже або бути був була були буде лише тільки її мені ще ні про коли
    навіть чи себе вони тут є треба ми їх чим теж також щоб хто цей ця це ці тому цього який яка яке які якій якому якою яких
    зараз куди звідки навіщо чому скільки нас під час тож бо доки завжди ніколи
    من في على إلى عن مع هل ما ماذا لماذا بماذا كيف أين متى كم أي بأي هذا هذه ذلك تلك التي الذي الذين أن إن لا لم لن قد كان
    كانت كل بعد قبل عند حين ثم أو نحن هو هي هم لنا لدينا يتم تم ليس حتى بين دون بدون غير حول منذ إذا لكي لكن ألا بل فقط
    का की के को से में पर ने है हैं था थी थे हो होता होती होते हुआ हुई हुए और या कि जो यह वह ये वे इस उस इन उन हम हमें हमारा
    हमारे हमारी आप मैं क्या क्यों कब कहाँ कहां कैसे कौन किस किसे किससे किसने कितना कितने कितनी किन भी ही तो न नहीं मत लिए तक साथ
    बाद पहले अगर तब अब जब एक कर करना करते करता करती करें किया रहा रहे रही गया गई गए जाता जाती जाते जाए सकता सकते सकती चाहिए वाला
    वाले वाली सा सी
    왜 어디 어디에 어디서 어디에서 어디로 어디야 어떻게 어떤 어느 언제 언제야 누가 누구 무엇 무엇을 무엇이 무엇으로 뭐 뭐야 뭘 무슨 얼마
    얼마나 얼마야 몇 우리 우리는 우리가 이 그 저 것 거 거야 게 수 때 및 또는 그리고 하지만 있어 있나 있나요 있지 없어 해 해야 하나
    하나요 하지 했어 했지 되나 되나요 됐어 됐지 돼 되는 하는 안 못 더 좀 잘
    """.split()  # noqa: SIM905  # a page of quotes reads worse
)
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
_LETTERS = {
    "german": "äöüß", "french": "éèêàçùîôûœë", "spanish": "ñáéíóú¿", "italian": "èàùòì", "portuguese": "ãõçáéíóúâê",
    "swedish": "åäö", "danish": "åøæ", "norwegian": "åøæ", "finnish": "äö", "hungarian": "őűáéíóúöü",
    "romanian": "țșăâî", "turkish": "ğışİçöü", "polish": "łąęśćńóżź", "czech": "řěščžýáíéůúňťď",
}  # fmt: skip
LATIN_LANGUAGES = tuple(_FUNCTION_WORDS)
_ENGLISH = frozenset(
    """the and of is are was were be been this that it with for from not which when where why how what did
    does do we you they has have had should would could can will only because before after into our there
    their these if then than but or its""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_SILENT_WORDS = {
    name: frozenset(f"{text} {_MORE_FUNCTION_WORDS.get(name, '')}".split())
    for name, text in _FUNCTION_WORDS.items()
}
_SPLIT_WORDS = {name: frozenset(text.split()) for name, text in _FUNCTION_WORDS.items()}
_AMBIGUOUS = frozenset(
    """com on at an in to so no me as a i do man all per pro con van den die war was hat us up my he pas
    fare sin es si more pre par dos ser som med ten ve mi over pop se les le la de en el il ne ja je po
    na za des un os ai est det comment ha non ke kun vain ki""".split()  # noqa: SIM905  # as above
)
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
    """Whether a text has characters whose words are not found at spaces: Han, kana, Hangul, Thai."""
    return _UNSPACED_RUN.search(text) is not None


def split_pairs(run: str) -> tuple[str, ...]:
    """The pairs of neighbouring characters in a run of such a script; one character stays as it is."""
    if len(run) <= 2:  # noqa: PLR2004  # it is a pair itself
        return (run,)
    return tuple(dict.fromkeys(run[i : i + 2] for i in range(len(run) - 1)))


def is_particle(run: str) -> bool:
    """Whether a run is one hiragana, which says nothing beside other runs."""
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
    """Whether there are function words or letters that English has not, or many of the function words of a language."""
    found = set(words)
    telling = len(_TELLING_WORDS & found)
    if telling < _TELLING_MIN:
        telling += sum(not _LETTER_LANGUAGES.keys().isdisjoint(word) for word in words)
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
    """Whether a question of these words in lower case may be English: it is in letters of English, with no sign of another language."""
    if not all(word.isascii() for word in words) or detect_question_languages(words):
        return False
    asked = set(words)
    return bool(asked & (_ENGLISH - _AMBIGUOUS)) or not any(
        asked & own for own in _SPLIT_WORDS.values()
    )


def may_share_language(question: str, text: str) -> bool:
    """Whether nothing tells that a text is in another language than a question: then forms of words may be alike by chance."""
    asked = detect_question_languages(question.lower().split())
    said = text.lower().split()
    told = detect_text_languages(said)
    if not asked:
        return True
    return bool(set(asked) & set(told)) if told else not (_ENGLISH - _AMBIGUOUS) & set(said)


def _score_languages(words: Iterable[str]) -> dict[str, float]:
    """How many different function words, and letters, of each language there are, each shared among its languages."""
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
    """Those with nearly the best score; none if English has at least that."""
    best, english = max(scores.values(), default=0.0), len(_ENGLISH & set(words))
    if best < _QUESTION_MIN or best <= english:
        return ()
    near = sorted((-score, name) for name, score in scores.items() if score >= _NEAR_SHARE * best)
    return tuple(name for _, name in near[:_LANGUAGES_MAX])


def is_function_word(word: str, languages: Iterable[str]) -> bool:
    """Whether a word in lower case says nothing in one of these languages, or in that of its script."""
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
