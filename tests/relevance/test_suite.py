"""Questions of ten kinds to the memory of a team of four projects: the first hit is the right one.

The corpus and the questions are in tests/data/relevance; each question says why its answer is the
right one. A question with a project sees that project and what holds everywhere, as an agent does.
Where several memories are right, they all stand on the first page, and one of them comes first.
"""

import datetime as dt
import json
from pathlib import Path

import pytest

from memd import time_expressions
from memd.models import GLOBAL_PROJECT, Draft, Kind, SessionRef, Tier
from memd.store import links, projects, summaries
from memd.store.database import Database
from tests.indexed_vault import IndexedVault

DATA = Path(__file__).parent.parent / "data" / "relevance"
NOW = int(dt.datetime(2026, 12, 18, 9, tzinfo=dt.UTC).timestamp() * 1000)
KINDS = (
    "file by name",
    "broad topic",
    "personal recall",
    "canonical file",
    "temporal",
    "filtered by tag and source",
    "exact title with version number",
    "code reference",
    "decision recall",
    "scoped to a project",
)


def read(name):
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


MEMORIES = {memory["name"]: memory for memory in read("memories")}
QUESTIONS = read("questions")


def keep(tx, memory):
    """Store one memory as it was captured; its id."""
    at = time_expressions.parse_start(memory["at"], NOW)
    project = memory["project"]
    project_id = projects.ensure_project(tx, project, project, "", at)
    session = memory.get("session")
    session_id = session and projects.ensure_session(
        tx, SessionRef("claude-code", session), project_id, at
    )
    draft = Draft(
        slot="turn",
        kind=Kind(memory["kind"]),
        title=memory["title"],
        body=memory["body"],
        at=at,
        rule="test",
        sources=(),
        tier=Tier(memory.get("tier", "captured")),
        tags=tuple(memory.get("tags", ())),
        files=tuple(memory.get("files", ())),
        topic_key=memory.get("topic_key"),
    )
    source = memory.get("source", "claude-code")
    owner = summaries.SummaryOwner(project_id, session_id, source, None)
    return summaries.put_summary(tx, memory["name"], draft, owner, at)[0]


def keep_all(tx):
    """Store the corpus, oldest first, as it would have come; name → id."""
    in_order = sorted(
        MEMORIES.values(), key=lambda memory: time_expressions.parse_start(memory["at"], NOW)
    )
    ids = {memory["name"]: keep(tx, memory) for memory in in_order}
    for memory in in_order:
        if newer := memory.get("superseded_by"):
            links.supersede(
                tx, newer_id=ids[newer], older_id=ids[memory["name"]], rule="test",
                cosine=None, guard="", at=time_expressions.parse_start(MEMORIES[newer]["at"], NOW),
            )  # fmt: skip
    return ids


class Team:
    """The memory of the team, and who asks it."""

    def __init__(self, db):
        self.library = IndexedVault(db)
        self.ids = db.write_now(keep_all)
        self.names = {number: name for name, number in self.ids.items()}
        self.projects = {p.key: p.id for p in db.write_now(projects.projects)}

    async def ask(self, asked, **more):
        """The names of the hits, best first."""
        given = {key: tuple(asked[key]) for key in ("tags",) if key in asked}
        if "project" in asked:
            given["project_ids"] = (self.projects[asked["project"]], self.projects[GLOBAL_PROJECT])
        if "since" in asked:
            given["since"] = time_expressions.parse_start(asked["since"], NOW)
        if "until" in asked:
            given["until"] = time_expressions.parse_end(asked["until"], NOW)
        given["kinds"] = tuple(Kind(kind) for kind in asked.get("kinds", ()))
        answer = await self.library.ask(
            asked["ask"], now=NOW, source=asked.get("source"), profile="memd", **given, **more
        )
        return [self.names[hit.summary.id] for hit in answer.hits]


def is_right(question, found):
    """The first hit is a right one, and what else is right stands on the page."""
    return found[:1] and found[0] in question["right"] and set(question["right"]) <= set(found)


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    db = Database(str(tmp_path_factory.mktemp("relevance") / "vault.db"), NOW)
    yield Team(db)
    db.close()


def test_the_suite_asks_every_kind_at_least_three_times_and_says_why():
    asked = [question["kind"] for question in QUESTIONS]
    assert set(asked) == set(KINDS)
    assert min(asked.count(kind) for kind in KINDS) >= 3
    assert all(question["why"] for question in QUESTIONS)
    assert {name for question in QUESTIONS for name in question["right"]} <= set(MEMORIES)
    assert len(MEMORIES) >= 120


def told(found):
    """Per kind how many are right, and what is wrong."""
    lines = []
    for kind in KINDS:
        asked = [(question, names) for question, names in found if question["kind"] == kind]
        wrong = [(question, names) for question, names in asked if not is_right(question, names)]
        lines.append(f"{kind}: {len(asked) - len(wrong)} of {len(asked)}")
        lines += [
            f"    {question['ask']!r}: wanted {' and '.join(question['right'])}, "
            f"since: {question['why']}; got {', '.join(names) or 'nothing'}"
            for question, names in wrong
        ]
    return "\n".join(lines)


async def test_the_first_hit_is_the_right_one_for_every_question(team):
    found = [(question, await team.ask(question)) for question in QUESTIONS]
    assert all(is_right(question, names) for question, names in found), f"\n{told(found)}"
