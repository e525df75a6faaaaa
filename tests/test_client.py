import json
import socket
import threading

import pytest

from memd import client, errors
from memd.client import Client
from memd.paths import LINE_BYTES_MAX


class Daemon:
    """Answers each line with what `says` makes of it, on a real socket, in a thread."""

    def __init__(self, path, says):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen(5)
        self._says = says
        self.heard = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link, link.makefile("rb") as lines:
                for line in lines:
                    self.heard.append(json.loads(line))
                    said = self._says(self.heard[-1])
                    if said is None:
                        break
                    link.sendall(said)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "memd.sock")


@pytest.fixture
def daemon(path):
    started = []

    def start(says):
        started.append(Daemon(path, says))
        return started[0]

    yield start
    for one in started:
        one.close()


def reply(request, **more):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **more}).encode() + b"\n"


def test_a_call_gives_its_result(daemon, path):
    heard = daemon(lambda request: reply(request, result=request["params"])).heard
    with Client(path) as memd:
        assert memd.call("memd/search", {"query": "ä\ud800"}) == {"query": "ä\ud800"}
        assert memd.call("memd/ping") == {}
    assert [one["id"] for one in heard] == [1, 2]


def test_an_answer_in_pieces_and_a_long_one_are_whole(daemon, path):
    daemon(lambda request: reply(request, result="x" * 1_000_000))
    with Client(path) as memd:
        assert memd.call("memd/get") == "x" * 1_000_000


def test_a_call_that_fits_no_line_is_refused_before_it_is_sent(daemon, path):
    heard = daemon(lambda request: reply(request, result={})).heard
    with Client(path) as memd:
        with pytest.raises(
            errors.BadRequest, match="more than the 4194304 of a message; send less"
        ):
            memd.call("memd/remember", {"text": "x" * LINE_BYTES_MAX})
        assert memd.call("memd/ping") == {}
    assert [one["method"] for one in heard] == ["memd/ping"]


def test_no_daemon_is_unreachable(path):
    with pytest.raises(errors.Unreachable, match="memd start"), Client(path):
        pass
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(path)
    dead.close()
    with pytest.raises(errors.Unreachable, match="memd start"):
        Client(path).call("memd/ping")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32602, "message": "m", "data": {"error": "UnknownId"}}, errors.UnknownId),
        ({"code": -32000, "message": "m", "data": {"error": "VaultFull"}}, errors.VaultFull),
        ({"code": -32000, "message": "m"}, errors.Broken),
        ({"code": -32601, "message": "m"}, errors.BadRequest),
        ({"code": -32602, "message": "m", "data": {"error": "annotations"}}, errors.BadRequest),
        ({"code": -32602, "message": "m", "data": {"error": "__name__"}}, errors.BadRequest),
    ],
    ids=["unknown id", "vault full", "broken", "no method", "no error of ours", "no class"],
)
def test_the_daemons_errors_are_made_again(daemon, path, error, kind):
    daemon(lambda request: reply(request, error=error))
    with Client(path) as memd, pytest.raises(errors.MemdError) as raised:
        memd.call("memd/x")
    assert type(raised.value) is kind
    assert raised.value.message == "m"


def test_a_daemon_that_does_not_answer_in_time_is_reported(daemon, path):
    daemon(lambda _: b"")
    with Client(path, timeout_s=0.05) as memd, pytest.raises(errors.Broken, match=r"within 0.05 s"):
        memd.call("memd/status")


def test_a_closed_connection_is_reported_and_the_next_call_reconnects(daemon, path):
    answers = iter([None, "again"])

    def says(request):
        answer = next(answers)
        return answer and reply(request, result=answer)

    daemon(says)
    with Client(path) as memd:
        with pytest.raises(errors.Unreachable, match="hung up"):
            memd.call("memd/ping")
        assert memd.call("memd/ping") == "again"


def test_an_answer_that_is_not_json_is_reported(daemon, path):
    daemon(lambda _: b"SSH-2.0\n")
    with Client(path) as memd, pytest.raises(errors.Broken, match="JSON"):
        memd.call("memd/ping")


def test_a_daemon_that_works_on_a_call_is_waited_for_as_long_as_it_answers_pings(path, monkeypatch):
    monkeypatch.setattr(client, "SILENCE_S", 0.2)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(5)
        answers, memd = [], Client(path)
        asking = threading.Thread(target=lambda: answers.append(memd.call("memd/reindex")))
        asking.start()
        working, _ = door.accept()
        with working, working.makefile("rb") as lines:
            asked = json.loads(lines.readline())
            for _ in range(3):
                probe, _ = door.accept()
                with probe, probe.makefile("rb") as pings:
                    ping = json.loads(pings.readline())
                    assert ping["method"] == "memd/ping"
                    probe.sendall(reply(ping, result={}))
            working.sendall(reply(asked, result={"count": 3}))
            asking.join(60)
        memd.close()
        assert answers == [{"count": 3}]


def test_a_daemon_that_answers_no_ping_is_not_waited_for(path, monkeypatch):
    monkeypatch.setattr(client, "SILENCE_S", 0.05)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(5)
        memd = Client(path, timeout_s=3_600)
        with pytest.raises(
            errors.Broken, match=r"hangs .* may or may not have been done; `memd status`"
        ):
            memd.call("memd/search", {"query": "x"})
