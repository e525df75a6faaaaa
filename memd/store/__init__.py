"""SQLite, and the only room that speaks SQL.

Why two kinds of table. Truth (events, summaries, supersessions, edges, the books) cannot be had
again; everything the index knows can be computed from it. `changes` joins the two: triggers write
into it whenever a summary changes, and the indexer reads from it. So a crash between truth and
index loses nothing, and `memd reindex` is always safe.
"""
