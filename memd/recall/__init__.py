"""Retrieval: a question becomes an answer whose scores add up to their explanation."""
