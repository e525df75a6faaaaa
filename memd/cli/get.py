"""`memd get`: whole memories."""

import json
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="12 or #12.")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show memories whole."""
    found = door.call("memd/get", ids=door.numbers(ids))
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    print("\n\n".join(_whole(memory) for memory in found["memories"]))
    if found.get("unknown"):
        door.refuse("there is no memory " + ", ".join(f"#{n}" for n in found["unknown"]))


def _whole(memory: dict[str, Any]) -> str:
    facts = {
        "project": memory.get("project"),
        "session": memory.get("session_title"),
        "time": show.minute(memory["at"]),
        "tier": f"{memory['tier']}, from {memory['source']} by {memory['rule']}",
        "topic": memory.get("topic_key"),
        "tags": ", ".join(memory.get("tags") or ()),
        "files": ", ".join(memory.get("files") or ()),
        "expires": show.minute(memory["expires_at"]) if memory.get("expires_at") else None,
    }
    rows = [(name, show.line(str(value))) for name, value in facts.items() if value]
    return "\n".join([show.headline(memory), *show.table(rows), "", show.clean(memory["body"])])
