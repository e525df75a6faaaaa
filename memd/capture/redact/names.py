"""Tell names that hold a secret from others, secrets from values that only refer to one, and random words from words. Pure.

A name is judged by its end: `DB_PASSWORD`, `clientSecret`, `x-api-key` and `contraseña` hold a secret, `token_count`,
`secret_name` and `nextPageToken` do not. Some names have other meanings too: `pass` counts tests, `credentials` is an
option of fetch(). Such a doubtful name holds a secret only if the value looks like one.
"""

import bisect
import functools
import itertools
import math
import operator
import re
import unicodedata
from collections.abc import Iterable, Iterator

from memd.capture.redact.regexes import PLACEHOLDER, Found, Reading, compile_regex, read_tables

VOCABULARY = read_tables("vocabulary.toml")
"""Words that redaction knows; the file says of what each list is."""
LATIN_WORDS: tuple[str, ...] = VOCABULARY["names"]["latin"]
FOREIGN_LETTER = r"[\u00c0-\u024f\u0370-\u1fff\u3040-\ud7ff]"
"""Letters beyond ASCII, but no dashes, boxes and pictures."""
WORD_TABLES = read_tables("words.toml")
"""Words about secrets, by language."""
FOREIGN_PASSWORDS = frozenset(
    word.replace("_", " ")
    for language in WORD_TABLES.values()
    for word in language["password"].split()
    if not word.isascii()
)
"""The word for password in other languages, with their letters."""
NAMING_WORDS = (
    *("pass", "pw", "psk", "secret", "token", "key", "auth", "cookie", "cred", "jwt", "bearer", "mnemonic", "seed", "matkhau"),
    *(word for word in LATIN_WORDS if word.isalpha()),
)  # fmt: skip
"""One of them is in every ASCII name that holds a secret."""
_SQUASH = r"[^a-z0-9]+"
_SUFFIX = (
    r"(?<=[a-z])(?:\d+|v\d|prod|production|staging|stage|dev|test|live|old|new|base|value|plain|"
    r"b64|base64|hex|confirm|confirmation|again|primary|secondary|backup|default|main)\Z"
)
_HOLDS = (
    r"(?P<password>passw(?:or)?d|passwords?hash|passphrase|pwd|passcode|mnemonic|seedphrase|recoveryphrase|"
    r"(?:db|database|user|admin|root|mysql|postgres|pg|redis|smtp|mail|email|ftp|ssh|mongo|sql|ldap|"
    r"login|sudo|proxy|require|store|key|ks|become|wifi|http|imap|mqtt|vnc|svc|service)pass|"
    r"(?:bind|root|user|admin|db|key|input|owner)pw|\Apsk|(?:wpa|wifi|pre)_?psk|presharedkey|masterauth|"
    r"passwort|kennwort|motdepasse|palavrapasse|passord|\Amdp|contrasen(?:y?a|ha)|senha|wachtwoord|wagwoord|"
    r"\Ahaslo|(?:\A|_)sifre|losenord|adgangskode|salasana|\Aheslo|jelszo|matkhau|katasandi|lozinka|"
    r"\Aparool|slaptazodis|\Ageslo|kodeord|lykilord|zaporka|pasahitza)\Z"
    r"|(?P<token>token|jwt|bearer)\Z"
    r"|(?P<secret>secret)\Z"
    r"|(?P<key>(?:api|app|application|secret|private|access|encryption|encrypt|signing|sign|master|account|"
    r"storage|auth|service|license|licence|ssh|client|shared|session|webhook|deploy|crypt|consumer|"
    r"subscription|admin|cipher|aes|hmac|jwt|integration|write|ingest|openai|anthropic|stripe|"
    r"google|azure|aws|datadog|sendgrid|gemini|groq|mistral|cohere)key)\Z"
    r"|(?P<authorization>authorization|xauth)\Z"
    r"|(?P<cookie>cookie|cookies)\Z"
)
_ASIDE = (
    r"(?:next|page|continuation|sync|cursor|start|end|special|eos|bos|pad|unk|mask|sep|cls|stop|first|"
    r"last|current|prev|previous|cancellation|cancel|abort|lexer|parse|parser|syntax|design|input|output|num|"
    r"max|min|total|per|each|of|by|is|has|no|the|a|any|this|cached|peek|keyword|string|operator|punctuation|"
    r"comment|identifier|ast|css|id|quote|delimiter|reset|resume|change|invalid|missing|wrong|forgot|show|"
    r"hide|toggle|check|validate|verify|require|requires|needs|use|using|open|close)"
)
_ASKED = r"(?:show|hide|toggle|forgot|reset|change|is|has|require|requires|needs|use|ask|prompt)"
# Whole words only: `isPassword` and `a_token` hold none, but `REDIS_PASSWORD` and `GITEA_TOKEN` do.
_SPARED = (
    rf"(?:\A|_)(?:{_ASIDE}_?){{1,3}}token(?:_|\Z)|(?:\A|_){_ASKED}_?(?:password|secret|token|api_?key)\Z"
    r"|(?:\A|_)public(?:_[a-z0-9_]*)?key\Z|(?:\A|_)(?:primary|foreign|sort|cache|dict|gpg|pgp)_?key\Z"
    r"|(?:\A|_)(?:idempotency|unpkg|json_?web)_?(?:key|token)\Z"
)
_DOUBTFUL = (
    r"(?:\A|_)(?:(?P<password>pass|pw|passe|passwords|clave|parola|credentials?|creds?)"
    r"|(?P<secret>secrets|(?:recovery|backup|scratch)_codes?)|(?P<token>(?:[a-z0-9]+_)+auth"
    r"|(?:api_|auth_|access_|refresh_)?tokens)|(?P<key>(?:api|secret|private)_?keys))"
    r"(?:_?\d{1,2})?\Z"
)
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+"
_NAME_MAX = 120
_NAMES_CACHED = 1_024
"""Names whose rule is cached; the keys of payloads are few."""
_REFERENCE_MAX = 400
_REFERENCE = (
    r"(?s)\$\{[^{}\"'-]*\}|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$[0-9@*#?]|&(?:mut )?(?:str|\[\w+(?:; ?\w+)?\])[),;]*|\$\(.*|\$\{\{.*\}\}"
    r"|%\w+%|%\(\w+\)s|%[a-z]|\$?\{\{(?:.*\}\})?|\{[A-Za-z_][\w.!:\[\]'\" ()]*\}|\{\}|<[^<>]*>|\[[A-Za-z _-]*\]"
    r"|(?:[a-z]{1,7}[-_](?:[a-z0-9]{1,6}[-_]){0,3})?(?:[*•.…#?_\s-]+|[xX]{3,})"
    r"|!(?:[A-Z]\w*|secret)[ \t].*|\*\w+|\$_[A-Z]+\[.*|#[0-9a-fA-F]{3,8};?"
    r"|(?:https?|grpcs?)://[\w.-]+(?::\d{1,5})?/?;?"  # only a host, as after `proxy_pass`
    r"|\.[*+].*|\.{1,2}/[\w./-]*|/(?:run|etc|var|home|opt|tmp|usr)/[\w./-]*"
    r"|(?i:none|null|nil|undefined|true|false|yes|no|required|optional|n/?a|\[?(?:redacted|hidden|masked|filtered)\]?"
    r"|empty|unset|missing|omitted|todo|fixme|placeholder|bearer|basic|string|str|bytes|text|number|secretstr"
    r"|boolean|bool|int|any|object|replace[-_ ]?me|(?:(?:insert|enter|put|[a-z]{2,4})[-_ ])?your[-_ ][a-z_ -]+)"
)
_SIGNS = frozenset("!@#$%^&*?+~=")
_LIKELY_MIN = 5
_PLURAL_MIN = 12
_WORD_MAX = 60
_NUMBER_MIN = 2
_PLAIN_NAMES = frozenset(VOCABULARY["names"]["plain"])
"""What a name ends with before a number of its own."""
_PLAIN_MIN = 6
_OUTCOMES = frozenset(VOCABULARY["names"]["outcomes"])
VARIABLES = frozenset(VOCABULARY["names"]["variables"])
"""Words that stand for a value where one is expected."""
_STATES = frozenset(VOCABULARY["names"]["states"])
_HARMLESS = (
    # A date, a version, a size, an algorithm, a path, an address, a call, an expression.
    r"(?i)\d{4}-\d\d-\d\d.*|v?\d+(?:\.\d+)+[\w.-]*|\d+(?:[a-z]{1,3}|%)|(?:[./~]|[a-z]:\\).*"
    r"|(?:[a-z]+://|mailto:)[^:@]*|[a-z_][\w.]*\(.*|(?:\^|~|>=?|<=?)\s?\d.*"
    r"|(?:sha|md|aes|rsa|argon|base|utf|http|ed|pbkdf|[rhep]s|blake|x|oauth|web|es|ipv|ucs|iso)[-_]?\d+\w{0,12}"
    r"|[a-z]{2}-[a-z]+-\d"
)
_KEYPAD = r"\d{3,10}[#*]|\d{4,8}[A-Z]|\d{1,2}(?:-\d{1,2}){2,3}"
"""Codes of doors and safes: `5519#`, `4711B`, `34-12-27`."""
NONE, PLAIN, NUMBER, FAIR, STRONG = range(5)
"""How much a value looks like a secret: not at all, a word, digits or what is typed into a keypad, letters with digits, drawn."""
HARMLESS_TOLD = (
    # dates, versions, sizes, times, ordinals, tickets
    r"(?i)\d{4}-\d\d-\d\d.*|[v#]{0,2}\d+(?:[.:/x]\d+)+[\w.-]*|\d+(?:[a-z]{1,4}|%)|(?:\d+[dhms]){1,4}|\d+[-–][a-z][a-z-]*"
    r"|[a-z]+-?\d{1,4}-(?:bit|byte|char)\w*|(?-i:[A-Z]{2,12})-\d{1,6}|(?:issue|ticket"
    r"|pr|node|python|rev|bug|release)-\d{1,6}|[a-z]{1,3}#\d+|#\d+|[a-z]{2}-[a-z]+-\d"
    # paths, files, addresses, packages
    r"|(?:[./~]|[a-z]:\\).*|mailto:.*|[\w.+-]+@[\w-]+\.[\w.-]+|@[\w/.-]+|(?-i:[a-z][a-z0-9/-]*)@v?\d{1,2}(?:\.\d+)*|[\w./-]+/[\w./-]+"
    r"|[\w./-]+\.(?:[a-z]{1,4}|md5|sha\d+|mp[34]|bz2|7z)(?::\d+.*)?"
    # code: assignments, calls, flags, comparisons, members, interpolations, markup
    r"|[\w.-]+=.*|[a-z_][\w.]*\(.*|(?:\^|~|>=?|<=?|!!|!=)\s?\w.*|[:;|,].*|--?[a-z].*|[a-z_]\w*[?!]?\.[a-z_][\w.]*|![a-z]+"
    r"|.*(?:://|::|->|=>|==|\{\}|\[\]|&&|\|\||\]\(|\(\)|</|\$\{|\}\}|,\w+=|\w\[).*|[a-z]\w?(?:\+[a-z]\w?)+|.*['’]s"
    # algorithms and other names with a number
    r"|(?:sha|md|aes|rsa|argon|base|utf|http|ed|pbkdf|[rhep]s|blake|x|oauth|web|es|ipv|ucs|iso|bcrypt|scrypt|crypt|des|ecdsa|"
    r"secp|hmac|rfc|cve|tls|ssl|k|i|ec|s|log|mp|h|id_ed)[-_]?\d+[a-z]{0,4}(?:[-_/][\w-]{1,16})?"
)
_PARTED = r"[^\W\d_]+(?:[-_.’'/][^\W\d_]+)+"
_DRAWN_SIGNS = frozenset("!@#$%^&*+?=~§€£")
_LENGTH_MIN, _FAIR_MIN, _PIN_MAX, _MANY_DIGITS, _MANY_KINDS, _PARTS_MIN = 4, 5, 12, 3, 3, 4


