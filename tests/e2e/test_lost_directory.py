"""`memd mcp` where nobody can say which project it is in, against a real daemon."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.real_daemon import RealDaemon

ROOT = Path(__file__).parent.parent.parent


class McpClient:
    """A client on the stdin and stdout of `memd mcp`, which a shell has started after `before`."""

    def __init__(self, daemon, cwd, before=":"):
        environ = {**daemon.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f'{before}; exec "$0" -m memd mcp', sys.executable],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, env=environ,
        )  # fmt: skip
        info = {"name": "t", "version": "1"}
        self._call("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tool(self, name, **arguments):
        """What a tool answers, as its text."""
        result = self._call("tools/call", name=name, arguments=arguments)
        return "\n".join(part["text"] for part in result["content"])

    def _call(self, method, **params):
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return json.loads(self._process.stdout.readline())["result"]

    def _send(self, message):
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A daemon that knows something everywhere, and something of one project."""
    daemon = RealDaemon(tmp_path_factory.mktemp("m")).start()
    shop = daemon.home / "shop"
    shop.mkdir()
    with daemon.client() as client:
        client.call("memd/remember", {"text": "The kettle is teal", "directory": str(shop)})
        client.call("memd/remember", {"text": "Tea is green", "project": "global"})
    yield daemon
    daemon.stop()


@pytest.mark.parametrize(
    "before",
    [
        'rmdir "$PWD"',
        'rmdir "$PWD"; unset PWD OLDPWD',
        'rmdir "$PWD"; PWD=/; export PWD',
        'mv "$PWD" "$PWD-gone"; rmdir "$PWD-gone"',
    ],
)
def test_a_client_in_a_deleted_directory_sees_only_what_holds_everywhere(known, tmp_path, before):
    (tmp_path / "gone").mkdir()
    with contextlib.closing(McpClient(known, tmp_path / "gone", before)) as client:
        for tool, arguments in (
            ("mem_search", {"query": "kettle teal", "show_all": True}),
            ("mem_timeline", {"days": 2}),
            ("mem_timeline", {"sessions": 3}),
        ):
            told = client.tool(tool, **arguments)
            assert "kettle is" not in told
            assert "the directory that this client was started in is gone" in told
        assert "Tea is green" in client.tool("mem_search", query="what tea is green")
        assert "belongs to another project" in client.tool("mem_why", id=1)
        assert "kettle is teal" not in client.tool("mem_get", ids=[1])
        everywhere = client.tool("mem_search", query="kettle teal", project="all")
        assert "kettle is teal" in everywhere, "who asks for it by name gets it"


def test_a_client_whose_directory_is_deleted_meanwhile_sees_nothing_of_others(known, tmp_path):
    place = tmp_path / "later"
    place.mkdir()
    with contextlib.closing(McpClient(known, place)) as client:
        place.rmdir()
        told = client.tool("mem_search", query="kettle teal", show_all=True)
        assert "kettle is" not in told


def test_a_search_that_finds_nothing_here_says_what_other_projects_have(known, tmp_path):
    (tmp_path / "here").mkdir()
    with contextlib.closing(McpClient(known, tmp_path / "here")) as client:
        assert "1 in other projects: project: all" in client.tool("mem_search", query="kettle teal")
    with known.client() as program:
        asked = {"query": "kettle teal", "directory": str(tmp_path / "here")}
        assert "1 in other projects: --project all" in program.call("memd/search", asked)["notes"]
        known_here = {"query": "kettle teal", "directory": str(known.home / "shop")}
        assert not [
            note
            for note in program.call("memd/search", known_here)["notes"]
            if "in other projects" in note
        ]
