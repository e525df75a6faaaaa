"""Orders in other languages that hold: kept as the English ones are, and not what reports, asks or is said for once."""

from memd.distill.assertions import read_sentence
from memd.distill.own_words import read_own_sentences, select_assertions
from tests.tables import every_row

KEPT = (
    ("Lösche nie Migrationen", "said:always"),
    ("Bitte benenne Zweige immer nach dem Ticket", "said:always"),
    ("Verwenden Sie immer absolute Pfade", "said:always"),
    ("Nie direkt auf main committen", "said:always"),
    ("Ab jetzt Commits auf Englisch schreiben", "said:from-now-on"),
    ("Ajoute toujours un test de régression", "said:always"),
    ("N'installe jamais de paquets globaux", "said:always"),
    ("Désormais, écris les commentaires en anglais", "said:from-now-on"),
    ("Escribe siempre los comentarios en inglés", "said:always"),
    ("Nunca subas claves al repositorio", "said:always"),
    ("Non usare mai variabili globali", "said:always"),
    ("Use sempre aspas duplas", "said:always"),
    ("Schrijf altijd eerst een test", "said:always"),
    ("Nigdy nie usuwaj migracji", "said:always"),
    ("Никогда не удаляй миграции", "said:always"),
)
NOT_KEPT = (
    "Nutze immer noch die alte Version",
    "Benutze ich immer die falsche Datei?",
    "Teste hier immer zweimal",
    "Verwende für diesen Test immer die Attrappe",
    "Die Suite läuft nie durch",
    "Bekomme immer denselben Fehler",
    "Immer das gleiche Problem mit den Tests",
    "Er sagte: benutze immer npm",
    "Ça n'écrit jamais rien",
    "J'utilise toujours la version 3",
    "Siempre falla la misma prueba",
    "Wenn die Tests rot sind, committe nie",
    "Schreib eine Funktion, die nie null liefert, und teste sie",
)


def read(text):
    found = filter(None, map(read_sentence, select_assertions(read_own_sentences(text))))
    return [(form.rule, str(kind)) for form, kind in found]


@every_row(("text", "rule"), KEPT)
def test_an_order_that_holds_is_kept_in_the_language_in_which_it_is_given(text, rule):
    assert read(text) == [(rule, "instruction")]


@every_row("text", NOT_KEPT)
def test_what_reports_asks_or_is_for_once_is_no_order(text):
    assert read(text) == []