def secret_rule(name: str) -> str | None:
    """Return the rule by which this name holds a secret: `password`, `token`, …; None if it does not.

    >>> secret_rule("clientSecret"), secret_rule("token_count")
    ('secret', None)
    """
    return _find_rule(name[-_NAME_MAX:])


@functools.lru_cache(maxsize=_NAMES_CACHED)
def _find_rule(name: str) -> str | None:
    if name == "_auth":  # .npmrc
        return "secret"
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)  # ｐａｓｓｗｏｒｄ
    if not name.isascii():
        return "password" if name.strip(" \"'*_:").lower() in FOREIGN_PASSWORDS else None
    bare = squashed(name)
    if not any(word in bare for word in NAMING_WORDS):
        return None
    secret = compile_regex(_HOLDS)
    found = secret.search(bare) or secret.search(compile_regex(_SUFFIX).sub("", bare))
    if found is None or found.lastgroup is None or compile_regex(_SPARED).search(_split_name(name)):
        return None
    return "api-key" if found.lastgroup == "key" else found.lastgroup


def _split_name(name: str) -> str:
    """The words of a name in lower case: `apiKey` is `api_key`."""
    return compile_regex(_HUMP).sub("_", name).lower().strip("_")


@functools.lru_cache(maxsize=_NAMES_CACHED)
def doubtful_rule(name: str) -> str | None:
    """Return the rule by which this name holds a secret if its value looks like one: `pass`, `credentials`."""
    found = compile_regex(_DOUBTFUL).search(_split_name(name[-_NAME_MAX:]))
    if found is None or found.lastgroup is None:
        return None
    return "api-key" if found.lastgroup == "key" else found.lastgroup


