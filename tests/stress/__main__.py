"""`scripts/torture PART …`: one part of the stress tests, for as long as its options say."""

import importlib
import sys

PARTS = (
    "clients", "clock", "crash", "disk", "fuzz", "properties", "security", "soak", "sync", "versions",
)  # fmt: skip

part = sys.argv.pop(1) if len(sys.argv) > 1 else ""
if part not in PARTS:
    sys.exit(f"usage: scripts/torture PART … (--help for more); parts: {' '.join(PARTS)}")
elif part == "fuzz":
    importlib.import_module("tests.stress.properties").main("tests/stress/fuzz/test_fuzz.py")
else:
    importlib.import_module("tests.stress." + {"crash": "crash.kills"}.get(part, part)).main()
