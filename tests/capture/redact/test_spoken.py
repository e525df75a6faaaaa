"""A secret told in a sentence goes, in every language that has a table, and sentences about secrets stay."""

import tomllib

from memd.capture.redact import redact
from memd.capture.redact.regexes import read_tables
from tests import redaction_corpus as corpus
from tests.tables import every_row


def read_sentences(kind):
    """Yield (text, secret) for the sentences of a kind."""
    _, _, section = (
        (corpus.DATA / "spoken.txt").read_text(encoding="utf-8").partition(f"## {kind}\n")
    )
    for line in section.partition("\n\n")[0].splitlines():
        before, _, rest = line.partition("⟦")
        secret, _, after = rest.partition("⟧")
        yield f"{before}{secret}{after}", secret


DRAWN = dict(read_sentences("drawn"))
PLAIN = dict(read_sentences("plain words"))


@every_row("text", DRAWN, ids=str)
def test_a_password_told_in_a_sentence_goes(text):
    assert DRAWN[text] not in redact(text)
    assert DRAWN[text] not in redact(f"First of all.\n{text}\nThen run the tests.")


@every_row("text", PLAIN, ids=str)
def test_a_plain_word_goes_where_nothing_but_a_password_can_stand(text):
    assert PLAIN[text] not in redact(text)


def test_what_stands_around_a_told_password_stays():
    assert redact("pw for root is sunflower49 fyi") == "pw for root is [REDACTED:password] fyi"
    assert redact("use blackbird00 as the password for the test account") == (
        "use [REDACTED:password] as the password for the test account"
    )


@every_row(
    "text",
    ['the token is "hunter22"', 'the password is "sunshine"', "the password is hunter2", "the password is 48213",
     "my seed phrase is “ability absorb acoustic banner barely blossom canyon carbon cereal dolphin donate effort”"],
)  # fmt: skip
def test_a_value_goes_in_quotes_and_in_digits_too(text):
    assert "[REDACTED:" in redact(text)


@every_row(
    "text",
    ['the client still tells agents that the token is "valid"', 'a token was "revoked", and the password is "wrong"',
     "the password policy is min12chars", "set the password to null", "use sha256 as the password hash",
     "the tests pass on python3.12",
     "forgot the password? Reset it.", "The password? Sha256.", "set the password to argon2id, not bcrypt", "the password is stale, the old one is still cached", "linux\tpass\t1m20s\thttps://x.io", "the pin is GPIO17", "`password` is required",
     "when asked for the password press enter", "what is the password", "user login, password reset", "add the password to vault",
     "use bcrypt for the password", "wpisz swoje hasło", "all tests pass, it is commit `f2635a5`", "Password field is not contained in...x9Y0",
     "curl -u user:pass https://x.io", "postgres://username:password@db/x", "pw = playwright", "KEY_TOKEN=sk-ant-...", "API_KEY=ghp_xxxxxxxx",
     "DB_PASSWORD={{ vault_db_password }}", "public key: MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="],
)  # fmt: skip
def test_what_is_only_said_of_a_secret_stays(text):
    assert redact(text) == text


@every_row(
    "text",
    ["the code for the shed door is 5521*", "gate code 7731#", "wifi key: turnip1958 second floor", "Tresorcode 3390A", "code de la cave : 52A19",
     "clave wifi tortuga1999", "codice del lucchetto: 40-12-99", "a senha é 22, a chave do cofre é Coruja-Azul-31", "de sleutel van de kluis is Hamer-Tang-61",
     "kod do bramy to 4418B", "kapı kodu 4471#", "код от сейфа 8813#", "the password is Kr0kodil!x, and the key for the nest Red-Dove-12"],
)  # fmt: skip
def test_a_code_or_a_key_goes_if_what_it_opens_is_named(text):
    (value,) = [
        word.strip(",")
        for word in text.split()
        if sum(map(str.isdigit, word)) > 1 and word.strip(",") not in {"22", "Kr0kodil!x"}
    ]
    assert value not in redact(text)


@every_row(
    "text",
    ["error code is E1042", "sort key: created-at-2", "la clé de voûte c'est parser2024.py", "der Schlüssel heißt order-id", "the code for the door is in door2024.py",
     "error code for the door service is 5003", "le code d'erreur de la porte est 5003", "le code porte sur la branche fix-2024", "alarm code E4711 means overheating",
     "the gate opens at 22:08", "clear the wifi key cache of tenant-2024", "part KH-970 for the safe", "the door key column is door_key_2024", "entry key: user:2024:42"],
)  # fmt: skip
def test_a_code_or_a_key_of_something_else_stays(text):
    assert redact(text) == text


@every_row(
    "text",
    ["password=supersecret1", "use password: Tr0ub4dor&3x now", "redis-cli AUTH hunter2x", "snyk auth 1234abcd-12",
     "kinit bob@X <<< hunter2x", "<Pass>hunter2x</Pass>", "password: topsecret2024", "x:y password=Ab9&cD8"],
)  # fmt: skip
def test_no_part_of_a_password_stays(text):
    redacted = redact(text)
    assert not [
        part for part in ("secret1", "&3x", "hunter2", "abcd", "2024", "&cD8") if part in redacted
    ]


@every_row("name", ["token1", "password2", "user_password", "dbPassword"])
def test_the_name_of_a_secret_is_no_value(name):
    assert redact(f"password = {name}") == f"password = {name}"


def test_a_seed_phrase_goes_wherever_in_a_text_it_begins():
    phrase = " ".join(corpus.MNEMONIC[:12])
    for before in range(30):
        told = f"{'qq ' * before}{phrase}{' qq' * 9}"
        assert redact(told) == told.replace(phrase, "[REDACTED:mnemonic]")


def test_words_of_seed_phrases_go_without_a_name_but_not_their_list():
    words = [word for n in range(31) if (word := corpus.MNEMONIC[n * 7 % 31]) != "ledger"]
    for joined in (
        " ".join(words[:12]),
        "\n".join(words[:24]),
        '["' + '", "'.join(words[:12]) + '"]',
    ):
        redacted = redact(f"Wiederhergestellt: {joined}")
        assert redacted.startswith("Wiederhergestellt: ")
        assert not [word for word in words[:12] if word in redacted]
    assert redact(" ".join(sorted(words))) == " ".join(sorted(words))
    prose = (
        "this that about can you all will have more than one good idea to share with the team today"
    )
    assert redact(prose) == prose


@every_row("name", ["words.toml", "patterns.toml", "programs.toml", "vocabulary.toml"])
def test_the_tables_are_toml_as_everybody_reads_it(name):
    path = corpus.DATA.parent.parent / "memd/capture/redact" / name
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    read = {
        table: {
            key: list(value) if isinstance(value, tuple) else value for key, value in row.items()
        }
        for table, row in read_tables(name).items()
    }
    assert read == tables
    assert list(read) == list(tables)


@every_row(
    "text",
    [
        "the ssh passphrase, in case you need it, is 'correct horse battery'",
        "the wifi password, by the way, is sunflower49",
        "das Geheimwort, das wir letztens hatten, war Zwiebel49",
    ],
)
def test_a_clause_between_the_word_and_its_verb_hides_no_value(text):
    assert redact(text).endswith(("[REDACTED:password]", "[REDACTED:password]'"))


@every_row(
    "text",
    [
        "the password, in case anybody asks, is in the vault",
        "the token, as I said, is expired",
        "the password, like the user name, is read from the environment",
    ],
)
def test_what_is_said_of_a_secret_behind_a_clause_stays(text):
    assert redact(text) == text
