"""Pack dist/memd.mcpb, the extension that Claude Desktop installs with a double click.

It holds a manifest and the launcher; the memd that is installed on the machine answers, so that Desktop and
Claude Code share one memory and an update of memd needs no new extension. Two runs write the same bytes.
"""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from memd import __version__
from memd.server.tools import TOOLS

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = ROOT / "memd" / "plugin" / "scripts" / "memd"
PROGRAM = "server/memd"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold."""


def list_tools() -> list[dict[str, str]]:
    """Every tool that the daemon serves, with the first sentence of its description."""
    return [
        {"name": tool.name, "description": tool.description.partition(". ")[0].rstrip(".") + "."}
        for tool in TOOLS.values()
    ]


def manifest() -> dict[str, Any]:
    """Describe the extension."""
    return {
        "manifest_version": "0.3",
        "name": "memd",
        "display_name": "memd",
        "version": __version__,
        "description": "Long-term memory on your own machine, shared with Claude Code",
        "long_description": "Searches what earlier sessions decided, fixed and learned, and keeps what you"
        " ask it to remember. Needs memd on this machine: install it as its README says and run"
        " `memd start` once. Nothing leaves the machine.",
        "author": {"name": "The memd authors"},
        "license": "MIT",
        "keywords": ["memory", "local", "sqlite"],
        "server": {
            "type": "binary",
            "entry_point": PROGRAM,
            "mcp_config": {
                "command": "/bin/sh",
                "args": [f"${{__dirname}}/{PROGRAM}", "mcp"],
                "env": {"MEMD_CLIENT": "claude-desktop", "MEMD_BIN": "${user_config.program}"},
            },
        },
        "tools": list_tools(),
        "user_config": {
            "program": {
                "type": "file",
                "title": "The program memd",
                "description": "Only if it is not found by itself: where `memd` is",
                "required": False,
                "default": "",
            }
        },
        "compatibility": {"platforms": ["darwin", "linux"]},
    }


def pack(target: Path) -> None:
    """Write the bundle, uncompressed, so that its bytes do not depend on the version of zlib."""
    text = json.dumps(manifest(), indent=2, ensure_ascii=False) + "\n"
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as bundle:
        _add_file(bundle, "manifest.json", text.encode(), 0o644)
        _add_file(bundle, PROGRAM, LAUNCHER.read_bytes(), 0o755)


def _add_file(bundle: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = 3  # Unix: the mode counts
    entry.external_attr = (0o100000 | mode) << 16
    bundle.writestr(entry, content)


if __name__ == "__main__":
    made = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "memd.mcpb"
    pack(made)
    print(f"{made}: {made.stat().st_size:,} bytes, {len(manifest()['tools'])} tools")
