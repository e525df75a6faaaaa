"""Make a set for `scripts/bench retrieval` of questions over people's sessions, whose text is not ours to keep.

A question without a turn is about what was never discussed.

    PYTHONPATH=scripts python -m benchmarks.people_set DIRECTORY SET

DIRECTORY has a folder for each person of people_questions.jsonl, with sessions of Claude Code in `projects` or of Codex
in `codex`. They are imported, and each memory is a document; any memory of the right turn answers a question.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness

QUESTIONS = Path(__file__).with_name("people_questions.jsonl")
_FORMATS = {"projects": "claude-code", "codex": "codex"}


def read_questions() -> list[dict[str, str]]:
    """The questions with their labels; the first line of the file says where they are from."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def label_turn(person: str, session: str, prompt_id: str) -> str:
    """The name of a turn, which tells nothing of what it says."""
    return hashlib.sha256(f"{person}\n{session}\n{prompt_id}".encode()).hexdigest()[:16]


def export_person(folder: Path) -> list[dict[str, Any]]:
    """The records of a vault with all sessions of a person."""
    with harness.daemon() as daemon:
        for name, source in _FORMATS.items():
            if (folder / name).is_dir():
                daemon.run("import", source, str(folder / name))
        exported = daemon.run("export", "-").stdout.decode()
    return [json.loads(line) for line in exported.splitlines()]


def make_documents(person: str, records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A document for each memory, named by its turn."""
    keys = {one["uid"]: one["key"] for one in records if one["record"] == "session"}
    for one in (record for record in records if record["record"] == "summary"):
        session = keys.get(one["session"] or "", "")
        yield {
            "corpus": person, "doc": label_turn(person, session, one["episode"] or one["uid"]),
            "title": one["title"], "text": one["body"], "ts": one["at"], "session": session,
        }  # fmt: skip


def main(directory: str, target: str) -> None:
    """Write the set, and say how many of its questions have their answer in it."""
    questions, found = read_questions(), 0
    with Path(target).open("w", encoding="utf-8") as file:
        for person in sorted({one["person"] for one in questions}):
            documents = list(make_documents(person, export_person(Path(directory, person))))
            names, last = {one["doc"] for one in documents}, max(one["ts"] for one in documents)
            asked = [
                {
                    "corpus": person, "query": one["question"], "gold": [one["turn"]] if one["turn"] else [],
                    "ts": last + 1, "type": "person",
                }
                for one in questions
                if one["person"] == person and (one["turn"] in names or not one["turn"])
            ]  # fmt: skip
            found += sum(bool(one["gold"]) for one in asked)
            file.writelines(f"{json.dumps(one)}\n" for one in [*documents, *asked])
    asked_of_turns = sum(bool(one["turn"]) for one in questions)
    print(f"{found} of {asked_of_turns} questions about a turn have their answer in the set")


if __name__ == "__main__":
    main(*sys.argv[1:])
