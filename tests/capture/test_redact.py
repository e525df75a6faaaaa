"""No secret survives redaction, ordinary text does, and redacting twice is redacting once."""

import hashlib
import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memd.capture import redact as redaction
from memd.capture.redact import forget_words, redact, redact_value
from memd.capture.redact.documents import redact_blocks
from tests import redaction_corpus
from tests.planted_secrets import HEX40, HEX64, ROWS, draw, names, uuid
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact")

FRAGMENTS = [*TABLES["FRAGMENTS"], "\ud800", draw(32), HEX40]
ANYTHING = st.text(max_size=60)
SOUP = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=14).map("".join)
EDGES = st.sampled_from([" ", "\n", '"', "'", "(", "\\n", ", ", "\t"])


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
@settings(max_examples=5)
@given(left=ANYTHING, before=EDGES, right=ANYTHING)
def test_a_planted_secret_never_survives(row, left, before, right):
    text = f"{left}{before}{row.text}\n{right}"
    assert row.secret not in redact(text)
    assert row.secret not in json.dumps(redact_value([{"a": [text]}, {text: 1}]))


@settings(max_examples=100)
@given(SOUP | ANYTHING)
@example("password=[REDACTED:token]x")
@example("x</private> password='a\\")
def test_redacting_twice_is_redacting_once(text):
    once = redact(text)
    assert redact(once) == once


def test_no_word_that_rules_look_for_hides_another():
    signs = sorted(redaction._SIGNS)
    beside = [f"{one[:-1]}{other}" for one, other in zip(signs, signs[7:] + signs[:7], strict=True)]
    for text in (*signs, *beside, *(f"x{one}y" for one in signs)):
        words = set(text.upper().split())
        joined = "\n".join((*words, "")).lower()
        forget_words()
        assert redaction._find_signs(words).all == {one for one in signs if one in joined}


def test_a_long_text_with_a_secret_is_redacted_each_time():
    text = f"{'word ' * 80}password={draw(16)}"
    once = redact(text)
    assert once.endswith("password=[REDACTED:password]")
    assert redact(text) == redact(once) == once


def _redact_afresh(text):
    forget_words()
    return redact(text)


def _redact_after_its_words(text):
    """Where each word was seen in a text of its own before, in which it is no secret."""
    for word in text.split():
        redact(word)
        redact(f"{word} and more")
    return redact(text)


def test_what_was_seen_before_makes_no_difference():
    files = ("attacks.txt", "lookalikes.txt")
    samples = [sample.text for file in files for sample in redaction_corpus.load(file)[::3]]
    texts = [*(row.text for row in ROWS), *samples]
    afresh = [_redact_afresh(text) for text in texts]
    assert [_redact_after_its_words(text) for text in reversed(texts)] == afresh[::-1]


@settings(max_examples=100)
@given(SOUP, SOUP)
def test_what_was_seen_before_makes_no_difference_in_any_text(one, other):
    text = f"{one} {other}"
    afresh = _redact_afresh(text)
    assert _redact_after_its_words(text) == afresh


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | SOUP,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SOUP, inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_json_can_be_redacted_and_again(value):
    once = redact_value(value)
    assert repr(redact_value(once)) == repr(once)


def test_the_sample_prompt_loses_its_secrets_and_keeps_its_question():
    key = "wJalrXUtn" + "FEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
    text = (
        f"The staging deploy needs AWS_SECRET_ACCESS_KEY={key} and the key id AKIA"
        "IOSFODNN7EXAMPLE. "
        "Is anything in the repository using them? <private>The customer is Nordwind AG.</private>"
    )
    assert redact(text) == (
        "The staging deploy needs AWS_SECRET_ACCESS_KEY=[REDACTED:aws-secret-key] and the key id "
        "[REDACTED:aws-access-key-id]. Is anything in the repository using them? [REDACTED:private]"
    )


def test_a_placeholder_is_never_taken_apart():
    assert redact(f"https://{draw(32)}@github.com/x") == "https://[REDACTED:url-token]@github.com/x"
    assert (
        redact("https://[REDACTED:a]b2:c3@host/x")
        == "https://[REDACTED:a][REDACTED:url-password]@host/x"
    )