@functools.lru_cache(maxsize=_NAMES_CACHED)
def key_rule(name: str) -> str | None:
    """Return the rule by which any name's key is a secret if its value is drawn: `CRASH_KEY`, `mapsKey`, but not `sort_key`."""
    name = name[-_NAME_MAX:]
    is_key = compile_regex(r"[a-z0-9]_key(?:_?\d{1,2})?\Z").search(_split_name(name))
    return "api-key" if is_key and not is_spared(name) else None


def is_drawn_key(name: str, value: str) -> bool:
    """Return whether the value of a key is drawn: characters of all kinds, or hexadecimal that is not called a digest."""
    if compile_regex(_HEX_VALUE).fullmatch(value):
        is_mixed = not value.isdigit() and len(set(value.lower())) >= _KEY_KINDS_MIN
        return is_mixed and not names_digest(_split_name(name).split("_"))
    return is_drawn(value)


def is_named_key(words: list[str], value: str) -> bool:
    """Return whether the value behind “key for …”, which these words are, is drawn; a digest has the form of a key in hexadecimal."""
    if compile_regex(_HEX_KEY).fullmatch(value):
        return len(set(value.lower())) >= _KEY_KINDS_MIN and not names_digest(words)
    return is_drawn(value)


def names_digest(words: Iterable[str]) -> bool:
    """Return whether one of these words says that a value is a digest or an id."""
    return any(map(compile_regex(_DIGEST_WORD).fullmatch, words))


