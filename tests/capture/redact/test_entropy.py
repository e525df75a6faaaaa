"""Random words go; hashes, ids, paths, addresses, images and names stay."""

from memd.capture.redact.names import entropy, find_random_words, has_random_words, is_random
from memd.capture.redact.regexes import replace_spans
from tests.planted_secrets import HEX40, HEX64, URL, WORD, draw, uuid
from tests.tables import every_row

B64 = WORD + "+/"


def redact_words(text):
    return replace_spans(text, find_random_words(text))


@every_row("alphabet", [WORD, URL, B64], ids=["base62", "base64url", "base64"])
@every_row("length", [24, 32, 40, 64])
def test_nearly_every_drawn_word_goes(alphabet, length):
    words = [draw(length, alphabet, seed) for seed in range(300)]
    gone = sum(redact_words(f"x {word} y") == "x [REDACTED:high-entropy] y" for word in words)
    assert gone >= 290


def test_the_published_example_goes_without_a_name():
    example = "wJalrXUtn" + "FEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
    assert redact_words(f"is {example} in use?") == "is [REDACTED:high-entropy] in use?"


def test_a_random_word_in_a_query_goes():
    assert draw(32) not in redact_words(f"https://x.org/a?code={draw(32)}")


@every_row(
    "text",
    [
        HEX40,
        HEX64.upper(),
        uuid(),
        f"sha256:{HEX64}",
        f"sha512-{draw(86, B64)}==",
        f"h1:{draw(43, B64)}=",
        f"SHA256:{draw(43, B64)}",
        f'"integrity": "sha512-{draw(86, B64)}=="',
        f"data:image/png;base64,{draw(400, B64)}",
        f"iVBORw0KGgo{draw(400, B64)}",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{draw(43, B64)} dev@host",
        f"toolu_01{draw(22)} msg_01{draw(22)} req_01{draw(22)}",
        f'"session_id": "{draw(32)}"',
        f"https://docs.google.com/document/d/{draw(44, URL)}/edit",
        f"/nix/store/{draw(32, 'abcdfghijklmnpqrsvwxyz0123456789')}-python/bin/python3",
        f"/home/dev/.claude/projects/-home-dev-ledger/{uuid()}.jsonl",
        "/usr/lib/python3/dist-packages/setuptools/_vendor/importlib_metadata",
        "AbstractSingletonProxyFactoryBean getUserAuthenticationTokenProvider2",
        "test_a_redacted_secret_never_reaches_the_spool CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "my-deployment-7d9f8b6c5d-x2x9k eslint-plugin-jsx-a11y-recommended",
        "2026-11-20T15:26:15.601Z 20261120152615601000000000000",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "a" * 5000 + " " + "=" * 100 + " " + "-" * 100,
    ],
)
def test_what_is_random_but_no_secret_stays(text):
    assert redact_words(text) == text


def test_a_look_before_the_work():
    assert has_random_words([HEX40, draw(32)])
    assert not has_random_words(["test_a_redacted_secret_never_reaches_the_spool"])


def test_short_words_and_hexadecimal_are_never_random():
    assert not is_random(HEX64)
    assert not is_random("abcdef")


def test_entropy_is_that_of_shannon():
    assert entropy("aaaa") == 0
    assert entropy("abab") == 1
    assert entropy("abcdefgh") == 3


def test_a_public_key_of_many_lines_stays_and_a_secret_after_it_goes():
    body = "\n".join(draw(64, seed=n) for n in range(4))
    block = f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----"
    assert redact_words(block) == block
    assert redact_words(block.replace("\n", "\\n")) == block.replace("\n", "\\n")
    assert redact_words(f"{block}\n{draw(40)}") == f"{block}\n[REDACTED:high-entropy]"


def test_random_words_in_a_row_are_all_taken_out_at_once():
    word = "xpxQJ/bxSN/qHYHJqtGrl8F34jaZIBF6oJBbwZtdrlZ="
    for count in (2, 60, 900):
        assert word[:20] not in redact_words("system " + word * count)


def test_what_is_drawn_is_no_path_for_a_few_letters_that_look_like_a_name():
    drawn = "p7p031oWq0Hb0gQEip5wLyoVc/qgwxdww+NFauVPuexJ"
    assert "REDACTED" in redact_words(f"x={drawn}")
    kept = "a=src/lib/Q7xk2PzR9vT4mN8bW3yLd6/MyProject/Documents"
    assert redact_words(kept) == kept
