#!/usr/bin/env python3
"""Measure a team's memory on a real PostgreSQL: 50 writers, a first join, a catch-up, an idle look.

scripts/end-to-end team [MEMORIES]          (default 100,000; with MEMD_POSTGRES_BIN=/usr/lib/postgresql/15/bin another server)
"""

import platform
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import anyio

from memd.config import TeamConfig
from memd.sharing import postgres, team_server
from memd.sharing.postgres import ROWS_MAX, Head, LogId, LogServer, PostgresTransport
from memd.sharing.records import MEMORY, Record, Stamp
from memd.sharing.syncer import Syncer
from memd.sharing.workers import TeamWorker
from memd.store.database import Database
from tests.postgres import Postgres

WRITERS, APPENDS, ROWS = 50, 20, 10
NOW = 1_800_000_000_000


def make_record(number):
    """A memory of the usual length."""
    text = (
        f"Module {number % 977} keeps its retries at {number} because queue {number % 31} answers late. "
        * 4
    )
    fields = {
        "kind": "discovery", "title": f"Module {number % 977} keeps its retries at {number}", "body": text,
        "topic_key": None, "tags": ["queue"], "files": [f"src/module{number % 977}.py"],
        "at": NOW - number, "expires_at": None, "confidence": 0.5, "quality": 0.5,
    }  # fmt: skip
    record = Record(MEMORY, (f"uid{number:09}+0",), 3, Stamp(NOW - number, 0, "a" * 16), fields)
    return postgres.row_name(record), postgres.write_row(record)


def fill(url, author, count, first=0, head=None):
    """Append memories as a device does; the head of its log."""
    head = head or Head(LogId("app", author, "a" * 16), "laptop", 0, 0)
    with LogServer.open(url) as logs:
        own = PostgresTransport(logs, head.key, head.label)
        for start in range(first, first + count, ROWS_MAX):
            end = min(start + ROWS_MAX, first + count)
            head = own._append(head, [make_record(number) for number in range(start, end)], 0)
    return head


def write_slowly(url, number):
    """One of many writers: seconds of each append."""
    head, took = Head(LogId("app", "ann", f"{number:016x}"), "laptop", 0, 0), []
    with LogServer.open(url) as logs:
        own = PostgresTransport(logs, head.key, head.label)
        for turn in range(APPENDS):
            began = time.perf_counter()
            head = own._append(head, [make_record(turn * ROWS + row) for row in range(ROWS)], 0)
            took.append(time.perf_counter() - began)
    return took


def measure_writers(url):
    began = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        took = sorted(
            s for one in pool.map(lambda n: write_slowly(url, n), range(WRITERS)) for s in one
        )
    seconds = time.perf_counter() - began
    rows = WRITERS * APPENDS * ROWS
    print(f"{WRITERS} writers, {rows:,} rows in transactions of {ROWS}: {seconds:.1f} s, {rows / seconds:,.0f} rows/s,"
          f" an append takes {median(took) * 1000:.0f} ms, one in twenty {took[-len(took) // 20] * 1000:.0f} ms")  # fmt: skip


async def measure_follower(urls, folder, count):
    began = time.perf_counter()
    head = await anyio.to_thread.run_sync(fill, urls("bob"), "bob", count)
    print(f"writing {count:,} memories: {time.perf_counter() - began:.1f} s")
    db = Database(str(folder / "vault.db"), NOW)

    async def forget(_):
        raise AssertionError("nothing was forgotten")

    syncer = Syncer(
        db, lambda value: value, lambda: NOW, lambda: None, forget,
        new_device=lambda: "c" * 16, read_remote=lambda _: None, host="here",
    )  # fmt: skip
    worker = TeamWorker(syncer, TeamConfig(url=urls("ray")), "scale")
    await worker.join("app", "/src/app", has_instructions=False)
    for what, more in (
        ("first join", 0),
        ("a minute behind (500 memories)", 500),
        ("an idle look", 0),
    ):
        if more:
            head = await anyio.to_thread.run_sync(fill, urls("bob"), "bob", more, count, head)
        began = time.perf_counter()
        report = await worker.exchange()
        seconds = time.perf_counter() - began
        rate = f", {report.written / seconds:,.0f} a second" if report.written else ""
        print(f"{what}: {seconds:.2f} s for {report.written:,} memories{rate}")
        assert not report.refused
    db.close()


def main():
    count = int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 100_000
    postgres = Postgres().start()
    try:
        name = postgres.create_database(["ann", "bob", "ray"])

        def url(user):
            return postgres.url(user, name)

        version = postgres.execute(name, "SHOW server_version")[0][0]
        print(
            f"PostgreSQL {version}, Python {platform.python_version()}; fsync off, one machine for all"
        )
        team_server.prepare(url("owner"))
        for member, role in {"ann": "writer", "bob": "writer", "ray": "reader"}.items():
            team_server.grant(url("owner"), member, role, "app")
        measure_writers(url("ann"))
        with tempfile.TemporaryDirectory() as folder:
            postgres.execute(name, "DELETE FROM memd.heads")
            anyio.run(measure_follower, url, Path(folder), count)
        size = postgres.execute(
            name, "SELECT pg_size_pretty(pg_total_relation_size('memd.records'))"
        )[0][0]
        print(f"memd.records on the server: {size}")
    finally:
        postgres.close()


if __name__ == "__main__":
    main()
