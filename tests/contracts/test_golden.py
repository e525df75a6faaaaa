"""What other programs rely on, compared with files in tests/data/golden.

These are the MCP tools, the keys of status and of control results, the export and the settings.

After a change that is wanted and in the changelog, write the files again and review the difference:
`MEMD_BLESS=1 python -m pytest tests/contracts/test_golden.py`.
"""

import json
import os
import pathlib

import pytest

from memd.config import RETIRED, Config
from tests.e2e.real_daemon import RealDaemon

GOLDEN = pathlib.Path(__file__).parent.parent / "data" / "golden"
SETTINGS = '[engines]\nembedder = "hashing"\n'
"""No model: whether this machine serves one must not matter."""
IN_ANY_ORDER = {"required", "enum", "type"}
"""Keywords of JSON Schema whose lists are sets."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    home = tmp_path_factory.mktemp("golden")
    daemon = RealDaemon(home)
    (home / "config.toml").write_text(SETTINGS, "utf-8")
    daemon.start()
    imported = daemon.run("import", str(GOLDEN / "export-1.jsonl"))
    assert imported.returncode == 0, imported.stderr
    daemon.settle()
    yield daemon
    daemon.stop()


def check(name, found):
    """Compare with the stored file, or with MEMD_BLESS=1 store it."""
    path = GOLDEN / name
    if os.environ.get("MEMD_BLESS") == "1":
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert found == json.loads(path.read_text("utf-8")), (
        f"{name} changed; if that is wanted, run this test with MEMD_BLESS=1 and review the file"
    )


def in_order(value):
    """The value with the lists sorted whose order means nothing."""
    if isinstance(value, dict):
        return {
            key: sorted(inner)
            if key in IN_ANY_ORDER and isinstance(inner, list)
            else in_order(inner)
            for key, inner in sorted(value.items())
        }
    return [in_order(inner) for inner in value] if isinstance(value, list) else value


def key_paths(value, path=""):
    """Each key as a path, `rooms[indexer].loaded`; lists of named objects by name."""
    if isinstance(value, dict):
        return {
            one for key, inner in value.items() for one in key_paths(inner, f"{path}.{key}")
        } or {path}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {one for inner in value for one in key_paths(inner, f"{path}[{inner.get('name')}]")}
    return {path}


def settings_of(branch, path=""):
    """Each setting with its default, `recall.k: 5`."""
    found = {}
    for key, value in branch.items():
        if isinstance(value, dict) and value:
            found |= settings_of(value, f"{path}{key}.")
        else:
            found[path + key] = value
    return found


def test_mcp_tools_keep_their_names_schemas_descriptions_and_annotations(daemon):
    asked = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "golden", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked]
    done = daemon.run("mcp", stdin="".join(lines).encode())
    answers = {one["id"]: one for one in map(json.loads, done.stdout.splitlines())}
    tools = sorted(answers[2]["result"]["tools"], key=lambda tool: tool["name"])
    check("mcp_tools.json", in_order(tools))


def test_status_keeps_its_keys(daemon):
    def complete_status():
        status = json.loads(daemon.run("status", "--json").stdout)
        (retention,) = [one for one in status["rooms"] if one["name"] == "retention"]
        return status if status["consolidator"]["last"] and retention["preview"] else None

    status = daemon.wait_for(complete_status)
    check("status_keys.json", sorted(one.lstrip(".") for one in key_paths(status)))


def test_control_results_keep_their_keys(daemon):
    calls = {
        "memd/search": {"query": "sessions live", "include_turns": True, "explain": True},
        "memd/timeline": {"since": 0},
        "memd/why": {"id": 1},
        "memd/get": {"ids": [1]},
        "memd/forget": {"ids": [1]},
        "memd/projects": {},
        "memd/switch": {},
        "memd/consolidate/runs": {},
        "memd/imports": {},
    }
    with daemon.client() as client:
        results = {method: client.call(method, params) for method, params in calls.items()}
    keys = {
        method: sorted(one.lstrip(".") for one in key_paths(result))
        for method, result in results.items()
    }
    check("control_keys.json", keys)


def test_an_export_that_is_imported_is_exported_as_it_was(daemon):
    """The stored file has a record of each kind. Header and end depend on memd's version.

    What was imported is the same in format 1, which does not say whose word a memory is.
    """

    def records(text):
        return [json.loads(line) for line in text.splitlines()]

    found = records(daemon.run("export", "-").stdout.decode())
    stored = records((GOLDEN / "export.jsonl").read_text("utf-8"))
    assert found[0].keys() == stored[0].keys()
    assert found[-1].keys() == stored[-1].keys()
    assert found[0]["format"] == stored[0]["format"]
    assert found[0]["counts"] == stored[0]["counts"]
    assert sorted(found[1:-1], key=json.dumps) == sorted(stored[1:-1], key=json.dumps)


def test_every_setting_keeps_its_key_and_default():
    defaults = settings_of(Config().model_dump(mode="json"))
    check("settings.json", {name: defaults[name] for name in defaults if name not in RETIRED})