def test_the_entropy_rule_can_be_turned_off():
    assert redact(f"x {draw(32)}", entropy=False) == f"x {draw(32)}"
    value = {"a": [f"x {draw(32)}"], "password": draw(32)}
    assert redact_value(value)["a"] == ["x [REDACTED:high-entropy]"]
    lax = redact_value(value, entropy=False)
    assert lax["a"] == value["a"]
    assert lax["password"] != value["password"]


@every_row("key", TABLES["a_string_whose_key_says_so_goes_whole"])
def test_a_string_whose_key_says_so_goes_whole(key):
    assert redact_value({key: "two words"})[key].startswith("[REDACTED:")
    assert redact_value({key: ["a", {"n": "b"}]})[key][0].startswith("[REDACTED:")


@every_row(
    "member",
    [
        {"token_count": "many"},
        {"max_tokens": 4096, "totalTokens": "12", "input_tokens": 3, "tokens": "none of them"},
        {"password_policy": "long", "secret_name": "db"},
        {"password": 12345, "token": True, "secret": None, "api_key": 1.5},
        {"password": "${DB_PASSWORD}", "token": "", "secret": "<secret>"},
        {"cwd": "/home/dev/ledger", "pwd": "/home/dev/ledger"},
        {1: "x", None: ("a", 2)},
    ],
)
def test_a_member_that_holds_no_secret_stays(member):
    assert redact_value(member) == member


def test_keys_are_redacted_and_no_member_is_lost():
    first, second = "gh" + "p_" + draw(36), "gh" + "p_" + draw(36, seed=8)
    assert redact_value({first: 1, second: 2}) == {
        "[REDACTED:github-token]": 1,
        "[REDACTED:github-token]#2": 2,
    }


def test_a_secret_named_beside_its_value_goes():
    assert redact_value({"name": "DB_PASSWORD", "value": "hunter2"}) == {
        "name": "DB_PASSWORD",
        "value": "[REDACTED:password]",
    }


def test_tuples_stay_tuples():
    assert redact_value(("a", ["password=hunter2"])) == ("a", ["password=[REDACTED:password]"])


def test_a_bottomless_value_ends():
    value: list = []
    for _ in range(600):
        value = [value]
    assert "[REDACTED:depth]" in repr(redact_value(value))


