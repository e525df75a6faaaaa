"""A secret goes in every way of writing it, and of two in a sentence both go; what stands around it stays as it was."""

from memd.capture.redact import redact, redact_value
from tests.tables import every_row, read_tables

TABLES = read_tables("capture/redact/views")

ENCODED = r"""
redirect=https%3A%2F%2Fx.example%2Fcb%3Ftoken%3D⟦abc123DEF456ghi⟧
password%3D⟦Tulip83x⟧%26user%3Dbob
password%253D⟦Tulip83x⟧
pass%77ord=⟦Tulip83x⟧
client%5Fsecret=⟦Tulip83xQ9zz⟧
callback?data=%7B%22password%22%3A%22⟦Tulip83x⟧%22%7D
https%3A%2F%2Fbob%3A⟦Tulip83x⟧%40git.example.com%2Frepo.git
Authorization%3A%20Bearer%20⟦abcDEF123456ghiJKL⟧
postgres://admin:⟦p%40ssw0rd⟧@db.internal/app
ssh://ops:⟦Br%C3%BCcke77%21⟧@host.example/srv
https://x.example/cb?access_token=⟦abc%2Fdef%3D%3D⟧
password\u003d⟦Tulip83x⟧\u0026user\u003dbob
&#112;assword: ⟦Tulip83x⟧
ｐａｓｓｗｏｒｄ＝⟦ｔｕｌｉｐ８３ｘ⟧
ＤＢ＿ＰＡＳＳＷＯＲＤ：⟦ｔｕｌｉｐ８３ｘ⟧
das Passwort lautet ⟦Ｓｏｎｎｅ４９⟧
la contraseña es ⟦ｇｉｒａｓｏｌ４９⟧
パスワードは ⟦ｈｕｎｔｅｒ２２⟧ です
密码是 ⟦ｈｕｎｔｅｒ２２⟧。
ｇｈｐ＿⟦16C7e42F292c6912E7710c838347Ae178B4a⟧
postgres：／／admin：⟦ｔｕｌｉｐ８３⟧＠db／app
𝓹𝓪𝓼𝓼𝔀𝓸𝓻𝓭 is ⟦tulip83x⟧
ⓟⓐⓢⓢⓦⓞⓡⓓ = ⟦tulip83x⟧
""".strip().splitlines()
UNSEEN = [
    "la contrasen\u0303a es ⟦girasol49⟧",
    "the pass\u00adword is ⟦tulip83x⟧",
    "p\u200ba\u200bs\u200bs\u200bword=⟦tulip83x⟧",
    "password:\u00a0⟦Marble77x⟧",
]
JOINED = TABLES["JOINED"]
OF_TWO = """
the old password was ⟦Kestrel58⟧, the new one is ⟦Osprey61⟧
the old password was ⟦kestrel⟧, the new one is ⟦osprey⟧
The password used to be ⟦Kestrel58⟧ and is now ⟦Osprey61⟧.
change the password from ⟦hunter2⟧ to ⟦correct4horse⟧
We rotated the password, from ⟦Kestrel58⟧ to ⟦Osprey61⟧, last night
switch the password from "⟦Kestrel58⟧" to "⟦Osprey61⟧"
rotated the db password: ⟦Kestrel58⟧ -> ⟦Osprey61⟧
password ⟦Kestrel58⟧ was replaced by ⟦Osprey61⟧
replace the password ⟦Kestrel58⟧ with ⟦Osprey61⟧
password: ⟦Kestrel58⟧ (was ⟦Osprey61⟧)
the password isn't ⟦Kestrel58⟧ any more, it's ⟦Osprey61⟧ now
⟦Kestrel58⟧ was the old password, ⟦Osprey61⟧ is the new one
the passwords are ⟦Kestrel58⟧ and ⟦Osprey61⟧
the password went from ⟦Marble77x⟧ to ⟦Granit42⟧ this morning
le mot de passe de bob est ⟦Marbre77⟧ et celui d'eve ⟦Granit42⟧
Both passwords, ⟦Marble77x⟧ and ⟦Granit42⟧, work
the password for root is ⟦Kestrel58⟧ and for admin ⟦Osprey61⟧
password=⟦Kestrel58⟧ and the backup one is ⟦Osprey61⟧
set PGPASSWORD=⟦Kestrel58⟧, or pass --password ⟦Osprey61⟧
postgres://app:⟦Kestrel58⟧@db/x, the admin password is ⟦Osprey61⟧
Das Passwort wurde von ⟦Falke58x⟧ auf ⟦Adler61x⟧ umgestellt
Bitte das Passwort ⟦Falke58x⟧ durch ⟦Adler61x⟧ ersetzen
das alte Passwort war ⟦falke⟧, das neue ist ⟦adler⟧
das root-Passwort ist ⟦Falke58x⟧ und das von admin ⟦Adler61x⟧
cambié la contraseña de ⟦halcon58⟧ a ⟦aguila61⟧
la contraseña pasó de ⟦Halcon58⟧ a ⟦Aguila61⟧
la contraseña vieja era ⟦halcon⟧, la nueva es ⟦aguila⟧
Contraseña de root: ⟦Halcon58⟧, y la de maria es ⟦Aguila61⟧
le mot de passe est passé de ⟦Faucon58⟧ à ⟦Aigle61x⟧
l'ancien mot de passe était ⟦faucon⟧, le nouveau est ⟦aigle⟧
Mot de passe : ⟦Faucon58⟧ (ancien), ⟦Aigle61x⟧ (nouveau)
a senha mudou de ⟦Falcao58⟧ para ⟦Aguia61x⟧
""".strip().splitlines()
HARMLESS = r"""
100%20complete
see https://example.com/a%20b/c%2Fd?page=2&sort=name%20asc
token%20count: 12
the password%20field is required
https://example.org/?q=%E5%AF%86%E7%A0%81%E6%98%AF%E4%BB%80%E4%B9%88
ＡＢＣ株式会社のページ（１２３）を見る
パスワードは必須です（８文字以上）
密码长度至少８位
the password policy changed from v1beta1 to v2beta1 for server01 and db02
the password is now longer, from 8chars to 12chars
the password form moved from Page3Login to Page4Login
we migrated the password store from Vault1Server to Vault2Server
Move the password check from login2fa to auth2fa
the password hash moved from sha256 to argon2id
the old password was wrong, the new one is right
the password was reset, the new one is in the vault
das alte Passwort war falsch, das neue ist richtig
la contraseña vieja era incorrecta, la nueva es correcta
l'ancien mot de passe était faux, le nouveau est correct
passwords are hashed with bcrypt and salted
the password is required on host web01x and web02x
Passwort vergessen? Dann von Seite 12a nach Seite 14b
rename the token from accessToken1 to accessToken2
""".strip().splitlines()
HARMLESS_LINES = TABLES["HARMLESS_LINES"]


