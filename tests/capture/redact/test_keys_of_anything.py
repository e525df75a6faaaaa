"""A key with any prefix, or for anything, is a secret if its value is drawn, and stays readable if it is a name."""

import pytest

from memd.capture.redact import redact, redact_value

DRAWN = ("hV3wKq90ZtXb", "tn-pay:4c:ZX/3k+wQd9==:b62", "9b2e61d0c47fa8351e0d7c92b6f4a8e3")
ASSIGNED = ("TILES_KEY={}", "export Fax_Key2='{}'", 'pager_key = "{}"', "mailer-key: {}", '"gateKey": "{}"')  # fmt: skip
TOLD = (
    "key for the invoice robot: {}",
    "the token for our mirror is {}",
    "licence key for the plotter: {} and put it into the box",
    "here is the key i made for the ferry page: osm {}",
    "der Schlüssel für den Druckdienst ist {}",
)


@pytest.mark.parametrize("value", DRAWN)
@pytest.mark.parametrize("form", [*ASSIGNED, *TOLD])
def test_a_drawn_value_of_any_key_is_a_secret(form, value):
    text = redact(form.format(value))
    assert value not in text
    assert "[REDACTED:" in text
    assert redact(text) == text


@pytest.mark.parametrize("value", DRAWN)
def test_so_is_one_in_an_object(value):
    found = redact_value({"env": {"TILES_KEY": value, "SORT_KEY": "opened_at"}})
    assert found == {"env": {"TILES_KEY": "[REDACTED:api-key]", "SORT_KEY": "opened_at"}}


@pytest.mark.parametrize(
    "text",
    [
        "SORT_KEY=opened_at2",
        "CACHE_KEY=order:77:lines",
        "GROUP_KEY=invoiceLineV2Total",
        "OBJECT_KEY=uploads/2031/Plan07/North2.pdf",
        "HASH_KEY=9b2e61d0c47fa8351e0d7c92b6f4a8e3",
        "GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D",
        "key for the map: west is left",
        "the key for the row is invoiceId2Total",
        "cache key for the image: Linux-Node20-Deps07",
        "keys for the labels: menu.close:Play2Again",
        "the key for the cache is the md5 9b2e61d0c47fa8351e0d7c92b6f4a8e3",
        "the md5 of the picture is 9b2e61d0c47fa8351e0d7c92b6f4a8e3",
        "key commit for the release: 4a1f0c9be77d2530aa61f4c8e9b3d2705f6c1e88",
        "shortcut key for the list: Ctrl+Shift+F12",
        "public key for the mirror: AAAAC3NzaC1lZDI1NTE5AAAAIhV3wKq90ZtXb",
    ],
)
def test_what_is_a_name_a_sentence_or_a_digest_stays_readable(text):
    assert redact(text) == text
