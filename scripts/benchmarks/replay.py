"""Whether two versions give the same answers, to the last bit of each score.

Both answer the same questions over a copy of the same generated vault at the same moment: plain ones, misspelt ones,
identifiers, phrases, prefixes, questions for the latest, with filters, with each profile, later pages, prompts' gates.
Compared are the whole answers with their traces, and the bytes that an agent would get; the first differences are
printed. The exit status is 1 if there is any. What a change is meant to alter shows here, too: say so then.

    scripts/bench replay --against COMMIT
    scripts/bench replay --against COMMIT --vault FILE --asked FILE      over real memories
"""

import argparse
import hashlib
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio

from benchmarks import commits, corpus, harness, metrics
from memd.config import RecallConfig
from memd.embeddings.hashing import HashingEmbedder
from memd.index.memory_index import MemoryIndex
from memd.index.snapshot import IndexStorage
from memd.models import Kind
from memd.recall import Question, RelevanceGate
from memd.recall.recaller import Recaller
from memd.server import jsonrpc, mcp_format
from memd.server.scope import ProjectScope
from memd.server.service import SearchOutcome
from memd.store.database import Database

LIMITS = {"answers": {"different": "<= 0"}}
_SHOWN = 3
"""Answers whose differences are printed."""
_BEFORE, _CLIPPED = 60, 200
"""Characters before a difference, and in all."""
_DAY_MS = 86_400_000
_EARLIER, _PUBLISHED = 8, 19
"""Of twenty questions, the one that is asked of the past, and the one for each published profile in turn."""
_PROFILES = ("siftcoder", "covalence", "clawmem", "memoturn", "memu")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, questions=2_000, summaries=10_000)
    parser.add_argument("--against", required=True, metavar="COMMIT", help="the other version")
    parser.add_argument("--vault", type=Path, metavar="FILE", help="a vault to copy instead")
    parser.add_argument("--asked", type=Path, metavar="FILE", help="its questions, one a line")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """How many of the answers differ, and what all of them hash to on each side."""
    with ExitStack() as stack:
        at = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memd-replay-")))
        found = [
            _run_side(stack.enter_context(commits.Side(commit, at / str(number))), at, options)
            for number, commit in enumerate((None, options.against))
        ]
    different = [pair for pair in zip(*found, strict=True) if pair[0] != pair[1]]
    for now, before in different[:_SHOWN]:
        _print_difference(json.loads(now), json.loads(before))
    digests = [hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] for lines in found]
    return {
        "answers": {
            "compared": len(found[0]), "different": len(different), "now": digests[0], "before": digests[1]
        }
    }  # fmt: skip


def _run_side(side: commits.Side, at: Path, options: argparse.Namespace) -> list[str]:
    """The answers of one side, a line of JSON each."""
    vault = at / "vault" / "default.db"
    if not vault.exists():
        vault.parent.mkdir()
        if options.vault is not None:
            shutil.copy(options.vault, vault)
        else:
            generate = (str(vault), str(options.summaries))
            _run_python(side, commits.GENERATE, *generate)
    copy = at / f"copy of {side.name}"
    shutil.copytree(vault.parent, copy)
    out = at / f"{side.name}.jsonl"
    asked = str(options.asked.resolve()) if options.asked else ""
    _run_python(side, _ANSWER, str(copy / vault.name), str(out), str(options.questions), asked)
    return out.read_text("utf-8").split("\n")[:-1]


_ANSWER = "import sys; from benchmarks import replay; replay.answer_all(*sys.argv[1:])"


def _run_python(side: commits.Side, code: str, *arguments: str) -> None:
    """Run code with the memd of one side, and with the benchmarks of this checkout."""
    environ = {
        **os.environ, **side.daemon.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
        "PYTHONPATH": f"{side.source}:{harness.ROOT / 'scripts'}",
    }  # fmt: skip
    metrics.run_process([side.python, "-P", "-c", code, *arguments], environ)


def _print_difference(now: dict[str, Any], before: dict[str, Any]) -> None:
    print(f"\n{now['asked']}", file=sys.stderr)
    for name in now.keys() | before.keys():
        if now.get(name) != before.get(name):
            texts = [json.dumps(one.get(name), ensure_ascii=False) for one in (now, before)]
            pairs = enumerate(itertools.zip_longest(*texts))
            place = max(next(i for i, (a, b) in pairs if a != b) - _BEFORE, 0)
            for text, when in zip(texts, ("now", "before"), strict=True):
                print(f"  {name} {when}: …{text[place : place + _CLIPPED]}", file=sys.stderr)


