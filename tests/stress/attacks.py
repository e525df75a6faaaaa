"""Clients that misbehave, one kind of them a process: `attacks.py NAME SOCKET SEED SIZE`.

Each runs until it is killed, and prints "begun" once it does its worst. clients.py starts them.
"""

import contextlib
import dataclasses
import json
import os
import random
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator

MEGABYTE = 1_000_000
FLOOD = 10_000
"""Requests that are in flight on one socket."""
CROWD = 1_000
"""Connections at once."""
LONG = 100
"""Megabytes of a line."""
_NEVER_READ = 40
_STUFFED = 300


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}  # fmt: skip


def line(method: str, params: dict[str, object] | None = None, number: int = 1) -> bytes:
    """A request as it goes over the wire."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
    return json.dumps(message).encode() + b"\n"


def opened(path: str) -> socket.socket:
    """A connection; waits while the daemon's queue is full."""
    while True:
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(path)
        except BlockingIOError:
            link.close()
            time.sleep(0.01)
        else:
            return link


def begun() -> None:
    """Say that the attack is at its height."""
    print("begun", flush=True)


@dataclasses.dataclass(frozen=True)
class Way:
    """How to attack: where, by which chance, and how much of everything (1: all of it)."""

    path: str
    chance: random.Random
    size: float

    def some(self, number: int) -> int:
        """This share of a number, at least 1."""
        return max(1, int(number * self.size))


def crowd(way: Way) -> None:
    """1,000 connections at once that all ask, and stay, and ask again one after another."""
    links = []
    for number in range(way.some(CROWD)):
        link = opened(way.path)
        link.sendall(line("memd/ping", number=number))
        links.append(link)
    for link in links:
        link.recv(65_536)
    begun()
    while True:
        for number, link in enumerate(links):
            link.sendall(line("memd/ping", number=number))
            link.recv(65_536)
            time.sleep(0.005)


def _large(number: int = 1) -> bytes:
    """A request that is answered with a lot."""
    return line("memd/get", {"ids": list(range(1, 101)), "project": "all"}, number)


def slow_readers(way: Way) -> None:
    """60 connections that ask for large answers and read them a kilobyte at a time."""
    links = [opened(way.path) for _ in range(60)]
    asked: dict[socket.socket, int] = dict.fromkeys(links, 0)
    for link in links:
        link.setblocking(False)
    begun()
    while True:
        for number, link in enumerate(links):
            with contextlib.suppress(OSError):
                asked[link] += link.send(_large(number))
            with contextlib.suppress(OSError):
                link.recv(1_000)
        time.sleep(0.05)


def never_read(way: Way) -> None:
    """40 connections that ask for large answers for as long as the daemon reads, and read nothing."""
    _stuff(way, _NEVER_READ, b"", _large() * 50)


def stuffed(way: Way) -> None:
    """300 connections that each begin a long line and never end it."""
    _stuff(way, _STUFFED, b'{"jsonrpc":"2.0","id":1,"method":"', b"x" * 200_000)


def _stuff(way: Way, count: int, head: bytes, block: bytes) -> None:
    """Hold this many connections and write as much into each as it takes; one that is closed is replaced."""
    links: list[socket.socket] = []
    is_begun = False
    while True:
        while len(links) < count:
            links.append(opened(way.path))
            links[-1].setblocking(False)
            with contextlib.suppress(OSError):
                links[-1].send(head)
        for link in select.select([], links, [], 0.1)[1]:
            try:
                link.send(block)
            except BlockingIOError:
                pass
            except OSError:
                links.remove(link)
                link.close()
        if not is_begun:
            is_begun = True
            begun()


def half_open(way: Way) -> None:
    """Clients that vanish: in the middle of a line, with questions open, or done with talking."""
    begun()
    while True:
        link = opened(way.path)
        kind = way.chance.choice(("half a line", "open questions", "half-closed", "deaf"))
        with contextlib.suppress(OSError):
            if kind == "half a line":
                link.sendall(b'{"jsonrpc":"2.0","id":1,"meth')
            elif kind == "open questions":
                link.sendall(search(1) * 3)
            elif kind == "half-closed":
                link.sendall(search(1))
                link.shutdown(socket.SHUT_WR)
                link.recv(100)
            else:
                link.sendall(line("initialize", HELLO))
                link.shutdown(socket.SHUT_RD)
        link.close()
        time.sleep(0.01)


def search(number: int) -> bytes:
    """A question that is easily answered."""
    return line("memd/search", {"query": f"why did the session cache fail {number}"}, number)


def garbage(way: Way) -> None:
    """Bytes of no meaning, with line ends and without; beside them nothing but line ends, without a pause."""

    def nothing(lines: bytes) -> None:
        link = opened(way.path)
        drop_answers(link)
        while True:
            link.sendall(lines)

    for lines in (
        b"\n" * MEGABYTE,
        b'{"jsonrpc":"2.0","id":1,"result":1}\n' * 10_000,
        b"{}\n" * 10_000,
    ):
        threading.Thread(target=nothing, args=(lines,), daemon=True).start()
    begun()
    while True:
        link = opened(way.path)
        drop_answers(link)
        with contextlib.suppress(OSError):
            for _ in range(40):
                link.sendall(way.chance.randbytes(way.chance.randrange(1, 4_000)))
                if way.chance.random() < 0.5:
                    link.sendall(b"\n")
                time.sleep(0.002)
        link.close()


