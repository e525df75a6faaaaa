"""Orders in other languages that hold: kept as the English ones are, and not what reports, asks or is said for once."""

from memd.distill.assertions import draft_assertions, read_sentence
from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.own_words import read_own_sentences, select_assertions
from tests.factories import make_event
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
    ("Benutze ab jetzt `ninja` statt `make`", "said:from-now-on"),
    ("Utilise `uv` à partir de maintenant", "said:from-now-on"),
    ("Ab jetzt keine Umlaute in Dateinamen", "said:from-now-on"),
    ("Nie `tei/f002r.xml` anfassen, das liegt schon beim Setzer!", "said:always"),
    ("Ne jamais toucher `dist/app.js`", "said:always"),
    ("N'utilise jamais `pip` ici", "said:always"),
    ("Zawsze uruchamiaj testy przed commitem", "said:always"),
    ("Всегда запускай тесты перед коммитом", "said:always"),
    ("Never run `git stash` in here, I lost a day that way", "said:always"),
)
ASKED_TO_KEEP = (
    ("Merk dir: die Abgabe beim Verlag ist am 15. März.", "fact", "Die Abgabe beim Verlag ist am 15. März"),
    ("Merk dir bitte, dass der Kran klemmt.", "fact", "Der Kran klemmt"),
    ("Merk dir, dass der Blasebalg undicht ist.", "fact", "Der Blasebalg undicht ist"),
    ("Souviens-toi que le four met vingt minutes à chauffer.", "fact", "Le four met vingt minutes à chauffer"),
    ("Recuerda que el servidor de pruebas se borra cada lunes.", "fact", "El servidor de pruebas se borra cada lunes"),
    ("Ricorda che il molo è chiuso d'inverno.", "fact", "Il molo è chiuso d'inverno"),
    ("Lembre-se de que o forno perde dez graus.", "fact", "O forno perde dez graus"),
    ("Onthoud dat de sluis om tien uur dichtgaat.", "fact", "De sluis om tien uur dichtgaat"),
    ("Pamiętaj, że baza testowa jest czyszczona co noc.", "fact", "Baza testowa jest czyszczona co noc"),
    ("Запомни, что тестовая база чистится каждую ночь.", "fact", "Тестовая база чистится каждую ночь"),
    ("Jede Version braucht ein Tag, merk dir das bitte.", "fact", "Jede Version braucht ein Tag"),
    ("Denk dran: benutze immer pnpm.", "instruction", "Benutze immer pnpm"),
    ("Erinnere mich daran, die Domain zu verlängern.", "task", "Die Domain zu verlängern"),
    ("Rappelle-moi de commander du papier.", "task", "Commander du papier"),
    ("Wir haben beschlossen, Karten als SVG zu speichern, weil der Plotter nichts anderes liest.", "decision", "Wir haben beschlossen, Karten als SVG zu speichern, weil der Plotter nichts anderes liest"),
    ("On a décidé de garder les photos en TIFF.", "decision", "On a décidé de garder les photos en TIFF"),
    ("Ich bevorzuge kurze Funktionen.", "preference", "Ich bevorzuge kurze Funktionen"),
    ("Je préfère les fonctions courtes.", "preference", "Je préfère les fonctions courtes"),
)  # fmt: skip
NOT_KEPT = (
    "Siempre usa demasiada memoria.",
    "Zawsze ten sam błąd.",
    "Всегда одно и то же",
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
    "Merk dir: das machen wir später.",
    "Denk dran: Tests laufen lassen.",
    "Recuerda que mañana no estoy.",
    "Souviens-toi de lancer les tests.",
    "Erinnerst du dich, dass wir Redis hatten?",
    "Wir haben beschlossen, heute früher aufzuhören.",
    "Ich bevorzuge die zweite Variante.",
    "Je préfère la deuxième.",
    "Ab jetzt keine Ausreden mehr.",
    "Always pass the flag here.",
    "Never return early here.",
)


def read(text):
    found = filter(None, map(read_sentence, select_assertions(read_own_sentences(text))))
    return [(form.rule, str(kind)) for form, kind in found]


def draft(text):
    context = EpisodeContext()
    found = draft_assertions(read_story([make_event(prompt=text)], context), context)
    return [(str(one.kind), one.title) for one in found]


@every_row(("text", "rule"), KEPT)
def test_an_order_that_holds_is_kept_in_the_language_in_which_it_is_given(text, rule):
    assert read(text) == [(rule, "instruction")]


@every_row(("text", "kind", "title"), ASKED_TO_KEEP)
def test_what_one_asks_to_remember_decides_or_prefers_is_kept_in_any_of_the_languages(
    text, kind, title
):
    assert draft(text) == [(kind, title)]


@every_row("text", NOT_KEPT)
def test_what_reports_asks_or_is_for_once_is_no_order(text):
    assert read(text) == []