# ── In the process of one side ───────────────────────────────────────────────────────────────────


def answer_all(vault: str, out: str, count: str, asked: str) -> None:
    """Answer all questions over a vault, and write a line for each."""
    texts = Path(asked).read_text("utf-8").splitlines() if asked else None
    db = Database(vault, 0)
    try:
        lines = anyio.run(_answer_all, db, int(count), texts)
    finally:
        db.close()
    Path(out).write_text("".join(lines), "utf-8")


async def _answer_all(db: Database, count: int, texts: list[str] | None) -> list[str]:
    index, embedder = MemoryIndex(), HashingEmbedder()
    await db.read(IndexStorage(db, index, (embedder,)).load)
    recaller = Recaller(db, (embedder,), index, RecallConfig(), {})
    now = int(index.columns.at[: index.columns.n].max()) + _DAY_MS
    questions = itertools.islice(_make_questions(texts, now), count)
    return [json.dumps(await _answer(recaller, one)) + "\n" for one in questions]


async def _answer(recaller: Recaller, question: Question) -> dict[str, Any]:
    """An answer with everything in it but the time that it took, and what an agent would read."""
    # The bytes of the time that it took would change how much of the texts has room.
    answer = replace(await recaller.search(question), took_ms=1.0)
    rows = jsonrpc.to_plain(answer)
    outcome = SearchOutcome(answer, ProjectScope(question.project_ids))
    shown = mcp_format.format_search(outcome, question.now, explain=question.explain)
    asked = {
        field.name: repr(value)
        for field in fields(question)
        if (value := getattr(question, field.name)) != field.default
    }
    return {"asked": asked, **rows, "shown": jsonrpc.encode_json(shown).decode()}


def _make_questions(texts: list[str] | None, now: int) -> Iterator[Question]:
    """Questions of every kind, the same on both sides; every other one is explained."""
    chance = random.Random(17)
    words = corpus.Corpus(seed=23)
    for number in itertools.count():
        text = words.questions(1)[0] if texts is None else texts[number % len(texts)]
        options: dict[str, Any] = {"explain": number % 2 == 0}
        kind = number % 20
        if kind in _WORDINGS:
            text = _WORDINGS[kind](SimpleNamespace(text=text, chance=chance, words=words))
        options |= _OPTIONS.get(kind, {})
        if kind == _PUBLISHED:
            options["profile"] = _PROFILES[number // 20 % len(_PROFILES)]
        if "relevance_gate" in options:
            options["explain"] = False
        if kind == _EARLIER:
            options["as_of"] = now - 200 * _DAY_MS
        yield Question(text=text, now=now, count_use=False, **options)


def _misspell(q: SimpleNamespace) -> str:
    place = q.chance.randrange(len(q.text) - 1)
    return cast("str", q.text[:place] + q.text[place + 1] + q.text[place] + q.text[place + 2 :])


def _quote(q: SimpleNamespace) -> str:
    asked = q.text.split()
    return " ".join([*asked[:-2], f'"{" ".join(asked[-2:])}"'])


_WORDINGS: dict[int, Any] = {
    0: lambda q: f"{q.text} {q.words.identifier()}",
    1: _misspell,
    2: _quote,
    3: lambda q: f"{q.text[:-2]}*",
    4: lambda q: f"what is the latest {q.text}",
    5: lambda q: f"{q.text} --{q.text.split()[-1]}",
    6: lambda q: f"why did {q.text} fail with TypeError",
    7: lambda q: f"{q.text} oder {q.text} und nicht",
    8: lambda q: q.text.split()[-1],
    9: lambda q: f"{q.text} last month",
}  # fmt: skip
_OPTIONS: dict[int, dict[str, Any]] = {
    10: {"project_ids": (2,)},
    11: {"kinds": (Kind.FIX, Kind.DECISION), "project_ids": (1, 3)},
    12: {"relevance_gate": RelevanceGate()},
    13: {"k": 20},
    14: {"offset": 10, "k": 10},
    15: {"min_score": 0.3},
    16: {"all_words": True},
    17: {"include_superseded": True, "show_all": True},
    18: {"legs": frozenset(("vector",))},
}  # fmt: skip
