"""Benchmarks of memd, run as `scripts/bench PART`, and what they share with the stress tests."""