def is_spared(name: str) -> bool:
    """Return whether a name holds no secret though it ends like one: `public_key`, `cache_key`."""
    return compile_regex(_SPARED).search(_split_name(name)) is not None


def is_secret_under(name: str, value: str) -> bool:
    """Return whether the quoted value of a doubtful name is a secret."""
    bare = value.strip()
    if doubtful_rule(name) is None:
        return is_drawn_key(name, bare)
    if name.lower().endswith(("tokens", "keys", "secrets")):
        return len(bare) >= _PLURAL_MIN and is_likely_secret(bare)
    if bare.isalpha() and bare.isascii() and bare.islower():
        return len(bare) >= _PLAIN_MIN and bare not in _OUTCOMES and not is_naming(bare)
    return is_likely_secret(bare)


def is_likely_secret(value: str) -> bool:
    """Return whether a word looks like a password or a token by itself: letters with digits or signs, no reference."""
    # Most are words, which need no closer look.
    if len(value) < _LIKELY_MIN or value.isalpha() or value[0] == "-" or is_reference(value):
        return False
    if any(c.isspace() for c in value):
        return False
    letters, digits = any(c.isalpha() for c in value), any(c.isdigit() for c in value)
    if not letters or not (digits or not _SIGNS.isdisjoint(value)):
        return False
    return not compile_regex(_HARMLESS).fullmatch(value) and not is_naming(value)


def judge(bare: str) -> int:  # noqa: PLR0911  # one for each kind of value
    """Judge by its structure how much a word looks like a secret."""
    length = len(bare)
    if length < _LENGTH_MIN or is_reference(bare) or any(map(str.isspace, bare)):
        return NONE
    if is_drawn(bare):
        return STRONG
    if bare.isalpha():
        return PLAIN
    if bare.isdigit():
        return NUMBER if length <= _PIN_MAX else NONE
    if compile_regex(_KEYPAD).fullmatch(bare):
        return NUMBER
    digits = sum(map(str.isdigit, bare))
    letters = sum(map(str.isalpha, bare))
    within = not _DRAWN_SIGNS.isdisjoint(bare)
    if not letters or length < _FAIR_MIN or compile_regex(HARMLESS_TOLD).fullmatch(bare):
        return NONE
    if not digits and not within:
        # correct-horse-battery-staple
        is_phrase = compile_regex(_PARTED).fullmatch(bare) and bare.count("-") >= _PARTS_MIN - 1
        return FAIR if is_phrase and bare.islower() else NONE
    if is_naming(bare):
        return NONE
    cases = any(map(str.islower, bare)) + any(map(str.isupper, bare))
    kinds = cases + (digits > 0) + within
    return STRONG if kinds >= _MANY_KINDS or digits >= _MANY_DIGITS else FAIR


