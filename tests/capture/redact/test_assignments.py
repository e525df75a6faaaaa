"""What is assigned to a secret name goes; references, types, calls and prose stay."""

from memd.capture.redact import redact
from memd.capture.redact.assignments import find_assigned
from memd.capture.redact.regexes import Reading, replace_spans
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/assignments")


def redacted(text):
    signs = f"{text.lower()}\n"
    return replace_spans(text, find_assigned(Reading(text, text.lower(), signs, True, False)))


@every_row(
    ("text", "expected"),
    [
        ("password=hunter2", "password=[REDACTED:password]"),
        ("password: hunter2", "password: [REDACTED:password]"),
        ("passwd = 'a b c'", "passwd = '[REDACTED:password]'"),
        ("password=changeme", "password=[REDACTED:password]"),
        ("  password: swordfish\n", "  password: [REDACTED:password]\n"),
        ('{"password": "x,y", "n": 1}', '{"password": "[REDACTED:password]", "n": 1}'),
        (r"{\"token\": \"a\\\"b\", \"n\": 1}", r"{\"token\": \"[REDACTED:token]\", \"n\": 1}"),
        ('password: str = "hunter2"', 'password: str = "[REDACTED:password]"'),
        ('const token: string = "abc"', 'const token: string = "[REDACTED:token]"'),
        ('password := "hunter2"', 'password := "[REDACTED:password]"'),
        ('if password == "hunter2":', 'if password == "[REDACTED:password]":'),
        ('password = """two\nlines"""', 'password = """[REDACTED:password]"""'),
        ("https://x/?token=abc123&page=2", "https://x/?token=[REDACTED:token]&page=2"),
        ("DB_PASSWORD=p@ss,w&rd;x\nFOO=1", "DB_PASSWORD=[REDACTED:password]\nFOO=1"),
        ("export FOO_SECRET=abc", "export FOO_SECRET=[REDACTED:secret]"),
        (r'"FOO_SECRET=a1\nBAR=b"', r'"FOO_SECRET=[REDACTED:secret]\nBAR=b"'),
        ("Server=x;Pwd=hunter2;Db=y", "Server=x;Pwd=[REDACTED:password];Db=y"),
        ("--password hunter2 -v", "--password [REDACTED:password] -v"),
        ('["--token", "abc", "x"]', '["--token", "[REDACTED:token]", "x"]'),
        ("${DB_PASSWORD:-hunter2}", "${DB_PASSWORD:-[REDACTED:password]}"),
        ("API key: abc123def", "API key: [REDACTED:api-key]"),
        ("connect(user=u, password=hunter2)", "connect(user=u, password=[REDACTED:password])"),
        ("//registry.npmjs.org/:_auth=dXNlcjpw", "//registry.npmjs.org/:_auth=[REDACTED:secret]"),
        ("client_secret: abcd1234efgh", "client_secret: [REDACTED:secret]"),
        ("api_key='unclosed", "api_key='[REDACTED:api-key]"),
        ("AWS_SECRET_ACCESS_KEY=" + "a1/B" * 10, "AWS_SECRET_ACCESS_KEY=[REDACTED:api-key]"),
        ("İ password=hunter2", "İ password=[REDACTED:password]"),
        ("token=" + "a1" * 4000, "token=[REDACTED:token]"),
        ("PASSWORD=valid", "PASSWORD=[REDACTED:password]"),
        ('password: "red boat on sea"', 'password: "[REDACTED:password]"'),
        ("**password Kite9217** of it", "**password [REDACTED:password] of it"),
        ("OPENAI_API_KEY=sk-yours-7f3a9", "OPENAI_API_KEY=[REDACTED:api-key]"),
    ],
)
def test_an_assigned_secret_goes(text, expected):
    assert redacted(text) == expected


@every_row("text", TABLES["what_only_speaks_of_a_secret_stays"])
def test_what_only_speaks_of_a_secret_stays(text):
    assert redacted(text) == text


@every_row(
    "text",
    [
        '{"retries": 3, "SECRET_KEY": "+b!0mpgz+m9=m95c3t56"}',
        '{"body": "{\\"a\\": \\"b\\", \\"SECRET_KEY\\": \\"+b!0mpgz+m9=m95c3t56\\"}"}',
        'curl -H "X-Secret-Key: 1%1bu&@z+b!0mpgz+m9=m95c3t56" https://x',
        'curl -H "X-Password: correct-horse-b!0mpgz+m9=m95c3t56"',
        "SECRET_KEY = ab&b!0mpgz+m9=m95c3t56\nport = 1",
    ],
)
def test_a_value_with_signs_goes_to_its_end(text):
    redacted = redact(text)
    assert "b!0mpgz" not in redacted
    assert "m95c3t56" not in redacted


@every_row("address", ["203.0.113.24", "198.51.100.0/24", "192.0.2.7:22"])
def test_an_address_is_no_password_of_a_command(address):
    command = f'gh secret set TILE_SERVER --body "{address}"'
    assert redact(command) == command


def test_what_else_a_command_is_given_as_a_secret_goes():
    said = redact("gh secret set TILE_SERVER --body 203.0.113.24x9!")
    assert said == "gh secret set TILE_SERVER --body [REDACTED:cli-password]"
