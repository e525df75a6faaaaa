"""What a user would reach for instead, on the same texts: grep over transcripts, FTS5 alone, SQLite's LIKE.

    scripts/bench baselines [--summaries N] [--questions N]

Each question is made of four words of one memory, in a plain sentence; right is that memory. grep looks
for the question's rarest word in transcripts, a session a file, and shows lines as they come, since
that is what one does with it; LIKE counts how many words a row has; FTS5 ranks by its own bm25, words
joined by OR. memd answers over MCP, with all that it does beside. Made-up texts: they say who is quick
and who finds a needle, not who understands.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import apsw

from benchmarks import corpus, harness
from memd.text import is_stop_word, words

SHOWN = 5
Ask = Callable[[str], Sequence[str]]
"""A question to the titles of what is found, best first."""


def questions(
    memories: Sequence[Mapping[str, object]], count: int
) -> list[tuple[str, str, list[str]]]:
    """(question, the right title, its four words)."""
    chance = random.Random(3)
    made = []
    for memory in chance.sample(list(memories), count):
        told = [w for w in dict.fromkeys(words(str(memory["text"]))) if not is_stop_word(w)]
        some = chance.sample([word for word in told if len(word) > 2], 4)  # noqa: PLR2004
        made.append((f"what did we say about {' '.join(some)}", str(memory["title"]), some))
    return made


def grep(home: Path, memories: Sequence[Mapping[str, object]]) -> Ask:
    """`grep` over a transcript a session, for the rarest word."""
    counts: Counter[str] = Counter()
    for memory in memories:
        counts.update(set(words(str(memory["text"]).lower())))
        with Path(home, f"{memory['session']}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(memory) + "\n")

    def ask(question: str) -> list[str]:
        known = [word for word in words(question.lower()) if counts[word]]
        rarest = min(known, key=lambda word: counts[word])
        command = ["grep", "-rihwF", "--", rarest, str(home)]
        found = subprocess.run(command, check=False, capture_output=True, text=True)
        return [json.loads(line)["title"] for line in found.stdout.splitlines()[:SHOWN]]

    return ask


def table(memories: Sequence[Mapping[str, object]], path: Path) -> apsw.Connection:
    """The same texts in SQLite, plain and as FTS5."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE plain (title TEXT, body TEXT)")
    connection.execute(
        "CREATE VIRTUAL TABLE fts USING fts5 (title, body, tokenize='porter unicode61')"
    )
    rows = [(str(memory["title"]), str(memory["text"])) for memory in memories]
    with connection:
        connection.executemany("INSERT INTO plain VALUES (?, ?)", rows)
        connection.executemany("INSERT INTO fts VALUES (?, ?)", rows)
    return connection


def like(connection: apsw.Connection) -> Ask:
    """LIKE for each word; the rows with most of them first."""

    def ask(question: str) -> list[str]:
        asked = [word for word in words(question) if not is_stop_word(word)]
        score = " + ".join("(body LIKE ?)" for _ in asked)
        rows = connection.execute(
            f"SELECT title, {score} AS n FROM plain WHERE n > 0 ORDER BY n DESC LIMIT {SHOWN}",  # noqa: S608
            [f"%{word}%" for word in asked],
        )
        return [row[0] for row in rows]

    return ask


def fts5(connection: apsw.Connection) -> Ask:
    """FTS5's own ranking, every word of the question."""

    def ask(question: str) -> list[str]:
        joined = " OR ".join(f'"{word}"' for word in words(question))
        rows = connection.execute(
            f"SELECT title FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT {SHOWN}",  # noqa: S608
            (joined,),
        )
        return [row[0] for row in rows]

    return ask


def memd(daemon: harness.Daemon, memories: Sequence[Mapping[str, object]]) -> Ask:
    """The same texts in memd, over MCP."""
    daemon.remember(memories)
    mcp = harness.Mcp(daemon.paths.socket)
    return lambda question: [
        hit["title"] for hit in mcp.tool("mem_search", query=question, k=SHOWN)["hits"]
    ]


def judged(ask: Ask, asked: Sequence[tuple[str, str, list[str]]]) -> dict[str, float]:
    """Times, and in how many answers the right memory stands first, or among five. A title may be cut."""
    times, first, among = [], 0, 0
    for question, right, _ in asked:
        began = time.perf_counter()
        titles = ask(question)
        times.append(time.perf_counter() - began)
        fits = [right.startswith(title.rstrip("…")) for title in titles]
        first += bool(fits and fits[0])
        among += any(fits)
    share = 100 / len(asked)
    return {
        **harness.milliseconds(times),
        "first %": round(first * share, 1),
        "among five %": round(among * share, 1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench baselines")
    parser.add_argument("--summaries", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    memories = list(corpus.Corpus().memories(options.summaries, int(time.time() * 1000)))
    asked = questions(memories, options.questions)
    figures = {}
    with tempfile.TemporaryDirectory() as place, harness.daemon() as daemon:
        transcripts = Path(place, "transcripts")
        transcripts.mkdir()
        connection = table(memories, Path(place, "texts.db"))
        for name, ask in (
            ("grep", grep(transcripts, memories)),
            ("LIKE", like(connection)),
            ("FTS5", fts5(connection)),
            ("memd", memd(daemon, memories)),
        ):
            ask(asked[0][0])
            figures[name] = judged(ask, asked)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{options.summaries:,} memories, {len(asked)} questions of four of a memory's words")
    for name, values in figures.items():
        print(f"{name:<6} " + "  ".join(f"{key} {value}" for key, value in values.items()))


if __name__ == "__main__":
    main()
