r"""Names that hold secrets, and values that only refer to one. Pure.

A name is judged by its end: `DB_PASSWORD`, `clientSecret` and `x-api-key` hold a secret, `token_count`,
`secret_name` and `nextPageToken` do not.
"""

import functools

from memd.capture.patterns import PLACEHOLDER, compiled

NAMING_WORDS = (
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "auth",
    "cookie",
    "jwt",
    "bearer",
    "mnemonic",
    "seed",
)
"""One of them is in every name that holds a secret."""
_SQUASH = r"[^a-z0-9]+"
_SUFFIX = (
    r"(?<=[a-z])(?:\d+|v\d|prod|production|staging|stage|dev|test|live|old|new|base|value|plain|"
    r"b64|base64|hex|confirm|confirmation|again|primary|secondary|backup|default|main)\Z"
)
_HOLDS = (
    r"(?P<password>passw(?:or)?d|passwords?hash|passphrase|pwd|mnemonic|seedphrase|"
    r"(?:db|database|user|admin|root|mysql|postgres|pg|redis|smtp|mail|email|ftp|ssh|mongo|sql|ldap|"
    r"login|sudo|proxy)pass)\Z"
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
_ASKED = (
    r"(?:show|hide|toggle|forgot|reset|change|is|has|require|requires|needs|use|ask|prompt)"
)
# Whole words only: `isPassword` and `a_token` hold none, but `REDIS_PASSWORD` and `GITEA_TOKEN` do.
_SPARED = (
    rf"(?:\A|_)(?:{_ASIDE}_?){{1,3}}token(?:_|\Z)|(?:\A|_){_ASKED}_?(?:password|secret|token|api_?key)\Z"
    r"|(?:\A|_)public(?:_[a-z0-9_]*)?key\Z|(?:\A|_)(?:primary|foreign|sort|cache|map|dict)_?key\Z"
)
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+"
_NAME_MAX = 120
_NAMES_CACHED = 1_024
"""The keys of payloads are the same few all the time."""
_REFERENCE_MAX = 400
_REFERENCE = (
    r"(?s)\$\{[^{}\"'-]*\}|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|\$\(.*|\$\{\{.*\}\}"
    r"|%\w+%|%\(\w+\)s|%[a-z]|\{\{.*\}\}|\{[A-Za-z_][\w.!:\[\]'\" ()]*\}|\{\}|<[^<>]*>|\[[A-Za-z _-]*\]"
    r"|[*•.…#?_\s-]+|[xX]{3,}"
    r"|(?i:none|null|nil|undefined|true|false|yes|no|required|optional|n/?a|\[?(?:redacted|hidden|masked|filtered)\]?"
    r"|empty|unset|missing|omitted|todo|fixme|placeholder|bearer|basic|string|str|bytes|text|number|secretstr"
    r"|boolean|bool|int|any|object|replace[-_ ]?me|(?:(?:insert|enter|put)[-_ ])?your[-_ ][a-z_ -]+)"
)


def secret_rule(name: str) -> str | None:
    """Which rule says that this name holds a secret: `password`, `token`, …; None if it does not.

    >>> secret_rule("clientSecret"), secret_rule("token_count")
    ('secret', None)
    """
    return _judged(name[-_NAME_MAX:])


@functools.lru_cache(maxsize=_NAMES_CACHED)
def _judged(name: str) -> str | None:
    if name == "_auth":  # .npmrc
        return "secret"
    bare = squashed(name)
    if not any(word in bare for word in NAMING_WORDS):
        return None
    secret = compiled(_HOLDS)
    found = secret.search(bare) or secret.search(compiled(_SUFFIX).sub("", bare))
    if found is None or found.lastgroup is None:
        return None
    words = compiled(_HUMP).sub("_", name).lower().strip("_")
    if compiled(_SPARED).search(words):
        return None
    return "api-key" if found.lastgroup == "key" else found.lastgroup


def squashed(name: str) -> str:
    """The name in lower case without what joins its words: `x-api-key` is `xapikey`."""
    return compiled(_SQUASH).sub("", name.lower())


def is_reference(value: str) -> bool:
    """Whether a value only points at a secret, or stands where one would be."""
    bare = value.strip()
    if not bare or not compiled(PLACEHOLDER).sub("", bare):
        return True
    return len(bare) <= _REFERENCE_MAX and compiled(_REFERENCE).fullmatch(bare) is not None


def is_directory(name: str, value: str) -> bool:
    """`PWD=/home/dev` is where a shell stands, not a password."""
    return name.lower() in {"pwd", "oldpwd"} and value[:1] in {"/", "~", ".", "$"}
