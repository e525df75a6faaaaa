r"""Headers, URLs with credentials, command-line flags and other formats that carry a secret (data).

As in `tokens`, only the last group of a regex is redacted, so that the text around a password stays:
`postgres://user:[REDACTED:database-url]@host`.
"""

from memd.capture.redact.tokens import EDGE, WORD_EDGE, Pattern

# A table with a row per secret: name, regex, needles, flags.
# fmt: off
FORMATS: tuple[Pattern, ...] = (
    Pattern("jwt",
            WORD_EDGE
            + r"eyJ[A-Za-z0-9_-]{8,}+\.(?:eyJ)?[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){1,3}",
            ("eyJ",)),
    # "-----BEGIN " in base64, unless a certificate or a public key follows.
    Pattern("base64-private-key",
            r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJMSUMg)[A-Za-z0-9+/_-]{20,}={0,2}",
            ("LS0tLS1CRUdJTi",)),
    Pattern("putty-private-key",
            r"(?s:PuTTY-User-Key-File-\d.*?(?:Private-MAC: ?[0-9a-f]{8,}|\Z))",
            ("PuTTY-User-Key-File",)),
    # As `url-password`, but here a slash may stand in the password.
    Pattern("database-url",
            r"(?i:(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|clickhouse)"
            r"(?:\+[a-z0-9]{1,16})?)://[^\s:/@\"'`<>]{0,128}:(?!\d{1,5}/)(?P<s>[^\s\"'`<>]{1,256})"
            r"@(?=[\w.\[({$%-])", ("://",), folded=True, references=True),
    Pattern("url-password",
            r":(?://|\\/\\/)[^\s:/@\"'`<>?#\\]{0,128}:(?P<s>[^\s/\"'`<>?#]{1,256})@(?=[\w.\[({$%-])",
            ("://", ":\\/\\/"), folded=True, references=True),
    Pattern("url-token", r"://(?P<s>[A-Za-z0-9_-]{20,256})@(?=[\w.\[-])",
            ("://",), folded=True),
    # The same, percent-encoded: an address within the query of another.
    Pattern("encoded-url-password",
            r"(?i:%3A%2F%2F)(?:[A-Za-z0-9_.~*+-]|%(?!3A|40|2F|3a|2f)[0-9A-Fa-f]{2}){0,128}(?i:%3A)"
            r"(?P<s>(?:[A-Za-z0-9_.~!*'()+-]|%(?!40|2F|2f)[0-9A-Fa-f]{2}){1,256})%40",
            ("%3a%2f%2f",), folded=True, begins=True, gate="%40", references=True),
    # Such a URL grants access to anyone until it expires.
    Pattern("signed-url",
            r"(?i:x-(?:amz|goog)-(?:signature|security-token))(?:=|%3[Dd])(?P<s>[A-Za-z0-9%+/_-]{20,}=*)",
            ("x-amz-", "x-goog-"), folded=True, begins=True, run=20),
    # The formats of crypt(3); a weak password is soon recovered from its hash.
    Pattern("password-hash",
            r"\$(?:[156y7]|2[abxy]?|argon2(?:id?|d))\$(?P<s>[A-Za-z0-9./,=$+]{20,256})",
            ("$1$", "$5$", "$6$", "$7$", "$y$", "$2$", "$2a$", "$2b$", "$2x$", "$2y$", "$argon2"),
            folded=True, begins=True, gate="$"),
    Pattern("authorization",
            r"(?i:authorization|x-auth)[\w-]{0,20}\\{0,7}[\"'`]?\]?\s{0,4}[:=,]\s{0,4}"
            r"[frb]{0,2}\\{0,7}[\"'`]?"
            r"(?:(?i:digest|aws4-hmac-sha256)\s{1,4}(?P<s>[^\r\n]{8,})"
            r"|(?i:bearer|basic|token|apikey|bot|negotiate|key|ntlm)\s{1,4}(?P<t>[^\s\"'`\\,;]{3,}))",
            ("authorization", "x-auth"), folded=True, begins=True, references=True),
    Pattern("authorization-value",
            r"(?i:authorization|x-auth)[\w-]{0,20}\\{0,7}[\"'`]?\]?\s{0,4}[:=]\s{0,4}"
            r"[frb]{0,2}\\{0,7}[\"'`]?(?P<s>(?=[A-Za-z._~+/=-]{0,256}\d)[A-Za-z0-9._~+/=-]{8,})(?![\w(\[])",
            ("authorization", "x-auth"), folded=True, begins=True, references=True),
    Pattern("bearer-token",
            EDGE
            + r"(?i:bearer\\{0,7}[\"']?\s{1,4}\\{0,7}[\"']?)(?P<s>(?=[A-Za-z._~+/=-]{0,256}\d)[A-Za-z0-9._~+/=-]{12,})",
            ("bearer",), folded=True, begins=True, references=True),
    Pattern("cookie",
            r"(?i:cookie2?)\\{0,7}[\"'`]?\s{0,4}[:=]\s{0,4}\\{0,7}[\"'`]?"
            r"(?P<s>[\w!#$%&*+.^|~-]{1,128}=(?>(?:[^\r\n\"'`\\]|\\[0-7]{3}|[\"'](?=[^\s,)}\]]))*))",
            ("cookie",), folded=True, begins=True, references=True),
    Pattern("curl-user",
            r"(?<![\w-])(?:-u|-U|--user|--proxy-user)[ =]{0,4}\\{0,7}[\"']?[^\s:\"'\\]{1,128}:(?!\d+\b)"
            r"(?P<s>[^\s\"'\\]{1,256})",
            ("curl", "wget", "-user"), folded=True, gate="-u", references=True),
    Pattern("cli-password",
            EDGE + r"(?:mysql(?:dump|admin|import)?\b[^\n|;&]{0,200}?\s-p|sshpass\s{1,4}-p\s{0,4}"
            r"|redis-cli\b[^\n|;&]{0,200}?\s-a\s{1,4})[\"']?(?P<s>[^\s\"'\\]{1,256})",
            ("mysql", "sshpass", "redis-cli"), folded=True, references=True),
    Pattern("netrc", EDGE + r"login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(?P<s>\S{1,256})",
            ("machine ", "default "), folded=True, gate="login", references=True),
    Pattern("sql-password",
            EDGE + r"(?i:identified\s{1,4}by|password)\s{1,4}'(?P<s>[^'\n]{1,256})'",
            ("identified", "password '"), folded=True, gate="'", references=True),
    Pattern("xml-secret",
            r"(?i:<([\w:.-]{0,40}(?:password|passwd|secret|token|api-?key))(?:\s[^<>]{0,100})?>)"
            r"(?P<s>[^<>\n]{1,512})</", ("</",), folded=True, gate="<", references=True),
    # Two fields that belong together: `name: DB_PASSWORD`, `value: …`; `key="…" value="…"`.
    Pattern("named-value",
            EDGE + r"(?i:(?:name|key)\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?[\w.:-]{0,60}"
            r"(?:password|passwd|secret|token|api_?key)\\{0,7}[\"']?(?:[,\s]|\\{1,7}[nrt]){1,40}\\{0,7}[\"']?value"
            r"\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?)(?P<s>[^\s\"',<>}\\]{1,512})",
            ("value:", "value=", 'value"', "value\\"), folded=True, gate="value",
            references=True),
)
"""Tried after the tokens, whose names are more specific."""
