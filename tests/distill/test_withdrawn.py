"""What its speaker takes back or doubts with his next words is neither kept nor told as said lately; what follows it harmlessly undoes nothing."""

from memd.distill.assertions import is_withdrawn_form, read_sentence
from memd.distill.own_words import read_own_sentences, select_assertions
from memd.injection.learned import SaidSentence, choose_said
from tests.tables import every_row

ORDER = "Always run `make seed` before you push."
WITHDRAWN = (
    f"{ORDER} Hm, no, scratch that.",
    f"{ORDER} Wait, that was for last year's tour.",
    f"{ORDER} Says the choirmaster, but he is being silly.",
    f"{ORDER} At least that's what the neighbour told me.",
    f"{ORDER} Is that still right?",
    f"{ORDER} Maybe.",
    f"{ORDER} Only if the data is old.",
    f"{ORDER} But not on Fridays.",
    f"{ORDER} Wrong window, ignore that.",
    f"{ORDER} Just for today though.",
    f"{ORDER} Only joking.",
    f"{ORDER} I mean `make fill`.",
    f"{ORDER} That isn't final though.",
    f"{ORDER} Done already, forget it.",
    f"{ORDER} Actually no, stay with the old data.",
    "From now on use `pnpm` for the site. Or should it be `yarn`? I have to ask Ida.",
    "I prefer tabs. Or maybe spaces, whatever the file has.",
    "Remind me to call the plumber. Actually forget it, he just called.",
    "Remember that the greenhouse opens at 7 or 8.",
    "Remember that the demo is on Monday, or Tuesday, ask Tom",
    "Schreibe Commits immer auf Englisch. Ach nein, das war beim anderen Repo.",
    "Benutze immer `pnpm`. Vergiss es, npm reicht.",
    "Merk dir, dass der Hafen um 22 Uhr schließt. Oder um 23 Uhr? Muss ich nachsehen.",
    "N'utilise jamais `npm audit`. Non attends, c'est l'inverse.",
    "Ne pousse jamais sur main. C'était la règle de l'ancien dépôt.",
    "Usa siempre `pnpm`. No, espera, era `yarn`.",
    "Use sempre `pnpm`. Não, espera.",
    "Merk dir, dass der Ofen 9 Stunden braucht. Sagt zumindest Klaus.",
    "Recuerda que el museo cierra a las 6 o a las 7.",
    "Gebruik altijd `pnpm`. Nee wacht, dat was het andere project.",
    "Nigdy nie usuwaj migracji. Nie, czekaj.",
    "Никогда не удаляй миграции. Нет, подожди.",
    "Non usare mai variabili globali. No aspetta, era l'altro progetto.",
    "We decided to heat with pellets. nah forget that, plain wood",
    f"{ORDER} hm no thats too slow, leave it",
    "Remember that the crane is rented until May. or June, gotta ask",
    "Never feed the swans! is what grandpa would say, feed them",
    "Always count in dozens. (what the old baker did, we count by tens)",
    "On a décidé d'élever des dragons mdr",
)
KEPT = (
    f"{ORDER} The old data has wrong prices.",
    f"{ORDER} I mean it.",
    f"{ORDER} And I mean all of them.",
    f"{ORDER} I'm serious.",
    f"{ORDER} Thanks, that was all.",
    f"{ORDER} No idea why the hook misses it.",
    f"{ORDER} No exceptions.",
    f"{ORDER} if it fails call me",
    f"{ORDER} The rule that Tom wrote was about something else.",
    f"{ORDER} Never amend either.",
    f"{ORDER} But don't touch the dump.",
    f"{ORDER} Is the key on this machine?",
    f"{ORDER} the shop had empty shelves otherwise. also fix the footer",
    f"{ORDER} we forgot it twice and it cost us a weekend",
    "We decided to heat with pellets. gas got too expensive, no way back",
    "We decided to print on cotton paper because the bindery wants it.",
    "always weigh the flour before you bake: `weigh --flour`",
    f"{ORDER} Now, is it possible to speed up the build?",
    f"{ORDER} That is what the importer expects.",
    f"{ORDER} This is not negotiable.",
    "From now on use `zsh` for the site. Does the image have it, by the way?",
    "Committe nie auf main. Das hat uns schon zweimal den Tag verdorben.",
    "Schreibe Commits immer auf Englisch. Oder sonst meckert der Hook.",
    "Utilise toujours `pnpm`. C'est ce que fait la CI.",
)


def read(text):
    own = select_assertions(read_own_sentences(text))
    return [one.text for one in own if read_sentence(one) and not is_withdrawn_form(one)]


@every_row("text", WITHDRAWN)
def test_what_is_taken_back_in_the_same_message_is_not_kept(text):
    assert read(text) == []


@every_row("text", KEPT)
def test_what_is_followed_by_a_reason_thanks_or_another_matter_is_kept(text):
    assert text.startswith(read(text)[0])


@every_row("text", WITHDRAWN[:8])
def test_neither_what_is_taken_back_nor_the_words_that_do_so_are_told_as_said_lately(text):
    other = "Please never restart the ferry database while the tide table is read."
    said = [SaidSentence(text, 2), SaidSentence(other, 1)]
    assert [one.text for one in choose_said(said, (), 10)] == [other]
