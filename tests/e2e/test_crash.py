"""kill -9 in the middle of a thousand captures: what was acknowledged is there, once."""

import signal
import sqlite3
import threading

from memd.client import Client
from memd.errors import MemdError

CONNECTIONS = 16
CAPTURES = 1_000


def payload(number):
    return {
        "session_id": f"session-{number % 7}",
        "prompt_id": f"prompt-{number}",
        "hook_event_name": "UserPromptSubmit",
        "cwd": "/nowhere",
        "prompt": f"capture number {number}",
    }


class Clients:
    """Sixteen connections that capture until they are stopped or their daemon ends."""

    def __init__(self, daemon, numbers):
        self._daemon = daemon
        self._numbers = iter(numbers)
        self._lock = threading.Lock()
        self.acknowledged = set()
        self._threads = [threading.Thread(target=self._run) for _ in range(CONNECTIONS)]
        for thread in self._threads:
            thread.start()

    def _next(self):
        with self._lock:
            return next(self._numbers, None)

    def _run(self):
        try:
            with Client(self._daemon.paths.socket, 30) as client:
                while (number := self._next()) is not None:
                    receipt = client.call(
                        "memd/capture", {"client": "claude-code", "payload": payload(number)}
                    )
                    assert receipt["outcome"] in {"stored", "duplicate"}
                    with self._lock:
                        self.acknowledged.add(number)
        except MemdError:
            pass

    def join(self):
        for thread in self._threads:
            thread.join()


def stored(daemon):
    connection = sqlite3.connect(f"file:{daemon.paths.database}?mode=ro", uri=True)
    rows = connection.execute("SELECT json_extract(payload, '$.prompt') FROM events").fetchall()
    connection.close()
    return [int(text.rsplit(" ", 1)[1]) for (text,) in rows]


def test_every_acknowledged_event_survives_a_kill_once(daemon):
    daemon.start()
    clients = Clients(daemon, range(CAPTURES))
    daemon.wait_for(lambda: len(clients.acknowledged) >= 200)
    daemon.stop(signal.SIGKILL)
    clients.join()
    daemon.start()
    survivors = stored(daemon)
    assert len(survivors) == len(set(survivors))
    assert clients.acknowledged <= set(survivors)
    again = Clients(daemon, range(CAPTURES))
    again.join()
    assert sorted(stored(daemon)) == list(range(CAPTURES))
    assert daemon.status()["books"]["balanced"]