def is_naming(word: str) -> bool:
    """Return whether a word is itself a name for secrets: `password`, `Passwort`, `API_KEY`."""
    bare = word.strip(" *_:`\"'")
    if len(bare) > _WORD_MAX or is_numbered(bare):
        return False
    return secret_rule(bare) is not None or doubtful_rule(bare) is not None


def is_numbered(word: str) -> bool:
    """Return whether the digits of a word show that it is no name: `supersecret1`, `password123`, but not `password2`."""
    if compile_regex(r"\d[A-Za-z]").search(word):
        return True  # drawn characters may end with `Pw`
    bare = word.rstrip("0123456789")
    if not 0 < len(word) - len(bare) < _NUMBER_MIN:
        return len(bare) < len(word)
    return _split_name(bare).rsplit("_", 1)[-1] not in _PLAIN_NAMES


def is_label(name: str, value: str) -> bool:
    """Return whether a value is the word for people that a name stands for: `"password": "Passwort"`."""
    if squashed(value) == squashed(name):
        return bool(squashed(value)) or value == name
    is_word = value[:1].isupper() or not value.isascii()
    rule = secret_rule(name) or doubtful_rule(name)
    return is_word and is_naming(value) and rule in {secret_rule(value), doubtful_rule(value)}


def squashed(name: str) -> str:
    """Return the name in lower case without separators: `x-api-key` is `xapikey`."""
    return compile_regex(_SQUASH).sub("", name.lower())


def is_reference(value: str) -> bool:
    """Return whether a value only points at a secret, or stands where one would be."""
    bare = value.strip()
    if not bare or not compile_regex(PLACEHOLDER).sub("", bare):
        return True
    return len(bare) <= _REFERENCE_MAX and compile_regex(_REFERENCE).fullmatch(bare) is not None


def is_state(value: str) -> bool:
    """Return whether a value says in what state a secret is: `token is "expired"`."""
    return value.strip().lower() in _STATES


def is_working_directory(name: str, value: str) -> bool:
    """Return whether this is a shell's `PWD=/home/dev`, not a password."""
    return name.lower() in {"pwd", "oldpwd"} and value[:1] in {"/", "~", ".", "$"}


# ── Keys in hexadecimal ───────────────────────────────────────────────────────────────────────────

_HEX_RUN = r"[0-9a-fA-F]{32}"
"""Found in a third of the time: most texts have none."""
_HEX_KEY = r"(?a)(?<![\w/.+-])(?:0x)?(?:[0-9a-fA-F]{16}){2,4}(?![\w/.+-])"
"""A key of 128, 192 or 256 bits. Digests look the same: only what it is called tells them apart."""
_HEX_VALUE = r"(?a)[0-9a-fA-F]{16,}"
_CLAUSE_BEFORE = r"(?a)[^\n;!?,()|]{1,80}\Z"
_CLAUSE_WORD = r"[^\s\"'`*:=]+|[:=]"
_DIGEST_WORD = r"(?i)(?:sha|md|blake)-?\d.*|.*(?:hash|digest|checksum|fingerprint|commit|rev|revision|id|uuid|tag|etag|signature)"
_BEFORE_KEY = frozenset({":", "=", "->", "→"}).union(
    *(one.get(row, "").split() for one in WORD_TABLES.values() for row in ("is", "small"))
)
_OWN = frozenset({"my", "our", "your"})
_KEY_WORDS_MAX, _KEY_KINDS_MIN, _OWN_WORDS_MAX = 4, 6, 3
"""Words between a key's name and a verb, different digits of a key, and words of its name behind “my”."""


def find_named_keys(reading: Reading) -> Iterator[Found]:
    """Yield the keys in hexadecimal that are called so: `AES key: …`, `appkey dev3 …`, “my datadog key is …”."""
    if not reading.is_named or compile_regex(_HEX_RUN).search(reading.text) is None:
        return
    for found in compile_regex(_HEX_KEY).finditer(reading.text):
        start, end = found.span()
        clause = compile_regex(_CLAUSE_BEFORE).search(reading.text, max(0, start - 80), start)
        is_drawn = len(set(found[0].lower())) >= _KEY_KINDS_MIN
        if clause and is_drawn and _names_key(compile_regex(_CLAUSE_WORD).findall(clause[0])):
            yield start, end, "api-key"


