r"""Headers, URLs with credentials, command-line flags and other formats that carry a secret (data).

As in `tokens`, only the last group of a regex is redacted, so that the text around a password stays:
`postgres://user:[REDACTED:database-url]@host`.
"""

import base64
import binascii

from memd.capture.redact.names import is_likely_secret, is_reference
from memd.capture.redact.tokens import EDGE, WORD_EDGE, Pattern


def is_login(coded: str) -> bool:
    """Whether this is base64 of `user:password`."""
    try:
        plain = base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(b":")
    return bool(colon and user and password) and all(c >= 32 for c in plain)  # noqa: PLR2004


def _is_given(value: str) -> bool:
    """Whether a value in quotes is a secret: more than a sign or a template."""
    return len(value) > 2 and not is_reference(value) and value[0] not in "$%{:?"  # noqa: PLR2004


def _is_password(value: str) -> bool:
    """Whether a value is a secret where hardly anything else stands: also a plain word."""
    is_word = value.isalpha() and value.isascii() and value.islower() and len(value) > 4  # noqa: PLR2004
    return is_likely_secret(value) or (is_word and not is_reference(value))


_NAME = r"(?:pass(?:word|wd|code|phrase|wort)?|pwd|pw|secret|token|api[ _-]?key|contraseña|senha|kennwort)"
_STRING = r"\\{0,3}[\"'`](?P<s>[^\"'`\n\\]{3,200})\\{0,3}[\"'`]"
_WORD_STRING = r"\\{0,3}[\"'`](?P<s>[^\s\"'`\\]{3,200})\\{0,3}[\"'`]"
_ANY_STRING = r"@?\\{0,3}[\"'`][^\"'`\n\\]{0,200}\\{0,3}[\"'`]"

# A table with a row per secret: name, regex, needles, flags.
# fmt: off
_FORMS = (
    # The field first, as in Playwright and Selenium: a locator, then .fill or .send_keys.
    Pattern("form-field",
            r"(?i:" + _NAME + r"[\w \]=#.-]{0,24}\\{0,3}[\"'`\])/i]{0,8}(?:\s{0,4}\)\s{0,4}\.\s{0,4}(?:fill|type|send_?keys|set_?value|"
            r"pressSequentially|set|val|clear_and_type)\(\s{0,4}))" + _STRING,
            ("fill(", "type(", "keys(", "value(", "sequentially(", ".set(", ".val("),
            folded=True, named=True, gate=("(",), check=_is_given),
    Pattern("form-option",
            r"(?i:" + _NAME + r"[\w \]=#.-]{0,24}\\{0,3}[\"'`\])/i]{0,8},\s{0,4}(?:with:|\{\s{0,4}target:\s{0,4}\{\s{0,4}value:)\s{0,4})"
            + _STRING, ("with:", "target:"), folded=True, named=True, gate=(":",), check=_is_given),
    # The verb first: fill or type, then the field, then the value.
    Pattern("form-fill",
            r"(?i:(?:fill|type|set_?value|send_?keys|input|fillfield|enter_?text)\(\s{0,4}[^,;\n]{0,80}?" + _NAME
            + r"[^,;\n]{0,30},\s{0,4})" + _STRING,
            ("fill(", "type(", "setvalue(", "set_value(", "send_keys(", "sendkeys(", "input(", "fillfield(", "enter_text(", "entertext("),
            folded=True, begins=True, named=True, gate=("(",), check=_is_given),
    Pattern("html-input",
            r"(?i:<input\b(?=[^<>]{0,400}\b(?:type|name|id)=\\{0,3}[\"']?[\w-]{0,30}" + _NAME + r")[^<>]{0,400}?\svalue="
            r"\\{0,3}[\"']?)(?P<s>[^\s\"'<>\\{}]{3,200})", ("<input",), folded=True, named=True, begins=True, references=True),
    Pattern("labelled-value",
            r"(?i:>[\w \t]{0,24}" + _NAME + r"\s{0,4}:?\s{0,4}</[\w]{1,10}>\s{0,40}(?:<[\w]{1,10}(?:\s[^<>]{0,80})?>\s{0,40}){0,2})"
            r"(?P<s>[^\s<>]{4,200})", ("</",), folded=True, named=True, gate=(">",), check=is_likely_secret),
    Pattern("xml-property",
            r"(?i:<\w{1,30}\s[^<>]{0,80}\b(?:name|key|id)=[\"'][\w.:-]{0,80}(?:password|passwd|secret|token|api_?key)[\"'][^<>]{0,80}>(?:\s{0,40}<value>\s{0,40})?)"
            r"(?P<s>[^<>\n]{1,200})</", ("</",), folded=True, named=True, gate=("=",), references=True),
    Pattern("field-value",
            r"(?i:\\{0,3}[\"'](?:selector|element|name|label|id|field|placeholder|target|locator)\\{0,3}[\"']\s{0,4}:\s{0,4}\\{0,3}[\"']"
            r"[^\"'\n\\]{0,60}" + _NAME + r"[^\"'\n\\]{0,30}\\{0,3}[\"'](?:\s{0,9},\s{0,9}\\{0,3}[\"']\w{1,20}\\{0,3}[\"']\s{0,4}:\s{0,4}"
            r"(?:\\{0,3}[\"'][^\"'\n\\]{0,60}\\{0,3}[\"']|[\w.]{1,20})){0,5}?\s{0,9},\s{0,9}\\{0,3}[\"'](?:value|text|content)\\{0,3}[\"']"
            r"\s{0,4}:\s{0,4})" + _WORD_STRING, ('"value', '"text', '"content', "'value", "'text"), folded=True, named=True, gate=(":",),
            check=is_likely_secret),
    Pattern("textbox", r"(?i:textbox\s\\{0,3}\"[^\"\n\\]{0,40}" + _NAME + r"[^\"\n\\]{0,30}\\{0,3}\"(?:\s\[[^\]\n]{0,40}\]){0,4}:\s)"
            r"(?P<s>[^\s\"\\]{3,200})", ("textbox",), folded=True, named=True, begins=True, check=is_likely_secret),
    Pattern("terraform-default",
            r"(?i:(?:variable|output)\s{1,4}\"[\w-]{0,60}(?:password|passwd|pass|pwd|secret|token|_key)\"\s{0,4}\{[^{}]{0,400}?"
            r"\b(?:default|value)\s{0,20}=\s{0,4})\"(?P<s>(?:[^\"\n$]|\$(?!\{)){3,256})\"",
            ("variable", "output"), folded=True, named=True, begins=True, references=True),
    Pattern("field-default",
            r"(?i:\b" + _NAME + r"\b[^\n=\"']{0,40}=\s{0,4}(?:\w{1,20}\.)?(?:Field|field|Column|Option|Setting)\([^()\n]{0,60}?default\s{0,2}=\s{0,2})"
            + _STRING, ("default=", "default ="), folded=True, named=True, gate=("default",), check=is_likely_secret),
)
"""Passwords that are typed into forms, and defaults of declared ones."""

