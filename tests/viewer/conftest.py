"""A viewer over a real daemon that knows the sample sessions, and a client that says exactly what a test wants."""

import http.client
import json
import threading
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

from memd.client import Client
from memd.viewer import server
from memd.viewer.server import Viewer, ViewSettings
from tests.cli.conftest import running

NOW = 1_795_400_000_000
"""UTC milliseconds; what the pages call now."""


server._WATCH_S = 0.02  # every test waits until its viewer has noticed its end


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def html(self):
        return self.json["html"]


class Elements(HTMLParser):
    """Every element of a page with its attributes, and its text."""

    def __init__(self, html):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(str(html))

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def links(self):
        return [one["href"] for tag, one in self.found if tag == "a" and "href" in one]


class Browser:
    """Sends requests as a page of the viewer does, or as a test says."""

    def __init__(self, viewer):
        self.viewer = viewer
        self.key = None
        self.own = f"http://127.0.0.1:{viewer.port}"

    def send(self, method, path, body=None, **headers):
        """One request; a header that is None is left out."""
        link = http.client.HTTPConnection("127.0.0.1", self.viewer.port, timeout=60)
        given = {"Host": f"127.0.0.1:{self.viewer.port}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    link.putheader(name, value)
            if body is not None and "Content_Length" not in headers:
                link.putheader("Content-Length", str(len(body)))
            link.endheaders(body)
            answer = link.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            link.close()

    def exchange(self, token):
        body = json.dumps({"token": token}).encode()
        return self.send("POST", "/key", body, Origin=self.own, Sec_Fetch_Site="same-origin")

    def get(self, path, **headers):
        """What the page at an address shows."""
        return self.send(
            "GET", f"/_{path}", Memd_Key=self.key, Sec_Fetch_Site="same-origin", **headers
        )

    def post(self, action, **fields):
        body = json.dumps(fields).encode()
        return self.send("POST", f"/do/{action}", body, Memd_Key=self.key, Origin=self.own)


class RunningViewer:
    """A viewer in a thread."""

    def __init__(self, socket_path, **settings):
        settings = {"idle_s": 86_400.0} | settings
        self.viewer = Viewer(ViewSettings(socket_path, "all", lambda: NOW, **settings))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self.viewer.run, args=(self._ended.is_set,))
        self._thread.start()

    def open(self):
        """A browser with a key."""
        browser = Browser(self.viewer)
        browser.key = browser.exchange(self.viewer.keyring.issue_token()).json["key"]
        return browser

    def stop(self):
        self._ended.set()
        self._thread.join(60)


@pytest.fixture(autouse=True)
def _utc(set_zone):
    """What the pages call a day does not depend on the machine's zone."""
    set_zone("UTC")


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """A machine with a daemon that knows the sample sessions."""
    with running(tmp_path_factory.mktemp("viewed"), samples=True) as machine:
        yield machine


@pytest.fixture(scope="session")
def socket_path(served):
    return served.run("status", "--json").json["socket"]


@pytest.fixture(scope="session")
def reading(socket_path):
    """A viewer that only reads."""
    running = RunningViewer(socket_path)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def editing(socket_path):
    """A viewer with --edit."""
    running = RunningViewer(socket_path, may_edit=True)
    yield running
    running.stop()


@pytest.fixture
def reader(reading):
    return reading.open()


@pytest.fixture
def editor(editing):
    return editing.open()


@pytest.fixture(scope="session")
def call(socket_path):
    """Make a control call."""

    def say(method, **params):
        with Client(socket_path, 60) as client:
            return client.call(f"memd/{method}", params)

    return say