def _names_key(words: list[str]) -> bool:
    """Return whether the words before a value call it a key: directly, but for a name with a number, or with a verb between."""
    count = len(words)
    while words and words[-1].lower() in _BEFORE_KEY:
        words = words[:-1]
    is_linked = len(words) < count
    for back in range(min(len(words), _KEY_WORDS_MAX + 1)):
        *before, word = words[: len(words) - back]
        between = words[len(words) - back :]
        if any(map(compile_regex(_DIGEST_WORD).fullmatch, (word, *between))):
            return False
        is_device = back == 1 and any(c.isdigit() for c in between[0])
        if not (is_linked or back == 0 or is_device):
            continue
        whole = "_".join((*before[-1:], word))
        if {secret_rule(whole), secret_rule(word)} & {"api-key", "password"}:
            return True
        is_own = is_linked and not (
            back or _OWN.isdisjoint(map(str.lower, before[-_OWN_WORDS_MAX:]))
        )
        is_spared = compile_regex(_SPARED).search(_split_name(whole)) is not None
        if is_own and word.lower() == "key" and not is_spared:
            return True
    return False


# ── Random words ──────────────────────────────────────────────────────────────────────────────────
#
# Long runs of characters that neither people nor compilers write: the pairs of letters are unusual in words, the character
# classes alternate, and the Shannon entropy is high. Hashes, ids, paths, URLs without credentials and images are random too;
# their form or the text before them exempts them.

_WORD = re.compile(
    # The letter of an escaped line break is no part of a word.
    r"(?:(?<=\\[nrtbf])|(?<![A-Za-z0-9_+/-])(?!(?<=\\)[nrtbf]))[A-Za-z0-9_+/-]{24,}+={0,2}",
    re.ASCII,
)
_DRAWN_WORD = r"(?a)[A-Za-z0-9_+/=:.~-]{12,200}"
_SPLIT = re.compile(r"[_+/=-]")
_SEPARATED = str.maketrans("_+/=-", "     ")
_WORD_MIN = 24
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F_-]+", re.ASCII)
_LETTERS = re.compile(r"[a-z]{2,}", re.ASCII)
_LETTER_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", re.ASCII)
_SEAM = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])", re.ASCII)
_DIGIT = re.compile(r"[0-9]", re.ASCII)
_ID_PREFIX = (
    r"(?a)(?:srv)?tool(?:u|use)?_|(?:msg|req|resp|run|thread|asst|call|fc|rs|evt|batch|file|container|"
    r"session|sess|agent|bash|shell|task|org|user|team|prompt|step|chatcmpl|cse|env|cus|price|prod|sub|"
    r"in|pi|ch|dpl|prj|acct|trace|span|job|doc)[_-](?!live|test)"
)
_PUBLIC = (
    # digests, ssh public keys, certificates and public keys in base64, images, documents, fonts
    r"(?a)[Ss][Hh][Aa]\d{1,3}-|AAAA[BCE][A-Za-z0-9]|MII[BCDEFGHI]|MCowBQYDK2V|MFkwEwYH"
    r"|MFYwEAYH|MHYwEAYH|LS0tLS1CRUdJTiBDRVJU|LS0tLS1CRUdJTiBQVUJM|iVBORw0KGgo|/9j/|R0lGOD|"
    # and public keys of Stripe and its like, PostHog, age, Nostr and Bitcoin
    # and ids that are drawn: ULID, content of IPFS, keys of DIDs
    r"0[0-7][0-9A-HJKMNP-TV-Z]{24}\Z|Qm[1-9A-HJ-NP-Za-km-z]{44}\Z|baf[ky][a-z2-7]{50,}\Z|z6Mk[1-9A-HJ-NP-Za-km-z]{44}\Z|"
    r"pk_(?:live|test)_|phc_|age1[a-z0-9]{50}|npub1[a-z0-9]{50}|bc1[a-z0-9]{20}"
    r"|UklGR|PHN2Zy|PD94bWw|JVBERi0|AAABAA|d09GM|d09GR|T2dnUw|SUQz|AAAAIGZ0eX"
)
_DIGEST_BEFORE = (
    r"(?a)(?i:(?:sha-?\d{1,3}|md5|blake\w{1,3}|h1|etag|integrity|checksum|digest|hash|nonce|[a-z_-]{0,20}id|"
    r"uuid|pub(?:lic)?[ _-]?key|cursor|signature|thumbprint|fingerprint)\\{0,3}[\"'`]?\s?[-:=]\s?\\{0,3}[\"'`]?(?:W/)?\\?[\"']?)\Z"
)
_BASE64_BEFORE = r"base64,\s{0,4}\Z"
_PUBLIC_BLOCK = (
    # Lines of base64 between marks that say they are for everybody, also as JSON writes them.
    r"(?a)-----BEGIN ((?:[A-Z0-9]{1,12} ){0,3}(?:PUBLIC KEY(?: BLOCK)?|CERTIFICATE|REQUEST|SIGNATURE|CRL))-----"
    r"(?:[A-Za-z0-9+/=]{1,80}+|[ \t]{1,40}+|\r?\n|\\{1,7}[nr]){1,4000}?-----END \1-----"
)
_LOOK_BACK = 60
_TOKEN_MAX = 300
_SAMPLE = 512
_DIRECTORY_MIN = 3
_BITS_MIN = 3.5
_DISTINCT_MIN = 12
"""Fewer characters have no such entropy: log2 of 11 is 3.46."""
_PART_MIN = 5
_LETTERS_A_TURN = 3
"""Letters per change of case in a name, at least: MyProject."""
_DRAWN_MIN = 20
_DRAWN_SHARE = 0.6
_MARGIN = 0.15
_USUAL_WEIGHT = 1.1
_AWS_SECRET = 40
_DIGEST_MIN = 32
_LONG_PART = 10
_DELIMITERS = frozenset(" \t\r\n\"'`<>()[]{}|,;\\")