_LOGINS = (
    Pattern("basic-credentials", EDGE + r"(?i:basic)\s{1,4}(?P<s>[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])",
            ("basic ",), folded=True, begins=True, check=is_login),
    Pattern("docker-auth", r"\"auth\\{0,7}\"\s{0,4}:\s{0,4}\\{0,7}\"(?P<s>[A-Za-z0-9+/]{8,}={0,2})\\{0,7}\"",
            ('"auth',), folded=True, named=True, begins=True, check=is_login),
    Pattern("auth-pair", r"\bauth\s{0,4}[=:]\s{0,4}[(\[]\s{0,4}" + _ANY_STRING + r"\s{0,4},\s{0,4}" + _STRING,
            ("auth",), folded=True, named=True, begins=True, gate=(",",), check=_is_given),
    Pattern("auth-call",
            r"(?:[Bb]asic_?[Aa]uth|[Dd]igest_?[Aa]uth|NTLMAuth|\.auth|[Cc]redentials?|\bauthenticate|AndPassword)\(\s{0,4}(?:\w{1,30},\s{0,4})?"
            + _ANY_STRING + r"\s{0,4},\s{0,4}" + _STRING,
            ("auth(", "credential(", "credentials(", "authenticate(", "password("), folded=True, named=True, gate=("(",),
            check=_is_password),
    Pattern("login-call", r"(?:\b[Ss]ign_?[Ii]n|\b[Ll]og_?[Ii]n)\(\s{0,4}(?:\w{1,30},\s{0,4})?"
            + _ANY_STRING + r"\s{0,4},\s{0,4}" + _STRING,
            ("login(", "log_in(", "signin(", "sign_in("), folded=True, gate=("(",),
            check=is_likely_secret),
    Pattern("connect-call",
            r"(?:[Cc]onnect|mysqli|PDO|[gG]etConnection|[cC]reateConnection|Sequelize|create_user|create_superuser|createUser)\(\s{0,4}(?:"
            + _ANY_STRING + r"\s{0,4},\s{0,4}){2}" + _STRING,
            ("connect(", "connection(", "mysqli(", "pdo(", "sequelize(", "user("), folded=True, gate=("(",), check=is_likely_secret),
    Pattern("signing-call",
            r"(?:\bjwt\.(?:sign|encode|verify|decode)\(\s{0,4}[^,\n\"']{1,80},\s{0,4}|\bcreateHmac\(\s{0,4}" + _ANY_STRING
            + r"\s{0,4},\s{0,4}|\bhmac\.new\(\s{0,4}b?|\b(?:bcrypt|argon2|Bcrypt)\.\w{0,12}(?:hash|Hash|compare|verify|hashpw)\w{0,8}\(\s{0,4}b?|"
            r"\b(?:make_password|generate_password_hash|password_hash|password_verify|hash_password)\(\s{0,4}"
            r"|\bcheck_password_hash\(\s{0,4}\w{1,40},\s{0,4})" + _STRING,
            ("jwt.", "hmac", "bcrypt.", "argon2.", "password(", "password_hash(", "password_verify("), folded=True, gate=("(",),
            check=_is_password),
    Pattern("secure-string", r"(?i:ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?)" + _STRING,
            ("convertto-securestring",), folded=True, begins=True, check=_is_given),
    Pattern("oracle-login",
            r"(?i:(?:\b(?:sqlplus|expdp|impdp|rman|sqlldr)\b[^\n|;]{0,80}?[\s\"']|:(?:thin|oci8?):))[\w$#.-]{1,40}/\\{0,3}[\"']?"
            r"(?P<s>[^\s@/\"'$\\]{1,64})\\{0,3}[\"']?@",
            ("sqlplus", "expdp", "impdp", "rman", "sqlldr", ":thin:", ":oci"), folded=True, gate=("@",), references=True),
    Pattern("expected-password",
            r"(?i:assw(?:or|d)[^\n]{0,40}\n?\s{0,8}(?:exp_)?send\s{1,4}(?:--\s{1,4})?\")(?P<s>[^\"\\\n]{3,128})",
            ("assword",), folded=True, named=True, begins=True, gate=("send",), check=_is_given),
    Pattern("password-command", r"(?i:pass(?:word|phrase)?-?command[= ]{1,3}\\{0,3}[\"']?echo\s{1,4})(?P<s>[^\s\"'\\]{3,128})",
            ("command",), folded=True, named=True, gate=("echo",), check=_is_given),
    # A terminal in which the password was typed visibly, or was pasted with its prompt.
    Pattern("prompted-password",
            r"(?i:(?:password|passphrase) for [^\n:]{1,60}?(?::| is)[ \t]{1,4})(?P<s>[^\s\"']{4,128})(?=[ \t]*(?:\r?\n|\Z))",
            ("password for", "passphrase for"), folded=True, named=True, begins=True, check=is_likely_secret),
    Pattern("redis-login", r"(?m)^(?:[\w.:\[\]-]{0,40}>)?[ \t]{0,4}AUTH (?:\w{1,30} )?(?P<s>[^\s\"']{5,128})[ \t]*$",
            ("auth ",), folded=True, named=True, check=is_likely_secret),
    # user / password, user:password after a word for both
    Pattern("login-pair",
            r"(?i:\b(?:credentials?|creds|logins?|log in (?:with|as)|sign in (?:with|as)|zugangsdaten|identifiants|credenciales|"
            r"user(?:name)?/pass(?:word)?)(?: are| is)?\s{0,2}:?\s{1,4}[\"'`]?)[\w.@+-]{2,60}(?:\s?/\s?|:)(?P<s>[^\s\"'`,;/]{5,128})",
            ("credential", "creds", "login", "log ", "sign ", "zugangsdaten", "identifiants", "credenciales", "user/pass",
             "username/pass"), folded=True, begins=True, gate=("/", ":"), check=is_likely_secret),
    Pattern("login-word",
            r"(?i:\b(?:user(?:name)?|login|root|admin)\b[^\n]{0,40}\b(?:pass|pw)(?:\s?[:=]\s?|\s))(?P<s>[^\s\"'`,;&]{5,128})",
            ("user", "login", "root", "admin"), folded=True, begins=True, named=True, gate=("pass", "pw"), check=is_likely_secret),
)
"""A user and a password together, and what is signed or encrypted with one."""

