"""Summaries to fewer, better summaries: near-duplicates are superseded unless a guard objects."""