_USUAL = """th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me
    de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il
    tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir
    su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag if ap gr
    od bo sp rd do uc bu ei ov by rm ep tt oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um
    pp ua up lu go ht ru ug ds lt pi rc rr eg au ck ew mu br bi pt ak pu ui rg ib tl ny ki rk ys ob mm fu
    ph og ms ye ud mb ip ub oi rl gu dr hr cc tw ft wn nu af hu nn eo vo rv nf xp gn sm fl iz ok nl my gl
    aw ju oa eq sy sl ps jo lf nv je nk kn gs dy hy ze ks xt bs ik dd py rp sk xi oe oy ws lv dl rf eu dg
    wr xa yi nm eb fy js db ql lp tm sq cs ht tp ml xm np yp yn yt ax ox"""
_PAIRS = frozenset(_USUAL.split())
"""Pairs of letters that make up nine in ten of those in English words and identifiers; chance alone
would find them in four of ten."""


def find_random_words(text: str) -> Iterator[Found]:
    """Yield the random words of a text."""
    done = 0
    blocks: list[tuple[int, int]] = []  # certificates and public keys
    if "-----BEGIN " in text:
        blocks = [found.span() for found in compile_regex(_PUBLIC_BLOCK).finditer(text)]
    for found in _WORD.finditer(text):
        start, end = found.span()
        # What was taken out before it says nothing about this one any more.
        if not is_random(found[0]) or _is_public(
            text[max(done, start - _TOKEN_MAX) : start], found[0]
        ):
            continue
        block = bisect.bisect(blocks, (start, end)) - 1
        if block >= 0 and start < blocks[block][1]:
            continue
        yield start, end, "high-entropy"
        done = end


def has_random_words(runs: Iterable[str]) -> bool:
    """Return whether any of these runs of characters contains a random word."""
    return any(
        is_random(word) for run in runs if len(run) >= _WORD_MIN for word in _WORD.findall(run)
    )


def is_random(word: str) -> bool:
    """Return whether a word of 24 or more characters looks random, judged by its first 512.

    Small letters alone, capitals alone, digits and hexadecimal are no evidence.
    """
    sample = word[:_SAMPLE].rstrip("=")
    mixed = _DIGIT.search(sample) is not None or not (sample.islower() or sample.isupper())
    if not mixed or len(set(sample)) < _DISTINCT_MIN or _HEX.fullmatch(sample):
        return False
    return _has_random_parts(sample) and entropy(sample) >= _BITS_MIN and not _is_alphabet(sample)


