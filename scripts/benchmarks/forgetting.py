"""Whether what was replaced or forgotten stays away: memd's own cases, ForgetEval's hard cases, memorycheck's scenarios.

Without an option memd's own cases run (`staying`). The public sets are MIT-licensed and not part of memd: give the
checkouts, `--forgeteval DIR` of deeplethe/lethe, `--memorycheck DIR` of YinkaMetrics/memorycheck. A real daemon answers;
no model decides anything.

ForgetEval describes in words what is to be replaced or forgotten. What it names is taken from these words as
they stand: identifiers (what has a digit or a sign within) and names (words in capitals, other scripts). All of
them in one memory, else each; without a name, the memory that a search finds first.
"""

import argparse
import importlib
import itertools
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import regex

from benchmarks import harness, metrics

LIMITS = {
    "ForgetEval, hard cases": {"passed %": ">= 75"},
    "memorycheck": {"passed %": ">= 100"},
    "*": {"stay %": ">= 100"},
}
_DAY_MS = 86_400_000
_SHOWN = 20
_NAME = regex.compile(
    r"[\w.+/@-]*[\d_/@][\w.+/@:-]*"  # alice@acme.io, TKT-100, /etc/app/conf
    r"|[A-Z][\w-]*(?:\s[A-Z][\w-]*)*"  # Alan Turing
    r"|(?:(?!\p{Latin})[\p{L}\p{M}])+(?:\s(?:(?!\p{Latin})[\p{L}\p{M}])+)*"  # 田中太郎
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument(
        "--forgeteval", type=Path, metavar="DIR", help="a checkout of deeplethe/lethe"
    )
    parser.add_argument(
        "--memorycheck", type=Path, metavar="DIR", help="a checkout of YinkaMetrics/memorycheck"
    )
    parser.add_argument("--cases", type=int, default=200, metavar="N", help="memd's own (200)")
    parser.add_argument("--failures", action="store_true", help="name what failed")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Share of ForgetEval's cases that pass, by attack; memorycheck's findings; of memd's own what stays."""
    if not (options.forgeteval or options.memorycheck):
        from benchmarks import staying  # noqa: PLC0415  # it has this module's vault

        return staying.measure(options.cases)
    figures: metrics.Figures = {}
    with harness.daemon() as daemon:
        if options.forgeteval:
            figures |= _run_forgeteval(daemon, options)
        if options.memorycheck:
            figures |= _run_memorycheck(daemon, options)
    return figures


class Vault:
    """The operations of both sets, as calls of a daemon; each case has a project of its own."""

    name = "memd"

    def __init__(self, daemon: harness.Daemon) -> None:
        self._client = daemon.client()
        self._numbers = itertools.count()
        self.project = ""

    def reset(self) -> None:
        """Begin a new case."""
        self.project = f"case-{next(self._numbers)}"

    def remember(self, text: str, **fields: Any) -> int:
        """Store a memory as the user's; return its number."""
        memory = {"project": self.project, **fields, "text": text, "source": "user"}
        receipt = self._client.call("memd/remember", {"memories": [memory]})["remembered"][0]
        return int(receipt["id"])

    def search(self, query: str, k: int, **fields: Any) -> list[Mapping[str, Any]]:
        """Return hits, best first, the near ones of an unknown question too."""
        scope = {"project": self.project, "show_all": True, **fields}
        hits = self._client.call("memd/search", {**scope, "query": query, "k": k})["hits"]
        assert isinstance(hits, list)
        return hits

    def reject(self, ids: Iterable[int]) -> int:
        """Hide memories as the user does in a review; return how many."""
        if chosen := list(ids):
            self._client.call("memd/review", {"ids": chosen, "verdict": "reject"})
        return len(chosen)

    def forget(self, ids: Iterable[int]) -> int:
        """Erase memories; return how many."""
        if chosen := list(ids):
            plan = {"ids": chosen, "project": "all"}
            token = self._client.call("memd/forget", plan)["token"]
            self._client.call("memd/forget", {**plan, "dry_run": False, "token": token})
        return len(chosen)

    def find_named(self, described: str) -> list[int]:
        """Find the memories that a description names, as `memd forget --query` finds words."""
        names = [f'"{one.group().rstrip(".:")}"' for one in _NAME.finditer(described)]
        found = self._find_words(" ".join(names)) if names else []
        if not found:
            found = [one for name in names for one in self._find_words(name)]
        return list(dict.fromkeys(found)) or [one["id"] for one in self.search(described, 1)]

    def _find_words(self, query: str) -> list[int]:
        plan = self._client.call("memd/forget", {"query": query, "project": self.project})
        return [one["id"] for one in plan["summaries"]]

    # ── ForgetEval's adapter ─────────────────────────────────────────────────────────────────────

    def inscribe(self, text: str) -> int:
        """Store a fact."""
        return self.remember(text)

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        """Return the texts of what is found."""
        return [one["body"] for one in self.search(query, k)]

    def supersede(self, old_query: str, new_text: str) -> None:
        """Let a new fact replace the one that the query finds first."""
        self.remember(new_text, replaces=[one["id"] for one in self.search(old_query, 1)])

    def release(self, query: str) -> int:
        """Hide what the query names."""
        return self.reject(self.find_named(query))

    def purge(self, query: str) -> int:
        """Erase what the query names."""
        return self.forget(self.find_named(query))


def _run_forgeteval(daemon: harness.Daemon, options: argparse.Namespace) -> metrics.Figures:
    cases = _load(options.forgeteval, "bench.forgeteval.adversarial").ADVERSARIAL_TESTS
    vault, passed = Vault(daemon), dict[str, list[bool]]()
    for case in cases:
        attack = case.id.removeprefix("adv_").rstrip("0123456789").rstrip("_")
        is_right = case.run(vault)
        passed.setdefault(attack, []).append(is_right)
        if options.failures and not is_right:
            print(case.id, vault.recall_texts(case.final_query, 10))
    every = [one for some in passed.values() for one in some]
    figures = {"ForgetEval, hard cases": _share(every)}
    return figures | {f"  {attack}": _share(some) for attack, some in sorted(passed.items())}


def _share(passed: list[bool]) -> dict[str, Any]:
    count = sum(passed)
    return {"cases": len(passed), "passed": count, "passed %": round(100 * count / len(passed), 1)}


def _load(checkout: Path, name: str) -> Any:
    sys.path.insert(0, str(checkout))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(checkout))


