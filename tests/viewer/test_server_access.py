"""Who is let in: tokens, keys, hosts, origins; and the headers of every answer. Over a real socket."""

import contextlib
import http.client
import json
import socket

import pytest

from memd.viewer.server import CONNECTIONS_MAX, PAGES, Keyring
from tests.viewer.conftest import Browser


@pytest.fixture
def stranger(reading):
    """A browser without a key."""
    return Browser(reading.viewer)


# ── Tokens and keys ──────────────────────────────────────────────────────────────────────────────


def test_a_token_is_exchanged_for_a_key_once(reading, stranger):
    token = reading.viewer.keyring.issue_token()
    first = stranger.exchange(token)
    assert (first.status, set(first.json)) == (200, {"key"})
    assert stranger.exchange(token).status == 403


def test_a_new_token_ends_the_one_before(reading, stranger):
    before = reading.viewer.keyring.issue_token()
    reading.viewer.keyring.issue_token()
    assert stranger.exchange(before).status == 403


@pytest.mark.parametrize("token", ["", "x", "ü", "a" * 10_000])
def test_a_guessed_token_is_refused(stranger, token):
    assert stranger.exchange(token).status == 403


def test_a_key_does_not_work_as_a_token_nor_a_token_as_a_key():
    keyring = Keyring()
    token = keyring.issue_token()
    assert not keyring.has_key(token)
    key = keyring.redeem(token)
    assert keyring.redeem(key) is None
    assert not keyring.has_key("")


def test_what_is_no_json_is_no_token(stranger):
    for body in (b"", b"[]", b"\xff", b'{"token": ["x"]}'):
        assert stranger.send("POST", "/key", body, Origin=stranger.own).status == 403


@pytest.mark.parametrize(
    "path", ["/_/", "/_/search?q=x", "/_/memory/1", "/_/part/doctor", "/_/nowhere"]
)
def test_content_needs_the_key(stranger, reader, path):
    assert stranger.send("GET", path).status == 401
    assert stranger.send("GET", path, Memd_Key="x" * 43).status == 401
    assert stranger.send("GET", path, Cookie=f"memd-key={reader.key}").status == 401
    assert stranger.send("GET", f"{path.partition('?')[0]}?memd-key={reader.key}").status == 401


def test_an_action_needs_the_key_too(stranger):
    assert stranger.send("POST", "/do/pin", b"{}", Origin=stranger.own).status == 401


def test_the_shell_needs_no_key_and_knows_nothing(stranger):
    shells = {
        stranger.send("GET", path.partition("{")[0] + ("1" if "{" in path else "")).body
        for path in PAGES
    }
    assert len(shells) == 1
    assert b"127.0.0.1" not in shells.pop()


# ── Where a request comes from ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "host",
    ["localhost:{port}", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}.evil.example",
     "127.0.0.2:{port}", "[::1]:{port}", "", None],
)  # fmt: skip
def test_another_host_is_refused_so_that_no_name_can_be_bound_to_it(reading, reader, host):
    name = host and host.format(port=reading.viewer.port)
    for path in ("/", "/_/", "/assets/page.js"):
        assert reader.send("GET", path, Host=name, Memd_Key=reader.key).status in {400, 421}


def test_two_hosts_are_refused(reading):
    with socket.create_connection(("127.0.0.1", reading.viewer.port), timeout=60) as link:
        own = f"127.0.0.1:{reading.viewer.port}"
        link.sendall(
            f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
        )
        assert link.makefile("rb").readline().split()[1] in {b"400", b"421"}


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:{port}"]
)
def test_another_origin_is_refused(reading, reader, origin):
    given = origin.format(port=reading.viewer.port)
    assert reader.send("GET", "/_/", Memd_Key=reader.key, Origin=given).status == 403
    token = reading.viewer.keyring.issue_token()
    body = json.dumps({"token": token}).encode()
    assert reader.send("POST", "/key", body, Origin=given).status == 403
    # The token is not spent by that.
    assert reader.exchange(token).status == 200


