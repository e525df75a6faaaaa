"""Pairs of statements that share nearly every word and differ in one value, by the kind of value."""

from tests.tables import read_tables

TABLES = read_tables("belief/value_pairs")

DIFFERENT_VALUES = TABLES["DIFFERENT_VALUES"]  # fmt: skip

SAME_STATEMENTS = TABLES["SAME_STATEMENTS"]  # fmt: skip

LITERALS = tuple(
    """5 -5 50 0.5 5k 5M 5% 5€ $5 £5 5s 5min 5h 5MB 5MiB 5GB 0x5 1e5 #general @anna --cache --no-cache -v -V
    src/a/b.ts src/b/a.ts src/a /src/a ./a ../a *.log !*.log *.tmp **/*.log ^a a$ == != < > <= >= === && ||
    ✅ ❌ 🟢 🔴 → ← ↑ C C++ C# F# v1 v2 3.11 3.12 3.11.1 ^1.2 ~1.2 ~>1.2 >=1.2 1.2.x DEBUG=0 DEBUG=1
    CACHE=on CACHE=off true false enabled disabled userId userID user_id USER_ID !ready ready :8080 :9090
    127.0.0.1 0.0.0.0 2026-05-01 2026-05-02 10:30 10:31 monday friday six never always += -= ** \\\\d \\\\D
    a.b a/b b/a http://a.example https://a.example [x] [^x] x* x+ utf-8 utf-16 nicht kein pas sin ohne mit
    """.split()  # noqa: SIM905  # a list of a hundred strings reads worse
)
"""Tokens that mean different things, each pair of them."""

CHANGED_VALUES = TABLES["CHANGED_VALUES"]  # fmt: skip
"""A statement and a later one that gives the same thing another value."""

TWO_SUBJECTS = TABLES["TWO_SUBJECTS"]  # fmt: skip
"""Statements of which both hold."""