# ── memorycheck ────────────────────────────────────────────────────────────────────────────────────


def _run_memorycheck(daemon: harness.Daemon, options: argparse.Namespace) -> metrics.Figures:
    source = options.memorycheck / "src"
    base = _load(source, "memorycheck.adapters.base")
    run, judge = _load(source, "memorycheck.runner"), _load(source, "memorycheck.judge")
    scenarios = _load(source, "memorycheck.scenario").load_dir(options.memorycheck / "scenarios")
    oracle = _load(source, "memorycheck.oracle")
    adapter = _make_adapter(base, Vault(daemon))
    ran = run.run_suite(scenarios, adapter, judge.DeterministicJudge())["runs"]
    findings = [one for one in oracle.evaluate(ran) if one.status != "PASS"]
    if options.failures:
        print(*findings, sep="\n")
    wrong = {one.scenario_id for one in findings}
    passed = [one.id not in wrong for one in scenarios]
    return {"memorycheck": {**_share(passed), "checks": len(oracle.evaluate(ran))}}


def _make_adapter(base: Any, vault: Vault) -> Any:
    """Make memorycheck's adapter: tenant and user are a project, a key is a topic, a step of time a day."""

    class Adapter(base.MemoryAdapter):  # type: ignore[misc]
        name, supports_ttl = "memd", True

        def reset(self, *_: Any, **__: Any) -> None:
            vault.reset()
            self.namespace, self.ahead, self.known = vault.project, 0, set[str]()

        def write(self, scope: Any, key: str, value: str, ttl_steps: int | None = None) -> None:
            project, until = self._project(scope), {}
            if ttl_steps is not None:
                until = {"expires_at": self._now() + ttl_steps * _DAY_MS}
            vault.remember(f"{key} is {value}", topic_key=key, project=project, **until)
            self.known.add(project)

        def delete(self, scope: Any, key: str) -> None:
            every = {"topic_key": key, "include_superseded": True}
            vault.forget(one["id"] for one in self._search(scope, "", **every))

        def query(self, scope: Any, prompt: str, **_: Any) -> Any:
            hits = self._search(scope, prompt, as_of=self._now())
            return base.QueryResult("; ".join(one["body"] for one in hits))

        def advance_time(self, steps: int) -> None:
            self.ahead += steps * _DAY_MS

        def _now(self) -> int:
            return int(time.time() * 1000) + self.ahead

        def _project(self, scope: Any) -> str:
            return f"{self.namespace} {scope.tenant_id} {scope.user_id}"

        def _search(self, scope: Any, query: str, **fields: Any) -> list[Mapping[str, Any]]:
            project = self._project(scope)
            known = project in self.known
            return vault.search(query, _SHOWN, project=project, **fields) if known else []

    return Adapter()
