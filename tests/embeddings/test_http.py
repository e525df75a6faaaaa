import anyio
import httpx
import pytest

from memd.embeddings import providers
from memd.embeddings.providers import ModelServer, Reply, checked_url
from memd.errors import ConfigError, EngineAbsent, EngineFailed
from tests.tables import every_row


@pytest.fixture
async def asked(server):
    asked = ModelServer(server.url, is_remote_allowed=False)
    yield asked
    await asked.close()


async def test_a_refusal_has_the_words_of_the_server(asked):
    reply = await asked.ask("/api/show", {"model": "nobody"})
    assert reply.status == 404
    assert reply.reason == 'model "nobody" not found, try pulling it first'


def test_every_way_to_say_an_error_is_understood():
    assert Reply(500, {"error": {"message": "too large"}}).reason == "too large"
    assert Reply(400, {"object": "error", "message": "no"}).reason == "no"
    for value in (None, [], {"error": {}}, {"error": 7}, "text"):
        assert Reply(503, value).reason == "HTTP status 503"


async def test_a_refusal_that_is_not_json_is_still_a_status(asked):
    assert await asked.ask("/nowhere") == Reply(404, None)


async def test_a_server_that_does_not_listen_is_a_failure_of_its_own(server, asked):
    server.kill()
    with pytest.raises(EngineAbsent, match="nothing answers at http://127"):
        await asked.ask("/api/tags")


@pytest.mark.parametrize("fault", ["disconnect", "not json", "endless"])
async def test_what_goes_wrong_on_the_way_is_an_engine_failed(server, asked, monkeypatch, fault):
    monkeypatch.setattr(providers, "REPLY_BYTES", 2_000_000)
    server.fault = fault
    with pytest.raises(EngineFailed):
        await asked.ask("/api/tags")
    server.fault = None
    assert (await asked.ask("/api/tags")).status == 200


async def test_a_redirect_is_not_followed(server, asked):
    server.fault = "redirect"
    with pytest.raises(EngineFailed):
        await asked.ask("/api/tags")
    assert len(server.requests) == 1


async def test_a_proxy_of_the_environment_is_not_asked(asked, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await asked.ask("/api/version")).status == 200


async def test_whoever_gives_up_leaves_nothing_open(server, asked):
    server.fault = "hang"
    with anyio.move_on_after(0.05) as scope:
        await asked.ask("/api/tags")
    assert scope.cancelled_caught
    server.fault = None
    assert (await asked.ask("/api/tags")).status == 200


async def test_a_closed_one_says_so_until_it_is_reopened(server):
    asked = ModelServer(server.url, is_remote_allowed=False)
    await asked.ask("/api/version")
    await asked.close()
    with pytest.raises(EngineFailed, match="about to leave"):
        await asked.ask("/api/version")
    asked.reopen()
    assert (await asked.ask("/api/version")).status == 200
    await asked.close()


async def test_a_key_is_sent_as_a_bearer_and_none_otherwise(server, asked):
    with_key = ModelServer(server.url, is_remote_allowed=False, key="planted")
    await with_key.ask("/v1/models")
    await with_key.close()
    await asked.ask("/v1/models")
    assert server.headers[0]["authorization"] == "Bearer planted"
    assert "authorization" not in server.headers[1]


def test_a_key_that_no_header_takes_names_its_setting():
    with pytest.raises(ConfigError, match=r"engines\.api_key_env"):
        ModelServer("http://localhost", is_remote_allowed=False, key="a\nb")


@every_row(
    "url",
    ["http://127.0.0.1:11434", "http://localhost:1/", "http://[::1]:8080", "https://127.1.2.3/v1"],
)
def test_this_machine_may_be_asked(url):
    assert checked_url(url, is_remote_allowed=False) == url.rstrip("/")


@every_row(
    "url",
    [
        "http://10.0.0.5:11434", "http://models.example", "http://localhost.example",
        "http://127.0.0.1.example", "http://localhost@models.example", "http://0.0.0.0:1",
    ],
)  # fmt: skip
def test_another_machine_only_if_a_person_said_so(url):
    with pytest.raises(ConfigError, match=r"engines\.remote = true"):
        checked_url(url, is_remote_allowed=False)
    assert checked_url(url, is_remote_allowed=True) == url


@every_row(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://localhost",
        "http://",
        "http://[::1",
        "http://a:b",
        "http://a?x",
    ],
)
def test_what_is_no_address_names_its_setting(url):
    with pytest.raises(ConfigError, match=r"engines\.url"):
        checked_url(url, is_remote_allowed=True)


async def test_https_reads_its_certificates_off_the_loop(server):
    asked = ModelServer(server.url.replace("http:", "https:"), is_remote_allowed=False)
    with pytest.raises(EngineFailed):
        await asked.ask("/api/version")
    assert isinstance(asked._client, httpx.AsyncClient)
    await asked.close()
