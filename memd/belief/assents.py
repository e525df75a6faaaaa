"""Words of assent and courtesy, and of steering an agent, in many languages: the one list of them. Pure."""

from memd.text import fold, words


def _read(listed: str) -> frozenset[str]:
    return frozenset(fold(word) for word in listed.split())


ASSENTS = _read(
    """yes yep yeah yup sure ok okay okey k y right correct exactly agreed agree fine good great perfect please go ahead do it sounds lgtm proceed approved absolutely definitely
    ja jo jawohl genau gut klar richtig passt mach gerne oui ouais daccord accord bien vas exact parfait sí si vale claro bueno correcto dale
    va bene certo esatto sim claro certo pode goed prima graag ja bra gärna precis godt fint tak dobrze jasne zgoda ano dobře jistě evet tamam olur
    да ага хорошо ладно верно точно давай iya ya baik setuju igen jó rendben da bine sigur kyllä joo hyvä हाँ ठीक نعم حسنا تمام ναι εντάξει"""
)
"""Words with which an answer agrees."""
COURTESIES = _read(
    """yes yep yeah yup ok okay nope thanks thank thx ty cheers please pls hi hello hey morning afternoon
    evening lgtm awesome claude bye"""
)
"""Words that address the agent and are about nothing."""
_FOREIGN_COURTESIES = _read(
    """hallo guten morgen abend danke schön vielen dank bitte mach mache weiter weitermachen ja nein genau
    gerne bonjour bonsoir salut merci beaucoup oui vas hola buenos buenas días tardes gracias por favor sí
    vale perfecto continúa sigue olá obrigado obrigada sim ciao grazie avanti привет спасибо большое
    пожалуйста продолжай да хорошо 你好 好的 继续 谢谢 谢谢你 はい ありがとう ありがとうございます
    続けて お願いします"""
)
"""The same in other languages; in English some of them have a meaning."""
_ORDERS_TO_GO_ON = _read(
    """k sure go going ahead continue proceed keep carry next night great perfect nice cool good fine looks
    sounds right correct exactly agreed try retry stop wait never mind lot much well ship"""
)
STEERING = COURTESIES | _FOREIGN_COURTESIES | _ORDERS_TO_GO_ON | _read(
    "make want need way thing things back work works think lets let"
)  # fmt: skip
"""Words that steer the agent and are about no subject."""
_AROUND = _read(
    "no y n again done do it that's that then now and with to on up so very a all all's me you for the in"
)
_SMALL_TALK = ASSENTS | COURTESIES | _FOREIGN_COURTESIES | _ORDERS_TO_GO_ON | _AROUND
_SMALL_TALK_CHARACTERS = 80


def count_telling_words(text: str) -> int:
    """Count the words of a text that neither agree nor thank nor steer the agent."""
    return sum(fold(word) not in _SMALL_TALK and not word.isdigit() for word in words(text))


def is_small_talk(text: str) -> bool:
    """Return whether a text says nothing that could be remembered: `ok`, `yes, go on`, `thanks!`."""
    return len(text.strip()) <= _SMALL_TALK_CHARACTERS and not count_telling_words(text)
