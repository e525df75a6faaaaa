"""Whether the right memory comes back first, through the shipped path.

    scripts/bench retrieval FILE…
    scripts/bench retrieval FILE… --model all-minilm      with a real learned model
    scripts/bench retrieval scripts/benchmarks/paraphrases.txt --model all-minilm      questions without a word of their answers
    scripts/bench retrieval FILE… --config grid.toml --choose      which of these profiles, cross-validated

FILE holds JSON lines: {"corpus","doc","text","title"?,"ts","session"?} and {"corpus","query",
"gold":[doc…],"ts","type"}, `ts` in UTC milliseconds. A corpus is a project, `ts` the event time; each
query is asked over MCP with `as_of` its own time. A failed query ends the run. With --model a stub serves the
model over Ollama's protocol; its vectors are cached, so a second run is fast, and the times are memd's own.
`degraded` counts answers without the model. `found` and `nothing` are the shares of answers with these verdicts: all
these questions have an answer, but not each a hit that shows it; `found, unanswerable` is the share of those without
`gold`. `recall@5 to memd` and `MRR to memd` are what a profile has more than memd, with the 95 % interval of a paired bootstrap over the
queries: it is ahead or behind only if 0 lies outside. Times and sizes are those of every fourth query's default answer.

With several files, the last rows are the mean rank of each profile over the files, by recall@5 and by MRR; 1 leads
everywhere. With --choose, each file's row is that of the profile which is best on all other files, by the mean of
recall@5 and MRR: what a choice of constants is worth on a set that it was not made on. Public sets that can be brought into this form:
LoCoMo (snap-research/locomo, CC BY-NC 4.0), and any repository's commit messages asked for by its news entries.

Found with it, in November 2026, and the reason for what memd does:

- all-MiniLM-L6-v2 keeps all its 384 dimensions: of 200 questions without a word of their answer 45.5 % have it first and
  72.0 % among five (the model alone 46.5 and 73.5), with the first 256 dimensions (`--dimensions 256`) 43.0 and 67.5.
- Misspelt words are looked up by their letters, and the question is ranked by what is found: of 200 questions with misspelt,
  split and joined words over trio's commits (misspelt.py) 86.5 % have their answer among five. Without the hashing space it
  is 82.0 (-4.5 [-9.0 -0.5]; of whole words misspelt 82 instead of 94), by that space alone 63.5, by FTS5's bm25 4.5.
- Where a question is near to all memories alike, words decide: of 72 questions in six other languages (languages.txt)
  94 % have their answer first, with this model of English 92, the model alone 65; 96, 97 and 94 % among five.
- Of 194 questions over twelve people's sessions (people_set.py) 77 % have it first with the model and 75 without, 96 and
  95 % among five; words alone 73 and 93, the model alone 69 and 90.
- Left out: a prior on age, fitted to which memories were needed before. It brings more commits of trio into five and
  nothing on chats, and memd knows only what it returned, not what was needed: fitted to that, it gains nothing.
- Left out: words that occur together (pointwise mutual information). Without a model they bring 1.5 % of the 200 questions
  without a common word into five, and cost 4 points of first hits over people's sessions.
"""

import argparse
import json
import math
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks import harness, metrics, minilm