def test_a_post_must_name_its_origin(reading, stranger):
    body = json.dumps({"token": reading.viewer.keyring.issue_token()}).encode()
    assert stranger.send("POST", "/key", body).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_a_request_of_another_site_is_refused(reader, site):
    for path in ("/", "/_/", "/search", "/assets/page.js"):
        assert reader.send("GET", path, Memd_Key=reader.key, Sec_Fetch_Site=site).status == 403


def test_only_the_empty_start_page_may_be_opened_from_elsewhere(stranger):
    opening = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert stranger.send("GET", "/", Sec_Fetch_Dest="document", **opening).status == 200
    assert stranger.send("GET", "/", Sec_Fetch_Dest="iframe", **opening).status == 403
    assert stranger.send("GET", "/search", Sec_Fetch_Dest="document", **opening).status == 403
    assert stranger.send("GET", "/_/", Sec_Fetch_Dest="document", **opening).status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(stranger, method):
    reply = stranger.send(method, "/")
    assert reply.status == 405
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_a_body_that_is_too_large_or_has_no_length_is_refused(stranger):
    assert (
        stranger.send("POST", "/key", None, Origin=stranger.own, Content_Length=str(10**9)).status
        == 413
    )
    assert (
        stranger.send("POST", "/key", None, Origin=stranger.own, Transfer_Encoding="chunked").status
        == 413
    )


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────


def test_every_answer_has_the_headers_that_keep_it_here(stranger, reader):
    replies = [
        stranger.send("GET", "/"),
        stranger.send("GET", "/assets/style.css"),
        stranger.send("GET", "/nowhere"),
        stranger.send("GET", "/", Host="evil.example"),
        stranger.send("GET", "/_/"),
        reader.get("/"),
        reader.post("pin"),
    ]
    for reply in replies:
        headers = {name.lower(): value for name, value in reply.headers.items()}
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_it_listens_on_this_machine_only(reading):
    assert reading.viewer.listening.getsockname()[0] == "127.0.0.1"


def test_garbage_does_not_end_it(reading, reader):
    for garbage in (b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 50_000):
        with socket.create_connection(("127.0.0.1", reading.viewer.port), timeout=60) as link:
            try:
                link.sendall(garbage + b"\r\n\r\n")
                link.recv(1_000)
            except OSError:
                pass
    assert reader.get("/").status == 200


def test_who_has_no_key_writes_nothing_on_the_terminal_of_the_user(reading, stranger, capfd):
    with socket.create_connection(("127.0.0.1", reading.viewer.port), timeout=60) as link:
        link.sendall(b"\x00garbage\r\n\r\n")
        link.recv(1_000)
    stranger.send("GET", "/", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version="13")
    deep = stranger.send("POST", "/key", b"[" * 500_000, Origin=stranger.own)
    assert deep.status == 403
    assert capfd.readouterr() == ("", "")


def test_whoever_opens_more_connections_than_there_may_be_loses_the_eldest(reading, reader, capfd):
    address = ("127.0.0.1", reading.viewer.port)
    idle = []
    try:
        for _ in range(CONNECTIONS_MAX + 50):
            idle.append(socket.create_connection(address, timeout=60))
            idle[-1].sendall(b"POST /key HTTP/1.1\r\n")
        assert reader.get("/").status == 200
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""
        assert reader.get("/").status == 200
    finally:
        for link in idle:
            link.close()
    assert capfd.readouterr() == ("", "")


def test_many_idle_connections_do_not_keep_others_out(reading, reader):
    idle = [http.client.HTTPConnection("127.0.0.1", reading.viewer.port) for _ in range(50)]
    try:
        for link in idle:
            link.connect()
        assert reader.get("/").status == 200
    finally:
        for link in idle:
            link.close()