def is_drawn(value: str) -> bool:
    """Return whether a word beside a key's name is drawn, however short for `is_random`: digits, both cases, no words."""
    if compile_regex(_DRAWN_WORD).fullmatch(value) is None or value.islower() or value.isupper():
        return False
    if compile_regex(_HARMLESS).fullmatch(value) or compile_regex(_PUBLIC).match(value):
        return False
    parts = re.split(r"[^A-Za-z0-9]+", value)
    is_mixed = _DIGIT.search(value) is not None and len(set(value)) >= _KEY_KINDS_MIN
    return is_mixed and sum(map(_score_randomness, parts)) > _MARGIN * sum(map(len, parts))


def _has_random_parts(sample: str) -> bool:
    """Return whether the parts of a word between `-`, `_`, `/` and `+` look drawn.

    They are judged one by one; the random ones must make up twenty characters or more, and most of
    the word. Separators may be part of a draw themselves (base64), so a word of all classes of
    characters may also be random as a whole.
    """
    parts = sample.translate(_SEPARATED).split()
    long = {part: _score_randomness(part) for part in parts if len(part) >= _PART_MIN}
    drawn = [len(part) for part in parts if part in long and _is_random_part(part, long[part])]
    if sum(drawn) >= max(_DRAWN_MIN, _DRAWN_SHARE * len(sample)):
        return True
    if sample.islower() or sample.isupper() or not _DIGIT.search(sample):
        return False
    if len(sample) == _AWS_SECRET and max(drawn, default=0) >= _LONG_PART:
        return True
    # A digest within a name says nothing: `linux-store-5db0…`.
    mixed = [part for part in parts if not (len(part) >= _DIGEST_MIN and _HEX.fullmatch(part))]
    chances = [long[part] if part in long else _score_randomness(part) for part in mixed]
    return sum(chances) > _MARGIN * sum(map(len, parts))


def entropy(word: str) -> float:
    """Shannon entropy in bits per character (Shannon 1948): −Σ p·log2 p."""
    total = len(word)
    shares = [word.count(c) / total for c in set(word)]
    return -math.fsum([share * math.log2(share) for share in shares])


def _is_alphabet(word: str) -> bool:
    """Return whether letters follow the alphabet and are not random: `ABCDEFG…`."""
    steps = [a - b for a, b in itertools.pairwise(word.encode())]
    return steps.count(1) + steps.count(-1) > len(word) // 2


def _is_random_part(part: str, chance: float) -> bool:
    """Return whether one part, free of separators, is more like a draw of characters than like words."""
    return chance > _MARGIN * len(part) and not _HEX.fullmatch(part)


def _score_randomness(part: str) -> float:
    """The evidence that a part was drawn: seams and odd pairs of letters, less the usual pairs.

    camelCase is made of words, so a pair of letters across its humps is no evidence of either.
    """
    if part.isalpha() and part.islower():
        runs, seams = [part], 0
    else:
        humps = part if part.islower() else _LETTER_HUMP.sub(" ", part).lower()
        runs, seams = _LETTERS.findall(humps), len(_SEAM.findall(part))
    pairs = sum(map(len, runs)) - len(runs)
    usual = sum([sum(map(_PAIRS.__contains__, map(operator.add, run, run[1:]))) for run in runs])
    return seams + (pairs - usual) - _USUAL_WEIGHT * usual


def _is_public(before: str, word: str) -> bool:
    """Return whether what stands before a random word, or its own beginning, says that it is no secret."""
    if compile_regex(_PUBLIC).match(word) or compile_regex(_ID_PREFIX).match(word):
        return True
    near = before[-_LOOK_BACK:]
    if compile_regex(_BASE64_BEFORE).search(near) or compile_regex(_DIGEST_BEFORE).search(near):
        return True
    # As much of it as stands there without a space or a quote between.
    return _is_path_or_url(before[max(map(before.rfind, _DELIMITERS)) + 1 :], word)


def _is_path_or_url(before: str, word: str) -> bool:
    """Return whether the word belongs to a path or to a URL, outside its query."""
    whole = before + word
    if "://" in whole:
        return "?" not in before and "#" not in before
    head = whole.split("/", 1)[0]
    if "/" not in whole or not (head == "" or head in {".", "..", "~"} or before):
        return False
    parts = _SPLIT.split(whole)
    return any(_is_name(part) for part in parts if part.isalpha() and len(part) >= _DIRECTORY_MIN)


def _is_name(part: str) -> bool:
    """Return whether letters are what a directory may be called. Of small ones alone a draw seldom has three."""
    if len(part) < _PART_MIN:
        return part.islower()
    turns = len(_SEAM.findall(part))
    return turns * _LETTERS_A_TURN <= len(part) and not _is_random_part(
        part, _score_randomness(part)
    )
