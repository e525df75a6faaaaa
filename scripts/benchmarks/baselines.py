"""What users would reach for without memd, on the same texts: grep over transcripts, and FTS5 alone.

Each question is made of four words of one memory in a plain sentence; that memory is the right answer. grep
looks for the question's rarest word in transcripts, one file a session, and returns lines in their order;
FTS5 ranks by its own bm25, words joined by OR. memd answers over MCP.
The texts are generated: they show who is fast and finds a needle, not who understands.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from benchmarks import corpus, harness, metrics
from memd.text import is_stop_word, words

_TOP = 5
_WORDS_PER_QUESTION = 4
_WORD_CHARACTERS_MIN = 3
Ask = Callable[[str], Sequence[str]]
"""A question → the titles of what is found, best first."""
Texts = Sequence[dict[str, str]]
"""Memories with their title, text and session."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, summaries=10_000, questions=200)


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Times, and how often the right memory stands first or among five."""
    now = int(time.time() * 1000)
    memories = list(corpus.Corpus().memories(options.summaries, now))
    texts = [{key: str(one[key]) for key in ("title", "text", "session")} for one in memories]
    questions = _questions(texts, options.questions)
    with tempfile.TemporaryDirectory() as folder, harness.daemon() as daemon:
        daemon.remember(memories)
        return {
            name: _judge(ask, questions)
            for name, ask in (
                ("grep", _grep(Path(folder), texts)),
                ("FTS5", _fts5(texts)),
                ("memd", _memd(daemon)),
            )
        }


def _questions(texts: Texts, count: int) -> list[tuple[str, str]]:
    """(question, the right title)."""
    chance = random.Random(3)
    questions = []
    for one in chance.sample(texts, count):
        rare = [word for word in dict.fromkeys(words(one["text"])) if not is_stop_word(word)]
        some = chance.sample(
            [word for word in rare if len(word) >= _WORD_CHARACTERS_MIN], _WORDS_PER_QUESTION
        )
        questions.append((f"what did we say about {' '.join(some)}", one["title"]))
    return questions


def _judge(ask: Ask, questions: Sequence[tuple[str, str]]) -> dict[str, float]:
    """A title may be cut."""
    ask(questions[0][0])
    times, first, among = [], 0, 0
    for question, right in questions:
        began = time.perf_counter()
        titles = ask(question)
        times.append(time.perf_counter() - began)
        fits = [right.startswith(title.rstrip("…")) for title in titles]
        first += bool(fits and fits[0])
        among += any(fits)
    share = 100 / len(questions)
    return {
        **harness.milliseconds(times),
        "first %": round(first * share, 1),
        "among five %": round(among * share, 1),
    }


def _grep(folder: Path, texts: Texts) -> Ask:
    counts: Counter[str] = Counter()
    for one in texts:
        counts.update(set(words(one["text"].lower())))
        with Path(folder, f"{one['session']}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")

    def ask(question: str) -> list[str]:
        known = [word for word in words(question.lower()) if counts[word]]
        rarest = min(known, key=lambda word: counts[word])
        command = ["grep", "-rihwF", "--", rarest, str(folder)]
        found = subprocess.run(command, check=False, capture_output=True, text=True)
        return [json.loads(line)["title"] for line in found.stdout.splitlines()[:_TOP]]

    return ask


def _fts5(texts: Texts) -> Ask:
    connection = apsw.Connection("")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5 (title, body, tokenize='porter unicode61')"
    )
    with connection:
        rows = ((one["title"], one["text"]) for one in texts)
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)

    def ask(question: str) -> list[str]:
        joined = " OR ".join(f'"{word}"' for word in words(question))
        sql = f"SELECT title FROM t WHERE t MATCH ? ORDER BY rank LIMIT {_TOP}"  # noqa: S608
        return [row[0] for row in connection.execute(sql, (joined,))]

    return ask


def _memd(daemon: harness.Daemon) -> Ask:
    mcp = harness.Mcp(daemon.paths.socket)
    return lambda question: [
        hit["title"] for hit in mcp.tool("mem_search", query=question, k=_TOP)["hits"]
    ]
