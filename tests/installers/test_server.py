from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.installers import server
from memd.installers.plan import Place

PLACE = Place({"HOME": "/h"}, "/v/bin/python", Path("/v/memd"), "linux")
OURS = server.entry(PLACE, "claude-desktop")
OTHER = {"command": "npx", "args": ["memd-viewer", "mcp"]}


def test_the_entry_names_everything_by_its_whole_path():
    assert OURS == {
        "command": "/v/bin/python",
        "args": ["-P", "-m", "memd", "mcp"],
        "env": {"MEMD_CLIENT": "claude-desktop"},
    }


def test_what_memd_needs_of_the_environment_goes_with_it():
    place = Place({"HOME": "/h", "MEMD_VAULT": "work"}, "/p", Path("/m"), "linux")
    assert server.entry(place, "x")["env"] == {"MEMD_CLIENT": "x", "MEMD_VAULT": "work"}


@pytest.mark.parametrize("before", [{}, {"a": 1}, {"mcpServers": {"other": OTHER}, "a": 1}])
def test_uninstalling_undoes_installing(before):
    merged = server.merge(before, OURS)
    assert merged["mcpServers"]["memd"] == OURS
    assert server.merge(merged, OURS) == merged
    assert server.unmerge(merged) == before


def test_an_older_entry_is_replaced_and_keeps_what_the_user_added():
    old = {
        "command": "/old/bin/memd",
        "args": ["mcp"],
        "env": {"MEMD_START": "0", "MEMD_VAULT": "old", "MEMD_CLIENT": "x"},
        "timeout": 9,
    }
    assert server.merge({"mcpServers": {"memd": old}}, OURS)["mcpServers"]["memd"] == {
        **OURS,
        "timeout": 9,
        "env": {"MEMD_START": "0", "MEMD_CLIENT": "claude-desktop"},
    }


@pytest.mark.parametrize("found", [OTHER, {"url": "http://x"}, None, "memd mcp"])
def test_another_server_of_that_name_is_neither_replaced_nor_removed(found):
    before = {"mcpServers": {"memd": found}}
    with pytest.raises(BadRequest, match="not this one"):
        server.merge(before, OURS)
    assert server.unmerge(before) == before


@pytest.mark.parametrize("found", [[], "x", None])
def test_servers_that_are_no_object_are_refused(found):
    for change in (lambda s: server.merge(s, OURS), server.unmerge):
        with pytest.raises(BadRequest, match="`mcpServers` is not an object"):
            change({"mcpServers": found})


@pytest.mark.parametrize(
    ("entry", "is_ours"),
    [
        ({"command": "memd", "args": ["mcp"]}, True),
        ({"command": "/bin/sh", "args": ["/p/scripts/memd", "mcp"]}, True),
        ({"command": "memd", "args": ["--vault", "work", "mcp"]}, True),
        ({"command": "memd", "args": ["--vault=work", "mcp"]}, True),
        ({"command": "memd", "args": ["search", "mcp"]}, False),
        ({"command": "memd", "args": ["serve"]}, False),
    ],
)
def test_a_server_is_ours_by_what_it_runs(entry, is_ours):
    assert server.is_ours(entry) == is_ours