def drop_answers(link: socket.socket) -> None:
    """Read what comes, in a thread, and forget it."""

    def read() -> None:
        with contextlib.suppress(OSError):
            while link.recv(65_536):
                pass

    threading.Thread(target=read, daemon=True).start()


def long_lines(way: Way) -> None:
    """Lines of 100 MB, again and again, on four connections at once."""

    def send() -> None:
        block = b"x" * MEGABYTE
        while True:
            link = opened(way.path)
            with contextlib.suppress(OSError):
                link.sendall(b'{"jsonrpc":"2.0","id":1,"method":"')
                for _ in range(way.some(LONG)):
                    link.sendall(block)
                link.sendall(b'"}\n')
                link.recv(65_536)
            link.close()

    _at_once(send, 4)


def _at_once(work: Callable[[], None], count: int) -> None:
    senders = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for sender in senders:
        sender.start()
    begun()
    for sender in senders:
        sender.join()


def hostile_json(size: float) -> Iterator[bytes]:
    """Lines that are hard to parse; most are legal JSON. The longest have `size` × 15 MB."""
    million = int(MEGABYTE * size)
    yield b"[" * 100_000 + b"\n"
    yield b'{"a":' * 100_000 + b"\n"
    yield b'{"jsonrpc":"2.0","id":1,"method":"memd/ping","params":' + b'{"a":' * 126 + b"1"
    yield b"}" * 127 + b"\n"
    yield b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"memd/ping"}\n'
    yield b'{"jsonrpc":"2.0","id":1,"method":"memd/ping","params":{"n":1e99999}}\n'
    yield b'{"jsonrpc":"2.0","id":1,"method":"memd/search","params":{"query":"a\\u0000b"}}\n'
    yield b'{"jsonrpc":"2.0","id":1,"method":"memd/search","params":{"query":"\\ud83d x"}}\n'
    yield b'{"jsonrpc":"2.0","id":1,"id":2,"method":"memd/ping","method":"memd/ping"}\n'
    head = b'{"jsonrpc":"2.0","id":1,"method":"memd/search","params":{"query":'
    yield head + b"[" + b"[]," * 80_000 + b"[]]}}\n"
    yield head + b"[" + b"[]," * (5 * million) + b"[]]}}\n"
    yield head + b"[" + b"1," * (7 * million) + b"1]}}\n"
    yield head + b'"' + b"\\ud83d\\ude00" * million + b'"}}\n'
    yield head + b'"' + b"\\ud83d " * (2 * million) + b'"}}\n'
    yield head + b"{" + b",".join(b'"%d":{}' % n for n in range(million)) + b"}}}\n"


def deep_json(way: Way) -> None:
    """Lines that are hard to parse, up to the limit of a line, on two connections at once."""
    lines = list(hostile_json(way.size))

    def send() -> None:
        while True:
            link = opened(way.path)
            drop_answers(link)
            with contextlib.suppress(OSError):
                for one in lines:
                    link.sendall(one)
                link.shutdown(socket.SHUT_WR)
                time.sleep(0.1)
            link.close()

    _at_once(send, 2)


def flood(way: Way) -> None:
    """10,000 searches in flight on one socket, and as many again when they are answered."""
    _flood(way.path, b"", (search(number) for number in range(way.some(FLOOD))))


def mcp_flood(way: Way) -> None:
    """The same in MCP."""
    hello = line("initialize", HELLO, FLOOD)
    hello += b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    calls = (
        line("tools/call", {"name": "mem_search", "arguments": {"query": f"cache {n}"}}, n)
        for n in range(way.some(FLOOD))
    )
    _flood(way.path, hello, calls)


def _flood(path: str, hello: bytes, calls: Iterable[bytes]) -> None:
    everything = b"".join(calls)
    link = opened(path)
    link.sendall(hello)
    drop_answers(link)
    begun()
    while True:
        link.sendall(everything)


ATTACKS: dict[str, Callable[[Way], None]] = {
    attack.__name__: attack
    for attack in (
        crowd, slow_readers, never_read, half_open, garbage, long_lines, deep_json, flood, mcp_flood, stuffed,
    )
}  # fmt: skip


def start(name: str, path: str, seed: int, size: float = 1.0) -> "subprocess.Popen[str]":
    """The attack as a process, at its height.

    It gets the processors last: what is put to the test is how the daemon shares itself, not how the
    kernel shares two processors.
    """
    attack = [sys.executable, __file__, name, path, str(seed), str(size)]
    process = subprocess.Popen(
        ["/usr/bin/env", "nice", "-n", "15", *attack],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    if process.stdout.readline().strip() != "begun":
        raise SystemExit(f"the attack {name} did not begin")
    return process


def main() -> None:
    """Attack until killed."""
    name, path, seed, size = sys.argv[1:]
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    # The process that started it may be killed.
    parent = os.getppid()
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    ATTACKS[name](Way(path, random.Random(int(seed)), float(size)))


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
