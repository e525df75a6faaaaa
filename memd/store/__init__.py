"""SQLite: the only package that speaks SQL.

There are two kinds of table. Truth (events, summaries, supersessions, edges, the ledger) cannot be
computed again; everything that the index knows can be computed from it. `changes` joins the two:
triggers write to it whenever a summary changes, and the indexer reads from it. So a crash between
truth and index loses nothing, and `memd reindex` is always safe.
"""
