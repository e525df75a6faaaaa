"""Summaries to searchable rows: passages, postings and vectors, on disk and in memory."""