_RECORDS = (
    Pattern("pgpass", r"(?m)^[ \t]{0,8}[\w.*-]{1,128}:(?:\d{2,5}|\*):[A-Za-z_*][\w*-]{0,63}:[\w*.-]{1,63}:(?P<s>[^\s:]{4,128})$",
            (":543", ":6432:", ":*:"), folded=True, check=_is_password),
    Pattern("passwd-line", r"(?m)^[a-z_][\w-]{0,31}:(?P<s>[^:\s*!]{4,64}):\d{1,6}:\d{1,6}:[^:\n]{0,60}:/", (":/bin/", ":/usr/", ":/sbin/"),
            folded=True, gate=(":/",), check=is_likely_secret),
    Pattern("ldap-hash", r"\{(?:S?SHA(?:256|512)?|SMD5|CRYPT)\}(?P<s>[A-Za-z0-9+/=$.]{16,})", ("sha", "smd5}", "crypt}"),
            folded=True, gate=("{",)),
    Pattern("static-login", r"\bstatic:[^:\s]{1,64}:(?P<s>[^\s:]{4,128})", ("static:",), folded=True, begins=True,
            check=is_likely_secret),
    Pattern("session-cookie",
            r"(?i:\b(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|laravel_session|_?[a-z]{1,30}_session|sessionid|csrftoken|"
            r"__secure-[\w.-]{1,40}|__host-[\w.-]{1,40}))=(?P<s>(?=[A-Za-z_.%+-]{0,200}\d)[A-Za-z0-9%+/=_.:-]{16,512})(?![(\[])",
            ("sessid=", "sessionid=", "_session=", "connect.sid=", "csrftoken=", "__secure-", "__host-"), folded=True, gate=("=",),
            check=is_likely_secret),
    Pattern("cookie-file",
            r"(?m)^(?:#HttpOnly_)?[\w.-]{3,128}\t(?:TRUE|FALSE)\t/[^\t\n]{0,128}\t(?:TRUE|FALSE)\t\d{1,16}\t[^\t\n]{1,128}\t(?P<s>[^\t\n]{4,2048})",
            ("false\n", "true\n"), folded=True),
    Pattern("cookie-object",
            r"(?:(?:domain|httpOnly|sameSite|path|cookies)\\{0,3}[\"']?\s{0,2}:[^{}\n]{0,200}|(?i:cookies?)\\{0,3}[\"']?\s{0,2}[:(]{1,2}\s{0,4}\[?\s{0,4}\{\s{0,4})"
            r"\\{0,3}[\"']?name\\{0,3}[\"']?\s{0,2}:\s{0,2}\\{0,3}[\"'][^\"'\n\\]{1,80}\\{0,3}[\"'],\s{0,9}\\{0,3}[\"']?value\\{0,3}[\"']?\s{0,2}:\s{0,2}"
            r"\\{0,3}[\"'](?P<s>[^\"'\n\\]{8,2048})",
            ("name",), folded=True, gate=("value",), check=_is_given),
    Pattern("cookie-member",
            r"\\{0,3}[\"']?name\\{0,3}[\"']?\s{0,2}:\s{0,2}\\{0,3}[\"'][^\"'\n\\]{1,80}\\{0,3}[\"'],\s{0,9}\\{0,3}[\"']?value\\{0,3}[\"']?\s{0,2}:\s{0,2}"
            r"\\{0,3}[\"'](?P<s>[^\"'\n\\]{8,2048})(?=\\{0,3}[\"'],[^{}\n]{0,200}(?:httpOnly|sameSite|\"domain\\{0,3}\"))",
            ("httponly", "samesite", '"domain'), folded=True, gate=("value",), check=_is_given),
    Pattern("hex-private-key",
            r"(?i:\b(?:wallet|private[ _-]?key\w{0,20}|accounts|signer|keypair)\b[\"']?\s{0,2}[(:=\[]{0,2}\s{0,4}\[?\s{0,4}[\"']?)(?:0x)?(?P<s>[0-9a-fA-F]{64})(?![0-9a-fA-F])",
            ("wallet", "private", "accounts", "signer", "keypair"), folded=True, run=64),
    Pattern("wallet-import-key", EDGE + r"(?i:WIF)\W{1,4}(?P<s>[5KL9c][1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
            ("wif",), folded=True, run=50),
)
"""Lines and objects of known files: password files, cookies, wallets."""

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
            r":(?://|\\/\\/)[^\s:/@\"'`<>?#\\]{0,128}:(?!\d{1,5}[?#])(?P<s>[^\s/\"'`<>]{1,256})@(?=[\w.\[({$%-])",
            ("://", ":\\/\\/"), folded=True, references=True),
    Pattern("url-token", r"://(?P<s>[A-Za-z0-9_-]{20,256})@(?=[\w.\[-])",
            ("://",), folded=True),
    # The same, percent-encoded: an address within the query of another.
    Pattern("encoded-url-password",
            r"(?i:%3A%2F%2F)(?:[A-Za-z0-9_.~*+-]|%(?!3A|40|2F|3a|2f)[0-9A-Fa-f]{2}){0,128}(?i:%3A)"
            r"(?P<s>(?:[A-Za-z0-9_.~!*'()+-]|%(?!40|2F|2f)[0-9A-Fa-f]{2}){1,256})%40",
            ("%3a%2f%2f",), folded=True, begins=True, gate=("%40",), references=True),
    # Such a URL grants access to anyone until it expires.
    Pattern("signed-url",
            r"(?i:x-(?:amz|goog)-(?:signature|security-token))(?:=|%3[Dd])(?P<s>[A-Za-z0-9%+/_-]{20,}=*)",
            ("x-amz-", "x-goog-"), folded=True, begins=True, run=20),
    # The formats of crypt(3); a weak password is soon recovered from its hash.
    Pattern("password-hash",
            r"\$(?:[156y7]|2[abxy]?|apr1|argon2(?:id?|d))\$(?P<s>[A-Za-z0-9./,=$+]{20,256})",
            ("$1$", "$apr1$", "$5$", "$6$", "$7$", "$y$", "$2$", "$2a$", "$2b$", "$2x$", "$2y$", "$argon2"),
            folded=True, begins=True, gate=("$",)),
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
            ("cookie",), folded=True, begins=True, gate=("=",), references=True),
    Pattern("curl-user",
            r"(?<![\w-])(?:-u|-U|--user|--proxy-user)[ =]{0,4}\\{0,7}[\"']?[^\s:\"'\\]{1,128}:(?!\d+\b)"
            r"(?P<s>[^\s\"'\\]{1,256})",
            ("curl", "wget", "-user"), folded=True, gate=("-u",), references=True),
    Pattern("cli-password",
            EDGE + r"(?:mysql(?:dump|admin|import)?\b[^\n|;&]{0,200}?\s-p|sshpass\s{1,4}-p\s{0,4}"
            r"|redis-cli\b[^\n|;&]{0,200}?\s-a\s{1,4})[\"']?(?P<s>[^\s\"'\\]{1,256})",
            ("mysql", "sshpass", "redis-cli"), folded=True, references=True),
    Pattern("netrc", EDGE + r"login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(?P<s>\S{1,256})",
            ("machine ", "default "), folded=True, named=True, gate=("login",), references=True),
    Pattern("sql-password",
            EDGE + r"(?i:identified\s{1,4}(?:with\s{1,4}[\"'\w]{1,40}\s{1,4})?by|password)\s{1,4}(?:'(?P<s>[^'\n]{1,256})'"
            r"|\"(?P<t>[^\s\"]{3,256})\")",
            ("identified", "password\n"), folded=True, references=True),
    Pattern("identified-by", r"(?i:identified\s{1,4}by\s{1,4})(?P<s>[^\s\"';,()]{4,128})",
            ("identified",), folded=True, begins=True, check=is_likely_secret),
    Pattern("sql-function",
            r"(?i:\b(?:password|crypt|pgp_sym_encrypt|aes_encrypt|md5|sha2|encode)\(\s{0,4}|pragma\s{1,4}\w{0,6}key\s{0,4}=\s{0,4})'(?P<s>[^'\n]{4,128})'",
            ("password('", "crypt('", "pragma", "encrypt('", "md5('", "sha2('"), folded=True, check=is_likely_secret),
    Pattern("xml-secret",
            r"(?i:<([\w:.-]{0,40}(?:password|passwd|passphrase|pass|pwd|pw|secret|token|api-?key))(?:\s[^<>]{0,100})?>)"
            r"\s{0,80}(?P<s>[^<>\s](?:[^<>\n]{0,510}[^<>\s])?)\s{0,80}</", ("</",), folded=True, named=True, gate=("<",), references=True),
    # Two fields that belong together: `name: DB_PASSWORD`, `value: …`; `key="…" value="…"`.
    Pattern("named-value",
            EDGE + r"(?i:(?:name|key)\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?[\w.:-]{0,60}"
            r"(?:password|passwd|secret|token|api_?key)\\{0,7}[\"']?(?:[,\s]|\\{1,7}[nrt]){1,40}\\{0,7}[\"']?value"
            r"\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}\\{0,7}[\"']?)(?P<s>[^\s\"',<>}\\]{1,512})",
            ("value:", "value=", 'value"', "value\\"), folded=True, named=True, gate=("value",),
            references=True),
    *_FORMS,
    *_LOGINS,
    *_RECORDS,
)
"""Tried after the tokens, whose names are more specific."""
