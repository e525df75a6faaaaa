"""Which words `memd forget --query` finds in a text, and which it does not."""

from memd.consolidate.wanted_words import parse_wanted_words
from tests.tables import every_row

FOUND = [
    ("art", "the art of war"),
    ("ART", "Art, in short"),
    ("art", "state_of_art is kept"),
    ("art", "getArt returns it"),
    ("token", "decodeToken and decode_token"),
    ("decode_token", "call decode_token()"),
    ("http", "HTTPServer2 listens"),
    ("server", "HTTPServer2 listens"),
    ("miller", "Miller's proposal"),
    ("miller", "Miller’s proposal"),
    ("o'brien", "ask O’Brien"),
    ("brien", "ask O'Brien"),
    ("count=1", "with count=1, it works"),
    ("--no-cache", "docker build --no-cache ."),
    ("C++", "we use C++ here"),
    ("src/a/b.ts", "see src/a/b.ts:12"),
    ("b.ts", "see src/a/b.ts:12"),
    ("ghp_aB3dE5", "the token ghp_aB3dE5 leaked"),
    ("1.5.2", "version 1.5.2 is out"),
    ("-5", "set it to -5"),
    ('"party server"', "restart the party server"),
    ('"party server"', "the Party\n  server is up"),
    ('"party server" restart', "restart the party server"),
    ("“party server”", "a party-server"),
    ("party, server.", "restart the party server"),
    ("restart server", "the server needs a restart"),
    ("cafe", "meet at the Café"),
    ("café", "meet at the CAFE\u0301"),
    ("strasse", "in der Straße"),
    ("密码", "数据库的密码是这个"),
    ("東京", "東京都に住む"),
    ("データ", "データを消す"),
    ("Redis", "Redisを使う"),
    ("비밀번호", "비밀번호를 바꿨다"),
    ("รหัส", "นี่คือรหัสของเรา"),
    ("пароль", "Новый Пароль: тайна"),
    ("पासवर्ड", "नया पासवर्ड यहाँ है"),
    ("كلمة", "هذه كلمة السر"),
    ("password", "pass\u00adword in a PDF"),
    ("✅", "done ✅\ufe0f now"),
    ("art*", "the artist"),
    ("art?", "the art"),
    ("utf", "encoded in utf8"),
    ("open", "a half-open door"),
    ("half-open", "it is half-open."),
    ("token=abc123", "url?token=abc123&x=1"),
    ("https://x.io/a", "see https://x.io/a, please"),
    ("~/.ssh/id", "cat ~/.ssh/id"),
    ("src/a", "see src/a/b.ts"),
    ("API_KEY", "set api_key=1"),
    ("avion", "dans l'avion"),
    ("don't", "we don’t"),
    ("서버", "서버를 재시작"),
    ("トークン", "トークンを更新"),
]
NOT_FOUND = [
    ("art", "restart the party server"),
    ("art", "starting charts of cartels"),
    ("start", "starting now"),
    ("server", "the servers are up"),
    ("use", "we used it"),
    ("don", "we don't know"),
    ("t", "we don't know"),
    ("count=1", "with count=10"),
    ("count=1", "with discount=1"),
    ("src/a/b.ts", "see src/b/a.ts"),
    ("src/a/b.ts", "see src/a/b.tsx"),
    ("--cache", "docker build --no-cache"),
    ("C++", "plain C here"),
    ("==", "a === b"),
    ("-5", "10-5 of them"),
    (".env", "prod.env"),
    ("5", "version 1.5.2"),
    ("1.5", "version 1.5.2"),
    ("10.0.0", "host 10.0.0.1"),
    ('"party server"', "the server of the party"),
    ('"party server"', "party of the server"),
    ("café", "meet at the cafe"),
    ("アート", "スタート"),
    ("バス", "パスを通す"),
    ("京", "東京都"),
    ("кот", "который"),
    ("पास", "पासवर्ड"),
    ("ghp_aB3dE5", "the token ghp_aB3dE5x"),
    ("party dance", "restart the party server"),
    ("user", "superusers"),
    ("ann", "annual planner"),
    ("--force", "git push --force-with-lease"),
    (".env", "see .env.local"),
    ("cache=1", "set no-cache=1"),
    ("C", "plain C++ code"),
    ("C", "plain C# code"),
    ("a@b.io", "mail aa@b.io"),
    ("token=abc", "url?token=abcd"),
    ("foo_bar", "call foo_bar_baz"),
    ("x", "the max"),
    ("schön", "schon gut"),
    ("トークン", "オートークンク"),
    ("x=1", "where x≠1"),
]


@every_row(("query", "text"), FOUND)
def test_a_word_is_found_as_search_splits_it(query, text):
    wanted = parse_wanted_words(query)
    assert wanted.terms
    assert wanted.are_in([text])
    assert wanted.may_be_in(text)


@every_row(("query", "text"), NOT_FOUND)
def test_a_word_is_not_found_within_another_or_in_another_form(query, text):
    assert not parse_wanted_words(query).are_in([text])


def test_all_words_must_stand_in_one_row_but_a_phrase_in_one_text():
    assert parse_wanted_words("party server").are_in(["the server", "of the party"])
    assert not parse_wanted_words('"party server"').are_in(["a party", "server it is"])


def test_the_directory_of_a_project_does_not_say_its_words():
    wanted = parse_wanted_words("party").with_names(["/home/dev/party-server"])
    assert not wanted.are_in(["edited /home/dev/party-server/src/a.py"])
    assert not wanted.are_in(["/home/dev/.claude/projects/-home-dev-party-server/1.jsonl"])
    assert wanted.are_in(["edited /home/dev/party-server/src/party.py"])
    assert wanted.are_in(["the party is over"])
    literal = parse_wanted_words("party-server/src/a.py").with_names(["/home/dev/party-server"])
    assert literal.are_in(["edited /home/dev/party-server/src/a.py"])


def test_a_long_text_takes_no_longer_for_its_repetitions():
    wanted = parse_wanted_words('"a b" art')
    assert not wanted.are_in(["a " * 50_000 + "restart"])
    assert not wanted.are_in(["a" + " ." * 50_000])