def split(told):
    """Return a text without the marks around its secrets, and these."""
    secrets = [part.partition("⟧")[0] for part in told.split("⟦")[1:]]
    return told.replace("⟦", "").replace("⟧", ""), secrets


@every_row("told", [*ENCODED, *UNSEEN, *JOINED, *OF_TWO], ids=str)
def test_a_secret_goes_however_it_is_written(told):
    text, secrets = split(told)
    redacted = redact(text)
    assert not [secret for secret in secrets if secret in redacted]
    assert redact(redacted) == redacted


@every_row("text", [*HARMLESS, *HARMLESS_LINES], ids=str)
def test_what_only_is_written_alike_stays(text):
    assert redact(text) == text


def test_what_stands_around_a_decoded_secret_stays_as_it_was_written():
    text = "ﬁnd％20 ｕｓｅｒ＝ｂｏｂ ｐａｓｓｗｏｒｄ＝ｔｕｌｉｐ８３ｘ 終わり"
    assert (
        redact(f"①\n{text}\n②")
        == f"①\n{text.replace('ｔｕｌｉｐ８３ｘ', '[REDACTED:password]')}\n②"
    )
    assert redact("a%2Fb?next=%2F%3Fpassword%3DTulip83x%26c%3Dd") == (
        "a%2Fb?next=%2F%3Fpassword%3D[REDACTED:password]%26c%3Dd"
    )
    assert (
        redact("ls \\\n  -l; mysql -pTulip83x \\\n  db")
        == "ls \\\n  -l; mysql -p[REDACTED:cli-password] \\\n  db"
    )


def test_the_name_of_a_field_may_be_in_full_width_letters():
    assert redact_value({"ｐａｓｓｗｏｒｄ": "x9"}) == {"ｐａｓｓｗｏｒｄ": "[REDACTED:password]"}


def test_a_run_of_digits_that_is_no_text_in_hexadecimal_is_left_at_once():
    assert redact("7" * 501) == "7" * 501