_DEPTH = 10
_MEASURES = ("recall@5", "MRR")
_RESAMPLES = 10_000
_FIRST_AT, _APART = 1_700_000_000_000, 3_600_000
"""UTC ms of the first statement of a file of pairs, and from one to the next."""
_TIMED_EVERY = 4
"""One query in so many is also asked for the default answer, whose time and size are measured."""
_CUTS = (1, 5, 10)
_DEADLINE_S = 10.0
"""For a query's vector: quality is measured here, not what happens at a deadline."""
_ENGINES = '\n[engines]\nembedder = "{}"\n'
_QUERY_CHARACTERS_MAX = 4_000
_PUBLISHED = ("siftcoder", "covalence", "clawmem", "memoturn", "memu")
_PROFILES = {"lexical only": "lexical", "vector only": "vector"}
_SINGLE_RETRIEVERS = """
[profiles.lexical]
base = "memoturn"
legs = {topic = 0.0, lexical = 1.0, vector = 0.0}
diversity = {per_episode = 1}
[profiles.vector]
base = "siftcoder"
cosine_floor = 0.2
diversity = {per_episode = 1}
legs = {topic = 0.0, lexical = 0.0, vector = 1.0}
steps = []
"""
"""config.toml: one retriever at a time, without signals; `vector` fused as the published profiles do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument(
        "--profile", action="append", help="measure only this one; may be given several times"
    )
    parser.add_argument("--embedder", default="auto", help="engines.embedder (default: auto)")
    parser.add_argument(
        "--model", choices=minilm.MODELS, help="embed with this model, and without it to compare"
    )
    parser.add_argument(
        "--dimensions", type=int, default=0, metavar="N",
        help="only so many first dimensions of the model's vectors (Covalence: 256)",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, help="a TOML file with profiles of your own")
    parser.add_argument("--per-type", action="store_true", help="a row per type of query, too")
    parser.add_argument(
        "--choose", action="store_true",
        help="measure the profiles of --config and report, for each file, the one that the others would choose",
    )  # fmt: skip


def measure(options: argparse.Namespace) -> metrics.Figures:
    """The rows of every file; with a model, also those of memd without it."""
    own = options.config.read_text(encoding="utf-8") if options.config else ""
    profiles = options.profile or [*_PROFILES, "memd", *_PUBLISHED]
    if options.choose:
        profiles = options.profile or list(tomllib.loads(own).get("profiles", {}))
    figures: metrics.Figures = {}
    for path in options.files:
        if options.model:
            with harness.model_server(options.model) as server:
                config = f"{own}{server.engines(_DEADLINE_S)}dimensions = {options.dimensions}\n"
                rows = measure_file(path, profiles, config, server, per_type=options.per_type)
            config = own + _ENGINES.format("hashing")
            alone = measure_file(path, ["memd"], config, per_type=options.per_type)
            rows |= {f"hashing only, {label}": row for label, row in alone.items()}
        else:
            config = own + _ENGINES.format(options.embedder)
            rows = measure_file(path, profiles, config, per_type=options.per_type)
        prefix = f"{path.stem}: " if len(options.files) > 1 else ""
        figures |= {prefix + label: row for label, row in rows.items()}
    if len(options.files) > 1:
        files = [path.stem for path in options.files]
        figures |= _rank_profiles(figures, profiles, files)
        if options.choose:
            figures |= choose_by_others(figures, profiles, files)
    return figures


def _rank_profiles(
    figures: metrics.Figures, profiles: list[str], files: list[str]
) -> metrics.Figures:
    """Profile → its mean rank over the files, from 1; equal figures share the better rank."""
    rows: metrics.Figures = {}
    for profile in profiles:
        row = {}
        for key in _MEASURES:
            of_file = [[figures[f"{file}: {other}"][key] for other in profiles] for file in files]
            own = [figures[f"{file}: {profile}"][key] for file in files]
            ranks = [
                1 + sum(one > it for one in all_of) for all_of, it in zip(of_file, own, strict=True)
            ]
            row[key] = round(mean(ranks), 2)
        rows[f"mean rank: {profile}"] = row
    return rows


def choose_by_others(
    figures: metrics.Figures, profiles: list[str], files: list[str]
) -> metrics.Figures:
    """File → the figures there of the profile that is best on all the other files."""

    def worth(profile: str, other_files: list[str]) -> float:
        return mean(figures[f"{file}: {profile}"][key] for file in other_files for key in _MEASURES)

    rows: metrics.Figures = {}
    for file in files:
        others = [other for other in files if other != file]
        chosen = max(profiles, key=lambda profile: worth(profile, others))
        own = figures[f"{file}: {chosen}"]
        rows[f"left out: {file}"] = {"chosen": chosen, **{key: own[key] for key in _MEASURES}}
    return rows


def compare_pairs(
    values: Sequence[float], reference: Sequence[float], seed: int = 1
) -> tuple[float, float, float]:
    """The mean difference of paired values, and its 95 % interval by bootstrap (Efron and Tibshirani, 1993)."""
    differences = np.array(values) - np.array(reference)
    chance = np.random.default_rng(seed)
    drawn = chance.integers(len(differences), size=(_RESAMPLES, len(differences)), dtype=np.int32)
    low, high = np.percentile(differences[drawn].mean(axis=1), (2.5, 97.5))
    return float(differences.mean()), float(low), float(high)


def _compare_with_memd(results: Mapping[str, list[dict[str, Any]]]) -> dict[str, dict[str, str]]:
    """Profile → measure → its difference to memd with the interval, in percent."""
    rows: dict[str, dict[str, str]] = {}
    for label, own in results.items():
        if label == "memd" or "memd" not in results:
            continue
        for key in _MEASURES:
            difference, low, high = (
                100 * number
                for number in compare_pairs(
                    [one[key] for one in own], [one[key] for one in results["memd"]]
                )
            )
            told = f"{difference:+.1f} [{low:+.1f} {high:+.1f}]"
            rows.setdefault(label, {})[f"{key} to memd"] = told
    return rows


def measure_file(
    path: Path,
    profiles: list[str],
    config: str,
    server: harness.ModelServer | None = None,
    *,
    per_type: bool,
) -> metrics.Figures:
    """A row per profile for the documents and queries of one file."""
    lines = _read_lines(path)
    queries = [line for line in lines if line.get("gold")]
    unanswerable = [line for line in lines if line.get("gold") == []]
    rows: metrics.Figures = {}
    of_profile: dict[str, list[dict[str, Any]]] = {}
    with harness.daemon(config=_SINGLE_RETRIEVERS + config) as daemon:
        documents_of = _store(daemon, [line for line in lines if "doc" in line])
        if server is not None:
            daemon.wait_learned()
        mcp = harness.Mcp(daemon.paths.socket)
        for label in profiles:
            profile = _PROFILES.get(label, label)
            before = server.spent()["seconds"] if server else 0.0
            results = [
                _ask(mcp, query, documents_of, profile, is_timed=number % _TIMED_EVERY == 0)
                for number, query in enumerate(queries)
            ]
            of_profile[label] = results
            rows[label] = _summarise(results)
            if unanswerable:
                verdicts = [_search(mcp, query, profile)["verdict"] for query in unanswerable]
                share = verdicts.count("found") / len(verdicts)
                rows[label]["found, unanswerable"] = round(100 * share, 1)
            if server is not None:
                computing = (server.spent()["seconds"] - before) / len(queries)
                rows[label]["model ms"] = round(computing * 1000, 2)
            if per_type:
                by_type = defaultdict(list)
                for result in results:
                    by_type[result["type"]].append(result)
                rows |= {f"{label}: {t}": _summarise(r) for t, r in sorted(by_type.items())}
        mcp.close()
    for label, compared in _compare_with_memd(of_profile).items():
        rows[label] |= compared
    return rows


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The documents and queries of a file; of a `.txt`, a statement and a question of it a line, divided by `|`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix != ".txt":
        return [json.loads(line) for line in lines]
    pairs = [line.split("|") for line in lines]
    times = [_FIRST_AT + _APART * number for number in range(len(pairs) + 1)]
    documents: list[dict[str, Any]] = [
        {"corpus": path.stem, "doc": text, "text": text, "ts": ts}
        for (text, _), ts in zip(pairs, times, strict=False)
    ]
    return documents + [
        {"corpus": path.stem, "query": question, "gold": [text], "ts": times[-1], "type": "pair"}
        for text, question in pairs
    ]


def _search(mcp: harness.Mcp, query: dict[str, Any], profile: str, **more: Any) -> dict[str, Any]:
    """The answer of `mem_search` to a query, of its project and at its time."""
    text = query["query"][:_QUERY_CHARACTERS_MAX]
    return mcp.tool(
        "mem_search",
        query=text, project=query["corpus"], as_of=query["ts"], profile=profile, **more,
    )  # fmt: skip


def _store(daemon: harness.Daemon, documents: list[dict[str, Any]]) -> dict[int, set[str]]:
    """Remember every document; memory id → the documents it stands for (equal texts are one memory)."""
    memories = [
        {"text": one["text"], "title": one.get("title", ""), "at": one["ts"], "project": one["corpus"],
         "source": "bench", **({"session": one["session"]} if one.get("session") else {})}
        for one in documents
    ]  # fmt: skip
    receipts = daemon.remember(memories)
    documents_of: dict[int, set[str]] = defaultdict(set)
    for document, receipt in zip(documents, receipts, strict=True):
        documents_of[receipt["id"]].add(document["doc"])
    return documents_of


def _ask(
    mcp: harness.Mcp,
    query: dict[str, Any],
    documents_of: dict[int, set[str]],
    profile: str,
    *,
    is_timed: bool,
) -> dict[str, Any]:
    """One query's figures: ranks from an answer of ten; time and size of the default answer, if it is timed."""
    deep = _search(mcp, query, profile, k=_DEPTH)
    found = [documents_of[hit["id"]] for hit in deep["hits"]]
    gold = set(query["gold"])
    ranks = [rank for rank, documents in enumerate(found, start=1) if documents & gold]
    ideal = sum(1 / math.log2(i + 1) for i in range(1, min(len(gold), _DEPTH) + 1))
    return {
        "type": query["type"],
        **{f"recall@{cut}": len(gold & set().union(*found[:cut])) / len(gold) for cut in _CUTS},
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "nDCG@10": sum(1 / math.log2(rank + 1) for rank in ranks) / ideal,
        "empty": not found,
        "found": deep["verdict"] == "found",
        "nothing": deep["verdict"] == "nothing",
        "degraded": "vector" in deep.get("degraded", {}),
        **(_time_default_answer(mcp, query, profile) if is_timed else {}),
    }


def _time_default_answer(mcp: harness.Mcp, query: dict[str, Any], profile: str) -> dict[str, float]:
    began = time.perf_counter()
    answer = _search(mcp, query, profile)
    took = time.perf_counter() - began
    size = len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
    return {"seconds": took, "characters": size}


def _summarise(results: list[dict[str, Any]]) -> dict[str, float]:
    """Means over the queries in percent, counts, and times."""
    percents = (*(f"recall@{cut}" for cut in _CUTS), "MRR", "nDCG@10", "found", "nothing")
    timed = [result for result in results if "seconds" in result]
    if timed:
        seconds = harness.milliseconds([result["seconds"] for result in timed])
        characters = round(mean(result["characters"] for result in timed))
        times = {f"{key} ms": value for key, value in seconds.items()} | {"characters": characters}
    else:
        times = {}
    return {
        **{key: round(mean(one[key] for one in results) * 100, 1) for key in percents},
        **{key: sum(one[key] for one in results) for key in ("empty", "degraded")},
        **times,
    }