ORDINARY = {
    "git log": f"commit {HEX40}\nAuthor: Dev <dev@example.com>\nDate:   Fri Nov 20 15:26:15 2026 +0100\n\n"
    f"    Fix the token refresh (#12)\n\nindex {HEX40[:7]}..{HEX64[:7]} 100644\n",
    "pip freeze": "anyio==4.16.0\nmemd @ git+https://github.com/dev/memd@"
    + HEX40
    + "\npydantic-core==2.41.5\n",
    "traceback": 'Traceback (most recent call last):\n  File "/home/dev/ledger/auth.py", line 12, in decode_token\n'
    "    payload = json.loads(token)\nKeyError: 'password'\njson.decoder.JSONDecodeError: Expecting value\n",
    "package-lock": '"node_modules/abbrev": {\n  "version": "2.0.0",\n  "resolved": '
    '"https://registry.npmjs.org/abbrev/-/abbrev-2.0.0.tgz",\n  "integrity": "sha512-'
    + draw(86, "abcDEF0123456789+/xyzXYZ")
    + '==",\n',
    "cargo lock": f'name = "serde"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "{HEX64}"',
    "uv lock": '{ url = "https://files.pythonhosted.org/packages/ab/cd/'
    + HEX64[:60]
    + f'/anyio-4.16.0-py3-none-any.whl", hash = "sha256:{HEX64}", size = 100916 }}',
    "go sum": "golang.org/x/text v0.3.7 h1:"
    + draw(43)
    + "=\ngolang.org/x/text v0.3.7/go.mod h1:"
    + draw(43)
    + "=",
    "uuids": "\n".join(uuid(n) for n in range(9)),
    "sha sums": "\n".join(
        f"{hashlib.new(name, b'x').hexdigest()}  file.tar.gz"
        for name in ("md5", "sha1", "sha256", "sha512")
    ),
    "docker": f"repo/app@sha256:{HEX64}\nCONTAINER ID {HEX40[:12]}",
    "code": "import os\n\ndef login(user: str, password: str, token: str | None = None) -> Session:\n"
    '    """Log in with a password or a token."""\n    password = password.strip()\n'
    '    secret = os.environ["APP_SECRET"]\n    if not verify_password(password, user.password_hash):\n'
    '        raise AuthError("wrong password")\n    return Session(token=token or new_token(secret), user=user)\n',
    "javascript": "const { token, password } = req.body;\nconst auth = await getAuth({ token });\n"
    "headers: { Authorization: `Bearer ${token}` },\nlocalStorage.setItem('token', data.token);\n",
    "prose": "The password is checked first; the token: a string of 32 characters; the secret of a good API key "
    "is to rotate it. Cookies are signed. See docs/auth.md#tokens and set max_tokens to 4096.",
    "claude ids": f"toolu_01{draw(22)} msg_01{draw(22)} session {uuid()} /home/dev/.claude/projects/-home-dev/{uuid()}.jsonl",
    "times": "2026-11-20T15:26:15.601Z 1795188369.918335 1795188369918335123 1,234,567,890",
    "compose": "services:\n  db:\n    image: postgres:16\n    environment:\n      POSTGRES_PASSWORD: ${POSTGRES_PASSWORD}\n",
    "actions": "env:\n  GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}\n  NPM_TOKEN: ${{ secrets.NPM_TOKEN }}\n",
    "pytest": "tests/test_auth.py::test_a_token_expires PASSED [ 50%]\nFAILED tests/test_auth.py::TestLogin::test_password",
    "public key": "ssh-rsa AAAAB3NzaC1yc2E" + draw(300) + " dev@host",
    "image": '{"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo'
    + draw(3000)
    + '"}',
}


@every_row("text", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_text_passes_unchanged(text):
    assert redact(text) == text
    assert redact(json.dumps(text)) == json.dumps(text)


def test_spans_can_be_redacted_alone():
    assert (
        redact_blocks("<private>x</private> password=hunter2")
        == "[REDACTED:private] password=hunter2"
    )


def test_the_hook_can_import_it_with_the_standard_library_alone():
    code = "import sys; sys.path.insert(0, '.'); import memd.capture.redact; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"dataclasses", "pydantic", "json", "logging", "inspect"} & set(
        loaded.stdout.split()
    )


@every_row("key", ["api-acbc13ba-54ac-42a4-a7f5-6bd54b5e56e5", "FLWSECK-76eed0c9a42d1343217e3c-X"])
def test_keys_that_nothing_parts_all_go_at_once(key):
    text = redact(key * 900)
    assert key[-12:] not in text
    assert redact(text) == text


PRINTING = ["op read op://vault/db/password", "pass show web/admin", "gh auth token", "echo $DB_PASSWORD", "terraform output -raw db_password"]  # fmt: skip
OTHERS = ["git status", "pass the salt", "echo $HOME", "cat token.py", "echo password"]


def called(command, output):
    return {
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": {"stdout": output, "stderr": "", "interrupted": False},
    }


@pytest.mark.parametrize("command", PRINTING)
def test_what_a_command_prints_that_is_there_to_print_a_secret_goes(command):
    response = redact_value(called(command, "harborlight\nuser: bob\n"))["tool_response"]
    assert response["stdout"] == "[REDACTED:printed-secret]\nuser: bob\n"


@pytest.mark.parametrize("command", OTHERS)
def test_what_other_commands_print_stays(command):
    assert redact_value(called(command, "harborlight\n")) == called(command, "harborlight\n")


def test_an_object_under_a_secret_name_loses_the_value_that_it_holds():
    given = {"db_password": {"value": "Harbor77light", "type": "string", "sensitive": True}}
    held = redact_value(given)["db_password"]
    assert held == {"value": "[REDACTED:password]", "type": "string", "sensitive": True}
