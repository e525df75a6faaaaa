-- The rules that the user wants kept: a call that breaks one is refused.
CREATE TABLE enforced (
  summary_id INTEGER PRIMARY KEY REFERENCES summaries (id) ON DELETE CASCADE,
  at INTEGER NOT NULL
) STRICT;
